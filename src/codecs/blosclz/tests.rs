use super::erratic::Habit;
use super::probe::{Demand, Probe};
use super::*;
use crate::testing::{Random, repetitive};
use proptest::prelude::*;

fn compress(clevel: u8, src: &[u8]) -> Option<Vec<u8>> {
    let mut dest = vec![0; src.len()];
    let size = Encoder::new().unwrap().compress(clevel, src, &mut dest);
    dest.truncate(size);
    (size > 0).then_some(dest)
}

/// What the decoders make of `stream`; those for erratic streams and for others, portable and for this CPU, must agree.
fn decode(stream: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = vec![0xaa; size];
    let decoded = decompress(stream, &mut out).ok().map(|()| out);
    let mut out = vec![0x55; size];
    let portable = decode::decompress_portably(stream, &mut out).ok().map(|()| out);
    assert!(decoded == portable);
    for avx2 in [false, true] {
        let mut out = vec![0xee; size];
        let as_erratic = decode::decompress_as_erratic(stream, &mut out, avx2).ok().map(|()| out);
        assert!(decoded == as_erratic);
    }
    decoded
}

/// The decoder as the format's definition has it, without any concern for speed.
fn decode_by_definition(stream: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    let mut input = stream.iter().copied();
    let mut c = usize::from(input.next()? & 31);
    loop {
        if c < 32 {
            for _ in 0..=c {
                out.push(input.next()?);
            }
            if out.len() > size {
                return None;
            }
            match input.next() {
                None => return (out.len() == size).then_some(out),
                Some(next) => c = usize::from(next),
            }
        } else {
            let mut len = (c >> 5) + 2;
            while len >= 9 {
                let more = usize::from(input.next()?);
                len += more;
                if more < 255 {
                    break;
                }
            }
            let mut distance = 256 * (c & 31) + usize::from(input.next()?) + 1;
            if distance == 8192 {
                distance += 256 * usize::from(input.next()?) + usize::from(input.next()?);
            }
            if distance > out.len() || len > size - out.len() {
                return None;
            }
            for _ in 0..len {
                out.push(out[out.len() - distance]);
            }
            c = usize::from(input.next()?);
        }
    }
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn int32_ramp(n: u32) -> Vec<u8> {
    (0..n).flat_map(u32::to_le_bytes).collect()
}

#[test]
fn streams_of_the_c_library_decode() {
    let stream = hex("2f 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f e0 64 0f 02 0d 0e 0f");
    let plain: Vec<u8> = (0..128).map(|i| i % 16).collect();
    assert_eq!(decode(&stream, 128), Some(plain));

    let mut stream = hex("3f");
    let mut plain: Vec<u8> = (0..32u8).map(|i| i.wrapping_mul(9)).collect();
    stream.extend(&plain);
    stream.extend(hex("00 00 e0 ff 22 00 08 00 4c 4d 4e 4f 50 51 52 53"));
    plain.extend([0; 300]);
    plain.extend(0x4c..=0x53);
    assert_eq!(decode(&stream, 340), Some(plain));

    for first in ["22", "e2", "02"] {
        let stream = hex(&format!("{first} 01 02 03 20 00 00 09"));
        assert_eq!(decode(&stream, 7), Some(hex("01 02 03 03 03 03 09")));
    }
    let stream = hex("22 01 02 03 e0 00 02 00 09");
    assert_eq!(decode(&stream, 13), Some(hex("01 02 03 01 02 03 01 02 03 01 02 03 09")));
}

#[test]
fn a_far_match_decodes() {
    // 9040 bytes of literals in runs of 32 and one of 16, then the match, then one literal.
    let start = Random::new(5).bytes(9040);
    let mut stream = Vec::new();
    for run in start.chunks(32) {
        stream.push(u8::try_from(run.len() - 1).unwrap());
        stream.extend(run);
    }
    stream.extend(hex("ff 1e ff 03 50 00 77"));
    let mut plain = start.clone();
    plain.extend(&start[..39]);
    plain.push(0x77);
    assert_eq!(decode(&stream, 9040 + 40), Some(plain));
}

#[test]
fn invalid_streams_are_rejected() {
    for (stream, size) in [
        ("", 0),
        ("", 1),
        ("20", 0),
        ("20", 1),
        ("20 01", 2),
        ("21 01", 2),
        ("22 01 02 03 20 03 00 09", 7),          // distance 4 of 3 bytes
        ("22 01 02 03 20 00 00 09 00", 7),       // a byte left over
        ("22 01 02 03 20 00 00 09", 6),          // output too small
        ("22 01 02 03 20 00 00 09", 8),          // output too large
        ("22 01 02 03 20 00", 6),                // ends in a near match
        ("22 01 02 03 3f ff 00 00", 6),          // far distance of 3 bytes
        ("22 01 02 03 20", 6),                   // ends inside a match
        ("22 01 02 03 e0 ff", 6),                // ends inside the extension bytes
        ("22 01 02 03 e0 ff ff ff 00 00 00", 9), // too long
    ] {
        assert_eq!(decode(&hex(stream), size), None, "{stream} as {size} bytes");
        assert_eq!(decode_by_definition(&hex(stream), size), None, "{stream} as {size} bytes");
    }
    let error = decompress(&[0x20], &mut [0]).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Data);
}

