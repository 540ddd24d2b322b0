//! Identifiers, flag bits and limits, as stored in chunks and frames.

/// Length of the header of Blosc1 chunks, in bytes.
pub const MIN_HEADER_LENGTH: usize = 16;
/// Length of the header of Blosc2 chunks, in bytes.
pub const EXTENDED_HEADER_LENGTH: usize = 32;
/// Most uncompressed bytes in one chunk.
pub const MAX_BUFFERSIZE: usize = 2_147_483_615;
/// Buffers shorter than this are stored; also the least length of a split stream, in bytes.
pub const MIN_BUFFERSIZE: usize = 32;
/// Above this typesize a chunk counts as a stream of bytes.
pub const MAX_TYPESIZE: usize = 255;
/// Hard limit of block sizes and type sizes, in bytes.
pub const MAX_BLOCKSIZE: usize = 536_866_816;
/// Largest dictionary, in bytes.
pub const MAX_DICTSIZE: usize = 32768;
/// Smallest dictionary that is made, in bytes.
pub const MIN_USEFUL_DICT: usize = 256;
/// Most streams that a block is split into by the automatic rule.
pub const MAX_STREAMS: usize = 16;
/// Slots of the filter pipeline.
pub const MAX_FILTERS: usize = 6;
/// The slot of SHUFFLE or BITSHUFFLE where a flag or a variable asks for them: the last one, run last in compression.
pub const SHUFFLE_SLOT: usize = MAX_FILTERS - 1;
/// The filters of compressions that are asked for none: SHUFFLE alone.
pub const DEFAULT_FILTERS: [u8; MAX_FILTERS] = {
    let mut filters = [filter::NONE; MAX_FILTERS];
    filters[SHUFFLE_SLOT] = filter::SHUFFLE;
    filters
};
/// The slot of DELTA where a flag or a variable asks for it: before the shuffles.
pub const DELTA_SLOT: usize = SHUFFLE_SLOT - 1;

/// Chunk format version of Blosc1.
pub const VERSION_BLOSC1: u8 = 2;
/// Chunk format version of the alpha series of Blosc2, with five filter slots.
pub const VERSION_ALPHA: u8 = 3;
/// Chunk format version written for regular chunks.
pub const VERSION_STABLE: u8 = 5;
/// Chunk format version written for chunks of variable-length blocks; the highest one known.
pub const VERSION_VLBLOCKS: u8 = 6;

/// Bits of the flags byte (byte 2) of a chunk header.
pub mod flags {
    /// Bytes are shuffled.
    pub const SHUFFLE: u8 = 0x01;
    /// The payload is the raw buffer.
    pub const MEMCPYED: u8 = 0x02;
    /// Bits are shuffled.
    pub const BITSHUFFLE: u8 = 0x04;
    /// Both shuffle bits: the header is extended, with 32 bytes.
    pub const EXTENDED: u8 = SHUFFLE | BITSHUFFLE;
    /// The delta filter is used.
    pub const DELTA: u8 = 0x08;
    /// Blocks are not split into several streams.
    pub const DONT_SPLIT: u8 = 0x10;
    /// Position of the codec format.
    pub const FORMAT_SHIFT: u32 = 5;
}

/// Bits of byte 30 of a chunk header.
pub mod flags2 {
    /// The chunk holds blocks of variable length.
    pub const VL_BLOCKS: u8 = 0x01;
}

/// Bits of byte 31 of a chunk header.
pub mod blosc2_flags {
    /// A dictionary section is present.
    pub const USE_DICT: u8 = 0x01;
    /// Written on a big-endian host.
    pub const BIG_ENDIAN: u8 = 0x02;
    /// What chunks written on this host have set.
    pub const HOST: u8 = if cfg!(target_endian = "big") { BIG_ENDIAN } else { 0 };
    /// The block data are elsewhere (only in memory).
    pub const LAZY: u8 = 0x08;
    /// Position of the three bits of the special value.
    pub const SPECIAL_SHIFT: u32 = 4;
    /// The three bits of the special value.
    pub const SPECIAL_MASK: u8 = 0x70;
    /// The streams hold measurements of the codec.
    pub const INSTRUMENTED: u8 = 0x80;
}

