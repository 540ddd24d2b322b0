//! The codec of a chunk, its dictionary, and the states of the built-in codecs. Threads keep them, except for the large
//! ones, which are on a shelf for whoever needs one next.

#![forbid(unsafe_code)]

use super::registry::{self, CodecEntry};
use super::{StreamContext, blosclz, lz4, lz4hc, zlib, zstd};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::consts::{codec, codec_format};
use crate::memory::made;
use crate::shelf::{Loan, Shelf};
use std::borrow::Cow;
use std::sync::Arc;

/// The codec that a chunk's streams go through, resolved once per operation.
#[derive(Clone, Copy)]
pub(crate) enum StreamCodec {
    BloscLz,
    Lz4,
    Lz4Hc,
    Zlib,
    Zstd,
    Registered(&'static CodecEntry),
    /// No such codec. Only an error if a stream needs it: stored streams and runs do not.
    Unknown,
}

impl StreamCodec {
    /// The codec with the code `compcode`.
    pub(crate) fn resolve(compcode: Option<u8>) -> StreamCodec {
        match compcode {
            Some(codec::BLOSCLZ) => StreamCodec::BloscLz,
            Some(codec::LZ4) => StreamCodec::Lz4,
            Some(codec::LZ4HC) => StreamCodec::Lz4Hc,
            Some(codec::ZLIB) => StreamCodec::Zlib,
            Some(codec::ZSTD) => StreamCodec::Zstd,
            Some(id) => registry::find(id).map_or(StreamCodec::Unknown, StreamCodec::Registered),
            None => StreamCodec::Unknown,
        }
    }

    /// The format number for the flags byte.
    pub(crate) fn format(&self) -> u8 {
        match self {
            StreamCodec::BloscLz => codec_format::BLOSCLZ,
            StreamCodec::Lz4 | StreamCodec::Lz4Hc => codec_format::LZ4,
            StreamCodec::Zlib => codec_format::ZLIB,
            StreamCodec::Zstd => codec_format::ZSTD,
            StreamCodec::Registered(_) | StreamCodec::Unknown => codec_format::UDCODEC,
        }
    }

    /// The stream version for byte 1 of the header.
    pub(crate) fn versionlz(&self) -> u8 {
        match self {
            StreamCodec::Registered(entry) => entry.version,
            StreamCodec::Unknown => 0xff,
            _ => 1,
        }
    }

    /// How many bytes of a stream without dictionary, from which `len` come, are needed at the most to decode its first
    /// `wanted` bytes, if a zero follows them; what is after that does not matter.
    pub(crate) fn input_for(&self, wanted: usize, len: usize) -> usize {
        match self {
            StreamCodec::Lz4 | StreamCodec::Lz4Hc => lz4::input_for(wanted, len),
            _ => usize::MAX,
        }
    }

    /// Whether streams can be compressed with a dictionary.
    pub(crate) fn takes_dict(&self) -> bool {
        matches!(self, StreamCodec::Lz4 | StreamCodec::Lz4Hc | StreamCodec::Zstd)
    }

    /// Decompresses a part of a stream without the rest, if the codec is one that does so; see [`Codec::decode_part`].
    ///
    /// [`Codec::decode_part`]: super::Codec::decode_part
    ///
    /// # Errors
    ///
    /// `Data` for damaged streams.
    pub(crate) fn decode_part(
        &self,
        cx: &StreamContext<'_>,
        src: &[u8],
        len: usize,
        start: usize,
        dest: &mut [u8],
    ) -> Result<bool> {
        match self {
            StreamCodec::Registered(entry) => {
                let outcome = entry.codec.decode_part(&cx.for_codec(), src, len, start, dest);
                outcome.map_err(only_support_or_data)
            }
            _ => Ok(false),
        }
    }

    /// Whether the codec is one of those that write every byte of their output or fail.
    pub(crate) fn is_built_in(&self) -> bool {
        !matches!(self, StreamCodec::Registered(_))
    }

