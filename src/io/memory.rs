//! Bytes in memory of C's allocator, which C callers may hand over and take over: frames, chunks, results.

use super::Fill;
use crate::copy;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Room;
use crate::pages;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;

/// A copy of `bytes` in memory that C may `free()`.
///
/// # Errors
///
/// `MemoryAlloc`.
#[inline]
pub(crate) fn malloc_copy(bytes: &[u8]) -> Result<NonNull<u8>> {
    let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for a copy");
    // SAFETY: allocating has no preconditions.
    let data = NonNull::new(unsafe { libc::malloc(bytes.len().max(1)) }.cast::<u8>()).ok_or(failed)?;
    pages::prefer_huge(data.as_ptr(), bytes.len());
    // SAFETY: there is room for all of `bytes` in the fresh allocation, which overlaps nothing.
    unsafe { copy::copy_raw(bytes.as_ptr(), data.as_ptr(), bytes.len()) };
    Ok(data)
}

/// Bytes that C may `free()`.
pub struct MallocBuf {
    data: NonNull<u8>,
    len: usize,
    memory: Memory,
}

/// The memory that the bytes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// There is none yet, and there are no bytes: the pointer dangles.
    None,
    /// The buffer's own, with room for this number of bytes.
    Own { capacity: usize },
    /// The buffer's own. It goes on after the bytes, but nobody knows how far.
    OwnWithSlack,
    /// Somebody else's: it is neither written nor freed.
    Borrowed,
}

// SAFETY: the buffer owns its memory, or only reads memory that its maker vouched for.
unsafe impl Send for MallocBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for MallocBuf {}

impl MallocBuf {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> MallocBuf {
        MallocBuf { data: NonNull::dangling(), len: 0, memory: Memory::None }
    }

    /// Takes over `len` bytes that came from `malloc`.
    ///
    /// # Safety
    ///
    /// `data` comes from C's allocator, holds `len` initialised bytes and is used by nobody else from now on.
    #[must_use]
    pub unsafe fn from_malloc(data: NonNull<u8>, len: usize) -> MallocBuf {
        MallocBuf { data, len, memory: Memory::Own { capacity: len } }
    }

    /// As [`from_malloc`](Self::from_malloc), of memory that has room for `capacity` bytes.
    ///
    /// # Safety
    ///
    /// As for [`from_malloc`](Self::from_malloc), and `capacity` bytes are allocated, at least `len`.
    pub(crate) unsafe fn from_malloc_with_room(data: NonNull<u8>, len: usize, capacity: usize) -> MallocBuf {
        MallocBuf { data, len, memory: Memory::Own { capacity } }
    }

    /// As [`from_malloc`](Self::from_malloc), of memory that goes on after these bytes, nobody knows how far.
    /// [`shrink`](Self::shrink) gives that back.
    ///
    /// # Safety
    ///
    /// As for [`from_malloc`](Self::from_malloc).
    #[must_use]
    pub unsafe fn from_malloc_with_slack(data: NonNull<u8>, len: usize) -> MallocBuf {
        MallocBuf { data, len, memory: Memory::OwnWithSlack }
    }

    /// Borrows `len` bytes of the caller; the first write copies them.
    ///
    /// # Safety
    ///
    /// `data` is readable for `len` bytes, and nobody writes there, as long as this buffer lives or until
    /// [`is_borrowed`](Self::is_borrowed) turns false.
    #[must_use]
    pub unsafe fn borrow(data: NonNull<u8>, len: usize) -> MallocBuf {
        MallocBuf { data, len, memory: Memory::Borrowed }
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub fn copy_of(bytes: &[u8]) -> Result<MallocBuf> {
        let data = malloc_copy(bytes)?;
        Ok(MallocBuf { data, len: bytes.len(), memory: Memory::Own { capacity: bytes.len().max(1) } })
    }

    /// `len` bytes that `fill` sets.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`, and those of `fill`.
    pub(crate) fn filled(len: usize, fill: &Fill<'_>) -> Result<MallocBuf> {
        let mut buffer = MallocBuf::new();
        buffer.refill(len, fill)?;
        Ok(buffer)
    }

    /// Gives the buffer, which is not borrowed, a content of `len` bytes that `fill` sets.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`, and those of `fill`; the buffer is empty then.
    pub(crate) fn refill(&mut self, len: usize, fill: &Fill<'_>) -> Result<()> {
        self.clear();
        self.reserve_exact(len)?;
        // SAFETY: `len` bytes are allocated, and `self` is borrowed as long.
        let room = unsafe { slice::from_raw_parts_mut(self.data.as_ptr().cast::<MaybeUninit<u8>>(), len) };
        let filled = fill(room)?;
        assert!(filled.as_ptr() == self.data.as_ptr() && filled.len() == len, "all of the memory is filled");
        self.len = len;
        Ok(())
    }

    /// `len` zeros.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub fn zeroed(len: usize) -> Result<MallocBuf> {
        // SAFETY: allocating has no preconditions.
        Self::allocated(len, |capacity| unsafe { libc::calloc(capacity, 1) })
    }

