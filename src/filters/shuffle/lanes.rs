//! The byte transposition for all vector widths: one algorithm over [`Lanes`], which each instruction set implements.
//!
//! A tile is 16 items per lane by `C` = 2, 4, 8 or 16 columns of bytes, in `C` registers. To shuffle, each 16-byte
//! lane is loaded with `16 / C` items (of up to `C` bytes, so that it may reach into the next item) and permuted
//! so that equal columns are neighbours; `log2 C` rounds of zipping registers then collect each column in a register.
//! To unshuffle, the same rounds with other granules collect the items.
//!
//! What is left over at the end is covered by one more tile that overlaps the one before; less than 16 items in all go
//! to [`super::generic`].
//!
//! The unsafe functions require a CPU with the instruction set of `V`; what else they require is said with each.

use super::generic;
use crate::pages::LINE;
use std::ops::Range;

/// A vector register as lanes of 16 bytes.
///
/// # Safety
///
/// All functions: the CPU has the instruction set of the implementation. Bytes named in the comments exist.
pub(in crate::filters) trait Lanes: Copy {
    /// Lanes per register.
    const LANES: usize;
    /// Whether stores that cross cache lines wait for both, so that it pays to ask for lines before they are written.
    fn stores_wait() -> bool {
        false
    }
    /// Asks for a line that is going to be written.
    unsafe fn ask(_line: *const u8) {}
    /// The register of one lane, for what is left over.
    type Narrow: Lanes<Narrow = Self::Narrow>;
    /// All zeros.
    unsafe fn zero() -> Self;
    /// Lane `l` is the 16 bytes from `src[at + l * lane_stride]` on.
    unsafe fn load_lanes(src: &[u8], at: usize, lane_stride: usize) -> Self;
    /// The `16 * LANES` bytes from `src[at]` on.
    unsafe fn load(src: &[u8], at: usize) -> Self;
    /// Writes `16 * LANES` bytes from `dest[at]` on.
    unsafe fn store(self, dest: &mut [u8], at: usize);
    /// Writes the 16 bytes of one lane from `dest[at]` on.
    unsafe fn store_lane(self, lane: usize, dest: &mut [u8], at: usize);
    /// In each lane: byte `p` becomes byte `index[p]`, or 0 if that is 0x80.
    unsafe fn permute(self, index: [u8; 16]) -> Self;
    /// In each lane: granules of `G` (1, 2, 4 or 8) bytes of the low halves of `a` and `b`, alternating.
    unsafe fn zip_low<const G: usize>(a: Self, b: Self) -> Self;
    /// The same for the high halves.
    unsafe fn zip_high<const G: usize>(a: Self, b: Self) -> Self;
    /// Swaps, in all bytes, the bits of `a` whose index has bit `S` (1, 2 or 4) set with the bits of `b` that are `S`
    /// places lower.
    unsafe fn swap_bits<const S: i32>(a: Self, b: Self) -> (Self, Self);
}

/// One round: in groups of `n` registers, zips neighbours; the low halves go to the first half of the group.
///
/// # Safety
///
/// As for [`Lanes`].
#[inline(always)]
unsafe fn zip_round<V: Lanes, const C: usize, const G: usize>(r: [V; C], n: usize) -> [V; C] {
    let mut out = r;
    for group in (0..C).step_by(n) {
        for k in 0..n / 2 {
            let (a, b) = (r[group + 2 * k], r[group + 2 * k + 1]);
            // SAFETY: passed on to the caller.
            unsafe {
                out[group + k] = V::zip_low::<G>(a, b);
                out[group + n / 2 + k] = V::zip_high::<G>(a, b);
            }
        }
    }
    out
}

