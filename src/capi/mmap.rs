//! Exported functions: the back-end for memory-mapped files. Its state is in the client's `blosc2_stdio_mmap`, which is
//! also the handle.
//!
//! | mode | protection | writes reach the file | size of the mapping |
//! |---|---|---|---|
//! | `r` | read | refused | the file's |
//! | `r+`, `w+` | read, write | yes | `initial_mapping_size`, at least the file's |
//! | `c` | read, write | no | the same; memory of no file lies behind the end of the file |
//!
//! Mappings that were outgrown stay until `destroy`, so that addresses lent to readers stay good.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use super::environment;
use super::guard::{guard, guard_or, guard_status};
use super::mem::c_string;
use super::ptr::{handle_mut, in_bytes};
use super::stdio::transfer;
use super::types::{CBool, blosc2_stdio_mmap};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::fork::Global;

/// A mapping that was outgrown, and whose it was.
struct Retired {
    owner: usize,
    start: usize,
    len: usize,
}

/// The outgrown mappings. The lock also keeps changes of a mapping away from reads that compute an address in it.
static RETIRED: Global<Vec<Retired>> = Global::new(Vec::new());

const FAILED: Error = Error::new(ErrorKind::Failure, "mapping failed");

#[cfg(unix)]
mod system {
    use super::{FAILED, Result};
    use std::ffi::{c_int, c_void};
    use std::ptr;

    pub(super) const READ: i64 = libc::PROT_READ as i64; // widening
    pub(super) const WRITE: i64 = libc::PROT_WRITE as i64; // widening
    pub(super) const SHARED: i64 = libc::MAP_SHARED as i64; // widening
    pub(super) const PRIVATE: i64 = libc::MAP_PRIVATE as i64; // widening

    fn flag(value: i64) -> c_int {
        c_int::try_from(value).unwrap_or(0)
    }

    /// Maps `len` bytes; of a private mapping only the first `size` are the file's.
    pub(super) fn map(fd: c_int, len: usize, size: usize, access: i64, flags: i64) -> Result<*mut c_void> {
        let private = flags == PRIVATE;
        let (own_flags, own_fd) =
            if private { (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1) } else { (flag(flags), fd) };
        // SAFETY: a fresh mapping at an address of the system's choice touches nothing that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, flag(access), own_flags, own_fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(FAILED);
        }
        if private && size > 0 {
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
            // SAFETY: `size <= len`: this replaces the first pages of the mapping just made.
            let file_part = unsafe { libc::mmap(start, size, flag(access), flags, fd, 0) };
            if file_part == libc::MAP_FAILED {
                unmap(start, len);
                return Err(FAILED);
            }
        }
        Ok(start)
    }

    pub(super) fn unmap(start: *mut c_void, len: usize) {
        // SAFETY: the caller has this mapping and gives it up.
        unsafe { libc::munmap(start, len) };
    }

    pub(super) fn sync(start: *mut c_void, len: usize) -> bool {
        // SAFETY: the caller has this mapping; its start is page-aligned.
        len == 0 || unsafe { libc::msync(start, len, libc::MS_SYNC) } == 0
    }

    pub(super) fn set_size(fd: c_int, size: usize) -> bool {
        // SAFETY: plain system call.
        libc::off_t::try_from(size).is_ok_and(|size| unsafe { libc::ftruncate(fd, size) } == 0)
    }

    pub(super) fn size_of(fd: c_int) -> Option<usize> {
        // SAFETY: integers only; filled by the call.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: plain system call into a local.
        (unsafe { libc::fstat(fd, &raw mut stat) } == 0).then(|| usize::try_from(stat.st_size).ok())?
    }

    /// # Safety
    ///
    /// `file` is open.
    pub(super) unsafe fn descriptor(file: *mut libc::FILE) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { libc::fileno(file) }
    }
}

#[cfg(not(unix))]
mod system {
    //! There are no mappings on this system: `map` fails, and the rest is never reached.
    use super::{FAILED, Result};
    use std::ffi::{c_int, c_void};

    pub(super) const READ: i64 = 1;
    pub(super) const WRITE: i64 = 2;
    pub(super) const SHARED: i64 = 1;
    pub(super) const PRIVATE: i64 = 2;

