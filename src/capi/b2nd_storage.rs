//! Exported functions: arrays opened, described, saved, and brought up to date.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use super::b2nd_handle::{ArrayHandle, deliver_opened, not_null};
use super::guard::{guard, guard_status};
use super::schunk_handle::{self, SchunkHandle};
use super::storage;
use super::types::{CBool, b2nd_array_t, blosc2_io, blosc2_schunk};
use crate::cancel;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::nd_meta::{self, NdMeta};
use crate::memory;
use crate::ndarray;

/// Makes an array of a super-chunk that holds one; returns 0, or a negative code. The super-chunk belongs to the array
/// afterwards, unless the call fails.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_from_schunk(
    schunk: *mut blosc2_schunk,
    array: *mut *mut b2nd_array_t,
) -> c_int {
    guard_status(|| {
        not_null(!schunk.is_null() && !array.is_null())?;
        // SAFETY: the caller's promise.
        unsafe { deliver_opened(array, adopt(schunk)) }
    })
}

/// Makes an array of a super-chunk that holds one.
///
/// # Safety
///
/// `schunk` is valid.
unsafe fn adopt(schunk: *mut blosc2_schunk) -> Result<*mut b2nd_array_t> {
    // SAFETY: the caller's promise.
    let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
    let tick = handle.look(|schunk| Ok(schunk.change_tick()))?;
    let layers = handle.metalayers()?;
    let empty = nd_meta::find(&layers).is_some_and(|layer| layer.content.is_empty());
    ensure(!empty, ErrorKind::NullPointer, "empty metalayer of an array")?;
    let (meta, geometry) = ndarray::described(&layers)?;
    ArrayHandle::create(schunk, &meta, geometry, tick)
}

/// Makes an array of a super-chunk that was opened for it, which is released if it holds none.
///
/// # Safety
///
/// `schunk` was just made.
unsafe fn adopt_new(schunk: *mut blosc2_schunk) -> Result<*mut b2nd_array_t> {
    // SAFETY: the caller's promise.
    let made = unsafe { adopt(schunk) };
    if made.is_err() {
        // SAFETY: as above; nobody else knows it.
        unsafe { schunk_handle::free(schunk) };
    }
    made
}

/// Opens the array in the frame `urlpath`, a file or a directory; returns 0, or a negative code.
///
/// # Safety
///
/// `urlpath` is NULL or a string; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_open(urlpath: *const c_char, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { b2nd_open_offset(urlpath, array, 0) }
}

/// Opens the array in the frame that starts at byte `offset` of the file `urlpath`; returns 0, or a negative code.
///
/// # Safety
///
/// As for `b2nd_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_open_offset(
    urlpath: *const c_char,
    array: *mut *mut b2nd_array_t,
    offset: i64,
) -> c_int {
    guard_status(|| {
        not_null(!urlpath.is_null() && !array.is_null())?;
        let null = |e: Error| Error::new(ErrorKind::NullPointer, e.what());
        // SAFETY: the caller's promise.
        unsafe {
            let schunk = SchunkHandle::open(urlpath, offset, &blosc2_io::DEFAULTS).map_err(null)?;
            deliver_opened(array, adopt_new(schunk))
        }
    })
}

/// Makes an array of the frame in `cframe`; returns 0, or a negative code.
///
/// With `copy` the chunks are copied. Without it the buffer stays the caller's and must outlive the array, which copies
/// it when it has to change it.
///
/// # Safety
///
/// `cframe` is NULL or readable for `cframe_len` bytes; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_from_cframe(
    cframe: *mut u8,
    cframe_len: i64,
    copy: CBool,
    array: *mut *mut b2nd_array_t,
) -> c_int {
    guard_status(|| {
        not_null(!cframe.is_null() && !array.is_null())?;
        // SAFETY: the caller's promise.
        unsafe {
            let schunk = SchunkHandle::from_buffer(cframe, cframe_len, copy.get());
            deliver_opened(array, adopt_new(schunk.map_err(Error::to_failure)?))
        }
    })
}

