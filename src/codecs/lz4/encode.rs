//! The fast encoder: the reference implementation's parse, and so its bytes, in less time.
//!
//! The reference looks for a match at one position after the other. Whether there is one, how far back it can be drawn
//! and how long it is are branches that the CPU often guesses wrong, and a wrong guess costs as much as all the rest of
//! a match. So [`Parser::near`] looks at the three positions after a match at once, and chooses between them without a
//! branch. Where guesses are mostly right, that would be slower; so they are watched ([`Guesses`]), and each way is a
//! loop of its own that has all registers ([`Parser::stretch`]).
//!
//! What makes the bytes equal: the table holds the same positions at the same time as the reference's, whatever is
//! looked at and in which order. A position is entered only if the reference would have come to it.

// Where the reference makes the same bytes: see `OURS`.
#[cfg(all(test, target_endian = "little", target_pointer_width = "64", not(feature = "system-lz4")))]
mod tests;

use super::output::{LAST_LITERALS, LAST_START, LONG, MAX_DISTANCE, MIN_MATCH, Output, SLACK};
use crate::codecs::agree::{extend_back, extend_long};
use crate::codecs::mem::{HASH_PRIME_32, load64, store};
use crate::cpu::{ZEN_3_AND_4, amd_family, select};
use crate::error::Result;
use crate::memory::zeroed_box;

/// After each 2^`PATIENCE` misses in a row, the search steps over one more byte each time.
const PATIENCE: u32 = 6;
/// Shorter streams are left to the reference: clearing the table takes too large a part of their time.
pub(super) const MIN_INPUT: usize = 8 << 10;
/// Up to this length, positions fit in 16 bits: those that are entered end [`LAST_START`] bytes before the end.
const MAX_SHORT: usize = 65_536 + LAST_START - 2;

/// Behind matches of at least this length, the CPU may guess: a wrong guess costs little beside such a match.
const LONG_MATCH: usize = 32;
/// Up to this length, the end of a match is sought in steps of eight bytes, and beyond in vectors.
const NEAR_END: usize = 76;
/// Bytes of the source over which guesses are watched, and those after which they are watched again.
const WATCH: usize = 2 << 10;
const REST: usize = 14 << 10;
/// In shorter streams, the CPU may guess without being watched: they are over soon.
const WATCHED_FROM: usize = 32 << 10;
/// The largest acceleration.
pub(super) const MAX_ACCELERATION: usize = 9;
/// Where this many bytes follow a match, the reference looks at three positions there, if it finds nothing before.
const AHEAD: usize = 2 + MAX_ACCELERATION + LAST_START;

/// Positions by a hash of the bytes there.
trait Table {
    /// Whether it may hold positions that are too far away.
    const REACHES_FAR: bool;

    /// Forgets all positions: every entry is position 0.
    fn clear(&mut self);

    /// The place of a position where these bytes are.
    fn slot(bytes: u64) -> usize;

    fn get(&self, slot: usize) -> usize;

    fn put(&mut self, slot: usize, at: usize);
}

/// For sources of up to [`MAX_SHORT`] bytes.
type Short = [u16; 1 << 13];
/// For others.
type Far = [u32; 1 << 12];

impl Table for Short {
    const REACHES_FAR: bool = false;

    fn clear(&mut self) {
        self.fill(0);
    }

    #[inline(always)]
    fn slot(bytes: u64) -> usize {
        ((bytes as u32).wrapping_mul(HASH_PRIME_32) >> (32 - 13)) as usize // of four bytes
    }

    #[inline(always)]
    fn get(&self, slot: usize) -> usize {
        usize::from(self[slot])
    }

    #[inline(always)]
    fn put(&mut self, slot: usize, at: usize) {
        self[slot] = at as u16; // fits: see `MAX_SHORT`
    }
}

impl Table for Far {
    const REACHES_FAR: bool = true;

    fn clear(&mut self) {
        self.fill(0);
    }

    #[inline(always)]
    fn slot(bytes: u64) -> usize {
        ((bytes << 24).wrapping_mul(889_523_592_379) >> (64 - 12)) as usize // of five bytes
    }

    #[inline(always)]
    fn get(&self, slot: usize) -> usize {
        self[slot] as usize
    }

    #[inline(always)]
    fn put(&mut self, slot: usize, at: usize) {
        self[slot] = at as u32; // fits: sources are chunks, which are below 2 GiB
    }
}

