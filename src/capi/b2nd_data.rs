//! Exported functions: boxes and selections of arrays, and utilities for n-dimensional buffers.

use std::ffi::{c_int, c_void};

use super::b2nd_handle::{ArrayHandle, Shared, not_null};
use super::consts::B2ND_MAX_DIM;
use super::guard::guard_status;
use super::ptr::{in_bytes, in_slice, out_bytes};
use super::types::b2nd_array_t;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::geometry::MAX_DIM;
use crate::ndarray::copy_buffer::BoxCopy;
use crate::ndarray::select::{self, Selection};
use crate::ndarray::shape::{Extents, Region, dot, strides};
use crate::ndarray::write::Access;
use crate::ndarray::{Geometry, slice, write};
use crate::schunk::{Reading, Writing};

fn invalid(holds: bool, what: &'static str) -> Result<()> {
    ensure(holds, ErrorKind::InvalidParam, what)
}

/// The extents of the box from `start` to `stop`, 0 where it ends before it starts.
fn box_extents(start: &[i64], stop: &[i64], buffershape: &[i64]) -> Result<Extents> {
    let mut extents = [1; MAX_DIM];
    for (i, (&start, &stop)) in start.iter().zip(stop).enumerate() {
        let extent = stop.saturating_sub(start);
        invalid(extent <= buffershape[i], "box larger than the shape of the buffer")?;
        extents[i] = u64::try_from(extent).unwrap_or(0);
    }
    Ok(extents)
}

/// Positions or extents that must not be negative.
fn unsigned(values: &[i64]) -> Result<Extents> {
    let mut extents = [1; MAX_DIM];
    for (slot, &value) in extents.iter_mut().zip(values) {
        let negative = Error::new(ErrorKind::Failure, "negative position");
        *slot = u64::try_from(value).map_err(|_| negative)?;
    }
    Ok(extents)
}

/// A box as the caller describes it, and the buffer on the other side.
struct Request {
    /// `None` if the box is empty.
    region: Option<Region>,
    buffershape: Extents,
    /// Whether the box fills the buffer, and lies inside of the array.
    fills: bool,
}

impl Request {
    fn new(
        geometry: &Geometry,
        typesize: usize,
        (start, stop): (&[i64], &[i64]),
        buffershape: &[i64],
        buffersize: i64,
    ) -> Result<Request> {
        let typesize = typesize as u64; // widening
        let size = u64::try_from(buffersize);
        let size = size.map_err(|_| Error::new(ErrorKind::InvalidParam, "negative buffer size"))?;
        if geometry.ndim() == 0 {
            invalid(typesize <= size, "buffer shorter than the item")?;
            let fills = size == typesize;
            return Ok(Request { region: Some(Region::all(geometry)), buffershape: [1; MAX_DIM], fills });
        }
        let empty = Request { region: None, buffershape: [1; MAX_DIM], fills: false };
        if geometry.nitems() == 0 {
            return Ok(empty);
        }
        let ndim = geometry.ndim();
        let extents = &box_extents(start, stop, buffershape)?[..ndim];
        geometry.chunk_nbytes(usize::try_from(typesize).unwrap_or(usize::MAX))?;
        let needed = extents.iter().try_fold(typesize, |n, &extent| n.checked_mul(extent));
        invalid(needed.is_some_and(|needed| needed <= size), "buffer shorter than the box")?;
        if needed == Some(0) {
            return Ok(empty);
        }
        let (start, buffershape, stop) = (unsigned(start)?, unsigned(buffershape)?, unsigned(stop)?);
        let (start, stop) = (&start[..ndim], &stop[..ndim]);
        let steps = strides(&buffershape[..ndim], typesize);
        let mut axes = extents.iter().zip(&steps);
        let end =
            axes.try_fold(typesize, |n, (extent, step)| n.checked_add((extent - 1).checked_mul(*step)?));
        invalid(end.is_some_and(|end| end <= size), "box reaches past the end of the buffer")?;
        let inside = stop.iter().zip(geometry.shape()).all(|(stop, extent)| stop <= extent);
        let fills = inside && *extents == buffershape[..ndim] && needed == Some(size);
        let region = Region::new(start, stop).clipped(geometry.shape());
        let region = Some(region).filter(|region| !region.is_empty());
        Ok(Request { region, buffershape, fills })
    }
}

