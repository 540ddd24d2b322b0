//! AVX-512 with VBMI and GFNI, whose bit matrix product transposes 8 by 8 bits in every 8 bytes at once.
//!
//! A tile is 64 groups of 8 items by up to 16 columns of bytes. The byte shuffle's tiles bring each column together, in
//! a buffer on the stack; then the 512 bytes of each column become 8 rows of 64 bytes in registers. Incomplete tiles
//! are loaded and stored with masks.
//!
//! Rows are often multiples of 4096 bytes apart: then the nearest cache has room for a line of a dozen of them at once,
//! and there are up to 128. So several tiles are shuffled together, one column of all of them after the other. (Rows
//! that are read have no need of that: every line is used but once.)
//!
//! The unsafe functions want a CPU with these instructions, and that the items and rows exist for which they are
//! called; of the tiles that they read, the parts that are used have been written.

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]
// `have_avx512` stands for a compiler that knows the intrinsics.
#![allow(clippy::incompatible_msrv)]

use super::lanes::LONG;
use super::{Kernel, avx2};
use crate::cpu;
use crate::filters::shuffle::avx512::{
    Amd, Intel, Maker, gather, load, load_until, scatter, store, store_until,
};
use crate::filters::shuffle::lanes::{self, by_width, overlapping};
use crate::pages::LINE;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

pub(super) const AMD: Kernel = Kernel {
    name: "avx512 for AMD",
    is_available: cpu::has_avx512_gfni,
    suits: cpu::is_amd,
    tile: 16,
    bitshuffle: bitshuffle::<Amd>,
    bitunshuffle: bitunshuffle::<Amd>,
};

pub(super) const INTEL: Kernel = Kernel {
    name: "avx512 for Intel",
    suits: || !cpu::is_amd(),
    bitshuffle: bitshuffle::<Intel>,
    bitunshuffle: bitunshuffle::<Intel>,
    ..AMD
};

/// Up to 16 columns of bytes of 64 groups of 8 items, 8 registers each.
type Tile = [[MaybeUninit<__m512i>; 8]; 16];

/// The columns of several tiles, one after another: 32 KiB, which is less than the nearest cache holds.
type Tiles = [[MaybeUninit<__m512i>; 8]; TILES];

/// The most columns on their way.
const TILES: usize = 64;

/// The most groups per tile.
const GROUPS: usize = 64;

/// Splits `ngroups` groups into batches of up to `most` tiles that are shuffled together: the first group of each batch
/// and its number of tiles. If less than a tile is left at the end, the last tile overlaps the one before. The rows of
/// the groups begin at the address `dest` and at multiples of `ngroups` bytes after it; where stores wait for cache
/// lines and all rows begin at the same place of a line, the first batch is one tile after which the others write whole
/// lines.
#[inline(always)]
fn batches<M: Maker>(dest: usize, ngroups: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    debug_assert!(ngroups >= GROUPS);
    let lead = if M::STORES_WAIT && ngroups % LINE == 0 { dest.wrapping_neg() % LINE } else { 0 };
    let mut next = 0;
    std::iter::from_fn(move || {
        let left = ngroups.checked_sub(next).filter(|&left| left > 0)?;
        let first = next.min(ngroups - GROUPS);
        if next == 0 && lead > 0 {
            next = lead;
            return Some((first, 1));
        }
        let ntiles = (left / GROUPS).clamp(1, most);
        next = first + ntiles * GROUPS;
        Some((first, ntiles))
    })
}

/// Transposes, in every 8 bytes, bit `k` of byte `7 - m` to bit `m` of byte `k`.
#[inline(always)]
unsafe fn transpose_reversed(x: __m512i) -> __m512i {
    // SAFETY: the caller checked the CPU.
    unsafe {
        // Row `k` of the identity selects bit `k` of each row of `x`; the product counts the latter from the end.
        let identity = _mm512_set1_epi64(i64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]));
        _mm512_gf2p8affine_epi64_epi8::<0>(identity, x)
    }
}

