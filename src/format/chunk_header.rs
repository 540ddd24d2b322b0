//! The 16- and 32-byte headers of chunks.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | format version |
//! | 1 | 1 | version of the codec's stream format |
//! | 2 | 1 | flags, see [`flags`] |
//! | 3 | 1 | typesize |
//! | 4 | 4 | nbytes: uncompressed size |
//! | 8 | 4 | blocksize; number of blocks in chunks of variable-length blocks |
//! | 12 | 4 | cbytes: compressed size, header included |
//! | 16 | 6 | filter ids (here the extended header begins) |
//! | 22 | 1 | codec code |
//! | 23 | 1 | codec meta |
//! | 24 | 6 | filter metas |
//! | 30 | 1 | see [`flags2`] |
//! | 31 | 1 | see [`blosc2_flags`] |

use super::consts::{
    DELTA_SLOT, EXTENDED_HEADER_LENGTH, MAX_BLOCKSIZE, MAX_FILTERS, MIN_HEADER_LENGTH, SHUFFLE_SLOT,
    VERSION_ALPHA, VERSION_STABLE, VERSION_VLBLOCKS, blosc2_flags, codec, codec_format, filter, flags,
    flags2, special,
};
use crate::bytes::{get_i32, put_i32};
use crate::error::{ErrorKind, Result, ensure};

/// Where the fields of a header are, in bytes from its start.
pub mod offset {
    /// Format version.
    pub const VERSION: usize = 0;
    /// Version of the codec's stream format.
    pub const VERSIONLZ: usize = 1;
    /// See [`flags`](super::flags).
    pub const FLAGS: usize = 2;
    /// Bytes per item.
    pub const TYPESIZE: usize = 3;
    /// Uncompressed size.
    pub const NBYTES: usize = 4;
    /// Block size, or number of blocks.
    pub const BLOCKSIZE: usize = 8;
    /// Compressed size.
    pub const CBYTES: usize = 12;
    /// Filter ids.
    pub const FILTERS: usize = 16;
    /// Codec code.
    pub const COMPCODE: usize = 22;
    /// Codec meta.
    pub const COMPCODE_META: usize = 23;
    /// Filter metas.
    pub const FILTERS_META: usize = 24;
    /// See [`flags2`](super::flags2).
    pub const FLAGS2: usize = 30;
    /// See [`blosc2_flags`](super::blosc2_flags).
    pub const BLOSC2_FLAGS: usize = 31;
}

/// The first 16 bytes of a chunk, checked as far as the query functions of the C API check them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BasicHeader {
    /// Format version.
    pub version: u8,
    /// Version of the codec's stream format.
    pub versionlz: u8,
    /// Flag bits, see [`flags`].
    pub flags: u8,
    /// Bytes per item, at least 1.
    pub typesize: u8,
    /// Uncompressed size as stored; hostile chunks may hold a negative one.
    pub nbytes: i32,
    /// Block size in bytes, at least 1 and, unless `nbytes <= 0`, at most `nbytes`. For chunks of variable-length
    /// blocks this is their number, but the basic header cannot tell.
    pub blocksize: i32,
    /// Compressed size with the header, at least 16.
    pub cbytes: i32,
}

impl BasicHeader {
    /// Reads the first 16 bytes of a chunk.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` if `bytes` is shorter than 16, `InvalidHeader` for fields out of range.
    pub fn read(bytes: &[u8]) -> Result<BasicHeader> {
        let header = Self::read_fields(bytes)?;
        let cap = header.nbytes > 0 && header.blocksize > header.nbytes;
        Ok(BasicHeader { blocksize: if cap { header.nbytes } else { header.blocksize }, ..header })
    }

    fn read_fields(bytes: &[u8]) -> Result<BasicHeader> {
        ensure(bytes.len() >= MIN_HEADER_LENGTH, ErrorKind::ReadBuffer, "chunk shorter than its header")?;
        let field = |at| get_i32(bytes, at).expect("16 bytes were checked");
        let (nbytes, blocksize, cbytes) =
            (field(offset::NBYTES), field(offset::BLOCKSIZE), field(offset::CBYTES));
        ensure(cbytes >= 16, ErrorKind::InvalidHeader, "cbytes smaller than the header")?;
        let in_range = usize::try_from(blocksize).is_ok_and(|size| (1..=MAX_BLOCKSIZE).contains(&size));
        ensure(in_range, ErrorKind::InvalidHeader, "blocksize out of range")?;
        ensure(bytes[offset::TYPESIZE] != 0, ErrorKind::InvalidHeader, "typesize is zero")?;
        Ok(BasicHeader {
            version: bytes[offset::VERSION],
            versionlz: bytes[offset::VERSIONLZ],
            flags: bytes[offset::FLAGS],
            typesize: bytes[offset::TYPESIZE],
            nbytes,
            blocksize,
            cbytes,
        })
    }

