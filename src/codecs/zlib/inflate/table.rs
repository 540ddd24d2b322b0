//! Tables that tell what the next bits of a block stand for: one for literals, matches and the end, one for distances.
//!
//! Codes that are longer than the main part of a table has bits go on in a part of their own. Where literals have short
//! codes, an entry holds as many of them as its bits tell, up to six: what limits a decoder is how long it takes until
//! it knows where the next look-up begins.

use super::super::format::{
    DISTANCES, END, FIXED_DISTANCE, FIXED_SYMBOLS, LONGEST, MAX_CODE, SYMBOLS, length,
};
use crate::error::Result;
use crate::memory::{Zero, zeroed_box};

/// How many bits the main part of a table looks at.
pub(super) const SYMBOL_BITS: u32 = 11;
pub(super) const DISTANCE_BITS: u32 = 8;
/// The most entries that codes for this many symbols, of this many bits, can need.
const SYMBOL_ENTRIES: usize = 2342;
const DISTANCE_ENTRIES: usize = 402;

/// Lengths of all codes of a block.
pub(in super::super) struct Lengths {
    pub(in super::super) symbols: [u8; SYMBOLS],
    pub(in super::super) distances: [u8; DISTANCES],
}

impl Lengths {
    /// Those of the fixed codes.
    fn fixed() -> Lengths {
        Lengths { symbols: FIXED_SYMBOLS, distances: [FIXED_DISTANCE; DISTANCES] }
    }
}

/// Codes by their lengths.
pub(super) struct Sorted<const N: usize> {
    /// How many there are of each length.
    counts: [u16; MAX_CODE + 1],
    /// The symbols that have codes, those with shorter ones first.
    symbols: [u16; N],
    /// The share of all bits that stand for something, in units of 2^-MAX_CODE.
    used: u32,
}

impl<const N: usize> Sorted<N> {
    /// The codes of these lengths, which are at most MAX_CODE; `None` if there are more than can be.
    pub(super) fn new(lengths: &[u8; N]) -> Option<Sorted<N>> {
        let counts = count_lengths(lengths);
        let mut starts = [0_u16; MAX_CODE + 1];
        let mut used = 0;
        for len in 1..MAX_CODE {
            starts[len + 1] = starts[len] + counts[len];
            used += u32::from(counts[len]) << (MAX_CODE - len);
        }
        used += u32::from(counts[MAX_CODE]);
        // Those without a code go after the others: a branch would often go wrong.
        starts[0] = starts[MAX_CODE] + counts[MAX_CODE];
        let mut symbols = [0; N];
        let mut first = 0;
        for some in lengths.chunks(AT_ONCE) {
            if !are_zero(some) {
                for (symbol, &len) in (first..).zip(some) {
                    let place = &mut starts[usize::from(len) % (MAX_CODE + 1)];
                    symbols[usize::from(*place)] = symbol;
                    *place += 1;
                }
            }
            first += AT_ONCE as u16; // 8
        }
        (used <= 1 << MAX_CODE).then_some(Sorted { counts, symbols, used })
    }

    /// Whether any bits stand for something.
    pub(super) fn is_complete(&self) -> bool {
        self.used == 1 << MAX_CODE
    }

    /// Whether there is one code, of one bit, or none.
    fn is_trivial(&self) -> bool {
        self.used == 0 || (self.counts[1] == 1 && self.used == 1 << (MAX_CODE - 1))
    }

    /// The length of the longest code, and 1 if there is none.
    pub(super) fn longest(&self) -> u32 {
        (1..=MAX_CODE as u32).rev().find(|&len| self.counts[len as usize] > 0).unwrap_or(1)
    }
}

/// This many lengths are looked at together, as many of them are often zero.
const AT_ONCE: usize = 8;

fn are_zero(lengths: &[u8]) -> bool {
    lengths.try_into().is_ok_and(|lengths| u64::from_le_bytes(lengths) == 0)
}

/// How many of these lengths, except 0, there are.
pub(in super::super) fn count_lengths(lengths: &[u8]) -> [u16; MAX_CODE + 1] {
    // Incrementing the same number twice in a row takes long.
    let (mut counts, mut others) = ([0; MAX_CODE + 1], [0; MAX_CODE + 1]);
    for some in lengths.chunks(AT_ONCE).filter(|some| !are_zero(some)) {
        for pair in some.chunks(2) {
            counts[usize::from(pair[0]) % (MAX_CODE + 1)] += 1;
            others[usize::from(pair.get(1).copied().unwrap_or(0)) % (MAX_CODE + 1)] += 1;
        }
    }
    counts.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
    counts[0] = 0;
    counts
}

