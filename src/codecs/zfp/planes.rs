//! The bit planes of a cell: from coefficients to planes and back. Bit i of a plane belongs to coefficient i.

#![forbid(unsafe_code)]

use super::bitstream::low_bits;
use super::real::{Int, Real};

/// The highest bit planes of a cell of `N` coefficients, in `G` groups of up to 64 coefficients.
///
/// The planes are the columns of a matrix whose rows are coefficients, and arise by transposing square parts of it.
/// With 64 coefficients in a group, 16, 32 or 64 planes are kept, one per row, the highest in the last one. Smaller
/// cells keep all planes, several in a row: plane k lies in row k mod `N`, from bit k div `N` times `N` on.
pub(super) struct Planes<const N: usize, const G: usize> {
    rows: [[u64; 64]; G],
    /// Number of the lowest plane kept.
    lowest: u32,
}

impl<const N: usize, const G: usize> Planes<N, G> {
    pub(super) fn new() -> Planes<N, G> {
        const { assert!(N <= 64 * G && N.is_power_of_two() && (N <= 64 || N % 64 == 0)) };
        Planes { rows: [[0; 64]; G], lowest: 0 }
    }

    /// Number of planes to keep when `count` are coded.
    #[inline(always)]
    fn height<R: Real>(count: u32) -> u32 {
        if N < 64 {
            R::INT_BITS
        } else if count <= 16 {
            16
        } else if count <= 32 {
            32
        } else {
            64
        }
    }

    /// Fills in the `count` highest planes of `cell`, whose coefficients are taken in the order `order`.
    #[inline(always)]
    pub(super) fn set<R: Real>(&mut self, cell: &[R::Int; N], order: &[u8; N], count: u32) {
        let height = Self::height::<R>(count);
        self.lowest = R::INT_BITS - height;
        for (rows, order) in self.rows.iter_mut().zip(order.chunks(64)) {
            if N < 64 {
                for (row, &position) in rows.iter_mut().zip(order) {
                    *row = cell[usize::from(position)].to_negabinary();
                }
                transpose(&mut rows[..N]);
            } else {
                match height {
                    16 => set_group::<R, N, 16>(rows, cell, order),
                    32 => set_group::<R, N, 32>(rows, cell, order),
                    _ => set_group::<R, N, 64>(rows, cell, order),
                }
            }
        }
    }

    /// Undoes [`set`](Self::set), with zeros for the planes that are not kept; destroys the planes.
    #[inline(always)]
    pub(super) fn take<R: Real>(&mut self, cell: &mut [R::Int; N], order: &[u8; N]) {
        for (rows, order) in self.rows.iter_mut().zip(order.chunks(64)) {
            if N < 64 {
                transpose(&mut rows[..N]);
                for (row, &position) in rows.iter_mut().zip(order) {
                    cell[usize::from(position)] = R::Int::from_negabinary(*row);
                }
            } else {
                match R::INT_BITS - self.lowest {
                    16 => take_group::<R, N, 16>(rows, cell, order),
                    32 => take_group::<R, N, 32>(rows, cell, order),
                    _ => take_group::<R, N, 64>(rows, cell, order),
                }
            }
        }
    }

    /// Prepares for adding up to `count` planes of a cell of type `R`.
    #[inline(always)]
    pub(super) fn clear<R: Real>(&mut self, count: u32) {
        let height = Self::height::<R>(count);
        self.lowest = R::INT_BITS - height;
        for rows in &mut self.rows {
            rows[..if N < 64 { N } else { height as usize }].fill(0);
        }
    }

    /// Plane `k`, one of those kept.
    #[inline(always)]
    pub(super) fn plane(&self, k: u32) -> [u64; G] {
        let k = (k - self.lowest) as usize % 64;
        if N >= 64 {
            std::array::from_fn(|group| self.rows[group][k])
        } else {
            [(self.rows[0][k % N] >> (k / N * N)) & ((1 << (N % 64)) - 1); G]
        }
    }

    /// Sets bits of plane `k`, which were 0.
    #[inline(always)]
    pub(super) fn add_plane(&mut self, k: u32, bits: [u64; G]) {
        let k = (k - self.lowest) as usize % 64;
        if N >= 64 {
            for (rows, bits) in self.rows.iter_mut().zip(bits) {
                rows[k] = bits;
            }
        } else {
            self.rows[0][k % N] |= bits[0] << (k / N * N);
        }
    }
}

/// Stores the `H` highest planes of 64 coefficients in as many rows.
#[inline(always)]
fn set_group<R: Real, const N: usize, const H: usize>(
    rows: &mut [u64; 64],
    cell: &[R::Int; N],
    order: &[u8],
) {
    let dropped = (R::INT_BITS as usize).saturating_sub(H);
    for (i, row) in rows[..H].iter_mut().enumerate() {
        // Coefficients that are `H` apart lie side by side.
        *row = order[i..]
            .iter()
            .step_by(H)
            .enumerate()
            .map(|(lane, &position)| (cell[usize::from(position)].to_negabinary() >> dropped) << (lane * H))
            .fold(0, |row, bits| row | bits);
    }
    transpose(&mut rows[..H]);
}

/// Undoes [`set_group`].
#[inline(always)]
fn take_group<R: Real, const N: usize, const H: usize>(
    rows: &mut [u64; 64],
    cell: &mut [R::Int; N],
    order: &[u8],
) {
    let dropped = (R::INT_BITS as usize).saturating_sub(H);
    transpose(&mut rows[..H]);
    for (i, row) in rows[..H].iter().enumerate() {
        for (lane, &position) in order[i..].iter().step_by(H).enumerate() {
            let digits = (row >> (lane * H)) & low_bits(H as u32);
            cell[usize::from(position)] = R::Int::from_negabinary(digits << dropped);
        }
    }
}

/// Transposes the square bit matrices that lie side by side in `rows`; their side is the number of rows.
#[inline(always)]
fn transpose(rows: &mut [u64]) {
    let mut distance = rows.len() / 2;
    while distance > 0 {
        // Alternately `distance` zeros and `distance` ones, zeros in the high bits.
        let mask = u64::MAX / ((1 << distance) + 1);
        for pair in rows.chunks_exact_mut(2 * distance) {
            let (upper, lower) = pair.split_at_mut(distance);
            for (a, b) in upper.iter_mut().zip(lower) {
                let swapped = ((*a >> distance) ^ *b) & mask;
                *b ^= swapped;
                *a ^= swapped << distance;
            }
        }
        distance /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_moves_bit_c_of_row_r_to_bit_r_of_row_c() {
        for side in [4usize, 16, 32, 64] {
            let mut state = 7u64;
            let rows: Vec<u64> = (0..side)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    state ^ state >> 29
                })
                .collect();
            let mut transposed = rows.clone();
            transpose(&mut transposed);
            for lane in 0..64 / side {
                for r in 0..side {
                    for c in 0..side {
                        let bit = |rows: &[u64], r: usize, c: usize| rows[r] >> (lane * side + c) & 1;
                        assert_eq!(bit(&rows, r, c), bit(&transposed, c, r), "{side} {lane} {r} {c}");
                    }
                }
            }
        }
    }
}
