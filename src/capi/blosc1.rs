//! Exported functions that work with process-wide state: the Blosc1 API and its successors, initialisation, settings.
//!
//! The state is a handful of settings behind a lock, which is held only while they are read or changed; compression and
//! decompression run outside of it.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::callbacks::UserThreads;
use super::chunk::{basic_header, check_room, chunk_and_dest, chunk_dest, chunk_source};
use super::context::Backend;
use super::environment::{Compressor, Environment, NO_CODEC};
use super::guard::{guard, guard_count, guard_or};
use super::plugins;
use super::ptr::{c_str, in_bytes, out_bytes};
use super::trace;
use super::tuner;
use super::types::blosc_threads_callback;
use crate::chunk::{self, CParams, Decoding, Encoding, Source, Unit};
use crate::codecs::names::{BuiltIn, Known};
use crate::codecs::registry as codec_registry;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::filters::registry as filter_registry;
use crate::fork::{Global, Guard};
use crate::format::chunk_header::BasicHeader;
use crate::format::consts::{DELTA_SLOT, MAX_FILTERS, SHUFFLE_SLOT, codec, filter, split};
use crate::pool::{self, Pool};

/// The process-wide settings.
struct Settings {
    initialised: bool,
    /// Whether `blosc2_destroy` ran, so that the next initialisation forgets registrations.
    destroyed: bool,
    compressor: u8,
    delta: bool,
    splitmode: i32,
    nthreads: i16,
    /// 0 means automatic.
    blocksize: usize,
    pool: Option<Arc<Pool>>,
}

static SETTINGS: Global<Settings> = Global::outer(Settings {
    initialised: false,
    destroyed: false,
    compressor: codec::BLOSCLZ,
    delta: false,
    splitmode: split::FORWARD_COMPAT,
    nthreads: 1,
    blocksize: 0,
    pool: None,
});

/// The settings, initialised.
fn global() -> Guard<Settings> {
    let mut global = SETTINGS.lock();
    global.initialise();
    global
}

/// The number of threads of the functions without context.
pub(crate) fn nthreads() -> i16 {
    global().nthreads
}

impl Settings {
    fn initialise(&mut self) {
        if self.initialised {
            return;
        }
        self.initialised = true;
        if std::mem::take(&mut self.destroyed) {
            codec_registry::clear();
            filter_registry::clear();
            tuner::clear();
            plugins::forget_failures();
        }
    }

    /// Applies the variables that change the settings for good.
    fn apply(&mut self, env: &Environment) {
        if let Some(delta) = env.delta {
            self.delta = delta;
        }
        if let Some(Compressor::BuiltIn(code)) = env.compressor {
            self.compressor = code;
        }
        if let Some(blocksize) = env.blocksize().and_then(|size| usize::try_from(size).ok()) {
            self.blocksize = blocksize;
        }
        if let Some(nthreads) = env.nthreads() {
            self.nthreads = nthreads;
        }
        if let Some(splitmode) = env.splitmode {
            self.splitmode = splitmode;
        }
    }
}

/// The threads for one operation with `nthreads` threads; `kept` is the pool of the settings. Ending a pool that is of
/// no use any more takes its time, so the settings are not locked meanwhile.
fn attach(nthreads: i16, kept: Option<Arc<Pool>>) -> Backend {
    let known = kept.as_ref().map(Arc::as_ptr);
    let backend = Backend::attach(nthreads, kept);
    let pool = match &backend {
        Backend::Pool(pool) => Some(Arc::clone(pool)),
        Backend::Serial | Backend::Callback(_) => None,
    };
    if pool.as_ref().map(Arc::as_ptr) != known {
        let old = std::mem::replace(&mut SETTINGS.lock().pool, pool);
        drop(old);
    }
    backend
}

/// What [`blosc2_init`] does.
pub(crate) fn initialise() {
    drop(global());
}

/// Initialises the library. Calling it is optional, and calling it more than once does nothing.
///
/// After `blosc2_destroy` it forgets the codecs, filters and tuners that were registered before.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_init() {
    guard(|| {
        initialise();
        Ok(())
    });
}

