//! Plugins: codecs, filters and tuners in shared libraries of their own, loaded when they are first needed.
//!
//! A registered codec, filter or tuner that lacks a function is a plugin. Its library is `libblosc2_<name>.so`, and is
//! looked for, in this order:
//!
//! 1. in the directories of the environment variable `BLOSC2_PLUGIN_PATH` (absolute, separated as in `PATH`), there also
//!    in `blosc2_<name>/` as Python packages are laid out, so that a `site-packages` directory will do;
//! 2. where the system's loader looks;
//! 3. where the Python package `blosc2_<name>` of the `python` or `python3` in `PATH` says.
//!
//! A library exports a structure `info` with the names of its functions. It can call the functions of this library,
//! even when this one was loaded for the use of one client alone.
//!
//! Data from outside choose the codec, and so they may cause a plugin to be loaded, though only one that is registered
//! by name. If `BLOSC2_NO_PLUGINS` exists, none is loaded, and the cargo feature `plugins` removes the loader. Programs
//! with the privileges of another user take plugins from the system's loader only. Python is started without a shell,
//! away from the current directory, and for a limited time. What was found, or not, is remembered until the library is
//! initialised again; but not a search that ended for lack of memory.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::thread;
use std::time::{Duration, Instant};

use super::callbacks::CCodec;
use super::trace;
use super::types::{
    blosc2_codec, blosc2_codec_decoder_cb, blosc2_codec_encoder_cb, blosc2_filter_backward_cb,
    blosc2_filter_forward_cb, blosc2_tuner,
};
use crate::cancel;
use crate::codecs::registry::{self, CodecEntry};
use crate::error::{Error, ErrorKind, Result};
use crate::fork::{self, Global};
use crate::memory;

#[cfg(unix)]
mod dl;
#[cfg(unix)]
mod search;

/// The codecs that the library knows by name only.
const CODECS: [(u8, &CStr); 5] =
    [(36, c"openhtj2k"), (37, c"grok"), (38, c"openzl"), (39, c"j2k"), (40, c"htj2k")];

/// The tuner that the library knows by name only.
pub(crate) const BTUNE: blosc2_tuner = blosc2_tuner {
    init: None,
    next_blocksize: None,
    next_cparams: None,
    update: None,
    free: None,
    id: 32,
    name: c"btune".as_ptr().cast_mut(),
};

/// Longest wait for a plugin that another thread is loading.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often who waits looks whether it is done.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Most functions of a plugin: those of a tuner.
const MAX_FUNCTIONS: usize = 5;

/// What a plugin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Codec,
    Filter,
    Tuner,
}

impl Kind {
    /// The number of names in the plugin's `info`.
    #[cfg(unix)]
    fn nfunctions(self) -> usize {
        match self {
            Kind::Codec | Kind::Filter => 2,
            Kind::Tuner => MAX_FUNCTIONS,
        }
    }

    fn failure(self, what: &'static str) -> Error {
        let kind = match self {
            Kind::Codec => ErrorKind::CodecSupport,
            Kind::Filter => ErrorKind::FilterPipeline,
            Kind::Tuner => ErrorKind::Failure,
        };
        Error::new(kind, what)
    }
}

/// The functions of a plugin, in the order of its `info`; null beyond the last.
type Functions = [*const c_void; MAX_FUNCTIONS];

/// The outcome of an earlier search.
struct Known {
    kind: Kind,
    name: Vec<u8>,
    functions: Option<Functions>,
}

// SAFETY: the addresses are of functions, in libraries that are never unloaded.
unsafe impl Send for Known {}

/// What was looked for, whether it was found or not.
static KNOWN: Global<Vec<Known>> = Global::new(Vec::new());

/// Whether a thread is looking for a plugin: then the number of forks up to its process.
static LOADING: Global<Option<u64>> = Global::new(None);

/// The turn of a thread to look for a plugin. It is no lock, since loading may take long and may `fork`.
struct Turn;

