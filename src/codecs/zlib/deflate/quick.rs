//! The quick search where matches are few: greedy, with one candidate per position, from a hash table of positions.

use super::MOST_CHANGED;
use super::counts::Counts;
use super::sequence::{Distance, MAX_DISTANCE, Sequence};
use crate::codecs::agree::{extend_back, extend_long, same_bytes};
use crate::codecs::mem::{HASH_PRIME, load64};
use crate::error::Result;
use crate::memory::zeroed_box;

/// Shortest agreement that makes a match. Shorter ones save few bits, if any, and take as long to write as others.
const MIN_MATCH: usize = 6;
/// The same in tiny blocks: with the fixed codes, and distances as short as they are there, it saves bits.
const TINY_MATCH: usize = 4;
/// log2 of the number of positions that are remembered.
const TABLE_BITS: u32 = 12;
const TABLE_LEN: usize = 1 << TABLE_BITS;
/// After 2^PATIENCE misses in a row in a segment, the search steps over one more byte each time.
const PATIENCE: u32 = 5;
/// No run is longer, so that blocks do not get too long.
const MAX_RUN: usize = 1 << 18;
/// No match starts in the last bytes of a stream, so that eight bytes can be loaded at every start.
const LAST_START: usize = 8;

/// Distances that may be the size of a record in an array, and records until the table is asked again, in case there is
/// a longer match further back.
const RECORD_SIZES: std::ops::RangeInclusive<usize> = 8..=32;
const MAX_RECORDS: u32 = 15;

/// Behind a match of this many bytes, data may go on as before after [`MOST_CHANGED`] that changed: the next run of an
/// item that is repeated, or what the match is from. Or they begin with a run that was shorter there.
const LONG: usize = 32;

/// The table, and what was found in the current block.
pub(super) struct Parser {
    /// Where a hash occurred last. Positions are counted from `base`, which rises past all of the streams before, so
    /// that nothing need be cleared between streams and what they left is never found.
    table: Box<[u32; TABLE_LEN]>,
    base: u32,
    /// Where `base` goes for the next stream.
    next_base: u32,
    /// Distance of the last match, which may go on; 0 before the first.
    period: usize,
    /// Whether it is [`LONG`], and ended where the segment did.
    was_long: bool,
}

impl Parser {
    pub(super) fn new() -> Result<Parser> {
        Ok(Parser { table: zeroed_box()?, base: 1, next_base: 1, period: 0, was_long: false })
    }

    /// Begins with the stream `src`; `None` if it is too long.
    pub(super) fn begin(&mut self, src: &[u8]) -> Option<()> {
        let len = u32::try_from(src.len()).ok()?;
        if self.next_base.checked_add(len).is_none() {
            self.table.fill(0);
            self.next_base = 1;
        }
        self.base = self.next_base;
        self.next_base = self.base.checked_add(len)?;
        (self.period, self.was_long) = (0, false);
        Some(())
    }

    #[cfg(test)]
    pub(super) fn set_next_base(&mut self, base: u32) {
        self.next_base = base;
    }

    /// Parses the stream `src` from `start` to `end`, or to the end of a match after it, which it returns. Adds what it
    /// finds to `sequences`, and counts what codes will be needed.
    pub(super) fn parse(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        self.parse_for::<MIN_MATCH>(src, start, end, sequences, counts)
    }

    /// [`parse`](Self::parse) for a tiny stream, as a whole.
    pub(super) fn parse_tiny(&mut self, src: &[u8], sequences: &mut Vec<Sequence>, counts: &mut Counts) {
        self.parse_for::<TINY_MATCH>(src, 0, src.len(), sequences, counts);
    }

    #[inline(always)]
    fn parse_for<const LEAST: usize>(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        let nbefore = sequences.len();
        let anchor = match src.len().checked_sub(LAST_START) {
            Some(last) if start <= last => {
                self.find_matches::<LEAST>(src, start, last.min(end - 1), sequences, counts)
            }
            _ => start,
        };
        if anchor < end {
            sequences.push(Sequence::literals_only(end - anchor));
        }
        let end = anchor.max(end);
        counts.count_literals(&src[start..end], &sequences[nbefore..]);
        end
    }

