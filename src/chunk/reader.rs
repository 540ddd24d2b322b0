//! A chunk opened for reading: its validated header, where its blocks are, and one block decoded.

#![forbid(unsafe_code)]

use super::params::{Decoding, PostfilterCall, Threads, callback_scratch_len};
use super::partial_read::{self, Needed};
use super::pipeline::{DeltaReference, FilterHost, Pipeline};
use super::plain::{self, Payload};
use super::planes;
use super::scratch::{self, BlockBuffers, Buffer, Worker};
use super::source::BlockSource;
use super::streams::{Stream, StreamDecoder, StreamReader};
use crate::bytes::get_i32;
use crate::codecs::StreamContext;
use crate::codecs::state::{CodecStates, DecodeDict, StreamCodec};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::filters::shuffle;
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, MAX_DICTSIZE};
use crate::format::geometry::Container;
use std::borrow::Cow;
use std::ops::Range;

/// A chunk opened for reading.
pub(super) struct Reader<'a> {
    pub(super) dec: &'a Decoding<'a>,
    pub(super) header: &'a ChunkHeader,
    /// Number of blocks.
    pub(super) nblocks: usize,
    /// Position of the trailer of lazy chunks, and end of the table of block starts.
    pub(super) table_end: usize,
    /// The bytes at hand: the chunk up to its cbytes, or header, table and trailer of a lazy chunk.
    pub(super) data: &'a [u8],
    /// Where the blocks of a lazy chunk are.
    pub(super) lazy: Option<&'a dyn BlockSource>,
    pub(super) payload: Payload,
    pub(super) codec: StreamCodec,
    pub(super) pipeline: Pipeline,
    pub(super) dict: Option<DecodeDict<'a>>,
    pub(super) container: Container,
}

/// The error for a dictionary or a length that cannot be read. Unlike for blocks, a file that ends too early counts as
/// unreadable, as in the C library.
pub(super) fn unreadable(error: Error) -> Error {
    if error.kind() == ErrorKind::ReadBuffer { Error::new(ErrorKind::FileRead, error.what()) } else { error }
}

/// Whether what comes out of `chunk` may depend on the shape of the blocks of the array that it belongs to.
///
/// # Errors
///
/// Those of [`ChunkHeader::read`].
pub(crate) fn depends_on_shape(chunk: &[u8]) -> Result<bool> {
    let header = ChunkHeader::read(chunk)?;
    let mut pipeline = Pipeline::empty();
    pipeline.set_backward(&header);
    let codec = StreamCodec::resolve(header.decoder_compcode());
    let depends = codec.needs_geometry() || pipeline.depends_on_shape();
    Ok(depends && Payload::of(&header) == Payload::Coded)
}

