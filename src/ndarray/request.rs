//! Boxes and selections as callers describe them, by signed numbers, with the buffers on the other side.

#![forbid(unsafe_code)]

use super::copy_buffer::BoxCopy;
use super::select::Selection;
use super::shape::{Extents, Geometry, Region, strided_len, strides};
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::geometry::MAX_DIM;

/// Stores positions or extents, which must not be negative.
fn put_unsigned(values: &[i64], dest: &mut Extents) -> Result<()> {
    for (slot, &value) in dest.iter_mut().zip(values) {
        let negative = Error::new(ErrorKind::Failure, "negative position");
        *slot = u64::try_from(value).map_err(|_| negative)?;
    }
    Ok(())
}

/// A box of an array, and the C-order buffer with its items.
pub(crate) struct BoxRequest {
    pub(crate) region: Region,
    pub(crate) buffershape: Extents,
    /// Whether there is nothing of the array in the box.
    pub(crate) is_empty: bool,
    /// Whether the box fills the buffer, and lies inside of the array.
    pub(crate) fills: bool,
}

impl BoxRequest {
    /// Nothing.
    pub(crate) fn empty(geometry: &Geometry) -> BoxRequest {
        BoxRequest { region: Region::all(geometry), buffershape: [1; MAX_DIM], is_empty: true, fills: false }
    }

    /// Makes it the box from `start` to `stop` (excluded), as far as it lies in the array, and a buffer of `buffersize`
    /// bytes and of shape `buffershape`. All of them have one number per dimension.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the box and the buffer do not fit each other, `Failure` for negative positions.
    pub(crate) fn ask(
        &mut self,
        geometry: &Geometry,
        typesize: usize,
        (start, stop): (&[i64], &[i64]),
        buffershape: &[i64],
        buffersize: i64,
    ) -> Result<()> {
        let unit = typesize as u64; // widening
        let size = u64::try_from(buffersize);
        let size = size.map_err(|_| Error::new(ErrorKind::InvalidParam, "negative buffer size"))?;
        if geometry.ndim() == 0 {
            require(unit <= size, "buffer shorter than the item")?;
            (self.is_empty, self.fills) = (false, size == unit);
            return Ok(());
        }
        if geometry.nitems() == 0 {
            return Ok(());
        }
        // The box is empty where it ends before it starts.
        let extent = |i: usize| u64::try_from(stop[i].saturating_sub(start[i])).unwrap_or(0);
        let axes = 0..geometry.ndim();
        let fits = axes.clone().all(|i| stop[i].saturating_sub(start[i]) <= buffershape[i]);
        require(fits, "box larger than the shape of the buffer")?;
        geometry.chunk_nbytes(typesize)?;
        let needed = axes.clone().try_fold(unit, |n, i| n.checked_mul(extent(i)));
        require(needed.is_some_and(|needed| needed <= size), "buffer shorter than the box")?;
        if needed == Some(0) {
            return Ok(());
        }
        put_unsigned(start, &mut self.region.start)?;
        put_unsigned(buffershape, &mut self.buffershape)?;
        put_unsigned(stop, &mut self.region.stop)?;
        let steps = strides(&self.buffershape[..geometry.ndim()], unit);
        let end = strided_len(axes.clone().map(extent), &steps, unit);
        let reached = end.is_some_and(|end| end as u64 <= size); // widening
        require(reached, "box reaches past the end of the buffer")?;
        let whole = axes.clone().all(|i| extent(i) == self.buffershape[i]);
        let inside = axes.zip(geometry.shape()).all(|(i, &extent)| self.region.stop[i] <= extent);
        self.fills = inside && whole && needed == Some(size);
        self.region.clip(geometry.shape());
        self.is_empty = self.region.is_empty();
        Ok(())
    }
}

/// A selection of items of an array, and the C-order buffer with their values.
pub(crate) struct SelectionRequest {
    pub(crate) selection: Selection,
    pub(crate) buffershape: Vec<u64>,
    /// Bytes of the buffer from the first item to the last one.
    pub(crate) span: usize,
}

