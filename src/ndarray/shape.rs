//! Shapes of an array, its chunks and its blocks, and what follows from them.
//!
//! The array is cut into chunks in C order; edge chunks are padded to a whole chunk, and each chunk to whole blocks.
//! The blocks of a chunk are stored one after the other in C order, and so are the items of a block.

#![forbid(unsafe_code)]

use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::consts::{MAX_BLOCKSIZE, MAX_BUFFERSIZE};
use crate::format::geometry::MAX_DIM;
use crate::format::nd_meta::NdMeta;
use std::borrow::Cow;

/// One number per dimension, slowest dimension first; those after the last dimension do not count.
pub type Extents = [u64; MAX_DIM];

/// The shapes of an array, checked: products fit in 63 bits, those of a chunk or block without padding in 31.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    ndim: usize,
    shape: Extents,
    chunkshape: Extents,
    blockshape: Extents,
    extshape: Extents,
    extchunkshape: Extents,
    nitems: u64,
    extnitems: u64,
    chunknitems: u64,
    blocknitems: u64,
    extchunknitems: u64,
    chunks: Grid,
    blocks: Grid,
}

/// The chunks of an array or the blocks of a chunk, numbered in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Cells in each dimension.
    pub(crate) extents: Extents,
    /// What a step to the next cell of a dimension adds to the number.
    pub(crate) strides: Extents,
}

impl Grid {
    /// The grid of cells of shape `cell` in a box of shape `whole`, whose extents are multiples of theirs.
    fn new(whole: &[u64], cell: &[u64]) -> Grid {
        let mut extents = [1; MAX_DIM];
        for (slot, (whole, &cell)) in extents.iter_mut().zip(whole.iter().zip(cell)) {
            *slot = if *whole == cell { u64::from(cell > 0) } else { whole.checked_div(cell).unwrap_or(0) };
        }
        Grid { extents, strides: strides(&extents[..whole.len()], 1) }
    }
}

fn invalid(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidParam, what)
}

/// The extents of a shape of at most 16 dimensions.
fn unsigned<T: Copy + TryInto<u64>>(shape: &[T]) -> Result<Extents> {
    let mut extents = [1; MAX_DIM];
    for (extent, &given) in extents.iter_mut().zip(shape) {
        *extent = given.try_into().map_err(|_| invalid("negative extent"))?;
    }
    Ok(extents)
}

/// The product of `extents`, none of whose partial products may exceed `max`.
fn product(extents: &[u64], max: u64) -> Result<u64> {
    let too_large = invalid("product of a shape too large");
    let step = |n: u64, &extent: &u64| n.checked_mul(extent).filter(|&n| n <= max).ok_or(too_large);
    extents.iter().try_fold(1, step)
}

/// Strides in items of a C-order buffer of this shape, times `unit`.
pub(crate) fn strides(shape: &[u64], unit: u64) -> Extents {
    let mut strides = [0; MAX_DIM];
    let mut stride = unit;
    for (slot, &extent) in strides[..shape.len()].iter_mut().zip(shape).rev() {
        *slot = stride;
        stride = stride.saturating_mul(extent);
    }
    strides
}

/// Bytes from the first item of a box to the end of its last one, in a buffer with these strides and items of `unit`
/// bytes. `None` if that is more than memory can hold, or the box is empty.
pub(crate) fn strided_len(
    extents: impl IntoIterator<Item = u64>,
    strides: &Extents,
    unit: u64,
) -> Option<usize> {
    let len = extents.into_iter().zip(strides).try_fold(unit, |len, (extent, stride)| {
        len.checked_add(extent.checked_sub(1)?.checked_mul(*stride)?)
    });
    usize::try_from(len?).ok()
}

const I64_MAX: u64 = i64::MAX.unsigned_abs();
const I32_MAX: u64 = i32::MAX.unsigned_abs() as u64; // widening

impl Geometry {
    /// Checks shapes and derives the rest from them. All have the same number of entries.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for negative extents, zeros where there must be none, and products that are too large.
    pub fn new(shape: &[i64], chunkshape: &[i32], blockshape: &[i32]) -> Result<Geometry> {
        let ndim = shape.len();
        let fits = ndim <= MAX_DIM && chunkshape.len() == ndim && blockshape.len() == ndim;
        require(fits, "wrong number of dimensions")?;
        Geometry::of(ndim, unsigned(shape)?, unsigned(chunkshape)?, unsigned(blockshape)?)
    }

