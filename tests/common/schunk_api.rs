//! Super-chunks of one loaded copy of the library: the structs of `blosc2.h`, its functions, and an owning handle.
//!
//! As in [`super::clib`], the wrappers return the codes of the C API unchanged. The fields of a handle are read through
//! its pointer, as C programs do.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::clib::{CParams, Clib, DParams, RawContext};
use super::malloc;

/// `blosc2_storage`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Storage {
    /// One contiguous frame, or chunks apart from each other.
    pub contiguous: bool,
    /// The file or directory, or null.
    pub urlpath: *const c_char,
    /// Compression parameters, or null.
    pub cparams: *mut CParams,
    /// Decompression parameters, or null.
    pub dparams: *mut DParams,
    /// I/O back-end, or null.
    pub io: *mut c_void,
}

/// `blosc2_metalayer`.
#[repr(C)]
pub struct Metalayer {
    /// NUL-terminated.
    pub name: *const c_char,
    /// `content_len` bytes.
    pub content: *const u8,
    /// Bytes of the content.
    pub content_len: i32,
}

/// `blosc2_schunk`.
#[repr(C)]
#[allow(missing_docs)] // the names of the header
pub struct SchunkFields {
    pub version: u8,
    pub compcode: u8,
    pub compcode_meta: u8,
    pub clevel: u8,
    pub splitmode: u8,
    pub typesize: i32,
    pub blocksize: i32,
    pub chunksize: i32,
    pub flags2: u8,
    pub use_dict: u8,
    pub filters: [u8; 6],
    pub filters_meta: [u8; 6],
    pub nchunks: i64,
    pub current_nchunk: i64,
    pub nbytes: i64,
    pub cbytes: i64,
    pub data: *mut *mut u8,
    pub data_len: usize,
    pub storage: *mut Storage,
    pub frame: *mut c_void,
    pub cctx: *mut RawContext,
    pub dctx: *mut RawContext,
    pub metalayers: [*mut Metalayer; 16],
    pub nmetalayers: u16,
    pub vlmetalayers: [*mut Metalayer; 8192],
    pub nvlmetalayers: i16,
    pub tuner_params: *mut c_void,
    pub tuner_id: c_int,
    pub ndim: i8,
    pub blockshape: *mut i64,
    pub view: bool,
    pub change_tick: i64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SchunkFields>() == 65840 && size_of::<Storage>() == 40);

/// A `blosc2_schunk *`.
pub type RawSchunk = *mut SchunkFields;

/// Declares a table of functions and how it is filled from a library.
macro_rules! table {
    ($table:ident { $( $name:ident: fn($($arg:ty),*) $(-> $ret:ty)?; )* }) => {
        /// Pointers to functions of one loaded copy, with the signatures of the headers.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub struct $table {
            $( pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?, )*
        }

        impl $table {
            /// The functions of `lib`.
            pub fn of(lib: &Clib) -> Self {
                let found = || -> Result<Self, String> {
                    Ok(Self { $(
                        // SAFETY: the type is the one that the headers declare for this name.
                        $name: unsafe { lib.symbol(stringify!($name)) }?,
                    )* })
                };
                found().unwrap_or_else(|why| panic!("{}: {why}", lib.path.display()))
            }
        }
    };
}
#[allow(unused_imports)] // not every test has arrays
pub(crate) use table;

