//! Exported functions: items of super-chunks.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use super::context;
use super::guard::{guard, guard_status};
use super::mem::{c_array, c_numbers};
use super::ptr::{in_bytes, in_slice, invalid, out_bytes, store};
use super::schunk_handle::SchunkHandle;
use super::types::blosc2_schunk;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::nd_meta;
use crate::frame::Frame;
use crate::ndarray;
use crate::ndarray::listed::{MAX_LISTED_CHUNKS, chunks_of_box};
use crate::schunk::{Reading, Schunk, Writing, rewrite};

/// The items `start..stop` of a super-chunk, and how many bytes they have.
///
/// # Errors
///
/// `Failure` if they are not there.
fn item_range(schunk: &Schunk, start: i64, stop: i64) -> Result<(u64, u64, usize)> {
    require(schunk.params_ref().typesize > 0, "typesize out of range")?;
    let outside = Error::new(ErrorKind::Failure, "items out of range");
    let (start, stop) =
        (u64::try_from(start).map_err(|_| outside)?, u64::try_from(stop).map_err(|_| outside)?);
    let typesize = schunk.typesize() as u64; // widening
    if stop.checked_mul(typesize).is_none_or(|end| end > schunk.nbytes()) {
        return Err(outside);
    }
    let nbytes = stop.checked_sub(start).ok_or(outside)? * typesize;
    Ok((start, stop, usize::try_from(nbytes).map_err(|_| outside)?))
}

/// Copies items `start` to `stop` (excluded) to `buffer`; returns 0, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `buffer` is writable for these items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_slice_buffer(
    schunk: *mut blosc2_schunk,
    start: i64,
    stop: i64,
    buffer: *mut c_void,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        if start >= stop {
            return Ok(());
        }
        // SAFETY: the caller's promise; it is called again only after what it returned before is no longer used.
        let dest = |len| unsafe { out_bytes(buffer, len) }.map_err(invalid);
        let nchunk = handle.read_short(|schunk| {
            let (start, stop, len) = item_range(schunk, start, stop).ok()?;
            let nchunk = schunk.get_slice_simple(start, stop, dest(len).ok()?)?;
            Some(((), nchunk))
        });
        if nchunk.is_some() {
            return Ok(());
        }
        handle.read_in_any_order(|schunk, reading| {
            let variable = schunk.chunksize() == 0;
            require(!variable, "chunks of variable size have no slices")?;
            let (start, stop, len) = item_range(schunk, start, stop)?;
            let dest = dest(len)?;
            let last = schunk.read_items(start, stop, dest, reading)?;
            handle.set_current(i64::try_from(last).unwrap_or(i64::MAX));
            Ok(())
        })
    })
}

/// Gives items `start` to `stop` (excluded) the values in `buffer`; returns 0, or a negative code.
///
/// Many chunks, and large ones, are several changes: after a failure, or if the process is killed, the first ones may be
/// new and the others old.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `buffer` is readable for these items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_set_slice_buffer(
    schunk: *mut blosc2_schunk,
    start: i64,
    stop: i64,
    buffer: *mut c_void,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        if start >= stop {
            return Ok(());
        }
        let mut blocksize = None;
        let write = |reading: &Reading<'_>, writing: &Writing<'_>| {
            let (parts, len) = handle.look(|schunk| {
                if schunk.frame().is_some_and(Frame::locks) {
                    schunk.refresh()?;
                }
                let (start, stop, len) = item_range(schunk, start, stop)?;
                Ok((schunk.slice_parts(start, stop, len)?, len))
            })?;
            // SAFETY: the caller's promise.
            let src = unsafe { in_bytes(buffer, len) }.map_err(invalid)?;
            rewrite::write_parts(&mut &*handle, parts, src, reading, writing, |size| blocksize = Some(size))
        };
        // SAFETY: the caller's promise.
        let written = unsafe { handle.with_contexts(write) };
        // SAFETY: the caller's promise; what was taken out of the context is not used any more.
        blocksize.map_or(Ok(()), |size| unsafe { context::note_blocksize((*schunk).cctx, size) })?;
        written
    })
}

