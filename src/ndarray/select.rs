//! Selections: the outer product of lists of indices, and single items.

use super::blocks::{Blocks, ITEM_WORTH};
use super::refresh::read_undisturbed;
use super::shape::{Extents, Geometry, Region, strided_len, strides};
use super::slice;
use super::write::{Items, Overlay, Pending, blocks_of};
use crate::chunk::{BlockReader, Decoded, Decoding, DisjointParts, Plain, Runs};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::geometry::MAX_DIM;
use crate::memory;
use crate::schunk::access::Access;
use crate::schunk::{Reading, Schunk, StoredChunks, Writing, chunk_numbers, scratch};
use std::ops::Range;

const OUTSIDE: &str = "index outside of the array";

/// The indices of one dimension, sorted and cut at the borders of chunks and blocks.
struct Axis {
    /// Index in the array and position in the selection; equal indices in the order of their positions.
    items: Vec<(u64, u64)>,
    chunks: Vec<AxisChunk>,
}

/// The indices of one dimension in one chunk.
struct AxisChunk {
    chunk: u64,
    /// Which items.
    items: Range<usize>,
    /// Which items of each block.
    blocks: Vec<(u64, Range<usize>)>,
}

/// Ranges of equal keys in `items[range]`.
fn groups(
    items: &[(u64, u64)],
    range: Range<usize>,
    key: impl Fn(u64) -> u64,
) -> Result<Vec<(u64, Range<usize>)>> {
    let mut groups: Vec<(u64, Range<usize>)> = Vec::new();
    for i in range {
        let key = key(items[i].0);
        match groups.last_mut() {
            Some((last, range)) if *last == key => range.end = i + 1,
            _ => memory::push(&mut groups, (key, i..i + 1))?,
        }
    }
    Ok(groups)
}

impl Axis {
    fn new(indices: &[i64], extent: u64, chunk: u64, block: u64) -> Result<Axis> {
        let mut items = memory::with_capacity(indices.len())?;
        for (position, &index) in indices.iter().enumerate() {
            let index = u64::try_from(index).ok().filter(|&index| index < extent);
            let index = index.ok_or(Error::new(ErrorKind::InvalidIndex, OUTSIDE))?;
            items.push((index, position as u64)); // widening
        }
        items.sort_unstable();
        let chunks = groups(&items, 0..items.len(), |index| index / chunk.max(1))?;
        let chunks = chunks.into_iter().map(|(chunk_at, range)| {
            let blocks = groups(&items, range.clone(), |index| index % chunk.max(1) / block.max(1))?;
            Ok(AxisChunk { chunk: chunk_at, items: range, blocks })
        });
        let chunks = memory::try_collect(chunks)?;
        Ok(Axis { items, chunks })
    }

    /// Number of different indices.
    fn distinct(&self, range: &Range<usize>) -> u64 {
        self.items[range.clone()].chunk_by(|a, b| a.0 == b.0).count() as u64 // widening
    }
}

/// The outer product of lists of indices.
pub struct Selection {
    axes: Vec<Axis>,
}

impl Selection {
    /// One list per dimension.
    ///
    /// # Errors
    ///
    /// `InvalidIndex` for indices outside of the array, `InvalidParam` for another number of lists than dimensions, or
    /// none.
    pub fn new(geometry: &Geometry, lists: &[&[i64]]) -> Result<Selection> {
        let fits = lists.len() == geometry.ndim() && !lists.is_empty();
        require(fits, "wrong number of dimensions")?;
        let axes = lists.iter().enumerate().map(|(i, list)| {
            Axis::new(list, geometry.shape()[i], geometry.chunkshape()[i], geometry.blockshape()[i])
        });
        Ok(Selection { axes: axes.collect::<Result<_>>()? })
    }

    fn is_empty(&self) -> bool {
        self.axes.iter().any(|axis| axis.items.is_empty())
    }

    /// Fails unless all indices are inside of an array that may have got another shape since, or is another one.
    fn check(&self, geometry: &Geometry) -> Result<()> {
        require(self.axes.len() == geometry.ndim(), "a selection of an array of other dimensions")?;
        let mut axes = self.axes.iter().zip(geometry.shape());
        let inside = axes.all(|(axis, &extent)| axis.items.last().is_none_or(|last| last.0 < extent));
        ensure(inside, ErrorKind::InvalidIndex, OUTSIDE)
    }

