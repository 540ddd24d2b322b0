//! Exported functions: contexts, and chunks compressed and decompressed with them.

use std::ffi::{c_int, c_void};

use super::context::{self, Context};
use super::guard::{guard, guard_count, guard_status};
use super::ptr::{handle_mut, in_bytes, in_slice, out_bytes, store};
use super::trace;
use super::tuner;
use super::types::{CBool, blosc2_context, blosc2_cparams, blosc2_dparams};
use crate::chunk::{self, Source, SpecialValue, Unit};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::BasicHeader;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, MIN_HEADER_LENGTH};
use crate::memory;

/// The first bytes of a chunk, parsed.
///
/// # Safety
///
/// `chunk` is null or readable for the 16 bytes that every chunk has.
pub(super) unsafe fn basic_header(chunk: *const c_void) -> Result<BasicHeader> {
    // SAFETY: the caller's promise.
    BasicHeader::read(unsafe { in_bytes(chunk, MIN_HEADER_LENGTH) }?)
}

/// The bytes of a destination. Sizes that are less than a header's, negative ones too, are refused with
/// `MaxBufsizeExceeded`.
///
/// # Safety
///
/// `dest` is writable for `destsize` bytes.
pub(super) unsafe fn chunk_dest<'a>(dest: *mut c_void, destsize: i32) -> Result<&'a mut [u8]> {
    let fits = usize::try_from(destsize).is_ok_and(|size| size >= EXTENDED_HEADER_LENGTH);
    ensure(fits, ErrorKind::MaxBufsizeExceeded, "destination smaller than a header")?;
    // SAFETY: the caller's promise.
    unsafe { out_bytes(dest, destsize) }
}

/// The data to compress; a null `src` stands for data that a prefilter makes.
///
/// # Safety
///
/// `src` is null or readable for `srcsize` bytes.
pub(super) unsafe fn chunk_source<'a>(src: *const c_void, srcsize: i32) -> Result<Source<'a>> {
    if src.is_null() {
        let nbytes = usize::try_from(srcsize).ok();
        return nbytes.map(Source::Generated).ok_or(Error::new(ErrorKind::InvalidParam, "negative size"));
    }
    // SAFETY: the caller's promise.
    unsafe { in_bytes(src, srcsize) }.map(Source::Bytes)
}

/// The bytes of a chunk to read. Null stands for no bytes, and so does a negative size, as in the C library.
///
/// # Safety
///
/// `src` is null or readable for `srcsize` bytes.
pub(super) unsafe fn chunk_bytes<'a>(src: *const c_void, srcsize: i32) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { in_bytes(src, srcsize.max(0)) }.unwrap_or_default()
}

/// A chunk to decompress, and the destination of its data. As in [`chunk_bytes`], null stands for no bytes.
///
/// # Safety
///
/// `src` is null or readable for `srcsize` bytes, and `dest` null or writable for `destsize`; the two do not overlap.
#[inline]
pub(super) unsafe fn chunk_and_dest<'a>(
    src: *const c_void,
    srcsize: i32,
    dest: *mut c_void,
    destsize: i32,
) -> (&'a [u8], &'a mut [u8]) {
    // SAFETY: the caller's promise.
    unsafe { (chunk_bytes(src, srcsize), out_bytes(dest, destsize.max(0)).unwrap_or_default()) }
}

/// Fails for a negative size of a destination, into which an empty chunk does not go either; for after the
/// decompression, whose errors come first.
pub(super) fn check_room(destsize: i32) -> Result<()> {
    ensure(destsize >= 0, ErrorKind::WriteBuffer, "negative size of the destination")
}

/// Creates a context for compression with the parameters `cparams`.
///
/// The environment variables `BLOSC_CLEVEL`, `BLOSC_SHUFFLE`, `BLOSC_DELTA`, `BLOSC_TYPESIZE`, `BLOSC_COMPRESSOR`,
/// `BLOSC_BLOCKSIZE`, `BLOSC_NTHREADS` and `BLOSC_SPLITMODE` override parameters. Returns NULL for reserved filter ids
/// and for unknown or failing tuners. Release it with `blosc2_free_ctx`.
///
/// # Safety
///
/// The pointers in `cparams` are NULL or valid for as long as the context is used, `preparams` during this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_create_cctx(cparams: blosc2_cparams) -> *mut blosc2_context {
    // SAFETY: the caller's promise.
    guard(|| unsafe { create_cctx(&cparams) })
}

