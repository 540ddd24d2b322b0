//! Exported functions: I/O back-ends.

use std::ffi::c_int;

use super::guard::{guard, guard_status};
use super::ptr::{handle_ref, same_name};
use super::types::{CBool, blosc2_io, blosc2_io_cb, blosc2_stdio_mmap};
use super::{mmap, stdio};
use crate::cancel;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::fork::Global;
use crate::memory;

/// First identifier that applications may register.
const FIRST_USER: u8 = super::consts::BLOSC2_IO_REGISTERED as u8; // 160

/// A back-end whose address clients may know, so it stays for good.
#[derive(Clone, Copy)]
struct Entry(*mut blosc2_io_cb);

// SAFETY: function pointers, and a name that the client keeps alive; the library only reads them.
unsafe impl Send for Entry {}

/// The back-ends: the built-in ones come first. Unlike other registrations they outlive `blosc2_destroy`.
static REGISTRY: Global<Vec<Entry>> = Global::new(Vec::new());

/// Adds a back-end to the registry.
///
/// # Errors
///
/// `MemoryAlloc`.
fn add(registry: &mut Vec<Entry>, io: blosc2_io_cb) -> Result<()> {
    memory::reserve(registry, 1)?;
    registry.push(Entry(Box::into_raw(memory::boxed(|| io)?)));
    Ok(())
}

fn built_in() -> [blosc2_io_cb; 2] {
    let filesystem = blosc2_io_cb {
        id: super::consts::BLOSC2_IO_FILESYSTEM,
        name: c"filesystem".as_ptr().cast_mut(),
        is_allocation_necessary: CBool::TRUE,
        open: Some(stdio::blosc2_stdio_open),
        close: Some(stdio::blosc2_stdio_close),
        size: Some(stdio::blosc2_stdio_size),
        write: Some(stdio::blosc2_stdio_write),
        read: Some(stdio::blosc2_stdio_read),
        truncate: Some(stdio::blosc2_stdio_truncate),
        destroy: Some(stdio::blosc2_stdio_destroy),
    };
    let mapped = blosc2_io_cb {
        id: super::consts::BLOSC2_IO_FILESYSTEM_MMAP,
        name: c"filesystem_mmap".as_ptr().cast_mut(),
        is_allocation_necessary: CBool::FALSE,
        open: Some(mmap::blosc2_stdio_mmap_open),
        close: Some(mmap::blosc2_stdio_mmap_close),
        size: Some(mmap::blosc2_stdio_mmap_size),
        write: Some(mmap::blosc2_stdio_mmap_write),
        read: Some(mmap::blosc2_stdio_mmap_read),
        truncate: Some(mmap::blosc2_stdio_mmap_truncate),
        destroy: Some(mmap::blosc2_stdio_mmap_destroy),
    };
    [filesystem, mapped]
}

/// Runs `operation` on the registry, with the built-in back-ends in it.
///
/// # Errors
///
/// Those of the operation, `MemoryAlloc`.
fn with_registry<T>(operation: impl FnOnce(&mut Vec<Entry>) -> Result<T>) -> Result<T> {
    let mut registry = REGISTRY.lock();
    let mut missing = built_in().into_iter().skip(registry.len());
    missing.try_for_each(|io| add(&mut registry, io))?;
    operation(&mut registry)
}

fn id_of(entry: Entry) -> u8 {
    // SAFETY: entries stay for good.
    unsafe { (*entry.0).id }
}

/// The entry with this identifier.
///
/// # Errors
///
/// `PluginIo` if there is none, `MemoryAlloc`.
fn entry(id: u8) -> Result<Entry> {
    let unknown = Error::new(ErrorKind::PluginIo, "unknown I/O back-end");
    with_registry(|registry| registry.iter().copied().find(|&entry| id_of(entry) == id).ok_or(unknown))
}

/// The back-end with this identifier.
///
/// # Errors
///
/// `PluginIo` if there is none, `MemoryAlloc`.
pub(crate) fn find(id: u8) -> Result<blosc2_io_cb> {
    // SAFETY: entries stay for good.
    entry(id).map(|entry| unsafe { *entry.0 })
}

/// Whether `id` is that of a back-end of the application.
pub(crate) fn is_users(id: u8) -> bool {
    id >= FIRST_USER
}

/// Calls the `destroy` of a back-end; returns what it returns, or 0 without one.
///
/// # Safety
///
/// The parameters are those for the back-end, and nothing uses them any more.
pub(crate) unsafe fn destroy(io: &blosc2_io) -> c_int {
    match find(io.id) {
        Ok(blosc2_io_cb { destroy: Some(destroy), .. }) => {
            // SAFETY: the caller's promise, and that of who registered the callback.
            cancel::deferred(|| unsafe { destroy(io.params) })
        }
        _ => 0,
    }
}

/// Registers an I/O back-end; its id must be at least 160. The struct is copied, its name is not. The registration
/// outlives `blosc2_destroy`.
///
/// Returns 0, also if the id is already registered under this name (then nothing changes), or a negative code.
///
/// # Safety
///
/// `io` is NULL or valid, its callbacks fulfil their contracts. If its id is registered already, both names are NULL or
/// strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_register_io_cb(io: *const blosc2_io_cb) -> c_int {
    guard_status(|| {
        require(!io.is_null(), "no I/O back-end")?;
        // SAFETY: the caller's promise.
        let io = unsafe { *handle_ref(io)? };
        ensure(io.id >= FIRST_USER, ErrorKind::PluginIo, "I/O ids below 160 are reserved")?;
        with_registry(|registry| {
            let Some(known) = registry.iter().copied().find(|&entry| id_of(entry) == io.id) else {
                return add(registry, io);
            };
            // SAFETY: entries stay for good; the names by the caller's promise.
            let same = unsafe { same_name((*known.0).name, io.name) };
            ensure(same, ErrorKind::PluginIo, "I/O id is taken")
        })
    })
}

/// The I/O back-end with this identifier, or NULL. It belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_io_cb(id: u8) -> *mut blosc2_io_cb {
    guard(|| entry(id).map(|entry| entry.0))
}

/// `BLOSC2_STDIO_MMAP_DEFAULTS`.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_blosc2_stdio_mmap_defaults() -> blosc2_stdio_mmap {
    blosc2_stdio_mmap::DEFAULTS
}
