//! What the struct shows, and what clients assign there.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::SchunkHandle;
use super::layers::{remove_layer, show_layer, show_layers};
use crate::capi::io_adapter;
use crate::capi::ptr::SharedNumber;
use crate::capi::types::{CBool, blosc2_schunk};
use crate::error::{Result, require};
use crate::format::geometry::BlockGeometry;
use crate::format::metalayers::Metalayers;
use crate::format::nd_meta;
use crate::schunk::{LayerChange, Schunk};

/// What `blosc2_schunk.frame` points to: the members at the front of the C library's struct.
#[repr(C)]
pub(super) struct FrameFields {
    pub(super) urlpath: *mut c_char,
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

/// What is known of the metalayers that the struct shows.
#[derive(Default)]
pub(super) struct ShownLayers {
    /// The shape of the blocks that the chunks are made of; for a view, that of its base.
    pub(super) geometry: Option<BlockGeometry>,
    /// The variable-length metalayers that the struct shows, so that unchanged ones are told by the address of the list.
    /// Kept for frames only: the next change of a super-chunk without a frame would have to copy a list that is held.
    variable: Option<Arc<Metalayers>>,
}

impl ShownLayers {
    /// The client replaced variable-length metalayers: nobody knows which are shown.
    pub(super) fn forget_variable(&mut self) {
        self.variable = None;
    }
}

impl SchunkHandle {
    /// Takes over what the client assigned.
    #[inline]
    pub(super) fn take_over(&self, schunk: &mut Schunk) -> Result<()> {
        let is_as_before =
            self.has_params(schunk.params_ref()) && self.typesize() > 0 && schunk.nchunks() > 0;
        if !is_as_before {
            self.take_over_assigned(schunk)?;
        }
        // Each change of a frame writes its metalayers.
        if schunk.frame().is_some() { self.adopt_layers_into(schunk) } else { Ok(()) }
    }

    #[cold]
    fn take_over_assigned(&self, schunk: &mut Schunk) -> Result<()> {
        // Nobody could open a frame with another typesize.
        let fine = self.typesize() > 0 || schunk.frame().is_none();
        require(fine, "typesize out of range")?;
        let params = self.params();
        if params != *schunk.params_ref() {
            schunk.set_params(params);
        }
        // SAFETY: the field is assigned only while no other thread uses the handle.
        let chunksize = unsafe { (*self.abi()).chunksize }.max(-1);
        if schunk.nchunks() == 0 && chunksize != schunk.chunksize() {
            schunk.preset_chunksize(chunksize)?;
        }
        Ok(())
    }

    /// Takes over the chunk size that the client may have assigned to a super-chunk without chunks.
    pub(crate) fn adopt_chunksize(&self) -> Result<()> {
        let assigned = self.look(|schunk| {
            let _shown = self.shown.lock();
            // SAFETY: clients assign the field only while no other thread uses the handle; what shows the state holds
            // the lock.
            let shown = unsafe { (&raw const (*self.abi()).chunksize).read() };
            Ok(schunk.nchunks() == 0 && shown.max(-1) != schunk.chunksize())
        })?;
        if assigned { self.change(|_| Ok(())) } else { Ok(()) }
    }

    /// Shows the state of the super-chunk in the struct.
    pub(super) fn show(&self, schunk: &Schunk) -> Result<()> {
        let mut shown = self.shown.lock();
        // SAFETY: `shown` is locked, which guards the arrays of metalayers too.
        unsafe {
            let tick = self.show_counts(schunk);
            if self.shows_layers_as_of(tick) {
                return Ok(());
            }
            // What is shown after a failure is looked at as a whole the next time.
            let shown_tick = self.shown_tick.load(Ordering::Relaxed);
            self.shown_tick.store(0, Ordering::Relaxed);
            let shown_before = shown_tick.checked_sub(1).filter(|_| self.layer_holder().is_none());
            let change = shown_before.and_then(|tick| schunk.layer_change_since(tick));
            match change {
                Some((change, fixed, variable)) => {
                    self.show_layer_change(change, fixed, variable, &mut shown)?;
                }
                None => self.show_all_layers(schunk, &mut shown)?,
            }
            self.shown_tick.store(tick + 1, Ordering::Release);
        }
        Ok(())
    }

