//! The chunks of a super-chunk at one moment: looked up once, then read as often as needed, by any number of threads.

#![forbid(unsafe_code)]

use super::list::List;
use super::{Backing, Schunk, scratch};
use crate::chunk::source::BlockSource;
use crate::chunk::{Decoding, Threads};
use crate::error::Result;
use crate::format::metalayers::Metalayers;
use crate::frame::sizes::Sizes;
use crate::frame::{ChunkBytes, Frame, FrameChunks, Looked, Wanted, Whole};
use crate::io::Fill;
use std::sync::Arc;

/// How often something is read at the most, if somebody else changes the chunks while it is read.
pub(super) const ATTEMPTS: usize = 10;
/// How often at the most if the changes are to other chunks, as far as can be told.
const STRICT_ATTEMPTS: usize = 3;

/// The chunks of a super-chunk at one moment.
pub(crate) enum StoredChunks<'a> {
    List(&'a List),
    Frame(FrameChunks<'a>),
}

impl Schunk {
    /// The chunks as they are now.
    ///
    /// # Errors
    ///
    /// `FileOpen`, `FileRead`, `Lock`.
    pub(crate) fn chunks(&self) -> Result<StoredChunks<'_>> {
        match &self.backing {
            Backing::List(list) => Ok(StoredChunks::List(list)),
            Backing::Frame(frame) => frame.chunks().map(StoredChunks::Frame),
        }
    }

    /// The chunks as they were when somebody last looked: afterwards, ask whether they
    /// [still are](StoredChunks::are_current).
    ///
    /// # Errors
    ///
    /// As [`chunks`](Self::chunks).
    fn known_chunks(&self, looked: Looked) -> Result<StoredChunks<'_>> {
        match &self.backing {
            Backing::List(list) => Ok(StoredChunks::List(list)),
            Backing::Frame(frame) => frame.known_chunks(looked).map(StoredChunks::Frame),
        }
    }

    /// Calls `read` with the current chunks and the `layout` of what they hold, which `fit` has brought up to date. If
    /// a process that does not lock changes them meanwhile, `read` is called again: its first result, or error, may mix
    /// old and new state.
    ///
    /// `numbers` names the chunks that `read` looks at, for a layout that it accepted; `looked` tells whether the
    /// super-chunk was just [refreshed](Self::refresh).
    ///
    /// # Errors
    ///
    /// Those of looking up the chunks; as the inner result, those of `numbers` or of the last call of `read`.
    #[inline]
    pub(crate) fn read_undisturbed<'s, L, R>(
        &'s self,
        looked: Looked,
        mut layout: L,
        fit: impl Fn(&mut L, &StoredChunks<'s>),
        numbers: impl Fn(&L) -> Result<Vec<usize>>,
        mut read: impl FnMut(&StoredChunks<'s>, &L) -> Result<R>,
    ) -> Result<Result<R>> {
        let shared = self.frame().is_some_and(Frame::is_on_disk);
        for attempt in 1..if shared { ATTEMPTS } else { 1 } {
            let chunks = self.known_chunks(looked)?;
            fit(&mut layout, &chunks);
            let outcome = read(&chunks, &layout);
            let strict = attempt < STRICT_ATTEMPTS || outcome.is_err();
            let mut unknown = None;
            let known = || numbers(&layout).map_err(|e| unknown = Some(e)).unwrap_or_default();
            let current = chunks.are_current((!strict).then(|| std::iter::once_with(known).flatten()));
            if let Some(error) = unknown {
                return Ok(Err(error));
            }
            if current {
                return Ok(outcome);
            }
            drop(chunks);
            // If that fails, so does reading.
            let _ = self.refresh();
        }
        let chunks = self.chunks()?;
        fit(&mut layout, &chunks);
        Ok(read(&chunks, &layout))
    }

    /// As [`read_undisturbed`](Self::read_undisturbed), where what the chunks hold has no layout to be brought up to
    /// date.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub(crate) fn read_without_layout<'s, R>(
        &'s self,
        numbers: impl Fn() -> Result<Vec<usize>>,
        mut read: impl FnMut(&StoredChunks<'s>) -> Result<R>,
    ) -> Result<Result<R>> {
        self.read_undisturbed(Looked::AnyTime, (), |(), _| {}, |()| numbers(), |chunks, ()| read(chunks))
    }

    /// As [`read_undisturbed`](Self::read_undisturbed), for what looks only at chunk `nchunk`.
    #[inline]
    pub(crate) fn read_one<'s, R>(
        &'s self,
        nchunk: usize,
        read: impl FnMut(&StoredChunks<'s>) -> Result<R>,
    ) -> Result<R> {
        self.read_without_layout(|| Ok(vec![nchunk]), read)?
    }

    /// Calls `read` with the complete bytes of chunk `nchunk`.
    pub(crate) fn with_chunk<R>(&self, nchunk: usize, read: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        self.chunks()?.with(nchunk, read)
    }

    /// Calls `read` with chunk `nchunk` in the form that needs the fewest bytes read, and what decodes it.
    pub(crate) fn with_lazy<R>(
        &self,
        nchunk: usize,
        dec: &Decoding<'_>,
        read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
    ) -> Result<R> {
        self.chunks()?.with_lazy(nchunk, dec, read)
    }
}

