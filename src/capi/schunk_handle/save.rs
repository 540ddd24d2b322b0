//! Super-chunks written as contiguous frames: to memory, to a file, or after what a file holds.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use super::{SchunkHandle, Used};
use crate::capi::environment::Environment;
use crate::capi::types::{CBool, blosc2_io};
use crate::capi::{io_adapter, storage};
use crate::error::{Error, ErrorKind, Result};
use crate::format::frame_header::FrameParams;
use crate::frame::FrameOptions;
use crate::schunk::Schunk;

/// The bytes of a contiguous frame.
pub(crate) struct FrameBytes {
    pub(crate) start: *mut u8,
    pub(crate) len: i64,
    /// Whether they come from `malloc` and belong to the caller; otherwise they are those of the super-chunk.
    pub(crate) needs_free: CBool,
}

impl SchunkHandle {
    /// The content as a contiguous frame; the bytes as they are if the super-chunk is such a frame in memory.
    ///
    /// # Errors
    ///
    /// `SchunkCopy` if the frame cannot be made; those of [`as_own`](Self::as_own), and of taking over what the client
    /// has set.
    pub(crate) fn to_buffer(&self) -> Result<FrameBytes> {
        self.adopt_layers(Used::All)?;
        self.adopt_chunksize()?;
        let own = self.as_own()?;
        let (start, len, owned) = self.look(|schunk| {
            let schunk = own.as_ref().unwrap_or(schunk);
            if self.is_memory_frame(schunk) {
                let bytes = schunk.frame().and_then(|frame| frame.buffer()).map(|buffer| &buffer[..]);
                let bytes = bytes.unwrap_or_default();
                return Ok((bytes.as_ptr().cast_mut(), bytes.len(), false));
            }
            let failed = |e: Error| Error::new(ErrorKind::SchunkCopy, e.what());
            let frame = schunk.to_frame(self.copy_params(own.as_ref())).map_err(failed)?;
            let no_buffer = |_| Error::new(ErrorKind::SchunkCopy, "no buffer");
            let mut buffer = frame.into_buffer().map_err(no_buffer)?;
            buffer.shrink();
            self.show_last(schunk);
            let (start, len) = buffer.into_raw();
            Ok((start, len, true))
        })?;
        let len = i64::try_from(len).expect("no buffer is longer than `isize::MAX`");
        Ok(FrameBytes { start, len, needs_free: owned.into() })
    }

    /// Writes a contiguous frame with the content to the file `urlpath`; returns its length.
    ///
    /// # Errors
    ///
    /// `PluginIo` for an unknown back-end; those of [`Schunk::to_file`] and [`as_own`](Self::as_own), and of taking
    /// over what the client has set.
    pub(crate) fn to_file(&self, urlpath: &CStr) -> Result<i64> {
        self.write_frame(urlpath, storage::path_of, |schunk, path, params, options| {
            schunk.to_file(path, params, &*options.io)
        })
    }

    /// Writes a contiguous frame with the content after what the file `urlpath` holds; returns the byte at which it
    /// starts.
    ///
    /// # Errors
    ///
    /// As for [`to_file`](Self::to_file), with those of [`Schunk::append_file`].
    pub(crate) fn append_file(&self, urlpath: &CStr) -> Result<i64> {
        self.write_frame(urlpath, storage::plain_path_of, |schunk, path, params, options| {
            schunk.append_file(path, params, options)
        })
    }

    /// Writes to the file that `path_of` makes of `urlpath`. As in the C library, a leading `file:///` is part of the
    /// path in any case if bytes that are a frame already are written.
    fn write_frame(
        &self,
        urlpath: &CStr,
        path_of: fn(&CStr) -> PathBuf,
        write: impl FnOnce(&Schunk, &Path, FrameParams, &FrameOptions) -> Result<u64>,
    ) -> Result<i64> {
        // SAFETY: clients change the storage only while no other thread uses the handle.
        let io = unsafe { (*self.abi()).storage.as_ref().and_then(|storage| storage.io.as_ref()) };
        let options = io_adapter::options(io.unwrap_or(&blosc2_io::DEFAULTS))?;
        self.adopt_layers(Used::All)?;
        self.adopt_chunksize()?;
        let own = self.as_own()?;
        let params = self.copy_params(own.as_ref());
        let len = self.look(|schunk| {
            let schunk = own.as_ref().unwrap_or(schunk);
            let is_there = self.is_memory_frame(schunk);
            let path_of = if is_there { storage::plain_path_of } else { path_of };
            let written = write(schunk, &path_of(urlpath), params, &options)?;
            if !is_there {
                self.show_last(schunk);
            }
            Ok(written)
        })?;
        i64::try_from(len).map_err(|_| Error::new(ErrorKind::FileWrite, "frame too large"))
    }

    /// Whether `schunk` is a frame in memory whose bytes can be handed out as they are.
    fn is_memory_frame(&self, schunk: &Schunk) -> bool {
        // SAFETY: clients change the storage only while no other thread uses the handle.
        let storage = unsafe { (*self.abi()).storage.as_ref() };
        storage.is_some_and(|storage| storage.contiguous.get() && storage.urlpath.is_null())
            && schunk.frame().is_some_and(|frame| !frame.is_on_disk())
    }

    /// The parameters in the header of a copy in a contiguous frame: those of contexts made for it, as to threads.
    /// `shown` is what is copied of a view, whose blocks may be others than those of its base if there are none.
    fn copy_params(&self, shown: Option<&Schunk>) -> FrameParams {
        let own = self.context_cparams();
        let without_blocks = shown.filter(|shown| shown.nchunks() == 0);
        let environment = Environment::read();
        FrameParams {
            typesize: own.typesize,
            blocksize: without_blocks.map_or(own.blocksize, |shown| shown.params_ref().blocksize),
            compcode: own.compcode,
            compcode_meta: own.compcode_meta,
            clevel: own.clevel,
            splitmode: own.splitmode.to_le_bytes()[0],
            use_dict: own.use_dict != 0,
            filters: own.filters,
            filters_meta: own.filters_meta,
            nthreads_c: environment.nthreads().unwrap_or(0),
            nthreads_d: environment.nthreads_to_decompress().unwrap_or(1),
        }
    }
}
