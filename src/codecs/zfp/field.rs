//! A whole block: the grid of its cells, and the items of each cell in memory.

use super::bitstream::{BitReader, BitWriter};
use super::cell::{CellCoder, Limits};
use super::partial::decode_range;
use super::real::Real;
use crate::error::{Error, ErrorKind, Result};

/// The most dimensions of a block.
pub(super) const MAX_DIMS: usize = 4;
/// Items along each side of a cell.
pub(super) const SIDE: usize = 4;

/// Where the items of a cut cell come from, along one axis, by the number of items there are.
const COMPLETION: [[usize; SIDE]; SIDE + 1] = [[0; 4], [0; 4], [0, 1, 1, 0], [0, 1, 2, 0], [0, 1, 2, 3]];

/// The extents of a block, fastest axis first; axes that it does not have are 1 item long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) extent: [usize; MAX_DIMS],
    /// Distance between neighbours along each axis, in items.
    pub(super) stride: [usize; MAX_DIMS],
    pub(super) dims: usize,
}

impl Field {
    /// A block of shape `blockshape`, slowest axis first; `None` unless it has 1 to 4 dimensions of at least one item
    /// and all its items together fit in memory.
    pub(super) fn new(blockshape: &[i32]) -> Option<Field> {
        let dims = blockshape.len();
        if !(1..=MAX_DIMS).contains(&dims) {
            return None;
        }
        let mut field = Field { extent: [1; MAX_DIMS], stride: [0; MAX_DIMS], dims };
        for (extent, &items) in field.extent.iter_mut().zip(blockshape.iter().rev()) {
            *extent = usize::try_from(items).ok().filter(|&n| n > 0)?;
        }
        let mut distance = 1usize;
        for (stride, extent) in field.stride.iter_mut().zip(field.extent) {
            *stride = distance;
            distance = distance.checked_mul(extent)?;
        }
        // Byte offsets must not overflow either.
        (distance <= isize::MAX as usize / 8).then_some(field)
    }

    /// Number of items.
    pub(super) fn nitems(&self) -> usize {
        self.extent.iter().product()
    }

    /// Cells along each axis.
    fn grid(&self) -> [usize; MAX_DIMS] {
        self.extent.map(|n| n.div_ceil(SIDE))
    }

    /// Items of a cell that exist, along each axis; the cell's first item is at `origin`.
    #[inline(always)]
    fn present(&self, origin: [usize; MAX_DIMS]) -> [usize; MAX_DIMS] {
        std::array::from_fn(|axis| (self.extent[axis] - origin[axis]).min(SIDE))
    }

