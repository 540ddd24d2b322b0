//! Reusable work memory: what one thread needs to encode or decode blocks, kept from one operation to the next.
//!
//! Callbacks of the application may compress or decompress themselves while an operation is under way, so each
//! operation borrows a whole [`Worker`] and a nested one borrows another.

use super::streams::Written;
use crate::codecs::state::{self, CodecStates};
use crate::error::{Error, ErrorKind, Result};
use crate::kept::{SMALL, Share};
use crate::memory;
use crate::thread_end::{Left, ThreadEnd};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// Alignment of scratch memory in bytes: a cache line, and the widest vector.
const ALIGN: usize = 64;

/// Whether functions of the application can use vectors on `bytes` as on scratch memory. The C library gives them 32
/// bytes.
pub(crate) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr() as usize % 32 == 0
}

/// What fails if there is no memory to work in, with the code of the C library. The size of blocks is in the hands of
/// whoever wrote a chunk, so that must not end the process.
const NO_MEMORY: Error = Error::new(ErrorKind::ThreadCreate, "no memory to work in");

/// `len` zero bytes to work in, for once.
///
/// # Errors
///
/// `ThreadCreate` if there is no memory.
pub(crate) fn zeroed(len: usize) -> Result<Vec<u8>> {
    memory::zeroed(len).map_err(|_| NO_MEMORY)
}

/// Bytes to work in, for once, that are aligned as work buffers are: functions of the application may get them.
#[derive(Default)]
pub(crate) struct AlignedBytes {
    memory: Vec<u8>,
    start: usize,
}

impl AlignedBytes {
    /// `len` zero bytes.
    ///
    /// # Errors
    ///
    /// `ThreadCreate` if there is no memory.
    pub(crate) fn zeroed(len: usize) -> Result<AlignedBytes> {
        let mut memory = zeroed(len.checked_add(ALIGN).ok_or(NO_MEMORY)?)?;
        let start = (memory.as_ptr() as usize).wrapping_neg() % ALIGN;
        memory.truncate(start + len);
        Ok(AlignedBytes { memory, start })
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..]
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}

/// A work buffer that grows on demand. Contents are left over from earlier uses.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Asked for as plain bytes: memory that is to be zeroed and aligned is touched all over at once, whatever is going
    /// to be used of it.
    memory: Vec<u8>,
    /// The first aligned byte.
    start: usize,
    share: Share,
}

impl Buffer {
    pub(crate) const fn new() -> Buffer {
        Buffer { memory: Vec::new(), start: 0, share: Share::NONE }
    }

    /// The first `len` bytes; the contents are arbitrary.
    ///
    /// # Errors
    ///
    /// `ThreadCreate` if there is no memory.
    #[inline]
    pub(crate) fn get(&mut self, len: usize) -> Result<&mut [u8]> {
        if len > self.capacity() {
            self.grow(len)?;
        }
        // SAFETY: as many bytes follow the first aligned one, as was just seen to.
        Ok(unsafe { self.memory.get_unchecked_mut(self.start..self.start + len) })
    }

    /// Two buffers in one, of `first` and `second` bytes, both of them aligned.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub(crate) fn get_two(&mut self, first: usize, second: usize) -> Result<(&mut [u8], &mut [u8])> {
        let start = first.checked_next_multiple_of(ALIGN).ok_or(NO_MEMORY)?;
        let (front, back) = self.get(start.checked_add(second).ok_or(NO_MEMORY)?)?.split_at_mut(start);
        Ok((&mut front[..first], back))
    }

    fn capacity(&self) -> usize {
        self.memory.len() - self.start
    }

    #[cold]
    fn grow(&mut self, len: usize) -> Result<()> {
        self.free();
        let capacity = len.checked_next_multiple_of(4096).ok_or(NO_MEMORY)?;
        self.memory = zeroed(capacity.checked_add(ALIGN).ok_or(NO_MEMORY)?)?;
        self.start = (self.memory.as_ptr() as usize).wrapping_neg() % ALIGN;
        self.memory.truncate(self.start + capacity);
        Ok(())
    }

    #[cold]
    fn free(&mut self) {
        *self = Buffer::new();
    }

    /// Gives the memory back if it is more than a thread should keep.
    #[inline]
    fn trim(&mut self) {
        if !self.share.resize(self.capacity()) {
            self.free();
        }
    }
}

/// Blocks that are encoded and wait for their turn.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Their streams, one block after the other.
    pub(crate) streams: Buffer,
    /// What was written for each.
    pub(crate) written: Vec<Written>,
}

impl Waiting {
    /// The bytes of memory in this.
    fn capacity(&self) -> usize {
        self.streams.capacity() + self.written.capacity() * size_of::<Written>()
    }
}

