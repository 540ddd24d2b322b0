//! Exported functions: codecs, filters and tuners of the application.

use std::ffi::{CStr, c_char, c_int};

use super::callbacks::{CCodec, CFilter};
use super::guard::guard_status;
use super::ptr::{c_str, handle_ref, same_name};
use super::tuner;
use super::types::{blosc2_codec, blosc2_filter, blosc2_tuner};
use crate::codecs::registry::{self as codec_registry, CodecEntry};
use crate::error::{ErrorKind, ensure, require};
use crate::filters::registry::{self as filter_registry, FilterEntry};
use crate::format::consts::codec;
use crate::memory::boxed;

/// Registers a codec; its code must be at least 160. The struct is copied, its name is not. If a callback is NULL, the
/// plugin `blosc2_<name>` is loaded when it is first needed.
///
/// Returns 0, also if the code is already registered under this name (then nothing changes), or a negative code.
///
/// # Safety
///
/// `codec` is NULL or valid, its name NULL or a string that outlives the library's use, its callbacks fulfil their
/// contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_register_codec(codec: *mut blosc2_codec) -> c_int {
    guard_status(|| {
        require(!codec.is_null(), "no codec")?;
        // SAFETY: the caller's promise.
        let codec = unsafe { *handle_ref(codec)? };
        let is_users = codec.compcode >= codec::FIRST_USER;
        ensure(is_users, ErrorKind::CodecParam, "codec ids below 160 are reserved")?;
        let named = !codec.compname.is_null();
        // SAFETY: the caller's promise.
        let name: Option<&'static CStr> = named.then(|| unsafe { c_str(codec.compname) }).transpose()?;
        codec_registry::register(CodecEntry {
            id: codec.compcode,
            name,
            complib: codec.complib,
            version: codec.version,
            codec: boxed(|| CCodec(codec))?,
        })
    })
}

/// Registers a filter; its id must be at least 160. The struct is copied, its name is not. If a callback is NULL, the
/// plugin `blosc2_<name>` is loaded when it is first needed.
///
/// Returns 0, also if the id is already registered under this name (then nothing changes), or a negative code.
///
/// # Safety
///
/// `filter` is NULL or valid, its callbacks fulfil their contracts. If its id is registered already or a callback is
/// NULL, its name is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_register_filter(filter: *mut blosc2_filter) -> c_int {
    guard_status(|| {
        require(!filter.is_null(), "no filter")?;
        // SAFETY: the caller's promise.
        let filter = unsafe { *handle_ref(filter)? };
        let name = filter.name;
        let entry = FilterEntry { id: filter.id, tag: name as usize, filter: boxed(|| CFilter(filter))? };
        filter_registry::register(entry, |known| {
            // SAFETY: the caller's promise, now and when the known one was registered.
            unsafe { same_name(known.tag as *const c_char, name) }
        })
    })
}

/// Registers a tuner; its id must be at least 160. The struct is copied, its name is not. If a callback is NULL, the
/// plugin `blosc2_<name>` is loaded when it is first needed.
///
/// Returns 0, also if the id is already registered under this name (then nothing changes), or a negative code.
///
/// # Safety
///
/// `tuner` is NULL or valid, its callbacks fulfil their contracts. If its id is registered already or a callback is
/// NULL, its name is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_register_tuner(tuner: *mut blosc2_tuner) -> c_int {
    guard_status(|| {
        require(!tuner.is_null(), "no tuner")?;
        // SAFETY: the caller's promise.
        unsafe { tuner::register(handle_ref(tuner)?) }
    })
}
