//! Exported functions: frames behind super-chunks, and their locks.

use std::ffi::c_int;

use super::guard::{guard, guard_status};
use super::mem::c_array;
use super::schunk_handle::SchunkHandle;
use super::types::blosc2_schunk;
use crate::error::{Error, ErrorKind, ensure};

/// The length of the frame in bytes, or a negative code. Of directories it is that of the index; super-chunks without a
/// frame tell about what one would have.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_frame_len(schunk: *mut blosc2_schunk) -> i64 {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        let len = handle.look(|schunk| Ok(schunk.frame_len()))?;
        i64::try_from(len).map_err(|_| Error::new(ErrorKind::Failure, "frame too large"))
    })
}

/// The index of the frame: for each chunk its position in the payload area, the number of its file, or a negative
/// number if it is a special chunk. The caller releases it with `free()`. NULL without a frame or without chunks.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_frame_get_offsets(schunk: *mut blosc2_schunk) -> *mut i64 {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.look(|schunk| {
            let frame = schunk.frame().ok_or(Error::new(ErrorKind::FrameType, "no frame"))?;
            let offsets = frame.offsets()?;
            if offsets.is_empty() { Ok(std::ptr::null_mut()) } else { c_array(&offsets) }
        })
    })
}

/// Locks the frame against other handles and processes that lock, until `blosc2_schunk_unlock`; locks nest. Returns 0,
/// or `BLOSC2_ERROR_LOCK`, also if other threads go on reading through this super-chunk for half a second. Without
/// locking (`blosc2_stdio_params.locking`) it does nothing.
///
/// The lock belongs to the super-chunk: threads that use the same one are not kept apart by it.
///
/// # Safety
///
/// `schunk` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_lock(schunk: *mut blosc2_schunk) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.look(|schunk| schunk.frame().map_or(Ok(()), crate::frame::Frame::lock))
    })
}

/// Ends one `blosc2_schunk_lock`; returns 0, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_unlock(schunk: *mut blosc2_schunk) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.look(|schunk| {
            if let Some(frame) = schunk.frame() {
                frame.unlock();
            }
            Ok(())
        })
    })
}

/// Takes over what others changed in the frame; returns 1 if there was anything, 0 if not, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_refresh(schunk: *mut blosc2_schunk) -> c_int {
    guard(|| {
        ensure(!schunk.is_null(), ErrorKind::NullPointer, "no super-chunk")?;
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.look(|schunk| schunk.refresh()).map(c_int::from)
    })
}