/// The columns from `src[at]` on of `16 * LANES` items that are `width` bytes apart: register `b` holds column `b`
/// (only those below `W` mean anything). Reads 16 bytes from the first item of every lane load on.
///
/// # Safety
///
/// As for [`Lanes`]; `at + (16 * LANES - 16 / C) * width + 16 <= src.len()`; `width == W` unless `C` is 16.
#[inline(always)]
pub(in crate::filters) unsafe fn gather<V: Lanes, const C: usize, const W: usize>(
    src: &[u8],
    at: usize,
    width: usize,
) -> [V; C] {
    let per_lane = 16 / C;
    debug_assert!(at + (16 * V::LANES - per_lane) * width + 16 <= src.len());
    let mut index = [0x80; 16];
    for (p, x) in index.iter_mut().enumerate() {
        let (column, item) = (p / per_lane, p % per_lane);
        if column < W {
            *x = (item * W + column) as u8; // at most 15
        }
    }
    // SAFETY: the last lane of the last register starts at item `16 * LANES - 16 / C`; the rest is passed on.
    unsafe {
        let mut r = [V::zero(); C];
        for (k, r) in r.iter_mut().enumerate() {
            *r = V::load_lanes(src, at + k * per_lane * width, 16 * width);
            if C < 16 {
                *r = r.permute(index);
            }
        }
        match C {
            2 => zip_round::<V, C, 8>(r, 2),
            4 => zip_round::<V, C, 8>(zip_round::<V, C, 4>(r, 4), 2),
            8 => zip_round::<V, C, 8>(zip_round::<V, C, 4>(zip_round::<V, C, 2>(r, 8), 4), 2),
            _ => {
                let r = zip_round::<V, C, 2>(zip_round::<V, C, 1>(r, 16), 8);
                zip_round::<V, C, 8>(zip_round::<V, C, 4>(r, 4), 2)
            }
        }
    }
}

/// Undoes [`gather`]: `columns` (those from `W` on are ignored) go to items that are `width` bytes apart. Where
/// `W` is less than `C`, up to `16 - 16 / C * W` bytes after the items of each lane are overwritten, in ascending order.
///
/// # Safety
///
/// As for [`gather`], for `dest` in place of `src`.
#[inline(always)]
pub(in crate::filters) unsafe fn scatter<V: Lanes, const C: usize, const W: usize>(
    columns: [V; C],
    dest: &mut [u8],
    at: usize,
    width: usize,
) {
    let per_lane = 16 / C;
    debug_assert!(at + (16 * V::LANES - per_lane) * width + 16 <= dest.len());
    let mut index = [0x80; 16];
    for item in 0..per_lane {
        for column in 0..W {
            index[item * W + column] = (item * C + column) as u8; // at most 15
        }
    }
    // SAFETY: the last lane of the last register starts at item `16 * LANES - 16 / C`; the rest is passed on.
    unsafe {
        let mut r = match C {
            2 => zip_round::<V, C, 1>(columns, 2),
            4 => zip_round::<V, C, 2>(zip_round::<V, C, 1>(columns, 4), 2),
            8 => zip_round::<V, C, 4>(zip_round::<V, C, 2>(zip_round::<V, C, 1>(columns, 8), 4), 2),
            _ => {
                let r = zip_round::<V, C, 2>(zip_round::<V, C, 1>(columns, 16), 8);
                zip_round::<V, C, 8>(zip_round::<V, C, 4>(r, 4), 2)
            }
        };
        if C < 16 && W < C {
            for r in &mut r {
                *r = r.permute(index);
            }
        }
        for lane in 0..V::LANES {
            for (k, r) in r.iter().enumerate() {
                r.store_lane(lane, dest, at + (16 * lane + k * per_lane) * width);
            }
        }
    }
}

/// Shuffles one tile: the columns from `src[at]` on go to `dest[out]`, `dest[out + stride]` and so on.
///
/// # Safety
///
/// As for [`gather`]; `out + (W - 1) * stride + 16 * LANES <= dest.len()`.
#[inline(always)]
pub(super) unsafe fn shuffle_tile<V: Lanes, const C: usize, const W: usize>(
    width: usize,
    src: &[u8],
    at: usize,
    dest: &mut [u8],
    out: usize,
    stride: usize,
) {
    debug_assert!(out + (W - 1) * stride + 16 * V::LANES <= dest.len());
    // SAFETY: passed on to the caller.
    unsafe {
        let rows = gather::<V, C, W>(src, at, width);
        for (j, row) in rows.into_iter().enumerate().take(W) {
            row.store(dest, out + j * stride);
        }
    }
}