/// [`blosc2_create_cctx`] with an error that tells why.
///
/// # Safety
///
/// As for [`blosc2_create_cctx`].
pub(super) unsafe fn create_cctx(cparams: &blosc2_cparams) -> Result<*mut blosc2_context> {
    let context = Context::for_compression(cparams)?.into_raw();
    // SAFETY: the context was just made.
    let initialised = unsafe { tuner::init(context) };
    if initialised.is_err() {
        // SAFETY: nobody else knows the context.
        unsafe { free_ctx(context) };
    }
    initialised.map(|()| context)
}

/// Calls `operation` with a context of its own for compression.
///
/// # Safety
///
/// As for [`blosc2_create_cctx`].
///
/// # Errors
///
/// `NullPointer` if there is no context for these parameters; those of `operation`.
pub(super) unsafe fn with_new_cctx<T>(
    cparams: &blosc2_cparams,
    operation: impl FnOnce(*mut blosc2_context) -> Result<T>,
) -> Result<T> {
    let null = |_| Error::new(ErrorKind::NullPointer, "no context for these parameters");
    // SAFETY: the caller's promise.
    let context = unsafe { create_cctx(cparams) }.map_err(null)?;
    let outcome = operation(context);
    // SAFETY: nobody else knows the context.
    unsafe { free_ctx(context) };
    outcome
}

/// What [`blosc2_free_ctx`] does.
///
/// # Safety
///
/// `context` is null or comes from [`Context::into_raw`] and is not used any more.
pub(super) unsafe fn free_ctx(context: *mut blosc2_context) {
    if !context.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(context.cast::<Context>()) });
    }
}

/// Creates a context for decompression with the parameters `dparams`. Release it with `blosc2_free_ctx`.
///
/// # Safety
///
/// The pointers in `dparams` are NULL or valid for as long as the context is used, `postparams` during this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_create_dctx(dparams: blosc2_dparams) -> *mut blosc2_context {
    guard(|| Context::for_decompression(&dparams).map(Context::into_raw))
}

/// Releases a context; NULL is ignored.
///
/// # Safety
///
/// `context` is NULL or comes from `blosc2_create_cctx` or `blosc2_create_dctx` and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_free_ctx(context: *mut blosc2_context) {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { free_ctx(context) };
        Ok(())
    });
}

/// Stores the parameters of a context for compression in `*cparams`; returns 0, or a negative code.
///
/// After a compression, block size and typesize are those that were used.
///
/// # Safety
///
/// `ctx` is NULL or a valid context that no other thread is using; `cparams` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_ctx_get_cparams(
    ctx: *mut blosc2_context,
    cparams: *mut blosc2_cparams,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { Context::shared(ctx) }?;
        // SAFETY: the caller's promise.
        let out = unsafe { handle_mut(cparams) }?;
        // As in the C library, these two stay as the caller set them.
        let (tuner_params, filter_params) = (out.tuner_params, out.filter_params);
        *out = blosc2_cparams { tuner_params, filter_params, ..context.cparams() };
        Ok(())
    })
}

/// Stores the parameters of a context for decompression in `*dparams`; returns 0, or a negative code.
///
/// # Safety
///
/// `ctx` is NULL or a valid context that no other thread is using; `dparams` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_ctx_get_dparams(
    ctx: *mut blosc2_context,
    dparams: *mut blosc2_dparams,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { Context::shared(ctx) }?;
        // SAFETY: the caller's promise.
        *unsafe { handle_mut(dparams) }? = context.dparams();
        Ok(())
    })
}

