//! One entry of the chunk index: where a chunk is, or which value fills it.
//!
//! Entries from 0 upwards are positions, counted from the end of the header, in contiguous frames; numbers of chunk
//! files in sparse ones. Negative entries are special chunks, of which nothing else is stored: the top byte is
//! `0x80 | kind` and the others are 0.

use super::consts::special;
use crate::error::{Error, ErrorKind, Result};

/// Most chunks of a frame.
pub const MAX_CHUNKS: usize = (i32::MAX / 8) as usize; // a constant that fits

/// An index entry, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Position in the payload area in bytes, or the number of the chunk file.
    Stored(u64),
    /// A chunk of this special kind, one of those in [`special`].
    Special(u8),
}

impl Entry {
    /// Decodes the stored number.
    ///
    /// # Errors
    ///
    /// `Data` for a negative entry of no known kind.
    pub fn decode(raw: i64) -> Result<Entry> {
        if let Ok(position) = u64::try_from(raw) {
            return Ok(Entry::Stored(position));
        }
        let top = raw.to_le_bytes()[7];
        // Several bits may be set by mistake; the order is that of the C library.
        for kind in [special::ZERO, special::UNINIT, special::NAN] {
            if top & kind != 0 {
                return Ok(Entry::Special(kind));
            }
        }
        Err(Error::new(ErrorKind::Data, "unknown special value in the chunk index"))
    }

    /// The number to store.
    #[must_use]
    pub fn encode(self) -> i64 {
        match self {
            Entry::Stored(position) => i64::try_from(position).expect("positions are below 2^63"),
            Entry::Special(kind) => i64::from_le_bytes([0, 0, 0, 0, 0, 0, 0, 0x80 | kind]),
        }
    }

    /// Whether chunks of this special kind are index entries and nothing else.
    #[must_use]
    pub fn is_index_only(kind: u8) -> bool {
        matches!(kind, special::ZERO | special::NAN | special::UNINIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_entries_have_the_documented_bytes() {
        for (kind, top) in [(special::ZERO, 0x81), (special::NAN, 0x82), (special::UNINIT, 0x84)] {
            let raw = Entry::Special(kind).encode();
            assert_eq!(raw.to_le_bytes(), [0, 0, 0, 0, 0, 0, 0, top]);
            assert_eq!(Entry::decode(raw), Ok(Entry::Special(kind)));
        }
        assert_eq!(Entry::decode(7), Ok(Entry::Stored(7)));
        assert_eq!(Entry::Stored(7).encode(), 7);
    }

    #[test]
    fn unknown_kinds_are_rejected_and_known_bits_are_tested_in_order() {
        assert_eq!(Entry::decode(i64::MIN).unwrap_err().kind(), ErrorKind::Data);
        assert_eq!(Entry::decode(-1), Ok(Entry::Special(special::ZERO)));
        let both = i64::from_le_bytes([0, 0, 0, 0, 0, 0, 0, 0x86]);
        assert_eq!(Entry::decode(both), Ok(Entry::Special(special::UNINIT)));
    }
}
