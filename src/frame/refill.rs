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

/// Free places: length and position of each, ascending.
struct Gaps(Vec<(u64, u64)>);

impl Gaps {
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
        Ok(Gaps(gaps))
    }

    /// Takes `len` bytes; returns their position.
    fn take(&mut self, len: u64) -> Option<u64> {
        let n = self.0.partition_point(|&gap| gap < (len, 0));
        if n == self.0.len() {
            return None;
        }
        let (found, position) = self.0.remove(n);
        if found > len {
            let left = (found - len, position + len);
            let n = self.0.partition_point(|&gap| gap < left);
            self.0.insert(n, left);
        }
        Some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
