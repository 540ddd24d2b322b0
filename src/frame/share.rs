//! Frames on disk that several handles use: locks, and what others changed.

#![forbid(unsafe_code)]

use super::Frame;
use super::head::Head;
use super::state::State;
use super::store::{Disk, Store};
use crate::cancel;
use crate::error::{Error, ErrorKind, Result};
use crate::io::IoFile;
use crate::io::lock::{Held, Mode};
use std::sync::Arc;
use std::time::Duration;

/// How often reading a frame is tried while another handle may be writing it.
pub(super) const ATTEMPTS: usize = 50;
/// How long to wait before it is tried again.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(1);

/// A state together with what keeps it true while chunks are read.
pub(super) struct View {
    pub(super) state: Arc<State>,
    /// The handle that the state was compared with; `None` for frames in memory.
    pub(super) file: Option<Arc<dyn IoFile>>,
    /// Whether its path was known to lead to that file when this was made.
    pub(super) at_path: bool,
    pub(super) held: Held,
}

impl Frame {
    /// Whether accesses lock the frame against other handles that lock.
    pub fn locks(&self) -> bool {
        self.lock.is_some()
    }

    /// Takes the exclusive lock of the frame until [`unlock`](Self::unlock); locks nest. Without locking it does
    /// nothing.
    ///
    /// # Errors
    ///
    /// `Lock`, also as long as this handle reads, in another thread or, with a [`LazyChunk`](super::LazyChunk), in this
    /// one.
    pub fn lock(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), |lock| lock.lock())?;
        self.take_over();
        Ok(())
    }

    /// As [`lock`](Self::lock), until the result is dropped.
    ///
    /// # Errors
    ///
    /// `Lock`.
    pub(crate) fn exclusive(&self) -> Result<Held> {
        let held = self.hold(Mode::Exclusive)?;
        self.take_over();
        Ok(held)
    }

    /// Reads the state again if somebody changed it before this handle took the lock.
    fn take_over(&self) {
        if let (Store::Disk(disk), true) = (&self.store, self.is_changed()) {
            // What cannot be read now is reported by the access that needs it.
            let _ = self.poll(disk);
        }
    }

    /// Whether the lock told of changes that were not taken over yet.
    fn is_changed(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_changed())
    }

    /// Ends one [`lock`](Self::lock); without one it does nothing.
    pub fn unlock(&self) {
        if let Some(lock) = &self.lock {
            lock.unlock();
        }
    }

    /// Takes over what other handles changed; returns whether there was anything.
    ///
    /// # Errors
    ///
    /// `Lock`, or those of a damaged frame.
    pub fn refresh(&self) -> Result<bool> {
        let Store::Disk(disk) = &self.store else { return Ok(false) };
        let before = self.change_tick();
        let _held = self.hold(Mode::Shared)?;
        match self.poll(disk) {
            // A file that is gone, or in the middle of being written, is no news.
            Err(e) if matches!(e.kind(), ErrorKind::FileOpen | ErrorKind::FileRead) => {}
            other => drop(other?),
        }
        Ok(self.change_tick() != before)
    }

    pub(super) fn hold(&self, mode: Mode) -> Result<Held> {
        self.lock.as_ref().map_or(Ok(Held::nothing()), |lock| lock.hold(mode))
    }

    /// The current state, and what is needed to read chunks of it.
    pub(super) fn view(&self) -> Result<View> {
        let Store::Disk(disk) = &self.store else {
            return Ok(View { state: self.snapshot(), file: None, at_path: true, held: Held::nothing() });
        };
        let held = self.hold(Mode::Shared)?;
        let (state, file) = match self.poll(disk) {
            // Nothing is wanted of a file that holds no chunks. Programs empty it, and write a copy of the frame to it.
            Err(e) if e.kind() == ErrorKind::FileRead && self.snapshot().index.len() == 0 => {
                (self.snapshot(), disk.reader()?)
            }
            polled => polled?,
        };
        Ok(View { state, file: Some(file), at_path: true, held })
    }

    /// Compares the state with the file and reads it again if they differ, or if the lock told that somebody changed
    /// it.
    pub(super) fn poll(&self, disk: &Disk) -> Result<(Arc<State>, Arc<dyn IoFile>)> {
        let file = disk.reader()?;
        let known = self.snapshot();
        let state = self.compare(disk, &*file, &Head::read(&*file, disk.base, &known.seen)?)?;
        // What was read anew may be another file.
        let file = if Arc::ptr_eq(&state, &known) { file } else { disk.reader()? };
        Ok((state, file))
    }

    /// Compares the state with a file and `seen`, the start of its header as it is stored now, and reads it again if
    /// they differ, or if the lock told that somebody changed it.
    pub(super) fn compare(&self, disk: &Disk, file: &dyn IoFile, seen: &Head) -> Result<Arc<State>> {
        let known = self.snapshot();
        if !self.is_changed() && known.is_of(seen, file) || disk.is_torn(file) {
            return Ok(known);
        }
        let hopeless = *self.unreadable.lock() == Some(*seen.fixed());
        let attempts = if self.lock.is_some() || hopeless { 1 } else { ATTEMPTS };
        match retry(attempts, || disk.load(&*disk.reader()?)) {
            // Another frame has taken the path, whose chunks make no sense to this handle.
            Ok(fresh) if fresh.header.params.typesize != known.header.params.typesize => {
                Err(Error::new(ErrorKind::Data, "the path leads to a frame of another typesize"))
            }
            Ok(fresh) => {
                *self.unreadable.lock() = None;
                Ok(self.adopt(fresh))
            }
            Err(e) if self.lock.is_some() || !known.is_in(file) => Err(e),
            Err(_) => {
                // A writer that does not lock is at it, or was killed: go on with what is known.
                *self.unreadable.lock() = Some(*seen.fixed());
                Ok(known)
            }
        }
    }

    /// Replaces the state by one that was read just now.
    pub(super) fn adopt(&self, mut fresh: State) -> Arc<State> {
        if let Some(lock) = &self.lock {
            lock.note_read();
        }
        let mut state = self.state.write();
        fresh.tick = state.tick + 1;
        *state = Arc::new(fresh);
        Arc::clone(&state)
    }
}

/// Calls `read` until it succeeds, at most `attempts` times; returns what the last call did.
pub(super) fn retry<T>(attempts: usize, mut read: impl FnMut() -> Result<T>) -> Result<T> {
    let mut result = read();
    for _ in 1..attempts {
        if result.is_ok() {
            break;
        }
        cancel::deferred(|| std::thread::sleep(BETWEEN_ATTEMPTS));
        result = read();
    }
    result
}
