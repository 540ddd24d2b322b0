//! A look at samples of a stream: how often there are matches.

use crate::codecs::agree::extend_long;
use crate::codecs::mem::load64;

/// Samples of this many bytes.
const SAMPLES: usize = 16;
const SAMPLE: usize = 512;
/// log2 of the number of positions that are remembered.
const TABLE_BITS: u32 = 10;
/// With a match every this many bytes, or more often, an encoder spends its time with matches rather than in between.
const OFTEN: usize = 25;

/// Whether matches of three bytes and more are rare in `src`, or so long that there are few.
pub(in super::super) fn has_few_matches(src: &[u8]) -> bool {
    let distance = (src.len() / SAMPLES).max(SAMPLE);
    let mut table = [0; 1 << TABLE_BITS];
    // As many as may be found, which takes little time if there are many.
    let mut left = src.len().min(SAMPLES * SAMPLE) / OFTEN;
    for start in (0..src.len()).step_by(distance).take(SAMPLES) {
        match count_down(left, src, start, src.len().min(start + SAMPLE), &mut table) {
            Some(n) => left = n,
            None => return false,
        }
    }
    true
}

/// Counts down from `left` for each match that a greedy search finds in `start..end`, with positions from earlier samples in
/// the table; `None` if there are more.
fn count_down(
    mut left: usize,
    src: &[u8],
    start: usize,
    end: usize,
    table: &mut [u32; 1 << TABLE_BITS],
) -> Option<usize> {
    let mut at = start;
    while at + 8 <= end {
        // SAFETY: `at + 8 <= end`, which is not beyond `src`.
        let bytes = unsafe { load64(src, at) } << 40;
        let slot = bytes.wrapping_mul(0x9e37_79b1_85eb_ca87) >> (64 - TABLE_BITS); // below the table's length
        // Of streams of 4 GiB and more, only a part of the position is kept: something before `at` as well.
        let candidate = std::mem::replace(&mut table[slot as usize], at as u32) as usize;
        // SAFETY: just compared: `candidate` is before `at`.
        if candidate < at && unsafe { load64(src, candidate) } << 40 == bytes {
            left = left.checked_sub(1)?;
            // SAFETY: `candidate < at <= end <= src.len()`.
            at = unsafe { extend_long(src, at, at - candidate, end) };
        } else {
            at += 1;
        }
    }
    Some(left)
}
