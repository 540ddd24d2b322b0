//! The NDLZ encoder.
//!
//! Of each literal cell, and only of those, the encoder remembers where its items lie in the stream: of the whole cell
//! and of its runs of three and of two adjacent rows, the last one for each hash value. It also remembers which cells
//! it wrote in a row form: when such a cell comes again it becomes literal, so that from then on the short form for
//! whole cells works.

use super::{DOUBLE_PAIRS_4, PAIR_8, PAIRS_4, TRIPLE_8, TRIPLES_4, token};

/// Largest offset of a whole cell.
const MAX_CELL_OFFSET: u16 = 65534;
/// Largest offset of rows; the C library's decoder computes with 16 bits and fails above it.
const MAX_ROW_OFFSET: u16 = 65530;
/// log2 of the number of entries of a table.
const HASH_BITS: u32 = 12;
/// Odd factors for hashing, one per row.
const FACTORS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0xd6e8_feb8_6659_fd93];

/// Encodes a block with `columns` columns in cells of side 4 into `out`, which follows the header of the stream.
/// Returns the length of the records, or `None` if they do not fit. The block holds at least one item.
pub(super) fn encode_4(src: &[u8], columns: usize, out: &mut [u8]) -> Option<usize> {
    encode(src, columns, out, Encoder::record_4)
}

/// Encodes as [`encode_4`] in cells of side 8.
pub(super) fn encode_8(src: &[u8], columns: usize, out: &mut [u8]) -> Option<usize> {
    encode(src, columns, out, Encoder::record_8)
}

/// Encodes all cells; `record` handles those that are not cut.
#[inline(always)]
fn encode<'a, const C: usize>(
    src: &[u8],
    columns: usize,
    out: &'a mut [u8],
    record: impl Fn(&mut Encoder<'a>, [&[u8; C]; C]) -> Option<()>,
) -> Option<usize> {
    let mut encoder = Encoder {
        out,
        pos: 0,
        cells: Table::new(),
        triples: Table::new(),
        pairs: Table::new(),
        in_rows: Table::new(),
    };
    let band_len = columns.saturating_mul(C);
    for band in src.chunks(band_len) {
        for left in (0..columns).step_by(C) {
            if band.len() == band_len && left + C <= columns {
                let cell = std::array::from_fn(|row| {
                    let start = row * columns + left;
                    band[start..start + C].try_into().expect("C columns")
                });
                record(&mut encoder, cell)?;
            } else {
                let width = (columns - left).min(C);
                let rows = band.chunks_exact(columns).map(|row| &row[left..left + width]);
                encoder.cut_cell(rows)?;
            }
        }
    }
    Some(encoder.pos)
}

/// The stream so far, and where in the block cells and rows were that later ones may repeat.
struct Encoder<'a> {
    out: &'a mut [u8],
    /// Length of the stream so far.
    pos: usize,
    cells: Table,
    triples: Table,
    pairs: Table,
    /// Cells written in a row form: bits of their hash that do not choose the entry.
    in_rows: Table,
}

/// A hash value; the high bits are the good ones.
#[derive(Clone, Copy, Default)]
struct Hash(u64);

impl Hash {
    #[inline(always)]
    fn index(self) -> usize {
        (self.0 >> (64 - HASH_BITS)) as usize
    }

    /// More bits of the hash, never 0.
    #[inline(always)]
    fn tag(self) -> u16 {
        (self.0 >> (48 - HASH_BITS)) as u16 | 1
    }
}

/// Positions of literal items by hash, modulo 2^16: further back no offset reaches. What an empty or an outdated entry
/// points to is compared like all else.
struct Table([u16; 1 << HASH_BITS]);

impl Table {
    fn new() -> Table {
        Table([0; 1 << HASH_BITS])
    }

    /// The offset, at most `max_offset`, from the end of `written` to `N` bytes that `are_equal` accepts.
    #[inline(always)]
    fn find<const N: usize>(
        &self,
        hash: Hash,
        written: &[u8],
        max_offset: u16,
        are_equal: impl Fn(&[u8; N]) -> bool,
    ) -> Option<u16> {
        let pos = written.len();
        let offset = (pos as u16).wrapping_sub(self.0[hash.index()]);
        let stored = written.get(pos.checked_sub(usize::from(offset))?..)?.first_chunk::<N>()?;
        (offset <= max_offset && are_equal(stored)).then_some(offset)
    }

    #[inline(always)]
    fn insert(&mut self, hash: Hash, pos: usize) {
        self.0[hash.index()] = pos as u16;
    }
}

