//! The geometry of an array as its super-chunk describes it at the moment.

use super::shape::Geometry;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::nd_meta::{self, NdMeta};
use crate::schunk::Schunk;

/// The metalayer of the array in `schunk`, and its geometry.
///
/// # Errors
///
/// `MetalayerNotFound` if it holds no array, `Failure` if the metalayer is damaged, `InvalidParam` if its values make no
/// sense.
pub fn open(schunk: &Schunk) -> Result<(NdMeta, Geometry)> {
    let layers = schunk.metalayers();
    let none = Error::new(ErrorKind::MetalayerNotFound, "no metalayer of an array");
    let (meta, _) = NdMeta::read(nd_meta::find(&layers).ok_or(none)?)?;
    let geometry = Geometry::from_meta(&meta)?;
    Ok((meta, geometry))
}

/// The geometry that the metalayer describes now, if it is not `known`; `None` also if there is no metalayer, as while
/// another process is writing.
///
/// # Errors
///
/// `Data` if chunks or blocks have another shape than they had, else as [`open`].
pub fn refreshed(schunk: &Schunk, known: &Geometry) -> Result<Option<Geometry>> {
    let layers = schunk.metalayers();
    let Some(content) = nd_meta::find(&layers) else { return Ok(None) };
    let (meta, _) = NdMeta::read(content)?;
    let fresh = Geometry::from_meta(&meta)?;
    let same = fresh.chunkshape() == known.chunkshape() && fresh.blockshape() == known.blockshape();
    ensure(same, ErrorKind::Data, "chunks or blocks changed their shape")?;
    Ok(Some(fresh))
}
