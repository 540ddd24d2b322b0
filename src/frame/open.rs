//! Frames are created and opened.

#![forbid(unsafe_code)]

use super::head::Head;
use super::holes::Holes;
use super::offsets::Index;
use super::share::{ATTEMPTS, retry};
use super::state::{Source, State};
use super::store::{Disk, Store};
use super::{Frame, FrameOptions};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::frame_header::{self, FrameHeader, FrameParams, Layout, MIN_FRAME_LEN};
use crate::format::frame_trailer;
use crate::io::dirs;
use crate::io::lock::{self, FrameLock, Held, Mode};
use crate::io::memory::MallocBuf;
use crate::memory;
use parking_lot::{Mutex, RwLock};
use std::path::Path;
use std::sync::Arc;

impl Frame {
    /// An empty frame in memory.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a typesize of 0 or less, `MemoryAlloc`.
    pub fn create_in_memory(params: FrameParams) -> Result<Frame> {
        let (state, bytes) = empty(&params, Arrangement::Contiguous)?;
        Ok(Frame::assemble(Store::Memory(MallocBuf::copy_of(&bytes)?), state, params, None))
    }

    /// An empty contiguous frame in the new file `path`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a typesize of 0 or less, `FileOpen` if something exists at the path or the file cannot be
    /// made, `FileWrite`.
    pub fn create_file(path: &Path, params: FrameParams, options: &FrameOptions) -> Result<Frame> {
        ensure(std::fs::metadata(path).is_err(), ErrorKind::FileOpen, "path exists already")?;
        let disk = Disk::new(Arc::clone(&options.io), path.to_path_buf(), None, 0, options.sync());
        let lock = options.lock_at(|| lock::beside(path));
        Frame::create_on(disk, params, lock)
    }

    /// An empty sparse frame in the new directory `path`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a typesize of 0 or less, `FileOpen` if something exists at the path or the directory cannot
    /// be made, `FileWrite`.
    pub fn create_dir(path: &Path, params: FrameParams, options: &FrameOptions) -> Result<Frame> {
        params.check()?;
        let dir = dirs::strip_trailing_slash(path);
        dirs::make(&dir)?;
        let lock = options.lock_at(|| lock::inside(&dir));
        let index = dir.join(dirs::INDEX_NAME);
        let disk = Disk::new(Arc::clone(&options.io), index, Some(dir.clone()), 0, options.sync());
        // A directory that does not become a frame goes, if it is empty.
        Frame::create_on(disk, params, lock).inspect_err(|_| drop(std::fs::remove_dir(&dir)))
    }

    fn create_on(disk: Disk, params: FrameParams, lock: Option<Arc<FrameLock>>) -> Result<Frame> {
        let arrangement = if disk.dir.is_some() { Arrangement::Sparse } else { Arrangement::Contiguous };
        let (mut state, bytes) = empty(&params, arrangement)?;
        // The lock file of an earlier frame may have stayed: what its counter tells is older than this one.
        let stayed = lock.as_ref().filter(|lock| lock.path().exists());
        let held = stayed.map_or(Ok(Held::nothing()), |lock| lock.hold(Mode::Exclusive))?;
        let (disk, file) = disk.create(&bytes)?;
        if let Some(lock) = stayed {
            lock.note_read();
        }
        drop(held);
        state.file = file;
        Ok(Frame::assemble(Store::Disk(disk), state, params, lock))
    }

    fn assemble(store: Store, state: State, params: FrameParams, lock: Option<Arc<FrameLock>>) -> Frame {
        Frame { store, state: RwLock::new(Arc::new(state)), params, lock, unreadable: Mutex::new(None) }
    }

    /// Opens the frame at `path`: a directory holds a sparse frame, anything else a contiguous one that starts at byte
    /// `offset`.
    ///
    /// # Errors
    ///
    /// `FileOpen` if the path does not exist or cannot be opened, `Lock`, else those of a damaged frame.
    pub fn open(path: &Path, offset: u64, options: &FrameOptions) -> Result<Frame> {
        // Another process may be replacing the file at this moment.
        let attempts = if options.locking { ATTEMPTS } else { 1 };
        let meta = retry(attempts, || {
            std::fs::metadata(path).map_err(|_| Error::new(ErrorKind::FileOpen, "no such frame"))
        })?;
        let dir = meta.is_dir().then(|| dirs::strip_trailing_slash(path));
        require(dir.is_none() || offset == 0, "offset into a directory")?;
        let lock = options.lock_at(|| dir.as_deref().map_or_else(|| lock::beside(path), lock::inside));
        let file = dir.as_ref().map_or_else(|| path.to_path_buf(), |dir| dir.join(dirs::INDEX_NAME));
        let mut disk = Disk::new(Arc::clone(&options.io), file, dir, offset, options.sync());
        if lock.as_ref().is_some_and(|lock| !lock.path().exists()) {
            // Locking makes a file: not beside what is no frame.
            retry(attempts, || disk.check_header())?;
        }
        let held = lock.as_ref().map_or(Ok(Held::nothing()), |lock| lock.hold(Mode::Shared))?;
        let state = retry(attempts, || disk.open_and_load())?;
        disk.keep_mapping()?;
        if let Some(lock) = &lock {
            lock.note_read();
        }
        drop(held);
        let params = state.header.params;
        Ok(Frame::assemble(Store::Disk(disk), state, params, lock))
    }

    /// A frame in the memory of `buffer`, which holds it and nothing else.
    ///
    /// # Errors
    ///
    /// Those of a damaged frame.
    pub fn from_buffer(buffer: MallocBuf) -> Result<Frame> {
        let source = Source::in_memory(&buffer)?;
        ensure(frame_header::has_magic(&buffer), ErrorKind::InvalidHeader, "no frame magic")?;
        let state = State::load(&source)?;
        ensure(
            state.header.frame_len == buffer.len() as u64, // widening
            ErrorKind::InvalidHeader,
            "frame length differs from the buffer",
        )?;
        let params = state.header.params;
        Ok(Frame::assemble(Store::Memory(buffer), state, params, None))
    }
}

/// Where a frame has its chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    /// Between its header and its index.
    Contiguous,
    /// In files of their own.
    Sparse,
}

/// State and bytes of a frame without chunks.
fn empty(params: &FrameParams, arrangement: Arrangement) -> Result<(State, Vec<u8>)> {
    let mut header = FrameHeader {
        layout: Layout::Stable,
        header_len: 0,
        frame_len: 0,
        sparse: arrangement == Arrangement::Sparse,
        nbytes: 0,
        cbytes: 0,
        chunksize: -1,
        vl_blocks: false,
        has_vlmeta: false,
        params: *params,
    };
    header.header_len = header.write(&[])?.len();
    let trailer = frame_trailer::write(&[])?;
    header.frame_len = (header.header_len + trailer.len()) as u64; // widening
    debug_assert!(header.frame_len >= MIN_FRAME_LEN);
    let mut bytes = header.write(&[])?;
    memory::extend(&mut bytes, &trailer)?;
    let state = State {
        header,
        counted: None,
        trailer_len: trailer.len(),
        gap: 0,
        index: Index::default(),
        metalayers: Arc::default(),
        vlmetalayers: Arc::default(),
        seen: Head::of(&bytes[..header.header_len])?,
        owes_trailer: false,
        file: None,
        undone_by: None,
        live_end: 0,
        holes: Holes::of_disjoint_chunks(),
        replaces: false,
        dead: 0,
        dead_is_known: true,
        tick: 0,
    };
    Ok((state, bytes))
}
