//! Plugins: codecs, filters and tuners in shared libraries of their own, loaded when they are first needed.
//!
//! A registered codec, filter or tuner that lacks a function is a plugin. Its library is `libblosc2_<name>.so`, and is
//! looked for, in this order:
//!
//! 1. in the directories of the environment variable `BLOSC2_PLUGIN_PATH` (absolute, separated as in `PATH`), there
//!    also in `blosc2_<name>/` as Python packages are laid out, so that a `site-packages` directory will do;
//! 2. where the system's loader looks;
//! 3. where the Python package `blosc2_<name>` of the `python` or `python3` in `PATH` says.
//!
//! A library exports a structure `info` with the names of its functions. It can call the functions of this library,
//! even when this one was loaded for the use of one client alone.
//!
//! A chunk names its codec, so data from outside may cause a plugin to be loaded, but only one whose name is
//! registered. If the environment variable `BLOSC2_NO_PLUGINS` exists, none is loaded; without the cargo feature
//! `plugins`, there is no loader. Programs with the privileges of another user take plugins from the system's loader
//! only. Python is started without a shell, away from the current directory, and for a limited time. What was found is
//! remembered. That something was not found is remembered until the library is initialised again, unless the search
//! ended for lack of memory.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::NonNull;
use std::thread;
use std::time::{Duration, Instant};

use super::callbacks::CCodec;
use super::trace;
use super::types::{blosc2_codec, blosc2_cparams, blosc2_dparams, blosc2_tuner};
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
/// The time between two looks whether that thread is done.
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

    /// No library was found.
    fn missing(self) -> Error {
        self.failure("the plugin cannot be loaded")
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

/// The functions of a plugin, in the order of its `info`; those beyond the last are dangling.
type Functions = [NonNull<c_void>; MAX_FUNCTIONS];

/// The outcome of an earlier search.
struct Known {
    kind: Kind,
    name: Vec<u8>,
    /// `None` if there is no library that has them all.
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

/// The outcome of an earlier search for a plugin; `None` if there was no such search.
fn recall(kind: Kind, name: &CStr) -> Option<Result<Functions>> {
    let known = KNOWN.lock();
    let found = known.iter().find(|known| known.kind == kind && known.name == name.to_bytes())?;
    Some(found.functions.ok_or(kind.missing()))
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
    if let Some(outcome) = recall(kind, name) {
        return outcome;
    }
    if !cfg!(feature = "plugins") || std::env::var_os("BLOSC2_NO_PLUGINS").is_some() {
        return Err(kind.failure("plugins are switched off"));
    }
    if !is_plugin_name(name.to_bytes()) {
        return Err(kind.failure("not a name for a plugin"));
    }
    let turn = Turn::wait().ok_or(kind.failure("another plugin takes too long to load"))?;
    if let Some(outcome) = recall(kind, name) {
        return outcome;
    }
    let functions = cancel::deferred(|| find(kind, name))?;
    if functions.is_none() {
        trace::message(&format!("no plugin {name:?} was found"));
    }
    let name = memory::copy_of(name.to_bytes())?;
    memory::push(&mut KNOWN.lock(), Known { kind, name, functions })?;
    drop(turn);
    functions.ok_or(kind.missing())
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
    let mut functions: Functions = [NonNull::dangling(); MAX_FUNCTIONS];
    for (i, function) in functions[..kind.nfunctions()].iter_mut().enumerate() {
        // SAFETY: by the contract of plugins, `info` is an array of this many names.
        let name = unsafe { info.add(i).read() };
        if name.is_null() {
            return None;
        }
        // SAFETY: as above.
        *function = library.symbol(unsafe { CStr::from_ptr(name) })?;
    }
    Some(functions)
}

/// What a [`blosc2_codec_encoder_cb`](super::types::blosc2_codec_encoder_cb) is, unless it is null.
type Encode =
    unsafe extern "C" fn(*const u8, i32, *mut u8, i32, u8, *mut blosc2_cparams, *const c_void) -> c_int;
/// What a [`blosc2_codec_decoder_cb`](super::types::blosc2_codec_decoder_cb) is, unless it is null.
type Decode =
    unsafe extern "C" fn(*const u8, i32, *mut u8, i32, u8, *mut blosc2_dparams, *const c_void) -> c_int;
/// What a [`blosc2_filter_forward_cb`](super::types::blosc2_filter_forward_cb) is, unless it is null.
type Forward = unsafe extern "C" fn(*const u8, *mut u8, i32, u8, *mut blosc2_cparams, u8) -> c_int;
/// What a [`blosc2_filter_backward_cb`](super::types::blosc2_filter_backward_cb) is, unless it is null.
type Backward = unsafe extern "C" fn(*const u8, *mut u8, i32, u8, *mut blosc2_dparams, u8) -> c_int;

/// The functions of a codec plugin, which has them all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodecFunctions {
    pub(crate) encode: Encode,
    pub(crate) decode: Decode,
}

/// The functions of a filter plugin, which has them all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterFunctions {
    pub(crate) forward: Forward,
    pub(crate) backward: Backward,
}

/// The functions of the codec plugin `name`.
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
    let [encode, decode, ..] = unsafe { load(Kind::Codec, name) }?;
    // SAFETY: by the contract of plugins, these are functions of these types.
    Ok(unsafe {
        CodecFunctions {
            encode: transmute::<NonNull<c_void>, Encode>(encode),
            decode: transmute::<NonNull<c_void>, Decode>(decode),
        }
    })
}

/// The functions of the filter plugin `name`.
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
        FilterFunctions {
            forward: transmute::<NonNull<c_void>, Forward>(forward),
            backward: transmute::<NonNull<c_void>, Backward>(backward),
        }
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
