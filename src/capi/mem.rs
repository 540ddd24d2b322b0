//! Memory for callers, who release it with `free()`: copies of what the library has.
//!
//! What the library makes for them, or takes over from them, is a [`MallocBuf`].

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::slice;

use crate::error::{Error, ErrorKind, Result, ensure};
use crate::io::memory::MallocBuf;

/// A copy of `bytes` for a caller that releases it with `free()`.
///
/// # Errors
///
/// `MemoryAlloc` if there is not enough memory.
pub(crate) fn c_bytes(bytes: &[u8]) -> Result<*mut u8> {
    Ok(MallocBuf::copy_of(bytes)?.into_raw().0)
}

/// A copy of `text`, with its NUL, for a caller that releases it with `free()`.
///
/// # Errors
///
/// `MemoryAlloc` if there is not enough memory.
pub(crate) fn c_string(text: &CStr) -> Result<*mut c_char> {
    c_bytes(text.to_bytes_with_nul()).map(|bytes| bytes.cast())
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

/// As [`c_array`], with these numbers.
pub(crate) fn c_numbers(numbers: Range<i64>) -> Result<*mut i64> {
    let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for a result");
    let count = numbers.end.saturating_sub(numbers.start).max(0);
    let count = usize::try_from(count).map_err(|_| failed)?;
    let size = count.max(1).checked_mul(size_of::<i64>()).ok_or(failed)?;
    // SAFETY: `malloc` takes any size.
    let start = unsafe { libc::malloc(size) }.cast::<MaybeUninit<i64>>();
    ensure(!start.is_null(), failed.kind(), "no memory for a result")?;
    // SAFETY: the new memory has room for `count` numbers, is aligned for them and is used by nobody else.
    let places = unsafe { slice::from_raw_parts_mut(start, count) };
    for (place, number) in places.iter_mut().zip(numbers) {
        place.write(number);
    }
    Ok(start.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_arrays_can_be_freed_by_c() {
        let text = c_string(c"zstd").unwrap();
        let array = c_array(&[1i64, -2]).unwrap();
        let numbers = c_numbers(7..10).unwrap();
        let bytes = c_bytes(&[9]).unwrap();
        // SAFETY: all of them came from C's allocator a moment ago and are live until freed.
        unsafe {
            assert_eq!(CStr::from_ptr(text), c"zstd");
            assert_eq!(array.add(1).read(), -2);
            assert_eq!(*numbers.cast::<[i64; 3]>(), [7, 8, 9]);
            assert_eq!(bytes.read(), 9);
            libc::free(text.cast());
            libc::free(array.cast());
            libc::free(numbers.cast());
            libc::free(bytes.cast());
        }
    }
}
