//! An encoder of our own: quick streams of any data, streams in which matches are rare or long, and short ones.
//!
//! A stream is cut into blocks. Each is parsed into literals and matches first and then written with the codes that
//! suit it, or raw. Other libraries write their first level with fixed codes while they search; apart, both are so much
//! faster that there is time for counting, and streams are a tenth smaller.
//!
//! There are three parsers. The two quick ones have one candidate per position, as the fast codecs do; one is for few
//! matches and steps over what has none (`quick.rs`), the other for many (`dense.rs`), with blocks of equal size. The
//! thorough one finds as much as others do at their middle levels. Blocks end where the data change (`blocks.rs`).
//!
//! Short streams take little time: the tables of the first and the last parser are not cleared for each of them, and
//! codes are made only where they may save something.

mod bits;
mod blocks;
mod counts;
mod dense;
mod header;
mod huffman;
mod lengths;
mod noise;
mod probe;
mod quick;
mod sequence;
#[cfg(test)]
mod tests;
mod thorough;
mod token;
mod worth;

use super::libdeflate::adler32;
use crate::error::Result;
use bits::BitWriter;
use blocks::{Blocks, Manner, RAW_BLOCK, SEGMENT, write_block, write_raw};
use counts::Counts;
pub(super) use counts::coded_bits;
use huffman::{Candidates, Codes};
pub(super) use probe::Probe;
pub(super) use thorough::{Effort, WAYS};
use worth::BIT;

/// Headers for a window of 32 KiB: of the fastest level, and of the levels below the default, which is 6.
const QUICK_HEADER: [u8; 2] = [0x78, 0x01];
const THOROUGH_HEADER: [u8; 2] = [0x78, 0x5e];
/// More and shorter blocks would save a few percent of quick streams and less than half a percent of thorough ones, but
/// take longer to write and to decode.
const QUICK: Manner = Manner { header: QUICK_HEADER, least_saved: 160, new_codes: 2000 };
const THOROUGH: Manner = Manner { header: THOROUGH_HEADER, least_saved: 0, new_codes: 1000 };
/// Streams of as many bytes and more are looked at before they are parsed quickly.
const PROBED: usize = 2 << 10;
/// How many bytes are searched for matches then.
const PROBE: usize = 1 << 10;
/// One match per this many bytes counts as many: there is hardly any history yet.
const DENSE: usize = 42;
/// Up to this many samples of a stream are parsed to see how far it shrinks: to parse all of it would take an eighth of
/// the time of compressing it.
const SAMPLES: usize = 4;
/// The longest sample.
const SAMPLE: usize = 4 << 10;
/// There is one sample for this many bytes.
const SAMPLED: usize = 16 << 10;
/// Shorter streams are not looked at.
const LEAST_SAMPLED: usize = 1 << 10;
/// Blocks of fewer bytes take the fixed codes: they are hardly longer than the header of others, and fitting codes
/// takes as long as all the rest.
pub(super) const TINY: usize = 128;
/// What a quick search makes shorter by less than this part is noise. Where it is more, a thorough one may find much
/// more.
const NOISE: usize = 100;
/// What a quick search makes shorter by this factor, the fixed codes suit if it is short.
const FAR: usize = 3;
/// Streams of up to this many bytes may shrink so far that decoders take longer to make the codes of their own than to
/// use them.
const LONGEST_FAR: usize = 4 << 10;
/// Streams of as many bytes and more are parsed piecewise to see whether they do.
const PIECEWISE: usize = 512;
/// Where data repeat themselves with changes, at most this many bytes in a row are others.
const MOST_CHANGED: usize = 8;

/// An encoder with its tables. What is large in it is in memory of its own, so that stacks can be small.
pub(super) struct Encoder {
    quick: quick::Parser,
    dense: dense::Parser,
    thorough: thorough::Parser,
    blocks: Blocks,
}

