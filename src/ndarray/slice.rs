//! Boxes of items, read and written.
//!
//! A read decodes the blocks that the box meets, each once: straight into the destination where a block's part of the
//! box is consecutive there, else into a small buffer from which rows are copied. A write compresses anew only the
//! blocks that it changes, as long as the chunk's blocks are independent of each other.

use super::copy_buffer::BoxCopy;
use super::shape::{Extents, Geometry, Region, dot, strides};
use crate::chunk::{self, BlockReader, Decoding, DisjointParts, Plain, Source, Threads};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::{BasicHeader, ChunkHeader};
use crate::format::consts::special;
use crate::format::geometry::MAX_DIM;
use crate::schunk::{Reading, Schunk, Writing, patch, scratch};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks as bytes: what reading and writing a chunk need to know of the geometry.
pub(super) struct Blocks<'a> {
    geometry: &'a Geometry,
    grid: Extents,
    grid_strides: Extents,
    /// Bytes between neighbours within a block.
    pub(super) strides: Extents,
    pub(super) typesize: usize,
    blocksize: usize,
    chunksize: usize,
}

/// Where a part of a box is in its block and in the other buffer.
struct Piece {
    nblock: usize,
    /// Bytes from the start of the block.
    from: usize,
    /// Bytes up to the end of the last item, from the start of the block.
    to: usize,
    /// Bytes from the start of the other buffer.
    at: usize,
    extents: Extents,
}

fn size(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::new(ErrorKind::InvalidParam, "position beyond memory"))
}

impl<'a> Blocks<'a> {
    /// # Errors
    ///
    /// `InvalidParam` for chunks above 2 GiB.
    pub(super) fn new(geometry: &'a Geometry, typesize: usize) -> Result<Blocks<'a>> {
        let chunksize = geometry.chunk_nbytes(typesize)?;
        let grid = geometry.block_grid();
        Ok(Blocks {
            geometry,
            grid,
            grid_strides: strides(&grid[..geometry.ndim()], 1),
            strides: strides(geometry.blockshape(), typesize as u64), // widening
            typesize,
            blocksize: size(geometry.blocknitems())? * typesize,
            chunksize,
        })
    }

    /// Bytes of a chunk.
    pub(super) fn chunksize(&self) -> usize {
        self.chunksize
    }

    pub(super) fn nblock(&self, at: &Extents) -> usize {
        usize::try_from(dot(&at[..self.geometry.ndim()], &self.grid_strides)).expect("below 2^31")
    }

    /// The part of `region`, which counts from the start of the chunk, in block `at` of the grid. In the other buffer
    /// the region begins at `origin` bytes.
    fn piece(&self, region: &Region, at: &Extents, other: &Extents, origin: u64) -> Result<Piece> {
        let ndim = self.geometry.ndim();
        let blockshape = self.geometry.blockshape();
        let part = region.within(at, blockshape);
        let from = dot(&part.start[..ndim], &self.strides);
        let mut to = self.typesize as u64; // widening
        let mut there = origin;
        let mut extents = [1; MAX_DIM];
        for i in 0..ndim {
            extents[i] = part.extent(i);
            to += (part.stop[i] - 1) * self.strides[i];
            there += (at[i] * blockshape[i] + part.start[i] - region.start[i]) * other[i];
        }
        Ok(Piece { nblock: self.nblock(at), from: size(from)?, to: size(to)?, at: size(there)?, extents })
    }

    /// Fails unless `header` is that of a chunk with these blocks.
    pub(super) fn check(&self, header: &ChunkHeader, plain: bool) -> Result<()> {
        ensure(
            header.nbytes == self.chunksize,
            ErrorKind::Failure,
            "chunk of another size than the array's",
        )?;
        let agree = plain || header.blocksize == self.blocksize;
        ensure(agree, ErrorKind::Failure, "blocks of another size than the array's")
    }

    /// Copies the items of `region` of an opened chunk to `dest`, where they begin at `origin` bytes.
    ///
    /// # Safety
    ///
    /// Nobody else touches these bytes of `dest` meanwhile.
    unsafe fn read(
        &self,
        chunk: &BlockReader<'_>,
        region: &Region,
        dest: &DisjointParts<'_>,
        other: &Extents,
        origin: u64,
        threads: Threads<'_>,
    ) -> Result<()> {
        let ndim = self.geometry.ndim();
        let plain = chunk.plain();
        self.check(chunk.header(), plain.is_some())?;
        if plain == Some(Plain::Constant) {
            let copy = BoxCopy::new(self.typesize, &region.extents()[..ndim], other, other)?;
            // SAFETY: the caller's promise.
            return unsafe { copy.for_each_run(dest, size(origin)?, &mut |run| chunk.fill(run)) };
        }
        let cells = region.cells(self.geometry.blockshape());
        for_each(threads, cells.len(), &|n| {
            let piece = self.piece(region, &cells.cell(n), other, origin)?;
            let copy = BoxCopy::new(self.typesize, &piece.extents[..ndim], &self.strides, other)?;
            if let Some(Plain::Bytes(bytes)) = plain {
                let block = &bytes[piece.nblock * self.blocksize..][piece.from..];
                // SAFETY: the caller's promise; each block has a part of the region of its own.
                return unsafe { copy.copy_shared(block, dest, piece.at) };
            }
            if copy.single_run() == Some(piece.to - piece.from) {
                let len = piece.to - piece.from;
                // SAFETY: as above.
                return chunk.read(piece.nblock, piece.from..piece.to, unsafe { dest.part(piece.at, len) });
            }
            scratch::with_len(piece.to - piece.from, |block| {
                chunk.read(piece.nblock, piece.from..piece.to, block)?;
                // SAFETY: as above.
                unsafe { copy.copy_shared(block, dest, piece.at) }
            })
        })
    }

    /// Copies items of `src`, where they begin at `origin` bytes, to `region` of `chunk`, the data of a whole chunk.
    pub(super) fn gather(
        &self,
        region: &Region,
        src: &[u8],
        other: &Extents,
        origin: u64,
        chunk: &mut [u8],
    ) -> Result<()> {
        let cells = region.cells(self.geometry.blockshape());
        for n in 0..cells.len() {
            let piece = self.piece(region, &cells.cell(n), other, origin)?;
            let block = &mut chunk[piece.nblock * self.blocksize..][..self.blocksize];
            self.gather_piece(&piece, src, other, block)?;
        }
        Ok(())
    }

    fn gather_piece(&self, piece: &Piece, src: &[u8], other: &Extents, block: &mut [u8]) -> Result<()> {
        let extents = &piece.extents[..self.geometry.ndim()];
        let copy = BoxCopy::new(self.typesize, extents, other, &self.strides)?;
        let short = Error::new(ErrorKind::InvalidParam, "box outside of its buffer");
        copy.copy(src.get(piece.at..).ok_or(short)?, &mut block[piece.from..])
    }
}

/// Calls `work` with 0 to `n - 1`, on several threads if there are.
pub(super) fn for_each(
    threads: Threads<'_>,
    n: usize,
    work: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    let Some((executor, ntasks)) = threads.for_blocks(n) else {
        return (0..n).try_for_each(work);
    };
    let next = AtomicUsize::new(0);
    let error: Mutex<Option<Error>> = Mutex::new(None);
    executor.run(ntasks.min(n), &|_| {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                return;
            }
            if let Err(found) = work(i) {
                error.lock().get_or_insert(found);
                next.store(n, Ordering::Relaxed);
            }
        }
    });
    error.into_inner().map_or(Ok(()), Err)
}

