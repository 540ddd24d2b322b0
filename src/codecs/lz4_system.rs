//! What LZ4's shared library does not export, by means that it does.
//!
//! Linked statically, [`super::lz4`] and [`super::lz4hc`] use four functions that LZ4 calls experimental: resets that
//! leave a table as it is where that does no harm, and dictionaries that are attached instead of copied. With the
//! feature `system-lz4` the functions here take their place. They cost a clear of the table, or a copy, per stream;
//! streams may differ in bytes from those of the built-in library, not in meaning.

#![expect(non_snake_case, reason = "named as the functions whose place they take")]

use std::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    fn LZ4_sizeofState() -> c_int;
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_compress_fast_extState(
        state: *mut c_void,
        src: *const c_char,
        dest: *mut c_char,
        src_size: c_int,
        dest_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_resetStreamHC_fast(stream: *mut c_void, level: c_int);
    fn LZ4_compress_HC_continue(
        stream: *mut c_void,
        src: *const c_char,
        dest: *mut c_char,
        src_size: c_int,
        dest_capacity: c_int,
    ) -> c_int;
}

/// Compresses one stream; the state is reset in full before.
///
/// # Safety
///
/// `state` is an initialised `LZ4_stream_t`; `src` is readable and `dest` writable for their sizes.
pub(super) unsafe fn LZ4_compress_fast_extState_fastReset(
    state: *mut c_void,
    src: *const c_char,
    dest: *mut c_char,
    src_size: c_int,
    dest_capacity: c_int,
    acceleration: c_int,
) -> c_int {
    // SAFETY: the caller's promises are those that the function asks for.
    unsafe { LZ4_compress_fast_extState(state, src, dest, src_size, dest_capacity, acceleration) }
}

/// Compresses one stream as the first one of a series that nothing follows.
///
/// # Safety
///
/// `state` is an initialised `LZ4_streamHC_t`; `src` is readable and `dest` writable for their sizes.
pub(super) unsafe fn LZ4_compress_HC_extStateHC_fastReset(
    state: *mut c_void,
    src: *const c_char,
    dest: *mut c_char,
    src_size: c_int,
    dest_capacity: c_int,
    level: c_int,
) -> c_int {
    // SAFETY: the caller vouches for the state.
    unsafe { LZ4_resetStreamHC_fast(state, level) };
    // SAFETY: the state was just reset; the caller vouches for the buffers.
    unsafe { LZ4_compress_HC_continue(state, src, dest, src_size, dest_capacity) }
}

/// Makes `working` a copy of `dictionary`, into whose bytes both point from then on.
///
/// # Safety
///
/// Both are initialised and apart; the dictionary's bytes outlive the next compression with `working`.
pub(super) unsafe fn LZ4_attach_dictionary(working: *mut c_void, dictionary: *const c_void) {
    // SAFETY: the function only returns a constant.
    let size = unsafe { LZ4_sizeofState() };
    // SAFETY: both are `LZ4_stream_t`, plain data of this size, as LZ4 documents.
    unsafe { copy(dictionary, working, size) };
}

/// As [`LZ4_attach_dictionary`], with the dictionary's compression level.
///
/// # Safety
///
/// As there.
pub(super) unsafe fn LZ4_attach_HC_dictionary(working: *mut c_void, dictionary: *const c_void) {
    // SAFETY: the function only returns a constant.
    let size = unsafe { LZ4_sizeofStateHC() };
    // SAFETY: both are `LZ4_streamHC_t`, plain data of this size, as LZ4 documents.
    unsafe { copy(dictionary, working, size) };
}

/// Copies `size` bytes.
///
/// # Safety
///
/// `from` is readable and `to` writable for as many bytes, and they do not overlap.
unsafe fn copy(from: *const c_void, to: *mut c_void, size: c_int) {
    let size = usize::try_from(size).expect("the size of a struct is positive");
    // SAFETY: the caller's promises.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), size) };
}
