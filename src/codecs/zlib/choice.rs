//! zlib streams by several implementations, since none is the fastest one everywhere.
//!
//! | what | encodes | decodes |
//! |---|---|---|
//! | our own | level 1; short streams; up to level 8, matches that are rare or long, as in most of what was shuffled | all but text; parts of streams |
//! | libdeflate | short matches | text |
//! | zlib-rs | runs at level 1; what counts at levels 2, 3, 6 to 8; what is long, varied and repetitive at level 5; above, some of what shrinks far | |
//!
//! The choice depends on the stream and the level alone, so that equal streams give equal bytes, whatever room there
//! is.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use super::deflate::{Effort, WAYS};
use super::look::{Shares, begins_with_near_matches};
use super::period::is_periodic;
use super::{deflate, inflate, libdeflate, stream};
use crate::error::Result;
use crate::memory::made;
use std::cell::LazyCell;
use std::ops::{Deref, Range, RangeInclusive};

/// How a compression level is reached.
enum Level {
    /// zlib-ng hardly searches, which libdeflate cannot do. The quick searches of our own encoder do: 1.1 to 7 times as
    /// fast with streams that are a tenth smaller. From this share of runs on, in percent, zlib-rs is faster.
    Quick { runs_for_zlib: usize },
    /// Our own encoder's thorough search, if there is one for this level and matches are few: twice as fast as
    /// libdeflate then, four times with runs and noise, with streams as small as those of zlib-ng. Otherwise,
    /// libdeflate's level that compresses as well, over all kinds of data, as zlib-ng does on this one. The first of
    /// some kinds that a stream is of comes before both.
    Searched { effort: Option<Effort>, otherwise: i32, kinds: &'static [Kind] },
}

/// A kind of streams, and who takes them instead of the usual encoder of a level. What tells it takes the longer the
/// further down it stands.
struct Kind {
    /// How many bytes they have.
    lengths: RangeInclusive<usize>,
    /// The least share of runs, in percent.
    runs: usize,
    /// Whether they have few matches, or many; `None` for both.
    few_matches: Option<bool>,
    /// How many bits a literal takes, in sixteenths; `None` for any.
    literal_bits: Option<Range<usize>>,
    /// Whether they must repeat themselves from far back.
    periodic: bool,
    /// The least number of bytes for each literal or match, in sixteenths.
    bytes: usize,
    by: By,
}

/// An encoder for whole streams.
enum By {
    /// Our own, with a quick search.
    Quick,
    /// Our own, with the level's effort.
    Own,
    /// Our own, with the utmost effort.
    Utmost,
    Libdeflate(i32),
    /// zlib-rs, which makes the streams of zlib-ng.
    Zlib,
}

/// The most that our own encoder searches for.
const UTMOST: Effort = Effort { steps_per_bit: 40, long: 258, ways: WAYS };

const fn searched(effort: Option<Effort>, otherwise: i32, kinds: &'static [Kind]) -> Level {
    Level::Searched { effort, otherwise, kinds }
}

const fn effort(steps_per_bit: usize, long: usize) -> Option<Effort> {
    Some(Effort { steps_per_bit, long, ways: WAYS })
}

/// Streams of up to this number of bytes are medium ones. To see how far one shrinks takes longer than that saves.
const MEDIUM: usize = 12 << 10;

/// Streams of any kind.
const ANY: Kind = Kind {
    lengths: 0..=usize::MAX,
    runs: 0,
    few_matches: None,
    literal_bits: None,
    periodic: false,
    bytes: 0,
    by: By::Own,
};

/// Where a byte is mostly the one before, as in high bytes of small numbers and in sparse items.
const fn runs(by: By) -> Kind {
    Kind { runs: 50, by, ..ANY }
}

/// What is medium.
const fn medium(by: By) -> Kind {
    Kind { lengths: 0..=MEDIUM, by, ..ANY }
}

/// The same with runs.
const fn medium_with_runs(by: By) -> Kind {
    Kind { lengths: 0..=MEDIUM, ..runs(by) }
}

/// What is medium and has many matches.
const fn medium_with_matches(by: By) -> Kind {
    Kind { few_matches: Some(false), ..medium(by) }
}

/// The same with few different bytes, such as letters of genes and codes of categories. libdeflate follows very many
/// matches there that save nothing.
const fn medium_with_few_values(literal_bits: Range<usize>) -> Kind {
    Kind { literal_bits: Some(literal_bits), ..medium_with_matches(By::Own) }
}

/// What is longer, repeats itself, and has few different bytes, as text of wide characters and codes of categories: of
/// what a place may repeat, there is more than a search with few steps sees.
const fn repetitive(by: By) -> Kind {
    repetitive_with(0..69, by)
}

/// The same where literals take this many bits.
const fn repetitive_with(literal_bits: Range<usize>, by: By) -> Kind {
    Kind {
        lengths: MEDIUM + 1..=usize::MAX,
        few_matches: Some(false),
        literal_bits: Some(literal_bits),
        bytes: 72,
        by,
        ..ANY
    }
}

/// What repeats itself more, as drawings do.
const fn very_repetitive(by: By) -> Kind {
    Kind { bytes: 160, ..repetitive(by) }
}

/// The same where most bytes have one value, as with sparse items.
const fn sparse(by: By) -> Kind {
    Kind { bytes: 224, ..repetitive_with(0..29, by) }
}

/// What repeats itself in streams with which zlib-rs takes not much longer than zlib-ng, as it does with shorter ones.
const fn long_and_varied(by: By) -> Kind {
    Kind { lengths: 32 << 10..=usize::MAX, ..repetitive_with(29..69, by) }
}

/// What repeats itself from far back, line by line, with many matches in a line. Our own search passes over matches as
/// long as that, where others take their time for each byte.
const PERIODIC: Kind = Kind {
    lengths: MEDIUM + 1..=usize::MAX,
    few_matches: Some(false),
    periodic: true,
    by: By::Utmost,
    ..ANY
};

/// What counts: all values are equally frequent in the first bytes of a stream, even in samples, which noise hardly
/// ever achieves, and yet there are matches everywhere, as in what was shuffled of item numbers whose bits are mixed.
const fn counters(bytes: usize, by: By) -> Kind {
    Kind { lengths: MEDIUM + 1..=usize::MAX, literal_bits: Some(UNIFORM..8 * 16 + 1), bytes, by, ..ANY }
}

/// What shrinks so far that zlib-ng, at its upper levels, searches it to the end, and others find less.
const fn far(by: By) -> Kind {
    Kind { bytes: 192, by, ..ANY }
}

/// The same in long streams with few matches. In shorter ones, our own search finds as much.
const fn long_and_far(by: By) -> Kind {
    Kind { lengths: (32 << 10) + 1..=usize::MAX, few_matches: Some(true), ..far(by) }
}

/// Levels 1 to 9.
const LEVELS: [Level; 9] = [
    Level::Quick { runs_for_zlib: 75 },
    searched(
        effort(2, 8),
        1,
        &[
            runs(By::Quick),
            medium(By::Libdeflate(1)),
            PERIODIC,
            Kind { few_matches: Some(true), ..far(By::Quick) },
            Kind { bytes: 192, ..repetitive(By::Quick) },
            Kind { few_matches: Some(true), ..counters(64, By::Own) },
            counters(36, By::Zlib),
        ],
    ),
    searched(
        effort(2, 8),
        2,
        &[
            medium_with_runs(By::Own),
            medium(By::Libdeflate(1)),
            PERIODIC,
            counters(64, By::Own),
            counters(36, By::Zlib),
        ],
    ),
    searched(
        effort(4, 16),
        3,
        &[
            medium_with_runs(By::Own),
            medium_with_few_values(33..60),
            medium_with_matches(By::Libdeflate(3)),
            PERIODIC,
            sparse(By::Libdeflate(5)),
            very_repetitive(By::Libdeflate(5)),
            counters(128, By::Own),
            counters(36, By::Utmost),
        ],
    ),
    searched(
        effort(10, 258),
        4,
        &[
            medium_with_runs(By::Own),
            medium_with_few_values(33..60),
            medium_with_matches(By::Libdeflate(4)),
            PERIODIC,
            sparse(By::Own),
            very_repetitive(By::Libdeflate(6)),
            long_and_varied(By::Zlib),
            repetitive_with(29..69, By::Libdeflate(5)),
            Kind { few_matches: Some(false), ..counters(36, By::Utmost) },
        ],
    ),
    searched(
        Some(UTMOST),
        5,
        &[
            medium_with_runs(By::Own),
            medium_with_few_values(29..60),
            medium_with_matches(By::Libdeflate(5)),
            PERIODIC,
            repetitive_with(0..20, By::Own),
            repetitive(By::Zlib),
            Kind { few_matches: Some(true), ..counters(72, By::Own) },
            counters(36, By::Zlib),
        ],
    ),
    searched(
        Some(UTMOST),
        6,
        &[
            medium_with_runs(By::Own),
            medium_with_few_values(29..60),
            medium_with_matches(By::Libdeflate(6)),
            PERIODIC,
            Kind { few_matches: Some(true), ..runs(By::Own) },
            long_and_far(By::Zlib),
            repetitive_with(29..69, By::Zlib),
            repetitive(By::Libdeflate(7)),
            Kind { few_matches: Some(true), ..counters(72, By::Own) },
            counters(36, By::Zlib),
        ],
    ),
    searched(
        Some(UTMOST),
        6,
        &[
            medium_with_runs(By::Own),
            medium_with_few_values(29..60),
            medium_with_matches(By::Libdeflate(6)),
            PERIODIC,
            Kind { few_matches: Some(true), ..runs(By::Own) },
            long_and_far(By::Zlib),
            repetitive(By::Libdeflate(8)),
            Kind { few_matches: Some(true), ..counters(72, By::Own) },
            counters(36, By::Zlib),
        ],
    ),
    searched(
        None,
        7,
        &[
            medium_with_runs(By::Libdeflate(8)),
            medium(By::Libdeflate(7)),
            Kind { by: By::Zlib, few_matches: None, ..PERIODIC },
            Kind { few_matches: Some(true), ..far(By::Zlib) },
            sparse(By::Zlib),
            repetitive(By::Libdeflate(8)),
        ],
    ),
];

/// Streams of up to this number of bytes, and of half as many at level 2, are short: they are searched thoroughly by
/// our own encoder, whatever they are like. The tables of other encoders take longer to clear than such a stream to
/// compress. From level 2 on, so are somewhat longer ones that shrink far: other encoders have codes for them that take
/// longer to read than all the rest.
const SHORT: usize = 1 << 10;

/// Streams below this number of bytes are tiny: the quick search needs a fifth of the time, but knows only the fixed
/// codes there, which is what zlib-ng has at level 1. From CODED bytes on, codes of their own may pay.
const TINY: usize = deflate::TINY;
const CODED: usize = 64;

/// Where tiny streams have codes of their own. To try these takes three times as long as the quick search.
struct Tiny {
    /// They are tried if the quick search leaves more than this number of eighths of the stream.
    least_left: usize,
    /// They are tried only if they seem to save more than this number of eighths of a bit for each byte of the stream.
    least_saved: usize,
}

/// From level 4 on.
const TINY_CODED: Tiny = Tiny { least_left: 3, least_saved: 0 };
/// At levels 2 and 3.
const TINY_HARDLY_CODED: Tiny = Tiny { least_left: 4, least_saved: 4 };

/// Streams of this many bytes and more may be looked at before they are decoded. With shorter ones, that takes longer
/// than it saves.
const LOOKED_AT: usize = 16 << 10;

/// Where a literal seems to take this many bits, in sixteenths, there may be noise.
const NOISY: usize = 7 * 16;
/// Where all values are equally frequent in samples, a literal takes as many.
const UNIFORM: usize = 127;

impl Kind {
    /// Whether `src`, which `probe` looks at, may be of this kind, as far as that tells.
    fn may_be(&self, src: &[u8], probe: &impl Deref<Target = deflate::Probe>) -> bool {
        self.lengths.contains(&src.len())
            && (self.runs == 0 || share_of_runs(src) >= self.runs)
            && self.few_matches.is_none_or(|few| few == probe.has_few_matches())
            && self.literal_bits.as_ref().is_none_or(|bits| bits.contains(&probe.first_literal_bits()))
            && (!self.periodic || is_periodic(src))
    }
}

/// The encoders of one thread.
pub(crate) struct Encoder {
    /// `None` before the first use.
    deflate: Option<deflate::Encoder>,
    stream: stream::Encoder,
    libdeflate: libdeflate::Encoder,
    /// For streams that are searched further, so that they do not replace the other one.
    further: libdeflate::Encoder,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            deflate: None,
            stream: stream::Encoder::new(),
            libdeflate: libdeflate::Encoder::new(),
            further: libdeflate::Encoder::new(),
        }
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let nlevel = usize::from(clevel.clamp(1, 9) - 1);
        if src.len() < TINY {
            return self.compress_tiny(clevel, src, dest);
        }
        if is_short(clevel, src.len()) {
            return Ok(self.deflate()?.compress_short(src, short_effort(clevel, src.len()), dest));
        }
        if clevel > 1 && self.deflate()?.shrinks_far(src) {
            return Ok(self.deflate()?.compress_far(src, short_effort(clevel, src.len()), dest));
        }
        match &LEVELS[nlevel] {
            Level::Quick { runs_for_zlib } if share_of_runs(src) >= *runs_for_zlib => {
                self.stream.compress(clevel, src, dest)
            }
            Level::Quick { .. } => Ok(self.deflate()?.compress_quickly(src, dest)),
            Level::Searched { effort, otherwise, kinds } => {
                let probe = LazyCell::new(|| deflate::Probe::of(src));
                let level = match (self.taker(src, &probe, kinds)?, effort) {
                    (Some(By::Zlib), _) => return self.stream.compress(clevel, src, dest),
                    (Some(By::Quick), _) => return Ok(self.deflate()?.compress_quickly(src, dest)),
                    (Some(By::Libdeflate(level)), _) => *level,
                    (Some(By::Utmost), _) => {
                        return Ok(self.deflate()?.compress_thoroughly(src, &probe, UTMOST, dest));
                    }
                    (by, Some(effort)) if by.is_some() || probe.has_few_matches() => {
                        return Ok(self.deflate()?.compress_thoroughly(src, &probe, *effort, dest));
                    }
                    _ => *otherwise,
                };
                let noise = self.noise_len(src, &probe)?;
                let libdeflate = if level == *otherwise { &mut self.libdeflate } else { &mut self.further };
                compress_behind_noise(libdeflate, level, src, noise, dest)
            }
        }
    }

    /// What takes `src`, which `probe` looks at, as it is of one of these kinds; `None` if it is of none.
    fn taker<'a>(
        &mut self,
        src: &[u8],
        probe: &impl Deref<Target = deflate::Probe>,
        kinds: &'a [Kind],
    ) -> Result<Option<&'a By>> {
        let mut bytes = None;
        for kind in kinds.iter().filter(|kind| kind.may_be(src, probe)) {
            if kind.bytes > 0 {
                let deflate = self.deflate()?;
                if *bytes.get_or_insert_with(|| deflate.bytes_per_token(src)) < kind.bytes {
                    continue;
                }
            }
            return Ok(Some(&kind.by));
        }
        Ok(None)
    }

    /// [`compress`](Self::compress) for a tiny stream, which is searched thoroughly if the quick search is not enough.
    fn compress_tiny(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        if dest.len() >= src.len() {
            return self.compress_tiny_with_room(clevel, src, dest);
        }
        // What the quick search makes of the stream has to be known even if it does not fit.
        let mut room = [0; TINY];
        let size = self.compress_tiny_with_room(clevel, src, &mut room[..src.len()])?;
        let Some(dest) = dest.get_mut(..size) else { return Ok(0) };
        dest.copy_from_slice(&room[..size]);
        Ok(size)
    }

    /// [`compress_tiny`](Self::compress_tiny) if there is room for the stream as it is.
    fn compress_tiny_with_room(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let quick = self.deflate()?.compress_quickly(src, dest);
        let Tiny { least_left, least_saved } = match clevel {
            ..=1 => return Ok(quick),
            2..=3 => TINY_HARDLY_CODED,
            _ => TINY_CODED,
        };
        let fits = quick > 0;
        let is_small = fits && quick <= src.len() * least_left / 8;
        // To be of use, a stream with codes of its own must be smaller than this one, or fit if that does not.
        let most = if fits { quick - 1 } else { dest.len() };
        let most = most.min(src.len());
        let least_bits = || deflate::coded_bits(src) + src.len() * least_saved / 8;
        if is_small || src.len() < CODED || least_bits() > 8 * most {
            return Ok(quick);
        }
        let mut room = [0; TINY];
        let smaller = self.deflate()?.compress_short(src, short_effort(clevel, src.len()), &mut room[..most]);
        if smaller == 0 {
            return Ok(quick);
        }
        dest[..smaller].copy_from_slice(&room[..smaller]);
        Ok(smaller)
    }

    /// How many bytes `src`, which `probe` looks at, begins with that are noise. With medium streams, libdeflate sees
    /// it.
    fn noise_len(&mut self, src: &[u8], probe: &impl Deref<Target = deflate::Probe>) -> Result<usize> {
        let may_be = src.len() > MEDIUM && probe.first_literal_bits() >= NOISY;
        if may_be { Ok(self.deflate()?.noise_len(src)) } else { Ok(0) }
    }

    /// Our own encoder.
    fn deflate(&mut self) -> Result<&mut deflate::Encoder> {
        made(&mut self.deflate, deflate::Encoder::new)
    }
}

