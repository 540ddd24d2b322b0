//! Exported functions: arrays that change their shape.

use std::ffi::{c_int, c_void};

use super::b2nd_handle::{ArrayHandle, not_null};
use super::guard::guard_status;
use super::ptr::{in_bytes, in_slice};
use super::types::b2nd_array_t;
use crate::error::{Error, ErrorKind, Result};
use crate::ndarray::resize::{self, Insertion};

/// The dimension `axis`.
pub(super) fn checked_axis(axis: i8) -> Result<usize> {
    usize::try_from(axis).map_err(|_| Error::new(ErrorKind::InvalidParam, "negative dimension"))
}

/// Gives an array the shape `new_shape`; returns 0, or a negative code.
///
/// Items are added or removed before `start`, in whole chunks, or at the end if that is NULL. New chunks hold zeros.
///
/// # Safety
///
/// `array` is NULL or valid and no other thread uses it; `new_shape` and `start` are NULL or readable for one number
/// per dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_resize(
    array: *mut b2nd_array_t,
    new_shape: *const i64,
    start: *const i64,
) -> c_int {
    guard_status(|| {
        not_null(!new_shape.is_null())?;
        // SAFETY: the caller's promise.
        let array = unsafe { ArrayHandle::from_ptr(array) }?;
        // SAFETY: the caller's promise.
        unsafe {
            array.reshape(|schunk, geometry, _, writing| {
                let ndim = geometry.ndim();
                let shape = in_slice(new_shape, ndim)?;
                let start = if start.is_null() { None } else { Some(in_slice(start, ndim)?) };
                resize::resize_shared(schunk, geometry, shape, start, writing.enc.params)
            })
        }
    })
}

/// Inserts the items in `buffer`, in C order, before item `insert_start` of the dimension `axis`; returns 0, or a
/// negative code. In the middle, position and number of the new items must be whole chunks.
///
/// Shape and items are one change, up to about 64 MiB of new compressed chunks, and without a prefilter. With more, or
/// with a prefilter, the array grows first, and a process killed before the end leaves zeros where items are missing.
///
/// # Safety
///
/// `array` is NULL or valid and no other thread uses it; `buffer` is NULL or readable for `buffersize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_insert(
    array: *mut b2nd_array_t,
    buffer: *const c_void,
    buffersize: i64,
    axis: i8,
    insert_start: i64,
) -> c_int {
    // SAFETY: the caller's promise.
    guard_status(|| unsafe { insert(array, buffer, buffersize, axis, Some(insert_start)) })
}

/// Appends the items in `buffer`, in C order, at the end of the dimension `axis`; returns 0, or a negative code.
/// `b2nd_insert` tells which parts of this are one change.
///
/// # Safety
///
/// As for `b2nd_insert`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_append(
    array: *mut b2nd_array_t,
    buffer: *const c_void,
    buffersize: i64,
    axis: i8,
) -> c_int {
    // SAFETY: the caller's promise.
    guard_status(|| unsafe { insert(array, buffer, buffersize, axis, None) })
}

/// Inserts items before item `at` of a dimension, or at its end.
///
/// # Safety
///
/// As for [`b2nd_insert`].
unsafe fn insert(
    array: *mut b2nd_array_t,
    buffer: *const c_void,
    buffersize: i64,
    axis: i8,
    at: Option<i64>,
) -> Result<()> {
    not_null(!buffer.is_null())?;
    // SAFETY: the caller's promise.
    let (array, src) = unsafe { (ArrayHandle::from_ptr(array)?, in_bytes(buffer, buffersize)?) };
    let axis = checked_axis(axis)?;
    // SAFETY: the caller's promise.
    unsafe {
        array.reshape(|schunk, geometry, reading, writing| {
            let end = || geometry.shape().get(axis).and_then(|&extent| i64::try_from(extent).ok());
            let at = at.or_else(end).unwrap_or(0);
            resize::insert_shared(schunk, geometry, src, Insertion { axis, at }, reading, writing)
        })
    }
}

/// Removes `delete_len` items at `delete_start` of the dimension `axis`; returns 0, or a negative code. In the middle,
/// both must be whole chunks.
///
/// # Safety
///
/// `array` is NULL or valid and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_delete(
    array: *mut b2nd_array_t,
    axis: i8,
    delete_start: i64,
    delete_len: i64,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let array = unsafe { ArrayHandle::from_ptr(array) }?;
        let axis = checked_axis(axis)?;
        // SAFETY: the caller's promise.
        unsafe {
            array.reshape(|schunk, geometry, _, writing| {
                resize::delete_shared(schunk, geometry, axis, delete_start, delete_len, writing.enc.params)
            })
        }
    })
}
