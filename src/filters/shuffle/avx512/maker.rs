//! How bytes are transposed between registers, and cache lines written, on CPUs of different makers.
//!
//! Both ways collect columns in `log2 C` rounds. In each, two registers become two that hold half of the columns each,
//! with twice as many items next to one another.

use crate::filters::shuffle::lanes::FAR;
use crate::pages::LINE;
use std::arch::x86_64::*;

/// A maker of CPUs.
///
/// # Safety
///
/// Of the unsafe functions: the CPU has AVX-512 with VBMI; `C` is 2, 4, 8 or 16, and `C / 2 < W <= C`.
pub(in crate::filters) trait Maker {
    /// See [`Lanes::stores_wait`](crate::filters::shuffle::lanes::Lanes::stores_wait).
    const STORES_WAIT: bool;

    /// From registers of `64 / C` items of `W` bytes to columns: column `b < W` becomes register `b`.
    unsafe fn to_columns<const C: usize, const W: usize>(items: [__m512i; C]) -> [__m512i; C];

    /// Undoes [`to_columns`](Self::to_columns); what registers hold after their items means nothing.
    unsafe fn to_items<const C: usize, const W: usize>(columns: [__m512i; C]) -> [__m512i; C];

    /// How many items the second tile of a shuffle is after the first one: so many that loads, or stores, are of whole
    /// cache lines from then on, as far as may be.
    fn step_of_shuffle<const W: usize>(stride: usize, src: &[u8], dest: &[u8]) -> usize;

    /// The same for an unshuffle, which stores items.
    fn step_of_unshuffle<const W: usize>(dest: &[u8]) -> usize;

    /// Whether the AVX2 code unshuffles `len` bytes of such items faster.
    fn unshuffles_by_avx2(width: usize, len: usize) -> bool;
}

/// AMD: permutations of the bytes of two registers take no longer than any others, so each round is one of these.
pub(in crate::filters) struct Amd;

/// Intel: permutations of the bytes of two registers take twice as long as those of one register, and as those of
/// words of two. So bytes are permuted within registers first, such that those of equal columns make up words of four
/// bytes, which the rounds then move as they are.
///
/// And stores that cross lines wait for both if these are not in the nearest cache: shuffles are up to three times as
/// fast if lines are written as a whole, or asked for ahead.
pub(in crate::filters) struct Intel;

/// The bytes that a permutation takes; 64 and above mean the second register.
type Bytes = [u8; 64];
/// The words of four bytes that a permutation takes; 16 and above mean the second register.
type Words = [u32; 16];

/// Granules of `g` bytes of half `half` (0 or 1) of two registers, alternating.
const fn zip(g: usize, half: usize) -> Bytes {
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 {
        let register = p / g % 2;
        index[p] = (64 * register + 32 * half + p / (2 * g) * g + p % g) as u8; // below 128
        p += 1;
    }
    index
}

/// [`zip`] of granules of `g` words.
const fn zip_words(g: usize, half: usize) -> Words {
    let mut index = [0; 16];
    let mut p = 0;
    while p < 16 {
        let register = p / g % 2;
        index[p] = (16 * register + 8 * half + p / (2 * g) * g + p % g) as u32; // below 32
        p += 1;
    }
    index
}

/// Every other granule of `g` words of two registers, from number `first` (0 or 1) on: undoes [`zip_words`].
const fn unzip_words(g: usize, first: usize) -> Words {
    let mut index = [0; 16];
    let mut p = 0;
    while p < 16 {
        index[p] = ((2 * (p / g) + first) * g + p % g) as u32; // below 32
        p += 1;
    }
    index
}

/// Two registers of `64 / c` items of `w` bytes to half of their columns.
const fn split_pair(c: usize, w: usize, half: usize) -> Bytes {
    let per_register = 64 / c;
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 {
        let column = half * (c / 2) + p / (2 * per_register);
        let (register, item) = (p / per_register % 2, p % per_register);
        if column < w {
            index[p] = (64 * register + item * w + column) as u8; // below 128
        }
        p += 1;
    }
    index
}

/// Half of the columns in two registers to `64 / c` items of `w` bytes.
const fn join_pair(c: usize, w: usize) -> [Bytes; 2] {
    let mut index = [[0; 64]; 2];
    let mut p = 0;
    while p < 64 / c * w {
        let (item, column) = (p / w, p % w);
        let register = column / (c / 2);
        let at = 64 * register + item * (c / 2) + column % (c / 2);
        index[0][p] = at as u8; // below 128
        index[1][p] = (at + 32) as u8; // below 128
        p += 1;
    }
    index
}

/// One register of `64 / c` items of `w` bytes to its `c` columns.
const fn split(c: usize, w: usize) -> Bytes {
    let per_register = 64 / c;
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 {
        let (column, item) = (p / per_register, p % per_register);
        if column < w {
            index[p] = (item * w + column) as u8; // below 64
        }
        p += 1;
    }
    index
}

