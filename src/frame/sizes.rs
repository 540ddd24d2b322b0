//! How chunks that are added, replaced, deleted or reordered change the chunk size of a super-chunk.
//!
//! The chunk size is -1 as long as nothing was stored, then fixed (all chunks have it, only the last may be smaller),
//! and 0 once the sizes vary, which is for good.

#![forbid(unsafe_code)]

use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::{BasicHeader, offset};
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, flags2};
use crate::format::offsets::Entry;

/// The sizes of a super-chunk that the rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes per chunk; 0 variable, -1 not known yet.
    pub(crate) chunksize: i32,
    /// Number of chunks.
    pub(crate) nchunks: usize,
    /// Sum of the uncompressed chunk sizes.
    pub(crate) nbytes: u64,
    /// Whether chunks consist of variable-length blocks.
    pub(crate) vl_blocks: bool,
}

/// What handles show of a super-chunk, as of one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Number, size and kind of the chunks.
    pub(crate) sizes: Sizes,
    /// Bytes that the chunks take, without those of deleted ones as far as they are known.
    pub(crate) cbytes: u64,
    /// How often metalayers changed, or changes were taken over from another handle.
    pub(crate) tick: u64,
}

/// What the rules and the containers need to know of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkInfo {
    /// Uncompressed size in bytes.
    pub(crate) nbytes: i32,
    /// Compressed size in bytes.
    pub(crate) cbytes: usize,
    /// Whether it consists of variable-length blocks.
    pub(crate) vl_blocks: bool,
    /// Its special value, see [`special`](crate::format::consts::special).
    pub(crate) special: u8,
}

impl ChunkInfo {
    /// Reads what is needed from the start of `chunk`, which may be cut off after 32 bytes.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` or `InvalidHeader` for damaged headers.
    #[inline]
    pub(crate) fn read(chunk: &[u8]) -> Result<ChunkInfo> {
        let header = BasicHeader::read(chunk)?;
        ensure(header.nbytes >= 0, ErrorKind::InvalidHeader, "nbytes is negative")?;
        let cbytes = usize::try_from(header.cbytes).expect("checked to be at least 16");
        // Blosc1 chunks have data where the extended header has its flags.
        let extended = header.is_extended() && cbytes.min(chunk.len()) >= EXTENDED_HEADER_LENGTH;
        let flag_byte = |at: usize| if extended { chunk[at] } else { 0 };
        Ok(ChunkInfo {
            nbytes: header.nbytes,
            cbytes,
            vl_blocks: flag_byte(offset::FLAGS2) & flags2::VL_BLOCKS != 0,
            special: (flag_byte(offset::BLOSC2_FLAGS) & blosc2_flags::SPECIAL_MASK)
                >> blosc2_flags::SPECIAL_SHIFT,
        })
    }

    /// Whether frames keep this chunk as an index entry only.
    pub(crate) fn is_index_only(&self) -> bool {
        Entry::is_index_only(self.special)
    }
}

/// The bytes of exactly one chunk out of `chunk`, which may go on after it, and what its header says.
///
/// # Errors
///
/// Those of [`ChunkInfo::read`]; `ReadBuffer` if the chunk is cut off.
#[inline]
pub(crate) fn whole_chunk(chunk: &[u8]) -> Result<(&[u8], ChunkInfo)> {
    let info = ChunkInfo::read(chunk)?;
    let bytes = chunk.get(..info.cbytes).ok_or(Error::new(ErrorKind::ReadBuffer, "chunk cut off"))?;
    Ok((bytes, info))
}

impl Sizes {
    /// Uncompressed size of the last chunk of a super-chunk with fixed chunk size.
    fn last_nbytes(&self) -> u64 {
        let full = u64::try_from(self.chunksize).unwrap_or(0);
        let before = (self.nchunks as u64).saturating_sub(1).saturating_mul(full); // widening
        self.nbytes.saturating_sub(before)
    }

    fn last_is_short(&self) -> bool {
        self.nchunks > 0 && self.last_nbytes() < u64::try_from(self.chunksize).unwrap_or(0)
    }

    /// Sizes after `chunk` was put at `nchunk`, from 0 to `nchunks`.
    ///
    /// # Errors
    ///
    /// `failure` if the chunk does not fit in.
    #[inline] // as those below: a change of a list takes a few nanoseconds
    pub(crate) fn with_inserted(self, nchunk: usize, chunk: &ChunkInfo, failure: ErrorKind) -> Result<Sizes> {
        let mixed = self.nchunks > 0 && self.vl_blocks != chunk.vl_blocks;
        ensure(!mixed, failure, "chunks with and without variable-length blocks")?;
        let (c, n) = (self.chunksize, chunk.nbytes);
        let chunksize = if c < 0 {
            n
        } else if c == 0 {
            0
        } else if self.nchunks == 0 {
            ensure(n <= c, failure, "chunk larger than the chunk size")?;
            c
        } else {
            let at_end = nchunk == self.nchunks;
            let fits = !self.last_is_short() && if at_end { n <= c } else { n == c };
            if fits { c } else { 0 }
        };
        let nbytes = self.nbytes + u64::try_from(n).expect("checked not to be negative");
        Ok(Sizes { chunksize, nchunks: self.nchunks + 1, nbytes, vl_blocks: chunk.vl_blocks })
    }

