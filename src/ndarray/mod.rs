//! N-dimensional arrays: boxes of items over one super-chunk.
//!
//! [`NdArray`] is an array with all that belongs to it, and begins with an example.
//!
//! The functions below it take the super-chunk and the [`Geometry`], which tells where each item is stored in it, as
//! separate arguments, since C callers hold the super-chunk themselves. Any number of threads may read one array at the
//! same time.
//!
//! Unlike [`NdArray`], those that change chunks or the shape neither lock the frame nor look whether others changed it.
//! Where they may, hold [`Frame::lock`](crate::frame::Frame::lock), and pass the geometry that [`refreshed`] returns
//! under this lock.

mod array;
mod blocks;
pub mod concat;
pub(crate) mod copy_buffer;
pub mod create;
pub(crate) mod listed;
mod refresh;
pub(crate) mod request;
pub mod resize;
pub mod select;
pub(crate) mod shape;
pub(crate) mod slice;
mod stored;
pub mod view;
mod window;
pub(crate) mod write;

pub use array::{NdArray, Place};
pub use refresh::{described, open, refreshed};
pub use shape::Geometry;
pub use stored::StoredArray;

#[cfg(test)]
mod tests;
