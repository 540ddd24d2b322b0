//! The blocks of a chunk as bytes: which of them a box meets, and where its parts are.

use super::copy_buffer::BoxCopy;
use super::shape::{Extents, Geometry, Region, dot, strides};
use crate::chunk::{BlockReader, Decoded, DisjointParts, Plain, Runs, ShuffledBlock};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::geometry::MAX_DIM;
use crate::memory;
use crate::schunk::scratch;
use std::ops::Range;

/// Rows of at least this many items are shuffled one by one.
const LONG_ROW: usize = 32;

/// To put a run of items together by itself costs as much as this many more bytes of a longer run.
const RUN_WORTH: usize = 512;
/// The same for a single item.
pub(super) const ITEM_WORTH: usize = 64;

/// Runs of up to this many bytes of a chunk whose items are all alike are made once and copied then.
const SHORT_FILL: usize = 1024;

/// Blocks as bytes: what reading and writing a chunk need to know of the geometry.
pub(super) struct Blocks<'a> {
    geometry: &'a Geometry,
    /// Bytes between neighbours within a block.
    pub(super) strides: Extents,
    pub(super) typesize: usize,
    /// Bytes of a block.
    pub(super) blocksize: usize,
    /// Bytes of a chunk.
    pub(super) chunksize: usize,
}

/// Where a box is in the buffer of whoever reads or writes it, in bytes.
#[derive(Clone, Copy)]
pub(super) struct InBuffer<'a> {
    /// From one item to its neighbour in each dimension.
    pub(super) strides: &'a Extents,
    /// From the start of the buffer to the first item of the box.
    pub(super) origin: u64,
}

/// Where a part of a box is in its block and in the buffer.
struct Piece {
    nblock: usize,
    /// Bytes from the start of the block.
    from: usize,
    /// Bytes up to the end of the last item, from the start of the block.
    to: usize,
    /// Bytes from the start of the buffer.
    at: usize,
    extents: Extents,
}

/// A position as an index of memory.
pub(super) fn size(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::new(ErrorKind::InvalidParam, "position beyond memory"))
}

impl<'a> Blocks<'a> {
    /// The blocks of the chunks of an array.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for chunks above 2 GiB.
    pub(super) fn new(geometry: &'a Geometry, typesize: usize) -> Result<Blocks<'a>> {
        let chunksize = geometry.chunk_nbytes(typesize)?;
        Ok(Blocks {
            geometry,
            strides: strides(geometry.blockshape(), typesize as u64), // widening
            typesize,
            blocksize: size(geometry.blocknitems())? * typesize,
            chunksize,
        })
    }

    /// Number of blocks of a chunk.
    pub(super) fn nblocks(&self) -> usize {
        self.chunksize.checked_div(self.blocksize).unwrap_or(0)
    }

    /// The number of the block at a place in the grid.
    pub(super) fn nblock(&self, at: &Extents) -> usize {
        let grid = self.geometry.block_grid();
        usize::try_from(dot(&at[..self.geometry.ndim()], &grid.strides)).expect("below 2^31")
    }

    /// The place of a block in the grid.
    fn at(&self, nblock: usize) -> Extents {
        let ndim = self.geometry.ndim();
        let grid = self.geometry.block_grid();
        Region::new(&[0; MAX_DIM][..ndim], &grid.extents[..ndim]).cell(nblock)
    }

    /// The numbers of the blocks that `region` meets, ascending.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn touched(&self, region: &Region) -> Result<Vec<usize>> {
        let cells = region.cells(self.geometry.blockshape());
        memory::collect((0..cells.len()).map(|n| self.nblock(&cells.cell(n))))
    }

    /// Whether `region` holds all items of a block.
    pub(super) fn covers(&self, region: &Region, nblock: usize) -> bool {
        let part = region.within(&self.at(nblock), self.geometry.blockshape());
        self.geometry.blockshape().iter().enumerate().all(|(i, &extent)| part.extent(i) == extent)
    }

    /// Whether `region` holds items of a block.
    pub(super) fn meets(&self, region: &Region, nblock: usize) -> bool {
        !region.within(&self.at(nblock), self.geometry.blockshape()).is_empty()
    }

