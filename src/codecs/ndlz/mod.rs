//! NDLZ: lossless compression of two-dimensional blocks of bytes, in cells of 4×4 or 8×8.
//!
//! The meta byte is the side of the cells. The stream starts with 9 bytes: the number of dimensions (2), and the shape
//! of the block as two little-endian `i32`, slowest dimension first. One record per cell follows, in C order. Cells at
//! the far edges are cut.
//!
//! A record is a token and its data. Offsets are 16 bits, little-endian: `off` stands for bytes of the *stream*, which
//! start `off` bytes before the token. They were stored there as the literal items of an earlier cell.
//!
//! | token | data | cell |
//! |---|---|---|
//! | `00` | items | literal |
//! | `40` | 1 byte | all items equal |
//! | `C0` | off | all items from the reference |
//! | a row form | off, other rows | some rows from the reference, the others literal |
//! | `28` `30` `38` (side 4) | off1, off2 | rows 0 and 1 (2, 3) from the first reference, the others from the second |
//!
//! Row forms are for whole cells only. Both the rows of a reference and the literal ones are in ascending order.

#![forbid(unsafe_code)]

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use super::{Codec, CodecContext};
use crate::error::{Error, ErrorKind, Result, ensure};

/// The codec.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ndlz;

/// Length of the head of a stream.
const HEADER_LENGTH: usize = 9;
/// First byte of a stream.
const NDIM: u8 = 2;

/// Tokens without parameters.
mod token {
    pub(super) const LITERAL: u8 = 0x00;
    pub(super) const CONSTANT: u8 = 0x40;
    pub(super) const CELL: u8 = 0xc0;
}

/// A token that gives rows of a whole cell, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowForm {
    token: u8,
    /// The rows that the (first) reference gives: bit r for row r.
    rows: u8,
}

const fn form(token: u8, rows: u8) -> RowForm {
    RowForm { token, rows }
}

/// Cells of side 4: three rows from a reference. All tables are in the order in which the encoder tries the forms.
const TRIPLES_4: [RowForm; 4] =
    [form(0xe8, 0b0111), form(0xf0, 0b1011), form(0xf8, 0b1101), form(0xe0, 0b1110)];
/// Cells of side 4: two rows from a reference. A form and its mirror image in the table complete each other.
const PAIRS_4: [RowForm; 6] = [
    form(0x88, 0b0011),
    form(0x90, 0b0101),
    form(0x98, 0b1001),
    form(0xb0, 0b0110),
    form(0xb8, 0b1010),
    form(LAST_PAIR_4, 0b1100),
];
/// The token of rows 2 and 3, which follows no rule: by that of the others, it would name row 0 twice.
const LAST_PAIR_4: u8 = 0x80;
/// Cells of side 4: two rows from each of two references.
const DOUBLE_PAIRS_4: [RowForm; 3] = [form(0x28, 0b0011), form(0x30, 0b0101), form(0x38, 0b1001)];
/// Cells of side 8: first token of the forms with three adjacent rows; the first of the rows is added.
const TRIPLE_8: u8 = 0xa8;
/// Cells of side 8: first token of the forms with two adjacent rows.
const PAIR_8: u8 = 0x88;

impl Codec for Ndlz {
    fn encode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let encode_cells = match cx.meta {
            4 => encode::encode_4,
            8 => encode::encode_8,
            _ => return Err(BAD_SIDE),
        };
        let no_shape = Error::new(ErrorKind::Data, "NDLZ needs the shape of the block");
        let geometry = cx.container.geometry().ok_or(no_shape)?;
        let &[rows, columns] = geometry.blockshape() else {
            return Err(Error::new(ErrorKind::Data, "NDLZ needs two dimensions"));
        };
        let nitems = geometry.nitems().and_then(|n| usize::try_from(n).ok());
        ensure(nitems == Some(src.len()), ErrorKind::Data, "block length differs from the block shape")?;
        let side = usize::from(cx.meta);
        if src.len() < side * side {
            return Ok(0);
        }
        let Some((header, records)) = dest.split_at_mut_checked(HEADER_LENGTH) else {
            return Ok(0);
        };
        header[0] = NDIM;
        header[1..5].copy_from_slice(&rows.to_le_bytes());
        header[5..9].copy_from_slice(&columns.to_le_bytes());
        // Positive and below the length of the block.
        let encoded = encode_cells(src, columns as usize, records);
        Ok(encoded.map(|n| n + HEADER_LENGTH).filter(|&n| n < src.len()).unwrap_or(0))
    }

    fn decode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        match cx.meta {
            4 => decode::decode::<4>(src, dest),
            8 => decode::decode::<8>(src, dest),
            _ => Err(BAD_SIDE),
        }
    }

    fn needs_geometry(&self) -> bool {
        true
    }
}

const BAD_SIDE: Error = Error::new(ErrorKind::Data, "NDLZ cells have side 4 or 8");
