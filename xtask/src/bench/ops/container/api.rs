//! The super-chunk functions of one copy of the library, behind types that keep pointers and lengths together.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::bench::clib::{CParams, Clib, DParams};

/// Where a super-chunk keeps its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One buffer per chunk.
    List,
    /// A contiguous frame in memory.
    Frame,
    /// A contiguous frame in a file.
    File,
    /// A sparse frame.
    Dir,
}

impl Place {
    /// All places, in the order of the names of operations.
    pub const ALL: [Self; 4] = [Self::List, Self::Frame, Self::File, Self::Dir];

    fn is_on_disk(self) -> bool {
        matches!(self, Self::File | Self::Dir)
    }
}

/// `blosc2_storage`.
#[repr(C)]
struct Storage {
    contiguous: bool,
    urlpath: *mut c_char,
    cparams: *mut CParams,
    dparams: *mut DParams,
    io: *mut c_void,
}

/// A `blosc2_schunk`, opaque here.
type Raw = *mut c_void;

macro_rules! functions {
    ($( $field:ident = $name:literal: fn($($arg:ty),*) -> $ret:ty; )*) => {
        /// The functions in use, of one copy that outlives them.
        #[derive(Clone, Copy)]
        pub struct Api<'a> {
            lib: &'a Clib,
            $( $field: unsafe extern "C" fn($($arg),*) -> $ret, )*
        }

        impl<'a> Api<'a> {
            /// Looks the functions up in `lib`.
            pub fn find(lib: &'a Clib) -> Result<Self, String> {
                Ok(Self { lib, $(
                    // SAFETY: the type is the one that `blosc2.h` declares; the borrow of `lib` keeps the copy loaded.
                    $field: unsafe { lib.symbol($name) }?,
                )* })
            }
        }
    };
}

functions! {
    new = "blosc2_schunk_new": fn(*mut Storage) -> Raw;
    copy = "blosc2_schunk_copy": fn(Raw, *mut Storage) -> Raw;
    open = "blosc2_schunk_open": fn(*const c_char) -> Raw;
    from_buffer = "blosc2_schunk_from_buffer": fn(*mut u8, i64, bool) -> Raw;
    to_buffer = "blosc2_schunk_to_buffer": fn(Raw, *mut *mut u8, *mut bool) -> i64;
    avoid_free = "blosc2_schunk_avoid_cframe_free": fn(Raw, bool) -> ();
    free = "blosc2_schunk_free": fn(Raw) -> c_int;
    append_buffer = "blosc2_schunk_append_buffer": fn(Raw, *const c_void, i32) -> i64;
    insert = "blosc2_schunk_insert_chunk": fn(Raw, i64, *const u8, bool) -> i64;
    update = "blosc2_schunk_update_chunk": fn(Raw, i64, *const u8, bool) -> i64;
    delete = "blosc2_schunk_delete_chunk": fn(Raw, i64) -> i64;
    decompress = "blosc2_schunk_decompress_chunk": fn(Raw, i64, *mut c_void, i32) -> c_int;
    get_slice = "blosc2_schunk_get_slice_buffer": fn(Raw, i64, i64, *mut c_void) -> c_int;
    set_slice = "blosc2_schunk_set_slice_buffer": fn(Raw, i64, i64, *const c_void) -> c_int;
    get_sparse = "blosc2_schunk_get_sparse_buffer": fn(Raw, i64, *const i64, *mut c_void) -> c_int;
    meta_add = "blosc2_meta_add": fn(Raw, *const c_char, *const u8, i32) -> c_int;
    vlmeta_add = "blosc2_vlmeta_add": fn(Raw, *const c_char, *const u8, i32, *mut CParams) -> c_int;
    vlmeta_update = "blosc2_vlmeta_update": fn(Raw, *const c_char, *const u8, i32, *mut CParams) -> c_int;
    vlmeta_get = "blosc2_vlmeta_get": fn(Raw, *const c_char, *mut *mut u8, *mut i32) -> c_int;
}

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(ptr: *mut c_void);
}

/// A path that nothing else uses; what is there goes away with it.
#[derive(Debug)]
pub struct TempPath(PathBuf);

