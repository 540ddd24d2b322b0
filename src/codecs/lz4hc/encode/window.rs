//! How far candidates match around a position, as a vector shows it without guesses.

use crate::codecs::lz4::output::MIN_MATCH;
use crate::cpu::select;
use std::arch::x86_64::*;

/// Bytes that are compared at once, and how many of them may lie before the position.
pub(super) const WINDOW: usize = 32;
const MOST_BEFORE: usize = 16;

/// The bytes around a position at which a match is sought. Made only where the CPU has AVX2 and what comes with it.
#[derive(Clone, Copy)]
pub(super) struct Window {
    bytes: __m256i,
    /// How many of them lie before the position.
    before: usize,
    /// A bit that ends what lies before, where a match begins there at the earliest.
    end: u32,
}

impl Window {
    /// That around `at`. `BACK`: matches may begin before, but not before `low`.
    ///
    /// # Safety
    ///
    /// The CPU has the features, `at + WINDOW <= src.len()`, and `low < at` if `BACK`.
    #[inline(always)]
    pub(super) unsafe fn new<const BACK: bool>(src: &[u8], at: usize, low: usize) -> Window {
        debug_assert!(at + WINDOW <= src.len() && (!BACK || low < at));
        let before = if BACK { (at - low).min(MOST_BEFORE) } else { 0 };
        let end = if BACK && at - low <= MOST_BEFORE { 1 << (WINDOW - 1 - before) } else { 0 };
        // SAFETY: the window lies in the source; the caller guarantees the instructions.
        Window { bytes: unsafe { _mm256_loadu_si256(src.as_ptr().add(at - before).cast()) }, before, end }
    }

    /// How many bytes of it lie before the position.
    #[inline(always)]
    pub(super) fn before(&self) -> usize {
        self.before
    }

    /// The length of the match with a candidate, around which are the bytes at `there`: 0 if it does not have the
    /// shortest length from the position on, and [`WINDOW`] or more if it may go on outside. `BACK` is that of
    /// [`new`](Self::new).
    ///
    /// # Safety
    ///
    /// There are [`WINDOW`] bytes, of which [`before`](Self::before) lie before the candidate.
    #[inline(always)]
    pub(super) unsafe fn matching<const BACK: bool>(&self, there: *const u8) -> u32 {
        // SAFETY: the caller's promise; the CPU has the instructions, as there is a window.
        let differs = unsafe {
            let there = _mm256_loadu_si256(there.cast());
            !_mm256_movemask_epi8(_mm256_cmpeq_epi8(self.bytes, there)) as u32 // 32 bits
        };
        let ahead = (differs >> self.before).trailing_zeros();
        let behind = if BACK { (differs << (WINDOW - self.before) | self.end).leading_zeros() } else { 0 };
        select(ahead < MIN_MATCH as u32, 0, ahead + behind)
    }
}

/// The longest match so far: its length in the upper half, and its position in the lower, so that of those with the
/// same length the nearest is the largest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Longest(u64);

impl Longest {
    /// None.
    pub(super) const NONE: Longest = Longest(0);

    #[inline(always)]
    pub(super) fn new(len: u32, position: u32) -> Longest {
        Longest(u64::from(len) << 32 | u64::from(position))
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    pub(super) fn position(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;

    /// The length of the match of 60 with 160 in bytes that are the same except for two; 0 if those before or after are
    /// too few.
    fn matching<const BACK: bool>(low: usize, unlike: [usize; 2]) -> u32 {
        let mut src: Vec<u8> = (0..100).chain(0..100).collect();
        unlike.iter().for_each(|&at| src[at] ^= 1);
        // SAFETY: the caller saw that the CPU has the features; all of the bytes lie in the source.
        unsafe {
            let window = Window::new::<BACK>(&src, 160, low);
            window.matching::<BACK>(src.as_ptr().add(60 - window.before()))
        }
    }

    #[test]
    fn bytes_are_counted_up_to_where_the_match_ends() {
        if !cpu::has_avx2() {
            return;
        }
        for end in 0..32 {
            let ahead = if end < 4 { 0 } else { end as u32 };
            assert_eq!(matching::<false>(160, [60 + end, 199]), ahead);
            if end >= 16 {
                continue;
            }
            for begin in 0..15 {
                let whole = if end < 4 { 0 } else { end + begin } as u32;
                assert_eq!(matching::<true>(100, [60 + end, 59 - begin]), whole, "from -{begin} to {end}");
                if begin > 0 {
                    let reached = matching::<true>(160 - begin, [60 + end, 0]);
                    assert_eq!(reached, whole, "from -{begin} at the earliest to {end}");
                }
            }
        }
    }

    #[test]
    fn what_may_go_on_outside_is_told_from_what_does_not() {
        if !cpu::has_avx2() {
            return;
        }
        assert!(matching::<false>(160, [99, 0]) >= 32, "ahead");
        assert!(matching::<true>(100, [80, 0]) >= 32, "before, and ahead");
        assert!(matching::<true>(100, [65, 0]) >= 32, "before");
        assert_eq!(matching::<true>(144, [65, 0]), 16 + 5, "it begins with the window");
        assert!(matching::<true>(143, [65, 0]) >= 32, "it may begin one before");
    }
}
