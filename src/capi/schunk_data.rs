//! Exported functions: chunks of super-chunks.

use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use super::chunk::{basic_header, chunk_source};
use super::context;
use super::guard::{guard, guard_count};
use super::ptr::{in_bytes, in_slice, invalid, out_bytes, store};
use super::schunk_handle::SchunkHandle;
use super::types::{CBool, blosc2_schunk};
use crate::chunk::{self, CParams};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::offset;
use crate::format::consts::{EXTENDED_HEADER_LENGTH, MAX_BUFFERSIZE, blosc2_flags};
use crate::frame::{ChunkBytes, Frame};
use crate::io::memory::MallocBuf;
use crate::memory;
use crate::schunk::{Rejected, Schunk, scratch};

/// The chunk number `nchunk`; `InvalidParam` unless it is one of `count` chunks.
fn number(nchunk: i64, count: usize) -> Result<usize> {
    let invalid = Error::new(ErrorKind::InvalidParam, "chunk number out of range");
    usize::try_from(nchunk).ok().filter(|&nchunk| nchunk < count).ok_or(invalid)
}

/// Fails with `error`, which is found before the frame is locked for the change. In the C library the lock comes first,
/// and its counter counts failures as well.
fn refused<T>(schunk: &Schunk, error: Error) -> Result<T> {
    drop(schunk.exclusive()?);
    Err(error)
}

/// A chunk of the caller: its bytes, and how many there are uncompressed. Lazy chunks are none: they are shorter than
/// they tell.
///
/// # Safety
///
/// `chunk` is null, a lazy chunk, or readable for the number of bytes that its header tells.
unsafe fn whole_chunk<'a>(chunk: *const u8) -> Result<(&'a [u8], i32)> {
    require(!chunk.is_null(), "no chunk")?;
    // SAFETY: the caller's promise; a lazy chunk has a header, too.
    let header = unsafe { basic_header(chunk.cast()) }?;
    if header.is_extended() && usize::try_from(header.cbytes).is_ok_and(|len| len >= EXTENDED_HEADER_LENGTH) {
        // SAFETY: the caller's promise; a lazy chunk has such a header, too.
        let head = unsafe { in_bytes(chunk.cast(), EXTENDED_HEADER_LENGTH) }?;
        let is_lazy = head[offset::BLOSC2_FLAGS] & blosc2_flags::LAZY != 0;
        require(!is_lazy, "a lazy chunk has no data")?;
    }
    // SAFETY: the caller's promise.
    Ok((unsafe { in_bytes(chunk.cast(), header.cbytes) }?, header.nbytes))
}

/// Gives a chunk of the caller to `schunk`: a copy of it through `store_copy`, or the chunk itself through
/// `store_owned`, from which it comes back after a failure.
///
/// # Safety
///
/// As for [`whole_chunk`]; unless it is copied, the chunk comes from `malloc`.
unsafe fn give(
    schunk: &mut Schunk,
    chunk: *mut u8,
    copy: CBool,
    store_copy: impl FnOnce(&mut Schunk, &[u8]) -> Result<usize>,
    store_owned: impl FnOnce(&mut Schunk, MallocBuf) -> std::result::Result<usize, Rejected>,
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let (bytes, nbytes) = unsafe { whole_chunk(chunk) }.or_else(|e| refused(schunk, e))?;
    if copy.get() {
        let frame = schunk.frame().and_then(Frame::buffer);
        if frame.is_some_and(|frame| frame.as_ptr_range().contains(&bytes.as_ptr())) {
            // One of its own chunks, which moves when the frame grows.
            let bytes = MallocBuf::copy_of(bytes)?;
            return store_copy(schunk, &bytes);
        }
        return store_copy(schunk, bytes);
    }
    let data = NonNull::new(chunk).ok_or(Error::new(ErrorKind::InvalidParam, "no chunk"))?;
    let oversized = i32::try_from(bytes.len()).is_ok_and(|cbytes| cbytes < nbytes);
    // SAFETY: the caller gives the memory away, unless the call fails. Chunks that are kept are shrunk first.
    let chunk = unsafe {
        if oversized {
            MallocBuf::from_malloc_with_slack(data, bytes.len())
        } else {
            MallocBuf::from_malloc(data, bytes.len())
        }
    };
    store_owned(schunk, chunk).map_err(|rejected| {
        // The chunk stays the caller's.
        let _ = rejected.chunk.into_raw();
        rejected.error
    })
}

