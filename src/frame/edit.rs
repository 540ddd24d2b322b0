//! Changes of the chunks of a frame.
//!
//! A new chunk goes behind the last one, or where an earlier change has left room. What it replaces becomes a hole, which is
//! used again (see [`holes`](super::holes)), and which [`compact`](super::compact) closes when holes take too much room;
//! the C library moves everything behind a replaced chunk instead.

use super::holes::Extent;
use super::index_codec::IndexOf;
use super::offsets::Index;
use super::read::Chunks;
use super::sizes::{ChunkInfo, Sizes};
use super::state::State;
use super::store::{Disk, Store, Write};
use super::{Frame, View, chunk_files, special};
use crate::chunk::source::BlockSource;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::BasicHeader;
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::frame_header::{FIXED_LEN, Layout};
use crate::format::offsets::{Entry, MAX_CHUNKS};
use crate::io::IoFile;
use crate::io::lock::Held;
use crate::memory;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Entry of a chunk whose place is not known yet: not a place, so nothing takes it for one.
const PLACEHOLDER: i64 = i64::MIN;

/// A chunk that a change adds: which entry of the index it is for, and its bytes.
pub(super) struct NewChunk<'a> {
    pub(super) nchunk: usize,
    pub(super) bytes: Cow<'a, [u8]>,
}

/// Makes a new version of a chunk out of the old one.
pub(crate) trait Derive {
    /// Puts the new version in `new`, whose content is arbitrary before. `old` is the chunk, or its lazy form, and then its
    /// other bytes come from `source`.
    ///
    /// # Errors
    ///
    /// Those of reading, or what is wrong with the old version.
    fn derive(&self, old: &[u8], source: Option<&dyn BlockSource>, new: &mut Vec<u8>) -> Result<()>;
}

/// What takes the place of a chunk.
pub(crate) enum New<'a> {
    /// A chunk.
    Bytes(&'a [u8]),
    /// What is made of the old chunk, and memory for it.
    Derived(&'a dyn Derive, &'a mut Vec<u8>),
}

/// A change of which chunks there are, and of the metalayer that says so.
pub(crate) struct Regrid<'a> {
    /// Old numbers of the chunks that are removed, ascending.
    pub(crate) removed: &'a [Range<usize>],
    /// New numbers of the chunks that are added, ascending.
    pub(crate) added: &'a [Range<usize>],
    /// Each added chunk: it holds one special value.
    pub(crate) chunk: &'a [u8],
    /// A metalayer, and what replaces the start of its content.
    pub(crate) layer: Option<(&'a [u8], &'a [u8])>,
    /// How many changes of the metalayer this stands for, besides one.
    pub(crate) more_ticks: u64,
}

impl Regrid<'_> {
    /// Whether the chunk with this old number is removed.
    fn removes(&self, nchunk: usize) -> bool {
        let behind = self.removed.partition_point(|range| range.end <= nchunk);
        self.removed.get(behind).is_some_and(|range| range.contains(&nchunk))
    }

    /// The entry of the index for the added chunks; `sizes` become those with these chunks.
    fn fill(&self, sizes: &mut Sizes) -> Result<i64> {
        let count = self.count();
        if count == 0 {
            return Ok(PLACEHOLDER);
        }
        let (_, info) = whole_chunk(self.chunk)?;
        let fits = info.is_index_only() && info.nbytes == sizes.chunksize && info.nbytes > 0;
        ensure(fits, ErrorKind::ChunkUpdate, "chunks of another kind or size")?;
        let nchunks = sizes.nchunks.checked_add(count).filter(|&n| n <= MAX_CHUNKS);
        sizes.nchunks = nchunks.ok_or(Error::new(ErrorKind::ChunkUpdate, "too many chunks"))?;
        sizes.nbytes += count as u64 * u64::try_from(info.nbytes).unwrap_or(0); // widening
        Ok(Entry::Special(info.special).encode())
    }

    /// Number of added chunks.
    pub(crate) fn count(&self) -> usize {
        self.added.iter().map(ExactSizeIterator::len).sum()
    }

    /// Appends the old number of each chunk of the new grid to `order`, `None` for added ones. The answer is `None` if the
    /// numbers do not fit together.
    pub(crate) fn order(
        &self,
        old: usize,
        new: usize,
        mut order: Vec<Option<usize>>,
    ) -> Option<Vec<Option<usize>>> {
        let mut kept = (0..old).filter(|nchunk| !self.removes(*nchunk)).map(Some);
        for range in self.added {
            order.extend(kept.by_ref().take(range.start.checked_sub(order.len())?));
            if order.len() != range.start || range.end > new {
                return None;
            }
            order.resize(range.end, None);
        }
        order.extend(kept);
        (order.len() == new).then_some(order)
    }
}

