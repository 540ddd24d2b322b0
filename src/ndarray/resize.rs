//! Arrays that change their shape: chunks are inserted and deleted, none is compressed anew except for new items.
//! Chunks and shape change together.

#![forbid(unsafe_code)]

use super::shape::{Geometry, Region, signed};
use super::write::{self, Items, Pending};
use crate::chunk::{self, CParams, SpecialValue};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::geometry::MAX_DIM;
use crate::format::nd_meta;
use crate::frame::Regrid;
use crate::memory;
use crate::schunk::access::Access;
use crate::schunk::{Reading, Schunk, Update, Writing};
use std::ops::Range;

/// What happens to items in a resize.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Inserted,
    Removed,
}

/// What a resize does in one dimension.
#[derive(Clone, Copy)]
struct Step {
    old: u64,
    new: u64,
    /// Where items are inserted or removed.
    at: u64,
}

impl Step {
    fn new(old: u64, new: u64, start: Option<i64>, chunk: u64) -> Result<Step> {
        let tail = old.min(new);
        let Some(start) = start else { return Ok(Step { old, new, at: tail }) };
        let at = u64::try_from(start).ok().filter(|&at| at <= old);
        let at = at.ok_or(Error::new(ErrorKind::InvalidParam, "position outside of the array"))?;
        let change = old.abs_diff(new);
        if change > 0 && at != tail {
            require(new > old || at <= new, "removed items reach past the end")?;
            let aligned = chunk > 0 && at % chunk == 0 && change % chunk == 0;
            require(aligned, "change in the middle that does not consist of whole chunks")?;
        }
        Ok(Step { old, new, at })
    }

    /// The cells of a grid with these chunks whose first item is inserted or removed, as `change` says.
    fn cells(&self, change: Change, chunk: u64) -> (u64, u64) {
        let changes = match change {
            Change::Inserted => self.new > self.old,
            Change::Removed => self.old > self.new,
        };
        if !changes || chunk == 0 {
            return (0, 0);
        }
        let end = self.at + self.old.abs_diff(self.new);
        (self.at.div_ceil(chunk), end.div_ceil(chunk))
    }
}

/// Runs of consecutive chunks, ascending.
type Runs = Vec<Range<usize>>;

/// The range of cells, in each dimension of the grid of `geometry`, that are inserted or removed.
fn changed_cells(geometry: &Geometry, steps: &[Step], change: Change) -> impl Iterator<Item = (u64, u64)> {
    steps.iter().zip(geometry.chunkshape()).map(move |(step, &chunk)| step.cells(change, chunk))
}

/// Whether there are chunks in the changed part of any dimension.
fn changes_chunks(geometry: &Geometry, steps: &[Step], change: Change) -> bool {
    geometry.nitems() > 0 && changed_cells(geometry, steps, change).any(|(from, to)| from < to)
}

/// The chunks of the grid of `geometry`, below 2^31, that lie in the changed part of at least one dimension.
///
/// # Errors
///
/// `MemoryAlloc`.
fn changed_chunks(geometry: &Geometry, steps: &[Step], change: Change) -> Result<Runs> {
    let cells: Vec<(u64, u64)> = changed_cells(geometry, steps, change).collect();
    let innermost = cells.iter().rposition(|(from, to)| from < to).filter(|_| geometry.nitems() > 0);
    let Some(innermost) = innermost else { return Ok(Vec::new()) };
    let grid = &geometry.chunk_grid().extents[..geometry.ndim()];
    // Behind the innermost dimension that changes, chunks share their fate. Along it, a row changes as a whole if it
    // lies in the changed part of a dimension before; otherwise only some of its cells do.
    let row = grid[innermost];
    let unit: u64 = grid[innermost + 1..].iter().product();
    let rows = Region::new(&[0; MAX_DIM][..innermost], &grid[..innermost]);
    let number = |n: u64| usize::try_from(n).expect("below 2^31");
    let mut runs: Runs = Vec::new();
    for n in 0..rows.len() {
        let whole =
            cells.iter().zip(&rows.cell(n)[..innermost]).any(|(&(from, to), at)| (from..to).contains(at));
        let (from, to) = if whole { (0, row) } else { cells[innermost] };
        let start = n as u64 * row; // widening
        let run = number((start + from) * unit)..number((start + to) * unit);
        match runs.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ => memory::push(&mut runs, run)?,
        }
    }
    Ok(runs)
}

