//! The filter pipeline of a chunk: one block forward, one block back.

#![forbid(unsafe_code)]

use super::scratch::{Buffer, is_aligned};
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::filters::registry::{self, FilterEntry};
use crate::filters::{FilterContext, bitshuffle, bytedelta, delta, int_trunc, low_bits, shuffle, trunc_prec};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{MAX_FILTERS, VERSION_BLOSC1, filter};
use crate::format::geometry::Container;
use std::any::Any;

/// One slot, resolved.
#[derive(Clone, Copy)]
enum Step {
    /// Nothing to do.
    None,
    /// The width of the items that are shuffled.
    Shuffle(usize),
    Bitshuffle,
    /// The inverse for chunks of Blosc1.
    BitunshuffleBlosc1,
    Delta,
    TruncPrec(u8),
    IntTrunc(u8),
    /// BYTEDELTA with its meta byte.
    ByteDelta(u8),
    Registered(&'static FilterEntry, u8),
    /// No such filter: an error of this kind as soon as a block goes through.
    Unknown(ErrorKind),
}

/// Whether the step is a filter of the application.
fn is_applications(step: &Step) -> bool {
    matches!(step, Step::Registered(entry, _) if entry.id >= filter::FIRST_USER)
}

/// What DELTA takes differences to.
#[derive(Clone, Copy)]
pub(crate) enum DeltaReference<'a> {
    /// The block itself: it is the first of its chunk, or of variable length.
    Own,
    /// The decoded first block of the chunk.
    Block(&'a [u8]),
}

/// What registered filters are told.
#[derive(Clone, Copy)]
pub(crate) struct FilterHost<'a> {
    pub(crate) blocksize: usize,
    pub(crate) container: &'a Container,
    pub(crate) host: &'a Option<&'a (dyn Any + Send + Sync)>,
}

/// The active filters of a chunk in the order of application.
pub(crate) struct Pipeline {
    /// The first `len` entries count. In place, because an allocation per chunk shows with small chunks.
    slots: [Step; MAX_FILTERS],
    len: usize,
    typesize: usize,
}

impl Pipeline {
    /// The pipeline for compression.
    pub(crate) fn forward(
        filters: &[u8; MAX_FILTERS],
        metas: &[u8; MAX_FILTERS],
        typesize: usize,
    ) -> Pipeline {
        let mut pipeline = Pipeline { typesize, ..Pipeline::empty() };
        for (&id, &meta) in filters.iter().zip(metas).filter(|&(&id, _)| id != filter::NONE) {
            pipeline.push_filter(id, meta);
        }
        pipeline
    }

    /// Turns an empty pipeline into the inverse one of a chunk, in place: moving it shows with small chunks.
    #[inline]
    pub(crate) fn set_backward(&mut self, header: &ChunkHeader) {
        self.typesize = header.typesize;
        if header.is_instrumented() {
            return;
        }
        // Few slots are in use, mostly one: the filter ids as one number tell which.
        let [f0, f1, f2, f3, f4, f5] = header.filters;
        let mut left = u64::from_le_bytes([0, 0, f0, f1, f2, f3, f4, f5]);
        while left != 0 {
            let slot = 5 - left.leading_zeros() as usize / 8;
            left &= !(0xff << (8 * (slot + 2)));
            self.push_inverse(header.filters[slot], header.filters_meta[slot], header.version);
        }
    }

    /// The pipeline that leaves blocks as they are.
    pub(crate) fn empty() -> Pipeline {
        Pipeline { slots: [Step::None; MAX_FILTERS], len: 0, typesize: 1 }
    }

