//! Chunks out of a frame.

use super::sizes::ChunkInfo;
use super::state::{self, State};
use super::store::{Disk, Store};
use super::{Frame, View, special};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::consts::{EXTENDED_HEADER_LENGTH, MIN_HEADER_LENGTH};
use crate::format::offsets::Entry;
use crate::io::{IoFile, OpenMode};
use std::borrow::Cow;
use std::sync::Arc;

/// What the first chunk says, whose head `read` gives: up to 32 bytes at a position in the frame, or of a chunk file.
/// `None` if there is no such chunk or it is special.
///
/// # Errors
///
/// Those of reading, and `InvalidHeader` for a damaged chunk.
pub(super) fn first_chunk_head(
    state: &State,
    read: impl FnOnce(u64) -> Result<Vec<u8>>,
) -> Result<Option<ChunkInfo>> {
    let Some(Ok(position)) = state.index.raw(0).map(u64::try_from) else { return Ok(None) };
    let head = read(if state.header.sparse { position } else { state.chunk_at(position) })?;
    ensure(head.len() >= MIN_HEADER_LENGTH, ErrorKind::FileRead, "first chunk cut off")?;
    ChunkInfo::read(&head).map(Some)
}

/// For chunks of at most this size, in bytes, memory is reserved before it is known whether the file is as long.
const TRUSTED: usize = 16 << 20;

/// A stored chunk: which file has it, where, and how long it is.
pub(super) struct Place {
    /// The file; `None` in memory.
    pub(super) file: Option<Arc<dyn IoFile>>,
    /// Position in the file, or in the buffer.
    pub(super) at: u64,
    /// Compressed size in bytes.
    pub(super) cbytes: usize,
    /// The first bytes: 32, or fewer if the chunk is shorter.
    pub(super) head: Vec<u8>,
    /// What the head says.
    pub(super) info: ChunkInfo,
}

impl Place {
    /// Finds the chunk at `entry`, which is not special.
    ///
    /// # Errors
    ///
    /// `InvalidHeader` if it is damaged or reaches past its place, `FileOpen` or `FileRead` if it is not there.
    pub(super) fn find(frame: &Frame, view: &View, position: u64) -> Result<Place> {
        let state = &view.state;
        if let Store::Disk(disk @ Disk { dir: Some(_), .. }) = &frame.store {
            return Place::in_own_file(disk, position);
        }
        let least = MIN_HEADER_LENGTH as u64; // widening
        state::check_extent(&state.header, Entry::Stored(position), least)?;
        let room = state.header.cbytes - position;
        let head_len = usize::try_from(room).unwrap_or(usize::MAX).min(EXTENDED_HEADER_LENGTH);
        let at = frame.file_offset() + state.chunk_at(position);
        let mut head = vec![0; head_len];
        frame.read_at(view.file.as_deref(), at, &mut head)?;
        let info = read_info(&head)?;
        state::check_extent(&state.header, Entry::Stored(position), info.cbytes as u64)?; // widening
        if info.cbytes > TRUSTED {
            // Back-ends of the application do not tell how long a file is: its last byte does.
            frame.read_at(view.file.as_deref(), at + info.cbytes as u64 - 1, &mut [0])?; // widening
        }
        Ok(Place { file: view.file.clone(), at, cbytes: info.cbytes, head, info })
    }

    fn in_own_file(disk: &Disk, id: u64) -> Result<Place> {
        let file = disk.io.open(&disk.chunk_path(id)?, OpenMode::Read)?;
        let mut head = vec![0; EXTENDED_HEADER_LENGTH];
        let n = file.read_at(0, &mut head)?;
        head.truncate(n);
        ensure(n >= MIN_HEADER_LENGTH, ErrorKind::FileRead, "chunk file cut off")?;
        let info = read_info(&head)?;
        // Smaller chunks are found to be cut off when they are read.
        let small = info.cbytes <= TRUSTED;
        ensure(small || file.size()? >= info.cbytes as u64, ErrorKind::FileRead, "chunk file cut off")?; // widening
        Ok(Place { file: Some(file), at: 0, cbytes: info.cbytes, head, info })
    }
}

fn read_info(head: &[u8]) -> Result<ChunkInfo> {
    ChunkInfo::read(head).map_err(|e| Error::new(ErrorKind::InvalidHeader, e.what()))
}

