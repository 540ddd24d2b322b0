//! Exported functions: making, opening, copying, storing and releasing super-chunks.

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use super::consts::{BLOSC2_IO_FILESYSTEM, BLOSC2_MAX_FILTERS};
use super::context::Context;
use super::environment::Environment;
use super::guard::{guard, guard_or};
use super::mem::c_array;
use super::ptr::{handle_ref, store};
use super::schunk_handle::{self, SchunkHandle, Used, frame_cparams};
use super::types::{CBool, blosc2_cparams, blosc2_dparams, blosc2_io, blosc2_schunk, blosc2_storage};
use super::{io, io_adapter, storage};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::consts::MAX_TYPESIZE;
use crate::format::frame_header::{FrameParams, MAGIC};
use crate::format::packed::Packed;
use crate::frame::FrameOptions;
use crate::io::memory::MallocBuf;
use crate::schunk::copy::again_if_changed;
use crate::schunk::{Schunk, Writing};

/// Makes an empty super-chunk; returns NULL on failure. Release it with `blosc2_schunk_free`.
///
/// `storage` and what it points to are copied, but not the parameters of filters, tuners and I/O back-ends. Nothing must
/// exist at its path.
///
/// # Safety
///
/// `storage` is NULL or valid; so are the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_new(storage: *mut blosc2_storage) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { SchunkHandle::create(handle_ref(storage)?) })
}

/// Copies a super-chunk, with its metalayers; returns NULL on failure.
///
/// `storage` says where the copy goes, and how it is compressed. Chunks are only compressed again if the parameters
/// differ; NULL parameters are those of the source.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `storage` is NULL or valid, as are the pointers in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_copy(
    schunk: *mut blosc2_schunk,
    storage: *mut blosc2_storage,
) -> *mut blosc2_schunk {
    guard(|| {
        // SAFETY: the caller's promise.
        let (source, given) = unsafe { (SchunkHandle::from_ptr(schunk)?, *handle_ref(storage)?) };
        // SAFETY: the caller's promise.
        unsafe { copy(source, given) }
    })
}

/// The compression parameters of a super-chunk's context, as copies take them.
fn context_cparams(source: &SchunkHandle) -> blosc2_cparams {
    let abi = source.abi();
    // SAFETY: clients replace contexts only while no other thread uses the handle.
    let context = unsafe { Context::shared((*abi).cctx) };
    let params = source.params();
    let own = context.map_or(frame_cparams(&params), Context::cparams);
    // Contexts show items that are too large for them as bytes.
    let is_large = usize::try_from(params.typesize).is_ok_and(|typesize| typesize > MAX_TYPESIZE);
    blosc2_cparams {
        nthreads: 0,
        schunk: ptr::null_mut(),
        prefilter: None,
        preparams: ptr::null_mut(),
        tuner_params: ptr::null_mut(),
        tuner_id: 0,
        instr_codec: CBool::FALSE,
        codec_params: ptr::null_mut(),
        filter_params: [ptr::null_mut(); BLOSC2_MAX_FILTERS],
        typesize: if is_large { params.typesize } else { own.typesize },
        ..own
    }
}

/// Whether chunks made with `own` may stand among those that `wanted` asks for.
fn same_parameters(own: &blosc2_cparams, wanted: &blosc2_cparams) -> bool {
    own.typesize == wanted.typesize
        && own.clevel == wanted.clevel
        && own.compcode == wanted.compcode
        && own.use_dict == wanted.use_dict
        && (wanted.blocksize == 0 || own.blocksize == wanted.blocksize)
        && own.filters == wanted.filters
        && own.filters_meta == wanted.filters_meta
}

/// What [`blosc2_schunk_copy`] does.
///
/// # Safety
///
/// The pointers in `given` are null or valid.
unsafe fn copy(source: &SchunkHandle, mut given: blosc2_storage) -> Result<*mut blosc2_schunk> {
    source.adopt_layers(Used::All)?;
    source.adopt_chunksize()?;
    let mut own = context_cparams(source);
    // SAFETY: the caller's promise.
    let wanted = unsafe { given.cparams.as_ref() }.copied();
    let abi = source.abi();
    // SAFETY: as in `context_cparams`.
    let filtered = unsafe {
        Context::shared((*abi).cctx).is_ok_and(|context| context.fields.prefilter.is_some())
            || Context::shared((*abi).dctx).is_ok_and(|context| context.fields.postfilter.is_some())
    };
    let same = !filtered && wanted.is_none_or(|wanted| same_parameters(&own, &wanted));
    if wanted.is_none() {
        given.cparams = &raw mut own;
    }
    // If that fails, so does copying.
    let tick = || source.look(|schunk| Ok(schunk.fresh_tick())).unwrap_or(0);
    // SAFETY: the caller's promise; `own` lives until the end of this function.
    again_if_changed(tick, || unsafe { make_copy(source, &given, same) })
}

