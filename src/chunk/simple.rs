//! What most small buffers become: chunks that are stored, special values, or small blocks behind at most one shuffle.
//!
//! They are written and read here in few instructions, from the source straight to the destination. With a buffer of a
//! hundred bytes, to prepare jobs, readers and pipelines would take longer than the work itself. What is in any way
//! unusual is left to the general functions, and so is what is damaged: one place tells what is wrong with a chunk.
//!
//! Items out of a raw block of a larger chunk are read here as well, since that is little more than a copy.

use super::blocks::Layout;
use super::compress::{coded_flags, new_header};
use super::getitem::{Unit, byte_range, in_items};
use super::params::{Encoding, Threads};
use super::plain::{self, Payload};
use super::scratch::{BlockBuffers, Buffer, Worker, with_worker};
use super::streams::{Stream, StreamDecoder, StreamReader, StreamWriter, raw_streams};
use crate::bytes::{put_i32, quotient};
use crate::codecs::state::{CodecStates, StreamCodec};
use crate::codecs::{StreamContext, blosclz, lz4};
use crate::copy;
use crate::error::Result;
use crate::filters::{bitshuffle, shuffle};
use crate::format::chunk_header::{ChunkHeader, offset};
use crate::format::consts::{
    EXTENDED_HEADER_LENGTH, MAX_FILTERS, MIN_BUFFERSIZE, VERSION_BLOSC1, blosc2_flags, codec_format, filter,
    flags, special,
};
use crate::format::geometry::Container;
use crate::pages;

/// Where the streams of the only block start: after the header and a table of one entry.
const STREAMS_START: usize = EXTENDED_HEADER_LENGTH + 4;
/// Up to this size, in bytes, decoding a block is quicker than finding out which parts of it are wanted.
const SMALL_BLOCK: usize = 2048;
/// The same for shuffled blocks: there is more to find out.
const SMALL_SHUFFLED: usize = 8192;
/// Up to this size, in bytes, one block after the other is decoded here; of larger ones, raw streams and runs are not
/// copied before they are unshuffled, and what there is to prepare does not show.
const SMALL_OF_MANY: usize = 4096;

/// The only filter of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    None,
    /// The width of the items, at least 2.
    Shuffle(usize),
    Bitshuffle,
}

impl Filter {
    /// The filter that these slots come to, if it is one of the above.
    #[inline(always)]
    fn of(ids: &[u8; MAX_FILTERS], metas: &[u8; MAX_FILTERS], typesize: usize) -> Option<Filter> {
        let [first @ .., _] = ids;
        if *first == [filter::NONE; MAX_FILTERS - 1] { Filter::last(ids, metas, typesize) } else { None }
    }

    /// The filter that undoes what these slots did, if it is one of the above. Nothing undoes lossy ones.
    #[inline(always)]
    fn undoing(ids: &[u8; MAX_FILTERS], metas: &[u8; MAX_FILTERS], typesize: usize) -> Option<Filter> {
        let [first @ .., _] = ids;
        let is_undone = |id: &u8| matches!(*id, filter::NONE | filter::TRUNC_PREC | filter::INT_TRUNC);
        let is_usual = *first == [filter::NONE; MAX_FILTERS - 1] || first.iter().all(is_undone);
        if is_usual { Filter::last(ids, metas, typesize) } else { None }
    }

    /// The filter in the last slot.
    #[inline(always)]
    fn last(ids: &[u8; MAX_FILTERS], metas: &[u8; MAX_FILTERS], typesize: usize) -> Option<Filter> {
        let ([.., id], [.., meta]) = (*ids, *metas);
        match id {
            filter::NONE => Some(Filter::None),
            filter::SHUFFLE => {
                let width = if meta == 0 { typesize } else { usize::from(meta) };
                Some(if width > 1 { Filter::Shuffle(width) } else { Filter::None })
            }
            filter::BITSHUFFLE => Some(Filter::Bitshuffle),
            _ => None,
        }
    }
}

