//! The object behind `b2nd_array_t`: the struct that C sees, and the geometry that it was filled from.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use parking_lot::RwLock;

use super::consts::B2ND_MAX_DIM;
use super::ptr::SharedNumber;
use super::schunk_handle::{self, SchunkHandle};
use super::types::{b2nd_array_t, blosc2_schunk, chunk_cache_s};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::nd_meta::NdMeta;
use crate::io::memory::MallocBuf;
use crate::memory;
use crate::ndarray::shape::{narrow, signed};
use crate::ndarray::{self, Geometry};
use crate::schunk::access::Access;
use crate::schunk::{Reading, Schunk, Writing};

/// An array and what C sees of it.
#[repr(C)]
pub(crate) struct ArrayHandle {
    abi: UnsafeCell<b2nd_array_t>,
    /// The shapes that `abi` shows.
    geometry: RwLock<Arc<Geometry>>,
    /// Whether the chunks are shared with another array; the shape stays as it is then.
    view: UnsafeCell<bool>,
}

const _: () = assert!(std::mem::offset_of!(ArrayHandle, abi) == 0);

/// A number as C's structs hold it.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The dtype as a string from C's allocator; null if there is none.
pub(crate) fn c_dtype(meta: &NdMeta) -> Result<*mut c_char> {
    let Some(text) = &meta.dtype else { return Ok(ptr::null_mut()) };
    let mut string = MallocBuf::zeroed(text.len() + 1)?;
    string.as_mut_slice()[..text.len()].copy_from_slice(text);
    Ok(string.into_raw().0.cast::<c_char>())
}

impl ArrayHandle {
    /// The handle behind `array`.
    ///
    /// # Safety
    ///
    /// `array` is null or comes from this module and was not released.
    ///
    /// # Errors
    ///
    /// `NullPointer` for null.
    pub(crate) unsafe fn from_ptr<'a>(array: *const b2nd_array_t) -> Result<&'a ArrayHandle> {
        // SAFETY: the caller's promise; the struct is the first field of a handle.
        unsafe { super::ptr::handle_ref(array.cast::<ArrayHandle>()) }
    }

    /// Makes an array of `schunk`, which belongs to it from now on, unless the call fails. It shows the metalayers as
    /// of `last_tick`.
    pub(crate) fn create(
        schunk: *mut blosc2_schunk,
        meta: &NdMeta,
        geometry: impl Into<Arc<Geometry>>,
        last_tick: u64,
    ) -> Result<*mut b2nd_array_t> {
        let handle = ArrayHandle::new(schunk, meta, geometry.into(), last_tick)?;
        Ok(Box::into_raw(handle).cast())
    }

    /// As [`create`](Self::create), for a view: `schunk` shares its chunks with another array.
    pub(crate) fn create_view(
        schunk: *mut blosc2_schunk,
        meta: &NdMeta,
        geometry: Geometry,
    ) -> Result<*mut b2nd_array_t> {
        let mut handle = ArrayHandle::new(schunk, meta, geometry.into(), 0)?;
        *handle.view.get_mut() = true;
        Ok(Box::into_raw(handle).cast())
    }

    fn new(
        schunk: *mut blosc2_schunk,
        meta: &NdMeta,
        geometry: Arc<Geometry>,
        last_tick: u64,
    ) -> Result<Box<ArrayHandle>> {
        let dtype = c_dtype(meta)?;
        // SAFETY: integers and raw pointers only.
        let mut abi: b2nd_array_t = unsafe { std::mem::zeroed() };
        abi.sc = schunk;
        abi.chunk_cache = chunk_cache_s { data: ptr::null_mut(), nchunk: -1 };
        abi.dtype = dtype;
        abi.dtype_format = meta.dtype_format;
        abi.last_tick = number(last_tick);
        // SAFETY: nobody else knows the struct.
        unsafe { show(&raw mut abi, &geometry) };
        memory::boxed(|| ArrayHandle {
            abi: UnsafeCell::new(abi),
            geometry: RwLock::new(geometry),
            view: UnsafeCell::new(false),
        })
        // SAFETY: nobody else knows the copy of the dtype, which comes from C's allocator.
        .inspect_err(|_| unsafe { libc::free(dtype.cast()) })
    }

