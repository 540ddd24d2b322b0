//! Chunks of a super-chunk that has no frame: one buffer each.

use crate::error::{Error, ErrorKind, Result};
use crate::format::metalayers::Metalayer;
use crate::frame::sizes::Sizes;
use crate::io::memory::MallocBuf;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The chunks, and what a frame would keep besides them.
pub(super) struct List {
    /// Where the chunks are. C callers see this array, so it holds plain pointers; the chunks are the list's own.
    pointers: Vec<AtomicPtr<u8>>,
    /// Their sizes in bytes.
    lens: Vec<u32>,
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
            pointers: Vec::new(),
            lens: Vec::new(),
            sizes: Sizes { chunksize: -1, nchunks: 0, nbytes: 0, vl_blocks: false },
            cbytes: 0,
            metalayers: Vec::new(),
            vlmetalayers: Vec::new(),
            tick: 0,
        }
    }

    pub(super) fn chunk(&self, nchunk: usize) -> Result<&[u8]> {
        let none = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        let (pointer, &len) = self.pointers.get(nchunk).zip(self.lens.get(nchunk)).ok_or(none)?;
        // SAFETY: `disown` took the chunk over with this address and length, and it is freed only through `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts(pointer.load(Ordering::Relaxed), len as usize) }) // widening
    }

    /// Makes room for one chunk more, so that [`insert`](Self::insert) cannot fail.
    pub(super) fn reserve(&mut self) -> Result<()> {
        let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for the list of chunks");
        self.pointers.try_reserve(1).map_err(|_| failed)?;
        self.lens.try_reserve(1).map_err(|_| failed)
    }

    pub(super) fn insert(&mut self, nchunk: usize, chunk: MallocBuf, sizes: Sizes) {
        let (pointer, len) = disown(chunk);
        self.cbytes += u64::from(len);
        self.pointers.insert(nchunk, pointer);
        self.lens.insert(nchunk, len);
        self.sizes = sizes;
    }

    pub(super) fn replace(&mut self, nchunk: usize, chunk: MallocBuf, sizes: Sizes) {
        let (pointer, len) = disown(chunk);
        self.cbytes += u64::from(len);
        let old = std::mem::replace(&mut self.pointers[nchunk], pointer);
        let old_len = std::mem::replace(&mut self.lens[nchunk], len);
        self.cbytes -= u64::from(old_len);
        drop(own(old, old_len));
        self.sizes = sizes;
    }

    pub(super) fn remove(&mut self, nchunk: usize, sizes: Sizes) {
        let (old, old_len) = (self.pointers.remove(nchunk), self.lens.remove(nchunk));
        self.cbytes -= u64::from(old_len);
        drop(own(old, old_len));
        self.sizes = sizes;
    }

    /// Changes the bytes of a chunk, but not its uncompressed size.
    pub(super) fn change(
        &mut self,
        nchunk: usize,
        work: impl FnOnce(&mut MallocBuf) -> Result<()>,
    ) -> Result<()> {
        let pointer = AtomicPtr::new(self.pointers[nchunk].load(Ordering::Relaxed));
        let chunk = own(pointer, self.lens[nchunk]);
        let mut lent = Lent { list: self, nchunk, chunk };
        work(&mut lent.chunk)
    }

    pub(super) fn remove_range(&mut self, range: Range<usize>, sizes: Sizes) {
        let gone = self.pointers.drain(range.clone()).zip(self.lens.drain(range));
        for (pointer, len) in gone {
            self.cbytes -= u64::from(len);
            drop(own(pointer, len));
        }
        self.sizes = sizes;
    }

    /// Chunk `i` becomes what chunk `order[i]` was; `order` is a permutation.
    pub(super) fn reorder(&mut self, order: &[usize]) {
        let address = |from: &usize| AtomicPtr::new(self.pointers[*from].load(Ordering::Relaxed));
        self.pointers = order.iter().map(address).collect();
        self.lens = order.iter().map(|&from| self.lens[from]).collect();
        self.sizes = self.sizes.with_reordered(order);
    }

    /// The addresses of the chunks, and for how many there is room.
    pub(super) fn pointers(&self) -> (&[AtomicPtr<u8>], usize) {
        (&self.pointers, self.pointers.capacity())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        for (pointer, len) in self.pointers.drain(..).zip(self.lens.drain(..)) {
            drop(own(pointer, len));
        }
    }
}

/// A chunk that is being changed; it goes back to its place however that ends.
struct Lent<'a> {
    list: &'a mut List,
    nchunk: usize,
    chunk: MallocBuf,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.shrink();
        let (pointer, len) = disown(chunk);
        let Lent { list, nchunk, .. } = self;
        list.cbytes = list.cbytes - u64::from(list.lens[*nchunk]) + u64::from(len);
        list.pointers[*nchunk] = pointer;
        list.lens[*nchunk] = len;
    }
}

/// Takes the memory out of a buffer.
fn disown(chunk: MallocBuf) -> (AtomicPtr<u8>, u32) {
    debug_assert!(!chunk.is_borrowed());
    let (pointer, len) = chunk.into_raw();
    (AtomicPtr::new(pointer), u32::try_from(len).expect("chunks are below 2 GiB"))
}

/// Puts the memory back in a buffer, which frees it.
fn own(pointer: AtomicPtr<u8>, len: u32) -> MallocBuf {
    let pointer = NonNull::new(pointer.into_inner()).expect("chunks have at least a header");
    // SAFETY: `disown` made both from a buffer, and they have left the list, so nobody else uses them.
    unsafe { MallocBuf::from_malloc(pointer, len as usize) } // widening
}
