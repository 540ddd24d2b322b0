//! Blocks of a stream: each is parsed segment by segment, and then written with the codes that suit it, or raw. It ends
//! where the data change so much that other codes pay.

#![forbid(unsafe_code)]

use super::bits::{BitWriter, Code};
use super::counts::Counts;
use super::huffman::{Candidates, Codes};
use super::sequence::Sequence;
use super::{finish, thorough};
use crate::codecs::zlib::format::RAW;
use crate::error::Result;
use crate::memory::{with_capacity, zeroed_box};
use std::ops::Range;

/// The most bytes that a raw block can hold.
pub(super) const RAW_BLOCK: usize = 0xffff;
/// Blocks consist of segments of about this many bytes.
pub(super) const SEGMENT: usize = 8 << 10;
/// From this size on, a block takes no more segments.
pub(super) const MAX_BLOCK: usize = 1 << 18;
/// Blocks that codes make shorter by less than this part are raw: they are decoded ten times as fast.
const HARDLY: usize = 32;

/// How blocks are made.
pub(super) struct Manner {
    /// What the stream begins with.
    pub(super) header: [u8; 2],
    /// A block gets codes of its own if they seem to save at least this many bits.
    pub(super) least_saved: usize,
    /// A segment begins a new block if that seems to save more than this many bits; [`CODES_COST`] is enough if just
    /// one of the two is noise, which is raw.
    pub(super) new_codes: usize,
}

/// About how many bits a block takes to tell its codes.
const CODES_COST: usize = 400;

/// What was found in the current block, and how often each code is needed there and in the segment that may become a
/// part of it.
pub(super) struct Blocks {
    sequences: Vec<Sequence>,
    pub(super) counts: Box<Counts>,
    segment: Box<Counts>,
    pub(super) candidates: Candidates,
}

impl Blocks {
    pub(super) fn new() -> Result<Blocks> {
        Ok(Blocks {
            sequences: with_capacity(thorough::MOST_SEQUENCES)?,
            counts: zeroed_box()?,
            segment: zeroed_box()?,
            candidates: Candidates::new()?,
        })
    }

    /// Writes `src` into `dest`; returns the size of the stream, or `None` if it does not fit. `parse` is told where a
    /// segment begins, adds what it finds to the sequences and the counts, and returns where the segment ends.
    pub(super) fn write(
        &mut self,
        src: &[u8],
        manner: Manner,
        dest: &mut [u8],
        mut parse: impl FnMut(usize, &mut Vec<Sequence>, &mut Counts) -> usize,
    ) -> Option<usize> {
        let Blocks { sequences, counts, segment, candidates } = self;
        let mut out = BitWriter::new(dest);
        out.append(&manner.header)?;
        candidates.begin();
        sequences.clear();
        counts.reset();
        let (mut block_start, mut start, mut entropy) = (0, 0, 0);
        while start < src.len() {
            let nbefore = sequences.len();
            segment.reset();
            let end = parse(start, sequences, segment);
            let mut both = Counts::clone(counts);
            both.add(segment);
            let (added, together) = (segment.entropy(), both.entropy());
            let block_is_noise = is_noise(entropy + counts.extra_bits, start - block_start);
            let differs = block_is_noise != is_noise(added + segment.extra_bits, end - start);
            let new_codes = if differs { CODES_COST } else { manner.new_codes };
            let is_new = end - block_start > MAX_BLOCK || together > entropy + added + new_codes;
            if start > block_start && is_new {
                let codes = candidates.suited(counts, manner.least_saved);
                let block = &src[block_start..start];
                write_block(codes, block, false, &mut out, |out| {
                    write_sequences(codes, block, &sequences[..nbefore], out)
                })?;
                sequences.drain(..nbefore);
                std::mem::swap(counts, segment);
                (block_start, entropy) = (start, added);
            } else {
                (**counts, entropy) = (both, together);
            }
            start = end;
        }
        let codes = candidates.suited(counts, manner.least_saved);
        let block = &src[block_start..];
        write_block(codes, block, true, &mut out, |out| write_sequences(codes, block, sequences, out))?;
        finish(src, out)
    }

    /// Whether what `parse` finds, as blocks with the fixed codes that end at `ends` or somewhat behind, takes at most
    /// `most` bits. As soon as it takes more, the rest is not parsed.
    pub(super) fn fit_with_fixed_codes(
        &mut self,
        ends: &[usize],
        most: usize,
        mut parse: impl FnMut(Range<usize>, &mut Vec<Sequence>, &mut Counts) -> usize,
    ) -> bool {
        let Blocks { sequences, counts, candidates, .. } = self;
        let (mut start, mut nbits) = (0, 0);
        ends.iter().all(|&end| {
            if start < end {
                sequences.clear();
                counts.reset();
                start = parse(start..end, sequences, counts);
                nbits += candidates.fixed(counts).nbits();
            }
            nbits <= most
        })
    }

    /// [`write`](Self::write) with one block, for what is short, and the codes that `choose` prefers.
    pub(super) fn write_one(
        &mut self,
        src: &[u8],
        header: [u8; 2],
        choose: for<'a> fn(&'a mut Candidates, &Counts) -> &'a Codes,
        dest: &mut [u8],
        parse: impl FnOnce(&mut Vec<Sequence>, &mut Counts),
    ) -> Option<usize> {
        let Blocks { sequences, counts, candidates, .. } = self;
        candidates.begin();
        sequences.clear();
        counts.reset();
        parse(sequences, counts);
        let codes = choose(candidates, counts);
        let mut out = BitWriter::new(dest);
        out.append(&header)?;
        write_block(codes, src, true, &mut out, |out| write_sequences(codes, src, sequences, out))?;
        finish(src, out)
    }
}

/// Whether codes make this many bytes, which take `nbits` with them, so little shorter that they are rather left raw.
fn is_noise(nbits: usize, nbytes: usize) -> bool {
    nbits >= 8 * (nbytes - nbytes / HARDLY)
}

/// Writes `block` with the codes that were made for it, which `write_data` puts after the header, or raw.
pub(super) fn write_block<'a>(
    codes: &Codes,
    block: &[u8],
    is_last: bool,
    out: &mut BitWriter<'a>,
    write_data: impl FnOnce(&mut BitWriter<'a>),
) -> Option<()> {
    let nbits = codes.nbits();
    let parts = block.chunks(RAW_BLOCK);
    if is_noise(nbits.saturating_sub(8 * 4 * parts.len()), block.len()) {
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

/// Writes `bytes` as they are.
pub(super) fn write_raw(bytes: &[u8], is_last: bool, out: &mut BitWriter<'_>) -> Option<()> {
    out.put(Code::new(u32::from(is_last) | RAW << 1, 3));
    let len = u16::try_from(bytes.len()).expect("blocks are that short");
    out.append(&len.to_le_bytes())?;
    out.append(&(!len).to_le_bytes())?;
    out.append(bytes)
}

/// Writes the literals of `block`, and the matches between them, and the end.
pub(super) fn write_sequences(codes: &Codes, block: &[u8], sequences: &[Sequence], out: &mut BitWriter<'_>) {
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
            out.flush();
        }
        let distance = codes.distance(sequence.distance());
        for piece in sequence.pieces() {
            // With its extra bits, a length has at most 20 bits, and a distance 28.
            out.put(codes.length(piece));
            out.put(distance);
            out.flush();
        }
        rest = &behind[sequence.len()..];
    }
    out.put(codes.end_of_block());
    out.flush();
}
