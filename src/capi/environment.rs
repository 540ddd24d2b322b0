//! The environment variables that steer chunks, read at each call in one pass over the environment.

mod variables;

use std::ffi::CStr;

use super::types::blosc2_cparams;
use crate::bytes::leading_number;
use crate::codecs::names::Known;
use crate::error::{Error, ErrorKind, Result};
use crate::format::consts::{DELTA_SLOT, SHUFFLE_SLOT, filter, split};

pub(super) use variables::is_set;

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

impl Compressor {
    fn named(name: &CStr) -> Compressor {
        match Known::with_name(name) {
            Some(Known::BuiltIn(codec)) => Compressor::BuiltIn(codec.code),
            Some(Known::Registered(_)) => Compressor::Registered,
            None => Compressor::Unknown,
        }
    }
}

/// The variables that are set, parsed as far as they make sense.
///
/// The C library reads numbers as a `long`. Where it stores them in something smaller, it checks some before that and
/// some after, which shows with numbers that are too large: the methods do as it does.
#[derive(Default)]
pub(crate) struct Environment {
    clevel: Option<i64>,
    /// The shuffle filter that replaces the caller's choice.
    pub(crate) shuffle: Option<u8>,
    /// Whether DELTA is switched on or off.
    pub(crate) delta: Option<bool>,
    typesize: Option<i64>,
    /// The codec that is asked for.
    pub(crate) compressor: Option<Compressor>,
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

impl Environment {
    /// Reads the environment.
    pub(crate) fn read() -> Environment {
        let mut found = Environment::default();
        variables::for_each(|name, value| {
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
                b"COMPRESSOR" => found.compressor = Some(Compressor::named(value)),
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
        });
        found
    }

    /// The compression level for the functions without context; possibly one that does not exist.
    pub(crate) fn clevel(&self) -> Option<i32> {
        self.clevel.filter(|&level| level >= 0).map(as_int)
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

    /// Overrides the parameters of a context for compression. The codec and its level go to `codec`, which can hold
    /// values that have no place in `cparams`.
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
        match self.compressor {
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
