//! The decoder: fast loops while both buffers have room for a sequence of the usual size, and a careful one for the
//! rest. Of the fast ones, [`decode_short`] is for matches of up to 16 bytes at any distance, and some longer ones
//! beside; it leaves others to [`decode_any`]. Where those are many, [`decode_medium`] takes its place, until too many
//! have short distances.
//!
//! It takes the same streams as the reference implementation, except for those with a distance of 0, which the format
//! calls damaged and the reference takes for zeros; and a tenth to a half less time for most of them: distances
//! below 16 cost no more than others, long runs and matches are copied in whole vectors, and the next token is loaded
//! before anything is done with this one. It can also stop early, where the reference copies the last match byte by
//! byte.
//!
//! A stream consists of sequences: a token with two lengths of four bits, more bytes of the first length if it is 15,
//! that many literals, a distance of two bytes, and more bytes of the second length if it is 15. That length and 4 more
//! bytes are copied from earlier output. The last sequence ends with its literals, and no other may end near the end of
//! stream or output; what the reference decoder refuses for that is refused here too.

use super::output::{LONG, MAX_DISTANCE, MIN_MATCH};
use crate::codecs::matches::{
    SLACK, copy_few_literals, copy_literals, copy_long, copy_pieces, copy_safely, copy_short, copy_two_more,
};
use crate::codecs::place::{Source, Target, settled};
use crate::cpu::rarely;
use crate::error::{Error, ErrorKind, Result};

/// At least this many bytes of output follow the literals of every sequence but the last.
const LITERALS_END: usize = 12;
/// Bytes of output that come after every match.
const MATCH_END: usize = 5;
/// Bytes of input that come after the literals of all but the last sequence.
const INPUT_END: usize = 8;
/// From this many bytes of input after a token on, and of output, the reference decoder overlooks that an end is near.
const UNASKED_IN: usize = 17;
const UNASKED_OUT: usize = 32;
/// From this many bytes on, a token and less than LONG literals leave INPUT_END bytes, and a copy of 16 is within the
/// input.
const IN_ROOM: usize = LONG + INPUT_END;
/// Matches up to this length are copied at once. Those of 17 and 18 bytes are too few to be copied with them.
const SHORT_MATCH: usize = 16;
/// Matches whose length takes one byte beside the token are shorter than this.
const LONG_MATCH: usize = MIN_MATCH + LONG + 255;
/// More bytes of output than a sequence of [`decode_medium`] with less than LONG literals makes, and SLACK.
const MEDIUM_ROOM: usize = LONG + LONG_MATCH + SLACK;
/// A loop is left if this many sequences that it is not made for come in less than DENSE bytes of output each, on
/// average.
const MANY: usize = 16;
const DENSE: usize = 240;
/// If [`decode_medium`] comes less far than this, in bytes of output, it did not pay.
const PAYS: usize = 2048;
/// It is tried again only after this many times MANY longer matches then.
const PAUSE: usize = 15;
/// Matches at less than this distance are copied from what the sequences just before made.
const NEAR: usize = 33;
/// The longest run of literals whose length takes one byte beside the token.
const MAX_RUN: usize = LONG + 254;
/// From this many bytes on, a sequence of two short lengths leaves MATCH_END bytes.
const OUT_ROOM: usize = LONG - 1 + LONG - 1 + MIN_MATCH + MATCH_END;

/// Decompresses `src`, which must give exactly `dest.len()` bytes.
///
/// # Errors
///
/// `Data` if it does not; `dest` may hold anything then.
#[inline]
pub(crate) fn decompress(src: &[u8], dest: &mut [u8]) -> Result<()> {
    decompress_prefix(src, dest.len(), dest)
}

/// Decompresses at least the first `wanted` bytes of the stream `src`, which holds `dest.len()` bytes in all, to the
/// front of `dest`. What follows there is arbitrary afterwards.
///
/// # Errors
///
/// `Data` if the stream is found to be damaged before the wanted bytes are complete.
#[inline]
pub(crate) fn decompress_prefix(src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_avx2() {
        // SAFETY: the CPU was just asked for AVX2 and BMI2.
        return check(unsafe { decode_avx2(src, dest, wanted) });
    }
    // SAFETY: no AVX2 is asked for.
    check(unsafe { decode::<false>(src, dest, wanted) })
}

