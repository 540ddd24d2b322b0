//! One lane: NEON, which every AArch64 CPU has.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]

use super::lanes::{self, Lanes};
use std::arch::aarch64::*;

lanes::kernel!(uint8x16_t, "neon", || true);

impl Lanes for uint8x16_t {
    const LANES: usize = 1;
    type Narrow = uint8x16_t;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe { vdupq_n_u8(0) }
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
        unsafe { vld1q_u8(src.as_ptr().add(at)) }
    }

    #[inline(always)]
    unsafe fn store(self, dest: &mut [u8], at: usize) {
        debug_assert!(at + 16 <= dest.len());
        // SAFETY: the caller names bytes that exist.
        unsafe { vst1q_u8(dest.as_mut_ptr().add(at), self) }
    }

    #[inline(always)]
    unsafe fn store_lane(self, lane: usize, dest: &mut [u8], at: usize) {
        debug_assert!(lane == 0);
        // SAFETY: passed on to the caller.
        unsafe { self.store(dest, at) }
    }

    #[inline(always)]
    unsafe fn permute(self, index: [u8; 16]) -> Self {
        // SAFETY: the array has 16 bytes. Indices past the register give zeros.
        unsafe { vqtbl1q_u8(self, vld1q_u8(index.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn zip_low<const G: usize>(a: Self, b: Self) -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe {
            match G {
                1 => vzip1q_u8(a, b),
                2 => vreinterpretq_u8_u16(vzip1q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b))),
                4 => vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b))),
                _ => vreinterpretq_u8_u64(vzip1q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b))),
            }
        }
    }

    #[inline(always)]
    unsafe fn zip_high<const G: usize>(a: Self, b: Self) -> Self {
        // SAFETY: the CPU has the instructions.
        unsafe {
            match G {
                1 => vzip2q_u8(a, b),
                2 => vreinterpretq_u8_u16(vzip2q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b))),
                4 => vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b))),
                _ => vreinterpretq_u8_u64(vzip2q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b))),
            }
        }
    }

    #[inline(always)]
    unsafe fn swap_bits<const S: i32>(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the CPU has the instructions.
        unsafe {
            match S {
                // Each bit of the first is kept where the mask has one, else taken from the other, moved to its place.
                1 => (
                    vbslq_u8(vdupq_n_u8(0x55), a, vshlq_n_u8::<1>(b)),
                    vbslq_u8(vdupq_n_u8(0xaa), b, vshrq_n_u8::<1>(a)),
                ),
                2 => (
                    vbslq_u8(vdupq_n_u8(0x33), a, vshlq_n_u8::<2>(b)),
                    vbslq_u8(vdupq_n_u8(0xcc), b, vshrq_n_u8::<2>(a)),
                ),
                _ => (vsliq_n_u8::<4>(a, b), vsriq_n_u8::<4>(b, a)),
            }
        }
    }
}