    /// Whether the header is extended: whether 16 more bytes of it follow these.
    #[must_use]
    #[inline]
    pub fn is_extended(&self) -> bool {
        self.flags & flags::EXTENDED == flags::EXTENDED
    }

    /// The format of the codec, see [`codec_format`].
    #[must_use]
    #[inline]
    pub fn codec_format(&self) -> u8 {
        self.flags >> flags::FORMAT_SHIFT
    }
}

/// A whole chunk header, validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Format version.
    pub version: u8,
    /// Version of the codec's stream format.
    pub versionlz: u8,
    /// Flag bits, see [`flags`].
    pub flags: u8,
    /// Bytes per item, 1 to 255.
    pub typesize: usize,
    /// Uncompressed size in bytes.
    pub nbytes: usize,
    /// Block size in bytes, at least 1 and, unless `nbytes` is 0, at most `nbytes`; the number of blocks in chunks of
    /// variable-length blocks.
    pub blocksize: usize,
    /// Compressed size in bytes, header included.
    pub cbytes: usize,
    /// The filter pipeline; derived from the flags if the header is a short one.
    pub filters: [u8; MAX_FILTERS],
    /// Meta bytes of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// Codec code, 0 if the header is a short one.
    pub compcode: u8,
    /// Meta byte of the codec.
    pub compcode_meta: u8,
    /// See [`flags2`]; 0 if the header is a short one.
    pub flags2: u8,
    /// See [`blosc2_flags`]; 0 if the header is a short one.
    pub blosc2_flags: u8,
}

/// The bits that 16-byte headers have for filters, as far as there are any for `filters`.
pub(crate) fn filter_flags(filters: &[u8; MAX_FILTERS]) -> u8 {
    let bit = |&id: &u8| match id {
        filter::SHUFFLE => flags::SHUFFLE,
        filter::BITSHUFFLE => flags::BITSHUFFLE,
        filter::DELTA => flags::DELTA,
        _ => 0,
    };
    filters.iter().map(bit).fold(0, |all, bit| all | bit)
}

impl ChunkHeader {
    /// A header to read into.
    pub const EMPTY: ChunkHeader = ChunkHeader {
        version: 0,
        versionlz: 0,
        flags: 0,
        typesize: 1,
        nbytes: 0,
        blocksize: 1,
        cbytes: 0,
        filters: [0; MAX_FILTERS],
        filters_meta: [0; MAX_FILTERS],
        compcode: 0,
        compcode_meta: 0,
        flags2: 0,
        blosc2_flags: 0,
    };

    /// The header of a chunk without filters and codec, with sizes to be filled in.
    pub(crate) const BARE: ChunkHeader =
        ChunkHeader { version: VERSION_STABLE, versionlz: 1, flags: flags::EXTENDED, ..ChunkHeader::EMPTY };

    /// Reads and validates the header at the start of `bytes`, which may be longer or shorter than the chunk.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` if the header is cut off, `InvalidHeader` for contradictions, `VersionSupport` for chunks of a
    /// future version with features unknown here.
    pub fn read(bytes: &[u8]) -> Result<ChunkHeader> {
        let mut header = ChunkHeader::EMPTY;
        header.read_from(bytes)?;
        Ok(header)
    }

    /// As [`read`](Self::read), in place: moving a header right after it was read shows with small chunks.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); the header is arbitrary then.
    #[inline(always)]
    pub fn read_from(&mut self, bytes: &[u8]) -> Result<()> {
        if self.read_ordinary(bytes) {
            return Ok(());
        }
        self.read_any(bytes)
    }