/// The chunks that a box meets.
pub(super) struct Chunks<'a> {
    geometry: &'a Geometry,
    region: Region,
    cells: Region,
    strides: Extents,
}

impl<'a> Chunks<'a> {
    /// The chunks that meet `region`, which lies inside of the array.
    pub(super) fn of(geometry: &'a Geometry, region: Region) -> Chunks<'a> {
        let grid = geometry.chunk_grid();
        Chunks {
            geometry,
            region,
            cells: region.cells(geometry.chunkshape()),
            strides: strides(&grid[..geometry.ndim()], 1),
        }
    }

    pub(super) fn len(&self) -> usize {
        if self.region.is_empty() { 0 } else { self.cells.len() }
    }

    /// The place of the `n`th chunk in the grid, and its number.
    pub(super) fn chunk(&self, n: usize) -> Result<(Extents, usize)> {
        let at = self.cells.cell(n);
        Ok((at, size(dot(&at[..self.geometry.ndim()], &self.strides))?))
    }

    /// The part of the box in chunk `at`, and its distance in bytes from the start of the box in a buffer with these
    /// strides.
    pub(super) fn part(&self, at: &Extents, other: &Extents) -> (Region, u64) {
        let chunkshape = self.geometry.chunkshape();
        let part = self.region.within(at, chunkshape);
        let mut origin = 0;
        for (i, &extent) in chunkshape.iter().enumerate() {
            origin += (at[i] * extent + part.start[i] - self.region.start[i]) * other[i];
        }
        (part, origin)
    }

    /// Whether `part` is all of chunk `at` that lies inside of the array.
    pub(super) fn covers(&self, at: &Extents, part: &Region) -> bool {
        let whole = Region::all(self.geometry).within(at, self.geometry.chunkshape());
        let ndim = self.geometry.ndim();
        part.start[..ndim] == whole.start[..ndim] && part.stop[..ndim] == whole.stop[..ndim]
    }
}

/// Whether chunks may be worked on in any order, by several threads.
fn unordered(reading: &Reading<'_>) -> bool {
    reading.visit.is_none() && reading.dec.postfilter.is_none()
}

/// Copies the items of `region`, which lies inside of the array, to the front of `dest`, a C-order buffer of shape
/// `dest_shape`.
///
/// # Errors
///
/// `InvalidParam` if `dest` is too short or chunks are above 2 GiB, `Failure` for chunks that cannot be read.
pub(crate) fn read(
    schunk: &Schunk,
    geometry: &Geometry,
    region: &Region,
    dest: &mut [u8],
    dest_shape: &[u64],
    reading: &Reading<'_>,
) -> Result<()> {
    let typesize = schunk.typesize();
    let blocks = Blocks::new(geometry, typesize)?;
    if region.is_empty() {
        return Ok(());
    }
    let other = strides(dest_shape, typesize as u64); // widening
    let dest = DisjointParts::new(dest);
    let chunks = Chunks::of(geometry, *region);
    let threads = reading.dec.threads;
    let by_chunk = unordered(reading) && chunks.len() >= threads.nthreads.max(2);
    let (outer, inner) = if by_chunk { (threads, Threads::default()) } else { (Threads::default(), threads) };
    let dec = Decoding { threads: inner, ..reading.dec };
    let one = |n: usize| {
        let (at, nchunk) = chunks.chunk(n)?;
        let (part, origin) = chunks.part(&at, &other);
        let read = |dec: &Decoding<'_>, bytes: &[u8]| {
            let header = ChunkHeader::read(bytes)?;
            let chunk = BlockReader::open(dec, &header, bytes)?;
            // SAFETY: each chunk, and so each call, has a part of the box of its own.
            unsafe { blocks.read(&chunk, &part, &dest, &other, origin, inner) }
        };
        with_part(schunk, &blocks, nchunk, part.cells(geometry.blockshape()).len(), &dec, read)
            .map_err(|e| failure(&e))
    };
    if by_chunk {
        return for_each(outer, chunks.len(), &one);
    }
    for n in 0..chunks.len() {
        reading.visit(chunks.chunk(n)?.1);
        one(n)?;
    }
    Ok(())
}

