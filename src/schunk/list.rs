//! Chunks of a super-chunk that has no frame: one buffer each.
//!
//! How long a buffer is stands in the header of its chunk and nowhere else: a table of lengths would have to be moved
//! with every chunk that is inserted or deleted. So the size in the header of a chunk in the list is always that of its
//! memory, and clients, who see the chunks, do not write there.
//!
//! C callers may free a chunk and make the pointer to it null. Such a chunk is missing: it cannot be read, but
//! replaced, moved and deleted. It still counts in the sums, as it would if it were there.

use super::edit::{Rejected, Update, shrunk};
use super::meta::LayerChange;
#[cfg(feature = "capi")]
use super::pointers::Lookup;
use super::pointers::Pointers;
use crate::bytes::{get_i32, put_i32};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::offset;
use crate::format::metalayers::Metalayers;
use crate::frame::Regrid;
use crate::frame::sizes::{ChunkInfo, Sizes, whole_chunk};
use crate::io::memory::{MallocBuf, malloc_copy};
use crate::io::spare;
use crate::memory;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The chunks, and what a frame would keep besides them.
pub(crate) struct List {
    /// Where the chunks are. C callers see this array, so it holds plain pointers; the chunks are the list's own.
    pointers: Pointers,
    pub(super) sizes: Sizes,
    /// Sum of the chunk sizes in bytes.
    pub(super) cbytes: u64,
    pub(super) metalayers: Arc<Metalayers>,
    pub(super) vlmetalayers: Arc<Metalayers>,
    pub(super) tick: u64,
    /// The last change of a metalayer, and the tick before it.
    pub(super) last_change: Option<(u64, LayerChange)>,
    /// Whether the sizes in the headers of the chunks were seen to add up to that of the super-chunk. Changes keep it
    /// so: what they take from one sum, or add to it, they do to the other.
    add_up: bool,
}

impl List {
    pub(super) fn new() -> List {
        List {
            pointers: Pointers::default(),
            sizes: Sizes { chunksize: -1, nchunks: 0, nbytes: 0, vl_blocks: false },
            cbytes: 0,
            metalayers: Arc::default(),
            vlmetalayers: Arc::default(),
            tick: 0,
            last_change: None,
            add_up: false,
        }
    }

    #[inline]
    pub(super) fn chunk(&self, nchunk: usize) -> Result<&[u8]> {
        let none = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        let pointer = self.pointers.get(nchunk).ok_or(none)?.load(Ordering::Relaxed);
        require(!pointer.is_null(), "chunk is missing")?;
        // SAFETY: the list took the chunk over with this address and length, and it is freed only through `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts(pointer, len_of(pointer)) })
    }

    /// Whether a chunk is missing.
    pub(super) fn is_missing(&self, nchunk: usize) -> bool {
        self.pointers.get(nchunk).is_some_and(|pointer| pointer.load(Ordering::Relaxed).is_null())
    }

    /// Uncompressed size of a chunk in bytes, as [`Sizes::believed_nbytes`]; of one that is missing, as far as the
    /// sizes tell.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, `Failure` if the chunk is damaged.
    #[inline]
    pub(super) fn chunk_nbytes(&mut self, nchunk: usize) -> Result<u64> {
        if self.is_missing(nchunk) {
            return Ok(self.missing_nbytes(nchunk));
        }
        let info = ChunkInfo::read(self.chunk(nchunk)?);
        let info = info.map_err(|e| Error::new(ErrorKind::Failure, e.what()))?;
        let sizes = self.sizes;
        Ok(sizes.believed_nbytes(nchunk, info.nbytes, || self.sizes_add_up()))
    }

    #[cold]
    fn missing_nbytes(&mut self, nchunk: usize) -> u64 {
        // Nobody knows what its header said.
        self.add_up = false;
        self.sizes.chunk_nbytes(nchunk).unwrap_or(0)
    }

    /// Whether the sizes in the headers of the chunks add up to that of the super-chunk.
    #[cold]
    fn sizes_add_up(&mut self) -> bool {
        if !self.add_up {
            let nbytes = |nchunk| u64::try_from(ChunkInfo::read(self.chunk(nchunk).ok()?).ok()?.nbytes).ok();
            let sum = (0..self.sizes.nchunks).map(nbytes).try_fold(0u64, |sum, n| sum.checked_add(n?));
            self.add_up = sum == Some(self.sizes.nbytes);
        }
        self.add_up
    }

