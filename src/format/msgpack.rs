//! The few msgpack forms that frames use, in the fixed widths that the format asks for.
//!
//! Frames are read by position: a field has its place whatever its value, so integers are never shortened as a general
//! msgpack encoder would do.

use crate::error::{Error, ErrorKind, Result, ensure};
use rmp::Marker;

/// Marker of a map with a 16-bit count.
pub(crate) const MAP16: u8 = 0xde;
/// Marker of a 32-bit signed integer.
pub(crate) const INT32: u8 = 0xd2;
/// Marker of a 32-bit unsigned integer.
pub(crate) const UINT32: u8 = 0xce;
/// Marker of bytes with a 32-bit length.
pub(crate) const BIN32: u8 = 0xc6;
/// Marker of 16 bytes of an extension type.
pub(crate) const FIXEXT16: u8 = 0xd8;
/// The three high bits of a string of at most 31 bytes.
pub(crate) const FIXSTR: u8 = 0xa0;

/// Appends `value` as a 16-bit unsigned integer.
pub(crate) fn put_u16(dest: &mut Vec<u8>, value: u16) {
    infallible(rmp::encode::write_u16(dest, value));
}

/// Appends `value` as a 32-bit unsigned integer.
pub(crate) fn put_u32(dest: &mut Vec<u8>, value: u32) {
    infallible(rmp::encode::write_u32(dest, value));
}

/// Appends `value` as a 64-bit unsigned integer.
pub(crate) fn put_u64(dest: &mut Vec<u8>, value: u64) {
    infallible(rmp::encode::write_u64(dest, value));
}

/// Appends `value` as a 16-bit signed integer.
pub(crate) fn put_i16(dest: &mut Vec<u8>, value: i16) {
    infallible(rmp::encode::write_i16(dest, value));
}

/// Appends `value` as a 32-bit signed integer.
pub(crate) fn put_i32(dest: &mut Vec<u8>, value: i32) {
    infallible(rmp::encode::write_i32(dest, value));
}

/// Appends `value` as a 64-bit signed integer.
pub(crate) fn put_i64(dest: &mut Vec<u8>, value: i64) {
    infallible(rmp::encode::write_i64(dest, value));
}

/// Appends a boolean.
pub(crate) fn put_bool(dest: &mut Vec<u8>, value: bool) {
    dest.push(if value { Marker::True } else { Marker::False }.to_u8());
}

/// Appends the marker of an array of `len` items, at most 15.
pub(crate) fn put_fixarray(dest: &mut Vec<u8>, len: u8) {
    debug_assert!(len < 16);
    dest.push(Marker::FixArray(len).to_u8());
}

/// Appends a string of at most 31 bytes.
pub(crate) fn put_fixstr(dest: &mut Vec<u8>, bytes: &[u8]) {
    let len = u8::try_from(bytes.len()).expect("names are checked to be short");
    debug_assert!(len < 32);
    dest.push(Marker::FixStr(len).to_u8());
    dest.extend_from_slice(bytes);
}

/// Appends the marker of 16 bytes of extension type `kind`.
pub(crate) fn put_fixext16(dest: &mut Vec<u8>, kind: u8) {
    dest.push(Marker::FixExt16.to_u8());
    dest.push(kind);
}

/// Appends the head of a map with `len` pairs.
pub(crate) fn put_map16(dest: &mut Vec<u8>, len: u16) {
    dest.push(Marker::Map16.to_u8());
    dest.extend_from_slice(&len.to_be_bytes());
}

/// Appends the head of an array with `len` items.
pub(crate) fn put_array16(dest: &mut Vec<u8>, len: u16) {
    dest.push(Marker::Array16.to_u8());
    dest.extend_from_slice(&len.to_be_bytes());
}

