use super::*;
use crate::codecs::lz4hc;
use crate::testing::{Random, repetitive};
use proptest::prelude::*;

/// What the decoders make of `stream`; the portable one and the one for this CPU must agree.
fn decode(stream: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = vec![0xaa; size];
    let decoded = decompress(stream, &mut out).ok().map(|()| out);
    let mut out = vec![0x55; size];
    let portable = decode::decompress_portably(stream, size, &mut out).ok().map(|()| out);
    assert!(decoded == portable);
    decoded
}

/// The reference decoder.
fn decode_by_reference(stream: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; size];
    decompress_with(&[], stream, &mut out).ok().map(|()| out)
}

/// The format without any concern for speed or for what the ends of a stream look like. `None` for streams that are cut
/// off, yield another size, or reach back too far.
fn decode_by_definition(stream: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    let mut input = stream.iter().copied().peekable();
    loop {
        let token = input.next()?;
        let more = |input: &mut dyn Iterator<Item = u8>, first: u8| {
            let mut len = usize::from(first);
            if first == 15 {
                loop {
                    let byte = input.next()?;
                    len += usize::from(byte);
                    if byte != 255 {
                        break;
                    }
                }
            }
            Some(len)
        };
        for _ in 0..more(&mut input, token >> 4)? {
            out.push(input.next()?);
        }
        if input.peek().is_none() {
            return (out.len() == size).then_some(out);
        }
        let distance = usize::from(input.next()?) | usize::from(input.next()?) << 8;
        let len = 4 + more(&mut input, token & 15)?;
        if out.len() + len > size {
            return None;
        }
        for _ in 0..len {
            out.push(*out.get(out.len().checked_sub(distance)?)?);
        }
    }
}

fn compress(clevel: u8, src: &[u8]) -> Vec<u8> {
    let mut dest = vec![0; src.len() + src.len() / 200 + 32];
    let len = match clevel {
        1..=9 => Encoder::new().unwrap().compress(clevel, src, &mut dest).unwrap(),
        _ => lz4hc::Encoder::default().compress(9, src, &mut dest).unwrap(),
    };
    assert!(len > 0);
    dest.truncate(len);
    dest
}

#[test]
fn what_the_encoders_write_decodes() {
    for n in (1..200).chain([500, 1000, 4096, 70_000, 300_000]) {
        let data = repetitive(n as u64, n);
        for clevel in [1, 9, 10] {
            assert!(decode(&compress(clevel, &data), n) == Some(data.clone()), "{n} bytes, level {clevel}");
        }
    }
    for period in [1, 2, 3, 5, 8, 13, 16, 17, 31, 40, 100, 200] {
        let data: Vec<u8> = (0..100_000).map(|i| (i % period) as u8).collect();
        assert!(decode(&compress(9, &data), data.len()) == Some(data), "period {period}");
    }
}

/// Appends what a length of `len` goes on with after the token.
fn push_more(stream: &mut Vec<u8>, len: usize) {
    if len >= 15 {
        stream.extend(std::iter::repeat_n(255, (len - 15) / 255));
        stream.push(((len - 15) % 255) as u8);
    }
}

/// Appends a sequence of `literals` and a match.
fn push_sequence(stream: &mut Vec<u8>, literals: usize, distance: usize, len: usize) {
    stream.push((literals.min(15) << 4 | (len - 4).min(15)) as u8);
    push_more(stream, literals);
    stream.extend((0..literals).map(|i| (i * 7 % 251) as u8));
    stream.extend((distance as u16).to_le_bytes());
    push_more(stream, len - 4);
}

/// Appends the last literals.
fn push_last(stream: &mut Vec<u8>, last: usize) {
    stream.push((last.min(15) << 4) as u8);
    push_more(stream, last);
    stream.extend((0..last).map(|i| !i as u8));
}

/// A stream of `literals`, a match, and `last` literals, and the size that it decodes to.
fn one_match(literals: usize, distance: usize, len: usize, last: usize) -> (Vec<u8>, usize) {
    let mut stream = Vec::new();
    push_sequence(&mut stream, literals, distance, len);
    push_last(&mut stream, last);
    (stream, literals + len + last)
}

