//! The structs and callback types of the public headers, byte for byte.
//!
//! The doc comments here are those of the headers. Clients allocate most of these structs themselves, so no field may
//! be added, moved or resized; the assertions in `layout` hold that of 64-bit targets.
//!
//! Strings and pointers in structs that a client fills in belong to the client. Those in structs that the library
//! allocates (`blosc2_schunk`, `b2nd_array_t`) belong to the library and live as long as the struct.

#![allow(non_camel_case_types)] // The C names.

mod callbacks;
#[cfg(target_pointer_width = "64")]
mod layout;

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::consts::{
    B2ND_MAX_DIM, BLOSC2_IO_FILESYSTEM, BLOSC2_MAX_FILTERS, BLOSC2_MAX_METALAYERS, BLOSC2_MAX_VLMETALAYERS,
};
use crate::format::consts::{DEFAULT_FILTERS, codec, split};

pub use callbacks::*;

/// C's `bool` in memory that C code wrote: any byte that is not 0 counts as true, where a Rust `bool` other than 0 or 1
/// would be undefined behaviour.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CBool(u8);

impl CBool {
    /// `false`.
    pub const FALSE: CBool = CBool(0);
    /// `true`.
    pub const TRUE: CBool = CBool(1);

    /// The value for Rust.
    #[must_use]
    pub const fn get(self) -> bool {
        self.0 != 0
    }

    /// The value for C.
    #[must_use]
    pub const fn new(value: bool) -> CBool {
        CBool(value as u8)
    }
}

impl From<bool> for CBool {
    fn from(value: bool) -> CBool {
        CBool::new(value)
    }
}

/// A compression or decompression context (opaque).
#[repr(C)]
pub struct blosc2_context {
    _opaque: [u8; 0],
}

/// A frame (opaque).
#[repr(C)]
pub struct blosc2_frame {
    _opaque: [u8; 0],
}

/// The parameters for creating an array (opaque).
#[repr(C)]
pub struct b2nd_context_t {
    _opaque: [u8; 0],
}

/// A point in time.
pub type blosc_timestamp_t = super::clock::Timestamp;

/// What an instrumented codec puts at the start of each block instead of data.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct blosc2_instr {
    /// Compression ratio of the block.
    pub cratio: f32,
    /// Compression speed, in bytes per second.
    pub cspeed: f32,
    /// Filter speed, in bytes per second.
    pub filter_speed: f32,
    /// Byte 0 is 1 if the block is a run of one value; the others are reserved.
    pub flags: [u8; 4],
}

/// An I/O back-end: the callbacks behind one identifier.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_io_cb {
    /// The identifier, as in `blosc2_io`.
    pub id: u8,
    /// A name for messages.
    pub name: *mut c_char,
    /// Whether `read` fills a buffer of the caller (true) or lends memory of its own (false).
    pub is_allocation_necessary: CBool,
    /// Opens a file.
    pub open: blosc2_open_cb,
    /// Closes a stream.
    pub close: blosc2_close_cb,
    /// The size of a file.
    pub size: blosc2_size_cb,
    /// Writes at a position.
    pub write: blosc2_write_cb,
    /// Reads at a position.
    pub read: blosc2_read_cb,
    /// Sets the size of a file.
    pub truncate: blosc2_truncate_cb,
    /// Called when the super-chunk is freed, or cannot be opened.
    pub destroy: blosc2_destroy_cb,
}

/// Which I/O back-end to use, and its parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_io {
    /// The identifier of the back-end.
    pub id: u8,
    /// Informational; never read.
    pub name: *const c_char,
    /// Handed to the back-end's `open` and `destroy`.
    pub params: *mut c_void,
}

/// A tuner: chooses block sizes and compression parameters as chunks come along.
///
/// All callbacks return 0, or a negative code.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_tuner {
    /// Prepares the tuner. `config` is only valid during the call; `dctx` may be NULL.
    pub init: Option<
        unsafe extern "C" fn(
            config: *mut c_void,
            cctx: *mut blosc2_context,
            dctx: *mut blosc2_context,
        ) -> c_int,
    >,
    /// Chooses the block size of the next chunk; the only callback used while the tuner is not initialised.
    pub next_blocksize: Option<unsafe extern "C" fn(context: *mut blosc2_context) -> c_int>,
    /// Chooses the compression parameters of the next chunk.
    pub next_cparams: Option<unsafe extern "C" fn(context: *mut blosc2_context) -> c_int>,
    /// Learns how long the last compression took, in seconds.
    pub update: Option<unsafe extern "C" fn(context: *mut blosc2_context, ctime: f64) -> c_int>,
    /// Releases what `init` made.
    pub free: Option<unsafe extern "C" fn(context: *mut blosc2_context) -> c_int>,
    /// The identifier.
    pub id: c_int,
    /// The name, also that of the plugin `libblosc2_<name>`.
    pub name: *mut c_char,
}

