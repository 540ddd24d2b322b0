//! The environment variables that steer chunks, read at each call in one pass over the environment.

use std::ffi::{CStr, c_char};

use super::blosc1::NAMES;
use super::types::blosc2_cparams;
use crate::chunk::{CParams, blocks};
use crate::codecs::registry;
use crate::error::{Error, ErrorKind, Result};
use crate::format::consts::{filter, split};

/// The variables that are set, parsed as far as they make sense.
#[derive(Default)]
pub(crate) struct Environment<'a> {
    clevel: Option<i64>,
    shuffle: Option<u8>,
    delta: Option<bool>,
    typesize: Option<i64>,
    /// Name of the codec.
    pub(crate) compressor: Option<&'a CStr>,
    blocksize: Option<i64>,
    /// `None` if not set; 0 if not a number.
    nthreads: Option<i64>,
    splitmode: Option<i32>,
    /// Set at all: do not use the global state.
    pub(crate) nolock: bool,
    /// Set at all: write 16-byte headers.
    pub(crate) blosc1_compat: bool,
}

#[cfg(unix)]
unsafe extern "C" {
    /// The environment of the process.
    static environ: *const *const c_char;
}

/// Calls `visit` with the name (without `BLOSC_`) and the value of each variable of ours.
#[cfg(unix)]
fn for_each_variable<'a>(mut visit: impl FnMut(&'a [u8], &'a CStr)) {
    // SAFETY: reading the pointer is what getenv does; changing the environment meanwhile is the client's mistake.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        return;
    }
    loop {
        // SAFETY: the array ends with a null pointer, before which the loop ends.
        let text = unsafe { *entry };
        if text.is_null() {
            return;
        }
        // SAFETY: entries are strings; the comparison ends at the first difference.
        let is_ours =
            b"BLOSC_".iter().enumerate().all(|(i, &byte)| unsafe { *text.add(i).cast::<u8>() } == byte);
        if is_ours {
            // SAFETY: as above.
            let text = unsafe { CStr::from_ptr(text) };
            let bytes = text.to_bytes_with_nul();
            if let Some(equals) = bytes.iter().position(|&byte| byte == b'=') {
                let value = CStr::from_bytes_with_nul(&bytes[equals + 1..]).expect("ends with the only NUL");
                visit(&bytes[6..equals], value);
            }
        }
        // SAFETY: the end was not reached.
        entry = unsafe { entry.add(1) };
    }
}

#[cfg(not(unix))]
fn for_each_variable<'a>(_visit: impl FnMut(&'a [u8], &'a CStr)) {}

