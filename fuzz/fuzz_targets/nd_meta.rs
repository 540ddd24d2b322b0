//! Any bytes as the metalayer of an array: parsed, written again, and used for reading.

#![no_main]

use blosc2::capi::b2nd_ctx::{b2nd_deserialize_meta, b2nd_serialize_meta};
use blosc2::capi::meta::blosc2_meta_add;
use blosc2::capi::schunk_data::blosc2_schunk_append_buffer;
use blosc2::capi::util::blosc2_get_blosc2_cparams_defaults;
use libblosc2_rs_fuzz::{Schunk, int, release};
use libfuzzer_sys::fuzz_target;
use std::ffi::c_char;
use std::ptr;

/// What a metalayer says.
#[derive(Debug, PartialEq)]
struct Meta {
    ndim: i8,
    shape: [i64; 16],
    chunkshape: [i32; 16],
    blockshape: [i32; 16],
    dtype_format: i8,
}

/// The metalayer in `bytes` and its dtype, which the caller releases.
fn parse(bytes: &[u8]) -> Option<(Meta, *mut c_char)> {
    let mut meta =
        Meta { ndim: 0, shape: [0; 16], chunkshape: [0; 16], blockshape: [0; 16], dtype_format: 0 };
    let mut dtype = ptr::null_mut();
    // SAFETY: the length is that of the bytes, and the places have room for 16 dimensions.
    let code = unsafe {
        b2nd_deserialize_meta(
            bytes.as_ptr(),
            int(bytes.len()),
            &raw mut meta.ndim,
            meta.shape.as_mut_ptr(),
            meta.chunkshape.as_mut_ptr(),
            meta.blockshape.as_mut_ptr(),
            &raw mut dtype,
            &raw mut meta.dtype_format,
        )
    };
    if code < 0 {
        assert!(dtype.is_null(), "a failure leaves nothing to release");
        return None;
    }
    Some((meta, dtype))
}

fuzz_target!(|data: &[u8]| {
    if let Some((meta, dtype)) = parse(data) {
        let mut written = ptr::null_mut();
        // SAFETY: the shapes have 16 dimensions, and the dtype is null or a string.
        let len = unsafe {
            b2nd_serialize_meta(
                meta.ndim,
                meta.shape.as_ptr(),
                meta.chunkshape.as_ptr(),
                meta.blockshape.as_ptr(),
                dtype,
                meta.dtype_format,
                &raw mut written,
            )
        };
        if let Ok(len) = usize::try_from(len) {
            // SAFETY: the library says so.
            let bytes = unsafe { std::slice::from_raw_parts(written, len) };
            let (again, its_dtype) = parse(bytes).expect("what was written can be read");
            assert_eq!(meta, again);
            // SAFETY: the library gave both away.
            unsafe { release(its_dtype) };
            // SAFETY: as above.
            unsafe { release(written) };
        } else {
            assert!(meta.dtype_format < 0, "code {len}");
        }
        // SAFETY: as above.
        unsafe { release(dtype) };
    }
    let mut cparams = blosc2_get_blosc2_cparams_defaults();
    cparams.typesize = 4;
    let schunk = Schunk::new(&mut cparams).expect("the parameters are right");
    let mut content = data.to_vec();
    // SAFETY: the name is terminated, and the length that of the content.
    let code = unsafe { blosc2_meta_add(schunk.0, c"b2nd".as_ptr(), content.as_mut_ptr(), int(data.len())) };
    if code >= 0 {
        let items = [7_u8; 4096];
        // SAFETY: the length is that of the items.
        unsafe { blosc2_schunk_append_buffer(schunk.0, items.as_ptr().cast(), int(items.len())) };
        schunk.read_everything();
    }
});
