//! Level 1, and very short streams at all levels: an encoder of our own, which searches little and codes well.
//!
//! A stream is cut in blocks. Each is parsed into literals and matches first, with one candidate per position as the fast
//! codecs do, and then written with the codes that suit it, or raw. Other libraries write their first level with fixed codes
//! while they search. Apart, both are so much faster that there is time for counting, and streams are a seventh smaller.

mod bits;
mod huffman;
mod parse;
#[cfg(test)]
mod tests;

use super::libdeflate::adler32;
use bits::{BitWriter, Code};
use huffman::{Codes, Counts};
use parse::{Parser, Sequence};

/// Bytes of input that share their codes: as many as a raw block can hold.
const BLOCK: usize = 0xffff;
/// Deflate with a window of 32 KiB, at the fastest level.
pub(super) const HEADER: [u8; 2] = [0x78, 0x01];
/// Streams of as many bytes and more are looked at before they are encoded.
const PROBED: usize = 16 << 10;
/// How many bytes are searched for matches then.
const PROBE: usize = 4096;
/// A match every so many bytes is too often, as there is hardly any history yet.
const DENSE: usize = 20;
/// Blocks of fewer bytes take the fixed codes: they are hardly longer than the header of others, and fitting codes takes as
/// long as all the rest.
pub(super) const TINY: usize = 128;
/// Type of a raw block, as its header has it.
const RAW: u32 = 0;

/// An encoder with its tables.
pub(super) struct Encoder {
    parser: Parser,
    counts: Counts,
    codes: Codes,
    fixed: Codes,
}

impl Encoder {
    pub(super) fn new() -> Encoder {
        Encoder { parser: Parser::new(), counts: Counts::new(), codes: Codes::new(), fixed: Codes::fixed() }
    }

    /// Whether `src` begins with short matches one after another, as text does. Streams are shorter then than those of
    /// encoders that search less, but take longer.
    pub(super) fn is_dense(&mut self, src: &[u8]) -> bool {
        if src.len() < PROBED || self.parser.begin(src).is_none() {
            return false;
        }
        self.parser.parse(src, 0, PROBE, &mut self.counts);
        self.parser.nfound() > PROBE / DENSE
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    pub(super) fn compress(&mut self, src: &[u8], dest: &mut [u8]) -> usize {
        self.try_compress(src, dest).unwrap_or(0)
    }

    fn try_compress(&mut self, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        self.parser.begin(src)?;
        let mut out = BitWriter::new(dest);
        out.append(&HEADER)?;
        let mut start = 0;
        while start < src.len() {
            let end = src.len().min(start + BLOCK);
            self.compress_block(src, start, end, &mut out)?;
            start = end;
        }
        out.append(&adler32(src).to_be_bytes())?;
        Some(out.len())
    }

    /// Writes the bytes `start..end` of `src` as one block, the last one if `end` is that of `src`.
    fn compress_block(
        &mut self,
        src: &[u8],
        start: usize,
        end: usize,
        out: &mut BitWriter<'_>,
    ) -> Option<()> {
        let Encoder { parser, counts, codes, fixed } = self;
        counts.reset();
        let sequences = parser.parse(src, start, end, counts);
        counts.count_literals(&src[start..end], sequences);
        let codes = if end - start < TINY {
            fixed.take(counts);
            fixed
        } else {
            codes.fit(counts);
            codes
        };
        let is_last = end == src.len();
        let nbits = codes.nbits();
        if nbits >= 8 * (end - start + 4) {
            return write_raw(&src[start..end], is_last, out);
        }
        if !out.has_room(nbits) {
            return None;
        }
        codes.write_header(is_last, out);
        write_sequences(codes, &src[start..end], sequences, out);
        Some(())
    }
}

/// Writes `bytes` as they are.
fn write_raw(bytes: &[u8], is_last: bool, out: &mut BitWriter<'_>) -> Option<()> {
    out.put(Code::new(u32::from(is_last) | RAW << 1, 3));
    let len = u16::try_from(bytes.len()).expect("blocks are that short");
    out.append(&len.to_le_bytes())?;
    out.append(&(!len).to_le_bytes())?;
    out.append(bytes)
}

/// Writes the literals of `block`, and the matches between them, and the end.
fn write_sequences(codes: &Codes, block: &[u8], sequences: &[Sequence], out: &mut BitWriter<'_>) {
    let mut rest = block;
    for sequence in sequences {
        let (mut literals, behind) = rest.split_at(sequence.literals());
        while let [a, b, c, rest @ ..] = literals {
            // Three codes of at most 15 bits go with the seven that may be left.
            out.put(codes.literal(*a));
            out.put(codes.literal(*b));
            out.put(codes.literal(*c));
            out.flush();
            literals = rest;
        }
        if let [a, rest @ ..] = literals {
            out.put(codes.literal(*a));
            if let [b, ..] = rest {
                out.put(codes.literal(*b));
            }
        }
        let distance = codes.distance(sequence.distance());
        for piece in sequence.pieces() {
            // With its extra bits, a length has at most 20 bits, and a distance 28.
            out.put(codes.length(piece));
            out.flush();
            out.put(distance);
            out.flush();
        }
        rest = &behind[sequence.len()..];
    }
    out.flush();
    out.put(codes.end_of_block());
    out.flush();
}
