//! Lazy chunks: the header and block table of a stored chunk without its data, and a way to get the data.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 32 | header as stored, with the lazy bit of byte 31 set |
//! | 32 | 4 × nblocks | block starts as stored; zeros for chunks that are stored raw |
//! | T = 32 + 4 × nblocks | 4 | number of the chunk, or of its file in sparse frames, LE |
//! | T + 4 | 8 | position of the chunk in the frame, or the number of its file again, LE |
//! | T + 12 | 4 × nblocks | stored size of each block, LE |

use super::read::Place;
use super::store::Store;
use super::{Frame, View};
use crate::bytes::{get_i32, zeroed};
use crate::chunk::source::BlockSource;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, special};
use crate::format::offsets::Entry;
use crate::io::lock::Held;
use crate::io::{IoFile, OpenMode};
use std::borrow::Cow;
use std::sync::Arc;

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
        if matches!(self.store, Store::Memory(_)) {
            return Ok(LazyChunk { bytes: self.chunk(nchunk)?, source: None });
        }
        ensure(nchunk < self.nchunks(), ErrorKind::InvalidParam, "chunk number out of range")?;
        let view = self.view()?;
        let position = match view.state.index.entry(nchunk)? {
            Entry::Special(kind) => {
                let bytes = self.special_chunk(&view.state, nchunk, kind)?.to_vec();
                return Ok(LazyChunk { bytes: bytes.into(), source: None });
            }
            Entry::Stored(position) => position,
        };
        let place = Place::find(self, &view, position)?;
        let invalid = |e: Error| Error::new(ErrorKind::InvalidHeader, e.what());
        let header = ChunkHeader::read(&place.head).map_err(invalid)?;
        match header.special() {
            special::NONE => {
                let bytes = self.lazy_form(&view, nchunk, position, &place, &header)?;
                let is_lazy = bytes[31] & blosc2_flags::LAZY != 0 && header.is_extended();
                let source = is_lazy.then(|| self.source_of(&place, view));
                Ok(LazyChunk { bytes: bytes.into(), source })
            }
            special::VALUE => {
                let mut bytes = zeroed(place.cbytes)?;
                self.read_at(place.file.as_deref(), place.at, &mut bytes)?;
                Ok(LazyChunk { bytes: bytes.into(), source: None })
            }
            _ => Err(Error::new(ErrorKind::InvalidHeader, "stored chunk of a special value")),
        }
    }

    /// The stored bytes of chunk `nchunk`; `None` for special chunks, which have none.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk).
    pub fn chunk_source(&self, nchunk: usize) -> Result<Option<ChunkSource<'_>>> {
        ensure(nchunk < self.nchunks(), ErrorKind::InvalidParam, "chunk number out of range")?;
        let view = self.view()?;
        let Entry::Stored(position) = view.state.index.entry(nchunk)? else { return Ok(None) };
        let place = Place::find(self, &view, position)?;
        Ok(Some(self.source_of(&place, view)))
    }

    /// Where the blocks of `lazy` are, a chunk that [`lazy_chunk`](Self::lazy_chunk) gave. The frame may have changed
    /// since: reads that do not fit the lazy chunk fail, or give other data.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` if `lazy` is cut off, `InvalidHeader` if it makes no sense, `FileOpen`, `FileRead`.
    pub fn source_of_lazy(&self, lazy: &[u8]) -> Result<ChunkSource<'_>> {
        let header = ChunkHeader::read(lazy)?;
        let trailer = header.nblocks().checked_mul(4).and_then(|n| n.checked_add(EXTENDED_HEADER_LENGTH));
        let field = trailer.and_then(|at| lazy.get(at.checked_add(4)?..at.checked_add(12)?));
        let field = field.ok_or(Error::new(ErrorKind::ReadBuffer, "lazy chunk cut off"))?;
        let position = u64::from_le_bytes(field.try_into().expect("8 bytes"));
        let cbytes = header.cbytes as u64; // widening
        let held = Held::nothing();
        let outside = Error::new(ErrorKind::InvalidHeader, "lazy chunk outside of the frame");
        match &self.store {
            Store::Disk(disk) if disk.dir.is_some() => {
                let file = disk.io.open(&disk.chunk_path(position)?, OpenMode::Read)?;
                Ok(ChunkSource { frame: self, file: Some(file), at: 0, cbytes, _held: held })
            }
            Store::Disk(disk) => {
                let at = disk.base.checked_add(position).ok_or(outside)?;
                Ok(ChunkSource { frame: self, file: Some(disk.reader()?), at, cbytes, _held: held })
            }
            Store::Memory(_) => {
                Ok(ChunkSource { frame: self, file: None, at: position, cbytes, _held: held })
            }
        }
    }

    fn source_of(&self, place: &Place, view: View) -> ChunkSource<'_> {
        let cbytes = place.cbytes as u64; // widening
        ChunkSource { frame: self, file: place.file.clone(), at: place.at, cbytes, _held: view.held }
    }

    fn lazy_form(
        &self,
        view: &View,
        nchunk: usize,
        position: u64,
        place: &Place,
        header: &ChunkHeader,
    ) -> Result<Vec<u8>> {
        let invalid = ErrorKind::InvalidHeader;
        if !header.is_extended() {
            // The lazy bit is in the extended header; older chunks come complete.
            let mut bytes = zeroed(place.cbytes)?;
            self.read_at(place.file.as_deref(), place.at, &mut bytes)?;
            return Ok(bytes);
        }
        ensure(header.nbytes > 0, invalid, "chunk without blocks")?;
        let nblocks = header.nblocks();
        // Raw chunks have no block table; their number of blocks is bounded by their payload.
        let room = if header.is_memcpyed() { place.cbytes } else { (place.cbytes - 32) / 4 };
        ensure(nblocks > 0 && nblocks <= room, invalid, "more blocks than the chunk has room for")?;
        let trailer = EXTENDED_HEADER_LENGTH + 4 * nblocks;
        let mut bytes = zeroed(trailer + 12 + 4 * nblocks)?;
        bytes[..32].copy_from_slice(&place.head[..32]);
        bytes[31] |= blosc2_flags::LAZY;
        let sizes = if header.is_memcpyed() {
            (0..nblocks).map(|block| header.block_len(block)).collect()
        } else {
            let starts = &mut bytes[32..trailer];
            self.read_at(place.file.as_deref(), place.at + 32, starts)?;
            block_sizes(starts, place.cbytes)?
        };
        let sparse = view.state.header.sparse;
        let number = if sparse { position } else { nchunk as u64 }; // widening
        let at = if sparse { position } else { view.state.chunk_at(position) };
        // The field has 32 bits whatever the numbers: file numbers use all of them, chunk numbers are below 2^28.
        bytes[trailer..trailer + 4].copy_from_slice(&number.to_le_bytes()[..4]);
        bytes[trailer + 4..trailer + 12].copy_from_slice(&at.to_le_bytes());
        for (dest, size) in bytes[trailer + 12..].chunks_exact_mut(4).zip(sizes) {
            let size = i32::try_from(size).map_err(|_| Error::new(invalid, "block too large"))?;
            dest.copy_from_slice(&size.to_le_bytes());
        }
        Ok(bytes)
    }
}

