//! How rows lie in the first-level cache, and what follows from it.

use super::Lanes;
use crate::pages::LINE;

/// Whether rows that are `stride` bytes apart compete for the same lines of the first-level cache, so that it pays to
/// read or write them in whole lines.
pub(super) fn rows_compete(stride: usize) -> bool {
    stride % 512 == 0
}

/// Blocks of fewer bytes stay in the first-level cache, source and destination.
pub(in crate::filters) const FAR: usize = 16 << 10;
/// Lines are asked for this many bytes before they are written.
const AHEAD: usize = 192;

/// Whether it pays to ask for lines before they are written where stores wait for them: `nrows` rows, `stride` bytes
/// apart, in blocks of `len` bytes. Not where the lines would push each other out of the cache.
pub(in crate::filters) fn pays_to_ask_ahead(nrows: usize, stride: usize, len: usize) -> bool {
    len >= FAR && (nrows <= FEW_ROWS || crowd(nrows, stride) <= FEW_ROWS)
}

/// Asks for the lines of `nrows` rows, `stride` bytes apart, that are written some time after those at `dest[at]`.
///
/// # Safety
///
/// As for [`Lanes`].
#[inline(always)]
pub(in crate::filters) unsafe fn ask_ahead<V: Lanes>(nrows: usize, dest: &[u8], at: usize, stride: usize) {
    for row in 0..nrows {
        // SAFETY: passed on to the caller.
        unsafe { V::ask(dest.as_ptr().wrapping_add(at + row * stride + AHEAD)) };
    }
}

/// If more rows than this compete for the same lines, they push each other out of the first-level cache: it has up to
/// this many ways.
pub(super) const WAYS: usize = 12;
/// Rows of a tile. If more than this compete, it pays to touch whole lines of them.
pub(super) const FEW_ROWS: usize = 8;

/// How many of `nrows` rows that are `stride` bytes apart take the same lines of the first-level cache as the first
/// one, or lines beside those.
pub(super) fn crowd(nrows: usize, stride: usize) -> usize {
    /// Lines of addresses that are equal modulo this are the same.
    const WAY: usize = 4096;
    (0..nrows).filter(|row| (row * stride + LINE - 1) % WAY < 2 * LINE - 1).count()
}
