//! Planes of 4 coefficients, two at a time by table: cells of one dimension are so small that bit by bit takes too
//! long.

#![forbid(unsafe_code)]

use super::bitstream::{BitReader, BitWriter};

/// The most bits that two planes take.
pub(super) const MAX_PAIR_BITS: u32 = 14;
/// How many bits of a stream are looked at at once.
pub(super) const PEEKED_BITS: u32 = 8;

/// Writes two planes of 4 coefficients by table, the first one in the low bits of `pair`; returns their length in bits.
#[inline(always)]
pub(super) fn encode_two_planes_of_4(pair: u64, known: &mut u32, writer: &mut BitWriter<'_>) -> u32 {
    let code = ENCODE_4[*known as usize * PAIRS + pair as usize % PAIRS];
    writer.put(u64::from(code.bits), u32::from(code.len));
    *known = u32::from(code.known);
    u32::from(code.len)
}

/// Reads one or two planes of 4 coefficients by table. Returns them, the first one in the low bits; their number; and
/// their length in bits, at most [`PEEKED_BITS`].
#[inline(always)]
pub(super) fn decode_planes_of_4(known: &mut u32, reader: &mut BitReader<'_>) -> (u64, u32, u32) {
    reader.ensure(PEEKED_BITS);
    let (bits, _) = reader.peek();
    let code = DECODE_4[*known as usize * PEEKED + bits as usize % PEEKED];
    reader.consume(u32::from(code.len));
    *known = u32::from(code.known);
    (u64::from(code.planes), u32::from(code.count), u32::from(code.len))
}

/// The code of one or two planes of 4 coefficients.
#[derive(Clone, Copy)]
struct Code {
    bits: u16,
    /// Length of the code in bits.
    len: u8,
    /// How many coefficients are known to be non-zero afterwards.
    known: u8,
}

/// What the next bits of a stream say.
#[derive(Clone, Copy)]
struct Decoded {
    /// Planes of 4 coefficients, the first one in the low bits.
    planes: u8,
    /// Number of planes: 2 if the code of the second one is complete.
    count: u8,
    /// Length of their code in bits.
    len: u8,
    /// How many coefficients are known to be non-zero afterwards.
    known: u8,
}

/// How many coefficients can be known to be non-zero: none to all four.
const KNOWN: usize = 5;
/// How many pairs of planes of 4 coefficients there are, and values of the bits that are looked at.
const PAIRS: usize = 1 << (2 * 4);
const PEEKED: usize = 1 << PEEKED_BITS;

/// By the number of known coefficients and two planes, the first one in the low bits.
static ENCODE_4: [Code; KNOWN * PAIRS] = {
    let mut table = [Code { bits: 0, len: 0, known: 0 }; KNOWN * PAIRS];
    let mut i = 0;
    while i < table.len() {
        let first = code_of_4((i / PAIRS) as u8, (i % 16) as u8);
        let second = code_of_4(first.known, (i / 16 % 16) as u8);
        table[i] = Code {
            bits: first.bits | second.bits << first.len,
            len: first.len + second.len,
            known: second.known,
        };
        assert!(table[i].len as u32 <= MAX_PAIR_BITS);
        i += 1;
    }
    table
};

/// By the number of known coefficients and the next bits. Where the second plane is not complete in these, they say the
/// first one only.
static DECODE_4: [Decoded; KNOWN * PEEKED] = {
    let mut table = [Decoded { planes: 0, count: 0, len: 0, known: 0 }; KNOWN * PEEKED];
    let mut known = 0;
    while known < KNOWN {
        let mut plane = 0;
        while plane < 16 {
            let code = code_of_4(known as u8, plane);
            say(
                &mut table,
                known,
                Decoded { planes: plane, count: 1, len: code.len, known: code.known },
                code.bits,
            );
            plane += 1;
        }
        let mut pair = 0;
        while pair < PAIRS {
            let code = ENCODE_4[known * PAIRS + pair];
            if code.len as u32 <= PEEKED_BITS {
                let decoded = Decoded { planes: pair as u8, count: 2, len: code.len, known: code.known };
                say(&mut table, known, decoded, code.bits);
            }
            pair += 1;
        }
        known += 1;
    }
    table
};

/// Makes all entries of `table` for `known` coefficients whose bits begin with `bits` say `decoded`.
const fn say(table: &mut [Decoded; KNOWN * PEEKED], known: usize, decoded: Decoded, bits: u16) {
    let mut rest = 0;
    while rest < PEEKED >> decoded.len {
        table[known * PEEKED + (bits as usize | rest << decoded.len)] = decoded;
        rest += 1;
    }
}

/// The code of a plane of 4 coefficients, bit by bit from the definition.
const fn code_of_4(known: u8, plane: u8) -> Code {
    let mut m = known;
    let mut bits = plane as u16 & ((1 << m) - 1);
    let mut len = m;
    while m < 4 {
        if plane >> m == 0 {
            len += 1;
            break;
        }
        bits |= 1 << len;
        len += 1;
        while m < 3 {
            let bit = plane >> m & 1;
            bits |= (bit as u16) << len;
            len += 1;
            if bit == 1 {
                break;
            }
            m += 1;
        }
        m += 1;
    }
    Code { bits, len, known: m }
}