/// Transposes, in every 8 bytes, bit `k` of byte `m` to bit `m` of byte `k`.
#[inline(always)]
unsafe fn transpose_words(x: __m512i) -> __m512i {
    // SAFETY: the caller checked the CPU.
    unsafe {
        let reversed = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
        transpose_reversed(_mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(reversed)))
    }
}

/// From the 512 bytes of a column to its 8 rows of bits.
#[inline(always)]
unsafe fn to_rows<M: Maker>(mut column: [__m512i; 8]) -> [__m512i; 8] {
    // SAFETY: passed on to the caller.
    unsafe {
        for r in &mut column {
            *r = transpose_words(*r);
        }
        M::to_columns::<8, 8>(column)
    }
}

/// Undoes [`to_rows`].
#[inline(always)]
unsafe fn to_column<M: Maker>(mut rows: [__m512i; 8]) -> [__m512i; 8] {
    rows.reverse();
    // SAFETY: passed on to the caller.
    unsafe {
        let mut column = M::to_items::<8, 8>(rows);
        for r in &mut column {
            *r = transpose_reversed(*r);
        }
        column
    }
}

/// Writes rows of `ngroups` (in a `FULL` tile [`GROUPS`]) bytes each from `dest[out]` on, `stride` apart.
#[inline(always)]
unsafe fn store_rows<const FULL: bool>(
    rows: [__m512i; 8],
    dest: &mut [u8],
    out: usize,
    stride: usize,
    ngroups: usize,
) {
    // SAFETY: the caller says that the rows exist.
    unsafe {
        if FULL {
            for (k, row) in rows.into_iter().enumerate() {
                store(row, dest, out + k * stride);
            }
        } else {
            store_short_rows(rows, dest, out, stride, ngroups);
        }
    }
}

/// [`store_rows`] with masks. Not inlined, for there are many callers.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn store_short_rows(rows: [__m512i; 8], dest: &mut [u8], out: usize, stride: usize, ngroups: usize) {
    for (k, row) in rows.into_iter().enumerate() {
        let at = out + k * stride;
        // SAFETY: the caller says that the rows exist.
        unsafe { store_until(row, dest, at, at + ngroups) };
    }
}

/// Undoes [`store_rows`].
#[inline(always)]
unsafe fn load_rows<const FULL: bool>(src: &[u8], at: usize, stride: usize, ngroups: usize) -> [__m512i; 8] {
    // SAFETY: the caller says that the rows exist.
    unsafe {
        if FULL {
            let mut rows = [_mm512_setzero_si512(); 8];
            for (k, row) in rows.iter_mut().enumerate() {
                *row = load(src, at + k * stride);
            }
            rows
        } else {
            load_short_rows(src, at, stride, ngroups)
        }
    }
}

/// [`load_rows`] with masks. Not inlined, for there are many callers.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn load_short_rows(src: &[u8], at: usize, stride: usize, ngroups: usize) -> [__m512i; 8] {
    let mut rows = [_mm512_setzero_si512(); 8];
    for (k, row) in rows.iter_mut().enumerate() {
        let at = at + k * stride;
        // SAFETY: the caller says that the rows exist.
        *row = unsafe { load_until(src, at, at + ngroups) };
    }
    rows
}

/// The columns of the 64 items from `src[at]` on become part `s` of the columns of `tile`.
///
/// Not inlined, for the 8 parts of a tile would each get a copy.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn gather_part<M: Maker, const C: usize, const W: usize>(
    src: &[u8],
    at: usize,
    tile: &mut Tile,
    s: usize,
) {
    // SAFETY: passed on to the caller.
    let columns = unsafe { gather::<M, C, W>(src, at, src.len()) };
    for (parts, column) in tile.iter_mut().zip(columns).take(W) {
        parts[s].write(column);
    }
}

/// Undoes [`gather_part`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn scatter_part<M: Maker, const C: usize, const W: usize>(
    tile: &Tile,
    s: usize,
    dest: &mut [u8],
    out: usize,
) {
    let mut columns = [_mm512_setzero_si512(); C];
    for (column, parts) in columns.iter_mut().zip(tile).take(W) {
        // SAFETY: the caller has initialised this part of `W` columns.
        *column = unsafe { parts[s].assume_init() };
    }
    let end = dest.len();
    // SAFETY: passed on to the caller.
    unsafe { scatter::<M, C, W>(columns, dest, out, end) }
}

