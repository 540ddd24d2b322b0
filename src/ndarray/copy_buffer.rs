//! Copies of boxes between buffers in which their rows have different distances.

use super::shape::Extents;
use crate::chunk::DisjointParts;
use crate::copy;
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::geometry::MAX_DIM;
use crate::pages;
use std::ops::Range;

/// One loop of a copy: how often, and the distances in bytes in both buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Loop {
    count: usize,
    src: usize,
    dst: usize,
}

impl Loop {
    /// Calls `copy` with where each round begins in both buffers.
    ///
    /// # Safety
    ///
    /// All rounds begin inside of the buffers, or at their end.
    #[inline(always)]
    unsafe fn for_each(self, src: *const u8, dst: *mut u8, mut copy: impl FnMut(*const u8, *mut u8)) {
        for i in 0..self.count {
            // SAFETY: the caller's promise.
            let (src, dst) = unsafe { (src.add(i * self.src), dst.add(i * self.dst)) };
            copy(src, dst);
        }
    }
}

/// How a box lies in two buffers: loops around runs of consecutive bytes. Dimensions that are consecutive in both
/// buffers are one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxCopy {
    loops: [Loop; MAX_DIM],
    nloops: usize,
    /// Consecutive bytes; 0 for an empty box.
    run: usize,
    /// Whether the destination is so large that it does not stay in the cache.
    past_cache: bool,
}

/// Fills bytes of the destination with runs of the source: the offset of the first one there, and the distance from
/// each to the next.
type PutRuns<'a> = dyn FnMut((usize, usize), &mut [u8]) -> Result<()> + 'a;

/// How many rows ahead of the one in use are brought into the cache, and how much of each, in bytes.
const ROWS_AHEAD: usize = 4;
/// See [`ROWS_AHEAD`].
const PREFETCHED: usize = 2048;

/// Up to this many bytes, rows take less time to copy than a call of a function.
const MIDDLE_ROW: usize = 8 * PIECE;
/// What is copied of these rows at once, in bytes.
const PIECE: usize = 32;

/// Rows of at least this many bytes can be written past the cache.
const LONG_ROW: usize = 256;

const TOO_LARGE: Error = Error::new(ErrorKind::InvalidParam, "box larger than memory");

impl BoxCopy {
    /// A box of one item of `itemsize` bytes.
    #[inline]
    pub(crate) fn of_item(itemsize: usize) -> BoxCopy {
        BoxCopy { loops: [Loop::default(); MAX_DIM], nloops: 0, run: itemsize, past_cache: false }
    }

    /// Makes it a box of `extents` items; the distances in the two buffers are in bytes.
    ///
    /// A method on a copy that exists, not a constructor: a result that may fail is moved once more, which takes longer
    /// than all the rest.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for boxes larger than memory.
    #[inline]
    pub(crate) fn extend(&mut self, extents: &[u64], src: &Extents, dst: &Extents) -> Result<()> {
        for (i, &count) in extents.iter().enumerate().rev() {
            self.repeat(count, src[i], dst[i])?;
        }
        Ok(())
    }

    /// Makes it a box of `count` times the present one, at these distances in bytes: at most [`MAX_DIM`] times.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for boxes larger than memory.
    #[inline]
    pub(crate) fn repeat(&mut self, count: u64, src: u64, dst: u64) -> Result<()> {
        if count == 1 || self.run == 0 {
            return Ok(());
        }
        if count == 0 {
            (self.nloops, self.run) = (0, 0);
            return Ok(());
        }
        let number = |n: u64| usize::try_from(n).map_err(|_| TOO_LARGE);
        let (count, src, dst) = (number(count)?, number(src)?, number(dst)?);
        if self.nloops == 0 && (src, dst) == (self.run, self.run) {
            self.run = self.run.checked_mul(count).ok_or(TOO_LARGE)?;
            return Ok(());
        }
        if let Some(inner) = self.loops[..self.nloops].last_mut() {
            let whole = |stride: usize| stride.checked_mul(inner.count);
            if (whole(inner.src), whole(inner.dst)) == (Some(src), Some(dst)) {
                inner.count = inner.count.checked_mul(count).ok_or(TOO_LARGE)?;
                return Ok(());
            }
        }
        self.loops[self.nloops] = Loop { count, src, dst };
        self.nloops += 1;
        Ok(())
    }

    /// Has rows written past the cache if they are long. A large destination gains from that, since its old content
    /// need not be read first.
    pub(crate) fn write_past_cache(&mut self) {
        self.past_cache = self.run >= LONG_ROW;
    }

