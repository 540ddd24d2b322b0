//! Exported functions: the back-end for memory-mapped files. Its state is in the client's `blosc2_stdio_mmap`, which is
//! also the handle.
//!
//! | mode | protection | writes reach the file | size of the mapping |
//! |---|---|---|---|
//! | `r` | read | refused | the file's |
//! | `r+`, `w+` | read, write | yes | `initial_mapping_size`, at least the file's |
//! | `c` | read, write | no | the same; what lies past the end of the file is anonymous memory |
//!
//! A struct that the client filled in itself describes memory without a file: it can be read and written, but not grow.
//!
//! Mappings that were outgrown stay until `destroy`, so that addresses lent to readers stay good.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use super::guard::{guard, guard_or, guard_status};
use super::mem::c_string;
use super::ptr::{handle_mut, in_bytes};
use super::stdio::{self, transfer};
use super::trace;
use super::types::{CBool, blosc2_stdio_mmap};
use crate::cancel::deferred;
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::fork::Global;
use crate::io::IoFile;
use crate::io::file::PlainFile;
use crate::io::mapping::{Kind, Region};

/// A mapping that was outgrown.
struct Retired {
    /// Whose it was: the address of the client's struct.
    owner: usize,
    _region: Region,
}

/// The outgrown mappings. The lock also keeps readers of one mapping apart: each of them may find that the file has
/// grown.
static RETIRED: Global<Vec<Retired>> = Global::new(Vec::new());

const FAILED: Error = Error::new(ErrorKind::Failure, "mapping failed");

/// Values of `access_flags` and `map_flags`.
#[cfg(unix)]
mod system {
    pub(super) const READ: i64 = libc::PROT_READ as i64; // widening
    pub(super) const WRITE: i64 = libc::PROT_WRITE as i64; // widening
    pub(super) const SHARED: i64 = libc::MAP_SHARED as i64; // widening
    pub(super) const PRIVATE: i64 = libc::MAP_PRIVATE as i64; // widening
}

/// Values for a system on which nothing is mapped.
#[cfg(not(unix))]
mod system {
    pub(super) const READ: i64 = 1;
    pub(super) const WRITE: i64 = 2;
    pub(super) const SHARED: i64 = 1;
    pub(super) const PRIVATE: i64 = 2;
}

/// The state behind a handle.
///
/// # Safety
///
/// `stream` is null or points to a `blosc2_stdio_mmap`, which nobody else uses at the same time: readers hold
/// [`RETIRED`].
unsafe fn state<'a>(stream: *mut c_void) -> Result<&'a mut blosc2_stdio_mmap> {
    // SAFETY: the caller's promise.
    unsafe { handle_mut(stream.cast::<blosc2_stdio_mmap>()) }
}

/// Runs `operation`, which looks at the first `reach` bytes of the file, while other readers are kept away. If the file
/// was shorter than that, the size that somebody else gave it is taken over first; asking for it each time takes longer
/// than reading a small chunk.
///
/// # Safety
///
/// `stream` is null or points to a `blosc2_stdio_mmap`, which others only read at the same time.
unsafe fn up_to_date<T>(
    stream: *mut c_void,
    reach: usize,
    operation: impl FnOnce(&mut blosc2_stdio_mmap) -> Result<T>,
) -> Result<T> {
    let file = {
        let _others = RETIRED.lock();
        // SAFETY: the caller's promise; other readers wait for the lock.
        let this = unsafe { state(stream) }?;
        if reach <= this.file_size || this.is_private() || this.file.is_null() {
            return operation(this);
        }
        this.plain()?
    };
    // The file system may take its time.
    let size = usize::try_from(file.size()?).map_err(|_| FAILED)?;
    let mut retired = RETIRED.lock();
    // SAFETY: as above.
    let this = unsafe { state(stream) }?;
    if size > this.mapping_size {
        this.grow(&mut retired, size)?;
    }
    this.file_size = size;
    operation(this)
}

impl blosc2_stdio_mmap {
    /// Whether it may be written to. Clients that fill in the struct themselves leave the flags alone.
    fn is_writable(&self) -> bool {
        self.access_flags != system::READ
    }

    fn is_private(&self) -> bool {
        self.is_memory_only.get()
    }

    fn kind(&self) -> Kind {
        match (self.is_private(), self.is_writable()) {
            (true, _) => Kind::Private,
            (false, true) => Kind::Shared,
            (false, false) => Kind::ReadOnly,
        }
    }

    /// The file, which is open as long as it is mapped.
    fn plain(&self) -> Result<ManuallyDrop<PlainFile>> {
        ensure(!self.file.is_null(), ErrorKind::Failure, "no open file")?;
        // SAFETY: not null, so it is open.
        unsafe { stdio::plain_of(self.file) }
    }

