//! The thorough search for matches: with a few candidates per position, and a look at the next position before one is
//! taken.
//!
//! It takes what saves most bits, which depends on how many literals take here. It suits data in which matches are long
//! or rare, as shuffled items are:
//! - runs of one byte are found without the table of positions;
//! - so is what goes on as before after a few bytes that changed;
//! - where a long match ends, data of several periods mostly go on as where an earlier one ended: that is looked up;
//! - most positions inside of matches do not come into the table;
//! - where there are no matches, the search takes longer steps.

use super::MOST_CHANGED;
use super::blocks::{MAX_BLOCK, SEGMENT};
use super::counts::Counts;
use super::sequence::{Distance, MAX_DISTANCE, MAX_PIECE, MIN_PIECE, Sequence};
use super::worth::{BIT, Worth};
use crate::codecs::agree::{extend_back, extend_long};
use crate::codecs::mem::{HASH_PRIME, load64};
use crate::error::Result;
use crate::memory::zeroed_box;

/// log2 of the number of hashes, and how many positions are remembered for each.
const BUCKET_BITS: u32 = 13;
const BUCKETS: usize = 1 << BUCKET_BITS;
pub(in super::super) const WAYS: usize = 4;
/// log2 of the number of ends of long matches that are remembered.
const END_BITS: u32 = 12;
const ENDS: usize = 1 << END_BITS;
/// They are recalled by this many bytes behind them.
const RECALLED: usize = 16;
/// Positions with the same hash, the latest first.
type Bucket = [u32; WAYS];
/// Shortest match, except for short streams. At least as many bytes are hashed, and up to eight where shorter matches
/// save nothing.
const MIN_MATCH: usize = 4;
/// As many bytes are hashed as a match from this far back must have to save anything.
const FAR: usize = 256;
/// The same in short streams.
const NEAR: usize = 64;
/// Runs from this length on are taken without asking the table for a longer match.
const LONG_RUN: usize = 32;
/// No run is longer, so that blocks do not get too long.
const MAX_RUN: usize = 1 << 18;
/// Where data go on as before, so much is taken before something nearer is looked for, which takes fewer bits.
const MAX_STRETCH: usize = 16 * MAX_PIECE;
/// Of the positions in a match only this many, the last ones, are remembered: what follows a match often follows it
/// again.
const REMEMBERED: usize = 16;
/// The same for runs, and for what repeats itself in fewer bytes than these: further inside, all positions are alike,
/// and would drive out the one where the run begins.
const RUN_REMEMBERED: usize = MIN_MATCH - 1;
/// Of matches from this distance on, one in this many of the other positions is remembered as well: those that they
/// repeat will soon be too far back.
const FAR_BACK: usize = 4 << 10;
const FAR_REMEMBERED: usize = 4;
/// Behind a match of this many bytes, data may go on as before after [`MOST_CHANGED`] that changed.
const LONG_BEFORE: usize = 16;
/// After 2^PATIENCE misses in a row, the search steps over one more byte each time.
const PATIENCE: u32 = 6;
/// No match starts in the last bytes of a stream, so that eight bytes can be loaded at every start and after it.
const LAST_START: usize = 8;
/// The most sequences of a block: every match at the shortest, and what is left of each segment.
pub(super) const MOST_SEQUENCES: usize = {
    let nbytes = MAX_BLOCK + SEGMENT;
    nbytes / MIN_MATCH + nbytes / SEGMENT
};

/// How thorough the search is.
#[derive(Clone, Copy)]
pub(in super::super) struct Effort {
    /// As many of the misses are forgotten for each bit that a match saves: those that occur by chance are no reason to
    /// look everywhere again.
    pub(in super::super) steps_per_bit: usize,
    /// Matches from this length on are taken at once.
    pub(in super::super) long: usize,
    /// How many candidates are looked at, up to [`WAYS`].
    pub(in super::super) ways: usize,
}

/// The table.
pub(super) struct Parser {
    /// Positions are counted from `base`, which rises past all of the streams before, so that nothing need be cleared
    /// between streams and what they left is never found.
    table: Box<[Bucket; BUCKETS]>,
    base: u32,
    /// Where `base` goes for the next stream.
    next_base: u32,
    /// Where long matches ended, by what follows there.
    ends: Box<[u32; ENDS]>,
    worth: Worth,
    /// How far words are shifted so that the bytes that are hashed are left.
    shift: u32,
    effort: Effort,
    /// Distance of the last long match, if it may go on here; else 0.
    period: usize,
}

/// A match that is `len` bytes long, and how many bits it saves.
#[derive(Clone, Copy)]
struct Match {
    len: usize,
    distance: usize,
    saved: usize,
}

impl Parser {
    pub(super) fn new() -> Result<Parser> {
        let (worth, shift) = (Worth::new(8 * BIT), 64 - 8 * MIN_MATCH as u32); // below 64
        let effort = Effort { steps_per_bit: 0, long: 0, ways: 0 };
        Ok(Parser {
            table: zeroed_box()?,
            base: 1,
            next_base: 1,
            ends: zeroed_box()?,
            worth,
            shift,
            effort,
            period: 0,
        })
    }

