//! Planes of 4 coefficients, two at a time by table: cells of one dimension are so small that bit by bit takes too long.

use super::bitstream::{BitReader, BitWriter};

/// Writes two planes of 4 coefficients by table, the first one in the low bits of `pair`; returns their length in bits.
#[inline(always)]
pub(super) fn encode_two_planes_of_4(pair: u64, known: &mut u32, writer: &mut BitWriter<'_>) -> u32 {
    let code = ENCODE_4[(*known * 256) as usize + (pair & 255) as usize];
    writer.put(u64::from(code.bits), u32::from(code.len));
    *known = u32::from(code.known);
    u32::from(code.len)
}

/// Reads one or two planes of 4 coefficients by table. Returns them, the first one in the low bits; their number; and
/// their length in bits, at most 8.
#[inline(always)]
pub(super) fn decode_planes_of_4(known: &mut u32, reader: &mut BitReader<'_>) -> (u64, u32, u32) {
    reader.ensure(8);
    let (bits, _) = reader.peek();
    let code = DECODE_4[(*known * 256) as usize + (bits & 255) as usize];
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

/// What the next 8 bits of a stream say.
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

/// By the number of known coefficients and two planes, the first one in the low bits.
static ENCODE_4: [Code; 5 * 256] = {
    let mut table = [Code { bits: 0, len: 0, known: 0 }; 5 * 256];
    let mut i = 0;
    while i < table.len() {
        let first = code_of_4((i / 256) as u8, (i % 16) as u8);
        let second = code_of_4(first.known, (i / 16 % 16) as u8);
        table[i] = Code {
            bits: first.bits | second.bits << first.len,
            len: first.len + second.len,
            known: second.known,
        };
        i += 1;
    }
    table
};

/// By the number of known coefficients and the next 8 bits.
static DECODE_4: [Decoded; 5 * 256] = {
    let mut table = [Decoded { planes: 0, count: 0, len: 0, known: 0 }; 5 * 256];
    // First what one plane says, then what two say.
    let mut count = 1;
    while count <= 2 {
        let mut i = 0;
        while i < 5 * 256 {
            let (known, planes) = ((i / 256) as u8, (i % 256) as u8);
            let code = if count == 1 { code_of_4(known, planes & 15) } else { ENCODE_4[i] };
            if code.len <= 8 && (count == 2 || planes < 16) {
                let mut rest = 0;
                while rest < 256 >> code.len {
                    let next = code.bits as usize | rest << code.len;
                    table[known as usize * 256 + next] =
                        Decoded { planes, count, len: code.len, known: code.known };
                    rest += 1;
                }
            }
            i += 1;
        }
        count += 1;
    }
    table
};

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