#[test]
fn a_match_as_last_element_is_rejected_however_far() {
    let start = Random::new(6).bytes(9040);
    let mut stream = Vec::new();
    for run in start.chunks(32) {
        stream.push(u8::try_from(run.len() - 1).unwrap());
        stream.extend(run);
    }
    stream.extend(hex("ff 1e ff 03 50"));
    assert_eq!(decode(&stream, 9040 + 39), None);
}

#[test]
fn endless_extension_bytes_are_rejected() {
    for size in [100, 1000, 100_000] {
        let mut stream = hex("23 01 02 03 04 e0");
        stream.extend(vec![255; 3_000_000]);
        stream.extend(hex("00 00 00 09"));
        assert_eq!(decode(&stream, size), None);
    }
}

#[test]
fn every_distance_and_length_decodes_like_the_definition() {
    let start: Vec<u8> = (0..80).map(|i| i * 3).collect();
    for tail in [1, 31, 100] {
        for distance in 1..=80u8 {
            for len in (3..=8).chain([9, 10, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 263, 264, 265, 700])
            {
                let mut stream = Vec::new();
                for run in start.chunks(32) {
                    stream.push(u8::try_from(run.len() - 1).unwrap());
                    stream.extend(run);
                }
                if len < 9 {
                    stream.push(u8::try_from((len - 2) << 5).unwrap());
                } else {
                    stream.push(7 << 5);
                    stream.extend(vec![255; (len - 9) / 255]);
                    stream.push(u8::try_from((len - 9) % 255).unwrap());
                }
                stream.push(distance - 1);
                for _ in 0..tail {
                    stream.extend([0, 0x5a]);
                }
                let size = start.len() + len + tail;
                let expected = decode_by_definition(&stream, size);
                assert!(expected.is_some());
                assert_eq!(decode(&stream, size), expected, "distance {distance}, length {len}");
            }
        }
    }
}

/// A stream of elements of random kinds, and what it stands for.
fn erratic(seed: u64, elements: usize) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random::new(seed);
    let (mut stream, mut plain) = (vec![31], random.bytes(32));
    stream.extend(&plain);
    for _ in 0..elements {
        let run = random.below(9);
        if run > 0 {
            let literals = random.bytes(run);
            stream.push(literals.len().to_le_bytes()[0] - 1);
            stream.extend(&literals);
            plain.extend(literals);
        }
        let longer = [900, 30, 30][..].get(random.below(40)).map_or(0, |&most| random.below(most));
        let len = 3 + random.below(12) + longer;
        let most = if random.below(2) == 0 { 40 } else { 70_000 };
        let distance = 1 + random.below(plain.len().min(most));
        let far = distance.checked_sub(8192);
        let near = far.map_or(distance - 1, |_| 8191);
        stream.push(((len - 2).min(7) << 5 | near >> 8).to_le_bytes()[0]);
        if len >= 9 {
            stream.extend(vec![255; (len - 9) / 255]);
            stream.push(((len - 9) % 255).to_le_bytes()[0]);
        }
        stream.push(near.to_le_bytes()[0]);
        if let Some(far) = far {
            stream.extend(u16::try_from(far).unwrap().to_be_bytes());
        }
        (0..len).for_each(|_| plain.push(plain[plain.len() - distance]));
    }
    let run = 1 + random.below(32);
    let last = random.bytes(run);
    stream.push(last.len().to_le_bytes()[0] - 1);
    stream.extend(&last);
    plain.extend(last);
    (stream, plain)
}