/// Appends `bytes` with a 32-bit length.
pub(crate) fn put_bin32(dest: &mut Vec<u8>, bytes: &[u8]) {
    dest.push(Marker::Bin32.to_u8());
    let len = u32::try_from(bytes.len()).expect("contents are checked to be below 2 GiB");
    dest.extend_from_slice(&len.to_be_bytes());
    dest.extend_from_slice(bytes);
}

fn infallible<E: std::fmt::Debug>(written: std::result::Result<(), E>) {
    written.expect("writing to a vector cannot fail");
}

/// The `u16` that is stored big-endian at `at`; like those below, for fields at fixed places.
///
/// # Errors
///
/// `ReadBuffer` past the end of `bytes`.
pub(crate) fn be_u16(bytes: &[u8], at: usize) -> Result<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// See [`be_u16`].
pub(crate) fn be_i16(bytes: &[u8], at: usize) -> Result<i16> {
    array(bytes, at).map(i16::from_be_bytes)
}

/// See [`be_u16`].
pub(crate) fn be_u32(bytes: &[u8], at: usize) -> Result<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// See [`be_u16`].
pub(crate) fn be_i32(bytes: &[u8], at: usize) -> Result<i32> {
    array(bytes, at).map(i32::from_be_bytes)
}

/// See [`be_u16`].
pub(crate) fn be_u64(bytes: &[u8], at: usize) -> Result<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

/// See [`be_u16`].
pub(crate) fn be_i64(bytes: &[u8], at: usize) -> Result<i64> {
    array(bytes, at).map(i64::from_be_bytes)
}

/// The byte at `at`.
pub(crate) fn byte(bytes: &[u8], at: usize) -> Result<u8> {
    bytes.get(at).copied().ok_or(CUT_OFF)
}

/// Fails with `Data` unless the byte at `at` is `marker`.
pub(crate) fn expect(bytes: &[u8], at: usize, marker: u8, what: &'static str) -> Result<()> {
    ensure(byte(bytes, at)? == marker, ErrorKind::Data, what)
}

const CUT_OFF: Error = Error::new(ErrorKind::ReadBuffer, "frame metadata cut off");

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let end = at.checked_add(N).ok_or(CUT_OFF)?;
    let raw = bytes.get(at..end).ok_or(CUT_OFF)?;
    Ok(raw.try_into().expect("the range is N bytes long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_width_whatever_their_value() {
        let mut v = Vec::new();
        put_i32(&mut v, 1);
        put_u64(&mut v, 2);
        put_i64(&mut v, -1);
        put_i16(&mut v, 3);
        put_u16(&mut v, 4);
        put_u32(&mut v, 5);
        assert_eq!(v[..5], [INT32, 0, 0, 0, 1]);
        assert_eq!(v[5..14], [0xcf, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(v[14], 0xd3);
        assert_eq!(v[23..26], [0xd1, 0, 3]);
        assert_eq!(v[26..29], [0xcd, 0, 4]);
        assert_eq!(v[29..], [UINT32, 0, 0, 0, 5]);
    }

    #[test]
    fn containers_use_the_wide_forms() {
        let mut v = Vec::new();
        put_map16(&mut v, 1);
        put_array16(&mut v, 2);
        put_bin32(&mut v, b"x");
        put_fixstr(&mut v, b"ab");
        put_fixarray(&mut v, 14);
        put_fixext16(&mut v, 6);
        put_bool(&mut v, true);
        assert_eq!(
            v,
            [0xde, 0, 1, 0xdc, 0, 2, 0xc6, 0, 0, 0, 1, b'x', 0xa2, b'a', b'b', 0x9e, 0xd8, 6, 0xc3]
        );
    }

    #[test]
    fn reads_past_the_end_are_refused() {
        assert_eq!(be_u32(&[0; 4], 1).unwrap_err().kind(), ErrorKind::ReadBuffer);
        assert_eq!(be_u32(&[0; 4], usize::MAX).unwrap_err().kind(), ErrorKind::ReadBuffer);
        assert_eq!(byte(&[], 0).unwrap_err().kind(), ErrorKind::ReadBuffer);
    }
}
