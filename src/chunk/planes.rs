//! Shuffled blocks whose bytes are unshuffled from where they are stored, and parts of them without the rest.
//!
//! Each byte position of the items is a plane of its own, and mostly a stream of its own. Streams that are stored raw,
//! or are runs, are not even copied: wanted items are put together from where their bytes are.

#![forbid(unsafe_code)]

use super::partial_read;
use super::reader::Reader;
use super::scratch::{Buffer, Worker};
use super::streams::{Stream, StreamDecoder, StreamReader, raw_streams};
use crate::bytes::quotient;
use crate::codecs::state::CodecStates;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::filters::shuffle;
use crate::memory;
use crate::pages;
use std::ops::Range;

/// Planes are looked at one by one up to this width of the items, in bytes.
const MAX_WIDTH: usize = 16;
/// Runs of at least this many items are transposed by the vector kernels.
const LONG: usize = 8;
/// How many items are put together at a time. Of a constant plane, no more bytes than that are filled in.
const TILE: usize = 256;
/// The same for whole blocks, whose planes are read from end to end.
const LARGE_TILE: usize = 4096;
/// Blocks of up to this many bytes are decoded to one place and unshuffled from there: that is quicker than to look at
/// each plane.
const SMALL: usize = 4096;
/// How far ahead of their use bytes of a plane are brought into the cache. Raw planes are read from the chunk itself,
/// all at the same time, and CPUs do not recognise that many streams by themselves.
const AHEAD: usize = 1024;

/// Parts of a block: runs of bytes.
#[derive(Clone, Copy)]
pub struct Runs<'a> {
    /// The first byte of the first run.
    pub start: usize,
    /// The end of the last run.
    pub end: usize,
    /// All runs start and end at a multiple of this.
    pub granule: usize,
    /// Calls its argument with all runs in ascending order, for blocks that can be read in parts.
    pub each: &'a EachRun<'a>,
}

/// See [`Runs::each`].
pub type EachRun<'a> = dyn Fn(&mut dyn FnMut(Range<usize>)) + 'a;

impl Runs<'_> {
    /// The rows of planes in which the runs of items of `width` bytes are; those that are close to each other are one.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    fn rows(&self, width: usize) -> Result<Vec<Range<usize>>> {
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut outcome = Ok(());
        (self.each)(&mut |run| {
            let run = run.start / width..run.end.div_ceil(width);
            match rows.last_mut() {
                Some(last) if run.start <= last.end + partial_read::GAP => last.end = last.end.max(run.end),
                _ if outcome.is_ok() => outcome = memory::push(&mut rows, run),
                _ => {}
            }
        });
        outcome.map(|()| rows)
    }
}

/// A block from which runs are taken.
pub enum Decoded<'a> {
    /// All bytes from the start of the first run to the end of the last one.
    Window(&'a [u8]),
    /// The same, except for the shuffle that remains to be undone.
    Planes(&'a Planes<'a>),
}

/// The bytes of one position of all items of a block.
#[derive(Clone, Copy)]
enum Plane<'b> {
    Bytes(&'b [u8]),
    /// Equal bytes, but no more of them than are put together at a time.
    Equal(&'b [u8]),
}

impl<'b> Plane<'b> {
    /// The bytes of `count` items from `first` on; at most as many as are put together at a time.
    fn part(&self, first: usize, count: usize) -> &'b [u8] {
        match self {
            Plane::Bytes(bytes) => &bytes[first..first + count],
            Plane::Equal(bytes) => &bytes[..count],
        }
    }
}

/// The planes of a block up to the last item that is wanted.
pub struct Planes<'b> {
    planes: [Plane<'b>; MAX_WIDTH],
    width: usize,
}

impl<'b> Planes<'b> {
    /// Whether items of `width` bytes can be taken out of planes of block `nblock` in runs like these.
    ///
    /// Blocks are split by the typesize, which need not be the width that the filter was given.
    pub(super) fn suit(reader: &Reader<'_>, nblock: usize, width: usize, runs: &Runs<'_>) -> bool {
        let streams = reader.nstreams(nblock);
        let len = reader.header.block_len(nblock);
        // Of a lazy chunk, what is not wanted need not be read either.
        (reader.lazy.is_some() || !is_small(len))
            && (2..=MAX_WIDTH).contains(&width)
            && (streams == 1 || streams == width)
            && len % width == 0
            && runs.granule % width == 0
    }

