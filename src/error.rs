//! The library's one error type; it carries the C error code from where the fault is found.

#![forbid(unsafe_code)]

use std::fmt;

/// What a function of this library returns.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// The kinds of failure, with the codes of `BLOSC2_ERROR_*` in `blosc2.h`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum ErrorKind { $($(#[$doc])* $name = $code,)* }

        impl ErrorKind {
            /// Every kind, from -1 downwards.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$name,)*];

            /// The kind with this C code.
            #[must_use]
            pub fn from_code(code: i32) -> Option<ErrorKind> {
                match code { $($code => Some(ErrorKind::$name),)* _ => None }
            }

            /// The text that `blosc2_error_string` gives for this kind.
            #[must_use]
            pub fn text(self) -> &'static str {
                self.c_text().to_str().expect("the texts are ASCII")
            }

            /// [`text`](Self::text), ending in NUL.
            #[must_use]
            pub fn c_text(self) -> &'static std::ffi::CStr {
                match self { $(ErrorKind::$name => $text,)* }
            }
        }
    };
}

error_kinds! {
    /// No better code fits.
    Failure = -1, c"Generic failure";
    /// Reserved by the API; not raised.
    Stream = -2, c"Bad stream";
    /// The compressed data contradict themselves.
    Data = -3, c"Invalid data";
    /// Memory cannot be had.
    MemoryAlloc = -4, c"Memory alloc/realloc failure";
    /// The source ends too early.
    ReadBuffer = -5, c"Not enough space to read";
    /// The destination is too small.
    WriteBuffer = -6, c"Not enough space to write";
    /// The codec is unknown, or its plugin cannot be loaded.
    CodecSupport = -7, c"Codec not supported";
    /// A parameter that the codec cannot work with.
    CodecParam = -8, c"Invalid parameter supplied to codec";
    /// A bad dictionary.
    CodecDict = -9, c"Codec dictionary error";
    /// A format version from the future.
    VersionSupport = -10, c"Version not supported";
    /// A header field out of its range.
    InvalidHeader = -11, c"Invalid value in header";
    /// An argument out of its range.
    InvalidParam = -12, c"Invalid parameter supplied to function";
    /// Reading a file failed.
    FileRead = -13, c"File read failure";
    /// Writing a file failed.
    FileWrite = -14, c"File write failure";
    /// Opening a file failed.
    FileOpen = -15, c"File open failure";
    /// What was asked for does not exist.
    NotFound = -16, c"Not found";
    /// A run of equal bytes is encoded wrongly.
    RunLength = -17, c"Bad run length encoding";
    /// A filter failed or is unknown.
    FilterPipeline = -18, c"Filter pipeline error";
    /// A chunk could not be inserted.
    ChunkInsert = -19, c"Chunk insert failure";
    /// A chunk could not be appended.
    ChunkAppend = -20, c"Chunk append failure";
    /// A chunk could not be replaced.
    ChunkUpdate = -21, c"Chunk update failure";
    /// A size above the 2 GiB limit.
    TwoGbLimit = -22, c"Sizes larger than 2gb not supported";
    /// A super-chunk could not be copied.
    SchunkCopy = -23, c"Super-chunk copy failure";
    /// The frame is of the wrong kind.
    FrameType = -24, c"Wrong type for frame";
    /// A file could not be truncated.
    FileTruncate = -25, c"File truncate failure";
    /// A thread or its scratch memory could not be had.
    ThreadCreate = -26, c"Thread or thread context creation failure";
    /// The postfilter failed.
    Postfilter = -27, c"Postfilter failure";
    /// A special frame could not be made.
    FrameSpecial = -28, c"Special frame failure";
    /// A special super-chunk could not be made or read.
    SchunkSpecial = -29, c"Special super-chunk failure";
    /// An I/O back-end is missing or failed.
    PluginIo = -30, c"IO plugin error";
    /// A file could not be removed.
    FileRemove = -31, c"Remove file failure";
    /// A pointer is null.
    NullPointer = -32, c"Pointer is null";
    /// An index out of range.
    InvalidIndex = -33, c"Invalid index";
    /// There is no metalayer with this name.
    MetalayerNotFound = -34, c"Metalayer has not been found";
    /// A buffer is too large, or the destination smaller than a header.
    MaxBufsizeExceeded = -35, c"Maximum buffersize exceeded";
    /// A tuner failed.
    Tuner = -36, c"Tuner failure";
    /// The lock of a frame cannot be taken.
    Lock = -37, c"Frame lock failure";
}

/// A failure: its C code and what was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    code: i32,
    what: &'static str,
}

impl Error {
    /// A failure of kind `kind`; `what` says what was wrong, in a few words.
    #[must_use]
    pub const fn new(kind: ErrorKind, what: &'static str) -> Error {
        Error { code: kind as i32, what }
    }

    /// A failure reported by a callback of the application, with a negative code of its own.
    #[must_use]
    pub const fn from_callback(code: i32, what: &'static str) -> Error {
        debug_assert!(code < 0);
        Error { code, what }
    }

    /// The negative code for C callers.
    #[must_use]
    pub const fn code(self) -> i32 {
        self.code
    }

    /// The kind; `Failure` for codes that a callback made up.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        ErrorKind::from_code(self.code).unwrap_or(ErrorKind::Failure)
    }

    /// The same as a [`Failure`](ErrorKind::Failure), for functions that report no other kind.
    #[cold]
    pub(crate) const fn to_failure(self) -> Error {
        Error::new(ErrorKind::Failure, self.what)
    }

    /// As [`to_failure`](Self::to_failure), but a frame that cannot be locked remains one.
    #[cold]
    pub(crate) fn to_failure_unless_lock(self) -> Error {
        if self.kind() == ErrorKind::Lock { self } else { self.to_failure() }
    }

    /// What was wrong.
    #[must_use]
    pub const fn what(self) -> &'static str {
        self.what
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind().text(), self.what)
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        std::io::Error::other(error)
    }
}

/// Fails with `kind` unless `holds`.
///
/// # Errors
///
/// `kind`, if `holds` is false.
#[inline]
pub(crate) fn ensure(holds: bool, kind: ErrorKind, what: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(kind, what)) }
}

/// Fails with `InvalidParam` unless `holds`.
///
/// # Errors
///
/// `InvalidParam`, if `holds` is false.
#[inline]
pub(crate) fn require(holds: bool, what: &'static str) -> Result<()> {
    ensure(holds, ErrorKind::InvalidParam, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_run_from_minus_one_without_gaps_and_map_back() {
        for (i, &kind) in ErrorKind::ALL.iter().enumerate() {
            let code = -1 - i32::try_from(i).unwrap();
            assert_eq!(kind as i32, code);
            assert_eq!(ErrorKind::from_code(code), Some(kind));
        }
        assert_eq!(ErrorKind::from_code(0), None);
        assert_eq!(ErrorKind::from_code(-38), None);
    }

    #[test]
    fn callback_codes_are_kept() {
        let e = Error::from_callback(-4711, "user filter");
        assert_eq!(e.code(), -4711);
        assert_eq!(e.kind(), ErrorKind::Failure);
    }
}