/// [`decompress_prefix`] with the instructions that every CPU has.
#[cfg(test)]
pub(super) fn decompress_portably(src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
    // SAFETY: no AVX2 is asked for.
    check(unsafe { decode::<false>(src, dest, wanted) })
}

/// How many bytes of a stream that gives `len` are needed at the most to decode its first `wanted` bytes, if a zero
/// follows them: it ends a length of a match that reaches beyond what is wanted.
///
/// A sequence takes no more bytes than it gives, except for one in 255 of long lengths. The last one that is looked at
/// may give next to nothing of what is wanted, but the length of its literals, up to `len`, comes before the first of
/// them.
pub(crate) fn input_for(wanted: usize, len: usize) -> usize {
    wanted.saturating_add(len / 255 + SLACK)
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
    // SAFETY: the caller's promise.
    unsafe { decode::<true>(src, dest, stop) }
}

/// Decodes `src` into `dest` until `stop` bytes are there.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode<const AVX2: bool>(src: &[u8], dest: &mut [u8], stop: usize) -> Option<()> {
    // SAFETY: the caller's promise.
    let (ip, op) = unsafe { decode_fast::<AVX2>(src, dest, stop) }?;
    // SAFETY: the same.
    unsafe { decode_careful::<AVX2>(src, dest, ip, op, stop) }
}

/// Decodes sequences until an end is near. Returns the positions of the next sequence and of its output.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_fast<const AVX2: bool>(src: &[u8], dest: &mut [u8], stop: usize) -> Option<(usize, usize)> {
    let (in_len, out_len) = (src.len(), dest.len());
    // At lower addresses, the place at the largest distance before the output would not come before it.
    let is_low = dest.as_ptr().addr() < MAX_DISTANCE;
    if in_len <= IN_ROOM || out_len <= OUT_ROOM || is_low {
        return Some((0, 0));
    }
    let (in_start, out_start) = (Source::new(src), Target::new(dest));
    let ends = Ends {
        in_room: in_start.ahead(in_len - IN_ROOM),
        out_start,
        out_room: out_start.ahead(stop.min(out_len - OUT_ROOM)),
        run_end: out_start.ahead(stop.min(out_len.saturating_sub(SLACK))),
        medium_room: out_start.ahead(stop.min(out_len.saturating_sub(MEDIUM_ROOM))),
        in_slack: in_start.ahead(in_len.saturating_sub(SLACK)),
        out_slack: out_start.ahead(out_len.saturating_sub(SLACK)),
    };
    // SAFETY: the input is not empty.
    let mut at = Place { ip: in_start, op: out_start, token: unsafe { in_start.byte() } };
    let (mut longer, mut pause) = (Kind::counted_from(out_start), 0);
    while !at.is_near_end(&ends) {
        // SAFETY: no end is near. The CPU has AVX2 if `AVX2`.
        at = unsafe { decode_short::<AVX2>(at, &ends) }?;
        if at.is_near_end(&ends) {
            break;
        }
        // SAFETY: the same.
        match unsafe { decode_any::<AVX2>(at, &ends) }? {
            Some(next) => at = next,
            None => break,
        }
        match longer.one_more(at.op) {
            Some(_) if pause > 0 => pause -= 1,
            Some(true) => {
                let from = at.op;
                // SAFETY: the CPU has AVX2 if `AVX2`.
                at = unsafe { decode_mostly_medium::<AVX2>(at, &ends) }?;
                if at.op.since(from) < PAYS {
                    pause = PAUSE;
                }
                longer = Kind::counted_from(at.op);
            }
            _ => (),
        }
    }
    Some((at.ip.since(in_start), at.op.since(out_start)))
}

