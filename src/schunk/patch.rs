//! New values for a few bytes of a chunk: only the blocks that hold them are compressed again.

use crate::bytes::{get_i32, put_i32, to_i32};
use crate::chunk::{self, Decoding, Encoding, Source, Unit};
use crate::error::{ErrorKind, Result};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, filter, special};
use std::ops::Range;

/// The chunk `old` with `src` at byte `start` of its data; see [`rewrite`].
///
/// # Errors
///
/// As [`rewrite`].
pub(super) fn rewrite_blocks(
    old: &[u8],
    start: usize,
    src: &[u8],
    dec: &Decoding<'_>,
    enc: &Encoding<'_>,
) -> Result<Option<Vec<u8>>> {
    let header = ChunkHeader::read(old)?;
    let end = start + src.len();
    let span = |block: usize| {
        let at = block * header.blocksize;
        (at, overlap(at..at + header.block_len(block), start..end))
    };
    let touched: Vec<usize> = (start / header.blocksize..end.div_ceil(header.blocksize)).collect();
    let changes = Changes {
        touched: &touched,
        covers: &|block| span(block).1.len() == header.block_len(block),
        apply: &|block, data| {
            let (at, covered) = span(block);
            data[covered.start - at..covered.end - at]
                .copy_from_slice(&src[covered.start - start..covered.end - start]);
            Ok(())
        },
    };
    rewrite(old, &changes, dec, enc)
}

/// New values for some blocks of a chunk.
pub(crate) struct Changes<'a> {
    /// The blocks, ascending.
    pub(crate) touched: &'a [usize],
    /// Whether all bytes of a block are new, so that the old ones are not needed.
    pub(crate) covers: &'a dyn Fn(usize) -> bool,
    /// Writes the new values to the data of a block.
    pub(crate) apply: &'a dyn Fn(usize, &mut [u8]) -> Result<()>,
}

/// The chunk `old` with `changes`, or `None` if its blocks are not independent of each other, differ in kind from what
/// `enc` makes, or if so many change that the whole chunk may as well be compressed anew.
///
/// # Errors
///
/// Those of decompressing and compressing, and of applying the changes.
pub(crate) fn rewrite(
    old: &[u8],
    changes: &Changes<'_>,
    dec: &Decoding<'_>,
    enc: &Encoding<'_>,
) -> Result<Option<Vec<u8>>> {
    let header = ChunkHeader::read(old)?;
    let Some(table) = independent_blocks(old, &header) else { return Ok(None) };
    let touched = changes.touched;
    let callbacks = enc.prefilter.is_some() || dec.postfilter.is_some();
    let known = touched.last().is_some_and(|&last| last < header.nblocks());
    if callbacks || !known || !same_kind(&header, enc) || touched.len() * 2 > header.nblocks() {
        return Ok(None);
    }
    let old = &old[..header.cbytes.min(old.len())];
    let spans = spans(&table, header.cbytes);
    let mut streams = Vec::with_capacity(touched.len());
    for &block in touched {
        let Some(stream) = encode_block(old, &header, block, changes, dec, enc)? else { return Ok(None) };
        streams.push(stream);
    }
    replace(old, &table, &spans, touched, &streams).map(Some)
}

/// The block table of a chunk whose blocks can be decoded, and so replaced, one by one.
fn independent_blocks(chunk: &[u8], header: &ChunkHeader) -> Option<Vec<usize>> {
    let plain = header.is_extended()
        && header.special() == special::NONE
        && !header.is_memcpyed()
        && !header.is_vl()
        && header.blosc2_flags & (blosc2_flags::USE_DICT | blosc2_flags::INSTRUMENTED) == 0
        && !header.filters.contains(&filter::DELTA)
        && header.nblocks() > 1;
    if !plain {
        return None;
    }
    let first = EXTENDED_HEADER_LENGTH + 4 * header.nblocks();
    let start = |block: usize| {
        let start = usize::try_from(get_i32(chunk, EXTENDED_HEADER_LENGTH + 4 * block)?).ok()?;
        (first..header.cbytes).contains(&start).then_some(start)
    };
    (0..header.nblocks()).map(start).collect()
}

