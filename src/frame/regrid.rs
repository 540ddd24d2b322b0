//! Chunks removed, added and replaced in one change, together with the metalayer that says so: arrays that get another
//! shape.

#![forbid(unsafe_code)]

use super::admit::admit;
use super::edit::{Gone, New, PLACEHOLDER, Places, convert_specials, place_chunk, surface};
use super::index_codec::IndexOf;
use super::offsets::Index;
use super::session::Session;
use super::sizes::{ChunkInfo, Sizes, whole_chunk};
use super::state::State;
use super::{Frame, Whole};
use crate::chunk::source::BlockSource;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::offsets::{Entry, MAX_CHUNKS};
use crate::memory;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A change of which chunks there are, and of the metalayer that says so; by default there is none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Regrid<'a> {
    /// Old numbers of the chunks that are removed, ascending.
    pub(crate) removed: &'a [Range<usize>],
    /// New numbers of the chunks that are added, ascending.
    pub(crate) added: &'a [Range<usize>],
    /// Each added chunk, which holds one special value. Others may take its place in the same change.
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
        ensure(fits, ErrorKind::ChunkUpdate, "added chunks are not special ones of the chunk size")?;
        let nchunks = sizes.nchunks.checked_add(count).filter(|&n| n <= MAX_CHUNKS);
        sizes.nchunks = nchunks.ok_or(Error::new(ErrorKind::ChunkUpdate, "too many chunks"))?;
        sizes.nbytes += count as u64 * u64::try_from(info.nbytes).unwrap_or(0); // widening
        Ok(Entry::Special(info.special).encode())
    }

    /// Number of added chunks.
    pub(crate) fn count(&self) -> usize {
        self.added.iter().map(ExactSizeIterator::len).sum()
    }

    /// Whether there are chunks that get another number.
    pub(crate) fn moves_chunks(&self) -> bool {
        !self.removed.is_empty() || !self.added.is_empty()
    }

    /// How many of `nchunks` chunks stay, if they are the first ones and keep their numbers, so that the others are
    /// removed and added behind them.
    pub(crate) fn kept_in_place(&self, nchunks: usize) -> Option<usize> {
        let kept = match self.removed {
            [] => nchunks,
            [range] if range.end == nchunks => range.start.min(nchunks),
            _ => return None,
        };
        let follows = match self.added {
            [] => true,
            [range] => range.start == kept,
            _ => false,
        };
        follows.then_some(kept)
    }

    /// The old number of each of the `new` chunks, where there were `old` ones; `None` for added ones.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the numbers do not fit together, `MemoryAlloc`.
    pub(crate) fn order(&self, old: usize, new: usize) -> Result<Vec<Option<usize>>> {
        let out_of_range = "chunk number out of range";
        let mut order = memory::with_capacity(new)?;
        let mut kept = (0..old).filter(|nchunk| !self.removes(*nchunk)).map(Some);
        for range in self.added {
            let before = range.start.checked_sub(order.len());
            let before = before.ok_or(Error::new(ErrorKind::InvalidParam, out_of_range))?;
            order.extend(kept.by_ref().take(before));
            require(order.len() == range.start && range.end <= new, out_of_range)?;
            order.resize(range.end, None);
        }
        order.extend(kept);
        require(order.len() == new, out_of_range)?;
        Ok(order)
    }
}

impl Frame {
    /// Deletes chunk `nchunk`; returns the number of chunks left.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number out of range, `Failure` if the chunk cannot be read, `ChunkUpdate` if the frame
    /// cannot be written, `Lock`.
    pub fn delete(&mut self, nchunk: usize) -> Result<usize> {
        self.delete_all(std::slice::from_ref(&(nchunk..nchunk.saturating_add(1))))
    }

    /// Deletes the chunks with the numbers in `ranges`, which ascend and do not overlap, as one change; returns the
    /// number of chunks left.
    ///
    /// # Errors
    ///
    /// As [`delete`](Self::delete); none of the chunks is deleted then.
    pub fn delete_all(&mut self, ranges: &[Range<usize>]) -> Result<usize> {
        self.regrid(&Regrid { removed: ranges, ..Regrid::default() }, [])
    }

