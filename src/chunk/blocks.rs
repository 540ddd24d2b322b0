//! How a buffer is cut into blocks, and blocks into streams.

#![forbid(unsafe_code)]

use super::params::CParams;
use crate::bytes::quotient;
use crate::format::consts::{MAX_BLOCKSIZE, MAX_STREAMS, MAX_TYPESIZE, MIN_BUFFERSIZE, codec, filter, split};

const KIB: usize = 1024;
/// Buffers from this size on get blocks from the tables; smaller ones are one block.
const L1: usize = 32 * KIB;
/// Block sizes in KiB for the compression levels 0 to 9, for fast codecs.
const FAST_BLOCKS: [usize; 10] = [8, 16, 32, 64, 128, 128, 256, 256, 256, 256];
/// The same for codecs with high ratios.
const HIGH_RATIO_BLOCKS: [usize; 10] = [16, 32, 64, 128, 256, 256, 512, 512, 512, 1024];
/// Stream sizes in KiB when blocks are split, for the compression levels 0 to 9.
const SPLIT_STREAMS: [usize; 10] = [32, 32, 32, 32, 64, 64, 64, 128, 256, 512];
/// Largest automatic size of blocks that are split.
const MAX_SPLIT_BLOCK: usize = 4 * KIB * KIB;

/// The layout of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Block size in bytes, at least 1.
    pub(crate) blocksize: usize,
    /// Whether full blocks are split into `typesize` streams.
    pub(crate) split: bool,
    /// Bytes per item as the chunk records it, 1 to 255.
    pub(crate) typesize: usize,
}

impl Layout {
    /// The layout of a chunk of `nbytes` bytes.
    pub(crate) fn new(params: &CParams, nbytes: usize) -> Layout {
        let blocksize = effective_blocksize(params, nbytes);
        let typesize = capped_typesize(params.typesize);
        // Streams of no bytes at all cannot be decoded.
        let split = blocksize >= typesize && is_split(params, typesize, blocksize);
        Layout { blocksize, split, typesize }
    }
}

/// The typesize that a chunk records: items above 255 bytes count as single bytes.
pub(crate) fn capped_typesize(typesize: usize) -> usize {
    if typesize > MAX_TYPESIZE { 1 } else { typesize }
}

/// The block size for a buffer of `nbytes` bytes: as requested or chosen, limited to the buffer, whole items. For an
/// empty buffer, which has no blocks, as requested.
pub fn effective_blocksize(params: &CParams, nbytes: usize) -> usize {
    let typesize = params.typesize;
    if nbytes < typesize {
        let limit = if nbytes == 0 { MAX_BLOCKSIZE } else { nbytes };
        return params.blocksize.clamp(1, limit);
    }
    let wanted = if params.blocksize > 0 { params.blocksize } else { automatic_blocksize(params, nbytes) };
    let size = wanted.min(nbytes).min(MAX_BLOCKSIZE);
    if size > typesize { quotient(size, typesize) * typesize } else { size.max(1) }
}

fn automatic_blocksize(params: &CParams, nbytes: usize) -> usize {
    let level = usize::from(params.clevel.min(9));
    let high_ratio =
        params.codec_id().is_some_and(|id| matches!(id, codec::LZ4HC | codec::ZLIB | codec::ZSTD));
    if params.clevel > 0 && is_split(params, params.typesize, nbytes) {
        let size = (SPLIT_STREAMS[level] * KIB).saturating_mul(params.typesize);
        return size.clamp(L1, MAX_SPLIT_BLOCK);
    }
    if nbytes < L1 {
        return nbytes;
    }
    let table = if high_ratio { &HIGH_RATIO_BLOCKS } else { &FAST_BLOCKS };
    table[level] * KIB
}

/// Whether blocks of `blocksize` bytes are split into one stream per byte of an item.
fn is_split(params: &CParams, typesize: usize, blocksize: usize) -> bool {
    match params.splitmode {
        split::ALWAYS => true,
        split::NEVER => false,
        _ => {
            let suits = match params.codec_id() {
                Some(codec::BLOSCLZ | codec::LZ4) => true,
                Some(codec::ZSTD) => params.clevel <= 5,
                _ => false,
            };
            suits
                && params.filters.contains(&filter::SHUFFLE)
                && typesize <= MAX_STREAMS
                && blocksize >= MIN_BUFFERSIZE * typesize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(compcode: u8, clevel: u8, typesize: usize) -> CParams {
        CParams { compcode: i32::from(compcode), clevel, typesize, ..CParams::default() }
    }

    #[test]
    fn automatic_blocks_follow_the_tables() {
        let unsplit = CParams { filters: [0; 6], ..params(codec::LZ4, 5, 8) };
        assert_eq!(effective_blocksize(&unsplit, 1 << 20), 128 << 10);
        assert_eq!(effective_blocksize(&unsplit, 1000), 1000);
        assert_eq!(effective_blocksize(&params(codec::ZLIB, 9, 8), 4 << 20), 1 << 20);
        assert_eq!(effective_blocksize(&params(codec::LZ4, 5, 8), 4 << 20), 512 << 10);
        assert_eq!(effective_blocksize(&params(codec::LZ4, 9, 16), 16 << 20), 4 << 20);
    }

    #[test]
    fn blocks_are_whole_items_within_the_buffer() {
        let wanted = |blocksize, typesize, nbytes| {
            effective_blocksize(&CParams { blocksize, ..params(0, 5, typesize) }, nbytes)
        };
        assert_eq!(wanted(1000, 7, 10_000), 994);
        assert_eq!(wanted(1000, 7, 500), 497);
        assert_eq!(wanted(3, 7, 500), 3);
        assert_eq!(wanted(1000, 8, 5), 5);
        assert_eq!(wanted(3, 8, 5), 3);
        assert_eq!(wanted(0, 8, 5), 1);
        assert_eq!(wanted(1000, 8, 0), 1000);
        assert_eq!(wanted(0, 8, 0), 1);
    }

    #[test]
    fn streams_are_never_empty() {
        let always = CParams { splitmode: split::ALWAYS, blocksize: 3, ..params(0, 5, 7) };
        assert!(!Layout::new(&always, 500).split);
        let huge = CParams { splitmode: split::ALWAYS, ..params(0, 5, MAX_BLOCKSIZE) };
        assert_eq!(effective_blocksize(&huge, MAX_BLOCKSIZE), MAX_SPLIT_BLOCK);
    }
}
