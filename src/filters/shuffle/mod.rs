//! The byte shuffle: byte `j` of every item goes to row `j`.
//!
//! For items of `width` bytes and `n = len / width` whole items, `out[j * n + i] = in[i * width + j]`; the
//! `len - n * width` bytes after the last whole item keep their place. This is the only module that chooses
//! between the variants; they see whole items only.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(all(target_arch = "x86_64", have_avx512))]
pub(super) mod avx512;
mod generic;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(super) mod lanes;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(super) mod neon;
#[cfg(target_arch = "x86_64")]
pub(super) mod ssse3;
#[cfg(test)]
mod tests;

use crate::bytes::quotient;
use crate::copy;
use crate::fork::Lazy;

/// One implementation of the transposition.
///
/// Its unsafe functions require a CPU for which `is_available` is true, and arguments as described at each field.
pub(crate) struct Kernel {
    /// For test messages.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) name: &'static str,
    is_available: fn() -> bool,
    /// Whether this CPU is one of those that it was written for.
    suits: fn() -> bool,
    /// `(width, stride, src, dest)`: `n = src.len() / width` items to rows of which row `j` starts at
    /// `dest[j * stride]`. `width >= 2`; `src.len()` is a multiple of `width` and not 0; `n <= stride`;
    /// `dest.len() >= (width - 1) * stride + n`.
    shuffle: unsafe fn(usize, usize, &[u8], &mut [u8]),
    /// `(width, stride, src, dest)`: `n = dest.len() / width` items from rows of which row `j` starts at
    /// `src[j * stride]`. `width >= 2`; `dest.len()` is a multiple of `width` and not 0; `n <= stride`;
    /// `src.len() >= (width - 1) * stride + n`.
    unshuffle: unsafe fn(usize, usize, &[u8], &mut [u8]),
    /// `(rows, dest)`: `dest.len() / rows.len()` items, whose bytes `j` are those of row `j`. There are at least 2
    /// rows; `dest.len()` is a multiple of their number and not 0; each row has a byte for every item.
    unshuffle_planes: unsafe fn(&[&[u8]], &mut [u8]),
}

/// Every variant compiled for this target, best first among those that suit a CPU; the portable one is last.
static KERNELS: &[Kernel] = &[
    #[cfg(all(target_arch = "x86_64", have_avx512))]
    avx512::INTEL,
    #[cfg(all(target_arch = "x86_64", have_avx512))]
    avx512::AMD,
    #[cfg(target_arch = "x86_64")]
    avx2::KERNEL,
    #[cfg(target_arch = "x86_64")]
    ssse3::KERNEL,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    neon::KERNEL,
    generic::KERNEL,
];

/// The variants that this CPU can run.
pub(crate) fn usable() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().filter(|kernel| (kernel.is_available)())
}

static BEST: Lazy<Kernel> =
    Lazy::new(|| usable().find(|kernel| (kernel.suits)()).expect("generic always runs"));

/// From this number of items on, the vector variants have whole tiles of any width.
const MANY: usize = 16;

impl Kernel {
    /// See [`shuffle`].
    pub(crate) fn shuffle(&self, width: usize, src: &[u8], dest: &mut [u8]) {
        assert!(width > 0 && src.len() == dest.len());
        let nitems = quotient(src.len(), width);
        let body = nitems * width;
        if width == 1 || nitems <= 1 {
            copy::copy(src, dest);
            return;
        }
        if (2..width.min(MANY)).contains(&nitems) {
            // To transpose a few wide items is to interleave a few rows.
            // SAFETY: as below, with `width` items of `nitems >= 2` bytes.
            unsafe { (self.unshuffle)(nitems, width, &src[..body], &mut dest[..body]) };
        } else {
            // SAFETY: `usable` gave out this kernel, so the CPU has its features; `body` is a positive multiple of
            // `width >= 2`, and `dest` has all rows of it.
            unsafe { (self.shuffle)(width, nitems, &src[..body], &mut dest[..body]) };
        }
        dest[body..].copy_from_slice(&src[body..]);
    }

    /// See [`unshuffle`].
    pub(crate) fn unshuffle(&self, width: usize, src: &[u8], dest: &mut [u8]) {
        assert!(width > 0 && src.len() == dest.len());
        let nitems = quotient(src.len(), width);
        let body = nitems * width;
        if width == 1 || nitems <= 1 {
            copy::copy(src, dest);
            return;
        }
        if (2..width.min(MANY)).contains(&nitems) {
            // SAFETY: as below, with `width` items of `nitems >= 2` bytes.
            unsafe { (self.shuffle)(nitems, width, &src[..body], &mut dest[..body]) };
        } else {
            // SAFETY: `usable` gave out this kernel, so the CPU has its features; `body` is a positive multiple of
            // `width >= 2`, and `src` has all rows of it.
            unsafe { (self.unshuffle)(width, nitems, src, &mut dest[..body]) };
        }
        dest[body..].copy_from_slice(&src[body..]);
    }

    /// See [`unshuffle_rows`].
    pub(crate) fn unshuffle_rows(&self, width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
        let nitems = quotient(dest.len(), width);
        let last_row = stride.checked_mul(width - 1).expect("rows lie in memory");
        assert!(width >= 2 && nitems > 0 && nitems * width == dest.len() && nitems <= stride);
        assert!(last_row <= src.len() && nitems <= src.len() - last_row);
        // SAFETY: `usable` gave out this kernel, so the CPU has its features; the arguments were checked.
        unsafe { (self.unshuffle)(width, stride, src, dest) };
    }

