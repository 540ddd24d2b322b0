//! The geometry of an array as its super-chunk describes it at the moment, and reading all of something from one moment.

use super::shape::Geometry;
use super::slice::failure;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::metalayers::Metalayer;
use crate::format::nd_meta::{self, NdMeta};
use crate::schunk::{Chunks, Schunk};
use std::borrow::Cow;
use std::sync::Arc;

/// How often something is read at the most, if somebody else changes the array while it is read.
const ATTEMPTS: usize = 10;
/// How often at the most if the changes are to other chunks, as far as can be told.
const STRICT_ATTEMPTS: usize = 3;

/// The metalayer of the array in `schunk`, and its geometry.
///
/// # Errors
///
/// As [`described`].
pub fn open(schunk: &Schunk) -> Result<(NdMeta, Geometry)> {
    described(&schunk.metalayers())
}

/// The metalayer of the array that `layers` describe, and its geometry.
///
/// # Errors
///
/// `MetalayerNotFound` if there is no array, `Failure` if the metalayer is damaged, `InvalidParam` if its values make no
/// sense.
pub fn described(layers: &[Arc<Metalayer>]) -> Result<(NdMeta, Geometry)> {
    let none = Error::new(ErrorKind::MetalayerNotFound, "no metalayer of an array");
    let (meta, _) = NdMeta::read(nd_meta::find(layers).ok_or(none)?)?;
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

/// Calls `read` with the chunks of the array and its geometry. If a process that does not lock changed the array meanwhile,
/// `read` is called again with those of later: what it read may be in part from before the change and in part from after
/// it, or nonsense, and so may its error be.
///
/// `numbers` names the chunks that `read` looks at, for a geometry that `read` accepted.
///
/// # Errors
///
/// Those of the last call of `read`, `Failure` or `Lock` if the frame cannot be looked at.
pub(super) fn read_undisturbed(
    schunk: &Schunk,
    geometry: &Geometry,
    numbers: impl Fn(&Geometry) -> Result<Vec<usize>>,
    mut read: impl FnMut(&Chunks<'_>, &Geometry) -> Result<()>,
) -> Result<()> {
    let mut geometry = Cow::Borrowed(geometry);
    for attempt in 1..ATTEMPTS {
        let stored = schunk.known_chunks().map_err(|e| failure(&e))?;
        let outcome = read(&stored, &geometry);
        let strict = attempt < STRICT_ATTEMPTS || outcome.is_err();
        let mut unknown = None;
        let known = || numbers(&geometry).map_err(|e| unknown = Some(e)).unwrap_or_default();
        let current = stored.are_current(strict, std::iter::once_with(known).flatten());
        if let Some(error) = unknown {
            return Err(error);
        }
        if current {
            return outcome;
        }
        drop(stored);
        if schunk.refresh().is_ok() {
            if let Ok(Some(fresh)) = refreshed(schunk, &geometry) {
                geometry = Cow::Owned(fresh);
            }
        }
    }
    let stored = schunk.chunks().map_err(|e| failure(&e))?;
    read(&stored, &geometry)
}
