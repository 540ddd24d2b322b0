//! The bit transposition for all vector widths, on top of the byte shuffle's [`Lanes`].
//!
//! Eight neighbouring items count as one item of `8 * typesize` bytes. A byte shuffle of those leaves, for every byte
//! `j` of the original items, eight registers: items 0 (mod 8), items 1 (mod 8) and so on. Three rounds that swap bits
//! between pairs of these registers make them the rows of bits 0 to 7.
//!
//! A tile is 16 groups of 8 items per lane. Where there are less than 16 groups in all, those of short items are padded
//! to a tile. Of others, the bits are transposed 16 bytes of 8 items at a time; that leaves a byte transposition of a
//! few long rows, which the byte shuffle does well.
//!
//! The unsafe functions require a CPU with the instruction set of `V`; what else they require is said with each.

use super::generic;
use crate::filters::shuffle::Kernel as Bytes;
use crate::filters::shuffle::lanes::{Lanes, gather, overlapping, scatter};
use std::mem::MaybeUninit;

/// Columns of 8 items that are transposed at once, and as many rows of bits.
const ROWS: usize = 8 * 16;

/// The registers of one tile: byte `j` of item `m` (mod 8) is register `m * min(typesize, 16) + j`.
type Tile<V> = [MaybeUninit<V>; ROWS];

/// Transposes bits: bit `k` of the bytes of register `m` becomes bit `m` of those of register `k`.
///
/// # Safety
///
/// The CPU has the instruction set of `V`.
#[inline(always)]
unsafe fn transpose_bits<V: Lanes>(mut r: [V; 8]) -> [V; 8] {
    // SAFETY: passed on to the caller.
    unsafe {
        for m in [0, 1, 2, 3] {
            (r[m], r[m + 4]) = V::swap_bits::<4>(r[m], r[m + 4]);
        }
        for m in [0, 1, 4, 5] {
            (r[m], r[m + 2]) = V::swap_bits::<2>(r[m], r[m + 2]);
        }
        for m in [0, 2, 4, 6] {
            (r[m], r[m + 1]) = V::swap_bits::<1>(r[m], r[m + 1]);
        }
    }
    r
}

/// From `columns` byte columns to the rows of bits: byte `j` of item `m` is in register `m * columns + j` of `tile`, row
/// `r` goes to `dest[out + r * stride]`.
///
/// # Safety
///
/// The first `8 * columns` registers have been written, and these rows exist.
#[inline(always)]
unsafe fn store_rows<V: Lanes>(tile: &Tile<V>, columns: usize, dest: &mut [u8], out: usize, stride: usize) {
    for j in 0..columns {
        // SAFETY: passed on to the caller.
        unsafe { store_column(tile, columns, j, dest, out, stride) };
    }
}

/// [`store_rows`] for column `j`.
///
/// # Safety
///
/// The 8 registers of the column have been written, and its 8 rows exist.
#[inline(always)]
unsafe fn store_column<V: Lanes>(
    tile: &Tile<V>,
    columns: usize,
    j: usize,
    dest: &mut [u8],
    out: usize,
    stride: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut r = [V::zero(); 8];
        for (m, r) in r.iter_mut().enumerate() {
            *r = tile[m * columns + j].assume_init();
        }
        for (k, row) in transpose_bits(r).into_iter().enumerate() {
            row.store(dest, out + (8 * j + k) * stride);
        }
    }
}

/// Loads the columns of items of 2 to 16 bytes from `src[at]` on, which become the first `8 * typesize` registers of
/// `tile`.
///
/// # Safety
///
/// The `16 * LANES` groups of items exist.
#[inline(always)]
unsafe fn load_columns<V: Lanes>(tile: &mut Tile<V>, typesize: usize, src: &[u8], at: usize) {
    let group = 8 * typesize;
    for column in overlapping(16, group) {
        // SAFETY: passed on to the caller.
        for (b, r) in unsafe { gather::<V, 16, 16>(src, at + column, group) }.into_iter().enumerate() {
            tile[column + b].write(r);
        }
    }
}

/// Undoes [`store_rows`], writing the first `8 * columns` registers of `tile`.
///
/// # Safety
///
/// The `8 * columns` rows exist.
#[inline(always)]
unsafe fn load_rows<V: Lanes>(tile: &mut Tile<V>, columns: usize, src: &[u8], at: usize, stride: usize) {
    for j in 0..columns {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut r = [V::zero(); 8];
            for (k, r) in r.iter_mut().enumerate() {
                *r = V::load(src, at + (8 * j + k) * stride);
            }
            for (m, column) in transpose_bits(r).into_iter().enumerate() {
                tile[m * columns + j].write(column);
            }
        }
    }
}