    /// As [`new`](Self::new), of shapes whose extents after the last dimension are 1.
    fn of(ndim: usize, shape: Extents, chunkshape: Extents, blockshape: Extents) -> Result<Geometry> {
        let mut own = Geometry {
            ndim,
            shape,
            chunkshape,
            blockshape,
            extshape: [1; MAX_DIM],
            extchunkshape: [1; MAX_DIM],
            nitems: 1,
            extnitems: 1,
            chunknitems: 1,
            blocknitems: 1,
            extchunknitems: 1,
            chunks: Grid { extents: [1; MAX_DIM], strides: [0; MAX_DIM] },
            blocks: Grid { extents: [1; MAX_DIM], strides: [0; MAX_DIM] },
        };
        for i in 0..ndim {
            let (s, c, b) = (shape[i], chunkshape[i], blockshape[i]);
            require(s == 0 || (c > 0 && b > 0), "items without a chunk or block")?;
            require(b > 0 || c == 0, "chunk without a block")?;
            // Where padding would overflow, no other extent, not even 0, makes up for it.
            let can_pad = c == 0 || s % c == 0 || s + c <= I64_MAX;
            require(can_pad, "extent too large for padding")?;
            let round = |n: u64, to: u64| if to == 0 { 0 } else { n.div_ceil(to).saturating_mul(to) };
            own.extshape[i] = round(s, c);
            own.extchunkshape[i] = if c == 0 { 0 } else { round(c, b) };
        }
        own.nitems = product(own.shape(), I64_MAX)?;
        own.extnitems = product(&own.extshape[..ndim], I64_MAX)?;
        own.chunknitems = product(own.chunkshape(), I32_MAX)?;
        own.blocknitems = product(own.blockshape(), I32_MAX)?;
        own.extchunknitems = product(&own.extchunkshape[..ndim], I64_MAX)?;
        own.chunks = Grid::new(own.extshape(), own.chunkshape());
        own.blocks = Grid::new(own.extchunkshape(), own.blockshape());
        Ok(own)
    }

    /// The geometry that a metalayer describes.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_meta(meta: &NdMeta) -> Result<Geometry> {
        Geometry::new(&meta.shape, &meta.chunkshape, &meta.blockshape)
    }

    /// The same chunks and blocks for an array of another shape.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_shape(&self, shape: &[i64]) -> Result<Geometry> {
        require(shape.len() == self.ndim, "wrong number of dimensions")?;
        Geometry::of(self.ndim, unsigned(shape)?, self.chunkshape, self.blockshape)
    }

    /// Number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Items of the array in each dimension.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape[..self.ndim]
    }

    /// Items of a chunk in each dimension, without padding to blocks.
    #[must_use]
    pub fn chunkshape(&self) -> &[u64] {
        &self.chunkshape[..self.ndim]
    }

    /// Items of a block in each dimension.
    #[must_use]
    pub fn blockshape(&self) -> &[u64] {
        &self.blockshape[..self.ndim]
    }

    /// The shape, padded to whole chunks.
    #[must_use]
    pub fn extshape(&self) -> &[u64] {
        &self.extshape[..self.ndim]
    }

    /// The shape of a chunk, padded to whole blocks.
    #[must_use]
    pub fn extchunkshape(&self) -> &[u64] {
        &self.extchunkshape[..self.ndim]
    }

    /// Items of the array.
    #[must_use]
    pub fn nitems(&self) -> u64 {
        self.nitems
    }

    /// Items of the array with the padding to whole chunks.
    #[must_use]
    pub fn extnitems(&self) -> u64 {
        self.extnitems
    }

    /// Items of a chunk without padding.
    #[must_use]
    pub fn chunknitems(&self) -> u64 {
        self.chunknitems
    }

    /// Items of a block.
    #[must_use]
    pub fn blocknitems(&self) -> u64 {
        self.blocknitems
    }

    /// Items of a chunk with the padding to whole blocks.
    #[must_use]
    pub fn extchunknitems(&self) -> u64 {
        self.extchunknitems
    }

    /// Number of chunks.
    #[must_use]
    pub fn nchunks(&self) -> u64 {
        if self.nitems == 0 { 0 } else { self.extnitems / self.chunknitems }
    }

    /// Bytes of a chunk with its padding.
    ///
    /// # Errors
    ///
    /// `InvalidParam` above 2 147 483 647 bytes.
    pub fn chunk_nbytes(&self, typesize: usize) -> Result<usize> {
        let nbytes = self.extchunknitems.checked_mul(typesize as u64); // widening
        let nbytes = nbytes.filter(|&n| n <= I32_MAX).and_then(|n| usize::try_from(n).ok());
        nbytes.ok_or(invalid("chunk above 2 GiB"))
    }

    /// Fails unless chunks can be made.
    ///
    /// # Errors
    ///
    /// As [`chunk_nbytes`](Self::chunk_nbytes), `InvalidParam` for an overflow of 63 bits and for blocks larger than
    /// those of chunks may be, `MaxBufsizeExceeded` for chunks larger than a buffer may be.
    pub fn check_for_creation(&self, typesize: usize) -> Result<()> {
        let nbytes = self.extchunknitems.checked_mul(typesize as u64).filter(|&n| n <= I64_MAX); // widening
        let nbytes = nbytes.ok_or(invalid("chunk too large"))?;
        let max = MAX_BUFFERSIZE as u64; // widening
        ensure(nbytes <= max, ErrorKind::MaxBufsizeExceeded, "chunk larger than a buffer may be")?;
        check_blocksize(self.blocknitems.saturating_mul(typesize as u64)) // widening
    }

    /// The chunks of the array.
    pub(crate) fn chunk_grid(&self) -> &Grid {
        &self.chunks
    }

    /// The number of the chunk at a place in the grid; `None` if there is none.
    pub(crate) fn chunk_number(&self, at: &Extents) -> Option<usize> {
        let at = &at[..self.ndim];
        let inside = self.nitems > 0 && at.iter().zip(&self.chunks.extents).all(|(at, count)| at < count);
        if inside { usize::try_from(dot(at, &self.chunks.strides)).ok() } else { None }
    }

    /// The blocks of a chunk.
    pub(crate) fn block_grid(&self) -> &Grid {
        &self.blocks
    }
}

