//! The data sets: made by formula, the same in every run.

use std::f64::consts::TAU;

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `f64` samples of a sum of slow waves, rounded to six decimals as measurements are.
    Smooth,
    /// `f32` samples of the same with noise in the low mantissa bits.
    Noisy,
    /// `i32` ramps of different slopes.
    Ramps,
    /// `i64` microseconds of irregular events.
    Timestamps,
    /// `u16` pixels: gradients, edges and sensor noise, rows of 512.
    Image,
    /// Records of 24 bytes: id, price, quantity, flags, padding.
    Records,
    /// English-like words, typesize 1.
    Text,
    /// Random `u32`.
    Random,
    /// Zero bytes, typesize 4.
    Zeros,
    /// The user's file, with this typesize.
    File(u8),
}

impl Kind {
    /// All kinds but the user's.
    pub const ALL: [Self; 9] = [
        Self::Smooth,
        Self::Noisy,
        Self::Ramps,
        Self::Timestamps,
        Self::Image,
        Self::Records,
        Self::Text,
        Self::Random,
        Self::Zeros,
    ];

    /// Name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smooth => "smooth",
            Self::Noisy => "noisy",
            Self::Ramps => "ramps",
            Self::Timestamps => "timestamps",
            Self::Image => "image",
            Self::Records => "records",
            Self::Text => "text",
            Self::Random => "random",
            Self::Zeros => "zeros",
            Self::File(_) => "file",
        }
    }

    /// Item size in bytes.
    pub fn typesize(self) -> i32 {
        match self {
            Self::Smooth | Self::Timestamps => 8,
            Self::Noisy | Self::Ramps | Self::Random | Self::Zeros => 4,
            Self::Image => 2,
            Self::Records => 24,
            Self::Text => 1,
            Self::File(typesize) => i32::from(typesize),
        }
    }
}

/// SplitMix64: small, fast, and the same everywhere.
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` (not 0).
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number in 0.0..1.0.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 // 53 bits: exact
    }
}

/// `nbytes` bytes of `kind`; a last partial item is cut. `file` holds the user's data, which are repeated if too few.
pub fn generate(kind: Kind, nbytes: usize, file: &[u8]) -> Vec<u8> {
    let seed = Kind::ALL.iter().zip(1..).find(|(k, _)| **k == kind).map_or(0, |(_, seed)| seed);
    let mut rng = Rng::new(seed);
    let mut out = Vec::with_capacity(nbytes + 64);
    match kind {
        Kind::Zeros => out.resize(nbytes, 0),
        Kind::File(_) => out.extend(file.iter().cycle().take(nbytes)),
        Kind::Text => text(&mut rng, nbytes, &mut out),
        Kind::Records => records(&mut rng, nbytes, &mut out),
        Kind::Image => image(&mut rng, nbytes, &mut out),
        Kind::Timestamps => {
            let mut now = 1_700_000_000_000_000_i64;
            while out.len() < nbytes {
                now += 1000 + i64::try_from(rng.below(400)).expect("small");
                out.extend(now.to_le_bytes());
            }
        }
        Kind::Ramps => {
            let mut value = 0_i32;
            let mut slope = 1;
            for i in 0..nbytes.div_ceil(4) {
                if i % 4096 == 0 {
                    slope = i32::try_from(rng.below(17)).expect("small") - 4;
                }
                value = value.wrapping_add(slope);
                out.extend(value.to_le_bytes());
            }
        }
        Kind::Smooth => {
            (0..nbytes.div_ceil(8)).for_each(|i| out.extend(((wave(i) * 1e6).round() / 1e6).to_le_bytes()))
        }
        Kind::Noisy => (0..nbytes.div_ceil(4)).for_each(|i| {
            let value = wave(i) + (rng.unit() - 0.5) * 1e-3;
            out.extend((value as f32).to_le_bytes()); // rounding to f32 is the point
        }),
        Kind::Random => {
            while out.len() < nbytes {
                out.extend(rng.next().to_le_bytes());
            }
        }
    }
    out.truncate(nbytes);
    out
}

/// Sample `i` of a sum of three slow waves around 20, as a thermometer would see.
fn wave(i: usize) -> f64 {
    let t = i as f64; // far below 2^53
    20.0 + 8.0 * (TAU * t / 86_400.0).sin() + 2.0 * (TAU * t / 3_600.0).sin() + 0.1 * (TAU * t / 617.0).cos()
}

fn image(rng: &mut Rng, nbytes: usize, out: &mut Vec<u8>) {
    const WIDTH: usize = 512;
    for i in 0..nbytes.div_ceil(2) {
        let (x, y) = (i % WIDTH, i / WIDTH);
        let background = 800 + x / 4 + (y % 1024) / 3;
        let object = if (x / 60 + y / 80) % 5 == 0 { 1500 } else { 0 };
        let noise = usize::try_from(rng.below(16) + rng.below(16)).expect("small");
        let pixel = u16::try_from(background + object + noise).expect("below 4096");
        out.extend(pixel.to_le_bytes());
    }
}

fn records(rng: &mut Rng, nbytes: usize, out: &mut Vec<u8>) {
    let mut price = 100.0_f64;
    let mut id = 1_000_000_u32;
    while out.len() < nbytes {
        id += 1;
        price = ((price + (rng.unit() - 0.5) * 0.2) * 100.0).round() / 100.0;
        out.extend(id.to_le_bytes());
        out.extend(price.to_le_bytes());
        out.extend(u32::try_from(rng.below(50) * 100).expect("small").to_le_bytes());
        out.extend(u16::try_from(rng.below(4)).expect("small").to_le_bytes());
        out.extend(b"EUR\0\0\0");
    }
}

fn text(rng: &mut Rng, nbytes: usize, out: &mut Vec<u8>) {
    const SYLLABLES: [&str; 24] = [
        "an", "ber", "con", "de", "er", "fin", "gra", "hal", "in", "jo", "ki", "lon", "ment", "nor", "ous",
        "per", "qui", "res", "sta", "tion", "un", "ver", "wil", "y",
    ];
    let words: Vec<String> = (0..3000)
        .map(|_| (0..1 + rng.below(4)).map(|_| SYLLABLES[pick(rng, SYLLABLES.len())]).collect())
        .collect();
    let mut line = 0;
    while out.len() < nbytes {
        // The product of two uniform numbers favours the first words, as languages do.
        let rank = rng.unit() * rng.unit() * rng.unit() * words.len() as f64;
        let word = &words[rank as usize]; // below the length, as the factors are below 1
        out.extend(word.as_bytes());
        line += word.len() + 1;
        if line > 72 {
            out.extend(b".\n");
            line = 0;
        } else {
            out.push(b' ');
        }
    }
}

/// A random index below `n`.
fn pick(rng: &mut Rng, n: usize) -> usize {
    usize::try_from(rng.below(n as u64)).expect("below a usize")
}
