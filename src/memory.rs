//! Memory whose amount depends on data. That it cannot be had is an error of the operation and not the end of the
//! process, as it would be with the functions of `Vec`.

use crate::error::{Error, ErrorKind, Result};
use std::alloc::{Layout, alloc_zeroed};
use std::mem::MaybeUninit;

/// There is no memory for what is to be done.
#[cold]
pub(crate) fn no_memory() -> Error {
    Error::new(ErrorKind::MemoryAlloc, "no memory")
}

/// An empty vector with room for `capacity` values.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn with_capacity<T>(capacity: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve(&mut values, capacity)?;
    Ok(values)
}

/// Makes room for `more` values at the end, so that adding them cannot fail.
///
/// # Errors
///
/// `MemoryAlloc`; the values are as before.
pub(crate) fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    values.try_reserve_exact(more).map_err(|_| no_memory())
}

/// `len` times `value`.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    let mut values = with_capacity(len)?;
    values.resize(len, value);
    Ok(values)
}

/// A copy of `values`.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn copy_of<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = with_capacity(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// What `values` gives, in a vector.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn collect<T>(values: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let (least, most) = values.size_hint();
    let mut collected = with_capacity(least)?;
    if Some(least) == most {
        collected.extend(values);
        return Ok(collected);
    }
    for value in values {
        push(&mut collected, value)?;
    }
    Ok(collected)
}

/// What `values` gives, in a vector, up to the first failure.
///
/// # Errors
///
/// That failure, or `MemoryAlloc`.
pub(crate) fn try_collect<T>(values: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (least, most) = values.size_hint();
    let mut collected = with_capacity(most.unwrap_or(least))?;
    for value in values {
        push(&mut collected, value?)?;
    }
    Ok(collected)
}

/// Adds `value` at the end of `values`.
///
/// # Errors
///
/// `MemoryAlloc`; the values are as before.
pub(crate) fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    values.try_reserve(1).map_err(|_| no_memory())?;
    values.push(value);
    Ok(())
}

/// Adds `more` at the end of `values`.
///
/// # Errors
///
/// `MemoryAlloc`; the values are as before.
pub(crate) fn extend<T: Copy>(values: &mut Vec<T>, more: &[T]) -> Result<()> {
    values.try_reserve(more.len()).map_err(|_| no_memory())?;
    values.extend_from_slice(more);
    Ok(())
}

/// Gives `buffer` the length `len`. Bytes that are there stay as they are, so that a buffer that is used again need not
/// be zeroed again; new ones are zero.
///
/// # Errors
///
/// `MemoryAlloc`; the buffer is as before.
pub(crate) fn resize(buffer: &mut Vec<u8>, len: usize) -> Result<()> {
    reserve(buffer, len.saturating_sub(buffer.len()))?;
    buffer.resize(len, 0);
    Ok(())
}

/// Gives `buffer` at least `len` bytes. Those that are there stay as they are, so that they need not be zeroed first.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn grow(buffer: &mut Vec<u8>, len: usize) -> Result<()> {
    if buffer.len() >= len {
        return Ok(());
    }
    if buffer.is_empty() && buffer.capacity() < len {
        // Of what comes zeroed from the system, only what is used costs memory.
        *buffer = zeroed(len)?;
        return Ok(());
    }
    resize(buffer, len)
}

/// The value in `slot`, made at its first use.
///
/// # Errors
///
/// Those of `make`.
#[inline]
pub(crate) fn made<T>(slot: &mut Option<T>, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
    match slot {
        Some(value) => Ok(value),
        None => Ok(slot.insert(make()?)),
    }
}

/// How many bytes of memory for output are asked for, and what must be in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Zeros: what writes there may leave some out.
    Zeros(usize),
    /// Whatever was there before: all of it is written before any is read.
    Any(usize),
}

/// Types of which zero bytes are a value.
///
/// # Safety
///
/// They are.
pub(crate) unsafe trait Zero {}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(
            // SAFETY: an integer.
            unsafe impl Zero for $integer {}
        )*
    };
}
integers!(u8, u16, u32, u64, i64);

// SAFETY: zero bytes are a value of each element.
unsafe impl<T: Zero, const N: usize> Zero for [T; N] {}