    /// How many times as long as with the fastest codecs decompression takes, roughly; more than that if nobody knows.
    pub(crate) fn decode_cost(&self) -> usize {
        match self {
            StreamCodec::BloscLz | StreamCodec::Lz4 | StreamCodec::Lz4Hc => 1,
            StreamCodec::Zstd => 2,
            StreamCodec::Zlib => 4,
            StreamCodec::Registered(_) | StreamCodec::Unknown => usize::MAX,
        }
    }

    /// As [`decode_cost`](Self::decode_cost), what compression takes.
    pub(crate) fn encode_cost(&self) -> usize {
        match self {
            StreamCodec::BloscLz | StreamCodec::Lz4 => 3,
            StreamCodec::Lz4Hc | StreamCodec::Zlib | StreamCodec::Zstd => 8,
            StreamCodec::Registered(_) | StreamCodec::Unknown => usize::MAX,
        }
    }

    /// Whether the codec asks for the n-d geometry of the container.
    pub(crate) fn needs_geometry(&self) -> bool {
        matches!(self, StreamCodec::Registered(entry) if entry.codec.needs_geometry())
    }
}

/// A dictionary made ready for compression.
pub(crate) enum EncodeDict {
    Lz4(lz4::Dict),
    Lz4Hc(lz4hc::Dict),
    Zstd(zstd::EncodeDict),
}

impl EncodeDict {
    /// Digests `bytes` for `codec`; `None` if the codec takes no dictionary or refuses this one.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn new(codec: &StreamCodec, clevel: u8, bytes: &[u8]) -> Result<Option<EncodeDict>> {
        Ok(match codec {
            StreamCodec::Lz4 => Some(EncodeDict::Lz4(lz4::Dict::new(bytes)?)),
            StreamCodec::Lz4Hc => Some(EncodeDict::Lz4Hc(lz4hc::Dict::new(bytes, clevel)?)),
            StreamCodec::Zstd => zstd::EncodeDict::new(bytes)?.map(EncodeDict::Zstd),
            _ => None,
        })
    }
}

/// A dictionary made ready for decompression.
pub(crate) enum DecodeDict<'a> {
    /// LZ4's: the bytes themselves.
    Lz4(Cow<'a, [u8]>),
    Zstd(Arc<zstd::DecodeDict>),
    /// The codec has no use for it.
    Ignored,
}

/// Encoders of LZ4HC that no thread is using. Each takes up to 1 MB.
static LZ4HC: Shelf<lz4hc::Encoder> = Shelf::new(lz4hc::Encoder::default);
/// Encoders of zlib that no thread is using. Each takes up to 2.2 MB.
static DEFLATE: Shelf<zlib::Encoder> = Shelf::new(zlib::Encoder::new);

/// Frees the encoders that no thread is using.
pub(crate) fn free_shelved() {
    LZ4HC.clear();
    DEFLATE.clear();
}

/// The states of the built-in codecs, each made at its first use. One thread uses them at a time.
pub(crate) struct CodecStates {
    blosclz: Option<blosclz::Encoder>,
    lz4: Option<lz4::Encoder>,
    lz4hc: Loan<lz4hc::Encoder>,
    deflate: Loan<zlib::Encoder>,
    inflate: Option<zlib::Decoder>,
    zstd: Option<zstd::Encoder>,
    unzstd: Option<zstd::Decoder>,
    /// The dictionary of the last chunk that had one for Zstandard: digesting it takes longer than reading some items.
    last_dict: Option<Arc<zstd::DecodeDict>>,
}

impl CodecStates {
    pub(crate) const fn new() -> CodecStates {
        CodecStates {
            blosclz: None,
            lz4: None,
            lz4hc: Loan::of(&LZ4HC),
            deflate: Loan::of(&DEFLATE),
            inflate: None,
            zstd: None,
            unzstd: None,
            last_dict: None,
        }
    }

    /// Bytes of the largest state that stays here between operations, if it is one of those that can be large.
    #[inline]
    pub(crate) fn largest(&self) -> usize {
        self.zstd.as_ref().map_or(0, zstd::Encoder::size)
    }

    /// Leaves the encoders that are large, whatever the data are, to those who need one next.
    #[inline]
    pub(crate) fn shelve(&mut self) {
        if self.lz4hc.is_out() || self.deflate.is_out() {
            self.shelve_both();
        }
    }

