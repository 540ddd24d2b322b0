//! Super-chunks of the C library.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use super::REFERENCE;
use super::clib::{CParams, Clib};

/// An opaque pointer.
pub type Raw = *mut c_void;

/// `blosc2_storage`.
#[repr(C)]
pub struct Storage {
    pub contiguous: bool,
    pub urlpath: *mut c_char,
    pub cparams: *mut CParams,
    pub dparams: Raw,
    pub io: *mut Io,
}

/// `blosc2_io`.
#[repr(C)]
pub struct Io {
    pub id: u8,
    pub name: *const c_char,
    pub params: Raw,
}

/// The super-chunk functions of the C library.
pub struct Api {
    pub lib: &'static Clib,
    pub new: unsafe extern "C" fn(*mut Storage) -> Raw,
    pub open: unsafe extern "C" fn(*const c_char, *const Io) -> Raw,
    pub free: unsafe extern "C" fn(Raw) -> c_int,
    pub append: unsafe extern "C" fn(Raw, *const u8, bool) -> i64,
    pub insert: unsafe extern "C" fn(Raw, i64, *const u8, bool) -> i64,
    pub update: unsafe extern "C" fn(Raw, i64, *const u8, bool) -> i64,
    pub delete: unsafe extern "C" fn(Raw, i64) -> i64,
    pub reorder: unsafe extern "C" fn(Raw, *const i64) -> c_int,
    pub fill: unsafe extern "C" fn(Raw, i64, c_int, i32) -> i64,
    pub get: unsafe extern "C" fn(Raw, i64, *mut *mut u8, *mut bool) -> c_int,
    pub lazy: unsafe extern "C" fn(Raw, i64, *mut *mut u8, *mut bool) -> c_int,
    pub to_buffer: unsafe extern "C" fn(Raw, *mut *mut u8, *mut bool) -> i64,
    pub meta_add: unsafe extern "C" fn(Raw, *const c_char, *const u8, i32) -> c_int,
    pub meta_update: unsafe extern "C" fn(Raw, *const c_char, *const u8, i32) -> c_int,
    pub vlmeta_add: unsafe extern "C" fn(Raw, *const c_char, *const u8, i32, Raw) -> c_int,
    pub vlmeta_delete: unsafe extern "C" fn(Raw, *const c_char) -> c_int,
    pub refresh: unsafe extern "C" fn(Raw) -> c_int,
}

/// The functions; `None` without the C library.
pub fn api() -> Option<Api> {
    let lib = REFERENCE.as_ref()?;
    // SAFETY: the types are those of the declarations in blosc2.h.
    unsafe {
        Some(Api {
            lib,
            new: lib.symbol("blosc2_schunk_new").unwrap(),
            open: lib.symbol("blosc2_schunk_open_udio").unwrap(),
            free: lib.symbol("blosc2_schunk_free").unwrap(),
            append: lib.symbol("blosc2_schunk_append_chunk").unwrap(),
            insert: lib.symbol("blosc2_schunk_insert_chunk").unwrap(),
            update: lib.symbol("blosc2_schunk_update_chunk").unwrap(),
            delete: lib.symbol("blosc2_schunk_delete_chunk").unwrap(),
            reorder: lib.symbol("blosc2_schunk_reorder_offsets").unwrap(),
            fill: lib.symbol("blosc2_schunk_fill_special").unwrap(),
            get: lib.symbol("blosc2_schunk_get_chunk").unwrap(),
            lazy: lib.symbol("blosc2_schunk_get_lazychunk").unwrap(),
            to_buffer: lib.symbol("blosc2_schunk_to_buffer").unwrap(),
            meta_add: lib.symbol("blosc2_meta_add").unwrap(),
            meta_update: lib.symbol("blosc2_meta_update").unwrap(),
            vlmeta_add: lib.symbol("blosc2_vlmeta_add").unwrap(),
            vlmeta_delete: lib.symbol("blosc2_vlmeta_delete").unwrap(),
            refresh: lib.symbol("blosc2_schunk_refresh").unwrap(),
        })
    }
}

/// A super-chunk of the C library.
pub struct Theirs<'a> {
    pub api: &'a Api,
    pub raw: Raw,
    _io: Option<Box<(Io, bool)>>,
}

