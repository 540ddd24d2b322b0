//! Where the chunks of a list are: a table that C callers see, and that chunks are looked up in without the lock of the
//! super-chunk.
//!
//! To look a chunk up takes a nanosecond, to take and release a lock ten. So the table is such that adding chunks at
//! the end disturbs nobody who is looking at others: it moves when it grows, but the old one stays as long as anybody
//! may see it.

use super::list::len_of;
use crate::error::Result;
use crate::memory;
use crate::single;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The least room in a table.
const LEAST: usize = 4;

/// The addresses of chunks; null for those that are missing.
#[derive(Default)]
pub(super) struct Pointers {
    table: Vec<AtomicPtr<u8>>,
    /// Tables that were too small. They are half as long each as the next one, so all together are no longer than the
    /// table.
    outgrown: Vec<Vec<AtomicPtr<u8>>>,
    lookup: Arc<Lookup>,
}

/// What can be known of the chunks of a list without the lock of the super-chunk.
#[derive(Default)]
pub(crate) struct Lookup {
    table: AtomicPtr<AtomicPtr<u8>>,
    len: AtomicUsize,
}

impl Lookup {
    /// Chunk `nchunk`; `None` if there is none, or it is missing.
    ///
    /// # Safety
    ///
    /// Meanwhile, other threads change the super-chunk in no other way than by adding chunks at the end. The bytes are
    /// those of the chunk until it is changed.
    #[inline]
    pub(crate) unsafe fn chunk(&self, nchunk: usize) -> Option<NonNull<[u8]>> {
        // The number first: tables that come later have room for as many.
        if nchunk >= self.len.load(Ordering::Acquire) {
            return None;
        }
        let table = self.table.load(Ordering::Acquire);
        // SAFETY: the table had at least as many chunks when it was shown, and is still there by the caller's promise.
        let chunk = NonNull::new(unsafe { (*table.add(nchunk)).load(Ordering::Relaxed) })?;
        // SAFETY: the list has the chunk, by the caller's promise.
        Some(NonNull::slice_from_raw_parts(chunk, unsafe { len_of(chunk.as_ptr()) }))
    }
}

impl Pointers {
    /// What is seen of the table without a lock.
    pub(super) fn lookup(&self) -> &Arc<Lookup> {
        &self.lookup
    }

    /// For how many chunks there is room.
    pub(super) fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Makes room for `more` chunks.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        if self.capacity() - self.len() >= more { Ok(()) } else { self.grow(more) }
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<()> {
        let needed = self.len().checked_add(more).ok_or_else(memory::no_memory)?;
        let mut larger = memory::with_capacity(needed.max(self.capacity().saturating_mul(2)).max(LEAST))?;
        memory::reserve(&mut self.outgrown, 1)?;
        larger.extend(self.iter().map(|place| AtomicPtr::new(place.load(Ordering::Relaxed))));
        let outgrown = std::mem::replace(&mut self.table, larger);
        self.show();
        if Arc::strong_count(&self.lookup) > 1 && !single::is_only_thread() {
            self.outgrown.push(outgrown);
        }
        Ok(())
    }

    /// Inserts `chunk` before chunk `nchunk`.
    ///
    /// # Panics
    ///
    /// If there are fewer chunks, or there is no room.
    #[inline]
    pub(super) fn insert(&mut self, nchunk: usize, chunk: AtomicPtr<u8>) {
        assert!(self.len() < self.capacity(), "room is made before");
        self.table.insert(nchunk, chunk);
        self.show();
    }

    /// Takes chunk `nchunk` out.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub(super) fn remove(&mut self, nchunk: usize) -> AtomicPtr<u8> {
        let chunk = self.table.remove(nchunk);
        self.show();
        chunk
    }

    /// Puts another table in the place of this one.
    pub(super) fn replace(&mut self, table: Vec<AtomicPtr<u8>>) {
        let _before = std::mem::replace(&mut self.table, table);
        self.show();
        self.outgrown = Vec::new();
    }

    /// Makes the pointer after the last chunk null, as in the C library: clients see the room for it as well.
    pub(super) fn end(&mut self) {
        if let Some(behind) = self.table.spare_capacity_mut().first_mut() {
            behind.write(AtomicPtr::default());
        }
    }

    /// Takes all chunks out.
    pub(super) fn take(&mut self) -> Vec<AtomicPtr<u8>> {
        let table = std::mem::take(&mut self.table);
        self.show();
        table
    }

    /// Shows the table as it is. The number of chunks comes last: see [`Lookup::chunk`].
    #[inline]
    fn show(&self) {
        self.lookup.table.store(self.table.as_ptr().cast_mut(), Ordering::Release);
        self.lookup.len.store(self.table.len(), Ordering::Release);
    }
}

