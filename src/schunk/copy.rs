//! Copies: into other containers, with the same or other parameters.

#![forbid(unsafe_code)]

use super::chunks::{ATTEMPTS, StoredChunks};
use super::{Backing, Reading, Schunk, Writing, meta, scratch};
use crate::bytes::get_i32;
use crate::chunk::{self, Decoding, Source};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::offset;
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::frame_header::FrameParams;
use crate::format::geometry::Container;
use crate::format::metalayers::{self, Metalayers};
use crate::frame::sizes::ChunkInfo;
use crate::frame::{ChunkBytes, Frame, FrameOptions};
use crate::io::Io;
use crate::io::file::{self, FileIo};
use crate::io::memory::MallocBuf;
use crate::io::spare;
use crate::memory;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

/// About how many bytes of chunks to hand to a frame as one change, of `nchunks` chunks in all. What was just read or
/// made is near at hand, but each change writes the index anew: many chunks go in larger batches.
pub(crate) fn batch_len(nchunks: usize) -> usize {
    batch_of_at_least(4 << 20, nchunks)
}

/// As [`batch_len`], for a frame in memory, where a change takes less time.
fn batch_len_in_memory(nchunks: usize) -> usize {
    batch_of_at_least(1 << 20, nchunks)
}

fn batch_of_at_least(least: usize, nchunks: usize) -> usize {
    const PER_INDEX: usize = 16;
    nchunks.saturating_mul(size_of::<i64>() * PER_INDEX).clamp(least, 16 << 20)
}

/// Room for at most this many chunks is made before any of them is seen: a damaged frame may claim to have very many.
const RESERVED: usize = 1 << 16;
/// Room for at most this many bytes of chunks that are files of their own, for the same reason.
const RESERVED_BYTES: u64 = 32 << 20;

/// What [`check_copied`] reports. The frame may look again as before by then.
const CHANGED: Error = Error::new(ErrorKind::FileRead, "chunks were changed while they were copied");

/// Calls `copy`, which copies all chunks of a super-chunk, and again if it fails after somebody changed them: `tick` is
/// its [fresh tick](Schunk::fresh_tick).
pub(crate) fn again_if_changed<T>(tick: impl Fn() -> u64, mut copy: impl FnMut() -> Result<T>) -> Result<T> {
    let mut before = tick();
    for _ in 1..ATTEMPTS {
        let error = match copy() {
            Ok(copied) => return Ok(copied),
            Err(error) => error,
        };
        let now = tick();
        if now == before && error != CHANGED {
            return Err(error);
        }
        before = now;
    }
    copy()
}

/// The metalayers of a view, in the place of those of the super-chunk whose chunks it shows.
pub(crate) struct ViewLayers {
    pub(crate) fixed: Arc<Metalayers>,
    /// `None` for those of the super-chunk.
    pub(crate) variable: Option<Arc<Metalayers>>,
    /// How often they changed.
    pub(crate) changes: u64,
}

/// Adds a variable-length metalayer with this name and content, a chunk.
type AddVlmeta = fn(&mut Schunk, &[u8], Vec<u8>) -> Result<usize>;

/// Passes copies of variable-length metalayers, compressed with the defaults, to `add`; those that stand for very much
/// more than they take as they are.
fn copy_vlmeta(layers: &Metalayers, dest: &mut Schunk, add: AddVlmeta) -> Result<()> {
    for layer in layers.iter() {
        let content = if meta::is_bomb(&layer.content) {
            memory::copy_of(&layer.content)?
        } else {
            meta::compress(&meta::decompress(&layer.content)?, None)?
        };
        add(dest, &layer.name, content)?;
    }
    Ok(())
}

impl Schunk {
    /// Copies metalayers, chunks and variable-length metalayers to `dest`, which is empty. A frame gets the last ones
    /// with its last chunks, as one change: a copy that was broken off and has all chunks has them, too.
    ///
    /// Without `recompress` the chunks are copied as they are. With it they are decompressed and compressed again;
    /// chunks of variable-length blocks are copied as they are all the same.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if `dest` is not empty, `InvalidHeader` if the sizes of the chunks do not add up, or are more
    /// than there is room for in the frame, `FileRead` if somebody changed the chunks meanwhile without a lock, else
    /// those of reading and writing; `dest` is incomplete then, or not of one moment.
    pub fn copy_to(&self, dest: &mut Schunk, recompress: Option<(&Reading<'_>, &Writing<'_>)>) -> Result<()> {
        self.copy_to_watched(dest, None, recompress, &|_| ())
    }

