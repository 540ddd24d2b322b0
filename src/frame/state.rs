//! What a handle knows of its frame: header, index and metalayers, read in a constant number of accesses.

#![forbid(unsafe_code)]

use super::head::Head;
use super::holes::Holes;
use super::journal::{Mark, Undo};
use super::offsets::Index;
use super::read;
use super::sizes::{ChunkInfo, Sizes};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::consts::{EXTENDED_HEADER_LENGTH, MIN_HEADER_LENGTH};
use crate::format::frame_header::{FIXED_LEN, FrameHeader, Layout};
use crate::format::frame_trailer::{self, TAIL_LEN, Usage};
use crate::format::metalayers::Metalayers;
use crate::format::offsets::Entry;
use crate::io::{FileId, IoFile};
use crate::memory::{copy_of, no_memory, zeroed};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Up to this size the index and the trailer are read together, in bytes.
const TAIL_AT_ONCE: u64 = 1 << 18;

/// One consistent view of a frame.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The fixed fields of the header.
    pub(crate) header: FrameHeader,
    /// The length by which the last change was counted; `None` if the frame has only grown. See [`tail`](super::tail).
    pub(super) counted: Option<u64>,
    /// Length of the trailer in bytes.
    pub(crate) trailer_len: usize,
    /// Bytes between index and trailer.
    pub(super) gap: u64,
    /// Where the chunks are.
    pub(crate) index: Index,
    /// The fixed metalayers.
    pub(crate) metalayers: Arc<Metalayers>,
    /// The variable-length metalayers, with their content compressed.
    pub(crate) vlmetalayers: Arc<Metalayers>,
    /// The start of the header as it is in the file, also while the file holds a change that was broken off.
    pub(crate) seen: Head,
    /// Whether the variable-length metalayers are yet to be written.
    pub(super) owes_trailer: bool,
    /// The file that it is in, where the back-end can tell.
    pub(super) file: Option<FileId>,
    /// The record in the file by which a change that was broken off, or is not finished, was undone to get this.
    pub(super) undone_by: Option<Mark>,
    /// End of the last chunk in the payload area; what follows up to the index is dead. Contiguous frames only.
    pub(crate) live_end: u64,
    /// Dead bytes before `live_end`, as far as they are known.
    pub(crate) dead: u64,
    /// Whether `dead` was noted in the frame or counted.
    pub(crate) dead_is_known: bool,
    /// Where among the chunks there is room for new ones.
    pub(crate) holes: Holes,
    /// Whether the change under way puts a chunk in the place of another, in the payload area, in its file or in the
    /// order. If so, it gives the frame a length that readers have not seen ([`gap`](super::Frame::gap)).
    pub(crate) replaces: bool,
    /// How often this handle took over changes from elsewhere or changed metalayers.
    pub(crate) tick: u64,
}

/// Length of [`Source::front`] in bytes.
const FRONT: usize = 4096;
/// Step in which metadata are read whose length cannot be compared with that of a file, in bytes.
const STEP: usize = 1 << 20;

/// Where the bytes of a frame come from while it is read.
pub(crate) struct Source<'a> {
    /// `None` for a frame in memory, which is all in the front.
    file: Option<&'a dyn IoFile>,
    /// Position of the frame in the file.
    base: u64,
    /// Length of the file, if it is known.
    size: Option<u64>,
    /// Bytes that a broken-off change overwrote.
    pub(crate) undo: Option<(Mark, Undo)>,
    /// Whether it is the index file of a sparse frame.
    sparse: bool,
    /// The first bytes of the frame, as stored: read once, they hold most headers and whole small frames.
    front: Cow<'a, [u8]>,
}