/// What a prefilter gets for each block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_prefilter_params {
    /// From the `preparams` of the compression parameters.
    pub user_data: *mut c_void,
    /// The bytes of this block in the source buffer.
    pub input: *const u8,
    /// Where the prefilter puts the bytes of this block.
    pub output: *mut u8,
    /// Bytes to put there.
    pub output_size: i32,
    /// Bytes per item.
    pub output_typesize: i32,
    /// Where this block begins in the chunk, in bytes.
    pub output_offset: i32,
    /// The number of the chunk in its super-chunk, or -1.
    pub nchunk: i64,
    /// The number of the block in its chunk.
    pub nblock: i32,
    /// The number of the thread that makes the call, from 0.
    pub tid: i32,
    /// Scratch memory of this thread that can hold a few blocks.
    pub ttmp: *mut u8,
    /// Bytes of scratch memory.
    pub ttmp_nbytes: usize,
    /// The compression context.
    pub ctx: *mut blosc2_context,
    /// Set if the result is not going to be stored, as when only block sizes are tried.
    pub output_is_disposable: CBool,
}

/// What a postfilter gets for each block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_postfilter_params {
    /// From the `postparams` of the decompression parameters.
    pub user_data: *mut c_void,
    /// The decompressed bytes of this block.
    pub input: *const u8,
    /// Where the postfilter puts its result.
    pub output: *mut u8,
    /// Bytes of input and output.
    pub size: i32,
    /// Bytes per item.
    pub typesize: i32,
    /// Where this block begins in the chunk, in bytes.
    pub offset: i32,
    /// The number of the chunk in its super-chunk, or -1.
    pub nchunk: i64,
    /// The number of the block in its chunk.
    pub nblock: i32,
    /// The number of the thread that makes the call, from 0.
    pub tid: i32,
    /// Scratch memory of this thread that can hold a few blocks.
    pub ttmp: *mut u8,
    /// Bytes of scratch memory.
    pub ttmp_nbytes: usize,
    /// The decompression context.
    pub ctx: *mut blosc2_context,
}

/// The parameters of compression. Start from `BLOSC2_CPARAMS_DEFAULTS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_cparams {
    /// The codec.
    pub compcode: u8,
    /// A byte for the codec: its meaning depends on it.
    pub compcode_meta: u8,
    /// The compression level, 0 (store) to 9.
    pub clevel: u8,
    /// Non-zero to use a dictionary, with zstd, lz4 and lz4hc.
    pub use_dict: c_int,
    /// Bytes per item.
    pub typesize: i32,
    /// Number of threads.
    pub nthreads: i16,
    /// Requested block size in bytes; 0 for automatic.
    pub blocksize: i32,
    /// Whether blocks are split into one stream per byte of an item: one of the `BLOSC_*_SPLIT` constants.
    pub splitmode: i32,
    /// The associated super-chunk, or NULL.
    pub schunk: *mut c_void,
    /// The filters, applied from first to last; 0 is none.
    pub filters: [u8; BLOSC2_MAX_FILTERS],
    /// A byte for each filter: its meaning depends on the filter.
    pub filters_meta: [u8; BLOSC2_MAX_FILTERS],
    /// Called for each block before the filters, or NULL.
    pub prefilter: blosc2_prefilter_fn,
    /// The prefilter's parameters.
    pub preparams: *mut blosc2_prefilter_params,
    /// The tuner's configuration.
    pub tuner_params: *mut c_void,
    /// The tuner.
    pub tuner_id: c_int,
    /// Whether blocks hold measurements (`blosc2_instr`) instead of data.
    pub instr_codec: CBool,
    /// For a registered codec.
    pub codec_params: *mut c_void,
    /// For registered filters.
    pub filter_params: [*mut c_void; BLOSC2_MAX_FILTERS],
}

/// The parameters of decompression. Start from `BLOSC2_DPARAMS_DEFAULTS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_dparams {
    /// Number of threads.
    pub nthreads: i16,
    /// The associated super-chunk, or NULL.
    pub schunk: *mut c_void,
    /// Called for each block after the filters, or NULL.
    pub postfilter: blosc2_postfilter_fn,
    /// The postfilter's parameters.
    pub postparams: *mut blosc2_postfilter_params,
    /// Bytes per item.
    pub typesize: i32,
}

