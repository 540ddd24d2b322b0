//! Contexts: the object behind `blosc2_context`.
//!
//! The struct is opaque in the public headers, but released plugins and tuners read and write some of its members at
//! fixed offsets, so [`ContextFields`] carries these, live. An operation takes what it needs out of the context, runs
//! without holding on to it (callbacks may look at the context meanwhile), and records its outcome at the end.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use super::callbacks::{self, CPostfilter, CPrefilter, Host, UserThreads};
use super::context_fields::ContextFields;
use super::environment::Environment;
use super::mem::CBuffer;
use super::ptr::handle_mut;
use super::tuner;
use super::types::{
    CBool, blosc2_context, blosc2_cparams, blosc2_dparams, blosc2_postfilter_params, blosc2_prefilter_params,
    blosc2_schunk,
};
use crate::chunk::params::check_filter_ids;
use crate::chunk::{
    self, CParams, Compressed, Decoding, Encoding, PlainChunk, Source, Threads, Unit, VlChunk,
};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::geometry::Container;
use crate::pool::{self, Executor, Pool};

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
    /// The tuner's configuration, as given.
    tuner_config: *mut c_void,
    preparams: Option<Box<blosc2_prefilter_params>>,
    postparams: Option<Box<blosc2_postfilter_params>>,
    pool: Option<Arc<Pool>>,
    maskout: Option<Vec<bool>>,
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
        self.shown = i32::try_from(effective).unwrap_or(i32::MAX);
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
        Backend::Pool(usable.unwrap_or_else(|| pool::attach(nthreads)))
    }

    /// The threads of this backend for an operation.
    pub(crate) fn threads(&self, nthreads: i16) -> Threads<'_> {
        let executor: Option<&dyn Executor> = match self {
            Backend::Serial => None,
            Backend::Pool(pool) => Some(&**pool),
            Backend::Callback(threads) => Some(threads),
        };
        Threads { executor, nthreads: usize::try_from(nthreads).unwrap_or(1) }
    }
}

impl Context {
    fn new(schunk: *mut c_void, nthreads: i16) -> Box<Context> {
        // SAFETY: every field is an integer, a raw pointer, an array of these or an optional function pointer.
        let mut fields: ContextFields = unsafe { std::mem::zeroed() };
        fields.schunk = schunk.cast();
        fields.nthreads = nthreads;
        fields.new_nthreads = nthreads;
        Box::new(Context {
            fields,
            blocksize: Sticky::new(0),
            typesize: Sticky::new(0),
            instrumented: false,
            tuner_config: ptr::null_mut(),
            preparams: None,
            postparams: None,
            pool: None,
            maskout: None,
        })
    }

    /// A context for compression. The environment may override parameters.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for reserved filter ids; `CodecSupport` if the environment names a registered codec.
    pub(crate) fn for_compression(cparams: &blosc2_cparams) -> Result<Box<Context>> {
        check_filter_ids(&cparams.filters)?;
        let mut cparams = *cparams;
        let mut compcode = i32::from(cparams.compcode);
        Environment::read().apply_to_context(&mut cparams, &mut compcode)?;
        let mut context = Context::new(cparams.schunk, cparams.nthreads);
        context.preparams = cparams.prefilter.map(|_| {
            // SAFETY: the client vouches for `preparams`, unless it is null.
            let given = unsafe { cparams.preparams.as_ref() }.copied();
            Box::new(given.unwrap_or_else(callbacks::no_preparams))
        });
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
        fields.compcode = compcode;
        fields.compcode_meta = cparams.compcode_meta;
        fields.clevel = i32::from(cparams.clevel);
        fields.use_dict = cparams.use_dict;
        fields.filters = cparams.filters;
        fields.filters_meta = cparams.filters_meta;
        fields.prefilter = cparams.prefilter;
        fields.preparams = preparams;
        fields.tuner_id = cparams.tuner_id;
        fields.codec_params = cparams.codec_params;
        fields.filter_params = cparams.filter_params;
        Ok(context)
    }