    /// As [`copy_to`](Self::copy_to), with `layers`, if there are any, in the place of the metalayers. `prepared` is
    /// shown the copy when it has the fixed ones and no chunks yet: what compresses the chunks may look for them.
    pub(crate) fn copy_to_watched(
        &self,
        dest: &mut Schunk,
        layers: Option<&ViewLayers>,
        recompress: Option<(&Reading<'_>, &Writing<'_>)>,
        prepared: &dyn Fn(&Schunk),
    ) -> Result<()> {
        require(dest.nchunks() == 0, "destination of a copy is not empty")?;
        // As long as they are held, other handles that lock change nothing.
        let chunks = self.chunks()?;
        let sizes = chunks.sizes();
        // Even if the only chunk is a shorter one, or if there is none: adding a metalayer writes it to the header of a
        // frame, as the C library does.
        dest.preset_chunksize(sizes.chunksize)?;
        for layer in layers.map_or(chunks.metalayers(), |own| &own.fixed).iter() {
            dest.meta_add(&layer.name, &layer.content)?;
        }
        prepared(dest);
        let no_chunks = sizes.nchunks == 0;
        let add = if no_chunks { Schunk::vlmeta_add_stored } else { Schunk::vlmeta_add_later };
        let variable = layers.and_then(|own| own.variable.as_ref());
        let before_last = |dest: &mut Schunk| {
            let layers = variable.map_or_else(|| self.vlmetalayers(), Arc::clone);
            copy_vlmeta(&layers, dest, add)
        };
        let recompress = recompress.filter(|_| !sizes.vl_blocks && !no_chunks);
        let sums = match recompress {
            None => {
                self.make_room(&chunks, dest);
                copy_chunks(&chunks, dest, before_last)?;
                None
            }
            Some((reading, writing)) => {
                let watched = self.frame().is_some_and(|frame| frame.is_on_disk() && !frame.locks());
                Some(recompress_chunks(&chunks, watched, dest, (reading, writing), before_last)?)
            }
        };
        check_copied(&chunks, dest, sums.as_deref())
    }

    /// Makes room in `dest`, if it is a frame in memory, for about what a copy of `chunks` takes: a buffer that grows
    /// step by step has up to half as much room more than it needs in the end, and where it has to move, there are two
    /// for a moment. Without memory for that, it grows all the same.
    fn make_room(&self, chunks: &StoredChunks<'_>, dest: &mut Schunk) {
        let Some(buffer) = dest.frame_mut().and_then(Frame::buffer_mut) else { return };
        let is_sparse = self.frame().is_some_and(Frame::is_sparse);
        let most = if is_sparse { Some(RESERVED_BYTES) } else { chunks.contiguous_len() };
        let payload = self.cbytes().min(most.unwrap_or(u64::MAX));
        // The entries of the index compress well if there are many for few bytes.
        let entries = chunks.sizes().nchunks.saturating_mul(size_of::<i64>()) as u64; // widening
        let index = entries.min(payload / 4);
        let around = buffer.len() + metalayers::section_len(&self.vlmetalayers()) + 4096;
        let room = usize::try_from(payload + index).ok().and_then(|inner| inner.checked_add(around));
        let _ = buffer.reserve_exact(room.unwrap_or(0));
    }

    /// A contiguous frame in memory with the same content and the parameters `params` in its header.
    ///
    /// # Errors
    ///
    /// Those of reading, `MemoryAlloc`.
    pub fn to_frame(&self, params: FrameParams) -> Result<Frame> {
        self.again_if_changed(|| {
            let mut copy = Schunk::over(Frame::create_in_memory(params)?);
            self.copy_to(&mut copy, None)?;
            Ok(copy.into_frame().expect("made over a frame"))
        })
    }

    /// A super-chunk without a frame, with copies of all chunks.
    ///
    /// # Errors
    ///
    /// `InvalidHeader` if the sizes of the chunks do not add up to what the frame says or are more than there is room
    /// for in it, else those of reading.
    pub fn to_memory(&self) -> Result<Schunk> {
        self.again_if_changed(|| {
            let mut copy = Schunk::in_memory(self.params());
            self.copy_to_list(&mut copy)?;
            Ok(copy)
        })
    }

