//! New arrays: special values, one value repeated, or the items of a buffer or another array.

use super::shape::{Geometry, Region, strides};
use super::slice::{self, Blocks, Chunks};
use crate::chunk::{self, CParams, Source, SpecialValue};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::metalayers::Metalayer;
use crate::format::nd_meta::{self, NdMeta};
use crate::schunk::{Reading, Schunk, Writing, scratch};

/// About how many bytes of chunks are handed to a super-chunk at once.
const BATCH: usize = 16 << 20;

/// Makes an empty super-chunk the container of an array without chunks: presets the chunk size, adds the metalayer of
/// the array, then `layers`.
///
/// # Errors
///
/// `Failure` if a metalayer cannot be added; those of [`Geometry::check_for_creation`].
pub fn prepare(schunk: &mut Schunk, geometry: &Geometry, meta: &NdMeta, layers: &[Metalayer]) -> Result<()> {
    let typesize = schunk.typesize();
    geometry.check_for_creation(typesize)?;
    let nbytes = i32::try_from(geometry.chunk_nbytes(typesize)?);
    schunk.preset_chunksize(nbytes.map_err(|_| Error::new(ErrorKind::InvalidParam, "chunk too large"))?)?;
    let failed = |e: Error| Error::new(ErrorKind::Failure, e.what());
    schunk.meta_add(nd_meta::NAME, &meta.write()?).map_err(failed)?;
    for layer in layers {
        schunk.meta_add(&layer.name, &layer.content).map_err(failed)?;
    }
    Ok(())
}

/// Fills a prepared array with the special value `kind`, see [`Schunk::fill_special`].
///
/// # Errors
///
/// `Failure` if there are too many chunks.
pub fn fill_special(schunk: &mut Schunk, geometry: &Geometry, kind: u8, params: &CParams) -> Result<()> {
    let failed = |e: Error| Error::new(ErrorKind::Failure, e.what());
    let nitems = geometry.nchunks().checked_mul(geometry.extchunknitems());
    let nitems = nitems.ok_or(Error::new(ErrorKind::Failure, "too many chunks"))?;
    if nitems == 0 {
        return Ok(());
    }
    schunk.fill_special(nitems, kind, schunk.chunksize(), params).map(drop).map_err(failed)
}

/// Fills a prepared array with copies of `value`, one item.
///
/// # Errors
///
/// `InvalidParam` if `value` is no item, `Failure` if there are too many chunks or they cannot be written.
pub fn fill_value(schunk: &mut Schunk, geometry: &Geometry, value: &[u8], params: &CParams) -> Result<()> {
    let typesize = schunk.typesize();
    ensure(value.len() == typesize, ErrorKind::InvalidParam, "value of another size than an item")?;
    let nchunks = usize::try_from(geometry.nchunks()).unwrap_or(usize::MAX);
    let few = i32::try_from(nchunks).is_ok();
    ensure(few, ErrorKind::Failure, "too many chunks")?;
    let params = CParams { use_dict: false, typesize, ..params.clone() };
    let mut chunk = vec![0; EXTENDED_HEADER_LENGTH + typesize];
    let nbytes = geometry.chunk_nbytes(typesize)?;
    chunk::special_chunk(&params, nbytes, SpecialValue::Repeated(value), &mut chunk)?;
    let per_batch = (BATCH / chunk.len()).max(1);
    let mut left = nchunks;
    while left > 0 {
        let n = left.min(per_batch);
        schunk.append_chunks(&vec![&chunk[..]; n]).map_err(|e| slice::failure(&e))?;
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
    let other = strides(geometry.shape(), typesize);
    let room = geometry.nitems().checked_mul(typesize).is_some_and(|n| n <= src.len() as u64); // widening
    ensure(room, ErrorKind::InvalidParam, "buffer shorter than the array")?;
    fill(schunk, geometry, writing, &mut |blocks, part, start, data| {
        let origin = start.iter().zip(&other).map(|(at, stride)| at * stride).sum();
        blocks.gather(part, src, &other, origin, data)
    })
}

/// Fills a prepared array with the box of the same shape that starts at item `start` of another one. What lies outside
/// of that one becomes zero.
///
/// # Errors
///
/// `InvalidParam` if the items differ in size, `Failure` if chunks cannot be read, compressed or written.
pub fn fill_from_array(
    schunk: &mut Schunk,
    geometry: &Geometry,
    (src, src_geometry, start): (&Schunk, &Geometry, &[u64]),
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<()> {
    let same = src.typesize() == schunk.typesize();
    ensure(same, ErrorKind::InvalidParam, "items of another size")?;
    let unit = schunk.typesize() as u64; // widening
    let mut buffer = Vec::new();
    fill(schunk, geometry, writing, &mut |blocks, part, at, data| {
        let extents = part.extents();
        let extents = &extents[..geometry.ndim()];
        let nbytes = part.len().saturating_mul(blocks.typesize);
        buffer.clear();
        buffer.resize(nbytes, 0);
        let from: Vec<u64> = at.iter().zip(start).map(|(a, s)| a.saturating_add(*s)).collect();
        let to: Vec<u64> = from.iter().zip(extents).map(|(a, n)| a.saturating_add(*n)).collect();
        let region = Region::new(&from, &to).clipped(src_geometry.shape());
        slice::read(src, src_geometry, &region, &mut buffer, extents, reading)?;
        blocks.gather(part, &buffer, &strides(extents, unit), 0, data)
    })
}

/// Makes the data of one chunk: the blocks, the part of the chunk that lies in the array, where that part starts in the
/// array, and the zeros to fill.
type Make<'a> = dyn FnMut(&Blocks<'_>, &Region, &[u64], &mut [u8]) -> Result<()> + 'a;

/// Appends all chunks of an array in ascending order.
fn fill(schunk: &mut Schunk, geometry: &Geometry, writing: &Writing<'_>, make: &mut Make<'_>) -> Result<()> {
    let blocks = Blocks::new(geometry, schunk.typesize())?;
    let chunks = Chunks::of(geometry, Region::all(geometry));
    let mut batch: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    let ndim = geometry.ndim();
    let no_strides = [0; crate::format::geometry::MAX_DIM];
    scratch::with_len(blocks.chunksize(), |data| {
        for n in 0..chunks.len() {
            let (at, nchunk) = chunks.chunk(n)?;
            let (part, _) = chunks.part(&at, &no_strides);
            let start: Vec<u64> = (0..ndim).map(|i| at[i] * geometry.chunkshape()[i]).collect();
            let valid = part.len().saturating_mul(blocks.typesize);
            if valid < data.len() {
                data.fill(0);
            }
            make(&blocks, &part, &start, data)?;
            writing.visit(nchunk);
            schunk.compress_and(Source::Bytes(data), writing, |_, chunk| {
                bytes += chunk.len();
                batch.push(chunk.to_vec());
                Ok(())
            })?;
            // A prefilter may look at the super-chunk, whose number of chunks must be right then.
            if bytes >= BATCH || writing.enc.prefilter.is_some() {
                flush(schunk, &mut batch)?;
                bytes = 0;
            }
        }
        flush(schunk, &mut batch)
    })
    .map_err(|e: Error| if e.kind() == ErrorKind::InvalidParam { e } else { slice::failure(&e) })
}

fn flush(schunk: &mut Schunk, batch: &mut Vec<Vec<u8>>) -> Result<()> {
    let chunks: Vec<&[u8]> = batch.iter().map(|chunk| &chunk[..]).collect();
    schunk.append_chunks(&chunks)?;
    batch.clear();
    Ok(())
}