/// A frame during a change: locked, up to date, repaired if a change had been broken off.
pub(super) struct Session {
    /// The file of the frame; `None` in memory.
    pub(super) file: Option<Arc<dyn IoFile>>,
    /// The length of the file, if other data follow the frame in it.
    pub(super) followed: Option<u64>,
    /// The length of the frame before the first change of the session.
    pub(super) frame_len: u64,
    /// The header as it is stored before the first change of the session, if it was read.
    pub(super) head: RefCell<Vec<u8>>,
    held: Held,
}

impl Frame {
    /// Appends `chunk`, the bytes of one compressed chunk; returns the number of chunks.
    ///
    /// Chunks of zeros, NaNs or uninitialised bytes become an entry of the index, if the chunk size is fixed.
    ///
    /// # Errors
    ///
    /// Those of a damaged chunk; `ChunkAppend` if it does not fit in or cannot be written, `Lock`.
    pub fn append(&mut self, chunk: &[u8]) -> Result<usize> {
        let session = self.begin().map_err(|e| surface(e, ErrorKind::ChunkAppend))?;
        self.insert_in(&session, None, &[chunk], ErrorKind::ChunkAppend)
    }

    /// Appends `chunks` as one change; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append); none of the chunks is appended then.
    pub fn append_all(&mut self, chunks: &[&[u8]]) -> Result<usize> {
        let session = self.begin().map_err(|e| surface(e, ErrorKind::ChunkAppend))?;
        self.insert_in(&session, None, chunks, ErrorKind::ChunkAppend)
    }

    /// Inserts `chunk` before chunk `nchunk`, which may be the number of chunks; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, those of a damaged chunk, `ChunkInsert` if it does not fit in or cannot
    /// be written, `Lock`.
    pub fn insert(&mut self, nchunk: usize, chunk: &[u8]) -> Result<usize> {
        let session = self.begin().map_err(|e| surface(e, ErrorKind::ChunkInsert))?;
        ensure(nchunk <= self.nchunks(), ErrorKind::InvalidParam, "chunk number out of range")?;
        self.insert_in(&session, Some(nchunk), &[chunk], ErrorKind::ChunkInsert)
    }

    /// Inserts `chunks` before chunk `nchunk` as one change; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert); none of the chunks is inserted then.
    pub fn insert_all(&mut self, nchunk: usize, chunks: &[&[u8]]) -> Result<usize> {
        let session = self.begin().map_err(|e| surface(e, ErrorKind::ChunkInsert))?;
        ensure(nchunk <= self.nchunks(), ErrorKind::InvalidParam, "chunk number out of range")?;
        self.insert_in(&session, Some(nchunk), chunks, ErrorKind::ChunkInsert)
    }

