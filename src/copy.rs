//! Copies of many bytes, and what some processors make slow.
//!
//! C libraries and kernels copy a few KiB and more with a single instruction, `rep movsb`. Zen 3 and Zen 4 of AMD carry
//! it out at a twentieth of the usual speed if, modulo 4096, the destination is 1 to 31 bytes ahead of the source. That
//! is no rare case: large memory begins 16 bytes after a page, and files are read from their start. There
//! such copies are made in small pieces. Zen 5 is as fast over these distances as over others, and small pieces are
//! slower.
//!
//! From the size of a core's cache on, C libraries take other instructions on these processors. On Zen 5, `rep movsb`
//! is 1.2 to 1.3 times as fast all the same, for 1 MiB as for 128 MiB; so large copies are made in large pieces there.

use crate::cpu::{ZEN_3_AND_4, ZEN_5, amd_family};

/// Distances count modulo this.
const PAGE: usize = 4096;
/// From this distance on, copies are fast again.
pub(crate) const CLEAR: usize = 32;
/// From this many bytes on, copies are looked at.
pub(crate) const LONG: usize = 4096;
/// Pieces of a copy over a slow distance: so short that they are made without that instruction.
const SMALL_PIECE: usize = 2048;
/// From about this many bytes on, C libraries leave that instruction aside.
const HUGE: usize = 1 << 20;
/// Pieces of such copies: short enough for it.
const LARGE_PIECE: usize = HUGE / 2;

/// How far the address or position `to` is ahead of `from`, if that is one of the slow distances; else 0.
#[inline(always)]
pub(crate) fn slow_distance(from: usize, to: usize) -> usize {
    let ahead = to.wrapping_sub(from) % PAGE;
    if ahead < CLEAR { ahead } else { 0 }
}

/// The pieces in which a copy is made, in bytes; `None` for a copy as a whole.
#[inline(always)]
fn piece(src: *const u8, dst: *const u8, len: usize) -> Option<usize> {
    if len < LONG {
        return None;
    }
    if len >= HUGE {
        return (amd_family() == ZEN_5).then_some(LARGE_PIECE);
    }
    (slow_distance(src.addr(), dst.addr()) != 0 && are_distances_slow()).then_some(SMALL_PIECE)
}

/// Copies `bytes` to `dest`, which is as long.
#[inline(always)]
pub(crate) fn copy(bytes: &[u8], dest: &mut [u8]) {
    match piece(bytes.as_ptr(), dest.as_ptr(), bytes.len()) {
        None => dest.copy_from_slice(bytes),
        Some(piece) => copy_in_pieces(bytes, dest, piece),
    }
}

#[cold]
#[inline(never)]
fn copy_in_pieces(bytes: &[u8], dest: &mut [u8], piece: usize) {
    assert_eq!(bytes.len(), dest.len());
    for (bytes, dest) in bytes.chunks(piece).zip(dest.chunks_mut(piece)) {
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
    match piece(src, dst, len) {
        // SAFETY: the caller's promise.
        None => unsafe { std::ptr::copy_nonoverlapping(src, dst, len) },
        // SAFETY: the same.
        Some(piece) => unsafe { copy_raw_in_pieces(src, dst, len, piece) },
    }
}

#[cold]
#[inline(never)]
unsafe fn copy_raw_in_pieces(src: *const u8, dst: *mut u8, len: usize, piece: usize) {
    for at in (0..len).step_by(piece) {
        // SAFETY: the promise to `copy_raw`, for a part.
        unsafe { std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), piece.min(len - at)) };
    }
}

/// Whether this is one of the processors on which some distances are slow. Others need not go out of the way of those.
#[inline]
pub(crate) fn are_distances_slow() -> bool {
    amd_family() == ZEN_3_AND_4
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
            for len in [0, 1, LONG - 1, LONG, LONG + 1, 3 * SMALL_PIECE, 10 * SMALL_PIECE + 7] {
                for way in 0..4 {
                    let at = start + ahead;
                    room.copy_from_slice(&untouched);
                    let (src, dest) = (&src[..len], &mut room[at..at + len]);
                    match way {
                        0 => copy(src, dest),
                        1 => copy_in_pieces(src, dest, SMALL_PIECE),
                        // SAFETY: both are as long, and different buffers; here and below.
                        2 => unsafe { copy_raw(src.as_ptr(), dest.as_mut_ptr(), len) },
                        // SAFETY: the same.
                        _ => unsafe { copy_raw_in_pieces(src.as_ptr(), dest.as_mut_ptr(), len, SMALL_PIECE) },
                    }
                    assert_eq!(room[at..at + len], src[..len]);
                    assert_eq!(room[..at], untouched[..at]);
                    assert_eq!(room[at + len..], untouched[at + len..]);
                }
            }
        }
    }

    #[test]
    fn huge_copies_are_whole() {
        for len in [HUGE - 1, HUGE, HUGE + LARGE_PIECE, 2 * HUGE + 5] {
            let len = if cfg!(miri) { len / 256 } else { len };
            let src: Vec<u8> = (0..len).map(|i| (i % 251).to_le_bytes()[0]).collect();
            let (mut whole, mut pieces) = (vec![0; len], vec![0; len]);
            copy(&src, &mut whole);
            copy_in_pieces(&src, &mut pieces, LARGE_PIECE);
            assert!(whole == src && pieces == src);
        }
    }
}