    /// Begins with the stream `src`; `None` if it is too long.
    pub(super) fn begin(&mut self, src: &[u8], effort: Effort) -> Option<()> {
        (self.effort, self.period) = (effort, 0);
        let len = u32::try_from(src.len()).ok()?;
        if self.next_base.checked_add(len).is_none() {
            self.table.fill([0; WAYS]);
            self.ends.fill(0);
            self.next_base = 1;
        }
        self.base = self.next_base;
        self.next_base = self.base.checked_add(len)?;
        Some(())
    }

    /// Begins with a part of the stream in which literals seem to take this many bits, in sixteenths.
    pub(super) fn begin_part(&mut self, literal_bits: usize) {
        self.worth = Worth::new(literal_bits);
        // What was remembered by other hashes may not be found again, but nothing is found by mistake.
        self.shift = 64 - 8 * self.worth.shortest(FAR).clamp(MIN_MATCH, 8) as u32; // below 64
    }

    /// Begins with a short stream in which literals seem to take this many bits, in sixteenths. Even the shortest
    /// matches may be worth it there, as they are from nearby; but among several candidates only, or they hide longer
    /// ones.
    pub(super) fn begin_short(&mut self, literal_bits: usize) {
        self.worth = Worth::of_frequent(literal_bits);
        let shortest = if self.effort.ways == WAYS { MIN_PIECE } else { MIN_MATCH };
        self.shift = 64 - 8 * self.worth.shortest(NEAR).clamp(shortest, 8) as u32; // below 64
    }

    /// Tells how many bits a literal takes here, in sixteenths.
    pub(super) fn expect_literals(&mut self, literal_bits: usize) {
        self.worth = Worth::new(literal_bits);
    }

    #[cfg(test)]
    pub(super) fn set_next_base(&mut self, base: u32) {
        self.next_base = base;
    }

    /// Parses the stream `src` from `start` to `end`, or to the end of a match or a step after it, which it returns.
    /// Adds what it finds to `sequences`, and counts what codes will be needed.
    pub(super) fn parse(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        let nbefore = sequences.len();
        let end = self.find_matches(src, start, end, sequences, counts);
        counts.count_literals(&src[start..end], &sequences[nbefore..]);
        end
    }

