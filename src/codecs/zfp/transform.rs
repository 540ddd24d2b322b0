//! The decorrelating transform of a cell: integer lifting along each axis.

#![forbid(unsafe_code)]

use super::real::Int;

/// One step of four items along an axis.
#[inline(always)]
fn lift<I: Int>([mut x, mut y, mut z, mut w]: [I; 4]) -> [I; 4] {
    x = x.add(w).half();
    w = w.sub(x);
    z = z.add(y).half();
    y = y.sub(z);
    x = x.add(z).half();
    z = z.sub(x);
    w = w.add(y).half();
    y = y.sub(w);
    w = w.add(y.half());
    y = y.sub(w.half());
    [x, y, z, w]
}

/// Undoes [`lift`], up to the bits that its halvings dropped.
#[inline(always)]
fn unlift<I: Int>([mut x, mut y, mut z, mut w]: [I; 4]) -> [I; 4] {
    y = y.add(w.half());
    w = w.sub(y.half());
    y = y.add(w);
    w = w.double().sub(y);
    z = z.add(x);
    x = x.double().sub(z);
    y = y.add(z);
    z = z.double().sub(y);
    w = w.add(x);
    x = x.double().sub(w);
    [x, y, z, w]
}

/// Applies `step` to all lines of the cell along the axis with this stride.
#[inline(always)]
fn along<I: Int, const N: usize>(cell: &mut [I; N], stride: usize, step: impl Fn([I; 4]) -> [I; 4]) {
    for slab in cell.chunks_exact_mut(4 * stride) {
        let (x, rest) = slab.split_at_mut(stride);
        let (y, rest) = rest.split_at_mut(stride);
        let (z, w) = rest.split_at_mut(stride);
        for (((x, y), z), w) in x.iter_mut().zip(y).zip(z).zip(w) {
            [*x, *y, *z, *w] = step([*x, *y, *z, *w]);
        }
    }
}

/// Exchanges the two fastest axes, so that lines along either of them are processed side by side.
#[inline(always)]
fn transpose<I: Int, const N: usize>(cell: &mut [I; N]) {
    for plane in cell.chunks_exact_mut(16) {
        for row in 0..4 {
            for column in 0..row {
                plane.swap(4 * row + column, 4 * column + row);
            }
        }
    }
}

/// Transforms a cell of `N` = 4^d items, the fastest axis first.
#[inline(always)]
pub(super) fn forward<I: Int, const N: usize>(cell: &mut [I; N]) {
    if N == 4 {
        along(cell, 1, lift);
        return;
    }
    transpose(cell);
    along(cell, 4, lift);
    transpose(cell);
    along(cell, 4, lift);
    let mut stride = 16;
    while stride < N {
        along(cell, stride, lift);
        stride *= 4;
    }
}

/// Undoes [`forward`], the slowest axis first.
#[inline(always)]
pub(super) fn backward<I: Int, const N: usize>(cell: &mut [I; N]) {
    if N == 4 {
        along(cell, 1, unlift);
        return;
    }
    let mut stride = N / 4;
    while stride >= 4 {
        along(cell, stride, unlift);
        stride /= 4;
    }
    transpose(cell);
    along(cell, 4, unlift);
    transpose(cell);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: line by line, each axis in turn.
    fn forward_by_definition(cell: &mut [i64], dims: usize) {
        for axis in 0..dims {
            let stride = 1 << (2 * axis);
            for start in (0..cell.len()).filter(|i| i / stride % 4 == 0) {
                let line = [0, 1, 2, 3].map(|i| cell[start + i * stride]);
                for (i, value) in lift(line).into_iter().enumerate() {
                    cell[start + i * stride] = value;
                }
            }
        }
    }

    fn check<const N: usize>(dims: usize) {
        let mut state = 1u64;
        for _ in 0..50 {
            let cell: [i64; N] = std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state as i64) >> 20
            });
            let mut ours = cell;
            forward(&mut ours);
            let mut expected = cell;
            forward_by_definition(&mut expected, dims);
            assert_eq!(ours, expected);
            backward(&mut ours);
            // Each axis loses a few low bits.
            assert!(ours.iter().zip(&cell).all(|(a, b)| (a - b).abs() < 1 << (2 * dims + 1)));
        }
    }

    #[test]
    fn the_transform_follows_its_definition_and_comes_back() {
        check::<4>(1);
        check::<16>(2);
        check::<64>(3);
        check::<256>(4);
    }
}