    /// Decodes the planes of block `nblock`, shuffled by `width` bytes, for these runs.
    ///
    /// # Errors
    ///
    /// Those of damaged streams.
    pub(super) fn decode(
        reader: &Reader<'b>,
        worker: &'b mut Worker,
        nblock: usize,
        width: usize,
        runs: &Runs<'_>,
    ) -> Result<Planes<'b>> {
        let block_len = reader.header.block_len(nblock);
        let nstreams = reader.nstreams(nblock);
        let rows = block_len / width;
        let needed = runs.end.div_ceil(width).min(rows);
        let Worker { codecs, buffers, stream, .. } = worker;
        let decoder = reader.stream_decoder();
        let decoded = buffers.decoded.get(block_len)?;
        if nstreams == width {
            let mut streams = reader.streams_for_rows(nblock, &|| runs.rows(width), stream)?;
            return Planes::of_streams(TILE, &decoder, codecs, &mut streams, width, needed, decoded);
        }
        let mut planes = [Plane::Equal(&[]); MAX_WIDTH];
        ensure(nstreams == 1, ErrorKind::Data, "streams that are not planes")?;
        let bytes = match reader.streams(nblock, stream)?.next_stream()? {
            Stream::Run(value) => {
                planes = [equal(value, TILE, &mut decoded[..rows]); MAX_WIDTH];
                return Ok(Planes { planes, width });
            }
            Stream::Raw(bytes) => bytes,
            coded @ Stream::Coded(_) => {
                decoder.decode_prefix(codecs, coded, (width - 1) * rows + needed, decoded)?;
                decoded
            }
        };
        for (j, plane) in planes[..width].iter_mut().enumerate() {
            let row = bytes.get(j * rows..j * rows + needed);
            *plane = Plane::Bytes(row.ok_or(Error::new(ErrorKind::Data, "fewer bytes than asked for"))?);
        }
        Ok(Planes { planes, width })
    }

    /// Decodes at least the first `needed` bytes of planes that are a stream each. `decoded`, which is as long as all
    /// of them, takes those that are not stored raw.
    fn of_streams(
        tile: usize,
        decoder: &StreamDecoder<'_>,
        codecs: &mut CodecStates,
        streams: &mut StreamReader<'b>,
        width: usize,
        needed: usize,
        decoded: &'b mut [u8],
    ) -> Result<Planes<'b>> {
        let rows = quotient(decoded.len(), width);
        let mut planes = [Plane::Equal(&[]); MAX_WIDTH];
        for (plane, decoded) in planes.iter_mut().zip(decoded.chunks_exact_mut(rows)) {
            *plane = match streams.next_stream()? {
                Stream::Run(value) => equal(value, tile, decoded),
                Stream::Raw(bytes) => Plane::Bytes(bytes),
                coded @ Stream::Coded(_) => {
                    if needed < rows {
                        decoder.decode_prefix(codecs, coded, needed, decoded)?;
                    } else {
                        decoder.decode(codecs, coded, decoded)?;
                    }
                    Plane::Bytes(&decoded[..needed])
                }
            };
        }
        Ok(Planes { planes, width })
    }

    /// Puts together the items from byte `start` of the block on; they are whole items.
    ///
    /// # Panics
    ///
    /// If they reach past the end that was decoded.
    pub fn put(&self, start: usize, dest: &mut [u8]) {
        let first = start / self.width;
        if dest.len() == self.width {
            for (byte, plane) in dest.iter_mut().zip(&self.planes) {
                *byte = plane.part(first, 1)[0];
            }
            return;
        }
        if dest.len() < LONG * self.width {
            return self.put_strided(first, 1, dest);
        }
        for (n, out) in dest.chunks_mut(TILE * self.width).enumerate() {
            let (at, count) = (first + n * TILE, out.len() / self.width);
            for plane in &self.planes[..self.width] {
                if let Plane::Bytes(bytes) = plane {
                    pages::prefetch(bytes.as_ptr().wrapping_add(at + AHEAD), count);
                }
            }
            self.put_tile(at, out);
        }
    }

    /// Puts together the items from number `first` on, as many as [`Plane::part`] has bytes for.
    fn put_tile(&self, first: usize, dest: &mut [u8]) {
        let count = dest.len() / self.width;
        let mut rows = [&[][..]; MAX_WIDTH];
        for (row, plane) in rows.iter_mut().zip(&self.planes[..self.width]) {
            *row = plane.part(first, count);
        }
        shuffle::unshuffle_planes(&rows[..self.width], dest);
    }

    /// Puts together runs of `run` bytes that start at byte `start` of the block and every `step` bytes from there on,
    /// one after the other. Everything consists of whole items.
    ///
    /// # Panics
    ///
    /// As [`put`](Self::put), and if `run` is 0.
    pub fn put_runs(&self, start: usize, step: usize, run: usize, dest: &mut [u8]) {
        if run == self.width {
            return self.put_strided(start / self.width, step / self.width, dest);
        }
        for (n, run) in dest.chunks_mut(run).enumerate() {
            self.put(start + n * step, run);
        }
    }

    /// Puts together every `step`th item from number `first` on. One plane after the other, so that the CPU sees where
    /// each goes on.
    fn put_strided(&self, first: usize, step: usize, dest: &mut [u8]) {
        if dest.is_empty() {
            return;
        }
        let last = first + (dest.len() / self.width - 1) * step;
        for (j, plane) in self.planes[..self.width].iter().enumerate() {
            let places = dest[j..].iter_mut().step_by(self.width);
            match plane {
                Plane::Bytes(bytes) => {
                    let bytes = bytes[first..=last].iter().step_by(step);
                    places.zip(bytes).for_each(|(place, byte)| *place = *byte);
                }
                Plane::Equal(bytes) => places.for_each(|place| *place = bytes[0]),
            }
        }
    }
}

