//! What a parser makes of bytes: literals and matches, in the terms of the format.

/// The largest distance of a match.
pub(super) const MAX_DISTANCE: usize = 32 << 10;
/// The longest match that one code stands for, and the shortest.
pub(super) const MAX_PIECE: usize = 258;
pub(super) const MIN_PIECE: usize = 3;

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
    /// Number of bits behind the symbol, and the bits.
    pub(super) extra_len: u8,
    pub(super) extra: u16,
}

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

    /// Number of bits behind a symbol below 32.
    #[inline(always)]
    pub(super) fn extra_len(symbol: usize) -> u8 {
        (symbol.max(2) / 2 - 1) as u8
    }
}

impl Sequence {
    /// So many literals and a match behind them, of MIN_PIECE bytes or more; both are shorter than 2^32.
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