#[test]
fn erratic_streams_decode() {
    for seed in 0..if cfg!(miri) { 2 } else { 200 } {
        let (stream, plain) = erratic(seed, 1 + 37 * usize::try_from(seed).unwrap());
        assert!(decode(&stream, plain.len()) == Some(plain), "seed {seed}");
    }
}

#[test]
fn damaged_erratic_streams_decode_like_the_definition() {
    let (stream, plain) = erratic(3, if cfg!(miri) { 30 } else { 4000 });
    let mut random = Random::new(8);
    for round in 0..if cfg!(miri) { 10 } else { 300 } {
        let mut bad = stream.clone();
        let at = random.below(bad.len());
        bad[at] = [0, 31, 63, 224, 254, 255][random.below(6)];
        bad.truncate(bad.len() - if round % 3 == 0 { random.below(100) } else { 0 });
        let size = plain.len() - if round % 5 == 0 { random.below(100) } else { 0 };
        assert!(decode(&bad, size) == decode_by_definition(&bad, size), "byte {at} = {}", bad[at]);
    }
}

/// What the elements of a stream are like, from the first literal run on, which has 32 bytes.
fn habit(stream: &[u8]) -> Habit {
    let [portably, with_avx2] = [erratic::habit::<false>, erratic::habit::<true>];
    assert_eq!(portably(&stream[33..]), with_avx2(&stream[33..]));
    portably(&stream[33..])
}

#[test]
fn what_is_erratic_is_told_from_what_is_not() {
    let (stream, _) = erratic(1, 4000);
    assert_eq!(habit(&stream), Habit::Erratic);
    assert_eq!(habit(&stream[..8200]), Habit::Usual); // little is left
    // The same three kinds in turn; matches with many literals between them; what ends in a match.
    let regular = |element: &[u8]| [&stream[..33], &element.repeat(8192 / element.len() + 1)].concat();
    assert_eq!(habit(&regular(&[0x20, 7, 0xe0, 3, 7, 0, 1, 0x3f, 0xff, 0, 1])), Habit::Usual);
    let noise =
        |i: usize| [&[31][..], &[7; 32], if i % 7 % 2 == 0 { &[0x20, 9] } else { &[0xe0, 9, 9] }].concat();
    assert_eq!(habit(&(0..400).flat_map(noise).collect::<Vec<_>>()), Habit::Usual);
    assert_eq!(habit(&regular(&[0xff])), Habit::Usual);
}

/// The stream and the bytes of integers of 64 bits that count, as the C library encodes them: what changes, and a match
/// for the rest of the item.
fn counting_stream(nitems: u64) -> (Vec<u8>, Vec<u8>) {
    let plain: Vec<u8> = (0..nitems).flat_map(u64::to_le_bytes).collect();
    let mut stream = [&[31][..], &plain[..32]].concat();
    for item in plain[32..plain.len() - 8].chunks_exact(8) {
        let nchanged: u8 = if item[0] == 0 { 2 } else { 1 };
        stream.push(nchanged - 1);
        stream.extend(&item[..usize::from(nchanged)]);
        stream.extend([(8 - nchanged - 2) << 5, 8 - 1]);
    }
    stream.push(8 - 1);
    stream.extend(&plain[plain.len() - 8..]);
    (stream, plain)
}

#[test]
fn items_that_count_decode_although_each_repeats_the_one_before() {
    let (stream, plain) = counting_stream(10_000);
    assert_eq!(habit(&stream), Habit::Items);
    assert!(decode(&stream, plain.len()) == Some(plain.clone()));
    // Other distances and lengths come between.
    let mut random = Random::new(9);
    for round in 0..if cfg!(miri) { 2 } else { 300 } {
        let mut bad = stream.clone();
        for _ in 0..1 + round % 7 {
            let at = 33 + random.below(stream.len() - 33);
            bad[at] = [0, 1, 7, 8, 31, 0x40, 0x60, 0xa0, 0xc0, 0xe0, 0xff][random.below(11)];
        }
        bad.truncate(bad.len() - if round % 3 == 0 { random.below(100) } else { 0 });
        assert!(decode(&bad, plain.len()) == decode_by_definition(&bad, plain.len()), "round {round}");
    }
}

