//! Where groups of four bytes occurred before: candidates for matches, nearest first.
//!
//! The reference implementation chains the positions of a bucket, which are those of groups with the same hash, and looks at
//! one candidate after the other. Each step waits for the one before, and the CPU has to guess whether there is another. Here
//! the positions of a segment are sorted by bucket. So candidates stand side by side, and so do their tags, which tell nearly
//! all other groups from the one that is sought: [`BLOCK`] of them are compared at once, without a guess.

use crate::codecs::lz4::output::MAX_DISTANCE;
use crate::codecs::mem::load32;
use crate::cpu::select;
use crate::error::Result;
use crate::memory::zeroed_box;
use std::arch::x86_64::*;

/// Positions of a segment. Matches reach into the one before at most, and places among so many fit in 16 bits.
const SEGMENT: usize = MAX_DISTANCE;
/// Those of the reference: which candidates are found depends on which positions share a bucket.
const BUCKET_BITS: u32 = 15;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// Candidates of a segment that are looked at together.
const BLOCK: usize = 16;
/// The same of both segments.
pub(super) const BLOCKS: usize = 2 * BLOCK;

/// A hash of four bytes that no other four bytes have.
#[derive(Clone, Copy)]
struct Hash(u32);

impl Hash {
    #[inline(always)]
    fn of(group: u32) -> Hash {
        Hash(group.wrapping_mul(2_654_435_761))
    }

    #[inline(always)]
    fn bucket(self) -> usize {
        (self.0 >> (u32::BITS - BUCKET_BITS)) as usize
    }

    /// All but one of the bits that the bucket leaves.
    #[inline(always)]
    fn tag(self) -> u16 {
        (self.0 >> 1) as u16
    }
}

/// The positions of a segment, sorted by bucket; those of a bucket in order.
struct Segment {
    /// Their tags, behind room for a block that begins before the first one.
    tags: Box<[u16; BLOCK + SEGMENT]>,
    /// Their distances from the start of the segment, likewise.
    offsets: Box<[u16; BLOCK + SEGMENT]>,
    /// Where each bucket begins, and the last one ends.
    starts: Box<[u16; BUCKETS + 1]>,
}

impl Segment {
    fn new() -> Result<Segment> {
        Ok(Segment { tags: zeroed_box()?, offsets: zeroed_box()?, starts: zeroed_box()? })
    }