/// Appends a chunk; returns the number of chunks, or a negative code.
///
/// Without `copy` the chunk, from `malloc`, belongs to the super-chunk afterwards, unless the call fails.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `chunk` is NULL or a chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_append_chunk(
    schunk: *mut blosc2_schunk,
    chunk: *mut u8,
    copy: CBool,
) -> i64 {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        let count = handle.change_parts(|schunk| {
            // SAFETY: the caller's promise.
            unsafe { give(schunk, chunk, copy, Schunk::append_chunk, Schunk::append_owned) }
        })?;
        handle.set_current(i64::try_from(count - 1).unwrap_or(i64::MAX));
        Ok(count)
    })
}

/// Inserts a chunk before chunk `nchunk`; returns the number of chunks, or a negative code.
///
/// Without `copy` the chunk, from `malloc`, belongs to the super-chunk afterwards, unless the call fails.
///
/// # Safety
///
/// As for `blosc2_schunk_append_chunk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_insert_chunk(
    schunk: *mut blosc2_schunk,
    nchunk: i64,
    chunk: *mut u8,
    copy: CBool,
) -> i64 {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.change_parts(|schunk| {
            let at = number(nchunk, schunk.nchunks() + 1).or_else(|e| refused(schunk, e))?;
            let store_copy = |schunk: &mut Schunk, bytes: &[u8]| schunk.insert_chunk(at, bytes);
            let store_owned = |schunk: &mut Schunk, chunk| schunk.insert_owned(at, chunk);
            // SAFETY: the caller's promise.
            let count = unsafe { give(schunk, chunk, copy, store_copy, store_owned) }?;
            handle.set_current(nchunk);
            Ok(count)
        })
    })
}

/// Replaces chunk `nchunk`; returns the number of chunks, or a negative code.
///
/// Without `copy` the chunk, from `malloc`, belongs to the super-chunk afterwards, unless the call fails.
///
/// # Safety
///
/// As for `blosc2_schunk_append_chunk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_update_chunk(
    schunk: *mut blosc2_schunk,
    nchunk: i64,
    chunk: *mut u8,
    copy: CBool,
) -> i64 {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.change_parts(|schunk| {
            let at = number(nchunk, schunk.nchunks()).or_else(|e| refused(schunk, e))?;
            let store_copy = |schunk: &mut Schunk, bytes: &[u8]| schunk.update_chunk(at, bytes);
            let store_owned = |schunk: &mut Schunk, chunk| schunk.update_owned(at, chunk);
            // SAFETY: the caller's promise.
            let count = unsafe { give(schunk, chunk, copy, store_copy, store_owned) }?;
            handle.set_current(nchunk);
            Ok(count)
        })
    })
}

/// Deletes chunk `nchunk`; returns the number of chunks, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_delete_chunk(schunk: *mut blosc2_schunk, nchunk: i64) -> i64 {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.change_parts(|schunk| {
            let at = number(nchunk, schunk.nchunks()).or_else(|e| refused(schunk, e))?;
            handle.set_current(nchunk);
            schunk.delete_chunk(at)
        })
    })
}

/// Compresses `nbytes` bytes with the super-chunk's context and appends them as a chunk; returns the number of chunks,
/// or a negative code.
///
/// `src` may be NULL if a prefilter makes the data.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `src` is NULL or readable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_append_buffer(
    schunk: *mut blosc2_schunk,
    src: *const c_void,
    nbytes: i32,
) -> i64 {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        let nchunks = handle.look(|schunk| Ok(schunk.nchunks()))?;
        handle.set_current(i64::try_from(nchunks).unwrap_or(i64::MAX));
        let len = usize::try_from(nbytes).ok().filter(|&len| len <= MAX_BUFFERSIZE);
        let len = len.ok_or(Error::new(ErrorKind::MaxBufsizeExceeded, "buffer size out of range"))?;
        // SAFETY: the caller's promise.
        let source = unsafe { chunk_source(src, nbytes) }?;
        let missing = |e: Error| if src.is_null() { invalid(e) } else { e };
        scratch::with_len(chunk::room_for(len), |dest| {
            // Compressed before the super-chunk is locked: callbacks may read it.
            // SAFETY: the caller's promise.
            let cbytes = unsafe { context::compress((*schunk).cctx, source, dest) }.map_err(missing)?;
            ensure(cbytes > 0, ErrorKind::Failure, "buffer cannot be compressed")?;
            handle.change_parts(|schunk| schunk.append_chunk(&dest[..cbytes]))
        })
    })
}