    #[inline(never)]
    fn shelve_both(&mut self) {
        self.lz4hc.end();
        self.deflate.end();
    }

    /// Gives back what memory is more than a thread should keep.
    pub(crate) fn trim(&mut self) {
        if let Some(zstd) = &mut self.zstd {
            zstd.trim();
        }
    }

    /// Makes the dictionary `bytes` ready for decompression by `codec`.
    ///
    /// # Errors
    ///
    /// `CodecDict` if Zstandard refuses it, `MemoryAlloc`.
    pub(crate) fn decode_dict<'a>(
        &mut self,
        codec: &StreamCodec,
        bytes: Cow<'a, [u8]>,
    ) -> Result<DecodeDict<'a>> {
        Ok(match codec {
            StreamCodec::Lz4 | StreamCodec::Lz4Hc => DecodeDict::Lz4(bytes),
            StreamCodec::Zstd => {
                let known = self.last_dict.take().filter(|dict| dict.is_of(&bytes));
                let dict = known.map_or_else(|| Ok(Arc::new(zstd::DecodeDict::new(&bytes)?)), Ok)?;
                self.last_dict = Some(dict.clone());
                DecodeDict::Zstd(dict)
            }
            _ => DecodeDict::Ignored,
        })
    }

    /// Compresses the stream `src` into `dest`, returning the bytes written; 0 means to store the stream raw.
    ///
    /// # Errors
    ///
    /// `CodecSupport` if the codec is unknown, `WriteBuffer` if a registered codec claims more than `dest.len()`,
    /// `Data` if it fails, `MemoryAlloc`.
    pub(crate) fn encode(
        &mut self,
        codec: &StreamCodec,
        dict: Option<&EncodeDict>,
        cx: &StreamContext<'_>,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<usize> {
        let clevel = cx.clevel;
        let written = match (codec, dict) {
            (StreamCodec::Lz4, Some(EncodeDict::Lz4(dict))) => {
                made(&mut self.lz4, lz4::Encoder::new)?.compress_with(dict, clevel, src, dest)
            }
            (StreamCodec::Lz4Hc, Some(EncodeDict::Lz4Hc(dict))) => {
                self.lz4hc.get()?.compress_with(dict, src, dest)?
            }
            (StreamCodec::Zstd, Some(EncodeDict::Zstd(dict))) => {
                self.zstd.get_or_insert_with(zstd::Encoder::new).compress_with(dict, src, dest)?
            }
            (StreamCodec::BloscLz, _) => {
                made(&mut self.blosclz, blosclz::Encoder::new)?.compress(clevel, src, dest)
            }
            (StreamCodec::Lz4, _) => made(&mut self.lz4, lz4::Encoder::new)?.compress(clevel, src, dest)?,
            (StreamCodec::Lz4Hc, _) => self.lz4hc.get()?.compress(clevel, src, dest)?,
            (StreamCodec::Zlib, _) => self.deflate.get()?.compress(clevel, src, dest)?,
            (StreamCodec::Zstd, _) => {
                self.zstd.get_or_insert_with(zstd::Encoder::new).compress(clevel, src, dest)?
            }
            (StreamCodec::Registered(entry), _) => encode_registered(entry, cx, src, dest)?,
            (StreamCodec::Unknown, _) => return Err(unknown_codec()),
        };
        Ok(written)
    }

    /// Decompresses the stream `src`, which must give exactly `dest.len()` bytes.
    ///
    /// # Errors
    ///
    /// `CodecSupport` if the codec is unknown, `Data` for damaged streams, `MemoryAlloc`.
    pub(crate) fn decode(
        &mut self,
        codec: &StreamCodec,
        dict: Option<&DecodeDict<'_>>,
        cx: &StreamContext<'_>,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<()> {
        match (codec, dict) {
            (StreamCodec::Lz4 | StreamCodec::Lz4Hc, Some(DecodeDict::Lz4(dict))) => {
                lz4::decompress_with(dict, src, dest)
            }
            (StreamCodec::Zstd, Some(DecodeDict::Zstd(dict))) => {
                self.unzstd.get_or_insert_with(zstd::Decoder::new).decompress_with(dict, src, dest)
            }
            (StreamCodec::BloscLz, _) => blosclz::decompress(src, dest),
            (StreamCodec::Lz4 | StreamCodec::Lz4Hc, _) => lz4::decompress(src, dest),
            (StreamCodec::Zlib, _) => {
                self.inflate.get_or_insert_with(zlib::Decoder::new).decompress(src, dest)
            }
            (StreamCodec::Zstd, _) => {
                self.unzstd.get_or_insert_with(zstd::Decoder::new).decompress(src, dest)
            }
            (StreamCodec::Registered(entry), _) => decode_registered(entry, cx, src, dest),
            (StreamCodec::Unknown, _) => Err(unknown_codec()),
        }
    }

    /// Decompresses at least the first `wanted` bytes of the stream `src`, which holds `dest.len()` bytes in all, to
    /// the front of `dest`. What follows there is arbitrary afterwards.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub(crate) fn decode_prefix(
        &mut self,
        codec: &StreamCodec,
        dict: Option<&DecodeDict<'_>>,
        cx: &StreamContext<'_>,
        src: &[u8],
        wanted: usize,
        dest: &mut [u8],
    ) -> Result<()> {
        match (codec, dict) {
            _ if wanted == dest.len() => self.decode(codec, dict, cx, src, dest),
            (StreamCodec::BloscLz, _) => blosclz::decompress_prefix(src, wanted, dest),
            (StreamCodec::Lz4 | StreamCodec::Lz4Hc, None) => lz4::decompress_prefix(src, wanted, dest),
            (StreamCodec::Zlib, _) => {
                let inflate = self.inflate.get_or_insert_with(zlib::Decoder::new);
                inflate.decompress_prefix(src, wanted, dest)
            }
            (StreamCodec::Zstd, None) => {
                let unzstd = self.unzstd.get_or_insert_with(zstd::Decoder::new);
                unzstd.decompress_prefix(src, wanted, dest)
            }
            _ => self.decode(codec, dict, cx, src, dest),
        }
    }
}