/// A stream of sequences most of which have matches of medium length, as text and records have, or short distances now
/// and then, so that it changes which loop is at work, and the size that it decodes to.
fn medium_matches(random: &mut Random) -> (Vec<u8>, usize) {
    let mut stream = Vec::new();
    push_sequence(&mut stream, 40, 33, 20);
    let mut size = 60;
    let others = random.below(8);
    let one_in = [1, 4, 50][random.below(3)];
    for _ in 0..if random.below(8) == 0 { 1000 } else { 150 } {
        let literals =
            [0, 1, 2, 13, 14, 15, 16, 63, 64, 65, 269, 270][random.below(12).min(random.below(12))];
        let len = match random.below(10) {
            kind if kind >= others => 17 + random.below(16),
            0 => [33, 63, 64, 65, 66, 300][random.below(6)],
            _ => 4 + random.below(20),
        };
        size += literals;
        let near = [1, 2, 7, 8, 15, 16, 17, 18, 31, 32, 33, 40][random.below(12)];
        let distance = if random.below(one_in) == 0 { near } else { 1 + random.below(size) };
        push_sequence(&mut stream, literals, distance, len);
        size += len;
    }
    let last = 5 + random.below(150);
    push_last(&mut stream, last);
    (stream, size + last)
}

#[test]
fn streams_of_medium_matches_decode_like_the_reference() {
    let mut random = Random::new(17);
    let (streams, changes) = if cfg!(miri) { (1, 1) } else { (300, 20) };
    for _ in 0..streams {
        let (stream, size) = medium_matches(&mut random);
        agrees_with_the_reference(&stream, size);
        let whole = decode_by_definition(&stream, size).expect("valid");
        for _ in 0..changes {
            let wanted = random.below(size);
            let mut dest = vec![0; size];
            decompress_prefix(&stream, wanted, &mut dest).unwrap();
            assert!(dest[..wanted] == whole[..wanted]);
            let mut mutated = stream.clone();
            mutated[random.below(stream.len())] ^= 1 << random.below(8);
            agrees_with_the_reference(&mutated, size);
            agrees_with_the_reference(&stream[..random.below(stream.len())], size);
            agrees_with_the_reference(&stream, random.below(size));
        }
    }
}

#[test]
fn every_distance_and_length_decodes_like_the_definition() {
    for distance in (1..80).chain([127, 128, 129, 300]) {
        for len in (4..100).chain([255, 273, 274, 275, 511, 512, 600, 2000]) {
            let (stream, size) = one_match(300, distance, len, 100);
            let expected = decode_by_definition(&stream, size).expect("valid");
            assert!(decode(&stream, size) == Some(expected), "distance {distance}, length {len}");
        }
    }
}

#[test]
fn streams_with_few_bytes_before_or_after_a_match_decode_like_the_reference() {
    for literals in (1..20).chain([31, 63, 64, 65, 100]) {
        for distance in [1, 2, 3, 7, 8, 9, 15, 16, 17, 40, 70].into_iter().filter(|&d| d <= literals) {
            for len in [4, 5, 15, 16, 17, 18, 19, 20, 33, 64, 65, 130] {
                for last in 0..100 {
                    let (stream, size) = one_match(literals, distance, len, last);
                    agrees_with_the_reference(&stream, size);
                }
            }
        }
    }
}

#[test]
fn long_sequences_between_short_ones_decode() {
    let data: Vec<u8> = (0..40).flat_map(|i| repetitive(i, 100 * i as usize)).collect();
    for size in (1..300).chain([1000, 5000, data.len()]) {
        for clevel in [1, 9, 10] {
            let stream = compress(clevel, &data[..size]);
            assert!(decode(&stream, size).as_deref() == Some(&data[..size]), "{size} bytes, level {clevel}");
        }
    }
}

#[test]
fn a_prefix_is_what_the_whole_begins_with() {
    let data = repetitive(5, 20_000);
    let stream = compress(9, &data);
    for wanted in (0..200).chain((200..data.len()).step_by(97)) {
        let mut dest = vec![0; data.len()];
        decompress_prefix(&stream, wanted, &mut dest).unwrap();
        assert_eq!(dest[..wanted], data[..wanted], "{wanted}");
        let mut dest = vec![0; data.len()];
        decode::decompress_portably(&stream, wanted, &mut dest).unwrap();
        assert_eq!(dest[..wanted], data[..wanted], "{wanted}");
    }
    let mut dest = vec![0; data.len()];
    assert!(decompress_prefix(&stream[..stream.len() / 2], data.len() - 1, &mut dest).is_err());
}

/// A stream of runs of literals with a short match after each, and the size that it decodes to.
fn runs_of_literals(lengths: impl IntoIterator<Item = usize>, last: usize) -> (Vec<u8>, usize) {
    let (mut stream, mut size) = (Vec::new(), last);
    for literals in lengths {
        let len = 4 + literals % 12;
        push_sequence(&mut stream, literals, 1 + literals / 2, len);
        size += literals + len;
    }
    push_last(&mut stream, last);
    (stream, size)
}

