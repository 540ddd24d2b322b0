//! The chunks of a sparse frame, each in a file of its own.

#![forbid(unsafe_code)]

use super::edit::NewChunk;
use super::numbers::FreeIds;
use super::offsets::Index;
use super::spares;
use super::state::State;
use super::store::Disk;
use crate::error::{Error, Result};
use crate::format::offsets::Entry;
use crate::io::{IoFile, OpenMode};
use crate::memory;
use std::path::Path;
use std::sync::Arc;

/// Writes each chunk to a new file, and puts its number in the index of `next`; returns the numbers. The old content,
/// whose index is `old`, refers to none of them: it is there until the new index is written.
///
/// # Errors
///
/// Those of opening and writing; no file is left then.
pub(super) fn write(disk: &Disk, old: &Index, next: &mut State, added: &[NewChunk<'_>]) -> Result<Vec<u64>> {
    if added.is_empty() {
        return Ok(Vec::new());
    }
    disk.spares.lock().count_change();
    let mut made = memory::with_capacity(added.len())?;
    let written = write_each(disk, old, next, added, &mut made);
    if written.is_err() {
        remove(disk, made.drain(..));
    }
    written.map(|()| made)
}

/// As `write`; the numbers are added to `made`, which has room for them all. After a failure, the files with these
/// numbers may exist.
fn write_each(
    disk: &Disk,
    old: &Index,
    next: &mut State,
    added: &[NewChunk<'_>],
    made: &mut Vec<u64>,
) -> Result<()> {
    let mut free = FreeIds::new(added.len());
    for new in added {
        let cbytes = next.header.cbytes + new.bytes.len() as u64; // widening
        let before = next.index.raw(new.nchunk).and_then(|entry| u64::try_from(entry).ok());
        let id = free.take(before, (old, made), cbytes)?;
        made.push(id);
        write_or_make_room(disk, id, &new.bytes)?;
        next.index.set(new.nchunk, Entry::Stored(id).encode())?;
        next.header.cbytes = cbytes;
    }
    Ok(())
}

/// Makes `bytes` the file of chunk `id`, to which nothing refers.
///
/// # Errors
///
/// Those of opening and writing; there may be a part of the file then.
pub(super) fn write_or_make_room(disk: &Disk, id: u64, bytes: &[u8]) -> Result<()> {
    let written = write_one(disk, id, bytes);
    if written.is_err() && give_up_spares(disk) {
        // They may have taken the room that was missing.
        return write_one(disk, id, bytes);
    }
    written
}

fn write_one(disk: &Disk, id: u64, bytes: &[u8]) -> Result<()> {
    let path = disk.chunk_path(id)?;
    if let Some((file, len)) = reuse(disk, &path) {
        file.write_at(0, bytes)?;
        return if len > bytes.len() as u64 { file.truncate(bytes.len() as u64) } else { Ok(()) }; // widening
    }
    let file = disk.io.create_anew(&path)?;
    file.write_at(0, bytes)?;
    if disk.sync { file.sync() } else { Ok(()) }
}

/// Makes a file that was kept the one at `path`; `None` if none was, or it is gone. Tells its length, too.
fn reuse(disk: &Disk, path: &Path) -> Option<(Arc<dyn IoFile>, u64)> {
    let slot = disk.spares.lock().take()?;
    let spare = disk.spare_path(slot);
    if disk.io.rename(&spare, path).is_err() {
        let _ = disk.io.remove(&spare);
        return None;
    }
    let open = || {
        let file = disk.io.open(path, OpenMode::Update)?;
        let len = file.size()?;
        Ok((file, len))
    };
    open()
        .inspect_err(|_: &Error| {
            // It may be somebody else's, who lets others remove it, but not write to it: a new one can take its place.
            let _ = disk.io.remove(path);
        })
        .ok()
}

/// Removes the files of chunks to which nothing refers. One that cannot be removed takes room, and does no harm.
pub(super) fn remove(disk: &Disk, ids: impl IntoIterator<Item = u64>) {
    for path in ids.into_iter().filter_map(|id| disk.chunk_path(id).ok()) {
        let _ = disk.io.remove(&path);
    }
}

/// As [`remove`], for the numbers and lengths of files that are no longer needed in a frame whose chunks take `live`
/// bytes. Some may be kept for chunks to come: no more than the `new` files that took their places, since the room of
/// chunks that were deleted, or became special ones, is given back.
pub(super) fn retire(disk: &Disk, gone: impl IntoIterator<Item = (u64, u64)>, live: u64, new: usize) {
    let mut spares = disk.spares.lock();
    // Other back-ends cannot rename.
    let keeps = disk.io.features().local && !disk.sync;
    let mut to_keep = if keeps { new } else { 0 };
    if to_keep > 0 && spares.is_first() {
        remove_spares(disk, spares::slots());
    }
    for (id, len) in gone {
        let Ok(path) = disk.chunk_path(id) else { continue };
        if let Some(slot) = (to_keep > 0).then(|| spares.put(len, live)).flatten() {
            if disk.io.rename(&path, &disk.spare_path(slot)).is_ok() {
                to_keep -= 1;
                continue;
            }
            spares.take_back();
        }
        let _ = disk.io.remove(&path);
    }
    if new > 0 {
        spares.expect_more();
    }
    remove_spares(disk, spares.trim(live));
}

/// Removes all files that are kept; returns whether there were any.
pub(super) fn give_up_spares(disk: &Disk) -> bool {
    let slots = disk.spares.lock().trim(0);
    let any = !slots.is_empty();
    remove_spares(disk, slots);
    any
}

/// Removes kept files. Whoever finds one that cannot be removed now may do so later.
fn remove_spares(disk: &Disk, slots: impl IntoIterator<Item = u8>) {
    for slot in slots {
        let _ = disk.io.remove(&disk.spare_path(slot));
    }
}
