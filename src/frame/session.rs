//! What each change of a frame begins with: it takes the lock, takes over what others changed, and undoes what was
//! broken off.

#![forbid(unsafe_code)]

use super::Frame;
use super::head::Head;
use super::read::FrameChunks;
use super::share::View;
use super::state::State;
use super::store::{Behind, Disk, Store};
use crate::error::{ErrorKind, Result, ensure};
use crate::format::frame_header::{FIXED_LEN, Layout};
use crate::io::IoFile;
use crate::io::lock::{Held, Mode};
use crate::memory;
use std::cell::RefCell;
use std::sync::Arc;

/// A frame during a change: locked, up to date, repaired if a change had been broken off.
pub(super) struct Session {
    /// The file of the frame; `None` in memory.
    pub(super) file: Option<Arc<dyn IoFile>>,
    /// What follows the frame in its file.
    pub(super) behind: Behind,
    /// The length of the frame before the first change of the session.
    pub(super) frame_len: u64,
    /// The header as it is stored before the first change of the session, if it was read.
    pub(super) head: RefCell<Vec<u8>>,
    _held: Held,
}

impl Session {
    /// Whether other data follow the frame in its file.
    pub(super) fn is_followed(&self) -> bool {
        self.behind.others().is_some()
    }
}

impl Frame {
    /// Locks, takes over what others changed, and undoes what was broken off.
    pub(super) fn begin(&mut self) -> Result<Session> {
        let held = self.hold(Mode::Exclusive)?;
        let mut session = Session {
            file: None,
            behind: Behind::Nothing,
            frame_len: 0,
            head: RefCell::default(),
            _held: held,
        };
        if let Store::Disk(disk) = &self.store {
            if disk.keeps_handles() {
                self.begin_with_one_handle(disk, &mut session)?;
            } else {
                let (state, _) = self.poll(disk)?;
                self.begin_with(disk, &mut session, state)?;
            }
        }
        let header = &self.known().header;
        session.frame_len = header.frame_len;
        let writable = header.layout == Layout::Stable;
        ensure(writable, ErrorKind::VersionSupport, "frames of beta releases cannot be changed")?;
        Ok(session)
    }

    /// As [`begin`](Self::begin), after `state` was compared with the file.
    fn begin_with(&self, disk: &Disk, session: &mut Session, mut state: Arc<State>) -> Result<()> {
        let file = disk.writer()?;
        let mut size = disk.size_of(&*file)?;
        if disk.repair(&*file, size)? {
            state = self.adopt(disk.load(&*file)?);
            size = disk.size_of(&*file)?;
        }
        session.behind = disk.behind(&*file, size, state.header.frame_len)?;
        session.file = Some(file);
        Ok(())
    }

    /// As [`begin`](Self::begin), with a handle that serves for reading as well.
    fn begin_with_one_handle(&self, disk: &Disk, session: &mut Session) -> Result<()> {
        let file = disk.writer()?;
        let known = self.snapshot();
        let head = session.head.get_mut();
        memory::resize(head, known.header.header_len.max(FIXED_LEN))?;
        let n = file.read_at(disk.base, head)?;
        head.truncate(n);
        let seen = Head::of(head)?.cut_like(&known.seen);
        let state = self.compare(disk, &*file, &seen)?;
        let end = disk.base + state.header.frame_len;
        let is_known = Arc::ptr_eq(&state, &known) && seen == state.seen && !disk.is_torn(&*file);
        if is_known && file.size()? == end {
            // Nothing was broken off, nothing follows.
            session.file = Some(file);
            return Ok(());
        }
        // Another file may have taken the path, or this one needs a repair.
        head.clear();
        self.begin_with(disk, session, state)
    }

    /// The chunks of `state` during a change.
    pub(super) fn chunks_in(&self, session: &Session, state: &Arc<State>) -> FrameChunks<'_> {
        let view = View {
            state: Arc::clone(state),
            file: session.file.clone(),
            at_path: true,
            held: Held::nothing(),
        };
        FrameChunks { frame: self, view }
    }
}
