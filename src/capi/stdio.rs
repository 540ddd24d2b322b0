//! Exported functions: the back-end for plain files.
//!
//! All transfers are at absolute positions on the descriptor, never through the buffer of the stream. Clients may put a
//! stream of their own into a handle: what it has not written yet reaches the file when its size is asked for.

use std::ffi::{c_char, c_int, c_void};
use std::fs::File;
use std::io::Seek;
use std::mem::ManuallyDrop;

use super::guard::{guard, guard_or, guard_status};
use super::mem::c_array;
use super::ptr::{in_bytes, out_bytes};
use super::types::blosc2_stdio_file;
use crate::cancel::deferred;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::io::IoFile;
use crate::io::file::PlainFile;

/// The stream behind a handle.
///
/// # Safety
///
/// `stream` is null or points to a `blosc2_stdio_file`.
unsafe fn file_of(stream: *mut c_void) -> Result<*mut libc::FILE> {
    // SAFETY: the caller's promise.
    let file = unsafe { stream.cast::<blosc2_stdio_file>().as_ref() }.map(|stream| stream.file);
    file.filter(|file| !file.is_null()).ok_or(Error::new(ErrorKind::Failure, "no open file"))
}

/// The file of a handle, which keeps it open.
///
/// # Safety
///
/// As for [`file_of`]; the file stays open as long as the result is used.
unsafe fn plain(stream: *mut c_void) -> Result<ManuallyDrop<PlainFile>> {
    // SAFETY: the caller's promise.
    unsafe { plain_of(file_of(stream)?) }
}

/// The file behind a stream of C, which keeps it open.
///
/// # Safety
///
/// `file` is open, and stays so as long as the result is used.
pub(super) unsafe fn plain_of(file: *mut libc::FILE) -> Result<ManuallyDrop<PlainFile>> {
    // SAFETY: the caller's promise.
    let fd = unsafe { libc::fileno(file) };
    ensure(fd >= 0, ErrorKind::Failure, "no descriptor")?;
    // SAFETY: the descriptor is open and stays so; it is not closed here.
    let file = unsafe { sys::file(fd) }?;
    Ok(ManuallyDrop::new(PlainFile::from(file)))
}

#[cfg(unix)]
mod sys {
    use super::{File, Result, c_int};
    use std::os::fd::FromRawFd;

    /// The file behind a descriptor.
    ///
    /// # Safety
    ///
    /// The descriptor is open; the result is not to be dropped.
    pub(super) unsafe fn file(fd: c_int) -> Result<File> {
        // SAFETY: the caller's promise.
        Ok(unsafe { File::from_raw_fd(fd) })
    }
}

#[cfg(windows)]
mod sys {
    use super::{ErrorKind, File, Result, c_int, ensure};
    use std::os::windows::io::FromRawHandle;

    /// The file behind a descriptor.
    ///
    /// # Safety
    ///
    /// The descriptor is open; the result is not to be dropped.
    pub(super) unsafe fn file(fd: c_int) -> Result<File> {
        // SAFETY: the caller's promise.
        let handle = unsafe { libc::get_osfhandle(fd) };
        ensure(handle != -1, ErrorKind::Failure, "no handle")?;
        // SAFETY: the caller's promise.
        Ok(unsafe { File::from_raw_handle(handle as *mut _) })
    }
}

/// Number of bytes and position of a transfer.
pub(crate) fn transfer(size: i64, nitems: i64, position: i64) -> Result<(usize, u64)> {
    let invalid = Error::new(ErrorKind::InvalidParam, "size or position out of range");
    if size < 0 || nitems < 0 {
        return Err(invalid);
    }
    let len = size.checked_mul(nitems).and_then(|len| usize::try_from(len).ok()).ok_or(invalid)?;
    Ok((len, u64::try_from(position).map_err(|_| invalid)?))
}