/// Codes of growing lengths, one after the other.
///
/// A code begins with its highest bit in this number, and with its lowest one in the bits of a block.
pub(super) struct NextCode(u32);

impl NextCode {
    /// The next code, of `len` bits, as the bits of a block.
    #[inline(always)]
    fn take(&mut self, len: u32) -> usize {
        let code = self.0.reverse_bits();
        self.0 = self.0.wrapping_add(1 << (32 - len)); // 0 after the last one
        code as usize
    }
}

/// What some bits of a block stand for, in the table of symbols: one to six literals, a length, the end of the block,
/// or nothing; or a part of the table, where codes go on that are longer than these bits.
///
/// | bits | of literals | of others |
/// |---|---|---|
/// | 0-7 | bits of their codes | bits of the code, and of the number after that of a length |
/// | 8-10 | the literals, up to bit 55 | which one of the others it is; none is set for a length |
/// | 16-31 | | the smallest length, or where the part starts |
/// | 32-39 | | bits of the code alone, or how many bits the codes of the part have more, at most |
/// | 56-62 | number of literals | |
/// | 63 | 0 | 1 |
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Symbol(u64);

const NOT_LITERALS: u64 = 1 << 63;
const IS_PART: u64 = 1 << 8;
const IS_END: u64 = 1 << 9;
const IS_NOTHING: u64 = 1 << 10;
const ONE_LITERAL: u64 = 1 << 56;
/// The most literals of an entry, and where they are.
const MAX_LITERALS: usize = 6;
const LITERALS: u64 = 0x00ff_ffff_ffff_ff00;

impl Symbol {
    const NOTHING: Symbol = Symbol(NOT_LITERALS | IS_NOTHING);
    const NO_LITERALS: Symbol = Symbol(0);

    /// The symbol of a code of `len` bits.
    #[inline(always)]
    fn new(symbol: u16, len: u32) -> Symbol {
        let base = BASES[usize::from(symbol)];
        let len = u64::from(len);
        // It has a place of its own if this is no literal.
        Symbol(base.0 + (len | ((base.0 >> 63) * len) << 32))
    }

    /// The symbol without the bits of its code.
    const fn base(symbol: usize) -> Symbol {
        match symbol {
            0..END => Symbol((symbol as u64) << 8 | ONE_LITERAL),
            END => Symbol(NOT_LITERALS | IS_END),
            _ if symbol <= LONGEST => {
                let (base, extra) = length((symbol - END - 1) as u32); // below 29
                Symbol(extra as u64 | NOT_LITERALS | (base as u64) << 16)
            }
            _ => Symbol::NOTHING,
        }
    }

    /// Where codes go on that begin with the same bits, as many as the main part has.
    fn part(start: usize, nbits: u32) -> Symbol {
        Symbol(
            u64::from(SYMBOL_BITS) | NOT_LITERALS | IS_PART | (start as u64) << 16 | u64::from(nbits) << 32,
        )
    }