    /// Reads a header of 32 bytes with nothing unusual about it, in few instructions, and returns whether it is one. If
    /// not, `self` is as before, and [`read_from`](Self::read_from) tells what it is.
    ///
    /// (Each field goes from its place to its place: a struct that was put together elsewhere from small pieces, and
    /// copied in large ones, makes the CPU wait.)
    #[inline(always)]
    pub(crate) fn read_ordinary(&mut self, bytes: &[u8]) -> bool {
        let Some(raw) = bytes.first_chunk::<EXTENDED_HEADER_LENGTH>() else { return false };
        let size = |at: usize| {
            let field = raw[at..].first_chunk().map_or(-1, |field| i32::from_le_bytes(*field));
            usize::try_from(field).ok()
        };
        let (Some(nbytes), Some(blocksize), Some(cbytes)) =
            (size(offset::NBYTES), size(offset::BLOCKSIZE), size(offset::CBYTES))
        else {
            return false;
        };
        let is_ordinary = raw[offset::FLAGS] & flags::EXTENDED == flags::EXTENDED
            && raw[offset::VERSION] != VERSION_ALPHA
            && raw[offset::TYPESIZE] != 0
            && (1..=MAX_BLOCKSIZE).contains(&blocksize)
            && cbytes >= EXTENDED_HEADER_LENGTH
            && raw[offset::FLAGS2] == 0
            && (raw[offset::BLOSC2_FLAGS] & blosc2_flags::SPECIAL_MASK) >> blosc2_flags::SPECIAL_SHIFT
                <= special::ZERO;
        if !is_ordinary {
            return false;
        }
        self.version = raw[offset::VERSION];
        self.versionlz = raw[offset::VERSIONLZ];
        self.flags = raw[offset::FLAGS];
        self.typesize = usize::from(raw[offset::TYPESIZE]);
        self.nbytes = nbytes;
        self.blocksize = if nbytes > 0 { blocksize.min(nbytes) } else { blocksize };
        self.cbytes = cbytes;
        self.filters.copy_from_slice(&raw[offset::FILTERS..][..MAX_FILTERS]);
        self.compcode = raw[offset::COMPCODE];
        self.compcode_meta = raw[offset::COMPCODE_META];
        self.filters_meta.copy_from_slice(&raw[offset::FILTERS_META..][..MAX_FILTERS]);
        self.flags2 = 0;
        self.blosc2_flags = raw[offset::BLOSC2_FLAGS];
        true
    }

    /// The general case of [`read_from`](Self::read_from).
    #[inline(never)]
    fn read_any(&mut self, bytes: &[u8]) -> Result<()> {
        let basic = BasicHeader::read_fields(bytes)?;
        let nbytes = usize::try_from(basic.nbytes);
        *self = ChunkHeader {
            version: basic.version,
            versionlz: basic.versionlz,
            flags: basic.flags,
            typesize: usize::from(basic.typesize),
            nbytes: *nbytes.as_ref().unwrap_or(&0),
            blocksize: usize::try_from(basic.blocksize).expect("checked to be positive"),
            cbytes: usize::try_from(basic.cbytes).expect("checked to be positive"),
            ..ChunkHeader::EMPTY
        };
        if basic.is_extended() {
            self.read_extended(bytes)?;
        } else {
            self.derive_filters();
        }
        let unknown = self.flags2 & !flags2::VL_BLOCKS != 0;
        let known = self.version <= VERSION_VLBLOCKS || !unknown;
        ensure(known, ErrorKind::VersionSupport, "chunk version from the future")?;
        let raw_vl = self.is_vl() && self.is_memcpyed();
        ensure(!raw_vl, ErrorKind::InvalidHeader, "variable-length blocks cannot be stored raw")?;
        ensure(nbytes.is_ok(), ErrorKind::InvalidHeader, "nbytes is negative")?;
        if !self.is_vl() && self.nbytes > 0 {
            self.blocksize = self.blocksize.min(self.nbytes);
        }
        Ok(())
    }

    fn read_extended(&mut self, bytes: &[u8]) -> Result<()> {
        let invalid = ErrorKind::InvalidHeader;
        ensure(self.cbytes >= EXTENDED_HEADER_LENGTH, invalid, "cbytes smaller than the extended header")?;
        let short = ErrorKind::ReadBuffer;
        ensure(bytes.len() >= EXTENDED_HEADER_LENGTH, short, "chunk shorter than its extended header")?;
        self.filters.copy_from_slice(&bytes[offset::FILTERS..][..MAX_FILTERS]);
        self.compcode = bytes[offset::COMPCODE];
        self.compcode_meta = bytes[offset::COMPCODE_META];
        self.filters_meta.copy_from_slice(&bytes[offset::FILTERS_META..][..MAX_FILTERS]);
        self.flags2 = bytes[offset::FLAGS2];
        self.blosc2_flags = bytes[offset::BLOSC2_FLAGS];
        let special = self.special();
        ensure(
            !(self.is_vl() && special != special::NONE),
            invalid,
            "special value in variable-length blocks",
        )?;
        match special {
            special::NONE | special::ZERO => {}
            special::VALUE => {
                let width = self.cbytes - EXTENDED_HEADER_LENGTH;
                let fits = (1..=MAX_BLOCKSIZE.min(self.nbytes)).contains(&width);
                ensure(fits && self.nbytes % width == 0, invalid, "repeated value of an impossible width")?;
            }
            _ => ensure(self.nbytes % self.typesize == 0, invalid, "nbytes is not a whole number of items")?,
        }
        if self.version == VERSION_ALPHA {
            // That version has one slot less.
            self.filters[MAX_FILTERS - 1] = filter::NONE;
            self.filters_meta[MAX_FILTERS - 1] = 0;
        }
        Ok(())
    }

