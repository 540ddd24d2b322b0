//! AVX-512 with VBMI, whose byte permutations of two registers do two steps in one.
//!
//! A tile is 64 items by `C` = 2, 4, 8 or 16 columns in `C` registers. Each register is loaded with `64 / C` whole
//! items; `log2 C` rounds of two-register permutations collect each column in a register. Full cache lines are
//! written, which matters for blocks of a power-of-two size, where all rows compete for the same lines of the cache.
//! What is left over is loaded and stored with masks.
//!
//! The unsafe functions want a CPU with these instructions, and that the items, rows and bytes exist for which they are
//! called.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]
// `have_avx512` stands for a compiler that knows the intrinsics.
#![allow(clippy::incompatible_msrv)]

use super::lanes;
use super::{Kernel, avx2};
use crate::cpu;
use std::arch::x86_64::*;

pub(super) const KERNEL: Kernel = Kernel {
    name: "avx512",
    is_available: cpu::has_avx512,
    shuffle,
    unshuffle,
    // Rows are unshuffled in short pieces.
    unshuffle_planes: avx2::KERNEL.unshuffle_planes,
};

/// Up to this many bytes of items of 4 or 8 bytes are unshuffled in the large tiles.
const FEW_BYTES: usize = 2 << 10;
/// The same for items of 2 bytes, as long as the first-level cache has room for most of it.
const NEAR_BYTES: usize = 32 << 10;

/// The indices of a two-register byte permutation; 64 and above mean the second register.
type Index = [u8; 64];

/// Granules of `g` bytes of half `half` (0 or 1) of two registers, alternating.
const fn zip_index(g: usize, half: usize) -> Index {
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 {
        let register = p / g % 2;
        index[p] = (64 * register + 32 * half + p / (2 * g) * g + p % g) as u8; // below 128
        p += 1;
    }
    index
}

/// The first round of [`to_columns`]: two registers of `64 / c` items of `w` bytes to half of their columns.
const fn first_index(c: usize, w: usize, half: usize) -> Index {
    let per_register = 64 / c;
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 {
        let column = half * (c / 2) + p / (2 * per_register);
        let (register, item) = (p / per_register % 2, p % per_register);
        if column < w {
            index[p] = (64 * register + item * w + column) as u8; // below 128
        }
        p += 1;
    }
    index
}

/// The last round of [`to_items`]: half of the columns in two registers to `64 / c` items of `w` bytes.
const fn last_index(c: usize, w: usize, half: usize) -> Index {
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 / c * w {
        let (item, column) = (p / w, p % w);
        let register = column / (c / 2);
        index[p] = (64 * register + 32 * half + item * (c / 2) + column % (c / 2)) as u8; // below 128
        p += 1;
    }
    index
}

/// [`zip_index`] of granules of `G` bytes.
struct Zip<const G: usize>;
impl<const G: usize> Zip<G> {
    const INDEX: [Index; 2] = [zip_index(G, 0), zip_index(G, 1)];
}

/// [`first_index`] and [`last_index`].
struct Items<const C: usize, const W: usize>;
impl<const C: usize, const W: usize> Items<C, W> {
    const FIRST: [Index; 2] = [first_index(C, W, 0), first_index(C, W, 1)];
    const LAST: [Index; 2] = [last_index(C, W, 0), last_index(C, W, 1)];
}

/// One round: in groups of `n` registers, permutes neighbours; the first results go to the first half of the group.
#[inline(always)]
unsafe fn round<const C: usize>(r: [__m512i; C], n: usize, index: &[Index; 2]) -> [__m512i; C] {
    let mut out = r;
    // SAFETY: the caller checked the CPU; an index has 64 bytes.
    unsafe {
        let low = _mm512_loadu_si512(index[0].as_ptr().cast());
        let high = _mm512_loadu_si512(index[1].as_ptr().cast());
        for group in (0..C).step_by(n) {
            for k in 0..n / 2 {
                let (a, b) = (r[group + 2 * k], r[group + 2 * k + 1]);
                out[group + k] = _mm512_permutex2var_epi8(a, low, b);
                out[group + n / 2 + k] = _mm512_permutex2var_epi8(a, high, b);
            }
        }
    }
    out
}