    /// The sizes after chunk `nchunk` was replaced by `chunk`.
    ///
    /// # Errors
    ///
    /// As [`chunk_nbytes`](Self::chunk_nbytes), `ChunkUpdate` if the chunk does not fit in.
    #[inline]
    pub(super) fn sizes_with_updated(&mut self, nchunk: usize, chunk: &ChunkInfo) -> Result<Sizes> {
        let nbytes = self.chunk_nbytes(nchunk)?;
        self.sizes.with_updated(nchunk, nbytes, chunk)
    }

    /// Makes room for `more` chunks, so that inserting them allocates no memory for the list itself.
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        self.pointers.reserve(more)
    }

    /// Inserts a copy of `chunk` before chunk `nchunk`; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`admit`](Self::admit), `MemoryAlloc` for the copy.
    pub(super) fn insert_copy(&mut self, nchunk: usize, chunk: &[u8], misfit: ErrorKind) -> Result<usize> {
        let (cbytes, sizes) = self.admit(nchunk, chunk, misfit)?;
        let copy = copy_of(&chunk[..cbytes])?;
        self.put(nchunk, copy, cbytes, sizes);
        Ok(sizes.nchunks)
    }

    /// As [`insert_copy`](Self::insert_copy), but the list takes over the memory of `chunk`, unless it fails.
    pub(super) fn insert_owned(
        &mut self,
        nchunk: usize,
        chunk: MallocBuf,
        misfit: ErrorKind,
    ) -> std::result::Result<usize, Rejected> {
        match self.admit(nchunk, &chunk, misfit) {
            Ok((cbytes, sizes)) => {
                self.put(nchunk, disown(shrunk(chunk, cbytes)), cbytes, sizes);
                Ok(sizes.nchunks)
            }
            Err(error) => Err(Rejected { error, chunk }),
        }
    }

    /// Makes room for `chunk` before chunk `nchunk`; returns its size in bytes and the sizes of the list with it.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, those of a damaged chunk, `misfit` if it does not go with the others,
    /// `MemoryAlloc`.
    #[inline]
    fn admit(&mut self, nchunk: usize, chunk: &[u8], misfit: ErrorKind) -> Result<(usize, Sizes)> {
        require(nchunk <= self.sizes.nchunks, "chunk number out of range")?;
        let (bytes, info) = whole_chunk(chunk)?;
        let sizes = self.sizes.with_inserted(nchunk, &info, misfit)?;
        self.reserve(1)?;
        Ok((bytes.len(), sizes))
    }

    fn put(&mut self, nchunk: usize, chunk: AtomicPtr<u8>, len: usize, sizes: Sizes) {
        self.cbytes += len as u64; // widening
        self.pointers.insert(nchunk, chunk);
        self.sizes = sizes;
    }

    pub(super) fn replace(&mut self, nchunk: usize, chunk: MallocBuf, sizes: Sizes) {
        let len = chunk.len();
        self.exchange(nchunk, disown(chunk), len, sizes);
    }

    /// Puts a copy of `chunk`, which has the length that its header says, in the place of another.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn replace_by_copy(&mut self, nchunk: usize, chunk: &[u8], sizes: Sizes) -> Result<()> {
        self.exchange(nchunk, copy_of(chunk)?, chunk.len(), sizes);
        Ok(())
    }

    fn exchange(&mut self, nchunk: usize, chunk: AtomicPtr<u8>, len: usize, sizes: Sizes) {
        self.cbytes += len as u64; // widening
        let old = std::mem::replace(&mut self.pointers[nchunk], chunk);
        self.free(old);
        self.sizes = sizes;
    }

    pub(super) fn remove(&mut self, nchunk: usize, sizes: Sizes) {
        let old = self.pointers.remove(nchunk);
        self.free(old);
        self.sizes = sizes;
        self.pointers.end();
    }

    /// Frees a chunk that has left the list, unless it is missing.
    fn free(&mut self, pointer: AtomicPtr<u8>) {
        let Some(chunk) = own(pointer) else { return };
        self.cbytes -= chunk.len() as u64; // widening
        spare::give_back(chunk);
    }

    /// Changes the bytes of a chunk, but not its uncompressed size. The chunk may grow to `room` bytes if
    /// [`make_room`](Self::make_room) was called; otherwise it keeps to its present length.
    pub(super) fn change(&mut self, nchunk: usize, room: usize, work: impl FnOnce(&mut MallocBuf)) {
        let pointer = self.pointers[nchunk].load(Ordering::Relaxed);
        let pointer = NonNull::new(pointer).expect("`prepare` read the chunk");
        // SAFETY: the list has it.
        let old_len = unsafe { len_of(pointer.as_ptr()) };
        // SAFETY: it comes from C's allocator, with this length or as much more as `make_room` made of it, and nobody
        // else uses it until it goes back to its place.
        let chunk = unsafe { MallocBuf::from_malloc_with_room(pointer, old_len, old_len.max(room)) };
        let mut lent = Lent { old_len, list: self, nchunk, chunk };
        work(&mut lent.chunk);
    }

    /// Makes room for `room` bytes where chunk `nchunk` is, for [`change`](Self::change).
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    fn make_room(&mut self, nchunk: usize, room: usize) -> Result<()> {
        let chunk = own(AtomicPtr::new(self.pointers[nchunk].load(Ordering::Relaxed)));
        let mut chunk = chunk.expect("`prepare` read the chunk");
        let made = chunk.reserve_exact(room);
        self.pointers[nchunk] = disown(chunk);
        made
    }

    /// Removes and adds chunks, replaces those with the new numbers in `updates`, and updates a metalayer; all of it or
    /// nothing.
    ///
    /// # Errors
    ///
    /// `NotFound` for the metalayer, `InvalidParam` for numbers out of range, those of damaged chunks, `ChunkUpdate`
    /// for chunks of another size, `Failure` if an old chunk cannot be read, `MemoryAlloc`.
    pub(super) fn regrid(&mut self, change: &Regrid<'_>, mut updates: Vec<(usize, Update)>) -> Result<()> {
        let moved = change.moves_chunks().then(|| self.moved(change)).transpose()?;
        let out_of_range = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        for (nchunk, update) in &mut updates {
            let before = match &moved {
                None => Some(*nchunk),
                Some(moved) => moved.before(*nchunk).ok_or(out_of_range)?,
            };
            self.prepare(before, change.chunk, update)?;
        }
        let layers = match change.layer {
            Some((name, content)) => self.updated_layers(name, content)?,
            None => None,
        };

        // From here on nothing can fail.
        if let Some(moved) = moved {
            self.move_chunks(change.removed, moved);
        }
        if let Some((number, layers)) = layers {
            self.metalayers = layers;
            self.note(LayerChange::Fixed(number));
            self.tick += change.more_ticks;
        }
        for (nchunk, update) in updates {
            match update {
                Update::Whole(chunk) => self.replace(nchunk, chunk, self.sizes),
                Update::Blocks(patch) => self.change(nchunk, patch.room(), |chunk| patch.apply(chunk)),
            }
        }
        Ok(())
    }

    /// What comes of the chunks by `change`, with memory for all of it.
    fn moved(&mut self, change: &Regrid<'_>) -> Result<Moved> {
        let mut sizes = self.sizes;
        for nchunk in change.removed.iter().cloned().flatten() {
            sizes = sizes.with_deleted(self.chunk_nbytes(nchunk)?);
        }
        let mut fresh = memory::with_capacity(change.count())?;
        for nchunk in change.added.iter().cloned().flatten() {
            let (bytes, info) = whole_chunk(change.chunk)?;
            // As in a frame: in whatever order they come, all chunks are of one size.
            sizes = sizes.with_inserted(nchunk.min(sizes.nchunks), &info, ErrorKind::ChunkInsert)?;
            fresh.push(spare::copy_of(bytes)?);
        }
        // As in the C library, the array of chunks stays when the last chunk goes, and has room for a null pointer.
        let places = if let Some(kept) = change.kept_in_place(self.sizes.nchunks) {
            self.pointers.reserve(fresh.len() + 1)?;
            Places::AtEnd { kept }
        } else {
            let order = change.order(self.sizes.nchunks, sizes.nchunks)?;
            let pointers = memory::with_capacity(order.len() + 1)?;
            Places::Anywhere { order, pointers }
        };
        Ok(Moved { sizes, fresh, places })
    }

    /// Makes an `update` of the chunk that has the number `before` now, or else is a copy of `added`, ready to be
    /// carried out.
    fn prepare(&mut self, before: Option<usize>, added: &[u8], update: &mut Update) -> Result<()> {
        let old = match before {
            Some(before) => self.chunk(before)?,
            None => added,
        };
        let old = ChunkInfo::read(old).map_err(|e| Error::new(ErrorKind::Failure, e.what()))?;
        match (&mut *update, before) {
            (Update::Whole(chunk), _) => {
                let (_, info) = whole_chunk(chunk)?;
                let same = info.nbytes == old.nbytes && info.vl_blocks == old.vl_blocks;
                ensure(same, ErrorKind::ChunkUpdate, "chunk of another size")?;
                *chunk = shrunk(std::mem::take(chunk), info.cbytes);
                Ok(())
            }
            (Update::Blocks(patch), Some(before)) => {
                if patch.prepare(self.chunk(before)?)? {
                    return self.make_room(before, patch.room());
                }
                *update = Update::Whole(patch.applied_to(self.chunk(before)?)?);
                Ok(())
            }
            (Update::Blocks(_), None) => {
                Err(Error::new(ErrorKind::InvalidParam, "no chunk with blocks to keep"))
            }
        }
    }

    /// Removes chunks, and brings the others and new ones to their places.
    fn move_chunks(&mut self, removed: &[Range<usize>], moved: Moved) {
        for nchunk in removed.iter().cloned().flatten().rev() {
            let gone = std::mem::take(&mut self.pointers[nchunk]);
            self.free(gone);
        }
        let Moved { sizes, fresh, places } = moved;
        self.cbytes += fresh.iter().map(|chunk| chunk.len() as u64).sum::<u64>(); // widening
        let mut fresh = fresh.into_iter().map(disown);
        match places {
            Places::AtEnd { kept } => {
                while self.pointers.len() > kept {
                    self.pointers.remove(self.pointers.len() - 1);
                }
                fresh.for_each(|chunk| self.pointers.insert(self.pointers.len(), chunk));
            }
            Places::Anywhere { order, mut pointers } => {
                for from in order {
                    pointers.push(match from {
                        Some(from) => std::mem::take(&mut self.pointers[from]),
                        None => fresh.next().expect("one for each that comes"),
                    });
                }
                self.pointers.replace(pointers);
            }
        }
        self.pointers.end();
        self.sizes = sizes;
    }

    /// The number of layer `name`, and the metalayers with `content` at the start of that one; `None` if it is shorter.
    fn updated_layers(&self, name: &[u8], content: &[u8]) -> Result<Option<(usize, Arc<Metalayers>)>> {
        let number = self.metalayers.find(name)?;
        let mut layers = self.metalayers.copy()?;
        let fits = layers.overwrite(number, content)?;
        Ok(fits.then(|| (number, Arc::new(layers))))
    }

    /// Chunk `i` becomes what chunk `order[i]` was; `order` is a permutation.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; the order is as before.
    pub(super) fn reorder(&mut self, order: &[usize]) -> Result<()> {
        let address = |from: &usize| AtomicPtr::new(self.pointers[*from].load(Ordering::Relaxed));
        self.pointers.replace(memory::collect(order.iter().map(address))?);
        self.sizes = self.sizes.with_reordered(order);
        Ok(())
    }

    /// What can be known of the chunks without the lock of the super-chunk.
    #[cfg(feature = "capi")]
    pub(super) fn lookup(&self) -> &Arc<Lookup> {
        self.pointers.lookup()
    }

    /// The addresses of the chunks, and for how many there is room.
    #[cfg(feature = "capi")]
    pub(super) fn pointers(&self) -> (&[AtomicPtr<u8>], usize) {
        (&self.pointers, self.pointers.capacity())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        self.pointers.take().into_iter().filter_map(own).for_each(spare::give_back);
    }
}