/// Sets a mask of blocks to skip in the next call of `blosc2_decompress_ctx`, which uses it up. If the context is the
/// `dctx` of a super-chunk, so does the next chunk that `blosc2_schunk_decompress_chunk` or
/// `blosc2_schunk_get_slice_buffer` reads as a whole; reading parts of chunks goes on without it.
///
/// `maskout` holds one flag for each of the `nblocks` blocks; true skips the block, whose bytes in the destination stay
/// as they are. It is copied. Returns 0, or a negative code.
///
/// # Safety
///
/// `ctx` is NULL or a valid context that no other thread is using; `maskout` is readable for `nblocks` flags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_set_maskout(
    ctx: *mut blosc2_context,
    maskout: *mut bool,
    nblocks: c_int,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { Context::from_raw(ctx) }?;
        // As in the C library, to which it is a number that there is no memory for.
        let nblocks = usize::try_from(nblocks).map_err(|_| memory::no_memory())?;
        // SAFETY: the caller's promise; `CBool` takes any byte.
        let flags = unsafe { in_slice(maskout.cast::<CBool>(), nblocks) }?;
        context.set_maskout(memory::collect(flags.iter().map(|flag| flag.get()))?)?;
        Ok(())
    })
}

/// Compresses `srcsize` bytes at `src` into `dest`, of `destsize` bytes.
///
/// Returns the size of the chunk, 0 if it does not fit (`srcsize + BLOSC2_MAX_OVERHEAD` bytes always do), or a negative
/// code. With a prefilter, `src` may be NULL.
///
/// # Safety
///
/// `context` is NULL or a valid context that no other thread is using. `src` is NULL or readable for `srcsize` bytes
/// and `dest` writable for `destsize`; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_compress_ctx(
    context: *mut blosc2_context,
    src: *const c_void,
    srcsize: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        unsafe { Context::compressing(context) }?;
        // SAFETY: the caller's promise.
        let dest = unsafe { chunk_dest(dest, destsize) }?;
        // SAFETY: the caller's promise.
        let source = unsafe { chunk_source(src, srcsize) }?;
        // SAFETY: the caller's promise.
        unsafe { context::compress(context, source, dest) }
    })
}

/// Decompresses the chunk `src` into `dest`; returns the bytes written, or a negative code.
///
/// `srcsize` may exceed the size of the chunk.
///
/// # Safety
///
/// `context` is NULL or a valid context that no other thread is using. `src` is readable for `srcsize` bytes and `dest`
/// writable for `destsize`; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_decompress_ctx(
    context: *mut blosc2_context,
    src: *const c_void,
    srcsize: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (chunk, dest) = unsafe { chunk_and_dest(src, srcsize, dest, destsize) };
        // SAFETY: the caller's promise.
        let nbytes = unsafe { context::decompress(context, chunk, dest) }?;
        check_room(destsize)?;
        Ok(nbytes)
    })
}

/// Compresses `nblocks` buffers into one chunk, each as a block of its own length.
///
/// `srcs[i]` points to `srcsizes[i]` bytes, at least one. Returns the size of the chunk, 0 if it does not fit, or a
/// negative code.
///
/// # Safety
///
/// `context` is NULL or a valid context that no other thread is using. `srcs` and `srcsizes` hold `nblocks` entries,
/// and `dest` is writable for `destsize` bytes and overlaps with none of the sources.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlcompress_ctx(
    context: *mut blosc2_context,
    srcs: *const *const c_void,
    srcsizes: *const i32,
    nblocks: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    guard_count(|| {
        require(!srcs.is_null() && !srcsizes.is_null() && nblocks > 0, "no blocks")?;
        // SAFETY: the caller's promise.
        let (pointers, sizes) = unsafe { (in_slice(srcs, nblocks)?, in_slice(srcsizes, nblocks)?) };
        let blocks = pointers.iter().zip(sizes).map(|(&pointer, &size)| {
            require(!pointer.is_null() && size > 0, "empty block")?;
            // SAFETY: the caller's promise.
            unsafe { in_bytes(pointer, size) }
        });
        let blocks = memory::try_collect(blocks)?;
        // SAFETY: the caller's promise.
        unsafe { Context::compressing(context) }?;
        // SAFETY: the caller's promise.
        let dest = unsafe { chunk_dest(dest, destsize) }?;
        // SAFETY: the caller's promise.
        unsafe { context::compress_vl(context, &blocks, dest) }
    })
}

