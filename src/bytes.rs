//! Checked access to little-endian integers, size arithmetic, and numbers in text.

use crate::error::{Error, ErrorKind, Result};

/// The bytes of `numbers`, in the order of this machine.
pub(crate) fn bytes_of(numbers: &[i64]) -> &[u8] {
    // SAFETY: the same memory, borrowed as long; bytes need no alignment.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast::<u8>(), size_of_val(numbers)) }
}

/// As [`bytes_of`], to be changed.
pub(crate) fn bytes_of_mut(numbers: &mut [i64]) -> &mut [u8] {
    // SAFETY: the same memory, borrowed as long; bytes need no alignment, and whatever is written makes numbers.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast::<u8>(), size_of_val(numbers)) }
}

/// `len / n`, in fewer cycles where `n` is a power of two, as most typesizes are. `n` is not 0.
#[inline(always)]
pub(crate) fn quotient(len: usize, n: usize) -> usize {
    if n.is_power_of_two() { len >> n.trailing_zeros() } else { len / n }
}

/// The `i32` stored little-endian at `at`, or `None` past the end.
#[inline]
pub(crate) fn get_i32(bytes: &[u8], at: usize) -> Option<i32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(raw.try_into().expect("the range is 4 bytes long")))
}

/// Stores `value` little-endian at `at`; the caller made room for it.
#[inline]
pub(crate) fn put_i32(bytes: &mut [u8], at: usize, value: i32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The decimal number at the start of `text`, after white space, as C's `strtol` reads it: 0 if there is none, and the
/// nearest that there is for one that is too large.
pub(crate) fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0i64, |value, &digit| {
        let digit = i64::from(digit - b'0');
        value.saturating_mul(10).saturating_add(if negative { -digit } else { digit })
    })
}

/// `value` as the `i32` that the format stores.
///
/// # Errors
///
/// `kind` if it does not fit.
#[inline]
pub(crate) fn to_i32(value: usize, kind: ErrorKind) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::new(kind, "size does not fit in 32 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(leading_number(b"12"), 12);
        assert_eq!(leading_number(b" -3x"), -3);
        assert_eq!(leading_number(b"+7 8"), 7);
        assert_eq!(leading_number(b"abc"), 0);
        assert_eq!(leading_number(b""), 0);
        assert_eq!(leading_number(b"99999999999999999999"), i64::MAX);
        assert_eq!(leading_number(b"-99999999999999999999"), i64::MIN);
    }
}
