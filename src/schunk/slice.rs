//! Ranges of items, read and written.

use super::access::Access;
use super::chunks::{self, StoredChunks};
use super::edit::Update;
use super::{Reading, Schunk, Writing, out_of_range, patch, scratch};
use crate::chunk::{self, Decoding, DisjointParts, Source, Unit};
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::frame::sizes::Sizes;
use crate::frame::{Frame, Wanted};
use crate::memory::{self, resize, zeroed};
use crate::pages;
use std::cell::OnceCell;
use std::ops::Range;

/// The part of one chunk that a range of bytes covers.
pub(crate) struct Part {
    /// Number of the chunk.
    nchunk: usize,
    /// Uncompressed size of the chunk.
    nbytes: usize,
    /// Which bytes of the chunk.
    range: Range<usize>,
    /// How many bytes of the slice come before.
    at: usize,
}

/// A new version of a chunk, with a buffer of the caller's; [`Update`] is one with memory of its own.
enum Rewritten {
    /// That many bytes at the front of the buffer.
    Whole(usize),
    /// New streams for some blocks of the old one.
    Blocks(patch::Patch),
}

impl Rewritten {
    /// How large the blocks of the new version are, in bytes; `chunk` is the buffer with it.
    ///
    /// # Errors
    ///
    /// None, since the chunk was made just now.
    fn blocksize(&self, chunk: &[u8]) -> Result<usize> {
        match self {
            Rewritten::Whole(cbytes) => Ok(ChunkHeader::read(&chunk[..*cbytes])?.blocksize),
            Rewritten::Blocks(patch) => Ok(patch.blocksize()),
        }
    }
}

/// The code under which writing a slice reports that something failed half-way.
fn write_failure(e: Error) -> Error {
    match e.kind() {
        ErrorKind::ChunkUpdate | ErrorKind::Lock => e,
        _ => e.to_failure(),
    }
}

/// Compresses `src` into the front of `chunk`; returns the size in bytes.
#[inline(never)] // beside the short way of patching a chunk
fn compress_into(src: Source<'_>, writing: &Writing<'_>, chunk: &mut Vec<u8>) -> Result<usize> {
    let room = chunk::room_for(src.nbytes());
    if chunk.capacity() < room {
        *chunk = zeroed(room)?;
    } else if chunk.len() < room {
        resize(chunk, room)?;
    }
    writing.compress(src, &mut chunk[..room])
}

impl Part {
    fn is_whole(&self) -> bool {
        self.range.len() == self.nbytes
    }

