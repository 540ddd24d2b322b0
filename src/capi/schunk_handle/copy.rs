//! Super-chunks copied to new handles.

use std::ptr;

use super::{SchunkHandle, Used, frame_cparams};
use crate::capi::consts::BLOSC2_MAX_FILTERS;
use crate::capi::context::{self, Context};
use crate::capi::storage;
use crate::capi::types::{CBool, blosc2_cparams, blosc2_schunk, blosc2_storage};
use crate::error::Result;
use crate::format::chunk_header::BasicHeader;
use crate::format::consts::MAX_TYPESIZE;
use crate::schunk::copy::again_if_changed;
use crate::schunk::{Schunk, Writing};

impl SchunkHandle {
    /// A copy, with its metalayers, where `given` says; see
    /// [`blosc2_schunk_copy`](crate::capi::schunk::blosc2_schunk_copy).
    ///
    /// # Safety
    ///
    /// The pointers in `given` are null or valid.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create), of [`layers_for_same_chunks`](Self::layers_for_same_chunks), of reading and
    /// of compressing. What was made by then is removed.
    pub(crate) unsafe fn copy(&self, given: &blosc2_storage) -> Result<*mut blosc2_schunk> {
        self.adopt_layers(Used::All)?;
        self.adopt_chunksize()?;
        let mut own = self.context_cparams();
        // SAFETY: the caller's promise.
        let wanted = unsafe { given.cparams.as_ref() };
        let same = !self.is_filtered() && wanted.is_none_or(|wanted| same_parameters(&own, wanted));
        let cparams = if wanted.is_none() { &raw mut own } else { given.cparams };
        let given = blosc2_storage { cparams, ..*given };
        // If that fails, so does copying.
        let tick = || self.look(|schunk| Ok(schunk.fresh_tick())).unwrap_or(0);
        // SAFETY: the caller's promise; `own` lives until the end of this function.
        again_if_changed(tick, || unsafe { self.make_copy(&given, same) })
    }

    /// Makes a super-chunk as `given` says and copies the content to it, with the chunks as they are if the parameters
    /// are the `same`.
    ///
    /// # Safety
    ///
    /// As for [`create`](Self::create).
    unsafe fn make_copy(&self, given: &blosc2_storage, same: bool) -> Result<*mut blosc2_schunk> {
        // SAFETY: the caller's promise.
        let raw = unsafe { Self::create(given) }?;
        // SAFETY: just made.
        let made = unsafe { Self::from_ptr(raw) }.and_then(|dest| self.copy_content(dest, same));
        if made.is_err() {
            // SAFETY: just made; nobody else knows it. The caller vouches for the path.
            unsafe {
                Self::release(raw.cast());
                storage::remove_made(given.urlpath);
            }
        }
        made.map(|()| raw)
    }

    /// Copies metalayers and chunks to a new handle; the chunks as they are if the parameters are the `same`.
    fn copy_content(&self, dest: &SchunkHandle, same: bool) -> Result<()> {
        let layers = if same { self.layers_for_same_chunks()? } else { self.layers_for_chunks()? };
        // A view without chunks has sizes of its own.
        let empty = layers.is_some() && self.look(|schunk| Ok(schunk.nchunks() == 0))?;
        let own = if empty { self.as_source()? } else { None };
        let (own, layers) = (own.as_ref(), layers.as_ref());
        if same {
            self.look(|schunk| {
                dest.change(|copy| own.unwrap_or(schunk).copy_to_watched(copy, layers, None, &|_| ()))?;
                self.show_last(schunk);
                Ok(())
            })?;
        } else {
            let recompress = |writing: &Writing<'_>| {
                self.read(|schunk, reading| {
                    let prepared = |copy: &Schunk| dest.catch_up(copy);
                    let parts = Some((reading, writing));
                    dest.change(|copy| own.unwrap_or(schunk).copy_to_watched(copy, layers, parts, &prepared))
                })
            };
            // SAFETY: nobody else knows the new handle.
            unsafe { dest.with_encoding(recompress) }?;
            dest.note_last_blocksize();
        }
        dest.look(|copy| {
            dest.show_last(copy);
            Ok(())
        })
    }

    /// Shows the size of the blocks of the last chunk in the context, as that of the last compression. An empty chunk
    /// has none.
    fn note_last_blocksize(&self) {
        let last = |schunk: &Schunk| {
            let last = schunk.nchunks().saturating_sub(1);
            BasicHeader::read(&schunk.lazy_chunk(last)?).map(|header| header.blocksize)
        };
        let blocksize = self.look(last).ok().and_then(|blocksize| usize::try_from(blocksize).ok());
        if let Some(blocksize) = blocksize.filter(|&blocksize| blocksize > 0) {
            // Nothing is lost if the context is gone.
            // SAFETY: nobody else knows the new handle.
            let _ = unsafe { context::note_blocksize((*self.abi()).cctx, blocksize) };
        }
    }

    /// The compression parameters of the context, as copies take them.
    pub(super) fn context_cparams(&self) -> blosc2_cparams {
        let abi = self.abi();
        // SAFETY: clients replace contexts only while no other thread uses the handle.
        let context = unsafe { Context::shared((*abi).cctx) };
        let params = self.params();
        let own = context.map_or(frame_cparams(&params), Context::cparams);
        // Contexts show items that are too large for them as bytes.
        let is_large = usize::try_from(params.typesize).is_ok_and(|typesize| typesize > MAX_TYPESIZE);
        blosc2_cparams {
            nthreads: 0,
            schunk: ptr::null_mut(),
            prefilter: None,
            preparams: ptr::null_mut(),
            tuner_params: ptr::null_mut(),
            tuner_id: 0,
            instr_codec: CBool::FALSE,
            codec_params: ptr::null_mut(),
            filter_params: [ptr::null_mut(); BLOSC2_MAX_FILTERS],
            typesize: if is_large { params.typesize } else { own.typesize },
            ..own
        }
    }

    /// Whether a context has a filter of the application, so that the data may be others than those in the chunks.
    fn is_filtered(&self) -> bool {
        let abi = self.abi();
        // SAFETY: as in `context_cparams`.
        let (cctx, dctx) = unsafe { (Context::shared((*abi).cctx), Context::shared((*abi).dctx)) };
        cctx.is_ok_and(|context| context.fields.prefilter.is_some())
            || dctx.is_ok_and(|context| context.fields.postfilter.is_some())
    }

    /// Shows that the last chunk of `schunk` was worked on last, as after a copy of all of them.
    pub(super) fn show_last(&self, schunk: &Schunk) {
        if let Some(last) = schunk.nchunks().checked_sub(1) {
            self.set_current(i64::try_from(last).unwrap_or(i64::MAX));
        }
    }
}

/// Whether chunks made with `own` may stand among those that `wanted` asks for.
fn same_parameters(own: &blosc2_cparams, wanted: &blosc2_cparams) -> bool {
    own.typesize == wanted.typesize
        && own.clevel == wanted.clevel
        && own.compcode == wanted.compcode
        && own.use_dict == wanted.use_dict
        && (wanted.blocksize == 0 || own.blocksize == wanted.blocksize)
        && own.filters == wanted.filters
        && own.filters_meta == wanted.filters_meta
}