impl SelectionRequest {
    /// The items with these `indices`, a list per dimension; `None` if there are none. `buffersize` tells how many
    /// bytes are selected: as in the C library, a buffer of a larger shape is larger than that. The shape, of one
    /// number per dimension, is asked for only if there are items.
    ///
    /// # Errors
    ///
    /// As [`Selection::new`], those of `buffershape`, `InvalidParam` if the selection and the buffer do not fit each
    /// other.
    pub(crate) fn of<'a>(
        geometry: &Geometry,
        typesize: usize,
        indices: &[&[i64]],
        buffershape: impl FnOnce() -> Result<&'a [i64]>,
        buffersize: i64,
    ) -> Result<Option<SelectionRequest>> {
        const OTHER_SIZE: &str = "buffer of another size than the selection";
        let selection = Selection::new(geometry, indices)?;
        let count = indices.iter().try_fold(typesize, |n, list| n.checked_mul(list.len()));
        if count == Some(0) {
            require(buffersize <= 0, OTHER_SIZE)?;
            return Ok(None);
        }
        let exact = count.is_some() && count == usize::try_from(buffersize).ok();
        require(exact, OTHER_SIZE)?;
        let shape = buffershape()?;
        let unsigned: Vec<u64> = shape.iter().map(|&extent| u64::try_from(extent).unwrap_or(0)).collect();
        let lens = || indices.iter().map(|list| list.len() as u64); // widening
        let fits = unsigned.iter().zip(lens()).all(|(&room, len)| room >= len);
        require(fits, "selection larger than the buffer")?;
        geometry.chunk_nbytes(typesize)?;
        let unit = typesize as u64; // widening
        let span = strided_len(lens(), &strides(&unsigned, unit), unit);
        let span = span.ok_or(Error::new(ErrorKind::InvalidParam, "shape of the buffer too large"))?;
        Ok(Some(SelectionRequest { selection, buffershape: unsigned, span }))
    }
}

/// A box in a C-order buffer that is larger: the shape of the buffer, and where the box begins. What is negative counts
/// as 0.
#[derive(Clone, Copy)]
pub(crate) struct PaddedBox<'a> {
    pub(crate) shape: &'a [i64],
    pub(crate) start: &'a [i64],
}

/// A position or an extent; what is negative counts as 0.
fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The extents of the box from `start` to `stop` (excluded), which have one number per dimension.
pub(crate) fn extents(start: &[i64], stop: &[i64]) -> Extents {
    let mut extents = [1; MAX_DIM];
    for (slot, (&start, &stop)) in extents.iter_mut().zip(start.iter().zip(stop)) {
        *slot = unsigned(stop).saturating_sub(unsigned(start));
    }
    extents
}

/// Where a box begins in a buffer, in bytes, found out dimension by dimension, the fastest one first.
struct Corner {
    at: u64,
    /// From one index of the next dimension to the next.
    stride: u64,
}

impl Corner {
    fn new(itemsize: usize) -> Corner {
        Corner { at: 0, stride: itemsize as u64 } // widening
    }

    /// Goes to the next dimension, the `i`th.
    fn enter(&mut self, place: PaddedBox<'_>, i: usize) -> Result<()> {
        let at = unsigned(place.start[i]).checked_mul(self.stride).and_then(|more| self.at.checked_add(more));
        self.at = at.ok_or(Error::new(ErrorKind::InvalidParam, "position beyond memory"))?;
        self.stride = self.stride.saturating_mul(unsigned(place.shape[i]));
        Ok(())
    }

    fn offset(&self) -> Result<usize> {
        usize::try_from(self.at).map_err(|_| Error::new(ErrorKind::InvalidParam, "position beyond memory"))
    }
}