    /// Sets the filters that the flags of a 16-byte header name.
    fn derive_filters(&mut self) {
        if self.flags & flags::SHUFFLE != 0 {
            self.filters[SHUFFLE_SLOT] = filter::SHUFFLE;
        } else if self.flags & flags::BITSHUFFLE != 0 {
            self.filters[SHUFFLE_SLOT] = filter::BITSHUFFLE;
        }
        if self.flags & flags::DELTA != 0 {
            self.filters[DELTA_SLOT] = filter::DELTA;
        }
    }

    /// Writes the header as the 32 bytes of an extended one.
    ///
    /// # Panics
    ///
    /// If a size does not fit in an `i32`; whoever builds a header has checked that.
    pub fn write(&self, dest: &mut [u8; EXTENDED_HEADER_LENGTH]) {
        self.write_basic(dest.first_chunk_mut().expect("16 of 32 bytes"));
        dest[offset::FILTERS..][..MAX_FILTERS].copy_from_slice(&self.filters);
        dest[offset::COMPCODE] = self.compcode;
        dest[offset::COMPCODE_META] = self.compcode_meta;
        dest[offset::FILTERS_META..][..MAX_FILTERS].copy_from_slice(&self.filters_meta);
        dest[offset::FLAGS2] = self.flags2;
        dest[offset::BLOSC2_FLAGS] = self.blosc2_flags;
    }

    /// Writes the first 16 bytes, which are all of a Blosc1 header.
    ///
    /// # Panics
    ///
    /// As [`write`](Self::write).
    pub fn write_basic(&self, dest: &mut [u8; MIN_HEADER_LENGTH]) {
        let size = |value| i32::try_from(value).expect("chunk sizes are below 2 GiB");
        let typesize = u8::try_from(self.typesize).expect("typesizes above 255 are stored as 1");
        dest[offset::VERSION] = self.version;
        dest[offset::VERSIONLZ] = self.versionlz;
        dest[offset::FLAGS] = self.flags;
        dest[offset::TYPESIZE] = typesize;
        put_i32(dest, offset::NBYTES, size(self.nbytes));
        put_i32(dest, offset::BLOCKSIZE, size(self.blocksize));
        put_i32(dest, offset::CBYTES, size(self.cbytes));
    }

    /// Whether the header has 32 bytes.
    #[must_use]
    #[inline]
    pub fn is_extended(&self) -> bool {
        self.flags & flags::EXTENDED == flags::EXTENDED
    }

    /// Length of the header in bytes, 16 or 32.
    #[must_use]
    #[inline]
    pub fn overhead(&self) -> usize {
        if self.is_extended() { EXTENDED_HEADER_LENGTH } else { MIN_HEADER_LENGTH }
    }

    /// Whether the payload is the raw buffer.
    #[must_use]
    #[inline]
    pub fn is_memcpyed(&self) -> bool {
        self.flags & flags::MEMCPYED != 0
    }

    /// Whether the blocks have individual lengths.
    #[must_use]
    #[inline]
    pub fn is_vl(&self) -> bool {
        self.flags2 & flags2::VL_BLOCKS != 0
    }

    /// The special value, see [`special`]; 5 to 7 are invalid.
    #[must_use]
    #[inline]
    pub fn special(&self) -> u8 {
        (self.blosc2_flags & blosc2_flags::SPECIAL_MASK) >> blosc2_flags::SPECIAL_SHIFT
    }

    /// Whether the block data are elsewhere. Special chunks never are.
    #[must_use]
    #[inline]
    pub fn is_lazy(&self) -> bool {
        self.blosc2_flags & blosc2_flags::LAZY != 0 && self.special() == special::NONE
    }

