//! Fixed and variable-length metalayers of a frame: added, updated and deleted, each as one change.

#![forbid(unsafe_code)]

use super::Frame;
use super::head::is_seen_whole;
use super::index_codec::IndexOf;
use super::session::Session;
use super::state::State;
use super::store::Write;
use crate::error::{ErrorKind, Result, ensure, require};
#[cfg(feature = "capi")]
use crate::format::frame_header::FrameHeader;
use crate::format::frame_trailer;
use crate::format::metalayers::{
    MAX_METALAYERS, MAX_VLMETALAYERS_WRITTEN, Metalayer, Metalayers, changeable, check_name,
};
use crate::memory::{no_memory, zeroed};
use std::sync::Arc;

/// Trailers from this size on, in bytes, are put beside the old one.
const LARGE_TRAILER: usize = 16 << 10;

impl State {
    /// Replaces the start of the content of a fixed metalayer; returns its number, and false if the content is too
    /// short for that.
    pub(super) fn update_layer(&mut self, name: &[u8], content: &[u8]) -> Result<(usize, bool)> {
        let number = self.metalayers.find(name)?;
        let fits = changeable(&mut self.metalayers)?.overwrite(number, content)?;
        self.tick += u64::from(fits);
        Ok((number, fits))
    }
}

/// Whether a fixed metalayer `name` can be added.
fn check_addition(state: &State, name: &[u8]) -> Result<()> {
    state.metalayers.check_new(name)?;
    require(state.metalayers.len() < MAX_METALAYERS, "too many metalayers")?;
    require(state.index.len() == 0 && state.header.nbytes == 0, "frame has chunks already")
}

/// Whether a variable-length metalayer `name` can be added.
fn check_vl_addition(state: &State, name: &[u8]) -> Result<()> {
    state.vlmetalayers.check_new(name)?;
    let room = state.vlmetalayers.len() < MAX_VLMETALAYERS_WRITTEN;
    ensure(room, ErrorKind::Failure, "too many metalayers for a frame")
}

impl Frame {
    /// Begins a change of metalayers that is not possible unless `check` passes. Its answer comes first if the frame
    /// cannot be changed at all, and, as in the C library, before the exclusive lock, which counts the changes.
    fn begin_if<T>(&mut self, check: impl Fn(&State) -> Result<T>) -> Result<(Session, T)> {
        if self.locks() {
            let seen = self.view().map(|view| Arc::clone(&view.state));
            check(&seen.unwrap_or_else(|_| self.snapshot()))?;
        }
        let session = match self.begin() {
            Err(e) if e.kind() != ErrorKind::Lock => return check(self.known()).and(Err(e)),
            begun => begun?,
        };
        let found = check(self.known())?;
        Ok((session, found))
    }

    /// Puts `fixed` and `variable` in the place of the metalayers in memory; the next change writes them.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the header would have another length, since what follows it stays where it is; `Failure` for
    /// more variable-length metalayers than the C library could write.
    #[cfg(feature = "capi")]
    pub(crate) fn adopt_layers(&mut self, fixed: Arc<Metalayers>, variable: Arc<Metalayers>) -> Result<()> {
        let known = self.known();
        let same_len = FrameHeader::len_with(&fixed) == FrameHeader::len_with(&known.metalayers);
        require(same_len, "metalayers in the header of a frame cannot change their lengths")?;
        let room = variable.len() <= known.vlmetalayers.len().max(MAX_VLMETALAYERS_WRITTEN);
        ensure(room, ErrorKind::Failure, "too many metalayers for a frame")?;
        let mut next = State::clone(known);
        (next.metalayers, next.vlmetalayers) = (fixed, variable);
        next.owes_trailer = true;
        *self.state.get_mut() = Arc::new(next);
        Ok(())
    }

