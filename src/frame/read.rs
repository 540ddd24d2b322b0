//! Reading the chunks of a frame: where one is, its bytes (lent or copied), and whether the frame has changed since.

use super::ahead::reused_from;
use super::head::Head;
use super::share::View;
use super::sizes::{ChunkInfo, Sizes};
use super::state::{self, State};
use super::store::{Disk, Store};
use super::{Frame, special};
use crate::bytes::get_i32;
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::offset;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, MIN_HEADER_LENGTH};
use crate::format::metalayers::Metalayers;
use crate::format::offsets::Entry;
use crate::io::lock::Held;
use crate::io::{Fill, IoFile, OpenMode, copied};
use crate::memory::resize;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// For chunks of at most this size, in bytes, memory is reserved before it is known whether the file is as long.
const TRUSTED: usize = 16 << 20;
/// Stored chunks that are expected to be no longer than this are read at once, in bytes.
pub(super) const AT_ONCE: usize = 16 << 10;

/// What the first chunk says, whose head `read` gives: up to 32 bytes at a position in the frame, or of a chunk file.
/// `None` if there is no such chunk or it is special.
///
/// # Errors
///
/// Those of reading, and `InvalidHeader` for a damaged chunk.
pub(super) fn first_chunk_head<B: AsRef<[u8]>>(
    state: &State,
    read: impl FnOnce(u64) -> Result<B>,
) -> Result<Option<ChunkInfo>> {
    let Some(Ok(position)) = state.index.raw(0).map(u64::try_from) else { return Ok(None) };
    let head = read(if state.header.sparse { position } else { state.chunk_at(position) })?;
    let head = head.as_ref();
    ensure(head.len() >= MIN_HEADER_LENGTH, ErrorKind::FileRead, "first chunk cut off")?;
    ChunkInfo::read(head).map(Some)
}

/// The compressed bytes of a chunk.
pub enum ChunkBytes<'a, B> {
    /// Where the frame or the super-chunk holds them.
    Held(&'a [u8]),
    /// In a buffer that was made for them.
    Made(B),
}

impl<B: Deref<Target = [u8]>> ChunkBytes<'_, B> {
    /// The chunk.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            ChunkBytes::Held(bytes) => bytes,
            ChunkBytes::Made(bytes) => bytes,
        }
    }
}

/// A stored chunk: which file has it, where, and what its header says.
pub(super) struct Place {
    /// Its own file, in sparse frames.
    file: Option<Arc<dyn IoFile>>,
    /// Position in the file, or in the buffer.
    pub(super) at: u64,
    /// Sizes and kind.
    pub(super) info: ChunkInfo,
    /// How many bytes of the chunk were read to find this out.
    pub(super) have: usize,
}

/// When a handle was last compared with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Just now: no other file has taken the path since.
    JustNow,
    /// At the last access, whenever that was.
    AnyTime,
}

/// The chunks of a frame as they are at one moment. Writers that lock are kept away as long as this lives.
pub(crate) struct FrameChunks<'a> {
    pub(super) frame: &'a Frame,
    pub(super) view: View,
}

/// What became of a frame.
enum Since {
    Unchanged,
    Changed(Arc<State>),
    /// It was changed, or cannot be looked at.
    Unknown,
}

