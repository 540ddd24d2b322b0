//! A built copy of the library, loaded at run time with local binding.
//!
//! Ours and the C library export the same names, so they cannot be linked into one program; each is loaded by path, and
//! every call goes through the pointers found in that copy. The wrappers take slices, so that sizes and pointers cannot
//! disagree, and return the codes of the C API unchanged. Shared by the differential tests and the bench tool.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// glibc's flag that makes a library prefer its own symbols to those already in the process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const DEEPBIND: c_int = 8;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
const DEEPBIND: c_int = 0;

/// `blosc2_cparams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CParams {
    /// Codec code.
    pub compcode: u8,
    /// Meta byte of the codec.
    pub compcode_meta: u8,
    /// Compression level, 0 to 9.
    pub clevel: u8,
    /// Non-zero: make a dictionary.
    pub use_dict: c_int,
    /// Item size in bytes.
    pub typesize: i32,
    /// Threads of the context.
    pub nthreads: i16,
    /// Block size in bytes, 0 for the automatic choice.
    pub blocksize: i32,
    /// Split mode, 1 to 4.
    pub splitmode: i32,
    /// Super-chunk that the context belongs to.
    pub schunk: *mut c_void,
    /// The six filter slots.
    pub filters: [u8; 6],
    /// The meta bytes of the slots.
    pub filters_meta: [u8; 6],
    /// Prefilter callback.
    pub prefilter: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    /// Parameters of the prefilter.
    pub preparams: *mut c_void,
    /// Parameters of the tuner.
    pub tuner_params: *mut c_void,
    /// Tuner id.
    pub tuner_id: c_int,
    /// C `bool`: measure the codec instead of storing its output.
    pub instr_codec: u8,
    /// Parameters of the codec.
    pub codec_params: *mut c_void,
    /// Parameters of the filters.
    pub filter_params: [*mut c_void; 6],
}

/// `blosc2_dparams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DParams {
    /// Threads of the context.
    pub nthreads: i16,
    /// Super-chunk that lazy chunks are read from.
    pub schunk: *mut c_void,
    /// Postfilter callback.
    pub postfilter: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    /// Parameters of the postfilter.
    pub postparams: *mut c_void,
    /// Item size in bytes.
    pub typesize: i32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CParams>() == 136 && size_of::<DParams>() == 40);

/// An opaque `blosc2_context`.
#[repr(C)]
pub struct RawContext {
    _opaque: [u8; 0],
}

