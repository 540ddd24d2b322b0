//! Lazy chunks: the header and block table of a stored chunk without its data, and a way to get the data.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 32 | header as stored, with the lazy bit of byte 31 set |
//! | 32 | 4 × nblocks | block starts as stored; zeros for chunks that are stored raw |
//! | T = 32 + 4 × nblocks | 4 | number of the chunk, or of its file in sparse frames, LE |
//! | T + 4 | 8 | position of the chunk in the frame, or the number of its file again, LE |
//! | T + 12 | 4 × nblocks | stored size of each block, LE |

#![forbid(unsafe_code)]

use super::Frame;
use super::read::{AT_ONCE, FrameChunks, Place};
use super::store::Store;
use crate::bytes::get_i32;
use crate::chunk::source::BlockSource;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::{ChunkHeader, offset};
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, special};
use crate::io::lock::Held;
use crate::io::{IoFile, OpenMode};
use crate::memory::{self, resize};
use std::borrow::Cow;
use std::sync::Arc;

/// How much of a chunk is read at first: the header, and the block tables of most.
const FRONT: usize = 512;

/// Blocks that take at least this many bytes are read one by one, if all of them are wanted: each is decoded while it
/// is in the nearest cache. Of smaller ones many come with one access.
const LARGE_BLOCK: usize = 32 << 10;

/// About as many bytes could be read in the time that one more access takes.
const ACCESS: usize = 4 << 10;

/// Which chunks are read completely instead of in their lazy form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// None that has a lazy form.
    Never,
    /// Those that are read with one access anyway.
    IfSmall,
    /// As `IfSmall`, and those whose blocks are so small that reading the wanted ones singly takes longer: for a caller
    /// that wants some of the blocks.
    IfCheaper(Wanted),
    /// As `IfSmall`, and all others unless their blocks are large: for a caller that wants all blocks, one by one.
    IfBlocksAreSmall,
    /// The same, but none that is stored raw: for a caller that wants all bytes one after the other.
    IfBlocksAreSmallAndCoded,
}

/// How much of a chunk is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This many of its blocks.
    Blocks(usize),
    /// This many bytes of its data, one after the other.
    Bytes(usize),
}

impl Wanted {
    /// Whether a chunk with this header is better read completely.
    fn is_better_whole(self, header: &ChunkHeader) -> bool {
        let nblocks = header.nblocks();
        let wanted = match self {
            Wanted::Blocks(count) => count,
            Wanted::Bytes(len) => len.div_ceil(header.blocksize.max(1)),
        };
        let size = header.cbytes / nblocks.max(1);
        // Of larger blocks, parts may be enough.
        size < ACCESS && wanted.min(nblocks).saturating_mul(size + ACCESS) > header.cbytes
    }
}

/// The stored bytes of one chunk of a frame, to read parts of it from.
pub struct ChunkSource<'a> {
    frame: &'a Frame,
    file: Option<Arc<dyn IoFile>>,
    at: u64,
    cbytes: u64,
    /// Keeps writers that lock away while blocks are read.
    _held: Held,
}

impl BlockSource for ChunkSource<'_> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(buf.len() as u64); // widening
        let inside = end.is_some_and(|end| end <= self.cbytes);
        ensure(inside, ErrorKind::ReadBuffer, "block reaches past the chunk")?;
        let short = |e: Error| match e.kind() {
            ErrorKind::FileRead => Error::new(ErrorKind::ReadBuffer, e.what()),
            _ => e,
        };
        self.frame.read_at(self.file.as_deref(), self.at + offset, buf).map_err(short)
    }
}

/// A chunk as the caller gets it to decompress: small and complete, or with its blocks elsewhere.
pub struct LazyChunk<'a> {
    /// The chunk, or its lazy form.
    pub bytes: Cow<'a, [u8]>,
    /// Where the blocks are, if `bytes` is lazy.
    pub source: Option<ChunkSource<'a>>,
}

