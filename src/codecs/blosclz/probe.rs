//! Whether it pays to compress a stream, judged by a part of it.
//!
//! The level decides how much a stream must promise to shrink. What the C library leaves alone is left alone here, and
//! what it compresses is compressed: so the estimate is made in its way, with its shortest matches and what it
//! remembers of them, on the part that it looks at. It ends as soon as the rest cannot change the answer. Only streams
//! that pass a glance come here, in which the encoder makes large steps.

use super::{FAR_DISTANCE, LONG_MATCH, MAX_RUN};
use crate::codecs::agree::extend;
use crate::codecs::mem::{HASH_PRIME_32, load64};
use crate::cpu::select;
use crate::error::Result;
use crate::memory::zeroed_box;

/// The largest [`Demand::bits`].
const MAX_BITS: u32 = 14;
const TABLE_LEN: usize = 1 << MAX_BITS;
/// Windows of fewer bytes promise nothing.
const MIN_WINDOW: usize = LAST_START;
/// The last match starts more than this many bytes before the end of a window, and reaches to the last bytes of it at
/// most.
const LAST_START: usize = 12;
const LAST_LITERALS: usize = 2;
/// Bytes that are counted before anything is. They decide about small windows.
const START_COST: usize = 5;
/// Matches that are counted have at least this length: below [`FAR_DISTANCE`], and from it on.
const MIN_NEAR: usize = 6;
const MIN_FAR: usize = 8;

/// What a compression level wants to see.
pub(super) struct Demand {
    /// log2 of the number of table entries, and of the most bytes that are looked at; at most 14.
    pub(super) bits: u32,
    /// The window is the last 1/2^`window_shift` of the stream.
    pub(super) window_shift: u32,
    /// Smallest ratio of the bytes before compression to those after it, in percent: 100 or more.
    pub(super) min_ratio: usize,
}

impl Demand {
    /// The part of the stream `src` that is looked at; `None` if that is so short that it promises nothing.
    pub(super) fn window_of<'s>(&self, src: &'s [u8]) -> Option<&'s [u8]> {
        let window = &src[src.len() - (src.len() >> self.window_shift)..];
        let window = &window[..window.len().min(1 << self.bits)];
        (window.len() >= MIN_WINDOW).then_some(window)
    }
}

/// Where bytes were seen last: positions in the window, by a hash of the four bytes there. What was never seen was seen
/// at the start. They are counted from `base`, which rises past those of the windows before, so that the table need not
/// be cleared for each.
pub(super) struct Probe {
    table: Box<[u16; TABLE_LEN]>,
    base: u16,
}

impl Probe {
    /// Takes 32 KiB.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn new() -> Result<Probe> {
        Ok(Probe { table: zeroed_box()?, base: 0 })
    }

    /// Whether the stream of which this is the window promises as much as `demand` says.
    ///
    /// # Panics
    ///
    /// If the window is not as long as [`Demand::window_of`] makes them.
    pub(super) fn meets(&mut self, demand: &Demand, window: &[u8]) -> bool {
        let base = self.take_base(demand, window);
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            // SAFETY: the CPU was just asked for AVX2 and BMI2; `take_base` has checked the window and gave the base
            // for it.
            return unsafe { shrinks_avx2(&mut self.table, base, demand, window) };
        }
        // SAFETY: `take_base` has checked the window and gave the base for it.
        unsafe { shrinks(&mut self.table, base, demand, window) }
    }

    /// As [`meets`](Self::meets), with the instructions that every CPU has.
    #[cfg(test)]
    pub(super) fn meets_portably(&mut self, demand: &Demand, window: &[u8]) -> bool {
        let base = self.take_base(demand, window);
        // SAFETY: `take_base` has checked the window and gave the base for it.
        unsafe { shrinks(&mut self.table, base, demand, window) }
    }

    /// What the positions of this window are counted from. No entry of the table is above it, the positions stay below
    /// 2^16, and it is not above the window's address, which it is taken off.
    fn take_base(&mut self, demand: &Demand, window: &[u8]) -> usize {
        assert!((MIN_WINDOW..=1 << demand.bits.min(MAX_BITS)).contains(&window.len()));
        let len = window.len() as u16; // up to 2^14
        if self.base.checked_add(len).is_none() || usize::from(self.base) > window.as_ptr().addr() {
            self.table.fill(0);
            self.base = 0;
        }
        let base = self.base;
        self.base += len;
        usize::from(base)
    }
}

/// [`shrinks`], compiled for newer CPUs.
///
/// # Safety
///
/// The CPU has AVX2 and BMI2; and as [`shrinks`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
unsafe fn shrinks_avx2(table: &mut [u16; TABLE_LEN], base: usize, demand: &Demand, window: &[u8]) -> bool {
    // SAFETY: the caller's promise.
    unsafe { shrinks(table, base, demand, window) }
}

