//! Files of replaced chunks of a sparse frame, kept for chunks to come.
//!
//! Some file systems take a hundred times as long to make a file as to rename one, the more so if others were removed
//! just before. So the file of a replaced chunk gets a name that no chunk has, and some changes later it becomes the
//! file of a new chunk. A reader without a lock that has opened it under its old name has that much time to read it;
//! one that takes longer finds that the frame was changed, and reads again. Places in contiguous frames rest in the
//! same way before they are used again (see [`holes`](super::holes)).
//!
//! Whoever finds such a file may remove it. A handle removes its own files when it is closed or short of room. When it
//! first keeps one, it removes those left by processes that ended without closing their handles.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// How many changes must pass before a file is used again.
const REST: u64 = 3;

/// A file that is kept.
#[derive(Clone, Copy, Debug)]
struct Spare {
    slot: u8,
    /// Bytes that it takes, at least one.
    len: u64,
    /// The change whose chunk left it.
    since: u64,
}

/// The kept files of one handle, each of which has a slot of its own.
#[derive(Debug, Default)]
pub(super) struct Spares {
    /// The oldest first.
    kept: VecDeque<Spare>,
    /// The slots of all of them, a bit each.
    used: u32,
    /// Bytes that all of them take.
    total: u64,
    /// Number of changes so far.
    changes: u64,
    /// Whether a chunk was replaced before. Nothing is kept of the first one: there may be no other.
    expecting: bool,
    /// Whether any file was ever kept.
    any_kept: bool,
}

/// How many names there are.
const SLOTS: u8 = 32;

/// Name of a kept file.
pub(super) fn name(slot: u8) -> String {
    format!("{slot:02X}.b2spare")
}

/// All slots.
pub(super) fn slots() -> impl Iterator<Item = u8> {
    0..SLOTS
}

impl Spares {
    /// A change begins.
    pub(super) fn count_change(&mut self) {
        self.changes += 1;
    }

    /// Takes out a file for a new chunk.
    pub(super) fn take(&mut self) -> Option<u8> {
        self.kept.front().filter(|spare| self.changes - spare.since > REST)?;
        self.drop_oldest()
    }

    /// Where to keep a file of `len` bytes; `None` if it is not to be kept: those kept do not take more than the `live`
    /// bytes of all chunks.
    pub(super) fn put(&mut self, len: u64, live: u64) -> Option<u8> {
        let slot = u8::try_from(self.used.trailing_ones()).ok().filter(|&slot| slot < SLOTS)?;
        let len = len.max(1);
        if !self.expecting || self.total + len > live {
            return None;
        }
        self.used |= 1 << slot;
        self.total += len;
        self.kept.push_back(Spare { slot, len, since: self.changes });
        Some(slot)
    }

    /// The file that was [put](Self::put) last could not be kept.
    pub(super) fn take_back(&mut self) {
        if let Some(spare) = self.kept.pop_back() {
            self.forget(spare);
        }
    }

    /// A chunk was replaced.
    pub(super) fn expect_more(&mut self) {
        self.expecting = true;
    }

    /// Whether a file is about to be kept for the first time.
    pub(super) fn is_first(&mut self) -> bool {
        self.expecting && !std::mem::replace(&mut self.any_kept, true)
    }

    /// Gives up files until the others take no more than `live` bytes.
    pub(super) fn trim(&mut self, live: u64) -> Vec<u8> {
        let mut slots = Vec::new();
        while self.total > live {
            let Some(slot) = self.drop_oldest() else { break };
            slots.push(slot);
        }
        slots
    }

    fn drop_oldest(&mut self) -> Option<u8> {
        let spare = self.kept.pop_front()?;
        self.forget(spare);
        Some(spare.slot)
    }

    fn forget(&mut self, spare: Spare) {
        self.used &= !(1 << spare.slot);
        self.total -= spare.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expecting() -> Spares {
        Spares { expecting: true, ..Spares::default() }
    }

    #[test]
    fn a_file_rests_before_it_is_given_out() {
        let mut spares = expecting();
        assert_eq!((spares.put(10, 100), spares.put(10, 100)), (Some(0), Some(1)));
        for _ in 0..REST {
            spares.count_change();
            assert_eq!(spares.take(), None);
        }
        assert_eq!(spares.put(10, 100), Some(2));
        spares.count_change();
        assert_eq!((spares.take(), spares.take(), spares.take()), (Some(0), Some(1), None));
        // Names are used again.
        assert_eq!(
            (spares.put(10, 100), spares.put(10, 100), spares.put(10, 100)),
            (Some(0), Some(1), Some(3))
        );
    }

    #[test]
    fn nothing_is_kept_before_there_is_reason_to_expect_more() {
        let mut spares = Spares::default();
        assert_eq!((spares.is_first(), spares.put(1, 100)), (false, None));
        spares.expect_more();
        assert_eq!((spares.is_first(), spares.is_first(), spares.put(1, 100)), (true, false, Some(0)));
    }

    #[test]
    fn no_more_is_kept_than_lives() {
        let mut spares = expecting();
        assert_eq!((spares.put(60, 100), spares.put(41, 100), spares.put(40, 100)), (Some(0), None, Some(1)));
        assert!(spares.trim(100).is_empty());
        assert_eq!(spares.trim(60), [0]);
        assert_eq!(spares.put(1, 60), Some(0));
        spares.take_back();
        assert_eq!(spares.trim(0), [1]);
        assert_eq!(spares.used, 0);
    }

    #[test]
    fn there_are_as_many_names_as_bits() {
        let mut spares = expecting();
        assert_eq!((0..200).filter_map(|_| spares.put(1, 1000)).last(), Some(31));
        assert_eq!(name(31), "1F.b2spare");
    }
}