    /// Adds what a slot does to blocks, if anything.
    fn push_filter(&mut self, id: u8, meta: u8) {
        match id {
            filter::NONE => {}
            filter::SHUFFLE => {
                let width = if meta == 0 { self.typesize } else { usize::from(meta) };
                if width > 1 {
                    self.push(Step::Shuffle(width));
                }
            }
            filter::BITSHUFFLE => self.push(Step::Bitshuffle),
            filter::DELTA => self.push(Step::Delta),
            filter::TRUNC_PREC => self.push(Step::TruncPrec(meta)),
            filter::INT_TRUNC => self.push(Step::IntTrunc(meta)),
            filter::BYTEDELTA => self.push(Step::ByteDelta(meta)),
            id => match registry::find(id) {
                Some(entry) => self.push(Step::Registered(entry, meta)),
                None => self.push(Step::Unknown(ErrorKind::FilterPipeline)),
            },
        }
    }

    /// Adds what undoes the work of a slot, in a chunk of this version.
    fn push_inverse(&mut self, id: u8, meta: u8, version: u8) {
        match id {
            // Lossy filters that have nothing to undo.
            filter::TRUNC_PREC | filter::INT_TRUNC => {}
            filter::BITSHUFFLE if version == VERSION_BLOSC1 => self.push(Step::BitunshuffleBlosc1),
            id if id > filter::TRUNC_PREC && id < filter::FIRST_REGISTERED => {
                self.push(Step::Unknown(ErrorKind::Failure));
            }
            id => self.push_filter(id, meta),
        }
    }

    #[inline(always)] // so that a step is made in its place
    fn push(&mut self, step: Step) {
        self.slots[self.len] = step;
        self.len += 1;
    }

    /// The active steps.
    fn steps(&self) -> &[Step] {
        &self.slots[..self.len]
    }

    /// Whether blocks pass unchanged.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether DELTA takes part.
    pub(crate) fn has_delta(&self) -> bool {
        self.steps().iter().any(|step| matches!(step, Step::Delta))
    }

    /// Whether what comes back may differ from what went in.
    pub(crate) fn may_be_lossy(&self) -> bool {
        let is_lossy =
            |step: &Step| matches!(step, Step::TruncPrec(_) | Step::IntTrunc(_) | Step::Registered(..));
        self.steps().iter().any(is_lossy)
    }

    /// Whether a filter asks for what the container knows.
    pub(crate) fn needs_geometry(&self) -> bool {
        self.steps().iter().any(|step| match step {
            Step::ByteDelta(meta) => *meta == 0,
            Step::Registered(entry, _) => entry.filter.needs_geometry(),
            _ => false,
        })
    }

    /// Whether what comes back may depend on the shape of the blocks.
    pub(crate) fn depends_on_shape(&self) -> bool {
        let depends =
            |step: &Step| matches!(step, Step::Registered(entry, _) if entry.filter.needs_geometry());
        self.steps().iter().any(depends)
    }

    /// The width if the pipeline is one byte shuffle and nothing else.
    pub(crate) fn as_shuffle(&self) -> Option<usize> {
        match self.steps() {
            [Step::Shuffle(width)] => Some(*width),
            _ => None,
        }
    }

    /// Whether it only moves bits around, so that zeros stay zeros.
    pub(crate) fn keeps_zeros(&self) -> bool {
        self.steps().iter().all(|step| matches!(step, Step::None | Step::Shuffle(_) | Step::Bitshuffle))
    }

    /// Whether a filter of the application takes part: what it makes of zeros on the way back is not known. Those of
    /// the library make zeros.
    pub(crate) fn has_applications(&self) -> bool {
        self.steps().iter().any(is_applications)
    }

    /// Whether all steps are the library's own, which write every byte of their output or fail.
    pub(crate) fn is_built_in(&self) -> bool {
        !self.steps().iter().any(|step| matches!(step, Step::Registered(..)))
    }

    /// Whether the pipeline is one bit shuffle of the current kind and nothing else.
    pub(crate) fn is_bitshuffle(&self) -> bool {
        matches!(self.steps(), [Step::Bitshuffle])
    }

