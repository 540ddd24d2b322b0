//! Finds streams that cannot become shorter, whatever matches an encoder finds in them.
//!
//! A match of LZ4 repeats at least four bytes from at most 65535 bytes before, and takes three bytes itself; literals
//! take their own room and one byte more for every 255. So a stream in which few groups of four bytes occur again, such
//! as one of random bytes, has a least size, and where that is more than there is room for, the slow search need not
//! begin.

#![forbid(unsafe_code)]

use crate::error::Result;
use crate::memory::zeroed;

/// How far matches reach, at least: positions that one filter is for.
const REACH: usize = 64 << 10;
/// This many groups are noted per word of a filter: of a thousand new groups about one looks like an old one then.
const PER_WORD: usize = 2;
/// Words of the smallest filter. Of a short stream only few groups may look old.
const LEAST: usize = 256;
/// Groups that are looked at before it is asked again whether there is hope to prove anything.
const STEP: usize = 16;
/// This many repeated groups more than would be even are no reason to give up.
const SLACK: usize = 2;
/// Groups at the start of a stream that are looked at first, to find out whether to begin.
const SAMPLE: usize = 32;

/// Bloom filters of groups of four bytes.
#[derive(Default)]
pub(super) struct Novelty {
    /// For the [`REACH`] positions that are looked at.
    now: Vec<u64>,
    /// For those after them.
    behind: Vec<u64>,
}

impl Novelty {
    /// Whether no LZ4 stream of `src` fits in `capacity` bytes; `false` if that is not certain, or would take too much
    /// to find out.
    ///
    /// Looks at the end first: after a shuffle, the bytes that repeat most stand there.
    pub(super) fn rules_out(&mut self, src: &[u8], capacity: usize) -> bool {
        let Some(most) = most_repeated(src.len(), capacity) else { return false };
        let groups = src.len().saturating_sub(3);
        let sample = groups.min(SAMPLE);
        let Ok(filter) = cleared(&mut self.now, sample) else { return false };
        if sample < groups && note(&src[..sample + 3], filter, None) > most.min(SLACK) {
            return false;
        }
        // In 2^-32 of a group, per group; both numbers are at most 2^31.
        let rate = ((most as u64) << 32) / groups.max(1) as u64;
        let mut repeated = 0;
        let mut end = groups;
        while end > 0 {
            std::mem::swap(&mut self.now, &mut self.behind);
            let Ok(now) = cleared(&mut self.now, groups.min(REACH)) else { return false };
            let behind = if end < groups { Some(&self.behind[..now.len()]) } else { None };
            let start = end.saturating_sub(REACH);
            while end > start {
                let from = start.max(end.saturating_sub(STEP));
                repeated += note(&src[from..end + 3], now, behind);
                end = from;
                let even = (((groups - end) as u64 * rate) >> 32) as usize; // at most `most`
                if repeated > most.min(even + SLACK) {
                    return false;
                }
            }
        }
        true
    }
}

/// How many of `n` bytes may start a group that occurs again, if a stream of them is certain to take more than
/// `capacity` bytes; `None` if even a stream without matches may fit.
///
/// As many start a group that occurred before: let there be r of these. A stream has k matches of m bytes in all, and
/// so l = n - m literals, in k + 1 runs. Every byte of a match starts such a group, except for the last three; so
/// k <= r and m <= r + 3 k. The stream takes at least
/// - 3 k + 1 + l >= n + 1 - r bytes for tokens, offsets and literals, and
/// - (l - 14 (k + 1)) / 255 >= (n - 18 r - 14) / 255 for the lengths of the runs,
///
/// which is more than `capacity` if 255 (n - capacity) + 241 + n > 273 r.
fn most_repeated(n: usize, capacity: usize) -> Option<usize> {
    let (n, capacity) = (n as u64, capacity as u64); // widening
    let margin = (256 * n + 240).checked_sub(255 * capacity)?;
    usize::try_from(margin / 273).ok()
}

/// The part of `filter` for this many groups, without any.
fn cleared(filter: &mut Vec<u64>, groups: usize) -> Result<&mut [u64]> {
    let words = (groups / PER_WORD).next_power_of_two().max(LEAST);
    if filter.len() < words {
        *filter = zeroed(words)?;
    } else {
        filter[..words].fill(0);
    }
    Ok(&mut filter[..words])
}

