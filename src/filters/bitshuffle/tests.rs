//! Every variant against the definition, and nothing written outside the destination.

use super::generic::transpose8;
use super::*;
use crate::filters::testing::{guarded, lengths, noise, widths};

fn naive(typesize: usize, src: &[u8]) -> Vec<u8> {
    let nitems = src.len() / typesize / 8 * 8;
    let stride = nitems / 8;
    let mut out = src.to_vec();
    out[..nitems * typesize].fill(0);
    for i in 0..nitems {
        for j in 0..typesize {
            for k in 0..8 {
                out[(8 * j + k) * stride + i / 8] |= (src[i * typesize + j] >> k & 1) << (i % 8);
            }
        }
    }
    out
}

fn check(kernel: &Kernel, typesize: usize, src: &[u8], offset: usize) {
    let what = format!("{} typesize {typesize} length {} offset {offset}", kernel.name, src.len());
    let want = naive(typesize, src);
    let got = guarded(src.len(), offset, |dest| kernel.bitshuffle(typesize, src, dest));
    assert!(got == want, "bitshuffle {what}");
    let back = guarded(src.len(), offset, |dest| kernel.bitunshuffle(typesize, &want, dest));
    assert!(back == src, "bitunshuffle {what}");
}

#[test]
fn transpose8_moves_bit_k_of_byte_m_to_bit_m_of_byte_k() {
    for m in 0..8 {
        for k in 0..8 {
            assert_eq!(transpose8(1 << (8 * m + k)), 1 << (8 * k + m));
        }
    }
}

#[test]
fn every_variant_agrees_with_the_definition_at_short_lengths() {
    for kernel in usable() {
        for typesize in widths() {
            // Every number of groups up to a little more than two of the widest tiles, with all kinds of left-overs.
            for ngroups in lengths(0..=if typesize > 16 { 18 } else { 140 }) {
                let len = (8 * ngroups + ngroups % 8) * typesize + ngroups % typesize;
                let src = noise(len + 1);
                check(kernel, typesize, &src[1..], ngroups % 3);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn every_variant_agrees_with_the_definition_at_all_start_offsets() {
    for kernel in usable() {
        for typesize in [1, 2, 3, 4, 5, 7, 8, 12, 16, 24] {
            for offset in 0..64 {
                let src = noise(64 + 597 * typesize + 1);
                check(kernel, typesize, &src[offset..offset + 597 * typesize + 1], 63 - offset);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn every_variant_agrees_with_the_definition_on_blocks() {
    for kernel in usable() {
        for typesize in widths() {
            for len in [32 * 1024, 70_001] {
                let src = noise(len + 1);
                for offset in [0, 1, 16, 62] {
                    check(kernel, typesize, &src[offset % 2..][..len], offset);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn ranges_are_parts_of_the_unshuffled_block() {
    for kernel in usable() {
        for typesize in widths() {
            let block = noise(8 * 70 * typesize + 5 * typesize + typesize / 2);
            let shuffled = naive(typesize, &block);
            let starts = (0..20).chain([typesize, 7 * typesize + 1, 8 * typesize, 64 * 8 * typesize]);
            for start in starts.chain([560 * typesize - 1, block.len() - 1, block.len()]) {
                let lens = (0..20).chain([typesize, 8 * typesize, 600 * typesize + 3, usize::MAX]);
                for len in lens.map(|l| l.min(block.len() - start)) {
                    let mut spare = noise(shuffled.len());
                    let got = guarded(len, 0, |dest| {
                        kernel.bitunshuffle_bytes(typesize, &shuffled, start, dest, &mut spare);
                    });
                    assert!(
                        got == block[start..start + len],
                        "{} typesize {typesize} {start}+{len}",
                        kernel.name
                    );
                }
            }
        }
    }
}

#[test]
fn known_vectors() {
    let shuffled = |typesize, src: &[u8]| {
        let mut dest = vec![0; src.len()];
        bitshuffle(typesize, src, &mut dest);
        let mut back = vec![0; src.len()];
        bitunshuffle(typesize, &dest, &mut back);
        assert_eq!(back, src);
        dest
    };
    let counting: Vec<u8> = (0..0x26).collect();
    assert_eq!(
        shuffled(1, &counting[..16]),
        [0xaa, 0xaa, 0xcc, 0xcc, 0xf0, 0xf0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    let mut want = vec![0, 0, 0xaa, 0xaa, 0xcc, 0xcc, 0xf0, 0xf0, 0, 0xff, 0, 0, 0, 0, 0, 0];
    want.extend([0xff, 0xff, 0xaa, 0xaa, 0xcc, 0xcc, 0xf0, 0xf0, 0, 0xff, 0, 0, 0, 0, 0, 0]);
    want.extend(0x20..0x26);
    assert_eq!(shuffled(2, &counting), want);
    let mut ints: Vec<u8> = (1..=8i32).flat_map(i32::to_le_bytes).collect();
    ints.extend([0xff, 0xfe, 0xfd]);
    let mut want = vec![0x55, 0x66, 0x78, 0x80];
    want.extend([0; 28]);
    want.extend([0xff, 0xfe, 0xfd]);
    assert_eq!(shuffled(4, &ints), want);
}

#[test]
fn old_format_shuffles_all_items_or_none() {
    for (len, is_shuffled) in [(64, true), (66, true), (68, false), (95, false), (3, true)] {
        let block = noise(len);
        let stored = if is_shuffled { naive(4, &block) } else { block.clone() };
        let got = guarded(len, 0, |dest| bitunshuffle_blosc1(4, &stored, dest));
        assert_eq!(got, block);
    }
}
