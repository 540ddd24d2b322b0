//! The packed super-chunk of 2015 to 2017: one little-endian buffer, without magic bytes.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 × 1 | version 0, flags 1 to 3 |
//! | 4 | 2 | codec: 0 blosclz, 1 lz4, 2 lz4hc, 3 snappy, 4 zlib, 5 zstd |
//! | 6 | 2 | compression level |
//! | 8 | 2 | filters: slot i in the three bits from 3 i on; 0 none, 1 shuffle, 2 bitshuffle, 3 delta |
//! | 10 | 2 | meta of the filters |
//! | 12 | 4 | chunksize, 0 = not fixed |
//! | 16 | 8 | number of chunks |
//! | 24 | 8 | nbytes: header, uncompressed chunks of all kinds, table |
//! | 32 | 8 | cbytes: length of the buffer |
//! | 40 | 4 × 8 | positions of the filters, codec, metadata and userdata chunks, 0 = none |
//! | 72 | 8 | position of the table of chunk positions, which ends the buffer |
//! | 80 | 16 | reserved |
//!
//! The chunks have the 16-byte header of Blosc1. From August to November 2017 the header had 120 bytes, the first 16 of
//! which told other things; such buffers are read, not written.

use super::chunk_header::{BasicHeader, offset};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::memory;
use std::ops::Range;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 96;
/// Length of the header of the variant of 2017.
const HEADER_LEN_2017: usize = 120;
const NCHUNKS: usize = 16;
const NBYTES: usize = 24;
const CBYTES: usize = 32;
const SPECIAL: usize = 40;
const TABLE: usize = 72;

/// What the header says about compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackedParams {
    /// Codec: 0 blosclz, 1 lz4, 2 lz4hc, 3 snappy, 4 zlib, 5 zstd.
    pub compcode: u16,
    /// Compression level.
    pub clevel: u16,
    /// The five filter slots: 0 none, 1 shuffle, 2 bitshuffle, 3 delta.
    pub filters: [u8; 5],
    /// Meta of the filters.
    pub filters_meta: u16,
    /// Bytes per chunk, 0 = not fixed.
    pub chunksize: u32,
}

/// The chunks that are no data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackedSpecial<'a> {
    /// Reference data of the delta filter.
    pub filters: Option<&'a [u8]>,
    /// Data of the codec.
    pub codec: Option<&'a [u8]>,
    /// Metadata of the library.
    pub metadata: Option<&'a [u8]>,
    /// Metadata of the application.
    pub userdata: Option<&'a [u8]>,
}

/// A packed super-chunk, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    /// Compression parameters; `None` in buffers of 2017, where they are lost.
    pub params: Option<PackedParams>,
    /// Bytes per item, from the first chunk; 1 without chunks.
    pub typesize: u8,
    /// The chunks that are no data.
    pub special: PackedSpecial<'a>,
    /// The data chunks, in order.
    pub chunks: Vec<&'a [u8]>,
}

impl<'a> Packed<'a> {
    /// Whether a buffer or file of `len` bytes that starts with `head`, at least [`HEADER_LEN`] bytes, can be a packed
    /// super-chunk: for telling it from others, before [`read`](Self::read) checks it.
    #[must_use]
    pub fn is_likely(head: &[u8], len: u64) -> bool {
        head.len() >= HEADER_LEN && get(head, CBYTES) == Ok(len) && get(head, TABLE).is_ok_and(|at| at <= len)
    }

