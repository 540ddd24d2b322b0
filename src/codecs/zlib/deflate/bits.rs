//! Output bit by bit, the first one in the lowest bit of a byte.

use crate::codecs::mem::store;

/// Some bits to write, at most 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bits: u32,
    pub(super) len: u8,
}

impl Code {
    pub(super) fn new(bits: u32, len: u8) -> Code {
        Code { bits, len }
    }

    /// This code, and `more` after it.
    #[inline(always)]
    pub(super) fn then(self, more: Code) -> Code {
        Code { bits: self.bits | more.bits << self.len, len: self.len + more.len }
    }
}

/// A destination, and the bits that do not fill a byte yet.
pub(super) struct BitWriter<'a> {
    dest: &'a mut [u8],
    /// Bytes written.
    at: usize,
    /// Bits that do not fill a byte yet, or are not written yet; `count` of them.
    buffer: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(dest: &'a mut [u8]) -> BitWriter<'a> {
        BitWriter { dest, at: 0, buffer: 0, count: 0 }
    }

    /// Bytes written.
    pub(super) fn len(&self) -> usize {
        self.at
    }

    /// Whether this many bits fit.
    pub(super) fn has_room(&self, nbits: usize) -> bool {
        (nbits + self.count as usize).div_ceil(8) <= self.dest.len() - self.at
    }

    /// Adds a code. The codes since the last flush have at most 56 bits together: with the seven that it may have left,
    /// less than 64.
    #[inline(always)]
    pub(super) fn put(&mut self, code: Code) {
        self.put_bits(u64::from(code.bits), code.len);
    }

    /// As [`put`](Self::put), with `len` bits, of which those that are not zero are in `bits`.
    #[inline(always)]
    pub(super) fn put_bits(&mut self, bits: u64, len: u8) {
        self.buffer |= bits << self.count;
        self.count += u32::from(len);
        debug_assert!(self.count < 64);
    }

    /// Writes all whole bytes, so that at most seven bits are left. There is room for them.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        if self.at + 8 <= self.dest.len() {
            // SAFETY: 8 bytes follow, as just compared.
            unsafe { store(self.dest, self.at, self.buffer.to_le_bytes()) };
        } else {
            self.write_near_end();
        }
        self.at += self.count as usize / 8;
        self.buffer >>= self.count & !7;
        self.count &= 7;
    }

    #[cold]
    #[inline(never)]
    fn write_near_end(&mut self) {
        let n = self.count as usize / 8;
        self.dest[self.at..self.at + n].copy_from_slice(&self.buffer.to_le_bytes()[..n]);
    }

    /// Completes the current byte with zeros and adds `bytes`; `None` if they do not fit.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Option<()> {
        self.count = self.count.next_multiple_of(8);
        let end = self.at + self.count as usize / 8;
        self.dest.get(..end)?;
        self.flush();
        self.dest.get_mut(end..end + bytes.len())?.copy_from_slice(bytes);
        self.at = end + bytes.len();
        Some(())
    }
}