/// Shuffles two tiles, one after the other, as [`shuffle_tile`]: whole cache lines of each row.
///
/// # Safety
///
/// As for [`shuffle_tile`], for both tiles.
#[inline(always)]
unsafe fn shuffle_two_tiles<V: Lanes, const C: usize, const W: usize>(
    width: usize,
    src: &[u8],
    at: usize,
    dest: &mut [u8],
    out: usize,
    stride: usize,
) {
    let tile = 16 * V::LANES;
    // SAFETY: passed on to the caller.
    unsafe {
        let first = gather::<V, C, W>(src, at, width);
        let second = gather::<V, C, W>(src, at + tile * width, width);
        for (j, (first, second)) in first.into_iter().zip(second).enumerate().take(W) {
            first.store(dest, out + j * stride);
            second.store(dest, out + j * stride + tile);
        }
    }
}

/// Where the rows are that are unshuffled.
pub(super) trait Rows: Copy {
    /// The bytes of row `j` from its byte `at` on.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; there is a row `j`, and `16 * LANES` bytes of it from `at` on.
    unsafe fn load<V: Lanes>(self, j: usize, at: usize) -> V;
    /// Where the first two rows are.
    fn addresses(self) -> [usize; 2];
    /// As [`Kernel`](super::Kernel)'s `unshuffle`, for the items `items` of `dest`.
    fn unshuffle_few(self, width: usize, dest: &mut [u8], items: Range<usize>);
}

/// Rows that are `stride` bytes apart.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    src: &'a [u8],
    stride: usize,
}

impl Rows for Strided<'_> {
    #[inline(always)]
    unsafe fn load<V: Lanes>(self, j: usize, at: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.src, at + j * self.stride) }
    }

    fn addresses(self) -> [usize; 2] {
        let first = self.src.as_ptr().addr();
        [first, first + self.stride]
    }

    fn unshuffle_few(self, width: usize, dest: &mut [u8], items: Range<usize>) {
        generic::unshuffle(width, self.stride, self.src, dest, items);
    }
}

/// Rows anywhere.
impl Rows for &[&[u8]] {
    #[inline(always)]
    unsafe fn load<V: Lanes>(self, j: usize, at: usize) -> V {
        debug_assert!(j < self.len());
        // SAFETY: the caller names a row that exists, and bytes that it has.
        unsafe { V::load(self.get_unchecked(j), at) }
    }

    fn addresses(self) -> [usize; 2] {
        [self[0].as_ptr().addr(), self[1].as_ptr().addr()]
    }

    fn unshuffle_few(self, _: usize, dest: &mut [u8], items: Range<usize>) {
        generic::unshuffle_planes(self, dest, items);
    }
}

/// Unshuffles one tile: the rows from byte `at` of each on go to the columns from `dest[out]` on.
///
/// # Safety
///
/// As for [`scatter`]; there are `W` rows with `16 * LANES` bytes from `at` on.
#[inline(always)]
pub(super) unsafe fn unshuffle_planes_tile<V: Lanes, R: Rows, const C: usize, const W: usize>(
    width: usize,
    rows: R,
    at: usize,
    dest: &mut [u8],
    out: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut columns = [V::zero(); C];
        for (j, column) in columns.iter_mut().enumerate().take(W) {
            *column = rows.load(j, at);
        }
        scatter::<V, C, W>(columns, dest, out, width);
    }
}

/// Unshuffles one tile: rows from `src[at]`, `src[at + stride]` and so on go to the columns from `dest[out]` on.
///
/// # Safety
///
/// As for [`scatter`]; `at + (W - 1) * stride + 16 * LANES <= src.len()`.
#[inline(always)]
pub(super) unsafe fn unshuffle_tile<V: Lanes, const C: usize, const W: usize>(
    width: usize,
    src: &[u8],
    at: usize,
    stride: usize,
    dest: &mut [u8],
    out: usize,
) {
    debug_assert!(at + (W - 1) * stride + 16 * V::LANES <= src.len());
    // SAFETY: passed on to the caller.
    unsafe { unshuffle_planes_tile::<V, _, C, W>(width, Strided { src, stride }, at, dest, out) }
}

