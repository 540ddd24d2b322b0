//! Exported functions: making, opening, copying, storing and releasing super-chunks.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use super::blosc1;
use super::context::Context;
use super::guard::{guard, guard_or};
use super::mem::c_array;
use super::ptr::{handle_ref, store};
use super::schunk_handle::{self, SchunkHandle, frame_cparams};
use super::types::{CBool, blosc2_cparams, blosc2_dparams, blosc2_io, blosc2_schunk, blosc2_storage};
use crate::error::require;

/// Makes an empty super-chunk; returns NULL on failure. Release it with `blosc2_schunk_free`.
///
/// `storage` and what it points to are copied, but not the parameters of filters, tuners and I/O back-ends. Nothing
/// must exist at its path.
///
/// # Safety
///
/// `storage` is NULL or valid; so are the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_new(storage: *mut blosc2_storage) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::create(handle_ref(storage)?) })
}

/// Copies a super-chunk, with its metalayers; returns NULL on failure.
///
/// `storage` says where the copy goes, and how it is compressed. Chunks are only compressed again if the parameters
/// differ; NULL parameters are those of the source.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `storage` is NULL or valid, as are the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_copy(
    schunk: *mut blosc2_schunk,
    storage: *mut blosc2_storage,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::from_ptr(schunk)?.copy(handle_ref(storage)?) })
}

/// Makes a super-chunk of the frame in `cframe`; returns NULL if it is damaged.
///
/// With `copy` the chunks are copied and the buffer is not needed any more. Without it the buffer stays the caller's
/// and must outlive the super-chunk, which copies it when it has to change it; see `blosc2_schunk_avoid_cframe_free`.
/// Packed super-chunks of 2015 to 2017 are always copied.
///
/// # Safety
///
/// `cframe` is NULL or readable for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_from_buffer(
    cframe: *mut u8,
    len: i64,
    copy: CBool,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::from_buffer(cframe, len, copy.get()) })
}

/// Says who releases the buffer of a frame in memory: with `avoid_cframe_free` the caller, after the super-chunk;
/// without it the super-chunk, also if the buffer came from the caller. Without such a frame it does nothing.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it. A buffer that is given away comes from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_avoid_cframe_free(
    schunk: *mut blosc2_schunk,
    avoid_cframe_free: CBool,
) {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { SchunkHandle::from_ptr(schunk) }?.avoid_cframe_free(avoid_cframe_free.get());
        Ok(())
    });
}

/// Opens the frame `urlpath`, a file or a directory; returns NULL on failure.
///
/// Files with a packed super-chunk of 2015 to 2017 are read into memory.
///
/// # Safety
///
/// `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open(urlpath: *const c_char) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::open(urlpath, 0, &blosc2_io::DEFAULTS) })
}

/// Opens the frame that starts at byte `offset` of the file `urlpath`; returns NULL on failure.
///
/// # Safety
///
/// `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open_offset(
    urlpath: *const c_char,
    offset: i64,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::open(urlpath, offset, &blosc2_io::DEFAULTS) })
}

/// Opens the frame `urlpath` with the I/O back-end `udio`; returns NULL on failure.
///
/// # Safety
///
/// `urlpath` is NULL or a string; `udio` is NULL or valid, and its parameters are those for the back-end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open_udio(
    urlpath: *const c_char,
    udio: *const blosc2_io,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::open(urlpath, 0, handle_ref(udio)?) })
}

/// Opens the frame that starts at byte `offset` of the file `urlpath` with the I/O back-end `udio`; returns NULL on
/// failure.
///
/// # Safety
///
/// As for `blosc2_schunk_open_udio`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open_offset_udio(
    urlpath: *const c_char,
    offset: i64,
    udio: *const blosc2_io,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::open(urlpath, offset, handle_ref(udio)?) })
}

