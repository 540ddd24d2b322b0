//! The least significant bits of the items of a block set to zero, for [`int_trunc`](super::int_trunc) and
//! [`trunc_prec`](super::trunc_prec).
//!
//! This runs at the speed of memory: wider vectors than those that the compiler makes of it change nothing, from blocks
//! of 32 KiB on.

#![forbid(unsafe_code)]

/// How many of `bits` bits the meta byte of a truncating filter clears; none, unless at least one is left.
pub(super) fn cleared(bits: i32, meta: u8) -> Option<u32> {
    let precision = i32::from(i8::from_le_bytes([meta]));
    let cleared = if precision >= 0 { bits - precision } else { -precision };
    u32::try_from(cleared).ok().filter(|&cleared| cleared < bits.unsigned_abs())
}

/// Which bits of the bytes of an item stay, in the machine's byte order. `typesize` is at most 8, and `nbits` less than
/// its bits.
fn kept_bits(typesize: usize, nbits: u32) -> [u8; 8] {
    let item = (u64::MAX << nbits).to_le_bytes();
    std::array::from_fn(|b| {
        let b = b % typesize;
        item[if cfg!(target_endian = "little") { b } else { typesize - 1 - b }]
    })
}

/// Copies `src` to `dest`, clearing the `nbits` least significant bits of each item in the machine's byte order.
/// `typesize` is 1, 2, 4 or 8, and `nbits` less than its bits. The bytes after the last whole item are copied.
pub(super) fn clear(typesize: usize, nbits: u32, src: &[u8], dest: &mut [u8]) {
    assert!(src.len() == dest.len());
    // The mask of one item, repeated over 8 bytes.
    let mask = kept_bits(typesize, nbits);
    let (body, tail) = src.split_at(src.len() - src.len() % typesize);
    let (dest, dest_tail) = dest.split_at_mut(body.len());
    dest_tail.copy_from_slice(tail);
    let word_mask = u64::from_ne_bytes(mask);
    let mut chunks = body.chunks_exact(8);
    let mut dest_chunks = dest.chunks_exact_mut(8);
    for (s, d) in (&mut chunks).zip(&mut dest_chunks) {
        let word = u64::from_ne_bytes(s.try_into().expect("8 bytes"));
        d.copy_from_slice(&(word & word_mask).to_ne_bytes());
    }
    for ((s, d), m) in chunks.remainder().iter().zip(dest_chunks.into_remainder()).zip(mask) {
        *d = s & m;
    }
}

/// Does to a shuffled block what [`clear`] does to it before the shuffle: most rows are left alone.
pub(crate) fn clear_rows(typesize: usize, nbits: u32, block: &mut [u8]) {
    let nitems = block.len() / typesize;
    if nitems == 0 {
        return;
    }
    for (row, mask) in block.chunks_exact_mut(nitems).zip(&kept_bits(typesize, nbits)[..typesize]) {
        match mask {
            0 => row.fill(0),
            0xff => {}
            mask => row.iter_mut().for_each(|byte| *byte &= mask),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::shuffle;

    #[test]
    fn clearing_bits_commutes_with_the_shuffle() {
        for typesize in [1, 2, 4, 8] {
            for len in (0..70).chain([1000, 4099]) {
                let src: Vec<u8> = (0..len).map(|i| u8::try_from(i * 37 % 251).unwrap() | 1).collect();
                for nbits in 1..8 * u32::try_from(typesize).unwrap() {
                    let (mut cleared, mut want, mut got) = (src.clone(), src.clone(), src.clone());
                    clear(typesize, nbits, &src, &mut cleared);
                    shuffle::shuffle(typesize, &cleared, &mut want);
                    shuffle::shuffle(typesize, &src, &mut got);
                    clear_rows(typesize, nbits, &mut got);
                    assert_eq!(got, want, "typesize {typesize} length {len} bits {nbits}");
                }
            }
        }
    }
}