/// Opens chunk `nchunk` in the way that reads the fewest bytes if `touched` of its blocks are needed.
pub(super) fn with_part<R>(
    schunk: &Schunk,
    blocks: &Blocks<'_>,
    nchunk: usize,
    touched: usize,
    dec: &Decoding<'_>,
    read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
) -> Result<R> {
    ensure(nchunk < schunk.nchunks(), ErrorKind::Failure, "the array lacks a chunk")?;
    let nblocks = blocks.chunksize.checked_div(blocks.blocksize).unwrap_or(0);
    // Reading a chunk in one piece is cheaper than reading many blocks one by one.
    if touched * 2 > nblocks {
        schunk.with_chunk(nchunk, |bytes| read(dec, bytes))
    } else {
        schunk.with_lazy(nchunk, dec, read)
    }
}

/// The code for chunks that cannot be read or written, whatever the reason.
pub(super) fn failure(e: &Error) -> Error {
    match e.kind() {
        ErrorKind::Lock => *e,
        _ => Error::new(ErrorKind::Failure, e.what()),
    }
}

/// Gives the items of `region`, which lies inside of the array, the values at the front of `src`, a C-order buffer of
/// shape `src_shape`.
///
/// # Errors
///
/// `InvalidParam` if `src` is too short or chunks are above 2 GiB: nothing is changed then. `Failure` if a chunk cannot
/// be read, compressed or replaced: chunks with smaller numbers have their new values then.
pub(crate) fn write(
    schunk: &mut Schunk,
    geometry: &Geometry,
    region: &Region,
    src: &[u8],
    src_shape: &[u64],
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<()> {
    let typesize = schunk.typesize();
    let blocks = Blocks::new(geometry, typesize)?;
    if region.is_empty() {
        return Ok(());
    }
    let other = strides(src_shape, typesize as u64); // widening
    let ndim = geometry.ndim();
    let last: u64 = (0..ndim).map(|i| (region.extent(i) - 1).saturating_mul(other[i])).sum();
    let enough = size(last)?.checked_add(typesize).is_some_and(|needed| needed <= src.len());
    ensure(enough, ErrorKind::InvalidParam, "box outside of its buffer")?;
    let chunks = Chunks::of(geometry, *region);
    for n in 0..chunks.len() {
        let (at, nchunk) = chunks.chunk(n)?;
        let (part, origin) = chunks.part(&at, &other);
        let job = Overlay {
            blocks: &blocks,
            nchunk,
            covers_chunk: chunks.covers(&at, &part),
            touched: &blocks.touched(&part),
            covers_block: &|nblock| blocks.covers(&part, nblock),
            apply_block: &|nblock, block| {
                let piece = blocks.piece(&part, &blocks.at(nblock), &other, origin)?;
                blocks.gather_piece(&piece, src, &other, block)
            },
        };
        job.store(schunk, reading, writing).map_err(|e| failure(&e))?;
    }
    Ok(())
}

impl Blocks<'_> {
    /// The numbers of the blocks that `region` meets, ascending.
    fn touched(&self, region: &Region) -> Vec<usize> {
        let cells = region.cells(self.geometry.blockshape());
        (0..cells.len()).map(|n| self.nblock(&cells.cell(n))).collect()
    }

    /// The place of a block in the grid.
    fn at(&self, nblock: usize) -> Extents {
        Region::new(&[0; MAX_DIM][..self.geometry.ndim()], &self.grid[..self.geometry.ndim()]).cell(nblock)
    }

    /// Whether `region` holds all items of a block.
    fn covers(&self, region: &Region, nblock: usize) -> bool {
        let part = region.within(&self.at(nblock), self.geometry.blockshape());
        self.geometry.blockshape().iter().enumerate().all(|(i, &extent)| part.extent(i) == extent)
    }
}