/// The chunks after some were removed and added.
struct Moved {
    sizes: Sizes,
    /// The new ones.
    fresh: Vec<MallocBuf>,
    places: Places,
}

/// Where the chunks are after some were removed and added.
enum Places {
    /// The first `kept` ones stay where they are, and new ones follow; the table has room for them.
    AtEnd { kept: usize },
    Anywhere {
        /// What number each chunk has now; `None` for new ones.
        order: Vec<Option<usize>>,
        /// Room for all.
        pointers: Vec<AtomicPtr<u8>>,
    },
}

impl Moved {
    /// What number the chunk has now that gets the number `nchunk`: none if it is new; `None` if there is no such chunk.
    #[allow(clippy::option_option)] // two questions
    fn before(&self, nchunk: usize) -> Option<Option<usize>> {
        match &self.places {
            Places::AtEnd { kept } => {
                (nchunk < kept + self.fresh.len()).then_some((nchunk < *kept).then_some(nchunk))
            }
            Places::Anywhere { order, .. } => order.get(nchunk).copied(),
        }
    }
}

/// A chunk that is being changed; it goes back to its place however that ends.
struct Lent<'a> {
    list: &'a mut List,
    nchunk: usize,
    old_len: usize,
    chunk: MallocBuf,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.shrink();
        let len = chunk.len();
        if !is_one_chunk(&chunk) {
            // The change was not finished. The chunk is lost, but not the memory behind it.
            put_i32(chunk.as_mut_slice(), offset::CBYTES, i32::try_from(len).unwrap_or(i32::MAX));
        }
        let Lent { list, nchunk, old_len, .. } = self;
        list.cbytes = list.cbytes - *old_len as u64 + len as u64; // widening
        list.pointers[*nchunk] = disown(chunk);
    }
}

