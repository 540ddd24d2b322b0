//! Memory of handles that were released. Nearly all of a handle is the array for 8192 metalayers, of which few are in
//! use: clearing it would be most of the cost of opening a frame, so memory whose array is clear is kept.

use std::alloc::{self, Layout};
use std::mem::offset_of;
use std::ptr::{self, NonNull};

use super::SchunkHandle;
use crate::capi::types::blosc2_schunk;
use crate::fork::Global;

/// Memory for one handle; the array of variable-length metalayers in it is all null.
struct Clear(NonNull<SchunkHandle>);

// SAFETY: memory that nobody uses.
unsafe impl Send for Clear {}

static KEPT: Global<[Option<Clear>; 4]> = Global::new([const { None }; 4]);

/// Memory for a handle, all zeros.
pub(super) fn take() -> Option<*mut SchunkHandle> {
    // Nobody is waited for: there is other memory.
    let kept = KEPT.try_lock().and_then(|mut kept| kept.iter_mut().find_map(Option::take));
    let Some(Clear(raw)) = kept else {
        // SAFETY: a handle is larger than nothing.
        let raw = unsafe { alloc::alloc_zeroed(Layout::new::<SchunkHandle>()) }.cast::<SchunkHandle>();
        return (!raw.is_null()).then_some(raw);
    };
    let start = offset_of!(blosc2_schunk, vlmetalayers);
    let end = offset_of!(blosc2_schunk, nvlmetalayers);
    let bytes = raw.as_ptr().cast::<u8>();
    // SAFETY: both ranges lie inside the memory of a handle, whose first field is the struct; between them is the
    // array, which is clear.
    unsafe {
        ptr::write_bytes(bytes, 0, start);
        ptr::write_bytes(bytes.add(end), 0, size_of::<SchunkHandle>() - end);
    }
    Some(raw.as_ptr())
}

/// Keeps the memory of a handle, or frees it.
///
/// # Safety
///
/// `raw` came from [`take`] and is not used any more; what was in it was dropped, and the array of variable-length
/// metalayers is all null.
pub(super) unsafe fn give_back(raw: *mut SchunkHandle) {
    if let Some(mut kept) = KEPT.try_lock() {
        if let Some(slot) = kept.iter_mut().find(|slot| slot.is_none()) {
            *slot = NonNull::new(raw).map(Clear);
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { alloc::dealloc(raw.cast(), Layout::new::<SchunkHandle>()) };
}

/// Frees the memory that is kept.
pub(crate) fn free_all() {
    let kept = std::mem::replace(&mut *KEPT.lock(), [const { None }; 4]);
    for Clear(raw) in kept.into_iter().flatten() {
        // SAFETY: of this layout, and nobody uses it.
        unsafe { alloc::dealloc(raw.as_ptr().cast(), Layout::new::<SchunkHandle>()) };
    }
}