    /// How many bits this takes, in the lowest six bits; what is above has no meaning.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0 as u32 // the lowest bits stay
    }

    /// How many bits this takes.
    #[inline(always)]
    pub(super) fn nbits(self) -> u32 {
        self.bits() & 0x3f
    }

    /// Whether this is one literal or more.
    #[inline(always)]
    pub(super) fn is_literals(self) -> bool {
        self.0 & NOT_LITERALS == 0
    }

    /// The number of literals, if this is one or more: the first of [`literals`](Self::literals).
    #[inline(always)]
    pub(super) fn nliterals(self) -> usize {
        (self.0 >> 56) as usize // a byte
    }

    /// The literals, as many as [`nliterals`](Self::nliterals) says, at the front.
    #[inline(always)]
    pub(super) fn literals(self) -> [u8; 8] {
        (self.0 >> 8).to_le_bytes()
    }

    /// Whether this, which is not literals, is a length.
    #[inline(always)]
    pub(super) fn is_length(self) -> bool {
        self.0 & (IS_PART | IS_END | IS_NOTHING) == 0
    }

    /// Whether this, which is not literals, is a part of the table.
    #[inline(always)]
    pub(super) fn is_part(self) -> bool {
        self.0 & IS_PART != 0
    }

    /// Whether this, which is not literals, is the end of the block.
    #[inline(always)]
    pub(super) fn is_end(self) -> bool {
        self.0 & IS_END != 0
    }

    /// The length that this and `bits`, which begin with its code, stand for: 3 to 258.
    #[inline(always)]
    pub(super) fn length(self, bits: u64) -> usize {
        let extra = (bits & ((1 << self.nbits()) - 1)) >> (self.0 >> 32 & 0x3f);
        (self.0 >> 16 & 0xffff) as usize + extra as usize
    }

    /// This literal, and those `behind` it, which have a place left; nothing if this is no literal, or has more bits
    /// than there are, so that `rest` is 0.
    #[inline(always)]
    fn and_behind(self, behind: Symbol, rest: usize) -> Symbol {
        let all = self.0 + (behind.0 & !LITERALS) + ((behind.0 & LITERALS) << 8);
        // A branch would often go wrong.
        let is_there = self.is_literals() & (rest > 0);
        Symbol(all & u64::from(is_there).wrapping_neg())
    }
}

/// All symbols, without the bits of their codes.
static BASES: [Symbol; SYMBOLS] = {
    let mut bases = [Symbol::NOTHING; SYMBOLS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        bases[symbol] = Symbol::base(symbol);
        symbol += 1;
    }
    bases
};

/// What some bits of a block stand for, in the table of distances: a distance or nothing; or a part of the table, where
/// codes go on that are longer than these bits.
///
/// | bits | of a distance | of a part |
/// |---|---|---|
/// | 0-7 | bits of the code and of the number after it | bits of the code so far |
/// | 8-15 | bits of the code alone | how many bits its codes have more, at most |
/// | 16-30 | the smallest distance | where it starts |
/// | 31 | 0 | 1, as of what stands for nothing |
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Distance(u32);

const NO_DISTANCE: u32 = 1 << 31;

impl Distance {
    pub(super) const NOTHING: Distance = Distance(NO_DISTANCE);

    /// The symbol of a code of `len` bits.
    fn new(symbol: u16, len: u32) -> Distance {
        let symbol = u32::from(symbol);
        let (base, extra) = match symbol {
            0..4 => (1 + symbol, 0),
            4..30 => (1 + ((2 + symbol % 2) << (symbol / 2 - 1)), symbol / 2 - 1),
            _ => return Distance::NOTHING,
        };
        Distance((len + extra) | len << 8 | base << 16)
    }

    fn part(start: usize, nbits: u32) -> Distance {
        Distance(NO_DISTANCE | DISTANCE_BITS | nbits << 8 | (start as u32) << 16)
    }

    /// How many bits this takes, in the lowest six bits; what is above has no meaning.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    /// How many bits this takes.
    #[inline(always)]
    pub(super) fn nbits(self) -> u32 {
        self.0 & 0x3f
    }

    /// Whether no code of a distance begins like this, or only the rest of the table tells which.
    #[inline(always)]
    pub(super) fn is_no_distance(self) -> bool {
        self.0 & NO_DISTANCE != 0
    }

    /// The distance that this and `bits`, which begin with its code, stand for: 1 to 32 KiB.
    #[inline(always)]
    pub(super) fn distance(self, bits: u64) -> usize {
        let extra = (bits & ((1 << self.nbits()) - 1)) >> (self.0 >> 8 & 0x1f);
        (self.0 >> 16) as usize + extra as usize
    }
}

/// The tables of a block.
pub(super) struct Tables {
    symbols: [Symbol; SYMBOL_ENTRIES],
    distances: [Distance; DISTANCE_ENTRIES],
    /// For [`combine`](Self::combine): what literals there are in fewer bits.
    literals: [Symbol; 1 << SYMBOL_BITS],
    /// Number of the last entry of the main part of the table of symbols: all bits set, at most SYMBOL_BITS.
    last_main: u16,
    /// Whether it pays to combine literals, unless that was done.
    pays_to_combine: bool,
}

// SAFETY: integers, some in structs of one, and a flag, of which zero is `false`.
unsafe impl Zero for Tables {}

