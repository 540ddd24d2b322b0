//! How often symbols are needed, and about how many bits that makes.

use super::super::format::{END, MAX_CODE, SYMBOLS, USED_DISTANCES};
use super::huffman::SymbolLengths;
use super::sequence::{Distance, LENGTHS, MIN_PIECE, Sequence};
use super::token::{FIRST_LENGTH, Tally};
use super::worth::BIT;
use crate::memory::Zero;

/// From this many literals on, it pays to count them in several places.
const MANY_LITERALS: usize = 2048;
/// From this many literals on, they tell how long their codes will be.
const TELLING_LITERALS: u32 = 256;
/// Below this many bits, in sixteenths, literals take more than their entropy, since each takes one and there is an end
/// as well.
const FEW_BITS: usize = 40;
/// The logarithms have this many bits after the point.
const LOG_FRACTION: u32 = 8;

/// How often each symbol occurs in a block.
#[derive(Clone)]
pub(super) struct Counts {
    pub(super) symbols: [u32; SYMBOLS],
    pub(super) distances: [u32; USED_DISTANCES],
    /// Bits after the symbols.
    pub(super) extra_bits: usize,
    /// Bytes that are in matches.
    match_bytes: usize,
}

// SAFETY: the fields are integers and arrays of them, for which zeros are a value.
unsafe impl Zero for Counts {}

impl Counts {
    pub(super) fn new() -> Counts {
        Counts { symbols: [0; SYMBOLS], distances: [0; USED_DISTANCES], extra_bits: 0, match_bytes: 0 }
    }

    /// Begins with a block: there is one end.
    pub(super) fn reset(&mut self) {
        *self = Counts::new();
        self.symbols[END] = 1;
    }

    /// Counts the symbols of a match.
    #[inline(always)]
    pub(super) fn count_match(&mut self, sequence: &Sequence) {
        let distance = sequence.distance();
        self.match_bytes += sequence.len();
        for piece in sequence.pieces() {
            let length = LENGTHS[piece - MIN_PIECE];
            self.symbols[usize::from(length.symbol)] += 1;
            self.distances[usize::from(distance.symbol)] += 1;
            self.extra_bits += usize::from(length.extra.len + distance.extra_len);
        }
    }

    /// Counts the literals of `block`, whose matches were counted.
    pub(super) fn count_literals(&mut self, block: &[u8], sequences: &[Sequence]) {
        // Incrementing the same number twice in a row takes long.
        let several = block.len() - self.match_bytes >= MANY_LITERALS;
        let mut others = [[0_u32; 256]; 3];
        let mut rest = block;
        for sequence in sequences {
            let (mut literals, behind) = rest.split_at(sequence.literals());
            if several {
                while let [a, b, c, d, rest @ ..] = literals {
                    self.symbols[usize::from(*a)] += 1;
                    others[0][usize::from(*b)] += 1;
                    others[1][usize::from(*c)] += 1;
                    others[2][usize::from(*d)] += 1;
                    literals = rest;
                }
            }
            literals.iter().for_each(|&byte| self.symbols[usize::from(byte)] += 1);
            rest = &behind[sequence.len()..];
        }
        if several {
            for other in &others {
                self.symbols.iter_mut().zip(other).for_each(|(sum, n)| *sum += n);
            }
        }
    }

    /// Adds the symbols of tokens.
    pub(super) fn add_tally(&mut self, tally: &Tally) {
        let (literals, lengths) = tally.indices.split_at(FIRST_LENGTH);
        self.symbols.iter_mut().zip(literals).for_each(|(sum, n)| *sum += n);
        for (length, &n) in LENGTHS.iter().zip(lengths) {
            self.symbols[usize::from(length.symbol)] += n;
            self.extra_bits += usize::from(length.extra.len) * n as usize;
        }
        for (symbol, (sum, &n)) in self.distances.iter_mut().zip(&tally.distances).enumerate() {
            *sum += n;
            self.extra_bits += usize::from(Distance::extra_len(symbol)) * n as usize;
        }
    }

