//! The chunk index in memory, decoded once.

#![forbid(unsafe_code)]

use super::index_codec::{self, IndexOf};
use super::table::{Part, Table};
use crate::bytes::bytes_of_mut;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, special};
use crate::format::frame_header::Layout;
use crate::format::offsets::{Entry, MAX_CHUNKS};
use crate::memory::{collect, filled, no_memory, zeroed};
use std::sync::Arc;

/// An index larger than this, in bytes, must not expand from almost nothing.
const LARGE: usize = 64 << 20;
/// How much a large index may have been compressed.
const MAX_RATIO: usize = 1 << 10;

/// Where each chunk is.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// One entry per chunk.
    Table(Arc<Table>),
    /// The same entry for all chunks, however many.
    Run {
        /// The entry.
        entry: i64,
        /// Number of chunks.
        nchunks: usize,
    },
}

impl Default for Index {
    fn default() -> Index {
        Index::Table(Arc::default())
    }
}

impl Index {
    /// Number of chunks.
    pub(crate) fn len(&self) -> usize {
        match self {
            Index::Table(table) => table.len(),
            Index::Run { nchunks, .. } => *nchunks,
        }
    }

    /// The stored number for chunk `nchunk`.
    pub(crate) fn raw(&self, nchunk: usize) -> Option<i64> {
        match self {
            Index::Table(table) => table.get(nchunk),
            Index::Run { entry, nchunks } => (nchunk < *nchunks).then_some(*entry),
        }
    }

    /// Where chunk `nchunk` is.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such chunk, `Data` for an unknown special value.
    pub(crate) fn entry(&self, nchunk: usize) -> Result<Entry> {
        let none = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        Entry::decode(self.raw(nchunk).ok_or(none)?)
    }

