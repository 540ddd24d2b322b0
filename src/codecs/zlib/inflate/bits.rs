//! Input bit by bit, the first one in the lowest bit of a byte.

use crate::codecs::mem::load64;

/// A source, and the bits that were taken from it but not used yet.
///
/// Bits of the buffer above those that count are those that follow in the source, or 0.
#[derive(Clone, Copy)]
pub(in super::super) struct Bits<'a> {
    pub(super) src: &'a [u8],
    /// Bytes taken.
    pub(super) at: usize,
    pub(super) buffer: u64,
    /// The lowest six bits tell how many bits there are. What is above has no meaning, so that entries of tables can be
    /// subtracted as they are.
    counter: u32,
}

impl<'a> Bits<'a> {
    pub(in super::super) fn new(src: &'a [u8]) -> Bits<'a> {
        Bits { src, at: 0, buffer: 0, counter: 0 }
    }

    /// How many bits there are, less than 64.
    #[inline(always)]
    pub(super) fn count(&self) -> u32 {
        self.counter & 0x3f
    }

    /// Takes as many bytes as fit: there are at least 56 bits then, unless the end of the source comes before.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if self.at + 8 <= self.src.len() {
            // SAFETY: just compared.
            unsafe { self.refill_inside() };
        } else {
            self.refill_near_end();
        }
    }

    /// [`refill`](Self::refill) where eight bytes follow.
    ///
    /// # Safety
    ///
    /// `self.at + 8 <= self.src.len()`.
    #[inline(always)]
    pub(super) unsafe fn refill_inside(&mut self) {
        // SAFETY: the caller's promise.
        self.buffer |= unsafe { load64(self.src, self.at) } << (self.counter & 63);
        self.at += 7 - (self.counter >> 3 & 7) as usize;
        self.counter |= 56;
    }

    #[cold]
    #[inline(never)]
    fn refill_near_end(&mut self) {
        let rest = self.src.len() - self.at;
        let bytes = match self.src.last_chunk() {
            // Less than 8 are left.
            Some(last) => u64::from_le_bytes(*last).checked_shr(64 - 8 * rest as u32).unwrap_or(0),
            None => {
                let mut bytes = [0; 8];
                bytes[..rest].copy_from_slice(&self.src[self.at..]);
                u64::from_le_bytes(bytes)
            }
        };
        let n = rest.min((63 - self.count() as usize) / 8);
        self.buffer |= bytes << self.count();
        self.at += n;
        self.counter = self.count() + 8 * n as u32; // below 64
    }

    /// The next `n` bits, less than 64, as far as there are any; zeros follow the end.
    #[inline(always)]
    pub(super) fn peek(&self, n: u32) -> u64 {
        self.buffer & ((1 << n) - 1)
    }

    /// Goes on after as many bits as the lowest six bits of `n` tell, and there are.
    #[inline(always)]
    pub(super) fn skip(&mut self, n: u32) {
        debug_assert!(n & 0x3f <= self.count());
        self.buffer >>= n & 63;
        self.counter = self.counter.wrapping_sub(n);
    }

    /// Takes `n` bits, at most 56, since the last refill; `None` if there are fewer.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> Option<u64> {
        if n > self.count() {
            return None;
        }
        let bits = self.peek(n);
        self.skip(n);
        Some(bits)
    }

    /// Drops what is left of the current byte, and gives back the bytes after it.
    pub(super) fn align(&mut self) {
        self.at -= self.count() as usize / 8;
        (self.buffer, self.counter) = (0, 0);
    }

    /// The next `n` bytes, from an aligned position; `None` if there are fewer.
    pub(super) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let bytes = self.src[self.at..].get(..n)?;
        self.at += n;
        Some(bytes)
    }
}
