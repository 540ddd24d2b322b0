//! What comes before the data of a block: its kind, and the lengths of its codes.

use super::bits::Bits;
use super::table::{self, DISTANCES, Lengths, SYMBOLS};

/// The symbol of the end of a block.
pub(super) const END: usize = 256;
/// Of these numbers of symbols, the last ones stand for nothing, and lengths of codes are not told for them.
const MAX_TOLD: usize = 286;
const MAX_TOLD_DISTANCES: usize = 30;
/// Lengths of codes, three ways to repeat them, and their order in the header of a block.
const RUNS: usize = 19;
const ORDER: [usize; RUNS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The longest codes for lengths of codes.
const MAX_RUN_CODE: u32 = 7;

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
    let kind = match bits.take(2)? {
        0 => Kind::Raw,
        1 => Kind::Fixed,
        2 => Kind::Dynamic,
        _ => return None,
    };
    Some((is_last, kind))
}

/// The lengths of the codes that need not be told.
pub(super) fn fixed_lengths() -> Lengths {
    let mut lengths = Lengths { symbols: [8; SYMBOLS], distances: [5; DISTANCES] };
    lengths.symbols[144..256].fill(9);
    lengths.symbols[256..280].fill(7);
    lengths
}

/// Reads the lengths of the codes of a block; `None` if they make no sense.
pub(in super::super) fn read_lengths(bits: &mut Bits<'_>) -> Option<Lengths> {
    bits.refill();
    let nsymbols = bits.take(5)? as usize + END + 1; // up to 5 bits each
    let ndistances = bits.take(5)? as usize + 1;
    let nruns = bits.take(4)? as usize + 4;
    if nsymbols > MAX_TOLD || ndistances > MAX_TOLD_DISTANCES {
        return None;
    }
    let mut run_lengths = [0; RUNS];
    for &run in &ORDER[..nruns] {
        bits.refill();
        run_lengths[run] = bits.take(3)? as u8; // below 8
    }
    let runs = run_table(&run_lengths)?;

    let mut all = [0; MAX_TOLD + MAX_TOLD_DISTANCES];
    let all = &mut all[..nsymbols + ndistances];
    let mut at = 0;
    while at < all.len() {
        bits.refill();
        let (run, len) = runs[bits.peek(MAX_RUN_CODE) as usize]; // of as many bits as the table has entries for
        bits.take(len)?;
        let (value, times) = match run {
            16 => (all[at.checked_sub(1)?], 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            len => (len, 1),
        };
        let end = at + times as usize; // at most 138 more
        all.get_mut(at..end)?.fill(value);
        at = end;
    }
    let mut lengths = Lengths { symbols: [0; SYMBOLS], distances: [0; DISTANCES] };
    let (symbols, distances) = all.split_at(nsymbols);
    lengths.symbols[..nsymbols].copy_from_slice(symbols);
    lengths.distances[..ndistances].copy_from_slice(distances);
    (lengths.symbols[END] > 0).then_some(lengths)
}

/// What the next seven bits stand for, and the length of its code; `None` unless each seven bits stand for something.
fn run_table(lengths: &[u8; RUNS]) -> Option<[(u8, u32); 1 << MAX_RUN_CODE]> {
    let codes = table::Sorted::<RUNS>::new(lengths)?;
    if !codes.is_complete() {
        return None;
    }
    let mut runs = [(0, 0); 1 << MAX_RUN_CODE];
    for (symbol, code, len) in codes.iter() {
        // Symbols are below 19.
        runs[code..].iter_mut().step_by(1 << len).for_each(|entry| *entry = (symbol as u8, len));
    }
    Some(runs)
}