    /// See [`again_if_changed`].
    pub(super) fn again_if_changed<T>(&self, copy: impl FnMut() -> Result<T>) -> Result<T> {
        again_if_changed(|| self.fresh_tick(), copy)
    }

    /// The change tick, after taking over what others changed.
    pub(crate) fn fresh_tick(&self) -> u64 {
        // If that fails, so does copying.
        let _ = self.refresh();
        self.change_tick()
    }

    /// As [`to_memory`](Self::to_memory), with `layers` in the place of the metalayers, which counts as a change of
    /// them.
    ///
    /// # Errors
    ///
    /// As [`to_memory`](Self::to_memory).
    pub(crate) fn to_memory_with(&self, layers: ViewLayers) -> Result<Schunk> {
        let mut copy = self.to_memory()?;
        if let Backing::List(list) = &mut copy.backing {
            list.metalayers = layers.fixed;
            list.vlmetalayers = layers.variable.unwrap_or(Arc::clone(&list.vlmetalayers));
            list.tick += 1 + layers.changes;
        }
        Ok(copy)
    }

    fn copy_to_list(&self, copy: &mut Schunk) -> Result<()> {
        // The block size that all chunks share: negative before the first chunk, 0 if they differ.
        let mut common = -1;
        let chunks = self.chunks()?;
        let sizes = chunks.sizes();
        copy.preset_chunksize(sizes.chunksize)?;
        if let Backing::List(list) = &mut copy.backing {
            list.reserve(sizes.nchunks.min(RESERVED))?;
        }
        let mut budget = Budget::of(&chunks);
        for nchunk in 0..sizes.nchunks {
            let blocksize = append_copy(copy, &chunks, nchunk, &mut budget)?;
            common = if common < 0 || common == blocksize { blocksize } else { 0 };
        }
        if common >= 0 {
            copy.params.blocksize = common;
        }
        if let Backing::List(list) = &mut copy.backing {
            list.sizes.chunksize = sizes.chunksize;
            list.metalayers = Arc::clone(chunks.metalayers());
            list.vlmetalayers = self.vlmetalayers();
        }
        check_copied(&chunks, copy, None)
    }

