//! The decoder: a fast loop while both buffers have room for an element of the usual size, or another one if the stream
//! is erratic or one of items, and a careful one for the rest.

use super::erratic::{Habit, JUDGED_AT, MIN_WANTED, decode_erratic, habit};
use super::{FAR_DISTANCE, LONG_MATCH, MAX_RUN};
use crate::codecs::matches::{
    SLACK, copy_few_literals, copy_long, copy_rest_of_item, copy_safely, copy_short, is_rest_of_item,
};
use crate::codecs::place::{Source, Target};
use crate::error::{Error, ErrorKind, Result};

/// From this many bytes on, a literal run can be read whole; an element without many extension bytes is shorter.
const IN_ROOM: usize = 1 + MAX_RUN;
/// From this many bytes on, a literal run can be written whole; short matches write less.
const OUT_ROOM: usize = MAX_RUN;

/// Decompresses the stream `src` into `dest`, filling all of it.
///
/// # Errors
///
/// `Data` if `src` is not a valid stream of exactly `dest.len()` bytes or has bytes left over; `dest` may hold
/// anything then.
pub fn decompress(src: &[u8], dest: &mut [u8]) -> Result<()> {
    decompress_prefix(src, dest.len(), dest)
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
        return check(unsafe { decode_avx2::<false>(src, dest, wanted) });
    }
    // SAFETY: no AVX2 is asked for.
    check(unsafe { decode::<false, false>(src, dest, wanted) })
}

/// [`decompress`] with the instructions that every CPU has.
#[cfg(test)]
pub(super) fn decompress_portably(src: &[u8], dest: &mut [u8]) -> Result<()> {
    // SAFETY: no AVX2 is asked for.
    check(unsafe { decode::<false, false>(src, dest, dest.len()) })
}

/// [`decompress`] as if `src` were erratic, with AVX2 if so wanted and if the CPU has it.
#[cfg(test)]
pub(super) fn decompress_as_erratic(src: &[u8], dest: &mut [u8], _avx2: bool) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if _avx2 && crate::cpu::has_avx2() {
        // SAFETY: the CPU was just asked for AVX2 and BMI2.
        return check(unsafe { decode_avx2::<true>(src, dest, dest.len()) });
    }
    // SAFETY: no AVX2 is asked for.
    check(unsafe { decode::<false, true>(src, dest, dest.len()) })
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
unsafe fn decode_avx2<const ERRATIC: bool>(src: &[u8], dest: &mut [u8], stop: usize) -> Option<()> {
    // SAFETY: the caller's promise.
    unsafe { decode::<true, ERRATIC>(src, dest, stop) }
}

/// Decodes `src` into `dest` until `stop` bytes are there. If `ERRATIC`, `src` counts as erratic from the start.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode<const AVX2: bool, const ERRATIC: bool>(
    src: &[u8],
    dest: &mut [u8],
    stop: usize,
) -> Option<()> {
    // The three upper bits of the first byte mean nothing.
    let first = usize::from(*src.first()? & 31) + 1;
    copy_few_literals(src.get(1..=first)?, dest.get_mut(..first)?);
    let (mut ip, mut op) = (1 + first, first);
    if ERRATIC || stop >= MIN_WANTED {
        // SAFETY: the caller's promise.
        (ip, op) = unsafe { decode_by_habit::<AVX2, ERRATIC>(src, dest, ip, op, stop) }?;
    }
    // SAFETY: the caller's promise.
    (ip, op) = unsafe { decode_fast::<AVX2, false>(src, dest, ip, op, stop) }?;
    // SAFETY: the caller's promise.
    let (ip, op) = unsafe { decode_careful::<AVX2>(src, dest, ip, op, stop) }?;
    let whole = ip == src.len() && op == dest.len();
    (whole || (stop < dest.len() && op >= stop)).then_some(())
}

/// Decodes the beginning of a stream and, unless it is a usual one, what follows until an end is near. Takes and
/// returns the positions of the next element and of its output.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_by_habit<const AVX2: bool, const ERRATIC: bool>(
    src: &[u8],
    dest: &mut [u8],
    ip: usize,
    op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        // SAFETY: the CPU has AVX2, and BMI2, which is asked for with it.
        return unsafe { decode_by_habit_avx2::<ERRATIC>(src, dest, ip, op, stop) };
    }
    // SAFETY: no AVX2 is asked for.
    unsafe { decode_by_habit_inlined::<false, ERRATIC>(src, dest, ip, op, stop) }
}

/// [`decode_by_habit`], apart from what decodes short streams: they would have to save registers for it.
///
/// # Safety
///
/// The CPU has AVX2 and BMI2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
#[inline(never)]
unsafe fn decode_by_habit_avx2<const ERRATIC: bool>(
    src: &[u8],
    dest: &mut [u8],
    ip: usize,
    op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise.
    unsafe { decode_by_habit_inlined::<true, ERRATIC>(src, dest, ip, op, stop) }
}