impl<'a> FrameChunks<'a> {
    /// The compressed bytes of chunk `nchunk`: those of frames in memory and mapped ones, else (`None`) they are put in
    /// `buffer`, whose content is replaced and whose memory is used again.
    ///
    /// # Errors
    ///
    /// As [`Frame::chunk`].
    pub(crate) fn get(&self, nchunk: usize, buffer: &mut Vec<u8>) -> Result<Option<&'a [u8]>> {
        if let Some(bytes) = self.in_memory(nchunk)? {
            return Ok(Some(bytes));
        }
        let Some(position) = self.stored_position(nchunk, buffer)? else { return Ok(None) };
        if let Some(bytes) = self.mapped(position)? {
            return Ok(Some(bytes));
        }
        self.get_stored(position, self.expected_len(nchunk, position), buffer)?;
        Ok(None)
    }

    /// Puts the bytes of the chunk at `position`, about `expected`, in `buffer`.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate), `MemoryAlloc`.
    pub(super) fn get_stored(&self, position: u64, expected: usize, buffer: &mut Vec<u8>) -> Result<()> {
        let first = if expected <= AT_ONCE { expected } else { EXTENDED_HEADER_LENGTH };
        let place = self.locate_into(position, first, buffer)?;
        self.complete(&place, buffer)
    }

    /// As [`get`](Self::get), with the bytes that are not in memory where `make` wants them: it gets their number and
    /// what fills as much memory with them.
    ///
    /// # Errors
    ///
    /// As [`Frame::chunk`], and those of `make`.
    pub(crate) fn get_into<B>(
        &self,
        nchunk: usize,
        make: impl FnOnce(usize, &Fill<'_>) -> Result<B>,
    ) -> Result<ChunkBytes<'a, B>> {
        match self.view.state.index.entry(nchunk)? {
            Entry::Stored(position) if self.expected_len(nchunk, position) > AT_ONCE => {
                if let Some(bytes) = self.in_memory(nchunk)? {
                    return Ok(ChunkBytes::Held(bytes));
                }
                if let Some(bytes) = self.mapped(position)? {
                    return Ok(ChunkBytes::Held(bytes));
                }
                let mut head = [0; EXTENDED_HEADER_LENGTH];
                let place = self.locate(position, &mut head)?;
                let len = place.info.cbytes;
                let file = self.file_of(&place).ok_or(Error::new(ErrorKind::FileRead, "no file"))?;
                let made = make(len, &|room| {
                    let bytes = file.fill(place.at, room)?;
                    // Whoever reads the chunk relies on the length that this head says, even if it has changed.
                    let have = place.have.min(bytes.len());
                    bytes[..have].copy_from_slice(&head[..have]);
                    Ok(bytes)
                });
                Ok(ChunkBytes::Made(made?))
            }
            _ => {
                let mut buffer = Vec::new();
                if let Some(bytes) = self.get(nchunk, &mut buffer)? {
                    return Ok(ChunkBytes::Held(bytes));
                }
                Ok(ChunkBytes::Made(make(buffer.len(), &|room| Ok(copied(&buffer, room)))?))
            }
        }
    }

    /// The bytes of the chunk at `position` in a mapped frame; `None` in others.
    fn mapped(&self, position: u64) -> Result<Option<&'a [u8]>> {
        if !self.frame.is_at_hand() {
            return Ok(None);
        }
        let place = self.locate(position, &mut [0; EXTENDED_HEADER_LENGTH])?;
        self.frame.borrow(&place)
    }

    /// The compressed bytes of chunk `nchunk` of a frame in memory; `None` on disk, and for special chunks.
    ///
    /// # Errors
    ///
    /// As [`Frame::chunk`].
    #[inline]
    pub(crate) fn in_memory(&self, nchunk: usize) -> Result<Option<&'a [u8]>> {
        let Store::Memory(buffer) = &self.frame.store else { return Ok(None) };
        let state = &self.view.state;
        let entry = state.index.entry(nchunk)?;
        let Entry::Stored(position) = entry else { return Ok(None) };
        state::check_extent(&state.header, entry, MIN_HEADER_LENGTH as u64)?; // widening
        let outside = Error::new(ErrorKind::InvalidHeader, "chunk outside the frame");
        let at = usize::try_from(state.chunk_at(position)).map_err(|_| outside)?;
        let rest = buffer.get(at..).ok_or(outside)?;
        let room = usize::try_from(state.header.cbytes - position).unwrap_or(usize::MAX);
        let info = read_info(&rest[..rest.len().min(room)])?;
        state::check_extent(&state.header, entry, info.cbytes as u64)?; // widening
        rest.get(..info.cbytes).map(Some).ok_or(outside)
    }

    /// The position of chunk `nchunk`; `None` if it is a special one, which is put in `buffer` instead.
    pub(super) fn stored_position(&self, nchunk: usize, buffer: &mut Vec<u8>) -> Result<Option<u64>> {
        match self.view.state.index.entry(nchunk)? {
            Entry::Special(kind) => {
                buffer.clear();
                buffer.extend_from_slice(&self.special_chunk(nchunk, kind)?);
                Ok(None)
            }
            Entry::Stored(position) => Ok(Some(position)),
        }
    }

    /// About how many bytes chunk `nchunk` at `position` takes, by its neighbour; at least those of a header.
    pub(super) fn expected_len(&self, nchunk: usize, position: u64) -> usize {
        let state = &self.view.state;
        let full = usize::try_from(state.header.chunksize).unwrap_or(0);
        let most = if full > 0 { full.saturating_add(EXTENDED_HEADER_LENGTH) } else { AT_ONCE };
        let next = state.index.raw(nchunk + 1).and_then(|next| u64::try_from(next).ok());
        let len = match next {
            Some(next) if next > position && !state.header.sparse => usize::try_from(next - position).ok(),
            _ => None,
        };
        len.unwrap_or(most).clamp(EXTENDED_HEADER_LENGTH, most)
    }

    /// As [`locate`](Self::locate), with the first `len` bytes at the front of `buffer`, or as many as there are.
    pub(super) fn locate_into(&self, position: u64, len: usize, buffer: &mut Vec<u8>) -> Result<Place> {
        if buffer.len() < len {
            resize(buffer, len)?;
        }
        self.locate(position, &mut buffer[..len])
    }

    /// Reads what is missing of a chunk whose first bytes are in `buffer`, and cuts off what is not its own.
    pub(super) fn complete(&self, place: &Place, buffer: &mut Vec<u8>) -> Result<()> {
        let len = place.info.cbytes;
        let have = place.have.min(len);
        resize(buffer, len)?;
        if have == len {
            return Ok(());
        }
        self.read_at(place, have as u64, &mut buffer[have..]) // widening
    }

    /// Finds the chunk at `position`, which is not special, and reads its first bytes to `front`: as many as there is
    /// room for, and as there are.
    ///
    /// # Errors
    ///
    /// `InvalidHeader` if it is damaged or reaches past its place, `FileOpen` or `FileRead` if it is not there.
    pub(super) fn locate(&self, position: u64, front: &mut [u8]) -> Result<Place> {
        let header = &self.view.state.header;
        if let Store::Disk(disk @ Disk { dir: Some(_), .. }) = &self.frame.store {
            return locate_file(disk, position, front);
        }
        let least = MIN_HEADER_LENGTH as u64; // widening
        state::check_extent(header, Entry::Stored(position), least)?;
        let room = usize::try_from(header.cbytes - position).unwrap_or(usize::MAX);
        let have = room.min(front.len());
        let at = self.frame.file_offset() + self.view.state.chunk_at(position);
        let file = self.view.file.as_deref();
        self.frame.read_at(file, at, &mut front[..have])?;
        let info = read_info(&front[..have])?;
        state::check_extent(header, Entry::Stored(position), info.cbytes as u64)?; // widening
        if info.cbytes > TRUSTED {
            // Back-ends of the application do not tell how long a file is: its last byte does.
            self.frame.read_at(file, at + info.cbytes as u64 - 1, &mut [0])?; // widening
        }
        Ok(Place { file: None, at, info, have })
    }

    /// Whether the frame is as it was when this was made; or, with `nchunks`, whether the chunks with these numbers are
    /// where they were: they may have been elsewhere in between.
    ///
    /// A change overwrites only places that are not in use before the header tells of it. So if the frame is as it was,
    /// nothing that was read before was overwritten meanwhile. Frames that are locked are.
    pub(crate) fn are_current(&self, nchunks: Option<impl Iterator<Item = usize>>) -> bool {
        match (self.since(), nchunks) {
            (Since::Unchanged, _) => true,
            (Since::Changed(now), Some(nchunks)) => self.are_kept(&now, nchunks, |_| false),
            _ => false,
        }
    }

    /// Whether all chunks are where they were. Of those whose places may have been taken by new versions, `is_same`
    /// tells whether what is there is what was read.
    pub(crate) fn are_all_kept(&self, is_same: impl FnMut(usize) -> bool) -> bool {
        match self.since() {
            Since::Unchanged => true,
            Since::Changed(now) => self.are_kept(&now, 0..self.view.state.index.len(), is_same),
            Since::Unknown => false,
        }
    }

    /// What became of the frame since this was made.
    fn since(&self) -> Since {
        let frame = self.frame;
        let (Store::Disk(disk), Some(file), None) = (&frame.store, &self.view.file, &frame.lock) else {
            return Since::Unchanged;
        };
        let known = &self.view.state;
        if !self.view.at_path && !disk.reader.serves(file, &disk.file) {
            return Since::Unknown;
        }
        let is_same =
            Head::read(&**file, disk.base, &known.seen).is_ok_and(|seen| known.is_of(&seen, &**file));
        // A change of this handle that failed, and is yet to be taken back, has not touched what is in use either.
        if is_same || disk.is_torn(&**file) {
            return Since::Unchanged;
        }
        match frame.view() {
            // If it is the same, it cannot be read anew, or is again as it was: there was a change in any case.
            Ok(now) if !Arc::ptr_eq(&now.state, known) => Since::Changed(now.state),
            _ => Since::Unknown,
        }
    }

    /// [`are_all_kept`](Self::are_all_kept) for the chunks with these numbers, if the frame is as `now` says.
    fn are_kept(
        &self,
        now: &State,
        mut nchunks: impl Iterator<Item = usize>,
        mut is_same: impl FnMut(usize) -> bool,
    ) -> bool {
        let known = &self.view.state;
        let Ok(from) = reused_from(known, now) else { return false };
        nchunks.all(|nchunk| {
            let place = now.index.raw(nchunk);
            let reused = place.and_then(|place| u64::try_from(place).ok()).is_some_and(|place| place >= from);
            place == known.index.raw(nchunk) && (!reused || is_same(nchunk))
        })
    }

    /// How large they are.
    pub(crate) fn sizes(&self) -> Sizes {
        self.view.state.sizes()
    }

    /// The change tick of the frame.
    pub(crate) fn tick(&self) -> u64 {
        self.view.state.tick
    }

    /// The fixed metalayers.
    pub(crate) fn metalayers(&self) -> &Arc<Metalayers> {
        &self.view.state.metalayers
    }

    /// Length of the frame in bytes, if it is contiguous.
    pub(crate) fn contiguous_len(&self) -> Option<u64> {
        let header = &self.view.state.header;
        (!header.sparse).then_some(header.frame_len)
    }

    /// What the header of the chunk at `position` says.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate).
    pub(super) fn info_at(&self, position: u64) -> Result<ChunkInfo> {
        Ok(self.locate(position, &mut [0; EXTENDED_HEADER_LENGTH])?.info)
    }

    /// The file of a chunk; `None` in memory.
    pub(super) fn file_of<'p>(&'p self, place: &'p Place) -> Option<&'p Arc<dyn IoFile>> {
        place.file.as_ref().or(self.view.file.as_ref())
    }

    /// Reads exactly `buf.len()` bytes from byte `start` of a chunk on.
    pub(super) fn read_at(&self, place: &Place, start: u64, buf: &mut [u8]) -> Result<()> {
        self.frame.read_at(self.file_of(place).map(|file| &**file), place.at + start, buf)
    }

    /// Special chunk `nchunk`, which is but a header.
    pub(super) fn special_chunk(&self, nchunk: usize, kind: u8) -> Result<[u8; EXTENDED_HEADER_LENGTH]> {
        let state = &self.view.state;
        let unknown = Error::new(ErrorKind::InvalidHeader, "special chunk of unknown size");
        let nbytes = state.sizes().chunk_nbytes(nchunk).ok_or(unknown)?;
        let nbytes = usize::try_from(nbytes).map_err(|_| unknown)?;
        let typesize = usize::try_from(state.header.params.typesize).unwrap_or(1);
        let blocksize = usize::try_from(state.header.params.blocksize).unwrap_or(0);
        special::chunk(kind, nbytes, typesize, blocksize)
    }
}

