//! New values for a few bytes of a chunk: only the blocks that hold them are compressed again. In a chunk that is stored
//! as it is, since it does not shrink, they are stored too, unless one of them does.

#![forbid(unsafe_code)]

use super::scratch;
use crate::bytes::{get_i32, put_i32, to_i32};
use crate::chunk::blocks::capped_typesize;
use crate::chunk::source::BlockSource;
use crate::chunk::{self, BlockReader, Decoding, Encoding, Threads};
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::{ChunkHeader, offset};
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, filter, special};
use crate::frame::Derive;
use crate::io::memory::MallocBuf;
use crate::memory::{self, grow};
use crate::mutex::Mutex;
use std::ops::{Deref, Range};

/// What makes the data of the chunk `old` hold `src` at byte `start`; see [`encode`].
///
/// # Errors
///
/// `Data` if the chunk is not as long; as [`encode`].
pub(super) fn encode_range(
    old: &[u8],
    start: usize,
    src: &[u8],
    dec: &Decoding<'_>,
    enc: &Encoding<'_>,
) -> Result<Option<Patch>> {
    let header = ChunkHeader::read(old)?;
    let end = start + src.len();
    ensure(end <= header.nbytes, ErrorKind::Data, "chunk of another size")?;
    let span = |block: usize| {
        let at = block * header.blocksize;
        (at, overlap(at..at + header.block_len(block), start..end))
    };
    let piece = |block: usize| {
        let (at, covered) = span(block);
        (covered.start - at, &src[covered.start - start..covered.end - start])
    };
    if header.is_vl() {
        // The header tells the number of blocks in the place of their size.
        return Ok(None);
    }
    let touched = memory::collect(start / header.blocksize..end.div_ceil(header.blocksize))?;
    let changes = Changes {
        touched: &touched,
        covers: &|block| span(block).1.len() == header.block_len(block),
        apply: &|block, data| {
            let (at, bytes) = piece(block);
            copy::copy(bytes, &mut data[at..at + bytes.len()]);
            Ok(())
        },
        piece: Some(&piece),
    };
    encode(old, &changes, dec, enc)
}

/// New values for some blocks of a chunk.
pub(crate) struct Changes<'a> {
    /// The blocks, ascending.
    pub(crate) touched: &'a [usize],
    /// Whether all bytes of a block are new, so that the old ones are not needed.
    pub(crate) covers: &'a (dyn Fn(usize) -> bool + Sync),
    /// Writes the new values to the data of a block.
    pub(crate) apply: &'a (dyn Fn(usize, &mut [u8]) -> Result<()> + Sync),
    /// The new values of a block and where in it they start, in bytes, if they are in one piece.
    pub(crate) piece: Option<&'a (dyn Fn(usize) -> (usize, &'a [u8]) + Sync)>,
}

impl Changes<'_> {
    /// Writes block `nblock` of the chunk `old`, with the new values, to `data`, which is as long.
    fn write_block(&self, old: &BlockReader<'_>, nblock: usize, data: &mut [u8]) -> Result<()> {
        if !(self.covers)(nblock) {
            old.read(0, nblock, 0..data.len(), data)?;
        }
        (self.apply)(nblock, data)
    }
}

/// New streams for some blocks of a chunk.
pub(crate) struct Patch {
    /// The header of the old chunk.
    header: ChunkHeader,
    /// Where its blocks start.
    table: Vec<usize>,
    /// The blocks that change, ascending.
    touched: Vec<usize>,
    streams: Vec<Streams>,
    /// Bytes of the new chunk.
    cbytes: usize,
    /// What to do in the memory of the old chunk, once that is prepared.
    plan: Option<Plan>,
}

/// How a chunk becomes the new one in its place.
struct Plan {
    /// Header and table of the new chunk.
    head: Vec<u8>,
    /// Parts of the chunk that stay and where they go, ascending: none gets before or after another.
    moves: Vec<(Range<usize>, usize)>,
    /// The numbers of the new streams, and where they go.
    places: Vec<(usize, usize)>,
}

/// The streams of one block: the front of a buffer.
struct Streams {
    buffer: scratch::Buffer,
    len: usize,
}

