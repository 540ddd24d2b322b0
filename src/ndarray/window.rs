//! Boxes of one array that become chunks of another one.
//!
//! A block of the source may have items for many of these chunks. So as not to decode it for each of them, a window is
//! read that reaches as far as the block does, and holds what the next chunks get.

#![forbid(unsafe_code)]

use super::StoredArray;
use super::shape::{Extents, Region, dot, strides};
use crate::error::Result;
use crate::memory;

/// Windows stay below this size, in bytes, unless a block of the source or the box that is asked for is larger.
const LARGE: usize = 16 << 20;

/// A window that ends inside of a block has that block decoded again for the next one. To make this rare, windows hold
/// at least about this many of the boxes that are asked for.
const FEW: u64 = 4;

/// The items of an array, box after box.
///
/// The boxes are what goes to the chunks of another array, in C order.
pub(super) struct Window<'a> {
    src: StoredArray<'a>,
    /// All that is going to be asked for.
    all: Region,
    /// What the buffer holds; `None` at first, and after a failure.
    held: Option<Region>,
    buffer: Vec<u8>,
}

impl<'a> Window<'a> {
    /// For the boxes that make up `all`. What lies outside of `src` is zeros.
    pub(super) fn new(src: StoredArray<'a>, all: Region) -> Window<'a> {
        Window { src, all, held: None, buffer: Vec::new() }
    }

    /// The items of `region`: they are at the front of the bytes, a C-order buffer of the shape that is returned.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; those of [`StoredArray::read`].
    pub(super) fn show(&mut self, region: &Region) -> Result<(&[u8], Extents)> {
        let held = match self.held.take().filter(|held| holds(held, region)) {
            Some(held) => held,
            None => self.read(region)?,
        };
        self.held = Some(held);
        let (shape, typesize) = (held.extents(), self.src.schunk.typesize());
        let ndim = region.ndim;
        let strides = strides(&shape[..ndim], typesize as u64); // widening
        // Both are within the buffer, so they are positions in memory.
        let origin = dot(&region.start[..ndim], &strides) - dot(&held.start[..ndim], &strides);
        let origin = usize::try_from(origin).unwrap_or(usize::MAX);
        Ok((self.buffer.get(origin..).unwrap_or_default(), shape))
    }

    /// Reads `region` with what else is to be read with it; returns the box that the buffer holds then.
    fn read(&mut self, region: &Region) -> Result<Region> {
        let mut wanted = self.around(region);
        if self.make_room(&wanted).is_err() {
            wanted = *region;
            self.make_room(&wanted)?;
        }
        let there = wanted.clipped(self.src.geometry.shape());
        if *there != wanted {
            self.buffer.fill(0);
        }
        self.src.read(&there, &mut self.buffer, &wanted.extents()[..wanted.ndim])?;
        Ok(wanted)
    }

    fn make_room(&mut self, wanted: &Region) -> Result<()> {
        let nbytes = self.nbytes(wanted);
        memory::resize(&mut self.buffer, nbytes)
    }

    fn nbytes(&self, region: &Region) -> usize {
        region.len().saturating_mul(self.src.schunk.typesize())
    }

    /// The box to read where `region` is asked for.
    ///
    /// Along one axis it reaches to the end of the blocks there, and over a few boxes at least; along those after it,
    /// over everything. So the next boxes in C order are in it. This is the first axis along which blocks are longer
    /// than `region` and go on behind it, and the box is not too large. Without such an axis, it is `region`: shorter
    /// blocks are decoded but twice, which costs less than a larger buffer.
    fn around(&self, region: &Region) -> Region {
        let most = self.most();
        for axis in (0..region.ndim).filter(|&axis| self.goes_on(region, axis)) {
            for boxes in [FEW, 2] {
                let least = region.start[axis].saturating_add(region.extent(axis).saturating_mul(boxes));
                let mut own = *region;
                own.stop[axis] = self.end_of_blocks(least, axis);
                for i in axis + 1..region.ndim {
                    (own.start[i], own.stop[i]) = (self.all.start[i], self.all.stop[i]);
                }
                if self.nbytes(&own) <= most {
                    return own;
                }
            }
        }
        *region
    }

    /// Whether blocks are longer than `region` along `axis`, and go on behind it.
    fn goes_on(&self, region: &Region, axis: usize) -> bool {
        let (chunk, block) = (self.src.geometry.chunkshape()[axis], self.src.geometry.blockshape()[axis]);
        let stop = region.stop[axis];
        block.min(chunk) > region.extent(axis) && self.end_of_blocks(stop, axis) > stop
    }

    /// Most bytes that a window has if it is larger than the box that is asked for.
    fn most(&self) -> usize {
        let block = self.src.geometry.blocknitems().saturating_mul(self.src.schunk.typesize() as u64); // widening
        usize::try_from(block).unwrap_or(usize::MAX).max(LARGE - 1)
    }

    /// Where the blocks end, along `axis`, that end at item `stop` or hold items on both sides of it.
    fn end_of_blocks(&self, stop: u64, axis: usize) -> u64 {
        let (chunk, block) = (self.src.geometry.chunkshape()[axis], self.src.geometry.blockshape()[axis]);
        let in_chunk = stop.checked_rem(chunk).unwrap_or(0);
        let end = in_chunk.div_ceil(block.max(1)).saturating_mul(block).min(chunk);
        (stop - in_chunk).saturating_add(end).min(self.all.stop[axis])
    }
}

/// Whether all of `region` is in `held`.
fn holds(held: &Region, region: &Region) -> bool {
    (0..region.ndim).all(|i| held.start[i] <= region.start[i] && region.stop[i] <= held.stop[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::frame_header::FrameParams;
    use crate::ndarray::Geometry;
    use crate::schunk::{Reading, Schunk};

    /// The window for the box from `start` to `stop` of an array of bytes.
    fn around(
        (shape, chunk, block): ([i64; 2], [i32; 2], [i32; 2]),
        start: [u64; 2],
        stop: [u64; 2],
    ) -> ([u64; 2], [u64; 2]) {
        let schunk = Schunk::in_memory(FrameParams { typesize: 1, ..FrameParams::default() });
        let geometry = Geometry::new(&shape, &chunk, &block).unwrap();
        let src = StoredArray { schunk: &schunk, geometry: &geometry, reading: &Reading::default() };
        let window = Window::new(src, Region::all(&geometry));
        let own = window.around(&Region::new(&start, &stop));
        ([own.start[0], own.start[1]], [own.stop[0], own.stop[1]])
    }

    #[test]
    fn windows_reach_to_the_end_of_long_blocks() {
        let shapes = ([100, 100], [50, 50], [20, 30]);
        assert_eq!(around(shapes, [0, 0], [5, 5]), ([0, 0], [20, 100]));
        // The last blocks of a chunk are cut off.
        assert_eq!(around(shapes, [40, 0], [42, 5]), ([40, 0], [50, 100]));
        // Where the rows of blocks end, along the other axis.
        assert_eq!(around(shapes, [10, 30], [20, 35]), ([10, 30], [20, 50]));
        // A few boxes at least.
        assert_eq!(around(shapes, [0, 0], [15, 50]), ([0, 0], [70, 100]));
        // Blocks that are not longer.
        assert_eq!(around(shapes, [0, 0], [25, 35]), ([0, 0], [25, 35]));
    }

    #[test]
    fn windows_are_not_large_unless_blocks_are() {
        let mib = 1 << 20;
        // All columns would be too many.
        assert_eq!(around(([40, mib], [40, 4000], [40, 4000]), [0, 0], [10, 400]), ([0, 0], [10, 4000]));
        // One block may be as large as it is.
        let shapes = ([1 << 16, 1024], [1 << 16, 1024], [1 << 16, 1024]);
        assert_eq!(around(shapes, [0, 0], [8, 1024]), ([0, 0], [1 << 16, 1024]));
    }
}
