//! Data for tests, the same in each run, and paths for their files.

#![forbid(unsafe_code)]

#[path = "../tests/common/temp.rs"]
mod temp;

pub(crate) use temp::TempPath;

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

/// Bytes of many characters: what shuffled numbers, records, text and images come down to.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // other platforms may lack the encoders that are tested with it
pub(crate) fn bytes_like(kind: u8, seed: u64, n: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes: Vec<u8> = match kind {
        0 => return random.bytes(n),
        1 => return repetitive(seed, n),
        // Few values without order: short matches everywhere.
        2 => (0..n).map(|_| (random.below(4) * 85) as u8).collect(),
        3 => (0..n).map(|_| random.below(18) as u8).collect(),
        // A plane of a slowly changing number with noise.
        4 => (0..n).map(|i| (i / 700 + random.below(3)) as u8).collect(),
        5 => (0..n).map(|_| u8::from(random.below(20) == 0)).collect(),
        // Records with a counter and a few fields of noise.
        6 => (0..n)
            .map(|i| if i % 24 < 3 { ((i / 24) >> (8 * (i % 24))) as u8 } else { (i % 24) as u8 })
            .collect(),
        // Words.
        _ => {
            let text = random.bytes(3000);
            let mut words = Vec::with_capacity(n + 10);
            while words.len() < n {
                let word = 10 * random.below(20) * random.below(15);
                words.extend_from_slice(&text[word..word + 2 + word % 7]);
            }
            words.truncate(n);
            words
        }
    };
    for _ in 0..random.below(n / 100 + 1) {
        let at = random.below(n);
        bytes[at] = random.byte();
    }
    bytes
}

/// How many mappings of the process `memory` lies in.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(miri)))]
pub(crate) fn mappings_in(memory: &[u8]) -> usize {
    let memory = memory.as_ptr_range();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let bound = |digits| usize::from_str_radix(digits, 16).unwrap();
    let bounds = maps.lines().filter_map(|line| line.split_whitespace().next()?.split_once('-'));
    bounds
        .filter(|(from, to)| bound(from) < memory.end as usize && (memory.start as usize) < bound(to))
        .count()
}
