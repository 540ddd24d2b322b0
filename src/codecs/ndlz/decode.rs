//! The NDLZ decoder. It accepts what encoders write and nothing else, except that it ignores bytes after the last
//! record and the three lowest bits of the tokens of row forms for cells of side 4, except for the last pair of rows,
//! as the C library does, and that references may be to any bytes of the stream.
//!
//! That one also takes row forms in cut cells, and forms that name a row twice, and gives meaningless items for them.

use super::{
    DOUBLE_PAIRS_4, HEADER_LENGTH, LAST_PAIR_4, NDIM, PAIR_8, PAIRS_4, RowForm, TRIPLE_8, TRIPLES_4, token,
};
use crate::error::{Error, ErrorKind, Result, ensure};

const TRUNCATED: Error = Error::new(ErrorKind::Data, "NDLZ stream ends too early");

/// Decodes a stream with cells of side `C`.
pub(super) fn decode<const C: usize>(src: &[u8], dest: &mut [u8]) -> Result<()> {
    let (header, _) = src.split_at_checked(HEADER_LENGTH).ok_or(TRUNCATED)?;
    ensure(header[0] == NDIM, ErrorKind::Data, "NDLZ stream that is not two-dimensional")?;
    let extent = |at: usize| {
        let bytes = header[at..at + 4].try_into().expect("four bytes");
        usize::try_from(i32::from_le_bytes(bytes))
            .map_err(|_| Error::new(ErrorKind::Data, "negative extent in an NDLZ stream"))
    };
    let (rows, columns) = (extent(1)?, extent(5)?);
    ensure(
        rows.checked_mul(columns) == Some(dest.len()),
        ErrorKind::Data,
        "block length differs from that in the NDLZ stream",
    )?;
    if dest.is_empty() {
        return Ok(());
    }
    let mut source = Source { src, pos: HEADER_LENGTH };
    for band in dest.chunks_mut(columns.saturating_mul(C)) {
        let height = band.len() / columns;
        for left in (0..columns).step_by(C) {
            let width = (columns - left).min(C);
            let cell = Target { band, columns, left, height, width };
            source.record::<C>(cell)?;
        }
    }
    Ok(())
}

/// Where a cell goes.
struct Target<'a> {
    /// The rows of the block that the cell is in.
    band: &'a mut [u8],
    /// Length of these rows.
    columns: usize,
    /// First column of the cell.
    left: usize,
    height: usize,
    width: usize,
}

impl Target<'_> {
    /// Stores a cell whose rows are packed in `items`.
    #[inline(always)]
    fn store_packed<const C: usize>(&mut self, items: &[u8]) {
        if self.width == C {
            for (row, items) in items.chunks_exact(C).enumerate() {
                let start = row * self.columns + self.left;
                self.band[start..start + C].copy_from_slice(items);
            }
        } else {
            for (row, items) in items.chunks_exact(self.width).enumerate() {
                let start = row * self.columns + self.left;
                self.band[start..start + self.width].copy_from_slice(items);
            }
        }
    }

    #[inline(always)]
    fn fill<const C: usize>(&mut self, value: u8) {
        for row in 0..self.height {
            let start = row * self.columns + self.left;
            if self.width == C {
                self.band[start..start + C].copy_from_slice(&[value; C]);
            } else {
                self.band[start..start + self.width].fill(value);
            }
        }
    }
}

/// The stream, and how much of it was read.
struct Source<'a> {
    src: &'a [u8],
    pos: usize,
}

impl<'a> Source<'a> {
    #[inline(always)]
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = self.src[self.pos..].get(..len).ok_or(TRUNCATED)?;
        self.pos += len;
        Ok(bytes)
    }

    /// Reads an offset and returns the `len` bytes that it refers to; `token` is the token's position.
    #[inline(always)]
    fn reference(&mut self, token: usize, len: usize) -> Result<&'a [u8]> {
        let offset = self.take(2)?;
        let offset = usize::from(u16::from_le_bytes([offset[0], offset[1]]));
        token
            .checked_sub(offset)
            .and_then(|start| self.src.get(start..start + len))
            .ok_or(Error::new(ErrorKind::Data, "NDLZ reference outside of the stream"))
    }

    /// Decodes one cell.
    #[inline(always)]
    fn record<const C: usize>(&mut self, mut cell: Target<'_>) -> Result<()> {
        let start = self.pos;
        let items = cell.height * cell.width;
        match self.take(1)?[0] {
            token::LITERAL => cell.store_packed::<C>(self.take(items)?),
            token::CONSTANT => cell.fill::<C>(self.take(1)?[0]),
            token::CELL => cell.store_packed::<C>(self.reference(start, items)?),
            token => {
                ensure(items == C * C, ErrorKind::Data, "NDLZ row form in a cut cell")?;
                let (rows, is_double) =
                    row_form::<C>(token).ok_or(Error::new(ErrorKind::Data, "unknown NDLZ token"))?;
                let referenced = rows.count_ones() as usize * C;
                let first = self.reference(start, referenced)?;
                let others = if is_double {
                    self.reference(start, C * C - referenced)?
                } else {
                    self.take(C * C - referenced)?
                };
                merge_rows::<C>(rows, first, others, &mut cell);
            }
        }
        Ok(())
    }
}

/// Stores a whole cell: the rows in `rows` from `first`, the others from `others`.
#[inline(always)]
fn merge_rows<const C: usize>(rows: u8, first: &[u8], others: &[u8], cell: &mut Target<'_>) {
    let (mut first, mut others) = (first.chunks_exact(C), others.chunks_exact(C));
    for row in 0..C {
        let items = if rows >> row & 1 == 1 { first.next() } else { others.next() };
        let start = row * cell.columns + cell.left;
        cell.band[start..start + C].copy_from_slice(items.expect("C rows in all"));
    }
}

/// The rows that the first reference of a row form gives, and whether the others come from a second one.
#[inline(always)]
fn row_form<const C: usize>(token: u8) -> Option<(u8, bool)> {
    let entry = if C == 4 { FORMS_4[usize::from(token)] } else { FORMS_8[usize::from(token)] };
    let rows = (entry & !DOUBLE) as u8; // eight bits at most
    (rows != 0).then_some((rows, entry & DOUBLE != 0))
}

/// By token: the rows of the first reference, 0 for what is no row form.
type Forms = [u16; 256];

/// Set beside the rows where there are two references.
const DOUBLE: u16 = 0x8000;

static FORMS_4: Forms = {
    let table = with_forms([0; 256], &TRIPLES_4, 0);
    with_forms(with_forms(table, &PAIRS_4, 0), &DOUBLE_PAIRS_4, DOUBLE)
};

/// `table` with the tokens of `forms`, whatever their three lowest bits.
const fn with_forms(mut table: Forms, forms: &[RowForm], double: u16) -> Forms {
    let mut i = 0;
    while i < 8 * forms.len() {
        let (form, bits) = (forms[i / 8], i % 8);
        if bits == 0 || form.token != LAST_PAIR_4 {
            table[form.token as usize | bits] = form.rows as u16 | double;
        }
        i += 1;
    }
    table
}

static FORMS_8: Forms = {
    let mut table = [0; 256];
    let mut row = 0;
    while row <= 6 {
        table[(PAIR_8 + row) as usize] = 0b11 << row;
        if row <= 5 {
            table[(TRIPLE_8 + row) as usize] = 0b111 << row;
        }
        row += 1;
    }
    table
};
