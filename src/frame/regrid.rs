//! Chunks removed and added in one change, together with the metalayer that says so: arrays that get another shape.

use super::Frame;
use super::edit::{PLACEHOLDER, Places, surface, whole_chunk};
use super::index_codec::IndexOf;
use super::offsets::Index;
use super::sizes::Sizes;
use super::state::State;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::offsets::{Entry, MAX_CHUNKS};
use crate::memory;
use std::ops::Range;
use std::sync::Arc;

/// A change of which chunks there are, and of the metalayer that says so.
pub(crate) struct Regrid<'a> {
    /// Old numbers of the chunks that are removed, ascending.
    pub(crate) removed: &'a [Range<usize>],
    /// New numbers of the chunks that are added, ascending.
    pub(crate) added: &'a [Range<usize>],
    /// Each added chunk: it holds one special value.
    pub(crate) chunk: &'a [u8],
    /// A metalayer, and what replaces the start of its content.
    pub(crate) layer: Option<(&'a [u8], &'a [u8])>,
    /// How many changes of the metalayer this stands for, besides one.
    pub(crate) more_ticks: u64,
}

impl Regrid<'_> {
    /// Whether the chunk with this old number is removed.
    fn removes(&self, nchunk: usize) -> bool {
        let behind = self.removed.partition_point(|range| range.end <= nchunk);
        self.removed.get(behind).is_some_and(|range| range.contains(&nchunk))
    }

    /// The entry of the index for the added chunks; `sizes` become those with these chunks.
    fn fill(&self, sizes: &mut Sizes) -> Result<i64> {
        let count = self.count();
        if count == 0 {
            return Ok(PLACEHOLDER);
        }
        let (_, info) = whole_chunk(self.chunk)?;
        let fits = info.is_index_only() && info.nbytes == sizes.chunksize && info.nbytes > 0;
        ensure(fits, ErrorKind::ChunkUpdate, "chunks of another kind or size")?;
        let nchunks = sizes.nchunks.checked_add(count).filter(|&n| n <= MAX_CHUNKS);
        sizes.nchunks = nchunks.ok_or(Error::new(ErrorKind::ChunkUpdate, "too many chunks"))?;
        sizes.nbytes += count as u64 * u64::try_from(info.nbytes).unwrap_or(0); // widening
        Ok(Entry::Special(info.special).encode())
    }

    /// Number of added chunks.
    pub(crate) fn count(&self) -> usize {
        self.added.iter().map(ExactSizeIterator::len).sum()
    }

    /// Appends the old number of each chunk of the new grid to `order`, `None` for added ones. The answer is `None` if the
    /// numbers do not fit together.
    pub(crate) fn order(
        &self,
        old: usize,
        new: usize,
        mut order: Vec<Option<usize>>,
    ) -> Option<Vec<Option<usize>>> {
        let mut kept = (0..old).filter(|nchunk| !self.removes(*nchunk)).map(Some);
        for range in self.added {
            order.extend(kept.by_ref().take(range.start.checked_sub(order.len())?));
            if order.len() != range.start || range.end > new {
                return None;
            }
            order.resize(range.end, None);
        }
        order.extend(kept);
        (order.len() == new).then_some(order)
    }
}

impl Frame {
    /// Deletes chunk `nchunk`; returns the number of chunks left.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, `Failure` if the chunk cannot be read, `ChunkUpdate` if the frame cannot
    /// be written, `Lock`.
    pub fn delete(&mut self, nchunk: usize) -> Result<usize> {
        self.delete_all(std::slice::from_ref(&(nchunk..nchunk.saturating_add(1))))
    }

    /// Deletes the chunks with the numbers in `ranges`, which ascend and do not overlap, as one change; returns the number
    /// of chunks left.
    ///
    /// # Errors
    ///
    /// As [`delete`](Self::delete); none of the chunks is deleted then.
    pub fn delete_all(&mut self, ranges: &[Range<usize>]) -> Result<usize> {
        self.regrid(&Regrid { removed: ranges, added: &[], chunk: &[], layer: None, more_ticks: 0 })
    }

    /// Removes and adds chunks and updates a metalayer, as one change; returns the number of chunks.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for numbers out of range, `NotFound` for the metalayer, `Failure` if a chunk cannot be read, those of
    /// a damaged chunk, `ChunkUpdate` if new chunks are not all of the size of the others and of special values, or if the
    /// frame cannot be written. Nothing is changed then.
    pub(crate) fn regrid(&mut self, change: &Regrid<'_>) -> Result<usize> {
        let failed = |e| surface(e, ErrorKind::ChunkUpdate);
        let session = self.begin().map_err(failed)?;
        if !change.removed.is_empty() {
            self.count_holes(&session);
        }
        let old = self.snapshot();
        let mut sizes = old.sizes();
        let mut next = State::clone(&old);
        let mut all_gone = Vec::new();
        let mut places = Places::default();
        let out_of_range = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
        for range in change.removed {
            if range.end > old.index.len() {
                return Err(out_of_range);
            }
            for nchunk in range.clone() {
                let (replaced, gone) = self.old_chunk(&session, &old, &mut places, nchunk)?;
                sizes = sizes.with_deleted(replaced);
                self.forget(&mut next, nchunk, &gone)?;
                all_gone.push(gone);
            }
        }
        if !change.removed.is_empty() || !change.added.is_empty() {
            let fill = change.fill(&mut sizes)?;
            let order = memory::with_capacity(sizes.nchunks)?;
            let order = change.order(old.index.len(), sizes.nchunks, order).ok_or(out_of_range)?;
            let entry = |from: Option<usize>| from.and_then(|from| next.index.raw(from)).unwrap_or(fill);
            let table = memory::collect(order.into_iter().map(entry))?;
            next.index = Index::Table(Arc::new(table));
        }
        if let Some((name, content)) = change.layer {
            next.update_layer(name, content)?;
            next.tick += change.more_ticks;
        }
        drop(old);
        let only_removed = change.added.is_empty() && !change.removed.is_empty();
        let of = if only_removed { IndexOf::Delete } else { IndexOf::Other };
        self.write_chunks(&session, next, sizes, &[], of).map_err(failed)?;
        self.clean_up(&session, &all_gone, 0);
        Ok(self.nchunks())
    }
}