/// Stores the address of a contiguous frame with the content of the super-chunk in `*cframe`; returns its length, or a
/// negative code.
///
/// `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the super-chunk and stays
/// valid until that changes.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `cframe` and `needs_free` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_to_buffer(
    schunk: *mut blosc2_schunk,
    cframe: *mut *mut u8,
    needs_free: *mut CBool,
) -> i64 {
    guard(|| {
        let wanted = !cframe.is_null() && !needs_free.is_null();
        require(wanted, "nowhere to store the frame")?;
        // SAFETY: not null; writable by the caller's promise.
        unsafe {
            store(cframe, ptr::null_mut());
            store(needs_free, CBool::FALSE);
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { SchunkHandle::from_ptr(schunk) }?.to_buffer()?;
        // SAFETY: as above.
        unsafe {
            store(cframe, bytes.start);
            store(needs_free, bytes.needs_free);
        }
        Ok(bytes.len)
    })
}

/// Writes a contiguous frame with the content of the super-chunk to the file `urlpath`; returns its length, or a
/// negative code.
///
/// A file that exists is replaced if the super-chunk is a contiguous frame in memory, otherwise that is an error. After
/// a failure it is as it was, unless the I/O back-end is one of the application, or the file has several names (hard
/// links).
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_to_file(schunk: *mut blosc2_schunk, urlpath: *const c_char) -> i64 {
    guard(|| {
        require(!urlpath.is_null(), "no path")?;
        // SAFETY: the caller's promise.
        let (handle, urlpath) = unsafe { (SchunkHandle::from_ptr(schunk)?, CStr::from_ptr(urlpath)) };
        handle.to_file(urlpath)
    })
}

/// Writes a contiguous frame with the content of the super-chunk after what the file `urlpath` holds; returns the byte
/// at which it starts, for `blosc2_schunk_open_offset`, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_append_file(
    schunk: *mut blosc2_schunk,
    urlpath: *const c_char,
) -> i64 {
    guard(|| {
        require(!urlpath.is_null(), "no path")?;
        // SAFETY: the caller's promise.
        let (handle, urlpath) = unsafe { (SchunkHandle::from_ptr(schunk)?, CStr::from_ptr(urlpath)) };
        handle.append_file(urlpath)
    })
}

/// Releases a super-chunk, its contexts included. What is on disk stays. NULL is ignored.
///
/// Returns 0, or 1 if the I/O back-end reported a failure; everything is released all the same.
///
/// # Safety
///
/// `schunk` is NULL or valid and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_free(schunk: *mut blosc2_schunk) -> c_int {
    // SAFETY: the caller's promise.
    guard_or(1, || Ok(unsafe { schunk_handle::free(schunk) }))
}

/// Stores a copy of the compression parameters, which the caller releases with `free()`, in `*cparams`; returns 0, or a
/// negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `cparams` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_cparams(
    schunk: *mut blosc2_schunk,
    cparams: *mut *mut blosc2_cparams,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        require(!cparams.is_null(), "nowhere to store the parameters")?;
        // SAFETY: clients replace contexts only while no other thread uses the handle.
        let context = unsafe { Context::shared((*schunk).cctx) };
        let copy = blosc2_cparams {
            // SAFETY: the field is assigned only while no other thread uses the handle.
            use_dict: c_int::from(unsafe { (*schunk).use_dict }),
            nthreads: context.map_or_else(|_| blosc1::nthreads(), Context::nthreads),
            schunk: schunk.cast(),
            ..frame_cparams(&handle.params())
        };
        // SAFETY: not null; writable by the caller's promise.
        unsafe { cparams.write(c_array(&[copy])?) };
        Ok(0)
    })
}

/// Stores a copy of the decompression parameters, which the caller releases with `free()`, in `*dparams`; returns 0, or
/// a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `dparams` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_dparams(
    schunk: *mut blosc2_schunk,
    dparams: *mut *mut blosc2_dparams,
) -> c_int {
    guard(|| {
        require(!schunk.is_null(), "no super-chunk")?;
        require(!dparams.is_null(), "nowhere to store the parameters")?;
        // SAFETY: clients replace contexts only while no other thread uses the handle.
        let context = unsafe { Context::shared((*schunk).dctx) };
        let nthreads = context.map_or_else(|_| blosc1::nthreads(), Context::nthreads);
        let copy =
            blosc2_dparams { nthreads, schunk: schunk.cast(), typesize: 0, ..blosc2_dparams::DEFAULTS };
        // SAFETY: not null; writable by the caller's promise.
        unsafe { dparams.write(c_array(&[copy])?) };
        Ok(0)
    })
}
