//! Super-chunks: any amount of data as a sequence of chunks, in memory or in a frame.
//!
//! A super-chunk does not own compressors. The caller brings an [`Encoding`] or [`Decoding`] to each call that needs
//! one, since C callers exchange the contexts of a live super-chunk as they like.
//!
//! Any number of threads may use the `&self` methods of one super-chunk at the same time.
//!
//! `list` and `pointers` hold chunks without a frame; `chunks` reads the chunks as of one moment; `edit`, `slice`,
//! `patch` and `access` change them; `sparse` reads single items, `copy` makes copies, `meta` has the metalayers,
//! `packed` the format before frames; `scratch` keeps buffers.

pub(crate) mod access;
mod chunks;
pub(crate) mod copy;
mod edit;
mod list;
pub(crate) mod meta;
mod packed;
pub(crate) mod patch;
mod pointers;
pub(crate) mod rewrite;
pub(crate) mod scratch;
pub(crate) mod slice;
mod sparse;

pub(crate) use chunks::StoredChunks;
#[cfg(feature = "capi")]
pub(crate) use copy::ViewLayers;
pub(crate) use copy::batch_len;
pub use edit::Rejected;
pub(crate) use edit::Update;
#[cfg(feature = "capi")]
pub(crate) use meta::LayerChange;
#[cfg(feature = "capi")]
pub(crate) use pointers::Lookup;
pub(crate) use sparse::chunk_numbers;

use crate::chunk::{self, Decoding, Encoding, Room, Source};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::{BasicHeader, ChunkHeader};
use crate::format::frame_header::FrameParams;
use crate::format::metalayers::Metalayers;
use crate::frame::sizes::Sizes;
use crate::frame::{ChunkBytes, ChunkSource, Frame, FrameOptions};
use crate::io::Fill;
use crate::io::lock::Held;
use crate::io::memory::MallocBuf;
use list::List;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "capi")]
use std::sync::atomic::AtomicPtr;

/// A super-chunk.
pub struct Schunk {
    backing: Backing,
    params: FrameParams,
}

/// Where the chunks are.
enum Backing {
    List(List),
    Frame(Box<Frame>),
}

/// What reading is given besides the place of the data.
#[derive(Clone, Copy, Default)]
pub struct Reading<'a> {
    /// How chunks are decompressed. Its source of blocks is replaced by the frame.
    pub dec: Decoding<'a>,
    /// Called with the number of each chunk before it is decompressed, in ascending order.
    pub visit: Option<&'a dyn Fn(usize)>,
    /// Hands over the pending mask, once: for each block, whether it is skipped, as in [`chunk::decompress_with`]. It
    /// is for the next chunk that is decompressed as a whole; partial reads, copies and writes leave it pending.
    pub mask: Option<&'a dyn Fn() -> Option<Vec<bool>>>,
    /// The [change tick](Schunk::change_tick) at which the caller learnt what the chunks hold, such as the shape of an
    /// array; by default, the tick at the call.
    pub as_of: Option<u64>,
}

impl<'a> Reading<'a> {
    /// As this, for a part of an operation that began when the change tick of `schunk` was what it is now.
    pub(crate) fn of_part(&self, schunk: &Schunk) -> Reading<'a> {
        Reading { as_of: self.as_of.or(Some(schunk.change_tick())), ..*self }
    }

    /// Takes the mask, if there is one.
    fn take_mask(&self) -> Option<Vec<bool>> {
        self.mask.and_then(|take| take())
    }

    /// Tells that chunk `nchunk` is about to be decompressed.
    pub(crate) fn visit(&self, nchunk: usize) {
        if let Some(visit) = self.visit {
            visit(nchunk);
        }
    }
}

