//! One buffer in, one chunk out.

use super::blocks::Layout;
use super::decompress::{DisjointParts, for_each_block};
use super::dict;
use super::input::{Place, ShuffledBlock, Source, run_prefilter};
use super::ordered::{OrderedBlocks, Progress, encode_all};
use super::params::{CParams, Encoding};
use super::pipeline::{DeltaReference, FilterHost, Pipeline};
use super::scratch::{self, BlockBuffers, Buffer, Worker};
use super::simple;
use super::streams::{INSTR_LEN, StreamWriter, Written};
use crate::codecs::StreamContext;
use crate::codecs::state::{EncodeDict, StreamCodec};
use crate::copy;
use crate::error::{ErrorKind, Result, ensure, require};
use crate::format::chunk_header::{self, ChunkHeader};
use crate::format::consts::{
    EXTENDED_HEADER_LENGTH, MAX_BUFFERSIZE, MIN_BUFFERSIZE, MIN_HEADER_LENGTH, VERSION_STABLE, blosc2_flags,
    filter, flags, special,
};
use crate::format::geometry::Container;
use crate::memory::{extend, with_capacity, zeroed};
use crate::pages;
use std::time::Instant;

/// The outcome of a compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// Size of the chunk in bytes; 0 if it does not fit in the destination.
    pub cbytes: usize,
    /// The block size used, in bytes.
    pub blocksize: usize,
    /// Number of blocks.
    pub nblocks: usize,
    /// Bytes per item as the chunk records it.
    pub typesize: usize,
}

/// The most bytes that the chunk of a buffer of `nbytes` bytes takes; larger buffers than chunks hold count as the
/// largest.
pub(crate) fn room_for(nbytes: usize) -> usize {
    nbytes.min(MAX_BUFFERSIZE) + EXTENDED_HEADER_LENGTH
}

/// The front of `dest` that chunks can have: their sizes are told in 31 bits.
pub(super) fn within_reach(dest: &mut [u8]) -> &mut [u8] {
    let len = dest.len().min(room_for(MAX_BUFFERSIZE));
    &mut dest[..len]
}

/// Compresses `src` into `dest` in the calling thread and returns the size of the chunk; 0 if it does not fit.
///
/// A `dest` of `src.len() + 32` bytes is always enough.
///
/// # Errors
///
/// As [`compress_with`].
pub fn compress(params: &CParams, src: &[u8], dest: &mut [u8]) -> Result<usize> {
    Ok(compress_with(&Encoding::new(params), Source::Bytes(src), dest)?.cbytes)
}

/// Compresses `src` in the calling thread, and returns the chunk. [`compress_with`] takes more, threads among others.
///
/// # Errors
///
/// As [`compress_with`], `MemoryAlloc`; `WriteBuffer` if [measurements](CParams::instrumented) take more room than the
/// data.
///
/// ```
/// use blosc2::chunk::{CParams, compress_to_vec, decompress_to_vec};
///
/// let data: Vec<u8> = (0..1000_u64).flat_map(u64::to_le_bytes).collect();
/// let chunk = compress_to_vec(&CParams { typesize: 8, ..CParams::default() }, &data)?;
/// assert!(chunk.len() < data.len() / 2);
/// assert_eq!(decompress_to_vec(&chunk)?, data);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn compress_to_vec(params: &CParams, src: &[u8]) -> Result<Vec<u8>> {
    let mut chunk = zeroed(room_for(src.len()))?;
    let cbytes = compress(params, src, &mut chunk)?;
    ensure(cbytes > 0, ErrorKind::WriteBuffer, "measurements longer than the data")?;
    chunk.truncate(cbytes);
    chunk.shrink_to_fit();
    Ok(chunk)
}

