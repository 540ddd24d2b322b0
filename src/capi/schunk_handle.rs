//! The object behind `blosc2_schunk`: the struct that C sees, and the super-chunk.
//!
//! Clients read the fields of `blosc2_schunk` at any time and assign some of them (`cctx`, `dctx`, the compression
//! parameters, `chunksize` before there are chunks, `current_nchunk`). So every operation takes over what clients may
//! have set, works on the [`Schunk`], and shows its new state in the struct.
//!
//! Any number of threads may read through one handle: the super-chunk is behind a lock that readers share, and each takes
//! what it needs out of the decompression context. Callbacks may read super-chunks, also
//! the one that is being read, or compressed for. Where an operation has to keep callbacks out of the super-chunk that it
//! changes, they get an error instead of waiting for ever.

mod layers;
mod spare;

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::chunk::{blosc2_create_cctx, blosc2_create_dctx, blosc2_free_ctx};
use super::context::{Context, DecodingParts};
use super::types::{CBool, blosc2_cparams, blosc2_dparams, blosc2_schunk, blosc2_storage};
use super::{callbacks, io, io_adapter, storage};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::frame_header::FrameParams;
use crate::format::geometry::BlockGeometry;
use crate::format::metalayers::Metalayer;
use crate::format::nd_meta;
use crate::schunk::{Reading, Schunk};
use layers::{free_layers, show_layers};

/// How long a callback waits for a super-chunk: one that is not in use is there at once, and one that the operation
/// changes which called back will not be there before it returns.
const PATIENCE: Duration = Duration::from_millis(200);

/// What `blosc2_schunk.frame` points to: the members at the front of the C library's struct.
#[repr(C)]
struct FrameFields {
    urlpath: *mut c_char,
    cframe: *mut u8,
    avoid_cframe_free: CBool,
    coffsets: *mut u8,
    coffsets_needs_free: CBool,
    len: i64,
    maxlen: i64,
    trailer_len: u32,
    sframe: CBool,
    schunk: *mut blosc2_schunk,
    file_offset: i64,
    rest: [u8; 96],
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<FrameFields>() == 176);
    assert!(std::mem::offset_of!(FrameFields, len) == 40);
    assert!(std::mem::offset_of!(FrameFields, trailer_len) == 56);
    assert!(std::mem::offset_of!(FrameFields, file_offset) == 72);
};

/// A super-chunk and what C sees of it.
#[repr(C)]
pub(crate) struct SchunkHandle {
    abi: UnsafeCell<blosc2_schunk>,
    frame: UnsafeCell<FrameFields>,
    /// Replaced only when a view gets chunks of its own, while no other thread uses the handle.
    inner: UnsafeCell<Arc<RwLock<Schunk>>>,
    /// The metalayers of a view, which shares the super-chunk with another handle.
    layers: Mutex<Option<Arc<Vec<Metalayer>>>>,
    /// The metalayers that the struct shows. Guards the parts of `abi` that readers may have to bring up to date, and the
    /// frame's fields.
    shown: Mutex<Arc<Vec<Metalayer>>>,
    /// The state of the metalayers that is shown, plus 1; 0 before the first time.
    shown_tick: AtomicU64,
    /// Whether the client releases the memory of a frame in memory, as it said; otherwise whoever made it does.
    client_frees: AtomicBool,
    /// Whether a callback of the present operation waited for the super-chunk in vain.
    waited: AtomicBool,
}

const _: () = assert!(std::mem::offset_of!(SchunkHandle, abi) == 0);

impl SchunkHandle {
    /// The handle behind `schunk`.
    ///
    /// # Safety
    ///
    /// `schunk` is null or comes from this module and was not released.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for null.
    pub(crate) unsafe fn from_ptr<'a>(schunk: *mut blosc2_schunk) -> Result<&'a SchunkHandle> {
        // SAFETY: the caller's promise; the struct is the first field of a handle.
        let handle = unsafe { schunk.cast::<SchunkHandle>().as_ref() };
        handle.ok_or(Error::new(ErrorKind::InvalidParam, "no super-chunk"))
    }

