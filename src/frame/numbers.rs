//! Which numbers the files of new chunks get, in sparse frames.
//!
//! They stay small, since the C library refuses frames with large ones. A chunk that is replaced again and again goes
//! through many numbers before one comes back. So a reader without a lock that finds the same number in the index
//! before and after it has read the file has read the right version.

#![forbid(unsafe_code)]

use super::offsets::Index;
use crate::error::Result;
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::memory;

/// When the C library opens a frame, it takes numbers of files for positions, after each of which this many bytes must
/// follow.
pub(super) const LEAST_AHEAD: u64 = EXTENDED_HEADER_LENGTH as u64; // widening

/// How many numbers there are at least for new versions of chunks, beside those in use: so many changes pass before a
/// chunk has the same number again.
const VERSIONS: usize = 32;

/// Chooses numbers for the new files of one change.
pub(super) struct FreeIds {
    /// How many files are new.
    count: usize,
    /// One more than the largest number in use, if it was needed.
    next: Option<u64>,
    /// Which of the smallest numbers are in use, if that was needed.
    used: Option<Bits>,
    /// Where to look for a number for a new version.
    at: usize,
    /// No smaller number is free.
    low: usize,
}

/// A number of flags.
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, at: u64) {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// The first flag from `at` on that is not set.
    fn first_unset(&self, at: usize) -> Option<usize> {
        let mut nword = at / 64;
        let mut unset = !*self.0.get(nword)? & (u64::MAX << (at % 64));
        while unset == 0 {
            nword += 1;
            unset = !*self.0.get(nword)?;
        }
        Some(64 * nword + usize::try_from(unset.trailing_zeros()).unwrap_or(0))
    }
}

impl FreeIds {
    /// For `count` new files.
    pub(super) fn new(count: usize) -> FreeIds {
        FreeIds { count, next: None, used: None, at: 0, low: 0 }
    }

    /// Takes a number for a chunk that gets the place of the one in file `before`, if any; `cbytes` is what all chunks
    /// take then. In use are the numbers in `index`, which is the same each time, and those that were taken `since`.
    ///
    /// It is one more than the largest, as in the C library. But that writes the new version of a chunk to the same
    /// file, and it does not open frames with numbers larger than `cbytes - 32`, however they came about. So new
    /// versions get small numbers in turn, and if the next number is large, the smallest free one is taken.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn take(
        &mut self,
        before: Option<u64>,
        (index, since): (&Index, &[u64]),
        cbytes: u64,
    ) -> Result<u64> {
        let id = match before {
            Some(before) => self.next_version(before, (index, since), cbytes)?,
            None => {
                let all = || index.stored().chain(since.iter().copied());
                let next = *self.next.get_or_insert_with(|| all().max().map_or(0, |id| id + 1));
                let many = (index.len() + self.count + VERSIONS) as u64; // widening
                let fits = next < many && (next + LEAST_AHEAD <= cbytes || next < 2);
                if fits { next } else { self.smallest((index, since))? }
            }
        };
        if let Some(next) = &mut self.next {
            *next = (*next).max(id + 1);
        }
        if let Some(used) = &mut self.used {
            used.set(id);
        }
        Ok(id)
    }

    fn next_version(&mut self, before: u64, all: (&Index, &[u64]), cbytes: u64) -> Result<u64> {
        let end = usize::try_from(cbytes.saturating_sub(LEAST_AHEAD - 1)).unwrap_or(usize::MAX);
        let start = usize::try_from(before).map_or(end, |before| before.saturating_add(1)).max(self.at);
        let found = self.used(all)?.first_unset(start).filter(|&id| id < end);
        self.at = found.map_or(end, |id| id + 1).max(start);
        found.map_or_else(|| self.smallest(all), |id| Ok(id as u64)) // widening
    }

    fn smallest(&mut self, all: (&Index, &[u64])) -> Result<u64> {
        let low = self.low;
        self.low = self.used(all)?.first_unset(low).expect("more flags than numbers in use");
        Ok(self.low as u64) // widening
    }

    /// Which numbers are in use.
    fn used(&mut self, (index, since): (&Index, &[u64])) -> Result<&Bits> {
        if self.used.is_none() {
            let len = index.len() + self.count + VERSIONS;
            let mut used = Bits(memory::filled(0, len.div_ceil(64))?);
            index.stored().chain(since.iter().copied()).for_each(|id| used.set(id));
            self.used = Some(used);
        }
        Ok(self.used.as_ref().expect("made above"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(ids: impl IntoIterator<Item = i64>) -> Index {
        Index::of(ids.into_iter().collect()).unwrap()
    }

    #[test]
    fn new_chunks_count_on_until_the_number_is_too_large() {
        let taken = |ids: &[i64], cbytes| {
            FreeIds::new(1).take(None, (&index(ids.iter().copied()), &[]), cbytes).unwrap()
        };
        assert_eq!((taken(&[], 40), taken(&[0], 40), taken(&[7, 2], 1000)), (0, 1, 8));
        assert_eq!((taken(&[7, 2], 40), taken(&[7, 2], 39), taken(&[0, 1, 2], 0)), (8, 0, 3));
        assert_eq!((taken(&[900, 0, -3], 1000), taken(&[i64::from(u32::MAX)], u64::MAX)), (1, 0));
    }

    #[test]
    fn new_versions_get_all_small_numbers_in_turn() {
        for cbytes in [u64::MAX, 1000] {
            // Another chunk has a number in between.
            let mut id = 0;
            let mut seen = Vec::new();
            for _ in 0..200 {
                let index = index([40, i64::try_from(id).unwrap()]);
                id = FreeIds::new(1).take(Some(id), (&index, &[]), cbytes).unwrap();
                assert!(id < 64 && id != 40);
                seen.push(id);
            }
            assert!((0..seen.len() - VERSIONS).all(|i| !seen[i + 1..][..VERSIONS].contains(&seen[i])));
        }
    }

    #[test]
    fn numbers_taken_together_differ() {
        for (n, cbytes) in [(1, 33), (5, 200), (300, 10_500), (300, 100_000), (5000, u64::MAX)] {
            let old = index((0..n).rev());
            let n = usize::try_from(n).unwrap();
            let mut free = FreeIds::new(n);
            let mut made = Vec::new();
            for i in 0..n {
                // Every third one is no new version.
                let before = (i % 3 > 0).then_some((n - 1 - i) as u64);
                let id = free.take(before, (&old, &made), cbytes).unwrap();
                assert!(id >= n as u64 && id + 32 <= cbytes.max(2 * n as u64 + 32), "{n}: {id}");
                made.push(id);
            }
            made.sort_unstable();
            made.dedup();
            assert_eq!(made.len(), n);
        }
    }
}
