//! The bit stream of ZFP: bits fill 64-bit little-endian words from the least significant end.

#![forbid(unsafe_code)]

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// Appends bits to a byte buffer, one 64-bit word at a time.
///
/// A writer that runs out of room keeps accepting bits, drops them, and says so at the end; that spares the hot paths a
/// check per value.
pub(super) struct BitWriter<'a> {
    out: &'a mut [u8],
    /// Bytes stored so far, a multiple of 8.
    pos: usize,
    /// Bits not stored yet; those above `count` are 0.
    pending: u64,
    /// Number of pending bits, at most 63.
    count: u32,
    overflowed: bool,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> BitWriter<'a> {
        BitWriter { out, pos: 0, pending: 0, count: 0, overflowed: false }
    }

    /// Appends the low `len` bits of `bits`, at most 64; the others must be 0.
    #[inline(always)]
    pub(super) fn put(&mut self, bits: u64, len: u32) {
        debug_assert!(len <= 64 && (len == 64 || bits >> len == 0));
        self.pending |= bits << self.count;
        let total = self.count + len;
        if total < 64 {
            self.count = total;
        } else {
            self.store();
            let left = total - 64;
            // In two steps, for a shift by 64 when nothing is left.
            let used = len - left;
            self.pending = if left == 0 { 0 } else { bits >> used };
            self.count = left;
        }
    }

    /// Appends `len` zero bits.
    pub(super) fn put_zeros(&mut self, mut len: u32) {
        while len > 0 {
            let step = len.min(64);
            self.put(0, step);
            len -= step;
        }
    }

    #[inline(always)]
    fn store(&mut self) {
        match self.out.get_mut(self.pos..self.pos + 8) {
            Some(word) => {
                word.copy_from_slice(&self.pending.to_le_bytes());
                self.pos += 8;
            }
            None => self.overflowed = true,
        }
    }

    /// Whether bits were dropped for lack of room.
    #[inline(always)]
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Bits written so far (meaningless after an overflow).
    #[inline(always)]
    pub(super) fn position(&self) -> u64 {
        self.pos as u64 * 8 + u64::from(self.count)
    }

    /// Pads to a whole word and returns the length in bytes, or `None` if the buffer was too small.
    pub(super) fn finish(mut self) -> Option<usize> {
        if self.count > 0 {
            self.store();
        }
        if self.overflowed { None } else { Some(self.pos) }
    }
}

/// Reads bits from a byte slice. Behind the end it reads zeros; whoever reads compares [`position`](Self::position)
/// with the length of the stream afterwards.
pub(super) struct BitReader<'a> {
    src: &'a [u8],
    /// Next byte to load.
    pos: usize,
    /// Loaded bits. Those above `count` are bits of the stream too, and will be loaded again.
    buffer: u64,
    /// Number of loaded bits that count, at most 63.
    count: u32,
}