    /// The number of bytes, if they are consecutive in both buffers.
    pub(crate) fn single_run(&self) -> Option<usize> {
        (self.nloops == 0).then_some(self.run)
    }

    /// Bytes from the first one of the box to the last one: in the source, in the destination.
    fn span(&self) -> Option<(usize, usize)> {
        self.loops[..self.nloops].iter().try_fold((self.run, self.run), |(src, dst), step| {
            let last = step.count - 1;
            let src = src.checked_add(last.checked_mul(step.src)?)?;
            Some((src, dst.checked_add(last.checked_mul(step.dst)?)?))
        })
    }

    /// Copies the box, which starts at the front of both buffers.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if it does not lie in them.
    pub(crate) fn copy(&self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        self.check(src.len(), dst.len())?;
        // SAFETY: the box lies in both buffers, and a shared and an exclusive slice do not overlap.
        unsafe { self.copy_raw(self.nloops, src.as_ptr(), dst.as_mut_ptr()) };
        Ok(())
    }

    /// As [`copy`](Self::copy), into a buffer at `at` of which other threads write other parts.
    ///
    /// # Safety
    ///
    /// Nobody else touches the bytes of the box meanwhile.
    pub(crate) unsafe fn copy_shared(&self, src: &[u8], dst: &DisjointParts<'_>, at: usize) -> Result<()> {
        self.check(src.len(), dst.len().saturating_sub(at))?;
        if self.run == 0 {
            // `at` may be anywhere.
            return Ok(());
        }
        // SAFETY: the box lies in both buffers. The destination is borrowed exclusively by its owner, so `src` is no
        // part of it, and nobody else touches these bytes, by the caller's promise.
        unsafe { self.copy_raw(self.nloops, src.as_ptr(), dst.address().add(at)) };
        if self.past_cache {
            pages::end_past_cache();
        }
        Ok(())
    }

    /// Calls `put` for all runs, for those at once that are consecutive in the destination, where the box begins at
    /// `at`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the box does not lie in the destination, and those of `put`.
    ///
    /// # Safety
    ///
    /// As [`copy_shared`](Self::copy_shared).
    pub(crate) unsafe fn for_each_run(
        &self,
        dst: &DisjointParts<'_>,
        at: usize,
        put: &mut PutRuns<'_>,
    ) -> Result<()> {
        self.check(usize::MAX, dst.len().saturating_sub(at))?;
        if self.run == 0 {
            return Ok(());
        }
        // SAFETY: the box lies in the destination; the rest is the caller's promise.
        unsafe { self.runs(self.nloops, dst, (0, at), put) }
    }

    /// Calls `put` for the runs of the loops below `level`, whose first one begins at `from` bytes of the source and at
    /// `at` of the destination.
    ///
    /// # Safety
    ///
    /// The box lies in the destination, and nobody else touches its bytes there meanwhile.
    unsafe fn runs(
        &self,
        level: usize,
        dst: &DisjointParts<'_>,
        (from, at): (usize, usize),
        put: &mut PutRuns<'_>,
    ) -> Result<()> {
        let Some(outer) = level.checked_sub(1) else {
            // SAFETY: the caller's promise.
            return put((from, self.run), unsafe { dst.part(at, self.run) });
        };
        let step = self.loops[outer];
        if outer == 0 && step.dst == self.run {
            // SAFETY: as above.
            return put((from, step.src), unsafe { dst.part(at, step.count * self.run) });
        }
        for i in 0..step.count {
            // SAFETY: as above.
            unsafe { self.runs(outer, dst, (from + i * step.src, at + i * step.dst), put)? };
        }
        Ok(())
    }

    /// Calls `put` for each run of consecutive bytes of `src`, where the box starts at the front, with its distance
    /// from the start of the box in the destination.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the box does not lie in `src`.
    pub(crate) fn for_each_row(&self, src: &[u8], put: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        self.check(src.len(), usize::MAX)?;
        if self.run > 0 {
            self.rows(self.nloops, src, 0, put);
        }
        Ok(())
    }

    /// Calls `visit` with the place of each run in the source, where the box begins at `at`.
    pub(crate) fn for_each_source(&self, at: usize, visit: &mut dyn FnMut(Range<usize>)) {
        self.sources(self.nloops, at, visit);
    }

    fn sources(&self, level: usize, at: usize, visit: &mut dyn FnMut(Range<usize>)) {
        let Some(outer) = level.checked_sub(1) else { return visit(at..at + self.run) };
        let step = self.loops[outer];
        (0..step.count).for_each(|i| self.sources(outer, at + i * step.src, visit));
    }

