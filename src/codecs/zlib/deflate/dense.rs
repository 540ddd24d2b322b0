//! The search for matches in text and the like, where there is one every few bytes, and short: greedy, with one
//! candidate per position.
//!
//! Nothing tells where a match will be, so each costs a branch that goes wrong. There is no other here that often does:
//! to look for a few candidates, or at the next position as well, would take longer than it saves.

use super::sequence::{Distance, MAX_DISTANCE, MAX_PIECE};
use super::token::{Tally, Token};
use crate::codecs::agree::extend_long;
use crate::codecs::mem::{HASH_PRIME, load64};
use crate::error::Result;
use crate::memory::{filled, zeroed_box};

/// No block has more bytes.
pub(super) const MAX_BLOCK: usize = 32 << 10;
/// Bytes that are hashed. Matches of 4 bytes are taken, but not sought: few of them save bits.
const HASHED: u32 = 5;
/// log2 of the number of positions that are remembered.
const TABLE_BITS: u32 = 13;
const TABLE_LEN: usize = 1 << TABLE_BITS;

/// The table, and what was found in the current block.
pub(super) struct Parser {
    /// The low bits of the position where a hash occurred last; that of the first byte where it did not.
    table: Box<[u16; TABLE_LEN]>,
    /// The first `ntokens` count.
    tokens: Box<[Token]>,
    ntokens: usize,
    tally: Box<Tally>,
}

impl Parser {
    pub(super) fn new() -> Result<Parser> {
        let tokens = filled(Token::default(), MAX_BLOCK)?.into_boxed_slice();
        Ok(Parser { table: zeroed_box()?, tokens, ntokens: 0, tally: zeroed_box()? })
    }

    /// Begins with a stream.
    pub(super) fn begin(&mut self) {
        self.table.fill(0);
        self.begin_block();
    }

    /// Begins with a block.
    pub(super) fn begin_block(&mut self) {
        self.ntokens = 0;
        self.tally.clear();
    }

    /// What the current block consists of so far.
    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens[..self.ntokens]
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Adds the bytes `start..end` of the stream `src`, with those before as history, to the block. All of the stream
    /// up to there was parsed by this.
    pub(super) fn parse(&mut self, src: &[u8], start: usize, end: usize) {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            // SAFETY: the CPU was just asked for AVX2, BMI1, BMI2 and LZCNT.
            return unsafe { self.parse_avx2(src, start, end) };
        }
        self.parse_with(src, start, end);
    }

    /// [`parse_with`](Self::parse_with), compiled for newer CPUs.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2, BMI1, BMI2 and LZCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn parse_avx2(&mut self, src: &[u8], start: usize, end: usize) {
        self.parse_with(src, start, end);
    }

    /// [`parse`](Self::parse) with what the caller is compiled for.
    #[inline(always)]
    fn parse_with(&mut self, src: &[u8], start: usize, end: usize) {
        let mut at = start;
        if at == 0 {
            // Whatever the table says is before all that follows.
            at = self.add_literals(&src[..end.min(1)]);
        }
        at = self.find_matches(src, at, end);
        self.add_literals(&src[at..end]);
    }

    /// Adds `literals`; returns their number.
    fn add_literals(&mut self, literals: &[u8]) -> usize {
        let tally = &mut *self.tally;
        for (token, &byte) in self.tokens[self.ntokens..].iter_mut().zip(literals) {
            *token = Token::literal(byte);
            tally.count_literal(byte);
        }
        self.ntokens += literals.len();
        literals.len()
    }

    /// Adds what begins in `start..end`, except for the last bytes; returns where these are.
    #[inline(always)]
    fn find_matches(&mut self, src: &[u8], start: usize, end: usize) -> usize {
        let Parser { table, tokens, ntokens, tally } = self;
        let tally = &mut **tally;
        assert!(start > 0 && end <= src.len() && end <= start + (tokens.len() - *ntokens));
        let mut at = start;
        let mut n = *ntokens;
        let mut add = |token: Token| {
            debug_assert!(n < tokens.len());
            // SAFETY: there is room for as many tokens as bytes are left, as just asserted, and each one takes some.
            unsafe { *tokens.get_unchecked_mut(n) = token };
            n += 1;
        };
        while at + 8 <= end {
            // SAFETY: `at + 8 <= end`, which is not beyond `src`.
            let bytes = unsafe { load64(src, at) };
            let now = at as u16; // the low bits
            let entry = &mut table[slot(bytes)];
            let distance = usize::from(now.wrapping_sub(*entry));
            *entry = now;
            // SAFETY: the table has low bits of positions below `at`. If that is below 2^16, they are all there is of
            // them. Otherwise, any distance is less than `at`.
            let differing = bytes ^ unsafe { load64(src, at - distance) };
            if differing as u32 != 0 || !(1..=MAX_DISTANCE).contains(&distance) {
                add(Token::literal(bytes as u8));
                tally.count_literal(bytes as u8);
                at += 1;
                continue;
            }
            let len = if differing != 0 {
                differing.trailing_zeros() as usize / 8
            } else {
                // SAFETY: `distance <= at`, and `at + 8` is not beyond the limit.
                unsafe { extend_long(src, at + 8, distance, end.min(at + MAX_PIECE)) - at }
            };
            table[slot(bytes >> 8)] = now.wrapping_add(1);
            let token = Token::of_match(len, Distance::new(distance));
            add(token);
            tally.count_match(token);
            at += len;
        }
        *ntokens = n;
        at
    }
}

/// Table index for the first HASHED bytes of `bytes`.
#[inline(always)]
fn slot(bytes: u64) -> usize {
    // TABLE_BITS bits are left after the shift.
    ((bytes << (64 - 8 * HASHED)).wrapping_mul(HASH_PRIME) >> (64 - TABLE_BITS)) as usize
}