/// Copies the box from `start` to `stop` (excluded) to a C-order buffer of shape `buffershape`; returns 0, or a negative
/// code.
///
/// Everything else in the `buffersize` bytes becomes zero, also what lies outside of the array.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `start`, `stop` and `buffershape` are NULL or readable for one number
/// per dimension; `buffer` is NULL or writable for `buffersize` bytes.
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
        array.refresh()?;
        // SAFETY: the caller's promise.
        let dest = unsafe { out_bytes(buffer, buffersize) }?;
        array.read(|schunk, geometry, reading| {
            let ndim = geometry.ndim();
            // SAFETY: the caller's promise.
            let (start, stop, shape) =
                unsafe { (in_slice(start, ndim)?, in_slice(stop, ndim)?, in_slice(buffershape, ndim)?) };
            let request = Request::new(geometry, schunk.typesize(), (start, stop), shape, buffersize);
            if !request.as_ref().is_ok_and(|request| request.fills) {
                dest.fill(0);
            }
            let request = request?;
            let Some(region) = request.region else { return Ok(()) };
            slice::read(schunk, geometry, &region, dest, &request.buffershape[..geometry.ndim()], reading)
        })
    })
}

/// Gives the box from `start` to `stop` (excluded) the values in a C-order buffer of shape `buffershape`; returns 0, or a
/// negative code. What lies outside of the array is ignored.
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
        let write =
            |schunk: &mut Shared<'_>, geometry: &Geometry, reading: &Reading<'_>, writing: &Writing<'_>| {
                let ndim = geometry.ndim();
                // SAFETY: the caller's promise.
                let (start, stop, shape) =
                    unsafe { (in_slice(start, ndim)?, in_slice(stop, ndim)?, in_slice(buffershape, ndim)?) };
                let typesize = schunk.look(|schunk| Ok(schunk.typesize()))?;
                let request = Request::new(geometry, typesize, (start, stop), shape, buffersize)?;
                let Some(region) = request.region else { return Ok(()) };
                write::write(schunk, geometry, &region, src, &request.buffershape, reading, writing)
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
        array.refresh()?;
        // SAFETY: the caller's promise.
        let dest = unsafe { out_bytes(buffer, buffersize) }?;
        array.read(|schunk, geometry, reading| {
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

/// A selection as the caller describes it, and the buffer on the other side.
struct Selected {
    selection: Selection,
    buffershape: Vec<u64>,
    /// Bytes of the buffer from the first item to the last one.
    span: usize,
}

/// What callers select; `None` if it is empty. `buffersize` tells how many bytes are selected: as in the C library, a
/// buffer of a larger shape is larger than that.
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
) -> Result<Option<Selected>> {
    let ndim = geometry.ndim();
    invalid(ndim > 0, "no dimensions")?;
    // SAFETY: the caller's promise.
    let (lists, sizes) = unsafe { (in_slice(lists, ndim)?, in_slice(sizes, ndim)?) };
    let mut indices: Vec<&[i64]> = Vec::with_capacity(ndim);
    for (&list, &size) in lists.iter().zip(sizes) {
        not_null(!list.is_null())?;
        // SAFETY: the caller's promise.
        indices.push(unsafe { in_slice(list.cast_const(), size) }?);
    }
    let selection = Selection::new(geometry, &indices)?;
    let count = indices.iter().try_fold(typesize, |n, list| n.checked_mul(list.len()));
    if count == Some(0) {
        invalid(buffersize <= 0, "buffer of another size than the selection")?;
        return Ok(None);
    }
    let exact = count.is_some() && count == usize::try_from(buffersize).ok();
    invalid(exact, "buffer of another size than the selection")?;
    // SAFETY: the caller's promise.
    let shape = unsafe { in_slice(buffershape, ndim) }?;
    let unsigned: Vec<u64> = shape.iter().map(|&extent| u64::try_from(extent).unwrap_or(0)).collect();
    let lens = || indices.iter().map(|list| list.len() as u64); // widening
    invalid(unsigned.iter().zip(lens()).all(|(&room, len)| room >= len), "selection larger than the buffer")?;
    geometry.chunk_nbytes(typesize)?;
    let unit = typesize as u64; // widening
    let steps = strides(&unsigned, unit);
    let span =
        lens().zip(&steps).try_fold(unit, |n, (len, step)| n.checked_add((len - 1).checked_mul(*step)?));
    let span = span.and_then(|n| usize::try_from(n).ok());
    let span = span.ok_or(Error::new(ErrorKind::InvalidParam, "shape of the buffer too large"))?;
    Ok(Some(Selected { selection, buffershape: unsigned, span }))
}

/// Copies the items whose index in each dimension is in its list to a C-order buffer of shape `buffershape`; returns 0, or
/// a negative code. `selection_size` holds the lengths of the lists, `buffersize` is the number of bytes that are selected.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `selection` and `selection_size` are NULL or readable for one entry per
/// dimension, each list for its length; `buffershape` as well; `buffer` is writable for as many items as `buffershape`
/// says.
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
        array.refresh()?;
        array.read(|schunk, geometry, reading| {
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
        let write =
            |schunk: &mut Shared<'_>, geometry: &Geometry, reading: &Reading<'_>, writing: &Writing<'_>| {
                let typesize = schunk.look(|schunk| Ok(schunk.typesize()))?;
                // SAFETY: the caller's promise.
                let asked = unsafe {
                    selected(geometry, typesize, selection, selection_size, buffershape, buffersize)
                }?;
                let Some(asked) = asked else { return Ok(()) };
                // SAFETY: the caller's promise.
                let src = unsafe { in_bytes(buffer, asked.span) }?;
                let from = (src, &asked.buffershape[..]);
                select::write_to(schunk, geometry, &asked.selection, from, reading, writing)
            };
        // SAFETY: the caller's promise.
        unsafe { array.write(write) }
    })
}