impl Frame {
    /// Chunk `nchunk` without its data: the lazy form of regular chunks on disk. Special chunks, repeated values and
    /// chunks in memory come complete.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk); `InvalidHeader` for chunks without blocks.
    pub fn lazy_chunk(&self, nchunk: usize) -> Result<Cow<'_, [u8]>> {
        self.lazy_chunk_with_source(nchunk).map(|lazy| lazy.bytes)
    }

    /// As [`lazy_chunk`](Self::lazy_chunk), with the source of the blocks.
    ///
    /// # Errors
    ///
    /// As [`lazy_chunk`](Self::lazy_chunk).
    pub fn lazy_chunk_with_source(&self, nchunk: usize) -> Result<LazyChunk<'_>> {
        self.check_number(nchunk)?;
        let chunks = self.chunks()?;
        let mut buffer = Vec::new();
        if matches!(self.store, Store::Memory(_)) {
            let bytes = match chunks.get(nchunk, &mut buffer)? {
                Some(bytes) => bytes.into(),
                None => buffer.into(),
            };
            return Ok(LazyChunk { bytes, source: None });
        }
        let source = chunks.lazy_form(nchunk, &mut buffer, Whole::Never)?;
        // The locks go over to the source.
        let source = source.map(|source| ChunkSource { _held: chunks.view.held, ..source });
        Ok(LazyChunk { bytes: buffer.into(), source })
    }

    /// Where the blocks of `lazy` are, a chunk that [`lazy_chunk`](Self::lazy_chunk) gave. The frame may have changed
    /// since: reads that do not fit the lazy chunk fail, or give other data.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` if `lazy` is cut off, `InvalidHeader` if it makes no sense, `FileOpen`.
    pub fn source_of_lazy(&self, lazy: &[u8]) -> Result<ChunkSource<'_>> {
        let header = ChunkHeader::read(lazy)?;
        let trailer = header.nblocks().checked_mul(4).and_then(|n| n.checked_add(EXTENDED_HEADER_LENGTH));
        let fields = trailer.and_then(|at| lazy.get(at..)?.first_chunk::<12>());
        let fields = fields.ok_or(Error::new(ErrorKind::ReadBuffer, "lazy chunk cut off"))?;
        let (number, position) = fields.split_at(4);
        let number = u32::from_le_bytes(number.try_into().expect("4 bytes"));
        let position = i64::from_le_bytes(position.try_into().expect("8 bytes"));
        let outside = Error::new(ErrorKind::InvalidHeader, "lazy chunk outside of the frame");
        let position = || u64::try_from(position).map_err(|_| outside);
        let cbytes = header.cbytes as u64; // widening
        let held = Held::nothing();
        match &self.store {
            Store::Disk(disk) if disk.dir.is_some() => {
                let file = disk.io.open(&disk.chunk_path(number.into())?, OpenMode::Read)?;
                Ok(ChunkSource { frame: self, file: Some(file), at: 0, cbytes, _held: held })
            }
            Store::Disk(disk) => {
                let at = disk.base.checked_add(position()?).ok_or(outside)?;
                Ok(ChunkSource { frame: self, file: Some(disk.reader_at_hand()?), at, cbytes, _held: held })
            }
            Store::Memory(_) => {
                Ok(ChunkSource { frame: self, file: None, at: position()?, cbytes, _held: held })
            }
        }
    }
}

