//! Places in the payload area that nothing refers to, to be used again.
//!
//! A place becomes free when the change that gave it up is complete, and one change later it is given out: whoever
//! reads without locking, and found the place just before it was given up, is most likely done with it then. The places
//! of the last chunks need no rest, as readers look out for others there (see
//! [`reused_from`](super::ahead::reused_from)): in a frame of few chunks they are given out by the next change, and
//! their own new versions take them at once, as the module [`ahead`](super::ahead) tells.

#![forbid(unsafe_code)]

use std::ops::Range;

use crate::memory;

/// In the places of this many of the last chunks, readers without locks expect other chunks at any time.
pub(crate) const MOST_AT_ONCE: usize = 64;

/// Most places that are remembered. What is forgotten is found when holes are closed.
const MOST: usize = 512;

/// A part of the payload area: its position there and its length, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    pub(crate) position: u64,
    pub(crate) len: u64,
}

impl Extent {
    pub(crate) fn end(self) -> u64 {
        self.position + self.len
    }
}

/// Whether any of `places`, which ascend, reaches into the next one.
pub(crate) fn overlap(places: &[Extent]) -> bool {
    places.windows(2).any(|pair| pair[0].end() > pair[1].position)
}

/// The free places of a contiguous frame, as far as they are known, and as there is memory for.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    /// Whether no two chunks overlap; `None` as long as nobody has looked. Unless it is `Some(true)`, no place is
    /// given out.
    disjoint: Option<bool>,
    /// To be given out: ascending, with something in between.
    free: Vec<Extent>,
    /// Given up by the change before this one.
    resting: Vec<Extent>,
    /// Given up by this change.
    fresh: Vec<Extent>,
    /// How many bytes were dead when it was last tried to fill or to close holes, in vain.
    tried_at: Option<u64>,
}

impl Clone for Holes {
    /// Where there is no memory, places are forgotten.
    fn clone(&self) -> Holes {
        let [free, resting, fresh] = [&self.free, &self.resting, &self.fresh]
            .map(|places| memory::copy_of(places).unwrap_or_default());
        Holes { disjoint: self.disjoint, free, resting, fresh, tried_at: self.tried_at }
    }
}

impl Holes {
    /// Those of a frame whose chunks do not overlap; no free place is known.
    pub(crate) fn of_disjoint_chunks() -> Holes {
        Holes { disjoint: Some(true), ..Holes::default() }
    }

    /// Those of a frame whose chunks overlap: there is no telling what is free.
    pub(crate) fn of_overlapping_chunks() -> Holes {
        Holes { disjoint: Some(false), ..Holes::default() }
    }

    /// Those between `chunks`, which ascend, up to `end`; nothing if chunks overlap.
    pub(crate) fn between(chunks: &[Extent], end: u64) -> Holes {
        if overlap(chunks) {
            return Holes::of_overlapping_chunks();
        }
        let mut holes = Holes::of_disjoint_chunks();
        let mut at = 0;
        for chunk in chunks.iter().chain([&Extent { position: end, len: 0 }]) {
            if chunk.position > at {
                holes.put(Extent { position: at, len: chunk.position - at });
            }
            at = chunk.end();
        }
        holes
    }

    /// Whether it is known if chunks overlap.
    pub(crate) fn are_known(&self) -> bool {
        self.disjoint.is_some()
    }

    /// Whether it is known that chunks overlap.
    pub(crate) fn are_of_overlapping_chunks(&self) -> bool {
        self.disjoint == Some(false)
    }

    /// What the change before this one gave up and has to rest; `None` unless it is known that chunks do not overlap.
    pub(crate) fn resting(&self) -> Option<&[Extent]> {
        (self.disjoint == Some(true)).then_some(&self.resting)
    }

    /// How many bytes were dead when it was last tried to fill or to close holes, if that was in vain.
    pub(crate) fn tried_at(&self) -> Option<u64> {
        self.tried_at
    }

    /// Notes that chunks did not fit into holes when that many bytes were dead, or that they did (`None`).
    pub(crate) fn note_tried(&mut self, dead: Option<u64>) {
        self.tried_at = dead;
    }

    /// Frees the resting places of a small frame at once: if its `nchunks` chunks and those that the last change gave up
    /// are together at most [`MOST_AT_ONCE`], all of them count as last chunks, whose places readers distrust anyway.
    pub(crate) fn wake_if_few(&mut self, nchunks: usize) {
        if nchunks + self.resting.len() <= MOST_AT_ONCE {
            for place in std::mem::take(&mut self.resting) {
                self.put(place);
            }
        }
    }