/// A change of the shape of an array that was found possible.
pub(super) struct Plan {
    target: Geometry,
    /// Old numbers of the chunks that go.
    gone: Runs,
    /// New numbers of the chunks that come.
    added: Runs,
    /// How many chunks come before each run of `added`, and in all; nothing if none come or go.
    added_before: Vec<usize>,
    /// Each chunk that comes.
    zeros: [u8; EXTENDED_HEADER_LENGTH],
    /// The metalayer of the array, and its content to be.
    layer: (&'static [u8], Vec<u8>),
    /// How often clients see the metalayer change: as in the C library, once to shrink and once to grow.
    ticks: u64,
}

impl Plan {
    /// See [`resize`].
    pub(super) fn new(
        schunk: &Schunk,
        geometry: &Geometry,
        new_shape: &[i64],
        start: Option<&[i64]>,
        params: &CParams,
    ) -> Result<Plan> {
        let ndim = geometry.ndim();
        let fits = new_shape.len() == ndim && start.is_none_or(|start| start.len() == ndim);
        require(fits, "wrong number of dimensions")?;
        let target = geometry.with_shape(new_shape)?;
        let steps: Vec<Step> = (0..ndim)
            .map(|i| {
                let start = start.map(|start| start[i]);
                Step::new(geometry.shape()[i], target.shape()[i], start, geometry.chunkshape()[i])
            })
            .collect::<Result<_>>()?;
        for geometry in [geometry, &target] {
            require(i32::try_from(geometry.nchunks()).is_ok(), "too many chunks")?;
        }
        let layer = shape_layer(schunk, &target)?;
        let shrinks = steps.iter().any(|step| step.new < step.old);
        let grows = steps.iter().any(|step| step.new > step.old);
        let ticks = u64::from(shrinks) + u64::from(grows);
        let mut plan = Plan {
            target,
            gone: Runs::new(),
            added: Runs::new(),
            added_before: Vec::new(),
            zeros: [0; EXTENDED_HEADER_LENGTH],
            layer,
            ticks,
        };
        if changes_chunks(geometry, &steps, Change::Removed)
            || changes_chunks(&plan.target, &steps, Change::Inserted)
        {
            let whole = u64::try_from(schunk.nchunks()).ok() == Some(geometry.nchunks());
            ensure(whole, ErrorKind::Failure, "the array lacks chunks, or has too many")?;
            plan.find_chunks(geometry, &steps)?;
        }
        if !plan.added.is_empty() {
            write::blocks_of(schunk, &plan.target)?;
            plan.zeros = chunk_of_zeros(schunk.typesize(), &plan.target, params)?;
        }
        Ok(plan)
    }

    /// Finds the chunks that go and come.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    fn find_chunks(&mut self, geometry: &Geometry, steps: &[Step]) -> Result<()> {
        self.gone = changed_chunks(geometry, steps, Change::Removed)?;
        self.added = changed_chunks(&self.target, steps, Change::Inserted)?;
        memory::reserve(&mut self.added_before, self.added.len() + 1)?;
        let mut before = 0;
        self.added_before.push(before);
        for run in &self.added {
            before += run.len();
            self.added_before.push(before);
        }
        Ok(())
    }

    /// The geometry of the array with its new shape.
    pub(super) fn target(&self) -> &Geometry {
        &self.target
    }

    /// As [`target`](Self::target).
    pub(super) fn into_target(self) -> Geometry {
        self.target
    }

    /// The number that chunk `nchunk` of an array that grows has before; `None` for one that comes.
    pub(super) fn number_before(&self, nchunk: usize) -> Option<usize> {
        let behind = self.added.partition_point(|run| run.end <= nchunk);
        let comes = self.added.get(behind).is_some_and(|run| run.contains(&nchunk));
        (!comes).then(|| nchunk - self.added_before.get(behind).unwrap_or(&0))
    }

