//! The portable bit shuffle, 8 items at a time; also what the vector variants leave over.

#![forbid(unsafe_code)]

use super::Kernel;
use std::ops::Range;

pub(super) const KERNEL: Kernel = Kernel {
    name: "generic",
    is_available: || true,
    suits: || true,
    tile: 1,
    bitshuffle: bitshuffle_all,
    bitunshuffle: bitunshuffle_all,
};

fn bitshuffle_all(typesize: usize, src: &[u8], dest: &mut [u8]) {
    bitshuffle(typesize, src, dest, 0..src.len() / (8 * typesize));
}

fn bitunshuffle_all(typesize: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    bitunshuffle(typesize, stride, src, dest, 0..dest.len() / (8 * typesize));
}

/// Transposes `x` as a matrix of 8 by 8 bits: bit `k` of byte `m` becomes bit `m` of byte `k` (bytes counted from
/// the least significant).
#[inline]
pub(super) fn transpose8(mut x: u64) -> u64 {
    // Swap 1x1, 2x2 and 4x4 submatrices across the diagonal.
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// Bit-shuffles the groups of 8 items `groups` of `src`; arguments as for [`Kernel`]'s `bitshuffle`.
pub(super) fn bitshuffle(typesize: usize, src: &[u8], dest: &mut [u8], groups: Range<usize>) {
    let stride = src.len() / (8 * typesize);
    let src = &src[groups.start * 8 * typesize..groups.end * 8 * typesize];
    for (j, rows) in dest.chunks_exact_mut(8 * stride).enumerate() {
        for (g, items) in groups.clone().zip(src.chunks_exact(8 * typesize)) {
            let bytes: [u8; 8] = std::array::from_fn(|m| items[m * typesize + j]);
            for (k, bits) in transpose8(u64::from_le_bytes(bytes)).to_le_bytes().into_iter().enumerate() {
                rows[k * stride + g] = bits;
            }
        }
    }
}

/// Undoes the bit shuffle for the groups `groups` of `dest`; arguments as for [`Kernel`]'s `bitunshuffle`.
pub(super) fn bitunshuffle(
    typesize: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
    groups: Range<usize>,
) {
    let dest = &mut dest[groups.start * 8 * typesize..groups.end * 8 * typesize];
    for j in 0..typesize {
        let rows = &src[8 * j * stride..];
        for (g, items) in groups.clone().zip(dest.chunks_exact_mut(8 * typesize)) {
            let bits: [u8; 8] = std::array::from_fn(|k| rows[k * stride + g]);
            for (m, byte) in transpose8(u64::from_le_bytes(bits)).to_le_bytes().into_iter().enumerate() {
                items[m * typesize + j] = byte;
            }
        }
    }
}