impl Deref for Streams {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Compresses the blocks of the chunk `old` that `changes` touches, or `None` if its blocks are not independent of each
/// other, differ in kind from what `enc` makes, or if all of them change.
///
/// # Errors
///
/// Those of decompressing and compressing, and of applying the changes.
pub(crate) fn encode(
    old: &[u8],
    changes: &Changes<'_>,
    dec: &Decoding<'_>,
    enc: &Encoding<'_>,
) -> Result<Option<Patch>> {
    let header = ChunkHeader::read(old)?;
    let Some(table) = independent_blocks(old, &header)? else { return Ok(None) };
    let touched = changes.touched;
    let callbacks = enc.prefilter.is_some() || dec.postfilter.is_some();
    let known = touched.last().is_some_and(|&last| last < header.nblocks());
    if callbacks || !known || !same_kind(&header, enc) || touched.len() == header.nblocks() {
        return Ok(None);
    }
    let alone = Decoding { threads: Threads::default(), ..*dec };
    let reader = BlockReader::open(&alone, &header, old)?;
    let made: Vec<Mutex<Option<Streams>>> = memory::collect(touched.iter().map(|_| Mutex::new(None)))?;
    let threads = enc.threads_for(touched.len().saturating_mul(header.blocksize));
    threads.for_each(touched.len(), &|_, n| {
        *made[n].lock() = encode_block(&reader, touched[n], changes, enc)?;
        Ok(())
    })?;
    let streams: Vec<Option<Streams>> = memory::collect(made.into_iter().map(Mutex::into_inner))?;
    // This takes no memory: they are collected in place.
    let Some(streams) = streams.into_iter().collect() else { return Ok(None) };
    let header = ChunkHeader { blosc2_flags: header.blosc2_flags & !blosc2_flags::LAZY, ..header };
    let touched = memory::copy_of(touched)?;
    let mut patch = Patch { header, table, touched, streams, cbytes: 0, plan: None };
    patch.cbytes = patch.chunk_len()?;
    Ok(is_settled(&header, patch.cbytes).then_some(patch))
}

/// Whether a chunk of `cbytes` bytes, made of old and new blocks, is about what compressing it as a whole gives:
/// neither longer than the data as they are, nor nothing but zeros, which need no blocks at all.
fn is_settled(header: &ChunkHeader, cbytes: usize) -> bool {
    let streams: usize = (0..header.nblocks()).map(|block| header.nstreams(header.block_len(block))).sum();
    let only_zeros = EXTENDED_HEADER_LENGTH + 4 * (header.nblocks() + streams);
    (only_zeros + 1..=EXTENDED_HEADER_LENGTH + header.nbytes).contains(&cbytes)
}

/// Bytes of the smallest blocks of stored chunks that are replaced one by one.
const LEAST_STORED: usize = 32;

/// Where the blocks of a chunk begin, behind header and table: stored ones have no table.
fn blocks_begin(header: &ChunkHeader) -> usize {
    EXTENDED_HEADER_LENGTH + if header.is_memcpyed() { 0 } else { 4 * header.nblocks() }
}

/// Where the blocks of a chunk start that can be decoded, and so replaced, one by one.
fn independent_blocks(chunk: &[u8], header: &ChunkHeader) -> Result<Option<Vec<usize>>> {
    let plain = header.is_extended()
        && header.special() == special::NONE
        && !header.is_vl()
        && header.blosc2_flags & (blosc2_flags::USE_DICT | blosc2_flags::INSTRUMENTED) == 0
        && !header.filters.contains(&filter::DELTA)
        && header.nblocks() > 1;
    if !plain {
        return Ok(None);
    }
    let first = blocks_begin(header);
    if header.is_memcpyed() {
        // Blocks of a few bytes are no data that anybody writes, but hostile.
        let is_whole = header.cbytes == first + header.nbytes && header.blocksize >= LEAST_STORED;
        let starts = (0..header.nblocks()).map(|block| first + block * header.blocksize);
        return if is_whole { memory::collect(starts).map(Some) } else { Ok(None) };
    }
    let start = |block: usize| {
        let start = usize::try_from(get_i32(chunk, EXTENDED_HEADER_LENGTH + 4 * block)?).ok()?;
        (first..header.cbytes).contains(&start).then_some(start)
    };
    let mut table = memory::with_capacity(header.nblocks())?;
    table.extend((0..header.nblocks()).map_while(start));
    Ok((table.len() == header.nblocks()).then_some(table))
}

/// Whether `enc` makes blocks that may stand in a chunk with this header.
pub(crate) fn same_kind(header: &ChunkHeader, enc: &Encoding<'_>) -> bool {
    let params = enc.params;
    header.filters == params.filters
        && header.filters_meta == params.filters_meta
        && header.typesize == capped_typesize(params.typesize)
        && !params.use_dict
        && !params.instrumented
        && (params.clevel > 0 || header.is_memcpyed())
        && !enc.blosc1_header
}

/// The streams of block `nblock` with the new values, or `None` if `enc` makes others than the chunk has.
fn encode_block(
    old: &BlockReader<'_>,
    nblock: usize,
    changes: &Changes<'_>,
    enc: &Encoding<'_>,
) -> Result<Option<Streams>> {
    let header = old.header();
    let len = header.block_len(nblock);
    if header.is_memcpyed() {
        return store_block(old, nblock, changes, enc);
    }
    if let Some((start, new)) = changes.piece.map(|piece| piece(nblock)) {
        let mut buffer = scratch::Buffer::take();
        if let Some(len) = chunk::recode(old, nblock, start, new, enc, &mut buffer)? {
            return Ok(Some(Streams { buffer, len }));
        }
    }
    let streams = header.nstreams(len);
    scratch::with_len(len, |data| {
        changes.write_block(old, nblock, data)?;
        let mut buffer = scratch::Buffer::take();
        grow(&mut buffer, len + 4 * streams)?;
        let len = chunk::compress_block(enc, header, data, &mut buffer)?;
        Ok(len.map(|len| Streams { buffer, len }))
    })
}

/// Block `nblock` with the new values as it is, or `None` if it shrinks.
fn store_block(
    old: &BlockReader<'_>,
    nblock: usize,
    changes: &Changes<'_>,
    enc: &Encoding<'_>,
) -> Result<Option<Streams>> {
    let header = old.header();
    let len = header.block_len(nblock);
    let mut buffer = scratch::Buffer::take();
    grow(&mut buffer, len)?;
    let data = &mut buffer[..len];
    changes.write_block(old, nblock, data)?;
    if enc.params.clevel == 0 {
        return Ok(chunk::always_stores(enc, header).then_some(Streams { buffer, len }));
    }
    let compressed = scratch::with_len(len + 4 * header.nstreams(len), |room| {
        chunk::compress_block(enc, header, data, room)
    })?;
    Ok(compressed.filter(|&compressed| compressed >= len).map(|_| Streams { buffer, len }))
}

fn overlap(a: Range<usize>, b: Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// A part of the old chunk that stays, or streams that replace one, with their number.
enum Piece<'a> {
    Kept(Range<usize>),
    New(usize, &'a [u8]),
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match self {
            Piece::Kept(range) => range.len(),
            Piece::New(_, streams) => streams.len(),
        }
    }
}

impl Patch {
    /// Size of a block in bytes.
    pub(crate) fn blocksize(&self) -> usize {
        self.header.blocksize
    }

