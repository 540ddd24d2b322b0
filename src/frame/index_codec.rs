//! Compression of the chunk index, with the parameters that the format's other writers use.

use crate::chunk::{self, CParams};
use crate::error::{ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, blosc2_flags, special, split};
use crate::memory::zeroed;

/// Which operation wrote the index; it decides whether an index that compresses badly is kept compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOf {
    /// A frame from which a chunk was deleted: 8 more bytes are offered to the compressor.
    Delete,
    /// Any other operation.
    Other,
}

/// Bytes of an entry.
const ENTRY: usize = 8;
/// Bytes of a block of the index chunk.
const BLOCKSIZE: usize = 16384;

/// Compresses `entries` as the chunk that ends the payload area.
///
/// # Errors
///
/// Those of the compressor; `MemoryAlloc`.
pub(crate) fn compress(entries: &[i64], of: IndexOf) -> Result<Vec<u8>> {
    let params =
        CParams { typesize: ENTRY, blocksize: BLOCKSIZE, splitmode: split::NEVER, ..CParams::default() };
    let mut raw = zeroed(ENTRY * entries.len())?;
    for (bytes, entry) in raw.chunks_exact_mut(ENTRY).zip(entries) {
        bytes.copy_from_slice(&entry.to_le_bytes());
    }
    let extra = if of == IndexOf::Delete { ENTRY } else { 0 };
    let mut chunk = zeroed(raw.len() + EXTENDED_HEADER_LENGTH + extra)?;
    let cbytes = chunk::compress(&params, &raw, &mut chunk)?;
    ensure(cbytes > 0, ErrorKind::Failure, "index cannot be compressed")?;
    chunk.truncate(cbytes);
    Ok(chunk)
}

/// The index of a frame filled with one special value: a repeated-value chunk.
pub(crate) fn repeated(entry: i64, nchunks: usize) -> Vec<u8> {
    let header = ChunkHeader {
        typesize: ENTRY,
        nbytes: nchunks * ENTRY,
        blocksize: (nchunks * ENTRY).min(BLOCKSIZE),
        cbytes: EXTENDED_HEADER_LENGTH + ENTRY,
        blosc2_flags: special::VALUE << blosc2_flags::SPECIAL_SHIFT,
        ..ChunkHeader::BARE
    };
    let mut bytes = [0; EXTENDED_HEADER_LENGTH];
    header.write(&mut bytes);
    let mut chunk = bytes.to_vec();
    chunk.extend_from_slice(&entry.to_le_bytes());
    chunk
}

/// Decompresses the index chunk `chunk` into `dest`, which has its exact size.
///
/// # Errors
///
/// Those of the decompressor.
pub(crate) fn decompress(chunk: &[u8], dest: &mut [u8]) -> Result<()> {
    let nbytes = chunk::decompress(chunk, dest)?;
    ensure(nbytes == dest.len(), ErrorKind::Data, "index of another size")
}
