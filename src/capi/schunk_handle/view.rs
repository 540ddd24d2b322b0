//! Views: handles that show the chunks of another one, with metalayers of their own.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLock;

use super::{SchunkHandle, Used};
use crate::capi::ptr::handle_ref;
use crate::capi::types::{CBool, blosc2_schunk, blosc2_storage};
use crate::error::{ErrorKind, Result, ensure, require};
use crate::format::geometry::Container;
use crate::format::metalayers::Metalayers;
use crate::format::nd_meta;
use crate::ndarray::view;
use crate::schunk::{Schunk, ViewLayers};

impl SchunkHandle {
    /// Another handle of the super-chunk: a view, with metalayers of its own.
    pub(crate) fn view(&self, layers: Metalayers) -> Result<*mut blosc2_schunk> {
        // SAFETY: clients change the storage only while no other thread uses the handle; it has its parts.
        let own = unsafe { handle_ref((*self.abi()).storage) }?;
        let given = blosc2_storage {
            contiguous: CBool::FALSE,
            urlpath: ptr::null_mut(),
            io: ptr::null_mut(),
            ..*own
        };
        let variable = if self.has_list() {
            self.look_at_layers(Used::All, |schunk| Ok(schunk.vlmetalayers()))?
        } else {
            Arc::default()
        };
        let mut own = Schunk::in_memory(self.params());
        own.adopt_layers(Arc::new(layers), variable)?;
        // SAFETY: the parameters are those of this handle.
        let raw = unsafe { Self::assemble(&given, |_| Ok(own)) }?;
        // SAFETY: just made; nobody else knows it.
        unsafe {
            let view = &*raw.cast::<SchunkHandle>();
            let own = std::mem::replace(&mut *view.inner.get(), Arc::clone(self.shared()));
            (*view.lookup.get()).clone_from(&*self.lookup.get());
            *view.layers.get() = Some(own);
            view.shown_tick.store(0, Ordering::Relaxed);
            (*raw).view = CBool::TRUE;
            let inner = view.shared().read_recursive();
            view.ticks_before.store(inner.change_tick().wrapping_sub(1), Ordering::Relaxed);
            if let Err(error) = view.show(&inner) {
                drop(inner);
                Self::release(raw.cast());
                return Err(error);
            }
        }
        Ok(raw)
    }

    /// What holds the metalayers of a view; `None` unless this is one.
    pub(super) fn layer_holder(&self) -> Option<&RwLock<Schunk>> {
        // SAFETY: replaced as `inner` is.
        unsafe { &*self.layers.get() }.as_deref()
    }

    /// As [`layer_holder`](Self::layer_holder), if it holds those that are about to be `used`: views of frames have the
    /// variable-length metalayers of these.
    pub(super) fn holder_of(&self, used: Used<'_>) -> Option<&RwLock<Schunk>> {
        self.layer_holder().filter(|_| self.has_list() || matches!(used, Used::Fixed))
    }

    /// Whether the super-chunk has no frame.
    fn has_list(&self) -> bool {
        // SAFETY: replaced as `inner` is.
        unsafe { &*self.lookup.get() }.is_some()
    }

    /// The metalayers of a view; `None` unless this is one.
    pub(super) fn own_layers(&self) -> Option<ViewLayers> {
        let own = self.layer_holder()?.read_recursive();
        Some(ViewLayers {
            fixed: own.metalayers(),
            variable: self.has_list().then(|| own.vlmetalayers()),
            changes: own.change_tick(),
        })
    }

    /// The fixed metalayers: those of the view, if this is one.
    pub(crate) fn metalayers(&self) -> Result<Arc<Metalayers>> {
        self.look_at_layers(Used::Fixed, |schunk| Ok(schunk.metalayers()))
    }

    /// Changes fixed metalayers: those of the view, if this is one.
    ///
    /// # Errors
    ///
    /// `refused` for a view of a frame, which, as in the C library, cannot change them; those of `operation`.
    pub(crate) fn change_fixed<T>(
        &self,
        refused: ErrorKind,
        operation: impl FnOnce(&mut Schunk) -> Result<T>,
    ) -> Result<T> {
        let Some(own) = self.layer_holder() else { return self.change_parts(operation) };
        if self.has_list() {
            return self.change_own(own, operation);
        }
        // Its own errors come first, and it may have nothing to change.
        let mut copy = Schunk::in_memory(self.params());
        copy.adopt_layers(own.read_recursive().metalayers(), Arc::default())?;
        let result = operation(&mut copy)?;
        ensure(copy.change_tick() == 0, refused, "metalayers of a view of a frame")?;
        Ok(result)
    }