#[test]
fn truncated_streams_are_rejected() {
    let plain = repetitive(11, 3000);
    let stream = compress(9, &plain).unwrap();
    assert_eq!(decode(&stream, plain.len()).as_deref(), Some(&plain[..]));
    for end in 0..stream.len() {
        assert_eq!(decode(&stream[..end], plain.len()), None);
    }
    for size in (0..plain.len()).chain(plain.len() + 1..plain.len() + 100) {
        assert_eq!(decode(&stream, size), None);
    }
}

#[test]
fn mutated_streams_decode_like_the_definition() {
    let plain = repetitive(3, 1200);
    let stream = compress(9, &plain).unwrap();
    for at in 0..stream.len() {
        for value in [0, 1, 31, 32, 63, 127, 223, 224, 254, 255] {
            let mut bad = stream.clone();
            bad[at] = value;
            assert_eq!(
                decode(&bad, plain.len()),
                decode_by_definition(&bad, plain.len()),
                "byte {at} = {value}"
            );
        }
    }
}

#[test]
fn garbage_decodes_like_the_definition() {
    let mut random = Random::new(99);
    for round in 0..if cfg!(miri) { 20 } else { 3000 } {
        let len = 1 + random.below(400);
        let mut stream = random.bytes(len);
        // Plain noise fails at the first large distance; small control bytes get further.
        for byte in &mut stream {
            if round % 2 == 1 && random.below(3) > 0 {
                *byte &= 0xe3;
            }
        }
        let size = random.below(2000);
        assert_eq!(decode(&stream, size), decode_by_definition(&stream, size));
    }
}

#[test]
fn compressible_data_round_trip_at_every_level() {
    for n in (16..200).chain([1000, 8192, 8300, 65536, 200_000]) {
        for clevel in 1..=9 {
            let plain = repetitive(n as u64, n);
            if let Some(stream) = compress(clevel, &plain) {
                assert!(stream.len() <= n);
                assert_eq!(decode(&stream, n).as_deref(), Some(&plain[..]), "{n} bytes at level {clevel}");
                assert_eq!(decode_by_definition(&stream, n).as_deref(), Some(&plain[..]));
            } else {
                assert!(n < 200, "{n} bytes at level {clevel} must compress");
            }
        }
    }
}

#[test]
fn distances_up_to_the_limit_are_used_and_none_beyond() {
    for gap in [8190, 8191, 8192, 8193, 60_000, 65_535, 65_536, 65_537, 80_000, 131_072] {
        let block = Random::new(17).bytes(100);
        let mut plain = block.clone();
        plain.resize(gap, 0);
        plain.extend(&block);
        plain.extend([1; 20]);
        let stream = compress(5, &plain).unwrap();
        assert_eq!(stream.len() > 180 + gap / 255, gap > 65_536, "gap {gap}, size {}", stream.len());
        assert_eq!(decode(&stream, plain.len()).as_deref(), Some(&plain[..]));
    }
}

#[test]
fn streams_begin_and_end_with_literals_that_old_decoders_expect() {
    for seed in 0..50 {
        let plain = repetitive(seed, 500);
        let stream = compress(9, &plain).unwrap();
        assert_eq!(stream[0] >> 5, 1);
        assert!(stream[0] & 31 >= 3);
    }
    let stream = compress(5, &[0; 400]).unwrap();
    assert_eq!(stream[0], 0x23);
    assert_eq!(stream[stream.len() - 4..], [2, 0, 0, 0]);
}

#[test]
fn the_output_never_exceeds_the_destination() {
    for seed in 0..8 {
        let plain = repetitive(seed, 2000);
        let full = compress(9, &plain).unwrap();
        for room in 0..full.len() + 50 {
            let mut dest = vec![0xee; room + 16];
            let size = Encoder::new().unwrap().compress(9, &plain, &mut dest[..room]);
            assert_eq!(size, if room >= full.len().max(66) { full.len() } else { 0 });
            assert_eq!(dest[room..], [0xee; 16]);
            assert!(size == 0 || dest[..size] == full);
        }
    }
}

