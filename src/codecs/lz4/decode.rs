//! A decoder that stops early: a fast loop while both buffers have room for whole vectors, and a careful one for the rest.
//!
//! The reference implementation can stop early too, but then copies the last match byte by byte, however long it is.
//! Whole streams are its business: at short sequences it is faster by a tenth.
//!
//! A stream consists of sequences: a token with two lengths of four bits, more bytes of the first length if it is 15,
//! that many literals, a distance of two bytes, and more bytes of the second length if it is 15. That length and 4 more
//! bytes are copied from earlier output. The last sequence ends with its literals, and no other may end near the end of
//! stream or output; what the reference decoder refuses for that is refused here too.

use super::decompress;
use crate::codecs::matches::{OUT_SLACK, VERY_LONG, copy_exactly, copy_long};
use crate::codecs::mem::{copy, copy_inside, load8, load16};
use crate::error::{Error, ErrorKind, Result};

/// A length of this much goes on in further bytes.
const MORE: usize = 15;
/// Length of the shortest match.
const MIN_MATCH: usize = 4;
/// Literals that all but the last sequence leave to come, at least, to the end of the output.
const LITERALS_END: usize = 12;
/// Bytes of output that come behind every match.
const MATCH_END: usize = 5;
/// Bytes of input that come behind the literals of all but the last sequence.
const INPUT_END: usize = 8;
/// Bytes that the fast loop reads past a token without looking at the end of the input: short literals and a distance.
const IN_SLACK: usize = 32;

/// Decompresses at least the first `wanted` bytes of the stream `src`, which holds `dest.len()` bytes in all, to the
/// front of `dest`. What follows there is arbitrary afterwards.
///
/// # Errors
///
/// `Data` if the stream is found to be damaged before the wanted bytes are complete.
pub(crate) fn decompress_prefix(src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
    if wanted > dest.len() - dest.len() / 8 {
        return decompress(src, dest);
    }
    decompress_own(src, wanted, dest)
}

/// [`decompress_prefix`] with code of our own, whatever `wanted` is.
pub(super) fn decompress_own(src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_avx2() {
        // SAFETY: the CPU was just asked for AVX2 and BMI2.
        return check(unsafe { decode_avx2(src, dest, wanted) });
    }
    check(decode::<false>(src, dest, wanted))
}

/// [`decompress_own`] with the instructions that every CPU has.
#[cfg(test)]
pub(super) fn decompress_portably(src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
    check(decode::<false>(src, dest, wanted))
}

fn check(decoded: Option<()>) -> Result<()> {
    decoded.ok_or(Error::new(ErrorKind::Data, "damaged LZ4 stream"))
}

/// [`decode`], compiled for 32-byte registers and byte permutations.
///
/// # Safety
///
/// The CPU has AVX2 and BMI2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
unsafe fn decode_avx2(src: &[u8], dest: &mut [u8], stop: usize) -> Option<()> {
    decode::<true>(src, dest, stop)
}

/// Decodes `src` into `dest` until `stop` bytes are there. `AVX2` says that the CPU has it.
#[inline(always)]
fn decode<const AVX2: bool>(src: &[u8], dest: &mut [u8], stop: usize) -> Option<()> {
    let (mut ip, mut op) = (0, 0);
    // The position is `src.len()` only behind the last sequence.
    while ip < src.len() && op < stop {
        (ip, op) = decode_fast::<AVX2>(src, dest, ip, op, stop)?;
        (ip, op) = decode_careful(src, dest, ip, op, stop)?;
    }
    let whole = ip == src.len() && op == dest.len();
    (whole || (stop < dest.len() && op >= stop)).then_some(())
}