/// Compresses `src` into `dest`. The bytes do not depend on the number of threads.
///
/// # Errors
///
/// `MaxBufsizeExceeded` for more than 2 147 483 615 bytes, or a `dest` of less than 32; `CodecParam` for a bad level,
/// or a dictionary with a codec that takes none; `InvalidParam` for a bad typesize; `CodecSupport`, `FilterPipeline`,
/// `Data`, `WriteBuffer` if codec, filter or prefilter are unknown or fail.
pub fn compress_with(enc: &Encoding<'_>, src: Source<'_>, dest: &mut [u8]) -> Result<Compressed> {
    check_sizes(src.nbytes(), dest.len())?;
    let dest = within_reach(dest);
    let codec = StreamCodec::resolve(enc.params.codec_id());
    ensure(enc.params.clevel <= 9, ErrorKind::CodecParam, "clevel above 9")?;
    let dict_fits = !enc.params.use_dict || codec.takes_dict();
    ensure(dict_fits, ErrorKind::CodecParam, "the codec takes no dictionary")?;
    enc.params.check()?;
    let source_suits = !matches!(src, Source::Gathered(_)) || !enc.wants_whole_buffer();
    require(source_suits, "gathered blocks where the whole buffer is wanted")?;
    let has_data = !matches!(src, Source::Generated(1..)) || enc.prefilter.is_some();
    require(has_data, "neither data nor a prefilter")?;
    let layout = Layout::new(enc.params, src.nbytes());
    let longest = dest.len().min(src.nbytes());
    let is_much_larger = dest.len() - longest > longest / 8;
    pages::prefer_huge_for(if is_much_larger { &mut dest[..longest] } else { &mut *dest });
    let cbytes = match src {
        Source::Bytes(bytes) => match simple::suits(enc, &codec, &layout, bytes.len()) {
            Some(filter) => simple::compress(enc, &codec, &layout, filter, bytes, dest)?,
            None => Job::new(enc, src, &codec, layout).run(dest)?,
        },
        _ => Job::new(enc, src, &codec, layout).run(dest)?,
    };
    let Layout { blocksize, typesize, .. } = layout;
    let nblocks = if src.nbytes() == blocksize { 1 } else { src.nbytes().div_ceil(blocksize) };
    Ok(Compressed { cbytes, blocksize, nblocks, typesize })
}

/// Writes the streams that the block `data` has in a chunk with this header to the front of `dest`; returns their
/// length. `None` if what `enc` makes cannot stand in such a chunk, or does not fit.
///
/// # Errors
///
/// As [`compress_with`].
pub(crate) fn compress_block(
    enc: &Encoding<'_>,
    header: &ChunkHeader,
    data: &[u8],
    dest: &mut [u8],
) -> Result<Option<usize>> {
    enc.params.check()?;
    let codec = StreamCodec::resolve(enc.params.codec_id());
    let params = CParams { blocksize: header.blocksize, ..enc.params.clone() };
    let layout = Layout::new(&params, header.nbytes);
    let there = Layout { blocksize: header.blocksize, split: header.is_split(), typesize: header.typesize };
    let fits = layout == there
        && header.has_codec(codec.format(), codec.versionlz(), params.compcode, params.compcode_meta);
    if !fits || params.use_dict || params.instrumented || params.filters.contains(&filter::DELTA) {
        return Ok(None);
    }
    let job = Job::new(enc, Source::Bytes(data), &codec, layout);
    let context = Context {
        job: &job,
        dict: None,
        block0: Block0::default(),
        nstreams: job.nstreams(0),
        instrumented: false,
    };
    let written = context.encode_block(0, &mut scratch::worker(), 0, dest)?;
    Ok(written.map(|written| written.len))
}

/// Whether `enc` does not even try to compress data of as many bytes, and stores them with this header.
pub(crate) fn always_stores(enc: &Encoding<'_>, header: &ChunkHeader) -> bool {
    let codec = StreamCodec::resolve(enc.params.codec_id());
    let params = CParams { blocksize: header.blocksize, ..enc.params.clone() };
    let mut stored = new_header(enc, &codec, &Layout::new(&params, header.nbytes), header.nbytes);
    stored.flags |= flags::MEMCPYED;
    stored.cbytes = EXTENDED_HEADER_LENGTH + header.nbytes;
    stored.blosc2_flags |= header.blosc2_flags & blosc2_flags::LAZY;
    params.clevel == 0 && !enc.blosc1_header && stored == *header
}

/// The checks of sizes that come before all others.
pub(crate) fn check_sizes(nbytes: usize, destsize: usize) -> Result<()> {
    ensure(nbytes <= MAX_BUFFERSIZE, ErrorKind::MaxBufsizeExceeded, "buffer above 2 GiB")?;
    let fits = destsize >= EXTENDED_HEADER_LENGTH;
    ensure(fits, ErrorKind::MaxBufsizeExceeded, "destination smaller than a header")
}

/// What codec and filters of this operation are told about the container.
pub(crate) fn resolve_container(enc: &Encoding<'_>, codec: &StreamCodec, pipeline: &Pipeline) -> Container {
    match enc.container {
        Some(container) if codec.needs_geometry() || pipeline.needs_geometry() => container(),
        _ => Container::None,
    }
}

