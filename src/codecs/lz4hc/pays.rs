//! Which streams our encoder compresses faster than the reference.
//!
//! Where groups of four bytes hardly ever occur again, as in noise and in the lower bytes of shuffled numbers, finding that out is
//! all that there is to do, and our encoder does it twice as fast. Where many of them do, both have as many candidates to look
//! at; and the inside of long matches, which is not looked at, has to be sorted by ours all the same.

use std::array;

/// In shorter streams, the tables of the reference stay in the nearest cache, and the index of ours takes much of the time.
const MIN_INPUT: usize = 128 << 10;
/// Bytes of a sample.
const SAMPLE: usize = 1 << 10;
/// Samples of a stream.
const SAMPLES: usize = 8;
/// Groups in a sample that occur again, at most, where there are few matches. In the reach of a match, which is 64 times as
/// long, as many are found for each position.
const FEW: usize = 24;
/// Groups are told apart by so many bits of a hash.
const SLOT_BITS: u32 = 11;

/// Whether the stream is long, and there are few matches in half of it at least.
pub(super) fn pays(src: &[u8]) -> bool {
    if src.len() < MIN_INPUT {
        return false;
    }
    let few = src.chunks_exact(src.len() / SAMPLES).filter(|part| repeated(&part[..SAMPLE]) <= FEW);
    few.count() * 2 >= SAMPLES
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
        for n in [0, MIN_INPUT - 1, MIN_INPUT, MIN_INPUT + 7, 1 << 20] {
            assert_eq!(pays(&Random::new(1).bytes(n)), n >= MIN_INPUT, "{n} bytes");
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
