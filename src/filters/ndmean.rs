//! NDMEAN: replaces the items of each small cell of an n-d block of floats by their mean.
//!
//! The meta byte is the side of the cells in items, as a signed byte; cells are nowhere longer than the block. The
//! result is in the order of [`ndcell`](super::ndcell), and the inverse restores the order but not the items.

#![forbid(unsafe_code)]

use super::cells::{CellGrid, schunk_typesize};
use super::{Filter, FilterContext};
use crate::error::{ErrorKind, Result, ensure};

/// The filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct NdMean;

impl Filter for NdMean {
    fn forward(&self, cx: &FilterContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let kind = ErrorKind::FilterPipeline;
        let grid = grid(cx, cx.typesize, src.len(), kind)?;
        ensure(src.len() == dest.len(), kind, "filter buffers of different lengths")?;
        if cx.typesize == 4 {
            average::<4, f32>(
                &grid,
                src,
                dest,
                |sum, item| sum + f32::from_ne_bytes(item),
                |sum, n| (sum / n as f32).to_ne_bytes(),
            );
        } else {
            average::<8, f64>(
                &grid,
                src,
                dest,
                |sum, item| sum + f64::from_ne_bytes(item),
                |sum, n| (sum / n as f64).to_ne_bytes(),
            );
        }
        Ok(())
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
    ensure(matches!(cx.meta, 1..=127), kind, "cell side out of range")?;
    ensure(matches!(typesize, 4 | 8), kind, "NDMEAN needs floats")?;
    let grid = CellGrid::new(&cx.container, typesize, len, usize::from(cx.meta), kind)?;
    Ok(grid.with_cells_inside())
}

/// Fills `dest` with the means of the cells of `src`. The sum runs in the type of the items, in C order: that is part
/// of the result.
fn average<const SIZE: usize, T: Copy + Default>(
    grid: &CellGrid,
    src: &[u8],
    dest: &mut [u8],
    add: impl Fn(T, [u8; SIZE]) -> T,
    mean: impl Fn(T, usize) -> [u8; SIZE],
) {
    let mut pos = 0;
    grid.for_each_cell(|cell| {
        let mut sum = T::default();
        grid.for_each_row(cell, |start, len| {
            for item in src[start..start + len].chunks_exact(SIZE) {
                sum = add(sum, item.try_into().expect("the length of an item"));
            }
        });
        let mean = mean(sum, cell.nitems);
        for item in dest[pos..pos + cell.nitems * SIZE].chunks_exact_mut(SIZE) {
            item.copy_from_slice(&mean);
        }
        pos += cell.nitems * SIZE;
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::nd_context as context;
    use crate::format::geometry::Container;
    use proptest::prelude::*;

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
    }

    fn forward(cx: &FilterContext<'_>, src: &[u8]) -> Vec<u8> {
        let mut dest = vec![0; src.len()];
        NdMean.forward(cx, src, &mut dest).unwrap();
        dest
    }

    #[test]
    fn each_cell_becomes_its_mean_in_cell_order() {
        let src: Vec<u8> = (0..64u8).flat_map(|i| f32::from(i).to_ne_bytes()).collect();
        let means = floats(&forward(&context(4, 4, &[8, 8]), &src));
        let expected: Vec<f32> = [13.5, 17.5, 45.5, 49.5].into_iter().flat_map(|m| [m; 16]).collect();
        assert_eq!(means, expected);
        let doubles: Vec<u8> = (0..64u8).flat_map(|i| f64::from(i).to_ne_bytes()).collect();
        let means = forward(&context(4, 8, &[8, 8]), &doubles);
        let expected: Vec<u8> = expected.into_iter().flat_map(|m| f64::from(m).to_ne_bytes()).collect();
        assert_eq!(means, expected);
    }

    #[test]
    fn blocks_thinner_than_a_cell_come_back_in_place() {
        let src: Vec<u8> = (0..16u8).flat_map(|i| f32::from(i).to_ne_bytes()).collect();
        let cx = context(4, 4, &[2, 8]);
        let means = forward(&cx, &src);
        let mut back = vec![0; src.len()];
        NdMean.backward(&cx, &means, &mut back).unwrap();
        let row = [5.5, 5.5, 5.5, 5.5, 9.5, 9.5, 9.5, 9.5];
        assert_eq!(floats(&back), [row, row].concat());
    }

    #[test]
    fn unfit_parameters_are_refused_before_anything_is_written() {
        let src = [1; 256];
        let mut dest = [7; 256];
        let fit = context(4, 4, &[8, 8]);
        let mut cases: Vec<_> =
            [0, 128, 200, 255].iter().map(|&meta| FilterContext { meta, ..fit }).collect();
        let shapes: [&[i32]; 7] = [
            &[8, 7],
            &[8, 0],
            &[-8, -8],
            &[],
            &[1 << 30, 4, 64],
            &[65536, 65536, 64],
            &[1, 1, 1, 1, 1, 1, 1, 8, 8],
        ];
        cases.extend(shapes.iter().map(|shape| context(4, 4, shape)));
        cases.extend([context(4, 2, &[8, 16]), context(4, 1, &[16, 16]), context(4, -4, &[8, 8])]);
        cases.push(FilterContext { container: Container::None, ..fit });
        cases.push(FilterContext { container: Container::Schunk { typesize: 4, geometry: None }, ..fit });
        for cx in cases {
            let error = NdMean.forward(&cx, &src, &mut dest).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FilterPipeline, "{:?} {}", cx.container, cx.meta);
            assert_eq!(NdMean.backward(&cx, &src, &mut dest).unwrap_err().kind(), ErrorKind::Failure);
        }
        assert_eq!(dest, [7; 256]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn items_come_back_as_the_mean_of_their_cell(
            shape in proptest::collection::vec(1i32..9, 1..=3), side in 1u8..12, seed: u32,
        ) {
            let cx = context(side, 8, &shape);
            let nitems: i32 = shape.iter().product();
            let items: Vec<f64> = (0..nitems).map(|i| f64::from((i as u32).wrapping_mul(seed | 1) % 1000)).collect();
            let src: Vec<u8> = items.iter().flat_map(|v| v.to_ne_bytes()).collect();
            let means = forward(&cx, &src);
            let mut back = vec![0; src.len()];
            NdMean.backward(&cx, &means, &mut back).unwrap();
            let cell = |i: i32| {
                let mut rest = i;
                shape.iter().rev().map(|extent| {
                    let coordinate = rest % extent;
                    rest /= extent;
                    coordinate / i32::from(side)
                }).collect::<Vec<_>>()
            };
            for (i, mean) in back.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).enumerate() {
                let own = cell(i as i32);
                let fellows: Vec<f64> =
                    (0..nitems).filter(|&j| cell(j) == own).map(|j| items[j as usize]).collect();
                prop_assert_eq!(mean, fellows.iter().sum::<f64>() / fellows.len() as f64);
            }
        }
    }
}
