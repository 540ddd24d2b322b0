//! Exported functions: removing and renaming frames. They take paths as they are: a leading `file:///`, which the
//! functions that make and open frames leave out, names a directory here.

use std::ffi::{c_char, c_int};

use super::guard::guard_status;
use super::ptr::c_str;
use super::storage::plain_path_of;
use crate::error::require;
use crate::io::dirs;

/// Removes a directory and the files in it; returns 0, or a negative code. If it fails, for instance as there is
/// another directory inside, some of the files may be gone.
///
/// # Safety
///
/// `path` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_remove_dir(path: *const c_char) -> c_int {
    guard_status(|| {
        require(!path.is_null(), "no path")?;
        // SAFETY: the caller's promise.
        dirs::remove_dir(&plain_path_of(unsafe { c_str(path) }?))
    })
}

/// Removes a frame: a file with its lock file, or a directory as `blosc2_remove_dir` does; returns 0, or a negative
/// code. What is there is not looked at, so that other files go as well.
///
/// A path that does not exist is no error; neither is NULL.
///
/// # Safety
///
/// `path` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_remove_urlpath(path: *const c_char) -> c_int {
    guard_status(|| {
        if path.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        dirs::remove_frame(&plain_path_of(unsafe { c_str(path) }?))
    })
}

/// Renames a frame; returns 0, or a negative code. With NULL it does nothing.
///
/// # Safety
///
/// Both are NULL or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_rename_urlpath(old_urlpath: *mut c_char, new_path: *mut c_char) -> c_int {
    guard_status(|| {
        if old_urlpath.is_null() || new_path.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let (from, to) = unsafe { (c_str(old_urlpath)?, c_str(new_path)?) };
        dirs::rename(&plain_path_of(from), &plain_path_of(to))
    })
}