/// Where a block is between codec and filters.
pub(crate) struct BlockBuffers {
    /// The block as it comes from the codec.
    pub(crate) decoded: Buffer,
    /// Two buffers that filters go back and forth between.
    pub(crate) ping: Buffer,
    /// See `ping`.
    pub(crate) pong: Buffer,
}

/// Everything that one thread needs to encode or decode blocks.
pub(crate) struct Worker {
    /// The states of the built-in codecs. What is large whatever the data are goes back after each operation.
    pub(crate) codecs: CodecStates,
    /// A block on its way.
    pub(crate) buffers: BlockBuffers,
    /// Streams that cannot go to their place at once.
    pub(crate) stream: Buffer,
    /// Callbacks of the application: their own scratch, and the block that they read or write.
    pub(crate) callback: Buffer,
    /// A decoded block of which only a part is wanted.
    pub(crate) block: Buffer,
    /// The part of a block from the first wanted byte to the last.
    pub(crate) window: Buffer,
    /// Memory for blocks that wait for their turn.
    pub(crate) spare: Vec<Waiting>,
    /// That of all of `spare` together.
    spare_share: Share,
    /// The next idle worker of the thread, if this one is idle.
    next: Option<Box<Worker>>,
}

impl Worker {
    fn new() -> Worker {
        Worker {
            codecs: CodecStates::new(),
            buffers: BlockBuffers { decoded: Buffer::new(), ping: Buffer::new(), pong: Buffer::new() },
            stream: Buffer::new(),
            callback: Buffer::new(),
            block: Buffer::new(),
            window: Buffer::new(),
            spare: Vec::new(),
            spare_share: Share::NONE,
            next: None,
        }
    }

    /// Whether there may be more memory in this than is kept without being counted.
    #[inline]
    fn is_large(&self) -> bool {
        let Worker { buffers: BlockBuffers { decoded, ping, pong }, stream, callback, block, window, .. } =
            self;
        let buffers = [decoded, ping, pong, stream, callback, block, window];
        // One look at all of them: if the bits of all sizes are no more than this, then none of them is.
        let bits = buffers.iter().fold(self.codecs.largest(), |bits, buffer| bits | buffer.capacity());
        bits > SMALL || !self.spare.is_empty()
    }

    /// Gives back what memory is more than a thread should keep.
    #[inline]
    fn trim(&mut self) {
        self.codecs.shelve();
        if self.is_large() {
            self.trim_all();
        }
    }

    #[inline(never)]
    fn trim_all(&mut self) {
        let Worker { buffers: BlockBuffers { decoded, ping, pong }, stream, callback, block, window, .. } =
            self;
        for buffer in [decoded, ping, pong, stream, callback, block, window] {
            buffer.trim();
        }
        while !self.spare_share.resize(self.spare.iter().map(Waiting::capacity).sum()) {
            self.spare.pop();
        }
        self.codecs.trim();
    }
}

thread_local! {
    /// The workers of this thread that no operation uses at the moment: a list, of one in general. [`END`] sees to
    /// them.
    static IDLE: ManuallyDrop<Cell<Option<Box<Worker>>>> = const { ManuallyDrop::new(Cell::new(None)) };
}

static END: ThreadEnd = ThreadEnd::new(leave, free);

/// Workers of threads that have ended, for those that begin.
static LEFT: Left<Box<Worker>> = Left::new();

/// Leaves the first one of this thread's idle workers to others, and frees those after it.
fn leave() {
    if let Some(mut worker) = IDLE.with(|idle| idle.take()) {
        worker.next = None;
        LEFT.put(worker);
    }
}

/// Frees this thread's idle workers, and what is there for others.
fn free() {
    drop(IDLE.with(|idle| idle.take()));
    free_left();
}

/// Frees this thread's idle workers if they have much memory, and all that is there for others.
pub(crate) fn free_large() {
    IDLE.with(|idle| idle.set(idle.take().filter(|worker| !worker.is_large())));
    free_left();
}

/// Frees the workers and encoders that others have left.
fn free_left() {
    LEFT.clear();
    state::free_shelved();
}

/// A worker on loan to one operation of this thread.
pub(crate) struct Borrowed(Option<Box<Worker>>);

/// Borrows a worker; it goes back when the answer is dropped.
pub(crate) fn worker() -> Borrowed {
    Borrowed(Some(IDLE.with(|idle| borrow(idle))))
}

/// Lends a worker to `operation`: as [`worker`], in fewer instructions.
#[inline]
pub(crate) fn with_worker<T>(operation: impl FnOnce(&mut Worker) -> T) -> T {
    IDLE.with(|idle| {
        let mut worker = borrow(idle);
        let outcome = operation(&mut worker);
        give_back(idle, worker);
        outcome
    })
}