/// Ends the library's threads, and releases memory that was kept for later calls. One call undoes any number of calls
/// of `blosc2_init`; contexts that are still alive can be used and released all the same.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_destroy() {
    guard(|| {
        let pool = {
            let mut global = SETTINGS.lock();
            // What works without `blosc2_init` keeps memory, too.
            global.destroyed |= std::mem::take(&mut global.initialised);
            global.pool.take()
        };
        drop(pool);
        pool::shut_down_all();
        crate::io::spare::free_all();
        super::schunk_handle::spare::free_all();
        crate::schunk::scratch::free_large();
        crate::chunk::scratch::free_large();
        Ok(())
    });
}

/// Releases the threads of the functions without context; they come back on demand. Returns 0, or -1 if the library is
/// not initialised.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_free_resources() -> c_int {
    guard(|| {
        let pool = {
            let mut global = SETTINGS.lock();
            ensure(global.initialised, ErrorKind::Failure, "the library is not initialised")?;
            global.pool.take()
        };
        drop(pool);
        Ok(0)
    })
}

/// What one global compression uses.
struct Request {
    params: CParams,
    backend: Backend,
    nthreads: i16,
    blosc1_header: bool,
}

/// Puts together the parameters of a global compression of `nbytes` bytes: arguments, settings and environment.
///
/// # Errors
///
/// `NullPointer` where the C library cannot make its temporary context.
fn request(clevel: c_int, doshuffle: c_int, typesize: i32, nbytes: usize) -> Result<Request> {
    let env = Environment::read();
    let mut global = global();
    global.apply(&env);
    let Settings { compressor, delta, splitmode, nthreads, blocksize, .. } = *global;
    let pool = global.pool.clone();
    drop(global);
    let backend = attach(nthreads, pool);
    let no_context = env.nolock && env.compressor == Some(Compressor::Registered);
    ensure(!no_context, ErrorKind::NullPointer, "BLOSC_COMPRESSOR names a registered codec")?;
    let typesize = env.typesize().unwrap_or(typesize);
    let env_blocksize = env.blocksize().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let shuffle = env.shuffle.unwrap_or(match doshuffle {
        0 => filter::NONE,
        1 => filter::SHUFFLE,
        2 => filter::BITSHUFFLE,
        // Without the lock it changes the defaults of contexts, and what nobody knows changes nothing.
        _ if env.nolock => filter::SHUFFLE,
        _ => filter::NONE,
    });
    let mut filters = [filter::NONE; MAX_FILTERS];
    filters[SHUFFLE_SLOT] = match shuffle {
        filter::SHUFFLE if typesize <= 1 && !env.nolock => filter::NONE,
        id => id,
    };
    if delta {
        filters[DELTA_SLOT] = filter::DELTA;
    }
    let params = CParams {
        // A name that no codec has spoils this call, and not the setting.
        compcode: if env.compressor == Some(Compressor::Unknown) { NO_CODEC } else { i32::from(compressor) },
        clevel: u8::try_from(env.clevel().unwrap_or(clevel)).unwrap_or(u8::MAX),
        typesize: usize::try_from(typesize).unwrap_or(0),
        // Without the lock, the setting does not count; the variable does all the same.
        blocksize: if env.nolock { env_blocksize } else { blocksize },
        splitmode,
        filters,
        ..CParams::default()
    };
    trace::compression_if(env.info, &params, nbytes);
    Ok(Request { params, backend, nthreads, blosc1_header: env.blosc1_compat && !env.nolock })
}

/// Compresses with the settings of the process.
fn compress(
    clevel: c_int,
    doshuffle: c_int,
    typesize: i32,
    source: Source<'_>,
    dest: &mut [u8],
) -> Result<usize> {
    let request = request(clevel, doshuffle, typesize, source.nbytes())?;
    let missing = matches!(source, Source::Generated(1..));
    ensure(!missing, ErrorKind::NullPointer, "no source")?;
    let enc = Encoding {
        threads: request.backend.threads(request.nthreads),
        blosc1_header: request.blosc1_header,
        ..Encoding::new(&request.params)
    };
    Ok(chunk::compress_with(&enc, source, dest)?.cbytes)
}