table! { SchunkFunctions {
    blosc2_schunk_new: fn(*mut Storage) -> RawSchunk;
    blosc2_schunk_copy: fn(RawSchunk, *mut Storage) -> RawSchunk;
    blosc2_schunk_from_buffer: fn(*mut u8, i64, bool) -> RawSchunk;
    blosc2_schunk_avoid_cframe_free: fn(RawSchunk, bool);
    blosc2_schunk_open: fn(*const c_char) -> RawSchunk;
    blosc2_schunk_open_offset: fn(*const c_char, i64) -> RawSchunk;
    blosc2_schunk_to_buffer: fn(RawSchunk, *mut *mut u8, *mut bool) -> i64;
    blosc2_schunk_to_file: fn(RawSchunk, *const c_char) -> i64;
    blosc2_schunk_append_file: fn(RawSchunk, *const c_char) -> i64;
    blosc2_schunk_free: fn(RawSchunk) -> c_int;
    blosc2_schunk_refresh: fn(RawSchunk) -> c_int;
    blosc2_schunk_append_chunk: fn(RawSchunk, *mut u8, bool) -> i64;
    blosc2_schunk_update_chunk: fn(RawSchunk, i64, *mut u8, bool) -> i64;
    blosc2_schunk_insert_chunk: fn(RawSchunk, i64, *mut u8, bool) -> i64;
    blosc2_schunk_delete_chunk: fn(RawSchunk, i64) -> i64;
    blosc2_schunk_append_buffer: fn(RawSchunk, *const c_void, i32) -> i64;
    blosc2_schunk_decompress_chunk: fn(RawSchunk, i64, *mut c_void, i32) -> c_int;
    blosc2_schunk_get_chunk: fn(RawSchunk, i64, *mut *mut u8, *mut bool) -> c_int;
    blosc2_schunk_get_lazychunk: fn(RawSchunk, i64, *mut *mut u8, *mut bool) -> c_int;
    blosc2_schunk_get_vlblock: fn(RawSchunk, i64, i32, *mut *mut u8, *mut i32) -> c_int;
    blosc2_schunk_get_slice_buffer: fn(RawSchunk, i64, i64, *mut c_void) -> c_int;
    blosc2_schunk_set_slice_buffer: fn(RawSchunk, i64, i64, *mut c_void) -> c_int;
    blosc2_schunk_get_sparse_buffer: fn(RawSchunk, i64, *const i64, *mut c_void) -> c_int;
    blosc2_get_slice_nchunks: fn(RawSchunk, *mut i64, *mut i64, *mut *mut i64) -> i64;
    blosc2_schunk_get_cparams: fn(RawSchunk, *mut *mut CParams) -> c_int;
    blosc2_schunk_get_dparams: fn(RawSchunk, *mut *mut DParams) -> c_int;
    blosc2_schunk_reorder_offsets: fn(RawSchunk, *mut i64) -> c_int;
    blosc2_schunk_frame_len: fn(RawSchunk) -> i64;
    blosc2_schunk_fill_special: fn(RawSchunk, i64, c_int, i32) -> i64;
    blosc2_frame_get_offsets: fn(RawSchunk) -> *mut i64;
    blosc2_meta_add: fn(RawSchunk, *const c_char, *mut u8, i32) -> c_int;
    blosc2_meta_update: fn(RawSchunk, *const c_char, *mut u8, i32) -> c_int;
    blosc2_vlmeta_exists: fn(RawSchunk, *const c_char) -> c_int;
    blosc2_vlmeta_add: fn(RawSchunk, *const c_char, *mut u8, i32, *mut CParams) -> c_int;
    blosc2_vlmeta_update: fn(RawSchunk, *const c_char, *mut u8, i32, *mut CParams) -> c_int;
    blosc2_vlmeta_get: fn(RawSchunk, *const c_char, *mut *mut u8, *mut i32) -> c_int;
    blosc2_vlmeta_delete: fn(RawSchunk, *const c_char) -> c_int;
    blosc2_vlmeta_get_names: fn(RawSchunk, *mut *mut c_char) -> c_int;
    blosc2_remove_urlpath: fn(*const c_char) -> c_int;
} }

/// One copy of the library with its super-chunk functions.
#[derive(Clone, Copy)]
pub struct SchunkApi {
    /// The copy.
    pub lib: &'static Clib,
    /// Its functions.
    pub f: SchunkFunctions,
}

/// What a super-chunk is made with.
#[derive(Clone)]
pub struct Place {
    /// One contiguous frame, or chunks apart from each other.
    pub contiguous: bool,
    /// The file or directory, or none.
    pub urlpath: Option<CString>,
}

impl Place {
    /// A storage with these parameters, which it points to.
    pub fn storage(&self, cparams: &mut CParams, dparams: &mut DParams) -> Storage {
        Storage { cparams, dparams, ..self.bare() }
    }

