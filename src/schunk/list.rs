//! Chunks of a super-chunk that has no frame: one buffer each.

use crate::error::{Error, ErrorKind, Result};
use crate::format::metalayers::Metalayer;
use crate::frame::Regrid;
use crate::frame::sizes::{ChunkInfo, Sizes};
use crate::io::memory::MallocBuf;
use crate::io::spare;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The chunks, and what a frame would keep besides them.
pub(crate) struct List {
    /// Where the chunks are. C callers see this array, so it holds plain pointers; the chunks are the list's own.
    pointers: Vec<AtomicPtr<u8>>,
    /// Their sizes in bytes.
    lens: Vec<u32>,
    pub(super) sizes: Sizes,
    /// Sum of the chunk sizes in bytes.
    pub(super) cbytes: u64,
    pub(super) metalayers: Arc<Vec<Metalayer>>,
    pub(super) vlmetalayers: Arc<Vec<Metalayer>>,
    pub(super) tick: u64,
}

impl List {
    pub(super) fn new() -> List {
        List {
            pointers: Vec::new(),
            lens: Vec::new(),
            sizes: Sizes { chunksize: -1, nchunks: 0, nbytes: 0, vl_blocks: false },
            cbytes: 0,
            metalayers: Arc::default(),
            vlmetalayers: Arc::default(),
            tick: 0,
        }
    }

    pub(super) fn chunk(&self, nchunk: usize) -> Result<&[u8]> {
        let none = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        let (pointer, &len) = self.pointers.get(nchunk).zip(self.lens.get(nchunk)).ok_or(none)?;
        // SAFETY: `disown` took the chunk over with this address and length, and it is freed only through `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts(pointer.load(Ordering::Relaxed), len as usize) }) // widening
    }

    /// Makes room for `more` chunks, so that [`insert`](Self::insert) cannot fail.
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for the list of chunks");
        self.pointers.try_reserve(more).map_err(|_| failed)?;
        self.lens.try_reserve(more).map_err(|_| failed)
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
        spare::give_back(own(old, old_len));
        self.sizes = sizes;
    }

    pub(super) fn remove(&mut self, nchunk: usize, sizes: Sizes) {
        let (old, old_len) = (self.pointers.remove(nchunk), self.lens.remove(nchunk));
        self.cbytes -= u64::from(old_len);
        spare::give_back(own(old, old_len));
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

    /// Removes and adds chunks and updates a metalayer; all of it or nothing.
    ///
    /// # Errors
    ///
    /// `NotFound` for the metalayer, `InvalidParam` for numbers out of range, those of damaged chunks, `MemoryAlloc`.
    pub(super) fn regrid(&mut self, change: &Regrid<'_>) -> Result<()> {
        let out_of_range = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        let no_memory = Error::new(ErrorKind::MemoryAlloc, "no memory for the list of chunks");
        let mut sizes = self.sizes;
        for nchunk in change.removed.iter().cloned().flatten() {
            let old = ChunkInfo::read(self.chunk(nchunk)?);
            let old = old.map_err(|e| Error::new(ErrorKind::Failure, e.what()))?;
            sizes = sizes.with_deleted(u64::try_from(old.nbytes).unwrap_or(0));
        }
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(change.count()).map_err(|_| no_memory)?;
        for nchunk in change.added.iter().cloned().flatten() {
            let info = ChunkInfo::read(change.chunk)?;
            // As in a frame: in whatever order they come, all chunks are of one size.
            sizes = sizes.with_inserted(nchunk.min(sizes.nchunks), &info, ErrorKind::ChunkInsert)?;
            fresh.push(spare::copy_of(change.chunk)?);
        }
        let layer = change.layer.map(|(name, content)| {
            let number = self.metalayers.iter().position(|layer| layer.name == name);
            number.map(|number| (number, content)).ok_or(super::meta::NOT_FOUND)
        });
        let layer = layer.transpose()?;
        let mut starts = Vec::new();
        starts.try_reserve_exact(sizes.nchunks).map_err(|_| no_memory)?;
        let order = change.order(self.sizes.nchunks, sizes.nchunks, starts).ok_or(out_of_range)?;
        let (mut pointers, mut lens) = (Vec::new(), Vec::new());
        // As in the C library, the array of chunks stays when the last chunk goes.
        pointers.try_reserve_exact(order.len().max(1)).map_err(|_| no_memory)?;
        lens.try_reserve_exact(order.len()).map_err(|_| no_memory)?;

        // Nothing fails from here on.
        for nchunk in change.removed.iter().cloned().flatten() {
            let gone = std::mem::take(self.pointers[nchunk].get_mut());
            spare::give_back(own(AtomicPtr::new(gone), self.lens[nchunk]));
            self.cbytes -= u64::from(self.lens[nchunk]);
        }
        let mut fresh = fresh.into_iter();
        for from in order {
            let (pointer, len) = match from {
                Some(from) => (AtomicPtr::new(*self.pointers[from].get_mut()), self.lens[from]),
                None => {
                    let (pointer, len) = disown(fresh.next().expect("one for each that comes"));
                    self.cbytes += u64::from(len);
                    (pointer, len)
                }
            };
            pointers.push(pointer);
            lens.push(len);
        }
        (self.pointers, self.lens, self.sizes) = (pointers, lens, sizes);
        if let Some((number, content)) = layer {
            let layer = &mut Arc::make_mut(&mut self.metalayers)[number];
            if let Some(start) = layer.content.get_mut(..content.len()) {
                start.copy_from_slice(content);
                self.tick += 1 + change.more_ticks;
            }
        }
        Ok(())
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
            spare::give_back(own(pointer, len));
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