    /// Releases an array, and its super-chunk unless the client took it out.
    ///
    /// # Safety
    ///
    /// `array` is a handle of this module that nobody uses any more.
    pub(crate) unsafe fn release(array: *mut b2nd_array_t) {
        // SAFETY: the caller gives the handle away.
        unsafe {
            let handle = Box::from_raw(array.cast::<ArrayHandle>());
            let abi = handle.abi.get();
            schunk_handle::free((*abi).sc);
            libc::free((*abi).dtype.cast());
        }
    }

    /// The struct, for field accesses through the pointer, and for functions that take an array: it points to the whole
    /// handle, not to its first field only.
    pub(crate) fn abi(&self) -> *mut b2nd_array_t {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Whether the chunks are shared with another array.
    pub(crate) fn is_view(&self) -> bool {
        // SAFETY: changed only while no other thread uses the handle.
        unsafe { *self.view.get() }
    }

    /// The metalayer that describes the array: what it shows.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn meta(&self) -> Result<NdMeta> {
        let geometry = self.geometry();
        let abi = self.abi();
        // SAFETY: the dtype is null or a string of the array.
        let (dtype, dtype_format) = unsafe {
            let text = (*abi).dtype;
            let text = (!text.is_null()).then(|| std::ffi::CStr::from_ptr(text));
            (text.map(|text| memory::copy_of(text.to_bytes())).transpose()?, (*abi).dtype_format)
        };
        Ok(NdMeta {
            shape: signed(geometry.shape()),
            chunkshape: narrow(geometry.chunkshape()),
            blockshape: narrow(geometry.blockshape()),
            dtype,
            dtype_format,
        })
    }

    /// The super-chunk.
    pub(crate) fn schunk(&self) -> Result<&SchunkHandle> {
        // SAFETY: the client leaves the field alone, or sets it to null.
        let handle = unsafe { SchunkHandle::from_ptr((*self.abi()).sc) };
        handle.map_err(|e| Error::new(ErrorKind::NullPointer, e.what()))
    }

    /// The geometry as of the last refresh.
    pub(crate) fn geometry(&self) -> Arc<Geometry> {
        Arc::clone(&self.geometry.read())
    }

    /// As [`geometry`](Self::geometry), and the change tick of the super-chunk as of which that is known; `None` for a
    /// view, which keeps its shape.
    fn known(&self) -> (Arc<Geometry>, Option<u64>) {
        let geometry = self.geometry.read();
        let tick = u64::try_from(self.last_tick().get()).ok();
        (Arc::clone(&geometry), tick.filter(|_| !self.is_view()))
    }

    fn last_tick(&self) -> SharedNumber {
        // SAFETY: as long-lived as the handle; the library uses it in this way only.
        unsafe { SharedNumber::at(&raw mut (*self.abi()).last_tick) }
    }

    /// Takes over a geometry.
    pub(crate) fn set_geometry(&self, geometry: Geometry, tick: u64) {
        let mut own = self.geometry.write();
        self.last_tick().set(number(tick));
        if **own != geometry {
            // SAFETY: threads that read through the handle are kept apart by the lock; clients that read the fields do
            // not do so while the shape changes.
            unsafe { show(self.abi(), &geometry) };
            *own = Arc::new(geometry);
        }
    }

    /// Takes over what others changed; returns whether the geometry was read again.
    pub(crate) fn refresh(&self) -> Result<bool> {
        self.schunk()?.look(|schunk| self.refresh_from(schunk))
    }

