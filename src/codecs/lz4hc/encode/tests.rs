//! Our streams and those of the reference, byte by byte, of whatever data.

use super::super::Encoder as Reference;
use super::*;
use crate::codecs::lz4::output::MAX_DISTANCE;
use crate::codecs::lz4::{OURS, decompress};
use crate::testing::{Random, bytes_like};
use proptest::prelude::*;

/// What the reference makes of `src`, with `room` bytes for it; nothing if it does not fit.
fn compress_by_reference(clevel: u8, src: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut dest = vec![0; room];
    let len = Reference::default().compress_by_reference(clevel, src, &mut dest).unwrap();
    dest.truncate(len);
    (len > 0).then_some(dest)
}

/// Compresses a stream.
type Way = fn(&mut Encoder, u8, &[u8], &mut [u8]) -> Result<Option<usize>>;
const WAYS: [Way; 2] = [Encoder::compress_chained, Encoder::compress_indexed];

/// Checks that our encoder does the same as the reference in both ways, where there is more room than the stream needs,
/// just enough, and not enough.
fn check_against_reference(clevel: u8, src: &[u8], less: usize) {
    if !OURS || !is_for(clevel, src) {
        return; // on this CPU, or with this LZ4, streams are the reference's
    }
    let mut encoder = Encoder::default();
    let most = src.len() + src.len() / 255 + 16;
    let whole = compress_by_reference(clevel, src, most).expect("there is room");
    let less = whole.len() - 1 - less % whole.len();
    for room in [most, whole.len(), whole.len() - 1, src.len(), whole.len() + 10, whole.len() + 5, less] {
        let theirs = compress_by_reference(clevel, src, room);
        for (way, compress) in WAYS.iter().enumerate() {
            let mut dest = vec![0; room];
            let len = compress(&mut encoder, clevel, src, &mut dest).unwrap();
            let ours = len.map(|len| &dest[..len]);
            assert!(ours == theirs.as_deref(), "way {way}, {} bytes, room {room}, level {clevel}", src.len());
        }
    }
    let mut back = vec![0; src.len()];
    assert!(decompress(&whole, &mut back).is_ok() && back == src);
}

/// Without the reference, for Miri.
#[test]
fn streams_come_back_and_end_where_there_is_no_room() {
    if !OURS || !is_for(3, &[0; 100]) {
        return; // as above
    }
    // Each call sorts into 2^16 buckets.
    let (kinds, lengths): (_, &[usize]) =
        if cfg!(miri) { (4..6, &[13, 1500]) } else { (0..8, &[13, 300, 2000, 70_000, 200_000]) };
    let mut encoder = Encoder::default();
    let cases = kinds.flat_map(|kind| lengths.iter().map(move |n| (kind, n)));
    for ((kind, &n), compress) in cases.flat_map(|case| WAYS.map(|way| (case, way))) {
        let (clevel, src) = (3 + (kind + 1) % 7, bytes_like(kind, 5, n));
        let mut dest = vec![0; n + n / 255 + 16];
        let len = compress(&mut encoder, clevel, &src, &mut dest).unwrap().expect("there is room");
        let mut back = vec![0; n];
        assert!(decompress(&dest[..len], &mut back).is_ok() && back == src, "kind {kind}, {n} bytes");
        for room in [len - 1, 5] {
            let cut = compress(&mut encoder, clevel, &src, &mut dest[..room]).unwrap();
            assert_eq!(cut, None, "kind {kind}, {n} bytes, room for {room}");
        }
    }
}

/// Also where the positions of the chains begin anew, as they would no longer fit.
#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn earlier_streams_do_not_matter() {
    if !OURS || !is_for(3, &[0; 100]) {
        return; // as above
    }
    for before_end in [200_000, 300_000, 1_000_000] {
        let mut chains = Chains::new().unwrap();
        chains.start_from(u32::MAX - before_end);
        let mut encoder = Encoder { chains: Some(chains), index: None };
        for (clevel, kind) in (3..=9).zip(0..) {
            // All of them have much in common.
            let src = bytes_like(kind % 3, 1, 40_000 + 7 * usize::from(kind));
            let whole = compress_by_reference(clevel, &src, 2 * src.len()).expect("there is room");
            let mut dest = vec![0; 2 * src.len()];
            for compress in WAYS {
                let len = compress(&mut encoder, clevel, &src, &mut dest).unwrap().expect("there is room");
                assert!(dest[..len] == whole, "kind {kind}, level {clevel}, {before_end} before the end");
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn streams_of_special_lengths_are_those_of_the_reference() {
    for kind in 0..8 {
        // Around the shortest, and around where segments end.
        for n in (13..60).chain(65_535..65_550).chain(131_070..131_085) {
            check_against_reference(3 + (n % 7) as u8, &bytes_like(kind, n as u64, n), 1 + n % 100);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn streams_of_long_runs_are_those_of_the_reference() {
    for (n, at) in [(100_000, 70_000), (400_000, 300_000), (200_000, 199_980), (20_000, 12), (40_000, 39_990)]
    {
        let mut src = vec![7; n];
        src[at] = 8;
        check_against_reference(3, &src, 7);
        src[at - 3..at].copy_from_slice(&[8, 7, 8]);
        check_against_reference(8, &src, 3);
        check_against_reference(SKIPS_RUNS, &src, 3);
    }
}

#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn matches_before_the_last_literals_are_those_of_the_reference() {
    let noise = Random::new(3).bytes(100);
    for n in 60..100 {
        for end in n - 20..n {
            let mut src = noise[..n].to_vec();
            src.copy_within(0..end - n / 2, n / 2);
            check_against_reference(5, &src, 5);
        }
    }
}

/// Matches from as far as they may be, or one byte more, within a segment and across segments.
#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn the_farthest_matches_are_those_of_the_reference() {
    let noise = Random::new(1).bytes(140_000);
    for start in [0, 1, 65_530, 65_535] {
        for distance in MAX_DISTANCE - 2..MAX_DISTANCE + 3 {
            for len in [4, 50] {
                let mut src = noise.clone();
                src.copy_within(start..start + len, start + distance);
                check_against_reference(5, &src, 9);
            }
        }
    }
}

/// Of which the longest have four bytes, just too few to be passed, up to more than a match reaches back.
#[test]
#[cfg_attr(miri, ignore = "calls C")]
fn streams_of_runs_of_any_length_are_those_of_the_reference() {
    for (seed, longest) in (0..).zip([4, 5, 6, 7, 8, 20, 100, 1000, 10_000, 70_000]) {
        for kinds in [2, 3, 20, 256] {
            let mut random = Random::new(seed);
            let (mut src, mut byte) = (Vec::new(), 0);
            while src.len() < 150_000 {
                byte = (byte + 1 + random.below(kinds - 1)) % kinds;
                src.extend(std::iter::repeat_n(byte as u8, 1 + random.below(longest)));
                if random.below(4) == 0 {
                    src.extend(random.bytes(longest.min(50)));
                }
            }
            check_against_reference(SKIPS_RUNS, &src, 5);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))] // each of them is slow
    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn long_streams_are_those_of_the_reference(
        kind in 0u8..8,
        seed in any::<u64>(),
        n in prop_oneof![13usize..65_000, 65_000usize..300_000],
        clevel in LEVELS,
        less in 1usize..4000,
    ) {
        check_against_reference(clevel, &bytes_like(kind, seed, n), less);
    }
}
