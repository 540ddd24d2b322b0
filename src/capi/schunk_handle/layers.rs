//! Metalayers as the struct shows them: memory of C's allocator, which clients read.

use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use crate::capi::mem::{c_array, c_bytes};
use crate::capi::types::blosc2_metalayer;
use crate::error::Result;
use crate::format::metalayers::Metalayer;

/// Shows `layers` in an array of the struct, which shows `shown`, as far as that is known. A layer that is there
/// already stays where it is in memory, and so does its content unless the length changes: clients keep pointers.
///
/// # Safety
///
/// The entries of `slots` are null or layers made here, null ones last, and nobody else uses the array.
pub(super) unsafe fn show_layers(
    slots: &mut [*mut blosc2_metalayer],
    shown: &[Arc<Metalayer>],
    layers: &[Arc<Metalayer>],
) -> Result<()> {
    for (at, layer) in layers.iter().enumerate().take(slots.len()) {
        if shown.get(at).is_some_and(|shown| Arc::ptr_eq(shown, layer)) {
            continue;
        }
        // SAFETY: the caller's promise.
        unsafe {
            bring_forward(&mut slots[at..], layer);
            show_layer(&mut slots[at], layer)?;
        }
    }
    if let Some(rest) = slots.get_mut(layers.len()..) {
        // SAFETY: the caller's promise.
        unsafe { free_layers(rest) };
    }
    Ok(())
}

/// Shows `layer` in a slot of an array, see [`show_layers`].
///
/// # Safety
///
/// As for [`show_layers`].
pub(super) unsafe fn show_layer(slot: &mut *mut blosc2_metalayer, layer: &Metalayer) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if is_named(*slot, layer) {
            return show_content(&mut **slot, &layer.content);
        }
        let new = make_layer(layer)?;
        free_layer(std::mem::replace(slot, new));
    }
    Ok(())
}

/// Removes the first of `slots`.
///
/// # Safety
///
/// As for [`show_layers`].
pub(super) unsafe fn remove_layer(slots: &mut [*mut blosc2_metalayer]) {
    if let Some((first, _)) = slots.split_first_mut() {
        // SAFETY: the caller's promise.
        unsafe { free_layer(std::mem::replace(first, ptr::null_mut())) };
        slots.rotate_left(1);
    }
}

/// Puts the slot that shows `layer` first, if there is one.
///
/// # Safety
///
/// As for [`show_layers`].
unsafe fn bring_forward(slots: &mut [*mut blosc2_metalayer], layer: &Metalayer) {
    let mut shown = slots.iter().take_while(|slot| !slot.is_null());
    // SAFETY: the caller's promise.
    let found = shown.position(|&slot| unsafe { is_named(slot, layer) });
    if let Some(at) = found {
        slots.swap(0, at);
    }
}

/// Whether `shown` is there and has the name of this layer, as far as C sees it: up to its first NUL.
///
/// # Safety
///
/// `shown` is null or a layer whose name is null or a string.
pub(super) unsafe fn is_named(shown: *const blosc2_metalayer, layer: &Metalayer) -> bool {
    let name = layer.name.split(|&byte| byte == 0).next().unwrap_or_default();
    // SAFETY: the caller's promise.
    let shown = unsafe { shown.as_ref() }.filter(|shown| !shown.name.is_null());
    // SAFETY: as above; not null.
    shown.is_some_and(|shown| unsafe { CStr::from_ptr(shown.name) }.to_bytes() == name)
}

/// Gives a layer that is shown this content.
///
/// # Safety
///
/// As for [`show_layers`].
unsafe fn show_content(shown: &mut blosc2_metalayer, content: &[u8]) -> Result<()> {
    let len = i32::try_from(content.len()).unwrap_or(i32::MAX);
    if shown.content_len == len && !shown.content.is_null() {
        // SAFETY: the caller's promise: the content is as long as it was made, and nobody else uses it.
        let old = unsafe { std::slice::from_raw_parts_mut(shown.content, content.len()) };
        if old != content {
            old.copy_from_slice(content);
        }
        return Ok(());
    }
    let new = c_bytes(content)?;
    // SAFETY: as above.
    unsafe { libc::free(shown.content.cast()) };
    (shown.content, shown.content_len) = (new, len);
    Ok(())
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

/// Releases a metalayer that C sees.
///
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

/// Releases the metalayers in `slots`, and empties these.
///
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