/// Decompresses each block of a chunk of variable-length blocks into memory of its own.
///
/// `dests[i]` and `destsizes[i]` receive block `i`; release the blocks with `free()`. Returns the number of blocks, at
/// most `maxblocks`, or a negative code. If a block cannot be decompressed, `dests[i]` of all blocks is NULL; where the
/// call is refused before, nothing is written.
///
/// # Safety
///
/// `context` is NULL or a valid context that no other thread is using. `src` is readable for `srcsize` bytes, `dests`
/// and `destsizes` are writable for `maxblocks` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vldecompress_ctx(
    context: *mut blosc2_context,
    src: *const c_void,
    srcsize: i32,
    dests: *mut *mut c_void,
    destsizes: *mut i32,
    maxblocks: i32,
) -> c_int {
    guard_count(|| {
        let max = usize::try_from(maxblocks).unwrap_or(0);
        let given = !dests.is_null() && !destsizes.is_null() && max > 0;
        require(given, "no room for blocks")?;
        // SAFETY: the caller's promise.
        let chunk = unsafe { chunk_bytes(src, srcsize) };
        // SAFETY: the caller's promise.
        let blocks = unsafe {
            context::decompress_vl(context, chunk, max, |nblocks| {
                for i in 0..nblocks {
                    // At most `maxblocks`.
                    dests.add(i).write(std::ptr::null_mut());
                }
            })
        }?;
        let count = blocks.len();
        for (i, block) in blocks.into_iter().enumerate() {
            let (start, len) = block.into_raw();
            // SAFETY: `i` is below `maxblocks`.
            unsafe {
                destsizes.add(i).write(i32::try_from(len).unwrap_or(i32::MAX));
                dests.add(i).write(start.cast());
            }
        }
        Ok(count)
    })
}

/// Stores the number of blocks of a chunk of variable-length blocks in `*nblocks`; returns 0, or a negative code.
///
/// # Safety
///
/// `src` is NULL or readable for `srcsize` bytes; `nblocks` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vlchunk_get_nblocks(
    src: *const c_void,
    srcsize: i32,
    nblocks: *mut i32,
) -> c_int {
    guard_status(|| {
        require(!src.is_null() && !nblocks.is_null(), "null pointer")?;
        // SAFETY: the caller's promise.
        let count = chunk::vl_nblocks(unsafe { chunk_bytes(src, srcsize) })?;
        // SAFETY: the caller's promise.
        unsafe { store(nblocks, i32::try_from(count).unwrap_or(i32::MAX)) };
        Ok(())
    })
}

/// Decompresses block `nblock` of a chunk of variable-length blocks.
///
/// `*dest` and `*destsize` receive the block; release it with `free()`. Returns its size, or a negative code.
///
/// # Safety
///
/// `context` is NULL or a valid context that no other thread is using. `src` is readable for `srcsize` bytes; `dest`
/// and `destsize` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_vldecompress_block_ctx(
    context: *mut blosc2_context,
    src: *const c_void,
    srcsize: i32,
    nblock: i32,
    dest: *mut *mut u8,
    destsize: *mut i32,
) -> c_int {
    guard_count(|| {
        require(!dest.is_null() && !destsize.is_null(), "null pointer")?;
        // SAFETY: the caller's promise.
        let chunk = unsafe { chunk_bytes(src, srcsize) };
        // SAFETY: the caller's promise.
        let block = unsafe { context::decompress_vl_block(context, chunk, nblock) }?;
        let (start, len) = block.into_raw();
        // SAFETY: the caller's promise.
        unsafe {
            store(destsize, i32::try_from(len).unwrap_or(i32::MAX));
            store(dest, start);
        }
        Ok(len)
    })
}

/// Decompresses `nitems` items of the chunk `src`, from item `start` on, into `dest`.
///
/// Items have the typesize that the chunk records: bytes, if the original one was above 255. Returns the number of
/// bytes written, or a negative code.
///
/// # Safety
///
/// `context` is NULL or a valid context, of either kind, that no other thread is using. `src` is readable for `srcsize`
/// bytes and `dest` writable for `destsize`; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_getitem_ctx(
    context: *mut blosc2_context,
    src: *const c_void,
    srcsize: i32,
    start: c_int,
    nitems: c_int,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (chunk, dest) = unsafe { chunk_and_dest(src, srcsize, dest, destsize) };
        // SAFETY: the caller's promise.
        unsafe { context::getitem(context, chunk, Unit::Items, start, nitems, dest) }
    })
}