/// How far the fast loops go.
struct Ends<'a> {
    /// Less than IN_ROOM bytes of input are left here.
    in_room: Source<'a>,
    /// The start of the output.
    out_start: Target<'a>,
    /// Less than OUT_ROOM bytes of output are left here, or none is wanted any more.
    out_room: Target<'a>,
    /// SLACK bytes of output are left here, unless it is the start, or none is wanted any more.
    run_end: Target<'a>,
    /// MEDIUM_ROOM bytes of output are left here, unless it is the start, or none is wanted any more.
    medium_room: Target<'a>,
    /// SLACK bytes of input are left here, unless it is the start.
    in_slack: Source<'a>,
    /// SLACK bytes of output are left here, unless it is the start.
    out_slack: Target<'a>,
}

/// The sequences of a kind that the loop at work is not made for.
struct Kind<'a> {
    count: usize,
    /// Where counting began.
    from: Target<'a>,
}

impl<'a> Kind<'a> {
    #[inline(always)]
    fn counted_from(from: Target<'a>) -> Kind<'a> {
        Kind { count: 0, from }
    }

    /// Counts one that ends at `op`. After MANY of them, begins anew, and returns whether they were dense.
    #[inline(always)]
    fn one_more(&mut self, op: Target<'a>) -> Option<bool> {
        self.count += 1;
        if self.count < MANY {
            return None;
        }
        let is_dense = op.since(self.from) < MANY * DENSE;
        *self = Kind::counted_from(op);
        Some(is_dense)
    }
}

/// Where a fast loop is: before a sequence.
#[derive(Clone, Copy)]
struct Place<'a> {
    ip: Source<'a>,
    op: Target<'a>,
    /// The byte at `ip`.
    token: usize,
}

impl Place<'_> {
    #[inline(always)]
    fn is_near_end(&self, ends: &Ends<'_>) -> bool {
        self.ip >= ends.in_room || self.op >= ends.out_room
    }
}

/// Decodes sequences of up to MAX_RUN literals and a short match, and those of [`decode_longer`]. Stops at the first
/// other one, or when an end is near.
///
/// # Safety
///
/// No end is near. If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_short<'a, const AVX2: bool>(mut at: Place<'a>, ends: &Ends<'a>) -> Option<Place<'a>> {
    loop {
        let Place { mut ip, op, token } = at;
        let (mut literals, match_bits) = (token >> 4, token & 15);
        // Whether the match is short is asked in both branches: asked before them, it costs 2 to 6 %.
        if literals < LONG {
            if match_bits + MIN_MATCH > SHORT_MATCH {
                // SAFETY: no end is near, and the match is longer.
                at = match unsafe { decode_longer(at, ends) } {
                    Some(next) if !next.is_near_end(ends) => next,
                    next => return Some(next.unwrap_or(at)),
                };
                continue;
            }
            // SAFETY: IN_ROOM bytes follow the token, and OUT_ROOM bytes are left of output.
            unsafe { op.store(ip.ahead(1).load::<16>()) };
        } else {
            rarely(); // most sequences have fewer
            if match_bits + MIN_MATCH > SHORT_MATCH {
                return Some(at);
            }
            // SAFETY: IN_ROOM bytes follow the token.
            let more = unsafe { ip.two_bytes() } >> 8;
            literals += more;
            let (from, end) = (ip.ahead(2), op.ahead(literals));
            if more > MAX_RUN - LONG || from.ahead(literals) > ends.in_slack || end >= ends.run_end {
                return Some(at);
            }
            // SAFETY: SLACK bytes follow the literals on both sides.
            unsafe { copy_run(from, op, literals) };
            ip = ip.ahead(1);
        }
        // SAFETY: INPUT_END bytes follow the literals, or SLACK: the distance, and the next token.
        let token = settled(unsafe { ip.ahead(literals + 3).byte() });
        // SAFETY: the same.
        let distance = unsafe { ip.ahead(literals + 1).two_bytes() };
        let (ip, op) = (ip.ahead(literals + 3), op.ahead(literals));
        if distance == 0 || op.back(distance) < ends.out_start {
            return None;
        }
        // SAFETY: the distance was checked, and OUT_ROOM or SLACK counts this match. The CPU has AVX2 if `AVX2`.
        unsafe { copy_short::<AVX2>(op, distance) };
        at = Place { ip, op: op.ahead(match_bits + MIN_MATCH), token };
        if at.is_near_end(ends) {
            return Some(at);
        }
    }
}