/// Undoes [`split`].
const fn join(c: usize, w: usize) -> Bytes {
    let per_register = 64 / c;
    let mut index = [0; 64];
    let mut p = 0;
    while p < per_register * w {
        let (item, column) = (p / w, p % w);
        index[p] = (column * per_register + item) as u8; // below 64
        p += 1;
    }
    index
}

/// Permutations of granules of `G` bytes.
struct Granules<const G: usize>;
impl<const G: usize> Granules<G> {
    const ZIP: [Bytes; 2] = [zip(G, 0), zip(G, 1)];
    const ZIP_WORDS: [Words; 2] = [zip_words(G / 4, 0), zip_words(G / 4, 1)];
    const UNZIP_WORDS: [Words; 2] = [unzip_words(G / 4, 0), unzip_words(G / 4, 1)];
}

/// Permutations of items of `W` bytes, `64 / C` in each register.
struct Items<const C: usize, const W: usize>;
impl<const C: usize, const W: usize> Items<C, W> {
    const SPLIT_PAIR: [Bytes; 2] = [split_pair(C, W, 0), split_pair(C, W, 1)];
    const JOIN_PAIR: [Bytes; 2] = join_pair(C, W);
    const SPLIT: Bytes = split(C, W);
    const JOIN: Bytes = join(C, W);
}

/// An array of 64 bytes as a register.
macro_rules! register {
    ($array:expr) => {
        _mm512_loadu_si512((&raw const $array).cast())
    };
}

/// One round: in groups of `n` registers, permutes neighbours; the first results go to the first half of the group.
#[inline(always)]
unsafe fn round<const C: usize>(r: [__m512i; C], n: usize, index: &[Bytes; 2]) -> [__m512i; C] {
    let mut out = r;
    // SAFETY: the caller checked the CPU.
    unsafe {
        let (low, high) = (register!(index[0]), register!(index[1]));
        for group in (0..C).step_by(n) {
            for k in 0..n / 2 {
                let (a, b) = (r[group + 2 * k], r[group + 2 * k + 1]);
                out[group + k] = _mm512_permutex2var_epi8(a, low, b);
                out[group + n / 2 + k] = _mm512_permutex2var_epi8(a, high, b);
            }
        }
    }
    out
}

/// As [`round`], for granules of `G` bytes, which are words.
#[inline(always)]
unsafe fn zip_round<const C: usize, const G: usize>(r: [__m512i; C], n: usize) -> [__m512i; C] {
    let mut out = r;
    // SAFETY: the caller checked the CPU.
    unsafe {
        let [low, high] = Granules::<G>::ZIP_WORDS;
        let (low, high) = (register!(low), register!(high));
        for group in (0..C).step_by(n) {
            for k in 0..n / 2 {
                let (a, b) = (r[group + 2 * k], r[group + 2 * k + 1]);
                out[group + k] = _mm512_permutex2var_epi32(a, low, b);
                out[group + n / 2 + k] = _mm512_permutex2var_epi32(a, high, b);
            }
        }
    }
    out
}

/// Undoes [`zip_round`].
#[inline(always)]
unsafe fn unzip_round<const C: usize, const G: usize>(r: [__m512i; C], n: usize) -> [__m512i; C] {
    let mut out = r;
    // SAFETY: the caller checked the CPU.
    unsafe {
        let [even, odd] = Granules::<G>::UNZIP_WORDS;
        let (even, odd) = (register!(even), register!(odd));
        for group in (0..C).step_by(n) {
            for k in 0..n / 2 {
                let (a, b) = (r[group + k], r[group + n / 2 + k]);
                out[group + 2 * k] = _mm512_permutex2var_epi32(a, even, b);
                out[group + 2 * k + 1] = _mm512_permutex2var_epi32(a, odd, b);
            }
        }
    }
    out
}

/// The same permutation of the bytes of each register.
#[inline(always)]
unsafe fn permute<const C: usize>(mut r: [__m512i; C], index: &Bytes) -> [__m512i; C] {
    // SAFETY: the caller checked the CPU.
    unsafe {
        let index = register!(*index);
        for r in &mut r {
            *r = _mm512_permutexvar_epi8(index, *r);
        }
    }
    r
}

impl Maker for Amd {
    const STORES_WAIT: bool = false;