/// `len` zeros.
///
/// Large amounts come from the system as pages that cost nothing before they are touched, so a size that turns out to
/// be a lie costs no memory.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn zeroed<T: Zero>(len: usize) -> Result<Vec<T>> {
    let layout = Layout::array::<T>(len).map_err(|_| no_memory())?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(no_memory());
    }
    // SAFETY: the global allocator made room for `len` values with the layout that `Vec<T>` uses; all of them are zero
    // bytes, which are a value.
    Ok(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}

/// What `make` returns in memory of its own, where it is made.
///
/// # Errors
///
/// `MemoryAlloc`.
#[inline(always)] // or the value, which may be large, would be copied
pub(crate) fn boxed<T>(make: impl FnOnce() -> T) -> Result<Box<T>> {
    let mut one: Vec<MaybeUninit<T>> = with_capacity(1)?;
    one.push(MaybeUninit::uninit());
    let mut one = one.into_boxed_slice();
    one[0].write(make());
    // SAFETY: a slice of one value has the layout of the value, which was written.
    Ok(unsafe { Box::from_raw(Box::into_raw(one).cast::<T>()) })
}

/// A value of zero bytes in memory of its own, which never was on the stack.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn zeroed_box<T: Zero>() -> Result<Box<T>> {
    const { assert!(size_of::<T>() > 0) };
    let one: Box<[T]> = zeroed(1)?.into_boxed_slice();
    // SAFETY: a slice of one value has the layout of the value.
    Ok(unsafe { Box::from_raw(Box::into_raw(one).cast::<T>()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// That many values of two bytes and more. Where addresses have 32 bits, half of the bytes that they reach may be
    /// had.
    const IMPOSSIBLE: usize = usize::MAX / if cfg!(target_pointer_width = "32") { 2 } else { 8 };

    #[test]
    fn impossible_amounts_are_errors() {
        let is_no_memory = |e: Error| e.kind() == ErrorKind::MemoryAlloc;
        // The compiler may leave out asking for memory that nobody sees.
        assert!(black_box(with_capacity::<u32>(IMPOSSIBLE)).is_err_and(is_no_memory));
        assert!(black_box(filled(7u16, IMPOSSIBLE)).is_err_and(is_no_memory));
        assert!(black_box(zeroed::<[u32; 4]>(IMPOSSIBLE)).is_err_and(is_no_memory));
        let mut bytes = vec![1, 2];
        assert!(reserve(&mut bytes, usize::MAX).is_err_and(is_no_memory));
        assert!(resize(&mut bytes, usize::MAX).is_err_and(is_no_memory));
        assert!(grow(&mut bytes, usize::MAX).is_err_and(is_no_memory));
        assert_eq!(bytes, [1, 2]);
    }

    #[test]
    fn what_there_is_memory_for_is_given() {
        assert_eq!(filled(7u16, 3), Ok(vec![7; 3]));
        assert_eq!(zeroed(3), Ok(vec![0u64; 3]));
        assert_eq!(zeroed::<u8>(0), Ok(vec![]));
        assert_eq!(boxed(|| [7u16; 3]), Ok(Box::new([7; 3])));
        assert_eq!(boxed(|| ()), Ok(Box::new(())));
        assert_eq!(zeroed_box(), Ok(Box::new([[0u32; 4]; 100])));
        assert_eq!(copy_of(&[1, 2]), Ok(vec![1, 2]));
        assert_eq!(collect([1, 2].into_iter()), Ok(vec![1, 2]));
        assert_eq!(collect((0..9).filter(|n| n % 4 == 0)), Ok(vec![0, 4, 8]));
        assert_eq!(try_collect([Ok(1), Ok(2)].into_iter()), Ok(vec![1, 2]));
        assert_eq!(try_collect([Ok(1), Err(no_memory())].into_iter()), Err(no_memory()));
        let mut bytes = vec![1, 2];
        grow(&mut bytes, 1).unwrap();
        assert_eq!(bytes, [1, 2]);
        grow(&mut bytes, 3).unwrap();
        assert_eq!(bytes, [1, 2, 0]);
        resize(&mut bytes, 1).unwrap();
        assert_eq!(bytes, [1]);
        let mut fresh = Vec::new();
        grow(&mut fresh, 2).unwrap();
        assert_eq!(fresh, [0, 0]);
    }
}
