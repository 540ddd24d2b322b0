//! The high-compression encoder at the levels from [`LEVELS`]: the reference implementation's parse, and so its bytes,
//! in less time.
//!
//! A match is written only after looking whether a longer one begins after it, and that one, too (see
//! [`Parser::settle`]). Nearly all of the time goes to finding the longest of some candidates. There are two ways to do
//! that: [`indexed`], where there are few matches, and [`chains`].

mod chains;
mod index;
mod indexed;
mod pays;
mod runs;
#[cfg(test)]
mod tests;
mod window;

use crate::codecs::agree::{extend_back, extend_long};
use crate::codecs::lz4::output::{LAST_LITERALS, LAST_START, LONG, MIN_MATCH, Output};
use crate::codecs::mem::load32;
use crate::cpu;
use crate::error::Result;
use crate::memory::made;
use chains::{Chained, Chains};
use index::Index;
use indexed::Indexed;
use std::ops::RangeInclusive;

/// Where the reference looks for matches in this way.
const LEVELS: RangeInclusive<u8> = 3..=9;
/// From this level on, the reference skips parts of runs.
const SKIPS_RUNS: u8 = 9;
/// Longest match whose length stands in the token alone.
const SHORT_MATCH: usize = MIN_MATCH + LONG - 1;
/// Of matches that start closer to each other than this, only one is written.
const LEAST_STEP: usize = 3;

/// Whether the encoder can compress `src` at this level: whether the CPU has what it is written for, too.
pub(super) fn is_for(clevel: u8, src: &[u8]) -> bool {
    LEVELS.contains(&clevel) && src.len() > LAST_START && cpu::has_avx2()
}

/// Compresses streams, one per call, and owns the tables for that: 256 KiB for the chains, and 832 KiB for the index,
/// made for the first stream that needs them.
#[derive(Default)]
pub(super) struct Encoder {
    chains: Option<Chains>,
    index: Option<Index>,
}

impl Encoder {
    /// Compresses `src`, which it [`is_for`], into `dest`; returns the compressed size, or `None` if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<Option<usize>> {
        if pays::index_pays(src) {
            self.compress_indexed(clevel, src, dest)
        } else {
            self.compress_chained(clevel, src, dest)
        }
    }

    /// As [`compress`](Self::compress), whatever the stream.
    fn compress_indexed(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<Option<usize>> {
        assert!(is_for(clevel, src));
        let index = made(&mut self.index, Index::new)?;
        index.clear();
        let (attempts, skips_runs) = (attempts(clevel), clevel >= SKIPS_RUNS);
        Ok(Parser::new(src, Indexed { index, src, attempts, skips_runs }).compress(dest))
    }

    /// As [`compress`](Self::compress), whatever the stream.
    fn compress_chained(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<Option<usize>> {
        assert!(is_for(clevel, src));
        let chains = made(&mut self.chains, Chains::new)?;
        chains.begin(src.len());
        let attempts = attempts(clevel);
        Ok(if clevel >= SKIPS_RUNS {
            Parser::new(src, Chained::<true> { chains, src, attempts }).compress(dest)
        } else {
            Parser::new(src, Chained::<false> { chains, src, attempts }).compress(dest)
        })
    }
}

/// Candidates that are looked at for each match.
fn attempts(clevel: u8) -> u16 {
    2 << (clevel - 2)
}

/// A match: `len` bytes from `at` on are those `distance` bytes before.
#[derive(Clone, Copy)]
struct Match {
    at: usize,
    len: usize,
    distance: usize,
}

impl Match {
    fn end(&self) -> usize {
        self.at + self.len
    }

    /// Takes away what lies before `at`.
    fn start_at(&mut self, at: usize) {
        self.len -= at - self.at;
        self.at = at;
    }
}

/// Finds the matches of a source, never before a position of an earlier search.
trait Search {
    /// The match at the first position from `at` to `last` where there is one, if there is.
    ///
    /// # Safety
    ///
    /// The CPU has the features, and `last + LAST_START` is at most the length of the source.
    unsafe fn first(&mut self, at: usize, last: usize) -> Option<Match>;

    /// The match that is sought, which may start before the position.
    ///
    /// # Safety
    ///
    /// The CPU has the features, and `sought.at + LAST_START` is at most the length of the source.
    unsafe fn longer(&mut self, sought: Sought) -> Option<Match>;
}

/// Made only where the CPU has the features.
struct Parser<'a, S> {
    search: S,
    src: &'a [u8],
    /// The end of the last sequence.
    anchor: usize,
}

impl<'a, S: Search> Parser<'a, S> {
    fn new(src: &'a [u8], search: S) -> Self {
        Parser { search, src, anchor: 0 }
    }

    /// Compresses the source into `dest`; returns the compressed size, or `None` if it does not fit.
    fn compress(&mut self, dest: &mut [u8]) -> Option<usize> {
        let mut out = Output::high(self.src, dest);
        // SAFETY: the CPU has the features, as `is_for` says.
        unsafe { self.parse(&mut out)? };
        out.finish(self.anchor)
    }

    /// The last position at which a match may start.
    #[inline(always)]
    fn last_start(&self) -> usize {
        self.src.len() - LAST_START
    }