impl<'a> StoredChunks<'a> {
    /// Whether nobody changed anything; or, with `nchunks`, whether the chunks with these numbers are where they were:
    /// so that what was read of them is what they held.
    fn are_current(&self, nchunks: Option<impl Iterator<Item = usize>>) -> bool {
        match self {
            StoredChunks::List(_) => true,
            StoredChunks::Frame(frame) => frame.are_current(nchunks),
        }
    }

    /// See [`FrameChunks::are_all_kept`].
    pub(super) fn are_all_kept(&self, is_same: impl FnMut(usize) -> bool) -> bool {
        match self {
            StoredChunks::List(_) => true,
            StoredChunks::Frame(frame) => frame.are_all_kept(is_same),
        }
    }

    /// How large they are.
    pub(crate) fn sizes(&self) -> Sizes {
        match self {
            StoredChunks::List(list) => list.sizes,
            StoredChunks::Frame(frame) => frame.sizes(),
        }
    }

    /// The change tick of the frame that they are in, if they are in one.
    pub(crate) fn tick(&self) -> Option<u64> {
        match self {
            StoredChunks::List(_) => None,
            StoredChunks::Frame(frame) => Some(frame.tick()),
        }
    }

    /// The fixed metalayers of the super-chunk.
    pub(crate) fn metalayers(&self) -> &Arc<Metalayers> {
        match self {
            StoredChunks::List(list) => &list.metalayers,
            StoredChunks::Frame(frame) => frame.metalayers(),
        }
    }

    /// Length of the contiguous frame that they are in, in bytes, if they are in one.
    pub(crate) fn contiguous_len(&self) -> Option<u64> {
        match self {
            StoredChunks::List(_) => None,
            StoredChunks::Frame(frame) => frame.contiguous_len(),
        }
    }

    /// See [`Schunk::with_chunk`].
    pub(crate) fn with<R>(&self, nchunk: usize, read: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let in_memory = match self {
            StoredChunks::List(list) => Some(list.chunk(nchunk)?),
            StoredChunks::Frame(frame) => frame.in_memory(nchunk)?,
        };
        match in_memory {
            Some(bytes) => read(bytes),
            None => scratch::with(|buffer| {
                let held = self.get(nchunk, buffer)?;
                read(held.unwrap_or(buffer))
            }),
        }
    }

