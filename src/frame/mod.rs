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
mod open;
mod read;
mod readers;
mod refill;
mod regrid;
mod renumber;
mod session;
mod share;
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

use crate::error::{Result, require};
use crate::format::frame_header::{FIXED_LEN, FrameHeader, FrameParams};
use crate::format::metalayers::Metalayers;
use crate::io::Io;
use crate::io::file::FileIo;
use crate::io::lock::FrameLock;
use crate::io::memory::MallocBuf;
use parking_lot::{Mutex, RwLock};
use sizes::{Counts, Sizes};
use state::State;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Disk, Store};

/// When written bytes are on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the system sees fit: a killed process loses nothing, a power loss may.
    #[default]
    System,
    /// Before each change returns, and in the right order, as far as the back-end can wait for it (see
    /// [`IoFile::sync`](crate::io::IoFile::sync) and [`Io::sync_name`]).
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

impl Frame {
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

    /// Closes the cached read handle; the next access opens it again.
    #[cfg(test)]
    fn close_reader(&self) {
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

#[cfg(test)]
pub(crate) mod tests;
