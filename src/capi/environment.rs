//! The environment variables that steer chunks, read at each call in one pass over the environment.

mod variables;

use std::ffi::CStr;

use super::blosc1::NAMES;
use super::types::blosc2_cparams;
use crate::bytes::leading_number;
#[cfg(unix)]
use crate::cancel;
use crate::chunk::{CParams, blocks};
use crate::codecs::registry;
use crate::error::{Error, ErrorKind, Result};
use crate::format::consts::{DELTA_SLOT, SHUFFLE_SLOT, filter, split};
use variables::Variables;

/// A code that no codec has.
pub(crate) const NO_CODEC: i32 = -1;

/// The codec of a context and its level; the environment can ask for some that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodecChoice {
    pub(crate) compcode: i32,
    pub(crate) clevel: i32,
}

/// What `BLOSC_COMPRESSOR` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressor {
    /// A codec that is always there.
    BuiltIn(u8),
    /// Another codec, which the variable cannot choose.
    Registered,
    /// No codec: what has to be compressed cannot be.
    Unknown,
}

/// The variables that are set, parsed as far as they make sense.
///
/// The C library reads numbers as a `long`. Where it stores them in something smaller, it checks some before that and
/// some after, which shows with numbers that are too large: the methods do as it does.
#[derive(Default)]
pub(crate) struct Environment<'a> {
    clevel: Option<i64>,
    /// The shuffle filter that replaces the caller's choice.
    pub(crate) shuffle: Option<u8>,
    /// Whether DELTA is switched on or off.
    pub(crate) delta: Option<bool>,
    typesize: Option<i64>,
    /// Name of the codec.
    compressor: Option<&'a CStr>,
    blocksize: Option<i64>,
    /// `None` if not set; 0 if not a number.
    nthreads: Option<i64>,
    /// The split mode, see [`split`].
    pub(crate) splitmode: Option<i32>,
    /// Set at all: do not use the global state.
    pub(crate) nolock: bool,
    /// Set at all: write 16-byte headers.
    pub(crate) blosc1_compat: bool,
    /// Set at all: print what compressions use.
    pub(super) info: bool,
}

/// The low 32 bits of a number.
#[allow(clippy::cast_possible_truncation)] // that is what it is for
fn as_int(number: i64) -> i32 {
    number as i32
}

/// The low 16 bits of a number.
#[allow(clippy::cast_possible_truncation)] // that is what it is for
fn as_short(number: i64) -> i16 {
    number as i16
}

/// A size, if it is one.
fn as_size(number: i64) -> Option<i32> {
    Some(as_int(number)).filter(|&size| number > 0 && size > 0)
}

