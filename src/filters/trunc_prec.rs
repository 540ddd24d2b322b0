//! TRUNC_PREC: the least significant mantissa bits of floats set to zero. Lossy, so there is no way back.

#![forbid(unsafe_code)]

use super::low_bits;
use crate::error::{Error, ErrorKind, Result};

/// Copies `src` to `dest` with the precision of each float (`typesize` 4 or 8) reduced. `meta`, as a signed number, is
/// how many mantissa bits to keep, or, if negative, how many to clear. The bytes after the last whole float are copied.
///
/// # Errors
///
/// `FilterPipeline` if `typesize` is neither 4 nor 8, or no mantissa bit or an impossible number would be left.
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
    let mantissa_bits = match typesize {
        4 => 23,
        8 => 52,
        _ => {
            return Err(Error::new(
                ErrorKind::FilterPipeline,
                "trunc_prec works on 4- and 8-byte floats only",
            ));
        }
    };
    low_bits::cleared(mantissa_bits, meta)
        .ok_or_else(|| Error::new(ErrorKind::FilterPipeline, "trunc_prec: precision out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_vectors() {
        let cases: [(u8, [u8; 4], [u8; 4]); 6] = [
            (10, [0xcd, 0xcc, 0x8c, 0x3f], [0x00, 0xc0, 0x8c, 0x3f]),
            (10, [0x34, 0x33, 0x53, 0x40], [0x00, 0x20, 0x53, 0x40]),
            (0xfd, [0xcd, 0xcc, 0x8c, 0x3f], [0xc8, 0xcc, 0x8c, 0x3f]),
            (0xfd, [0x34, 0x33, 0x53, 0x40], [0x30, 0x33, 0x53, 0x40]),
            (1, [0xcd, 0xcc, 0x8c, 0x3f], [0x00, 0x00, 0x80, 0x3f]),
            (1, [0x34, 0x33, 0x53, 0x40], [0x00, 0x00, 0x40, 0x40]),
        ];
        for (meta, src, want) in cases {
            let mut dest = [0; 4];
            forward(4, meta, &src, &mut dest).unwrap();
            if cfg!(target_endian = "little") {
                assert_eq!(dest, want);
            }
        }
        let mut dest = [0; 8];
        forward(8, 20, &1.1f64.to_ne_bytes(), &mut dest).unwrap();
        assert_eq!(f64::from_ne_bytes(dest).to_bits(), 0x3ff1_9999_0000_0000);
    }

    #[test]
    fn tail_is_copied() {
        for (typesize, len) in [(4, 43), (8, 43), (8, 7), (4, 0)] {
            let src = vec![0xff; len];
            let mut dest = vec![0; len];
            forward(typesize, 3, &src, &mut dest).unwrap();
            let body = len / typesize * typesize;
            assert_eq!(dest[body..], src[body..]);
            assert!(dest[..body].chunks(typesize).all(|x| x != vec![0xff; typesize]));
        }
    }

    #[test]
    fn precisions_out_of_range_are_errors() {
        let try_it = |typesize, p: i8| forward(typesize, p.to_le_bytes()[0], &[1; 16], &mut [0; 16]);
        for p in i8::MIN..=i8::MAX {
            assert_eq!(try_it(4, p).is_ok(), (1..=23).contains(&p) || (-22..=-1).contains(&p), "f32 {p}");
            assert_eq!(try_it(8, p).is_ok(), (1..=52).contains(&p) || (-51..=-1).contains(&p), "f64 {p}");
        }
        assert_eq!(try_it(2, 5).unwrap_err().kind(), ErrorKind::FilterPipeline);
        assert_eq!(try_it(4, 0).unwrap_err().kind(), ErrorKind::FilterPipeline);
    }
}
