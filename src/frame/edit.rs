//! Changes of the chunks of a frame. Deleting and replacing are cases of [`Frame::regrid`], in a module of its own.
//!
//! A new chunk goes after the last one, or where an earlier change has left room. What it replaces becomes a hole,
//! which is used again (see [`holes`](super::holes)), and which [`compact`](super::compact) closes when holes take too
//! much room; the C library moves everything after a replaced chunk instead.

#![forbid(unsafe_code)]

use super::admit::admit;
use super::ahead::Ahead;
use super::holes::Extent;
use super::index_codec::IndexOf;
use super::offsets::Index;
use super::regrid::Regrid;
use super::session::Session;
use super::sizes::{ChunkInfo, Sizes};
use super::state::State;
use super::store::{Disk, Store, Write};
use super::{Frame, chunk_files, special};
use crate::chunk::source::BlockSource;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::offsets::{Entry, MAX_CHUNKS};
use crate::memory;
use std::borrow::Cow;
use std::sync::Arc;

/// Entry of a chunk whose place is not known yet: not a place, so nothing takes it for one.
pub(super) const PLACEHOLDER: i64 = i64::MIN;

/// A chunk that a change adds: which entry of the index it is for, and its bytes.
pub(super) struct NewChunk<'a> {
    pub(super) nchunk: usize,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl NewChunk<'_> {
    /// Bytes that it takes in a contiguous frame: readers of the C library want 32 wherever a chunk is.
    pub(super) fn room(&self) -> u64 {
        self.bytes.len().max(EXTENDED_HEADER_LENGTH) as u64 // widening
    }
}

/// Makes a new version of a chunk out of the old one.
pub(crate) trait Derive {
    /// Puts the new version in `new`, whose content is arbitrary before. `old` is the chunk, or its lazy form, and then
    /// its other bytes come from `source`.
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

impl Frame {
    /// Appends `chunk`, the bytes of one compressed chunk; returns the number of chunks.
    ///
    /// Chunks of zeros, NaNs or uninitialised bytes become an entry of the index, if the chunk size is fixed.
    ///
    /// # Errors
    ///
    /// Those of a damaged chunk; `ChunkAppend` if it does not fit in or cannot be written, `Lock`.
    pub fn append(&mut self, chunk: &[u8]) -> Result<usize> {
        self.append_all(&[chunk])
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
    /// `InvalidParam` for a number out of range, those of a damaged chunk, `ChunkInsert` if it does not fit in or
    /// cannot be written, `Lock`.
    pub fn insert(&mut self, nchunk: usize, chunk: &[u8]) -> Result<usize> {
        self.insert_all(nchunk, &[chunk])
    }

    /// Inserts `chunks` before chunk `nchunk` as one change; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert); none of the chunks is inserted then.
    pub fn insert_all(&mut self, nchunk: usize, chunks: &[&[u8]]) -> Result<usize> {
        let session = self.begin().map_err(|e| surface(e, ErrorKind::ChunkInsert))?;
        require(nchunk <= self.nchunks(), "chunk number out of range")?;
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
            let (chunk, info) = admit(chunk, nchunk + i, kind)?;
            sizes = sizes.with_inserted(nchunk + i, &info, kind)?.recordable_with(&info);
            infos.push((chunk, info));
        }
        ensure(sizes.nchunks <= MAX_CHUNKS, kind, "too many chunks")?;
        let mut next = State::clone(&old);
        next.index.insert(nchunk, chunks.len(), PLACEHOLDER).map_err(|e| surface(e, kind))?;
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
        self.regrid(&Regrid::default(), chunks)
    }

