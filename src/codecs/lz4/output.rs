//! Sequences of the LZ4 format on their way out: runs of literals and matches, written where they fit.
//!
//! Whether a stream fits that ends just before the end of the destination is decided as in the reference
//! implementation, whose two encoders differ there.

use crate::codecs::mem::{copy, store, store8};

/// The last bytes of the source are literals.
pub(in crate::codecs) const LAST_LITERALS: usize = 5;
/// Matches start at least this far before the end of the source.
pub(in crate::codecs) const LAST_START: usize = 12;
/// Shortest match.
pub(in crate::codecs) const MIN_MATCH: usize = 4;
/// Farthest match.
pub(in crate::codecs) const MAX_DISTANCE: usize = 65_535;
/// Runs of literals, and matches beyond the shortest, of at least this length go on after the token.
pub(in crate::codecs) const LONG: usize = 15;
/// Bytes that sequences may write, or be copied from, past their end.
pub(in crate::codecs) const SLACK: usize = 32;

/// The stream being written.
pub(in crate::codecs) struct Output<'a> {
    pub(in crate::codecs) src: &'a [u8],
    pub(in crate::codecs) dest: &'a mut [u8],
    /// Bytes written.
    pub(in crate::codecs) at: usize,
    /// Added to a match's length beyond the shortest before dividing by 255, to count the bytes that it takes after the
    /// distance: 240 gives the exact count, 0 one too few for some lengths, as the two encoders of the reference do.
    rounding: usize,
}