impl Encoder<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        *self.out[self.pos..].first_chunk_mut()? = bytes;
        self.pos += N;
        Some(())
    }

    /// Writes a token and an offset.
    #[inline(always)]
    fn put_reference(&mut self, token: u8, offset: u16) -> Option<()> {
        let [low, high] = offset.to_le_bytes();
        self.put([token, low, high])
    }

    #[inline(always)]
    fn put_items(&mut self, items: &[u8]) -> Option<()> {
        self.out[self.pos..].get_mut(..items.len())?.copy_from_slice(items);
        self.pos += items.len();
        Some(())
    }

    #[inline(always)]
    fn put_rows_8<'r>(&mut self, mut rows: impl Iterator<Item = &'r u64>) -> Option<()> {
        rows.try_for_each(|row| self.put(row.to_le_bytes()))
    }

    /// Notes that the cell with this hash is about to be written in a row form; true if that happened before.
    #[inline(always)]
    fn was_in_rows(&mut self, cell: Hash) -> bool {
        std::mem::replace(&mut self.in_rows.0[cell.index()], cell.tag()) == cell.tag()
    }

    /// Writes a whole cell of side 4.
    #[inline(always)]
    fn record_4(&mut self, cell: [&[u8; 4]; 4]) -> Option<()> {
        let rows = cell.map(|row| u32::from_le_bytes(*row));
        let (upper, lower) = (pair_of(&rows, 0, 1), pair_of(&rows, 2, 3));
        if upper == lower && upper == upper.rotate_left(8) {
            return self.put([token::CONSTANT, cell[0][0]]);
        }
        let cell_hash = Hash(upper.wrapping_mul(FACTORS[0]).wrapping_add(lower.wrapping_mul(FACTORS[1])));
        let written = &self.out[..self.pos];
        let is_cell = |stored: &[u8; 16]| equal(stored, [upper, lower]);
        if let Some(offset) = self.cells.find(cell_hash, written, MAX_CELL_OFFSET, is_cell) {
            return self.put_reference(token::CELL, offset);
        }

        let pairs = self.find_pairs_4(&rows);
        for (i, form) in DOUBLE_PAIRS_4.iter().enumerate() {
            // The complement of pair i is its mirror image.
            if let (Some(first), Some(second)) = (pairs[i], pairs[5 - i]) {
                self.put_reference(form.token, first)?;
                return self.put(second.to_le_bytes());
            }
        }

        // The row that each leaves.
        const LEFT: [usize; 4] = [3, 2, 1, 0];
        for ((form, offset), other) in TRIPLES_4.iter().zip(self.find_triples_4(&rows)).zip(LEFT) {
            if let Some(offset) = offset {
                self.put_reference(form.token, offset)?;
                return self.put(*cell[other]);
            }
        }

        let found = pairs.iter().enumerate().find_map(|(i, offset)| Some((i, (*offset)?)));
        if let Some((i, offset)) = found {
            if !self.was_in_rows(cell_hash) {
                const OTHERS: [[usize; 2]; 6] = [[2, 3], [1, 3], [1, 2], [0, 3], [0, 2], [0, 1]];
                self.put_reference(PAIRS_4[i].token, offset)?;
                let [a, b] = OTHERS[i];
                return self.put(pair_of(&rows, a, b).to_le_bytes());
            }
        }
        self.literal_cell_4(&rows, cell_hash)
    }

    /// Where two of these rows were, in the order of `PAIRS_4`.
    #[inline(always)]
    fn find_pairs_4(&self, rows: &[u32; 4]) -> [Option<u16>; 6] {
        let written = &self.out[..self.pos];
        let find = |a: usize, b: usize| {
            let pair = pair_of(rows, a, b);
            self.pairs
                .find(pair_hash_4(pair), written, MAX_ROW_OFFSET, |stored: &[u8; 8]| equal(stored, [pair]))
        };
        [find(0, 1), find(0, 2), find(0, 3), find(1, 2), find(1, 3), find(2, 3)]
    }

    /// Where three of these rows were, in the order of `TRIPLES_4`.
    #[inline(always)]
    fn find_triples_4(&self, rows: &[u32; 4]) -> [Option<u16>; 4] {
        let written = &self.out[..self.pos];
        let find = |a: usize, b: usize, c: usize| {
            let (pair, third) = (pair_of(rows, a, b), rows[c]);
            self.triples.find(triple_hash_4(pair, third), written, MAX_ROW_OFFSET, |stored: &[u8; 12]| {
                equal(&stored[..8], [pair]) && stored[8..] == third.to_le_bytes()
            })
        };
        [find(0, 1, 2), find(0, 1, 3), find(0, 2, 3), find(1, 2, 3)]
    }

    /// Writes a literal cell of side 4 and remembers it.
    #[inline(always)]
    fn literal_cell_4(&mut self, rows: &[u32; 4], cell_hash: Hash) -> Option<()> {
        self.put([token::LITERAL])?;
        let start = self.pos;
        self.put(pair_of(rows, 0, 1).to_le_bytes())?;
        self.put(pair_of(rows, 2, 3).to_le_bytes())?;
        self.cells.insert(cell_hash, start);
        for row in 0..2 {
            self.triples.insert(triple_hash_4(pair_of(rows, row, row + 1), rows[row + 2]), start + 4 * row);
        }
        for row in 0..3 {
            self.pairs.insert(pair_hash_4(pair_of(rows, row, row + 1)), start + 4 * row);
        }
        Some(())
    }

    /// Writes a whole cell of side 8.
    #[inline(always)]
    fn record_8(&mut self, cell: [&[u8; 8]; 8]) -> Option<()> {
        let rows = cell.map(|row| u64::from_le_bytes(*row));
        if rows.iter().all(|&row| row == rows[0].rotate_left(8)) {
            return self.put([token::CONSTANT, cell[0][0]]);
        }
        let pair_hashes: [Hash; 7] = std::array::from_fn(|row| {
            Hash(rows[row].wrapping_mul(FACTORS[0]).wrapping_add(rows[row + 1].wrapping_mul(FACTORS[1])))
        });
        let cell_hash =
            Hash([0, 2, 4, 6].iter().fold(0, |hash: u64, &row| {
                (hash.rotate_left(32) ^ pair_hashes[row].0).wrapping_mul(FACTORS[2])
            }));
        let written = &self.out[..self.pos];
        let is_cell = |stored: &[u8; 64]| equal(stored, rows);
        if let Some(offset) = self.cells.find(cell_hash, written, MAX_CELL_OFFSET, is_cell) {
            return self.put_reference(token::CELL, offset);
        }
        let triple_hashes: [Hash; 6] = std::array::from_fn(|row| {
            Hash(pair_hashes[row].0.wrapping_add(rows[row + 2].wrapping_mul(FACTORS[2])))
        });

        let triple = (0..6).find_map(|row| {
            let run = [rows[row], rows[row + 1], rows[row + 2]];
            let is_run = |stored: &[u8; 24]| equal(stored, run);
            Some((row, self.triples.find(triple_hashes[row], written, MAX_ROW_OFFSET, is_run)?))
        });
        let found = triple.map(|(row, offset)| (TRIPLE_8 + row as u8, row, 3, offset)).or_else(|| {
            (0..7).find_map(|row| {
                let run = [rows[row], rows[row + 1]];
                let is_run = |stored: &[u8; 16]| equal(stored, run);
                let offset = self.pairs.find(pair_hashes[row], written, MAX_ROW_OFFSET, is_run)?;
                Some((PAIR_8 + row as u8, row, 2, offset))
            })
        });
        if let Some((token, row, count, offset)) = found {
            if !self.was_in_rows(cell_hash) {
                self.put_reference(token, offset)?;
                let others = rows[..row].iter().chain(&rows[row + count..]);
                return self.put_rows_8(others);
            }
        }

        self.put([token::LITERAL])?;
        let start = self.pos;
        self.put_rows_8(rows.iter())?;
        self.cells.insert(cell_hash, start);
        for (row, hash) in triple_hashes.into_iter().enumerate() {
            self.triples.insert(hash, start + 8 * row);
        }
        for (row, hash) in pair_hashes.into_iter().enumerate() {
            self.pairs.insert(hash, start + 8 * row);
        }
        Some(())
    }

    /// Writes a cell that the edge of the block cuts: constant or literal.
    fn cut_cell<'r>(&mut self, rows: impl Iterator<Item = &'r [u8]> + Clone) -> Option<()> {
        let mut items = rows.clone().flatten();
        let value = *items.next()?;
        if items.all(|&item| item == value) {
            return self.put([token::CONSTANT, value]);
        }
        self.put([token::LITERAL])?;
        for row in rows {
            self.put_items(row)?;
        }
        Some(())
    }
}

/// Whether `bytes` are these words. They are compared one by one, since most comparisons fail at the first one, and
/// because wide loads of what was just stored in pieces are slow.
#[inline(always)]
fn equal<const N: usize>(bytes: &[u8], words: [u64; N]) -> bool {
    bytes
        .chunks_exact(8)
        .zip(words)
        .all(|(bytes, word)| u64::from_le_bytes(bytes.try_into().expect("eight bytes")) == word)
}

/// Rows `a` and `b`, one after the other.
#[inline(always)]
fn pair_of(rows: &[u32; 4], a: usize, b: usize) -> u64 {
    u64::from(rows[a]) | u64::from(rows[b]) << 32
}

#[inline(always)]
fn pair_hash_4(pair: u64) -> Hash {
    Hash(pair.wrapping_mul(FACTORS[0]))
}

#[inline(always)]
fn triple_hash_4(pair: u64, third: u32) -> Hash {
    Hash(pair.wrapping_mul(FACTORS[0]).wrapping_add(u64::from(third).wrapping_mul(FACTORS[1])))
}
