//! One array after another.

#![forbid(unsafe_code)]

use super::StoredArray;
use super::resize::{self, Plan};
use super::shape::{Geometry, Region, dot, signed};
use super::slice::BoxChunks;
use super::window::Window;
use super::write::{self, Items, NewChunk, Pending};
use crate::error::{Error, ErrorKind, Result, require};
use crate::schunk::access::Access;
use crate::schunk::{Reading, Schunk, Writing};

/// Fails unless arrays of these shapes can be joined along `axis`.
///
/// # Errors
///
/// `InvalidParam`.
pub fn check(first: &Geometry, second: &Geometry, axis: usize) -> Result<()> {
    let others_agree = |i: usize| i == axis || first.shape()[i] == second.shape()[i];
    let fits = axis < first.ndim() && first.ndim() == second.ndim() && (0..first.ndim()).all(others_agree);
    require(fits, "shapes that cannot be joined")
}

/// Extends an array along `axis` by the items of another one; returns the new geometry.
///
/// Where the chunks of both fall on each other, they are copied as they are.
///
/// It neither locks the frame nor refreshes the geometry: see [the module](super).
///
/// # Errors
///
/// `InvalidParam` if shapes or typesizes do not fit: nothing is changed then. `Failure` for chunks that cannot be read,
/// compressed or written; the array is as before then, as far as it can be written at all.
pub fn extend(
    schunk: &mut Schunk,
    geometry: &Geometry,
    other: StoredArray<'_>,
    axis: usize,
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<Geometry> {
    extend_shared(schunk, geometry, other, axis, reading, writing)
}

/// [`extend()`] of an array whose super-chunk may be shared.
pub(crate) fn extend_shared(
    schunk: &mut impl Access,
    geometry: &Geometry,
    other: StoredArray<'_>,
    axis: usize,
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<Geometry> {
    check(geometry, other.geometry, axis)?;
    let same = schunk.look(|schunk| Ok(schunk.typesize() == other.schunk.typesize()))?;
    require(same, "items of another size")?;
    let mut shape = signed(geometry.shape());
    let added = signed(other.geometry.shape())[axis];
    let too_large = Error::new(ErrorKind::InvalidParam, "array too large");
    shape[axis] = shape[axis].checked_add(added).ok_or(too_large)?;
    let plan = schunk.look(|schunk| Plan::new(schunk, geometry, &shape, None, writing.enc.params))?;
    let joined = plan.target();
    let start = geometry.shape()[axis];
    resize::grow(schunk, geometry, &plan, None, writing, |schunk, pending| {
        let joint = Joint { joined, axis, start };
        let other = StoredArray { reading: &other.reading.of_part(other.schunk), ..other };
        if other.geometry.nitems() == 0 {
            Ok(())
        } else if joint.is_aligned(other.geometry) {
            joint.copy_chunks(schunk, pending, other, writing)
        } else {
            joint.copy_items(schunk, pending, other, reading, writing)
        }
    })?;
    Ok(plan.into_target())
}

/// Where the items of the second array go.
struct Joint<'a> {
    joined: &'a Geometry,
    axis: usize,
    /// The extent of the first array along the axis.
    start: u64,
}

impl Joint<'_> {
    /// Whether the chunks of the second array become chunks of the first one.
    fn is_aligned(&self, other: &Geometry) -> bool {
        self.joined.chunkshape() == other.chunkshape()
            && self.joined.blockshape() == other.blockshape()
            && self.start % self.joined.chunkshape()[self.axis] == 0
    }

    /// Adds the second array chunk by chunk, as they are.
    fn copy_chunks(
        &self,
        schunk: &mut impl Access,
        pending: &mut Pending<'_>,
        other: StoredArray<'_>,
        writing: &Writing<'_>,
    ) -> Result<()> {
        let strides = &self.joined.chunk_grid().strides;
        let all = Region::all(other.geometry);
        let chunks = BoxChunks::of(other.geometry, &all);
        let shift = self.start / self.joined.chunkshape()[self.axis];
        for n in 0..chunks.len() {
            let from = chunks.chunk(n);
            let mut at = from;
            at[self.axis] += shift;
            let to = dot(&at[..self.joined.ndim()], strides);
            let to = usize::try_from(to).map_err(|_| Error::new(ErrorKind::Failure, "too many chunks"))?;
            let number = |now: &Geometry| now.chunk_number(&from);
            let copied = other
                .take_chunk(number, |chunk| pending.replace(schunk, to, NewChunk::Borrowed(chunk), writing));
            let lost = Error::new(ErrorKind::Failure, "the array that is added became smaller");
            copied.map_err(Error::to_failure_unless_lock)?.ok_or(lost)?;
        }
        Ok(())
    }

    /// Adds the second array item by item: reads what goes to each chunk of the joined array, and writes it there.
    fn copy_items(
        &self,
        schunk: &mut impl Access,
        pending: &mut Pending<'_>,
        other: StoredArray<'_>,
        reading: &Reading<'_>,
        writing: &Writing<'_>,
    ) -> Result<()> {
        let (joined, axis) = (self.joined, self.axis);
        let ndim = joined.ndim();
        let mut behind = Region::all(joined);
        behind.start[axis] = self.start;
        let chunks = BoxChunks::of(joined, &behind);
        let mut window = Window::new(other, Region::all(other.geometry));
        for n in 0..chunks.len() {
            let at = chunks.chunk(n);
            let part = chunks.part(&at);
            let mut to = part;
            for (i, &place) in at.iter().enumerate().take(ndim) {
                let origin = place * joined.chunkshape()[i];
                (to.start[i], to.stop[i]) = (part.start[i] + origin, part.stop[i] + origin);
            }
            let mut from = to;
            (from.start[axis], from.stop[axis]) = (to.start[axis] - self.start, to.stop[axis] - self.start);
            let (bytes, shape) = window.show(&from)?;
            let items = Items { bytes, shape: &shape[..ndim] };
            write::write_to(schunk, pending, joined, &to, items, reading, writing)?;
        }
        Ok(())
    }
}
