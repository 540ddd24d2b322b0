//! What seems to be noise may be repeated from further back than a quick search sees.

use super::sequence::MAX_DISTANCE;
use crate::codecs::mem::{HASH_PRIME, load64};

/// log2 of the number of positions that are remembered, those at which the hash of the bytes ends with SAMPLED zeros:
/// as many as there are in the window.
const TABLE_BITS: u32 = MAX_DISTANCE.ilog2() - SAMPLED;
const SAMPLED: u32 = 4;
/// Bytes that are hashed and compared.
const WORD: usize = 8;

/// Where the first of the first `len` bytes of `src` are that a match may repeat, there or after; `len` if there are
/// none. Of repetitions of some words, most are found.
pub(super) fn repeated_from(src: &[u8], len: usize) -> usize {
    let mut first = len;
    // The start for what was never seen.
    let mut table = [0_u32; 1 << TABLE_BITS];
    let mut at = 1;
    while at + WORD <= src.len().min(first + MAX_DISTANCE) {
        // SAFETY: `at + 8` is not beyond `src`, as just compared.
        let bytes = unsafe { load64(src, at) };
        let hash = bytes.wrapping_mul(HASH_PRIME) >> (64 - TABLE_BITS - SAMPLED);
        if hash % (1 << SAMPLED) == 0 {
            let slot = (hash >> SAMPLED) as usize; // below the table's length
            let candidate = table[slot] as usize;
            table[slot] = at as u32; // streams are below 2 GiB
            // SAFETY: the candidate is before `at`.
            let is_repeated = bytes == unsafe { load64(src, candidate) };
            if is_repeated && candidate < first && at - candidate <= MAX_DISTANCE {
                first = candidate;
            }
        }
        at += 1;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn repetitions_are_found_as_far_as_matches_reach() {
        let mut below = testing::below(1);
        let noise: Vec<u8> = (0..100_000).map(|_| below(256) as u8).collect();
        assert_eq!(repeated_from(&noise, 80_000), 80_000);
        for (from, to, len, is_found) in [
            (20_000, 50_000, 200, true),
            (20_000, 52_600, 200, true),
            (20_000, 53_000, 200, false),
            // Behind the noise.
            (60_000, 85_000, 200, true),
            (85_000, 90_000, 200, false),
        ] {
            let mut bytes = noise.clone();
            bytes.copy_within(from..from + len, to);
            let first = repeated_from(&bytes, 80_000);
            assert_eq!((from..from + len).contains(&first), is_found, "{from} at {to}: {first}");
            assert!(is_found || first == 80_000);
        }
    }
}
