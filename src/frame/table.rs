//! The entries of a chunk index, in parts: one for each block of the index chunk.
//!
//! A change makes a new index out of one that readers may still look at. The two share all parts that are equal,
//! together with their compressed form, so that appending to a long index costs hardly more than to a short one.

#![forbid(unsafe_code)]

use crate::error::Result;
use crate::memory::{self, collect, copy_of, extend, with_capacity};
use std::ops::Range;
use std::sync::Arc;

/// Entries of a part, except for the last one, which may have fewer.
pub(super) const PART: usize = 2048;

/// One entry per chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    parts: Vec<Part>,
    len: usize,
}

/// Entries that lie in one block.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Where the entries are: in memory of their own, or with all those that the table was made of.
    memory: Arc<Vec<i64>>,
    range: Range<usize>,
    /// What the block becomes in the index chunk, if that is known.
    pub(super) streams: Option<Arc<Vec<u8>>>,
}

impl Part {
    fn of(entries: Vec<i64>) -> Part {
        Part { range: 0..entries.len(), memory: Arc::new(entries), streams: None }
    }

    pub(super) fn entries(&self) -> &[i64] {
        &self.memory[self.range.clone()]
    }

    /// The entries, to be changed.
    fn change(&mut self) -> Result<&mut [i64]> {
        self.streams = None;
        if Arc::get_mut(&mut self.memory).is_none() {
            *self = Part::of(copy_of(self.entries())?);
        }
        let memory = Arc::get_mut(&mut self.memory).expect("nobody else has the copy");
        Ok(&mut memory[self.range.clone()])
    }
}

/// The parts that `entries` make, each in memory of its own: they may stay when the others go.
fn parts_of(entries: Vec<i64>) -> Result<Vec<Part>> {
    // This only saves a copy.
    if (1..=PART).contains(&entries.len()) {
        return collect(std::iter::once(Part::of(entries)));
    }
    memory::try_collect(entries.chunks(PART).map(|entries| copy_of(entries).map(Part::of)))
}

