//! The codes of a block: its own, or the fixed ones.

use super::super::format::{
    DYNAMIC, END, FIXED, FIXED_DISTANCE, FIXED_SYMBOLS, MAX_CODE, SYMBOLS, USED_DISTANCES,
};
use super::bits::{BitWriter, Code};
use super::counts::Counts;
use super::header::Header;
use super::lengths::{BEHIND, Lengths, data_bits};
use super::sequence::{Distance, LENGTHS, Length, MIN_PIECE};
use super::token::{FIRST_LENGTH, NDISTANCES, NINDICES, Token};
use crate::error::Result;
use crate::memory::{Zero, zeroed_box};

pub(super) type SymbolLengths = Lengths<{ SYMBOLS + BEHIND }>;
pub(super) type DistanceLengths = Lengths<{ USED_DISTANCES + BEHIND }>;

/// The codes of a block.
pub(super) struct Codes {
    symbols: [Code; SYMBOLS],
    distances: [Code; USED_DISTANCES],
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
        let symbols = SymbolLengths::best(&counts.symbols, MAX_CODE);
        let distances = DistanceLengths::best(&counts.distances, MAX_CODE);
        self.header.fit(&symbols, &distances);
        self.is_fixed = false;
        symbols.assign(&mut self.symbols);
        distances.assign(&mut self.distances);
        let data_bits = symbols.data_bits(&counts.symbols) + distances.data_bits(&counts.distances);
        self.nbits = 3 + self.header.nbits() + data_bits as usize + counts.extra_bits;
    }

    /// The fixed codes.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    fn fixed() -> Result<Box<Codes>> {
        let mut codes = zeroed_box::<Codes>()?;
        codes.is_fixed = true;
        SymbolLengths::fixed(&FIXED_SYMBOLS).assign(&mut codes.symbols);
        DistanceLengths::fixed(&FIXED_DISTANCES).assign(&mut codes.distances);
        Ok(codes)
    }

    /// Takes these codes, which are the fixed ones, for a block with these counts.
    fn take(&mut self, counts: &Counts) {
        debug_assert!(self.is_fixed);
        let data_bits =
            data_bits(&counts.symbols, &FIXED_SYMBOLS) + data_bits(&counts.distances, &FIXED_DISTANCES);
        self.nbits = 3 + data_bits as usize + counts.extra_bits;
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

    /// The code of a length and the bits after it.
    #[inline(always)]
    pub(super) fn length(&self, len: usize) -> Code {
        self.length_of(LENGTHS[len - MIN_PIECE])
    }

    #[inline(always)]
    fn length_of(&self, length: Length) -> Code {
        self.symbols[usize::from(length.symbol)].then(length.extra)
    }

    /// The code of a distance and the bits after it.
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

    /// The codes for a block with these counts: the fixed ones, unless others save an eighth. It takes a decoder longer
    /// to make these than to decode a short block.
    pub(super) fn quick_to_read(&mut self, counts: &Counts) -> &Codes {
        let fixed_bits = self.fixed(counts).nbits;
        let limit = fixed_bits - fixed_bits / 8;
        self.own_below(counts, limit, limit)
    }

    /// The codes for a block with these counts: the best ones, or the fixed ones if the header of others costs more
    /// than they save. Others that seem to save less than `least_saved` bits are not even made.
    pub(super) fn suited(&mut self, counts: &Counts, least_saved: usize) -> &Codes {
        let fixed_bits = self.fixed(counts).nbits;
        self.own_below(counts, fixed_bits.saturating_sub(least_saved), fixed_bits)
    }

    /// Codes of its own for a block with these counts if they seem to take less than `promised` bits, and do take less
    /// than `limit`; the fixed ones otherwise, which were taken for it.
    fn own_below(&mut self, counts: &Counts, promised: usize, limit: usize) -> &Codes {
        if counts.least_bits() < promised {
            self.own.fit(counts);
            if self.own.nbits < limit {
                return &self.own;
            }
        }
        &self.fixed
    }
}

/// The code of a distance without the bits after it.
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
        // Most of the time, two of them fit after the seven bits that may be left. Any one does.
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

/// Lengths of the fixed codes of distances.
static FIXED_DISTANCES: [u8; USED_DISTANCES] = [FIXED_DISTANCE; USED_DISTANCES];