    /// A storage without parameters.
    pub fn bare(&self) -> Storage {
        Storage {
            contiguous: self.contiguous,
            urlpath: self.urlpath.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            cparams: ptr::null_mut(),
            dparams: ptr::null_mut(),
            io: ptr::null_mut(),
        }
    }
}

impl SchunkApi {
    /// The functions of `lib`.
    pub fn of(lib: &'static Clib) -> Self {
        Self { lib, f: SchunkFunctions::of(lib) }
    }

    /// `blosc2_schunk_new`.
    pub fn create(&self, place: &Place, cparams: &CParams, dparams: &DParams) -> Option<Schunk> {
        let (mut cparams, mut dparams) = (*cparams, *dparams);
        let mut storage = place.storage(&mut cparams, &mut dparams);
        // SAFETY: the storage and what it points to live through the call.
        self.own(unsafe { (self.f.blosc2_schunk_new)(&mut storage) })
    }

    /// `blosc2_schunk_open`.
    pub fn open(&self, path: &CStr) -> Option<Schunk> {
        // SAFETY: a NUL-terminated string.
        self.own(unsafe { (self.f.blosc2_schunk_open)(path.as_ptr()) })
    }

    /// `blosc2_schunk_open_offset`.
    pub fn open_offset(&self, path: &CStr, offset: i64) -> Option<Schunk> {
        // SAFETY: a NUL-terminated string.
        self.own(unsafe { (self.f.blosc2_schunk_open_offset)(path.as_ptr(), offset) })
    }

    /// `blosc2_schunk_from_buffer`, with a copy of the frame.
    pub fn open_buffer(&self, frame: &[u8]) -> Option<Schunk> {
        let mut frame = frame.to_vec();
        let len = i64::try_from(frame.len()).expect("a length");
        // SAFETY: the frame is readable for `len` bytes; the super-chunk copies it.
        self.own(unsafe { (self.f.blosc2_schunk_from_buffer)(frame.as_mut_ptr(), len, true) })
    }

    /// `blosc2_remove_urlpath`.
    pub fn remove(&self, path: &CStr) -> i32 {
        // SAFETY: a NUL-terminated string.
        unsafe { (self.f.blosc2_remove_urlpath)(path.as_ptr()) }
    }

    /// An owning handle, unless `raw` is null.
    pub fn own(&self, raw: RawSchunk) -> Option<Schunk> {
        (!raw.is_null()).then(|| Schunk { api: *self, raw })
    }
}

/// A super-chunk of one copy of the library; freed when dropped.
pub struct Schunk {
    /// Whose it is.
    pub api: SchunkApi,
    /// The handle, for what the wrappers do not cover.
    pub raw: RawSchunk,
}

impl Drop for Schunk {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.api.f.blosc2_schunk_free)(self.raw) };
    }
}

/// What clients can see in the struct of a super-chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Seen {
    pub codec: (u8, u8, u8, u8, u8, u8),
    pub typesize: i32,
    pub blocksize: i32,
    pub chunksize: i32,
    pub flags2: u8,
    pub filters: ([u8; 6], [u8; 6]),
    pub nchunks: i64,
    pub current_nchunk: i64,
    pub nbytes: i64,
    pub cbytes: i64,
    pub in_frame: bool,
    pub has_data: bool,
    pub contexts: (bool, bool),
    pub metalayers: Vec<(String, Vec<u8>)>,
    pub vlmetalayers: Vec<(String, Vec<u8>)>,
    pub tuner_id: i32,
    pub view: bool,
    pub change_tick: i64,
    pub storage: (bool, Option<String>),
}

