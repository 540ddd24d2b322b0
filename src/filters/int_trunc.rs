//! INT_TRUNC: the least significant bits of integers set to zero. Lossy, and there is no way back.
//!
//! This runs at the speed of memory: wider vectors than those that the compiler makes of it change nothing, from blocks of
//! 32 KiB on.

#![forbid(unsafe_code)]

use crate::error::{Error, ErrorKind, Result};

/// Copies `src` to `dest` with the precision of each integer (`typesize` 1, 2, 4 or 8) reduced. `meta`, as a signed
/// number, is how many bits to keep, or, if negative, how many to clear. The bytes after the last whole integer are
/// copied.
///
/// # Errors
///
/// `FilterPipeline` for other type sizes, or if no bit or an impossible number would be left.
///
/// # Panics
///
/// If the lengths differ.
pub fn forward(typesize: usize, meta: u8, src: &[u8], dest: &mut [u8]) -> Result<()> {
    clear_low_bits(typesize, cleared_bits(typesize, meta)?, src, dest);
    Ok(())
}

/// How many low bits [`forward`] clears, with its errors.
pub(crate) fn cleared_bits(typesize: usize, meta: u8) -> Result<u32> {
    let bits = match typesize {
        1 => 8,
        2 => 16,
        4 => 32,
        8 => 64,
        _ => {
            return Err(Error::new(
                ErrorKind::FilterPipeline,
                "int_trunc works on 1-, 2-, 4- and 8-byte integers only",
            ));
        }
    };
    cleared_of(bits, meta)
        .ok_or_else(|| Error::new(ErrorKind::FilterPipeline, "int_trunc: precision out of range"))
}

/// How many of `bits` bits the meta byte of a truncating filter clears; none, unless at least one is left.
pub(super) fn cleared_of(bits: i32, meta: u8) -> Option<u32> {
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
pub(super) fn clear_low_bits(typesize: usize, nbits: u32, src: &[u8], dest: &mut [u8]) {
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

/// Does to a shuffled block what [`clear_low_bits`] does to it before the shuffle: most rows are left alone.
pub(crate) fn clear_low_bits_of_rows(typesize: usize, nbits: u32, block: &mut [u8]) {
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

    fn truncated(typesize: usize, p: i8, src: &[u8]) -> Vec<u8> {
        let mut dest = vec![0xee; src.len()];
        forward(typesize, p.to_le_bytes()[0], src, &mut dest).unwrap();
        dest
    }

    #[test]
    fn known_vectors() {
        let u32s = |x: u32| u32::from_ne_bytes(truncated(4, -4, &x.to_ne_bytes()).try_into().unwrap());
        assert_eq!(u32s(0xdb92_4900), 0xdb92_4900);
        assert_eq!(u32s(0xffb6_6d24), 0xffb6_6d20);
        assert_eq!(truncated(1, 3, &[0x49]), [0x40]);
        assert_eq!(truncated(2, -9, &0x4900u16.to_ne_bytes()), 0x4800u16.to_ne_bytes());
    }

    #[test]
    fn all_items_lose_the_bits_and_the_tail_is_copied() {
        for typesize in [1, 2, 4, 8] {
            for len in 0..60 {
                let src: Vec<u8> = (0..len).map(|i| 0xff - i).collect();
                for zeroed in 1..8 * typesize {
                    let dest = truncated(typesize, -i8::try_from(zeroed).unwrap(), &src);
                    let mut want = src.clone();
                    for item in want.chunks_exact_mut(typesize) {
                        for bit in 0..zeroed {
                            let byte =
                                if cfg!(target_endian = "little") { bit / 8 } else { typesize - 1 - bit / 8 };
                            item[byte] &= !(1 << (bit % 8));
                        }
                    }
                    assert_eq!(dest, want, "typesize {typesize} length {len} zeroed {zeroed}");
                }
            }
        }
    }

    #[test]
    fn clearing_bits_commutes_with_the_shuffle() {
        for typesize in [1, 2, 4, 8] {
            for len in (0..70).chain([1000, 4099]) {
                let src: Vec<u8> = (0..len).map(|i| u8::try_from(i * 37 % 251).unwrap() | 1).collect();
                for nbits in 1..8 * u32::try_from(typesize).unwrap() {
                    let (mut cleared, mut want, mut got) = (src.clone(), src.clone(), src.clone());
                    clear_low_bits(typesize, nbits, &src, &mut cleared);
                    shuffle::shuffle(typesize, &cleared, &mut want);
                    shuffle::shuffle(typesize, &src, &mut got);
                    clear_low_bits_of_rows(typesize, nbits, &mut got);
                    assert_eq!(got, want, "typesize {typesize} length {len} bits {nbits}");
                }
            }
        }
    }

    #[test]
    fn precisions_out_of_range_are_errors() {
        for (typesize, bits) in [(1, 8), (2, 16), (4, 32), (8, 64)] {
            for p in i8::MIN..=i8::MAX {
                let got = forward(typesize, p.to_le_bytes()[0], &[1; 16], &mut [0; 16]);
                assert_eq!(
                    got.is_ok(),
                    (1..=bits).contains(&p) || (1 - bits..=-1).contains(&p),
                    "{typesize} {p}"
                );
            }
        }
        for typesize in [3, 16] {
            let err = forward(typesize, 5, &[1; 16], &mut [0; 16]).unwrap_err();
            assert_eq!(err.kind(), ErrorKind::FilterPipeline);
        }
    }
}