#[test]
fn output_does_not_depend_on_what_was_compressed_before() {
    let mut reused = Encoder::new().unwrap();
    let mut random = Random::new(1);
    for seed in 0..300 {
        let n = 16 + random.below(30_000);
        let plain = repetitive(seed % 7, n);
        let clevel = u8::try_from(1 + random.below(9)).unwrap();
        let mut dest = vec![0; n];
        let size = reused.compress(clevel, &plain, &mut dest);
        assert_eq!((size > 0).then(|| dest[..size].to_vec()), compress(clevel, &plain));
    }
}

#[test]
fn too_short_streams_are_given_up() {
    for n in 0..66 {
        assert_eq!(compress(9, &vec![0; n]), None);
    }
    assert_eq!(Encoder::new().unwrap().compress(9, &[0; 1000], &mut [0; 65]), 0);
    assert!(compress(9, &[0; 66]).is_some());
}

#[test]
fn noise_is_given_up() {
    for n in [100, 1000, 100_000] {
        for clevel in 1..=9 {
            assert_eq!(compress(clevel, &Random::new(4).bytes(n)), None);
        }
    }
}

/// Applications rely on these: the C library's tests expect them to be stored.
#[test]
fn unshuffled_ramps_of_integers_are_given_up() {
    for clevel in 1..=9 {
        assert_eq!(Encoder::new().unwrap().compress(clevel, &int32_ramp(250), &mut [0; 1000]), 0);
        for block in int32_ramp(2000).chunks(1984) {
            assert_eq!(compress(clevel, block), None);
        }
    }
}

/// As the probe decides, to the end and without tricks.
fn shrinks_by_definition(bits: u32, min_ratio: usize, window: &[u8]) -> bool {
    let mut seen = vec![0_usize; 1 << bits];
    let last_start = window.len() - 12;
    let (mut at, mut run, mut cost) = (1, 1, 6);
    let slot = |at: usize| {
        let four = u32::from_le_bytes(window[at..at + 4].try_into().unwrap());
        (four.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize
    };
    while at < last_start {
        let before = std::mem::replace(&mut seen[slot(at)], at);
        let agree = (0..window.len() - 2 - at).take_while(|&i| window[before + i] == window[at + i]).count();
        let is_far = at - before >= 8192;
        if before < at && agree > if is_far { 8 } else { 6 } {
            let len = agree - 1;
            cost += 2 + usize::from(run > 0) + 2 * usize::from(is_far);
            cost += if len < 9 { 0 } else { 1 + (len - 9) / 255 };
            (at, run) = (at + len, 0);
            seen[slot(at - 2)] = at - 2;
        } else {
            (at, run, cost) = (at + 1, run + 1, cost + 1);
            if run == 32 {
                (run, cost) = (0, cost + 1);
            }
        }
    }
    at * 100 >= cost * min_ratio
}

#[test]
fn the_probe_decides_as_by_its_definition() {
    let mut probe = Probe::new().unwrap();
    let (mut yes, mut no) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (size, values, steps) = (12 + random.below(20_000), 1 + random.below(40), 1 + random.below(9));
        let plain: Vec<u8> = (0..size)
            .map(|i| if i % steps == 0 { random.below(values) } else { i / 300 }.to_le_bytes()[0])
            .collect();
        for (bits, window_shift, min_ratio) in [(12, 0, 200), (13, 0, 150), (14, 0, 110), (14, 1, 120)] {
            let demand = Demand { bits, window_shift, min_ratio };
            let Some(window) = demand.window_of(&plain) else { continue };
            let expected = shrinks_by_definition(bits, min_ratio, window);
            assert_eq!(probe.meets(&demand, window), expected, "seed {seed}, {min_ratio}");
            assert_eq!(probe.meets_portably(&demand, window), expected, "seed {seed}, {min_ratio}");
            *if expected { &mut yes } else { &mut no } += 1;
        }
    }
    assert!(yes > 200 && no > 200, "{yes} {no}");
}

