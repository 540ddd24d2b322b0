//! Arrays whose items or chunks go into others.

#![forbid(unsafe_code)]

use super::refresh::read_undisturbed;
use super::shape::{Geometry, Region};
use super::slice;
use crate::error::{Error, Result};
use crate::schunk::{Reading, Schunk, scratch};

/// An array that is read, item by item or chunk by chunk, to make or extend another one.
#[derive(Clone, Copy)]
pub struct StoredArray<'a> {
    /// Its chunks.
    pub schunk: &'a Schunk,
    /// Where its items are in them.
    pub geometry: &'a Geometry,
    /// How they are decompressed.
    pub reading: &'a Reading<'a>,
}

impl StoredArray<'_> {
    /// Copies the items of `region`, which lies inside of the array, to the front of `dest`, a C-order buffer of shape
    /// `dest_shape`.
    ///
    /// # Errors
    ///
    /// As [`slice::read`].
    pub(super) fn read(&self, region: &Region, dest: &mut [u8], dest_shape: &[u64]) -> Result<()> {
        slice::read(self.schunk, self.geometry, region, dest, dest_shape, self.reading)
    }

    /// Calls `take` with the chunk whose number `number` tells by the geometry that the array has by then, and returns
    /// what that returns; `None` if there is no such chunk, by the known geometry or by then.
    ///
    /// # Errors
    ///
    /// Those of `take`, `Failure` or `Lock` if the chunk cannot be read.
    pub(super) fn take_chunk<R>(
        &self,
        number: impl Fn(&Geometry) -> Option<usize>,
        take: impl FnOnce(&[u8]) -> Result<R>,
    ) -> Result<Option<R>> {
        if number(self.geometry).is_none() {
            return Ok(None);
        }
        scratch::with(|buffer| {
            // The chunk, or that it is in the buffer.
            let mut found = None;
            let numbers = |geometry: &Geometry| Ok(Vec::from_iter(number(geometry)));
            read_undisturbed(self.schunk, self.geometry, self.reading, numbers, |stored, geometry| {
                found = number(geometry).map(|nchunk| stored.get(nchunk, buffer)).transpose()?;
                Ok(())
            })
            .map_err(Error::to_failure_unless_lock)?;
            found.map(|held| take(held.unwrap_or(buffer))).transpose()
        })
    }
}
