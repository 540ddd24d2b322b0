//! Changes of the chunks of a super-chunk. Each is all or nothing, in memory too.

#![forbid(unsafe_code)]

use super::patch::Patch;
use super::{Backing, Schunk, Writing, scratch};
use crate::chunk::{self, Source, SpecialValue};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::BasicHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, special};
use crate::frame::sizes::whole_chunk;
use crate::frame::{New, Regrid, check_permutation};
use crate::io::memory::MallocBuf;

/// A chunk whose memory was offered and not taken, with the reason.
#[derive(Debug)]
pub struct Rejected {
    /// Why.
    pub error: Error,
    /// The chunk.
    pub chunk: MallocBuf,
}

/// A new version of a chunk, ready to be stored.
pub(crate) enum Update {
    /// All of it.
    Whole(MallocBuf),
    /// New streams for some blocks.
    Blocks(Patch),
}

impl Update {
    /// Size of the new chunk in bytes: a frame stores all of it, even if only blocks are new.
    pub(crate) fn cbytes(&self) -> usize {
        match self {
            Update::Whole(chunk) => chunk.len(),
            Update::Blocks(patch) => patch.cbytes(),
        }
    }

    /// What a frame is given; `buffer` is memory for a chunk.
    fn as_new<'a>(&'a self, buffer: &'a mut Vec<u8>) -> New<'a> {
        match self {
            Update::Whole(chunk) => New::Bytes(chunk),
            Update::Blocks(patch) => New::Derived(patch, buffer),
        }
    }
}

impl Schunk {
    /// Compresses `src` and appends it as one chunk; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// Those of compressing and of [`append_chunk`](Self::append_chunk).
    pub fn append_buffer(&mut self, src: Source<'_>, writing: &Writing<'_>) -> Result<usize> {
        writing.visit(self.nchunks());
        self.compress_and(src, writing, |schunk, chunk| schunk.append_chunk(chunk))
    }

    /// Compresses `src` and passes the chunk to `store`.
    pub(crate) fn compress_and<R>(
        &mut self,
        src: Source<'_>,
        writing: &Writing<'_>,
        store: impl FnOnce(&mut Schunk, &[u8]) -> Result<R>,
    ) -> Result<R> {
        scratch::with_len(chunk::room_for(src.nbytes()), |dest| {
            let cbytes = writing.compress(src, dest)?;
            store(self, &dest[..cbytes])
        })
    }