impl<'a> Reader<'a> {
    /// The threads for decoding `nbytes` bytes of its data.
    pub(super) fn threads_for(&self, nbytes: usize) -> Threads<'a> {
        let threads = self.dec.threads;
        if threads.pays_from == 0 || self.pipeline.has_applications() {
            return threads;
        }
        // What is stored as it is, or repeats one value, takes no longer than with the fastest codec.
        let cost = if self.payload == Payload::Coded { self.codec.decode_cost() } else { 1 };
        threads.for_work(nbytes, cost)
    }

    /// A reader of `chunk`, whose header was read. Nothing else is checked: [`prepare`](Self::prepare) does that.
    ///
    /// (Two steps, because a reader is large and moving it out of a `Result` shows with small chunks.)
    #[inline(always)]
    pub(super) fn new(dec: &'a Decoding<'a>, header: &'a ChunkHeader, chunk: &'a [u8]) -> Reader<'a> {
        let payload = Payload::of(header);
        let coded = payload == Payload::Coded;
        let nblocks = header.nblocks();
        Reader {
            dec,
            header,
            nblocks,
            table_end: header.table_end(),
            data: if header.is_lazy() { chunk } else { &chunk[..chunk.len().min(header.cbytes)] },
            lazy: None,
            payload,
            codec: if coded { StreamCodec::resolve(header.decoder_compcode()) } else { StreamCodec::Unknown },
            pipeline: Pipeline::empty(),
            dict: None,
            container: Container::None,
        }
    }

    /// Checks the table of block starts, the trailer of lazy chunks, and the dictionary; not the blocks.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` for sections that are cut off, `Data` for an unknown special value, `CodecDict` for bad
    /// dictionaries, `FileRead` for that of a lazy chunk in a file that ends before, `InvalidParam` for a lazy chunk
    /// without a source.
    #[inline(always)]
    pub(super) fn prepare(&mut self) -> Result<()> {
        if self.payload != Payload::Coded || self.header.is_lazy() || self.header.has_dict() {
            self.prepare_unusual()?;
        }
        if self.payload == Payload::Coded {
            self.check_table()?;
            self.pipeline.set_backward(self.header);
            if self.codec.needs_geometry() || self.pipeline.needs_geometry() {
                self.container = self.dec.container.map_or(Container::None, |container| container());
            }
        }
        Ok(())
    }

    /// The part of [`prepare`](Self::prepare) that most chunks do without.
    #[inline(never)]
    fn prepare_unusual(&mut self) -> Result<()> {
        ensure(self.payload != Payload::Unknown, ErrorKind::Data, "unknown special value")?;
        if self.header.is_lazy() {
            if self.payload == Payload::Coded {
                self.check_table()?;
            }
            let missing = Error::new(ErrorKind::InvalidParam, "lazy chunk outside of a frame");
            self.lazy = Some(self.dec.source.ok_or(missing)?);
            let end = self.table_end as u64 + 12 + 4 * self.nblocks as u64; // widening
            let fits = end <= self.data.len() as u64;
            ensure(fits, ErrorKind::ReadBuffer, "trailer of a lazy chunk is cut off")?;
        }
        if self.header.has_dict() {
            let bytes = self.read_dict()?;
            let dict = scratch::with_worker(|worker| worker.codecs.decode_dict(&self.codec, bytes));
            self.dict = Some(dict?);
        }
        Ok(())
    }

    #[inline]
    fn check_table(&self) -> Result<()> {
        let fits = self.table_end <= self.data.len() || self.nblocks == 0;
        ensure(fits, ErrorKind::ReadBuffer, "table of block starts is cut off")
    }

    /// Whether [`plain_bytes`](Self::plain_bytes) is all that there is to do.
    pub(super) fn is_plain(&self) -> bool {
        self.payload != Payload::Coded && self.dec.postfilter.is_none()
    }

    fn read_dict(&self) -> Result<Cow<'a, [u8]>> {
        let start = self.table_end;
        let bad_size = Error::new(ErrorKind::CodecDict, "dictionary size out of range");
        let check = |size: i32| {
            let size = usize::try_from(size).map_err(|_| bad_size)?;
            if (1..=MAX_DICTSIZE).contains(&size) { Ok(size) } else { Err(bad_size) }
        };
        if let Some(source) = self.lazy {
            let short = ErrorKind::InvalidHeader;
            ensure(self.header.cbytes >= start + 4, short, "no room for the dictionary")?;
            let mut raw = [0; 4];
            source.read_at(start as u64, &mut raw).map_err(unreadable)?;
            let size = check(i32::from_le_bytes(raw))?;
            ensure(self.header.cbytes - start - 4 >= size, short, "no room for the dictionary")?;
            let mut bytes = scratch::zeroed(size)?;
            source.read_at(start as u64 + 4, &mut bytes).map_err(unreadable)?;
            return Ok(bytes.into());
        }
        let short = Error::new(ErrorKind::ReadBuffer, "dictionary is cut off");
        let size = check(get_i32(self.data, start).ok_or(short)?)?;
        Ok(self.data.get(start + 4..).and_then(|rest| rest.get(..size)).ok_or(short)?.into())
    }

    /// The start of block `nblock` as the table has it.
    pub(super) fn bstart(&self, nblock: usize) -> Result<usize> {
        let start = get_i32(self.data, self.header.overhead() + 4 * nblock);
        let start = start.ok_or(Error::new(ErrorKind::ReadBuffer, "table of block starts is cut off"))?;
        let start = usize::try_from(start).unwrap_or(0);
        ensure(start >= self.table_end, ErrorKind::Data, "block starts before the end of the table")?;
        Ok(start)
    }

    /// The starts of all blocks as the table has them, unchecked; 0 for negative ones. Fewer if the table is cut off.
    pub(super) fn bstarts(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let table = self.data.get(self.header.overhead()..self.table_end).unwrap_or_default();
        let start = |raw: &[u8]| raw.try_into().map_or(0, i32::from_le_bytes);
        table.chunks_exact(4).map(move |raw| usize::try_from(start(raw)).unwrap_or(0))
    }

    /// The size of block `nblock` as the trailer of a lazy chunk has it.
    pub(super) fn lazy_size(&self, nblock: usize, max: usize) -> Result<usize> {
        let size = get_i32(self.data, self.table_end + 12 + 4 * nblock);
        let size = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
        ensure(
            (1..=max).contains(&size),
            ErrorKind::InvalidHeader,
            "block size in a lazy chunk out of range",
        )?;
        Ok(size)
    }

    /// The stored streams of block `nblock`, with whatever follows them in the chunk.
    #[inline]
    fn stored_block<'b>(&self, nblock: usize, buffer: &'b mut Buffer) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        let start = self.bstart(nblock)?;
        let Some(source) = self.lazy else {
            let rest = self.data.get(start..).filter(|rest| !rest.is_empty());
            return rest.ok_or(Error::new(ErrorKind::Data, "block starts past the end of the chunk"));
        };
        let size = self.lazy_size(nblock, self.header.blocksize + 4 * self.header.typesize)?;
        let bytes = buffer.get(size)?;
        source.read_at(start as u64, bytes)?;
        Ok(bytes)
    }

    /// Number of streams of block `nblock`.
    pub(super) fn nstreams(&self, nblock: usize) -> usize {
        self.header.nstreams(self.header.block_len(nblock))
    }

    /// The streams of block `nblock` and the length of each of them when decoded.
    pub(super) fn streams<'b>(&self, nblock: usize, buffer: &'b mut Buffer) -> Result<StreamReader<'b>>
    where
        'a: 'b,
    {
        let len = self.header.block_len(nblock) / self.nstreams(nblock);
        ensure(len > 0, ErrorKind::WriteBuffer, "streams without bytes")?;
        Ok(StreamReader::new(self.stored_block(nblock, buffer)?, len))
    }

    /// As [`streams`](Self::streams), of which only the rows that `rows` names are looked at: ranges in ascending
    /// order.
    pub(super) fn streams_for_rows<'b>(
        &self,
        nblock: usize,
        rows: &dyn Fn() -> Result<Vec<Range<usize>>>,
        buffer: &'b mut Buffer,
    ) -> Result<StreamReader<'b>>
    where
        'a: 'b,
    {
        let Some(source) = self.lazy else { return self.streams(nblock, buffer) };
        let size = self.lazy_size(nblock, self.header.blocksize + 4 * self.header.typesize)?;
        let nstreams = self.nstreams(nblock);
        if size <= nstreams * partial_read::SMALL {
            return self.streams(nblock, buffer);
        }
        let len = self.header.block_len(nblock) / nstreams;
        let rows = rows()?;
        if rows.iter().map(Range::len).sum::<usize>() > len / 2 {
            return self.streams(nblock, buffer);
        }
        ensure(
            rows.last().is_none_or(|last| last.end <= len),
            ErrorKind::Data,
            "fewer bytes than asked for",
        )?;
        let bytes = buffer.get(size)?;
        let wanted = rows.last().map_or(0, |last| last.end);
        let most = if self.dict.is_none() { self.codec.input_for(wanted, len) } else { usize::MAX };
        let needed = Needed { nstreams, len, rows: &rows, most };
        partial_read::read_rows(source, self.bstart(nblock)?, &needed, bytes)?;
        Ok(StreamReader::new(bytes, len))
    }

    /// Decodes the streams of block `nblock`, which leaves its filters to be undone. Returns the number of bytes that
    /// the streams cover.
    pub(super) fn decode_streams(
        &self,
        codecs: &mut CodecStates,
        nblock: usize,
        buffer: &mut Buffer,
        dest: &mut [u8],
    ) -> Result<usize> {
        let bytes = self.stored_block(nblock, buffer)?;
        self.stream_decoder().decode_all(codecs, bytes, self.nstreams(nblock), dest)
    }

    #[inline]
    pub(super) fn stream_decoder(&self) -> StreamDecoder<'_> {
        StreamDecoder {
            codec: &self.codec,
            dict: self.dict.as_ref(),
            cx: StreamContext {
                clevel: 0,
                meta: self.header.compcode_meta,
                typesize: self.header.typesize,
                blocksize: self.header.blocksize,
                container: &self.container,
                chunk: self.data,
                host: &self.dec.host,
            },
        }
    }

    pub(super) fn filter_host(&self) -> FilterHost<'_> {
        FilterHost { blocksize: self.header.blocksize, container: &self.container, host: &self.dec.host }
    }

    /// Whether the first block must be decoded before any other.
    pub(super) fn refers_to_block0(&self) -> bool {
        self.payload == Payload::Coded
            && !self.header.is_vl()
            && self.nblocks > 1
            && self.pipeline.has_delta()
    }

    /// Decodes block `nblock` into `dest`, which has its length. Returns the number of bytes that its streams cover.
    pub(super) fn decode_block(
        &self,
        worker: &mut Worker,
        nblock: usize,
        reference: DeltaReference<'_>,
        dest: &mut [u8],
    ) -> Result<usize> {
        if self.payload != Payload::Coded {
            self.plain_bytes(nblock * self.header.blocksize, dest)?;
            return Ok(dest.len());
        }
        self.decode_coded_block(worker, nblock, reference, dest)
    }

    /// [`decode_block`](Self::decode_block) of a chunk with streams; part of its callers, because calls show with small
    /// chunks.
    #[inline(always)]
    fn decode_coded_block(
        &self,
        worker: &mut Worker,
        nblock: usize,
        reference: DeltaReference<'_>,
        dest: &mut [u8],
    ) -> Result<usize> {
        let reference = if nblock == 0 { DeltaReference::Own } else { reference };
        let Worker { codecs, buffers, stream, .. } = worker;
        let bytes = self.stored_block(nblock, stream)?;
        let nstreams = self.nstreams(nblock);
        if nstreams == 1 && !dest.is_empty() {
            let stream = StreamReader::new(bytes, dest.len()).next_stream()?;
            self.decode_stream(codecs, buffers, stream, reference, dest)?;
            return Ok(dest.len());
        }
        let decoder = self.stream_decoder();
        if self.pipeline.is_empty() {
            return decoder.decode_all(codecs, bytes, nstreams, dest);
        }
        let BlockBuffers { decoded, ping, pong } = buffers;
        let width = self.pipeline.as_shuffle().unwrap_or(0);
        if planes::suit_block(dest.len(), nstreams, width) {
            planes::decode_block(&decoder, codecs, bytes, width, decoded, dest)?;
            return Ok(dest.len());
        }
        if let Some((stride, rows)) = planes::raw_rows(bytes, nstreams, width, dest.len()) {
            shuffle::unshuffle_rows(width, stride, rows, dest);
            return Ok(dest.len());
        }
        let decoded = decoded.get(dest.len())?;
        let covered = decoder.decode_all(codecs, bytes, nstreams, decoded)?;
        self.pipeline.run_backward(self.filter_host(), reference, decoded, ping, pong, dest)?;
        Ok(covered)
    }

    /// Decodes a block that is one stream into `dest`, which has its length.
    #[inline]
    pub(super) fn decode_stream(
        &self,
        codecs: &mut CodecStates,
        buffers: &mut BlockBuffers,
        stream: Stream<'_>,
        reference: DeltaReference<'_>,
        dest: &mut [u8],
    ) -> Result<()> {
        if self.pipeline.is_empty() {
            return self.stream_decoder().decode(codecs, stream, dest);
        }
        let BlockBuffers { decoded, ping, pong } = buffers;
        let block = match stream {
            // Filters read raw bytes where they are.
            Stream::Raw(bytes) => bytes,
            _ => {
                let decoded = decoded.get(dest.len())?;
                self.stream_decoder().decode(codecs, stream, decoded)?;
                decoded
            }
        };
        self.pipeline.run_backward(self.filter_host(), reference, block, ping, pong, dest)
    }

    /// Decodes the only block of a chunk into `dest`, as [`finish_block`](Self::finish_block) does.
    #[inline(always)]
    pub(super) fn finish_only_block(&self, worker: &mut Worker, dest: &mut [u8]) -> Result<usize> {
        if self.payload == Payload::Coded && self.dec.postfilter.is_none() {
            self.decode_coded_block(worker, 0, DeltaReference::Own, dest)
        } else {
            self.finish_block(worker, 0, 0, DeltaReference::Own, dest)
        }
    }

    /// Decodes block `nblock` into `dest` and runs the postfilter on it, if there is one.
    pub(super) fn finish_block(
        &self,
        worker: &mut Worker,
        tid: usize,
        nblock: usize,
        reference: DeltaReference<'_>,
        dest: &mut [u8],
    ) -> Result<usize> {
        if self.dec.postfilter.is_none() || self.header.is_instrumented() {
            return self.decode_block(worker, nblock, reference, dest);
        }
        let mut buffer = std::mem::take(&mut worker.callback);
        let outcome = self.postfilter_block(worker, tid, nblock, reference, &mut buffer, dest);
        worker.callback = buffer;
        outcome
    }

    fn postfilter_block(
        &self,
        worker: &mut Worker,
        tid: usize,
        nblock: usize,
        reference: DeltaReference<'_>,
        buffer: &mut Buffer,
        dest: &mut [u8],
    ) -> Result<usize> {
        let scratch_len = callback_scratch_len(self.header.blocksize, self.header.typesize);
        let (block, scratch) = buffer.get_two(dest.len(), scratch_len)?;
        if self.payload == Payload::Uninit {
            block.fill(0);
        }
        self.decode_block(worker, nblock, reference, block)?;
        let offset = nblock * self.header.blocksize;
        self.run_postfilter(PostfilterCall {
            input: block,
            output: dest,
            typesize: self.valuesize(),
            offset,
            nblock,
            tid,
            scratch,
        })?;
        Ok(block.len())
    }

    /// Runs the postfilter, if there is one.
    pub(super) fn run_postfilter(&self, call: PostfilterCall<'_>) -> Result<()> {
        match self.dec.postfilter {
            Some(postfilter) => postfilter
                .run(call)
                .map_err(|_| Error::new(ErrorKind::Postfilter, "the postfilter reported a failure")),
            None => Ok(()),
        }
    }

    /// Whether blocks are finished by functions of the application, which get them where vectors can be used on them.
    pub(super) fn calls_application(&self) -> bool {
        self.dec.postfilter.is_some() || self.pipeline.has_applications()
    }

    /// Bytes of an item; of a chunk that is one value over and over, of that value.
    pub(super) fn valuesize(&self) -> usize {
        match self.payload {
            Payload::Value => self.header.cbytes - EXTENDED_HEADER_LENGTH,
            _ => self.header.typesize,
        }
    }

    /// Copies the bytes of a chunk without streams, from `start` on, to all of `dest`.
    pub(super) fn plain_bytes(&self, start: usize, dest: &mut [u8]) -> Result<()> {
        match self.lazy {
            Some(source) => {
                let blocksize = self.header.blocksize;
                for nblock in start / blocksize..(start + dest.len()).div_ceil(blocksize) {
                    self.lazy_size(nblock, blocksize + 4 * self.header.typesize)?;
                }
                source.read_at((self.header.overhead() + start) as u64, dest)
            }
            None => plain::copy(self.payload, self.header, self.data, start, dest),
        }
    }
}