impl TempPath {
    /// A path in the directory for temporary files.
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("blosc2-bench-{}-{number}", std::process::id())))
    }

    fn c_string(&self) -> CString {
        CString::new(self.0.as_os_str().as_bytes()).expect("paths hold no NUL")
    }

    fn copy_from(&self, from: &Path) -> std::io::Result<()> {
        if !from.is_dir() {
            return fs::copy(from, &self.0).map(drop);
        }
        fs::create_dir(&self.0)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            fs::copy(entry.path(), self.0.join(entry.file_name()))?;
        }
        Ok(())
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        // Whatever was made there; if it cannot be removed, the system will.
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}

/// What a super-chunk consists of, to be opened by any copy of the library.
pub enum Content {
    /// The bytes of a contiguous frame, and the parameters of the super-chunk, which lives in this place.
    Bytes { place: Place, params: CParams, bytes: Vec<u8> },
    /// A file or directory, and the same.
    Path(TempPath, CParams),
}

/// A super-chunk; released, with what it has on disk, when dropped.
pub struct Schunk<'a> {
    api: Api<'a>,
    raw: Raw,
    path: Option<TempPath>,
    /// How it was made, for copies of it.
    params: CParams,
}

impl Drop for Schunk<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.api.free)(self.raw) };
    }
}

impl<'a> Api<'a> {
    fn fails(&self, what: &str, code: impl std::fmt::Display) -> String {
        format!("{}: {what}: {code}", self.lib.path.display())
    }

    /// An empty super-chunk.
    pub fn create(self, place: Place, params: &CParams) -> Result<Schunk<'a>, String> {
        // SAFETY: the storage and what it points to live through the call, which copies them.
        self.make(place, params, |storage| unsafe { (self.new)(storage) })
    }

    /// What `make` makes in a new `place`.
    fn make(
        self,
        place: Place,
        params: &CParams,
        make: impl FnOnce(*mut Storage) -> Raw,
    ) -> Result<Schunk<'a>, String> {
        let mut cparams = *params;
        // SAFETY: no preconditions.
        let mut dparams = unsafe { (self.lib.f.blosc2_get_blosc2_dparams_defaults)() };
        dparams.nthreads = params.nthreads;
        let path = place.is_on_disk().then(TempPath::new);
        let urlpath = path.as_ref().map(TempPath::c_string);
        let mut storage = Storage {
            contiguous: matches!(place, Place::Frame | Place::File),
            urlpath: urlpath.as_ref().map_or(null_mut(), |path| path.as_ptr().cast_mut()),
            cparams: &mut cparams,
            dparams: &mut dparams,
            io: null_mut(),
        };
        self.schunk(make(&mut storage), path, params)
    }

    fn schunk(self, raw: Raw, path: Option<TempPath>, params: &CParams) -> Result<Schunk<'a>, String> {
        if raw.is_null() {
            return Err(self.fails("making a super-chunk", "NULL"));
        }
        Ok(Schunk { api: self, raw, path, params: *params })
    }

    /// A super-chunk with a copy of `content`.
    pub fn open_copy(self, content: &Content) -> Result<Schunk<'a>, String> {
        match content {
            Content::Bytes { place: Place::List, params, bytes } => {
                // Not opened as a copy: the C library cannot append to such super-chunks.
                let frame = self.open_frame(bytes, params)?;
                // SAFETY: as for `create`; the frame is live.
                self.make(Place::List, params, |storage| unsafe { (self.copy)(frame.raw, storage) })
            }
            Content::Bytes { params, bytes, .. } => self.open_frame(bytes, params),
            Content::Path(from, params) => {
                let path = TempPath::new();
                path.copy_from(&from.0).map_err(|e| e.to_string())?;
                // SAFETY: a NUL-terminated string.
                let raw = unsafe { (self.open)(path.c_string().as_ptr()) };
                self.schunk(raw, Some(path), params)
            }
        }
    }

    /// A frame in memory, a copy of `bytes` that the library may change.
    fn open_frame(self, bytes: &[u8], params: &CParams) -> Result<Schunk<'a>, String> {
        // SAFETY: the memory is as large as the copy.
        let copy = unsafe { malloc(bytes.len()) }.cast::<u8>();
        assert!(!copy.is_null());
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len()) };
        let len = i64::try_from(bytes.len()).expect("some MiB");
        // SAFETY: the frame is a copy from malloc, which becomes the library's, or is freed here.
        let raw = unsafe {
            let raw = (self.from_buffer)(copy, len, false);
            if raw.is_null() {
                free(copy.cast())
            } else {
                (self.avoid_free)(raw, false)
            }
            raw
        };
        self.schunk(raw, None, params)
    }

    /// Opens and closes what `content` holds. `buffer` is a copy of it, if it is in memory.
    pub fn open_and_close(self, content: &Content, path: &CStr, buffer: &mut [u8]) {
        let raw = match content {
            Content::Bytes { place, .. } => {
                let len = i64::try_from(buffer.len()).expect("some MiB");
                // SAFETY: the buffer is copied, or only read until the super-chunk is freed.
                unsafe { (self.from_buffer)(buffer.as_mut_ptr(), len, *place == Place::List) }
            }
            // SAFETY: a NUL-terminated string.
            Content::Path(..) => unsafe { (self.open)(path.as_ptr()) },
        };
        assert!(!raw.is_null());
        // SAFETY: just made.
        unsafe { (self.free)(raw) };
    }
}

