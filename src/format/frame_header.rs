//! The header of a frame: fields at fixed places, then the fixed metalayers.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0x00 | 10 | `9e a8 "b2frame\0"` |
//! | 0x0a | 1 + 4 | length of the header, BE32 |
//! | 0x0f | 1 + 8 | length of the frame, BE64 |
//! | 0x18 | 1 + 4 | `a4`; format version and flags; frame type; codec and level; split mode |
//! | 0x1d | 1 + 8 | nbytes: sum of the uncompressed chunk sizes, BE64 |
//! | 0x26 | 1 + 8 | cbytes: length of the payload area, or sum of the chunk files, BE64 |
//! | 0x2f | 1 + 4 | typesize, BE32 |
//! | 0x34 | 1 + 4 | blocksize asked for, 0 = automatic, BE32 |
//! | 0x39 | 1 + 4 | chunksize: 0 = variable, -1 = not known yet, BE32 |
//! | 0x3e | 2 × (1 + 2) | threads of the writer for compression, decompression, BE16 |
//! | 0x44 | 1 | whether there are variable-length metalayers |
//! | 0x45 | 2 + 16 | `d8`, number of filters, ids, codec code, codec meta, filter metas, use_dict, 0 |
//! | 0x57 | | metalayers, see [`super::metalayers`] |
//!
//! Frames of 2.0.0-beta.1 to beta.5 lack some of the fields; they can be read but not written.

use super::consts::MAX_FILTERS;
use super::metalayers::{self, MAX_METALAYERS, Metalayer, Metalayers, Section};
use super::msgpack;
use crate::bytes::to_i32;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::memory;
use std::sync::Arc;

/// Length of the part with fixed offsets, in bytes.
pub const FIXED_LEN: usize = 0x57;
/// The magic bytes, at offset 2.
pub const MAGIC: &[u8; 8] = b"b2frame\0";
/// Position of the frame length.
pub const FRAME_LEN_AT: usize = 0x10;
/// Least length of a frame, in bytes.
pub(crate) const MIN_FRAME_LEN: u64 = FIXED_LEN as u64 + 25; // widening
/// Highest format version that is read.
const MAX_VERSION: u8 = 3;
/// Format version of frames whose chunks are all of one size and have no variable-length blocks.
const VERSION_PLAIN: u8 = 2;
/// Flag: the entries of the index have 8 bytes.
const OFFSETS_64_BIT: u8 = 0x10;
/// Flag: the chunks vary in size.
const VARIABLE_CHUNKS: u8 = 0x40;
/// Flag: the chunks consist of variable-length blocks.
const VL_BLOCKS: u8 = 0x80;
/// Code in the codec byte for codecs that have a byte of their own.
const OTHER_CODEC: u8 = 6;

/// How the header is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// As in the table above, since 2.0.0-rc1.
    #[default]
    Stable,
    /// 2.0.0-beta.2 to beta.5: no block size, eight filter slots, one chunk of user metadata in the trailer.
    Beta2,
    /// 2.0.0-beta.1: as `Beta2`, and without a trailer.
    Beta1,
}

impl Layout {
    /// No frame is shorter, in bytes.
    pub(crate) fn min_frame_len(self) -> u64 {
        if self == Layout::Stable { MIN_FRAME_LEN } else { BETA1_LEN as u64 } // widening
    }
}

/// Compression parameters as a frame stores them.
///
/// Those of new frames are best made of [`CParams`](crate::chunk::CParams), by
/// [`to_frame`](crate::chunk::CParams::to_frame). All zeros, as by default, are none that a frame can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameParams {
    /// Bytes per item, at least 1; may exceed 255.
    pub typesize: i32,
    /// Block size asked for, in bytes; 0 = automatic.
    pub blocksize: i32,
    /// Codec code.
    pub compcode: u8,
    /// Meta byte of the codec.
    pub compcode_meta: u8,
    /// Compression level, 4 bits.
    pub clevel: u8,
    /// Split mode, 1 to 4, see [`split`](super::consts::split).
    pub splitmode: u8,
    /// Whether chunks may have dictionaries.
    pub use_dict: bool,
    /// Filter ids.
    pub filters: [u8; MAX_FILTERS],
    /// Meta bytes of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// Threads that the writer compresses with.
    pub nthreads_c: i16,
    /// Threads that the writer decompresses with.
    pub nthreads_d: i16,
}