/// The 64 bytes from `src[at]` on.
#[inline(always)]
pub(in crate::filters) unsafe fn load(src: &[u8], at: usize) -> __m512i {
    debug_assert!(at + 64 <= src.len());
    // SAFETY: the caller names bytes that exist.
    unsafe { _mm512_loadu_si512(src.as_ptr().add(at).cast()) }
}

/// Writes 64 bytes from `dest[at]` on.
#[inline(always)]
pub(in crate::filters) unsafe fn store(x: __m512i, dest: &mut [u8], at: usize) {
    debug_assert!(at + 64 <= dest.len());
    // SAFETY: the caller names bytes that exist.
    unsafe { _mm512_storeu_si512(dest.as_mut_ptr().add(at).cast(), x) }
}

/// A mask of the first `len` bytes, at most 64.
#[inline(always)]
fn first_bytes(len: usize) -> __mmask64 {
    if len < 64 { (1 << len) - 1 } else { !0 }
}

/// The bytes from `src[at]` on, at most 64 and none from `src[end]` on; the others are zeros.
#[inline(always)]
pub(in crate::filters) unsafe fn load_until(src: &[u8], at: usize, end: usize) -> __m512i {
    debug_assert!(end <= src.len());
    let mask = first_bytes(end.saturating_sub(at));
    // SAFETY: the bytes loaded are before `end`, which the caller says exist; the others are not touched. The
    // pointer may lie outside the slice if there are none.
    unsafe { _mm512_maskz_loadu_epi8(mask, src.as_ptr().wrapping_add(at).cast()) }
}

/// Writes as many of the 64 bytes as have room from `dest[at]` on, before `dest[end]`.
#[inline(always)]
pub(in crate::filters) unsafe fn store_until(x: __m512i, dest: &mut [u8], at: usize, end: usize) {
    debug_assert!(end <= dest.len());
    let mask = first_bytes(end.saturating_sub(at));
    // SAFETY: the bytes written are before `end`, which the caller says exist; the others are not touched. The
    // pointer may lie outside the slice if there are none.
    unsafe { _mm512_mask_storeu_epi8(dest.as_mut_ptr().wrapping_add(at).cast(), mask, x) }
}

/// From registers of `64 / C` items of `W` bytes to columns: column `b < W` becomes register `b`.
///
/// # Safety
///
/// The CPU has AVX-512 with VBMI; `C / 2 < W <= C`.
#[inline(always)]
pub(in crate::filters) unsafe fn to_columns<const C: usize, const W: usize>(
    items: [__m512i; C],
) -> [__m512i; C] {
    // SAFETY: passed on to the caller.
    unsafe {
        let r = round::<C>(items, C, &Items::<C, W>::FIRST);
        match C {
            2 => r,
            4 => round::<C>(r, 2, &Zip::<32>::INDEX),
            8 => round::<C>(round::<C>(r, 4, &Zip::<16>::INDEX), 2, &Zip::<32>::INDEX),
            _ => {
                let r = round::<C>(r, 8, &Zip::<8>::INDEX);
                round::<C>(round::<C>(r, 4, &Zip::<16>::INDEX), 2, &Zip::<32>::INDEX)
            }
        }
    }
}

/// Undoes [`to_columns`]; what registers hold after their items means nothing.
///
/// # Safety
///
/// As for [`to_columns`].
#[inline(always)]
pub(in crate::filters) unsafe fn to_items<const C: usize, const W: usize>(
    columns: [__m512i; C],
) -> [__m512i; C] {
    // SAFETY: passed on to the caller.
    unsafe {
        let r = match C {
            2 => columns,
            4 => round::<C>(columns, 4, &Zip::<1>::INDEX),
            8 => round::<C>(round::<C>(columns, 8, &Zip::<1>::INDEX), 4, &Zip::<2>::INDEX),
            _ => {
                let r = round::<C>(columns, 16, &Zip::<1>::INDEX);
                round::<C>(round::<C>(r, 8, &Zip::<2>::INDEX), 4, &Zip::<4>::INDEX)
            }
        };
        round::<C>(r, 2, &Items::<C, W>::LAST)
    }
}

