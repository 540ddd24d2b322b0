//! C pointers to slices and references.
//!
//! Null and negative lengths are caught here; that a pointer is good for its length is the caller's promise. Length 0
//! gives an empty slice whatever the pointer.
//!
//! [`out_bytes`] gives `&mut [u8]` although C may pass memory that it never wrote. The core takes `&mut [u8]`
//! everywhere, writes its output before it reads any of it back, and never lets what was in the buffer decide
//! anything; with `&mut [MaybeUninit<u8>]` instead, each codec, filter and caller in Rust would pay with unsafe code
//! for a difference that no machine can see across the C boundary. Memory from outside has some value for the compiler,
//! which cannot know that nothing was stored there.

use std::ffi::{CStr, c_char, c_void};
use std::slice;
#[cfg(target_pointer_width = "64")]
use std::sync::atomic::AtomicI64;
#[cfg(not(target_pointer_width = "64"))]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use crate::error::{Error, ErrorKind, Result, ensure, require};

/// The `length` bytes at `pointer`, to read.
///
/// # Safety
///
/// Unless null, `pointer` is readable for `length` bytes, and nothing writes them during `'a`.
///
/// # Errors
///
/// `InvalidParam` for a negative length; `NullPointer` for null with a length other than 0.
pub(crate) unsafe fn in_bytes<'a>(pointer: *const c_void, length: impl TryInto<usize>) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise; bytes need no alignment.
    unsafe { in_slice(pointer.cast::<u8>(), length) }
}

/// The `length` bytes at `pointer`, to write. They may be uninitialised: see the module's docs.
///
/// # Safety
///
/// Unless null, `pointer` is writable for `length` bytes, and nothing else uses them during `'a`.
///
/// # Errors
///
/// `InvalidParam` for a negative length; `NullPointer` for null with a length other than 0.
pub(crate) unsafe fn out_bytes<'a>(
    pointer: *mut c_void,
    length: impl TryInto<usize>,
) -> Result<&'a mut [u8]> {
    // SAFETY: the caller's promise; bytes need no alignment.
    unsafe { out_slice(pointer.cast::<u8>(), length) }
}

/// The `length` items at `pointer`, to read.
///
/// # Safety
///
/// Unless null, `pointer` is aligned and readable for `length` initialised items, and nothing writes them during `'a`.
///
/// # Errors
///
/// `InvalidParam` for a negative or impossible length; `NullPointer` for null with a length other than 0.
pub(crate) unsafe fn in_slice<'a, T>(pointer: *const T, length: impl TryInto<usize>) -> Result<&'a [T]> {
    let length = checked_items::<T>(length)?;
    if length == 0 {
        return Ok(&[]);
    }
    ensure(!pointer.is_null(), ErrorKind::NullPointer, "null pointer to input")?;
    // SAFETY: not null and no longer than `isize::MAX` bytes, checked above; readable by the caller's promise.
    Ok(unsafe { slice::from_raw_parts(pointer, length) })
}

/// The `length` items at `pointer`, to write. `T` is a plain number or pointer type, for which every byte is a value.
///
/// # Safety
///
/// Unless null, `pointer` is aligned and writable for `length` items, and nothing else uses them during `'a`.
///
/// # Errors
///
/// `InvalidParam` for a negative or impossible length; `NullPointer` for null with a length other than 0.
pub(crate) unsafe fn out_slice<'a, T: Copy>(
    pointer: *mut T,
    length: impl TryInto<usize>,
) -> Result<&'a mut [T]> {
    let length = checked_items::<T>(length)?;
    if length == 0 {
        return Ok(&mut []);
    }
    ensure(!pointer.is_null(), ErrorKind::NullPointer, "null pointer to output")?;
    // SAFETY: not null and no longer than `isize::MAX` bytes, checked above; writable by the caller's promise.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, length) })
}

/// The error for a bad pointer in functions that do not tell it from other bad parameters.
pub(crate) fn invalid(error: Error) -> Error {
    Error::new(ErrorKind::InvalidParam, error.what())
}

/// `length` as a number of items of `T` whose bytes fit in the address space.
fn checked_items<T>(length: impl TryInto<usize>) -> Result<usize> {
    let length = length.try_into().map_err(|_| Error::new(ErrorKind::InvalidParam, "negative length"))?;
    let bytes = length.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    require(bytes.is_some(), "length above half the address space")?;
    Ok(length)
}

/// What `pointer` points to, to read.
///
/// # Safety
///
/// Unless null, `pointer` points to a live `T` that nothing writes during `'a`.
///
/// # Errors
///
/// `NullPointer` for null.
pub(crate) unsafe fn handle_ref<'a, T>(pointer: *const T) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Error::new(ErrorKind::NullPointer, "null handle"))
}

/// What `pointer` points to, to change.
///
/// # Safety
///
/// Unless null, `pointer` points to a live `T` that nothing else uses during `'a`.
///
/// # Errors
///
/// `NullPointer` for null.
pub(crate) unsafe fn handle_mut<'a, T>(pointer: *mut T) -> Result<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or(Error::new(ErrorKind::NullPointer, "null handle"))
}

/// Stores `value` in an out-parameter that may be null.
///
/// # Safety
///
/// Unless null, `pointer` is aligned and writable for one `T`.
pub(crate) unsafe fn store<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: not null; aligned and writable by the caller's promise.
        unsafe { pointer.write(value) };
    }
}

