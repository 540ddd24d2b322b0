//! Exported functions: creating, opening, copying, storing and releasing arrays.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::b2nd_ctx::NdContext;
use super::b2nd_handle::{ArrayHandle, deliver, deliver_opened, not_null};
use super::b2nd_shape::dimension;
use super::context::EncodingParts;
use super::guard::{guard, guard_status};
use super::ptr::{in_bytes, in_slice};
use super::schunk::{
    blosc2_schunk_append_file, blosc2_schunk_copy, blosc2_schunk_from_buffer, blosc2_schunk_open_offset,
    blosc2_schunk_to_buffer,
};
use super::schunk_handle::{self, SchunkHandle};
use super::storage;
use super::types::{CBool, b2nd_array_t, b2nd_context_t, blosc2_schunk};
use crate::cancel;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::consts::special;
use crate::format::metalayers::{Metalayer, Metalayers};
use crate::format::nd_meta::{self, NdMeta};
use crate::frame::Frame;
use crate::memory;
use crate::ndarray::{self, Geometry, concat, create};
use crate::schunk::{Reading, Schunk, Writing};

/// What a new array is filled with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// The same value everywhere.
    Constant,
    /// Items that are written. As each access does, this brings an array in a frame up to date with its metalayers.
    Items,
}

/// Makes the super-chunk of an array, and fills it.
///
/// # Safety
///
/// `ctx` is valid, and the client kept alive what it borrowed.
unsafe fn build(
    ctx: &NdContext,
    layers: Option<Metalayers>,
    content: Content,
    fill: impl FnOnce(&mut Schunk, &Geometry, &Writing<'_>) -> Result<()>,
) -> Result<*mut b2nd_array_t> {
    // SAFETY: the caller's promise.
    let (meta, cparams, given) = unsafe { (ctx.meta()?, ctx.cparams(), ctx.storage()) };
    let geometry = Geometry::from_meta(&meta)?;
    let typesize = usize::try_from(cparams.typesize).ok().filter(|&size| size > 0);
    let typesize = typesize.ok_or(Error::new(ErrorKind::InvalidParam, "typesize out of range"))?;
    geometry.check_for_creation(typesize)?;
    // SAFETY: the caller's promise.
    let layers = layers.map_or_else(|| unsafe { ctx.layers() }, Ok)?;
    // SAFETY: the caller's promise.
    let schunk = unsafe { SchunkHandle::create(&given) }.map_err(Error::to_failure)?;
    // SAFETY: just made.
    let made = unsafe { SchunkHandle::from_ptr(schunk) }.and_then(|handle| {
        // Codecs and filters look for the metalayer when they compress, so it is shown before.
        handle.change(|schunk| create::prepare(schunk, &geometry, &meta, &layers))?;
        let fill = |writing: &Writing<'_>| handle.change(|schunk| fill(schunk, &geometry, writing));
        // SAFETY: nobody else knows the new handle.
        unsafe { handle.with_encoding(fill) }?;
        let accessed = content == Content::Items && geometry.nitems() > 0;
        let tick = if accessed {
            handle.look(|schunk| Ok(schunk.frame().map_or(0, Frame::change_tick)))?
        } else {
            0
        };
        ArrayHandle::create(schunk, &meta, geometry, tick)
    });
    if made.is_err() {
        // SAFETY: made above; nobody else knows it.
        unsafe { discard(schunk, given.urlpath) };
    }
    made
}

/// Releases a super-chunk that was made in vain, and removes what it left on disk.
///
/// # Safety
///
/// `schunk` was just made; `urlpath` is null or a string.
unsafe fn discard(schunk: *mut blosc2_schunk, urlpath: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe {
        schunk_handle::free(schunk);
        storage::remove_made(urlpath);
    }
}

/// As [`discard`], for the super-chunk of an array, which is released as well.
///
/// # Safety
///
/// `made` was just made; `urlpath` is null or a string.
unsafe fn discard_array(made: *mut b2nd_array_t, urlpath: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe {
        let schunk = std::mem::replace(&mut (*made).sc, ptr::null_mut());
        ArrayHandle::release(made);
        discard(schunk, urlpath);
    }
}

/// The body of the constructors.
///
/// # Safety
///
/// `ctx` is null or valid and no other thread uses it; `array` is null or writable.
unsafe fn construct(
    ctx: *mut b2nd_context_t,
    array: *mut *mut b2nd_array_t,
    content: Content,
    fill: impl FnOnce(&mut Schunk, &Geometry, &Writing<'_>) -> Result<()>,
) -> c_int {
    guard_status(|| {
        not_null(!ctx.is_null() && !array.is_null())?;
        // SAFETY: the caller's promise.
        unsafe { deliver(array, NdContext::from_ptr(ctx).and_then(|ctx| build(ctx, None, content, fill))) }
    })
}

/// Fills an array with a special value. As in the C library, the last chunk is the one that was worked on if each was made,
/// and none if there is but an index to write.
fn fill_special(schunk: &mut Schunk, geometry: &Geometry, kind: u8, writing: &Writing<'_>) -> Result<()> {
    create::fill_special(schunk, geometry, kind, writing.enc.params)?;
    if schunk.frame().is_none() {
        visit_last(schunk, writing);
    }
    Ok(())
}

/// Notes that the last chunk was worked on.
fn visit_last(schunk: &Schunk, writing: &Writing<'_>) {
    if let Some(last) = schunk.nchunks().checked_sub(1) {
        writing.visit(last);
    }
}

/// Creates an array with unspecified values; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// `ctx` is NULL or valid and no other thread uses it; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_uninit(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
            fill_special(schunk, geometry, special::UNINIT, writing)
        })
    }
}

