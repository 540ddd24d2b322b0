//! The geometry of an array as its super-chunk describes it at the moment, and reading all of something from one
//! moment.

#![forbid(unsafe_code)]

use super::shape::Geometry;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::metalayers::Metalayer;
use crate::format::nd_meta::{self, NdMeta};
use crate::frame::Looked;
use crate::schunk::{Reading, Schunk, StoredChunks};
use std::borrow::Cow;
use std::sync::Arc;

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
/// `MetalayerNotFound` if there is no array, `Failure` if the metalayer is damaged, `InvalidParam` if its values make
/// no sense.
pub fn described(layers: &[Arc<Metalayer>]) -> Result<(NdMeta, Geometry)> {
    let none = Error::new(ErrorKind::MetalayerNotFound, "no metalayer of an array");
    let (meta, _) = NdMeta::read(&nd_meta::find(layers).ok_or(none)?.content)?;
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
    reshaped(&schunk.metalayers(), known)
}

/// As [`refreshed`], of the array that `layers` describe.
fn reshaped(layers: &[Arc<Metalayer>], known: &Geometry) -> Result<Option<Geometry>> {
    let Some(layer) = nd_meta::find(layers) else { return Ok(None) };
    let (meta, _) = NdMeta::read(&layer.content)?;
    let fresh = Geometry::from_meta(&meta)?;
    let same = fresh.chunkshape() == known.chunkshape() && fresh.blockshape() == known.blockshape();
    ensure(same, ErrorKind::Data, "chunks or blocks changed their shape")?;
    Ok(Some(fresh))
}

/// Calls `read` with the chunks of the array and the geometry that it has with these, which is `geometry` if nobody
/// changed the array since that is [known](Reading::as_of), and again if somebody changed them meanwhile: see
/// [`Schunk::read_undisturbed`].
///
/// # Errors
///
/// Those of the last call of `read`, `Failure` or `Lock` if the frame cannot be looked at.
pub(super) fn read_undisturbed<'s>(
    schunk: &'s Schunk,
    geometry: &Geometry,
    reading: &Reading<'_>,
    numbers: impl Fn(&Geometry) -> Result<Vec<usize>>,
    mut read: impl FnMut(&StoredChunks<'s>, &Geometry) -> Result<()>,
) -> Result<()> {
    let as_of = reading.as_of.unwrap_or_else(|| schunk.change_tick());
    let fit = |(geometry, as_of): &mut (Cow<'_, Geometry>, u64), stored: &StoredChunks<'s>| {
        let Some(tick) = stored.tick().filter(|tick| tick != as_of) else { return };
        *as_of = tick;
        // A view keeps its shape.
        if let Ok(Some(fresh)) = reshaped(stored.metalayers(), geometry) {
            *geometry = Cow::Owned(fresh);
        }
    };
    let outcome = schunk.read_undisturbed(
        Looked::JustNow,
        (Cow::Borrowed(geometry), as_of),
        fit,
        |(geometry, _)| numbers(geometry),
        |stored, (geometry, _)| read(stored, geometry),
    );
    outcome.map_err(Error::to_failure_unless_lock)?
}
