//! How long the codes of symbols are: as in a Huffman tree, which is cut where the format wants codes to be shorter.
//!
//! In a short block, whether a symbol occurs, and where in the tree it is, is as good as random, and making codes takes
//! more time than anything else. So there are hardly any branches that depend on it.

#![forbid(unsafe_code)]

use super::super::format::MAX_CODE;
use super::bits::Code;

/// The lengths of codes of up to ROOM - BEHIND symbols.
pub(super) struct Lengths<const ROOM: usize> {
    /// By symbol, in bits; 0 for those without a code.
    lengths: [u8; ROOM],
    /// How often each length is, from 1 on.
    per_length: [u32; MAX_CODE + 1],
    /// Symbols with codes, in order, as leaves.
    by_symbol: [u32; ROOM],
    nused: usize,
}

/// Behind the leaves there are two that are heavier than all of them together.
pub(super) const BEHIND: usize = 2;
/// A leaf is the number of times that a symbol occurs and, in the lowest bits, the symbol.
const SYMBOL_BITS: u32 = 9;

impl<const ROOM: usize> Lengths<ROOM> {
    /// The lengths, up to `max`, of a prefix code that is best for these counts, or nearly so where `max` hurts.
    /// Symbols that do not occur get none; a single one gets a code of one bit. The sum of the counts is below 2^22.
    pub(super) fn best(counts: &[u32], max: usize) -> Lengths<ROOM> {
        let mut by_symbol = [0; ROOM];
        let mut nused = 0;
        for (symbol, &count) in (0..).zip(counts) {
            by_symbol[nused] = count << SYMBOL_BITS | symbol;
            nused += usize::from(count > 0);
        }
        let mut leaves = [u32::MAX; ROOM];
        sort_leaves(&by_symbol[..nused], &mut leaves[..nused]);
        let mut per_length = [0; MAX_CODE + 1];
        match nused {
            0 => (),
            1 => per_length[1] = 1,
            _ => {
                count_depths::<ROOM>(&leaves[..nused + BEHIND], max, &mut per_length);
                limit(max, &mut per_length);
            }
        }
        // The rarest ones get the longest.
        let mut lengths = [0; ROOM];
        let mut rest = &leaves[..nused];
        for len in (1..=max).rev() {
            let (those, others) = rest.split_at(per_length[len] as usize);
            for &leaf in those {
                lengths[symbol(leaf)] = len as u8; // at most 15
            }
            rest = others;
        }
        Lengths { lengths, per_length, by_symbol, nused }
    }

    /// Given lengths of codes of all symbols.
    pub(super) fn fixed(given: &[u8]) -> Lengths<ROOM> {
        let (mut lengths, mut per_length, mut by_symbol) = ([0; ROOM], [0; MAX_CODE + 1], [0; ROOM]);
        for (symbol, &len) in given.iter().enumerate() {
            lengths[symbol] = len;
            per_length[usize::from(len)] += 1;
            by_symbol[symbol] = symbol as u32; // below ROOM
        }
        Lengths { lengths, per_length, by_symbol, nused: given.len() }
    }

    /// By symbol, and zeros after the last one.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.lengths
    }

    /// How many symbols there are up to the last one with a code.
    pub(super) fn trimmed_len(&self) -> usize {
        self.by_symbol[..self.nused].last().map_or(0, |&leaf| symbol(leaf) + 1)
    }

    /// Bits of all symbols with these codes, for the counts that they were made for, or others.
    pub(super) fn data_bits(&self, counts: &[u32]) -> u32 {
        data_bits(counts, &self.lengths)
    }

    /// Makes the codes, in the order that the format prescribes.
    pub(super) fn assign(&self, codes: &mut [Code]) {
        let mut next = [0_u32; MAX_CODE + 1];
        for len in 2..=MAX_CODE {
            next[len] = (next[len - 1] + self.per_length[len - 1]) << 1;
        }
        codes.fill(Code::default());
        for &leaf in &self.by_symbol[..self.nused] {
            let symbol = symbol(leaf);
            let len = self.lengths[symbol];
            let bits = &mut next[usize::from(len)];
            codes[symbol] = Code::new(reversed(*bits) >> (16 - len), len);
            *bits += 1;
        }
    }
}

