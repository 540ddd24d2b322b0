//! An encoder of our own: quick streams of any data, streams in which matches are rare or long, and short ones.
//!
//! A stream is cut in blocks. Each is parsed into literals and matches first and then written with the codes that suit it,
//! or raw. Other libraries write their first level with fixed codes while they search; apart, both are so much faster that
//! there is time for counting, and streams are a fifth smaller.
//!
//! There are three parsers. The two quick ones have one candidate per position, as the fast codecs do, and blocks of
//! equal size; one is for few matches and steps over what has none (`quick.rs`), the other for many (`dense.rs`). The
//! thorough one finds as much as others do at their middle levels, and its blocks end where the data change.
//!
//! Short streams take little time: the tables of the first and the last parser are not cleared for each of them, and codes
//! are made only where they may save something.

mod bits;
mod counts;
mod dense;
mod huffman;
mod noise;
mod probe;
mod quick;
mod sequence;
#[cfg(test)]
mod tests;
mod thorough;
mod token;
mod worth;

use super::format::RAW;
use super::libdeflate::adler32;
use crate::error::Result;
use crate::memory::{with_capacity, zeroed_box};
use bits::{BitWriter, Code};
use counts::Counts;
pub(super) use counts::coded_bits;
use huffman::Codes;
pub(super) use probe::Probe;
use sequence::Sequence;
pub(super) use thorough::{Effort, WAYS};
use worth::BIT;

/// The most bytes that a raw block can hold. With the quick parser, no block has more.
const RAW_BLOCK: usize = 0xffff;
/// With the thorough parser, blocks consist of segments of about this many bytes.
const SEGMENT: usize = 8 << 10;
/// From this size on, a block takes no more segments.
const MAX_BLOCK: usize = 1 << 18;
/// Bits that codes of its own must save a segment: about what it takes to tell them.
const NEW_CODES: usize = 400;
/// Deflate with a window of 32 KiB, at the fastest level and at the one below the default, which is 6.
const QUICK_HEADER: [u8; 2] = [0x78, 0x01];
const THOROUGH_HEADER: [u8; 2] = [0x78, 0x5e];
/// Streams of as many bytes and more are looked at before they are parsed quickly.
const PROBED: usize = 2 << 10;
/// How many bytes are searched for matches then.
const PROBE: usize = 1 << 10;
/// A match every this many bytes is often, as there is hardly any history yet.
const DENSE: usize = 42;
/// So many samples of a stream, of at most so many bytes, are parsed to see how far it shrinks: one for every SAMPLED bytes,
/// as to parse all would take an eighth of the time of compressing it. Streams below LEAST_SAMPLED bytes are not looked at.
const SAMPLES: usize = 4;
const SAMPLE: usize = 4 << 10;
const SAMPLED: usize = 16 << 10;
const LEAST_SAMPLED: usize = 1 << 10;
/// Blocks of fewer bytes take the fixed codes: they are hardly longer than the header of others, and fitting codes takes as
/// long as all the rest.
pub(super) const TINY: usize = 128;
/// The quick search takes the fixed codes as well if others would save less than about so many bits.
const QUICKLY_SAVED: usize = 160;
/// Blocks that codes make shorter by less than this part are raw: they are decoded ten times as fast.
const HARDLY: usize = 32;
/// What a quick search makes shorter by less than this part is noise. Where it is more, a thorough one may find much more.
const NOISE: usize = 100;
/// Where data repeat themselves with changes, at most so many bytes in a row are others.
const MOST_CHANGED: usize = 8;

/// An encoder with its tables. What is large in it is in memory of its own, so that stacks can be small.
pub(super) struct Encoder {
    quick: quick::Parser,
    dense: dense::Parser,
    thorough: thorough::Parser,
    /// What the thorough parser found in the current block, and how often each code is needed there and in the segment
    /// that may become a part of it.
    sequences: Vec<Sequence>,
    counts: Box<Counts>,
    segment: Box<Counts>,
    codes: Box<Codes>,
    fixed: Box<Codes>,
}

impl Encoder {
    pub(super) fn new() -> Result<Encoder> {
        Ok(Encoder {
            quick: quick::Parser::new()?,
            dense: dense::Parser::new()?,
            thorough: thorough::Parser::new()?,
            sequences: with_capacity(thorough::MOST_SEQUENCES)?,
            counts: zeroed_box()?,
            segment: zeroed_box()?,
            codes: zeroed_box()?,
            fixed: Codes::fixed()?,
        })
    }

    /// Compresses `src` into `dest` with a quick search; returns the compressed size, or 0 if it does not fit.
    pub(super) fn compress_quickly(&mut self, src: &[u8], dest: &mut [u8]) -> usize {
        self.try_quickly(src, dest).unwrap_or(0)
    }