    /// Removes, adds and replaces chunks and updates a metalayer, as one change; returns the number of chunks.
    ///
    /// `chunks` gives new numbers, each of them once, and what the chunks with these numbers become: old ones that
    /// stay, or added ones, which have no old version to be derived from.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for numbers out of range, `NotFound` for the metalayer, `Failure` if a chunk cannot be read,
    /// those of a damaged chunk and of deriving one, `ChunkUpdate` if the added chunks are not all of the size of the
    /// others and of special values, if a chunk does not fit in, or if the frame cannot be written. Nothing is changed
    /// then.
    pub(crate) fn regrid<'a>(
        &mut self,
        change: &Regrid<'_>,
        chunks: impl IntoIterator<Item = (usize, New<'a>)>,
    ) -> Result<usize> {
        let failed = |e| surface(e, ErrorKind::ChunkUpdate);
        let session = self.begin().map_err(failed)?;
        let mut chunks = chunks.into_iter().peekable();
        if !change.removed.is_empty() || chunks.peek().is_some() {
            self.count_holes(&session);
        }
        let (draft, replaced) = self.draft(&session, change, chunks)?;
        let Draft { old, mut next, sizes, gone, .. } = draft;
        if let Some((name, content)) = change.layer {
            next.update_layer(name, content)?;
            next.tick += change.more_ticks;
        }
        let mut added = memory::with_capacity(replaced.len())?;
        for Replaced { nchunk, chunk, info } in &replaced {
            added.extend(place_chunk(&mut next, sizes, *nchunk, chunk, info).map_err(failed)?);
        }
        convert_specials(&old, &mut next, sizes, &mut added, |i| i).map_err(failed)?;
        drop(old);
        let only_removed = !change.removed.is_empty() && change.added.is_empty() && replaced.is_empty();
        let of = if only_removed { IndexOf::Delete } else { IndexOf::Other };
        let ahead = self.write_chunks(&session, next, sizes, &added, of).map_err(failed)?;
        self.clean_up(&session, &gone, added.len(), &ahead);
        Ok(self.nchunks())
    }

    /// What `change` and `chunks` make of the numbers, entries and sizes of the chunks, and the new versions of chunks.
    fn draft<'a>(
        &self,
        session: &Session,
        change: &Regrid<'_>,
        chunks: impl Iterator<Item = (usize, New<'a>)>,
    ) -> Result<(Draft, Vec<Replaced<'a>>)> {
        let mut draft = Draft::of(self.snapshot());
        // The sizes need not tell other handles of it.
        draft.next.replaces = change.count() > 0 && !change.removed.is_empty();
        self.remove(session, &mut draft, change.removed)?;
        let fill = change.fill(&mut draft.sizes)?;
        let nchunks = draft.old.index.len();
        let only_adds_behind = change.kept_in_place(nchunks) == Some(nchunks);
        let order = || change.order(nchunks, draft.sizes.nchunks);
        let order = (!only_adds_behind).then(order).transpose()?;
        let mut replaced = Vec::new();
        for (nchunk, new) in chunks {
            let chunk = self.replace(session, &mut draft, (nchunk, order.as_deref()), new)?;
            memory::push(&mut replaced, chunk)?;
        }
        if change.moves_chunks() {
            let fixed = draft.sizes.chunksize == draft.old.sizes().chunksize;
            ensure(fixed, ErrorKind::ChunkUpdate, "chunks of different sizes cannot be renumbered")?;
        }
        match &order {
            Some(order) => rearrange(&mut draft.next.index, order, fill)?,
            None if change.count() > 0 => draft.next.index.insert(nchunks, change.count(), fill)?,
            None => (),
        }
        if !draft.sums_are_known() {
            draft.sizes.nbytes = self.added_up(session, &draft.old, &draft.next.index, &replaced)?;
        }
        Ok((draft, replaced))
    }

    /// Notes that the chunks in `ranges` of the old state are removed.
    fn remove(&self, session: &Session, draft: &mut Draft, ranges: &[Range<usize>]) -> Result<()> {
        let mut end = 0;
        for range in ranges {
            let in_range = end <= range.start && range.end <= draft.old.index.len();
            require(in_range, "chunk numbers out of range, or not ascending")?;
            end = range.end;
            for nchunk in range.clone() {
                let nbytes = self.give_up(session, draft, nchunk)?;
                draft.sizes = draft.sizes.with_deleted(nbytes);
            }
        }
        Ok(())
    }

    /// Notes that chunk `nchunk` of the old state goes; returns its uncompressed size.
    fn give_up(&self, session: &Session, draft: &mut Draft, nchunk: usize) -> Result<u64> {
        let (nbytes, gone) = self.old_chunk(session, &draft.old, &mut draft.places, nchunk)?;
        gone.note_in(&mut draft.next, nchunk)?;
        memory::push(&mut draft.gone, gone)?;
        draft.given_up = draft.given_up.saturating_add(nbytes);
        Ok(nbytes)
    }

