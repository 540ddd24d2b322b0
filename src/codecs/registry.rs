//! Codecs registered under ids of their own: those that the library defines from 32 on, and the application's.

#![forbid(unsafe_code)]

use super::Codec;
use crate::error::{ErrorKind, Result, ensure};
use crate::fork::Slot;
use crate::format::consts::codec::FIRST_USER;
use crate::registered::Registered;
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

/// The codecs of the application.
static REGISTERED: Registered<CodecEntry> = Registered::new();

/// Codecs that the library defines, but a layer above has to load.
static PLUGINS: Slot<Vec<CodecEntry>> = Slot::new();

/// The codecs that the library itself defines.
fn defined() -> impl Iterator<Item = &'static CodecEntry> {
    super::builtin::BUILTIN.iter().chain(PLUGINS.get().into_iter().flatten())
}

/// The first codec of which `is_wanted` holds.
fn first(is_wanted: impl Fn(&CodecEntry) -> bool) -> Option<&'static CodecEntry> {
    defined().find(|entry| is_wanted(entry)).or_else(|| REGISTERED.find(is_wanted))
}

/// Adds codecs that the library defines and a layer above has to load. Only the first call counts.
pub(crate) fn define_plugins(entries: impl FnOnce() -> Vec<CodecEntry>) {
    PLUGINS.get_or_make(|| Box::leak(Box::new(entries())));
}

/// The codec with this id.
#[must_use]
pub fn find(id: u8) -> Option<&'static CodecEntry> {
    first(|entry| entry.id == id)
}

/// The first codec with this name.
#[must_use]
pub fn find_by_name(name: &CStr) -> Option<&'static CodecEntry> {
    first(|entry| entry.name == Some(name))
}

/// The first codec of this library.
#[must_use]
pub fn find_by_complib(complib: u8) -> Option<&'static CodecEntry> {
    first(|entry| entry.complib == complib)
}

/// Registers a codec of the application. Registering the same id and name again changes nothing.
///
/// # Errors
///
/// `CodecParam` for an id below 160 or one that is taken under another name, `MemoryAlloc`.
pub fn register(entry: CodecEntry) -> Result<()> {
    ensure(entry.id >= FIRST_USER, ErrorKind::CodecParam, "codec ids below 160 are reserved")?;
    let has_same_name = |known: &CodecEntry, new: &CodecEntry| known.name == new.name;
    let are_alike = |old: &CodecEntry, new: &CodecEntry| {
        // A name at the same address may be another one by now.
        let told = |entry: &CodecEntry| (entry.complib, entry.version, entry.name.map(CStr::count_bytes));
        let identity = new.codec.identity();
        told(old) == told(new) && identity.is_some() && old.codec.identity() == identity
    };
    let has_id = REGISTERED.add(entry.id, entry, has_same_name, are_alike)?;
    ensure(has_id, ErrorKind::CodecParam, "codec id is taken")
}

/// Forgets the codecs of the application. Operations under way keep theirs.
pub fn clear() {
    REGISTERED.clear();
}
