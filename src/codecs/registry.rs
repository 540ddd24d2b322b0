//! Codecs registered under ids of their own: those that the library defines from 32 on, and the application's.

use super::Codec;
use crate::error::{Error, ErrorKind, Result};
use crate::fork::{Global, Slot};
use crate::format::consts::codec::FIRST_USER;
use std::ffi::CStr;

/// One registered codec.
pub struct CodecEntry {
    /// The codec's id, 32 to 255.
    pub id: u8,
    /// The codec's name, if it has one. Lives as long as the process.
    pub name: Option<&'static CStr>,
    /// The library code that `blosc2_get_complib_info` reports.
    pub complib: u8,
    /// Version of the stream format; byte 1 of the chunks.
    pub version: u8,
    /// The codec itself.
    pub codec: Box<dyn Codec>,
}

/// The codecs of the application. Entries are never freed: operations under way refer to them.
struct Registered {
    /// In the order of their registration.
    entries: Vec<&'static CodecEntry>,
    /// What was forgotten, but may be in use.
    forgotten: Vec<&'static CodecEntry>,
}

static REGISTERED: Global<Registered> =
    Global::new(Registered { entries: Vec::new(), forgotten: Vec::new() });

/// Codecs that the library defines, but a layer above has to load.
static PLUGINS: Slot<Vec<CodecEntry>> = Slot::new();

/// The codecs that the library itself defines.
fn defined() -> impl Iterator<Item = &'static CodecEntry> {
    super::builtin::BUILTIN.iter().chain(PLUGINS.get().into_iter().flatten())
}

/// The first codec of the application of which `is_wanted` holds.
fn registered(is_wanted: impl Fn(&CodecEntry) -> bool) -> Option<&'static CodecEntry> {
    REGISTERED.lock().entries.iter().find(|entry| is_wanted(entry)).copied()
}

/// Adds codecs that the library defines and a layer above has to load. Only the first call counts.
pub fn define_plugins(entries: impl FnOnce() -> Vec<CodecEntry>) {
    PLUGINS.get_or_make(|| Box::leak(Box::new(entries())));
}

/// The codec with this id.
#[must_use]
pub fn find(id: u8) -> Option<&'static CodecEntry> {
    defined().find(|entry| entry.id == id).or_else(|| registered(|entry| entry.id == id))
}

/// The first codec with this name.
#[must_use]
pub fn find_by_name(name: &CStr) -> Option<&'static CodecEntry> {
    let has_name = |entry: &CodecEntry| entry.name == Some(name);
    defined().find(|entry| has_name(entry)).or_else(|| registered(has_name))
}

/// The first codec of this library.
#[must_use]
pub fn find_by_complib(complib: u8) -> Option<&'static CodecEntry> {
    defined().find(|entry| entry.complib == complib).or_else(|| registered(|entry| entry.complib == complib))
}

/// Registers a codec of the application. Registering the same id and name again changes nothing.
///
/// # Errors
///
/// `CodecParam` for an id below 160 or one that is taken under another name.
pub fn register(entry: CodecEntry) -> Result<()> {
    if entry.id < FIRST_USER {
        return Err(Error::new(ErrorKind::CodecParam, "codec ids below 160 are reserved"));
    }
    let entries = &mut REGISTERED.lock().entries;
    match entries.iter().find(|known| known.id == entry.id) {
        None => entries.push(Box::leak(Box::new(entry))),
        Some(known) if known.name == entry.name => {}
        Some(_) => return Err(Error::new(ErrorKind::CodecParam, "codec id is taken")),
    }
    Ok(())
}

/// Forgets the codecs of the application. Operations under way keep theirs.
pub fn clear() {
    let Registered { entries, forgotten } = &mut *REGISTERED.lock();
    forgotten.append(entries);
}