/// Bit-shuffles `16 * V::LANES` groups: items from `src[at]` on to rows from `dest[out]` on, `stride` bytes apart.
///
/// # Safety
///
/// The CPU has the instruction set of `V`; the groups and the `8 * typesize` rows exist.
#[inline(always)]
unsafe fn shuffle_tile<V: Lanes>(
    typesize: usize,
    src: &[u8],
    at: usize,
    dest: &mut [u8],
    out: usize,
    stride: usize,
) {
    let group = 8 * typesize;
    debug_assert!(at + 16 * V::LANES * group <= src.len());
    debug_assert!(out + (group - 1) * stride + 16 * V::LANES <= dest.len());
    let mut tile: Tile<V> = [MaybeUninit::uninit(); ROWS];
    // SAFETY: all columns read lie in the groups; registers are initialised for all columns before they are used.
    unsafe {
        if typesize == 1 {
            let columns = gather::<V, 8, 8>(src, at, 8);
            for (k, row) in transpose_bits(columns).into_iter().enumerate() {
                row.store(dest, out + k * stride);
            }
        } else if typesize <= 16 {
            load_columns(&mut tile, typesize, src, at);
            store_rows(&tile, typesize, dest, out, stride);
        } else {
            for j in overlapping(16, typesize) {
                for m in 0..8 {
                    let columns = gather::<V, 16, 16>(src, at + m * typesize + j, group);
                    for (b, r) in columns.into_iter().enumerate() {
                        tile[m * 16 + b].write(r);
                    }
                }
                store_rows(&tile, 16, dest, out + 8 * j * stride, stride);
            }
        }
    }
}

/// Undoes [`shuffle_tile`]: rows from `src[at]` on, `stride` bytes apart, to items from `dest[out]` on.
///
/// # Safety
///
/// As for [`shuffle_tile`].
#[inline(always)]
unsafe fn unshuffle_tile<V: Lanes>(
    typesize: usize,
    src: &[u8],
    at: usize,
    stride: usize,
    dest: &mut [u8],
    out: usize,
) {
    let group = 8 * typesize;
    debug_assert!(at + (group - 1) * stride + 16 * V::LANES <= src.len());
    debug_assert!(out + 16 * V::LANES * group <= dest.len());
    let mut tile: Tile<V> = [MaybeUninit::uninit(); ROWS];
    // SAFETY: all columns written lie in the groups; `load_rows` initialises what is read from `tile`.
    unsafe {
        if typesize == 1 {
            let mut rows = [V::zero(); 8];
            for (k, row) in rows.iter_mut().enumerate() {
                *row = V::load(src, at + k * stride);
            }
            scatter::<V, 8, 8>(transpose_bits(rows), dest, out, 8);
        } else if typesize <= 16 {
            load_rows(&mut tile, typesize, src, at, stride);
            for column in overlapping(16, group) {
                let mut r = [V::zero(); 16];
                for (b, r) in r.iter_mut().enumerate() {
                    *r = tile[column + b].assume_init();
                }
                scatter::<V, 16, 16>(r, dest, out + column, group);
            }
        } else {
            for j in overlapping(16, typesize) {
                load_rows(&mut tile, 16, src, at + 8 * j * stride, stride);
                for m in 0..8 {
                    let mut r = [V::zero(); 16];
                    for (b, r) in r.iter_mut().enumerate() {
                        *r = tile[m * 16 + b].assume_init();
                    }
                    scatter::<V, 16, 16>(r, dest, out + m * typesize + j, group);
                }
            }
        }
    }
}

/// The most groups for [`shuffle_few`] and [`unshuffle_few`].
const FEW: usize = 15;

/// Rows of bits of up to 16 columns, one byte each, one group after another. There is some room for vectors that reach
/// past the last row.
type Few = [u8; FEW_ROOM];
const FEW_ROOM: usize = ROWS * (FEW + 1);

/// Room for 8 times [`FEW`] items of up to 15 bytes, and for a vector that reaches past them.
const PADDED: usize = 8 * FEW * 15 + 16;

/// Bit-shuffles columns `at..at + 16` of one group of items in `src`, to `few[out..out + ROWS]`.
///
/// # Safety
///
/// `at + 7 * typesize + 16 <= src.len()`, `out + ROWS <= FEW_ROOM`.
#[inline(always)]
unsafe fn shuffle_group<V: Lanes>(typesize: usize, src: &[u8], at: usize, few: &mut Few, out: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut r = [V::Narrow::zero(); 8];
        for (m, r) in r.iter_mut().enumerate() {
            *r = V::Narrow::load(src, at + m * typesize);
        }
        scatter::<V::Narrow, 8, 8>(transpose_bits(r), few, out, 8);
    }
}