/// Compresses `srcsize` bytes at `src` into `dest` with the settings of the process.
///
/// `doshuffle` is 0 (no filter), 1 (byte shuffle) or 2 (bit shuffle). Environment variables override arguments and
/// settings. Returns the size of the chunk, 0 if it does not fit (`srcsize + BLOSC2_MAX_OVERHEAD` bytes always do), or
/// a negative code.
///
/// # Safety
///
/// `src` is readable for `srcsize` bytes and `dest` writable for `destsize`; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_compress(
    clevel: c_int,
    doshuffle: c_int,
    typesize: i32,
    src: *const c_void,
    srcsize: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let dest = unsafe { chunk_dest(dest, destsize) }?;
        // SAFETY: the caller's promise.
        let source = unsafe { chunk_source(src, srcsize) }?;
        compress(clevel, doshuffle, typesize, source, dest)
    })
}

/// As `blosc2_compress`, with sizes as `size_t`.
///
/// # Safety
///
/// As for `blosc2_compress`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc1_compress(
    clevel: c_int,
    doshuffle: c_int,
    typesize: usize,
    nbytes: usize,
    src: *const c_void,
    dest: *mut c_void,
    destsize: usize,
) -> c_int {
    guard_count(|| {
        let large = |_| Error::new(ErrorKind::MaxBufsizeExceeded, "buffer above 2 GiB");
        let srcsize = i32::try_from(nbytes).map_err(large)?;
        // SAFETY: the caller's promise.
        let source = unsafe { chunk_source(src, srcsize) }?;
        // SAFETY: the caller's promise; no chunk needs more than 2 GiB.
        let dest = unsafe { chunk_dest(dest, i32::try_from(destsize).unwrap_or(i32::MAX)) }?;
        compress(clevel, doshuffle, i32::try_from(typesize).unwrap_or(i32::MAX), source, dest)
    })
}

/// The bytes of a chunk whose size only its header tells.
///
/// # Safety
///
/// `src` is null or points to a whole chunk.
unsafe fn whole_chunk<'a>(src: *const c_void) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    let header = unsafe { basic_header(src) }?;
    // SAFETY: the caller's promise.
    unsafe { in_bytes(src, header.cbytes) }
}

/// Decompresses with the settings of the process.
fn decompress(chunk: &[u8], dest: &mut [u8]) -> Result<usize> {
    let env = Environment::read();
    let nthreads = env.strict_nthreads()?;
    let mut global = global();
    global.nthreads = nthreads.unwrap_or(global.nthreads);
    let (nthreads, pool) = (global.nthreads, global.pool.clone());
    drop(global);
    let backend = attach(nthreads, pool);
    let dec = Decoding { threads: backend.threads(nthreads), ..Decoding::default() };
    chunk::decompress_with(&dec, chunk, None, dest)
}

/// Decompresses items in the calling thread.
fn getitem(chunk: &[u8], start: c_int, nitems: c_int, dest: &mut [u8]) -> Result<usize> {
    chunk::getitem(&Decoding::default(), chunk, Unit::Items, start, nitems, dest)
}

/// Decompresses the chunk `src` into `dest`; returns the bytes written, or a negative code.
///
/// # Safety
///
/// `src` is readable for `srcsize` bytes and `dest` writable for `destsize`; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_decompress(
    src: *const c_void,
    srcsize: i32,
    dest: *mut c_void,
    destsize: i32,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let (chunk, dest) = unsafe { chunk_and_dest(src, srcsize, dest, destsize) };
        let nbytes = decompress(chunk, dest)?;
        check_room(destsize)?;
        Ok(nbytes)
    })
}

/// As `blosc2_decompress`, trusting the header of the chunk for its size.
///
/// # Safety
///
/// `src` points to a whole chunk, and `dest` is writable for `destsize` bytes; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc1_decompress(src: *const c_void, dest: *mut c_void, destsize: usize) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let chunk = unsafe { whole_chunk(src) }?;
        // SAFETY: the caller's promise; no chunk holds more than 2 GiB.
        let dest = unsafe { out_bytes(dest, i32::try_from(destsize).unwrap_or(i32::MAX)) }?;
        decompress(chunk, dest)
    })
}

