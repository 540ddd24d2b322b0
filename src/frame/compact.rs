//! Giving back the room of deleted and replaced chunks.
//!
//! Where holes take more than a third of what the chunks take and a chunk is replaced, the last chunks go into them if
//! they fit and that was not tried in vain just before (see [`refill`](super::refill)), which costs at most one copied
//! byte for each dead one. This is for frames of few chunks: there, the sizes of all chunks are soon looked up, and
//! holes that no chunk fits in take a larger part. In any frame, holes are closed when they take more than three
//! quarters: it stays below twice the size of its chunks, apart from the gap before the trailer (see
//! [`tail`](super::tail) and [`meta`](super::meta)). If the last chunks do not fit then, all chunks after the first hole
//! move together, which costs up to three copied bytes for each dead one. Where that failed, it is tried again when more
//! is dead.
//!
//! Every step is a change of its own that is all-or-nothing: chunks are copied to places that nothing refers to, and
//! only then does the index refer to them.

#![forbid(unsafe_code)]

use super::Frame;
use super::holes::{Extent, Holes, overlap};
use super::index_codec::IndexOf;
use super::refill::{Move, Refill};
use super::session::Session;
use super::state::State;
use super::store::{Store, Write};
use super::tail::longest_tail;
use crate::error::{Error, ErrorKind, Result};
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::offsets::Entry;
use crate::memory;
use std::collections::HashMap;
use std::sync::Arc;

/// Up to this number of chunks all sizes are looked up: to learn how much of an opened frame is dead, and to try
/// whether the last chunks fit into holes.
const FEW_CHUNKS: usize = 256;
/// In larger frames, this many of the largest gaps are looked at, and as many chunks spread evenly over the frame.
const SAMPLES: usize = 32;

/// So few dead bytes are not worth another change.
const FEW_BYTES: u64 = 4096;

/// How many dead bytes there are beside the live ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// No more than may stay.
    Little,
    /// Too many if the last chunks fit into the holes.
    Loose,
    /// Too many even if all chunks have to move.
    Hollow,
}

impl Room {
    /// Where it was tried in vain to fill or to close holes, there have to be more dead bytes than then. A frame without
    /// chunks has nothing to be moved.
    fn of(state: &State, dead: u64, live: u64) -> Self {
        let tried = state.holes.tried_at().map_or(0, |dead| dead + live / 16);
        if dead <= tried && live > 0 {
            Self::Little
        } else if is_hollow(dead, live) {
            Self::Hollow
        } else if state.index.len() <= FEW_CHUNKS && dead > (live / 3).max(FEW_BYTES) {
            Self::Loose
        } else {
            Self::Little
        }
    }
}

/// Whether that many dead bytes are too many beside the live ones, even if all chunks have to move.
fn is_hollow(dead: u64, live: u64) -> bool {
    if live == 0 { dead > 0 } else { dead / 3 > live / 4 }
}

/// The positions, or file numbers, of the stored chunks, each once, ascending.
pub(super) fn positions(state: &State) -> Result<Vec<u64>> {
    let mut positions = memory::collect(state.index.stored())?;
    positions.sort_unstable();
    positions.dedup();
    Ok(positions)
}

impl Frame {
    /// Closes holes if they take too much room after a change that `added` chunks, or none.
    ///
    /// # Errors
    ///
    /// Those of reading and writing; the frame is complete in any case.
    pub(super) fn reclaim(&mut self, session: &Session, added: bool) -> Result<()> {
        self.trim(session)?;
        let state = self.snapshot();
        let live = state.live_end - state.dead;
        let behind = state.header.cbytes.saturating_sub(state.live_end);
        let dead = state.dead + behind;
        let room = Room::of(&state, dead, live);
        let refills = !session.is_followed();
        match room {
            Room::Hollow => (),
            Room::Loose if added && refills => (),
            Room::Loose | Room::Little => return Ok(()),
        }
        let nchunks = state.index.stored().count();
        if Room::of(&state, state.dead, live) != room {
            // What lies behind the last chunk is too much. What is left then may be, too.
            drop(state);
            self.shorten(session)?;
            return self.reclaim(session, added);
        }
        let extents = self.extents(session, &state);
        drop(state);
        let holes = &mut Arc::make_mut(self.state.get_mut()).holes;
        let extents = extents.inspect_err(|_| holes.note_tried(Some(dead)))?;
        let refill = if refills {
            holes.wake_if_few(nchunks);
            Refill::plan(&extents, holes)?
        } else {
            None
        };
        let closed = match refill {
            Some(refill) => self.refill(session, &refill).map(|()| true),
            None if room == Room::Hollow => self.compact(session, &extents).map(|()| true),
            None => Ok(false),
        };
        if closed != Ok(true) {
            // On a full disk, say, the next change need not copy all chunks in vain again.
            Arc::make_mut(self.state.get_mut()).holes.note_tried(Some(dead));
        }
        closed.map(drop)
    }

