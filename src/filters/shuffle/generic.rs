//! The portable byte shuffle; also what the vector variants leave over.

#![forbid(unsafe_code)]

use super::Kernel;
use std::ops::Range;

pub(super) const KERNEL: Kernel = Kernel {
    name: "generic",
    is_available: || true,
    suits: || true,
    shuffle: shuffle_all,
    unshuffle: unshuffle_all,
    unshuffle_planes: |rows, dest| unshuffle_planes(rows, dest, 0..dest.len() / rows.len()),
};

fn shuffle_all(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    shuffle(width, stride, src, dest, 0..src.len() / width);
}

fn unshuffle_all(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    unshuffle(width, stride, src, dest, 0..dest.len() / width);
}

/// Shuffles the items `items` of `src`; arguments as for [`Kernel`]'s `shuffle`.
pub(super) fn shuffle(width: usize, stride: usize, src: &[u8], dest: &mut [u8], items: Range<usize>) {
    let src = &src[items.start * width..items.end * width];
    match width {
        2 => shuffle_const::<2>(stride, src, dest, items),
        4 => shuffle_const::<4>(stride, src, dest, items),
        8 => shuffle_const::<8>(stride, src, dest, items),
        16 => shuffle_const::<16>(stride, src, dest, items),
        _ => {
            for j in 0..width {
                let row = &mut dest[j * stride..][items.clone()];
                for (d, item) in row.iter_mut().zip(src.chunks_exact(width)) {
                    *d = item[j];
                }
            }
        }
    }
}

/// [`shuffle`] with the width known to the compiler, which can then vectorise it.
fn shuffle_const<const W: usize>(stride: usize, src: &[u8], dest: &mut [u8], items: Range<usize>) {
    for j in 0..W {
        let row = &mut dest[j * stride..][items.clone()];
        for (d, item) in row.iter_mut().zip(src.chunks_exact(W)) {
            *d = item[j];
        }
    }
}

/// Unshuffles the items `items` of `dest`; arguments as for [`Kernel`]'s `unshuffle`.
pub(super) fn unshuffle(width: usize, stride: usize, src: &[u8], dest: &mut [u8], items: Range<usize>) {
    let dest = &mut dest[items.start * width..items.end * width];
    match width {
        2 => unshuffle_const::<2>(stride, src, dest, items),
        4 => unshuffle_const::<4>(stride, src, dest, items),
        8 => unshuffle_const::<8>(stride, src, dest, items),
        16 => unshuffle_const::<16>(stride, src, dest, items),
        _ => {
            for j in 0..width {
                let row = &src[j * stride..];
                for (&s, item) in row[items.clone()].iter().zip(dest.chunks_exact_mut(width)) {
                    item[j] = s;
                }
            }
        }
    }
}

/// [`unshuffle`] with the width known to the compiler.
fn unshuffle_const<const W: usize>(stride: usize, src: &[u8], dest: &mut [u8], items: Range<usize>) {
    let rows: [&[u8]; W] = std::array::from_fn(|j| &src[j * stride..][items.clone()]);
    for (i, item) in dest.chunks_exact_mut(W).enumerate() {
        for (d, row) in item.iter_mut().zip(&rows) {
            *d = row[i];
        }
    }
}

/// Puts the items `items` of `dest` together; arguments as for [`Kernel`]'s `unshuffle_planes`.
pub(super) fn unshuffle_planes(rows: &[&[u8]], dest: &mut [u8], items: Range<usize>) {
    let width = rows.len();
    let dest = &mut dest[items.start * width..items.end * width];
    for (j, row) in rows.iter().enumerate() {
        for (&s, item) in row[items.clone()].iter().zip(dest.chunks_exact_mut(width)) {
            item[j] = s;
        }
    }
}