#[test]
fn short_streams_are_compressed_where_the_c_library_does() {
    // The longest period, in bytes, of the streams that it compresses.
    for (len, longest) in [(91_usize, [1, 3, 6, 26]), (300, [8, 38, 50, 110])] {
        for (clevel, longest) in (1..).zip(longest) {
            for period in 2..len / 2 {
                let plain: Vec<u8> = (0..len).map(|i| (i % period * 73).to_le_bytes()[0]).collect();
                let stream = compress(clevel, &plain);
                assert_eq!(
                    stream.is_some(),
                    period <= longest,
                    "{len} bytes, level {clevel}, period {period}"
                );
                assert!(stream.is_none_or(|stream| decode(&stream, len) == Some(plain)));
            }
        }
    }
}

#[test]
fn the_portable_encoder_makes_the_same_streams() {
    for seed in 0..40 {
        let plain = repetitive(seed, 20 + 500 * usize::try_from(seed).unwrap());
        for clevel in [1, 5, 9] {
            let mut dest = vec![0; plain.len()];
            let size = Encoder::new().unwrap().compress_portably(clevel, &plain, &mut dest);
            if let Some(stream) = compress(clevel, &plain) {
                assert_eq!(size, Some(stream.len()));
                assert_eq!(dest[..stream.len()], stream);
            }
        }
    }
}

/// The lowest byte of i XOR (i - 1), which the delta filter makes of a ramp: short matches lie everywhere, but only a
/// search that does not content itself with them finds that all repeats after 128 bytes.
#[test]
fn the_ruler_sequence_compresses_well() {
    let plain: Vec<u8> = (0..32768u32).map(|i| (i ^ i.wrapping_sub(1)).to_le_bytes()[0]).collect();
    for clevel in 1..=9 {
        let stream = compress(clevel, &plain).unwrap();
        assert!(stream.len() < 500, "{} bytes at level {clevel}", stream.len());
        assert_eq!(decode(&stream, plain.len()).as_deref(), Some(&plain[..]));
    }
}

#[test]
fn records_that_change_slowly_compress_well() {
    for (step, size) in [(1u64, 8), (3, 8), (1, 16), (257, 24)] {
        let mut plain = Vec::new();
        for i in 0..2000 {
            let start = plain.len();
            plain.extend((i * step).to_le_bytes());
            plain.resize(start + size, 7);
        }
        let stream = compress(9, &plain).unwrap();
        assert!(stream.len() * 10 < plain.len() * 6, "{} of {} bytes", stream.len(), plain.len());
        assert_eq!(decode(&stream, plain.len()).as_deref(), Some(&plain[..]));
    }
}

/// Items of `size` bytes. In each, `nchanged` bytes from `from` on count up, and sometimes another one changes.
fn counting_items(size: usize, from: usize, nchanged: usize, nitems: usize) -> Vec<u8> {
    let mut random = Random::new((size * 100 + nchanged) as u64);
    let mut item: Vec<u8> = (0..size).map(|_| random.byte()).collect();
    let mut items = Vec::new();
    for _ in 0..nitems {
        (0..nchanged).for_each(|i| item[(from + i) % size] = item[(from + i) % size].wrapping_add(1));
        if random.below(50) == 0 {
            item[random.below(size)] ^= 1;
        }
        items.extend_from_slice(&item);
    }
    items
}

#[test]
fn items_that_count_round_trip() {
    for size in (1..=70).chain([100, 300, 5000]) {
        for nchanged in [1, 2, 3, 8, 9].into_iter().filter(|&n| n <= size) {
            let plain = counting_items(size, size / 3, nchanged, 20_000 / size + 5);
            if let Some(stream) = compress(9, &plain) {
                assert!(decode(&stream, plain.len()).as_ref() == Some(&plain), "{nchanged} of {size} bytes");
                assert!(
                    decode_by_definition(&stream, plain.len()) == Some(plain),
                    "{nchanged} of {size} bytes"
                );
            }
        }
    }
}

#[test]
fn integers_that_count_are_half_as_long_and_repeat_what_is_settled() {
    let plain: Vec<u8> = (0..10_000_u64).flat_map(u64::to_le_bytes).collect();
    let stream = compress(5, &plain).unwrap();
    assert!(stream.len() <= plain.len() / 2 + 100, "{}", stream.len());
    // A literal, and a match of seven bytes from 64 bytes back.
    let nsettled = stream.windows(4).filter(|bytes| matches!(bytes, [0, _, 0xa0, 63])).count();
    assert!(nsettled > 8000, "{nsettled}");
    assert!(decode(&stream, plain.len()) == Some(plain));
}

