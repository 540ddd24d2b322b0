//! LZ4HC: the slow encoder of the LZ4 format. Its streams are decoded by [`super::lz4`].
//!
//! For all but the lowest levels and very short streams there is an encoder of our own, where the CPU has AVX2; it
//! writes the same bytes as the reference implementation. The reference compresses all else, and with dictionaries.
//!
//! Tables live on between streams and are reset rather than cleared: entries of earlier streams lie more than 64 KiB
//! back and are never matched, so the output depends on the arguments alone.

#[cfg(target_arch = "x86_64")]
mod encode;
mod novelty;

#[cfg(target_arch = "x86_64")]
use super::lz4::OURS;
use super::lz4::{State, int};
use crate::error::Result;
use crate::memory::{copy_of, grow, made};
use novelty::Novelty;
use std::ffi::{c_char, c_int, c_void};

#[cfg(feature = "system-lz4")]
use super::lz4_system::{LZ4_attach_HC_dictionary, LZ4_compress_HC_extStateHC_fastReset};

unsafe extern "C" {
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_initStreamHC(buffer: *mut c_void, size: usize) -> *mut c_void;
    fn LZ4_resetStreamHC_fast(stream: *mut c_void, level: c_int);
    #[cfg(not(feature = "system-lz4"))]
    fn LZ4_compress_HC_extStateHC_fastReset(
        state: *mut c_void,
        src: *const c_char,
        dest: *mut c_char,
        src_size: c_int,
        dest_capacity: c_int,
        level: c_int,
    ) -> c_int;
    fn LZ4_loadDictHC(stream: *mut c_void, dict: *const c_char, size: c_int) -> c_int;
    #[cfg(not(feature = "system-lz4"))]
    fn LZ4_attach_HC_dictionary(working: *mut c_void, dictionary: *const c_void);
    fn LZ4_compress_HC_continue(
        stream: *mut c_void,
        src: *const c_char,
        dest: *mut c_char,
        src_size: c_int,
        dest_capacity: c_int,
    ) -> c_int;
}

/// An initialised `LZ4_streamHC_t`.
fn new_state() -> Result<State> {
    // SAFETY: the function only returns a constant.
    let size = unsafe { LZ4_sizeofStateHC() };
    let mut state = State::new(usize::try_from(size).expect("a size is positive"))?;
    let size = state.size();
    // SAFETY: the state is ours and `size` bytes long.
    unsafe { LZ4_initStreamHC(state.as_mut_ptr(), size) };
    Ok(state)
}

/// From this level on, LZ4 looks for a match at each byte. Below, it soon hurries through what has none.
const THOROUGH: u8 = 3;
/// Streams of up to this many bytes are compressed into memory that they certainly fit in.
const SHORT: usize = 16 << 10;

/// Most bytes that the LZ4 stream of `n` bytes takes.
const fn longest(n: usize) -> usize {
    n + n / 255 + 16
}

/// The high-compression encoder.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Made for the first stream that it is for.
    reference: Option<State>,
    novelty: Novelty,
    #[cfg(target_arch = "x86_64")]
    ours: encode::Encoder,
    /// A short stream on its way.
    whole: Vec<u8>,
}