/// Whether to ask for lines before they are written: where rows, `stride` bytes apart, begin anywhere in them.
#[inline(always)]
fn asks_ahead<M: Maker>(stride: usize, len: usize) -> bool {
    M::STORES_WAIT && stride % LINE != 0 && lanes::pays_to_ask_ahead(8, stride, len)
}

/// Writes the rows of `ncolumns` columns of `ntiles` tiles from `dest[out]` on.
#[inline(always)]
unsafe fn store_tiles<M: Maker>(
    tiles: &Tiles,
    ncolumns: usize,
    ntiles: usize,
    dest: &mut [u8],
    out: usize,
    stride: usize,
) {
    // Of more columns, so few tiles are shuffled together that lines are gone before they are written.
    let asks_ahead = ncolumns <= 8 && asks_ahead::<M>(stride, dest.len());
    for (j, parts) in tiles.chunks_exact(TILES / ncolumns).enumerate().take(ncolumns) {
        for (t, parts) in parts.iter().enumerate().take(ntiles) {
            let at = out + t * GROUPS + 8 * j * stride;
            // SAFETY: the caller says that the rows exist, and has written the registers.
            unsafe {
                let column = parts.map(|part| part.assume_init());
                if asks_ahead {
                    lanes::ask_ahead::<__m256i>(8, dest, at, stride);
                }
                store_rows::<true>(to_rows::<M>(column), dest, at, stride, GROUPS);
            }
        }
    }
}

/// [`Kernel`]'s `bitshuffle` for `typesize == W`, 2 to 16, and blocks above [`LONG`].
#[inline(never)] // the stack of the others is small
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn shuffle_tiles<M: Maker, const C: usize, const W: usize>(src: &[u8], dest: &mut [u8]) {
    let stride = src.len() / (8 * W);
    let most = TILES / W;
    let mut tiles: Tiles = [[MaybeUninit::uninit(); 8]; TILES];
    for (first, ntiles) in batches::<M>(dest.as_ptr().addr(), stride, most) {
        // SAFETY: the tiles are inside the `stride` groups. All registers of `W` columns are written before they are
        // read.
        unsafe {
            for s in 0..8 * ntiles {
                let columns = gather::<M, C, W>(src, (8 * first + 64 * s) * W, src.len());
                for (j, column) in columns.into_iter().enumerate().take(W) {
                    tiles[j * most + s / 8][s % 8].write(column);
                }
            }
            store_tiles::<M>(&tiles, W, ntiles, dest, first, stride);
        }
    }
}

/// Bit-shuffles `ngroups` groups of items of `W` bytes (in a `FULL` tile [`GROUPS`], else less): from `src[at]` on to
/// rows from `dest[out]` on.
#[inline(always)]
unsafe fn shuffle_tile<M: Maker, const C: usize, const W: usize, const FULL: bool>(
    src: &[u8],
    at: usize,
    dest: &mut [u8],
    out: usize,
    stride: usize,
    ngroups: usize,
) {
    let mut tile: Tile = [[MaybeUninit::uninit(); 8]; 16];
    // SAFETY: the caller says that the items and rows exist. All registers of `W` columns are written before
    // they are read.
    unsafe {
        for s in 0..8 {
            if FULL || 8 * s < ngroups {
                gather_part::<M, C, W>(src, at + 64 * W * s, &mut tile, s);
            } else {
                for parts in &mut tile[..W] {
                    parts[s].write(_mm512_setzero_si512());
                }
            }
        }
        for (j, parts) in tile.iter().enumerate().take(W) {
            let mut column = [_mm512_setzero_si512(); 8];
            for (r, part) in column.iter_mut().zip(parts) {
                *r = part.assume_init();
            }
            store_rows::<FULL>(to_rows::<M>(column), dest, out + 8 * j * stride, stride, ngroups);
        }
    }
}