    /// Whether the streams need the dictionary of the chunk. Stored and special chunks never do.
    #[must_use]
    #[inline]
    pub fn has_dict(&self) -> bool {
        self.blosc2_flags & blosc2_flags::USE_DICT != 0
            && !self.is_memcpyed()
            && self.special() == special::NONE
    }

    /// Whether the streams hold measurements instead of data.
    #[must_use]
    #[inline]
    pub fn is_instrumented(&self) -> bool {
        self.blosc2_flags & blosc2_flags::INSTRUMENTED != 0
    }

    /// Whether full blocks are split into `typesize` streams.
    #[must_use]
    #[inline]
    pub fn is_split(&self) -> bool {
        self.flags & flags::DONT_SPLIT == 0
    }

    /// The format of the codec, see [`codec_format`].
    #[must_use]
    #[inline]
    pub fn codec_format(&self) -> u8 {
        self.flags >> flags::FORMAT_SHIFT
    }

    /// Whether streams of this format and version, compressed as these parameters say, may stand in this chunk.
    #[must_use]
    #[inline]
    pub fn has_codec(&self, format: u8, versionlz: u8, compcode: i32, compcode_meta: u8) -> bool {
        format == self.codec_format()
            && versionlz == self.versionlz
            && compcode == i32::from(self.compcode)
            && compcode_meta == self.compcode_meta
    }

    /// The code of the codec that decodes this chunk; for LZ4 and LZ4HC, which share a format, that of LZ4.
    /// `None` for formats that no codec has, and for a built-in codec in place of a registered one.
    #[must_use]
    #[inline]
    pub fn decoder_compcode(&self) -> Option<u8> {
        match self.codec_format() {
            codec_format::BLOSCLZ => Some(codec::BLOSCLZ),
            codec_format::LZ4 => Some(codec::LZ4),
            codec_format::ZLIB => Some(codec::ZLIB),
            codec_format::ZSTD => Some(codec::ZSTD),
            codec_format::UDCODEC => Some(self.compcode).filter(|&id| id >= codec::FIRST_REGISTERED),
            _ => None,
        }
    }

    /// Fails unless `len` bytes hold all of the chunk, or it is a lazy one, whose blocks are elsewhere.
    ///
    /// # Errors
    ///
    /// `InvalidHeader`.
    #[inline]
    pub(crate) fn check_complete(&self, len: usize) -> Result<()> {
        let complete = self.is_lazy() || self.cbytes <= len;
        ensure(complete, ErrorKind::InvalidHeader, "chunk shorter than its header says")
    }

    /// Number of blocks.
    #[must_use]
    #[inline]
    pub fn nblocks(&self) -> usize {
        if self.is_vl() {
            self.blocksize
        } else if self.nbytes > self.blocksize {
            self.nbytes.div_ceil(self.blocksize)
        } else {
            // A division would take longer than to see that there is one at the most.
            usize::from(self.nbytes > 0)
        }
    }

    /// Where the table of block starts ends; dictionary and blocks follow it. A table that does not fit in memory ends
    /// where memory does.
    #[must_use]
    #[inline(always)]
    pub fn table_end(&self) -> usize {
        let end = self.overhead() as u64 + 4 * self.nblocks() as u64; // widening
        usize::try_from(end).unwrap_or(usize::MAX)
    }

    /// Length of block `nblock` in bytes, of a chunk whose blocks have equal lengths; only the last may be shorter.
    #[must_use]
    #[inline]
    pub fn block_len(&self, nblock: usize) -> usize {
        self.blocksize.min(self.nbytes - nblock * self.blocksize)
    }

