//! New values for ranges of items.
//!
//! Chunks are made one by one. Small ones of a contiguous frame are stored together, since a change writes the whole
//! index. Large ones are stored one by one, and those of a sparse frame, so that a new chunk can have the file of an old
//! one.

#![forbid(unsafe_code)]

use super::access::Access;
use super::edit::Update;
use super::slice::Part;
use super::{Reading, Schunk, Writing, patch, scratch};
use crate::chunk::{self, Source};
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{codec, filter};
use crate::frame::Frame;
use crate::io::spare;
use crate::memory::{self, resize, zeroed};

/// Chunks of a contiguous frame with up to this number of bytes of data are stored together.
const SMALL: usize = 64 << 10;
/// About as many bytes of new chunks are stored as one change at most.
const BATCH: usize = 256 << 10;
/// They are at most this part of what the frame has: the places of the chunks that they replace are free for those of
/// later changes only.
const BATCH_PART: u64 = 16;

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

    /// The new version with memory of its own.
    fn into_update(self, chunk: &[u8]) -> Result<Update> {
        Ok(match self {
            Rewritten::Whole(cbytes) => Update::Whole(spare::copy_of(&chunk[..cbytes])?),
            Rewritten::Blocks(patch) => Update::Blocks(patch),
        })
    }
}

/// New chunks of a contiguous frame that are yet to be stored.
#[derive(Default)]
struct Batch {
    /// The change tick of the super-chunk when they were made.
    tick: u64,
    parts: Vec<Part>,
    updates: Vec<(usize, Update)>,
    /// What the new chunks take.
    bytes: usize,
}

impl Batch {
    /// Makes the chunk of `part`; returns the size of its blocks in bytes.
    fn add(&mut self, schunk: &impl Access, part: Part, values: &Values<'_>) -> Result<usize> {
        scratch::with(|chunk| {
            let (tick, new) = values.make(schunk, &part, chunk)?;
            let blocksize = new.blocksize(chunk)?;
            let update = new.into_update(chunk)?;
            if self.updates.is_empty() {
                self.tick = tick;
            }
            self.bytes += update.cbytes();
            memory::push(&mut self.updates, (part.nchunk, update))?;
            memory::push(&mut self.parts, part)?;
            Ok(blocksize)
        })
    }

    /// Stores the chunks as one change. If other handles that lock changed the frame meanwhile, they are made again.
    fn store(&mut self, schunk: &mut impl Access, values: &Values<'_>) -> Result<()> {
        let Batch { tick, parts, updates, .. } = std::mem::take(self);
        if updates.is_empty() {
            return Ok(());
        }
        let store = |schunk: &mut Schunk| schunk.update_chunks(updates);
        if !schunk.change(|schunk| schunk.if_current(tick, store))? {
            for part in &parts {
                values.write_part(schunk, part)?;
            }
        }
        Ok(())
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
    let values = Values { src, reading, writing };
    let several = parts.size_hint().1 != Some(1) && !values.call_back();
    let most = if several { schunk.look(|schunk| Ok(batch_len(schunk)))? } else { 0 };
    let mut batch = Batch::default();
    for part in parts {
        let made = if most > 0 && part.nbytes <= SMALL {
            batch.add(schunk, part, &values)
        } else {
            values.write_part(schunk, &part)
        };
        written(made.map_err(write_failure)?);
        if batch.bytes >= most {
            batch.store(schunk, &values).map_err(write_failure)?;
        }
    }
    batch.store(schunk, &values).map_err(write_failure)
}

/// About how many bytes of new chunks are stored as one change; 0 if each is one.
fn batch_len(schunk: &Schunk) -> usize {
    let is_contiguous = schunk.frame().is_some_and(|frame| !frame.is_sparse());
    let part = usize::try_from(schunk.cbytes() / BATCH_PART).unwrap_or(BATCH);
    if is_contiguous { part.min(BATCH) } else { 0 }
}

/// The values of a slice, and how chunks get them.
struct Values<'a> {
    src: &'a [u8],
    reading: &'a Reading<'a>,
    writing: &'a Writing<'a>,
}

impl Values<'_> {
    /// Whether functions of the application are called while chunks are made: they may look at those before.
    fn call_back(&self) -> bool {
        let params = self.writing.enc.params;
        self.writing.compressor.is_some()
            || self.writing.enc.prefilter.is_some()
            || self.reading.dec.postfilter.is_some()
            || params.compcode >= i32::from(codec::FIRST_USER)
            || params.filters.iter().any(|&id| id >= filter::FIRST_USER)
    }

    /// Makes the chunk of `part`, in `chunk` if all of it is new; returns the change tick of the super-chunk as well.
    fn make(&self, schunk: &impl Access, part: &Part, chunk: &mut Vec<u8>) -> Result<(u64, Rewritten)> {
        schunk.look(|schunk| {
            let tick = schunk.change_tick();
            Ok((tick, schunk.rewritten(part, &self.src[part.place()], self.reading, self.writing, chunk)?))
        })
    }

    /// Stores the chunk of `part` with its new values; returns the size of its blocks in bytes.
    ///
    /// The super-chunk is not locked while the chunk is made: filters of the application may read it then, also through
    /// other handles. If others that lock changed the frame meanwhile, the chunk is made again.
    fn write_part(&self, schunk: &mut impl Access, part: &Part) -> Result<usize> {
        scratch::with(|chunk| {
            for _ in 0..ATTEMPTS {
                if let Some(blocksize) = self.try_write_part(schunk, part, chunk)? {
                    return Ok(blocksize);
                }
            }
            let blocksize = schunk.alone(|schunk| self.try_write_part(schunk, part, chunk))?;
            blocksize.ok_or(Error::new(ErrorKind::Lock, "changed in spite of the lock"))
        })
    }

    /// As [`write_part`](Self::write_part), which lends `chunk`; `None` if another handle changed the frame meanwhile.
    fn try_write_part(
        &self,
        schunk: &mut impl Access,
        part: &Part,
        chunk: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let (tick, new) = self.make(schunk, part, chunk)?;
        let blocksize = new.blocksize(chunk)?;
        let store = |schunk: &mut Schunk| schunk.store_rewritten(part.nchunk, new, chunk);
        let stored = schunk.change(|schunk| schunk.if_current(tick, store))?;
        Ok(stored.then_some(blocksize))
    }
}

impl Schunk {
    /// Gives items `start..stop` the values at the front of `src`, none if `stop` is not after `start`. All others keep
    /// theirs. Of chunks that are covered in part only the blocks that change are compressed again. If the frame locks,
    /// this holds its exclusive lock.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for chunks of variable size and if items are outside of the data, `ReadBuffer` if `src` is too
    /// short, `Lock`; nothing is changed then. `Failure` if a chunk cannot be read or compressed, `ChunkUpdate` if it
    /// cannot be replaced: chunks before may have their new values then.
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

    /// Has `store` change the super-chunk, unless another handle that locks has changed the frame since
    /// [`change_tick`](Self::change_tick) was `tick`; returns whether it did.
    ///
    /// # Errors
    ///
    /// Those of `store`, `Lock`.
    fn if_current(&mut self, tick: u64, store: impl FnOnce(&mut Schunk) -> Result<()>) -> Result<bool> {
        let _held = self.exclusive()?;
        let current = !self.frame().is_some_and(Frame::locks) || self.change_tick() == tick;
        if current {
            store(self)?;
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
}