/// Decompresses `nitems` items of the chunk `src`, from item `start` on; returns the bytes written, or a negative code.
///
/// # Safety
///
/// `src` is readable for `srcsize` bytes and `dest` writable for `destsize`; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_getitem(
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
        getitem(chunk, start, nitems, dest)
    })
}

/// As `blosc2_getitem`, trusting the header of the chunk for its size, and `dest` to be large enough.
///
/// # Safety
///
/// `src` points to a whole chunk, and `dest` is writable for `nitems` items; the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc1_getitem(
    src: *const c_void,
    start: c_int,
    nitems: c_int,
    dest: *mut c_void,
) -> c_int {
    guard_count(|| {
        // SAFETY: the caller's promise.
        let chunk = unsafe { whole_chunk(src) }?;
        let typesize = i64::from(BasicHeader::read(chunk)?.typesize);
        let wanted = i64::from(nitems).saturating_mul(typesize).clamp(0, i64::from(i32::MAX));
        // SAFETY: the caller's promise; more than these bytes are never written.
        let dest = unsafe { out_bytes(dest, wanted) }?;
        getitem(chunk, start, nitems, dest)
    })
}

/// The number of threads of the functions without context.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_nthreads() -> i16 {
    guard(|| Ok(nthreads()))
}

/// Sets the number of threads of the functions without context, at least 1; returns the previous one, or a negative
/// code.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_set_nthreads(nthreads: i16) -> i16 {
    guard(|| {
        let mut global = global();
        require(nthreads > 0, "number of threads below 1")?;
        Ok(std::mem::replace(&mut global.nthreads, nthreads))
    })
}

/// Lets the application run the parallel parts of all operations; NULL goes back to the library's own threads.
///
/// # Safety
///
/// `callback` fulfils its contract from now on, from any thread, with `callback_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_set_threads_callback(
    callback: blosc_threads_callback,
    callback_data: *mut c_void,
) {
    guard(|| {
        UserThreads::install(callback, callback_data);
        Ok(())
    });
}

/// The name of the codec that the functions without context use.
#[unsafe(no_mangle)]
pub extern "C" fn blosc1_get_compressor() -> *const c_char {
    guard(|| {
        let codec = BuiltIn::with_code(global().compressor);
        Ok(codec.map_or(std::ptr::null(), |codec| codec.name.as_ptr()))
    })
}

/// Chooses the codec of the functions without context; returns its code, or a negative one for names that they cannot
/// use. Then the codec stays what it was.
///
/// # Safety
///
/// `compname` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc1_set_compressor(compname: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { c_str(compname) }?;
        let mut global = global();
        let kind = match Known::with_name(name) {
            Some(Known::BuiltIn(codec)) => {
                global.compressor = codec.code;
                return Ok(c_int::from(codec.code));
            }
            Some(Known::Registered(_)) => ErrorKind::CodecSupport,
            None => ErrorKind::Failure,
        };
        Err(Error::new(kind, "not a codec for the functions without context"))
    })
}

/// Switches the delta filter of the functions without context on or off.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_set_delta(dodelta: c_int) {
    guard(|| {
        global().delta = dodelta != 0;
        Ok(())
    });
}

/// The block size set with `blosc1_set_blocksize`; 0 means automatic.
#[unsafe(no_mangle)]
pub extern "C" fn blosc1_get_blocksize() -> c_int {
    guard_or(0, || Ok(c_int::try_from(global().blocksize).unwrap_or(c_int::MAX)))
}

/// Forces a block size, in bytes, on the functions without context; 0 makes it automatic again.
#[unsafe(no_mangle)]
pub extern "C" fn blosc1_set_blocksize(blocksize: usize) {
    guard(|| {
        global().blocksize = blocksize;
        Ok(())
    });
}

/// Sets the split mode of the functions without context, one of `BLOSC_ALWAYS_SPLIT` and its like.
#[unsafe(no_mangle)]
pub extern "C" fn blosc1_set_splitmode(splitmode: c_int) {
    guard(|| {
        global().splitmode = splitmode;
        Ok(())
    });
}