    fn rows(&self, level: usize, src: &[u8], at: usize, put: &mut dyn FnMut(usize, &[u8])) {
        let Some(outer) = level.checked_sub(1) else { return put(at, &src[..self.run]) };
        let step = self.loops[outer];
        for i in 0..step.count {
            if outer == 0 {
                pages::prefetch(
                    src.as_ptr().wrapping_add((i + ROWS_AHEAD) * step.src),
                    self.run.min(PREFETCHED),
                );
            }
            self.rows(outer, &src[i * step.src..], at + i * step.dst, put);
        }
    }

    /// The number of runs.
    pub(crate) fn nruns(&self) -> usize {
        self.loops[..self.nloops].iter().map(|step| step.count).product()
    }

    /// Whether rows are written past the cache.
    pub(crate) fn is_past_cache(&self) -> bool {
        self.past_cache
    }

    /// Length of the runs in bytes.
    pub(crate) fn run(&self) -> usize {
        self.run
    }

    fn check(&self, src_len: usize, dst_len: usize) -> Result<()> {
        let inside = self.span().is_some_and(|(src, dst)| src <= src_len && dst <= dst_len);
        require(inside, "box outside of its buffer")
    }

    /// Copies the loops below `level`.
    ///
    /// # Safety
    ///
    /// The box lies in both buffers, which do not overlap.
    unsafe fn copy_raw(&self, level: usize, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller's promise: what is below this level lies in both buffers, wherever the loop begins.
        unsafe {
            match level {
                0 if self.past_cache => pages::copy_past_cache(src, dst, self.run),
                0 => copy::copy_raw(src, dst, self.run),
                1 => self.copy_rows(src, dst),
                _ => self.loops[level - 1].for_each(src, dst, |src, dst| self.copy_raw(level - 1, src, dst)),
            }
        }
    }

    /// Copies the runs of the innermost loop.
    ///
    /// # Safety
    ///
    /// As [`copy_raw`](Self::copy_raw); there is a loop.
    unsafe fn copy_rows(&self, src: *const u8, dst: *mut u8) {
        let step = self.loops[0];
        // SAFETY: the caller's promise: all rows lie in both buffers.
        unsafe {
            match self.run {
                run if self.past_cache => {
                    step.for_each(src, dst, |src, dst| pages::copy_past_cache(src, dst, run));
                }
                1 => rows::<1>(step, src, dst),
                2 => rows::<2>(step, src, dst),
                4 => rows::<4>(step, src, dst),
                8 => rows::<8>(step, src, dst),
                16 => rows::<16>(step, src, dst),
                32 => rows::<32>(step, src, dst),
                run @ 33..=MIDDLE_ROW => match run.div_ceil(PIECE) {
                    2 => middle_rows::<2>(step, run, src, dst),
                    3 => middle_rows::<3>(step, run, src, dst),
                    4 => middle_rows::<4>(step, run, src, dst),
                    5 => middle_rows::<5>(step, run, src, dst),
                    6 => middle_rows::<6>(step, run, src, dst),
                    7 => middle_rows::<7>(step, run, src, dst),
                    _ => middle_rows::<8>(step, run, src, dst),
                },
                run => step.for_each(src, dst, |src, dst| copy::copy_raw(src, dst, run)),
            }
        }
    }

    /// Copies the box between raw buffers, for C callers.
    ///
    /// # Safety
    ///
    /// The box lies in both buffers, and they do not overlap.
    pub(crate) unsafe fn copy_between(&self, src: *const u8, dst: *mut u8) {
        if self.run > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.copy_raw(self.nloops, src, dst) };
        }
    }
}

/// Copies rows of `len` bytes in `N` pieces, of which the last one may overlap the one before.
///
/// # Safety
///
/// As [`BoxCopy::copy_rows`]; `len` is at most `N * PIECE`, and not below that by a piece or more.
unsafe fn middle_rows<const N: usize>(step: Loop, len: usize, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller's promise; all pieces are inside the row; arrays of bytes have no alignment.
    unsafe {
        step.for_each(src, dst, |src, dst| {
            for n in 0..N {
                let at = if n == N - 1 { len - PIECE } else { n * PIECE };
                let piece: [u8; PIECE] = src.add(at).cast::<[u8; PIECE]>().read();
                dst.add(at).cast::<[u8; PIECE]>().write(piece);
            }
        });
    }
}