impl Encoder {
    pub(super) fn new() -> Result<Encoder> {
        Ok(Encoder {
            quick: quick::Parser::new()?,
            dense: dense::Parser::new()?,
            thorough: thorough::Parser::new()?,
            blocks: Blocks::new()?,
        })
    }

    /// Compresses `src` into `dest` with a quick search; returns the compressed size, or 0 if it does not fit, or if
    /// zlib-ng, whose first level has the fixed codes only, leaves it as it is. What has too few matches for these is
    /// decoded at a tenth of the speed of what is not compressed, or less, for a tenth of the size.
    pub(super) fn compress_quickly(&mut self, src: &[u8], dest: &mut [u8]) -> usize {
        let size = if self.is_dense(src) {
            self.try_densely(src, PROBE, dest)
        } else {
            self.try_sparsely(src, dest).filter(|_| src.len() < TINY || self.is_for_fixed_codes(src.len()))
        };
        size.unwrap_or(0)
    }

    /// Whether the fixed codes would have shrunk the stream of `len` bytes that was just compressed.
    fn is_for_fixed_codes(&self, len: usize) -> bool {
        // zlib-ng finds a few short matches more.
        self.blocks.candidates.fixed_bits() <= 8 * (len + len / 32)
    }

    /// Compresses `src`, for which `probe` was made, into `dest` with a thorough search; returns the compressed size,
    /// or 0 if it does not fit.
    pub(super) fn compress_thoroughly(
        &mut self,
        src: &[u8],
        probe: &Probe,
        effort: Effort,
        dest: &mut [u8],
    ) -> usize {
        self.try_thoroughly(src, probe, effort, dest).unwrap_or(0)
    }

    /// Compresses `src`, which is short, into `dest` with a thorough search; returns the compressed size, or 0 if it
    /// does not fit.
    pub(super) fn compress_short(&mut self, src: &[u8], effort: Effort, dest: &mut [u8]) -> usize {
        if self.shrinks_to(src, FAR) {
            return self.compress_far(src, effort, dest);
        }
        let literal_bits = BIT * coded_bits(src) / src.len();
        self.try_short(src, effort, literal_bits, Candidates::best, dest).unwrap_or(0)
    }

    /// The same for what [shrinks far](Self::shrinks_far).
    pub(super) fn compress_far(&mut self, src: &[u8], effort: Effort, dest: &mut [u8]) -> usize {
        self.try_short(src, effort, 8 * BIT, Candidates::quick_to_read, dest).unwrap_or(0)
    }

    /// Whether `src` shrinks so far that it is as quick to decode as a short stream.
    pub(super) fn shrinks_far(&mut self, src: &[u8]) -> bool {
        src.len() <= LONGEST_FAR && self.shrinks_to(src, 2 * FAR)
    }

    /// How many bytes a literal or match of `src` stands for on average, in sixteenths, judged by samples; 0 if it is
    /// too short for them.
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

    /// How many bytes `src` begins with that a quick search shrinks by less than [`NOISE`] and nothing repeats, as the
    /// low bytes of shuffled items often are.
    pub(super) fn noise_len(&mut self, src: &[u8]) -> usize {
        let Encoder { dense, blocks: Blocks { counts, .. }, .. } = self;
        dense.begin();
        let mut len = 0;
        while len < src.len() {
            let end = src.len().min(len + SEGMENT);
            dense.parse(src, len, end);
            counts.reset();
            counts.add_tally(dense.tally());
            dense.begin_block();
            let nbytes = end - len;
            if counts.bits() < 8 * (nbytes - nbytes / NOISE) {
                break;
            }
            len = end;
        }
        if len == 0 {
            return 0;
        }
        match noise::repeated_from(src, len) {
            repeated if repeated < src.len() => repeated / SEGMENT * SEGMENT,
            _ => src.len(),
        }
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
        let Encoder { dense, blocks: Blocks { counts, candidates, .. }, .. } = self;
        let mut out = BitWriter::new(dest);
        out.append(&QUICK_HEADER)?;
        candidates.begin();
        let (mut block_start, mut start) = (0, parsed);
        while block_start < src.len() {
            let end = src.len().min(block_start + dense::MAX_BLOCK);
            dense.parse(src, start, end);
            counts.reset();
            counts.add_tally(dense.tally());
            let codes = candidates.best(counts);
            let (block, is_last) = (&src[block_start..end], end == src.len());
            write_block(codes, block, is_last, &mut out, |out| codes.write_tokens(dense.tokens(), out))?;
            dense.begin_block();
            (block_start, start) = (end, end);
        }
        finish(src, out)
    }