/// Makes a super-chunk as `given` says and copies the content of `source` to it.
///
/// # Safety
///
/// As for [`SchunkHandle::create`].
unsafe fn make_copy(source: &SchunkHandle, given: &blosc2_storage, same: bool) -> Result<*mut blosc2_schunk> {
    // SAFETY: the caller's promise.
    let raw = unsafe { SchunkHandle::create(given) }?;
    // SAFETY: just made.
    let made = unsafe { SchunkHandle::from_ptr(raw) }.and_then(|dest| copy_content(source, dest, same));
    if made.is_err() {
        // SAFETY: just made; nobody else knows it. The caller vouches for the path.
        unsafe {
            SchunkHandle::release(raw.cast());
            storage::remove_made(given.urlpath);
        }
    }
    made.map(|()| raw)
}

/// Shows that the last chunk of `schunk` was worked on last, as after a copy of all of them.
fn show_last(handle: &SchunkHandle, schunk: &Schunk) {
    if let Some(last) = schunk.nchunks().checked_sub(1) {
        handle.set_current(i64::try_from(last).unwrap_or(i64::MAX));
    }
}

/// Copies metalayers and chunks to a new handle; the chunks as they are if the parameters are the `same`.
fn copy_content(source: &SchunkHandle, dest: &SchunkHandle, same: bool) -> Result<()> {
    let layers = if same { source.layers_for_same_chunks()? } else { source.own_layers().cloned() };
    // A view without chunks has sizes of its own.
    let empty = layers.is_some() && source.look(|schunk| Ok(schunk.nchunks() == 0))?;
    let own = if empty { source.as_source()? } else { None };
    let (own, layers) = (own.as_ref(), layers.as_deref());
    if same {
        source.look(|schunk| {
            dest.change(|copy| own.unwrap_or(schunk).copy_to_watched(copy, layers, None, &|_| ()))?;
            show_last(source, schunk);
            Ok(())
        })?;
    } else {
        let recompress = |writing: &Writing<'_>| {
            source.read(|schunk, reading| {
                let prepared = |copy: &Schunk| dest.catch_up(copy);
                let parts = Some((reading, writing));
                dest.change(|copy| own.unwrap_or(schunk).copy_to_watched(copy, layers, parts, &prepared))
            })
        };
        // SAFETY: nobody else knows the new handle.
        unsafe { dest.with_encoding(recompress) }?;
    }
    dest.look(|copy| {
        show_last(dest, copy);
        Ok(())
    })
}

/// Makes a super-chunk of the frame in `cframe`; returns NULL if it is damaged.
///
/// With `copy` the chunks are copied and the buffer is not needed any more. Without it the buffer stays the caller's and
/// must outlive the super-chunk, which copies it when it has to change it; see `blosc2_schunk_avoid_cframe_free`. Packed
/// super-chunks of 2015 to 2017 are always copied.
///
/// # Safety
///
/// `cframe` is NULL or readable for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_from_buffer(
    cframe: *mut u8,
    len: i64,
    copy: CBool,
) -> *mut blosc2_schunk {
    guard(|| {
        let data = NonNull::new(cframe).ok_or(Error::new(ErrorKind::NullPointer, "no frame"))?;
        let len = usize::try_from(len).ok().filter(|&len| isize::try_from(len).is_ok());
        let len = len.ok_or(Error::new(ErrorKind::InvalidParam, "length out of range"))?;
        // SAFETY: the caller's promise; the super-chunk only reads it.
        let buffer = unsafe { MallocBuf::borrow(data, len) };
        let place = |contiguous| storage::at(contiguous, ptr::null_mut(), ptr::null_mut());
        if buffer.get(2..10) != Some(MAGIC) && Packed::is_likely(&buffer, len as u64) {
            // SAFETY: there are no pointers in the place.
            return unsafe { SchunkHandle::adopt(Schunk::from_packed(&buffer)?, &place(false)) };
        }
        let frame = Schunk::from_buffer(buffer)?;
        if !copy.get() {
            // SAFETY: as above.
            return unsafe { SchunkHandle::adopt(frame, &place(true)) };
        }
        // The copy shows the block size of its chunks; its contexts go on with what the frame asks for.
        // SAFETY: as above.
        unsafe { SchunkHandle::adopt_with(frame.to_memory()?, frame.params(), &place(false)) }
    })
}