impl Encoder {
    /// Compresses `src` into `dest`; returns the compressed size, or 0 if it does not fit.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn compress(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        if clevel >= THOROUGH && self.novelty.rules_out(src, dest.len()) {
            return Ok(0);
        }
        #[cfg(target_arch = "x86_64")]
        if OURS && encode::is_for(clevel, src) {
            return Ok(self.ours.compress(clevel, src, dest)?.unwrap_or(0));
        }
        let longest = longest(src.len());
        if src.len() > SHORT || longest <= dest.len() {
            return self.compress_by_reference(clevel, src, dest);
        }
        // After a stream that does not fit in, LZ4 clears all its state, which takes longer than a short stream does.
        let mut whole = std::mem::take(&mut self.whole);
        grow(&mut whole, longest)?;
        let len = self.compress_by_reference(clevel, src, &mut whole[..longest])?;
        let fits = dest.get_mut(..len).map(|dest| dest.copy_from_slice(&whole[..len])).is_some();
        self.whole = whole;
        Ok(if fits { len } else { 0 })
    }

    /// As [`compress`](Self::compress), by the reference implementation whatever the stream.
    fn compress_by_reference(&mut self, clevel: u8, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let state = made(&mut self.reference, new_state)?.as_mut_ptr();
        let level = c_int::from(clevel);
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        let (len, room) = (int(src.len()), int(dest.len()));
        // SAFETY: the state was initialised; the sizes are those of the slices.
        let written = unsafe { LZ4_compress_HC_extStateHC_fastReset(state, from, to, len, room, level) };
        Ok(usize::try_from(written).unwrap_or(0))
    }

    /// As [`compress`](Self::compress), with the dictionary as history; `clevel` is that of the dictionary.
    pub(crate) fn compress_with(&mut self, dict: &Dict, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let reference = made(&mut self.reference, new_state)?;
        if dict.level < c_int::from(THOROUGH) {
            // LZ4 misses much of a dictionary that is attached, if the stream is short.
            reference.copy_from(&dict.state);
        } else {
            let state = reference.as_mut_ptr();
            // SAFETY: the state was initialised.
            unsafe { LZ4_resetStreamHC_fast(state, dict.level) };
            // SAFETY: the dictionary's stream and bytes outlive this call.
            unsafe { LZ4_attach_HC_dictionary(state, dict.state.as_ptr()) };
        }
        let state = reference.as_mut_ptr();
        let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
        // SAFETY: the sizes are those of the slices.
        let written = unsafe { LZ4_compress_HC_continue(state, from, to, int(src.len()), int(dest.len())) };
        Ok(usize::try_from(written).unwrap_or(0))
    }
}

/// A dictionary, digested once for one compression level and shared by all streams of a chunk.
pub(crate) struct Dict {
    state: State,
    level: c_int,
    /// `state` points into these bytes.
    _bytes: Box<[u8]>,
}

impl Dict {
    pub(crate) fn new(bytes: &[u8], clevel: u8) -> Result<Dict> {
        let bytes = copy_of(bytes)?.into_boxed_slice();
        let mut state = new_state()?;
        let level = c_int::from(clevel);
        // SAFETY: the state was initialised.
        unsafe { LZ4_resetStreamHC_fast(state.as_mut_ptr(), level) };
        // SAFETY: the bytes are kept beside the stream and never move, being boxed.
        unsafe { LZ4_loadDictHC(state.as_mut_ptr(), bytes.as_ptr().cast(), int(bytes.len())) };
        Ok(Dict { state, level, _bytes: bytes })
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    /// The size of `src` if the dictionary goes into the stream itself.
    fn loaded(bytes: &[u8], clevel: u8, src: &[u8], dest: &mut [u8]) -> usize {
        let mut state = new_state().unwrap();
        let state = state.as_mut_ptr();
        // SAFETY: the state was initialised, and all sizes are those of slices.
        let written = unsafe {
            LZ4_resetStreamHC_fast(state, c_int::from(clevel));
            LZ4_loadDictHC(state, bytes.as_ptr().cast(), int(bytes.len()));
            let (from, to) = (src.as_ptr().cast(), dest.as_mut_ptr().cast());
            LZ4_compress_HC_continue(state, from, to, int(src.len()), int(dest.len()))
        };
        usize::try_from(written).unwrap()
    }

    #[test]
    fn a_dictionary_made_beforehand_is_worth_as_much_as_one_that_is_loaded() {
        let words =
            [&b"temperature"[..], b"pressure", b"alpha", b"beta", b"\"name\":", b"example.com/", b"2024-01-"];
        let mut seed = 1_u32;
        let mut text = Vec::new();
        while text.len() < 40_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.extend_from_slice(words[(seed >> 16) as usize % words.len()]);
        }
        let (bytes, rest) = text.split_at(8000);
        let mut dest = vec![0; 20_000];
        for clevel in 1..=9 {
            let dict = Dict::new(bytes, clevel).unwrap();
            let mut encoder = Encoder::default();
            for len in [500, 1024, 4096, 10_000] {
                let (mut made, mut wanted) = (0, 0);
                for block in rest.chunks_exact(len) {
                    made += encoder.compress_with(&dict, block, &mut dest).unwrap();
                    wanted += loaded(bytes, clevel, block, &mut dest);
                    // What the stream was for before does not matter.
                    let alone = encoder.compress(clevel, block, &mut dest).unwrap();
                    assert_eq!(alone, Encoder::default().compress(clevel, block, &mut dest).unwrap());
                }
                assert!(made <= wanted + wanted / 100, "level {clevel}, {len} bytes: {made} for {wanted}");
            }
        }
    }
}
