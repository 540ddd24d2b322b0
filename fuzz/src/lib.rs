//! What the fuzz targets share: the C functions with slices in place of pointers, and parameters made of fuzz input.
//!
//! The targets go through the C interface, since that is where bytes from strangers come in.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use blosc2::capi::b2nd::b2nd_free;
use blosc2::capi::b2nd_data::b2nd_get_slice_cbuffer;
use blosc2::capi::b2nd_storage::b2nd_from_schunk;
use blosc2::capi::chunk::{
    blosc2_compress_ctx, blosc2_create_cctx, blosc2_create_dctx, blosc2_decompress_ctx, blosc2_free_ctx,
};
use blosc2::capi::meta::{blosc2_vlmeta_get, blosc2_vlmeta_get_names};
use blosc2::capi::schunk::{
    blosc2_schunk_free, blosc2_schunk_from_buffer, blosc2_schunk_new, blosc2_schunk_open,
    blosc2_schunk_to_buffer,
};
use blosc2::capi::schunk_data::{blosc2_schunk_decompress_chunk, blosc2_schunk_get_lazychunk};
use blosc2::capi::schunk_slice::blosc2_schunk_get_slice_buffer;
use blosc2::capi::types::{
    CBool, blosc2_context, blosc2_cparams, blosc2_dparams, blosc2_schunk, blosc2_storage,
};
use blosc2::capi::util::{blosc2_get_blosc2_cparams_defaults, blosc2_get_blosc2_dparams_defaults};
use blosc2::format::consts::{EXTENDED_HEADER_LENGTH, MAX_FILTERS, SHUFFLE_SLOT, codec, filter};

/// No result of a hostile chunk or array is asked for above this size, in bytes.
pub const MAX_OUTPUT: usize = 1 << 22;

unsafe extern "C" {
    fn free(pointer: *mut c_void);
}

/// A length as C's `int32_t`; fuzz inputs are short.
pub fn int(len: usize) -> i32 {
    i32::try_from(len).expect("buffers of the fuzz targets are small")
}

/// Releases what the library gave away.
///
/// # Safety
///
/// `pointer` comes from the library, which said that it is the caller's.
pub unsafe fn release<T>(pointer: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { free(pointer.cast()) }
}

/// A build of the library: the functions for contexts.
#[derive(Clone, Copy)]
pub struct Library {
    pub create_cctx: unsafe extern "C" fn(blosc2_cparams) -> *mut blosc2_context,
    pub create_dctx: unsafe extern "C" fn(blosc2_dparams) -> *mut blosc2_context,
    pub free_ctx: unsafe extern "C" fn(*mut blosc2_context),
    pub compress: Code,
    pub decompress: Code,
}

/// `blosc2_compress_ctx` and `blosc2_decompress_ctx`.
pub type Code = unsafe extern "C" fn(*mut blosc2_context, *const c_void, i32, *mut c_void, i32) -> c_int;

/// This library.
pub const OURS: Library = Library {
    create_cctx: blosc2_create_cctx,
    create_dctx: blosc2_create_dctx,
    free_ctx: blosc2_free_ctx,
    compress: blosc2_compress_ctx,
    decompress: blosc2_decompress_ctx,
};

impl Library {
    /// Compresses `src` into a buffer that has room for it; the code, and the chunk if there is one.
    pub fn compress(&self, params: blosc2_cparams, src: &[u8]) -> (c_int, Vec<u8>) {
        let mut chunk = vec![0_u8; src.len() + EXTENDED_HEADER_LENGTH + 4096];
        // SAFETY: all pointers in the parameters are null.
        let ctx = unsafe { (self.create_cctx)(params) };
        if ctx.is_null() {
            return (-1, Vec::new());
        }
        let room = int(chunk.len());
        let (from, to) = (src.as_ptr().cast(), chunk.as_mut_ptr().cast());
        // SAFETY: the context is valid and the sizes are those of the slices.
        let code = unsafe { (self.compress)(ctx, from, int(src.len()), to, room) };
        // SAFETY: the context was made above.
        unsafe { (self.free_ctx)(ctx) };
        chunk.truncate(usize::try_from(code).unwrap_or(0));
        (code, chunk)
    }

    /// Decompresses `chunk` into the front of `dest` with `nthreads` threads; the code.
    pub fn decompress(&self, chunk: &[u8], nthreads: i16, dest: &mut [u8]) -> c_int {
        self.with_dctx(nthreads, |ctx| {
            let (from, to) = (chunk.as_ptr().cast(), dest.as_mut_ptr().cast());
            // SAFETY: the context is valid and the sizes are those of the slices.
            unsafe { (self.decompress)(ctx, from, int(chunk.len()), to, int(dest.len())) }
        })
    }

