//! The quick search where matches are few: greedy, with one candidate per position, from a hash table of positions.

use super::counts::Counts;
use super::sequence::{Distance, MAX_DISTANCE, Sequence};
use super::{MOST_CHANGED, RAW_BLOCK, TINY};
use crate::codecs::agree::{extend_back, extend_long, same_bytes};
use crate::codecs::mem::load64;
use crate::error::Result;
use crate::memory::{with_capacity, zeroed_box};

/// Shortest agreement that makes a match. Shorter ones save few bits, if any, and take as long to write as others.
const MIN_MATCH: usize = 6;
/// The same in tiny blocks: with the fixed codes, and distances as short as they are there, it saves bits.
const TINY_MATCH: usize = 4;
/// log2 of the number of positions that are remembered.
const TABLE_BITS: u32 = 12;
const TABLE_LEN: usize = 1 << TABLE_BITS;
/// After 2^PATIENCE misses in a row, the search steps over one more byte each time.
const PATIENCE: u32 = 5;
/// No match starts in the last bytes of a block, so that eight bytes can be loaded at every start.
const LAST_START: usize = 8;

/// Distances that may be the size of a record in an array, and records until the table is asked again, in case there is a
/// longer match further back.
const RECORD_SIZES: std::ops::RangeInclusive<usize> = 8..=32;
const MAX_RECORDS: u32 = 15;

/// Behind a match of so many bytes, data may go on as before after [`MOST_CHANGED`] that changed: the next run of an item that
/// is repeated, or what the match is from. Or they begin with a run that was shorter there.
const LONG: usize = 32;

/// The table, and what was found in the current block.
pub(super) struct Parser {
    /// Where a hash occurred last. Positions are counted from `base`, which rises past all of the streams before, so that
    /// nothing need be cleared between streams and what they left is never found.
    table: Box<[u32; TABLE_LEN]>,
    base: u32,
    /// Where `base` goes for the next stream.
    next_base: u32,
    /// Distance of the last match, which may go on; 0 before the first.
    period: usize,
    sequences: Vec<Sequence>,
}

impl Parser {
    pub(super) fn new() -> Result<Parser> {
        let sequences = with_capacity(RAW_BLOCK / MIN_MATCH + 1)?;
        Ok(Parser { table: zeroed_box()?, base: 1, next_base: 1, period: 0, sequences })
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
        self.period = 0;
        Some(())
    }

    #[cfg(test)]
    pub(super) fn set_next_base(&mut self, base: u32) {
        self.next_base = base;
    }

    /// Parses the bytes `start..end` of the stream `src`, with those before as history. Counts what codes will be needed
    /// for the matches.
    pub(super) fn parse(&mut self, src: &[u8], start: usize, end: usize, counts: &mut Counts) -> &[Sequence] {
        self.sequences.clear();
        let mut anchor = start;
        if end - start >= LAST_START {
            anchor = if end - start < TINY {
                self.find_matches::<TINY_MATCH>(src, start, end, counts)
            } else {
                self.find_matches::<MIN_MATCH>(src, start, end, counts)
            };
        }
        self.sequences.push(Sequence::literals_only(end - anchor));
        &self.sequences
    }

    /// Finds the matches in `start..end`; returns the end of the last one.
    fn find_matches<const LEAST: usize>(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        counts: &mut Counts,
    ) -> usize {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            // SAFETY: the CPU was just asked for AVX2, BMI1, BMI2 and LZCNT.
            return unsafe { self.find_matches_avx2::<LEAST>(src, start, end, counts) };
        }
        self.find_matches_with::<LEAST>(src, start, end, counts)
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
        end: usize,
        counts: &mut Counts,
    ) -> usize {
        self.find_matches_with::<LEAST>(src, start, end, counts)
    }

    /// [`find_matches`](Self::find_matches) with what the caller is compiled for.
    #[inline(always)]
    fn find_matches_with<const LEAST: usize>(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        counts: &mut Counts,
    ) -> usize {
        assert!(end <= src.len() && start + LAST_START <= end);
        let Parser { table, base, period, sequences, .. } = self;
        let last_start = end - LAST_START;
        let (mut anchor, mut at) = (start, start);
        // The block before may have ended in a match.
        // SAFETY: the period is the distance of a match before, and `start + 8 <= src.len()`.
        let mut goes_on = unsafe { repeats(src, start, *period) };
        loop {
            let distance = if goes_on {
                *period
            } else {
                // SAFETY: eight bytes follow `last_start`.
                let next = unsafe { next_match::<LEAST>(table, *base, src, at, last_start) };
                let Some((found, distance)) = next else { return anchor };
                at = found;
                distance
            };
            // SAFETY: `distance <= at`, and `at + 8 <= end`.
            let match_end = unsafe { extend_long(src, at, distance, end) };
            // SAFETY: `distance <= at`.
            let match_start = unsafe { extend_back(src, at, distance, anchor) };
            let sequence =
                Sequence::new(match_start - anchor, match_end - match_start, Distance::new(distance));
            counts.count_match(&sequence);
            sequences.push(sequence);
            // SAFETY: `distance <= match_start <= match_end <= end <= src.len()`.
            let records_end =
                unsafe { find_records(src, match_end, sequence.len(), distance, end, sequences, counts) };
            (anchor, at) = (records_end, records_end);
            *period = distance;
            if at > last_start {
                return anchor;
            }
            // SAFETY: the match has four bytes or more, and eight follow.
            table[slot::<LEAST>(unsafe { load64(src, at - 2) })] = *base + (at - 2) as u32;
            let behind = at + MOST_CHANGED;
            goes_on = false;
            if sequence.len() >= LONG && behind <= last_start {
                // SAFETY: `1 <= at`, and eight bytes follow.
                let in_run = unsafe { repeats(src, at, 1) };
                // SAFETY: `distance <= at`, and eight bytes follow `behind`.
                goes_on = in_run || unsafe { repeats(src, behind, distance) };
                if in_run {
                    *period = 1;
                } else if goes_on {
                    at = behind;
                }
            }
        }
    }
}

/// Looks for the next match that begins from `at` up to `last_start`: at least LEAST bytes that agree with those where their
/// hash occurred last. All positions that are looked at are put into `table`, counted from `base`. Returns where the match
/// begins, and its distance.
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

/// Goes on behind a match that ends at `at` as long as the data look like an array of records: where each time the same
/// part of a record of `distance` bytes agrees with the record before. The table is left alone then. Returns the end of the
/// last match; none reaches beyond `limit`.
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
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    // TABLE_BITS bits are left after the shift.
    ((bytes << (64 - 8 * LEAST)).wrapping_mul(PRIME) >> (64 - TABLE_BITS)) as usize
}
