//! Handles of frame files, kept open between accesses up to a limit for the whole process.

use crate::bytes::leading_number;
use crate::error::Result;
use crate::fork::{self, Lazy};
use crate::io::{FileId, Io, IoFile, OpenMode, file};
use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of handles kept open in this process.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The handle of one frame: for reading, and from its first change on for both.
///
/// Readers have the lock while they ask the system about the file. In the child of a `fork` it may be that of a thread
/// that does not exist there. Then no handle is kept any more.
pub(crate) struct Reader {
    kept: Mutex<Option<Kept>>,
    /// The process whose threads have the lock, as [`fork::count`] names it.
    process: AtomicU64,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { kept: Mutex::default(), process: AtomicU64::new(fork::count()) }
    }
}

/// An open file; [`KEPT`] counts them.
struct Kept {
    file: Arc<dyn IoFile>,
    /// Which file it is, where the back-end can tell.
    id: Option<FileId>,
    /// Whether it was opened for changes.
    writable: bool,
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reader {
    /// A handle for reading the file at `path`; if another file has taken the path, that one.
    ///
    /// A file that is gone stays readable through a handle that is still open.
    ///
    /// # Errors
    ///
    /// `FileOpen` or `PluginIo`.
    pub(crate) fn get(&self, io: &dyn Io, path: &Path) -> Result<Arc<dyn IoFile>> {
        self.open(io, path, OpenMode::Read)
    }

    /// The handle that is kept, if there is one.
    pub(crate) fn at_hand(&self) -> Option<Arc<dyn IoFile>> {
        self.lock()?.as_ref().map(|kept| Arc::clone(&kept.file))
    }

    /// Waits for the lock; `None` if whoever has it may be gone.
    fn lock(&self) -> Option<MutexGuard<'_, Option<Kept>>> {
        let process = fork::count();
        if self.process.load(Ordering::Relaxed) == process {
            return Some(self.kept.lock());
        }
        let kept = self.kept.try_lock()?;
        self.process.store(process, Ordering::Relaxed);
        Some(kept)
    }

    /// Whether `file` is the handle that is kept, and no other file has taken the path.
    pub(crate) fn serves(&self, file: &Arc<dyn IoFile>, path: &Path) -> bool {
        let Some(kept) = self.lock() else { return false };
        let known = kept.as_ref().filter(|known| Arc::ptr_eq(&known.file, file));
        known.is_some_and(|known| file::id_at(path).is_none_or(|now| Some(now) == known.id))
    }

    /// As [`get`](Self::get), for reading and writing.
    ///
    /// # Errors
    ///
    /// `FileOpen` or `PluginIo`.
    pub(crate) fn get_for_changes(&self, io: &dyn Io, path: &Path) -> Result<Arc<dyn IoFile>> {
        self.open(io, path, OpenMode::Update)
    }

    fn open(&self, io: &dyn Io, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        if !keeps_handles(io) {
            // Mappings hand out the same handle each time; other back-ends want to be asked each time.
            return io.open(path, mode);
        }
        let Some(mut kept) = self.lock() else { return io.open(path, mode) };
        if let Some(known) = &*kept {
            let now = file::id_at(path);
            let serves = match mode {
                OpenMode::Read => now.is_none() || now == known.id,
                // What is written to a file without a path is lost.
                _ => known.writable && now == known.id,
            };
            if serves {
                return Ok(Arc::clone(&known.file));
            }
        }
        let opened = io.open(path, mode)?;
        *kept = None;
        keep(&mut kept, &opened, opened.id(), mode);
        Ok(opened)
    }

    /// Keeps `file`, just opened for reading, if there is room.
    pub(crate) fn keep(&self, file: &Arc<dyn IoFile>, id: Option<FileId>) {
        if let Some(mut kept) = self.lock() {
            keep(&mut kept, file, id, OpenMode::Read);
        }
    }

    /// Closes the handle as soon as nobody reads through it.
    pub(crate) fn close(&self) {
        if let Some(mut kept) = self.lock() {
            *kept = None;
        }
    }
}

/// Whether handles of this back-end are kept.
pub(crate) fn keeps_handles(io: &dyn Io) -> bool {
    let features = io.features();
    features.keeps_handles && features.local
}

fn keep(slot: &mut Option<Kept>, file: &Arc<dyn IoFile>, id: Option<FileId>, mode: OpenMode) {
    if KEPT.fetch_add(1, Ordering::Relaxed) < limit() {
        *slot = Some(Kept { file: Arc::clone(file), id, writable: mode == OpenMode::Update });
    } else {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The most handles to keep: `BLOSC_MAX_CACHED_READERS`, or a share of what the process may open.
fn limit() -> usize {
    static LIMIT: Lazy<usize> = Lazy::new(|| {
        let asked = std::env::var("BLOSC_MAX_CACHED_READERS").ok();
        let limit =
            asked.as_deref().and_then(parse_limit).unwrap_or_else(|| (open_file_limit() / 16).min(96));
        Box::leak(Box::new(limit))
    });
    *LIMIT
}

/// The limit that `text` asks for; `None` for the default.
fn parse_limit(text: &str) -> Option<usize> {
    if text.is_empty() { None } else { usize::try_from(leading_number(text.as_bytes())).ok() }
}

#[cfg(unix)]
fn open_file_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills in the struct it is given.
    let rc = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if rc == 0 { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 256 }
}

#[cfg(not(unix))]
fn open_file_limit() -> usize {
    512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_as_strtol_does() {
        assert_eq!(parse_limit("7"), Some(7));
        assert_eq!(parse_limit(" +12abc"), Some(12));
        assert_eq!(parse_limit("junk"), Some(0));
        assert_eq!(parse_limit("0"), Some(0));
        assert_eq!(parse_limit("-3"), None);
        assert_eq!(parse_limit(""), None);
    }
}