impl Turn {
    /// Waits for the turn, but not for ever: a plugin may need another one while it is being loaded. A thread of the
    /// process before a `fork` is not waited for.
    fn wait() -> Option<Turn> {
        let start = Instant::now();
        loop {
            let mut loading = LOADING.lock();
            if *loading != Some(fork::count()) {
                *loading = Some(fork::count());
                return Some(Turn);
            }
            drop(loading);
            if start.elapsed() > PATIENCE {
                return None;
            }
            cancel::deferred(|| thread::sleep(LOOK_AGAIN));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *LOADING.lock() = None;
    }
}

/// Makes the codecs that are plugins known to the registry.
pub(crate) fn define_codecs() {
    registry::define_plugins(|| {
        let entry = |(id, name): (u8, &'static CStr)| {
            let functions = blosc2_codec {
                compcode: id,
                compname: name.as_ptr().cast_mut(),
                complib: id,
                version: 1,
                encoder: None,
                decoder: None,
            };
            CodecEntry { id, name: Some(name), complib: id, version: 1, codec: Box::new(CCodec(functions)) }
        };
        CODECS.into_iter().map(entry).collect()
    });
}

/// Lets plugins that were not found be looked for again.
pub(crate) fn forget_failures() {
    KNOWN.lock().retain(|known| known.functions.is_some());
}

/// Whether `name` may become part of a file name and of a Python statement.
fn is_plugin_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn recall(kind: Kind, name: &CStr) -> Option<Option<Functions>> {
    let known = KNOWN.lock();
    let found = known.iter().find(|known| known.kind == kind && known.name == name.to_bytes());
    found.map(|known| known.functions)
}

/// The functions of the plugin `name`, which is loaded if it was not yet.
///
/// # Errors
///
/// That of its kind if it cannot be loaded, `MemoryAlloc`.
///
/// # Safety
///
/// `name` is null or a string.
unsafe fn load(kind: Kind, name: *const c_char) -> Result<Functions> {
    if name.is_null() {
        return Err(kind.failure("a plugin without name"));
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let missing = kind.failure("the plugin cannot be loaded");
    if let Some(functions) = recall(kind, name) {
        return functions.ok_or(missing);
    }
    if !cfg!(feature = "plugins") || std::env::var_os("BLOSC2_NO_PLUGINS").is_some() {
        return Err(kind.failure("plugins are switched off"));
    }
    if !is_plugin_name(name.to_bytes()) {
        return Err(kind.failure("not a name for a plugin"));
    }
    let turn = Turn::wait().ok_or(kind.failure("another plugin takes too long to load"))?;
    if let Some(functions) = recall(kind, name) {
        return functions.ok_or(missing);
    }
    let functions = cancel::deferred_foreign(|| find(kind, name))?;
    if functions.is_none() {
        trace::message(&format!("no plugin {name:?} was found"));
    }
    let name = memory::copy_of(name.to_bytes())?;
    memory::push(&mut KNOWN.lock(), Known { kind, name, functions })?;
    drop(turn);
    functions.ok_or(missing)
}

/// The functions of the first library that has them all.
///
/// # Errors
///
/// `MemoryAlloc`.
#[cfg(unix)]
fn find(kind: Kind, name: &CStr) -> Result<Option<Functions>> {
    let Ok(name) = name.to_str() else { return Ok(None) };
    dl::publish_own_symbols();
    search::libraries(name, &|path| {
        Ok(dl::Library::open(path)?.and_then(|library| functions_of(&library, kind)))
    })
}

#[cfg(not(unix))]
fn find(_: Kind, _: &CStr) -> Result<Option<Functions>> {
    Ok(None)
}

/// The functions that `library` exports for plugins of this kind, if it has them all.
#[cfg(unix)]
fn functions_of(library: &dl::Library, kind: Kind) -> Option<Functions> {
    let info = library.symbol(c"info")?.cast::<*const c_char>();
    let mut functions: Functions = [std::ptr::null(); MAX_FUNCTIONS];
    for (i, function) in functions[..kind.nfunctions()].iter_mut().enumerate() {
        // SAFETY: by the contract of plugins, `info` is an array of this many names.
        let name = unsafe { info.add(i).read() };
        if name.is_null() {
            return None;
        }
        // SAFETY: as above.
        *function = library.symbol(unsafe { CStr::from_ptr(name) })?.as_ptr();
    }
    Some(functions)
}

/// The encoder and the decoder of a codec.
type CodecFunctions = (blosc2_codec_encoder_cb, blosc2_codec_decoder_cb);
/// The two directions of a filter.
type FilterFunctions = (blosc2_filter_forward_cb, blosc2_filter_backward_cb);

/// The encoder and the decoder of the codec plugin `name`.
///
/// # Safety
///
/// `name` is null or a string.
///
/// # Errors
///
/// `CodecSupport` if it cannot be loaded, `MemoryAlloc`.
pub(crate) unsafe fn codec(name: *const c_char) -> Result<CodecFunctions> {
    // SAFETY: the caller's promise.
    let [encoder, decoder, ..] = unsafe { load(Kind::Codec, name) }?;
    // SAFETY: by the contract of plugins, these are functions of these types.
    Ok(unsafe {
        (
            transmute::<*const c_void, blosc2_codec_encoder_cb>(encoder),
            transmute::<*const c_void, blosc2_codec_decoder_cb>(decoder),
        )
    })
}

/// The forward and the backward function of the filter plugin `name`.
///
/// # Safety
///
/// `name` is null or a string.
///
/// # Errors
///
/// `FilterPipeline` if it cannot be loaded, `MemoryAlloc`.
pub(crate) unsafe fn filter(name: *const c_char) -> Result<FilterFunctions> {
    // SAFETY: the caller's promise.
    let [forward, backward, ..] = unsafe { load(Kind::Filter, name) }?;
    // SAFETY: by the contract of plugins, these are functions of these types.
    Ok(unsafe {
        (
            transmute::<*const c_void, blosc2_filter_forward_cb>(forward),
            transmute::<*const c_void, blosc2_filter_backward_cb>(backward),
        )
    })
}

/// `tuner` with the functions of its plugin.
///
/// # Safety
///
/// The name of the tuner is null or a string.
///
/// # Errors
///
/// `Failure` if it cannot be loaded, `MemoryAlloc`.
#[allow(clippy::missing_transmute_annotations)] // the fields have these types
pub(crate) unsafe fn tuner(tuner: &blosc2_tuner) -> Result<blosc2_tuner> {
    // SAFETY: the caller's promise.
    let [init, next_blocksize, next_cparams, update, free] = unsafe { load(Kind::Tuner, tuner.name) }?;
    // SAFETY: by the contract of plugins, these are functions of the types of the fields.
    Ok(unsafe {
        blosc2_tuner {
            init: transmute(init),
            next_blocksize: transmute(next_blocksize),
            next_cparams: transmute(next_cparams),
            update: transmute(update),
            free: transmute(free),
            id: tuner.id,
            name: tuner.name,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn only_plain_names_are_looked_for() {
        for name in ["grok", "a_1", "X"] {
            assert!(is_plugin_name(name.as_bytes()), "{name}");
        }
        for name in ["", "../x", "a b", "a;b", "a-b", "a.b", "é", "a\n"] {
            assert!(!is_plugin_name(name.as_bytes()), "{name:?}");
        }
    }

    #[test]
    fn missing_plugins_have_the_code_of_their_kind() {
        let name = c"no_such_plugin/".as_ptr();
        // SAFETY: the names are strings.
        unsafe {
            assert_eq!(codec(name).unwrap_err().code(), ErrorKind::CodecSupport as i32);
            assert_eq!(filter(name).unwrap_err().code(), ErrorKind::FilterPipeline as i32);
            assert_eq!(filter(ptr::null()).unwrap_err().code(), ErrorKind::FilterPipeline as i32);
            let nameless = blosc2_tuner { name: ptr::null_mut(), ..BTUNE };
            assert_eq!(tuner(&nameless).unwrap_err().code(), ErrorKind::Failure as i32);
        }
    }

    #[test]
    fn plugin_codecs_are_known_by_name() {
        define_codecs();
        for (id, name) in CODECS {
            assert_eq!(registry::find(id).expect("registered").name, Some(name));
            assert_eq!(registry::find_by_name(name).expect("registered").id, id);
        }
    }
}
