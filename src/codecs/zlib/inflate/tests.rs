//! What others write is read, whatever they would refuse is refused.

use super::super::{Encoder, format, libdeflate, stream};
use super::*;
use crate::testing;
use proptest::prelude::*;

/// Decodes with each variant, and as zlib-rs does; all must agree. `None` if the stream is refused.
fn decode(src: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut expected = vec![0xee; len];
    let is_good = stream::Decoder::new().decompress(src, &mut expected).is_ok();
    for variant in [decode::decode, decode::decode_portably] {
        let mut dest = vec![0xcc; len];
        let mut tables = AllTables::new().unwrap();
        let decoded = inflate(&mut tables, src, &mut dest, None, variant);
        assert_eq!(decoded.is_some(), is_good);
        assert!(!is_good || dest == expected);
    }
    is_good.then_some(expected)
}

/// `len` bytes of a kind: noise, few values, skewed ones, words, runs, and records.
fn bytes(kind: usize, len: usize) -> Vec<u8> {
    let mut below = testing::below(kind as u64);
    let mut out: Vec<u8> = Vec::with_capacity(len + 400);
    while out.len() < len {
        match kind {
            0 => out.push(below(256) as u8),
            1 => out.push(below(3) as u8),
            2 => {
                out.push((below(1 << 20) as u32).leading_zeros() as u8 - 11 + 40 * u8::from(below(300) == 0))
            }
            3 => {
                out.extend(b"the chunk of a block is a frame, and so on"[below(30)..][..1 + below(12)].iter())
            }
            4 => out.resize(out.len() + 1 + below(300), below(5) as u8),
            _ => out.extend([below(3) as u8, 0, 0, (out.len() / 900) as u8, 1, 2, 3]), // below 256
        }
    }
    out.truncate(len);
    out
}

const KINDS: usize = 6;

/// Streams that hold `src`, by all encoders.
fn streams(src: &[u8]) -> Vec<Vec<u8>> {
    let mut dest = vec![0; src.len() + src.len() / 8 + 100];
    let mut coded = Vec::new();
    let clevels: &[u8] = if cfg!(miri) { &[1] } else { &[1, 4, 9] };
    for &clevel in clevels {
        let size = stream::Encoder::new().compress(clevel, src, &mut dest).unwrap();
        coded.push(dest[..size].to_vec());
        let size = Encoder::new().compress(clevel, src, &mut dest).unwrap();
        coded.push(dest[..size].to_vec());
        let size = libdeflate::Encoder::new().compress(i32::from(clevel), src, &mut dest).unwrap();
        coded.push(dest[..size].to_vec());
    }
    // What is noise stays as it is at the first level.
    coded.retain(|stream| !stream.is_empty());
    coded
}

