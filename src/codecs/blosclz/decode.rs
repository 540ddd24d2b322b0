//! The decoder: a fast loop while both buffers have room for whole vectors, and a careful one for the rest.

use super::mem::{copy, copy_inside, load8, load64, load128, store};
use super::{FAR_DISTANCE, LONG_MATCH, MAX_RUN};
use crate::error::{Error, ErrorKind, Result};

/// Bytes that the fast loop may write past the end of what an element yields.
const OUT_SLACK: usize = 64;
/// Bytes that an element without many extension bytes may read, including what a copy reads past a literal run.
const IN_SLACK: usize = MAX_RUN + 1;
/// Distances below this one are within reach of stores that have not got to the cache yet.
const CLOSE: usize = 128;
/// Length from which calling the memory functions of the C library pays.
const VERY_LONG: usize = 512;

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
            unsafe { copy_short_match(dest, op, distance) };
        } else {
            if len >= VERY_LONG.min(dest.len() - OUT_SLACK - op) {
                // The careful loop copies it, or finds it too long.
                return Some((start, op));
            }
            // SAFETY: `distance <= op` and `op + len + OUT_SLACK < dest.len()`, both checked just above.
            unsafe { copy_match::<AVX2>(dest, op, distance, len) };
        }
        op += len;
    }
    Some((ip, op))
}

/// Copies eight bytes, as of a match, from `distance` bytes back to `op`.
///
/// # Safety
///
/// `1 <= distance <= op` and `op + 8 <= dest.len()`.
#[inline(always)]
unsafe fn copy_short_match(dest: &mut [u8], op: usize, distance: usize) {
    /// Multiplying by the entry for `d` repeats the `d` lowest bytes.
    const REPEAT: [u64; 8] = [
        0,
        0x0101_0101_0101_0101,
        0x0001_0001_0001_0001,
        0x0001_0000_0100_0001,
        0x0000_0001_0000_0001,
        0x0000_0100_0000_0001,
        0x0001_0000_0000_0001,
        0x0100_0000_0000_0001,
    ];
    if distance >= 8 {
        // SAFETY: the caller's promise; the source lies before `op`.
        unsafe { copy_inside::<8>(dest, op - distance, op) };
    } else {
        // SAFETY: `op - distance + 8 <= op + 8`.
        let pattern = unsafe { load64(dest, op - distance) } & ((1 << (8 * distance)) - 1);
        // SAFETY: the caller's promise.
        unsafe { store(dest, op, pattern.wrapping_mul(REPEAT[distance]).to_le_bytes()) };
    }
}

/// Copies `len` bytes from `distance` bytes back to `op`. May write up to OUT_SLACK bytes more.
///
/// # Safety
///
/// `1 <= distance <= op` and `op + len + OUT_SLACK <= dest.len()`. If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn copy_match<const AVX2: bool>(dest: &mut [u8], op: usize, mut distance: usize, len: usize) {
    let end = op + len;
    let mut to = op;
    if distance > 16 {
        if distance < 32 {
            // SAFETY: `to < end`, so `to + 32` is within the slack; both sources lie before what they are copied to.
            unsafe { copy_inside::<16>(dest, to - distance, to) };
            // SAFETY: the same.
            unsafe { copy_inside::<16>(dest, to + 16 - distance, to + 16) };
            to += 32;
            if to >= end {
                return;
            }
            distance *= 2;
        }
        if distance < CLOSE {
            // Loading what was stored a moment ago in other pieces takes long, so copy from further and further back.
            while to + distance < end {
                let period_end = to + distance;
                while to < period_end {
                    // SAFETY: `to < end`, so `to + 32` is within the slack; the source lies before it.
                    unsafe { copy_inside::<32>(dest, to - distance, to) };
                    to += 32;
                }
                // Now at least this many bytes back, all consists of periods.
                distance *= 2;
            }
        }
        while to < end {
            // SAFETY: as above.
            unsafe { copy_inside::<32>(dest, to - distance, to) };
            to += 32;
        }
        return;
    }
    // SAFETY: `op - distance + 16 <= op + 16`, which is within the slack. The CPU has AVX2 if `AVX2`.
    let pattern = unsafe { repeat::<AVX2>(load128(dest, op - distance), distance) };
    let step = usize::from(WHOLE_PERIODS[distance]);
    if step == 16 {
        let mut twice = [0; 32];
        twice[..16].copy_from_slice(&pattern.to_le_bytes());
        twice[16..].copy_from_slice(&pattern.to_le_bytes());
        loop {
            // SAFETY: `to < end`, so `to + 64` is within the slack.
            unsafe { store(dest, to, twice) };
            // SAFETY: the same.
            unsafe { store(dest, to + 32, twice) };
            to += 64;
            if to >= end {
                return;
            }
        }
    }
    loop {
        // SAFETY: `to < end`, so `to + 16` is within the slack, and so is the next one, at most 15 further.
        unsafe { store(dest, to, pattern.to_le_bytes()) };
        // SAFETY: the same.
        unsafe { store(dest, to + step, pattern.to_le_bytes()) };
        to += 2 * step;
        if to >= end {
            return;
        }
    }
}