    /// Hands a context for decompression to `work`.
    pub fn with_dctx<T>(&self, nthreads: i16, work: impl FnOnce(*mut blosc2_context) -> T) -> T {
        let mut params = blosc2_get_blosc2_dparams_defaults();
        params.nthreads = nthreads.into();
        // SAFETY: all pointers in the parameters are null.
        let ctx = unsafe { (self.create_dctx)(params) };
        assert!(!ctx.is_null());
        let outcome = work(ctx);
        // SAFETY: the context was made above.
        unsafe { (self.free_ctx)(ctx) };
        outcome
    }
}

/// The codecs and filters that parameters are made of: those that lose no data.
const CODECS: [u8; 5] = [codec::BLOSCLZ, codec::LZ4, codec::LZ4HC, codec::ZLIB, codec::ZSTD];
const FILTERS: [u8; 4] = [filter::NONE, filter::SHUFFLE, filter::BITSHUFFLE, filter::DELTA];

/// Parameters chosen by the first 16 bytes of `input`, none of which loses data, and the rest of it.
pub fn params(input: &[u8]) -> Option<(blosc2_cparams, &[u8])> {
    let (head, rest) = input.split_at_checked(16)?;
    let mut params = blosc2_get_blosc2_cparams_defaults();
    params.compcode = CODECS[usize::from(head[0] % 5)];
    params.clevel = head[1] % 10;
    params.typesize = [1, 2, 3, 4, 7, 8, 12, 16, 255, 300][usize::from(head[2] % 10)];
    params.nthreads = i16::from(head[3] % 3) + 1;
    params.blocksize = if head[4] & 1 == 0 { 0 } else { i32::from(u16::from_le_bytes([head[5], head[6]])) };
    params.splitmode = i32::from(head[7] % 4) + 1; // all four of them
    let last_alone = head[8] & 1 == 0;
    for slot in 0..MAX_FILTERS {
        let left_out = last_alone && slot != SHUFFLE_SLOT;
        params.filters[slot] = if left_out { filter::NONE } else { FILTERS[usize::from(head[9 + slot] % 4)] };
    }
    let takes_dict = matches!(params.compcode, codec::LZ4 | codec::LZ4HC | codec::ZSTD);
    params.use_dict = c_int::from(head[15] & 7 == 7 && takes_dict);
    Some((params, rest))
}

/// A super-chunk.
pub struct Schunk(pub *mut blosc2_schunk);

impl Drop for Schunk {
    fn drop(&mut self) {
        // SAFETY: the super-chunk is ours and not used any more.
        unsafe { blosc2_schunk_free(self.0) };
    }
}

impl Schunk {
    fn of(raw: *mut blosc2_schunk) -> Option<Schunk> {
        (!raw.is_null()).then_some(Schunk(raw))
    }

    /// An empty contiguous frame in memory.
    pub fn new(params: &mut blosc2_cparams) -> Option<Schunk> {
        let mut storage = blosc2_storage {
            contiguous: CBool::from(true),
            urlpath: ptr::null_mut(),
            cparams: params,
            dparams: ptr::null_mut(),
            io: ptr::null_mut(),
        };
        // SAFETY: the storage and its parameters are valid for the call.
        Schunk::of(unsafe { blosc2_schunk_new(&raw mut storage) })
    }

    /// The frame in `bytes`, which are copied.
    pub fn from_buffer(bytes: &[u8]) -> Option<Schunk> {
        let (at, len) = (bytes.as_ptr().cast_mut(), i64::from(int(bytes.len())));
        // SAFETY: the bytes are readable, and only read, since a copy is asked for.
        Schunk::of(unsafe { blosc2_schunk_from_buffer(at, len, CBool::from(true)) })
    }

    /// The frame in a file or directory.
    pub fn open(path: &Path) -> Option<Schunk> {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero in our paths");
        // SAFETY: the path is terminated.
        Schunk::of(unsafe { blosc2_schunk_open(path.as_ptr()) })
    }

    /// The fields that C sees.
    pub fn fields(&self) -> &blosc2_schunk {
        // SAFETY: the super-chunk is alive, and no other thread has it.
        unsafe { &*self.0 }
    }

