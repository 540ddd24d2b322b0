//! Exported functions: arrays made of other arrays.

use std::ffi::c_int;
use std::sync::Arc;

use super::b2nd::{Content, build, discard, discard_array};
use super::b2nd_ctx::NdContext;
use super::b2nd_handle::{ArrayHandle, Reshaped, deliver, not_null};
use super::b2nd_shape::checked_axis;
use super::context::EncodingParts;
use super::guard::guard_status;
use super::ptr::in_slice;
use super::schunk_handle::{SchunkHandle, Used};
use super::types::{CBool, b2nd_array_t, b2nd_context_t};
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::metalayers::{Metalayer, Metalayers};
use crate::format::nd_meta;
use crate::frame::Frame;
use crate::ndarray::{self, Geometry, StoredArray, concat, create};
use crate::schunk::{Reading, Schunk, Writing, meta};

/// Creates an array from a box of another one; returns 0, or a negative code.
///
/// The shape of `ctx` becomes that of the box from `start` to `stop` (excluded). What lies outside of `src` becomes
/// zero.
///
/// # Safety
///
/// As for `b2nd_uninit`; `src` is NULL or valid and not being changed; `start` and `stop` are NULL or readable for one
/// number per dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_get_slice(
    ctx: *mut b2nd_context_t,
    array: *mut *mut b2nd_array_t,
    src: *const b2nd_array_t,
    start: *const i64,
    stop: *const i64,
) -> c_int {
    guard_status(|| {
        not_null(!ctx.is_null() && !array.is_null() && !start.is_null() && !stop.is_null())?;
        // SAFETY: the caller's promise.
        let source = unsafe { ArrayHandle::from_ptr(src) }?;
        source.refresh()?;
        let ndim = source.geometry().ndim();
        // SAFETY: the caller's promise.
        unsafe {
            let start = in_slice(start, ndim)?;
            let stop = in_slice(stop, ndim)?;
            deliver(array, NdContext::from_ptr(ctx).and_then(|ctx| slice(ctx, None, source, start, stop)))
        }
    })
}

/// Creates an array from a box of another one.
///
/// # Safety
///
/// As for [`build`].
unsafe fn slice(
    ctx: &mut NdContext,
    layers: Option<Metalayers>,
    source: &ArrayHandle,
    start: &[i64],
    stop: &[i64],
) -> Result<*mut b2nd_array_t> {
    let extents: Vec<i64> = start.iter().zip(stop).map(|(a, b)| b.saturating_sub(*a)).collect();
    ctx.set_shape(&extents);
    let typesize = ctx.cparams().typesize;
    let same = source.schunk()?.typesize() == typesize;
    require(same, "items of another size")?;
    let negative = |_| Error::new(ErrorKind::Failure, "negative position");
    let from = start.iter().map(|&at| u64::try_from(at)).collect::<std::result::Result<Vec<u64>, _>>();
    let empty = extents.contains(&0);
    let from = if empty { vec![0; extents.len()] } else { from.map_err(negative)? };
    // SAFETY: the caller's promise.
    unsafe {
        build(ctx, layers, Content::Items, |schunk, geometry, writing| {
            source.read(|source, source_geometry, reading| {
                let src = StoredArray { schunk: source, geometry: source_geometry, reading };
                create::fill_from_array(schunk, geometry, src, &from, writing)
            })
        })
    }
}

/// Copies an array; returns 0, or a negative code. The shape of `ctx` becomes that of `src`.
///
/// Metalayers are those of `src`. Chunks are only compressed again if `ctx` asks for other parameters, chunks or
/// blocks.
///
/// # Safety
///
/// As for `b2nd_uninit`; `src` is NULL or valid and not being changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_copy(
    ctx: *mut b2nd_context_t,
    src: *const b2nd_array_t,
    array: *mut *mut b2nd_array_t,
) -> c_int {
    guard_status(|| {
        not_null(!ctx.is_null() && !array.is_null())?;
        // SAFETY: the caller's promise.
        let source = unsafe { ArrayHandle::from_ptr(src) }?;
        source.refresh()?;
        // SAFETY: the caller's promise.
        unsafe { deliver(array, NdContext::from_ptr(ctx).and_then(|ctx| copy(ctx, source))) }
    })
}

