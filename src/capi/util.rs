//! Exported functions that stand alone: filters on plain buffers, defaults, indices.

use std::ffi::c_void;

use super::guard::{guard, guard_count};
use super::ptr::{in_bytes, in_slice, out_bytes, out_slice, store};
use super::types::{blosc2_cparams, blosc2_dparams, blosc2_io, blosc2_storage};
use crate::error::{Result, require};
use crate::filters::{bitshuffle, shuffle};

/// A kernel on plain buffers: typesize, source, destination.
type Kernel = fn(usize, &[u8], &mut [u8]);

/// Runs a shuffle kernel on buffers of C; returns their size.
///
/// # Safety
///
/// `src` is readable and `dest` writable for `blocksize` bytes; the two do not overlap.
unsafe fn run_kernel(
    kernel: Kernel,
    typesize: i32,
    max_typesize: i32,
    blocksize: i32,
    src: *const c_void,
    dest: *mut c_void,
) -> Result<usize> {
    let valid = (1..=max_typesize).contains(&typesize) && blocksize >= 0;
    require(valid, "typesize or blocksize out of range")?;
    // SAFETY: the caller's promise.
    let (src, dest) = unsafe { (in_bytes(src, blocksize)?, out_bytes(dest, blocksize)?) };
    kernel(usize::try_from(typesize).expect("checked to be positive"), src, dest);
    Ok(src.len())
}

/// Largest typesize that the shuffle functions take.
const MAX_SHUFFLE_TYPESIZE: i32 = 256;

/// Shuffles the bytes of `blocksize` bytes at `src` into `dest`; returns `blocksize`, or a negative code. Items have
/// `typesize` bytes, 1 to 256.
///
/// # Safety
///
/// `src` is readable and `dest` writable for `blocksize` bytes; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_shuffle(
    typesize: i32,
    blocksize: i32,
    src: *const c_void,
    dest: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    guard_count(|| unsafe {
        run_kernel(shuffle::shuffle, typesize, MAX_SHUFFLE_TYPESIZE, blocksize, src, dest)
    })
}

/// Undoes `blosc2_shuffle`; returns `blocksize`, or a negative code.
///
/// # Safety
///
/// As for `blosc2_shuffle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_unshuffle(
    typesize: i32,
    blocksize: i32,
    src: *const c_void,
    dest: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    guard_count(|| unsafe {
        run_kernel(shuffle::unshuffle, typesize, MAX_SHUFFLE_TYPESIZE, blocksize, src, dest)
    })
}

/// Shuffles the bits of `blocksize` bytes at `src` into `dest`; returns `blocksize`, or a negative code. Items have
/// `typesize` bytes, 1 to 256.
///
/// # Safety
///
/// As for `blosc2_shuffle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_bitshuffle(
    typesize: i32,
    blocksize: i32,
    src: *const c_void,
    dest: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    guard_count(|| unsafe {
        run_kernel(bitshuffle::bitshuffle, typesize, MAX_SHUFFLE_TYPESIZE, blocksize, src, dest)
    })
}

/// Undoes `blosc2_bitshuffle`; returns `blocksize`, or a negative code.
///
/// # Safety
///
/// As for `blosc2_shuffle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_bitunshuffle(
    typesize: i32,
    blocksize: i32,
    src: *const c_void,
    dest: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    guard_count(|| unsafe { run_kernel(bitshuffle::bitunshuffle, typesize, i32::MAX, blocksize, src, dest) })
}

/// The default compression parameters.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_blosc2_cparams_defaults() -> blosc2_cparams {
    blosc2_cparams::DEFAULTS
}

/// The default decompression parameters.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_blosc2_dparams_defaults() -> blosc2_dparams {
    blosc2_dparams::DEFAULTS
}

/// The default storage properties.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_blosc2_storage_defaults() -> blosc2_storage {
    blosc2_storage::DEFAULTS
}

/// The default I/O back-end: plain files.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_blosc2_io_defaults() -> blosc2_io {
    blosc2_io::DEFAULTS
}

/// Turns the flat index `i` of an item into one index per dimension of the array of shape `shape`, in C order.
///
/// # Safety
///
/// `shape` is readable and `index` writable for `ndim` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_unidim_to_multidim(ndim: u8, shape: *mut i64, i: i64, index: *mut i64) {
    guard(|| {
        // SAFETY: the caller's promise.
        let (shape, index) = unsafe { (in_slice(shape.cast_const(), ndim)?, out_slice(index, ndim)?) };
        let Some((first, others)) = index.split_first_mut() else { return Ok(()) };
        let mut rest = i;
        for (position, &extent) in others.iter_mut().zip(&shape[1..]).rev() {
            *position = rest.checked_rem(extent).unwrap_or(0);
            rest = rest.checked_div(extent).unwrap_or(0);
        }
        // As the C library does: an index past the end shows in the first dimension.
        *first = rest;
        Ok(())
    });
}

/// Turns one index per dimension into a flat index: the sum of `index[j] * strides[j]`.
///
/// # Safety
///
/// `index` and `strides` are readable for `ndim` entries; `i` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_multidim_to_unidim(
    index: *const i64,
    ndim: i8,
    strides: *const i64,
    i: *mut i64,
) {
    guard(|| {
        // SAFETY: the caller's promise.
        let (index, strides) = unsafe { (in_slice(index, ndim)?, in_slice(strides, ndim)?) };
        let flat = index
            .iter()
            .zip(strides)
            .fold(0i64, |sum, (&position, &stride)| sum.wrapping_add(position.wrapping_mul(stride)));
        // SAFETY: the caller's promise.
        unsafe { store(i, flat) };
        Ok(())
    });
}