/// Undoes [`shuffle_tile`].
#[inline(always)]
unsafe fn unshuffle_tile<M: Maker, const C: usize, const W: usize, const FULL: bool>(
    src: &[u8],
    at: usize,
    stride: usize,
    dest: &mut [u8],
    out: usize,
    ngroups: usize,
) {
    let mut tile: Tile = [[MaybeUninit::uninit(); 8]; 16];
    // SAFETY: the caller says that the items and rows exist. All registers of `W` columns are written before
    // they are read. What is overwritten after the tile belongs to the next one.
    unsafe {
        for (j, parts) in tile.iter_mut().enumerate().take(W) {
            let rows = load_rows::<FULL>(src, at + 8 * j * stride, stride, ngroups);
            for (part, r) in parts.iter_mut().zip(to_column::<M>(rows)) {
                part.write(r);
            }
        }
        for s in 0..8 {
            if FULL || 8 * s < ngroups {
                scatter_part::<M, C, W>(&tile, s, dest, out + 64 * W * s);
            }
        }
    }
}

/// [`shuffle_tile`] for bytes, which are columns already.
#[inline(always)]
unsafe fn shuffle_byte_tile<M: Maker, const FULL: bool>(
    src: &[u8],
    at: usize,
    dest: &mut [u8],
    out: usize,
    stride: usize,
    ngroups: usize,
) {
    // SAFETY: the caller says that the items and rows exist.
    unsafe {
        let mut column = [_mm512_setzero_si512(); 8];
        for (s, r) in column.iter_mut().enumerate() {
            let part = at + 64 * s;
            *r = if FULL { load(src, part) } else { load_until(src, part, at + 8 * ngroups) };
        }
        store_rows::<FULL>(to_rows::<M>(column), dest, out, stride, ngroups);
    }
}

/// Undoes [`shuffle_byte_tile`].
#[inline(always)]
unsafe fn unshuffle_byte_tile<M: Maker, const FULL: bool>(
    src: &[u8],
    at: usize,
    stride: usize,
    dest: &mut [u8],
    out: usize,
    ngroups: usize,
) {
    // SAFETY: the caller says that the items and rows exist.
    unsafe {
        let column = to_column::<M>(load_rows::<FULL>(src, at, stride, ngroups));
        for (s, r) in column.into_iter().enumerate() {
            let part = out + 64 * s;
            if FULL {
                store(r, dest, part);
            } else {
                store_until(r, dest, part, out + 8 * ngroups);
            }
        }
    }
}

/// [`Kernel`]'s `bitshuffle` for `typesize > 16` and a tile at least.
#[inline(never)] // the stack of the others is small
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn shuffle_wide_tiles<M: Maker>(typesize: usize, src: &[u8], dest: &mut [u8]) {
    let stride = src.len() / (8 * typesize);
    let most = TILES / 16;
    let mut tiles: Tiles = [[MaybeUninit::uninit(); 8]; TILES];
    for (first, ntiles) in batches::<M>(dest.as_ptr().addr(), stride, most) {
        for j in overlapping(16, typesize) {
            // SAFETY: the tiles are inside the `stride` groups. All registers are written before they are read.
            unsafe {
                for s in 0..8 * ntiles {
                    let at = (8 * first + 64 * s) * typesize + j;
                    let low = lanes::gather::<__m256i, 16, 16>(src, at, typesize);
                    let high = lanes::gather::<__m256i, 16, 16>(src, at + 32 * typesize, typesize);
                    for (b, (low, high)) in low.into_iter().zip(high).enumerate() {
                        let whole = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                        tiles[b * most + s / 8][s % 8].write(whole);
                    }
                }
                store_tiles::<M>(&tiles, 16, ntiles, dest, first + 8 * j * stride, stride);
            }
        }
    }
}

