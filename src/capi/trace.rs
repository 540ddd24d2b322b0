//! Messages to stderr: failures if `BLOSC_TRACE` is set, and what the library does if `BLOSC_INFO` is.

use super::environment::is_set;
#[cfg(unix)]
use crate::cancel;
use crate::chunk::{CParams, blocks};
use crate::error::Error;

/// Prints a message about a failure if `BLOSC_TRACE` is set.
pub(crate) fn message(message: &str) {
    if is_set(b"TRACE") {
        print("error", message);
    }
}

/// Prints a failure if `BLOSC_TRACE` is set.
pub(crate) fn error(error: Error) {
    if is_set(b"TRACE") {
        print("error", &format!("{error} ({})", error.code()));
    }
}

/// Prints a message if `BLOSC_INFO` is set.
pub(crate) fn info(message: impl FnOnce() -> String) {
    if is_set(b"INFO") {
        print("INFO", &message());
    }
}

/// Prints what a compression of `nbytes` bytes is going to use, if `BLOSC_INFO` is set.
#[inline]
pub(crate) fn compression(params: &CParams, nbytes: usize) {
    if has_whole_item(params, nbytes) && is_set(b"INFO") {
        print("INFO", &summary(params, nbytes));
    }
}

/// As [`compression`] where the environment was read already: `wanted` tells whether `BLOSC_INFO` is set.
pub(crate) fn compression_if(wanted: bool, params: &CParams, nbytes: usize) {
    if wanted && has_whole_item(params, nbytes) {
        print("INFO", &summary(params, nbytes));
    }
}

/// Whether there is anything to tell of `nbytes` bytes.
fn has_whole_item(params: &CParams, nbytes: usize) -> bool {
    params.typesize > 0 && nbytes >= params.typesize
}

/// What a compression of `nbytes` bytes is going to use. The split mode is told as what comes of it: 1 if blocks are
/// split, else 0.
#[cold]
fn summary(params: &CParams, nbytes: usize) -> String {
    format!(
        "compcode: {}, clevel: {}, blocksize: {}, splitmode: {}, typesize: {}",
        params.compcode,
        params.clevel,
        blocks::effective_blocksize(params, nbytes),
        i32::from(blocks::Layout::new(params, nbytes).split),
        params.typesize
    )
}

/// Prints a line to stderr. Not with `eprintln!`: its lock may be held by a thread that a `fork` has left behind.
fn print(kind: &str, message: &str) {
    let line = format!("[{kind}] - {message}\n");
    #[cfg(unix)]
    {
        use std::io::Write;
        use std::mem::ManuallyDrop;
        use std::os::fd::FromRawFd;
        // SAFETY: `ManuallyDrop` leaves the descriptor open. If the application has closed it, writing fails, or goes
        // to what it has opened in its place, as all its messages do.
        let mut stderr = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(libc::STDERR_FILENO) });
        let _ = cancel::deferred(|| stderr.write_all(line.as_bytes())); // nobody to tell
    }
    #[cfg(not(unix))]
    eprint!("{line}");
}
