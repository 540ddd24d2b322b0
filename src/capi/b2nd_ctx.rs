//! Exported functions: the parameters for creating arrays.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use super::b2nd_handle::c_dtype;
use super::consts::{B2ND_DEFAULT_DTYPE, B2ND_MAX_DIM, BLOSC2_MAX_METALAYERS};
use super::guard::{guard, guard_status};
use super::mem::{c_array, c_bytes, c_string};
use super::ptr::{c_str, handle_mut, in_slice, store};
use super::types::{b2nd_context_t, blosc2_cparams, blosc2_metalayer, blosc2_storage};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::metalayers::{Metalayer, Metalayers};
use crate::format::nd_meta::NdMeta;
use crate::memory;

/// The number of dimensions `ndim`, if an array can have as many.
pub(super) fn checked_ndim(ndim: i8) -> Result<usize> {
    let count = usize::try_from(ndim).ok().filter(|&ndim| ndim <= B2ND_MAX_DIM);
    count.ok_or(Error::new(ErrorKind::InvalidParam, "wrong number of dimensions"))
}

/// Most metalayers besides the array's own.
const MAX_LAYERS: usize = BLOSC2_MAX_METALAYERS - 1;

/// What `b2nd_context_t` is: with the C library's layout, which its tests look into.
///
/// Pointers to memory from C's allocator are valid: whoever has a reference got it from [`NdContext::from_ptr`].
#[repr(C)]
pub(crate) struct NdContext {
    pub(crate) ndim: i8,
    pub(crate) shape: [i64; B2ND_MAX_DIM],
    chunkshape: [i32; B2ND_MAX_DIM],
    blockshape: [i32; B2ND_MAX_DIM],
    /// From C's allocator.
    dtype: *mut c_char,
    dtype_format: i8,
    /// From C's allocator, as are the compression parameters in it; everything else in it is the client's.
    pub(crate) b2_storage: *mut blosc2_storage,
    /// Names and contents are the client's.
    metalayers: [blosc2_metalayer; MAX_LAYERS],
    nmetalayers: i32,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<NdContext>() == 656);
    assert!(std::mem::offset_of!(NdContext, chunkshape) == 136);
    assert!(std::mem::offset_of!(NdContext, dtype) == 264);
    assert!(std::mem::offset_of!(NdContext, b2_storage) == 280);
    assert!(std::mem::offset_of!(NdContext, nmetalayers) == 648);
};

impl NdContext {
    /// The context behind `ctx`.
    ///
    /// # Safety
    ///
    /// `ctx` is null or comes from [`b2nd_create_ctx`], no other thread uses it, and what it owns was left in place.
    pub(crate) unsafe fn from_ptr<'a>(ctx: *mut b2nd_context_t) -> Result<&'a mut NdContext> {
        // SAFETY: the caller's promise.
        unsafe { handle_mut(ctx.cast::<NdContext>()) }
    }

    /// Gives the array to make another shape.
    pub(crate) fn set_shape(&mut self, shape: &[i64]) {
        self.ndim = i8::try_from(shape.len()).expect("at most 16 dimensions");
        self.shape = [0; B2ND_MAX_DIM];
        self.shape[..shape.len()].copy_from_slice(shape);
    }

    /// What the array to make is like.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for a number of dimensions that no array has.
    pub(crate) fn meta(&self) -> Result<NdMeta> {
        let ndim = checked_ndim(self.ndim)?;
        // SAFETY: a string of this context.
        let dtype = unsafe { c_str(self.dtype) }?;
        Ok(NdMeta {
            shape: self.shape[..ndim].to_vec(),
            chunkshape: self.chunkshape[..ndim].to_vec(),
            blockshape: self.blockshape[..ndim].to_vec(),
            dtype: Some(memory::copy_of(dtype.to_bytes())?),
            dtype_format: self.dtype_format,
        })
    }

    /// The client's metalayers.
    ///
    /// # Safety
    ///
    /// The client kept names and contents alive.
    pub(crate) unsafe fn layers(&self) -> Result<Metalayers> {
        let count = usize::try_from(self.nmetalayers).unwrap_or(0).min(MAX_LAYERS);
        let copy = |layer: &blosc2_metalayer| {
            // SAFETY: the caller's promise.
            let (name, content) =
                unsafe { (c_str(layer.name)?, in_slice(layer.content.cast_const(), layer.content_len)?) };
            Metalayer::new(name.to_bytes(), content)
        };
        self.metalayers[..count].iter().map(copy).collect()
    }

    /// The storage.
    pub(crate) fn storage(&self) -> blosc2_storage {
        // SAFETY: made with the context.
        unsafe { *self.b2_storage }
    }

    /// The compression parameters.
    pub(crate) fn cparams(&self) -> blosc2_cparams {
        // SAFETY: made with the context.
        unsafe { *(*self.b2_storage).cparams }
    }