/// Decompresses chunk `nchunk` into `dest`; returns the number of bytes, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `dest` is writable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_decompress_chunk(
    schunk: *mut blosc2_schunk,
    nchunk: i64,
    dest: *mut c_void,
    nbytes: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        // A negative size is one that is too small.
        // SAFETY: the caller's promise; it is called again only after what it returned before is no longer used.
        let dest = || unsafe { out_bytes(dest, nbytes.max(0)) }.map_err(invalid);
        let nbytes = handle.read_short(|schunk| {
            let at = usize::try_from(nchunk).ok()?;
            let nbytes = schunk.decompress_simple(at, dest().ok()?)?;
            handle.show_dict(schunk, at);
            Some((nbytes, at))
        });
        if let Some(nbytes) = nbytes {
            return Ok(nbytes);
        }
        handle.read(|schunk, reading| {
            let at = number(nchunk, schunk.nchunks())?;
            let dest = dest()?;
            // As in the C library, where a client took the chunk.
            let nbytes = schunk
                .decompress_chunk(at, dest, reading)
                .or_else(|e| if schunk.is_missing(at) { Ok(0) } else { Err(e) })?;
            handle.show_dict(schunk, at);
            Ok(nbytes)
        })
    })
}

/// Stores the address of the compressed chunk `nchunk` in `*chunk`; returns its size in bytes, or a negative code.
///
/// `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the super-chunk and stays
/// valid until that changes. In memory, and not contiguous, chunks also stay valid while others are appended.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed, except that other threads may append chunks to one in memory that
/// is not contiguous; `chunk` and `needs_free` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_chunk(
    schunk: *mut blosc2_schunk,
    nchunk: i64,
    chunk: *mut *mut u8,
    needs_free: *mut CBool,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        hand_out(schunk, nchunk, chunk, needs_free, |schunk, at| schunk.chunk_into(at, MallocBuf::filled))
    }
}

/// Stores the address of chunk `nchunk` in `*chunk`; for a chunk on disk, that is its lazy form, without the data.
/// Returns its size in bytes, or a negative code.
///
/// A context made with this super-chunk in its parameters decompresses it, and reads only the blocks that it needs.
/// `*needs_free` as in `blosc2_schunk_get_chunk`.
///
/// # Safety
///
/// As for `blosc2_schunk_get_chunk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_lazychunk(
    schunk: *mut blosc2_schunk,
    nchunk: i64,
    chunk: *mut *mut u8,
    needs_free: *mut CBool,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        hand_out(schunk, nchunk, chunk, needs_free, |schunk, at| {
            Ok(match schunk.lazy_chunk(at)? {
                Cow::Borrowed(bytes) => ChunkBytes::Held(bytes),
                Cow::Owned(bytes) => ChunkBytes::Made(MallocBuf::copy_of(&bytes)?),
            })
        })
    }
}

/// Hands out the bytes that `get` gives.
///
/// # Safety
///
/// As for [`blosc2_schunk_get_chunk`].
#[inline]
unsafe fn hand_out(
    schunk: *mut blosc2_schunk,
    nchunk: i64,
    chunk: *mut *mut u8,
    needs_free: *mut CBool,
    get: impl for<'a> FnOnce(&'a Schunk, usize) -> Result<ChunkBytes<'a, MallocBuf>>,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        let wanted = !chunk.is_null() && !needs_free.is_null();
        require(wanted, "nowhere to store the chunk")?;
        // SAFETY: without a frame, other threads only append chunks, by the caller's promise.
        let Some(bytes) = (unsafe { handle.listed_chunk(nchunk) }) else {
            // SAFETY: not null; writable by the caller's promise.
            return unsafe { hand_out_any(handle, nchunk, chunk, needs_free, get) };
        };
        // SAFETY: as above.
        unsafe {
            store(chunk, bytes.cast().as_ptr());
            store(needs_free, CBool::FALSE);
        }
        Ok(bytes.len())
    })
}