impl Schunk {
    /// The fields of the struct.
    pub fn seen(&self) -> Seen {
        // SAFETY: a live handle; the struct is read while no call is under way.
        let s = unsafe { &*self.raw };
        // SAFETY: the library keeps a storage for each super-chunk, with a string or null.
        let storage = unsafe { &*s.storage };
        let layers = |list: &[*mut Metalayer]| list.iter().map(|&layer| layer_content(layer)).collect();
        Seen {
            codec: (s.version, s.compcode, s.compcode_meta, s.clevel, s.splitmode, s.use_dict),
            typesize: s.typesize,
            blocksize: s.blocksize,
            chunksize: s.chunksize,
            flags2: s.flags2,
            filters: (s.filters, s.filters_meta),
            nchunks: s.nchunks,
            current_nchunk: s.current_nchunk,
            nbytes: s.nbytes,
            cbytes: s.cbytes,
            in_frame: !s.frame.is_null(),
            has_data: !s.data.is_null(),
            contexts: (s.cctx.is_null(), s.dctx.is_null()),
            metalayers: layers(&s.metalayers[..usize::from(s.nmetalayers)]),
            vlmetalayers: layers(&s.vlmetalayers[..usize::try_from(s.nvlmetalayers).expect("a count")]),
            tuner_id: s.tuner_id,
            view: s.view,
            change_tick: s.change_tick,
            storage: (storage.contiguous, text(storage.urlpath)),
        }
    }

    /// Number of chunks as the struct shows it.
    pub fn nchunks(&self) -> i64 {
        // SAFETY: a live handle.
        unsafe { (*self.raw).nchunks }
    }

    /// `blosc2_schunk_append_buffer`.
    pub fn append_buffer(&mut self, data: &[u8]) -> i64 {
        // SAFETY: pointer and length come from a slice.
        unsafe {
            (self.api.f.blosc2_schunk_append_buffer)(self.raw, data.as_ptr().cast(), super::int(data.len()))
        }
    }

    /// Hands `chunk` to `call`, as a borrowed buffer or as one from `malloc` that the library owns if it succeeds.
    fn give(
        &mut self,
        chunk: &[u8],
        copy: bool,
        call: impl FnOnce(&SchunkFunctions, RawSchunk, *mut u8) -> i64,
    ) -> i64 {
        if copy {
            let mut own = chunk.to_vec();
            let code = call(&self.api.f, self.raw, own.as_mut_ptr());
            assert_eq!(own, chunk, "a copied chunk is only read");
            return code;
        }
        let memory = malloc::copy(chunk);
        let code = call(&self.api.f, self.raw, memory);
        if code < 0 {
            // SAFETY: after a failure the memory is still the caller's.
            unsafe { malloc::free(memory.cast()) };
        }
        code
    }

    /// `blosc2_schunk_append_chunk`.
    pub fn append_chunk(&mut self, chunk: &[u8], copy: bool) -> i64 {
        // SAFETY: `give` brings a complete chunk, owned as `copy` says.
        self.give(chunk, copy, |f, raw, c| unsafe { (f.blosc2_schunk_append_chunk)(raw, c, copy) })
    }

    /// `blosc2_schunk_insert_chunk`.
    pub fn insert_chunk(&mut self, at: i64, chunk: &[u8], copy: bool) -> i64 {
        // SAFETY: as for `append_chunk`.
        self.give(chunk, copy, |f, raw, c| unsafe { (f.blosc2_schunk_insert_chunk)(raw, at, c, copy) })
    }

    /// `blosc2_schunk_update_chunk`.
    pub fn update_chunk(&mut self, at: i64, chunk: &[u8], copy: bool) -> i64 {
        // SAFETY: as for `append_chunk`.
        self.give(chunk, copy, |f, raw, c| unsafe { (f.blosc2_schunk_update_chunk)(raw, at, c, copy) })
    }

    /// `blosc2_schunk_delete_chunk`.
    pub fn delete_chunk(&mut self, at: i64) -> i64 {
        // SAFETY: a live handle.
        unsafe { (self.api.f.blosc2_schunk_delete_chunk)(self.raw, at) }
    }

    /// `blosc2_schunk_decompress_chunk`.
    pub fn decompress_chunk(&mut self, at: i64, dest: &mut [u8]) -> i32 {
        let size = super::int(dest.len());
        // SAFETY: pointer and length come from a slice.
        unsafe { (self.api.f.blosc2_schunk_decompress_chunk)(self.raw, at, dest.as_mut_ptr().cast(), size) }
    }