/// Codec codes, as in `blosc2_cparams.compcode`.
pub mod codec {
    /// BloscLZ.
    pub const BLOSCLZ: u8 = 0;
    /// LZ4.
    pub const LZ4: u8 = 1;
    /// LZ4 with the high-compression encoder.
    pub const LZ4HC: u8 = 2;
    /// zlib.
    pub const ZLIB: u8 = 4;
    /// Zstandard.
    pub const ZSTD: u8 = 5;
    /// First code of the global registry.
    pub const FIRST_REGISTERED: u8 = 32;
    /// Lossless cells of two-dimensional bytes.
    pub const NDLZ: u8 = 32;
    /// ZFP with fixed accuracy.
    pub const ZFP_ACCURACY: u8 = 33;
    /// ZFP with fixed precision.
    pub const ZFP_PRECISION: u8 = 34;
    /// ZFP with fixed rate.
    pub const ZFP_RATE: u8 = 35;
    /// First code that applications may register.
    pub const FIRST_USER: u8 = 160;
}

/// Codec formats, as in bits 5-7 of the flags byte.
pub mod codec_format {
    /// BloscLZ streams.
    pub const BLOSCLZ: u8 = 0;
    /// LZ4 blocks.
    pub const LZ4: u8 = 1;
    /// zlib streams.
    pub const ZLIB: u8 = 3;
    /// Zstandard frames.
    pub const ZSTD: u8 = 4;
    /// The codec code is in byte 22 of the header.
    pub const UDCODEC: u8 = 6;
}

/// Filter ids.
pub mod filter {
    /// An empty slot.
    pub const NONE: u8 = 0;
    /// Byte shuffle.
    pub const SHUFFLE: u8 = 1;
    /// Bit shuffle.
    pub const BITSHUFFLE: u8 = 2;
    /// XOR with the first block.
    pub const DELTA: u8 = 3;
    /// Low mantissa bits zeroed.
    pub const TRUNC_PREC: u8 = 4;
    /// First id of the global registry.
    pub const FIRST_REGISTERED: u8 = 32;
    /// Items reordered into cells.
    pub const NDCELL: u8 = 32;
    /// Cells replaced by their mean.
    pub const NDMEAN: u8 = 33;
    /// Byte differences as old SIMD builds wrote them.
    pub const BYTEDELTA_BUGGY: u8 = 34;
    /// Differences inside byte streams.
    pub const BYTEDELTA: u8 = 35;
    /// Low integer bits zeroed.
    pub const INT_TRUNC: u8 = 36;
    /// Last id that the library defines.
    pub const LAST_REGISTERED: u8 = 36;
    /// First id that applications may register.
    pub const FIRST_USER: u8 = 160;
}

/// How blocks are split into streams: `blosc2_cparams.splitmode`.
pub mod split {
    /// Each block is split.
    pub const ALWAYS: i32 = 1;
    /// No block is split.
    pub const NEVER: i32 = 2;
    /// The library decides.
    pub const AUTO: i32 = 3;
    /// The library decides, as old versions did.
    pub const FORWARD_COMPAT: i32 = 4;
}

/// Special values, as in bits 4-6 of byte 31.
pub mod special {
    /// A regular chunk.
    pub const NONE: u8 = 0;
    /// All zero bytes.
    pub const ZERO: u8 = 1;
    /// All quiet NaNs.
    pub const NAN: u8 = 2;
    /// One value, repeated; it follows the header.
    pub const VALUE: u8 = 3;
    /// Nothing was written.
    pub const UNINIT: u8 = 4;
}