/// Copies the items with the numbers `coords`, in any order, to `buffer`; returns 0, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `coords` is readable for `ncoords` numbers, `buffer` writable for
/// as many items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_sparse_buffer(
    schunk: *mut blosc2_schunk,
    ncoords: i64,
    coords: *const i64,
    buffer: *mut c_void,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        let invalid = Error::new(ErrorKind::InvalidParam, "items out of range");
        let count = usize::try_from(ncoords).map_err(|_| invalid)?;
        if count == 0 {
            return Ok(());
        }
        require(!coords.is_null() && !buffer.is_null(), "no coordinates or buffer")?;
        require(handle.typesize() > 0, "typesize out of range")?;
        // SAFETY: the caller's promise.
        let coords = unsafe { in_slice(coords, count) }?;
        handle.read_in_any_order(|schunk, reading| {
            let len = count.checked_mul(schunk.typesize()).ok_or(invalid)?;
            // SAFETY: the caller's promise.
            schunk.get_sparse(coords, unsafe { out_bytes(buffer, len) }?, reading)?;
            let per_chunk =
                i64::from(schunk.chunksize()) / i64::try_from(schunk.typesize()).unwrap_or(1).max(1);
            handle.set_current(coords.iter().max().map_or(0, |last| last / per_chunk.max(1)));
            Ok(())
        })
    })
}

/// Finds the chunks that hold a slice: items `*start` to `*stop` (excluded), or, if the super-chunk holds an array, the
/// box with one number per dimension at `start` and `stop`. Returns how many there are, or a negative number: a code,
/// or by how many chunks the slice ends before it starts.
///
/// Their numbers, ascending, are stored in `*chunks_idx`, which the caller releases with `free()`; NULL if there are no
/// chunks or no items.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `start` and `stop` are NULL or readable for one number per
/// dimension; `chunks_idx` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_get_slice_nchunks(
    schunk: *mut blosc2_schunk,
    start: *mut i64,
    stop: *mut i64,
    chunks_idx: *mut *mut i64,
) -> i64 {
    guard(|| {
        let null = ErrorKind::NullPointer;
        ensure(!schunk.is_null() && !start.is_null() && !stop.is_null(), null, "a pointer is null")?;
        ensure(!chunks_idx.is_null(), null, "nowhere to store the numbers")?;
        // SAFETY: not null; the caller's promise.
        let handle = unsafe {
            store(chunks_idx, ptr::null_mut());
            SchunkHandle::from_ptr(schunk)
        }?;
        let layers = handle.metalayers()?;
        let (count, numbers) = if nd_meta::find(&layers).is_some() {
            let (meta, _) = ndarray::described(&layers)?;
            // SAFETY: the caller's promise.
            let (start, stop) = unsafe { (in_slice(start, meta.ndim())?, in_slice(stop, meta.ndim())?) };
            let nchunks = handle.look(|schunk| Ok(schunk.nchunks()))?;
            let numbers = chunks_of_box(&meta, nchunks, start, stop)?.filter(|list| !list.is_empty());
            let count = numbers.as_ref().map_or(0, |list| count_of(list.len() as u64)); // widening
            (count, numbers.map(|list| c_array(&list)).transpose()?)
        } else {
            // SAFETY: not null; the caller's promise.
            let (start, stop) = unsafe { (*start, *stop) };
            let (count, numbers) = handle.look(|schunk| item_chunks(schunk, start, stop))?;
            (count, numbers.map(c_numbers).transpose()?)
        };
        if let Some(numbers) = numbers {
            // SAFETY: not null; writable by the caller's promise.
            unsafe { store(chunks_idx, numbers) };
        }
        Ok(count)
    })
}

/// A number of chunks as the C API counts.
fn count_of(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// How many chunks hold the items from `start` to `stop` (excluded), negative if the slice ends chunks before it
/// starts, as in the C library, and their numbers.
fn item_chunks(schunk: &Schunk, start: i64, stop: i64) -> Result<(i64, Option<Range<i64>>)> {
    if schunk.nchunks() == 0 {
        return Ok((0, None));
    }
    let outside = |_| Error::new(ErrorKind::Failure, "items out of range");
    let (start, stop) = (u64::try_from(start).map_err(outside)?, u64::try_from(stop).map_err(outside)?);
    let range = schunk.slice_chunks(start, stop)?;
    let (first, end) = (count_of(range.start), count_of(range.end));
    let count = end - first;
    ensure(count <= count_of(MAX_LISTED_CHUNKS), ErrorKind::Failure, "too many chunks")?;
    Ok((count, (count >= 0).then_some(first..end)))
}