/// Fails if no chunk can have blocks of `nbytes` bytes: their chunks could be written, but not read.
///
/// # Errors
///
/// `InvalidParam`.
pub(crate) fn check_blocksize(nbytes: u64) -> Result<()> {
    require(nbytes <= MAX_BLOCKSIZE as u64, "block larger than those of chunks may be") // widening
}

/// Extents of chunks and blocks as they are stored.
pub(crate) fn narrow(extents: &[u64]) -> Vec<i32> {
    let small =
        |&extent: &u64| i32::try_from(extent).expect("extents of chunks and blocks came from 32 bits");
    extents.iter().map(small).collect()
}

/// Extents of arrays as they are stored.
pub(crate) fn signed(extents: &[u64]) -> Vec<i64> {
    let small = |&extent: &u64| i64::try_from(extent).expect("extents of arrays came from 63 bits");
    extents.iter().map(small).collect()
}

/// A box of items or of cells of a grid: `start` included, `stop` excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) ndim: usize,
    pub(crate) start: Extents,
    pub(crate) stop: Extents,
}

impl Region {
    /// The box from `start` to `stop`, which have one entry per dimension.
    pub(crate) fn new(start: &[u64], stop: &[u64]) -> Region {
        let mut own = Region { ndim: start.len(), start: [0; MAX_DIM], stop: [1; MAX_DIM] };
        own.start[..start.len()].copy_from_slice(start);
        own.stop[..stop.len()].copy_from_slice(stop);
        own
    }

    /// The whole array.
    pub(crate) fn all(geometry: &Geometry) -> Region {
        Region::new(&[0; MAX_DIM][..geometry.ndim()], geometry.shape())
    }

    /// Items in dimension `i`.
    pub(crate) fn extent(&self, i: usize) -> u64 {
        self.stop[i].saturating_sub(self.start[i])
    }

    /// Items in each dimension.
    pub(crate) fn extents(&self) -> Extents {
        let mut extents = [1; MAX_DIM];
        (0..self.ndim).for_each(|i| extents[i] = self.extent(i));
        extents
    }

    /// Whether there is nothing in it; a box without dimensions holds one item.
    pub(crate) fn is_empty(&self) -> bool {
        (0..self.ndim).any(|i| self.extent(i) == 0)
    }

    /// Number of items or cells; `usize::MAX` if there are more than that.
    pub(crate) fn len(&self) -> usize {
        let n = (0..self.ndim).fold(1u64, |n, i| n.saturating_mul(self.extent(i)));
        usize::try_from(n).unwrap_or(usize::MAX)
    }

