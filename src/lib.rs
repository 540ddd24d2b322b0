//! A drop-in replacement of the C library libblosc2 (C-Blosc2), written in Rust.
//!
//! C programs use the functions of `capi`, a feature of its own, and see nothing else. Rust programs can use what lies
//! below it:
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
//! # As a dependency
//!
//! ```toml
//! [dependencies]
//! blosc2 = { package = "libblosc2-rs", version = "0.1", default-features = false }
//! ```
//!
//! Without default features there are no C names. With them (feature `capi`), a `cdylib` that depends on this crate
//! exports all of the C functions as well as its own. A plugin or language extension rarely wants that: in a process
//! that also loads the C library, calls may reach the wrong one. Everything on this page works without `capi`.
//!
//! The codecs need a C compiler to build. A panic in one of the application's codecs, filters or closures reaches
//! whoever called the library; if it happened on another thread, the caller gets a new panic instead.
//!
//! # Buffers
//!
//! [`compress_to_vec`](chunk::compress_to_vec) makes a chunk of a buffer, [`compress`](chunk::compress) does so in
//! memory of the caller. [`CParams`](chunk::CParams) has the parameters: above all the size of the items in bytes, on
//! which the filters depend, and codec and filters by number, see [`codec`](format::consts::codec) and
//! [`filter`](format::consts::filter).
//!
//! ```
//! use blosc2::chunk::{CParams, Decoding, Unit, compress_to_vec, decompress_to_vec, getitem};
//! use blosc2::format::consts::codec;
//!
//! let data: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
//! let params = CParams { typesize: 4, compcode: codec::ZSTD.into(), clevel: 3, ..CParams::default() };
//! let chunk = compress_to_vec(&params, &data)?;
//! assert!(chunk.len() < data.len() / 10);
//! assert_eq!(decompress_to_vec(&chunk)?, data);
//!
//! // Items 5000 and 5001, without the others.
//! let mut items = [0; 8];
//! getitem(&Decoding::default(), &chunk, Unit::Items, 5000, 2, &mut items)?;
//! assert_eq!(items[4..], 5001_u32.to_le_bytes());
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! With threads; the chunk is the same, whatever their number:
//!
//! ```
//! use blosc2::chunk::{CParams, Encoding, Source, Threads, compress_with};
//! use blosc2::pool;
//!
//! let (params, data) = (CParams::default(), vec![1; 1 << 20]);
//! let pool = pool::attach(4);
//! let threads = Threads::on(&pool);
//! let mut chunk = vec![0; data.len() + 32];
//! let made = compress_with(&Encoding { threads, ..Encoding::new(&params) }, Source::Bytes(&data), &mut chunk)?;
//! chunk.truncate(made.cbytes);
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! # Super-chunks
//!
//! A [`Schunk`](schunk::Schunk) is a sequence of chunks, in memory or over a [`Frame`](frame::Frame) in memory, a file
//! or a directory. It records parameters, but does not compress with them by itself: each call is told how.
//!
//! ```
//! use blosc2::chunk::{CParams, Encoding, Source};
//! use blosc2::frame::{Frame, FrameOptions};
//! use blosc2::schunk::{Reading, Schunk, Writing};
//!
//! # let path = std::env::temp_dir().join(format!("blosc2-doc-{}.b2frame", std::process::id()));
//! let params = CParams { typesize: 8, ..CParams::default() };
//! let writing = Writing::new(Encoding::new(&params));
//! let mut schunk = Schunk::over(Frame::create_file(&path, params.to_frame()?, &FrameOptions::default())?);
//! for start in [0, 10_000, 20_000_u64] {
//!     let items: Vec<u8> = (start..start + 10_000).flat_map(u64::to_le_bytes).collect();
//!     schunk.append_buffer(Source::Bytes(&items), &writing)?;
//! }
//! schunk.vlmeta_add(b"unit", b"seconds", None)?;
//!
//! // Later, or in another process.
//! let schunk = Schunk::open(&path, 0, &FrameOptions::default())?;
//! assert_eq!((schunk.nchunks(), schunk.nbytes()), (3, 240_000));
//! assert_eq!(schunk.vlmeta_get(b"unit")?.1, b"seconds");
//! let mut items = vec![0; 3 * 8];
//! schunk.get_slice(9_999, 10_002, &mut items, &Reading::default())?;
//! assert_eq!(items[16..], 10_001_u64.to_le_bytes());
//! # blosc2::io::dirs::remove_frame(&path)?;
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! Where one process or thread writes what others read, each opens the frame with [`FrameOptions`](frame::FrameOptions)
//! that lock, and readers [`refresh`](schunk::Schunk::refresh) before they ask for the number of chunks or bytes.
//!
//! # Arrays
//!
//! An [`NdArray`](ndarray::NdArray) knows how it is compressed; there is an example with it. In a file:
//!
//! ```
//! use blosc2::chunk::CParams;
//! use blosc2::ndarray::{Geometry, NdArray, Place};
//!
//! # let path = std::env::temp_dir().join(format!("blosc2-doc-{}.b2nd", std::process::id()));
//! // Images of 64 by 80 pixels, one in each chunk; none as yet.
//! let geometry = Geometry::new(&[0, 64, 80], &[1, 64, 80], &[1, 16, 80])?;
//! let params = CParams { typesize: 2, ..CParams::default() };
//! let mut images = NdArray::zeros(Place::File(&path), geometry, "<u2", &params)?;
//! let image: Vec<u8> = (0..64 * 80_u16).flat_map(u16::to_le_bytes).collect();
//! images.append(0, &image)?;
//!
//! let images = NdArray::open(&path)?;
//! assert_eq!(images.shape(), [1, 64, 80]);
//! let mut row = vec![0; 80 * 2];
//! images.get_slice(&[0, 3, 0], &[1, 4, 80], &mut row)?;
//! assert_eq!(row, image[3 * 160..4 * 160]);
//! # blosc2::io::dirs::remove_frame(&path)?;
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! # Errors
//!
//! There is one [`Error`], which is `Copy`: its [`kind`](Error::kind) is one of the C library's, its text tells what
//! was wrong. It becomes a `Box<dyn std::error::Error>` with `?`. Bytes from outside and arguments out of range are
//! errors; where a function panics, it says so.
//!
//! ```
//! use blosc2::ErrorKind;
//! use blosc2::chunk::decompress_to_vec;
//!
//! let error = decompress_to_vec(b"no chunk").unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::ReadBuffer);
//! ```
//!
//! # Codecs of your own
//!
//! [`codecs::Codec`] and [`filters::Filter`] are the traits. They are registered for the whole process, under numbers
//! from 160 on, which the chunks record.
//!
//! ```
//! use blosc2::chunk::{CParams, compress_to_vec, decompress_to_vec};
//! use blosc2::codecs::registry::{CodecEntry, register};
//! use blosc2::codecs::{Codec, CodecContext};
//! use blosc2::{Error, ErrorKind, Result};
//!
//! /// Knows only buffers that are the same byte again and again.
//! struct OneByte;
//!
//! impl Codec for OneByte {
//!     fn encode(&self, _: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<usize> {
//!         if dest.is_empty() || src.iter().any(|&byte| byte != src[0]) {
//!             return Ok(0); // stored as it is
//!         }
//!         dest[0] = src[0];
//!         Ok(1)
//!     }
//!
//!     fn decode(&self, _: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
//!         let &[byte] = src else { return Err(Error::new(ErrorKind::Data, "not one byte")) };
//!         dest.fill(byte);
//!         Ok(())
//!     }
//! }
//!
//! let codec = Box::new(OneByte);
//! register(CodecEntry { id: 200, name: Some(c"one_byte"), complib: 200, version: 1, codec })?;
//! let params = CParams { compcode: 200, typesize: 1, ..CParams::default() };
//! let data = [vec![7; 50_000], (0..100).collect()].concat();
//! assert_eq!(decompress_to_vec(&compress_to_vec(&params, &data)?)?, data);
//! # Ok::<(), blosc2::Error>(())
//! ```
//!
//! # The layers
//!
//! Imports go one way: `base -> format -> codecs, filters -> chunk -> io -> frame -> schunk -> ndarray -> capi`. All
//! other modules are the base; `tests/layers.rs` lists them.

// Without `capi`, code that only the C interface uses looks dead. With it, the compiler still reports code that nobody
// uses.
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
mod shelf;
mod single;
#[cfg(test)]
mod testing;
mod thread_end;
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
