//! The chunks of a sparse frame, each in a file of its own.

use super::edit::NewChunk;
use super::offsets::Index;
use super::state::State;
use super::store::Disk;
use crate::error::Result;
use crate::format::offsets::Entry;
use crate::io::OpenMode;
use crate::memory;
use std::collections::HashSet;

/// Writes each chunk to a new file, and puts its number in the index of `next`; returns the numbers. The old content, whose
/// index is `old`, refers to none of them: it is there until the new index is written.
///
/// # Errors
///
/// Those of opening and writing; no file is left then.
pub(super) fn write(disk: &Disk, old: &Index, next: &mut State, added: &[NewChunk<'_>]) -> Result<Vec<u64>> {
    let mut free = FreeIds::new(old, added.len());
    let mut made = memory::with_capacity(added.len())?;
    // From here on nothing but a file can fail.
    next.index.table_mut()?;
    for new in added {
        let id = free.take(old, next.header.cbytes);
        made.push(id);
        if let Err(e) = write_one(disk, id, &new.bytes) {
            remove(disk, made);
            return Err(e);
        }
        next.index.table_mut()?[new.nchunk] = Entry::Stored(id).encode();
        next.header.cbytes += new.bytes.len() as u64; // widening
    }
    Ok(made)
}

fn write_one(disk: &Disk, id: u64, bytes: &[u8]) -> Result<()> {
    let file = disk.io.open(&disk.chunk_path(id)?, OpenMode::Create)?;
    file.write_at(0, bytes)?;
    if disk.sync { file.sync() } else { Ok(()) }
}

/// Removes the files of chunks to which nothing refers. One that cannot be removed takes room, and does no harm.
pub(super) fn remove(disk: &Disk, ids: impl IntoIterator<Item = u64>) {
    for path in ids.into_iter().filter_map(|id| disk.chunk_path(id).ok()) {
        let _ = disk.io.remove(&path);
    }
}

/// The file numbers that an index does not use.
struct FreeIds {
    /// One more than the largest number in use.
    next: u64,
    /// All numbers in use; `None` until they are needed.
    used: Option<HashSet<u64>>,
    /// No smaller one is free.
    low: u64,
}

impl FreeIds {
    /// Those free in `index`, for `count` new files.
    fn new(index: &Index, count: usize) -> FreeIds {
        let next = index.stored().max().map_or(0, |id| id + 1);
        FreeIds { next, used: (count > 1).then(|| index.stored().collect()), low: 0 }
    }

    /// Takes a number: one more than the largest, as the C library does; but it does not open frames with numbers larger
    /// than `cbytes - 32`, so rather than that the smallest free one. `index` is that of [`new`](Self::new).
    fn take(&mut self, index: &Index, cbytes: u64) -> u64 {
        let next = self.next;
        let id = if next + 32 <= cbytes || next < 2 {
            next
        } else {
            let used = self.used.get_or_insert_with(|| index.stored().collect());
            self.low = (self.low..next).find(|id| !used.contains(id)).unwrap_or(next);
            self.low
        };
        if let Some(used) = &mut self.used {
            used.insert(id);
        }
        self.next = next.max(id + 1);
        id
    }
}
