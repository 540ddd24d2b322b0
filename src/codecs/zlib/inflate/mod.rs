//! A decoder of our own.
//!
//! What limits others, besides copying, is that they look up one literal at a time: each look-up waits for the one
//! before, which tells how many bits it took. Here, a look-up gives as many literals as its bits tell (`table.rs`).
//! Half of the time of short streams goes into their tables, which are no larger than their codes need, and literals
//! are combined only where many follow. Streams of which only the beginning is wanted are decoded no further.

mod bits;
mod decode;
mod header;
mod table;
#[cfg(test)]
mod tests;

use super::libdeflate::adler32_more;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::made;
pub(super) use bits::Bits;
pub(super) use header::{Fixed, Kind, read_fixed, read_kind, read_lengths};
use table::Tables;
pub(super) use table::count_lengths;

/// The checksum follows the output in pieces of this many bytes, which are still near then.
const PIECE: usize = 64 << 10;

/// A decoder with its tables.
pub(super) struct Decoder {
    /// `None` before the first use.
    tables: Option<AllTables>,
}

/// Tables for dynamic and for fixed codes: where streams are short, either kind may come next.
struct AllTables {
    dynamic: Box<Tables>,
    fixed: Box<Tables>,
}

impl AllTables {
    fn new() -> Result<AllTables> {
        Ok(AllTables { dynamic: Tables::new()?, fixed: Tables::fixed()? })
    }
}

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder { tables: None }
    }

    /// Decompresses `src`, which must give exactly `dest.len()` bytes. Bytes after the stream's end are ignored.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged or holds another number of bytes, `MemoryAlloc`.
    pub(super) fn decompress(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let tables = made(&mut self.tables, AllTables::new)?;
        inflate(tables, src, dest, None, decode::decode).ok_or(DAMAGED)
    }

    /// Decompresses at least the first `wanted` bytes of a stream that holds `dest.len()`. What follows them in `dest`
    /// is arbitrary afterwards.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged as far as it is looked at, `MemoryAlloc`.
    pub(super) fn decompress_prefix(&mut self, src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
        if wanted >= dest.len() {
            return self.decompress(src, dest);
        }
        let tables = made(&mut self.tables, AllTables::new)?;
        inflate(tables, src, dest, Some(wanted), decode::decode).ok_or(DAMAGED)
    }
}

const DAMAGED: Error = Error::new(ErrorKind::Data, "damaged zlib stream");

/// What decodes the data of a block, as [`decode::decode`] does.
type Decode = fn(&mut Tables, &mut Bits<'_>, &mut [u8], &mut usize, usize) -> Option<bool>;

/// Decodes `src` into `dest`: all of it, and the checksum must be right; or at least as many bytes as are `wanted`,
/// which are fewer.
fn inflate(
    tables: &mut AllTables,
    src: &[u8],
    dest: &mut [u8],
    wanted: Option<usize>,
    decode: Decode,
) -> Option<()> {
    let deflated = without_header(src)?;
    let mut bits = Bits::new(deflated);
    let (mut op, mut sum, mut summed) = (0, 1, 0);
    loop {
        let (is_last, kind) = read_kind(&mut bits)?;
        let mut block = match kind {
            Kind::Raw => {
                copy_raw(&mut bits, dest, &mut op)?;
                None
            }
            Kind::Fixed => Some(&mut *tables.fixed),
            Kind::Dynamic => {
                tables.dynamic.fit(&read_lengths(&mut bits)?)?;
                Some(&mut *tables.dynamic)
            }
        };
        while let Some(codes) = &mut block {
            let stop = wanted.unwrap_or_else(|| dest.len().min(summed + PIECE));
            let has_ended = decode(codes, &mut bits, dest, &mut op, stop)?;
            if wanted.is_some_and(|wanted| op >= wanted) {
                return Some(());
            }
            if op >= summed + PIECE {
                sum = adler32_more(sum, &dest[summed..op]);
                summed = op;
            }
            if has_ended {
                break;
            }
        }
        if wanted.is_some_and(|wanted| op >= wanted) {
            return Some(());
        }
        if is_last {
            break;
        }
    }
    bits.align();
    let told = bits.bytes(4)?;
    (op == dest.len() && told == adler32_more(sum, &dest[summed..]).to_be_bytes()).then_some(())
}

/// What follows the header of a zlib stream; `None` if it is not one, or needs a dictionary.
fn without_header(src: &[u8]) -> Option<&[u8]> {
    let [method, flags, deflated @ ..] = src else { return None };
    let is_deflate = method & 0xf == 8 && method >> 4 <= 7;
    let is_whole = (u32::from(*method) << 8 | u32::from(*flags)) % 31 == 0;
    (is_deflate && is_whole && flags & 0x20 == 0).then_some(deflated)
}

/// Copies the bytes of a raw block.
fn copy_raw(bits: &mut Bits<'_>, dest: &mut [u8], op: &mut usize) -> Option<()> {
    bits.align();
    let [low, high, not_low, not_high] = *bits.bytes(4)? else { return None };
    if (low, high) != (!not_low, !not_high) {
        return None;
    }
    let len = usize::from(u16::from_le_bytes([low, high]));
    dest.get_mut(*op..*op + len)?.copy_from_slice(bits.bytes(len)?);
    *op += len;
    Some(())
}