/// Creates an array of zeros; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_empty(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
            fill_special(schunk, geometry, special::ZERO, writing)
        })
    }
}

/// Creates an array of zeros; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_zeros(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { b2nd_empty(ctx, array) }
}

/// Creates an array of NaNs, of 4 or 8 bytes each; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_nans(ctx: *mut b2nd_context_t, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
            let float = matches!(schunk.typesize(), 4 | 8);
            ensure(float, ErrorKind::Data, "NaNs of this size do not exist")?;
            fill_special(schunk, geometry, special::NAN, writing)
        })
    }
}

/// Creates an array whose items are all `fill_value`; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`; `fill_value` is NULL or readable for one item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_full(
    ctx: *mut b2nd_context_t,
    array: *mut *mut b2nd_array_t,
    fill_value: *const c_void,
) -> c_int {
    if fill_value.is_null() {
        return guard_status(|| not_null(false));
    }
    // SAFETY: the caller's promise.
    unsafe {
        construct(ctx, array, Content::Constant, |schunk, geometry, writing| {
            let value = in_bytes(fill_value, schunk.typesize())?;
            create::fill_value(schunk, geometry, value, writing.enc.params)?;
            visit_last(schunk, writing);
            Ok(())
        })
    }
}

/// Creates an array from the items in `buffer`, in C order; returns 0, or a negative code. Release it with `b2nd_free`.
///
/// # Safety
///
/// As for `b2nd_uninit`; `buffer` is NULL or readable for `buffersize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_from_cbuffer(
    ctx: *mut b2nd_context_t,
    array: *mut *mut b2nd_array_t,
    buffer: *const c_void,
    buffersize: i64,
) -> c_int {
    if buffer.is_null() {
        return guard_status(|| not_null(false));
    }
    // SAFETY: the caller's promise.
    unsafe {
        construct(ctx, array, Content::Items, |schunk, geometry, writing| {
            let src = in_bytes(buffer, buffersize)?;
            create::fill_from_buffer(schunk, geometry, src, writing)
        })
    }
}

