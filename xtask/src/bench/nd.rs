//! The n-dimensional arrays of one loaded copy: what `b2nd.h` declares, with slices for pointers and codes as errors.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use super::clib::{CParams, Clib, DParams};
use super::schunk::Storage;

/// A `b2nd_array_t` or `b2nd_context_t`, both opaque here.
type Raw = *mut c_void;
type CreateCtx = unsafe extern "C" fn(
    *const Storage,
    i8,
    *const i64,
    *const i32,
    *const i32,
    *const c_char,
    i8,
    *const c_void,
    i32,
) -> Raw;
type GetSlice = unsafe extern "C" fn(Raw, *const i64, *const i64, *mut c_void, *const i64, i64) -> c_int;
type SetSlice = unsafe extern "C" fn(*const c_void, *const i64, i64, *const i64, *const i64, Raw) -> c_int;
type Selection = unsafe extern "C" fn(Raw, *mut *mut i64, *mut i64, *mut c_void, *mut i64, i64) -> c_int;
type Concatenate = unsafe extern "C" fn(Raw, Raw, Raw, i8, bool, *mut Raw) -> c_int;

/// The functions of `b2nd.h` in use, of one copy that outlives them.
#[derive(Clone, Copy)]
pub struct Nd<'a> {
    lib: &'a Clib,
    create_ctx: CreateCtx,
    free_ctx: unsafe extern "C" fn(Raw) -> c_int,
    from_cbuffer: unsafe extern "C" fn(Raw, *mut Raw, *const c_void, i64) -> c_int,
    to_cbuffer: unsafe extern "C" fn(Raw, *mut c_void, i64) -> c_int,
    to_cframe: unsafe extern "C" fn(Raw, *mut *mut u8, *mut i64, *mut bool) -> c_int,
    from_cframe: unsafe extern "C" fn(*mut u8, i64, bool, *mut Raw) -> c_int,
    open: unsafe extern "C" fn(*const c_char, *mut Raw) -> c_int,
    free: unsafe extern "C" fn(Raw) -> c_int,
    get_slice: GetSlice,
    set_slice: SetSlice,
    get_selection: Selection,
    set_selection: Selection,
    get_sparse: unsafe extern "C" fn(Raw, i64, *const i64, *mut c_void, i64) -> c_int,
    resize: unsafe extern "C" fn(Raw, *const i64, *const i64) -> c_int,
    append: unsafe extern "C" fn(Raw, *const c_void, i64, i8) -> c_int,
    concatenate: Concatenate,
}

/// What an array is to look like.
pub struct Layout<'a> {
    /// Items per dimension; chunks and blocks have as many dimensions.
    pub shape: &'a [i64],
    /// Items of a chunk.
    pub chunkshape: &'a [i32],
    /// Items of a block.
    pub blockshape: &'a [i32],
    /// The dtype string.
    pub dtype: &'a CStr,
    /// Compression.
    pub cparams: CParams,
    /// Threads that decompress.
    pub nthreads: i16,
    /// File of a contiguous frame; in memory, chunk by chunk, without.
    pub urlpath: Option<&'a Path>,
}

impl<'a> Nd<'a> {
    /// The functions of `lib`.
    pub fn find(lib: &'a Clib) -> Result<Self, String> {
        // SAFETY: the types are those that `b2nd.h` declares; the borrow of `lib` keeps the copy loaded.
        unsafe {
            Ok(Self {
                lib,
                create_ctx: lib.symbol("b2nd_create_ctx")?,
                free_ctx: lib.symbol("b2nd_free_ctx")?,
                from_cbuffer: lib.symbol("b2nd_from_cbuffer")?,
                to_cbuffer: lib.symbol("b2nd_to_cbuffer")?,
                to_cframe: lib.symbol("b2nd_to_cframe")?,
                from_cframe: lib.symbol("b2nd_from_cframe")?,
                open: lib.symbol("b2nd_open")?,
                free: lib.symbol("b2nd_free")?,
                get_slice: lib.symbol("b2nd_get_slice_cbuffer")?,
                set_slice: lib.symbol("b2nd_set_slice_cbuffer")?,
                get_selection: lib.symbol("b2nd_get_orthogonal_selection")?,
                set_selection: lib.symbol("b2nd_set_orthogonal_selection")?,
                get_sparse: lib.symbol("b2nd_get_sparse_cbuffer")?,
                resize: lib.symbol("b2nd_resize")?,
                append: lib.symbol("b2nd_append")?,
                concatenate: lib.symbol("b2nd_concatenate")?,
            })
        }
    }

