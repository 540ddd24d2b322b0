//! Contexts: the object behind `blosc2_context`.
//!
//! The struct is opaque in the public headers, but released plugins and tuners read and write some of its members at
//! fixed offsets, so [`ContextFields`] carries these, live. An operation takes what it needs out of the context, runs
//! without holding on to it (callbacks may look at the context meanwhile), and records its outcome at the end.

mod compress;
mod decompress;
mod mask;
mod parts;

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI16, AtomicI32, Ordering};

use super::blosc1;
use super::callbacks::{self, CPostfilter, CPrefilter, UserThreads, int};
use super::context_fields::ContextFields;
use super::environment::{CodecChoice, Environment};
use super::ptr::{SharedNumber, handle_mut, handle_ref};
use super::tuner;
use super::types::{
    CBool, blosc2_context, blosc2_cparams, blosc2_dparams, blosc2_postfilter_params, blosc2_prefilter_params,
};
use crate::chunk::blocks::{Layout, capped_typesize};
use crate::chunk::params::check_filter_ids;
use crate::chunk::{CParams, Threads};
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::chunk_header::{self, ChunkHeader};
use crate::format::consts::codec_format;
use crate::memory;
use crate::pool::{self, LastUsed, Pool};
use mask::PendingMask;

pub(crate) use compress::{compress, compress_vl, note_blocksize, special_params};
pub(crate) use decompress::{decompress, decompress_vl, decompress_vl_block, getitem};
pub(crate) use parts::{DecodingParts, EncodingParts};

/// Values of `ContextFields::thread_backend`.
mod backend {
    pub(super) const SERIAL: i16 = 0;
    pub(super) const POOL: i16 = 1;
    pub(super) const CALLBACK: i16 = 2;
}

/// A context.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) fields: ContextFields,
    /// The block size that was asked for; `fields.blocksize` shows the one last used.
    blocksize: Sticky,
    /// The same for the typesize.
    typesize: Sticky,
    instrumented: bool,
    /// Whether `BLOSC_INFO` was set when the context was made: for writing many chunks at once; calls that compress one
    /// look at the environment as it is then.
    wants_info: bool,
    /// The tuner's configuration, as given.
    tuner_config: *mut c_void,
    preparams: Option<Box<blosc2_prefilter_params>>,
    postparams: Option<Box<blosc2_postfilter_params>>,
    last_pool: LastUsed,
    maskout: PendingMask,
}

/// A request that outlives the effective value shown in its place.
#[derive(Clone, Copy)]
struct Sticky {
    requested: i32,
    shown: i32,
}

impl Sticky {
    fn new(requested: i32) -> Sticky {
        Sticky { requested, shown: requested }
    }

    /// The request, which is `field` if someone assigned to that since it was last shown.
    fn take(&mut self, field: i32) -> i32 {
        if field != self.shown {
            *self = Sticky::new(field);
        }
        self.requested
    }

    /// Shows `effective` in `field`.
    fn show(&mut self, field: &mut i32, effective: usize) {
        self.shown = int(effective);
        *field = self.shown;
    }
}

/// Runs the tasks of one operation.
pub(crate) enum Backend {
    Serial,
    Pool(Arc<Pool>),
    Callback(UserThreads),
}

impl Backend {
    /// The backend for operations with `nthreads` threads; `current` is the pool used so far.
    pub(crate) fn attach(nthreads: i16, current: Option<Arc<Pool>>) -> Backend {
        let Ok(nthreads @ 2..) = usize::try_from(nthreads) else { return Backend::Serial };
        if let Some(threads) = UserThreads::installed() {
            return Backend::Callback(threads);
        }
        let usable = current.filter(|pool| pool.nthreads() == nthreads && !pool.is_stale());
        Backend::Pool(usable.unwrap_or_else(|| {
            // As in the C library, so that `blosc2_destroy` ends the threads.
            blosc1::initialise();
            pool::attach(nthreads)
        }))
    }