/// See [`decode_by_habit`].
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_by_habit_inlined<const AVX2: bool, const ERRATIC: bool>(
    src: &[u8],
    dest: &mut [u8],
    mut ip: usize,
    mut op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    if !ERRATIC {
        // SAFETY: the caller's promise.
        (ip, op) = unsafe { decode_fast::<AVX2, false>(src, dest, ip, op, JUDGED_AT) }?;
        match habit::<AVX2>(&src[ip..]) {
            Habit::Usual => return Some((ip, op)),
            // SAFETY: the caller's promise.
            Habit::Items => return unsafe { decode_fast::<AVX2, true>(src, dest, ip, op, stop) },
            Habit::Erratic => {}
        }
    }
    // SAFETY: the caller's promise.
    unsafe { decode_erratic::<AVX2>(src, dest, ip, op, stop) }
}

/// Decodes elements until an end is near; if `ITEMS`, most of them are of items of 8 bytes. Takes and returns the
/// positions of the next element and of its output.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_fast<const AVX2: bool, const ITEMS: bool>(
    src: &[u8],
    dest: &mut [u8],
    ip: usize,
    op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    let (in_len, out_len) = (src.len(), dest.len());
    if in_len - ip <= IN_ROOM || out_len - op <= OUT_ROOM {
        return Some((ip, op));
    }
    let (in_start, out_start) = (Source::new(src), Target::new(dest));
    let in_end = in_start.ahead(in_len - IN_ROOM);
    let out_end = out_start.ahead(stop.min(out_len - OUT_ROOM));
    let (mut ip, mut op) = (in_start.ahead(ip), out_start.ahead(op));
    while ip < in_end && op < out_end {
        // SAFETY: `ip` is before `in_end`.
        let c = unsafe { ip.byte() };
        if c < MAX_RUN {
            // SAFETY: IN_ROOM and OUT_ROOM bytes are left.
            unsafe { op.store(ip.ahead(1).load::<MAX_RUN>()) };
            (ip, op) = if c == MAX_RUN - 1 {
                // In noise all runs are of this length; with a constant step the CPU need not wait for `c`.
                (ip.ahead(MAX_RUN + 1), op.ahead(MAX_RUN))
            } else {
                (ip.ahead(c + 2), op.ahead(c + 1))
            };
            continue;
        }
        let start = ip;
        let give_up = || Some((start.since(in_start), op.since(out_start)));
        ip = ip.ahead(1);
        let mut len = (c >> 5) + 2;
        if len == LONG_MATCH {
            loop {
                // SAFETY: IN_ROOM bytes were left at first, or more than that since they were last compared.
                let more = unsafe { ip.byte() };
                ip = ip.ahead(1);
                len += more;
                if more != 255 {
                    break;
                }
                if ip >= in_end || len > out_len {
                    return give_up();
                }
            }
        }
        // SAFETY: at most one byte past `in_end`, so IN_ROOM covers the three bytes of a far distance and more.
        let low = unsafe { ip.byte() };
        ip = ip.ahead(1);
        let mut distance = ((c & 31) << 8) + low + 1;
        if distance == FAR_DISTANCE {
            // SAFETY: as above.
            let high = unsafe { ip.byte() };
            // SAFETY: as above.
            let low = unsafe { ip.ahead(1).byte() };
            ip = ip.ahead(2);
            distance += 256 * high + low;
        }
        if distance > op.since(out_start) {
            return None;
        }
        if ITEMS && is_rest_of_item(distance, len) {
            // SAFETY: distance and length were checked, and OUT_ROOM bytes are left.
            unsafe { copy_rest_of_item(op, len) };
        } else if len < LONG_MATCH {
            // SAFETY: the distance was checked, and OUT_ROOM bytes are left. The CPU has AVX2 if `AVX2`.
            unsafe { copy_short::<AVX2>(op, distance) };
        } else {
            if len + SLACK > out_len - op.since(out_start) {
                return give_up();
            }
            // SAFETY: distance and length were just checked. The CPU has AVX2 if `AVX2`.
            unsafe { copy_long::<AVX2>(op, distance, len) };
        }
        op = op.ahead(len);
    }
    Some((ip.since(in_start), op.since(out_start)))
}

/// Decodes elements with all checks. Takes and returns the positions of the next element and of its output.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_careful<const AVX2: bool>(
    src: &[u8],
    dest: &mut [u8],
    mut ip: usize,
    mut op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    // Whenever the position is `src.len()`, the last element was a literal run.
    while ip < src.len() && op < stop {
        let c = usize::from(src[ip]);
        ip += 1;
        if c < MAX_RUN {
            let len = c + 1;
            copy_few_literals(src.get(ip..ip + len)?, dest.get_mut(op..op + len)?);
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
        // SAFETY: what is before `op` was written. The CPU has AVX2 if `AVX2`.
        unsafe { copy_safely::<AVX2>(dest, op, distance, len) };
        op += len;
    }
    Some((ip, op))
}
