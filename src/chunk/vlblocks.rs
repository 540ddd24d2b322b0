//! Chunks of blocks with individually given lengths.
//!
//! Block `i` is stored at `bstarts[i]`: its length as an `i32`, then raw bytes if the rest of its span has that length,
//! else input of the codec. The blocks lie in index order without gaps, and each goes through the filters alone.

use super::blocks::{Layout, capped_typesize};
use super::compress::{
    Compressed, FilterBuffers, check_sizes, coded_flags, new_header, resolve_container, stream_context,
    within_reach,
};
use super::decompress::{DisjointParts, for_each_block};
use super::dict;
use super::input::{Place, run_prefilter};
use super::ordered::{OrderedBlocks, Progress, encode_all};
use super::params::{Decoding, Encoding, PostfilterCall, callback_scratch_len};
use super::pipeline::{DeltaReference, FilterHost, Pipeline};
use super::reader::{Reader, unreadable};
use super::scratch::{self, BlockBuffers, Worker};
use super::streams::{Stream, Written};
use crate::bytes::{get_i32, put_i32, to_i32};
use crate::codecs::state::{EncodeDict, StreamCodec};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{
    EXTENDED_HEADER_LENGTH, MAX_BUFFERSIZE, VERSION_VLBLOCKS, blosc2_flags, flags, flags2,
};
use crate::format::geometry::Container;
use crate::memory::{self, Room};
use crate::mutex::Mutex;
use std::ops::Range;

/// Compresses `blocks` into one chunk; 32 bytes, 8 per block and the data always fit. A dictionary that leaves too
/// little room for them is left out.
///
/// # Errors
///
/// `InvalidParam` without blocks or for empty ones; else as `compress_with`.
pub fn compress_vl(enc: &Encoding<'_>, blocks: &[&[u8]], dest: &mut [u8]) -> Result<Compressed> {
    let nbytes = vl_nbytes(blocks)?;
    check_sizes(nbytes, dest.len())?;
    let dest = within_reach(dest);
    enc.params.check()?;
    let codec = StreamCodec::resolve(enc.params.codec_id());
    let typesize = capped_typesize(enc.params.typesize);
    let pipeline = Pipeline::forward(&enc.params.filters, &enc.params.filters_meta, typesize);
    let longest = blocks.iter().map(|block| block.len()).max().expect("there are blocks");
    let layout = Layout { blocksize: longest, split: false, typesize };
    let container = resolve_container(enc, &codec, &pipeline);
    let writer = Writer { enc, blocks, codec: &codec, pipeline, layout, container };
    let cbytes = writer.run(nbytes, dest)?;
    Ok(Compressed { cbytes, blocksize: longest, nblocks: blocks.len(), typesize })
}

/// The size of all `blocks` together.
///
/// # Errors
///
/// `InvalidParam` without blocks or for empty ones, `MaxBufsizeExceeded`.
pub fn vl_nbytes(blocks: &[&[u8]]) -> Result<usize> {
    require(!blocks.is_empty(), "no blocks")?;
    require(blocks.iter().all(|block| !block.is_empty()), "empty block")?;
    let total = blocks.iter().try_fold(0usize, |sum, block| sum.checked_add(block.len()));
    let nbytes = total.filter(|&sum| sum <= MAX_BUFFERSIZE);
    nbytes.ok_or(Error::new(ErrorKind::MaxBufsizeExceeded, "blocks above 2 GiB"))
}

/// What the blocks of one chunk are compressed with.
struct Writer<'a> {
    enc: &'a Encoding<'a>,
    blocks: &'a [&'a [u8]],
    codec: &'a StreamCodec,
    pipeline: Pipeline,
    layout: Layout,
    container: Container,
}

