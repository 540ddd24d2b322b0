//! One lane. SSSE3 rather than SSE2, for its byte permutation; CPUs without it are of before 2006.

use super::Kernel;
use super::lanes;
use crate::cpu;
use crate::filters::shuffle::ssse3 as bytes;
use std::arch::x86_64::__m128i;

pub(super) const KERNEL: Kernel = Kernel {
    name: "ssse3",
    is_available: cpu::has_ssse3,
    suits: || true,
    tile: 16,
    bitshuffle,
    bitunshuffle,
};

#[target_feature(enable = "ssse3")]
unsafe fn bitshuffle(typesize: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe { lanes::bitshuffle::<__m128i>(&bytes::KERNEL, typesize, src, dest) }
}

#[target_feature(enable = "ssse3")]
unsafe fn bitunshuffle(typesize: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe { lanes::bitunshuffle::<__m128i>(&bytes::KERNEL, typesize, stride, src, dest) }
}
