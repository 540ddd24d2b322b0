use super::super::{inflate, libdeflate, stream};
use super::blocks::{MAX_BLOCK, write_sequences};
use super::counts::Counts;
use super::sequence::Sequence;
use super::worth::{BIT, Worth};
use super::*;
use crate::codecs::zlib::format;
use crate::testing::{self, Random};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

type Compress = fn(&mut Encoder, &[u8], &mut [u8]) -> usize;

const SEARCHES: [Compress; 5] =
    [compress_sparsely, compress_thoroughly, compress_densely, compress_with_little_effort, compress_short];

fn compress_thoroughly(encoder: &mut Encoder, src: &[u8], dest: &mut [u8]) -> usize {
    encoder.compress_thoroughly(
        src,
        &Probe::of(src),
        Effort { steps_per_bit: 10, long: 24, ways: WAYS },
        dest,
    )
}

fn compress_with_little_effort(encoder: &mut Encoder, src: &[u8], dest: &mut [u8]) -> usize {
    encoder.compress_thoroughly(src, &Probe::of(src), Effort { steps_per_bit: 1, long: 5, ways: 1 }, dest)
}

/// For what is short enough.
fn compress_short(encoder: &mut Encoder, src: &[u8], dest: &mut [u8]) -> usize {
    if src.len() > 1 << 16 {
        return compress_thoroughly(encoder, src, dest);
    }
    encoder.compress_short(src, Effort { steps_per_bit: 40, long: 258, ways: WAYS }, dest)
}

fn compress_sparsely(encoder: &mut Encoder, src: &[u8], dest: &mut [u8]) -> usize {
    encoder.try_sparsely(src, dest).unwrap_or(0)
}

fn compress_densely(encoder: &mut Encoder, src: &[u8], dest: &mut [u8]) -> usize {
    encoder.dense.begin();
    encoder.try_densely(src, 0, dest).unwrap_or(0)
}

fn compress(search: Compress, src: &[u8]) -> Vec<u8> {
    let mut dest = vec![0; src.len() + src.len() / 1000 + 20];
    let size = search(&mut Encoder::new().unwrap(), src, &mut dest);
    assert!(size > 0);
    dest.truncate(size);
    dest
}

/// Compresses, and decompresses with all decoders; returns the compressed sizes.
fn round_trip(src: &[u8]) -> [usize; 5] {
    SEARCHES.map(|search| {
        let coded = compress(search, src);
        let mut back = vec![0xee; src.len()];
        stream::Decoder::new().decompress(&coded, &mut back).unwrap();
        assert!(back == src);
        back.fill(0xee);
        libdeflate::Decoder::new().decompress(&coded, &mut back).unwrap();
        assert!(back == src);
        back.fill(0xee);
        inflate::Decoder::new().decompress(&coded, &mut back).unwrap();
        assert!(back == src);
        coded.len()
    })
}

/// Bytes of which each value is about half as frequent as the one before, which makes the longest codes.
fn skewed(n: usize) -> Vec<u8> {
    let mut below = testing::below(5);
    (0..n)
        .map(|_| ((below(1 << 20) as u32).leading_zeros() - 12) as u8 + 20 * (below(400) == 0) as u8)
        .collect()
}

#[test]
fn streams_of_every_kind_are_read_by_all_decoders() {
    let mut random = Random::new(9);
    let most = if cfg!(miri) { 9000 } else { 200_000 };
    let noise = random.bytes(most);
    let nibbles: Vec<u8> = (0..most).map(|_| random.below(16) as u8).collect();
    let ramp: Vec<u8> = (0..most as u32 / 4).flat_map(u32::to_le_bytes).collect();
    let skewed = skewed(most);
    let kinds = [noise, nibbles, ramp, skewed, vec![7; most], b"once upon a time, ".repeat(9000)];
    for kind in &kinds {
        let ends = [SEGMENT, 3 * SEGMENT, dense::MAX_BLOCK, RAW_BLOCK, 2 * RAW_BLOCK]
            .into_iter()
            .flat_map(|n| n - 1..n + 2);
        let lengths = (1..100).chain([1000, 140_000]).chain(ends);
        for len in lengths.filter(|len| !cfg!(miri) || [1, 90, 500].contains(len)) {
            round_trip(&kind[..len]);
        }
    }
    if cfg!(miri) {
        return;
    }
    // Across blocks: halves that share codes, or do not.
    for (a, b) in [(0, 1), (1, 4), (4, 0), (3, 5)] {
        round_trip(&[&kinds[a][..100_000], &kinds[b][..100_000]].concat());
    }
}