/// Declares the table of functions and how it is filled from a library.
macro_rules! functions {
    ($( $name:ident: fn($($arg:ty),*) $(-> $ret:ty)?; )*) => {
        /// Pointers to the functions of one loaded copy, with the signatures of `blosc2.h`.
        #[derive(Clone, Copy)]
        pub struct Functions {
            $( #[doc = concat!("`", stringify!($name), "`.")] pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?, )*
        }

        impl Functions {
            fn find(lib: &Library) -> Result<Self, String> {
                Ok(Self { $(
                    // SAFETY: the type is the one that `blosc2.h` declares for this name.
                    $name: unsafe { symbol(lib, stringify!($name)) }?,
                )* })
            }
        }
    };
}

functions! {
    blosc2_init: fn();
    blosc2_get_version_string: fn() -> *const c_char;
    blosc2_get_blosc2_cparams_defaults: fn() -> CParams;
    blosc2_get_blosc2_dparams_defaults: fn() -> DParams;
    blosc2_create_cctx: fn(CParams) -> *mut RawContext;
    blosc2_create_dctx: fn(DParams) -> *mut RawContext;
    blosc2_free_ctx: fn(*mut RawContext);
    blosc2_compress_ctx: fn(*mut RawContext, *const c_void, i32, *mut c_void, i32) -> c_int;
    blosc2_decompress_ctx: fn(*mut RawContext, *const c_void, i32, *mut c_void, i32) -> c_int;
    blosc2_getitem_ctx: fn(*mut RawContext, *const c_void, i32, c_int, c_int, *mut c_void, i32) -> c_int;
    blosc2_getitem_bytes_ctx: fn(*mut RawContext, *const c_void, i32, i32, i32, *mut c_void, i32) -> c_int;
    blosc2_set_maskout: fn(*mut RawContext, *mut bool, c_int) -> c_int;
    blosc2_vlcompress_ctx: fn(*mut RawContext, *const *const c_void, *const i32, i32, *mut c_void, i32) -> c_int;
    blosc2_vldecompress_ctx: fn(*mut RawContext, *const c_void, i32, *mut *mut c_void, *mut i32, i32) -> c_int;
    blosc2_vldecompress_block_ctx: fn(*mut RawContext, *const c_void, i32, i32, *mut *mut u8, *mut i32) -> c_int;
    blosc2_vlchunk_get_nblocks: fn(*const c_void, i32, *mut i32) -> c_int;
    blosc2_compress: fn(c_int, c_int, i32, *const c_void, i32, *mut c_void, i32) -> c_int;
    blosc2_decompress: fn(*const c_void, i32, *mut c_void, i32) -> c_int;
    blosc1_compress: fn(c_int, c_int, usize, usize, *const c_void, *mut c_void, usize) -> c_int;
    blosc1_decompress: fn(*const c_void, *mut c_void, usize) -> c_int;
    blosc1_getitem: fn(*const c_void, c_int, c_int, *mut c_void) -> c_int;
    blosc1_set_compressor: fn(*const c_char) -> c_int;
    blosc2_set_nthreads: fn(i16) -> i16;
    blosc2_cbuffer_sizes: fn(*const c_void, *mut i32, *mut i32, *mut i32) -> c_int;
    blosc1_cbuffer_sizes: fn(*const c_void, *mut usize, *mut usize, *mut usize);
    blosc1_cbuffer_validate: fn(*const c_void, usize, *mut usize) -> c_int;
    blosc1_cbuffer_metainfo: fn(*const c_void, *mut usize, *mut c_int);
    blosc2_cbuffer_versions: fn(*const c_void, *mut c_int, *mut c_int);
    blosc2_cbuffer_complib: fn(*const c_void) -> *const c_char;
    blosc2_chunk_zeros: fn(CParams, i32, *mut c_void, i32) -> c_int;
    blosc2_chunk_nans: fn(CParams, i32, *mut c_void, i32) -> c_int;
    blosc2_chunk_uninit: fn(CParams, i32, *mut c_void, i32) -> c_int;
    blosc2_chunk_repeatval: fn(CParams, i32, *mut c_void, i32, *const c_void) -> c_int;
}

/// The address of `name` in `lib`, as a `T`.
///
/// # Safety
///
/// `T` is a function pointer of the type that the library gives `name`, and is not used after `lib` is closed.
unsafe fn symbol<T: Copy>(lib: &Library, name: &str) -> Result<T, String> {
    let cname = CString::new(name).expect("symbol names hold no NUL");
    // SAFETY: passed on to the caller.
    let found = unsafe { lib.get::<T>(cname.as_bytes_with_nul()) };
    found.map(|s| *s).map_err(|e| format!("{name}: {e}"))
}

/// One loaded copy of the library.
pub struct Clib {
    /// Its functions, for calls that the wrappers below do not cover.
    pub f: Functions,
    /// The file that it came from.
    pub path: PathBuf,
    lib: Library,
}

impl Clib {
    /// Loads the library at `path` so that neither its symbols nor its calls mix with those of another copy.
    ///
    /// # Errors
    ///
    /// A text, when the file cannot be loaded or lacks a function of the chunk API.
    pub fn open(path: &Path) -> Result<Self, String> {
        let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
        // SAFETY: running the initialisers of a build of the library is what the caller asks for.
        let lib = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL | DEEPBIND) }
            .map_err(|e| format!("{}: {e}", path.display()))?;
        let f = Functions::find(&lib).map_err(|e| format!("{}: {e}", path.display()))?;
        // SAFETY: takes no arguments and may be called any number of times.
        unsafe { (f.blosc2_init)() };
        Ok(Self { f, path, lib })
    }

    /// The function `name` of this copy, for families that need more than [`Functions`].
    ///
    /// # Safety
    ///
    /// `T` is a function pointer of the type that the headers declare for `name`; it is not used after `self` is gone.
    ///
    /// # Errors
    ///
    /// A text, when this copy has no such function.
    pub unsafe fn symbol<T: Copy>(&self, name: &str) -> Result<T, String> {
        // SAFETY: passed on to the caller.
        unsafe { symbol(&self.lib, name) }
    }

    /// The version string of the library.
    pub fn version(&self) -> String {
        // SAFETY: returns a static NUL-terminated string.
        unsafe { CStr::from_ptr((self.f.blosc2_get_version_string)()) }.to_string_lossy().into_owned()
    }

    /// The library's default compression parameters.
    pub fn cparams(&self) -> CParams {
        // SAFETY: no preconditions.
        unsafe { (self.f.blosc2_get_blosc2_cparams_defaults)() }
    }

    /// A compression context, or `None` if the library refuses `params`.
    pub fn cctx(&self, params: &CParams) -> Option<Ctx<'_>> {
        // SAFETY: pointers in `params` are null or were made valid by whoever set them.
        let raw = unsafe { (self.f.blosc2_create_cctx)(*params) };
        (!raw.is_null()).then(|| Ctx { lib: self, raw })
    }

    /// A decompression context with `nthreads` threads.
    pub fn dctx(&self, nthreads: i16) -> Ctx<'_> {
        self.dctx_of(nthreads, std::ptr::null_mut())
    }

    /// As [`dctx`](Self::dctx), for lazy chunks of `schunk`, which is null or a `blosc2_schunk` that outlives the
    /// context.
    pub fn dctx_of(&self, nthreads: i16, schunk: *mut c_void) -> Ctx<'_> {
        // SAFETY: no preconditions.
        let mut params = unsafe { (self.f.blosc2_get_blosc2_dparams_defaults)() };
        params.nthreads = nthreads;
        params.schunk = schunk;
        // SAFETY: the default parameters hold no pointers, and the super-chunk is live.
        let raw = unsafe { (self.f.blosc2_create_dctx)(params) };
        assert!(!raw.is_null(), "no decompression context from {}", self.path.display());
        Ctx { lib: self, raw }
    }

    /// `blosc1_set_compressor`.
    pub fn set_compressor(&self, name: &str) -> i32 {
        let name = CString::new(name).expect("codec names hold no NUL");
        // SAFETY: a NUL-terminated string that lives through the call.
        unsafe { (self.f.blosc1_set_compressor)(name.as_ptr()) }
    }

    /// `blosc2_set_nthreads`.
    pub fn set_nthreads(&self, nthreads: i16) -> i16 {
        // SAFETY: no preconditions.
        unsafe { (self.f.blosc2_set_nthreads)(nthreads) }
    }

    /// `blosc1_compress`: the global state.
    pub fn blosc1_compress(
        &self,
        clevel: i32,
        doshuffle: i32,
        typesize: usize,
        src: &[u8],
        dest: &mut [u8],
    ) -> i32 {
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.f.blosc1_compress)(
                clevel,
                doshuffle,
                typesize,
                src.len(),
                src.as_ptr().cast(),
                dest.as_mut_ptr().cast(),
                dest.len(),
            )
        }
    }

    /// `blosc2_compress`: the global state.
    pub fn blosc2_compress(
        &self,
        clevel: i32,
        doshuffle: i32,
        typesize: i32,
        src: &[u8],
        dest: &mut [u8],
    ) -> i32 {
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.f.blosc2_compress)(
                clevel,
                doshuffle,
                typesize,
                src.as_ptr().cast(),
                len(src),
                dest.as_mut_ptr().cast(),
                len(dest),
            )
        }
    }

    /// `blosc2_decompress`: the global state.
    pub fn blosc2_decompress(&self, chunk: &[u8], dest: &mut [u8]) -> i32 {
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.f.blosc2_decompress)(chunk.as_ptr().cast(), len(chunk), dest.as_mut_ptr().cast(), len(dest))
        }
    }

    /// `blosc2_cbuffer_sizes`: the code, then nbytes, cbytes and blocksize. `chunk` has at least 16 bytes.
    pub fn cbuffer_sizes(&self, chunk: &[u8]) -> (i32, [i32; 3]) {
        assert!(chunk.len() >= 16);
        let mut out = [-1; 3];
        let [nbytes, cbytes, blocksize] = &mut out;
        // SAFETY: the function reads 16 bytes and writes three integers.
        let code = unsafe { (self.f.blosc2_cbuffer_sizes)(chunk.as_ptr().cast(), nbytes, cbytes, blocksize) };
        (code, out)
    }

    /// `blosc1_cbuffer_sizes`: nbytes, cbytes and blocksize. `chunk` has at least 16 bytes.
    pub fn cbuffer_sizes1(&self, chunk: &[u8]) -> [usize; 3] {
        assert!(chunk.len() >= 16);
        let mut out = [usize::MAX; 3];
        let [nbytes, cbytes, blocksize] = &mut out;
        // SAFETY: the function reads 16 bytes and writes three integers.
        unsafe { (self.f.blosc1_cbuffer_sizes)(chunk.as_ptr().cast(), nbytes, cbytes, blocksize) };
        out
    }

    /// `blosc1_cbuffer_validate` of a chunk said to have `cbytes` bytes (not more than it has): the code and nbytes.
    pub fn cbuffer_validate(&self, chunk: &[u8], cbytes: usize) -> (i32, usize) {
        assert!(cbytes <= chunk.len());
        let mut nbytes = usize::MAX;
        // SAFETY: the function reads at most `cbytes` bytes and writes one integer.
        let code = unsafe { (self.f.blosc1_cbuffer_validate)(chunk.as_ptr().cast(), cbytes, &mut nbytes) };
        (code, nbytes)
    }

    /// `blosc1_cbuffer_metainfo`: typesize and flags. `chunk` has at least 16 bytes.
    pub fn cbuffer_metainfo(&self, chunk: &[u8]) -> (usize, i32) {
        assert!(chunk.len() >= 16);
        let (mut typesize, mut flags) = (usize::MAX, -1);
        // SAFETY: the function reads 16 bytes and writes two integers.
        unsafe { (self.f.blosc1_cbuffer_metainfo)(chunk.as_ptr().cast(), &mut typesize, &mut flags) };
        (typesize, flags)
    }

    /// `blosc2_cbuffer_versions`: of the format and of the codec. `chunk` has at least 16 bytes.
    pub fn cbuffer_versions(&self, chunk: &[u8]) -> (i32, i32) {
        assert!(chunk.len() >= 16);
        let (mut version, mut versionlz) = (-1, -1);
        // SAFETY: the function reads 16 bytes and writes two integers.
        unsafe { (self.f.blosc2_cbuffer_versions)(chunk.as_ptr().cast(), &mut version, &mut versionlz) };
        (version, versionlz)
    }

    /// `blosc2_cbuffer_complib`. `chunk` has at least 16 bytes.
    pub fn cbuffer_complib(&self, chunk: &[u8]) -> Option<String> {
        assert!(chunk.len() >= 16);
        // SAFETY: the function reads 16 bytes.
        let name = unsafe { (self.f.blosc2_cbuffer_complib)(chunk.as_ptr().cast()) };
        // SAFETY: a non-null answer is a static NUL-terminated string.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    /// `blosc2_vlchunk_get_nblocks`: the code and the number of blocks.
    pub fn vl_nblocks(&self, chunk: &[u8]) -> (i32, i32) {
        let mut nblocks = -1;
        // SAFETY: pointer and length come from a slice, the answer goes to a live integer.
        let code =
            unsafe { (self.f.blosc2_vlchunk_get_nblocks)(chunk.as_ptr().cast(), len(chunk), &mut nblocks) };
        (code, nblocks)
    }

    /// One of the constructors of special chunks, for `nbytes` bytes.
    pub fn special(&self, kind: Special<'_>, params: &CParams, nbytes: i32, dest: &mut [u8]) -> i32 {
        let (out, room) = (dest.as_mut_ptr().cast(), len(dest));
        // SAFETY: `dest` is writable for `room` bytes; the value has `typesize` bytes, as asserted.
        unsafe {
            match kind {
                Special::Zeros => (self.f.blosc2_chunk_zeros)(*params, nbytes, out, room),
                Special::Nans => (self.f.blosc2_chunk_nans)(*params, nbytes, out, room),
                Special::Uninit => (self.f.blosc2_chunk_uninit)(*params, nbytes, out, room),
                Special::Value(value) => {
                    assert_eq!(value.len(), usize::try_from(params.typesize).expect("a positive typesize"));
                    (self.f.blosc2_chunk_repeatval)(*params, nbytes, out, room, value.as_ptr().cast())
                }
            }
        }
    }
}

