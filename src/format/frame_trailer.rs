//! The trailer of a frame: variable-length metalayers, and a fingerprint that the format has not filled in so far.
//!
//! | bytes | meaning |
//! |---|---|
//! | `94 01` | array of four, trailer version |
//! | section | see [`super::metalayers`] |
//! | `ce` BE32 | length of the whole trailer |
//! | `d8` type | fingerprint, 16 bytes; type 0: none |
//!
//! Type 0 says that the 16 bytes mean nothing, and readers skip them. In frames with holes this library notes there how
//! much of the payload area is in use, see [`Usage`]; otherwise, and in what others write, they are zeros.
//!
//! Frames from before 2.0.0-rc1 have one chunk of user metadata, `c6` BE32 length, in place of the section.

use super::metalayers::{self, MAX_VLMETALAYERS, Metalayer, Metalayers, Section};
use super::msgpack::{self, BIN32, FIXEXT16, UINT32};
use crate::bytes::to_i32;
use crate::error::{ErrorKind, Result};
use crate::memory;
use std::sync::Arc;

/// Bytes at the end of a frame that tell where the trailer starts.
pub(crate) const TAIL_LEN: usize = 23;
/// Least length of a trailer, in bytes.
pub(crate) const MIN_LEN: usize = 25;
/// Name under which the metadata chunk of old frames appears.
pub(crate) const USERMETA_NAME: &[u8] = b"usermeta";

/// How much of the payload area is in use: what the header does not tell if chunks were deleted or replaced.
///
/// Stored as `area` BE64, `live` BE64. A note for another `area` than that of the header is out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Length of the payload area in bytes.
    pub(crate) area: u64,
    /// How many of them are those of chunks.
    pub(crate) live: u64,
}

impl Usage {
    /// Writes the note to the end of the frame or trailer in `bytes`.
    pub(crate) fn put(self, bytes: &mut [u8]) {
        if let Some((_, fingerprint)) = bytes.split_last_chunk_mut::<16>() {
            fingerprint[..8].copy_from_slice(&self.area.to_be_bytes());
            fingerprint[8..].copy_from_slice(&self.live.to_be_bytes());
        }
    }

    /// The note at the end of `tail`, the end of a frame: `None` if there is none.
    pub(crate) fn read(tail: &[u8]) -> Option<Usage> {
        let (&[marker, kind], fingerprint) = tail.last_chunk::<18>()?.split_first_chunk()?;
        let (area, live) = fingerprint.split_at_checked(8)?;
        let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
        let usage = Usage { area: number(area)?, live: number(live)? };
        (marker == FIXEXT16 && kind == 0 && usage.area > 0 && usage.live <= usage.area).then_some(usage)
    }
}

/// Whether `tail` looks like the end of a trailer, which notes what is in use or has no fingerprint.
pub(crate) fn is_tail(tail: &[u8; TAIL_LEN]) -> bool {
    let has_marks = tail[0] == UINT32 && tail[5..7] == [FIXEXT16, 0];
    has_marks && (tail[7..] == [0; 16] || Usage::read(tail).is_some())
}

/// The trailer for `layers`.
///
/// # Errors
///
/// As for [`append`].
pub(crate) fn write(layers: &[Arc<Metalayer>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    append(&mut bytes, layers)?;
    Ok(bytes)
}

/// Appends the trailer for `layers` to `dest`.
///
/// # Errors
///
/// `InvalidParam` for names or contents that do not fit, `MemoryAlloc`.
pub(crate) fn append(dest: &mut Vec<u8>, layers: &[Arc<Metalayer>]) -> Result<()> {
    let len = metalayers::section_len(layers).saturating_add(2 + TAIL_LEN);
    let stored_len = to_i32(len, ErrorKind::InvalidParam)?;
    memory::reserve(dest, len)?;
    let start = dest.len();
    dest.extend_from_slice(&[0x94, 0x01]);
    metalayers::write(dest, start, Section::Trailer, layers)?;
    msgpack::put_u32(dest, stored_len.unsigned_abs());
    msgpack::put_fixext16(dest, 0);
    dest.extend_from_slice(&[0; 16]);
    Ok(())
}

/// Puts `room` zeros into the trailer at the end of `bytes`, before its last [`TAIL_LEN`] bytes; returns whether it may
/// be that long.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn widen(bytes: &mut Vec<u8>, room: u64) -> Result<bool> {
    let Some(at) = bytes.len().checked_sub(TAIL_LEN) else { return Ok(false) };
    let len = u64::from(msgpack::be_u32(bytes, at + 1)?).saturating_add(room);
    let (Ok(len), Ok(room)) = (i32::try_from(len), usize::try_from(room)) else { return Ok(false) };
    memory::reserve(bytes, room)?;
    bytes[at + 1..][..4].copy_from_slice(&len.to_be_bytes());
    bytes.splice(at..at, std::iter::repeat_n(0, room));
    Ok(true)
}