    /// A context for arrays of this layout.
    pub fn context(self, layout: &Layout<'_>) -> Result<Context<'a>, String> {
        let ndim = layout.shape.len();
        assert!(layout.chunkshape.len() == ndim && layout.blockshape.len() == ndim);
        // SAFETY: no preconditions.
        let mut dparams = Box::new(unsafe { (self.lib.f.blosc2_get_blosc2_dparams_defaults)() });
        dparams.nthreads = layout.nthreads;
        let mut cparams = Box::new(layout.cparams);
        let urlpath = layout.urlpath.map(c_path).transpose()?;
        let storage = Storage {
            contiguous: urlpath.is_some(),
            urlpath: urlpath.as_ref().map_or(null_mut(), |path| path.as_ptr().cast_mut()),
            cparams: &mut *cparams,
            dparams: &mut *dparams,
            io: null(),
        };
        // SAFETY: all pointers are to live values: `ndim` numbers each, NUL-terminated strings, no metalayers.
        let raw = unsafe {
            (self.create_ctx)(
                &storage,
                i8::try_from(ndim).expect("few dimensions"),
                layout.shape.as_ptr(),
                layout.chunkshape.as_ptr(),
                layout.blockshape.as_ptr(),
                layout.dtype.as_ptr(),
                0,
                null(),
                0,
            )
        };
        if raw.is_null() {
            return Err(format!("{}: no b2nd context", self.lib.path.display()));
        }
        Ok(Context { nd: self, raw, _params: (cparams, dparams), _urlpath: urlpath })
    }

    /// The array stored in `frame`, which is copied.
    pub fn open_frame(self, frame: &[u8]) -> Result<Array<'a>, String> {
        let mut raw = null_mut();
        // SAFETY: the frame is only read, as it is copied; the answer goes to a live pointer.
        let code = unsafe { (self.from_cframe)(frame.as_ptr().cast_mut(), len(frame), true, &mut raw) };
        self.array(code, raw, "b2nd_from_cframe")
    }

    /// The array stored in a file.
    pub fn open(self, path: &Path) -> Result<Array<'a>, String> {
        let path = c_path(path)?;
        let mut raw = null_mut();
        // SAFETY: a NUL-terminated string; the answer goes to a live pointer.
        let code = unsafe { (self.open)(path.as_ptr(), &mut raw) };
        self.array(code, raw, "b2nd_open")
    }

    fn array(self, code: c_int, raw: Raw, what: &str) -> Result<Array<'a>, String> {
        self.check(code, what)?;
        if raw.is_null() { Err(format!("{what}: no array")) } else { Ok(Array { nd: self, raw }) }
    }

    fn check(&self, code: c_int, what: &str) -> Result<(), String> {
        if code < 0 { Err(format!("{}: {what}: {code}", self.lib.path.display())) } else { Ok(()) }
    }
}

/// The length of a slice as the C API takes it.
fn len<T>(slice: &[T]) -> i64 {
    i64::try_from(size_of_val(slice)).expect("no slice is longer")
}

fn c_path(path: &Path) -> Result<CString, String> {
    let text = path.to_str().ok_or("a path that is not UTF-8")?;
    CString::new(text).map_err(|e| e.to_string())
}

/// A `b2nd_context_t`; freed when dropped.
pub struct Context<'a> {
    nd: Nd<'a>,
    raw: Raw,
    /// What the storage points to, should the library not have copied it.
    _params: (Box<CParams>, Box<DParams>),
    _urlpath: Option<CString>,
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.nd.free_ctx)(self.raw) };
    }
}

impl<'a> Context<'a> {
    /// A new array with the items in `data`.
    pub fn compress(&self, data: &[u8]) -> Result<Array<'a>, String> {
        let mut raw = null_mut();
        // SAFETY: pointer and length come from a slice; the answer goes to a live pointer.
        let code = unsafe { (self.nd.from_cbuffer)(self.raw, &mut raw, data.as_ptr().cast(), len(data)) };
        self.nd.array(code, raw, "b2nd_from_cbuffer")
    }

    /// A new array: `first`, and behind it along `axis`, `second`.
    pub fn concatenate(&self, first: &Array<'a>, second: &Array<'a>, axis: i8) -> Result<Array<'a>, String> {
        let mut raw = null_mut();
        // SAFETY: arrays of the same copy; with `copy` they are only read. The answer goes to a live pointer.
        let code = unsafe { (self.nd.concatenate)(self.raw, first.raw, second.raw, axis, true, &mut raw) };
        self.nd.array(code, raw, "b2nd_concatenate")
    }
}

/// A `b2nd_array_t`; freed when dropped.
pub struct Array<'a> {
    nd: Nd<'a>,
    raw: Raw,
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.nd.free)(self.raw) };
    }
}

/// The extents of a box.
fn extents(start: &[i64], stop: &[i64]) -> Vec<i64> {
    assert_eq!(start.len(), stop.len());
    start.iter().zip(stop).map(|(start, stop)| stop - start).collect()
}