/// The leading decimal number of a text, as C's `strtol` reads it; 0 if there is none.
fn leading_number(text: &CStr) -> i64 {
    let text = text.to_bytes().trim_ascii_start();
    let (sign, digits) = match text.split_first() {
        Some((b'-', rest)) => (-1, rest),
        Some((b'+', rest)) => (1, rest),
        _ => (1, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    sign * digits.fold(0i64, |value, &digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')))
}

impl Environment<'_> {
    /// Reads the environment.
    pub(crate) fn read() -> Environment<'static> {
        let mut found = Environment::default();
        for_each_variable(|name, value| {
            let text = value.to_bytes();
            match name {
                b"CLEVEL" => found.clevel = Some(leading_number(value)),
                b"SHUFFLE" => {
                    found.shuffle = match text {
                        b"NOSHUFFLE" => Some(filter::NONE),
                        b"SHUFFLE" => Some(filter::SHUFFLE),
                        b"BITSHUFFLE" => Some(filter::BITSHUFFLE),
                        _ => None,
                    }
                }
                b"DELTA" => {
                    found.delta = match text {
                        b"1" => Some(true),
                        b"0" => Some(false),
                        _ => None,
                    }
                }
                b"TYPESIZE" => found.typesize = Some(leading_number(value)),
                b"COMPRESSOR" => found.compressor = Some(value),
                b"BLOCKSIZE" => found.blocksize = Some(leading_number(value)),
                b"NTHREADS" => found.nthreads = Some(leading_number(value)),
                b"SPLITMODE" => {
                    found.splitmode = match text {
                        b"ALWAYS" => Some(split::ALWAYS),
                        b"NEVER" => Some(split::NEVER),
                        b"AUTO" => Some(split::AUTO),
                        b"FORWARD_COMPAT" => Some(split::FORWARD_COMPAT),
                        _ => None,
                    }
                }
                b"NOLOCK" => found.nolock = true,
                b"BLOSC1_COMPAT" => found.blosc1_compat = true,
                _ => {}
            }
        });
        found
    }

    /// The compression level; values that are out of range are told as one that is.
    pub(crate) fn clevel(&self) -> Option<u8> {
        self.clevel.filter(|&level| level >= 0).map(|level| u8::try_from(level).unwrap_or(u8::MAX))
    }

    /// The shuffle filter that replaces the caller's choice.
    pub(crate) fn shuffle(&self) -> Option<u8> {
        self.shuffle
    }

    /// Whether DELTA is switched on or off.
    pub(crate) fn delta(&self) -> Option<bool> {
        self.delta
    }

    pub(crate) fn typesize(&self) -> Option<i32> {
        self.typesize.filter(|&size| size > 0).map(|size| i32::try_from(size).unwrap_or(i32::MAX))
    }

    pub(crate) fn blocksize(&self) -> Option<i32> {
        self.blocksize.filter(|&size| size > 0).map(|size| i32::try_from(size).unwrap_or(i32::MAX))
    }

    pub(crate) fn splitmode(&self) -> Option<i32> {
        self.splitmode
    }

    /// The number of threads for contexts: positive values, narrowed to 16 bits.
    pub(crate) fn nthreads(&self) -> Option<i16> {
        #[allow(clippy::cast_possible_truncation)] // as documented
        self.nthreads.filter(|&n| n > 0).map(|n| n as i16)
    }

    /// The number of threads for the global decompression.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if it is set but not a number from 1 to 32767.
    pub(crate) fn strict_nthreads(&self) -> Result<Option<i16>> {
        let Some(n) = self.nthreads else { return Ok(None) };
        let n = i16::try_from(n).ok().filter(|&n| n > 0);
        n.map(Some).ok_or(Error::new(ErrorKind::InvalidParam, "BLOSC_NTHREADS out of range"))
    }

    /// Overrides the parameters of a context for compression; `compcode` becomes -1 for an unknown codec.
    ///
    /// # Errors
    ///
    /// `CodecSupport` if the environment names a registered codec.
    pub(crate) fn apply_to_context(&self, cparams: &mut blosc2_cparams, compcode: &mut i32) -> Result<()> {
        if let Some(clevel) = self.clevel() {
            cparams.clevel = clevel;
        }
        if let Some(typesize) = self.typesize() {
            cparams.typesize = typesize;
        }
        match self.shuffle {
            Some(filter::SHUFFLE) if cparams.typesize <= 1 => {}
            Some(id) => cparams.filters[5] = id,
            None => {}
        }
        if self.delta == Some(true) {
            cparams.filters[4] = filter::DELTA;
        }
        if let Some(name) = self.compressor {
            *compcode = match NAMES.code_of(name) {
                Some(code) => i32::from(code),
                None if registry::find_by_name(name).is_some() => {
                    return Err(Error::new(
                        ErrorKind::CodecSupport,
                        "BLOSC_COMPRESSOR names a registered codec",
                    ));
                }
                None => -1,
            };
        }
        if let Some(blocksize) = self.blocksize() {
            cparams.blocksize = blocksize;
        }
        if let Some(nthreads) = self.nthreads() {
            cparams.nthreads = nthreads;
        }
        if let Some(splitmode) = self.splitmode {
            cparams.splitmode = splitmode;
        }
        Ok(())
    }
}

/// Whether the environment variable `BLOSC_<name>` exists.
fn is_set(name: &[u8]) -> bool {
    let mut found = false;
    for_each_variable(|known, _| found |= known == name);
    found
}

/// Prints a message about a failure to stderr if `BLOSC_TRACE` is set.
pub(crate) fn trace_text(message: &str) {
    if is_set(b"TRACE") {
        eprintln!("[error] - {message}");
    }
}

/// Prints a failure to stderr if `BLOSC_TRACE` is set.
pub(crate) fn trace(error: Error) {
    if is_set(b"TRACE") {
        eprintln!("[error] - {error} ({})", error.code());
    }
}

/// Prints a message to stderr if `BLOSC_INFO` is set.
pub(crate) fn info(message: impl FnOnce() -> String) {
    if is_set(b"INFO") {
        eprintln!("[INFO] - {}", message());
    }
}

impl CParams {
    /// Prints what a compression of `nbytes` bytes is going to use, if `BLOSC_INFO` is set. The split mode is told as what
    /// comes of it: 1 if blocks are split, else 0.
    pub(crate) fn print_info(&self, nbytes: usize) {
        if self.typesize > 0 {
            info(|| {
                format!(
                    "compcode: {}, clevel: {}, blocksize: {}, splitmode: {}, typesize: {}",
                    self.compcode,
                    self.clevel,
                    blocks::effective_blocksize(self, nbytes),
                    i32::from(blocks::Layout::new(self, nbytes).split),
                    self.typesize
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(leading_number(c"12"), 12);
        assert_eq!(leading_number(c" -3x"), -3);
        assert_eq!(leading_number(c"+7 8"), 7);
        assert_eq!(leading_number(c"abc"), 0);
        assert_eq!(leading_number(c""), 0);
        assert_eq!(leading_number(c"99999999999999999999"), i64::MAX);
    }

    #[test]
    fn threads_outside_of_the_range_are_refused_only_where_documented() {
        let with = |n| Environment { nthreads: Some(n), ..Environment::default() };
        assert_eq!(with(3).strict_nthreads().unwrap(), Some(3));
        assert!(with(32768).strict_nthreads().is_err());
        assert!(with(0).strict_nthreads().is_err());
        assert_eq!(with(-1).nthreads(), None);
        assert_eq!(Environment::default().strict_nthreads().unwrap(), None);
    }
}