    /// All entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let (entry, nchunks) = match self {
            Index::Table(_) => (0, 0),
            Index::Run { entry, nchunks } => (*entry, *nchunks),
        };
        self.parts().flatten().copied().chain(std::iter::repeat_n(entry, nchunks))
    }

    /// The entries of a table, in order.
    fn parts(&self) -> impl Iterator<Item = &[i64]> {
        let parts = match self {
            Index::Table(table) => table.parts(),
            Index::Run { .. } => &[],
        };
        parts.iter().map(Part::entries)
    }

    /// All entries, in one piece.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn entries(&self) -> Result<Vec<i64>> {
        match self {
            Index::Table(table) => table.entries(0, 0),
            Index::Run { entry, nchunks } => filled(*entry, *nchunks),
        }
    }

    /// An index of these entries.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn of(entries: Vec<i64>) -> Result<Index> {
        Ok(Index::Table(Arc::new(Table::of(entries)?)))
    }

    /// Makes these the entries.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn replace(&mut self, entries: Vec<i64>) -> Result<()> {
        let mut table = Table::of(entries)?;
        if let Index::Table(old) = self {
            table.learn_from(old);
        }
        *self = Index::Table(Arc::new(table));
        Ok(())
    }

    /// Makes `entry` that of chunk `nchunk`.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`: a frame of a few bytes may have the same entry for hundreds of millions of chunks.
    ///
    /// # Panics
    ///
    /// If there is no such chunk.
    pub(crate) fn set(&mut self, nchunk: usize, entry: i64) -> Result<()> {
        self.table_mut()?.set(nchunk, entry)
    }

    /// Inserts `entry` for `count` chunks before chunk `nchunk`.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    ///
    /// # Panics
    ///
    /// If there are fewer chunks.
    pub(crate) fn insert(&mut self, nchunk: usize, count: usize, entry: i64) -> Result<()> {
        match self {
            Index::Run { entry: all, nchunks } if *all == entry && nchunk <= *nchunks => {
                *nchunks = nchunks.checked_add(count).ok_or_else(no_memory)?;
                Ok(())
            }
            _ => self.table_mut()?.insert(nchunk, count, entry),
        }
    }

    /// Replaces the entries for which `change` gives others.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set); some entries may be replaced then.
    pub(crate) fn change_each(&mut self, change: impl FnMut(i64) -> Option<i64>) -> Result<()> {
        self.table_mut()?.change_each(change)
    }

    /// The entries as a table that can be changed.
    fn table_mut(&mut self) -> Result<&mut Table> {
        if let Index::Run { entry, nchunks } = *self {
            *self = Index::of(filled(entry, nchunks)?)?;
        }
        match self {
            Index::Table(table) => {
                if Arc::get_mut(table).is_none() {
                    *table = Arc::new(table.copy()?);
                }
                Ok(Arc::get_mut(table).expect("nobody else has the copy"))
            }
            Index::Run { .. } => unreachable!("made a table above"),
        }
    }

    /// Positions or file numbers of the stored chunks.
    pub(crate) fn stored(&self) -> impl Iterator<Item = u64> + '_ {
        self.iter().filter_map(|raw| u64::try_from(raw).ok())
    }

    /// Whether any chunk is stored.
    pub(crate) fn has_stored(&self) -> bool {
        match self {
            // Special entries are negative: only if all are, the sign is left.
            Index::Table(_) => self.parts().flatten().fold(-1, |all, entry| all & entry) >= 0,
            Index::Run { entry, .. } => *entry >= 0,
        }
    }

    /// Whether no stored chunk is at a position, or has a number, beyond `last`.
    pub(crate) fn is_within(&self, last: i64) -> bool {
        // No entry lies between, and the differences do not overflow.
        let last = last.max(-1);
        // Negative for an entry that is beyond and, not being a special one, not negative itself.
        let beyond = |entry: i64| last.wrapping_sub(entry) & !entry;
        match self {
            Index::Table(_) => self.parts().flatten().fold(0, |any, &entry| any | beyond(entry)) >= 0,
            Index::Run { entry, .. } => beyond(*entry) >= 0,
        }
    }

    /// The bytes to store; empty without chunks. What the parts of a table become is noted, so that it is made once.
    ///
    /// # Errors
    ///
    /// Those of the compressor; `InvalidParam` for too many chunks; `Data` for an index that [`read`](Self::read)
    /// refuses, as may come of very many stored chunks at the same place.
    pub(crate) fn write(&mut self, of: IndexOf) -> Result<Vec<u8>> {
        require(self.len() <= MAX_CHUNKS, "too many chunks")?;
        if matches!(self, Index::Table(table) if index_codec::has_unknown_parts(table)) {
            index_codec::note_parts(self.table_mut()?)?;
        }
        match self {
            Index::Table(table) if table.len() == 0 => Ok(Vec::new()),
            Index::Table(table) => {
                let chunk = index_codec::compress(table, of)?;
                check_ratio(size_of::<i64>() * table.len(), chunk.len())?;
                Ok(chunk)
            }
            Index::Run { entry, nchunks } => Ok(index_codec::repeated(*entry, *nchunks)),
        }
    }

    /// Reads the index chunk `chunk`. `nchunks` is the number of chunks, if the header of the frame gives it;
    /// `layout` is that of the header: the old ones, from before 2.0.0-rc1, go with entries of 16 or 32 bits, too.
    ///
    /// # Errors
    ///
    /// `Data` or `InvalidHeader` if the index does not fit the frame, else those of the decompressor.
    pub(crate) fn read(chunk: &[u8], nchunks: Option<usize>, layout: Layout) -> Result<Index> {
        let header = ChunkHeader::read(chunk)?;
        let width = match nchunks {
            Some(n) if layout != Layout::Stable && n > 0 => header.nbytes / n,
            _ => 8,
        };
        ensure(matches!(width, 8 | 4 | 2), ErrorKind::Data, "index entries of an impossible width")?;
        ensure(
            header.nbytes % width == 0,
            ErrorKind::InvalidHeader,
            "index is not a whole number of entries",
        )?;
        let count = header.nbytes / width;
        ensure(nchunks.is_none_or(|n| n == count), ErrorKind::Data, "index has another number of chunks")?;
        ensure(count <= MAX_CHUNKS, ErrorKind::InvalidHeader, "too many chunks")?;
        if let Some(entry) = run_entry(chunk, &header, width) {
            return Ok(Index::Run { entry, nchunks: count });
        }
        check_ratio(header.nbytes, chunk.len())?;
        if width < 8 {
            let mut raw: Vec<u8> = zeroed(header.nbytes)?;
            index_codec::decompress(chunk, &mut raw)?;
            return Index::of(collect(raw.chunks_exact(width).map(read_entry))?);
        }
        let mut table = zeroed(count)?;
        index_codec::decompress(chunk, bytes_of_mut(&mut table))?;
        table.iter_mut().for_each(|entry| *entry = i64::from_le(*entry));
        Index::of(table)
    }
}

/// Fails if an index of `nbytes` bytes would expand from far fewer.
fn check_ratio(nbytes: usize, cbytes: usize) -> Result<()> {
    let honest = nbytes <= LARGE || nbytes / MAX_RATIO <= cbytes;
    ensure(honest, ErrorKind::Data, "index much larger than its chunk")
}

