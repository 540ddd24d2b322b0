//! The object behind `blosc2_schunk`: the struct that C sees, and the super-chunk.
//!
//! Clients read the fields of `blosc2_schunk` at any time and assign some of them (`cctx`, `dctx`, the compression
//! parameters, `chunksize` before there are chunks, `current_nchunk`, the metalayers). So every operation takes over
//! what clients may have set, works on the [`Schunk`], and shows its new state in the struct.
//!
//! Any number of threads may read through one handle: the super-chunk is behind a lock that readers share, and each
//! takes what it needs out of the decompression context. The address of a chunk in a list is looked up without it.
//! Callbacks may read super-chunks, even the one that is being read at the moment or compressed for. From a super-chunk
//! that the operation is changing they get an error, since waiting for it would be for ever.
//!
//! Here are the accesses; `short` is one for small chunks. `create` makes and releases handles, `open` those of what
//! is stored already, `copy` makes copies, and `view` handles that share a super-chunk; `save` writes frames. `shown`,
//! with `layers`, keeps the struct up to date; `adopt` takes over what clients change in metalayers.

mod adopt;
mod copy;
mod create;
mod layers;
mod open;
mod save;
mod short;
mod shown;
pub(super) mod spare;
mod view;

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::callbacks;
use super::context::{Context, DecodingParts, EncodingParts};
use super::ptr::SharedNumber;
use super::types::{blosc2_cparams, blosc2_schunk};
use crate::chunk::CParams;
use crate::error::{Error, ErrorKind, Result};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{codec, filter};
use crate::format::frame_header::FrameParams;
use crate::format::geometry::BlockGeometry;
use crate::frame::Frame;
use crate::schunk::access::Access;
use crate::schunk::{Lookup, Reading, Schunk, Writing};
use crate::single;
pub(crate) use adopt::Used;
pub(crate) use create::free;
use shown::{FrameFields, ShownLayers};

/// The compression parameters that the header of a frame records; the others have their defaults.
pub(crate) fn frame_cparams(params: &FrameParams) -> blosc2_cparams {
    blosc2_cparams {
        compcode: params.compcode,
        compcode_meta: params.compcode_meta,
        clevel: params.clevel,
        use_dict: c_int::from(params.use_dict),
        typesize: params.typesize,
        blocksize: params.blocksize,
        splitmode: i32::from(params.splitmode),
        filters: params.filters,
        filters_meta: params.filters_meta,
        ..blosc2_cparams::DEFAULTS
    }
}

/// Whether codec or filters are such as the application registers.
fn is_registered(compcode: i32, filters: &[u8]) -> bool {
    compcode >= i32::from(codec::FIRST_USER) || filters.iter().any(|&id| id >= filter::FIRST_USER)
}

/// How long a callback waits for a super-chunk. If another thread uses it, it is free soon; if the operation that
/// called back is changing it, waiting would never end.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long a reader lets waiting writers go first. Otherwise they would wait until, by chance, nobody reads.
const TURN: Duration = Duration::from_millis(50);

/// A super-chunk and what C sees of it.
#[repr(C)]
pub(crate) struct SchunkHandle {
    abi: UnsafeCell<blosc2_schunk>,
    frame: UnsafeCell<FrameFields>,
    /// Replaced only when a view gets chunks of its own, while no other thread uses the handle.
    inner: UnsafeCell<Arc<RwLock<Schunk>>>,
    /// Where the chunks of `inner` are, unless it has a frame. Replaced as `inner` is.
    lookup: UnsafeCell<Option<Arc<Lookup>>>,
    /// The metalayers of a view, which shares the super-chunk with another handle: in a super-chunk without chunks.
    /// Those of variable length are used only where the shared one has no frame. Replaced as `inner` is.
    layers: UnsafeCell<Option<Arc<RwLock<Schunk>>>>,
    /// What is known of the metalayers that the struct shows. Its lock guards the parts of `abi` that readers may have
    /// to bring up to date, and the frame's fields.
    shown: Mutex<ShownLayers>,
    /// The state of the metalayers that is shown, plus 1; 0 if the struct may not show just those of one state.
    shown_tick: AtomicU64,
    /// What is subtracted from the super-chunk's `change_tick`, modulo 2^64, to get the one that this view shows: the
    /// tick when the view was made, less 1 and less the changes of its own metalayers.
    ticks_before: AtomicU64,
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

