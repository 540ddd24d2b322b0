//! Streams whose elements follow no pattern: how to tell, and a decoder for them that branches little. Those whose
//! elements all follow one are told on the way.
//!
//! The usual decoder branches by the kind of each element. Where the CPU cannot foresee the kinds, most of its time
//! goes into wrong guesses; here it computes what it would guess, which takes longer than a right guess.

use super::{FAR_DISTANCE, LONG_MATCH, MAX_RUN};
use crate::codecs::matches::{SLACK, VECTOR, copy_long, copy_vector, fits_vector, is_rest_of_item};
use crate::codecs::place::{Source, Target, settled};
use crate::cpu::select;

/// The stream is judged when this many bytes are decoded: before, there is not much that matches could refer to.
pub(super) const JUDGED_AT: usize = 8 << 10;
/// Streams are judged only if at least this many bytes are wanted.
pub(super) const MIN_WANTED: usize = 2 * JUDGED_AT;
/// At least this many bytes of the stream must be left where it is judged.
const MIN_LEFT: usize = 8 << 10;
/// The number of matches that a stream is judged by.
const MATCHES: usize = 128;
/// The search for these matches ends after this many bytes of the stream.
const MOST_READ: usize = 2 << 10;
/// If fewer matches than this are found, literals take most of the time, and the stream is a usual one.
const ENOUGH_MATCHES: usize = 64;
/// A stream is erratic if there are at least this many surprises per hundred matches.
const SURPRISES: usize = 35;
/// A stream is one of items if at least this many of a hundred matches are rests of items.
const RESTS: usize = 90;

/// From this many bytes on, a match and the literals after it can be read whole; matches with many extension bytes are
/// longer.
const IN_ROOM: usize = 8 + MAX_RUN;
/// From this many bytes on, a short match and the literals after it can be written whole.
const OUT_ROOM: usize = VECTOR + MAX_RUN;

/// What the elements of a stream are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    Usual,
    /// Their kinds are hard to foresee.
    Erratic,
    /// Nearly all matches are the rests of items, see [`is_rest_of_item`].
    Items,
}

/// What the elements that begin here are like, for a decoder with or without AVX2.
#[inline(never)]
pub(super) fn habit<const AVX2: bool>(elements: &[u8]) -> Habit {
    let counts = if elements.len() < MIN_LEFT { None } else { count::<AVX2>(elements) };
    let Some(Counts { matches, surprises, rests }) = counts else { return Habit::Usual };
    if matches < ENOUGH_MATCHES {
        Habit::Usual
    } else if 100 * surprises >= SURPRISES * matches {
        Habit::Erratic
    } else if 100 * rests >= RESTS * matches {
        Habit::Items
    } else {
        Habit::Usual
    }
}

/// What was seen of the first elements.
struct Counts {
    matches: usize,
    /// How many of the usual decoder's branches for matches go another way than when the same two kinds of matches came
    /// before, less how many of [`decode_branchless`] do.
    surprises: usize,
    /// Matches that are the rest of an item.
    rests: usize,
}

/// Counts over the first matches. `None` if the stream ends before.
fn count<const AVX2: bool>(elements: &[u8]) -> Option<Counts> {
    /// Four bits for each match: the first three are its kind.
    const KIND: u8 = 7;
    const FITS_VECTOR: u8 = 8;
    // What the last match was that followed two kinds.
    let mut followed_by = [0; 64];
    let mut last_two = 0;
    let (mut surprises, mut guesses) = (0, 0);
    let (mut at, mut matches, mut rests) = (0, 0, 0);
    while at < MOST_READ && matches < MATCHES {
        let c = usize::from(*elements.get(at)?);
        at += 1;
        if c < MAX_RUN {
            at += c + 1;
            continue;
        }
        let mut len = (c >> 5) + 2;
        let is_long = len == LONG_MATCH;
        let mut is_more = is_long;
        while is_more {
            let more = *elements.get(at)?;
            at += 1;
            len = len.saturating_add(more.into());
            is_more = more == 255;
        }
        let near = near_distance(c, usize::from(*elements.get(at)?));
        let is_far = near == FAR_DISTANCE;
        at += if is_far { 3 } else { 1 };
        let is_before_literals = usize::from(*elements.get(at)?) < MAX_RUN;
        let mut this = u8::from(is_long) | u8::from(is_far) << 1 | u8::from(is_before_literals) << 2;
        if fits_vector::<AVX2>(near, len) {
            this |= FITS_VECTOR;
        }
        rests += usize::from(is_rest_of_item(near, len));
        let wrong = std::mem::replace(&mut followed_by[last_two], this) ^ this;
        surprises += (wrong & KIND).count_ones();
        guesses += (wrong & FITS_VECTOR).count_ones();
        last_two = (last_two << 3 | usize::from(this & KIND)) & 63;
        matches += 1;
    }
    Some(Counts { matches, surprises: surprises.saturating_sub(guesses) as usize, rests })
}

/// What the first byte of a match says.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Start {
    /// The length, less extension bytes.
    len: u8,
    /// 255 if there are extension bytes, else 0.
    extended: u8,
    /// Bits before the distance byte, if there is no more than one extension byte.
    bits: u8,
    /// The distance if that byte is 0.
    distance: u16,
}

/// By first byte; those below MAX_RUN are no matches.
static STARTS: [Start; 256] = {
    let mut starts = [Start { len: 0, extended: 0, bits: 0, distance: 0 }; 256];
    let mut c = MAX_RUN;
    while c < 256 {
        let len = (c >> 5) + 2;
        let (extended, bits) = if len == LONG_MATCH { (255, 16) } else { (0, 8) };
        starts[c] = Start { len: len as u8, extended, bits, distance: near_distance(c, 0) as u16 };
        c += 1;
    }
    starts
};

