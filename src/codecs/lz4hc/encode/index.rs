//! Where groups of four bytes occurred before: candidates for matches, nearest first.
//!
//! The reference implementation chains the positions of a bucket, which are those of groups with the same hash, and
//! looks at one candidate after the other. Each step waits for the one before, and the CPU has to guess whether there
//! is another. Here the positions of a segment are counted first, so that each bucket has its place in one array. So
//! candidates stand side by side, with tags, which tell nearly all other groups from the one that is sought: many of
//! them are compared at once, without a guess. And where nothing matches, all that there is to do for a position is a
//! few instructions ([`Index::seek`]).

use crate::codecs::lz4::output::MAX_DISTANCE;
use crate::codecs::mem::{HASH_PRIME_32, load32};
use crate::cpu::select;
use crate::error::Result;
use crate::memory::zeroed_box;
use std::arch::x86_64::*;

/// Positions of a segment. Matches reach into the one before at most, and places among this many fit in 16 bits.
const SEGMENT: usize = MAX_DISTANCE;
/// Those of the reference: which candidates are found depends on which positions share a bucket.
const BUCKET_BITS: u32 = 15;
pub(super) const BUCKETS: usize = 1 << BUCKET_BITS;
/// Candidates of a segment that are looked at together.
const BLOCK: usize = 16;
/// Those of a segment that [`Index::seek`] looks at.
const FEW: usize = 8;

/// A hash of four bytes that no other four bytes have.
#[derive(Clone, Copy)]
pub(super) struct Hash(u32);

impl Hash {
    #[inline(always)]
    pub(super) fn of(group: u32) -> Hash {
        Hash(group.wrapping_mul(HASH_PRIME_32))
    }

    #[inline(always)]
    pub(super) fn bucket(self) -> usize {
        (self.0 >> (u32::BITS - BUCKET_BITS)) as usize
    }

    /// All but one of the bits that the bucket leaves, in the upper half.
    #[inline(always)]
    fn tag(self) -> u32 {
        self.0 << BUCKET_BITS & 0xffff_0000
    }
}

/// Where the positions of a bucket are among the entries of two segments: in 16 bits each, where they begin and end in
/// the latest one, and where they begin and end in the one before. The end in the latest moves with each position that
/// is entered.
#[derive(Clone, Copy)]
struct Bucket(u64);

impl Bucket {
    #[inline(always)]
    fn near_end(self) -> u16 {
        (self.0 >> 16) as u16
    }

    #[inline(always)]
    fn far_end(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// How many positions there are in the latest segment, and in the one before: in the lower bits of each half.
    #[inline(always)]
    fn sizes(self) -> u64 {
        const STARTS: u64 = 0xffff_0000_ffff;
        (self.0 >> 16 & STARTS) - (self.0 & STARTS) // no bucket ends before it begins
    }

    #[inline(always)]
    fn near(self) -> u16 {
        self.sizes() as u16
    }

    #[inline(always)]
    fn far(self) -> u16 {
        (self.sizes() >> 32) as u16
    }

    /// Whether both are less than [`FEW`].
    #[inline(always)]
    fn is_small(self) -> bool {
        const MORE: u64 = 0xffff & !(FEW as u64 - 1);
        self.sizes() & (MORE << 32 | MORE) == 0
    }

    /// The bucket with one more position in the latest segment.
    #[inline(always)]
    fn grown(self) -> Bucket {
        Bucket(self.0 + (1 << 16)) // the end is at most `SEGMENT`
    }
}

/// The positions of a segment by bucket, and in order: a tag each, and in the lower half the distance from the start of
/// the segment. They lie after room for a block that ends before the first one. One more is there for the compiler,
/// which knows that all places of 16 bits are inside.
type Entries = [u32; BLOCK + SEGMENT + 1];

/// Which of the [`BLOCK`] entries before each of the ends have the tag: those of the latest segment in the upper half.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
unsafe fn with_tag(tag: u32, latest: &Entries, near_end: u16, before: &Entries, far_end: u16) -> u32 {
    // SAFETY: there are `BLOCK` entries before each end; the caller guarantees the instructions.
    unsafe {
        let tag = _mm256_set1_epi32(tag as i32); // the same bits
        // The highest bit of each entry says whether the upper half is the same.
        let same = |entries: &Entries, end: u16, from: usize| {
            let entries = entries.as_ptr().add(usize::from(end) + from).cast();
            _mm256_cmpeq_epi16(_mm256_loadu_si256(entries), tag)
        };
        // Saturation keeps that bit.
        let near = _mm256_packs_epi32(same(latest, near_end, 0), same(latest, near_end, 8));
        let far = _mm256_packs_epi32(same(before, far_end, 0), same(before, far_end, 8));
        let in_order = _mm256_setr_epi32(2, 6, 3, 7, 0, 4, 1, 5);
        let both = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(near, far), in_order);
        _mm256_movemask_epi8(both) as u32 // 32 bits
    }
}

