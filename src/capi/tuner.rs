//! Tuners: callbacks that choose parameters before each compression and learn from it.

use std::ffi::c_int;
use std::ptr;

use super::callbacks::call_back;
use super::context::Context;
use super::plugins;
use super::ptr::same_name;
use super::types::{blosc2_context, blosc2_tuner};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::fork::Global;
use crate::memory;

/// First id that applications may register.
const FIRST_USER: c_int = 160;
/// Most tuners that applications may register: 255 less the library's own.
const MAX_ENTRIES: usize = 254;

/// A registered tuner.
#[derive(Clone, Copy)]
struct Entry(blosc2_tuner);

// SAFETY: function pointers, and a name that the client keeps alive.
unsafe impl Send for Entry {}

/// The tuners of the application.
static TUNERS: Global<Vec<Entry>> = Global::new(Vec::new());

/// The registered tuner with this id.
///
/// # Errors
///
/// `InvalidParam` if there is none.
fn find(id: c_int) -> Result<blosc2_tuner> {
    if id == plugins::BTUNE.id {
        return Ok(plugins::BTUNE);
    }
    let tuners = TUNERS.lock();
    let found = tuners.iter().find(|entry| entry.0.id == id).map(|entry| entry.0);
    found.ok_or(Error::new(ErrorKind::InvalidParam, "unknown tuner"))
}

/// A callback of the tuner with this id; if the tuner lacks it, its plugin is loaded.
///
/// # Errors
///
/// `InvalidParam` for an unknown tuner, `Failure` for a plugin that cannot be loaded.
fn callback<F>(id: c_int, pick: impl Fn(&blosc2_tuner) -> Option<F>) -> Result<F> {
    let tuner = find(id)?;
    if let Some(callback) = pick(&tuner) {
        return Ok(callback);
    }
    // SAFETY: the client promised a name to a tuner that lacks a callback.
    let loaded = unsafe { plugins::tuner(&tuner) }?;
    pick(&loaded).ok_or(Error::new(ErrorKind::Failure, "the tuner lacks a function"))
}

/// Registers a tuner of the application. Registering the same id and name again changes nothing.
///
/// # Safety
///
/// The name of a tuner whose id is registered already is a string.
///
/// # Errors
///
/// `Failure` for ids below 160 and for ids taken under another name; `CodecSupport` if the registry is full;
/// `MemoryAlloc`.
pub(crate) unsafe fn register(tuner: &blosc2_tuner) -> Result<()> {
    ensure(tuner.id >= FIRST_USER, ErrorKind::Failure, "tuner ids below 160 are reserved")?;
    let mut tuners = TUNERS.lock();
    ensure(tuners.len() < MAX_ENTRIES, ErrorKind::CodecSupport, "too many tuners are registered")?;
    let Some(known) = tuners.iter().find(|entry| entry.0.id == tuner.id) else {
        return memory::push(&mut tuners, Entry(*tuner));
    };
    // SAFETY: the caller's promise, and that of whoever registered the known one.
    let same = unsafe { same_name(known.0.name, tuner.name) };
    ensure(same, ErrorKind::Failure, "tuner id is taken")
}

/// Forgets the tuners of the application.
pub(crate) fn clear() {
    TUNERS.lock().clear();
}

/// The code of a tuner's callback as a result.
fn check(code: c_int) -> Result<()> {
    ensure(code >= 0, ErrorKind::Tuner, "the tuner reported a failure")
}

/// Lets the tuner of a new context initialise itself. The context is not the tuner's before it has done so: until then
/// its id is 0, and a failure leaves it at that, so that [`free`] is not for it.
///
/// # Safety
///
/// `context` is valid and no other thread uses it; there are no references to it.
///
/// # Errors
///
/// `InvalidParam` for an unknown tuner, `Failure` for a plugin that cannot be loaded, `Tuner` if it fails.
pub(crate) unsafe fn init(context: *mut blosc2_context) -> Result<()> {
    // SAFETY: the caller's promise; the reference ends before the callback is called.
    let this = unsafe { Context::from_raw(context) }?;
    let (id, config) = (this.fields.tuner_id, this.tuner_config());
    if id <= 0 {
        return Ok(());
    }
    this.fields.tuner_id = 0;
    let init = callback(id, |tuner| tuner.init)?;
    // SAFETY: the client vouches for its callback.
    check(call_back(|| unsafe { init(config, context, ptr::null_mut()) }))?;
    // SAFETY: the caller's promise; the reference ends with the statement.
    unsafe { Context::from_raw(context) }?.fields.tuner_id = id;
    Ok(())
}

/// Lets the tuner choose parameters for the next compression.
///
/// # Safety
///
/// As for [`init`].
///
/// # Errors
///
/// `InvalidParam` for an unknown tuner, `Failure` for a plugin that cannot be loaded, `Tuner` if it fails.
#[inline]
pub(crate) unsafe fn prepare(context: *mut blosc2_context) -> Result<()> {
    // SAFETY: the caller's promise; the reference ends with the statement.
    let (id, has_state) = unsafe { state(context) }?;
    if id <= 0 {
        return Ok(());
    }
    let next = callback(id, |tuner| if has_state { tuner.next_cparams } else { tuner.next_blocksize })?;
    // SAFETY: the client vouches for its callback.
    check(call_back(|| unsafe { next(context) }))
}

/// Tells the tuner how long a compression took.
///
/// # Safety
///
/// As for [`init`].
///
/// # Errors
///
/// `InvalidParam` for an unknown tuner, `Failure` for a plugin that cannot be loaded, `Tuner` if it fails.
#[inline]
pub(crate) unsafe fn update(context: *mut blosc2_context, seconds: f64) -> Result<()> {
    // SAFETY: the caller's promise; the reference ends with the statement.
    let (id, has_state) = unsafe { state(context) }?;
    if id <= 0 || !has_state {
        return Ok(());
    }
    let update = callback(id, |tuner| tuner.update)?;
    // SAFETY: the client vouches for its callback.
    check(call_back(|| unsafe { update(context, seconds) }))
}

/// The tuner of a context and whether it keeps state there.
///
/// # Safety
///
/// As for [`init`].
#[inline]
unsafe fn state(context: *mut blosc2_context) -> Result<(c_int, bool)> {
    // SAFETY: the caller's promise.
    let fields = unsafe { Context::from_raw(context) }.map(|this| &this.fields)?;
    Ok((fields.tuner_id, !fields.tuner_params.is_null()))
}

/// Lets the tuner of a context that is going away release its state.
pub(crate) fn free(context: &mut Context) {
    let (id, has_state) = (context.fields.tuner_id, !context.fields.tuner_params.is_null());
    if id <= 0 || !has_state {
        return;
    }
    if let Ok(free) = callback(id, |tuner| tuner.free) {
        // SAFETY: the client vouches for its callback; the context is still whole.
        call_back(|| unsafe { free((&raw mut *context).cast()) });
    }
}
