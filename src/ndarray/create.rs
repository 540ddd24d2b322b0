//! New arrays: special values, one value repeated, or the items of a buffer or another array.

#![forbid(unsafe_code)]

use super::StoredArray;
use super::blocks::{Blocks, InBuffer};
use super::shape::{Geometry, Region, dot, strides};
use super::slice::BoxChunks;
use super::window::Window;
use super::write::{self, NewChunk};
use crate::chunk::{self, CParams, GatherBlocks, ShuffledBlock, SpecialValue};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, special};
use crate::format::geometry::MAX_DIM;
use crate::format::metalayers::Metalayer;
use crate::format::nd_meta::{self, NdMeta};
use crate::format::offsets::MAX_CHUNKS;
use crate::memory;
use crate::schunk::{self, Schunk, Writing, patch};
use std::sync::Arc;

/// Fails if the array has more chunks than a super-chunk may have; `in_frame` tells whether that is a frame.
///
/// # Errors
///
/// `Failure`.
pub fn check_count(geometry: &Geometry, in_frame: bool) -> Result<()> {
    let most = if in_frame { MAX_CHUNKS } else { i32::MAX as usize }; // a constant that fits
    let fits = usize::try_from(geometry.nchunks()).is_ok_and(|n| n <= most);
    ensure(fits, ErrorKind::Failure, "too many chunks")
}

/// Makes an empty super-chunk the container of an array without chunks: presets the chunk size, adds the metalayer of
/// the array, then `layers`.
///
/// # Errors
///
/// `Failure` if there are too many chunks or a metalayer cannot be added; those of [`Geometry::check_for_creation`].
pub fn prepare(
    schunk: &mut Schunk,
    geometry: &Geometry,
    meta: &NdMeta,
    layers: &[Arc<Metalayer>],
) -> Result<()> {
    let typesize = schunk.typesize();
    geometry.check_for_creation(typesize)?;
    check_count(geometry, schunk.frame().is_some())?;
    let nbytes = i32::try_from(geometry.chunk_nbytes(typesize)?);
    schunk.preset_chunksize(nbytes.map_err(|_| Error::new(ErrorKind::InvalidParam, "chunk too large"))?)?;
    schunk.meta_add(nd_meta::NAME, &meta.write()?).map_err(Error::to_failure)?;
    for layer in layers {
        schunk.meta_add(&layer.name, &layer.content).map_err(Error::to_failure)?;
    }
    Ok(())
}

/// Fills a prepared array with the special value `kind`, see [`Schunk::fill_special`].
///
/// # Errors
///
/// `Failure` if there are too many chunks.
pub fn fill_special(schunk: &mut Schunk, geometry: &Geometry, kind: u8, params: &CParams) -> Result<()> {
    let nitems = geometry.nchunks().checked_mul(geometry.extchunknitems());
    let nitems = nitems.ok_or(Error::new(ErrorKind::Failure, "too many chunks"))?;
    if nitems == 0 {
        return Ok(());
    }
    schunk.fill_special(nitems, kind, schunk.chunksize(), params).map(drop).map_err(Error::to_failure)
}

/// Fills a prepared array with copies of `value`, one item.
///
/// # Errors
///
/// `InvalidParam` if `value` is no item, `Failure` if there are too many chunks or they cannot be written.
pub fn fill_value(schunk: &mut Schunk, geometry: &Geometry, value: &[u8], params: &CParams) -> Result<()> {
    let typesize = schunk.typesize();
    require(value.len() == typesize, "value of another size than an item")?;
    let nchunks = usize::try_from(geometry.nchunks()).unwrap_or(usize::MAX);
    let few = i32::try_from(nchunks).is_ok();
    ensure(few, ErrorKind::Failure, "too many chunks")?;
    let params = CParams { use_dict: false, typesize, ..params.clone() };
    let mut chunk = memory::zeroed(EXTENDED_HEADER_LENGTH + typesize)?;
    let nbytes = geometry.chunk_nbytes(typesize)?;
    chunk::special_chunk(&params, nbytes, SpecialValue::Repeated(value), &mut chunk)?;
    let per_batch = (schunk::batch_len(nchunks) / chunk.len()).max(1);
    let mut left = nchunks;
    while left > 0 {
        let n = left.min(per_batch);
        schunk.append_chunks(&memory::filled(&chunk[..], n)?).map_err(Error::to_failure_unless_lock)?;
        left -= n;
    }
    Ok(())
}

/// Fills a prepared array with the items of `src`, in C order.
///
/// # Errors
///
/// `InvalidParam` if `src` is too short, `Failure` if chunks cannot be compressed or written.
pub fn fill_from_buffer(
    schunk: &mut Schunk,
    geometry: &Geometry,
    src: &[u8],
    writing: &Writing<'_>,
) -> Result<()> {
    let typesize = schunk.typesize() as u64; // widening
    let strides = strides(geometry.shape(), typesize);
    let fits = geometry.nitems().checked_mul(typesize).is_some_and(|n| n <= src.len() as u64); // widening
    require(fits, "buffer shorter than the array")?;
    let blocks = Blocks::new(geometry, schunk.typesize())?;
    let mut batch = Batch::of(geometry);
    for_each_chunk(geometry, |nchunk, part, start| {
        let place = InBuffer { strides: &strides, origin: dot(start, &strides) };
        let make = PartOfBuffer { blocks: &blocks, part, src, place };
        batch.compress(schunk, &blocks, nchunk, writing, &make)
    })?;
    batch.flush(schunk)
}

