//! How much memory threads keep from one operation to the next.
//!
//! Fresh memory costs a page fault every 4 kB, so a thread keeps what it worked with. What is small it keeps for good.
//! Of large pieces, all threads together keep no more than a limit: otherwise, in a program with many threads, each
//! would end up with all that its largest operation ever needed.

#![forbid(unsafe_code)]

use crate::cpu;
use crate::fork::Lazy;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pieces of memory up to this size, in bytes, are kept without being counted.
pub(crate) const SMALL: usize = 256 << 10;
/// Pieces larger than this, in bytes, are not kept. A Zstandard context takes 17 MiB for streams of 1 MiB at the
/// highest levels, 33 MiB for 2 MiB.
pub(crate) const LARGEST: usize = 40 << 20;
/// What all that are counted may take together for each processor, in bytes.
const PER_PROCESSOR: usize = 16 << 20;
/// What they may take together with few processors, in bytes.
const LEAST: usize = 64 << 20;

static LIMIT: Lazy<usize> = Lazy::new(|| Box::leak(Box::new(limit(cpu::processors()))));

/// What they may take together with this number of processors.
fn limit(processors: usize) -> usize {
    LEAST.max(PER_PROCESSOR.saturating_mul(processors))
}

/// What they take now.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A piece's share of what is kept. Dropping it makes room for others.
#[derive(Default)]
pub(crate) struct Share(usize);

impl Share {
    /// That of nothing.
    pub(crate) const NONE: Share = Share(0);

    /// Makes this the share of a piece of `nbytes` bytes; returns whether there is room, and the piece may be kept. If
    /// not, it has no share.
    pub(crate) fn resize(&mut self, nbytes: usize) -> bool {
        if self.0 == nbytes {
            return true;
        }
        *self = Share::NONE;
        if nbytes <= SMALL {
            return true;
        }
        let has_room = nbytes <= LARGEST && take_room(&KEPT, nbytes, *LIMIT);
        self.0 = if has_room { nbytes } else { 0 };
        has_room
    }
}

/// Adds `nbytes` to what is kept, unless that would be more than `limit`; returns whether it did.
fn take_room(kept: &AtomicUsize, nbytes: usize, limit: usize) -> bool {
    let with_this = |kept: usize| kept.checked_add(nbytes).filter(|&sum| sum <= limit);
    // As `fetch_update` does, which has another name in newer versions of Rust.
    let mut before = kept.load(Ordering::Relaxed);
    while let Some(sum) = with_this(before) {
        match kept.compare_exchange_weak(before, sum, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => before = now,
        }
    }
    false
}

impl Drop for Share {
    #[inline]
    fn drop(&mut self) {
        if self.0 > 0 {
            KEPT.fetch_sub(self.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_is_always_kept_and_what_is_huge_never() {
        let mut share = Share::NONE;
        assert!(share.resize(0) && share.resize(SMALL));
        assert_eq!(share.0, 0);
        assert!(!share.resize(LARGEST + 1));
        assert_eq!(share.0, 0);
    }

    #[test]
    fn there_is_room_up_to_a_limit() {
        let kept = AtomicUsize::new(0);
        assert!(take_room(&kept, 60, 100) && !take_room(&kept, 41, 100) && take_room(&kept, 40, 100));
        assert!(!take_room(&kept, 1, 100) && !take_room(&kept, usize::MAX, 100));
        assert_eq!(kept.into_inner(), 100);
    }

    #[test]
    fn the_limit_grows_with_the_processors() {
        assert_eq!([1, 4, 5, 16].map(limit), [LEAST, LEAST, 80 << 20, 256 << 20]);
        assert!(limit(256) > limit(255) && limit(1000) >= limit(256));
    }

    #[test]
    fn a_share_follows_the_size_of_its_piece() {
        let mut share = Share::NONE;
        // The rest of the process may have taken all room.
        if share.resize(SMALL + 1) {
            assert_eq!(share.0, SMALL + 1);
            assert!(share.resize(SMALL + 1) && share.resize(SMALL));
        }
        assert_eq!(share.0, 0);
    }
}
