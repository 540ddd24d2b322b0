//! Blocks of n-dimensional data divided into small cells, for [`ndcell`](super::ndcell) and [`ndmean`](super::ndmean).

#![forbid(unsafe_code)]

use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::geometry::Container;

/// Bytes per item of the super-chunk.
///
/// # Errors
///
/// `kind`, if there is no super-chunk or it has a negative typesize.
pub(super) fn schunk_typesize(container: &Container, kind: ErrorKind) -> Result<usize> {
    let typesize = container.typesize().ok_or(Error::new(kind, "filter needs a super-chunk"))?;
    usize::try_from(typesize).map_err(|_| Error::new(kind, "negative typesize"))
}

/// The most dimensions that the cell filters handle.
const MAX_DIMS: usize = 8;

/// A block divided into cells. All extents are in items, slowest dimension first.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellGrid {
    /// Number of dimensions; entries after them do not count.
    ndim: usize,
    /// Bytes per item.
    typesize: usize,
    /// Extents of the block.
    shape: [usize; MAX_DIMS],
    /// Distance between neighbours along each dimension.
    stride: [usize; MAX_DIMS],
    /// Extents of a cell that no edge cuts.
    side: [usize; MAX_DIMS],
}

/// One cell of the grid.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// Number of the cell's first item in the block.
    start: usize,
    extent: [usize; MAX_DIMS],
    /// Number of items.
    pub(super) nitems: usize,
}

impl CellGrid {
    /// The grid of cells with this side over a block of `len` bytes.
    ///
    /// # Errors
    ///
    /// `kind`, if the geometry is missing or does not have 1 to 8 dimensions of at least one item, if the block is
    /// not exactly `len` bytes long, or if `side` or `typesize` is 0.
    pub(super) fn new(
        container: &Container,
        typesize: usize,
        len: usize,
        side: usize,
        kind: ErrorKind,
    ) -> Result<CellGrid> {
        let no_shape = Error::new(kind, "filter needs the shape of the block");
        let geometry = container.geometry().ok_or(no_shape)?;
        let blockshape = geometry.blockshape();
        let ndim = blockshape.len();
        ensure((1..=MAX_DIMS).contains(&ndim), kind, "cell filters need 1 to 8 dimensions")?;
        ensure(side > 0 && typesize > 0, kind, "cells or items of size 0")?;
        let nbytes = geometry
            .nitems()
            .and_then(|nitems| usize::try_from(nitems).ok())
            .and_then(|nitems| nitems.checked_mul(typesize));
        ensure(nbytes == Some(len), kind, "block length differs from the block shape")?;
        let mut grid =
            CellGrid { ndim, typesize, shape: [1; MAX_DIMS], stride: [1; MAX_DIMS], side: [side; MAX_DIMS] };
        for (own, &extent) in grid.shape.iter_mut().zip(blockshape) {
            *own = usize::try_from(extent).map_err(|_| Error::new(kind, "negative block shape"))?;
        }
        for axis in (0..ndim - 1).rev() {
            grid.stride[axis] = grid.stride[axis + 1] * grid.shape[axis + 1];
        }
        Ok(grid)
    }

    /// Number of dimensions.
    pub(super) fn ndim(&self) -> usize {
        self.ndim
    }

    /// The same grid, with cells that are nowhere longer than the block.
    pub(super) fn with_cells_inside(mut self) -> CellGrid {
        for (side, &extent) in self.side.iter_mut().zip(&self.shape) {
            *side = (*side).min(extent);
        }
        self
    }

    /// Calls `visit` with each cell in C order.
    pub(super) fn for_each_cell(&self, mut visit: impl FnMut(&Cell)) {
        let mut cell = Cell::default();
        let mut origin = [0; MAX_DIMS];
        loop {
            cell.nitems = 1;
            cell.start = 0;
            for (axis, &first) in origin[..self.ndim].iter().enumerate() {
                cell.extent[axis] = (self.shape[axis] - first).min(self.side[axis]);
                cell.nitems *= cell.extent[axis];
                cell.start += first * self.stride[axis];
            }
            visit(&cell);
            let mut axis = self.ndim - 1;
            loop {
                origin[axis] += self.side[axis];
                if origin[axis] < self.shape[axis] {
                    break;
                }
                if axis == 0 {
                    return;
                }
                origin[axis] = 0;
                axis -= 1;
            }
        }
    }

    /// Calls `visit` with the start in the block and the length, in bytes, of each row of `cell`, in C order.
    #[inline(always)]
    pub(super) fn for_each_row(&self, cell: &Cell, mut visit: impl FnMut(usize, usize)) {
        let len = cell.extent[self.ndim - 1] * self.typesize;
        let mut row = [0; MAX_DIMS];
        let mut first = cell.start;
        loop {
            visit(first * self.typesize, len);
            let mut axis = self.ndim - 1;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                row[axis] += 1;
                first += self.stride[axis];
                if row[axis] < cell.extent[axis] {
                    break;
                }
                first -= row[axis] * self.stride[axis];
                row[axis] = 0;
            }
        }
    }

    /// Copies the block `src` to `dest`, cell after cell.
    ///
    /// # Errors
    ///
    /// `kind`, if the lengths are not that of the block.
    pub(super) fn gather(&self, src: &[u8], dest: &mut [u8], kind: ErrorKind) -> Result<()> {
        ensure(src.len() == dest.len(), kind, "filter buffers of different lengths")?;
        let mut pos = 0;
        self.for_each_cell(|cell| {
            self.for_each_row(cell, |start, len| {
                copy(&mut dest[pos..pos + len], &src[start..start + len]);
                pos += len;
            });
        });
        Ok(())
    }

    /// Undoes [`gather`](Self::gather).
    ///
    /// # Errors
    ///
    /// `kind`, if the lengths are not that of the block.
    pub(super) fn scatter(&self, src: &[u8], dest: &mut [u8], kind: ErrorKind) -> Result<()> {
        ensure(src.len() == dest.len(), kind, "filter buffers of different lengths")?;
        let mut pos = 0;
        self.for_each_cell(|cell| {
            self.for_each_row(cell, |start, len| {
                copy(&mut dest[start..start + len], &src[pos..pos + len]);
                pos += len;
            });
        });
        Ok(())
    }
}

/// Copies a row; the usual lengths are copied without a call.
#[inline(always)]
fn copy(dest: &mut [u8], src: &[u8]) {
    match src.len() {
        4 => dest[..4].copy_from_slice(&src[..4]),
        8 => dest[..8].copy_from_slice(&src[..8]),
        16 => dest[..16].copy_from_slice(&src[..16]),
        32 => dest[..32].copy_from_slice(&src[..32]),
        _ => dest.copy_from_slice(src),
    }
}