/// A chunk whose items in the array, `part`, are those of a buffer; the others are zeros.
struct PartOfBuffer<'a> {
    blocks: &'a Blocks<'a>,
    part: &'a Region,
    src: &'a [u8],
    place: InBuffer<'a>,
}

impl GatherBlocks for PartOfBuffer<'_> {
    fn fill(&self, nblock: usize, block: &mut [u8]) -> Result<()> {
        if !self.blocks.covers(self.part, nblock) {
            block.fill(0);
            if self.is_zeros(nblock) {
                return Ok(());
            }
        }
        self.blocks.gather(self.part, nblock, self.src, self.place, block)
    }

    fn is_zeros(&self, nblock: usize) -> bool {
        !self.blocks.meets(self.part, nblock)
    }

    fn fill_shuffled(&self, nblock: usize, block: &mut ShuffledBlock<'_>) -> Result<bool> {
        self.blocks.gather_shuffled(self.part, nblock, self.src, self.place, block)
    }
}

/// Fills a prepared array with the box of the same shape that starts at item `start` of another one. What lies outside
/// of that one becomes zero.
///
/// Where the chunks of both arrays fall on each other, compressed in the same way, they are copied as they are.
///
/// # Errors
///
/// `InvalidParam` if the items differ in size, or the arrays and `start` in the number of dimensions; `Failure` if
/// chunks cannot be read, compressed or written.
pub fn fill_from_array(
    schunk: &mut Schunk,
    geometry: &Geometry,
    src: StoredArray<'_>,
    start: &[u64],
    writing: &Writing<'_>,
) -> Result<()> {
    let same = src.schunk.typesize() == schunk.typesize();
    require(same, "items of another size")?;
    let ndim = geometry.ndim();
    require(start.len() == ndim && src.geometry.ndim() == ndim, "wrong number of dimensions")?;
    let unit = schunk.typesize() as u64; // widening
    let blocks = Blocks::new(geometry, schunk.typesize())?;
    let as_is = src.reading.dec.postfilter.is_none();
    let aligned = Aligned::new(geometry, src.geometry, start).filter(|_| as_is);
    let src = StoredArray { reading: &src.reading.of_part(src.schunk), ..src };
    let mut batch = Batch::of(geometry);
    // From its end on, nothing is in the array, wherever the box starts.
    let start: Vec<u64> = start.iter().zip(src.geometry.shape()).map(|(&at, &end)| at.min(end)).collect();
    let stop: Vec<u64> = start.iter().zip(geometry.shape()).map(|(at, n)| at + n).collect();
    let mut window = Window::new(src, Region::new(&start, &stop));
    for_each_chunk(geometry, |nchunk, part, at| {
        if let Some(aligned) = &aligned {
            let number = |source: &Geometry| aligned.chunk(source, part, at);
            let take = |chunk: &[u8]| batch.take_over(schunk, &blocks, chunk, writing);
            if src.take_chunk(number, take)? == Some(true) {
                return Ok(());
            }
        }
        let mut from = *part;
        for i in 0..ndim {
            (from.start[i], from.stop[i]) = (start[i] + at[i], start[i] + at[i] + part.extent(i));
        }
        let (items, shape) = window.show(&from)?;
        let place = InBuffer { strides: &strides(&shape[..ndim], unit), origin: 0 };
        let make = PartOfBuffer { blocks: &blocks, part, src: items, place };
        batch.compress(schunk, &blocks, nchunk, writing, &make)
    })?;
    batch.flush(schunk)
}

/// A box of an array whose chunks are chunks of the array.
struct Aligned {
    /// The chunk at the start of the box.
    first: Vec<u64>,
}

impl Aligned {
    /// The box of `source` that starts at `start`, as an array of this geometry; `None` if chunks do not fall on
    /// chunks.
    fn new(geometry: &Geometry, source: &Geometry, start: &[u64]) -> Option<Aligned> {
        let same =
            geometry.chunkshape() == source.chunkshape() && geometry.blockshape() == source.blockshape();
        let first = start.iter().zip(source.chunkshape()).map(|(&start, &chunk)| {
            start.checked_rem(chunk).filter(|&rest| rest == 0).map(|_| start / chunk)
        });
        let first = first.collect::<Option<Vec<u64>>>().filter(|_| same)?;
        Some(Aligned { first })
    }