    fn shared(&self) -> &Arc<RwLock<Schunk>> {
        // SAFETY: replaced only while no other thread uses the handle, and no reference is held then.
        unsafe { &*self.inner.get() }
    }

    /// Another handle of the super-chunk: a view, with metalayers of its own.
    pub(crate) fn view(&self, layers: Vec<Metalayer>) -> Result<*mut blosc2_schunk> {
        // SAFETY: clients change the storage only while no other thread uses the handle; it has its parts.
        let own = unsafe { super::ptr::handle_ref((*self.abi()).storage) }?;
        let given = blosc2_storage {
            contiguous: CBool::FALSE,
            urlpath: ptr::null_mut(),
            io: ptr::null_mut(),
            ..*own
        };
        let params = self.params();
        // SAFETY: the parameters are those of this handle.
        let raw = unsafe { Self::assemble(&given, |_| Ok(Schunk::in_memory(params))) }?;
        // SAFETY: just made; nobody else knows it.
        unsafe {
            let view = &*raw.cast::<SchunkHandle>();
            *view.inner.get() = Arc::clone(self.shared());
            *view.layers.lock() = Some(Arc::new(layers));
            view.shown_tick.store(0, Ordering::Relaxed);
            (*raw).view = CBool::TRUE;
            if let Err(error) = view.show(&view.shared().read_recursive()) {
                Self::release(raw.cast());
                return Err(error);
            }
        }
        Ok(raw)
    }

    /// The fixed metalayers: those of the view, if this is one.
    pub(crate) fn metalayers(&self) -> Result<Arc<Vec<Metalayer>>> {
        let own = self.layers.lock().clone();
        own.map_or_else(|| self.look(|schunk| Ok(schunk.metalayers())), Ok)
    }

    /// What copies of a view are made of: its chunks with its own metalayers. `None` unless this is a view.
    pub(crate) fn as_own(&self) -> Result<Option<Schunk>> {
        let is_view = self.layers.lock().is_some();
        if is_view { self.detached().map(Some) } else { Ok(None) }
    }

    /// The content as a super-chunk of its own, in memory.
    pub(crate) fn detached(&self) -> Result<Schunk> {
        let layers = self.layers.lock().clone();
        self.look(|schunk| {
            let layers = layers.unwrap_or_else(|| schunk.metalayers());
            schunk.to_memory_with(layers.to_vec())
        })
    }

    /// Gives a view chunks of its own.
    ///
    /// # Safety
    ///
    /// No other thread uses the handle.
    pub(crate) unsafe fn detach(&self) -> Result<()> {
        let own = self.detached()?;
        // SAFETY: the caller's promise; references to the old content live within calls.
        unsafe {
            *self.inner.get() = Arc::new(RwLock::new(own));
            (*self.abi()).frame = ptr::null_mut();
        }
        *self.layers.lock() = None;
        self.shown_tick.store(0, Ordering::Relaxed);
        self.show(&self.shared().read_recursive())
    }

