//! The encoder: a greedy parse with one candidate per position, from a hash table of positions.

use super::items::{Regularity, encode_items};
use super::probe::{Demand, Probe};
use super::{FAR_DISTANCE, LONG_MATCH, MAX_RUN};
use crate::codecs::agree::{extend, extend_back};
use crate::codecs::mem::{HASH_PRIME, copy, load64, store8};
use crate::error::Result;
use crate::memory::zeroed_box;

/// log2 of the number of entries of the largest table: 32 KiB, which the first-level cache holds beside the data.
const MAX_TABLE_BITS: u32 = 14;
const TABLE_LEN: usize = 1 << MAX_TABLE_BITS;
/// Shortest input that is compressed at all.
const MIN_INPUT: usize = 16;
/// Smallest destination that is worth trying, as the C library has it.
const MIN_DEST: usize = 66;
/// No match starts in the last bytes of the input, so that eight bytes can be loaded at every start.
const LAST_START: usize = 12;
/// Literals at the end of a stream, and at its start; one of each would do, old decoders may rely on more.
const LAST_LITERALS: usize = 3;
const FIRST_LITERALS: usize = 4;
/// Shortest agreement that makes a match, and that with bytes of which the distance takes two more. Shorter ones save a
/// byte or two but cost the decoder, which needs as long for them as for longer ones: with 6 instead of 7, streams of
/// unfiltered data are 5 to 10 % smaller and both directions take 10 to 20 % longer.
pub(super) const MIN_NEAR: usize = 7;
const MIN_FAR: usize = 8;
/// Bytes that positions are hashed by. With seven, integers of four bytes shrink more and all else less, by 0.2 % in
/// sum.
const HASH_BYTES: usize = 6;
/// Bytes that copying the literals of a sequence may write, or read, beyond them.
const SLACK: usize = 32;

/// What part of the wanted ratio a glance must find, in percent, if that is at least [`HIGH_RATIO`].
const GLANCE_SHARE: usize = 90;
/// From this ratio on, in percent, a glance misses few of the matches: so much takes long ones, or many.
const HIGH_RATIO: usize = 150;
/// The ratio that it must find otherwise, in percent: no more than noise has, as it misses most of the matches that are
/// short and far between.
const ANYTHING: usize = 97;
/// Having seen this many bytes, a glance may end early: the more matches there are, the longer it takes, and the probe
/// looks at them again.
const HOPEFUL_FROM: usize = 256;
/// It does so if the bytes that it has seen shrink by one part in this many.
const HOPEFUL: usize = 32;
/// If it finds this many times the wanted ratio, no probe is needed.
const SURE: usize = 2;
/// It must have seen this many bytes for that, or all.
const SURE_FROM: usize = 1024;

/// Steps of the search, in bytes. Each is made 2^PATIENCE times if nothing is found, and after the last it is the turn
/// of the first. One step only would do for what lies a multiple of it apart, and miss all other repetitions; steps
/// without a common divisor soon meet each other's positions.
const STEPS: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 8, 9, 7, 8, 9, 7];
const PATIENCE: u32 = 6;
/// Longest step of a glance, and log2 of the number of entries of its table.
const MAX_GLANCE_STEP: usize = 4;
const GLANCE_BITS: u32 = 12;

/// log2 of the length of a stream, in bytes, below which the search takes no steps: there is not much to save, and of a
/// run it would find the second or third byte, and a distance that takes the decoder longer than 1.
const SHORT_BITS: u32 = 8;

/// What a compression level means.
struct Level {
    /// What a stream must promise to be compressed. The table for that has as many entries as that of the probe.
    demand: Demand,
    /// After each 2^`glance_patience` misses in a row, a glance steps over one more byte each time. Where a little is
    /// enough, it must not miss much.
    glance_patience: u32,
}

impl Level {
    const fn new(bits: u32, window_shift: u32, min_ratio: usize, glance_patience: u32) -> Level {
        Level { demand: Demand { bits, window_shift, min_ratio }, glance_patience }
    }
}

const LEVELS: [Level; 9] = [
    Level::new(12, 3, 200, 4),
    Level::new(13, 2, 150, 4),
    Level::new(14, 2, 120, 4),
    Level::new(14, 1, 120, 4),
    Level::new(14, 1, 120, 4),
    Level::new(14, 1, 120, 4),
    Level::new(14, 0, 115, 5),
    Level::new(14, 0, 110, 5),
    Level::new(14, 0, 100, 6),
];