impl<'a> Source<'a> {
    /// The frame at `base` of `file`, which has `size` bytes if that is known.
    ///
    /// # Errors
    ///
    /// `FileRead` if the file ends before the fixed header does.
    pub(crate) fn open(
        file: &'a dyn IoFile,
        base: u64,
        size: Option<u64>,
        sparse: bool,
    ) -> Result<Source<'a>> {
        let front = read_front(file, base, size.is_some())?;
        Ok(Source { file: Some(file), base, size, undo: None, sparse, front: front.into() })
    }

    /// The contiguous frame in `bytes`, where nothing else is.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` if that is shorter than a fixed header.
    pub(crate) fn in_memory(bytes: &'a [u8]) -> Result<Source<'a>> {
        ensure(bytes.len() >= FIXED_LEN, ErrorKind::ReadBuffer, "buffer shorter than a frame header")?;
        let size = Some(bytes.len() as u64); // widening
        Ok(Source { file: None, base: 0, size, undo: None, sparse: false, front: bytes.into() })
    }

    /// The fixed header as it is stored.
    pub(crate) fn fixed(&self) -> [u8; FIXED_LEN] {
        *self.front.first_chunk().expect("checked when the front was read")
    }

    /// The start of the header, of `len` bytes, as it is stored.
    fn head(&self, len: usize) -> Result<Head> {
        Head::of(&self.front[..len.max(FIXED_LEN).min(self.front.len())])
    }

    /// Exactly `len` bytes at `at` of the frame.
    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>> {
        let cut_off = Error::new(ErrorKind::ReadBuffer, "frame cut off");
        let end = at.checked_add(len).ok_or(cut_off)?;
        let position = self.base.checked_add(at).ok_or(cut_off)?;
        let last = self.base.checked_add(end).ok_or(cut_off)?;
        ensure(self.size.is_none_or(|size| last <= size), ErrorKind::ReadBuffer, "frame cut off")?;
        let range = usize::try_from(at).ok().zip(usize::try_from(end).ok());
        let mut bytes = match range.and_then(|(at, end)| self.front.get(at..end)) {
            Some(bytes) => Cow::Borrowed(bytes),
            None => {
                let file = self.file.ok_or(cut_off)?;
                self.read_far(file, position, usize::try_from(len).map_err(|_| cut_off)?)?.into()
            }
        };
        if let Some((_, undo)) = &self.undo {
            undo.overlay(at, bytes.to_mut());
        }
        Ok(bytes)
    }

    /// Exactly `len` bytes at `position` of the file.
    fn read_far(&self, file: &dyn IoFile, position: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Without a known size a wrong length must not cost much memory before reading fails.
        let step = if self.size.is_some() { len } else { len.min(STEP) };
        while bytes.len() < len {
            let done = bytes.len();
            let n = step.min(len - done);
            bytes.try_reserve(n).map_err(|_| no_memory())?;
            bytes.resize(done + n, 0);
            file.read_exact_at(position + done as u64, &mut bytes[done..])?; // widening
        }
        Ok(bytes)
    }
}

/// The first bytes of the frame at `base` of `file`. Unless `may_pass_end`, no more is asked for than the header says
/// that there is: not every back-end of an application looks where its files end.
fn read_front(file: &dyn IoFile, base: u64, may_pass_end: bool) -> Result<Vec<u8>> {
    let mut front = zeroed(FRONT)?;
    let least = if may_pass_end { FRONT } else { FIXED_LEN };
    let mut have = file.read_at(base, &mut front[..least])?;
    ensure(have >= FIXED_LEN, ErrorKind::FileRead, "file ends too early")?;
    if !may_pass_end {
        // What is wrong with the header is told when all of it is read.
        let fixed = front.first_chunk().expect("as long");
        let len = FrameHeader::read(fixed).map_or(0, |header| header.frame_len);
        let len = usize::try_from(len).map_or(FRONT, |len| len.min(FRONT));
        if len > have {
            have += file.read_at(base + have as u64, &mut front[have..len])?; // widening
        }
    }
    front.truncate(have);
    Ok(front)
}

