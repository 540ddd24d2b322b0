//! A random compression: parameters, data, destination.

use super::common::Rng;
use super::common::clib::{CParams, Clib};
use super::common::data::make_data;

pub const BLOSCLZ: u8 = 0;
pub const LZ4: u8 = 1;
pub const LZ4HC: u8 = 2;
pub const ZLIB: u8 = 4;
pub const ZSTD: u8 = 5;
/// The built-in codecs.
pub const CODECS: [u8; 5] = [BLOSCLZ, LZ4, LZ4HC, ZLIB, ZSTD];

pub const SHUFFLE: u8 = 1;
pub const BITSHUFFLE: u8 = 2;
pub const DELTA: u8 = 3;
pub const TRUNC_PREC: u8 = 4;
const BYTEDELTA: u8 = 35;
const INT_TRUNC: u8 = 36;

const ALWAYS_SPLIT: i32 = 1;
pub const NEVER_SPLIT: i32 = 2;

/// One compression.
#[derive(Debug)]
pub struct Case {
    pub codec: u8,
    pub clevel: u8,
    pub filters: [u8; 6],
    pub metas: [u8; 6],
    pub typesize: usize,
    pub nbytes: usize,
    pub blocksize: usize,
    pub splitmode: i32,
    pub use_dict: bool,
    pub threads: i16,
    pub destsize: usize,
    pub kind: &'static str,
}

impl Case {
    /// Draws everything.
    pub fn draw(rng: &mut Rng) -> Self {
        let codec = rng.pick(&CODECS);
        let (filters, metas, truncated) = draw_filters(rng);
        let typesize = match truncated {
            true => rng.pick(&[4, 8]),
            false if rng.one_in(4) => rng.range(1, 300),
            false => rng.pick(&[1, 2, 3, 4, 4, 8, 8, 8, 12, 16, 17, 24, 32, 255, 256]),
        };
        let nbytes = draw_size(rng, typesize);
        let blocksize = draw_blocksize(rng, typesize, nbytes, truncated);
        let destsize = match rng.below(8) {
            0 => nbytes + 32,
            1 => rng.range(32, nbytes + 64),
            2 => nbytes / 2 + 32,
            3 => nbytes + 31,
            _ => nbytes + nbytes / 8 + 70_000,
        };
        Self {
            codec,
            clevel: u8::try_from(rng.below(10)).expect("a digit"),
            filters,
            metas,
            typesize,
            nbytes,
            blocksize,
            splitmode: rng.pick(&[1, 2, 3, 4, 4, 4]),
            use_dict: rng.one_in(6) && matches!(codec, LZ4 | LZ4HC | ZSTD),
            threads: rng.pick(&[1, 1, 2, 3, 4]),
            destsize: destsize.max(32),
            kind: rng.pick(&["zeros", "constant", "ramp", "noisy", "text", "random", "patches", "pattern"]),
        }
    }

    /// Parameters for a context of `lib` with `threads` threads.
    pub fn cparams(&self, lib: &Clib, threads: i16) -> CParams {
        let mut params = lib.cparams();
        params.compcode = self.codec;
        params.clevel = self.clevel;
        params.filters = self.filters;
        params.filters_meta = self.metas;
        params.typesize = super::common::int(self.typesize);
        params.blocksize = super::common::int(self.blocksize);
        params.splitmode = self.splitmode;
        params.use_dict = i32::from(self.use_dict);
        params.nthreads = threads;
        params
    }

    /// The data to compress.
    pub fn data(&self, rng: &mut Rng) -> Vec<u8> {
        make_data(rng, self.kind, self.typesize, self.nbytes)
    }

    /// What a chunk of `data` decompresses to: the data, with fewer bits if a truncating filter took part.
    pub fn expected(&self, data: &[u8], stored: bool) -> Vec<u8> {
        let mut out = data.to_vec();
        let Some(slot) = self.filters.iter().position(|&f| is_truncating(f)) else { return out };
        if stored {
            return out;
        }
        let bits = match (self.filters[slot], self.typesize) {
            (TRUNC_PREC, 4) => 23,
            (TRUNC_PREC, _) => 52,
            (_, typesize) => 8 * super::common::int(typesize),
        };
        let kept = i32::from(i8::from_ne_bytes([self.metas[slot]]));
        let zeroed = if kept >= 0 { bits - kept } else { -kept };
        let mask = !((1_u64 << zeroed) - 1);
        for item in out.chunks_exact_mut(self.typesize) {
            item.iter_mut().zip(mask.to_le_bytes()).for_each(|(byte, m)| *byte &= m);
        }
        out
    }

    /// Whether a filter drops bits.
    fn is_lossy(&self) -> bool {
        self.filters.iter().any(|&f| is_truncating(f))
    }

    fn active_filters(&self) -> usize {
        self.filters.iter().filter(|&&f| f != 0).count()
    }

    fn has(&self, filter: u8) -> bool {
        self.filters.contains(&filter)
    }

    /// Typesize as chunks record it.
    pub fn recorded_typesize(&self) -> usize {
        if self.typesize > 255 { 1 } else { self.typesize }
    }