/// Whether the window shrinks as much as `demand` says: greedily, with one candidate per position.
///
/// # Safety
///
/// The window has at least LAST_START bytes, no entry of the table is above `base`, and `base` is not above the
/// window's address.
#[inline(always)]
unsafe fn shrinks(table: &mut [u16; TABLE_LEN], base: usize, demand: &Demand, window: &[u8]) -> bool {
    let shift = 32 - demand.bits;
    let last_start = window.len() - LAST_START;
    // The most bytes that all of it may take.
    let budget = window.len() * 100 / demand.min_ratio;
    // What the matches so far take, with the literals before them; literals from `anchor` on come to that.
    let (mut cost, mut anchor) = (START_COST, 0);
    let mut at = 1;
    loop {
        // If all up to there were literals, that would be too many.
        let end = last_start.min((anchor + budget + 1).saturating_sub(cost));
        if at >= end {
            break;
        }
        // SAFETY: `at < end <= last_start`; the entries above `base` were made on the way here, for positions before
        // `at`; the rest is the caller's promise.
        let (found, candidate) = unsafe { next_candidate(table, shift, base, window, base + at, base + end) };
        let candidate = candidate - base;
        at = found - base;
        if at == end {
            break;
        }
        // SAFETY: `at < end <= last_start`; the candidate is the start, or a position entered before `at`, and agrees
        // in more than a byte.
        let len = unsafe { match_len(window, at, candidate) };
        let is_far = at - candidate >= FAR_DISTANCE;
        if len < if is_far { MIN_FAR } else { MIN_NEAR } {
            at += 1;
            continue;
        }
        let run = at - anchor;
        let long = len.checked_sub(LONG_MATCH).map_or(0, |more| 1 + more / 255);
        cost += run + run.div_ceil(MAX_RUN) + 2 + long + if is_far { 2 } else { 0 };
        at += len;
        anchor = at;
        let rest = last_start.saturating_sub(at);
        if rest > 0 {
            // SAFETY: the match has MIN_NEAR bytes or more, and more than LAST_START follow.
            let bytes = unsafe { load64(window, at - 2) };
            table[slot(bytes as u32, shift)] = (base + at - 2) as u16; // below 2^16
        }
        if last_start * 100 >= (cost + rest + rest.div_ceil(MAX_RUN)) * demand.min_ratio {
            return true;
        }
        if cost > budget {
            return false;
        }
    }
    // The control byte of the last run is not counted.
    let run = at - anchor;
    at * 100 >= (cost + run + run / MAX_RUN) * demand.min_ratio
}

/// The first position from `at` on and before `end` whose candidate agrees in so many bytes that there may be a match,
/// and that candidate; `end` if there is none. All of these are counted from `base`, as in the table.
///
/// A function of its own, since around its loop the compiler finds no better use for the registers.
///
/// # Safety
///
/// `base < at < end`, and LAST_START bytes or more follow in the window from `end` on. Entries of the table are below
/// `at`. `base` is not above the window's address.
#[inline(never)]
unsafe fn next_candidate(
    table: &mut [u16; TABLE_LEN],
    shift: u32,
    base: usize,
    window: &[u8],
    mut at: usize,
    end: usize,
) -> (usize, usize) {
    let start = window.as_ptr();
    let origin = start.wrapping_sub(base);
    let load = |at: *const u8| {
        debug_assert!((start..=start.wrapping_add(window.len() - 8)).contains(&at));
        // SAFETY: `at` is before `end`, from which on more than 8 bytes follow, or it is a candidate. Those are before
        // `at`, and not before the start: `origin` has not wrapped around, so what was entered in other windows, `base`
        // or less, is not above the start, and gives way to it.
        u64::from_le_bytes(unsafe { at.cast::<[u8; 8]>().read() })
    };
    loop {
        let bytes = load(origin.wrapping_add(at));
        let entry = &mut table[slot(bytes as u32, shift)];
        let before = usize::from(*entry);
        *entry = at as u16; // below 2^16
        // Whether it was seen in this window is hardly predictable; what was not is taken for seen at the start,
        // without a branch.
        let candidate = origin.wrapping_add(before);
        let candidate = select(candidate > start, candidate, start);
        // In a match, one byte more agrees than is counted.
        if (bytes ^ load(candidate)) << (64 - 8 * (MIN_NEAR + 1)) == 0 {
            return (at, before.max(base));
        }
        at += 1;
        if at == end {
            return (end, base);
        }
    }
}

/// The length that the C library counts for the match of `at` with `candidate`: without the last byte, which it leaves
/// to what follows.
///
/// # Safety
///
/// `candidate < at`, two bytes or more are the same there, and more than LAST_START bytes follow from `at` on.
#[inline(always)]
unsafe fn match_len(window: &[u8], at: usize, candidate: usize) -> usize {
    let limit = window.len() - LAST_LITERALS;
    // SAFETY: the caller's promise.
    let differing = unsafe { load64(window, at) ^ load64(window, candidate) };
    let end = if differing != 0 {
        at + differing.trailing_zeros() as usize / 8
    } else {
        // SAFETY: the distance is at most `at`; `at + 8` is not beyond the limit, as more than LAST_START bytes are
        // left.
        unsafe { extend(window, at + 8, at - candidate, limit) }
    };
    end - at - 1
}

/// Table index for four bytes; `shift` is 32 less log2 of the number of entries.
#[inline(always)]
fn slot(bytes: u32, shift: u32) -> usize {
    // At most MAX_BITS bits are left after the shift; the mask tells the compiler so.
    (bytes.wrapping_mul(HASH_PRIME_32) >> shift) as usize & (TABLE_LEN - 1)
}