impl Deref for Pointers {
    type Target = [AtomicPtr<u8>];

    fn deref(&self) -> &[AtomicPtr<u8>] {
        &self.table
    }
}

impl DerefMut for Pointers {
    fn deref_mut(&mut self) -> &mut [AtomicPtr<u8>] {
        &mut self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::chunk_header::offset;
    use std::thread;

    /// The front of a chunk that is `len` bytes long, as it says.
    fn front(len: usize) -> [u8; 16] {
        let mut front = [0; 16];
        front[offset::CBYTES..][..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
        front
    }

    fn place(front: &[u8; 16]) -> AtomicPtr<u8> {
        AtomicPtr::new(front.as_ptr().cast_mut())
    }

    /// The lengths of the chunks that `lookup` has.
    fn lens(lookup: &Lookup) -> Vec<Option<usize>> {
        let numbers = 0..lookup.len.load(Ordering::Relaxed);
        // SAFETY: nobody changes the table, and the fronts of the chunks live as long as it is used.
        numbers.map(|nchunk| unsafe { lookup.chunk(nchunk) }.map(|chunk| chunk.len())).collect()
    }

    #[test]
    fn what_is_looked_up_is_what_the_table_has() {
        let fronts: Vec<_> = (0..9).map(|n| front(100 + n)).collect();
        let mut pointers = Pointers::default();
        let lookup = Arc::clone(pointers.lookup());
        assert_eq!(lens(&lookup), []);
        for (nchunk, front) in [(0, 0), (0, 1), (2, 2), (1, 3), (4, 4), (3, 5)] {
            pointers.reserve(1).unwrap();
            pointers.insert(nchunk, place(&fronts[front]));
        }
        assert_eq!(lens(&lookup), [101, 103, 100, 105, 102, 104].map(Some));
        pointers.remove(5);
        pointers.remove(0);
        pointers.end();
        pointers[1] = place(&fronts[8]);
        assert_eq!(lens(&lookup), [103, 108, 105, 102].map(Some));
        pointers[2] = AtomicPtr::default();
        assert_eq!(lens(&lookup), [Some(103), Some(108), None, Some(102)], "a missing chunk");
        pointers.replace(vec![place(&fronts[6]), place(&fronts[7])]);
        assert_eq!(lens(&lookup), [106, 107].map(Some));
        assert_eq!(pointers.take().len(), 2);
        drop(pointers);
        assert_eq!(lens(&lookup), []);
    }

    #[test]
    fn chunks_are_looked_up_while_others_are_added() {
        let most = if cfg!(miri) { 100 } else { 50_000 };
        let fronts: Vec<_> = (0..most).map(front).collect();
        let mut pointers = Pointers::default();
        let lookup = Arc::clone(pointers.lookup());
        let look = || {
            let mut len = 0;
            while len < most {
                len = lookup.len.load(Ordering::Acquire);
                for nchunk in [0, len / 2, len.saturating_sub(1)].into_iter().filter(|&nchunk| nchunk < len) {
                    // SAFETY: chunks are only added, and their fronts live as long as the table is used.
                    let chunk = unsafe { lookup.chunk(nchunk) }.expect("one of those that are there");
                    assert_eq!(chunk.as_ptr().cast_const().cast(), fronts[nchunk].as_ptr());
                    assert_eq!(chunk.len(), nchunk);
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(look);
            scope.spawn(look);
            for (nchunk, front) in fronts.iter().enumerate() {
                pointers.reserve(1).unwrap();
                pointers.insert(nchunk, place(front));
            }
        });
        let outgrown: usize = pointers.outgrown.iter().map(Vec::capacity).sum();
        assert!(outgrown >= LEAST && outgrown <= pointers.capacity());
    }

    #[test]
    fn tables_that_nobody_sees_are_not_kept() {
        let front = front(16);
        let mut pointers = Pointers::default();
        for nchunk in 0..100 {
            pointers.reserve(1).unwrap();
            pointers.insert(nchunk, place(&front));
        }
        assert!(pointers.outgrown.is_empty());
    }
}