#[test]
fn runs_of_literals_of_any_length_decode_like_the_reference() {
    for literals in (1..300).chain([523, 524, 525, 526]).step_by(if cfg!(miri) { 67 } else { 1 }) {
        for last in (0..16).chain((16..440).step_by(if cfg!(miri) { 101 } else { 3 })) {
            let (stream, size) = runs_of_literals([literals, 300 - literals.min(290), literals], last);
            agrees_with_the_reference(&stream, size);
            agrees_with_the_reference(&stream[..stream.len() - last / 2], size);
            agrees_with_the_reference(&stream, size - literals);
        }
    }
}

#[test]
fn what_lies_behind_the_needed_input_does_not_matter() {
    let mut random = Random::new(23);
    let noise: Vec<u8> = (0..3000).map(|_| random.below(256) as u8).collect();
    let data = [&noise[..700], &[7; 5000], &noise[..40], &repetitive(6, 6000), &noise, &[0; 900]].concat();
    let (medium, size) = medium_matches(&mut random);
    let (few, few_size) = one_match(800, 700, 3000, 900);
    let (runs, runs_size) = runs_of_literals([30, 268, 100, 269, 60, 270, 15, 200], 500);
    // The lengths of these runs alone take hundreds of bytes, which come before what is wanted.
    let (long_runs, long_size) = runs_of_literals([60_000, 40, 16_100, 3000, 20_000], 17_000);
    let streams = [
        (compress(9, &data), data.len()),
        (medium, size),
        (few, few_size),
        (runs, runs_size),
        (long_runs, long_size),
    ];
    for (stream, size) in streams {
        let whole = decode_by_definition(&stream, size).expect("valid");
        let step = if size > 50_000 { 2003 } else { 1 };
        for wanted in (0..size).step_by(if cfg!(miri) { 40 * step + 997 } else { step }) {
            let needed = input_for(wanted, size).min(stream.len());
            for filler in [0xff, 0, random.below(256) as u8] {
                let mut altered = stream.clone();
                altered[needed..].fill(filler);
                altered[needed..].first_mut().into_iter().for_each(|byte| *byte = 0);
                for decompress in [decompress_prefix, decode::decompress_portably] {
                    let mut dest = vec![0; size];
                    decompress(&altered, wanted, &mut dest).unwrap();
                    assert!(dest[..wanted] == whole[..wanted], "{wanted} bytes before {filler}");
                }
            }
        }
    }
}

#[test]
fn a_run_of_literals_longer_than_the_stream_is_an_error_even_if_little_is_wanted() {
    for (size, literals) in [(20_000, 20_016), (20_000, 60_000), (300, 316), (100_000, 1 << 20)] {
        let (stream, _) = runs_of_literals([literals], 20);
        for wanted in [1, 15, 100, 299] {
            let mut altered = stream[..input_for(wanted, size).min(stream.len())].to_vec();
            altered.resize(stream.len(), 0);
            for decompress in [decompress_prefix, decode::decompress_portably] {
                let mut dest = vec![0; size];
                assert!(decompress(&altered, wanted, &mut dest).is_err(), "{literals} literals for {size}");
            }
        }
    }
}

#[test]
fn truncated_streams_and_other_sizes_are_rejected() {
    let data = repetitive(9, 3000);
    let stream = compress(9, &data);
    for len in 0..stream.len() {
        assert!(decode(&stream[..len], data.len()).is_none());
    }
    for size in (1..data.len()).chain([data.len() + 1, data.len() + 100]) {
        assert!(decode(&stream, size).is_none());
    }
}

/// What decodes is what the reference decoder makes of it, and the other way round; only matches of no distance, which
/// the format forbids, are refused here and read as something there.
fn agrees_with_the_reference(stream: &[u8], size: usize) {
    let decoded = decode(stream, size);
    if decoded.is_some() {
        assert_eq!(decoded, decode_by_definition(stream, size));
    }
    // Miri runs no C code.
    if !cfg!(miri) && decoded != decode_by_reference(stream, size) {
        assert!(decoded.is_none() && decode_by_definition(stream, size).is_none());
    }
}

#[test]
fn mutated_streams_decode_like_the_reference() {
    let data = repetitive(3, 2000);
    let stream = compress(5, &data);
    for at in 0..stream.len() {
        for change in [1, 0x10, 0x80, 0xff] {
            let mut mutated = stream.clone();
            mutated[at] ^= change;
            agrees_with_the_reference(&mutated, data.len());
        }
    }
}

proptest! {
    #[test]
    fn any_stream_decodes_like_the_reference(
        stream in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 1..200),
        size in 1usize..500,
    ) {
        agrees_with_the_reference(&stream, size);
    }

    #[test]
    fn what_is_compressed_decodes(seed: u64, n in 1usize..5000, clevel in 1u8..=10) {
        let data = repetitive(seed, n);
        prop_assert!(decode(&compress(clevel, &data), n) == Some(data));
    }
}
