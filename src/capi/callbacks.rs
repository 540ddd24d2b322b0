//! Functions of the application as implementations of the library's traits.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::context::{self, Context};
use super::plugins::{self, CodecFunctions, FilterFunctions};
use super::types::{
    CBool, blosc_threads_callback, blosc2_codec, blosc2_context, blosc2_cparams, blosc2_dparams,
    blosc2_filter, blosc2_postfilter_params, blosc2_prefilter_params,
};
use crate::cancel;
use crate::chunk::{Postfilter, PostfilterCall, Prefilter, PrefilterCall};
use crate::codecs::{Codec, CodecContext};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::filters::{Filter, FilterContext};
use crate::fork::Global;
use crate::memory;
use crate::panics;
use crate::pool::Executor;

/// Sizes in chunks as C's `int`; chunks are below 2 GiB.
pub(crate) fn int(value: usize) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

thread_local! {
    /// How many callbacks of the application this thread is inside of.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread runs a callback of the application: whatever it calls must not wait for the operation that
/// called back.
pub(crate) fn inside_callback() -> bool {
    INSIDE.try_with(|inside| inside.get() > 0).unwrap_or(false)
}

/// Runs `callback`, a function of the application.
pub(super) fn call_back<T>(callback: impl FnOnce() -> T) -> T {
    let step = |by: isize| INSIDE.try_with(|inside| inside.set(inside.get().saturating_add_signed(by)));
    let _ = step(1);
    let result = cancel::deferred(callback);
    let _ = step(-1);
    result
}

/// The context that an operation runs with, handed through to registered codecs and filters.
pub(crate) struct Host(pub(crate) *mut blosc2_context);

// SAFETY: tasks only read the context; it is written to before the first of them begins.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    /// Shows the size of the blocks that are about to be decoded.
    pub(crate) fn show_blocksize(&self, blocksize: usize) {
        // SAFETY: the context outlives the operation that the host was made for, and no task looks at it yet.
        let shown = unsafe { context::note_blocksize(self.0, blocksize) };
        debug_assert!(shown.is_ok(), "the operation has the context already");
    }
}

/// The context that was handed through, if there is one.
fn context_of(host: Option<&(dyn Any + Send + Sync)>) -> Option<&Context> {
    let host = host?.downcast_ref::<Host>()?;
    // SAFETY: the context outlives the operation that the host was made for, and tasks do not change it.
    unsafe { host.0.cast::<Context>().as_ref() }
}

/// The compression parameters for a callback.
fn cparams_for(host: Option<&(dyn Any + Send + Sync)>, typesize: usize, blocksize: usize) -> blosc2_cparams {
    let cparams = context_of(host).map_or(blosc2_cparams::DEFAULTS, Context::cparams);
    blosc2_cparams { typesize: int(typesize), blocksize: int(blocksize), ..cparams }
}

/// The decompression parameters for a callback.
fn dparams_for(host: Option<&(dyn Any + Send + Sync)>, typesize: usize) -> blosc2_dparams {
    let dparams = context_of(host).map_or(blosc2_dparams::DEFAULTS, Context::dparams);
    blosc2_dparams { typesize: int(typesize), ..dparams }
}

/// Parameters for a prefilter that was given none.
pub(crate) fn no_preparams() -> blosc2_prefilter_params {
    // SAFETY: integers and raw pointers only.
    unsafe { std::mem::zeroed() }
}

/// Parameters for a postfilter that was given none.
pub(crate) fn no_postparams() -> blosc2_postfilter_params {
    // SAFETY: integers and raw pointers only.
    unsafe { std::mem::zeroed() }
}

/// A prefilter.
pub(crate) struct CPrefilter {
    pub(crate) function: unsafe extern "C" fn(*mut blosc2_prefilter_params) -> c_int,
    pub(crate) params: blosc2_prefilter_params,
    /// The number of the chunk that the callback is told.
    pub(crate) nchunk: AtomicI64,
    pub(crate) ctx: *mut blosc2_context,
}

// SAFETY: the client lets its callback run on several threads, each call with its own parameters.
unsafe impl Send for CPrefilter {}
// SAFETY: as above.
unsafe impl Sync for CPrefilter {}

impl Prefilter for CPrefilter {
    fn output_typesize(&self, typesize: usize) -> usize {
        match usize::try_from(self.params.output_typesize) {
            Ok(0) | Err(_) => typesize,
            Ok(given) => given,
        }
    }

    fn is_disposable(&self) -> bool {
        self.params.output_is_disposable.get()
    }