impl Content {
    /// The path as C takes it; empty for content in memory.
    pub fn path(&self) -> CString {
        match self {
            Content::Bytes { .. } => CString::default(),
            Content::Path(path, _) => path.c_string(),
        }
    }

    /// A copy of the bytes, if the content is in memory.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Content::Bytes { bytes, .. } => bytes.clone(),
            Content::Path(..) => Vec::new(),
        }
    }
}

fn len(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).expect("some MiB")
}

/// Calls that cannot fail in a bench: what fails is a bug in one of the libraries.
impl Schunk<'_> {
    /// Closes the super-chunk; its content in the form of `place`.
    pub fn into_content(mut self, place: Place) -> Result<Content, String> {
        if let Some(path) = self.path.take() {
            return Ok(Content::Path(path, self.params));
        }
        let (mut data, mut needs_free) = (null_mut(), false);
        // SAFETY: the answers go to live variables.
        let size = unsafe { (self.api.to_buffer)(self.raw, &mut data, &mut needs_free) };
        let size = usize::try_from(size).map_err(|_| self.api.fails("blosc2_schunk_to_buffer", size))?;
        // SAFETY: on success `data` has `size` bytes, as long as the super-chunk lives.
        let bytes = unsafe { std::slice::from_raw_parts(data, size) }.to_vec();
        if needs_free {
            // SAFETY: the library says that the frame is from malloc and now ours.
            unsafe { free(data.cast()) };
        }
        Ok(Content::Bytes { place, params: self.params, bytes })
    }

    /// Compresses and appends `data`.
    pub fn append(&self, data: &[u8]) {
        // SAFETY: pointer and length come from a slice.
        let code = unsafe { (self.api.append_buffer)(self.raw, data.as_ptr().cast(), len(data)) };
        assert!(code > 0, "{}", self.api.fails("append_buffer", code));
    }

    /// Inserts a copy of `chunk`.
    pub fn insert(&self, nchunk: usize, chunk: &[u8]) {
        // SAFETY: `chunk` is a whole chunk, which is copied.
        let code = unsafe { (self.api.insert)(self.raw, number(nchunk), chunk.as_ptr(), true) };
        assert!(code > 0, "{}", self.api.fails("insert_chunk", code));
    }

    /// Replaces a chunk by a copy of `chunk`.
    pub fn update(&self, nchunk: usize, chunk: &[u8]) {
        // SAFETY: as for `insert`.
        let code = unsafe { (self.api.update)(self.raw, number(nchunk), chunk.as_ptr(), true) };
        assert!(code > 0, "{}", self.api.fails("update_chunk", code));
    }

    /// Deletes a chunk.
    pub fn delete(&self, nchunk: usize) {
        // SAFETY: the super-chunk is live.
        let code = unsafe { (self.api.delete)(self.raw, number(nchunk)) };
        assert!(code >= 0, "{}", self.api.fails("delete_chunk", code));
    }

    /// Decompresses a chunk to the front of `dest`; returns its size.
    pub fn read(&self, nchunk: usize, dest: &mut [u8]) -> usize {
        // SAFETY: pointer and length come from a slice.
        let code =
            unsafe { (self.api.decompress)(self.raw, number(nchunk), dest.as_mut_ptr().cast(), len(dest)) };
        usize::try_from(code).unwrap_or_else(|_| panic!("{}", self.api.fails("decompress_chunk", code)))
    }

    /// Copies items of `typesize` bytes from item `start` on to all of `dest`.
    pub fn get_slice(&self, start: i64, typesize: usize, dest: &mut [u8]) {
        let stop = start + number(dest.len() / typesize);
        // SAFETY: `dest` has room for exactly these items.
        let code = unsafe { (self.api.get_slice)(self.raw, start, stop, dest.as_mut_ptr().cast()) };
        assert!(code >= 0, "{}", self.api.fails("get_slice_buffer", code));
    }

    /// Writes the items of `typesize` bytes in `src` over those from item `start` on.
    pub fn set_slice(&self, start: i64, typesize: usize, src: &[u8]) {
        let stop = start + number(src.len() / typesize);
        // SAFETY: `src` has exactly these items.
        let code = unsafe { (self.api.set_slice)(self.raw, start, stop, src.as_ptr().cast()) };
        assert!(code >= 0, "{}", self.api.fails("set_slice_buffer", code));
    }

    /// Copies the items `coords` of `typesize` bytes to `dest`.
    pub fn get_sparse(&self, coords: &[i64], typesize: usize, dest: &mut [u8]) {
        assert!(dest.len() >= coords.len() * typesize);
        let count = number(coords.len());
        // SAFETY: `dest` has room for these items.
        let code =
            unsafe { (self.api.get_sparse)(self.raw, count, coords.as_ptr(), dest.as_mut_ptr().cast()) };
        assert!(code >= 0, "{}", self.api.fails("get_sparse_buffer", code));
    }

    /// Adds a fixed metalayer.
    pub fn meta_add(&self, name: &CStr, content: &[u8]) {
        // SAFETY: a string, and pointer and length of a slice.
        let code = unsafe { (self.api.meta_add)(self.raw, name.as_ptr(), content.as_ptr(), len(content)) };
        assert!(code >= 0, "{}", self.api.fails("meta_add", code));
    }

    /// Adds a variable-length metalayer.
    pub fn vlmeta_add(&self, name: &CStr, content: &[u8]) {
        let (name, at) = (name.as_ptr(), content.as_ptr());
        // SAFETY: a string, pointer and length of a slice, and no parameters.
        let code = unsafe { (self.api.vlmeta_add)(self.raw, name, at, len(content), null_mut()) };
        assert!(code >= 0, "{}", self.api.fails("vlmeta_add", code));
    }

    /// Replaces a variable-length metalayer.
    pub fn vlmeta_update(&self, name: &CStr, content: &[u8]) {
        let (name, at) = (name.as_ptr(), content.as_ptr());
        // SAFETY: as for `vlmeta_add`.
        let code = unsafe { (self.api.vlmeta_update)(self.raw, name, at, len(content), null_mut()) };
        assert!(code >= 0, "{}", self.api.fails("vlmeta_update", code));
    }

    /// Calls `look` with the content of a variable-length metalayer.
    pub fn vlmeta_get<R>(&self, name: &CStr, look: impl FnOnce(&[u8]) -> R) -> R {
        let (mut data, mut size) = (null_mut(), -1);
        // SAFETY: a string; the answers go to live variables.
        let code = unsafe { (self.api.vlmeta_get)(self.raw, name.as_ptr(), &mut data, &mut size) };
        assert!(code >= 0 && !data.is_null(), "{}", self.api.fails("vlmeta_get", code));
        let size = usize::try_from(size).expect("set on success");
        // SAFETY: on success `data` is from malloc, has `size` bytes, and is ours.
        let answer = look(unsafe { std::slice::from_raw_parts(data, size) });
        // SAFETY: as above.
        unsafe { free(data.cast()) };
        answer
    }
}

fn number(value: usize) -> i64 {
    i64::try_from(value).expect("fits")
}
