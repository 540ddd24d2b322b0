//! The super-chunk functions of one copy of the library, behind types that keep pointers and lengths together.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::bench::clib::{CParams, Clib, Ctx, DParams};

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
    /// A contiguous frame in a file that is mapped into memory.
    Mapped,
}

impl Place {
    /// All places, in the order of the names of operations.
    pub const ALL: [Self; 5] = [Self::List, Self::Frame, Self::File, Self::Dir, Self::Mapped];

    fn is_on_disk(self) -> bool {
        matches!(self, Self::File | Self::Dir | Self::Mapped)
    }

    fn is_contiguous(self) -> bool {
        matches!(self, Self::Frame | Self::File | Self::Mapped)
    }
}

/// `blosc2_storage`.
#[repr(C)]
pub(super) struct Storage {
    pub(super) contiguous: bool,
    pub(super) urlpath: *mut c_char,
    pub(super) cparams: *mut CParams,
    pub(super) dparams: *mut DParams,
    pub(super) io: *const Io,
}

/// `blosc2_io`.
#[repr(C)]
pub(super) struct Io {
    id: u8,
    name: *const c_char,
    params: *mut c_void,
}

/// `blosc2_stdio_mmap`: how a file is mapped. It is used as long as the super-chunk is open.
#[repr(C)]
struct Mapping {
    mode: *const c_char,
    initial_mapping_size: usize,
    /// C `bool`.
    needs_free: u8,
    state: [usize; 4],
    /// C `bool`.
    is_memory_only: u8,
    file: *mut c_void,
    fd: c_int,
    flags: [i64; 2],
}

/// `BLOSC2_IO_FILESYSTEM_MMAP`.
const MAPPED: u8 = 1;

impl Mapping {
    /// What super-chunks are given to use this mapping.
    fn io(&mut self) -> Io {
        Io { id: MAPPED, name: c"mapped".as_ptr(), params: (&raw mut *self).cast() }
    }
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
    open_udio = "blosc2_schunk_open_udio": fn(*const c_char, *const Io) -> Raw;
    mapping = "blosc2_get_blosc2_stdio_mmap_defaults": fn() -> Mapping;
    from_buffer = "blosc2_schunk_from_buffer": fn(*mut u8, i64, bool) -> Raw;
    to_buffer = "blosc2_schunk_to_buffer": fn(Raw, *mut *mut u8, *mut bool) -> i64;
    to_file = "blosc2_schunk_to_file": fn(Raw, *const c_char) -> i64;
    avoid_free = "blosc2_schunk_avoid_cframe_free": fn(Raw, bool) -> ();
    free = "blosc2_schunk_free": fn(Raw) -> c_int;
    append_buffer = "blosc2_schunk_append_buffer": fn(Raw, *const c_void, i32) -> i64;
    insert = "blosc2_schunk_insert_chunk": fn(Raw, i64, *const u8, bool) -> i64;
    update = "blosc2_schunk_update_chunk": fn(Raw, i64, *const u8, bool) -> i64;
    delete = "blosc2_schunk_delete_chunk": fn(Raw, i64) -> i64;
    decompress = "blosc2_schunk_decompress_chunk": fn(Raw, i64, *mut c_void, i32) -> c_int;
    get_chunk = "blosc2_schunk_get_chunk": fn(Raw, i64, *mut *mut u8, *mut bool) -> c_int;
    get_lazychunk = "blosc2_schunk_get_lazychunk": fn(Raw, i64, *mut *mut u8, *mut bool) -> c_int;
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
    Path { place: Place, params: CParams, path: TempPath },
}

