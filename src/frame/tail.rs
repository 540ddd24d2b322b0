//! The end of each change: index, trailer and header of the new content, and how long the frame is then.

use super::Frame;
use super::index_codec::IndexOf;
use super::session::Session;
use super::state::State;
use super::store::{self, Change, Store, Write};
use crate::error::Result;
use crate::format::frame_trailer;
use crate::memory::{extend, no_memory, reserve, with_capacity};
use std::ops::Range;
use std::sync::Arc;

/// Dead bytes in front of the index, or in sparse frames behind it, that change the length of a frame.
pub(super) const NUDGE: u64 = 8;
/// The longest gap between index and trailer that keeps a sparse frame from having the same length twice.
const MAX_GAP: u64 = 4096;
/// At most this many bytes are added to a frame so that its length differs from what it was before a change.
pub(super) const MAX_WANDER: u64 = 512;

impl Frame {
    /// Writes `payload`, then index, trailer and header of `next`, as one change; `next` is the state from then on.
    ///
    /// `live`: see [`write_change`](Self::write_change).
    pub(super) fn write_tail(
        &mut self,
        session: &Session,
        mut next: State,
        payload: &[Write<'_>],
        of: IndexOf,
        live: Option<Range<u64>>,
    ) -> Result<()> {
        let mut tail = next.index.write(of)?;
        let trailer = frame_trailer::write(&next.vlmetalayers)?;
        extend(&mut tail, &trailer)?;
        next.trailer_len = trailer.len();
        next.header.params = self.params;
        next.header.has_vlmeta = !next.vlmetalayers.is_empty();
        next.header.header_len = next.header.write(&next.metalayers)?.len();
        let end = next.index_at() + tail.len() as u64; // widening
        let longer = lengthened(session, self.state.get_mut(), &next, !payload.is_empty(), end);
        if session.followed.is_some() || next.header.sparse {
            let gap = usize::try_from(longer).map_err(|_| no_memory())?;
            let split = tail.len() - trailer.len();
            reserve(&mut tail, gap)?;
            tail.splice(split..split, std::iter::repeat_n(0, gap));
        } else {
            next.header.cbytes += longer;
        }
        if let Some(usage) = next.usage() {
            usage.put(&mut tail);
        }
        let at = next.index_at();
        next.header.frame_len = at + tail.len() as u64; // widening
        let header = next.header.write(&next.metalayers)?;
        let mut writes: Vec<Write<'_>> = with_capacity(payload.len() + 2)?;
        writes.extend_from_slice(payload);
        writes.push(Write::Bytes(at, &tail));
        writes.push(Write::Bytes(0, &header));
        self.write_change(session, &writes, next.header.frame_len, live)?;
        next.holes.settle();
        (next.replaces, next.brings_back) = (false, false);
        next.note_header(&header);
        *self.state.get_mut() = Arc::new(next);
        Ok(())
    }

    /// Carries out `writes`, or nothing of them.
    ///
    /// The old content needs its header, its index and its trailer. Its chunks, too, but no change writes there, with
    /// the exception of what `live` names (positions in the frame): when holes are closed and other data follow the frame,
    /// zeros before the trailer fill the rest of its old place.
    pub(super) fn write_change(
        &mut self,
        session: &Session,
        writes: &[Write<'_>],
        new_len: u64,
        live: Option<Range<u64>>,
    ) -> Result<()> {
        let old = self.state.get_mut();
        let old_len = old.header.frame_len;
        let header_len = old.header.header_len as u64; // widening
        let needed = [0..header_len, old.index_at()..old_len, live.unwrap_or(0..0)];
        let change = Change { writes, needed: &needed, old_len, new_len, followed: session.followed };
        match (&mut self.store, &session.file) {
            (Store::Memory(buffer), _) => store::write_memory(buffer, &change),
            (Store::Disk(disk), Some(file)) => disk.write(&**file, &session.head.take(), &change),
            (Store::Disk(_), None) => unreachable!("sessions of frames on disk have a file"),
        }
    }
}

/// How many bytes to add to a frame that could end at `end`: between index and trailer if other data follow or it is
/// sparse, else in front of the index.
///
/// Handles that do not lock notice changes by the length of the frame, so it must not stay the same. Where a chunk takes the
/// place of another it must not come back to a length that somebody may remember either.
fn lengthened(session: &Session, old: &State, next: &State, adds_chunks: bool, end: u64) -> u64 {
    let shorter = old.header.frame_len.checked_sub(end);
    match shorter {
        // The frame ends where it did.
        _ if session.followed.is_some() => shorter.unwrap_or(0),
        Some(by) if next.replaces && (by < MAX_GAP || !next.header.sparse) => by / NUDGE * NUDGE + NUDGE,
        Some(0) if next.dead > old.dead || adds_chunks => NUDGE,
        _ if next.brings_back => u64::from(end == session.frame_len) * NUDGE,
        // Holes are closed.
        Some(_) if old.header.frame_len != session.frame_len => wander(session, next, end),
        _ => 0,
    }
}

/// How many bytes to add to a frame that gets shorter and could end at `end`.
///
/// A session that replaces all chunks and closes the holes then would give the frame the length it had before. With this
/// it gets a little longer each time, and takes up to an eighth more than its chunks until it starts anew.
fn wander(session: &Session, next: &State, end: u64) -> u64 {
    let far = MAX_WANDER.min((next.live_end - next.dead) / 8);
    match session.frame_len.checked_sub(end) {
        Some(ahead) if ahead < far && !next.header.sparse && session.file.is_some() => {
            ahead / NUDGE * NUDGE + NUDGE
        }
        _ => 0,
    }
}