impl FrameParams {
    /// Fails for a typesize that no reader accepts.
    ///
    /// # Errors
    ///
    /// `InvalidParam`.
    pub(crate) fn check(&self) -> Result<()> {
        require(self.typesize > 0, "typesize that frames cannot record")
    }
}

/// The fields with fixed offsets, validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Where the fields were found.
    pub layout: Layout,
    /// Length of the header with its metalayers, in bytes.
    pub header_len: usize,
    /// Length of the frame in bytes.
    pub frame_len: u64,
    /// Whether chunks are files of a directory.
    pub sparse: bool,
    /// Sum of the uncompressed chunk sizes in bytes.
    pub nbytes: u64,
    /// Length of the payload area in bytes; in sparse frames the sum of the chunk files.
    pub cbytes: u64,
    /// Bytes per chunk: > 0 fixed, 0 variable, -1 not known yet.
    pub chunksize: i32,
    /// Whether the chunks consist of variable-length blocks. Written, never trusted.
    pub vl_blocks: bool,
    /// Whether the trailer holds metalayers. Written, never trusted.
    pub has_vlmeta: bool,
    /// Compression parameters.
    pub params: FrameParams,
}

impl FrameHeader {
    /// Reads the fixed fields from the first [`FIXED_LEN`] bytes of a frame.
    ///
    /// # Errors
    ///
    /// `VersionSupport` for versions from the future, `InvalidHeader` for lengths, sizes and counts out of range,
    /// `FrameType` unless the frame type is 0 or 1.
    pub fn read(bytes: &[u8; FIXED_LEN]) -> Result<FrameHeader> {
        match recognise(bytes) {
            Layout::Stable => Self::read_stable(bytes),
            layout => Self::read_beta(bytes, layout),
        }
    }

    fn read_stable(bytes: &[u8; FIXED_LEN]) -> Result<FrameHeader> {
        let version = bytes[0x19] & 0x0f;
        ensure(version <= MAX_VERSION, ErrorKind::VersionSupport, "frame version from the future")?;
        ensure(bytes[0x1a] <= 1, ErrorKind::FrameType, "unknown frame type")?;
        let mut header = Self::read_common(bytes, Layout::Stable, FIXED_LEN)?;
        header.sparse = bytes[0x1a] == 1;
        header.chunksize = msgpack::be_i32(bytes, 0x3a)?;
        header.has_vlmeta = bytes[0x44] == 0xc3;
        header.vl_blocks = bytes[0x19] & VL_BLOCKS != 0;
        let nfilters = usize::from(bytes[0x46]);
        ensure(nfilters <= MAX_FILTERS, ErrorKind::InvalidHeader, "too many filters")?;
        let params = &mut header.params;
        params.splitmode = (bytes[0x1c] & 3) + 1;
        params.blocksize = msgpack::be_i32(bytes, 0x35)?;
        params.nthreads_c = msgpack::be_i16(bytes, 0x3f)?;
        params.nthreads_d = msgpack::be_i16(bytes, 0x42)?;
        params.filters[..nfilters].copy_from_slice(&bytes[0x47..0x47 + nfilters]);
        params.filters_meta[..nfilters].copy_from_slice(&bytes[0x4f..0x4f + nfilters]);
        if bytes[0x1b] & 0x0f == OTHER_CODEC {
            params.compcode = bytes[0x4d];
        }
        params.compcode_meta = bytes[0x4e];
        params.use_dict = bytes[0x55] & 1 != 0;
        ensure(header.nbytes == 0 || header.chunksize >= 0, ErrorKind::InvalidHeader, "no chunk size")?;
        Ok(header)
    }

