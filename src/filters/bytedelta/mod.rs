//! BYTEDELTA: differences of neighbouring bytes inside each byte stream of a shuffled block.
//!
//! The block is `channels` streams of `len / channels` bytes, as SHUFFLE leaves it; the rest is copied. The meta byte
//! of the filter is the number of streams; 0 stands for the type size of the super-chunk. The pipeline calls [`encode`]
//! and [`decode`], or fuses them with a shuffle. [`ByteDeltaBuggy`] is for data of old versions, which started again
//! from 0 at the last multiple of 16 of each stream.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod generic;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(target_arch = "x86_64")]
mod sse2;

use super::{Filter, FilterContext, shuffle};
use crate::error::{Error, ErrorKind, Result};
use crate::fork::Lazy;
use crate::format::geometry::Container;

/// One implementation for a stream, or a part of one.
///
/// Its unsafe functions require a CPU for which `is_available` is true, and arguments as described at each field.
struct Kernel {
    /// For test messages.
    #[cfg_attr(not(test), allow(dead_code))]
    name: &'static str,
    is_available: fn() -> bool,
    /// `(src, dest)` of the same length: differences, starting from 0.
    encode: unsafe fn(&[u8], &mut [u8]),
    /// The same in place.
    encode_in_place: unsafe fn(&mut [u8]),
    /// `(src, dest)` of the same length: the running sum, starting from 0.
    decode: unsafe fn(&[u8], &mut [u8]),
    /// `(width, items)`: adds to each item but the first the one before it, byte by byte and in ascending order.
    /// `None` if that is no faster than to decode before unshuffling.
    sum_items: Option<unsafe fn(usize, &mut [u8])>,
}

/// Every variant compiled for this target, best first; the portable one is last.
static KERNELS: &[Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    avx2::KERNEL,
    #[cfg(target_arch = "x86_64")]
    sse2::KERNEL,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    neon::KERNEL,
    generic::KERNEL,
];

/// The variants that this CPU can run.
fn usable() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().filter(|kernel| (kernel.is_available)())
}

static BEST: Lazy<Kernel> = Lazy::new(|| usable().next().expect("generic always runs"));

/// Bytes that are unshuffled and summed up before the next ones: a multiple of all widths that fits the first-level
/// cache.
const PIECE: usize = 8192;

impl Kernel {
    fn encode(&self, src: &[u8], dest: &mut [u8]) {
        assert!(src.len() == dest.len());
        // SAFETY: `usable` gave out this kernel, so the CPU has its features; the lengths are equal.
        unsafe { (self.encode)(src, dest) }
    }

    fn encode_in_place(&self, bytes: &mut [u8]) {
        // SAFETY: `usable` gave out this kernel, so the CPU has its features.
        unsafe { (self.encode_in_place)(bytes) }
    }

    /// See [`decode_shuffled`].
    fn decode_shuffled(&self, width: usize, src: &[u8], dest: &mut [u8]) -> bool {
        assert!(src.len() == dest.len());
        let Some(sum_items) = self.sum_items.filter(|_| matches!(width, 4 | 8 | 16)) else {
            return false;
        };
        let body = src.len() - src.len() % width;
        let mut start = 0;
        while start < body {
            let end = body.min(start + PIECE);
            shuffle::unshuffle_bytes(width, src, start, &mut dest[start..end]);
            // SAFETY: `usable` gave out this kernel, so the CPU has its features.
            unsafe { sum_items(width, &mut dest[start.saturating_sub(width)..end]) };
            start = end;
        }
        dest[body..].copy_from_slice(&src[body..]);
        true
    }

    fn decode(&self, src: &[u8], dest: &mut [u8]) {
        assert!(src.len() == dest.len());
        // SAFETY: `usable` gave out this kernel, so the CPU has its features; the lengths are equal.
        unsafe { (self.decode)(src, dest) }
    }
}

/// The filter `BYTEDELTA_BUGGY`, with the fault of its first version.
///
/// Builds of the C library without vector code wrote the bytes of [`encode`] under this id; nothing in the data tells
/// the two apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteDeltaBuggy;

impl Filter for ByteDeltaBuggy {
    /// Meta 0 stands for the typesize of the super-chunk.
    fn needs_geometry(&self) -> bool {
        true
    }

    fn forward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        encode_buggy(channels(cx.meta, &cx.container, ErrorKind::FilterPipeline)?, src, dest);
        Ok(())
    }

    fn backward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        decode_buggy(channels(cx.meta, &cx.container, ErrorKind::Failure)?, src, dest);
        Ok(())
    }
}