/// Unshuffles two tiles, one after the other, as [`unshuffle_planes_tile`]: whole cache lines of each row.
///
/// # Safety
///
/// As for [`unshuffle_planes_tile`], for both tiles.
#[inline(always)]
unsafe fn unshuffle_two_tiles<V: Lanes, R: Rows, const C: usize, const W: usize>(
    width: usize,
    rows: R,
    at: usize,
    dest: &mut [u8],
    out: usize,
) {
    let tile = 16 * V::LANES;
    // SAFETY: passed on to the caller.
    unsafe {
        let (mut first, mut second) = ([V::zero(); C], [V::zero(); C]);
        for (j, (first, second)) in first.iter_mut().zip(&mut second).enumerate().take(W) {
            *first = rows.load(j, at);
            *second = rows.load(j, at + tile);
        }
        scatter::<V, C, W>(first, dest, out, width);
        scatter::<V, C, W>(second, dest, out + tile * width, width);
    }
}

/// Whether rows that are `stride` bytes apart compete for the same lines of the first-level cache, so that it pays to
/// read or write them in whole lines.
pub(super) fn rows_compete(stride: usize) -> bool {
    stride % 512 == 0
}

/// Blocks of fewer bytes stay in the first-level cache, source and destination.
pub(super) const FAR: usize = 16 << 10;
/// Lines are asked for this many bytes before they are written.
const AHEAD: usize = 192;

/// Whether it pays to ask for lines before they are written where stores wait for them: `nrows` rows, `stride` bytes
/// apart, in blocks of `len` bytes. Not where the lines would push each other out of the cache.
pub(in crate::filters) fn asks_ahead(nrows: usize, stride: usize, len: usize) -> bool {
    len >= FAR && (nrows <= FEW_ROWS || crowd(nrows, stride) <= FEW_ROWS)
}

/// Asks for the lines of `nrows` rows, `stride` bytes apart, that are written some time after those at `dest[at]`.
///
/// # Safety
///
/// As for [`Lanes`].
#[inline(always)]
pub(in crate::filters) unsafe fn ask_ahead<V: Lanes>(nrows: usize, dest: &[u8], at: usize, stride: usize) {
    for row in 0..nrows {
        // SAFETY: passed on to the caller.
        unsafe { V::ask(dest.as_ptr().wrapping_add(at + row * stride + AHEAD)) };
    }
}

/// Room for 16 items of up to 15 bytes and for what a lane reaches past them.
const PADDED: usize = 16 * 16 + 16;

/// [`Kernel`](super::Kernel)'s `shuffle` for `width == W`, 2 to 16, of which `C` is the next power of two.
///
/// # Safety
///
/// As for [`shuffle`].
#[inline(always)]
pub(super) unsafe fn shuffle_narrow<V: Lanes, const C: usize, const W: usize>(
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
    let nitems = src.len() / W;
    if nitems < 16 {
        return generic::shuffle(W, stride, src, dest, 0..nitems);
    }
    // SAFETY: the loop conditions keep tiles inside `nitems` and lanes inside `src`. Where lanes reach past their
    // items, the last tiles read from a buffer with room for that.
    unsafe {
        let mut i = 0;
        let asks_ahead = V::stores_wait() && asks_ahead(W, stride, src.len());
        if V::LANES == 2 && W >= 8 && rows_compete(stride) {
            // Two tiles at a time: whole cache lines of each row.
            while i + 64 <= nitems && (i + 64 - 16 / C) * W + 16 <= src.len() {
                if asks_ahead {
                    ask_ahead::<V>(W, dest, i, stride);
                }
                shuffle_two_tiles::<V, C, W>(W, src, i * W, dest, i, stride);
                i += if i == 0 { 64 - dest.as_ptr().addr() % 64 } else { 64 };
            }
        }
        while i + 16 * V::LANES <= nitems && (i + 16 * V::LANES - 16 / C) * W + 16 <= src.len() {
            if asks_ahead {
                ask_ahead::<V>(W, dest, i, stride);
            }
            shuffle_tile::<V, C, W>(W, src, i * W, dest, i, stride);
            i += 16 * V::LANES;
        }
        while V::LANES > 1 && i + 16 <= nitems && (i + 16 - 16 / C) * W + 16 <= src.len() {
            shuffle_tile::<V::Narrow, C, W>(W, src, i * W, dest, i, stride);
            i += 16;
        }
        while i < nitems {
            i = i.min(nitems - 16);
            if W == C {
                shuffle_tile::<V::Narrow, C, W>(W, src, i * W, dest, i, stride);
                return;
            }
            let mut items = [0; PADDED];
            items[..16 * W].copy_from_slice(&src[i * W..(i + 16) * W]);
            shuffle_tile::<V::Narrow, C, W>(W, &items, 0, dest, i, stride);
            i += 16;
        }
    }
}