    /// A context for decompression.
    pub(crate) fn for_decompression(dparams: &blosc2_dparams) -> Box<Context> {
        let nthreads = Environment::read().nthreads().unwrap_or(dparams.nthreads);
        let mut context = Context::new(dparams.schunk, nthreads);
        context.postparams = dparams.postfilter.map(|_| {
            // SAFETY: the client vouches for `postparams`, unless it is null.
            let given = unsafe { dparams.postparams.as_ref() }.copied();
            Box::new(given.unwrap_or_else(callbacks::no_postparams))
        });
        let postparams = context.postparams.as_mut().map_or(ptr::null_mut(), |params| &raw mut **params);
        context.fields.postfilter = dparams.postfilter;
        context.fields.postparams = postparams;
        context
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
            use_dict: fields.use_dict,
            typesize: fields.typesize,
            nthreads: fields.nthreads,
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
            nthreads: self.fields.nthreads,
            schunk: self.fields.schunk.cast(),
            postfilter: self.fields.postfilter,
            postparams: self.fields.postparams,
            typesize: self.fields.typesize,
        }
    }

    /// Sets the mask for the next decompression.
    pub(crate) fn set_maskout(&mut self, mask: Vec<bool>) {
        self.maskout = Some(mask);
    }

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
            use_dict: fields.use_dict != 0,
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
            || self.fields.nthreads != 1
            || self.fields.thread_backend != backend::SERIAL
    }

    /// Attaches to the threads that the next operation is to use.
    fn attach(&mut self) -> Backend {
        let nthreads = self.fields.new_nthreads;
        self.fields.nthreads = nthreads;
        let backend = Backend::attach(nthreads, self.pool.take());
        let (id, pool) = match &backend {
            Backend::Serial => (backend::SERIAL, None),
            Backend::Pool(pool) => (backend::POOL, Some(Arc::clone(pool))),
            Backend::Callback(_) => (backend::CALLBACK, None),
        };
        self.fields.thread_backend = id;
        self.fields.threads_started = if pool.is_some() { nthreads } else { 0 };
        self.fields.thread_pool = pool.as_ref().map_or(ptr::null(), |pool| Arc::as_ptr(pool).cast());
        self.pool = pool;
        backend
    }

    /// The number of the chunk that callbacks are told.
    fn nchunk(&self) -> i64 {
        let schunk = self.fields.schunk;
        if schunk.is_null() {
            return -1;
        }
        // SAFETY: the client vouches for the super-chunk of its parameters. The field may be changed by other threads
        // meanwhile, atomically.
        unsafe { AtomicI64::from_ptr(&raw mut (*schunk).current_nchunk) }.load(Ordering::Relaxed)
    }

    fn prefilter(&mut self) -> Option<CPrefilter> {
        let function = self.fields.prefilter?;
        // SAFETY: null or our own copy, or what a plugin put there.
        let params = unsafe { self.fields.preparams.as_ref() }.copied();
        let params = params.unwrap_or_else(callbacks::no_preparams);
        let nchunk = self.nchunk();
        Some(CPrefilter { function, params, nchunk: nchunk.into(), ctx: (&raw mut *self).cast() })
    }

    fn postfilter(&mut self) -> Option<CPostfilter> {
        let function = self.fields.postfilter?;
        // SAFETY: null or our own copy, or what a plugin put there.
        let params = unsafe { self.fields.postparams.as_ref() }.copied();
        let params = params.unwrap_or_else(callbacks::no_postparams);
        let nchunk = self.nchunk();
        Some(CPostfilter { function, params, nchunk: nchunk.into(), ctx: (&raw mut *self).cast() })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        tuner::free(self);
    }
}

/// Measures a compression for the tuner; does nothing without one.
struct Stopwatch(Option<Instant>);

impl Stopwatch {
    fn start(context: &Context) -> Stopwatch {
        Stopwatch((context.fields.tuner_id > 0).then(Instant::now))
    }

    fn seconds(&self) -> f64 {
        self.0.map_or(0.0, |start| start.elapsed().as_secs_f64())
    }
}