    /// The struct, for field accesses through the pointer, and for functions that take a super-chunk: it points to the
    /// whole handle, not to its first field only.
    pub(crate) fn abi(&self) -> *mut blosc2_schunk {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// The parameters for the header of a frame.
    #[inline]
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

    /// Whether [`params`](Self::params) are these, and thus the client assigned none. (Field by field: putting them
    /// together first takes as long as comparing them.)
    #[inline]
    fn has_params(&self, params: &FrameParams) -> bool {
        let FrameParams { typesize, blocksize, compcode, compcode_meta, clevel, splitmode, .. } = params;
        let FrameParams { use_dict, filters, filters_meta, nthreads_c, nthreads_d, .. } = params;
        let abi = self.abi();
        // SAFETY: as in `params`.
        unsafe {
            (*abi).compcode == *compcode
                && (*abi).compcode_meta == *compcode_meta
                && (*abi).clevel == *clevel
                && (*abi).splitmode == *splitmode
                && (*abi).typesize == *typesize
                && (*abi).blocksize == *blocksize
                && ((*abi).use_dict != 0) == *use_dict
                && (*abi).filters == *filters
                && (*abi).filters_meta == *filters_meta
                && Context::shared((*abi).cctx).map_or(1, Context::nthreads) == *nthreads_c
                && Context::shared((*abi).dctx).map_or(1, Context::nthreads) == *nthreads_d
        }
    }

    /// Bytes per item, as the client sees or set it.
    #[inline]
    pub(crate) fn typesize(&self) -> i32 {
        // SAFETY: see `params`.
        unsafe { (&raw const (*self.abi()).typesize).read() }
    }

    /// The shape of the blocks of an array that the chunks are made of; for a view, that of its base.
    pub(crate) fn geometry(&self) -> Option<BlockGeometry> {
        self.shown.lock().geometry
    }

    /// Sets the number of the chunk that is worked on.
    pub(crate) fn set_current(&self, nchunk: i64) {
        // SAFETY: as long-lived as the handle; the library uses it in this way only.
        unsafe { SharedNumber::at(&raw mut (*self.abi()).current_nchunk) }.set(nchunk);
    }

    /// The number of chunks that the client sees.
    pub(crate) fn shown_nchunks(&self) -> i64 {
        // SAFETY: as above.
        unsafe { SharedNumber::at(&raw mut (*self.abi()).nchunks) }.get()
    }

    /// The super-chunk, for reading.
    ///
    /// # Errors
    ///
    /// `Failure` for a callback of an operation that is changing the super-chunk: waiting for that would be for ever.
    #[inline]
    pub(crate) fn inner(&self) -> Result<RwLockReadGuard<'_, Schunk>> {
        let inner = self.read_lock()?;
        if inner.params_ref().typesize == self.typesize() { Ok(inner) } else { self.inner_as_set(inner) }
    }

    /// The super-chunk after the client assigned another typesize.
    #[cold]
    fn inner_as_set<'a>(&'a self, inner: RwLockReadGuard<'a, Schunk>) -> Result<RwLockReadGuard<'a, Schunk>> {
        drop(inner);
        // If others are reading, the new typesize has to wait: it was set at a bad time.
        if let Some(mut inner) = self.shared().try_write() {
            let typesize = self.typesize();
            let params = FrameParams { typesize, ..inner.params() };
            inner.set_params(params);
        }
        self.read_lock()
    }