/// Opens a file in the `fopen` mode `mode`; returns a handle, or NULL. `params` is not used.
///
/// # Safety
///
/// `urlpath` and `mode` are NULL or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_open(
    urlpath: *const c_char,
    mode: *const c_char,
    params: *mut c_void,
) -> *mut c_void {
    guard(|| {
        let _ = params;
        ensure(!urlpath.is_null() && !mode.is_null(), ErrorKind::NullPointer, "no path or mode")?;
        // SAFETY: the caller's promise.
        let file = deferred(|| unsafe { libc::fopen(urlpath, mode) });
        ensure(!file.is_null(), ErrorKind::FileOpen, "file cannot be opened")?;
        let handle = c_array(&[blosc2_stdio_file { file }]).inspect_err(|_| {
            // SAFETY: opened above.
            deferred(|| unsafe { libc::fclose(file) });
        })?;
        Ok(handle.cast::<c_void>())
    })
}

/// Closes a file; returns 0, or another value on failure.
///
/// # Safety
///
/// `stream` is NULL or comes from `blosc2_stdio_open` and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_close(stream: *mut c_void) -> c_int {
    guard(|| {
        // SAFETY: the caller gives the handle, from `malloc`, and the file away.
        unsafe {
            let file = file_of(stream)?;
            let code = deferred(|| libc::fclose(file));
            libc::free(stream);
            Ok(code)
        }
    })
}

/// Writes what the buffer of a stream holds to its file.
///
/// # Safety
///
/// `file` is open.
unsafe fn flush(file: *mut libc::FILE) -> Result<()> {
    // SAFETY: the caller's promise.
    let flushed = deferred(|| unsafe { libc::fflush(file) }) == 0;
    // Some systems say that a stream which is only read has a bad descriptor.
    let only_read = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EBADF);
    ensure(flushed || only_read(), ErrorKind::FileWrite, "stream cannot be flushed")
}

/// The size of a file in bytes, with what the buffer of the stream holds, or -1, also for pipes and their like. The
/// position of the stream stays.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_file` with an open file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_size(stream: *mut c_void) -> i64 {
    guard_or(-1, || {
        // SAFETY: the caller's promise.
        let (stream, file) = unsafe { (file_of(stream)?, plain(stream)?) };
        let unseekable = |_| Error::new(ErrorKind::FileRead, "file without positions");
        file.as_file().stream_position().map_err(unseekable)?;
        // SAFETY: an open stream, see above.
        unsafe { flush(stream) }?;
        let size = file.size()?;
        i64::try_from(size).map_err(|_| Error::new(ErrorKind::Failure, "file too large"))
    })
}

/// Writes `nitems` items of `size` bytes at byte `position`; returns the number of items written.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_file` with an open file; `ptr` is NULL or readable for that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_write(
    ptr: *const c_void,
    size: i64,
    nitems: i64,
    position: i64,
    stream: *mut c_void,
) -> i64 {
    guard_or(0, || {
        let (len, position) = transfer(size, nitems, position)?;
        // SAFETY: the caller's promise.
        let (bytes, file) = unsafe { (in_bytes(ptr, len)?, plain(stream)?) };
        if len == 0 {
            return Ok(0);
        }
        file.write_at(position, bytes)?;
        Ok(nitems)
    })
}

/// Reads `nitems` items of `size` bytes at byte `position` into the buffer `*ptr`; returns the number of whole items
/// read.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_file` with an open file; `ptr` is NULL or points to NULL or to a buffer for that
/// many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_read(
    ptr: *mut *mut c_void,
    size: i64,
    nitems: i64,
    position: i64,
    stream: *mut c_void,
) -> i64 {
    guard_or(0, || {
        let (len, position) = transfer(size, nitems, position)?;
        if len == 0 || ptr.is_null() {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        let (buffer, file) = unsafe { (out_bytes(*ptr, len)?, plain(stream)?) };
        let n = i64::try_from(file.read_at(position, buffer)?).unwrap_or(i64::MAX);
        Ok(n / size)
    })
}

/// Cuts or extends a file to `size` bytes; returns 0, or -1.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_file` with an open file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_truncate(stream: *mut c_void, size: i64) -> c_int {
    guard_or(-1, || {
        let size = u64::try_from(size).map_err(|_| Error::new(ErrorKind::InvalidParam, "negative size"))?;
        // SAFETY: the caller's promise.
        unsafe { plain(stream) }?.truncate(size)?;
        Ok(0)
    })
}

/// Does nothing; returns 0.
///
/// # Safety
///
/// None; it has the type of the callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_destroy(params: *mut c_void) -> c_int {
    let _ = params;
    guard_status(|| Ok(()))
}
