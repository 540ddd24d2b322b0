//! Chunks without a payload, rebuilt from the index or written out where the index cannot hold them.

#![forbid(unsafe_code)]

use crate::chunk::blocks::capped_typesize;
use crate::chunk::{CParams, SpecialValue, special_chunk};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{
    EXTENDED_HEADER_LENGTH, MAX_BLOCKSIZE, MAX_BUFFERSIZE, blosc2_flags, flags, special,
};
use crate::memory;

/// About how large the blocks of a repeated value are, in bytes.
const BLOCKSIZE: usize = 1 << 16;

/// Header of a chunk of `nbytes` bytes of the special value `kind`.
fn header(kind: u8, nbytes: usize, typesize: usize, blocksize: usize, cbytes: usize) -> ChunkHeader {
    ChunkHeader {
        typesize: capped_typesize(typesize).max(1),
        nbytes,
        blocksize: blocksize.min(nbytes).clamp(1, MAX_BLOCKSIZE),
        cbytes,
        blosc2_flags: kind << blosc2_flags::SPECIAL_SHIFT,
        ..ChunkHeader::BARE
    }
}

/// The 32 bytes of a chunk of `nbytes` bytes of the special value `kind`; `blocksize` 0 leaves that to the library.
///
/// # Errors
///
/// `InvalidHeader` for sizes that no chunk has.
pub(crate) fn chunk(
    kind: u8,
    nbytes: usize,
    typesize: usize,
    blocksize: usize,
) -> Result<[u8; EXTENDED_HEADER_LENGTH]> {
    ensure(nbytes <= MAX_BUFFERSIZE, ErrorKind::InvalidHeader, "special chunk too large")?;
    let mut bytes = [0; EXTENDED_HEADER_LENGTH];
    let value = match kind {
        special::ZERO => SpecialValue::Zeros,
        special::NAN => SpecialValue::Nans,
        _ => SpecialValue::Uninit,
    };
    let params = CParams { typesize: typesize.max(1), blocksize, ..CParams::default() };
    let made = special_chunk(&params, nbytes, value, &mut bytes);
    if made.is_err() {
        // A frame may end in a partial item; its chunks are rebuilt all the same.
        header(kind, nbytes, 1, nbytes, EXTENDED_HEADER_LENGTH).write(&mut bytes);
    }
    Ok(bytes)
}

/// The same values as a chunk with a payload, for frames whose index cannot tell the size.
///
/// # Errors
///
/// `InvalidParam` for NaNs of an unusual size, `MemoryAlloc`.
pub(crate) fn with_payload(kind: u8, nbytes: usize, typesize: usize) -> Result<Vec<u8>> {
    ensure(nbytes <= MAX_BUFFERSIZE, ErrorKind::InvalidHeader, "special chunk too large")?;
    let typesize = typesize.max(1);
    if nbytes == 0 || nbytes % typesize != 0 || typesize > MAX_BLOCKSIZE {
        require(kind != special::NAN, "NaNs that are not a whole number of items")?;
        return zero_runs(nbytes);
    }
    let mut chunk = memory::zeroed(EXTENDED_HEADER_LENGTH + typesize)?;
    let (head, value) = chunk.split_first_chunk_mut().expect("room for a header");
    let blocksize = typesize * (BLOCKSIZE / typesize).max(1);
    header(special::VALUE, nbytes, typesize, blocksize, EXTENDED_HEADER_LENGTH + typesize).write(head);
    match (kind, typesize) {
        (special::NAN, 4) => value.copy_from_slice(&0x7fc0_0000_u32.to_ne_bytes()),
        (special::NAN, 8) => value.copy_from_slice(&0x7ff8_0000_0000_0000_u64.to_ne_bytes()),
        (special::NAN, _) => return Err(Error::new(ErrorKind::InvalidParam, "NaNs are 4 or 8 bytes long")),
        _ => {}
    }
    Ok(chunk)
}

/// A regular chunk of `nbytes` zeros: every block is one empty stream, which stands for zeros.
///
/// # Errors
///
/// `MemoryAlloc`.
fn zero_runs(nbytes: usize) -> Result<Vec<u8>> {
    if nbytes == 0 {
        let mut bytes = [0; EXTENDED_HEADER_LENGTH];
        header(special::NONE, 0, 1, 1, EXTENDED_HEADER_LENGTH).write(&mut bytes);
        return memory::copy_of(&bytes);
    }
    let blocksize = nbytes.min(1 << 20);
    let nblocks = nbytes.div_ceil(blocksize);
    let first = EXTENDED_HEADER_LENGTH + 4 * nblocks;
    let mut head = header(special::NONE, nbytes, 1, blocksize, first + 4 * nblocks);
    head.flags |= flags::DONT_SPLIT;
    let mut bytes = [0; EXTENDED_HEADER_LENGTH];
    head.write(&mut bytes);
    let mut chunk = memory::with_capacity(first + 4 * nblocks)?;
    chunk.extend_from_slice(&bytes);
    for block in 0..nblocks {
        let start = i32::try_from(first + 4 * block).expect("at most 2048 blocks");
        chunk.extend_from_slice(&start.to_le_bytes());
    }
    chunk.resize(first + 4 * nblocks, 0);
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_chunk_of_zeros_is_built() {
        let bytes = chunk(special::ZERO, 4000, 4, 4000).unwrap();
        let mut expected = [0; 32];
        expected[..16].copy_from_slice(&[5, 1, 5, 4, 0xa0, 0xf, 0, 0, 0xa0, 0xf, 0, 0, 0x20, 0, 0, 0]);
        expected[31] = 0x10;
        assert_eq!(bytes, expected);
    }

    #[test]
    fn partial_items_become_a_regular_chunk() {
        let chunk = with_payload(special::ZERO, 4001, 4).unwrap();
        let header = ChunkHeader::read(&chunk).unwrap();
        assert_eq!((header.nbytes, header.cbytes, header.special()), (4001, chunk.len(), special::NONE));
        assert_eq!(chunk.len(), 40);
        assert!(with_payload(special::NAN, 12, 3).is_err());
        assert_eq!(with_payload(special::UNINIT, 40, 4).unwrap().len(), 36);
    }
}
