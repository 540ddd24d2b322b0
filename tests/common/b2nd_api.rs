//! Arrays of one loaded copy of the library: the structs of `b2nd.h`, its functions, and owning handles.
//!
//! As in [`super::clib`], the wrappers return the codes of the C API unchanged.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use super::clib::{CParams, Clib, DParams};
use super::schunk_api::{Metalayer, Place, RawSchunk, Schunk, SchunkApi, table, text};
use super::{int, malloc};

/// `B2ND_MAX_DIM`.
pub const MAX_DIM: usize = 16;

/// `b2nd_array_t`.
#[repr(C)]
#[allow(missing_docs)] // the names of the header
pub struct ArrayFields {
    pub sc: RawSchunk,
    pub shape: [i64; MAX_DIM],
    pub chunkshape: [i32; MAX_DIM],
    pub extshape: [i64; MAX_DIM],
    pub blockshape: [i32; MAX_DIM],
    pub extchunkshape: [i64; MAX_DIM],
    pub nitems: i64,
    pub chunknitems: i32,
    pub extnitems: i64,
    pub blocknitems: i32,
    pub extchunknitems: i64,
    pub ndim: i8,
    pub cache_data: *mut u8,
    pub cache_nchunk: i64,
    pub item_array_strides: [i64; MAX_DIM],
    pub item_chunk_strides: [i64; MAX_DIM],
    pub item_extchunk_strides: [i64; MAX_DIM],
    pub item_block_strides: [i64; MAX_DIM],
    pub block_chunk_strides: [i64; MAX_DIM],
    pub chunk_array_strides: [i64; MAX_DIM],
    pub dtype: *mut c_char,
    pub dtype_format: i8,
    pub last_tick: i64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ArrayFields>() == 1376);

/// A `b2nd_array_t *`.
pub type RawArray = *mut ArrayFields;
type RawCtx = *mut c_void;

table! { ArrayFunctions {
    b2nd_create_ctx: fn(*const super::schunk_api::Storage, i8, *const i64, *const i32, *const i32, *const c_char, i8, *const Metalayer, i32) -> RawCtx;
    b2nd_free_ctx: fn(RawCtx) -> c_int;
    b2nd_uninit: fn(RawCtx, *mut RawArray) -> c_int;
    b2nd_empty: fn(RawCtx, *mut RawArray) -> c_int;
    b2nd_zeros: fn(RawCtx, *mut RawArray) -> c_int;
    b2nd_nans: fn(RawCtx, *mut RawArray) -> c_int;
    b2nd_full: fn(RawCtx, *mut RawArray, *const c_void) -> c_int;
    b2nd_free: fn(RawArray) -> c_int;
    b2nd_from_schunk: fn(RawSchunk, *mut RawArray) -> c_int;
    b2nd_to_cframe: fn(RawArray, *mut *mut u8, *mut i64, *mut bool) -> c_int;
    b2nd_from_cframe: fn(*mut u8, i64, bool, *mut RawArray) -> c_int;
    b2nd_open: fn(*const c_char, *mut RawArray) -> c_int;
    b2nd_open_offset: fn(*const c_char, *mut RawArray, i64) -> c_int;
    b2nd_save: fn(RawArray, *const c_char) -> c_int;
    b2nd_save_append: fn(RawArray, *const c_char) -> i64;
    b2nd_from_cbuffer: fn(RawCtx, *mut RawArray, *const c_void, i64) -> c_int;
    b2nd_to_cbuffer: fn(RawArray, *mut c_void, i64) -> c_int;
    b2nd_copy: fn(RawCtx, RawArray, *mut RawArray) -> c_int;
    b2nd_concatenate: fn(RawCtx, RawArray, RawArray, i8, bool, *mut RawArray) -> c_int;
    b2nd_refresh: fn(RawArray) -> c_int;
    b2nd_get_slice: fn(RawCtx, *mut RawArray, RawArray, *const i64, *const i64) -> c_int;
    b2nd_get_slice_cbuffer: fn(RawArray, *const i64, *const i64, *mut c_void, *const i64, i64) -> c_int;
    b2nd_set_slice_cbuffer: fn(*const c_void, *const i64, i64, *const i64, *const i64, RawArray) -> c_int;
    b2nd_get_sparse_cbuffer: fn(RawArray, i64, *const i64, *mut c_void, i64) -> c_int;
    b2nd_get_orthogonal_selection: fn(RawArray, *mut *mut i64, *mut i64, *mut c_void, *mut i64, i64) -> c_int;
    b2nd_set_orthogonal_selection: fn(RawArray, *mut *mut i64, *mut i64, *const c_void, *mut i64, i64) -> c_int;
    b2nd_resize: fn(RawArray, *const i64, *const i64) -> c_int;
    b2nd_insert: fn(RawArray, *const c_void, i64, i8, i64) -> c_int;
    b2nd_append: fn(RawArray, *const c_void, i64, i8) -> c_int;
    b2nd_delete: fn(RawArray, i8, i64, i64) -> c_int;
    b2nd_squeeze: fn(RawArray, *mut RawArray) -> c_int;
    b2nd_squeeze_index: fn(RawArray, *mut RawArray, *const bool) -> c_int;
    b2nd_expand_dims: fn(RawArray, *mut RawArray, *const bool, u8) -> c_int;
} }