/// Compresses streams, one per call, and owns the tables for that.
///
/// The bytes of a stream depend on nothing but the arguments of the call.
pub struct Encoder {
    parser: Parser,
    probe: Probe,
}

impl Encoder {
    /// An encoder with empty tables (64 KiB).
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub fn new() -> Result<Encoder> {
        Ok(Encoder { parser: Parser { table: zeroed_box()? }, probe: Probe::new()? })
    }

    /// Compresses `src` into `dest` at level `clevel` and returns the number of bytes written.
    ///
    /// 0 means that the stream does not fit in `dest`, is too short, or promises too little for this level; `dest`
    /// may hold anything then. Levels outside 1 to 9 count as the nearest one inside.
    pub fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> usize {
        if src.len() < MIN_INPUT || dest.len() < MIN_DEST {
            return 0;
        }
        let level = &LEVELS[usize::from(clevel.clamp(1, 9)) - 1];
        if !self.is_worthwhile(level, src) {
            return 0;
        }
        self.parser.encode::<false>(level, src, dest).unwrap_or(0)
    }

    /// Compresses without the probe and with the instructions that every CPU has.
    #[cfg(test)]
    pub(super) fn compress_portably(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        let level = &LEVELS[usize::from(clevel) - 1];
        parse::<false>(&mut self.parser.table, level, src, dest)
    }

    /// Judges by a part of the input whether compressing all of it pays: a glance with large steps tells most of what
    /// does not, and the probe decides about the rest.
    fn is_worthwhile(&mut self, level: &Level, src: &[u8]) -> bool {
        let demand = &level.demand;
        let Some(window) = demand.window_of(src) else { return false };
        if window.len() < 1 << SHORT_BITS {
            // A glance would not take any steps either.
            return self.probe.meets(demand, window);
        }
        let least =
            if demand.min_ratio >= HIGH_RATIO { demand.min_ratio * GLANCE_SHARE / 100 } else { ANYTHING };
        match self.parser.encode::<true>(level, window, &mut []) {
            Some(ratio) if ratio >= SURE * demand.min_ratio => true,
            Some(ratio) if ratio >= least => self.probe.meets(demand, window),
            _ => false,
        }
    }
}

/// Encodes, and owns the table for that: 1 more than the positions that were looked at, modulo 2^16, by a hash of the
/// bytes there. What lies further back than that is taken for something nearer, and turns out to differ.
struct Parser {
    table: Box<[u16; TABLE_LEN]>,
}

impl Parser {
    /// Encodes `src`, of at least LAST_START bytes, into `dest`, and returns the size; `None` if it does not fit. If
    /// `DRY`, it only glances at it, and returns the ratio in percent; what is wanted at least if it ends early.
    fn encode<const DRY: bool>(&mut self, level: &Level, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            // SAFETY: the CPU was just asked for AVX2 and BMI2.
            return unsafe { parse_avx2::<DRY>(&mut self.table, level, src, dest) };
        }
        parse::<DRY>(&mut self.table, level, src, dest)
    }
}

/// [`parse`], compiled for newer CPUs.
///
/// # Safety
///
/// The CPU has AVX2 and BMI2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
unsafe fn parse_avx2<const DRY: bool>(
    table: &mut [u16; TABLE_LEN],
    level: &Level,
    src: &[u8],
    dest: &mut [u8],
) -> Option<usize> {
    parse::<DRY>(table, level, src, dest)
}

/// Table index for the first HASH_BYTES bytes of `bytes`; `shift` is 64 less log2 of the number of entries.
#[inline(always)]
fn slot(bytes: u64, shift: u32) -> usize {
    // At most MAX_TABLE_BITS bits are left after the shift; the mask tells the compiler so.
    ((bytes << (64 - 8 * HASH_BYTES)).wrapping_mul(HASH_PRIME) >> shift) as usize & (TABLE_LEN - 1)
}

/// The step after this many times 2^`patience` misses.
#[inline(always)]
fn step<const DRY: bool>(rounds: usize) -> usize {
    if DRY { (1 + rounds).min(MAX_GLANCE_STEP) } else { usize::from(STEPS[rounds % STEPS.len()]) }
}