    fn zeroed() -> NdContext {
        let layer = blosc2_metalayer { name: ptr::null_mut(), content: ptr::null_mut(), content_len: 0 };
        NdContext {
            ndim: 0,
            shape: [0; B2ND_MAX_DIM],
            chunkshape: [0; B2ND_MAX_DIM],
            blockshape: [0; B2ND_MAX_DIM],
            dtype: ptr::null_mut(),
            dtype_format: 0,
            b2_storage: ptr::null_mut(),
            metalayers: [layer; MAX_LAYERS],
            nmetalayers: 0,
        }
    }
}

impl Drop for NdContext {
    fn drop(&mut self) {
        // SAFETY: these came from C's allocator and belong to the context; null is fine.
        unsafe {
            if let Some(storage) = self.b2_storage.as_ref() {
                libc::free(storage.cparams.cast());
            }
            libc::free(self.b2_storage.cast());
            libc::free(self.dtype.cast());
        }
    }
}

/// Makes the parameters for creating arrays; returns NULL on failure. Release them with `b2nd_free_ctx`.
///
/// `b2_storage` (NULL for the defaults) and its compression parameters are copied; their block size becomes that of a
/// block of the array. Its other pointers, and names and contents of `metalayers`, must live until the array is
/// created. Without a `dtype`, items are plain bytes, as many as an item has (`|S8` for 8).
///
/// # Safety
///
/// `b2_storage` is NULL or valid; the shapes are readable for `ndim` numbers each; `dtype` is NULL or a string;
/// `metalayers` is readable for `nmetalayers` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_create_ctx(
    b2_storage: *const blosc2_storage,
    ndim: i8,
    shape: *const i64,
    chunkshape: *const i32,
    blockshape: *const i32,
    dtype: *const c_char,
    dtype_format: i8,
    metalayers: *const blosc2_metalayer,
    nmetalayers: i32,
) -> *mut b2nd_context_t {
    guard(|| {
        let count = checked_ndim(ndim)?;
        // SAFETY: the caller's promise.
        let (shape, chunkshape, blockshape) =
            unsafe { (in_slice(shape, count)?, in_slice(chunkshape, count)?, in_slice(blockshape, count)?) };
        // SAFETY: the caller's promise.
        let layers = unsafe { in_slice(metalayers, nmetalayers.max(0)) }?;
        require(layers.len() <= MAX_LAYERS, "too many metalayers")?;
        // SAFETY: the caller's promise.
        let storage = unsafe { b2_storage.as_ref() }.copied().unwrap_or(blosc2_storage::DEFAULTS);
        // SAFETY: the caller's promise.
        let mut cparams = unsafe { storage.cparams.as_ref() }.copied().unwrap_or(blosc2_cparams::DEFAULTS);
        cparams.blocksize = check_shapes(shape, chunkshape, blockshape, cparams.typesize)?;
        let mut ctx = memory::boxed(NdContext::zeroed)?;
        ctx.ndim = ndim;
        ctx.shape[..count].copy_from_slice(shape);
        ctx.chunkshape[..count].copy_from_slice(chunkshape);
        ctx.blockshape[..count].copy_from_slice(blockshape);
        ctx.metalayers[..layers.len()].copy_from_slice(layers);
        ctx.nmetalayers = i32::try_from(layers.len()).expect("at most 15");
        ctx.dtype_format = dtype_format;
        // SAFETY: the caller's promise.
        ctx.dtype = unsafe { dtype_or_default(dtype, cparams.typesize) }?;
        ctx.b2_storage = c_array(&[blosc2_storage { cparams: ptr::null_mut(), ..storage }])?;
        let own = c_array(&[cparams])?;
        // SAFETY: allocated just now.
        unsafe { (*ctx.b2_storage).cparams = own };
        Ok(Box::into_raw(ctx).cast::<b2nd_context_t>())
    })
}

/// The bytes of a block, if the shapes may be those of an array.
fn check_shapes(shape: &[i64], chunkshape: &[i32], blockshape: &[i32], typesize: i32) -> Result<i32> {
    let invalid = Error::new(ErrorKind::InvalidParam, "negative extent, empty block, or block too large");
    require(typesize >= 0, "negative typesize")?;
    let mut items = 1i32;
    for ((&extent, &chunk), &block) in shape.iter().zip(chunkshape).zip(blockshape) {
        if extent < 0 || chunk < 0 || block < 0 || (block == 0 && chunk != 0) {
            return Err(invalid);
        }
        items = items.checked_mul(block).ok_or(invalid)?;
    }
    items.checked_mul(typesize).ok_or(invalid)
}