/// Stores the address and length of a contiguous frame with the array; returns 0, or a negative code.
///
/// `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the array and stays valid
/// until that changes.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; the others are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_to_cframe(
    array: *const b2nd_array_t,
    cframe: *mut *mut u8,
    cframe_len: *mut i64,
    needs_free: *mut CBool,
) -> c_int {
    guard_status(|| {
        not_null(!cframe.is_null() && !cframe_len.is_null() && !needs_free.is_null())?;
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        let schunk = handle.schunk()?;
        // SAFETY: not null; writable by the caller's promise.
        unsafe {
            cframe.write(ptr::null_mut());
            needs_free.write(CBool::FALSE);
        }
        let bytes = schunk.to_buffer().map_err(Error::to_failure)?;
        // SAFETY: as above.
        unsafe {
            cframe.write(bytes.start);
            needs_free.write(bytes.needs_free);
            cframe_len.write(bytes.len);
        }
        Ok(())
    })
}

/// Saves an array to `urlpath`, which must not exist: a file if the array is contiguous, else a directory. Returns 0,
/// or a negative code.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_save(array: *const b2nd_array_t, urlpath: *mut c_char) -> c_int {
    guard_status(|| {
        not_null(!urlpath.is_null())?;
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        handle.refresh()?;
        let source = handle.schunk()?;
        // SAFETY: the caller's promise; a super-chunk has a storage, unless the client took it.
        unsafe {
            let own = (*source.abi()).storage.as_ref();
            let contiguous = own.is_some_and(|storage| storage.contiguous.get());
            let place = storage::at(contiguous, urlpath, ptr::null_mut());
            schunk_handle::free(source.copy(&place).map_err(Error::to_failure)?);
        }
        Ok(())
    })
}

/// Appends an array as a contiguous frame to the file `urlpath`; returns the byte at which it starts, for
/// `b2nd_open_offset`, or a negative code.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_save_append(array: *const b2nd_array_t, urlpath: *const c_char) -> i64 {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        require(!urlpath.is_null(), "no path")?;
        // SAFETY: the caller's promise.
        handle.schunk()?.append_file(unsafe { CStr::from_ptr(urlpath) })
    })
}

/// Prints shapes and data type of an array, as they are stored; returns 0, or a negative code.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_print_meta(array: *const b2nd_array_t) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        let (meta, _) = ndarray::described(&handle.schunk()?.metalayers()?)?;
        let text = description(&meta)?;
        // SAFETY: both are strings; the format takes one. The client's own output goes through the same stream.
        cancel::deferred(|| unsafe { libc::printf(c"%s".as_ptr(), text.as_ptr().cast::<c_char>()) });
        Ok(())
    })
}

/// What [`b2nd_print_meta`] prints, and a NUL; the dtype, of which nothing is known, up to its first NUL.
///
/// # Errors
///
/// `MemoryAlloc`.
fn description(meta: &NdMeta) -> Result<Vec<u8>> {
    fn list<T: ToString>(numbers: &[T]) -> String {
        numbers.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
    }
    let (shape, chunkshape, blockshape) = (list(&meta.shape), list(&meta.chunkshape), list(&meta.blockshape));
    let mut text = format!("b2nd metalayer parameters:\n Ndim:       {}\n", meta.ndim()).into_bytes();
    memory::extend(&mut text, format!(" shape:      {shape}\n chunkshape: {chunkshape}\n").as_bytes())?;
    if let Some(dtype) = &meta.dtype {
        let shown = dtype.split(|&byte| byte == 0).next().unwrap_or_default();
        for part in [b" dtype: ", shown, b"\n"] {
            memory::extend(&mut text, part)?;
        }
    }
    memory::extend(&mut text, format!(" blockshape: {blockshape}\n\0").as_bytes())?;
    Ok(text)
}

/// Takes over what others changed in the frame of an array; returns 1 if its shape was read again, 0 if not, or a
/// negative code.
///
/// # Safety
///
/// `array` is NULL or valid and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_refresh(array: *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { ArrayHandle::from_ptr(array) }?.refresh().map(c_int::from))
}
