//! Compression of the chunk index, with the parameters that the format's other writers use.

#![forbid(unsafe_code)]

use super::table::{self, Table};
use crate::bytes::{bytes_of, to_i32};
use crate::chunk::{self, CParams, Encoding};
use crate::error::{ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, flags, special, split};
use crate::memory::{copy_of, extend, with_capacity, zeroed};
use std::borrow::Cow;
use std::sync::Arc;

/// Which operation wrote the index; it decides whether an index that compresses badly is kept compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOf {
    /// A frame from which a chunk was deleted: 8 more bytes are offered to the compressor.
    Delete,
    /// Any other operation.
    Other,
}

/// Bytes of an entry.
const ENTRY: usize = 8;
/// Bytes of a block of the index chunk.
const BLOCKSIZE: usize = 16384;
/// Bytes that a block may take more than its entries: it has a size in front.
const ROOM: usize = 4;
/// What a block of zeros becomes: a size of 0, with no bytes after it.
const ZEROS: [u8; 4] = [0; 4];

const _: () = assert!(BLOCKSIZE == table::PART * ENTRY, "parts of the table are the blocks of the chunk");

fn params() -> CParams {
    CParams { typesize: ENTRY, blocksize: BLOCKSIZE, splitmode: split::NEVER, ..CParams::default() }
}

/// Compresses the entries of `table` as the chunk that ends the payload area: it is put together from what its parts
/// become, if that was [noted](note_parts).
///
/// # Errors
///
/// Those of the compressor; `MemoryAlloc`.
pub(crate) fn compress(table: &Table, of: IndexOf) -> Result<Vec<u8>> {
    match put_together(table)? {
        Some(chunk) => Ok(chunk),
        None => compress_whole(table, of),
    }
}

/// Whether there is something to [note](note_parts). What a single part becomes is decided by all of the rules.
pub(crate) fn has_unknown_parts(table: &Table) -> bool {
    table.parts().len() > 1 && table.parts().iter().any(|part| part.streams.is_none())
}

/// Compresses all entries of `table` at once.
fn compress_whole(table: &Table, of: IndexOf) -> Result<Vec<u8>> {
    let raw = match table.parts() {
        [part] => stored_bytes(part.entries())?,
        parts => {
            let mut raw = with_capacity(ENTRY * table.len())?;
            for part in parts {
                extend(&mut raw, &stored_bytes(part.entries())?)?;
            }
            raw.into()
        }
    };
    let extra = if of == IndexOf::Delete { ENTRY } else { 0 };
    let mut chunk = zeroed(raw.len() + EXTENDED_HEADER_LENGTH + extra)?;
    let cbytes = chunk::compress(&params(), &raw, &mut chunk)?;
    ensure(cbytes > 0, ErrorKind::Failure, "index cannot be compressed")?;
    chunk.truncate(cbytes);
    Ok(chunk)
}

/// The header of an index chunk of `nbytes` bytes that is not stored raw.
fn coded_header(nbytes: usize) -> ChunkHeader {
    ChunkHeader {
        flags: flags::EXTENDED | flags::DONT_SPLIT,
        typesize: ENTRY,
        nbytes,
        blocksize: BLOCKSIZE,
        filters: params().filters,
        blosc2_flags: blosc2_flags::HOST,
        ..ChunkHeader::BARE
    }
}

/// The entries as they are stored: little-endian.
fn stored_bytes(entries: &[i64]) -> Result<Cow<'_, [u8]>> {
    if cfg!(target_endian = "little") {
        return Ok(bytes_of(entries).into());
    }
    let mut raw = zeroed(ENTRY * entries.len())?;
    for (bytes, entry) in raw.chunks_exact_mut(ENTRY).zip(entries) {
        bytes.copy_from_slice(&entry.to_le_bytes());
    }
    Ok(raw.into())
}

/// Compresses the parts of `table` whose compressed form is not known, and keeps the results with them.
///
/// # Errors
///
/// As [`compress`].
pub(crate) fn note_parts(table: &mut Table) -> Result<()> {
    let (params, header) = (params(), coded_header(ENTRY * table.len()));
    let enc = Encoding::new(&params);
    for part in table.parts_mut() {
        if part.streams.is_none() {
            part.streams = Some(Arc::new(block_of(&enc, &header, part.entries())?));
        }
    }
    Ok(())
}

/// The compressed form of `entries` as one block of the chunk with this header. Empty if that chunk cannot hold such a
/// block: then all entries are compressed at once.
fn block_of(enc: &Encoding<'_>, header: &ChunkHeader, entries: &[i64]) -> Result<Vec<u8>> {
    let raw = stored_bytes(entries)?;
    let mut streams = zeroed(raw.len() + ROOM)?;
    let len = chunk::compress_block(enc, header, &raw, &mut streams)?.unwrap_or(0);
    copy_of(&streams[..len])
}

