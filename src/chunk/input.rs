//! What chunks are made of: a buffer, what a prefilter makes of one or of nothing, or blocks that are gathered one by
//! one.

#![forbid(unsafe_code)]

use super::blocks::Layout;
use super::params::{Encoding, PrefilterCall, callback_scratch_len};
use super::scratch::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::filters::shuffle;
use crate::format::consts::MAX_BUFFERSIZE;

/// The data to compress.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A buffer.
    Bytes(&'a [u8]),
    /// This many bytes, all made by the [prefilter](Encoding::prefilter); an error without one.
    Generated(usize),
    /// Blocks that are put together one by one.
    Gathered(Gathered<'a>),
}

/// Data in another order than their chunk wants, so that each block is gathered when it is needed. Gathering them here
/// rather than in a buffer of the size of the chunk keeps the bytes in the cache.
///
/// Not for prefilters and registered codecs, which see the whole buffer.
#[derive(Clone, Copy)]
pub struct Gathered<'a> {
    /// Uncompressed size in bytes.
    pub nbytes: usize,
    /// Where the blocks come from.
    pub blocks: &'a dyn GatherBlocks,
}

/// Puts together the blocks of a chunk, which are asked for by number: in any thread, and some possibly more than once.
pub trait GatherBlocks: Sync {
    /// Fills a block from the first byte to the last.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from that.
    fn fill(&self, nblock: usize, block: &mut [u8]) -> Result<()>;

    /// Whether a block is known to be zeros.
    fn is_zeros(&self, _nblock: usize) -> bool {
        false
    }

    /// As [`fill`](Self::fill), for a block that is shuffled on the way, which saves a copy. Returns `false`, with
    /// nothing done, where that is not possible.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill).
    fn fill_shuffled(&self, _nblock: usize, _block: &mut ShuffledBlock<'_>) -> Result<bool> {
        Ok(false)
    }
}

impl<F: Fn(usize, &mut [u8]) -> Result<()> + Sync> GatherBlocks for F {
    fn fill(&self, nblock: usize, block: &mut [u8]) -> Result<()> {
        self(nblock, block)
    }
}

/// A block that is filled with items which are shuffled on their way there.
pub struct ShuffledBlock<'a> {
    pub(super) width: usize,
    pub(super) bytes: &'a mut [u8],
}

impl ShuffledBlock<'_> {
    /// Whether a block of items of `itemsize` bytes can be filled in this way.
    #[must_use]
    pub fn takes(&self, itemsize: usize) -> bool {
        itemsize % self.width == 0 && self.bytes.len() % self.width == 0
    }

    /// Makes everything zero.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Puts items to byte `at` of the block.
    ///
    /// # Panics
    ///
    /// If they reach past its end, or end in a partial item.
    pub fn put(&mut self, at: usize, items: &[u8]) {
        assert!(at % self.width == 0);
        shuffle::shuffle_items(self.width, items, at / self.width, self.bytes);
    }
}

impl<'a> Source<'a> {
    /// Uncompressed size in bytes.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::Generated(nbytes) => *nbytes,
            Source::Gathered(gathered) => gathered.nbytes,
        }
    }

    /// The buffer; empty if there is none.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            Source::Bytes(bytes) => bytes,
            Source::Generated(_) | Source::Gathered(_) => &[],
        }
    }

    pub(super) fn address(&self, offset: usize) -> *const u8 {
        match self {
            Source::Bytes(bytes) => bytes.as_ptr().wrapping_add(offset),
            Source::Generated(_) | Source::Gathered(_) => std::ptr::null::<u8>().wrapping_add(offset),
        }
    }
}

/// Which block a prefilter is asked for.
pub(super) struct Place {
    pub(super) input: *const u8,
    pub(super) len: usize,
    pub(super) offset: usize,
    pub(super) nblock: usize,
    pub(super) tid: usize,
}

/// Runs the prefilter for one block and returns the bytes for the pipeline.
pub(super) fn run_prefilter<'b>(
    enc: &Encoding<'_>,
    layout: &Layout,
    place: &Place,
    buffer: &'b mut Buffer,
) -> Result<&'b [u8]> {
    let prefilter = enc.prefilter.expect("only called with a prefilter");
    // The callback is told the size in 32 bits. Members of the parameters that a client left unset may ask for more.
    let output_len = (place.len / layout.typesize)
        .checked_mul(prefilter.output_typesize(layout.typesize))
        .filter(|len| *len <= MAX_BUFFERSIZE)
        .ok_or(Error::new(ErrorKind::InvalidParam, "items of the prefilter's output are too large"))?;
    let area = output_len.max(place.len);
    let scratch_len = callback_scratch_len(layout.blocksize.max(place.len), layout.typesize);
    let (output, scratch) = buffer.get_two(area, scratch_len)?;
    // Even if it is not wanted, it may be stored: it must not show what the memory was used for before.
    output.fill(0);
    prefilter.run(PrefilterCall {
        input: place.input,
        output,
        output_len,
        offset: place.offset,
        nblock: place.nblock,
        tid: place.tid,
        typesize: layout.typesize,
        scratch,
    })?;
    Ok(&buffer.get(area)?[..place.len])
}
