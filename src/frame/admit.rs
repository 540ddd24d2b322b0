//! Chunks on their way into a frame: in a form that readers of the C library understand.

#![forbid(unsafe_code)]

use super::sizes::{ChunkInfo, whole_chunk};
use crate::chunk::{self, CParams};
use crate::error::{ErrorKind, Result, ensure};
use crate::format::chunk_header::{BasicHeader, ChunkHeader, offset};
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, flags2};
use crate::memory;
use std::borrow::Cow;

/// The bytes to store as chunk `nchunk`, and what their header says: the one chunk at the start of `chunk`, or, if the
/// C library would misread that, another chunk with the same data.
///
/// # Errors
///
/// Those of a damaged header; `kind` for an empty chunk in the first place, where the C library cannot open the frame.
pub(super) fn admit(chunk: &[u8], nchunk: usize, kind: ErrorKind) -> Result<(Cow<'_, [u8]>, ChunkInfo)> {
    let (chunk, info) = whole_chunk(chunk)?;
    ensure(nchunk > 0 || info.nbytes > 0, kind, "the first chunk of a frame cannot be empty")?;
    if is_misread(chunk)? {
        // Damaged data are stored as they are: nobody can read them.
        if let Ok(rewrapped) = with_extended_header(chunk) {
            let info = ChunkInfo::read(&rewrapped)?;
            return Ok((rewrapped.into(), info));
        }
    }
    Ok((chunk.into(), info))
}

/// Whether `chunk` lacks an extended header and the C library, which looks for one in any case, finds something that
/// matters.
fn is_misread(chunk: &[u8]) -> Result<bool> {
    if BasicHeader::read(chunk)?.is_extended() {
        return Ok(false);
    }
    let Some(header) = chunk.first_chunk::<EXTENDED_HEADER_LENGTH>() else { return Ok(true) };
    let marks = blosc2_flags::SPECIAL_MASK | blosc2_flags::LAZY;
    Ok(header[offset::BLOSC2_FLAGS] & marks != 0 || header[offset::FLAGS2] & flags2::VL_BLOCKS != 0)
}

/// A chunk with an extended header and the data of `chunk`.
fn with_extended_header(chunk: &[u8]) -> Result<Vec<u8>> {
    let header = ChunkHeader::read(chunk)?;
    let mut data = memory::zeroed(header.nbytes)?;
    let nbytes = chunk::decompress(chunk, &mut data)?;
    ensure(nbytes == header.nbytes, ErrorKind::Data, "chunk of another size")?;
    let params = CParams { typesize: header.typesize.max(1), ..CParams::default() };
    let mut made = memory::zeroed(chunk::room_for(header.nbytes))?;
    let cbytes = chunk::compress(&params, &data, &mut made)?;
    ensure(cbytes > 0, ErrorKind::Failure, "chunk cannot be compressed")?;
    made.truncate(cbytes);
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk with a header of 16 bytes and `data` as they are.
    fn plain(data: &[u8]) -> Vec<u8> {
        let sizes = [data.len(), data.len(), data.len() + 16];
        let mut chunk = vec![2, 1, 0x12, 4];
        for size in sizes {
            chunk.extend_from_slice(&i32::try_from(size).unwrap().to_le_bytes());
        }
        chunk.extend_from_slice(data);
        chunk
    }

    fn admitted(chunk: &[u8]) -> (Cow<'_, [u8]>, ChunkInfo) {
        admit(chunk, 0, ErrorKind::ChunkAppend).unwrap()
    }

    #[test]
    fn short_headers_that_would_be_misread_are_extended() {
        let data: Vec<u8> = (1..=200).collect();
        let mut harmless = data.clone();
        harmless[14..16].fill(0);
        let [short, mut special, mut blocks] = [&data[..12], &harmless, &harmless].map(plain);
        special[31] = 0x10;
        blocks[30] = 1;
        for chunk in [short, special, blocks] {
            let (stored, info) = admitted(&chunk);
            assert!(BasicHeader::read(&stored).unwrap().is_extended() && stored.len() >= 32);
            assert_eq!((info.cbytes, info.special, info.vl_blocks), (stored.len(), 0, false));
            let mut back = vec![0; chunk.len() - 16];
            assert_eq!(chunk::decompress(&stored, &mut back), Ok(back.len()));
            assert_eq!(back, chunk[16..]);
        }
    }

    #[test]
    fn other_chunks_stay_as_they_are() {
        let harmless = plain(&[0; 40]);
        assert!(matches!(admitted(&harmless), (Cow::Borrowed(bytes), _) if bytes == harmless));
        // A codec that does not exist.
        let mut damaged = plain(&[7; 12]);
        damaged[2] = 0xf0;
        assert!(matches!(admitted(&damaged), (Cow::Borrowed(bytes), _) if bytes == damaged));
    }

    #[test]
    fn empty_chunks_are_not_the_first() {
        let empty = ChunkHeader { cbytes: 32, ..ChunkHeader::BARE };
        let mut bytes = [0; 32];
        empty.write(&mut bytes);
        assert_eq!(admit(&bytes, 0, ErrorKind::ChunkInsert).unwrap_err().kind(), ErrorKind::ChunkInsert);
        assert_eq!(admit(&bytes, 1, ErrorKind::ChunkInsert).unwrap().1.nbytes, 0);
    }
}