/// Registers from `src[at]`, `src[at + step]` and so on, up to `src[end]`. Not inlined, for there are many callers.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn load_steps<const C: usize>(src: &[u8], at: usize, step: usize, end: usize) -> [__m512i; C] {
    let mut r = [_mm512_setzero_si512(); C];
    for (k, r) in r.iter_mut().enumerate() {
        // SAFETY: passed on to the caller.
        *r = unsafe { load_until(src, at + k * step, end) };
    }
    r
}

/// Registers to `dest[at]`, `dest[at + step]` and so on, up to `dest[end]`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn store_steps<const C: usize>(r: [__m512i; C], dest: &mut [u8], at: usize, step: usize, end: usize) {
    for (k, r) in r.into_iter().enumerate() {
        // SAFETY: passed on to the caller.
        unsafe { store_until(r, dest, at + k * step, end) };
    }
}

/// The columns of the 64 items of `W` bytes from `src[at]` on, or of those of them that end before `src[end]`.
///
/// # Safety
///
/// As for [`to_columns`]; `end <= src.len()`.
#[inline(always)]
pub(in crate::filters) unsafe fn gather<const C: usize, const W: usize>(
    src: &[u8],
    at: usize,
    end: usize,
) -> [__m512i; C] {
    let step = 64 / C * W;
    // SAFETY: passed on to the caller; without masks, the last load ends before `end`.
    unsafe {
        let mut r = [_mm512_setzero_si512(); C];
        if at + (C - 1) * step + 64 <= end {
            for (k, r) in r.iter_mut().enumerate() {
                *r = load(src, at + k * step);
            }
        } else {
            r = load_steps(src, at, step, end);
        }
        to_columns::<C, W>(r)
    }
}

/// Undoes [`gather`]. Overwrites up to 60 bytes after the items, but none from `dest[end]` on.
///
/// # Safety
///
/// As for [`to_items`]; `end <= dest.len()`.
#[inline(always)]
pub(in crate::filters) unsafe fn scatter<const C: usize, const W: usize>(
    columns: [__m512i; C],
    dest: &mut [u8],
    at: usize,
    end: usize,
) {
    let step = 64 / C * W;
    // SAFETY: passed on to the caller; without masks, the last store ends before `end`.
    unsafe {
        let r = to_items::<C, W>(columns);
        if at + (C - 1) * step + 64 <= end {
            for (k, r) in r.into_iter().enumerate() {
                store(r, dest, at + k * step);
            }
        } else {
            store_steps(r, dest, at, step, end);
        }
    }
}

/// How many items the second tile of a shuffle is after the first one: so many that loads, or stores, are of whole
/// cache lines from then on, as far as may be. Of items of two bytes, loads that are not take twice as long; of wider
/// ones, it is the stores, if all rows are aligned alike.
#[inline(always)]
fn step_of_shuffle<const W: usize>(stride: usize, src: &[u8], dest: &[u8]) -> usize {
    let (from, to) = (src.as_ptr().addr(), dest.as_ptr().addr());
    let are_rows_alike = stride % 64 == 0;
    if W.is_power_of_two() && from % W == 0 && (W == 2 || !are_rows_alike) {
        64 - from % 64 / W
    } else if are_rows_alike {
        64 - to % 64
    } else {
        64
    }
}

/// The same for an unshuffle, which stores items: those of two bytes in whole cache lines.
#[inline(always)]
fn step_of_unshuffle<const W: usize>(dest: &[u8]) -> usize {
    let to = dest.as_ptr().addr();
    if W == 2 && to % W == 0 { 64 - to % 64 / W } else { 64 }
}

