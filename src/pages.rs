//! Memory as the operating system hands it out.

/// Shorter memory is left alone: it has few pages anyway.
const LARGE: usize = 1 << 20;

/// Asks for large pages where `len` bytes from `start` on are to be written for the first time. With the usual pages of
/// 4 KiB, taking memory into use costs more time than filling it, and much more on virtual machines.
///
/// Only advice: whatever comes of it, the content stays.
pub(crate) fn prefer_huge(start: *const u8, len: usize) {
    if len < LARGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let first = start.wrapping_sub(start as usize % PAGE);
        let len = start as usize + len - first as usize;
        // SAFETY: this advice does not change the content of any memory, and a range that is not one fails.
        unsafe { libc::madvise(first.cast_mut().cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = start;
}