    /// Reads the super-chunk that fills `bytes` from the start.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` if the buffer is too short, `VersionSupport` for another version, `InvalidHeader` for positions and
    /// sizes that contradict each other, `MemoryAlloc`.
    pub fn read(bytes: &'a [u8]) -> Result<Packed<'a>> {
        let invalid = ErrorKind::InvalidHeader;
        ensure(bytes.len() >= HEADER_LEN, ErrorKind::ReadBuffer, "buffer shorter than a packed header")?;
        let len = size(bytes, CBYTES)?;
        ensure(len >= HEADER_LEN && len <= bytes.len(), ErrorKind::ReadBuffer, "packed super-chunk cut off")?;
        let bytes = &bytes[..len];
        let nchunks = size(bytes, NCHUNKS)?;
        let table = size(bytes, TABLE)?;
        let table_len = nchunks.checked_mul(8);
        ensure(
            table_len.is_some_and(|n| table.checked_add(n) == Some(len)),
            invalid,
            "table of chunk positions does not end the packed super-chunk",
        )?;
        let taken = memory::with_capacity(nchunks + 4)?;
        let mut reader = Reader { bytes, table, taken, nbytes: 0 };
        let header_len = header_len(bytes, table, nchunks)?;
        ensure(table >= header_len, invalid, "table of chunk positions overlaps the header")?;
        let params = if header_len == HEADER_LEN {
            ensure(bytes[0] == 0, ErrorKind::VersionSupport, "unknown version of a packed super-chunk")?;
            Some(read_params(bytes))
        } else {
            None
        };
        let mut special = [None; 4];
        for (slot, chunk) in special.iter_mut().enumerate() {
            let position = size(bytes, SPECIAL + 8 * slot)?;
            if position != 0 {
                *chunk = Some(reader.chunk(position, header_len)?);
            }
        }
        let mut chunks = memory::with_capacity(nchunks)?;
        for n in 0..nchunks {
            chunks.push(reader.chunk(size(bytes, table + 8 * n)?, header_len)?);
        }
        reader.check_sums(header_len, nchunks)?;
        let [filters, codec, metadata, userdata] = special;
        Ok(Packed {
            params,
            typesize: chunks.first().map_or(1, |chunk| chunk[offset::TYPESIZE]),
            special: PackedSpecial { filters, codec, metadata, userdata },
            chunks,
        })
    }

    /// Whether the delta filter of then is in the first slot; its reference is the special chunk for filters.
    #[must_use]
    pub fn has_delta(&self) -> bool {
        self.params.is_some_and(|params| params.filters[0] == 3)
    }
}

/// Packs `chunks`, whole Blosc1 or Blosc2 chunks, with the special ones.
///
/// # Errors
///
/// `InvalidHeader` or `ReadBuffer` for damaged chunks, `MemoryAlloc`.
pub fn write(params: &PackedParams, special: &PackedSpecial<'_>, chunks: &[&[u8]]) -> Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER_LEN];
    bytes[4..6].copy_from_slice(&params.compcode.to_le_bytes());
    bytes[6..8].copy_from_slice(&params.clevel.to_le_bytes());
    let filters = params.filters.iter().rev().fold(0u16, |bits, &filter| bits << 3 | u16::from(filter & 7));
    bytes[8..10].copy_from_slice(&filters.to_le_bytes());
    bytes[10..12].copy_from_slice(&params.filters_meta.to_le_bytes());
    bytes[12..16].copy_from_slice(&params.chunksize.to_le_bytes());
    let mut nbytes = HEADER_LEN as u64; // widening
    let specials = [special.filters, special.codec, special.metadata, special.userdata];
    for (slot, chunk) in specials.into_iter().enumerate() {
        if let Some(chunk) = chunk {
            let at = append(&mut bytes, chunk, &mut nbytes)?;
            put(&mut bytes, SPECIAL + 8 * slot, at);
        }
    }
    let mut table = memory::with_capacity(8 * chunks.len())?;
    for chunk in chunks {
        table.extend_from_slice(&append(&mut bytes, chunk, &mut nbytes)?.to_le_bytes());
    }
    let table_at = bytes.len() as u64; // widening
    memory::extend(&mut bytes, &table)?;
    put(&mut bytes, TABLE, table_at);
    put(&mut bytes, NCHUNKS, chunks.len() as u64); // widening
    put(&mut bytes, NBYTES, nbytes + table.len() as u64); // widening
    let len = bytes.len() as u64; // widening
    put(&mut bytes, CBYTES, len);
    Ok(bytes)
}

/// Appends one chunk to `bytes`; returns its position.
fn append(bytes: &mut Vec<u8>, chunk: &[u8], nbytes: &mut u64) -> Result<u64> {
    let header = BasicHeader::read(chunk)?;
    let cbytes = usize::try_from(header.cbytes).expect("checked to be at least 16");
    let chunk = chunk.get(..cbytes).ok_or(Error::new(ErrorKind::ReadBuffer, "chunk cut off"))?;
    let size =
        u64::try_from(header.nbytes).map_err(|_| Error::new(ErrorKind::InvalidHeader, "negative size"))?;
    *nbytes += size;
    let at = bytes.len() as u64; // widening
    memory::extend(bytes, chunk)?;
    Ok(at)
}

/// Finds the chunks of a packed super-chunk.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Where the table of chunk positions starts.
    table: usize,
    /// Where chunks were found.
    taken: Vec<Range<usize>>,
    /// Sum of their uncompressed sizes.
    nbytes: u64,
}

