//! The `storage` of a super-chunk: a copy of what it was made with, in C's memory, since clients read and change it.

use std::ffi::{CStr, OsString, c_char, c_void};
use std::path::PathBuf;
use std::ptr;

use super::mem::{c_array, c_string};
use super::types::{blosc2_cparams, blosc2_dparams, blosc2_io, blosc2_storage};
use crate::error::Result;
use crate::io::dirs;

/// Copies `storage` and what it points to; defaults stand in for what is null.
///
/// # Safety
///
/// The pointers in `storage` are null or valid.
pub(crate) unsafe fn copy_of(storage: &blosc2_storage) -> Result<*mut blosc2_storage> {
    // SAFETY: the caller's promise.
    let (cparams, dparams, io) =
        unsafe { (storage.cparams.as_ref(), storage.dparams.as_ref(), storage.io.as_ref()) };
    let mut own = blosc2_storage { contiguous: storage.contiguous, ..blosc2_storage::DEFAULTS };
    let fill = |own: &mut blosc2_storage| {
        if !storage.urlpath.is_null() {
            // SAFETY: the caller's promise.
            own.urlpath = c_string(without_scheme(unsafe { CStr::from_ptr(storage.urlpath) }))?;
        }
        own.cparams = c_array(&[cparams.copied().unwrap_or(blosc2_cparams::DEFAULTS)])?;
        own.dparams = c_array(&[dparams.copied().unwrap_or(blosc2_dparams::DEFAULTS)])?;
        own.io = c_array(&[io.copied().unwrap_or(blosc2_io::DEFAULTS)])?;
        c_array(&[*own])
    };
    let copy = fill(&mut own);
    if copy.is_err() {
        // SAFETY: the parts were made above.
        unsafe { free_parts(&own) };
    }
    copy
}

/// Releases a storage made by [`copy_of`], with whatever clients put in its place.
///
/// # Safety
///
/// `storage` is null, or it and its parts are memory of C's allocator that nobody uses any more.
pub(crate) unsafe fn free(storage: *mut blosc2_storage) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(storage) = storage.as_ref() {
            free_parts(storage);
        }
        libc::free(storage.cast::<c_void>());
    }
}

/// Releases what the pointers of `storage` point to.
///
/// # Safety
///
/// As for [`free`].
unsafe fn free_parts(storage: &blosc2_storage) {
    for part in
        [storage.urlpath.cast::<c_void>(), storage.cparams.cast(), storage.dparams.cast(), storage.io.cast()]
    {
        // SAFETY: the caller's promise; null is fine.
        unsafe { libc::free(part) };
    }
}

/// `urlpath` without a leading `file:///`.
pub(crate) fn without_scheme(urlpath: &CStr) -> &CStr {
    match urlpath.to_bytes_with_nul().strip_prefix(b"file:///") {
        Some(rest) => CStr::from_bytes_with_nul(rest).expect("a suffix of a C string is one"),
        None => urlpath,
    }
}

/// The path that `urlpath` names.
pub(crate) fn path_of(urlpath: &CStr) -> PathBuf {
    plain_path_of(without_scheme(urlpath))
}

/// The path `path`, for functions that do not know the scheme.
pub(crate) fn plain_path_of(path: &CStr) -> PathBuf {
    PathBuf::from(os_string(path.to_bytes()))
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Removes the frame that was made in vain at `urlpath`; null names none.
///
/// # Safety
///
/// `urlpath` is null or a string.
pub(crate) unsafe fn remove_made(urlpath: *const c_char) {
    if !urlpath.is_null() {
        // SAFETY: the caller's promise.
        let path = path_of(unsafe { CStr::from_ptr(urlpath) });
        // If that fails too, there is nothing better to report.
        let _ = dirs::remove_frame(&path);
    }
}

/// A storage that names nothing but a place.
pub(crate) fn at(contiguous: bool, urlpath: *mut c_char, io: *mut blosc2_io) -> blosc2_storage {
    blosc2_storage {
        contiguous: contiguous.into(),
        urlpath,
        cparams: ptr::null_mut(),
        dparams: ptr::null_mut(),
        io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn storages_are_copied_with_all_parts() {
        let mut cparams = blosc2_cparams { clevel: 3, ..blosc2_cparams::DEFAULTS };
        let storage = blosc2_storage {
            contiguous: true.into(),
            urlpath: c"file:///some/path".as_ptr().cast_mut(),
            cparams: &raw mut cparams,
            ..blosc2_storage::DEFAULTS
        };
        // SAFETY: the pointers are valid; the copy is released at the end and not used afterwards.
        unsafe {
            let copy = copy_of(&storage).unwrap();
            assert_eq!(CStr::from_ptr((*copy).urlpath), c"some/path");
            assert_eq!((*(*copy).cparams).clevel, 3);
            assert_eq!((*(*copy).dparams).nthreads, 1);
            assert_eq!((*(*copy).io).id, 0);
            assert!((*copy).contiguous.get());
            free(copy);
            free(ptr::null_mut());
        }
    }

    #[test]
    fn only_the_exact_scheme_is_removed() {
        assert_eq!(path_of(c"file:////tmp/x"), Path::new("/tmp/x"));
        assert_eq!(path_of(c"file://x"), Path::new("file://x"));
        assert_eq!(plain_path_of(c"file:///x"), Path::new("file:///x"));
    }
}
