//! Ranges of items: which parts of chunks hold them, and what they are.

use super::chunks::{self, StoredChunks};
use super::{Reading, Schunk, out_of_range};
use crate::chunk::{self, Decoding, DisjointParts, Unit};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::frame::Wanted;
use crate::frame::sizes::Sizes;
use crate::memory;
use crate::pages;
use std::cell::OnceCell;
use std::ops::Range;

/// The part of one chunk that a range of bytes covers.
pub(crate) struct Part {
    /// Number of the chunk.
    pub(super) nchunk: usize,
    /// Uncompressed size of the chunk.
    pub(super) nbytes: usize,
    /// Which bytes of the chunk.
    pub(super) range: Range<usize>,
    /// How many bytes of the slice come before.
    at: usize,
}

impl Part {
    pub(super) fn is_whole(&self) -> bool {
        self.range.len() == self.nbytes
    }

    /// Which bytes of the slice.
    pub(super) fn place(&self) -> Range<usize> {
        self.at..self.at + self.range.len()
    }
}

/// Decompresses `part` into `dest`, which has its length; of a whole chunk, the blocks that `mask` lets through.
fn read_part(
    chunks: &StoredChunks<'_>,
    part: &Part,
    mask: Option<&[bool]>,
    dec: &Decoding<'_>,
    dest: &mut [u8],
) -> Result<()> {
    let n = if part.is_whole() {
        let decompressed = |dec: &Decoding<'_>, bytes: &[u8]| chunk::decompress_with(dec, bytes, mask, dest);
        chunks.with_all_bytes(part.nchunk, dec, decompressed)?
    } else {
        let param = |value: usize| i32::try_from(value).map_err(|_| out_of_range());
        let (start, count) = (param(part.range.start)?, param(part.range.len())?);
        let wanted = Wanted::Bytes(part.range.len());
        chunks.with_part(part.nchunk, wanted, dec, |dec, bytes| {
            chunk::getitem(dec, bytes, Unit::Bytes, start, count, dest)
        })?
    };
    ensure(n == part.range.len(), ErrorKind::Data, "chunk of another size")
}

/// Copies a range of bytes of the data to `dest`; returns the number of the last chunk in it. The first whole chunk has
/// the mask that `reading` takes, which is kept in `mask`.
fn read_parts(
    chunks: &StoredChunks<'_>,
    bytes: Range<u64>,
    reading: &Reading<'_>,
    mask: &OnceCell<Option<Vec<bool>>>,
    dest: &mut [u8],
) -> Result<usize> {
    // Others may change the frame at any time: what counts is how large these chunks are.
    let sizes = chunks.sizes();
    ensure(bytes.end <= sizes.nbytes, ErrorKind::Failure, "items out of range")?;
    pages::prefer_huge_for(dest);
    let parts = parts(&sizes, bytes)?;
    let mut last = 0;
    if reading.visit.is_some() || reading.mask.is_some() || parts.size_hint().1 == Some(1) {
        let mut masked = false;
        for part in parts {
            reading.visit(part.nchunk);
            last = part.nchunk;
            let is_first = part.is_whole() && !masked;
            masked |= is_first;
            let mask = if is_first { mask.get_or_init(|| reading.take_mask()).as_deref() } else { None };
            read_part(chunks, &part, mask, &reading.dec, &mut dest[part.place()])
                .map_err(Error::to_failure)?;
        }
        return Ok(last);
    }
    let parts: Vec<Part> = memory::collect(parts)?;
    let dest = DisjointParts::new(dest);
    let read = |part: &Part, dec: &Decoding<'_>| {
        // SAFETY: each part is read once, and their places do not overlap.
        let dest = unsafe { dest.part(part.at, part.range.len()) };
        read_part(chunks, part, None, dec, dest)
    };
    chunks::for_each(&parts, &reading.dec, read).map_err(Error::to_failure)?;
    Ok(parts.last().map_or(last, |part| part.nchunk))
}

impl Schunk {
    /// Copies items `start..stop` to the front of `dest`; nothing if `stop` is not after `start`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for chunks of variable size, `WriteBuffer` if `dest` is too short; `Failure` if items are outside
    /// of the data or a chunk cannot be read: part of `dest` may be filled then.
    pub fn get_slice(&self, start: u64, stop: u64, dest: &mut [u8], reading: &Reading<'_>) -> Result<()> {
        if start >= stop {
            return Ok(());
        }
        self.read_items(start, stop, dest, reading).map(drop)
    }

