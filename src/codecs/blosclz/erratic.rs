//! Streams whose elements follow no pattern: how to tell, and a decoder for them that branches little.
//!
//! The usual decoder branches by the kind of each element. Where the CPU cannot foresee the kinds, most of its time goes
//! into wrong guesses; here it computes what it would guess, which takes longer than a right guess.

use super::{FAR_DISTANCE, LONG_MATCH, MAX_RUN};
use crate::codecs::matches::{SLACK, copy_long, copy_short};
use crate::codecs::place::{Source, Target, settled};
use crate::cpu::select;

/// Where a stream is looked at if so many bytes are wanted: there is not much to refer to in less output than this.
pub(super) const LOOK_AT: usize = 8 << 10;
pub(super) const LOOK_FROM: usize = 2 * LOOK_AT;
/// It must go on for this many bytes, too.
const WORTHWHILE: usize = 8 << 10;
/// Matches that are looked at, in no more than so many bytes: with fewer matches than that, literals take most of the time.
const MATCHES: usize = 128;
const LOOKED_AT: usize = 2 << 10;
/// Surprises among them that make a stream erratic.
const SURPRISES: usize = 45;

/// Longest match that is copied without a branch, and bytes that copying it writes.
const SHORT_COPY: usize = 16;
/// From this many bytes on, a match and the literals behind it can be read whole; matches with many extension bytes are
/// longer.
const IN_ROOM: usize = 8 + MAX_RUN;
/// From this many bytes on, a short match and the literals behind it can be written whole.
const OUT_ROOM: usize = SHORT_COPY + MAX_RUN;

/// Whether the kinds of the elements that begin here are hard to foresee.
pub(super) fn is_erratic(elements: &[u8]) -> bool {
    elements.len() >= WORTHWHILE
        && count_surprises(&elements[..LOOKED_AT]).is_some_and(|count| count >= SURPRISES)
}

/// How often the kind of one of the first MATCHES matches is not what it was after the last two kinds when these came before;
/// less how often it is copied in another way than the match before it, which [`decode_evenly`] has to guess as well. `None` if
/// there are fewer matches.
fn count_surprises(elements: &[u8]) -> Option<usize> {
    // The last kind that followed two kinds, of three bits each.
    let mut followed_by = [0; 64];
    let mut last_two = 0;
    let (mut was_short, mut surprises, mut guesses) = (true, 0, 0);
    let (mut at, mut matches) = (0, 0);
    while matches < MATCHES {
        let c = usize::from(*elements.get(at)?);
        if c < MAX_RUN {
            at += c + 2;
            continue;
        }
        at += 1;
        let mut len = (c >> 5) + 2;
        let is_long = len == LONG_MATCH;
        let mut is_more = is_long;
        while is_more {
            let more = *elements.get(at)?;
            at += 1;
            len += usize::from(more);
            is_more = more == 255;
        }
        let is_far = c & 31 == 31 && *elements.get(at)? == 255;
        at += if is_far { 3 } else { 1 };
        let is_before_literals = usize::from(*elements.get(at)?) < MAX_RUN;
        let kind = u8::from(is_long) | u8::from(is_far) << 1 | u8::from(is_before_literals) << 2;
        surprises += usize::from(std::mem::replace(&mut followed_by[last_two], kind) != kind);
        last_two = (last_two << 3 | usize::from(kind)) & 63;
        let is_short = len <= SHORT_COPY;
        guesses += usize::from(std::mem::replace(&mut was_short, is_short) != is_short);
        matches += 1;
    }
    Some(surprises.saturating_sub(guesses))
}