#[test]
fn matches_of_every_length_and_distance_are_written() {
    let noise = Random::new(3).bytes(33_000);
    for len in (6..1100).chain([5000, 30_000]).filter(|len| !cfg!(miri) || len % 110 < 11 && *len < 300) {
        let distance = [1, 2, 3, 4, 5, 9, 258, 1000, 24_576, 24_577, 32_768][len % 11].max(1);
        let mut src = noise[..distance.max(100)].to_vec();
        (0..len).for_each(|_| src.push(src[src.len() - distance]));
        src.extend(&noise[..20]);
        round_trip(&src);
    }
}

#[test]
fn rows_go_on_behind_bytes_that_change_and_ends_of_blocks() {
    let (row, most) = if cfg!(miri) { (300, 1500) } else { (5000, 200_000) };
    let mut random = Random::new(12);
    let mut src: Vec<u8> = random.bytes(row).into_iter().cycle().take(most).collect();
    for nchanged in (1..9).cycle().take(most / row / 2) {
        let at = random.below(most - nchanged);
        src[at..at + nchanged].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    }
    let [quick, thorough, _, with_little_effort, _] = round_trip(&src);
    // A row, as many bytes for all others together at most, and little for what small data need.
    for size in [quick, thorough, with_little_effort] {
        assert!(size < 2 * row + 300, "{size}");
    }
}

#[test]
fn what_is_between_runs_costs_little_more_than_its_literals() {
    let (n, mut random) = (if cfg!(miri) { 20 } else { 600 }, Random::new(13));
    let (mut steps, mut sparse) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let item = random.bytes(8);
        steps.extend(item.repeat(6 + random.below(10)));
        sparse.extend(item);
        sparse.resize(sparse.len() + 40 + random.below(300), 0);
    }
    for src in [steps, sparse] {
        let [quick, ..] = round_trip(&src);
        assert!(quick < 13 * n + 200, "{quick}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_is_further_back_than_the_window_is_not_found() {
    let mut random = Random::new(7);
    let noise = random.bytes(200);
    let gap: Vec<u8> = (0..40_000).map(|_| random.below(200) as u8).collect();
    let apart = |distance: usize| {
        let mut src = noise.clone();
        src.extend_from_slice(&gap[..distance - noise.len()]);
        src.extend(&noise);
        round_trip(&src)
    };
    let (found, not_found) = (apart(32_768), apart(32_769));
    assert!(found.iter().zip(not_found).all(|(&found, other)| found + 150 < other));
}

#[test]
fn long_codes_are_whole_where_a_segment_ends_without_a_match() {
    // Each value is half as frequent as the one before, down to the rarest with codes of 15 bits. The first segment
    // ends with these, which are two more than a multiple of three, and the second begins with other rare ones.
    let rare = [15, 14, 13, 13, 12];
    let mut block: Vec<u8> = (0..14).flat_map(|value| vec![value; 1 << (14 - value)]).collect();
    block.truncate(block.len() / 3 * 3);
    block.extend(rare);
    let sequences = [block.len() - 3, 3].map(Sequence::literals_only);
    let (mut counts, mut candidates) = (Counts::new(), Candidates::new().unwrap());
    counts.reset();
    counts.count_literals(&block, &sequences);
    let codes = candidates.best(&counts);
    assert!(rare.iter().map(|&byte| u32::from(codes.literal(byte).len)).sum::<u32>() > 64);
    let mut dest = vec![0; block.len()];
    let mut out = BitWriter::new(&mut dest);
    out.append(&THOROUGH_HEADER).unwrap();
    write_block(codes, &block, true, &mut out, |out| write_sequences(codes, &block, &sequences, out))
        .unwrap();
    let size = finish(&block, out).unwrap();
    let mut back = vec![0; block.len()];
    stream::Decoder::new().decompress(&dest[..size], &mut back).unwrap();
    assert!(back == block);
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
            let lengths = huffman::DistanceLengths::best(&counts, max);
            let lengths = lengths.as_slice();
            assert!(lengths[..n].iter().all(|&len| (1..=max as u8).contains(&len)));
            let taken: u32 = lengths[..n].iter().map(|&len| 1 << max >> len).sum();
            assert_eq!(taken, 1 << max);
            assert!(lengths[n..].iter().all(|&len| len == 0));
        }
    }
}

