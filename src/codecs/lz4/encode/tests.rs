//! Our streams and those of the reference, byte by byte.

use super::super::Encoder as Reference;
use super::*;
use crate::codecs::lz4::decompress;
use crate::testing::bytes_like;
use proptest::prelude::*;

/// What the reference makes of `src`, with `room` bytes for it; nothing if it does not fit. Miri cannot call it: there,
/// our encoder makes as much in more room than it needs.
fn compress_by_reference(acceleration: usize, src: &[u8], room: usize) -> Option<Vec<u8>> {
    if cfg!(miri) {
        let mut dest = vec![0; 2 * src.len()];
        let len = Encoder::new().unwrap().compress(acceleration, src, &mut dest)?;
        return (len <= room).then(|| dest[..len].to_vec());
    }
    let mut dest = vec![0; room];
    let len = Reference::new().unwrap().compress_by_reference(acceleration, src, &mut dest);
    dest.truncate(len);
    (len > 0).then_some(dest)
}

/// Checks that our encoder, watching its guesses and not, does the same as the reference, where there is more room than
/// the stream needs, just enough, and not enough.
fn check_against_reference(acceleration: usize, src: &[u8], less: usize) {
    let mut encoder = Encoder::new().unwrap();
    encoder.watches = true;
    let most = src.len() + src.len() / 255 + 16;
    let whole = compress_by_reference(acceleration, src, most).expect("there is room");
    let rooms = [
        most,
        whole.len(),
        whole.len() - 1,
        src.len(),
        whole.len() + 10,
        whole.len() + 5,
        whole.len() - 1 - less % whole.len(),
    ];
    for room in rooms.into_iter().take(if cfg!(miri) { 2 } else { rooms.len() }) {
        let mut dest = vec![0; room];
        let theirs = compress_by_reference(acceleration, src, room);
        for _ in 0..2 {
            let len = encoder.compress(acceleration, src, &mut dest);
            let ours = len.map(|len| &dest[..len]);
            assert!(
                ours == theirs.as_deref(),
                "{} bytes, room {room}, acceleration {acceleration}",
                src.len()
            );
            encoder.watches ^= true;
        }
    }
    let mut back = vec![0; src.len()];
    assert!(decompress(&whole, &mut back).is_ok() && back == src);
}

#[test]
fn streams_of_special_lengths_are_those_of_the_reference() {
    for kind in 0..8 {
        // Around the shortest, and around the longest that has a table of its own.
        let lengths = (MIN_INPUT..MIN_INPUT + 20).chain(65_530..65_550);
        for n in lengths.filter(|n| !cfg!(miri) || [(MIN_INPUT, 2), (65_547, 6)].contains(&(*n, kind))) {
            check_against_reference(1 + n % 9, &bytes_like(kind, n as u64, n), 1 + n % 100);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn streams_of_long_runs_are_those_of_the_reference() {
    for (n, at) in
        [(100_000, 70_000), (1 << 20, 300_000), (1 << 20, (1 << 20) - 20), (40_000, 12), (40_000, 39_990)]
    {
        let mut src = vec![7; n];
        src[at] = 8;
        check_against_reference(1, &src, 7);
        src[at - 3..at].copy_from_slice(&[8, 7, 8]);
        check_against_reference(9, &src, 3);
    }
}

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn long_streams_are_those_of_the_reference(
        kind in 0u8..8,
        seed in any::<u64>(),
        n in prop_oneof![MIN_INPUT..65_000, 65_000usize..300_000],
        acceleration in 1usize..10,
        less in 1usize..4000,
    ) {
        check_against_reference(acceleration, &bytes_like(kind, seed, n), less);
    }
}
