//! The part of the system's `zlib.h` that is used, of any version since 1.2.

#![expect(non_camel_case_types, reason = "named as in zlib.h")]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

pub(super) type uInt = c_uint;

pub(super) const Z_OK: c_int = 0;
pub(super) const Z_STREAM_END: c_int = 1;
pub(super) const Z_BUF_ERROR: c_int = -5;
pub(super) const Z_SYNC_FLUSH: c_int = 2;
pub(super) const Z_FINISH: c_int = 4;

type Allocate = unsafe extern "C" fn(*mut c_void, uInt, uInt) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// `z_stream_s`; all zero, it asks for zlib's own allocator.
#[repr(C)]
pub(super) struct z_stream {
    pub(super) next_in: *mut u8,
    pub(super) avail_in: uInt,
    total_in: c_ulong,
    pub(super) next_out: *mut u8,
    pub(super) avail_out: uInt,
    total_out: c_ulong,
    msg: *mut c_char,
    state: *mut c_void,
    allocate: Option<Allocate>,
    free: Option<Free>,
    opaque: *mut c_void,
    data_type: c_int,
    adler: c_ulong,
    reserved: c_ulong,
}

unsafe extern "C" {
    pub(super) fn deflateInit_(
        stream: *mut z_stream,
        level: c_int,
        version: *const c_char,
        size: c_int,
    ) -> c_int;
    pub(super) fn deflate(stream: *mut z_stream, flush: c_int) -> c_int;
    pub(super) fn deflateReset(stream: *mut z_stream) -> c_int;
    pub(super) fn deflateEnd(stream: *mut z_stream) -> c_int;
    pub(super) fn inflateInit_(stream: *mut z_stream, version: *const c_char, size: c_int) -> c_int;
    pub(super) fn inflate(stream: *mut z_stream, flush: c_int) -> c_int;
    pub(super) fn inflateReset(stream: *mut z_stream) -> c_int;
    pub(super) fn inflateEnd(stream: *mut z_stream) -> c_int;
    pub(super) fn zlibVersion() -> *const c_char;
}
