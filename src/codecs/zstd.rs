//! Zstandard: one frame per stream, by the reference implementation.
//!
//! Contexts are kept between streams. Dictionaries are digested once per chunk and shared by its threads.

use crate::error::{Error, ErrorKind, Result, ensure};
use crate::kept::Share;
use crate::memory::{copy_of, made, no_memory, zeroed};
use std::ffi::c_int;
use std::ptr::{NonNull, null};
use std::time::{Duration, Instant};
use zstd_sys as z;

/// The zstd levels of the compression levels 0 to 9.
const LEVELS: [c_int; 10] = [0, 1, 3, 5, 7, 9, 11, 13, 15, 22];

/// Level of streams that use a dictionary, whatever the compression level, as the C library does.
const DICT_LEVEL: c_int = 1;

/// The size that a zstd function returned, or `None` for one of its error codes.
fn size(code: usize) -> Option<usize> {
    // SAFETY: a pure function of a number.
    (unsafe { z::ZSTD_isError(code) } == 0).then_some(code)
}

/// The size that a zstd function for compression returned, or 0 for the errors that others than lack of memory are: the
/// result does not fit.
///
/// # Errors
///
/// `MemoryAlloc`.
fn compressed_size(code: usize) -> Result<usize> {
    // SAFETY: a pure function of a number.
    let error = unsafe { z::ZSTD_getErrorCode(code) };
    ensure(error != z::ZSTD_ErrorCode::ZSTD_error_memory_allocation, ErrorKind::MemoryAlloc, "no memory")?;
    Ok(size(code).unwrap_or(0))
}

/// Whether zstd refuses a dictionary that it did not digest, for which it gives no reason: `code` is what a function
/// returned that takes its bytes as they are.
///
/// # Errors
///
/// `MemoryAlloc` if it does not: then that was the reason.
fn refusal(code: usize) -> Result<()> {
    compressed_size(code)?;
    size(code).map_or(Ok(()), |_| Err(no_memory()))
}

macro_rules! owned {
    ($(#[$doc:meta])* $name:ident($raw:ty), free: $free:path) => {
        $(#[$doc])*
        struct $name(NonNull<$raw>);

        // SAFETY: zstd's contexts are tied to no thread.
        unsafe impl Send for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the pointer came from the matching create function and is freed once.
                unsafe { $free(self.0.as_ptr()) };
            }
        }
    };
}

owned!(
    /// A compression context.
    CCtx(z::ZSTD_CCtx), free: z::ZSTD_freeCCtx
);
owned!(
    /// A decompression context.
    DCtx(z::ZSTD_DCtx), free: z::ZSTD_freeDCtx
);
owned!(
    /// A digested dictionary for compression.
    CDict(z::ZSTD_CDict), free: z::ZSTD_freeCDict
);
owned!(
    /// A digested dictionary for decompression.
    DDict(z::ZSTD_DDict), free: z::ZSTD_freeDDict
);

// SAFETY: digested dictionaries are only read after their creation.
unsafe impl Sync for CDict {}
// SAFETY: as above.
unsafe impl Sync for DDict {}

/// Whether a stream of `len` bytes that took so long was so slow that a new context takes next to nothing beside it:
/// more than 3.5 nanoseconds per byte. The tables to be cleared are up to 16 times as large as the stream.
fn is_slow(took: Duration, len: usize) -> bool {
    took.as_nanos() * 2 > len as u128 * 7
}

/// Whether zstd has rows of positions to find matches with, see [`Encoder::compress_with_rows`].
fn has_rows(clevel: u8, len: usize) -> bool {
    match clevel {
        3..=5 => len > 16 << 10,
        6 => len > 256 << 10,
        _ => false,
    }
}

