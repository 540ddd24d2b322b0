//! Codecs: one stream of bytes in, one compressed stream out. A codec never sees a filter.

mod agree;
pub(crate) mod blosclz;
mod builtin;
pub(crate) mod lz4;
#[cfg(feature = "system-lz4")]
mod lz4_system;
pub(crate) mod lz4hc;
mod matches;
mod mem;
pub(crate) mod names;
pub(crate) mod ndlz;
mod place;
pub mod registry;
pub(crate) mod state;
pub(crate) mod zfp;
pub(crate) mod zlib;
pub(crate) mod zstd;

use crate::error::Result;
use crate::format::geometry::Container;
use std::any::Any;

/// What a codec is told besides the bytes of the stream.
#[derive(Clone, Copy)]
pub struct CodecContext<'a> {
    /// Compression level, 1 to 9; 0 when decoding.
    pub clevel: u8,
    /// The codec's meta byte, from the parameters or from the chunk.
    pub meta: u8,
    /// Bytes per item as the chunk records it, 1 to 255.
    pub typesize: usize,
    /// Block size of the chunk in bytes.
    pub blocksize: usize,
    /// The super-chunk around the chunk.
    pub container: Container,
    /// The whole chunk: uncompressed when encoding, compressed when decoding. Empty if there is none.
    pub chunk: &'a [u8],
    /// What the layer above wants to hand through to codecs that it registered itself.
    pub host: Option<&'a (dyn Any + Send + Sync)>,
}

/// What an operation knows about its streams; a registered codec gets its [`CodecContext`] from it.
///
/// The built-in codecs need next to nothing of all that, and a [`CodecContext`] is large enough to show with small
/// chunks.
#[derive(Clone, Copy)]
pub(crate) struct StreamContext<'a> {
    pub(crate) clevel: u8,
    pub(crate) meta: u8,
    pub(crate) typesize: usize,
    pub(crate) blocksize: usize,
    pub(crate) container: &'a Container,
    pub(crate) chunk: &'a [u8],
    /// By reference: copying the two words right after they were written stalls the CPU.
    pub(crate) host: &'a Option<&'a (dyn Any + Send + Sync)>,
}

impl<'a> StreamContext<'a> {
    /// All of it, for a registered codec.
    fn for_codec(&self) -> CodecContext<'a> {
        CodecContext {
            clevel: self.clevel,
            meta: self.meta,
            typesize: self.typesize,
            blocksize: self.blocksize,
            container: *self.container,
            chunk: self.chunk,
            host: *self.host,
        }
    }
}

/// A codec that is registered under an id of its own (32 and above).
pub trait Codec: Send + Sync {
    /// Compresses `src` into `dest` and returns the number of bytes written, at most `dest.len()`.
    ///
    /// 0 means that the stream cannot be compressed into `dest`; it is stored raw then.
    ///
    /// # Errors
    ///
    /// Any error fails the whole chunk.
    fn encode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<usize>;

    /// Decompresses `src` into `dest` and fills all of it.
    ///
    /// # Errors
    ///
    /// `Data` if `src` is damaged or does not yield exactly `dest.len()` bytes.
    fn decode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()>;

    /// Decompresses bytes from byte `start` on of the `len` bytes that `src` holds, without the others, and fills
    /// `dest`; or does nothing, and returns `false`, if the codec cannot do that or it does not pay.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_part(
        &self,
        _cx: &CodecContext<'_>,
        _src: &[u8],
        _len: usize,
        _start: usize,
        _dest: &mut [u8],
    ) -> Result<bool> {
        Ok(false)
    }

    /// Whether [`CodecContext::container`] must be filled in with its n-d geometry.
    fn needs_geometry(&self) -> bool {
        false
    }

    /// What makes two codecs the same, whatever objects they are; none if only the object itself does. Such a codec
    /// takes no more memory when it is registered again.
    fn identity(&self) -> Option<[usize; 3]> {
        None
    }
}

/// The version of the library behind the built-in codec `compcode`, as text; `None` for other codecs.
#[must_use]
pub fn library_version(compcode: u8) -> Option<String> {
    names::BuiltIn::with_code(compcode).map(|codec| (codec.version)())
}