/// What the built-in codecs are told, which is next to nothing.
#[inline(always)]
fn stream_context(clevel: u8, typesize: usize, blocksize: usize) -> StreamContext<'static> {
    StreamContext {
        clevel,
        meta: 0,
        typesize,
        blocksize,
        container: &Container::None,
        chunk: &[],
        host: &None,
    }
}

/// The filter, if a buffer of `nbytes` bytes becomes a single block that [`compress`] can write.
#[inline]
pub(super) fn suits(
    enc: &Encoding<'_>,
    codec: &StreamCodec,
    layout: &Layout,
    nbytes: usize,
) -> Option<Filter> {
    let params = enc.params;
    let is_usual = layout.blocksize == nbytes
        && nbytes >= MIN_BUFFERSIZE
        && params.clevel > 0
        && !matches!(codec, StreamCodec::Registered(_) | StreamCodec::Unknown)
        && enc.prefilter.is_none()
        && !(params.use_dict || params.instrumented || enc.blosc1_header);
    if is_usual { Filter::of(&params.filters, &params.filters_meta, layout.typesize) } else { None }
}

/// Compresses `src`, for which [`suits`] gave `filter`, into `dest`, which has room for a header; returns the size of
/// the chunk, 0 if it does not fit.
///
/// # Errors
///
/// As [`compress_with`](super::compress_with).
pub(super) fn compress(
    enc: &Encoding<'_>,
    codec: &StreamCodec,
    layout: &Layout,
    filter: Filter,
    src: &[u8],
    dest: &mut [u8],
) -> Result<usize> {
    let params = enc.params;
    let mut header = new_header(enc, codec, layout, src.len());
    let written = match dest.get_mut(STREAMS_START..) {
        None => None,
        Some(room) => {
            header.flags |= coded_flags(enc, codec, layout);
            let nstreams = if layout.split { layout.typesize } else { 1 };
            let cx = stream_context(params.clevel, layout.typesize, layout.blocksize);
            let writer = StreamWriter { codec, dict: None, cx, runs: true };
            with_worker(|worker| {
                let Worker { codecs, buffers: BlockBuffers { ping, .. }, .. } = worker;
                if filter == Filter::None {
                    return writer.write(codecs, src, nstreams, room);
                }
                let filtered = ping.get(src.len())?;
                match filter {
                    Filter::Shuffle(width) => shuffle::shuffle(width, src, filtered),
                    _ => bitshuffle::bitshuffle(layout.typesize, src, filtered),
                }
                writer.write(codecs, filtered, nstreams, room)
            })?
        }
    };
    match written {
        Some(written) if written.all_zeros => {
            header.blosc2_flags |= special::ZERO << blosc2_flags::SPECIAL_SHIFT;
            header.cbytes = EXTENDED_HEADER_LENGTH;
        }
        Some(written) => {
            let start = i32::try_from(STREAMS_START).expect("a small constant");
            put_i32(dest, EXTENDED_HEADER_LENGTH, start);
            header.cbytes = STREAMS_START + written.len;
        }
        None => {
            header.flags |= flags::MEMCPYED;
            header.cbytes = EXTENDED_HEADER_LENGTH + src.len();
            let Some(payload) = dest.get_mut(EXTENDED_HEADER_LENGTH..header.cbytes) else { return Ok(0) };
            copy::copy(src, payload);
        }
    }
    header.write(dest.first_chunk_mut().expect("32 bytes of room were checked"));
    Ok(header.cbytes)
}