/// Decodes a sequence with less than LONG literals and a match that is not short, but less than LONG_MATCH. `None`, with
/// nothing consumed, if the sequence is of another kind: from less than 16 bytes back, damaged, or near an end, too.
///
/// # Safety
///
/// As for [`decode_short`].
#[inline(always)]
unsafe fn decode_longer<'a>(at: Place<'a>, ends: &Ends<'a>) -> Option<Place<'a>> {
    let Place { ip, op, token } = at;
    let (literals, match_bits) = (token >> 4, token & 15);
    // SAFETY: IN_ROOM bytes follow the token, and OUT_ROOM bytes are left of output.
    unsafe { op.store(ip.ahead(1).load::<16>()) };
    let (ip, op) = (ip.ahead(literals + 1), op.ahead(literals));
    // SAFETY: INPUT_END bytes follow the literals.
    let distance = unsafe { ip.two_bytes() };
    // SAFETY: the same.
    let next = unsafe { ip.ahead(2).byte() };
    if distance < 16 || op.back(distance) < ends.out_start {
        return None;
    }
    if match_bits < LONG {
        // SAFETY: the distance was checked, and OUT_ROOM counts this match.
        unsafe { op.copy_from_back::<SHORT_MATCH>(distance) };
        // SAFETY: the same.
        unsafe { op.ahead(SHORT_MATCH).copy_from_back::<2>(distance) };
        return Some(Place { ip: ip.ahead(2), op: op.ahead(match_bits + MIN_MATCH), token: next });
    }
    let end = op.ahead(LONG + MIN_MATCH + next);
    if next == 255 || end > ends.out_slack {
        return None;
    }
    // SAFETY: INPUT_END bytes followed the literals.
    let token = settled(unsafe { ip.ahead(3).byte() });
    // SAFETY: the distance was checked, and SLACK bytes follow the match.
    unsafe { copy_far(op, distance, end) };
    Some(Place { ip: ip.ahead(3), op: end, token })
}

/// Copies what lies `distance` bytes back to `to`, up to `end`, and bytes after it.
///
/// # Safety
///
/// `distance >= 16`; that many bytes precede `to`, and SLACK follow `end`, which is after it.
#[inline(always)]
unsafe fn copy_far<'a>(mut to: Target<'a>, distance: usize, end: Target<'a>) {
    // Four copies: most matches are not longer, and how often a loop goes round cannot be foreseen either. But from
    // what was written just now, nothing is copied in vain: the CPU would wait for each of these bytes to be there.
    let is_near = distance < NEAR;
    loop {
        // SAFETY: `to` is before `end`, so SLACK bytes follow, and what is copied lies before.
        unsafe { to.copy_from_back::<16>(distance) };
        // SAFETY: the same.
        unsafe { to.ahead(16).copy_from_back::<16>(distance) };
        to = to.ahead(32);
        if is_near && to >= end {
            return;
        }
        // SAFETY: the same: SLACK bytes are these, too.
        unsafe { to.copy_from_back::<16>(distance) };
        // SAFETY: the same.
        unsafe { to.ahead(16).copy_from_back::<16>(distance) };
        to = to.ahead(32);
        if to >= end {
            return;
        }
    }
}

/// Copies up to MAX_RUN literals, and bytes after them.
///
/// # Safety
///
/// `len + SLACK` bytes exist at both places.
#[inline(always)]
unsafe fn copy_run(from: Source<'_>, to: Target<'_>, len: usize) {
    let mut done = 0;
    loop {
        // SAFETY: `done < len`, or nothing is copied, and 64 bytes follow.
        unsafe { to.ahead(done).store(from.ahead(done).load::<32>()) };
        // SAFETY: the same.
        unsafe { to.ahead(done + 32).store(from.ahead(done + 32).load::<32>()) };
        done += 64;
        if done >= len {
            return;
        }
    }
}

/// Decodes sequences of any kind, most by [`decode_medium`], until too many are of those that it is not made for.
///
/// It has a function of its own: the compiler knows no registers for the variables of two loops.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(never)]
unsafe fn decode_mostly_medium<'a, const AVX2: bool>(at: Place<'a>, ends: &Ends<'a>) -> Option<Place<'a>> {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn with_avx2<'a>(at: Place<'a>, ends: &Ends<'a>) -> Option<Place<'a>> {
        // SAFETY: the CPU has AVX2.
        unsafe { decode_medium_and_others::<true>(at, ends) }
    }
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        // SAFETY: the caller's promise.
        return unsafe { with_avx2(at, ends) };
    }
    // SAFETY: no AVX2 is asked for.
    unsafe { decode_medium_and_others::<false>(at, ends) }
}