/// [`Kernel`]'s `shuffle` for `width == W`, 2 to 16.
#[inline(always)]
unsafe fn shuffle_narrow<const C: usize, const W: usize>(stride: usize, src: &[u8], dest: &mut [u8]) {
    let nitems = src.len() / W;
    let mut step = step_of_shuffle::<W>(stride, src, dest);
    let mut i = 0;
    // SAFETY: tiles are inside the `nitems` items; the rest is passed on to the caller.
    unsafe {
        if (16..64).contains(&nitems) {
            return lanes::shuffle_narrow::<__m256i, C, W>(stride, src, dest);
        }
        while i + 64 <= nitems {
            for (j, row) in gather::<C, W>(src, i * W, src.len()).into_iter().enumerate().take(W) {
                store(row, dest, j * stride + i);
            }
            i += step;
            step = 64;
        }
        if W == C && i < nitems && nitems >= 64 {
            let columns = gather::<C, W>(src, src.len() - 64 * W, src.len());
            for (j, row) in columns.into_iter().enumerate() {
                store(row, dest, j * stride + nitems - 64);
            }
        } else if i < nitems {
            let columns = gather::<C, W>(src, i * W, src.len());
            for (j, row) in columns.into_iter().enumerate().take(W) {
                store_until(row, dest, j * stride + i, j * stride + nitems);
            }
        }
    }
}

/// [`Kernel`]'s `unshuffle` for `width == W`, 2 to 16.
#[inline(always)]
unsafe fn unshuffle_narrow<const C: usize, const W: usize>(stride: usize, src: &[u8], dest: &mut [u8]) {
    let nitems = dest.len() / W;
    let end = dest.len();
    let mut step = step_of_unshuffle::<W>(dest);
    let mut i = 0;
    // SAFETY: tiles are inside the `nitems` items; the rest is passed on to the caller. What stores overwrite after
    // their tile belongs to later tiles.
    unsafe {
        if (16..64).contains(&nitems) {
            return lanes::unshuffle_narrow::<__m256i, C, W>(stride, src, dest);
        }
        while i + 64 <= nitems {
            let mut rows = [_mm512_setzero_si512(); C];
            for (j, row) in rows.iter_mut().enumerate().take(W) {
                *row = load(src, j * stride + i);
            }
            scatter::<C, W>(rows, dest, i * W, end);
            i += step;
            step = 64;
        }
        if W == C && i < nitems && nitems >= 64 {
            let mut rows = [_mm512_setzero_si512(); C];
            for (j, row) in rows.iter_mut().enumerate() {
                *row = load(src, j * stride + nitems - 64);
            }
            scatter::<C, W>(rows, dest, end - 64 * W, end);
        } else if i < nitems {
            let mut rows = [_mm512_setzero_si512(); C];
            for (j, row) in rows.iter_mut().enumerate().take(W) {
                *row = load_until(src, j * stride + i, j * stride + nitems);
            }
            scatter::<C, W>(rows, dest, i * W, end);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn shuffle(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe {
        lanes::by_width!(
            width,
            shuffle_narrow[](stride, src, dest),
            lanes::shuffle_wide::<__m256i>(width, stride, src, dest)
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn unshuffle(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU, which has AVX2 as well, and the arguments.
    unsafe {
        match width {
            // All work of the AVX2 code is one zip per register and round then; compiled for AVX-512, it is slower. For
            // few items, its tiles are too small.
            4 | 8 if dest.len() > FEW_BYTES => (avx2::KERNEL.unshuffle)(width, stride, src, dest),
            2 if dest.len() > NEAR_BYTES => (avx2::KERNEL.unshuffle)(width, stride, src, dest),
            _ => lanes::by_width!(
                width,
                unshuffle_narrow[](stride, src, dest),
                lanes::unshuffle_wide::<__m256i>(width, stride, src, dest)
            ),
        }
    }
}