/// [`Kernel`](super::Kernel)'s `unshuffle` for `width == W`, 2 to 16, of which `C` is the next power of two.
///
/// # Safety
///
/// As for [`unshuffle`].
#[inline(always)]
pub(super) unsafe fn unshuffle_narrow<V: Lanes, const C: usize, const W: usize>(
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
    // SAFETY: passed on to the caller.
    unsafe { unshuffle_planes_narrow::<V, _, C, W>(Strided { src, stride }, dest) }
}

/// As [`unshuffle_narrow`], with rows that may be anywhere.
///
/// # Safety
///
/// The CPU has the instruction set of `V`; there are `W` rows, each with a byte for every item of `dest`.
#[inline(always)]
unsafe fn unshuffle_planes_narrow<V: Lanes, R: Rows, const C: usize, const W: usize>(
    rows: R,
    dest: &mut [u8],
) {
    let nitems = dest.len() / W;
    if nitems < 16 {
        return rows.unshuffle_few(W, dest, 0..nitems);
    }
    // SAFETY: the loop conditions keep tiles inside `nitems` and lanes inside `dest`. Where lanes reach past their
    // items, the last tiles go to a buffer with room for that. What lanes overwrite past their tile belongs to later
    // tiles.
    unsafe {
        let mut i = 0;
        let [row0, row1] = rows.addresses();
        if V::LANES == 2 && W >= 8 && rows_compete(row0.abs_diff(row1)) {
            while i + 64 <= nitems && (i + 64 - 16 / C) * W + 16 <= dest.len() {
                unshuffle_two_tiles::<V, R, C, W>(W, rows, i, dest, i * W);
                i += if i == 0 { 64 - row0 % 64 } else { 64 };
            }
        }
        while i + 16 * V::LANES <= nitems && (i + 16 * V::LANES - 16 / C) * W + 16 <= dest.len() {
            unshuffle_planes_tile::<V, R, C, W>(W, rows, i, dest, i * W);
            i += 16 * V::LANES;
        }
        while V::LANES > 1 && i + 16 <= nitems && (i + 16 - 16 / C) * W + 16 <= dest.len() {
            unshuffle_planes_tile::<V::Narrow, R, C, W>(W, rows, i, dest, i * W);
            i += 16;
        }
        while i < nitems {
            i = i.min(nitems - 16);
            if W == C {
                unshuffle_planes_tile::<V::Narrow, R, C, W>(W, rows, i, dest, i * W);
                return;
            }
            let mut items = [0; PADDED];
            unshuffle_planes_tile::<V::Narrow, R, C, W>(W, rows, i, &mut items, 0);
            dest[i * W..(i + 16) * W].copy_from_slice(&items[..16 * W]);
            i += 16;
        }
    }
}

/// The starts of tiles of `size` that cover `0..len`, the last one overlapping the one before.
#[inline(always)]
pub(in crate::filters) fn overlapping(size: usize, len: usize) -> impl Iterator<Item = usize> {
    debug_assert!(len >= size);
    (0..len - size).step_by(size).chain([len - size])
}

/// Blocks of fewer bytes stay in the first-level cache, however their rows lie.
const LARGE_BLOCK: usize = 32 << 10;
/// Bytes of a panel: together with the lines that its rows take, they stay in the cache.
const PANEL: usize = 32 << 10;
/// If more rows than this compete for the same lines, they push each other out of the first-level cache: it has up to
/// this many ways.
const WAYS: usize = 12;
/// Rows of a tile. If more than this compete, it pays to touch whole lines of them.
const FEW_ROWS: usize = 8;

/// How many of `nrows` rows that are `stride` bytes apart take the same lines of the first-level cache as the first
/// one, or lines beside those.
fn crowd(nrows: usize, stride: usize) -> usize {
    /// Lines of addresses that are equal modulo this are the same.
    const WAY: usize = 4096;
    (0..nrows).filter(|row| (row * stride + LINE - 1) % WAY < 2 * LINE - 1).count()
}

