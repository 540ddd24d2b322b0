//! Whole frames in memory, written to files.

#![forbid(unsafe_code)]

use super::journal::{self, Undo};
use super::{Frame, FrameOptions};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::io::lock::{self, FrameLock, Held, Mode};
use crate::io::{Io, OpenMode};
use std::fs;
use std::path::Path;
use std::sync::Arc;

impl Frame {
    /// Writes a frame that is in memory to the file `path`, which is replaced if it exists; returns its length in
    /// bytes. A file that was there survives a failure, unless the back-end belongs to the application.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the frame is on disk, `FileOpen`, `FileWrite`.
    pub fn write_file(&self, path: &Path, io: &dyn Io) -> Result<u64> {
        let bytes = self.in_memory()?;
        io.replace(path, bytes)?;
        Ok(bytes.len() as u64) // widening
    }

    /// Writes a frame that is in memory after what the file `path` holds; the file is made if it is missing. Returns
    /// the position at which the frame starts. With locking, handles that lock a frame of that file are kept away
    /// meanwhile; with [`Durability::Sync`](super::Durability::Sync), the frame is on the device then.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the frame is on disk, `FileOpen`, `FileRead`, `FileWrite`, `Lock`; `Data` if its last bytes,
    /// in which a fingerprint may be, would make the file end like an unfinished change of another frame.
    pub fn append_to_file(&self, path: &Path, options: &FrameOptions) -> Result<u64> {
        let bytes = self.in_memory()?;
        // Somebody who makes frames could have those changed that are in the file already.
        ensure(
            !journal::ends_like_record(bytes),
            ErrorKind::Data,
            "frame with a fingerprint of an undo record",
        )?;
        let absent = fs::symlink_metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        append(path, bytes, options).inspect_err(|_| {
            if absent && fs::metadata(path).is_ok_and(|made| made.len() == 0) {
                let _ = options.io.remove(path); // what was not there before is not there
            }
        })
    }

    /// Whether this handle locks `path`, the file that its frame is in.
    pub(crate) fn locks_file(&self, path: &Path) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.path() == lock::beside(path))
    }

    fn in_memory(&self) -> Result<&[u8]> {
        let on_disk = Error::new(ErrorKind::InvalidParam, "frame is not in memory");
        self.buffer().map(|buffer| &buffer[..]).ok_or(on_disk)
    }
}

/// Writes `bytes` after what the file `path` holds; returns where they start. A change of a frame there that was broken
/// off is undone first: its record would not be the end of the file any more.
fn append(path: &Path, bytes: &[u8], options: &FrameOptions) -> Result<u64> {
    let io = &options.io;
    let file = io.open(path, OpenMode::Update).or_else(|_| {
        drop(io.open(path, OpenMode::Append)?);
        io.open(path, OpenMode::Update)
    })?;
    let _held = options.lock_at(|| lock::beside(path)).map(keep_others_away).transpose()?;
    if io.features().journal {
        if let Some(undo) = Undo::find(&*file, file.size()?)? {
            undo.roll_back(&*file, options.sync())?;
        }
    }
    let at = file.size()?;
    let sync = || if options.sync() { file.sync().and_then(|()| io.sync_name(path)) } else { Ok(()) };
    if let Err(e) = file.write_at(at, bytes).and_then(|()| sync()) {
        let _ = file.truncate(at); // what was there before stays as it was
        return Err(e);
    }
    Ok(at)
}

/// Keeps handles away that lock a frame of the file, which there are none of where the lock file cannot be made.
fn keep_others_away(lock: Arc<FrameLock>) -> Result<Held> {
    let path = lock.path().to_path_buf();
    lock.hold(Mode::Exclusive).or_else(|e| if path.exists() { Err(e) } else { Ok(Held::nothing()) })
}
