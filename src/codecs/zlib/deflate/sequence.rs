//! What a parser makes of bytes: literals and matches, in the terms of the format.

#![forbid(unsafe_code)]

use super::super::format;
use super::bits::Code;

pub(super) use format::MAX_DISTANCE;
/// Matches are cut into pieces that one code stands for; their longest and shortest length.
pub(super) const MAX_PIECE: usize = format::MAX_LEN;
pub(super) const MIN_PIECE: usize = format::MIN_LEN;

/// Literals, and a match after them.
#[derive(Clone, Copy)]
pub(super) struct Sequence {
    literals: u32,
    /// Length of the match; 0 if there is none.
    len: u32,
    distance: Distance,
}

/// A distance as it is coded.
#[derive(Clone, Copy, Default)]
pub(super) struct Distance {
    pub(super) symbol: u8,
    /// Number of bits after the symbol, and the bits.
    pub(super) extra_len: u8,
    pub(super) extra: u16,
}

/// A length as it is coded: a symbol, and bits after it.
#[derive(Clone, Copy)]
pub(super) struct Length {
    pub(super) symbol: u16,
    pub(super) extra: Code,
}

/// The lengths of pieces, from MIN_PIECE on.
pub(super) static LENGTHS: [Length; MAX_PIECE - MIN_PIECE + 1] = {
    let mut lengths = [Length { symbol: 0, extra: Code { bits: 0, len: 0 } }; MAX_PIECE - MIN_PIECE + 1];
    let mut n = 0;
    while n < format::LENGTHS {
        let (shortest, nbits) = format::length(n as u32); // below 29
        let mut bits = 0;
        while bits < 1 << nbits {
            // The last symbol takes the longest length from the one before. Symbols are below 288, and have up to 5
            // bits.
            lengths[(shortest + bits) as usize - MIN_PIECE] =
                Length { symbol: (format::END + 1 + n) as u16, extra: Code { bits, len: nbits as u8 } };
            bits += 1;
        }
        n += 1;
    }
    lengths
};

impl Distance {
    /// The parts of a distance, 1 to MAX_DISTANCE.
    #[inline(always)]
    pub(super) fn new(distance: usize) -> Distance {
        let d = distance as u32 - 1; // up to MAX_DISTANCE
        let extra_len = (d | 2).ilog2() - 1;
        let symbol = 2 * extra_len + (d >> extra_len);
        // The symbol is below 30, the length at most 13, and `extra` has as many bits.
        Distance {
            symbol: symbol as u8,
            extra_len: extra_len as u8,
            extra: (d & ((1 << extra_len) - 1)) as u16,
        }
    }

    /// Number of bits after a symbol below 32.
    #[inline(always)]
    pub(super) fn extra_len(symbol: usize) -> u8 {
        (symbol.max(2) / 2 - 1) as u8
    }
}

impl Sequence {
    /// This many literals and a match after them, of MIN_PIECE bytes or more; both are shorter than 2^32.
    #[inline(always)]
    pub(super) fn new(literals: usize, len: usize, distance: Distance) -> Sequence {
        Sequence { literals: literals as u32, len: len as u32, distance }
    }

    /// Literals, and no match.
    pub(super) fn literals_only(literals: usize) -> Sequence {
        Sequence::new(literals, 0, Distance::default())
    }

    /// Number of literals.
    #[inline(always)]
    pub(super) fn literals(&self) -> usize {
        self.literals as usize
    }

    /// Length of the match.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Distance of the match; of no meaning if there is none.
    #[inline(always)]
    pub(super) fn distance(&self) -> Distance {
        self.distance
    }

    /// Lengths that codes stand for, and add up to that of the match.
    #[inline(always)]
    pub(super) fn pieces(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.len as usize;
        std::iter::from_fn(move || {
            let piece = match left {
                0 => return None,
                MIN_PIECE..=MAX_PIECE => left,
                // Too little would be left for another code.
                _ if left < MAX_PIECE + MIN_PIECE => left - MIN_PIECE,
                _ => MAX_PIECE,
            };
            left -= piece;
            Some(piece)
        })
    }
}