    /// Inserts `chunks` before chunk `nchunk`, or at the end.
    fn insert_in(
        &mut self,
        session: &Session,
        nchunk: Option<usize>,
        chunks: &[&[u8]],
        kind: ErrorKind,
    ) -> Result<usize> {
        let old = self.snapshot();
        let nchunk = nchunk.unwrap_or(old.index.len());
        let mut sizes = old.sizes();
        let mut infos = memory::with_capacity(chunks.len())?;
        for (i, chunk) in chunks.iter().enumerate() {
            let (chunk, info) = whole_chunk(chunk)?;
            sizes = sizes.with_inserted(nchunk + i, &info, kind)?.recordable_with(&info);
            infos.push((chunk, info));
        }
        ensure(sizes.nchunks <= MAX_CHUNKS, kind, "too many chunks")?;
        let mut next = State::clone(&old);
        let placeholders = std::iter::repeat_n(PLACEHOLDER, chunks.len());
        let table = next.index.table_mut().map_err(|e| surface(e, kind))?;
        memory::reserve(table, chunks.len())?;
        table.splice(nchunk..nchunk, placeholders);
        let mut added = memory::with_capacity(chunks.len())?;
        for (i, (chunk, info)) in infos.iter().enumerate() {
            let new = place_chunk(&mut next, sizes, nchunk + i, chunk, info);
            added.extend(new.map_err(|e| surface(e, kind))?);
        }
        let moved = |i| if i < nchunk { i } else { i + chunks.len() };
        convert_specials(&old, &mut next, sizes, &mut added, moved).map_err(|e| surface(e, kind))?;
        drop(old);
        let written = self.write_chunks(session, next, sizes, &added, IndexOf::Other);
        written.map_err(|e| surface(e, kind))?;
        Ok(self.nchunks())
    }

    /// Replaces chunk `nchunk` by `chunk`; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, those of a damaged chunk, `Failure` if the old chunk cannot be read,
    /// `ChunkUpdate` if the new one does not fit in or cannot be written, `Lock`.
    pub fn update(&mut self, nchunk: usize, chunk: &[u8]) -> Result<usize> {
        self.update_each([(nchunk, New::Bytes(chunk))])
    }

    /// Replaces the chunks with these numbers, each of which occurs once, as one change; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update); none of the chunks is replaced then.
    pub fn update_all(&mut self, chunks: &[(usize, &[u8])]) -> Result<usize> {
        self.update_each(chunks.iter().map(|&(nchunk, chunk)| (nchunk, New::Bytes(chunk))))
    }

    /// As [`update_all`](Self::update_all), with chunks that may be made out of the old ones.
    ///
    /// # Errors
    ///
    /// As [`update_all`](Self::update_all), and those of making them.
    pub(crate) fn update_each<'a>(
        &mut self,
        chunks: impl IntoIterator<Item = (usize, New<'a>)>,
    ) -> Result<usize> {
        let session = self.begin().map_err(|e| surface(e, ErrorKind::ChunkUpdate))?;
        self.count_holes(&session);
        let failed = |e| surface(e, ErrorKind::ChunkUpdate);
        let old = self.snapshot();
        let mut sizes = old.sizes();
        let mut next = State::clone(&old);
        let mut changes = Vec::new();
        let mut places = Places::default();
        for (nchunk, chunk) in chunks {
            ensure(nchunk < old.index.len(), ErrorKind::InvalidParam, "chunk number out of range")?;
            let chunk = match chunk {
                New::Bytes(bytes) => bytes,
                New::Derived(make, new) => {
                    let (chunks, mut front) = (self.chunks_in(&session, &old), Vec::new());
                    let (bytes, source) = chunks.get_lazy(nchunk, &mut front)?;
                    make.derive(bytes, source.as_ref().map(|source| source as &dyn BlockSource), new)?;
                    new
                }
            };
            let (chunk, info) = whole_chunk(chunk)?;
            let (replaced, gone) = self.old_chunk(&session, &old, &mut places, nchunk)?;
            sizes = sizes.with_updated(nchunk, replaced, &info)?.recordable_with(&info);
            self.forget(&mut next, nchunk, &gone)?;
            changes.push((nchunk, chunk, info, gone));
        }
        let mut added = memory::with_capacity(changes.len())?;
        for (nchunk, chunk, info, _) in &changes {
            added.extend(place_chunk(&mut next, sizes, *nchunk, chunk, info).map_err(failed)?);
        }
        convert_specials(&old, &mut next, sizes, &mut added, |i| i).map_err(failed)?;
        drop(old);
        self.write_chunks(&session, next, sizes, &added, IndexOf::Other).map_err(failed)?;
        self.clean_up(&session, changes.iter().map(|(.., gone)| gone));
        Ok(self.nchunks())
    }

    /// Deletes chunk `nchunk`; returns the number of chunks left.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, `Failure` if the chunk cannot be read, `ChunkUpdate` if the frame cannot
    /// be written, `Lock`.
    pub fn delete(&mut self, nchunk: usize) -> Result<usize> {
        self.delete_all(std::slice::from_ref(&(nchunk..nchunk.saturating_add(1))))
    }

