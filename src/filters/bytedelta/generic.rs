//! The portable differences and running sums; also what the vector variants leave over.

use super::Kernel;

pub(super) const KERNEL: Kernel =
    Kernel { name: "generic", is_available: || true, encode, decode: |src, dest| decode_from(0, src, dest) };

/// Differences, starting from 0. The compiler makes vector code of it, as wide as the caller's.
#[inline(always)]
pub(super) fn encode(src: &[u8], dest: &mut [u8]) {
    let ([first, rest @ ..], [dest_first, dest_rest @ ..]) = (src, dest) else { return };
    *dest_first = *first;
    for ((d, b), before) in dest_rest.iter_mut().zip(rest).zip(src) {
        *d = b.wrapping_sub(*before);
    }
}

/// The running sum, starting from `sum`.
#[inline(always)]
pub(super) fn decode_from(mut sum: u8, src: &[u8], dest: &mut [u8]) {
    for (s, d) in src.iter().zip(dest) {
        sum = sum.wrapping_add(*s);
        *d = sum;
    }
}