/// Where and how a super-chunk is stored. Start from `BLOSC2_STORAGE_DEFAULTS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_storage {
    /// One contiguous frame (true), or chunks apart from each other (false).
    pub contiguous: CBool,
    /// The file (contiguous) or directory (sparse), or NULL for memory.
    pub urlpath: *mut c_char,
    /// The compression parameters, or NULL for the defaults.
    pub cparams: *mut blosc2_cparams,
    /// The decompression parameters, or NULL for the defaults.
    pub dparams: *mut blosc2_dparams,
    /// The I/O back-end, or NULL for plain files.
    pub io: *mut blosc2_io,
}

/// A named piece of metadata.
///
/// Of those that a super-chunk shows, programs may change contents, in place or in other memory from `malloc`, and
/// names; calls that use metalayers look for that.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_metalayer {
    /// The name, at most 31 bytes.
    pub name: *mut c_char,
    /// The content.
    pub content: *mut u8,
    /// Bytes of content.
    pub content_len: i32,
}

/// A super-chunk: a sequence of chunks with the same parameters, and metadata.
///
/// Made by `blosc2_schunk_new` and its like only. Treat the fields as read-only, apart from `cctx` and `dctx`, which
/// may be replaced by other contexts (NULL before `blosc2_schunk_free` to keep them), and `current_nchunk`; what may be
/// changed of metalayers, `blosc2_metalayer` tells.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_schunk {
    /// 0. The version of a frame stands in its header.
    pub version: u8,
    /// The codec.
    pub compcode: u8,
    /// A byte for the codec.
    pub compcode_meta: u8,
    /// The compression level.
    pub clevel: u8,
    /// The split mode.
    pub splitmode: u8,
    /// Bytes per item.
    pub typesize: i32,
    /// Requested block size in bytes; 0 for automatic.
    pub blocksize: i32,
    /// Uncompressed bytes per chunk; -1 before the first one, 0 if the chunks differ in size, except for a shorter last
    /// one.
    pub chunksize: i32,
    /// Flags of the chunks: bit 0 is set if their blocks have variable length.
    pub flags2: u8,
    /// Whether dictionaries are used.
    pub use_dict: u8,
    /// The filters.
    pub filters: [u8; BLOSC2_MAX_FILTERS],
    /// A byte for each filter.
    pub filters_meta: [u8; BLOSC2_MAX_FILTERS],
    /// Number of chunks.
    pub nchunks: i64,
    /// The chunk being worked on.
    pub current_nchunk: i64,
    /// Uncompressed bytes of all chunks.
    pub nbytes: i64,
    /// Compressed bytes of all chunks.
    pub cbytes: i64,
    /// The chunks of a sparse super-chunk in memory, else NULL.
    pub data: *mut *mut u8,
    /// Bytes allocated for the array of chunk pointers.
    pub data_len: usize,
    /// A copy of what the super-chunk was made with.
    pub storage: *mut blosc2_storage,
    /// The frame behind the super-chunk, or NULL.
    pub frame: *mut blosc2_frame,
    /// The context that compresses chunks.
    pub cctx: *mut blosc2_context,
    /// The context that decompresses chunks.
    pub dctx: *mut blosc2_context,
    /// The fixed-length metalayers.
    pub metalayers: [*mut blosc2_metalayer; BLOSC2_MAX_METALAYERS],
    /// Number of fixed-length metalayers.
    pub nmetalayers: u16,
    /// The variable-length metalayers; their contents are compressed.
    pub vlmetalayers: [*mut blosc2_metalayer; BLOSC2_MAX_VLMETALAYERS],
    /// Number of variable-length metalayers.
    pub nvlmetalayers: i16,
    /// The tuner's configuration.
    pub tuner_params: *mut c_void,
    /// The tuner.
    pub tuner_id: c_int,
    /// 0 or -1. The shape of an array stands in its metalayer.
    pub ndim: i8,
    /// Shape of the array's blocks, in items, or NULL.
    pub blockshape: *mut i64,
    /// Whether this is a view that shares its chunks with another super-chunk.
    pub view: CBool,
    /// Grows each time the contents were read again from the file.
    pub change_tick: i64,
}