    /// A grid with as many cells in each dimension as `count` says.
    fn grid(&self, count: impl Fn(usize) -> usize) -> Region {
        let ndim = self.axes.len();
        let mut counts = [1; MAX_DIM];
        (0..ndim).for_each(|i| counts[i] = count(i) as u64); // widening
        Region::new(&[0; MAX_DIM][..ndim], &counts[..ndim])
    }

    fn chunks(&self) -> Region {
        self.grid(|i| self.axes[i].chunks.len())
    }

    /// The number of the chunk `at`, which counts the chunks of each dimension that are met; `usize::MAX`, which is that
    /// of no chunk, for one that 32 bits cannot hold.
    fn nchunk(&self, geometry: &Geometry, at: &Extents) -> usize {
        let strides = &geometry.chunk_grid().strides;
        let axes = self.axes.iter().enumerate();
        let number = axes.map(|(i, axis)| axis.chunks[nth(at[i])].chunk * strides[i]).sum::<u64>();
        usize::try_from(number).unwrap_or(usize::MAX)
    }
}

/// A position in a list.
fn nth(n: u64) -> usize {
    usize::try_from(n).expect("counts things in memory")
}

/// The part of a selection in one chunk.
struct ChunkPart<'a> {
    selection: &'a Selection,
    geometry: &'a Geometry,
    blocks: &'a Blocks<'a>,
    /// Strides in bytes of the buffer of whoever reads or writes.
    buffer_strides: &'a Extents,
    nchunk: usize,
    /// Which of its chunks, for each dimension.
    at: Extents,
    /// A cell for each touched block: which of those that are touched it is, in each dimension.
    grid: Region,
}