/// The bit planes of `bytes`, one after another, as BITSHUFFLE makes them of single bytes.
fn bit_planes(bytes: &[u8]) -> Vec<u8> {
    let plane = |bit: usize| {
        let gather = move |eight: &[u8]| (0..8).fold(0_u8, |sum, i| sum | (eight[i] >> bit & 1) << i);
        bytes.chunks_exact(8).map(gather)
    };
    (0..8).flat_map(plane).collect()
}

#[test]
fn bit_planes_of_a_log_are_not_given_up() {
    let mut random = Random::new(4);
    let events = ["request done", "cache miss", "connection closed by peer", "retry"];
    let (mut log, mut ms) = (String::new(), 0);
    while log.len() < 1 << 16 {
        ms += random.below(90);
        let (minutes, seconds, event) = (ms / 60_000 % 60, ms / 1000 % 60, events[random.below(4)]);
        log += &format!("12:{minutes:02}:{seconds:02}.{:03} {event}\n", ms % 1000);
    }
    let src = bit_planes(&log.as_bytes()[..1 << 16]);
    // Matches are rare, so that long steps miss many of them: 37,229 bytes; with steps of 8 only, 47,149.
    for clevel in [5, 9] {
        let stream = compress(clevel, &src).unwrap_or_else(|| panic!("level {clevel} gives up"));
        assert!(stream.len() <= 37_700, "level {clevel}: {} bytes", stream.len());
        assert!(decode(&stream, src.len()).as_ref() == Some(&src));
    }
}

#[test]
fn repeated_noise_is_found_although_the_search_makes_large_steps() {
    // As planes of bits: noise, and the same again, each time a power of two further.
    let noise = Random::new(9).bytes(16 << 10);
    let mut plain = noise.clone();
    (0..7).for_each(|_| plain.extend(&noise));
    let mut dest = vec![0; plain.len()];
    for clevel in 1..=9 {
        // The probe does not see as far as the repetition.
        let size = Encoder::new().unwrap().compress_portably(clevel, &plain, &mut dest).unwrap();
        assert!(size < 20 << 10, "{size} bytes at level {clevel}");
        assert_eq!(decode(&dest[..size], plain.len()).as_deref(), Some(&plain[..]));
    }
}

#[test]
fn short_words_among_noise_are_found_although_the_glance_makes_large_steps() {
    let mut random = Random::new(21);
    let words: Vec<Vec<u8>> = (0..500).map(|_| random.bytes(8)).collect();
    let mut plain = Vec::new();
    while plain.len() < 40_000 {
        let (has_noise, word) = (random.below(5) >= 2, random.below(500));
        plain.extend(random.bytes(if has_noise { 8 } else { 0 }));
        plain.extend(&words[word]);
    }
    let mut dest = vec![0; plain.len()];
    for clevel in 7..=9 {
        let size = Encoder::new().unwrap().compress(clevel, &plain, &mut dest);
        assert!((1..plain.len() * 3 / 4).contains(&size), "{size} bytes at level {clevel}");
        assert_eq!(decode(&dest[..size], plain.len()).as_deref(), Some(&plain[..]));
    }
}

#[test]
fn short_runs_behind_noise_are_found_although_the_search_makes_large_steps() {
    // As the bytes of floats at equal distances: one in eight changes, and there are no two of a kind at the start.
    let mut random = Random::new(5);
    for (noise, runs) in [(1024, 128), (10_000, 2000)] {
        let mut plain = random.bytes(noise);
        plain.extend(random.bytes(runs).iter().flat_map(|&byte| [byte; 8]));
        // A literal, a match, and a control byte for each.
        let expected = noise + noise / 32 + 4 * runs;
        for clevel in 4..=6 {
            let stream = compress(clevel, &plain).expect("runs are found");
            assert!(stream.len() < expected + 300, "level {clevel}: {} bytes", stream.len());
            assert_eq!(decode(&stream, plain.len()).as_deref(), Some(&plain[..]));
        }
    }
}