    fn refresh_from(&self, schunk: &Schunk) -> Result<bool> {
        if schunk.frame().is_none() {
            return Ok(false);
        }
        if self.is_view() {
            // A view keeps its shape, but says so as new arrays do.
            let is_new = self.last_tick().get() == 0;
            self.last_tick().set(1);
            return Ok(is_new);
        }
        schunk.refresh()?;
        let tick = schunk.change_tick();
        if self.last_tick().get() == number(tick) {
            return Ok(false);
        }
        let Some(fresh) = ndarray::refreshed(schunk, &self.geometry())? else { return Ok(false) };
        self.set_geometry(fresh, tick);
        Ok(true)
    }

    /// Reads with the super-chunk's context, as [`SchunkHandle::read_in_any_order`] does.
    pub(crate) fn read<T>(
        &self,
        operation: impl FnOnce(&Schunk, &Geometry, &Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        let (geometry, as_of) = self.known();
        self.schunk()?
            .read_in_any_order(|schunk, reading| operation(schunk, &geometry, &Reading { as_of, ..*reading }))
    }

    /// As [`read`](Self::read), after taking over what others changed.
    pub(crate) fn read_fresh<T>(
        &self,
        operation: impl FnOnce(&Schunk, &Geometry, &Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        self.schunk()?.read_in_any_order(|schunk, reading| {
            self.refresh_from(schunk)?;
            let (geometry, as_of) = self.known();
            operation(schunk, &geometry, &Reading { as_of, ..*reading })
        })
    }

    /// Gives the array the geometry that `operation` returns. A view gets chunks of its own with it.
    ///
    /// # Safety
    ///
    /// No other thread uses the array.
    pub(crate) unsafe fn reshape(
        &self,
        operation: impl FnOnce(&mut Reshaped<'_>, &Geometry, &Reading<'_>, &Writing<'_>) -> Result<Geometry>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { if self.is_view() { self.reshape_view(operation) } else { self.reshape_own(operation) } }
    }

    /// Runs `operation` under the exclusive lock of the frame, if it locks, starting from the present geometry. Nobody
    /// sees the array before the end, except for functions of the application that are called for its chunks.
    ///
    /// # Safety
    ///
    /// As for [`reshape`](Self::reshape).
    unsafe fn reshape_own(
        &self,
        operation: impl FnOnce(&mut Reshaped<'_>, &Geometry, &Reading<'_>, &Writing<'_>) -> Result<Geometry>,
    ) -> Result<()> {
        let reshape = |reading: &Reading<'_>, writing: &Writing<'_>| {
            let handle = self.schunk()?;
            let reshape = |schunk: &mut Reshaped<'_>| {
                schunk.look(|schunk| self.refresh_from(schunk))?;
                let geometry = self.geometry();
                let reshaped = operation(schunk, &geometry, reading, writing)?;
                // As in the C library, `last_tick` stays where nothing has changed.
                if reshaped == *geometry {
                    return Ok(());
                }
                schunk.look(|schunk| {
                    self.set_geometry(reshaped, schunk.change_tick());
                    Ok(())
                })
            };
            if handle.calls_back(reading, writing) {
                return Reshaped::Shared(self).alone(reshape);
            }
            handle.change(|schunk| Reshaped::Alone(schunk).alone(reshape))
        };
        // SAFETY: the caller's promise.
        unsafe { self.schunk()?.with_contexts(reshape) }
    }

    /// Takes over the shape that a change of the super-chunk gave the array.
    fn follow(&self, schunk: &Schunk) -> Result<()> {
        let known = self.geometry();
        if let Some(fresh) = ndarray::refreshed(schunk, &known)?.filter(|fresh| *fresh != *known) {
            self.set_geometry(fresh, schunk.change_tick());
        }
        Ok(())
    }

    /// Runs `operation` on a copy of the chunks that a view shares, which become its own unless that fails, or has
    /// nothing to do.
    ///
    /// # Safety
    ///
    /// As for [`reshape`](Self::reshape).
    unsafe fn reshape_view(
        &self,
        operation: impl FnOnce(&mut Reshaped<'_>, &Geometry, &Reading<'_>, &Writing<'_>) -> Result<Geometry>,
    ) -> Result<()> {
        let (handle, geometry) = (self.schunk()?, self.geometry());
        let mut own = handle.detached()?;
        let reshape = |reading: &Reading<'_>, writing: &Writing<'_>| {
            operation(&mut Reshaped::Alone(&mut own), &geometry, reading, writing)
        };
        // SAFETY: the caller's promise.
        let reshaped = unsafe { handle.with_contexts(reshape) }?;
        if reshaped == *geometry {
            return Ok(());
        }
        let tick = own.change_tick();
        // SAFETY: the caller's promise.
        let shown = unsafe {
            *self.view.get() = false;
            handle.detach(own)
        };
        self.set_geometry(reshaped, tick);
        shown
    }

    /// Changes items of the array under the exclusive lock of its frame, if it locks, starting from its present
    /// geometry. Filters of the application may read the array meanwhile.
    ///
    /// # Safety
    ///
    /// No other thread changes the array.
    pub(crate) unsafe fn write(
        &self,
        operation: impl FnOnce(&mut &SchunkHandle, &Geometry, &Reading<'_>, &Writing<'_>) -> Result<()>,
    ) -> Result<()> {
        let write = |reading: &Reading<'_>, writing: &Writing<'_>| {
            let handle = self.schunk()?;
            handle.alone(|| {
                handle.look(|schunk| self.refresh_from(schunk))?;
                operation(&mut &*handle, &self.geometry(), reading, writing)
            })
        };
        // SAFETY: the caller's promise.
        unsafe { self.schunk()?.with_contexts(write) }
    }
}

/// The super-chunk of an array that gets another shape.
pub(crate) enum Reshaped<'a> {
    /// Nobody else uses it.
    Alone(&'a mut Schunk),
    /// That of an array which functions of the application may read while chunks are made for it.
    Shared(&'a ArrayHandle),
}

impl Access for Reshaped<'_> {
    fn look<R>(&self, operation: impl FnOnce(&Schunk) -> Result<R>) -> Result<R> {
        match self {
            Reshaped::Alone(schunk) => operation(schunk),
            Reshaped::Shared(array) => array.schunk()?.look(operation),
        }
    }

    fn change<R>(&mut self, operation: impl FnOnce(&mut Schunk) -> Result<R>) -> Result<R> {
        match self {
            Reshaped::Alone(schunk) => operation(schunk),
            Reshaped::Shared(array) => array.schunk()?.change(|schunk| {
                let changed = operation(schunk);
                // Whoever reads the array from now on gets the shape that goes with the chunks. If that fails for want
                // of memory, the change remains.
                let _ = array.follow(schunk);
                changed
            }),
        }
    }

    fn alone<R>(&mut self, operation: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        match self {
            Reshaped::Alone(schunk) => {
                let _held = schunk.exclusive()?;
                operation(self)
            }
            Reshaped::Shared(array) => {
                let array: &ArrayHandle = array;
                array.schunk()?.alone(|| operation(self))
            }
        }
    }
}

/// Shows the geometry in the struct.
///
/// # Safety
///
/// `abi` is valid; nobody else uses the fields of the geometry meanwhile, but may use others.
unsafe fn show(abi: *mut b2nd_array_t, geometry: &Geometry) {
    // SAFETY: the caller's promise; each field is used by itself.
    unsafe {
        let ndim = geometry.ndim();
        let small = |value: u64| i32::try_from(value).expect("extents of chunks and blocks fit");
        (*abi).ndim = i8::try_from(ndim).expect("at most 16");
        ((*abi).shape, (*abi).extshape, (*abi).extchunkshape) =
            ([1; B2ND_MAX_DIM], [1; B2ND_MAX_DIM], [1; B2ND_MAX_DIM]);
        ((*abi).chunkshape, (*abi).blockshape) = ([1; B2ND_MAX_DIM], [1; B2ND_MAX_DIM]);
        for i in 0..ndim {
            (*abi).shape[i] = number(geometry.shape()[i]);
            (*abi).extshape[i] = number(geometry.extshape()[i]);
            (*abi).extchunkshape[i] = number(geometry.extchunkshape()[i]);
            (*abi).chunkshape[i] = small(geometry.chunkshape()[i]);
            (*abi).blockshape[i] = small(geometry.blockshape()[i]);
        }
        (*abi).nitems = number(geometry.nitems());
        (*abi).extnitems = number(geometry.extnitems());
        (*abi).extchunknitems = number(geometry.extchunknitems());
        (*abi).chunknitems = small(geometry.chunknitems());
        (*abi).blocknitems = small(geometry.blocknitems());
        show_strides(abi, ndim);
    }
}

/// Shows the strides; `chunk_array_strides` holds products where its name promises quotients, as in the C library.
///
/// # Safety
///
/// As for [`show`].
unsafe fn show_strides(abi: *mut b2nd_array_t, ndim: usize) {
    // SAFETY: the caller's promise; each field is used by itself.
    unsafe {
        let none = [0; B2ND_MAX_DIM];
        ((*abi).item_array_strides, (*abi).item_chunk_strides, (*abi).item_extchunk_strides) =
            (none, none, none);
        ((*abi).item_block_strides, (*abi).block_chunk_strides, (*abi).chunk_array_strides) =
            (none, none, none);
        for i in (0..ndim).rev() {
            let next = i + 1;
            if next == ndim {
                (*abi).item_array_strides[i] = 1;
                (*abi).item_chunk_strides[i] = 1;
                (*abi).item_extchunk_strides[i] = 1;
                (*abi).item_block_strides[i] = 1;
                (*abi).block_chunk_strides[i] = 1;
                (*abi).chunk_array_strides[i] = 1;
                continue;
            }
            let (chunk, block) = (i64::from((*abi).chunkshape[next]), i64::from((*abi).blockshape[next]));
            if (*abi).shape[next] == 0 || chunk == 0 || block == 0 {
                break;
            }
            let product = |stride: i64, extent: i64| stride.wrapping_mul(extent);
            (*abi).item_array_strides[i] = product((*abi).item_array_strides[next], (*abi).shape[next]);
            (*abi).item_chunk_strides[i] = product((*abi).item_chunk_strides[next], chunk);
            (*abi).item_extchunk_strides[i] =
                product((*abi).item_extchunk_strides[next], (*abi).extchunkshape[next]);
            (*abi).item_block_strides[i] = product((*abi).item_block_strides[next], block);
            let blocks = (*abi).extchunkshape[next] / block;
            (*abi).block_chunk_strides[i] = product((*abi).block_chunk_strides[next], blocks);
            let area = product((*abi).extshape[next], chunk);
            (*abi).chunk_array_strides[i] = product((*abi).chunk_array_strides[next], area);
        }
    }
}

/// The array that a function returned through its out-parameter, or the failure with `*array` set to null.
///
/// # Safety
///
/// `array` is writable.
pub(crate) unsafe fn deliver(array: *mut *mut b2nd_array_t, made: Result<*mut b2nd_array_t>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { array.write(made.unwrap_or(ptr::null_mut())) };
    made.map(drop)
}

/// As [`deliver`], for arrays that are opened: `*array` is left alone on failure, except, as in the C library, where
/// the frame holds the shapes of an array that cannot be.
///
/// # Safety
///
/// `array` is writable.
pub(crate) unsafe fn deliver_opened(
    array: *mut *mut b2nd_array_t,
    made: Result<*mut b2nd_array_t>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match made {
            Err(error) if error.kind() == ErrorKind::InvalidParam => deliver(array, made),
            _ => deliver_view(array, made),
        }
    }
}

/// As [`deliver`], for views: `*array` is left alone on failure, since clients pass the array that a view is made of.
///
/// # Safety
///
/// `array` is writable.
pub(crate) unsafe fn deliver_view(
    array: *mut *mut b2nd_array_t,
    made: Result<*mut b2nd_array_t>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { array.write(made?) };
    Ok(())
}

/// Fails unless all pointers are good.
pub(crate) fn not_null(all: bool) -> Result<()> {
    ensure(all, ErrorKind::NullPointer, "a pointer is null")
}