    /// Which bytes of the slice.
    fn place(&self) -> Range<usize> {
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

/// How often a chunk is made without the exclusive lock, if other handles change the frame each time meanwhile.
const ATTEMPTS: usize = 2;

/// Gives `parts` of chunks, one after the other, the values in `src`. Tells `written` how large the blocks of each new
/// chunk are, in bytes.
///
/// # Errors
///
/// Those of [`Schunk::set_slice`] once it changes something.
pub(crate) fn write_parts(
    schunk: &mut impl Access,
    parts: impl Iterator<Item = Part>,
    src: &[u8],
    reading: &Reading<'_>,
    writing: &Writing<'_>,
    mut written: impl FnMut(usize),
) -> Result<()> {
    for part in parts {
        let made = write_part(schunk, &part, &src[part.place()], reading, writing);
        written(made.map_err(write_failure)?);
    }
    Ok(())
}

/// Gives a part of a chunk the values in `src`; returns the size of the chunk's blocks in bytes.
///
/// The super-chunk is not locked while the chunk is made: filters of the application may read it then, also through
/// other handles. If others that lock changed the frame meanwhile, the chunk is made again.
fn write_part(
    schunk: &mut impl Access,
    part: &Part,
    src: &[u8],
    reading: &Reading<'_>,
    writing: &Writing<'_>,
) -> Result<usize> {
    scratch::with(|chunk| {
        for _ in 0..ATTEMPTS {
            if let Some(blocksize) = try_write_part(schunk, part, src, reading, writing, chunk)? {
                return Ok(blocksize);
            }
        }
        let blocksize = schunk.alone(|schunk| try_write_part(schunk, part, src, reading, writing, chunk))?;
        blocksize.ok_or(Error::new(ErrorKind::Lock, "changed in spite of the lock"))
    })
}

/// As [`write_part`], which lends `chunk`; `None` if another handle changed the frame meanwhile.
fn try_write_part(
    schunk: &mut impl Access,
    part: &Part,
    src: &[u8],
    reading: &Reading<'_>,
    writing: &Writing<'_>,
    chunk: &mut Vec<u8>,
) -> Result<Option<usize>> {
    let (tick, new) = schunk
        .look(|schunk| Ok((schunk.change_tick(), schunk.rewritten(part, src, reading, writing, chunk)?)))?;
    let blocksize = new.blocksize(chunk)?;
    let stored = schunk.change(|schunk| schunk.store_if_current(tick, part.nchunk, new, chunk))?;
    Ok(stored.then_some(blocksize))
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

    /// Gives items `start..stop` the values at the front of `src`, none if `stop` is not after `start`. All others keep
    /// theirs. Of chunks that are covered in part only the blocks that change are compressed again. If the frame locks,
    /// this holds its exclusive lock.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for chunks of variable size and if items are outside of the data, `ReadBuffer` if `src` is too
    /// short, `Lock`; nothing is changed then. `Failure` if a chunk cannot be read or compressed, `ChunkUpdate` if it
    /// cannot be replaced: chunks before have their new values then.
    pub fn set_slice(
        &mut self,
        start: u64,
        stop: u64,
        src: &[u8],
        reading: &Reading<'_>,
        writing: &Writing<'_>,
    ) -> Result<()> {
        if start >= stop {
            return Ok(());
        }
        self.alone(|schunk| {
            let parts = schunk.slice_parts(start, stop, src.len())?;
            write_parts(schunk, parts, src, reading, writing, |_| ())
        })
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

    /// Makes the chunk of `part` with the values of `src` there, in `chunk` if all of it is new. The super-chunk stays
    /// as it is: callbacks may read it meanwhile.
    fn rewritten(
        &self,
        part: &Part,
        src: &[u8],
        reading: &Reading<'_>,
        writing: &Writing<'_>,
        chunk: &mut Vec<u8>,
    ) -> Result<Rewritten> {
        let nbytes = self.sizes().chunk_nbytes(part.nchunk);
        ensure(nbytes == Some(part.nbytes as u64), ErrorKind::Data, "chunk of another size")?; // widening
        if part.is_whole() {
            writing.visit(part.nchunk);
            return compress_into(Source::Bytes(src), writing, chunk).map(Rewritten::Whole);
        }
        reading.visit(part.nchunk);
        if writing.may_reuse() {
            let patched = self.with_lazy(part.nchunk, &reading.dec, |dec, old| {
                patch::encode_range(old, part.range.start, src, dec, &writing.enc)
            })?;
            if let Some(patch) = patched {
                return Ok(Rewritten::Blocks(patch));
            }
        }
        scratch::with_len(part.nbytes, |data| {
            let n = self.with_chunk(part.nchunk, |bytes| scratch::decompress(&reading.dec, bytes, data))?;
            ensure(n == part.nbytes, ErrorKind::Data, "chunk of another size")?;
            copy::copy(src, &mut data[part.range.clone()]);
            compress_into(Source::Bytes(data), writing, chunk).map(Rewritten::Whole)
        })
    }

    /// Stores what [`rewritten`](Self::rewritten) made of chunk `nchunk`, with the buffer that it got, unless another
    /// handle that locks has changed the frame since [`change_tick`](Self::change_tick) was `tick`; returns whether it
    /// was stored.
    ///
    /// # Errors
    ///
    /// Those of storing it, `Lock`.
    fn store_if_current(&mut self, tick: u64, nchunk: usize, new: Rewritten, chunk: &[u8]) -> Result<bool> {
        let _held = self.exclusive()?;
        let current = !self.frame().is_some_and(Frame::locks) || self.change_tick() == tick;
        if current {
            self.store_rewritten(nchunk, new, chunk)?;
        }
        Ok(current)
    }

    /// Stores what [`rewritten`](Self::rewritten) made of chunk `nchunk`, with the buffer that it got.
    fn store_rewritten(&mut self, nchunk: usize, new: Rewritten, chunk: &[u8]) -> Result<()> {
        match new {
            Rewritten::Whole(cbytes) => self.update_chunk(nchunk, &chunk[..cbytes]).map(drop),
            Rewritten::Blocks(patch) => self.update_chunks(vec![(nchunk, Update::Blocks(patch))]),
        }
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