    /// Sizes after chunk `nchunk` of `old_nbytes` bytes was replaced by `chunk`.
    ///
    /// # Errors
    ///
    /// `ChunkUpdate` if the chunk does not fit in.
    #[inline]
    pub(crate) fn with_updated(self, nchunk: usize, old_nbytes: u64, chunk: &ChunkInfo) -> Result<Sizes> {
        let mixed = self.nchunks > 1 && self.vl_blocks != chunk.vl_blocks;
        ensure(!mixed, ErrorKind::ChunkUpdate, "chunks with and without variable-length blocks")?;
        let (c, n) = (self.chunksize, chunk.nbytes);
        let last = nchunk + 1 == self.nchunks;
        let fits = c > 0 && n <= c && (last || n == c);
        let nbytes = self.nbytes.saturating_sub(old_nbytes) + u64::try_from(n).expect("not negative");
        let fixed = Sizes { nbytes, vl_blocks: chunk.vl_blocks, ..self };
        // Where there is a short chunk already, in the midst of the others, another one may be one too many.
        let fits = fits && (n == 0 || n == c || fixed.tell_nchunks());
        Ok(Sizes { chunksize: if fits { c } else { 0 }, ..fixed })
    }

    /// As frames can record the sizes after a change that stored `chunk`: they tell the number of chunks of a fixed
    /// size by the sum of the sizes, to which an empty chunk adds nothing.
    pub(crate) fn recordable_with(self, chunk: &ChunkInfo) -> Sizes {
        if chunk.nbytes == 0 { Sizes { chunksize: 0, ..self } } else { self }
    }

    /// Sizes after a chunk of `old_nbytes` bytes was deleted.
    #[inline]
    pub(crate) fn with_deleted(self, old_nbytes: u64) -> Sizes {
        let nchunks = self.nchunks - 1;
        Sizes {
            nchunks,
            nbytes: if nchunks == 0 { 0 } else { self.nbytes.saturating_sub(old_nbytes) },
            vl_blocks: self.vl_blocks && nchunks > 0,
            ..self
        }
    }

    /// Sizes after chunk `i` became what chunk `order[i]` was.
    pub(crate) fn with_reordered(self, order: &[usize]) -> Sizes {
        let moved = self.nchunks > 0 && order.last() != Some(&(self.nchunks - 1));
        let variable = self.chunksize > 0 && self.last_is_short() && moved;
        Sizes { chunksize: if variable { 0 } else { self.chunksize }, ..self }
    }

    /// Whether a frame with these sizes has as many chunks when it is opened: those of a fixed size are not counted.
    pub(crate) fn tell_nchunks(&self) -> bool {
        let full = u64::try_from(self.chunksize).unwrap_or(0);
        full == 0 || self.nbytes.div_ceil(full) == self.nchunks as u64 // widening
    }

    /// Uncompressed size of chunk `nchunk`, where the chunk size is fixed.
    #[inline]
    pub(crate) fn chunk_nbytes(&self, nchunk: usize) -> Option<u64> {
        let full = u64::try_from(self.chunksize).ok().filter(|&c| c > 0)?;
        Some(if nchunk + 1 == self.nchunks { self.last_nbytes().min(full) } else { full })
    }