    /// Calls `visit` with the first item of each cell, in the order of the stream.
    #[inline(always)]
    fn for_each_cell(&self, mut visit: impl FnMut([usize; MAX_DIMS]) -> Result<()>) -> Result<()> {
        let [nx, ny, nz, nw] = self.grid();
        for w in 0..nw {
            for z in 0..nz {
                for y in 0..ny {
                    for x in 0..nx {
                        visit([x * SIDE, y * SIDE, z * SIDE, w * SIDE])?;
                    }
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn offset(&self, position: [usize; MAX_DIMS]) -> usize {
        (0..MAX_DIMS).map(|axis| position[axis] * self.stride[axis]).sum()
    }

    /// Copies a cell out of the block, completing it where the block ends.
    #[inline(always)]
    fn gather<R: Real, const N: usize>(&self, src: &[u8], origin: [usize; MAX_DIMS], cell: &mut [R; N]) {
        let present = self.present(origin);
        let start = self.offset(origin);
        if present[..self.dims] == [SIDE; MAX_DIMS][..self.dims] {
            for (row, items) in cell.chunks_exact_mut(SIDE).enumerate() {
                let from = (start + self.row_offset(row)) * R::BYTES;
                let bytes = &src[from..from + SIDE * R::BYTES];
                for (item, bytes) in items.iter_mut().zip(bytes.chunks_exact(R::BYTES)) {
                    *item = R::load(bytes);
                }
            }
        } else {
            for (i, item) in cell.iter_mut().enumerate() {
                let from: usize = (0..self.dims)
                    .map(|axis| COMPLETION[present[axis]][(i >> (2 * axis)) % SIDE] * self.stride[axis])
                    .sum();
                *item = R::load(&src[(start + from) * R::BYTES..]);
            }
        }
    }

    /// Copies those items of a cell that exist into the block.
    #[inline(always)]
    fn scatter<R: Real, const N: usize>(&self, cell: &[R; N], origin: [usize; MAX_DIMS], dest: &mut [u8]) {
        let present = self.present(origin);
        let start = self.offset(origin);
        if present[..self.dims] == [SIDE; MAX_DIMS][..self.dims] {
            for (row, items) in cell.chunks_exact(SIDE).enumerate() {
                let to = (start + self.row_offset(row)) * R::BYTES;
                let bytes = &mut dest[to..to + SIDE * R::BYTES];
                for (item, bytes) in items.iter().zip(bytes.chunks_exact_mut(R::BYTES)) {
                    item.store(bytes);
                }
            }
        } else {
            for (i, item) in cell.iter().enumerate() {
                let digit = |axis: usize| (i >> (2 * axis)) % SIDE;
                if (0..self.dims).all(|axis| digit(axis) < present[axis]) {
                    let to: usize = (0..self.dims).map(|axis| digit(axis) * self.stride[axis]).sum();
                    item.store(&mut dest[(start + to) * R::BYTES..]);
                }
            }
        }
    }

    /// Distance in items from the start of a cell to that of its row `row`.
    #[inline(always)]
    fn row_offset(&self, row: usize) -> usize {
        (row % SIDE) * self.stride[1]
            + (row / SIDE % SIDE) * self.stride[2]
            + row / (SIDE * SIDE) * self.stride[3]
    }

    /// Compresses the block `src`, whose length must be that of the field; returns the length of the stream, or `None`
    /// if it does not fit.
    #[inline(always)]
    fn encode<R: Real, const N: usize, const G: usize>(
        &self,
        limits: Limits,
        src: &[u8],
        dest: &mut [u8],
    ) -> Option<usize> {
        let mut coder = CellCoder::<R, N, G>::new(limits);
        let mut writer = BitWriter::new(dest);
        let mut cell = [R::default(); N];
        self.for_each_cell(|origin| {
            self.gather(src, origin, &mut cell);
            coder.encode(&cell, &mut writer);
            if writer.overflowed() { Err(TOO_LONG) } else { Ok(()) }
        })
        .ok()?;
        writer.finish()
    }

    /// Decompresses a whole block into `dest`, whose length must be that of the field.
    #[inline(always)]
    fn decode<R: Real, const N: usize, const G: usize>(
        &self,
        limits: Limits,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<()> {
        let mut coder = CellCoder::<R, N, G>::new(limits);
        let mut reader = BitReader::new(src, 0);
        let mut cell = [R::default(); N];
        self.for_each_cell(|origin| {
            coder.decode(&mut reader, &mut cell);
            if !reader.within_bounds() {
                return Err(TRUNCATED);
            }
            self.scatter(&cell, origin, dest);
            Ok(())
        })
    }
}

const TOO_LONG: Error = Error::new(ErrorKind::Data, "ZFP stream longer than its room");
pub(super) const TRUNCATED: Error = Error::new(ErrorKind::Data, "ZFP stream ends too early");

/// A function that decodes a range of items: block, limits, stream, number of the first item, destination.
type DecodeItems = fn(&Field, Limits, &[u8], usize, &mut [u8]) -> Result<()>;

/// [`Field::encode`], [`Field::decode`] and [`decode_range`] for one type and number of dimensions.
pub(super) struct Kernel {
    pub(super) encode: fn(&Field, Limits, &[u8], &mut [u8]) -> Option<usize>,
    pub(super) decode: fn(&Field, Limits, &[u8], &mut [u8]) -> Result<()>,
    pub(super) decode_items: DecodeItems,
}

/// The code for this processor, for items of `size` bytes (4 or 8) in `dims` dimensions (1 to 4).
pub(super) fn kernel(size: usize, dims: usize) -> Kernel {
    match (size, dims) {
        (4, 1) => kernel_for::<f32, 4, 1>(),
        (4, 2) => kernel_for::<f32, 16, 1>(),
        (4, 3) => kernel_for::<f32, 64, 1>(),
        (4, _) => kernel_for::<f32, 256, 4>(),
        (_, 1) => kernel_for::<f64, 4, 1>(),
        (_, 2) => kernel_for::<f64, 16, 1>(),
        (_, 3) => kernel_for::<f64, 64, 1>(),
        (_, _) => kernel_for::<f64, 256, 4>(),
    }
}

fn kernel_for<R: Real, const N: usize, const G: usize>() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if let Some(kernel) = x86::kernel::<R, N, G>() {
        return kernel;
    }
    Kernel {
        encode: Field::encode::<R, N, G>,
        decode: Field::decode::<R, N, G>,
        decode_items: decode_range::<R, N, G>,
    }
}

/// The same code, compiled with the vector and bit instructions of newer processors.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Field, Kernel, Limits, Real, Result, decode_range};

    /// [`Field::encode`].
    ///
    /// # Safety
    ///
    /// The CPU has AVX2, BMI1, BMI2 and LZCNT.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn encode<R: Real, const N: usize, const G: usize>(
        field: &Field,
        limits: Limits,
        src: &[u8],
        dest: &mut [u8],
    ) -> Option<usize> {
        field.encode::<R, N, G>(limits, src, dest)
    }

    /// [`Field::decode`].
    ///
    /// # Safety
    ///
    /// As for [`encode`].
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    unsafe fn decode<R: Real, const N: usize, const G: usize>(
        field: &Field,
        limits: Limits,
        src: &[u8],
        dest: &mut [u8],
    ) -> Result<()> {
        field.decode::<R, N, G>(limits, src, dest)
    }

    /// The kernel, if the processor has these features.
    pub(super) fn kernel<R: Real, const N: usize, const G: usize>() -> Option<Kernel> {
        crate::cpu::has_avx2().then_some(Kernel {
            // SAFETY: this kernel exists only where `has_avx2` says that the CPU has these features.
            encode: |field, limits, src, dest| unsafe { encode::<R, N, G>(field, limits, src, dest) },
            // SAFETY: as above.
            decode: |field, limits, src, dest| unsafe { decode::<R, N, G>(field, limits, src, dest) },
            decode_items: decode_range::<R, N, G>,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<R: Real, const N: usize, const G: usize>(shape: &[i32]) {
        let field = Field::new(shape).unwrap();
        let src: Vec<u8> =
            (0..field.nitems() * R::BYTES).map(|i| if i % 4 == 3 { 0x40 } else { (i * 11) as u8 }).collect();
        let limits = Limits { min_bits: 1, max_bits: 16658, max_precision: 20, min_exponent: -1074 };
        // Cut cells may need more room than their items.
        let (mut portable, mut best) = (vec![0; 8 * src.len()], vec![0; 8 * src.len()]);
        let n = field.encode::<R, N, G>(limits, &src, &mut portable);
        assert!(n.is_some());
        let kernel = kernel(R::BYTES, shape.len());
        assert_eq!((kernel.encode)(&field, limits, &src, &mut best), n);
        assert_eq!(portable, best);
        let stream = &best[..n.unwrap()];
        let (mut a, mut b) = (vec![0; src.len()], vec![1; src.len()]);
        field.decode::<R, N, G>(limits, stream, &mut a).unwrap();
        (kernel.decode)(&field, limits, stream, &mut b).unwrap();
        assert_eq!(a, b);
    }

    #[test]
    fn all_processors_give_the_same_bytes() {
        check::<f32, 4, 1>(&[103]);
        check::<f32, 16, 1>(&[14, 19]);
        check::<f32, 64, 1>(&[5, 8, 11]);
        check::<f32, 256, 4>(&[4, 5, 6, 7]);
        check::<f64, 4, 1>(&[103]);
        check::<f64, 16, 1>(&[14, 19]);
        check::<f64, 64, 1>(&[5, 8, 11]);
        check::<f64, 256, 4>(&[4, 5, 6, 7]);
    }
}