/// Undoes [`shuffle_group`].
///
/// # Safety
///
/// `at + ROWS <= FEW_ROOM`, `out + 7 * typesize + 16 <= dest.len()`.
#[inline(always)]
unsafe fn unshuffle_group<V: Lanes>(typesize: usize, few: &Few, at: usize, dest: &mut [u8], out: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let rows = gather::<V::Narrow, 8, 8>(few, at, 8);
        for (m, r) in transpose_bits(rows).into_iter().enumerate() {
            r.store(dest, out + m * typesize);
        }
    }
}

/// Items of up to this many bytes are padded to a whole tile if they are few.
const SHORT: usize = 4;

/// The bytes of a narrow tile of short items, or of its rows, and of a vector that reaches past them.
const TILE: usize = ROWS * SHORT + 16;

/// [`shuffle_few`] for items of up to [`SHORT`] bytes.
///
/// # Safety
///
/// As for [`shuffle_few`].
#[inline(always)]
unsafe fn shuffle_padded<V: Lanes>(typesize: usize, src: &[u8], dest: &mut [u8], ngroups: usize) {
    let (mut items, mut rows) = ([0; TILE], [0; TILE]);
    items[..src.len()].copy_from_slice(src);
    // SAFETY: 16 groups of short items fit, and so do their rows, of 16 bytes each; shorter rows begin where those do,
    // or before.
    unsafe {
        shuffle_tile::<V::Narrow>(typesize, &items, 0, &mut rows, 0, 16);
        for r in 0..8 * typesize {
            V::Narrow::load(&rows, 16 * r).store(&mut items, ngroups * r);
        }
    }
    dest.copy_from_slice(&items[..dest.len()]);
}

/// [`bitshuffle`] for 1 to [`FEW`] groups.
///
/// # Safety
///
/// As for [`bitshuffle`]; there are `ngroups` groups.
#[inline(always)]
unsafe fn shuffle_few<V: Lanes>(bytes: &Bytes, typesize: usize, src: &[u8], dest: &mut [u8], ngroups: usize) {
    if typesize <= SHORT {
        // SAFETY: passed on to the caller.
        return unsafe { shuffle_padded::<V>(typesize, src, dest, ngroups) };
    }
    let group = 8 * typesize;
    let mut few: Few = [0; FEW_ROOM];
    // SAFETY: shorter items than vectors are loaded from a buffer with room for that; of others, the columns are inside
    // of the item. `few` has room for the rows of all groups, and for a group's that reach past those of short items.
    unsafe {
        if typesize < 16 {
            let mut items = [0; PADDED];
            items[..src.len()].copy_from_slice(src);
            for g in 0..ngroups {
                shuffle_group::<V>(typesize, &items, g * group, &mut few, g * group);
            }
            // In `dest`, a row has one byte of each group.
            bytes.unshuffle(ngroups, &few[..dest.len()], dest);
        } else {
            for j in overlapping(16, typesize) {
                for g in 0..ngroups {
                    shuffle_group::<V>(typesize, src, g * group + j, &mut few, ROWS * g);
                }
                let rows = &mut dest[8 * j * ngroups..][..ROWS * ngroups];
                bytes.unshuffle(ngroups, &few[..ROWS * ngroups], rows);
            }
        }
    }
}

/// [`bitunshuffle`] for 1 to [`FEW`] groups which are all that there are.
///
/// # Safety
///
/// As for [`bitunshuffle`]; there are `ngroups` groups, and their rows are as many bytes apart.
#[inline(always)]
unsafe fn unshuffle_few<V: Lanes>(
    bytes: &Bytes,
    typesize: usize,
    src: &[u8],
    dest: &mut [u8],
    ngroups: usize,
) {
    if typesize <= SHORT {
        let (mut rows, mut items) = ([0; TILE], [0; TILE]);
        rows[..dest.len()].copy_from_slice(&src[..dest.len()]);
        // SAFETY: at most 15 bytes follow the last row in its vector, and there is room for 16 groups of short items.
        unsafe { unshuffle_tile::<V::Narrow>(typesize, &rows, 0, ngroups, &mut items, 0) };
        dest.copy_from_slice(&items[..dest.len()]);
        return;
    }
    let group = 8 * typesize;
    let mut few: Few = [0; FEW_ROOM];
    // SAFETY: shorter items than vectors are stored to a buffer with room for that; of others, the columns are inside
    // of the item. `few` has room as in `shuffle_few`.
    unsafe {
        if typesize < 16 {
            let mut items = [0; PADDED];
            bytes.shuffle(ngroups, &src[..dest.len()], &mut few[..dest.len()]);
            for g in 0..ngroups {
                unshuffle_group::<V>(typesize, &few, g * group, &mut items, g * group);
            }
            dest.copy_from_slice(&items[..dest.len()]);
        } else {
            for j in overlapping(16, typesize) {
                let rows = &src[8 * j * ngroups..][..ROWS * ngroups];
                bytes.shuffle(ngroups, rows, &mut few[..ROWS * ngroups]);
                for g in 0..ngroups {
                    unshuffle_group::<V>(typesize, &few, ROWS * g, dest, g * group + j);
                }
            }
        }
    }
}

