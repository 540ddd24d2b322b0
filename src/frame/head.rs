//! The start of a frame's header as it is stored: what tells that somebody changed the frame.

#![forbid(unsafe_code)]

use crate::error::{ErrorKind, Result, ensure};
use crate::format::frame_header::FIXED_LEN;
use crate::io::IoFile;

/// At most this many bytes are compared: the fixed fields, and the fixed metalayers of most frames.
pub(super) const MAX_LEN: usize = 512;

/// The fixed fields of a header, with as much of its metalayers as is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Head {
    /// The start of `bytes`, which begin with a header.
    ///
    /// # Errors
    ///
    /// `FileRead` if they end before the fixed fields do.
    pub(crate) fn of(bytes: &[u8]) -> Result<Head> {
        ensure(bytes.len() >= FIXED_LEN, ErrorKind::FileRead, "file ends too early")?;
        let len = bytes.len().min(MAX_LEN);
        let mut head = Head { bytes: [0; MAX_LEN], len };
        head.bytes[..len].copy_from_slice(&bytes[..len]);
        Ok(head)
    }

    /// As many bytes at `base` of `file` as `known` has, or fewer if the file ends before.
    ///
    /// # Errors
    ///
    /// `FileRead`, also if the file ends before the fixed fields do.
    pub(crate) fn read(file: &dyn IoFile, base: u64, known: &Head) -> Result<Head> {
        let mut head = Head { bytes: [0; MAX_LEN], len: known.len };
        head.len = file.read_at(base, &mut head.bytes[..known.len])?;
        ensure(head.len >= FIXED_LEN, ErrorKind::FileRead, "file ends too early")?;
        Ok(head)
    }

    /// The fixed fields.
    pub(crate) fn fixed(&self) -> &[u8; FIXED_LEN] {
        self.bytes.first_chunk().expect("checked when it was made")
    }

    /// This, with no more bytes than `other` has.
    pub(crate) fn cut_like(self, other: &Head) -> Head {
        Head { len: self.len.min(other.len), ..self }
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.bytes[..self.len] == other.bytes[..other.len]
    }
}

/// Whether all of a header of `len` bytes is looked at.
pub(super) fn is_seen_whole(len: usize) -> bool {
    len <= MAX_LEN
}