    /// Ends the payload area with the last chunk.
    fn shorten(&mut self, session: &Session) -> Result<()> {
        let mut next = State::clone(&self.snapshot());
        let behind = next.header.cbytes.saturating_sub(next.live_end);
        let tried = next.holes.tried_at().map(|dead| dead.saturating_sub(behind));
        next.holes.note_tried(tried);
        next.header.cbytes = next.live_end;
        next.holes.rest_on();
        self.write_tail(session, next, &[], IndexOf::Other)
    }

    /// Notes that what lies after the last chunk is dead.
    fn trim(&mut self, session: &Session) -> Result<()> {
        let state = self.snapshot();
        if state.holes.are_of_overlapping_chunks() {
            // The chunk that starts last need not be the one that ends last.
            return Ok(());
        }
        let end = match state.index.stored().max() {
            None => 0,
            Some(last) if last + (EXTENDED_HEADER_LENGTH as u64) >= state.live_end => return Ok(()), // widening
            Some(last) => self.extent(session, &state, last)?.end(),
        };
        if end < state.live_end {
            let behind = state.live_end - end;
            drop(state);
            let state = Arc::make_mut(self.state.get_mut());
            state.live_end = end;
            state.holes.cut_off(end);
            state.dead = if end == 0 { 0 } else { state.dead.saturating_sub(behind).min(end) };
        }
        Ok(())
    }

    /// Before chunks of a contiguous frame are deleted or replaced: counts the dead bytes that others left, so that
    /// what the change notes of them is true, and looks in small frames where they are. What cannot be read now is
    /// counted another time.
    pub(super) fn count_holes(&mut self, session: &Session) {
        let state = self.snapshot();
        let unknown = !state.holes.are_known() && state.index.len() <= FEW_CHUNKS;
        if (unknown || !state.dead_is_known) && !state.header.sparse {
            drop(state);
            let _ = self.learn_holes(session);
        }
    }

    /// Finds out how many bytes of an opened frame are dead; of a large one, only whether it may be many.
    fn learn_holes(&mut self, session: &Session) -> Result<()> {
        let state = self.snapshot();
        let positions = positions(&state)?;
        let few = positions.len() <= FEW_CHUNKS;
        let mut counted = None;
        if few || self.looks_hollow(session, &state, &positions)? {
            let chunks = positions.iter().map(|&position| self.extent(session, &state, position));
            counted = Some(memory::try_collect(chunks)?);
        }
        drop(state);
        let state = Arc::make_mut(self.state.get_mut());
        if let Some(chunks) = counted {
            state.dead = state.live_end.saturating_sub(chunks.iter().map(|chunk| chunk.len).sum());
            state.holes = Holes::between(&chunks, state.live_end);
        }
        state.dead_is_known = true;
        Ok(())
    }

    /// Whether a sample says that a third of the payload area is dead.
    fn looks_hollow(&self, session: &Session, state: &Arc<State>, positions: &[u64]) -> Result<bool> {
        let ends = positions[1..].iter().copied().chain([state.live_end]);
        let gap = |(&position, end): (&u64, u64)| Extent { position, len: end.saturating_sub(position) };
        let mut gaps = memory::collect(positions.iter().zip(ends).map(gap))?;
        let dead_in = |gap: Extent| -> Result<u64> {
            Ok(gap.len.saturating_sub(self.extent(session, state, gap.position)?.len))
        };
        let mut spread = 0;
        let step = gaps.len() / SAMPLES;
        for i in 0..SAMPLES {
            spread += dead_in(gaps[i * step])?;
        }
        gaps.sort_unstable_by_key(|gap| std::cmp::Reverse(gap.len));
        let mut largest = 0;
        for &gap in &gaps[..SAMPLES] {
            largest += dead_in(gap)?;
        }
        let dead = spread.saturating_mul(step as u64).saturating_add(largest); // widening
        Ok(dead.saturating_mul(3) > state.live_end)
    }

    /// Where the chunk at `position` is, with the room that it needs.
    pub(super) fn extent(&self, session: &Session, state: &Arc<State>, position: u64) -> Result<Extent> {
        let info = self.chunks_in(session, state).info_at(position)?;
        // Short chunks are stored with room for 32 bytes.
        let len = info.cbytes.max(EXTENDED_HEADER_LENGTH) as u64; // widening
        Ok(Extent { position, len: len.min(state.header.cbytes - position) })
    }

    /// All stored chunks by position.
    fn extents(&self, session: &Session, state: &Arc<State>) -> Result<Vec<Extent>> {
        let positions = positions(state)?;
        memory::try_collect(positions.into_iter().map(|position| self.extent(session, state, position)))
    }