/// A compression context, made at the first use. At the highest levels it takes up to twenty times the size of a
/// stream.
pub(crate) struct Encoder {
    context: Option<CCtx>,
    /// What the context takes, in bytes.
    size: usize,
    share: Share,
    /// Whether the last stream with rows was slow.
    was_slow: bool,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { context: None, size: 0, share: Share::NONE, was_slow: false }
    }

    /// Bytes that the context takes.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Frees the context if it is more than a thread should keep.
    pub(crate) fn trim(&mut self) {
        if !self.share.resize(self.size) {
            self.free();
        }
    }

    /// Frees the context.
    fn free(&mut self) {
        (self.context, self.size, self.share) = (None, 0, Share::NONE);
    }

    /// Looks how large the context is after a stream.
    fn measure(&mut self) {
        let context = self.context.as_ref().map_or(null(), |context| context.0.as_ptr().cast_const());
        // SAFETY: the context is valid or null.
        self.size = unsafe { z::ZSTD_sizeof_CCtx(context) };
    }

    fn context(&mut self) -> Result<*mut z::ZSTD_CCtx> {
        let context = made(&mut self.context, || {
            // SAFETY: no arguments.
            NonNull::new(unsafe { z::ZSTD_createCCtx() }).map(CCtx).ok_or_else(no_memory)
        })?;
        Ok(context.0.as_ptr())
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        if has_rows(clevel, src.len()) {
            self.compress_with_rows(clevel, src, dest)
        } else {
            self.compress_at_once(clevel, src, dest)
        }
    }

    /// As [`compress`](Self::compress), where zstd has rows.
    ///
    /// In these, it has a byte of the hash for each position. The rows of a new stream begin with positions of earlier
    /// ones. zstd tells them from its own, but only when the byte is the one that is sought, as it is for some of them;
    /// and the CPU does not guess which. With the empty rows of a new context, most data take 0.85 to 0.95 of the time.
    /// Only for what is compressed so fast that few positions are looked at, making one takes longer than that, and
    /// there is no telling but by trying. The bytes are the same in any case.
    fn compress_with_rows(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        if self.was_slow {
            self.free();
        }
        let start = Instant::now();
        let written = self.compress_at_once(clevel, src, dest);
        self.was_slow = is_slow(start.elapsed(), src.len());
        written
    }

    fn compress_at_once(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let context = self.context()?;
        let level = LEVELS[usize::from(clevel.min(9))];
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        // SAFETY: the context is valid and the sizes are those of the slices.
        let code = unsafe { z::ZSTD_compressCCtx(context, to, dest.len(), from, src.len(), level) };
        self.measure();
        compressed_size(code)
    }

    /// As [`compress`](Self::compress), with a dictionary.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn compress_with(&mut self, dict: &EncodeDict, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let context = self.context()?;
        let (from, to, dict) = (src.as_ptr().cast(), dest.as_mut_ptr().cast(), dict.0.0.as_ptr());
        // SAFETY: context and dictionary are valid and the sizes are those of the slices.
        let code = unsafe { z::ZSTD_compress_usingCDict(context, to, dest.len(), from, src.len(), dict) };
        self.measure();
        compressed_size(code)
    }
}

/// A dictionary for compression.
pub(crate) struct EncodeDict(CDict);

impl EncodeDict {
    /// Digests `bytes`, or tells `None` if zstd refuses them.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn new(bytes: &[u8]) -> Result<Option<EncodeDict>> {
        let (from, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the size is that of the slice, which zstd copies.
        let raw = unsafe { z::ZSTD_createCDict(from, len, DICT_LEVEL) };
        if let Some(raw) = NonNull::new(raw) {
            return Ok(Some(EncodeDict(CDict(raw))));
        }
        let mut encoder = Encoder::new();
        let context = encoder.context()?;
        // SAFETY: the context is valid, and the size that of the slice.
        refusal(unsafe { z::ZSTD_compressBegin_usingDict(context, from, len, DICT_LEVEL) })?;
        Ok(None)
    }
}

/// A dictionary for decompression.
pub(crate) struct DecodeDict {
    digested: DDict,
    bytes: Vec<u8>,
}