#[test]
fn the_ninth_byte_of_a_match_goes_to_what_follows() {
    let noise = Random::new(2).bytes(60);
    let mut dest = vec![0; 200];
    for (len, first) in [(8, 6 << 5), (9, 6 << 5), (10, 7 << 5)] {
        let plain = [&noise[..30], &noise[10..10 + len], &noise[30..]].concat();
        let size = Encoder::new().unwrap().compress_portably(5, &plain, &mut dest).unwrap();
        assert_eq!(decode(&dest[..size], plain.len()).as_deref(), Some(&plain[..]));
        assert_eq!(dest[31], first, "{len} bytes");
        // All literals, their two runs, and the match: a ninth byte does not need an extension byte.
        assert_eq!(size, if len == 8 { 64 } else { 65 }, "{len} bytes");
    }
}

#[test]
fn repetitions_in_noise_are_found_at_any_distance() {
    for distance in (5000..5040).chain([16_384, 16_391]) {
        let mut plain = Random::new(21).bytes(20_000);
        plain.copy_within(19_000 - distance..19_800 - distance, 19_000);
        let mut dest = vec![0; 2 * plain.len()];
        // The probe gives up noise with little else.
        let size = Encoder::new().unwrap().compress_portably(5, &plain, &mut dest).unwrap();
        assert!(size < 20_000 + 20_000 / 32 - 400, "distance {distance}: {size} bytes");
        assert_eq!(decode(&dest[..size], plain.len()).as_deref(), Some(&plain[..]));
    }
}

#[test]
fn areas_with_borders_that_move_compress_well() {
    // Where a value begins, the line before tells how long it stays; where it has begun, any place with this value
    // matches.
    let mut random = Random::new(8);
    let mut borders: Vec<usize> = (1..12).map(|i| 40 * i).collect();
    let mut plain = Vec::new();
    for _ in 0..200 {
        borders.iter_mut().for_each(|border| *border = *border + random.below(3) - 1);
        let value = |x: usize| borders.iter().filter(|&&border| border <= x).count() % 5;
        plain.extend((0..480).map(|x| u8::try_from(value(x)).unwrap()));
    }
    // 10,599 bytes if matches are looked for from the end of the last one on, 7,122 from its last byte on.
    let stream = compress(9, &plain).unwrap();
    assert!(stream.len() < 8000, "{} bytes", stream.len());
    assert_eq!(decode(&stream, plain.len()).as_deref(), Some(&plain[..]));
}

proptest! {
    #[test]
    fn what_is_compressed_decodes(seed: u64, n in 0usize..5000, clevel in 1u8..=9, room in 0usize..6000) {
        let plain = repetitive(seed, n);
        let mut dest = vec![0; room];
        let size = Encoder::new().unwrap().compress(clevel, &plain, &mut dest);
        if size > 0 {
            prop_assert_eq!(decode(&dest[..size], n), Some(plain.clone()));
            prop_assert_eq!(decode_by_definition(&dest[..size], n), Some(plain));
        }
    }

    #[test]
    fn small_alphabets_round_trip(plain in prop::collection::vec(0u8..3, 16..3000), clevel in 1u8..=9) {
        if let Some(stream) = compress(clevel, &plain) {
            prop_assert_eq!(decode(&stream, plain.len()), Some(plain));
        }
    }

    #[test]
    fn any_stream_decodes_like_the_definition(stream in prop::collection::vec(any::<u8>(), 0..200), size in 0usize..500) {
        prop_assert_eq!(decode(&stream, size), decode_by_definition(&stream, size));
    }
}

#[test]
fn a_prefix_is_what_the_whole_begins_with() {
    let data = repetitive(3, 20_000);
    let mut stream = vec![0; data.len()];
    let len = Encoder::new().unwrap().compress(9, &data, &mut stream);
    assert!(len > 0);
    for wanted in (0..200).chain((200..data.len()).step_by(97)) {
        let mut dest = vec![0; data.len()];
        decompress_prefix(&stream[..len], wanted, &mut dest).unwrap();
        assert_eq!(dest[..wanted], data[..wanted], "{wanted}");
    }
    let mut dest = vec![0; data.len()];
    assert!(decompress_prefix(&stream[..len / 2], data.len() - 1, &mut dest).is_err());

    let (stream, data) = erratic(5, 4000);
    for wanted in (0..data.len()).step_by(997) {
        let mut dest = vec![0; data.len()];
        decompress_prefix(&stream, wanted, &mut dest).unwrap();
        assert!(dest[..wanted] == data[..wanted], "{wanted}");
    }
}