/// The super-chunk of a context, to be asked from any thread.
#[derive(Clone, Copy)]
struct SchunkPtr(*const blosc2_schunk);

// SAFETY: the super-chunk's metalayers do not change while one of its chunks is worked on.
unsafe impl Send for SchunkPtr {}
// SAFETY: as above.
unsafe impl Sync for SchunkPtr {}

impl SchunkPtr {
    fn container(self) -> Container {
        // SAFETY: the client vouches for the super-chunk of its parameters, unless it is null.
        unsafe { callbacks::container(self.0) }
    }
}

/// What a compression needs, taken out of a context.
pub(crate) struct EncodingParts {
    params: CParams,
    backend: Backend,
    nthreads: i16,
    prefilter: Option<CPrefilter>,
    schunk: SchunkPtr,
    host: Host,
}

impl EncodingParts {
    /// What compressing `nbytes` bytes with `context` needs.
    ///
    /// # Safety
    ///
    /// As for [`compress`].
    pub(crate) unsafe fn of(context: *mut blosc2_context, nbytes: usize) -> Result<EncodingParts> {
        // SAFETY: the caller's promise.
        let this = unsafe { Context::from_raw(context) }?;
        let params = this.params()?;
        params.print_info(nbytes);
        let backend = this.attach();
        let prefilter = this.prefilter();
        let (nthreads, schunk) = (this.fields.nthreads, SchunkPtr(this.fields.schunk));
        Ok(EncodingParts { params, backend, nthreads, prefilter, schunk, host: Host(context) })
    }

    /// Sets the number of the chunk that the prefilter is told.
    pub(crate) fn set_nchunk(&self, nchunk: i64) {
        if let Some(prefilter) = &self.prefilter {
            prefilter.nchunk.store(nchunk, Ordering::Relaxed);
        }
    }

    /// Runs `operation`.
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&Encoding<'_>) -> Result<T>) -> Result<T> {
        let container = move || self.schunk.container();
        operation(&Encoding {
            params: &self.params,
            threads: self.backend.threads(self.nthreads),
            prefilter: self.prefilter.as_ref().map(|prefilter| prefilter as &dyn chunk::Prefilter),
            container: Some(&container),
            host: Some(&self.host),
            blosc1_header: false,
        })
    }
}

/// What decompressions need, taken out of a context. They leave the context as it is, so several threads may decompress
/// with one context at the same time, each with its own parts.
pub(crate) struct DecodingParts {
    backend: Backend,
    nthreads: i16,
    postfilter: Option<CPostfilter>,
    schunk: SchunkPtr,
    host: Option<Host>,
}

impl DecodingParts {
    /// What decompressing with `context` needs; without a context, nothing special.
    ///
    /// # Safety
    ///
    /// `context` is null or valid, and no other thread uses it during this call, except to decompress with parts that
    /// were taken out before.
    pub(crate) unsafe fn of(context: *mut blosc2_context) -> DecodingParts {
        // SAFETY: the caller's promise.
        let Ok(this) = (unsafe { Context::from_raw(context) }) else {
            let schunk = SchunkPtr(ptr::null());
            return DecodingParts {
                backend: Backend::Serial,
                nthreads: 1,
                postfilter: None,
                schunk,
                host: None,
            };
        };
        let backend = this.attach();
        let postfilter = this.postfilter();
        let (nthreads, schunk) = (this.fields.nthreads, SchunkPtr(this.fields.schunk));
        DecodingParts { backend, nthreads, postfilter, schunk, host: Some(Host(context)) }
    }

    /// Sets the number of the chunk that the postfilter is told.
    pub(crate) fn set_nchunk(&self, nchunk: i64) {
        if let Some(postfilter) = &self.postfilter {
            postfilter.nchunk.store(nchunk, Ordering::Relaxed);
        }
    }

    /// Whether a postfilter is at work.
    pub(crate) fn has_postfilter(&self) -> bool {
        self.postfilter.is_some()
    }