impl<'a> FrameChunks<'a> {
    /// Chunk `nchunk` in its lazy form, unless `whole` asks for all of it, and where its blocks are if it is lazy. What
    /// is not in memory or mapped anyway is put in `buffer`.
    ///
    /// # Errors
    ///
    /// As [`Frame::lazy_chunk`].
    pub(crate) fn get_lazy<'b>(
        &'b self,
        nchunk: usize,
        whole: Whole,
        buffer: &'b mut Vec<u8>,
    ) -> Result<(&'b [u8], Option<ChunkSource<'a>>)> {
        if self.frame.is_at_hand() {
            return Ok(match self.get(nchunk, buffer)? {
                Some(bytes) => (bytes, None),
                None => (buffer, None),
            });
        }
        let source = self.lazy_form(nchunk, buffer, whole)?;
        Ok((buffer, source))
    }

    /// Puts the lazy form of chunk `nchunk` of a frame on disk in `buffer`, or the whole chunk if it has no such form
    /// or `whole` asks for that.
    fn lazy_form(
        &self,
        nchunk: usize,
        buffer: &mut Vec<u8>,
        whole: Whole,
    ) -> Result<Option<ChunkSource<'a>>> {
        let Some(position) = self.stored_position(nchunk, buffer)? else { return Ok(None) };
        let expected = self.expected_len(nchunk, position);
        let first = if whole != Whole::Never && expected <= AT_ONCE { expected } else { FRONT };
        let place = self.locate_into(position, first, buffer)?;
        let invalid = |e: Error| Error::new(ErrorKind::InvalidHeader, e.what());
        let header = ChunkHeader::read(&buffer[..place.have.min(EXTENDED_HEADER_LENGTH)]).map_err(invalid)?;
        match header.special() {
            special::NONE => {}
            special::VALUE => return self.complete(&place, buffer).map(|()| None),
            // Decompressing it will tell that there is no such value.
            kind if kind > special::UNINIT && whole != Whole::Never => {
                return self.complete(&place, buffer).map(|()| None);
            }
            _ => return Err(Error::new(ErrorKind::InvalidHeader, "stored chunk of a special value")),
        }
        // The lazy bit is in the extended header; older chunks come complete.
        let is_whole = whole != Whole::Never && place.have >= place.info.cbytes;
        let in_pieces = match whole {
            Whole::Never | Whole::IfSmall => true,
            Whole::IfCheaper(wanted) => !wanted.is_better_whole(&header),
            Whole::IfBlocksAreSmall => has_large_blocks(&header),
            Whole::IfBlocksAreSmallAndCoded => header.is_memcpyed() || has_large_blocks(&header),
        };
        if is_whole || !in_pieces || !header.is_extended() {
            return self.complete(&place, buffer).map(|()| None);
        }
        ensure(header.nbytes > 0, ErrorKind::InvalidHeader, "chunk without blocks")?;
        self.make_lazy(nchunk, position, &place, &header, buffer)?;
        let wants_all = matches!(whole, Whole::IfBlocksAreSmall | Whole::IfBlocksAreSmallAndCoded);
        if wants_all && !blocks_are_plausible(&header, buffer) {
            // What another writer left between or on top of blocks is no reason not to read them.
            let place = self.locate_into(position, EXTENDED_HEADER_LENGTH, buffer)?;
            return self.complete(&place, buffer).map(|()| None);
        }
        Ok(Some(ChunkSource {
            frame: self.frame,
            file: self.file_of(&place).cloned(),
            at: place.at,
            cbytes: place.info.cbytes as u64, // widening
            _held: Held::nothing(),
        }))
    }

    /// Makes the lazy form of the chunk whose first bytes are in `buffer`.
    fn make_lazy(
        &self,
        nchunk: usize,
        position: u64,
        place: &Place,
        header: &ChunkHeader,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let invalid = ErrorKind::InvalidHeader;
        let nblocks = header.nblocks();
        let cbytes = place.info.cbytes;
        // Raw chunks have no block table; their number of blocks is bounded by their payload.
        let room = if header.is_memcpyed() { cbytes } else { (cbytes - EXTENDED_HEADER_LENGTH) / 4 };
        ensure(nblocks > 0 && nblocks <= room, invalid, "more blocks than the chunk has room for")?;
        let (trailer, len) = lazy_lens(nblocks).ok_or_else(memory::no_memory)?;
        resize(buffer, len)?;
        buffer[offset::BLOSC2_FLAGS] |= blosc2_flags::LAZY;
        let (front, tail) = buffer.split_at_mut(trailer);
        let (numbers, sizes) = tail.split_at_mut(12);
        let table = &mut front[EXTENDED_HEADER_LENGTH..];
        if header.is_memcpyed() {
            table.fill(0);
            for (block, size) in sizes.chunks_exact_mut(4).enumerate() {
                put_size(size, header.block_len(block))?;
            }
        } else {
            if place.have < trailer {
                self.read_at(place, EXTENDED_HEADER_LENGTH as u64, table)?; // widening
            }
            block_sizes(table, cbytes, sizes)?;
        }
        let state = &self.view.state;
        let sparse = state.header.sparse;
        let number = if sparse { position } else { nchunk as u64 }; // widening
        let at = if sparse { position } else { state.chunk_at(position) };
        // The field has 32 bits whatever the numbers: file numbers use all of them, chunk numbers are below 2^28.
        numbers[..4].copy_from_slice(&number.to_le_bytes()[..4]);
        numbers[4..].copy_from_slice(&at.to_le_bytes());
        Ok(())
    }
}

/// Where the trailer of the lazy form of a chunk with this many blocks starts, and how long the whole is; `None` beyond
/// the reach of addresses, of which those of 32 bits fall short.
fn lazy_lens(nblocks: usize) -> Option<(usize, usize)> {
    let table = nblocks.checked_mul(4)?;
    let trailer = table.checked_add(EXTENDED_HEADER_LENGTH)?;
    Some((trailer, trailer.checked_add(12)?.checked_add(table)?))
}