    /// Maps the file; returns its size, too.
    fn map(&self) -> Result<(Region, usize)> {
        let file = self.plain().map_err(|_| Error::new(ErrorKind::FileOpen, "file cannot be opened"))?;
        let size = usize::try_from(file.size()?).map_err(|_| FAILED)?;
        let wanted = if self.is_writable() { self.initial_mapping_size.max(size) } else { size };
        let region = Region::map(file.as_file(), self.kind(), wanted.max(1), size).ok_or(FAILED)?;
        Ok((region, size))
    }

    /// Makes the mapping at least `len` bytes long, which is more than it was.
    fn grow(&mut self, retired: &mut Vec<Retired>, len: usize) -> Result<()> {
        let region = Region::map_with_room(self.plain()?.as_file(), self.kind(), len).ok_or(FAILED)?;
        if self.is_private() {
            // SAFETY: both mappings hold `file_size` bytes and do not overlap.
            unsafe { ptr::copy_nonoverlapping(self.addr.cast::<u8>(), region.start(), self.file_size) };
        }
        let owner = ptr::from_mut(self).addr();
        retired.extend(self.take_region().map(|region| Retired { owner, _region: region }));
        self.show_region(region);
        Ok(())
    }

    /// The mapping, which this is not any more.
    fn take_region(&mut self) -> Option<Region> {
        let start = NonNull::new(std::mem::replace(&mut self.addr, ptr::null_mut()).cast::<u8>())?;
        // SAFETY: `show_region` put it there.
        Some(unsafe { Region::from_raw(start, self.mapping_size) })
    }

    fn show_region(&mut self, region: Region) {
        let (start, len) = region.into_raw();
        (self.addr, self.mapping_size) = (start.as_ptr().cast(), len);
    }

    /// Makes room for a file of `size` bytes.
    fn reserve(&mut self, size: usize) -> Result<()> {
        if size <= self.mapping_size {
            return Ok(());
        }
        self.grow(&mut RETIRED.lock(), size)
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
        let path = unsafe { CStr::from_ptr(urlpath) };
        {
            // While one reader puts another mapping in the place of one that the file has outgrown, there is none.
            let _others = RETIRED.lock();
            // SAFETY: the caller's promise; readers wait for the lock.
            let this = unsafe { state(params) }?;
            if !this.addr.is_null() {
                // SAFETY: set when the file was mapped.
                let same = !this.urlpath.is_null() && unsafe { CStr::from_ptr(this.urlpath) } == path;
                ensure(same, ErrorKind::FileOpen, "another file is mapped already")?;
                return Ok(params);
            }
        }
        // SAFETY: the caller's promise; there are no readers of what is not mapped.
        let this = unsafe { state(params) }?;
        require(!this.mode.is_null(), "no mode")?;
        // SAFETY: the caller's promise.
        open(this, path, unsafe { CStr::from_ptr(this.mode) })?;
        Ok(params)
    })
}

/// How `fopen` opens the file of a mapping with this mode, and the access and flags of the mapping.
fn parsed_mode(mode: &CStr) -> Result<(&'static CStr, i64, i64)> {
    let read_write = system::READ | system::WRITE;
    match mode.to_bytes() {
        b"r" => Ok((READING, system::READ, system::SHARED)),
        b"r+" => Ok((UPDATING, read_write, system::SHARED)),
        b"w+" => Ok((CREATING, read_write, system::SHARED)),
        b"c" => Ok((READING, read_write, system::PRIVATE)),
        _ => Err(Error::new(ErrorKind::InvalidParam, "unknown mode of a mapping")),
    }
}

/// Opens and maps the file `path`.
fn open(this: &mut blosc2_stdio_mmap, path: &CStr, mode: &CStr) -> Result<()> {
    let (how, access, flags) = parsed_mode(mode)?;
    let own_path = c_string(path)?;
    let file = deferred(|| open_stream(path, how));
    this.file = file;
    (this.access_flags, this.map_flags) = (access, flags);
    this.is_memory_only = CBool::new(flags == system::PRIVATE);
    match this.map() {
        Ok((region, size)) => {
            trace::info(|| {
                let (path, mode, len) = (path.to_string_lossy(), mode.to_string_lossy(), region.len());
                format!(
                    "Opened memory-mapped file {path} in mode {mode} with an mapping size of {len} bytes."
                )
            });
            this.show_region(region);
            this.mode = ptr::null();
            this.urlpath = own_path;
            this.file_size = size;
            // SAFETY: open.
            this.fd = unsafe { libc::fileno(file) };
            Ok(())
        }
        Err(error) => {
            this.file = ptr::null_mut();
            // SAFETY: both made above.
            unsafe {
                libc::free(own_path.cast());
                if !file.is_null() {
                    deferred(|| libc::fclose(file));
                }
            }
            Err(error)
        }
    }
}