/// Compresses whole chunks one after another, each in its own way: with a tuner, what is learnt from one decides about
/// the next.
pub trait ChunkCompressor {
    /// Compresses `src` into the front of `dest`; returns the size of the chunk, or 0 if it does not fit in.
    ///
    /// # Errors
    ///
    /// Those of compressing, and of whoever decides how.
    fn compress(&self, src: Source<'_>, dest: &mut [u8]) -> Result<usize>;
}

/// What writing is given besides the data.
#[derive(Clone, Copy)]
pub struct Writing<'a> {
    /// How chunks are compressed.
    pub enc: Encoding<'a>,
    /// Called with the number of each chunk before it is compressed.
    pub visit: Option<&'a dyn Fn(usize)>,
    /// Compresses the chunks in the place of `enc`, which may differ from what it does. Chunks are always compressed as
    /// a whole then, and nothing is taken over from others.
    pub compressor: Option<&'a dyn ChunkCompressor>,
}

impl<'a> Writing<'a> {
    /// Compression with `enc`, and nobody to tell about it.
    #[must_use]
    pub fn new(enc: Encoding<'a>) -> Writing<'a> {
        Writing { enc, visit: None, compressor: None }
    }

    /// Tells that chunk `nchunk` is about to be compressed.
    pub(crate) fn visit(&self, nchunk: usize) {
        if let Some(visit) = self.visit {
            visit(nchunk);
        }
    }

    /// Whether blocks of old chunks may be kept in new ones, and whole chunks be taken over.
    pub(crate) fn may_reuse(&self) -> bool {
        self.compressor.is_none()
    }

    /// Compresses `src` into the front of `dest`; returns the size of the chunk.
    ///
    /// # Errors
    ///
    /// Those of compressing, `Failure` if it does not fit in.
    pub(crate) fn compress(&self, src: Source<'_>, dest: &mut [u8]) -> Result<usize> {
        let cbytes = match self.compressor {
            None => chunk::compress_with(&self.enc, src, dest)?.cbytes,
            Some(compressor) => compressor.compress(src, dest)?,
        };
        ensure(cbytes > 0, ErrorKind::Failure, "chunk cannot be compressed")?;
        Ok(cbytes)
    }
}

impl Schunk {
    /// An empty super-chunk in memory, without a frame.
    #[must_use]
    pub fn in_memory(params: FrameParams) -> Schunk {
        Schunk { backing: Backing::List(List::new()), params }
    }

    /// A super-chunk over `frame`.
    #[must_use]
    pub fn over(frame: Frame) -> Schunk {
        Schunk { params: frame.params(), backing: Backing::Frame(Box::new(frame)) }
    }

    /// Opens the frame at `path`; see [`Frame::open`].
    ///
    /// # Errors
    ///
    /// As [`Frame::open`].
    pub fn open(path: &Path, offset: u64, options: &FrameOptions) -> Result<Schunk> {
        Frame::open(path, offset, options).map(Schunk::over)
    }

    /// A super-chunk over the frame in `buffer`.
    ///
    /// # Errors
    ///
    /// As [`Frame::from_buffer`].
    pub fn from_buffer(buffer: MallocBuf) -> Result<Schunk> {
        Frame::from_buffer(buffer).map(Schunk::over)
    }

    /// The frame; `None` for super-chunks without one.
    #[must_use]
    pub fn frame(&self) -> Option<&Frame> {
        match &self.backing {
            Backing::List(_) => None,
            Backing::Frame(frame) => Some(frame),
        }
    }

    /// See [`frame`](Self::frame).
    pub fn frame_mut(&mut self) -> Option<&mut Frame> {
        match &mut self.backing {
            Backing::List(_) => None,
            Backing::Frame(frame) => Some(frame),
        }
    }

    /// The frame; `None` for super-chunks without one.
    #[must_use]
    pub fn into_frame(self) -> Option<Frame> {
        match self.backing {
            Backing::List(_) => None,
            Backing::Frame(frame) => Some(*frame),
        }
    }

    /// Addresses of the chunks of a super-chunk without a frame, and the number of addresses that there is room for.
    /// Valid until the next change.
    #[cfg(feature = "capi")]
    pub(crate) fn pointers(&self) -> Option<(&[AtomicPtr<u8>], usize)> {
        match &self.backing {
            Backing::List(list) => Some(list.pointers()),
            Backing::Frame(_) => None,
        }
    }