/// The chunk that consists of the blocks noted in `table`; `None` unless it is the one that compressing all entries at
/// once gives.
fn put_together(table: &Table) -> Result<Option<Vec<u8>>> {
    if table.parts().len() <= 1 {
        return Ok(None);
    }
    let mut header = coded_header(ENTRY * table.len());
    let start = header.table_end();
    let Some(end) = end_of_blocks(table, start) else { return Ok(None) };
    header.cbytes = end;
    let mut front = [0; EXTENDED_HEADER_LENGTH];
    header.write(&mut front);
    let mut chunk = with_capacity(end)?;
    chunk.extend_from_slice(&front);
    let blocks = || table.parts().iter().filter_map(|part| part.streams.as_ref());
    let mut at = start;
    for streams in blocks() {
        chunk.extend_from_slice(&to_i32(at, ErrorKind::Data)?.to_le_bytes());
        at += streams.len();
    }
    blocks().for_each(|streams| chunk.extend_from_slice(streams));
    Ok(Some(chunk))
}

/// Where the blocks noted in `table`, of several parts, end if the first one is at `start` of a chunk; `None` unless
/// compressing all entries at once gives a chunk of these blocks.
fn end_of_blocks(table: &Table, start: usize) -> Option<usize> {
    let nbytes = ENTRY * table.len();
    let (mut end, mut all_zeros) = (start, true);
    for part in table.parts() {
        let streams = part.streams.as_ref().filter(|streams| !streams.is_empty())?;
        // Where there is less room than for all bytes of a block, it may become another one.
        if end + ENTRY * part.entries().len() > nbytes {
            return None;
        }
        end += streams.len();
        all_zeros &= streams[..] == ZEROS;
    }
    // Zeros alone become a special value.
    (!all_zeros).then_some(end)
}

/// The index of a frame filled with one special value: a repeated-value chunk.
pub(crate) fn repeated(entry: i64, nchunks: usize) -> Vec<u8> {
    let header = ChunkHeader {
        typesize: ENTRY,
        nbytes: nchunks * ENTRY,
        blocksize: (nchunks * ENTRY).min(BLOCKSIZE),
        cbytes: EXTENDED_HEADER_LENGTH + ENTRY,
        blosc2_flags: special::VALUE << blosc2_flags::SPECIAL_SHIFT,
        ..ChunkHeader::BARE
    };
    let mut bytes = [0; EXTENDED_HEADER_LENGTH];
    header.write(&mut bytes);
    let mut chunk = bytes.to_vec();
    chunk.extend_from_slice(&entry.to_le_bytes());
    chunk
}

/// Decompresses the index chunk `chunk` into `dest`, which has its exact size.
///
/// # Errors
///
/// Those of the decompressor.
pub(crate) fn decompress(chunk: &[u8], dest: &mut [u8]) -> Result<()> {
    let nbytes = chunk::decompress(chunk, dest)?;
    ensure(nbytes == dest.len(), ErrorKind::Data, "index decompresses to another size")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Positions of chunks of about one size, numbers of files, noise, one number, or special values among positions.
    fn entry(kind: usize, n: usize, random: &mut Random) -> i64 {
        let number = |n: usize| i64::try_from(n).unwrap();
        match kind {
            0 => number(n * 5000 + random.below(3000)),
            1 => number(n),
            2 => number(random.below(1 << 30) << 30 | random.below(1 << 30)),
            3 => 0,
            _ if random.below(3) == 0 => i64::MIN,
            _ => number(n * 80),
        }
    }

    #[test]
    fn an_index_is_the_same_chunk_whatever_was_known_of_it() {
        let mut random = Random::new(11);
        for kind in 0..5 {
            for len in [1, 2000, 2048, 2049, 2052, 2300, 4096, 6000, 10_000] {
                let entries = (0..len).map(|n| entry(kind, n, &mut random)).collect();
                let mut table = Table::of(entries).unwrap();
                for (step, of) in [IndexOf::Other, IndexOf::Delete].into_iter().cycle().enumerate().take(8) {
                    let whole = compress_whole(&table, of).unwrap();
                    note_parts(&mut table).unwrap();
                    let chunk = compress(&table, of).unwrap();
                    assert!(chunk == whole, "kind {kind}, {} entries, step {step}", table.len());
                    let at = random.below(table.len() + 1);
                    match step % 4 {
                        0 => table.insert(table.len(), 1 + random.below(5), 12_345_678).unwrap(),
                        1 => table.set(at.min(table.len() - 1), -7).unwrap(),
                        2 => table.insert(at, 3, 99).unwrap(),
                        _ => table.insert(table.len(), 2000, 0).unwrap(),
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_made_of_a_part_is_not_made_again() {
        let mut table = Table::of((0..5000).map(|n| n * 300).collect()).unwrap();
        assert!(has_unknown_parts(&table));
        note_parts(&mut table).unwrap();
        assert!(!has_unknown_parts(&table));
        let made = |table: &Table| -> Vec<_> {
            table.parts().iter().map(|part| part.streams.as_ref().map(Arc::as_ptr)).collect()
        };
        let before = made(&table);
        note_parts(&mut table).unwrap();
        assert_eq!(made(&table), before);
        let _old = table.copy().unwrap(); // so that no memory is used again
        table.insert(5000, 1, 1_500_000).unwrap();
        assert!(has_unknown_parts(&table));
        note_parts(&mut table).unwrap();
        assert_eq!(made(&table)[..2], before[..2]);
        assert_ne!(made(&table)[2], before[2]);
    }
}
