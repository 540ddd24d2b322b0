//! All implementations read what any of them writes, refuse the same damage, and keep nothing from stream to stream.

use super::*;
use crate::testing;

/// `len` bytes of a kind: noise, runs, text, mixed, text after noise.
fn bytes(kind: usize, len: usize) -> Vec<u8> {
    let mut below = testing::below(kind as u64);
    let mut out = Vec::with_capacity(len + 64);
    while out.len() < len {
        match kind {
            0 => out.push(below(256) as u8),
            1 => out.resize(out.len() + 17 + below(200), below(7) as u8),
            4 if out.len() < len / 4 => out.push(below(256) as u8),
            2 | 4 => out.extend(["bits ", "of ", "bytes ", "and ", "blocks, "][below(5)].bytes()),
            _ => out.extend([below(3) as u8, 0, 0, (out.len() / 900) as u8]), // < 256
        }
    }
    out.truncate(len);
    out
}

const LENGTHS: [usize; 12] = [1, 2, 7, 64, 100, 300, 512, 1023, 1024, 5000, 40_000, 300_000];

#[test]
fn every_level_gives_streams_that_all_read_and_the_same_ones_from_used_encoders() {
    let mut used = Encoder::new();
    let (mut stream, mut libdeflate) = (stream::Decoder::new(), libdeflate::Decoder::new());
    for kind in 0..5 {
        for len in LENGTHS {
            let src = bytes(kind, len);
            for clevel in 1..=9 {
                let mut coded = vec![0; len + len / 8 + 100];
                let mut again = coded.clone();
                let size = used.compress(clevel, &src, &mut coded).unwrap();
                if kind == 0 && clevel == 1 && len >= TINY {
                    assert_eq!(size, 0, "length {len}: noise stays as it is at the first level");
                    continue;
                }
                assert!(size > 0, "kind {kind}, length {len}, level {clevel}");
                let same = Encoder::new().compress(clevel, &src, &mut again).unwrap();
                assert!(coded[..size] == again[..same], "kind {kind}, length {len}, level {clevel}");
                let coded = &coded[..size];
                let mut back = vec![0xee; len];
                stream.decompress(coded, &mut back).unwrap();
                assert!(back == src);
                back.fill(0xee);
                inflate::Decoder::new().decompress(coded, &mut back).unwrap();
                assert!(back == src);
                back.fill(0xee);
                libdeflate.decompress(coded, &mut back).unwrap();
                assert!(back == src);
                back.fill(0xee);
                Decoder::new().decompress(coded, &mut back).unwrap();
                assert!(back == src);
                assert_eq!(used.compress(clevel, &src, &mut again[..size - 1]).unwrap(), 0);
            }
        }
    }
}