    /// Runs `operation`.
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&Decoding<'_>) -> Result<T>) -> Result<T> {
        let container = move || self.schunk.container();
        operation(&Decoding {
            threads: self.backend.threads(self.nthreads),
            postfilter: self.postfilter.as_ref().map(|postfilter| postfilter as &dyn chunk::Postfilter),
            source: None,
            container: Some(&container),
            host: self.host.as_ref().map(|host| host as &(dyn std::any::Any + Send + Sync)),
        })
    }
}

/// Runs a compression with everything that it needs, taken out of the context.
///
/// # Safety
///
/// As for [`compress`].
unsafe fn with_encoding<T>(
    context: *mut blosc2_context,
    nbytes: usize,
    operation: impl FnOnce(&Encoding<'_>) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    unsafe { EncodingParts::of(context, nbytes) }?.with(operation)
}

/// Compresses `src` with a context of the application.
///
/// # Safety
///
/// `context` is null or a valid context that no other thread uses.
pub(crate) unsafe fn compress(
    context: *mut blosc2_context,
    src: Source<'_>,
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    ensure(this.is_for_compression(), ErrorKind::InvalidParam, "not a context for compression")?;
    this.note_buffers(src.nbytes(), dest);
    // SAFETY: as above; `this` is not used after this line.
    unsafe { tuner::prepare(context) }?;
    // SAFETY: as above.
    let this = unsafe { Context::from_raw(context) }?;
    let is_generated = matches!(src, Source::Generated(_));
    let missing = is_generated && src.nbytes() > 0 && this.fields.prefilter.is_none();
    ensure(!missing, ErrorKind::NullPointer, "no source and no prefilter")?;
    let start = Stopwatch::start(this);
    // SAFETY: as above.
    let outcome =
        unsafe { with_encoding(context, src.nbytes(), |enc| chunk::compress_with(enc, src, dest)) }?;
    // SAFETY: as above.
    unsafe { finish_compression(context, &outcome, start) }?;
    Ok(outcome.cbytes)
}

/// Compresses variable-length blocks with a context of the application.
///
/// # Safety
///
/// As for [`compress`].
pub(crate) unsafe fn compress_vl(
    context: *mut blosc2_context,
    blocks: &[&[u8]],
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    ensure(this.is_for_compression(), ErrorKind::InvalidParam, "not a context for compression")?;
    let nbytes = blocks.iter().map(|block| block.len()).sum();
    this.note_buffers(nbytes, dest);
    // SAFETY: as above; `this` is not used after this line.
    unsafe { tuner::prepare(context) }?;
    // SAFETY: as above.
    let start = Stopwatch::start(unsafe { Context::from_raw(context) }?);
    // SAFETY: as above.
    let outcome = unsafe { with_encoding(context, nbytes, |enc| chunk::compress_vl(enc, blocks, dest)) }?;
    // SAFETY: as above.
    unsafe { finish_compression(context, &outcome, start) }?;
    Ok(outcome.cbytes)
}

/// Records the outcome of a compression and tells the tuner.
///
/// # Safety
///
/// As for [`compress`].
unsafe fn finish_compression(
    context: *mut blosc2_context,
    outcome: &Compressed,
    start: Stopwatch,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    let size = |value: usize| i32::try_from(value).unwrap_or(i32::MAX);
    let fields = &mut this.fields;
    this.blocksize.show(&mut fields.blocksize, outcome.blocksize);
    this.typesize.show(&mut fields.typesize, outcome.typesize);
    fields.nblocks = size(outcome.nblocks);
    fields.destsize = size(outcome.cbytes);
    if fields.clevel == 0 {
        fields.use_dict = 0;
    }
    // SAFETY: the caller's promise; `this` is not used after this line.
    unsafe { tuner::update(context, start.seconds()) }
}

impl Context {
    /// Shows the buffers of a compression to tuners and plugins; the block size goes back to the request.
    fn note_buffers(&mut self, nbytes: usize, dest: &mut [u8]) {
        let size = |value: usize| i32::try_from(value).unwrap_or(i32::MAX);
        self.fields.sourcesize = size(nbytes);
        self.fields.dest = dest.as_mut_ptr();
        self.fields.destsize = size(dest.len());
        let requested = self.blocksize.take(self.fields.blocksize);
        self.blocksize = Sticky::new(requested);
        self.fields.blocksize = requested;
    }

    /// Records what a decompression learned from a chunk's header.
    #[inline(always)]
    fn note_header(&mut self, header: &ChunkHeader) {
        if self.is_for_compression() {
            return;
        }
        self.typesize.show(&mut self.fields.typesize, header.typesize);
        self.blocksize.show(&mut self.fields.blocksize, header.blocksize);
        let fields = &mut self.fields;
        fields.filter_flags = header.flags & 0x0f;
        fields.filters = header.filters;
        fields.filters_meta = header.filters_meta;
        fields.compcode = match header.codec_format() {
            crate::format::consts::codec_format::UDCODEC => i32::from(header.compcode),
            format => i32::from(format),
        };
        fields.compcode_meta = header.compcode_meta;
        fields.use_dict = i32::from(header.has_dict());
    }
}

/// Runs a decompression with everything that it needs, taken out of the context.
///
/// `threads` tells whether other threads may take part.
///
/// # Safety
///
/// As for [`compress`].
#[inline]
unsafe fn with_decoding<T>(
    context: *mut blosc2_context,
    chunk: &[u8],
    threads: bool,
    operation: impl FnOnce(&Decoding<'_>, &ChunkHeader) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    let mut header = ChunkHeader::EMPTY;
    header.read_from(chunk)?;
    let is_simple =
        !header.is_lazy() && this.fields.postfilter.is_none() && !(threads && this.wants_threads());
    let result = if is_simple {
        let schunk = SchunkPtr(this.fields.schunk);
        let container = move || schunk.container();
        let host = Host(context);
        let dec = Decoding { container: Some(&container), host: Some(&host), ..Decoding::default() };
        operation(&dec, &header)?
    } else {
        // SAFETY: the caller's promise; `this` is not used after this line.
        unsafe { with_full_decoding(context, &header, chunk, threads, operation) }?
    };
    // SAFETY: the caller's promise.
    unsafe { Context::from_raw(context) }?.note_header(&header);
    Ok(result)
}

/// [`with_decoding`] for a chunk that is lazy, and contexts with threads or a postfilter.
///
/// # Safety
///
/// As for [`compress`].
#[inline(never)]
unsafe fn with_full_decoding<T>(
    context: *mut blosc2_context,
    header: &ChunkHeader,
    chunk: &[u8],
    threads: bool,
    operation: impl FnOnce(&Decoding<'_>, &ChunkHeader) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    let backend = if threads { this.attach() } else { Backend::Serial };
    // SAFETY: the client vouches for the super-chunk of its parameters.
    let reader =
        header.is_lazy().then(|| unsafe { callbacks::lazy_reader(this.fields.schunk) }).transpose()?;
    let source = reader.as_deref().map(|schunk| callbacks::lazy_source(schunk, chunk)).transpose()?;
    let postfilter = this.postfilter();
    let schunk = SchunkPtr(this.fields.schunk);
    let container = move || schunk.container();
    let host = Host(context);
    let dec = Decoding {
        threads: backend.threads(this.fields.nthreads),
        postfilter: postfilter.as_ref().map(|postfilter| postfilter as &dyn chunk::Postfilter),
        source: source.as_ref().map(|source| source as &dyn chunk::source::BlockSource),
        container: Some(&container),
        host: Some(&host),
    };
    operation(&dec, header)
}

/// Decompresses `chunk` with a context of the application; a pending mask is used up.
///
/// # Safety
///
/// As for [`compress`].
pub(crate) unsafe fn decompress(
    context: *mut blosc2_context,
    chunk: &[u8],
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    ensure(!this.is_for_compression(), ErrorKind::InvalidParam, "not a context for decompression")?;
    if this.maskout.is_none() && !this.wants_threads() && this.fields.postfilter.is_none() {
        if let Some(plain) = PlainChunk::open(chunk) {
            let nbytes = plain.decompress(dest)?;
            this.note_header(plain.header());
            return Ok(nbytes);
        }
    }
    let mask = this.maskout.take();
    // SAFETY: as above.
    unsafe {
        with_decoding(context, chunk, true, |dec, header| {
            chunk::decompress_parsed(dec, header, chunk, mask.as_deref(), dest)
        })
    }
}

/// Decompresses items of `chunk` with a context of the application, of either kind.
///
/// # Safety
///
/// As for [`compress`].
#[inline(always)] // for one unit and one caller each
pub(crate) unsafe fn getitem(
    context: *mut blosc2_context,
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    if this.fields.postfilter.is_none() {
        if let Some(plain) = PlainChunk::open(chunk) {
            let nbytes = plain.getitem(unit, start, count, dest)?;
            this.note_header(plain.header());
            return Ok(nbytes);
        }
    }
    // SAFETY: the caller's promise; `this` is not used after this line.
    unsafe { getitem_coded(context, chunk, unit, start, count, dest) }
}

/// The general case of [`getitem`].
///
/// # Safety
///
/// As for [`compress`].
#[inline(never)]
unsafe fn getitem_coded(
    context: *mut blosc2_context,
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    unsafe {
        with_decoding(context, chunk, false, |dec, header| {
            chunk::getitem_parsed(dec, header, chunk, unit, start, count, dest)
        })
    }
}

/// Opens the chunk of variable-length blocks `chunk` and runs `operation` on it.
///
/// # Safety
///
/// As for [`compress`].
unsafe fn with_vl<T>(
    context: *mut blosc2_context,
    chunk: &[u8],
    operation: impl FnOnce(&VlChunk<'_>) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    ensure(!this.is_for_compression(), ErrorKind::InvalidParam, "not a context for decompression")?;
    // SAFETY: as above.
    unsafe {
        with_decoding(context, chunk, true, |dec, header| operation(&chunk::open_vl(dec, header, chunk)?))
    }
}

/// Decompresses all blocks of a chunk of variable-length blocks, at most `max`, into memory of their own.
///
/// # Safety
///
/// As for [`compress`].
pub(crate) unsafe fn decompress_vl(
    context: *mut blosc2_context,
    chunk: &[u8],
    max: usize,
) -> Result<Vec<CBuffer>> {
    let operation = |vl: &VlChunk<'_>| {
        ensure(vl.nblocks() <= max, ErrorKind::InvalidParam, "more blocks than expected")?;
        let mut buffers =
            (0..vl.nblocks()).map(|i| CBuffer::zeroed(vl.block_len(i)?)).collect::<Result<Vec<_>>>()?;
        let mut dests: Vec<&mut [u8]> = buffers.iter_mut().map(|buffer| &mut **buffer).collect();
        vl.decode_each(&mut dests)?;
        Ok(buffers)
    };
    // SAFETY: the caller's promise.
    unsafe { with_vl(context, chunk, operation) }
}

/// Decompresses one block of a chunk of variable-length blocks.
///
/// # Safety
///
/// As for [`compress`].
pub(crate) unsafe fn decompress_vl_block(
    context: *mut blosc2_context,
    chunk: &[u8],
    nblock: i32,
) -> Result<CBuffer> {
    let operation = |vl: &VlChunk<'_>| {
        let nblock = usize::try_from(nblock).ok().filter(|&nblock| nblock < vl.nblocks());
        let nblock = nblock.ok_or(Error::new(ErrorKind::InvalidParam, "no such block"))?;
        let mut buffer = CBuffer::zeroed(vl.block_len(nblock)?)?;
        vl.decode_block(nblock, &mut buffer)?;
        Ok(buffer)
    };
    // SAFETY: the caller's promise.
    unsafe { with_vl(context, chunk, operation) }
}

impl Context {
    /// The parameters of a context that was only made to read them.
    pub(crate) fn into_params(mut self: Box<Context>) -> Result<CParams> {
        self.params()
    }
}