    /// Appends a copy of `chunk`; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// Those of a damaged chunk, `ChunkAppend`, `MemoryAlloc`, `Lock`.
    pub fn append_chunk(&mut self, chunk: &[u8]) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.append(chunk),
            Backing::List(list) => list.insert_copy(list.sizes.nchunks, chunk, ErrorKind::ChunkAppend),
        }
    }

    /// Appends copies of `chunks`; returns the number of chunks. A frame takes them all or none.
    ///
    /// # Errors
    ///
    /// As [`append_chunk`](Self::append_chunk).
    pub fn append_chunks(&mut self, chunks: &[&[u8]]) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) if !chunks.is_empty() => frame.append_all(chunks),
            Backing::Frame(_) => Ok(self.nchunks()),
            Backing::List(_) => {
                for chunk in chunks {
                    self.append_chunk(chunk)?;
                }
                Ok(self.nchunks())
            }
        }
    }

    /// Inserts copies of `chunks` before chunk `nchunk`; returns the number of chunks. A frame takes them all or none.
    ///
    /// # Errors
    ///
    /// As [`insert_chunk`](Self::insert_chunk).
    pub fn insert_chunks(&mut self, nchunk: usize, chunks: &[&[u8]]) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.insert_all(nchunk, chunks),
            Backing::List(list) => {
                for (i, chunk) in chunks.iter().enumerate() {
                    list.insert_copy(nchunk + i, chunk, ErrorKind::ChunkInsert)?;
                }
                Ok(list.sizes.nchunks)
            }
        }
    }

    /// Inserts a copy of `chunk` before chunk `nchunk`; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, those of a damaged chunk, `ChunkInsert`, `MemoryAlloc`, `Lock`.
    pub fn insert_chunk(&mut self, nchunk: usize, chunk: &[u8]) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.insert(nchunk, chunk),
            Backing::List(list) => list.insert_copy(nchunk, chunk, ErrorKind::ChunkInsert),
        }
    }

    /// Appends `chunk`, whose memory is taken over; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`append_chunk`](Self::append_chunk); the chunk comes back then.
    pub fn append_owned(&mut self, chunk: MallocBuf) -> std::result::Result<usize, Rejected> {
        let appended = match &mut self.backing {
            Backing::Frame(frame) => frame.append(&chunk),
            Backing::List(list) => {
                return list.insert_owned(list.sizes.nchunks, chunk, ErrorKind::ChunkAppend);
            }
        };
        appended.map_err(|error| Rejected { error, chunk })
    }

    /// Inserts `chunk`, whose memory is taken over, before chunk `nchunk`; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`insert_chunk`](Self::insert_chunk); the chunk comes back then.
    pub fn insert_owned(&mut self, nchunk: usize, chunk: MallocBuf) -> std::result::Result<usize, Rejected> {
        let inserted = match &mut self.backing {
            Backing::Frame(frame) => frame.insert(nchunk, &chunk),
            Backing::List(list) => return list.insert_owned(nchunk, chunk, ErrorKind::ChunkInsert),
        };
        inserted.map_err(|error| Rejected { error, chunk })
    }

    /// Replaces chunk `nchunk` by a copy of `chunk`; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, those of a damaged chunk, `Failure` if the old chunk cannot be read,
    /// `ChunkUpdate`, `MemoryAlloc`, `Lock`.
    pub fn update_chunk(&mut self, nchunk: usize, chunk: &[u8]) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.update(nchunk, chunk),
            Backing::List(list) => {
                let (bytes, info) = whole_chunk(chunk)?;
                let sizes = list.sizes_with_updated(nchunk, &info)?;
                list.replace_by_copy(nchunk, bytes, sizes)?;
                Ok(sizes.nchunks)
            }
        }
    }

    /// Replaces chunk `nchunk` by `chunk`, whose memory is taken over; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// As [`update_chunk`](Self::update_chunk); the chunk comes back then.
    pub fn update_owned(&mut self, nchunk: usize, chunk: MallocBuf) -> std::result::Result<usize, Rejected> {
        let list = match &mut self.backing {
            Backing::Frame(frame) => {
                return frame.update(nchunk, &chunk).map_err(|error| Rejected { error, chunk });
            }
            Backing::List(list) => list,
        };
        let fits =
            whole_chunk(&chunk).and_then(|(_, info)| Ok((list.sizes_with_updated(nchunk, &info)?, info)));
        match fits {
            Ok((sizes, info)) => {
                list.replace(nchunk, shrunk(chunk, info.cbytes), sizes);
                Ok(sizes.nchunks)
            }
            Err(error) => Err(Rejected { error, chunk }),
        }
    }

    /// Replaces chunks, each of them once; all of them or none.
    ///
    /// # Errors
    ///
    /// As [`update_chunk`](Self::update_chunk).
    pub(crate) fn update_chunks(&mut self, updates: Vec<(usize, Update)>) -> Result<()> {
        self.regrid(&Regrid::default(), updates)
    }

    /// Removes and adds chunks, replaces those with the new numbers in `updates`, each of them once, and updates a
    /// metalayer; all of it or nothing.
    ///
    /// # Errors
    ///
    /// As [`Frame::regrid`](crate::frame::Frame::regrid), and `MemoryAlloc`.
    pub(crate) fn regrid(&mut self, change: &Regrid<'_>, updates: Vec<(usize, Update)>) -> Result<()> {
        match &mut self.backing {
            Backing::Frame(frame) => scratch::with_many(updates.len(), |buffers| {
                let updates = updates.iter().zip(buffers);
                frame.regrid(change, updates.map(|((n, update), buffer)| (*n, update.as_new(buffer))))
            })
            .map(drop),
            Backing::List(list) => list.regrid(change, updates),
        }
    }

    /// Deletes chunk `nchunk`; returns the number of chunks left.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, `Failure` if the chunk cannot be read, `ChunkUpdate`, `Lock`.
    pub fn delete_chunk(&mut self, nchunk: usize) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.delete(nchunk),
            Backing::List(list) => {
                let nbytes = list.chunk_nbytes(nchunk)?;
                let sizes = list.sizes.with_deleted(nbytes);
                list.remove(nchunk, sizes);
                Ok(sizes.nchunks)
            }
        }
    }

    /// Reorders the chunks: chunk `i` becomes what chunk `order[i]` was.
    ///
    /// # Errors
    ///
    /// `Data` unless `order` is a permutation of all chunk numbers (a frame must have chunks), else those of writing.
    pub fn reorder(&mut self, order: &[usize]) -> Result<()> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.reorder(order),
            Backing::List(list) => {
                check_permutation(order, list.sizes.nchunks)?;
                list.reorder(order)
            }
        }
    }

    /// Fills an empty super-chunk with `nitems` items of the special value `kind`, in chunks of `chunksize` bytes;
    /// returns the number of chunks. Chunks without a frame are made with `params`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for sizes out of range, `FrameSpecial` if there are data, or with a frame if the value is none
    /// that can fill it; `SchunkSpecial` for that without a frame, and for too many chunks.
    pub fn fill_special(
        &mut self,
        nitems: u64,
        kind: u8,
        chunksize: i32,
        params: &chunk::CParams,
    ) -> Result<usize> {
        if nitems == 0 {
            return Ok(0);
        }
        let typesize = self.typesize();
        let size = usize::try_from(chunksize).ok().filter(|&size| size > 0);
        let size = size.ok_or(Error::new(ErrorKind::InvalidParam, "chunk size out of range"))?;
        let is_empty = self.nbytes() == 0 && self.nchunks() == 0;
        ensure(is_empty, ErrorKind::FrameSpecial, "super-chunk is not empty")?;
        let items = (size / typesize) as u64; // widening
        require(items > 0, "chunk smaller than an item")?;
        let too_many = Error::new(ErrorKind::SchunkSpecial, "too many chunks");
        let nbytes = nitems.checked_mul(typesize as u64).filter(|&n| i64::try_from(n).is_ok()); // widening
        let nbytes = nbytes.filter(|_| i32::try_from(nitems / items).is_ok()).ok_or(too_many)?;
        let code = if self.frame().is_some() { ErrorKind::FrameSpecial } else { ErrorKind::SchunkSpecial };
        let value = filling_value(kind).ok_or(Error::new(code, "no special value to fill with"))?;
        ensure(size % typesize == 0, code, "not a whole number of items")?;
        let params = chunk::CParams { use_dict: false, typesize, ..params.clone() };
        let mut full = [0; EXTENDED_HEADER_LENGTH];
        let made = chunk::special_chunk(&params, size, value, &mut full);
        made.map_err(|e| Error::new(code, e.what()))?;
        match &mut self.backing {
            Backing::Frame(frame) => {
                let blocksize = BasicHeader::read(&full)?.blocksize;
                let filled = frame.fill_special(kind, nbytes, chunksize, blocksize)?;
                self.params.blocksize = blocksize;
                Ok(filled)
            }
            Backing::List(_) => self.fill_list(nitems, items, &full, value, &params),
        }
    }

    /// As [`fill_special`](Self::fill_special) without a frame, in chunks of `items` items, of which `full` is one.
    fn fill_list(
        &mut self,
        nitems: u64,
        items: u64,
        full: &[u8],
        value: SpecialValue<'_>,
        params: &chunk::CParams,
    ) -> Result<usize> {
        let fill = |schunk: &mut Schunk| {
            for _ in 0..nitems / items {
                schunk.append_chunk(full)?;
            }
            let rest = usize::try_from(nitems % items).expect("less than a chunk") * params.typesize;
            if rest > 0 {
                let mut last = [0; EXTENDED_HEADER_LENGTH];
                chunk::special_chunk(params, rest, value, &mut last)?;
                schunk.append_chunk(&last)?;
            }
            Ok(schunk.nchunks())
        };
        let before = self.chunksize();
        let filled = fill(self);
        if filled.is_err() {
            while self.nchunks() > 0 {
                self.delete_chunk(self.nchunks() - 1)?;
            }
            self.preset_chunksize(before)?;
        }
        filled.map_err(|e: Error| Error::new(ErrorKind::SchunkSpecial, e.what()))
    }
}

/// The special value that fills super-chunks and has this number.
fn filling_value(kind: u8) -> Option<SpecialValue<'static>> {
    match kind {
        special::ZERO => Some(SpecialValue::Zeros),
        special::NAN => Some(SpecialValue::Nans),
        special::UNINIT => Some(SpecialValue::Uninit),
        _ => None,
    }
}

/// `chunk` without what follows its `cbytes` bytes.
pub(super) fn shrunk(mut chunk: MallocBuf, cbytes: usize) -> MallocBuf {
    chunk.truncate(cbytes);
    chunk.shrink();
    chunk
}