impl DecodeDict {
    /// Digests `bytes`.
    ///
    /// # Errors
    ///
    /// `CodecDict` if zstd refuses them, `MemoryAlloc`.
    pub(crate) fn new(bytes: &[u8]) -> Result<DecodeDict> {
        let (from, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the size is that of the slice, which zstd copies.
        let raw = unsafe { z::ZSTD_createDDict(from, len) };
        if let Some(raw) = NonNull::new(raw) {
            let digested = DDict(raw);
            return Ok(DecodeDict { digested, bytes: copy_of(bytes)? });
        }
        let mut decoder = Decoder::new();
        let context = decoder.context()?;
        // SAFETY: the context is valid, and the size that of the slice.
        refusal(unsafe { z::ZSTD_decompressBegin_usingDict(context, from, len) })?;
        Err(Error::new(ErrorKind::CodecDict, "bad Zstandard dictionary"))
    }

    /// Whether these are the bytes that were digested.
    pub(crate) fn is_of(&self, bytes: &[u8]) -> bool {
        self.bytes == bytes
    }
}

/// A decompression context, made at the first use.
pub(crate) struct Decoder(Option<DCtx>);

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder(None)
    }

    fn context(&mut self) -> Result<*mut z::ZSTD_DCtx> {
        let context = made(&mut self.0, || {
            // SAFETY: no arguments.
            NonNull::new(unsafe { z::ZSTD_createDCtx() }).map(DCtx).ok_or_else(no_memory)
        })?;
        Ok(context.0.as_ptr())
    }

    /// Decompresses `src`, which must give exactly `dest.len()` bytes.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged or holds another number of bytes, `MemoryAlloc`.
    pub(crate) fn decompress(&mut self, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let context = self.context()?;
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        // SAFETY: the context is valid and the sizes are those of the slices.
        let code = unsafe { z::ZSTD_decompressDCtx(context, to, dest.len(), from, src.len()) };
        ensure(size(code) == Some(dest.len()), ErrorKind::Data, "damaged Zstandard stream")
    }

    /// Decompresses at least the first `wanted` bytes of `src`, which holds `dest.len()` bytes in all, to the front of
    /// `dest`: block after block of at most 128 KiB. What follows there is arbitrary afterwards.
    ///
    /// # Errors
    ///
    /// `Data` if the stream is damaged as far as it is looked at, `MemoryAlloc`.
    pub(crate) fn decompress_prefix(&mut self, src: &[u8], wanted: usize, dest: &mut [u8]) -> Result<()> {
        let context = self.context()?;
        let damaged = Error::new(ErrorKind::Data, "damaged Zstandard stream");
        let (mut rest, mut done) = (src, 0);
        let mut next = 0;
        while done < wanted {
            if next == 0 {
                // A stream may consist of several frames of Zstandard.
                // SAFETY: the context is valid.
                size(unsafe { z::ZSTD_decompressBegin(context) }).ok_or(damaged)?;
                // SAFETY: the same.
                next = unsafe { z::ZSTD_nextSrcSizeToDecompress(context) };
            }
            let (bytes, behind) = rest.split_at_checked(next).ok_or(damaged)?;
            let free = &mut dest[done..];
            let (from, to) = (bytes.as_ptr().cast(), free.as_mut_ptr().cast());
            // SAFETY: the context is valid and the sizes are those of the slices. What was written before lies right
            // in front of `free`, and nothing moved it.
            let code = unsafe { z::ZSTD_decompressContinue(context, to, free.len(), from, bytes.len()) };
            done += size(code).ok_or(damaged)?;
            rest = behind;
            // SAFETY: the context is valid; it was begun with.
            next = unsafe { z::ZSTD_nextSrcSizeToDecompress(context) };
        }
        Ok(())
    }

    /// As [`decompress`](Self::decompress), with a dictionary.
    ///
    /// # Errors
    ///
    /// As [`decompress`](Self::decompress).
    pub(crate) fn decompress_with(&mut self, dict: &DecodeDict, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let context = self.context()?;
        let (from, to, dict) = (src.as_ptr().cast(), dest.as_mut_ptr().cast(), dict.digested.0.as_ptr());
        // SAFETY: context and dictionary are valid and the sizes are those of the slices.
        let code = unsafe { z::ZSTD_decompress_usingDDict(context, to, dest.len(), from, src.len(), dict) };
        ensure(size(code) == Some(dest.len()), ErrorKind::Data, "damaged Zstandard stream")
    }
}

/// Trains a dictionary of at most `capacity` bytes on samples of the given `sizes`, which lie one after another in
/// `samples`. `None` if zstd finds nothing useful.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn train_dict(samples: &[u8], sizes: &[usize], capacity: usize) -> Result<Option<Vec<u8>>> {
    assert!(sizes.iter().sum::<usize>() <= samples.len());
    let Ok(nsamples) = u32::try_from(sizes.len()) else { return Ok(None) };
    let mut dict: Vec<u8> = zeroed(capacity)?;
    let (from, to) = (samples.as_ptr().cast(), dict.as_mut_ptr().cast());
    // SAFETY: the sizes add up to no more than the samples' length; the capacity is that of `dict`.
    let code = unsafe { z::ZDICT_trainFromBuffer(to, capacity, from, sizes.as_ptr(), nsamples) };
    // The codes of errors are those of all functions of zstd.
    dict.truncate(compressed_size(code)?);
    Ok(size(code).map(|_| dict))
}