    /// Memory for output. For small blocks, zeros cost more than all the rest.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn for_output(room: Room) -> Result<MallocBuf> {
        match room {
            Room::Zeros(len) => Self::zeroed(len),
            // SAFETY: allocating has no preconditions.
            Room::Any(len) => Self::allocated(len, |capacity| unsafe { libc::malloc(capacity) }),
        }
    }

    fn allocated(len: usize, allocate: impl FnOnce(usize) -> *mut libc::c_void) -> Result<MallocBuf> {
        let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for a chunk");
        let capacity = len.max(1);
        let data = NonNull::new(allocate(capacity).cast::<u8>()).ok_or(failed)?;
        pages::prefer_huge(data.as_ptr(), capacity);
        Ok(MallocBuf { data, len, memory: Memory::Own { capacity } })
    }

    /// Bytes that there is room for, as far as that is known.
    pub(crate) fn capacity(&self) -> usize {
        match self.memory {
            Memory::Own { capacity } => capacity,
            Memory::None | Memory::OwnWithSlack | Memory::Borrowed => self.len,
        }
    }

    /// Whether the memory is to be freed.
    fn owns(&self) -> bool {
        matches!(self.memory, Memory::Own { .. } | Memory::OwnWithSlack)
    }

    /// Finds out how much memory there is really: buffers made from a pointer know only of their content.
    pub(crate) fn claim_slack(&mut self) {
        #[cfg(target_os = "linux")]
        if self.owns() {
            // SAFETY: `data` is an allocation of this buffer.
            let capacity = unsafe { libc::malloc_usable_size(self.data.as_ptr().cast()) }.max(self.len);
            self.memory = Memory::Own { capacity };
        }
    }

    /// Forgets the content; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// The content, to write.
    ///
    /// # Panics
    ///
    /// If the memory is borrowed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        assert!(!self.is_borrowed());
        // SAFETY: as for reading; the memory is this buffer's own, which is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }

    /// Whether the memory is still that of the caller.
    #[must_use]
    pub fn is_borrowed(&self) -> bool {
        self.memory == Memory::Borrowed
    }

    /// Makes borrowed memory this buffer's own, to be written and freed.
    ///
    /// # Safety
    ///
    /// As for [`from_malloc`](Self::from_malloc).
    pub unsafe fn take_over(&mut self) {
        self.memory = Memory::Own { capacity: self.len };
    }

    /// Leaves the memory to somebody else: from now on it is borrowed.
    ///
    /// # Safety
    ///
    /// As for [`borrow`](Self::borrow); whoever frees the memory does so after this buffer is gone.
    pub unsafe fn leave(&mut self) {
        self.memory = Memory::Borrowed;
    }

    /// Gives the memory away: its address and length in bytes. The new owner calls `free()`.
    #[must_use]
    pub fn into_raw(self) -> (*mut u8, usize) {
        let this = std::mem::ManuallyDrop::new(self);
        let data = if this.memory == Memory::None { ptr::null_mut() } else { this.data.as_ptr() };
        (data, this.len)
    }

    /// Makes room for `capacity` bytes in all, so that writes up to there cannot fail.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; the content is as before.
    pub fn reserve(&mut self, capacity: usize) -> Result<()> {
        if self.has_room(capacity) {
            return Ok(());
        }
        // Growing by halves keeps appends linear in all.
        self.reserve_exact(capacity.max(self.len.saturating_add(self.len / 2)).max(64))
    }

    /// As [`reserve`](Self::reserve), without a reserve for more.
    pub(crate) fn reserve_exact(&mut self, capacity: usize) -> Result<()> {
        let wanted = capacity.max(self.len).max(1);
        if self.has_room(wanted) {
            return Ok(());
        }
        let failed = Error::new(ErrorKind::MemoryAlloc, "no memory for the frame");
        if isize::try_from(wanted).is_err() {
            return Err(failed);
        }
        let moved = if !self.owns() {
            // SAFETY: allocating has no preconditions.
            let fresh = NonNull::new(unsafe { libc::malloc(wanted) }.cast::<u8>()).ok_or(failed)?;
            // SAFETY: both hold at least `len` bytes (none are read if `data` dangles, as `len` is 0 then), and the
            // fresh allocation overlaps nothing.
            unsafe { copy::copy_raw(self.data.as_ptr(), fresh.as_ptr(), self.len) };
            fresh
        } else {
            // SAFETY: `data` is an allocation of this buffer.
            let raw = unsafe { libc::realloc(self.data.as_ptr().cast(), wanted) };
            NonNull::new(raw.cast::<u8>()).ok_or(failed)?
        };
        pages::prefer_huge(moved.as_ptr(), wanted);
        self.data = moved;
        self.memory = Memory::Own { capacity: wanted };
        Ok(())
    }

    /// Whether this number of bytes can be written.
    fn has_room(&self, wanted: usize) -> bool {
        matches!(self.memory, Memory::Own { capacity } if wanted <= capacity)
    }

    /// Writes `bytes` at `at`; a gap before it is filled with zeros.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; the content is as before.
    pub fn write_at(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let end = at.checked_add(bytes.len());
        let end = end.ok_or(Error::new(ErrorKind::MemoryAlloc, "frame too large for memory"))?;
        self.reserve(end.max(self.len))?;
        if at > self.len {
            // SAFETY: `len < at <= capacity`, so the gap lies inside the allocation, which is this buffer's own.
            unsafe { ptr::write_bytes(self.data.as_ptr().add(self.len), 0, at - self.len) };
        }
        // SAFETY: `end <= capacity` bytes are allocated; `bytes` is a shared slice, and this buffer is borrowed
        // mutably, so they do not overlap.
        unsafe { copy::copy_raw(bytes.as_ptr(), self.data.as_ptr().add(at), bytes.len()) };
        self.len = self.len.max(end);
        Ok(())
    }

    /// Cuts the content off after `len` bytes, or extends it by zeros to just that length, without room for more.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; the content is as before.
    pub fn resize(&mut self, len: usize) -> Result<()> {
        if len > self.len {
            self.reserve_exact(len)?;
            // SAFETY: `len` bytes are allocated, and not borrowed.
            unsafe { ptr::write_bytes(self.data.as_ptr().add(self.len), 0, len - self.len) };
        }
        self.len = len;
        Ok(())
    }

    /// Copies `len` bytes from `from` to `to` inside the buffer; the ranges may overlap.
    ///
    /// # Panics
    ///
    /// If a range reaches past the end or the memory is borrowed.
    pub fn copy_within(&mut self, from: usize, to: usize, len: usize) {
        assert!(!self.is_borrowed() && from.max(to).checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: both ranges lie inside the first `len` bytes, which are initialised and this buffer's own.
        unsafe { ptr::copy(self.data.as_ptr().add(from), self.data.as_ptr().add(to), len) };
    }

    /// Cuts the content off after `len` bytes. Memory is given back when much is unused then. A content that is no
    /// longer than that is left alone, and so is room that was made for more.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        if self.capacity() / 4 > len {
            self.shrink();
        }
    }

    /// Gives unused memory back.
    pub fn shrink(&mut self) {
        let may_go_on = match self.memory {
            Memory::Own { capacity } => capacity > self.len,
            Memory::OwnWithSlack => true,
            Memory::None | Memory::Borrowed => false,
        };
        if may_go_on && self.len > 0 {
            // SAFETY: `data` is an allocation of this buffer.
            let raw = unsafe { libc::realloc(self.data.as_ptr().cast(), self.len) };
            if let Some(data) = NonNull::new(raw.cast::<u8>()) {
                self.data = data;
                self.memory = Memory::Own { capacity: self.len };
            }
        }
    }
}