impl Frame {
    /// The compressed bytes of chunk `nchunk`: borrowed from frames in memory and mapped ones, else copied.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such chunk, `InvalidHeader` or `Data` for damaged ones and for special chunks of
    /// unknown size, `FileOpen`, `FileRead`, `Lock`.
    pub fn chunk(&self, nchunk: usize) -> Result<Cow<'_, [u8]>> {
        let mut buffer = Vec::new();
        if let Some(bytes) = self.chunk_or_copy(nchunk, &mut buffer)? {
            return Ok(Cow::Borrowed(bytes));
        }
        Ok(Cow::Owned(buffer))
    }

    /// As [`chunk`](Self::chunk), with a buffer to copy to if the chunk cannot be borrowed (`None`): its content is
    /// replaced, its memory used again.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk).
    pub fn chunk_or_copy(&self, nchunk: usize, buffer: &mut Vec<u8>) -> Result<Option<&[u8]>> {
        self.check_number(nchunk)?;
        let view = self.view()?;
        let position = match view.state.index.entry(nchunk)? {
            Entry::Special(kind) => {
                buffer.clear();
                buffer.extend_from_slice(&self.special_chunk(&view.state, nchunk, kind)?);
                return Ok(None);
            }
            Entry::Stored(position) => position,
        };
        let place = Place::find(self, &view, position)?;
        if let Some(bytes) = self.borrow(&place)? {
            return Ok(Some(bytes));
        }
        let no_memory = Error::new(ErrorKind::MemoryAlloc, "no memory for a chunk");
        buffer.try_reserve(place.cbytes.saturating_sub(buffer.len())).map_err(|_| no_memory)?;
        // Not cleared first: a buffer that is used again need not be zeroed again.
        buffer.resize(place.cbytes, 0);
        let have = place.head.len().min(place.cbytes);
        buffer[..have].copy_from_slice(&place.head[..have]);
        let rest = &mut buffer[have..];
        self.read_at(place.file.as_deref(), place.at + have as u64, rest)?; // widening
        Ok(None)
    }

    /// Fails with `InvalidParam` if the handle knows of no chunk `nchunk`; nothing is looked up for that.
    fn check_number(&self, nchunk: usize) -> Result<()> {
        ensure(nchunk < self.nchunks(), ErrorKind::InvalidParam, "chunk number out of range")
    }

    /// The bytes of a chunk that is in memory anyway.
    fn borrow(&self, place: &Place) -> Result<Option<&[u8]>> {
        let outside = Error::new(ErrorKind::InvalidHeader, "chunk outside the frame");
        match &self.store {
            Store::Memory(buffer) => {
                let at = usize::try_from(place.at).map_err(|_| outside)?;
                let end = at.checked_add(place.cbytes).ok_or(outside)?;
                buffer.get(at..end).map(Some).ok_or(outside)
            }
            Store::Disk(disk) => disk.mapped_bytes(place.at, place.cbytes),
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
        buf.copy_from_slice(buffer.get(at..end).ok_or(outside)?);
        Ok(())
    }

    /// The 32 bytes of special chunk `nchunk`.
    pub(super) fn special_chunk(&self, state: &State, nchunk: usize, kind: u8) -> Result<[u8; 32]> {
        let unknown = Error::new(ErrorKind::InvalidHeader, "special chunk of unknown size");
        let nbytes = state.sizes().chunk_nbytes(nchunk).ok_or(unknown)?;
        let nbytes = usize::try_from(nbytes).map_err(|_| unknown)?;
        let typesize = usize::try_from(state.header.params.typesize).unwrap_or(1);
        let blocksize = usize::try_from(state.header.params.blocksize).unwrap_or(0);
        special::chunk(kind, nbytes, typesize, blocksize)
    }

    /// The special value and the sizes of chunk `nchunk`, without reading its payload.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk).
    #[cfg(test)]
    pub(crate) fn chunk_info(&self, nchunk: usize) -> Result<ChunkInfo> {
        self.check_number(nchunk)?;
        let view = self.view()?;
        self.info_of(&view, nchunk)
    }

    #[cfg(test)]
    pub(super) fn info_of(&self, view: &View, nchunk: usize) -> Result<ChunkInfo> {
        match view.state.index.entry(nchunk)? {
            Entry::Special(kind) => ChunkInfo::read(&self.special_chunk(&view.state, nchunk, kind)?),
            Entry::Stored(position) => Place::find(self, view, position).map(|place| place.info),
        }
    }
}

impl Disk {
    /// Bytes of a contiguous frame whose file is mapped.
    fn mapped_bytes(&self, at: u64, len: usize) -> Result<Option<&[u8]>> {
        let Some(mapped) = &self.mapped else { return Ok(None) };
        mapped.bytes(at, len)
    }
}