/// Reads the first bytes of the chunk that `file` holds to `front`, which has room for a header at least, and tells how
/// many came. What is behind the chunk is not asked for where a back-end may not look where its files end.
pub(super) fn read_front(disk: &Disk, file: &dyn IoFile, front: &mut [u8]) -> Result<usize> {
    if disk.io.features().journal {
        let have = file.read_some_at(0, front)?;
        if have >= MIN_HEADER_LENGTH {
            return Ok(have);
        }
        return Ok(have + file.read_at(have as u64, &mut front[have..])?); // widening
    }
    let have = file.read_at(0, &mut front[..MIN_HEADER_LENGTH])?;
    let cbytes = get_i32(&front[..have], offset::CBYTES).and_then(|cbytes| usize::try_from(cbytes).ok());
    match front.get_mut(have..cbytes.unwrap_or(0).min(front.len())) {
        Some(rest @ [_, ..]) => Ok(have + file.read_at(have as u64, rest)?), // widening
        _ => Ok(have),
    }
}

/// Finds chunk file `id`, and reads its first bytes to `front`.
fn locate_file(disk: &Disk, id: u64, front: &mut [u8]) -> Result<Place> {
    let file = disk.io.open(&disk.chunk_path(id)?, OpenMode::Read)?;
    let have = read_front(disk, &*file, front)?;
    ensure(have >= MIN_HEADER_LENGTH, ErrorKind::FileRead, "chunk file cut off")?;
    let info = read_info(&front[..have])?;
    // Smaller chunks are found to be cut off when they are read.
    let small = info.cbytes <= TRUSTED;
    ensure(small || file.size()? >= info.cbytes as u64, ErrorKind::FileRead, "chunk file cut off")?; // widening
    Ok(Place { file: Some(file), at: 0, info, have })
}