/// The version of Zstandard, as text.
pub(crate) fn version() -> String {
    // SAFETY: no arguments; the answer is a constant.
    let number = unsafe { z::ZSTD_versionNumber() };
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{LARGEST, SMALL};
    use crate::testing::{Random, repetitive};

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn a_large_context_is_not_kept() {
        let (src, mut dest) = (vec![7; 4 << 20], vec![0; 1 << 16]);
        let mut encoder = Encoder::new();
        assert_eq!(encoder.size(), 0);
        assert!(encoder.compress(1, &src[..1000], &mut dest).unwrap() > 0);
        let size = encoder.size();
        assert!((1..=SMALL).contains(&size));
        encoder.trim();
        assert_eq!(encoder.size(), size);
        let written = encoder.compress(9, &src, &mut dest).unwrap();
        assert!(encoder.size() > LARGEST);
        encoder.trim();
        assert_eq!(encoder.size(), 0);
        let first = dest[..written].to_vec();
        assert_eq!(encoder.compress(9, &src, &mut dest), Ok(written));
        assert_eq!(dest[..written], first);
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn a_damaged_dictionary_is_refused() {
        let samples = repetitive(3, 40_000);
        let dict = train_dict(&samples, &[400; 100], 4000).unwrap().expect("something is repeated");
        assert!(EncodeDict::new(&dict).unwrap().is_some() && DecodeDict::new(&dict).is_ok());
        // A number, an identifier, and tables.
        let damaged = [&dict[..8], &[0xff; 300]].concat();
        assert!(EncodeDict::new(&damaged).unwrap().is_none());
        assert_eq!(DecodeDict::new(&damaged).err().map(|error| error.kind()), Some(ErrorKind::CodecDict));
    }

    #[test]
    fn a_stream_is_slow_if_a_new_context_takes_next_to_nothing_beside_it() {
        let micros = Duration::from_micros;
        assert!(is_slow(micros(351), 100_000) && !is_slow(micros(350), 100_000));
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn streams_are_those_of_new_encoders_whatever_was_before() {
        let mut random = Random::new(1);
        let mut encoder = Encoder::new();
        let (mut dest, mut expected) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        for round in 0..150 {
            let len = 1 + random.below([2000, 40_000, 40_000, 200_000, 600_000][round % 5]);
            let src = if round % 7 == 0 {
                random.bytes(len)
            } else {
                repetitive(random.below(1 << 30) as u64, len)
            };
            let clevel = [5, 3, 4, 5, 6, 1, 7][random.below(7)];
            encoder.was_slow = random.below(2) == 0;
            let written = encoder.compress(clevel, &src, &mut dest).unwrap();
            assert_eq!(Encoder::new().compress(clevel, &src, &mut expected), Ok(written));
            assert!(dest[..written] == expected[..written], "{len} bytes, level {clevel}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn the_first_bytes_of_several_frames_are_those_of_all_of_them() {
        let data: Vec<u8> = (0..30_000u32).map(|i| ((i % 251) ^ (i >> 9)).to_le_bytes()[0]).collect();
        let (mut stream, mut dest) = (Vec::new(), vec![0; 1 << 16]);
        for frame in data.chunks(10_000) {
            let written = Encoder::new().compress(3, frame, &mut dest).unwrap();
            stream.extend_from_slice(&dest[..written]);
        }
        let mut decoder = Decoder::new();
        for wanted in [1, 9_999, 10_000, 10_001, 25_000, 30_000] {
            let mut dest = vec![0; data.len()];
            decoder.decompress_prefix(&stream, wanted, &mut dest).unwrap();
            assert!(dest[..wanted] == data[..wanted], "{wanted}");
        }
        let cut = &stream[..stream.len() / 2];
        assert!(decoder.decompress_prefix(cut, data.len(), &mut vec![0; data.len()]).is_err());
    }
}
