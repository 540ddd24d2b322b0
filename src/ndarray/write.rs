//! Boxes of items that are written.
//!
//! Only blocks that change are compressed anew, as long as the blocks of the chunk are independent of each other; the
//! others keep their compressed bytes. Blocks are put together one by one, where they are compressed. The new chunks
//! take the place of the old ones together.

#![forbid(unsafe_code)]

use super::blocks::Blocks;
use super::resize::Plan;
use super::shape::{Geometry, Region, check_blocksize, strided_len, strides};
use super::slice::BoxChunks;
use crate::chunk::{
    self, BlockReader, CParams, Decoding, GatherBlocks, Gathered, ShuffledBlock, Source, Threads,
};
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::io::memory::MallocBuf;
use crate::io::spare;
use crate::memory::{self, Room};
use crate::schunk::access::Access;
use crate::schunk::{Reading, Schunk, Update, Writing, patch, scratch};

/// About how many bytes of new chunks of a frame are written as one change: the places of the chunks that they replace
/// can be used for others then, so that the frame does not grow by all of them, and no holes have to be closed.
const BATCH: usize = 64 << 20;

/// Items at the front of a C-order buffer.
#[derive(Clone, Copy)]
pub(crate) struct Items<'a> {
    pub(crate) bytes: &'a [u8],
    /// The shape of the buffer.
    pub(crate) shape: &'a [u64],
}

/// Gives the items of `region`, which lies inside of the array, the values in `src`.
///
/// # Errors
///
/// `InvalidParam` if `src` is too short or chunks are above 2 GiB, `Failure` if a chunk cannot be read, compressed or
/// replaced. The array is as before then; only if the new chunks take more than about 64 MiB of a frame, or there is a
/// prefilter, the first of them may be there.
pub(crate) fn write(
    schunk: &mut impl Access,
    geometry: &Geometry,
    region: &Region,
    src: Items<'_>,
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<()> {
    let mut pending = Pending::default();
    write_to(schunk, &mut pending, geometry, region, src, reading, writing)?;
    pending.flush(schunk)
}

/// As [`write()`], but what is left in `pending` remains to be written. The array is to have this geometry by then.
pub(super) fn write_to(
    schunk: &mut impl Access,
    pending: &mut Pending<'_>,
    geometry: &Geometry,
    region: &Region,
    src: Items<'_>,
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<()> {
    let blocks = blocks_of(schunk, geometry)?;
    if region.is_empty() {
        return Ok(());
    }
    let unit = blocks.typesize as u64; // widening
    let strides = strides(src.shape, unit);
    let needed = strided_len((0..geometry.ndim()).map(|i| region.extent(i)), &strides, unit);
    require(needed.is_some_and(|needed| needed <= src.bytes.len()), "box outside of its buffer")?;
    let chunks = BoxChunks::of(geometry, region);
    for n in 0..chunks.len() {
        let at = chunks.chunk(n);
        let nchunk = chunks.number(&at)?;
        let (part, place) = chunks.part_in_buffer(&at, &strides);
        let overlay = Overlay {
            blocks: &blocks,
            nchunk,
            covers_chunk: chunks.covers(&at, &part),
            touched: &blocks.touched(&part)?,
            covers_block: &|nblock| blocks.covers(&part, nblock),
            apply_block: &|nblock, block| blocks.gather(&part, nblock, src.bytes, place, block),
            apply_shuffled: &|nblock, block| blocks.gather_shuffled(&part, nblock, src.bytes, place, block),
        };
        overlay.store(schunk, pending, reading, writing)?;
    }
    Ok(())
}

/// The blocks of an array that is written to.
///
/// # Errors
///
/// `Failure` if the array has chunks, and of another size: those of the size that it should have may be much larger,
/// and would be made to be refused.
pub(super) fn blocks_of<'a>(schunk: &impl Access, geometry: &'a Geometry) -> Result<Blocks<'a>> {
    schunk.look(|schunk| {
        let blocks = Blocks::new(geometry, schunk.typesize())?;
        let is_other = |size: i32| size > 0 && size as usize != blocks.chunksize; // widening
        ensure(!is_other(schunk.chunksize()), ErrorKind::Failure, "the array has chunks of another size")?;
        Ok(blocks)
    })
}