/// The positions of the segment that is searched from, up to that where the last search was, and those of the segment
/// before. Made only where the CPU has AVX2 and what comes with it.
pub(super) struct Index {
    buckets: Box<[u64; BUCKETS]>,
    /// How many positions of the latest segment belong to each bucket.
    counts: Box<[u16; BUCKETS]>,
    latest: Box<Entries>,
    before: Box<Entries>,
    /// The first position that is not entered.
    next: usize,
    /// Where the latest segment starts.
    start: usize,
    /// Where it ends; 0 if there is none.
    end: usize,
}

impl Index {
    pub(super) fn new() -> Result<Index> {
        Ok(Index {
            buckets: zeroed_box()?,
            counts: zeroed_box()?,
            latest: zeroed_box()?,
            before: zeroed_box()?,
            next: 0,
            start: 0,
            end: 0,
        })
    }

    /// Forgets all positions.
    pub(super) fn clear(&mut self) {
        self.next = 0;
        self.end = 0;
    }

    /// Candidates for a match at `at`: the last `most` positions before it in its bucket, or as many as there are in
    /// this segment and the one before. Some may be too far away for a match.
    ///
    /// # Panics
    ///
    /// If `at` is before the position of an earlier search.
    ///
    /// # Safety
    ///
    /// `at + 4 <= src.len()`, and `src` has been the same since the last [`clear`](Self::clear). The CPU has the
    /// features.
    #[inline(always)]
    pub(super) unsafe fn candidates(&mut self, src: &[u8], at: usize, most: u16) -> Candidates<'_> {
        // SAFETY: the caller's promise.
        unsafe { self.go_on_to(src, at) };
        // SAFETY: the caller's promise.
        let hash = Hash::of(unsafe { load32(src, at) });
        let bucket = Bucket(self.buckets[hash.bucket()]);
        let near = bucket.near().min(most);
        let far = bucket.far().min(most - near);
        Candidates {
            index: self,
            tag: hash.tag(),
            near_end: bucket.near_end(),
            near,
            far_end: bucket.far_end(),
            far,
        }
    }

    /// The first position from `at` to `last` where [`candidates`](Self::candidates) may have one with the tag, or
    /// many; that after `last` if there is none.
    ///
    /// # Panics
    ///
    /// As `candidates`.
    ///
    /// # Safety
    ///
    /// As for `candidates`, at `last`.
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn seek(&mut self, src: &[u8], mut at: usize, last: usize) -> usize {
        while at <= last {
            // SAFETY: the caller's promise.
            unsafe { self.go_on_to(src, at) };
            let end = self.end.min(last + 1);
            while at < end {
                // SAFETY: `at` is at most `last`.
                let hash = Hash::of(unsafe { load32(src, at) });
                let bucket = Bucket(self.buckets[hash.bucket()]);
                // SAFETY: the caller guarantees the features.
                if !bucket.is_small() || unsafe { self.may_have(bucket, hash) } {
                    break;
                }
                self.buckets[hash.bucket()] = bucket.grown().0;
                self.latest[BLOCK + usize::from(bucket.near_end())] = hash.tag() | (at - self.start) as u32; // 16 bits
                at += 1;
            }
            self.next = at;
            if at < end {
                break;
            }
        }
        at
    }

    /// Whether one of the [`FEW`] entries before the ends of the bucket has the tag of `hash`. They need not be in the
    /// bucket, nor be of this source.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2.
    #[inline(always)]
    unsafe fn may_have(&self, bucket: Bucket, hash: Hash) -> bool {
        let (near, far) = (usize::from(bucket.near_end()), usize::from(bucket.far_end()));
        // SAFETY: there are `BLOCK` entries before each end, which is more; the caller guarantees the instructions.
        unsafe {
            // No position has this lower half.
            let tag = _mm256_set1_epi32((hash.tag() | 0xffff) as i32); // the same bits
            let near = _mm256_loadu_si256(self.latest.as_ptr().add(near + BLOCK - FEW).cast());
            let far = _mm256_loadu_si256(self.before.as_ptr().add(far + BLOCK - FEW).cast());
            let same = _mm256_or_si256(_mm256_cmpeq_epi16(near, tag), _mm256_cmpeq_epi16(far, tag));
            _mm256_testz_si256(same, same) == 0
        }
    }

    /// Makes the segment of `at` the latest one, and enters all positions before `at`.
    ///
    /// # Safety
    ///
    /// As for [`candidates`](Self::candidates).
    #[inline(always)]
    unsafe fn go_on_to(&mut self, src: &[u8], at: usize) {
        if at >= self.end {
            // SAFETY: the caller's promise.
            unsafe { self.change_segment(src, at) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.enter_until(src, at) };
    }

    /// Enters the positions of the latest segment before `end`.
    ///
    /// # Safety
    ///
    /// `end + 3 <= src.len()`.
    #[inline(always)]
    unsafe fn enter_until(&mut self, src: &[u8], end: usize) {
        assert!(self.next <= end, "positions before were searched from");
        for at in self.next..end {
            // SAFETY: `at` is less than `end`.
            let hash = Hash::of(unsafe { load32(src, at) });
            let bucket = Bucket(self.buckets[hash.bucket()]);
            self.buckets[hash.bucket()] = bucket.grown().0;
            self.latest[BLOCK + usize::from(bucket.near_end())] = hash.tag() | (at - self.start) as u32; // 16 bits
        }
        self.next = end;
    }

    /// Makes the segment of `at` the latest one, and enters all positions of the one before.
    ///
    /// # Safety
    ///
    /// As for [`candidates`](Self::candidates).
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn change_segment(&mut self, src: &[u8], at: usize) {
        let start = at / SEGMENT * SEGMENT;
        if start > 0 {
            if self.end != start {
                // SAFETY: the caller guarantees the features.
                unsafe { self.open::<false>(src, start - SEGMENT) };
            }
            // SAFETY: `start` is at most `at`.
            unsafe { self.enter_until(src, start) };
            std::mem::swap(&mut self.latest, &mut self.before);
            // SAFETY: the caller guarantees the features.
            unsafe { self.open::<true>(src, start) };
        } else {
            // SAFETY: the caller guarantees the features.
            unsafe { self.open::<false>(src, start) };
        }
    }

    /// Makes room for the positions of the segment that begins at `start`. `FOLLOWS`: what is entered are those of the
    /// segment before.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2.
    #[inline(always)]
    unsafe fn open<const FOLLOWS: bool>(&mut self, src: &[u8], start: usize) {
        (self.start, self.next, self.end) = (start, start, start + SEGMENT);
        self.counts.fill(0);
        let groups = src[start..].windows(4).take(SEGMENT);
        for group in groups.map(|group| u32::from_le_bytes([group[0], group[1], group[2], group[3]])) {
            self.counts[Hash::of(group).bucket()] += 1;
        }
        // In each of the eight, where the next bucket begins. All of this fits in 16 bits.
        // SAFETY: the caller guarantees the instructions.
        let mut next = unsafe { _mm_setzero_si128() };
        for (buckets, counts) in self.buckets.chunks_exact_mut(8).zip(self.counts.chunks_exact(8)) {
            // SAFETY: there are eight counts of two bytes, and eight buckets of eight; the caller guarantees the
            // instructions.
            unsafe {
                let counts = _mm_loadu_si128(counts.as_ptr().cast());
                let mut ends = _mm_add_epi16(counts, _mm_slli_si128::<2>(counts));
                ends = _mm_add_epi16(ends, _mm_slli_si128::<4>(ends));
                ends = _mm_add_epi16(ends, _mm_slli_si128::<8>(ends));
                let starts = _mm_add_epi16(next, _mm_sub_epi16(ends, counts));
                next = _mm_add_epi16(next, _mm_shuffle_epi8(ends, _mm_set1_epi16(0x0f0e)));
                // Empty, for now: the start is the end.
                let near = [_mm_unpacklo_epi16(starts, starts), _mm_unpackhi_epi16(starts, starts)];
                for (four, near) in buckets.chunks_exact_mut(4).zip(near) {
                    let four = four.as_mut_ptr().cast();
                    let mut new = _mm256_cvtepu32_epi64(near);
                    if FOLLOWS {
                        new = _mm256_or_si256(new, _mm256_slli_epi64::<32>(_mm256_loadu_si256(four)));
                    }
                    _mm256_storeu_si256(four, new);
                }
            }
        }
    }
}

