//! A chunk opened once to decode several of its blocks, by any number of threads.

#![forbid(unsafe_code)]

use super::getitem::decode_part;
use super::params::{Decoding, Threads};
use super::pipeline::DeltaReference;
use super::plain::Payload;
use super::planes::{Decoded, Planes, Runs};
use super::reader::Reader;
use super::scratch::{self, AlignedBytes};
use crate::error::{Result, require};
use crate::format::chunk_header::ChunkHeader;
use std::ops::Range;

/// A chunk whose blocks are decoded one by one.
pub struct BlockReader<'a> {
    reader: Reader<'a>,
    /// The first block, if others refer to it.
    first: AlignedBytes,
}

/// What a chunk without coded blocks consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<'a> {
    /// The data themselves.
    Bytes(&'a [u8]),
    /// Items that are all the same, see [`BlockReader::fill`].
    Constant,
}

impl<'a> BlockReader<'a> {
    /// Opens `chunk`, complete or lazy, whose header was read.
    ///
    /// # Errors
    ///
    /// Those of a damaged header or section; `InvalidParam` for blocks of variable length, `InvalidHeader` for a chunk
    /// that is cut off.
    pub fn open(dec: &'a Decoding<'a>, header: &'a ChunkHeader, chunk: &'a [u8]) -> Result<BlockReader<'a>> {
        let mut own = BlockReader::new(dec, header, chunk);
        own.prepare()?;
        Ok(own)
    }

    /// As [`open`](Self::open), but not ready to be used before it is [prepared](Self::prepare). In two steps, a reader
    /// stays where it is: moving it out of a `Result` shows with small chunks.
    #[inline(always)]
    pub(crate) fn new(dec: &'a Decoding<'a>, header: &'a ChunkHeader, chunk: &'a [u8]) -> BlockReader<'a> {
        BlockReader { reader: Reader::new(dec, header, chunk), first: AlignedBytes::default() }
    }

    /// The second step after [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub(crate) fn prepare(&mut self) -> Result<()> {
        let header = self.reader.header;
        require(!header.is_vl(), "blocks of variable length have no items")?;
        header.check_complete(self.reader.data.len())?;
        self.reader.prepare()?;
        if self.reader.refers_to_block0() {
            self.first = AlignedBytes::zeroed(header.blocksize)?;
            let mut worker = scratch::worker();
            self.reader.decode_block(&mut worker, 0, DeltaReference::Own, &mut self.first)?;
        }
        Ok(())
    }

    /// The header of the chunk.
    #[must_use]
    pub fn header(&self) -> &ChunkHeader {
        self.reader.header
    }

    /// The threads for decoding `nblocks` of its blocks.
    pub(crate) fn threads_for(&self, nblocks: usize) -> Threads<'a> {
        self.reader.threads_for(nblocks.saturating_mul(self.reader.header.blocksize))
    }

    /// The chunk and its blocks.
    pub(super) fn reader(&self) -> &Reader<'a> {
        &self.reader
    }

    /// What the chunk consists of, seen as items of `itemsize` bytes, if no decoding is needed to get at it.
    #[must_use]
    pub fn plain(&self, itemsize: usize) -> Option<Plain<'_>> {
        if self.reader.dec.postfilter.is_some() {
            return None;
        }
        match self.reader.payload {
            Payload::Coded | Payload::Unknown => None,
            Payload::Stored if self.reader.lazy.is_some() => None,
            Payload::Stored => {
                let start = self.reader.header.overhead();
                self.reader.data.get(start..start + self.reader.header.nbytes).map(Plain::Bytes)
            }
            Payload::Zeros | Payload::Uninit => Some(Plain::Constant),
            // Of a value that is larger than an item, each item is another part.
            Payload::Nans | Payload::Value => {
                (itemsize % self.reader.valuesize() == 0).then_some(Plain::Constant)
            }
        }
    }

    /// Fills `dest` with items of a constant chunk; uninitialised ones are zeros.
    ///
    /// # Errors
    ///
    /// Those of a damaged chunk.
    pub fn fill(&self, dest: &mut [u8]) -> Result<()> {
        if self.reader.payload == Payload::Uninit {
            dest.fill(0);
        }
        self.reader.plain_bytes(0, dest)
    }

    /// Decodes the bytes `wanted` of block `nblock` into `dest`, which is as long, as task `tid`.
    ///
    /// # Errors
    ///
    /// Those of a damaged block, `InvalidParam` for bytes outside of the block.
    pub fn read(&self, tid: usize, nblock: usize, wanted: Range<usize>, dest: &mut [u8]) -> Result<()> {
        self.check(nblock, wanted.end)?;
        require(wanted.len() == dest.len(), "bytes outside of the block")?;
        let reference = DeltaReference::Block(&self.first);
        decode_part(&self.reader, &mut scratch::worker(), tid, nblock, wanted, reference, dest)
    }

    /// Decodes all of block `nblock`; uninitialised items become zeros.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_or_zeros(&self, nblock: usize, dest: &mut [u8]) -> Result<()> {
        if self.reader.payload == Payload::Uninit {
            dest.fill(0);
        }
        self.read(0, nblock, 0..dest.len(), dest)
    }

    /// Decodes scattered bytes of block `nblock`, as task `tid`, and passes what they are taken from to `take`, which
    /// is called if all of them can be decoded.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and those of `take`.
    pub fn read_runs<R>(
        &self,
        tid: usize,
        nblock: usize,
        runs: &Runs<'_>,
        take: impl FnOnce(Decoded<'_>) -> Result<R>,
    ) -> Result<R> {
        self.check(nblock, runs.end)?;
        let worker = &mut *scratch::worker();
        if let Some(width) = self.shuffle_width(nblock, runs) {
            let planes = Planes::decode(&self.reader, worker, nblock, width, runs)?;
            return take(Decoded::Planes(&planes));
        }
        let mut buffer = std::mem::take(&mut worker.window);
        let window = buffer.get(runs.end - runs.start)?;
        let reference = DeltaReference::Block(&self.first);
        let decoded = decode_part(&self.reader, worker, tid, nblock, runs.start..runs.end, reference, window);
        let outcome = decoded.and_then(|()| take(Decoded::Window(window)));
        worker.window = buffer;
        outcome
    }

    /// Whether [`read_runs`](Self::read_runs) answers with planes.
    pub fn has_planes(&self, nblock: usize, runs: &Runs<'_>) -> bool {
        nblock < self.reader.nblocks && self.shuffle_width(nblock, runs).is_some()
    }

    fn check(&self, nblock: usize, end: usize) -> Result<()> {
        let header = self.reader.header;
        let inside = nblock < header.nblocks() && end <= header.block_len(nblock);
        require(inside, "bytes outside of the block")
    }

    /// The width of the shuffle that is all that was done to block `nblock`, if it allows to take out the runs alone.
    fn shuffle_width(&self, nblock: usize, runs: &Runs<'_>) -> Option<usize> {
        let reader = &self.reader;
        if reader.payload != Payload::Coded || reader.dec.postfilter.is_some() {
            return None;
        }
        reader.pipeline.as_shuffle().filter(|&width| Planes::suit(reader, nblock, width, runs))
    }
}