#[inline]
fn read_info(head: &[u8]) -> Result<ChunkInfo> {
    ChunkInfo::read(head).map_err(|e| Error::new(ErrorKind::InvalidHeader, e.what()))
}

impl Frame {
    /// The chunks as they are now.
    ///
    /// # Errors
    ///
    /// `FileOpen`, `FileRead`, `Lock`.
    pub(crate) fn chunks(&self) -> Result<FrameChunks<'_>> {
        Ok(FrameChunks { frame: self, view: self.view()? })
    }

    /// The chunks as they were when this handle last looked, unless writers lock. To be followed by a call of
    /// [`FrameChunks::are_current`].
    ///
    /// # Errors
    ///
    /// As [`chunks`](Self::chunks).
    pub(crate) fn known_chunks(&self, looked: Looked) -> Result<FrameChunks<'_>> {
        match &self.store {
            Store::Disk(disk) if self.lock.is_none() && disk.keeps_handles() => {
                let state = self.snapshot();
                let (file, at_path) = match disk.reader.at_hand() {
                    Some(file) => (file, looked == Looked::JustNow),
                    None => (disk.reader()?, true),
                };
                let view = View { state, file: Some(file), at_path, held: Held::nothing() };
                Ok(FrameChunks { frame: self, view })
            }
            _ => self.chunks(),
        }
    }

    /// The compressed bytes of chunk `nchunk`: borrowed from frames in memory and mapped ones, else copied.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such chunk, `InvalidHeader` or `Data` for damaged ones and for special chunks of
    /// unknown size, `FileOpen`, `FileRead`, `Lock`.
    pub fn chunk(&self, nchunk: usize) -> Result<Cow<'_, [u8]>> {
        self.check_number(nchunk)?;
        let mut buffer = Vec::new();
        if let Some(bytes) = self.chunks()?.get(nchunk, &mut buffer)? {
            return Ok(Cow::Borrowed(bytes));
        }
        Ok(Cow::Owned(buffer))
    }

    /// Fails with `InvalidParam` if the handle knows of no chunk `nchunk`; nothing is looked up for that.
    pub(crate) fn check_number(&self, nchunk: usize) -> Result<()> {
        require(nchunk < self.nchunks(), "chunk number out of range")
    }

    /// Whether stored chunks are read where they are: in memory, or in a mapped file.
    pub(crate) fn is_at_hand(&self) -> bool {
        match &self.store {
            Store::Memory(_) => true,
            Store::Disk(disk) => disk.mapped.is_some(),
        }
    }

    /// The bytes of a chunk that is in memory anyway.
    fn borrow(&self, place: &Place) -> Result<Option<&[u8]>> {
        let outside = Error::new(ErrorKind::InvalidHeader, "chunk outside the frame");
        let len = place.info.cbytes;
        match &self.store {
            Store::Memory(buffer) => {
                let at = usize::try_from(place.at).map_err(|_| outside)?;
                let end = at.checked_add(len).ok_or(outside)?;
                buffer.get(at..end).map(Some).ok_or(outside)
            }
            Store::Disk(disk) => disk.mapped_bytes(place.at, len),
        }
    }

    /// Reads exactly `buf.len()` bytes of the frame's file, or of its buffer without one.
    pub(super) fn read_at(&self, file: Option<&dyn IoFile>, at: u64, buf: &mut [u8]) -> Result<()> {
        if let Some(file) = file {
            return file.read_exact_at(at, buf);
        }
        let outside = Error::new(ErrorKind::InvalidHeader, "chunk outside the frame");
        let Store::Memory(buffer) = &self.store else { return Err(outside) };
        let at = usize::try_from(at).map_err(|_| outside)?;
        let end = at.checked_add(buf.len()).ok_or(outside)?;
        copy::copy(buffer.get(at..end).ok_or(outside)?, buf);
        Ok(())
    }

    /// The special value and the sizes of chunk `nchunk`, without reading its payload.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk).
    #[cfg(test)]
    pub(crate) fn chunk_info(&self, nchunk: usize) -> Result<ChunkInfo> {
        self.check_number(nchunk)?;
        let chunks = self.chunks()?;
        match chunks.view.state.index.entry(nchunk)? {
            Entry::Special(kind) => ChunkInfo::read(&chunks.special_chunk(nchunk, kind)?),
            Entry::Stored(position) => chunks.info_at(position),
        }
    }
}

impl Disk {
    /// Bytes of a contiguous frame whose file is mapped.
    fn mapped_bytes(&self, at: u64, len: usize) -> Result<Option<&[u8]>> {
        let Some(mapped) = &self.mapped else { return Ok(None) };
        // SAFETY: the frame is changed by `&mut self` only, and what others do to a mapped file is the matter of who
        // chose to map it: see `MmapIo::new` and `blosc2_stdio_mmap`.
        unsafe { mapped.bytes(at, len) }
    }
}
