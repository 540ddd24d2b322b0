//! One lane: NEON, which every AArch64 CPU has.

use super::Kernel;
use super::lanes;
use crate::filters::shuffle::neon as bytes;
use std::arch::aarch64::uint8x16_t;

pub(super) const KERNEL: Kernel =
    Kernel { name: "neon", is_available: || true, suits: || true, tile: 16, bitshuffle, bitunshuffle };

#[target_feature(enable = "neon")]
unsafe fn bitshuffle(typesize: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the arguments.
    unsafe { lanes::bitshuffle::<uint8x16_t>(&bytes::KERNEL, typesize, src, dest) }
}

#[target_feature(enable = "neon")]
unsafe fn bitunshuffle(typesize: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the arguments.
    unsafe { lanes::bitunshuffle::<uint8x16_t>(&bytes::KERNEL, typesize, stride, src, dest) }
}
