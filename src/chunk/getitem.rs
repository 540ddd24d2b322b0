//! A range of items of a chunk without the rest.
//!
//! Of the blocks that hold the range, only the streams that it needs are decoded, and only the needed bytes of these,
//! as far as codec and filters allow.

#![forbid(unsafe_code)]

use super::params::Decoding;
use super::pipeline::DeltaReference;
use super::plain::Payload;
use super::planes::{Planes, Runs};
use super::reader::Reader;
use super::scratch::{self, AlignedBytes, Worker, with_worker};
use super::simple::getitem_simple;
use super::streams::Stream;
use crate::bytes::quotient;
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::filters::{bitshuffle, shuffle};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::special;
use std::ops::Range;

/// The unit of [`getitem`]'s arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Items of the typesize that the chunk records (1 if the original one was above 255).
    Items,
    /// Bytes; ranges must consist of whole items.
    Bytes,
}

/// Decompresses `count` items (or bytes) from `start` on into the front of `dest`; returns the bytes produced.
///
/// Runs in the calling thread. `dest` is not read before it is written.
///
/// # Errors
///
/// Those of [`ChunkHeader::read`]; `InvalidParam` for chunks of variable-length blocks and for ranges that are negative
/// or exceed the chunk; `InvalidHeader` if `chunk` is shorter than its header says; `WriteBuffer` if `dest` is too
/// short; `SchunkSpecial` for unknown special values; else as `decompress_with`.
pub fn getitem(
    dec: &Decoding<'_>,
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
) -> Result<usize> {
    if dec.postfilter.is_none() {
        if let Some(nbytes) = getitem_simple(chunk, unit, start, count, dest, |_| ()) {
            return Ok(nbytes);
        }
    }
    let mut header = ChunkHeader::EMPTY;
    header.read_from(chunk)?;
    getitem_parsed(dec, &header, chunk, unit, start, count, dest)
}

/// As [`getitem`], for a chunk whose header was read already.
///
/// # Errors
///
/// As [`getitem`].
pub fn getitem_parsed(
    dec: &Decoding<'_>,
    header: &ChunkHeader,
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
) -> Result<usize> {
    require(!header.is_vl(), "blocks of variable length have no items")?;
    let (start, count) = in_items(header, unit, start, count)?;
    header.check_complete(chunk.len())?;
    let range = byte_range(header, start, count, dest.len())?;
    if range.is_empty() {
        return Ok(0);
    }
    if header.special() > special::UNINIT {
        return Err(Error::new(ErrorKind::SchunkSpecial, "unknown special value"));
    }
    let dest = &mut dest[..range.len()];
    let mut reader = Reader::new(dec, header, chunk);
    reader.prepare()?;
    if reader.is_plain() {
        reader.plain_bytes(range.start, dest)?;
    } else {
        with_worker(|worker| decode_blocks(&reader, worker, range, dest))?;
    }
    Ok(dest.len())
}

/// `start` and `count`, given in `unit`, as numbers of items.
#[inline(always)]
pub(super) fn in_items(header: &ChunkHeader, unit: Unit, start: i32, count: i32) -> Result<(i32, i32)> {
    if unit == Unit::Items {
        return Ok((start, count));
    }
    let items = |bytes: i32| {
        let bytes = usize::try_from(bytes).ok()?;
        let items = quotient(bytes, header.typesize);
        if items * header.typesize == bytes { i32::try_from(items).ok() } else { None }
    };
    let not_whole = Error::new(ErrorKind::InvalidParam, "not a number of whole items");
    items(start).zip(items(count)).ok_or(not_whole)
}

/// The range of bytes for a range of items, checked against chunk and destination; without items, any `start` will do.
#[inline(always)]
pub(super) fn byte_range(
    header: &ChunkHeader,
    start: i32,
    count: i32,
    destsize: usize,
) -> Result<Range<usize>> {
    if count == 0 {
        return Ok(0..0);
    }
    let typesize = header.typesize as u64;
    let invalid = |_| Error::new(ErrorKind::InvalidParam, "negative range of items");
    let count = u64::try_from(count).map_err(invalid)?;
    let len = count * typesize;
    let fits = len <= i32::MAX as u64 && len <= destsize as u64;
    ensure(fits, ErrorKind::WriteBuffer, "destination shorter than the items")?;
    let start = u64::try_from(start).map_err(invalid)?;
    let end = (start + count) * typesize;
    require(end <= header.nbytes as u64, "items behind the end of the chunk")?;
    let position = |value: u64| usize::try_from(value).expect("within the chunk");
    Ok(position(start * typesize)..position(end))
}