    /// The super-chunk as a frame.
    pub fn to_buffer(&self) -> Option<Vec<u8>> {
        let (mut frame, mut needs_free) = (ptr::null_mut(), CBool::from(false));
        // SAFETY: the super-chunk is alive and the places are ours.
        let len = unsafe { blosc2_schunk_to_buffer(self.0, &raw mut frame, &raw mut needs_free) };
        let len = usize::try_from(len).ok()?;
        // SAFETY: the library says that the frame has this length.
        let bytes = unsafe { std::slice::from_raw_parts(frame, len) }.to_vec();
        if needs_free.get() {
            // SAFETY: the library gave it away.
            unsafe { release(frame) };
        }
        Some(bytes)
    }

    /// Decompresses a chunk; the bytes, or the error.
    pub fn chunk(&self, nchunk: i64, room: usize) -> Result<Vec<u8>, c_int> {
        let mut out = vec![0_u8; room];
        let to = out.as_mut_ptr().cast();
        // SAFETY: the super-chunk is alive and `out` has the room that is told.
        let code = unsafe { blosc2_schunk_decompress_chunk(self.0, nchunk, to, int(room)) };
        let len = usize::try_from(code).map_err(|_| code)?;
        out.truncate(len);
        Ok(out)
    }

    /// Reads chunks, lazy chunks, items, metalayers, and a box of items if it is an array.
    pub fn read_everything(&self) {
        for nchunk in 0..self.fields().nchunks.min(8) {
            let _ = self.chunk(nchunk, MAX_OUTPUT);
            let (mut chunk, mut needs_free) = (ptr::null_mut(), CBool::from(false));
            // SAFETY: the super-chunk is alive and the places are ours.
            let len =
                unsafe { blosc2_schunk_get_lazychunk(self.0, nchunk, &raw mut chunk, &raw mut needs_free) };
            if len >= 0 && needs_free.get() {
                // SAFETY: the library gave it away.
                unsafe { release(chunk) };
            }
        }
        let typesize = usize::try_from(self.fields().typesize).unwrap_or(0);
        let mut items = vec![0_u8; MAX_OUTPUT];
        if typesize * 100 <= items.len() {
            // SAFETY: there is room for a hundred items.
            unsafe { blosc2_schunk_get_slice_buffer(self.0, 3, 103, items.as_mut_ptr().cast()) };
        }
        self.read_vlmetalayers();
        self.read_array(typesize);
    }

    fn read_vlmetalayers(&self) {
        let mut names: Vec<*mut c_char> = vec![ptr::null_mut(); 8192];
        // SAFETY: there is room for the names of as many layers as a super-chunk can have.
        let count = unsafe { blosc2_vlmeta_get_names(self.0, names.as_mut_ptr()) };
        for name in names.iter().take(usize::try_from(count).unwrap_or(0)) {
            let (mut content, mut len) = (ptr::null_mut(), 0);
            // SAFETY: the names live as long as the super-chunk.
            if unsafe { blosc2_vlmeta_get(self.0, *name, &raw mut content, &raw mut len) } >= 0 {
                // SAFETY: the library gave it away.
                unsafe { release(content) };
            }
        }
    }

    /// Reads up to two items in each dimension.
    fn read_array(&self, typesize: usize) {
        let mut array = ptr::null_mut();
        // SAFETY: the super-chunk is alive and the place is ours.
        if unsafe { b2nd_from_schunk(self.0, &raw mut array) } < 0 {
            return;
        }
        // SAFETY: the array was just made.
        let fields = unsafe { &mut *array };
        let ndim = usize::try_from(fields.ndim).expect("checked by the library");
        let start = [0_i64; 16];
        let stop: Vec<i64> = fields.shape[..ndim].iter().map(|&extent| extent.min(2)).collect();
        let items: i64 = stop.iter().product();
        let bytes = usize::try_from(items).unwrap_or(0) * typesize;
        if bytes <= MAX_OUTPUT {
            let mut dest = vec![0_u8; bytes];
            let (to, len) = (dest.as_mut_ptr().cast(), i64::from(int(bytes)));
            // SAFETY: start, stop and shape have one extent per dimension; the destination has the length told.
            unsafe { b2nd_get_slice_cbuffer(array, start.as_ptr(), stop.as_ptr(), to, stop.as_ptr(), len) };
        }
        // The super-chunk is released by its owner.
        fields.sc = ptr::null_mut();
        // SAFETY: the array is ours; without a super-chunk, it releases itself alone.
        unsafe { b2nd_free(array) };
    }
}