/// New values for a part of a chunk.
pub(super) struct Overlay<'a> {
    pub(super) blocks: &'a Blocks<'a>,
    pub(super) nchunk: usize,
    /// Whether no old value survives; padding becomes zero then.
    pub(super) covers_chunk: bool,
    /// The blocks that change, ascending.
    pub(super) touched: &'a [usize],
    /// Whether all items of a block are new.
    pub(super) covers_block: &'a dyn Fn(usize) -> bool,
    /// Writes the new values to a block.
    pub(super) apply_block: &'a dyn Fn(usize, &mut [u8]) -> Result<()>,
}

impl Overlay<'_> {
    pub(super) fn store(
        &self,
        schunk: &mut Schunk,
        reading: &Reading<'_>,
        writing: &Writing<'_>,
    ) -> Result<()> {
        let nchunk = self.nchunk;
        ensure(nchunk < schunk.nchunks(), ErrorKind::Failure, "the array lacks a chunk")?;
        let update = |schunk: &mut Schunk, chunk: &[u8]| schunk.update_chunk(nchunk, chunk).map(drop);
        if !self.covers_chunk {
            let changes =
                patch::Changes { touched: self.touched, covers: self.covers_block, apply: self.apply_block };
            let patched = schunk.with_chunk(nchunk, |chunk| {
                let header = ChunkHeader::read(chunk)?;
                if self.blocks.check(&header, false).is_err() {
                    return Ok(None);
                }
                patch::rewrite(chunk, &changes, &reading.dec, &writing.enc)
            })?;
            if let Some(chunk) = patched {
                return update(schunk, &chunk);
            }
        }
        scratch::with_len(self.blocks.chunksize, |data| {
            if self.covers_chunk {
                data.fill(0);
            } else {
                reading.visit(nchunk);
                schunk.with_chunk(nchunk, |chunk| self.blocks.decode(chunk, data, &reading.dec))?;
            }
            for &nblock in self.touched {
                let block = &mut data[nblock * self.blocks.blocksize..][..self.blocks.blocksize];
                (self.apply_block)(nblock, block)?;
            }
            writing.visit(nchunk);
            schunk.compress_and(Source::Bytes(data), writing, update)
        })
    }
}

impl Blocks<'_> {
    /// Decompresses a whole chunk to `data`; uninitialised items become zeros.
    fn decode(&self, chunk: &[u8], data: &mut [u8], dec: &Decoding<'_>) -> Result<()> {
        let nbytes = usize::try_from(BasicHeader::read(chunk)?.nbytes).unwrap_or(0);
        let header = ChunkHeader::read(chunk)?;
        let fits = nbytes == self.chunksize && header.nbytes == nbytes;
        ensure(fits, ErrorKind::Failure, "chunk of another size than the array's")?;
        if header.special() == special::UNINIT {
            data.fill(0);
        }
        chunk::decompress_with(dec, chunk, None, data).map(drop)
    }
}
