//! Frames: chunks, their index and metalayers in one buffer or file (contiguous), or in a directory (sparse).
//!
//! ```text
//! contiguous:  header | payload area: chunks and holes | index chunk | trailer
//! sparse:      chunks.b2frame: header | index chunk | trailer;  00000000.chunk, 00000001.chunk, ...
//! ```
//!
//! The index is kept in memory, decoded. Before each access to a frame on disk the start of its header, up to 512
//! bytes, is compared with the one seen last, so that changes made through other handles and by other processes are
//! taken over.
//!
//! # What is promised
//!
//! *Readers*: any number of threads may call the `&self` methods of one [`Frame`].
//!
//! *Nothing lost*: after a failed write, or if the process is killed between any two system calls, the file opens again
//! with this library and holds either the old or the new content; see the `journal` module for how. While no change is
//! being written, files are complete for every reader of the format. With [`Durability::Sync`] the same holds after a
//! power loss; without it, the system may have written in any order before that. Back-ends of the application have no
//! journal.
//!
//! *Locking*: handles that lock, in any process and of the C library too, see each other's changes completely or not at
//! all. Without locking, one writer and any number of readers work as long as readers retry what fails while the writer
//! is at it.

mod admit;
mod ahead;
mod chunk_files;
mod compact;
mod edit;
mod export;
mod head;
mod holes;
mod index_codec;
mod journal;
mod lazy;
mod leftover;
mod meta;
mod numbers;
mod offsets;
mod read;
mod readers;
mod refill;
mod regrid;
mod renumber;
mod session;
pub(crate) mod sizes;
mod spares;
pub(crate) mod special;
mod state;
mod store;
mod table;
mod tail;

pub(crate) use edit::{Derive, New, check_permutation};
pub use lazy::{ChunkSource, LazyChunk};
pub(crate) use lazy::{Wanted, Whole};
pub use read::ChunkBytes;
pub(crate) use read::{FrameChunks, Looked};
pub(crate) use regrid::Regrid;

use crate::cancel;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::frame_header::{self, FIXED_LEN, FrameHeader, FrameParams, Layout, MIN_FRAME_LEN};
use crate::format::frame_trailer;
use crate::format::metalayers::Metalayers;
use crate::io::file::FileIo;
use crate::io::lock::{self, FrameLock, Held, Mode};
use crate::io::memory::MallocBuf;
use crate::io::{Io, IoFile, dirs};
use crate::memory;
use head::Head;
use holes::Holes;
use offsets::Index;
use parking_lot::{Mutex, RwLock};
use sizes::{Counts, Sizes};
use state::{Source, State};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Disk, Store};

/// How often reading a frame is tried while another handle may be writing it.
const ATTEMPTS: usize = 50;
/// How long to wait before it is tried again.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(1);

/// When written bytes are on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the system sees fit: a killed process loses nothing, a power loss may.
    #[default]
    System,
    /// Before each change returns, and in the right order, as far as the back-end can wait for it (see [`IoFile::sync`]
    /// and [`Io::sync_name`]).
    Sync,
}

/// How a frame on disk is accessed.
#[derive(Clone)]
pub struct FrameOptions {
    /// The back-end.
    pub io: Arc<dyn Io>,
    /// Whether accesses lock the frame against other handles that lock.
    pub locking: bool,
    /// When written bytes are on the device.
    pub durability: Durability,
}

impl Default for FrameOptions {
    fn default() -> FrameOptions {
        FrameOptions { io: Arc::new(FileIo), locking: false, durability: Durability::System }
    }
}

/// A frame and the handle to it.
pub struct Frame {
    store: Store,
    state: RwLock<Arc<State>>,
    /// What the next change writes to the header.
    params: FrameParams,
    lock: Option<Arc<FrameLock>>,
    /// The fixed header for which reading the rest failed: not worth waiting for a second time.
    unreadable: Mutex<Option<[u8; FIXED_LEN]>>,
}

/// A state together with what keeps it true while chunks are read.
struct View {
    state: Arc<State>,
    /// The handle that the state was compared with; `None` for frames in memory.
    file: Option<Arc<dyn IoFile>>,
    /// Whether its path was known to lead to that file when this was made.
    at_path: bool,
    held: Held,
}

