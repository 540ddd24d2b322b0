//! Chunks without streams: stored raw, or one value over and over.
//!
//! They need no table, no codec and no work memory, so reading them costs little more than the copy.

#![forbid(unsafe_code)]

use crate::copy;
use crate::error::{Error, ErrorKind, Result};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, special};
use crate::pages::{self, LINE, PAST_CACHE};

/// What the payload of a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// Streams of blocks.
    Coded,
    /// The raw buffer.
    Stored,
    /// Zeros.
    Zeros,
    /// Quiet NaNs.
    Nans,
    /// The value after the header, repeated.
    Value,
    /// Nothing: the destination stays as it is.
    Uninit,
    /// An unknown special value; no such chunk can be read.
    Unknown,
}

impl Payload {
    /// The payload of a chunk with this header.
    #[inline(always)]
    pub(super) fn of(header: &ChunkHeader) -> Payload {
        match header.special() {
            special::NONE if header.is_memcpyed() => Payload::Stored,
            special::NONE => Payload::Coded,
            special::ZERO => Payload::Zeros,
            special::NAN => Payload::Nans,
            special::VALUE => Payload::Value,
            special::UNINIT => Payload::Uninit,
            _ => Payload::Unknown,
        }
    }
}

/// Copies the bytes of a plain chunk, from `start` on, to all of `dest`. `chunk` may be cut off, or go on past its end.
///
/// # Errors
///
/// `ReadBuffer` if the stored bytes are cut off, `Data` for NaNs of a size that does not exist.
#[inline(always)]
pub(super) fn copy(
    payload: Payload,
    header: &ChunkHeader,
    chunk: &[u8],
    start: usize,
    dest: &mut [u8],
) -> Result<()> {
    match payload {
        Payload::Coded | Payload::Unknown => unreachable!("only plain chunks are copied"),
        Payload::Uninit => {}
        Payload::Zeros => dest.fill(0),
        Payload::Stored => {
            let start = header.overhead() + start;
            let bytes = chunk.get(start..start + dest.len()).filter(|_| start + dest.len() <= header.cbytes);
            copy::copy(bytes.ok_or(Error::new(ErrorKind::ReadBuffer, "stored bytes are cut off"))?, dest);
        }
        Payload::Nans => match header.typesize {
            4 => tile(&f32::NAN.to_ne_bytes(), start, dest),
            8 => tile(&f64::NAN.to_ne_bytes(), start, dest),
            _ => return Err(Error::new(ErrorKind::Data, "NaNs of this size do not exist")),
        },
        Payload::Value => {
            let value = chunk.get(EXTENDED_HEADER_LENGTH..header.cbytes);
            tile(value.ok_or(Error::new(ErrorKind::ReadBuffer, "value is cut off"))?, start, dest);
        }
    }
    Ok(())
}

/// From this length on, in bytes, repetitions are copied from the first ones, which stay in the nearest cache. (Copies
/// over a distance of 4096 bytes and its multiples are slower on many CPUs.)
const PATTERN: usize = 2048;

/// Fills `dest` with what comes after the first `start` bytes of endless repetitions of `value`.
#[inline(never)]
fn tile(value: &[u8], start: usize, dest: &mut [u8]) {
    if let [byte] = value {
        dest.fill(*byte);
        return;
    }
    match value.len() {
        // These are to be written past the cache, below.
        _ if dest.len() >= PAST_CACHE => {}
        2 => return tile_short::<2>(value, start, dest),
        4 => return tile_short::<4>(value, start, dest),
        8 => return tile_short::<8>(value, start, dest),
        16 => return tile_short::<16>(value, start, dest),
        _ => {}
    }
    // The first repetition, which may begin in the middle.
    let phase = start % value.len();
    let mut filled = 0;
    let (tail, head) = value.split_at(phase);
    for part in [head, tail] {
        let len = part.len().min(dest.len() - filled);
        dest[filled..filled + len].copy_from_slice(&part[..len]);
        filled += len;
    }
    // Each copy doubles what is there, until it is long enough to be copied from.
    while filled < dest.len().min(PATTERN) {
        let len = filled.min(dest.len() - filled);
        dest.copy_within(..len, filled);
        filled += len;
    }
    let (pattern, rest) = dest.split_at_mut(filled);
    if rest.len() >= PAST_CACHE && pattern.len() <= 2 * PATTERN {
        return tile_past_cache(pattern, rest);
    }
    for part in rest.chunks_mut(pattern.len().max(1)) {
        part.copy_from_slice(&pattern[..part.len()]);
    }
}

/// Fills `dest` with repetitions of `pattern`, of up to twice [`PATTERN`] bytes, past the cache.
///
/// The pattern is copied first: where it is, it would be read from the same place in a page as what is written just
/// then, for which many CPUs wait.
fn tile_past_cache(pattern: &[u8], dest: &mut [u8]) {
    let head = dest.as_ptr().align_offset(LINE).min(LINE);
    let (head, lines) = dest.split_at_mut(head);
    head.copy_from_slice(&pattern[..head.len()]);
    let mut turned = [0; 2 * PATTERN];
    let turned = &mut turned[..pattern.len()];
    turned.copy_from_slice(pattern);
    turned.rotate_left(head.len());
    pages::repeat_past_cache(turned, lines);
}

/// [`tile`] for a value of `N` bytes, which registers hold.
#[inline(always)]
fn tile_short<const N: usize>(value: &[u8], start: usize, dest: &mut [u8]) {
    let mut item: [u8; N] = value.try_into().expect("the caller looked at the length");
    item.rotate_left(start % N);
    let mut places = dest.chunks_exact_mut(N);
    for place in &mut places {
        // As an array: with slices, each item would be a call.
        *place.first_chunk_mut().expect("as long as an item") = item;
    }
    let rest = places.into_remainder();
    rest.copy_from_slice(&item[..rest.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn large_destinations_are_tiled_like_others() {
        let mut dest = vec![0; PAST_CACHE + 9 * PATTERN];
        for (len, start) in [(8, 0), (8, 3), (16, 5), (3, 1), (100, 70), (4096, 4000), (4097, 2), (9000, 9)] {
            let value: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect(); // below 251
            let dest = &mut dest[start..];
            tile(&value, start, dest);
            let turned: Vec<u8> = value.iter().cycle().skip(start).take(value.len()).copied().collect();
            assert!(dest.chunks(value.len()).all(|item| item == &turned[..item.len()]), "{len} bytes");
        }
    }

    #[test]
    fn values_are_tiled_with_the_right_phase() {
        for value in (1..=17).map(|len| (1..=len).collect::<Vec<u8>>()) {
            for start in 0..20 {
                for len in (0..70).chain([PATTERN, PATTERN + 1, 3 * PATTERN, 5 * PATTERN + 3]) {
                    let mut dest = vec![0; len];
                    tile(&value, start, &mut dest);
                    let mut expected = value.iter().cycle().skip(start);
                    assert!(dest.iter().all(|byte| Some(byte) == expected.next()));
                }
            }
        }
    }
}