    /// Deletes the chunks with the numbers in `ranges`, which ascend and do not overlap, as one change; returns the number
    /// of chunks left.
    ///
    /// # Errors
    ///
    /// As [`delete`](Self::delete); none of the chunks is deleted then.
    pub fn delete_all(&mut self, ranges: &[Range<usize>]) -> Result<usize> {
        self.regrid(&Regrid { removed: ranges, added: &[], chunk: &[], layer: None, more_ticks: 0 })
    }

    /// Removes and adds chunks and updates a metalayer, as one change; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for numbers out of range, `NotFound` for the metalayer, `Failure` if a chunk cannot be read, those of
    /// a damaged chunk, `ChunkUpdate` if new chunks are not all of the size of the others and of special values, or if the
    /// frame cannot be written. Nothing is changed then.
    pub(crate) fn regrid(&mut self, change: &Regrid<'_>) -> Result<usize> {
        let failed = |e| surface(e, ErrorKind::ChunkUpdate);
        let session = self.begin().map_err(failed)?;
        if !change.removed.is_empty() {
            self.count_holes(&session);
        }
        let old = self.snapshot();
        let mut sizes = old.sizes();
        let mut next = State::clone(&old);
        let mut all_gone = Vec::new();
        let mut places = Places::default();
        let out_of_range = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        for range in change.removed {
            ensure(range.end <= old.index.len(), out_of_range.kind(), out_of_range.what())?;
            for nchunk in range.clone() {
                let (replaced, gone) = self.old_chunk(&session, &old, &mut places, nchunk)?;
                sizes = sizes.with_deleted(replaced);
                self.forget(&mut next, nchunk, &gone)?;
                all_gone.push(gone);
            }
        }
        if !change.removed.is_empty() || !change.added.is_empty() {
            let fill = change.fill(&mut sizes)?;
            let order = memory::with_capacity(sizes.nchunks)?;
            let order = change.order(old.index.len(), sizes.nchunks, order).ok_or(out_of_range)?;
            let entry = |from: Option<usize>| from.and_then(|from| next.index.raw(from)).unwrap_or(fill);
            let table = memory::collect(order.into_iter().map(entry))?;
            next.index = Index::Table(Arc::new(table));
        }
        if let Some((name, content)) = change.layer {
            next.update_layer(name, content)?;
            next.tick += change.more_ticks;
        }
        drop(old);
        let only_removed = change.added.is_empty() && !change.removed.is_empty();
        let of = if only_removed { IndexOf::Delete } else { IndexOf::Other };
        self.write_chunks(&session, next, sizes, &[], of).map_err(failed)?;
        self.clean_up(&session, &all_gone);
        Ok(self.nchunks())
    }

    /// Reorders the chunks: chunk `i` becomes what chunk `order[i]` was.
    ///
    /// # Errors
    ///
    /// `Data` unless `order` is a permutation of all chunk numbers of a frame that has chunks, else those of writing.
    pub fn reorder(&mut self, order: &[usize]) -> Result<()> {
        let wrong = "not a permutation of the chunks";
        let mut seen = memory::filled(false, order.len())?;
        for &from in order {
            let fresh = seen.get_mut(from).is_some_and(|seen| !std::mem::replace(seen, true));
            ensure(fresh, ErrorKind::Data, wrong)?;
        }
        ensure(order.len() == self.nchunks() && !order.is_empty(), ErrorKind::Data, wrong)?;
        let session = self.begin()?;
        let old = self.snapshot();
        ensure(order.len() == old.index.len(), ErrorKind::Data, wrong)?;
        let sizes = old.sizes().with_reordered(order);
        let mut next = State::clone(&old);
        let table = order.iter().map(|&from| old.index.raw(from).expect("checked to be a permutation"));
        next.index = Index::Table(Arc::new(memory::collect(table)?));
        let mut now_at = memory::filled(0, order.len())?;
        for (to, &from) in order.iter().enumerate() {
            now_at[from] = to;
        }
        let mut added = Vec::new();
        convert_specials(&old, &mut next, sizes, &mut added, |i| now_at[i])?;
        drop(old);
        self.write_chunks(&session, next, sizes, &added, IndexOf::Other)
    }