impl<'a> Output<'a> {
    /// An empty stream of the fast encoder.
    pub(super) fn fast(src: &'a [u8], dest: &'a mut [u8]) -> Output<'a> {
        Output { src, dest, at: 0, rounding: 240 }
    }

    /// An empty stream of the high-compression encoder.
    #[cfg(target_arch = "x86_64")] // elsewhere it is the reference's
    pub(in crate::codecs) fn high(src: &'a [u8], dest: &'a mut [u8]) -> Output<'a> {
        Output { src, dest, at: 0, rounding: 0 }
    }

    /// Writes a match without literals before it. `None` if it does not fit.
    #[inline(always)]
    pub(in crate::codecs) fn follower(&mut self, len: usize, distance: usize) -> Option<()> {
        let more = len - MIN_MATCH;
        if self.at + SLACK > self.dest.len() {
            return self.long_sequence(0, 0, more, distance);
        }
        let bytes = (more.min(LONG) | distance << 8) as u32;
        // SAFETY: there are SLACK bytes.
        unsafe { store(self.dest, self.at, bytes.to_le_bytes()) };
        self.at += 3;
        if more >= LONG { self.put_more_of_match(more) } else { Some(()) }
    }

    /// Writes the literals `from..to` of the source and the match after them. `None` if they do not fit.
    #[inline(always)]
    pub(in crate::codecs) fn sequence(
        &mut self,
        from: usize,
        to: usize,
        len: usize,
        distance: usize,
    ) -> Option<()> {
        let run = to - from;
        let more = len - MIN_MATCH;
        if run >= LONG || self.at + 2 * SLACK > self.dest.len() || from + SLACK > self.src.len() {
            return self.long_sequence(from, to, more, distance);
        }
        let token = (run << 4 | more.min(LONG)) as u8;
        // SAFETY: there are SLACK bytes.
        unsafe { store8(self.dest, self.at, token) };
        // SAFETY: there are SLACK bytes at both places.
        unsafe { copy::<16>(self.src, from, self.dest, self.at + 1) };
        self.at += 1 + run;
        // SAFETY: the same.
        unsafe { self.put_match(more, distance) }
    }

    /// Writes what follows the literals of a sequence. `None` if it does not fit.
    ///
    /// # Safety
    ///
    /// There are two bytes for the distance.
    #[inline(always)]
    unsafe fn put_match(&mut self, more: usize, distance: usize) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe { store(self.dest, self.at, (distance as u16).to_le_bytes()) };
        self.at += 2;
        if more >= LONG { self.put_more_of_match(more) } else { Some(()) }
    }

    /// [`sequence`](Self::sequence) of any length anywhere.
    #[inline(never)]
    fn long_sequence(&mut self, from: usize, to: usize, more: usize, distance: usize) -> Option<()> {
        let run = to - from;
        let fits = self.at + run + 2 * SLACK <= self.dest.len() && to + SLACK <= self.src.len();
        if run < LONG + 255 && fits {
            // SAFETY: the sums were just compared; and after the run SLACK bytes follow.
            return unsafe {
                self.put_run(from, run, more);
                self.put_match(more, distance)
            };
        }
        // As the reference counts, which wants room for a distance, a token and the last literals.
        self.fits(1 + run + run / 255 + 3 + LAST_LITERALS)?;
        let token = (run.min(LONG) << 4 | more.min(LONG)) as u8;
        self.put(&[token])?;
        if run >= LONG {
            self.put_more(run)?;
        }
        self.put_literals(from, to)?;
        self.put(&(distance as u16).to_le_bytes())?;
        if more >= LONG { self.put_more_of_match(more) } else { self.fits(1 + LAST_LITERALS) }
    }

    /// Writes the token of a sequence and its literals, which take one byte for their number at most.
    ///
    /// # Safety
    ///
    /// SLACK bytes follow the literals in `src`, and twice as many in `dest`.
    #[inline(always)]
    unsafe fn put_run(&mut self, from: usize, run: usize, more: usize) {
        let token = (run.min(LONG) << 4 | more.min(LONG)) as u8;
        // SAFETY: the caller's promise. The second byte is overwritten where there is none.
        unsafe { store(self.dest, self.at, [token, run.wrapping_sub(LONG) as u8]) };
        self.at += 1 + usize::from(run >= LONG);
        for done in (0..run).step_by(SLACK) {
            // SAFETY: the caller's promise: at most SLACK bytes are copied past the end.
            unsafe { copy::<SLACK>(self.src, from + done, self.dest, self.at + done) };
        }
        self.at += run;
    }

    /// Writes the last literals, and returns the size of the stream. `None` if they do not fit.
    pub(in crate::codecs) fn finish(mut self, from: usize) -> Option<usize> {
        let run = self.src.len() - from;
        self.fits(1 + run + (run + 240) / 255)?;
        self.put(&[(run.min(LONG) << 4) as u8])?;
        if run >= LONG {
            self.put_more(run)?;
        }
        self.put_literals(from, self.src.len())?;
        Some(self.at)
    }

    /// `None` if there is no room for `len` bytes more.
    #[inline(always)]
    fn fits(&self, len: usize) -> Option<()> {
        (len <= self.dest.len() - self.at).then_some(())
    }

    /// Writes what the length of a match goes on with after the distance. `None` if that and the last literals do not
    /// fit.
    #[inline(always)]
    pub(super) fn put_more_of_match(&mut self, more: usize) -> Option<()> {
        self.fits((more + self.rounding) / 255 + 1 + LAST_LITERALS)?;
        self.put_more(more)
    }

    /// Writes what a length goes on with.
    #[inline(always)]
    fn put_more(&mut self, len: usize) -> Option<()> {
        let rest = len - LONG;
        if rest < 255 {
            *self.dest.get_mut(self.at)? = rest as u8;
            self.at += 1;
            return Some(());
        }
        self.put_far_more(rest)
    }

    #[cold]
    #[inline(never)]
    fn put_far_more(&mut self, rest: usize) -> Option<()> {
        let dest = self.dest.get_mut(self.at..=self.at + rest / 255)?;
        let (last, full) = dest.split_last_mut()?;
        full.fill(255);
        *last = (rest % 255) as u8;
        self.at += rest / 255 + 1;
        Some(())
    }

    fn put_literals(&mut self, from: usize, to: usize) -> Option<()> {
        self.dest.get_mut(self.at..self.at + (to - from))?.copy_from_slice(&self.src[from..to]);
        self.at += to - from;
        Some(())
    }

    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.dest.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }
}
