//! Matches where there are many: each position leads to the one before it in its bucket, as in the reference
//! implementation.
//!
//! Which candidates match, and how far, the CPU guesses badly. So a [`Window`] tells how many bytes each of them
//! matches around the position, and a maximum which is the longest ([`near`]); following the chain takes as long. From
//! the first match on that is longer than the window, few candidates are as long, and only those are measured
//! ([`far`]).

use super::index::{BUCKETS, Hash};
use super::runs::{self, Candidate, is_run};
use super::window::{Longest, WINDOW, Window};
use super::{Match, Search, Sought};
use crate::codecs::agree::{extend_back, extend_long};
use crate::codecs::lz4::output::{LAST_LITERALS, MAX_DISTANCE};
use crate::codecs::mem::load32;
use crate::error::Result;
use crate::memory::zeroed_box;

/// Positions of which the steps are kept: as many as matches reach back, and one more.
const REACH: usize = MAX_DISTANCE + 1;

/// The positions of a stream, in a chain for each bucket, which is those with the same hash of the four bytes there.
/// They are counted from before the streams that were there earlier, so that those need not be cleared away.
pub(super) struct Chains {
    /// The last position of each bucket; of no stream where there is none.
    heads: Box<[u32; BUCKETS]>,
    /// How far it is from a position, modulo [`REACH`], to the one before in its bucket; too far if there is none.
    steps: Box<[u16; REACH]>,
    /// Where the stream begins.
    start: u32,
    /// Where the next one may begin.
    end: u32,
    /// The first byte of the stream whose position is not entered.
    next: usize,
}

impl Chains {
    pub(super) fn new() -> Result<Chains> {
        Ok(Chains { heads: zeroed_box()?, steps: zeroed_box()?, start: 0, end: REACH as u32, next: 0 })
    }

    /// As if earlier streams had used up the positions before `end`.
    #[cfg(test)]
    pub(super) fn start_from(&mut self, end: u32) {
        self.end = end;
    }

    /// Begins a stream of `n` bytes, of less than 2 GiB.
    pub(super) fn begin(&mut self, n: usize) {
        let n = n as u32; // fits
        if self.end > u32::MAX - 2 * REACH as u32 - n {
            self.heads.fill(0);
            self.end = REACH as u32;
        }
        self.start = self.end;
        self.end += n + REACH as u32;
        self.next = 0;
    }

    /// The last position of the bucket of these four bytes.
    #[inline(always)]
    fn head(&self, group: u32) -> u32 {
        self.heads[Hash::of(group).bucket()]
    }

    /// The position of byte `at`.
    #[inline(always)]
    fn position(&self, at: usize) -> u32 {
        self.start + at as u32 // within the stream
    }

    /// The first position that a match at `at` reaches.
    #[inline(always)]
    fn lowest(&self, at: usize) -> u32 {
        self.start.max(self.position(at) - MAX_DISTANCE as u32)
    }

    /// Where the byte of position 0 would be.
    #[inline(always)]
    fn origin(&self, src: &[u8]) -> *const u8 {
        src.as_ptr().wrapping_sub(self.start as usize)
    }

    /// The position before this one in its bucket.
    #[inline(always)]
    fn before(&self, position: u32) -> u32 {
        position - u32::from(self.steps[position as usize % REACH])
    }

    /// Enters the positions before `end`.
    ///
    /// # Safety
    ///
    /// `end + 3 <= src.len()`.
    #[inline(always)]
    unsafe fn enter_until(&mut self, src: &[u8], end: usize) {
        assert!(self.next <= end, "positions before were searched from");
        // The four bytes there; behind the last position, others than `group`.
        let next_group = |at: usize, group: u32| {
            // SAFETY: `at` is less than `end`.
            if at < end { unsafe { load32(src, at) } } else { !group }
        };
        let mut at = self.next;
        let mut group = next_group(at, 0);
        while at < end {
            let mut position = self.position(at);
            let head = &mut self.heads[Hash::of(group).bucket()];
            let step = (position - *head).min(MAX_DISTANCE as u32);
            self.steps[position as usize % REACH] = step as u16; // fits
            at += 1;
            let mut next = next_group(at, group);
            // In a run, each waits for the one before if the head is read again.
            while next == group {
                position += 1;
                self.steps[position as usize % REACH] = 1;
                at += 1;
                next = next_group(at, group);
            }
            *head = position;
            group = next;
        }
        self.next = at;
    }
}