/// Releases an array with its super-chunk, unless `array->sc` is NULL; returns 0, or a negative code for NULL.
///
/// # Safety
///
/// `array` is NULL or valid, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_free(array: *mut b2nd_array_t) -> c_int {
    guard_status(|| {
        not_null(!array.is_null())?;
        // SAFETY: the caller gives the array away.
        unsafe { ArrayHandle::release(array) };
        Ok(())
    })
}

/// Makes an array of a super-chunk that holds one; returns 0, or a negative code. The super-chunk belongs to the array
/// afterwards, unless the call fails.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_from_schunk(
    schunk: *mut blosc2_schunk,
    array: *mut *mut b2nd_array_t,
) -> c_int {
    guard_status(|| {
        not_null(!schunk.is_null() && !array.is_null())?;
        // SAFETY: the caller's promise.
        unsafe { deliver_opened(array, adopt(schunk)) }
    })
}

/// Makes an array of a super-chunk that holds one.
///
/// # Safety
///
/// `schunk` is valid.
unsafe fn adopt(schunk: *mut blosc2_schunk) -> Result<*mut b2nd_array_t> {
    // SAFETY: the caller's promise.
    let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
    let tick = handle.look(|schunk| Ok(schunk.change_tick()))?;
    let layers = handle.metalayers()?;
    let empty = nd_meta::find(&layers).is_some_and(|layer| layer.content.is_empty());
    ensure(!empty, ErrorKind::NullPointer, "empty metalayer of an array")?;
    let (meta, geometry) = ndarray::described(&layers)?;
    ArrayHandle::create(schunk, &meta, geometry, tick)
}

/// Makes an array of a super-chunk that was opened for it, which is released if it holds none.
///
/// # Safety
///
/// `schunk` is null or was just made.
unsafe fn adopt_new(schunk: *mut blosc2_schunk, missing: ErrorKind) -> Result<*mut b2nd_array_t> {
    ensure(!schunk.is_null(), missing, "no super-chunk")?;
    // SAFETY: the caller's promise.
    let made = unsafe { adopt(schunk) };
    if made.is_err() {
        // SAFETY: as above; nobody else knows it.
        unsafe { schunk_handle::free(schunk) };
    }
    made
}

/// Opens the array in the frame `urlpath`, a file or a directory; returns 0, or a negative code.
///
/// # Safety
///
/// `urlpath` is NULL or a string; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_open(urlpath: *const c_char, array: *mut *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { b2nd_open_offset(urlpath, array, 0) }
}

/// Opens the array in the frame that starts at byte `offset` of the file `urlpath`; returns 0, or a negative code.
///
/// # Safety
///
/// As for `b2nd_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_open_offset(
    urlpath: *const c_char,
    array: *mut *mut b2nd_array_t,
    offset: i64,
) -> c_int {
    guard_status(|| {
        not_null(!urlpath.is_null() && !array.is_null())?;
        // SAFETY: the caller's promise.
        unsafe {
            let schunk = blosc2_schunk_open_offset(urlpath, offset);
            deliver_opened(array, adopt_new(schunk, ErrorKind::NullPointer))
        }
    })
}

/// Makes an array of the frame in `cframe`; returns 0, or a negative code.
///
/// With `copy` the chunks are copied. Without it the buffer stays the caller's and must outlive the array, which copies it
/// when it has to change it.
///
/// # Safety
///
/// `cframe` is NULL or readable for `cframe_len` bytes; `array` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_from_cframe(
    cframe: *mut u8,
    cframe_len: i64,
    copy: CBool,
    array: *mut *mut b2nd_array_t,
) -> c_int {
    guard_status(|| {
        not_null(!cframe.is_null() && !array.is_null())?;
        // SAFETY: the caller's promise.
        unsafe {
            let schunk = blosc2_schunk_from_buffer(cframe, cframe_len, copy);
            deliver_opened(array, adopt_new(schunk, ErrorKind::Failure))
        }
    })
}

