//! Metalayers as the struct shows them: memory of C's allocator, which clients read.

use crate::capi::mem::{c_array, c_bytes};
use crate::capi::types::blosc2_metalayer;
use crate::error::Result;
use crate::format::metalayers::Metalayer;
use std::ffi::CStr;
use std::ptr;

/// Shows `layers` in an array of the struct. Those that are there already stay where they are.
///
/// # Safety
///
/// The entries of `slots` are null or layers made here, and nobody else uses the array.
pub(super) unsafe fn show_layers(slots: &mut [*mut blosc2_metalayer], layers: &[Metalayer]) -> Result<()> {
    for (slot, layer) in slots.iter_mut().zip(layers) {
        // SAFETY: the caller's promise.
        unsafe {
            if shows(*slot, layer) {
                continue;
            }
            let new = make_layer(layer)?;
            free_layer(*slot);
            *slot = new;
        }
    }
    let rest = slots.iter_mut().skip(layers.len()).take_while(|slot| !slot.is_null());
    for slot in rest {
        // SAFETY: the caller's promise.
        unsafe { free_layer(*slot) };
        *slot = ptr::null_mut();
    }
    Ok(())
}

/// Whether `shown` is there and shows `layer`.
///
/// # Safety
///
/// As for [`show_layers`].
unsafe fn shows(shown: *const blosc2_metalayer, layer: &Metalayer) -> bool {
    // SAFETY: the caller's promise: name and content are as long as they were made.
    unsafe {
        let Some(shown) = shown.as_ref() else { return false };
        let len = usize::try_from(shown.content_len).unwrap_or(0);
        len == layer.content.len()
            && CStr::from_ptr(shown.name).to_bytes() == layer.name
            && (len == 0 || std::slice::from_raw_parts(shown.content, len) == layer.content)
    }
}

fn make_layer(layer: &Metalayer) -> Result<*mut blosc2_metalayer> {
    let mut name = layer.name.clone();
    name.push(0);
    let name = c_bytes(&name)?;
    let made = c_bytes(&layer.content).and_then(|content| {
        let content_len = i32::try_from(layer.content.len()).unwrap_or(i32::MAX);
        let shown = blosc2_metalayer { name: name.cast(), content, content_len };
        c_array(&[shown]).inspect_err(|_| {
            // SAFETY: made above.
            unsafe { libc::free(content.cast()) };
        })
    });
    made.inspect_err(|_| {
        // SAFETY: made above.
        unsafe { libc::free(name.cast()) };
    })
}

/// # Safety
///
/// `layer` is null or came from [`make_layer`] and is not used any more.
unsafe fn free_layer(layer: *mut blosc2_metalayer) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(layer) = layer.as_ref() {
            libc::free(layer.name.cast());
            libc::free(layer.content.cast());
        }
        libc::free(layer.cast());
    }
}

/// # Safety
///
/// As for [`show_layers`].
pub(super) unsafe fn free_layers(slots: &mut [*mut blosc2_metalayer]) {
    for slot in slots.iter_mut().take_while(|slot| !slot.is_null()) {
        // SAFETY: the caller's promise.
        unsafe { free_layer(*slot) };
        *slot = ptr::null_mut();
    }
}