/// Decodes elements until an end is near. Takes and returns the positions of the next element and of its output.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
pub(super) unsafe fn decode_evenly<const AVX2: bool>(
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
        let word = u64::from_le_bytes(unsafe { ip.load() });
        let c = word as usize & 255;
        if c < MAX_RUN {
            // Rare: literals are copied with the match before them, unless there are more than MAX_RUN.
            // SAFETY: IN_ROOM and OUT_ROOM bytes are left.
            unsafe { op.store(ip.ahead(1).load::<MAX_RUN>()) };
            (ip, op) = (ip.ahead(c + 2), op.ahead(c + 1));
            continue;
        }
        // With or without one extension byte and two more for the distance, the match has two to five bytes. All that follows
        // waits for their number: so whether the distance is far is asked for either case at once, and the numbers come from
        // registers, as the compiler would compute them from the answers.
        let is_long = c >= 7 << 5;
        let short_bits = select(!word & 0xff1f == 0, settled(32), settled(16));
        let long_bits = select(!word & 0xff_001f == 0, settled(40), settled(24));
        let bits = select(is_long, long_bits, short_bits);
        let mut after = ip.ahead(bits / 8);
        let mut next = (word >> bits) as usize & 255;
        let tail = word >> select(is_long, 16, 8);
        let mut distance = distance(c, tail as usize & 255, swapped((tail >> 8) as u16));
        let extension = (word >> 8) as usize & 255;
        let mut len = (c >> 5) + 2 + select(is_long, extension, 0);
        if len <= SHORT_COPY {
            if distance > op.since(out_start) {
                return None;
            }
            // SAFETY: the distance was just checked, and OUT_ROOM bytes are left. The CPU has AVX2 if `AVX2`.
            unsafe { copy_short::<AVX2>(op, distance) };
        } else {
            if extension == 255 {
                // SAFETY: `ip` is before `in_end`.
                let Some(found) = (unsafe { read_very_long(ip, in_end, out_len) }) else { break };
                (len, distance, after) = found;
                // SAFETY: IN_ROOM covers it.
                next = unsafe { after.byte() };
            }
            if distance > op.since(out_start) {
                return None;
            }
            if len + SLACK > out_len - op.since(out_start) {
                break;
            }
            // SAFETY: distance and length were just checked. The CPU has AVX2 if `AVX2`.
            unsafe { copy_long::<AVX2>(op, distance, len) };
        }
        op = op.ahead(len);
        // If there are no literals, this will be overwritten.
        // SAFETY: IN_ROOM covers them in `src`; in `dest`, OUT_ROOM or SLACK.
        unsafe { op.store(after.ahead(1).load::<MAX_RUN>()) };
        let is_run = next < MAX_RUN;
        ip = after.ahead(select(is_run, next + 2, 0));
        op = op.ahead(select(is_run, next + 1, 0));
    }
    Some((ip.since(in_start), op.since(out_start)))
}

/// The distance of a match whose first byte is `c`, with the byte `low`, and `far` if that is not all.
#[inline(always)]
fn distance(c: usize, low: usize, far: usize) -> usize {
    let near = (c & 31) << 8 | low;
    near + 1 + select(near == FAR_DISTANCE - 1, far, 0)
}

/// Two bytes as they are stored, the first one in the highest bits.
#[inline(always)]
fn swapped(two_bytes: u16) -> usize {
    usize::from(two_bytes.swap_bytes())
}

/// Reads the match at `ip`, whose first extension byte is 255: its length, its distance, and where the next element is. `None`
/// if `in_end` comes before, or the length is above `most`.
///
/// # Safety
///
/// `ip` is before `in_end`, which IN_ROOM bytes follow.
#[cold]
#[inline(never)]
unsafe fn read_very_long<'a>(
    ip: Source<'a>,
    in_end: Source<'a>,
    most: usize,
) -> Option<(usize, usize, Source<'a>)> {
    // SAFETY: the caller's promise.
    let c = unsafe { ip.byte() };
    let (mut at, mut len) = (ip.ahead(1), LONG_MATCH);
    loop {
        if at >= in_end || len > most {
            return None;
        }
        // SAFETY: `at` is before `in_end`.
        let more = unsafe { at.byte() };
        (at, len) = (at.ahead(1), len + more);
        if more != 255 {
            break;
        }
    }
    // SAFETY: `at` is not behind `in_end`, so IN_ROOM covers three bytes, here and below.
    let low = unsafe { at.byte() };
    // SAFETY: as above.
    let far = swapped(unsafe { at.ahead(1).two_bytes() } as u16);
    let is_far = c & 31 == 31 && low == 255;
    Some((len, distance(c, low, far), at.ahead(if is_far { 3 } else { 1 })))
}