/// How blocks of wide items are transposed whose rows crowd: where a small multiple of the stride is about a multiple
/// of 4096, as in blocks of 2^n bytes with items of a multiple of 16 bytes.
///
/// Elsewhere, all columns of the items of a tile are transposed before those of the next ones. Here, that is done with
/// panels of many tiles, so that few rows are touched at a time: 1.2 to 4 times as fast, and elsewhere down to 0.7
/// times.
struct Crowded {
    /// Items per panel, this many tiles.
    panel: usize,
    /// Whether to touch rows in whole cache lines.
    lines: bool,
}

impl Crowded {
    /// `None` if rows do not crowd, or there are fewer items than a tile has.
    fn new(width: usize, stride: usize, nitems: usize, tile: usize) -> Option<Crowded> {
        if nitems < tile || nitems * width < LARGE_BLOCK || crowd(width, stride) <= WAYS {
            return None;
        }
        let panel = (PANEL / width / tile).max(1) * tile;
        Some(Crowded { panel, lines: crowd(16, stride) > FEW_ROWS })
    }

    /// The panels of `nitems` items, each of at least `tile`.
    fn panels(&self, nitems: usize, tile: usize) -> impl Iterator<Item = Range<usize>> {
        debug_assert!(nitems >= tile);
        let len = self.panel;
        (0..nitems).step_by(len).map(move |start| {
            let end = nitems.min(start + len);
            start.min(end - tile)..end
        })
    }
}

/// Shuffles items of 17 bytes and more, `16 * LANES * TILES` or more of them, whose rows crowd. `TILES` is 1, or 2 to
/// write whole cache lines.
///
/// # Safety
///
/// As for [`shuffle`]; there are as many items as said.
#[inline(always)]
unsafe fn shuffle_crowded<V: Lanes, const TILES: usize>(
    width: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
    crowded: &Crowded,
) {
    let (nitems, tile) = (src.len() / width, 16 * V::LANES * TILES);
    for panel in crowded.panels(nitems, tile) {
        for j in overlapping(16, width) {
            for i in overlapping(tile, panel.len()).map(|i| panel.start + i) {
                let (at, out) = (i * width + j, j * stride + i);
                match TILES {
                    // SAFETY: tiles are inside the `nitems` items and the `width >= 17` columns.
                    1 => unsafe { shuffle_tile::<V, 16, 16>(width, src, at, dest, out, stride) },
                    // SAFETY: the same.
                    _ => unsafe { shuffle_two_tiles::<V, 16, 16>(width, src, at, dest, out, stride) },
                }
            }
        }
    }
}

/// Undoes [`shuffle_crowded`].
///
/// # Safety
///
/// As for [`unshuffle`]; there are as many items as said there.
#[inline(always)]
unsafe fn unshuffle_crowded<V: Lanes, const TILES: usize>(
    width: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
    crowded: &Crowded,
) {
    let (nitems, tile) = (dest.len() / width, 16 * V::LANES * TILES);
    for panel in crowded.panels(nitems, tile) {
        for j in overlapping(16, width) {
            let rows = Strided { src: &src[j * stride..], stride };
            for i in overlapping(tile, panel.len()).map(|i| panel.start + i) {
                let (at, out) = (j * stride + i, i * width + j);
                match TILES {
                    // SAFETY: tiles are inside the `nitems` items and the `width >= 17` columns.
                    1 => unsafe { unshuffle_tile::<V, 16, 16>(width, src, at, stride, dest, out) },
                    // SAFETY: the same.
                    _ => unsafe { unshuffle_two_tiles::<V, _, 16, 16>(width, rows, i, dest, out) },
                }
            }
        }
    }
}

/// Shuffles items of 17 bytes and more, `16 * LANES` or more of them: all columns of a tile, then those of the next
/// one.
///
/// # Safety
///
/// As for [`shuffle`]; there are as many items as said.
#[inline(always)]
unsafe fn shuffle_wide_tiles<V: Lanes>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    let asks_ahead = V::stores_wait() && asks_ahead(width, stride, src.len());
    for i in overlapping(16 * V::LANES, src.len() / width) {
        for j in overlapping(16, width) {
            // SAFETY: tiles are inside the items and the `width >= 17` columns.
            unsafe {
                if asks_ahead {
                    ask_ahead::<V>(16, dest, j * stride + i, stride);
                }
                shuffle_tile::<V, 16, 16>(width, src, i * width + j, dest, j * stride + i, stride);
            }
        }
    }
}

