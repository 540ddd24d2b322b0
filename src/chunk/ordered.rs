//! Blocks encoded by several threads, laid down in index order as one thread would have done.
//!
//! A task takes the next blocks: one, or a group of short ones. If all blocks before them are in the chunk already, it
//! encodes them there. Otherwise it encodes them into a buffer of its own, which has room for the worst case, and
//! leaves the result in a ring. Whoever finds the next group of the order in the ring gives it its place in the chunk,
//! and those that follow it; then any task that has nothing else to do copies them there.
//!
//! The parallel part ends when the chunk might be too small for the worst case of the next group: from there on the
//! room that is left influences what a codec writes, so the calling thread encodes the rest, one block after the other.
//! It does so, too, if there is no memory for the buffers, which it does not need.

#![forbid(unsafe_code)]

use super::scratch::{self, Waiting, Worker};
use super::streams::Written;
use crate::bytes::put_i32;
use crate::cancel;
use crate::copy;
use crate::error::{Error, Result};
use crate::fork;
use crate::memory;
use crate::mutex::Mutex;
use crate::pool::Executor;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Groups per task that may be encoded ahead of the one whose turn it is, where tasks may wait.
const AHEAD: usize = 4;
/// Blocks are taken together up to this size, in bytes, if each task gets several groups.
const GROUP: usize = 32 << 10;

/// How often a task that is too far ahead lets others go first, before it sleeps.
const PATIENCE: usize = 100;
/// How long it sleeps each time: little beside the time that blocks take for which one waits so long.
const NAP: Duration = Duration::from_micros(100);

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

/// What the tasks share.
///
/// The memory of a group that cannot be encoded in place goes round: from `free` to the task that encodes the group, into
/// the `ring`, from there to `placed`, and back to `free`. When the operation ends, the calling thread keeps it.
struct Shared<'a, 'd> {
    blocks: &'a OrderedBlocks<'a>,
    /// Blocks in a group, except for the last one.
    group: usize,
    /// The next block that nobody encodes yet.
    claimed: AtomicUsize,
    /// Copy of `Order::done.next` to look at without the lock.
    ordered: AtomicUsize,
    /// Whether tasks are to end without taking more blocks.
    stop: AtomicBool,
    /// Encoded groups that wait for their turn, by their index modulo the length.
    ring: Vec<Mutex<Option<Waiting>>>,
    /// Encoded groups that have a place in the chunk, and are not there yet.
    placed: Mutex<Vec<Placed<'d>>>,
    /// Memory that no group is in.
    free: Mutex<Vec<Waiting>>,
    error: Mutex<Option<Error>>,
    order: Mutex<Order<'d>>,
    /// [`fork::count`] at the start: in the child of a `fork`, nobody encodes the blocks that other tasks have taken.
    forks: u64,
}

/// How far the order of the blocks is known.
struct Order<'d> {
    /// How far the chunk is; of its bytes, those that were written before.
    done: Progress<'d>,
    /// The chunk from `done.pos` on; `None` while a group is encoded there.
    rest: Option<&'d mut [u8]>,
}

/// The streams of a group, and where they go.
struct Placed<'d> {
    dest: &'d mut [u8],
    group: Waiting,
}

/// Ends the operation if its task unwinds: others may wait for the block that this task will never finish.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Encodes all blocks from `progress.next` on, the first ones in parallel if there is an executor, which comes with the
/// number of tasks; false if they do not fit.
///
/// # Errors
///
/// The error of any block that failed.
pub(crate) fn encode_all(
    blocks: &OrderedBlocks<'_>,
    progress: &mut Progress<'_>,
    parallel: Option<(&dyn Executor, usize)>,
) -> Result<bool> {
    if let Some((executor, ntasks)) = parallel {
        encode_in_parallel(blocks, progress, executor, ntasks)?;
    }
    let mut worker = scratch::worker();
    while progress.next < blocks.nblocks {
        let dest = &mut progress.dest[progress.pos..];
        let Some(written) = (blocks.encode)(0, &mut worker, progress.next, dest)? else { return Ok(false) };
        progress.advance(blocks.bstarts, written);
    }
    Ok(true)
}