/// Compresses streams, one per call, and owns the tables for that (32 KiB).
pub(super) struct Encoder {
    short: Box<Short>,
    far: Box<Far>,
    /// Whether guesses are watched in long streams.
    watches: bool,
}

impl Encoder {
    pub(super) fn new() -> Result<Encoder> {
        // On Zen 3, looking at three positions at once is slower whatever the data.
        let watches = amd_family() != ZEN_3_AND_4;
        Ok(Encoder { short: zeroed_box()?, far: zeroed_box()?, watches })
    }

    /// Compresses `src`, of [`MIN_INPUT`] bytes or more, into `dest`; returns the compressed size, or `None` if it does
    /// not fit.
    pub(super) fn compress(&mut self, acceleration: usize, src: &[u8], dest: &mut [u8]) -> Option<usize> {
        let is_watched = self.watches && src.len() >= WATCHED_FROM;
        if src.len() <= MAX_SHORT {
            encode(&mut *self.short, acceleration, is_watched, src, dest)
        } else {
            encode(&mut *self.far, acceleration, is_watched, src, dest)
        }
    }
}

/// See [`Encoder::compress`].
fn encode<T: Table>(
    table: &mut T,
    acceleration: usize,
    is_watched: bool,
    src: &[u8],
    dest: &mut [u8],
) -> Option<usize> {
    assert!(src.len() >= MIN_INPUT && (1..=MAX_ACCELERATION).contains(&acceleration));
    table.clear();
    let mut parser = Parser { table, acceleration, is_watched, src, guesses: Guesses::default() };
    let mut out = Output::fast(src, dest);
    let anchor = parser.parse(&mut out)?;
    out.finish(anchor)
}

/// A match that was found.
#[derive(Clone, Copy)]
struct Match {
    at: usize,
    candidate: usize,
}

/// How well one guesses whether a match follows the last one immediately, from whether the last few did: about as well
/// as the CPU.
#[derive(Default)]
struct Guesses {
    /// What followed after each history.
    table: u64,
    /// What the last six matches did, a bit each.
    history: u32,
    /// Matches since the guesses were judged.
    seen: u32,
    wrong: u32,
}

impl Guesses {
    /// Learns whether a match `follows` immediately, and that one `is_near`, if it does not: a wrong guess counts only
    /// where [`Parser::near`] finds something.
    #[inline(always)]
    fn learn(&mut self, follows: bool, is_near: bool) {
        let wrong = (self.table >> self.history & 1) ^ u64::from(follows);
        self.table ^= wrong << self.history;
        self.history = (self.history << 1 | u32::from(follows)) & 63;
        self.seen += 1;
        self.wrong += wrong as u32 & u32::from(follows | is_near); // 0 or 1
    }

    /// Whether so many of the latest guesses were wrong that the CPU should not be asked to guess.
    fn are_bad(&mut self) -> bool {
        let (seen, wrong) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.wrong));
        wrong > seen * 3 / 8
    }
}

/// What follows a sequence.
enum Next {
    /// This match, or the last literals.
    Sought(Option<Match>),
    NotSought,
}

/// Where a parser is.
struct Place {
    /// The end of the last sequence.
    anchor: usize,
    next: Next,
}

/// Ways to look for what follows a match: position by position, watching how good guesses are.
const WATCHED: u8 = 0;
/// Position by position.
const ONE_BY_ONE: u8 = 1;
/// Three positions at once.
const CLOSE_BY: u8 = 2;

struct Parser<'a, T> {
    table: &'a mut T,
    acceleration: usize,
    is_watched: bool,
    src: &'a [u8],
    guesses: Guesses,
}