/// Compresses `src` with libdeflate, except for the first `noise` bytes, which stay as they are: libdeflate has codes
/// for what they save a percent of, and any decoder takes ten times as long with these.
fn compress_behind_noise(
    libdeflate: &mut libdeflate::Encoder,
    level: i32,
    src: &[u8],
    noise: usize,
    dest: &mut [u8],
) -> Result<usize> {
    if noise == 0 {
        return libdeflate.compress(level, src, dest);
    }
    let (noise, rest) = src.split_at(noise);
    let checksum = libdeflate::adler32(src).to_be_bytes();
    let Some(room) = dest.len().checked_sub(checksum.len()) else { return Ok(0) };
    let Some(start) = deflate::begin_raw(noise, &mut dest[..room]) else { return Ok(0) };
    let len = libdeflate.compress_blocks(level, rest, &mut dest[start..room])?;
    if len == 0 {
        return Ok(0);
    }
    let end = start + len;
    dest[end..end + checksum.len()].copy_from_slice(&checksum);
    Ok(end + checksum.len())
}

/// Whether a stream of this many bytes is short at a level. At the first one, the quick search suits all.
fn is_short(clevel: u8, len: usize) -> bool {
    match clevel {
        ..=1 => false,
        2 => len <= SHORT / 2,
        _ => len <= SHORT,
    }
}