/// New chunks on their way into the super-chunk.
#[derive(Default)]
pub(super) struct Pending<'a> {
    updates: Vec<(usize, Update)>,
    bytes: usize,
    /// How the array gets the shape that the chunks are for; `None` if it has it.
    growth: Option<&'a Plan>,
}

impl<'a> Pending<'a> {
    /// For an array that grows as `plan` says when the first chunks are stored.
    pub(super) fn growing(plan: &'a Plan) -> Pending<'a> {
        Pending { growth: Some(plan), ..Pending::default() }
    }

    /// Whether the array has not got its new shape yet.
    pub(super) fn is_growing(&self) -> bool {
        self.growth.is_some()
    }

    /// The number that chunk `nchunk` has in the super-chunk as it is now; `None` if it is not there yet.
    fn number_now(&self, nchunk: usize) -> Option<usize> {
        self.growth.map_or(Some(nchunk), |plan| plan.number_before(nchunk))
    }

    fn push(
        &mut self,
        schunk: &mut impl Access,
        nchunk: usize,
        update: Update,
        writing: &Writing<'_>,
    ) -> Result<()> {
        let cbytes = update.cbytes();
        memory::push(&mut self.updates, (nchunk, update))?;
        self.bytes += cbytes;
        // A prefilter may look at the chunks before.
        let now = writing.enc.prefilter.is_some() || (self.bytes >= BATCH && is_in_frame(schunk)?);
        if now { self.flush(schunk) } else { Ok(()) }
    }

    /// Puts `chunk` in the place of chunk `nchunk`.
    pub(super) fn replace(
        &mut self,
        schunk: &mut impl Access,
        nchunk: usize,
        chunk: NewChunk<'_>,
        writing: &Writing<'_>,
    ) -> Result<()> {
        let chunk = match chunk {
            NewChunk::Borrowed(bytes) => spare::copy_of(bytes)?,
            NewChunk::Owned(chunk) => chunk,
        };
        self.push(schunk, nchunk, Update::Whole(chunk), writing)
    }

    /// Has the super-chunk take over what is left, and the array its new shape.
    ///
    /// # Errors
    ///
    /// `Failure` if it cannot; none of the chunks is replaced then.
    pub(super) fn flush(&mut self, schunk: &mut impl Access) -> Result<()> {
        self.bytes = 0;
        let updates = std::mem::take(&mut self.updates);
        let stored = match self.growth {
            Some(plan) => schunk.change(|schunk| plan.apply(schunk, updates)),
            None if updates.is_empty() => Ok(()),
            None => {
                schunk.change(|schunk| schunk.update_chunks(updates).map_err(Error::to_failure_unless_lock))
            }
        };
        if stored.is_ok() {
            self.growth = None;
        }
        stored
    }
}

/// Fills a block, given by its number.
pub(super) type MakeBlock<'a> = dyn Fn(usize, &mut [u8]) -> Result<()> + Sync + 'a;

/// Compresses the chunk whose blocks `make` puts together into the front of `dest`; returns its size. Its blocks are
/// those of the array, whatever size the parameters ask for: with others it could not be read.
pub(super) fn compress(
    blocks: &Blocks<'_>,
    writing: &Writing<'_>,
    make: &dyn GatherBlocks,
    dest: &mut [u8],
) -> Result<usize> {
    let nbytes = blocks.chunksize;
    check_blocksize(blocks.blocksize as u64)?; // widening
    let has_blocks =
        |params: &CParams| chunk::blocks::effective_blocksize(params, nbytes) == blocks.blocksize;
    let mut writing = *writing;
    let own;
    if !has_blocks(writing.enc.params) {
        own = CParams { blocksize: blocks.blocksize, ..writing.enc.params.clone() };
        writing.enc.params = &own;
    }
    let enc = &writing.enc;
    if has_blocks(enc.params) && !enc.wants_whole_buffer() && writing.compressor.is_none() {
        return writing.compress(Source::Gathered(Gathered { nbytes, blocks: make }), dest);
    }
    scratch::with_len(nbytes, |data| {
        let mut parts = data.chunks_exact_mut(blocks.blocksize).enumerate();
        parts.try_for_each(|(nblock, block)| make.fill(nblock, block))?;
        writing.compress(Source::Bytes(data), dest)
    })
}

/// From this size on, in bytes, chunks are compressed where they stay: copying them costs more than shortening memory.
/// Copying them to memory that is at hand costs less.
const LARGE: usize = 1 << 20;

/// Has `compress` write a chunk to the room that it is given, and say how long it is, and passes the chunk on.
pub(super) fn with_chunk<A: Access, R>(
    schunk: &mut A,
    blocks: &Blocks<'_>,
    compress: impl FnOnce(&Schunk, &mut [u8]) -> Result<usize>,
    store: impl FnOnce(&mut A, NewChunk<'_>) -> Result<R>,
) -> Result<R> {
    let room = chunk::room_for(blocks.chunksize);
    if blocks.chunksize < LARGE || is_in_frame(schunk)? || spare::may_have(room) {
        return scratch::with_len(room, |dest| {
            let cbytes = schunk.look(|schunk| compress(schunk, dest))?;
            store(schunk, NewChunk::Borrowed(&dest[..cbytes]))
        });
    }
    let mut chunk = MallocBuf::for_output(Room::Any(room))?;
    let cbytes = schunk.look(|schunk| compress(schunk, chunk.as_mut_slice()))?;
    chunk.truncate(cbytes);
    chunk.shrink();
    store(schunk, NewChunk::Owned(chunk))
}

fn is_in_frame(schunk: &impl Access) -> Result<bool> {
    schunk.look(|schunk| Ok(schunk.frame().is_some()))
}

/// A chunk to store.
pub(super) enum NewChunk<'a> {
    /// In memory that is used for other chunks afterwards.
    Borrowed(&'a [u8]),
    /// In memory of its own.
    Owned(MallocBuf),
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
    pub(super) covers_block: &'a (dyn Fn(usize) -> bool + Sync),
    /// Writes the new values to a block.
    pub(super) apply_block: &'a MakeBlock<'a>,
    /// As [`GatherBlocks::fill_shuffled`], with zeros between the new values.
    pub(super) apply_shuffled: &'a (dyn Fn(usize, &mut ShuffledBlock<'_>) -> Result<bool> + Sync),
}