/// Stored size of each block: blocks may be in any order, and each ends where the next one begins.
fn block_sizes(starts: &[u8], cbytes: usize) -> Result<Vec<usize>> {
    let damaged = Error::new(ErrorKind::InvalidHeader, "block start outside the chunk");
    let mut order = Vec::with_capacity(starts.len() / 4);
    for (block, at) in (0..starts.len()).step_by(4).enumerate() {
        let start = get_i32(starts, at).and_then(|start| usize::try_from(start).ok());
        let start = start.filter(|&start| start <= cbytes).ok_or(damaged)?;
        order.push((start, block));
    }
    let mut sizes = vec![0; order.len()];
    if order.is_sorted() {
        for (i, &(start, block)) in order.iter().enumerate() {
            sizes[block] = order.get(i + 1).map_or(cbytes, |next| next.0) - start;
        }
        return Ok(sizes);
    }
    order.sort_unstable();
    for (i, &(start, block)) in order.iter().enumerate() {
        sizes[block] = order.get(i + 1).map_or(cbytes, |next| next.0) - start;
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_where_the_next_one_begins_in_any_order() {
        let starts = [60i32, 44, 100].map(i32::to_le_bytes).concat();
        assert_eq!(block_sizes(&starts, 130).unwrap(), [40, 16, 30]);
        assert_eq!(block_sizes(&starts, 99).unwrap_err().kind(), ErrorKind::InvalidHeader);
        assert!(block_sizes(&(-1i32).to_le_bytes(), 99).is_err());
    }
}