    /// Number of streams of a block of `len` bytes: one for each byte of an item if blocks are split, and this one is
    /// whole.
    #[must_use]
    #[inline]
    pub fn nstreams(&self, len: usize) -> usize {
        if self.is_split() && len == self.blocksize { self.typesize } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn sample() -> ChunkHeader {
        ChunkHeader {
            version: 5,
            versionlz: 1,
            flags: flags::EXTENDED,
            typesize: 4,
            nbytes: 200,
            blocksize: 64,
            cbytes: 102,
            filters: [0, 0, 0, 0, 3, 1],
            filters_meta: [0, 0, 0, 0, 7, 9],
            compcode: 0,
            compcode_meta: 3,
            flags2: 0,
            blosc2_flags: 0,
        }
    }

    fn bytes_of(header: &ChunkHeader) -> [u8; 32] {
        let mut bytes = [0; 32];
        header.write(&mut bytes);
        bytes
    }

    fn code(bytes: &[u8]) -> i32 {
        let mut header = ChunkHeader::EMPTY;
        let outcome = header.read_any(bytes).map(|()| header);
        // What the short cut accepts, the general case reads the same way.
        let mut short = ChunkHeader { version: 99, ..ChunkHeader::EMPTY };
        let before = short;
        let is_ordinary = short.read_ordinary(bytes);
        assert!(if is_ordinary { outcome == Ok(short) } else { short == before }, "{bytes:?}");
        outcome.map_or_else(Error::code, |_| 0)
    }

    #[test]
    fn any_byte_reads_the_same_the_short_and_the_long_way() {
        let good = bytes_of(&sample());
        assert!({ ChunkHeader::EMPTY }.read_ordinary(&good));
        for at in 0..good.len() {
            for value in 0..=255 {
                let mut bytes = good;
                bytes[at] = value;
                code(&bytes);
                bytes[31] |= 0x10;
                code(&bytes);
            }
        }
        for len in 0..good.len() {
            assert_eq!(code(&good[..len]), -5);
        }
        let mut empty = good;
        empty[4..8].fill(0);
        assert_eq!(code(&empty), 0);
    }

    #[test]
    fn a_written_header_reads_back() {
        let header = sample();
        assert_eq!(ChunkHeader::read(&bytes_of(&header)), Ok(header));
        assert_eq!(header.nblocks(), 4);
        assert_eq!(header.block_len(3), 8);
    }

    #[test]
    fn the_order_of_checks_gives_the_documented_codes() {
        let good = bytes_of(&sample());
        assert_eq!(code(&good[..15]), -5);
        assert_eq!(code(&good[..31]), -5);
        let with = |at: usize, value: &[u8]| {
            let mut bytes = good;
            bytes[at..at + value.len()].copy_from_slice(value);
            code(&bytes)
        };
        assert_eq!(with(12, &15i32.to_le_bytes()), -11);
        assert_eq!(with(12, &31i32.to_le_bytes()), -11);
        assert_eq!(with(8, &0i32.to_le_bytes()), -11);
        assert_eq!(with(8, &536_866_817i32.to_le_bytes()), -11);
        assert_eq!(with(3, &[0]), -11);
        assert_eq!(with(4, &(-1i32).to_le_bytes()), -11);
        assert_eq!(with(30, &[2]), 0);
        assert_eq!(with(0, &[7]), 0);
        let mut future = good;
        (future[0], future[30]) = (7, 2);
        assert_eq!(code(&future), -10);
        let mut vl_raw = good;
        (vl_raw[2], vl_raw[30]) = (7, 1);
        assert_eq!(code(&vl_raw), -11);
    }

    #[test]
    fn the_width_of_a_repeated_value_is_checked() {
        let mut header = sample();
        header.blosc2_flags = special::VALUE << blosc2_flags::SPECIAL_SHIFT;
        for (cbytes, expected) in [(32, -11), (33, 0), (36, 0), (35, -11), (232, 0), (233, -11)] {
            header.cbytes = cbytes;
            assert_eq!(code(&bytes_of(&header)), expected, "cbytes {cbytes}");
        }
    }

    #[test]
    fn short_headers_derive_the_pipeline_from_the_flags() {
        let mut bytes = bytes_of(&sample());
        bytes[2] = flags::BITSHUFFLE | flags::DELTA;
        let header = ChunkHeader::read(&bytes[..16]).unwrap();
        assert_eq!(header.filters, [0, 0, 0, 0, 3, 2]);
        assert_eq!(header.overhead(), 16);
    }

    #[test]
    fn alpha_chunks_have_five_filter_slots() {
        let mut header = sample();
        header.version = 3;
        let read = ChunkHeader::read(&bytes_of(&header)).unwrap();
        assert_eq!((read.filters[MAX_FILTERS - 1], read.filters_meta[MAX_FILTERS - 1]), (0, 0));
    }

    #[test]
    fn the_basic_header_caps_the_blocksize_but_keeps_a_negative_nbytes() {
        let mut bytes = bytes_of(&sample());
        bytes[8..12].copy_from_slice(&1000i32.to_le_bytes());
        assert_eq!(BasicHeader::read(&bytes[..16]).unwrap().blocksize, 200);
        bytes[4..8].copy_from_slice(&(-5i32).to_le_bytes());
        assert_eq!(BasicHeader::read(&bytes[..16]).unwrap().nbytes, -5);
    }
}