/// Whether the blocks of the chunk take so many bytes that they are read one by one.
fn has_large_blocks(header: &ChunkHeader) -> bool {
    let nblocks = header.nblocks();
    !header.is_vl() && !header.has_dict() && nblocks > 0 && header.cbytes / nblocks >= LARGE_BLOCK
}

/// Whether blocks of the sizes that the lazy chunk tells can be read one by one.
fn blocks_are_plausible(header: &ChunkHeader, lazy: &[u8]) -> bool {
    let most = header.blocksize + 4 * header.typesize;
    let sizes = lazy.get(EXTENDED_HEADER_LENGTH + 4 * header.nblocks() + 12..).unwrap_or_default();
    let size = |bytes: &[u8]| get_i32(bytes, 0).and_then(|size| usize::try_from(size).ok());
    sizes.chunks_exact(4).all(|bytes| size(bytes).is_some_and(|size| (1..=most).contains(&size)))
}

fn put_size(dest: &mut [u8], size: usize) -> Result<()> {
    let size = i32::try_from(size).map_err(|_| Error::new(ErrorKind::InvalidHeader, "block too large"))?;
    dest.copy_from_slice(&size.to_le_bytes());
    Ok(())
}

/// Writes the stored size of each block, whose starts are in `starts`, to `sizes`: blocks may be in any order, and each
/// ends where the next one begins.
fn block_sizes(starts: &[u8], cbytes: usize, sizes: &mut [u8]) -> Result<()> {
    let damaged = Error::new(ErrorKind::InvalidHeader, "block start outside the chunk");
    let start = |block: usize| {
        let start = get_i32(starts, 4 * block).and_then(|start| usize::try_from(start).ok());
        start.filter(|&start| start <= cbytes).ok_or(damaged)
    };
    let nblocks = starts.len() / 4;
    let mut own = start(0)?;
    for block in 0..nblocks {
        let next = if block + 1 < nblocks { start(block + 1)? } else { cbytes };
        let Some(size) = next.checked_sub(own) else { return sizes_in_any_order(start, cbytes, sizes) };
        put_size(&mut sizes[4 * block..][..4], size)?;
        own = next;
    }
    Ok(())
}

fn sizes_in_any_order(start: impl Fn(usize) -> Result<usize>, cbytes: usize, sizes: &mut [u8]) -> Result<()> {
    let mut order = memory::try_collect((0..sizes.len() / 4).map(|block| Ok((start(block)?, block))))?;
    order.sort_unstable();
    for (i, &(own, block)) in order.iter().enumerate() {
        let next = order.get(i + 1).map_or(cbytes, |next| next.0);
        put_size(&mut sizes[4 * block..][..4], next - own)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lazy_forms_that_addresses_do_not_reach_have_no_length() {
        assert_eq!(lazy_lens(3), Some((44, 68)));
        let most = (usize::MAX - 44) / 8;
        assert!(lazy_lens(most).is_some_and(|(trailer, len)| len - trailer == 12 + 4 * most));
        for nblocks in [most + 1, usize::MAX / 4, usize::MAX / 4 + 1, usize::MAX] {
            assert_eq!(lazy_lens(nblocks), None, "{nblocks}");
        }
    }

    #[test]
    fn blocks_end_where_the_next_one_begins_in_any_order() {
        let sizes = |starts: &[i32], cbytes| -> Result<Vec<i32>> {
            let starts: Vec<u8> = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
            let mut sizes = vec![0; starts.len()];
            block_sizes(&starts, cbytes, &mut sizes)?;
            Ok(sizes.chunks_exact(4).map(|size| get_i32(size, 0).unwrap()).collect())
        };
        assert_eq!(sizes(&[60, 44, 100], 130).unwrap(), [40, 16, 30]);
        assert_eq!(sizes(&[44, 60, 100], 130).unwrap(), [16, 40, 30]);
        assert_eq!(sizes(&[44, 44], 130).unwrap(), [0, 86]);
        assert_eq!(sizes(&[60, 44, 100], 99).unwrap_err().kind(), ErrorKind::InvalidHeader);
        assert!(sizes(&[44, 60, 100], 99).is_err());
        assert!(sizes(&[-1], 99).is_err());
    }
}