    /// Reorders the chunks: chunk `i` becomes what chunk `order[i]` was.
    ///
    /// # Errors
    ///
    /// `Data` unless `order` is a permutation of all chunk numbers of a frame that has chunks, else those of writing.
    pub fn reorder(&mut self, order: &[usize]) -> Result<()> {
        ensure(!order.is_empty(), ErrorKind::Data, "no chunks to reorder")?;
        check_permutation(order, self.nchunks())?;
        let session = self.begin()?;
        let old = self.snapshot();
        // Others may have changed the frame until the lock was taken.
        ensure(order.len() == old.index.len(), ErrorKind::Data, "not a permutation of the chunks")?;
        let sizes = old.sizes().with_reordered(order);
        let mut next = State::clone(&old);
        let table = order.iter().map(|&from| old.index.raw(from).expect("checked to be a permutation"));
        next.index.replace(memory::collect(table)?)?;
        let mut now_at = memory::filled(0, order.len())?;
        for (to, &from) in order.iter().enumerate() {
            now_at[from] = to;
        }
        let mut added = Vec::new();
        convert_specials(&old, &mut next, sizes, &mut added, |i| now_at[i])?;
        drop(old);
        // Nothing else in the header tells other handles of it.
        next.replaces = true;
        self.write_chunks(&session, next, sizes, &added, IndexOf::Other).map(drop)
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
        ensure(Entry::is_index_only(kind), special, "the index cannot hold this special value")?;
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
        written.map(|_| nchunks)
    }

