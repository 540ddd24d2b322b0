//! Two lanes: AVX2.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]

use super::lanes::{self, Lanes};
use crate::cpu;
use std::arch::x86_64::*;

lanes::kernel!(__m256i, "avx2", cpu::has_avx2);

impl Lanes for __m256i {
    const LANES: usize = 2;
    type Narrow = __m128i;

    /// So it is on Intel's CPUs. Tests do as if, on any.
    #[inline]
    fn stores_wait() -> bool {
        cfg!(test) || !cpu::is_amd()
    }

    #[inline(always)]
    unsafe fn ask(line: *const u8) {
        // SAFETY: the CPU has the instruction; what is asked for need not exist.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn load_lanes(src: &[u8], at: usize, lane_stride: usize) -> Self {
        debug_assert!(at + lane_stride + 16 <= src.len());
        // SAFETY: the caller names bytes that exist.
        unsafe {
            let low = _mm_loadu_si128(src.as_ptr().add(at).cast());
            let high = _mm_loadu_si128(src.as_ptr().add(at + lane_stride).cast());
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
        }
    }

    #[inline(always)]
    unsafe fn load(src: &[u8], at: usize) -> Self {
        debug_assert!(at + 32 <= src.len());
        // SAFETY: the caller names bytes that exist.
        unsafe { _mm256_loadu_si256(src.as_ptr().add(at).cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, dest: &mut [u8], at: usize) {
        debug_assert!(at + 32 <= dest.len());
        // SAFETY: the caller names bytes that exist.
        unsafe { _mm256_storeu_si256(dest.as_mut_ptr().add(at).cast(), self) }
    }

    #[inline(always)]
    unsafe fn store_lane(self, lane: usize, dest: &mut [u8], at: usize) {
        debug_assert!(lane < 2 && at + 16 <= dest.len());
        // SAFETY: the caller names bytes that exist.
        unsafe {
            let bytes = match lane {
                0 => _mm256_castsi256_si128(self),
                _ => _mm256_extracti128_si256::<1>(self),
            };
            _mm_storeu_si128(dest.as_mut_ptr().add(at).cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn permute(self, index: [u8; 16]) -> Self {
        // SAFETY: the array has 16 bytes.
        unsafe {
            let index = _mm_loadu_si128(index.as_ptr().cast());
            _mm256_shuffle_epi8(self, _mm256_broadcastsi128_si256(index))
        }
    }

    #[inline(always)]
    unsafe fn zip_low<const G: usize>(a: Self, b: Self) -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe {
            match G {
                1 => _mm256_unpacklo_epi8(a, b),
                2 => _mm256_unpacklo_epi16(a, b),
                4 => _mm256_unpacklo_epi32(a, b),
                _ => _mm256_unpacklo_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    unsafe fn zip_high<const G: usize>(a: Self, b: Self) -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe {
            match G {
                1 => _mm256_unpackhi_epi8(a, b),
                2 => _mm256_unpackhi_epi16(a, b),
                4 => _mm256_unpackhi_epi32(a, b),
                _ => _mm256_unpackhi_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    unsafe fn swap_bits<const S: i32>(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the CPU has the instructions.
        unsafe {
            let high = _mm256_set1_epi8(match S {
                1 => 0xaau8 as i8,
                2 => 0xccu8 as i8,
                _ => 0xf0u8 as i8,
            });
            // The bits that differ, at their places in `a`.
            let swapped = _mm256_and_si256(_mm256_xor_si256(a, _mm256_slli_epi16::<S>(b)), high);
            (_mm256_xor_si256(a, swapped), _mm256_xor_si256(b, _mm256_srli_epi16::<S>(swapped)))
        }
    }
}