#[test]
fn streams_are_decoded() {
    for kind in 0..KINDS {
        let lengths = [1, 2, 30, 255, 376, 377, 2000, 5000, 70_000, 200_000];
        for len in lengths.into_iter().filter(|len| !cfg!(miri) || [2, 377].contains(len)) {
            let src = bytes(kind, len);
            for coded in streams(&src) {
                assert!(decode(&coded, len).is_some_and(|back| back == src), "kind {kind}, {len} bytes");
                assert!(decode(&[&coded[..], &src].concat(), len).is_some(), "what follows is ignored");
                assert!(decode(&coded, len + 1).is_none() && decode(&coded, len - 1).is_none());
                let mut damaged = coded.clone();
                *damaged.last_mut().unwrap() ^= 1;
                assert!(decode(&damaged, len).is_none(), "the checksum");
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn prefixes_are_decoded_without_the_rest() {
    let mut decoder = Decoder::new();
    for kind in 0..KINDS {
        let src = bytes(kind, 100_000);
        for coded in streams(&src) {
            for wanted in [0, 1, 300, 20_000, 65_536, 99_999, 100_000] {
                let mut dest = vec![0xee; src.len()];
                decoder.decompress_prefix(&coded, wanted, &mut dest).unwrap();
                assert!(dest[..wanted] == src[..wanted], "kind {kind}, {wanted} bytes");
                assert!(decoder.decompress_prefix(&coded[..coded.len() / 900], 99_000, &mut dest).is_err());
            }
            if kind == 0 {
                continue; // raw blocks are there or not
            }
            // What is not wanted need not be there.
            let mut dest = vec![0xee; src.len()];
            decoder.decompress_prefix(&coded[..coded.len() / 2], 100, &mut dest).unwrap();
            assert!(dest[..100] == src[..100]);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn damage_is_refused_as_by_others() {
    for kind in 0..KINDS {
        let src = bytes(kind, 900);
        for coded in streams(&src) {
            (0..coded.len()).for_each(|len| assert!(decode(&coded[..len], src.len()).is_none()));
            for bit in (0..8 * coded.len()).filter(|bit| *bit < 1500 || bit % 7 == 0) {
                let mut damaged = coded.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                decode(&damaged, src.len());
            }
        }
    }
}

/// Writes bits, the first one in the lowest bit of a byte, after the header of a stream; then a checksum.
struct Writer(Vec<u8>, usize);

impl Writer {
    fn new() -> Writer {
        Writer(vec![0x78, 0x01], 16)
    }

    fn bits(mut self, value: usize, n: usize) -> Writer {
        for i in 0..n {
            self.0.resize(self.1 / 8 + 1, 0);
            self.0[self.1 / 8] |= ((value >> i & 1) as u8) << (self.1 % 8);
            self.1 += 1;
        }
        self
    }

    /// A code, from its highest bit on.
    fn code(self, code: usize, n: usize) -> Writer {
        (0..n).rev().fold(self, |writer, i| writer.bits(code >> i & 1, 1))
    }

    fn finish(mut self, src: &[u8]) -> Vec<u8> {
        self.0.extend(adler32_more(1, src).to_be_bytes());
        self.0
    }

    /// The header of a last block of codes: lengths of codes for lengths, in the order of the format.
    fn header(self, nsymbols: usize, ndistances: usize, run_lengths: &[usize]) -> Writer {
        let numbers = self.bits(1 | 2 << 1, 3).bits(nsymbols - 257, 5).bits(ndistances - 1, 5);
        run_lengths.iter().fold(numbers.bits(run_lengths.len() - 4, 4), |writer, &len| writer.bits(len, 3))
    }
}

#[test]
fn empty_blocks_of_every_kind_may_be_anywhere() {
    let raw = |writer: Writer, is_last: usize| {
        let mut writer = writer.bits(is_last, 3);
        writer.1 = writer.0.len() * 8;
        writer.bits(0, 16).bits(0xffff, 16)
    };
    let fixed = |writer: Writer, is_last: usize| writer.bits(is_last | 2, 3).code(0, 7);
    assert!(decode(&raw(Writer::new(), 1).finish(b""), 0).is_some());
    assert!(decode(&fixed(Writer::new(), 1).finish(b""), 0).is_some());
    // The letter a in a block between them.
    let middle = |writer: Writer| writer.bits(2, 3).code(0x30 + 97, 8).code(0, 7);
    let stream = fixed(raw(middle(fixed(raw(Writer::new(), 0), 0)), 0), 1).finish(b"a");
    assert_eq!(decode(&stream, 1), Some(b"a".to_vec()));
    assert!(decode(&stream, 0).is_none() && decode(&stream, 2).is_none());
    // The length is not what its complement says.
    let mut damaged = raw(Writer::new(), 1).finish(b"");
    damaged[3] = 1;
    assert!(decode(&damaged, 0).is_none() && decode(&damaged, 1).is_none());
    // There is no fourth kind.
    assert!(decode(&Writer::new().bits(7, 3).bits(0, 13).finish(b""), 0).is_none());
}

#[test]
fn symbols_that_stand_for_nothing_are_refused() {
    let begun = || Writer::new().bits(3, 3).code(0x30 + 97, 8);
    let of_length = |symbol: usize| begun().code(0xc0 + symbol - 280, 8);
    // The longest match, 258 bytes: of distance 1, and of none.
    assert!(decode(&of_length(285).code(0, 5).code(0, 7).finish(&[97; 259]), 259).is_some());
    assert!(decode(&of_length(285).code(1, 5).code(0, 7).finish(&[97; 259]), 259).is_none(), "too far");
    for (symbol, distance) in [(285, 30), (285, 31), (286, 0), (287, 0)] {
        let stream = of_length(symbol).code(distance, 5).code(0, 7).bits(0, 20).finish(&[97; 259]);
        assert!(decode(&stream, 259).is_none(), "{symbol} and {distance}");
    }
}

#[test]
fn codes_must_make_sense() {
    // Codes of one bit for 18 and 1, which are third and 18th in the order: 1 has the code 0, 18 has 1.
    let mut runs = [0; 18];
    (runs[2], runs[17]) = (1, 1);
    let zeros = |writer: Writer, n: usize| writer.code(1, 1).bits(n - 11, 7);
    let one = |writer: Writer| writer.code(0, 1);
    // The end and one literal have one bit each; `distances` tells codes of distances, of which there are `n`.
    let block = |n: usize, distances: &dyn Fn(Writer) -> Writer| {
        let writer = zeros(one(Writer::new().header(257, n, &runs)), 138);
        distances(one(zeros(writer, 117)))
    };
    let data = |writer: Writer| writer.bits(0, 1).bits(0, 1).bits(1, 1).finish(&[0, 0]);
    // One distance, or none.
    assert!(decode(&data(block(1, &one)), 2).is_some());
    assert!(decode(&data(block(11, &|writer| zeros(writer, 11))), 2).is_some());
    // Two of one bit each are fine, three are too many.
    assert!(decode(&data(block(2, &|writer| one(one(writer)))), 2).is_some());
    assert!(decode(&data(block(3, &|writer| one(one(one(writer))))), 2).is_none());
    // Lengths go beyond the last one.
    assert!(decode(&data(block(10, &|writer| zeros(writer, 11))), 2).is_none());
    // There are too many symbols or distances.
    assert!(
        decode(&data(one(zeros(one(zeros(one(Writer::new().header(287, 1, &runs)), 138)), 117))), 2)
            .is_none()
    );
    assert!(decode(&data(block(31, &|writer| zeros(writer, 31))), 2).is_none());
    // There is no end: literals 0 and 1 have codes.
    let no_end = one(zeros(zeros(one(one(Writer::new().header(257, 1, &runs))), 138), 117));
    assert!(decode(&data(no_end), 2).is_none());
    // One code for lengths of codes is not enough.
    let mut one_run = [0; 18];
    one_run[17] = 1;
    assert!(
        decode(&data((0..258).fold(Writer::new().header(257, 1, &one_run), |w, _| w.code(0, 1))), 2)
            .is_none()
    );
    // Nothing is there to repeat: codes of one bit for 16 and 1.
    let mut repeating = [0; 18];
    (repeating[0], repeating[17]) = (1, 1);
    assert!(decode(&data(Writer::new().header(257, 1, &repeating).code(1, 1).bits(0, 2)), 2).is_none());
}

#[test]
fn headers_of_streams_are_checked() {
    let coded = streams(b"a few bytes").remove(0);
    let with_header = |first: u8, second: u8| {
        let mut coded = coded.clone();
        (coded[0], coded[1]) = (first, second);
        decode(&coded, 11).is_some()
    };
    let firsts = if cfg!(miri) { 0x78..=0x78 } else { 0..=255 };
    let accepted = firsts.clone().map(|first| (0..=255).filter(|&second| with_header(first, second)).count());
    // Eight sizes of the window, and four levels.
    assert_eq!(accepted.sum::<usize>(), 8.min(firsts.count()) * 4);
    assert!((0..2).all(|len| decode(&coded[..len], 11).is_none()));
}

/// Symbol, bits after it and their number, by the format's rules: of a length, or of a distance if `first` is 0.
fn split(value: usize, first: usize, step: usize) -> (usize, usize, usize) {
    let (mut symbol, mut base) = (first, if first == 0 { 1 } else { 3 });
    loop {
        let extra = (symbol - first).saturating_sub(step) / step;
        if value < base + (1 << extra) {
            return (symbol, value - base, extra);
        }
        (symbol, base) = (symbol + 1, base + (1 << extra));
    }
}

#[test]
fn matches_are_copied_whatever_their_distance_from_the_end() {
    let chosen = |value: &usize| !cfg!(miri) || [0, 1, 3, 33, 257, 300].contains(value);
    for distance in (1..40).filter(chosen) {
        for len in (3..70).chain([130, 257]).filter(chosen) {
            for behind in [0, 1, 7, 15, 16, 40, 63, 64, 300].into_iter().filter(chosen) {
                let mut src: Vec<u8> = (0..distance as u8).collect(); // below 40
                (0..len).for_each(|_| src.push(src[src.len() - distance]));
                src.extend((0..behind).map(|i| (i % 100) as u8)); // below 144, so that codes have eight bits
                let literals = |writer: Writer, bytes: &[u8]| {
                    bytes.iter().fold(writer, |writer, &byte| writer.code(0x30 + usize::from(byte), 8))
                };
                let (symbol, extra, nextra) = split(len, 257, 4);
                let writer = literals(Writer::new().bits(3, 3), &src[..distance]);
                let writer = if symbol < 280 {
                    writer.code(symbol - 256, 7)
                } else {
                    writer.code(0xc0 + symbol - 280, 8)
                };
                let (symbol, far, nfar) = split(distance, 0, 2);
                let writer = writer.bits(extra, nextra).code(symbol, 5).bits(far, nfar);
                let stream = literals(writer, &src[distance + len..]).code(0, 7).finish(&src);
                assert!(
                    decode(&stream, src.len()).is_some_and(|back| back == src),
                    "{distance}, {len}, {behind}"
                );
                assert!(decode(&stream, src.len() - 1).is_none());
                assert!(decode(&stream, distance + len - 1).is_none());
            }
        }
    }
}

#[test]
fn combined_entries_have_the_literals_that_their_bits_tell() {
    // Codes of one to eight bits, of which one stands for a length and the longest for the end, and codes of equal
    // length.
    let skewed = |symbol: usize| match symbol {
        65..=69 => symbol as u8 - 64,
        257 => 6,
        71 => 7,
        72 | 256 => 8,
        _ => 0,
    };
    let equal = |symbol: usize| if symbol < 31 || symbol == 256 { 5 } else { 0 };
    let lengths: [&dyn Fn(usize) -> u8; 2] = [&skewed, &equal];
    for length in lengths {
        let lengths =
            table::Lengths { symbols: std::array::from_fn(length), distances: [0; format::DISTANCES] };
        let mut tables = Tables::new().unwrap();
        tables.fit(&lengths).unwrap();
        assert!(tables.pays_to_combine());
        let single: Vec<_> = (0..1 << table::SYMBOL_BITS).map(|bits| tables.main().symbol(bits)).collect();
        tables.combine();
        assert!(!tables.pays_to_combine());
        for (bits, &first) in single.iter().enumerate() {
            let entry = tables.main().symbol(bits as u64);
            if !first.is_literals() {
                assert_eq!(entry, first);
                continue;
            }
            let (mut literals, mut nbits) = (Vec::new(), 0);
            loop {
                let next = single[bits >> nbits];
                let is_whole = nbits + next.nbits() <= table::SYMBOL_BITS;
                if literals.len() == 6 || !next.is_literals() || !is_whole {
                    break;
                }
                literals.push(next.literals()[0]);
                nbits += next.nbits();
            }
            assert_eq!((entry.nliterals(), entry.nbits()), (literals.len(), nbits), "{bits:b}");
            assert_eq!(entry.literals()[..literals.len()], literals);
        }
    }
}

proptest! {
    #[test]
    fn changed_streams_are_taken_as_by_others(
        kind in 0..KINDS,
        len in 1usize..if cfg!(miri) { 300 } else { 6000 },
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut streams = streams(&bytes(kind, len));
        let mut coded = streams.swap_remove(which.index(streams.len()));
        for (at, byte) in changes {
            let at = at.index(coded.len());
            coded[at] = byte;
        }
        decode(&coded, len);
    }

    #[test]
    fn any_bytes_are_taken_as_by_others(mut bytes in prop::collection::vec(any::<u8>(), 3..400), len in 0usize..2000) {
        (bytes[0], bytes[1]) = (0x78, 0x01);
        bytes[2] = bytes[2] & !7 | 5;
        decode(&bytes, len);
    }
}

#[test]
fn symbols_of_the_fixed_codes_are_read_up_to_the_end() {
    for kind in 0..6 {
        let src = bytes(kind, 9000);
        let mut coded = vec![0; 12_000];
        let size = stream::Encoder::new().compress(1, &src, &mut coded).unwrap();
        let mut bits = Bits::new(&coded[2..size - 4]);
        match read_kind(&mut bits) {
            Some((true, Kind::Fixed)) => {
                while read_fixed(&mut bits).is_some() {}
                bits.align();
                assert_eq!(bits.bytes(1), None, "kind {kind}: the end was not found");
            }
            // What does not shrink is stored.
            _ => assert_eq!(kind, 0),
        }
    }
}
