//! Exported functions: boxes and selections of arrays, and utilities for n-dimensional buffers.

use std::ffi::{c_int, c_void};

use super::b2nd_ctx::dimensions;
use super::b2nd_handle::{ArrayHandle, Shared, not_null};
use super::guard::guard_status;
use super::ptr::{in_bytes, in_slice, out_bytes};
use super::types::b2nd_array_t;
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::geometry::MAX_DIM;
use crate::ndarray::copy_buffer::BoxCopy;
use crate::ndarray::select::{self, Selection};
use crate::ndarray::shape::{Extents, Region, strided_len, strides};
use crate::ndarray::write::Access;
use crate::ndarray::{Geometry, slice, write};
use crate::schunk::{Reading, Writing};

/// Stores positions or extents, which must not be negative.
fn put_unsigned(values: &[i64], dest: &mut Extents) -> Result<()> {
    for (slot, &value) in dest.iter_mut().zip(values) {
        let negative = Error::new(ErrorKind::Failure, "negative position");
        *slot = u64::try_from(value).map_err(|_| negative)?;
    }
    Ok(())
}

/// A box as the caller describes it, and the buffer on the other side.
struct Request {
    region: Region,
    buffershape: Extents,
    /// Whether there is nothing of the array in the box.
    is_empty: bool,
    /// Whether the box fills the buffer, and lies inside of the array.
    fills: bool,
}

impl Request {
    /// Nothing.
    fn empty(geometry: &Geometry) -> Request {
        Request { region: Region::all(geometry), buffershape: [1; MAX_DIM], is_empty: true, fills: false }
    }

    /// Takes over what the caller asks for.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the box and the buffer do not fit each other, `Failure` for negative positions.
    fn ask(
        &mut self,
        geometry: &Geometry,
        typesize: usize,
        (start, stop): (&[i64], &[i64]),
        buffershape: &[i64],
        buffersize: i64,
    ) -> Result<()> {
        let unit = typesize as u64; // widening
        let size = u64::try_from(buffersize);
        let size = size.map_err(|_| Error::new(ErrorKind::InvalidParam, "negative buffer size"))?;
        if geometry.ndim() == 0 {
            require(unit <= size, "buffer shorter than the item")?;
            (self.is_empty, self.fills) = (false, size == unit);
            return Ok(());
        }
        if geometry.nitems() == 0 {
            return Ok(());
        }
        // The box is empty where it ends before it starts.
        let extent = |i: usize| u64::try_from(stop[i].saturating_sub(start[i])).unwrap_or(0);
        let axes = 0..geometry.ndim();
        let fits = axes.clone().all(|i| stop[i].saturating_sub(start[i]) <= buffershape[i]);
        require(fits, "box larger than the shape of the buffer")?;
        geometry.chunk_nbytes(typesize)?;
        let needed = axes.clone().try_fold(unit, |n, i| n.checked_mul(extent(i)));
        require(needed.is_some_and(|needed| needed <= size), "buffer shorter than the box")?;
        if needed == Some(0) {
            return Ok(());
        }
        put_unsigned(start, &mut self.region.start)?;
        put_unsigned(buffershape, &mut self.buffershape)?;
        put_unsigned(stop, &mut self.region.stop)?;
        let steps = strides(&self.buffershape[..geometry.ndim()], unit);
        let end = strided_len(axes.clone().map(extent), &steps, unit);
        let reached = end.is_some_and(|end| end as u64 <= size); // widening
        require(reached, "box reaches past the end of the buffer")?;
        let whole = axes.clone().all(|i| extent(i) == self.buffershape[i]);
        let inside = axes.zip(geometry.shape()).all(|(i, &extent)| self.region.stop[i] <= extent);
        self.fills = inside && whole && needed == Some(size);
        self.region.clip(geometry.shape());
        self.is_empty = self.region.is_empty();
        Ok(())
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
        array.read_fresh(|schunk, geometry, reading| {
            // SAFETY: the caller's promise.
            let dest = unsafe { out_bytes(buffer, buffersize) }?;
            let ndim = geometry.ndim();
            // SAFETY: as above.
            let (start, stop, shape) =
                unsafe { (in_slice(start, ndim)?, in_slice(stop, ndim)?, in_slice(buffershape, ndim)?) };
            let mut request = Request::empty(geometry);
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
                let mut request = Request::empty(geometry);
                request.ask(geometry, typesize, (start, stop), shape, buffersize)?;
                if request.is_empty {
                    return Ok(());
                }
                let shape = &request.buffershape[..ndim];
                write::write(schunk, geometry, &request.region, src, shape, reading, writing)
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
    require(ndim > 0, "no dimensions")?;
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
        require(buffersize <= 0, "buffer of another size than the selection")?;
        return Ok(None);
    }
    let exact = count.is_some() && count == usize::try_from(buffersize).ok();
    require(exact, "buffer of another size than the selection")?;
    // SAFETY: the caller's promise.
    let shape = unsafe { in_slice(buffershape, ndim) }?;
    let unsigned: Vec<u64> = shape.iter().map(|&extent| u64::try_from(extent).unwrap_or(0)).collect();
    let lens = || indices.iter().map(|list| list.len() as u64); // widening
    require(unsigned.iter().zip(lens()).all(|(&room, len)| room >= len), "selection larger than the buffer")?;
    geometry.chunk_nbytes(typesize)?;
    let unit = typesize as u64; // widening
    let span = strided_len(lens(), &strides(&unsigned, unit), unit);
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
            require(fits, "buffer shorter than the items")?;
            // SAFETY: the caller's promise.
            let (coords, dest) = unsafe { (in_slice(coords, count)?, out_bytes(buffer, buffersize)?) };
            select::read_sparse(schunk, geometry, coords, dest, reading)
        })
    })
}