    /// Compression parameters as they are recorded.
    #[must_use]
    pub fn params(&self) -> FrameParams {
        *self.params_ref()
    }

    /// As [`params`](Self::params), to look at only.
    #[inline]
    pub(crate) fn params_ref(&self) -> &FrameParams {
        match &self.backing {
            Backing::List(_) => &self.params,
            Backing::Frame(frame) => frame.params_ref(),
        }
    }

    /// Sets the recorded compression parameters; the next change writes them to the frame, as
    /// [`Frame::set_params`] tells.
    pub fn set_params(&mut self, params: FrameParams) {
        self.params = params;
        if let Backing::Frame(frame) = &mut self.backing {
            frame.set_params(params);
        }
    }

    /// Bytes per item; at least 1.
    #[must_use]
    pub fn typesize(&self) -> usize {
        usize::try_from(self.params_ref().typesize).unwrap_or(0).max(1)
    }

    /// Number of chunks.
    #[inline]
    #[must_use]
    pub fn nchunks(&self) -> usize {
        match &self.backing {
            Backing::List(list) => list.sizes.nchunks,
            Backing::Frame(frame) => frame.nchunks(),
        }
    }

    /// Uncompressed size in bytes.
    #[must_use]
    pub fn nbytes(&self) -> u64 {
        match &self.backing {
            Backing::List(list) => list.sizes.nbytes,
            Backing::Frame(frame) => frame.nbytes(),
        }
    }

    /// Sum of the sizes of the stored chunks in bytes.
    #[must_use]
    pub fn cbytes(&self) -> u64 {
        match &self.backing {
            Backing::List(list) => list.cbytes,
            Backing::Frame(frame) => frame.cbytes(),
        }
    }

    /// Bytes per chunk: 0 if they vary, -1 as long as no chunk was stored.
    #[must_use]
    pub fn chunksize(&self) -> i32 {
        match &self.backing {
            Backing::List(list) => list.sizes.chunksize,
            Backing::Frame(frame) => frame.chunksize(),
        }
    }

    /// How large the chunks are, as of one moment.
    fn sizes(&self) -> Sizes {
        match &self.backing {
            Backing::List(list) => list.sizes,
            Backing::Frame(frame) => frame.sizes(),
        }
    }

