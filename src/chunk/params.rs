//! The parameters of compression, and what else an operation on a chunk is given.

#![forbid(unsafe_code)]

use super::pipeline::Pipeline;
use super::source::BlockSource;
use crate::codecs::state::StreamCodec;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::consts::{DEFAULT_FILTERS, MAX_BLOCKSIZE, MAX_FILTERS, codec, filter, split};
use crate::format::frame_header::FrameParams;
use crate::format::geometry::Container;
use crate::mutex::Mutex;
use crate::pool::{Executor, Pool};
use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How buffers are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CParams {
    /// Codec code, see [`codec`]. A value that no codec has fails only when a stream needs the codec.
    pub compcode: i32,
    /// Meta byte for registered codecs.
    pub compcode_meta: u8,
    /// Compression level, 0 (store) to 9.
    pub clevel: u8,
    /// Whether to compress with a dictionary, made anew for each chunk.
    pub use_dict: bool,
    /// Bytes per item, at least 1.
    pub typesize: usize,
    /// Wanted block size in bytes; 0 leaves the choice to the library.
    pub blocksize: usize,
    /// See [`split`].
    pub splitmode: i32,
    /// The filters, applied in this order; see [`filter`].
    pub filters: [u8; MAX_FILTERS],
    /// Meta bytes of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// Whether to store measurements of the codec instead of its output.
    pub instrumented: bool,
}

impl Default for CParams {
    fn default() -> CParams {
        CParams {
            compcode: i32::from(codec::BLOSCLZ),
            compcode_meta: 0,
            clevel: 5,
            use_dict: false,
            typesize: 8,
            blocksize: 0,
            splitmode: split::FORWARD_COMPAT,
            filters: DEFAULT_FILTERS,
            filters_meta: [0; MAX_FILTERS],
            instrumented: false,
        }
    }
}

impl CParams {
    /// Checks what can be checked without knowing the data.
    pub(crate) fn check(&self) -> Result<()> {
        ensure(self.clevel <= 9, ErrorKind::CodecParam, "clevel above 9")?;
        require((1..=MAX_BLOCKSIZE).contains(&self.typesize), "typesize out of range")
    }

    /// What frames record of these parameters.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for values that they have no room for.
    pub fn to_frame(&self) -> Result<FrameParams> {
        let invalid = Error::new(ErrorKind::InvalidParam, "parameter that frames cannot record");
        let splitmode = u8::try_from(self.splitmode).ok().filter(|mode| (1..=4).contains(mode));
        Ok(FrameParams {
            typesize: i32::try_from(self.typesize).map_err(|_| invalid)?,
            blocksize: i32::try_from(self.blocksize).map_err(|_| invalid)?,
            compcode: self.codec_id().ok_or(invalid)?,
            compcode_meta: self.compcode_meta,
            clevel: self.clevel,
            splitmode: splitmode.ok_or(invalid)?,
            use_dict: self.use_dict,
            filters: self.filters,
            filters_meta: self.filters_meta,
            nthreads_c: 1,
            nthreads_d: 1,
        })
    }

    /// The codec code as one byte, or `None` if no codec can have it.
    pub(crate) fn codec_id(&self) -> Option<u8> {
        u8::try_from(self.compcode).ok()
    }
}

/// The parameters that a frame records.
impl From<&FrameParams> for CParams {
    fn from(recorded: &FrameParams) -> CParams {
        CParams {
            compcode: i32::from(recorded.compcode),
            compcode_meta: recorded.compcode_meta,
            clevel: recorded.clevel,
            use_dict: recorded.use_dict,
            typesize: usize::try_from(recorded.typesize).unwrap_or(0).max(1),
            blocksize: usize::try_from(recorded.blocksize).unwrap_or(0),
            splitmode: i32::from(recorded.splitmode),
            filters: recorded.filters,
            filters_meta: recorded.filters_meta,
            instrumented: false,
        }
    }
}

/// The threads that an operation may use.
#[derive(Clone, Copy, Default)]
pub struct Threads<'a> {
    /// Runs the tasks; `None` means the calling thread alone.
    pub executor: Option<&'a dyn Executor>,
    /// Number of tasks; 0 and 1 mean the calling thread alone. Every task is run, even one that finds nothing to do.
    /// Values above 32767 count as 32767.
    pub nthreads: usize,
    /// Work that takes less time than decompressing this many bytes with a fast codec stays on the calling thread: it
    /// would be done before another thread is awake. 0 turns this off. See [`on`](Threads::on).
    pub pays_from: usize,
}

