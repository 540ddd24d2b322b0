//! Back-ends of C as the library's [`Io`].

use std::ffi::{CString, c_void};
use std::path::Path;
use std::sync::Arc;

use super::callbacks::call_back;
use super::consts::{BLOSC2_IO_FILESYSTEM, BLOSC2_IO_FILESYSTEM_MMAP};
use super::io;
use super::io_streams::{Opener, Streams};
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

/// An open file of a back-end of the application.
struct UserFile(Streams);

/// An open file of the mapping back-end: its handle. Reads through it wait for each other.
struct MappedFile {
    callbacks: blosc2_io_cb,
    stream: *mut c_void,
}

// SAFETY: any thread may use the handle.
unsafe impl Send for MappedFile {}
// SAFETY: several threads may read through the handle at once; nobody reads what is being written.
unsafe impl Sync for MappedFile {}

/// A stream while this thread may use it, and is not cancelled.
struct Stream<'a> {
    callbacks: &'a blosc2_io_cb,
    stream: *mut c_void,
}

/// The error for a callback that failed.
fn failed(kind: ErrorKind) -> Error {
    Error::new(kind, "the I/O back-end reported a failure")
}

/// The error for a callback that the application has left out.
pub(super) fn missing() -> Error {
    Error::new(ErrorKind::PluginIo, "the I/O back-end lacks a callback")
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
        let path = c_path(path).ok_or(failed(ErrorKind::FileOpen))?;
        let opener = Opener { callbacks: self.callbacks, params: self.params, path, mode };
        if self.maps() {
            return Ok(Arc::new(MappedFile { callbacks: self.callbacks, stream: opener.open()? }));
        }
        Ok(Arc::new(UserFile(Streams::open(opener)?)))
    }

    fn features(&self) -> Features {
        let maps = self.maps();
        Features { keeps_handles: maps, local: false, maps, journal: maps }
    }
}

impl CIo {
    fn maps(&self) -> bool {
        self.callbacks.id == BLOSC2_IO_FILESYSTEM_MMAP
    }
}

impl Stream<'_> {
    fn position(position: u64) -> Result<i64> {
        i64::try_from(position).map_err(|_| Error::new(ErrorKind::FileRead, "position out of range"))
    }

    /// Reads into `*buffer`, or asks where the bytes are, which goes there; returns how many there are.
    fn read_some(&self, position: u64, len: usize, buffer: &mut *mut c_void) -> Result<usize> {
        let read = self.callbacks.read.ok_or_else(missing)?;
        let position = Self::position(position)?;
        let wanted = i64::try_from(len).map_err(|_| failed(ErrorKind::FileRead))?;
        // SAFETY: the client vouches for its callback; `*buffer` has room for `len` bytes if the callback fills it.
        let n = unsafe { read(buffer, 1, wanted, position, self.stream) };
        usize::try_from(n).ok().filter(|&n| n <= len).ok_or(failed(ErrorKind::FileRead))
    }

    /// The address of the bytes at `position`, lent by the back-end, and how many there are: 0 if the address is null.
    fn lent(&self, position: u64, len: usize) -> Result<(*const u8, usize)> {
        let mut start = std::ptr::null_mut();
        let n = self.read_some(position, len, &mut start)?;
        let n = if start.is_null() { 0 } else { n };
        Ok((start.cast::<u8>(), n))
    }

    fn lends(&self) -> bool {
        !self.callbacks.is_allocation_necessary.get()
    }

    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        if !self.lends() {
            let mut start = buf.as_mut_ptr().cast::<c_void>();
            return self.read_some(position, buf.len(), &mut start);
        }
        let (mut start, mut n) = self.lent(position, buf.len())?;
        if n == 0 {
            // Such back-ends lend all or nothing; near the end there may be less.
            let left = usize::try_from(self.size()?.saturating_sub(position)).unwrap_or(usize::MAX);
            if (1..buf.len()).contains(&left) {
                (start, n) = self.lent(position, left)?;
            }
        }
        if n == 0 {
            return Ok(0);
        }
        // SAFETY: the back-end lends `n` bytes at `start`, until its stream is used again.
        copy::copy(unsafe { std::slice::from_raw_parts(start, n) }, &mut buf[..n]);
        Ok(n)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let write = self.callbacks.write.ok_or_else(missing)?;
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
}

impl UserFile {
    /// Runs `operation` with a stream that no other thread uses meanwhile.
    fn with_stream<T>(&self, operation: impl FnOnce(Stream<'_>) -> Result<T>) -> Result<T> {
        let taken = self.0.take()?;
        let stream = Stream { callbacks: self.0.callbacks(), stream: taken.stream() };
        call_back(|| operation(stream))
    }
}

impl IoFile for UserFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        self.with_stream(|stream| stream.read_at(position, buf))
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return self.0.callbacks().write.map(|_| ()).ok_or_else(missing);
        }
        self.with_stream(|stream| stream.write_at(position, bytes))
    }

    fn size(&self) -> Result<u64> {
        self.with_stream(|stream| stream.size())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.with_stream(|stream| stream.truncate(len))
    }
}

impl MappedFile {
    /// This thread may be cancelled: the mapping back-end itself defers that where it waits.
    fn stream(&self) -> Stream<'_> {
        Stream { callbacks: &self.callbacks, stream: self.stream }
    }
}

impl IoFile for MappedFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        self.stream().read_at(position, buf)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.stream().write_at(position, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.stream().size()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.stream().truncate(len)
    }

    unsafe fn bytes(&self, position: u64, len: usize) -> Result<Option<&[u8]>> {
        let (start, n) = self.stream().lent(position, len)?;
        if n != len {
            return Err(failed(ErrorKind::FileRead));
        }
        if n == 0 {
            return Ok(Some(&[]));
        }
        // SAFETY: `n` bytes of the mapping, which stays as long as the file is open.
        Ok(Some(unsafe { std::slice::from_raw_parts(start, n) }))
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let Some(close) = self.callbacks.close {
            // SAFETY: the handle is that of this file.
            unsafe { close(self.stream) };
        }
    }
}