    /// The part of `region`, which counts from the start of the chunk and is at `place` of a buffer, in block `at` of
    /// the grid.
    fn piece(&self, region: &Region, at: &Extents, place: InBuffer<'_>) -> Result<Piece> {
        let ndim = self.geometry.ndim();
        let blockshape = self.geometry.blockshape();
        let part = region.within(at, blockshape);
        let from = dot(&part.start[..ndim], &self.strides);
        let mut to = self.typesize as u64; // widening
        let mut there = place.origin;
        let mut extents = [1; MAX_DIM];
        for i in 0..ndim {
            extents[i] = part.extent(i);
            to += (part.stop[i] - 1) * self.strides[i];
            there += (at[i] * blockshape[i] + part.start[i] - region.start[i]) * place.strides[i];
        }
        Ok(Piece { nblock: self.nblock(at), from: size(from)?, to: size(to)?, at: size(there)?, extents })
    }

    /// Fails unless `header` is that of a chunk with these blocks.
    pub(super) fn check(&self, header: &ChunkHeader) -> Result<()> {
        self.check_size(header)?;
        let agree = header.blocksize == self.blocksize;
        ensure(agree, ErrorKind::Failure, "blocks of another size than the array's")
    }

    /// Fails unless `header` is that of a chunk of the array's size, whose blocks may be others. That of a plain chunk
    /// does not show how large they are.
    pub(super) fn check_size(&self, header: &ChunkHeader) -> Result<()> {
        let agree = header.nbytes == self.chunksize;
        ensure(agree, ErrorKind::Failure, "chunk of another size than the array's")
    }

    /// Whether the runs of `copy` are so short, and so close to each other within `span` bytes of a block, that all of
    /// these are put together faster than the runs alone.
    fn are_dense(&self, copy: &BoxCopy, span: usize) -> bool {
        let worth = if copy.run() == self.typesize { ITEM_WORTH } else { RUN_WORTH };
        span <= copy.nruns() * worth
    }

    /// Whether `region` of a chunk is all of it, and lies in a buffer with these strides as it is stored: block after
    /// block, each in C order, with no padding between them.
    pub(super) fn is_stored_in_order(&self, region: &Region, buffer_strides: &Extents) -> bool {
        let mut stride = self.typesize as u64; // widening
        let mut is_cut = false;
        let shapes = self.geometry.chunkshape().iter().zip(self.geometry.blockshape()).enumerate();
        shapes.rev().all(|(i, (&extent, &in_block))| {
            // Along the last axis that is cut into blocks, one block follows the other; before it, blocks are 1 thick.
            let is_next = if is_cut { in_block == 1 } else { extent.checked_rem(in_block) == Some(0) };
            is_cut |= in_block != extent;
            let is_there = extent == 1 || buffer_strides[i] == stride;
            stride *= extent;
            is_next && is_there && region.extent(i) == extent
        })
    }

    /// Copies the items of `region` of an opened chunk to `place` of `dest`.
    ///
    /// With `past_cache`, the whole destination is too large for the cache.
    ///
    /// # Safety
    ///
    /// Nobody else touches these bytes of `dest` meanwhile.
    pub(super) unsafe fn read(
        &self,
        chunk: &BlockReader<'_>,
        region: &Region,
        dest: &DisjointParts<'_>,
        place: InBuffer<'_>,
        past_cache: bool,
    ) -> Result<()> {
        let plain = chunk.plain(self.typesize);
        if plain.is_some() { self.check_size(chunk.header()) } else { self.check(chunk.header()) }?;
        if plain == Some(Plain::Constant) {
            // SAFETY: the caller's promise.
            return unsafe { self.fill(chunk, region, dest, place) };
        }
        let ndim = self.geometry.ndim();
        let cells = region.cells(self.geometry.blockshape());
        chunk.threads_for(cells.len()).for_each(cells.len(), &|tid, n| {
            let piece = self.piece(region, &cells.cell(n), place)?;
            let mut copy = BoxCopy::of_item(self.typesize);
            copy.extend(&piece.extents[..ndim], &self.strides, place.strides)?;
            if past_cache {
                copy.write_past_cache();
            }
            // SAFETY: the caller's promise; each block has a part of the region of its own.
            unsafe { self.read_piece(tid, (chunk, plain), &piece, &copy, dest) }
        })
    }