/// Whether `enc` makes blocks that may stand in a chunk with this header.
fn same_kind(header: &ChunkHeader, enc: &Encoding<'_>) -> bool {
    let params = enc.params;
    header.filters == params.filters
        && header.filters_meta == params.filters_meta
        && header.typesize == if params.typesize > 255 { 1 } else { params.typesize }
        && !params.use_dict
        && !params.instrumented
        && params.clevel > 0
        && !enc.blosc1_header
}

/// The streams of block `nblock` with the new values, or `None` if they come out in another form than the chunk has.
fn encode_block(
    old: &[u8],
    header: &ChunkHeader,
    nblock: usize,
    changes: &Changes<'_>,
    dec: &Decoding<'_>,
    enc: &Encoding<'_>,
) -> Result<Option<Vec<u8>>> {
    let len = header.block_len(nblock);
    let at = nblock * header.blocksize;
    let mut data = vec![0; len];
    if !(changes.covers)(nblock) {
        let number = |value: usize| to_i32(value, ErrorKind::Data);
        if len % header.typesize != 0 || at % header.typesize != 0 {
            return Ok(None);
        }
        chunk::getitem(dec, old, Unit::Bytes, number(at)?, number(len)?, &mut data)?;
    }
    (changes.apply)(nblock, &mut data)?;
    // A chunk of this block alone: its streams are those that the block has in the large chunk.
    let params = chunk::CParams { blocksize: header.blocksize, ..enc.params.clone() };
    let alone = Encoding { params: &params, ..*enc };
    let mut dest = vec![0; len + EXTENDED_HEADER_LENGTH];
    let made = chunk::compress_with(&alone, Source::Bytes(&data), &mut dest)?;
    if made.cbytes == 0 {
        return Ok(None);
    }
    let new = ChunkHeader::read(&dest[..made.cbytes])?;
    if new.special() == special::ZERO {
        return Ok(Some(vec![0; 4 * nstreams(header, len)]));
    }
    let first = EXTENDED_HEADER_LENGTH + 4;
    let fits = new.special() == special::NONE
        && !new.is_memcpyed()
        && new.nblocks() == 1
        && nstreams(&new, len) == nstreams(header, len)
        && new.codec_format() == header.codec_format()
        && new.versionlz == header.versionlz
        && (new.compcode, new.compcode_meta) == (header.compcode, header.compcode_meta)
        && get_i32(&dest, EXTENDED_HEADER_LENGTH) == i32::try_from(first).ok();
    Ok(fits.then(|| dest[first..made.cbytes].to_vec()))
}

/// Number of streams of a block of `len` bytes.
fn nstreams(header: &ChunkHeader, len: usize) -> usize {
    if header.is_split() && len == header.blocksize { header.typesize } else { 1 }
}

fn overlap(a: Range<usize>, b: Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Where each block lies in the chunk: from its start to the next one, in whatever order they are.
fn spans(table: &[usize], cbytes: usize) -> Vec<Range<usize>> {
    let mut starts = table.to_vec();
    starts.sort_unstable();
    table
        .iter()
        .map(|&start| {
            let next = starts.partition_point(|&other| other <= start);
            start..starts.get(next).copied().unwrap_or(cbytes)
        })
        .collect()
}

/// The chunk `old` with `streams` in the places of the blocks `touched`; what lies behind moves.
fn replace(
    old: &[u8],
    table: &[usize],
    spans: &[Range<usize>],
    touched: &[usize],
    streams: &[Vec<u8>],
) -> Result<Vec<u8>> {
    let mut order: Vec<usize> = (0..table.len()).collect();
    order.sort_by_key(|&block| table[block]);
    let first = EXTENDED_HEADER_LENGTH + 4 * table.len();
    let added: usize = streams.iter().map(Vec::len).sum();
    let mut chunk = Vec::with_capacity(old.len() + added);
    chunk.extend_from_slice(&old[..first]);
    for block in order {
        let start = to_i32(chunk.len(), ErrorKind::Data)?;
        put_i32(&mut chunk, EXTENDED_HEADER_LENGTH + 4 * block, start);
        if let Ok(at) = touched.binary_search(&block) {
            chunk.extend_from_slice(&streams[at]);
        } else {
            chunk.extend_from_slice(&old[spans[block].clone()]);
        }
    }
    let cbytes = to_i32(chunk.len(), ErrorKind::Data)?;
    put_i32(&mut chunk, 12, cbytes);
    Ok(chunk)
}