/// Bits of symbols that occur as often as this with the codes of a Huffman tree, of those the flattest, and its depth.
fn tree_bits(counts: &[u32]) -> (u32, usize) {
    let mut heap: BinaryHeap<_> = counts.iter().filter(|&&n| n > 0).map(|&n| Reverse((n, 0))).collect();
    if heap.len() == 1 {
        return (heap.peek().unwrap().0.0, 1);
    }
    let (mut sum, mut depth) = (0, 0);
    while let (Some(Reverse(first)), Some(Reverse(second))) = (heap.pop(), heap.pop()) {
        sum += first.0 + second.0;
        depth = first.1.max(second.1) + 1;
        heap.push(Reverse((first.0 + second.0, depth)));
    }
    (sum, depth)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn codes_are_as_short_as_a_tree_makes_them(
        skew in 0_u32..14,
        counts in prop::collection::vec(prop_oneof![Just(0), 1..10_000_u32], 1..=format::SYMBOLS),
    ) {
        // Equal counts, and such as occur in short blocks, are as usual as others.
        let counts: Vec<u32> = counts.iter().map(|&n| if n > 0 { (n >> skew).max(1) } else { 0 }).collect();
        let lengths = huffman::SymbolLengths::best(&counts, format::MAX_CODE);
        prop_assert!(lengths.as_slice().iter().zip(&counts).all(|(&len, &n)| (len > 0) == (n > 0)));
        let (bits, (of_tree, depth)) = (lengths.data_bits(&counts), tree_bits(&counts));
        // Where the tree is too deep for the format, the rarest ones cost a little more.
        let limit = if depth <= format::MAX_CODE { of_tree } else { of_tree + of_tree / 500 };
        prop_assert!((of_tree..=limit).contains(&bits), "{bits} bits, {of_tree} of a tree {depth} deep");
    }
}