/// How thoroughly a short stream of this many bytes is searched at a level: up to half of the length, there is time for
/// more. It shrinks about as much as with zlib-ng.
fn short_effort(clevel: u8, len: usize) -> Effort {
    let is_little = clevel <= 2 || clevel <= 6 && len > SHORT / 2;
    Effort { ways: if is_little { 1 } else { WAYS }, ..UTMOST }
}

/// How many percent of `src` are runs of one byte, judged by samples; 0 if it is too short for them.
fn share_of_runs(src: &[u8]) -> usize {
    const SAMPLES: usize = 64;
    const SAMPLE: usize = 16;
    let distance = src.len() / SAMPLES;
    if distance < SAMPLE {
        return 0;
    }
    let is_run = |bytes: &[u8]| bytes.iter().fold(0, |differs, &byte| differs | (byte ^ bytes[0])) == 0;
    let parts = src.chunks_exact(distance).take(SAMPLES);
    100 * parts.filter(|part| is_run(&part[..SAMPLE])).count() / SAMPLES
}

/// The decoders of one thread.
pub(crate) struct Decoder {
    inflate: inflate::Decoder,
    libdeflate: libdeflate::Decoder,
}

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder { inflate: inflate::Decoder::new(), libdeflate: libdeflate::Decoder::new() }
    }

    /// Decompresses `src`, which must give exactly `dest.len()` bytes. Bytes after the stream's end are ignored.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged or holds another number of bytes, `MemoryAlloc`.
    pub(crate) fn decompress(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        if is_for_libdeflate(src, dest.len()) {
            self.libdeflate.decompress(src, dest)
        } else {
            self.inflate.decompress(src, dest)
        }
    }

    /// Decompresses at least the first `wanted` bytes of a stream that holds `dest.len()`. What follows them in `dest`
    /// is arbitrary afterwards.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged as far as it is looked at, `MemoryAlloc`.
    pub(crate) fn decompress_prefix(&mut self, src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
        // libdeflate cannot stop early.
        if wanted > dest.len() / 8 * 7 {
            self.decompress(src, dest)
        } else {
            self.inflate.decompress_prefix(src, wanted, dest)
        }
    }
}