    /// Carries out the change, and replaces chunks, given by their new numbers, with it.
    ///
    /// # Errors
    ///
    /// `Failure` if chunks or metalayer cannot be written: the array is as before then.
    pub(super) fn apply(&self, schunk: &mut Schunk, updates: Vec<(usize, Update)>) -> Result<()> {
        let (name, content) = &self.layer;
        let changed = if self.gone.is_empty() && self.added.is_empty() && updates.is_empty() {
            match self.ticks {
                0 => Ok(()),
                ticks => schunk.meta_update_ticks(name, content, ticks).map(drop),
            }
        } else {
            let change = Regrid {
                removed: &self.gone,
                added: &self.added,
                chunk: &self.zeros,
                layer: Some((name, content)),
                more_ticks: self.ticks.saturating_sub(1),
            };
            schunk.regrid(&change, updates)
        };
        changed.map_err(Error::to_failure_unless_lock)
    }
}

/// Gives the array the shape `new_shape`; returns its new geometry. Items are inserted and removed at `start`, by
/// default at the end. `params` makes the chunks of zeros.
///
/// It neither locks the frame nor refreshes the geometry: see [the module](super).
///
/// # Errors
///
/// `InvalidParam` for shapes and positions that make no sense, and for changes in the middle that do not consist of
/// whole chunks, `Failure` if chunks or metalayer cannot be written: nothing is changed then.
pub fn resize(
    schunk: &mut Schunk,
    geometry: &Geometry,
    new_shape: &[i64],
    start: Option<&[i64]>,
    params: &CParams,
) -> Result<Geometry> {
    resize_shared(schunk, geometry, new_shape, start, params)
}

/// [`resize()`] of a super-chunk that may be shared.
pub(crate) fn resize_shared(
    schunk: &mut impl Access,
    geometry: &Geometry,
    new_shape: &[i64],
    start: Option<&[i64]>,
    params: &CParams,
) -> Result<Geometry> {
    if geometry.ndim() == 0 {
        return Ok(geometry.clone());
    }
    let plan = schunk.look(|schunk| Plan::new(schunk, geometry, new_shape, start, params))?;
    schunk.change(|schunk| plan.apply(schunk, Vec::new()))?;
    Ok(plan.target)
}

