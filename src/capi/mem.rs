//! Memory that crosses the boundary: made and released by C's allocator.
//!
//! What a caller releases with `free()` is made here, and chunks that a caller made with `malloc()` and gives away are
//! held here, as [`CBuffer`].

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use crate::error::{Error, ErrorKind, Result};
use crate::io::Fill;

/// Bytes in memory of C's allocator; released with `free()` when dropped.
#[derive(Debug)]
pub(crate) struct CBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a `CBuffer` owns its bytes alone, and C's allocator may be called from any thread.
unsafe impl Send for CBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for CBuffer {}

impl CBuffer {
    /// `len` zero bytes. The memory is never null, also for length 0.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc` if there is not enough memory.
    pub(crate) fn zeroed(len: usize) -> Result<CBuffer> {
        // SAFETY: `calloc` takes any sizes.
        let start = unsafe { libc::calloc(len.max(1), 1) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) => Ok(CBuffer { start, len }),
            None => Err(Error::new(ErrorKind::MemoryAlloc, "no memory for a result")),
        }
    }

    /// `len` bytes that `fill` sets.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc` if there is not enough memory, and those of `fill`.
    pub(crate) fn filled(len: usize, fill: &Fill<'_>) -> Result<CBuffer> {
        // SAFETY: `malloc` takes any size.
        let start = unsafe { libc::malloc(len.max(1)) };
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(Error::new(ErrorKind::MemoryAlloc, "no memory for a result"));
        };
        // It releases the memory, whose content it does not look at, if anything fails.
        let buffer = CBuffer { start, len };
        // SAFETY: the new memory holds `len` bytes, and nobody else has it.
        let room = unsafe { slice::from_raw_parts_mut(start.as_ptr().cast::<MaybeUninit<u8>>(), len) };
        let filled = fill(room)?;
        assert!(filled.as_ptr() == start.as_ptr() && filled.len() == len, "all of the memory is filled");
        Ok(buffer)
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc` if there is not enough memory.
    pub(crate) fn copy_of(bytes: &[u8]) -> Result<CBuffer> {
        // SAFETY: `malloc` takes any size.
        let start = unsafe { libc::malloc(bytes.len().max(1)) };
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(Error::new(ErrorKind::MemoryAlloc, "no memory for a result"));
        };
        // SAFETY: the new memory holds at least `bytes.len()` bytes and overlaps nothing.
        unsafe { start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(CBuffer { start, len: bytes.len() })
    }

    /// Takes over memory that C code made.
    ///
    /// # Safety
    ///
    /// `start` came from C's `malloc`, `calloc` or `realloc`, holds at least `len` initialised bytes, and now belongs
    /// to this buffer alone.
    ///
    /// # Errors
    ///
    /// `NullPointer` if `start` is null.
    pub(crate) unsafe fn from_raw(start: *mut u8, len: usize) -> Result<CBuffer> {
        match NonNull::new(start) {
            Some(start) => Ok(CBuffer { start, len }),
            None => Err(Error::new(ErrorKind::NullPointer, "null pointer to memory given away")),
        }
    }

    /// Gives the memory to C, which releases it with `free()`.
    pub(crate) fn into_raw(self) -> *mut u8 {
        let start = self.start.as_ptr();
        std::mem::forget(self);
        start
    }

    /// Where the bytes are.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Gives the tail behind the first `len` bytes back to the allocator; does nothing if `len` is not less.
    pub(crate) fn shrink(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        // SAFETY: `start` came from C's allocator and belongs to this buffer.
        let start = unsafe { libc::realloc(self.start.as_ptr().cast::<c_void>(), len.max(1)) };
        if let Some(start) = NonNull::new(start.cast::<u8>()) {
            self.start = start;
        }
        self.len = len;
    }
}

impl Deref for CBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` holds `len` initialised bytes as long as `self` lives.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for CBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl AsMut<[u8]> for CBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Drop for CBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from C's allocator and belongs to this buffer.
        unsafe { libc::free(self.start.as_ptr().cast::<c_void>()) };
    }
}

/// A copy of `bytes` for a caller that releases it with `free()`.
///
/// # Errors
///
/// `MemoryAlloc` if there is not enough memory.
pub(crate) fn c_bytes(bytes: &[u8]) -> Result<*mut u8> {
    CBuffer::copy_of(bytes).map(CBuffer::into_raw)
}

/// A copy of `text`, with its NUL, for a caller that releases it with `free()`.
///
/// # Errors
///
/// `MemoryAlloc` if there is not enough memory.
pub(crate) fn c_string(text: &CStr) -> Result<*mut c_char> {
    CBuffer::copy_of(text.to_bytes_with_nul()).map(|buffer| buffer.into_raw().cast::<c_char>())
}

/// A copy of `items` for a caller that releases it with `free()`.
///
/// # Errors
///
/// `MemoryAlloc` if there is not enough memory.
pub(crate) fn c_array<T: Copy>(items: &[T]) -> Result<*mut T> {
    const { assert!(align_of::<T>() <= 8, "malloc's alignment on every target") };
    // SAFETY: `malloc` takes any size; a slice's size does not overflow.
    let start = unsafe { libc::malloc(size_of_val(items).max(1)) }.cast::<T>();
    if start.is_null() {
        return Err(Error::new(ErrorKind::MemoryAlloc, "no memory for a result"));
    }
    // SAFETY: the new memory holds at least `items.len()` items, is aligned for them and overlaps nothing.
    unsafe { start.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_keep_their_bytes_through_shrinking_and_raw_pointers() {
        let mut buffer = CBuffer::copy_of(&[1, 2, 3, 4, 5]).unwrap();
        buffer.shrink(3);
        buffer.shrink(9);
        buffer[0] = 7;
        assert_eq!(&*buffer, &[7, 2, 3]);
        let raw = buffer.into_raw();
        // SAFETY: `raw` was given away just now, with 3 bytes.
        let buffer = unsafe { CBuffer::from_raw(raw, 3) }.unwrap();
        assert_eq!(&*buffer, &[7, 2, 3]);
    }

    #[test]
    fn empty_buffers_are_not_null() {
        let mut buffer = CBuffer::zeroed(0).unwrap();
        assert!(buffer.is_empty() && !buffer.as_ptr().is_null());
        buffer.shrink(0);
        assert_eq!(&*CBuffer::zeroed(2).unwrap(), &[0, 0]);
        // SAFETY: null is refused.
        assert!(unsafe { CBuffer::from_raw(std::ptr::null_mut(), 0) }.is_err());
    }

    #[test]
    fn strings_and_arrays_can_be_freed_by_c() {
        let text = c_string(c"zstd").unwrap();
        let array = c_array(&[1i64, -2]).unwrap();
        let bytes = c_bytes(&[9]).unwrap();
        // SAFETY: all three came from C's allocator a moment ago and are live until freed.
        unsafe {
            assert_eq!(CStr::from_ptr(text), c"zstd");
            assert_eq!(array.add(1).read(), -2);
            assert_eq!(bytes.read(), 9);
            libc::free(text.cast());
            libc::free(array.cast());
            libc::free(bytes.cast());
        }
    }
}
