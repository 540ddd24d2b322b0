//! A drop-in replacement of the C library libblosc2 (C-Blosc2), written in Rust.
//!
//! C programs use the functions of `capi`, a feature of its own, and see nothing else. Rust programs can use what lies below it:
//!
//! | module | what |
//! |---|---|
//! | [`chunk`] | buffers to chunks and back, in part too |
//! | [`schunk`] | super-chunks: any amount of data in chunks, in memory or on disk, with metalayers |
//! | [`ndarray`] | n-dimensional arrays over super-chunks: begin with [`NdArray`](ndarray::NdArray) |
//! | [`frame`], [`io`] | how super-chunks are stored; back-ends |
//! | [`codecs`], [`filters`] | the traits, and where more are registered |
//! | [`format`](mod@format) | what is stored, byte for byte |
//!
//! This interface follows the needs of the C functions and may change with each release.
//!
//! ```
//! use blosc2::chunk::{CParams, compress, decompress};
//!
//! let data: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
//! let mut chunk = vec![0; data.len() + 32];
//! let cbytes = compress(&CParams { typesize: 4, ..CParams::default() }, &data, &mut chunk)?;
//! assert!(cbytes < data.len() / 10);
//!
//! let mut back = vec![0; data.len()];
//! assert_eq!(decompress(&chunk[..cbytes], &mut back)?, data.len());
//! assert_eq!(back, data);
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! # The layers
//!
//! Imports go one way: `base -> format -> codecs, filters -> chunk -> io -> frame -> schunk -> ndarray -> capi`. At the
//! base are the modules `error`, `bytes`, `memory`, `kept`, `pages`, `copy`, `pool`, `threads`, `mutex`, `fork`, `panics`, `registered`,
//! `single`, `cancel` and `cpu`.

// What only the C interface needs stays where it belongs. With that interface, the compiler finds what nobody needs.
#![cfg_attr(not(feature = "capi"), allow(dead_code))]

mod bytes;
mod cancel;
mod copy;
mod cpu;
pub mod error;
mod fork;
pub mod format;
mod kept;
mod memory;
mod mutex;
mod pages;
mod panics;
pub mod pool;
mod registered;
mod single;
#[cfg(test)]
mod testing;
mod threads;

pub mod chunk;
pub mod codecs;
pub mod filters;

pub mod frame;
pub mod io;
pub mod ndarray;
pub mod schunk;

#[cfg(feature = "capi")]
pub mod capi;

pub use error::{Error, ErrorKind, Result};
