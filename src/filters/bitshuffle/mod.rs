//! The bit shuffle: bit `k` of byte `j` of every item goes to row `8 * j + k`.
//!
//! It covers `n` items, the whole items rounded down to a multiple of 8; the output is `8 * typesize` rows of `n / 8`
//! bytes, in which item `i` is bit `i % 8` (the least significant is bit 0) of byte `i / 8`. The rest of the
//! block keeps its place. This is the only module that chooses between the variants; they see whole groups of 8
//! items only.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "x86_64", have_avx512))]
mod avx512;
mod generic;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod lanes;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(target_arch = "x86_64")]
mod ssse3;
#[cfg(test)]
mod tests;

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
    /// As long as there are up to this many groups of 8 items, it is quickest to unshuffle all of them, and more of
    /// them take no longer than one.
    tile: usize,
    /// `(typesize, src, dest)`: items to rows. `typesize >= 1`; `src` and `dest` have the same length, a multiple
    /// of `8 * typesize` and not 0.
    bitshuffle: unsafe fn(usize, &[u8], &mut [u8]),
    /// `(typesize, stride, src, dest)`: `g = dest.len() / (8 * typesize)` groups of 8 items from rows of which row
    /// `r` starts at `src[r * stride]`. `typesize >= 1`; `dest.len()` is a multiple of `8 * typesize` and not 0;
    /// `g <= stride`; `src.len() >= (8 * typesize - 1) * stride + g`.
    bitunshuffle: unsafe fn(usize, usize, &[u8], &mut [u8]),
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

/// The bytes of `len` that take part.
fn body_len(typesize: usize, len: usize) -> usize {
    assert!(typesize > 0);
    let nitems = len / typesize;
    (nitems - nitems % 8) * typesize
}

impl Kernel {
    /// See [`bitshuffle`].
    pub(crate) fn bitshuffle(&self, typesize: usize, src: &[u8], dest: &mut [u8]) {
        assert!(src.len() == dest.len());
        let body = body_len(typesize, src.len());
        if body > 0 {
            // SAFETY: `usable` gave out this kernel, so the CPU has its features; `body` is a positive multiple
            // of `8 * typesize` and the length of both slices.
            unsafe { (self.bitshuffle)(typesize, &src[..body], &mut dest[..body]) };
        }
        dest[body..].copy_from_slice(&src[body..]);
    }

    /// See [`bitunshuffle`].
    pub(crate) fn bitunshuffle(&self, typesize: usize, src: &[u8], dest: &mut [u8]) {
        assert!(src.len() == dest.len());
        let body = body_len(typesize, src.len());
        if body > 0 {
            // SAFETY: `usable` gave out this kernel, so the CPU has its features; `body` is a positive multiple
            // of `8 * typesize`, and `src` has all rows of it.
            unsafe { (self.bitunshuffle)(typesize, body / (8 * typesize), src, &mut dest[..body]) };
        }
        dest[body..].copy_from_slice(&src[body..]);
    }

    /// See [`bitunshuffle_bytes`].
    pub(crate) fn bitunshuffle_bytes(
        &self,
        typesize: usize,
        src: &[u8],
        start: usize,
        dest: &mut [u8],
        spare: &mut [u8],
    ) {
        assert!(start <= src.len() && dest.len() <= src.len() - start);
        let body = body_len(typesize, src.len());
        let (rows, tail) = src.split_at(body);
        let dest = super::copy_tail(body, tail, start, dest);
        if dest.is_empty() {
            return;
        }
        // Groups have 8 items of at least 1 byte each and `rows` has at least one group: no overflow.
        let group_len = 8 * typesize;
        let head = (start.next_multiple_of(group_len) - start).min(dest.len());
        let groups_len = (dest.len() - head) - (dest.len() - head) % group_len;
        let is_ragged = head + groups_len < dest.len() || head > 0;
        if groups_len < self.tile * group_len || (is_ragged && dest.len() <= DETOUR) {
            return self.unshuffle_by_way_of(spare, typesize, rows, start, dest);
        }
        let (before, dest) = dest.split_at_mut(head);
        let (groups, after) = dest.split_at_mut(groups_len);
        self.unshuffle_by_way_of(spare, typesize, rows, start, before);
        let first = start + head;
        // SAFETY: `usable` gave out this kernel, so the CPU has its features; `groups` holds whole groups, at least
        // one, `first` is where one begins, and all of them lie in those of `rows`.
        unsafe { (self.bitunshuffle)(typesize, body / group_len, &rows[first / group_len..], groups) };
        self.unshuffle_by_way_of(spare, typesize, rows, first + groups_len, after);
    }

    /// Bytes `start..start + dest.len()` of the items whose rows are `src`; all of them exist. Whole groups, and as
    /// many as make a tile, if there are, go to `spare`, and the wanted bytes from there to `dest`.
    fn unshuffle_by_way_of(
        &self,
        spare: &mut [u8],
        typesize: usize,
        src: &[u8],
        start: usize,
        dest: &mut [u8],
    ) {
        if dest.is_empty() {
            return;
        }
        let group_len = 8 * typesize;
        let stride = src.len() / group_len;
        let first = start / group_len;
        let count = ((start + dest.len()).div_ceil(group_len) - first).max(self.tile).min(stride);
        let first = first.min(stride - count);
        let spare = &mut spare[..count * group_len];
        // SAFETY: `usable` gave out this kernel, so the CPU has its features; `spare` has the length of `count` groups,
        // at least one, and `src` has that many from `first` on.
        unsafe { (self.bitunshuffle)(typesize, stride, &src[first..], spare) };
        dest.copy_from_slice(&spare[start - first * group_len..][..dest.len()]);
    }
}

/// Up to this many bytes, a range that begins or ends inside of a group is copied once more rather than unshuffled in
/// three parts.
const DETOUR: usize = 1 << 15;

/// Shuffles the bits of `src`, items of `typesize` bytes, into `dest`.
///
/// # Panics
///
/// If `typesize` is 0 or the lengths differ.
pub fn bitshuffle(typesize: usize, src: &[u8], dest: &mut [u8]) {
    BEST.bitshuffle(typesize, src, dest);
}

/// Undoes [`bitshuffle`].
///
/// # Panics
///
/// If `typesize` is 0 or the lengths differ.
pub fn bitunshuffle(typesize: usize, src: &[u8], dest: &mut [u8]) {
    BEST.bitunshuffle(typesize, src, dest);
}

/// Undoes the bit shuffle of format version 2 (the 1.x releases of the C library), which left a block alone unless its
/// number of whole items was a multiple of 8.
///
/// # Panics
///
/// If `typesize` is 0 or the lengths differ.
pub fn bitunshuffle_blosc1(typesize: usize, src: &[u8], dest: &mut [u8]) {
    assert!(typesize > 0 && src.len() == dest.len());
    if (src.len() / typesize) % 8 == 0 {
        bitunshuffle(typesize, src, dest);
    } else {
        dest.copy_from_slice(src);
    }
}

/// Unshuffles part of the bit-shuffled block `src`: bytes `start..start + dest.len()` of the block before
/// [`bitshuffle`]. The cost depends on `dest.len()` and `typesize` only. What is in `spare`, which is as long as `src`,
/// is arbitrary afterwards.
///
/// # Panics
///
/// If `typesize` is 0, the bytes asked for reach past the end of the block, or `spare` is too short.
pub fn bitunshuffle_bytes(typesize: usize, src: &[u8], start: usize, dest: &mut [u8], spare: &mut [u8]) {
    BEST.bitunshuffle_bytes(typesize, src, start, dest, spare);
}