/// [`decode_mostly_medium`] itself.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn decode_medium_and_others<'a, const AVX2: bool>(
    mut at: Place<'a>,
    ends: &Ends<'a>,
) -> Option<Place<'a>> {
    let mut patterns = Kind::counted_from(at.op);
    loop {
        // SAFETY: the caller's promise.
        let (next, is_behind_pattern) = unsafe { decode_medium::<AVX2>(at, ends) }?;
        at = next;
        if is_behind_pattern {
            match patterns.one_more(at.op) {
                Some(true) => return Some(at),
                _ => continue,
            }
        }
        if at.is_near_end(ends) {
            return Some(at);
        }
        // SAFETY: no end is near. The CPU has AVX2 if `AVX2`.
        match unsafe { decode_any::<AVX2>(at, ends) }? {
            Some(next) => at = next,
            None => return Some(at),
        }
    }
}

/// Decodes sequences of up to MAX_RUN literals and a match whose length takes one byte beside the token, at most. Stops
/// at the first other one, after one with a short pattern, which it tells, or when an end is near.
///
/// Text and records consist of them. It is not known then which matches are short, and they repeat what was written a
/// few stores before: a load of that waits until it is in the cache, unless one store wrote all of it. So short ones
/// are copied in pieces of eight bytes, which are rarely in two stores. The patterns that numbers have in shuffled rows
/// would each be a surprise here.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_medium<'a, const AVX2: bool>(
    mut at: Place<'a>,
    ends: &Ends<'a>,
) -> Option<(Place<'a>, bool)> {
    while at.ip < ends.in_slack && at.op < ends.medium_room {
        let Place { mut ip, op, token } = at;
        let (mut literals, match_bits) = (token >> 4, token & 15);
        ip = ip.ahead(1);
        if literals == LONG {
            if ip.ahead(MAX_RUN) >= ends.in_slack || op.ahead(MAX_RUN) >= ends.medium_room {
                break;
            }
            // SAFETY: SLACK bytes follow the token.
            let more = unsafe { ip.byte() };
            if more > MAX_RUN - LONG {
                break;
            }
            literals += more;
            ip = ip.ahead(1);
            // SAFETY: MAX_RUN bytes and SLACK, as just compared, follow on both sides.
            unsafe { copy_run(ip, op, literals) };
        } else {
            // SAFETY: SLACK bytes follow the token, and MEDIUM_ROOM bytes are left of output.
            unsafe { op.store(ip.load::<16>()) };
        }
        // What comes after the distance: the next token, or more of the length.
        // SAFETY: SLACK bytes, less the literals if there are no more than fit after a token, follow: more than
        // INPUT_END.
        let next = settled(unsafe { ip.ahead(literals + 2).byte() });
        // SAFETY: the same.
        let distance = unsafe { ip.ahead(literals).two_bytes() };
        let (ip, op) = (ip.ahead(literals + 2), op.ahead(literals));
        if distance == 0 || op.back(distance) < ends.out_start {
            return None;
        }
        let len = match_bits + MIN_MATCH;
        if match_bits < LONG {
            if distance < 8 {
                rarely();
                // SAFETY: the distance was checked, and SLACK bytes follow the match. The CPU has AVX2 if `AVX2`.
                unsafe { copy_short::<AVX2>(op, distance) };
                // SAFETY: the same. What repeats each byte repeats the last two.
                unsafe { op.ahead(SHORT_MATCH).copy_from_back::<2>(distance.max(2)) };
                return Some((Place { ip, op: op.ahead(len), token: next }, true));
            }
            // SAFETY: the distance was checked, and SLACK bytes follow the match.
            unsafe { op.copy_from_back::<8>(distance) };
            // SAFETY: the same.
            unsafe { op.ahead(8).copy_from_back::<8>(distance) };
            // SAFETY: the same.
            unsafe { op.ahead(SHORT_MATCH).copy_from_back::<2>(distance) };
            at = Place { ip, op: op.ahead(len), token: next };
            continue;
        }
        let len = len + next;
        if next == 255 {
            break;
        }
        if distance < 16 {
            rarely();
            // SAFETY: the distance was checked, and SLACK bytes follow the match. The CPU has AVX2 if `AVX2`.
            unsafe { copy_long::<AVX2>(op, distance, len) };
        } else {
            // SAFETY: the distance was checked, and SLACK bytes follow the match.
            unsafe { copy_far(op, distance, op.ahead(len)) };
        }
        // SAFETY: as with `next`.
        let token = settled(unsafe { ip.ahead(1).byte() });
        at = Place { ip: ip.ahead(1), op: op.ahead(len), token };
    }
    Some((at, false))
}