    /// Whether the C library may write another block size into the header than the one it used.
    pub fn misreports_blocksize(&self) -> bool {
        let b = self.blocksize.min(self.nbytes);
        let rounded = if b > self.typesize { b / self.typesize * self.typesize } else { b };
        self.nbytes < self.typesize || (self.blocksize != 0 && rounded != b)
    }

    /// Whether the C library may write something that cannot be read back, or only by itself.
    pub fn is_unsafe_for_theirs(&self) -> bool {
        let short_blocks = self.blocksize != 0 && self.blocksize < self.typesize;
        let word = match self.recorded_typesize() {
            t @ (1 | 2 | 4 | 8) => t,
            t if t % 8 == 0 => 8,
            _ => 1,
        };
        let delta = self.has(DELTA)
            && (self.nbytes % word != 0
                || self.blocksize % word != 0
                || self.is_lossy()
                || self.active_filters() > 2);
        self.misreports_blocksize()
            || (self.splitmode == ALWAYS_SPLIT && short_blocks)
            || delta
            || self.active_filters() > 2
            || (self.is_lossy() && self.nbytes % self.typesize != 0)
            || self.use_dict
    }

    /// Whether the C library decodes DELTA wrongly: several of them, or one in the midst of many filters, so that its
    /// rotating buffers no longer hold what DELTA refers to.
    pub fn is_misread_by_theirs(&self) -> bool {
        let deltas = self.filters.iter().filter(|&&f| f == DELTA).count();
        deltas > 1 || (deltas == 1 && self.active_filters() > 4)
    }

    /// Whether both libraries must write the same bytes, given a roomy destination.
    pub fn is_exact(&self) -> bool {
        matches!(self.codec, LZ4 | LZ4HC | ZSTD) && !self.is_unsafe_for_theirs()
    }

    /// Whether the destination has room for anything, so that the C library does not give up early.
    pub fn is_roomy(&self) -> bool {
        self.destsize >= self.nbytes + 70_000
    }
}

fn is_truncating(filter: u8) -> bool {
    matches!(filter, TRUNC_PREC | INT_TRUNC)
}

/// Six slots, their meta bytes, and whether a filter among them wants whole items of 4 or 8 bytes.
fn draw_filters(rng: &mut Rng) -> ([u8; 6], [u8; 6], bool) {
    let list: Vec<u8> = match rng.below(19) {
        0 | 1 => vec![],
        2..=5 => vec![SHUFFLE],
        6..=8 => vec![BITSHUFFLE],
        9 => vec![DELTA],
        10 => vec![DELTA, rng.pick(&[SHUFFLE, BITSHUFFLE])],
        11 => vec![rng.pick(&[SHUFFLE, BITSHUFFLE]), DELTA],
        12 => vec![TRUNC_PREC, rng.pick(&[SHUFFLE, BITSHUFFLE, DELTA])],
        13 => vec![SHUFFLE, BITSHUFFLE],
        14 => vec![SHUFFLE, SHUFFLE],
        15 => vec![rng.pick(&[TRUNC_PREC, INT_TRUNC]), SHUFFLE],
        16 => vec![SHUFFLE, BYTEDELTA],
        17 => vec![rng.pick(&[INT_TRUNC, BYTEDELTA])],
        _ => (0..rng.range(3, 6)).map(|_| rng.pick(&[SHUFFLE, BITSHUFFLE, DELTA])).collect(),
    };
    let mut slots = [0; 6];
    let mut metas = [0; 6];
    let mut from = 0;
    for (i, &filter) in list.iter().enumerate() {
        let slot = rng.range(from, 6 - (list.len() - i));
        slots[slot] = filter;
        metas[slot] = match filter {
            SHUFFLE if rng.one_in(4) => rng.pick(&[1, 2, 3, 4, 8, 16, 255]),
            TRUNC_PREC | INT_TRUNC => rng.pick(&[1, 10, 22, 0_i8.wrapping_sub(5), -20]).to_ne_bytes()[0],
            BYTEDELTA => rng.pick(&[1, 2, 3, 4, 4, 8, 8, 16, 100]),
            _ => 0,
        };
        from = slot + 1;
    }
    (slots, metas, list.iter().any(|&f| is_truncating(f)))
}

/// A size up to a million, small ones as likely as large ones, edges more than others.
fn draw_size(rng: &mut Rng, typesize: usize) -> usize {
    if rng.one_in(12) {
        return rng.pick(&[0, 1, 2, 31, 32, 33, 255, 256, 5119, 5120, 32767, 32768, 65536]);
    }
    let magnitude = rng.pick(&[100, 1000, 10_000, 10_000, 100_000, 300_000, 1_000_000]);
    let size = rng.range(1, magnitude);
    if rng.one_in(3) { size } else { size / typesize * typesize }
}

fn draw_blocksize(rng: &mut Rng, typesize: usize, nbytes: usize, whole_items: bool) -> usize {
    // Tiny blocks of huge buffers take too long.
    let least = (nbytes / 2000).max(1);
    match rng.below(8) {
        0..=3 => 0,
        4 if !whole_items => rng.range(least, least + 5000),
        5 if !whole_items => nbytes + rng.below(3),
        6 => 1 << rng.range(9, 17),
        _ => rng.range(1, 600) * typesize.max(least),
    }
}