/// What a special chunk holds.
#[derive(Clone, Copy, Debug)]
pub enum Special<'a> {
    /// Zero bytes.
    Zeros,
    /// Not-a-numbers of 4 or 8 bytes.
    Nans,
    /// Nothing in particular.
    Uninit,
    /// One value, again and again.
    Value(&'a [u8]),
}

/// A compression or decompression context of one copy of the library; freed when dropped.
pub struct Ctx<'a> {
    lib: &'a Clib,
    /// The context itself, for calls that the wrappers do not cover.
    pub raw: *mut RawContext,
}

impl Drop for Ctx<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.lib.f.blosc2_free_ctx)(self.raw) };
    }
}

// SAFETY: a context may move between threads; the library only forbids two calls at the same time, which `&mut` rules
// out.
unsafe impl Send for Ctx<'_> {}

impl Ctx<'_> {
    /// `blosc2_compress_ctx`.
    pub fn compress(&mut self, src: &[u8], dest: &mut [u8]) -> i32 {
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.lib.f.blosc2_compress_ctx)(
                self.raw,
                src.as_ptr().cast(),
                len(src),
                dest.as_mut_ptr().cast(),
                len(dest),
            )
        }
    }

    /// `blosc2_decompress_ctx`.
    pub fn decompress(&mut self, chunk: &[u8], dest: &mut [u8]) -> i32 {
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.lib.f.blosc2_decompress_ctx)(
                self.raw,
                chunk.as_ptr().cast(),
                len(chunk),
                dest.as_mut_ptr().cast(),
                len(dest),
            )
        }
    }

    /// `blosc2_getitem_ctx`; `start` and `nitems` in items.
    pub fn getitem(&mut self, chunk: &[u8], start: i32, nitems: i32, dest: &mut [u8]) -> i32 {
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.lib.f.blosc2_getitem_ctx)(
                self.raw,
                chunk.as_ptr().cast(),
                len(chunk),
                start,
                nitems,
                dest.as_mut_ptr().cast(),
                len(dest),
            )
        }
    }

    /// `blosc2_getitem_bytes_ctx`; `start` and `nbytes` in bytes.
    pub fn getitem_bytes(&mut self, chunk: &[u8], start: i32, nbytes: i32, dest: &mut [u8]) -> i32 {
        // SAFETY: pointers and lengths come from slices.
        unsafe {
            (self.lib.f.blosc2_getitem_bytes_ctx)(
                self.raw,
                chunk.as_ptr().cast(),
                len(chunk),
                start,
                nbytes,
                dest.as_mut_ptr().cast(),
                len(dest),
            )
        }
    }

    /// `blosc2_set_maskout`, for the next decompression.
    pub fn set_maskout(&mut self, mask: &[bool]) -> i32 {
        let mut mask = mask.to_vec();
        let count = c_int::try_from(mask.len()).expect("few blocks");
        // SAFETY: the function copies `count` values.
        unsafe { (self.lib.f.blosc2_set_maskout)(self.raw, mask.as_mut_ptr(), count) }
    }

    /// `blosc2_vlcompress_ctx`.
    pub fn vlcompress(&mut self, blocks: &[&[u8]], dest: &mut [u8]) -> i32 {
        let srcs: Vec<*const c_void> = blocks.iter().map(|b| b.as_ptr().cast()).collect();
        let sizes: Vec<i32> = blocks.iter().map(|b| len(b)).collect();
        let count = i32::try_from(blocks.len()).expect("few blocks");
        // SAFETY: both arrays have `count` entries, which describe live slices.
        unsafe {
            (self.lib.f.blosc2_vlcompress_ctx)(
                self.raw,
                srcs.as_ptr(),
                sizes.as_ptr(),
                count,
                dest.as_mut_ptr().cast(),
                len(dest),
            )
        }
    }

    /// `blosc2_vldecompress_ctx`: the blocks, or the code. `free` is that of the C allocator.
    pub fn vldecompress(&mut self, chunk: &[u8], maxblocks: usize) -> Result<Vec<Vec<u8>>, i32> {
        let mut blocks = vec![std::ptr::null_mut::<c_void>(); maxblocks];
        let mut sizes = vec![0_i32; maxblocks];
        let max = i32::try_from(maxblocks).expect("few blocks");
        // SAFETY: both arrays have room for `max` entries.
        let code = unsafe {
            (self.lib.f.blosc2_vldecompress_ctx)(
                self.raw,
                chunk.as_ptr().cast(),
                len(chunk),
                blocks.as_mut_ptr(),
                sizes.as_mut_ptr(),
                max,
            )
        };
        let count = usize::try_from(code).map_err(|_| code)?;
        // SAFETY: on success the first `count` entries are blocks from malloc, of the given sizes, now ours.
        Ok((0..count).map(|i| unsafe { take_malloced(blocks[i].cast(), sizes[i]) }).collect())
    }

    /// `blosc2_vldecompress_block_ctx`: block `nblock`, or the code.
    pub fn vldecompress_block(&mut self, chunk: &[u8], nblock: i32) -> Result<Vec<u8>, i32> {
        let mut block = std::ptr::null_mut::<u8>();
        let mut size = -1;
        // SAFETY: pointers and lengths come from slices, the answers go to live variables.
        let code = unsafe {
            (self.lib.f.blosc2_vldecompress_block_ctx)(
                self.raw,
                chunk.as_ptr().cast(),
                len(chunk),
                nblock,
                &mut block,
                &mut size,
            )
        };
        if code < 0 {
            return Err(code);
        }
        assert_eq!(code, size, "the return value is the size of the block");
        // SAFETY: on success `block` is from malloc, has `size` bytes, and is ours.
        Ok(unsafe { take_malloced(block, size) })
    }
}

/// Copies a block that the library allocated with `malloc`, and frees it.
///
/// # Safety
///
/// `block` came from `malloc`, is readable for `size` bytes, and nobody else frees it.
unsafe fn take_malloced(block: *mut u8, size: i32) -> Vec<u8> {
    unsafe extern "C" {
        fn free(ptr: *mut c_void);
    }
    let size = usize::try_from(size).expect("blocks have sizes from 0");
    // SAFETY: the caller vouches for `size` bytes.
    let copy = unsafe { std::slice::from_raw_parts(block, size) }.to_vec();
    // SAFETY: the caller hands the block over.
    unsafe { free(block.cast()) };
    copy
}

/// The length of a slice as the C API takes it.
fn len(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).expect("buffers stay below 2 GiB")
}