    /// Removes `place` from the holes. It may cover several of them, and parts that were forgotten.
    pub(crate) fn fill(&mut self, place: Extent) {
        let first = self.free.partition_point(|hole| hole.end() <= place.position);
        let end = self.free.partition_point(|hole| hole.position < place.end());
        let [Some(&before), Some(&behind)] = [self.free[first..end].first(), self.free[first..end].last()]
        else {
            return;
        };
        let before =
            Extent { position: before.position, len: place.position.saturating_sub(before.position) };
        let behind = Extent { position: place.end(), len: behind.end().saturating_sub(place.end()) };
        // Where one place becomes two, and there is no memory, the second one is forgotten.
        let most = end - first + usize::from(self.free.try_reserve(1).is_ok());
        let left = [before, behind].into_iter().filter(|left| left.len > 0);
        self.free.splice(first..end, left.take(most));
    }

    /// Notes a place that the change under way gives up. Where it is not known whether chunks overlap, it is forgotten
    /// with the change.
    pub(crate) fn give_up(&mut self, place: Extent) {
        if self.disjoint != Some(false) && self.fresh.len() < MOST {
            let _ = memory::push(&mut self.fresh, place);
        }
    }

    /// Takes `len` bytes for a chunk from where they fit best; returns their position.
    pub(crate) fn take(&mut self, len: u64) -> Option<u64> {
        let fitting = self.free.iter().enumerate().filter(|(_, hole)| hole.len >= len);
        let (n, hole) = fitting.min_by_key(|(_, hole)| hole.len)?;
        let position = hole.position;
        if hole.len == len {
            self.free.remove(n);
        } else {
            self.free[n] = Extent { position: position + len, len: hole.len - len };
        }
        Some(position)
    }

    /// Where the places begin that are free up to `end`, also those that were given up just now.
    pub(crate) fn start_of_last(&self, end: u64) -> u64 {
        let places = [&self.free, &self.resting, &self.fresh];
        let before =
            |end: u64| places.iter().find_map(|places| places.iter().find(|place| place.end() == end));
        let mut start = end;
        while let Some(place) = before(start).filter(|place| place.len > 0) {
            start = place.position;
        }
        start
    }

    /// How many places from `start` on the change under way gives up, and how many it and the one before it.
    pub(crate) fn given_up_from(&self, start: u64) -> (usize, usize) {
        let [fresh, resting] = [&self.fresh, &self.resting]
            .map(|places| places.iter().filter(|place| place.position >= start).count());
        (fresh, fresh + resting)
    }

    /// The change under way is complete.
    pub(crate) fn settle(&mut self) {
        if self.disjoint.is_none() {
            self.fresh.clear();
        }
        for place in std::mem::replace(&mut self.resting, std::mem::take(&mut self.fresh)) {
            self.put(place);
        }
    }

    /// The next change belongs to the one that was completed last: what that one gave up rests no less for it.
    pub(crate) fn rest_on(&mut self) {
        let _ = memory::extend(&mut self.fresh, &self.resting);
        self.resting.clear();
    }

    /// The last chunk ends at `end`: what lies after is no hole.
    pub(crate) fn cut_off(&mut self, end: u64) {
        for places in [&mut self.free, &mut self.resting, &mut self.fresh] {
            places.retain_mut(|place| {
                place.len = place.len.min(end.saturating_sub(place.position));
                place.len > 0
            });
        }
    }