/// Whether libdeflate is the faster one for `src`, from which `nbytes` come. It is in three cases:
/// - many short matches, one after another, as in text and in what was not shuffled;
/// - the fixed codes, where our decoder has no literals to combine, unless matches are from near;
/// - tiny streams, which end before our fast loop pays.
///
/// It takes some codes that zlib and our decoder refuse, such as those for 288 symbols, and nobody writes. In tiny
/// streams it decodes only what needs no codes to be told.
fn is_for_libdeflate(src: &[u8], nbytes: usize) -> bool {
    if nbytes < TINY {
        // The only block is raw or has the fixed codes, unless our own encoder was not good enough.
        return src.get(2).is_some_and(|head| matches!(head & 7, 0b001 | 0b011));
    }
    let Some(deflated) = src.get(2..).filter(|_| nbytes >= LOOKED_AT) else { return false };
    if let Some(is_near) = begins_with_near_matches(deflated) {
        return !is_near;
    }
    // In what shrinks more, not all blocks are like the first one. What shrinks little has matches from near as well.
    let (may_be, is_hard) = (src.len() >= nbytes / 6, src.len() >= nbytes / 2);
    may_be
        && Shares::of_first(deflated).is_some_and(|shares| {
            shares.has_many_short_matches()
                && !shares.has_many_short_literals()
                && (is_hard || shares.has_far_matches())
        })
}