/// Stores the address and length of a contiguous frame with the array; returns 0, or a negative code.
///
/// `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the array and stays valid
/// until that changes.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; the others are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_to_cframe(
    array: *const b2nd_array_t,
    cframe: *mut *mut u8,
    cframe_len: *mut i64,
    needs_free: *mut CBool,
) -> c_int {
    guard_status(|| {
        not_null(!cframe.is_null() && !cframe_len.is_null() && !needs_free.is_null())?;
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        let schunk = handle.schunk()?.abi();
        // SAFETY: the caller's promise.
        let len = unsafe { blosc2_schunk_to_buffer(schunk, cframe, needs_free) };
        ensure(len > 0, ErrorKind::Failure, "the array cannot be made a frame")?;
        // SAFETY: the caller's promise.
        unsafe { cframe_len.write(len) };
        Ok(())
    })
}

/// Saves an array to `urlpath`, which must not exist: a file if the array is contiguous, else a directory. Returns 0, or a
/// negative code.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_save(array: *const b2nd_array_t, urlpath: *mut c_char) -> c_int {
    guard_status(|| {
        not_null(!urlpath.is_null())?;
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        handle.refresh()?;
        // SAFETY: the caller's promise; a super-chunk has a storage, unless the client took it.
        unsafe {
            let source = (*handle.abi()).sc;
            let contiguous = (*source).storage.as_ref().is_some_and(|storage| storage.contiguous.get());
            let mut place = storage::at(contiguous, urlpath, ptr::null_mut());
            let schunk = handle.schunk()?.abi();
            let copy = blosc2_schunk_copy(schunk, &raw mut place);
            ensure(!copy.is_null(), ErrorKind::Failure, "the array cannot be copied")?;
            schunk_handle::free(copy);
        }
        Ok(())
    })
}

/// Appends an array as a contiguous frame to the file `urlpath`; returns the byte at which it starts, for
/// `b2nd_open_offset`, or a negative code.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_save_append(array: *const b2nd_array_t, urlpath: *const c_char) -> i64 {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        require(!urlpath.is_null(), "no path")?;
        let schunk = handle.schunk()?.abi();
        // SAFETY: the caller's promise.
        Ok(unsafe { blosc2_schunk_append_file(schunk, urlpath) })
    })
}

/// Prints shapes and data type of an array, as they are stored; returns 0, or a negative code.
///
/// # Safety
///
/// `array` is NULL or valid and not being changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_print_meta(array: *const b2nd_array_t) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { ArrayHandle::from_ptr(array) }?;
        let (meta, _) = ndarray::described(&handle.schunk()?.metalayers()?)?;
        let text = description(&meta)?;
        // SAFETY: both are strings; the format takes one. The client's own output goes through the same stream.
        cancel::deferred(|| unsafe { libc::printf(c"%s".as_ptr(), text.as_ptr().cast::<c_char>()) });
        Ok(())
    })
}

/// What [`b2nd_print_meta`] prints, and a NUL; the dtype, of which nothing is known, up to its first NUL.
///
/// # Errors
///
/// `MemoryAlloc`.
fn description(meta: &NdMeta) -> Result<Vec<u8>> {
    fn list<T: ToString>(numbers: &[T]) -> String {
        numbers.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
    }
    let (shape, chunkshape, blockshape) = (list(&meta.shape), list(&meta.chunkshape), list(&meta.blockshape));
    let mut text = format!("b2nd metalayer parameters:\n Ndim:       {}\n", meta.ndim()).into_bytes();
    memory::extend(&mut text, format!(" shape:      {shape}\n chunkshape: {chunkshape}\n").as_bytes())?;
    if let Some(dtype) = &meta.dtype {
        let shown = dtype.split(|&byte| byte == 0).next().unwrap_or_default();
        for part in [b" dtype: ", shown, b"\n"] {
            memory::extend(&mut text, part)?;
        }
    }
    memory::extend(&mut text, format!(" blockshape: {blockshape}\n\0").as_bytes())?;
    Ok(text)
}

