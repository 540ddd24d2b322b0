//! Exported functions: boxes and selections of arrays, and utilities for n-dimensional buffers.

use std::ffi::{c_int, c_void};

use super::b2nd_ctx::checked_ndim;
use super::b2nd_handle::{ArrayHandle, not_null};
use super::guard::guard_status;
use super::ptr::{in_bytes, in_slice, out_bytes};
use super::schunk_handle::SchunkHandle;
use super::types::b2nd_array_t;
use crate::error::{Error, ErrorKind, Result, require};
use crate::ndarray::copy_buffer::BoxCopy;
use crate::ndarray::request::{self, BoxRequest, PaddedBox, SelectionRequest};
use crate::ndarray::select;
use crate::ndarray::shape::Region;
use crate::ndarray::write::{self, Items};
use crate::ndarray::{Geometry, slice};
use crate::schunk::{Reading, Writing};

/// Copies the box from `start` to `stop` (excluded) to a C-order buffer of shape `buffershape`; returns 0, or a
/// negative code.
///
/// Everything else in the `buffersize` bytes becomes zero, also what lies outside of the array.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `start`, `stop` and `buffershape` are NULL or readable for one
/// number per dimension; `buffer` is NULL or writable for `buffersize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_get_slice_cbuffer(
    array: *const b2nd_array_t,
    start: *const i64,
    stop: *const i64,
    buffer: *mut c_void,
    buffershape: *const i64,
    buffersize: i64,
) -> c_int {
    guard_status(|| {
        not_null(!start.is_null() && !stop.is_null() && !buffershape.is_null() && !buffer.is_null())?;
        // SAFETY: the caller's promise.
        let array = unsafe { ArrayHandle::from_ptr(array) }?;
        array.read_fresh(|schunk, geometry, reading| {
            // SAFETY: the caller's promise.
            let dest = unsafe { out_bytes(buffer, buffersize) }?;
            let ndim = geometry.ndim();
            // SAFETY: as above.
            let (start, stop, shape) =
                unsafe { (in_slice(start, ndim)?, in_slice(stop, ndim)?, in_slice(buffershape, ndim)?) };
            let mut request = BoxRequest::empty(geometry);
            let asked = request.ask(geometry, schunk.typesize(), (start, stop), shape, buffersize);
            if !request.fills {
                dest.fill(0);
            }
            asked?;
            if request.is_empty {
                return Ok(());
            }
            slice::read(schunk, geometry, &request.region, dest, &request.buffershape[..ndim], reading)
        })
    })
}

/// Gives the box from `start` to `stop` (excluded) the values in a C-order buffer of shape `buffershape`; returns 0, or
/// a negative code. What lies outside of the array is ignored.
///
/// # Safety
///
/// `array` is NULL or valid and no other thread uses it; `start`, `stop` and `buffershape` are NULL or readable for one
/// number per dimension; `buffer` is NULL or readable for `buffersize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_set_slice_cbuffer(
    buffer: *const c_void,
    buffershape: *const i64,
    buffersize: i64,
    start: *const i64,
    stop: *const i64,
    array: *mut b2nd_array_t,
) -> c_int {
    guard_status(|| {
        not_null(!start.is_null() && !stop.is_null() && !buffershape.is_null() && !buffer.is_null())?;
        // SAFETY: the caller's promise.
        let (array, src) = unsafe { (ArrayHandle::from_ptr(array)?, in_bytes(buffer, buffersize)?) };
        let write = |schunk: &mut &SchunkHandle,
                     geometry: &Geometry,
                     reading: &Reading<'_>,
                     writing: &Writing<'_>| {
            let ndim = geometry.ndim();
            // SAFETY: the caller's promise.
            let (start, stop, shape) =
                unsafe { (in_slice(start, ndim)?, in_slice(stop, ndim)?, in_slice(buffershape, ndim)?) };
            let typesize = schunk.look(|schunk| Ok(schunk.typesize()))?;
            let mut request = BoxRequest::empty(geometry);
            request.ask(geometry, typesize, (start, stop), shape, buffersize)?;
            if request.is_empty {
                return Ok(());
            }
            let src = Items { bytes: src, shape: &request.buffershape[..ndim] };
            write::write(schunk, geometry, &request.region, src, reading, writing)
        };
        // SAFETY: the caller's promise.
        unsafe { array.write(write) }
    })
}