#[inline(never)]
fn encode_registered(
    entry: &CodecEntry,
    cx: &StreamContext<'_>,
    src: &[u8],
    dest: &mut [u8],
) -> Result<usize> {
    let written = entry.codec.encode(&cx.for_codec(), src, dest).map_err(only_support_or_data)?;
    ensure(written <= dest.len(), ErrorKind::WriteBuffer, "codec wrote past its output")?;
    Ok(written)
}

#[inline(never)]
fn decode_registered(entry: &CodecEntry, cx: &StreamContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
    entry.codec.decode(&cx.for_codec(), src, dest).map_err(only_support_or_data)
}

#[cold]
fn unknown_codec() -> Error {
    Error::new(ErrorKind::CodecSupport, "unknown codec")
}

/// A registered codec fails with `Data` whatever its own code, unless its plugin could not be loaded, or there is no
/// memory.
fn only_support_or_data(error: Error) -> Error {
    match error.kind() {
        ErrorKind::CodecSupport | ErrorKind::MemoryAlloc => error,
        _ => Error::new(ErrorKind::Data, "registered codec failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::geometry::Container;

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn large_encoders_do_not_stay_after_an_operation() {
        let src = [7; 300];
        let cx = StreamContext {
            clevel: 5,
            meta: 0,
            typesize: 1,
            blocksize: src.len(),
            container: &Container::None,
            chunk: &[],
            host: &None,
        };
        let mut states = CodecStates::new();
        for (codec, lz4hc, deflate) in [
            (StreamCodec::Lz4, false, false),
            (StreamCodec::Lz4Hc, true, false),
            (StreamCodec::Zlib, true, true),
        ] {
            assert!(states.encode(&codec, None, &cx, &src, &mut [0; 300]).unwrap() < 300);
            assert_eq!((states.lz4hc.is_out(), states.deflate.is_out()), (lz4hc, deflate));
        }
        states.shelve();
        assert!(!states.lz4hc.is_out() && !states.deflate.is_out());
    }
}