/// Copies the items with the C-order numbers `coords`, in any order and as often as they occur, to `buffer`; returns 0, or
/// a negative code.
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
            invalid(fits, "buffer shorter than the items")?;
            // SAFETY: the caller's promise.
            let (coords, dest) = unsafe { (in_slice(coords, count)?, out_bytes(buffer, buffersize)?) };
            select::read_sparse(schunk, geometry, coords, dest, reading)
        })
    })
}

/// Copies a box from one C-order buffer to another; returns 0, or a negative code.
///
/// The box goes from `src_start` to `src_stop` (excluded) in a buffer of shape `src_pad_shape`, and starts at `dst_start`
/// in one of shape `dst_pad_shape`.
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
        let count = usize::try_from(ndim).ok().filter(|&ndim| ndim <= B2ND_MAX_DIM);
        let count = count.ok_or(Error::new(ErrorKind::InvalidParam, "number of dimensions"))?;
        let itemsize = usize::try_from(itemsize);
        let itemsize = itemsize.map_err(|_| Error::new(ErrorKind::InvalidParam, "negative item size"))?;
        let unsigned = |numbers: *const i64| -> Result<Vec<u64>> {
            // SAFETY: the caller's promise.
            let numbers = unsafe { in_slice(numbers, count) }?;
            Ok(numbers.iter().map(|&n| u64::try_from(n).unwrap_or(0)).collect())
        };
        let (start, stop) = (unsigned(src_start)?, unsigned(src_stop)?);
        let extents: Vec<u64> = start.iter().zip(&stop).map(|(a, b)| b.saturating_sub(*a)).collect();
        if extents.contains(&0) || itemsize == 0 {
            return Ok(());
        }
        not_null(!src.is_null() && !dst.is_null())?;
        let unit = itemsize as u64; // widening
        let (from, to) = (strides(&unsigned(src_pad_shape)?, unit), strides(&unsigned(dst_pad_shape)?, unit));
        let copy = BoxCopy::new(itemsize, &extents, &from, &to)?;
        let place = |at: &[u64], strides: &_| {
            usize::try_from(dot(at, strides)).map_err(|_| Error::new(ErrorKind::InvalidParam, "position"))
        };
        let (src_at, dst_at) = (place(&start, &from)?, place(&unsigned(dst_start)?, &to)?);
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