impl<'a> Reader<'a> {
    /// The chunk at `position`, between header and table.
    fn chunk(&mut self, position: usize, header_len: usize) -> Result<&'a [u8]> {
        let invalid = ErrorKind::InvalidHeader;
        ensure(
            (header_len..self.table).contains(&position),
            invalid,
            "chunk outside of the packed super-chunk",
        )?;
        let rest = &self.bytes[position..self.table];
        let header = BasicHeader::read(rest).map_err(|e| Error::new(invalid, e.what()))?;
        let cbytes = usize::try_from(header.cbytes).expect("checked to be at least 16");
        ensure(cbytes <= rest.len(), invalid, "chunk reaches into the table")?;
        let nbytes = u64::try_from(header.nbytes).map_err(|_| Error::new(invalid, "negative size"))?;
        self.nbytes += nbytes;
        memory::push(&mut self.taken, position..position + cbytes)?;
        Ok(&rest[..cbytes])
    }

    /// Fails unless the chunks fill the body exactly, and their sizes are those that the header gives.
    fn check_sums(&mut self, header_len: usize, nchunks: usize) -> Result<()> {
        let invalid = ErrorKind::InvalidHeader;
        self.taken.sort_unstable_by_key(|range| range.start);
        let mut end = header_len;
        for range in &self.taken {
            ensure(range.start == end, invalid, "chunks overlap or leave gaps")?;
            end = range.end;
        }
        ensure(end == self.table, invalid, "packed chunks do not reach up to their table")?;
        let total = self.nbytes + (header_len + 8 * nchunks) as u64; // widening
        ensure(get(self.bytes, NBYTES)? == total, invalid, "nbytes is not the sum over the packed chunks")
    }
}

/// Tells the two variants apart by where the body starts.
fn header_len(bytes: &[u8], table: usize, nchunks: usize) -> Result<usize> {
    let mut first = if nchunks > 0 { size(bytes, table)? } else { table };
    for slot in 0..4 {
        let position = size(bytes, SPECIAL + 8 * slot)?;
        first = if position == 0 { first } else { first.min(position) };
    }
    match first {
        HEADER_LEN | HEADER_LEN_2017 => Ok(first),
        _ => Err(Error::new(ErrorKind::InvalidHeader, "packed chunks do not start after a header")),
    }
}

fn read_params(bytes: &[u8]) -> PackedParams {
    let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let bits = word(8);
    let slot = |i: usize| (bits >> (3 * i) & 7).to_le_bytes()[0];
    PackedParams {
        compcode: word(4),
        clevel: word(6),
        filters: [slot(0), slot(1), slot(2), slot(3), slot(4)],
        filters_meta: word(10),
        chunksize: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
    }
}

fn get(bytes: &[u8], at: usize) -> Result<u64> {
    let raw = at.checked_add(8).and_then(|end| bytes.get(at..end));
    let raw = raw.ok_or(Error::new(ErrorKind::ReadBuffer, "packed super-chunk cut off"))?;
    Ok(u64::from_le_bytes(raw.try_into().expect("8 bytes")))
}

