//! Tables that tell what the next bits of a block stand for: one for literals, matches and the end, one for distances.
//!
//! Codes that are longer than the main part of a table has bits go on in a part of their own. Where literals have short
//! codes, an entry holds as many of them as its bits tell, up to six: what limits a decoder is how long it takes until
//! it knows where the next look-up begins.

use super::header::END;
use crate::error::Result;
use crate::memory::{Zero, zeroed_box};

/// Symbols of literals, the end and lengths, and those of distances: in each case the last two stand for nothing.
pub(in super::super) const SYMBOLS: usize = 288;
pub(in super::super) const DISTANCES: usize = 32;
/// The longest codes.
const MAX_CODE: usize = 15;
/// How many bits the main part of a table looks at.
pub(super) const SYMBOL_BITS: u32 = 11;
pub(super) const DISTANCE_BITS: u32 = 8;
/// The most entries that codes for so many symbols, of so many bits, can need.
const SYMBOL_ENTRIES: usize = 2342;
const DISTANCE_ENTRIES: usize = 402;

/// Lengths of all codes of a block.
pub(in super::super) struct Lengths {
    pub(in super::super) symbols: [u8; SYMBOLS],
    pub(in super::super) distances: [u8; DISTANCES],
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
    /// The codes of these lengths; `None` if there are more than can be.
    pub(super) fn new(lengths: &[u8; N]) -> Option<Sorted<N>> {
        let mut counts = [0_u16; MAX_CODE + 1];
        lengths.iter().for_each(|&len| counts[usize::from(len)] += 1);
        counts[0] = 0;
        let mut starts = [0_u16; MAX_CODE + 1];
        let mut used = 0;
        for len in 1..=MAX_CODE {
            starts[len] = starts[len - 1] + counts[len - 1];
            used += u32::from(counts[len]) << (MAX_CODE - len);
        }
        let mut symbols = [0; N];
        for (symbol, &len) in (0..).zip(lengths).filter(|&(_, &len)| len > 0) {
            let place = &mut starts[usize::from(len)];
            symbols[usize::from(*place)] = symbol;
            *place += 1;
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

    /// Symbols, their codes, whose first bit is the lowest one, and the lengths of these, shorter ones first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, usize, u32)> {
        let lengths = (1..).zip(&self.counts[1..]);
        let lengths = lengths.flat_map(|(len, &n)| std::iter::repeat_n(len, usize::from(n)));
        let mut next = 0_u32;
        self.symbols.iter().zip(lengths).map(move |(&symbol, len)| {
            let code = (next >> (MAX_CODE as u32 - len)).reverse_bits() >> (32 - len);
            next += 1 << (MAX_CODE as u32 - len);
            (symbol, code as usize, len)
        })
    }
}

/// What some bits of a block stand for, in the table of symbols.
///
/// The lowest byte says how many bits that takes, with those behind the code of a length. Up to six literals follow, and
/// their number in the highest byte. What is not literals has the highest bit set instead, and says in the second byte if
/// it is no length either. A length has its smallest value in the next 16 bits, and behind it how many bits its code
/// takes; a part of the table where a code goes on has its start and its number of bits in the same places.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Symbol(u64);

const NO_LITERALS: u64 = 1 << 63;
const IS_PART: u64 = 1 << 8;
const IS_END: u64 = 1 << 9;
const IS_NOTHING: u64 = 1 << 10;
const ONE_LITERAL: u64 = 1 << 56;
/// The most literals of an entry.
const MAX_LITERALS: usize = 6;

impl Symbol {
    const NOTHING: Symbol = Symbol(NO_LITERALS | IS_NOTHING);

    /// The symbol of a code of `len` bits.
    fn new(symbol: u16, len: u32) -> Symbol {
        let len = u64::from(len);
        match usize::from(symbol) {
            0..END => Symbol(len | u64::from(symbol) << 8 | ONE_LITERAL),
            END => Symbol(len | NO_LITERALS | IS_END),
            257..286 => {
                let (base, extra) = length(u32::from(symbol) - 257);
                Symbol((len + u64::from(extra)) | NO_LITERALS | u64::from(base) << 16 | len << 32)
            }
            _ => Symbol::NOTHING,
        }
    }

    /// Where codes go on that begin with the same bits, as many as the main part has.
    fn part(start: usize, nbits: u32) -> Symbol {
        Symbol(u64::from(SYMBOL_BITS) | NO_LITERALS | IS_PART | (start as u64) << 16 | u64::from(nbits) << 32)
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

    #[inline(always)]
    pub(super) fn is_literals(self) -> bool {
        self.0 & NO_LITERALS == 0
    }

    /// The number of literals, if this is some: the first of [`literals`](Self::literals).
    #[inline(always)]
    pub(super) fn nliterals(self) -> usize {
        (self.0 >> 56) as usize // a byte
    }

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

    /// These literals, and `next` behind them if it is one and no more bits are needed than the main part of a table has.
    fn then(self, next: Symbol) -> Option<Symbol> {
        let n = self.nliterals();
        let fits = next.is_literals() && n < MAX_LITERALS && self.nbits() + next.nbits() <= SYMBOL_BITS;
        let more =
            u64::from(next.nbits()) | u64::from(next.literals()[0]) << ((8 + 8 * n) & 0x3f) | ONE_LITERAL;
        fits.then(|| Symbol(self.0 + more))
    }
}

/// The smallest value of a length, and how many bits are behind its code; by its number among the 29.
const fn length(n: u32) -> (u32, u32) {
    match n {
        0..8 => (3 + n, 0),
        28 => (258, 0),
        _ => (3 + ((4 + n % 4) << (n / 4 - 1)), n / 4 - 1),
    }
}

/// What some bits stand for in the table of distances: how many they are, with those behind the code, in the lowest six
/// bits; in the next byte the length of the code, and the smallest distance from bit 16 on. If there is no distance, the
/// highest bit is set; where codes go on in a part of their own, its number of bits and its start are in these places.
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