/// Undoes [`shuffle_wide_tiles`] for [`GROUPS`] groups: rows from `src[at]` on to items from `dest[out]` on.
#[inline(always)]
unsafe fn unshuffle_wide_tile<M: Maker>(
    typesize: usize,
    src: &[u8],
    at: usize,
    stride: usize,
    dest: &mut [u8],
    out: usize,
) {
    let mut tile: Tile = [[MaybeUninit::uninit(); 8]; 16];
    for j in overlapping(16, typesize) {
        // SAFETY: the caller says that the items and rows exist. All of `tile` is written before it is read.
        unsafe {
            for (b, parts) in tile.iter_mut().enumerate() {
                let rows = load_rows::<true>(src, at + 8 * (j + b) * stride, stride, GROUPS);
                for (part, r) in parts.iter_mut().zip(to_column::<M>(rows)) {
                    part.write(r);
                }
            }
            for s in 0..8 {
                let mut low = [_mm256_setzero_si256(); 16];
                let mut high = [_mm256_setzero_si256(); 16];
                for ((low, high), parts) in low.iter_mut().zip(&mut high).zip(&tile) {
                    *low = _mm512_castsi512_si256(parts[s].assume_init());
                    *high = _mm512_extracti64x4_epi64::<1>(parts[s].assume_init());
                }
                let out = out + 64 * s * typesize + j;
                lanes::scatter::<__m256i, 16, 16>(low, dest, out, typesize);
                lanes::scatter::<__m256i, 16, 16>(high, dest, out + 32 * typesize, typesize);
            }
        }
    }
}

/// [`Kernel`]'s `bitshuffle` for `typesize == W`, 2 to 16, and at most 8 groups: a column is one register.
#[inline(always)]
unsafe fn shuffle_few<M: Maker, const C: usize, const W: usize>(src: &[u8], dest: &mut [u8]) {
    let ngroups = src.len() / (8 * W);
    let end = dest.len();
    // The 8 rows of a column are neighbours: row `k` of group `m` is byte `k * ngroups + m`.
    let mut index = [0; 64];
    for (k, row) in index.chunks_exact_mut(ngroups).enumerate().take(8) {
        for (x, m) in row.iter_mut().zip(0..) {
            *x = 8 * m + k as u8; // `k < 8`
        }
    }
    // SAFETY: rows are written up to `end` only; what is overwritten after them belongs to later ones.
    unsafe {
        let index = load(&index, 0);
        for (j, column) in gather::<M, C, W>(src, 0, src.len()).into_iter().enumerate().take(W) {
            let rows = _mm512_permutexvar_epi8(index, transpose_words(column));
            let at = 8 * j * ngroups;
            if at + 64 <= end {
                store(rows, dest, at);
            } else {
                store_until(rows, dest, at, end);
            }
        }
    }
}

/// [`Kernel`]'s `bitunshuffle` for `typesize == W`, 2 to 16, and at most 8 groups which are all that there are.
#[inline(always)]
unsafe fn unshuffle_few<M: Maker, const C: usize, const W: usize>(src: &[u8], dest: &mut [u8]) {
    let ngroups = dest.len() / (8 * W);
    let mut index = [0; 64];
    for (bytes, m) in index.chunks_exact_mut(8).zip(0u8..) {
        for (x, k) in bytes.iter_mut().rev().zip(0u8..) {
            *x = k * ngroups as u8 + m; // `ngroups <= 8`
        }
    }
    // SAFETY: masks keep loads and stores inside the slices.
    unsafe {
        let index = load(&index, 0);
        let mut columns = [_mm512_setzero_si512(); C];
        for (j, column) in columns.iter_mut().enumerate().take(W) {
            let rows = load_until(src, 8 * j * ngroups, src.len());
            *column = transpose_reversed(_mm512_permutexvar_epi8(index, rows));
        }
        scatter::<M, C, W>(columns, dest, 0, dest.len());
    }
}

/// [`Kernel`]'s `bitshuffle` for `typesize == W`, 2 to 16.
#[inline(always)]
unsafe fn shuffle_narrow<M: Maker, const C: usize, const W: usize>(src: &[u8], dest: &mut [u8]) {
    let stride = src.len() / (8 * W);
    // SAFETY: tiles are inside the `stride` groups; the rest is passed on to the caller.
    unsafe {
        if stride <= 8 {
            shuffle_few::<M, C, W>(src, dest);
        } else if stride < GROUPS && stride % 16 == 0 {
            // Without a rest, narrower vectors are faster than masks.
            avx2::bitshuffle(W, src, dest);
        } else if stride < GROUPS {
            shuffle_tile::<M, C, W, false>(src, 0, dest, 0, stride, stride);
        } else if src.len() > LONG {
            shuffle_tiles::<M, C, W>(src, dest);
        } else {
            for g in overlapping(GROUPS, stride) {
                shuffle_tile::<M, C, W, true>(src, 8 * g * W, dest, g, stride, GROUPS);
            }
        }
    }
}