impl<T: Table> Parser<'_, T> {
    /// The last position at which a match may start.
    #[inline(always)]
    fn last_start(&self) -> usize {
        self.src.len() - LAST_START
    }

    /// Writes all sequences, and returns where the last literals begin. `None` if they do not fit.
    fn parse(&mut self, out: &mut Output<'_>) -> Option<usize> {
        // SAFETY: `encode` saw to MIN_INPUT bytes.
        self.enter(0, unsafe { load64(self.src, 0) });
        let mut place = Place { anchor: 0, next: Next::Sought(self.search(1, 1, 0)) };
        loop {
            if self.is_watched {
                place = self.stretch::<WATCHED>(place, WATCH, out)?;
            }
            place = if self.is_watched && self.guesses.are_bad() {
                self.stretch::<CLOSE_BY>(place, REST, out)?
            } else {
                self.stretch::<ONE_BY_ONE>(place, REST, out)?
            };
            if matches!(place.next, Next::Sought(None)) {
                return Some(place.anchor);
            }
        }
    }

    /// Writes sequences in one of the ways, for about `len` bytes of the source; returns where to go on. `None` if they
    /// do not fit.
    #[inline(never)] // in one function, the ways would share the registers
    fn stretch<const WAY: u8>(&mut self, place: Place, len: usize, out: &mut Output<'_>) -> Option<Place> {
        let Place { mut anchor, mut next } = place;
        let until = anchor + len;
        loop {
            if let Next::Sought(found) = next {
                let Some(found) = found.filter(|_| anchor < until) else { break };
                let Match { at, candidate } = found;
                let end = self.end(found);
                // SAFETY: the candidate lies in `src`, before `at`.
                let start = unsafe { extend_back(self.src, at, at - candidate, anchor) };
                out.sequence(anchor, start, end - start, at - candidate)?;
                anchor = end;
            }
            next = Next::NotSought;
            if WAY == CLOSE_BY {
                next = self.close_by(&mut anchor, until, out)?;
            }
            if matches!(next, Next::NotSought) {
                next = self.one_by_one::<WAY>(&mut anchor, until, out)?;
                if matches!(next, Next::NotSought) {
                    break;
                }
            }
        }
        Some(Place { anchor, next })
    }

    /// Writes sequences that follow each other closely, from `anchor` on, which becomes the end of the last one. `None`
    /// if they do not fit.
    #[inline(always)]
    fn close_by(&mut self, anchor: &mut usize, until: usize, out: &mut Output<'_>) -> Option<Next> {
        let until = until.min(self.src.len() - AHEAD);
        while *anchor <= until && out.at + SLACK <= out.dest.len() {
            // SAFETY: the anchor was just compared, and a match ends after MIN_MATCH bytes.
            let Some((found, differs)) = (unsafe { self.near(*anchor) }) else {
                let next = self.search(*anchor + 2 + self.acceleration, self.acceleration, 2);
                return Some(Next::Sought(next));
            };
            if found.candidate < 2 {
                return Some(Next::Sought(Some(found)));
            }
            // Measured: in longer streams, it pays to load what is after the first four bytes again.
            let end = match differs {
                differs if T::REACHES_FAR || differs == 0 => self.end(found),
                differs => found.at + first_byte(differs),
            };
            // SAFETY: both sums were just compared, and the candidate as well.
            unsafe { out.short(*anchor, found, end)? };
            *anchor = end;
            if end - found.at >= LONG_MATCH {
                break;
            }
        }
        Some(Next::NotSought)
    }

    /// Writes matches that follow each other immediately, from `anchor` on, which becomes the end of the last one.
    /// Returns the next match, or none at the end. `None` if they do not fit.
    #[inline(always)]
    fn one_by_one<const WAY: u8>(
        &mut self,
        anchor: &mut usize,
        until: usize,
        out: &mut Output<'_>,
    ) -> Option<Next> {
        let until = until.min(self.last_start());
        while *anchor <= until {
            let at = *anchor;
            // SAFETY: a match ends after MIN_MATCH bytes, and `at <= last_start`.
            self.enter(at - 2, unsafe { load64(self.src, at - 2) });
            // SAFETY: `at <= last_start`.
            let found = self.probe(at, unsafe { load64(self.src, at) });
            let Some(found) = found else {
                let next = self.search_behind(at);
                if WAY == WATCHED {
                    self.guesses.learn(false, next.is_some_and(|next| next.at <= at + 2));
                }
                return Some(Next::Sought(next));
            };
            if WAY == WATCHED {
                self.guesses.learn(true, true);
            }
            let end = self.end(found);
            out.follower(end - at, at - found.candidate)?;
            *anchor = end;
        }
        Some(if *anchor > self.last_start() { Next::Sought(None) } else { Next::NotSought })
    }

    /// Where a match ends. Its first four bytes are known to match; most end within the eight after them.
    #[inline(always)]
    fn end(&self, Match { at, candidate }: Match) -> usize {
        if at + NEAR_END + LAST_LITERALS > self.src.len() {
            return self.far_end(at + MIN_MATCH, at - candidate);
        }
        for len in (MIN_MATCH..NEAR_END).step_by(8) {
            // SAFETY: the sum was just compared, and the candidate lies before.
            let differs = unsafe { load64(self.src, at + len) ^ load64(self.src, candidate + len) };
            if differs != 0 {
                return at + len + first_byte(differs);
            }
        }
        self.far_end(at + NEAR_END, at - candidate)
    }

    /// Where a match ends that is known to reach to `end`, which is not after the last position at which matches end.
    #[inline(never)]
    fn far_end(&self, end: usize, distance: usize) -> usize {
        let match_end = self.src.len() - LAST_LITERALS;
        // SAFETY: the caller's promise; and the candidate lies before.
        unsafe { extend_long(self.src, end, distance, match_end) }
    }

    /// The first match at the three positions from `behind` on, which is after a match, and the difference of the eight
    /// bytes at its start and at its candidate.
    ///
    /// # Safety
    ///
    /// `2 <= behind`, and `behind + AHEAD <= src.len()`.
    #[inline(always)]
    unsafe fn near(&mut self, behind: usize) -> Option<(Match, u64)> {
        let src = self.src;
        // SAFETY: the caller's promise.
        let load = |at: usize| unsafe { load64(src, at) };
        let [at0, at1, at2] = [behind, behind + 1, behind + 2];
        self.enter(behind - 2, load(behind - 2));
        let (here0, here1, here2) = (load(at0), load(at1), load(at2));
        let [slot0, slot1, slot2] = [T::slot(here0), T::slot(here1), T::slot(here2)];

        let candidate0 = self.table.get(slot0);
        self.table.put(slot0, at0);
        let candidate1 = self.table.get(slot1);
        let before2 = self.table.get(slot2);
        // What the table would hold if the second position had been entered.
        let candidate2 = select(slot1 == slot2, at1, before2);

        let (differs0, differs1) = (load(candidate0) ^ here0, load(candidate1) ^ here1);
        let differs2 = load(candidate2) ^ here2;
        let is0 = is_match::<T>(differs0, at0 - candidate0);
        let is1 = is_match::<T>(differs1, at1 - candidate1);

        // Positions after the match that was found are not entered.
        let now1 = select(is0, candidate1, at1);
        self.table.put(slot1, now1);
        self.table.put(slot2, select(is0 | is1, select(slot1 == slot2, now1, before2), at2));

        let choose = |values: [usize; 3]| select(is0, values[0], select(is1, values[1], values[2]));
        let at = choose([at0, at1, at2]);
        let candidate = choose([candidate0, candidate1, candidate2]);
        let differs = select(is0, differs0, select(is1, differs1, differs2));
        let is_near = is_match::<T>(differs, at - candidate);
        is_near.then_some((Match { at, candidate }, differs))
    }

    /// The first match after `at`, which is after a match and where there is none: [`search`](Self::search) from the
    /// next position on.
    ///
    /// Among items of a fixed size, it is often found at the second position, by what was entered just before, two
    /// positions before `at`. So the first two positions have loads of their own: CPUs learn for each load how far
    /// before it the store is that it has to wait for.
    #[inline(always)]
    fn search_behind(&mut self, at: usize) -> Option<Match> {
        if at + 1 + self.acceleration > self.last_start() {
            return self.search(at + 1, 1, 0);
        }
        // SAFETY: `at + 1` is at most `last_start`, as just compared, and more than 8 bytes follow that.
        let next = self.probe(at + 1, unsafe { load64(self.src, at + 1) });
        if next.is_some() {
            return next;
        }
        // SAFETY: the same.
        let next = self.probe(at + 2, unsafe { load64(self.src, at + 2) });
        if next.is_some() {
            return next;
        }
        self.search(at + 2 + self.acceleration, self.acceleration, 2)
    }

    /// The first match from `at` on that the search comes to; none at the end. The next position is `step` bytes
    /// further; that many `misses` came before.
    #[inline(always)]
    fn search(&mut self, at: usize, step: usize, misses: usize) -> Option<Match> {
        let steps = (self.acceleration << PATIENCE) + misses;
        let (at, candidate) = search_from(self.table, self.src, at, step, steps);
        (candidate < at).then_some(Match { at, candidate })
    }

    /// Enters position `at`, where these bytes are; the match with the one that was there before.
    #[inline(always)]
    fn probe(&mut self, at: usize, bytes: u64) -> Option<Match> {
        let candidate = self.enter(at, bytes);
        if T::REACHES_FAR && at - candidate > MAX_DISTANCE {
            return None;
        }
        // SAFETY: positions of this stream that were entered, and 0, are at most `last_start`.
        let differs = bytes ^ unsafe { load64(self.src, candidate) };
        (differs as u32 == 0).then_some(Match { at, candidate })
    }

    /// Enters position `at`, where these bytes are; returns the one that was there before.
    #[inline(always)]
    fn enter(&mut self, at: usize, bytes: u64) -> usize {
        let slot = T::slot(bytes);
        let before = self.table.get(slot);
        self.table.put(slot, at);
        before
    }
}

