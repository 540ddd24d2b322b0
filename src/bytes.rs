//! Checked access to little-endian integers, size arithmetic, and memory for sizes that nobody vouches for.

use crate::error::{Error, ErrorKind, Result};
use std::alloc::{Layout, alloc_zeroed};

/// Gives `buffer` at least `len` bytes. Those that are there stay as they are, so that they need not be zeroed first.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn grow(buffer: &mut Vec<u8>, len: usize) -> Result<()> {
    if buffer.len() < len {
        let no_memory = Error::new(ErrorKind::MemoryAlloc, "no memory for a buffer");
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| no_memory)?;
        buffer.resize(len, 0);
    }
    Ok(())
}

/// `len` zero bytes.
///
/// Large amounts come from the system as pages that cost nothing before they are touched, so a size that turns out to
/// be a lie costs no memory; nor does it end the process.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn zeroed(len: usize) -> Result<Vec<u8>> {
    // SAFETY: zero is a byte.
    unsafe { zeroed_vec(len) }
}

/// `len` numbers that are zero; as [`zeroed`] otherwise.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn zeroed_numbers(len: usize) -> Result<Vec<i64>> {
    // SAFETY: eight zero bytes are a number.
    unsafe { zeroed_vec(len) }
}

/// # Safety
///
/// A `T` may consist of zero bytes.
unsafe fn zeroed_vec<T>(len: usize) -> Result<Vec<T>> {
    let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for a buffer");
    let layout = Layout::array::<T>(len).map_err(|_| failed)?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(failed);
    }
    // SAFETY: the global allocator made room for `len` values with the layout that `Vec<T>` uses; all of them are zero
    // bytes, which the caller says is a value.
    Ok(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}

/// The bytes of `numbers`, in the order of this machine.
pub(crate) fn bytes_of_mut(numbers: &mut [i64]) -> &mut [u8] {
    // SAFETY: the same memory, borrowed as long; bytes need no alignment, and whatever is written makes numbers.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast::<u8>(), size_of_val(numbers)) }
}

/// `len / n`, in fewer cycles where `n` is a power of two, as most typesizes are. `n` is not 0.
#[inline(always)]
pub(crate) fn quotient(len: usize, n: usize) -> usize {
    if n.is_power_of_two() { len >> n.trailing_zeros() } else { len / n }
}

/// The `i32` stored little-endian at `at`, or `None` past the end.
#[inline]
pub(crate) fn get_i32(bytes: &[u8], at: usize) -> Option<i32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(raw.try_into().expect("the range is 4 bytes long")))
}

/// Stores `value` little-endian at `at`; the caller made room for it.
#[inline]
pub(crate) fn put_i32(bytes: &mut [u8], at: usize, value: i32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// `value` as the `i32` that the format stores.
///
/// # Errors
///
/// `kind` if it does not fit.
#[inline]
pub(crate) fn to_i32(value: usize, kind: ErrorKind) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::new(kind, "size does not fit in 32 bits"))
}