/// Bits of symbols that occur so often, with codes of these lengths.
pub(super) fn data_bits(counts: &[u32], lengths: &[u8]) -> u32 {
    counts.iter().zip(lengths).map(|(&n, &len)| n * u32::from(len)).sum()
}

fn symbol(leaf: u32) -> usize {
    (leaf & ((1 << SYMBOL_BITS) - 1)) as usize
}

/// The lowest 16 bits in reverse: codes are written from their highest bit on.
#[inline(always)]
fn reversed(bits: u32) -> u32 {
    static BYTES: [u8; 256] = {
        let mut bytes = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            bytes[byte] = (byte as u8).reverse_bits();
            byte += 1;
        }
        bytes
    };
    let [low, high, ..] = bits.to_le_bytes();
    u32::from(BYTES[usize::from(low)]) << 8 | u32::from(BYTES[usize::from(high)])
}

/// Sorts the leaves `by_symbol`, the lightest first, into `leaves`, which are as many.
fn sort_leaves(by_symbol: &[u32], leaves: &mut [u32]) {
    /// In short blocks, few symbols occur as often as this.
    const OFTEN: usize = 64;
    let bucket = |leaf: u32| ((leaf >> SYMBOL_BITS) as usize).min(OFTEN);
    // Where the next leaf of a count goes.
    let mut places = [0_u32; OFTEN + 1];
    by_symbol.iter().for_each(|&leaf| places[bucket(leaf)] += 1);
    let mut next = 0;
    for place in &mut places {
        next += std::mem::replace(place, next);
    }
    let often = places[OFTEN] as usize;
    for &leaf in by_symbol {
        let place = &mut places[bucket(leaf)];
        leaves[*place as usize] = leaf;
        *place += 1;
    }
    leaves[often..].sort_unstable();
}

/// Counts how many of the leaves, the lightest first, lie how deep in a Huffman tree, or at `max` if they lie deeper.
/// There are two or more of them, and BEHIND heavy ones.
fn count_depths<const ROOM: usize>(leaves: &[u32], max: usize, per_length: &mut [u32; MAX_CODE + 1]) {
    /// Of nodes that are not made yet.
    const HEAVY: u32 = 1 << 30;
    let ninner = leaves.len() - BEHIND - 1;
    // Inner nodes are made in the order of their weight, so the two lightest nodes are always at the front of the
    // leaves or of the inner nodes. Whether they are leaves is not known in advance, and no branch depends on it.
    let mut weights = [HEAVY; ROOM];
    // How many inner nodes are below those made so far.
    let mut below = [0_u16; ROOM];
    let (mut leaf, mut inner) = (0, 0);
    for made in 0..ninner {
        let (first_leaf, second_leaf) = (leaves[leaf] >> SYMBOL_BITS, leaves[leaf + 1] >> SYMBOL_BITS);
        let (first_inner, second_inner) = (weights[inner], weights[inner + 1]);
        weights[made] =
            (first_leaf + second_leaf).min(first_leaf + first_inner).min(first_inner + second_inner);
        let nleaves = usize::from(second_leaf <= first_inner) + usize::from(first_leaf <= second_inner);
        leaf += nleaves;
        inner += 2 - nleaves;
        below[made] = inner as u16; // below 288
    }
    // From the root, the last one, down: inner nodes of a level are beside each other, those below them before.
    let (mut start, mut end, mut depth) = (ninner - 1, ninner, 1);
    while end > 0 {
        let next = if start > 0 { usize::from(below[start - 1]) } else { 0 };
        let nleaves = 2 * (end - start) - (start - next);
        per_length[depth.min(max)] += nleaves as u32;
        (start, end) = (next, start);
        depth += 1;
    }
}

/// Makes these lengths, which are cut at `max`, those of codes again.
fn limit(max: usize, per_length: &mut [u32; MAX_CODE + 1]) {
    // Where some were cut, there are too many codes: put one of them beside another that is shorter, until they fit.
    let mut taken: u32 = (1..=max).map(|len| per_length[len] << (max - len)).sum();
    while taken > 1 << max {
        let shorter = (1..max).rev().find(|&len| per_length[len] > 0).expect("or all codes would fit");
        per_length[max] -= 1;
        per_length[shorter] -= 1;
        per_length[shorter + 1] += 2;
        taken -= 1;
    }
}