/// Copies rows of `N` bytes.
///
/// # Safety
///
/// As [`BoxCopy::copy_rows`].
unsafe fn rows<const N: usize>(step: Loop, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller's promise; arrays of bytes have no alignment.
    unsafe {
        step.for_each(src, dst, |src, dst| dst.cast::<[u8; N]>().write(src.cast::<[u8; N]>().read()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ndarray::shape::{dot, strides};

    /// A box in two C-order buffers: the copy, and where it starts in both, in bytes.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for boxes larger than memory.
    fn between(
        itemsize: usize,
        extents: &[u64],
        (src_shape, src_start): (&[u64], &[u64]),
        (dst_shape, dst_start): (&[u64], &[u64]),
    ) -> Result<(BoxCopy, usize, usize)> {
        let unit = itemsize as u64; // widening
        let (src, dst) = (strides(src_shape, unit), strides(dst_shape, unit));
        let number = |n: u64| usize::try_from(n).map_err(|_| TOO_LARGE);
        let mut copy = BoxCopy::of_item(itemsize);
        copy.extend(extents, &src, &dst)?;
        Ok((copy, number(dot(src_start, &src))?, number(dot(dst_start, &dst))?))
    }

    #[test]
    fn two_boxes_fill_a_cube() {
        let mut dst = [0u8; 8];
        let put = |src: &[u8], start: &[u64], to: &[u64], dst: &mut [u8]| {
            let (copy, from, at) = between(1, &[2, 2, 1], (&[3, 3, 1], start), (&[2, 2, 2], to)).unwrap();
            copy.copy(&src[from..], &mut dst[at..]).unwrap();
        };
        put(&[0, 0, 0, 0, 0, 2, 0, 4, 6], &[1, 1, 0], &[0, 0, 0], &mut dst);
        put(&[1, 3, 0, 5, 7, 0, 0, 0, 0], &[0, 0, 0], &[0, 0, 1], &mut dst);
        assert_eq!(dst, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn rows_of_every_length_are_copied() {
        for run in (1..=300).chain([4095, 4096]) {
            let (rows, wide) = (3, run + 7);
            let src: Vec<u8> = (0..rows * wide).map(|i| (i % 251) as u8 + 1).collect();
            let len = run as u64;
            let (copy, from, at) =
                between(1, &[3, len], (&[3, len + 7], &[0, 2]), (&[3, len + 1], &[0, 1])).unwrap();
            let mut dst = vec![0; rows * (run + 1)];
            copy.copy(&src[from..], &mut dst[at..]).unwrap();
            for (row, dst) in dst.chunks(run + 1).enumerate() {
                assert_eq!((dst[0], &dst[1..]), (0, &src[row * wide + 2..][..run]), "rows of {run} bytes");
            }
        }
    }

    #[test]
    fn consecutive_dimensions_are_one_run() {
        let (copy, _, _) = between(4, &[3, 5, 7], (&[3, 5, 7], &[0; 3]), (&[9, 5, 7], &[0; 3])).unwrap();
        assert_eq!(copy.single_run(), Some(4 * 3 * 5 * 7));
        let (copy, _, _) = between(4, &[3, 4, 7], (&[3, 5, 7], &[0; 3]), (&[9, 5, 7], &[0; 3])).unwrap();
        assert_eq!((copy.nloops, copy.run), (1, 4 * 4 * 7));
        let (copy, _, _) = between(4, &[3, 0], (&[3, 5], &[0; 2]), (&[9, 5], &[0; 2])).unwrap();
        assert_eq!(copy.single_run(), Some(0));
    }

    #[test]
    fn a_box_larger_than_memory_is_refused() {
        let huge = [1 << 32, 1 << 32];
        let none = [0; MAX_DIM];
        assert!(BoxCopy::of_item(2).extend(&huge, &strides(&huge, 2), &strides(&huge, 2)).is_err());
        assert!(BoxCopy::of_item(2).extend(&huge, &none, &none).is_err());
    }

    #[test]
    fn a_box_outside_of_its_buffer_is_refused() {
        let (copy, _, _) = between(2, &[2, 2], (&[2, 3], &[0; 2]), (&[2, 2], &[0; 2])).unwrap();
        assert!(copy.copy(&[0; 10], &mut [0; 8]).is_ok());
        assert!(copy.copy(&[0; 9], &mut [0; 8]).is_err());
        assert!(copy.copy(&[0; 10], &mut [0; 7]).is_err());
    }

    #[test]
    fn an_empty_box_may_be_anywhere() {
        let (copy, _, _) = between(2, &[2, 0], (&[2, 3], &[0; 2]), (&[2, 2], &[0; 2])).unwrap();
        let mut dst = [0; 8];
        let dst = DisjointParts::new(&mut dst);
        for at in [0, 8, 9, usize::MAX] {
            // SAFETY: nobody else has the buffer.
            assert!(unsafe { copy.copy_shared(&[], &dst, at) }.is_ok());
        }
    }
}