/// A codec of the application.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_codec {
    /// The identifier.
    pub compcode: u8,
    /// The name; not copied by `blosc2_register_codec`.
    pub compname: *mut c_char,
    /// The identifier of its library.
    pub complib: u8,
    /// The version of its format.
    pub version: u8,
    /// Compresses.
    pub encoder: blosc2_codec_encoder_cb,
    /// Decompresses.
    pub decoder: blosc2_codec_decoder_cb,
}

/// A filter of the application.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_filter {
    /// The identifier.
    pub id: u8,
    /// The name; not copied by `blosc2_register_filter`.
    pub name: *mut c_char,
    /// The version of its format.
    pub version: u8,
    /// Filters.
    pub forward: blosc2_filter_forward_cb,
    /// Undoes the filter.
    pub backward: blosc2_filter_backward_cb,
}

/// The stream of the plain-file back-end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_stdio_file {
    /// The open file.
    pub file: *mut libc::FILE,
}

/// The parameters of the plain-file back-end. They must outlive the super-chunks opened with them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_stdio_params {
    /// Whether accesses are serialised with those of other handles and processes, by a lock file beside the frame.
    /// The environment variable `BLOSC_LOCKING` does the same for every frame.
    pub locking: CBool,
}

/// The parameters of the memory-mapping back-end, and the state of the mapping.
///
/// The caller sets the first three fields and takes the others from `BLOSC2_STDIO_MMAP_DEFAULTS`. One struct serves
/// one super-chunk, and lives at least as long.
///
/// `mode` becomes NULL when the file was mapped; set it again before the struct is used for another file. A call that
/// fails to open has ended the mapping, and released the struct if `needs_free` is set; after a call that fails to make
/// or copy a super-chunk, end the mapping with `blosc2_stdio_mmap_destroy`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct blosc2_stdio_mmap {
    /// `"r"` to read a file, `"r+"` to change it, `"w+"` to create it, `"c"` to change it in memory only.
    pub mode: *const c_char,
    /// Bytes to map at first, where the file can grow (modes `r+`, `w+`, `c`).
    pub initial_mapping_size: usize,
    /// Whether the library releases this struct with `free()` together with the super-chunk.
    pub needs_free: CBool,
    /// State: start of the mapping.
    pub addr: *mut c_char,
    /// State: the path.
    pub urlpath: *mut c_char,
    /// State: bytes in the file.
    pub file_size: usize,
    /// State: bytes mapped.
    pub mapping_size: usize,
    /// State: whether changes stay in memory (mode `c`).
    pub is_memory_only: CBool,
    /// State: the open file.
    pub file: *mut libc::FILE,
    /// State: its descriptor.
    pub fd: c_int,
    /// State: access flags of the mapping.
    pub access_flags: i64,
    /// State: other flags of the mapping.
    pub map_flags: i64,
    /// State: the handle of the mapping.
    #[cfg(windows)]
    pub mmap_handle: *mut c_void,
}

/// The last chunk read, kept for the next access to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chunk_cache_s {
    /// The decompressed chunk, or NULL.
    pub data: *mut u8,
    /// Its number, or -1 if there is none.
    pub nchunk: i64,
}

/// A multidimensional array, stored in a super-chunk: one chunk per box of `chunkshape` items.
///
/// Treat the fields as read-only. Shapes and strides are in items, the first `ndim` entries count, in C order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct b2nd_array_t {
    /// The super-chunk.
    pub sc: *mut blosc2_schunk,
    /// The shape.
    pub shape: [i64; B2ND_MAX_DIM],
    /// The shape of a chunk.
    pub chunkshape: [i32; B2ND_MAX_DIM],
    /// The shape, padded to whole chunks.
    pub extshape: [i64; B2ND_MAX_DIM],
    /// The shape of a block.
    pub blockshape: [i32; B2ND_MAX_DIM],
    /// The shape of a chunk, padded to whole blocks.
    pub extchunkshape: [i64; B2ND_MAX_DIM],
    /// Items of the array.
    pub nitems: i64,
    /// Items of a chunk.
    pub chunknitems: i32,
    /// Items of the padded array.
    pub extnitems: i64,
    /// Items of a block.
    pub blocknitems: i32,
    /// Items of a padded chunk.
    pub extchunknitems: i64,
    /// Number of dimensions.
    pub ndim: i8,
    /// The last chunk read.
    pub chunk_cache: chunk_cache_s,
    /// Strides of items in the array.
    pub item_array_strides: [i64; B2ND_MAX_DIM],
    /// Strides of items in a chunk.
    pub item_chunk_strides: [i64; B2ND_MAX_DIM],
    /// Strides of items in a padded chunk.
    pub item_extchunk_strides: [i64; B2ND_MAX_DIM],
    /// Strides of items in a block.
    pub item_block_strides: [i64; B2ND_MAX_DIM],
    /// Strides of blocks in a chunk.
    pub block_chunk_strides: [i64; B2ND_MAX_DIM],
    /// Strides of chunks in the array.
    pub chunk_array_strides: [i64; B2ND_MAX_DIM],
    /// The data type, in the notation that `dtype_format` names.
    pub dtype: *mut c_char,
    /// The notation of `dtype`: `DTYPE_NUMPY_FORMAT` or another.
    pub dtype_format: i8,
    /// The `change_tick` of the super-chunk when these fields were last brought up to date.
    pub last_tick: i64,
}