    /// Finds the matches that begin in `start..=last_start`; returns the end of the last one.
    fn find_matches<const LEAST: usize>(
        &mut self,
        src: &[u8],
        start: usize,
        last_start: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            // SAFETY: the CPU was just asked for AVX2, BMI1, BMI2 and LZCNT.
            return unsafe { self.find_matches_avx2::<LEAST>(src, start, last_start, sequences, counts) };
        }
        self.find_matches_with::<LEAST>(src, start, last_start, sequences, counts)
    }

    /// [`find_matches_with`](Self::find_matches_with), compiled for newer CPUs.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2, BMI1, BMI2 and LZCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn find_matches_avx2<const LEAST: usize>(
        &mut self,
        src: &[u8],
        start: usize,
        last_start: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        self.find_matches_with::<LEAST>(src, start, last_start, sequences, counts)
    }

    /// [`find_matches`](Self::find_matches) with what the caller is compiled for.
    #[inline(always)]
    fn find_matches_with<const LEAST: usize>(
        &mut self,
        src: &[u8],
        start: usize,
        last_start: usize,
        sequences: &mut Vec<Sequence>,
        counts: &mut Counts,
    ) -> usize {
        assert!(start <= last_start && last_start + LAST_START <= src.len());
        let Parser { table, base, period, was_long, .. } = self;
        let limit = src.len().min(last_start + MAX_RUN);
        let (mut anchor, mut at) = (start, start);
        // SAFETY: the period is the distance of a match before, and `start + 8 <= src.len()`.
        let mut next = unsafe {
            if repeats(src, start, *period) {
                Some((start, *period))
            } else if *was_long {
                goes_on(src, start, *period)
            } else {
                None
            }
        };
        *was_long = false;
        loop {
            // SAFETY: eight bytes follow `last_start`.
            let found = next.or_else(|| unsafe { next_match::<LEAST>(table, *base, src, at, last_start) });
            let Some((found, distance)) = found else { return anchor };
            at = found;
            // SAFETY: `distance <= at`, and `at + 8 <= limit`: `at` is at most MOST_CHANGED after `last_start`.
            let match_end = unsafe { extend_long(src, at, distance, limit) };
            // SAFETY: `distance <= at`.
            let match_start = unsafe { extend_back(src, at, distance, anchor) };
            let sequence =
                Sequence::new(match_start - anchor, match_end - match_start, Distance::new(distance));
            counts.count_match(&sequence);
            sequences.push(sequence);
            // SAFETY: `distance <= match_start <= match_end <= limit <= src.len()`.
            let records_end =
                unsafe { find_records(src, match_end, sequence.len(), distance, limit, sequences, counts) };
            (anchor, at) = (records_end, records_end);
            *period = distance;
            let is_long = sequence.len() >= LONG;
            if at > last_start {
                *was_long = is_long;
                return anchor;
            }
            // SAFETY: the match has four bytes or more, and eight follow.
            table[slot::<LEAST>(unsafe { load64(src, at - 2) })] = *base + (at - 2) as u32;
            // SAFETY: `distance <= at`, and eight bytes follow.
            next = if is_long { unsafe { goes_on(src, at, distance) } } else { None };
        }
    }
}

/// Where data go on as before after a long match of `distance` that ends at `at`, and with which distance.
///
/// # Safety
///
/// `1 <= distance <= at`, `at + 8 <= src.len()`.
#[inline(always)]
unsafe fn goes_on(src: &[u8], at: usize, distance: usize) -> Option<(usize, usize)> {
    let behind = at + MOST_CHANGED;
    // SAFETY: eight bytes follow `at`, and `behind`, as just compared.
    unsafe {
        if behind + 8 > src.len() {
            None
        } else if repeats(src, at, 1) {
            Some((at, 1))
        } else if repeats(src, behind, distance) {
            Some((behind, distance))
        } else {
            None
        }
    }
}

