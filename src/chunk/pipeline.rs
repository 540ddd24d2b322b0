//! The filter pipeline of a chunk: one block forward, one block back.

use crate::error::{Error, ErrorKind, Result, ensure};
use crate::filters::registry::{self, FilterEntry};
use crate::filters::{FilterContext, bitshuffle, delta, shuffle, trunc_prec};
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
    Registered(&'static FilterEntry, u8),
    /// No such filter: an error of this kind as soon as a block goes through.
    Unknown(ErrorKind),
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
    pub(crate) container: Container,
    pub(crate) host: Option<&'a (dyn Any + Send + Sync)>,
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
        for (&id, &meta) in filters.iter().zip(metas) {
            pipeline.extend(match id {
                filter::NONE => None,
                filter::SHUFFLE => shuffle_step(meta, typesize),
                filter::BITSHUFFLE => Some(Step::Bitshuffle),
                filter::DELTA => Some(Step::Delta),
                filter::TRUNC_PREC => Some(Step::TruncPrec(meta)),
                id => Some(registered_step(id, meta)),
            });
        }
        pipeline
    }

    /// Turns an empty pipeline into the inverse one of a chunk, in place: see [`Reader::new`](super::reader::Reader::new).
    pub(crate) fn set_backward(&mut self, header: &ChunkHeader) {
        self.typesize = header.typesize;
        if header.is_instrumented() {
            return;
        }
        for (&id, &meta) in header.filters.iter().zip(&header.filters_meta).rev() {
            let step = match id {
                // Lossy filters that have nothing to undo.
                filter::NONE | filter::TRUNC_PREC | filter::INT_TRUNC => None,
                filter::SHUFFLE => shuffle_step(meta, header.typesize),
                filter::BITSHUFFLE if header.version == VERSION_BLOSC1 => Some(Step::BitunshuffleBlosc1),
                filter::BITSHUFFLE => Some(Step::Bitshuffle),
                filter::DELTA => Some(Step::Delta),
                id if id < filter::FIRST_REGISTERED => Some(Step::Unknown(ErrorKind::Failure)),
                id => Some(registered_step(id, meta)),
            };
            self.extend(step);
        }
    }

    /// The pipeline that leaves blocks as they are.
    pub(crate) fn empty() -> Pipeline {
        Pipeline { slots: [Step::None; MAX_FILTERS], len: 0, typesize: 1 }
    }

    fn extend(&mut self, step: Option<Step>) {
        if let Some(step) = step {
            self.slots[self.len] = step;
            self.len += 1;
        }
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
        self.steps().iter().any(|step| matches!(step, Step::TruncPrec(_) | Step::Registered(..)))
    }

    /// Whether a filter asks for the n-d geometry of the container.
    pub(crate) fn needs_geometry(&self) -> bool {
        self.steps()
            .iter()
            .any(|step| matches!(step, Step::Registered(entry, _) if entry.filter.needs_geometry()))
    }

    /// The width if the pipeline is one byte shuffle and nothing else.
    pub(crate) fn as_shuffle(&self) -> Option<usize> {
        match self.steps() {
            [Step::Shuffle(width)] => Some(*width),
            _ => None,
        }
    }

    /// Whether the pipeline is one bit shuffle of the current kind and nothing else.
    pub(crate) fn is_bitshuffle(&self) -> bool {
        matches!(self.steps(), [Step::Bitshuffle])
    }

    /// Runs `block` forward. The answer lies in `block` itself or in one of the buffers, each as long as `block`.
    pub(crate) fn run_forward<'b>(
        &self,
        host: FilterHost<'_>,
        reference: DeltaReference<'_>,
        block: &'b [u8],
        ping: &'b mut [u8],
        pong: &'b mut [u8],
    ) -> Result<&'b [u8]> {
        let Some((first, steps)) = self.steps().split_first() else { return Ok(block) };
        let (mut from, mut to) = (ping, pong);
        self.apply_forward(first, host, reference, block, from)?;
        for step in steps {
            self.apply_forward(step, host, reference, from, to)?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(from)
    }

    /// Runs the block in `from` back into `dest`; `from` and `to` are work buffers as long as `dest`.
    ///
    /// With an empty pipeline there is nothing to run: decode into the destination instead.
    #[inline]
    pub(crate) fn run_backward<'b>(
        &self,
        host: FilterHost<'_>,
        reference: DeltaReference<'_>,
        mut from: &'b mut [u8],
        mut to: &'b mut [u8],
        dest: &mut [u8],
    ) -> Result<()> {
        let Some((last, steps)) = self.steps().split_last() else {
            dest.copy_from_slice(from);
            return Ok(());
        };
        for step in steps {
            self.apply_backward(step, host, reference, from, to)?;
            std::mem::swap(&mut from, &mut to);
        }
        self.apply_backward(last, host, reference, from, dest)
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
            Step::None => dest.copy_from_slice(src),
            Step::Shuffle(width) => shuffle::shuffle(*width, src, dest),
            Step::Bitshuffle | Step::BitunshuffleBlosc1 => bitshuffle::bitshuffle(self.typesize, src, dest),
            Step::Delta => match reference {
                DeltaReference::Own => delta::encode_first(self.typesize, src, dest),
                DeltaReference::Block(block) => delta::xor(self.typesize, block, src, dest),
            },
            Step::TruncPrec(meta) => trunc_prec::forward(self.typesize, *meta, src, dest)?,
            Step::Registered(entry, meta) => {
                let outcome = entry.filter.forward(&self.context(entry, *meta, host), src, dest);
                outcome.map_err(|_| Error::new(ErrorKind::FilterPipeline, "registered filter failed"))?;
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
            Step::None => dest.copy_from_slice(src),
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
            Step::TruncPrec(_) => dest.copy_from_slice(src),
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
            container: host.container,
            host: host.host,
        }
    }
}

/// A byte shuffle, unless it is the identity.
fn shuffle_step(meta: u8, typesize: usize) -> Option<Step> {
    let width = if meta == 0 { typesize } else { usize::from(meta) };
    (width > 1).then_some(Step::Shuffle(width))
}

/// A registered filter, or the error that it is not registered.
fn registered_step(id: u8, meta: u8) -> Step {
    match registry::find(id) {
        Some(entry) => Step::Registered(entry, meta),
        None => Step::Unknown(ErrorKind::FilterPipeline),
    }
}