/// Decompresses `chunk` into the front of `dest` if it is a simple one, and returns the number of bytes produced. Calls
/// `note` with the header. Unless the calling thread is `alone`, chunks that others could help with are not simple.
///
/// `None` if the chunk is of another kind, damaged, or too long for `dest`: then
/// [`decompress_with`](super::decompress_with) does it, or tells what is wrong.
#[inline(always)]
pub fn decompress_simple(
    chunk: &[u8],
    dest: &mut [u8],
    alone: bool,
    note: impl FnOnce(&ChunkHeader),
) -> Option<usize> {
    let room = if alone { dest.len() } else { dest.len().min(Threads::SHORT_COPY) };
    let dest = &mut dest[..room];
    let mut header = ChunkHeader::EMPTY;
    match Kind::of(chunk)? {
        Kind::Plain => {
            let payload = read_plain(chunk, &mut header)?;
            plain::copy(payload, &header, chunk, 0, dest.get_mut(..header.nbytes)?).ok()?;
        }
        Kind::Special => decompress_special(chunk, dest, &mut header)?,
        Kind::Block => decompress_block(chunk, dest, &mut header)?,
        Kind::Blocks if alone => decompress_blocks(chunk, dest, &mut header)?,
        Kind::Blocks => return None,
    }
    note(&header);
    Some(header.nbytes)
}

/// Decompresses `count` items (or bytes) from `start` on into the front of `dest` if the chunk is a simple one;
/// otherwise as [`decompress_simple`], with [`getitem`](super::getitem()) as what is left.
#[inline(always)]
pub fn getitem_simple(
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
    note: impl FnOnce(&ChunkHeader),
) -> Option<usize> {
    // Not one header for all, as above: with that, a few raw items take an eighth longer.
    match Kind::of(chunk)? {
        Kind::Plain => {
            let mut header = ChunkHeader::EMPTY;
            let payload = read_plain(chunk, &mut header)?;
            let (start, count) = in_items(&header, unit, start, count).ok()?;
            let range = byte_range(&header, start, count, dest.len()).ok()?;
            plain::copy(payload, &header, chunk, range.start, &mut dest[..range.len()]).ok()?;
            note(&header);
            Some(range.len())
        }
        Kind::Special => {
            let mut header = ChunkHeader::EMPTY;
            let len = getitem_of_special(chunk, unit, start, count, dest, &mut header)?;
            note(&header);
            Some(len)
        }
        Kind::Block | Kind::Blocks => {
            let mut header = ChunkHeader::EMPTY;
            let len = getitem_of_block(chunk, unit, start, count, dest, &mut header)?;
            note(&header);
            Some(len)
        }
    }
}

/// What a chunk can be at first sight.
enum Kind {
    /// Raw bytes or zeros.
    Plain,
    /// Another special value.
    Special,
    /// A single block.
    Block,
    /// Several blocks.
    Blocks,
}

impl Kind {
    /// What a look at a few bytes tells; `None` if there are not enough for the longer kind of header.
    #[inline(always)]
    fn of(chunk: &[u8]) -> Option<Kind> {
        let raw: &[u8; EXTENDED_HEADER_LENGTH] = chunk.first_chunk()?;
        if raw[offset::FLAGS] & flags::MEMCPYED != 0
            || raw[offset::BLOSC2_FLAGS] & blosc2_flags::SPECIAL_MASK != 0
        {
            let is_other = (raw[offset::BLOSC2_FLAGS] & blosc2_flags::SPECIAL_MASK)
                >> blosc2_flags::SPECIAL_SHIFT
                > special::ZERO;
            return Some(if is_other { Kind::Special } else { Kind::Plain });
        }
        let size = |at: usize| i32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let (nbytes, blocksize) = (size(offset::NBYTES), size(offset::BLOCKSIZE));
        Some(if blocksize >= nbytes { Kind::Block } else { Kind::Blocks })
    }
}

/// What a complete chunk consists of that is stored or zeros; stores its header in `header`.
#[inline(always)]
fn read_plain(chunk: &[u8], header: &mut ChunkHeader) -> Option<Payload> {
    if !header.read_ordinary(chunk) {
        return None;
    }
    let payload = Payload::of(header);
    let is_usual = match payload {
        Payload::Stored => header.cbytes == header.nbytes + EXTENDED_HEADER_LENGTH && !header.is_lazy(),
        Payload::Zeros => !header.is_memcpyed(),
        _ => false,
    };
    (is_usual && header.cbytes <= chunk.len()).then_some(payload)
}