    fn read_beta(bytes: &[u8; FIXED_LEN], layout: Layout) -> Result<FrameHeader> {
        let min_len = if layout == Layout::Beta1 { BETA1_LEN } else { BETA2_LEN };
        let mut header = Self::read_common(bytes, layout, min_len)?;
        header.chunksize = msgpack::be_i32(bytes, 0x35)?;
        header.has_vlmeta = bytes[0x3f] == 0xc3;
        let params = &mut header.params;
        params.splitmode = 1;
        params.nthreads_c = msgpack::be_i16(bytes, 0x3a)?;
        params.nthreads_d = msgpack::be_i16(bytes, 0x3d)?;
        if layout == Layout::Beta2 {
            params.filters.copy_from_slice(&bytes[0x42..0x42 + MAX_FILTERS]);
            params.filters_meta.copy_from_slice(&bytes[0x4a..0x4a + MAX_FILTERS]);
        }
        // Whether the codec byte is the code of the codec or, as the format document has it, that of its format does
        // not matter: chunks tell it themselves, and none are added to frames of betas.
        ensure(header.nbytes == 0 || header.chunksize >= 0, ErrorKind::InvalidHeader, "no chunk size")?;
        Ok(header)
    }

    /// The fields that all layouts have at the same place.
    fn read_common(bytes: &[u8; FIXED_LEN], layout: Layout, min_len: usize) -> Result<FrameHeader> {
        let invalid = ErrorKind::InvalidHeader;
        let frame_len = msgpack::be_u64(bytes, FRAME_LEN_AT)?;
        ensure(i64::try_from(frame_len).is_ok(), invalid, "frame length out of range")?;
        let header_len = usize::try_from(msgpack::be_i32(bytes, 0x0b)?).unwrap_or(0);
        ensure(header_len >= min_len, invalid, "header length out of range")?;
        ensure(header_len as u64 <= frame_len, invalid, "header longer than the frame")?; // widening
        let typesize = msgpack::be_i32(bytes, 0x30)?;
        ensure(typesize > 0, invalid, "typesize out of range")?;
        let nbytes = u64::try_from(msgpack::be_i64(bytes, 0x1e)?);
        let nbytes = nbytes.map_err(|_| Error::new(invalid, "nbytes is negative"))?;
        let cbytes = u64::try_from(msgpack::be_i64(bytes, 0x27)?);
        ensure(nbytes == 0 || cbytes.is_ok(), invalid, "cbytes is negative")?;
        let params = FrameParams {
            typesize,
            compcode: bytes[0x1b] & 0x0f,
            clevel: bytes[0x1b] >> 4,
            ..FrameParams::default()
        };
        Ok(FrameHeader {
            layout,
            header_len,
            frame_len,
            sparse: false,
            nbytes,
            cbytes: cbytes.unwrap_or(0),
            chunksize: 0,
            vl_blocks: false,
            has_vlmeta: false,
            params,
        })
    }

    /// Where the map of metalayers starts, or `None` if the layout or its length says that there are none.
    fn map_at(&self) -> Option<usize> {
        match self.layout {
            Layout::Stable => Some(FIXED_LEN + 4),
            Layout::Beta2 => Some(BETA2_MAP),
            Layout::Beta1 => (self.header_len > BETA1_LEN).then_some(BETA1_LEN + 4),
        }
    }

    /// The metalayers in `header`, the whole header.
    ///
    /// # Errors
    ///
    /// `Data` or `ReadBuffer` for damaged bytes.
    pub(crate) fn read_metalayers(&self, header: &[u8]) -> Result<Metalayers> {
        self.map_at().map_or(Ok(Metalayers::default()), |at| metalayers::read(header, at, MAX_METALAYERS))
    }

    /// Length in bytes of a header with `metalayers`.
    pub(crate) fn len_with(metalayers: &[Arc<Metalayer>]) -> usize {
        FIXED_LEN + metalayers::section_len(metalayers)
    }