/// A copy of `dtype` from C's allocator, or of the name of plain bytes.
///
/// # Safety
///
/// `dtype` is null or a string.
unsafe fn dtype_or_default(dtype: *const c_char, typesize: i32) -> Result<*mut c_char> {
    if dtype.is_null() {
        let text = format!("|S{typesize}\0");
        return c_bytes(text.as_bytes()).map(<*mut u8>::cast);
    }
    // SAFETY: the caller's promise.
    c_string(unsafe { c_str(dtype) }?)
}

/// Releases the parameters for creating arrays; returns 0, or a negative code for NULL.
///
/// # Safety
///
/// `ctx` is NULL or comes from `b2nd_create_ctx`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_free_ctx(ctx: *mut b2nd_context_t) -> c_int {
    guard_status(|| {
        ensure(!ctx.is_null(), ErrorKind::NullPointer, "no context")?;
        // SAFETY: the caller gives the context away.
        drop(unsafe { Box::from_raw(ctx.cast::<NdContext>()) });
        Ok(())
    })
}

/// Writes the metalayer of an array to memory that the caller releases with `free()`; returns its length, or a negative
/// code. Without a `dtype`, it is that of bytes.
///
/// # Safety
///
/// The shapes are readable for `ndim` numbers each; `dtype` is NULL or a string; `smeta` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_serialize_meta(
    ndim: i8,
    shape: *const i64,
    chunkshape: *const i32,
    blockshape: *const i32,
    dtype: *const c_char,
    dtype_format: i8,
    smeta: *mut *mut u8,
) -> c_int {
    guard(|| {
        ensure(!smeta.is_null(), ErrorKind::NullPointer, "nowhere to store the metalayer")?;
        let count = checked_ndim(ndim)?;
        let dtype: &CStr = if dtype.is_null() {
            B2ND_DEFAULT_DTYPE
        } else {
            // SAFETY: the caller's promise.
            unsafe { c_str(dtype) }?
        };
        // SAFETY: the caller's promise.
        let meta = unsafe {
            NdMeta {
                shape: in_slice(shape, count)?.to_vec(),
                chunkshape: in_slice(chunkshape, count)?.to_vec(),
                blockshape: in_slice(blockshape, count)?.to_vec(),
                dtype: Some(memory::copy_of(dtype.to_bytes())?),
                dtype_format,
            }
        };
        let bytes = meta.write()?;
        let len = c_int::try_from(bytes.len());
        let len = len.map_err(|_| Error::new(ErrorKind::Failure, "dtype too long"))?;
        // SAFETY: not null; writable by the caller's promise.
        unsafe { smeta.write(c_bytes(&bytes)?) };
        Ok(len)
    })
}

/// Reads the metalayer of an array; returns the number of bytes that it takes, or a negative code.
///
/// `*dtype` becomes a string that the caller releases with `free()`, or NULL if none is stored. Without `dtype` or
/// `dtype_format`, reading ends before the dtype.
///
/// # Safety
///
/// `smeta` is NULL or readable for `smeta_len` bytes; the shapes are NULL or writable for one number per dimension that
/// is stored, at most 16, the others NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn b2nd_deserialize_meta(
    smeta: *const u8,
    smeta_len: i32,
    ndim: *mut i8,
    shape: *mut i64,
    chunkshape: *mut i32,
    blockshape: *mut i32,
    dtype: *mut *mut c_char,
    dtype_format: *mut i8,
) -> c_int {
    guard(|| {
        let given = !smeta.is_null() && !ndim.is_null() && !shape.is_null();
        let given = given && !chunkshape.is_null() && !blockshape.is_null();
        ensure(given, ErrorKind::NullPointer, "a pointer is null")?;
        // SAFETY: null, or writable by the caller's promise.
        unsafe {
            store(dtype, ptr::null_mut());
            store(dtype_format, 0);
        }
        ensure(smeta_len > 0, ErrorKind::Failure, "empty metalayer")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { in_slice(smeta, smeta_len) }?;
        let whole = !dtype.is_null() && !dtype_format.is_null();
        let (meta, len) = if whole { NdMeta::read(bytes) } else { NdMeta::read_shapes(bytes) }?;
        let text = c_dtype(&meta)?;
        // SAFETY: not null; writable by the caller's promise, `dtype` and `dtype_format` unless null.
        unsafe {
            ndim.write(i8::try_from(meta.ndim()).expect("at most 16"));
            // Callers that know the number of dimensions may have no room for more.
            shape.copy_from_nonoverlapping(meta.shape.as_ptr(), meta.ndim());
            chunkshape.copy_from_nonoverlapping(meta.chunkshape.as_ptr(), meta.ndim());
            blockshape.copy_from_nonoverlapping(meta.blockshape.as_ptr(), meta.ndim());
            if whole {
                dtype.write(text);
                dtype_format.write(meta.dtype_format);
            }
        }
        Ok(c_int::try_from(len).expect("no longer than the input"))
    })
}
