//! A look at the beginning of a stream before it is decoded: its first codes tell what its literals and matches are
//! like.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use super::format::{END, LONGEST, MAX_CODE, MAX_LEN, length};
use super::inflate::{Bits, Fixed, Kind, count_lengths, read_fixed, read_kind, read_lengths};
use std::ops::RangeInclusive;

/// All symbols together, in the units of [`share`].
const ALL: u32 = 1 << MAX_CODE;
/// Distances up to 16 use this many symbols, the first ones.
const NEAR: usize = 8;
/// Codes up to this length are short: a decoder can look up two at once.
const SHORT: u8 = 5;

/// How often symbols occur in a block, if the codes suit them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Of all symbols, those that are literals, and those of them that have short codes.
    literals: u32,
    short: u32,
    /// Of all distances, the short ones.
    near: u32,
    /// Of as many symbols as [`ALL`]: how many bytes are in matches of the longest kind, and at least how many others.
    longest: u32,
    others: u32,
}

impl Shares {
    /// Those of the block that `deflated` begins with; `None` if it has no codes of its own, or they make no sense.
    pub(super) fn of_first(deflated: &[u8]) -> Option<Shares> {
        let mut bits = Bits::new(deflated);
        let (_, Kind::Dynamic) = read_kind(&mut bits)? else { return None };
        let lengths = read_lengths(&mut bits)?;
        let counts = count_lengths(&lengths.symbols[..END]);
        let sum = |range: RangeInclusive<u8>| {
            range.map(|len| u32::from(counts[usize::from(len)]) * share(len)).sum()
        };
        let literals = sum(1..=MAX_CODE as u8); // 15
        // At least this many bytes are in matches of other kinds.
        let matched = (0..).zip(&lengths.symbols[END + 1..LONGEST]).map(|(n, &len)| share(len) * length(n).0);
        Some(Shares {
            literals,
            short: sum(1..=SHORT),
            near: lengths.distances[..NEAR].iter().map(|&len| share(len)).sum(),
            longest: share(lengths.symbols[LONGEST]) * MAX_LEN as u32, // 258
            others: literals + matched.sum::<u32>(),
        })
    }

    /// Whether most symbols are literals with short codes, as where there are few different bytes and no order.
    pub(super) fn has_many_short_literals(&self) -> bool {
        self.short > ALL / 2
    }

    /// Whether matches are frequent, and hardly any bytes come from long runs.
    pub(super) fn has_many_short_matches(&self) -> bool {
        self.literals < ALL / 10 * 9 && 10 * self.longest < self.others
    }

    /// Whether most matches repeat what is further back than a few bytes, as in text.
    pub(super) fn has_far_matches(&self) -> bool {
        self.near < ALL / 5
    }
}

/// How many symbols of a block with the fixed codes are looked at.
const SAMPLE: usize = 64;

/// Whether most symbols that a block begins with are matches of what is a few bytes back, and hardly any are others;
/// `None` if it has other codes than the fixed ones.
pub(super) fn begins_with_near_matches(deflated: &[u8]) -> Option<bool> {
    let mut bits = Bits::new(deflated);
    let (_, Kind::Fixed) = read_kind(&mut bits)? else { return None };
    let (mut near, mut far) = (0, 0);
    for _ in 0..SAMPLE {
        match read_fixed(&mut bits) {
            Some(Fixed::Literal) => {}
            Some(Fixed::Match { distance_symbol }) if distance_symbol < NEAR => near += 1,
            Some(Fixed::Match { .. }) => far += 1,
            None => break,
        }
    }
    Some(near > SAMPLE / 4 && near > 4 * far)
}

/// The share that a symbol has for which a code of this length is best.
fn share(len: u8) -> u32 {
    if len == 0 { 0 } else { ALL >> len }
}