    /// The whole header with `metalayers`, as stored; its length replaces `header_len`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for metalayers that do not fit, and for a typesize that [`read`](Self::read) refuses.
    pub(crate) fn write(&self, metalayers: &[Arc<Metalayer>]) -> Result<Vec<u8>> {
        let params = &self.params;
        params.check()?;
        let len = Self::len_with(metalayers);
        let header_len = to_i32(len, ErrorKind::InvalidParam)?;
        let mut bytes = memory::with_capacity(len)?;
        msgpack::put_fixarray(&mut bytes, 14);
        msgpack::put_fixstr(&mut bytes, MAGIC);
        msgpack::put_i32(&mut bytes, header_len);
        msgpack::put_u64(&mut bytes, self.frame_len);
        let codec = if params.compcode < OTHER_CODEC { params.compcode } else { OTHER_CODEC };
        let sparse = u8::from(self.sparse);
        let split = params.splitmode.wrapping_sub(1);
        msgpack::put_fixstr(&mut bytes, &[self.flags(), sparse, params.clevel << 4 | codec, split]);
        msgpack::put_i64(&mut bytes, signed(self.nbytes)?);
        msgpack::put_i64(&mut bytes, signed(self.cbytes)?);
        msgpack::put_i32(&mut bytes, params.typesize);
        msgpack::put_i32(&mut bytes, params.blocksize);
        msgpack::put_i32(&mut bytes, self.chunksize);
        msgpack::put_i16(&mut bytes, params.nthreads_c);
        msgpack::put_i16(&mut bytes, params.nthreads_d);
        msgpack::put_bool(&mut bytes, self.has_vlmeta);
        msgpack::put_fixext16(&mut bytes, 6);
        bytes.extend_from_slice(&params.filters);
        bytes.extend_from_slice(&[params.compcode, params.compcode_meta]);
        bytes.extend_from_slice(&params.filters_meta);
        bytes.extend_from_slice(&[u8::from(params.use_dict), 0]);
        debug_assert_eq!(bytes.len(), FIXED_LEN);
        metalayers::write(&mut bytes, 0, Section::Header, metalayers)?;
        debug_assert_eq!(bytes.len(), len);
        Ok(bytes)
    }

    fn flags(&self) -> u8 {
        let variable = self.chunksize == 0;
        let version = if variable || self.vl_blocks { MAX_VERSION } else { VERSION_PLAIN };
        version
            | OFFSETS_64_BIT
            | if variable { VARIABLE_CHUNKS } else { 0 }
            | if self.vl_blocks { VL_BLOCKS } else { 0 }
    }
}

/// Least length of a header of the layout `Beta2`, in bytes.
const BETA2_LEN: usize = 92;
/// Where the map of metalayers starts in it.
const BETA2_MAP: usize = 0x56;
/// Length of a header of the layout `Beta1` without metalayers, in bytes.
const BETA1_LEN: usize = 64;

/// Whether `bytes` have the magic of frames where a header has it.
pub(crate) fn has_magic(bytes: &[u8]) -> bool {
    bytes.get(2..10) == Some(MAGIC)
}

/// Tells the layouts apart. Only what no header of the stable layout can be is taken for an old one.
fn recognise(bytes: &[u8; FIXED_LEN]) -> Layout {
    let magic = bytes[1] == 0xa8 && has_magic(bytes);
    let version = bytes[0x19] & 0x0f;
    if magic
        && bytes[0] == 0x9d
        && version <= 1
        && bytes[BETA2_MAP] == 0xde
        && bytes[0x52..0x54] == [0x93, 0xcd]
    {
        return Layout::Beta2;
    }
    if magic && matches!(bytes[0], 0x9b | 0x9c) && version == 4 {
        return Layout::Beta1;
    }
    Layout::Stable
}