impl Overlay<'_> {
    /// Makes the new chunk and adds it to `pending`.
    ///
    /// # Errors
    ///
    /// `Failure` if the old chunk cannot be read, the new one not be compressed, or `pending` not be stored.
    pub(super) fn store<A: Access>(
        &self,
        schunk: &mut A,
        pending: &mut Pending<'_>,
        reading: &Reading<'_>,
        writing: &Writing<'_>,
    ) -> Result<()> {
        let nchunks = schunk.look(|schunk| Ok(schunk.nchunks()))?;
        let now = pending.number_now(self.nchunk);
        ensure(now.is_none_or(|now| now < nchunks), ErrorKind::Failure, "the array lacks a chunk")?;
        let old = now.filter(|_| !self.covers_chunk);
        if let Some(old) = old {
            reading.visit(self.nchunk);
            // A chunk that is one block has none that could stay.
            if writing.may_reuse() && self.blocks.nblocks() > 1 {
                if let Some(patch) = schunk.look(|schunk| self.patch(schunk, old, reading, writing))? {
                    return pending.push(schunk, self.nchunk, Update::Blocks(patch), writing);
                }
            }
        }
        let compress = |schunk: &Schunk, dest: &mut [u8]| {
            if let Some(old) = old {
                return schunk.with_chunk(old, |old| self.merge(old, reading, writing, dest));
            }
            writing.visit(self.nchunk);
            compress(self.blocks, writing, &Fresh(self), dest)
        };
        let store =
            |schunk: &mut A, chunk: NewChunk<'_>| pending.replace(schunk, self.nchunk, chunk, writing);
        with_chunk(schunk, self.blocks, compress, store).map_err(Error::to_failure_unless_lock)
    }

    /// New streams for the blocks of chunk `old` that change, if the others can keep theirs.
    fn patch(
        &self,
        schunk: &Schunk,
        old: usize,
        reading: &Reading<'_>,
        writing: &Writing<'_>,
    ) -> Result<Option<patch::Patch>> {
        let changes = patch::Changes {
            touched: self.touched,
            covers: self.covers_block,
            apply: self.apply_block,
            piece: None,
        };
        let encode = |dec: &Decoding<'_>, chunk: &[u8]| {
            let header = ChunkHeader::read(chunk)?;
            if self.blocks.check(&header).is_err() {
                return Ok(None);
            }
            patch::encode(chunk, &changes, dec, &writing.enc)
        };
        schunk.with_lazy(old, &reading.dec, encode).map_err(Error::to_failure_unless_lock)
    }

    fn is_touched(&self, nblock: usize) -> bool {
        self.touched.binary_search(&nblock).is_ok()
    }

    /// Compresses the chunk `old` with the new values into `dest`; returns its size.
    fn merge(
        &self,
        old: &[u8],
        reading: &Reading<'_>,
        writing: &Writing<'_>,
        dest: &mut [u8],
    ) -> Result<usize> {
        let header = ChunkHeader::read(old)?;
        self.blocks.check_size(&header)?;
        if header.blocksize != self.blocks.blocksize || reading.dec.postfilter.is_some() {
            return self.merge_whole(old, reading, writing, dest);
        }
        let alone = Decoding { threads: Threads::default(), ..reading.dec };
        let reader = BlockReader::open(&alone, &header, old)?;
        writing.visit(self.nchunk);
        let make = |nblock: usize, block: &mut [u8]| {
            let touched = self.is_touched(nblock);
            if !touched || !(self.covers_block)(nblock) {
                reader.read_or_zeros(nblock, block)?;
            }
            if touched { (self.apply_block)(nblock, block) } else { Ok(()) }
        };
        compress(self.blocks, writing, &make, dest)
    }

    /// As [`merge`](Self::merge), with all of the old chunk decompressed first.
    fn merge_whole(
        &self,
        old: &[u8],
        reading: &Reading<'_>,
        writing: &Writing<'_>,
        dest: &mut [u8],
    ) -> Result<usize> {
        scratch::with_len(self.blocks.chunksize, |data| {
            scratch::decompress(&reading.dec, old, data)?;
            writing.visit(self.nchunk);
            let size = self.blocks.blocksize;
            let make = |nblock: usize, block: &mut [u8]| {
                copy::copy(&data[nblock * size..][..size], block);
                if self.is_touched(nblock) { (self.apply_block)(nblock, block) } else { Ok(()) }
            };
            compress(self.blocks, writing, &make, dest)
        })
    }
}

/// A chunk of which no old value survives.
struct Fresh<'a>(&'a Overlay<'a>);

impl GatherBlocks for Fresh<'_> {
    fn fill(&self, nblock: usize, block: &mut [u8]) -> Result<()> {
        let zeros = self.is_zeros(nblock);
        if zeros || !(self.0.covers_block)(nblock) {
            block.fill(0);
        }
        if zeros { Ok(()) } else { (self.0.apply_block)(nblock, block) }
    }

    fn is_zeros(&self, nblock: usize) -> bool {
        !self.0.is_touched(nblock)
    }

    fn fill_shuffled(&self, nblock: usize, block: &mut ShuffledBlock<'_>) -> Result<bool> {
        (self.0.apply_shuffled)(nblock, block)
    }
}