    /// `blosc2_schunk_get_chunk` or `_get_lazychunk`: the code, whether the caller frees the chunk, and its bytes.
    pub fn get_chunk(&mut self, at: i64, lazy: bool) -> (i32, bool, Vec<u8>) {
        let call =
            if lazy { self.api.f.blosc2_schunk_get_lazychunk } else { self.api.f.blosc2_schunk_get_chunk };
        let (mut chunk, mut needs_free) = (ptr::null_mut(), false);
        // SAFETY: a live handle; the answers go to live variables.
        let code = unsafe { call(self.raw, at, &mut chunk, &mut needs_free) };
        let bytes = match usize::try_from(code) {
            // SAFETY: on success the chunk has `code` bytes.
            Ok(size) if !chunk.is_null() => unsafe { std::slice::from_raw_parts(chunk, size) }.to_vec(),
            _ => Vec::new(),
        };
        if needs_free {
            // SAFETY: the library says that the chunk is the caller's.
            unsafe { malloc::free(chunk.cast()) };
        }
        (code, needs_free, bytes)
    }

    /// `blosc2_schunk_get_vlblock`.
    pub fn get_vlblock(&mut self, at: i64, nblock: i32) -> Result<Vec<u8>, i32> {
        let (mut block, mut size) = (ptr::null_mut(), -1);
        // SAFETY: a live handle; the answers go to live variables.
        let code =
            unsafe { (self.api.f.blosc2_schunk_get_vlblock)(self.raw, at, nblock, &mut block, &mut size) };
        if code < 0 {
            return Err(code);
        }
        assert_eq!(code, size);
        // SAFETY: on success the block has `size` bytes from malloc and is the caller's.
        Ok(unsafe { malloc::take(block, size.into()) })
    }

    /// `blosc2_schunk_get_slice_buffer`; positions in items.
    pub fn get_slice(&mut self, start: i64, stop: i64, dest: &mut [u8]) -> i32 {
        self.check_room(start, stop, dest.len());
        // SAFETY: `dest` has room for the items.
        unsafe {
            (self.api.f.blosc2_schunk_get_slice_buffer)(self.raw, start, stop, dest.as_mut_ptr().cast())
        }
    }

    /// `blosc2_schunk_set_slice_buffer`; positions in items.
    pub fn set_slice(&mut self, start: i64, stop: i64, data: &[u8]) -> i32 {
        self.check_room(start, stop, data.len());
        let mut data = data.to_vec();
        // SAFETY: `data` holds the items.
        unsafe {
            (self.api.f.blosc2_schunk_set_slice_buffer)(self.raw, start, stop, data.as_mut_ptr().cast())
        }
    }

    fn check_room(&self, start: i64, stop: i64, len: usize) {
        // SAFETY: a live handle.
        let typesize = i64::from(unsafe { (*self.raw).typesize });
        assert!(i64::try_from(len).expect("a length") >= (stop - start) * typesize);
    }

    /// `blosc2_schunk_get_sparse_buffer`.
    pub fn get_sparse(&mut self, coords: &[i64], dest: &mut [u8]) -> i32 {
        let n = i64::try_from(coords.len()).expect("a length");
        self.check_room(0, n, dest.len());
        // SAFETY: `coords` has `n` entries and `dest` room for as many items.
        unsafe {
            (self.api.f.blosc2_schunk_get_sparse_buffer)(
                self.raw,
                n,
                coords.as_ptr(),
                dest.as_mut_ptr().cast(),
            )
        }
    }

    /// `blosc2_get_slice_nchunks` of a super-chunk without dimensions.
    pub fn slice_nchunks(&mut self, start: i64, stop: i64) -> (i64, Vec<i64>) {
        let (mut start, mut stop, mut list) = (start, stop, ptr::null_mut());
        // SAFETY: a live handle; the answers go to live variables.
        let count =
            unsafe { (self.api.f.blosc2_get_slice_nchunks)(self.raw, &mut start, &mut stop, &mut list) };
        // SAFETY: the list is the caller's, with `count` entries.
        (count, unsafe { malloc::take(list, count.max(0)) })
    }

    /// `blosc2_schunk_reorder_offsets`.
    pub fn reorder(&mut self, order: &[i64]) -> i32 {
        let mut order = order.to_vec();
        // SAFETY: the handle reads `nchunks` entries; tests bring that many.
        unsafe { (self.api.f.blosc2_schunk_reorder_offsets)(self.raw, order.as_mut_ptr()) }
    }