/// What the codec is told of the streams of a chunk with this layout, which is made of the buffer `chunk`, if there is
/// one.
pub(super) fn stream_context<'a>(
    enc: &'a Encoding<'_>,
    layout: &Layout,
    container: &'a Container,
    chunk: &'a [u8],
) -> StreamContext<'a> {
    StreamContext {
        clevel: enc.params.clevel,
        meta: enc.params.compcode_meta,
        typesize: layout.typesize,
        blocksize: layout.blocksize,
        container,
        chunk,
        host: &enc.host,
    }
}

/// The header of a chunk as far as it is known before any block is encoded.
pub(super) fn new_header(
    enc: &Encoding<'_>,
    codec: &StreamCodec,
    layout: &Layout,
    nbytes: usize,
) -> ChunkHeader {
    let params = enc.params;
    ChunkHeader {
        version: VERSION_STABLE,
        versionlz: codec.versionlz(),
        flags: if enc.blosc1_header { 0 } else { flags::EXTENDED },
        typesize: layout.typesize,
        nbytes,
        blocksize: layout.blocksize,
        cbytes: 0,
        filters: params.filters,
        filters_meta: params.filters_meta,
        compcode: params.compcode.to_le_bytes()[0],
        compcode_meta: params.compcode_meta,
        flags2: 0,
        blosc2_flags: blosc2_flags::HOST,
    }
}

/// The flag bits of a chunk that is not stored up front.
pub(super) fn coded_flags(enc: &Encoding<'_>, codec: &StreamCodec, layout: &Layout) -> u8 {
    let split = if layout.split { 0 } else { flags::DONT_SPLIT };
    // Extended headers name the filters elsewhere.
    let named = if enc.blosc1_header { u8::MAX } else { flags::DELTA };
    codec.format() << flags::FORMAT_SHIFT | split | chunk_header::filter_flags(&enc.params.filters) & named
}

/// One compression under way.
pub(super) struct Job<'a> {
    pub(super) enc: &'a Encoding<'a>,
    pub(super) src: Source<'a>,
    pub(super) codec: &'a StreamCodec,
    pub(super) layout: Layout,
    pub(super) pipeline: Pipeline,
    pub(super) container: Container,
}

/// What the blocks of a chunk share, besides the job.
struct Context<'a> {
    job: &'a Job<'a>,
    dict: Option<EncodeDict>,
    block0: Block0,
    nstreams: usize,
    instrumented: bool,
}

/// What is known of the first block before the others are encoded.
#[derive(Default)]
pub(super) struct Block0 {
    /// Its prefiltered bytes, if they had to be made early.
    input: Option<scratch::AlignedBytes>,
    /// What a decoder will have as the first block, if DELTA refers to it and it is neither source nor `input`.
    decoded: Option<scratch::AlignedBytes>,
}