/// [`Kernel`]'s `bitunshuffle` for `typesize == W`, 2 to 16.
#[inline(always)]
unsafe fn unshuffle_narrow<M: Maker, const C: usize, const W: usize>(
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
    let ngroups = dest.len() / (8 * W);
    // SAFETY: tiles are inside the `ngroups` groups; the rest is passed on to the caller.
    unsafe {
        if stride <= 8 && ngroups == stride {
            unshuffle_few::<M, C, W>(src, dest);
        } else if ngroups < GROUPS && ngroups % 16 == 0 {
            avx2::bitunshuffle(W, stride, src, dest);
        } else if ngroups < GROUPS {
            unshuffle_tile::<M, C, W, false>(src, 0, stride, dest, 0, ngroups);
        } else {
            for g in overlapping(GROUPS, ngroups) {
                unshuffle_tile::<M, C, W, true>(src, g, stride, dest, 8 * g * W, GROUPS);
            }
        }
    }
}

/// [`Kernel`]'s `bitshuffle` for `typesize` 1, and from 17 on.
#[inline(always)]
unsafe fn shuffle_other<M: Maker>(typesize: usize, src: &[u8], dest: &mut [u8]) {
    let stride = src.len() / (8 * typesize);
    // SAFETY: tiles are inside the `stride` groups; the rest is passed on to the caller.
    unsafe {
        if stride < GROUPS {
            if typesize == 1 {
                shuffle_byte_tile::<M, false>(src, 0, dest, 0, stride, stride);
            } else {
                avx2::bitshuffle(typesize, src, dest);
            }
        } else if typesize == 1 {
            let asks_ahead = asks_ahead::<M>(stride, dest.len());
            for (g, _) in batches::<M>(dest.as_ptr().addr(), stride, 1) {
                if asks_ahead {
                    lanes::ask_ahead::<__m256i>(8, dest, g, stride);
                }
                shuffle_byte_tile::<M, true>(src, 8 * g, dest, g, stride, GROUPS);
            }
        } else {
            shuffle_wide_tiles::<M>(typesize, src, dest);
        }
    }
}

/// [`Kernel`]'s `bitunshuffle` for `typesize` 1, and from 17 on.
#[inline(always)]
unsafe fn unshuffle_other<M: Maker>(typesize: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    let ngroups = dest.len() / (8 * typesize);
    // SAFETY: tiles are inside the `ngroups` groups; the rest is passed on to the caller.
    unsafe {
        if ngroups < GROUPS {
            if typesize == 1 {
                unshuffle_byte_tile::<M, false>(src, 0, stride, dest, 0, ngroups);
            } else {
                avx2::bitunshuffle(typesize, stride, src, dest);
            }
        } else if typesize == 1 {
            for g in overlapping(GROUPS, ngroups) {
                unshuffle_byte_tile::<M, true>(src, g, stride, dest, 8 * g, GROUPS);
            }
        } else {
            for g in overlapping(GROUPS, ngroups) {
                unshuffle_wide_tile::<M>(typesize, src, g, stride, dest, 8 * g * typesize);
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn bitshuffle<M: Maker>(typesize: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe { by_width!(typesize, shuffle_narrow[M,](src, dest), shuffle_other::<M>(typesize, src, dest)) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn bitunshuffle<M: Maker>(typesize: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    // SAFETY: the caller checked the CPU and the arguments.
    unsafe {
        by_width!(
            typesize,
            unshuffle_narrow[M,](stride, src, dest),
            unshuffle_other::<M>(typesize, stride, src, dest)
        );
    }
}