    #[inline(always)]
    unsafe fn to_columns<const C: usize, const W: usize>(items: [__m512i; C]) -> [__m512i; C] {
        // SAFETY: passed on to the caller.
        unsafe {
            let r = round::<C>(items, C, &Items::<C, W>::SPLIT_PAIR);
            match C {
                2 => r,
                4 => round::<C>(r, 2, &Granules::<32>::ZIP),
                8 => round::<C>(round::<C>(r, 4, &Granules::<16>::ZIP), 2, &Granules::<32>::ZIP),
                _ => {
                    let r = round::<C>(r, 8, &Granules::<8>::ZIP);
                    round::<C>(round::<C>(r, 4, &Granules::<16>::ZIP), 2, &Granules::<32>::ZIP)
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn to_items<const C: usize, const W: usize>(columns: [__m512i; C]) -> [__m512i; C] {
        // SAFETY: passed on to the caller.
        unsafe {
            let r = match C {
                2 => columns,
                4 => round::<C>(columns, 4, &Granules::<1>::ZIP),
                8 => round::<C>(round::<C>(columns, 8, &Granules::<1>::ZIP), 4, &Granules::<2>::ZIP),
                _ => {
                    let r = round::<C>(columns, 16, &Granules::<1>::ZIP);
                    round::<C>(round::<C>(r, 8, &Granules::<2>::ZIP), 4, &Granules::<4>::ZIP)
                }
            };
            round::<C>(r, 2, &Items::<C, W>::JOIN_PAIR)
        }
    }

    /// Of items of two bytes, loads that are not of whole lines take twice as long; of wider ones, it is the stores, if
    /// all rows are aligned alike. Of less than two tiles, one more takes longer than what it wins.
    #[inline(always)]
    fn step_of_shuffle<const W: usize>(stride: usize, src: &[u8], dest: &[u8]) -> usize {
        let (from, to) = (src.as_ptr().addr(), dest.as_ptr().addr());
        let are_rows_alike = stride % LINE == 0;
        if src.len() < 128 * W {
            64
        } else if W.is_power_of_two() && from % W == 0 && (W == 2 || !are_rows_alike) {
            64 - from % LINE / W
        } else if are_rows_alike {
            64 - to % LINE
        } else {
            64
        }
    }

    /// Items of two bytes are stored in whole lines.
    #[inline(always)]
    fn step_of_unshuffle<const W: usize>(dest: &[u8]) -> usize {
        let to = dest.as_ptr().addr();
        if W == 2 && to % W == 0 { 64 - to % LINE / W } else { 64 }
    }

    /// All work of the AVX2 code is one zip per register and round where items have 4 or 8 bytes; compiled for
    /// AVX-512, it is slower. For few items, its tiles are too small.
    #[inline(always)]
    fn unshuffles_by_avx2(width: usize, len: usize) -> bool {
        /// Of items of 4 or 8 bytes.
        const FEW: usize = 2 << 10;
        /// Of items of 2 bytes: as long as the first-level cache has room for most of them.
        const NEAR: usize = 32 << 10;
        match width {
            2 => len > NEAR,
            4 | 8 => len > FEW,
            _ => false,
        }
    }
}

impl Maker for Intel {
    const STORES_WAIT: bool = true;

    #[inline(always)]
    unsafe fn to_columns<const C: usize, const W: usize>(items: [__m512i; C]) -> [__m512i; C] {
        // SAFETY: passed on to the caller.
        unsafe {
            let r = permute(items, &Items::<C, W>::SPLIT);
            let r = if C >= 16 { zip_round::<C, 4>(r, 16) } else { r };
            let r = if C >= 8 { zip_round::<C, 8>(r, 8) } else { r };
            let r = if C >= 4 { zip_round::<C, 16>(r, 4) } else { r };
            zip_round::<C, 32>(r, 2)
        }
    }

    #[inline(always)]
    unsafe fn to_items<const C: usize, const W: usize>(columns: [__m512i; C]) -> [__m512i; C] {
        // SAFETY: passed on to the caller.
        unsafe {
            let r = unzip_round::<C, 32>(columns, 2);
            let r = if C >= 4 { unzip_round::<C, 16>(r, 4) } else { r };
            let r = if C >= 8 { unzip_round::<C, 8>(r, 8) } else { r };
            let r = if C >= 16 { unzip_round::<C, 4>(r, 16) } else { r };
            permute(r, &Items::<C, W>::JOIN)
        }
    }

    #[inline(always)]
    fn step_of_shuffle<const W: usize>(stride: usize, src: &[u8], dest: &[u8]) -> usize {
        let is_far = src.len() >= FAR;
        if is_far && stride % LINE == 0 { 64 - dest.as_ptr().addr() % LINE } else { 64 }
    }

    #[inline(always)]
    fn step_of_unshuffle<const W: usize>(dest: &[u8]) -> usize {
        let to = dest.as_ptr().addr();
        let pays = W == 2 || dest.len() >= FAR;
        if pays && W.is_power_of_two() && to % W == 0 { 64 - to % LINE / W } else { 64 }
    }

    #[inline(always)]
    fn unshuffles_by_avx2(_: usize, _: usize) -> bool {
        false
    }
}
