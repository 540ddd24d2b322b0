//! New versions of the last chunks of a contiguous frame, which take the places of the old ones.
//!
//! While an array or a table grows bit by bit, its last chunk, or its last row of chunks, is replaced over and over by
//! larger versions, which never fit in the holes that the old ones leave. They may use the old places and what follows,
//! but nothing may be written there before the stored index has given these places up. So in a file, one change writes
//! the new chunks farther on, and the next one moves them to the old places: the frame gets as long as if each chunk
//! had been written once. Readers without locks must expect new versions in the places of the last chunks.

#![forbid(unsafe_code)]

use super::Frame;
use super::edit::NewChunk;
use super::holes::MOST_AT_ONCE;
use super::index_codec::IndexOf;
use super::session::Session;
use super::state::State;
use super::store::{Store, Write};
use super::tail::longest_tail;
use crate::error::Result;
use crate::format::offsets::Entry;
use crate::memory;

/// Where old and new chunks take no more bytes than this, dead bytes at the end are not worth another change.
const FEW: u64 = 2048;

/// Chunks that were written after the others, one after the other.
#[derive(Default)]
pub(super) struct Ahead<'a> {
    /// Each with its position in the payload area.
    pub(super) chunks: Vec<(&'a NewChunk<'a>, u64)>,
    /// How far in front of its position each chunk belongs, in bytes; 0 if it is where it belongs.
    by: u64,
    /// Length of the payload area in the end.
    area: u64,
}

/// From which position on there may be new versions where old ones were between two states of a frame. Before it, that
/// takes several changes, and is not expected.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(super) fn reused_from(before: &State, after: &State) -> Result<u64> {
    let only_grew = before.counted.is_none() && after.counted.is_none();
    // Others do not count their changes, and chunk files are replaced one by one.
    let most = if only_grew || before.header.sparse { 1 } else { MOST_AT_ONCE };
    let start_of_last = |state: &State| -> Result<u64> {
        let mut places = memory::collect(state.index.stored())?;
        Ok(match places.len().checked_sub(most) {
            Some(n) if n > 0 => *places.select_nth_unstable(n).1,
            _ => 0,
        })
    };
    Ok(start_of_last(before)?.min(start_of_last(after)?))
}

impl Frame {
    /// Finds room for `chunks` after the others of `next`.
    pub(super) fn place_after_last<'a>(
        &self,
        session: &Session,
        next: &mut State,
        chunks: &[&'a NewChunk<'_>],
    ) -> Result<Ahead<'a>> {
        if chunks.is_empty() {
            return Ok(Ahead::default());
        }
        let total = chunks.iter().map(|chunk| chunk.room()).sum::<u64>();
        let end = next.live_end;
        let mut free = next.holes.start_of_last(end);
        if !next.holes.are_known() && free < end && !self.is_end(session, next, free) {
            free = end;
        }
        let mut ahead = Ahead::default();
        let mut at = end;
        let worth_it = end > free && (end - free).max(total) > FEW && !session.is_followed();
        let (now, lately) = next.holes.given_up_from(free);
        let replaces_last = worth_it && now > 0 && lately <= MOST_AT_ONCE;
        if matches!(self.store, Store::Memory(_)) {
            at = free;
        } else if replaces_last {
            let least = if next.replaces || next.dead > end - free { next.header.cbytes } else { 0 };
            ahead.area = least.max(free + total);
            // The index, too, is not to reach into what the old one refers to when the chunks have moved.
            at = end.max(ahead.area + longest_tail(next));
            ahead.by = at - free;
        }
        if at < end || ahead.by > 0 {
            next.holes.cut_off(free);
        }
        next.dead = (next.dead + at).saturating_sub(end);
        ahead.chunks = memory::with_capacity(chunks.len())?;
        for &chunk in chunks {
            ahead.chunks.push((chunk, at));
            at += chunk.room();
        }
        next.live_end = at;
        Ok(ahead)
    }

    /// Whether the chunks of `next` end at `position` or before, as far as the last one tells: its length alone is
    /// looked up.
    fn is_end(&self, session: &Session, next: &State, position: u64) -> bool {
        let Some(last) = next.index.stored().max() else { return true };
        last < position
            && self.extent(session, &self.snapshot(), last).is_ok_and(|last| last.end() <= position)
    }

    /// Moves chunks to where they belong, now that nothing else is there.
    ///
    /// # Errors
    ///
    /// Those of writing; they stay where they are then.
    pub(super) fn bring_back(&mut self, session: &Session, ahead: &Ahead<'_>) -> Result<()> {
        if ahead.by == 0 {
            return Ok(());
        }
        let mut next = State::clone(&self.snapshot());
        let header_len = next.header.header_len as u64; // widening
        let mut writes = memory::with_capacity(ahead.chunks.len())?;
        for (chunk, position) in &ahead.chunks {
            let to = position - ahead.by;
            next.index.set(chunk.nchunk, Entry::Stored(to).encode())?;
            writes.push(Write::Bytes(header_len + to, &chunk.bytes));
        }
        next.live_end -= ahead.by;
        next.dead = next.dead.saturating_sub(ahead.by);
        next.header.cbytes = ahead.area;
        next.holes.rest_on();
        self.write_tail(session, next, &writes, IndexOf::Other)
    }
}