    pub(super) fn map(_: c_int, _: usize, _: usize, _: i64, _: i64) -> Result<*mut c_void> {
        Err(FAILED)
    }

    pub(super) fn unmap(_: *mut c_void, _: usize) {}

    pub(super) fn sync(_: *mut c_void, _: usize) -> bool {
        true
    }

    pub(super) fn set_size(_: c_int, _: usize) -> bool {
        false
    }

    pub(super) fn size_of(_: c_int) -> Option<usize> {
        None
    }

    pub(super) unsafe fn descriptor(_: *mut libc::FILE) -> c_int {
        -1
    }
}

/// The state behind a handle.
///
/// # Safety
///
/// `stream` is null or points to a `blosc2_stdio_mmap`.
unsafe fn state<'a>(stream: *mut c_void) -> Result<&'a mut blosc2_stdio_mmap> {
    // SAFETY: the caller's promise; the fields that reads change are guarded by `RETIRED`.
    unsafe { handle_mut(stream.cast::<blosc2_stdio_mmap>()) }
}

impl blosc2_stdio_mmap {
    fn is_writable(&self) -> bool {
        self.access_flags & system::WRITE != 0
    }

    /// Makes the mapping at least `len` bytes long. The caller has the lock of `RETIRED`.
    fn grow(&mut self, retired: &mut Vec<Retired>, len: usize) -> Result<()> {
        let size = if self.is_memory_only.get() { 0 } else { self.file_size };
        let start = system::map(self.fd, len, size, self.access_flags, self.map_flags)?;
        if self.is_memory_only.get() {
            // SAFETY: both mappings hold `file_size` bytes and do not overlap.
            unsafe {
                ptr::copy_nonoverlapping(self.addr.cast::<u8>(), start.cast::<u8>(), self.file_size);
            };
        }
        let owner = ptr::from_mut(self).addr();
        retired.push(Retired { owner, start: self.addr.expose_provenance(), len: self.mapping_size });
        self.addr = start.cast();
        self.mapping_size = len;
        Ok(())
    }

    /// Takes over a size that somebody else gave the file.
    fn follow_file(&mut self) -> Result<()> {
        if self.is_memory_only.get() || self.file.is_null() {
            return Ok(());
        }
        let Some(size) = system::size_of(self.fd).filter(|&size| size != self.file_size) else {
            return Ok(());
        };
        let mut retired = RETIRED.lock();
        if size > self.mapping_size {
            self.grow(&mut retired, size)?;
        }
        self.file_size = size;
        Ok(())
    }
}

/// Maps the file `urlpath` as the `blosc2_stdio_mmap` behind `params` says; returns `params`, or NULL. `mode` is not
/// used.
///
/// A file that is mapped already is not mapped again.
///
/// # Safety
///
/// `urlpath` is NULL or a string; `params` is NULL or a `blosc2_stdio_mmap` that outlives its use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_mmap_open(
    urlpath: *const c_char,
    mode: *const c_char,
    params: *mut c_void,
) -> *mut c_void {
    guard(|| {
        let _ = mode;
        ensure(!urlpath.is_null() && !params.is_null(), ErrorKind::NullPointer, "no path or parameters")?;
        // SAFETY: the caller's promise.
        let (this, path) = unsafe { (state(params)?, CStr::from_ptr(urlpath)) };
        if !this.addr.is_null() {
            // SAFETY: set when the file was mapped.
            let same = !this.urlpath.is_null() && unsafe { CStr::from_ptr(this.urlpath) } == path;
            ensure(same, ErrorKind::FileOpen, "another file is mapped already")?;
            return Ok(params);
        }
        ensure(!this.mode.is_null(), ErrorKind::InvalidParam, "no mode")?;
        // SAFETY: the caller's promise.
        open(this, path, unsafe { CStr::from_ptr(this.mode) })?;
        Ok(params)
    })
}