#[test]
fn codes_of_a_tree_that_is_too_deep_cost_little_more() {
    let mut counts = vec![1_u32, 1];
    while counts.len() < 24 {
        counts.push(counts[counts.len() - 2] + counts[counts.len() - 1]);
    }
    let (of_tree, depth) = tree_bits(&counts);
    let bits = huffman::SymbolLengths::best(&counts, format::MAX_CODE).data_bits(&counts);
    assert!(depth == 23 && bits > of_tree && bits <= of_tree + of_tree / 200, "{bits} {of_tree} {depth}");
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn output_does_not_depend_on_what_was_compressed_before() {
    for search in SEARCHES {
        let mut encoder = Encoder::new().unwrap();
        let src = [skewed(5000), vec![3; 300], b"once upon a time, ".repeat(40)].concat();
        let first = compress(search, &src);
        let last = u32::MAX - src.len() as u32; // a few thousand
        let mut dest = vec![0; 7000];
        // Ever higher, as they are without this test.
        for base in [1, 100_000, last - 1, last, u32::MAX - 3] {
            encoder.quick.set_next_base(base);
            encoder.thorough.set_next_base(base);
            for _ in 0..3 {
                let size = search(&mut encoder, &src, &mut dest);
                assert!(dest[..size] == first);
                search(&mut encoder, &src[1000..], &mut dest);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_does_not_fit_is_given_up_and_what_just_fits_is_written() {
    let noise = Random::new(2).bytes(SEGMENT);
    let mixed = [&noise[..], &skewed(2 * SEGMENT), &noise[..900]].concat();
    for src in [skewed(3000), vec![3; 70_000], (0..=255).cycle().take(900).collect(), mixed] {
        for search in SEARCHES {
            let coded = compress(search, &src);
            let mut encoder = Encoder::new().unwrap();
            for room in
                (0..coded.len()).filter(|room| room % 37 == 0 || room + 50 > coded.len() || *room < 50)
            {
                assert_eq!(search(&mut encoder, &src, &mut vec![0; room]), 0);
            }
            let mut dest = vec![0; coded.len()];
            assert_eq!(search(&mut encoder, &src, &mut dest), coded.len());
            assert!(dest == coded);
            let mut dest = vec![0; 2 * src.len()];
            assert_eq!(search(&mut encoder, &src, &mut dest), coded.len());
            assert!(dest[..coded.len()] == coded);
        }
    }
}

#[test]
fn tiny_streams_are_searched_up_to_their_end_and_for_short_matches() {
    let noise = Random::new(1).bytes(16);
    let runs = [&noise[..], &[0; 24], &[255; 16], &[0; 8]].concat();
    let rows: Vec<u8> = (0..12).flat_map(|row| [row * 17, 1, 2, 3, 4]).collect();
    for (src, most) in [(runs, 34), (rows, 45)] {
        let coded = compress(Encoder::compress_quickly, &src);
        assert!(coded.len() <= most, "{} bytes", coded.len());
        round_trip(&src);
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_repeats_itself_at_several_distances_is_found_where_it_began() {
    // Two values in turn, which change every 32 bytes, and in another order every 8192.
    let src: Vec<u8> = (0_u32..1 << 17).map(|i| ((i << 2 ^ i >> 5 ^ i >> 13) & 7) as u8).collect();
    let size = compress(compress_thoroughly, &src).len();
    let other = libdeflate::Encoder::new().compress(4, &src, &mut vec![0; src.len()]).unwrap();
    assert!(size <= other, "{size} {other}");
}

#[test]
fn short_streams_that_shrink_far_have_the_fixed_codes_unless_others_save_an_eighth() {
    let kind = |src: &[u8]| u32::from(compress(compress_short, src)[2] & 7) >> 1;
    // Counters of 24 bytes: half of the tokens are matches of one length and distance, and the others differ.
    let counters: Vec<u8> = (0..600).map(|i| if i % 24 == 0 { (i / 24) as u8 * 7 } else { 0 }).collect();
    assert_eq!(kind(&counters), format::FIXED);
    // They would be hardly shorter with codes of their own.
    let size = compress(compress_short, &counters).len();
    let of_their_own = libdeflate::Encoder::new().compress(6, &counters, &mut [0; 600]).unwrap();
    assert!(size <= of_their_own + of_their_own / 7, "{size} {of_their_own}");
    // One byte in eight of two values, among zeros: two literals have nearly all of the tokens.
    let mut random = Random::new(5);
    let mut rare = || if random.below(8) == 0 { 200 + random.below(2) as u8 } else { 0 };
    let sparse: Vec<u8> = std::iter::repeat_with(&mut rare).take(1000).collect();
    assert_eq!(kind(&sparse), format::DYNAMIC);
}

#[test]
fn noise_costs_eleven_bytes() {
    let noise = Random::new(1).bytes(1000);
    assert_eq!(round_trip(&noise), [1011; 5]);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn runs_are_coded_in_bulk_however_long_they_are() {
    for len in [MAX_BLOCK - 1, MAX_BLOCK + 1, 5_000_000] {
        let mut src = vec![9; len];
        src.extend(b"the end");
        let [_, size, ..] = round_trip(&src);
        assert!(size < 200 + len / 1000, "{len} bytes in {size}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn blocks_end_where_the_data_change() {
    let mut random = Random::new(4);
    let noise = random.bytes(5 * SEGMENT);
    for values in [16, 200] {
        let others: Vec<u8> = (0..5 * SEGMENT).map(|_| random.below(values) as u8).collect();
        let apart = [round_trip(&noise), round_trip(&others)];
        let together = round_trip(&[&noise[..], &others].concat());
        for search in [0, 1] {
            assert!(together[search] <= apart[0][search] + apart[1][search], "{together:?} and {apart:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_the_fixed_codes_do_not_shrink_is_not_compressed_quickly() {
    let mut random = Random::new(5);
    let mut of_values = |n: usize| -> Vec<u8> { (0..100_000).map(|_| random.below(n) as u8).collect() };
    let compress_quickly =
        |src: &[u8]| Encoder::new().unwrap().compress_quickly(src, &mut vec![0; 2 * src.len()]);
    let (letters, bytes) = (of_values(100), of_values(220));
    assert_eq!(compress_quickly(&bytes), 0);
    // With the fixed codes, these take eight bits, or nine.
    assert!((1..90_000).contains(&compress_quickly(&letters)));
    assert!((1..100_000).contains(&compress_quickly(&[&bytes[..50_000], &letters[..50_000]].concat())));
    assert!((1..100_000).contains(&compress_quickly(&[&bytes[..], &vec![0; 7000]].concat())));
    // Tiny streams have no others.
    assert!(compress_quickly(&bytes[..TINY - 1]) > 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn thorough_streams_are_no_longer_than_those_of_others() {
    let mut below = testing::below(6);
    // Square waves, as bit planes of a ramp are, and bytes of which some come from nearby.
    let mut waves = Vec::new();
    for period in (0..12).map(|log| 1 << log) {
        waves.extend((0..4096).map(|i| if i / period % 2 == 0 { 0 } else { 0xff_u8 }));
        waves.extend((0..500).map(|i| (0x55_u64 << (i % 7)) as u8));
    }
    let mut echoes: Vec<u8> = (0..1000).map(|_| below(256) as u8).collect();
    while echoes.len() < 60_000 {
        let (from, len) = (echoes.len() - 1 - below(900), 4 + below(60));
        (from..from + len).for_each(|at| echoes.push(echoes[at]));
        (0..below(40)).for_each(|_| echoes.push(below(256) as u8));
    }
    for (src, name) in [(waves, "waves"), (echoes, "echoes"), (skewed(60_000), "skewed")] {
        let [_, size, ..] = round_trip(&src);
        let mut dest = vec![0; 2 * src.len()];
        let others = [
            stream::Encoder::new().compress(5, &src, &mut dest).unwrap(),
            libdeflate::Encoder::new().compress(4, &src, &mut dest).unwrap(),
        ];
        assert!(others.iter().all(|&other| size <= other + other / 16), "{name}: {size} bytes, {others:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_byte_or_two_are_no_match_where_longer_ones_end() {
    let mut random = Random::new(7);
    for period in [2, 5, 20, 50] {
        // Lengths around those at which a search breaks off, and begins again with what is left.
        for len in (256..264).chain(258 + 16 * 258 - 2..258 + 16 * 258 + 5) {
            let mut src = random.bytes(period);
            let from = src.len() - period;
            (from..from + len).for_each(|at| src.push(src[at]));
            src.push(!src[src.len() - period]);
            src.extend(random.bytes(5000));
            round_trip(&src);
        }
    }
}

const MOST_REPEATED: usize = if cfg!(miri) { 1500 } else { 40_000 };

proptest! {
    #[test]
    fn any_bytes_come_back(
        parts in prop::collection::vec(
            (any::<u8>(), 1usize..700, 1usize..300, 0..4),
            1..if cfg!(miri) { 4 } else { 40 },
        ),
    ) {
        let mut src: Vec<u8> = Vec::new();
        for (byte, len, period, kind) in parts {
            match kind {
                0 => src.resize(src.len() + len, byte),
                1 => src.extend((0..len).map(|i| (i % period * period) as u8 ^ byte)),
                // A run, or what is there with a period, except for a few bytes.
                2 => src.extend((0..len).map(|i| byte ^ u8::from(i % period == 0))),
                _ => src.extend_from_within(src.len() - len.min(src.len())..),
            }
        }
        if !src.is_empty() {
            round_trip(&src);
        }
    }

    #[test]
    fn periods_come_back(
        period in prop::collection::vec(any::<u8>(), 1..300),
        n in 1..MOST_REPEATED,
        odd in 0..MOST_REPEATED,
    ) {
        let mut src: Vec<u8> = period.iter().copied().cycle().take(n).collect();
        if let Some(byte) = src.get_mut(odd) {
            *byte ^= 1;
        }
        round_trip(&src);
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn entropy_is_near_the_exact_one() {
    for src in [skewed(20_000), skewed(300), (0..=255).cycle().take(60_000).collect(), vec![1; 2000]] {
        let mut counts = Counts::new();
        counts.count_literals(&src, &[Sequence::literals_only(src.len())]);
        let exact: f64 = (0..=255)
            .map(|byte| src.iter().filter(|&&b| b == byte).count() as f64)
            .filter(|&n| n > 0.0)
            .map(|n| n * (src.len() as f64 / n).log2())
            .sum();
        let found = counts.entropy() as f64;
        assert!((found - exact).abs() <= exact / 50.0 + 20.0, "{found} bits, exactly {exact}");
        let per_literal = counts.literal_bits().unwrap() as f64 / 16.0;
        let exact = exact / src.len() as f64;
        // Where literals have few bits, they take more than that.
        let more = if exact < 2.5 { 1.1 } else { 0.2 };
        assert!((exact - 0.2..exact + more).contains(&per_literal), "{per_literal} and {exact}");
    }
    assert_eq!(Counts::new().literal_bits(), None);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn matches_are_few_in_noise_and_runs_and_many_in_text() {
    let mut random = Random::new(8);
    let noise = random.bytes(100_000);
    let runs: Vec<u8> = (0..100_000).map(|i| (i / 500) as u8).collect();
    let words: Vec<u8> = (0..20_000).flat_map(|_| *[b"of ", b"and", b"the"][random.below(3)]).collect();
    let has_few_matches = |src: &[u8]| Probe::of(src).has_few_matches();
    for len in [511, 512, 5000, 50_000] {
        assert!(has_few_matches(&noise[..len]), "{len}");
        assert!(has_few_matches(&runs[..len]), "{len}");
        assert!(!has_few_matches(&words[..len]), "{len}");
    }
    assert!((1..20).all(|len| has_few_matches(&noise[..len])));
    // Short matches are found everywhere if there are few different bytes, but take more bits than they save.
    let nibbles: Vec<u8> = (0..50_000).map(|_| random.below(16) as u8).collect();
    assert!(has_few_matches(&nibbles));
    // Rows with a one in a random place are repeated all the time; but if nearly all is zero, that does not count.
    let mut rows = |n: usize| -> Vec<u8> {
        (0..50_000 / n)
            .flat_map(|_| [vec![0; random.below(n)], vec![1]].concat().into_iter().chain(vec![0; n / 2]))
            .collect()
    };
    assert!(has_few_matches(&rows(64)) && !has_few_matches(&rows(4)));
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn bytes_without_order_are_coded_one_by_one() {
    let mut below = testing::below(3);
    for (n, bits) in [(4, 2.3), (7, 3.0), (16, 4.1), (100, 6.8)] {
        let src: Vec<u8> = (0..100_000).map(|_| below(n) as u8).collect();
        let [_, size, _, little, _] = round_trip(&src);
        let most = (src.len() as f64 * bits / 8.0) as usize;
        assert!(size <= most && little <= most, "{n} values: {size} and {little} bytes, not {most}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn parts_of_shuffled_data_are_told_apart() {
    let mut below = testing::below(3);
    let part = 16 << 10;
    let noise = (0..part).map(|_| below(256) as u8).collect::<Vec<_>>();
    let src = [noise, (0..part).map(|_| below(4) as u8).collect(), vec![9; 6 * part]].concat();
    let probe = Probe::of(&src);
    let bits: Vec<usize> = (0..8).map(|i| probe.literal_bits(probe.part(i * part))).collect();
    assert!(
        bits[0] > 7 * 16 && (28..40).contains(&bits[1]) && bits[2..].iter().all(|&bits| bits == 16),
        "{bits:?}"
    );
    assert_eq!((probe.part(part - 1), probe.part(part), probe.part(src.len() - 1)), (0, 1, 7));
    assert!(probe.has_few_matches());
}

#[test]
fn matches_are_worth_what_they_save() {
    let worth = Worth::new(2 * BIT);
    assert_eq!(worth.saved(5, 256), 0);
    assert!(worth.saved(20, 256) > worth.saved(20, 32_768) && worth.saved(20, 1) > worth.saved(20, 2));
    for distance in [1, 2, 256, 32_768] {
        let shortest = worth.shortest(distance);
        assert!(worth.saved(shortest, distance) > 0 && worth.saved(shortest - 1, distance) == 0);
    }
    // No literal has less than a bit.
    assert_eq!(Worth::new(0).saved(100, 9), Worth::new(BIT).saved(100, 9));
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn text_is_dense_and_noise_and_runs_are_not() {
    let words = ["chunk ", "block ", "frame ", "of ", "the ", "and ", "shuffle ", "typesize ", "header, "];
    let mut below = testing::below(1);
    let text: Vec<u8> = (0..20_000).flat_map(|_| words[below(words.len())].bytes()).collect();
    let mut encoder = Encoder::new().unwrap();
    assert!(encoder.is_dense(&text));
    assert!(!encoder.is_dense(&text[..PROBED - 1]), "too short to tell");
    assert!(!encoder.is_dense(&vec![7; text.len()]));
    let noise: Vec<u8> = text
        .iter()
        .enumerate()
        .map(|(i, b)| (i as u32).wrapping_mul(0x9e37_79b1).to_le_bytes()[3] ^ b)
        .collect();
    assert!(!encoder.is_dense(&noise));
    let (quick, dense) = (compress(Encoder::compress_quickly, &text), compress(compress_densely, &text));
    assert!(quick.len().abs_diff(dense.len()) < 20, "{} bytes and {}", quick.len(), dense.len());
    // What was looked at leaves no traces.
    let mut dest = [vec![0; text.len()], vec![0; text.len()]];
    let sizes = [
        encoder.compress_quickly(&text, &mut dest[0]),
        Encoder::new().unwrap().compress_quickly(&text, &mut dest[1]),
    ];
    assert!(sizes[0] == sizes[1] && dest[0] == dest[1]);
}
