//! The functions of the application that the headers have types for.

use std::ffi::{c_char, c_int, c_void};

use super::{blosc2_cparams, blosc2_dparams, blosc2_postfilter_params, blosc2_prefilter_params};

/// Runs `numjobs` calls of `dojob`, in any order and on any threads, and returns when all are done.
///
/// Job `i` is the call `dojob((char *)jobdata + i * jobdata_elsize)`.
pub type blosc_threads_callback = Option<
    unsafe extern "C" fn(
        callback_data: *mut c_void,
        dojob: Option<unsafe extern "C" fn(*mut c_void)>,
        numjobs: c_int,
        jobdata_elsize: usize,
        jobdata: *mut c_void,
    ),
>;

/// Opens `urlpath` in the `fopen` mode `mode`; returns a stream, or NULL.
pub type blosc2_open_cb = Option<
    unsafe extern "C" fn(urlpath: *const c_char, mode: *const c_char, params: *mut c_void) -> *mut c_void,
>;
/// Closes `stream`; returns 0, or another value on failure.
pub type blosc2_close_cb = Option<unsafe extern "C" fn(stream: *mut c_void) -> c_int>;
/// The size of the file behind `stream` in bytes, or a negative value.
pub type blosc2_size_cb = Option<unsafe extern "C" fn(stream: *mut c_void) -> i64>;
/// Writes `nitems` items of `size` bytes at byte `position`; returns the number of items written.
pub type blosc2_write_cb = Option<
    unsafe extern "C" fn(
        ptr: *const c_void,
        size: i64,
        nitems: i64,
        position: i64,
        stream: *mut c_void,
    ) -> i64,
>;
/// Reads `nitems` items of `size` bytes at byte `position`; returns the number of items read.
///
/// `*ptr` is the buffer to fill if the back-end's `is_allocation_necessary` is set; otherwise the callback stores
/// there the address of memory of its own that holds the bytes.
pub type blosc2_read_cb = Option<
    unsafe extern "C" fn(
        ptr: *mut *mut c_void,
        size: i64,
        nitems: i64,
        position: i64,
        stream: *mut c_void,
    ) -> i64,
>;
/// Cuts or extends the file to `size` bytes; returns 0, or another value on failure.
pub type blosc2_truncate_cb = Option<unsafe extern "C" fn(stream: *mut c_void, size: i64) -> c_int>;
/// Called with the `params` of a `blosc2_io` when its super-chunk is freed, when nothing can be opened with it, and when
/// an array cannot be filled; returns 0, or a negative value. When a super-chunk cannot be made or copied, for instance
/// because something exists at its path, `params` stay the caller's.
pub type blosc2_destroy_cb = Option<unsafe extern "C" fn(params: *mut c_void) -> c_int>;

/// Computes the bytes to compress of one block; returns 0, or a non-zero value to make the compression fail.
pub type blosc2_prefilter_fn = Option<unsafe extern "C" fn(params: *mut blosc2_prefilter_params) -> c_int>;
/// Turns one decompressed block into the bytes to hand out; returns 0, or a non-zero value to make the
/// decompression fail.
pub type blosc2_postfilter_fn = Option<unsafe extern "C" fn(params: *mut blosc2_postfilter_params) -> c_int>;

/// Compresses `input` into `output`; returns the bytes written, 0 if they do not fit, or a negative code.
pub type blosc2_codec_encoder_cb = Option<
    unsafe extern "C" fn(
        input: *const u8,
        input_len: i32,
        output: *mut u8,
        output_len: i32,
        meta: u8,
        cparams: *mut blosc2_cparams,
        chunk: *const c_void,
    ) -> c_int,
>;
/// Decompresses `input` into `output`; returns the bytes written, or a negative code.
pub type blosc2_codec_decoder_cb = Option<
    unsafe extern "C" fn(
        input: *const u8,
        input_len: i32,
        output: *mut u8,
        output_len: i32,
        meta: u8,
        dparams: *mut blosc2_dparams,
        chunk: *const c_void,
    ) -> c_int,
>;
/// Filters `length` bytes of `src` into `dest`; returns 0, or a negative code.
pub type blosc2_filter_forward_cb = Option<
    unsafe extern "C" fn(
        src: *const u8,
        dest: *mut u8,
        length: i32,
        meta: u8,
        cparams: *mut blosc2_cparams,
        id: u8,
    ) -> c_int,
>;
/// Undoes the filter: `length` bytes of `src` into `dest`; returns 0, or a negative code.
pub type blosc2_filter_backward_cb = Option<
    unsafe extern "C" fn(
        src: *const u8,
        dest: *mut u8,
        length: i32,
        meta: u8,
        dparams: *mut blosc2_dparams,
        id: u8,
    ) -> c_int,
>;