/// The number of streams that a meta byte stands for.
///
/// # Errors
///
/// `kind`, which depends on the direction, if it is 0 and there is no super-chunk around the chunk.
pub(crate) fn channels(meta: u8, container: &Container, kind: ErrorKind) -> Result<usize> {
    if meta != 0 {
        return Ok(usize::from(meta));
    }
    let alone = Error::new(kind, "bytedelta: meta 0 outside of a super-chunk");
    let typesize = container.typesize().ok_or(alone)?;
    match usize::try_from(typesize) {
        Ok(typesize) if typesize > 0 => Ok(typesize),
        _ => Err(Error::new(kind, "bytedelta: impossible type size")),
    }
}

/// Encodes each of the `channels` streams of `src` into `dest`.
///
/// # Panics
///
/// If `channels` is 0 or the lengths differ.
pub fn encode(channels: usize, src: &[u8], dest: &mut [u8]) {
    for_each_channel(channels, src, dest, |src, dest| BEST.encode(src, dest));
}

/// [`encode`] in place.
pub(crate) fn encode_in_place(channels: usize, bytes: &mut [u8]) {
    let len = bytes.len() / channels;
    if len > 0 {
        bytes.chunks_exact_mut(len).take(channels).for_each(|stream| BEST.encode_in_place(stream));
    }
}

/// Undoes [`encode`], and before it the shuffle of items of `width` bytes into as many streams, at once if there is a
/// way to do so; returns whether there is. Otherwise `dest` is as before.
///
/// The streams of differences are unshuffled first: sums over items take fewer steps than sums over bytes.
///
/// # Panics
///
/// If the lengths differ.
pub(crate) fn decode_shuffled(width: usize, src: &[u8], dest: &mut [u8]) -> bool {
    BEST.decode_shuffled(width, src, dest)
}

/// Undoes [`encode`].
///
/// # Panics
///
/// If `channels` is 0 or the lengths differ.
pub fn decode(channels: usize, src: &[u8], dest: &mut [u8]) {
    for_each_channel(channels, src, dest, |src, dest| BEST.decode(src, dest));
}

/// [`encode`] with the fault of the first version.
///
/// # Panics
///
/// If `channels` is 0 or the lengths differ.
pub fn encode_buggy(channels: usize, src: &[u8], dest: &mut [u8]) {
    for_each_channel(channels, src, dest, |src, dest| {
        let restart = src.len() - src.len() % 16;
        BEST.encode(&src[..restart], &mut dest[..restart]);
        BEST.encode(&src[restart..], &mut dest[restart..]);
    });
}

/// Undoes [`encode_buggy`].
///
/// # Panics
///
/// If `channels` is 0 or the lengths differ.
pub fn decode_buggy(channels: usize, src: &[u8], dest: &mut [u8]) {
    for_each_channel(channels, src, dest, |src, dest| {
        let restart = src.len() - src.len() % 16;
        BEST.decode(&src[..restart], &mut dest[..restart]);
        BEST.decode(&src[restart..], &mut dest[restart..]);
    });
}