/// Opens the file `path`; null if it cannot be opened. To read a pipe, it does not wait for a writer, as `fopen` does.
#[cfg(unix)]
fn open_stream(path: &CStr, how: &CStr) -> *mut libc::FILE {
    use crate::io::file;
    use std::ffi::OsStr;
    use std::os::fd::IntoRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    if how != READING {
        // SAFETY: both are strings.
        return unsafe { libc::fopen(path.as_ptr(), how.as_ptr()) };
    }
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let Ok(file) = file::open_to_read(path) else { return ptr::null_mut() };
    let fd = file.into_raw_fd();
    // SAFETY: a descriptor that nobody else uses, and a string; closed here if there is no stream that does so.
    unsafe {
        let stream = libc::fdopen(fd, how.as_ptr());
        if stream.is_null() {
            libc::close(fd);
        }
        stream
    }
}

#[cfg(not(unix))]
fn open_stream(path: &CStr, how: &CStr) -> *mut libc::FILE {
    // SAFETY: both are strings.
    unsafe { libc::fopen(path.as_ptr(), how.as_ptr()) }
}

/// The modes of `fopen`; the descriptors are closed on exec, where there are descriptors.
#[cfg(unix)]
const READING: &CStr = c"rbe";
#[cfg(unix)]
const UPDATING: &CStr = c"rb+e";
#[cfg(unix)]
const CREATING: &CStr = c"wb+e";
#[cfg(not(unix))]
const READING: &CStr = c"rb";
#[cfg(not(unix))]
const UPDATING: &CStr = c"rb+";
#[cfg(not(unix))]
const CREATING: &CStr = c"wb+";

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
        let size = unsafe { up_to_date(stream, usize::MAX, |this| Ok(this.file_size)) }?;
        i64::try_from(size).map_err(|_| FAILED)
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
        this.reserve(end)?;
        ensure(!this.addr.is_null(), ErrorKind::FileWrite, "nothing is mapped")?;
        if this.is_private() || (this.file.is_null() && end <= this.file_size) {
            // SAFETY: `end <= mapping_size`, see above for the address; the source may be part of the mapping.
            unsafe { ptr::copy(bytes.as_ptr(), this.addr.cast::<u8>().add(at), len) };
        } else {
            this.plain()?.write_at(position, bytes)?;
        }
        this.file_size = this.file_size.max(end);
        Ok(nitems)
    })
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
        let at = usize::try_from(position).map_err(|_| FAILED)?;
        let end = at.checked_add(len).ok_or(FAILED)?;
        let address = |this: &mut blosc2_stdio_mmap| {
            ensure(!this.addr.is_null(), ErrorKind::FileRead, "nothing is mapped")?;
            ensure(end <= this.file_size, ErrorKind::FileRead, "file ends too early")?;
            // SAFETY: `at <= file_size <= mapping_size`.
            Ok(unsafe { this.addr.add(at) })
        };
        // SAFETY: the caller's promise.
        unsafe { ptr.write(up_to_date(stream, end, address)?.cast()) };
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
        if size == this.file_size && (this.is_private() || this.file.is_null() || !this.is_writable()) {
            return Ok(0);
        }
        // Otherwise a write that failed may have left it longer than is known.
        ensure(this.is_writable(), ErrorKind::FileTruncate, "file is mapped for reading only")?;
        this.reserve(size)?;
        if !this.is_private() {
            this.plain()?.truncate(size as u64)?; // widening
        } else if size > this.file_size {
            // SAFETY: `file_size < size <= mapping_size`; what a longer file held there is gone.
            unsafe { this.addr.add(this.file_size).write_bytes(0, size - this.file_size) };
        }
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

/// Takes one of the outgrown mappings of `owner`, if there is one.
fn take_outgrown(owner: usize) -> Option<Retired> {
    let mut retired = RETIRED.lock();
    let at = retired.iter().position(|old| old.owner == owner)?;
    Some(retired.swap_remove(at))
}

/// Unmaps and closes; returns whether all went well.
fn close(this: &mut blosc2_stdio_mmap) -> bool {
    let shared = this.is_writable() && !this.is_private();
    let synced = !shared || this.file.is_null() || this.plain().and_then(|file| file.sync()).is_ok();
    drop(this.take_region());
    let owner = ptr::from_mut(this).addr();
    while let Some(outgrown) = take_outgrown(owner) {
        drop(outgrown); // while others may map
    }
    // SAFETY: the file was opened when the mapping was made.
    let closed = this.file.is_null() || deferred(|| unsafe { libc::fclose(this.file) }) == 0;
    // SAFETY: the path was copied when the mapping was made.
    unsafe { libc::free(this.urlpath.cast()) };
    this.file = ptr::null_mut();
    this.urlpath = ptr::null_mut();
    (this.file_size, this.mapping_size) = (0, 0);
    synced && closed
}