fn open(this: &mut blosc2_stdio_mmap, path: &CStr, mode: &CStr) -> Result<()> {
    let read_write = system::READ | system::WRITE;
    let (how, access, flags, private) = match mode.to_bytes() {
        b"r" => (c"rb", system::READ, system::SHARED, false),
        b"r+" => (c"rb+", read_write, system::SHARED, false),
        b"w+" => (c"wb+", read_write, system::SHARED, false),
        b"c" => (c"rb", read_write, system::PRIVATE, true),
        _ => return Err(Error::new(ErrorKind::InvalidParam, "unknown mode of a mapping")),
    };
    let own_path = c_string(path)?;
    // SAFETY: both are strings.
    let file = unsafe { libc::fopen(path.as_ptr(), how.as_ptr()) };
    let map = || {
        ensure(!file.is_null(), ErrorKind::FileOpen, "file cannot be opened")?;
        // SAFETY: opened above.
        let fd = unsafe { system::descriptor(file) };
        let size = system::size_of(fd).ok_or(FAILED)?;
        let wanted = if access & system::WRITE == 0 { size } else { this.initial_mapping_size.max(size) };
        Ok((fd, size, wanted.max(1), system::map(fd, wanted.max(1), size, access, flags)?))
    };
    match map() {
        Ok((fd, size, len, start)) => {
            environment::info(|| {
                let (path, mode) = (path.to_string_lossy(), mode.to_string_lossy());
                format!(
                    "Opened memory-mapped file {path} in mode {mode} with an mapping size of {len} bytes."
                )
            });
            this.mode = ptr::null();
            this.addr = start.cast();
            this.urlpath = own_path;
            this.file_size = size;
            this.mapping_size = len;
            this.is_memory_only = CBool::new(private);
            this.file = file;
            this.fd = fd;
            this.access_flags = access;
            this.map_flags = flags;
            Ok(())
        }
        Err(error) => {
            // SAFETY: both made above.
            unsafe {
                libc::free(own_path.cast());
                if !file.is_null() {
                    libc::fclose(file);
                }
            }
            Err(error)
        }
    }
}

/// Does nothing, since the mapping stays until it is destroyed; returns 0.
///
/// # Safety
///
/// None; it has the type of the callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_mmap_close(stream: *mut c_void) -> c_int {
    let _ = stream;
    guard_status(|| Ok(()))
}

/// The size of the mapped file in bytes, or -1.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_mmap_size(stream: *mut c_void) -> i64 {
    guard_or(-1, || {
        // SAFETY: the caller's promise.
        let this = unsafe { state(stream) }?;
        this.follow_file()?;
        i64::try_from(this.file_size).map_err(|_| FAILED)
    })
}

/// Writes `nitems` items of `size` bytes at byte `position`; returns `nitems`, or 0.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_mmap` that no other thread uses; `ptr` is NULL or readable for that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_mmap_write(
    ptr: *const c_void,
    size: i64,
    nitems: i64,
    position: i64,
    stream: *mut c_void,
) -> i64 {
    guard_or(0, || {
        let (len, position) = transfer(size, nitems, position)?;
        // SAFETY: the caller's promise.
        let (bytes, this) = unsafe { (in_bytes(ptr, len)?, state(stream)?) };
        if len == 0 {
            return Ok(0);
        }
        ensure(this.is_writable(), ErrorKind::FileWrite, "file is mapped for reading only")?;
        let at = usize::try_from(position).map_err(|_| FAILED)?;
        let end = at.checked_add(len).filter(|&end| isize::try_from(end).is_ok()).ok_or(FAILED)?;
        if end > this.file_size {
            extend(this, end)?;
        }
        // SAFETY: `end <= file_size <= mapping_size`; the source may be part of the mapping.
        unsafe { ptr::copy(bytes.as_ptr(), this.addr.cast::<u8>().add(at), len) };
        Ok(nitems)
    })
}

/// Makes the file `end` bytes long, and the mapping long enough.
fn extend(this: &mut blosc2_stdio_mmap, end: usize) -> Result<()> {
    let sized = this.is_memory_only.get() || system::set_size(this.fd, end);
    ensure(sized, ErrorKind::FileWrite, "file cannot be extended")?;
    if end > this.mapping_size {
        let mut retired = RETIRED.lock();
        let grown = this.grow(&mut retired, end.checked_mul(2).unwrap_or(end));
        if grown.is_err() && !this.is_memory_only.get() {
            system::set_size(this.fd, this.file_size);
        }
        grown?;
    }
    this.file_size = end;
    Ok(())
}

