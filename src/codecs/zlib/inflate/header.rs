//! What comes before the data of a block: its kind, and the lengths of its codes.

#![forbid(unsafe_code)]

use super::super::format::{
    DISTANCES, DYNAMIC, END, FIXED, LENGTHS, MAX_RUN_CODE, RAW, RUN_ORDER, RUNS, SYMBOLS, USED_DISTANCES,
    USED_SYMBOLS, length,
};
use super::bits::Bits;
use super::table::{self, Lengths};

/// How the data of a block are coded.
pub(in super::super) enum Kind {
    Raw,
    Fixed,
    Dynamic,
}

/// Reads whether a block is the last one, and its kind; `None` if there is no such kind.
pub(in super::super) fn read_kind(bits: &mut Bits<'_>) -> Option<(bool, Kind)> {
    bits.refill();
    let is_last = bits.take(1)? == 1;
    let kind = match bits.take(2)? as u32 {
        RAW => Kind::Raw,
        FIXED => Kind::Fixed,
        DYNAMIC => Kind::Dynamic,
        _ => return None,
    };
    Some((is_last, kind))
}

/// What a block with the fixed codes consists of.
pub(in super::super) enum Fixed {
    Literal,
    Match { distance_symbol: usize },
}

/// Reads the next literal or match of a block with the fixed codes, without tables; `None` at its end, or that of
/// `bits`.
///
/// The first 24 codes of matches and the end have seven bits, the rest and most literals have eight.
pub(in super::super) fn read_fixed(bits: &mut Bits<'_>) -> Option<Fixed> {
    bits.refill();
    let code = (bits.peek(9).reverse_bits() >> (64 - 9)) as usize; // the first bit is the highest
    let (number, len) = match code >> 1 {
        byte @ 0..0x30 => (byte >> 1, 7),
        byte @ 0xC0..0xC8 => (byte - 0xC0 + 24, 8),
        byte => {
            bits.take(if byte < 0xC0 { 8 } else { 9 })?;
            return Some(Fixed::Literal);
        }
    };
    bits.take(len)?;
    let extra = match number {
        0 => return None,
        1..=LENGTHS => length(number as u32 - 1).1, // below 29
        _ => 0,
    };
    bits.take(extra)?;
    let distance_symbol = (bits.take(5)?.reverse_bits() >> (64 - 5)) as usize; // five bits
    bits.take((distance_symbol as u32 / 2).saturating_sub(1))?;
    Some(Fixed::Match { distance_symbol })
}

/// Reads the lengths of the codes of a block; `None` if they make no sense.
pub(in super::super) fn read_lengths(bits: &mut Bits<'_>) -> Option<Lengths> {
    bits.refill();
    let nsymbols = bits.take(5)? as usize + END + 1; // up to 5 bits each
    let ndistances = bits.take(5)? as usize + 1;
    let nruns = bits.take(4)? as usize + 4;
    if nsymbols > USED_SYMBOLS || ndistances > USED_DISTANCES {
        return None;
    }
    let mut run_lengths = [0; RUNS];
    for &run in &RUN_ORDER[..nruns] {
        bits.refill();
        run_lengths[run] = bits.take(3)? as u8; // below 8
    }
    let mut all = [0; MAX_LENGTHS + AT_ONCE];
    read_runs(&run_table(&run_lengths)?, bits, nsymbols + ndistances, &mut all)?;
    let mut lengths = Lengths { symbols: [0; SYMBOLS], distances: [0; DISTANCES] };
    let (symbols, distances) = all.split_at(nsymbols);
    lengths.symbols[..nsymbols].copy_from_slice(symbols);
    lengths.distances[..ndistances].copy_from_slice(&distances[..ndistances]);
    (lengths.symbols[END] > 0).then_some(lengths)
}

/// The most lengths of codes that a header has.
const MAX_LENGTHS: usize = USED_SYMBOLS + USED_DISTANCES;
/// As many are written at once, more than any run has that is not of zeros.
const AT_ONCE: usize = 8;
/// Runs between two refills: each takes at most 14 bits.
const RUNS_PER_REFILL: usize = 4;

/// Reads `n` lengths to the front of `all`, which is zero; what is after them has no meaning afterwards. `None` if a
/// run goes further, or has nothing to repeat, or the input ends.
fn read_runs(
    runs: &Runs,
    bits: &mut Bits<'_>,
    n: usize,
    all: &mut [u8; MAX_LENGTHS + AT_ONCE],
) -> Option<()> {
    let (mut at, mut last) = (0, 0);
    while at < n {
        bits.refill();
        for _ in 0..RUNS_PER_REFILL {
            let run = runs[bits.peek(MAX_RUN_CODE) as usize]; // of as many bits as there are entries for
            let times = run.times(bits.buffer);
            bits.take(run.nbits())?;
            if at == 0 && run.is_repetition() {
                return None;
            }
            last = run.length(last);
            // What this writes too much, the next one overwrites; of longer runs, the rest is zero already.
            all[at..at + AT_ONCE].copy_from_slice(&[last; AT_ONCE]);
            at += times;
            if at >= n {
                break;
            }
        }
    }
    (at == n).then_some(())
}

/// What the next seven bits stand for.
type Runs = [Run; 1 << MAX_RUN_CODE];

/// What one code stands for: the length of a symbol's code, once or several times.
///
/// | bits | meaning |
/// |---|---|
/// | 0-7 | bits of the code and of the number after it |
/// | 8-15 | bits of the code alone |
/// | 16-22 | the length |
/// | 23 | set if it is the last length again |
/// | 24-31 | how many times it comes: this, and the number after the code |
#[derive(Clone, Copy)]
struct Run(u32);

const REPETITION: u32 = 1 << 23;

impl Run {
    /// The run of a code of `len` bits.
    fn new(symbol: u16, len: u32) -> Run {
        let (length, times, extra) = match u32::from(symbol) {
            16 => (REPETITION, 3, 2),
            17 => (0, 3, 3),
            18 => (0, 11, 7),
            length => (length << 16, 1, 0),
        };
        Run((len + extra) | len << 8 | length | times << 24)
    }

    #[inline(always)]
    fn nbits(self) -> u32 {
        self.0 & 0xff
    }

    /// Whether this is the last length again.
    #[inline(always)]
    fn is_repetition(self) -> bool {
        self.0 & REPETITION != 0
    }

    /// The length if the one before is `last`.
    #[inline(always)]
    fn length(self, last: u8) -> u8 {
        if self.is_repetition() { last } else { (self.0 >> 16) as u8 } // a byte
    }

    /// How many times the length comes, given `bits`, which begin with the code.
    #[inline(always)]
    fn times(self, bits: u64) -> usize {
        let extra = (bits & ((1 << self.nbits()) - 1)) >> (self.0 >> 8 & 0xff);
        (self.0 >> 24) as usize + extra as usize // below 128
    }
}

/// The table of runs for codes of these lengths; `None` unless each seven bits stand for something.
fn run_table(lengths: &[u8; RUNS]) -> Option<Runs> {
    let codes = table::Sorted::<RUNS>::new(lengths)?;
    if !codes.is_complete() {
        return None;
    }
    let mut runs = [Run(0); 1 << MAX_RUN_CODE];
    let nbits = codes.longest();
    table::fill_main(&codes, &mut runs, nbits, Run::new);
    table::grow(&mut runs, nbits, MAX_RUN_CODE);
    Some(runs)
}