    /// Sets the chunk size of a super-chunk without chunks.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there are chunks.
    pub fn preset_chunksize(&mut self, chunksize: i32) -> Result<()> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.preset_chunksize(chunksize),
            Backing::List(list) => {
                require(list.sizes.nchunks == 0, "chunks are there already")?;
                list.sizes.chunksize = chunksize;
                Ok(())
            }
        }
    }

    /// Whether the chunks consist of variable-length blocks.
    #[must_use]
    pub fn has_vl_blocks(&self) -> bool {
        match &self.backing {
            Backing::List(list) => list.sizes.vl_blocks,
            Backing::Frame(frame) => frame.has_vl_blocks(),
        }
    }

    /// How often metalayers changed, or changes were taken over from another handle.
    #[must_use]
    pub fn change_tick(&self) -> u64 {
        match &self.backing {
            Backing::List(list) => list.tick,
            Backing::Frame(frame) => frame.change_tick(),
        }
    }

    /// Length of the frame in bytes; without a frame, about what one would have.
    #[must_use]
    pub fn frame_len(&self) -> u64 {
        match &self.backing {
            Backing::List(list) => list.cbytes + 8 * list.sizes.nchunks as u64, // widening
            Backing::Frame(frame) => frame.frame_len(),
        }
    }

    /// Takes over what other handles changed in the frame; returns whether there was anything.
    ///
    /// # Errors
    ///
    /// As [`Frame::refresh`].
    pub fn refresh(&self) -> Result<bool> {
        self.frame().map_or(Ok(false), Frame::refresh)
    }

    /// As [`Frame::exclusive`].
    pub(crate) fn exclusive(&self) -> Result<Held> {
        self.frame().map_or(Ok(Held::nothing()), Frame::exclusive)
    }

    /// The compressed bytes of chunk `nchunk`, borrowed where they are in memory.
    ///
    /// # Errors
    ///
    /// As [`Frame::chunk`].
    pub fn chunk(&self, nchunk: usize) -> Result<Cow<'_, [u8]>> {
        match &self.backing {
            Backing::List(list) => list.chunk(nchunk).map(Cow::Borrowed),
            Backing::Frame(frame) => frame.chunk(nchunk),
        }
    }

    /// What can be known of the chunks without holding the super-chunk; `None` if they are in a frame.
    #[cfg(feature = "capi")]
    pub(crate) fn lookup(&self) -> Option<&Arc<Lookup>> {
        self.list().map(List::lookup)
    }

    /// The chunks, unless they are in a frame.
    #[cfg(feature = "capi")]
    #[inline]
    fn list(&self) -> Option<&List> {
        match &self.backing {
            Backing::List(list) => Some(list),
            Backing::Frame(_) => None,
        }
    }

    /// Whether chunk `nchunk` is one that a C caller freed, and made the pointer to it null.
    #[cfg(feature = "capi")]
    pub(crate) fn is_missing(&self, nchunk: usize) -> bool {
        self.list().is_some_and(|list| list.is_missing(nchunk))
    }

    /// As [`chunk`](Self::chunk), with the bytes that are not in memory where `make` wants them: it gets their number
    /// and what fills as much memory with them.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk), and those of `make`.
    ///
    /// # Panics
    ///
    /// Perhaps, if `make` passes memory of another length to the closure that fills it.
    #[inline]
    pub fn chunk_into<B>(
        &self,
        nchunk: usize,
        make: impl Fn(usize, &Fill<'_>) -> Result<B>,
    ) -> Result<ChunkBytes<'_, B>> {
        match &self.backing {
            Backing::List(list) => list.chunk(nchunk).map(ChunkBytes::Held),
            Backing::Frame(frame) => self.framed_chunk_into(frame, nchunk, make),
        }
    }

    #[inline(never)] // so that the way to lists, which takes a few nanoseconds, has no part in it
    fn framed_chunk_into<'a, B>(
        &'a self,
        frame: &'a Frame,
        nchunk: usize,
        make: impl Fn(usize, &Fill<'_>) -> Result<B>,
    ) -> Result<ChunkBytes<'a, B>> {
        frame.check_number(nchunk)?;
        if frame.is_at_hand() {
            // The bytes stay where they are: whoever changes them does so before or after this.
            return frame.chunks()?.get_into(nchunk, make);
        }
        self.read_one(nchunk, |chunks| chunks.get_into(nchunk, &make))
    }

    /// The lazy form of chunk `nchunk` if it is on disk, else as [`chunk`](Self::chunk).
    ///
    /// # Errors
    ///
    /// As [`Frame::lazy_chunk`].
    pub fn lazy_chunk(&self, nchunk: usize) -> Result<Cow<'_, [u8]>> {
        match &self.backing {
            Backing::List(list) => list.chunk(nchunk).map(Cow::Borrowed),
            Backing::Frame(frame) => frame.lazy_chunk(nchunk),
        }
    }

    /// Where the blocks of the lazy chunk `lazy` are read.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the super-chunk has no frame; those of [`Frame::source_of_lazy`].
    pub(crate) fn source_of_lazy(&self, lazy: &[u8]) -> Result<ChunkSource<'_>> {
        let no_frame = Error::new(ErrorKind::InvalidParam, "lazy chunk outside of a frame");
        self.frame().ok_or(no_frame)?.source_of_lazy(lazy)
    }

    /// Decompresses chunk `nchunk` into the front of `dest`; returns the number of bytes, those of blocks that a mask
    /// skips included.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such chunk, or, without a frame, if `dest` is too short; `WriteBuffer` for that
    /// with a frame; else those of reading and decompressing.
    pub fn decompress_chunk(&self, nchunk: usize, dest: &mut [u8], reading: &Reading<'_>) -> Result<usize> {
        let short = if self.frame().is_some() { ErrorKind::WriteBuffer } else { ErrorKind::InvalidParam };
        require(nchunk < self.nchunks(), "chunk number out of range")?;
        reading.visit(nchunk);
        // Whatever is read again is masked again.
        let mask = OnceCell::new();
        let mut decompress = |dec: &Decoding<'_>, bytes: &[u8]| {
            let nbytes = BasicHeader::read(bytes)?.nbytes;
            let fits = usize::try_from(nbytes).is_ok_and(|nbytes| nbytes <= dest.len());
            ensure(fits, short, "destination shorter than the chunk")?;
            let mask = mask.get_or_init(|| reading.take_mask());
            chunk::decompress_with(dec, bytes, mask.as_deref(), dest)
        };
        if self.frame().is_some_and(|frame| frame.locks() && !frame.is_at_hand()) {
            // Nobody has to wait for the lock while the chunk is decompressed.
            return scratch::with(|buffer| {
                let held = self.chunks()?.get(nchunk, buffer)?;
                decompress(&reading.dec, held.unwrap_or(buffer))
            });
        }
        self.read_one(nchunk, |chunks| chunks.with_all_bytes(nchunk, &reading.dec, &mut decompress))
    }

    /// As [`decompress_chunk`](Self::decompress_chunk), if the chunk is in a list, and a
    /// [simple](chunk::decompress_simple) one: so nothing of the application is called, and no thread is started.
    #[cfg(feature = "capi")]
    #[inline]
    pub(crate) fn decompress_simple(&self, nchunk: usize, dest: &mut [u8]) -> Option<usize> {
        chunk::decompress_simple(self.list()?.chunk(nchunk).ok()?, dest, true, |_| ())
    }

    /// Block `nblock` of chunk `nchunk`, which consists of variable-length blocks, decompressed into what `make`
    /// returns.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such chunk or block, or the chunk does not consist of such blocks; else those of
    /// reading and decompressing, and of `make`.
    pub fn vl_block<D: AsMut<[u8]>>(
        &self,
        nchunk: usize,
        nblock: usize,
        reading: &Reading<'_>,
        make: impl Fn(Room) -> Result<D>,
    ) -> Result<D> {
        require(nchunk < self.nchunks(), "chunk number out of range")?;
        reading.visit(nchunk);
        let decode = |dec: &Decoding<'_>, bytes: &[u8]| {
            let header = ChunkHeader::read(bytes)?;
            let vl = chunk::open_vl(dec, &header, bytes)?;
            require(nblock < vl.nblocks(), "block number out of range")?;
            vl.decode_one(nblock, &make)
        };
        self.read_one(nchunk, |chunks| chunks.with_lazy(nchunk, &reading.dec, decode))
    }

    /// The fixed metalayers.
    #[must_use]
    pub fn metalayers(&self) -> Arc<Metalayers> {
        match &self.backing {
            Backing::List(list) => Arc::clone(&list.metalayers),
            Backing::Frame(frame) => frame.metalayers(),
        }
    }

    /// The variable-length metalayers, with their content compressed.
    #[must_use]
    pub fn vlmetalayers(&self) -> Arc<Metalayers> {
        match &self.backing {
            Backing::List(list) => Arc::clone(&list.vlmetalayers),
            Backing::Frame(frame) => frame.vlmetalayers(),
        }
    }
}

impl std::fmt::Debug for Schunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schunk")
            .field("frame", &self.frame())
            .field("params", self.params_ref())
            .field("nchunks", &self.nchunks())
            .field("nbytes", &self.nbytes())
            .field("cbytes", &self.cbytes())
            .finish_non_exhaustive()
    }
}

fn out_of_range() -> Error {
    Error::new(ErrorKind::InvalidParam, "items out of range")
}

#[cfg(test)]
mod tests;