    /// `blosc2_schunk_frame_len`.
    pub fn frame_len(&self) -> i64 {
        // SAFETY: a live handle.
        unsafe { (self.api.f.blosc2_schunk_frame_len)(self.raw) }
    }

    /// `blosc2_schunk_fill_special`.
    pub fn fill_special(&mut self, nitems: i64, kind: i32, chunksize: i32) -> i64 {
        // SAFETY: a live handle.
        unsafe { (self.api.f.blosc2_schunk_fill_special)(self.raw, nitems, kind, chunksize) }
    }

    /// `blosc2_frame_get_offsets`.
    pub fn offsets(&self) -> Option<Vec<i64>> {
        // SAFETY: a live handle.
        let list = unsafe { (self.api.f.blosc2_frame_get_offsets)(self.raw) };
        // SAFETY: the list is the caller's, with an entry for each chunk.
        (!list.is_null()).then(|| unsafe { malloc::take(list, self.nchunks()) })
    }

    /// `blosc2_schunk_to_buffer`.
    pub fn to_buffer(&self) -> (i64, bool, Vec<u8>) {
        let (mut frame, mut needs_free) = (ptr::null_mut(), true);
        // SAFETY: a live handle; the answers go to live variables.
        let code = unsafe { (self.api.f.blosc2_schunk_to_buffer)(self.raw, &mut frame, &mut needs_free) };
        let bytes = match usize::try_from(code) {
            // SAFETY: on success the frame has `code` bytes.
            Ok(size) => unsafe { std::slice::from_raw_parts(frame, size) }.to_vec(),
            Err(_) => Vec::new(),
        };
        if needs_free {
            // SAFETY: the library says that the frame is the caller's.
            unsafe { malloc::free(frame.cast()) };
        }
        (code, needs_free, bytes)
    }

    /// `blosc2_schunk_to_file`.
    pub fn to_file(&self, path: &CStr) -> i64 {
        // SAFETY: a live handle and a NUL-terminated string.
        unsafe { (self.api.f.blosc2_schunk_to_file)(self.raw, path.as_ptr()) }
    }

    /// `blosc2_schunk_append_file`.
    pub fn append_file(&self, path: &CStr) -> i64 {
        // SAFETY: a live handle and a NUL-terminated string.
        unsafe { (self.api.f.blosc2_schunk_append_file)(self.raw, path.as_ptr()) }
    }

    /// `blosc2_schunk_copy`; without parameters, those of the super-chunk serve.
    pub fn copy(&self, place: &Place, params: Option<(&CParams, &DParams)>) -> Option<Schunk> {
        let mut storage = place.bare();
        let mut own = params.map(|(cparams, dparams)| (*cparams, *dparams));
        if let Some((cparams, dparams)) = &mut own {
            storage = place.storage(cparams, dparams);
        }
        // SAFETY: the storage and what it points to live through the call.
        self.api.own(unsafe { (self.api.f.blosc2_schunk_copy)(self.raw, &mut storage) })
    }

    /// `blosc2_meta_add`.
    pub fn meta_add(&mut self, name: &CStr, content: &[u8]) -> i32 {
        let mut content = content.to_vec();
        let len = super::int(content.len());
        // SAFETY: a NUL-terminated string and `len` bytes.
        unsafe { (self.api.f.blosc2_meta_add)(self.raw, name.as_ptr(), content.as_mut_ptr(), len) }
    }

    /// `blosc2_meta_update`.
    pub fn meta_update(&mut self, name: &CStr, content: &[u8]) -> i32 {
        let mut content = content.to_vec();
        let len = super::int(content.len());
        // SAFETY: a NUL-terminated string and `len` bytes.
        unsafe { (self.api.f.blosc2_meta_update)(self.raw, name.as_ptr(), content.as_mut_ptr(), len) }
    }

    /// `blosc2_vlmeta_add` or `_update`, with the default parameters.
    pub fn vlmeta_set(&mut self, add: bool, name: &CStr, content: &[u8]) -> i32 {
        let call = if add { self.api.f.blosc2_vlmeta_add } else { self.api.f.blosc2_vlmeta_update };
        let mut content = content.to_vec();
        let len = super::int(content.len());
        // SAFETY: a NUL-terminated string and `len` bytes.
        unsafe { call(self.raw, name.as_ptr(), content.as_mut_ptr(), len, ptr::null_mut()) }
    }