    /// The uncompressed sizes of the chunks in `index` and of the `replaced` ones, of several sizes, added up. What is
    /// damaged does not count, but a frame with chunks has at least one byte: else nobody looks for its index.
    fn added_up(
        &self,
        session: &Session,
        old: &Arc<State>,
        index: &Index,
        replaced: &[Replaced<'_>],
    ) -> Result<u64> {
        let chunks = self.chunks_in(session, old);
        let mut numbers: Vec<usize> = memory::collect(replaced.iter().map(|chunk| chunk.nchunk))?;
        numbers.sort_unstable();
        let kept = index.iter().enumerate().filter(|(nchunk, _)| numbers.binary_search(nchunk).is_err());
        let infos = kept.map(|(_, raw)| match Entry::decode(raw) {
            Ok(Entry::Stored(position)) => chunks.info_at(position).ok(),
            _ => None,
        });
        let all = infos.chain(replaced.iter().map(|chunk| Some(chunk.info)));
        Ok(all.fold(0, |sum: u64, info| match info {
            Some(info) => sum.saturating_add(u64::try_from(info.nbytes).unwrap_or(0)),
            None => sum.max(1),
        }))
    }

    /// Notes that `new` takes the place of chunk `nchunk`, which has the number in `order` in the old state, or the same
    /// if there is no order.
    fn replace<'a>(
        &self,
        session: &Session,
        draft: &mut Draft,
        (nchunk, order): (usize, Option<&[Option<usize>]>),
        new: New<'a>,
    ) -> Result<Replaced<'a>> {
        let in_range = nchunk < draft.sizes.nchunks;
        require(in_range, "chunk number out of range")?;
        let nchunks = draft.old.index.len();
        let before = order.map_or((nchunk < nchunks).then_some(nchunk), |order| order[nchunk]);
        let chunk = match (new, before) {
            (New::Bytes(bytes), _) => bytes,
            (New::Derived(make, new), Some(before)) => {
                let (chunks, mut front) = (self.chunks_in(session, &draft.old), Vec::new());
                let (bytes, source) = chunks.get_lazy(before, Whole::IfSmall, &mut front)?;
                make.derive(bytes, source.as_ref().map(|source| source as &dyn BlockSource), new)?;
                new
            }
            (New::Derived(..), None) => {
                return Err(Error::new(ErrorKind::InvalidParam, "no chunk to derive one from"));
            }
        };
        let (chunk, info) = admit(chunk, nchunk, ErrorKind::ChunkUpdate)?;
        let old_nbytes = match before {
            Some(before) => self.give_up(session, draft, before)?,
            None => u64::try_from(draft.sizes.chunksize).unwrap_or(0),
        };
        let moves_chunks = order.is_some() || draft.sizes.nchunks != nchunks;
        // Sizes tell other handles of a chunk that is stored behind the others, but not of a special value.
        let is_silent = info.is_index_only() || moves_chunks && draft.next.header.sparse;
        draft.next.replaces |= before.is_some() && is_silent;
        draft.sizes = draft.sizes.with_updated(nchunk, old_nbytes, &info)?.recordable_with(&info);
        Ok(Replaced { nchunk, chunk, info })
    }
}

/// Moves the entries of `index` to where `order`, as [`Regrid::order`] gives it, has them; those of added chunks become
/// `fill`.
fn rearrange(index: &mut Index, order: &[Option<usize>], fill: i64) -> Result<()> {
    let before = index.entries()?;
    let entry = |from: &Option<usize>| from.and_then(|from| before.get(from).copied()).unwrap_or(fill);
    index.replace(memory::collect(order.iter().map(entry))?)
}

/// The new version of a chunk.
struct Replaced<'a> {
    /// Its number after the change.
    nchunk: usize,
    chunk: Cow<'a, [u8]>,
    /// What its header says.
    info: ChunkInfo,
}

/// A change in the making.
struct Draft {
    old: Arc<State>,
    /// The state to be, as yet with the old numbers of chunks.
    next: State,
    /// Sizes to be.
    sizes: Sizes,
    /// What is no longer needed.
    gone: Vec<Gone>,
    places: Places,
    /// What the sizes of the chunks that go add up to.
    given_up: u64,
}

impl Draft {
    fn of(old: Arc<State>) -> Draft {
        let (next, sizes) = (State::clone(&old), old.sizes());
        Draft { old, next, sizes, gone: Vec::new(), places: Places::default(), given_up: 0 }
    }

    /// Whether the sum of the sizes follows from the one before: chunks of several sizes tell their own, and if one
    /// that goes is damaged, nothing may be left for those that stay.
    fn sums_are_known(&self) -> bool {
        let all_gone = self.sizes.nchunks == 0;
        let left = self.given_up <= self.old.header.nbytes && self.sizes.nbytes > 0;
        self.sizes.chunksize != 0 || all_gone || left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_come_and_go_at_the_end_leave_the_others_in_place() {
        let kept = |removed: &[Range<usize>], added: &[Range<usize>]| {
            Regrid { removed, added, ..Regrid::default() }.kept_in_place(10)
        };
        let one = |start, end| [Range { start, end }];
        assert_eq!(kept(&[], &[]), Some(10));
        assert_eq!(kept(&[], &one(10, 12)), Some(10));
        assert_eq!(kept(&one(7, 10), &[]), Some(7));
        assert_eq!(kept(&one(7, 10), &one(7, 12)), Some(7));
        assert_eq!(kept(&one(0, 10), &one(0, 1)), Some(0));
        for (removed, added) in [(one(6, 9), one(9, 9)), (one(7, 10), one(6, 8)), (one(9, 11), one(9, 9))] {
            assert_eq!(kept(&removed, &added), None, "{removed:?}, {added:?}");
        }
        assert_eq!(kept(&[], &one(9, 12)), None);
        assert_eq!(kept(&[], &[10..11, 12..13]), None);
        // The general way comes to the same.
        let removed = one(7, 10);
        let order =
            Regrid { removed: &removed, added: &one(7, 9), ..Regrid::default() }.order(10, 9).unwrap();
        assert_eq!(order, [(0..7).map(Some).collect(), vec![None; 2]].concat());
    }
}