    /// Bytes of the chunk with the new streams.
    pub(crate) fn cbytes(&self) -> usize {
        self.cbytes
    }

    fn chunk_len(&self) -> Result<usize> {
        let pieces = self.pieces()?.0;
        Ok(blocks_begin(&self.header) + pieces.iter().map(Piece::len).sum::<usize>())
    }

    /// The pieces of the new chunk after header and table, in the order of the old one; and where each block starts in
    /// it, by its number.
    fn pieces(&self) -> Result<(Vec<Piece<'_>>, Vec<usize>)> {
        let old_places = self.old_places()?;
        let mut starts = memory::filled(0, old_places.len())?;
        let mut pieces: Vec<Piece<'_>> = memory::with_capacity(old_places.len())?;
        let mut at = blocks_begin(&self.header);
        for (block, old) in old_places {
            starts[block] = at;
            if let Ok(n) = self.touched.binary_search(&block) {
                pieces.push(Piece::New(n, &self.streams[n]));
                at += self.streams[n].len;
                continue;
            }
            at += old.len();
            match pieces.last_mut() {
                Some(Piece::Kept(last)) if last.end == old.start => last.end = old.end,
                _ => pieces.push(Piece::Kept(old)),
            }
        }
        Ok((pieces, starts))
    }

    /// The blocks of the old chunk in the order of their starts, with their places: each reaches to where another one
    /// starts, or to the end of the chunk. Those of a damaged chunk may start at the same place; they end at the same
    /// one, too.
    fn old_places(&self) -> Result<Vec<(usize, Range<usize>)>> {
        let block_at = |(block, &start): (usize, &usize)| (block, start..self.header.cbytes);
        let mut places = memory::collect(self.table.iter().enumerate().map(block_at))?;
        places.sort_unstable_by_key(|(block, place)| (place.start, *block));
        for n in (1..places.len()).rev() {
            let next = places[n].1.clone();
            let place = &mut places[n - 1].1;
            place.end = if next.start > place.start { next.start } else { next.end };
        }
        Ok(places)
    }

    /// Whether this was made for the chunk that starts with `head`: header and table.
    fn is_for(&self, head: &[u8]) -> Result<bool> {
        let header = ChunkHeader::read(head);
        let same = header.is_ok_and(|mut header| {
            header.blosc2_flags &= !blosc2_flags::LAZY;
            header == self.header
        });
        Ok(same && independent_blocks(head, &self.header)?.is_some_and(|table| table == self.table))
    }