/// More tasks than this are not made: C callers cannot ask for more.
const MOST_TASKS: usize = i16::MAX as usize; // a constant that fits

impl<'a> Threads<'a> {
    /// What [`pays_from`](Self::pays_from) is for a [`Pool`]: about 15 microseconds.
    pub const SHORT_WORK: usize = 64 << 10;
    /// Up to this size, in bytes, a plain copy is for the calling thread alone: waking others does not pay.
    pub(crate) const SHORT_COPY: usize = 256 << 10;

    /// The threads of `pool`, as many as the processors can run at once, for all work that is worth waking them.
    #[must_use]
    pub fn on(pool: &'a Pool) -> Threads<'a> {
        Threads { executor: Some(pool), nthreads: pool.at_once(), pays_from: Self::SHORT_WORK }
    }

    /// These threads, or the calling thread alone if the work takes no longer than decompressing `nbytes` bytes with a
    /// codec that takes `cost` times as long as a fast one.
    pub(crate) fn for_work(self, nbytes: usize, cost: usize) -> Threads<'a> {
        if nbytes.saturating_mul(cost) < self.pays_from { Threads::default() } else { self }
    }

    /// Whether other threads are no use for a plain copy of `len` bytes: it is for the calling thread alone.
    pub(crate) fn are_no_use_for(&self, len: usize) -> bool {
        len <= self.room_alone()
    }

    /// Up to what size, in bytes, a plain copy, or what takes no longer, is for the calling thread alone.
    pub(crate) fn room_alone(&self) -> usize {
        if self.executor.is_none() { usize::MAX } else { Self::SHORT_COPY }
    }

    /// The executor for an operation of `nblocks` blocks, or `None` if it runs in the calling thread.
    pub(crate) fn for_blocks(&self, nblocks: usize) -> Option<(&'a dyn Executor, usize)> {
        let worthwhile = self.nthreads > 1 && nblocks >= 2;
        self.executor.filter(|_| worthwhile).map(|executor| (executor, self.nthreads.min(MOST_TASKS)))
    }

    /// Calls `work` with the number of a task and 0 to `n - 1`, on several threads if there are: tasks with the same
    /// number come one after the other.
    ///
    /// # Errors
    ///
    /// One of the errors of `work`; what no thread had taken by then is skipped.
    pub(crate) fn for_each(
        &self,
        n: usize,
        work: &(dyn Fn(usize, usize) -> Result<()> + Sync),
    ) -> Result<()> {
        let Some((executor, ntasks)) = self.for_blocks(n) else {
            return (0..n).try_for_each(|i| work(0, i));
        };
        share(executor, ntasks.min(n), 0..n, &|tid, mine| {
            for i in mine {
                work(tid, i)?;
            }
            Ok(())
        })
    }

    /// Calls `work` with one part of `len` bytes after the other, on several threads if there are. What is not more
    /// than a copy is cut in this way: blocks may be a few bytes, or all of them.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub(crate) fn for_each_part(
        &self,
        len: usize,
        work: &(dyn Fn(Range<usize>) -> Result<()> + Sync),
    ) -> Result<()> {
        self.for_each(len.div_ceil(Self::SHORT_COPY), &|_, n| {
            let start = n * Self::SHORT_COPY;
            work(start..len.min(start + Self::SHORT_COPY))
        })
    }
}

