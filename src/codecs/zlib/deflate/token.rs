//! What a block consists of, one word each: literals, and matches of a length that one code stands for.
//!
//! Where neither is rare, a list of these is written without a branch that depends on the data.

use super::sequence::{Distance, MAX_PIECE, MIN_PIECE};
use crate::memory::Zero;

/// Indices of what a token stands for: the literals, and the lengths from MIN_PIECE on.
pub(super) const NINDICES: usize = 512;
/// The first one of a length.
pub(super) const FIRST_LENGTH: usize = 256;
/// Numbers for symbols of distances: the 30 that there are, and one for none.
pub(super) const NDISTANCES: usize = 32;
const NO_DISTANCE: u32 = 30;
/// Where the symbol of the distance begins, and the bits after it, which are at most 13.
const DISTANCE: u32 = 9;
const EXTRA: u32 = 14;

/// A literal or a match.
#[derive(Clone, Copy, Default)]
pub(super) struct Token(u32);

impl Token {
    #[inline(always)]
    pub(super) fn literal(byte: u8) -> Token {
        Token(u32::from(byte) | NO_DISTANCE << DISTANCE)
    }

    /// A match of MIN_PIECE to MAX_PIECE bytes.
    #[inline(always)]
    pub(super) fn of_match(len: usize, distance: Distance) -> Token {
        debug_assert!((MIN_PIECE..=MAX_PIECE).contains(&len));
        let index = (len + FIRST_LENGTH - MIN_PIECE) as u32; // below NINDICES
        Token(index | u32::from(distance.symbol) << DISTANCE | u32::from(distance.extra) << EXTRA)
    }

    /// Below NINDICES.
    #[inline(always)]
    pub(super) fn index(self) -> usize {
        self.0 as usize % NINDICES
    }

    /// The symbol of the distance, or the number for none: below NDISTANCES.
    #[inline(always)]
    pub(super) fn distance(self) -> usize {
        (self.0 >> DISTANCE) as usize % NDISTANCES
    }

    /// What is after the symbol of the distance.
    #[inline(always)]
    pub(super) fn extra(self) -> u64 {
        u64::from(self.0 >> EXTRA)
    }
}

/// How often each literal, length and symbol of a distance occurs among the tokens.
pub(super) struct Tally {
    pub(super) indices: [u32; NINDICES],
    /// By symbol. Of literals, which have none, nothing is counted here.
    pub(super) distances: [u32; NDISTANCES],
}

// SAFETY: the fields are integers and arrays of them, for which zeros are a value.
unsafe impl Zero for Tally {}

impl Tally {
    /// Begins anew.
    pub(super) fn clear(&mut self) {
        self.indices.fill(0);
        self.distances.fill(0);
    }

    #[inline(always)]
    pub(super) fn count_literal(&mut self, byte: u8) {
        self.indices[usize::from(byte)] += 1;
    }

    #[inline(always)]
    pub(super) fn count_match(&mut self, token: Token) {
        self.indices[token.index()] += 1;
        self.distances[token.distance()] += 1;
    }

    /// Number of matches.
    pub(super) fn nmatches(&self) -> usize {
        self.distances.iter().sum::<u32>() as usize
    }
}