impl Environment<'_> {
    /// Reads the environment.
    pub(crate) fn read() -> Environment<'static> {
        let mut found = Environment::default();
        for (name, value) in Variables::new() {
            let text = value.to_bytes();
            match name {
                b"CLEVEL" => found.clevel = Some(leading_number(text)),
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
                b"TYPESIZE" => found.typesize = Some(leading_number(text)),
                b"COMPRESSOR" => found.compressor = Some(value),
                b"BLOCKSIZE" => found.blocksize = Some(leading_number(text)),
                b"NTHREADS" => found.nthreads = Some(leading_number(text)),
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
                b"INFO" => found.info = true,
                _ => {}
            }
        }
        found
    }

    /// The compression level for the functions without context; possibly one that does not exist.
    pub(crate) fn clevel(&self) -> Option<i32> {
        self.clevel.filter(|&level| level >= 0).map(as_int)
    }

    /// The codec that is asked for.
    pub(crate) fn compressor(&self) -> Option<Compressor> {
        self.compressor.map(|name| match NAMES.code_of(name) {
            Some(code) => Compressor::BuiltIn(code),
            None if registry::find_by_name(name).is_some() => Compressor::Registered,
            None => Compressor::Unknown,
        })
    }

    /// Bytes per item.
    pub(crate) fn typesize(&self) -> Option<i32> {
        self.typesize.and_then(as_size)
    }

    /// The block size in bytes.
    pub(crate) fn blocksize(&self) -> Option<i32> {
        self.blocksize.and_then(as_size)
    }

    /// The number of threads for compression.
    pub(crate) fn nthreads(&self) -> Option<i16> {
        self.nthreads.filter(|&n| n > 0).map(as_short).filter(|&n| n > 0)
    }

    /// The number of threads for decompression with a context; one that is not positive means one.
    pub(crate) fn nthreads_to_decompress(&self) -> Option<i16> {
        self.nthreads.filter(|&n| n > 0).map(as_short)
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

    /// Overrides the parameters of a context for compression. The codec and its level go to `codec`, which can hold values that
    /// have no place in `cparams`.
    ///
    /// # Errors
    ///
    /// `CodecSupport` if the environment names a registered codec.
    pub(crate) fn apply_to_context(
        &self,
        cparams: &mut blosc2_cparams,
        codec: &mut CodecChoice,
    ) -> Result<()> {
        if let Some(clevel) = self.clevel.map(as_int).filter(|&level| level >= 0) {
            codec.clevel = clevel;
        }
        if let Some(typesize) = self.typesize() {
            cparams.typesize = typesize;
        }
        match self.shuffle {
            Some(filter::SHUFFLE) if cparams.typesize <= 1 => {}
            Some(id) => cparams.filters[SHUFFLE_SLOT] = id,
            None => {}
        }
        if self.delta == Some(true) {
            cparams.filters[DELTA_SLOT] = filter::DELTA;
        }
        match self.compressor() {
            Some(Compressor::BuiltIn(code)) => codec.compcode = i32::from(code),
            Some(Compressor::Unknown) => codec.compcode = NO_CODEC,
            Some(Compressor::Registered) => {
                let what = "BLOSC_COMPRESSOR names a registered codec";
                return Err(Error::new(ErrorKind::CodecSupport, what));
            }
            None => {}
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
    Variables::new().any(|(known, _)| known == name)
}

/// Prints a message about a failure to stderr if `BLOSC_TRACE` is set.
pub(crate) fn trace_text(message: &str) {
    if is_set(b"TRACE") {
        print("error", message);
    }
}

/// Prints a failure to stderr if `BLOSC_TRACE` is set.
pub(crate) fn trace(error: Error) {
    if is_set(b"TRACE") {
        print("error", &format!("{error} ({})", error.code()));
    }
}

/// Prints a message to stderr if `BLOSC_INFO` is set.
pub(crate) fn info(message: impl FnOnce() -> String) {
    if is_set(b"INFO") {
        print("INFO", &message());
    }
}

/// Prints a line to stderr. Not with `eprintln!`: its lock may be held by a thread that a `fork` has left behind.
fn print(kind: &str, message: &str) {
    let line = format!("[{kind}] - {message}\n");
    #[cfg(unix)]
    {
        use std::io::Write;
        use std::mem::ManuallyDrop;
        use std::os::fd::FromRawFd;
        // SAFETY: `ManuallyDrop` leaves the descriptor open. If the application has closed it, writing fails, or goes to what it
        // has opened in its place, as all its messages do.
        let mut stderr = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(libc::STDERR_FILENO) });
        let _ = cancel::deferred(|| stderr.write_all(line.as_bytes())); // nobody to tell
    }
    #[cfg(not(unix))]
    eprint!("{line}");
}

impl CParams {
    /// Prints what a compression of `nbytes` bytes is going to use, if `BLOSC_INFO` is set.
    #[inline]
    pub(crate) fn print_info(&self, nbytes: usize) {
        if self.is_told_of(nbytes) && is_set(b"INFO") {
            print("INFO", &self.summary(nbytes));
        }
    }

    /// [`print_info`](Self::print_info) where the environment was read already.
    pub(crate) fn print_info_if_asked(&self, nbytes: usize, env: &Environment<'_>) {
        if self.is_told_of(nbytes) && env.info {
            print("INFO", &self.summary(nbytes));
        }
    }

    /// Whether there is anything to tell: a whole item.
    fn is_told_of(&self, nbytes: usize) -> bool {
        self.typesize > 0 && nbytes >= self.typesize
    }

    /// What a compression of `nbytes` bytes is going to use. The split mode is told as what comes of it: 1 if blocks are
    /// split, else 0.
    #[cold]
    fn summary(&self, nbytes: usize) -> String {
        format!(
            "compcode: {}, clevel: {}, blocksize: {}, splitmode: {}, typesize: {}",
            self.compcode,
            self.clevel,
            blocks::effective_blocksize(self, nbytes),
            i32::from(blocks::Layout::new(self, nbytes).split),
            self.typesize
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_too_large_lose_their_high_bits() {
        let with = |n| Environment {
            nthreads: Some(n),
            clevel: Some(n),
            typesize: Some(n),
            ..Environment::default()
        };
        assert_eq!(with(0x1_0001).nthreads(), Some(1));
        assert_eq!(with(0x8000).nthreads(), None);
        assert_eq!(with(0x8000).nthreads_to_decompress(), Some(i16::MIN));
        assert_eq!(with(0x1_0000_0005).clevel(), Some(5));
        assert_eq!(with(i64::MAX).clevel(), Some(-1));
        assert_eq!(with(-1).clevel(), None);
        assert_eq!(with(0x1_0000_0005).typesize(), Some(5));
        assert_eq!(with(i64::MAX).typesize(), None);
    }

    #[test]
    fn threads_outside_of_the_range_are_refused_only_where_documented() {
        let with = |n| Environment { nthreads: Some(n), ..Environment::default() };
        assert_eq!(with(3).strict_nthreads().unwrap(), Some(3));
        for n in [0, -1, 32768, 65537] {
            assert!(with(n).strict_nthreads().is_err());
        }
        assert_eq!(with(-1).nthreads(), None);
        assert_eq!(Environment::default().strict_nthreads().unwrap(), None);
    }
}