/// One copy of the library with its array functions.
#[derive(Clone, Copy)]
pub struct ArrayApi {
    /// Its super-chunks.
    pub schunks: SchunkApi,
    /// Its functions.
    pub f: ArrayFunctions,
}

/// The shapes and parameters that an array is made with.
#[derive(Clone)]
pub struct Recipe {
    /// Items per dimension.
    pub shape: Vec<i64>,
    /// Items per dimension of a chunk.
    pub chunkshape: Vec<i32>,
    /// Items per dimension of a block.
    pub blockshape: Vec<i32>,
    /// The data type, or the default.
    pub dtype: Option<&'static CStr>,
    /// The notation of the data type.
    pub dtype_format: i8,
    /// Metalayers of the user.
    pub metalayers: Vec<(&'static CStr, Vec<u8>)>,
    /// Where the chunks go.
    pub place: Place,
    /// How they are compressed.
    pub cparams: CParams,
    /// How they are decompressed.
    pub dparams: DParams,
}

impl Recipe {
    /// Bytes per item.
    pub fn typesize(&self) -> usize {
        usize::try_from(self.cparams.typesize).expect("a size")
    }
}

/// A `b2nd_context_t`, freed when dropped. The structs that it borrows live in boxes of its own.
pub struct ArrayCtx {
    api: ArrayApi,
    /// The handle.
    pub raw: RawCtx,
    _params: (Box<CParams>, Box<DParams>),
    _recipe: Recipe,
}

impl Drop for ArrayCtx {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.api.f.b2nd_free_ctx)(self.raw) };
    }
}

/// An array of one copy of the library; freed when dropped.
pub struct Array {
    /// Whose it is.
    pub api: ArrayApi,
    /// The handle.
    pub raw: RawArray,
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.api.f.b2nd_free)(self.raw) };
    }
}

impl ArrayApi {
    /// The functions of `lib`.
    pub fn of(lib: &'static Clib) -> Self {
        Self { schunks: SchunkApi::of(lib), f: ArrayFunctions::of(lib) }
    }

    /// `b2nd_create_ctx`.
    pub fn ctx(&self, recipe: &Recipe) -> Option<ArrayCtx> {
        let recipe = recipe.clone();
        let (mut cparams, mut dparams) = (Box::new(recipe.cparams), Box::new(recipe.dparams));
        let storage = recipe.place.storage(&mut cparams, &mut dparams);
        let layers: Vec<Metalayer> = recipe
            .metalayers
            .iter()
            .map(|(name, content)| Metalayer {
                name: name.as_ptr(),
                content: content.as_ptr(),
                content_len: int(content.len()),
            })
            .collect();
        // SAFETY: the shapes have `ndim` entries; what the context borrows lives as long as it.
        let raw = unsafe {
            (self.f.b2nd_create_ctx)(
                &storage,
                i8::try_from(recipe.shape.len()).expect("few dimensions"),
                recipe.shape.as_ptr(),
                recipe.chunkshape.as_ptr(),
                recipe.blockshape.as_ptr(),
                recipe.dtype.map_or(ptr::null(), CStr::as_ptr),
                recipe.dtype_format,
                layers.as_ptr(),
                int(layers.len()),
            )
        };
        (!raw.is_null()).then(|| ArrayCtx { api: *self, raw, _params: (cparams, dparams), _recipe: recipe })
    }

    /// Calls a function that stores an array; the code, and the array if one was stored on success.
    pub fn store(&self, call: impl FnOnce(&ArrayFunctions, *mut RawArray) -> c_int) -> (i32, Option<Array>) {
        let mut raw = ptr::null_mut();
        let code = call(&self.f, &mut raw);
        (code, if code >= 0 && !raw.is_null() { Some(Array { api: *self, raw }) } else { None })
    }