/// As `blosc2_getitem_ctx`, with `start` and `nbytes` in bytes, which must be whole items.
///
/// # Safety
///
/// As for `blosc2_getitem_ctx`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_getitem_bytes_ctx(
    context: *mut blosc2_context,
    src: *const c_void,
    srcsize: i32,
    start: i32,
    nbytes: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (chunk, dest) = unsafe { chunk_and_dest(src, srcsize, dest, destsize) };
        // SAFETY: the caller's promise.
        unsafe { context::getitem(context, chunk, Unit::Bytes, start, nbytes, dest) }
    })
}

/// Makes a special chunk; see the exported functions below.
///
/// # Safety
///
/// `dest` is writable for `destsize` bytes; the pointers in `cparams` are as for [`blosc2_create_cctx`].
unsafe fn special(
    cparams: &blosc2_cparams,
    nbytes: i32,
    dest: *mut c_void,
    destsize: i32,
    value: SpecialValue<'_>,
) -> Result<usize> {
    let dest_len = usize::try_from(destsize).unwrap_or(0);
    // SAFETY: the caller's promise.
    let dest = unsafe { out_bytes(dest, dest_len) }?;
    // First of all, as the C library does.
    ensure(dest.len() >= value.chunk_len(), ErrorKind::Data, "destination shorter than the chunk")?;
    let invalid = |_| Error::new(ErrorKind::InvalidParam, "negative size");
    let (nbytes, typesize) =
        (usize::try_from(nbytes).map_err(invalid)?, usize::try_from(cparams.typesize).map_err(invalid)?);
    require(typesize > 0, "typesize is zero")?;
    // Those of the caller, before the environment has its say.
    ensure(nbytes % typesize == 0, ErrorKind::Data, "not a whole number of items")?;
    // SAFETY: the caller vouches for the pointers in `cparams`; the context was just made.
    let params = unsafe { with_new_cctx(cparams, |context| context::special_params(context, nbytes, dest)) }?;
    trace::compression(&params, nbytes);
    chunk::special_chunk(&params, nbytes, value, dest)
}

/// Writes a chunk of `nbytes` zeros to `dest`; returns its size, 32 bytes, or a negative code.
///
/// # Safety
///
/// `dest` is writable for `destsize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_chunk_zeros(
    cparams: blosc2_cparams,
    nbytes: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    // SAFETY: the caller's promise.
    guard_count(|| unsafe { special(&cparams, nbytes, dest, destsize, SpecialValue::Zeros) })
}

/// Writes a chunk of `nbytes` bytes of NaNs, of 4 or 8 bytes each, to `dest`; with another typesize, nobody can
/// decompress it. Returns its size, 32 bytes, or a negative code.
///
/// # Safety
///
/// `dest` is writable for `destsize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_chunk_nans(
    cparams: blosc2_cparams,
    nbytes: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    // SAFETY: the caller's promise.
    guard_count(|| unsafe { special(&cparams, nbytes, dest, destsize, SpecialValue::Nans) })
}

/// Writes a chunk of `nbytes` bytes that repeat the item at `repeatval` to `dest`; returns its size, 32 bytes and one
/// item, or a negative code.
///
/// # Safety
///
/// `dest` is writable for `destsize` bytes; `repeatval` is readable for one item of `cparams.typesize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_chunk_repeatval(
    cparams: blosc2_cparams,
    nbytes: i32,
    dest: *mut c_void,
    destsize: i32,
    repeatval: *const c_void,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let item = unsafe { in_bytes(repeatval, cparams.typesize) }?;
        // SAFETY: the caller's promise.
        unsafe { special(&cparams, nbytes, dest, destsize, SpecialValue::Repeated(item)) }
    })
}

/// Writes a chunk of `nbytes` bytes without contents to `dest`; returns its size, 32 bytes, or a negative code.
///
/// Decompressing it leaves the destination as it is.
///
/// # Safety
///
/// `dest` is writable for `destsize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_chunk_uninit(
    cparams: blosc2_cparams,
    nbytes: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    // SAFETY: the caller's promise.
    guard_count(|| unsafe { special(&cparams, nbytes, dest, destsize, SpecialValue::Uninit) })
}
