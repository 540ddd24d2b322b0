//! The same chunks under another shape: dimensions of one item left out or put in.

#![forbid(unsafe_code)]

use super::described;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::frame_header::FrameParams;
use crate::format::geometry::MAX_DIM;
use crate::format::metalayers::Metalayer;
use crate::format::nd_meta::NdMeta;
use crate::schunk::Schunk;
use std::sync::Arc;

/// `meta` without the dimensions for which `leave_out` is true.
///
/// # Errors
///
/// `InvalidIndex` if one of them has another extent than 1, `InvalidParam` for another number of entries.
pub fn squeezed(meta: NdMeta, leave_out: &[bool]) -> Result<NdMeta> {
    require(leave_out.len() == meta.ndim() && is_even(&meta), "wrong number of dimensions")?;
    let single = (0..meta.ndim()).all(|i| !leave_out[i] || meta.shape[i] == 1);
    ensure(single, ErrorKind::InvalidIndex, "dimension of more or less than one item")?;
    let kept = |i: &usize| !leave_out[*i];
    let axes: Vec<usize> = (0..meta.ndim()).filter(kept).collect();
    Ok(NdMeta {
        shape: axes.iter().map(|&i| meta.shape[i]).collect(),
        chunkshape: axes.iter().map(|&i| meta.chunkshape[i]).collect(),
        blockshape: axes.iter().map(|&i| meta.blockshape[i]).collect(),
        ..meta
    })
}

/// `meta` with a dimension of one item wherever `added` is true; the others are those of `meta`, in order.
///
/// # Errors
///
/// `InvalidParam` unless `added` is false once for each dimension of `meta`, or if there are too many dimensions.
pub fn expanded(meta: NdMeta, added: &[bool]) -> Result<NdMeta> {
    let kept = added.iter().filter(|&&added| !added).count();
    let fits = kept == meta.ndim() && added.len() <= MAX_DIM && is_even(&meta);
    require(fits, "wrong number of dimensions")?;
    Ok(NdMeta {
        shape: spread(&meta.shape, added),
        chunkshape: spread(&meta.chunkshape, added),
        blockshape: spread(&meta.blockshape, added),
        ..meta
    })
}

/// Whether chunks and blocks have as many dimensions as the array.
fn is_even(meta: &NdMeta) -> bool {
    meta.chunkshape.len() == meta.ndim() && meta.blockshape.len() == meta.ndim()
}

/// `extents` with a 1 wherever `added` is true.
fn spread<T: Copy + From<u8>>(extents: &[T], added: &[bool]) -> Vec<T> {
    let mut kept = extents.iter().copied();
    let extent =
        |&added: &bool| if added { 1.into() } else { kept.next().expect("as many as are not added") };
    added.iter().map(extent).collect()
}

/// Fails unless the chunks of a super-chunk are as large as those of the array that the metalayers `layers` describe:
/// those of the array that a view is made of are larger if a dimension of longer chunks is left out.
///
/// # Errors
///
/// `Failure` if they are not, those of a metalayer that cannot be read.
pub fn check_chunks(schunk: &Schunk, layers: &[Arc<Metalayer>]) -> Result<()> {
    if schunk.nchunks() == 0 {
        return Ok(());
    }
    let (_, geometry) = described(layers)?;
    let nbytes = geometry.chunk_nbytes(schunk.typesize())?;
    let agree = usize::try_from(schunk.chunksize()).is_ok_and(|chunksize| chunksize == nbytes);
    ensure(agree, ErrorKind::Failure, "chunks of another size than those of the view")
}

/// Gives a super-chunk without chunks the sizes of chunks and blocks that its metalayer describes: those of the array
/// that a view is made of are others if a dimension of longer chunks or blocks is left out.
///
/// # Errors
///
/// `InvalidParam` for sizes that no chunk has, those of a metalayer that cannot be read, `MemoryAlloc`.
pub fn preset_sizes(schunk: &mut Schunk) -> Result<()> {
    let typesize = schunk.typesize();
    let (_, geometry) = described(&schunk.metalayers())?;
    let too_large = Error::new(ErrorKind::InvalidParam, "chunk above 2 GiB");
    let size = |nitems: u64| {
        let nbytes = nitems.checked_mul(typesize as u64); // widening
        nbytes.and_then(|n| i32::try_from(n).ok()).ok_or(too_large)
    };
    let (chunksize, blocksize) = (size(geometry.extchunknitems())?, size(geometry.blocknitems())?);
    schunk.preset_chunksize(chunksize)?;
    schunk.set_params(FrameParams { blocksize, ..schunk.params() });
    Ok(())
}
