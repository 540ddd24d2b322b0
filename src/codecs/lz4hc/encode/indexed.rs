//! Matches of streams with few of them: the CPU guesses badly how many candidates there are, which of them match, and
//! how far. So the index finds them without guesses, a [`Window`] measures all of them, and then the longest is chosen.
//! Stretches without any are left to a loop of the index.

use super::index::{Candidates, Index, Nearest};
use super::runs::{self, Candidate, is_run};
use super::window::{Longest, WINDOW, Window};
use super::{Match, Search, Sought, longer_match};
use crate::codecs::agree::extend_back;
use crate::codecs::lz4::output::{LAST_LITERALS, MAX_DISTANCE};
use crate::cpu::select;

/// Made only where the CPU has the features.
pub(super) struct Indexed<'a> {
    /// Cleared for this source.
    pub(super) index: &'a mut Index,
    pub(super) src: &'a [u8],
    /// Candidates that are looked at for each match.
    pub(super) attempts: u16,
    pub(super) skips_runs: bool,
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
            // SAFETY: the caller's promise.
            let found = unsafe { self.find::<false>(Sought::any(at)) };
            if found.is_some() {
                return found;
            }
            at += 1;
        }
    }

    #[inline(always)]
    unsafe fn longer(&mut self, sought: Sought) -> Option<Match> {
        // SAFETY: the caller's promise.
        unsafe { self.find::<true>(sought) }
    }
}

impl Indexed<'_> {
    /// The match that is sought. `BACK`: it may start before the position.
    ///
    /// # Safety
    ///
    /// As for [`Search::longer`].
    #[inline(always)]
    unsafe fn find<const BACK: bool>(&mut self, sought: Sought) -> Option<Match> {
        let Sought { at, low, longest } = sought;
        let src = self.src;
        // SAFETY: after `at` more bytes follow than that.
        if self.skips_runs && unsafe { is_run(src, at) } {
            // SAFETY: the caller's promise.
            return unsafe { self.find_run(sought) };
        }
        // SAFETY: the caller's promise, and the index was cleared for this source.
        let mut candidates = unsafe { self.index.candidates(src, at, self.attempts) };
        let nearest = candidates.next();
        if nearest.is_empty() && candidates.is_empty() {
            return None;
        }
        // SAFETY: the caller's promise, and candidates lie before `at`.
        let best = unsafe { longest_of::<BACK>(src, at, low, nearest) };
        let Some(best) = best.filter(|_| candidates.is_empty()) else {
            // SAFETY: the caller's promise.
            return unsafe { self.find_among_all(sought) };
        };
        if best.len() <= longest {
            return None;
        }
        let distance = at - best.position() as usize;
        // SAFETY: the position lies in the source, before `at`.
        let start = if BACK { unsafe { extend_back(src, at, distance, low) } } else { at };
        Some(Match { at: start, len: best.len(), distance })
    }

    /// The match that is sought, of a run.
    ///
    /// # Safety
    ///
    /// As for [`Search::longer`], and [`is_run`] at `sought.at`.
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
    /// As for [`Search::longer`].
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

/// The longest match for `at` among the nearest candidates; nothing if some of them match further than the window
/// shows.
///
/// # Safety
///
/// As for [`Search::longer`], and the candidates lie before `at`.
#[inline(never)] // in one function with the loop over positions, both would lack registers
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn longest_of<const BACK: bool>(
    src: &[u8],
    at: usize,
    low: usize,
    nearest: Nearest<'_>,
) -> Option<Longest> {
    if at + WINDOW + LAST_LITERALS > src.len() {
        return None;
    }
    // SAFETY: the window lies in the source; the caller guarantees the features, and that `low` is before `at` if
    // `BACK`.
    let window = unsafe { Window::new::<BACK>(src, at, low) };
    if BACK && !nearest.is_empty() && (nearest.farthest() as usize) < window.before() {
        return None;
    }
    let mut best = Longest::NONE;
    for position in nearest {
        // SAFETY: as many bytes lie before the position, as compared, and it is before `at`.
        let len = unsafe { window.matching::<BACK>(src.as_ptr().add(position as usize - window.before())) };
        let len = select(position as usize + MAX_DISTANCE < at, 0, len);
        best = best.max(Longest::new(len, position));
    }
    (best.len() < WINDOW).then_some(best)
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