impl<'a> BitReader<'a> {
    /// A reader that starts at bit number `start`.
    pub(super) fn new(src: &'a [u8], start: u64) -> BitReader<'a> {
        let mut reader = BitReader { src, pos: 0, buffer: 0, count: 0 };
        reader.seek(start);
        reader
    }

    /// Moves to bit number `bit`; if that is past the end, to somewhere close after it.
    #[inline(always)]
    pub(super) fn seek(&mut self, bit: u64) {
        let behind = self.src.len() + 1;
        self.pos = usize::try_from(bit / 8).unwrap_or(behind).min(behind);
        self.buffer = 0;
        self.count = 0;
        self.refill();
        self.consume((bit % 8) as u32);
    }

    /// Drops `len` bits, however many.
    #[inline(always)]
    pub(super) fn skip(&mut self, len: u64) {
        if len <= u64::from(self.count) {
            self.consume(len as u32);
        } else {
            self.seek(self.position() + len);
        }
    }

    /// Number of the next bit.
    #[inline(always)]
    pub(super) fn position(&self) -> u64 {
        self.pos as u64 * 8 - u64::from(self.count)
    }

    /// Whether all bits read so far were there.
    #[inline(always)]
    pub(super) fn within_bounds(&self) -> bool {
        self.position() <= self.src.len() as u64 * 8
    }

    /// Loads bits until at least 56 count.
    #[inline(always)]
    fn refill(&mut self) {
        let word = match self.src.get(self.pos..self.pos + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
            None => self.tail_word(),
        };
        self.buffer |= word << self.count;
        self.pos += (63 - self.count) as usize / 8;
        self.count |= 56;
    }

    /// The last bytes, completed with zeros.
    #[cold]
    fn tail_word(&self) -> u64 {
        let mut word = [0; 8];
        let rest = self.src.get(self.pos..).unwrap_or(&[]);
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }

    /// Makes at least `len` bits count, at most 56.
    #[inline(always)]
    pub(super) fn ensure(&mut self, len: u32) {
        debug_assert!(len <= 56);
        if self.count < len {
            self.refill();
        }
    }

    /// The next bits, least significant first, and how many of them count.
    #[inline(always)]
    pub(super) fn peek(&self) -> (u64, u32) {
        (self.buffer, self.count)
    }

    /// Drops `len` bits, at most as many as count.
    #[inline(always)]
    pub(super) fn consume(&mut self, len: u32) {
        debug_assert!(len <= self.count);
        self.buffer >>= len;
        self.count -= len;
    }

    /// Reads `len` bits, at most 64.
    #[inline(always)]
    pub(super) fn read(&mut self, len: u32) -> u64 {
        if len <= 56 {
            self.ensure(len);
            let bits = self.buffer & low_bits(len);
            self.consume(len);
            bits
        } else {
            let low = self.read(32);
            low | self.read(len - 32) << 32
        }
    }

    /// Drops the zeros before the next 1, at most `limit`, and the 1 if it came before the limit; returns the number of
    /// zeros.
    #[inline(always)]
    pub(super) fn read_zeros(&mut self, limit: u32) -> u32 {
        let mut zeros = 0;
        loop {
            self.ensure(32);
            let available = self.count.min(limit - zeros);
            let run = self.buffer.trailing_zeros();
            if run < available {
                self.consume(run + 1);
                return zeros + run;
            }
            self.consume(available);
            zeros += available;
            if zeros == limit {
                return zeros;
            }
        }
    }
}

/// A word with the low `len` bits set; `len` is at most 64.
#[inline(always)]
pub(super) fn low_bits(len: u32) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_in_order_for_all_lengths() {
        let mut out = vec![0; 8 * 70];
        let mut writer = BitWriter::new(&mut out);
        for len in 0..=64 {
            writer.put(0x9e37_79b9_7f4a_7c15 & low_bits(len), len);
        }
        assert_eq!(writer.position(), 64 * 65 / 2);
        assert_eq!(writer.finish(), Some((64 * 65 / 2usize).div_ceil(64) * 8));
        let mut reader = BitReader::new(&out, 0);
        for len in 0..=64 {
            assert_eq!(reader.read(len), 0x9e37_79b9_7f4a_7c15 & low_bits(len), "{len}");
        }
        assert_eq!(reader.position(), 64 * 65 / 2);
        for start in 0..100 {
            let mut moved = BitReader::new(&out, start);
            let mut walked = BitReader::new(&out, 0);
            for _ in 0..start {
                walked.read(1);
            }
            assert_eq!(moved.read(61), walked.read(61));
        }
    }

    #[test]
    fn a_full_buffer_is_reported_and_never_exceeded() {
        let mut out = [0; 15];
        let mut writer = BitWriter::new(&mut out);
        writer.put(u64::MAX, 64);
        assert!(!writer.overflowed());
        writer.put(1, 1);
        assert!(!writer.overflowed());
        assert_eq!(writer.finish(), None);
        assert_eq!(out[8..], [0; 7]);
    }

    #[test]
    fn reading_behind_the_end_gives_zeros_and_is_noticed() {
        let mut reader = BitReader::new(&[0xff; 9], 0);
        assert_eq!(reader.read(64), u64::MAX);
        assert_eq!(reader.read(8), 0xff);
        assert!(reader.within_bounds());
        assert_eq!(reader.read(1), 0);
        assert!(!reader.within_bounds());
        assert_eq!(reader.read_zeros(500), 500);
        for start in [40, 1 << 35, u64::MAX] {
            assert!(!BitReader::new(&[0; 4], start).within_bounds());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "more bytes than it has time for")]
    fn streams_of_hundreds_of_megabytes_are_read_to_the_end() {
        // Pages of zeros that nobody writes to take no memory.
        let mut src = vec![0; (1 << 28) + 64];
        src[(1 << 28) + 40] = 0xa5;
        let mut reader = BitReader::new(&src, 3);
        reader.skip((8 << 28) + 8 * 40 - 3);
        assert_eq!(reader.read(8), 0xa5);
    }

    #[test]
    fn runs_of_zeros_are_counted_across_words() {
        let mut out = [0; 40];
        out[25] = 0x10;
        let mut reader = BitReader::new(&out, 3);
        assert_eq!(reader.read_zeros(300), 25 * 8 + 4 - 3);
        assert_eq!(reader.position(), 25 * 8 + 5);
        let mut reader = BitReader::new(&out, 3);
        assert_eq!(reader.read_zeros(201), 201);
        assert_eq!(reader.position(), 204);
    }
}