/// Candidates for a match.
pub(super) struct Candidates<'a> {
    index: &'a Index,
    tag: u32,
    /// The end of those in the latest segment, and their number.
    near_end: u16,
    near: u16,
    /// The same in the segment before.
    far_end: u16,
    far: u16,
}

impl<'a> Candidates<'a> {
    /// Takes the nearest ones away.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Nearest<'a> {
        const MOST: u16 = BLOCK as u16;
        let (index, near_end, far_end) = (self.index, self.near_end, self.far_end);
        let near = self.near.min(MOST);
        let far = select(self.near > MOST, 0, self.far.min(MOST));
        self.near_end -= near;
        self.near -= near;
        self.far_end -= far;
        self.far -= far;
        let counted = (0xffff_0000 >> near) << BLOCK | (0xffff_0000_u32 >> far & 0xffff);
        // SAFETY: where there is an index, the CPU has AVX2.
        let found = counted & unsafe { with_tag(self.tag, &index.latest, near_end, &index.before, far_end) };
        Nearest { index, near_end, far_end, found }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.near == 0 && self.far == 0
    }

    /// That before which there are `n` nearer ones, whatever its tag.
    #[inline(always)]
    pub(super) fn position(&self, n: usize) -> Option<usize> {
        let near = usize::from(self.near);
        let (entries, end, start, n) = if n < near {
            (&self.index.latest, self.near_end, self.index.start, n)
        } else if n - near < usize::from(self.far) {
            (&self.index.before, self.far_end, self.index.start - SEGMENT, n - near)
        } else {
            return None;
        };
        Some(start + (entries[BLOCK - 1 + usize::from(end) - n] & 0xffff) as usize)
    }
}