/// What a complete chunk consists of that is another special value; stores its header in `header`.
fn read_special(chunk: &[u8], header: &mut ChunkHeader) -> Option<Payload> {
    header.read_from(chunk).ok()?;
    let payload = Payload::of(header);
    let is_usual = matches!(payload, Payload::Nans | Payload::Value | Payload::Uninit)
        && !(header.is_memcpyed() || header.is_lazy());
    (is_usual && header.cbytes <= chunk.len()).then_some(payload)
}

/// [`decompress_simple`] for a special value; stores the header in `header`.
#[inline(never)]
fn decompress_special(chunk: &[u8], dest: &mut [u8], header: &mut ChunkHeader) -> Option<()> {
    let payload = read_special(chunk, header)?;
    plain::copy(payload, header, chunk, 0, dest.get_mut(..header.nbytes)?).ok()
}

/// [`getitem_simple`] for a special value; stores the header in `header`.
#[inline(never)]
fn getitem_of_special(
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
    header: &mut ChunkHeader,
) -> Option<usize> {
    let payload = read_special(chunk, header)?;
    let (start, count) = in_items(header, unit, start, count).ok()?;
    let range = byte_range(header, start, count, dest.len()).ok()?;
    plain::copy(payload, header, chunk, range.start, &mut dest[..range.len()]).ok()?;
    Some(range.len())
}

/// [`decompress_simple`] for a single block; stores the header in `header`.
#[inline(never)]
fn decompress_block(chunk: &[u8], dest: &mut [u8], header: &mut ChunkHeader) -> Option<()> {
    if !header.read_ordinary(chunk) {
        return None;
    }
    let dest = dest.get_mut(..header.nbytes)?;
    let block = Block::find(chunk, header, 0)?;
    if let Some(stream) = block.only_stream() {
        return decode_alone(header, stream, dest);
    }
    with_worker(|worker| block.decode(&mut worker.codecs, &mut worker.buffers.decoded, dest))
}

/// [`decompress_simple`] for several blocks, which must be small; stores the header in `header`.
#[inline(never)]
fn decompress_blocks(chunk: &[u8], dest: &mut [u8], header: &mut ChunkHeader) -> Option<()> {
    if !header.read_ordinary(chunk) || header.blocksize > SMALL_OF_MANY {
        return None;
    }
    let dest = dest.get_mut(..header.nbytes)?;
    pages::prefer_huge_for(dest);
    with_worker(|worker| {
        dest.chunks_mut(header.blocksize).enumerate().try_for_each(|(nblock, part)| {
            let block = Block::find(chunk, header, nblock)?;
            block.decode(&mut worker.codecs, &mut worker.buffers.decoded, part)
        })
    })
}

/// Decodes what [`Block::only_stream`] found. Borrowing a worker would take longer than decoding a few bytes.
#[inline(never)]
fn decode_alone(header: &ChunkHeader, stream: &[u8], dest: &mut [u8]) -> Option<()> {
    match header.codec_format() {
        codec_format::LZ4 => lz4::decompress(stream, dest).ok(),
        _ => blosclz::decompress(stream, dest).ok(),
    }
}

/// [`getitem_simple`] for a chunk with blocks; stores the header in `header`. It only reads from a single block, which
/// must be raw, small, or wanted whole.
#[inline(never)]
fn getitem_of_block(
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
    header: &mut ChunkHeader,
) -> Option<usize> {
    if !header.read_ordinary(chunk) {
        return None;
    }
    let (start, count) = in_items(header, unit, start, count).ok()?;
    let range = byte_range(header, start, count, dest.len()).ok()?;
    let dest = &mut dest[..range.len()];
    let nblock = if range.start < header.blocksize { 0 } else { range.start / header.blocksize };
    let block = Block::find(chunk, header, nblock)?;
    let offset = nblock * header.blocksize;
    let wanted = range.start - offset..range.end - offset;
    if wanted.end > block.len() {
        return None;
    }
    if block.get_raw(wanted.start, dest) {
        return Some(dest.len());
    }
    if wanted.len() == block.len() {
        return with_worker(|worker| {
            block.decode(&mut worker.codecs, &mut worker.buffers.decoded, dest)?;
            Some(dest.len())
        });
    }
    if !block.is_small() {
        return None;
    }
    with_worker(|worker| {
        block.decode_part(worker, wanted.start, dest)?;
        Some(dest.len())
    })
}

