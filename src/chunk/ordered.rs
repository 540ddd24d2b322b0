//! Blocks encoded by several threads, laid down in index order as one thread would have done.
//!
//! A task takes the next block. If all before it are in the chunk already, it encodes it there; else it encodes it into a
//! buffer of its own with room for the worst case, and puts the result in a ring. Whoever finds the next block of the order in the ring copies it, and those that follow it, to the
//! chunk. When the chunk might get too small for the worst case of the next block, the parallel part ends: only then
//! does the room left influence what a codec writes, and the caller encodes the rest itself.

use super::streams::Written;
use crate::error::{Error, Result};
use crate::pool::Executor;
use crate::scratch::{self, Buffer, Worker};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// Blocks per task that may be encoded ahead of the one whose turn it is.
const AHEAD: usize = 4;

/// How far the chunk has been written.
pub(crate) struct Progress<'a> {
    /// The chunk.
    pub(crate) dest: &'a mut [u8],
    /// Bytes written, header included.
    pub(crate) pos: usize,
    /// The next block.
    pub(crate) next: usize,
    /// Whether all streams so far are runs of zeros.
    pub(crate) all_zeros: bool,
}

/// Encodes one block: task number, the task's memory, index of the block, where its streams go.
pub(crate) type EncodeBlock<'a> =
    dyn Fn(usize, &mut Worker, usize, &mut [u8]) -> Result<Option<Written>> + Sync + 'a;

/// The part of a chunk that is encoded in parallel.
pub(crate) struct OrderedBlocks<'a> {
    /// Number of blocks.
    pub(crate) nblocks: usize,
    /// Position of the table of block starts.
    pub(crate) bstarts: usize,
    /// Bytes that the streams of one block take at the most.
    pub(crate) worst_case: usize,
    /// Encodes one block.
    pub(crate) encode: &'a EncodeBlock<'a>,
}

struct Shared<'a, 'd> {
    blocks: &'a OrderedBlocks<'a>,
    claimed: AtomicUsize,
    /// Copy of `Progress::next` to look at without the lock.
    committed: AtomicUsize,
    stop: AtomicBool,
    ring: Vec<Mutex<Option<(Buffer, Written)>>>,
    free: Mutex<Vec<Buffer>>,
    error: Mutex<Option<Error>>,
    progress: Mutex<&'a mut Progress<'d>>,
}

/// Encodes blocks from `progress.next` on; returns with as many done as possible without regard to the room left.
///
/// # Errors
///
/// The error of any block that failed.
pub(crate) fn encode_blocks(
    blocks: &OrderedBlocks<'_>,
    progress: &mut Progress<'_>,
    executor: &dyn Executor,
    ntasks: usize,
) -> Result<()> {
    let mut caller = scratch::worker();
    let shared = Shared {
        blocks,
        claimed: AtomicUsize::new(progress.next),
        committed: AtomicUsize::new(progress.next),
        stop: AtomicBool::new(false),
        ring: (0..AHEAD * ntasks).map(|_| Mutex::new(None)).collect(),
        free: Mutex::new(std::mem::take(&mut caller.spare)),
        error: Mutex::new(None),
        progress: Mutex::new(progress),
    };
    executor.run(ntasks, &|tid| shared.work(tid));
    shared.commit_ready(&mut shared.progress.lock());
    caller.spare = shared.free.into_inner();
    match shared.error.into_inner() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl Shared<'_, '_> {
    /// The body of a task.
    fn work(&self, tid: usize) {
        let mut worker = scratch::worker();
        while let Some(nblock) = self.claim() {
            if self.encode_in_place(tid, &mut worker, nblock) {
                self.try_commit();
                continue;
            }
            let mut buffer = self.free.lock().pop().unwrap_or(Buffer::new());
            let dest = buffer.get(self.blocks.worst_case);
            match dest.and_then(|dest| (self.blocks.encode)(tid, &mut worker, nblock, dest)) {
                Ok(Some(written)) => *self.slot(nblock).lock() = Some((buffer, written)),
                // The worst case has room for everything, so `None` cannot be; ending here would be right anyway.
                Ok(None) => self.stop.store(true, Ordering::Relaxed),
                Err(error) => self.fail(error),
            }
            self.try_commit();
        }
    }

    /// Encodes a block straight into the chunk if it is its turn; tells whether that was so.
    ///
    /// Meanwhile nobody else can copy to the chunk: finished blocks wait in the ring.
    fn encode_in_place(&self, tid: usize, worker: &mut Worker, nblock: usize) -> bool {
        let Some(mut progress) = self.progress.try_lock() else { return false };
        let end = progress.pos + self.blocks.worst_case;
        if progress.next != nblock || end > progress.dest.len() {
            return false;
        }
        let start = progress.pos;
        match (self.blocks.encode)(tid, worker, nblock, &mut progress.dest[start..end]) {
            Ok(Some(written)) => {
                progress.advance(self.blocks.bstarts, written);
                self.committed.store(progress.next, Ordering::Release);
                self.commit_ready(&mut progress);
            }
            Ok(None) => self.stop.store(true, Ordering::Relaxed),
            Err(error) => self.fail(error),
        }
        true
    }

    fn fail(&self, error: Error) {
        self.error.lock().get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn slot(&self, nblock: usize) -> &Mutex<Option<(Buffer, Written)>> {
        &self.ring[nblock % self.ring.len()]
    }

    /// The next block to encode, once the ring has room for it.
    fn claim(&self) -> Option<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let nblock = self.claimed.fetch_add(1, Ordering::Relaxed);
        if nblock >= self.blocks.nblocks {
            return None;
        }
        while nblock >= self.committed.load(Ordering::Acquire) + self.ring.len() {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            self.try_commit();
            std::thread::yield_now();
        }
        Some(nblock)
    }

    /// Copies what is ready, unless another task is at it; that one looks again when it is done.
    fn try_commit(&self) {
        loop {
            fence(Ordering::SeqCst);
            let Some(mut progress) = self.progress.try_lock() else { return };
            self.commit_ready(&mut progress);
            let next = progress.next;
            drop(progress);
            fence(Ordering::SeqCst);
            if self.stop.load(Ordering::Relaxed) || self.slot(next).lock().is_none() {
                return;
            }
        }
    }

    fn commit_ready(&self, progress: &mut Progress<'_>) {
        while progress.next < self.blocks.nblocks {
            if progress.pos + self.blocks.worst_case > progress.dest.len() {
                self.stop.store(true, Ordering::Relaxed);
                return;
            }
            let Some((mut buffer, written)) = self.slot(progress.next).lock().take() else { return };
            let streams = buffer.get(written.len).expect("they are in the buffer already");
            progress.append(self.blocks.bstarts, streams, written.all_zeros);
            self.committed.store(progress.next, Ordering::Release);
            self.free.lock().push(buffer);
        }
    }
}

impl Progress<'_> {
    /// Copies the streams of the next block to the chunk, which has room for them.
    fn append(&mut self, bstarts: usize, streams: &[u8], all_zeros: bool) {
        self.dest[self.pos..self.pos + streams.len()].copy_from_slice(streams);
        self.advance(bstarts, Written { len: streams.len(), all_zeros });
    }

    /// Records that the next block was written at `pos`.
    pub(crate) fn advance(&mut self, bstarts: usize, written: Written) {
        let start = i32::try_from(self.pos).expect("chunks are below 2 GiB");
        crate::bytes::put_i32(self.dest, bstarts + 4 * self.next, start);
        self.pos += written.len;
        self.next += 1;
        self.all_zeros &= written.all_zeros;
    }
}
