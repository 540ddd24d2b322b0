//! What matches are worth: how many bits they save.

#![forbid(unsafe_code)]

/// Bits are counted in sixteenths.
pub(super) const BIT: usize = 16;
/// About how many bits the symbols of a match take, without those that tell its distance exactly: where matches are
/// rare, and where they are frequent.
const RARE_BITS: usize = 10 * BIT;
const FREQUENT_BITS: usize = 6 * BIT;
/// The same for runs, whose distance has the shortest code.
const RUN_BITS: usize = 8 * BIT;

/// What matches are worth where literals take a number of bits.
#[derive(Clone, Copy)]
pub(super) struct Worth {
    literal_bits: usize,
    match_bits: usize,
}

impl Worth {
    /// For literals of this many bits, in sixteenths, of which they cannot have less than one, if matches are rare.
    pub(super) fn new(literal_bits: usize) -> Worth {
        Worth { literal_bits: literal_bits.max(BIT), match_bits: RARE_BITS }
    }

    /// The same if matches are frequent.
    pub(super) fn of_frequent(literal_bits: usize) -> Worth {
        Worth { match_bits: FREQUENT_BITS, ..Worth::new(literal_bits) }
    }

    /// How many bits a match saves: 0 if it takes as many as its literals, or more.
    #[inline(always)]
    pub(super) fn saved(self, len: usize, distance: usize) -> usize {
        (len * self.literal_bits).saturating_sub(self.cost(distance))
    }

    /// Length of the shortest match of this distance that saves some.
    pub(super) fn shortest(self, distance: usize) -> usize {
        self.cost(distance) / self.literal_bits + 1
    }

    /// About how many bits a match takes.
    #[inline(always)]
    fn cost(self, distance: usize) -> usize {
        if distance == 1 { RUN_BITS } else { self.match_bits + BIT * distance.ilog2() as usize }
    }
}
