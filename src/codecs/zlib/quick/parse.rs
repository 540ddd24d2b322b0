//! The search for matches: greedy, with one candidate per position, from a hash table of positions.

use super::huffman::Counts;
use crate::codecs::agree::{extend_back, extend_long, same_bytes};
use crate::codecs::mem::load64;

/// The largest distance of a match.
const MAX_DISTANCE: usize = 32 << 10;
/// The longest match that one code stands for, and the shortest.
pub(super) const MAX_PIECE: usize = 258;
pub(super) const MIN_PIECE: usize = 3;
/// Shortest agreement that makes a match. Shorter ones save few bits, if any, and take as long to write as others.
const MIN_MATCH: usize = 6;
/// log2 of the number of positions that are remembered.
const TABLE_BITS: u32 = 12;
const TABLE_LEN: usize = 1 << TABLE_BITS;
/// After 2^PATIENCE misses in a row, the search steps over one more byte each time.
const PATIENCE: u32 = 5;
/// No match starts in the last bytes of a block, so that eight bytes can be loaded at every start.
const LAST_START: usize = 12;

/// Distances that may be the size of a record in an array, and records until the table is asked again, in case there is a
/// longer match further back.
const RECORD_SIZES: std::ops::RangeInclusive<usize> = 8..=32;
const MAX_RECORDS: u32 = 15;

/// Literals, and a match after them.
#[derive(Clone, Copy)]
pub(super) struct Sequence {
    literals: u32,
    /// Length of the match; 0 if the block ends with the literals.
    len: u32,
    distance: Distance,
}

/// A distance as it is coded.
#[derive(Clone, Copy, Default)]
pub(super) struct Distance {
    pub(super) symbol: u8,
    /// Number of bits behind the symbol, and the bits.
    pub(super) extra_len: u8,
    pub(super) extra: u16,
}

impl Distance {
    /// The parts of a distance, 1 to MAX_DISTANCE.
    #[inline(always)]
    pub(super) fn new(distance: usize) -> Distance {
        let d = distance as u32 - 1; // up to MAX_DISTANCE
        if d < 4 {
            return Distance { symbol: d as u8, extra_len: 0, extra: 0 };
        }
        let log = d.ilog2();
        let extra_len = log - 1;
        let symbol = 2 * log + (d >> extra_len & 1);
        // A number below 30, one up to 13, and so many bits.
        Distance {
            symbol: symbol as u8,
            extra_len: extra_len as u8,
            extra: (d & ((1 << extra_len) - 1)) as u16,
        }
    }
}

impl Sequence {
    /// Number of literals.
    #[inline(always)]
    pub(super) fn literals(&self) -> usize {
        self.literals as usize
    }

    /// Length of the match.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Distance of the match; of no meaning if there is none.
    #[inline(always)]
    pub(super) fn distance(&self) -> Distance {
        self.distance
    }

    /// Lengths that codes stand for, and add up to that of the match.
    #[inline(always)]
    pub(super) fn pieces(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.len as usize;
        std::iter::from_fn(move || {
            let piece = match left {
                0 => return None,
                MIN_PIECE..=MAX_PIECE => left,
                // Too little would be left for another code.
                _ if left < MAX_PIECE + MIN_PIECE => left - MIN_PIECE,
                _ => MAX_PIECE,
            };
            left -= piece;
            Some(piece)
        })
    }
}

/// The table, and what was found in the current block.
pub(super) struct Parser {
    /// Where a hash occurred last. Positions are counted from `base`, which rises past all of the streams before, so that
    /// nothing need be cleared between streams and what they left is never found.
    table: Box<[u32; TABLE_LEN]>,
    base: u32,
    /// Where `base` goes for the next stream.
    next_base: u32,
    sequences: Vec<Sequence>,
    /// How many matches of the current block the table gave.
    nfound: usize,
}

impl Parser {
    pub(super) fn new() -> Parser {
        let table =
            vec![0; TABLE_LEN].into_boxed_slice().try_into().expect("the length is that of the array");
        Parser { table, base: 1, next_base: 1, sequences: Vec::new(), nfound: 0 }
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
        Some(())
    }

    /// How many matches of the block parsed last the table gave; others were where the one before let expect them.
    pub(super) fn nfound(&self) -> usize {
        self.nfound
    }