    /// `b2nd_from_cbuffer`.
    pub fn build(&self, ctx: &ArrayCtx, data: &[u8]) -> (i32, Option<Array>) {
        // SAFETY: live handles; pointer and length come from a slice.
        self.store(|f, out| unsafe { (f.b2nd_from_cbuffer)(ctx.raw, out, data.as_ptr().cast(), len(data)) })
    }

    /// `b2nd_full`; `value` has the typesize of the context.
    pub fn full(&self, ctx: &ArrayCtx, value: &[u8]) -> (i32, Option<Array>) {
        // SAFETY: live handles; the value has as many bytes as an item.
        self.store(|f, out| unsafe { (f.b2nd_full)(ctx.raw, out, value.as_ptr().cast()) })
    }

    /// `b2nd_uninit`, `b2nd_empty`, `b2nd_zeros` or `b2nd_nans`.
    pub fn make(&self, ctx: &ArrayCtx, kind: usize) -> (i32, Option<Array>) {
        self.store(|f, out| {
            let call = [f.b2nd_uninit, f.b2nd_empty, f.b2nd_zeros, f.b2nd_nans][kind];
            // SAFETY: live handles.
            unsafe { call(ctx.raw, out) }
        })
    }

    /// `b2nd_open`.
    pub fn open(&self, path: &CStr) -> (i32, Option<Array>) {
        // SAFETY: a NUL-terminated string.
        self.store(|f, out| unsafe { (f.b2nd_open)(path.as_ptr(), out) })
    }

    /// `b2nd_open_offset`.
    pub fn open_offset(&self, path: &CStr, offset: i64) -> (i32, Option<Array>) {
        // SAFETY: a NUL-terminated string.
        self.store(|f, out| unsafe { (f.b2nd_open_offset)(path.as_ptr(), out, offset) })
    }

    /// `b2nd_from_cframe`, with a copy of the frame.
    pub fn open_buffer(&self, frame: &[u8]) -> (i32, Option<Array>) {
        let mut frame = frame.to_vec();
        // SAFETY: pointer and length come from a slice; the array copies it.
        self.store(|f, out| unsafe { (f.b2nd_from_cframe)(frame.as_mut_ptr(), len(&frame), true, out) })
    }
}

/// What clients can see in the struct of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SeenArray {
    pub ndim: i8,
    pub shape: Vec<i64>,
    pub chunkshape: Vec<i32>,
    pub blockshape: Vec<i32>,
    pub extshape: Vec<i64>,
    pub extchunkshape: Vec<i64>,
    pub counts: (i64, i32, i64, i32, i64),
    pub cache: (bool, i64),
    pub strides: Vec<Vec<i64>>,
    pub dtype: Option<String>,
    pub dtype_format: i8,
    pub is_current: bool,
}

impl Array {
    /// The fields of the struct.
    pub fn seen(&self) -> SeenArray {
        // SAFETY: a live handle; the struct is read while no call is under way.
        let a = unsafe { &*self.raw };
        let ndim = usize::try_from(a.ndim).expect("a count");
        SeenArray {
            ndim: a.ndim,
            shape: a.shape.to_vec(),
            chunkshape: a.chunkshape.to_vec(),
            blockshape: a.blockshape.to_vec(),
            extshape: a.extshape.to_vec(),
            extchunkshape: a.extchunkshape.to_vec(),
            counts: (a.nitems, a.chunknitems, a.extnitems, a.blocknitems, a.extchunknitems),
            cache: (a.cache_data.is_null(), a.cache_nchunk),
            strides: [
                &a.item_array_strides,
                &a.item_chunk_strides,
                &a.item_extchunk_strides,
                &a.item_block_strides,
                &a.block_chunk_strides,
                &a.chunk_array_strides,
            ]
            .map(|s| s[..ndim].to_vec())
            .to_vec(),
            dtype: text(a.dtype),
            dtype_format: a.dtype_format,
            // SAFETY: the array has a super-chunk.
            is_current: a.last_tick == unsafe { (*a.sc).change_tick },
        }
    }

    /// Looks at the super-chunk, which stays the array's.
    pub fn with_schunk<T>(&self, look: impl FnOnce(&mut Schunk) -> T) -> T {
        // SAFETY: a live handle.
        let raw = unsafe { (*self.raw).sc };
        let mut schunk = std::mem::ManuallyDrop::new(Schunk { api: self.api.schunks, raw });
        look(&mut schunk)
    }

    /// The shape.
    pub fn shape(&self) -> Vec<i64> {
        // SAFETY: a live handle.
        let a = unsafe { &*self.raw };
        a.shape[..usize::try_from(a.ndim).expect("a count")].to_vec()
    }