/// Decodes one sequence of any lengths; `Some(None)` if an end is near.
///
/// # Safety
///
/// As for [`decode_short`].
#[inline(always)]
unsafe fn decode_any<'a, const AVX2: bool>(at: Place<'a>, ends: &Ends<'a>) -> Option<Option<Place<'a>>> {
    // SAFETY: the caller's promise.
    let Some((ip, literals)) = (unsafe { put_literals(at, ends) }) else { return Some(None) };
    // What comes after the distance: the next token, or more of the length.
    // SAFETY: INPUT_END bytes follow the literals, or SLACK: the distance, and this one.
    let next = settled(unsafe { ip.ahead(literals + 2).byte() });
    let (ip, op, token) = (ip.ahead(literals), at.op.ahead(literals), at.token);
    // SAFETY: the same.
    let distance = unsafe { ip.two_bytes() };
    let mut ip = ip.ahead(2);
    if distance == 0 || op.back(distance) < ends.out_start {
        return None;
    }
    let mut len = (token & 15) + MIN_MATCH;
    if len < LONG + MIN_MATCH {
        // SAFETY: the distance was checked; SLACK bytes follow the literals, or OUT_ROOM counts this match. The CPU has
        // AVX2 if `AVX2`.
        unsafe { copy_short::<AVX2>(op, distance) };
        if len > SHORT_MATCH {
            // Items with padding have such matches again and again, each of which reads what the one before wrote: with
            // stores of another size, that takes long.
            // SAFETY: the same; 16 bytes of the match are there.
            unsafe { copy_two_more(op.ahead(SHORT_MATCH), distance) };
        }
        return Some(Some(Place { ip, op: op.ahead(len), token: next }));
    }
    len += next;
    ip = ip.ahead(1);
    if next == 255 {
        if ip >= ends.in_room {
            return Some(None);
        }
        // SAFETY: `ip` is before `in_room`, as just compared.
        let Some(more) = (unsafe { more_of_length(&mut ip, ends) }) else { return Some(None) };
        len += more;
    }
    // SAFETY: INPUT_END bytes followed the literals, of which three were read, or `ip` was before `in_room`.
    let token = settled(unsafe { ip.byte() });
    // The length is compared, not the end: where addresses are short, the end of a long match may come before its
    // start.
    if op < ends.out_slack && len <= ends.out_slack.since(op) {
        // SAFETY: the distance was checked, and SLACK bytes follow the match. The CPU has AVX2 if `AVX2`.
        unsafe { copy_long::<AVX2>(op, distance, len) };
    } else if distance >= 16 && op < ends.out_room && len < ends.out_room.since(op) {
        // SAFETY: the distance was checked, this match is not short, and OUT_ROOM bytes follow it.
        unsafe { copy_pieces(op, distance, len) };
    } else {
        return Some(None);
    }
    Some(Some(Place { ip, op: op.ahead(len), token }))
}