    /// Whether all chunks decompress to the same with `other` in place of the container of `dec`, from which it differs
    /// in the shape of the blocks. Chunks that `dec` cannot decompress are left out of account; postfilters are not
    /// run.
    ///
    /// # Errors
    ///
    /// Those of reading, `MemoryAlloc`.
    pub fn reads_alike(&self, dec: &Decoding<'_>, other: Container) -> Result<bool> {
        let chunks = self.chunks()?;
        for nchunk in 0..chunks.sizes().nchunks {
            if !chunks.with(nchunk, |chunk| reads_alike(dec, other, chunk))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes a contiguous frame with the same content to `path`; returns its length in bytes.
    ///
    /// The frame of a super-chunk that has one in memory goes to the file as it is, through `io`, replacing what was
    /// there. Of others a copy with `params` in its header is made; the path must not exist then.
    ///
    /// # Errors
    ///
    /// `FileOpen`, `FileWrite`; `SchunkCopy` if no copy can be made.
    pub fn to_file(&self, path: &Path, params: FrameParams, io: &dyn Io) -> Result<u64> {
        if let Some(frame) = self.frame().filter(|frame| !frame.is_on_disk()) {
            return frame.write_file(path, io);
        }
        let failed = |e: Error| Error::new(ErrorKind::SchunkCopy, e.what());
        ensure(std::fs::metadata(path).is_err(), ErrorKind::SchunkCopy, "path exists already")?;
        // Of a link that leads nowhere yet, the file that it names is made.
        let is_link = std::fs::symlink_metadata(path).is_ok();
        let copy = || file::make_beside(path, |beside| self.copy_to_file(beside, params));
        let beside = (!is_link).then(|| self.again_if_changed(copy));
        let copied = match beside {
            Some(Err(e)) if e.kind() != ErrorKind::FileOpen => Err(e),
            Some(Ok(len)) => Ok(len),
            // There may be room for no other name in the directory.
            _ => self.to_frame(params).and_then(|frame| frame.write_file(path, &FileIo)),
        };
        copied.map_err(failed)
    }

    /// Makes the file `path`, a contiguous frame with the same content; returns its length in bytes.
    fn copy_to_file(&self, path: &Path, params: FrameParams) -> Result<u64> {
        let mut copy = Schunk::over(Frame::create_file(path, params, &FrameOptions::default())?);
        self.copy_to(&mut copy, None)?;
        Ok(copy.frame_len())
    }

    /// Writes a contiguous frame with the same content after what the file `path` holds; returns the position at which
    /// the frame starts. `params`, and the back-end of `options`, as in [`to_file`](Self::to_file); the rest of
    /// `options` counts in any case.
    ///
    /// # Errors
    ///
    /// As [`Frame::append_to_file`], `SchunkCopy` if no copy can be made.
    pub fn append_file(&self, path: &Path, params: FrameParams, options: &FrameOptions) -> Result<u64> {
        if let Some(frame) = self.frame().filter(|frame| !frame.is_on_disk()) {
            return frame.append_to_file(path, options);
        }
        let copy = self.to_frame(params).map_err(|e| Error::new(ErrorKind::SchunkCopy, e.what()))?;
        // Another lock of the same file would wait for that of this handle.
        let own = self.frame().filter(|frame| frame.locks_file(path));
        let _held = own.map(Frame::exclusive).transpose()?;
        let locking = options.locking && own.is_none();
        let durability = options.durability;
        copy.append_to_file(path, &FrameOptions { locking, durability, ..FrameOptions::default() })
    }
}

/// How many bytes of chunks a copy may still meet. In a damaged frame of a few bytes, millions of chunks can be at one
/// place; those of others take no more room than there is in the frame. Special ones, which are not in it, do not
/// count.
struct Budget(u64);

impl Budget {
    /// For all of `chunks`.
    fn of(chunks: &StoredChunks<'_>) -> Budget {
        Budget(chunks.contiguous_len().unwrap_or(u64::MAX))
    }

    /// Counts `chunk`.
    ///
    /// # Errors
    ///
    /// `InvalidHeader` if there is no room for it besides those before.
    fn spend(&mut self, chunk: &[u8]) -> Result<()> {
        if chunk.len() > EXTENDED_HEADER_LENGTH {
            let left = self.0.checked_sub(chunk.len() as u64); // widening
            self.0 = left.ok_or(Error::new(ErrorKind::InvalidHeader, "chunks lie on one another"))?;
        }
        Ok(())
    }
}

/// Fails unless `copy` has all of `chunks`, and all of them are of one moment, as far as frames can tell that (see
/// `are_all_kept`). Those that may have been replaced in their places meanwhile are compared with the copy, or, if they
/// were compressed again, with `sums`, the [`sum`] of each.
///
/// # Errors
///
/// `InvalidHeader` if it has more or fewer bytes, `FileRead` if chunks were changed meanwhile.
fn check_copied(chunks: &StoredChunks<'_>, copy: &Schunk, sums: Option<&[u64]>) -> Result<()> {
    let sizes = chunks.sizes();
    let whole = copy.nbytes() == sizes.nbytes;
    ensure(whole, ErrorKind::InvalidHeader, "sizes of the chunks do not add up")?;
    let is_same = |nchunk| {
        let same = chunks.with(nchunk, |chunk| match sums {
            Some(sums) => Ok(sums.get(nchunk) == Some(&sum(chunk))),
            None => copy.with_chunk(nchunk, |copied| Ok(chunk == copied)),
        });
        same.unwrap_or(false)
    };
    let kept = sizes.nchunks == 0 || chunks.are_all_kept(is_same);
    if kept { Ok(()) } else { Err(CHANGED) }
}

/// Copies all chunks as they are, many at a time where `dest` is a frame, and calls `before_last` before the last ones.
fn copy_chunks(
    chunks: &StoredChunks<'_>,
    dest: &mut Schunk,
    before_last: impl FnOnce(&mut Schunk) -> Result<()>,
) -> Result<()> {
    let nchunks = chunks.sizes().nchunks;
    let mut budget = Budget::of(chunks);
    if dest.frame().is_none() {
        before_last(dest)?;
        return (0..nchunks).try_for_each(|nchunk| append_copy(dest, chunks, nchunk, &mut budget).map(drop));
    }
    let on_disk = dest.frame().is_some_and(Frame::is_on_disk);
    let enough = if on_disk { batch_len(nchunks) } else { batch_len_in_memory(nchunks) };
    let mut batch = Vec::new();
    let mut bytes = 0;
    for nchunk in 0..nchunks {
        if bytes >= enough {
            append_batch(dest, &mut batch)?;
            bytes = 0;
        }
        let chunk = chunks.get_into(nchunk, MallocBuf::filled)?;
        budget.spend(chunk.bytes())?;
        bytes += chunk.bytes().len();
        memory::push(&mut batch, chunk)?;
    }
    before_last(dest)?;
    append_batch(dest, &mut batch)
}

/// A checksum of a chunk.
fn sum(chunk: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(chunk);
    hasher.finish()
}

/// Copies all chunks, compressed again, and calls `before_last` before the last one: there is one. Returns the [`sum`]
/// of each if they are `watched`, since others may change them meanwhile.
fn recompress_chunks(
    chunks: &StoredChunks<'_>,
    watched: bool,
    dest: &mut Schunk,
    (reading, writing): (&Reading<'_>, &Writing<'_>),
    before_last: impl Fn(&mut Schunk) -> Result<()>,
) -> Result<Vec<u64>> {
    let sizes = chunks.sizes();
    let mut sums = Vec::new();
    let fixed = u64::try_from(sizes.chunksize).ok().filter(|&size| size > 0).unwrap_or(u64::MAX);
    let mut budget = Budget::of(chunks);
    for nchunk in 0..sizes.nchunks {
        reading.visit(nchunk);
        chunks.with(nchunk, |chunk| {
            budget.spend(chunk)?;
            if watched {
                memory::push(&mut sums, sum(chunk))?;
            }
            let nbytes = u64::try_from(ChunkInfo::read(chunk)?.nbytes).unwrap_or(0);
            let fits = nbytes <= fixed && nbytes <= sizes.nbytes;
            ensure(fits, ErrorKind::InvalidHeader, "sizes of the chunks do not add up")?;
            let nbytes = usize::try_from(nbytes).unwrap_or(usize::MAX);
            scratch::with_len(nbytes, |data| {
                scratch::decompress(&reading.dec, chunk, data)?;
                if nchunk + 1 == sizes.nchunks {
                    before_last(dest)?;
                }
                dest.append_buffer(Source::Bytes(data), writing)
            })
        })?;
    }
    Ok(sums)
}

/// [`Schunk::reads_alike`] for one chunk.
fn reads_alike(dec: &Decoding<'_>, other: Container, chunk: &[u8]) -> Result<bool> {
    if !chunk::depends_on_shape(chunk)? {
        return Ok(true);
    }
    let nbytes = usize::try_from(ChunkInfo::read(chunk)?.nbytes).unwrap_or(0);
    let other = move || other;
    let dec = Decoding { postfilter: None, ..*dec };
    let other = Decoding { container: Some(&other), ..dec };
    let read = |dec: &Decoding<'_>, data: &mut [u8]| chunk::decompress_with(dec, chunk, None, data);
    scratch::with_len(nbytes, |items| {
        scratch::with_len(nbytes, |others| {
            Ok(read(&dec, items).is_err() || read(&other, others).is_ok() && items == others)
        })
    })
}

/// Appends chunk `nchunk` of `chunks` to `dest`, which is no frame; returns the block size in its header. From a file,
/// the chunk is read to where it stays.
fn append_copy(
    dest: &mut Schunk,
    chunks: &StoredChunks<'_>,
    nchunk: usize,
    budget: &mut Budget,
) -> Result<i32> {
    let blocksize = |chunk: &[u8]| get_i32(chunk, offset::BLOCKSIZE).unwrap_or(0);
    let chunk = chunks.get_into(nchunk, spare::filled)?;
    budget.spend(chunk.bytes())?;
    match chunk {
        ChunkBytes::Held(chunk) => {
            dest.append_chunk(chunk)?;
            Ok(blocksize(chunk))
        }
        ChunkBytes::Made(chunk) => {
            let blocksize = blocksize(&chunk);
            dest.append_owned(chunk).map_err(|rejected| rejected.error)?;
            Ok(blocksize)
        }
    }
}

fn append_batch(dest: &mut Schunk, batch: &mut Vec<ChunkBytes<'_, MallocBuf>>) -> Result<()> {
    let chunks: Vec<&[u8]> = memory::collect(batch.iter().map(ChunkBytes::bytes))?;
    dest.append_chunks(&chunks)?;
    batch.clear();
    Ok(())
}