/// The length of the trailer, from `tail`, the last [`TAIL_LEN`] bytes of a frame with `room` bytes after its header.
///
/// `None` if this is not the end of a frame or the length is impossible.
pub(crate) fn read_len(tail: &[u8; TAIL_LEN], room: u64) -> Option<usize> {
    let len = msgpack::be_u32(tail, 1).ok()?;
    let fits = i32::try_from(len).is_ok() && u64::from(len) <= room;
    let len = usize::try_from(len).ok()?;
    (tail[0] == UINT32 && len >= MIN_LEN && fits).then_some(len)
}

/// The layers of a whole trailer.
///
/// # Errors
///
/// `Data` or `ReadBuffer` for damaged bytes.
pub(crate) fn read(bytes: &[u8]) -> Result<Metalayers> {
    if let Some(usermeta) = read_usermeta(bytes) {
        return Ok(if usermeta.is_empty() {
            Metalayers::default()
        } else {
            Metalayers::from_iter([Metalayer::new(USERMETA_NAME, usermeta)?])
        });
    }
    metalayers::read(bytes, 6, MAX_VLMETALAYERS)
}

/// The user metadata of the trailers of old frames; `None` for other trailers.
fn read_usermeta(bytes: &[u8]) -> Option<&[u8]> {
    if *bytes.get(2)? != BIN32 {
        return None;
    }
    let len = usize::try_from(msgpack::be_u32(bytes, 3).ok()?).ok()?;
    (len.checked_add(7 + TAIL_LEN)? == bytes.len()).then(|| &bytes[7..7 + len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_trailer_has_35_bytes() {
        let bytes = write(&[]).unwrap();
        assert_eq!(bytes[..13], [0x94, 1, 0x93, 0xcd, 0, 6, 0xde, 0, 0, 0xdc, 0, 0, 0xce]);
        assert_eq!(bytes.len(), 35);
        assert_eq!(read(&bytes), Ok(Metalayers::default()));
        let tail: [u8; TAIL_LEN] = bytes[12..].try_into().unwrap();
        assert_eq!(read_len(&tail, 35), Some(35));
        assert_eq!(read_len(&tail, 34), None);
    }

    #[test]
    fn a_trailer_is_the_same_after_other_bytes() {
        let layers = [Metalayer::new(b"a", &[1; 50]).unwrap(), Metalayer::new(b"b", &[]).unwrap()];
        let mut bytes = vec![9; 100];
        append(&mut bytes, &layers).unwrap();
        assert_eq!((&bytes[..100], &bytes[100..]), (&[9; 100][..], &write(&layers).unwrap()[..]));
    }

    #[test]
    fn a_wider_trailer_holds_the_same() {
        let layer = Metalayer::new(b"vl1", &[7; 0x28]).unwrap();
        let mut bytes = write(std::slice::from_ref(&layer)).unwrap();
        let (layers, len) = (read(&bytes), bytes.len());
        assert_eq!(widen(&mut bytes, 1 << 31), Ok(false));
        assert_eq!(bytes.len(), len);
        assert_eq!(widen(&mut bytes, 300), Ok(true));
        assert_eq!(bytes.len(), len + 300);
        assert_eq!(read(&bytes), layers);
        assert_eq!(read_len(bytes.last_chunk().unwrap(), 1000), Some(len + 300));
    }

    #[test]
    fn a_layer_is_at_the_documented_place() {
        let layer = Metalayer::new(b"vl1", &[7; 0x28]).unwrap();
        let bytes = write(std::slice::from_ref(&layer)).unwrap();
        assert_eq!(bytes.len(), 0x59);
        assert_eq!(bytes[..0x1a][2..9], [0x93, 0xcd, 0, 0x0f, 0xde, 0, 1]);
        assert_eq!(bytes[9..18], [0xa3, b'v', b'l', b'1', 0xd2, 0, 0, 0, 0x15]);
        assert_eq!(read(&bytes), Ok(Metalayers::from_iter([layer])));
    }

    #[test]
    fn a_note_of_the_usage_is_read_back_and_zeros_are_none() {
        let mut bytes = write(&[]).unwrap();
        assert_eq!(Usage::read(&bytes), None);
        let usage = Usage { area: 1000, live: 700 };
        usage.put(&mut bytes);
        assert_eq!((Usage::read(&bytes), bytes.len()), (Some(usage), 35));
        assert_eq!(read(&bytes), Ok(Metalayers::default()));
        Usage { area: 700, live: 1000 }.put(&mut bytes);
        assert_eq!(Usage::read(&bytes), None);
    }

    #[test]
    fn the_usermeta_chunk_of_old_frames_is_a_layer() {
        let mut bytes = vec![0x94, 1, 0xc6, 0, 0, 0, 4, 1, 2, 3, 4, 0xce, 0, 0, 0, 34, 0xd8, 0];
        bytes.extend_from_slice(&[0; 16]);
        let layers = read(&bytes).unwrap();
        assert_eq!(layers[0].name, USERMETA_NAME);
        assert_eq!(layers[0].content, [1, 2, 3, 4]);
    }
}