    #[cfg(test)]
    pub(super) fn set_next_base(&mut self, base: u32) {
        self.next_base = base;
    }

    /// Parses the bytes `start..end` of the stream `src`, with those before as history. Counts what codes will be needed
    /// for the matches.
    pub(super) fn parse(&mut self, src: &[u8], start: usize, end: usize, counts: &mut Counts) -> &[Sequence] {
        self.sequences.clear();
        self.nfound = 0;
        let mut anchor = start;
        if end - start >= LAST_START {
            anchor = self.find_matches(src, start, end, counts);
        }
        let literals = (end - anchor) as u32; // below 2^16
        self.sequences.push(Sequence { literals, len: 0, distance: Distance::default() });
        &self.sequences
    }

    /// Finds the matches in `start..end`; returns the end of the last one.
    fn find_matches(&mut self, src: &[u8], start: usize, end: usize, counts: &mut Counts) -> usize {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            // SAFETY: the CPU was just asked for AVX2 and BMI2.
            return unsafe { self.find_matches_avx2(src, start, end, counts) };
        }
        self.find_matches_with(src, start, end, counts)
    }

    /// [`find_matches_with`](Self::find_matches_with), compiled for newer CPUs.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2 and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn find_matches_avx2(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        counts: &mut Counts,
    ) -> usize {
        self.find_matches_with(src, start, end, counts)
    }

    /// [`find_matches`](Self::find_matches) with what the caller is compiled for.
    #[inline(always)]
    fn find_matches_with(&mut self, src: &[u8], start: usize, end: usize, counts: &mut Counts) -> usize {
        assert!(end <= src.len() && start + LAST_START <= end);
        let Parser { table, base, sequences, nfound, .. } = self;
        let last_start = end - LAST_START;
        let (mut anchor, mut at) = (start, start);
        loop {
            // The step is taken from a count that does not depend on it, one probe ahead.
            let mut steps = 1_usize << PATIENCE;
            let mut next = at;
            let distance = loop {
                at = next;
                if at > last_start {
                    return anchor;
                }
                next += steps >> PATIENCE;
                steps += 1;
                // SAFETY: `at + 12 <= src.len()`.
                let bytes = unsafe { load64(src, at) };
                let entry = &mut table[slot(bytes)];
                let now = *base + at as u32; // `begin` saw that this is below 2^32
                let distance = (now - *entry) as usize;
                *entry = now;
                if distance <= at.min(MAX_DISTANCE) {
                    // SAFETY: `distance <= at`, so the candidate lies in `src` before `at`, or is `at` itself.
                    let differing = bytes ^ unsafe { load64(src, at - distance) };
                    if differing << (64 - 8 * MIN_MATCH) == 0 && distance > 0 {
                        break distance;
                    }
                }
            };
            // SAFETY: `distance <= at`, and `at + 8 <= end`.
            let match_end = unsafe { extend_long(src, at, distance, end) };
            // SAFETY: `distance <= at`.
            let match_start = unsafe { extend_back(src, at, distance, anchor) };
            let sequence = Sequence {
                literals: (match_start - anchor) as u32, // below 2^16, as is the other length
                len: (match_end - match_start) as u32,
                distance: Distance::new(distance),
            };
            counts.count_match(&sequence);
            sequences.push(sequence);
            *nfound += 1;
            // SAFETY: `distance <= match_start <= match_end <= end <= src.len()`.
            let records_end =
                unsafe { find_records(src, match_end, sequence.len(), distance, end, sequences, counts) };
            (anchor, at) = (records_end, records_end);
            if at > last_start {
                return anchor;
            }
            // SAFETY: the match has six bytes, and twelve follow.
            table[slot(unsafe { load64(src, at - 2) })] = *base + (at - 2) as u32;
        }
    }
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
        let sequence = Sequence { literals: skip as u32, len: len as u32, distance: Distance::new(distance) };
        counts.count_match(&sequence);
        sequences.push(sequence);
        at += skip + len;
    }
    at
}

/// Table index for the first MIN_MATCH bytes of `bytes`.
#[inline(always)]
fn slot(bytes: u64) -> usize {
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    // TABLE_BITS bits are left after the shift.
    ((bytes << (64 - 8 * MIN_MATCH)).wrapping_mul(PRIME) >> (64 - TABLE_BITS)) as usize
}