/// Encodes blocks from `progress.next` on; returns with as many done as possible without regard to the room left.
///
/// # Errors
///
/// The error of any block that failed.
fn encode_in_parallel(
    blocks: &OrderedBlocks<'_>,
    progress: &mut Progress<'_>,
    executor: &dyn Executor,
    ntasks: usize,
) -> Result<()> {
    let mut caller = scratch::worker();
    let Progress { ref mut dest, pos, next, all_zeros } = *progress;
    let left = blocks.nblocks - next;
    let group = (GROUP / blocks.worst_case).min(left / (2 * AHEAD * ntasks)).max(1);
    let places = if executor.tasks_may_wait() { AHEAD * ntasks } else { left.div_ceil(group) };
    let Ok(ring) = memory::collect((0..places).map(|_| Mutex::new(None))) else { return Ok(()) };
    let (head, rest) = dest.split_at_mut(pos);
    let done = Progress { dest: head, pos, next, all_zeros };
    let shared = Shared {
        blocks,
        group,
        claimed: AtomicUsize::new(next),
        ordered: AtomicUsize::new(next),
        stop: AtomicBool::new(false),
        ring,
        placed: Mutex::new(Vec::new()),
        free: Mutex::new(std::mem::take(&mut caller.spare)),
        error: Mutex::new(None),
        order: Mutex::new(Order { done, rest: Some(rest) }),
        forks: fork::count(),
    };
    executor.run(ntasks, &|tid| shared.work(tid));
    caller.spare = shared.free.into_inner();
    let Progress { pos, next, all_zeros, .. } = shared.order.into_inner().done;
    (progress.pos, progress.next, progress.all_zeros) = (pos, next, all_zeros);
    match shared.error.into_inner() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl<'d> Shared<'_, 'd> {
    /// The body of a task.
    fn work(&self, tid: usize) {
        let _stop = StopOnPanic(&self.stop);
        let mut worker = scratch::worker();
        while let Some(group) = self.claim() {
            if !self.encode_in_place(tid, &mut worker, group.clone()) {
                self.encode_aside(tid, &mut worker, group);
            }
            self.place_ready();
            self.copy_placed();
        }
    }

    /// Encodes a group straight into the chunk if it is its turn; returns whether that was so.
    ///
    /// Meanwhile no other group has a place in the chunk: finished ones wait in the ring.
    fn encode_in_place(&self, tid: usize, worker: &mut Worker, group: Range<usize>) -> bool {
        let Some(mut rest) = self.take_rest(&group) else { return false };
        for nblock in group {
            let encoded = (self.blocks.encode)(tid, worker, nblock, &mut rest[..self.blocks.worst_case]);
            let Some(written) = self.written(encoded) else { return true };
            rest = &mut rest[written.len..];
            self.order.lock().done.advance(self.blocks.bstarts, written);
        }
        let mut order = self.order.lock();
        order.rest = Some(rest);
        self.ordered.store(order.done.next, Ordering::Release);
        true
    }

    /// The rest of the chunk, if it is this group's turn and there is room for it.
    fn take_rest(&self, group: &Range<usize>) -> Option<&'d mut [u8]> {
        let mut order = self.order.lock();
        if order.done.next == group.start && self.has_room(&order, group.len()) {
            order.rest.take()
        } else {
            None
        }
    }

    /// Encodes a group into memory of its own, and puts that into the ring. Without memory, the parallel part ends.
    fn encode_aside(&self, tid: usize, worker: &mut Worker, group: Range<usize>) {
        let mut encoded = self.free.lock().pop().unwrap_or_default();
        let first = group.start;
        if self.encode_to(&mut encoded, tid, worker, group).is_some() {
            *self.slot(first).lock() = Some(encoded);
        } else {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Encodes a group into `encoded`; `None` if that was not possible.
    fn encode_to(
        &self,
        encoded: &mut Waiting,
        tid: usize,
        worker: &mut Worker,
        group: Range<usize>,
    ) -> Option<()> {
        let Waiting { streams, written } = encoded;
        written.clear();
        memory::reserve(written, group.len()).ok()?;
        let mut dest = streams.get(group.len() * self.blocks.worst_case).ok()?;
        for nblock in group {
            let room = &mut dest[..self.blocks.worst_case];
            let block = self.written((self.blocks.encode)(tid, worker, nblock, room))?;
            written.push(block);
            dest = &mut dest[block.len..];
        }
        Some(())
    }

    /// The outcome of encoding a block, if it was written. If not, the error is noted and all tasks are told to stop.
    fn written(&self, encoded: Result<Option<Written>>) -> Option<Written> {
        match encoded {
            Ok(Some(written)) => return Some(written),
            // The worst case has room for everything, so this cannot be; ending here would be right anyway.
            Ok(None) => {}
            Err(error) => {
                self.error.lock().get_or_insert(error);
            }
        }
        self.stop.store(true, Ordering::Relaxed);
        None
    }

    /// Where the group that starts with block `nblock` waits.
    fn slot(&self, nblock: usize) -> &Mutex<Option<Waiting>> {
        &self.ring[nblock / self.group % self.ring.len()]
    }

    /// Whether the chunk has room for the worst case of the next `count` blocks.
    fn has_room(&self, order: &Order<'_>, count: usize) -> bool {
        order.rest.as_ref().is_some_and(|rest| count * self.blocks.worst_case <= rest.len())
    }

    /// The next group to encode, once the ring has room for it.
    fn claim(&self) -> Option<Range<usize>> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let first = self.claimed.fetch_add(self.group, Ordering::Relaxed);
        if first >= self.blocks.nblocks {
            return None;
        }
        let mut patience = PATIENCE;
        while first >= self.ordered.load(Ordering::Acquire) + self.ring.len() * self.group {
            if self.stop.load(Ordering::Relaxed) || self.forks != fork::count() {
                return None;
            }
            self.place_ready();
            self.copy_placed();
            if patience > 0 {
                patience -= 1;
                std::thread::yield_now();
            } else {
                cancel::deferred(|| std::thread::sleep(NAP));
            }
        }
        Some(first..self.blocks.nblocks.min(first + self.group))
    }

    /// Gives the groups in the ring whose turn it is their places in the chunk.
    fn place_ready(&self) {
        let mut order = self.order.lock();
        while order.rest.is_some() && order.done.next < self.blocks.nblocks {
            let count = self.group.min(self.blocks.nblocks - order.done.next);
            if !self.has_room(&order, count) {
                self.stop.store(true, Ordering::Relaxed);
                return;
            }
            let Some(group) = self.slot(order.done.next).lock().take() else { return };
            let dest = order.place(self.blocks.bstarts, &group.written);
            self.ordered.store(order.done.next, Ordering::Release);
            self.placed.lock().push(Placed { dest, group });
        }
    }

    /// Copies the groups that have places to them. Whoever gives places copies afterwards, so none is left in the end.
    fn copy_placed(&self) {
        loop {
            let Some(Placed { dest, mut group }) = self.placed.lock().pop() else { return };
            let streams = group.streams.get(dest.len()).expect("they are in the buffer already");
            copy::copy(streams, dest);
            self.free.lock().push(group);
        }
    }
}

