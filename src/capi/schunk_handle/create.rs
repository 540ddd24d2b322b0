//! Handles come and go: with the struct that C sees, its storage and its contexts.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use super::layers::free_layers;
use super::{SchunkHandle, frame_cparams, spare};
use crate::capi::chunk::{create_cctx, free_ctx};
use crate::capi::context::Context;
use crate::capi::mem::c_string;
use crate::capi::plugins::BTUNE;
use crate::capi::types::{blosc2_cparams, blosc2_dparams, blosc2_schunk, blosc2_storage};
use crate::capi::{blosc1, io, io_adapter, storage};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::frame_header::FrameParams;
use crate::frame::Frame;
use crate::schunk::Schunk;

impl SchunkHandle {
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
                    Frame::create_in_memory(params).map(Schunk::over)
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
                Frame::create_file(&path, params, &options)
            } else {
                Frame::create_dir(&path, params, &options)
            };
            frame.map(Schunk::over)
        };
        // SAFETY: the caller's promise.
        let mut cparams = unsafe { given.cparams.as_ref() }.copied().unwrap_or(blosc2_cparams::DEFAULTS);
        if std::env::var_os("BTUNE_TRADEOFF").is_some() {
            cparams.tuner_id = BTUNE.id;
        }
        let given = blosc2_storage { cparams: &raw mut cparams, ..*given };
        // SAFETY: the caller's promise; the parameters live until the end of the call.
        unsafe { Self::assemble(&given, make) }
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
        let nthreads = blosc1::nthreads();
        let mut cparams = blosc2_cparams { nthreads, ..frame_cparams(&params) };
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
            let whole = c_string(unsafe { CStr::from_ptr(urlpath) });
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

    /// Makes a handle; `make` gets it, with its contexts, and gives the super-chunk.
    ///
    /// # Safety
    ///
    /// The pointers in `given` are null or valid.
    pub(super) unsafe fn assemble(
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
            // SAFETY: nobody else knows the handle.
            unsafe { *handle.lookup.get() = inner.lookup().cloned() };
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
        // SAFETY: `raw` is memory for a handle. `abi` and `frame` consist of integers, raw pointers and flags, for
        // which zeros are a value; the other fields are written here.
        unsafe {
            (&raw mut (*raw).inner).write(UnsafeCell::new(inner));
            (&raw mut (*raw).lookup).write(UnsafeCell::new(None));
            (&raw mut (*raw).layers).write(UnsafeCell::new(None));
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
    ///
    /// # Errors
    ///
    /// `NullPointer` if there is no context for these parameters.
    fn create_contexts(&self) -> Result<()> {
        let abi = self.abi();
        // SAFETY: the handle is being made: the storage and its parts were allocated just now and nobody else has
        // access to them or the struct.
        unsafe {
            let cparams = &mut *(*(*abi).storage).cparams;
            let dparams = &mut *(*(*abi).storage).dparams;
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
            if cparams.tuner_id == BTUNE.id {
                cparams.use_dict = 0;
            }
            cparams.schunk = abi.cast();
            dparams.schunk = abi.cast();
            let null = |e: Error| Error::new(ErrorKind::NullPointer, e.what());
            // A copy, since the tuner may change what the storage holds.
            let cparams = *cparams;
            (*abi).cctx = create_cctx(&cparams).map_err(null)?;
            (*abi).dctx = Context::for_decompression(dparams).map_err(null)?.into_raw();
        }
        Ok(())
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
                unsafe { buffer.leave() };
            }
        }
        // SAFETY: whatever the client put in these fields is now the library's, by the contract of the struct; nobody
        // else uses the handle.
        unsafe {
            free_ctx((*abi).cctx);
            free_ctx((*abi).dctx);
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
}

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
