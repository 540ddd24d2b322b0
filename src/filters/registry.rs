//! Filters registered under ids of their own: most of those that the library defines from 32 on, and the application's.

#![forbid(unsafe_code)]

use super::Filter;
use super::builtin::BUILTIN;
use crate::error::{ErrorKind, Result, ensure};
use crate::format::consts::filter::FIRST_USER;
use crate::registered::Registered;

/// One registered filter.
pub struct FilterEntry {
    /// The filter's id, 32 to 255.
    pub id: u8,
    /// Of no meaning here; the C layer keeps the address of the filter's name in it.
    pub tag: usize,
    /// The filter itself.
    pub filter: Box<dyn Filter>,
}

/// The filters of the application.
static REGISTERED: Registered<FilterEntry> = Registered::new();

/// The filter with this id.
#[must_use]
pub fn find(id: u8) -> Option<&'static FilterEntry> {
    let found = BUILTIN.iter().find(|entry| entry.id == id);
    found.or_else(|| REGISTERED.find(|entry| entry.id == id))
}

/// Registers a filter of the application.
///
/// If the id is taken already, `is_same` decides whether that filter and the new one have the same name; if they do,
/// nothing changes. (Names of new ids are not looked at: some clients leave them uninitialised.)
///
/// # Errors
///
/// `Failure` for an id below 160 or one that is taken under another name, `MemoryAlloc`.
pub fn register(entry: FilterEntry, is_same: impl FnOnce(&FilterEntry) -> bool) -> Result<()> {
    ensure(entry.id >= FIRST_USER, ErrorKind::Failure, "filter ids below 160 are reserved")?;
    let are_alike = |old: &FilterEntry, new: &FilterEntry| {
        let identity = new.filter.identity();
        identity.is_some() && old.filter.identity() == identity
    };
    let has_id = REGISTERED.add(entry.id, entry, |known, _| is_same(known), are_alike)?;
    ensure(has_id, ErrorKind::Failure, "filter id is taken")
}

/// Forgets the filters of the application. Operations under way keep theirs.
pub fn clear() {
    REGISTERED.clear();
}