/// Decodes elements until an end is near, with hardly a branch. Takes and returns the positions of the next element and
/// of its output.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
pub(super) unsafe fn decode_erratic<const AVX2: bool>(
    src: &[u8],
    dest: &mut [u8],
    ip: usize,
    op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        // SAFETY: the CPU has AVX2, and what [`crate::cpu::has_avx2`] asks for beside it.
        return unsafe { decode_erratic_avx2(src, dest, ip, op, stop) };
    }
    // SAFETY: no AVX2 is asked for.
    unsafe { decode_branchless::<false>(src, dest, ip, op, stop) }
}

/// [`decode_branchless`], compiled for AVX2: by itself, as it needs all registers.
///
/// # Safety
///
/// The CPU has AVX2, BMI1 and BMI2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
#[inline(never)]
unsafe fn decode_erratic_avx2(
    src: &[u8],
    dest: &mut [u8],
    ip: usize,
    op: usize,
    stop: usize,
) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise.
    unsafe { decode_branchless::<true>(src, dest, ip, op, stop) }
}

/// See [`decode_erratic`].
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_branchless<const AVX2: bool>(
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
    let out_end = stop.min(out_len - OUT_ROOM);
    let (mut ip, mut op) = (in_start.ahead(ip), op);
    // With or without one extension byte and two more for the distance, a match has two to five bytes. These are the
    // sizes in bits; and if the bits of the masks are set in what begins with the match, its distance is far.
    let [short_near, short_far, long_near, long_far] = [16, 32, 24, 40].map(settled);
    let [short_mask, long_mask] = [0xff1f, 0xff_001f].map(|mask| settled(mask) as u64);
    while ip < in_end && op < out_end {
        let to = out_start.ahead(op);
        // SAFETY: `ip` is before `in_end`.
        let word = u64::from_le_bytes(unsafe { ip.load() });
        let c = word as usize & 255;
        if c < MAX_RUN {
            // Rare: literals are copied with the match before them, unless there are more than MAX_RUN.
            // SAFETY: IN_ROOM and OUT_ROOM bytes are left.
            unsafe { to.store(ip.ahead(1).load::<MAX_RUN>()) };
            (ip, op) = (ip.ahead(c + 2), op + c + 1);
            continue;
        }
        // All that follows waits for the number of bits: so whether the distance is far is asked for either case at
        // once. The rest is looked up, as CPUs can load more than they can compute.
        let short_bits = select(!word & short_mask == 0, short_far, short_near);
        let long_bits = select(!word & long_mask == 0, long_far, long_near);
        let bits = select(c >= 7 << 5, long_bits, short_bits);
        let mut after = ip.ahead(bits / 8);
        let mut next = (word >> bits) as usize & 255;
        let start = STARTS[c];
        let extension = (word >> 8) as u8;
        let mut len = usize::from(start.len) + usize::from(extension & start.extended);
        let near = usize::from(start.distance) + ((word >> start.bits) as usize & 255);
        // SAFETY: these are the last two bytes of the match.
        let far = FAR_DISTANCE + swapped(unsafe { ip.ahead(bits / 8 - 2).two_bytes() } as u16);
        let mut distance = select(near == FAR_DISTANCE, far, near);
        if fits_vector::<AVX2>(distance, len) {
            if distance > op {
                return None;
            }
            // SAFETY: the distance was just checked, and OUT_ROOM bytes are left. The CPU has AVX2 if `AVX2`.
            unsafe { copy_vector::<AVX2>(to, distance) };
        } else {
            if extension == 255 {
                // SAFETY: `ip` is before `in_end`.
                let Some(found) = (unsafe { read_very_long(ip, in_end, out_len) }) else { break };
                (len, distance, after) = found;
                // SAFETY: IN_ROOM covers it.
                next = unsafe { after.byte() };
            }
            if distance > op {
                return None;
            }
            if len + SLACK > out_len - op {
                break;
            }
            // SAFETY: distance and length were just checked. The CPU has AVX2 if `AVX2`.
            unsafe { copy_long::<AVX2>(to, distance, len) };
        }
        op += len;
        // If there are no literals, this will be overwritten.
        // SAFETY: IN_ROOM covers them in `src`; in `dest`, OUT_ROOM or SLACK.
        unsafe { out_start.ahead(op).store(after.ahead(1).load::<MAX_RUN>()) };
        let is_run = next < MAX_RUN;
        ip = select(is_run, after.ahead(2).settled().ahead(next).settled(), after);
        op = select(is_run, settled(op + next + 1), op);
    }
    Some((ip.since(in_start), op))
}

/// The distance of a match whose first byte is `c`, with the byte `low`; FAR_DISTANCE if that is not all.
#[inline(always)]
const fn near_distance(c: usize, low: usize) -> usize {
    ((c & 31) << 8 | low) + 1
}

/// Two bytes as they are stored, the first one in the highest bits.
#[inline(always)]
fn swapped(two_bytes: u16) -> usize {
    usize::from(two_bytes.swap_bytes())
}

/// Reads the match at `ip`, whose first extension byte is 255: its length, its distance, and where the next element is.
/// `None` if `in_end` comes before, or the length is above `most`.
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
    // SAFETY: `at` is not after `in_end`, so IN_ROOM covers three bytes, here and below.
    let low = unsafe { at.byte() };
    // SAFETY: as above.
    let far = swapped(unsafe { at.ahead(1).two_bytes() } as u16);
    let near = near_distance(c, low);
    Some(if near == FAR_DISTANCE { (len, near + far, at.ahead(3)) } else { (len, near, at.ahead(1)) })
}