/// Shares the numbers in `range` among `ntasks` tasks: `task` is given the number of the task, and those of `range`
/// that it gets, which it takes in several parts as it asks for them.
///
/// # Errors
///
/// One of the errors of the tasks; what nobody had taken by then is skipped.
pub(super) fn share(
    executor: &dyn Executor,
    ntasks: usize,
    range: Range<usize>,
    task: &(dyn Fn(usize, &mut dyn Iterator<Item = usize>) -> Result<()> + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(range.start);
    let error: Mutex<Option<Error>> = Mutex::new(None);
    executor.run(ntasks, &|tid| {
        let parts = std::iter::from_fn(|| take_part(&next, range.end, ntasks));
        if let Err(found) = task(tid, &mut parts.flatten()) {
            error.lock().get_or_insert(found);
            next.store(range.end, Ordering::Relaxed);
        }
    });
    error.into_inner().map_or(Ok(()), Err)
}

/// Takes some of the numbers from `next` to `end` for one of `ntasks` tasks: so many that tasks seldom meet, and so few
/// that all of them end at about the same time.
fn take_part(next: &AtomicUsize, end: usize, ntasks: usize) -> Option<Range<usize>> {
    let mut start = next.load(Ordering::Relaxed);
    loop {
        let left = end.checked_sub(start).filter(|&left| left > 0)?;
        let stop = start + (left / (4 * ntasks)).max(1);
        match next.compare_exchange_weak(start, stop, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(start..stop),
            Err(found) => start = found,
        }
    }
}

/// Tells about the super-chunk around a chunk; asked only if a codec or filter wants to know.
pub type ContainerFn<'a> = dyn Fn() -> Container + Sync + 'a;

/// What compression is given besides the data.
#[derive(Clone, Copy)]
pub struct Encoding<'a> {
    /// The parameters.
    pub params: &'a CParams,
    /// Threads to use.
    pub threads: Threads<'a>,
    /// Transforms the blocks before the filters.
    pub prefilter: Option<&'a dyn Prefilter>,
    /// Tells about the container; `None` outside of super-chunks.
    pub container: Option<&'a ContainerFn<'a>>,
    /// Passed on to codecs and filters that the layer above registered.
    pub host: Option<&'a (dyn Any + Send + Sync)>,
    /// Write a 16-byte header, as Blosc1 did.
    pub blosc1_header: bool,
}

impl<'a> Encoding<'a> {
    /// Compression with `params` in the calling thread.
    #[must_use]
    pub fn new(params: &'a CParams) -> Encoding<'a> {
        Encoding {
            params,
            threads: Threads::default(),
            prefilter: None,
            container: None,
            host: None,
            blosc1_header: false,
        }
    }

    /// The threads for compressing `nbytes` bytes.
    pub(crate) fn threads_for(&self, nbytes: usize) -> Threads<'a> {
        let CParams { filters, filters_meta, typesize, .. } = self.params;
        if self.threads.pays_from == 0
            || Pipeline::forward(filters, filters_meta, *typesize).has_applications()
        {
            return self.threads;
        }
        self.threads.for_work(nbytes, StreamCodec::resolve(self.params.codec_id()).encode_cost())
    }

    /// Whether codec or prefilter may look at the whole buffer that is compressed, not only at blocks of it.
    pub(crate) fn wants_whole_buffer(&self) -> bool {
        let built_in = self.params.codec_id().is_some_and(|id| id <= codec::ZSTD);
        self.prefilter.is_some() || !built_in
    }
}

/// What decompression is given besides the chunk.
#[derive(Clone, Copy, Default)]
pub struct Decoding<'a> {
    /// Threads to use.
    pub threads: Threads<'a>,
    /// Transforms the blocks after the filters.
    pub postfilter: Option<&'a dyn Postfilter>,
    /// Where the blocks of a lazy chunk are read.
    pub source: Option<&'a dyn BlockSource>,
    /// Tells about the container; `None` outside of super-chunks.
    pub container: Option<&'a ContainerFn<'a>>,
    /// Passed on to codecs and filters that the layer above registered.
    pub host: Option<&'a (dyn Any + Send + Sync)>,
    /// Told the length of the longest block of a chunk of variable-length blocks, before any is decoded; not that of a
    /// lazy chunk, which is not known.
    pub longest_block: Option<&'a (dyn Fn(usize) + Sync)>,
}

/// One call of a prefilter.
pub struct PrefilterCall<'a> {
    /// Address of the block in the source. Not to be read if the operation was started without a source.
    pub input: *const u8,
    /// Where the block for the pipeline goes: at least [`output_len`](Self::output_len) bytes.
    pub output: &'a mut [u8],
    /// Bytes that the callback is asked to write.
    pub output_len: usize,
    /// Position of the block in the chunk, in bytes; 0 for blocks of variable length.
    pub offset: usize,
    /// Index of the block; 0 for blocks of variable length.
    pub nblock: usize,
    /// Number of the task that calls, below the number of threads.
    pub tid: usize,
    /// Bytes per item.
    pub typesize: usize,
    /// Memory that the callback may use as it likes.
    pub scratch: &'a mut [u8],
}

