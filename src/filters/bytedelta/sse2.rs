//! SSE2, which every x86-64 CPU has: running sums 16 bytes at a time.
//!
//! With overlapping loads, each byte gets the sum of itself and the 3 bytes before it; two shifts add the sums that end
//! 4, 8 and 12 bytes earlier. What is missing then are the 4 running sums before the vector.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]

use super::{Kernel, generic};
use std::arch::x86_64::*;

pub(super) const KERNEL: Kernel = Kernel { name: "sse2", decode, ..generic::KERNEL };

#[target_feature(enable = "sse2")]
unsafe fn decode(src: &[u8], dest: &mut [u8]) {
    assert!(src.len() == dest.len());
    let len = src.len();
    let mut i = len.min(4);
    generic::decode_from(0, &src[..i], &mut dest[..i]);
    if i == 4 {
        let before = i32::from_le_bytes([dest[0], dest[1], dest[2], dest[3]]);
        // SAFETY: `4 <= i` and `i + 16 <= len`, the length of both slices, so the loads from up to 3 bytes before
        // `i` on and the store are inside.
        unsafe {
            let load = |at: usize| _mm_loadu_si128(src.as_ptr().add(at).cast());
            // The 4 sums before `i`, repeated. They wait only for themselves, so that the rounds overlap in time.
            let mut carry = _mm_set1_epi32(before);
            while i + 16 <= len {
                let x =
                    _mm_add_epi8(_mm_add_epi8(load(i), load(i - 1)), _mm_add_epi8(load(i - 2), load(i - 3)));
                let x = _mm_add_epi8(x, _mm_slli_si128::<4>(x));
                let x = _mm_add_epi8(x, _mm_slli_si128::<8>(x));
                _mm_storeu_si128(dest.as_mut_ptr().add(i).cast(), _mm_add_epi8(x, carry));
                carry = _mm_add_epi8(carry, _mm_shuffle_epi32::<0xff>(x));
                i += 16;
            }
        }
        generic::decode_from(dest[i - 1], &src[i..], &mut dest[i..]);
    }
}