/// Decodes sequences while neither end is near, up to the first very long match. Takes and returns the positions of the
/// next sequence and of its output.
#[inline(always)]
fn decode_fast<const AVX2: bool>(
    src: &[u8],
    dest: &mut [u8],
    mut ip: usize,
    mut op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    let in_end = src.len().saturating_sub(IN_SLACK);
    let out_end = dest.len().saturating_sub(OUT_SLACK).min(stop);
    while ip < in_end && op < out_end {
        let start = (ip, op);
        // SAFETY: `ip < in_end`.
        let token = usize::from(unsafe { load8(src, ip) });
        ip += 1;
        let mut literals = token >> 4;
        if literals < MORE {
            // SAFETY: at least IN_SLACK bytes follow the token, and OUT_SLACK bytes `op`.
            unsafe { copy::<16>(src, ip, dest, op) };
        } else {
            literals = unbounded_length(src, &mut ip, in_end)?;
            if literals >= in_end.saturating_sub(ip) || literals >= out_end - op {
                return Some(start);
            }
            // SAFETY: IN_SLACK and OUT_SLACK bytes follow the literals.
            unsafe { copy_literals(src, ip, dest, op, literals) };
        }
        ip += literals;
        op += literals;
        // SAFETY: `ip` is before `in_end`, or at most 15 bytes behind it.
        let distance = usize::from(unsafe { load16(src, ip) });
        ip += 2;
        if distance.wrapping_sub(1) >= op {
            return None;
        }
        let mut len = (token & 15) + MIN_MATCH;
        if len < MORE + MIN_MATCH && distance >= 8 {
            // At most 18 bytes.
            let from = op - distance;
            if distance >= 16 {
                // SAFETY: `distance <= op`. There were OUT_SLACK bytes before the literals, if these are few, or there
                // are still; so there are 18 now.
                unsafe { copy_inside::<16>(dest, from, op) };
            } else {
                // SAFETY: the same.
                unsafe { copy_inside::<8>(dest, from, op) };
                // SAFETY: the same.
                unsafe { copy_inside::<8>(dest, from + 8, op + 8) };
            }
            // SAFETY: the same.
            unsafe { copy_inside::<2>(dest, from + 16, op + 16) };
            op += len;
            continue;
        }
        if len == MORE + MIN_MATCH {
            if ip >= in_end {
                return Some(start);
            }
            len = MIN_MATCH + unbounded_length(src, &mut ip, in_end)?;
        }
        if len >= VERY_LONG || op + len + OUT_SLACK > dest.len() {
            return Some(start);
        }
        // SAFETY: `distance <= op`; OUT_SLACK bytes follow the match. The CPU has AVX2 if `AVX2`.
        unsafe { copy_long::<AVX2>(dest, op, distance, len) };
        op += len;
    }
    Some((ip, op))
}

/// Copies `len` bytes, and up to 31 more.
///
/// # Safety
///
/// `from + len + 32 <= src.len()` and `to + len + 32 <= dest.len()`.
#[inline(always)]
unsafe fn copy_literals(src: &[u8], from: usize, dest: &mut [u8], to: usize, len: usize) {
    if len >= VERY_LONG {
        dest[to..to + len].copy_from_slice(&src[from..from + len]);
        return;
    }
    let mut done = 0;
    while done < len {
        // SAFETY: `done < len`, and 32 bytes follow on both sides.
        unsafe { copy::<32>(src, from + done, dest, to + done) };
        done += 32;
    }
}

/// A length of 15 and what the bytes at `ip` add to it. What is past `in_end` is not read; the answer is too large then.
#[inline(always)]
fn unbounded_length(src: &[u8], ip: &mut usize, in_end: usize) -> Option<usize> {
    let mut len = MORE;
    loop {
        let more = *src.get(*ip)?;
        *ip += 1;
        len += usize::from(more);
        if more != 255 {
            return Some(len);
        }
        if *ip >= in_end {
            return Some(usize::MAX >> 1);
        }
    }
}

/// Decodes sequences with all checks, to the end of the stream or of the first very long match. Takes and returns the
/// positions of the next sequence and of its output.
#[inline(never)]
fn decode_careful(
    src: &[u8],
    dest: &mut [u8],
    mut ip: usize,
    mut op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    while ip < src.len() && op < stop {
        let token = usize::from(src[ip]);
        ip += 1;
        let literals = read_length(src, &mut ip, token >> 4, dest.len() - op)?;
        let bytes = src.get(ip..ip + literals)?;
        ip += literals;
        dest.get_mut(op..op + literals)?.copy_from_slice(bytes);
        op += literals;
        if op + LITERALS_END > dest.len() || ip + INPUT_END > src.len() {
            // Only the last sequence is that near to an end.
            return (ip == src.len()).then_some((ip, op));
        }
        let distance = usize::from(src[ip]) | usize::from(src[ip + 1]) << 8;
        ip += 2;
        let left = dest.len() - op;
        let len = MIN_MATCH + read_length(src, &mut ip, token & 15, left)?;
        if !(1..=op).contains(&distance) || len + MATCH_END > left {
            return None;
        }
        copy_exactly(dest, op, distance, len);
        op += len;
        if len >= VERY_LONG {
            break;
        }
    }
    Some((ip, op))
}

/// A length that begins with `first`; `None` if it is cut off or exceeds `max`.
fn read_length(src: &[u8], ip: &mut usize, first: usize, max: usize) -> Option<usize> {
    let mut len = first;
    if first == MORE {
        loop {
            let more = *src.get(*ip)?;
            *ip += 1;
            len += usize::from(more);
            if more != 255 {
                break;
            }
            if len > max {
                return None;
            }
        }
    }
    (len <= max).then_some(len)
}