    /// The part inside of a box that starts at the origin.
    pub(crate) fn clipped(&self, shape: &[u64]) -> Cow<'_, Region> {
        if self.stop.iter().zip(shape).all(|(stop, extent)| stop <= extent) {
            return Cow::Borrowed(self);
        }
        let mut own = *self;
        own.clip(shape);
        Cow::Owned(own)
    }

    /// Makes the box the part of it inside of one that starts at the origin.
    pub(crate) fn clip(&mut self, shape: &[u64]) {
        for (stop, &extent) in self.stop.iter_mut().zip(shape) {
            *stop = (*stop).min(extent);
        }
    }

    /// The cells, of `cell` items each, that the box meets.
    pub(crate) fn cells(&self, cell: &[u64]) -> Region {
        let mut own = Region { ndim: self.ndim, start: [0; MAX_DIM], stop: [1; MAX_DIM] };
        for (i, &extent) in cell.iter().enumerate() {
            let extent = extent.max(1);
            own.start[i] = quotient(self.start[i], extent);
            own.stop[i] = match self.stop[i].checked_sub(1) {
                Some(last) => quotient(last, extent) + 1,
                None => 0,
            };
        }
        own
    }

    /// The part of the box in the cell at `at`, counted from the start of the cell.
    pub(crate) fn within(&self, at: &Extents, cell: &[u64]) -> Region {
        let mut own = *self;
        for (i, &extent) in cell.iter().enumerate() {
            let origin = at[i] * extent;
            own.start[i] = self.start[i].saturating_sub(origin);
            own.stop[i] = self.stop[i].saturating_sub(origin).min(extent);
        }
        own
    }

    /// Cell number `n` of the box, in C order.
    pub(crate) fn cell(&self, n: usize) -> Extents {
        let mut at = self.start;
        let mut rest = n as u64; // widening
        if rest == 0 {
            return at;
        }
        for i in (0..self.ndim).rev() {
            let extent = self.extent(i).max(1);
            at[i] += rest % extent;
            rest /= extent;
        }
        at
    }
}

/// `n / by`, without a division where arrays have but one chunk, and chunks one block.
fn quotient(n: u64, by: u64) -> u64 {
    if n < by { 0 } else { n / by }
}

/// The scalar product of the first entries.
pub(crate) fn dot(at: &[u64], strides: &Extents) -> u64 {
    at.iter().zip(strides).map(|(a, stride)| a * stride).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_comes_out() {
        let g = Geometry::new(&[5, 4], &[3, 3], &[2, 2]).unwrap();
        assert_eq!((g.extshape(), g.extchunkshape()), (&[6, 6][..], &[4, 4][..]));
        assert_eq!((g.nitems(), g.extnitems(), g.chunknitems()), (20, 36, 9));
        assert_eq!((g.blocknitems(), g.extchunknitems(), g.nchunks()), (4, 16, 4));
    }

    #[test]
    fn shapes_that_make_no_array_are_refused() {
        let kind = |s: &[i64], c: &[i32], b: &[i32]| Geometry::new(s, c, b).unwrap_err().kind();
        let invalid = ErrorKind::InvalidParam;
        assert_eq!(kind(&[-1], &[1], &[1]), invalid);
        assert_eq!(kind(&[1], &[-1], &[1]), invalid);
        assert_eq!(kind(&[1], &[0], &[0]), invalid);
        assert_eq!(kind(&[0], &[1], &[0]), invalid);
        assert_eq!(kind(&[1 << 32, 1 << 32, 0], &[1; 3], &[1; 3]), invalid);
        assert_eq!(kind(&[1, 1], &[1 << 16, 1 << 16], &[1, 1]), invalid);
        assert_eq!(kind(&[1, 1], &[1, 1], &[1 << 16, 1 << 16]), invalid);
        assert_eq!(kind(&[i64::MAX], &[i32::MAX], &[1]), invalid);
        assert_eq!(kind(&[0, i64::MAX], &[10, 10], &[2, 2]), invalid);
        assert!(Geometry::new(&[0, i64::MAX / 10 * 10], &[10, 10], &[2, 2]).is_ok());
        assert_eq!(Geometry::new(&[0, 0], &[0, 0], &[0, 0]).unwrap().nchunks(), 0);
        assert_eq!(Geometry::new(&[], &[], &[]).unwrap().nchunks(), 1);
    }

    #[test]
    fn chunk_sizes_have_two_limits() {
        let g = Geometry::new(&[1], &[i32::MAX], &[1]).unwrap();
        assert_eq!(g.check_for_creation(1).unwrap_err().kind(), ErrorKind::MaxBufsizeExceeded);
        let most = i32::try_from(MAX_BLOCKSIZE).unwrap();
        let blocks_of = |n: i32| Geometry::new(&[i64::from(n)], &[n], &[n]).unwrap().check_for_creation(1);
        assert_eq!(blocks_of(most), Ok(()));
        assert_eq!(blocks_of(most + 1).unwrap_err().kind(), ErrorKind::InvalidParam);
        assert!(g.chunk_nbytes(1).is_ok());
        assert_eq!(g.chunk_nbytes(2).unwrap_err().kind(), ErrorKind::InvalidParam);
    }
}