impl Default for MallocBuf {
    fn default() -> MallocBuf {
        MallocBuf::new()
    }
}

impl Deref for MallocBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised, by this buffer or by whoever lent the memory; a dangling
        // `data` comes with `len` 0.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl AsMut<[u8]> for MallocBuf {
    fn as_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl Drop for MallocBuf {
    fn drop(&mut self) {
        if self.owns() {
            // SAFETY: `data` is an allocation of this buffer, and nobody can use it any more.
            unsafe { libc::free(self.data.as_ptr().cast()) };
        }
    }
}

impl std::fmt::Debug for MallocBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MallocBuf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(miri)))]
    #[test]
    fn memory_that_grows_stays_one_mapping() {
        let mut buf = MallocBuf::new();
        let part = vec![7; 1 << 20];
        for _ in 0..80 {
            buf.write_at(buf.len(), &part).unwrap();
        }
        assert_eq!(crate::testing::mappings_in(&buf), 1);
    }

    #[test]
    fn writing_grows_and_fills_gaps_with_zeros() {
        let mut buf = MallocBuf::new();
        assert!(buf.is_empty());
        buf.write_at(3, b"ab").unwrap();
        assert_eq!(&buf[..], b"\0\0\0ab");
        buf.truncate(4);
        buf.write_at(6, b"c").unwrap();
        assert_eq!(&buf[..], b"\0\0\0a\0\0c");
        buf.copy_within(3, 4, 3);
        assert_eq!(&buf[..], b"\0\0\0aa\0\0");
    }

    #[test]
    fn memory_is_given_back_where_much_is_cut_off() {
        let mut buf = MallocBuf::copy_of(&[7; 100]).unwrap();
        buf.reserve_exact(1000).unwrap();
        buf.truncate(100);
        assert_eq!((buf.len(), buf.capacity()), (100, 1000));
        buf.truncate(20);
        assert_eq!((&buf[..], buf.capacity()), (&[7; 20][..], 20));
    }

    #[test]
    fn borrowed_memory_is_copied_by_the_first_write() {
        let mut own = *b"hello";
        // SAFETY: `own` outlives `buf` and is not written.
        let mut buf = unsafe { MallocBuf::borrow(NonNull::from(&mut own).cast(), 5) };
        assert_eq!(&buf[..], b"hello");
        buf.write_at(0, b"J").unwrap();
        assert_eq!(&buf[..], b"Jello");
        assert!(!buf.is_borrowed());
        assert_eq!(own, *b"hello");
    }

    #[test]
    fn c_can_free_what_is_given_away() {
        let (data, len) = MallocBuf::copy_of(b"xyz").unwrap().into_raw();
        assert_eq!(len, 3);
        // SAFETY: `into_raw` hands over memory from malloc.
        unsafe { libc::free(data.cast()) };
    }

    #[test]
    fn no_bytes_are_memory_too() {
        let zeroed = MallocBuf::zeroed(0).unwrap();
        // SAFETY: there are no bytes that would have to be set.
        let none = |room: &mut [MaybeUninit<u8>]| unsafe { &mut *(&raw mut *room as *mut [u8]) };
        let filled = MallocBuf::filled(0, &|room| Ok(none(room))).unwrap();
        for empty in [zeroed, filled, MallocBuf::copy_of(&[]).unwrap()] {
            let (data, len) = empty.into_raw();
            assert!(!data.is_null() && len == 0);
            // SAFETY: `into_raw` hands over memory from malloc.
            unsafe { libc::free(data.cast()) };
        }
        assert_eq!(&MallocBuf::zeroed(2).unwrap()[..], [0, 0]);
        assert!(MallocBuf::new().into_raw().0.is_null());
    }

    #[test]
    fn memory_of_unknown_size_is_written_after_it_was_moved_or_shrunk() {
        for shrink in [false, true] {
            let (data, len) = MallocBuf::copy_of(b"hello, world").unwrap().into_raw();
            assert_eq!(len, 12);
            // SAFETY: the memory is from malloc, has more than five bytes, and is this buffer's from now on.
            let mut buf = unsafe { MallocBuf::from_malloc_with_slack(NonNull::new(data).unwrap(), 5) };
            if shrink {
                buf.shrink();
            }
            buf.write_at(5, b"!").unwrap();
            assert_eq!(&buf[..], b"hello!");
        }
    }

    #[test]
    fn impossible_sizes_are_an_error() {
        let mut buf = MallocBuf::copy_of(b"x").unwrap();
        assert_eq!(buf.write_at(usize::MAX, b"y").unwrap_err().kind(), ErrorKind::MemoryAlloc);
        assert_eq!(buf.reserve(usize::MAX / 2 + 1).unwrap_err().kind(), ErrorKind::MemoryAlloc);
        assert_eq!(&buf[..], b"x");
    }
}