/// The largest multiple of the index that is at most 16.
const WHOLE_PERIODS: [u8; 17] = [0, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15, 16];

/// Sixteen bytes that repeat the first `period` bytes of `bytes`, for a period of 1 to 16.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn repeat<const AVX2: bool>(bytes: u128, period: usize) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::{__m128i, _mm_shuffle_epi8};
        // SAFETY: both types are sixteen bytes without invalid values.
        let bytes = unsafe { std::mem::transmute::<u128, __m128i>(bytes) };
        // SAFETY: as above.
        let order = unsafe { std::mem::transmute::<[u8; 16], __m128i>(ORDERS[period]) };
        // SAFETY: a CPU with AVX2 has SSSE3.
        let repeated = unsafe { _mm_shuffle_epi8(bytes, order) };
        // SAFETY: as above.
        return unsafe { std::mem::transmute::<__m128i, u128>(repeated) };
    }
    if period == 16 {
        return bytes;
    }
    let mut bits = 8 * period;
    let mut pattern = bytes & ((1 << bits) - 1);
    while bits < 128 {
        pattern |= pattern << bits;
        bits *= 2;
    }
    pattern
}

/// For each period, which byte goes where when it is repeated.
#[cfg(target_arch = "x86_64")]
static ORDERS: [[u8; 16]; 17] = {
    let mut orders = [[0; 16]; 17];
    let mut period = 1;
    while period <= 16 {
        let mut i = 0;
        while i < 16 {
            orders[period][i] = (i % period) as u8;
            i += 1;
        }
        period += 1;
    }
    orders
};

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
        copy_match_exactly(dest, op, distance, len);
        op += len;
        if len >= VERY_LONG {
            break;
        }
    }
    Some((ip, op))
}

/// Copies `len` bytes from `distance` bytes back to `op`, and nothing beyond.
fn copy_match_exactly(dest: &mut [u8], op: usize, distance: usize, len: usize) {
    assert!((1..=op).contains(&distance) && len <= dest.len() - op);
    if distance == 1 {
        let byte = dest[op - 1];
        dest[op..op + len].fill(byte);
        return;
    }
    let mut done = 0;
    if distance < VERY_LONG / 4 {
        // The start of a pattern, so that it is not copied in tiny pieces.
        done = len.min(VERY_LONG - OUT_SLACK).min((dest.len() - op).saturating_sub(OUT_SLACK));
        if done > 0 {
            // SAFETY: `distance` is asserted above, and `done` leaves OUT_SLACK bytes.
            unsafe { copy_match::<false>(dest, op, distance, done) };
        }
    }
    while done < len {
        // Everything so far consists of periods of `distance` bytes, so a multiple of it leads to the same bytes.
        let back = (done / distance + 1) * distance;
        let n = back.min(len - done);
        let to = op + done;
        dest.copy_within(to - back..to - back + n, to);
        done += n;
    }
}
