//! Matches of runs of one byte, at levels where the reference skips parts of the earlier runs that it compares with:
//! only there does it matter at which positions of a run it looks.

use super::{Match, Sought, longer_match};
use crate::codecs::agree::{extend_back, extend_long};
use crate::codecs::lz4::output::{LAST_LITERALS, MAX_DISTANCE};
use crate::codecs::mem::load32;

/// Whether four equal bytes begin at `at`.
///
/// # Safety
///
/// `at + 4 <= src.len()`.
#[inline(always)]
pub(super) unsafe fn is_run(src: &[u8], at: usize) -> bool {
    // SAFETY: the caller's promise.
    let group = unsafe { load32(src, at) };
    group == group.rotate_left(8)
}

/// A run, from the first byte that may be in a match to the one after the last that may be.
struct Run {
    start: usize,
    end: usize,
}

impl Run {
    /// The run around `at`, from `lowest` to `limit`.
    ///
    /// # Safety
    ///
    /// `lowest <= at < limit <= src.len()`.
    #[inline(always)]
    unsafe fn around(src: &[u8], at: usize, lowest: usize, limit: usize) -> Run {
        // SAFETY: the caller's promise. A run is a match with the bytes one before.
        unsafe {
            Run {
                start: extend_back(src, at + 1, 1, lowest + 1) - 1,
                end: extend_long(src, at + 1, 1, limit),
            }
        }
    }
}

/// A candidate among those of its bucket, which are all positions of a run but the last three.
pub(super) trait Candidate {
    /// Where it is; nothing after the last one.
    fn at(&self) -> Option<usize>;

    /// Goes on to the next one, which lies before.
    fn go_on(&mut self);

    /// Goes on to the one that lies `n` before, in the same run.
    fn go_back(&mut self, n: usize);
}

/// The match that is sought, of a run, from this candidate on. Where candidates lie in another run, most of them are
/// passed: to the one from which as many bytes follow as here, or else to the first.
///
/// # Safety
///
/// As for [`Search::longer`](super::Search::longer), [`is_run`] at `sought.at`, and candidates lie before that.
#[inline(always)]
pub(super) unsafe fn longest(
    src: &[u8],
    sought: Sought,
    attempts: u16,
    mut candidate: impl Candidate,
) -> Option<Match> {
    let Sought { at, low, mut longest } = sought;
    let limit = src.len() - LAST_LITERALS;
    let lowest = at.saturating_sub(MAX_DISTANCE);
    // SAFETY: `at` is before the limit.
    let wanted = unsafe { extend_long(src, at + 1, 1, limit) } - at;
    let mut found = None;
    for _ in 0..attempts {
        let Some(position) = candidate.at().filter(|&position| position >= lowest) else {
            break;
        };
        if longest == limit - low {
            break;
        }
        // SAFETY: what is sought is not as long as it may be, and the position lies before `at`.
        if let Some(longer) = unsafe { longer_match(src, Sought { at, low, longest }, position) } {
            longest = longer.len;
            found = Some(longer);
        }
        // SAFETY: the position lies before `at`.
        if position == lowest || unsafe { load32(src, position - 1) != load32(src, at) } {
            candidate.go_on();
            continue;
        }
        // SAFETY: the position lies before the limit, and after `lowest`.
        let run = unsafe { Run::around(src, position - 1, lowest, limit) };
        let (whole, behind) = (run.end - run.start, run.end - (position - 1));
        if whole >= wanted && behind <= wanted {
            candidate.go_back(position - (run.end - wanted));
            continue;
        }
        candidate.go_back(position - run.start);
        if low == at {
            let len = whole.min(wanted);
            if len > longest {
                longest = len;
                found = Some(Match { at, len, distance: at - run.start });
            }
            candidate.go_on();
        }
    }
    found
}