/// Decodes the bytes `range` of the chunk into `dest`.
fn decode_blocks(
    reader: &Reader<'_>,
    worker: &mut Worker,
    range: Range<usize>,
    dest: &mut [u8],
) -> Result<()> {
    let blocksize = reader.header.blocksize;
    let last = (range.end - 1) / blocksize;
    let mut first_block = AlignedBytes::default();
    if reader.refers_to_block0() && last > 0 {
        first_block = AlignedBytes::zeroed(blocksize)?;
        reader.decode_block(worker, 0, DeltaReference::Own, &mut first_block)?;
    }
    let reference = DeltaReference::Block(&first_block);
    let mut rest = dest;
    for nblock in range.start / blocksize..=last {
        let offset = nblock * blocksize;
        let len = reader.header.block_len(nblock);
        let wanted = range.start.max(offset) - offset..range.end.min(offset + len) - offset;
        let (part, behind) = rest.split_at_mut(wanted.len());
        rest = behind;
        decode_part(reader, worker, 0, nblock, wanted, reference, part)?;
    }
    Ok(())
}

/// Decodes the bytes `wanted` of block `nblock` into `dest`, as task `tid`.
pub(super) fn decode_part(
    reader: &Reader<'_>,
    worker: &mut Worker,
    tid: usize,
    nblock: usize,
    wanted: Range<usize>,
    reference: DeltaReference<'_>,
    dest: &mut [u8],
) -> Result<()> {
    let len = reader.header.block_len(nblock);
    let whole = wanted.len() == len;
    if reader.payload != Payload::Coded || reader.dec.postfilter.is_some() || whole {
        return decode_whole(reader, worker, tid, nblock, wanted, reference, dest);
    }
    if reader.pipeline.is_empty() {
        return decode_unfiltered_part(reader, worker, nblock, wanted, dest);
    }
    if let Some(width) = reader.pipeline.as_shuffle() {
        return decode_shuffled_part(reader, worker, nblock, width, wanted, dest);
    }
    if reader.pipeline.is_bitshuffle() {
        return decode_bitshuffled_part(reader, worker, nblock, wanted, dest);
    }
    decode_whole(reader, worker, tid, nblock, wanted, reference, dest)
}

/// Fails if the streams of a block do not reach to `end`, that of the wanted bytes.
fn check_covered(covered: usize, end: usize) -> Result<()> {
    ensure(end <= covered, ErrorKind::Data, "fewer bytes than asked for")
}

/// Decodes a block into scratch and copies the part of it; without the detour, if all of it is wanted.
fn decode_whole(
    reader: &Reader<'_>,
    worker: &mut Worker,
    tid: usize,
    nblock: usize,
    wanted: Range<usize>,
    reference: DeltaReference<'_>,
    dest: &mut [u8],
) -> Result<()> {
    let len = reader.header.block_len(nblock);
    if wanted.len() == len && (scratch::is_aligned(dest) || !reader.calls_application()) {
        let covered = reader.finish_block(worker, tid, nblock, reference, dest)?;
        return check_covered(covered, wanted.end);
    }
    let mut buffer = std::mem::take(&mut worker.block);
    let block = buffer.get(len)?;
    if reader.payload == Payload::Uninit {
        block.fill(0);
    }
    let outcome = reader.finish_block(worker, tid, nblock, reference, block).and_then(|covered| {
        check_covered(covered, wanted.end)?;
        copy::copy(&block[wanted], dest);
        Ok(())
    });
    worker.block = buffer;
    outcome
}