#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    let src = bytes(1, if cfg!(miri) { 2000 } else { 300_000 });
    for clevel in 1..=9 {
        let (mut used, mut dest) = (Encoder::new(), vec![0; src.len()]);
        let size = used.compress(clevel, &src, &mut dest).unwrap();
        let expected = dest[..size].to_vec();
        for room in [10, size / 2, size - 1] {
            assert_eq!(used.compress(clevel, &src, &mut dest[..room]).unwrap(), 0);
            let again = used.compress(clevel, &src, &mut dest).unwrap();
            assert!(dest[..again] == expected, "level {clevel}, after {room} bytes of {size}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn noise_before_others_stays_as_it_is() {
    let src = bytes(4, 300_000);
    let raw = src.len() / 4 / 8192 * 8192;
    let mut dest = vec![0; src.len()];
    for clevel in 2..=9 {
        let size = Encoder::new().compress(clevel, &src, &mut dest).unwrap();
        // After the header of the stream, a block that is not the last one, raw, of the most bytes that one has.
        assert_eq!(dest[2..5], [0, 0xff, 0xff], "level {clevel}");
        let blocks = raw.div_ceil(0xffff);
        let rest = Encoder::new().compress(clevel, &src[raw..], &mut vec![0; src.len()]).unwrap();
        assert!(size <= raw + 5 * blocks + rest + 100, "{size} and {rest}, level {clevel}");
    }
    let mut encoder = deflate::Encoder::new().unwrap();
    assert_eq!(encoder.noise_len(&src), raw);
    assert_eq!(encoder.noise_len(&bytes(2, 100_000)), 0);
    // Without anything after it, down to the end, unless that is too short to tell.
    let noise = bytes(0, 13 << 13);
    assert_eq!(encoder.noise_len(&noise), noise.len());
    assert_eq!(encoder.noise_len(&noise[..noise.len() - 8100]), 12 << 13);
    let size = Encoder::new().compress(9, &noise, &mut dest).unwrap();
    assert!((noise.len()..noise.len() + 30).contains(&size));
    assert_eq!(Encoder::new().compress(9, &noise, &mut dest[..noise.len()]).unwrap(), 0);
    // What is repeated from far back is left to libdeflate.
    let repeated = [&noise[..9000], &noise[..70_000], &noise[50_000..70_000]].concat();
    assert_eq!(encoder.noise_len(&repeated), 0);
}

/// Items that count up, bytes of which few are not zero, and four values without order: 64 streams of `len` bytes each.
fn short_streams(len: usize) -> [Vec<u8>; 3] {
    let mut below = testing::below(3);
    let total = 64 * len;
    let ramps = (0..total).map(|n| ((n / 4) >> (8 * (n % 4))).to_le_bytes()[0]);
    let ramps = ramps.collect();
    let sparse = (0..total).map(|_| if below(16) == 0 { below(256) as u8 } else { 0 }).collect();
    let few = (0..total).map(|_| below(4) as u8).collect();
    [ramps, sparse, few]
}

#[test]
fn short_streams_have_codes_of_their_own_from_level_four_on() {
    let mut encoder = Encoder::new();
    let mut sum = |clevel: u8, len: usize, bytes: &[u8]| -> usize {
        let mut dest = vec![0; len];
        let sizes = bytes.chunks(len).map(|src| match encoder.compress(clevel, src, &mut dest).unwrap() {
            0 => len,
            size => size,
        });
        sizes.sum()
    };
    // In percent: what zlib-ng needs at level 5, and up to a tenth more.
    for (len, most) in [
        (64, [71, 38, 66]),
        (128, [55, 30, 51]),
        (256, [48, 25, 43]),
        (512, [46, 22, 38]),
        (1024, [47, 22, 36]),
    ] {
        for (bytes, most) in short_streams(len).iter().zip(most) {
            for clevel in [4, 5, 9] {
                let size = sum(clevel, len, bytes);
                assert!(
                    100 * size <= most * bytes.len(),
                    "{size} for length {len}, level {clevel}, {most} %"
                );
            }
        }
    }
}

#[test]
fn tiny_streams_are_hardly_larger_than_those_of_zlib() {
    let mut encoder = Encoder::new();
    // Noise and two runs, as bits in order make them.
    let runs = |n: usize| [&bytes(0, 16 * n + 16)[16 * n..], &[0; 24], &[255; 16], &[0; 8]].concat();
    let runs: Vec<u8> = (0..64).flat_map(runs).collect();
    let size = |bytes: &[u8], len: usize, compress: &mut dyn FnMut(&[u8], &mut [u8]) -> usize| -> usize {
        let mut dest = [0; TINY];
        let stored = |size: usize| if size == 0 { len } else { size };
        bytes.chunks_exact(len).map(|src| stored(compress(src, &mut dest[..len]))).sum()
    };
    for (len, clevel) in [CODED, 100, TINY - 1].into_iter().flat_map(|len| (1..=9).map(move |n| (len, n))) {
        let (mut all, mut all_theirs) = (0, 0);
        for bytes in short_streams(len).into_iter().chain([words_and_noise(), runs.clone()]) {
            let ours = size(&bytes, len, &mut |src, dest| encoder.compress(clevel, src, dest).unwrap());
            let mut zlib = stream::Encoder::new();
            let theirs = size(&bytes, len, &mut |src, dest| zlib.compress(clevel, src, dest).unwrap());
            assert!(ours <= theirs + theirs / 4, "{ours} and {theirs} for {len}, level {clevel}");
            assert!(bytes != runs || len != 64 || ours <= theirs + theirs / 50, "{ours} and {theirs}");
            (all, all_theirs) = (all + ours, all_theirs + theirs);
        }
        assert!(all <= all_theirs + all_theirs / 12, "{all} and {all_theirs} for {len}, level {clevel}");
    }
}

#[test]
fn what_becomes_of_a_tiny_stream_does_not_depend_on_the_room() {
    let mut encoder = Encoder::new();
    for len in [1, 30, CODED, 98, TINY - 1] {
        let kinds = short_streams(len).into_iter().chain([words_and_noise(), bytes(0, len), bytes(1, len)]);
        for bytes in kinds {
            let src = &bytes[..len];
            for clevel in 1..=9 {
                let mut dest = [0; 2 * TINY];
                let size = encoder.compress(clevel, src, &mut dest).unwrap();
                for room in 0..dest.len() {
                    let mut other = [0; 2 * TINY];
                    let fitting = encoder.compress(clevel, src, &mut other[..room]).unwrap();
                    assert_eq!(fitting, if room < size { 0 } else { size }, "{len}, level {clevel}, {room}");
                    assert!(fitting == 0 || other[..size] == dest[..size]);
                }
            }
        }
    }
}

#[test]
fn each_encoder_is_chosen_where_it_is_faster() {
    let (runs, text) = (bytes(1, 20_000), bytes(2, 20_000));
    let mut encoder = Encoder::new();
    let mut chosen = |clevel: u8, src: &[u8]| {
        let mut dest = vec![0; 20_000];
        let size = encoder.compress(clevel, src, &mut dest).unwrap();
        dest.truncate(size);
        dest
    };
    let made = |compress: &mut dyn FnMut(&mut [u8]) -> usize| {
        let mut dest = vec![0; 20_000];
        let size = compress(&mut dest);
        dest.truncate(size);
        dest
    };
    let thorough = |effort: Effort, src: &[u8]| {
        let probe = deflate::Probe::of(src);
        let mut encoder = deflate::Encoder::new().unwrap();
        made(&mut |dest| encoder.compress_thoroughly(src, &probe, effort, dest))
    };
    let by_libdeflate = |level: i32, src: &[u8]| {
        made(&mut |dest| libdeflate::Encoder::new().compress(level, src, dest).unwrap())
    };
    let by_zlib =
        |level: u8, src: &[u8]| made(&mut |dest| stream::Encoder::new().compress(level, src, dest).unwrap());
    assert!(chosen(5, &runs) == thorough(Effort { steps_per_bit: 10, long: 258, ways: WAYS }, &runs));
    assert!(chosen(6, &runs) == thorough(UTMOST, &runs));
    // Words of which each has a letter of its own, and a few words only.
    let mixed = &words_and_noise()[..20_000];
    for (clevel, level) in [(5, 4), (6, 5), (7, 6), (8, 6), (9, 7)] {
        assert!(chosen(clevel, mixed) == by_libdeflate(level, mixed));
    }
    assert!(chosen(4, &text) == by_libdeflate(3, &text));
    let longer_text = bytes(2, 40_000);
    assert!(chosen(5, &text) == by_libdeflate(5, &text));
    assert!(chosen(5, &longer_text) == by_zlib(5, &longer_text));
    for clevel in 6..=7 {
        assert!(chosen(clevel, &text) == by_zlib(clevel, &text));
    }
    assert!(chosen(8, &text) == by_libdeflate(8, &text) && chosen(9, &text) == by_libdeflate(8, &text));
    assert!(chosen(7, &runs) == thorough(UTMOST, &runs) && chosen(8, &runs) == thorough(UTMOST, &runs));
    assert!(chosen(9, &runs) == by_zlib(9, &runs));
    assert!(chosen(1, &runs) == by_zlib(1, &runs));
    let grid = grid(20_000);
    for clevel in 2..=8 {
        assert!(chosen(clevel, &grid) == thorough(UTMOST, &grid), "level {clevel}");
    }
    assert!(chosen(9, &grid) == by_zlib(9, &grid));
    let quick = |src: &[u8]| made(&mut |dest| deflate::Encoder::new().unwrap().compress_quickly(src, dest));
    assert!(chosen(1, mixed) == quick(mixed) && chosen(2, &runs) == quick(&runs));
    assert!(share_of_runs(&runs) >= 75 && share_of_runs(&text) == 0);
    assert_eq!(share_of_runs(&[0; 1023]), 0);
    assert_eq!(share_of_runs(&[0; 1024]), 100);
}

#[test]
fn what_repeats_is_not_larger_than_with_zlib_from_level_six_on() {
    // Records of 40 bytes, the first of which tells the number.
    let records: Vec<u8> = (0..5000_u32)
        .flat_map(|n| {
            let rest = (4..40).map(|i| (i * i) as u8);
            n.to_le_bytes().into_iter().chain(rest)
        })
        .collect();
    let period: Vec<u8> = (0..200_000_u32).map(|i| (i % 47 * 5) as u8).collect();
    for src in [&records, &period] {
        let mut dest = vec![0; src.len()];
        for clevel in 6..=9 {
            let ours = Encoder::new().compress(clevel, src, &mut dest).unwrap();
            let by_zlib = stream::Encoder::new().compress(clevel, src, &mut dest).unwrap();
            assert!(0 < ours && ours <= by_zlib + by_zlib / 20, "{ours} and {by_zlib} at {clevel}");
        }
    }
}

/// Coordinates of 1000 points, line by line, in `len` bytes.
fn grid(len: usize) -> Vec<u8> {
    (0..len / 4).flat_map(|n| (1_000_000 + n % 1000 * 7).to_le_bytes().into_iter().take(4)).collect()
}

/// What a search with few steps, or one that remembers little of what it has found, makes much larger than others do:
/// rows in which some bytes change, flags, text of wide characters, items of a few values, a long period, and a grid
/// with errors.
fn hard_to_find() -> [(&'static str, Vec<u8>); 7] {
    const LEN: usize = 300_000;
    let mut below = testing::below(4);
    let mut rows = |len: usize, nchanges: usize| {
        let row: Vec<u8> = (0..len).map(|_| below(256) as u8).collect();
        let mut rows: Vec<u8> = row.iter().copied().cycle().take(LEN).collect();
        for _ in 0..nchanges {
            // What changes stays so.
            let (at, new) = (below(LEN), below(256) as u8);
            rows[at..].iter_mut().step_by(len).for_each(|byte| *byte = new);
        }
        rows
    };
    let (changing, long, period) = (rows(4000, LEN / 200), rows(30_000, 50), rows(8000, 0));
    let mut errors = grid(LEN);
    for _ in 0..LEN / 4000 {
        errors[below(LEN)] ^= 1;
    }
    let (mut flags, mut value) = (Vec::new(), 0);
    while flags.len() < LEN {
        value ^= 1;
        let mut len = 1;
        while below(40) > 0 {
            len += 1;
        }
        flags.resize(flags.len() + len, value);
    }
    let words: Vec<Vec<u8>> =
        (0..500).map(|_| (0..3 + below(5)).map(|_| b'a' + below(20) as u8).collect()).collect();
    let mut text = Vec::new();
    while text.len() < LEN {
        let word = &words[below(500).min(below(500))];
        word.iter().chain(b" ").for_each(|&letter| text.extend([letter, 0, 0, 0]));
    }
    let values: Vec<f32> = (0..12).map(|n| n as f32 * 1.5).collect();
    let items = (0..LEN / 4).flat_map(|_| values[below(12).min(below(12))].to_le_bytes()).collect();
    [
        ("changing rows", changing),
        ("long rows", long),
        ("a period", period),
        ("flags", flags),
        ("text", text),
        ("items", items),
        ("a grid", errors),
    ]
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn streams_are_hardly_larger_than_those_of_zlib() {
    let mut encoder = Encoder::new();
    for (what, src) in hard_to_find() {
        for clevel in 1..=9 {
            let mut dest = vec![0; src.len() + 1000];
            let ours = encoder.compress(clevel, &src, &mut dest).unwrap();
            let mut back = vec![0; src.len()];
            stream::Decoder::new().decompress(&dest[..ours], &mut back).unwrap();
            assert!(back == src, "{what} at level {clevel}");
            let by_zlib = stream::Encoder::new().compress(clevel, &src, &mut dest).unwrap();
            // What shrinks far is searched quickly at the second level.
            let most = by_zlib + by_zlib / if clevel == 2 { 5 } else { 10 };
            assert!(ours <= most, "{ours} and {by_zlib} for {what} at level {clevel}");
        }
    }
}

/// The bytes of `len / 4` numbers, shuffled: what `mix` makes of 0, 1, 2, ...
fn mixed_counter(mix: fn(u32) -> u32, len: usize) -> Vec<u8> {
    let items = len as u32 / 4; // a few hundred thousand
    (0..4).flat_map(|byte| (0..items).map(move |i| mix(i).to_le_bytes()[byte])).collect()
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn counters_are_told_from_noise_and_hardly_larger_than_with_zlib() {
    let is_counter = |src: &[u8]| counters(0, By::Own).may_be(src, &&deflate::Probe::of(src));
    for len in [MEDIUM + 1, 20_000, 32_768, 65_536, 300_000] {
        for seed in 0..20 {
            assert!(!is_counter(&testing::Random::new(seed).bytes(len)), "{len} bytes of noise");
        }
    }
    let mut encoder = Encoder::new();
    let mixes: [fn(u32) -> u32; 3] = [
        |i| i << 26 ^ i << 18 ^ i << 11 ^ i << 3 ^ i,
        |i| (i << 18 ^ i << 11 ^ i << 3 ^ i) & 0x7_ffff,
        |i| i.wrapping_mul(2_654_435_761),
    ];
    for (n, mix) in mixes.into_iter().enumerate() {
        for clevel in 2..=8 {
            let src = mixed_counter(mix, 64 << 10 << (clevel / 2));
            assert!(is_counter(&src), "mix {n}");
            let mut dest = vec![0; src.len()];
            let ours = encoder.compress(clevel, &src, &mut dest).unwrap();
            let by_zlib = stream::Encoder::new().compress(clevel, &src, &mut dest).unwrap();
            assert!(
                0 < ours && ours <= by_zlib + by_zlib / 5,
                "{ours} and {by_zlib} for mix {n} at level {clevel}"
            );
        }
    }
}

#[test]
fn libdeflate_decodes_text_unless_it_is_short_and_what_is_tiny() {
    let coded = |src: &[u8]| {
        let mut dest = vec![0; src.len() + 100];
        let size = libdeflate::Encoder::new().compress(5, src, &mut dest).unwrap();
        dest.truncate(size);
        dest
    };
    let text = words_and_noise();
    let (long, short) = (&text[..LOOKED_AT], &text[..LOOKED_AT - 1]);
    assert!(is_for_libdeflate(&coded(long), long.len()));
    assert!(!is_for_libdeflate(&coded(short), short.len()));
    assert!((0..4).all(|kind| !is_for_libdeflate(&coded(&bytes(kind, 40_000)), 40_000)));
    assert!((0..4).all(|kind| is_for_libdeflate(&coded(&bytes(kind, TINY - 1)), TINY - 1)));
    assert!((0..4).all(|kind| !is_for_libdeflate(&coded(&bytes(kind, TINY)), TINY)));
}

#[test]
fn libdeflate_decodes_the_fixed_codes_unless_matches_are_near() {
    // Of zlib-ng's first level, as the C library writes them.
    let coded = |src: &[u8]| {
        let mut dest = vec![0; src.len() + 100];
        let size = stream::Encoder::new().compress(1, src, &mut dest).unwrap();
        dest.truncate(size);
        dest
    };
    let text: Vec<u8> =
        bytes(0, 10_000).iter().flat_map(|rare| WORDS[usize::from(rare % 4)]).copied().collect();
    let counters: Vec<u8> = (0..4000_u64).flat_map(|i| (i * 7 + (7 << 40)).to_le_bytes()).collect();
    assert!(is_for_libdeflate(&coded(&text), text.len()));
    assert!(!is_for_libdeflate(&coded(&counters), counters.len()));
    assert!(!is_for_libdeflate(&coded(&text[..LOOKED_AT - 1]), LOOKED_AT - 1));
}

const WORDS: [&[u8]; 4] = [b"bits", b"bytes", b"blocks", b"chunks"];

/// Words, of which each has a few letters of its own.
fn words_and_noise() -> Vec<u8> {
    let noise = bytes(0, 40_000);
    noise.chunks(2).flat_map(|rare| [WORDS[usize::from(rare[0] % 4)], &rare[1..]].concat()).collect()
}

#[test]
fn damaged_streams_are_refused_by_all() {
    let src = bytes(2, 3000);
    for clevel in [1, 5] {
        let mut coded = vec![0; 4000];
        let size = Encoder::new().compress(clevel, &src, &mut coded).unwrap();
        coded.truncate(size);
        let (mut stream, mut libdeflate) = (stream::Decoder::new(), libdeflate::Decoder::new());
        let mut inflate = inflate::Decoder::new();
        let mut dest = vec![0; src.len()];
        let mut check = |coded: &[u8], dest: &mut [u8], is_good: bool, what: &str| {
            assert_eq!(stream.decompress(coded, dest).is_ok(), is_good, "zlib-rs: {what}");
            assert_eq!(libdeflate.decompress(coded, dest).is_ok(), is_good, "libdeflate: {what}");
            assert_eq!(inflate.decompress(coded, dest).is_ok(), is_good, "our own: {what}");
        };
        check(&coded, &mut dest, true, "whole");
        check(&[&coded[..], b"more"].concat(), &mut dest, true, "followed by more");
        check(&coded, &mut dest[..2999], false, "too long");
        check(&coded, &mut [0; 3001], false, "too short");
        for len in 0..size {
            check(&coded[..len], &mut dest, false, "cut off");
        }
        let mut nrefused = 0;
        for at in 0..size {
            for bit in 0..8 {
                let mut damaged = coded.clone();
                damaged[at] ^= 1 << bit;
                // Other bytes never, but the same ones may come back: from another match, or if the bit had no meaning.
                let is_good = stream::Decoder::new().decompress(&damaged, &mut dest).is_ok();
                assert!(!is_good || dest == src);
                check(&damaged, &mut dest, is_good, &format!("bit {bit} of byte {at} of {size} has changed"));
                nrefused += usize::from(!is_good);
            }
        }
        assert!(nrefused > 7 * size, "{nrefused} of {} are refused", 8 * size);
    }
}

#[test]
fn prefixes_are_read_without_the_rest() {
    for (kind, clevel) in [(0, 5), (1, 5), (2, 1), (3, 9)] {
        let src = bytes(kind, 10_000);
        let mut coded = vec![0; 10_100];
        let size = Encoder::new().compress(clevel, &src, &mut coded).unwrap();
        let mut decoder = Decoder::new();
        for len in [1, 9, 100, 4999, 5001, 9999, 10_000] {
            let mut dest = vec![0; 10_000];
            decoder.decompress_prefix(&coded[..size], len, &mut dest).unwrap();
            assert!(dest[..len] == src[..len]);
        }
        assert!(decoder.decompress_prefix(&coded[..size], 10_001, &mut vec![0; 10_001]).is_err());
        assert!(decoder.decompress_prefix(&coded[..size / 2], 10_000, &mut vec![0; 10_000]).is_err());
    }
}

#[test]
fn codes_that_zlib_refuses_are_refused_in_tiny_streams() {
    // An A, and a match of three bytes: with the other half of the only code for distances, with lengths for 288
    // symbols, and with those for 32 distances.
    let streams = [
        "789c0de00108000000402054555555555555555555555555555555755555555555555555555555555555555555555555555555555555555555\
         555555555555555555555555555555b107028e0105",
        "789cfde001040000008020000000000000000008000000000000000000000000000000000000000000000078000000200b028e0105",
        "789c0dff0108000000801054555555555555555555555555555555a5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\
         aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa5e555555555555556501028e0105",
    ];
    for stream in streams {
        let stream: Vec<u8> = (0..stream.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&stream[at..at + 2], 16).unwrap())
            .collect();
        let mut dest = [0; 4];
        assert!(stream::Decoder::new().decompress(&stream, &mut dest).is_err());
        assert!(Decoder::new().decompress(&stream, &mut dest).is_err());
    }
}