impl State {
    /// Reads everything but the chunks. Whether those of a sparse frame have variable-length blocks is not known then.
    ///
    /// # Errors
    ///
    /// `VersionSupport`, `FrameType`, `InvalidHeader`, `Data`, `ReadBuffer` for damaged frames, `FileRead` for files
    /// that end too early, else those of decompressing the index.
    pub(crate) fn load(source: &Source<'_>) -> Result<State> {
        let mut fixed = source.fixed();
        if let Some((_, undo)) = &source.undo {
            undo.overlay(0, &mut fixed);
        }
        let mut header = FrameHeader::read(&fixed)?;
        ensure(header.sparse == source.sparse, ErrorKind::FrameType, "frame of the other kind")?;
        let min_len = header.layout.min_frame_len();
        ensure(header.frame_len >= min_len, ErrorKind::InvalidHeader, "frame too short")?;
        if let Some(size) = source.size {
            let inside = size.checked_sub(source.base).is_some_and(|room| header.frame_len <= room);
            ensure(inside, ErrorKind::InvalidHeader, "frame longer than its file")?;
        }
        let head = source.read(0, header.header_len as u64)?; // widening
        let metalayers = header.read_metalayers(&head)?;
        let tail = Tail::read(source, &header)?;
        let index = read_index(&header, &tail)?;
        check_entries(&header, &index)?;
        let empty = index.len() == 0;
        if empty && !header.sparse {
            // The C library leaves the length of the payload area as it was when the last chunk goes, but not its
            // bytes.
            header.cbytes = 0;
        }
        let area = if header.sparse { 0 } else { header.cbytes };
        let gap = tail.gap(&header);
        let usage = Usage::read(&tail.trailer).filter(|usage| usage.area == area && !empty);
        let mut state = State {
            counted: (usage.is_some() || gap > 0).then_some(header.frame_len),
            trailer_len: tail.trailer.len(),
            gap,
            vlmetalayers: Arc::new(tail.vlmetalayers()?),
            index,
            metalayers: Arc::new(metalayers),
            seen: source.head(header.header_len)?,
            owes_trailer: false,
            file: source.file.and_then(IoFile::id),
            undone_by: source.undo.as_ref().map(|(mark, _)| *mark),
            live_end: area,
            dead: usage.map_or(0, |usage| usage.area - usage.live),
            dead_is_known: empty || usage.is_some(),
            replaces: false,
            holes: if empty { Holes::of_disjoint_chunks() } else { Holes::default() },
            tick: 0,
            header,
        };
        if !state.header.sparse {
            let first = read::first_chunk_head(&state, |at| {
                let end = state.chunk_at(state.header.cbytes);
                source.read(at, end.saturating_sub(at).min(EXTENDED_HEADER_LENGTH as u64)) // widening
            })?;
            state.header.vl_blocks = first.is_some_and(|info| info.vl_blocks);
        }
        Ok(state)
    }

