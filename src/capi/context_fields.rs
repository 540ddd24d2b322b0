//! The members of a context that plugins and tuners compiled against the C library know, at their offsets.

#![forbid(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI16, AtomicI32, AtomicPtr};

use super::types::{
    blosc2_postfilter_fn, blosc2_postfilter_params, blosc2_prefilter_fn, blosc2_prefilter_params,
    blosc2_schunk,
};
use crate::format::consts::MAX_FILTERS;

/// The members that C code outside of the library knows; the gaps are never used.
#[repr(C)]
#[allow(missing_docs)] // the names are those of the C library
pub(crate) struct ContextFields {
    pub(crate) src: *const u8,
    pub(crate) dest: *mut u8,
    gap_16: [u8; 4],
    pub(crate) sourcesize: i32,
    gap_24: [u8; 4],
    pub(crate) nblocks: i32,
    gap_32: [u8; 4],
    pub(crate) blocksize: i32,
    gap_40: [u8; 4],
    pub(crate) splitmode: i32,
    gap_48: [u8; 8],
    pub(crate) destsize: i32,
    pub(crate) typesize: i32,
    gap_64: [u8; 52],
    pub(crate) compcode: i32,
    pub(crate) compcode_meta: u8,
    gap_121: [u8; 3],
    pub(crate) clevel: i32,
    pub(crate) use_dict: AtomicI32,
    gap_132: [u8; 36],
    pub(crate) filter_flags: u8,
    pub(crate) filters: [u8; MAX_FILTERS],
    pub(crate) filters_meta: [u8; MAX_FILTERS],
    gap_181: [u8; 643],
    pub(crate) prefilter: blosc2_prefilter_fn,
    pub(crate) postfilter: blosc2_postfilter_fn,
    pub(crate) preparams: *mut blosc2_prefilter_params,
    pub(crate) postparams: *mut blosc2_postfilter_params,
    gap_856: [u8; 16],
    pub(crate) schunk: *mut blosc2_schunk,
    gap_880: [u8; 8],
    pub(crate) do_compress: c_int,
    gap_892: [u8; 4],
    pub(crate) tuner_params: *mut c_void,
    pub(crate) tuner_id: c_int,
    gap_908: [u8; 4],
    pub(crate) codec_params: *mut c_void,
    pub(crate) filter_params: [*mut c_void; MAX_FILTERS],
    // What is atomic changes when an operation begins, also while others of the same super-chunk are under way.
    pub(crate) nthreads: AtomicI16,
    pub(crate) new_nthreads: i16,
    pub(crate) thread_backend: AtomicI16,
    pub(crate) threads_started: AtomicI16,
    gap_976: [u8; 8],
    pub(crate) thread_pool: AtomicPtr<c_void>,
    gap_992: [u8; 352],
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<ContextFields>() == 1344);
    assert!(offset_of!(ContextFields, sourcesize) == 20);
    assert!(offset_of!(ContextFields, nblocks) == 28);
    assert!(offset_of!(ContextFields, blocksize) == 36);
    assert!(offset_of!(ContextFields, splitmode) == 44);
    assert!(offset_of!(ContextFields, destsize) == 56);
    assert!(offset_of!(ContextFields, typesize) == 60);
    assert!(offset_of!(ContextFields, compcode) == 116);
    assert!(offset_of!(ContextFields, clevel) == 124);
    assert!(offset_of!(ContextFields, use_dict) == 128);
    assert!(offset_of!(ContextFields, filter_flags) == 168);
    assert!(offset_of!(ContextFields, filters_meta) == 175);
    assert!(offset_of!(ContextFields, prefilter) == 824);
    assert!(offset_of!(ContextFields, postparams) == 848);
    assert!(offset_of!(ContextFields, schunk) == 872);
    assert!(offset_of!(ContextFields, do_compress) == 888);
    assert!(offset_of!(ContextFields, tuner_params) == 896);
    assert!(offset_of!(ContextFields, tuner_id) == 904);
    assert!(offset_of!(ContextFields, codec_params) == 912);
    assert!(offset_of!(ContextFields, filter_params) == 920);
    assert!(offset_of!(ContextFields, nthreads) == 968);
    assert!(offset_of!(ContextFields, new_nthreads) == 970);
    assert!(offset_of!(ContextFields, thread_backend) == 972);
    assert!(offset_of!(ContextFields, threads_started) == 974);
    assert!(offset_of!(ContextFields, thread_pool) == 984);
};