impl Frame {
    // Creating

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
        let (disk, file) = disk.create(&bytes)?;
        state.file = file;
        Ok(Frame::assemble(Store::Disk(disk), state, params, lock))
    }

    fn assemble(store: Store, state: State, params: FrameParams, lock: Option<Arc<FrameLock>>) -> Frame {
        Frame { store, state: RwLock::new(Arc::new(state)), params, lock, unreadable: Mutex::new(None) }
    }

    // Opening

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

    // Facts
    //
    // A super-chunk asks its frame for some of these; one without a frame looks into its list of chunks. The functions
    // that it asks are never inlined: because of the lock in them, the compiler would save registers on the path to the
    // list as well, which takes a few nanoseconds.

    fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }

    /// The state of a frame that nobody else looks at.
    fn known(&mut self) -> &Arc<State> {
        self.state.get_mut()
    }

    /// What handles show of the frame.
    pub(crate) fn counts(&self) -> Counts {
        let state = self.state.read();
        Counts { sizes: state.sizes(), cbytes: state.live_cbytes(), tick: state.tick }
    }

    /// Length of the frame, as of [`frame_len`](Self::frame_len), and of its trailer, as of one moment.
    pub(crate) fn lengths(&self) -> (u64, usize) {
        let state = self.state.read();
        (state.header.frame_len, state.trailer_len)
    }

    /// The fixed fields of the header as of the last access; its compression parameters are those read at opening or
    /// written last.
    #[must_use]
    pub fn header(&self) -> FrameHeader {
        self.state.read().header
    }

    /// Number of chunks.
    #[must_use]
    #[inline(never)] // see above
    pub fn nchunks(&self) -> usize {
        self.state.read().index.len()
    }

    /// Sum of the uncompressed chunk sizes in bytes.
    #[must_use]
    #[inline(never)] // see above
    pub fn nbytes(&self) -> u64 {
        self.state.read().header.nbytes
    }

    /// Bytes that the chunks take, without those of deleted ones as far as they are known.
    #[must_use]
    #[inline(never)] // see above
    pub fn cbytes(&self) -> u64 {
        self.state.read().live_cbytes()
    }

    /// Bytes per chunk: 0 if they vary, -1 as long as no chunk was stored.
    #[must_use]
    #[inline(never)] // see above
    pub fn chunksize(&self) -> i32 {
        self.state.read().header.chunksize
    }

    /// Number and bytes of the chunks, their size, and what kind of blocks they have, as of one moment.
    pub(crate) fn sizes(&self) -> Sizes {
        self.state.read().sizes()
    }

    /// Whether the chunks consist of variable-length blocks.
    #[must_use]
    #[inline(never)] // see above
    pub fn has_vl_blocks(&self) -> bool {
        self.state.read().header.vl_blocks
    }

    /// Length of the frame in bytes; of sparse frames that of the index file.
    #[must_use]
    pub fn frame_len(&self) -> u64 {
        self.state.read().header.frame_len
    }

    /// Length of the trailer in bytes.
    #[must_use]
    pub fn trailer_len(&self) -> usize {
        self.state.read().trailer_len
    }

    /// How often this handle took over changes from elsewhere or changed metalayers.
    #[must_use]
    #[inline(never)] // see above
    pub fn change_tick(&self) -> u64 {
        self.state.read().tick
    }

    /// Whether the chunks are files of a directory.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        matches!(&self.store, Store::Disk(Disk { dir: Some(_), .. }))
    }

    /// Whether the frame is in a file or directory.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        matches!(self.store, Store::Disk(_))
    }

    /// The file of a contiguous frame or the directory of a sparse one; `None` in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.store {
            Store::Memory(_) => None,
            Store::Disk(disk) => Some(disk.dir.as_deref().unwrap_or(&disk.file)),
        }
    }

    /// Position of the frame in its file, in bytes.
    #[must_use]
    pub fn file_offset(&self) -> u64 {
        match &self.store {
            Store::Memory(_) => 0,
            Store::Disk(disk) => disk.base,
        }
    }

    /// The whole frame, if it is in memory.
    #[must_use]
    pub fn buffer(&self) -> Option<&MallocBuf> {
        match &self.store {
            Store::Memory(buffer) => Some(buffer),
            Store::Disk(_) => None,
        }
    }

    /// The buffer of a frame in memory, to say who owns it. Its content must stay as it is.
    pub(crate) fn buffer_mut(&mut self) -> Option<&mut MallocBuf> {
        match &mut self.store {
            Store::Memory(buffer) => Some(buffer),
            Store::Disk(_) => None,
        }
    }

    /// The buffer of a frame in memory; `Err` gives other frames back.
    ///
    /// # Errors
    ///
    /// The frame itself if it is on disk.
    pub fn into_buffer(self) -> std::result::Result<MallocBuf, Box<Frame>> {
        match self.store {
            Store::Memory(buffer) => Ok(buffer),
            Store::Disk(_) => Err(Box::new(self)),
        }
    }

    /// The index as it is stored: positions in the payload area, numbers of chunk files, or negative numbers for
    /// special chunks; see [`Entry`](crate::format::offsets::Entry).
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`: a frame of a few bytes may have hundreds of millions of chunks.
    pub fn offsets(&self) -> Result<Vec<i64>> {
        self.snapshot().index.entries()
    }

    /// The fixed metalayers, in the order in which they were added.
    #[must_use]
    pub fn metalayers(&self) -> Arc<Metalayers> {
        Arc::clone(&self.state.read().metalayers)
    }

    /// The variable-length metalayers with their content compressed, as of the last access.
    #[must_use]
    pub fn vlmetalayers(&self) -> Arc<Metalayers> {
        Arc::clone(&self.state.read().vlmetalayers)
    }

    /// Compression parameters that the next change writes to the header.
    #[must_use]
    pub fn params(&self) -> FrameParams {
        self.params
    }

    /// As [`params`](Self::params), to look at only.
    pub(crate) fn params_ref(&self) -> &FrameParams {
        &self.params
    }

    /// Sets the compression parameters that the next change writes to the header. With a typesize of 0 or less, which
    /// no reader accepts, that change fails with `InvalidParam`.
    pub fn set_params(&mut self, params: FrameParams) {
        self.params = params;
    }

    /// Sets the chunk size of a frame that has no chunks; the next change writes it.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there are chunks.
    pub fn preset_chunksize(&mut self, chunksize: i32) -> Result<()> {
        let state = Arc::make_mut(self.state.get_mut());
        require(state.index.len() == 0, "chunks are there already")?;
        state.header.chunksize = chunksize;
        Ok(())
    }

    // Sharing

    /// Whether accesses lock the frame against other handles that lock.
    pub fn locks(&self) -> bool {
        self.lock.is_some()
    }

    /// Takes the exclusive lock of the frame until [`unlock`](Self::unlock); locks nest. Without locking it does
    /// nothing.
    ///
    /// # Errors
    ///
    /// `Lock`, also as long as this handle reads, in another thread or, with a [`LazyChunk`], in this one.
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

    fn hold(&self, mode: Mode) -> Result<Held> {
        self.lock.as_ref().map_or(Ok(Held::nothing()), |lock| lock.hold(mode))
    }

    /// The current state, and what is needed to read chunks of it.
    fn view(&self) -> Result<View> {
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
    fn poll(&self, disk: &Disk) -> Result<(Arc<State>, Arc<dyn IoFile>)> {
        let file = disk.reader()?;
        let known = self.snapshot();
        let state = self.compare(disk, &*file, &Head::read(&*file, disk.base, &known.seen)?)?;
        // What was read anew may be another file.
        let file = if Arc::ptr_eq(&state, &known) { file } else { disk.reader()? };
        Ok((state, file))
    }

    /// Compares the state with a file and `seen`, the start of its header as it is stored now, and reads it again if
    /// they differ, or if the lock told that somebody changed it.
    fn compare(&self, disk: &Disk, file: &dyn IoFile, seen: &Head) -> Result<Arc<State>> {
        let known = self.snapshot();
        if !self.is_changed() && known.is_of(seen, file) || disk.is_torn() {
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
    fn adopt(&self, mut fresh: State) -> Arc<State> {
        if let Some(lock) = &self.lock {
            lock.note_read();
        }
        let mut state = self.state.write();
        fresh.tick = state.tick + 1;
        *state = Arc::new(fresh);
        Arc::clone(&state)
    }

    /// Closes the cached read handle; the next access opens it again.
    pub fn close_reader(&self) {
        if let Store::Disk(disk) = &self.store {
            disk.reader.close();
        }
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame")
            .field("path", &self.path())
            .field("header", &self.header())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FrameOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameOptions")
            .field("locking", &self.locking)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

impl FrameOptions {
    fn sync(&self) -> bool {
        self.durability == Durability::Sync
    }

    fn lock_at(&self, path: impl FnOnce() -> PathBuf) -> Option<Arc<FrameLock>> {
        (self.locking && self.io.features().local).then(|| FrameLock::new(path()))
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

/// Calls `read` until it succeeds, at most `attempts` times; returns what the last call did.
fn retry<T>(attempts: usize, mut read: impl FnMut() -> Result<T>) -> Result<T> {
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

#[cfg(test)]
pub(crate) mod tests;