/// Looks for the next match that begins from `at` up to `last_start`: at least LEAST bytes that agree with those where
/// their hash occurred last. All positions that are looked at are put into `table`, counted from `base`. Returns where
/// the match begins, and its distance.
///
/// # Safety
///
/// `last_start + 8 <= src.len()`.
#[inline(always)]
unsafe fn next_match<const LEAST: usize>(
    table: &mut [u32; TABLE_LEN],
    base: u32,
    src: &[u8],
    at: usize,
    last_start: usize,
) -> Option<(usize, usize)> {
    // The step is taken from a count that does not depend on it, one probe ahead.
    let mut steps = 1_usize << PATIENCE;
    let mut next = at;
    while next <= last_start {
        let at = next;
        next += steps >> PATIENCE;
        steps += 1;
        // SAFETY: `at <= last_start`.
        let bytes = unsafe { load64(src, at) };
        let entry = &mut table[slot::<LEAST>(bytes)];
        let now = base + at as u32; // `begin` saw that this is below 2^32
        let distance = (now - *entry) as usize;
        *entry = now;
        if distance <= at.min(MAX_DISTANCE) {
            // SAFETY: `distance <= at`, so the candidate lies in `src` before `at`, or is `at` itself.
            let differing = bytes ^ unsafe { load64(src, at - distance) };
            if differing << (64 - 8 * LEAST) == 0 && distance > 0 {
                return Some((at, distance));
            }
        }
    }
    None
}

/// Whether eight bytes at `at` are those `period` bytes before; not if that is 0.
///
/// # Safety
///
/// `period <= at`, `at + 8 <= src.len()`.
#[inline(always)]
unsafe fn repeats(src: &[u8], at: usize, period: usize) -> bool {
    // SAFETY: the caller's promise.
    period > 0 && unsafe { load64(src, at) == load64(src, at - period) }
}

/// Goes on after a match that ends at `at` as long as the data look like an array of records: where each time the same
/// part of a record of `distance` bytes agrees with the record before. The table is left alone then. Returns the end of
/// the last match; none reaches beyond `limit`.
///
/// # Safety
///
/// `distance <= at <= limit <= src.len()`.
#[inline(always)]
unsafe fn find_records(
    src: &[u8],
    mut at: usize,
    mut len: usize,
    distance: usize,
    limit: usize,
    sequences: &mut Vec<Sequence>,
    counts: &mut Counts,
) -> usize {
    let mut left = MAX_RECORDS;
    while RECORD_SIZES.contains(&distance) && len < distance && at + 32 <= limit && left > 0 {
        left -= 1;
        // SAFETY: `at + 32 <= limit`, and `distance <= at`.
        let same = unsafe { same_bytes(src, at, at - distance) };
        // A bit for each position from which at least six bytes (MIN_MATCH) agree.
        let pairs = same & same >> 1;
        let sixes = pairs & pairs >> 2 & pairs >> 4;
        let skip = sixes.trailing_zeros() as usize;
        if sixes == 0 || len + skip != distance {
            break;
        }
        len = (!(same >> skip)).trailing_zeros() as usize;
        if skip + len == 32 {
            // SAFETY: `skip + len` is 32.
            len = unsafe { extend_long(src, at + 32, distance, limit) } - at - skip;
        }
        let sequence = Sequence::new(skip, len, Distance::new(distance));
        counts.count_match(&sequence);
        sequences.push(sequence);
        at += skip + len;
    }
    at
}

/// Table index for the first LEAST bytes of `bytes`.
#[inline(always)]
fn slot<const LEAST: usize>(bytes: u64) -> usize {
    // TABLE_BITS bits are left after the shift.
    ((bytes << (64 - 8 * LEAST)).wrapping_mul(HASH_PRIME) >> (64 - TABLE_BITS)) as usize
}