/// Says who releases the buffer of a frame in memory: with `avoid_cframe_free` the caller, after the super-chunk; without
/// it the super-chunk, also if the buffer came from the caller. Without such a frame it does nothing.
///
/// # Safety
///
/// `schunk` is NULL or valid and no other thread uses it. A buffer that is given away comes from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_avoid_cframe_free(
    schunk: *mut blosc2_schunk,
    avoid_cframe_free: CBool,
) {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { SchunkHandle::from_ptr(schunk) }?.avoid_cframe_free(avoid_cframe_free.get());
        Ok(())
    });
}

/// Opens the frame `urlpath`, a file or a directory; returns NULL on failure.
///
/// Files with a packed super-chunk of 2015 to 2017 are read into memory.
///
/// # Safety
///
/// `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open(urlpath: *const c_char) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { open(urlpath, 0, &blosc2_io::DEFAULTS) })
}

/// Opens the frame that starts at byte `offset` of the file `urlpath`; returns NULL on failure.
///
/// # Safety
///
/// `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open_offset(
    urlpath: *const c_char,
    offset: i64,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { open(urlpath, offset, &blosc2_io::DEFAULTS) })
}

/// Opens the frame `urlpath` with the I/O back-end `udio`; returns NULL on failure.
///
/// # Safety
///
/// `urlpath` is NULL or a string; `udio` is NULL or valid, and its parameters are those for the back-end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open_udio(
    urlpath: *const c_char,
    udio: *const blosc2_io,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { open(urlpath, 0, handle_ref(udio)?) })
}

/// Opens the frame that starts at byte `offset` of the file `urlpath` with the I/O back-end `udio`; returns NULL on
/// failure.
///
/// # Safety
///
/// As for `blosc2_schunk_open_udio`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_open_offset_udio(
    urlpath: *const c_char,
    offset: i64,
    udio: *const blosc2_io,
) -> *mut blosc2_schunk {
    // SAFETY: the caller's promise.
    guard(|| unsafe { open(urlpath, offset, handle_ref(udio)?) })
}

/// Opens a frame.
///
/// # Safety
///
/// `urlpath` is null or a string; the parameters of `udio` are those for the back-end.
pub(crate) unsafe fn open(
    urlpath: *const c_char,
    offset: i64,
    udio: &blosc2_io,
) -> Result<*mut blosc2_schunk> {
    require(!urlpath.is_null(), "no path")?;
    // SAFETY: the caller's promise.
    let path = storage::path_of(unsafe { CStr::from_ptr(urlpath) });
    let adopt = |opened: Schunk| {
        let mut io = *udio;
        let place = match opened.frame() {
            Some(frame) => storage::at(!frame.is_sparse(), urlpath.cast_mut(), &raw mut io),
            None => storage::at(false, ptr::null_mut(), ptr::null_mut()),
        };
        // SAFETY: the pointers are valid.
        unsafe { SchunkHandle::adopt(opened, &place) }
    };
    // Clients leave the parameters of a back-end to it, also if nothing can be opened.
    open_at(&path, offset, udio).and_then(adopt).inspect_err(|_| {
        // SAFETY: the caller's promise; nothing is open any more.
        unsafe { io::destroy(udio) };
    })
}

/// The super-chunk that starts at byte `offset` of `path`.
fn open_at(path: &Path, offset: i64, udio: &blosc2_io) -> Result<Schunk> {
    let offset = u64::try_from(offset).map_err(|_| Error::new(ErrorKind::InvalidParam, "negative offset"))?;
    let options = io_adapter::options(udio)?;
    let is_dir = std::fs::metadata(path).map(|meta| meta.is_dir());
    if !options.locking {
        ensure(is_dir.is_ok(), ErrorKind::FileOpen, "no such frame")?;
    }
    let may_be_packed = udio.id == BLOSC2_IO_FILESYSTEM && offset == 0 && is_dir.is_ok_and(|is_dir| !is_dir);
    Schunk::open(path, offset, &options).or_else(|e| {
        let packed = may_be_packed.then(|| Schunk::open_packed(path).ok()).flatten();
        packed.ok_or(e)
    })
}

