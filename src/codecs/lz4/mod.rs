//! LZ4: raw blocks, one independent block per stream.
//!
//! An encoder of our own for long streams, which makes the bytes of the reference implementation, and a decoder, which
//! also serves LZ4HC. Short streams, and those with a dictionary, are the reference implementation's.
//!
//! Its encoder's table lives on between streams, and LZ4 resets it the fast way, which saves most of the time of short
//! streams. Even so, output depends on the arguments alone. For inputs from 4 KiB on, the reset is a full one. For
//! shorter ones, the table is indexed by a hash of the very four bytes that must match; so an empty entry has the same
//! effect as one of an earlier stream, which is out of reach.

mod decode;
mod encode;
pub(super) mod output;
#[cfg(test)]
mod tests;

pub(crate) use decode::{decompress, decompress_prefix, input_for};

#[cfg(feature = "system-lz4")]
use super::lz4_system::{LZ4_attach_dictionary, LZ4_compress_fast_extState_fastReset};
use crate::error::{ErrorKind, Result, ensure};
use crate::memory::{copy_of, made, zeroed};
#[cfg(not(feature = "system-lz4"))]
use lz4_sys as _; // Links the built-in library.
use std::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    fn LZ4_versionNumber() -> c_int;
    fn LZ4_sizeofState() -> c_int;
    fn LZ4_initStream(buffer: *mut c_void, size: usize) -> *mut c_void;
    #[cfg(not(feature = "system-lz4"))]
    fn LZ4_compress_fast_extState_fastReset(
        state: *mut c_void,
        src: *const c_char,
        dest: *mut c_char,
        src_size: c_int,
        dest_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_loadDict(stream: *mut c_void, dict: *const c_char, size: c_int) -> c_int;
    #[cfg(not(feature = "system-lz4"))]
    fn LZ4_attach_dictionary(working: *mut c_void, dictionary: *const c_void);
    fn LZ4_compress_fast_continue(
        stream: *mut c_void,
        src: *const c_char,
        dest: *mut c_char,
        src_size: c_int,
        dest_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_usingDict(
        src: *const c_char,
        dest: *mut c_char,
        src_size: c_int,
        dest_capacity: c_int,
        dict: *const c_char,
        dict_size: c_int,
    ) -> c_int;
}

/// Memory for a state of LZ4 or LZ4HC, aligned as the library wants it.
pub(super) struct State(Box<[u64]>);

impl State {
    /// Zeroed memory of at least `size` bytes.
    pub(super) fn new(size: usize) -> Result<State> {
        Ok(State(zeroed(size.div_ceil(8))?.into_boxed_slice()))
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    pub(super) fn as_ptr(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    pub(super) fn size(&self) -> usize {
        self.0.len() * 8
    }

    /// Makes this the state that `other` is, which has the same size.
    pub(super) fn copy_from(&mut self, other: &State) {
        self.0.copy_from_slice(&other.0);
    }
}

/// A length as LZ4's `int`. Streams are at most 512 MiB long and hostile sizes are bounded by the chunk.
pub(super) fn int(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(c_int::MAX)
}

/// LZ4's acceleration for a compression level from 1 to 9.
fn acceleration(clevel: u8) -> usize {
    usize::from(10 - clevel.clamp(1, 9))
}

/// Whether long streams are ours. The reference makes other bytes where numbers are stored or addressed in other ways,
/// and so may the system's version of it.
pub(super) const OURS: bool =
    cfg!(all(target_endian = "little", target_pointer_width = "64", not(feature = "system-lz4")));

/// The fast encoder.
pub(crate) struct Encoder {
    reference: State,
    /// Made for the first stream that it is for.
    ours: Option<encode::Encoder>,
}

impl Encoder {
    pub(crate) fn new() -> Result<Encoder> {
        // SAFETY: the function only returns a constant.
        let size = unsafe { LZ4_sizeofState() };
        let mut reference = State::new(usize::try_from(size).expect("a size is positive"))?;
        let size = reference.size();
        // SAFETY: the state is ours and `size` bytes long.
        unsafe { LZ4_initStream(reference.as_mut_ptr(), size) };
        Ok(Encoder { reference, ours: None })
    }

    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let acceleration = acceleration(clevel);
        if OURS && src.len() >= encode::MIN_INPUT {
            let ours = made(&mut self.ours, encode::Encoder::new)?;
            return Ok(ours.compress(acceleration, src, dest).unwrap_or(0));
        }
        Ok(self.compress_by_reference(acceleration, src, dest))
    }

    /// As [`compress`](Self::compress), whatever the length.
    fn compress_by_reference(&mut self, acceleration: usize, src: &[u8], dest: &mut [u8]) -> usize {
        let state = self.reference.as_mut_ptr();
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        let (len, room, acceleration) = (int(src.len()), int(dest.len()), int(acceleration));
        // SAFETY: the state has the size that LZ4 asked for; the sizes are those of the slices.
        let written =
            unsafe { LZ4_compress_fast_extState_fastReset(state, from, to, len, room, acceleration) };
        usize::try_from(written).unwrap_or(0)
    }

    /// As [`compress`](Self::compress), with the dictionary as history.
    pub(crate) fn compress_with(&mut self, dict: &Dict, clevel: u8, src: &[u8], dest: &mut [u8]) -> usize {
        let (state, size) = (self.reference.as_mut_ptr(), self.reference.size());
        // SAFETY: `state` points to `size` bytes of our own.
        unsafe { LZ4_initStream(state, size) };
        // SAFETY: the stream was just initialised; the dictionary's stream and bytes outlive this call.
        unsafe { LZ4_attach_dictionary(state, dict.state.as_ptr()) };
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        let (len, room, acceleration) = (int(src.len()), int(dest.len()), int(acceleration(clevel)));
        // SAFETY: as above; the sizes are those of the slices.
        let written = unsafe { LZ4_compress_fast_continue(state, from, to, len, room, acceleration) };
        usize::try_from(written).unwrap_or(0)
    }
}

/// A dictionary, digested once and shared by all streams of a chunk.
pub(crate) struct Dict {
    state: State,
    /// `state` points into these bytes.
    _bytes: Box<[u8]>,
}

impl Dict {
    pub(crate) fn new(bytes: &[u8]) -> Result<Dict> {
        let bytes = copy_of(bytes)?.into_boxed_slice();
        let mut state = Encoder::new()?.reference;
        // SAFETY: the stream was initialised; the bytes are kept beside it and never move, being boxed.
        unsafe { LZ4_loadDict(state.as_mut_ptr(), bytes.as_ptr().cast(), int(bytes.len())) };
        Ok(Dict { state, _bytes: bytes })
    }
}

/// Decompresses `src` with `dict` as history, into exactly `dest.len()` bytes.
pub(crate) fn decompress_with(dict: &[u8], src: &[u8], dest: &mut [u8]) -> Result<()> {
    // SAFETY: the sizes are those of the slices; LZ4 checks the stream against them.
    let written = unsafe {
        LZ4_decompress_safe_usingDict(
            src.as_ptr().cast(),
            dest.as_mut_ptr().cast(),
            int(src.len()),
            int(dest.len()),
            dict.as_ptr().cast(),
            int(dict.len()),
        )
    };
    ensure(usize::try_from(written) == Ok(dest.len()), ErrorKind::Data, "damaged LZ4 stream")
}

/// The version of LZ4, as text.
pub(crate) fn version() -> String {
    // SAFETY: the function only returns a constant.
    let number = unsafe { LZ4_versionNumber() };
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}