/// A number in a C struct that threads of the library read and write at the same time.
#[derive(Clone, Copy)]
pub(crate) struct SharedNumber(*mut i64);

impl SharedNumber {
    /// # Safety
    ///
    /// `number` is aligned as C aligns it, and valid as long as this is used. Whatever uses it at the same time in
    /// another thread does so by way of this type.
    #[inline]
    pub(crate) unsafe fn at(number: *mut i64) -> SharedNumber {
        SharedNumber(number)
    }

    /// The number.
    #[inline]
    pub(crate) fn get(self) -> i64 {
        #[cfg(target_pointer_width = "64")]
        return self.whole().load(Ordering::Relaxed);
        #[cfg(not(target_pointer_width = "64"))]
        {
            let mut bytes = [0; 8];
            for (half, bytes) in self.halves().into_iter().zip(bytes.chunks_exact_mut(4)) {
                bytes.copy_from_slice(&half.load(Ordering::Relaxed).to_ne_bytes());
            }
            i64::from_ne_bytes(bytes)
        }
    }

    /// Sets the number.
    #[inline]
    pub(crate) fn set(self, number: i64) {
        #[cfg(target_pointer_width = "64")]
        self.whole().store(number, Ordering::Relaxed);
        #[cfg(not(target_pointer_width = "64"))]
        for (half, bytes) in self.halves().into_iter().zip(number.to_ne_bytes().chunks_exact(4)) {
            half.store(u32::from_ne_bytes(bytes.try_into().expect("4 bytes")), Ordering::Relaxed);
        }
    }

    #[cfg(target_pointer_width = "64")]
    #[inline]
    fn whole<'a>(self) -> &'a AtomicI64 {
        // SAFETY: valid and aligned by the promise of `at`.
        unsafe { AtomicI64::from_ptr(self.0) }
    }

    /// Both halves, in the order of memory: numbers of 8 bytes need not be aligned as atomic operations want them.
    #[cfg(not(target_pointer_width = "64"))]
    fn halves<'a>(self) -> [&'a AtomicU32; 2] {
        let first = self.0.cast::<u32>();
        // SAFETY: valid and aligned for 4 bytes by the promise of `at`.
        unsafe { [AtomicU32::from_ptr(first), AtomicU32::from_ptr(first.add(1))] }
    }
}

/// The C string at `pointer`.
///
/// # Safety
///
/// Unless null, `pointer` points to a NUL-terminated string that nothing writes during `'a`.
///
/// # Errors
///
/// `NullPointer` for null.
pub(crate) unsafe fn c_str<'a>(pointer: *const c_char) -> Result<&'a CStr> {
    ensure(!pointer.is_null(), ErrorKind::NullPointer, "null string")?;
    // SAFETY: not null; NUL-terminated by the caller's promise.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// Whether two names are equal; null equals null.
///
/// # Safety
///
/// Both are null or strings.
pub(crate) unsafe fn same_name(a: *const c_char, b: *const c_char) -> bool {
    if a.is_null() || b.is_null() {
        return a == b;
    }
    // SAFETY: the caller's promise.
    let (a, b) = unsafe { (CStr::from_ptr(a), CStr::from_ptr(b)) };
    a == b
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    fn code<T>(result: Result<T>) -> i32 {
        result.err().map_or(0, Error::code)
    }

    #[test]
    fn null_is_fine_without_bytes_only() {
        // SAFETY: null is allowed.
        unsafe {
            assert_eq!(in_bytes(null(), 0i32), Ok(&[][..]));
            assert_eq!(out_bytes(null_mut(), 0i32), Ok(&mut [][..]));
            assert_eq!(code(in_bytes(null(), 1i32)), ErrorKind::NullPointer as i32);
            assert_eq!(code(out_bytes(null_mut(), 1usize)), ErrorKind::NullPointer as i32);
            assert_eq!(code(handle_ref::<u32>(null())), ErrorKind::NullPointer as i32);
            assert_eq!(code(handle_mut::<u32>(null_mut())), ErrorKind::NullPointer as i32);
            assert_eq!(code(c_str(null())), ErrorKind::NullPointer as i32);
            store::<u32>(null_mut(), 1);
        }
    }

    #[test]
    fn lengths_are_checked() {
        let byte = 7u64;
        let pointer = (&raw const byte).cast::<u64>();
        // SAFETY: the wrong lengths are refused before the pointer is used.
        unsafe {
            assert_eq!(code(in_bytes(pointer.cast(), -1i32)), ErrorKind::InvalidParam as i32);
            assert_eq!(code(in_bytes(pointer.cast(), -1i64)), ErrorKind::InvalidParam as i32);
            assert_eq!(code(in_bytes(pointer.cast(), usize::MAX)), ErrorKind::InvalidParam as i32);
            assert_eq!(code(in_slice(pointer, usize::MAX / 8)), ErrorKind::InvalidParam as i32);
            assert_eq!(in_slice(pointer, 1i32), Ok(&[7u64][..]));
        }
    }

    #[test]
    fn references_reach_the_value() {
        let mut value = 5i32;
        // SAFETY: all pointers are to `value`, one at a time.
        unsafe {
            *handle_mut(&raw mut value).unwrap() += 1;
            assert_eq!(*handle_ref(&raw const value).unwrap(), 6);
            store(&raw mut value, 8);
        }
        assert_eq!(value, 8);
        // SAFETY: a literal is NUL-terminated.
        assert_eq!(unsafe { c_str(c"abc".as_ptr()) }, Ok(c"abc"));
    }
}