    fn try_sparsely(&mut self, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        let Encoder { quick, blocks, .. } = self;
        quick.begin(src)?;
        if src.len() < TINY {
            return blocks.write_one(src, QUICK_HEADER, Candidates::fixed, dest, |sequences, counts| {
                quick.parse_tiny(src, sequences, counts);
            });
        }
        if src.len() <= SEGMENT {
            return blocks.write_one(
                src,
                QUICK_HEADER,
                Candidates::quick_to_read,
                dest,
                |sequences, counts| {
                    quick.parse(src, 0, src.len(), sequences, counts);
                },
            );
        }
        blocks.write(src, QUICK, dest, |start, sequences, counts| {
            quick.parse(src, start, src.len().min(start + SEGMENT), sequences, counts)
        })
    }

    fn try_short(
        &mut self,
        src: &[u8],
        effort: Effort,
        literal_bits: usize,
        choose: for<'a> fn(&'a mut Candidates, &Counts) -> &'a Codes,
        dest: &mut [u8],
    ) -> Option<usize> {
        let Encoder { thorough, blocks, .. } = self;
        thorough.begin(src, effort)?;
        thorough.begin_short(literal_bits);
        blocks.write_one(src, THOROUGH_HEADER, choose, dest, |sequences, counts| {
            thorough.parse(src, 0, src.len(), sequences, counts);
        })
    }

    /// Whether a quick search with the fixed codes makes `src`, which is short, shorter by this factor.
    fn shrinks_to(&mut self, src: &[u8], factor: usize) -> bool {
        let Encoder { quick, blocks, .. } = self;
        let len = src.len();
        // What shrinks less has mostly taken too many bits long before its end.
        let ends = [len / 4, len / 2, len];
        let ends = if len < PIECEWISE { &ends[2..] } else { &ends };
        quick.begin(src).is_some_and(|()| {
            blocks.fit_with_fixed_codes(ends, 8 * len / factor, |range, sequences, counts| {
                quick.parse(src, range.start, range.end, sequences, counts)
            })
        })
    }

    fn try_thoroughly(
        &mut self,
        src: &[u8],
        probe: &Probe,
        effort: Effort,
        dest: &mut [u8],
    ) -> Option<usize> {
        let Encoder { thorough, blocks, .. } = self;
        thorough.begin(src, effort)?;
        let mut part = None;
        blocks.write(src, THOROUGH, dest, |start, sequences, counts| {
            let here = probe.part(start);
            if part.replace(here) != Some(here) {
                thorough.begin_part(probe.literal_bits(here));
            }
            let end = thorough.parse(src, start, src.len().min(start + SEGMENT), sequences, counts);
            if let Some(bits) = counts.literal_bits() {
                thorough.expect_literals(bits);
            }
            end
        })
    }
}

/// Begins a stream with `bytes` as they are; returns what that takes, whole bytes. `None` if it does not fit.
pub(super) fn begin_raw(bytes: &[u8], dest: &mut [u8]) -> Option<usize> {
    let mut out = BitWriter::new(dest);
    out.append(&THOROUGH_HEADER)?;
    bytes.chunks(RAW_BLOCK).try_for_each(|part| write_raw(part, false, &mut out))?;
    Some(out.len())
}

/// Completes the stream that holds `src`; returns its size.
fn finish(src: &[u8], mut out: BitWriter<'_>) -> Option<usize> {
    out.append(&adler32(src).to_be_bytes())?;
    Some(out.len())
}