impl Tables {
    /// Tables that [`fit`](Self::fit) must be called for.
    pub(super) fn new() -> Result<Box<Tables>> {
        zeroed_box()
    }

    /// The tables of the fixed codes.
    pub(super) fn fixed() -> Result<Box<Tables>> {
        let mut tables = Tables::new()?;
        tables.fit(&Lengths::fixed()).expect("these codes make sense");
        Ok(tables)
    }

    /// Whether [`combine`](Self::combine) makes decoding faster and was not called for these codes.
    pub(super) fn pays_to_combine(&self) -> bool {
        self.pays_to_combine
    }

    /// Makes the tables for codes of these lengths; `None` if they make no sense.
    pub(super) fn fit(&mut self, lengths: &Lengths) -> Option<()> {
        self.pays_to_combine = false;
        let symbols = Sorted::new(&lengths.symbols)?;
        let distances = Sorted::new(&lengths.distances)?;
        if !(symbols.is_complete() || symbols.is_trivial())
            || !(distances.is_complete() || distances.is_trivial())
        {
            return None;
        }
        // Shorter tables are made in less time.
        let nbits = symbols.longest().min(SYMBOL_BITS);
        fill(&symbols, &mut self.symbols, nbits, Symbol::NOTHING, Symbol::new, Symbol::part);
        self.last_main = (1 << nbits) - 1;
        let nbits = distances.longest().min(DISTANCE_BITS);
        fill(&distances, &mut self.distances, nbits, Distance::NOTHING, Distance::new, Distance::part);
        grow(&mut self.distances, nbits, DISTANCE_BITS);
        self.pays_to_combine = share_of_short(&lengths.symbols[..END]) > 1 << (MAX_CODE - 1);
        Some(())
    }

    /// Puts as many literals in each entry as its bits tell.
    pub(super) fn combine(&mut self) {
        self.pays_to_combine = false;
        grow(&mut self.symbols, u32::from(self.last_main).count_ones(), SYMBOL_BITS);
        self.last_main = (1 << SYMBOL_BITS) - 1;
        // Entries of `literals` are numbered by some bits and a one above them, so that shifting a number leaves that
        // of the bits after. Nothing has the number 0, nor more bits than there are.
        for nbits in 0..SYMBOL_BITS {
            let half = 1_usize << nbits >> 1;
            for at in 0..1 << nbits {
                let first = self.symbols[at];
                let rest = (at | 1 << nbits) >> first.nbits();
                let all = first.and_behind(self.literals[rest % (1 << SYMBOL_BITS)], rest);
                // At most one less than an entry may have, since another one is put in front: else those in one bit
                // less.
                let fewer = self.literals[at & half.saturating_sub(1) | half];
                self.literals[at | 1 << nbits] = if all.nliterals() < MAX_LITERALS { all } else { fewer };
            }
        }
        for at in 0..1 << SYMBOL_BITS {
            let first = self.symbols[at];
            let rest = (at | 1 << SYMBOL_BITS) >> first.nbits();
            let all = first.and_behind(self.literals[rest % (1 << SYMBOL_BITS)], rest);
            self.symbols[at] = if all == Symbol::NO_LITERALS { first } else { all };
        }
    }

    /// The main part of the table of symbols.
    #[inline(always)]
    pub(super) fn main(&self) -> Main<'_> {
        Main { symbols: &self.symbols, last: usize::from(self.last_main) }
    }

    /// What `bits`, which follow those of `part`, begin with.
    #[inline(always)]
    pub(super) fn symbol_in(&self, part: Symbol, bits: u64) -> Symbol {
        let mask = (1 << (part.0 >> 32 & 0xf)) - 1;
        self.symbols[(part.0 >> 16 & 0xffff) as usize + (bits & mask) as usize]
    }

    /// What `bits` begin with.
    #[inline(always)]
    pub(super) fn distance(&self, bits: u64) -> Distance {
        self.distances[bits as usize % (1 << DISTANCE_BITS)]
    }

    /// What `bits`, which follow those of `part`, begin with.
    #[inline(always)]
    pub(super) fn distance_in(&self, part: Distance, bits: u64) -> Distance {
        let mask = (1 << (part.0 >> 8 & 0xf)) - 1;
        self.distances[((part.0 & !NO_DISTANCE) >> 16) as usize + (bits & mask) as usize]
    }
}

