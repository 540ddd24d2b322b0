//! Matches of streams with few of them: the CPU guesses badly how many candidates there are, which of them match, and how far.
//! So the index finds them without guesses, and [`longest_of`] measures all of them and then chooses. Stretches without any are
//! left to a loop of the index.

use super::index::{Candidates, Index, Nearest};
use super::runs::{self, Candidate, is_run};
use super::{Match, Search, Sought, longer_match};
use crate::codecs::agree::extend_back;
use crate::codecs::lz4::output::{LAST_LITERALS, MAX_DISTANCE};
use crate::codecs::mem::load32;
use crate::cpu::select;
use std::arch::x86_64::*;

/// Bytes that are compared at once, and how many of them may lie before the position of a candidate.
const WINDOW: usize = 32;
const MOST_BEFORE: usize = 16;

/// Made only where the CPU has the features.
pub(super) struct Indexed<'a> {
    /// Cleared for this source.
    pub(super) index: &'a mut Index,
    pub(super) src: &'a [u8],
    /// Candidates that are looked at for each match.
    pub(super) attempts: u16,
    pub(super) passes_runs: bool,
}

impl Search for Indexed<'_> {
    #[inline(always)]
    unsafe fn first(&mut self, mut at: usize, last: usize) -> Option<Match> {
        loop {
            // SAFETY: the caller's promise, and the index was cleared for this source.
            at = unsafe { self.index.seek(self.src, at, last) };
            if at > last {
                return None;
            }
            let found = self.find::<false>(Sought::any(at));
            if found.is_some() {
                return found;
            }
            at += 1;
        }
    }

    #[inline(always)]
    unsafe fn longer(&mut self, sought: Sought) -> Option<Match> {
        self.find::<true>(sought)
    }
}

impl Indexed<'_> {
    /// The match that is sought. `BACK`: it may start before the position.
    #[inline(always)]
    fn find<const BACK: bool>(&mut self, sought: Sought) -> Option<Match> {
        let Sought { at, low, longest } = sought;
        let src = self.src;
        // SAFETY: `at` is at most `last_start`.
        if self.passes_runs && unsafe { is_run(src, at) } {
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

    /// The match that is sought, of a run.
    ///
    /// # Safety
    ///
    /// The CPU has the features, `sought.at` is at most `last_start`, and [`is_run`].
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn find_run(&mut self, sought: Sought) -> Option<Match> {
        // SAFETY: the caller's promise, and the index was cleared for this source.
        let all = unsafe { self.index.candidates(self.src, sought.at, u16::MAX) };
        // SAFETY: the caller's promise.
        unsafe { runs::longest(self.src, sought, self.attempts, Numbered { all, n: 0 }) }
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
}

/// A candidate, by the number of nearer ones.
struct Numbered<'a> {
    all: Candidates<'a>,
    n: usize,
}

impl Candidate for Numbered<'_> {
    #[inline(always)]
    fn at(&self) -> Option<usize> {
        self.all.position(self.n)
    }

    #[inline(always)]
    fn go_on(&mut self) {
        self.n += 1;
    }

    #[inline(always)]
    fn go_back(&mut self, n: usize) {
        self.n += n;
    }
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
