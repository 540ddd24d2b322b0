//! NEON, which every AArch64 CPU has: running sums 16 bytes at a time.
//!
//! Four rounds add to each byte the sums that end 1, 2, 4 and 8 bytes before it; then the sum before the vector is
//! added to all. Only the last step waits for the vector before.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]

use super::{Kernel, generic};
use std::arch::aarch64::*;

pub(super) const KERNEL: Kernel = Kernel { name: "neon", decode, ..generic::KERNEL };

#[target_feature(enable = "neon")]
unsafe fn decode(src: &[u8], dest: &mut [u8]) {
    assert!(src.len() == dest.len());
    let mut i = 0;
    let mut last = 0;
    // SAFETY: the loop condition says that 16 bytes from `i` on exist in both slices.
    unsafe {
        let zero = vdupq_n_u8(0);
        let mut carry = zero;
        while i + 16 <= src.len() {
            let x = vld1q_u8(src.as_ptr().add(i));
            let x = vaddq_u8(x, vextq_u8::<15>(zero, x));
            let x = vaddq_u8(x, vextq_u8::<14>(zero, x));
            let x = vaddq_u8(x, vextq_u8::<12>(zero, x));
            let x = vaddq_u8(x, vextq_u8::<8>(zero, x));
            vst1q_u8(dest.as_mut_ptr().add(i), vaddq_u8(x, carry));
            carry = vaddq_u8(carry, vdupq_laneq_u8::<15>(x));
            i += 16;
        }
        if i > 0 {
            last = dest[i - 1];
        }
    }
    generic::decode_from(last, &src[i..], &mut dest[i..]);
}