impl Table {
    /// A table of these entries.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn of(entries: Vec<i64>) -> Result<Table> {
        let len = entries.len();
        let memory = Arc::new(entries);
        let part = |start| {
            let range = start..len.min(start + PART);
            Part { memory: Arc::clone(&memory), range, streams: None }
        };
        Ok(Table { parts: collect((0..len).step_by(PART).map(part))?, len })
    }

    /// A table that shares all parts with this one.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn copy(&self) -> Result<Table> {
        Ok(Table { parts: collect(self.parts.iter().cloned())?, len: self.len })
    }

    /// Takes over what is known of parts of `old` that are the same in this table.
    pub(super) fn learn_from(&mut self, old: &Table) {
        for (part, old) in self.parts.iter_mut().zip(&old.parts) {
            if part.entries() == old.entries() {
                part.streams.clone_from(&old.streams);
            }
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The parts, in order.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// As [`parts`](Self::parts), to note what is stored of them.
    pub(super) fn parts_mut(&mut self) -> &mut [Part] {
        &mut self.parts
    }

    /// Entry `n`.
    pub(super) fn get(&self, n: usize) -> Option<i64> {
        self.parts.get(n / PART)?.entries().get(n % PART).copied()
    }

    /// The entries from those of part `first` on, in one piece with room for `more` others.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn entries(&self, first: usize, more: usize) -> Result<Vec<i64>> {
        let mut entries = with_capacity(self.len - first * PART + more)?;
        for part in &self.parts[first..] {
            extend(&mut entries, part.entries())?;
        }
        Ok(entries)
    }

    /// Makes `entry` entry `n`.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    ///
    /// # Panics
    ///
    /// If there is no entry `n`.
    pub(super) fn set(&mut self, n: usize, entry: i64) -> Result<()> {
        self.parts[n / PART].change()?[n % PART] = entry;
        Ok(())
    }

    /// Inserts `entry` this many times before entry `at`.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; the table is as before.
    ///
    /// # Panics
    ///
    /// If there are fewer entries than `at`.
    pub(super) fn insert(&mut self, at: usize, count: usize, entry: i64) -> Result<()> {
        assert!(at <= self.len, "entries are one behind the other");
        let first = at / PART;
        let mut entries = self.entries(first, count)?;
        let at = at - first * PART;
        entries.splice(at..at, std::iter::repeat_n(entry, count));
        let parts = parts_of(entries)?;
        memory::reserve(&mut self.parts, parts.len())?;
        self.parts.truncate(first);
        self.parts.extend(parts);
        self.len += count;
        Ok(())
    }

    /// Replaces the entries for which `change` gives others.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; some entries may be replaced then.
    pub(super) fn change_each(&mut self, mut change: impl FnMut(i64) -> Option<i64>) -> Result<()> {
        for n in 0..self.len {
            if let Some(entry) = self.get(n).and_then(&mut change) {
                self.set(n, entry)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn entries(table: &Table) -> Vec<i64> {
        let entries: Vec<i64> = table.parts().iter().flat_map(|part| part.entries()).copied().collect();
        let full = table.parts().iter().rev().skip(1).all(|part| part.entries().len() == PART);
        assert!(full && table.parts().iter().all(|part| !part.entries().is_empty()));
        assert_eq!(entries.len(), table.len());
        entries
    }

    #[test]
    fn a_table_is_what_a_vector_is() {
        let mut random = Random::new(7);
        for len in [0, 1, PART - 1, PART, PART + 1, 3 * PART] {
            let mut model: Vec<i64> = (0..).take(len).collect();
            let mut table = Table::of(model.clone()).unwrap();
            for step in 1000.. {
                let (at, count) = (random.below(model.len() + 1), random.below(4));
                let old = table.copy().unwrap();
                let before = model.clone();
                table.insert(at, count, step).unwrap();
                model.splice(at..at, vec![step; count]);
                if at < model.len() {
                    table.set(at, -step).unwrap();
                    model[at] = -step;
                }
                assert_eq!(entries(&table), model);
                assert_eq!(entries(&old), before);
                let far = model.len() + random.below(5000);
                assert_eq!((table.get(at), table.get(far)), (model.get(at).copied(), None));
                if step == 1020 {
                    break;
                }
            }
            let odd = |entry: i64| (entry % 2 != 0).then_some(entry * 10);
            table.change_each(odd).unwrap();
            model.iter_mut().for_each(|entry| *entry = odd(*entry).unwrap_or(*entry));
            assert_eq!(entries(&table), model);
        }
    }

    #[test]
    fn what_stays_does_not_keep_the_memory_of_what_goes() {
        let mut table = Table::of((0..).take(50 * PART).collect()).unwrap();
        for part in 0..50 {
            table.insert(part * PART, 1, -1).unwrap();
        }
        let mut held: Vec<_> =
            table.parts().iter().map(|part| (Arc::as_ptr(&part.memory), part.memory.len())).collect();
        held.sort_unstable();
        held.dedup();
        assert!(held.iter().map(|(_, len)| len).sum::<usize>() <= 2 * table.len());
    }

    #[test]
    fn what_does_not_change_is_shared() {
        let mut table = Table::of((0..).take(5 * PART).collect()).unwrap();
        for part in table.parts_mut() {
            part.streams = Some(Arc::default());
        }
        let old = table.copy().unwrap();
        let shared = |table: &Table| -> Vec<bool> {
            let parts = table.parts().iter().zip(old.parts());
            let same = parts.map(|(part, old)| part.entries().as_ptr() == old.entries().as_ptr());
            assert!(
                table.parts().iter().zip(same.clone()).all(|(part, same)| part.streams.is_some() == same)
            );
            same.collect()
        };
        table.insert(5 * PART, 1, 7).unwrap();
        assert_eq!(shared(&table), [true; 5]);
        table.set(PART, 9).unwrap();
        table.set(4 * PART - 1, 9).unwrap();
        assert_eq!(shared(&table), [true, false, true, false, true]);
        table.change_each(|entry| (entry == 2 * PART as i64).then_some(3)).unwrap();
        assert_eq!(shared(&table), [true, false, false, false, true]);
        table.insert(1, 1, 7).unwrap();
        assert_eq!(shared(&table), [false; 5]);
        let mut entries = entries(&old);
        entries.remove(3 * PART);
        let mut table = Table::of(entries).unwrap();
        table.learn_from(&old);
        let known: Vec<bool> = table.parts().iter().map(|part| part.streams.is_some()).collect();
        assert_eq!(known, [true, true, true, false, false]);
    }
}