/// A function of the application that makes the blocks to compress.
pub trait Prefilter: Sync {
    /// Bytes per item of its output, in chunks of this typesize.
    fn output_typesize(&self, typesize: usize) -> usize;

    /// Whether only the side effects count: the output is discarded and zeros are stored.
    fn is_disposable(&self) -> bool;

    /// Makes one block.
    ///
    /// # Errors
    ///
    /// Any error fails the compression.
    fn run(&self, call: PrefilterCall<'_>) -> Result<()>;
}

/// One call of a postfilter.
pub struct PostfilterCall<'a> {
    /// The decoded block.
    pub input: &'a [u8],
    /// Where the transformed block goes; as long as `input`.
    pub output: &'a mut [u8],
    /// Bytes per item.
    pub typesize: usize,
    /// Position of the block in the chunk, in bytes.
    pub offset: usize,
    /// Index of the block.
    pub nblock: usize,
    /// Number of the task that calls, below the number of threads.
    pub tid: usize,
    /// Memory that the callback may use as it likes.
    pub scratch: &'a mut [u8],
}

/// A function of the application that changes the decompressed blocks.
pub trait Postfilter: Sync {
    /// Makes the final block out of the decoded one.
    ///
    /// # Errors
    ///
    /// Any error fails the decompression.
    fn run(&self, call: PostfilterCall<'_>) -> Result<()>;
}

/// Size of the scratch memory that callbacks get, in bytes. Where that is more than there can be, it is half of all
/// addresses, so that there is no such memory, whatever is added for a block.
pub(crate) fn callback_scratch_len(blocksize: usize, typesize: usize) -> usize {
    (blocksize + 4 * typesize).saturating_mul(4).min(usize::MAX / 2)
}

/// Fails if a filter id is reserved: neither built in, nor in the global registry, nor free for applications.
///
/// # Errors
///
/// `InvalidParam` for ids from 5 to 31 and from 37 to 159.
pub fn check_filter_ids(filters: &[u8; MAX_FILTERS]) -> Result<()> {
    let reserved = |id: u8| {
        (filter::TRUNC_PREC + 1..filter::FIRST_REGISTERED).contains(&id)
            || (filter::LAST_REGISTERED + 1..filter::FIRST_USER).contains(&id)
    };
    if filters.iter().any(|&id| reserved(id)) {
        return Err(Error::new(ErrorKind::InvalidParam, "reserved filter id"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::consts::MAX_BUFFERSIZE;
    use crate::pool;

    #[test]
    fn short_work_is_for_the_calling_thread() {
        let pool = pool::attach(3);
        let all = |threads: Threads<'_>| threads.executor.is_some();
        for (cost, least) in [(1, 64 << 10), (2, 32 << 10), (usize::MAX, 1)] {
            assert!(all(Threads::on(&pool).for_work(least, cost)));
            assert!(!all(Threads::on(&pool).for_work(least - 1, cost)));
        }
        assert!(all(Threads { pays_from: 0, ..Threads::on(&pool) }.for_work(0, 1)));

        let mut params = CParams { compcode: i32::from(codec::LZ4), ..CParams::default() };
        let threads_for = |params: &CParams, nbytes| {
            let threads = Threads::on(&pool);
            all(Encoding { threads, ..Encoding::new(params) }.threads_for(nbytes))
        };
        assert!(!threads_for(&params, 20_000) && threads_for(&params, 30_000));
        params.compcode = i32::from(codec::ZSTD);
        assert!(!threads_for(&params, 8000) && threads_for(&params, 20_000));
        params.filters[0] = filter::BYTEDELTA;
        assert!(!threads_for(&params, 1));
        params.compcode = i32::from(codec::FIRST_USER);
        assert!(threads_for(&params, 1));
    }

    #[test]
    fn scratch_for_callbacks_has_no_less_room_than_asked_for() {
        assert_eq!(callback_scratch_len(1000, 8), 4128);
        for blocksize in [MAX_BLOCKSIZE, 1 << 30, MAX_BUFFERSIZE] {
            let wanted = 4 * (blocksize as u64 + 4 * 255);
            let len = callback_scratch_len(blocksize, 255);
            assert!(len as u64 == wanted || len == usize::MAX / 2 && wanted > len as u64, "{blocksize}");
            assert!(len.checked_add(MAX_BUFFERSIZE).is_some());
        }
    }
}
