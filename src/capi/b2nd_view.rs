//! Exported functions: views, which show the chunks of an array under another shape.
//!
//! A view sees the values of its base and writes to them. Before its shape changes it gets chunks of its own. View and
//! base may be released in any order.

use std::ffi::c_int;

use super::b2nd_handle::{ArrayHandle, deliver_view, not_null};
use super::guard::guard_status;
use super::ptr::in_slice;
use super::schunk_handle;
use super::types::{CBool, b2nd_array_t};
use crate::error::{Result, require};
use crate::format::metalayers::{Metalayer, Metalayers};
use crate::format::nd_meta::{self, NdMeta};
use crate::ndarray::{Geometry, view};

/// Makes a view of `base`; `change` makes its metadata of those of the base.
fn make(base: &ArrayHandle, change: impl FnOnce(NdMeta) -> Result<NdMeta>) -> Result<*mut b2nd_array_t> {
    base.refresh()?;
    let schunk = base.schunk()?;
    let layers = schunk.metalayers()?;
    let only = layers.len() == 1 && layers.find(nd_meta::NAME).is_ok();
    require(only, "arrays with other metalayers have no views")?;
    let meta = change(base.meta()?)?;
    let geometry = Geometry::from_meta(&meta)?;
    let layer = Metalayer::with_content(nd_meta::NAME, meta.write()?)?;
    let shown = schunk.view(Metalayers::from_iter([layer]))?;
    ArrayHandle::create_view(shown, &meta, geometry).inspect_err(|_| {
        // SAFETY: made above; nobody else knows it.
        unsafe { schunk_handle::free(shown) };
    })
}

/// Makes a view without the dimensions of one item; returns 0, or a negative code.
///
/// A view shares the chunks of its array, until the shape of the view is changed. If that of the array is changed,
/// chunks get other numbers, and the view shows other items. Both are to be released, in any order.
///
/// # Safety
///
/// `array` is NULL or valid and no other thread uses it; `view` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_squeeze(array: *mut b2nd_array_t, view: *mut *mut b2nd_array_t) -> c_int {
    guard_status(|| {
        not_null(!view.is_null())?;
        // SAFETY: the caller's promise.
        let base = unsafe { ArrayHandle::from_ptr(array) }?;
        let change = |meta: NdMeta| {
            let single: Vec<bool> = meta.shape.iter().map(|&extent| extent == 1).collect();
            view::squeezed(meta, &single)
        };
        // SAFETY: the caller's promise.
        unsafe { deliver_view(view, make(base, change)) }
    })
}

/// Makes a view without the dimensions for which `index` is true, which must have one item; returns 0, or a negative
/// code. For views see `b2nd_squeeze`.
///
/// # Safety
///
/// As for `b2nd_squeeze`; `index` is NULL or readable for one value per dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_squeeze_index(
    array: *mut b2nd_array_t,
    view: *mut *mut b2nd_array_t,
    index: *const CBool,
) -> c_int {
    guard_status(|| {
        not_null(!view.is_null() && !index.is_null())?;
        // SAFETY: the caller's promise.
        let base = unsafe { ArrayHandle::from_ptr(array) }?;
        let change = |meta: NdMeta| {
            // SAFETY: the caller's promise.
            let leave_out = unsafe { in_slice(index, meta.ndim()) }?;
            let leave_out: Vec<bool> = leave_out.iter().map(|flag| flag.get()).collect();
            view::squeezed(meta, &leave_out)
        };
        // SAFETY: the caller's promise.
        unsafe { deliver_view(view, make(base, change)) }
    })
}

/// Makes a view with `final_dims` dimensions: one of one item wherever `axis` is true, else the next one of the array.
/// Returns 0, or a negative code. For views see `b2nd_squeeze`.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `view` is NULL or writable; `axis` is NULL or readable for
/// `final_dims` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_expand_dims(
    array: *const b2nd_array_t,
    view: *mut *mut b2nd_array_t,
    axis: *const CBool,
    final_dims: u8,
) -> c_int {
    guard_status(|| {
        not_null(!view.is_null() && !axis.is_null())?;
        // SAFETY: the caller's promise.
        let base = unsafe { ArrayHandle::from_ptr(array) }?;
        // SAFETY: the caller's promise.
        let added = unsafe { in_slice(axis, final_dims) }?;
        let added: Vec<bool> = added.iter().map(|flag| flag.get()).collect();
        // SAFETY: the caller's promise.
        unsafe { deliver_view(view, make(base, |meta| view::expanded(meta, &added))) }
    })
}