/// Made only where the CPU has the features. `RUNS`: parts of runs are skipped. It is a constant, since this search
/// looks at each position: without `RUNS` there is no check left in the loop.
pub(super) struct Chained<'a, const RUNS: bool> {
    /// Begun for this source.
    pub(super) chains: &'a mut Chains,
    pub(super) src: &'a [u8],
    /// Candidates that are looked at for each match.
    pub(super) attempts: u16,
}

impl<const RUNS: bool> Search for Chained<'_, RUNS> {
    #[inline(always)]
    unsafe fn first(&mut self, mut at: usize, last: usize) -> Option<Match> {
        while at <= last {
            // SAFETY: the caller's promise.
            let found = unsafe { self.find::<false>(Sought::any(at)) };
            if found.is_some() {
                return found;
            }
            at += 1;
        }
        None
    }

    #[inline(always)]
    unsafe fn longer(&mut self, sought: Sought) -> Option<Match> {
        // SAFETY: the caller's promise.
        unsafe { self.find::<true>(sought) }
    }
}

impl<const RUNS: bool> Chained<'_, RUNS> {
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
        unsafe { self.chains.enter_until(src, at) };
        // SAFETY: the same.
        if RUNS && unsafe { is_run(src, at) } {
            // SAFETY: the caller's promise.
            return unsafe { self.find_run(sought) };
        }
        // SAFETY: the same.
        let rest = unsafe { self.seek(at) }?;
        let chains = &*self.chains;
        let (mut best, rest) = if at + WINDOW + LAST_LITERALS <= src.len() {
            // SAFETY: the caller guarantees the features, there is a window, and candidates are in the chains of this
            // source.
            unsafe { near::<BACK>(src, chains, at, low, rest) }
        } else {
            (Longest::NONE, rest)
        };
        if rest.attempts > 0 {
            // SAFETY: the same. Matches in the window end before the limit.
            best = unsafe { far::<BACK>(src, chains, &sought, best, rest) };
        }
        if best.len() <= longest {
            return None;
        }
        let distance = (chains.position(at) - best.position()) as usize;
        // SAFETY: the position is one of the source, before `at`.
        let start = if BACK { unsafe { extend_back(src, at, distance, low) } } else { at };
        Some(Match { at: start, len: best.len(), distance })
    }

    /// The candidates for a match at `at`, from the nearest one on that has the same four bytes; nothing if none has.
    ///
    /// # Safety
    ///
    /// `at + 4 <= src.len()`.
    #[inline(always)]
    unsafe fn seek(&self, at: usize) -> Option<Rest> {
        let chains = &*self.chains;
        // SAFETY: the caller's promise.
        let group = unsafe { load32(self.src, at) };
        let lowest = chains.lowest(at);
        let mut position = chains.head(group);
        let mut attempts = self.attempts.into();
        let origin = chains.origin(self.src);
        while position >= lowest {
            // SAFETY: the position is one of the source, before `at`.
            let there = unsafe { origin.wrapping_add(position as usize).cast::<[u8; 4]>().read() };
            if u32::from_le_bytes(there) == group {
                return Some(Rest { position, attempts });
            }
            position = chains.before(position);
            attempts -= 1;
            if attempts == 0 {
                break;
            }
        }
        None
    }

    /// The match that is sought, of a run.
    ///
    /// # Safety
    ///
    /// As for [`Search::longer`], and [`is_run`] at `sought.at`.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn find_run(&self, sought: Sought) -> Option<Match> {
        // SAFETY: after `at` more bytes follow than that.
        let group = unsafe { load32(self.src, sought.at) };
        let candidate = Chain { chains: self.chains, position: self.chains.head(group) };
        // SAFETY: the caller's promise, and positions of the chain were entered, which lie before `at`.
        unsafe { runs::longest(self.src, sought, self.attempts, candidate) }
    }
}

