//! Filters registered under ids of their own: most of those that the library defines from 32 on, and the application's.

use super::Filter;
use super::builtin::BUILTIN;
use crate::error::{Error, ErrorKind, Result};
use crate::fork::Global;
use crate::format::consts::filter::FIRST_USER;

/// One registered filter.
pub struct FilterEntry {
    /// The filter's id, 32 to 255.
    pub id: u8,
    /// Of no meaning here; the C layer keeps the address of the filter's name in it.
    pub tag: usize,
    /// The filter itself.
    pub filter: Box<dyn Filter>,
}

/// The filters of the application. Entries are never freed: operations under way refer to them.
struct Registered {
    entries: Vec<&'static FilterEntry>,
    /// What was forgotten, but may be in use.
    forgotten: Vec<&'static FilterEntry>,
}

static REGISTERED: Global<Registered> =
    Global::new(Registered { entries: Vec::new(), forgotten: Vec::new() });

/// The filter with this id.
#[must_use]
pub fn find(id: u8) -> Option<&'static FilterEntry> {
    let found = BUILTIN.iter().find(|entry| entry.id == id);
    found.or_else(|| REGISTERED.lock().entries.iter().find(|entry| entry.id == id).copied())
}

/// Registers a filter of the application.
///
/// If the id is taken already, `is_same` decides whether that filter and the new one have the same name; if they do,
/// nothing changes. (Names of new ids are not looked at: some clients leave them uninitialised.)
///
/// # Errors
///
/// `Failure` for an id below 160 or one that is taken under another name.
pub fn register(entry: FilterEntry, is_same: impl FnOnce(&FilterEntry) -> bool) -> Result<()> {
    if entry.id < FIRST_USER {
        return Err(Error::new(ErrorKind::Failure, "filter ids below 160 are reserved"));
    }
    let entries = &mut REGISTERED.lock().entries;
    match entries.iter().find(|known| known.id == entry.id) {
        None => entries.push(Box::leak(Box::new(entry))),
        Some(known) if is_same(known) => {}
        Some(_) => return Err(Error::new(ErrorKind::Failure, "filter id is taken")),
    }
    Ok(())
}

/// Forgets the filters of the application. Operations under way keep theirs.
pub fn clear() {
    let Registered { entries, forgotten } = &mut *REGISTERED.lock();
    forgotten.append(entries);
}