fn signed(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| Error::new(ErrorKind::InvalidParam, "nbytes or cbytes of 2^63 or more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> FrameHeader {
        FrameHeader {
            layout: Layout::Stable,
            header_len: 97,
            frame_len: 132,
            sparse: false,
            nbytes: 0,
            cbytes: 0,
            chunksize: -1,
            vl_blocks: false,
            has_vlmeta: false,
            params: FrameParams {
                typesize: 4,
                clevel: 5,
                splitmode: 4,
                filters: [0, 0, 0, 0, 0, 1],
                nthreads_c: 1,
                nthreads_d: 1,
                ..FrameParams::default()
            },
        }
    }

    fn fixed(bytes: &[u8]) -> &[u8; FIXED_LEN] {
        bytes.first_chunk().unwrap()
    }

    #[test]
    fn an_empty_frame_has_the_documented_header() {
        #[rustfmt::skip]
        let expected = [
            0x9e, 0xa8, 0x62, 0x32, 0x66, 0x72, 0x61, 0x6d, 0x65, 0x00, 0xd2, 0x00, 0x00, 0x00, 0x61, 0xcf,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x84, 0xa4, 0x12, 0x00, 0x50, 0x03, 0xd3, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xd3, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xd2,
            0x00, 0x00, 0x00, 0x04, 0xd2, 0x00, 0x00, 0x00, 0x00, 0xd2, 0xff, 0xff, 0xff, 0xff, 0xd1, 0x00,
            0x01, 0xd1, 0x00, 0x01, 0xc2, 0xd8, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x93, 0xcd, 0x00, 0x07, 0xde, 0x00, 0x00, 0xdc, 0x00, 0x00,
        ];
        let bytes = sample().write(&[]).unwrap();
        assert_eq!(bytes, expected);
        assert_eq!(FrameHeader::read(fixed(&bytes)), Ok(sample()));
    }

    #[test]
    fn registered_codecs_and_variable_chunks_read_back() {
        let mut header = sample();
        header.params.compcode = 34;
        header.params.compcode_meta = 9;
        header.params.use_dict = true;
        header.chunksize = 0;
        header.vl_blocks = true;
        header.nbytes = 5;
        let bytes = header.write(&[]).unwrap();
        assert_eq!(bytes[0x19], 0xd3);
        assert_eq!(bytes[0x1b], 0x56);
        assert_eq!(FrameHeader::read(fixed(&bytes)), Ok(header));
    }

    #[test]
    fn wrong_fields_give_the_documented_codes() {
        let mut good = sample();
        good.nbytes = 8;
        good.chunksize = 8;
        let good = good.write(&[]).unwrap();
        let with = |at: usize, value: &[u8]| {
            let mut bytes = *fixed(&good);
            bytes[at..at + value.len()].copy_from_slice(value);
            FrameHeader::read(&bytes).map_or_else(Error::code, |_| 0)
        };
        assert_eq!(with(0x19, &[0x14]), -10);
        assert_eq!(with(0x19, &[0x10]), 0);
        assert_eq!(with(0x1a, &[2]), -24);
        assert_eq!(with(0x0b, &86i32.to_be_bytes()), -11);
        assert_eq!(with(0x0b, &133i32.to_be_bytes()), -11);
        assert_eq!(with(0x30, &[0; 4]), -11);
        assert_eq!(with(0x46, &[7]), -11);
        assert_eq!(with(0x3a, &[0xff; 4]), -11);
        assert_eq!(with(0x27, &[0xff; 8]), -11);
        assert_eq!(with(0x10, &[0xff; 8]), -11);
        assert_eq!(with(0x00, &[0]), 0);
    }

    #[test]
    fn negative_sizes_are_refused() {
        let mut bytes = sample().write(&[]).unwrap();
        bytes[0x1e] = 0x80;
        assert_eq!(FrameHeader::read(fixed(&bytes)).unwrap_err().kind(), ErrorKind::InvalidHeader);
    }

    #[test]
    fn headers_of_the_beta_releases_are_recognised() {
        #[rustfmt::skip]
        let bytes: [u8; FIXED_LEN] = [
            0x9d, 0xa8, 0x62, 0x32, 0x66, 0x72, 0x61, 0x6d, 0x65, 0x00, 0xd2, 0x00, 0x00, 0x00, 0x6e, 0xcf,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x60, 0xa4, 0x21, 0x00, 0x50, 0x00, 0xd3, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0xd3, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0xd2,
            0x00, 0x00, 0x00, 0x04, 0xd2, 0x00, 0x00, 0x00, 0x20, 0xd1, 0x00, 0x01, 0xd1, 0x00, 0x01, 0xc2,
            0xd8, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x93, 0xcd, 0x00, 0x0f, 0xde,
        ];
        let header = FrameHeader::read(&bytes).unwrap();
        assert_eq!(header.layout, Layout::Beta2);
        assert_eq!((header.nbytes, header.cbytes, header.chunksize), (64, 128, 32));
        assert_eq!(header.params.filters, [1, 0, 0, 0, 0, 0]);
    }
}
