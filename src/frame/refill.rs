//! Plans which of the last chunks move into which holes, so that the frame can be cut shorter.

#![forbid(unsafe_code)]

use super::holes::{Extent, Holes, overlap};
use crate::error::Result;
use crate::memory;

/// A chunk that moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) from: Extent,
    /// Its new position.
    pub(super) to: u64,
}

impl Move {
    /// The new place.
    pub(super) fn to_extent(self) -> Extent {
        Extent { position: self.to, len: self.from.len }
    }
}

/// The last chunks of a frame, each in the smallest hole before them that it fits in.
#[derive(Debug)]
pub(super) struct Refill {
    /// No chunk moves to a place where another one was before.
    pub(super) moves: Vec<Move>,
    /// Where the last chunk ends then.
    pub(super) end: u64,
    /// Bytes that all chunks take.
    pub(super) live: u64,
}

impl Refill {
    /// The moves for `chunks`, all stored chunks in ascending order. `None` if it is not known which places are free,
    /// or if too little would be won: the chunks would still take less than two thirds of the payload area, or more
    /// than two thirds of the dead bytes would be left. Places that rest are not used.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn plan(chunks: &[Extent], holes: &Holes) -> Result<Option<Refill>> {
        let Some(resting) = holes.resting() else { return Ok(None) };
        let mut taken = memory::with_capacity(chunks.len() + resting.len())?;
        taken.extend_from_slice(chunks);
        taken.extend_from_slice(resting);
        taken.sort_unstable();
        if overlap(&taken) {
            return Ok(None);
        }
        let live: u64 = chunks.iter().map(|chunk| chunk.len).sum();
        let dead = chunks.last().map_or(0, |last| last.end()).saturating_sub(live);
        // The less room, the fewer changes until too much of it is dead again.
        for more in [live / 16, live / 8, live / 4, live / 2].into_iter().filter(|more| *more <= dead / 3 * 2)
        {
            let limit = live + more;
            if let Some((moves, end)) = fit(chunks, Gaps::between(&taken, limit)?, limit)? {
                return Ok(Some(Refill { moves, end, live }));
            }
        }
        Ok(None)
    }
}

/// Puts `chunks` that reach after `limit` into `gaps`, if they fit; returns the moves and where the last chunk ends
/// then.
fn fit(chunks: &[Extent], mut gaps: Gaps, limit: u64) -> Result<Option<(Vec<Move>, u64)>> {
    let (stay, go) = chunks.split_at(chunks.partition_point(|chunk| chunk.end() <= limit));
    let mut go = memory::copy_of(go)?;
    go.sort_unstable_by_key(|chunk| std::cmp::Reverse(chunk.len));
    let mut end = stay.last().map_or(0, |chunk| chunk.end());
    let mut moves = memory::with_capacity(go.len())?;
    for from in go {
        let Some(to) = gaps.take(from.len) else { return Ok(None) };
        end = end.max(to + from.len);
        moves.push(Move { from, to });
    }
    Ok(Some((moves, end)))
}

/// Free places: length and position of each, ascending, in groups that are short enough to take something out of them
/// or put something in between, however many places there are. No group is empty, unless it is the only one.
struct Gaps(Vec<Vec<(u64, u64)>>);

impl Gaps {
    /// Most places of a group.
    const MOST: usize = 512;

    /// Those before and between `taken`, which ascend, up to `limit`.
    fn between(taken: &[Extent], limit: u64) -> Result<Gaps> {
        let mut gaps = Vec::new();
        let mut at = 0;
        for place in taken {
            if place.position.min(limit) > at {
                memory::push(&mut gaps, (place.position.min(limit) - at, at))?;
            }
            at = place.end();
        }
        gaps.sort_unstable();
        memory::try_collect(gaps.chunks(Self::MOST / 2).map(Self::group)).map(Gaps)
    }

    /// A group of these places, with room for as many as a group may have.
    fn group(places: &[(u64, u64)]) -> Result<Vec<(u64, u64)>> {
        let mut group = memory::with_capacity(Self::MOST)?;
        group.extend_from_slice(places);
        Ok(group)
    }

    /// Takes `len` bytes from where they fit best; returns their position.
    fn take(&mut self, len: u64) -> Option<u64> {
        let n = self.group_of((len, 0));
        let group = self.0.get_mut(n)?;
        let (found, position) = group.remove(group.partition_point(|&gap| gap < (len, 0)));
        if group.is_empty() && self.0.len() > 1 {
            self.0.remove(n);
        }
        if found > len {
            self.put((found - len, position + len));
        }
        Some(position)
    }

    /// The group in which `place` is or would be; that after the last one if it is larger than all.
    fn group_of(&self, place: (u64, u64)) -> usize {
        self.0.partition_point(|group| group.last().is_none_or(|&last| last < place))
    }