    fn run(&self, call: PrefilterCall<'_>) -> Result<()> {
        let mut params = blosc2_prefilter_params {
            user_data: self.params.user_data,
            input: call.input,
            output: call.output.as_mut_ptr(),
            output_size: int(call.output_len),
            output_typesize: int(self.output_typesize(call.typesize)),
            output_offset: int(call.offset),
            nchunk: self.nchunk.load(Ordering::Relaxed),
            nblock: int(call.nblock),
            tid: int(call.tid),
            ttmp: call.scratch.as_mut_ptr(),
            ttmp_nbytes: call.scratch.len(),
            ctx: self.ctx,
            output_is_disposable: CBool::new(self.is_disposable()),
        };
        // SAFETY: the client vouches for its callback; the buffers are as long as the parameters say.
        let code = call_back(|| unsafe { (self.function)(&raw mut params) });
        let fine = code == 0 || self.is_disposable();
        ensure(fine, ErrorKind::FilterPipeline, "the prefilter reported a failure")
    }
}

/// A postfilter.
pub(crate) struct CPostfilter {
    pub(crate) function: unsafe extern "C" fn(*mut blosc2_postfilter_params) -> c_int,
    pub(crate) params: blosc2_postfilter_params,
    /// The number of the chunk that the callback is told.
    pub(crate) nchunk: AtomicI64,
    pub(crate) ctx: *mut blosc2_context,
}

// SAFETY: the client lets its callback run on several threads, each call with its own parameters.
unsafe impl Send for CPostfilter {}
// SAFETY: as above.
unsafe impl Sync for CPostfilter {}

impl Postfilter for CPostfilter {
    fn run(&self, call: PostfilterCall<'_>) -> Result<()> {
        let mut params = blosc2_postfilter_params {
            user_data: self.params.user_data,
            input: call.input.as_ptr(),
            output: call.output.as_mut_ptr(),
            size: int(call.input.len()),
            typesize: int(call.typesize),
            offset: int(call.offset),
            nchunk: self.nchunk.load(Ordering::Relaxed),
            nblock: int(call.nblock),
            tid: int(call.tid),
            ttmp: call.scratch.as_mut_ptr(),
            ttmp_nbytes: call.scratch.len(),
            ctx: self.ctx,
        };
        // SAFETY: the client vouches for its callback; the buffers are as long as the parameters say.
        let code = call_back(|| unsafe { (self.function)(&raw mut params) });
        ensure(code == 0, ErrorKind::Postfilter, "the postfilter reported a failure")
    }
}

/// A codec of the application, or a plugin. Functions that it lacks are loaded when they are needed.
pub(crate) struct CCodec(pub(crate) blosc2_codec);

// SAFETY: the client lets its callbacks run on several threads.
unsafe impl Send for CCodec {}
// SAFETY: as above.
unsafe impl Sync for CCodec {}

/// The address of the chunk for callbacks; null if there is none.
fn chunk_address(chunk: &[u8]) -> *const c_void {
    if chunk.is_empty() { std::ptr::null() } else { chunk.as_ptr().cast() }
}

impl CCodec {
    /// The functions of the plugin.
    fn plugin(&self) -> Result<CodecFunctions> {
        // SAFETY: names of codecs are strings.
        unsafe { plugins::codec(self.0.compname) }
    }
}

impl Codec for CCodec {
    fn encode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let encoder = self.0.encoder.map_or_else(|| Ok(self.plugin()?.encode), Ok)?;
        let mut cparams = cparams_for(cx.host, cx.typesize, cx.blocksize);
        // SAFETY: the client vouches for its callback; the lengths are those of the slices.
        let code = call_back(|| unsafe {
            encoder(
                src.as_ptr(),
                int(src.len()),
                dest.as_mut_ptr(),
                int(dest.len()),
                cx.meta,
                &raw mut cparams,
                chunk_address(cx.chunk),
            )
        });
        usize::try_from(code).map_err(|_| Error::new(ErrorKind::Data, "the encoder reported a failure"))
    }

    fn decode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let decoder = self.0.decoder.map_or_else(|| Ok(self.plugin()?.decode), Ok)?;
        let mut dparams = dparams_for(cx.host, cx.typesize);
        // SAFETY: the client vouches for its callback; the lengths are those of the slices.
        let code = call_back(|| unsafe {
            decoder(
                src.as_ptr(),
                int(src.len()),
                dest.as_mut_ptr(),
                int(dest.len()),
                cx.meta,
                &raw mut dparams,
                chunk_address(cx.chunk),
            )
        });
        ensure(code == int(dest.len()), ErrorKind::Data, "the decoder reported a failure")
    }

    /// The addresses of the name and the functions.
    fn identity(&self) -> Option<[usize; 3]> {
        let blosc2_codec { compname, encoder, decoder, .. } = self.0;
        Some([compname.addr(), encoder.map_or(0, |f| f as usize), decoder.map_or(0, |f| f as usize)])
    }
}

/// A filter of the application, or a plugin. Functions that it lacks are loaded when they are needed.
pub(crate) struct CFilter(pub(crate) blosc2_filter);

