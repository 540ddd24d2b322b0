//! The codes of a block: how long they are, and how they are told to the decoder.

use super::super::format::{
    DYNAMIC, END, FIXED, FIXED_DISTANCE, FIXED_SYMBOLS, MAX_CODE, MAX_RUN_CODE, RUN_ORDER, RUNS, SYMBOLS,
    TOLD_DISTANCES,
};
use super::bits::{BitWriter, Code};
use super::counts::Counts;
use super::sequence::{Distance, LENGTHS, Length, MIN_PIECE};
use super::token::{FIRST_LENGTH, NDISTANCES, NINDICES, Token};
use crate::error::Result;
use crate::memory::{Zero, zeroed_box};

/// The codes of a block.
pub(super) struct Codes {
    symbols: [Code; SYMBOLS],
    distances: [Code; TOLD_DISTANCES],
    /// What tells the codes to the decoder, unless they are the fixed ones.
    header: Header,
    is_fixed: bool,
    /// Size of the block with these codes, in bits.
    nbits: usize,
}

// SAFETY: integers, and a `bool`, which zero is a value of.
unsafe impl Zero for Codes {}

impl Codes {
    /// Makes the best codes for these counts.
    fn fit(&mut self, counts: &Counts) {
        let (mut symbols, mut distances) = ([0; SYMBOLS], [0; TOLD_DISTANCES]);
        code_lengths(&counts.symbols, MAX_CODE, &mut symbols);
        code_lengths(&counts.distances, MAX_CODE, &mut distances);
        self.header.fit(&symbols, &distances);
        self.is_fixed = false;
        assign(&symbols, &mut self.symbols);
        assign(&distances, &mut self.distances);
        self.nbits = 3 + self.header.nbits + data_bits(counts, &symbols, &distances) + counts.extra_bits;
    }

    /// The fixed codes.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    fn fixed() -> Result<Box<Codes>> {
        let mut codes = zeroed_box::<Codes>()?;
        codes.is_fixed = true;
        assign(&FIXED_SYMBOLS, &mut codes.symbols);
        assign(&FIXED_DISTANCES, &mut codes.distances);
        Ok(codes)
    }

    /// Takes these codes, which are the fixed ones, for a block with these counts.
    fn take(&mut self, counts: &Counts) {
        debug_assert!(self.is_fixed);
        self.nbits = 3 + data_bits(counts, &FIXED_SYMBOLS, &FIXED_DISTANCES) + counts.extra_bits;
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
        self.length_of(LENGTHS[len - MIN_PIECE])
    }

    #[inline(always)]
    fn length_of(&self, length: Length) -> Code {
        self.symbols[usize::from(length.symbol)].then(length.extra)
    }

    /// The code of a distance and the bits behind it.
    #[inline(always)]
    pub(super) fn distance(&self, distance: Distance) -> Code {
        let extra = Code::new(u32::from(distance.extra), distance.extra_len);
        self.distances[usize::from(distance.symbol)].then(extra)
    }
}

/// The codes that a block may take.
pub(super) struct Candidates {
    own: Box<Codes>,
    fixed: Box<Codes>,
    /// Size of the blocks since the stream began, if all of them had the fixed codes, in bits.
    fixed_bits: usize,
}

impl Candidates {
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn new() -> Result<Candidates> {
        Ok(Candidates { own: zeroed_box()?, fixed: Codes::fixed()?, fixed_bits: 0 })
    }

    /// Begins with a stream.
    pub(super) fn begin(&mut self) {
        self.fixed_bits = 0;
    }

    pub(super) fn fixed_bits(&self) -> usize {
        self.fixed_bits
    }

    /// The fixed codes, for a block with these counts.
    pub(super) fn fixed(&mut self, counts: &Counts) -> &Codes {
        self.fixed.take(counts);
        self.fixed_bits += self.fixed.nbits;
        &self.fixed
    }

    /// The best codes for a block with these counts.
    pub(super) fn best(&mut self, counts: &Counts) -> &Codes {
        self.suited(counts, 0)
    }