impl<'d> Order<'d> {
    /// The place of the next blocks, of which this was written.
    fn place(&mut self, bstarts: usize, written: &[Written]) -> &'d mut [u8] {
        let len = written.iter().map(|written| written.len).sum();
        let rest = self.rest.take().expect("nobody encodes there");
        let (place, rest) = rest.split_at_mut(len);
        self.rest = Some(rest);
        written.iter().for_each(|&written| self.done.advance(bstarts, written));
        place
    }
}

impl Progress<'_> {
    /// Writes the dictionary section, for which there is room.
    pub(crate) fn append_dict(&mut self, dict: &[u8]) {
        let len = i32::try_from(dict.len()).expect("dictionaries are at most 32 KiB long");
        put_i32(self.dest, self.pos, len);
        let start = self.pos + 4;
        self.dest[start..start + dict.len()].copy_from_slice(dict);
        self.pos = start + dict.len();
    }

    /// Records that the next block was written at `pos`.
    fn advance(&mut self, bstarts: usize, written: Written) {
        let pos = i32::try_from(self.pos).expect("chunks are below 2 GiB");
        put_i32(self.dest, bstarts + 4 * self.next, pos);
        self.pos += written.len;
        self.next += 1;
        self.all_zeros &= written.all_zeros;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::pool;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Runs `encode` for blocks of up to eight bytes by four tasks; returns the outcome and how many blocks were done.
    fn run(nblocks: usize, room: usize, encode: &EncodeBlock<'_>) -> (Result<()>, usize) {
        let mut dest = vec![0xEE; 4 * nblocks + room];
        let mut progress = Progress { dest: &mut dest, pos: 4 * nblocks, next: 0, all_zeros: true };
        let blocks = OrderedBlocks { nblocks, bstarts: 0, worst_case: 8, encode };
        let outcome = encode_in_parallel(&blocks, &mut progress, &*pool::attach(4), 4);
        let (next, pos) = (progress.next, progress.pos);
        let streams: Vec<u8> = (0..next).flat_map(content).collect();
        assert_eq!(dest[4 * nblocks..pos], streams);
        (outcome, next)
    }

    /// What is written for a block.
    fn content(nblock: usize) -> Vec<u8> {
        vec![nblock.to_le_bytes()[0]; nblock % 8 + 1]
    }

    fn encode(nblock: usize, dest: &mut [u8]) -> Result<Option<Written>> {
        let content = content(nblock);
        copy::copy(&content, &mut dest[..content.len()]);
        Ok(Some(Written { len: content.len(), all_zeros: false }))
    }

    #[test]
    fn blocks_lie_in_order_as_long_as_there_is_room_for_the_worst_case() {
        assert_eq!(run(500, 8 * 500, &|_, _, nblock, dest| encode(nblock, dest)), (Ok(()), 500));
        // Groups have 15 blocks, the first ten take 669 bytes, and the next one up to 120.
        assert_eq!(run(500, 669 + 119, &|_, _, nblock, dest| encode(nblock, dest)), (Ok(()), 150));
        assert_eq!(run(500, 669 + 120, &|_, _, nblock, dest| encode(nblock, dest)), (Ok(()), 165));
        // These have one: the first nine take 37 bytes, and the next one up to eight.
        assert_eq!(run(20, 37 + 7, &|_, _, nblock, dest| encode(nblock, dest)), (Ok(()), 9));
        assert_eq!(run(20, 37 + 8, &|_, _, nblock, dest| encode(nblock, dest)), (Ok(()), 10));
    }

    #[test]
    fn memory_of_blocks_that_waited_is_kept_for_the_next_operation() {
        let all = std::sync::Barrier::new(2);
        let slow = |_: usize, _: &mut Worker, nblock: usize, dest: &mut [u8]| {
            // The first block waits for another, which cannot be in its place yet.
            if nblock == 0 || nblock == 100 {
                all.wait();
            }
            encode(nblock, dest)
        };
        assert_eq!(run(500, 8 * 500, &slow), (Ok(()), 500));
        let kept: Vec<usize> = scratch::worker().spare.iter().map(|group| group.written.capacity()).collect();
        assert!(!kept.is_empty() && kept.iter().all(|&nblocks| nblocks > 0));
    }

    #[test]
    fn without_memory_for_buffers_the_rest_is_left_to_the_caller() {
        let mut dest = vec![0; 4000];
        let mut progress = Progress { dest: &mut dest, pos: 400, next: 0, all_zeros: true };
        let worst_case = isize::MAX.unsigned_abs();
        let encode = |_: usize, _: &mut Worker, nblock: usize, dest: &mut [u8]| encode(nblock, dest);
        let blocks = OrderedBlocks { nblocks: 100, bstarts: 0, worst_case, encode: &encode };
        assert_eq!(encode_in_parallel(&blocks, &mut progress, &*pool::attach(4), 4), Ok(()));
        assert_eq!((progress.next, progress.pos), (0, 400));
    }

    #[test]
    fn an_error_of_one_block_ends_all_tasks() {
        let error = Error::new(ErrorKind::Data, "on purpose");
        let fail = |_: usize, _: &mut Worker, nblock: usize, dest: &mut [u8]| {
            if nblock == 100 { Err(error) } else { encode(nblock, dest) }
        };
        let (outcome, next) = run(10_000, 80_000, &fail);
        assert_eq!(outcome, Err(error));
        assert!(next <= 100);
    }

    #[test]
    fn a_panic_in_one_block_ends_all_tasks() {
        let panic = |_: usize, _: &mut Worker, nblock: usize, dest: &mut [u8]| {
            assert!(nblock != 100, "on purpose");
            encode(nblock, dest)
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| run(10_000, 80_000, &panic)));
        assert!(outcome.is_err());
    }
}