#[inline]
fn borrow(idle: &Cell<Option<Box<Worker>>>) -> Box<Worker> {
    let Some(mut worker) = idle.take() else { return new_worker() };
    if worker.next.is_some() {
        idle.set(worker.next.take());
    }
    worker
}

#[cold]
fn new_worker() -> Box<Worker> {
    END.ask();
    LEFT.take().unwrap_or_else(|| Box::new(Worker::new()))
}

#[inline]
fn give_back(idle: &Cell<Option<Box<Worker>>>, mut worker: Box<Worker>) {
    worker.trim();
    worker.next = idle.take();
    idle.set(Some(worker));
}

impl Deref for Borrowed {
    type Target = Worker;

    fn deref(&self) -> &Worker {
        self.0.as_ref().expect("present until dropped")
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut Worker {
        self.0.as_mut().expect("present until dropped")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let Some(worker) = self.0.take() else { return };
        if std::thread::panicking() {
            return; // its codec states may be half changed
        }
        IDLE.with(|idle| give_back(idle, worker));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::LARGEST;

    #[test]
    fn a_buffer_is_aligned_and_grows() {
        let mut buffer = Buffer::new();
        assert!(buffer.get(0).unwrap().is_empty());
        buffer.get(10).unwrap()[9] = 7;
        assert_eq!(buffer.get(10).unwrap()[9], 7);
        assert_eq!(buffer.get(100_000).unwrap().as_ptr().align_offset(ALIGN), 0);
        for first in [0, 1, 64, 100_001] {
            let (front, back) = buffer.get_two(first, 70).unwrap();
            assert_eq!((front.len(), back.len()), (first, 70));
            assert!([&*front, back].iter().all(|part| part.as_ptr().align_offset(ALIGN) == 0));
        }
    }

    #[test]
    fn a_block_is_aligned_zeros() {
        for len in [0, 1, 100, 70_000] {
            let block = AlignedBytes::zeroed(len).unwrap();
            assert!(*block == vec![0; len] && (len == 0 || block.as_ptr().align_offset(ALIGN) == 0));
        }
        assert!(AlignedBytes::default().is_empty());
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks for more memory than there is")]
    fn memory_that_cannot_be_had_is_an_error_and_nothing_is_lost() {
        let mut buffer = Buffer::new();
        buffer.get(10).unwrap().fill(7);
        // Where addresses have 32 bits, half of them may be had.
        let most =
            if cfg!(target_pointer_width = "32") { isize::MAX as usize + 1 } else { isize::MAX as usize };
        for len in [most, usize::MAX] {
            assert_eq!(buffer.get(len).err().map(|err| err.kind()), Some(ErrorKind::ThreadCreate));
            // The compiler may leave out asking for memory that nobody sees.
            let outcome = std::hint::black_box(zeroed(len));
            assert_eq!(outcome.err().map(|err| err.kind()), Some(ErrorKind::ThreadCreate));
        }
        assert_eq!(buffer.get(10).unwrap().len(), 10);
    }

    #[test]
    fn of_blocks_that_waited_no_more_is_kept_than_of_other_memory() {
        let mut worker = Worker::new();
        // Each of them is small.
        for _ in 0..200 {
            let mut waiting = Waiting::default();
            waiting.streams.get(SMALL - 4096).unwrap();
            worker.spare.push(waiting);
        }
        worker.trim();
        let kept: usize = worker.spare.iter().map(Waiting::capacity).sum();
        assert!(kept <= LARGEST && worker.spare.len() < 200);
        worker.spare.clear();
        worker.trim_all();
    }

    #[test]
    fn a_worker_comes_back_to_its_thread() {
        let first = with_worker(|worker| {
            let nested = with_worker(|worker| &raw const *worker);
            assert_ne!(&raw const *worker, nested);
            assert_eq!(with_worker(|worker| &raw const *worker), nested);
            &raw const *worker
        });
        assert_eq!(with_worker(|worker| &raw const *worker), first);
        assert_eq!(&raw const *worker(), first);
    }

    #[test]
    fn a_thread_that_ends_leaves_one_worker() {
        with_worker(|_| with_worker(|_| ()));
        leave();
        assert!(IDLE.with(|idle| idle.take()).is_none());
        // Other tests may leave and take some as well.
        while let Some(worker) = LEFT.take() {
            assert!(worker.next.is_none());
        }
    }

    #[test]
    fn nested_operations_get_workers_of_their_own() {
        let mut outer = worker();
        outer.block.get(8).unwrap().fill(1);
        let mut inner = worker();
        inner.block.get(8).unwrap().fill(2);
        assert_eq!(outer.block.get(8).unwrap(), [1; 8]);
    }
}
