//! How far bytes agree with earlier ones: the length of matches, for encoders.

use super::mem::load64;
use crate::cpu::select;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use self::same_bytes_portable as same_bytes;

/// The end of the match of `end` with `end - distance`.
///
/// # Safety
///
/// `distance <= end <= limit <= src.len()`.
#[inline(always)]
pub(crate) unsafe fn extend_long(src: &[u8], mut end: usize, distance: usize, limit: usize) -> usize {
    while end + 64 <= limit {
        // SAFETY: `end + 64 <= limit`, and the candidate lies before.
        let low = unsafe { same_bytes(src, end, end - distance) };
        // SAFETY: the same.
        let high = unsafe { same_bytes(src, end + 32, end + 32 - distance) };
        let same = u64::from(high) << 32 | u64::from(low);
        if same != u64::MAX {
            return end + same.trailing_ones() as usize;
        }
        end += 64;
    }
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

/// [`extend_long`] where most matches end within sixteen bytes: where exactly, the CPU does not guess.
///
/// # Safety
///
/// As for [`extend_long`].
#[inline(always)]
pub(crate) unsafe fn extend(src: &[u8], end: usize, distance: usize, limit: usize) -> usize {
    if end + 16 > limit {
        // SAFETY: the caller's promise.
        return unsafe { extend_long(src, end, distance, limit) };
    }
    // SAFETY: `end + 16 <= limit`, and the candidate lies before.
    let differing = |at: usize| unsafe { load64(src, at) ^ load64(src, at - distance) };
    let (low, high) = (differing(end), differing(end + 8));
    if low | high == 0 {
        // SAFETY: the same.
        return unsafe { extend_long(src, end + 16, distance, limit) };
    }
    let first = |differing: u64| differing.trailing_zeros() as usize / 8;
    end + select(low != 0, first(low), 8 + first(high))
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

/// Where the match of `at` with `at - distance` begins if the bytes before agree too, but not before `floor`. If `at`
/// is before `floor`, the match begins there.
///
/// # Safety
///
/// `distance <= at <= src.len()`.
#[inline(always)]
pub(crate) unsafe fn extend_back(src: &[u8], at: usize, distance: usize, floor: usize) -> usize {
    if at - distance >= 8 {
        // SAFETY: `8 <= at - distance <= at`.
        let differing = unsafe { load64(src, at - 8) ^ load64(src, at - 8 - distance) };
        if differing != 0 {
            // The first byte from the end. Leading zeros take longer to count on x86-64 before version 3.
            return (at - differing.swap_bytes().trailing_zeros() as usize / 8).max(floor);
        }
    }
    extend_far_back(src, at, distance, floor)
}

/// [`extend_back`] by any number of bytes.
#[cold]
#[inline(never)]
fn extend_far_back(src: &[u8], mut at: usize, distance: usize, floor: usize) -> usize {
    while at >= floor + 32 && at >= distance + 32 {
        // SAFETY: `at - distance` is at least 32.
        let same = unsafe { same_bytes(src, at - 32, at - 32 - distance) };
        if same != u32::MAX {
            return at - same.leading_ones() as usize;
        }
        at -= 32;
    }
    while at >= floor + 8 && at >= distance + 8 {
        // SAFETY: `at - distance` is at least 8.
        let differing = unsafe { load64(src, at - 8) ^ load64(src, at - 8 - distance) };
        at -= differing.leading_zeros() as usize / 8;
        if differing != 0 {
            return at;
        }
    }
    while at > floor && at > distance && src[at - 1] == src[at - 1 - distance] {
        at -= 1;
    }
    at.max(floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn matches_end_and_begin_where_bytes_differ(
            period in 1usize..40,
            len in 1usize..300,
            changes in prop::collection::vec(0usize..300, 0..3),
            (at, limit, floor) in (0usize..300, 0usize..300, 0usize..300),
        ) {
            let mut bytes: Vec<u8> = (0..len).map(|i| (i % period) as u8).collect(); // below 40
            changes.iter().for_each(|&at| if let Some(byte) = bytes.get_mut(at) { *byte ^= 0x80 });
            let (distance, limit) = (period.min(len), limit.min(len));
            let at = at.clamp(distance, len);
            let agrees = |at: usize| bytes[at] == bytes[at - distance];
            if at <= limit {
                let end = (at..limit).find(|&at| !agrees(at)).unwrap_or(limit);
                // SAFETY: `distance <= at <= limit <= len`.
                prop_assert_eq!(unsafe { extend_long(&bytes, at, distance, limit) }, end);
                // SAFETY: the same.
                prop_assert_eq!(unsafe { extend(&bytes, at, distance, limit) }, end);
            }
            let first = floor.max(distance);
            let start = (first..at).rev().find(|&at| !agrees(at)).map_or(first.min(at), |at| at + 1).max(floor);
            // SAFETY: `distance <= at <= len`.
            prop_assert_eq!(unsafe { extend_back(&bytes, at, distance, floor) }, start);
        }

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