    /// Fills an empty frame with `nchunks` chunks of the special value `kind` and `nbytes` bytes in all, `chunksize`
    /// bytes each but the last; returns the number of chunks. `blocksize` is recorded as the block size.
    ///
    /// # Errors
    ///
    /// `FrameSpecial` if the frame has chunks, the value is not one that the index can hold, or there are too many
    /// chunks; `InvalidParam` for a chunk size of 0 or less; those of writing.
    pub fn fill_special(&mut self, kind: u8, nbytes: u64, chunksize: i32, blocksize: i32) -> Result<usize> {
        let special = ErrorKind::FrameSpecial;
        ensure(Entry::is_index_only(kind), special, "no special value of the index")?;
        let size = u64::try_from(chunksize).ok().filter(|&size| size > 0);
        let size = size.ok_or(Error::new(ErrorKind::InvalidParam, "chunk size out of range"))?;
        let nchunks = usize::try_from(nbytes.div_ceil(size)).unwrap_or(usize::MAX);
        ensure((1..=MAX_CHUNKS).contains(&nchunks), special, "too many chunks")?;
        let session = self.begin()?;
        let old = self.snapshot();
        ensure(old.index.len() == 0 && old.header.nbytes == 0, special, "frame is not empty")?;
        let mut next = State::clone(&old);
        drop(old);
        next.index = Index::Run { entry: Entry::Special(kind).encode(), nchunks };
        let params = self.params;
        self.params.blocksize = blocksize;
        let sizes = Sizes { chunksize, nchunks, nbytes, vl_blocks: false };
        let written = self.write_chunks(&session, next, sizes, &[], IndexOf::Other);
        if written.is_err() {
            self.params = params;
        }
        written.map(|()| nchunks)
    }

    /// Locks, takes over what others changed, and undoes what was broken off.
    pub(super) fn begin(&mut self) -> Result<Session> {
        let held = self.hold(true)?;
        let mut session =
            Session { file: None, followed: None, frame_len: 0, head: RefCell::default(), held };
        if let Store::Disk(disk) = &self.store {
            if disk.keeps_handles() {
                self.begin_with_one_handle(disk, &mut session)?;
            } else {
                let (state, _) = self.poll(disk, session.held.changed)?;
                self.begin_with(disk, &mut session, state)?;
            }
        }
        let header = self.header();
        session.frame_len = header.frame_len;
        let writable = header.layout == Layout::Stable;
        ensure(writable, ErrorKind::VersionSupport, "frames of beta releases cannot be changed")?;
        Ok(session)
    }

    /// As [`begin`](Self::begin), after `state` was compared with the file.
    fn begin_with(&self, disk: &Disk, session: &mut Session, mut state: Arc<State>) -> Result<()> {
        let file = disk.writer()?;
        if disk.repair(&*file)? {
            state = self.adopt(disk.load(&*file)?);
        }
        session.followed = disk.followed(&*file, state.header.frame_len)?;
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
        let too_short = Error::new(ErrorKind::FileRead, "file ends too early");
        let fixed: &[u8; FIXED_LEN] = head.first_chunk().ok_or(too_short)?;
        let state = self.compare(disk, fixed, session.held.changed)?;
        let end = disk.base + state.header.frame_len;
        if Arc::ptr_eq(&state, &known) && *fixed == state.seen && file.size()? == end {
            // Nothing was broken off, nothing follows.
            session.file = Some(file);
            return Ok(());
        }
        // Another file may have taken the path, or this one needs a repair.
        head.clear();
        self.begin_with(disk, session, state)
    }

