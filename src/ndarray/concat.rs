//! One array behind another.

use super::resize;
use super::shape::{Geometry, Region, signed};
use super::slice::{self, Chunks};
use super::write::{self, NewChunk, Pending};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::geometry::MAX_DIM;
use crate::memory;
use crate::schunk::{Reading, Schunk, Writing};

/// Fails unless arrays of these shapes can be joined along `axis`.
///
/// # Errors
///
/// `InvalidParam`.
pub fn check(first: &Geometry, second: &Geometry, axis: usize) -> Result<()> {
    let others_agree = |i: usize| i == axis || first.shape()[i] == second.shape()[i];
    let fits = axis < first.ndim() && first.ndim() == second.ndim() && (0..first.ndim()).all(others_agree);
    ensure(fits, ErrorKind::InvalidParam, "shapes that cannot be joined")
}

/// Extends an array along `axis` by the items of another one; returns the new geometry.
///
/// Where the chunks of both fall on each other, they are copied as they are.
///
/// # Errors
///
/// `InvalidParam` if shapes or typesizes do not fit: nothing is changed then. `Failure` for chunks that cannot be read,
/// compressed or written; the array is as before then, as far as it can be written at all.
pub fn extend(
    schunk: &mut Schunk,
    geometry: &Geometry,
    (other, other_geometry): (&Schunk, &Geometry),
    axis: usize,
    reading: &Reading<'_>,
    (own_reading, writing): (&Reading<'_>, &Writing<'_>),
) -> Result<Geometry> {
    check(geometry, other_geometry, axis)?;
    let same = schunk.typesize() == other.typesize();
    ensure(same, ErrorKind::InvalidParam, "items of another size")?;
    let before = signed(geometry.shape());
    let mut shape = before.clone();
    let added = signed(other_geometry.shape())[axis];
    let too_large = Error::new(ErrorKind::InvalidParam, "array too large");
    shape[axis] = shape[axis].checked_add(added).ok_or(too_large)?;
    let joined = resize::resize(schunk, geometry, &shape, None, writing.enc.params)?;
    if other_geometry.nitems() == 0 {
        return Ok(joined);
    }
    let start = geometry.shape()[axis];
    let aligned = joined.chunkshape() == other_geometry.chunkshape()
        && joined.blockshape() == other_geometry.blockshape()
        && start % joined.chunkshape()[axis] == 0;
    let copied = if aligned {
        copy_chunks(schunk, &joined, (other, other_geometry), axis, start, writing)
    } else {
        copy_items(schunk, &joined, (other, other_geometry), axis, start, reading, (own_reading, writing))
    };
    if let Err(error) = copied {
        let _ = resize::resize(schunk, &joined, &before, None, writing.enc.params);
        return Err(error);
    }
    Ok(joined)
}

fn copy_chunks(
    schunk: &mut Schunk,
    geometry: &Geometry,
    (other, other_geometry): (&Schunk, &Geometry),
    axis: usize,
    start: u64,
    writing: &Writing<'_>,
) -> Result<()> {
    let mut pending = Pending::default();
    let strides = &geometry.chunk_grid().strides;
    let all = Region::all(other_geometry);
    let chunks = Chunks::of(other_geometry, &all);
    let shift = start / geometry.chunkshape()[axis];
    for n in 0..chunks.len() {
        let mut at = chunks.chunk(n);
        let from = chunks.number(&at)?;
        at[axis] += shift;
        let to = super::shape::dot(&at[..geometry.ndim()], strides);
        let to = usize::try_from(to).map_err(|_| Error::new(ErrorKind::Failure, "too many chunks"))?;
        let copied =
            other.with_chunk(from, |chunk| pending.replace(schunk, to, NewChunk::Borrowed(chunk), writing));
        copied.map_err(|e| slice::failure(&e))?;
    }
    pending.flush(schunk)
}

fn copy_items(
    schunk: &mut Schunk,
    geometry: &Geometry,
    (other, other_geometry): (&Schunk, &Geometry),
    axis: usize,
    start: u64,
    reading: &Reading<'_>,
    (own_reading, writing): (&Reading<'_>, &Writing<'_>),
) -> Result<()> {
    let ndim = geometry.ndim();
    let mut behind = Region::all(geometry);
    behind.start[axis] = start;
    let chunks = Chunks::of(geometry, &behind);
    let mut buffer = Vec::new();
    for n in 0..chunks.len() {
        let at = chunks.chunk(n);
        let (part, _) = chunks.part(&at, &[0; MAX_DIM]);
        let mut to = part;
        for (i, &place) in at.iter().enumerate().take(ndim) {
            let origin = place * geometry.chunkshape()[i];
            (to.start[i], to.stop[i]) = (part.start[i] + origin, part.stop[i] + origin);
        }
        let mut from = to;
        (from.start[axis], from.stop[axis]) = (to.start[axis] - start, to.stop[axis] - start);
        let extents = to.extents();
        memory::resize(&mut buffer, to.len().saturating_mul(schunk.typesize()))?;
        slice::read(other, other_geometry, &from, &mut buffer, &extents[..ndim], reading)?;
        write::write(schunk, geometry, &to, &buffer, &extents[..ndim], own_reading, writing)?;
    }
    Ok(())
}