    /// [`parse`](Self::parse), without counting literals.
    fn find_matches(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            // SAFETY: the CPU was just asked for AVX2, BMI1, BMI2 and LZCNT.
            return unsafe { self.find_matches_avx2(src, start, end, sequences, counts) };
        }
        self.find_matches_with(src, start, end, sequences, counts)
    }

    /// [`find_matches_with`](Self::find_matches_with), compiled for newer CPUs.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2, BMI1, BMI2 and LZCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn find_matches_avx2(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        self.find_matches_with(src, start, end, sequences, counts)
    }

    /// [`find_matches`](Self::find_matches) with what the caller is compiled for.
    #[inline(always)]
    fn find_matches_with(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        let last_start = src.len().saturating_sub(LAST_START);
        let (mut anchor, mut at) = (start, start);
        let mut long_end = start;
        let mut steps = 1_usize << PATIENCE;
        while at < end.min(last_start) {
            let recalled = if at == long_end { self.recall(src, at) } else { None };
            let likely = recalled.unwrap_or(self.period);
            // SAFETY: `at + LAST_START < src.len()`, and this is recalled, or the distance of a match before.
            let Some(mut found) = (unsafe { self.best_match(src, at, likely, 0) }) else {
                if at - anchor >= MOST_CHANGED {
                    self.period = 0;
                }
                at += steps >> PATIENCE;
                steps += 1;
                continue;
            };
            steps = steps.saturating_sub(found.saved * self.effort.steps_per_bit / BIT).max(1 << PATIENCE);
            while found.len < self.effort.long && at + 1 < last_start {
                // SAFETY: `at + 1 + LAST_START < src.len()`.
                let Some(better) = (unsafe { self.best_match(src, at + 1, 0, found.saved) }) else { break };
                (found, at) = (better, at + 1);
            }
            let match_end = at + found.len;
            // SAFETY: matches begin in `src`, so `distance <= at`.
            let match_start = unsafe { extend_back(src, at, found.distance, anchor) };
            let distance = Distance::new(found.distance);
            let sequence = Sequence::new(match_start - anchor, match_end - match_start, distance);
            counts.count_match(&sequence);
            sequences.push(sequence);
            // `at` and the next position were remembered when they were looked up.
            self.remember_inside(src, at + 2, match_end, found.distance);
            if found.len >= LONG_BEFORE {
                long_end = match_end;
                self.period = if found.distance > 1 { found.distance } else { 0 };
            }
            (anchor, at) = (match_end, match_end);
        }
        if at >= last_start {
            at = src.len();
        }
        if anchor < at {
            sequences.push(Sequence::literals_only(at - anchor));
        }
        at
    }

    /// Remembers `at`, where a long match ends; returns how far before it another one ended, if the same seems to
    /// follow there. Matches that end for their length alone go on as before.
    #[inline(always)]
    fn recall(&mut self, src: &[u8], at: usize) -> Option<usize> {
        if self.period > 0 && src[at] == src[at - self.period] {
            return None;
        }
        let following = u128::from_le_bytes(*src[at..].first_chunk::<RECALLED>()?);
        let (low, high) = (following as u64, (following >> 64) as u64); // its halves
        let hash = (low.wrapping_mul(HASH_PRIME) ^ high).wrapping_mul(HASH_PRIME);
        let now = self.base + at as u32; // as in `remember`
        let slot = (hash >> (64 - END_BITS)) as usize; // below the table's length
        let distance = (now - std::mem::replace(&mut self.ends[slot], now)) as usize;
        (1..=at.min(MAX_DISTANCE)).contains(&distance).then_some(distance)
    }

    /// Puts `at`, where `bytes` are, into the table; returns what was there.
    #[inline(always)]
    fn remember(&mut self, at: usize, bytes: u64) -> Bucket {
        let bucket = &mut self.table[slot(bytes << self.shift)];
        let before = *bucket;
        *bucket = [self.base + at as u32, before[0], before[1], before[2]]; // `begin` saw that this is below 2^32
        before
    }

    /// Remembers some of the positions in `start..end`, which is part of a match of this distance, or empty.
    #[inline(always)]
    fn remember_inside(&mut self, src: &[u8], start: usize, end: usize, distance: usize) {
        let remembered = if distance < REMEMBERED { RUN_REMEMBERED } else { REMEMBERED };
        let first = start.max(end.saturating_sub(remembered));
        let last = end.min(src.len().saturating_sub(LAST_START));
        if distance >= FAR_BACK && distance != self.period {
            for inside in (start..first.min(last)).step_by(FAR_REMEMBERED) {
                // SAFETY: `inside + LAST_START < src.len()`.
                self.remember(inside, unsafe { load64(src, inside) });
            }
        }
        for inside in first..last {
            // SAFETY: `inside + LAST_START < src.len()`.
            self.remember(inside, unsafe { load64(src, inside) });
        }
    }

    /// The match of the bytes at `at` that saves most, if that is more than `least` bits: a run, of any length, or one
    /// of the distance `likely`, if that is not 0, or a candidate from the table, up to the length of one code. Behind
    /// that, something nearer may be as good.
    ///
    /// # Safety
    ///
    /// `at + LAST_START <= src.len()`, `likely <= at`.
    #[inline(always)]
    unsafe fn best_match(&mut self, src: &[u8], at: usize, likely: usize, least: usize) -> Option<Match> {
        // SAFETY: the caller's promise.
        let bytes = unsafe { load64(src, at) };
        let mut best = Match { len: 0, distance: 0, saved: least };
        if at > 0 && bytes as u32 == (bytes as u32) << 8 | u32::from(src[at - 1]) {
            // SAFETY: `1 <= at`, which is not beyond the limit.
            let len = unsafe { extend_long(src, at, 1, src.len().min(at + MAX_RUN)) } - at;
            let saved = self.worth.saved(len, 1);
            if saved > best.saved {
                best = Match { len, distance: 1, saved };
                if len >= LONG_RUN {
                    return Some(best);
                }
            }
        }
        if likely > 0 {
            // SAFETY: `likely <= at`, which is not beyond the limit.
            let len = unsafe { extend_long(src, at, likely, src.len().min(at + MAX_PIECE)) } - at;
            let saved = self.worth.saved(len, likely);
            // A byte or two may save bits, but have no code.
            if saved > best.saved && len >= MIN_PIECE {
                best = Match { len, distance: likely, saved };
            }
        }
        let now = self.base + at as u32; // as in `remember`
        for entry in self.remember(at, bytes).into_iter().take(self.effort.ways) {
            let distance = (now - entry) as usize;
            if distance > at.min(MAX_DISTANCE) {
                break;
            }
            // SAFETY: `distance <= at`, so the candidate lies in `src` before `at`.
            let differing = bytes ^ unsafe { load64(src, at - distance) };
            if differing << self.shift != 0 {
                continue;
            }
            let len = if differing != 0 {
                differing.trailing_zeros() as usize / 8
            } else {
                // SAFETY: `at + 8` is not beyond the limit.
                unsafe { extend_long(src, at + 8, distance, src.len().min(at + MAX_PIECE)) - at }
            };
            let saved = self.worth.saved(len, distance);
            if saved > best.saved {
                best = Match { len, distance, saved };
                if len == MAX_PIECE {
                    break;
                }
            }
        }
        if best.distance == likely && best.len == MAX_PIECE {
            // SAFETY: `likely` bytes before `at` the same bytes begin, up to there, which is not beyond the limit.
            let end = unsafe { extend_long(src, at + MAX_PIECE, likely, src.len().min(at + MAX_STRETCH)) };
            best.len = end - at;
        }
        (best.distance > 0).then_some(best)
    }
}

/// Table index for the bytes that are hashed, the highest ones of `bytes`.
#[inline(always)]
fn slot(bytes: u64) -> usize {
    // BUCKET_BITS bits are left after the shift.
    (bytes.wrapping_mul(HASH_PRIME) >> (64 - BUCKET_BITS)) as usize
}