    /// Fills `region` at `place` of `dest` with the items of a chunk that are all alike.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    unsafe fn fill(
        &self,
        chunk: &BlockReader<'_>,
        region: &Region,
        dest: &DisjointParts<'_>,
        place: InBuffer<'_>,
    ) -> Result<()> {
        let axes = || (0..self.geometry.ndim()).rev().map(|i| (region.extent(i), place.strides[i]));
        let mut copy = BoxCopy::of_item(self.typesize);
        axes().try_for_each(|(count, stride)| copy.repeat(count, stride, stride))?;
        let (run, at) = (copy.run(), size(place.origin)?);
        if run > SHORT_FILL {
            // SAFETY: the caller's promise.
            return unsafe { copy.for_each_run(dest, at, &mut |_, runs| chunk.fill(runs)) };
        }
        // One run, which all are copies of.
        let mut copies = BoxCopy::of_item(self.typesize);
        for (count, stride) in axes() {
            let is_in_run = stride < run as u64; // widening
            copies.repeat(count, if is_in_run { stride } else { 0 }, stride)?;
        }
        scratch::with_len(run, |first| {
            chunk.fill(first)?;
            // SAFETY: the caller's promise.
            unsafe { copies.copy_shared(first, dest, at) }
        })
    }

    /// Copies the items of `piece` of an opened chunk to `dest`, as `copy` says; `plain` is the
    /// [plain](BlockReader::plain) form of the chunk.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(always)] // for one caller; a call shows with single items
    unsafe fn read_piece(
        &self,
        tid: usize,
        (chunk, plain): (&BlockReader<'_>, Option<Plain<'_>>),
        piece: &Piece,
        copy: &BoxCopy,
        dest: &DisjointParts<'_>,
    ) -> Result<()> {
        if let Some(Plain::Bytes(bytes)) = plain {
            let block = &bytes[piece.nblock * self.blocksize..][piece.from..];
            // SAFETY: the caller's promise.
            return unsafe { copy.copy_shared(block, dest, piece.at) };
        }
        let each = |run: &mut dyn FnMut(Range<usize>)| copy.for_each_source(piece.from, run);
        let (start, end) = (piece.from, piece.to);
        let runs = Runs { start, end, granule: self.typesize, each: &each };
        if copy.single_run() == Some(end - start) && !chunk.has_planes(piece.nblock, &runs) {
            // SAFETY: as above.
            return chunk.read(tid, piece.nblock, start..end, unsafe { dest.part(piece.at, end - start) });
        }
        chunk.read_runs(tid, piece.nblock, &runs, |decoded| match decoded {
            // SAFETY: as above.
            Decoded::Window(bytes) => unsafe { copy.copy_shared(bytes, dest, piece.at) },
            // Writing past the cache while other memory is read into it is slower than the one after the other.
            Decoded::Planes(planes) if copy.is_past_cache() || self.are_dense(copy, end - start) => {
                scratch::with_len(end - start, |window| {
                    planes.put(start, window);
                    // SAFETY: as above.
                    unsafe { copy.copy_shared(window, dest, piece.at) }
                })
            }
            Decoded::Planes(planes) => {
                let mut put = |(from, step): (usize, usize), dest: &mut [u8]| {
                    planes.put_runs(start + from, step, copy.run(), dest);
                    Ok(())
                };
                // SAFETY: as above.
                unsafe { copy.for_each_run(dest, piece.at, &mut put) }
            }
        })
    }

    /// Copies the items at `place` of `src` to the part of `region` in block `nblock`.
    pub(super) fn gather(
        &self,
        region: &Region,
        nblock: usize,
        src: &[u8],
        place: InBuffer<'_>,
        block: &mut [u8],
    ) -> Result<()> {
        let piece = self.piece(region, &self.at(nblock), place)?;
        let extents = &piece.extents[..self.geometry.ndim()];
        let mut copy = BoxCopy::of_item(self.typesize);
        copy.extend(extents, place.strides, &self.strides)?;
        let short = Error::new(ErrorKind::InvalidParam, "box outside of its buffer");
        copy.copy(src.get(piece.at..).ok_or(short)?, &mut block[piece.from..])
    }

    /// As [`gather`](Self::gather), with everything else in the block zeros. Returns whether it was done: short rows
    /// are better gathered first and shuffled then.
    pub(super) fn gather_shuffled(
        &self,
        region: &Region,
        nblock: usize,
        src: &[u8],
        place: InBuffer<'_>,
        block: &mut ShuffledBlock<'_>,
    ) -> Result<bool> {
        if !block.takes(self.typesize) || !self.meets(region, nblock) {
            return Ok(false);
        }
        let piece = self.piece(region, &self.at(nblock), place)?;
        let extents = &piece.extents[..self.geometry.ndim()];
        let mut copy = BoxCopy::of_item(self.typesize);
        copy.extend(extents, place.strides, &self.strides)?;
        if copy.run() < LONG_ROW * self.typesize {
            return Ok(false);
        }
        if !self.covers(region, nblock) {
            block.clear();
        }
        let short = Error::new(ErrorKind::InvalidParam, "box outside of its buffer");
        let src = src.get(piece.at..).ok_or(short)?;
        copy.for_each_row(src, &mut |at, row| block.put(piece.from + at, row))?;
        Ok(true)
    }
}
