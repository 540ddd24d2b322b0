//! Numbers of chunk files that are too large for the C library.
//!
//! It does not open a sparse frame in which a number is larger than the chunks take bytes, less 32: it takes numbers
//! for positions. New chunks get numbers below that (see [`numbers`](super::numbers)), but the limit goes down when
//! chunks are deleted or get smaller. Then files with large numbers are copied to small ones, as a change of its own.
//! This costs little: all chunks together take fewer bytes than the largest number.

#![forbid(unsafe_code)]

use super::Frame;
use super::chunk_files;
use super::compact::positions;
use super::index_codec::IndexOf;
use super::numbers::LEAST_AHEAD;
use super::session::Session;
use super::state::State;
use super::store::{Disk, Store};
use crate::error::Result;
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::offsets::Entry;
use crate::memory;
use std::collections::HashMap;

impl Frame {
    /// Gives small numbers to chunk files whose numbers are too large. One that cannot be read keeps its number.
    ///
    /// # Errors
    ///
    /// Those of writing; the frame is complete in any case.
    pub(super) fn renumber(&mut self, session: &Session) -> Result<()> {
        let Store::Disk(disk @ Disk { dir: Some(_), .. }) = &self.store else { return Ok(()) };
        let state = self.snapshot();
        let cbytes = state.header.cbytes;
        let limit = cbytes.saturating_sub(LEAST_AHEAD);
        if state.index.is_within(i64::try_from(limit).unwrap_or(i64::MAX)) {
            return Ok(());
        }
        let ids = positions(&state)?;
        // Not only those beyond the limit, so that this is not to be done again for the next chunk that goes.
        let large = &ids[ids.partition_point(|&id| id <= limit / 2)..];
        let free = (0..).filter(|id| ids.binary_search(id).is_err());
        let mut renamed = HashMap::new();
        renamed.try_reserve(large.len()).map_err(|_| memory::no_memory())?;
        let (mut buffer, mut copied) = (Vec::new(), 0);
        let mut failed = None;
        for (&from, to) in large.iter().zip(free).take_while(|(from, to)| to < from) {
            let chunks = self.chunks_in(session, &state);
            if chunks.get_stored(from, EXTENDED_HEADER_LENGTH, &mut buffer).is_err() {
                continue;
            }
            copied += buffer.len() as u64; // widening
            if copied > cbytes {
                break; // the header of a damaged frame
            }
            renamed.insert(from, to);
            failed = chunk_files::write_or_make_room(disk, to, &buffer).err();
            if failed.is_some() {
                break;
            }
        }
        let written = match failed {
            Some(e) => Err(e),
            None => self.refer_to(session, &state, &renamed),
        };
        let Store::Disk(disk) = &self.store else { return Ok(()) };
        match written {
            Ok(()) => chunk_files::remove(disk, renamed.into_keys()),
            // Without a journal the index may refer to them by now.
            Err(_) if failed.is_none() && !disk.io.features().journal => {}
            Err(_) => chunk_files::remove(disk, renamed.into_values()),
        }
        written
    }

    /// Puts the new numbers of files in the index.
    fn refer_to(&mut self, session: &Session, state: &State, renamed: &HashMap<u64, u64>) -> Result<()> {
        if renamed.is_empty() {
            return Ok(());
        }
        let mut next = State::clone(state);
        next.index.change_each(|entry| {
            let id = u64::try_from(entry).ok().and_then(|id| renamed.get(&id));
            id.map(|&id| Entry::Stored(id).encode())
        })?;
        next.replaces = true;
        self.write_tail(session, next, &[], IndexOf::Other)
    }
}
