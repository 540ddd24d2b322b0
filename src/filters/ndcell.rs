//! NDCELL: reorders an n-d block so that the items of each small cell lie together.
//!
//! The meta byte is the side of the cells in items. Cells follow each other in C order, and so do the items within a
//! cell; cells at the far edges are cut. Neighbours in all dimensions come close to each other that way, which helps
//! codecs that only look at what is near.

#![forbid(unsafe_code)]

use super::cells::{CellGrid, schunk_typesize};
use super::{Filter, FilterContext};
use crate::error::{ErrorKind, Result, ensure};

/// The filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct NdCell;

impl Filter for NdCell {
    fn forward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let kind = ErrorKind::FilterPipeline;
        let grid = grid(cx, cx.typesize, src.len(), kind)?;
        grid.gather(src, dest, kind)
    }

    fn backward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let kind = ErrorKind::Failure;
        let grid = grid(cx, schunk_typesize(&cx.container, kind)?, src.len(), kind)?;
        grid.scatter(src, dest, kind)
    }

    fn needs_geometry(&self) -> bool {
        true
    }
}

fn grid(cx: &FilterContext<'_>, typesize: usize, len: usize, kind: ErrorKind) -> Result<CellGrid> {
    let side = usize::from(cx.meta);
    let grid = CellGrid::new(&cx.container, typesize, len, side, kind)?;
    let cell_len = (side as u128).pow(grid.ndim() as u32);
    ensure(cell_len <= (len / typesize) as u128, kind, "cell larger than the block")?;
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::nd_context as context;
    use crate::format::geometry::Container;
    use proptest::prelude::*;

    fn run(cx: &FilterContext<'_>, src: &[u8]) -> Vec<u8> {
        let mut dest = vec![0; src.len()];
        NdCell.forward(cx, src, &mut dest).unwrap();
        let mut back = vec![0; src.len()];
        NdCell.backward(cx, &dest, &mut back).unwrap();
        assert_eq!(back, src);
        dest
    }

    #[test]
    fn cells_are_ordered_as_by_the_c_library() {
        let src: Vec<u8> = (0..32).collect();
        let expected = [
            0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 16, 17, 24, 25, 18, 19, 26, 27, 20, 21, 28,
            29, 22, 23, 30, 31,
        ];
        assert_eq!(run(&context(2, 1, &[4, 8]), &src), expected);
        let src: Vec<u8> = (0..35).collect();
        let expected = [
            0, 1, 2, 7, 8, 9, 14, 15, 16, 3, 4, 5, 10, 11, 12, 17, 18, 19, 6, 13, 20, 21, 22, 23, 28, 29, 30,
            24, 25, 26, 31, 32, 33, 27, 34,
        ];
        assert_eq!(run(&context(3, 1, &[5, 7]), &src), expected);
    }

    #[test]
    fn unfit_geometry_is_refused_before_anything_is_written() {
        let src = [1; 64];
        let mut dest = [7; 64];
        let fit = context(2, 1, &[8, 8]);
        assert!(NdCell.forward(&fit, &src, &mut [0; 64]).is_ok());
        let shapes: [&[i32]; 9] = [
            &[],
            &[8, 7],
            &[8, 9],
            &[0, 8],
            &[-8, -8],
            &[1 << 16, 1 << 16, 1 << 16, 1 << 16, 64],
            &[1 << 30, 4, 1 << 30, 4, 64],
            &[1, 1, 1, 1, 1, 1, 1, 8, 8],
            &[65536, 65537],
        ];
        let mut cases: Vec<_> = shapes.iter().map(|shape| context(1, 1, shape)).collect();
        cases.push(context(0, 1, &[8, 8]));
        cases.push(context(9, 1, &[8, 8]));
        cases.push(context(5, 1, &[4, 4, 4]));
        cases.push(context(255, 1, &[2, 2, 2, 2, 2, 2, 1, 1]));
        cases.push(context(2, 2, &[8, 8]));
        cases.push(context(2, 0, &[8, 8]));
        cases.push(context(2, -1, &[8, 8]));
        cases.push(FilterContext { container: Container::None, ..fit });
        cases.push(FilterContext { container: Container::Schunk { typesize: 1, geometry: None }, ..fit });
        for cx in cases {
            assert_eq!(
                NdCell.forward(&cx, &src, &mut dest).unwrap_err().kind(),
                ErrorKind::FilterPipeline,
                "{:?} {}",
                cx.container,
                cx.meta
            );
            assert_eq!(NdCell.backward(&cx, &src, &mut dest).unwrap_err().kind(), ErrorKind::Failure);
        }
        assert_eq!(dest, [7; 64]);
    }

    /// The definition: items sorted by cell and by position in the cell.
    fn by_definition(src: &[u8], typesize: usize, shape: &[i32], side: i32) -> Vec<u8> {
        let mut items: Vec<(Vec<i32>, Vec<i32>, &[u8])> = src
            .chunks_exact(typesize)
            .enumerate()
            .map(|(i, item)| {
                let mut rest = i as i32;
                let mut position: Vec<i32> = shape
                    .iter()
                    .rev()
                    .map(|extent| {
                        let coordinate = rest % extent;
                        rest /= extent;
                        coordinate
                    })
                    .collect();
                position.reverse();
                (position.iter().map(|x| x / side).collect(), position, item)
            })
            .collect();
        items.sort();
        items.into_iter().flat_map(|(_, _, item)| item.to_vec()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn cells_follow_the_definition_and_come_back(
            shape in proptest::collection::vec(1i32..9, 1..=4), long in 1i32..40, side in 1u8..6, typesize in 1usize..9,
        ) {
            let mut shape = shape;
            let last = shape.len() - 1;
            shape[last] = long;
            let nitems: i32 = shape.iter().product();
            prop_assume!(i32::from(side).pow(shape.len() as u32) <= nitems);
            let src: Vec<u8> = (0..nitems as usize * typesize).map(|i| (i * 7 + i / 251) as u8).collect();
            let cells = run(&context(side, typesize as i32, &shape), &src);
            prop_assert_eq!(cells, by_definition(&src, typesize, &shape, i32::from(side)));
        }
    }
}