    /// Adds what was counted in the bytes that follow.
    pub(super) fn add(&mut self, behind: &Counts) {
        self.symbols.iter_mut().zip(&behind.symbols).for_each(|(sum, n)| *sum += n);
        self.symbols[END] = 1;
        self.distances.iter_mut().zip(&behind.distances).for_each(|(sum, n)| *sum += n);
        self.extra_bits += behind.extra_bits;
        self.match_bytes += behind.match_bytes;
    }

    /// About how many bits the symbols take with the codes that suit them best, without those after them.
    pub(super) fn entropy(&self) -> usize {
        ((entropy(&self.symbols) + entropy(&self.distances)) >> LOG_FRACTION) as usize
    }

    /// About how many bits the block takes with the codes that suit it best, without what tells these.
    pub(super) fn bits(&self) -> usize {
        self.entropy() + self.extra_bits
    }

    /// How many bits the block takes with codes of its own, or somewhat less: it takes some time to find out exactly.
    pub(super) fn least_bits(&self) -> usize {
        /// What a block tells before any codes, and about the least that it takes to tell a code.
        const FRAME: usize = 60;
        const CODE: usize = 3;
        let ncodes = self.symbols.iter().filter(|&&count| count > 0).count();
        FRAME + CODE * ncodes + self.bits()
    }

    /// About how many bits a literal takes, in sixteenths; `None` if there are too few to tell.
    pub(super) fn literal_bits(&self) -> Option<usize> {
        let literals = &self.symbols[..END];
        (literals.iter().sum::<u32>() >= TELLING_LITERALS).then(|| literal_bits(literals))
    }
}

/// About how many bits a literal takes if they occur as often as this, in sixteenths. There are some.
pub(super) fn literal_bits(counts: &[u32]) -> usize {
    let n = counts.iter().sum::<u32>();
    let bits = (entropy(counts) / n) as usize >> (LOG_FRACTION - BIT.ilog2());
    if bits >= FEW_BITS {
        return bits;
    }
    let mut symbols = [0; END + 1];
    symbols[..counts.len()].copy_from_slice(counts);
    symbols[END] = 1;
    let nbits = SymbolLengths::best(&symbols, MAX_CODE).data_bits(counts);
    BIT * nbits as usize / n as usize
}

/// About how many bits a short stream of these bytes takes without matches, in a block with codes of its own.
pub(in super::super) fn coded_bits(bytes: &[u8]) -> usize {
    /// Header and checksum of the stream, and about what a block tells before any codes.
    const FRAME: usize = 8 * (2 + 4) + 70;
    /// About what it takes to tell a code.
    const VALUE: usize = 7;
    let mut counts = [0; END];
    bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let nvalues = counts.iter().filter(|&&count| count > 0).count();
    FRAME + VALUE * nvalues + (entropy(&counts) >> LOG_FRACTION) as usize
}

/// Bits of symbols that occur as often as this, at best. The counts add up to less than 2^19, so that the products fit.
fn entropy(counts: &[u32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_avx2() {
        // SAFETY: the CPU was just asked for AVX2.
        return unsafe { entropy_avx2(counts) };
    }
    entropy_with(counts)
}

/// [`entropy_with`], compiled for vectors of eight counts.
///
/// # Safety
///
/// The CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn entropy_avx2(counts: &[u32]) -> u32 {
    entropy_with(counts)
}

/// [`entropy`] with what the caller is compiled for.
#[inline(always)]
fn entropy_with(counts: &[u32]) -> u32 {
    let (mut total, mut sum) = (0, 0_u32);
    for &n in counts {
        total += n;
        sum += times_log(n);
    }
    times_log(total).saturating_sub(sum)
}

/// `n` times its logarithm to the base of 2, in integers, so that it is the same everywhere, and without branches.
#[inline(always)]
fn times_log(n: u32) -> u32 {
    // The exponent of a float is the logarithm's whole part, and its mantissa nearly the rest: a parabola is added.
    let bits = (n as f32).to_bits();
    let whole = (bits >> 23).wrapping_sub(127);
    let part = bits >> 7 & 0xffff;
    let part = part + ((((part * (0x10000 - part)) >> 16) * 22_545) >> 16);
    n.wrapping_mul((whole << LOG_FRACTION).wrapping_add(part >> (16 - LOG_FRACTION)))
}