/// A super-chunk; released, with what it has on disk, when dropped.
pub struct Schunk<'a> {
    api: Api<'a>,
    raw: Raw,
    path: Option<TempPath>,
    /// In use until the super-chunk is released.
    _mapping: Option<Box<Mapping>>,
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
        let mut mapping = (place == Place::Mapped).then(|| self.new_mapping(c"w+"));
        let io = mapping.as_mut().map(|mapping| mapping.io());
        let mut storage = Storage {
            contiguous: place.is_contiguous(),
            urlpath: urlpath.as_ref().map_or(null_mut(), |path| path.as_ptr().cast_mut()),
            cparams: &mut cparams,
            dparams: &mut dparams,
            io: io.as_ref().map_or(null(), std::ptr::from_ref),
        };
        self.schunk((make(&mut storage), mapping), path, params)
    }

    fn schunk(
        self,
        (raw, mapping): (Raw, Option<Box<Mapping>>),
        path: Option<TempPath>,
        params: &CParams,
    ) -> Result<Schunk<'a>, String> {
        if raw.is_null() {
            return Err(self.fails("making a super-chunk", "NULL"));
        }
        Ok(Schunk { api: self, raw, path, _mapping: mapping, params: *params })
    }

    fn new_mapping(self, mode: &'static CStr) -> Box<Mapping> {
        // SAFETY: no preconditions.
        Box::new(Mapping { mode: mode.as_ptr(), ..unsafe { (self.mapping)() } })
    }

    /// Opens what is at `path`, and the mapping that has to live as long, if it is mapped.
    fn open_path(self, place: Place, path: &CStr) -> (Raw, Option<Box<Mapping>>) {
        if place != Place::Mapped {
            // SAFETY: a NUL-terminated string.
            return (unsafe { (self.open)(path.as_ptr()) }, None);
        }
        let mut mapping = self.new_mapping(c"r+");
        // SAFETY: a NUL-terminated string; the parameters live as long as the caller says.
        let raw = unsafe { (self.open_udio)(path.as_ptr(), &mapping.io()) };
        (raw, Some(mapping))
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
            Content::Path { place, params, path: from } => {
                let path = TempPath::new();
                path.copy_from(&from.0).map_err(|e| e.to_string())?;
                let opened = self.open_path(*place, &path.c_string());
                self.schunk(opened, Some(path), params)
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
        self.schunk((raw, None), None, params)
    }

    /// Opens and closes what `content` holds. `buffer` is a copy of it, if it is in memory.
    pub fn open_and_close(self, content: &Content, path: &CStr, buffer: &mut [u8]) {
        let (raw, _mapping) = match content {
            Content::Bytes { place, .. } => {
                let len = i64::try_from(buffer.len()).expect("some MiB");
                // SAFETY: the buffer is copied, or only read until the super-chunk is freed.
                (unsafe { (self.from_buffer)(buffer.as_mut_ptr(), len, *place == Place::List) }, None)
            }
            Content::Path { place, .. } => self.open_path(*place, path),
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
            Content::Path { path, .. } => path.c_string(),
        }
    }

    /// A copy of the bytes, if the content is in memory.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Content::Bytes { bytes, .. } => bytes.clone(),
            Content::Path { .. } => Vec::new(),
        }
    }
}

fn len(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).expect("some MiB")
}

/// Calls that cannot fail in a bench: what fails is a bug in one of the libraries.
impl<'a> Schunk<'a> {
    /// Closes the super-chunk; its content in the form of `place`.
    pub fn into_content(mut self, place: Place) -> Result<Content, String> {
        if let Some(path) = self.path.take() {
            return Ok(Content::Path { place, params: self.params, path });
        }
        Ok(Content::Bytes { place, params: self.params, bytes: self.to_buffer(<[u8]>::to_vec) })
    }

    /// Calls `look` with the super-chunk as a contiguous frame.
    pub fn to_buffer<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: the answers go to live variables.
        let get = |data: &mut _, owned: &mut _| unsafe { (self.api.to_buffer)(self.raw, data, owned) };
        self.lent("to_buffer", get, look)
    }

    /// Stores the super-chunk in a file, which is removed then.
    pub fn to_file(&self) {
        let path = TempPath::new();
        // SAFETY: a NUL-terminated string.
        let size = unsafe { (self.api.to_file)(self.raw, path.c_string().as_ptr()) };
        assert!(size > 0, "{}", self.api.fails("to_file", size));
    }

    /// A copy as a contiguous frame in memory.
    pub fn copy(&self) -> Schunk<'a> {
        // SAFETY: the storage and what it points to live through the call, which copies them.
        let made = self
            .api
            .make(Place::Frame, &self.params, |storage| unsafe { (self.api.copy)(self.raw, storage) });
        made.unwrap_or_else(|why| panic!("{why}"))
    }

    /// Calls `look` with the bytes that `get` lends or gives.
    fn lent<C: Copy + std::fmt::Display, R>(
        &self,
        what: &str,
        get: impl FnOnce(&mut *mut u8, &mut bool) -> C,
        look: impl FnOnce(&[u8]) -> R,
    ) -> R
    where
        usize: TryFrom<C>,
    {
        let (mut data, mut needs_free) = (null_mut(), false);
        let size = get(&mut data, &mut needs_free);
        let size = usize::try_from(size).unwrap_or_else(|_| panic!("{}", self.api.fails(what, size)));
        // SAFETY: on success `data` has `size` bytes, as long as the super-chunk lives.
        let answer = look(unsafe { std::slice::from_raw_parts(data, size) });
        if needs_free {
            // SAFETY: the library says that the bytes are from malloc and now ours.
            unsafe { free(data.cast()) };
        }
        answer
    }

    /// Calls `look` with a compressed chunk.
    pub fn chunk<R>(&self, nchunk: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        let get = |data: &mut _, owned: &mut _| {
            // SAFETY: the answers go to live variables.
            unsafe { (self.api.get_chunk)(self.raw, number(nchunk), data, owned) }
        };
        self.lent("get_chunk", get, look)
    }

    /// Calls `look` with a chunk, of those on disk with its lazy form.
    pub fn lazy_chunk<R>(&self, nchunk: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        let get = |data: &mut _, owned: &mut _| {
            // SAFETY: the answers go to live variables.
            unsafe { (self.api.get_lazychunk)(self.raw, number(nchunk), data, owned) }
        };
        self.lent("get_lazychunk", get, look)
    }

    /// A context that reads lazy chunks of this super-chunk, which outlives it.
    pub fn dctx(&self) -> Ctx<'a> {
        self.api.lib.dctx_of(1, self.raw)
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