/// A candidate in its chain.
struct Chain<'a> {
    chains: &'a Chains,
    position: u32,
}

impl Candidate for Chain<'_> {
    #[inline(always)]
    fn at(&self) -> Option<usize> {
        self.position.checked_sub(self.chains.start).map(|at| at as usize)
    }

    #[inline(always)]
    fn go_on(&mut self) {
        self.position = self.chains.before(self.position);
    }

    #[inline(always)]
    fn go_back(&mut self, n: usize) {
        self.position -= n as u32; // within a run
    }
}

/// Candidates that are left: the nearest one, and how many are looked at.
#[derive(Clone, Copy)]
struct Rest {
    position: u32,
    attempts: u32,
}

/// The longest match for `at` among the candidates up to the first one that matches further than the window shows, and
/// the candidates from there on.
///
/// # Safety
///
/// The CPU has the features, `src` has a window at `at` before the last literals, `low` is less than `at` if `BACK`,
/// and the chains have the positions before `at`.
#[inline(never)] // in one function with the parser, both would lack registers
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn near<const BACK: bool>(
    src: &[u8],
    chains: &Chains,
    at: usize,
    low: usize,
    rest: Rest,
) -> (Longest, Rest) {
    // SAFETY: the caller's promise.
    let window = unsafe { Window::new::<BACK>(src, at, low) };
    let lowest = chains.lowest(at);
    let first = lowest.max(chains.position(window.before()));
    let origin = chains.origin(src).wrapping_sub(window.before());
    let Rest { mut position, mut attempts } = rest;
    let mut best = Longest::NONE;
    while position >= first {
        // SAFETY: as many bytes lie before the position, as compared, and it is before `at`.
        let len = unsafe { window.matching::<BACK>(origin.wrapping_add(position as usize)) };
        if len >= WINDOW as u32 {
            return (best, Rest { position, attempts });
        }
        best = best.max(Longest::new(len, position));
        position = chains.before(position);
        attempts -= 1;
        if attempts == 0 {
            break;
        }
    }
    (best, Rest { position, attempts: if position < lowest { 0 } else { attempts } })
}

/// The longest match that is sought, `best` or one with the candidates, of which only those are measured that may have
/// a longer one.
///
/// # Safety
///
/// As for [`Search::longer`], and the chains have the positions before `sought.at`.
#[inline(never)] // as `near`
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn far<const BACK: bool>(
    src: &[u8],
    chains: &Chains,
    sought: &Sought,
    mut best: Longest,
    rest: Rest,
) -> Longest {
    let &Sought { at, low, longest } = sought;
    let Rest { mut position, mut attempts } = rest;
    let limit = src.len() - LAST_LITERALS;
    let lowest = chains.lowest(at);
    // SAFETY: positions are at most `at`, and what is read there ends before the limit.
    let load = |at: usize| unsafe { load32(src, at) };
    let group = load(at);
    // A longer match has these bytes, too.
    let last_of_longer = |longest: usize| (low + longest).saturating_sub(at + 3);
    let mut longest = longest.max(best.len());
    let mut ahead = last_of_longer(longest);
    let mut wanted = load(at + ahead);
    while position >= lowest {
        let there = (position - chains.start) as usize;
        if load(there + ahead) == wanted && load(there) == group {
            // SAFETY: the position lies before `at`, and that before the limit.
            let end = unsafe { extend_long(src, at, at - there, limit) };
            // SAFETY: the same.
            let start = if BACK { unsafe { extend_back(src, at, at - there, low) } } else { at };
            if end - start > longest {
                longest = end - start;
                best = Longest::new(longest as u32, position);
                if longest == limit - low {
                    break;
                }
                ahead = last_of_longer(longest);
                wanted = load(at + ahead);
            }
        }
        position = chains.before(position);
        attempts -= 1;
        if attempts == 0 {
            break;
        }
    }
    best
}
