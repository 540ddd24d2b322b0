//! Whole streams at once, by libdeflate: no state goes from one stream to the next.
//!
//! Miri cannot call C; there, zlib-rs does the work.

use crate::error::{ErrorKind, Result, ensure};
use crate::memory::{made, no_memory};
use libdeflate_sys as z;
use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};

/// The checksum at the end of a zlib stream.
pub(super) fn adler32(bytes: &[u8]) -> u32 {
    adler32_more(1, bytes)
}

/// The checksum of what has the checksum `sum`, 1 if it is nothing, and `bytes` after it.
pub(super) fn adler32_more(sum: u32, bytes: &[u8]) -> u32 {
    #[cfg(miri)]
    // SAFETY: the size is that of the slice.
    return unsafe { libz_rs_sys::adler32(sum.into(), bytes.as_ptr(), bytes.len() as u32) } as u32;
    #[cfg(not(miri))]
    // SAFETY: the size is that of the slice.
    unsafe {
        z::libdeflate_adler32(sum, bytes.as_ptr().cast(), bytes.len())
    }
}

/// A compressor, made for one of libdeflate's levels at a time.
pub(super) struct Encoder {
    /// The level and the compressor; `None` before the first use.
    compressor: Option<(c_int, NonNull<z::libdeflate_compressor>)>,
}

// SAFETY: the compressor is memory of its own that no thread holds on to.
unsafe impl Send for Encoder {}

impl Encoder {
    pub(super) fn new() -> Encoder {
        Encoder { compressor: None }
    }

    /// The compressor for `level`.
    fn compressor(&mut self, level: c_int) -> Result<NonNull<z::libdeflate_compressor>> {
        match self.compressor {
            Some((made_for, compressor)) if made_for == level => return Ok(compressor),
            _ => self.free(),
        }
        // SAFETY: any level is fine; the impossible ones give null.
        let compressor = NonNull::new(unsafe { z::libdeflate_alloc_compressor(level) });
        let compressor = compressor.ok_or_else(no_memory)?;
        self.compressor = Some((level, compressor));
        Ok(compressor)
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn compress(&mut self, level: c_int, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        if cfg!(miri) {
            return super::stream::Encoder::new().compress(level.to_le_bytes()[0], src, dest);
        }
        let compressor = self.compressor(level)?;
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        // SAFETY: the compressor is ours, and the buffers are the slices.
        Ok(unsafe { z::libdeflate_zlib_compress(compressor.as_ptr(), from, src.len(), to, dest.len()) })
    }

    /// As [`compress`](Self::compress), without the header and the checksum of the stream.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn compress_blocks(&mut self, level: c_int, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        if cfg!(miri) {
            let mut stream = vec![0; dest.len() + 6];
            let len = self.compress(level, src, &mut stream)?.saturating_sub(6);
            dest[..len].copy_from_slice(&stream[2..2 + len]);
            return Ok(len);
        }
        let compressor = self.compressor(level)?;
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        // SAFETY: the compressor is ours, and the buffers are the slices.
        Ok(unsafe { z::libdeflate_deflate_compress(compressor.as_ptr(), from, src.len(), to, dest.len()) })
    }

    fn free(&mut self) {
        if let Some((_, compressor)) = self.compressor.take() {
            // SAFETY: it comes from `libdeflate_alloc_compressor` and is not used again.
            unsafe { z::libdeflate_free_compressor(compressor.as_ptr()) };
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.free();
    }
}

/// A decompressor.
pub(super) struct Decoder {
    /// `None` before the first use.
    decompressor: Option<NonNull<z::libdeflate_decompressor>>,
}

// SAFETY: the decompressor is memory of its own that no thread holds on to.
unsafe impl Send for Decoder {}

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder { decompressor: None }
    }

    /// Decompresses `src`, which must give exactly `dest.len()` bytes. Bytes after the stream's end are ignored.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged or holds another number of bytes, `MemoryAlloc`.
    pub(super) fn decompress(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        #[cfg(miri)]
        return super::stream::Decoder::new().decompress(src, dest);
        #[cfg(not(miri))]
        self.decompress_natively(src, dest)
    }

    #[cfg(not(miri))]
    fn decompress_natively(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let state = *made(&mut self.decompressor, || {
            // SAFETY: the function has no preconditions.
            NonNull::new(unsafe { z::libdeflate_alloc_decompressor() }).ok_or_else(no_memory)
        })?;
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        let mut read = 0;
        // SAFETY: the decompressor is ours, and the buffers are the slices. Without a place for the bytes written, it
        // succeeds only if they are as many as `dest` has.
        let code = unsafe {
            z::libdeflate_zlib_decompress_ex(
                state.as_ptr(),
                from,
                src.len(),
                to,
                dest.len(),
                &raw mut read,
                null_mut(),
            )
        };
        ensure(code == z::libdeflate_result_LIBDEFLATE_SUCCESS, ErrorKind::Data, "damaged zlib stream")
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        if let Some(decompressor) = self.decompressor {
            // SAFETY: it comes from `libdeflate_alloc_decompressor` and is not used again.
            unsafe { z::libdeflate_free_decompressor(decompressor.as_ptr()) };
        }
    }
}