/// Searches `src` for matches and encodes what it finds. See [`Parser::encode`].
#[inline(always)]
fn parse<const DRY: bool>(
    table: &mut [u16; TABLE_LEN],
    level: &Level,
    src: &[u8],
    dest: &mut [u8],
) -> Option<usize> {
    let bits = if DRY { GLANCE_BITS } else { level.demand.bits }.min(src.len().ilog2());
    let shift = 64 - bits;
    let patience = match DRY {
        _ if src.len() < 1 << SHORT_BITS => SHORT_BITS,
        true => level.glance_patience,
        false => PATIENCE,
    };
    let last_start = src.len().checked_sub(LAST_START)?;
    let match_end = src.len() - LAST_LITERALS;
    // What was never seen was seen at the start.
    table[..1 << bits].fill(1);
    let mut out = Output::<DRY> { src, dest, at: 0 };
    let mut anchor = 0;
    let mut at = FIRST_LITERALS;
    let mut regularity = Regularity::default();
    'sequences: loop {
        // The step is taken from a count that does not depend on it, one probe ahead: the CPU need not wait for it.
        let mut misses = 0;
        let mut next = at;
        let distance = loop {
            at = next;
            if at > last_start {
                break 'sequences;
            }
            next += step::<DRY>(misses >> patience);
            misses += 1;
            // SAFETY: `at + 12 <= src.len()`.
            let bytes = unsafe { load64(src, at) };
            let entry = &mut table[slot(bytes, shift)];
            // Up to 2^16, and up to `at`: positions only rise, and an entry is 1 more than an earlier one, modulo 2^16.
            let distance = usize::from((at as u16).wrapping_sub(*entry)) + 1;
            *entry = (at + 1) as u16;
            // SAFETY: `distance <= at`, so the candidate lies in `src` before `at`.
            let differing = bytes ^ unsafe { load64(src, at - distance) };
            let least = if distance < FAR_DISTANCE { MIN_NEAR } else { MIN_FAR };
            if differing << (64 - 8 * least) == 0 {
                break distance;
            }
            // The table shows runs only to steps of a byte. Eight equal bytes stay as they are when rotated.
            if bytes == bytes.rotate_left(8) {
                at += 1;
                break 1;
            }
        };
        // SAFETY: `distance <= at`, and `at + MIN_NEAR <= match_end`.
        let mut end = unsafe { extend(src, at + MIN_NEAR, distance, match_end) };
        // SAFETY: `distance <= at`.
        let start = unsafe { extend_back(src, at, distance, anchor.max(FIRST_LITERALS)) };
        // Nine bytes take one byte more than eight; the ninth is left to the next sequence, where it costs nothing
        // more.
        let rest = usize::from(!DRY && end - start == LONG_MATCH);
        out.sequence(anchor, start, end - rest - start, distance)?;
        if DRY && end >= HOPEFUL_FROM && out.at + end / HOPEFUL <= end {
            let ratio = 100 * end / out.at;
            if end >= SURE_FROM || ratio < SURE * level.demand.min_ratio {
                return Some(ratio.max(level.demand.min_ratio));
            }
        }
        let is_of_items = !DRY && regularity.is_enough(distance, end - anchor);
        anchor = end - rest;
        if is_of_items {
            // SAFETY: `1 <= distance <= anchor <= match_end`.
            anchor = unsafe { encode_items(&mut out, anchor, distance, match_end) }?;
            end = anchor;
        }
        if end > last_start {
            break;
        }
        // SAFETY: `end + 12 <= src.len()`, and the match has at least six bytes.
        let bytes = unsafe { load64(src, end - 4) } >> 16;
        table[slot(bytes, shift)] = (end - 1) as u16;
        // What agrees from the last byte of a match on is likely to go on longer than what agrees from the next one on,
        // where the bytes have just changed.
        at = end - 1;
    }
    out.finish(anchor)
}

/// The stream being written; counts only if `DRY`.
pub(super) struct Output<'a, const DRY: bool> {
    pub(super) src: &'a [u8],
    dest: &'a mut [u8],
    /// Bytes written.
    at: usize,
}