/// Makes `copy`, which is one of an item of `itemsize` bytes, the copy of a box with these extents from `src` to `dst`;
/// returns at which byte the box begins in both. There is one extent per dimension.
///
/// # Errors
///
/// `InvalidParam` for boxes and positions beyond any memory.
pub(crate) fn between_padded(
    copy: &mut BoxCopy,
    itemsize: usize,
    extents: &[u64],
    src: PaddedBox<'_>,
    dst: PaddedBox<'_>,
) -> Result<(usize, usize)> {
    let (mut from, mut to) = (Corner::new(itemsize), Corner::new(itemsize));
    for (i, &extent) in extents.iter().enumerate().rev() {
        copy.repeat(extent, from.stride, to.stride)?;
        from.enter(src, i)?;
        to.enter(dst, i)?;
    }
    Ok((from.offset()?, to.offset()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array of 4 x 6 items.
    fn geometry() -> Geometry {
        Geometry::new(&[4, 6], &[2, 3], &[2, 3]).unwrap()
    }

    /// What comes of the box from `start` to `stop` and a buffer of that shape and size, for items of 2 bytes.
    fn asked(start: [i64; 2], stop: [i64; 2], shape: [i64; 2], size: i64) -> Result<BoxRequest> {
        let mut request = BoxRequest::empty(&geometry());
        request.ask(&geometry(), 2, (&start, &stop), &shape, size).map(|()| request)
    }

    #[test]
    fn boxes_fill_their_buffer_or_not() {
        let request = asked([1, 2], [3, 5], [2, 3], 12).unwrap();
        assert!(request.fills && !request.is_empty);
        assert_eq!((&request.region.start[..2], &request.region.stop[..2]), (&[1, 2][..], &[3, 5][..]));
        let outside = asked([1, 4], [3, 8], [2, 4], 16).unwrap();
        assert!(!outside.fills && outside.region.stop[1] == 6);
        assert!(!asked([1, 2], [3, 5], [2, 4], 16).unwrap().fills);
        assert!(!asked([1, 2], [3, 5], [2, 3], 13).unwrap().fills);
    }

    #[test]
    fn empty_boxes_are_known_before_their_positions_count() {
        for (start, stop) in [([1, 2], [1, 5]), ([3, 2], [1, 5]), ([-3, -2], [-3, 5])] {
            assert!(asked(start, stop, [9, 9], 200).unwrap().is_empty);
        }
        assert!(asked([4, 0], [5, 6], [1, 6], 12).unwrap().is_empty, "behind the items");
    }

    #[test]
    fn boxes_that_do_not_fit_are_refused() {
        let kind = |start, stop, shape, size| asked(start, stop, shape, size).err().map(|e| e.kind());
        assert_eq!(kind([0, 0], [2, 2], [2, 1], 8), Some(ErrorKind::InvalidParam));
        assert_eq!(kind([0, 0], [2, 2], [2, 2], 7), Some(ErrorKind::InvalidParam));
        assert_eq!(kind([0, 0], [2, 2], [2, 2], -1), Some(ErrorKind::InvalidParam));
        // The second row would begin after the buffer.
        assert_eq!(kind([0, 0], [2, 2], [2, 5], 8), Some(ErrorKind::InvalidParam));
        assert_eq!(kind([-1, 0], [2, 2], [4, 4], 64), Some(ErrorKind::Failure));
        assert_eq!(kind([i64::MIN, 0], [i64::MAX, 2], [4, 4], 64), Some(ErrorKind::InvalidParam));
    }

    #[test]
    fn selections_ask_for_the_shape_of_the_buffer_if_there_are_items() {
        let of = |lists: &[&[i64]], shape: &'static [i64], size| {
            SelectionRequest::of(&geometry(), 2, lists, || Ok(shape), size)
        };
        let request = of(&[&[0, 3], &[5, 1, 1]], &[2, 4], 12).unwrap().unwrap();
        assert_eq!((request.span, &request.buffershape[..]), (2 * (4 + 3), &[2, 4][..]));
        let none = SelectionRequest::of(&geometry(), 2, &[&[0, 3], &[]], || unreachable!(), 0);
        assert!(none.unwrap().is_none());
        assert!(of(&[&[0, 3], &[]], &[2, 4], 4).is_err(), "no items, but a size");
        assert!(of(&[&[0, 3], &[1]], &[2, 4], 6).is_err(), "another size");
        assert!(of(&[&[0, 3], &[1]], &[1, 4], 4).is_err(), "shape too small");
        assert!(of(&[&[0, 4], &[1]], &[2, 4], 4).is_err(), "no such item");
    }

    #[test]
    fn boxes_are_copied_between_padded_buffers() {
        let src: Vec<u8> = (0..24).collect();
        let mut dst = [255; 20];
        let extents = extents(&[1, 2], &[3, 5]);
        assert_eq!(extents[..3], [2, 3, 1]);
        let mut copy = BoxCopy::of_item(1);
        let from = PaddedBox { shape: &[4, 6], start: &[1, 2] };
        let to = PaddedBox { shape: &[4, 5], start: &[2, 1] };
        let (src_at, dst_at) = between_padded(&mut copy, 1, &extents[..2], from, to).unwrap();
        copy.copy(&src[src_at..], &mut dst[dst_at..]).unwrap();
        assert_eq!(dst[10..], [255, 8, 9, 10, 255, 255, 14, 15, 16, 255]);
        assert_eq!(dst[..10], [255; 10]);
        let far = PaddedBox { shape: &[4, i64::MAX], start: &[i64::MAX, i64::MAX] };
        assert!(between_padded(&mut BoxCopy::of_item(8), 8, &extents[..2], far, to).is_err());
    }
}
