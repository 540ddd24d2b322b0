use super::super::stream;
use super::*;
use crate::testing;
use proptest::prelude::*;

fn compress(src: &[u8]) -> Vec<u8> {
    compress_at(5, src)
}

/// At level 1, with the fixed codes.
fn compress_at(clevel: u8, src: &[u8]) -> Vec<u8> {
    let mut dest = vec![0; src.len() + 100];
    let size = stream::Encoder::new().compress(clevel, src, &mut dest).unwrap();
    dest.truncate(size);
    dest
}

fn has_many_far_matches(src: &[u8]) -> bool {
    src.get(2..)
        .and_then(Shares::of_first)
        .is_some_and(|shares| shares.has_many_short_matches() && shares.has_far_matches())
}

/// 20,000 words, from a list of 60 random ones.
fn words() -> Vec<u8> {
    let mut below = testing::below(1);
    let list: Vec<Vec<u8>> =
        (0..60).map(|_| (0..4 + below(6)).map(|_| b'a' + below(26) as u8).collect()).collect(); // below 26
    (0..20_000).flat_map(|_| list[below(60)].clone()).collect()
}

#[test]
fn text_has_many_far_matches_and_runs_and_noise_have_not() {
    assert!(has_many_far_matches(&compress(&words())));
    let runs: Vec<u8> = (0..100_000_u32).map(|i| ((i / 300).wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    assert!(!has_many_far_matches(&compress(&runs)));
    let mut below = testing::below(1);
    let noise: Vec<u8> = (0..100_000).map(|_| below(100) as u8).collect(); // below 100
    assert!(!has_many_far_matches(&compress(&noise)));
    let squares: Vec<u8> = (0..9000_u64).flat_map(|i| (i * i + (7 << 40)).to_le_bytes()).collect();
    assert!(!has_many_far_matches(&compress(&squares)));
}

#[test]
fn text_between_long_runs_does_not_count() {
    let text = words();
    let with_runs = |run: usize| {
        let parts = text.chunks(4000).flat_map(|part| [part, &[0; 20_000][..run]].concat());
        has_many_far_matches(&compress(&parts.collect::<Vec<_>>()))
    };
    assert!(!with_runs(20_000));
    assert!(with_runs(100));
}

#[test]
fn few_different_bytes_have_short_codes() {
    let mut below = testing::below(1);
    let mut short = |n: usize| {
        let src: Vec<u8> = (0..50_000).map(|_| below(n) as u8).collect(); // below 256
        let mut dest = vec![0; 60_000];
        let size = super::super::Encoder::new().compress(5, &src, &mut dest).unwrap();
        Shares::of_first(&dest[2..size]).is_some_and(|shares| shares.has_many_short_literals())
    };
    assert!(short(4) && short(20) && !short(100) && !short(256));
    assert!(!Shares::of_first(&compress(&words())[2..]).unwrap().has_many_short_literals());
}

/// Eight bytes each, of which the lower ones change.
fn counters() -> Vec<u8> {
    (0..2000_u64).flat_map(|i| (i * 7 + (7 << 40)).to_le_bytes()).collect()
}

#[test]
fn near_matches_with_the_fixed_codes_are_told_from_others() {
    let first = |clevel, src: &[u8]| begins_with_near_matches(&compress_at(clevel, src)[2..]);
    assert_eq!(first(1, &counters()), Some(true));
    assert_eq!(first(1, &words()), Some(false));
    assert_eq!((first(5, &counters()), first(5, &words())), (None, None));
    assert_eq!(first(1, b"few"), Some(false));
}

#[test]
fn shares_are_those_of_the_codes() {
    // As in the format's definition, by hand: eight literals with codes of three bits, except for the end and a length,
    // which have four; and two distances, the nearest and the farthest.
    let mut bits: Vec<u8> = Vec::new();
    let mut put = |value: u32, n: u32| (0..n).for_each(|i| bits.push((value >> i & 1) as u8));
    put(1 | 2 << 1, 3);
    put(1, 5);
    put(29, 5);
    put(15, 4);
    // Codes of two bits for 18, 1, 3 and 4; in the order of their values 1, 3, 4, 18: 00, 01, 10, 11.
    let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    order.iter().for_each(|run| put(if [18, 1, 3, 4].contains(run) { 2 } else { 0 }, 3));
    let (one, three, four, zeros) = (0b00, 0b10, 0b01, 0b11); // written from the highest bit on
    (0..7).for_each(|_| put(three, 2));
    for n in [138, 111] {
        put(zeros, 2);
        put(n - 11, 7);
    }
    put(four, 2);
    put(four, 2);
    put(one, 2);
    put(zeros, 2);
    put(28 - 11, 7);
    put(one, 2);
    let deflated: Vec<u8> =
        bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect();
    let (literals, others) = (7 * ALL / 8, 7 * ALL / 8 + 3 * ALL / 16);
    assert_eq!(
        Shares::of_first(&deflated),
        Some(Shares { literals, short: literals, near: ALL / 2, longest: 0, others })
    );
}

#[test]
fn what_is_cut_off_or_changed_is_looked_at_without_harm() {
    let coded = compress(&words());
    for len in 0..200 {
        has_many_far_matches(&coded[..len]);
        begins_with_near_matches(&coded[..len]);
    }
    for bit in 0..1600 {
        let mut damaged = coded[..300].to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        has_many_far_matches(&damaged);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_looked_at_without_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        has_many_far_matches(&bytes);
        begins_with_near_matches(&bytes);
        if let Some(first) = bytes.get_mut(2) {
            *first = *first & !7 | 5;
        }
        has_many_far_matches(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = *first & !7 | 3;
        }
        begins_with_near_matches(&bytes);
    }
}