    /// The number in `source`, as it is now, of the chunk that is `part`, which starts at item `at` of the box. `None`
    /// for a part of a chunk: what lies after the edge of an array that was larger once need not be zero.
    fn chunk(&self, source: &Geometry, part: &Region, at: &[u64]) -> Option<usize> {
        let mut place = [0; MAX_DIM];
        for (i, &extent) in source.chunkshape().iter().enumerate() {
            place[i] = self.first[i] + at[i] / extent;
            let end = (place[i] + 1).checked_mul(extent);
            if part.extent(i) != extent || end.is_none_or(|end| end > source.shape()[i]) {
                return None;
            }
        }
        usize::try_from(dot(&place[..source.ndim()], &source.chunk_grid().strides)).ok()
    }
}

/// Whether compressing the data of `chunk` would yield a chunk of the same kind.
fn is_alike(chunk: &[u8], blocks: &Blocks<'_>, writing: &Writing<'_>) -> bool {
    let Ok(header) = ChunkHeader::read(chunk) else { return false };
    let params = writing.enc.params;
    writing.may_reuse()
        && header.special() == special::NONE
        && blocks.check(&header).is_ok()
        && patch::same_kind(&header, &writing.enc)
        && !header.is_memcpyed()
        && !header.has_dict()
        && !header.is_vl()
        && i32::from(header.compcode) == params.compcode
        && header.compcode_meta == params.compcode_meta
        && writing.enc.prefilter.is_none()
}

/// Calls `work` for each chunk in ascending order: its number, the part of it that lies in the array, and where that
/// starts in the array.
///
/// # Errors
///
/// Those of `work`, as `Failure` unless they are the caller's fault.
fn for_each_chunk(
    geometry: &Geometry,
    mut work: impl FnMut(usize, &Region, &[u64]) -> Result<()>,
) -> Result<()> {
    let all = Region::all(geometry);
    let chunks = BoxChunks::of(geometry, &all);
    for n in 0..chunks.len() {
        let at = chunks.chunk(n);
        let nchunk = chunks.number(&at)?;
        let part = chunks.part(&at);
        let start: Vec<u64> = at.iter().zip(geometry.chunkshape()).map(|(at, extent)| at * extent).collect();
        work(nchunk, &part, &start).map_err(|e| match e.kind() {
            ErrorKind::InvalidParam => e,
            _ => e.to_failure_unless_lock(),
        })?;
    }
    Ok(())
}

/// Chunks on their way to the end of a super-chunk: a frame takes many of them as one change.
struct Batch {
    chunks: Vec<Vec<u8>>,
    bytes: usize,
    /// How many bytes are handed over at once.
    enough: usize,
}

impl Batch {
    /// For the chunks of an array.
    fn of(geometry: &Geometry) -> Batch {
        let nchunks = usize::try_from(geometry.nchunks()).unwrap_or(usize::MAX);
        Batch { chunks: Vec::new(), bytes: 0, enough: schunk::batch_len(nchunks) }
    }

    /// Compresses the next chunk, whose blocks `make` puts together.
    fn compress(
        &mut self,
        schunk: &mut Schunk,
        blocks: &Blocks<'_>,
        nchunk: usize,
        writing: &Writing<'_>,
        make: &dyn GatherBlocks,
    ) -> Result<()> {
        let compress = |_: &Schunk, dest: &mut [u8]| {
            writing.visit(nchunk);
            write::compress(blocks, writing, make, dest)
        };
        write::with_chunk(schunk, blocks, compress, |schunk, chunk| self.push(schunk, chunk, writing))
    }

    /// Adds `chunk` as it is, if compressing its data would yield a chunk of the same kind; returns whether it did.
    fn take_over(
        &mut self,
        schunk: &mut Schunk,
        blocks: &Blocks<'_>,
        chunk: &[u8],
        writing: &Writing<'_>,
    ) -> Result<bool> {
        let fits = is_alike(chunk, blocks, writing);
        if fits {
            self.push(schunk, NewChunk::Borrowed(chunk), writing)?;
        }
        Ok(fits)
    }

    /// Adds the next chunk.
    fn push(&mut self, schunk: &mut Schunk, chunk: NewChunk<'_>, writing: &Writing<'_>) -> Result<()> {
        let chunk = match chunk {
            NewChunk::Owned(chunk) => {
                self.flush(schunk)?;
                return schunk.append_owned(chunk).map(drop).map_err(|rejected| rejected.error);
            }
            NewChunk::Borrowed(chunk) => chunk,
        };
        // A prefilter may look at the super-chunk, whose number of chunks must be right then.
        let now = schunk.frame().is_none() || writing.enc.prefilter.is_some();
        if now || self.bytes + chunk.len() >= self.enough {
            self.flush(schunk)?;
            return schunk.append_chunk(chunk).map(drop);
        }
        memory::push(&mut self.chunks, memory::copy_of(chunk)?)?;
        self.bytes += chunk.len();
        Ok(())
    }

    /// Hands over what is left.
    fn flush(&mut self, schunk: &mut Schunk) -> Result<()> {
        let chunks: Vec<&[u8]> = memory::collect(self.chunks.iter().map(|chunk| &chunk[..]))?;
        schunk.append_chunks(&chunks).map_err(Error::to_failure_unless_lock)?;
        self.chunks.clear();
        self.bytes = 0;
        Ok(())
    }
}