    /// The chunks of `state` during a change.
    pub(super) fn chunks_in(&self, session: &Session, state: &Arc<State>) -> Chunks<'_> {
        let view = View { state: Arc::clone(state), file: session.file.clone(), held: Held::nothing() };
        Chunks { frame: self, view }
    }

    /// Uncompressed size of chunk `nchunk`, and what of it is stored.
    fn old_chunk(
        &self,
        session: &Session,
        old: &Arc<State>,
        places: &mut Places,
        nchunk: usize,
    ) -> Result<(u64, Gone)> {
        let unreadable = |e: Error| Error::new(ErrorKind::Failure, e.what());
        match old.index.entry(nchunk).map_err(unreadable)? {
            Entry::Special(_) => {
                let nbytes = old.sizes().chunk_nbytes(nchunk);
                let unknown = Error::new(ErrorKind::Failure, "special chunk of unknown size");
                Ok((nbytes.ok_or(unknown)?, Gone { position: None, cbytes: 0 }))
            }
            Entry::Stored(position) => {
                let info = self.chunks_in(session, old).info_at(position).map_err(unreadable)?;
                let nbytes = u64::try_from(info.nbytes).unwrap_or(0);
                let shared = places.are_shared(&old.index, position);
                let cbytes = info.cbytes as u64; // widening
                Ok((nbytes, Gone { position: (!shared).then_some(position), cbytes }))
            }
        }
    }

    /// Notes in `next`, where entry `nchunk` still refers to it, that the place of a chunk is free.
    fn forget(&self, next: &mut State, nchunk: usize, gone: &Gone) -> Result<()> {
        let Some(position) = gone.position else { return Ok(()) };
        if next.header.sparse {
            next.header.cbytes = next.header.cbytes.saturating_sub(gone.cbytes);
            return Ok(());
        }
        next.index.table_mut()?[nchunk] = PLACEHOLDER;
        let room = gone.cbytes.max(EXTENDED_HEADER_LENGTH as u64); // widening
        next.dead = (next.dead + room).min(next.live_end);
        let room = room.min(next.live_end.saturating_sub(position));
        next.holes.give_up(Extent { position, len: room });
        Ok(())
    }

    /// Writes the chunks `added`, and the index of `next` with their positions, as one change.
    fn write_chunks(
        &mut self,
        session: &Session,
        mut next: State,
        sizes: Sizes,
        added: &[NewChunk<'_>],
        of: IndexOf,
    ) -> Result<()> {
        next.set_sizes(sizes);
        if let Store::Disk(disk @ Disk { dir: Some(_), .. }) = &self.store {
            let old = &self.state.get_mut().index;
            let made = chunk_files::write(disk, old, &mut next, added)?;
            next.replaces = !added.is_empty() && next.index.len() == old.len();
            let written = self.write_tail(session, next, &[], of, None);
            if let (Err(_), Store::Disk(disk)) = (&written, &self.store) {
                // Without a journal the index may refer to them by now.
                if disk.io.features().journal {
                    chunk_files::remove(disk, made);
                }
            }
            return written;
        }
        let header_len = next.header.header_len as u64; // widening
        let mut writes = memory::with_capacity(added.len())?;
        for new in added {
            // Readers of the C library want 32 bytes wherever a chunk is.
            let room = new.bytes.len().max(EXTENDED_HEADER_LENGTH) as u64; // widening
            let at = if let Some(at) = next.holes.take(room) {
                next.dead = next.dead.saturating_sub(room);
                next.replaces = true;
                at
            } else {
                next.live_end += room;
                next.live_end - room
            };
            next.index.table_mut()?[new.nchunk] = Entry::Stored(at).encode();
            writes.push(Write::Bytes(header_len + at, &new.bytes));
        }
        // Where places are used again the frame only grows, until holes are closed; see `write_tail`.
        let least = if next.replaces { next.header.cbytes } else { 0 };
        next.header.cbytes = next.live_end.max(least);
        self.write_tail(session, next, &writes, of, None)
    }

    /// After a change: removes chunk files that nothing refers to, or closes holes. What fails here can wait.
    fn clean_up<'g>(&mut self, session: &Session, gone: impl IntoIterator<Item = &'g Gone>) {
        if let Store::Disk(disk @ Disk { dir: Some(_), .. }) = &self.store {
            return chunk_files::remove(disk, gone.into_iter().filter_map(|gone| gone.position));
        }
        let _ = self.reclaim(session);
    }
}

