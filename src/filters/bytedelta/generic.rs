//! The portable differences and running sums; also what the vector variants leave over.

#![forbid(unsafe_code)]

use super::Kernel;

pub(super) const KERNEL: Kernel = Kernel {
    name: "generic",
    is_available: || true,
    encode,
    encode_in_place,
    decode: |src, dest| decode_from(0, src, dest),
    sum_items: None,
};

/// Differences, starting from 0. The compiler makes vector code of it, as wide as the caller's.
#[inline(always)]
pub(super) fn encode(src: &[u8], dest: &mut [u8]) {
    let ([first, rest @ ..], [dest_first, dest_rest @ ..]) = (src, dest) else { return };
    *dest_first = *first;
    for ((d, b), before) in dest_rest.iter_mut().zip(rest).zip(src) {
        *d = b.wrapping_sub(*before);
    }
}

/// [`encode`], the result in the place of the source: from the end on, as each byte needs the one before it.
#[inline(always)]
pub(super) fn encode_in_place(bytes: &mut [u8]) {
    const STEP: usize = 128;
    let mut end = bytes.len();
    while end > STEP {
        let start = end - STEP;
        let mut before = [0; STEP];
        before.copy_from_slice(&bytes[start - 1..end - 1]);
        for (b, before) in bytes[start..end].iter_mut().zip(before) {
            *b = b.wrapping_sub(before);
        }
        end = start;
    }
    for i in (1..end).rev() {
        bytes[i] = bytes[i].wrapping_sub(bytes[i - 1]);
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