/// Copies the whole array to `buffer`, in C order; returns 0, or a negative code. The rest of the `buffersize` bytes
/// becomes zero.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `buffer` is NULL or writable for `buffersize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_to_cbuffer(
    array: *const b2nd_array_t,
    buffer: *mut c_void,
    buffersize: i64,
) -> c_int {
    guard_status(|| {
        not_null(!buffer.is_null())?;
        // SAFETY: the caller's promise.
        let array = unsafe { ArrayHandle::from_ptr(array) }?;
        array.read_fresh(|schunk, geometry, reading| {
            // SAFETY: the caller's promise.
            let dest = unsafe { out_bytes(buffer, buffersize) }?;
            let needed = geometry.nitems().checked_mul(schunk.typesize() as u64); // widening
            let needed = needed.and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= dest.len());
            let needed =
                needed.ok_or(Error::new(ErrorKind::InvalidParam, "buffer shorter than the array"))?;
            if needed == 0 {
                return Ok(());
            }
            let (dest, rest) = dest.split_at_mut(needed);
            rest.fill(0);
            slice::read(schunk, geometry, &Region::all(geometry), dest, geometry.shape(), reading)
        })
    })
}

/// What callers select; `None` if it is empty. `buffersize` tells how many bytes are selected.
///
/// # Safety
///
/// Lists, sizes and the shape of the buffer are readable for one entry per dimension, each list for its size.
unsafe fn selected(
    geometry: &Geometry,
    typesize: usize,
    lists: *const *mut i64,
    sizes: *const i64,
    buffershape: *const i64,
    buffersize: i64,
) -> Result<Option<SelectionRequest>> {
    let ndim = geometry.ndim();
    require(ndim > 0, "no dimensions")?;
    // SAFETY: the caller's promise.
    let (lists, sizes) = unsafe { (in_slice(lists, ndim)?, in_slice(sizes, ndim)?) };
    let mut indices: Vec<&[i64]> = Vec::with_capacity(ndim);
    for (&list, &size) in lists.iter().zip(sizes) {
        not_null(!list.is_null())?;
        // SAFETY: the caller's promise.
        indices.push(unsafe { in_slice(list.cast_const(), size) }?);
    }
    // SAFETY: the caller's promise.
    let buffershape = || unsafe { in_slice(buffershape, ndim) };
    SelectionRequest::of(geometry, typesize, &indices, buffershape, buffersize)
}

/// Copies the items whose index in each dimension is in its list to a C-order buffer of shape `buffershape`; returns 0,
/// or a negative code. `selection_size` holds the lengths of the lists, `buffersize` is the number of bytes that are
/// selected.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `selection` and `selection_size` are NULL or readable for one entry
/// per dimension, each list for its length; `buffershape` as well; `buffer` is writable for as many items as
/// `buffershape` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_get_orthogonal_selection(
    array: *const b2nd_array_t,
    selection: *mut *mut i64,
    selection_size: *mut i64,
    buffer: *mut c_void,
    buffershape: *mut i64,
    buffersize: i64,
) -> c_int {
    guard_status(|| {
        not_null(!selection.is_null() && !selection_size.is_null())?;
        // SAFETY: the caller's promise.
        let array = unsafe { ArrayHandle::from_ptr(array) }?;
        array.read_fresh(|schunk, geometry, reading| {
            let typesize = schunk.typesize();
            // SAFETY: the caller's promise.
            let asked =
                unsafe { selected(geometry, typesize, selection, selection_size, buffershape, buffersize) }?;
            let Some(asked) = asked else { return Ok(()) };
            // SAFETY: the caller's promise.
            let dest = unsafe { out_bytes(buffer, asked.span) }?;
            select::read(schunk, geometry, &asked.selection, dest, &asked.buffershape, reading)
        })
    })
}

/// Gives the items whose index in each dimension is in its list the values in a C-order buffer of shape `buffershape`;
/// returns 0, or a negative code. Of indices that occur more than once the last one counts.
///
/// # Safety
///
/// As for `b2nd_get_orthogonal_selection`; no other thread uses `array`, and `buffer` is only read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_set_orthogonal_selection(
    array: *mut b2nd_array_t,
    selection: *mut *mut i64,
    selection_size: *mut i64,
    buffer: *const c_void,
    buffershape: *mut i64,
    buffersize: i64,
) -> c_int {
    guard_status(|| {
        not_null(!selection.is_null() && !selection_size.is_null())?;
        // SAFETY: the caller's promise.
        let array = unsafe { ArrayHandle::from_ptr(array) }?;
        let write = |schunk: &mut &SchunkHandle,
                     geometry: &Geometry,
                     reading: &Reading<'_>,
                     writing: &Writing<'_>| {
            let typesize = schunk.look(|schunk| Ok(schunk.typesize()))?;
            // SAFETY: the caller's promise.
            let asked =
                unsafe { selected(geometry, typesize, selection, selection_size, buffershape, buffersize) }?;
            let Some(asked) = asked else { return Ok(()) };
            // SAFETY: the caller's promise.
            let bytes = unsafe { in_bytes(buffer, asked.span) }?;
            let src = Items { bytes, shape: &asked.buffershape };
            select::write_to(schunk, geometry, &asked.selection, src, reading, writing)
        };
        // SAFETY: the caller's promise.
        unsafe { array.write(write) }
    })
}