impl Array<'_> {
    /// Decompresses all items into `dest`.
    pub fn read(&self, dest: &mut [u8]) -> Result<(), String> {
        // SAFETY: pointer and length come from a slice.
        let code = unsafe { (self.nd.to_cbuffer)(self.raw, dest.as_mut_ptr().cast(), len(dest)) };
        self.nd.check(code, "b2nd_to_cbuffer")
    }

    /// Copies the box from `start` to `stop` to `dest`, which it fills.
    pub fn get_slice(&self, start: &[i64], stop: &[i64], dest: &mut [u8]) -> Result<(), String> {
        let (shape, out) = (extents(start, stop), dest.as_mut_ptr().cast());
        // SAFETY: pointers and lengths come from slices, with one entry per dimension where the C API wants that.
        let code = unsafe {
            (self.nd.get_slice)(self.raw, start.as_ptr(), stop.as_ptr(), out, shape.as_ptr(), len(dest))
        };
        self.nd.check(code, "b2nd_get_slice_cbuffer")
    }

    /// Gives the box from `start` to `stop` the values in `src`.
    pub fn set_slice(&self, start: &[i64], stop: &[i64], src: &[u8]) -> Result<(), String> {
        let (shape, from) = (extents(start, stop), src.as_ptr().cast());
        // SAFETY: as above; nobody else uses the array.
        let code = unsafe {
            (self.nd.set_slice)(from, shape.as_ptr(), len(src), start.as_ptr(), stop.as_ptr(), self.raw)
        };
        self.nd.check(code, "b2nd_set_slice_cbuffer")
    }

    /// Copies the items whose index is in each dimension one of its list to `dest`, which they fill.
    pub fn get_selection(&self, lists: &[Vec<i64>], dest: &mut [u8]) -> Result<(), String> {
        // SAFETY: pointer and length come from a slice.
        let code = unsafe { self.select(self.nd.get_selection, lists, dest.as_mut_ptr(), len(dest)) };
        self.nd.check(code, "b2nd_get_orthogonal_selection")
    }

    /// Gives the items whose index is in each dimension one of its list the values in `src`.
    pub fn set_selection(&self, lists: &[Vec<i64>], src: &[u8]) -> Result<(), String> {
        // SAFETY: as above; `src` is only read, and nobody else uses the array.
        let code = unsafe { self.select(self.nd.set_selection, lists, src.as_ptr().cast_mut(), len(src)) };
        self.nd.check(code, "b2nd_set_orthogonal_selection")
    }

    /// Calls `function`, one of the two for orthogonal selections; returns its code.
    ///
    /// # Safety
    ///
    /// There are `size` bytes at `buffer`, which `function` may read or write.
    unsafe fn select(&self, function: Selection, lists: &[Vec<i64>], buffer: *mut u8, size: i64) -> c_int {
        let mut lists = lists.to_vec();
        let mut sizes: Vec<i64> = lists.iter().map(|list| len(list) / 8).collect();
        let mut shape = sizes.clone();
        let mut starts: Vec<*mut i64> = lists.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let (starts, sizes, shape) = (starts.as_mut_ptr(), sizes.as_mut_ptr(), shape.as_mut_ptr());
        // SAFETY: one list, with its length, per dimension; the buffer is as the caller says.
        unsafe { function(self.raw, starts, sizes, buffer.cast(), shape, size) }
    }

    /// Copies the items with these C-order numbers to `dest`, which they fill.
    pub fn get_sparse(&self, items: &[i64], dest: &mut [u8]) -> Result<(), String> {
        let count = len(items) / 8;
        // SAFETY: as above.
        let code = unsafe {
            (self.nd.get_sparse)(self.raw, count, items.as_ptr(), dest.as_mut_ptr().cast(), len(dest))
        };
        self.nd.check(code, "b2nd_get_sparse_cbuffer")
    }

    /// Gives the array the shape `shape`.
    pub fn resize(&self, shape: &[i64]) -> Result<(), String> {
        // SAFETY: as many numbers as dimensions; nobody else uses the array.
        let code = unsafe { (self.nd.resize)(self.raw, shape.as_ptr(), null()) };
        self.nd.check(code, "b2nd_resize")
    }

    /// Appends the items in `src` along `axis`.
    pub fn append(&self, src: &[u8], axis: i8) -> Result<(), String> {
        // SAFETY: pointer and length come from a slice; nobody else uses the array.
        let code = unsafe { (self.nd.append)(self.raw, src.as_ptr().cast(), len(src), axis) };
        self.nd.check(code, "b2nd_append")
    }

    /// A copy of the array's frame.
    pub fn frame(&self) -> Result<Vec<u8>, String> {
        unsafe extern "C" {
            fn free(ptr: *mut c_void);
        }
        let (mut frame, mut len, mut needs_free) = (null_mut(), 0, false);
        // SAFETY: the answers go to live variables.
        let code = unsafe { (self.nd.to_cframe)(self.raw, &mut frame, &mut len, &mut needs_free) };
        self.nd.check(code, "b2nd_to_cframe")?;
        let len = usize::try_from(len).map_err(|_| "a frame of negative length")?;
        // SAFETY: on success `frame` has `len` bytes.
        let copy = unsafe { std::slice::from_raw_parts(frame, len) }.to_vec();
        if needs_free {
            // SAFETY: the library says that the frame is from malloc and now ours.
            unsafe { free(frame.cast()) };
        }
        Ok(copy)
    }
}
