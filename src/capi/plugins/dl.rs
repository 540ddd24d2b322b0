//! Shared libraries, through the system's loader.

use std::ffi::{CStr, c_void};
use std::io;
use std::ptr::{self, NonNull};

use crate::capi::trace;
use crate::error::Result;
use crate::memory::no_memory;

/// A library that was loaded. It is never unloaded: its functions may be running.
pub(super) struct Library(NonNull<c_void>);

impl Library {
    /// Loads the library at `path`; a mere file name is looked for where the system does.
    ///
    /// All symbols are resolved now. If one is missing, this fails, where binding it later would end the process.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`, where the loader tells.
    pub(super) fn open(path: &CStr) -> Result<Option<Library>> {
        forget_system_error();
        // SAFETY: the path is a string. The library's initialisers run: loading a plugin is to trust it.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle);
        if handle.is_none() {
            let lacks_memory = is_no_memory(&io::Error::last_os_error());
            // SAFETY: the text stays valid until the next call of this family by this thread.
            let message = unsafe { libc::dlerror() };
            if !message.is_null() {
                // SAFETY: as above.
                trace::message(&unsafe { CStr::from_ptr(message) }.to_string_lossy());
            }
            if lacks_memory {
                return Err(no_memory());
            }
        }
        Ok(handle.map(Library))
    }

    /// The address of an exported function or object.
    pub(super) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is that of a library which is loaded, the name a string.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

/// Whether the system lacked memory.
pub(super) fn is_no_memory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

/// Makes the last error of the system none: the loader leaves it as it is where it fails for reasons of its own.
fn forget_system_error() {
    #[cfg(target_os = "linux")]
    use libc::__errno_location as place;
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    use libc::__error as place;
    #[cfg(any(target_os = "linux", target_vendor = "apple", target_os = "freebsd"))]
    // SAFETY: the place is this thread's.
    unsafe {
        *place() = 0;
    }
}

/// Lets libraries that are loaded from now on use the functions of this one.
///
/// They are visible to all only if the program was linked with this library, but not if it loaded it later with local
/// binding, as Python does. A program that contains the static library has to export them itself.
pub(super) fn publish_own_symbols() {
    let own: fn() = publish_own_symbols;
    // SAFETY: the struct is made of pointers.
    let mut place: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address lies in this library, and the struct is writable.
    let found = unsafe { libc::dladdr(own as *const c_void, &raw mut place) };
    if found == 0 || ptr::eq(place.dli_fname, ptr::null()) {
        return;
    }
    // SAFETY: the path is a string. Nothing new is loaded; the handle is kept, so that plugins keep what they use.
    unsafe { libc::dlopen(place.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_GLOBAL) };
}