    /// The sizes that the chunk-size rules are about.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            chunksize: self.header.chunksize,
            nchunks: self.index.len(),
            nbytes: self.header.nbytes,
            vl_blocks: self.header.vl_blocks,
        }
    }

    /// Bytes that the chunks take, without those of deleted ones as far as they are known.
    pub(crate) fn live_cbytes(&self) -> u64 {
        if self.header.sparse { self.header.cbytes } else { self.live_end - self.dead }
    }

    /// Takes over `sizes`.
    pub(crate) fn set_sizes(&mut self, sizes: Sizes) {
        self.header.chunksize = sizes.chunksize;
        self.header.nbytes = sizes.nbytes;
        self.header.vl_blocks = sizes.vl_blocks;
    }

    /// Whether `file`, whose header begins with `head` now, holds what this was read from. The last step of a change
    /// does not touch the header: it cuts the file off after it.
    pub(crate) fn is_of(&self, head: &Head, file: &dyn IoFile) -> bool {
        *head == self.seen
            && self.is_in(file)
            && self.undone_by.is_none_or(|mark| Mark::read(file) == Ok(mark))
    }

    /// Whether this was read from `file`, and not from one that had its path before; true if there is no telling.
    pub(crate) fn is_in(&self, file: &dyn IoFile) -> bool {
        self.file.zip(file.id()).is_none_or(|(known, now)| known == now)
    }

    /// Notes that a file with this header holds this state.
    pub(crate) fn note_header(&mut self, header: &[u8]) {
        self.seen = Head::of(header).expect("a header has its fixed fields");
        self.undone_by = None;
        self.owes_trailer = false;
    }

    /// What the trailer notes of the payload area: nothing if there are no holes.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let area = self.header.cbytes;
        let live = self.live_end - self.dead;
        let hollow = !self.header.sparse && self.index.len() > 0 && live < area;
        hollow.then_some(Usage { area, live })
    }

    /// Ends the payload area at its start if there are no chunks, and returns whether there are none: what it still
    /// holds is dead, and readers find the trailer of an empty frame right after the header.
    pub(super) fn close_if_empty(&mut self) -> bool {
        let is_empty = self.index.len() == 0;
        if is_empty {
            (self.header.cbytes, self.live_end, self.dead) = (0, 0, 0);
            self.holes = Holes::of_disjoint_chunks();
        }
        is_empty
    }

    /// Lets the trailer at the end of `tail` fill what was to lie before it in an empty frame, if it may be that long:
    /// the C library looks for it right after the header.
    pub(super) fn close_gap(&mut self, tail: &mut Vec<u8>) -> Result<()> {
        if self.gap > 0 && self.index.len() == 0 && frame_trailer::widen(tail, self.gap)? {
            self.gap = 0;
        }
        Ok(())
    }

    /// Position of the index in the frame.
    pub(crate) fn index_at(&self) -> u64 {
        index_at(&self.header)
    }

    /// Position of the trailer in the frame.
    pub(super) fn trailer_at(&self) -> u64 {
        self.header.frame_len - self.trailer_len as u64 // widening
    }

    /// Where index and trailer are in the frame. What lies between them is dead, except in the oldest frames.
    pub(super) fn tail_ranges(&self) -> [Range<u64>; 2] {
        let trailer_at = self.trailer_at();
        let gap = if self.header.layout == Layout::Beta1 { 0 } else { self.gap };
        [self.index_at()..trailer_at - gap, trailer_at..self.header.frame_len]
    }

    /// Position in the frame of the chunk at `position` of the payload area.
    pub(crate) fn chunk_at(&self, position: u64) -> u64 {
        self.header.header_len as u64 + position // widening; both were checked to lie inside the frame
    }
}

/// Position of the index in a frame with this header.
fn index_at(header: &FrameHeader) -> u64 {
    header.header_len as u64 + if header.sparse { 0 } else { header.cbytes } // widening
}

/// The bytes between the payload area and the end of the frame.
struct Tail<'a> {
    /// Index chunk and what lies between it and the trailer.
    index: Cow<'a, [u8]>,
    trailer: Cow<'a, [u8]>,
    layout: Layout,
}

impl<'a> Tail<'a> {
    fn read(source: &'a Source<'_>, header: &FrameHeader) -> Result<Tail<'a>> {
        let layout = header.layout;
        let invalid = ErrorKind::InvalidHeader;
        if layout == Layout::Beta1 {
            let at = index_at(header);
            let len = header.frame_len.checked_sub(at);
            let len = len.ok_or(Error::new(invalid, "payload longer than the frame"))?;
            return Ok(Tail { index: source.read(at, len)?, trailer: Cow::default(), layout });
        }
        let end = header.frame_len;
        let at = index_at(header);
        if header.nbytes > 0 && at < end && end - at <= TAIL_AT_ONCE {
            let bytes = source.read(at, end - at)?;
            let len = trailer_len(&bytes, header)?;
            ensure(len < bytes.len(), invalid, "no room for an index")?;
            let [index, trailer] = split_off(bytes, len)?;
            return Ok(Tail { index, trailer, layout });
        }
        let last = source.read(end - TAIL_LEN as u64, TAIL_LEN as u64)?; // widening
        let len = trailer_len(&last, header)?;
        let trailer_at = end - len as u64; // widening
        let trailer = source.read(trailer_at, len as u64)?; // widening
        let index =
            if header.nbytes > 0 { read_large_index(source, at, trailer_at)? } else { Cow::default() };
        Ok(Tail { index, trailer, layout })
    }

    /// How many bytes of the frame with this header lie between index and trailer.
    fn gap(&self, header: &FrameHeader) -> u64 {
        let index_len = match header.nbytes {
            0 => 0,
            _ => ChunkInfo::read(&self.index).map_or(0, |info| info.cbytes),
        };
        let end = index_at(header).saturating_add((index_len + self.trailer.len()) as u64); // widening
        header.frame_len.saturating_sub(end)
    }

    fn vlmetalayers(&self) -> Result<Metalayers> {
        if self.layout == Layout::Beta1 {
            Ok(Metalayers::default())
        } else {
            frame_trailer::read(&self.trailer)
        }
    }
}