    /// Moves the last chunks into holes and shortens the frame.
    fn refill(&mut self, session: &Session, refill: &Refill) -> Result<()> {
        let mut next = State::clone(&self.snapshot());
        let writes = redirect(&mut next, &refill.moves)?;
        next.holes.note_tried(None);
        next.holes.rest_on();
        for moved in &refill.moves {
            next.holes.fill(moved.to_extent());
            next.holes.give_up(moved.from);
        }
        next.holes.cut_off(refill.end);
        next.live_end = refill.end;
        next.dead = refill.end - refill.live;
        next.dead_is_known = true;
        if matches!(self.store, Store::Memory(_)) {
            next.header.cbytes = next.live_end;
            return self.write_tail(session, next, &writes, IndexOf::Other);
        }
        // Whoever opens the file after a kill finds the chunks where they were, or the new index where the old one was.
        next.replaces = true;
        self.write_tail(session, next, &writes, IndexOf::Other)?;
        self.shorten(session)
    }

    /// Moves all chunks after the first hole together.
    fn compact(&mut self, session: &Session, extents: &[Extent]) -> Result<()> {
        if overlap(extents) {
            // Chunks of a damaged frame overlap: there is no telling what is dead.
            let state = Arc::make_mut(self.state.get_mut());
            (state.dead, state.dead_is_known) = (0, true);
            state.holes = Holes::of_overlapping_chunks();
            return Ok(());
        }
        let mut hole = 0;
        let moved = extents.iter().position(|extent| {
            let after_hole = extent.position > hole;
            hole = if after_hole { hole } else { extent.end() };
            after_hole
        });
        let moved = &extents[moved.unwrap_or(extents.len())..];
        let Some(first) = moved.first() else {
            // There is no hole, whatever the frame said.
            let state = Arc::make_mut(self.state.get_mut());
            (state.dead, state.dead_is_known) = (0, true);
            return Ok(());
        };
        let len: u64 = moved.iter().map(|extent| extent.len).sum();
        let state = self.snapshot();
        let tail = longest_tail(&state);
        if matches!(self.store, Store::Memory(_)) || len + tail <= first.position - hole {
            // In memory nothing can go wrong between the steps, and moving down in order never overwrites what is
            // still to be moved. In a file neither chunks nor index may reach into the old places: whoever opens it
            // after a kill reads chunks there.
            drop(state);
            return self.move_chunks(session, moved, hole, hole);
        }
        let behind = state.header.frame_len - state.header.header_len as u64; // widening
        let aside = behind.max(hole + len + tail);
        drop(state);
        self.move_chunks(session, moved, hole, aside)?;
        let mut at = aside;
        let aside = moved.iter().map(|extent| {
            let position = at;
            at += extent.len;
            Extent { position, ..*extent }
        });
        let aside = memory::collect(aside)?;
        self.move_chunks(session, &aside, hole, hole)
    }

    /// Moves `moved`, all chunks after `hole`, to `to`, one after the other, as one change. The new index must not
    /// reach into chunks of the old content.
    fn move_chunks(&mut self, session: &Session, moved: &[Extent], hole: u64, to: u64) -> Result<()> {
        let mut next = State::clone(&self.snapshot());
        let mut at = to;
        let moves = moved.iter().map(|&from| {
            let to = at;
            at += from.len;
            Move { from, to }
        });
        let moves = memory::collect(moves)?;
        let writes = redirect(&mut next, &moves)?;
        next.live_end = at;
        next.header.cbytes = at;
        next.dead = to - hole;
        next.dead_is_known = true;
        next.holes = Holes::of_disjoint_chunks();
        let too_large = Error::new(ErrorKind::Data, "payload area too large");
        i64::try_from(at).map_err(|_| too_large)?;
        self.write_tail(session, next, &writes, IndexOf::Other)
    }
}

/// Makes the index of `next` refer to the new places of chunks; returns the copies to be made. Neighbours that stay
/// neighbours are copied as one.
fn redirect(next: &mut State, moves: &[Move]) -> Result<Vec<Write<'static>>> {
    let mut runs: Vec<Move> = Vec::new();
    for moved in moves {
        match runs.last_mut() {
            Some(run) if run.from.end() == moved.from.position && run.to_extent().end() == moved.to => {
                run.from.len += moved.from.len;
            }
            _ => memory::push(&mut runs, *moved)?,
        }
    }
    let mut places = HashMap::new();
    places.try_reserve(moves.len()).map_err(|_| memory::no_memory())?;
    places.extend(moves.iter().map(|moved| (moved.from.position, moved.to)));
    next.index.change_each(|entry| {
        let place = u64::try_from(entry).ok().and_then(|position| places.get(&position));
        place.map(|&place| Entry::Stored(place).encode())
    })?;
    let header_len = next.header.header_len as u64; // widening
    memory::collect(runs.iter().map(|run| Write::Copy {
        from: header_len + run.from.position,
        to: header_len + run.to,
        len: run.from.len,
    }))
}
