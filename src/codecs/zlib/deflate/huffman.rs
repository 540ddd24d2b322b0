//! The codes of a block: how often they are needed, how long that makes them, and how they are told to the decoder.

use super::bits::{BitWriter, Code};
use super::sequence::{Distance, MIN_PIECE, Sequence};
use super::token::{FIRST_LENGTH, NDISTANCES, NINDICES, Tally, Token};
use crate::error::Result;
use crate::memory::{Zero, zeroed_box};

/// Literals, the end of the block, 29 lengths, and two that only take part in the fixed codes.
const SYMBOLS: usize = 288;
/// The symbol of the end of the block; lengths follow.
const END: usize = 256;
const DISTANCES: usize = 30;
/// Lengths of codes, three ways to repeat them, and their order in the header of a block.
const RUNS: usize = 19;
const ORDER: [usize; RUNS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The longest codes for data, and for lengths of codes.
const MAX_CODE: usize = 15;
const MAX_RUN_CODE: usize = 7;
/// Types of blocks, as their header has them.
const FIXED: u32 = 1;
const DYNAMIC: u32 = 2;

/// What a length is made of: a symbol above END, and bits behind it.
#[derive(Clone, Copy)]
struct LengthCode {
    symbol: u16,
    extra: Code,
}

/// The codes of the lengths from MIN_PIECE on.
static LENGTHS: [LengthCode; 256] = {
    let mut codes = [LengthCode { symbol: 0, extra: Code { bits: 0, len: 0 } }; 256];
    let (mut n, mut symbol) = (0, 257);
    while n < 255 {
        let extra_len = if symbol < 265 { 0 } else { (symbol - 261) as u8 / 4 };
        let mut bits = 0;
        while bits < 1 << extra_len && n < 255 {
            codes[n] = LengthCode { symbol, extra: Code { bits, len: extra_len } };
            (n, bits) = (n + 1, bits + 1);
        }
        symbol += 1;
    }
    // The longest one has a symbol of its own.
    codes[255] = LengthCode { symbol: 285, extra: Code { bits: 0, len: 0 } };
    codes
};

/// How often each symbol occurs in a block.
#[derive(Clone)]
pub(super) struct Counts {
    symbols: [u32; SYMBOLS],
    distances: [u32; DISTANCES],
    /// Bits behind the symbols.
    extra_bits: usize,
    /// Bytes that are in matches.
    match_bytes: usize,
}

// SAFETY: the fields are integers and arrays of them, for which zeros are a value.
unsafe impl Zero for Counts {}

/// From this many literals on, it pays to count them in several places.
const MANY_LITERALS: usize = 2048;

impl Counts {
    pub(super) fn new() -> Counts {
        Counts { symbols: [0; SYMBOLS], distances: [0; DISTANCES], extra_bits: 0, match_bytes: 0 }
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
}

impl Counts {
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
}

/// From this many literals on, they tell how long their codes will be.
const TELLING_LITERALS: u32 = 256;

impl Counts {
    /// Adds what was counted in the bytes behind.
    pub(super) fn add(&mut self, behind: &Counts) {
        self.symbols.iter_mut().zip(&behind.symbols).for_each(|(sum, n)| *sum += n);
        self.symbols[END] = 1;
        self.distances.iter_mut().zip(&behind.distances).for_each(|(sum, n)| *sum += n);
        self.extra_bits += behind.extra_bits;
        self.match_bytes += behind.match_bytes;
    }

    /// About how many bits the symbols take with the codes that suit them best, without those behind them.
    pub(super) fn entropy(&self) -> usize {
        ((entropy(&self.symbols) + entropy(&self.distances)) >> LOG_FRACTION) as usize
    }

    /// About how many bits a literal takes, in sixteenths; `None` if there are too few to tell.
    pub(super) fn literal_bits(&self) -> Option<usize> {
        let literals = &self.symbols[..END];
        (literals.iter().sum::<u32>() >= TELLING_LITERALS).then(|| literal_bits(literals))
    }
}

/// Below so many bits, in sixteenths, literals take more than their entropy, since each takes one and there is an end as
/// well.
const FEW_BITS: usize = 40;

/// About how many bits a literal takes if they occur as often as this, in sixteenths. There are some.
pub(super) fn literal_bits(counts: &[u32]) -> usize {
    let n = counts.iter().sum::<u32>();
    let bits = (entropy(counts) / n) as usize >> (LOG_FRACTION - 4);
    if bits >= FEW_BITS {
        return bits;
    }
    let mut symbols = [0; END + 1];
    symbols[..counts.len()].copy_from_slice(counts);
    symbols[END] = 1;
    let mut lengths = [0; END + 1];
    code_lengths(&symbols, MAX_CODE, &mut lengths);
    let sum: usize = counts.iter().zip(lengths).map(|(&n, len)| n as usize * usize::from(len)).sum();
    16 * sum / n as usize
}

/// About how many bits a short stream of these bytes takes without matches: itself, its header and that of its block, and
/// what the latter tells of each value that there is.
pub(in super::super) fn coded_bits(bytes: &[u8]) -> usize {
    const FRAME: usize = 48 + 70;
    const VALUE: usize = 7;
    let mut counts = [0; END];
    bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let nvalues = counts.iter().filter(|&&count| count > 0).count();
    FRAME + VALUE * nvalues + (entropy(&counts) >> LOG_FRACTION) as usize
}

/// The logarithms have this many bits behind the point.
const LOG_FRACTION: u32 = 8;

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

/// The codes of a block.
pub(super) struct Codes {
    symbols: [Code; SYMBOLS],
    distances: [Code; DISTANCES],
    /// Lengths from MIN_PIECE on, with the bits behind.
    lengths: [Code; 256],
    /// What tells the codes to the decoder, unless they are the fixed ones.
    header: Header,
    is_fixed: bool,
    /// Size of the block with these codes, in bits.
    nbits: usize,
}

// SAFETY: integers, and a `bool`, which zero is a value of.
unsafe impl Zero for Codes {}

impl Codes {
    /// Makes the best codes for these counts, or takes the fixed ones if the header would cost more than it saves.
    pub(super) fn fit(&mut self, counts: &Counts) {
        let (mut symbols, mut distances) = ([0; SYMBOLS], [0; DISTANCES]);
        code_lengths(&counts.symbols, MAX_CODE, &mut symbols);
        code_lengths(&counts.distances, MAX_CODE, &mut distances);
        self.header.fit(&symbols, &distances);
        let saved = data_bits(counts, &FIXED_SYMBOLS, &FIXED_DISTANCES)
            .saturating_sub(data_bits(counts, &symbols, &distances));
        self.is_fixed = saved <= self.header.nbits;
        if self.is_fixed {
            (symbols, distances) = (FIXED_SYMBOLS, FIXED_DISTANCES);
        }
        self.assign(&symbols, &distances);
        let data = data_bits(counts, &symbols, &distances) + counts.extra_bits;
        self.nbits = 3 + data + if self.is_fixed { 0 } else { self.header.nbits };
    }

    /// The fixed codes.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn fixed() -> Result<Box<Codes>> {
        let mut codes = zeroed_box::<Codes>()?;
        codes.is_fixed = true;
        codes.assign(&FIXED_SYMBOLS, &FIXED_DISTANCES);
        Ok(codes)
    }

    /// Takes the fixed codes, which these are, for a block with these counts.
    pub(super) fn take(&mut self, counts: &Counts) {
        debug_assert!(self.is_fixed);
        self.nbits = 3 + data_bits(counts, &FIXED_SYMBOLS, &FIXED_DISTANCES) + counts.extra_bits;
    }

    /// Makes the codes of these lengths.
    fn assign(&mut self, symbols: &[u8; SYMBOLS], distances: &[u8; DISTANCES]) {
        assign(symbols, &mut self.symbols);
        assign(distances, &mut self.distances);
        for (code, length) in self.lengths.iter_mut().zip(&LENGTHS) {
            *code = self.symbols[usize::from(length.symbol)].then(length.extra);
        }
    }

    /// Size of the block.
    pub(super) fn nbits(&self) -> usize {
        self.nbits
    }

    /// Writes what comes before the data of a block.
    pub(super) fn write_header(&self, is_last: bool, out: &mut BitWriter<'_>) {
        let kind = if self.is_fixed { FIXED } else { DYNAMIC };
        out.put(Code::new(u32::from(is_last) | kind << 1, 3));
        if !self.is_fixed {
            self.header.write(out);
        }
        out.flush();
    }

    /// The code of a literal.
    #[inline(always)]
    pub(super) fn literal(&self, byte: u8) -> Code {
        self.symbols[usize::from(byte)]
    }

    /// The code that ends the block.
    pub(super) fn end_of_block(&self) -> Code {
        self.symbols[END]
    }

    /// The code of a length and the bits behind it.
    #[inline(always)]
    pub(super) fn length(&self, len: usize) -> Code {
        self.lengths[len - MIN_PIECE]
    }

    /// The code of a distance and the bits behind it.
    #[inline(always)]
    pub(super) fn distance(&self, distance: Distance) -> Code {
        let extra = Code::new(u32::from(distance.extra), distance.extra_len);
        self.distances[usize::from(distance.symbol)].then(extra)
    }
}

/// The code of a distance without the bits behind it.
#[derive(Clone, Copy, Default)]
struct DistanceCode {
    bits: u16,
    len: u8,
    /// Length of both together.
    total: u8,
}

impl Codes {
    /// Writes tokens, and the end of the block.
    pub(super) fn write_tokens(&self, tokens: &[Token], out: &mut BitWriter<'_>) {
        let mut codes = [Code::default(); NINDICES];
        codes[..FIRST_LENGTH].copy_from_slice(&self.symbols[..FIRST_LENGTH]);
        codes[FIRST_LENGTH..].copy_from_slice(&self.lengths);
        // That of none is empty.
        let mut distances = [DistanceCode::default(); NDISTANCES];
        for (symbol, (distance, code)) in distances.iter_mut().zip(&self.distances).enumerate() {
            let (bits, len) = (code.bits as u16, code.len); // codes have at most 15 bits
            *distance = DistanceCode { bits, len, total: len + Distance::extra_len(symbol) };
        }
        let code = |token: Token| {
            let (code, distance) = (codes[token.index()], distances[token.distance()]);
            let behind = u64::from(distance.bits) | token.extra() << distance.len;
            (u64::from(code.bits) | behind << code.len, code.len + distance.total)
        };
        // Most of the time, two of them fit behind the seven bits that may be left. Any one does.
        let mut pairs = tokens.chunks_exact(2);
        for pair in &mut pairs {
            let ((first, first_len), (second, second_len)) = (code(pair[0]), code(pair[1]));
            out.put_bits(first, first_len);
            if first_len + second_len > 56 {
                out.flush();
            }
            out.put_bits(second, second_len);
            out.flush();
        }
        for &token in pairs.remainder() {
            let (bits, len) = code(token);
            out.put_bits(bits, len);
            out.flush();
        }
        out.put(self.end_of_block());
        out.flush();
    }
}

/// Lengths of the codes that need not be told.
static FIXED_SYMBOLS: [u8; SYMBOLS] = {
    let mut lengths = [8; SYMBOLS];
    let mut symbol = 144;
    while symbol < 280 {
        lengths[symbol] = if symbol < 256 { 9 } else { 7 };
        symbol += 1;
    }
    lengths
};
static FIXED_DISTANCES: [u8; DISTANCES] = [5; DISTANCES];

/// Bits of all symbols with codes of these lengths.
fn data_bits(counts: &Counts, symbols: &[u8], distances: &[u8]) -> usize {
    let cost = |counts: &[u32], lengths: &[u8]| -> usize {
        counts.iter().zip(lengths).map(|(&n, &len)| n as usize * usize::from(len)).sum()
    };
    cost(&counts.symbols, symbols) + cost(&counts.distances, distances)
}

/// The lengths of the codes of a block, in short.
struct Header {
    /// Numbers of lengths that are told: of symbols, distances, and of the codes for the lengths themselves.
    nsymbols: usize,
    ndistances: usize,
    nlengths: usize,
    /// Codes for lengths and repetitions.
    codes: [Code; RUNS],
    /// What is coded, with the bits behind: the first `nruns` count.
    runs: [(u8, Code); SYMBOLS + DISTANCES],
    nruns: usize,
    nbits: usize,
}

impl Header {
    /// Makes the header for codes of these lengths.
    fn fit(&mut self, symbols: &[u8; SYMBOLS], distances: &[u8; DISTANCES]) {
        let used = |lengths: &[u8]| lengths.iter().rposition(|&len| len > 0).map_or(0, |last| last + 1);
        let (nsymbols, ndistances) = (used(symbols).max(END + 1), used(distances).max(1));
        (self.nsymbols, self.ndistances, self.nruns) = (nsymbols, ndistances, 0);
        let mut counts = [0; RUNS];
        let mut all = [0; SYMBOLS + DISTANCES];
        all[..nsymbols].copy_from_slice(&symbols[..nsymbols]);
        all[nsymbols..nsymbols + ndistances].copy_from_slice(&distances[..ndistances]);
        for run in all[..nsymbols + ndistances].chunk_by(|a, b| a == b) {
            self.add_run(run[0], run.len(), &mut counts);
        }
        let mut lengths = [0; RUNS];
        code_lengths(&counts, MAX_RUN_CODE, &mut lengths);
        assign(&lengths, &mut self.codes);
        self.nlengths = ORDER.iter().rposition(|&run| lengths[run] > 0).map_or(4, |last| (last + 1).max(4));
        let coded = &self.runs[..self.nruns];
        let cost = |&(run, extra): &(u8, Code)| usize::from(lengths[usize::from(run)] + extra.len);
        self.nbits = 14 + 3 * self.nlengths + coded.iter().map(cost).sum::<usize>();
    }

    /// Adds `n` times the length `len`.
    fn add_run(&mut self, len: u8, mut n: usize, counts: &mut [u32; RUNS]) {
        let mut push = |run: u8, extra: Code| {
            counts[usize::from(run)] += 1;
            self.runs[self.nruns] = (run, extra);
            self.nruns += 1;
        };
        if len > 0 {
            push(len, Code::default());
            n -= 1;
        }
        // Which code repeats, how often at least, and the size of the number behind it.
        let repetitions: &[(u8, usize, u8)] =
            if len > 0 { &[(16, 3, 2)] } else { &[(18, 11, 7), (17, 3, 3)] };
        for &(run, least, extra_len) in repetitions {
            while n >= least {
                let more = (n - least).min((1 << extra_len) - 1);
                push(run, Code::new(more as u32, extra_len)); // below 128
                n -= least + more;
            }
        }
        (0..n).for_each(|_| push(len, Code::default()));
    }

    fn write(&self, out: &mut BitWriter<'_>) {
        // All of these are small, as the format wants them.
        out.put(Code::new((self.nsymbols - END - 1) as u32, 5));
        out.put(Code::new((self.ndistances - 1) as u32, 5));
        out.put(Code::new((self.nlengths - 4) as u32, 4));
        out.flush();
        for &run in &ORDER[..self.nlengths] {
            out.put(Code::new(u32::from(self.codes[run].len), 3));
            out.flush();
        }
        for &(run, extra) in &self.runs[..self.nruns] {
            out.put(self.codes[usize::from(run)].then(extra));
            out.flush();
        }
    }
}

/// The lengths, up to `max`, of a prefix code that is best for these counts, or nearly so where `max` hurts. Symbols that
/// do not occur get none; a single one gets a code of one bit. Counts are below 2^22.
pub(super) fn code_lengths<const N: usize>(counts: &[u32; N], max: usize, lengths: &mut [u8; N]) {
    lengths.fill(0);
    // Count and symbol in one number.
    let mut leaves = [0; N];
    let mut n = 0;
    for (symbol, &count) in (0..).zip(counts).filter(|&(_, &count)| count > 0) {
        leaves[n] = count << SYMBOL_BITS | symbol;
        n += 1;
    }
    let leaves = &mut leaves[..n];
    leaves.sort_unstable();
    let mut per_length = [0; MAX_CODE + 1];
    match n {
        0 => return,
        1 => per_length[1] = 1,
        _ => count_depths::<N>(leaves, max, &mut per_length),
    }
    // The rarest ones get the longest.
    let mut len = max;
    for &leaf in leaves.iter() {
        while per_length[len] == 0 {
            len -= 1;
        }
        per_length[len] -= 1;
        lengths[(leaf & ((1 << SYMBOL_BITS) - 1)) as usize] = len as u8; // at most 15
    }
}

/// Symbols are below 2^SYMBOL_BITS.
const SYMBOL_BITS: u32 = 9;

/// Counts how many of the leaves, the lightest first, lie how deep in a Huffman tree, of which none is deeper than `max`.
fn count_depths<const N: usize>(leaves: &[u32], max: usize, per_length: &mut [u32; MAX_CODE + 1]) {
    let n = leaves.len();
    // Inner nodes are made in the order of their weight, so the two lightest nodes are always at the front of the leaves
    // or of the inner nodes.
    let mut weights = [0_u32; N];
    let (mut leaf_parents, mut inner_parents) = ([0_u16; N], [0_u16; N]);
    let (mut leaf, mut inner) = (0, 0);
    for made in 0..n - 1 {
        for _ in 0..2 {
            let parent = made as u16; // below 288
            if leaf < n && (inner == made || leaves[leaf] >> SYMBOL_BITS <= weights[inner]) {
                weights[made] += leaves[leaf] >> SYMBOL_BITS;
                leaf_parents[leaf] = parent;
                leaf += 1;
            } else {
                weights[made] += weights[inner];
                inner_parents[inner] = parent;
                inner += 1;
            }
        }
    }
    // The last one is the root.
    let mut depths = [0_u16; N];
    for node in (0..n - 2).rev() {
        depths[node] = depths[usize::from(inner_parents[node])] + 1;
    }
    for &parent in &leaf_parents[..n] {
        per_length[usize::from(depths[usize::from(parent)] + 1).min(max)] += 1;
    }
    // Cut at `max`, there are too many codes: put one of them beside another that is shorter, until they fit.
    let mut taken: u32 = (1..=max).map(|len| per_length[len] << (max - len)).sum();
    while taken > 1 << max {
        let shorter = (1..max).rev().find(|&len| per_length[len] > 0).expect("or all codes would fit");
        per_length[max] -= 1;
        per_length[shorter] -= 1;
        per_length[shorter + 1] += 2;
        taken -= 1;
    }
}

/// Makes the codes of these lengths, in the order that the format prescribes.
fn assign(lengths: &[u8], codes: &mut [Code]) {
    let mut per_length = [0_u32; MAX_CODE + 1];
    lengths.iter().for_each(|&len| per_length[usize::from(len)] += 1);
    per_length[0] = 0;
    let mut next = [0_u32; MAX_CODE + 1];
    for len in 1..=MAX_CODE {
        next[len] = (next[len - 1] + per_length[len - 1]) << 1;
    }
    for (code, &len) in codes.iter_mut().zip(lengths) {
        let bits = next[usize::from(len)];
        next[usize::from(len)] += u32::from(len > 0);
        // Codes are written from their highest bit on.
        *code = Code::new(bits.reverse_bits().checked_shr(32 - u32::from(len)).unwrap_or(0), len);
    }
}
