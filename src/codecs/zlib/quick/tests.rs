use super::super::{libdeflate, stream};
use super::*;
use proptest::prelude::*;

fn compress(src: &[u8]) -> Vec<u8> {
    let mut dest = vec![0; src.len() + src.len() / 1000 + 20];
    let size = Encoder::new().compress(src, &mut dest);
    assert!(size > 0);
    dest.truncate(size);
    dest
}

/// Compresses, and decompresses with both decoders; returns the compressed size.
fn round_trip(src: &[u8]) -> usize {
    let coded = compress(src);
    let mut back = vec![0xee; src.len()];
    stream::Decoder::new().decompress(&coded, &mut back).unwrap();
    assert!(back == src);
    back.fill(0xee);
    libdeflate::Decoder::new().decompress(&coded, &mut back).unwrap();
    assert!(back == src);
    coded.len()
}

/// A generator that is the same everywhere (xorshift).
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |n| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    }
}

/// Bytes of which each value is about half as frequent as the one before, which makes the longest codes.
fn skewed(n: usize) -> Vec<u8> {
    let mut below = random(5);
    (0..n)
        .map(|_| ((below(1 << 20) as u32).leading_zeros() - 12) as u8 + 20 * (below(400) == 0) as u8)
        .collect()
}

#[test]
fn streams_of_every_kind_are_read_by_both_decoders() {
    let mut below = random(9);
    let noise: Vec<u8> = (0..200_000).map(|_| below(256) as u8).collect();
    let nibbles: Vec<u8> = (0..200_000).map(|_| below(16) as u8).collect();
    let ramp: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
    let skewed = skewed(200_000);
    let kinds = [noise, nibbles, ramp, skewed, vec![7; 200_000], b"once upon a time, ".repeat(9000)];
    for kind in &kinds {
        let lengths = (1..100).chain([1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 140_000]);
        for len in lengths {
            round_trip(&kind[..len]);
        }
    }
    // Across blocks: halves that share codes, or do not.
    for (a, b) in [(0, 1), (1, 4), (4, 0), (3, 5)] {
        round_trip(&[&kinds[a][..100_000], &kinds[b][..100_000]].concat());
    }
}

#[test]
fn matches_of_every_length_and_distance_are_written() {
    let mut below = random(3);
    let noise: Vec<u8> = (0..33_000).map(|_| below(256) as u8).collect();
    for len in (6..1100).chain([5000, 30_000]) {
        let distance = [1, 2, 3, 4, 5, 9, 258, 1000, 24_576, 24_577, 32_768][len % 11].max(1);
        let mut src = noise[..distance.max(100)].to_vec();
        (0..len).for_each(|_| src.push(src[src.len() - distance]));
        src.extend(&noise[..20]);
        round_trip(&src);
    }
}

#[test]
fn what_is_further_back_than_the_window_is_not_found() {
    let mut below = random(7);
    let noise: Vec<u8> = (0..200).map(|_| below(256) as u8).collect();
    let apart = |distance: usize| {
        let mut src = noise.clone();
        src.resize(distance, 7);
        src.extend(&noise);
        round_trip(&src)
    };
    assert!(apart(32_768) < 350);
    assert!(apart(32_769) > 400);
}

#[test]
fn codes_of_limited_length_fit() {
    // Fibonacci numbers make the deepest tree.
    let mut counts = vec![1, 1];
    while counts.len() < 30 {
        counts.push(counts[counts.len() - 1] + counts[counts.len() - 2]);
    }
    let counts: [u32; 30] = counts.try_into().unwrap();
    for max in [7, 15] {
        for n in 2..=30 {
            let mut counts = counts;
            counts[n..].fill(0);
            let mut lengths = [0; 30];
            huffman::code_lengths(&counts, max, &mut lengths);
            let taken: f64 = lengths[..n].iter().map(|&len| 0.5_f64.powi(i32::from(len))).sum();
            assert!(lengths[..n].iter().all(|&len| (1..=max as u8).contains(&len)) && taken == 1.0);
            assert!(lengths[n..].iter().all(|&len| len == 0));
        }
    }
}

#[test]
fn output_does_not_depend_on_what_was_compressed_before() {
    let mut encoder = Encoder::new();
    let src = skewed(5000);
    let first = compress(&src);
    let mut dest = vec![0; 6000];
    // Ever higher, as they are without this test.
    for base in [1, 20_000, u32::MAX - 5001, u32::MAX - 5000, u32::MAX - 3] {
        encoder.parser.set_next_base(base);
        for _ in 0..3 {
            let size = encoder.compress(&src, &mut dest);
            assert!(dest[..size] == first);
        }
    }
}

#[test]
fn what_does_not_fit_is_given_up_and_what_just_fits_is_written() {
    for src in [skewed(3000), vec![3; 70_000], (0..=255).cycle().take(900).collect()] {
        let coded = compress(&src);
        let mut encoder = Encoder::new();
        for room in 0..coded.len() {
            assert_eq!(encoder.compress(&src, &mut vec![0; room]), 0);
        }
        let mut dest = vec![0; coded.len()];
        assert_eq!(encoder.compress(&src, &mut dest), coded.len());
        assert!(dest == coded);
    }
}

#[test]
fn noise_costs_eleven_bytes() {
    let mut below = random(1);
    let noise: Vec<u8> = (0..1000).map(|_| below(256) as u8).collect();
    assert_eq!(round_trip(&noise), 1011);
}

proptest! {
    #[test]
    fn any_bytes_come_back(
        parts in prop::collection::vec((any::<u8>(), 1usize..700, 1u8..60), 1..40),
    ) {
        let mut src = Vec::new();
        for (byte, len, step) in parts {
            match step {
                ..20 => src.resize(src.len() + len, byte),
                20..40 => src.extend((0..len).map(|i| (i * usize::from(step)) as u8 ^ byte)),
                _ => src.extend_from_within(src.len() - len.min(src.len())..),
            }
        }
        if !src.is_empty() {
            round_trip(&src);
        }
    }
}

#[test]
fn text_is_dense_and_noise_is_not() {
    let words = ["chunk ", "block ", "frame ", "of ", "the ", "and ", "shuffle ", "typesize ", "header, "];
    let mut state = 1_u32;
    let text: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words[(state >> 16) as usize % words.len()].as_bytes()
    })
    .take(20_000)
    .flatten()
    .copied()
    .collect();
    let mut encoder = Encoder::new();
    assert!(encoder.is_dense(&text));
    assert!(!encoder.is_dense(&text[..PROBED - 1]), "too short to tell");
    assert!(!encoder.is_dense(&vec![7; text.len()]));
    let noise: Vec<u8> = text
        .iter()
        .enumerate()
        .map(|(i, b)| (i as u32).wrapping_mul(0x9e37_79b1).to_le_bytes()[3] ^ b)
        .collect();
    assert!(!encoder.is_dense(&noise));
    // What was looked at leaves no traces.
    let mut dest = [vec![0; text.len()], vec![0; text.len()]];
    let sizes = [encoder.compress(&text, &mut dest[0]), Encoder::new().compress(&text, &mut dest[1])];
    assert!(sizes[0] == sizes[1] && dest[0] == dest[1]);
}