    /// Sorts the positions of all groups in `bytes`; `places` becomes where each one is.
    fn sort(&mut self, bytes: &[u8], places: &mut [u16; SEGMENT]) {
        let groups =
            bytes.windows(4).map(|group| u32::from_le_bytes([group[0], group[1], group[2], group[3]]));
        let hashes = groups.map(Hash::of).take(SEGMENT);
        // Until all positions are in, each start is kept one bucket further.
        self.starts.fill(0);
        for hash in hashes.clone() {
            self.starts[hash.bucket() + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts[1..] {
            sum += std::mem::replace(start, sum);
        }
        for ((hash, place), offset) in hashes.zip(places).zip(0..) {
            let next = &mut self.starts[hash.bucket() + 1];
            *place = *next;
            *next += 1;
            self.tags[BLOCK + usize::from(*place)] = hash.tag();
            self.offsets[BLOCK + usize::from(*place)] = offset;
        }
    }

    /// Which of the last `n` places before `end` have the tag, the last one in bit 15; `n` is at most [`BLOCK`].
    #[inline(always)]
    fn with_tag(&self, tag: u16, end: u16, n: u16) -> u32 {
        // SAFETY: places end at `SEGMENT`, and there are `BLOCK` tags before each. SSE2 is part of x86-64.
        let same = unsafe {
            let tags = self.tags.as_ptr().add(usize::from(end)).cast::<__m128i>();
            let tag = _mm_set1_epi16(tag as i16); // the same bits
            let low = _mm_cmpeq_epi16(_mm_loadu_si128(tags), tag);
            let high = _mm_cmpeq_epi16(_mm_loadu_si128(tags.add(1)), tag);
            _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32 // 16 bits
        };
        same & !(0xffff >> n) & 0xffff
    }
}

/// The positions of the segment that is searched from, and of the one before.
pub(super) struct Index {
    latest: Segment,
    before: Segment,
    /// Places of the latest segment's positions.
    places: Box<[u16; SEGMENT]>,
    /// Where the latest segment starts.
    start: usize,
    /// Where it ends; 0 if there is none.
    end: usize,
}

impl Index {
    pub(super) fn new() -> Result<Index> {
        Ok(Index {
            latest: Segment::new()?,
            before: Segment::new()?,
            places: zeroed_box()?,
            start: 0,
            end: 0,
        })
    }

    /// Forgets all positions.
    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// Candidates for a match at `at`, which is not before the latest segment: the last `most` positions before it in its bucket,
    /// or as many as there are in this segment and the one before. Some may be too far away for a match.
    ///
    /// # Safety
    ///
    /// `at + 4 <= src.len()`, and `src` has been the same since the last [`clear`](Self::clear).
    #[inline(always)]
    pub(super) unsafe fn candidates(&mut self, src: &[u8], at: usize, most: u16) -> Candidates<'_> {
        if at >= self.end {
            self.go_on_to(src, at);
        }
        // SAFETY: the caller's promise.
        let hash = Hash::of(unsafe { load32(src, at) });
        let bucket = hash.bucket();
        let near_end = self.places[at - self.start];
        let near = (near_end - self.latest.starts[bucket]).min(most);
        let far_end = self.before.starts[bucket + 1];
        let far = (far_end - self.before.starts[bucket]).min(most - near);
        Candidates { index: self, tag: hash.tag(), near_end, near, far_end, far }
    }

    /// Sorts the positions of the segment of `at`, and those of the one before, if it is not the latest.
    #[cold]
    #[inline(never)]
    fn go_on_to(&mut self, src: &[u8], at: usize) {
        let start = at / SEGMENT * SEGMENT;
        if start == 0 {
            self.before.starts.fill(0);
        } else if self.end == start {
            std::mem::swap(&mut self.latest, &mut self.before);
        } else {
            self.before.sort(&src[start - SEGMENT..], &mut self.places);
        }
        self.latest.sort(&src[start..], &mut self.places);
        self.start = start;
        self.end = start + SEGMENT;
    }
}

/// Candidates for a match.
pub(super) struct Candidates<'a> {
    index: &'a Index,
    tag: u16,
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
        let found = index.latest.with_tag(self.tag, near_end, near) << BLOCK
            | index.before.with_tag(self.tag, far_end, far);
        Nearest { index, near_end, far_end, found }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.near == 0 && self.far == 0
    }
}

/// The nearest candidates.
pub(super) struct Nearest<'a> {
    index: &'a Index,
    near_end: u16,
    far_end: u16,
    /// Which of the [`BLOCK`] places before each of the ends have the tag: those of the latest segment in the upper half.
    found: u32,
}

impl Nearest<'_> {
    /// Whether none has the tag.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.found == 0
    }

    /// Writes the positions with the tag, nearest first; returns how many.
    #[inline(always)]
    pub(super) fn positions(&self, to: &mut [u32; BLOCKS]) -> usize {
        let near =
            self.index.latest.offsets.as_ptr().wrapping_add(usize::from(self.near_end)).wrapping_sub(BLOCK);
        let far = self.index.before.offsets.as_ptr().wrapping_add(usize::from(self.far_end));
        let start = self.index.start;
        let (mut left, mut n) = (self.found, 0);
        while left != 0 {
            let bit = left.ilog2();
            left ^= 1 << bit;
            let is_near = bit >= BLOCK as u32;
            let offsets = select(is_near, near, far);
            let start = select(is_near, start, start.wrapping_sub(SEGMENT));
            // SAFETY: as in `with_tag`, bits stand for places from `BLOCK` before an end on.
            let offset = unsafe { *offsets.wrapping_add(bit as usize) };
            to[n] = start as u32 + u32::from(offset); // fits: sources are chunks, which are below 2 GiB
            n += 1;
        }
        n
    }
}
