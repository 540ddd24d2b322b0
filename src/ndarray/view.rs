//! The same chunks under another shape: dimensions of one item left out or put in.

use crate::error::{ErrorKind, Result, ensure, require};
use crate::format::geometry::MAX_DIM;
use crate::format::nd_meta::NdMeta;

/// `meta` without the dimensions for which `leave_out` is true.
///
/// # Errors
///
/// `InvalidIndex` if one of them has another extent than 1, `InvalidParam` for another number of entries.
pub fn squeezed(meta: NdMeta, leave_out: &[bool]) -> Result<NdMeta> {
    require(leave_out.len() == meta.ndim(), "number of dimensions")?;
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
    let fits = kept == meta.ndim() && added.len() <= MAX_DIM;
    require(fits, "number of dimensions")?;
    Ok(NdMeta {
        shape: spread(&meta.shape, added),
        chunkshape: spread(&meta.chunkshape, added),
        blockshape: spread(&meta.blockshape, added),
        ..meta
    })
}

/// `extents` with a 1 wherever `added` is true.
fn spread<T: Copy + From<u8>>(extents: &[T], added: &[bool]) -> Vec<T> {
    let mut kept = extents.iter().copied();
    let extent =
        |&added: &bool| if added { 1.into() } else { kept.next().expect("as many as are not added") };
    added.iter().map(extent).collect()
}
