//! Files in memory, as the system maps them: what the memory-mapped back-ends of Rust and of C are made of.
//!
//! Changes of the file are made by writing to the file, not to mapped pages; they show in its mappings. So a full disk
//! is reported as an error, where writing to a page for which the disk has no room would end the process.

use std::fs::File;
use std::ptr::NonNull;

/// What a mapping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file that is only read.
    ReadOnly,
    /// A file that changes.
    Shared,
    /// Memory that may be changed, while the file stays as it is. It goes on past the end of the file.
    Private,
}

/// A region of address space that shows a file; unmapped when dropped.
pub(crate) struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is memory of the process; who may read and write it is decided by its owner.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len` bytes, at least 1, of which the first `size` are those of the file.
    ///
    /// Unless the mapping is private, bytes can be used as far as the file reaches at that time.
    #[cfg(unix)]
    pub(crate) fn map(file: &File, kind: Kind, len: usize, size: usize) -> Option<Region> {
        use std::os::fd::AsRawFd;
        let (fd, anywhere) = (file.as_raw_fd(), std::ptr::null_mut());
        let access = libc::PROT_READ | if kind == Kind::ReadOnly { 0 } else { libc::PROT_WRITE };
        if kind != Kind::Private {
            return Region::map_at(anywhere, len, access, libc::MAP_SHARED, fd);
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | NO_RESERVE;
        let region = Region::map_at(anywhere, len, access, flags, -1)?;
        if size > 0 {
            assert!(size <= len, "a mapping has room for the file");
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | NO_RESERVE;
            // This replaces the first pages of the region just made, which unmaps them as well.
            let file_part = Region::map_at(region.start.as_ptr(), size, access, flags, fd)?;
            std::mem::forget(file_part);
        }
        Some(region)
    }

    /// Files are not mapped on this system.
    #[cfg(not(unix))]
    pub(crate) fn map(_: &File, _: Kind, _: usize, _: usize) -> Option<Region> {
        None
    }

    /// Maps `len` bytes, none of which a private mapping takes from the file, and as many again if it can: a file that
    /// grows goes on growing, and mappings that it outgrows stay.
    pub(crate) fn map_with_room(file: &File, kind: Kind, len: usize) -> Option<Region> {
        let more = len.saturating_mul(2);
        Region::map(file, kind, more, 0).or_else(|| Region::map(file, kind, len, 0))
    }

    #[cfg(unix)]
    fn map_at(start: *mut u8, len: usize, access: i32, flags: i32, fd: i32) -> Option<Region> {
        // SAFETY: an address of the system's choice (`start` is null) touches nothing that exists; otherwise `map` asks
        // for pages of its own that nobody uses yet.
        let start = unsafe { libc::mmap(start.cast(), len, access, flags, fd, 0) };
        (start != libc::MAP_FAILED).then_some(())?;
        Some(Region { start: NonNull::new(start.cast())?, len })
    }

    /// A region that [`into_raw`](Self::into_raw) gave away.
    ///
    /// # Safety
    ///
    /// Nobody else unmaps it.
    pub(crate) unsafe fn from_raw(start: NonNull<u8>, len: usize) -> Region {
        Region { start, len }
    }

    /// Address and length; nobody unmaps the region any more.
    pub(crate) fn into_raw(self) -> (NonNull<u8>, usize) {
        let this = std::mem::ManuallyDrop::new(self);
        (this.start, this.len)
    }

    /// Where it starts.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: the region came from mmap with this length, and its owner lends nothing beyond its own life.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.len);
        }
    }
}

/// Private mappings take up no swap space before they are written. FreeBSD does not know this flag, nor need it.
#[cfg(all(unix, not(target_os = "freebsd")))]
const NO_RESERVE: i32 = libc::MAP_NORESERVE;
#[cfg(target_os = "freebsd")]
const NO_RESERVE: i32 = 0;
