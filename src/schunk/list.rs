//! Chunks of a super-chunk that has no frame: one buffer each.

use crate::error::{Error, ErrorKind, Result};
use crate::format::metalayers::Metalayer;
use crate::frame::sizes::Sizes;
use crate::io::memory::MallocBuf;
use std::sync::atomic::AtomicPtr;

/// The chunks, and what a frame would keep besides them.
pub(super) struct List {
    chunks: Vec<MallocBuf>,
    /// Where the chunks are, for C callers: an array of plain pointers.
    pointers: Vec<AtomicPtr<u8>>,
    pub(super) sizes: Sizes,
    /// Sum of the chunk sizes in bytes.
    pub(super) cbytes: u64,
    pub(super) metalayers: Vec<Metalayer>,
    pub(super) vlmetalayers: Vec<Metalayer>,
    pub(super) tick: u64,
}

impl List {
    pub(super) fn new() -> List {
        List {
            chunks: Vec::new(),
            pointers: Vec::new(),
            sizes: Sizes { chunksize: -1, nchunks: 0, nbytes: 0, vl_blocks: false },
            cbytes: 0,
            metalayers: Vec::new(),
            vlmetalayers: Vec::new(),
            tick: 0,
        }
    }

    pub(super) fn chunk(&self, nchunk: usize) -> Result<&[u8]> {
        let none = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        self.chunks.get(nchunk).map(|chunk| &chunk[..]).ok_or(none)
    }

    /// Makes room for one chunk more, so that [`insert`](Self::insert) cannot fail.
    pub(super) fn reserve(&mut self) -> Result<()> {
        let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for the list of chunks");
        self.chunks.try_reserve(1).map_err(|_| failed)?;
        self.pointers.try_reserve(1).map_err(|_| failed)
    }

    pub(super) fn insert(&mut self, nchunk: usize, chunk: MallocBuf, sizes: Sizes) {
        self.cbytes += chunk.len() as u64; // widening
        self.pointers.insert(nchunk, pointer(&chunk));
        self.chunks.insert(nchunk, chunk);
        self.sizes = sizes;
    }

    pub(super) fn replace(&mut self, nchunk: usize, chunk: MallocBuf, sizes: Sizes) {
        self.cbytes += chunk.len() as u64; // widening
        self.pointers[nchunk] = pointer(&chunk);
        let old = std::mem::replace(&mut self.chunks[nchunk], chunk);
        self.cbytes -= old.len() as u64; // widening
        self.sizes = sizes;
    }

    pub(super) fn remove(&mut self, nchunk: usize, sizes: Sizes) {
        self.pointers.remove(nchunk);
        self.cbytes -= self.chunks.remove(nchunk).len() as u64; // widening
        self.sizes = sizes;
    }

    /// Chunk `i` becomes what chunk `order[i]` was; `order` is a permutation.
    pub(super) fn reorder(&mut self, order: &[usize]) {
        let mut old: Vec<Option<MallocBuf>> = self.chunks.drain(..).map(Some).collect();
        self.chunks.extend(order.iter().map(|&from| old[from].take().expect("each number occurs once")));
        self.pointers = self.chunks.iter().map(pointer).collect();
        self.sizes = self.sizes.with_reordered(order);
    }

    /// The addresses of the chunks, and for how many there is room.
    pub(super) fn pointers(&self) -> (&[AtomicPtr<u8>], usize) {
        (&self.pointers, self.pointers.capacity())
    }
}

fn pointer(chunk: &MallocBuf) -> AtomicPtr<u8> {
    AtomicPtr::new(chunk.as_ptr().cast_mut())
}