/// Calls `f` for each stream and copies what is left over.
fn for_each_channel(channels: usize, src: &[u8], dest: &mut [u8], f: impl Fn(&[u8], &mut [u8])) {
    assert!(channels > 0 && src.len() == dest.len());
    let len = src.len() / channels;
    if len > 0 {
        for (s, d) in src.chunks_exact(len).zip(dest.chunks_exact_mut(len)).take(channels) {
            f(s, d);
        }
    }
    let body = len * channels;
    dest[body..].copy_from_slice(&src[body..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::lengths;
    use crate::format::consts::filter;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| u8::try_from((i.wrapping_mul(i * 7) + i / 3) % 251).unwrap()).collect()
    }

    fn naive(channels: usize, src: &[u8], is_buggy: bool) -> Vec<u8> {
        let len = src.len() / channels;
        let mut out = src.to_vec();
        for c in 0..channels {
            for i in 1..len {
                if !(is_buggy && i == len / 16 * 16) {
                    out[c * len + i] = src[c * len + i].wrapping_sub(src[c * len + i - 1]);
                }
            }
        }
        out
    }

    #[test]
    fn both_versions_agree_with_the_definition() {
        for channels in [1, 2, 3, 4, 8, 255] {
            for len in lengths(0..=299).chain([1000, 4097]) {
                let src = bytes(len);
                let mut dest = vec![0xee; len];
                let mut back = vec![0xee; len];
                encode(channels, &src, &mut dest);
                assert_eq!(dest, naive(channels, &src, false), "{channels} channels, length {len}");
                decode(channels, &dest, &mut back);
                assert_eq!(back, src, "{channels} channels, length {len}");
                encode_buggy(channels, &src, &mut dest);
                assert_eq!(dest, naive(channels, &src, true), "buggy, {channels} channels, length {len}");
                back.fill(0xee);
                decode_buggy(channels, &dest, &mut back);
                assert_eq!(back, src, "buggy, {channels} channels, length {len}");
            }
        }
    }

    #[test]
    fn every_variant_agrees_with_the_definition_and_stays_inside_the_destination() {
        for kernel in usable() {
            for len in lengths(0..=199).chain([4096, 4097, 70_001]) {
                for offset in if len < 100 { 0..33 } else { 3..4 } {
                    let src = &bytes(offset + len)[offset..];
                    let mut buf = vec![0xee; offset + len + 40];
                    kernel.encode(src, &mut buf[offset..offset + len]);
                    let encoded = buf[offset..offset + len].to_vec();
                    assert_eq!(encoded, naive(1, src, false), "{} {len} {offset}", kernel.name);
                    kernel.decode(&encoded, &mut buf[offset..offset + len]);
                    assert_eq!(&buf[offset..offset + len], src, "{} {len} {offset}", kernel.name);
                    assert!(buf[..offset].iter().chain(&buf[offset + len..]).all(|&b| b == 0xee));
                }
            }
        }
    }

    #[test]
    fn shuffled_items_are_summed_up_at_once() {
        for kernel in usable() {
            for width in [1, 2, 3, 4, 8, 16, 24] {
                for len in lengths(0..=199).chain([PIECE - 1, PIECE, PIECE + 77, 3 * PIECE + 40]) {
                    let src = bytes(len);
                    let mut shuffled = vec![0xee; len];
                    shuffle::shuffle(width, &src, &mut shuffled);
                    let want = naive(width, &shuffled, false);
                    if len > 0 {
                        shuffled[..len / width * width]
                            .chunks_mut((len / width).max(1))
                            .for_each(|stream| kernel.encode_in_place(stream));
                    }
                    assert_eq!(shuffled, want, "{} width {width} length {len}", kernel.name);
                    let mut back = vec![0xee; len];
                    if kernel.decode_shuffled(width, &shuffled, &mut back) {
                        assert_eq!(back, src, "{} width {width} length {len}", kernel.name);
                    } else {
                        assert!(kernel.sum_items.is_none() || !matches!(width, 4 | 8 | 16));
                        assert!(back.iter().all(|&b| b == 0xee));
                    }
                }
            }
        }
    }

    #[test]
    fn known_vectors() {
        let src = [
            0x03, 0x04, 0x07, 0x0c, 0x13, 0x1c, 0x27, 0x34, 0x43, 0x54, 0x67, 0x7c, 0x93, 0xac, 0xc7, 0xe4,
            0x03, 0x24, 0x47, 0x6c, 0x93, 0xbc,
        ];
        let want = [
            0x03, 0x01, 0x03, 0x05, 0x07, 0x1c, 0x0b, 0x0d, 0x0f, 0x11, 0x67, 0x15, 0x17, 0x19, 0x1b, 0xe4,
            0x1f, 0x21, 0x23, 0x25, 0x93, 0xbc,
        ];
        let mut dest = [0; 22];
        encode(4, &src, &mut dest);
        assert_eq!(dest, want);

        let src: Vec<u8> = (0..70).collect();
        let channel = |first, restart| [vec![first], vec![1; 31], vec![restart, 1, 1]].concat();
        let mut dest = [0; 70];
        encode_buggy(2, &src, &mut dest);
        assert_eq!(dest.as_slice(), [channel(0, 0x20), channel(0x23, 0x43)].concat());
    }

    #[test]
    fn number_of_streams_comes_from_meta_or_the_super_chunk() {
        let schunk = |typesize| Container::Schunk { typesize, geometry: None };
        let run = |meta, container| -> Result<[u8; 6]> {
            let channels = channels(meta, &container, ErrorKind::FilterPipeline)?;
            let (mut dest, mut back) = ([0; 6], [0; 6]);
            encode(channels, &[1, 2, 3, 4, 5, 6], &mut dest);
            decode(channels, &dest, &mut back);
            assert_eq!(back, [1, 2, 3, 4, 5, 6]);
            Ok(dest)
        };
        assert_eq!(run(2, schunk(3)), Ok([1, 1, 1, 4, 1, 1]));
        assert_eq!(run(0, schunk(3)), Ok([1, 1, 3, 1, 5, 1]));
        assert_eq!(run(2, Container::None), Ok([1, 1, 1, 4, 1, 1]));
        for container in [Container::None, schunk(0), schunk(-1)] {
            assert_eq!(run(0, container).unwrap_err().kind(), ErrorKind::FilterPipeline);
        }
        let mut dest = [0; 2];
        let (id, container) = (filter::BYTEDELTA_BUGGY, Container::None);
        let cx = FilterContext { id, meta: 0, typesize: 4, blocksize: 0, container, host: None };
        let kind = |outcome: Result<()>| outcome.unwrap_err().kind();
        assert_eq!(kind(ByteDeltaBuggy.forward(&cx, &[1, 2], &mut dest)), ErrorKind::FilterPipeline);
        assert_eq!(kind(ByteDeltaBuggy.backward(&cx, &[1, 2], &mut dest)), ErrorKind::Failure);
    }
}
