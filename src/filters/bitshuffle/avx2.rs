//! Two lanes: AVX2.

use super::Kernel;
use super::lanes;
use crate::cpu;
use crate::filters::shuffle::avx2 as bytes;
use std::arch::x86_64::__m256i;

pub(super) const KERNEL: Kernel =
    Kernel { name: "avx2", is_available: cpu::has_avx2, suits: || true, tile: 16, bitshuffle, bitunshuffle };

#[target_feature(enable = "avx2")]
pub(super) unsafe fn bitshuffle(typesize: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe {
        if (2..=16).contains(&typesize) && src.len() > lanes::LONG {
            bitshuffle_long(typesize, src, dest);
        } else {
            lanes::bitshuffle::<__m256i>(&bytes::KERNEL, typesize, src, dest);
        }
    }
}

#[inline(never)] // the stack of the other is small
#[target_feature(enable = "avx2")]
unsafe fn bitshuffle_long(typesize: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe { lanes::bitshuffle_long::<__m256i>(typesize, src, dest) }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn bitunshuffle(typesize: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe { lanes::bitunshuffle::<__m256i>(&bytes::KERNEL, typesize, stride, src, dest) }
}
