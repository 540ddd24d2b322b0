//! What the tests of several filters share.

#![forbid(unsafe_code)]

use super::FilterContext;
use crate::format::geometry::{BlockGeometry, Container};
use crate::testing::Random;
use std::ops::RangeInclusive;

/// Bytes without a pattern, the same ones each time.
pub(super) fn noise(len: usize) -> Vec<u8> {
    Random::new(0).bytes(len)
}

/// What a filter of n-dimensional blocks is told; such filters do not look at their id.
pub(super) fn nd_context(meta: u8, typesize: i32, blockshape: &[i32]) -> FilterContext<'static> {
    FilterContext {
        id: 0,
        meta,
        typesize: typesize.max(0) as usize,
        blocksize: 0,
        container: Container::Schunk { typesize, geometry: BlockGeometry::new(blockshape) },
        host: None,
    }
}

const GUARD: usize = 64;

/// Runs `f` on the inner `len` bytes of a buffer and checks that the bytes around them keep their values.
pub(super) fn guarded(len: usize, offset: usize, mut f: impl FnMut(&mut [u8])) -> Vec<u8> {
    let mut buf = vec![0xa5; GUARD + offset + len + GUARD];
    f(&mut buf[GUARD + offset..GUARD + offset + len]);
    assert!(buf[..GUARD + offset].iter().chain(&buf[GUARD + offset + len..]).all(|&b| b == 0xa5));
    buf[GUARD + offset..GUARD + offset + len].to_vec()
}

/// Item sizes: all small ones, which have code of their own, and some beyond. Miri, which is slow, gets one of each
/// kind.
pub(super) fn widths() -> impl Iterator<Item = usize> {
    let all = (1..=17).chain([20, 24, 31, 32, 33, 40, 48, 64, 80, 96, 255, 256, 300]);
    all.filter(|width| !cfg!(miri) || [1, 2, 3, 4, 8, 16, 17].contains(width))
}

/// `lengths`, or some of them under Miri.
pub(super) fn lengths(lengths: RangeInclusive<usize>) -> impl Iterator<Item = usize> {
    lengths.filter(|len| !cfg!(miri) || [0, 1, 2, 9, 16, 33].contains(len))
}
