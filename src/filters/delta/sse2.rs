//! The running XOR, 16 bytes at a time: SSE2, which all x86-64 has.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]

use std::arch::x86_64::*;

/// The running XOR of words of `W` (1, 2, 4 or 8) bytes, as far as whole vectors go; returns how many bytes that is.
pub(super) fn running_xor<const W: usize>(src: &[u8], dest: &mut [u8]) -> usize {
    // SAFETY: SSE2 is part of x86-64.
    let mut last = unsafe { _mm_setzero_si128() }; // the last word of the output so far, repeated
    let whole = src.len().min(dest.len()) / 16 * 16;
    for (src, dest) in src[..whole].chunks_exact(16).zip(dest[..whole].chunks_exact_mut(16)) {
        // SAFETY: both have 16 bytes; SSE2 is part of x86-64.
        unsafe {
            let x = xor_of_those_before::<W>(_mm_loadu_si128(src.as_ptr().cast()));
            _mm_storeu_si128(dest.as_mut_ptr().cast(), _mm_xor_si128(x, last));
            // It waits only for itself, so that the vectors overlap in time.
            last = _mm_xor_si128(last, repeat_last::<W>(x));
        }
    }
    whole
}

/// Each word XOR all words before it.
#[inline(always)]
fn xor_of_those_before<const W: usize>(mut x: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        if W <= 1 {
            x = _mm_xor_si128(x, _mm_slli_si128::<1>(x));
        }
        if W <= 2 {
            x = _mm_xor_si128(x, _mm_slli_si128::<2>(x));
        }
        if W <= 4 {
            x = _mm_xor_si128(x, _mm_slli_si128::<4>(x));
        }
        _mm_xor_si128(x, _mm_slli_si128::<8>(x))
    }
}

/// The last word in all places.
#[inline(always)]
fn repeat_last<const W: usize>(mut x: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        if W <= 1 {
            x = _mm_unpackhi_epi8(x, x);
        }
        if W <= 2 {
            x = _mm_shufflehi_epi16::<0xff>(x);
        }
        if W <= 4 { _mm_shuffle_epi32::<0xff>(x) } else { _mm_unpackhi_epi64(x, x) }
    }
}