    /// Compresses `src`, for which `probe` was made, into `dest` with a thorough search; returns the compressed size, or
    /// 0 if it does not fit.
    pub(super) fn compress_thoroughly(
        &mut self,
        src: &[u8],
        probe: &Probe,
        effort: Effort,
        dest: &mut [u8],
    ) -> usize {
        self.try_thoroughly(src, probe, effort, dest).unwrap_or(0)
    }

    /// Compresses `src`, which is short, into `dest` with a thorough search; returns the compressed size, or 0 if it does not
    /// fit.
    pub(super) fn compress_short(&mut self, src: &[u8], effort: Effort, dest: &mut [u8]) -> usize {
        self.try_short(src, effort, dest).unwrap_or(0)
    }

    /// How many bytes a literal or match of `src` stands for on average, in sixteenths, judged by samples; 0 if it is too
    /// short for them.
    pub(super) fn bytes_per_token(&mut self, src: &[u8]) -> usize {
        if src.len() < LEAST_SAMPLED {
            return 0;
        }
        let nsamples = (src.len() / SAMPLED).clamp(1, SAMPLES);
        let (len, distance) = (SAMPLE.min(src.len()), src.len() / nsamples);
        let mut ntokens = 0;
        for start in (0..nsamples).map(|n| n * distance) {
            self.dense.begin();
            self.dense.parse(&src[start..start + len], 0, len);
            ntokens += self.dense.tokens().len();
        }
        16 * nsamples * len / ntokens
    }

    /// How many bytes `src` begins with that a quick search shrinks by less than [`NOISE`] and nothing repeats, as the low bytes
    /// of shuffled items often are. There are others behind them.
    pub(super) fn noise_len(&mut self, src: &[u8]) -> usize {
        let Encoder { dense, counts, .. } = self;
        dense.begin();
        let mut len = 0;
        while len + 2 * SEGMENT <= src.len() {
            dense.parse(src, len, len + SEGMENT);
            counts.reset();
            counts.add_tally(dense.tally());
            dense.begin_block();
            if counts.bits() < 8 * (SEGMENT - SEGMENT / NOISE) {
                return noise::repeated_from(src, len) / SEGMENT * SEGMENT;
            }
            len += SEGMENT;
        }
        0
    }

    fn try_quickly(&mut self, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        if self.is_dense(src) { self.try_densely(src, PROBE, dest) } else { self.try_sparsely(src, dest) }
    }

    /// Whether `src` begins with matches one after another, as text does. If so, they are in the current block of the
    /// parser for that.
    fn is_dense(&mut self, src: &[u8]) -> bool {
        if src.len() < PROBED {
            return false;
        }
        self.dense.begin();
        self.dense.parse(src, 0, PROBE);
        self.dense.tally().nmatches() > PROBE / DENSE
    }

    /// Compresses `src`, of which the first `parsed` bytes are in the current block of the parser, and no others.
    fn try_densely(&mut self, src: &[u8], parsed: usize, dest: &mut [u8]) -> Option<usize> {
        let Encoder { dense, counts, codes, fixed, .. } = self;
        let mut out = BitWriter::new(dest);
        out.append(&QUICK_HEADER)?;
        let (mut block_start, mut start) = (0, parsed);
        while block_start < src.len() {
            let end = src.len().min(block_start + dense::MAX_BLOCK);
            dense.parse(src, start, end);
            counts.reset();
            counts.add_tally(dense.tally());
            let codes = Codes::suited(codes, fixed, counts, 0);
            let (block, is_last) = (&src[block_start..end], end == src.len());
            write_block(codes, block, is_last, &mut out, |out| codes.write_tokens(dense.tokens(), out))?;
            dense.begin_block();
            (block_start, start) = (end, end);
        }
        finish(src, out)
    }

    fn try_sparsely(&mut self, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        let Encoder { quick, counts, codes, fixed, .. } = self;
        quick.begin(src)?;
        let mut out = BitWriter::new(dest);
        out.append(&QUICK_HEADER)?;
        let mut start = 0;
        while start < src.len() {
            let end = src.len().min(start + RAW_BLOCK);
            let block = &src[start..end];
            counts.reset();
            let sequences = quick.parse(src, start, end, counts);
            counts.count_literals(block, sequences);
            let codes = if block.len() < TINY {
                fixed.take(counts);
                &*fixed
            } else {
                Codes::suited(codes, fixed, counts, QUICKLY_SAVED)
            };
            write_block(codes, block, end == src.len(), &mut out, |out| {
                write_sequences(codes, block, sequences, out)
            })?;
            start = end;
        }
        finish(src, out)
    }

