//! Boxes of items that are read.
//!
//! The blocks that the box meets are decoded, each once, and of them no more than is needed: straight into the
//! destination where rows are long, else into a small buffer from which rows are copied.

use super::blocks::{Blocks, InBuffer, size};
use super::refresh::read_undisturbed;
use super::shape::{Extents, Geometry, Region, dot, strides};
use crate::chunk::{self, BlockReader, Decoding, DisjointParts, Threads};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::special;
use crate::frame::Wanted;
use crate::memory;
use crate::pages;
use crate::schunk::{Reading, Schunk, StoredChunks};

/// The chunks that a box meets.
pub(super) struct BoxChunks<'a> {
    geometry: &'a Geometry,
    region: &'a Region,
    cells: Region,
}

impl<'a> BoxChunks<'a> {
    /// The chunks that meet `region`, which lies inside of the array.
    pub(super) fn of(geometry: &'a Geometry, region: &'a Region) -> BoxChunks<'a> {
        BoxChunks { geometry, region, cells: region.cells(geometry.chunkshape()) }
    }

    /// Number of chunks; none if the box is empty.
    pub(super) fn len(&self) -> usize {
        if self.region.is_empty() { 0 } else { self.cells.len() }
    }

    /// The place of the `n`th chunk in the grid.
    pub(super) fn chunk(&self, n: usize) -> Extents {
        self.cells.cell(n)
    }

    /// The number of the chunk at a place in the grid.
    pub(super) fn number(&self, at: &Extents) -> Result<usize> {
        size(dot(&at[..self.geometry.ndim()], &self.geometry.chunk_grid().strides))
    }

    /// The part of the box in chunk `at`, counted from the start of the chunk.
    pub(super) fn part(&self, at: &Extents) -> Region {
        self.region.within(at, self.geometry.chunkshape())
    }

    /// As [`part`](Self::part), with its place in a buffer that begins with the box and has these strides.
    pub(super) fn part_in_buffer<'s>(&self, at: &Extents, strides: &'s Extents) -> (Region, InBuffer<'s>) {
        let part = self.part(at);
        let mut origin = 0;
        for (i, &extent) in self.geometry.chunkshape().iter().enumerate() {
            origin += (at[i] * extent + part.start[i] - self.region.start[i]) * strides[i];
        }
        (part, InBuffer { strides, origin })
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
/// If somebody changed the array since its geometry is known, or does so meanwhile without a lock, it is read as it is
/// then. Items that are outside of it by then become zero, as does everything in `dest` beside the box.
///
/// # Errors
///
/// `InvalidParam` if `dest` is too short or chunks are above 2 GiB, `Failure` for chunks that cannot be read. `dest` is
/// all zeros then: whoever passes it on all the same does not pass on what was in that memory before.
pub(crate) fn read(
    schunk: &Schunk,
    geometry: &Geometry,
    region: &Region,
    dest: &mut [u8],
    dest_shape: &[u64],
    reading: &Reading<'_>,
) -> Result<()> {
    let mut again = false;
    let numbers = |geometry: &Geometry| {
        let region = region.clipped(geometry.shape());
        let chunks = BoxChunks::of(geometry, &region);
        memory::collect((0..chunks.len()).filter_map(|n| chunks.number(&chunks.chunk(n)).ok()))
    };
    let read = read_undisturbed(schunk, geometry, reading, numbers, |stored, geometry| {
        let there = region.clipped(geometry.shape());
        if again || *there != *region {
            dest.fill(0);
        }
        again = true;
        read_once(schunk, stored, geometry, &there, dest, dest_shape, reading)
    });
    if read.is_err() {
        dest.fill(0);
    }
    read
}

fn read_once(
    schunk: &Schunk,
    stored: &StoredChunks<'_>,
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
    let strides = strides(dest_shape, typesize as u64); // widening
    pages::prefer_huge_for(dest);
    let dest = DisjointParts::new(dest);
    let chunks = BoxChunks::of(geometry, region);
    let past_cache = region.len().saturating_mul(typesize) >= pages::PAST_CACHE;
    for_each_chunk(reading, chunks.len(), &|n| chunks.number(&chunks.chunk(n)), &|n, dec| {
        let at = chunks.chunk(n);
        let nchunk = chunks.number(&at)?;
        ensure(nchunk < schunk.nchunks(), ErrorKind::Failure, "the array lacks a chunk")?;
        let (part, place) = chunks.part_in_buffer(&at, &strides);
        let in_order = blocks.is_stored_in_order(&part, &strides);
        let read = |dec: &Decoding<'_>, bytes: &[u8]| {
            let mut header = ChunkHeader::EMPTY;
            header.read_from(bytes)?;
            if header.special() == special::NONE && in_order {
                if header.is_memcpyed() { blocks.check_size(&header) } else { blocks.check(&header) }?;
                // SAFETY: each chunk, and so each call, has a part of the box of its own.
                let dest = unsafe { dest.part(size(place.origin)?, blocks.chunksize) };
                let n = chunk::decompress_with(dec, bytes, None, dest)?;
                return ensure(n == blocks.chunksize, ErrorKind::Data, "chunk of another size");
            }
            let mut chunk = BlockReader::new(dec, &header, bytes);
            chunk.prepare()?;
            // SAFETY: each chunk, and so each call, has a part of the box of its own.
            unsafe { blocks.read(&chunk, &part, &dest, place, past_cache) }
        };
        if in_order {
            stored.with_all_bytes(nchunk, dec, read)
        } else {
            with_part(stored, &blocks, nchunk, part.cells(geometry.blockshape()).len(), dec, read)
        }
        .map_err(Error::to_failure_unless_lock)
    })
}

/// Calls `read` for each of `count` chunks with what decodes it. If there are enough of them, each is read by one of
/// the threads; else they come one after the other, and `read` may use the threads for the blocks. `number` tells their
/// numbers to whoever wants to be told.
///
/// # Errors
///
/// One of those of `number` and `read`.
pub(super) fn for_each_chunk(
    reading: &Reading<'_>,
    count: usize,
    number: &dyn Fn(usize) -> Result<usize>,
    read: &(dyn Fn(usize, &Decoding<'_>) -> Result<()> + Sync),
) -> Result<()> {
    let threads = reading.dec.threads;
    if unordered(reading) && count >= threads.nthreads.max(2) {
        let alone = Decoding { threads: Threads::default(), ..reading.dec };
        return threads.for_each(count, &|_, n| read(n, &alone));
    }
    (0..count).try_for_each(|n| {
        if reading.visit.is_some() {
            reading.visit(number(n)?);
        }
        read(n, &reading.dec)
    })
}

/// Opens chunk `nchunk` in the way that is the cheapest if `touched` of its blocks are needed.
pub(super) fn with_part<R>(
    stored: &StoredChunks<'_>,
    blocks: &Blocks<'_>,
    nchunk: usize,
    touched: usize,
    dec: &Decoding<'_>,
    read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
) -> Result<R> {
    // Reading a chunk in one piece is cheaper than reading many blocks one by one, unless they are large.
    if touched * 2 > blocks.nblocks() {
        stored.with_all_blocks(nchunk, dec, read)
    } else {
        stored.with_part(nchunk, Wanted::Blocks(touched), dec, read)
    }
}
