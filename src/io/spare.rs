//! Memory of large chunks that are gone, kept for new ones: fresh memory costs a page fault every 4 kB, about as much
//! as compressing what goes there.
//!
//! It is plain memory from C's allocator, so it does not matter who frees it in the end.

#![forbid(unsafe_code)]

use super::Fill;
use super::memory::MallocBuf;
use crate::error::Result;
use crate::fork::Global;
use crate::memory::Room;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Smaller chunks, in bytes, are left to the allocator, which is good at them.
pub(crate) const LEAST: usize = 96 << 10;
/// At most this much memory is kept, in bytes.
const MOST: usize = 32 << 20;
/// Most buffers that are kept.
const MOST_BUFFERS: usize = 256;

/// Buffers without content.
struct Spare {
    buffers: Vec<MallocBuf>,
    /// What they take, in bytes.
    total: usize,
}

static SPARE: Global<Spare> = Global::new(Spare { buffers: Vec::new(), total: 0 });

impl Spare {
    /// Takes out the buffer that fits `len` bytes best, if one does.
    fn take(&mut self, len: usize) -> Option<MallocBuf> {
        // Not much larger ones: chunks may stay for long.
        let fits = |buffer: &MallocBuf| (len..=len + len / 4).contains(&buffer.capacity());
        let fitting = self.buffers.iter().enumerate().filter(|(_, buffer)| fits(buffer));
        let (n, _) = fitting.min_by_key(|(_, buffer)| buffer.capacity())?;
        let buffer = self.buffers.swap_remove(n);
        self.total -= buffer.capacity();
        Some(buffer)
    }

    /// Keeps `buffer` if there is room.
    fn put(&mut self, mut buffer: MallocBuf) {
        let total = self.total.saturating_add(buffer.capacity());
        if total <= MOST && self.buffers.len() < MOST_BUFFERS {
            buffer.clear();
            self.total = total;
            self.buffers.push(buffer);
        }
    }
}

/// A copy of the chunk `bytes`.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn copy_of(bytes: &[u8]) -> Result<MallocBuf> {
    let Some(mut buffer) = take(bytes.len()) else { return MallocBuf::copy_of(bytes) };
    buffer.write_at(0, bytes)?;
    Ok(buffer)
}

/// A chunk of `len` bytes that `fill` sets.
///
/// # Errors
///
/// `MemoryAlloc`, and those of `fill`.
pub(crate) fn filled(len: usize, fill: &Fill<'_>) -> Result<MallocBuf> {
    let Some(mut buffer) = take(len) else { return MallocBuf::filled(len, fill) };
    buffer.refill(len, fill)?;
    Ok(buffer)
}

/// Whether a kept buffer may suit a chunk whose compressed size is at most `most` bytes, and not much less.
pub(crate) fn may_have(most: usize) -> bool {
    let may_fit = |buffer: &MallocBuf| (most / 16..=most).contains(&buffer.capacity());
    most >= LEAST && SPARE.try_lock().is_some_and(|spare| spare.buffers.iter().any(may_fit))
}

/// Memory that is kept and has room for `len` bytes.
fn take(len: usize) -> Option<MallocBuf> {
    // Fresh memory costs less than waiting for another thread.
    let spare = if len < LEAST { None } else { SPARE.try_lock() };
    spare.and_then(|mut spare| spare.take(len))
}

/// Frees the memory of a chunk, or keeps it.
#[inline]
pub(crate) fn give_back(chunk: MallocBuf) {
    // Nobody waits for another thread here: in the child of a `fork`, it may not be there.
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if !IS_DONE.load(Ordering::Relaxed) && !IS_DONE.swap(true, Ordering::Relaxed) {
        free_something_large();
    }
    if chunk.len() >= LEAST && !chunk.is_borrowed() {
        keep(chunk);
    }
}

/// Has glibc's allocator keep more of what is freed at the end of its heap. At first, it keeps up to 128 KiB; once a
/// program has freed something large that was a mapping of its own, up to twice the size of that. With less than this,
/// lists of small chunks that come and go give their pages back to the system each time, which takes half of the time
/// that an array takes to be copied.
fn free_something_large() {
    /// The allocator keeps twice as much.
    const SIZE: usize = 1 << 20;
    // Nothing is lost if that fails. The compiler must not see that it is not used.
    drop(black_box(MallocBuf::for_output(Room::Any(SIZE))));
}

/// Keeps the memory of a chunk, unless another thread is using what is kept at this moment.
fn keep(mut chunk: MallocBuf) {
    if let Some(mut spare) = SPARE.try_lock() {
        chunk.claim_slack();
        spare.put(chunk);
    }
}

/// Frees what is kept, unless another thread is using it at this moment.
pub(crate) fn free_all() {
    let buffers = SPARE.try_lock().map(|mut spare| {
        spare.total = 0;
        std::mem::take(&mut spare.buffers)
    });
    drop(buffers);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_for_what_has_about_its_size() {
        let mut spare = Spare { buffers: Vec::new(), total: 0 };
        for len in [100_000, 200_000, 150_000] {
            spare.put(MallocBuf::zeroed(len).unwrap());
        }
        assert_eq!(spare.total, 450_000);
        assert!(spare.take(210_000).is_none());
        assert!(spare.take(70_000).is_none());
        let buffer = spare.take(130_000).unwrap();
        assert_eq!((buffer.len(), buffer.capacity()), (0, 150_000));
        assert_eq!(spare.take(100_000).unwrap().capacity(), 100_000);
        assert_eq!((spare.total, spare.buffers.len()), (200_000, 1));
    }

    #[test]
    fn no_more_is_kept_than_allowed() {
        let mut spare = Spare { buffers: Vec::new(), total: 0 };
        (0..5).for_each(|_| spare.put(MallocBuf::zeroed(MOST / 3).unwrap()));
        assert_eq!(spare.buffers.len(), 3);
    }

    #[test]
    fn copies_hold_the_bytes_of_their_chunk_and_nothing_else() {
        for round in 0..6_u8 {
            let chunk = vec![round; LEAST + 1000 * usize::from(round % 3)];
            let copy = copy_of(&chunk).unwrap();
            assert_eq!(&copy[..], &chunk[..]);
            give_back(copy);
        }
        free_all();
    }

    #[test]
    fn nobody_waits_for_a_thread_that_holds_the_lock() {
        let held = SPARE.lock();
        free_all();
        let chunk = vec![1; LEAST];
        give_back(copy_of(&chunk).unwrap());
        drop(held);
    }
}
