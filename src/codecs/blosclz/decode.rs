//! The decoder: a fast loop while both buffers have room for whole vectors, and a careful one for the rest.

use super::{FAR_DISTANCE, LONG_MATCH, MAX_RUN};
use crate::codecs::matches::{OUT_SLACK, VERY_LONG, copy_exactly, copy_long, copy_short};
use crate::codecs::mem::{copy, load8};
use crate::error::{Error, ErrorKind, Result};

/// Bytes that an element without many extension bytes may read, including what a copy reads past a literal run.
const IN_SLACK: usize = MAX_RUN + 1;

/// Decompresses the stream `src` into `dest`, filling all of it.
///
/// # Errors
///
/// `Data` if `src` is not a valid stream of exactly `dest.len()` bytes or has bytes left over; `dest` may hold
/// anything then.
pub fn decompress(src: &[u8], dest: &mut [u8]) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_avx2() {
        // SAFETY: the CPU was just asked for AVX2 and BMI2.
        return check(unsafe { decode_avx2(src, dest, dest.len()) });
    }
    check(decode::<false>(src, dest, dest.len()))
}

/// Decompresses the first `wanted` bytes of the stream `src`, which holds `dest.len()` bytes in all, to the front of
/// `dest`. What follows there is arbitrary afterwards.
///
/// # Errors
///
/// `Data` if the stream is found to be damaged before the wanted bytes are complete.
pub fn decompress_prefix(src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_avx2() {
        // SAFETY: the CPU was just asked for AVX2 and BMI2.
        return check(unsafe { decode_avx2(src, dest, wanted) });
    }
    check(decode::<false>(src, dest, wanted))
}

/// [`decompress`] with the instructions that every CPU has.
#[cfg(test)]
pub(super) fn decompress_portably(src: &[u8], dest: &mut [u8]) -> Result<()> {
    check(decode::<false>(src, dest, dest.len()))
}

fn check(decoded: Option<()>) -> Result<()> {
    decoded.ok_or(Error::new(ErrorKind::Data, "damaged BloscLZ stream"))
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
    // The three upper bits of the first byte mean nothing.
    let first = usize::from(*src.first()? & 31) + 1;
    dest.get_mut(..first)?.copy_from_slice(src.get(1..=first)?);
    let (mut ip, mut op) = (1 + first, first);
    // Whenever the position is `src.len()`, the last element was a literal run.
    while ip < src.len() && op < stop {
        (ip, op) = decode_fast::<AVX2>(src, dest, ip, op, stop)?;
        (ip, op) = decode_careful(src, dest, ip, op, stop)?;
    }
    let whole = ip == src.len() && op == dest.len();
    (whole || (stop < dest.len() && op >= stop)).then_some(())
}

/// Decodes elements while neither end is near, up to the first very long match. Takes and returns the positions of
/// the next element and of its output.
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
        // SAFETY: `ip < in_end`.
        let c = usize::from(unsafe { load8(src, ip) });
        if c < MAX_RUN {
            // SAFETY: `ip + 1 + 32 <= src.len()` since `ip < in_end`, and `op + 32 <= dest.len()` since `op < out_end`.
            unsafe { copy::<MAX_RUN>(src, ip + 1, dest, op) };
            if c == MAX_RUN - 1 {
                // In noise all runs are of this length; with a constant step the CPU need not wait for `c`.
                ip += MAX_RUN + 1;
                op += MAX_RUN;
            } else {
                ip += c + 2;
                op += c + 1;
            }
            continue;
        }
        let start = ip;
        ip += 1;
        let mut len = (c >> 5) + 2;
        if len == LONG_MATCH {
            loop {
                // SAFETY: `ip < src.len()`: at first because of IN_SLACK, later because it is checked below.
                let more = usize::from(unsafe { load8(src, ip) });
                ip += 1;
                len += more;
                if more != 255 {
                    break;
                }
                if ip >= in_end || len > dest.len() {
                    return Some((start, op));
                }
            }
        }
        // At most one byte past `in_end`, so IN_SLACK covers the three bytes of a far distance and more.
        // SAFETY: `ip <= in_end + 1 < src.len() - 3`.
        let d = usize::from(unsafe { load8(src, ip) });
        ip += 1;
        let mut distance = ((c & 31) << 8) + d + 1;
        if distance == FAR_DISTANCE {
            // SAFETY: as above.
            let h = usize::from(unsafe { load8(src, ip) });
            // SAFETY: as above.
            let l = usize::from(unsafe { load8(src, ip + 1) });
            ip += 2;
            distance += 256 * h + l;
        }
        if distance > op {
            return None;
        }
        if len < LONG_MATCH {
            // SAFETY: `distance <= op`, and `op + 8 <= dest.len()` since `op < out_end`.
            unsafe { copy_short(dest, op, distance) };
        } else {
            if len >= VERY_LONG.min(dest.len() - OUT_SLACK - op) {
                // The careful loop copies it, or finds it too long.
                return Some((start, op));
            }
            // SAFETY: `distance <= op` and `op + len + OUT_SLACK < dest.len()`, both checked just above.
            unsafe { copy_long::<AVX2>(dest, op, distance, len) };
        }
        op += len;
    }
    Some((ip, op))
}

/// Decodes elements with all checks, to the end of the stream or of the first very long match. Takes and returns the
/// positions of the next element and of its output.
#[inline(never)]
fn decode_careful(
    src: &[u8],
    dest: &mut [u8],
    mut ip: usize,
    mut op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    while ip < src.len() && op < stop {
        let c = usize::from(src[ip]);
        ip += 1;
        if c < MAX_RUN {
            let len = c + 1;
            dest.get_mut(op..op + len)?.copy_from_slice(src.get(ip..ip + len)?);
            ip += len;
            op += len;
            continue;
        }
        let left = dest.len() - op;
        let mut len = (c >> 5) + 2;
        if len == LONG_MATCH {
            loop {
                let more = *src.get(ip)?;
                ip += 1;
                len += usize::from(more);
                if more != 255 {
                    break;
                }
                if len > left {
                    return None;
                }
            }
        }
        let mut distance = ((c & 31) << 8) + usize::from(*src.get(ip)?) + 1;
        ip += 1;
        if distance == FAR_DISTANCE {
            distance += 256 * usize::from(*src.get(ip)?) + usize::from(*src.get(ip + 1)?);
            ip += 2;
        }
        // A match cannot be the last element, so something must be left of both input and output.
        if distance > op || len >= left || ip >= src.len() {
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