/// The main part of a table of symbols, with its size at hand: stores to the output might change that of the tables, as
/// far as the compiler knows.
#[derive(Clone, Copy)]
pub(super) struct Main<'a> {
    symbols: &'a [Symbol; SYMBOL_ENTRIES],
    /// Number of the last entry: [`Tables::last_main`].
    last: usize,
}

impl Main<'_> {
    /// What `bits` begin with.
    #[inline(always)]
    pub(super) fn symbol(self, bits: u64) -> Symbol {
        // SAFETY: `last` is less than 2^SYMBOL_BITS, and there are more entries.
        unsafe { *self.symbols.get_unchecked(bits as usize & self.last) }
    }
}

/// How often symbols occur whose codes, of these lengths, are so short that an entry may have two, if the codes suit
/// them.
fn share_of_short(lengths: &[u8]) -> u32 {
    let share = |len: u8| {
        if (1..=SYMBOL_BITS as u8 / 2).contains(&len) { 1_u32 << (MAX_CODE - usize::from(len)) } else { 0 }
    };
    lengths.iter().map(|&len| share(len)).sum()
}

/// Makes a table whose main part has `nbits` bits: `entry` says what stands for a symbol whose code has this many bits
/// there, and `part` what stands for a part that begins at an entry and has this many bits.
#[inline(always)]
fn fill<E: Copy, const N: usize>(
    codes: &Sorted<N>,
    table: &mut [E],
    nbits: u32,
    nothing: E,
    entry: impl Fn(u16, u32) -> E,
    part: impl Fn(usize, u32) -> E,
) {
    let main = 1 << nbits;
    if !codes.is_complete() {
        // There is one code, of one bit, or none.
        table[..2].fill(nothing);
    }
    let (mut next, symbols) = fill_main(codes, table, nbits, &entry);
    let mut symbols = symbols.iter();
    let mut counts = codes.counts;
    let (mut start, mut end, mut prefix) = (0, main, usize::MAX);
    for len in nbits + 1..=MAX_CODE as u32 {
        for &symbol in symbols.by_ref().take(usize::from(codes.counts[len as usize])) {
            let code = next.take(len);
            if code % main != prefix {
                prefix = code % main;
                let part_bits = part_bits(&counts, len, nbits);
                (start, end) = (end, end + (1 << part_bits));
                table[prefix] = part(start, part_bits);
            }
            let value = entry(symbol, len - nbits);
            let same = table[start + (code >> nbits)..end].iter_mut().step_by(1 << (len - nbits));
            same.for_each(|entry| *entry = value);
            counts[len as usize] -= 1;
        }
    }
}

/// Makes the main part of a table, of `nbits` bits; returns the next code, and the symbols that have longer ones and
/// none.
#[inline(always)]
pub(super) fn fill_main<'a, E: Copy, const N: usize>(
    codes: &'a Sorted<N>,
    table: &mut [E],
    nbits: u32,
    entry: impl Fn(u16, u32) -> E,
) -> (NextCode, &'a [u16]) {
    let mut next = NextCode(0);
    let mut rest = &codes.symbols[..];
    for len in 1..=nbits {
        // So far, as many entries were made as shorter codes tell apart.
        if next.0 > 0 {
            grow(table, len - 1, len);
        }
        let (symbols, longer) = rest.split_at(usize::from(codes.counts[len as usize]));
        for &symbol in symbols {
            table[next.take(len)] = entry(symbol, len);
        }
        rest = longer;
    }
    (next, rest)
}

/// Makes a table for `nbits` bits one for `more` bits.
pub(super) fn grow<E: Copy>(table: &mut [E], nbits: u32, more: u32) {
    (nbits..more).for_each(|nbits| table.copy_within(..1 << nbits, 1 << nbits));
}

/// How many bits a part must have for the next codes, of `len` bits and more, of which this many are left, if as many
/// as `bits` of them are the same.
fn part_bits(counts: &[u16; MAX_CODE + 1], len: u32, bits: u32) -> u32 {
    let mut nbits = len - bits;
    let mut left = 1_i32 << nbits;
    loop {
        left -= i32::from(counts[(nbits + bits) as usize]);
        if left <= 0 || nbits + bits == MAX_CODE as u32 {
            return nbits;
        }
        nbits += 1;
        left <<= 1;
    }
}