/// Where a box begins in a buffer, in bytes, found out dimension by dimension, the fastest one first.
struct Place {
    at: u64,
    /// From one index of the next dimension to the next.
    stride: u64,
}

impl Place {
    fn new(itemsize: usize) -> Place {
        Place { at: 0, stride: itemsize as u64 } // widening
    }

    /// Goes to index `start` of the next dimension, which has `extent` of them.
    fn enter(&mut self, start: u64, extent: u64) -> Result<()> {
        let at = start.checked_mul(self.stride).and_then(|more| self.at.checked_add(more));
        self.at = at.ok_or(Error::new(ErrorKind::InvalidParam, "position"))?;
        self.stride = self.stride.saturating_mul(extent);
        Ok(())
    }

    fn offset(&self) -> Result<usize> {
        usize::try_from(self.at).map_err(|_| Error::new(ErrorKind::InvalidParam, "position"))
    }
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
        let count = dimensions(ndim)?;
        let itemsize = usize::try_from(itemsize);
        let itemsize = itemsize.map_err(|_| Error::new(ErrorKind::InvalidParam, "negative item size"))?;
        // SAFETY: the caller's promise.
        let numbers = |numbers: *const i64| unsafe { in_slice(numbers, count) };
        let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
        let (start, stop) = (numbers(src_start)?, numbers(src_stop)?);
        let extent = |i: usize| unsigned(stop[i]).saturating_sub(unsigned(start[i]));
        if itemsize == 0 || (0..count).any(|i| extent(i) == 0) {
            return Ok(());
        }
        not_null(!src.is_null() && !dst.is_null())?;
        let (src_shape, dst_shape) = (numbers(src_pad_shape)?, numbers(dst_pad_shape)?);
        let dst_start = numbers(dst_start)?;
        let mut copy = BoxCopy::of_item(itemsize);
        let (mut src_at, mut dst_at) = (Place::new(itemsize), Place::new(itemsize));
        for i in (0..count).rev() {
            copy.repeat(extent(i), src_at.stride, dst_at.stride)?;
            src_at.enter(unsigned(start[i]), unsigned(src_shape[i]))?;
            dst_at.enter(unsigned(dst_start[i]), unsigned(dst_shape[i]))?;
        }
        let (src_at, dst_at) = (src_at.offset()?, dst_at.offset()?);
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
