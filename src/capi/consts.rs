//! Array lengths and identifiers of the public headers that the exported functions need.
//!
//! Names and values are those of `blosc2.h` and `b2nd.h`, where they are enum constants and macros.

#![forbid(unsafe_code)]

use std::ffi::{CStr, c_int};

use crate::format::{consts, geometry, metalayers};

/// Slots of the filter pipeline.
pub const BLOSC2_MAX_FILTERS: usize = consts::MAX_FILTERS;
/// Most fixed-length metalayers of a super-chunk.
pub const BLOSC2_MAX_METALAYERS: usize = metalayers::MAX_METALAYERS;
/// Most variable-length metalayers of a super-chunk.
pub const BLOSC2_MAX_VLMETALAYERS: usize = metalayers::MAX_VLMETALAYERS;
/// Longest name of a metalayer, in bytes, without the final NUL.
pub const BLOSC2_METALAYER_NAME_MAXLEN: usize = metalayers::MAX_NAME;
/// Most dimensions of an array.
pub const B2ND_MAX_DIM: usize = geometry::MAX_DIM;

/// The version of the C API that this library implements; what `blosc2_get_version_string` returns.
pub const BLOSC2_VERSION_STRING: &CStr = c"3.3.5";

/// Success.
pub const BLOSC2_ERROR_SUCCESS: c_int = 0;

/// I/O with plain files.
pub const BLOSC2_IO_FILESYSTEM: u8 = 0;
/// I/O with memory-mapped files.
pub const BLOSC2_IO_FILESYSTEM_MMAP: u8 = 1;
/// First identifier of I/O back-ends registered with the Blosc developers.
pub const BLOSC2_IO_BLOSC_DEFINED: c_int = 32;
/// First identifier that applications may register.
pub const BLOSC2_IO_REGISTERED: c_int = 160;

/// Default dtype of an array: unsigned bytes.
pub const B2ND_DEFAULT_DTYPE: &CStr = c"|u1";