    /// See [`unshuffle_bytes`].
    pub(crate) fn unshuffle_bytes(&self, width: usize, src: &[u8], start: usize, dest: &mut [u8]) {
        assert!(width > 0 && start <= src.len() && dest.len() <= src.len() - start);
        let body = quotient(src.len(), width) * width;
        let (shuffled, tail) = src.split_at(body);
        let dest = super::copy_tail(body, tail, start, dest);
        if width == 1 {
            dest.copy_from_slice(&shuffled[start..start + dest.len()]);
        } else if !dest.is_empty() {
            self.unshuffle_from_rows(width, shuffled, start, dest);
        }
    }

    /// See [`shuffle_items`].
    pub(crate) fn shuffle_items(&self, width: usize, src: &[u8], first: usize, dest: &mut [u8]) {
        assert!(width > 0 && src.len() % width == 0 && dest.len() % width == 0);
        let (nitems, stride) = (src.len() / width, dest.len() / width);
        assert!(first <= stride && nitems <= stride - first);
        if width == 1 {
            dest[first..first + nitems].copy_from_slice(src);
        } else if nitems > 0 {
            // SAFETY: `usable` gave out this kernel, so the CPU has its features; the items fit in the rows from
            // `first` on, the last of which starts `(width - 1) * stride` bytes further.
            unsafe { (self.shuffle)(width, stride, src, &mut dest[first..]) };
        }
    }

    /// See [`unshuffle_planes`].
    pub(crate) fn unshuffle_planes(&self, rows: &[&[u8]], dest: &mut [u8]) {
        let width = rows.len();
        assert!(width > 0 && dest.len() % width == 0);
        let nitems = dest.len() / width;
        assert!(rows.iter().all(|row| row.len() >= nitems));
        match rows {
            [row] => dest.copy_from_slice(&row[..nitems]),
            _ if nitems == 0 => {}
            // SAFETY: `usable` gave out this kernel, so the CPU has its features; the rest was just checked.
            _ => unsafe { (self.unshuffle_planes)(rows, dest) },
        }
    }

    /// Bytes `start..start + dest.len()` of the items whose rows are `src`; all of them exist.
    fn unshuffle_from_rows(&self, width: usize, src: &[u8], start: usize, dest: &mut [u8]) {
        let stride = quotient(src.len(), width);
        let byte = |pos: usize| src[pos % width * stride + pos / width];
        let mut first_whole = quotient(start, width);
        if first_whole * width < start {
            first_whole += 1;
        }
        let head = (first_whole * width - start).min(dest.len());
        let (dest_head, dest) = dest.split_at_mut(head);
        for (pos, d) in (start..).zip(dest_head) {
            *d = byte(pos);
        }
        let start = start + head;
        let (items, dest_end) = dest.split_at_mut(quotient(dest.len(), width) * width);
        if !items.is_empty() {
            // SAFETY: `usable` gave out this kernel, so the CPU has its features; `width >= 2`, `items` holds
            // whole items, `start` is where one begins, and all of them lie in the `stride` items of `src`.
            unsafe { (self.unshuffle)(width, stride, &src[first_whole..], items) };
        }
        for (pos, d) in (start + items.len()..).zip(dest_end) {
            *d = byte(pos);
        }
    }
}

/// Shuffles `src`, items of `width` bytes, into `dest`.
///
/// # Panics
///
/// If `width` is 0 or the lengths differ.
pub fn shuffle(width: usize, src: &[u8], dest: &mut [u8]) {
    BEST.shuffle(width, src, dest);
}

/// Shuffles `src`, whole items of `width` bytes, to their places in the shuffled block `dest`, which has whole items
/// too: the first is its item number `first`.
///
/// # Panics
///
/// If `width` is 0, the items end in a partial one, or the block has fewer.
pub(crate) fn shuffle_items(width: usize, src: &[u8], first: usize, dest: &mut [u8]) {
    BEST.shuffle_items(width, src, first, dest);
}

/// Undoes [`shuffle`].
///
/// # Panics
///
/// If `width` is 0 or the lengths differ.
pub fn unshuffle(width: usize, src: &[u8], dest: &mut [u8]) {
    BEST.unshuffle(width, src, dest);
}

/// Undoes [`shuffle`] of whole items whose rows begin `stride` bytes apart in `src`, with whatever lies between them.
///
/// # Panics
///
/// If `width` is below 2, `dest` is empty or holds parts of items, or `src` lacks parts of the rows.
pub fn unshuffle_rows(width: usize, stride: usize, src: &[u8], dest: &mut [u8]) {
    BEST.unshuffle_rows(width, stride, src, dest);
}

/// Unshuffles part of the shuffled block `src`: bytes `start..start + dest.len()` of the block before [`shuffle`].
/// The cost depends on `dest.len()` only.
///
/// # Panics
///
/// If `width` is 0 or the bytes asked for reach past the end of the block.
pub fn unshuffle_bytes(width: usize, src: &[u8], start: usize, dest: &mut [u8]) {
    BEST.unshuffle_bytes(width, src, start, dest);
}

/// Fills `dest` with items: byte `j` of item `i` is byte `i` of row `j`.
///
/// # Panics
///
/// If there are no rows, `dest` ends in a partial item, or a row has fewer bytes than `dest` has items.
pub(crate) fn unshuffle_planes(rows: &[&[u8]], dest: &mut [u8]) {
    BEST.unshuffle_planes(rows, dest);
}