/// The functions of a codec that is loaded at run time: the names to look up in its library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct codec_info {
    /// Name of the encoder.
    pub encoder: *mut c_char,
    /// Name of the decoder.
    pub decoder: *mut c_char,
}

/// The functions of a filter that is loaded at run time: the names to look up in its library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct filter_info {
    /// Name of the filter.
    pub forward: *mut c_char,
    /// Name of its inverse.
    pub backward: *mut c_char,
}

/// The functions of a tuner that is loaded at run time: the names to look up in its library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tuner_info {
    /// Name of `init`.
    pub init: *mut c_char,
    /// Name of `next_blocksize`.
    pub next_blocksize: *mut c_char,
    /// Name of `next_cparams`.
    pub next_cparams: *mut c_char,
    /// Name of `update`.
    pub update: *mut c_char,
    /// Name of `free`.
    pub free: *mut c_char,
}

impl blosc2_cparams {
    /// `BLOSC2_CPARAMS_DEFAULTS`: BloscLZ at level 5, byte shuffle in the last filter slot, items of 8 bytes, one
    /// thread.
    pub const DEFAULTS: blosc2_cparams = blosc2_cparams {
        compcode: codec::BLOSCLZ,
        compcode_meta: 0,
        clevel: 5,
        use_dict: 0,
        typesize: 8,
        nthreads: 1,
        blocksize: 0,
        splitmode: split::FORWARD_COMPAT,
        schunk: ptr::null_mut(),
        filters: DEFAULT_FILTERS,
        filters_meta: [0; BLOSC2_MAX_FILTERS],
        prefilter: None,
        preparams: ptr::null_mut(),
        tuner_params: ptr::null_mut(),
        tuner_id: 0,
        instr_codec: CBool::FALSE,
        codec_params: ptr::null_mut(),
        filter_params: [ptr::null_mut(); BLOSC2_MAX_FILTERS],
    };
}

impl blosc2_dparams {
    /// `BLOSC2_DPARAMS_DEFAULTS`: one thread.
    pub const DEFAULTS: blosc2_dparams = blosc2_dparams {
        nthreads: 1,
        schunk: ptr::null_mut(),
        postfilter: None,
        postparams: ptr::null_mut(),
        typesize: 8,
    };
}

impl blosc2_storage {
    /// `BLOSC2_STORAGE_DEFAULTS`: sparse, in memory.
    pub const DEFAULTS: blosc2_storage = blosc2_storage {
        contiguous: CBool::FALSE,
        urlpath: ptr::null_mut(),
        cparams: ptr::null_mut(),
        dparams: ptr::null_mut(),
        io: ptr::null_mut(),
    };
}

impl blosc2_io {
    /// `BLOSC2_IO_DEFAULTS`: plain files.
    pub const DEFAULTS: blosc2_io =
        blosc2_io { id: BLOSC2_IO_FILESYSTEM, name: c"filesystem".as_ptr(), params: ptr::null_mut() };
}

impl blosc2_stdio_mmap {
    /// `BLOSC2_STDIO_MMAP_DEFAULTS`: read only.
    pub const DEFAULTS: blosc2_stdio_mmap = blosc2_stdio_mmap {
        mode: c"r".as_ptr(),
        initial_mapping_size: 1 << 30,
        needs_free: CBool::FALSE,
        addr: ptr::null_mut(),
        urlpath: ptr::null_mut(),
        file_size: 0,
        mapping_size: 0,
        is_memory_only: CBool::FALSE,
        file: ptr::null_mut(),
        fd: -1,
        access_flags: -1,
        map_flags: -1,
        #[cfg(windows)]
        mmap_handle: ptr::without_provenance_mut(usize::MAX), // INVALID_HANDLE_VALUE
    };
}