    /// Uncompressed size of chunk `nchunk`, whose header says `own`. Where these sizes tell another one, they are
    /// believed, so that a damaged header does not make the sum wrong, unless the sizes in all headers `add_up`: they
    /// do where the C library put a short last chunk elsewhere.
    #[inline]
    pub(crate) fn believed_nbytes(&self, nchunk: usize, own: i32, add_up: impl FnOnce() -> bool) -> u64 {
        let own = u64::try_from(own).unwrap_or(0);
        match self.chunk_nbytes(nchunk) {
            Some(known) if known != own && !add_up() => known,
            _ => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(nbytes: i32) -> ChunkInfo {
        ChunkInfo { nbytes, cbytes: 40, vl_blocks: false, special: 0 }
    }

    fn sizes(chunksize: i32, chunks: &[u64]) -> Sizes {
        Sizes { chunksize, nchunks: chunks.len(), nbytes: chunks.iter().sum(), vl_blocks: false }
    }

    fn appended(s: Sizes, n: i32) -> Result<i32> {
        s.with_inserted(s.nchunks, &chunk(n), ErrorKind::ChunkAppend).map(|s| s.chunksize)
    }

    #[test]
    fn the_first_chunk_decides_and_short_ones_end_the_fixed_size() {
        assert_eq!(appended(sizes(-1, &[]), 400), Ok(400));
        assert_eq!(appended(sizes(400, &[]), 401).unwrap_err().kind(), ErrorKind::ChunkAppend);
        assert_eq!(appended(sizes(400, &[]), 300), Ok(400));
        assert_eq!(appended(sizes(400, &[400]), 300), Ok(400));
        assert_eq!(appended(sizes(400, &[400]), 401), Ok(0));
        assert_eq!(appended(sizes(400, &[400, 300]), 400), Ok(0));
        assert_eq!(appended(sizes(400, &[400]), 0), Ok(400));
        assert_eq!(appended(sizes(400, &[400, 0]), 400), Ok(0));
        assert_eq!(appended(sizes(0, &[7]), 9), Ok(0));
    }

    #[test]
    fn frames_cannot_count_empty_chunks_of_a_fixed_size() {
        let (s, empty) = (sizes(400, &[400]), chunk(0));
        let appended = s.with_inserted(1, &empty, ErrorKind::ChunkAppend).unwrap();
        assert_eq!(appended.recordable_with(&empty), sizes(0, &[400, 0]));
        assert_eq!(s.recordable_with(&chunk(400)), s);
        let updated = s.with_updated(0, 400, &empty).unwrap();
        assert_eq!((updated.chunksize, updated.recordable_with(&empty).chunksize), (400, 0));
    }

    #[test]
    fn inserting_in_the_middle_needs_full_chunks() {
        let s = sizes(400, &[400, 400]);
        assert_eq!(s.with_inserted(0, &chunk(400), ErrorKind::ChunkInsert).unwrap().chunksize, 400);
        assert_eq!(s.with_inserted(1, &chunk(300), ErrorKind::ChunkInsert).unwrap().chunksize, 0);
        assert_eq!(s.with_inserted(2, &chunk(300), ErrorKind::ChunkInsert).unwrap().chunksize, 400);
    }

    #[test]
    fn updates_may_only_resize_the_last_chunk() {
        let s = sizes(400, &[400, 100]);
        assert_eq!(s.with_updated(1, 100, &chunk(400)).unwrap(), sizes(400, &[400, 400]));
        assert_eq!(s.with_updated(0, 400, &chunk(100)).unwrap(), sizes(0, &[100, 100]));
        assert_eq!(s.with_updated(1, 100, &chunk(500)).unwrap().chunksize, 0);
    }

    #[test]
    fn the_sum_tells_the_size_of_the_last_chunk_and_their_number() {
        let s = sizes(400, &[400, 100]);
        assert_eq!([0, 1].map(|n| s.chunk_nbytes(n)), [Some(400), Some(100)]);
        assert_eq!(sizes(400, &[400, 400]).chunk_nbytes(1), Some(400));
        assert_eq!(sizes(400, &[400, 0]).chunk_nbytes(1), Some(0));
        assert_eq!(sizes(0, &[400]).chunk_nbytes(0), None);
        assert!(s.tell_nchunks() && sizes(0, &[9, 0]).tell_nchunks() && sizes(-1, &[]).tell_nchunks());
        assert!(!sizes(400, &[400, 0]).tell_nchunks() && !sizes(400, &[100, 100]).tell_nchunks());
    }

    #[test]
    fn kinds_of_blocks_do_not_mix() {
        let vl = ChunkInfo { vl_blocks: true, ..chunk(5) };
        let s = sizes(400, &[400]);
        assert_eq!(
            s.with_inserted(1, &vl, ErrorKind::ChunkInsert).unwrap_err().kind(),
            ErrorKind::ChunkInsert
        );
        assert!(s.with_updated(0, 400, &vl).unwrap().vl_blocks);
        let two = sizes(400, &[400, 400]);
        assert_eq!(two.with_updated(0, 400, &vl).unwrap_err().kind(), ErrorKind::ChunkUpdate);
    }

    #[test]
    fn moving_a_short_last_chunk_makes_the_size_variable() {
        let s = sizes(400, &[400, 100]);
        assert_eq!(s.with_reordered(&[1, 0]).chunksize, 0);
        assert_eq!(s.with_reordered(&[0, 1]).chunksize, 400);
        assert_eq!(sizes(400, &[400, 400]).with_reordered(&[1, 0]).chunksize, 400);
        assert_eq!(s.chunk_nbytes(1), Some(100));
        assert_eq!(s.chunk_nbytes(0), Some(400));
    }
}