/// Whether the super-chunk is a frame in memory whose bytes can be handed out as they are.
fn is_memory_frame(handle: &SchunkHandle, schunk: &Schunk) -> bool {
    // SAFETY: clients change the storage only while no other thread uses the handle.
    let storage = unsafe { (*handle.abi()).storage.as_ref() };
    storage.is_some_and(|storage| storage.contiguous.get() && storage.urlpath.is_null())
        && schunk.frame().is_some_and(|frame| !frame.is_on_disk())
}

/// The parameters in the header of a copy in a contiguous frame: those of contexts made for it, as to threads. `shown` is what
/// is copied of a view, whose blocks may be others than those of its base if there are none.
fn copy_params(handle: &SchunkHandle, shown: Option<&Schunk>) -> FrameParams {
    let own = context_cparams(handle);
    let without_blocks = shown.filter(|shown| shown.nchunks() == 0);
    let environment = Environment::read();
    FrameParams {
        typesize: own.typesize,
        blocksize: without_blocks.map_or(own.blocksize, |shown| shown.params_ref().blocksize),
        compcode: own.compcode,
        compcode_meta: own.compcode_meta,
        clevel: own.clevel,
        splitmode: own.splitmode.to_le_bytes()[0],
        use_dict: own.use_dict != 0,
        filters: own.filters,
        filters_meta: own.filters_meta,
        nthreads_c: environment.nthreads().unwrap_or(0),
        nthreads_d: environment.nthreads_to_decompress().unwrap_or(1),
    }
}

/// Stores the address of a contiguous frame with the content of the super-chunk in `*cframe`; returns its length, or a
/// negative code.
///
/// `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the super-chunk and stays
/// valid until that changes.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `cframe` and `needs_free` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_to_buffer(
    schunk: *mut blosc2_schunk,
    cframe: *mut *mut u8,
    needs_free: *mut CBool,
) -> i64 {
    guard(|| {
        let wanted = !cframe.is_null() && !needs_free.is_null();
        require(wanted, "nowhere to store the frame")?;
        // SAFETY: not null; writable by the caller's promise.
        unsafe {
            store(cframe, ptr::null_mut());
            store(needs_free, CBool::FALSE);
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        handle.adopt_layers(Used::All)?;
        handle.adopt_chunksize()?;
        let own = handle.as_own()?;
        let (start, len, owned) = handle.look(|schunk| {
            let schunk = own.as_ref().unwrap_or(schunk);
            if is_memory_frame(handle, schunk) {
                let bytes = schunk.frame().and_then(|frame| frame.buffer()).map(|buffer| &buffer[..]);
                let bytes = bytes.unwrap_or_default();
                return Ok((bytes.as_ptr().cast_mut(), bytes.len(), false));
            }
            let failed = |e: Error| Error::new(ErrorKind::SchunkCopy, e.what());
            let frame = schunk.to_frame(copy_params(handle, own.as_ref())).map_err(failed)?;
            let buffer = frame.into_buffer().map_err(|_| Error::new(ErrorKind::SchunkCopy, "no buffer"))?;
            show_last(handle, schunk);
            let (start, len) = buffer.into_raw();
            Ok((start, len, true))
        })?;
        // SAFETY: as above.
        unsafe {
            store(cframe, start);
            store(needs_free, owned.into());
        }
        i64::try_from(len).map_err(|_| Error::new(ErrorKind::SchunkCopy, "frame too large"))
    })
}

/// Writes a contiguous frame with the content of the super-chunk to the file `urlpath`; returns its length, or a negative
/// code.
///
/// A file that exists is replaced if the super-chunk is a contiguous frame in memory, otherwise that is an error. After a
/// failure it is as it was, unless the I/O back-end is one of the application, or the file has several names (hard links).
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_to_file(schunk: *mut blosc2_schunk, urlpath: *const c_char) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        write_frame(schunk, urlpath, storage::path_of, |schunk, path, params, options| {
            schunk.to_file(path, params, &*options.io)
        })
    }
}

/// Writes a contiguous frame with the content of the super-chunk behind what the file `urlpath` holds; returns the byte at
/// which it starts, for `blosc2_schunk_open_offset`, or a negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `urlpath` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_append_file(
    schunk: *mut blosc2_schunk,
    urlpath: *const c_char,
) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        write_frame(schunk, urlpath, storage::plain_path_of, |schunk, path, params, options| {
            schunk.append_file(path, params, options)
        })
    }
}