    /// Adds a fixed metalayer; returns its number. They live in the header, so the frame must not have chunks yet.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a name that is too long or in use, a 17th metalayer, or a frame with chunks; those of
    /// writing.
    pub fn meta_add(&mut self, name: &[u8], content: &[u8]) -> Result<usize> {
        check_name(name)?;
        require(i32::try_from(content.len()).is_ok(), "metalayer too large")?;
        let (session, ()) = self.begin_if(|state| check_addition(state, name))?;
        let mut next = State::clone(self.known());
        changeable(&mut next.metalayers)?.push(Metalayer::new(name, content)?)?;
        next.tick += 1;
        next.close_if_empty();
        let number = next.metalayers.len() - 1;
        self.write_tail(&session, next, &[], IndexOf::Other)?;
        Ok(number)
    }

    /// Overwrites the start of a fixed metalayer with `content`; returns its number. Length and remaining bytes stay;
    /// content longer than that is not written.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidParam` for a name that is too long; those of writing.
    pub fn meta_update(&mut self, name: &[u8], content: &[u8]) -> Result<usize> {
        self.meta_update_ticks(name, content, 1)
    }

    /// As [`meta_update`](Self::meta_update), and counts as this many changes, at least 1.
    pub(crate) fn meta_update_ticks(&mut self, name: &[u8], content: &[u8], ticks: u64) -> Result<usize> {
        check_name(name)?;
        let (session, _) = self.begin_if(|state| state.metalayers.find(name))?;
        let mut next = State::clone(self.known());
        let (number, fits) = next.update_layer(name, content)?;
        if !fits {
            return Ok(number);
        }
        next.tick += ticks - 1;
        if next.owes_trailer || !is_seen_whole(next.header.header_len) {
            self.write_layers(&session, next)?;
        } else {
            self.write_header(&session, next)?;
        }
        Ok(number)
    }

    /// Number of the variable-length metalayer `name`, after taking over what others changed.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidParam` for a name that is too long, `Lock`.
    pub fn vlmeta_find(&self, name: &[u8]) -> Result<usize> {
        check_name(name)?;
        if !self.is_on_disk() {
            return self.state.read().vlmetalayers.find(name);
        }
        let state = match self.view() {
            Ok(view) => Arc::clone(&view.state),
            Err(e) if e.kind() == ErrorKind::Lock => return Err(e),
            Err(_) => self.snapshot(),
        };
        state.vlmetalayers.find(name)
    }

    /// Adds a variable-length metalayer; returns its number. `content` is a whole chunk.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a name that is too long or in use, `Failure` for a 17th metalayer, which the C library could
    /// read but not write; those of writing.
    pub fn vlmeta_add(&mut self, name: &[u8], content: Vec<u8>) -> Result<usize> {
        check_name(name)?;
        let (session, ()) = self.begin_if(|state| check_vl_addition(state, name))?;
        let mut layers = self.vlmetalayers().copy()?;
        layers.push(Metalayer::with_content(name, content)?)?;
        let number = layers.len() - 1;
        self.write_vl_layers(&session, layers)?;
        Ok(number)
    }

    /// As [`vlmeta_add`](Self::vlmeta_add), in memory; the next change writes it, and is one with this.
    ///
    /// # Errors
    ///
    /// As [`vlmeta_add`](Self::vlmeta_add), except for those of writing.
    pub(crate) fn vlmeta_add_later(&mut self, name: &[u8], content: Vec<u8>) -> Result<usize> {
        check_name(name)?;
        check_vl_addition(self.known(), name)?;
        let mut next = State::clone(self.known());
        changeable(&mut next.vlmetalayers)?.push(Metalayer::with_content(name, content)?)?;
        next.tick += 1;
        next.owes_trailer = true;
        let number = next.vlmetalayers.len() - 1;
        *self.state.get_mut() = Arc::new(next);
        Ok(number)
    }

    /// Replaces the content of a variable-length metalayer; returns its number. `content` is a whole chunk.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidParam` for a name that is too long; those of writing.
    pub fn vlmeta_update(&mut self, name: &[u8], content: Vec<u8>) -> Result<usize> {
        check_name(name)?;
        let (session, number) = self.begin_if(|state| state.vlmetalayers.find(name))?;
        let mut layers = self.vlmetalayers().copy()?;
        layers.replace(number, Metalayer::with_content(name, content)?);
        self.write_vl_layers(&session, layers)?;
        Ok(number)
    }