impl<'a> ChunkPart<'a> {
    fn new(
        selection: &'a Selection,
        geometry: &'a Geometry,
        blocks: &'a Blocks<'a>,
        buffer_strides: &'a Extents,
        at: Extents,
    ) -> ChunkPart<'a> {
        let nchunk = selection.nchunk(geometry, &at);
        let grid = selection.grid(|i| selection.axes[i].chunks[nth(at[i])].blocks.len());
        ChunkPart { selection, geometry, blocks, buffer_strides, nchunk, at, grid }
    }

    fn axis(&self, i: usize) -> (&Axis, &AxisChunk) {
        let axis = &self.selection.axes[i];
        (axis, &axis.chunks[nth(self.at[i])])
    }

    fn ndim(&self) -> usize {
        self.geometry.ndim()
    }

    /// In dimension `i`, where the touched block `cell` is in its chunk, and which items are in it.
    fn along(&self, cell: &Extents, i: usize) -> &(u64, Range<usize>) {
        &self.axis(i).1.blocks[nth(cell[i])]
    }

    /// Number of the touched block `cell`.
    fn nblock(&self, cell: &Extents) -> usize {
        let mut at = [0; MAX_DIM];
        (0..self.ndim()).for_each(|i| at[i] = self.along(cell, i).0);
        self.blocks.nblock(&at)
    }

    /// How many items of the touched block `cell` are selected.
    fn nitems(&self, cell: &Extents) -> usize {
        (0..self.ndim()).map(|i| self.along(cell, i).1.len()).product()
    }

    /// Index within its block of item `n` of dimension `i`.
    fn offset(&self, i: usize, n: usize) -> u64 {
        self.axis(i).0.items[n].0 % self.geometry.chunkshape()[i] % self.geometry.blockshape()[i]
    }

    /// The bytes of the touched block `cell` from the first selected item to the last one.
    fn span(&self, cell: &Extents) -> Range<usize> {
        let sum = |end: &dyn Fn(&Range<usize>) -> usize| -> u64 {
            let offset = |i: usize| self.offset(i, end(&self.along(cell, i).1));
            (0..self.ndim()).map(|i| offset(i) * self.blocks.strides[i]).sum()
        };
        let (first, last) = (sum(&|range| range.start), sum(&|range| range.end - 1));
        nth(first)..nth(last) + self.blocks.typesize
    }

    /// Calls `copy` with the place in the block and in the buffer, and the length in bytes, of each run of
    /// selected items of the touched block `cell`.
    fn for_each_run(
        &self,
        cell: &Extents,
        copy: &mut dyn FnMut(usize, usize, usize) -> Result<()>,
    ) -> Result<()> {
        self.runs(cell, 0, (0, 0), copy)
    }

    fn runs(
        &self,
        cell: &Extents,
        i: usize,
        (from, to): (u64, u64),
        copy: &mut dyn FnMut(usize, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let (block_stride, buffer_stride) = (self.blocks.strides[i], self.buffer_strides[i]);
        let range = &self.along(cell, i).1;
        let items = &self.axis(i).0.items[range.clone()];
        let block_start = items.first().map_or(0, |first| first.0 - self.offset(i, range.start));
        let offset = |index: u64| index - block_start;
        if i + 1 < self.ndim() {
            for &(index, position) in items {
                let at = (from + offset(index) * block_stride, to + position * buffer_stride);
                self.runs(cell, i + 1, at, copy)?;
            }
            return Ok(());
        }
        let dense = buffer_stride == self.blocks.typesize as u64; // widening
        let neighbours = |a: &(u64, u64), b: &(u64, u64)| dense && b.0 == a.0 + 1 && b.1 == a.1 + 1;
        for run in items.chunk_by(neighbours) {
            let (index, position) = run[0];
            let len = run.len() * self.blocks.typesize;
            copy(nth(from + offset(index) * block_stride), nth(to + position * buffer_stride), len)?;
        }
        Ok(())
    }

    /// Copies the selected items of a chunk to `dest`.
    ///
    /// # Safety
    ///
    /// Nobody else touches their places in `dest` meanwhile, which are all different.
    unsafe fn read(&self, dec: &Decoding<'_>, bytes: &[u8], dest: &DisjointParts<'_>) -> Result<()> {
        let header = ChunkHeader::read(bytes)?;
        let chunk = BlockReader::open(dec, &header, bytes)?;
        let plain = chunk.plain(self.blocks.typesize);
        if plain.is_some() { self.blocks.check_size(&header) } else { self.blocks.check(&header) }?;
        chunk.threads_for(self.grid.len()).for_each(self.grid.len(), &|tid, n| {
            // SAFETY: the caller's promise.
            unsafe { self.read_block(tid, (&chunk, plain), &self.grid.cell(n), dest) }
        })
    }

    /// Copies the selected items of the touched block `cell` of an opened chunk to `dest`, as task `tid`; `plain` is
    /// the [plain](BlockReader::plain) form of the chunk.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    unsafe fn read_block(
        &self,
        tid: usize,
        (chunk, plain): (&BlockReader<'_>, Option<Plain<'_>>),
        cell: &Extents,
        dest: &DisjointParts<'_>,
    ) -> Result<()> {
        let nblock = self.nblock(cell);
        // From bytes of the block, the first of which is the one at `start`.
        let copy_from = |bytes: &[u8], start: usize| {
            self.for_each_run(cell, &mut |from, to, len| {
                // SAFETY: the caller's promise.
                let part = unsafe { dest.part(to, len) };
                part.copy_from_slice(&bytes[from - start..][..len]);
                Ok(())
            })
        };
        match plain {
            Some(Plain::Bytes(bytes)) => return copy_from(&bytes[nblock * self.blocks.blocksize..], 0),
            Some(Plain::Constant) => {
                // SAFETY: the caller's promise.
                let mut fill = |_: usize, to, len| chunk.fill(unsafe { dest.part(to, len) });
                return self.for_each_run(cell, &mut fill);
            }
            None => (),
        }
        let span = self.span(cell);
        let each = |run: &mut dyn FnMut(Range<usize>)| {
            let copy = &mut |from: usize, _, len: usize| {
                run(from..from + len);
                Ok(())
            };
            self.for_each_run(cell, copy).expect("this copies nothing");
        };
        let (start, end) = (span.start, span.end);
        let runs = Runs { start, end, granule: self.blocks.typesize, each: &each };
        chunk.read_runs(tid, nblock, &runs, |decoded| match decoded {
            Decoded::Window(window) => copy_from(window, start),
            Decoded::Planes(planes) if span.len() <= self.nitems(cell) * ITEM_WORTH => {
                scratch::with_len(span.len(), |window| {
                    planes.put(start, window);
                    copy_from(window, start)
                })
            }
            Decoded::Planes(planes) => self.for_each_run(cell, &mut |from, to, len| {
                // SAFETY: the caller's promise.
                planes.put(from, unsafe { dest.part(to, len) });
                Ok(())
            }),
        })
    }

    /// Whether all items of the touched block `cell` are selected.
    fn covers_block(&self, cell: &Extents) -> bool {
        let distinct = |i: usize| self.axis(i).0.distinct(&self.along(cell, i).1);
        self.geometry.blockshape().iter().enumerate().all(|(i, &extent)| distinct(i) == extent)
    }

    /// Whether the whole chunk is selected. One with padding never is: unlike for slices, the C library keeps what
    /// the padding holds, which shows when the array grows.
    fn covers_chunk(&self) -> bool {
        (0..self.ndim()).all(|i| {
            let (axis, chunk) = self.axis(i);
            axis.distinct(&chunk.items) == self.geometry.extchunkshape()[i]
        })
    }
}