/// Copies the items with the C-order numbers `coords`, in any order and as often as they occur, to `buffer`; returns 0,
/// or a negative code.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `coords` is NULL or readable for `ncoords` numbers, `buffer` NULL or
/// writable for `buffersize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_get_sparse_cbuffer(
    array: *const b2nd_array_t,
    ncoords: i64,
    coords: *const i64,
    buffer: *mut c_void,
    buffersize: i64,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let array = unsafe { ArrayHandle::from_ptr(array) }?;
        array.refresh()?;
        let count = usize::try_from(ncoords);
        let count = count.map_err(|_| Error::new(ErrorKind::InvalidParam, "negative number of items"))?;
        if count == 0 {
            return Ok(());
        }
        not_null(!coords.is_null() && !buffer.is_null())?;
        array.read(|schunk, geometry, reading| {
            let needed = count.checked_mul(schunk.typesize()).and_then(|n| i64::try_from(n).ok());
            let fits = needed.is_some_and(|needed| needed <= buffersize);
            require(fits, "buffer shorter than the items")?;
            // SAFETY: the caller's promise.
            let (coords, dest) = unsafe { (in_slice(coords, count)?, out_bytes(buffer, buffersize)?) };
            select::read_sparse(schunk, geometry, coords, dest, reading)
        })
    })
}

/// Copies a box from one C-order buffer to another; returns 0, or a negative code.
///
/// The box goes from `src_start` to `src_stop` (excluded) in a buffer of shape `src_pad_shape`, and starts at
/// `dst_start` in one of shape `dst_pad_shape`.
///
/// # Safety
///
/// The shapes and positions are readable for `ndim` numbers each; the box lies in both buffers, which do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_copy_buffer2(
    ndim: i8,
    itemsize: i32,
    src: *const c_void,
    src_pad_shape: *const i64,
    src_start: *const i64,
    src_stop: *const i64,
    dst: *mut c_void,
    dst_pad_shape: *const i64,
    dst_start: *const i64,
) -> c_int {
    guard_status(|| {
        let count = checked_ndim(ndim)?;
        let itemsize = usize::try_from(itemsize);
        let itemsize = itemsize.map_err(|_| Error::new(ErrorKind::InvalidParam, "negative item size"))?;
        // SAFETY: the caller's promise.
        let numbers = |numbers: *const i64| unsafe { in_slice(numbers, count) };
        let (start, stop) = (numbers(src_start)?, numbers(src_stop)?);
        let extents = request::extents(start, stop);
        let extents = &extents[..count];
        if itemsize == 0 || extents.contains(&0) {
            return Ok(());
        }
        not_null(!src.is_null() && !dst.is_null())?;
        let from = PaddedBox { shape: numbers(src_pad_shape)?, start };
        let to = PaddedBox { shape: numbers(dst_pad_shape)?, start: numbers(dst_start)? };
        let mut copy = BoxCopy::of_item(itemsize);
        let (src_at, dst_at) = request::between_padded(&mut copy, itemsize, extents, from, to)?;
        // SAFETY: the box lies in both buffers by the caller's promise.
        unsafe { copy.copy_between(src.cast::<u8>().add(src_at), dst.cast::<u8>().add(dst_at)) };
        Ok(())
    })
}

/// As `b2nd_copy_buffer2`, for items of at most 255 bytes.
///
/// # Safety
///
/// As for `b2nd_copy_buffer2`.
#[deprecated(note = "b2nd_copy_buffer2 takes items of any size")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_copy_buffer(
    ndim: i8,
    itemsize: u8,
    src: *const c_void,
    src_pad_shape: *const i64,
    src_start: *const i64,
    src_stop: *const i64,
    dst: *mut c_void,
    dst_pad_shape: *const i64,
    dst_start: *const i64,
) -> c_int {
    let itemsize = i32::from(itemsize);
    // SAFETY: the caller's promise.
    unsafe {
        b2nd_copy_buffer2(
            ndim,
            itemsize,
            src,
            src_pad_shape,
            src_start,
            src_stop,
            dst,
            dst_pad_shape,
            dst_start,
        )
    }
}