    /// Uncompressed size of chunk `nchunk`, and what of it is stored.
    pub(super) fn old_chunk(
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
                let info = self.chunks_in(session, old).info_at(position);
                let shared = places.are_shared(&old.index, position)?;
                match (info, old.sizes().chunk_nbytes(nchunk)) {
                    (Ok(info), _) => {
                        let add_up = || *places.add_up.get_or_insert_with(|| self.add_up(session, old));
                        let nbytes = old.sizes().believed_nbytes(nchunk, info.nbytes, add_up);
                        let cbytes = info.cbytes as u64; // widening
                        Ok((nbytes, Gone { position: (!shared).then_some(position), cbytes }))
                    }
                    // How much of a contiguous frame it took is not known; it is found out when the holes are counted.
                    (Err(e), Some(nbytes)) if e.kind() == ErrorKind::InvalidHeader => {
                        let is_file = old.header.sparse && !shared;
                        Ok((nbytes, Gone { position: is_file.then_some(position), cbytes: 0 }))
                    }
                    (Err(e), _) => Err(unreadable(e)),
                }
            }
        }
    }

    /// Whether the sizes in the headers of the chunks of `old`, of a fixed size, add up to that of the frame.
    fn add_up(&self, session: &Session, old: &Arc<State>) -> bool {
        let chunks = self.chunks_in(session, old);
        let nbytes = |(nchunk, raw)| match Entry::decode(raw).ok()? {
            Entry::Stored(position) => u64::try_from(chunks.info_at(position).ok()?.nbytes).ok(),
            Entry::Special(_) => old.sizes().chunk_nbytes(nchunk),
        };
        let sum = old.index.iter().enumerate().map(nbytes).try_fold(0u64, |sum, n| sum.checked_add(n?));
        sum == Some(old.header.nbytes)
    }

    /// Writes the chunks `added`, and the index of `next` with their positions, as one change; returns those that were
    /// written farther back than where they belong, to which [`bring_back`](Self::bring_back) moves them.
    pub(super) fn write_chunks<'a>(
        &mut self,
        session: &Session,
        mut next: State,
        sizes: Sizes,
        added: &'a [NewChunk<'_>],
        of: IndexOf,
    ) -> Result<Ahead<'a>> {
        ensure(sizes.tell_nchunks(), ErrorKind::Failure, "nbytes does not give the number of chunks")?;
        self.check_first(session, &next, added)?;
        next.set_sizes(sizes);
        if let Store::Disk(disk @ Disk { dir: Some(_), .. }) = &self.store {
            let old = &self.state.get_mut().index;
            let made = chunk_files::write(disk, old, &mut next, added)?;
            next.replaces |= !added.is_empty() && next.index.len() == old.len();
            let written = self.write_tail(session, next, &[], of);
            if let (Err(_), Store::Disk(disk)) = (&written, &self.store) {
                // Without a journal the index may refer to them by now.
                if disk.io.features().journal {
                    chunk_files::remove(disk, made);
                }
                chunk_files::give_up_spares(disk);
            }
            return written.map(|()| Ahead::default());
        }
        let (writes, ahead) = self.find_room(session, &mut next, added)?;
        // Where there are places to be used again, the index stays after all of them until holes are closed: it is not
        // written over what somebody who does not lock may be reading.
        let least = if next.replaces || next.dead > 0 { next.header.cbytes } else { 0 };
        next.header.cbytes = next.live_end.max(least);
        self.write_tail(session, next, &writes, of)?;
        Ok(ahead)
    }

    /// Finds room in the payload area for the chunks `added`, in holes or after all others, and notes the positions in
    /// the index of `next`. Returns what is to be written, and the chunks to be moved forward afterwards.
    fn find_room<'a>(
        &self,
        session: &Session,
        next: &mut State,
        added: &'a [NewChunk<'_>],
    ) -> Result<(Vec<Write<'a>>, Ahead<'a>)> {
        let header_len = next.header.header_len as u64; // widening
        let mut writes = memory::with_capacity(added.len())?;
        let mut behind = Vec::new();
        if !session.is_followed() {
            next.holes.wake_if_few(next.index.len());
        }
        for new in added {
            match next.holes.take(new.room()) {
                Some(at) => {
                    next.dead = next.dead.saturating_sub(new.room());
                    next.replaces = true;
                    next.index.set(new.nchunk, Entry::Stored(at).encode())?;
                    writes.push(Write::Bytes(header_len + at, &new.bytes));
                }
                None => memory::push(&mut behind, new)?,
            }
        }
        let ahead = self.place_after_last(session, next, &behind)?;
        for (new, position) in &ahead.chunks {
            next.index.set(new.nchunk, Entry::Stored(*position).encode())?;
            writes.push(Write::Bytes(header_len + position, &new.bytes));
        }
        Ok((writes, ahead))
    }

    /// Fails if the change makes another stored chunk the first one, and that is damaged or empty: nobody could open a
    /// frame that begins with a damaged chunk, nor the C library one that begins with an empty chunk.
    fn check_first(&self, session: &Session, next: &State, added: &[NewChunk<'_>]) -> Result<()> {
        let old = self.snapshot();
        let first = next.index.raw(0).filter(|&first| Some(first) != old.index.raw(0));
        let Some(Ok(position)) = first.map(u64::try_from) else { return Ok(()) };
        if added.iter().any(|new| new.nchunk == 0) {
            return Ok(());
        }
        let damaged = |e: Error| match e.kind() {
            ErrorKind::InvalidHeader => Error::new(ErrorKind::Failure, "a damaged chunk cannot be the first"),
            _ => e,
        };
        let info = self.chunks_in(session, &old).info_at(position).map_err(damaged)?;
        ensure(info.nbytes > 0, ErrorKind::Failure, "an empty chunk cannot be the first")
    }

    /// After a change: removes chunk files that nothing refers to, and gives others smaller numbers, or closes holes.
    /// What fails here can wait. `new` chunks were stored in place of those that are gone; those in `ahead` still have
    /// to move to their places.
    pub(super) fn clean_up<'g>(
        &mut self,
        session: &Session,
        gone: impl IntoIterator<Item = &'g Gone>,
        new: usize,
        ahead: &Ahead<'_>,
    ) {
        if let Store::Disk(disk @ Disk { dir: Some(_), .. }) = &self.store {
            let files = gone.into_iter().filter_map(|gone| Some((gone.position?, gone.cbytes)));
            chunk_files::retire(disk, files, self.header().cbytes, new);
            let _ = self.renumber(session);
            return;
        }
        let _ = self.bring_back(session, ahead).and_then(|()| self.reclaim(session, new > 0));
    }
}

