//! A look at samples of a stream: how many bits a literal takes, and how often matches save some.

use super::counts::literal_bits;
use super::worth::Worth;
use crate::codecs::agree::extend_long;
use crate::codecs::mem::{HASH_PRIME, load64};
use std::ops::Range;

/// How many samples are taken.
const SAMPLES: usize = 16;
/// Bytes of a sample.
const SAMPLE: usize = 512;
/// Bytes of a sample whose values are counted.
const COUNTED: usize = 256;
/// Shorter streams have fewer parts.
const SHORTEST_PART: usize = 4 << 10;
/// log2 of the number of positions that are remembered.
const TABLE_BITS: u32 = 10;
/// Where most bytes are the same, so that literals have so few bits, in sixteenths, there are many more matches than
/// samples show: one every this many bytes is often.
const SKEWED: usize = 28;
const OFTEN_THERE: usize = 60;
/// Where nearly all bytes are the same, so that literals have less than 17/16 bits, matches always count as
/// few: the thorough search is twice as fast as others there, and its streams are up to a tenth smaller.
const ALL_SAME: usize = 16;
/// Distance of matches that are near.
const NEAR: usize = 8;
/// With a match every this many bytes, or more often, an encoder spends its time with matches rather than in between.
const OFTEN: usize = 25;
/// In streams of different parts, as of transposed bits, all matches are in some of them. Where some parts are skewed,
/// and literals in others take as many bits as this, in sixteenths, which is much but not yet noise, each match there
/// counts as MATCH_THERE in place of MATCH.
const RICH: Range<usize> = 80..118;
const MATCH_THERE: usize = 8;
const MATCH: usize = 5;

/// The stream has up to this many parts, as shuffled data change from part to part; samples of one tell what literals
/// are like there.
const PARTS: usize = 8;

/// What samples tell of a stream.
pub(in super::super) struct Probe {
    /// How many bits a literal takes in each part if there are no matches, in sixteenths.
    literal_bits: [usize; PARTS],
    /// Length of a part.
    part_len: usize,
    has_few_matches: bool,
}

impl Probe {
    /// Looks at `src`.
    #[inline(never)] // what is first needed, such as a cell's value, is compiled as if it hardly ever were
    pub(in super::super) fn of(src: &[u8]) -> Probe {
        let distance = src.len().div_ceil(SAMPLES).max(SAMPLE);
        let nsamples = (SAMPLES / PARTS).max(SHORTEST_PART.div_ceil(distance));
        let part_len = nsamples * distance;
        let mut probe = Probe { literal_bits: [0; PARTS], part_len, has_few_matches: true };
        let mut table = [0; 1 << TABLE_BITS];
        // As many as may be found, which takes little time if there are many.
        let most = src.len().min(SAMPLES * SAMPLE) / OFTEN;
        let (mut left, mut are_same) = (Some(most), true);
        let (mut some_are_skewed, mut weight) = (false, 0);
        for (bits, part) in probe.literal_bits.iter_mut().zip((0..src.len()).step_by(part_len)) {
            let starts = (part..src.len()).step_by(distance).take(nsamples);
            let samples = starts.map(|start| start..src.len().min(start + SAMPLE));
            *bits = literal_bits(&counts(samples.clone().map(|sample| &src[sample])));
            are_same &= *bits <= ALL_SAME;
            some_are_skewed |= *bits <= SKEWED;
            let worth = Worth::of_frequent(*bits);
            let before = left;
            for sample in samples {
                left = left.and_then(|left| count_down(left, src, sample, worth, &mut table));
            }
            let found = before.unwrap_or(0) - left.unwrap_or(0);
            weight += found * if RICH.contains(bits) { MATCH_THERE } else { MATCH };
            if left.is_none() && !are_same {
                return Probe { has_few_matches: false, ..probe };
            }
        }
        let is_skewed = probe.literal_bits.iter().all(|&bits| bits <= SKEWED);
        let are_often = |left| {
            is_skewed && most - left > most * OFTEN / OFTEN_THERE || some_are_skewed && weight > MATCH * most
        };
        probe.has_few_matches = are_same || left.is_some_and(|left| !are_often(left));
        probe
    }

    /// The number of the part that `at` is in.
    pub(super) fn part(&self, at: usize) -> usize {
        at / self.part_len
    }

    /// How many bits a literal takes in a part, in sixteenths, if matches are few.
    pub(super) fn literal_bits(&self, part: usize) -> usize {
        self.literal_bits[part]
    }

    /// How many bits a literal takes at the beginning, in sixteenths, even if matches are many.
    pub(in super::super) fn first_literal_bits(&self) -> usize {
        self.literal_bits[0]
    }

    /// Whether matches that save bits are rare, or so long that there are few.
    pub(in super::super) fn has_few_matches(&self) -> bool {
        self.has_few_matches
    }
}

/// How often bytes occur at the beginnings of samples.
fn counts<'a>(samples: impl Iterator<Item = &'a [u8]>) -> [u32; 256] {
    // Incrementing the same number twice in a row takes long.
    let (mut counts, mut others) = ([0; 256], [0; 256]);
    for sample in samples {
        for pair in sample[..sample.len().min(COUNTED)].chunks(2) {
            counts[usize::from(pair[0])] += 1;
            others[usize::from(pair[pair.len() - 1])] += 1; // an odd one counts twice
        }
    }
    counts.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
    counts
}

/// Counts down from `left` for each match worth its bits that a greedy search finds in a sample, with positions from
/// earlier samples in the table; `None` if there are more.
#[inline(never)] // its loop needs all registers
fn count_down(
    mut left: usize,
    src: &[u8],
    sample: Range<usize>,
    worth: Worth,
    table: &mut [u32; 1 << TABLE_BITS],
) -> Option<usize> {
    // As many bytes are hashed, and must agree, as make it worth while from nearby.
    let shift = 64 - 8 * worth.shortest(NEAR).clamp(3, 8) as u32; // below 64
    let (mut at, end) = (sample.start, sample.end);
    while at + 8 <= end {
        // SAFETY: `at + 8 <= end`, which is not beyond `src`.
        let bytes = unsafe { load64(src, at) } << shift;
        let slot = bytes.wrapping_mul(HASH_PRIME) >> (64 - TABLE_BITS); // below the table's length
        // Of streams of 4 GiB and more, only a part of the position is kept: something before `at` as well.
        let candidate = std::mem::replace(&mut table[slot as usize], at as u32) as usize;
        // SAFETY: just compared: `candidate` is before `at`.
        if candidate < at && unsafe { load64(src, candidate) } << shift == bytes {
            // SAFETY: `candidate < at <= end <= src.len()`.
            let match_end = unsafe { extend_long(src, at, at - candidate, end) };
            if worth.saved(match_end - at, at - candidate) > 0 {
                // Runs are found without a search.
                left = left.checked_sub(usize::from(candidate + 1 < at))?;
                at = match_end;
                continue;
            }
        }
        at += 1;
    }
    Some(left)
}