/// Takes over what others changed in the frame of an array; returns 1 if its shape was read again, 0 if not, or a negative
/// code.
///
/// # Safety
///
/// `array` is NULL or valid and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_refresh(array: *mut b2nd_array_t) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { ArrayHandle::from_ptr(array) }?.refresh().map(c_int::from))
}

/// Creates an array from a box of another one; returns 0, or a negative code.
///
/// The shape of `ctx` becomes that of the box from `start` to `stop` (excluded). What lies outside of `src` becomes zero.
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
    // SAFETY: the caller's promise.
    let typesize = unsafe { ctx.cparams() }.typesize;
    let same = source.schunk()?.typesize() == typesize;
    require(same, "items of another size")?;
    let negative = |_| Error::new(ErrorKind::Failure, "negative position");
    let from = start.iter().map(|&at| u64::try_from(at)).collect::<std::result::Result<Vec<u64>, _>>();
    let empty = extents.contains(&0);
    let from = if empty { vec![0; extents.len()] } else { from.map_err(negative)? };
    // SAFETY: the caller's promise.
    unsafe {
        build(ctx, layers, Content::Items, |schunk, geometry, writing| {
            source.read(|src, src_geometry, reading| {
                create::fill_from_array(schunk, geometry, (src, src_geometry, &from), reading, writing)
            })
        })
    }
}

/// Copies an array; returns 0, or a negative code. The shape of `ctx` becomes that of `src`.
///
/// Metalayers are those of `src`. Chunks are only compressed again if `ctx` asks for other parameters, chunks or blocks.
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
    // SAFETY: the caller's promise.
    let (meta, cparams, mut given) = unsafe { (ctx.meta()?, ctx.cparams(), ctx.storage()) };
    let handle = source.schunk()?;
    let same = handle.typesize() == cparams.typesize;
    require(same, "items of another size")?;
    let are_alike = |known: &[u64], wanted: &[i32]| {
        known.iter().copied().eq(wanted.iter().map(|&extent| u64::try_from(extent).unwrap_or(u64::MAX)))
    };
    if are_alike(known.chunkshape(), &meta.chunkshape) && are_alike(known.blockshape(), &meta.blockshape) {
        // SAFETY: the caller's promise.
        let schunk = unsafe { blosc2_schunk_copy(handle.abi(), &raw mut given) };
        ensure(!schunk.is_null(), ErrorKind::Failure, "no super-chunk")?;
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
    let layers = handle.look(|schunk| Ok(schunk.metalayers()))?;
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
    let layers = source.look(|schunk| Ok(schunk.vlmetalayers()))?;
    dest.schunk()?.change(|schunk| {
        // SAFETY: the context of the array.
        let encoding = unsafe { EncodingParts::of((*(*made).sc).cctx, 0) }?;
        encoding.with(|enc| {
            layers.iter().try_for_each(|layer| {
                let content = source.look(|schunk| schunk.vlmeta_get(&layer.name))?.1;
                schunk.vlmeta_add(&layer.name, &content, Some(enc.params)).map(drop)
            })
        })
    })
}

/// Joins two arrays along the dimension `axis`; returns 0, or a negative code.
///
/// With `copy`, `*array` is a new array, made with `ctx`. Without it, `src1` is extended, and `*array` becomes `src1`;
/// what of that is one change is said at `b2nd_insert`.
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
        let axis = dimension(axis)?;
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
    let append = |src: &Schunk, src_geometry: &Geometry, src_reading: &Reading<'_>| {
        let extend =
            |schunk: &mut Schunk, geometry: &Geometry, reading: &Reading<'_>, writing: &Writing<'_>| {
                let own = (reading, writing);
                concat::extend(schunk, geometry, (src, src_geometry), axis, src_reading, own)
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
