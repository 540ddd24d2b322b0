//! One tile, or two: loaded, transposed and stored.

use super::Lanes;
use crate::filters::shuffle::generic;
use std::ops::Range;

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
pub(super) unsafe fn shuffle_two_tiles<V: Lanes, const C: usize, const W: usize>(
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
    /// As [`Kernel`](super::super::Kernel)'s `unshuffle`, for the items `items` of `dest`.
    fn unshuffle_few(self, width: usize, dest: &mut [u8], items: Range<usize>);
}

/// Rows that are `stride` bytes apart.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    pub(super) src: &'a [u8],
    pub(super) stride: usize,
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
pub(super) unsafe fn unshuffle_two_tiles<V: Lanes, R: Rows, const C: usize, const W: usize>(
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
