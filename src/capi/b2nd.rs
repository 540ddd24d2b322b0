//! Exported functions: arrays created and released.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::b2nd_ctx::NdContext;
use super::b2nd_handle::{ArrayHandle, deliver, not_null};
use super::guard::guard_status;
use super::ptr::in_bytes;
use super::schunk_handle::{self, SchunkHandle};
use super::storage;
use super::types::{b2nd_array_t, b2nd_context_t, blosc2_schunk};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::consts::special;
use crate::format::metalayers::Metalayers;
use crate::frame::Frame;
use crate::ndarray::{Geometry, create};
use crate::schunk::{Schunk, Writing};

/// What a new array is filled with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The same value everywhere.
    Constant,
    /// Items that are written. As each access does, this brings an array in a frame up to date with its metalayers.
    Items,
}

/// Makes the super-chunk of an array, and fills it.
///
/// # Safety
///
/// The client kept alive what `ctx` borrows.
pub(super) unsafe fn build(
    ctx: &NdContext,
    layers: Option<Metalayers>,
    content: Content,
    fill: impl FnOnce(&mut Schunk, &Geometry, &Writing<'_>) -> Result<()>,
) -> Result<*mut b2nd_array_t> {
    let (meta, cparams, given) = (ctx.meta()?, ctx.cparams(), ctx.storage());
    let geometry = Geometry::from_meta(&meta)?;
    let typesize = usize::try_from(cparams.typesize).ok().filter(|&size| size > 0);
    let typesize = typesize.ok_or(Error::new(ErrorKind::InvalidParam, "typesize out of range"))?;
    geometry.check_for_creation(typesize)?;
    create::check_count(&geometry, given.contiguous.get() || !given.urlpath.is_null())?;
    // SAFETY: the caller's promise.
    let layers = layers.map_or_else(|| unsafe { ctx.layers() }, Ok)?;
    // SAFETY: the caller's promise.
    let schunk = unsafe { SchunkHandle::create(&given) }.map_err(Error::to_failure)?;
    // SAFETY: just made.
    let made = unsafe { SchunkHandle::from_ptr(schunk) }.and_then(|handle| {
        // Codecs and filters look for the metalayer when they compress, so it is shown before.
        handle.change(|schunk| create::prepare(schunk, &geometry, &meta, &layers))?;
        let fill = |writing: &Writing<'_>| handle.change(|schunk| fill(schunk, &geometry, writing));
        // SAFETY: nobody else knows the new handle.
        unsafe { handle.with_encoding(fill) }?;
        let accessed = content == Content::Items && geometry.nitems() > 0;
        let tick = if accessed {
            handle.look(|schunk| Ok(schunk.frame().map_or(0, Frame::change_tick)))?
        } else {
            0
        };
        ArrayHandle::create(schunk, &meta, geometry, tick)
    });
    if made.is_err() {
        // SAFETY: made above; nobody else knows it.
        unsafe { discard(schunk, given.urlpath) };
    }
    made
}

/// Releases a super-chunk that was made in vain, and removes what it left on disk.
///
/// # Safety
///
/// `schunk` was just made; `urlpath` is null or a string.
pub(super) unsafe fn discard(schunk: *mut blosc2_schunk, urlpath: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe {
        schunk_handle::free(schunk);
        storage::remove_made(urlpath);
    }
}

/// As [`discard`], for the super-chunk of an array, which is released as well.
///
/// # Safety
///
/// `made` was just made; `urlpath` is null or a string.
pub(super) unsafe fn discard_array(made: *mut b2nd_array_t, urlpath: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe {
        let schunk = std::mem::replace(&mut (*made).sc, ptr::null_mut());
        ArrayHandle::release(made);
        discard(schunk, urlpath);
    }
}

/// What all constructors do: makes an array in memory or in a file, as `ctx` says, and has `fill` give it its items.
///
/// # Safety
///
/// `ctx` is null or valid and no other thread uses it; `array` is null or writable.
unsafe fn construct(
    ctx: *mut b2nd_context_t,
    array: *mut *mut b2nd_array_t,
    content: Content,
    fill: impl FnOnce(&mut Schunk, &Geometry, &Writing<'_>) -> Result<()>,
) -> Result<()> {
    not_null(!ctx.is_null() && !array.is_null())?;
    // SAFETY: the caller's promise.
    unsafe { deliver(array, NdContext::from_ptr(ctx).and_then(|ctx| build(ctx, None, content, fill))) }
}

/// Fills an array with a special value. As in the C library, the last chunk is the one that was worked on if each was
/// made, and none if there is but an index to write.
fn fill_special(schunk: &mut Schunk, geometry: &Geometry, kind: u8, writing: &Writing<'_>) -> Result<()> {
    create::fill_special(schunk, geometry, kind, writing.enc.params)?;
    if schunk.frame().is_none() {
        visit_last(schunk, writing);
    }
    Ok(())
}

/// Notes that the last chunk was worked on.
fn visit_last(schunk: &Schunk, writing: &Writing<'_>) {
    if let Some(last) = schunk.nchunks().checked_sub(1) {
        writing.visit(last);
    }
}

/// Creates an array with unspecified values; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// `ctx` is NULL or valid and no other thread uses it; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_uninit(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    guard_status(|| unsafe {
        construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
            fill_special(schunk, geometry, special::UNINIT, writing)
        })
    })
}

/// Creates an array of zeros; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_empty(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    guard_status(|| unsafe {
        construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
            fill_special(schunk, geometry, special::ZERO, writing)
        })
    })
}

/// Creates an array of zeros; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_zeros(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { b2nd_empty(ctx, array) }
}

/// Creates an array of NaNs, of 4 or 8 bytes each; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_nans(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    guard_status(|| unsafe {
        construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
            let float = matches!(schunk.typesize(), 4 | 8);
            ensure(float, ErrorKind::Data, "NaNs of this size do not exist")?;
            fill_special(schunk, geometry, special::NAN, writing)
        })
    })
}

/// Creates an array whose items are all `fill_value`; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`; `fill_value` is NULL or readable for one item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_full(
    ctx: *mut b2nd_context_t,
    array: *mut *mut b2nd_array_t,
    fill_value: *const c_void,
) -> c_int {
    guard_status(|| {
        not_null(!fill_value.is_null())?;
        // SAFETY: the caller's promise.
        unsafe {
            construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
                let value = in_bytes(fill_value, schunk.typesize())?;
                create::fill_value(schunk, geometry, value, writing.enc.params)?;
                visit_last(schunk, writing);
                Ok(())
            })
        }
    })
}

/// Creates an array from the items in `buffer`, in C order; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`; `buffer` is NULL or readable for `buffersize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_from_cbuffer(
    ctx: *mut b2nd_context_t,
    array: *mut *mut b2nd_array_t,
    buffer: *const c_void,
    buffersize: i64,
) -> c_int {
    guard_status(|| {
        not_null(!buffer.is_null())?;
        // SAFETY: the caller's promise.
        unsafe {
            construct(ctx, array, Content::Items, |schunk, geometry, writing| {
                let src = in_bytes(buffer, buffersize)?;
                create::fill_from_buffer(schunk, geometry, src, writing)
            })
        }
    })
}

/// Releases an array with its super-chunk, unless `array->sc` is NULL; returns 0, or a negative code for NULL.
///
/// # Safety
///
/// `array` is NULL or valid, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_free(array: *mut b2nd_array_t) -> c_int {
    guard_status(|| {
        not_null(!array.is_null())?;
        // SAFETY: the caller gives the array away.
        unsafe { ArrayHandle::release(array) };
        Ok(())
    })
}
