//! A drop-in replacement of the C library libblosc2 (C-Blosc2), written in Rust.
//!
//! Imports go one way, downwards in this list: `capi` (the exported C functions), `ndarray`, `schunk`, `frame`, `io`,
//! `chunk`, `filters` and `codecs`, `format`, and the base modules `error`, `bytes`, `memory`, `pages`,
//! `pool`, `fork`, `cpu`.

mod bytes;
mod cpu;
pub mod error;
mod fork;
pub mod format;
mod memory;
mod pages;
pub mod pool;

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