impl Writer<'_> {
    /// Writes the chunk, with a dictionary if that is wanted and leaves enough room; returns its size, 0 if it does not
    /// fit.
    fn run(&self, nbytes: usize, dest: &mut [u8]) -> Result<usize> {
        if let Some((bytes, digested)) = self.make_dict()? {
            let cbytes = self.write(nbytes, Some((&bytes, &digested)), dest)?;
            if cbytes > 0 {
                return Ok(cbytes);
            }
        }
        self.write(nbytes, None, dest)
    }

    fn write(&self, nbytes: usize, dict: Option<(&[u8], &EncodeDict)>, dest: &mut [u8]) -> Result<usize> {
        let start = EXTENDED_HEADER_LENGTH + 4 * self.blocks.len();
        if start + dict.map_or(0, |(bytes, _)| 4 + bytes.len()) > dest.len() {
            return Ok(0);
        }
        let mut progress = Progress { dest, pos: start, next: 0, all_zeros: false };
        if let Some((bytes, _)) = dict {
            progress.append_dict(bytes);
        }
        if !self.encode_all(dict.map(|(_, digested)| digested), &mut progress)? {
            return Ok(0);
        }
        let Progress { dest, pos: cbytes, .. } = progress;
        let header = self.header(nbytes, cbytes, dict.is_some());
        header.write(dest.first_chunk_mut().expect("the room was checked"));
        Ok(cbytes)
    }

    fn header(&self, nbytes: usize, cbytes: usize, has_dict: bool) -> ChunkHeader {
        ChunkHeader {
            version: VERSION_VLBLOCKS,
            flags: flags::EXTENDED | coded_flags(self.enc, self.codec, &self.layout),
            blocksize: self.blocks.len(),
            cbytes,
            flags2: flags2::VL_BLOCKS,
            blosc2_flags: if has_dict { blosc2_flags::USE_DICT } else { 0 },
            ..new_header(self.enc, self.codec, &self.layout, nbytes)
        }
    }

    fn encode_all(&self, dict: Option<&EncodeDict>, progress: &mut Progress<'_>) -> Result<bool> {
        let blocks = OrderedBlocks {
            nblocks: self.blocks.len(),
            bstarts: EXTENDED_HEADER_LENGTH,
            worst_case: 4 + self.layout.blocksize,
            encode: &|tid, worker, nblock, dest| self.encode_block(dict, tid, worker, nblock, dest),
        };
        let total: usize = self.blocks.iter().map(|block| block.len()).sum();
        let threads = self.enc.threads_for(total);
        encode_all(&blocks, progress, threads.for_blocks(total / self.layout.blocksize))
    }

    fn encode_block(
        &self,
        dict: Option<&EncodeDict>,
        tid: usize,
        worker: &mut Worker,
        nblock: usize,
        dest: &mut [u8],
    ) -> Result<Option<Written>> {
        let Worker { codecs, callback, buffers: BlockBuffers { ping, pong, .. }, .. } = worker;
        let block = self.filtered(tid, nblock, FilterBuffers { callback, ping, pong })?;
        let len = block.len();
        let Some(room) = dest.len().checked_sub(4) else { return Ok(None) };
        let (head, body) = dest.split_at_mut(4);
        put_i32(head, 0, to_i32(len, ErrorKind::InvalidParam)?);
        let capacity = len.min(room);
        let mut csize = 0;
        if self.enc.params.clevel > 0 {
            let cx = stream_context(self.enc, &self.layout, &self.container, &[]);
            csize = codecs.encode(self.codec, dict, &cx, block, &mut body[..capacity])?;
        }
        if csize == 0 || csize == len {
            let Some(raw) = body.get_mut(..len) else { return Ok(None) };
            raw.copy_from_slice(block);
            csize = len;
        }
        Ok(Some(Written { len: 4 + csize, all_zeros: false }))
    }

    fn filtered<'b>(&'b self, tid: usize, nblock: usize, buffers: FilterBuffers<'b>) -> Result<&'b [u8]> {
        let source = self.blocks[nblock];
        let input = if self.enc.prefilter.is_some() {
            let place = Place { input: source.as_ptr(), len: source.len(), offset: 0, nblock: 0, tid };
            run_prefilter(self.enc, &self.layout, &place, buffers.callback)?
        } else {
            source
        };
        let host =
            FilterHost { blocksize: self.layout.blocksize, container: &self.container, host: &self.enc.host };
        self.pipeline.run_forward(host, DeltaReference::Own, input, buffers.ping, buffers.pong)
    }

    /// The dictionary of the chunk; none for codecs that would not use it.
    fn make_dict(&self) -> Result<Option<(Vec<u8>, EncodeDict)>> {
        let params = self.enc.params;
        if !params.use_dict || params.clevel == 0 || !self.codec.takes_dict() {
            return Ok(None);
        }
        let sizes = memory::collect(self.blocks.iter().map(|block| block.len()))?;
        let Some(plan) = dict::Plan::for_vl_blocks(sizes) else { return Ok(None) };
        let mut samples = Vec::new();
        let mut worker = scratch::worker();
        for nblock in 0..self.blocks.len() {
            if samples.len() >= plan.wanted(self.codec) {
                break;
            }
            memory::extend(&mut samples, self.filtered(0, nblock, FilterBuffers::of(&mut worker))?)?;
        }
        plan.build(self.codec, params.clevel, &samples)
    }
}

