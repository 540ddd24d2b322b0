//! Items of 17 bytes and more, 16 columns at a time.

use super::Lanes;
use super::cache::{FEW_ROWS, WAYS, ask_ahead, crowd, pays_to_ask_ahead};
use super::tile::{Strided, shuffle_tile, shuffle_two_tiles, unshuffle_tile, unshuffle_two_tiles};
use crate::filters::shuffle::generic;
use std::ops::Range;

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
/// As for [`shuffle`](super::shuffle); there are as many items as said.
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
/// As for [`unshuffle`](super::unshuffle); there are as many items as said there.
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
/// As for [`shuffle`](super::shuffle); there are as many items as said.
#[inline(always)]
unsafe fn shuffle_wide_tiles<V: Lanes>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    let asks_ahead = V::stores_wait() && pays_to_ask_ahead(width, stride, src.len());
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
/// As for [`unshuffle`](super::unshuffle); there are as many items as said there.
#[inline(always)]
unsafe fn unshuffle_wide_tiles<V: Lanes>(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    for i in overlapping(16 * V::LANES, dest.len() / width) {
        for j in overlapping(16, width) {
            // SAFETY: tiles are inside the items and the `width >= 17` columns.
            unsafe { unshuffle_tile::<V, 16, 16>(width, src, j * stride + i, stride, dest, i * width + j) };
        }
    }
}

/// [`Kernel`](super::super::Kernel)'s `shuffle` for items of 17 bytes and more.
///
/// # Safety
///
/// As for [`shuffle`](super::shuffle).
#[inline(always)]
pub(in crate::filters) unsafe fn shuffle_wide<V: Lanes>(
    width: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
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

/// [`Kernel`](super::super::Kernel)'s `unshuffle` for items of 17 bytes and more.
///
/// # Safety
///
/// As for [`unshuffle`](super::unshuffle).
#[inline(always)]
pub(in crate::filters) unsafe fn unshuffle_wide<V: Lanes>(
    width: usize,
    stride: usize,
    src: &[u8],
    dest: &mut [u8],
) {
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