    /// Changes variable-length metalayers: those of the view, if this is one and the super-chunk has no frame.
    pub(crate) fn change_variable<T>(&self, operation: impl FnOnce(&mut Schunk) -> Result<T>) -> Result<T> {
        match self.holder_of(Used::All) {
            Some(own) => self.change_own(own, operation),
            None => self.change_parts(operation),
        }
    }

    /// Changes the metalayers of a view, which `own` holds.
    fn change_own<T>(
        &self,
        own: &RwLock<Schunk>,
        operation: impl FnOnce(&mut Schunk) -> Result<T>,
    ) -> Result<T> {
        self.look(|_| {
            // Who else has them is decompressing one, and called back.
            let mut own = own.try_write().ok_or_else(|| self.busy())?;
            let before = own.change_tick();
            let result = operation(&mut own);
            self.ticks_before.fetch_sub(own.change_tick() - before, Ordering::Relaxed);
            self.shown_tick.store(0, Ordering::Relaxed);
            result
        })
    }

    /// The content of a view as a super-chunk of its own, in memory; `None` unless this is a view.
    pub(crate) fn as_source(&self) -> Result<Option<Schunk>> {
        let Some(layers) = self.own_layers() else { return Ok(None) };
        let mut own = self.look(|schunk| schunk.to_memory_with(layers))?;
        if own.nchunks() == 0 {
            view::preset_sizes(&mut own)?;
        }
        Ok(Some(own))
    }

    /// The metalayers that a copy has in the place of those of the super-chunk; `None` unless this is a view.
    ///
    /// # Errors
    ///
    /// Those of [`view::check_chunks`]: nobody could read the copy.
    pub(super) fn layers_for_chunks(&self) -> Result<Option<ViewLayers>> {
        let Some(layers) = self.own_layers() else { return Ok(None) };
        self.look(|schunk| view::check_chunks(schunk, &layers.fixed))?;
        Ok(Some(layers))
    }

    /// As [`layers_for_chunks`](Self::layers_for_chunks), for a copy with the same chunks.
    ///
    /// # Errors
    ///
    /// As there, and `InvalidParam` if the chunks go by the shape of their blocks, so that they could not be read by
    /// that of the view; else those of reading.
    pub(crate) fn layers_for_same_chunks(&self) -> Result<Option<ViewLayers>> {
        let Some(layers) = self.layers_for_chunks()? else { return Ok(None) };
        let geometry = nd_meta::block_geometry(&layers.fixed);
        let shown = Container::Schunk { typesize: self.typesize(), geometry };
        let read_alike = |schunk: &Schunk| self.decoding().with(|dec| schunk.reads_alike(dec, shown));
        let alike = geometry == self.geometry() || self.look(read_alike)?;
        require(alike, "chunks that go by another shape of their blocks")?;
        Ok(Some(layers))
    }

    /// As [`as_source`](Self::as_source), for a copy with the same chunks.
    ///
    /// # Errors
    ///
    /// Those of [`layers_for_same_chunks`](Self::layers_for_same_chunks).
    pub(crate) fn as_own(&self) -> Result<Option<Schunk>> {
        self.layers_for_same_chunks()?;
        self.as_source()
    }

    /// The content as a super-chunk of its own, in memory.
    ///
    /// # Errors
    ///
    /// Those of [`as_own`](Self::as_own).
    pub(crate) fn detached(&self) -> Result<Schunk> {
        self.as_own()?.map_or_else(|| self.look(Schunk::to_memory), Ok)
    }

    /// Gives a view a super-chunk of its own, made from what [`detached`](Self::detached) returned.
    ///
    /// # Safety
    ///
    /// No other thread uses the handle.
    pub(crate) unsafe fn detach(&self, own: Schunk) -> Result<()> {
        // SAFETY: the caller's promise; references to the old content live within calls.
        unsafe {
            let blocksize = own.params_ref().blocksize;
            if blocksize > 0 {
                (*self.abi()).blocksize = blocksize;
            }
            *self.lookup.get() = own.lookup().cloned();
            *self.inner.get() = Arc::new(RwLock::new(own));
            *self.layers.get() = None;
            (*self.abi()).frame = ptr::null_mut();
        }
        self.ticks_before.store(0, Ordering::Relaxed);
        self.shown_tick.store(0, Ordering::Relaxed);
        self.show(&self.shared().read_recursive())
    }

    /// Whether both handles are of one super-chunk.
    pub(crate) fn shares_with(&self, other: &SchunkHandle) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }
}