    /// The complete bytes of chunk `nchunk`, or `None` if they had to be read: then they are in `buffer`.
    ///
    /// # Errors
    ///
    /// As [`Schunk::with_chunk`].
    pub(crate) fn get(&self, nchunk: usize, buffer: &mut Vec<u8>) -> Result<Option<&'a [u8]>> {
        match self {
            StoredChunks::List(list) => list.chunk(nchunk).map(Some),
            StoredChunks::Frame(frame) => frame.get(nchunk, buffer),
        }
    }

    /// See [`Schunk::chunk_into`].
    pub(crate) fn get_into<B>(
        &self,
        nchunk: usize,
        make: impl FnOnce(usize, &Fill<'_>) -> Result<B>,
    ) -> Result<ChunkBytes<'a, B>> {
        match self {
            StoredChunks::List(list) => list.chunk(nchunk).map(ChunkBytes::Held),
            StoredChunks::Frame(frame) => frame.get_into(nchunk, make),
        }
    }

    /// See [`Schunk::with_lazy`].
    pub(crate) fn with_lazy<R>(
        &self,
        nchunk: usize,
        dec: &Decoding<'_>,
        read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
    ) -> Result<R> {
        self.with_source(nchunk, Whole::IfSmall, dec, read)
    }

    /// Calls `read` with chunk `nchunk` in the form that is best to decode what is `wanted` of it, and what decodes it.
    pub(crate) fn with_part<R>(
        &self,
        nchunk: usize,
        wanted: Wanted,
        dec: &Decoding<'_>,
        read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
    ) -> Result<R> {
        self.with_source(nchunk, Whole::IfCheaper(wanted), dec, read)
    }

    /// Calls `read` with chunk `nchunk` in the form that is best to decode all of it from its start to its end, and
    /// what decodes it.
    pub(crate) fn with_all_bytes<R>(
        &self,
        nchunk: usize,
        dec: &Decoding<'_>,
        read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
    ) -> Result<R> {
        self.with_source(nchunk, Whole::IfBlocksAreSmallAndCoded, dec, read)
    }

    /// Calls `read` with chunk `nchunk` in the form that is best to decode all of its blocks one by one, and what
    /// decodes it.
    pub(crate) fn with_all_blocks<R>(
        &self,
        nchunk: usize,
        dec: &Decoding<'_>,
        read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
    ) -> Result<R> {
        self.with_source(nchunk, Whole::IfBlocksAreSmall, dec, read)
    }

    /// Calls `read` with a chunk or its lazy form, and for that with the source of its blocks. `whole` tells which
    /// chunks are wanted in one piece.
    fn with_source<R>(
        &self,
        nchunk: usize,
        whole: Whole,
        dec: &Decoding<'_>,
        read: impl FnOnce(&Decoding<'_>, &[u8]) -> Result<R>,
    ) -> Result<R> {
        match self {
            StoredChunks::List(list) => read(dec, list.chunk(nchunk)?),
            StoredChunks::Frame(frame) => {
                if let Some(bytes) = frame.in_memory(nchunk)? {
                    return read(dec, bytes);
                }
                scratch::with(|buffer| {
                    let (bytes, source) = frame.get_lazy(nchunk, whole, buffer)?;
                    let source = source.as_ref().map(|source| source as &dyn BlockSource);
                    read(&Decoding { source, ..*dec }, bytes)
                })
            }
        }
    }
}

/// Runs `read` for each of `parts`, on the threads of `dec` if they are not more than the parts: each part is then read
/// by one thread. Otherwise, and with a postfilter, the parts come one after the other, and `read` may use the threads
/// for each.
///
/// # Errors
///
/// One of the errors of `read`; parts that nobody had begun by then are skipped.
pub(super) fn for_each<P: Sync>(
    parts: &[P],
    dec: &Decoding<'_>,
    read: impl Fn(&P, &Decoding<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let threads = dec.threads;
    if parts.len() < threads.nthreads.max(2) || dec.postfilter.is_some() {
        return parts.iter().try_for_each(|part| read(part, dec));
    }
    let alone = Decoding { threads: Threads::default(), ..*dec };
    threads.for_each(parts.len(), &|_, n| read(&parts[n], &alone))
}
