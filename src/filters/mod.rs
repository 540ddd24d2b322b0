//! Filters: a block of bytes in, as many bytes out. A filter never sees a codec.

pub(crate) mod bitshuffle;
mod builtin;
pub(crate) mod bytedelta;
mod cells;
pub(crate) mod delta;
pub(crate) mod int_trunc;
pub(crate) mod low_bits;
pub(crate) mod ndcell;
pub(crate) mod ndmean;
pub mod registry;
pub(crate) mod shuffle;
#[cfg(test)]
mod testing;
pub(crate) mod trunc_prec;

use crate::error::Result;
use crate::format::geometry::Container;
use std::any::Any;

/// What a registered filter is told besides the bytes of the block.
#[derive(Clone, Copy)]
pub struct FilterContext<'a> {
    /// The filter's own id.
    pub id: u8,
    /// The filter's meta byte.
    pub meta: u8,
    /// Bytes per item of the chunk, 1 to 255.
    pub typesize: usize,
    /// Block size of the chunk in bytes.
    pub blocksize: usize,
    /// The super-chunk around the chunk.
    pub container: Container,
    /// What the layer above wants to hand through to filters that it registered itself.
    pub host: Option<&'a (dyn Any + Send + Sync)>,
}

/// A filter that is registered under an id of its own (32 and above). `src` and `dest` have the same length.
pub trait Filter: Send + Sync {
    /// Transforms `src` into `dest`, filling all of it.
    ///
    /// # Errors
    ///
    /// Any error fails the compression of the chunk.
    fn forward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()>;

    /// Undoes [`forward`](Self::forward).
    ///
    /// # Errors
    ///
    /// Any error fails the decompression of the chunk.
    fn backward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()>;

    /// Whether [`FilterContext::container`] must be filled in with its n-d geometry.
    fn needs_geometry(&self) -> bool {
        false
    }

    /// What makes two filters the same, whatever objects they are; none if only the object itself does. Such a filter
    /// takes no more memory when it is registered again.
    fn identity(&self) -> Option<[usize; 3]> {
        None
    }
}

/// Copies what `dest`, the bytes from `start` on, has of the `tail`, which no filter changes, after a body of `body`
/// bytes; returns the front of `dest`, which is in the body.
fn copy_tail<'d>(body: usize, tail: &[u8], start: usize, dest: &'d mut [u8]) -> &'d mut [u8] {
    let in_body = dest.len().min(body.saturating_sub(start));
    let (dest, dest_tail) = dest.split_at_mut(in_body);
    if !dest_tail.is_empty() {
        let skipped = (start + in_body) - body;
        dest_tail.copy_from_slice(&tail[skipped..skipped + dest_tail.len()]);
    }
    dest
}
