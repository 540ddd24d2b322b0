//! Large memory: what it costs to take it into use, and to write it.

/// Size of large pages, and what their addresses are multiples of.
const HUGE: usize = 2 << 20;

/// The usual size of pages.
const PAGE: usize = 4 << 10;

/// What glibc's allocator has in front of memory that it got from the system as a mapping of its own.
const MAPPED_HEAD: usize = 16;

/// Asks for large pages where the `len` bytes from `start` on, an allocation or most of one, are to be written for the
/// first time. With the usual pages of 4 KiB, taking memory into use costs more time than filling it, and much more on
/// virtual machines.
///
/// Memory in which there is no room for a large page is left alone: what has advice of its own is a mapping of its own
/// to the system, of which a process may have some ten thousands. For the same reason, the advice is for all pages of
/// an allocation that was mapped: one that is in two mappings cannot grow where it is, and is copied.
///
/// Only advice: whatever comes of it, the content stays.
pub(crate) fn prefer_huge(start: *const u8, len: usize) {
    let at = start as usize;
    let inside = at.next_multiple_of(HUGE)..at.saturating_add(len) / HUGE * HUGE;
    if inside.is_empty() {
        return;
    }
    let is_mapped = at % PAGE == MAPPED_HEAD;
    let advised = if is_mapped { at - MAPPED_HEAD..(at + len).next_multiple_of(PAGE) } else { inside };
    #[cfg(target_os = "linux")]
    {
        let first = start.wrapping_add(advised.start.wrapping_sub(at));
        // SAFETY: this advice does not change the content of any memory, and a range that is not one fails.
        unsafe { libc::madvise(first.cast_mut().cast(), advised.len(), libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = advised;
}

/// Memory of the caller is left alone below this size. Above it, allocators get each piece from the system and give it
/// back as a whole, and the advice with it.
const LARGE_FOREIGN: usize = 32 << 20;

/// As [`prefer_huge`], for a buffer of the caller that is about to be filled.
#[inline]
pub(crate) fn prefer_huge_for(dest: &mut [u8]) {
    if dest.len() >= LARGE_FOREIGN {
        prefer_huge(dest.as_ptr(), dest.len());
    }
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Destinations from this size on, in bytes, are written past the cache: they would push everything else out of it, and
/// be gone from it themselves before they are read.
pub(crate) const PAST_CACHE: usize = 16 << 20;

/// Copies `len` bytes without bringing the destination into the cache, where the CPU can do that. Measured on rows of
/// 1000 bytes of a destination of 122 MiB: 2.3 times as fast.
///
/// # Safety
///
/// As [`copy_nonoverlapping`](std::ptr::copy_nonoverlapping). Before another thread may see the bytes,
/// [`end_past_cache`] is called in this one.
pub(crate) unsafe fn copy_past_cache(src: *const u8, dst: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        // A line is not read if all of it is written.
        let head = (dst as usize).wrapping_neg() % LINE;
        if len > head + LINE {
            let body = (len - head) / LINE * LINE;
            let tail = head + body;
            // SAFETY: the caller's promise; `head <= tail <= len`.
            unsafe {
                std::ptr::copy_nonoverlapping(src, dst, head);
                std::ptr::copy_nonoverlapping(src.add(tail), dst.add(tail), len - tail);
            }
            for at in (head..tail).step_by(16) {
                // SAFETY: within the bytes of the caller's promise; SSE2 is part of x86-64, and `dst + head` is a
                // multiple of 64, so the stores are aligned.
                unsafe {
                    let bytes = _mm_loadu_si128(src.add(at).cast::<__m128i>());
                    _mm_stream_si128(dst.add(at).cast::<__m128i>(), bytes);
                }
            }
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, len) };
}

/// Fills `dest` with repetitions of `pattern`, as [`copy_past_cache`] does. It is the faster the more of them begin
/// where a cache line does.
pub(crate) fn repeat_past_cache(pattern: &[u8], dest: &mut [u8]) {
    for part in dest.chunks_mut(pattern.len().max(1)) {
        // SAFETY: `part` is no longer than `pattern`, and apart from it; the call below ends this.
        unsafe { copy_past_cache(pattern.as_ptr(), part.as_mut_ptr(), part.len()) };
    }
    end_past_cache();
}

/// Asks for the `len` bytes from `start` on to be brought into the cache, where the CPU can be asked; they need not
/// exist.
#[inline(always)]
pub(crate) fn prefetch(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..len).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64; a prefetch has no effect on anything but the cache, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len);
}

/// Puts what [`copy_past_cache`] wrote before whatever this thread writes from now on.
pub(crate) fn end_past_cache() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system says of the memory at `address`: the letters of `VmFlags`.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn flags_of(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            if let Some(flags) = line.strip_prefix("VmFlags:") {
                if inside {
                    return flags.to_owned();
                }
            } else if let Some((from, to)) =
                line.split_whitespace().next().and_then(|word| word.split_once('-'))
            {
                let number = |digits| usize::from_str_radix(digits, 16).ok();
                inside = number(from).is_some_and(|from| from <= address)
                    && number(to).is_some_and(|to| address < to);
            }
        }
        String::new()
    }

    /// Whether the system takes the advice and tells of it. Some emulators do not pass it on.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn tells_of_advice() -> bool {
        let memory = vec![0_u8; 4 * HUGE];
        let inside = memory.as_ptr() as usize + HUGE;
        let first = (inside - inside % HUGE) as *mut libc::c_void;
        // SAFETY: this advice does not change the content of memory.
        unsafe { libc::madvise(first, HUGE, libc::MADV_HUGEPAGE) };
        flags_of(first as usize).split_whitespace().any(|flag| flag == "hg")
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn large_buffers_of_callers_get_large_pages() {
        if !tells_of_advice() {
            println!("skipped: this system has no large pages, or does not tell");
            return;
        }
        for (len, large) in [(LARGE_FOREIGN - 1, false), (LARGE_FOREIGN + 12345, true)] {
            let mut dest = vec![0; len];
            prefer_huge_for(&mut dest);
            let flags = flags_of(dest.as_ptr() as usize + len / 2);
            assert_eq!(flags.split_whitespace().any(|flag| flag == "hg"), large, "{len}: {flags}");
        }
        // Of memory that is not an allocation of its own, only what large pages fill.
        let mut dest = vec![0; LARGE_FOREIGN + HUGE];
        let from = (PAGE + MAPPED_HEAD + 1).wrapping_sub(dest.as_ptr() as usize % PAGE);
        prefer_huge_for(&mut dest[from..]);
        assert!(!flags_of(dest.as_ptr() as usize).contains("hg"), "not before the first large page");
        assert!(flags_of(dest.as_ptr() as usize + 2 * HUGE).contains("hg"));
    }

    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(miri)))]
    #[test]
    fn an_allocation_stays_one_mapping() {
        let mut dest = vec![0_u8; LARGE_FOREIGN + 12345];
        prefer_huge_for(&mut dest);
        assert_eq!(crate::testing::mappings_in(&dest), 1);
    }

    #[test]
    fn copies_past_the_cache_are_copies() {
        let src: Vec<u8> = (0..2000).map(|i| u8::try_from(i % 251).unwrap()).collect();
        for len in [0, 1, 63, 64, 65, 127, 128, 129, 200, 1000] {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (7, 13), (64, 63)] {
                let mut dst = vec![0xEE; 1200];
                // SAFETY: 1000 bytes and less from positions up to 64 lie in both.
                unsafe { copy_past_cache(src[from..].as_ptr(), dst[to..].as_mut_ptr(), len) };
                end_past_cache();
                assert_eq!(dst[to..to + len], src[from..from + len]);
                assert!(dst[..to].iter().chain(&dst[to + len..]).all(|&byte| byte == 0xEE));
            }
        }
    }
}