    /// The threads of this backend for an operation: of our own, no more than there are processors.
    pub(crate) fn threads(&self, nthreads: i16) -> Threads<'_> {
        self.threads_for(nthreads, false)
    }

    /// As [`threads`](Self::threads), without that limit if the operation calls functions of the application, which
    /// `may_wait` for something.
    pub(crate) fn threads_for(&self, nthreads: i16, may_wait: bool) -> Threads<'_> {
        let nthreads = usize::try_from(nthreads).unwrap_or(1);
        match self {
            Backend::Serial => Threads { nthreads, ..Threads::default() },
            Backend::Pool(pool) if may_wait => Threads { executor: Some(&**pool), nthreads, pays_from: 0 },
            Backend::Pool(pool) => {
                let threads = Threads::on(pool);
                Threads { nthreads: nthreads.min(threads.nthreads), ..threads }
            }
            Backend::Callback(threads) => Threads { executor: Some(threads), nthreads, pays_from: 0 },
        }
    }
}

impl Context {
    /// A context in which nothing is set but the super-chunk and the number of threads.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    fn new(schunk: *mut c_void, nthreads: i16) -> Result<Box<Context>> {
        memory::boxed(|| {
            // SAFETY: every field is an integer, a raw pointer, an array of these or an optional function pointer; some
            // of them are atomic.
            let mut fields: ContextFields = unsafe { std::mem::zeroed() };
            fields.schunk = schunk.cast();
            fields.nthreads = AtomicI16::new(nthreads);
            fields.new_nthreads = nthreads;
            Context {
                fields,
                blocksize: Sticky::new(0),
                typesize: Sticky::new(0),
                instrumented: false,
                wants_info: false,
                tuner_config: ptr::null_mut(),
                preparams: None,
                postparams: None,
                last_pool: LastUsed::new(),
                maskout: PendingMask::none(),
            }
        })
    }

    /// A context for compression. The environment may override parameters.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for reserved filter ids; `CodecSupport` if the environment names a registered codec;
    /// `MemoryAlloc`.
    pub(crate) fn for_compression(cparams: &blosc2_cparams) -> Result<Box<Context>> {
        check_filter_ids(&cparams.filters)?;
        let mut cparams = *cparams;
        let mut codec =
            CodecChoice { compcode: i32::from(cparams.compcode), clevel: i32::from(cparams.clevel) };
        let environment = Environment::read();
        environment.apply_to_context(&mut cparams, &mut codec)?;
        let mut context = Context::new(cparams.schunk, cparams.nthreads)?;
        context.wants_info = environment.info;
        if cparams.prefilter.is_some() {
            // SAFETY: the client vouches for `preparams`, unless it is null.
            let given = unsafe { cparams.preparams.as_ref() }.copied();
            context.preparams = Some(memory::boxed(|| given.unwrap_or_else(callbacks::no_preparams))?);
        }
        context.blocksize = Sticky::new(cparams.blocksize);
        context.typesize = Sticky::new(cparams.typesize);
        context.instrumented = cparams.instr_codec.get();
        context.tuner_config = cparams.tuner_params;
        let preparams = context.preparams.as_mut().map_or(ptr::null_mut(), |params| &raw mut **params);
        let fields = &mut context.fields;
        fields.do_compress = 1;
        fields.blocksize = cparams.blocksize;
        fields.splitmode = cparams.splitmode;
        fields.typesize = cparams.typesize;
        fields.compcode = codec.compcode;
        fields.compcode_meta = cparams.compcode_meta;
        fields.clevel = codec.clevel;
        *fields.use_dict.get_mut() = cparams.use_dict;
        fields.filters = cparams.filters;
        fields.filter_flags = chunk_header::filter_flags(&cparams.filters);
        fields.filters_meta = cparams.filters_meta;
        fields.prefilter = cparams.prefilter;
        fields.preparams = preparams;
        fields.tuner_id = cparams.tuner_id.max(0);
        fields.codec_params = cparams.codec_params;
        fields.filter_params = cparams.filter_params;
        Ok(context)
    }

    /// A context for decompression.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn for_decompression(dparams: &blosc2_dparams) -> Result<Box<Context>> {
        let nthreads = Environment::read().nthreads_to_decompress().unwrap_or(dparams.nthreads);
        let mut context = Context::new(dparams.schunk, nthreads)?;
        if dparams.postfilter.is_some() {
            // SAFETY: the client vouches for `postparams`, unless it is null.
            let given = unsafe { dparams.postparams.as_ref() }.copied();
            context.postparams = Some(memory::boxed(|| given.unwrap_or_else(callbacks::no_postparams))?);
        }
        let postparams = context.postparams.as_mut().map_or(ptr::null_mut(), |params| &raw mut **params);
        context.fields.postfilter = dparams.postfilter;
        context.fields.postparams = postparams;
        Ok(context)
    }

    /// Hands the context to C.
    pub(crate) fn into_raw(self: Box<Context>) -> *mut blosc2_context {
        Box::into_raw(self).cast()
    }

    /// The context behind a handle.
    ///
    /// # Safety
    ///
    /// `context` is null or comes from [`into_raw`](Self::into_raw), and no other reference to it is in use.
    pub(crate) unsafe fn from_raw<'a>(context: *mut blosc2_context) -> Result<&'a mut Context> {
        // SAFETY: the caller's promise.
        unsafe { handle_mut(context.cast::<Context>()) }
    }

    /// The context behind a handle, for operations that may run at the same time as others that only read it.
    ///
    /// # Safety
    ///
    /// `context` is null or comes from [`into_raw`](Self::into_raw), and no reference for changes is in use.
    pub(crate) unsafe fn shared<'a>(context: *const blosc2_context) -> Result<&'a Context> {
        // SAFETY: the caller's promise.
        unsafe { handle_ref(context.cast::<Context>()) }
    }

    /// The context behind a handle, if it is for compression.
    ///
    /// # Safety
    ///
    /// As for [`from_raw`](Self::from_raw).
    pub(crate) unsafe fn compressing<'a>(context: *mut blosc2_context) -> Result<&'a mut Context> {
        // SAFETY: the caller's promise.
        let this = unsafe { Context::from_raw(context) }?;
        require(this.is_for_compression(), "not a context for compression")?;
        Ok(this)
    }

    /// Whether the last chunk that was decompressed had a dictionary, or what is compressed may get one.
    pub(crate) fn use_dict(&self) -> &AtomicI32 {
        &self.fields.use_dict
    }

    /// The number of threads of the last operation, or for the first one.
    pub(crate) fn nthreads(&self) -> i16 {
        self.fields.nthreads.load(Ordering::Relaxed)
    }

    /// The configuration for the tuner's `init`.
    pub(crate) fn tuner_config(&self) -> *mut c_void {
        self.tuner_config
    }

    /// The parameters as `blosc2_ctx_get_cparams` tells them.
    pub(crate) fn cparams(&self) -> blosc2_cparams {
        let fields = &self.fields;
        blosc2_cparams {
            compcode: fields.compcode.to_le_bytes()[0],
            compcode_meta: fields.compcode_meta,
            clevel: fields.clevel.to_le_bytes()[0],
            use_dict: fields.use_dict.load(Ordering::Relaxed),
            typesize: fields.typesize,
            nthreads: self.nthreads(),
            blocksize: fields.blocksize,
            splitmode: fields.splitmode,
            schunk: fields.schunk.cast(),
            filters: fields.filters,
            filters_meta: fields.filters_meta,
            prefilter: fields.prefilter,
            preparams: fields.preparams,
            tuner_params: self.tuner_config,
            tuner_id: fields.tuner_id,
            instr_codec: CBool::new(self.instrumented),
            codec_params: fields.codec_params,
            filter_params: fields.filter_params,
        }
    }

    /// The parameters as `blosc2_ctx_get_dparams` tells them.
    pub(crate) fn dparams(&self) -> blosc2_dparams {
        blosc2_dparams {
            nthreads: self.nthreads(),
            schunk: self.fields.schunk.cast(),
            postfilter: self.fields.postfilter,
            postparams: self.fields.postparams,
            typesize: self.fields.typesize,
        }
    }

    /// Sets the mask for the next decompression.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn set_maskout(&mut self, mask: Vec<bool>) -> Result<()> {
        self.maskout.set(mask)
    }

    /// Takes that mask, if there is one.
    pub(crate) fn take_maskout(&self) -> Option<Vec<bool>> {
        self.maskout.take()
    }

    /// Whether the context was made for compression; else it decompresses.
    pub(crate) fn is_for_compression(&self) -> bool {
        self.fields.do_compress != 0
    }

    /// What the next compression is to use.
    fn params(&mut self) -> Result<CParams> {
        let typesize = self.typesize.take(self.fields.typesize);
        let blocksize = self.blocksize.take(self.fields.blocksize);
        let fields = &self.fields;
        let invalid = |_| Error::new(ErrorKind::InvalidParam, "negative typesize or blocksize");
        Ok(CParams {
            compcode: fields.compcode,
            compcode_meta: fields.compcode_meta,
            clevel: u8::try_from(fields.clevel).unwrap_or(u8::MAX),
            use_dict: fields.use_dict.load(Ordering::Relaxed) != 0,
            typesize: usize::try_from(typesize).map_err(invalid)?,
            blocksize: usize::try_from(blocksize).map_err(invalid)?,
            splitmode: fields.splitmode,
            filters: fields.filters,
            filters_meta: fields.filters_meta,
            instrumented: self.instrumented,
        })
    }

    /// Whether the next operation is to use other threads than the calling one, or the last one did and it shows.
    fn wants_threads(&self) -> bool {
        self.fields.new_nthreads != 1
            || self.nthreads() != 1
            || self.fields.thread_backend.load(Ordering::Relaxed) != backend::SERIAL
    }

    /// Whether a decompression involves more than this thread and the chunk: other threads, a postfilter or a mask.
    #[inline]
    pub(crate) fn is_more_than_plain(&self) -> bool {
        self.wants_threads() || self.fields.postfilter.is_some() || self.maskout.is_set()
    }

    /// Attaches to the threads that the next operation is to use.
    #[inline]
    fn attach(&self) -> Backend {
        if self.wants_threads() { self.attach_anew() } else { Backend::Serial }
    }

    /// [`attach`](Self::attach) for a context with threads, or that had some.
    #[inline(never)]
    fn attach_anew(&self) -> Backend {
        let nthreads = self.fields.new_nthreads;
        if nthreads != self.nthreads() {
            self.fields.nthreads.store(nthreads.max(1), Ordering::Relaxed);
        }
        let backend = Backend::attach(nthreads, self.last_pool.take());
        let (id, pool) = match &backend {
            Backend::Serial => (backend::SERIAL, None),
            Backend::Pool(pool) => (backend::POOL, Some(Arc::clone(pool))),
            Backend::Callback(_) => (backend::CALLBACK, None),
        };
        let started = if id == backend::SERIAL { 0 } else { nthreads };
        let shown = pool.as_ref().map_or(ptr::null(), |pool| Arc::as_ptr(pool).cast::<c_void>());
        self.fields.thread_backend.store(id, Ordering::Relaxed);
        self.fields.threads_started.store(started, Ordering::Relaxed);
        self.fields.thread_pool.store(shown.cast_mut(), Ordering::Relaxed);
        self.last_pool.put(pool);
        backend
    }

    /// The number of the chunk that callbacks are told.
    fn nchunk(&self) -> i64 {
        let schunk = self.fields.schunk;
        if schunk.is_null() {
            return -1;
        }
        // SAFETY: the client vouches for the super-chunk of its parameters. The field may be changed by other threads
        // meanwhile, in the same way.
        unsafe { SharedNumber::at(&raw mut (*schunk).current_nchunk) }.get()
    }

    /// The prefilter, which is told that the context is `ctx`.
    fn prefilter(&self, ctx: *mut blosc2_context) -> Option<CPrefilter> {
        let function = self.fields.prefilter?;
        // SAFETY: null or our own copy, or what a plugin put there.
        let params = unsafe { self.fields.preparams.as_ref() }.copied();
        let params = params.unwrap_or_else(callbacks::no_preparams);
        let nchunk = self.nchunk();
        Some(CPrefilter { function, params, nchunk: nchunk.into(), ctx })
    }

    /// The postfilter, which is told that the context is `ctx`.
    fn postfilter(&self, ctx: *mut blosc2_context) -> Option<CPostfilter> {
        let function = self.fields.postfilter?;
        // SAFETY: null or our own copy, or what a plugin put there.
        let params = unsafe { self.fields.postparams.as_ref() }.copied();
        let params = params.unwrap_or_else(callbacks::no_postparams);
        let nchunk = self.nchunk();
        Some(CPostfilter { function, params, nchunk: nchunk.into(), ctx })
    }

    /// Shows the buffers of a compression to tuners and plugins; the block size goes back to the request. `src` is null
    /// if there is not one buffer with the data.
    fn note_buffers(&mut self, src: *const u8, nbytes: usize, dest: &mut [u8]) {
        self.fields.src = src;
        self.fields.sourcesize = int(nbytes);
        self.fields.dest = dest.as_mut_ptr();
        self.fields.destsize = int(dest.len());
        let requested = self.blocksize.take(self.fields.blocksize);
        self.blocksize = Sticky::new(requested);
        self.fields.blocksize = requested;
    }

    /// Shows the blocks that a buffer of `nbytes` bytes is about to be cut into: prefilters look at them. Parameters
    /// that are wrong show nothing, since the compression is going to fail.
    fn show_layout(&mut self, nbytes: usize) {
        let Some(params) = self.params().ok().filter(|params| params.check().is_ok()) else { return };
        let layout = Layout::new(&params, nbytes);
        self.blocksize.show(&mut self.fields.blocksize, layout.blocksize);
        self.typesize.show(&mut self.fields.typesize, layout.typesize);
        self.fields.nblocks = int(nbytes.div_ceil(layout.blocksize));
    }

    /// As [`show_layout`](Self::show_layout), for `nblocks` blocks of their own lengths.
    fn show_vl_layout(&mut self, nblocks: usize) {
        let Some(params) = self.params().ok().filter(|params| params.check().is_ok()) else { return };
        self.typesize.show(&mut self.fields.typesize, capped_typesize(params.typesize));
        self.fields.nblocks = int(nblocks);
    }

    /// Shows what a chunk's header tells, as callbacks expect it during a decompression and clients after it.
    #[inline(always)]
    fn note_header(&mut self, header: &ChunkHeader) {
        if self.is_for_compression() {
            return;
        }
        self.typesize.show(&mut self.fields.typesize, header.typesize);
        // Those of variable length are not known yet.
        if !header.is_vl() {
            self.blocksize.show(&mut self.fields.blocksize, header.blocksize);
        }
        let fields = &mut self.fields;
        if fields.filters != header.filters {
            fields.filters = header.filters;
            fields.filter_flags = chunk_header::filter_flags(&header.filters);
        }
        fields.filters_meta = header.filters_meta;
        fields.compcode = match header.codec_format() {
            codec_format::UDCODEC => i32::from(header.compcode),
            format => i32::from(format),
        };
        fields.compcode_meta = header.compcode_meta;
        *fields.use_dict.get_mut() = i32::from(header.has_dict());
        self.instrumented = header.is_instrumented();
    }

    /// Shows what the header of a simple chunk tells, and the buffers if there are several blocks.
    #[inline(always)]
    fn note_simple(&mut self, header: &ChunkHeader, buffers: &Buffers) {
        if header.blocksize < header.nbytes {
            self.note_decompression(header, buffers);
        } else {
            self.note_header(header);
        }
    }

    /// Shows what a chunk's header tells, and the buffers to plugins: where none is at work, this would be a good part
    /// of decompressing a small chunk.
    fn note_decompression(&mut self, header: &ChunkHeader, buffers: &Buffers) {
        self.note_header(header);
        if self.is_for_compression() {
            return;
        }
        let (dest, destsize) = buffers.dest.unwrap_or((ptr::null_mut(), header.nbytes));
        let fields = &mut self.fields;
        (fields.src, fields.sourcesize) = (buffers.src, int(header.nbytes));
        (fields.dest, fields.destsize) = (dest, int(destsize));
        fields.nblocks = int(header.nblocks());
    }
}

/// What a decompression reads and writes.
#[derive(Clone, Copy)]
struct Buffers {
    src: *const u8,
    /// The destination and its size, if there is one for the whole chunk.
    dest: Option<(*mut u8, usize)>,
}

impl Buffers {
    fn new(chunk: &[u8], dest: &mut [u8]) -> Buffers {
        Buffers { src: chunk.as_ptr(), dest: Some((dest.as_mut_ptr(), dest.len())) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        tuner::free(self);
    }
}