    /// Gets ready to turn `chunk`, the old chunk, into the new one where it is; `false` if that cannot be, since blocks
    /// share bytes: a damaged chunk.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`, `Data` for chunks above 2 GiB.
    pub(crate) fn prepare(&mut self, chunk: &[u8]) -> Result<bool> {
        let (pieces, starts) = self.pieces()?;
        let first = blocks_begin(&self.header);
        let mut head = memory::copy_of(&chunk[..first])?;
        self.write_sizes(&mut head, &starts)?;
        let mut moves = memory::with_capacity(pieces.len())?;
        let mut places = memory::with_capacity(self.streams.len())?;
        let (mut at, mut kept_end) = (first, first);
        for piece in &pieces {
            match piece {
                Piece::Kept(range) if range.start < kept_end => return Ok(false),
                Piece::Kept(range) => {
                    kept_end = range.end;
                    moves.push((range.clone(), at));
                }
                Piece::New(n, _) => places.push((*n, at)),
            }
            at += piece.len();
        }
        drop(pieces);
        self.plan = Some(Plan { head, moves, places });
        Ok(true)
    }

    /// Writes block starts, if there is a table of them, and size of the new chunk to its front.
    fn write_sizes(&self, head: &mut [u8], starts: &[usize]) -> Result<()> {
        let table = if self.header.is_memcpyed() { &[] } else { starts };
        for (block, &start) in table.iter().enumerate() {
            put_i32(head, EXTENDED_HEADER_LENGTH + 4 * block, to_i32(start, ErrorKind::Data)?);
        }
        put_i32(head, offset::CBYTES, to_i32(self.cbytes, ErrorKind::Data)?);
        Ok(())
    }

    /// How many bytes [`apply`](Self::apply) needs room for.
    pub(crate) fn room(&self) -> usize {
        self.cbytes.max(self.header.cbytes)
    }

    /// Turns `chunk`, the old chunk for which this was prepared, into the new one where it is: only what changes its
    /// place is moved.
    ///
    /// # Panics
    ///
    /// If it was not prepared, or the memory of the chunk is borrowed or lacks [room](Self::room).
    pub(crate) fn apply(&self, chunk: &mut MallocBuf) {
        let Plan { head, moves, places } = self.plan.as_ref().expect("prepared before");
        assert!(chunk.capacity() >= self.room(), "room was made before");
        let has_room = "there is room for it";
        chunk.resize(self.room()).expect(has_room);
        // Pieces that move to the back, the last one first, then those that move to the front: none lands on one that
        // has yet to move, since their order stays.
        for (range, to) in moves.iter().rev().filter(|(range, to)| *to > range.start) {
            chunk.copy_within(range.start, *to, range.len());
        }
        for (range, to) in moves.iter().filter(|(range, to)| *to < range.start) {
            chunk.copy_within(range.start, *to, range.len());
        }
        for &(n, at) in places {
            chunk.write_at(at, &self.streams[n]).expect(has_room);
        }
        chunk.truncate(self.cbytes);
        chunk.write_at(0, head).expect(has_room);
    }

    /// The new chunk, made of `chunk`, the old one.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`, those of deriving it.
    pub(crate) fn applied_to(&self, chunk: &[u8]) -> Result<MallocBuf> {
        let mut fresh = Vec::new();
        self.derive(chunk, None, &mut fresh)?;
        MallocBuf::copy_of(&fresh)
    }
}

impl Derive for Patch {
    fn derive(&self, old: &[u8], source: Option<&dyn BlockSource>, new: &mut Vec<u8>) -> Result<()> {
        ensure(self.is_for(old)?, ErrorKind::ChunkUpdate, "chunk changed while a new version was made")?;
        let (pieces, starts) = self.pieces()?;
        let first = blocks_begin(&self.header);
        memory::resize(new, self.cbytes)?;
        copy::copy(&old[..first], &mut new[..first]);
        new[offset::BLOSC2_FLAGS] &= !blosc2_flags::LAZY;
        self.write_sizes(new, &starts)?;
        let mut rest = &mut new[first..];
        for piece in pieces {
            let (part, behind) = rest.split_at_mut(piece.len());
            rest = behind;
            match (piece, source) {
                (Piece::New(_, streams), _) => copy::copy(streams, part),
                (Piece::Kept(range), Some(source)) => source.read_at(range.start as u64, part)?, // widening
                (Piece::Kept(range), None) => {
                    let cut_off = Error::new(ErrorKind::ReadBuffer, "chunk cut off");
                    copy::copy(old.get(range).ok_or(cut_off)?, part);
                }
            }
        }
        Ok(())
    }
}