    fn try_short(&mut self, src: &[u8], effort: Effort, dest: &mut [u8]) -> Option<usize> {
        let Encoder { thorough, sequences, counts, codes, fixed, .. } = self;
        thorough.begin(src, effort)?;
        thorough.begin_short(BIT * coded_bits(src) / src.len());
        sequences.clear();
        counts.reset();
        thorough.parse(src, 0, src.len(), sequences, counts);
        counts.count_literals(src, sequences);
        let codes = Codes::suited(codes, fixed, counts, 0);
        let mut out = BitWriter::new(dest);
        out.append(&THOROUGH_HEADER)?;
        write_block(codes, src, true, &mut out, |out| write_sequences(codes, src, sequences, out))?;
        finish(src, out)
    }

    fn try_thoroughly(
        &mut self,
        src: &[u8],
        probe: &Probe,
        effort: Effort,
        dest: &mut [u8],
    ) -> Option<usize> {
        let Encoder { thorough, sequences, counts, segment, codes, fixed, .. } = self;
        thorough.begin(src, effort)?;
        let mut out = BitWriter::new(dest);
        out.append(&THOROUGH_HEADER)?;
        sequences.clear();
        counts.reset();
        let (mut block_start, mut start, mut entropy) = (0, 0, 0);
        let mut part = None;
        while start < src.len() {
            let here = probe.part(start);
            if part.replace(here) != Some(here) {
                thorough.begin_part(probe.literal_bits(here));
            }
            let nbefore = sequences.len();
            segment.reset();
            let end = thorough.parse(src, start, src.len().min(start + SEGMENT), sequences, segment);
            segment.count_literals(&src[start..end], &sequences[nbefore..]);
            if let Some(bits) = segment.literal_bits() {
                thorough.expect_literals(bits);
            }
            let mut both = Counts::clone(counts);
            both.add(segment);
            let (apart, together) = (entropy + segment.entropy(), both.entropy());
            if start > block_start && (end - block_start > MAX_BLOCK || together > apart + NEW_CODES) {
                let codes = Codes::suited(codes, fixed, counts, 0);
                let block = &src[block_start..start];
                write_block(codes, block, false, &mut out, |out| {
                    write_sequences(codes, block, &sequences[..nbefore], out)
                })?;
                sequences.drain(..nbefore);
                std::mem::swap(counts, segment);
                (block_start, entropy) = (start, apart - entropy);
            } else {
                (**counts, entropy) = (both, together);
            }
            start = end;
        }
        let codes = Codes::suited(codes, fixed, counts, 0);
        let block = &src[block_start..];
        write_block(codes, block, true, &mut out, |out| write_sequences(codes, block, sequences, out))?;
        finish(src, out)
    }
}

/// Writes `block` with the codes that were made for it, which `write_data` puts behind the header, or raw.
fn write_block<'a>(
    codes: &Codes,
    block: &[u8],
    is_last: bool,
    out: &mut BitWriter<'a>,
    write_data: impl FnOnce(&mut BitWriter<'a>),
) -> Option<()> {
    let nbits = codes.nbits();
    let parts = block.chunks(RAW_BLOCK);
    if nbits >= 8 * (block.len() + 4 * parts.len() - block.len() / HARDLY) {
        let last = parts.len() - 1;
        return parts.enumerate().try_for_each(|(i, part)| write_raw(part, is_last && i == last, out));
    }
    if !out.has_room(nbits) {
        return None;
    }
    codes.write_header(is_last, out);
    write_data(out);
    Some(())
}

/// Begins a stream with `bytes` as they are; returns what that takes, whole bytes. `None` if it does not fit.
pub(super) fn begin_raw(bytes: &[u8], dest: &mut [u8]) -> Option<usize> {
    let mut out = BitWriter::new(dest);
    out.append(&THOROUGH_HEADER)?;
    bytes.chunks(RAW_BLOCK).try_for_each(|part| write_raw(part, false, &mut out))?;
    Some(out.len())
}

/// Writes `bytes` as they are.
fn write_raw(bytes: &[u8], is_last: bool, out: &mut BitWriter<'_>) -> Option<()> {
    out.put(Code::new(u32::from(is_last) | RAW << 1, 3));
    let len = u16::try_from(bytes.len()).expect("blocks are that short");
    out.append(&len.to_le_bytes())?;
    out.append(&(!len).to_le_bytes())?;
    out.append(bytes)
}

/// Completes the stream that holds `src`; returns its size.
fn finish(src: &[u8], mut out: BitWriter<'_>) -> Option<usize> {
    out.append(&adler32(src).to_be_bytes())?;
    Some(out.len())
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
        if sequence.len() == 0 {
            // The literals of the next segment follow.
            out.flush();
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