/// As [`hand_out`], wherever the chunks are.
///
/// # Safety
///
/// `chunk` and `needs_free` are writable.
#[inline(never)] // so that the way to lists, which takes a few nanoseconds, has no part in it
unsafe fn hand_out_any(
    handle: &SchunkHandle,
    nchunk: i64,
    chunk: *mut *mut u8,
    needs_free: *mut CBool,
    get: impl for<'a> FnOnce(&'a Schunk, usize) -> Result<ChunkBytes<'a, MallocBuf>>,
) -> Result<usize> {
    handle.look(|schunk| {
        let at = number(nchunk, schunk.nchunks())?;
        handle.set_current(nchunk);
        // SAFETY: the caller's promise.
        unsafe {
            store(chunk, ptr::null_mut());
            store(needs_free, CBool::FALSE);
        }
        if schunk.is_missing(at) {
            // As in the C library, where a client took the chunk.
            return Ok(0);
        }
        let (start, len, owned) = match get(schunk, at)? {
            ChunkBytes::Held(bytes) => (bytes.as_ptr().cast_mut(), bytes.len(), false),
            ChunkBytes::Made(bytes) => {
                let (start, len) = bytes.into_raw();
                (start, len, true)
            }
        };
        // SAFETY: the caller's promise.
        unsafe {
            store(chunk, start);
            store(needs_free, owned.into());
        }
        Ok(len)
    })
}

/// Decompresses block `nblock` of chunk `nchunk`, which consists of variable-length blocks; returns its size, or a
/// negative code.
///
/// The block, which the caller releases with `free()`, is stored in `*dest`, its size in `*destsize`.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `dest` and `destsize` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_vlblock(
    schunk: *mut blosc2_schunk,
    nchunk: i64,
    nblock: i32,
    dest: *mut *mut u8,
    destsize: *mut i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        let wanted = !dest.is_null() && !destsize.is_null();
        require(wanted, "nowhere to store the block")?;
        let block = handle.read(|schunk, reading| {
            let at = number(nchunk, schunk.nchunks())?;
            handle.set_current(nchunk);
            let nblock = usize::try_from(nblock)
                .map_err(|_| Error::new(ErrorKind::InvalidParam, "block number out of range"))?;
            schunk.vl_block(at, nblock, reading, MallocBuf::for_output)
        })?;
        let size = i32::try_from(block.len()).map_err(|_| Error::new(ErrorKind::Data, "block too large"))?;
        let (start, len) = block.into_raw();
        // SAFETY: not null; writable by the caller's promise.
        unsafe {
            store(dest, start);
            store(destsize, size);
        }
        Ok(len)
    })
}

/// Reorders the chunks: chunk `i` becomes what chunk `offsets_order[i]` was. Returns 0, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it; `offsets_order` is readable for one number per chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_reorder_offsets(
    schunk: *mut blosc2_schunk,
    offsets_order: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        // The caller knows of no other number of chunks. Where there are more, as another array appended some to the
        // same super-chunk, this is no order of them.
        let nchunks = usize::try_from(handle.shown_nchunks()).unwrap_or(0);
        // SAFETY: the caller's promise.
        let order = unsafe { in_slice(offsets_order, nchunks) }.map_err(invalid)?;
        let number = |&at: &i64| usize::try_from(at).unwrap_or(usize::MAX);
        let order = memory::collect(order.iter().map(number))?;
        handle.change(|schunk| schunk.reorder(&order))?;
        Ok(0)
    })
}

/// Fills an empty super-chunk with `nitems` items of a special value, in chunks of `chunksize` bytes; returns the
/// number of chunks, or a negative code.
///
/// `special_value` is `BLOSC2_SPECIAL_ZERO`, `BLOSC2_SPECIAL_NAN` or `BLOSC2_SPECIAL_UNINIT`.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_fill_special(
    schunk: *mut blosc2_schunk,
    nitems: i64,
    special_value: c_int,
    chunksize: i32,
) -> i64 {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        if nitems == 0 {
            return Ok(0);
        }
        let params = handle.params();
        let valid = nitems > 0 && chunksize > 0 && params.typesize > 0 && params.blocksize >= 0;
        require(valid, "sizes out of range")?;
        let params = CParams { use_dict: false, ..CParams::from(&params) };
        // A value that does not fit a byte is none of the special ones.
        let kind = u8::try_from(special_value).unwrap_or(u8::MAX);
        let (count, blocksize) = handle.change(|schunk| {
            let count = schunk.fill_special(nitems.unsigned_abs(), kind, chunksize, &params)?;
            Ok((count, schunk.frame().map(|frame| frame.header().params.blocksize)))
        })?;
        match blocksize {
            // SAFETY: the caller's promise: no other thread uses the handle.
            Some(blocksize) => unsafe { (*schunk).blocksize = blocksize },
            None => handle.set_current(i64::try_from(count).unwrap_or(i64::MAX) - 1),
        }
        Ok(count)
    })
}