/// Writes to the file that `path_of` makes of `urlpath`. As in the C library, a leading `file:///` is part of the path in any
/// case if bytes that are a frame already are written.
///
/// # Safety
///
/// As for [`blosc2_schunk_to_file`].
unsafe fn write_frame(
    schunk: *mut blosc2_schunk,
    urlpath: *const c_char,
    path_of: fn(&CStr) -> PathBuf,
    write: impl FnOnce(&Schunk, &Path, FrameParams, &FrameOptions) -> Result<u64>,
) -> i64 {
    guard(|| {
        require(!urlpath.is_null(), "no path")?;
        // SAFETY: the caller's promise.
        let (handle, urlpath) = unsafe { (SchunkHandle::from_ptr(schunk)?, CStr::from_ptr(urlpath)) };
        // SAFETY: clients change the storage only while no other thread uses the handle.
        let io = unsafe { (*handle.abi()).storage.as_ref().and_then(|storage| storage.io.as_ref()) };
        let options = io_adapter::options(io.unwrap_or(&blosc2_io::DEFAULTS))?;
        handle.adopt_layers(Used::All)?;
        handle.adopt_chunksize()?;
        let own = handle.as_own()?;
        let params = copy_params(handle, own.as_ref());
        let len = handle.look(|schunk| {
            let schunk = own.as_ref().unwrap_or(schunk);
            let is_there = is_memory_frame(handle, schunk);
            let path_of = if is_there { storage::plain_path_of } else { path_of };
            let written = write(schunk, &path_of(urlpath), params, &options)?;
            if !is_there {
                show_last(handle, schunk);
            }
            Ok(written)
        })?;
        i64::try_from(len).map_err(|_| Error::new(ErrorKind::FileWrite, "frame too large"))
    })
}

/// Releases a super-chunk, its contexts included. What is on disk stays. NULL is ignored.
///
/// Returns 0, or 1 if the I/O back-end reported a failure; everything is released all the same.
///
/// # Safety
///
/// `schunk` is NULL or valid and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_free(schunk: *mut blosc2_schunk) -> c_int {
    // SAFETY: the caller's promise.
    guard_or(1, || Ok(unsafe { schunk_handle::free(schunk) }))
}

/// Stores a copy of the compression parameters, which the caller releases with `free()`, in `*cparams`; returns 0, or a
/// negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `cparams` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_cparams(
    schunk: *mut blosc2_schunk,
    cparams: *mut *mut blosc2_cparams,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { SchunkHandle::from_ptr(schunk) }?;
        require(!cparams.is_null(), "nowhere to store the parameters")?;
        // SAFETY: clients replace contexts only while no other thread uses the handle.
        let context = unsafe { Context::shared((*schunk).cctx) };
        let copy = blosc2_cparams {
            // SAFETY: the field is assigned only while no other thread uses the handle.
            use_dict: c_int::from(unsafe { (*schunk).use_dict }),
            nthreads: context.map_or_else(|_| super::blosc1::blosc2_get_nthreads(), Context::nthreads),
            schunk: schunk.cast(),
            ..frame_cparams(&handle.params())
        };
        // SAFETY: not null; writable by the caller's promise.
        unsafe { cparams.write(c_array(&[copy])?) };
        Ok(0)
    })
}

/// Stores a copy of the decompression parameters, which the caller releases with `free()`, in `*dparams`; returns 0, or a
/// negative code.
///
/// # Safety
///
/// `schunk` is NULL or valid and not being changed; `dparams` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_schunk_get_dparams(
    schunk: *mut blosc2_schunk,
    dparams: *mut *mut blosc2_dparams,
) -> c_int {
    guard(|| {
        require(!schunk.is_null(), "no super-chunk")?;
        require(!dparams.is_null(), "nowhere to store the parameters")?;
        // SAFETY: clients replace contexts only while no other thread uses the handle.
        let context = unsafe { Context::shared((*schunk).dctx) };
        let nthreads = context.map_or_else(|_| super::blosc1::blosc2_get_nthreads(), Context::nthreads);
        let copy =
            blosc2_dparams { nthreads, schunk: schunk.cast(), typesize: 0, ..blosc2_dparams::DEFAULTS };
        // SAFETY: not null; writable by the caller's promise.
        unsafe { dparams.write(c_array(&[copy])?) };
        Ok(0)
    })
}