    /// Adds a free place.
    fn put(&mut self, place: Extent) {
        let n = self.free.partition_point(|hole| hole.position < place.position);
        let Range { mut start, mut end } = n..n;
        let mut whole = place;
        if let Some(before) =
            n.checked_sub(1).map(|n| self.free[n]).filter(|hole| hole.end() == place.position)
        {
            start -= 1;
            whole = Extent { position: before.position, len: before.len + whole.len };
        }
        if let Some(behind) = self.free.get(n).filter(|hole| hole.position == place.end()) {
            end += 1;
            whole.len += behind.len;
        }
        if start == end && self.free.try_reserve(1).is_err() {
            return;
        }
        self.free.splice(start..end, [whole]);
        if self.free.len() > MOST {
            let least = (0..self.free.len()).min_by_key(|&n| self.free[n].len);
            self.free.remove(least.expect("there are some"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(position: u64, len: u64) -> Extent {
        Extent { position, len }
    }

    #[test]
    fn a_place_is_given_out_one_change_after_it_was_given_up() {
        let mut holes = Holes::of_disjoint_chunks();
        holes.give_up(extent(100, 50));
        assert_eq!(holes.take(50), None);
        holes.settle();
        assert_eq!(holes.take(50), None);
        holes.settle();
        assert_eq!(holes.take(51), None);
        assert_eq!(
            (holes.take(20), holes.take(20), holes.take(20), holes.take(10)),
            (Some(100), Some(120), None, Some(140))
        );
    }

    #[test]
    fn a_change_in_two_parts_is_one() {
        let mut holes = Holes::of_disjoint_chunks();
        holes.give_up(extent(100, 50));
        holes.settle();
        holes.rest_on();
        holes.settle();
        assert_eq!(holes.take(50), None);
        holes.settle();
        assert_eq!(holes.take(50), Some(100));
    }

    #[test]
    fn among_few_chunks_no_place_rests() {
        for (nchunks, rests) in [(MOST_AT_ONCE - 1, false), (MOST_AT_ONCE, true)] {
            let mut holes = Holes::between(&[extent(0, 100)], 100);
            holes.give_up(extent(100, 50));
            holes.wake_if_few(nchunks);
            assert_eq!(holes.take(50), None, "the change that gives it up is not complete");
            holes.settle();
            holes.wake_if_few(nchunks);
            assert_eq!(holes.take(50).is_none(), rests);
        }
    }

    #[test]
    fn the_last_places_are_free_whenever_they_were_given_up() {
        let mut holes = Holes::between(&[extent(0, 40), extent(60, 40)], 60);
        assert_eq!((holes.start_of_last(60), holes.start_of_last(100)), (40, 100));
        holes.give_up(extent(80, 20));
        holes.settle();
        assert_eq!(holes.start_of_last(100), 80);
        holes.give_up(extent(60, 20));
        assert_eq!((holes.start_of_last(100), holes.start_of_last(99)), (40, 99));
    }

    #[test]
    fn neighbours_become_one() {
        let mut holes = Holes::of_disjoint_chunks();
        for place in [extent(0, 10), extent(20, 10), extent(40, 10), extent(10, 10), extent(30, 10)] {
            holes.put(place);
        }
        assert_eq!(holes.free, [extent(0, 50)]);
    }

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let mut holes = Holes::between(&[extent(40, 10), extent(70, 30), extent(110, 5)], 130);
        assert_eq!(holes.free, [extent(0, 40), extent(50, 20), extent(100, 10), extent(115, 15)]);
        assert_eq!(holes.take(12), Some(115));
        assert_eq!(holes.take(12), Some(50));
        holes.cut_off(105);
        assert_eq!(holes.free, [extent(0, 40), extent(62, 8), extent(100, 5)]);
    }

    #[test]
    fn a_place_in_the_middle_of_a_hole_is_taken() {
        let mut holes = Holes::between(&[extent(40, 10), extent(70, 30)], 120);
        holes.fill(extent(10, 10));
        holes.fill(extent(50, 20));
        holes.fill(extent(110, 10));
        holes.fill(extent(60, 5));
        assert_eq!(holes.free, [extent(0, 10), extent(20, 20), extent(100, 10)]);
    }

    #[test]
    fn a_place_may_reach_over_holes_and_what_was_forgotten() {
        let holes = || Holes::between(&[extent(20, 10), extent(40, 10), extent(60, 10)], 80);
        for place in
            [extent(0, 20), extent(25, 10), extent(5, 50), extent(30, 50), extent(50, 5), extent(0, 80)]
        {
            let mut filled = holes();
            filled.fill(place);
            let is_free =
                |holes: &Holes, at: u64| holes.free.iter().any(|hole| hole.position <= at && at < hole.end());
            for at in 0..90 {
                let taken = place.position <= at && at < place.end();
                assert_eq!(is_free(&filled, at), is_free(&holes(), at) && !taken, "{place:?}, {at}");
            }
        }
    }

    #[test]
    fn where_chunks_overlap_nothing_is_free() {
        let mut holes = Holes::between(&[extent(0, 50), extent(40, 10), extent(90, 10)], 100);
        assert!(holes.are_known());
        holes.give_up(extent(0, 40));
        holes.settle();
        holes.settle();
        assert_eq!(holes.take(1), None);
    }

    #[test]
    fn few_places_are_remembered_and_the_smallest_is_forgotten() {
        let mut holes = Holes::of_disjoint_chunks();
        (0..2000).for_each(|n| holes.put(extent(n * 10_000, n + 1)));
        assert_eq!(holes.free.len(), MOST);
        assert_eq!(holes.take(2000), Some(1999 * 10_000));
        assert_eq!(holes.take(1), Some((2000 - MOST as u64) * 10_000));
    }
}
