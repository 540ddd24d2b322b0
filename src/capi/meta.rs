//! Exported functions: metalayers of super-chunks.

use std::ffi::{c_char, c_int};

use super::chunk::with_new_cctx;
use super::context;
use super::guard::{guard, guard_count};
use super::ptr::{c_str, handle_ref, in_bytes, invalid};
use super::schunk_handle::{SchunkHandle, Used};
use super::types::{blosc2_cparams, blosc2_schunk};
use crate::error::{ErrorKind, Result, ensure, require};
use crate::io::memory::MallocBuf;
use crate::schunk::meta;

/// The bytes of a metalayer's name.
///
/// # Safety
///
/// `name` is null or a string.
unsafe fn name_bytes<'a>(name: *const c_char) -> Result<&'a [u8]> {
    require(!name.is_null(), "no name")?;
    // SAFETY: the caller's promise.
    unsafe { c_str(name) }.map(std::ffi::CStr::to_bytes)
}

/// The content of a metalayer.
///
/// # Safety
///
/// `content` is null or readable for `len` bytes.
unsafe fn content_bytes<'a>(content: *const u8, len: i32) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { in_bytes(content.cast(), len) }.map_err(invalid)
}

/// The content of a variable-length metalayer as it is stored, compressed with `cparams`, or with the defaults if that
/// is null.
///
/// # Safety
///
/// `cparams` is null or valid, with the pointers in it.
unsafe fn compressed(content: &[u8], cparams: *const blosc2_cparams) -> Result<Vec<u8>> {
    // SAFETY: the caller's promise.
    let cparams = unsafe { cparams.as_ref() }.unwrap_or(&blosc2_cparams::DEFAULTS);
    // SAFETY: as above; the context is used for this only.
    unsafe {
        with_new_cctx(cparams, |context| {
            meta::compress_by(content, |content, chunk| context::compress(context, content, chunk))
        })
    }
}

/// Adds a metalayer of fixed length; returns its index, or a negative code. Frames must not have chunks yet.
///
/// A view has metalayers of its own, which cannot be changed if its chunks are in a frame.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `name` is NULL or a string; `content` is NULL or readable for
/// `content_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_meta_add(
    schunk: *mut blosc2_schunk,
    name: *const c_char,
    content: *mut u8,
    content_len: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (handle, name, content) = unsafe {
            (SchunkHandle::from_ptr(schunk)?, name_bytes(name)?, content_bytes(content, content_len)?)
        };
        handle.adopt_layers(Used::Fixed)?;
        handle.change_fixed(ErrorKind::InvalidParam, |schunk| schunk.meta_add(name, content))
    })
}

/// Overwrites the start of a metalayer of fixed length; returns its index, or a negative code.
///
/// The metalayer keeps its length. Content that is longer than that is not written, which is no error. For views see
/// `blosc2_meta_add`.
///
/// # Safety
///
/// As for `blosc2_meta_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_meta_update(
    schunk: *mut blosc2_schunk,
    name: *const c_char,
    content: *mut u8,
    content_len: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (handle, name) = unsafe { (SchunkHandle::from_ptr(schunk)?, name_bytes(name)?) };
        handle.adopt_layers(Used::Fixed)?;
        // SAFETY: the caller's promise.
        let content = unsafe { content_bytes(content, content_len) }.or_else(|error| {
            // That there is no such metalayer comes first.
            handle.look_at_layers(Used::Fixed, |schunk| schunk.meta_find(name)).and(Err(error))
        })?;
        handle.change_fixed(ErrorKind::Data, |schunk| schunk.meta_update(name, content))
    })
}

/// The index of the variable-length metalayer `name`, or a negative code, `BLOSC2_ERROR_NOT_FOUND` if there is none.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `name` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlmeta_exists(schunk: *mut blosc2_schunk, name: *const c_char) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (handle, name) = unsafe { (SchunkHandle::from_ptr(schunk)?, name_bytes(name)?) };
        handle.look_at_layers(Used::Name(name), |schunk| schunk.vlmeta_find(name))
    })
}

