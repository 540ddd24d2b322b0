//! Streams by zlib's own interface: that of zlib-rs, or of the system's zlib.
//!
//! Encoder and decoder states are kept and reset between streams, which saves their allocation and clearing.

#[cfg(feature = "system-zlib")]
use super::system as z;
use crate::error::{ErrorKind, Result, ensure};
#[cfg(not(feature = "system-zlib"))]
use libz_rs_sys as z;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// A length as zlib's `uInt`. Streams are at most 512 MiB long.
fn uint(len: usize) -> z::uInt {
    z::uInt::try_from(len).unwrap_or(z::uInt::MAX)
}

/// A boxed `z_stream`: it must not move, since zlib's state points back to it.
type Stream = Box<z::z_stream>;

/// A `z_stream` with no state, which makes zlib use its own allocator.
fn empty_stream() -> Stream {
    // SAFETY: all fields are integers, raw pointers and optional function pointers, for which zero is a value.
    Box::new(unsafe { MaybeUninit::<z::z_stream>::zeroed().assume_init() })
}

fn stream_size() -> c_int {
    c_int::try_from(size_of::<z::z_stream>()).expect("the struct is small")
}

/// A deflate state, made for one compression level at a time.
pub(crate) struct Encoder {
    /// The stream and its level; `None` before the first use.
    stream: Option<(u8, Stream)>,
}

// SAFETY: zlib's states are tied to no thread.
unsafe impl Send for Encoder {}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { stream: None }
    }

    /// The stream, reset or newly made, for level `clevel`.
    fn stream(&mut self, clevel: u8) -> Result<&mut Stream> {
        if self.stream.as_ref().is_some_and(|(level, _)| *level != clevel) {
            self.end();
        }
        if let Some((_, stream)) = &mut self.stream {
            // SAFETY: the stream was initialised by `deflateInit_`.
            unsafe { z::deflateReset(&raw mut **stream) };
        } else {
            let mut stream = empty_stream();
            let level = c_int::from(clevel);
            // SAFETY: the stream is zeroed and its size is told.
            let code = unsafe { z::deflateInit_(&raw mut *stream, level, z::zlibVersion(), stream_size()) };
            ensure(code == z::Z_OK, ErrorKind::MemoryAlloc, "no memory for a deflate state")?;
            self.stream = Some((clevel, stream));
        }
        Ok(self.stream.as_mut().map(|(_, stream)| stream).expect("made above"))
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let stream = self.stream(clevel)?;
        stream.next_in = src.as_ptr().cast_mut();
        stream.avail_in = uint(src.len());
        stream.next_out = dest.as_mut_ptr();
        stream.avail_out = uint(dest.len());
        // SAFETY: the stream is initialised and its buffers are the slices.
        let code = unsafe { z::deflate(&raw mut **stream, z::Z_FINISH) };
        let left = usize::try_from(stream.avail_out).expect("uInt fits in usize");
        if code != z::Z_STREAM_END {
            // A reset in the middle of a stream is not enough for zlib-rs: at level 1, the next one would miss the
            // header of its first block.
            self.end();
            return Ok(0);
        }
        Ok(dest.len() - left)
    }

    fn end(&mut self) {
        if let Some((_, mut stream)) = self.stream.take() {
            // SAFETY: the stream was initialised by `deflateInit_` and is not used again.
            unsafe { z::deflateEnd(&raw mut *stream) };
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.end();
    }
}

/// An inflate state.
#[cfg(any(feature = "system-zlib", test))]
pub(crate) struct Decoder {
    /// `None` before the first use.
    stream: Option<Stream>,
}

// SAFETY: as above.
#[cfg(any(feature = "system-zlib", test))]
unsafe impl Send for Decoder {}

#[cfg(any(feature = "system-zlib", test))]
impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder { stream: None }
    }

    fn stream(&mut self) -> Result<&mut Stream> {
        if let Some(stream) = &mut self.stream {
            // SAFETY: the stream was initialised by `inflateInit_`.
            unsafe { z::inflateReset(&raw mut **stream) };
        } else {
            let mut stream = empty_stream();
            // SAFETY: the stream is zeroed and its size is told.
            let code = unsafe { z::inflateInit_(&raw mut *stream, z::zlibVersion(), stream_size()) };
            ensure(code == z::Z_OK, ErrorKind::MemoryAlloc, "no memory for an inflate state")?;
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().expect("made above"))
    }

    /// Runs inflate over `src` into `dest`; tells zlib's code and the bytes written.
    fn inflate(&mut self, src: &[u8], dest: &mut [u8], flush: c_int) -> Result<(c_int, usize)> {
        let stream = self.stream()?;
        stream.next_in = src.as_ptr().cast_mut();
        stream.avail_in = uint(src.len());
        stream.next_out = dest.as_mut_ptr();
        stream.avail_out = uint(dest.len());
        // SAFETY: the stream is initialised and its buffers are the slices.
        let code = unsafe { z::inflate(&raw mut **stream, flush) };
        let left = usize::try_from(stream.avail_out).expect("uInt fits in usize");
        Ok((code, dest.len() - left))
    }

    /// Decompresses `src`, which must give exactly `dest.len()` bytes. Bytes after the stream's end are ignored.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged or holds another number of bytes, `MemoryAlloc`.
    pub(crate) fn decompress(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let outcome = self.inflate(src, dest, z::Z_FINISH)?;
        ensure(outcome == (z::Z_STREAM_END, dest.len()), ErrorKind::Data, "damaged zlib stream")
    }

    /// Decompresses the first `wanted` bytes of a stream that holds `dest.len()`.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged as far as it is looked at, `MemoryAlloc`.
    #[cfg(feature = "system-zlib")]
    pub(crate) fn decompress_prefix(&mut self, src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
        let (code, nbytes) = self.inflate(src, &mut dest[..wanted], z::Z_SYNC_FLUSH)?;
        let good = nbytes == wanted && matches!(code, z::Z_OK | z::Z_STREAM_END | z::Z_BUF_ERROR);
        ensure(good, ErrorKind::Data, "damaged zlib stream")
    }
}

#[cfg(any(feature = "system-zlib", test))]
impl Drop for Decoder {
    fn drop(&mut self) {
        if let Some(stream) = &mut self.stream {
            // SAFETY: the stream was initialised by `inflateInit_` and is not used again.
            unsafe { z::inflateEnd(&raw mut **stream) };
        }
    }
}

/// The version that the zlib implementation reports.
pub(crate) fn version() -> String {
    // SAFETY: the function returns a static string.
    let version = unsafe { std::ffi::CStr::from_ptr(z::zlibVersion()) };
    version.to_string_lossy().into_owned()
}