/// Copies the literals of the sequence at `at`; returns where they are, and how many. `None` if an end is near.
///
/// # Safety
///
/// No end is near yet.
#[inline(always)]
unsafe fn put_literals<'a>(at: Place<'a>, ends: &Ends<'a>) -> Option<(Source<'a>, usize)> {
    let mut ip = at.ip.ahead(1);
    let mut literals = at.token >> 4;
    if literals < LONG {
        // SAFETY: IN_ROOM bytes follow the token, and OUT_ROOM bytes are left of output.
        unsafe { at.op.store(ip.load::<16>()) };
        return Some((ip, literals));
    }
    // SAFETY: the token was before `in_room`.
    literals += unsafe { more_of_length(&mut ip, ends) }?;
    if ip >= ends.in_room || literals > ends.in_room.since(ip) || literals >= ends.out_room.since(at.op) {
        return None;
    }
    if ip.ahead(literals) > ends.in_slack || at.op.ahead(literals) > ends.out_slack {
        for done in (0..literals).step_by(16) {
            // SAFETY: IN_ROOM and OUT_ROOM bytes follow the literals: more than 15.
            unsafe { at.op.ahead(done).store(ip.ahead(done).load::<16>()) };
        }
        return Some((ip, literals));
    }
    // SAFETY: SLACK bytes follow the literals on both sides.
    unsafe { copy_literals(ip, at.op, literals) };
    Some((ip, literals))
}

/// What the bytes at `ip` add to a length; `None` if they reach `in_room` or make more than any output.
///
/// # Safety
///
/// `ip` is not the end of the input.
#[inline(always)]
unsafe fn more_of_length<'a>(ip: &mut Source<'a>, ends: &Ends<'a>) -> Option<usize> {
    let mut len = 0;
    loop {
        // SAFETY: the caller's promise; later, `ip` is before `in_room`.
        let more = unsafe { ip.byte() };
        *ip = ip.ahead(1);
        len += more;
        if more != 255 {
            return Some(len);
        }
        if *ip >= ends.in_room || len > ends.out_slack.since(ends.out_start) {
            return None;
        }
    }
}

/// Decodes sequences with all checks, from the given positions to the end of the stream, or until `stop` bytes are
/// there.
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
) -> Option<()> {
    while stop == dest.len() || op < stop {
        let token = usize::from(*src.get(ip)?);
        ip += 1;
        let left = dest.len() - op;
        let literals = read_length(src, &mut ip, token >> 4, left)?;
        if stop == dest.len() && literals == src.len() - ip {
            // Nothing follows the last sequence's literals.
            let rest = dest.get_mut(op..).filter(|rest| rest.len() == literals)?;
            copy_few_literals(&src[ip..], rest);
            return Some(());
        }
        // The reference decoder takes a short cut with such sequences, and does not ask then how near the ends are.
        let unasked = literals < LONG && src.len() - ip >= UNASKED_IN && left >= UNASKED_OUT;
        // Nothing after the last wanted byte is looked at.
        let is_last = stop < dest.len() && literals >= stop - op;
        if unasked {
            // Less than 16 are to come, and there are more on both sides.
            *dest[op..].first_chunk_mut::<16>()? = *src[ip..].first_chunk()?;
        } else {
            let few = if is_last { stop - op } else { literals };
            let bytes = src.get(ip..ip + few)?;
            copy_few_literals(bytes, dest.get_mut(op..op + few)?);
        }
        if is_last {
            return Some(());
        }
        ip += literals;
        op += literals;
        let left = dest.len() - op;
        if !unasked && (left < LITERALS_END || src.len() - ip < INPUT_END) {
            // Only the last sequence is that near to an end.
            return (ip == src.len() && left == 0).then_some(());
        }
        let distance = usize::from(*src.get(ip)?) | usize::from(*src.get(ip + 1)?) << 8;
        ip += 2;
        let len = MIN_MATCH + read_length(src, &mut ip, token & 15, left)?;
        let end = if unasked && token & 15 < LONG && distance >= 8 { 0 } else { MATCH_END };
        if !(1..=op).contains(&distance) || len + end > left {
            return None;
        }
        // SAFETY: what is before `op` was written. The CPU has AVX2 if `AVX2`.
        unsafe { copy_safely::<AVX2>(dest, op, distance, len) };
        op += len;
    }
    Some(())
}

/// A length that begins with `first`; `None` if it is cut off or exceeds `max`.
fn read_length(src: &[u8], ip: &mut usize, first: usize, max: usize) -> Option<usize> {
    let mut len = first;
    if first == LONG {
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
