//! Loads and copies of fixed size, without bounds checks.
//!
//! Encoders spend their time moving a few bytes between positions that were just compared with the buffers' ends.
//! Checking every access again costs a fifth to a third of the speed; debug builds, and so the tests, do check them.

/// What bytes are multiplied with for a hash, of which the highest bits count: 2^64 divided by the golden ratio, a
/// prime.
pub(crate) const HASH_PRIME: u64 = 0x9e37_79b1_85eb_ca87;

/// The same for groups of four bytes: of 2^32.
pub(crate) const HASH_PRIME_32: u32 = 0x9e37_79b1;

/// The eight bytes at `at`, the first one in the lowest bits.
///
/// # Safety
///
/// `at + 8 <= buf.len()`.
#[inline(always)]
pub(crate) unsafe fn load64(buf: &[u8], at: usize) -> u64 {
    debug_assert!(at + 8 <= buf.len());
    // SAFETY: the caller guarantees eight readable bytes at `at`.
    u64::from_le_bytes(unsafe { buf.as_ptr().add(at).cast::<[u8; 8]>().read() })
}

/// The four bytes at `at`, the first one in the lowest bits.
///
/// # Safety
///
/// `at + 4 <= buf.len()`.
#[cfg(target_arch = "x86_64")] // only the encoder of LZ4HC needs it
#[inline(always)]
pub(crate) unsafe fn load32(buf: &[u8], at: usize) -> u32 {
    debug_assert!(at + 4 <= buf.len());
    // SAFETY: the caller guarantees four readable bytes at `at`.
    u32::from_le_bytes(unsafe { buf.as_ptr().add(at).cast::<[u8; 4]>().read() })
}

/// Writes one byte at `at`.
///
/// # Safety
///
/// `at < buf.len()`.
#[inline(always)]
pub(crate) unsafe fn store8(buf: &mut [u8], at: usize, byte: u8) {
    debug_assert!(at < buf.len());
    // SAFETY: the caller guarantees that `at` is inside.
    unsafe { *buf.get_unchecked_mut(at) = byte };
}

/// Writes `N` bytes at `at`.
///
/// # Safety
///
/// `at + N <= buf.len()`.
#[inline(always)]
pub(crate) unsafe fn store<const N: usize>(buf: &mut [u8], at: usize, bytes: [u8; N]) {
    debug_assert!(at + N <= buf.len());
    // SAFETY: the caller guarantees `N` writable bytes at `at`.
    unsafe { buf.as_mut_ptr().add(at).cast::<[u8; N]>().write(bytes) };
}

/// Copies `N` bytes from `src` to `dest`.
///
/// # Safety
///
/// `from + N <= src.len()` and `to + N <= dest.len()`.
#[inline(always)]
pub(crate) unsafe fn copy<const N: usize>(src: &[u8], from: usize, dest: &mut [u8], to: usize) {
    debug_assert!(from + N <= src.len());
    // SAFETY: the caller guarantees `N` readable bytes at `from`.
    let bytes = unsafe { src.as_ptr().add(from).cast::<[u8; N]>().read() };
    // SAFETY: the caller guarantees `N` writable bytes at `to`.
    unsafe { store(dest, to, bytes) };
}