/// A block of a chunk whose only filter, if any, is a shuffle.
struct Block<'a> {
    header: &'a ChunkHeader,
    filter: Filter,
    /// Its streams, and what follows them in the chunk.
    bytes: &'a [u8],
    nstreams: usize,
    /// Length of each of the streams in bytes when decoded.
    stream_len: usize,
}

impl<'a> Block<'a> {
    /// Finds block `nblock` of `chunk`. `None` if anything is wrong or unusual about the chunk.
    #[inline(always)]
    fn find(chunk: &'a [u8], header: &'a ChunkHeader, nblock: usize) -> Option<Block<'a>> {
        let built_in = matches!(
            header.codec_format(),
            codec_format::BLOSCLZ | codec_format::LZ4 | codec_format::ZLIB | codec_format::ZSTD
        );
        let no_flags = header.blosc2_flags & !blosc2_flags::BIG_ENDIAN == 0;
        let offset = nblock * header.blocksize;
        if !(built_in && no_flags && header.version != VERSION_BLOSC1 && offset < header.nbytes) {
            return None;
        }
        let filter = Filter::undoing(&header.filters, &header.filters_meta, header.typesize)?;
        let len = header.block_len(nblock);
        let nstreams = header.nstreams(len);
        let stream_len = quotient(len, nstreams);
        if stream_len * nstreams != len {
            return None;
        }
        let chunk = chunk.get(..header.cbytes)?;
        let start = chunk.get(EXTENDED_HEADER_LENGTH + 4 * nblock..)?.first_chunk()?;
        let start = usize::try_from(i32::from_le_bytes(*start)).ok()?;
        let table_end = header.table_end();
        let bytes = chunk.get(start..).filter(|_| start >= table_end)?;
        Some(Block { header, filter, bytes, nstreams, stream_len })
    }

    /// Length in bytes when decoded.
    #[inline(always)]
    fn len(&self) -> usize {
        self.nstreams * self.stream_len
    }

    /// Whether decoding all of it is quicker than finding out which parts of it are wanted.
    #[inline(always)]
    fn is_small(&self) -> bool {
        self.len() <= if self.filter == Filter::None { SMALL_BLOCK } else { SMALL_SHUFFLED }
    }

    /// The only stream, if there is one and it is raw.
    #[inline(always)]
    fn raw_stream(&self) -> Option<&'a [u8]> {
        if self.nstreams == 1 { raw_streams(self.bytes, 1, self.stream_len) } else { None }
    }

    /// The coded stream that the block is all of, if its codec has no state, and no filter needs other memory.
    #[inline(always)]
    fn only_stream(&self) -> Option<&'a [u8]> {
        let stateless = matches!(self.header.codec_format(), codec_format::BLOSCLZ | codec_format::LZ4);
        if self.nstreams > 1 || self.filter != Filter::None || !stateless {
            return None;
        }
        match StreamReader::new(self.bytes, self.stream_len).next_stream() {
            Ok(Stream::Coded(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// If the block is split into rows of bytes and all are raw: the number of rows, how far apart they begin, and
    /// their bytes from the first one on.
    #[inline(always)]
    fn raw_rows(&self) -> Option<(usize, usize, &'a [u8])> {
        if self.filter != Filter::Shuffle(self.nstreams) {
            return None;
        }
        let rows = raw_streams(self.bytes, self.nstreams, self.stream_len)?;
        Some((self.nstreams, 4 + self.stream_len, rows))
    }

    /// Reads the bytes from `start` on that `dest` has room for, if that takes no decoding; returns whether it was
    /// done.
    #[inline(always)]
    fn get_raw(&self, start: usize, dest: &mut [u8]) -> bool {
        if let Some(raw) = self.raw_stream() {
            return self.unfilter_directly(raw, start, dest)
                || with_worker(|worker| self.unfilter_part(raw, start, dest, &mut worker.buffers.ping))
                    .is_some();
        }
        let Some((width, stride, rows)) = self.raw_rows() else { return false };
        let whole_items = start % width == 0 && dest.len() % width == 0 && !dest.is_empty();
        if whole_items {
            shuffle::unshuffle_rows(width, stride, &rows[start / width..], dest);
        }
        whole_items
    }

    /// Undoes the filter of `filtered`, all of the block, for the bytes from `start` on that `dest` has room for.
    /// Returns `false`, with nothing done, for Bitshuffle, which needs more room.
    #[inline(always)]
    fn unfilter_directly(&self, filtered: &[u8], start: usize, dest: &mut [u8]) -> bool {
        match self.filter {
            Filter::None => copy::copy(&filtered[start..][..dest.len()], dest),
            Filter::Shuffle(width) => shuffle::unshuffle_bytes(width, filtered, start, dest),
            Filter::Bitshuffle => return false,
        }
        true
    }

    /// As [`unfilter_directly`](Self::unfilter_directly), for all filters. `None` if there is no memory for `spare`.
    #[inline(always)]
    fn unfilter_part(
        &self,
        filtered: &[u8],
        start: usize,
        dest: &mut [u8],
        spare: &mut Buffer,
    ) -> Option<()> {
        if !self.unfilter_directly(filtered, start, dest) {
            let spare = spare.get(filtered.len()).ok()?;
            bitshuffle::bitunshuffle_bytes(self.header.typesize, filtered, start, dest, spare);
        }
        Some(())
    }

    /// Decodes the streams of the block into `filtered`, which has its length. `None` if anything is wrong about them.
    #[inline(always)]
    fn decode_streams(&self, codecs: &mut CodecStates, filtered: &mut [u8]) -> Option<()> {
        let codec = StreamCodec::resolve(self.header.decoder_compcode());
        let cx = stream_context(0, self.header.typesize, self.header.blocksize);
        let decoder = StreamDecoder { codec: &codec, dict: None, cx };
        decoder.decode_all(codecs, self.bytes, self.nstreams, filtered).ok().map(|_| ())
    }

    /// Decodes the bytes of the block from `start` on that `dest` has room for, by way of buffers of `worker`. `None`
    /// if anything is wrong about the block.
    #[inline(always)]
    fn decode_part(&self, worker: &mut Worker, start: usize, dest: &mut [u8]) -> Option<()> {
        let Worker { codecs, buffers: BlockBuffers { decoded, ping, .. }, .. } = worker;
        let filtered = decoded.get(self.len()).ok()?;
        self.decode_streams(codecs, filtered)?;
        self.unfilter_part(filtered, start, dest, ping)
    }

    /// Decodes the block into `dest`, which has its length. `None` if anything is wrong about it.
    #[inline(always)]
    fn decode(&self, codecs: &mut CodecStates, decoded: &mut Buffer, dest: &mut [u8]) -> Option<()> {
        if self.filter == Filter::None {
            return self.decode_streams(codecs, dest);
        }
        if let Some((width, stride, rows)) = self.raw_rows() {
            shuffle::unshuffle_rows(width, stride, rows, dest);
            return Some(());
        }
        let filtered: &[u8] = match self.raw_stream() {
            Some(raw) => raw,
            None => {
                let decoded = decoded.get(dest.len()).ok()?;
                self.decode_streams(codecs, decoded)?;
                decoded
            }
        };
        match self.filter {
            Filter::Shuffle(width) => shuffle::unshuffle(width, filtered, dest),
            _ => bitshuffle::bitunshuffle(self.header.typesize, filtered, dest),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
