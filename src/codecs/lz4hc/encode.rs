//! The high-compression encoder at the levels from [`LEVELS`]: the reference implementation's parse, and so its bytes, in less
//! time.
//!
//! A match is written only after looking whether a longer one begins behind it, and that one, too (see [`Parser::settle`]). Nearly
//! all of the time goes to finding the longest of some candidates, in which the CPU guesses badly: how many there are,
//! which of them match, and how far. So the index finds them without guesses, and [`longest_of`] measures all of them and then
//! chooses. Stretches without any are left to a loop of the index.

mod runs;
#[cfg(test)]
mod tests;

use super::index::{Candidates, Index, Nearest};
use crate::codecs::agree::{extend_back, extend_long};
use crate::codecs::lz4::output::{LAST_LITERALS, LAST_START, LONG, MAX_DISTANCE, MIN_MATCH, Output};
use crate::codecs::mem::load32;
use crate::cpu::{self, select};
use crate::error::Result;
use std::arch::x86_64::*;
use std::ops::RangeInclusive;

/// Where the reference looks for matches in this way.
const LEVELS: RangeInclusive<u8> = 3..=9;
/// From this level on, it passes parts of runs.
const PASSES_RUNS: u8 = 9;
/// Longest match whose length stands in the token alone.
const SHORT_MATCH: usize = MIN_MATCH + LONG - 1;
/// Of matches that start closer to each other than this, only one is written.
const LEAST_STEP: usize = 3;
/// Bytes that are compared at once, and how many of them may lie before the position of a candidate.
const WINDOW: usize = 32;
const MOST_BEFORE: usize = 16;

/// Whether the encoder can compress `src` at this level: whether the CPU has what it is written for, too.
pub(super) fn is_for(clevel: u8, src: &[u8]) -> bool {
    LEVELS.contains(&clevel) && src.len() > LAST_START && cpu::has_avx2()
}

/// Compresses streams, one per call, and owns the tables for that (832 KiB).
pub(super) struct Encoder {
    index: Index,
}

impl Encoder {
    pub(super) fn new() -> Result<Encoder> {
        Ok(Encoder { index: Index::new()? })
    }

    /// Compresses `src`, which it [`is_for`], into `dest`; returns the compressed size, or `None` if it does not fit.
    pub(super) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        assert!(is_for(clevel, src));
        self.index.clear();
        let mut parser = Parser {
            index: &mut self.index,
            src,
            attempts: 2 << (clevel - 2),
            passes_runs: clevel >= PASSES_RUNS,
            anchor: 0,
        };
        let mut out = Output::high(src, dest);
        // SAFETY: the CPU has the features, as `is_for` says.
        unsafe { parser.parse(&mut out)? };
        out.finish(parser.anchor)
    }
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

/// Made only where the CPU has the features.
struct Parser<'a> {
    index: &'a mut Index,
    src: &'a [u8],
    /// Candidates that are looked at for each match.
    attempts: u16,
    passes_runs: bool,
    /// The end of the last sequence.
    anchor: usize,
}