/// A chunk of variable-length blocks, opened for reading; its table is valid.
pub struct VlChunk<'a> {
    reader: Reader<'a>,
    /// The most bytes that a block takes in the chunk, if that is lazy.
    longest_span: usize,
    /// Length of the longest block. Not known of a lazy chunk, which has the lengths where its blocks are.
    longest: Option<usize>,
}

/// Opens the chunk of variable-length blocks `chunk`, whose header was read.
///
/// # Errors
///
/// `InvalidParam` for other chunks; `InvalidHeader` for contradictions in its tables; `ReadBuffer` if a section is cut
/// off.
pub fn open_vl<'a>(dec: &'a Decoding<'a>, header: &'a ChunkHeader, chunk: &'a [u8]) -> Result<VlChunk<'a>> {
    require(header.is_vl(), "not a chunk of variable-length blocks")?;
    header.check_complete(chunk.len())?;
    let mut reader = Reader::new(dec, header, chunk);
    reader.prepare()?;
    VlChunk::new(reader)
}

/// The number of blocks of the chunk of variable-length blocks that `chunk` starts with; only the header is read.
///
/// # Errors
///
/// Those of [`ChunkHeader::read`]; `InvalidParam` for other chunks.
pub fn vl_nblocks(chunk: &[u8]) -> Result<usize> {
    let header = ChunkHeader::read(chunk)?;
    require(header.is_vl(), "not a chunk of variable-length blocks")?;
    Ok(header.nblocks())
}

