//! zlib streams by several implementations, since none is the fastest one everywhere: libdeflate, which takes whole streams
//! and is at its best with literals and short matches; zlib-rs, for which long matches are cheap and which can stop early;
//! and for level 1 an encoder of our own. The choice depends on the stream and the level alone, so that equal streams
//! give equal bytes.

#[cfg(test)]
mod tests;

use super::{libdeflate, quick, stream};
use crate::error::Result;

/// How a compression level is reached.
struct Level {
    /// libdeflate's level that compresses as well, over all kinds of data, as zlib-ng does on this one; `None` for our own
    /// encoder.
    libdeflate: Option<i32>,
    /// From this share of runs on, in percent, zlib-rs is faster, which skips over them; libdeflate looks at each byte.
    runs_for_zlib: usize,
}

/// Levels 1 to 9. On the first one zlib-ng hardly searches, which libdeflate cannot do. Our own encoder does, and is twice
/// as fast (one to nine times) with streams that are 13 % smaller; text and the like, where it would take 1.5 times as long,
/// stay with zlib-rs.
const LEVELS: [Level; 9] = [
    Level { libdeflate: None, runs_for_zlib: 75 },
    Level { libdeflate: Some(1), runs_for_zlib: 55 },
    Level { libdeflate: Some(2), runs_for_zlib: 75 },
    Level { libdeflate: Some(3), runs_for_zlib: 75 },
    Level { libdeflate: Some(4), runs_for_zlib: 75 },
    Level { libdeflate: Some(5), runs_for_zlib: 75 },
    Level { libdeflate: Some(6), runs_for_zlib: 101 },
    Level { libdeflate: Some(7), runs_for_zlib: 101 },
    Level { libdeflate: Some(7), runs_for_zlib: 101 },
];

/// Streams below this number of bytes take libdeflate's first level, at any level. They shrink as much, and the larger
/// tables of the others take longer to clear than such a stream to compress.
const SHORT: usize = 512;

/// Streams below this number of bytes take our own encoder, which has nothing to clear at all and needs a tenth of the time.
const TINY: usize = quick::TINY;

/// The encoders of one thread.
pub(crate) struct Encoder {
    quick: quick::Encoder,
    stream: stream::Encoder,
    libdeflate: libdeflate::Encoder,
    /// For short streams, such as the last one of a chunk, so that they do not replace the other one.
    short: libdeflate::Encoder,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            quick: quick::Encoder::new(),
            stream: stream::Encoder::new(),
            libdeflate: libdeflate::Encoder::new(),
            short: libdeflate::Encoder::new(),
        }
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    pub(crate) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> usize {
        if src.len() < TINY {
            return self.quick.compress(src, dest);
        }
        if src.len() < SHORT {
            return self.short.compress(1, src, dest);
        }
        let level = &LEVELS[usize::from(clevel.clamp(1, 9)) - 1];
        if share_of_runs(src) >= level.runs_for_zlib {
            return self.stream.compress(clevel, src, dest);
        }
        match level.libdeflate {
            Some(level) => self.libdeflate.compress(level, src, dest),
            None if self.quick.is_dense(src) => self.stream.compress(clevel, src, dest),
            None => self.quick.compress(src, dest),
        }
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
    stream: stream::Decoder,
    libdeflate: libdeflate::Decoder,
}

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder { stream: stream::Decoder::new(), libdeflate: libdeflate::Decoder::new() }
    }

    /// Decompresses `src`, which must give exactly `dest.len()` bytes. Bytes after the stream's end are ignored.
    pub(crate) fn decompress(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        // Streams that shrank to less than 40 % have long matches, unless they are of the first level.
        let is_first_level = src.starts_with(&quick::HEADER);
        if !is_first_level && src.len().saturating_mul(5) < dest.len().saturating_mul(2) {
            self.stream.decompress(src, dest)
        } else {
            self.libdeflate.decompress(src, dest)
        }
    }

    /// Decompresses the first `dest.len()` bytes of a stream that holds at least as many.
    pub(crate) fn decompress_prefix(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        self.stream.decompress_prefix(src, dest)
    }
}
