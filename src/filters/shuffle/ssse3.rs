//! One lane. SSSE3 rather than SSE2, for its byte permutation; CPUs without it are of before 2006.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]

use super::lanes::{self, Lanes};
use crate::cpu;
use std::arch::x86_64::*;

lanes::kernel!(__m128i, "ssse3", cpu::has_ssse3);

impl Lanes for __m128i {
    const LANES: usize = 1;
    type Narrow = __m128i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    unsafe fn load_lanes(src: &[u8], at: usize, _: usize) -> Self {
        // SAFETY: passed on to the caller.
        unsafe { Self::load(src, at) }
    }

    #[inline(always)]
    unsafe fn load(src: &[u8], at: usize) -> Self {
        debug_assert!(at + 16 <= src.len());
        // SAFETY: the caller names bytes that exist.
        unsafe { _mm_loadu_si128(src.as_ptr().add(at).cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, dest: &mut [u8], at: usize) {
        debug_assert!(at + 16 <= dest.len());
        // SAFETY: the caller names bytes that exist.
        unsafe { _mm_storeu_si128(dest.as_mut_ptr().add(at).cast(), self) }
    }

    #[inline(always)]
    unsafe fn store_lane(self, lane: usize, dest: &mut [u8], at: usize) {
        debug_assert!(lane == 0);
        // SAFETY: passed on to the caller.
        unsafe { self.store(dest, at) }
    }

    #[inline(always)]
    unsafe fn permute(self, index: [u8; 16]) -> Self {
        // SAFETY: the array has 16 bytes.
        unsafe {
            let index = _mm_loadu_si128(index.as_ptr().cast());
            _mm_shuffle_epi8(self, index)
        }
    }

    #[inline(always)]
    unsafe fn zip_low<const G: usize>(a: Self, b: Self) -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe {
            match G {
                1 => _mm_unpacklo_epi8(a, b),
                2 => _mm_unpacklo_epi16(a, b),
                4 => _mm_unpacklo_epi32(a, b),
                _ => _mm_unpacklo_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    unsafe fn zip_high<const G: usize>(a: Self, b: Self) -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe {
            match G {
                1 => _mm_unpackhi_epi8(a, b),
                2 => _mm_unpackhi_epi16(a, b),
                4 => _mm_unpackhi_epi32(a, b),
                _ => _mm_unpackhi_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    unsafe fn swap_bits<const S: i32>(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the CPU has the instructions.
        unsafe {
            let high = _mm_set1_epi8(match S {
                1 => 0xaau8 as i8,
                2 => 0xccu8 as i8,
                _ => 0xf0u8 as i8,
            });
            // The bits that differ, at their places in `a`.
            let swapped = _mm_and_si128(_mm_xor_si128(a, _mm_slli_epi16::<S>(b)), high);
            (_mm_xor_si128(a, swapped), _mm_xor_si128(b, _mm_srli_epi16::<S>(swapped)))
        }
    }
}