    /// Shows all metalayers, whatever is shown now.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of `shown`, which guards `shown`.
    unsafe fn show_all_layers(&self, schunk: &Schunk, shown: &mut ShownLayers) -> Result<()> {
        let (fixed, variable) = (schunk.metalayers(), schunk.vlmetalayers());
        shown.geometry = nd_meta::block_geometry(&fixed);
        let (fixed, variable) = match self.own_layers() {
            Some(own) => (own.fixed, own.variable.unwrap_or(variable)),
            None => (fixed, variable),
        };
        let abi = self.abi();
        let known = shown.variable.take().unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe {
            show_layers(&mut (*abi).metalayers, &[], &fixed)?;
            // What follows may fail, and there may be fewer of these now.
            (*abi).nmetalayers = u16::try_from(fixed.len()).unwrap_or(u16::MAX);
            show_layers(&mut (*abi).vlmetalayers, &known, &variable)?;
            self.show_layer_counts(fixed.len(), variable.len());
        }
        shown.variable = schunk.frame().map(|_| variable);
        Ok(())
    }

    /// Shows metalayers of the super-chunk, `fixed` and `variable`, after a change of those that are shown; this is no
    /// view.
    ///
    /// # Safety
    ///
    /// As for [`show_all_layers`](Self::show_all_layers).
    unsafe fn show_layer_change(
        &self,
        change: LayerChange,
        fixed: &Metalayers,
        variable: &Metalayers,
        shown: &mut ShownLayers,
    ) -> Result<()> {
        shown.variable = None;
        let abi = self.abi();
        // SAFETY: the caller's promise.
        unsafe {
            match change {
                LayerChange::Fixed(number) => {
                    shown.geometry = nd_meta::block_geometry(fixed);
                    show_layer(&mut (*abi).metalayers[number], &fixed[number])?;
                }
                LayerChange::Variable(number) => {
                    show_layer(&mut (*abi).vlmetalayers[number], &variable[number])?;
                }
                LayerChange::Removed(number) => {
                    let slots = &mut (*abi).vlmetalayers;
                    remove_layer(&mut slots[number..=variable.len()]);
                }
            }
            self.show_layer_counts(fixed.len(), variable.len());
        }
        Ok(())
    }

    /// Shows how many metalayers of either kind there are.
    ///
    /// # Safety
    ///
    /// As for [`show_all_layers`](Self::show_all_layers).
    unsafe fn show_layer_counts(&self, fixed: usize, variable: usize) {
        let abi = self.abi();
        // SAFETY: the caller's promise.
        unsafe {
            (*abi).nmetalayers = u16::try_from(fixed).unwrap_or(u16::MAX);
            (*abi).nvlmetalayers = i16::try_from(variable).unwrap_or(i16::MAX);
        }
    }

    /// Shows the state of the super-chunk in the struct after an operation, whose outcome must not depend on it:
    /// without memory, metalayers are shown as they were, until the next operation.
    pub(crate) fn catch_up(&self, schunk: &Schunk) {
        let _ = self.show(schunk);
    }

    /// Whether there was no memory to show metalayers when they changed.
    #[inline]
    pub(super) fn is_behind(&self) -> bool {
        self.shown_tick.load(Ordering::Relaxed) == 0
    }

