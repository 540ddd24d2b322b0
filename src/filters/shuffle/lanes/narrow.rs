//! Items of 2 to 16 bytes.

use super::Lanes;
use super::cache::{ask_ahead, pays_to_ask_ahead, rows_compete};
use super::tile::{
    Rows, Strided, shuffle_tile, shuffle_two_tiles, unshuffle_planes_tile, unshuffle_two_tiles,
};
use crate::filters::shuffle::generic;

/// Room for 16 items of up to 15 bytes and for what a lane reaches past them.
const PADDED: usize = 16 * 16 + 16;

/// [`Kernel`](super::super::Kernel)'s `shuffle` for `width == W`, 2 to 16, of which `C` is the next power of two.
///
/// # Safety
///
/// As for [`shuffle`](super::shuffle).
#[inline(always)]
pub(in crate::filters) unsafe fn shuffle_narrow<V: Lanes, const C: usize, const W: usize>(
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
        let asks_ahead = V::stores_wait() && pays_to_ask_ahead(W, stride, src.len());
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

/// [`Kernel`](super::super::Kernel)'s `unshuffle` for `width == W`, 2 to 16, of which `C` is the next power of two.
///
/// # Safety
///
/// As for [`unshuffle`](super::unshuffle).
#[inline(always)]
pub(in crate::filters) unsafe fn unshuffle_narrow<V: Lanes, const C: usize, const W: usize>(
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
pub(super) unsafe fn unshuffle_planes_narrow<V: Lanes, R: Rows, const C: usize, const W: usize>(
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