/// [`Parser::search`], which takes a step of `steps` / 2^[`PATIENCE`] bytes after the first: where the match starts,
/// and its candidate; twice 0 at the end.
///
/// Two numbers are returned in registers, a match would not be. Not inlined, as what is around such a loop changes its
/// speed by up to a quarter.
#[inline(never)]
fn search_from<T: Table>(
    table: &mut T,
    src: &[u8],
    mut at: usize,
    mut step: usize,
    mut steps: usize,
) -> (usize, usize) {
    let last_start = src.len() - LAST_START;
    loop {
        let next = at + step;
        // The reference goes to the last literals one position early.
        if next > last_start + 1 {
            return (0, 0);
        }
        // SAFETY: `at <= last_start`.
        let bytes = unsafe { load64(src, at) };
        let slot = T::slot(bytes);
        let candidate = table.get(slot);
        table.put(slot, at);
        // The CPU would often guess wrong whether it is too far away; so it is looked at all the same.
        let is_far = if T::REACHES_FAR { (at - candidate) / (MAX_DISTANCE + 1) } else { 0 };
        // SAFETY: positions of this stream that were entered, and 0, are at most `last_start`.
        let differs = bytes ^ unsafe { load64(src, candidate) };
        if differs as u32 | is_far as u32 == 0 {
            return (at, candidate);
        }
        step = steps >> PATIENCE;
        steps += 1;
        at = next;
    }
}