    /// The codes for a block with these counts: the best ones, or the fixed ones if the header of others costs more than they
    /// save. Others that seem to save less than `least_saved` bits are not even made.
    pub(super) fn suited(&mut self, counts: &Counts, least_saved: usize) -> &Codes {
        let fixed_bits = self.fixed(counts).nbits;
        if counts.least_bits() + least_saved < fixed_bits {
            self.own.fit(counts);
            if self.own.nbits < fixed_bits {
                return &self.own;
            }
        }
        &self.fixed
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
        for (code, &length) in codes[FIRST_LENGTH..].iter_mut().zip(&LENGTHS) {
            *code = self.length_of(length);
        }
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

/// Lengths of the codes of distances that need not be told.
static FIXED_DISTANCES: [u8; TOLD_DISTANCES] = [FIXED_DISTANCE; TOLD_DISTANCES];

/// Bits of all symbols with codes of these lengths.
fn data_bits(counts: &Counts, symbols: &[u8], distances: &[u8]) -> usize {
    let cost = |counts: &[u32], lengths: &[u8]| {
        counts.iter().zip(lengths).map(|(&n, &len)| n * u32::from(len)).sum()
    };
    let [symbols, distances]: [u32; 2] = [cost(&counts.symbols, symbols), cost(&counts.distances, distances)];
    symbols as usize + distances as usize
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
    runs: [(u8, Code); SYMBOLS + TOLD_DISTANCES],
    nruns: usize,
    nbits: usize,
}

impl Header {
    /// Makes the header for codes of these lengths.
    fn fit(&mut self, symbols: &[u8; SYMBOLS], distances: &[u8; TOLD_DISTANCES]) {
        let used = |lengths: &[u8]| lengths.iter().rposition(|&len| len > 0).map_or(0, |last| last + 1);
        let (nsymbols, ndistances) = (used(symbols).max(END + 1), used(distances).max(1));
        (self.nsymbols, self.ndistances, self.nruns) = (nsymbols, ndistances, 0);
        let mut counts = [0; RUNS];
        let mut all = [0; SYMBOLS + TOLD_DISTANCES];
        all[..nsymbols].copy_from_slice(&symbols[..nsymbols]);
        all[nsymbols..nsymbols + ndistances].copy_from_slice(&distances[..ndistances]);
        for run in all[..nsymbols + ndistances].chunk_by(|a, b| a == b) {
            self.add_run(run[0], run.len(), &mut counts);
        }
        let mut lengths = [0; RUNS];
        code_lengths(&counts, MAX_RUN_CODE as usize, &mut lengths); // 7
        assign(&lengths, &mut self.codes);
        self.nlengths =
            RUN_ORDER.iter().rposition(|&run| lengths[run] > 0).map_or(4, |last| (last + 1).max(4));
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
        for &run in &RUN_ORDER[..self.nlengths] {
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
    // Count and symbol in one number. In short blocks, whether a symbol occurs is as good as random.
    let mut leaves = [0; N];
    let mut n = 0;
    for (symbol, &count) in (0..).zip(counts) {
        leaves[n] = count << SYMBOL_BITS | symbol;
        n += usize::from(count > 0);
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

/// Makes the codes of these lengths, at most SYMBOLS, in the order that the format prescribes.
fn assign(lengths: &[u8], codes: &mut [Code]) {
    // Those of symbols that do not occur, in most blocks the most, are nothing.
    let mut used = [0_u16; SYMBOLS];
    let mut n = 0;
    for (symbol, &len) in (0..).zip(lengths) {
        used[n] = symbol;
        n += usize::from(len > 0);
    }
    let used = used[..n].iter().map(|&symbol| usize::from(symbol));
    let mut per_length = [0_u32; MAX_CODE + 1];
    used.clone().for_each(|symbol| per_length[usize::from(lengths[symbol])] += 1);
    let mut next = [0_u32; MAX_CODE + 1];
    for len in 1..=MAX_CODE {
        next[len] = (next[len - 1] + per_length[len - 1]) << 1;
    }
    codes.fill(Code::default());
    for symbol in used {
        let len = lengths[symbol];
        let bits = next[usize::from(len)];
        next[usize::from(len)] += 1;
        // Codes are written from their highest bit on.
        codes[symbol] = Code::new(bits.reverse_bits() >> (32 - u32::from(len)), len);
    }
}