impl<'a> Job<'a> {
    fn new(enc: &'a Encoding<'a>, src: Source<'a>, codec: &'a StreamCodec, layout: Layout) -> Job<'a> {
        let params = enc.params;
        let pipeline = Pipeline::forward(&params.filters, &params.filters_meta, layout.typesize);
        let container = resolve_container(enc, codec, &pipeline);
        Job { enc, src, codec, layout, pipeline, container }
    }

    pub(super) fn nblocks(&self) -> usize {
        self.src.nbytes().div_ceil(self.layout.blocksize)
    }

    fn block_len(&self, nblock: usize) -> usize {
        self.layout.blocksize.min(self.src.nbytes() - nblock * self.layout.blocksize)
    }

    fn overhead(&self) -> usize {
        if self.enc.blosc1_header { MIN_HEADER_LENGTH } else { EXTENDED_HEADER_LENGTH }
    }

    fn nstreams(&self, nblock: usize) -> usize {
        let whole = self.block_len(nblock) == self.layout.blocksize;
        if self.layout.split && whole { self.layout.typesize } else { 1 }
    }

    /// Whether compression is not even tried.
    fn is_stored_up_front(&self) -> bool {
        self.enc.params.clevel == 0 || self.src.nbytes() < MIN_BUFFERSIZE
    }

    fn run(&self, dest: &mut [u8]) -> Result<usize> {
        let mut header = self.header();
        if self.is_stored_up_front() {
            return self.store(header, dest);
        }
        let block0 = self.prepare_block0()?;
        let dict = self.make_dict(&block0)?;
        let start = header.table_end();
        let has_room = start + dict.as_ref().map_or(0, |(bytes, _)| 4 + bytes.len()) <= dest.len();
        // As in the C library, the flags record codec and filters even if it is the dictionary that does not fit.
        if has_room || dict.is_some() {
            header.flags |= coded_flags(self.enc, self.codec, &self.layout);
        }
        if !has_room {
            return self.store(header, dest);
        }
        let mut progress = Progress { dest, pos: start, next: 0, all_zeros: true };
        let dict = dict.map(|(bytes, digested)| {
            header.blosc2_flags |= blosc2_flags::USE_DICT;
            progress.all_zeros = false;
            progress.append_dict(&bytes);
            digested
        });
        let instrumented = self.enc.params.instrumented && !self.enc.blosc1_header;
        let nstreams = self.nstreams(0);
        let context = Context { job: self, dict, block0, nstreams, instrumented };
        if context.encode_all(&mut progress)? {
            if instrumented {
                context.describe_measurements(&mut header)?;
            }
            let Progress { dest, pos, all_zeros, .. } = progress;
            let is_zero_chunk = all_zeros && !self.enc.blosc1_header && self.reads_as_zeros()?;
            Ok(self.finish(header, pos, is_zero_chunk, dest))
        } else {
            self.store(header, dest)
        }
    }

    /// Whether the data are zeros if the filters made zeros of them: a chunk of zeros is read without filters. What a
    /// prefilter made is not made again to see.
    fn reads_as_zeros(&self) -> Result<bool> {
        if !self.pipeline.has_applications() || self.is_disposable() {
            return Ok(true);
        }
        if self.enc.prefilter.is_some() {
            return Ok(false);
        }
        let mut worker = scratch::worker();
        for nblock in 0..self.nblocks() {
            if self.input(nblock, 0, &mut worker.callback)?.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The header as far as it is known before any block is encoded.
    fn header(&self) -> ChunkHeader {
        new_header(self.enc, self.codec, &self.layout, self.src.nbytes())
    }

    /// Writes the header of an encoded chunk and returns the chunk's size.
    fn finish(&self, mut header: ChunkHeader, end: usize, is_zero_chunk: bool, dest: &mut [u8]) -> usize {
        let mut cbytes = end;
        if is_zero_chunk {
            header.blosc2_flags |= special::ZERO << blosc2_flags::SPECIAL_SHIFT;
            cbytes = EXTENDED_HEADER_LENGTH;
        }
        header.cbytes = cbytes;
        self.write_header(&header, dest);
        cbytes
    }

    fn write_header(&self, header: &ChunkHeader, dest: &mut [u8]) {
        if self.enc.blosc1_header {
            header.write_basic(dest.first_chunk_mut().expect("32 bytes of room were checked"));
        } else {
            header.write(dest.first_chunk_mut().expect("32 bytes of room were checked"));
        }
    }

    /// Stores the buffer raw; 0 if it does not fit.
    fn store(&self, mut header: ChunkHeader, dest: &mut [u8]) -> Result<usize> {
        let (nbytes, overhead) = (self.src.nbytes(), self.overhead());
        let cbytes = nbytes + overhead;
        if cbytes > dest.len() {
            return Ok(0);
        }
        header.flags |= flags::MEMCPYED;
        header.blosc2_flags &= !blosc2_flags::USE_DICT;
        header.cbytes = cbytes;
        self.write_header(&header, dest);
        let payload = &mut dest[overhead..cbytes];
        let is_buffer = self.enc.prefilter.is_none() && !matches!(self.src, Source::Gathered(_));
        if is_buffer && self.enc.threads.are_no_use_for(nbytes) {
            copy::copy(self.src.bytes(), payload);
            return Ok(cbytes);
        }
        let parts = DisjointParts::new(payload);
        if is_buffer {
            self.enc.threads.for_each_part(nbytes, &|range| {
                // SAFETY: every part is handed out once, and parts do not overlap.
                copy::copy(&self.src.bytes()[range.clone()], unsafe { parts.part(range.start, range.len()) });
                Ok(())
            })?;
            return Ok(cbytes);
        }
        for_each_block(self.enc.threads, 0..self.nblocks(), |tid, worker, nblock| {
            let len = self.block_len(nblock);
            // SAFETY: every block is handed out once, and blocks do not overlap.
            let out = unsafe { parts.part(nblock * self.layout.blocksize, len) };
            if let Source::Gathered(gathered) = self.src {
                gathered.blocks.fill(nblock, out)?;
            } else {
                copy::copy(self.input(nblock, tid, &mut worker.callback)?, out);
            }
            Ok(len)
        })?;
        Ok(cbytes)
    }

    /// The bytes of a block that go into the pipeline: those of the source, or what the prefilter makes in `buffer`.
    pub(super) fn input<'b>(&self, nblock: usize, tid: usize, buffer: &'b mut Buffer) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        let offset = nblock * self.layout.blocksize;
        let len = self.block_len(nblock);
        if let Source::Gathered(gathered) = self.src {
            let block = buffer.get(len)?;
            gathered.blocks.fill(nblock, block)?;
            return Ok(block);
        }
        if self.enc.prefilter.is_none() {
            return Ok(&self.src.bytes()[offset..offset + len]);
        }
        let place = Place { input: self.src.address(offset), len, offset, nblock, tid };
        run_prefilter(self.enc, &self.layout, &place, buffer)
    }

    /// Whether the prefilter is called for what it does, and zeros are stored.
    fn is_disposable(&self) -> bool {
        self.enc.prefilter.is_some_and(|prefilter| prefilter.is_disposable()) && !self.enc.blosc1_header
    }

    /// Does what must be done with the first block before others are encoded.
    fn prepare_block0(&self) -> Result<Block0> {
        if !self.pipeline.has_delta() || self.nblocks() < 2 {
            return Ok(Block0::default());
        }
        let mut worker = scratch::worker();
        let Worker { buffers: BlockBuffers { ping, pong, .. }, callback, block, .. } = &mut *worker;
        let len = self.layout.blocksize;
        let input = self.input(0, 0, callback)?;
        let mut known = Block0::default();
        if self.pipeline.may_be_lossy() {
            let filtered =
                self.pipeline.run_forward(self.filter_host(), DeltaReference::Own, input, ping, pong)?;
            let from = block.get(len)?;
            copy::copy(filtered, from);
            let mut decoded = scratch::AlignedBytes::zeroed(len)?;
            let mut inverse = Pipeline::empty();
            inverse.set_backward(&self.header());
            inverse.run_backward(self.filter_host(), DeltaReference::Own, from, ping, pong, &mut decoded)?;
            known.decoded = Some(decoded);
        }
        if self.enc.prefilter.is_some() || matches!(self.src, Source::Gathered(_)) {
            let mut early = scratch::AlignedBytes::zeroed(len)?;
            copy::copy(input, &mut early);
            known.input = Some(early);
        }
        Ok(known)
    }

    /// Whether all streams of a block are known to be runs of zeros.
    fn makes_zeros(&self, nblock: usize) -> bool {
        let Source::Gathered(gathered) = self.src else { return false };
        !self.enc.blosc1_header && self.pipeline.keeps_zeros() && gathered.blocks.is_zeros(nblock)
    }

    pub(super) fn filter_host(&self) -> FilterHost<'_> {
        FilterHost { blocksize: self.layout.blocksize, container: &self.container, host: &self.enc.host }
    }

    /// The filtered bytes of a block.
    pub(super) fn filtered<'b>(
        &self,
        block0: &'b Block0,
        nblock: usize,
        tid: usize,
        buffers: FilterBuffers<'b>,
    ) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        if let (Source::Gathered(gathered), Some(width)) = (self.src, self.pipeline.as_shuffle()) {
            let len = self.block_len(nblock);
            let mut block = ShuffledBlock { width, bytes: buffers.ping.get(len)? };
            if gathered.blocks.fill_shuffled(nblock, &mut block)? {
                return Ok(buffers.ping.get(len)?);
            }
        }
        let input: &[u8] = match (&block0.input, nblock) {
            (Some(early), 0) => early,
            _ => self.input(nblock, tid, buffers.callback)?,
        };
        let first = || {
            let source = || &self.src.bytes()[..self.layout.blocksize];
            let made = block0.decoded.as_ref().or(block0.input.as_ref());
            made.map_or_else(source, |bytes| &bytes[..])
        };
        let reference = if nblock > 0 && self.pipeline.has_delta() {
            DeltaReference::Block(first())
        } else {
            DeltaReference::Own
        };
        self.pipeline.run_forward(self.filter_host(), reference, input, buffers.ping, buffers.pong)
    }

    /// The dictionary of the chunk, if one is wanted and useful.
    fn make_dict(&self, block0: &Block0) -> Result<Option<(Vec<u8>, EncodeDict)>> {
        if !self.enc.params.use_dict || self.enc.blosc1_header {
            return Ok(None);
        }
        let streams = if self.layout.split { self.layout.typesize } else { 1 };
        let Some(plan) = dict::Plan::for_blocks(self.src.nbytes(), self.nblocks() * streams)? else {
            return Ok(None);
        };
        let mut samples = with_capacity(plan.wanted(self.codec))?;
        let mut worker = scratch::worker();
        for nblock in 0..self.nblocks() {
            if samples.len() >= plan.wanted(self.codec) {
                break;
            }
            let buffers = FilterBuffers::of(&mut worker);
            extend(&mut samples, self.filtered(block0, nblock, 0, buffers)?)?;
        }
        plan.build(self.codec, self.enc.params.clevel, &samples)
    }
}