// SAFETY: the client lets its callbacks run on several threads.
unsafe impl Send for CFilter {}
// SAFETY: as above.
unsafe impl Sync for CFilter {}

impl CFilter {
    /// The functions of the plugin.
    fn plugin(&self) -> Result<FilterFunctions> {
        // SAFETY: the client promised a name to a filter that lacks a function.
        unsafe { plugins::filter(self.0.name) }
    }
}

impl Filter for CFilter {
    fn forward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let forward = self.0.forward.map_or_else(|| Ok(self.plugin()?.forward), Ok)?;
        let mut cparams = cparams_for(cx.host, cx.typesize, cx.blocksize);
        // SAFETY: the client vouches for its callback; both buffers have this length.
        let code = call_back(|| unsafe {
            forward(src.as_ptr(), dest.as_mut_ptr(), int(src.len()), cx.meta, &raw mut cparams, cx.id)
        });
        ensure(code == 0, ErrorKind::FilterPipeline, "the filter reported a failure")
    }

    fn backward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let backward = self.0.backward.map_or_else(|| Ok(self.plugin()?.backward), Ok)?;
        let mut dparams = dparams_for(cx.host, cx.typesize);
        // SAFETY: the client vouches for its callback; both buffers have this length.
        let code = call_back(|| unsafe {
            backward(src.as_ptr(), dest.as_mut_ptr(), int(src.len()), cx.meta, &raw mut dparams, cx.id)
        });
        // Some filters return the number of bytes here, which the C library lets pass, except for the other direction.
        if code >= 0 { Ok(()) } else { Err(Error::from_callback(code, "the filter reported a failure")) }
    }

    /// The addresses of the name and the functions.
    fn identity(&self) -> Option<[usize; 3]> {
        let blosc2_filter { name, forward, backward, .. } = self.0;
        Some([name.addr(), forward.map_or(0, |f| f as usize), backward.map_or(0, |f| f as usize)])
    }
}

/// Threads of the application.
#[derive(Clone, Copy)]
pub(crate) struct UserThreads {
    callback: unsafe extern "C" fn(
        *mut c_void,
        Option<unsafe extern "C" fn(*mut c_void)>,
        c_int,
        usize,
        *mut c_void,
    ),
    data: *mut c_void,
}

// SAFETY: the client lets any thread call its callback.
unsafe impl Send for UserThreads {}
// SAFETY: as above.
unsafe impl Sync for UserThreads {}

static USER_THREADS: Global<Option<UserThreads>> = Global::new(None);
/// Whether there may be some, so that operations that use threads need not ask one after the other.
static ARE_INSTALLED: AtomicBool = AtomicBool::new(false);

impl UserThreads {
    /// Installs a callback for all operations to come, or removes it.
    pub(crate) fn install(callback: blosc_threads_callback, data: *mut c_void) {
        let threads = callback.map(|callback| UserThreads { callback, data });
        let mut installed = USER_THREADS.lock();
        *installed = threads;
        ARE_INSTALLED.store(threads.is_some(), Ordering::Release);
    }

    /// The callback in force.
    pub(crate) fn installed() -> Option<UserThreads> {
        if ARE_INSTALLED.load(Ordering::Acquire) { *USER_THREADS.lock() } else { None }
    }
}

/// One job for the application's threads.
struct UserJob<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    index: usize,
    panicked: bool,
}

/// Runs one job; a panic is kept for later, since it must not unwind through the application's code.
///
/// # Safety
///
/// `job` points to a [`UserJob`] that no other thread uses.
unsafe extern "C" fn run_user_job(job: *mut c_void) {
    // SAFETY: `job` points to one element of the array in `run`, and each element is run by one thread.
    let job = unsafe { &mut *job.cast::<UserJob<'_>>() };
    // The task is the library's own work, also where the application calls it from within its callback.
    let was_inside = INSIDE.try_with(|inside| inside.replace(0));
    job.panicked = panics::caught(|| (job.task)(job.index)).is_none();
    let _ = INSIDE.try_with(|inside| inside.set(was_inside.unwrap_or(0)));
}

impl Executor for UserThreads {
    fn run(&self, ntasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let jobs = memory::collect((0..ntasks).map(|index| UserJob { task, index, panicked: false }));
        let Ok(mut jobs) = jobs else {
            // As a callback may do that runs the jobs one after another.
            return (0..ntasks).for_each(task);
        };
        // SAFETY: the array lives until the callback returns, by when all jobs are done.
        call_back(|| unsafe {
            (self.callback)(
                self.data,
                Some(run_user_job),
                int(ntasks),
                size_of::<UserJob<'_>>(),
                jobs.as_mut_ptr().cast(),
            );
        });
        if jobs.iter().any(|job| job.panicked) {
            resume_unwind(Box::new("a task of a parallel operation panicked"));
        }
    }
}
