//! INT_TRUNC: the least significant bits of integers set to zero. Lossy, and there is no way back.

#![forbid(unsafe_code)]

use super::low_bits;
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
    low_bits::clear(typesize, cleared_bits(typesize, meta)?, src, dest);
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
    low_bits::cleared(bits, meta)
        .ok_or_else(|| Error::new(ErrorKind::FilterPipeline, "int_trunc: precision out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