/// The buffers of a worker that filtering uses.
pub(super) struct FilterBuffers<'b> {
    pub(super) callback: &'b mut Buffer,
    pub(super) ping: &'b mut Buffer,
    pub(super) pong: &'b mut Buffer,
}

impl<'b> FilterBuffers<'b> {
    pub(super) fn of(worker: &'b mut Worker) -> FilterBuffers<'b> {
        let BlockBuffers { ping, pong, .. } = &mut worker.buffers;
        FilterBuffers { callback: &mut worker.callback, ping, pong }
    }
}

impl Context<'_> {
    /// Encodes all blocks; false if they do not fit.
    fn encode_all(&self, progress: &mut Progress<'_>) -> Result<bool> {
        let job = self.job;
        let blocks = OrderedBlocks {
            nblocks: job.nblocks(),
            bstarts: job.overhead(),
            worst_case: self.worst_case(),
            encode: &|tid, worker, nblock, dest| self.encode_block(tid, worker, nblock, dest),
        };
        let nwhole = job.src.nbytes() / job.layout.blocksize;
        let threads = job.enc.threads_for(job.src.nbytes());
        encode_all(&blocks, progress, threads.for_blocks(nwhole))
    }

    /// Bytes that the streams of a block take at the most.
    fn worst_case(&self) -> usize {
        if self.job.is_disposable() {
            return 4 * self.nstreams;
        }
        let stream_overhead = if self.instrumented { 4 + INSTR_LEN } else { 4 };
        self.job.layout.blocksize + stream_overhead * self.nstreams
    }