/// The first byte of eight that is not zero; 8 if there is none.
#[inline(always)]
fn first_byte(differs: u64) -> usize {
    differs.trailing_zeros() as usize / 8
}

/// Whether two positions match whose first eight bytes differ like this.
#[inline(always)]
fn is_match<T: Table>(differs: u64, distance: usize) -> bool {
    (differs as u32 == 0) & (!T::REACHES_FAR | (distance <= MAX_DISTANCE))
}

impl Output<'_> {
    /// Writes the match, which ends at `end`, and the literals before it, from `anchor` on, of which there are two at
    /// most. `None` if they do not fit.
    ///
    /// # Safety
    ///
    /// `2 <= candidate`, SLACK bytes follow in `dest`, and eight from `anchor` on exist in `src`.
    #[inline(always)]
    unsafe fn short(&mut self, anchor: usize, found: Match, end: usize) -> Option<()> {
        let Match { at, candidate } = found;
        let distance = at - candidate;
        // SAFETY: `2 <= candidate < at`, and eight bytes from there on exist.
        let agree = unsafe { load64(self.src, at - 2) ^ load64(self.src, candidate - 2) };
        let literals = at - anchor;
        let one = (agree & 0xff00 == 0) & (literals >= 1);
        let both = one & (agree & 0xff == 0) & (literals == 2);
        let back = usize::from(one) + usize::from(both);
        let literals = literals - back;
        let more = end - at + back - MIN_MATCH;

        // What turns out not to be there is overwritten by what follows.
        // SAFETY: the caller's promise.
        let bytes = unsafe { load64(self.src, anchor) };
        let token = (literals << 4 | more.min(LONG)) as u32;
        // SAFETY: the caller's promise.
        unsafe { store(self.dest, self.at, ((bytes as u32) << 8 | token).to_le_bytes()) };
        self.at += 1 + literals;
        let tail = distance as u32 | (more.wrapping_sub(LONG) as u32 & 0xff) << 16;
        // SAFETY: the caller's promise, and three bytes were written at most.
        unsafe { store(self.dest, self.at, tail.to_le_bytes()) };
        self.at += 2;
        if more >= LONG + 255 {
            return self.put_more_of_match(more);
        }
        self.at += usize::from(more >= LONG);
        Some(())
    }
}