    /// Whether this is a part of the table or nothing.
    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
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
    /// Whether it pays to combine literals, unless that was done.
    pays_to_combine: bool,
    /// Whether these are the tables of the codes that need not be told.
    is_fixed: bool,
}

// SAFETY: integers in structs of one, and flags, of which zero is `false`.
unsafe impl Zero for Tables {}

impl Tables {
    /// Tables that [`fit`](Self::fit) must be called for.
    pub(super) fn new() -> Result<Box<Tables>> {
        zeroed_box()
    }

    /// Whether [`combine`](Self::combine) makes decoding faster and was not called for these codes.
    pub(super) fn pays_to_combine(&self) -> bool {
        self.pays_to_combine
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Makes the tables for codes of these lengths, which may be those that need not be told; `None` if they make no sense.
    pub(super) fn fit(&mut self, lengths: &Lengths, is_fixed: bool) -> Option<()> {
        (self.pays_to_combine, self.is_fixed) = (false, false);
        let symbols = Sorted::new(&lengths.symbols)?;
        let distances = Sorted::new(&lengths.distances)?;
        if !(symbols.is_complete() || symbols.is_trivial())
            || !(distances.is_complete() || distances.is_trivial())
        {
            return None;
        }
        let nothing = Symbol::NOTHING;
        fill::<_, SYMBOLS, SYMBOL_BITS>(&symbols, &mut self.symbols, nothing, Symbol::new, Symbol::part);
        let nothing = Distance::NOTHING;
        fill::<_, DISTANCES, DISTANCE_BITS>(
            &distances,
            &mut self.distances,
            nothing,
            Distance::new,
            Distance::part,
        );
        self.is_fixed = is_fixed;
        self.pays_to_combine = share_of_short(&lengths.symbols[..END]) > 1 << (MAX_CODE - 1);
        Some(())
    }

    /// Puts as many literals in each entry as its bits tell.
    pub(super) fn combine(&mut self) {
        self.pays_to_combine = false;
        // What an entry takes from others lies before it, where all are as they were made, but for the first one.
        let first = self.symbols[0];
        for at in (0..1 << SYMBOL_BITS).rev() {
            let mut all = self.symbols[at];
            while all.is_literals() {
                let behind = at >> all.nbits();
                let next = if behind == 0 { first } else { self.symbols[behind] };
                let Some(more) = all.then(next) else { break };
                all = more;
            }
            self.symbols[at] = all;
        }
    }

    /// What `bits` begin with.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: u64) -> Symbol {
        self.symbols[bits as usize % (1 << SYMBOL_BITS)]
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

/// How often symbols occur whose codes, of these lengths, are so short that an entry may have two, if the codes suit them.
fn share_of_short(lengths: &[u8]) -> u32 {
    let share = |len: u8| {
        if (1..=SYMBOL_BITS as u8 / 2).contains(&len) { 1_u32 << (MAX_CODE - usize::from(len)) } else { 0 }
    };
    lengths.iter().map(|&len| share(len)).sum()
}

/// Makes a table whose main part has `BITS` bits: `entry` says what stands for a symbol whose code has so many bits there,
/// and `part` what stands for a part that begins at an entry and has so many bits.
fn fill<E: Copy, const N: usize, const BITS: u32>(
    codes: &Sorted<N>,
    table: &mut [E],
    nothing: E,
    entry: impl Fn(u16, u32) -> E,
    part: impl Fn(usize, u32) -> E,
) {
    const fn reach(len: u32, bits: u32) -> u32 {
        if len < bits { len } else { bits }
    }
    let main = 1 << BITS;
    table[0] = nothing;
    // As many entries as there are, of which all that follow are copies.
    let mut nbits = 0;
    if !codes.is_complete() {
        table[..main].fill(nothing);
        nbits = BITS;
    }
    let mut counts = codes.counts;
    let (mut start, mut end, mut prefix) = (0, main, usize::MAX);
    for (symbol, code, len) in codes.iter() {
        let len_here = reach(len, BITS);
        while nbits < len_here {
            table.copy_within(..1 << nbits, 1 << nbits);
            nbits += 1;
        }
        if len <= BITS {
            let value = entry(symbol, len);
            table[code..1 << nbits].iter_mut().step_by(1 << len).for_each(|entry| *entry = value);
        } else {
            if code % main != prefix {
                prefix = code % main;
                let part_bits = part_bits(&counts, len, BITS);
                (start, end) = (end, end + (1 << part_bits));
                table[prefix] = part(start, part_bits);
            }
            let value = entry(symbol, len - BITS);
            table[start + (code >> BITS)..end]
                .iter_mut()
                .step_by(1 << (len - BITS))
                .for_each(|entry| *entry = value);
        }
        counts[len as usize] -= 1;
    }
    while nbits < BITS {
        table.copy_within(..1 << nbits, 1 << nbits);
        nbits += 1;
    }
}

/// How many bits a part must have for the next codes, of `len` bits and more, of which so many are left, if as many as
/// `bits` of them are the same.
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