/// Cuts `bytes` before the last `len` of them.
///
/// # Errors
///
/// `MemoryAlloc`.
fn split_off(bytes: Cow<'_, [u8]>, len: usize) -> Result<[Cow<'_, [u8]>; 2]> {
    let at = bytes.len() - len;
    Ok(match bytes {
        Cow::Borrowed(bytes) => [bytes[..at].into(), bytes[at..].into()],
        Cow::Owned(mut front) => {
            let back = copy_of(&front[at..])?;
            front.truncate(at);
            [front.into(), back.into()]
        }
    })
}

/// The length of the trailer, from `bytes`, which end with the frame.
fn trailer_len(bytes: &[u8], header: &FrameHeader) -> Result<usize> {
    let tail: Option<&[u8; TAIL_LEN]> = bytes.last_chunk();
    let room = header.frame_len.saturating_sub(header.header_len as u64); // widening
    let len = tail.and_then(|tail| frame_trailer::read_len(tail, room));
    len.ok_or(Error::new(ErrorKind::InvalidHeader, "no trailer"))
}

/// Reads the index chunk alone: a large gap may follow it.
fn read_large_index<'a>(source: &'a Source<'_>, at: u64, end: u64) -> Result<Cow<'a, [u8]>> {
    let room = end.checked_sub(at).filter(|&room| room >= EXTENDED_HEADER_LENGTH as u64); // widening
    let room = room.ok_or(Error::new(ErrorKind::InvalidHeader, "no room for an index"))?;
    let head = source.read(at, EXTENDED_HEADER_LENGTH as u64)?; // widening
    let info = ChunkInfo::read(&head)?;
    let len = info.cbytes as u64; // widening
    ensure(len <= room, ErrorKind::InvalidHeader, "index reaches into the trailer")?;
    source.read(at, len)
}

fn read_index(header: &FrameHeader, tail: &Tail<'_>) -> Result<Index> {
    if header.nbytes == 0 {
        return Ok(Index::default());
    }
    let nchunks = u64::try_from(header.chunksize).ok().filter(|&c| c > 0).map(|c| header.nbytes.div_ceil(c));
    let too_many = |_| Error::new(ErrorKind::InvalidHeader, "too many chunks");
    let nchunks = nchunks.map(usize::try_from).transpose().map_err(too_many)?;
    Index::read(&tail.index, nchunks, header.layout)
}

/// Rejects positions that no chunk can have; what lies there is checked when it is read.
fn check_entries(header: &FrameHeader, index: &Index) -> Result<()> {
    let invalid = ErrorKind::InvalidHeader;
    if header.sparse {
        return ensure(index.is_within(i64::from(u32::MAX)), invalid, "chunk file number out of range");
    }
    let area = i64::try_from(header.cbytes).unwrap_or(i64::MAX);
    let inside = index.is_within(area - MIN_HEADER_LENGTH as i64) && index_at(header) <= header.frame_len; // 16
    // These sizes do not matter if no chunk is stored. Whether one is, is only looked up when they are wrong.
    ensure(inside || !index.has_stored(), invalid, "chunk outside the frame")
}

/// Fails unless `entry` can be the place of a chunk of `len` bytes in the payload area.
///
/// # Errors
///
/// `InvalidHeader`.
pub(crate) fn check_extent(header: &FrameHeader, entry: Entry, len: u64) -> Result<()> {
    let Entry::Stored(position) = entry else { return Ok(()) };
    let inside = position.checked_add(len).is_some_and(|end| end <= header.cbytes);
    ensure(inside, ErrorKind::InvalidHeader, "chunk reaches past the payload area")
}