/// [`Kernel`](super::Kernel)'s `bitshuffle`; `bytes` is the byte shuffle for the same CPUs.
///
/// # Safety
///
/// The CPU has the instruction set of `V`; arguments as for the field.
#[inline(always)]
pub(super) unsafe fn bitshuffle<V: Lanes>(bytes: &Bytes, typesize: usize, src: &[u8], dest: &mut [u8]) {
    let group = 8 * typesize;
    let stride = src.len() / group;
    if stride <= FEW {
        // SAFETY: passed on to the caller.
        return unsafe { shuffle_few::<V>(bytes, typesize, src, dest, stride) };
    }
    // SAFETY: passed on to the caller.
    unsafe { bitshuffle_from::<V>(typesize, src, dest, 0) };
}

/// [`bitshuffle`] from group `g` on, of 16 or more.
///
/// # Safety
///
/// As for [`bitshuffle`].
#[inline(always)]
unsafe fn bitshuffle_from<V: Lanes>(typesize: usize, src: &[u8], dest: &mut [u8], mut g: usize) {
    let group = 8 * typesize;
    let stride = src.len() / group;
    // SAFETY: tiles are inside the `stride` groups; the rest is passed on to the caller.
    unsafe {
        while g + 16 * V::LANES <= stride {
            shuffle_tile::<V>(typesize, src, g * group, dest, g, stride);
            g += 16 * V::LANES;
        }
        while g < stride {
            g = g.min(stride - 16);
            shuffle_tile::<V::Narrow>(typesize, src, g * group, dest, g, stride);
            g += 16;
        }
    }
}

/// Blocks of more bytes do not fit in the nearest cache, and their rows are so far apart, as a rule by a power of two,
/// that there is room for a line of a few of them only at the same time.
#[cfg(target_arch = "x86_64")]
pub(super) const LONG: usize = 32 << 10;
/// Tiles of such blocks that are shuffled together, one column of all of them after the other.
#[cfg(target_arch = "x86_64")]
const TOGETHER: usize = 4;

/// As [`bitshuffle`], for items of 2 to 16 bytes and more than [`LONG`] bytes.
///
/// # Safety
///
/// As for [`bitshuffle`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn bitshuffle_long<V: Lanes>(typesize: usize, src: &[u8], dest: &mut [u8]) {
    assert!((2..=16).contains(&typesize));
    let group = 8 * typesize;
    let stride = src.len() / group;
    let mut tiles: [Tile<V>; TOGETHER] = [[MaybeUninit::uninit(); ROWS]; TOGETHER];
    let width = 16 * V::LANES;
    let mut g = 0;
    while g + TOGETHER * width <= stride {
        // SAFETY: tiles are inside the `stride` groups, and their columns are loaded before they are stored.
        unsafe {
            for (t, tile) in tiles.iter_mut().enumerate() {
                load_columns(tile, typesize, src, (g + t * width) * group);
            }
            for j in 0..typesize {
                for (t, tile) in tiles.iter().enumerate() {
                    store_column(tile, typesize, j, dest, g + t * width, stride);
                }
            }
        }
        g += TOGETHER * width;
    }
    // SAFETY: passed on to the caller; there are far more than 16 groups.
    unsafe { bitshuffle_from::<V>(typesize, src, dest, g) };
}

/// [`Kernel`](super::Kernel)'s `bitunshuffle`; `bytes` is the byte shuffle for the same CPUs.
///
/// # Safety
///
/// The CPU has the instruction set of `V`; arguments as for the field.
#[inline(always)]
pub(super) unsafe fn bitunshuffle<V: Lanes>(
    bytes: &Bytes,
    typesize: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
    let group = 8 * typesize;
    let ngroups = dest.len() / group;
    if ngroups <= FEW && ngroups == stride {
        // SAFETY: passed on to the caller.
        return unsafe { unshuffle_few::<V>(bytes, typesize, src, dest, ngroups) };
    }
    if ngroups <= FEW {
        return generic::bitunshuffle(typesize, stride, src, dest, 0..ngroups);
    }
    // SAFETY: tiles are inside the `ngroups` groups; the rest is passed on to the caller.
    unsafe {
        let mut g = 0;
        while g + 16 * V::LANES <= ngroups {
            unshuffle_tile::<V>(typesize, src, g, stride, dest, g * group);
            g += 16 * V::LANES;
        }
        while g < ngroups {
            g = g.min(ngroups - 16);
            unshuffle_tile::<V::Narrow>(typesize, src, g, stride, dest, g * group);
            g += 16;
        }
    }
}