/// Notes the groups in `bytes`; returns how many of them were noted before in one of the filters, or seem so.
fn note(bytes: &[u8], now: &mut [u64], behind: Option<&[u64]>) -> usize {
    let shift = 64 - now.len().trailing_zeros();
    let mut repeated = 0;
    for group in bytes.windows(4) {
        let group = u32::from_le_bytes([group[0], group[1], group[2], group[3]]);
        let hash = u64::from(group).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (hash >> shift) as usize; // less than the length
        let mask = [12, 18, 24].into_iter().fold(0, |mask, at| mask | 1u64 << (hash >> at & 63));
        let mut is_old = now[word] & mask == mask;
        if let Some(behind) = behind {
            is_old |= behind[word] & mask == mask;
        }
        now[word] |= mask;
        repeated += usize::from(is_old);
    }
    repeated
}

#[cfg(test)]
mod tests {
    use super::super::Encoder;
    use super::*;
    use crate::testing::{Random, repetitive};

    /// Size of the LZ4HC stream of `src`.
    fn size(clevel: u8, src: &[u8]) -> usize {
        let mut stream = vec![0; src.len() + src.len() / 200 + 32];
        let size = Encoder::default().compress_by_reference(clevel, src, &mut stream).unwrap();
        assert!(size > 0);
        size
    }

    #[test]
    fn random_bytes_are_too_new_to_be_shortened() {
        let mut random = Random::new(1);
        let mut novelty = Novelty::default();
        for n in [1000, 4096, 30_000, 65_539, 65_540, 200_000, 1 << 20] {
            assert!(novelty.rules_out(&random.bytes(n), n), "{n} bytes");
        }
        // Two groups may look old by chance, which is one too many.
        let unproven = (1..300).filter(|&n| !novelty.rules_out(&random.bytes(n), n)).count();
        assert!(unproven < 5, "{unproven} of 300 short streams");
    }

    #[test]
    fn what_can_be_shortened_is_not_too_new() {
        let mut random = Random::new(2);
        let mut novelty = Novelty::default();
        let (mut proven, mut fits) = (0, 0);
        for round in 0..2000 {
            // Random bytes, with more or less of them repeated from near and far.
            let n = 20 + random.below(if round % 20 == 0 { 200_000 } else { 3000 });
            let mut src = random.bytes(n);
            for _ in 0..random.below(2 + n / 100) {
                let len = random.below(30).min(n - 1);
                let (from, to) = (random.below(n - len), random.below(n - len));
                src.copy_within(from..from + len, to);
            }
            let (size, capacity) = (size(9, &src), n + random.below(20) - random.below(20));
            let is_proven = novelty.rules_out(&src, capacity);
            assert!(!is_proven || size > capacity, "{n} bytes in {capacity} become {size}");
            proven += usize::from(is_proven);
            fits += usize::from(size <= capacity);
        }
        assert!(proven > 200 && fits > 200, "{proven} streams were proven not to fit, {fits} fit");
        for seed in 0..50 {
            let src = repetitive(seed, 20_000);
            assert!(!novelty.rules_out(&src, src.len()));
        }
    }

    /// The least that `literals` in `runs` runs take in lengths: all runs but one are as long as they may be without.
    fn least_lengths(literals: usize, runs: usize) -> usize {
        literals.saturating_sub(14 * runs).div_ceil(255)
    }

    #[test]
    fn no_matches_of_so_few_repeated_groups_make_a_stream_fit() {
        for n in (1..400_usize).chain([3000, 65_536]) {
            for capacity in n.saturating_sub(3)..n + n / 255 + 20 {
                let Some(repeated) = most_repeated(n, capacity) else {
                    assert!(n + 1 + least_lengths(n, 1) <= capacity + 1);
                    continue;
                };
                for matches in 0..=repeated.min(n / 4) {
                    let literals = n.saturating_sub(repeated + 3 * matches);
                    let size = 3 * matches + 1 + literals + least_lengths(literals, matches + 1);
                    assert!(size > capacity, "{n} bytes, {repeated} repeated, {matches} matches");
                }
            }
        }
    }

    #[test]
    fn more_room_than_any_stream_takes_is_enough() {
        let mut random = Random::new(3);
        for n in [0, 1, 2, 3, 4, 5, 20, 300, 5000] {
            let src = random.bytes(n);
            assert!(!Novelty::default().rules_out(&src, n + n / 255 + 16));
            assert!(Novelty::default().rules_out(&src, n) && n > 0 || n == 0);
        }
    }
}