/// The strides in bytes of the buffer of whoever reads or writes: a C-order buffer of shape `shape` and `len` bytes,
/// with a place of its own for each position of the selection.
///
/// # Errors
///
/// `InvalidParam` if it has not.
fn strides_of(selection: &Selection, shape: &[u64], len: usize, typesize: usize) -> Result<Extents> {
    let counts = || selection.axes.iter().map(|axis| axis.items.len() as u64); // widening
    let fits = shape.len() == selection.axes.len() && counts().zip(shape).all(|(count, room)| count <= *room);
    require(fits, "selection larger than the shape of the buffer")?;
    let unit = typesize as u64; // widening
    let strides = strides(shape, unit);
    let needed = strided_len(counts(), &strides, unit);
    require(needed.is_some_and(|needed| needed <= len), "buffer shorter than the selection")?;
    Ok(strides)
}

/// Copies the selected items to `dest`, a C-order buffer of shape `dest_shape`.
///
/// If a process that does not lock changes the array meanwhile, they are read again as they are then.
///
/// # Errors
///
/// `InvalidParam` if `dest` is too short, or its shape smaller than the selection in any dimension, `InvalidIndex` if
/// the array lost selected items meanwhile, `Failure` for chunks that cannot be read.
pub fn read(
    schunk: &Schunk,
    geometry: &Geometry,
    selection: &Selection,
    dest: &mut [u8],
    dest_shape: &[u64],
    reading: &Reading<'_>,
) -> Result<()> {
    let numbers = |geometry: &Geometry| {
        let chunks = selection.chunks();
        memory::collect((0..chunks.len()).map(|n| selection.nchunk(geometry, &chunks.cell(n))))
    };
    read_undisturbed(schunk, geometry, reading, numbers, |stored, geometry| {
        selection.check(geometry)?;
        read_once(stored, schunk.typesize(), geometry, selection, dest, dest_shape, reading)
    })
}

fn read_once(
    stored: &StoredChunks<'_>,
    typesize: usize,
    geometry: &Geometry,
    selection: &Selection,
    dest: &mut [u8],
    dest_shape: &[u64],
    reading: &Reading<'_>,
) -> Result<()> {
    let blocks = Blocks::new(geometry, typesize)?;
    if selection.is_empty() {
        return Ok(());
    }
    let strides = strides_of(selection, dest_shape, dest.len(), typesize)?;
    let dest = DisjointParts::new(dest);
    let chunks = selection.chunks();
    let part = |n: usize| ChunkPart::new(selection, geometry, &blocks, &strides, chunks.cell(n));
    slice::for_each_chunk(reading, chunks.len(), &|n| Ok(part(n).nchunk), &|n, dec| {
        let part = part(n);
        let read = |dec: &Decoding<'_>, bytes: &[u8]| {
            // SAFETY: each position of the selection belongs to one chunk, and has a place of its own in `dest`.
            unsafe { part.read(dec, bytes, &dest) }
        };
        slice::with_part(stored, &blocks, part.nchunk, part.grid.len(), dec, read)
            .map_err(Error::to_failure_unless_lock)
    })
}