    /// Sees to it that all metalayers are shown, also what a view of the super-chunk changed, or its base.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; `Failure` if they are not shown and a callback cannot look at them.
    pub(crate) fn show_rest(&self) -> Result<()> {
        match self.inner() {
            Ok(inner) if !self.shows_layers_as_of(inner.change_tick()) => self.show(&inner),
            Err(error) if self.is_behind() => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the struct shows the metalayers as they are when they have changed `tick` times; if so, what was shown
    /// is seen.
    pub(super) fn shows_layers_as_of(&self, tick: u64) -> bool {
        self.shown_tick.load(Ordering::Acquire) == tick + 1
    }

    /// Shows numbers and places; returns how often metalayers have changed.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of `shown`, or nobody else has the super-chunk.
    #[inline]
    pub(super) unsafe fn show_counts(&self, schunk: &Schunk) -> u64 {
        let abi = self.abi();
        // SAFETY: the caller's promise. The pointers to chunks are those of the super-chunk, valid until its next
        // change.
        unsafe {
            (*abi).version = 0;
            let Some((pointers, room)) = schunk.pointers() else { return self.show_frame_counts(schunk) };
            let data = pointers.as_ptr().cast_mut().cast::<*mut u8>();
            (*abi).data = if room == 0 { ptr::null_mut() } else { data };
            (*abi).data_len = room * size_of::<*mut u8>();
            self.show_numbers([
                schunk.nchunks() as u64,
                schunk.nbytes(),
                schunk.cbytes(),
                schunk.change_tick(),
            ]); // widening
            (*abi).chunksize = schunk.chunksize();
            (*abi).flags2 = u8::from(schunk.has_vl_blocks());
        }
        schunk.change_tick()
    }

    /// As [`show_counts`](Self::show_counts), of a super-chunk with a frame.
    ///
    /// # Safety
    ///
    /// As for [`show_counts`](Self::show_counts).
    #[inline(never)] // so that the way to lists, which takes a few nanoseconds, has no part in it
    unsafe fn show_frame_counts(&self, schunk: &Schunk) -> u64 {
        let Some(frame) = schunk.frame() else { return schunk.change_tick() };
        let (abi, counts) = (self.abi(), frame.counts());
        let sizes = counts.sizes;
        // SAFETY: the caller's promise.
        unsafe {
            self.show_numbers([sizes.nchunks as u64, sizes.nbytes, counts.cbytes, counts.tick]); // widening
            (*abi).chunksize = sizes.chunksize;
            (*abi).flags2 = u8::from(sizes.vl_blocks);
            self.show_frame(schunk);
        }
        counts.tick
    }

    /// Shows the number of chunks, the sums of their sizes uncompressed and compressed, and the tick.
    ///
    /// # Safety
    ///
    /// As for [`show_counts`](Self::show_counts).
    #[inline]
    unsafe fn show_numbers(&self, [nchunks, nbytes, cbytes, tick]: [u64; 4]) {
        let abi = self.abi();
        let tick = tick.wrapping_sub(self.ticks_before.load(Ordering::Relaxed));
        // SAFETY: the fields that threads compare are shared numbers, the others by one thread at a
        // time, by the caller's promise.
        unsafe {
            let store = |field: *mut i64, value| {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                SharedNumber::at(field).set(value);
            };
            store(&raw mut (*abi).nchunks, nchunks);
            store(&raw mut (*abi).nbytes, nbytes);
            store(&raw mut (*abi).cbytes, cbytes);
            store(&raw mut (*abi).change_tick, tick);
        }
    }

    /// Shows the frame.
    ///
    /// # Safety
    ///
    /// As for [`show_counts`](Self::show_counts).
    #[inline(never)] // so that the way to lists, which takes a few nanoseconds, has no part in it
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
            let (len, trailer_len) = frame.lengths();
            (*fields).len = number(len);
            (*fields).trailer_len = u32::try_from(trailer_len).unwrap_or(u32::MAX);
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
            unsafe { buffer.take_over() };
        }
        // SAFETY: nobody else has the super-chunk.
        unsafe { self.show_frame(&inner) };
    }
}
