//! Back-ends of C as the library's [`Io`].

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::sync::Arc;

use super::consts::{BLOSC2_IO_FILESYSTEM, BLOSC2_IO_FILESYSTEM_MMAP};
use super::io;
use super::types::{blosc2_io, blosc2_io_cb, blosc2_stdio_params};
use crate::copy;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Durability, FrameOptions};
use crate::io::file::FileIo;
use crate::io::{Features, Io, IoFile, OpenMode};

/// How a frame is accessed by the back-end `io`.
///
/// # Errors
///
/// `PluginIo` if there is no such back-end.
pub(crate) fn options(io: &blosc2_io) -> Result<FrameOptions> {
    let back_end: Arc<dyn Io> = if io.id == BLOSC2_IO_FILESYSTEM {
        Arc::new(FileIo)
    } else {
        Arc::new(CIo { callbacks: io::find(io.id)?, params: io.params })
    };
    Ok(FrameOptions { io: back_end, locking: wants_locking(io), durability: Durability::System })
}

fn wants_locking(io: &blosc2_io) -> bool {
    if io.id != BLOSC2_IO_FILESYSTEM {
        return false;
    }
    // SAFETY: the parameters of this back-end are of this type, or null.
    let asked = unsafe { io.params.cast::<blosc2_stdio_params>().as_ref() };
    asked.is_some_and(|params| params.locking.get())
        || std::env::var_os("BLOSC_LOCKING").is_some_and(|value| !value.is_empty() && value != "0")
}

/// A back-end of C: the mapping one, or one of the application.
struct CIo {
    callbacks: blosc2_io_cb,
    params: *mut c_void,
}

// SAFETY: the contract of back-ends lets any thread open files.
unsafe impl Send for CIo {}
// SAFETY: as above.
unsafe impl Sync for CIo {}

/// An open file of a back-end of C.
struct CFile {
    callbacks: blosc2_io_cb,
    stream: *mut c_void,
}

// SAFETY: a stream is used by one thread at a time, or it is that of the mapping back-end, whose reads only read.
unsafe impl Send for CFile {}
// SAFETY: as above.
unsafe impl Sync for CFile {}

fn failed(kind: ErrorKind) -> Error {
    Error::new(kind, "the I/O back-end reported a failure")
}

fn missing() -> Error {
    Error::new(ErrorKind::PluginIo, "the I/O back-end lacks a callback")
}

/// The mode in the words of `fopen`.
fn mode_text(mode: OpenMode) -> &'static CStr {
    match mode {
        OpenMode::Read => c"rb",
        OpenMode::Update => c"rb+",
        OpenMode::Create => c"wb",
        OpenMode::Append => c"ab",
    }
}

/// `path` as a string of C; `None` if it cannot be one.
#[cfg(unix)]
pub(crate) fn c_path(path: &Path) -> Option<CString> {
    CString::new(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())).ok()
}

/// See above.
#[cfg(not(unix))]
pub(crate) fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.to_str()?).ok()
}

impl Io for CIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        let open = self.callbacks.open.ok_or_else(missing)?;
        let path = c_path(path).ok_or(failed(ErrorKind::FileOpen))?;
        // SAFETY: the client vouches for its callback and its parameters.
        let stream = unsafe { open(path.as_ptr(), mode_text(mode).as_ptr(), self.params) };
        if stream.is_null() {
            return Err(failed(ErrorKind::FileOpen));
        }
        Ok(Arc::new(CFile { callbacks: self.callbacks, stream }))
    }

    fn features(&self) -> Features {
        let maps = self.callbacks.id == BLOSC2_IO_FILESYSTEM_MMAP;
        Features { keeps_handles: maps, local: false, maps, journal: maps }
    }
}

impl CFile {
    fn position(position: u64) -> Result<i64> {
        i64::try_from(position).map_err(|_| Error::new(ErrorKind::FileRead, "position out of range"))
    }

    /// Reads into `buf`, or asks where the bytes are; returns how many there are.
    fn read_some(&self, position: u64, len: usize, buffer: &mut *mut c_void) -> Result<usize> {
        let read = self.callbacks.read.ok_or_else(missing)?;
        let position = Self::position(position)?;
        let wanted = i64::try_from(len).map_err(|_| failed(ErrorKind::FileRead))?;
        // SAFETY: the client vouches for its callback; `*buffer` has room for `len` bytes if the callback fills it.
        let n = unsafe { read(buffer, 1, wanted, position, self.stream) };
        usize::try_from(n).ok().filter(|&n| n <= len).ok_or(failed(ErrorKind::FileRead))
    }

    /// The bytes at `position`, lent by the back-end.
    fn lent(&self, position: u64, len: usize) -> Result<&[u8]> {
        let mut start = std::ptr::null_mut();
        let n = self.read_some(position, len, &mut start)?;
        if n == 0 || start.is_null() {
            return Ok(&[]);
        }
        // SAFETY: the back-end lends `n` bytes at `start`.
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), n) })
    }

    fn lends(&self) -> bool {
        !self.callbacks.is_allocation_necessary.get()
    }
}

impl IoFile for CFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        if !self.lends() {
            let mut start = buf.as_mut_ptr().cast::<c_void>();
            return self.read_some(position, buf.len(), &mut start);
        }
        let mut bytes = self.lent(position, buf.len())?;
        if bytes.is_empty() {
            // Such back-ends lend all or nothing; near the end there may be less.
            let left = usize::try_from(self.size()?.saturating_sub(position)).unwrap_or(usize::MAX);
            if (1..buf.len()).contains(&left) {
                bytes = self.lent(position, left)?;
            }
        }
        copy::copy(bytes, &mut buf[..bytes.len()]);
        Ok(bytes.len())
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let write = self.callbacks.write.ok_or_else(missing)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let position = Self::position(position)?;
        let wanted = i64::try_from(bytes.len()).map_err(|_| failed(ErrorKind::FileWrite))?;
        // SAFETY: the client vouches for its callback; `bytes` is as long as told.
        let n = unsafe { write(bytes.as_ptr().cast(), 1, wanted, position, self.stream) };
        if n == wanted { Ok(()) } else { Err(failed(ErrorKind::FileWrite)) }
    }

    fn size(&self) -> Result<u64> {
        let size = self.callbacks.size.ok_or_else(missing)?;
        // SAFETY: the client vouches for its callback.
        u64::try_from(unsafe { size(self.stream) }).map_err(|_| failed(ErrorKind::FileRead))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let truncate = self.callbacks.truncate.ok_or_else(missing)?;
        let len = i64::try_from(len).map_err(|_| failed(ErrorKind::FileTruncate))?;
        // SAFETY: the client vouches for its callback.
        let code = unsafe { truncate(self.stream, len) };
        if code == 0 { Ok(()) } else { Err(failed(ErrorKind::FileTruncate)) }
    }

    fn bytes(&self, position: u64, len: usize) -> Result<Option<&[u8]>> {
        if self.callbacks.id != BLOSC2_IO_FILESYSTEM_MMAP {
            return Ok(None);
        }
        let bytes = self.lent(position, len)?;
        if bytes.len() == len { Ok(Some(bytes)) } else { Err(failed(ErrorKind::FileRead)) }
    }
}

impl Drop for CFile {
    fn drop(&mut self) {
        if let Some(close) = self.callbacks.close {
            // SAFETY: the client vouches for its callback; nobody else has the stream.
            unsafe { close(self.stream) };
        }
    }
}