impl Drop for Theirs<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` is a live super-chunk.
        assert_eq!(unsafe { (self.api.free)(self.raw) }, 0);
    }
}

/// A path as C takes it.
pub fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// The file system, with locking or without.
pub fn io_for(locking: bool) -> Box<(Io, bool)> {
    let mut io = Box::new((Io { id: 0, name: ptr::null(), params: ptr::null_mut() }, locking));
    // `blosc2_stdio_params` is one bool.
    io.0.params = (&raw mut io.1).cast();
    io
}

impl<'a> Theirs<'a> {
    /// A new super-chunk, with default parameters and typesize 4.
    pub fn create(api: &'a Api, path: Option<&Path>, contiguous: bool, locking: bool) -> Theirs<'a> {
        let mut cparams = api.lib.cparams();
        cparams.typesize = 4;
        let path = path.map(c_path);
        let mut io = io_for(locking);
        let mut storage = Storage {
            contiguous,
            urlpath: path.as_ref().map_or(ptr::null_mut(), |path| path.as_ptr().cast_mut()),
            cparams: &mut cparams,
            dparams: ptr::null_mut(),
            io: &mut io.0,
        };
        // SAFETY: all pointers are null or valid, and the structs laid out as in the headers.
        let raw = unsafe { (api.new)(&mut storage) };
        assert!(!raw.is_null(), "the C library creates the frame");
        Theirs { api, raw, _io: Some(io) }
    }

    /// Opens a frame that must be fine.
    pub fn open(api: &'a Api, path: &Path, locking: bool) -> Theirs<'a> {
        let name = c_path(path);
        let io = io_for(locking);
        // SAFETY: a NUL-terminated path and a valid struct.
        let raw = unsafe { (api.open)(name.as_ptr(), &io.0) };
        assert!(!raw.is_null(), "the C library opens {}", path.display());
        Theirs { api, raw, _io: Some(io) }
    }

    /// Number of chunks, as the handle knows it.
    pub fn nchunks(&self) -> usize {
        // SAFETY: the field of `blosc2_schunk` at this offset.
        let n = unsafe { self.raw.byte_add(40).cast::<i64>().read() };
        usize::try_from(n).unwrap()
    }

    /// Appends a chunk; the code.
    pub fn append(&self, chunk: &[u8]) -> i64 {
        // SAFETY: a whole chunk.
        unsafe { (self.api.append)(self.raw, chunk.as_ptr(), true) }
    }

    /// Inserts a chunk; the code.
    pub fn insert(&self, at: usize, chunk: &[u8]) -> i64 {
        // SAFETY: a whole chunk.
        unsafe { (self.api.insert)(self.raw, int(at), chunk.as_ptr(), true) }
    }

    /// Replaces a chunk; the code.
    pub fn update(&self, at: usize, chunk: &[u8]) -> i64 {
        // SAFETY: a whole chunk.
        unsafe { (self.api.update)(self.raw, int(at), chunk.as_ptr(), true) }
    }

    /// Deletes a chunk; the code.
    pub fn delete(&self, at: usize) -> i64 {
        // SAFETY: a live super-chunk.
        unsafe { (self.api.delete)(self.raw, int(at)) }
    }

    /// The bytes of a chunk, or of its lazy form, or the code.
    pub fn chunk(&self, at: usize, lazy: bool) -> Result<Vec<u8>, i32> {
        let (mut bytes, mut needs_free) = (ptr::null_mut(), false);
        let get = if lazy { self.api.lazy } else { self.api.get };
        // SAFETY: valid places for the results.
        let n = unsafe { get(self.raw, int(at), &mut bytes, &mut needs_free) };
        let Ok(len) = usize::try_from(n) else { return Err(n) };
        // SAFETY: that many bytes are there.
        let chunk = unsafe { std::slice::from_raw_parts(bytes, len) }.to_vec();
        if needs_free {
            // SAFETY: the library says that it is from malloc and ours.
            unsafe { libc::free(bytes.cast()) };
        }
        Ok(chunk)
    }

    /// The bytes of a frame in memory.
    pub fn frame(&self) -> Vec<u8> {
        let (mut bytes, mut needs_free) = (ptr::null_mut(), false);
        // SAFETY: valid places for the results.
        let n = unsafe { (self.api.to_buffer)(self.raw, &mut bytes, &mut needs_free) };
        assert!(!needs_free);
        // SAFETY: that many bytes are there until the next change.
        unsafe { std::slice::from_raw_parts(bytes, usize::try_from(n).unwrap()) }.to_vec()
    }

    /// Takes over what others changed; the code.
    pub fn refresh(&self) -> i32 {
        // SAFETY: a live super-chunk.
        unsafe { (self.api.refresh)(self.raw) }
    }

    /// Adds a metalayer; the code.
    pub fn meta_add(&self, name: &str, content: &[u8]) -> i32 {
        let name = CString::new(name).unwrap();
        let len = i32::try_from(content.len()).unwrap();
        // SAFETY: pointers and lengths of live buffers.
        unsafe { (self.api.meta_add)(self.raw, name.as_ptr(), content.as_ptr(), len) }
    }

    /// Adds a variable-length metalayer; the code.
    pub fn vlmeta_add(&self, name: &str, content: &[u8]) -> i32 {
        let name = CString::new(name).unwrap();
        let len = i32::try_from(content.len()).unwrap();
        // SAFETY: pointers and lengths of live buffers; null asks for default parameters.
        unsafe { (self.api.vlmeta_add)(self.raw, name.as_ptr(), content.as_ptr(), len, ptr::null_mut()) }
    }
}

/// A chunk number as C takes it.
pub fn int(at: usize) -> i64 {
    i64::try_from(at).unwrap()
}