    /// [`get_slice`](Self::get_slice) of at least one item; returns the number of the last chunk in the slice.
    pub(crate) fn read_items(
        &self,
        start: u64,
        stop: u64,
        dest: &mut [u8],
        reading: &Reading<'_>,
    ) -> Result<usize> {
        let bytes = self.byte_range(start, stop)?;
        let dest = usize::try_from(bytes.end - bytes.start).ok().and_then(|len| dest.get_mut(..len));
        let dest = dest.ok_or(Error::new(ErrorKind::WriteBuffer, "destination too short"))?;
        // By now another thread may have taken over that there are fewer.
        let numbers = || {
            let size = fixed_chunksize(&self.sizes())?;
            let number = |at: u64| usize::try_from(at / size).map_err(|_| out_of_range());
            memory::collect(number(bytes.start)?..=number(bytes.end - 1)?)
        };
        let mask = OnceCell::new();
        let read = |chunks: &StoredChunks<'_>| read_parts(chunks, bytes.clone(), reading, &mask, dest);
        self.read_without_layout(numbers, read).map_err(Error::to_failure)?
    }

    /// As [`read_items`](Self::read_items) of items that are there, into all of `dest`, if they are in one chunk of a list and that is a
    /// [simple](chunk::decompress_simple) one: so nothing of the application is called, and no thread is started.
    #[cfg(feature = "capi")]
    #[inline]
    pub(crate) fn get_slice_simple(&self, start: u64, stop: u64, dest: &mut [u8]) -> Option<usize> {
        let list = self.list()?;
        let mut parts = parts(&list.sizes, self.byte_range(start, stop).ok()?).ok()?;
        let (part, None) = (parts.next()?, parts.next()) else { return None };
        let chunk = list.chunk(part.nchunk).ok()?;
        pages::prefer_huge_for(dest);
        let read = if part.is_whole() {
            chunk::decompress_simple(chunk, dest, true, |_| ())?
        } else {
            let param = |value: usize| i32::try_from(value).ok();
            let (start, count) = (param(part.range.start)?, param(part.range.len())?);
            chunk::getitem_simple(chunk, Unit::Bytes, start, count, dest, |_| ())?
        };
        (read == part.range.len()).then_some(part.nchunk)
    }

    /// The parts of chunks that hold items `start..stop`, for which there are `available` bytes.
    ///
    /// # Errors
    ///
    /// As [`set_slice`](Self::set_slice) before it changes anything.
    pub(crate) fn slice_parts(
        &self,
        start: u64,
        stop: u64,
        available: usize,
    ) -> Result<impl Iterator<Item = Part> + use<>> {
        let bytes = self.byte_range(start, stop)?;
        let sizes = self.sizes();
        require(bytes.end <= sizes.nbytes, "items out of range")?;
        let len = bytes.end - bytes.start;
        ensure(available as u64 >= len, ErrorKind::ReadBuffer, "source too short")?; // widening
        parts(&sizes, bytes)
    }

    /// The bytes of items `start..stop`.
    fn byte_range(&self, start: u64, stop: u64) -> Result<Range<u64>> {
        let typesize = self.typesize() as u64; // widening
        let stop = stop.checked_mul(typesize).ok_or_else(out_of_range)?;
        Ok(start * typesize..stop)
    }

    /// The numbers of the chunks that hold items `start..stop`; they are not compared with the number of chunks, and
    /// the range ends before it starts if `stop` is in a chunk before that of `start`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for chunks of variable size and for items beyond any size.
    pub fn slice_chunks(&self, start: u64, stop: u64) -> Result<Range<u64>> {
        let sizes = self.sizes();
        if sizes.nchunks == 0 {
            return Ok(0..0);
        }
        let size = fixed_chunksize(&sizes)?;
        let typesize = self.typesize() as u64; // widening
        let first = start.checked_mul(typesize).ok_or_else(out_of_range)? / size;
        let last = stop.checked_mul(typesize).ok_or_else(out_of_range)?.div_ceil(size);
        Ok(first..last)
    }
}

/// The size of the chunks in bytes; `InvalidParam` if they are not all of one.
fn fixed_chunksize(sizes: &Sizes) -> Result<u64> {
    let variable = Error::new(ErrorKind::InvalidParam, "chunks of variable size have no slices");
    u64::try_from(sizes.chunksize).ok().filter(|&size| size > 0).ok_or(variable)
}

/// Cuts a range of bytes of the data, which has these sizes and holds it, at the ends of chunks.
fn parts(sizes: &Sizes, bytes: Range<u64>) -> Result<impl Iterator<Item = Part> + use<>> {
    let size = fixed_chunksize(sizes)?;
    let total = sizes.nbytes;
    let first = bytes.start / size;
    // Most slices are of one chunk, and a division takes longer than to see that.
    let last = if bytes.end <= (first + 1) * size { first } else { (bytes.end - 1) / size };
    // Chunk sizes and numbers are below 2^31.
    let small = |value: u64| usize::try_from(value).expect("below 2^31");
    Ok((first..=last).map(move |nchunk| {
        let start = nchunk * size;
        let end = (start + size).min(total);
        let (from, to) = (bytes.start.max(start), bytes.end.min(end));
        Part {
            nchunk: small(nchunk),
            nbytes: small(end - start),
            range: small(from - start)..small(to - start),
            // A slice fits in memory.
            at: usize::try_from(from - bytes.start).expect("within a buffer"),
        }
    }))
}