/// Whether a block of `len` bytes is unshuffled quicker from one place than from its planes.
fn is_small(len: usize) -> bool {
    len <= SMALL
}

/// Whether a block of `len` bytes, shuffled by `width` bytes and cut into `nstreams`, is one for [`decode_block`].
///
/// Items of other widths are unshuffled much faster if their planes lie one after the other, so it pays to decode or
/// copy them all to one place first.
#[inline]
pub(super) fn suit_block(len: usize, nstreams: usize, width: usize) -> bool {
    matches!(width, 2 | 4 | 8 | 16) && nstreams == width && !is_small(len) && len % width == 0
}

/// The planes of a small block of `len` bytes, shuffled by `width` bytes and cut into `nstreams`, if each is a stream
/// and all are raw: how far apart they begin, and the bytes from the first one on.
#[inline]
pub(super) fn raw_rows(bytes: &[u8], nstreams: usize, width: usize, len: usize) -> Option<(usize, &[u8])> {
    if nstreams != width || !(1..=SMALL).contains(&len) || len % width != 0 {
        return None;
    }
    let rows = quotient(len, width);
    Some((4 + rows, raw_streams(bytes, nstreams, rows)?))
}

/// Decodes the streams stored in `bytes`, each of which is a plane of a block shuffled by `width` bytes, into `dest`,
/// the block. Streams that are stored raw, or are runs, go there from where they are. `decoded` is room for the others.
///
/// # Errors
///
/// Those of damaged streams.
pub(super) fn decode_block(
    decoder: &StreamDecoder<'_>,
    codecs: &mut CodecStates,
    bytes: &[u8],
    width: usize,
    decoded: &mut Buffer,
    dest: &mut [u8],
) -> Result<()> {
    let rows = quotient(dest.len(), width);
    let mut streams = StreamReader::new(bytes, rows);
    let decoded = decoded.get(dest.len())?;
    let planes = Planes::of_streams(LARGE_TILE, decoder, codecs, &mut streams, width, rows, decoded)?;
    for (n, out) in dest.chunks_mut(LARGE_TILE * width).enumerate() {
        planes.put_tile(n * LARGE_TILE, out);
    }
    Ok(())
}

/// The plane of equal bytes of a run; `room` has the length of the plane.
fn equal(value: u8, tile: usize, room: &mut [u8]) -> Plane<'_> {
    let len = room.len().min(tile);
    room[..len].fill(value);
    Plane::Equal(&room[..len])
}
