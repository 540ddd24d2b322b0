//! How far bytes agree with earlier ones: the length of matches, for encoders.

use super::mem::load64;
use std::num::NonZeroU64;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use self::same_bytes_portable as same_bytes;

/// The end of the match of `at` with `at - distance`; `differing` is the XOR of the first eight bytes of both.
///
/// # Safety
///
/// `distance <= at`, `at + 8 <= limit <= src.len()`.
#[inline(always)]
pub(crate) unsafe fn extend(src: &[u8], at: usize, distance: usize, differing: u64, limit: usize) -> usize {
    if let Some(differing) = NonZeroU64::new(differing) {
        return at + differing.trailing_zeros() as usize / 8;
    }
    // SAFETY: `at + 8 <= limit`.
    unsafe { extend_long(src, at + 8, distance, limit) }
}

/// The end of the match of `end` with `end - distance`.
///
/// # Safety
///
/// `distance <= end <= limit <= src.len()`.
#[inline(always)]
pub(crate) unsafe fn extend_long(src: &[u8], mut end: usize, distance: usize, limit: usize) -> usize {
    while end + 32 <= limit {
        // SAFETY: `end + 32 <= limit`, and the candidate lies before.
        let same = unsafe { same_bytes(src, end, end - distance) };
        if same != u32::MAX {
            return end + (!same).trailing_zeros() as usize;
        }
        end += 32;
    }
    if limit >= 32 + distance {
        // SAFETY: `limit <= src.len()`, and the candidate begins at 0 or later.
        let same = unsafe { same_bytes(src, limit - 32, limit - 32 - distance) };
        return end + (u64::from(same) >> (32 - (limit - end))).trailing_ones() as usize;
    }
    while end < limit && src[end] == src[end - distance] {
        end += 1;
    }
    end
}

/// Which of 32 bytes at `a` and `b` are the same, the first in the lowest bit.
///
/// # Safety
///
/// `a + 32` and `b + 32` are at most `src.len()`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn same_bytes(src: &[u8], a: usize, b: usize) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
    debug_assert!(a + 32 <= src.len() && b + 32 <= src.len());
    let half = |offset: usize| {
        // SAFETY: the caller guarantees 32 readable bytes at `a`.
        let a = unsafe { _mm_loadu_si128(src.as_ptr().add(a + offset).cast::<__m128i>()) };
        // SAFETY: the caller guarantees 32 readable bytes at `b`.
        let b = unsafe { _mm_loadu_si128(src.as_ptr().add(b + offset).cast::<__m128i>()) };
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) as u32 }
    };
    half(0) | half(16) << 16
}

/// [`same_bytes`] without vector instructions.
///
/// # Safety
///
/// `a + 32` and `b + 32` are at most `src.len()`.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
pub(crate) unsafe fn same_bytes_portable(src: &[u8], a: usize, b: usize) -> u32 {
    let mut same = 0;
    for offset in (0..32).step_by(8) {
        // SAFETY: the caller guarantees 32 readable bytes at both.
        let differing = unsafe { load64(src, a + offset) ^ load64(src, b + offset) };
        // The highest bit of each byte that is not zero, without carries between bytes; then one bit per byte.
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let nonzero = (((differing & LOW) + LOW) | differing) & !LOW;
        let bits = ((nonzero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
        same |= (!bits & 0xff) << offset;
    }
    same
}

/// Where the match of `at` with `at - distance` begins if the bytes before agree too: up to eight bytes earlier, but
/// not before `floor`. If `at` is before `floor`, the match begins there.
///
/// # Safety
///
/// `distance <= at` and `at + 8 <= src.len()`.
#[inline(always)]
pub(crate) unsafe fn extend_back(src: &[u8], at: usize, distance: usize, floor: usize) -> usize {
    if at - distance < 8 {
        return at.max(floor);
    }
    // SAFETY: `8 <= at - distance < at`.
    let differing = unsafe { load64(src, at - 8) ^ load64(src, at - 8 - distance) };
    (at - differing.leading_zeros() as usize / 8).max(floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_compared_alike_with_and_without_vectors(
            first in any::<[u8; 32]>(),
            changes in prop::collection::vec((0usize..32, prop::sample::select(&[0u8, 1, 0x7f, 0x80, 0xff])), 0..6),
        ) {
            let mut bytes = [first, first].concat();
            changes.iter().for_each(|&(at, byte)| bytes[32 + at] = byte);
            let expected = (0..32).fold(0, |mask, i| mask | u32::from(bytes[i] == bytes[32 + i]) << i);
            // SAFETY: there are 64 bytes.
            prop_assert_eq!(unsafe { same_bytes(&bytes, 0, 32) }, expected);
            // SAFETY: as above.
            prop_assert_eq!(unsafe { same_bytes_portable(&bytes, 0, 32) }, expected);
        }
    }
}
