//! Which streams are compressed faster with the index than with chains.
//!
//! Where groups of four bytes hardly ever occur again, as in noise and in the lower bytes of shuffled numbers, finding
//! that out is all that there is to do, which the index does about twice as fast: it does not guess how many candidates
//! there are. Where many of them do, making it takes longer than all else, as it has the inside of long matches, too,
//! which is not looked at.

use crate::codecs::mem::HASH_PRIME_32;
use std::array;

/// In shorter streams, chains stay in the nearest cache, and making the index takes much of the time.
const MIN_INPUT: usize = 32 << 10;
/// From this length on, looking at larger samples does not take long beside the rest.
const LONG: usize = 64 << 10;
/// Bytes of a sample of a stream that is [`LONG`]; of others it is half of that.
const SAMPLE: usize = 1 << 10;
/// Samples of a stream.
const SAMPLES: usize = 16;
/// A sample has few matches if at most one of this many groups occurs again in it. Matches reach back 64 times as far
/// as the longer samples are long: there, this comes to one or two candidates for each position.
const FEW: usize = 42;
/// At most one of this many groups may have been in the sample before. If there are more, the stream repeats itself at
/// a distance that no sample covers: it has many matches, though each sample alone has few.
const FEW_FAR: usize = 10;
/// Groups are told apart by this many bits of a hash.
const SLOT_BITS: u32 = 11;

/// Whether the stream is long enough, and there are few matches in enough of it.
pub(super) fn index_pays(src: &[u8]) -> bool {
    if src.len() < MIN_INPUT {
        return false;
    }
    let mut needed = needed(src.len());
    let sample = if src.len() < LONG { SAMPLE / 2 } else { SAMPLE };
    let mut last = [(0, 0); 1 << SLOT_BITS];
    for (n, part) in src.chunks_exact(src.len() / SAMPLES).take(SAMPLES).enumerate() {
        // Not at the same place in each: what was shuffled changes its kind at regular distances. Multiples of the
        // golden ratio are spread evenly.
        let at = (part.len() - sample) * (n * 40_503 % 65_536) / 65_536;
        needed -= usize::from(has_few(&part[at..at + sample], n as u32 + 2, &mut last)); // below 16
        let left = SAMPLES - 1 - n;
        if needed == 0 || needed > left {
            break;
        }
    }
    needed == 0
}

/// The samples in which there must be few matches, in a stream of `n` bytes. Measured on some forty kinds of data, on a
/// CPU with a nearer cache of 512 KiB: the longer the streams, the more often chains are waited for.
fn needed(n: usize) -> usize {
    if n < 2 * LONG { 12 } else { 9 }
}

/// The last groups with each hash, and the number of the sample that each was in.
type Last = [(u32, u32); 1 << SLOT_BITS];

/// Whether sample `n` has few matches: at most one of [`FEW`] groups of four bytes occurs in it again, and at most one
/// of [`FEW_FAR`] was in the sample before. Nearly all of these groups are noticed.
fn has_few(sample: &[u8], n: u32, last: &mut Last) -> bool {
    let (mut near, mut far) = (sample.len() / FEW, sample.len() / FEW_FAR);
    for bytes in sample.windows(4) {
        let group = u32::from_le_bytes(array::from_fn(|i| bytes[i]));
        let slot = group.wrapping_mul(HASH_PRIME_32) >> (u32::BITS - SLOT_BITS);
        let (earlier, number) = std::mem::replace(&mut last[slot as usize], (group, n));
        let left = match n - number {
            0 if earlier == group => &mut near,
            1 if earlier == group => &mut far,
            _ => continue,
        };
        if *left == 0 {
            return false;
        }
        *left -= 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, repetitive};

    #[test]
    #[cfg_attr(miri, ignore = "nothing is unsafe here, and it takes long")]
    fn noise_pays_and_repetitions_do_not() {
        for n in [0, MIN_INPUT - 1, MIN_INPUT, MIN_INPUT + 7, 1 << 20] {
            assert_eq!(index_pays(&Random::new(1).bytes(n)), n >= MIN_INPUT, "{n} bytes");
            assert!(!index_pays(&repetitive(1, n)), "{n} bytes");
            assert!(!index_pays(&vec![0; n]), "{n} bytes");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "nothing is unsafe here, and it takes long")]
    fn the_longer_a_stream_is_the_more_of_it_may_repeat() {
        for (n, least) in [(0x8000, 12), (0xfff0, 12), (0x1_fff0, 12), (0x2_0000, 9), (0x10_0000, 9)] {
            for noisy in 0..=SAMPLES {
                // Noise in the middle.
                let mut src = vec![0; n];
                let noise = Random::new(2).bytes(n * noisy / SAMPLES);
                let start = (SAMPLES - noisy) / 2 * (n / SAMPLES);
                src[start..start + noise.len()].copy_from_slice(&noise);
                assert_eq!(index_pays(&src), noisy >= least, "{noisy} of {SAMPLES} of {n} bytes");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "nothing is unsafe here, and it takes long")]
    fn some_planes_at_regular_distances_are_not_taken_for_more_than_they_are() {
        for (width, noisy) in [(16, 3), (32, 6), (100, 20)] {
            let plane = (4 << 20) / width;
            let mut src = repetitive(1, width * plane);
            // Of planes 0, 2, 4 and so on.
            for j in (0..2 * noisy).step_by(2) {
                src[j * plane..][..plane].copy_from_slice(&Random::new(2).bytes(plane));
            }
            assert!(!index_pays(&src), "{noisy} of {width}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "nothing is unsafe here, and it takes long")]
    fn repeated_groups_are_counted() {
        for (repeated, few) in [(SAMPLE / FEW, true), (SAMPLE / FEW + 1, false)] {
            let mut sample = Random::new(2).bytes(SAMPLE);
            sample[100..104 + repeated].fill(7);
            assert_eq!(has_few(&sample, 2, &mut [(0, 0); 1 << SLOT_BITS]), few);
        }
        let mut last = [(0, 0); 1 << SLOT_BITS];
        assert!(!has_few(b"abcdefgh-abcde+bcdef", 2, &mut last));
        let noise = Random::new(2).bytes(SAMPLE / 2);
        assert!(has_few(&noise, 4, &mut last) && !has_few(&noise, 5, &mut last));
        assert!(has_few(&noise, 7, &mut last));
    }

    #[test]
    #[cfg_attr(miri, ignore = "nothing is unsafe here, and it takes long")]
    fn what_repeats_itself_from_far_away_does_not_pay() {
        // 32 values in turn, which change with them, and in another order every 256: nothing repeats itself in 256
        // bytes, and all of it in 64 KiB.
        let src: Vec<u8> = (0_u32..1 << 18).map(|i| (i << 3 ^ i >> 5 ^ i >> 8) as u8).collect();
        assert!(!index_pays(&src));
    }
}
