//! Parts of a shuffled block, without unshuffling the rest.
//!
//! Each byte position of the items is a plane of its own, and mostly a stream of its own. Streams that are stored raw, or
//! are runs, are not even copied: wanted items are put together from where their bytes are.

use super::reader::Reader;
use super::streams::Stream;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::filters::shuffle;
use crate::scratch::Worker;

/// Planes are looked at one by one up to this width of the items, in bytes.
const MAX_WIDTH: usize = 16;
/// Runs of at least this many items are transposed by the vector kernels.
const LONG: usize = 8;
/// So many items are transposed at a time.
const TILE: usize = 256;

/// Parts of a block: runs of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// The first byte of the first run.
    pub start: usize,
    /// The end of the last run.
    pub end: usize,
    /// Length of all runs together.
    pub len: usize,
    /// Length of a typical one.
    pub run: usize,
    /// All runs start and end at a multiple of this.
    pub granule: usize,
    /// Whether they are wanted as one [`Decoded::Window`].
    pub at_once: bool,
}

impl Runs {
    /// A single run.
    pub(super) fn one(wanted: &std::ops::Range<usize>) -> Runs {
        let run = wanted.len();
        Runs { start: wanted.start, end: wanted.end, len: run, run, granule: 1, at_once: false }
    }

    /// Whether most bytes up to the last one are wanted.
    pub(super) fn are_dense(&self) -> bool {
        self.len >= self.end / 4
    }
}

/// A block from which runs are taken.
pub enum Decoded<'a> {
    /// All bytes from the start of the first run to the end of the last one.
    Window(&'a [u8]),
    /// Copies the bytes from an offset in the block on.
    Runs(&'a dyn Fn(usize, &mut [u8])),
}

/// The bytes of one position of all items of a block.
#[derive(Clone, Copy)]
enum Plane<'b> {
    Bytes(&'b [u8]),
    Run(u8),
}

/// The planes of a block up to the last item that is wanted.
pub(super) struct Planes<'b> {
    planes: [Plane<'b>; MAX_WIDTH],
    width: usize,
}

impl<'b> Planes<'b> {
    /// Whether items of `width` bytes can be taken out of planes of block `nblock` in runs like these.
    ///
    /// Blocks are split by the typesize, which need not be the width that the filter was given.
    pub(super) fn suit(reader: &Reader<'_>, nblock: usize, width: usize, runs: &Runs) -> bool {
        let streams = reader.nstreams(nblock);
        (2..=MAX_WIDTH).contains(&width)
            && (streams == 1 || streams == width)
            && reader.header.block_len(nblock) % width == 0
            && runs.granule % width == 0
    }

    /// Decodes the planes of block `nblock`, shuffled by `width` bytes, for the bytes `wanted` of the block.
    ///
    /// # Errors
    ///
    /// Those of damaged streams.
    pub(super) fn decode(
        reader: &Reader<'b>,
        worker: &'b mut Worker,
        nblock: usize,
        width: usize,
        wanted: std::ops::Range<usize>,
    ) -> Result<Planes<'b>> {
        let block_len = reader.header.block_len(nblock);
        let nstreams = reader.nstreams(nblock);
        let len = block_len / nstreams;
        let rows = block_len / width;
        let needed = wanted.end.div_ceil(width).min(rows);
        let Worker { codecs, buffers, stream, .. } = worker;
        let mut streams = if nstreams == width {
            reader.streams_for_rows(nblock, wanted.start / width..needed, stream)?
        } else {
            reader.streams(nblock, stream)?
        };
        let decoder = reader.stream_decoder();
        let mut planes = [Plane::Run(0); MAX_WIDTH];
        if nstreams == width {
            let decoded = buffers.decoded.get(block_len).chunks_exact_mut(len);
            for (plane, decoded) in planes.iter_mut().zip(decoded) {
                *plane = match streams.next_stream()? {
                    Stream::Run(value) => Plane::Run(value),
                    Stream::Raw(bytes) => Plane::Bytes(bytes),
                    coded @ Stream::Coded(_) => {
                        decoder.decode_prefix(codecs, coded, needed, decoded)?;
                        Plane::Bytes(&decoded[..needed])
                    }
                };
            }
            return Ok(Planes { planes, width });
        }
        ensure(nstreams == 1, ErrorKind::Data, "streams that are not planes")?;
        let bytes = match streams.next_stream()? {
            Stream::Run(value) => {
                planes = [Plane::Run(value); MAX_WIDTH];
                return Ok(Planes { planes, width });
            }
            Stream::Raw(bytes) => bytes,
            coded @ Stream::Coded(_) => {
                let decoded = buffers.decoded.get(block_len);
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

    /// Puts together the items from byte `start` of the block on; they are whole items.
    ///
    /// # Panics
    ///
    /// If they reach past the end that was decoded.
    pub(super) fn put(&self, start: usize, dest: &mut [u8]) {
        let first = start / self.width;
        if dest.len() < LONG * self.width {
            return self.put_few(first, dest);
        }
        let mut tile = [0; TILE * MAX_WIDTH];
        for (n, out) in dest.chunks_mut(TILE * self.width).enumerate() {
            let (at, count) = (first + n * TILE, out.len() / self.width);
            let tile = &mut tile[..out.len()];
            for (row, plane) in tile.chunks_exact_mut(count).zip(&self.planes) {
                match plane {
                    Plane::Bytes(bytes) => row.copy_from_slice(&bytes[at..at + count]),
                    Plane::Run(value) => row.fill(*value),
                }
            }
            shuffle::unshuffle(self.width, tile, out);
        }
    }

    fn put_few(&self, first: usize, dest: &mut [u8]) {
        let count = dest.len() / self.width;
        for (j, plane) in self.planes[..self.width].iter().enumerate() {
            let places = dest[j..].iter_mut().step_by(self.width);
            match plane {
                Plane::Bytes(bytes) => {
                    places.zip(&bytes[first..first + count]).for_each(|(place, byte)| *place = *byte);
                }
                Plane::Run(value) => places.for_each(|place| *place = *value),
            }
        }
    }
}