    /// Writes all sequences. `None` if they do not fit.
    ///
    /// # Safety
    ///
    /// The CPU has the features.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn parse(&mut self, out: &mut Output<'_>) -> Option<()> {
        // SAFETY: a match may start at `last_start`; the caller guarantees the features.
        while let Some(first) = unsafe { self.search.first(self.anchor, self.last_start()) } {
            self.settle(first, out)?;
        }
        Some(())
    }

    /// Writes the sequences that begin with `first`, or with better matches near it. `None` if they do not fit.
    ///
    /// At each time there are up to three matches, each of them longer than the one before, and beginning in it or
    /// right after it. What they have in common goes to one of both.
    #[inline(always)]
    fn settle(&mut self, first: Match, out: &mut Output<'_>) -> Option<()> {
        // What was the first of them before a better one took its place.
        let mut spare = first;
        let mut one = first;
        'two: loop {
            let Some(mut two) = self.find_after(one, 2) else {
                return self.write(one, out);
            };
            if spare.at < one.at && two.at < one.at + spare.len {
                one = spare;
            }
            if two.at - one.at < LEAST_STEP {
                one = two;
                continue;
            }
            loop {
                if two.at - one.at < SHORT_MATCH {
                    two.start_at(two.at.max(one.at + length_beside(one, two)));
                }
                let Some(three) = self.find_after(two, 3) else {
                    one.len = one.len.min(two.at - one.at);
                    self.write(one, out)?;
                    return self.write(two, out);
                };
                if three.at >= one.end() + LEAST_STEP {
                    part(&mut one, &mut two);
                    self.write(one, out)?;
                    (one, two) = (two, three);
                } else if three.at >= one.end() {
                    // There is no room for the second between the others, but it may replace the third.
                    two.start_at(two.at.max(one.end()).min(two.end()));
                    if two.len < MIN_MATCH {
                        two = three;
                    }
                    self.write(one, out)?;
                    (spare, one) = (two, three);
                    continue 'two;
                } else {
                    two = three;
                }
            }
        }
    }

    /// A longer match than this one that does not start before it, sought this many bytes before its end.
    #[inline(always)]
    fn find_after(&mut self, found: Match, before_end: usize) -> Option<Match> {
        if found.end() > self.last_start() {
            return None;
        }
        let sought = Sought { at: found.end() - before_end, low: found.at, longest: found.len };
        // SAFETY: a match may start there, and the CPU has the features, as there is a parser.
        unsafe { self.search.longer(sought) }
    }

    /// Writes the match and the literals before it. `None` if they do not fit.
    fn write(&mut self, found: Match, out: &mut Output<'_>) -> Option<()> {
        out.sequence(self.anchor, found.at, found.len, found.distance)?;
        self.anchor = found.end();
        Some(())
    }
}

/// Divides what two matches have in common: the first gets it, as far as the token can tell its length, if both are
/// short.
fn part(one: &mut Match, two: &mut Match) {
    if two.at >= one.end() {
        return;
    }
    if two.at - one.at < SHORT_MATCH {
        one.len = length_beside(*one, *two);
        two.start_at(two.at.max(one.end()));
    } else {
        one.len = two.at - one.at;
    }
}

/// How long the first of two matches may be, if the token is to tell its length, and [`MIN_MATCH`] bytes are to be left
/// of the second.
fn length_beside(one: Match, two: Match) -> usize {
    one.len.min(SHORT_MATCH).min(two.end() - MIN_MATCH - one.at)
}

/// A match that is looked for: it includes [`MIN_MATCH`] bytes from `at` on, starts at `low` or after, and has more
/// than `longest` bytes. Of those, the longest is wanted, and the nearest if there are several.
#[derive(Clone, Copy)]
struct Sought {
    at: usize,
    low: usize,
    longest: usize,
}

impl Sought {
    /// The longest match that starts at `at`.
    fn any(at: usize) -> Sought {
        Sought { at, low: at, longest: MIN_MATCH - 1 }
    }
}

/// The match with the candidate at `position`, if it is longer than `sought.longest`.
///
/// # Safety
///
/// `position < sought.at`, and `sought.at + MIN_MATCH` and `sought.low + sought.longest` are less than
/// `src.len() - LAST_LITERALS`.
#[inline(always)]
unsafe fn longer_match(src: &[u8], sought: Sought, position: usize) -> Option<Match> {
    let Sought { at, low, longest } = sought;
    let (limit, distance) = (src.len() - LAST_LITERALS, at - position);
    // A longer match has these bytes, and the first ones.
    let ahead = (low + longest).saturating_sub(at + 3);
    // SAFETY: all of it ends before the limit, and the position lies before.
    if unsafe { load32(src, at + ahead) != load32(src, position + ahead) } {
        return None;
    }
    // SAFETY: the position lies in the source, before `at`, and that before the limit.
    let end = unsafe { extend_long(src, at, distance, limit) };
    if end < at + MIN_MATCH {
        return None;
    }
    // SAFETY: as above.
    let start = unsafe { extend_back(src, at, distance, low) };
    (end - start > longest).then_some(Match { at: start, len: end - start, distance })
}