    /// `b2nd_to_cbuffer`.
    pub fn to_cbuffer(&self, dest: &mut [u8]) -> i32 {
        // SAFETY: pointer and length come from a slice.
        unsafe { (self.api.f.b2nd_to_cbuffer)(self.raw, dest.as_mut_ptr().cast(), len(dest)) }
    }

    /// `b2nd_to_cframe`.
    pub fn to_cframe(&self) -> (i32, bool, Vec<u8>) {
        let (mut frame, mut size, mut needs_free) = (ptr::null_mut(), 0, false);
        // SAFETY: a live handle; the answers go to live variables.
        let code = unsafe { (self.api.f.b2nd_to_cframe)(self.raw, &mut frame, &mut size, &mut needs_free) };
        if code < 0 {
            return (code, needs_free, Vec::new());
        }
        // SAFETY: on success the frame has `size` bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(frame, usize::try_from(size).expect("a size")) }.to_vec();
        if needs_free {
            // SAFETY: the library says that the frame is the caller's.
            unsafe { malloc::free(frame.cast()) };
        }
        (code, needs_free, bytes)
    }

    /// `b2nd_save`.
    pub fn save(&self, path: &CStr) -> i32 {
        // SAFETY: a live handle and a NUL-terminated string.
        unsafe { (self.api.f.b2nd_save)(self.raw, path.as_ptr()) }
    }

    /// `b2nd_save_append`.
    pub fn save_append(&self, path: &CStr) -> i64 {
        // SAFETY: a live handle and a NUL-terminated string.
        unsafe { (self.api.f.b2nd_save_append)(self.raw, path.as_ptr()) }
    }

    /// `b2nd_get_slice_cbuffer`; the buffer must hold `buffershape` items.
    pub fn get_slice(&self, start: &[i64], stop: &[i64], buffershape: &[i64], dest: &mut [u8]) -> i32 {
        // SAFETY: the lists have an entry per dimension, the buffer as many bytes as its shape says.
        unsafe {
            (self.api.f.b2nd_get_slice_cbuffer)(
                self.raw,
                start.as_ptr(),
                stop.as_ptr(),
                dest.as_mut_ptr().cast(),
                buffershape.as_ptr(),
                len(dest),
            )
        }
    }

    /// `b2nd_set_slice_cbuffer`; the buffer must hold `buffershape` items.
    pub fn set_slice(&mut self, start: &[i64], stop: &[i64], buffershape: &[i64], data: &[u8]) -> i32 {
        // SAFETY: as for `get_slice`.
        unsafe {
            (self.api.f.b2nd_set_slice_cbuffer)(
                data.as_ptr().cast(),
                buffershape.as_ptr(),
                len(data),
                start.as_ptr(),
                stop.as_ptr(),
                self.raw,
            )
        }
    }

