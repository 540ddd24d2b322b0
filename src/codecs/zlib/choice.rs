//! zlib streams by several implementations, since none is the fastest one everywhere: an encoder of our own, for level 1,
//! and up to the default level for streams in which matches are rare or long, as in most of what was shuffled;
//! libdeflate, which takes whole streams and is at its best with short matches, also when decoding; zlib-rs, for runs at
//! level 1; and a decoder of our own for all but text, which can stop early. The choice depends on the stream and the level
//! alone, so that equal streams give equal bytes.

#[cfg(test)]
mod tests;

use super::deflate::Effort;
use super::look::Shares;
use super::{deflate, inflate, libdeflate, stream};
use crate::error::Result;
use crate::memory::made;

/// How a compression level is reached.
enum Level {
    /// zlib-ng hardly searches, which libdeflate cannot do. The quick searches of our own encoder do: 1.1 to 7 times as
    /// fast with streams that are a fifth smaller. From this share of runs on, in percent, zlib-rs is faster.
    Quick { runs_for_zlib: usize },
    /// Our own encoder's thorough search, if matches are few: twice as fast as libdeflate then, four times with runs and
    /// noise, with streams as small as those of zlib-ng. Otherwise, libdeflate's level that compresses as well, over all
    /// kinds of data, as zlib-ng does on this one.
    Thorough { effort: Effort, otherwise: i32 },
    /// libdeflate's level that compresses as well as zlib-ng does on this one.
    Deep(i32),
}

/// Levels 1 to 9.
const LEVELS: [Level; 9] = [
    Level::Quick { runs_for_zlib: 75 },
    Level::Thorough { effort: Effort { steps_per_bit: 2, long: 8 }, otherwise: 1 },
    Level::Thorough { effort: Effort { steps_per_bit: 2, long: 8 }, otherwise: 2 },
    Level::Thorough { effort: Effort { steps_per_bit: 4, long: 16 }, otherwise: 3 },
    Level::Thorough { effort: Effort { steps_per_bit: 10, long: 24 }, otherwise: 4 },
    Level::Deep(5),
    Level::Deep(6),
    Level::Deep(7),
    Level::Deep(7),
];

/// Streams below this number of bytes take libdeflate's first level, at any level. They shrink as much, and the larger
/// tables of the others take longer to clear than such a stream to compress.
const SHORT: usize = 512;

/// Streams below this number of bytes take our own encoder, which has nothing to clear at all and needs a tenth of the
/// time.
const TINY: usize = deflate::TINY;

/// Streams of this many bytes and more may be looked at before they are decoded. With shorter ones, that takes longer than
/// it saves.
const LOOKED_AT: usize = 16 << 10;

/// The encoders of one thread.
pub(crate) struct Encoder {
    /// `None` before the first use.
    deflate: Option<deflate::Encoder>,
    stream: stream::Encoder,
    libdeflate: libdeflate::Encoder,
    /// For short streams, such as the last one of a chunk, so that they do not replace the other one.
    short: libdeflate::Encoder,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            deflate: None,
            stream: stream::Encoder::new(),
            libdeflate: libdeflate::Encoder::new(),
            short: libdeflate::Encoder::new(),
        }
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        if src.len() < TINY {
            return Ok(self.deflate()?.compress_quickly(src, dest));
        }
        if src.len() < SHORT {
            return self.short.compress(1, src, dest);
        }
        match LEVELS[usize::from(clevel.clamp(1, 9)) - 1] {
            Level::Quick { runs_for_zlib } => {
                if share_of_runs(src) >= runs_for_zlib {
                    self.stream.compress(clevel, src, dest)
                } else {
                    Ok(self.deflate()?.compress_quickly(src, dest))
                }
            }
            Level::Thorough { effort, otherwise } => {
                let probe = deflate::Probe::of(src);
                if probe.has_few_matches() {
                    Ok(self.deflate()?.compress_thoroughly(src, &probe, effort, dest))
                } else {
                    self.libdeflate.compress(otherwise, src, dest)
                }
            }
            Level::Deep(level) => self.libdeflate.compress(level, src, dest),
        }
    }

    /// Our own encoder.
    fn deflate(&mut self) -> Result<&mut deflate::Encoder> {
        made(&mut self.deflate, deflate::Encoder::new)
    }
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
    pub(crate) fn decompress(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        if is_for_libdeflate(src, dest.len()) {
            self.libdeflate.decompress(src, dest)
        } else {
            self.inflate.decompress(src, dest)
        }
    }

    /// Decompresses at least the first `wanted` bytes of a stream that holds `dest.len()`. What follows them in `dest` is
    /// arbitrary afterwards.
    pub(crate) fn decompress_prefix(&mut self, src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
        // libdeflate cannot stop early.
        if wanted > dest.len() / 8 * 7 {
            self.decompress(src, dest)
        } else {
            self.inflate.decompress_prefix(src, wanted, dest)
        }
    }
}

/// Whether libdeflate is the faster one for `src`, from which `nbytes` come: with many short matches, one after another, as
/// in text and in what was not shuffled; and with tiny streams, which end before our fast loop pays.
///
/// It takes some codes that zlib and our decoder refuse, such as those for 288 symbols, and nobody writes. In tiny streams
/// it decodes only what needs no codes to be told.
fn is_for_libdeflate(src: &[u8], nbytes: usize) -> bool {
    if nbytes < TINY {
        // The only block is raw or has the fixed codes.
        return src.get(2).is_some_and(|head| matches!(head & 7, 0b001 | 0b011));
    }
    // In what shrinks more, not all blocks are like the first one. What shrinks little has matches from near as well.
    let (may_be, is_hard) = (nbytes >= LOOKED_AT && src.len() >= nbytes / 6, src.len() >= nbytes / 2);
    let shares = src.get(2..).filter(|_| may_be).and_then(Shares::of_first);
    shares.is_some_and(|shares| {
        shares.has_many_short_matches()
            && !shares.has_many_short_literals()
            && (is_hard || shares.has_far_matches())
    })
}