    fn encode_block(
        &self,
        tid: usize,
        worker: &mut Worker,
        nblock: usize,
        dest: &mut [u8],
    ) -> Result<Option<Written>> {
        let job = self.job;
        let nstreams = job.nstreams(nblock);
        let Worker { codecs, buffers: BlockBuffers { ping, pong, .. }, stream, callback, .. } = worker;
        let start = self.instrumented.then(Instant::now);
        if job.is_disposable() {
            if nblock > 0 || self.block0.input.is_none() {
                job.input(nblock, tid, callback)?;
            }
            return Ok(StreamWriter::write_zeros(nstreams, dest));
        }
        if job.makes_zeros(nblock) && !self.instrumented {
            return Ok(StreamWriter::write_zeros(nstreams, dest));
        }
        let block = job.filtered(&self.block0, nblock, tid, FilterBuffers { callback, ping, pong })?;
        let writer = StreamWriter {
            codec: job.codec,
            dict: self.dict.as_ref(),
            cx: stream_context(job.enc, &job.layout, &job.container, job.src.bytes()),
            runs: !job.enc.blosc1_header,
        };
        match start {
            None => writer.write(codecs, block, nstreams, dest),
            Some(start) => {
                let seconds = start.elapsed().as_secs_f64();
                writer.write_measurements(codecs, block, nstreams, seconds, stream.get(block.len())?, dest)
            }
        }
    }

    /// Makes the header tell of measurements in the place of data.
    ///
    /// # Errors
    ///
    /// `MaxBufsizeExceeded` if they are more than a chunk may hold: a disposable prefilter lets large buffers shrink
    /// to nothing.
    fn describe_measurements(&self, header: &mut ChunkHeader) -> Result<()> {
        let job = self.job;
        let streams: usize = (0..job.nblocks()).map(|nblock| job.nstreams(nblock)).sum();
        let nbytes = streams.saturating_mul(INSTR_LEN);
        ensure(
            nbytes <= MAX_BUFFERSIZE,
            ErrorKind::MaxBufsizeExceeded,
            "more measurements than a chunk may hold",
        )?;
        header.nbytes = nbytes;
        header.blocksize = INSTR_LEN * self.nstreams;
        header.blosc2_flags |= blosc2_flags::INSTRUMENTED;
        Ok(())
    }
}