/// The entry that the whole index repeats, if the index chunk is a special one that says so.
fn run_entry(chunk: &[u8], header: &ChunkHeader, width: usize) -> Option<i64> {
    match header.special() {
        special::ZERO => Some(0),
        special::VALUE => {
            let value = chunk.get(EXTENDED_HEADER_LENGTH..header.cbytes)?;
            (value.len() == width).then(|| read_entry(value))
        }
        _ => None,
    }
}

/// An entry of up to 8 bytes, little-endian.
fn read_entry(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::consts::blosc2_flags;

    #[test]
    fn runs_stay_compact_until_they_are_changed() {
        let entry = Entry::Special(special::NAN).encode();
        let chunk = index_codec::repeated(entry, 26);
        #[rustfmt::skip]
        let expected = [
            5, 1, 5, 8, 0xd0, 0, 0, 0, 0xd0, 0, 0, 0, 0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x30,
            0, 0, 0, 0, 0, 0, 0, 0x82,
        ];
        assert_eq!(chunk, expected);
        let mut index = Index::read(&chunk, Some(26), Layout::Stable).unwrap();
        assert!(matches!(index, Index::Run { .. }));
        assert_eq!(index.entry(25), Ok(Entry::Special(special::NAN)));
        assert_eq!(index.entry(26).unwrap_err().kind(), ErrorKind::InvalidParam);
        index.insert(26, 4, entry).unwrap();
        index.insert(3, 1, entry).unwrap();
        assert!(matches!(index, Index::Run { nchunks: 31, .. }));
        assert_eq!(index.insert(31, usize::MAX, entry).unwrap_err().kind(), ErrorKind::MemoryAlloc);
        let mut longer = index.clone();
        longer.insert(31, 2, 7).unwrap();
        assert_eq!(longer.iter().collect::<Vec<_>>(), [&[entry; 31][..], &[7, 7]].concat());
        index.set(3, 7).unwrap();
        assert_eq!(index.iter().filter(|&e| e == entry).count(), 30);
    }

    #[test]
    fn positions_beyond_the_last_are_found_among_special_entries() {
        let special = Entry::Special(special::NAN).encode();
        let table = |entries: &[i64]| Index::of(entries.to_vec()).unwrap();
        for (index, stored, last) in [
            (table(&[]), false, i64::MIN),
            (table(&[special, i64::MIN, -1]), false, i64::MIN),
            (table(&[special, 0]), true, 0),
            (table(&[7, special, 900, 3, 899]), true, 900),
            (table(&[0, i64::MAX, special]), true, i64::MAX),
            (Index::Run { entry: special, nchunks: 9 }, false, i64::MIN),
            (Index::Run { entry: 900, nchunks: 9 }, true, 900),
        ] {
            assert_eq!(index.has_stored(), stored);
            for limit in [-16, -1, 0, 1, 899, 900, 901, i64::MAX - 1, i64::MAX] {
                assert_eq!(index.is_within(limit), limit >= last, "{index:?} up to {limit}");
            }
        }
    }

    #[test]
    fn an_index_that_could_not_be_read_is_not_written() {
        let count = LARGE / size_of::<i64>() + 1;
        let same = |entry| Index::of(vec![entry; count]).unwrap().write(IndexOf::Other);
        assert_eq!(same(0).unwrap_err().kind(), ErrorKind::Data);
        let special = same(Entry::Special(special::ZERO).encode()).unwrap();
        assert_eq!(Index::read(&special, Some(count), Layout::Stable).unwrap().len(), count);
    }

    #[test]
    fn no_stored_chunk_is_within_a_frame_without_room_for_one() {
        for entry in [0, i64::MAX - 20, i64::MAX] {
            let index = Index::of(vec![entry, entry]).unwrap();
            assert!(!index.is_within(-16) && index.is_within(entry), "{entry}");
        }
        let special = Entry::Special(special::NAN).encode();
        assert!(Index::of(vec![special]).unwrap().is_within(-16));
    }

    #[test]
    fn a_small_index_is_stored_as_documented() {
        let mut index = Index::of(vec![0, 394, 813]).unwrap();
        let chunk = index.write(IndexOf::Other).unwrap();
        assert_eq!(chunk.len(), 56);
        assert_eq!(chunk[..16], [5, 1, 7, 8, 0x18, 0, 0, 0, 0x18, 0, 0, 0, 0x38, 0, 0, 0]);
        assert_eq!(chunk[16..32], [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, blosc2_flags::HOST]);
        assert_eq!(
            Index::read(&chunk, Some(3), Layout::Stable).unwrap().iter().collect::<Vec<_>>(),
            [0, 394, 813]
        );
        assert!(Index::read(&chunk, Some(4), Layout::Stable).is_err());
        assert!(Index::read(&chunk[..50], Some(3), Layout::Stable).is_err());
    }
}
