//! Copies of earlier output: what matches of the LZ77 codecs come down to.

use super::mem::{copy_inside, load64, load128, store};

/// Bytes that [`copy_long`] may write past the end of a match.
pub(crate) const OUT_SLACK: usize = 64;
/// Distances below this one are within reach of stores that have not got to the cache yet.
const CLOSE: usize = 128;
/// Length from which calling the memory functions of the C library pays.
pub(crate) const VERY_LONG: usize = 512;

/// Copies eight bytes from `distance` bytes back to `op`.
///
/// # Safety
///
/// `1 <= distance <= op` and `op + 8 <= dest.len()`.
#[inline(always)]
pub(crate) unsafe fn copy_short(dest: &mut [u8], op: usize, distance: usize) {
    /// Multiplying by the entry for `d` repeats the `d` lowest bytes.
    const REPEAT: [u64; 8] = [
        0,
        0x0101_0101_0101_0101,
        0x0001_0001_0001_0001,
        0x0001_0000_0100_0001,
        0x0000_0001_0000_0001,
        0x0000_0100_0000_0001,
        0x0001_0000_0000_0001,
        0x0100_0000_0000_0001,
    ];
    if distance >= 8 {
        // SAFETY: the caller's promise; the source lies before `op`.
        unsafe { copy_inside::<8>(dest, op - distance, op) };
    } else {
        // SAFETY: `op - distance + 8 <= op + 8`.
        let pattern = unsafe { load64(dest, op - distance) } & ((1 << (8 * distance)) - 1);
        // SAFETY: the caller's promise.
        unsafe { store(dest, op, pattern.wrapping_mul(REPEAT[distance]).to_le_bytes()) };
    }
}

/// Copies `len` bytes from `distance` bytes back to `op`. May write up to OUT_SLACK bytes more.
///
/// # Safety
///
/// `1 <= distance <= op` and `op + len + OUT_SLACK <= dest.len()`. If `AVX2`, the CPU has it.
#[inline(always)]
pub(crate) unsafe fn copy_long<const AVX2: bool>(
    dest: &mut [u8],
    op: usize,
    mut distance: usize,
    len: usize,
) {
    let end = op + len;
    let mut to = op;
    if distance > 16 {
        if distance < 32 {
            // SAFETY: `to < end`, so `to + 32` is within the slack; both sources lie before what they are copied to.
            unsafe { copy_inside::<16>(dest, to - distance, to) };
            // SAFETY: the same.
            unsafe { copy_inside::<16>(dest, to + 16 - distance, to + 16) };
            to += 32;
            if to >= end {
                return;
            }
            distance *= 2;
        }
        if distance < CLOSE {
            // Loading what was stored a moment ago in other pieces takes long, so copy from further and further back.
            while to + distance < end {
                let period_end = to + distance;
                while to < period_end {
                    // SAFETY: `to < end`, so `to + 32` is within the slack; the source lies before it.
                    unsafe { copy_inside::<32>(dest, to - distance, to) };
                    to += 32;
                }
                // Now at least this many bytes back, all consists of periods.
                distance *= 2;
            }
        }
        while to < end {
            // SAFETY: as above.
            unsafe { copy_inside::<32>(dest, to - distance, to) };
            to += 32;
        }
        return;
    }
    // SAFETY: `op - distance + 16 <= op + 16`, which is within the slack. The CPU has AVX2 if `AVX2`.
    let pattern = unsafe { repeat::<AVX2>(load128(dest, op - distance), distance) };
    let step = usize::from(WHOLE_PERIODS[distance]);
    if step == 16 {
        let mut twice = [0; 32];
        twice[..16].copy_from_slice(&pattern.to_le_bytes());
        twice[16..].copy_from_slice(&pattern.to_le_bytes());
        loop {
            // SAFETY: `to < end`, so `to + 64` is within the slack.
            unsafe { store(dest, to, twice) };
            // SAFETY: the same.
            unsafe { store(dest, to + 32, twice) };
            to += 64;
            if to >= end {
                return;
            }
        }
    }
    loop {
        // SAFETY: `to < end`, so `to + 16` is within the slack, and so is the next one, at most 15 further.
        unsafe { store(dest, to, pattern.to_le_bytes()) };
        // SAFETY: the same.
        unsafe { store(dest, to + step, pattern.to_le_bytes()) };
        to += 2 * step;
        if to >= end {
            return;
        }
    }
}

/// The largest multiple of the index that is at most 16.
const WHOLE_PERIODS: [u8; 17] = [0, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15, 16];

/// Sixteen bytes that repeat the first `period` bytes of `bytes`, for a period of 1 to 16.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn repeat<const AVX2: bool>(bytes: u128, period: usize) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::{__m128i, _mm_shuffle_epi8};
        // SAFETY: both types are sixteen bytes without invalid values.
        let bytes = unsafe { std::mem::transmute::<u128, __m128i>(bytes) };
        // SAFETY: as above.
        let order = unsafe { std::mem::transmute::<[u8; 16], __m128i>(ORDERS[period]) };
        // SAFETY: a CPU with AVX2 has SSSE3.
        let repeated = unsafe { _mm_shuffle_epi8(bytes, order) };
        // SAFETY: as above.
        return unsafe { std::mem::transmute::<__m128i, u128>(repeated) };
    }
    if period == 16 {
        return bytes;
    }
    let mut bits = 8 * period;
    let mut pattern = bytes & ((1 << bits) - 1);
    while bits < 128 {
        pattern |= pattern << bits;
        bits *= 2;
    }
    pattern
}

/// For each period, which byte goes where when it is repeated.
#[cfg(target_arch = "x86_64")]
static ORDERS: [[u8; 16]; 17] = {
    let mut orders = [[0; 16]; 17];
    let mut period = 1;
    while period <= 16 {
        let mut i = 0;
        while i < 16 {
            orders[period][i] = (i % period) as u8;
            i += 1;
        }
        period += 1;
    }
    orders
};

/// Copies `len` bytes from `distance` bytes back to `op`, and nothing beyond.
pub(crate) fn copy_exactly(dest: &mut [u8], op: usize, distance: usize, len: usize) {
    assert!((1..=op).contains(&distance) && len <= dest.len() - op);
    if distance == 1 {
        let byte = dest[op - 1];
        dest[op..op + len].fill(byte);
        return;
    }
    let mut done = 0;
    if distance < VERY_LONG / 4 {
        // The start of a pattern, so that it is not copied in tiny pieces.
        done = len.min(VERY_LONG - OUT_SLACK).min((dest.len() - op).saturating_sub(OUT_SLACK));
        if done > 0 {
            // SAFETY: `distance` is asserted above, and `done` leaves OUT_SLACK bytes.
            unsafe { copy_long::<false>(dest, op, distance, done) };
        }
    }
    while done < len {
        // Everything so far consists of periods of `distance` bytes, so a multiple of it leads to the same bytes.
        let back = (done / distance + 1) * distance;
        let n = back.min(len - done);
        let to = op + done;
        dest.copy_within(to - back..to - back + n, to);
        done += n;
    }
}
