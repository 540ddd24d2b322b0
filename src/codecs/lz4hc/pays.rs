//! Which streams our encoder compresses faster than the reference.
//!
//! Where groups of four bytes hardly ever occur again, as in noise and in the lower bytes of shuffled numbers, finding that out is
//! all that there is to do, and our encoder does it twice as fast. Where many of them do, both have as many candidates to look
//! at; and the inside of long matches, which is not looked at, has to be sorted by ours all the same.

use std::array;

/// Bytes of a sample.
const SAMPLE: usize = 1 << 10;
/// Bytes of the stream for each sample, if that makes no more than [`MOST`].
const PER_SAMPLE: usize = 16 << 10;
const MOST: usize = 8;
/// Groups in a sample that occur again, at most, where there are few matches. In the reach of a match, which is 64 times as
/// long, as many are found for each position.
const FEW: usize = 24;
const SLOT_BITS: u32 = 11;

/// Whether there are few matches in half of the stream at least.
pub(super) fn pays(src: &[u8]) -> bool {
    let samples = (src.len() / PER_SAMPLE).clamp(1, MOST);
    let stride = src.len() / samples;
    let starts = (0..samples).map(|i| i * stride + stride / 2);
    let few =
        starts.filter_map(|start| src.get(start..start + SAMPLE)).filter(|sample| repeated(sample) <= FEW);
    few.count() * 2 >= samples
}

/// How many groups of four bytes were there before, in the sample; nearly all of them are noticed.
fn repeated(sample: &[u8]) -> usize {
    // The last one of those with the same hash.
    let mut last = [0; 1 << SLOT_BITS];
    let groups = sample.windows(4).map(|bytes| u32::from_le_bytes(array::from_fn(|i| bytes[i])));
    groups
        .filter(|&group| {
            let slot = group.wrapping_mul(2_654_435_761) >> (u32::BITS - SLOT_BITS);
            std::mem::replace(&mut last[slot as usize], group) == group
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, repetitive};

    #[test]
    fn noise_pays_and_repetitions_do_not() {
        for n in [SAMPLE, 5000, 16 << 10, 100_000, 1 << 20] {
            assert!(n < 5000 || pays(&Random::new(1).bytes(n)), "{n} bytes");
            assert!(!pays(&repetitive(1, n)), "{n} bytes");
            assert!(!pays(&vec![0; n]), "{n} bytes");
        }
    }

    #[test]
    fn repeated_groups_are_counted() {
        assert_eq!(repeated(&[7; 100]), 96);
        assert_eq!(repeated(b"abcdefgh-abcde+bcdef"), 4);
        assert_eq!(repeated(&Random::new(2).bytes(SAMPLE)), 0);
    }
}