/// Undoes [`shuffle_wide_tiles`].
///
/// # Safety
///
/// As for [`unshuffle`]; there are as many items as said there.
#[inline(always)]
unsafe fn unshuffle_wide_tiles<V: Lanes>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    for i in overlapping(16 * V::LANES, dest.len() / width) {
        for j in overlapping(16, width) {
            // SAFETY: tiles are inside the items and the `width >= 17` columns.
            unsafe { unshuffle_tile::<V, 16, 16>(width, src, j * stride + i, stride, dest, i * width + j) };
        }
    }
}

/// [`Kernel`](super::Kernel)'s `shuffle` for items of 17 bytes and more.
///
/// # Safety
///
/// As for [`shuffle`].
#[inline(always)]
pub(super) unsafe fn shuffle_wide<V: Lanes>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    let (nitems, tile) = (src.len() / width, 16 * V::LANES);
    // SAFETY: tiles are inside the `nitems` items and the `width >= 17` columns; where rows crowd, the items suffice.
    unsafe {
        if let Some(crowded) = Crowded::new(width, stride, nitems, 2 * tile) {
            if V::LANES == 2 && crowded.lines {
                shuffle_crowded::<V, 2>(width, stride, src, dest, &crowded);
            } else {
                shuffle_crowded::<V, 1>(width, stride, src, dest, &crowded);
            }
        } else if nitems >= tile {
            shuffle_wide_tiles::<V>(width, stride, src, dest);
        } else if nitems >= 16 {
            shuffle_wide_tiles::<V::Narrow>(width, stride, src, dest);
        } else {
            generic::shuffle(width, stride, src, dest, 0..nitems);
        }
    }
}

/// [`Kernel`](super::Kernel)'s `unshuffle` for items of 17 bytes and more.
///
/// # Safety
///
/// As for [`unshuffle`].
#[inline(always)]
pub(super) unsafe fn unshuffle_wide<V: Lanes>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    let (nitems, tile) = (dest.len() / width, 16 * V::LANES);
    // SAFETY: tiles are inside the `nitems` items and the `width >= 17` columns; where rows crowd, the items suffice.
    unsafe {
        if let Some(crowded) = Crowded::new(width, stride, nitems, 2 * tile) {
            if V::LANES == 2 && crowded.lines {
                unshuffle_crowded::<V, 2>(width, stride, src, dest, &crowded);
            } else {
                unshuffle_crowded::<V, 1>(width, stride, src, dest, &crowded);
            }
        } else if nitems >= tile {
            unshuffle_wide_tiles::<V>(width, stride, src, dest);
        } else if nitems >= 16 {
            unshuffle_wide_tiles::<V::Narrow>(width, stride, src, dest);
        } else {
            generic::unshuffle(width, stride, src, dest, 0..nitems);
        }
    }
}

/// Type of [`Kernel`](super::Kernel)'s `shuffle` and `unshuffle`.
type Transposition = unsafe fn(usize, usize, &[u8], &mut [u8]);

/// Calls `$narrow::<$v.., C, W>` for the width, or `$wide` from 17 on.
macro_rules! by_width {
    ($width:expr, $narrow:ident[$($v:ty,)*] $args:tt, $wide:expr) => {
        match $width {
            2 => $narrow::<$($v,)* 2, 2> $args,
            3 => $narrow::<$($v,)* 4, 3> $args,
            4 => $narrow::<$($v,)* 4, 4> $args,
            5 => $narrow::<$($v,)* 8, 5> $args,
            6 => $narrow::<$($v,)* 8, 6> $args,
            7 => $narrow::<$($v,)* 8, 7> $args,
            8 => $narrow::<$($v,)* 8, 8> $args,
            9 => $narrow::<$($v,)* 16, 9> $args,
            10 => $narrow::<$($v,)* 16, 10> $args,
            11 => $narrow::<$($v,)* 16, 11> $args,
            12 => $narrow::<$($v,)* 16, 12> $args,
            13 => $narrow::<$($v,)* 16, 13> $args,
            14 => $narrow::<$($v,)* 16, 14> $args,
            15 => $narrow::<$($v,)* 16, 15> $args,
            16 => $narrow::<$($v,)* 16, 16> $args,
            _ => $wide,
        }
    };
}
#[cfg(all(target_arch = "x86_64", have_avx512))] // elsewhere only this module dispatches by width
pub(in crate::filters) use by_width;

