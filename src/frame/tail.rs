//! The end of each change: index, trailer and header of the new content, and how long the frame is then.

#![forbid(unsafe_code)]

use super::Frame;
use super::head::is_seen_whole;
use super::index_codec::IndexOf;
use super::session::Session;
use super::state::State;
use super::store::{self, Change, Store, Write};
use crate::error::Result;
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::frame_header::FrameHeader;
use crate::format::frame_trailer;
use crate::memory::{no_memory, reserve, with_capacity};
use std::sync::Arc;

/// The widest gap between index and trailer, in bytes, unless the trailer is large: a prime number, which nothing else in
/// a frame is a multiple of, and the same for all frames, as changes are counted by what is left of the frame length
/// when it is divided by this.
const WIDEST_GAP: u64 = 251;

/// More bytes than index and trailer take, however badly the index compresses once chunks have moved.
pub(super) fn longest_tail(state: &State) -> u64 {
    let index = 8 * state.index.len() + 2 * EXTENDED_HEADER_LENGTH;
    (index + state.trailer_len) as u64 + WIDEST_GAP // widening
}

impl Frame {
    /// Writes `payload`, then index, trailer and header of `next`, as one change; `next` is the state from then on.
    pub(super) fn write_tail(
        &mut self,
        session: &Session,
        mut next: State,
        payload: &[Write<'_>],
        of: IndexOf,
    ) -> Result<()> {
        let mut tail = next.index.write(of)?;
        let index_len = tail.len();
        frame_trailer::append(&mut tail, &next.vlmetalayers)?;
        next.header.params = self.params;
        next.header.has_vlmeta = !next.vlmetalayers.is_empty();
        next.header.header_len = FrameHeader::len_with(&next.metalayers);
        let end = next.index_at() + tail.len() as u64; // widening
        let adds = !next.replaces;
        next.gap = self.gap(session, &mut next, end, adds);
        next.close_gap(&mut tail)?;
        next.trailer_len = tail.len() - index_len;
        let (split, between) = if session.is_followed() {
            // Where the frame keeps its end, chunks of the old content may lie in the gap, which are read there until
            // the change is done.
            (index_len, next.gap)
        } else {
            let gap = usize::try_from(next.gap).map_err(|_| no_memory())?;
            reserve(&mut tail, gap)?;
            tail.splice(index_len..index_len, std::iter::repeat_n(0, gap));
            (0, 0)
        };
        if let Some(usage) = next.usage() {
            usage.put(&mut tail);
        }
        let at = next.index_at();
        next.header.frame_len = at + between + tail.len() as u64; // widening
        let header = next.header.write(&next.metalayers)?;
        let mut writes: Vec<Write<'_>> = with_capacity(payload.len() + 3)?;
        writes.extend_from_slice(payload);
        let (index, rest) = tail.split_at(split);
        if !index.is_empty() {
            writes.push(Write::Bytes(at, index));
        }
        writes.push(Write::Bytes(at + between + index.len() as u64, rest)); // widening
        writes.push(Write::Bytes(0, &header));
        self.write_change(session, &writes, next.header.frame_len)?;
        next.holes.settle();
        next.replaces = false;
        next.note_header(&header);
        *self.state.get_mut() = Arc::new(next);
        Ok(())
    }

    /// Carries out `writes`, or nothing of them.
    ///
    /// The old content needs its header, its index and its trailer. Its chunks, too, but no change writes there.
    pub(super) fn write_change(
        &mut self,
        session: &Session,
        writes: &[Write<'_>],
        new_len: u64,
    ) -> Result<()> {
        let old = self.state.get_mut();
        let old_len = old.header.frame_len;
        let header_len = old.header.header_len as u64; // widening
        let [index, trailer] = old.tail_ranges();
        let needed = [0..header_len, index, trailer];
        let change = Change { writes, needed: &needed, old_len, new_len, behind: session.behind };
        match (&mut self.store, &session.file) {
            (Store::Memory(buffer), _) => store::write_memory(buffer, &change),
            (Store::Disk(disk), Some(file)) => disk.write(&**file, &session.head.take(), &change),
            (Store::Disk(_), None) => unreachable!("sessions of frames on disk have a file"),
        }
    }

    /// How many bytes to leave between index and trailer of a frame that would end at `end` without them. `adds`: the
    /// change only adds, and replaces nothing.
    ///
    /// Handles that do not lock notice changes by the header; those of the C library by the frame length in it. So a
    /// change must not bring back a header that somebody may remember. As long as a frame only grows, each change makes
    /// its length or its sizes larger than ever before. All other changes are told apart by the frame length, modulo
    /// the widest gap. In an empty frame, the trailer fills the gap (see [`State::close_gap`]).
    pub(super) fn gap(&mut self, session: &Session, next: &mut State, end: u64, adds: bool) -> u64 {
        let old = self.state.get_mut();
        if session.is_followed() {
            // The frame ends where it did.
            return old.header.frame_len.saturating_sub(end);
        }
        let only_grows = old.counted.is_none()
            && adds
            && next.header.nbytes >= old.header.nbytes
            && next.header.cbytes >= old.header.cbytes
            && next.usage().is_none()
            && (next.header.nbytes > 0 || end > old.header.frame_len);
        // Nobody else reads a frame in memory.
        if only_grows || session.file.is_none() {
            return 0;
        }
        let count = old.counted.unwrap_or(old.header.frame_len) + 1;
        let is_empty = next.header.nbytes == 0 && next.vlmetalayers.is_empty();
        if is_empty && is_seen_whole(next.header.header_len) {
            // All there is to the frame is in its header.
            next.counted = Some(count);
            return 0;
        }
        let gap = 1 + (count % WIDEST_GAP + WIDEST_GAP - (end + 1) % WIDEST_GAP) % WIDEST_GAP;
        next.counted = Some(end + gap);
        gap
    }
}