/// Gives a growing array the shape of `plan`, and its new items with it. `write` makes the chunks of these, or changes
/// those that stay.
///
/// # Errors
///
/// Those of `write` and of [`resize`]. The array is as before then: only if part of it was written already, which takes
/// more than about 64 MiB of new chunks of a frame, or a prefilter, and cannot be taken back, it keeps its new shape.
pub(super) fn grow<A: Access>(
    schunk: &mut A,
    geometry: &Geometry,
    plan: &Plan,
    start: Option<&[i64]>,
    writing: &Writing<'_>,
    write: impl FnOnce(&mut A, &mut Pending<'_>) -> Result<()>,
) -> Result<()> {
    let mut pending = Pending::growing(plan);
    if writing.enc.prefilter.is_some() {
        // It may look at the array.
        pending.flush(schunk)?;
    }
    let grown = write(schunk, &mut pending).and_then(|()| pending.flush(schunk));
    if grown.is_err() && !pending.is_growing() {
        // If that fails too, there is nothing better to report.
        let _ = resize_shared(schunk, &plan.target, &signed(geometry.shape()), start, writing.enc.params);
    }
    grown
}

fn chunk_of_zeros(
    typesize: usize,
    geometry: &Geometry,
    params: &CParams,
) -> Result<[u8; EXTENDED_HEADER_LENGTH]> {
    let mut zeros = [0; EXTENDED_HEADER_LENGTH];
    let blocksize = usize::try_from(geometry.blocknitems()).unwrap_or(0).saturating_mul(typesize);
    let params = CParams { use_dict: false, typesize, blocksize, ..params.clone() };
    let nbytes = geometry.chunk_nbytes(typesize)?;
    chunk::special_chunk(&params, nbytes, SpecialValue::Zeros, &mut zeros)?;
    Ok(zeros)
}

/// The name of the metalayer of the array, and its content with another shape.
fn shape_layer(schunk: &Schunk, geometry: &Geometry) -> Result<(&'static [u8], Vec<u8>)> {
    let layers = schunk.metalayers();
    let layer = nd_meta::find(&layers);
    let layer = layer.ok_or(Error::new(ErrorKind::Failure, "no metalayer of an array"))?;
    let mut content = memory::copy_of(&layer.content)?;
    nd_meta::set_shape(&mut content, &signed(geometry.shape()))?;
    let name = [nd_meta::NAME, nd_meta::OLD_NAME].into_iter().find(|name| layer.name == *name);
    Ok((name.expect("one of the two"), content))
}

/// Where items are inserted: the dimension, and the position along it.
#[derive(Clone, Copy, Debug)]
pub struct Insertion {
    /// The dimension.
    pub axis: usize,
    /// The item before which they go; the extent of the dimension for its end.
    pub at: i64,
}

/// Inserts the items of `src`, a C-order buffer with the shape of the array except for the dimension of the insertion,
/// whose extent follows from the length of `src`. Returns the new geometry.
///
/// It neither locks the frame nor refreshes the geometry: see [the module](super).
///
/// # Errors
///
/// `InvalidParam` if `src` does not fit the other dimensions, and as [`resize`]; the array is as before then.
pub fn insert(
    schunk: &mut Schunk,
    geometry: &Geometry,
    src: &[u8],
    insertion: Insertion,
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<Geometry> {
    insert_shared(schunk, geometry, src, insertion, reading, writing)
}

/// [`insert()`] into a super-chunk that may be shared.
pub(crate) fn insert_shared(
    schunk: &mut impl Access,
    geometry: &Geometry,
    src: &[u8],
    insertion: Insertion,
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<Geometry> {
    let Insertion { axis, at } = insertion;
    require(axis < geometry.ndim(), "no such dimension")?;
    let typesize = schunk.look(|schunk| Ok(schunk.typesize()))?;
    let others = geometry.shape().iter().enumerate().filter(|&(i, _)| i != axis);
    let slab = others
        .map(|(_, &extent)| usize::try_from(extent).ok())
        .try_fold(typesize, |n, extent| n.checked_mul(extent?));
    let slab = slab.filter(|&slab| slab > 0).ok_or(Error::new(ErrorKind::InvalidParam, "empty slab"))?;
    require(src.len() % slab == 0, "buffer does not consist of whole slabs")?;
    let count = (src.len() / slab) as u64; // widening
    let old = geometry.shape()[axis];
    let position = u64::try_from(at).ok().filter(|&at| at <= old);
    let position = position.ok_or(Error::new(ErrorKind::InvalidParam, "position outside of the array"))?;
    if count == 0 {
        return Ok(geometry.clone());
    }
    let mut shape = signed(geometry.shape());
    let grown = old.checked_add(count).and_then(|n| i64::try_from(n).ok());
    shape[axis] = grown.ok_or(Error::new(ErrorKind::InvalidParam, "array too large"))?;
    let mut start = vec![0; shape.len()];
    start[axis] = at;
    let start = (position != old).then_some(&start[..]);
    let plan = schunk.look(|schunk| Plan::new(schunk, geometry, &shape, start, writing.enc.params))?;
    let mut region = Region::all(plan.target());
    (region.start[axis], region.stop[axis]) = (position, position + count);
    let extents = region.extents();
    let src = Items { bytes: src, shape: &extents[..geometry.ndim()] };
    grow(schunk, geometry, &plan, start, writing, |schunk, pending| {
        write::write_to(schunk, pending, plan.target(), &region, src, reading, writing)
    })?;
    Ok(plan.target)
}

/// Removes `count` items at `at` of dimension `axis`; returns the new geometry.
///
/// It neither locks the frame nor refreshes the geometry: see [the module](super).
///
/// # Errors
///
/// As [`resize`].
pub fn delete(
    schunk: &mut Schunk,
    geometry: &Geometry,
    axis: usize,
    at: i64,
    count: i64,
    params: &CParams,
) -> Result<Geometry> {
    delete_shared(schunk, geometry, axis, at, count, params)
}

/// [`delete()`] from a super-chunk that may be shared.
pub(crate) fn delete_shared(
    schunk: &mut impl Access,
    geometry: &Geometry,
    axis: usize,
    at: i64,
    count: i64,
    params: &CParams,
) -> Result<Geometry> {
    require(axis < geometry.ndim(), "no such dimension")?;
    let mut shape = signed(geometry.shape());
    let old = shape[axis];
    require((0..=old).contains(&count), "more items than there are")?;
    if count == 0 {
        // As in the C library, which lets a number below 0 pass.
        require(at <= old, "position outside of the array")?;
        return Ok(geometry.clone());
    }
    shape[axis] = old - count;
    let mut start = vec![0; shape.len()];
    start[axis] = at;
    let start = (at != old - count).then_some(&start[..]);
    resize_shared(schunk, geometry, &shape, start, params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::frame_header::FrameParams;
    use crate::format::nd_meta::NdMeta;
    use crate::ndarray::create;

    #[test]
    fn changed_chunks_are_those_in_the_changed_part_of_any_dimension() {
        let old = Geometry::new(&[7, 9, 5], &[2, 3, 2], &[1, 1, 1]).unwrap();
        for new in [
            [3, 9, 5],
            [7, 4, 5],
            [7, 9, 1],
            [2, 2, 5],
            [3, 9, 1],
            [7, 3, 2],
            [1, 1, 1],
            [0, 9, 5],
            [7, 9, 5],
        ] {
            let step = |i: usize| Step::new(old.shape()[i], new[i], None, old.chunkshape()[i]).unwrap();
            let steps = [0, 1, 2].map(step);
            let all = Region::new(&[0; 3], &old.chunk_grid().extents[..3]);
            let is_gone = |n: &usize| {
                let at = all.cell(*n);
                (0..3).any(|i| at[i] >= new[i].div_ceil(old.chunkshape()[i]))
            };
            let expected: Vec<usize> = (0..all.len()).filter(is_gone).collect();
            let runs = changed_chunks(&old, &steps, Change::Removed).unwrap();
            assert!(runs.windows(2).all(|runs| runs[0].end < runs[1].start), "{new:?}");
            assert_eq!(changes_chunks(&old, &steps, Change::Removed), !expected.is_empty());
            assert_eq!(runs.into_iter().flatten().collect::<Vec<_>>(), expected, "{new:?}");
        }
    }

    #[test]
    fn a_plan_knows_the_numbers_that_chunks_had() {
        let meta = NdMeta {
            shape: vec![5, 7],
            chunkshape: vec![2, 3],
            blockshape: vec![1, 2],
            dtype: None,
            dtype_format: 0,
        };
        let params = CParams { typesize: 1, ..CParams::default() };
        let mut schunk = Schunk::in_memory(FrameParams { typesize: 1, ..FrameParams::default() });
        let geometry = Geometry::from_meta(&meta).unwrap();
        create::prepare(&mut schunk, &geometry, &meta, &[]).unwrap();
        resize(&mut schunk, &Geometry::new(&[0, 7], &[2, 3], &[1, 2]).unwrap(), &[5, 7], None, &params)
            .unwrap();
        let (rows, columns) = (3, 3);
        for (shape, start, inserted_at) in
            [([5, 16], None, 3), ([5, 13], Some([5, 3]), 1), ([9, 7], None, 3), ([5, 8], None, 3)]
        {
            let start: Option<&[i64]> = start.as_ref().map(|start| &start[..]);
            let plan = Plan::new(&schunk, &geometry, &shape, start, &params).unwrap();
            let width = usize::try_from(shape[1]).unwrap().div_ceil(3);
            for nchunk in 0..usize::try_from(plan.target().nchunks()).unwrap() {
                let (row, column) = (nchunk / width, nchunk % width);
                let column_before = match column {
                    _ if column < inserted_at => Some(column),
                    _ => column.checked_sub(width - columns).filter(|before| *before >= inserted_at),
                };
                let before = column_before.filter(|_| row < rows).map(|column| row * columns + column);
                assert_eq!(plan.number_before(nchunk), before, "chunk {nchunk} of {shape:?}");
            }
        }
    }

    #[test]
    fn chunks_that_an_array_only_claims_to_have_cost_nothing() {
        let meta = NdMeta {
            shape: vec![1 << 29, 3],
            chunkshape: vec![1, 1],
            blockshape: vec![1, 1],
            dtype: None,
            dtype_format: 0,
        };
        let mut schunk = Schunk::in_memory(FrameParams { typesize: 1, ..FrameParams::default() });
        let geometry = Geometry::from_meta(&meta).unwrap();
        create::prepare(&mut schunk, &geometry, &meta, &[]).unwrap();
        for shape in [[1 << 29, 1], [1, 1], [1 << 28, 2]] {
            let error = resize(&mut schunk, &geometry, &shape, None, &CParams::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Failure);
        }
    }
}
