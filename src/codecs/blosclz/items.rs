//! Items of a fixed size that were not shuffled, of which all but a few bytes are those of the item before, as in
//! integers that count.
//!
//! The usual search comes to such a match after some positions without one, and knows where the next begins only when
//! it has measured this one. Here the next pair of literals and match is expected to look like the last; the CPU
//! compares the bytes while it goes on.

use super::LONG_MATCH;
use super::encode::{MIN_NEAR, Output};
use crate::codecs::agree::same_bytes;
use std::ops::RangeInclusive;

/// Matches in a row with the same distance that tell of such items.
const REGULAR: usize = 4;
/// How long items are, in bytes. In what was shuffled, matches in a row are of runs, or from further back.
const ITEM: RangeInclusive<usize> = MIN_NEAR + 1..=32;
/// This many matches are taken without a search for others, which may be better ones.
const MOST: usize = 64;
/// The decoder waits for bytes that it has just written, so a match from a multiple of the distance, from this one on,
/// is copied twice as fast.
const SETTLED: usize = 64;
/// The bytes of an item and the next that are compared.
const WINDOW: usize = 32;
/// The most bytes that differ.
const MOST_LITERALS: usize = 8;

/// How regular the last matches were.
#[derive(Default)]
pub(super) struct Regularity {
    distance: usize,
    nequal: usize,
}

impl Regularity {
    /// Whether matches tell of items, given the next one, which is at `distance` and ends a sequence of `nbytes`. If
    /// so, it takes new ones to tell that again.
    #[inline(always)]
    pub(super) fn is_enough(&mut self, distance: usize, nbytes: usize) -> bool {
        self.nequal = if distance == self.distance { self.nequal + 1 } else { 0 };
        self.distance = distance;
        if self.nequal < REGULAR {
            return false;
        }
        self.nequal = 0;
        ITEM.contains(&distance) && nbytes % distance == 0
    }
}

/// Literals, and the match after them.
#[derive(Clone, Copy)]
struct Shape {
    literals: usize,
    len: usize,
}

impl Shape {
    /// What begins where the bytes in this mask are the same. All are literals if there is no match.
    #[inline(always)]
    fn of(same: u32) -> Shape {
        const { assert!(MIN_NEAR == 7) };
        let two = same & same >> 1;
        let four = two & two >> 2;
        let seven = four & four >> 3;
        let literals = seven.trailing_zeros() as usize; // up to 32
        Shape { literals, len: (u64::from(same) >> literals).trailing_ones() as usize }
    }

    /// Whether there is a match of this shape, which has literals and ends in the window. As long as the shapes are
    /// regular, the CPU foresees the answer.
    #[inline(always)]
    fn is_of(self, same: u32) -> bool {
        let agreeing = (1_u32 << self.len) - 1;
        // The last literal differs, and what comes after the match.
        (same >> (self.literals - 1)) & (agreeing << 2 | 3) == agreeing << 1
    }
}

/// Writes matches at `distance`, or a multiple of it, from `at` on, where one ends, as long as they follow each other
/// closely. Returns where the last one ends; `None` if they do not fit.
///
/// # Safety
///
/// `1 <= distance <= at <= limit <= out.src.len()`.
#[inline(never)]
pub(super) unsafe fn encode_items<const DRY: bool>(
    out: &mut Output<'_, DRY>,
    mut at: usize,
    distance: usize,
    limit: usize,
) -> Option<usize> {
    let settled = SETTLED.next_multiple_of(distance);
    let far = if settled <= at { settled } else { distance };
    let mut shape = Shape { literals: 0, len: 0 };
    for _ in 0..MOST {
        if at + WINDOW > limit {
            break;
        }
        // SAFETY: WINDOW bytes follow, and both distances are at most `at`.
        let same = |distance| unsafe { same_bytes(out.src, at, at - distance) };
        let (same_near, same_far) = (same(distance), same(far));
        let mut from = far;
        if shape.literals == 0 || !shape.is_of(same_near) || !shape.is_of(same_far) {
            let (near, other) = (Shape::of(same_near), Shape::of(same_far));
            let is_settled = other.literals == near.literals && other.len >= near.len;
            (shape, from) = if is_settled { (other, far) } else { (near, distance) };
            // What reaches the end of the window is long, which is rare.
            if shape.literals > MOST_LITERALS || shape.literals + shape.len == WINDOW {
                break;
            }
            // As in the usual search, the ninth byte is left to what follows.
            shape.len -= usize::from(shape.len == LONG_MATCH);
        }
        let start = at + shape.literals;
        out.sequence(at, start, shape.len, from)?;
        at = start + shape.len;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shapes_are_what_the_bytes_say(same in prop::collection::vec(prop::bool::weighted(0.9), WINDOW)) {
            let mask = same.iter().enumerate().fold(0, |mask, (i, &same)| mask | u32::from(same) << i);
            let shape = Shape::of(mask);
            match same.windows(MIN_NEAR).position(|seven| seven.iter().all(|&same| same)) {
                None => prop_assert_eq!(shape.literals, WINDOW),
                Some(start) => {
                    let len = same[start..].iter().take_while(|&&same| same).count();
                    prop_assert_eq!((shape.literals, shape.len), (start, len));
                }
            }
        }

        #[test]
        fn a_shape_is_found_again(literals in 1..=MOST_LITERALS, len in MIN_NEAR..16, same: u32) {
            let shape = Shape { literals, len };
            let end = literals + len;
            let is_one = !(same >> (literals - 1)) & 1 == 1
                && (literals..end).all(|i| same >> i & 1 == 1)
                && !(same >> end) & 1 == 1;
            prop_assert_eq!(shape.is_of(same), is_one);
            let one = same | ((1 << len) - 1) << literals;
            prop_assert!(shape.is_of(one & !(1 << (literals - 1)) & !(1 << end)));
            prop_assert!(!shape.is_of(one | 1 << end));
        }
    }
}