/// Fails unless `order` names each of `nchunks` chunks once.
///
/// # Errors
///
/// `Data`, `MemoryAlloc`.
pub(crate) fn check_permutation(order: &[usize], nchunks: usize) -> Result<()> {
    let wrong = "not a permutation of the chunks";
    ensure(order.len() == nchunks, ErrorKind::Data, wrong)?;
    let mut seen = memory::filled(false, nchunks)?;
    let once = |&from: &usize| seen.get_mut(from).is_some_and(|seen| !std::mem::replace(seen, true));
    ensure(order.iter().all(once), ErrorKind::Data, wrong)
}

/// Puts `chunk` at entry `nchunk` of the index of `next`: as a special value, or as a payload to write.
pub(super) fn place_chunk<'a>(
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
        next.index.set(nchunk, Entry::Special(info.special).encode())?;
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
pub(super) fn convert_specials(
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
    require(specials <= MAX_CONVERTED, too_many)?;
    let mut replaced = memory::collect(added.iter().map(|new| new.nchunk))?;
    replaced.sort_unstable();
    for (nchunk, raw) in old.index.iter().enumerate() {
        let now = moved(nchunk);
        if raw >= 0 || replaced.binary_search(&now).is_ok() {
            continue;
        }
        let Entry::Special(kind) = Entry::decode(raw)? else { continue };
        let nbytes = old.sizes().chunk_nbytes(nchunk).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let bytes = special::with_payload(kind, nbytes, typesize)?;
        next.index.set(now, PLACEHOLDER)?;
        memory::push(added, NewChunk { nchunk: now, bytes: bytes.into() })?;
    }
    Ok(())
}

/// What a deleted or replaced chunk leaves behind.
pub(super) struct Gone {
    /// Its position or file number, unless it is special or still used.
    position: Option<u64>,
    /// Its stored size in bytes.
    cbytes: u64,
}

impl Gone {
    /// Notes in `next`, where entry `nchunk` still refers to the place, that it is free.
    pub(super) fn note_in(&self, next: &mut State, nchunk: usize) -> Result<()> {
        let Some(position) = self.position else { return Ok(()) };
        if next.header.sparse {
            next.header.cbytes = next.header.cbytes.saturating_sub(self.cbytes);
            return Ok(());
        }
        next.index.set(nchunk, PLACEHOLDER)?;
        let room = self.cbytes.max(EXTENDED_HEADER_LENGTH as u64); // widening
        next.dead = (next.dead + room).min(next.live_end);
        let room = room.min(next.live_end.saturating_sub(position));
        next.holes.give_up(Extent { position, len: room });
        Ok(())
    }
}

/// The places of chunks that are removed or replaced. A damaged frame may use one of them twice: it is not free before
/// the last use is gone.
#[derive(Default)]
pub(super) struct Places {
    /// Whether the sizes in the headers add up to that of the frame; `None` until that was asked.
    add_up: Option<bool>,
    asked: usize,
    /// The places that are used more than once, ascending; `None` until many were asked for.
    shared: Option<Vec<u64>>,
}

impl Places {
    /// For this many places the index is searched; for more it is sorted.
    const FEW: usize = 8;

    /// Whether more than one chunk is at `position`. `index` is the same each time.
    fn are_shared(&mut self, index: &Index, position: u64) -> Result<bool> {
        self.asked += 1;
        if self.asked <= Places::FEW {
            return Ok(index.stored().filter(|&other| other == position).count() > 1);
        }
        let shared = memory::made(&mut self.shared, || {
            let mut stored = memory::collect(index.stored())?;
            stored.sort_unstable();
            memory::collect(stored.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]))
        })?;
        Ok(shared.binary_search(&position).is_ok())
    }
}

/// The code under which the failure of a change is reported: that of the operation, except for what the caller did.
pub(super) fn surface(e: Error, kind: ErrorKind) -> Error {
    match e.kind() {
        ErrorKind::Lock | ErrorKind::InvalidParam => e,
        _ => Error::new(kind, e.what()),
    }
}