    /// `blosc2_vlmeta_get`.
    pub fn vlmeta_get(&mut self, name: &CStr) -> (i32, Vec<u8>) {
        let (mut content, mut len) = (ptr::null_mut(), 0);
        // SAFETY: a NUL-terminated string; the answers go to live variables.
        let code = unsafe { (self.api.f.blosc2_vlmeta_get)(self.raw, name.as_ptr(), &mut content, &mut len) };
        // SAFETY: on success the content has `len` bytes from malloc and is the caller's.
        (code, if code < 0 { Vec::new() } else { unsafe { malloc::take(content, len.into()) } })
    }

    /// `blosc2_vlmeta_exists`.
    pub fn vlmeta_exists(&mut self, name: &CStr) -> i32 {
        // SAFETY: a NUL-terminated string.
        unsafe { (self.api.f.blosc2_vlmeta_exists)(self.raw, name.as_ptr()) }
    }

    /// `blosc2_vlmeta_delete`.
    pub fn vlmeta_delete(&mut self, name: &CStr) -> i32 {
        // SAFETY: a NUL-terminated string.
        unsafe { (self.api.f.blosc2_vlmeta_delete)(self.raw, name.as_ptr()) }
    }

    /// `blosc2_vlmeta_get_names`.
    pub fn vlmeta_names(&mut self) -> Vec<String> {
        let mut names = [ptr::null_mut(); 8192];
        // SAFETY: room for as many names as there can be.
        let count = unsafe { (self.api.f.blosc2_vlmeta_get_names)(self.raw, names.as_mut_ptr()) };
        let count = usize::try_from(count).expect("a count");
        names[..count].iter().map(|&name| text(name).expect("a name")).collect()
    }

    /// `blosc2_schunk_refresh`.
    pub fn refresh(&mut self) -> i32 {
        // SAFETY: a live handle.
        unsafe { (self.api.f.blosc2_schunk_refresh)(self.raw) }
    }

    /// `blosc2_schunk_get_cparams`, the numbers in it.
    pub fn get_cparams(&self) -> (i32, String) {
        let mut params = ptr::null_mut();
        // SAFETY: a live handle; the answer goes to a live variable.
        let code = unsafe { (self.api.f.blosc2_schunk_get_cparams)(self.raw, &mut params) };
        // SAFETY: on success one struct from malloc, the caller's.
        let list = unsafe { malloc::take(params, 1) };
        let back = list[0].schunk == self.raw.cast();
        (code, format!("{back} {:?}", CParams { schunk: ptr::null_mut(), ..list[0] }))
    }

    /// `blosc2_schunk_get_dparams`, the numbers in it.
    pub fn get_dparams(&self) -> (i32, String) {
        let mut params = ptr::null_mut();
        // SAFETY: a live handle; the answer goes to a live variable.
        let code = unsafe { (self.api.f.blosc2_schunk_get_dparams)(self.raw, &mut params) };
        // SAFETY: on success one struct from malloc, the caller's.
        let list = unsafe { malloc::take(params, 1) };
        let back = list[0].schunk == self.raw.cast();
        (code, format!("{back} {:?}", DParams { schunk: ptr::null_mut(), ..list[0] }))
    }
}

/// Name and content of a metalayer.
fn layer_content(layer: *const Metalayer) -> (String, Vec<u8>) {
    // SAFETY: the entries below the counts of a live handle are live metalayers.
    let layer = unsafe { &*layer };
    let len = usize::try_from(layer.content_len).expect("a length");
    let content = if len == 0 {
        Vec::new()
    } else {
        // SAFETY: the content has as many bytes.
        unsafe { std::slice::from_raw_parts(layer.content, len) }.to_vec()
    };
    (text(layer.name).expect("metalayers have names"), content)
}

/// A C string, unless null.
pub fn text(string: *const c_char) -> Option<String> {
    // SAFETY: strings of a live handle end with NUL.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}