/// Decodes a part of an unfiltered block: each stream holds consecutive bytes.
fn decode_unfiltered_part(
    reader: &Reader<'_>,
    worker: &mut Worker,
    nblock: usize,
    wanted: Range<usize>,
    dest: &mut [u8],
) -> Result<()> {
    let nstreams = reader.nstreams(nblock);
    let len = reader.header.block_len(nblock) / nstreams;
    let Worker { codecs, buffers, stream, .. } = worker;
    let mut streams = reader.streams(nblock, stream)?;
    check_covered(len * nstreams, wanted.end)?;
    let decoder = reader.stream_decoder();
    let mut rest = dest;
    for start in (0..nstreams).map(|i| i * len) {
        if start >= wanted.end {
            break;
        }
        let content = streams.next_stream()?;
        let part = wanted.start.max(start) - start..wanted.end.min(start + len).saturating_sub(start);
        if part.is_empty() {
            continue;
        }
        let (out, behind) = rest.split_at_mut(part.len());
        rest = behind;
        match content {
            Stream::Run(value) => out.fill(value),
            Stream::Raw(bytes) => copy::copy(&bytes[part], out),
            Stream::Coded(_) if part.len() == len => decoder.decode(codecs, content, out)?,
            Stream::Coded(bytes) => {
                if reader.codec.decode_part(&decoder.cx, bytes, len, part.start, out)? {
                    continue;
                }
                let decoded = buffers.decoded.get(len)?;
                decoder.decode_prefix(codecs, content, part.end, decoded)?;
                copy::copy(&decoded[part], out);
            }
        }
    }
    Ok(())
}

/// Decodes all streams of a bit-shuffled block, and undoes the shuffle for a part of it.
fn decode_bitshuffled_part(
    reader: &Reader<'_>,
    worker: &mut Worker,
    nblock: usize,
    wanted: Range<usize>,
    dest: &mut [u8],
) -> Result<()> {
    let Worker { codecs, buffers, stream, .. } = worker;
    let len = reader.header.block_len(nblock);
    let (shuffled, spare) = (buffers.decoded.get(len)?, buffers.ping.get(len)?);
    let covered = reader.decode_streams(codecs, nblock, stream, shuffled)?;
    check_covered(covered, wanted.end)?;
    bitshuffle::bitunshuffle_bytes(reader.header.typesize, shuffled, wanted.start, dest, spare);
    Ok(())
}

/// Decodes a part of a shuffled block. If it is split, each stream is one plane of bytes, and only its first bytes
/// up to the last wanted item are decoded.
fn decode_shuffled_part(
    reader: &Reader<'_>,
    worker: &mut Worker,
    nblock: usize,
    width: usize,
    wanted: Range<usize>,
    dest: &mut [u8],
) -> Result<()> {
    let whole_items = wanted.start % width == 0 && wanted.end % width == 0;
    let granule = if whole_items { width } else { 1 };
    let runs = Runs { start: wanted.start, end: wanted.end, granule, each: &|run| run(wanted.clone()) };
    if Planes::suit(reader, nblock, width, &runs) {
        Planes::decode(reader, worker, nblock, width, &runs)?.put(wanted.start, dest);
        return Ok(());
    }
    let shuffled = decode_shuffled(reader, worker, nblock, width, wanted.end)?;
    shuffle::unshuffle_bytes(width, shuffled, wanted.start, dest);
    Ok(())
}

/// Decodes a block up to its byte `end`, except for the shuffle by `width` bytes that remains to be undone.
fn decode_shuffled<'b>(
    reader: &Reader<'_>,
    worker: &'b mut Worker,
    nblock: usize,
    width: usize,
    end: usize,
) -> Result<&'b [u8]> {
    let nstreams = reader.nstreams(nblock);
    let block_len = reader.header.block_len(nblock);
    let len = block_len / nstreams;
    let Worker { codecs, buffers, stream, .. } = worker;
    let mut streams = reader.streams(nblock, stream)?;
    check_covered(len * nstreams, end)?;
    let decoder = reader.stream_decoder();
    let decoded = buffers.decoded.get(block_len)?;
    // What no stream gives is zero, as when all of the block is decoded.
    decoded[len * nstreams..].fill(0);
    let planes = nstreams == width && block_len % width == 0;
    let needed = if planes { end.div_ceil(width).min(len) } else { len };
    for part in decoded.chunks_exact_mut(len).take(nstreams) {
        decoder.decode_prefix(codecs, streams.next_stream()?, needed, part)?;
    }
    Ok(decoded)
}
