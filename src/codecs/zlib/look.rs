//! A look at the beginning of a stream before it is decoded: its raw blocks, and its first codes, which tell what its matches
//! are like.

#[cfg(test)]
mod tests;

/// Codes are at most so long.
const MAX_CODE: u32 = 15;
/// All symbols together, in the units of [`share`].
const ALL: u32 = 1 << MAX_CODE;
/// The symbol of the end of a block; lengths follow.
const END: usize = 256;
/// The symbol of the longest matches, and their length.
const LONGEST: usize = 285;
const MAX_LEN: u32 = 258;
/// Distances up to 16 use this many symbols, the first ones.
const NEAR: usize = 8;
/// Symbols of all kinds in a block, at most: their numbers have 5 bits.
const SYMBOLS: usize = END + 1 + 31 + 32;
/// Lengths of codes, three ways to repeat them, and their order in the header of a block.
const RUNS: usize = 19;
const ORDER: [usize; RUNS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The longest codes for lengths of codes.
const MAX_RUN_CODE: u32 = 7;
/// The type of a block with codes of its own, as its header has it.
const DYNAMIC: u32 = 2;

/// How many bytes are in the raw blocks that the zlib stream `src` begins with, but for its last block.
pub(super) fn raw_bytes(src: &[u8]) -> usize {
    let mut sum = 0;
    let mut blocks = src.get(2..).unwrap_or_default();
    while let [first, low, high, _, _, rest @ ..] = blocks {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let Some(behind) = rest.get(len..).filter(|_| first & 7 == 0) else { break };
        sum += len;
        blocks = behind;
    }
    sum
}

/// Whether the zlib stream `src` begins with a block in which matches are frequent and most repeat what is further back than
/// a few bytes, as in text, and not nearly all bytes come from long runs. No if there are no codes, or if they make no sense.
pub(super) fn has_many_far_matches(src: &[u8]) -> bool {
    let shares = src.get(2..).and_then(first_shares);
    shares.is_some_and(|shares| {
        shares.literals < ALL / 5 * 3 && shares.near < ALL / 5 && shares.longest < 4 * shares.others
    })
}

/// How often symbols occur, if the codes suit them.
#[derive(Debug, PartialEq, Eq)]
struct Shares {
    /// Of all symbols, those that are literals.
    literals: u32,
    /// Of all distances, the short ones.
    near: u32,
    /// Of as many symbols as [`ALL`]: how many bytes are in matches of the longest kind, and at least how many others.
    longest: u32,
    others: u32,
}

fn first_shares(deflated: &[u8]) -> Option<Shares> {
    let mut reader = BitReader { src: deflated, bits: 0, count: 0 };
    if reader.take(3) >> 1 != DYNAMIC {
        return None;
    }
    let nsymbols = reader.take(5) as usize + END + 1;
    let n = nsymbols + reader.take(5) as usize + 1;
    let nruns = reader.take(4) as usize + 4;
    let mut run_lengths = [0; RUNS];
    ORDER[..nruns].iter().for_each(|&run| run_lengths[run] = reader.take(3) as u8); // below 8
    let table = run_table(&run_lengths);
    let mut lengths = [0_u8; SYMBOLS];
    let mut at = 0;
    while at < n {
        let (run, len) = table[reader.peek(MAX_RUN_CODE) as usize];
        if len == 0 {
            return None;
        }
        reader.skip(len);
        let (value, times) = match run {
            16 => (lengths[at.checked_sub(1)?], 3 + reader.take(2)),
            17 => (0, 3 + reader.take(3)),
            18 => (0, 11 + reader.take(7)),
            len => (len, 1),
        };
        let end = at + times as usize;
        lengths.get_mut(at..end)?.fill(value);
        at = end;
    }
    let sum = |lengths: &[u8]| lengths.iter().map(|&len| share(len)).sum::<u32>();
    let (symbols, distances) = lengths[..n].split_at(nsymbols);
    let literals = sum(&symbols[..END]);
    let matches = (END + 1..LONGEST).zip(&symbols[END + 1..]);
    Some(Shares {
        literals,
        near: sum(&distances[..distances.len().min(NEAR)]),
        longest: symbols.get(LONGEST).map_or(0, |&len| share(len) * MAX_LEN),
        others: literals + matches.map(|(symbol, &len)| share(len) * shortest(symbol)).sum::<u32>(),
    })
}

/// The shortest match that has this symbol, which is above END and below LONGEST.
fn shortest(symbol: usize) -> u32 {
    let n = (symbol - END - 1) as u32; // below 28
    if n < 8 { 3 + n } else { 3 + ((4 + n % 4) << (n / 4 - 1)) }
}

/// The share that a symbol has for which a code of this length is best.
fn share(len: u8) -> u32 {
    if len == 0 { 0 } else { ALL >> len }
}

/// What the next seven bits stand for, and the length of its code; 0 if there is none.
fn run_table(lengths: &[u8; RUNS]) -> [(u8, u32); 1 << MAX_RUN_CODE] {
    let mut table = [(0, 0); 1 << MAX_RUN_CODE];
    let mut next = 0_u32;
    for len in 1..=MAX_RUN_CODE {
        for (run, _) in (0..).zip(lengths).filter(|&(_, &length)| u32::from(length) == len) {
            // Codes are written from their highest bit on.
            let code = next.reverse_bits() >> (32 - len);
            table[code as usize..].iter_mut().step_by(1 << len).for_each(|entry| *entry = (run, len));
            next += 1;
        }
        next <<= 1;
    }
    table
}

/// Reads bits, the first one in the lowest bit of a byte. Zeros follow the end.
struct BitReader<'a> {
    src: &'a [u8],
    bits: u64,
    /// How many bits there are.
    count: u32,
}

impl BitReader<'_> {
    /// The next `n` bits, at most 32.
    fn peek(&mut self, n: u32) -> u32 {
        while self.count < n {
            let (byte, rest) = self.src.split_first().map_or((0, self.src), |(&byte, rest)| (byte, rest));
            self.src = rest;
            self.bits |= u64::from(byte) << self.count;
            self.count += 8;
        }
        (self.bits & ((1 << n) - 1)) as u32 // at most 32 bits are left
    }

    /// Goes on behind `n` bits that were looked at.
    fn skip(&mut self, n: u32) {
        self.bits >>= n;
        self.count -= n;
    }

    fn take(&mut self, n: u32) -> u32 {
        let bits = self.peek(n);
        self.skip(n);
        bits
    }
}
