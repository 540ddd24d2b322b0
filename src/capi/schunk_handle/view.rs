//! Views: handles that show the chunks of another one, with metalayers of their own.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLock;

use super::{SchunkHandle, Used};
use crate::capi::ptr::handle_ref;
use crate::capi::types::{CBool, blosc2_schunk, blosc2_storage};
use crate::error::{Result, require};
use crate::format::geometry::Container;
use crate::format::metalayers::Metalayers;
use crate::format::nd_meta;
use crate::ndarray::view;
use crate::schunk::Schunk;

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
        let params = self.params();
        // SAFETY: the parameters are those of this handle.
        let raw = unsafe { Self::assemble(&given, |_| Ok(Schunk::in_memory(params))) }?;
        // SAFETY: just made; nobody else knows it.
        unsafe {
            let view = &*raw.cast::<SchunkHandle>();
            *view.inner.get() = Arc::clone(self.shared());
            (*view.lookup.get()).clone_from(&*self.lookup.get());
            *view.layers.get() = Some(Arc::new(layers));
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

    /// The fixed metalayers: those of the view, if this is one.
    pub(crate) fn metalayers(&self) -> Result<Arc<Metalayers>> {
        let own = self.own_layers().cloned();
        own.map_or_else(|| self.look_at_layers(Used::Fixed, |schunk| Ok(schunk.metalayers())), Ok)
    }

    /// The content of a view as a super-chunk of its own, in memory; `None` unless this is a view.
    pub(crate) fn as_source(&self) -> Result<Option<Schunk>> {
        let layers = self.own_layers().cloned();
        let Some(layers) = layers else { return Ok(None) };
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
    pub(super) fn layers_for_chunks(&self) -> Result<Option<Arc<Metalayers>>> {
        let Some(layers) = self.own_layers().cloned() else { return Ok(None) };
        self.look(|schunk| view::check_chunks(schunk, &layers))?;
        Ok(Some(layers))
    }

    /// As [`layers_for_chunks`](Self::layers_for_chunks), for a copy with the same chunks.
    ///
    /// # Errors
    ///
    /// As there, and `InvalidParam` if the chunks go by the shape of their blocks, so that they could not be read by
    /// that of the view; else those of reading.
    pub(crate) fn layers_for_same_chunks(&self) -> Result<Option<Arc<Metalayers>>> {
        let Some(layers) = self.layers_for_chunks()? else { return Ok(None) };
        let geometry = nd_meta::block_geometry(&layers);
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