/// [`Kernel`](super::Kernel)'s `shuffle`. `wide` does it for items of 17 bytes and more: a function of its own, whose
/// code has no part in how the loops for narrow ones are laid out.
///
/// # Safety
///
/// The CPU has the instruction set of `V` and of `wide`; arguments as for the field.
#[inline(always)]
pub(super) unsafe fn shuffle<V: Lanes>(
    width: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
    wide: Transposition,
) {
    // SAFETY: passed on to the caller.
    unsafe { by_width!(width, shuffle_narrow[V,](stride, src, dest), wide(width, stride, src, dest)) }
}

/// [`Kernel`](super::Kernel)'s `unshuffle`. `wide` does it for items of 17 bytes and more: a function of its own, whose
/// code has no part in how the loops for narrow ones are laid out.
///
/// # Safety
///
/// The CPU has the instruction set of `V` and of `wide`; arguments as for the field.
#[inline(always)]
pub(super) unsafe fn unshuffle<V: Lanes>(
    width: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
    wide: Transposition,
) {
    // SAFETY: passed on to the caller.
    unsafe { by_width!(width, unshuffle_narrow[V,](stride, src, dest), wide(width, stride, src, dest)) }
}

/// [`Kernel`](super::Kernel)'s `unshuffle_planes`.
///
/// # Safety
///
/// The CPU has the instruction set of `V`; arguments as for the field.
#[inline(always)]
pub(super) unsafe fn unshuffle_planes<V: Lanes>(rows: &[&[u8]], dest: &mut [u8]) {
    let nitems = dest.len() / rows.len();
    // SAFETY: passed on to the caller.
    unsafe {
        by_width!(
            rows.len(),
            unshuffle_planes_narrow[V, &[&[u8]],](rows, dest),
            generic::unshuffle_planes(rows, dest, 0..nitems)
        );
    }
}

/// Defines the functions of a variant with registers of type `$v`, and its `KERNEL`. `$is_available` tells whether the
/// CPU has the instruction set, which the compiler knows as `$feature`.
macro_rules! kernel {
    ($v:ty, $feature:literal, $is_available:expr) => {
        pub(in crate::filters) const KERNEL: super::Kernel = super::Kernel {
            name: $feature,
            is_available: $is_available,
            suits: || true,
            shuffle,
            unshuffle,
            unshuffle_planes,
        };

        #[target_feature(enable = $feature)]
        unsafe fn shuffle(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
            // SAFETY: the caller checked the CPU and the arguments.
            unsafe { lanes::shuffle::<$v>(width, stride, src, dest, shuffle_wide) }
        }

        #[target_feature(enable = $feature)]
        unsafe fn unshuffle(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
            // SAFETY: the caller checked the CPU and the arguments.
            unsafe { lanes::unshuffle::<$v>(width, stride, src, dest, unshuffle_wide) }
        }

        #[inline(never)]
        #[target_feature(enable = $feature)]
        unsafe fn shuffle_wide(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
            // SAFETY: the caller checked the CPU and the arguments.
            unsafe { lanes::shuffle_wide::<$v>(width, stride, src, dest) }
        }

        #[inline(never)]
        #[target_feature(enable = $feature)]
        unsafe fn unshuffle_wide(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
            // SAFETY: the caller checked the CPU and the arguments.
            unsafe { lanes::unshuffle_wide::<$v>(width, stride, src, dest) }
        }

        #[target_feature(enable = $feature)]
        unsafe fn unshuffle_planes(rows: &[&[u8]], dest: &mut [u8]) {
            // SAFETY: the caller checked the CPU and the arguments.
            unsafe { lanes::unshuffle_planes::<$v>(rows, dest) }
        }
    };
}
pub(super) use kernel;