/// Puts `chunk` at entry `nchunk` of the index of `next`: as a special value, or as a payload to write.
fn place_chunk<'a>(
    next: &mut State,
    sizes: Sizes,
    nchunk: usize,
    chunk: &'a [u8],
    info: &ChunkInfo,
) -> Result<Option<NewChunk<'a>>> {
    if !info.is_index_only() {
        return Ok(Some(NewChunk { nchunk, bytes: chunk.into() }));
    }
    let typesize = next.header.params.typesize.max(1);
    if sizes.chunksize > 0 && info.nbytes % typesize == 0 && info.nbytes > 0 {
        next.index.table_mut()?[nchunk] = Entry::Special(info.special).encode();
        return Ok(None);
    }
    let nbytes = usize::try_from(info.nbytes).unwrap_or(0);
    let bytes = special::with_payload(info.special, nbytes, usize::try_from(typesize).unwrap_or(1))?;
    Ok(Some(NewChunk { nchunk, bytes: bytes.into() }))
}

/// Most special chunks that get a payload: a frame of a few bytes may have hundreds of millions.
const MAX_CONVERTED: usize = 1 << 20;

/// When the chunk size becomes variable, special chunks need a payload, which tells their size: the index does not.
///
/// `moved` gives the new number of a chunk of `old`.
fn convert_specials(
    old: &State,
    next: &mut State,
    sizes: Sizes,
    added: &mut Vec<NewChunk<'_>>,
    moved: impl Fn(usize) -> usize,
) -> Result<()> {
    if sizes.chunksize != 0 || old.header.chunksize <= 0 {
        return Ok(());
    }
    let typesize = usize::try_from(old.header.params.typesize).unwrap_or(1);
    let specials = old.index.iter().filter(|&raw| raw < 0).take(MAX_CONVERTED + 1).count();
    let too_many = "too many special chunks to store each with its size";
    ensure(specials <= MAX_CONVERTED, ErrorKind::InvalidParam, too_many)?;
    let replaced: HashSet<usize> = added.iter().map(|new| new.nchunk).collect();
    for (nchunk, raw) in old.index.iter().enumerate() {
        let now = moved(nchunk);
        if raw >= 0 || replaced.contains(&now) {
            continue;
        }
        let Entry::Special(kind) = Entry::decode(raw)? else { continue };
        let nbytes = old.sizes().chunk_nbytes(nchunk).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let bytes = special::with_payload(kind, nbytes, typesize)?;
        next.index.table_mut()?[now] = PLACEHOLDER;
        added.push(NewChunk { nchunk: now, bytes: bytes.into() });
    }
    Ok(())
}

/// What a deleted or replaced chunk leaves behind.
struct Gone {
    /// Its position or file number, unless it is special or still used.
    position: Option<u64>,
    cbytes: u64,
}

/// The places of chunks that are removed or replaced. A damaged frame may use one of them twice: it is not free before the last use is gone.
#[derive(Default)]
struct Places {
    asked: usize,
    /// The places that are used more than once; `None` until many were asked for.
    shared: Option<HashSet<u64>>,
}

impl Places {
    /// For so many places the index is searched; for more it is sorted.
    const FEW: usize = 8;

    /// Whether more than one chunk is at `position`. `index` is the same each time.
    fn are_shared(&mut self, index: &Index, position: u64) -> bool {
        self.asked += 1;
        if self.asked <= Places::FEW {
            return index.stored().filter(|&other| other == position).count() > 1;
        }
        let shared = self.shared.get_or_insert_with(|| {
            let mut stored: Vec<u64> = index.stored().collect();
            stored.sort_unstable();
            stored.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
        });
        shared.contains(&position)
    }
}

/// The bytes of exactly one chunk, and what its header says.
fn whole_chunk(chunk: &[u8]) -> Result<(&[u8], ChunkInfo)> {
    BasicHeader::read(chunk)?;
    let info = ChunkInfo::read(chunk)?;
    let bytes = chunk.get(..info.cbytes);
    ensure(bytes.is_some(), ErrorKind::ReadBuffer, "chunk cut off")?;
    Ok((bytes.unwrap_or_default(), info))
}

/// The code under which the failure of a change is reported: that of the operation, except for what the caller did.
fn surface(e: Error, kind: ErrorKind) -> Error {
    match e.kind() {
        ErrorKind::Lock | ErrorKind::InvalidParam => e,
        _ => Error::new(kind, e.what()),
    }
}
