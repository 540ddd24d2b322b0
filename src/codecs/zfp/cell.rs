//! One cell of 4^d items: to bits and back.

#![forbid(unsafe_code)]

use super::bitstream::{BitReader, BitWriter};
use super::coding;
use super::order::order;
use super::planes::Planes;
use super::real::{CellExponent, Real};
use super::transform;

/// What bounds the length and the precision of the cells of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Fewest bits per cell; shorter codes are padded with zeros.
    pub(super) min_bits: u32,
    /// Most bits per cell.
    pub(super) max_bits: u32,
    /// Most bit planes per cell.
    pub(super) max_precision: u32,
    /// Binary exponent of the least bit plane that is coded.
    pub(super) min_exponent: i32,
}

impl Limits {
    /// The bit planes that are coded of a cell with this exponent: first and one past the last.
    #[inline(always)]
    fn planes<R: Real>(&self, exponent: i32, dims: u32) -> (u32, u32) {
        let wanted = (exponent - self.min_exponent + 2 * (dims as i32 + 1)).max(0);
        let precision = self.max_precision.min(wanted as u32);
        (R::INT_BITS.saturating_sub(precision), R::INT_BITS)
    }
}

/// Codes cells of `N` = 4^d items whose coefficients form `G` groups of up to 64.
pub(super) struct CellCoder<R: Real, const N: usize, const G: usize> {
    pub(super) limits: Limits,
    ints: [R::Int; N],
    planes: Planes<N, G>,
}

impl<R: Real, const N: usize, const G: usize> CellCoder<R, N, G> {
    const DIMS: u32 = N.trailing_zeros() / 2;
    const ORDER: [u8; N] = order();

    pub(super) fn new(limits: Limits) -> Self {
        CellCoder { limits, ints: [R::Int::default(); N], planes: Planes::new() }
    }

    /// Appends the code of one cell.
    #[inline(always)]
    pub(super) fn encode(&mut self, items: &[R; N], writer: &mut BitWriter<'_>) {
        let start = writer.position();
        let exponent = R::exponent(items);
        let e = match exponent {
            CellExponent::Zero => -R::BIAS,
            CellExponent::Finite(e) | CellExponent::NonFinite(e) => e,
        };
        let (bottom, top) = self.limits.planes::<R>(e, Self::DIMS);
        let stored = e + R::BIAS;
        if bottom == top || stored == 0 {
            writer.put(0, 1);
        } else {
            writer.put(1 | (stored as u64) << 1, 1 + R::EXPONENT_BITS);
            R::to_ints(items, exponent, &mut self.ints);
            transform::forward(&mut self.ints);
            self.planes.set::<R>(&self.ints, &Self::ORDER, top - bottom);
            let budget = self.limits.max_bits.saturating_sub(1 + R::EXPONENT_BITS);
            coding::encode(&self.planes, (bottom, top), budget, writer);
        }
        // Below 2^16 bits, or nonsense after an overflow.
        let used = writer.position().wrapping_sub(start) as u32;
        if used < self.limits.min_bits {
            writer.put_zeros(self.limits.min_bits - used);
        }
    }

    /// Reads one cell. Missing bits count as zeros; the caller checks the reader's position.
    #[inline(always)]
    pub(super) fn decode(&mut self, reader: &mut BitReader<'_>, items: &mut [R; N]) {
        let start = reader.position();
        if reader.read(1) == 0 {
            items.fill(R::default());
        } else {
            // At most eleven bits.
            let e = reader.read(R::EXPONENT_BITS) as i32 - R::BIAS;
            let (bottom, top) = self.limits.planes::<R>(e, Self::DIMS);
            let budget = self.limits.max_bits.saturating_sub(1 + R::EXPONENT_BITS);
            self.planes.clear::<R>(top - bottom);
            coding::decode(&mut self.planes, (bottom, top), budget, reader);
            self.planes.take::<R>(&mut self.ints, &Self::ORDER);
            transform::backward(&mut self.ints);
            R::from_ints(&self.ints, e, items);
        }
        let used = reader.position() - start;
        if used < u64::from(self.limits.min_bits) {
            reader.skip(u64::from(self.limits.min_bits) - used);
        }
    }
}