    /// `b2nd_get_sparse_cbuffer`.
    pub fn get_sparse(&self, coords: &[i64], dest: &mut [u8]) -> i32 {
        let count = i64::try_from(coords.len()).expect("a count");
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.api.f.b2nd_get_sparse_cbuffer)(
                self.raw,
                count,
                coords.as_ptr(),
                dest.as_mut_ptr().cast(),
                len(dest),
            )
        }
    }

    /// `b2nd_get_orthogonal_selection`, into a dense buffer.
    pub fn get_orthogonal(&self, selection: &[Vec<i64>], dest: &mut [u8]) -> i32 {
        let (mut lists, mut sizes, mut shape) = selection_parts(selection);
        let (lists, sizes, shape) = (lists.as_mut_ptr(), sizes.as_mut_ptr(), shape.as_mut_ptr());
        // SAFETY: the lists have an entry per dimension, the buffer as many items as are selected.
        unsafe {
            (self.api.f.b2nd_get_orthogonal_selection)(
                self.raw,
                lists,
                sizes,
                dest.as_mut_ptr().cast(),
                shape,
                len(dest),
            )
        }
    }

    /// `b2nd_set_orthogonal_selection`, from a dense buffer.
    pub fn set_orthogonal(&mut self, selection: &[Vec<i64>], data: &[u8]) -> i32 {
        let (mut lists, mut sizes, mut shape) = selection_parts(selection);
        let (lists, sizes, shape) = (lists.as_mut_ptr(), sizes.as_mut_ptr(), shape.as_mut_ptr());
        // SAFETY: as for `get_orthogonal`.
        unsafe {
            (self.api.f.b2nd_set_orthogonal_selection)(
                self.raw,
                lists,
                sizes,
                data.as_ptr().cast(),
                shape,
                len(data),
            )
        }
    }

    /// `b2nd_resize`.
    pub fn resize(&mut self, shape: &[i64], start: Option<&[i64]>) -> i32 {
        // SAFETY: the lists have an entry per dimension.
        unsafe {
            (self.api.f.b2nd_resize)(self.raw, shape.as_ptr(), start.map_or(ptr::null(), <[i64]>::as_ptr))
        }
    }

    /// `b2nd_insert`.
    pub fn insert(&mut self, data: &[u8], axis: i8, start: i64) -> i32 {
        // SAFETY: pointer and length come from a slice.
        unsafe { (self.api.f.b2nd_insert)(self.raw, data.as_ptr().cast(), len(data), axis, start) }
    }

    /// `b2nd_append`.
    pub fn append(&mut self, data: &[u8], axis: i8) -> i32 {
        // SAFETY: pointer and length come from a slice.
        unsafe { (self.api.f.b2nd_append)(self.raw, data.as_ptr().cast(), len(data), axis) }
    }

    /// `b2nd_delete`.
    pub fn delete(&mut self, axis: i8, start: i64, count: i64) -> i32 {
        // SAFETY: a live handle.
        unsafe { (self.api.f.b2nd_delete)(self.raw, axis, start, count) }
    }

    /// `b2nd_refresh`.
    pub fn refresh(&mut self) -> i32 {
        // SAFETY: a live handle.
        unsafe { (self.api.f.b2nd_refresh)(self.raw) }
    }

    /// `b2nd_copy`.
    pub fn copy(&self, ctx: &ArrayCtx) -> (i32, Option<Array>) {
        // SAFETY: live handles.
        self.api.store(|f, out| unsafe { (f.b2nd_copy)(ctx.raw, self.raw, out) })
    }

    /// `b2nd_get_slice`.
    pub fn slice(&self, ctx: &ArrayCtx, start: &[i64], stop: &[i64]) -> (i32, Option<Array>) {
        // SAFETY: live handles; the lists have an entry per dimension.
        self.api.store(|f, out| unsafe {
            (f.b2nd_get_slice)(ctx.raw, out, self.raw, start.as_ptr(), stop.as_ptr())
        })
    }

    /// `b2nd_concatenate` into a new array.
    pub fn concatenate(&self, ctx: &ArrayCtx, other: &Array, axis: i8) -> (i32, Option<Array>) {
        // SAFETY: live handles.
        self.api
            .store(|f, out| unsafe { (f.b2nd_concatenate)(ctx.raw, self.raw, other.raw, axis, true, out) })
    }

    /// `b2nd_concatenate` onto this array.
    pub fn extend(&mut self, other: &Array, axis: i8) -> i32 {
        let mut out = ptr::null_mut();
        // SAFETY: live handles; without a copy the context is not used.
        let code = unsafe {
            (self.api.f.b2nd_concatenate)(ptr::null_mut(), self.raw, other.raw, axis, false, &mut out)
        };
        assert!(code < 0 || out == self.raw, "extended in place");
        code
    }

    /// `b2nd_squeeze`, or with an index `b2nd_squeeze_index`. The view must not be used after the array is gone.
    pub fn squeeze(&self, index: Option<&[bool]>) -> (i32, Option<Array>) {
        self.api.store(|f, out| match index {
            // SAFETY: live handles; the list has an entry per dimension.
            Some(index) => unsafe { (f.b2nd_squeeze_index)(self.raw, out, index.as_ptr()) },
            // SAFETY: live handles.
            None => unsafe { (f.b2nd_squeeze)(self.raw, out) },
        })
    }

    /// `b2nd_expand_dims`. The view must not be used after the array is gone.
    pub fn expand(&self, axis: &[bool]) -> (i32, Option<Array>) {
        let count = u8::try_from(axis.len()).expect("few dimensions");
        // SAFETY: live handles; the list has `count` entries.
        self.api.store(|f, out| unsafe { (f.b2nd_expand_dims)(self.raw, out, axis.as_ptr(), count) })
    }
}

/// The arguments of the orthogonal functions: lists, their sizes, the shape of a dense buffer.
fn selection_parts(selection: &[Vec<i64>]) -> (Vec<*mut i64>, Vec<i64>, Vec<i64>) {
    let lists = selection.iter().map(|list| list.as_ptr().cast_mut()).collect();
    let sizes: Vec<i64> = selection.iter().map(|list| i64::try_from(list.len()).expect("a count")).collect();
    (lists, sizes.clone(), sizes)
}

/// The length of a slice as the array functions take it.
fn len(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).expect("a length")
}
