//! Copies of many bytes, and the one distance over which they are slow.
//!
//! C libraries and kernels copy a few KiB and more with a single instruction, `rep movsb`. Zen 3 and Zen 4 of AMD carry it
//! out at a twentieth of the usual speed if the destination is 1 to 31 bytes ahead of the source, both taken modulo 4096.
//! That is no rare case: large memory begins 16 bytes behind a page, and files are read from their start. Zen 5 is as fast
//! over these distances as over others, and there copies in pieces are slower.

use std::sync::atomic::{AtomicU8, Ordering};

/// Distances count modulo this.
const PAGE: usize = 4096;
/// From this distance on, copies are fast again.
pub(crate) const CLEAR: usize = 32;
/// From this many bytes on, copies are looked at.
pub(crate) const LONG: usize = 4096;
/// Copies of this many bytes are made in other ways than with that instruction.
const PIECE: usize = 2048;
/// And so are those of more than the cache of one core holds, where C libraries do better than with pieces.
const HUGE: usize = 1 << 20;

/// How far the address or position `to` is ahead of `from`, if that is one of the slow distances; else 0.
#[inline(always)]
pub(crate) fn slow_distance(from: usize, to: usize) -> usize {
    let ahead = to.wrapping_sub(from) % PAGE;
    if ahead < CLEAR { ahead } else { 0 }
}

/// Whether a copy is made in pieces.
#[inline(always)]
fn is_slow(src: *const u8, dst: *const u8, len: usize) -> bool {
    (LONG..HUGE).contains(&len) && slow_distance(src.addr(), dst.addr()) != 0 && are_distances_slow()
}

/// Copies `bytes` to `dest`, which is as long.
#[inline(always)]
pub(crate) fn copy(bytes: &[u8], dest: &mut [u8]) {
    if is_slow(bytes.as_ptr(), dest.as_ptr(), bytes.len()) {
        copy_in_pieces(bytes, dest);
    } else {
        dest.copy_from_slice(bytes);
    }
}

#[cold]
#[inline(never)]
fn copy_in_pieces(bytes: &[u8], dest: &mut [u8]) {
    assert_eq!(bytes.len(), dest.len());
    for (bytes, dest) in bytes.chunks(PIECE).zip(dest.chunks_mut(PIECE)) {
        dest.copy_from_slice(bytes);
    }
}

/// As [`copy`], of `len` bytes at `src` to `dst`.
///
/// # Safety
///
/// As [`copy_nonoverlapping`](std::ptr::copy_nonoverlapping).
#[inline(always)]
pub(crate) unsafe fn copy_raw(src: *const u8, dst: *mut u8, len: usize) {
    if !is_slow(src, dst, len) {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(src, dst, len) };
    }
    // SAFETY: the same.
    unsafe { copy_raw_in_pieces(src, dst, len) };
}

#[cold]
#[inline(never)]
unsafe fn copy_raw_in_pieces(src: *const u8, dst: *mut u8, len: usize) {
    for at in (0..len).step_by(PIECE) {
        // SAFETY: the promise to `copy_raw`, for a part.
        unsafe { std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), PIECE.min(len - at)) };
    }
}

/// Whether this is one of the processors that the module is about. Others need not go out of the way of slow distances.
#[inline]
pub(crate) fn are_distances_slow() -> bool {
    const UNKNOWN: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let slow = crate::cpu::is_zen_3_or_4();
            KNOWN.store(u8::from(slow), Ordering::Relaxed);
            slow
        }
        known => known != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_up_to_31_bytes_ahead_are_slow() {
        let slow: Vec<usize> = (0..3 * PAGE).filter(|&to| slow_distance(PAGE + 100, to) != 0).collect();
        let ahead = (0..3).flat_map(|page| (1..CLEAR).map(move |ahead| page * PAGE + 100 + ahead));
        assert_eq!(slow, ahead.collect::<Vec<_>>());
        assert_eq!((slow_distance(100, 116), slow_distance(4095, 0), slow_distance(16, 0)), (16, 1, 0));
    }

    #[test]
    fn bytes_are_copied_over_any_distance() {
        let src: Vec<u8> = (0..40_000u32).map(|i| (i % 251).to_le_bytes()[0]).collect();
        let untouched = vec![0xEE; 50_000];
        let mut room = untouched.clone();
        let start = src.as_ptr().addr().wrapping_sub(room.as_ptr().addr()) % PAGE;
        for ahead in [0, 1, 16, 31, 32, 100] {
            for len in [0, 1, LONG - 1, LONG, LONG + 1, 3 * PIECE, 10 * PIECE + 7] {
                for way in 0..4 {
                    let at = start + ahead;
                    room.copy_from_slice(&untouched);
                    let (src, dest) = (&src[..len], &mut room[at..at + len]);
                    match way {
                        0 => copy(src, dest),
                        1 => copy_in_pieces(src, dest),
                        // SAFETY: both are as long, and different buffers; here and below.
                        2 => unsafe { copy_raw(src.as_ptr(), dest.as_mut_ptr(), len) },
                        // SAFETY: the same.
                        _ => unsafe { copy_raw_in_pieces(src.as_ptr(), dest.as_mut_ptr(), len) },
                    }
                    assert_eq!(room[at..at + len], src[..len]);
                    assert_eq!(room[..at], untouched[..at]);
                    assert_eq!(room[at + len..], untouched[at + len..]);
                }
            }
        }
    }
}
