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

mod cache;
mod narrow;
mod tile;
mod wide;

use super::generic;
use narrow::unshuffle_planes_narrow;

#[cfg(all(target_arch = "x86_64", have_avx512))]
pub(in crate::filters) use cache::{FAR, ask_ahead, pays_to_ask_ahead};
pub(in crate::filters) use narrow::{shuffle_narrow, unshuffle_narrow};
pub(in crate::filters) use tile::{gather, scatter};
pub(in crate::filters) use wide::{overlapping, shuffle_wide, unshuffle_wide};

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
