//! Chunks that consist of one value: made without data.

#![forbid(unsafe_code)]

use super::blocks::Layout;
use super::compress::check_sizes;
use super::params::CParams;
use crate::error::{ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, special};

/// What a special chunk consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialValue<'a> {
    /// Zeros.
    Zeros,
    /// Quiet NaNs.
    Nans,
    /// Nothing in particular.
    Uninit,
    /// This item, repeated. Readers take its length from the chunk, whatever the typesize is.
    Repeated(&'a [u8]),
}

impl SpecialValue<'_> {
    /// The size of a chunk of this value in bytes.
    #[must_use]
    pub fn chunk_len(self) -> usize {
        match self {
            SpecialValue::Repeated(item) => EXTENDED_HEADER_LENGTH + item.len(),
            SpecialValue::Zeros | SpecialValue::Nans | SpecialValue::Uninit => EXTENDED_HEADER_LENGTH,
        }
    }
}

/// Writes a chunk of `nbytes` bytes that all come from `value` to the front of `dest`; returns its size, 32 bytes and
/// the repeated value.
///
/// # Errors
///
/// `InvalidParam` for a typesize of 0; `Data` if `dest` is too short, or `nbytes` is not a number of items (zeros are
/// bytes); then as for compression. NaNs are made of any size, but only those of 4 and 8 bytes can be decompressed.
pub fn special_chunk(
    params: &CParams,
    nbytes: usize,
    value: SpecialValue<'_>,
    dest: &mut [u8],
) -> Result<usize> {
    require(params.typesize > 0, "typesize is zero")?;
    // What readers want the size to be a multiple of.
    let (id, tail, unit): (u8, &[u8], usize) = match value {
        SpecialValue::Zeros => (special::ZERO, &[], 1),
        SpecialValue::Nans => (special::NAN, &[], params.typesize),
        SpecialValue::Uninit => (special::UNINIT, &[], params.typesize),
        SpecialValue::Repeated(item) => (special::VALUE, item, item.len()),
    };
    let cbytes = value.chunk_len();
    ensure(dest.len() >= cbytes, ErrorKind::Data, "destination shorter than the chunk")?;
    ensure(unit > 0 && nbytes % unit == 0, ErrorKind::Data, "not a whole number of items")?;
    check_sizes(nbytes, dest.len())?;
    params.check()?;
    let layout = Layout::new(params, nbytes);
    // As the C library does: unlike in other chunks, whatever was asked for.
    let blocksize = if nbytes < params.typesize { 1 } else { layout.blocksize };
    let header = ChunkHeader {
        typesize: layout.typesize,
        nbytes,
        blocksize,
        cbytes,
        blosc2_flags: id << blosc2_flags::SPECIAL_SHIFT,
        ..ChunkHeader::BARE
    };
    header.write(dest.first_chunk_mut().expect("the room was checked"));
    dest[EXTENDED_HEADER_LENGTH..cbytes].copy_from_slice(tail);
    Ok(cbytes)
}