impl<'a> VlChunk<'a> {
    /// Validates the tables of an opened chunk.
    pub(super) fn new(reader: Reader<'a>) -> Result<VlChunk<'a>> {
        let mut chunk = VlChunk { reader, longest_span: 0, longest: None };
        chunk.check_tables()?;
        if let (Some(tell), Some(longest)) = (chunk.reader.dec.longest_block, chunk.longest) {
            tell(longest);
        }
        Ok(chunk)
    }

    /// Checks that the blocks lie in order and, where the lengths are at hand, that these are positive and add up to
    /// the size of the chunk. Takes down the longest span or length.
    fn check_tables(&mut self) -> Result<()> {
        let Reader { header, data, table_end, .. } = self.reader;
        let is_lazy = self.reader.lazy.is_some();
        let (mut in_order, mut all_valid) = (true, true);
        let (mut end, mut sum, mut longest, mut longest_span) = (header.cbytes, 0u64, 0, 0);
        let mut nstarts = 0;
        // From the last block to the first: each ends where the one before in this order starts.
        for start in self.reader.bstarts().rev() {
            in_order &= start < end;
            longest_span = longest_span.max(end.wrapping_sub(start));
            end = start;
            nstarts += 1;
            if !is_lazy {
                let stored = data.get(start..).and_then(<[u8]>::first_chunk);
                let len = stored.map_or(0, |raw| i32::from_le_bytes(*raw));
                all_valid &= len > 0;
                sum += u64::from(len.unsigned_abs());
                longest = longest.max(len);
            }
        }
        let bad = ErrorKind::InvalidHeader;
        ensure(
            nstarts == header.nblocks() && end >= table_end,
            bad,
            "block start missing or inside the table",
        )?;
        ensure(in_order, bad, "block starts are not in order")?;
        ensure(all_valid, bad, "block length out of range")?;
        if is_lazy {
            self.longest_span = longest_span;
        } else {
            ensure(sum == header.nbytes as u64, bad, "blocks do not fill the chunk")?; // widening
            self.longest = usize::try_from(longest).ok();
        }
        Ok(())
    }

    /// Number of blocks.
    #[must_use]
    pub fn nblocks(&self) -> usize {
        self.reader.nblocks
    }

    #[inline(always)]
    fn check_number(&self, nblock: usize) -> Result<()> {
        require(nblock < self.nblocks(), "block number out of range")
    }

    /// Where block `nblock` lies in the chunk.
    #[inline(always)]
    fn place(&self, nblock: usize) -> Result<Range<usize>> {
        self.check_number(nblock)?;
        let (start, next) = (self.reader.bstart(nblock)?, nblock + 1);
        let end = if next < self.nblocks() { self.reader.bstart(next)? } else { self.reader.header.cbytes };
        ensure(start <= end, ErrorKind::InvalidHeader, "block starts are not in order")?;
        Ok(start..end)
    }

    /// Uncompressed length of block `nblock` in bytes. For lazy chunks this reads from the source.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such block; `InvalidHeader` if the length is not positive or exceeds the chunk;
    /// errors of the source.
    #[inline]
    pub fn block_len(&self, nblock: usize) -> Result<usize> {
        self.check_number(nblock)?;
        let start = self.reader.bstart(nblock)?;
        let stored = match self.reader.lazy {
            None => get_i32(self.reader.data, start),
            Some(source) => {
                let mut raw = [0; 4];
                self.lazy_span(nblock)?;
                source.read_at(start as u64, &mut raw).map_err(unreadable)?;
                Some(i32::from_le_bytes(raw))
            }
        };
        let len = stored.and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
        let valid = (1..=self.reader.header.nbytes).contains(&len);
        ensure(valid, ErrorKind::InvalidHeader, "block length out of range")?;
        Ok(len)
    }

    /// Checks the size of a block in the trailer of a lazy chunk.
    fn lazy_span(&self, nblock: usize) -> Result<()> {
        let size = self.reader.lazy_size(nblock, self.longest_span)?;
        ensure(
            size > 4 && size == self.place(nblock)?.len(),
            ErrorKind::InvalidHeader,
            "block size in a lazy chunk out of range",
        )
    }

    /// Decodes block `nblock` into `dest`, which has its length.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such block; `Data` for damaged blocks and for a `dest` of another length; else as
    /// `decompress_with`.
    pub fn decode_block(&self, nblock: usize, dest: &mut [u8]) -> Result<()> {
        let mut worker = scratch::worker();
        self.finish_block(&mut worker, 0, nblock, dest)
    }

    #[inline]
    fn finish_block(&self, worker: &mut Worker, tid: usize, nblock: usize, dest: &mut [u8]) -> Result<()> {
        if self.reader.dec.postfilter.is_none() {
            return self.decode(worker, nblock, dest);
        }
        let mut buffer = std::mem::take(&mut worker.callback);
        let longest = self.longest.unwrap_or(dest.len());
        let scratch_len = callback_scratch_len(longest, self.reader.header.typesize);
        let (input, scratch) = buffer.get_two(dest.len(), scratch_len)?;
        let outcome = self.decode(worker, nblock, input).and_then(|()| {
            self.reader.run_postfilter(PostfilterCall {
                input,
                output: dest,
                typesize: self.reader.header.typesize,
                offset: nblock * longest,
                nblock,
                tid,
                scratch,
            })
        });
        worker.callback = buffer;
        outcome
    }

    #[inline]
    fn decode(&self, worker: &mut Worker, nblock: usize, dest: &mut [u8]) -> Result<()> {
        let place = self.place(nblock)?;
        ensure(place.len() > 4, ErrorKind::Data, "block without content")?;
        let (start, len) = (place.start + 4, dest.len());
        let Worker { codecs, buffers, stream, .. } = worker;
        let content = match self.reader.lazy {
            None => {
                let bytes = self.reader.data.get(start..place.end);
                bytes.ok_or(Error::new(ErrorKind::Data, "block is cut off"))?
            }
            Some(source) => {
                let bytes = stream.get(place.end - start)?;
                source.read_at(start as u64, bytes)?;
                bytes
            }
        };
        let content = if content.len() == len { Stream::Raw(content) } else { Stream::Coded(content) };
        self.reader.decode_stream(codecs, buffers, content, DeltaReference::Own, dest)
    }

    /// Decodes all blocks that the mask lets through into `dest`, one after another; returns its length.
    pub(super) fn decode_all(&self, mask: Option<&[bool]>, dest: &mut [u8]) -> Result<usize> {
        let mut offsets = memory::with_capacity(self.nblocks())?;
        let mut total = 0usize;
        for nblock in 0..self.nblocks() {
            let len = self.block_len(nblock)?;
            offsets.push((total, len));
            total += len;
            ensure(total <= dest.len(), ErrorKind::InvalidHeader, "blocks longer than the chunk")?;
        }
        ensure(total == dest.len(), ErrorKind::InvalidHeader, "blocks do not fill the chunk")?;
        let parts = DisjointParts::new(dest);
        for_each_block(self.reader.threads_for(parts.len()), 0..self.nblocks(), |tid, worker, nblock| {
            let (offset, len) = offsets[nblock];
            if !mask.is_some_and(|mask| mask[nblock]) {
                // SAFETY: every block is handed out once, and the offsets are running sums of the lengths.
                let block = unsafe { parts.part(offset, len) };
                self.finish_block(worker, tid, nblock, block)?;
            }
            Ok(len)
        })
    }

    /// What decoding a block needs: what the application brings may leave some of the bytes as they were.
    fn room(&self, len: usize) -> Room {
        let Reader { dec, codec, pipeline, .. } = &self.reader;
        let fills_blocks = dec.postfilter.is_none() && codec.is_built_in() && pipeline.is_built_in();
        if fills_blocks { Room::Any(len) } else { Room::Zeros(len) }
    }

    /// Decodes block `nblock` into a buffer that `make` returns.
    ///
    /// # Errors
    ///
    /// As [`decode_block`](Self::decode_block), and those of `make`.
    pub fn decode_one<B: AsMut<[u8]>>(&self, nblock: usize, make: impl Fn(Room) -> Result<B>) -> Result<B> {
        let mut buffer = make(self.room(self.block_len(nblock)?))?;
        self.decode_block(nblock, buffer.as_mut())?;
        Ok(buffer)
    }

    /// Decodes all blocks, each into a buffer of its own, as [`decode_one`](Self::decode_one) does.
    ///
    /// # Errors
    ///
    /// As [`decode_one`](Self::decode_one).
    pub fn decode_each<B: AsMut<[u8]> + Send>(&self, make: impl Fn(Room) -> Result<B>) -> Result<Vec<B>> {
        let buffer = |nblock| make(self.room(self.block_len(nblock)?));
        let nblocks = self.nblocks();
        let mut buffers = memory::with_capacity(nblocks)?;
        let threads = self.reader.threads_for(self.reader.header.nbytes);
        if threads.for_blocks(nblocks).is_none() {
            let mut worker = scratch::worker();
            for nblock in 0..nblocks {
                let mut buffer = buffer(nblock)?;
                self.finish_block(&mut worker, 0, nblock, buffer.as_mut())?;
                buffers.push(buffer);
            }
            return Ok(buffers);
        }
        for nblock in 0..nblocks {
            buffers.push(buffer(nblock)?);
        }
        let slots = memory::collect(buffers.iter_mut().map(Mutex::new))?;
        for_each_block(threads, 0..nblocks, |tid, worker, nblock| {
            self.finish_block(worker, tid, nblock, slots[nblock].lock().as_mut())?;
            Ok(0)
        })?;
        drop(slots);
        Ok(buffers)
    }
}