/// The positions of the nearest candidates that have the tag, nearest first.
#[derive(Clone, Copy)]
pub(super) struct Nearest<'a> {
    index: &'a Index,
    near_end: u16,
    far_end: u16,
    /// Which of the [`BLOCK`] places before each of the ends have the tag: those of the latest segment in the upper
    /// half.
    found: u32,
}

impl Nearest<'_> {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.found == 0
    }

    /// The farthest one; there is one.
    #[inline(always)]
    pub(super) fn farthest(&self) -> u32 {
        self.position_of(self.found.trailing_zeros())
    }

    /// The position that a bit of `found` stands for.
    #[inline(always)]
    fn position_of(&self, bit: u32) -> u32 {
        let near = self.index.latest.as_ptr().wrapping_add(usize::from(self.near_end)).wrapping_sub(BLOCK);
        let far = self.index.before.as_ptr().wrapping_add(usize::from(self.far_end));
        let start = self.index.start;
        let is_near = bit >= BLOCK as u32;
        let entries = select(is_near, near, far);
        let start = select(is_near, start, start.wrapping_sub(SEGMENT));
        // SAFETY: as in `with_tag`, bits stand for places from `BLOCK` before an end on.
        let entry = unsafe { *entries.wrapping_add(bit as usize) };
        start as u32 + (entry & 0xffff) // fits: sources are chunks, which are below 2 GiB
    }
}

impl Iterator for Nearest<'_> {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let bit = self.found.checked_ilog2()?;
        self.found ^= 1 << bit;
        Some(self.position_of(bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;
    use crate::testing::Random;

    #[test]
    fn a_search_does_not_pass_groups_that_were_there_before() {
        if !cpu::has_avx2() {
            return;
        }
        // In the same segment, across one border, and from the first bytes of a segment to the last of the next.
        let n = if cfg!(miri) { 3000 } else { 3 * SEGMENT };
        for (from, to) in [(7, 1000), (SEGMENT - 9, SEGMENT + 5), (SEGMENT, 2 * SEGMENT - 1), (n - 20, n - 4)]
        {
            let mut src = Random::new(1).bytes(n);
            if to + 4 > n {
                continue;
            }
            src.copy_within(from..from + 4, to);
            let mut index = Index::new().unwrap();
            // SAFETY: the CPU has AVX2, and with it the rest; `to` is a position of four bytes.
            let mut at = unsafe { index.seek(&src, 0, to) };
            // By chance, others seem to be there before.
            while at < to {
                // SAFETY: as above.
                at = unsafe { index.seek(&src, at + 1, to) };
            }
            assert_eq!(at, to);
            // SAFETY: as above.
            let mut candidates = unsafe { index.candidates(&src, to, 256) };
            let mut found = false;
            while !candidates.is_empty() {
                found |= candidates.next().any(|position| position as usize == from);
            }
            assert!(found, "from {from} to {to}");
        }
    }

    #[test]
    #[should_panic(expected = "searched from")]
    fn a_search_from_before_the_last_one_is_refused() {
        assert!(cpu::has_avx2(), "nothing is searched from");
        let src = Random::new(2).bytes(1000);
        let mut index = Index::new().unwrap();
        // SAFETY: the CPU has AVX2, and with it the rest.
        unsafe { index.candidates(&src, 500, 4) };
        // SAFETY: the same.
        unsafe { index.candidates(&src, 499, 4) };
    }
}
