//! N-dimensional arrays: boxes of items over one super-chunk.
//!
//! A [`Geometry`] tells where the items of an array are in its super-chunk. The super-chunk is brought to each call,
//! since C callers hold it themselves. Any number of threads may read one array at the same time.

mod blocks;
pub mod concat;
pub(crate) mod copy_buffer;
pub mod create;
#[cfg_attr(not(feature = "capi"), allow(dead_code))] // for the C interface
pub(crate) mod listed;
mod refresh;
pub mod resize;
pub mod select;
pub(crate) mod shape;
pub(crate) mod slice;
pub mod view;
pub(crate) mod write;

pub use refresh::{described, open, refreshed};
pub use shape::Geometry;

#[cfg(test)]
mod tests;
