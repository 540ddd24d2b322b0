//! Whether a stream repeats itself as a whole from far back, as coordinates of a grid do, line by line.

#![forbid(unsafe_code)]

use super::format::MAX_DISTANCE;

/// This many bytes from the middle of the stream are looked for before it.
const KEY: usize = 32;
/// Of these, the ones that are compared at every place: items of up to eight bytes have one that differs from others
/// there.
const COMPARED: [usize; 5] = [0, 8, 13, 18, 31];
/// Then, it must be there in most of these samples.
const SAMPLES: usize = 16;
const SAMPLE: usize = 64;
const MOST: usize = SAMPLES - 2;
/// How often it must have room in the stream: the first time, nothing is gained.
const REPETITIONS: usize = 4;
/// Shorter streams do not repeat themselves often enough.
const SHORTEST: usize = 8 << 10;
/// This many places are compared at once.
const STRIDE: usize = 64;

/// Whether most of `src` is what is at some distance before, as far as a match reaches, and that several times.
pub(super) fn is_periodic(src: &[u8]) -> bool {
    if src.len() < SHORTEST {
        return false;
    }
    let most = MAX_DISTANCE.min(src.len() / REPETITIONS);
    let Some(distance) = distance_of_repetition(src, src.len() / 2, most) else { return false };
    let places = (distance..src.len() - SAMPLE).step_by((src.len() - SAMPLE - distance) / SAMPLES);
    let is_repeated = |place: usize| src[place..place + SAMPLE] == src[place - distance..][..SAMPLE];
    places.take(SAMPLES).filter(|&place| is_repeated(place)).count() >= MOST
}

/// How far before `at` the bytes are that follow there, up to `most`; the smallest distance if there are several.
fn distance_of_repetition(src: &[u8], at: usize, most: usize) -> Option<usize> {
    let key: &[u8; KEY] = src[at..].first_chunk()?;
    let mut end = at;
    while end > at - most {
        let start = end.checked_sub(STRIDE)?;
        if may_have(src[start..].first_chunk()?, key) {
            let found = (start..end).rev().find(|&place| src[place..].starts_with(key));
            if let Some(place) = found {
                return Some(at - place).filter(|&distance| distance <= most);
            }
        }
        end = start;
    }
    None
}

/// Whether `key` may begin at any of the places. All are compared, as vectors do it.
fn may_have(bytes: &[u8; STRIDE + KEY - 1], key: &[u8; KEY]) -> bool {
    let mut found = false;
    for place in 0..STRIDE {
        found |= COMPARED.iter().fold(true, |equal, &n| equal & (bytes[place + n] == key[n]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn noise(seed: u64, len: usize) -> Vec<u8> {
        Random::new(seed).bytes(len)
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn what_repeats_itself_is_periodic_as_far_as_matches_reach() {
        for (period, is) in [(4000, true), (28_800, true), (MAX_DISTANCE, true), (MAX_DISTANCE + 1, false)] {
            let src: Vec<u8> = noise(3, period).into_iter().cycle().take(200_000).collect();
            assert_eq!(is_periodic(&src), is, "period {period}");
            assert_eq!(is_periodic(&src[..4 * period]), is);
            assert!(!is_periodic(&src[..4 * period - 1]));
        }
    }

    #[test]
    fn single_repetitions_are_no_periods() {
        assert!(!is_periodic(&noise(1, 100_000)));
        let mut src = noise(2, 100_000);
        src.copy_within(30_000..40_000, 45_000);
        assert!(!is_periodic(&src));
        let line = noise(3, 1000);
        let halves = [line.repeat(50), noise(4, 50_000)].concat();
        assert!(!is_periodic(&halves));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn every_length_can_be_looked_at() {
        let src = [7_u8; 3 * SHORTEST];
        for len in (SHORTEST..SHORTEST + 200).chain([src.len()]) {
            assert!(is_periodic(&src[..len]), "{len} bytes");
        }
    }
}