/// A position or number; negative ones do not fit.
fn size(bytes: &[u8], at: usize) -> Result<usize> {
    let value = i64::try_from(get(bytes, at)?).ok().and_then(|value| usize::try_from(value).ok());
    value.ok_or(Error::new(ErrorKind::InvalidHeader, "position out of range"))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(version: u8, flags: u8, first: u32) -> Vec<u8> {
        let mut chunk = vec![version, 1, flags, 4, 32, 0, 0, 0, 32, 0, 0, 0, 48, 0, 0, 0];
        chunk.extend((first..first + 8).flat_map(u32::to_le_bytes));
        chunk
    }

    fn sample() -> Vec<u8> {
        let params =
            PackedParams { clevel: 5, filters: [1, 0, 0, 0, 0], filters_meta: 0x1234, ..Default::default() };
        let (a, b) = (chunk(2, 0x13, 1), chunk(2, 0x13, 101));
        write(&params, &PackedSpecial::default(), &[&a, &b]).unwrap()
    }

    #[test]
    fn the_documented_buffer_is_written() {
        let bytes = sample();
        assert_eq!(bytes.len(), 208);
        #[rustfmt::skip]
        let header = [
            0, 0, 0, 0, 0, 0, 5, 0, 1, 0, 0x34, 0x12, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 0, 0,
            0xd0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(bytes[..40], header);
        assert_eq!(bytes[0x48..0x50], [0xc0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[0xc0..], [0x60, 0, 0, 0, 0, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 0, 0]);
        let packed = Packed::read(&bytes).unwrap();
        assert_eq!(packed.chunks, [chunk(2, 0x13, 1), chunk(2, 0x13, 101)]);
        assert_eq!(packed.params.unwrap().filters_meta, 0x1234);
        assert!(Packed::is_likely(&bytes, bytes.len() as u64) && !packed.has_delta());
    }

    #[test]
    fn special_chunks_come_first() {
        let reference = chunk(2, 0x12, 7);
        let data = chunk(2, 0x13, 1);
        let special =
            PackedSpecial { filters: Some(&reference), userdata: Some(&data), ..Default::default() };
        let params = PackedParams { filters: [3, 1, 0, 0, 0], ..Default::default() };
        let bytes = write(&params, &special, &[&data]).unwrap();
        assert_eq!(bytes[8], 0x0b);
        let packed = Packed::read(&bytes).unwrap();
        assert_eq!(packed.special, special);
        assert!(packed.has_delta());
    }

    #[test]
    fn the_variant_of_2017_is_read() {
        let mut bytes = vec![0; 120];
        bytes[..12].copy_from_slice(&[0x11, 0x12, 0x13, 0x14, 0, 5, 0, 0, 4, 0, 0, 0]);
        put(&mut bytes, NCHUNKS, 2);
        put(&mut bytes, NBYTES, 0xc8);
        put(&mut bytes, CBYTES, 0xe8);
        put(&mut bytes, TABLE, 0xd8);
        bytes.extend(chunk(3, 0x13, 1));
        bytes.extend(chunk(3, 0x13, 101));
        bytes.extend([0x78u64, 0xa8].map(u64::to_le_bytes).concat());
        let packed = Packed::read(&bytes).unwrap();
        assert_eq!((packed.params, packed.typesize), (None, 4));
        assert_eq!(packed.chunks[1], chunk(3, 0x13, 101));
    }

    #[test]
    fn damaged_buffers_are_refused() {
        let good = sample();
        for cut in 0..good.len() {
            assert!(Packed::read(&good[..cut]).is_err(), "cut at {cut}");
        }
        for at in (NCHUNKS..80).chain(0xc0..0xd0) {
            for value in [1, 0x60, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                if bad[at] != value {
                    bad[at] = value;
                    assert!(Packed::read(&bad).is_err(), "byte {at} set to {value}");
                }
            }
        }
        let mut version = good;
        version[0] = 1;
        assert_eq!(Packed::read(&version).unwrap_err().kind(), ErrorKind::VersionSupport);
    }

    #[test]
    fn chunks_lie_one_after_the_other_up_to_their_table() {
        // Before each chunk, and after the last one.
        for at in [0x60, 0x90, 0xc0] {
            let mut bytes = sample();
            let table = size(&bytes, TABLE).unwrap();
            for place in [TABLE, CBYTES, table, table + 8] {
                let position = get(&bytes, place).unwrap();
                put(&mut bytes, place, if position >= at { position + 3 } else { position });
            }
            let at = usize::try_from(at).unwrap();
            bytes.splice(at..at, [0; 3]);
            assert_eq!(Packed::read(&bytes).unwrap_err().kind(), ErrorKind::InvalidHeader, "{at:#x}");
        }
        let mut longer = sample();
        longer[0x90 + 12] += 1;
        assert_eq!(Packed::read(&longer).unwrap_err().kind(), ErrorKind::InvalidHeader);
    }

    #[test]
    fn an_empty_super_chunk_is_a_header() {
        let bytes = write(&PackedParams::default(), &PackedSpecial::default(), &[]).unwrap();
        assert_eq!(bytes.len(), HEADER_LEN);
        assert!(Packed::read(&bytes).unwrap().chunks.is_empty());
    }
}