    /// Runs `block` forward. The answer lies in `block` itself or in one of the buffers.
    pub(crate) fn run_forward<'b>(
        &self,
        host: FilterHost<'_>,
        reference: DeltaReference<'_>,
        block: &'b [u8],
        ping: &'b mut Buffer,
        pong: &'b mut Buffer,
    ) -> Result<&'b [u8]> {
        let len = block.len();
        let (mut from, mut to) = (ping, pong);
        let steps = match self.steps() {
            [] => return Ok(block),
            [a, b, steps @ ..] if self.forward_fused(a, b, host, block, from.get(len)?)? => steps,
            [first, steps @ ..] => {
                self.apply_forward(first, host, reference, block, from.get(len)?)?;
                steps
            }
        };
        for step in steps {
            self.apply_forward(step, host, reference, from.get(len)?, to.get(len)?)?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(from.get(len)?)
    }

    /// Runs the block `src` back into `dest`, by way of the buffers if there are several steps.
    ///
    /// With an empty pipeline there is nothing to run: decode into the destination instead.
    #[inline(always)]
    pub(crate) fn run_backward(
        &self,
        host: FilterHost<'_>,
        reference: DeltaReference<'_>,
        src: &[u8],
        ping: &mut Buffer,
        pong: &mut Buffer,
        dest: &mut [u8],
    ) -> Result<()> {
        match self.steps() {
            [] => copy::copy(src, dest),
            [step] => self.apply_first_backward(step, host, reference, src, ping, dest)?,
            [first, last] => {
                if !self.backward_fused(first, last, host, src, dest)? {
                    let between = ping.get(src.len())?;
                    self.apply_first_backward(first, host, reference, src, pong, between)?;
                    self.apply_backward(last, host, reference, between, dest)?;
                }
            }
            [first, steps @ .., last] => {
                let len = src.len();
                let (mut from, mut to) = (ping, pong);
                self.apply_first_backward(first, host, reference, src, to, from.get(len)?)?;
                for step in steps {
                    self.apply_backward(step, host, reference, from.get(len)?, to.get(len)?)?;
                    std::mem::swap(&mut from, &mut to);
                }
                self.apply_backward(last, host, reference, from.get(len)?, dest)?;
            }
        }
        Ok(())
    }

    /// Undoes the step whose source is what is stored, possibly the chunk itself, where it can be at any address:
    /// filters of the application get a copy in `spare` then.
    #[inline(always)]
    fn apply_first_backward(
        &self,
        step: &Step,
        host: FilterHost<'_>,
        reference: DeltaReference<'_>,
        src: &[u8],
        spare: &mut Buffer,
        dest: &mut [u8],
    ) -> Result<()> {
        if !is_applications(step) || is_aligned(src) {
            return self.apply_backward(step, host, reference, src, dest);
        }
        let aligned = spare.get(src.len())?;
        copy::copy(src, aligned);
        self.apply_backward(step, host, reference, aligned, dest)
    }

    /// Runs two neighbouring steps forward at once if there is a way to do so that touches less memory; returns whether
    /// it did.
    ///
    /// Low bits are cleared after the shuffle, in the few rows that hold them. Differences are taken in place.
    fn forward_fused(
        &self,
        first: &Step,
        second: &Step,
        host: FilterHost<'_>,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<bool> {
        match (first, second) {
            (Step::TruncPrec(meta) | Step::IntTrunc(meta), Step::Shuffle(width))
                if *width == self.typesize =>
            {
                let nbits = match first {
                    Step::TruncPrec(_) => trunc_prec::cleared_bits(*width, *meta)?,
                    _ => int_trunc::cleared_bits(*width, *meta)?,
                };
                shuffle::shuffle(*width, src, dest);
                low_bits::clear_rows(*width, nbits, dest);
            }
            (Step::Shuffle(width), Step::ByteDelta(meta)) => {
                let channels = bytedelta::channels(*meta, host.container, ErrorKind::FilterPipeline)?;
                shuffle::shuffle(*width, src, dest);
                bytedelta::encode_in_place(channels, dest);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Undoes two neighbouring steps at once if there is a way to do so that touches less memory; returns whether it
    /// did.
    ///
    /// The running sums of BYTEDELTA are taken over whole items, as soon as some are back together.
    #[inline]
    fn backward_fused(
        &self,
        first: &Step,
        second: &Step,
        host: FilterHost<'_>,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<bool> {
        match (first, second) {
            (Step::ByteDelta(meta), Step::Shuffle(width)) => {
                let channels = bytedelta::channels(*meta, host.container, ErrorKind::Failure)?;
                Ok(channels == *width && bytedelta::decode_shuffled(channels, src, dest))
            }
            _ => Ok(false),
        }
    }

    fn apply_forward(
        &self,
        step: &Step,
        host: FilterHost<'_>,
        reference: DeltaReference<'_>,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<()> {
        match step {
            Step::None => copy::copy(src, dest),
            Step::Shuffle(width) => shuffle::shuffle(*width, src, dest),
            Step::Bitshuffle | Step::BitunshuffleBlosc1 => bitshuffle::bitshuffle(self.typesize, src, dest),
            Step::Delta => match reference {
                DeltaReference::Own => delta::encode_first(self.typesize, src, dest),
                DeltaReference::Block(block) => delta::xor(self.typesize, block, src, dest),
            },
            Step::TruncPrec(meta) => trunc_prec::forward(self.typesize, *meta, src, dest)?,
            Step::IntTrunc(meta) => int_trunc::forward(self.typesize, *meta, src, dest)?,
            Step::ByteDelta(meta) => {
                let channels = bytedelta::channels(*meta, host.container, ErrorKind::FilterPipeline)?;
                bytedelta::encode(channels, src, dest);
            }
            Step::Registered(entry, meta) => {
                let outcome = entry.filter.forward(&self.context(entry, *meta, host), src, dest);
                outcome.map_err(|error| match error.kind() {
                    ErrorKind::MemoryAlloc => error,
                    _ => Error::new(ErrorKind::FilterPipeline, "registered filter failed"),
                })?;
            }
            Step::Unknown(kind) => return Err(Error::new(*kind, "unknown filter")),
        }
        Ok(())
    }

    #[inline]
    fn apply_backward(
        &self,
        step: &Step,
        host: FilterHost<'_>,
        reference: DeltaReference<'_>,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<()> {
        match step {
            Step::None => copy::copy(src, dest),
            Step::Shuffle(width) => shuffle::unshuffle(*width, src, dest),
            Step::Bitshuffle => bitshuffle::bitunshuffle(self.typesize, src, dest),
            Step::BitunshuffleBlosc1 => bitshuffle::bitunshuffle_blosc1(self.typesize, src, dest),
            Step::Delta => match reference {
                DeltaReference::Own => delta::decode_first(self.typesize, src, dest),
                DeltaReference::Block(block) => {
                    ensure(block.len() >= src.len(), ErrorKind::Data, "block longer than the first one")?;
                    delta::xor(self.typesize, block, src, dest);
                }
            },
            Step::TruncPrec(_) | Step::IntTrunc(_) => copy::copy(src, dest),
            Step::ByteDelta(meta) => {
                let channels = bytedelta::channels(*meta, host.container, ErrorKind::Failure)?;
                bytedelta::decode(channels, src, dest);
            }
            Step::Registered(entry, meta) => {
                entry.filter.backward(&self.context(entry, *meta, host), src, dest)?;
            }
            Step::Unknown(kind) => return Err(Error::new(*kind, "unknown filter")),
        }
        Ok(())
    }

    fn context<'a>(&self, entry: &FilterEntry, meta: u8, host: FilterHost<'a>) -> FilterContext<'a> {
        FilterContext {
            id: entry.id,
            meta,
            typesize: self.typesize,
            blocksize: host.blocksize,
            container: *host.container,
            host: *host.host,
        }
    }
}
