//! AVX2: running sums 32 bytes at a time, in the way of the [SSE2 code](super::sse2).

// Which intrinsics are safe to call depends on the version of the compiler.
#![allow(unused_unsafe)]

use super::{Kernel, generic};
use crate::cpu;
use std::arch::x86_64::*;

pub(super) const KERNEL: Kernel = Kernel {
    name: "avx2",
    is_available: cpu::has_avx2,
    encode,
    encode_in_place,
    decode,
    sum_items: Some(sum_items),
};

#[target_feature(enable = "avx2")]
unsafe fn encode(src: &[u8], dest: &mut [u8]) {
    generic::encode(src, dest);
}

#[target_feature(enable = "avx2")]
unsafe fn encode_in_place(bytes: &mut [u8]) {
    generic::encode_in_place(bytes);
}

#[target_feature(enable = "avx2")]
unsafe fn decode(src: &[u8], dest: &mut [u8]) {
    assert!(src.len() == dest.len());
    let len = src.len();
    let mut i = len.min(4);
    generic::decode_from(0, &src[..i], &mut dest[..i]);
    if i == 4 {
        let before = i32::from_le_bytes([dest[0], dest[1], dest[2], dest[3]]);
        // SAFETY: `4 <= i` and `i + 32 <= len`, the length of both slices, so the loads from up to 3 bytes before
        // `i` on and the store are inside.
        unsafe {
            let load = |at: usize| _mm256_loadu_si256(src.as_ptr().add(at).cast());
            // The 4 sums before `i`, repeated. They wait only for themselves, so that the rounds overlap in time.
            let mut carry = _mm256_set1_epi32(before);
            while i + 32 <= len {
                let x = _mm256_add_epi8(load(i), load(i - 1));
                let x = _mm256_add_epi8(x, _mm256_add_epi8(load(i - 2), load(i - 3)));
                // Shifts stay inside lanes of 16 bytes; the low lane's sums go to the high lane in a second step.
                let x = _mm256_add_epi8(x, _mm256_slli_si256::<4>(x));
                let x = _mm256_add_epi8(x, _mm256_slli_si256::<8>(x));
                let sums = _mm256_shuffle_epi32::<0xff>(x);
                let low_up = _mm256_permute2x128_si256::<0x08>(sums, sums);
                let high_low = _mm256_permute4x64_epi64::<0x4e>(sums);
                let x = _mm256_add_epi8(x, _mm256_add_epi8(low_up, carry));
                _mm256_storeu_si256(dest.as_mut_ptr().add(i).cast(), x);
                carry = _mm256_add_epi8(carry, _mm256_add_epi8(sums, high_low));
                i += 32;
            }
        }
        generic::decode_from(dest[i - 1], &src[i..], &mut dest[i..]);
    }
}

#[target_feature(enable = "avx2")]
unsafe fn sum_items(width: usize, items: &mut [u8]) {
    // SAFETY: the caller checked the CPU.
    unsafe {
        match width {
            4 => sum_items_of::<4>(items),
            8 => sum_items_of::<8>(items),
            16 => sum_items_of::<16>(items),
            _ => sum_items_from(width, width, items),
        }
    }
}

/// Running sums over items of `W` = 4, 8 or 16 bytes: a vector holds `32 / W` of them, which saves the steps that
/// single bytes need. With two bytes, too few would be saved.
#[inline(always)]
unsafe fn sum_items_of<const W: usize>(items: &mut [u8]) {
    let mut i = W.min(items.len());
    let mut last = [0; 16];
    if let Some(first) = items.get(..W) {
        last.chunks_exact_mut(W).for_each(|item| item.copy_from_slice(first));
    }
    // SAFETY: the caller checked the CPU; 32 bytes from `i` on exist.
    unsafe {
        // The last sum, repeated. It waits only for itself, so that the rounds overlap in time.
        let mut carry = _mm256_broadcastsi128_si256(_mm_loadu_si128(last.as_ptr().cast()));
        while i + 32 <= items.len() {
            let place = items.as_mut_ptr().add(i);
            let mut x = _mm256_loadu_si256(place.cast());
            // Sums inside lanes of 16 bytes.
            if W <= 4 {
                x = _mm256_add_epi8(x, _mm256_slli_si256::<4>(x));
            }
            if W <= 8 {
                x = _mm256_add_epi8(x, _mm256_slli_si256::<8>(x));
            }
            // The last item of each lane is its total.
            let totals = match W {
                4 => _mm256_shuffle_epi32::<0xff>(x),
                8 => _mm256_shuffle_epi32::<0xee>(x),
                _ => x,
            };
            let low_up = _mm256_permute2x128_si256::<0x08>(totals, totals);
            let swapped = _mm256_permute4x64_epi64::<0x4e>(totals);
            _mm256_storeu_si256(place.cast(), _mm256_add_epi8(x, _mm256_add_epi8(low_up, carry)));
            carry = _mm256_add_epi8(carry, _mm256_add_epi8(totals, swapped));
            i += 32;
        }
    }
    sum_items_from(W, i, items);
}

/// Adds, from `from` on, to each byte the one `width` before it, which has its own sum by then.
#[inline(always)]
fn sum_items_from(width: usize, from: usize, items: &mut [u8]) {
    for i in from..items.len() {
        items[i] = items[i].wrapping_add(items[i - width]);
    }
}