    /// Deletes a variable-length metalayer; returns the number of those left.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidParam` for a name that is too long; those of writing.
    pub fn vlmeta_delete(&mut self, name: &[u8]) -> Result<usize> {
        check_name(name)?;
        let (session, number) = self.begin_if(|state| state.vlmetalayers.find(name))?;
        let mut layers = self.vlmetalayers().copy()?;
        layers.remove(number);
        let left = layers.len();
        self.write_vl_layers(&session, layers)?;
        Ok(left)
    }

    /// Puts `layers` in the place of the variable-length metalayers.
    fn write_vl_layers(&mut self, session: &Session, layers: Metalayers) -> Result<()> {
        let mut next = State::clone(self.known());
        next.vlmetalayers = Arc::new(layers);
        next.tick += 1;
        self.write_layers(session, next)
    }

    /// Writes the header of `next`, which has other fixed metalayers than the frame: all of it is looked at, so that
    /// nobody overlooks the change.
    fn write_header(&mut self, session: &Session, mut next: State) -> Result<()> {
        next.header.params = self.params();
        let header = next.header.write(&next.metalayers)?;
        self.write_change(session, &[Write::Bytes(0, &header)], next.header.frame_len)?;
        next.note_header(&header);
        *self.state.get_mut() = Arc::new(next);
        Ok(())
    }

    /// Whether a trailer of `len` bytes may be put behind the frame, so that the old one stays as it is up to the end
    /// of the change; `dead` bytes follow the index then. A large trailer would have to be saved before another one
    /// takes its place.
    fn may_go_behind(session: &Session, next: &State, dead: u64, len: usize) -> bool {
        let is_worth_it = session.file.is_some() && len >= LARGE_TRAILER;
        // Without chunks, the C library looks for the trailer right after the header.
        let is_allowed = !session.is_followed() && next.header.nbytes > 0;
        is_worth_it && is_allowed && dead <= (len + len / 8) as u64 // widening
    }

    /// Writes trailer and header of `next`, which has other metalayers than the frame; index and chunks stay as they
    /// are.
    fn write_layers(&mut self, session: &Session, mut next: State) -> Result<()> {
        let mut trailer = frame_trailer::write(&next.vlmetalayers)?;
        if let Some(usage) = next.usage() {
            usage.put(&mut trailer);
        }
        let (old_at, old_end) = (next.trailer_at(), next.header.frame_len);
        let index_end = if next.close_if_empty() { next.index_at() } else { old_at - next.gap };
        let goes_behind = Self::may_go_behind(session, &next, old_end - index_end, trailer.len());
        let (least, old_at) = if goes_behind { (old_end, old_end) } else { (index_end, old_at) };
        // A frame that gets longer is seen to have changed.
        let longer = trailer.len() > next.trailer_len && !goes_behind;
        let gap = self.gap(session, &mut next, least + trailer.len() as u64, longer); // widening
        next.gap = least + gap - index_end;
        next.close_gap(&mut trailer)?;
        next.trailer_len = trailer.len();
        let at = index_end + next.gap;
        next.header.frame_len = at + trailer.len() as u64; // widening
        // Nothing of the old trailer stays before the new one, unless it is large.
        let start = at.min(old_at);
        let before: Vec<u8> = zeroed(usize::try_from(at - start).map_err(|_| no_memory())?)?;
        next.header.has_vlmeta = !next.vlmetalayers.is_empty();
        next.header.params = self.params();
        let header = next.header.write(&next.metalayers)?;
        let writes = [Write::Bytes(start, &before), Write::Bytes(at, &trailer), Write::Bytes(0, &header)];
        let writes = if before.is_empty() { &writes[1..] } else { &writes };
        self.write_change(session, writes, next.header.frame_len)?;
        next.note_header(&header);
        *self.state.get_mut() = Arc::new(next);
        Ok(())
    }
}
