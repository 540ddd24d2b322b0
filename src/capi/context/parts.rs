//! What an operation needs, taken out of its context, so that callbacks may look at the context meanwhile.

use std::any::Any;
use std::ptr;
use std::sync::atomic::Ordering;

use super::compress::EachAnew;
use super::{Backend, Context};
use crate::capi::callbacks::{CPostfilter, CPrefilter, Host};
use crate::capi::io;
use crate::capi::schunk_handle::SchunkHandle;
use crate::capi::trace;
use crate::capi::types::{blosc2_context, blosc2_schunk};
use crate::chunk::{self, CParams, Decoding, Encoding};
use crate::error::Result;
use crate::format::geometry::Container;
use crate::schunk::{ChunkCompressor, Schunk};
use parking_lot::RwLockReadGuard;

/// The super-chunk of a context, to be asked from any thread.
#[derive(Clone, Copy)]
pub(super) struct SchunkPtr(pub(super) *const blosc2_schunk);

// SAFETY: the super-chunk's metalayers do not change while one of its chunks is worked on.
unsafe impl Send for SchunkPtr {}
// SAFETY: as above.
unsafe impl Sync for SchunkPtr {}

impl SchunkPtr {
    /// Whether there is no super-chunk.
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    fn handle(&self) -> Result<&SchunkHandle> {
        // SAFETY: the client vouches for the super-chunk of its parameters, unless it is null.
        unsafe { SchunkHandle::from_ptr(self.0.cast_mut()) }
    }

    /// What filters and codecs are told of the super-chunk.
    pub(super) fn container(self) -> Container {
        match self.handle() {
            Err(_) => Container::None,
            Ok(handle) => Container::Schunk { typesize: handle.typesize(), geometry: handle.geometry() },
        }
    }

    /// Whether the super-chunk is read through functions of the application.
    pub(super) fn is_on_user_io(self) -> bool {
        if self.is_null() {
            return false;
        }
        // SAFETY: as for the handle; the storage of a super-chunk and its back-end are null or valid.
        unsafe {
            let storage = (*self.0).storage;
            !storage.is_null() && !(*storage).io.is_null() && io::is_users((*(*storage).io).id)
        }
    }

    /// The super-chunk, protected from changes.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is none; those of [`SchunkHandle::inner`].
    pub(super) fn reader(&self) -> Result<RwLockReadGuard<'_, Schunk>> {
        self.handle()?.inner()
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
    each_anew: Option<EachAnew>,
}

impl EncodingParts {
    /// What compressing `nbytes` bytes with `context` needs.
    ///
    /// # Safety
    ///
    /// As for [`compress`](super::compress()).
    pub(crate) unsafe fn of(context: *mut blosc2_context, nbytes: usize) -> Result<EncodingParts> {
        // SAFETY: the caller's promise.
        let this = unsafe { Context::from_raw(context) }?;
        let params = this.params()?;
        trace::compression(&params, nbytes);
        let backend = this.attach();
        let prefilter = this.prefilter(context);
        let (nthreads, schunk) = (this.nthreads(), SchunkPtr(this.fields.schunk));
        let one_by_one = this.fields.tuner_id > 0 || this.wants_info;
        // SAFETY: the caller's promise, which holds as long as it uses the parts.
        let each_anew = one_by_one.then(|| unsafe { EachAnew::with(context) });
        Ok(EncodingParts { params, backend, nthreads, prefilter, schunk, host: Host(context), each_anew })
    }

    /// What compresses chunks one by one with the context, if its tuner, or the user, is to be told of each.
    pub(crate) fn compressor(&self) -> Option<&dyn ChunkCompressor> {
        self.each_anew.as_ref().map(|each_anew| each_anew as &dyn ChunkCompressor)
    }

    /// Sets the number of the chunk that the prefilter is told.
    pub(crate) fn set_nchunk(&self, nchunk: i64) {
        if let Some(prefilter) = &self.prefilter {
            prefilter.nchunk.store(nchunk, Ordering::Relaxed);
        }
    }

    /// Runs `operation`.
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&Encoding<'_>) -> Result<T>) -> Result<T> {
        let schunk = self.schunk;
        let container = move || schunk.container();
        operation(&Encoding {
            threads: self.backend.threads_for(self.nthreads, self.prefilter.is_some()),
            prefilter: self.prefilter.as_ref().map(|prefilter| prefilter as &dyn chunk::Prefilter),
            container: Some(&container),
            host: Some(&self.host),
            ..Encoding::new(&self.params)
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
    has_mask: bool,
}

impl DecodingParts {
    /// What decompressing with `context` needs; without a context, nothing special.
    ///
    /// # Safety
    ///
    /// `context` is null or valid, and other threads use it in this way only, or with parts that were taken out before.
    pub(crate) unsafe fn of(context: *mut blosc2_context) -> DecodingParts {
        // SAFETY: the caller's promise.
        let Ok(this) = (unsafe { Context::shared(context) }) else {
            let schunk = SchunkPtr(ptr::null());
            return DecodingParts {
                backend: Backend::Serial,
                nthreads: 1,
                postfilter: None,
                schunk,
                host: None,
                has_mask: false,
            };
        };
        let backend = this.attach();
        let postfilter = this.postfilter(context);
        let (nthreads, schunk) = (this.nthreads(), SchunkPtr(this.fields.schunk));
        let has_mask = this.maskout.is_set();
        DecodingParts { backend, nthreads, postfilter, schunk, host: Some(Host(context)), has_mask }
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

    /// Whether a mask waited in the context.
    pub(crate) fn has_mask(&self) -> bool {
        self.has_mask
    }

    /// Runs `operation`.
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&Decoding<'_>) -> Result<T>) -> Result<T> {
        let container = move || self.schunk.container();
        let may_wait = self.postfilter.is_some() || self.schunk.is_on_user_io();
        operation(&Decoding {
            threads: self.backend.threads_for(self.nthreads, may_wait),
            postfilter: self.postfilter.as_ref().map(|postfilter| postfilter as &dyn chunk::Postfilter),
            container: Some(&container),
            host: self.host.as_ref().map(|host| host as &(dyn Any + Send + Sync)),
            ..Decoding::default()
        })
    }
}