/// Stores the address of `nitems` items of `size` bytes at byte `position` in `*ptr`; returns `nitems`, or 0 with NULL
/// stored if the file has not that many.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_mmap` that no other thread changes; `ptr` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_mmap_read(
    ptr: *mut *mut c_void,
    size: i64,
    nitems: i64,
    position: i64,
    stream: *mut c_void,
) -> i64 {
    guard_or(0, || {
        ensure(!ptr.is_null(), ErrorKind::NullPointer, "nowhere to store the address")?;
        // SAFETY: the caller's promise.
        unsafe { ptr.write(ptr::null_mut()) };
        let (len, position) = transfer(size, nitems, position)?;
        // SAFETY: the caller's promise.
        let this = unsafe { state(stream) }?;
        this.follow_file()?;
        let _guard = RETIRED.lock();
        let at = usize::try_from(position).map_err(|_| FAILED)?;
        let inside = at.checked_add(len).is_some_and(|end| end <= this.file_size);
        ensure(inside, ErrorKind::FileRead, "file ends too early")?;
        // SAFETY: `at <= file_size <= mapping_size`; `ptr` by the caller's promise.
        unsafe { ptr.write(this.addr.add(at).cast()) };
        Ok(nitems)
    })
}

/// Cuts or extends the mapped file to `size` bytes; returns 0, or -1.
///
/// # Safety
///
/// `stream` is NULL or a `blosc2_stdio_mmap` that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_mmap_truncate(stream: *mut c_void, size: i64) -> c_int {
    guard_or(-1, || {
        // SAFETY: the caller's promise.
        let this = unsafe { state(stream) }?;
        let size = usize::try_from(size).map_err(|_| FAILED)?;
        if size == this.file_size {
            return Ok(0);
        }
        ensure(this.is_writable(), ErrorKind::FileTruncate, "file is mapped for reading only")?;
        if size > this.file_size {
            let old = this.file_size;
            extend(this, size)?;
            if this.is_memory_only.get() {
                // SAFETY: `old < size <= mapping_size`; what a longer file held there is gone.
                unsafe { this.addr.add(old).write_bytes(0, size - old) };
            }
            return Ok(0);
        }
        let cut = this.is_memory_only.get() || system::set_size(this.fd, size);
        ensure(cut, ErrorKind::FileTruncate, "file cannot be truncated")?;
        this.file_size = size;
        Ok(0)
    })
}

/// Ends a mapping: writes it to the file, unless it is private, and closes that. The struct is released if its
/// `needs_free` is set. Returns 0, or -1, also if nothing was mapped.
///
/// # Safety
///
/// `params` is NULL or a `blosc2_stdio_mmap` that nobody uses any more, from `malloc` if its `needs_free` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_stdio_mmap_destroy(params: *mut c_void) -> c_int {
    guard_or(-1, || {
        // SAFETY: the caller's promise.
        let this = unsafe { state(params) }?;
        let mapped = !this.addr.is_null();
        let fine = mapped && close(this);
        if this.needs_free.get() {
            // SAFETY: the caller's promise.
            unsafe { libc::free(params) };
        }
        ensure(fine, ErrorKind::Failure, "mapping could not be ended")?;
        Ok(0)
    })
}

/// Unmaps and closes; tells whether all went well.
fn close(this: &mut blosc2_stdio_mmap) -> bool {
    let shared = this.is_writable() && !this.is_memory_only.get();
    let synced = !shared || system::sync(this.addr.cast(), this.file_size.min(this.mapping_size));
    system::unmap(this.addr.cast(), this.mapping_size);
    let owner = ptr::from_mut(this).addr();
    RETIRED.lock().retain(|old| {
        if old.owner == owner {
            system::unmap(ptr::with_exposed_provenance_mut(old.start), old.len);
        }
        old.owner != owner
    });
    // SAFETY: the file was opened and the path copied when the mapping was made.
    let closed = this.file.is_null() || unsafe { libc::fclose(this.file) } == 0;
    // SAFETY: as above.
    unsafe { libc::free(this.urlpath.cast()) };
    this.addr = ptr::null_mut();
    this.file = ptr::null_mut();
    this.urlpath = ptr::null_mut();
    synced && closed
}
