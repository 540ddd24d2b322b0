//! Names of codecs: those of the built-in ones, and those that are registered.

#![forbid(unsafe_code)]

use super::registry::{self, CodecEntry};
use super::{blosclz, lz4, zlib, zstd};
use crate::format::consts::{codec, codec_format};
use std::ffi::CStr;

/// A codec that is always there, and that chunks may name by their flags alone.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub(crate) name: &'static CStr,
    pub(crate) code: u8,
    /// What the flags of chunks call its streams, and C programs the library behind it.
    pub(crate) format: u8,
    /// The name of the library behind it.
    pub(crate) library: &'static CStr,
    /// The version of that library, as text.
    pub(crate) version: fn() -> String,
}

/// The built-in codecs by ascending code. The first one of a format stands for its library.
pub(crate) static BUILT_IN: [BuiltIn; 5] = [
    BuiltIn {
        name: c"blosclz",
        code: codec::BLOSCLZ,
        format: codec_format::BLOSCLZ,
        library: c"BloscLZ",
        version: || blosclz::VERSION.to_owned(),
    },
    BuiltIn {
        name: c"lz4",
        code: codec::LZ4,
        format: codec_format::LZ4,
        library: c"LZ4",
        version: lz4::version,
    },
    BuiltIn {
        name: c"lz4hc",
        code: codec::LZ4HC,
        format: codec_format::LZ4,
        library: c"LZ4",
        version: lz4::version,
    },
    BuiltIn {
        name: c"zlib",
        code: codec::ZLIB,
        format: codec_format::ZLIB,
        library: c"Zlib",
        version: zlib::version,
    },
    BuiltIn {
        name: c"zstd",
        code: codec::ZSTD,
        format: codec_format::ZSTD,
        library: c"Zstd",
        version: zstd::version,
    },
];

impl BuiltIn {
    fn first(is_wanted: impl Fn(&BuiltIn) -> bool) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|known| is_wanted(known))
    }

    /// The built-in codec with this code.
    pub(crate) fn with_code(code: u8) -> Option<&'static BuiltIn> {
        BuiltIn::first(|known| known.code == code)
    }

    /// The first built-in codec with streams of this format.
    pub(crate) fn with_format(format: u8) -> Option<&'static BuiltIn> {
        BuiltIn::first(|known| known.format == format)
    }
}

/// A codec that was found by its name or its code.
pub(crate) enum Known {
    BuiltIn(&'static BuiltIn),
    Registered(&'static CodecEntry),
}

impl Known {
    /// The codec with this name: a built-in one, else the first that is registered.
    pub(crate) fn with_name(name: &CStr) -> Option<Known> {
        let built_in = BuiltIn::first(|known| known.name == name).map(Known::BuiltIn);
        built_in.or_else(|| registry::find_by_name(name).map(Known::Registered))
    }

    /// The codec with this code.
    pub(crate) fn with_code(code: u8) -> Option<Known> {
        let built_in = BuiltIn::with_code(code).map(Known::BuiltIn);
        built_in.or_else(|| registry::find(code).map(Known::Registered))
    }

    /// Its code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Known::BuiltIn(codec) => codec.code,
            Known::Registered(entry) => entry.id,
        }
    }

    /// Its name; some registered codecs have none.
    pub(crate) fn name(&self) -> Option<&'static CStr> {
        match self {
            Known::BuiltIn(codec) => Some(codec.name),
            Known::Registered(entry) => entry.name,
        }
    }

    /// The code of the library behind it.
    pub(crate) fn library_code(&self) -> u8 {
        match self {
            Known::BuiltIn(codec) => codec.format,
            Known::Registered(entry) => entry.complib,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::state::StreamCodec;

    #[test]
    fn built_in_codecs_are_found_by_name_and_by_code() {
        for codec in &BUILT_IN {
            let found = [Known::with_name(codec.name), Known::with_code(codec.code)];
            for known in found.map(Option::unwrap) {
                assert!(matches!(known, Known::BuiltIn(_)));
                assert_eq!((known.code(), known.name()), (codec.code, Some(codec.name)));
                assert_eq!(known.library_code(), codec.format);
            }
        }
        assert!(Known::with_name(c"").is_none() && Known::with_name(c"lz").is_none());
    }

    #[test]
    fn registered_codecs_are_found_by_name_and_by_code() {
        let found = [Known::with_name(c"ndlz"), Known::with_code(codec::NDLZ)];
        for known in found.map(Option::unwrap) {
            assert!(matches!(known, Known::Registered(_)));
            assert_eq!((known.code(), known.name()), (codec::NDLZ, Some(c"ndlz")));
            assert_eq!(known.library_code(), codec::NDLZ);
        }
    }

    #[test]
    fn formats_are_those_of_the_streams() {
        for codec in &BUILT_IN {
            assert_eq!(StreamCodec::resolve(Some(codec.code)).format(), codec.format, "{:?}", codec.name);
            let first = BuiltIn::with_format(codec.format).unwrap();
            assert_eq!(first.library, codec.library);
        }
        assert!(BuiltIn::with_format(codec_format::UDCODEC).is_none());
    }
}