    /// Adds a place. Where there is no memory, it is forgotten.
    fn put(&mut self, place: (u64, u64)) {
        let n = self.group_of(place).min(self.0.len().saturating_sub(1));
        let Some(group) = self.0.get_mut(n) else {
            let _ = Self::group(&[place]).and_then(|group| memory::push(&mut self.0, group));
            return;
        };
        if group.len() < Self::MOST {
            group.insert(group.partition_point(|&gap| gap < place), place);
            return;
        }
        let Ok(upper) = Self::group(&group[Self::MOST / 2..]) else { return };
        if self.0.try_reserve(1).is_ok() {
            self.0[n].truncate(Self::MOST / 2);
            self.0.insert(n + 1, upper);
            self.put(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::below;
    use proptest::prelude::*;

    fn extent(position: u64, len: u64) -> Extent {
        Extent { position, len }
    }

    fn moves(plan: &Refill) -> Vec<(u64, u64)> {
        plan.moves.iter().map(|moved| (moved.from.position, moved.to)).collect()
    }

    #[test]
    fn the_last_chunks_go_into_the_smallest_holes_that_fit() {
        // Holes of 10, 30 and 20 bytes, and two that are too far past.
        let chunks = [extent(10, 50), extent(90, 60), extent(170, 20), extent(210, 25), extent(335, 10)];
        let plan = Refill::plan(&chunks, &Holes::of_disjoint_chunks()).unwrap().unwrap();
        assert_eq!(moves(&plan), [(210, 60), (170, 150), (335, 0)]);
        assert_eq!((plan.end, plan.live), (170, 165));
    }

    #[test]
    fn nothing_moves_where_too_little_would_be_won() {
        let mut chunks = [extent(0, 50), extent(95, 50), extent(185, 50), extent(275, 50)];
        assert!(Refill::plan(&chunks, &Holes::of_disjoint_chunks()).unwrap().is_none());
        chunks[0].len = 45;
        let plan = Refill::plan(&chunks, &Holes::of_disjoint_chunks()).unwrap().unwrap();
        assert_eq!(moves(&plan), [(275, 45)]);
    }

    #[test]
    fn nothing_moves_where_it_is_not_known_what_is_free() {
        let chunks = [extent(100, 50), extent(200, 50)];
        assert!(Refill::plan(&chunks, &Holes::default()).unwrap().is_none());
        assert!(Refill::plan(&chunks, &Holes::of_overlapping_chunks()).unwrap().is_none());
        assert!(
            Refill::plan(&[extent(0, 50), extent(40, 10)], &Holes::of_disjoint_chunks()).unwrap().is_none()
        );
    }

    #[test]
    fn places_given_up_just_now_are_left_alone() {
        let mut holes = Holes::of_disjoint_chunks();
        holes.give_up(extent(0, 50));
        holes.settle();
        let chunks = [extent(50, 50), extent(110, 10), extent(150, 10)];
        let plan = Refill::plan(&chunks, &holes).unwrap();
        assert!(plan.is_none());
        holes.settle();
        let plan = Refill::plan(&chunks, &holes).unwrap().unwrap();
        assert_eq!((moves(&plan), plan.end), (vec![(110, 0), (150, 10)], 100));
    }

    #[test]
    fn of_many_gaps_the_smallest_that_fits_is_taken() {
        let mut below = below(3);
        let mut taken = Vec::new();
        let mut at = 0;
        for _ in 0..5000 {
            let gap = 100 + below(50);
            taken.push(extent(at + gap as u64, 1));
            at = taken.last().unwrap().end();
        }
        let mut gaps = Gaps::between(&taken, at).unwrap();
        let mut plain: Vec<_> = gaps.0.concat();
        assert!(plain.is_sorted() && plain.len() == 5000);
        let ngroups = gaps.0.len();
        // At first most of a gap, so that what is left comes to the first group; then what is left.
        for round in 0..8000 {
            let len = if round < 3000 { 90 + below(10) } else { 1 + below(120) } as u64;
            let n = plain.partition_point(|&gap| gap < (len, 0));
            let fitting = (n < plain.len()).then(|| plain.remove(n));
            if let Some((found, position)) = fitting.filter(|&(found, _)| found > len) {
                let left = (found - len, position + len);
                plain.insert(plain.partition_point(|&gap| gap < left), left);
            }
            assert_eq!(gaps.take(len), fitting.map(|(_, position)| position), "round {round}");
            assert!(gaps.0.iter().all(|group| (1..=Gaps::MOST).contains(&group.len())));
        }
        assert_eq!(gaps.0.concat(), plain);
        assert!(gaps.0.len() != ngroups && plain.len() < 5000);
    }

    #[test]
    fn one_gap_is_taken_piece_by_piece() {
        let mut gaps = Gaps::between(&[extent(10, 5), extent(115, 5)], 120).unwrap();
        assert_eq!([50, 50, 10, 1].map(|len| gaps.take(len)), [Some(15), Some(65), Some(0), None]);
        gaps.put((7, 40));
        assert_eq!([8, 7, 1].map(|len| gaps.take(len)), [None, Some(40), None]);
    }

    proptest! {
        #[test]
        fn chunks_stay_apart(
            places in prop::collection::vec((0u64..40, 1u64..30), 1..60),
            resting in prop::collection::vec(any::<bool>(), 60),
        ) {
            let (mut chunks, mut holes, mut at) = (Vec::new(), Holes::of_disjoint_chunks(), 0);
            for ((gap, len), rests) in places.into_iter().zip(resting) {
                let place = extent(at + gap, len);
                at = place.end();
                if rests { holes.give_up(place) } else { chunks.push(place) }
            }
            holes.settle();
            let plan = Refill::plan(&chunks, &holes).unwrap();
            prop_assume!(plan.is_some());
            let plan = plan.unwrap();
            // No new place is on an old one, moved or not, nor on one that rests.
            let moved: Vec<_> = plan.moves.iter().map(|moved| moved.to_extent()).collect();
            let mut all = [&chunks, &moved, holes.resting().unwrap()].concat();
            all.sort_unstable();
            prop_assert!(!overlap(&all));
            let (stay, go) = chunks.split_at(chunks.len() - moved.len());
            let mut from: Vec<_> = plan.moves.iter().map(|moved| moved.from).collect();
            from.sort_unstable();
            prop_assert_eq!(&from, go);
            let end = stay.iter().chain(&moved).map(|place| place.end()).max().unwrap_or(0);
            prop_assert_eq!(plan.end, end);
            prop_assert_eq!(plan.live, chunks.iter().map(|chunk| chunk.len).sum::<u64>());
            prop_assert!(plan.end - plan.live <= plan.live / 2);
        }
    }
}