impl<const DRY: bool> Output<'_, DRY> {
    /// Writes the literals `from..to` of the source and the match after them. `None` if they do not fit.
    #[inline(always)]
    pub(super) fn sequence(&mut self, from: usize, to: usize, len: usize, distance: usize) -> Option<()> {
        let run = to - from;
        if DRY {
            // As the C library counts, whose matches leave their last byte to the next run.
            self.at += run + run.div_ceil(MAX_RUN).max(1) + 3;
            self.at += if len < LONG_MATCH { 0 } else { 1 + (len - LONG_MATCH) / 255 };
            self.at += if distance < FAR_DISTANCE { 0 } else { 2 };
            return Some(());
        }
        // 8: the control byte, the last extension byte, three distance bytes, and the roundings.
        let bound = run + run / MAX_RUN + len / 128 + 8 + SLACK;
        if bound > self.dest.len() - self.at || to + SLACK > self.src.len() {
            return self.sequence_near_end(from, to, len, distance);
        }
        let mut at = self.at;
        let mut from = from;
        while to - from > MAX_RUN {
            // SAFETY: `bound` counts a control byte for each whole run.
            unsafe { store8(self.dest, at, 31) };
            // SAFETY: the same, and `from + 32 < to`.
            unsafe { copy::<MAX_RUN>(self.src, from, self.dest, at + 1) };
            at += MAX_RUN + 1;
            from += MAX_RUN;
        }
        // Whether there are literals, extension bytes, or a far distance is hardly predictable, so from here on what
        // turns out not to be there is overwritten by what follows.
        let run = to - from;
        // SAFETY: `bound` counts this run's control byte.
        unsafe { store8(self.dest, at, run.wrapping_sub(1) as u8) };
        // SAFETY: `bound` counts SLACK bytes after everything, and `to + SLACK <= src.len()`.
        unsafe { copy::<MAX_RUN>(self.src, from, self.dest, at + 1) };
        at += run + usize::from(run > 0);
        let is_far = distance >= FAR_DISTANCE;
        let near = if is_far { FAR_DISTANCE } else { distance } - 1;
        let far = distance.wrapping_sub(FAR_DISTANCE);
        let is_long = len >= LONG_MATCH;
        // SAFETY: `bound` counts all bytes of the match, here and below.
        unsafe { store8(self.dest, at, (((len - 2).min(7) << 5) | (near >> 8)) as u8) };
        at += 1;
        let mut rest = len.wrapping_sub(LONG_MATCH);
        while is_long && rest >= 255 {
            // SAFETY: as above.
            unsafe { store8(self.dest, at, 255) };
            at += 1;
            rest -= 255;
        }
        // SAFETY: as above.
        unsafe { store8(self.dest, at, rest as u8) };
        at += usize::from(is_long);
        // SAFETY: as above.
        unsafe { store8(self.dest, at, near as u8) };
        // SAFETY: as above.
        unsafe { store8(self.dest, at + 1, (far >> 8) as u8) };
        // SAFETY: as above.
        unsafe { store8(self.dest, at + 2, far as u8) };
        self.at = at + 1 + 2 * usize::from(is_far);
        Some(())
    }

    /// [`sequence`](Self::sequence) with checks of every byte, for when either buffer may end.
    #[cold]
    #[inline(never)]
    fn sequence_near_end(&mut self, from: usize, to: usize, len: usize, distance: usize) -> Option<()> {
        self.literals(from, to)?;
        let (far, near) = if distance < FAR_DISTANCE {
            (None, distance - 1)
        } else {
            (Some(distance - FAR_DISTANCE), FAR_DISTANCE - 1)
        };
        let high = (near >> 8) as u8;
        if len < LONG_MATCH {
            self.put(((len as u8 - 2) << 5) | high)?;
        } else {
            self.put((7 << 5) | high)?;
            let rest = len - LONG_MATCH;
            for _ in 0..rest / 255 {
                self.put(255)?;
            }
            self.put((rest % 255) as u8)?;
        }
        self.put(near as u8)?;
        if let Some(far) = far {
            self.put((far >> 8) as u8)?;
            self.put(far as u8)?;
        }
        Some(())
    }

    /// Writes the last literals, from `from` to the end of the source, and returns the size of the stream, or its
    /// ratio.
    fn finish(&mut self, from: usize) -> Option<usize> {
        if DRY {
            let run = self.src.len() - from;
            return Some(100 * self.src.len() / (self.at + run + run.div_ceil(MAX_RUN)));
        }
        self.literals(from, self.src.len())?;
        // Encoders mark the first element this way; decoders do not look at it.
        self.dest[0] |= 1 << 5;
        Some(self.at)
    }

    fn literals(&mut self, from: usize, to: usize) -> Option<()> {
        for run in self.src[from..to].chunks(MAX_RUN) {
            let dest = self.dest.get_mut(self.at..=self.at + run.len())?;
            dest[0] = (run.len() - 1) as u8;
            dest[1..].copy_from_slice(run);
            self.at += 1 + run.len();
        }
        Some(())
    }

    fn put(&mut self, byte: u8) -> Option<()> {
        *self.dest.get_mut(self.at)? = byte;
        self.at += 1;
        Some(())
    }
}