/// Adds a variable-length metalayer, compressed with `cparams`, or with the defaults if that is NULL; returns its
/// index, or a negative code: `BLOSC2_ERROR_FAILURE` for the 17th one of a frame.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `name` is NULL or a string; `content` is NULL or readable for
/// `content_len` bytes; `cparams` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlmeta_add(
    schunk: *mut blosc2_schunk,
    name: *const c_char,
    content: *mut u8,
    content_len: i32,
    cparams: *mut blosc2_cparams,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (handle, name) = unsafe { (SchunkHandle::from_ptr(schunk)?, name_bytes(name)?) };
        // That there is such a metalayer comes before what is wrong with the content or the parameters.
        let is_there = handle.look_at_layers(Used::Name(name), |schunk| schunk.has_vlmeta(name, false))?;
        require(!is_there, "metalayer exists already")?;
        // SAFETY: as above.
        let content = unsafe { compressed(content_bytes(content, content_len)?, cparams) }?;
        handle.change_variable(|schunk| schunk.vlmeta_add_stored(name, content))
    })
}

/// Replaces the content of a variable-length metalayer, compressed as in `blosc2_vlmeta_add`; returns its index, or a
/// negative code.
///
/// # Safety
///
/// As for `blosc2_vlmeta_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlmeta_update(
    schunk: *mut blosc2_schunk,
    name: *const c_char,
    content: *mut u8,
    content_len: i32,
    cparams: *mut blosc2_cparams,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (handle, name) = unsafe { (SchunkHandle::from_ptr(schunk)?, name_bytes(name)?) };
        // That there is no such metalayer comes before what is wrong with the content or the parameters.
        let is_there = handle.look_at_layers(Used::Name(name), |schunk| schunk.has_vlmeta(name, true))?;
        ensure(is_there, ErrorKind::NotFound, "no such metalayer")?;
        // SAFETY: as above.
        let content = unsafe { compressed(content_bytes(content, content_len)?, cparams) }?;
        handle.change_variable(|schunk| schunk.vlmeta_update_stored(name, content))
    })
}

/// Stores a copy of the content of a variable-length metalayer, which the caller releases with `free()`, in `*content`
/// (NULL if it is empty), and its length in `*content_len`; returns the index of the metalayer, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `name` is NULL or a string; `content` and `content_len` are NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlmeta_get(
    schunk: *mut blosc2_schunk,
    name: *const c_char,
    content: *mut *mut u8,
    content_len: *mut i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (handle, name) = unsafe { (SchunkHandle::from_ptr(schunk)?, name_bytes(name)?) };
        let wanted = !content.is_null() && !content_len.is_null();
        require(wanted, "nowhere to store the content")?;
        let decoding = handle.decoding();
        let found = handle.look_at_layers(Used::Variable(name), |schunk| {
            decoding.with(|dec| schunk.vlmeta_get_into(name, dec, MallocBuf::zeroed))
        });
        let (number, bytes) = match found {
            Ok((number, bytes)) => (Ok(number), Some(bytes).filter(|bytes| !bytes.is_empty())),
            // Damaged contents reset the outputs.
            Err(error) if error.kind() == ErrorKind::ReadBuffer => (Err(error), None),
            Err(error) => return Err(error),
        };
        let (start, len) = bytes.map_or((std::ptr::null_mut(), 0), MallocBuf::into_raw);
        // SAFETY: not null, and writable by the caller's promise.
        unsafe {
            content.write(start);
            content_len.write(i32::try_from(len).unwrap_or(i32::MAX));
        }
        number
    })
}

/// Deletes a variable-length metalayer; returns the number of those left, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `name` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlmeta_delete(schunk: *mut blosc2_schunk, name: *const c_char) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (handle, name) = unsafe { (SchunkHandle::from_ptr(schunk)?, name_bytes(name)?) };
        handle.adopt_layers(Used::Variable(name))?;
        handle.change_variable(|schunk| schunk.vlmeta_delete(name))
    })
}

/// Stores the names of the variable-length metalayers in `names`, which has room for all of them; returns their number,
/// or a negative code.
///
/// The strings belong to the super-chunk, and stay valid until its metalayers change.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `names` is NULL or writable for all names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlmeta_get_names(
    schunk: *mut blosc2_schunk,
    names: *mut *mut c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.show_rest()?;
        let abi = handle.abi();
        // SAFETY: the caller's promise.
        let count = unsafe { (*abi).nvlmetalayers };
        require(count == 0 || !names.is_null(), "nowhere to store the names")?;
        for i in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the array is the handle's, and its entries are null or layers.
            let layer = unsafe { handle_ref((*abi).vlmetalayers[i]) }.map_err(invalid)?;
            // SAFETY: `names` has room by the caller's promise.
            unsafe { names.add(i).write(layer.name) };
        }
        Ok(c_int::from(count))
    })
}