/// Copies an array as the context says.
///
/// # Safety
///
/// As for [`build`].
unsafe fn copy(ctx: &mut NdContext, source: &ArrayHandle) -> Result<*mut b2nd_array_t> {
    let known = source.geometry();
    let shape = ndarray::shape::signed(known.shape());
    ctx.set_shape(&shape);
    let (meta, cparams, given) = (ctx.meta()?, ctx.cparams(), ctx.storage());
    let handle = source.schunk()?;
    let same = handle.typesize() == cparams.typesize;
    require(same, "items of another size")?;
    let are_alike = |known: &[u64], wanted: &[i32]| {
        known.iter().copied().eq(wanted.iter().map(|&extent| u64::try_from(extent).unwrap_or(u64::MAX)))
    };
    if are_alike(known.chunkshape(), &meta.chunkshape) && are_alike(known.blockshape(), &meta.blockshape) {
        // SAFETY: the caller's promise.
        let schunk = unsafe { handle.copy(&given) }.map_err(Error::to_failure)?;
        // Others may have changed the shape before the chunks were copied: the copy has that which goes with these.
        // SAFETY: just made; nobody else knows it.
        let copied = unsafe { SchunkHandle::from_ptr(schunk) }?.metalayers();
        let made = copied.and_then(|layers| {
            let (_, geometry) = ndarray::described(&layers)?;
            ctx.set_shape(&ndarray::shape::signed(geometry.shape()));
            ArrayHandle::create(schunk, &meta, geometry, 0)
        });
        // SAFETY: as above.
        return made.inspect_err(|_| unsafe { discard(schunk, given.urlpath) });
    }
    let layers = handle.metalayers()?;
    let own = |layer: &&Arc<Metalayer>| layer.name != nd_meta::NAME && layer.name != nd_meta::OLD_NAME;
    let layers = layers.iter().filter(own).cloned().collect();
    // SAFETY: the caller's promise.
    let made = unsafe { slice(ctx, Some(layers), source, &vec![0; shape.len()], &shape) }?;
    // SAFETY: just made; nobody else knows it.
    unsafe {
        copy_vlmetalayers(handle, made).map(|()| made).inspect_err(|_| discard_array(made, given.urlpath))
    }
}

/// Copies the variable-length metalayers of `source`, compressed as those of the new array are.
///
/// # Safety
///
/// `made` is valid; nobody else knows it.
unsafe fn copy_vlmetalayers(source: &SchunkHandle, made: *mut b2nd_array_t) -> Result<()> {
    // SAFETY: the caller's promise.
    let dest = unsafe { ArrayHandle::from_ptr(made) }?;
    let layers = source.look_at_layers(Used::All, |schunk| Ok(schunk.vlmetalayers()))?;
    dest.schunk()?.change(|schunk| {
        // SAFETY: the context of the array.
        let encoding = unsafe { EncodingParts::of((*(*made).sc).cctx, 0) }?;
        encoding.with(|enc| {
            layers.iter().try_for_each(|layer| {
                let stored = meta::compressed_again(&layer.content, enc.params)?;
                schunk.vlmeta_add_stored(&layer.name, stored).map(drop)
            })
        })
    })
}

/// Joins two arrays along the dimension `axis`; returns 0, or a negative code.
///
/// With `copy`, `*array` is a new array, made with `ctx`. Without it, `src1` is extended, and `*array` becomes `src1`;
/// `b2nd_insert` tells which parts of this are one change.
///
/// # Safety
///
/// As for `b2nd_copy`; without `copy`, no other thread uses `src1`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_concatenate(
    ctx: *mut b2nd_context_t,
    src1: *const b2nd_array_t,
    src2: *const b2nd_array_t,
    axis: i8,
    copy: CBool,
    array: *mut *mut b2nd_array_t,
) -> c_int {
    guard_status(|| {
        not_null(!array.is_null() && (!ctx.is_null() || !copy.get()))?;
        // SAFETY: the caller's promise.
        let (first, second) = unsafe { (ArrayHandle::from_ptr(src1)?, ArrayHandle::from_ptr(src2)?) };
        first.refresh()?;
        second.refresh()?;
        let axis = checked_axis(axis)?;
        concat::check(&first.geometry(), &second.geometry(), axis)?;
        let same = first.schunk()?.typesize() == second.schunk()?.typesize();
        require(same, "items of another size")?;
        if !copy.get() {
            extend(first, second, axis)?;
            // SAFETY: the caller's promise.
            unsafe { array.write(src1.cast_mut()) };
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let made = unsafe {
            NdContext::from_ptr(ctx).and_then(|ctx| {
                let made = self::copy(ctx, first)?;
                let extended = ArrayHandle::from_ptr(made).and_then(|dest| extend(dest, second, axis));
                extended.map(|()| made).inspect_err(|_| discard_array(made, ctx.storage().urlpath))
            })
        };
        // SAFETY: the caller's promise.
        unsafe { deliver(array, made) }
    })
}

/// Extends `dest` by the items of `other`, which may be the same array.
fn extend(dest: &ArrayHandle, other: &ArrayHandle, axis: usize) -> Result<()> {
    let append = |schunk: &Schunk, geometry: &Geometry, reading: &Reading<'_>| {
        let other = StoredArray { schunk, geometry, reading };
        let extend =
            |schunk: &mut Reshaped<'_>, geometry: &Geometry, reading: &Reading<'_>, writing: &Writing<'_>| {
                concat::extend_shared(schunk, geometry, other, axis, reading, writing)
            };
        // SAFETY: no other thread uses `dest`, as the exported function demands.
        unsafe { dest.reshape(extend) }
    };
    let locks = other.schunk()?.look(|schunk| Ok(schunk.frame().is_some_and(Frame::locks)))?;
    if locks || dest.schunk()?.shares_with(other.schunk()?) {
        // What is read must not be locked by what is written, here or, the other way round, in another process.
        let snapshot = other.schunk()?.look(Schunk::to_memory)?;
        let geometry = if other.is_view() { other.geometry() } else { ndarray::open(&snapshot)?.1.into() };
        let parts = other.schunk()?.decoding();
        return parts.with(|dec| append(&snapshot, &geometry, &Reading { dec: *dec, ..Reading::default() }));
    }
    other.read(append)
}
