//! Memory that changes hands between the tests and the libraries.

use std::ffi::c_void;
use std::ptr;

unsafe extern "C" {
    /// `free` of C.
    pub fn free(ptr: *mut c_void);
    fn malloc(size: usize) -> *mut c_void;
}

/// The bytes in memory from `malloc`.
pub fn copy(bytes: &[u8]) -> *mut u8 {
    // SAFETY: no preconditions.
    let memory: *mut u8 = unsafe { malloc(bytes.len().max(1)) }.cast();
    assert!(!memory.is_null());
    // SAFETY: just allocated with that size.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
    memory
}

/// Copies `count` values out of memory from `malloc`, and frees it. Null holds none.
///
/// # Safety
///
/// Unless null, `memory` came from `malloc`, is readable for `count` values, and nobody else frees it.
pub unsafe fn take<T: Copy>(memory: *mut T, count: i64) -> Vec<T> {
    if memory.is_null() {
        return Vec::new();
    }
    let count = usize::try_from(count).expect("a count");
    // SAFETY: the caller vouches for `count` values.
    let copy = unsafe { std::slice::from_raw_parts(memory, count) }.to_vec();
    // SAFETY: the caller hands the memory over.
    unsafe { free(memory.cast()) };
    copy
}
