//! Super-chunks made of what is stored already: at a path or in a buffer.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr::{self, NonNull};

use super::SchunkHandle;
use crate::capi::consts::BLOSC2_IO_FILESYSTEM;
use crate::capi::types::{blosc2_io, blosc2_schunk, blosc2_storage};
use crate::capi::{io, io_adapter, storage};
use crate::error::{Error, ErrorKind, Result, require};
use crate::io::memory::MallocBuf;
use crate::schunk::Schunk;

impl SchunkHandle {
    /// Opens what starts at byte `offset` of `urlpath`.
    ///
    /// # Safety
    ///
    /// `urlpath` is null or a string; the parameters of `udio` are those for the back-end.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for null and a negative offset, `PluginIo` for an unknown back-end, `FileOpen` if there is
    /// nothing at the path; those of [`Schunk::open_any`]. The parameters of the back-end are released by then.
    pub(crate) unsafe fn open(
        urlpath: *const c_char,
        offset: i64,
        udio: &blosc2_io,
    ) -> Result<*mut blosc2_schunk> {
        require(!urlpath.is_null(), "no path")?;
        // SAFETY: the caller's promise.
        let path = storage::path_of(unsafe { CStr::from_ptr(urlpath) });
        let adopt = |opened: Schunk| {
            let mut io = *udio;
            let place = match opened.frame() {
                Some(frame) => storage::at(!frame.is_sparse(), urlpath.cast_mut(), &raw mut io),
                None => in_memory(false),
            };
            // SAFETY: the pointers are valid.
            unsafe { Self::adopt(opened, &place) }
        };
        // Clients leave the parameters of a back-end to it, also if nothing can be opened.
        open_at(&path, offset, udio).and_then(adopt).inspect_err(|_| {
            // SAFETY: the caller's promise; nothing is open any more.
            unsafe { io::destroy(udio) };
        })
    }

    /// Makes a super-chunk of what is in the `len` bytes at `cframe`; see
    /// [`blosc2_schunk_from_buffer`](crate::capi::schunk::blosc2_schunk_from_buffer).
    ///
    /// # Safety
    ///
    /// `cframe` is null or readable for `len` bytes; without `copy`, for as long as the super-chunk lives.
    ///
    /// # Errors
    ///
    /// `NullPointer` for null, `InvalidParam` for a length out of range; those of [`Schunk::from_any_buffer`].
    pub(crate) unsafe fn from_buffer(cframe: *mut u8, len: i64, copy: bool) -> Result<*mut blosc2_schunk> {
        let data = NonNull::new(cframe).ok_or(Error::new(ErrorKind::NullPointer, "no frame"))?;
        let len = usize::try_from(len).ok().filter(|&len| isize::try_from(len).is_ok());
        let len = len.ok_or(Error::new(ErrorKind::InvalidParam, "length out of range"))?;
        // SAFETY: the caller's promise; the super-chunk only reads it.
        let opened = Schunk::from_any_buffer(unsafe { MallocBuf::borrow(data, len) })?;
        let is_frame = opened.frame().is_some();
        if !(is_frame && copy) {
            // SAFETY: there are no pointers in the place.
            return unsafe { Self::adopt(opened, &in_memory(is_frame)) };
        }
        // The copy shows the block size of its chunks; its contexts go on with what the frame asks for.
        // SAFETY: as above.
        unsafe { Self::adopt_with(opened.to_memory()?, opened.params(), &in_memory(false)) }
    }
}

/// The super-chunk that starts at byte `offset` of `path`.
fn open_at(path: &Path, offset: i64, udio: &blosc2_io) -> Result<Schunk> {
    let offset = u64::try_from(offset).map_err(|_| Error::new(ErrorKind::InvalidParam, "negative offset"))?;
    let options = io_adapter::options(udio)?;
    if udio.id == BLOSC2_IO_FILESYSTEM {
        Schunk::open_any(path, offset, &options)
    } else {
        Schunk::open(path, offset, &options)
    }
}

/// A place in memory.
fn in_memory(contiguous: bool) -> blosc2_storage {
    storage::at(contiguous, ptr::null_mut(), ptr::null_mut())
}