/// The length of the chunk at `pointer`.
///
/// # Safety
///
/// `disown` or `copy_of` gave it, and the chunk was not freed.
pub(super) unsafe fn len_of(pointer: *const u8) -> usize {
    // SAFETY: both checked that the chunk has a header, and that this field is its length.
    let cbytes = unsafe { pointer.add(offset::CBYTES).cast::<[u8; 4]>().read() };
    u32::from_le_bytes(cbytes) as usize // widening
}

/// A copy of the chunk `bytes`, as [`disown`] would give it.
///
/// A small one is not put in a buffer first: its address would be read back from memory, after all that copying wrote.
///
/// # Panics
///
/// If the chunk has another length than its header says.
#[inline]
fn copy_of(bytes: &[u8]) -> Result<AtomicPtr<u8>> {
    if bytes.len() >= spare::LEAST {
        return spare::copy_of(bytes).map(disown);
    }
    assert!(is_one_chunk(bytes), "a buffer holds one chunk");
    malloc_copy(bytes).map(|copy| AtomicPtr::new(copy.as_ptr()))
}

/// Whether `bytes` are as long as the header of the chunk in them says.
fn is_one_chunk(bytes: &[u8]) -> bool {
    get_i32(bytes, offset::CBYTES).and_then(|cbytes| usize::try_from(cbytes).ok()) == Some(bytes.len())
}

/// Takes the memory out of a buffer.
///
/// # Panics
///
/// If the buffer is not just as long as the chunk in it.
fn disown(chunk: MallocBuf) -> AtomicPtr<u8> {
    assert!(!chunk.is_borrowed() && is_one_chunk(&chunk), "a buffer holds one chunk");
    AtomicPtr::new(chunk.into_raw().0)
}

/// Puts the memory back in a buffer, which frees it; `None` if the chunk is missing.
fn own(pointer: AtomicPtr<u8>) -> Option<MallocBuf> {
    let pointer = NonNull::new(pointer.into_inner())?;
    // SAFETY: it comes from C's allocator, with this length, and has left the list, so nobody else uses it.
    Some(unsafe { MallocBuf::from_malloc(pointer, len_of(pointer.as_ptr())) })
}