    /// Whether both handles are of one super-chunk.
    pub(crate) fn shares_with(&self, other: &SchunkHandle) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }

    /// The struct, for field accesses through the pointer, and for functions that take a super-chunk: it points to the
    /// whole handle, not to its first field only.
    pub(crate) fn abi(&self) -> *mut blosc2_schunk {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Makes a handle; `make` gets it, with its contexts, and gives the super-chunk.
    ///
    /// # Safety
    ///
    /// The pointers in `given` are null or valid.
    unsafe fn assemble(
        given: &blosc2_storage,
        make: impl FnOnce(&SchunkHandle) -> Result<Schunk>,
    ) -> Result<*mut blosc2_schunk> {
        // SAFETY: the caller's promise.
        let own = unsafe { storage::copy_of(given) }?;
        let Some(raw) = Self::allocate(own) else {
            // SAFETY: just made; nobody else knows it.
            unsafe { storage::free(own) };
            return Err(Error::new(ErrorKind::MemoryAlloc, "no memory for a super-chunk"));
        };
        // SAFETY: just made; nobody else knows it.
        let handle = unsafe { &*raw };
        let finish = || {
            handle.create_contexts()?;
            let made = make(handle)?;
            let mut inner = handle.shared().write();
            *inner = made;
            handle.show(&inner)
        };
        match finish() {
            Ok(()) => Ok(raw.cast()),
            Err(error) => {
                // SAFETY: made above; nobody else knows it.
                unsafe { Self::release(raw) };
                Err(error)
            }
        }
    }

    /// Memory for a handle, all zeros except for what has no such value. It is filled in place: the struct is large.
    fn allocate(storage: *mut blosc2_storage) -> Option<*mut SchunkHandle> {
        let inner = Arc::new(RwLock::new(Schunk::in_memory(FrameParams::default())));
        let raw = spare::take()?;
        // SAFETY: `raw` is memory for a handle. `abi` and `frame` consist of integers, raw pointers and flags, for which
        // zeros are a value; the other fields are written here.
        unsafe {
            (&raw mut (*raw).inner).write(UnsafeCell::new(inner));
            (&raw mut (*raw).layers).write(Mutex::new(None));
            (&raw mut (*raw).shown).write(Mutex::default());
            (&raw mut (*raw).client_frees).write(AtomicBool::new(false));
            (&raw mut (*raw).waited).write(AtomicBool::new(false));
            let abi = (*raw).abi.get();
            (*abi).storage = storage;
            (*abi).chunksize = -1;
        }
        Some(raw)
    }

    /// Fills in the parameters and contexts that the storage asks for.
    fn create_contexts(&self) -> Result<()> {
        let abi = self.abi();
        let no_context = Error::new(ErrorKind::NullPointer, "no context for these parameters");
        // SAFETY: the handle is being made: the storage and its parts were allocated just now and nobody else has
        // access to them or the struct.
        unsafe {
            let cparams = &mut *(*(*abi).storage).cparams;
            let dparams = &mut *(*(*abi).storage).dparams;
            if std::env::var_os("BTUNE_TRADEOFF").is_some() {
                cparams.tuner_id = BTUNE;
            }
            (*abi).compcode = cparams.compcode;
            (*abi).compcode_meta = cparams.compcode_meta;
            (*abi).clevel = cparams.clevel;
            (*abi).splitmode = cparams.splitmode.to_le_bytes()[0];
            (*abi).typesize = cparams.typesize;
            (*abi).blocksize = cparams.blocksize;
            (*abi).use_dict = cparams.use_dict.to_le_bytes()[0];
            (*abi).filters = cparams.filters;
            (*abi).filters_meta = cparams.filters_meta;
            (*abi).tuner_params = cparams.tuner_params;
            (*abi).tuner_id = cparams.tuner_id;
            if cparams.tuner_id == BTUNE {
                cparams.use_dict = 0;
            }
            cparams.schunk = abi.cast();
            dparams.schunk = abi.cast();
            (*abi).cctx = blosc2_create_cctx(*cparams);
            (*abi).dctx = blosc2_create_dctx(*dparams);
            ensure(!(*abi).cctx.is_null() && !(*abi).dctx.is_null(), no_context.kind(), no_context.what())
        }
    }

    /// A new super-chunk.
    ///
    /// # Safety
    ///
    /// The pointers in `given` are null or valid.
    pub(crate) unsafe fn create(given: &blosc2_storage) -> Result<*mut blosc2_schunk> {
        let make = |handle: &SchunkHandle| {
            let params = handle.params();
            let contiguous = given.contiguous.get();
            if given.urlpath.is_null() {
                return if contiguous {
                    crate::frame::Frame::create_in_memory(params).map(Schunk::over)
                } else {
                    Ok(Schunk::in_memory(params))
                };
            }
            // SAFETY: the caller's promise.
            let path = storage::path_of(unsafe { CStr::from_ptr(given.urlpath) });
            ensure(!path.as_os_str().is_empty(), ErrorKind::FileOpen, "empty path")?;
            // SAFETY: the storage of a handle has its parts.
            let options = io_adapter::options(unsafe { &*(*(*handle.abi()).storage).io })?;
            let frame = if contiguous {
                crate::frame::Frame::create_file(&path, params, &options)
            } else {
                crate::frame::Frame::create_dir(&path, params, &options)
            };
            frame.map(Schunk::over)
        };
        // SAFETY: the caller's promise.
        unsafe { Self::assemble(given, make) }
    }

    /// A handle for `schunk`, which was opened; its parameters are those that are recorded. `given` tells the place.
    ///
    /// # Safety
    ///
    /// The pointers in `given` are null or valid; parameters in it are ignored.
    pub(crate) unsafe fn adopt(schunk: Schunk, given: &blosc2_storage) -> Result<*mut blosc2_schunk> {
        let recorded = schunk.params();
        // SAFETY: the caller's promise.
        unsafe { Self::adopt_with(schunk, recorded, given) }
    }

    /// As [`adopt`](Self::adopt), with contexts for `params`.
    ///
    /// # Safety
    ///
    /// As for [`adopt`](Self::adopt).
    pub(crate) unsafe fn adopt_with(
        schunk: Schunk,
        params: FrameParams,
        given: &blosc2_storage,
    ) -> Result<*mut blosc2_schunk> {
        let blocksize = schunk.params_ref().blocksize;
        let nthreads = super::blosc1::blosc2_get_nthreads();
        let mut cparams = blosc2_cparams {
            compcode: params.compcode,
            compcode_meta: params.compcode_meta,
            clevel: params.clevel,
            use_dict: c_int::from(params.use_dict),
            typesize: params.typesize,
            nthreads,
            blocksize: params.blocksize,
            splitmode: i32::from(params.splitmode),
            filters: params.filters,
            filters_meta: params.filters_meta,
            ..blosc2_cparams::DEFAULTS
        };
        let mut dparams = blosc2_dparams { nthreads, typesize: 0, ..blosc2_dparams::DEFAULTS };
        let given = blosc2_storage { cparams: &raw mut cparams, dparams: &raw mut dparams, ..*given };
        let urlpath = given.urlpath;
        // SAFETY: the caller's promise; the parameters live until the end of the call.
        let raw = unsafe { Self::assemble(&given, |_| Ok(schunk)) }?;
        // SAFETY: the handle was just made; nobody else knows it.
        unsafe { (*raw).blocksize = blocksize };
        if !urlpath.is_null() {
            // An opened super-chunk shows the path as it was given.
            // SAFETY: the caller's promise.
            let whole = super::mem::c_string(unsafe { CStr::from_ptr(urlpath) });
            if let Ok(whole) = whole {
                // SAFETY: the handle was just made; its storage has a path of C's allocator.
                unsafe {
                    let storage = (*raw).storage;
                    libc::free((*storage).urlpath.cast::<c_void>());
                    (*storage).urlpath = whole;
                }
            }
        }
        Ok(raw)
    }

    /// Releases a handle with all that belongs to it.
    ///
    /// # Safety
    ///
    /// `raw` is a handle of this module that nobody uses any more.
    pub(crate) unsafe fn release(raw: *mut SchunkHandle) {
        // SAFETY: the caller gives the handle away.
        let handle = unsafe { &*raw };
        let abi = handle.abi();
        if handle.client_frees.load(Ordering::Relaxed) {
            if let Some(buffer) = handle.shared().write().frame_mut().and_then(|frame| frame.buffer_mut()) {
                // SAFETY: the client said that it releases the memory, after this handle.
                unsafe { buffer.set_borrowed(true) };
            }
        }
        // SAFETY: whatever the client put in these fields is now the library's, by the contract of the struct; nobody
        // else uses the handle.
        unsafe {
            blosc2_free_ctx((*abi).cctx);
            blosc2_free_ctx((*abi).dctx);
            libc::free((*abi).blockshape.cast::<c_void>());
            free_layers(&mut (*abi).metalayers);
            free_layers(&mut (*abi).vlmetalayers);
            storage::free((*abi).storage);
            let urlpath = (*handle.frame.get()).urlpath;
            if !urlpath.is_null() {
                drop(CString::from_raw(urlpath));
            }
            ptr::drop_in_place(raw);
            spare::give_back(raw);
        }
    }

    /// The parameters for the header of a frame.
    pub(crate) fn params(&self) -> FrameParams {
        let abi = self.abi();
        // SAFETY: clients assign these fields only while no other thread uses the handle.
        unsafe {
            FrameParams {
                typesize: (*abi).typesize,
                blocksize: (*abi).blocksize,
                compcode: (*abi).compcode,
                compcode_meta: (*abi).compcode_meta,
                clevel: (*abi).clevel,
                splitmode: (*abi).splitmode,
                use_dict: (*abi).use_dict != 0,
                filters: (*abi).filters,
                filters_meta: (*abi).filters_meta,
                nthreads_c: Context::shared((*abi).cctx).map_or(1, Context::nthreads),
                nthreads_d: Context::shared((*abi).dctx).map_or(1, Context::nthreads),
            }
        }
    }

    /// Bytes per item, as the client sees or set it.
    pub(crate) fn typesize(&self) -> i32 {
        // SAFETY: see `params`.
        unsafe { (&raw const (*self.abi()).typesize).read() }
    }

    /// The block shape of the array in the super-chunk.
    pub(crate) fn geometry(&self) -> Option<BlockGeometry> {
        let layers = Arc::clone(&self.shown.lock());
        nd_meta::block_geometry(&layers)
    }

    /// Sets the number of the chunk that is worked on.
    pub(crate) fn set_current(&self, nchunk: i64) {
        // SAFETY: aligned, as long-lived as the handle, and accessed atomically by the library.
        unsafe { AtomicI64::from_ptr(&raw mut (*self.abi()).current_nchunk) }
            .store(nchunk, Ordering::Relaxed);
    }

    /// The super-chunk, for reading.
    ///
    /// # Errors
    ///
    /// `Failure` for a callback of an operation that is changing the super-chunk: waiting for that would be for ever.
    pub(crate) fn inner(&self) -> Result<RwLockReadGuard<'_, Schunk>> {
        let inner = self.read_lock()?;
        if inner.params_ref().typesize == self.typesize() {
            return Ok(inner);
        }
        drop(inner);
        // If others are reading, the new typesize has to wait: it was set at a bad time.
        if let Some(mut inner) = self.shared().try_write() {
            let typesize = self.typesize();
            let params = FrameParams { typesize, ..inner.params() };
            inner.set_params(params);
        }
        self.read_lock()
    }

    fn read_lock(&self) -> Result<RwLockReadGuard<'_, Schunk>> {
        if !callbacks::inside_callback() {
            self.waited.store(false, Ordering::Relaxed);
            return Ok(self.shared().read_recursive());
        }
        self.shared().try_read_recursive_for(self.patience()).ok_or_else(|| self.busy())
    }

    fn write_lock(&self) -> Result<RwLockWriteGuard<'_, Schunk>> {
        if !callbacks::inside_callback() {
            self.waited.store(false, Ordering::Relaxed);
            return Ok(self.shared().write());
        }
        self.shared().try_write_for(self.patience()).ok_or_else(|| self.busy())
    }

    /// How long a callback waits: an operation may call back for each of very many blocks, and one wait is enough.
    fn patience(&self) -> Duration {
        if self.waited.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE }
    }

    fn busy(&self) -> Error {
        self.waited.store(true, Ordering::Relaxed);
        Error::new(ErrorKind::Failure, "a callback cannot use what the operation is changing")
    }

    /// What decompression with the handle's context needs.
    pub(crate) fn decoding(&self) -> DecodingParts {
        // SAFETY: the context is replaced only while no other thread uses the handle, and threads that read through it
        // use it in no other way.
        unsafe { DecodingParts::of((*self.abi()).dctx) }
    }

    /// Reads with the handle's context.
    pub(crate) fn read<T>(&self, operation: impl FnOnce(&Schunk, &Reading<'_>) -> Result<T>) -> Result<T> {
        let parts = self.decoding();
        let visit = |nchunk: usize| {
            let nchunk = i64::try_from(nchunk).unwrap_or(i64::MAX);
            self.set_current(nchunk);
            parts.set_nchunk(nchunk);
        };
        self.look(|schunk| parts.with(|dec| operation(schunk, &Reading { dec: *dec, visit: Some(&visit) })))
    }

    /// Reads with the handle's context, chunks in any order and at the same time: unless there is a postfilter, which is
    /// told the number of each, nobody is told.
    pub(crate) fn read_in_any_order<T>(
        &self,
        operation: impl FnOnce(&Schunk, &Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        let parts = self.decoding();
        let visit = |nchunk: usize| {
            let nchunk = i64::try_from(nchunk).unwrap_or(i64::MAX);
            self.set_current(nchunk);
            parts.set_nchunk(nchunk);
        };
        let visit = parts.has_postfilter().then_some(&visit as &dyn Fn(usize));
        self.look(|schunk| parts.with(|dec| operation(schunk, &Reading { dec: *dec, visit })))
    }

    /// Reads without decompressing.
    pub(crate) fn look<T>(&self, operation: impl FnOnce(&Schunk) -> Result<T>) -> Result<T> {
        let inner = self.inner()?;
        let result = operation(&inner);
        if inner.frame().is_some_and(crate::frame::Frame::is_on_disk) {
            // SAFETY: aligned, as long-lived as the handle, and accessed atomically by the library.
            let shown = unsafe { AtomicI64::from_ptr(&raw mut (*self.abi()).change_tick) };
            if i64::try_from(inner.change_tick()) != Ok(shown.load(Ordering::Relaxed)) {
                self.catch_up(&inner);
            }
        }
        result
    }

    /// Changes the super-chunk.
    pub(crate) fn change<T>(&self, operation: impl FnOnce(&mut Schunk) -> Result<T>) -> Result<T> {
        let mut inner = self.write_lock()?;
        self.take_over(&mut inner)?;
        let result = operation(&mut inner);
        if self.shows_layers_of(&inner) {
            // SAFETY: nobody else has the super-chunk, and readers come here only while they have it.
            unsafe { self.show_counts(&inner) };
        } else {
            self.catch_up(&inner);
        }
        result
    }

    /// Shows the state of the super-chunk in the struct after an operation, whose outcome must not depend on it: without
    /// memory, metalayers are shown as they were, until the next operation.
    fn catch_up(&self, schunk: &Schunk) {
        let _ = self.show(schunk);
    }

    /// Takes over what the client assigned.
    fn take_over(&self, schunk: &mut Schunk) -> Result<()> {
        let params = self.params();
        // Nobody could open a frame with another typesize.
        let fine = params.typesize > 0 || schunk.frame().is_none();
        ensure(fine, ErrorKind::InvalidParam, "typesize out of range")?;
        if *schunk.params_ref() != params {
            schunk.set_params(params);
        }
        // SAFETY: the field is assigned only while no other thread uses the handle.
        let chunksize = unsafe { (*self.abi()).chunksize }.max(-1);
        if schunk.nchunks() == 0 && chunksize != schunk.chunksize() {
            schunk.preset_chunksize(chunksize)?;
        }
        Ok(())
    }

    /// Whether the struct shows the metalayers of `schunk` as they are.
    fn shows_layers_of(&self, schunk: &Schunk) -> bool {
        self.shown_tick.load(Ordering::Relaxed) == schunk.change_tick() + 1
    }

    /// Shows the state of the super-chunk in the struct.
    fn show(&self, schunk: &Schunk) -> Result<()> {
        let mut shown = self.shown.lock();
        let abi = self.abi();
        // SAFETY: `shown` is locked, which guards the arrays of metalayers too.
        unsafe {
            self.show_counts(schunk);
            if !self.shows_layers_of(schunk) {
                *shown = self.layers.lock().clone().unwrap_or_else(|| schunk.metalayers());
                show_layers(&mut (*abi).metalayers, &shown)?;
                (*abi).nmetalayers = u16::try_from(shown.len()).unwrap_or(u16::MAX);
                let vlmetalayers = schunk.vlmetalayers();
                show_layers(&mut (*abi).vlmetalayers, &vlmetalayers)?;
                (*abi).nvlmetalayers = i16::try_from(vlmetalayers.len()).unwrap_or(i16::MAX);
                self.shown_tick.store(schunk.change_tick() + 1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Shows numbers and places.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of `shown`, or nobody else has the super-chunk.
    unsafe fn show_counts(&self, schunk: &Schunk) {
        let abi = self.abi();
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        // SAFETY: the fields that threads compare are accessed atomically by the library, the others by one thread at a
        // time, by the caller's promise. The pointers to chunks are those of the super-chunk, valid until its next change.
        unsafe {
            let store = |field: *mut i64, value| AtomicI64::from_ptr(field).store(value, Ordering::Relaxed);
            store(&raw mut (*abi).nchunks, number(schunk.nchunks() as u64)); // widening
            store(&raw mut (*abi).nbytes, number(schunk.nbytes()));
            store(&raw mut (*abi).cbytes, number(schunk.cbytes()));
            store(&raw mut (*abi).change_tick, number(schunk.change_tick()));
            (*abi).chunksize = schunk.chunksize();
            (*abi).flags2 = u8::from(schunk.has_vl_blocks());
            (*abi).version = 0;
            if let Some((pointers, room)) = schunk.pointers() {
                let data = pointers.as_ptr().cast_mut().cast::<*mut u8>();
                (*abi).data = if room == 0 { ptr::null_mut() } else { data };
                (*abi).data_len = room * size_of::<*mut u8>();
            }
            self.show_frame(schunk);
        }
    }

    /// Shows the frame.
    ///
    /// # Safety
    ///
    /// As for [`show_counts`](Self::show_counts).
    unsafe fn show_frame(&self, schunk: &Schunk) {
        let Some(frame) = schunk.frame() else { return };
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let fields = self.frame.get();
        let abi = self.abi();
        // SAFETY: the caller's promise; the path lives as long as the handle.
        unsafe {
            if (*fields).urlpath.is_null() {
                let path = frame.path().and_then(io_adapter::c_path);
                (*fields).urlpath = path.map_or(ptr::null_mut(), CString::into_raw);
            }
            let client_frees = self.client_frees.load(Ordering::Relaxed);
            let borrowed = frame.buffer().is_some_and(|bytes| bytes.is_borrowed());
            (*fields).cframe = frame.buffer().map_or(ptr::null_mut(), |bytes| bytes.as_ptr().cast_mut());
            (*fields).avoid_cframe_free = (client_frees || borrowed).into();
            (*fields).len = number(frame.frame_len());
            (*fields).trailer_len = u32::try_from(frame.trailer_len()).unwrap_or(u32::MAX);
            (*fields).sframe = frame.is_sparse().into();
            (*fields).schunk = abi;
            (*fields).file_offset = number(frame.file_offset());
            (*abi).frame = fields.cast();
        }
    }

    /// Says whether the client releases the buffer of a frame in memory.
    pub(crate) fn avoid_cframe_free(&self, avoid: bool) {
        let Ok(mut inner) = self.write_lock() else { return };
        let Some(buffer) = inner.frame_mut().and_then(|frame| frame.buffer_mut()) else { return };
        // What is borrowed is the client's anyway; the copy that the first change makes is not.
        self.client_frees.store(avoid && !buffer.is_borrowed(), Ordering::Relaxed);
        if !avoid && buffer.is_borrowed() {
            // SAFETY: the client gives the memory, from C's allocator, to the library.
            unsafe { buffer.set_borrowed(false) };
        }
        // SAFETY: nobody else has the super-chunk.
        unsafe { self.show_frame(&inner) };
    }
}

/// The tuner that `BTUNE_TRADEOFF` asks for.
const BTUNE: c_int = 32;

/// Releases a handle; returns 0, or 1 if the back-end's `destroy` failed.
///
/// # Safety
///
/// `schunk` is null or a handle that nobody uses any more.
pub(crate) unsafe fn free(schunk: *mut blosc2_schunk) -> c_int {
    if schunk.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise; the storage has its parts, or null if a client took them.
    let io = unsafe {
        let storage = (*schunk).storage.as_ref();
        storage.filter(|_| !(*schunk).view.get()).and_then(|storage| storage.io.as_ref()).copied()
    };
    // SAFETY: the caller's promise.
    unsafe { SchunkHandle::release(schunk.cast()) };
    // The files are closed now.
    // SAFETY: the client vouches for its back-end and the parameters.
    c_int::from(io.is_some_and(|used| unsafe { io::destroy(&used) } < 0))
}
