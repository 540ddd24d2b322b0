//! The same chunks under another shape: dimensions of one item left out or put in.

use crate::error::{ErrorKind, Result, ensure};
use crate::format::geometry::MAX_DIM;
use crate::format::nd_meta::NdMeta;

/// `meta` without the dimensions for which `leave_out` is true.
///
/// # Errors
///
/// `InvalidIndex` if one of them has another extent than 1, `InvalidParam` for another number of entries.
pub fn squeezed(meta: &NdMeta, leave_out: &[bool]) -> Result<NdMeta> {
    ensure(leave_out.len() == meta.ndim(), ErrorKind::InvalidParam, "number of dimensions")?;
    let single = (0..meta.ndim()).all(|i| !leave_out[i] || meta.shape[i] == 1);
    ensure(single, ErrorKind::InvalidIndex, "dimension of more or less than one item")?;
    let kept = |i: &usize| !leave_out[*i];
    let axes: Vec<usize> = (0..meta.ndim()).filter(kept).collect();
    Ok(NdMeta {
        shape: axes.iter().map(|&i| meta.shape[i]).collect(),
        chunkshape: axes.iter().map(|&i| meta.chunkshape[i]).collect(),
        blockshape: axes.iter().map(|&i| meta.blockshape[i]).collect(),
        ..meta.clone()
    })
}

/// `meta` with a dimension of one item wherever `added` is true; the others are those of `meta`, in order.
///
/// # Errors
///
/// `InvalidParam` unless `added` is false once for each dimension of `meta`, or if there are too many dimensions.
pub fn expanded(meta: &NdMeta, added: &[bool]) -> Result<NdMeta> {
    let kept = added.iter().filter(|&&added| !added).count();
    let fits = kept == meta.ndim() && added.len() <= MAX_DIM;
    ensure(fits, ErrorKind::InvalidParam, "number of dimensions")?;
    let (mut shape, mut chunkshape, mut blockshape) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 0;
    for &added in added {
        if added {
            shape.push(1);
            chunkshape.push(1);
            blockshape.push(1);
        } else {
            shape.push(meta.shape[next]);
            chunkshape.push(meta.chunkshape[next]);
            blockshape.push(meta.blockshape[next]);
            next += 1;
        }
    }
    Ok(NdMeta { shape, chunkshape, blockshape, ..meta.clone() })
}