impl Parser<'_> {
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
        let mut at = 0;
        loop {
            // SAFETY: a match may start at `last_start`, and the index was cleared for this source; the caller guarantees
            // the features.
            at = unsafe { self.index.seek(self.src, at, self.last_start()) };
            if at > self.last_start() {
                return Some(());
            }
            let sought = Sought { at, low: at, longest: MIN_MATCH - 1 };
            match self.find::<false>(sought) {
                Some(first) => {
                    self.settle(first, out)?;
                    at = self.anchor;
                }
                None => at += 1,
            }
        }
    }

    /// Writes the sequences that begin with `first`, or with better matches near it. `None` if they do not fit.
    ///
    /// At each time there are up to three matches, each of them longer than the one before, and beginning in it or right behind it.
    /// What they have in common goes to one of both.
    #[inline(always)]
    fn settle(&mut self, first: Match, out: &mut Output<'_>) -> Option<()> {
        // What was the first of them before a better one took its place.
        let mut spare = first;
        let mut one = first;
        'two: loop {
            let Some(mut two) = self.find_behind(one, 2) else {
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
                let Some(three) = self.find_behind(two, 3) else {
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

    /// A longer match than this one that does not start before it, sought so many bytes before its end.
    #[inline(always)]
    fn find_behind(&mut self, found: Match, before_end: usize) -> Option<Match> {
        if found.end() > self.last_start() {
            return None;
        }
        self.find::<true>(Sought { at: found.end() - before_end, low: found.at, longest: found.len })
    }

    /// The match that is sought. `BACK`: it may start before the position.
    #[inline(always)]
    fn find<const BACK: bool>(&mut self, sought: Sought) -> Option<Match> {
        let Sought { at, low, longest } = sought;
        let src = self.src;
        // SAFETY: `at` is at most `last_start`.
        if self.passes_runs && unsafe { runs::is_run(src, at) } {
            // SAFETY: the same, and the CPU has the features, as there is a parser.
            return unsafe { self.find_run(sought) };
        }
        // SAFETY: `at` is at most `last_start`, the index was cleared for this source, and the CPU has the features, as there
        // is a parser.
        let mut candidates = unsafe { self.index.candidates(src, at, self.attempts) };
        let nearest = candidates.next();
        if nearest.is_empty() && candidates.is_empty() {
            return None;
        }
        // SAFETY: as above.
        let Nearby { len, position } = unsafe { longest_of::<BACK>(src, sought, nearest) };
        if len == UNCLEAR || !candidates.is_empty() {
            // SAFETY: as above.
            return unsafe { self.find_among_all(sought) };
        }
        if len as usize <= longest {
            return None;
        }
        let distance = at - position as usize;
        // SAFETY: the position lies in the source, before `at`.
        let start = if BACK { unsafe { extend_back(src, at, distance, low) } } else { at };
        Some(Match { at: start, len: len as usize, distance })
    }

    /// The match that is sought, whatever the candidates are.
    ///
    /// # Safety
    ///
    /// The CPU has the features, and `sought.at` is at most `last_start`.
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn find_among_all(&mut self, sought: Sought) -> Option<Match> {
        // SAFETY: the caller's promise, and the index was cleared for this source.
        let candidates = unsafe { self.index.candidates(self.src, sought.at, self.attempts) };
        longest_of_all(self.src, sought, candidates)
    }

    /// Writes the match and the literals before it. `None` if they do not fit.
    fn write(&mut self, found: Match, out: &mut Output<'_>) -> Option<()> {
        out.sequence(self.anchor, found.at, found.len, found.distance)?;
        self.anchor = found.end();
        Some(())
    }
}

/// Divides what two matches have in common: the first gets it, as far as the token can tell its length, if both are short.
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

/// How long the first of two matches may be, if the token is to tell its length, and [`MIN_MATCH`] bytes are to be left of the second.
fn length_beside(one: Match, two: Match) -> usize {
    one.len.min(SHORT_MATCH).min(two.end() - MIN_MATCH - one.at)
}

/// A match that is looked for: it includes [`MIN_MATCH`] bytes from `at` on, starts at `low` or behind, and has more than `longest`
/// bytes. Of those, the longest is wanted, and the nearest if there are several.
#[derive(Clone, Copy)]
struct Sought {
    at: usize,
    low: usize,
    longest: usize,
}

/// The longest match near by. As two numbers, it comes back in registers.
#[derive(Clone, Copy)]
struct Nearby {
    /// [`UNCLEAR`] if some candidate matches further than [`longest_of`] looks.
    len: u32,
    position: u32,
}

const UNCLEAR: u32 = u32::MAX;

/// The match that is sought, among the nearest candidates, which are positions before `at`, or a shorter one.
///
/// # Safety
///
/// The CPU has the features, and `at + MIN_MATCH <= src.len()`.
#[inline(never)] // in one function with the loop over positions, both would lack registers
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn longest_of<const BACK: bool>(src: &[u8], sought: Sought, nearest: Nearest<'_>) -> Nearby {
    let unclear = Nearby { len: UNCLEAR, position: 0 };
    let Sought { at, low, longest } = sought;
    let before = if BACK { (at - low).min(MOST_BEFORE) } else { 0 };
    if at + WINDOW + LAST_LITERALS > src.len() {
        return unclear;
    }
    if BACK && !nearest.is_empty() && (nearest.farthest() as usize) < before {
        return unclear;
    }
    // The length in the upper half, and the position in the lower.
    let mut best = 0;
    for position in nearest {
        // SAFETY: the window begins in the source and ends there, that at `at` as compared, and this one lies before.
        let differs = unsafe { differing(src, at - before, position as usize - before) };
        let mut len = (differs >> before).trailing_zeros();
        if BACK {
            // A bit ends what lies before at `before`, which is less than the width.
            len += (differs << (WINDOW - before) | 1 << (WINDOW - 1 - before)).leading_zeros();
        }
        let len = select(position as usize + MAX_DISTANCE < at, 0, len);
        best = best.max(u64::from(len) << 32 | u64::from(position));
    }
    let (len, position) = ((best >> 32) as u32, best as u32);
    let reached = len as usize;
    if reached >= WINDOW || BACK && before == MOST_BEFORE && reached >= MOST_BEFORE {
        return unclear;
    }
    // SAFETY: there is a window at `at`, and the position lies before.
    if reached > longest && unsafe { load32(src, at) != load32(src, position as usize) } {
        return unclear;
    }
    Nearby { len, position }
}

/// Which of [`WINDOW`] bytes at `a` and `b` differ, the first in the lowest bit.
///
/// # Safety
///
/// The CPU has AVX2, and `a + WINDOW` and `b + WINDOW` are at most `src.len()`.
#[inline(always)]
unsafe fn differing(src: &[u8], a: usize, b: usize) -> u32 {
    debug_assert!(a + WINDOW <= src.len() && b + WINDOW <= src.len());
    // SAFETY: the caller guarantees as many readable bytes, and the instructions.
    unsafe {
        let a = _mm256_loadu_si256(src.as_ptr().add(a).cast());
        let b = _mm256_loadu_si256(src.as_ptr().add(b).cast());
        !_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)) as u32 // 32 bits
    }
}

/// The match that is sought, among all of the candidates.
#[inline(always)]
fn longest_of_all(src: &[u8], sought: Sought, mut candidates: Candidates<'_>) -> Option<Match> {
    let Sought { at, low, mut longest } = sought;
    let limit = src.len() - LAST_LITERALS;
    let mut found = None;
    while !candidates.is_empty() {
        for position in candidates.next() {
            let position = position as usize;
            let distance = at - position;
            if distance > MAX_DISTANCE || longest == limit - low {
                return found;
            }
            // SAFETY: what is sought is not as long as it may be, and the position lies before `at`.
            if let Some(longer) = unsafe { longer_match(src, Sought { at, low, longest }, position) } {
                longest = longer.len;
                found = Some(longer);
            }
        }
    }
    found
}

/// The match with the candidate at `position`, if it is longer than `sought.longest`.
///
/// # Safety
///
/// `position < sought.at`, and `sought.at + MIN_MATCH` and `sought.low + sought.longest` are less than `src.len() - LAST_LITERALS`.
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
