//! AVX-512 with VBMI's byte permutations.
//!
//! A tile is 64 items by `C` = 2, 4, 8 or 16 columns in `C` registers. Each register is loaded with `64 / C` whole
//! items; `log2 C` rounds of permutations of two registers collect each column in one. CPUs of different makers want
//! different ones: see [`Maker`]. Full cache lines are written, which matters for blocks of a power-of-two size, where
//! all rows compete for the same lines of the cache. What is left over is loaded and stored with masks.
//!
//! The unsafe functions want a CPU with these instructions, and that the items, rows and bytes exist for which they are
//! called.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]
// `have_avx512` stands for a compiler that knows the intrinsics.
#![allow(clippy::incompatible_msrv)]

mod maker;

pub(in crate::filters) use maker::{Amd, Intel, Maker};

use super::{Kernel, avx2, lanes};
use crate::cpu;
use std::arch::x86_64::*;

pub(super) const AMD: Kernel = Kernel {
    name: "avx512 for AMD",
    is_available: cpu::has_avx512,
    suits: cpu::is_amd,
    shuffle: shuffle::<Amd>,
    unshuffle: unshuffle::<Amd>,
    // Rows are unshuffled in short pieces.
    unshuffle_planes: avx2::KERNEL.unshuffle_planes,
};

pub(super) const INTEL: Kernel = Kernel {
    name: "avx512 for Intel",
    suits: || !cpu::is_amd(),
    shuffle: shuffle::<Intel>,
    unshuffle: unshuffle::<Intel>,
    ..AMD
};

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
/// As for [`Maker::to_columns`]; `end <= src.len()`.
#[inline(always)]
pub(in crate::filters) unsafe fn gather<M: Maker, const C: usize, const W: usize>(
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
        M::to_columns::<C, W>(r)
    }
}

/// Undoes [`gather`]. Overwrites up to `64 - 64 / C * W` bytes after the items, but none from `dest[end]` on.
///
/// # Safety
///
/// As for [`Maker::to_items`]; `end <= dest.len()`.
#[inline(always)]
pub(in crate::filters) unsafe fn scatter<M: Maker, const C: usize, const W: usize>(
    columns: [__m512i; C],
    dest: &mut [u8],
    at: usize,
    end: usize,
) {
    let step = 64 / C * W;
    // SAFETY: passed on to the caller; without masks, the last store ends before `end`.
    unsafe {
        let r = M::to_items::<C, W>(columns);
        if at + (C - 1) * step + 64 <= end {
            for (k, r) in r.into_iter().enumerate() {
                store(r, dest, at + k * step);
            }
        } else {
            store_steps(r, dest, at, step, end);
        }
    }
}

/// [`Kernel`]'s `shuffle` for `width == W`, 2 to 16.
#[inline(always)]
unsafe fn shuffle_narrow<M: Maker, const C: usize, const W: usize>(
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
    let nitems = src.len() / W;
    let mut step = M::step_of_shuffle::<W>(stride, src, dest);
    let asks_ahead = M::STORES_WAIT && lanes::pays_to_ask_ahead(W, stride, src.len());
    let mut i = 0;
    // SAFETY: tiles are inside the `nitems` items; the rest is passed on to the caller.
    unsafe {
        if (16..64).contains(&nitems) {
            return lanes::shuffle_narrow::<__m256i, C, W>(stride, src, dest);
        }
        while i + 64 <= nitems {
            if asks_ahead {
                lanes::ask_ahead::<__m256i>(W, dest, i, stride);
            }
            for (j, row) in gather::<M, C, W>(src, i * W, src.len()).into_iter().enumerate().take(W) {
                store(row, dest, j * stride + i);
            }
            i += step;
            step = 64;
        }
        if W == C && i < nitems && nitems >= 64 {
            let columns = gather::<M, C, W>(src, src.len() - 64 * W, src.len());
            for (j, row) in columns.into_iter().enumerate() {
                store(row, dest, j * stride + nitems - 64);
            }
        } else if i < nitems {
            let columns = gather::<M, C, W>(src, i * W, src.len());
            for (j, row) in columns.into_iter().enumerate().take(W) {
                store_until(row, dest, j * stride + i, j * stride + nitems);
            }
        }
    }
}

/// [`Kernel`]'s `unshuffle` for `width == W`, 2 to 16.
#[inline(always)]
unsafe fn unshuffle_narrow<M: Maker, const C: usize, const W: usize>(
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
    let nitems = dest.len() / W;
    let end = dest.len();
    let mut step = M::step_of_unshuffle::<W>(dest);
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
            scatter::<M, C, W>(rows, dest, i * W, end);
            i += step;
            step = 64;
        }
        if W == C && i < nitems && nitems >= 64 {
            let mut rows = [_mm512_setzero_si512(); C];
            for (j, row) in rows.iter_mut().enumerate() {
                *row = load(src, j * stride + nitems - 64);
            }
            scatter::<M, C, W>(rows, dest, end - 64 * W, end);
        } else if i < nitems {
            let mut rows = [_mm512_setzero_si512(); C];
            for (j, row) in rows.iter_mut().enumerate().take(W) {
                *row = load_until(src, j * stride + i, j * stride + nitems);
            }
            scatter::<M, C, W>(rows, dest, i * W, end);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn shuffle<M: Maker>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe {
        lanes::by_width!(
            width,
            shuffle_narrow[M,](stride, src, dest),
            lanes::shuffle_wide::<__m256i>(width, stride, src, dest)
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn unshuffle<M: Maker>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU, which has AVX2 as well, and the arguments.
    unsafe {
        if M::unshuffles_by_avx2(width, dest.len()) {
            return (avx2::KERNEL.unshuffle)(width, stride, src, dest);
        }
        lanes::by_width!(
            width,
            unshuffle_narrow[M,](stride, src, dest),
            lanes::unshuffle_wide::<__m256i>(width, stride, src, dest)
        );
    }
}
