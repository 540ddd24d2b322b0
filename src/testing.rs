//! Data for tests, the same in each run.

/// A generator of random numbers (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[4]
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.byte()).collect()
    }
}

/// [`Random::below`] of a generator of its own.
#[cfg_attr(feature = "system-zlib", allow(dead_code))] // only the tests of our own zlib need it
pub(crate) fn below(seed: u64) -> impl FnMut(usize) -> usize {
    let mut random = Random::new(seed);
    move |n| random.below(n)
}

/// `n` bytes: literals, runs, and repetitions of many lengths from near and far.
pub(crate) fn repetitive(seed: u64, n: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = Vec::with_capacity(n + 4096);
    while out.len() < n {
        match random.below(5) {
            0 => {
                let len = 1 + random.below(50);
                out.extend(random.bytes(len));
            }
            _ if out.is_empty() => out.push(7),
            1 => {
                let len = 1 + random.below(900);
                out.extend(std::iter::repeat_n(out[out.len() - 1], len));
            }
            _ => {
                let reach = out.len().min(2 << random.below(17));
                let distance = 1 + random.below(reach);
                let longest = 1 << random.below(12);
                for _ in 0..3 + random.below(longest) {
                    out.push(out[out.len() - distance]);
                }
            }
        }
    }
    out.truncate(n);
    out
}