    #[inline]
    fn read_lock(&self) -> Result<RwLockReadGuard<'_, Schunk>> {
        match self.shared().try_read() {
            Some(inner) => {
                if self.waited.load(Ordering::Relaxed) {
                    self.forget_wait();
                }
                Ok(inner)
            }
            None => self.wait_to_read(),
        }
    }

    #[inline(never)]
    fn wait_to_read(&self) -> Result<RwLockReadGuard<'_, Schunk>> {
        if !callbacks::inside_callback() {
            self.waited.store(false, Ordering::Relaxed);
            let in_turn = self.shared().try_read_for(TURN);
            return Ok(in_turn.unwrap_or_else(|| self.shared().read_recursive()));
        }
        self.shared().try_read_recursive_for(self.patience()).ok_or_else(|| self.busy())
    }

    #[inline]
    fn write_lock(&self) -> Result<RwLockWriteGuard<'_, Schunk>> {
        match self.shared().try_write() {
            Some(inner) => {
                if self.waited.load(Ordering::Relaxed) {
                    self.forget_wait();
                }
                Ok(inner)
            }
            None => self.wait_to_write(),
        }
    }

    #[inline(never)]
    fn wait_to_write(&self) -> Result<RwLockWriteGuard<'_, Schunk>> {
        if !callbacks::inside_callback() {
            self.waited.store(false, Ordering::Relaxed);
            return Ok(self.shared().write());
        }
        self.shared().try_write_for(self.patience()).ok_or_else(|| self.busy())
    }

    /// Lets callbacks wait again: the operation whose callback waited in vain has ended, unless this is another
    /// callback of it.
    #[cold]
    fn forget_wait(&self) {
        if !callbacks::inside_callback() {
            self.waited.store(false, Ordering::Relaxed);
        }
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

    /// What compression with the handle's context needs.
    ///
    /// # Safety
    ///
    /// No other thread compresses with the context.
    unsafe fn encoding(&self) -> Result<EncodingParts> {
        // SAFETY: the caller's promise; the context is replaced only while no other thread uses the handle.
        unsafe { EncodingParts::of((*self.abi()).cctx, 0) }
    }

    /// Notes which chunk is worked on, where clients and callbacks look for it.
    fn visitor<'v>(
        &'v self,
        decoding: Option<&'v DecodingParts>,
        encoding: Option<&'v EncodingParts>,
    ) -> impl Fn(usize) + 'v {
        move |nchunk| {
            let nchunk = i64::try_from(nchunk).unwrap_or(i64::MAX);
            self.set_current(nchunk);
            if let Some(decoding) = decoding {
                decoding.set_nchunk(nchunk);
            }
            if let Some(encoding) = encoding {
                encoding.set_nchunk(nchunk);
            }
        }
    }

    /// Runs `operation`, which compresses, with the handle's context for that.
    ///
    /// # Safety
    ///
    /// No other thread compresses with the context.
    pub(crate) unsafe fn with_encoding<T>(
        &self,
        operation: impl FnOnce(&Writing<'_>) -> Result<T>,
    ) -> Result<T> {
        // SAFETY: the caller's promise.
        let encoding = unsafe { self.encoding() }?;
        let visit = self.visitor(None, Some(&encoding));
        let compressor = encoding.compressor();
        encoding.with(|enc| operation(&Writing { enc: *enc, visit: Some(&visit), compressor }))
    }

    /// Runs `operation`, which decompresses and compresses, with the handle's contexts.
    ///
    /// # Safety
    ///
    /// No other thread compresses with the context for that.
    pub(crate) unsafe fn with_contexts<T>(
        &self,
        operation: impl FnOnce(&Reading<'_>, &Writing<'_>) -> Result<T>,
    ) -> Result<T> {
        let decoding = self.decoding();
        // SAFETY: the caller's promise.
        let encoding = unsafe { self.encoding() }?;
        let visit = self.visitor(Some(&decoding), Some(&encoding));
        let compressor = encoding.compressor();
        decoding.with(|dec| {
            encoding.with(|enc| {
                let reading = Reading { dec: *dec, visit: Some(&visit), ..Reading::default() };
                operation(&reading, &Writing { enc: *enc, visit: Some(&visit), compressor })
            })
        })
    }

    /// Reads with the handle's context.
    pub(crate) fn read<T>(&self, operation: impl FnOnce(&Schunk, &Reading<'_>) -> Result<T>) -> Result<T> {
        let parts = self.decoding();
        let visit = self.visitor(Some(&parts), None);
        self.read_with(&parts, Some(&visit), operation)
    }

    /// Reads with the handle's context, chunks in any order and at the same time: unless functions of the application
    /// are called for each, which may look for its number, nobody is told.
    pub(crate) fn read_in_any_order<T>(
        &self,
        operation: impl FnOnce(&Schunk, &Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        let parts = self.decoding();
        let visit = self.visitor(Some(&parts), None);
        let is_looked_at = parts.has_postfilter() || self.calls_registered();
        let visit = is_looked_at.then_some(&visit as &dyn Fn(usize));
        self.read_with(&parts, visit, operation)
    }

    /// Shows in the context for decompression whether chunk `nchunk`, the last one that it decompressed, has a
    /// dictionary.
    #[inline]
    pub(crate) fn show_dict(&self, schunk: &Schunk, nchunk: usize) {
        // SAFETY: as for `decoding`.
        let Ok(context) = (unsafe { Context::shared((*self.abi()).dctx) }) else { return };
        let shown = context.use_dict();
        if schunk.params_ref().use_dict || shown.load(Ordering::Relaxed) != 0 {
            let chunk = schunk.lazy_chunk(nchunk);
            let header = chunk.and_then(|chunk| ChunkHeader::read(&chunk));
            shown.store(i32::from(header.is_ok_and(|header| header.has_dict())), Ordering::Relaxed);
        }
    }

    /// Whether codec or filters are such as the application registers.
    fn calls_registered(&self) -> bool {
        let abi = self.abi();
        // SAFETY: as in `params`.
        let (compcode, filters) = unsafe { ((*abi).compcode, (*abi).filters) };
        is_registered(i32::from(compcode), &filters)
    }

    /// Whether functions of the application are called for chunks that are read and written in this way.
    pub(crate) fn calls_back(&self, reading: &Reading<'_>, writing: &Writing<'_>) -> bool {
        let CParams { compcode, filters, .. } = writing.enc.params;
        reading.dec.postfilter.is_some()
            || writing.enc.prefilter.is_some()
            || writing.compressor.is_some()
            || is_registered(*compcode, filters)
            || self.calls_registered()
    }

    /// Reads with these parts of the handle's context, and with the mask that waits there for a whole chunk.
    #[inline]
    fn read_with<T>(
        &self,
        parts: &DecodingParts,
        visit: Option<&dyn Fn(usize)>,
        operation: impl FnOnce(&Schunk, &Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        let take = || {
            // SAFETY: as for `decoding`.
            unsafe { Context::shared((*self.abi()).dctx) }.ok().and_then(Context::take_maskout)
        };
        let mask = parts.has_mask().then_some(&take as &dyn Fn() -> Option<Vec<bool>>);
        self.look(|schunk| {
            parts.with(|dec| operation(schunk, &Reading { dec: *dec, visit, mask, as_of: None }))
        })
    }

    /// Reads without decompressing.
    #[inline]
    pub(crate) fn look<T>(&self, operation: impl FnOnce(&Schunk) -> Result<T>) -> Result<T> {
        let inner = self.inner()?;
        let result = operation(&inner);
        let is_behind = self.is_behind()
            || inner.frame().is_some_and(Frame::is_on_disk) && !self.shows_layers_as_of(inner.change_tick());
        if is_behind {
            self.catch_up(&inner);
        }
        result
    }

    /// Where chunk `nchunk` of a super-chunk without a frame is, up to the next change; `None` if there is more to do
    /// than to look it up.
    ///
    /// # Safety
    ///
    /// No other thread changes the super-chunk but by adding chunks at the end.
    #[inline(always)] // a call shows
    pub(crate) unsafe fn listed_chunk(&self, nchunk: i64) -> Option<NonNull<[u8]>> {
        // SAFETY: replaced as `inner` is.
        let lookup = unsafe { &*self.lookup.get() }.as_ref()?;
        // Whoever changes it may be an operation that called back, and promised nothing.
        if self.shared().is_locked_exclusive() {
            return None;
        }
        // SAFETY: the caller's promise.
        let chunk = unsafe { lookup.chunk(usize::try_from(nchunk).ok()?) }?;
        self.set_current(nchunk);
        Some(chunk)
    }

    /// Runs `operation` under the exclusive lock of the frame, if it locks: other handles that lock change nothing
    /// between what it reads and what it writes. Filters of the application may read the super-chunk meanwhile.
    pub(crate) fn alone<T>(&self, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.inner()?.frame().is_some_and(Frame::locks) {
            return operation();
        }
        let _held = self.change(|schunk| schunk.exclusive())?;
        operation()
    }

    /// Changes the super-chunk.
    pub(crate) fn change<T>(&self, operation: impl FnOnce(&mut Schunk) -> Result<T>) -> Result<T> {
        self.change_locked(&mut *self.write_lock()?, operation)
    }

    /// As [`change`](Self::change), with an `operation` that neither compresses nor decompresses: without a frame it
    /// calls nothing of the application then, and starts no thread.
    pub(crate) fn change_parts<T>(&self, operation: impl FnOnce(&mut Schunk) -> Result<T>) -> Result<T> {
        let shared = self.shared();
        if single::is_only_thread() && !shared.is_locked() {
            // SAFETY: this thread does nothing with the super-chunk, and there are no others.
            let inner = unsafe { &mut *shared.data_ptr() };
            // With a frame, it may be an application's function that reads and writes, and comes back here.
            if inner.frame().is_none() {
                return self.change_locked(inner, operation);
            }
        }
        self.change(operation)
    }

    fn change_locked<T>(
        &self,
        inner: &mut Schunk,
        operation: impl FnOnce(&mut Schunk) -> Result<T>,
    ) -> Result<T> {
        self.take_over(inner)?;
        // Shown by a destructor: so what `operation` returns need not be moved, which takes as long as all the rest
        // here.
        let changed = Changed { handle: self, inner };
        operation(changed.inner)
    }
}

/// The super-chunk is locked only while it is looked at or changed, so that filters of the application may read what
/// they work for.
impl Access for &SchunkHandle {
    fn look<R>(&self, operation: impl FnOnce(&Schunk) -> Result<R>) -> Result<R> {
        SchunkHandle::look(self, operation)
    }

    fn change<R>(&mut self, operation: impl FnOnce(&mut Schunk) -> Result<R>) -> Result<R> {
        SchunkHandle::change(self, operation)
    }

    fn alone<R>(&mut self, operation: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let mut handle = *self;
        SchunkHandle::alone(self, || operation(&mut handle))
    }
}

/// A super-chunk that is being changed; the struct shows its new state at the end.
struct Changed<'a> {
    handle: &'a SchunkHandle,
    inner: &'a mut Schunk,
}

impl Drop for Changed<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.handle.shows_layers_as_of(self.inner.change_tick()) {
            // SAFETY: nobody else has the super-chunk, and readers come here only while they have it.
            unsafe { self.handle.show_counts(self.inner) };
        } else {
            self.handle.catch_up(self.inner);
        }
    }
}
