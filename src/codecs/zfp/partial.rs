//! Item ranges of fixed-rate streams: every cell has the same length, so cells can be decoded one by one.

#![forbid(unsafe_code)]

use super::bitstream::BitReader;
use super::cell::{CellCoder, Limits};
use super::field::{Field, MAX_DIMS, SIDE, TRUNCATED, kernel};
use super::real::Real;
use crate::error::{ErrorKind, Result, ensure};

/// Decodes consecutive items of a block, of `size` bytes each, that was compressed in
/// [`Mode::Rate`](super::Mode::Rate), and no cells but those they lie in.
///
/// `limits` are those for decoding the whole block, `src` is its stream; `first_item` counts in C order within the
/// block. `dest` is filled.
///
/// # Errors
///
/// `Data` if the items are not all in the block, `dest` is not a whole number of items, or `src` is too short.
pub(super) fn decode_items(
    field: &Field,
    size: usize,
    limits: Limits,
    src: &[u8],
    first_item: usize,
    dest: &mut [u8],
) -> Result<()> {
    let end = first_item.checked_add(dest.len() / size);
    let inside = dest.len() % size == 0 && end.is_some_and(|end| end <= field.nitems());
    ensure(inside, ErrorKind::Data, "items outside of the block")?;
    if dest.is_empty() {
        return Ok(());
    }
    (kernel(size, field.dims).decode_items)(field, limits, src, first_item, dest)
}

/// A run of wanted items within one line (or plane, or volume) of the block, relative to its start.
#[derive(Clone, Copy, Default)]
struct Span {
    start: usize,
    end: usize,
    /// Where the first of them goes, in items.
    dest: usize,
}

/// The spans within the up to 4^3 parts of a cell that share the coordinates along the axes not looked at yet.
type Spans = [Span; 64];

/// Decodes the cells of a stream that hold wanted items.
struct RangeDecoder<'a, R: Real, const N: usize, const G: usize> {
    field: &'a Field,
    coder: CellCoder<R, N, G>,
    reader: BitReader<'a>,
    dest: &'a mut [u8],
}

/// [`decode_items`] for one type and number of dimensions; there are some items, which are all in the block.
pub(super) fn decode_range<R: Real, const N: usize, const G: usize>(
    field: &Field,
    limits: Limits,
    src: &[u8],
    first_item: usize,
    dest: &mut [u8],
) -> Result<()> {
    let mut spans = [Span::default(); 64];
    spans[0] = Span { start: first_item, end: first_item + dest.len() / R::BYTES, dest: 0 };
    let (coder, reader) = (CellCoder::new(limits), BitReader::new(src, 0));
    RangeDecoder::<R, N, G> { field, coder, reader, dest }.descend(field.dims - 1, 0, &spans)
}

impl<R: Real, const N: usize, const G: usize> RangeDecoder<'_, R, N, G> {
    /// Decodes the cells that `spans` touch. `axis` is the slowest axis not looked at yet, `first_cell` the number of
    /// the first cell at these coordinates along the slower axes.
    fn descend(&mut self, axis: usize, first_cell: u64, spans: &Spans) -> Result<()> {
        // Parts of a cell along the slower axes.
        let parts = N >> (2 * (axis + 1));
        let stride = self.field.stride[axis];
        let wanted = || spans[..parts].iter().filter(|span| span.start < span.end);
        let Some(first) = wanted().map(|span| span.start / stride / SIDE).min() else {
            return Ok(());
        };
        let last = wanted().map(|span| (span.end - 1) / stride / SIDE).max().unwrap_or(first);
        let cells: u64 = self.field.extent[..axis].iter().map(|n| n.div_ceil(SIDE) as u64).product();
        for slab in first..=last {
            let cell = first_cell + slab as u64 * cells;
            if axis == 0 {
                if wanted().any(|span| span.start < (slab + 1) * SIDE && span.end > slab * SIDE) {
                    self.decode_cell(cell, slab, &spans[..parts])?;
                }
                continue;
            }
            self.descend(axis - 1, cell, &rows_of(&spans[..parts], slab * SIDE, stride))?;
        }
        Ok(())
    }

    /// Decodes one cell, number `column` along the fastest axis, and copies the items in `rows`.
    fn decode_cell(&mut self, cell: u64, column: usize, rows: &[Span]) -> Result<()> {
        // A block has fewer than 2^31 items, and a cell fewer than 2^16 bits.
        self.reader.seek(cell * u64::from(self.coder.limits.max_bits));
        let mut items = [R::default(); N];
        self.coder.decode(&mut self.reader, &mut items);
        if !self.reader.within_bounds() {
            return Err(TRUNCATED);
        }
        let first = column * SIDE;
        for (row, items) in rows.iter().zip(items.chunks_exact(SIDE)) {
            for x in row.start.max(first)..row.end.min(first + SIDE) {
                let to = (row.dest + (x - row.start)) * R::BYTES;
                items[x - first].store(&mut self.dest[to..]);
            }
        }
        Ok(())
    }
}

/// What `spans` cover of each of the [`SIDE`] rows of `stride` items from number `first` on, counted from the start of
/// the row.
fn rows_of(spans: &[Span], first: usize, stride: usize) -> Spans {
    let mut rows = [Span::default(); 64];
    for (span, rows) in spans.iter().zip(rows.chunks_exact_mut(SIDE)) {
        for (row, n) in rows.iter_mut().zip(first..) {
            let row_start = n * stride;
            let start = span.start.max(row_start);
            let end = span.end.min(row_start + stride);
            if start < end {
                let dest = span.dest + (start - span.start);
                *row = Span { start: start - row_start, end: end - row_start, dest };
            }
        }
    }
    rows
}

// The parts of a cell along all but the fastest axis must fit in `Spans`.
const _: () = assert!(SIDE.pow(MAX_DIMS as u32 - 1) == 64);
