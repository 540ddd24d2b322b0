//! Bytes at rest: files, mappings, back-ends of the application, and memory.
//!
//! The layers above read and write at absolute positions only, so one open file serves any number of threads.

mod attributes;
pub mod dirs;
pub mod file;
pub(crate) mod lock;
pub(crate) mod mapping;
pub mod memory;
pub mod mmap;
pub(crate) mod spare;
mod transfer;
mod turn;

use crate::error::{Error, ErrorKind, Result};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading an existing file (`rb`).
    Read,
    /// Reading and writing an existing file (`rb+`).
    Update,
    /// Writing a file that is made, or emptied if it exists (`wb`).
    Create,
    /// Appending to a file that is made if it is missing (`ab`); writes are still positional.
    Append,
}

/// Tells a file from another that took its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// Number of the device.
    pub device: u64,
    /// Number of the file on it.
    pub file: u64,
}

/// What a back-end can do beyond reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Handles may be kept open and shared between threads.
    pub keeps_handles: bool,
    /// Paths are those of the file system: files may be locked, removed and compared with their path.
    pub local: bool,
    /// Files are mapped: all opens of one path give the same handle, and [`IoFile::bytes`] works.
    pub maps: bool,
    /// [`IoFile::size`] is exact and cheap, [`IoFile::read_at`] may be asked for more than there is, and bytes may lie
    /// past the end of a frame, so writes are protected by a journal (see the frame layer).
    pub journal: bool,
}

/// Fills memory, which need not hold anything before, with the same number of bytes, and returns them.
pub type Fill<'f> = dyn for<'r> Fn(&'r mut [MaybeUninit<u8>]) -> Result<&'r mut [u8]> + 'f;

/// A way to keep files.
pub trait Io: Send + Sync {
    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// `FileOpen`, or `PluginIo` if the back-end is gone.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>>;

    /// Opens a new file at `path`, as [`OpenMode::Create`] does. What was there before is not written to, where the
    /// back-end can tell: other names of the file, and what a link leads to, stay as they are.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn create_anew(&self, path: &Path) -> Result<Arc<dyn IoFile>> {
        self.open(path, OpenMode::Create)
    }

    /// Removes the file at `path`, or empties it if the back-end cannot remove files.
    ///
    /// # Errors
    ///
    /// `FileRemove`, or those of [`open`](Self::open) and [`IoFile::truncate`].
    fn remove(&self, path: &Path) -> Result<()> {
        self.open(path, OpenMode::Create)?.truncate(0)
    }

    /// Makes `bytes` the whole content of the file at `path`, which need not exist.
    ///
    /// Where files can be renamed this is all or nothing; other back-ends empty the file first.
    ///
    /// # Errors
    ///
    /// `FileOpen`, `FileWrite`, or `PluginIo`.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.open(path, OpenMode::Create)?.write_at(0, bytes)
    }

    /// Gives the file at `from` the name `to`, which is in the same directory, in place of what is there.
    ///
    /// # Errors
    ///
    /// `FileOpen` if there is no such file, or if it is a link or has other names, or the back-end cannot rename.
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let _ = (from, to);
        Err(Error::new(ErrorKind::FileOpen, "files cannot be renamed"))
    }

    /// Waits until it has reached the device that there is something at `path`, a file or directory that was just made.
    ///
    /// # Errors
    ///
    /// `FileWrite`.
    fn sync_name(&self, path: &Path) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// What the back-end can do.
    fn features(&self) -> Features;
}

/// An open file.
///
/// Several threads may read at once; nobody reads what is being written.
pub trait IoFile: Send + Sync {
    /// Reads at `position` and returns the number of bytes read, less than `buf.len()` only at the end of the file.
    ///
    /// # Errors
    ///
    /// `FileRead`.
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize>;

    /// As [`read_at`](Self::read_at), but may stop early: what is missing need not mean the end of the file.
    ///
    /// # Errors
    ///
    /// `FileRead`.
    fn read_some_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        self.read_at(position, buf)
    }

    /// Fills `room`, memory that need not hold anything yet, with the bytes at `position`, and returns them.
    ///
    /// # Errors
    ///
    /// `FileRead`, also if the file ends too early.
    fn fill<'r>(&self, position: u64, room: &'r mut [MaybeUninit<u8>]) -> Result<&'r mut [u8]> {
        let bytes = zeroed(room);
        self.read_exact_at(position, bytes)?;
        Ok(bytes)
    }

    /// Writes all of `bytes` at `position`; a gap before it reads as zeros.
    ///
    /// # Errors
    ///
    /// `FileWrite`; part of the bytes may have been written.
    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    ///
    /// `FileRead`.
    fn size(&self) -> Result<u64>;

    /// Cuts the file off, or extends it with zeros, to `len` bytes.
    ///
    /// # Errors
    ///
    /// `FileTruncate`.
    fn truncate(&self, len: u64) -> Result<()>;

    /// Where, from `position` on, there may be bytes other than zeros: all before is a hole. Not past the end of the
    /// file unless `position` is.
    fn skip_hole(&self, position: u64) -> u64 {
        position
    }

    /// Waits until all that was written has reached the device.
    ///
    /// # Errors
    ///
    /// `FileWrite`.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Identity of the open file, if it has one. Asking again costs nothing.
    fn id(&self) -> Option<FileId> {
        None
    }

    /// [`id`](Self::id) and [`size`](Self::size) at once.
    ///
    /// # Errors
    ///
    /// `FileRead`.
    fn id_and_size(&self) -> Result<(Option<FileId>, u64)> {
        Ok((self.id(), self.size()?))
    }

    /// The `len` bytes at `position` without a copy, if the back-end holds them in memory: `Ok(None)` if it does not.
    ///
    /// The memory stays where it is as long as the file is open.
    ///
    /// # Safety
    ///
    /// While the bytes are used, nobody writes to them or cuts the file off before their end, through this file or in
    /// any other way.
    ///
    /// # Errors
    ///
    /// `FileRead` if the range reaches past the end.
    unsafe fn bytes(&self, position: u64, len: usize) -> Result<Option<&[u8]>> {
        let _ = (position, len);
        Ok(None)
    }

    /// Reads exactly `buf.len()` bytes.
    ///
    /// # Errors
    ///
    /// `FileRead`, also if the file ends too early.
    fn read_exact_at(&self, position: u64, buf: &mut [u8]) -> Result<()> {
        if self.read_at(position, buf)? == buf.len() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::FileRead, "file ends too early"))
    }
}

/// Fills `room` with zeros, and returns them.
fn zeroed(room: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    room.fill(MaybeUninit::new(0));
    // SAFETY: all bytes were just set.
    unsafe { initialised(room) }
}

/// Fills `room` with `bytes`, which are as many, and returns them.
pub(crate) fn copied<'r>(bytes: &[u8], room: &'r mut [MaybeUninit<u8>]) -> &'r mut [u8] {
    assert_eq!(bytes.len(), room.len());
    for (place, &byte) in room.iter_mut().zip(bytes) {
        place.write(byte);
    }
    // SAFETY: all bytes were just set.
    unsafe { initialised(room) }
}

/// The bytes in `room`.
///
/// # Safety
///
/// All of them were set.
unsafe fn initialised(room: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    // SAFETY: the same memory, borrowed as long; the caller vouches for its content.
    unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<u8>(), room.len()) }
}