/// Gives the selected items the values in `src`, a C-order buffer of shape `src_shape`. Of indices that occur more than
/// once the last one counts.
///
/// It neither locks the frame nor refreshes the geometry: see [the module](super).
///
/// # Errors
///
/// `InvalidParam` if `src` is too short, or its shape smaller than the selection in any dimension, `InvalidIndex` if
/// the array has not all selected items, before anything is changed; `Failure` for chunks that cannot be read,
/// compressed or replaced.
pub fn write(
    schunk: &mut Schunk,
    geometry: &Geometry,
    selection: &Selection,
    src: &[u8],
    src_shape: &[u64],
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<()> {
    write_to(schunk, geometry, selection, Items { bytes: src, shape: src_shape }, reading, writing)
}

/// [`write()`] to a super-chunk that may be shared.
pub(crate) fn write_to(
    schunk: &mut impl Access,
    geometry: &Geometry,
    selection: &Selection,
    src: Items<'_>,
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<()> {
    let blocks = blocks_of(schunk, geometry)?;
    selection.check(geometry)?;
    if selection.is_empty() {
        return Ok(());
    }
    let strides = strides_of(selection, src.shape, src.bytes.len(), blocks.typesize)?;
    let chunks = selection.chunks();
    let mut pending = Pending::default();
    for n in 0..chunks.len() {
        let part = ChunkPart::new(selection, geometry, &blocks, &strides, chunks.cell(n));
        let touched = memory::collect((0..part.grid.len()).map(|n| part.nblock(&part.grid.cell(n))))?;
        let cell = |nblock| part.grid.cell(touched.binary_search(&nblock).expect("a touched block"));
        let overlay = Overlay {
            blocks: &blocks,
            nchunk: part.nchunk,
            covers_chunk: part.covers_chunk(),
            touched: &touched,
            covers_block: &|nblock| part.covers_block(&cell(nblock)),
            apply_block: &|nblock, block| {
                part.for_each_run(&cell(nblock), &mut |to, from, len| {
                    block[to..to + len].copy_from_slice(&src.bytes[from..from + len]);
                    Ok(())
                })
            },
            apply_shuffled: &|_, _| Ok(false),
        };
        overlay.store(schunk, &mut pending, reading, writing)?;
    }
    pending.flush(schunk)
}

/// Copies the items with the C-order numbers `coords`, in any order and as often as they occur, to `dest`.
///
/// If a process that does not lock changes the array meanwhile, they are read again as they are then.
///
/// # Errors
///
/// `InvalidParam` for items outside of the array, arrays without dimensions, and if `dest` is too short: nothing is
/// written then; else those of [`Schunk::get_sparse`].
pub fn read_sparse(
    schunk: &Schunk,
    geometry: &Geometry,
    coords: &[i64],
    dest: &mut [u8],
    reading: &Reading<'_>,
) -> Result<()> {
    require(geometry.ndim() > 0, "no dimensions")?;
    if coords.is_empty() {
        return Ok(());
    }
    let numbers = |geometry: &Geometry| {
        let items = storage_items(geometry, coords).unwrap_or_default();
        chunk_numbers(&items, geometry.extchunknitems())
    };
    read_undisturbed(schunk, geometry, reading, numbers, |stored, geometry| {
        schunk.get_sparse_from(stored, &storage_items(geometry, coords)?, dest, reading)
    })
}

/// The places in the super-chunk, in items, of the items with the C-order numbers `coords`.
fn storage_items(geometry: &Geometry, coords: &[i64]) -> Result<Vec<i64>> {
    let ndim = geometry.ndim();
    let (chunk_grid, block_grid) = (geometry.chunk_grid(), geometry.block_grid());
    let chunk_strides = strides(&chunk_grid.extents[..ndim], geometry.extchunknitems());
    let block_strides = strides(&block_grid.extents[..ndim], geometry.blocknitems());
    let item_strides = strides(geometry.blockshape(), 1);
    let outside = Error::new(ErrorKind::InvalidParam, "item outside of the array");
    // With their padding, the chunks of a damaged array may have more items than there are numbers.
    let all = geometry.nchunks().checked_mul(geometry.extchunknitems());
    require(all.is_some_and(|n| i64::try_from(n).is_ok()), "array too large")?;
    let storage_item = |&coord: &i64| {
        let mut rest = u64::try_from(coord).ok().filter(|&n| n < geometry.nitems()).ok_or(outside)?;
        let mut item = 0;
        for i in (0..ndim).rev() {
            let (chunk, block) = (geometry.chunkshape()[i], geometry.blockshape()[i]);
            let x = rest % geometry.shape()[i];
            rest /= geometry.shape()[i];
            let within = x % chunk;
            item += x / chunk * chunk_strides[i]
                + within / block * block_strides[i]
                + within % block * item_strides[i];
        }
        i64::try_from(item).map_err(|_| outside)
    };
    memory::try_collect(coords.iter().map(storage_item))
}
