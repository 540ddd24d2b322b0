//! Bit planes of a cell: between coefficients and planes, and the coding of the planes.
//!
//! Bit i of a plane belongs to coefficient i. A plane is coded as the bits of the `m` coefficients known to be
//! non-zero, and then group tests: "is there another one?", and if so the bits up to it. The last coefficient's bit
//! follows from the test.

use super::bitstream::{BitReader, BitWriter, low_bits};
use super::real::{Int, Real};

/// The highest bit planes of a cell of `N` coefficients, in `G` groups of up to 64 coefficients.
///
/// The planes are the columns of a matrix whose rows are coefficients, and arise by transposing square parts of it. With
/// 64 coefficients in a group, 16, 32 or 64 planes are kept, one per row, the highest in the last one. Smaller cells
/// keep all planes, several in a row: plane k lies in row k mod `N`, from bit k div `N` times `N` on.
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
    fn plane(&self, k: u32) -> [u64; G] {
        let k = (k - self.lowest) as usize % 64;
        if N >= 64 {
            std::array::from_fn(|group| self.rows[group][k])
        } else {
            [(self.rows[0][k % N] >> (k / N * N)) & ((1 << (N % 64)) - 1); G]
        }
    }

    /// Sets bits of plane `k`, which were 0.
    #[inline(always)]
    fn add_plane(&mut self, k: u32, bits: [u64; G]) {
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

/// Writes the planes from `top - 1` down to `bottom` in at most `budget` bits.
#[inline(always)]
pub(super) fn encode<const N: usize, const G: usize>(
    planes: &Planes<N, G>,
    (bottom, top): (u32, u32),
    mut budget: u32,
    writer: &mut BitWriter<'_>,
) {
    let mut known = 0;
    let mut left = top;
    if N == 4 {
        // Two planes take at most 14 bits.
        while left >= bottom + 2 && budget >= 14 {
            let pair = planes.plane(left - 1)[0] | planes.plane(left - 2)[0] << 4;
            budget -= encode_two_planes_of_4(pair, &mut known, writer);
            left -= 2;
        }
    }
    for k in (bottom..left).rev() {
        let plane = planes.plane(k);
        if N <= 16 {
            encode_small_plane::<N>(plane[0], &mut known, &mut budget, writer);
            if budget == 0 {
                return;
            }
        } else if G == 1 && budget >= 2 * N as u32 {
            // No plane needs more bits than that: one per coefficient, one per test.
            budget -= encode_plane::<N>(plane[0], &mut known, writer);
        } else {
            encode_plane_limited::<N, G>(&plane, &mut known, &mut budget, writer);
            if budget == 0 {
                return;
            }
        }
    }
}

/// Writes one plane of up to 64 coefficients; returns its length in bits.
#[inline(always)]
fn encode_plane<const N: usize>(plane: u64, known: &mut u32, writer: &mut BitWriter<'_>) -> u32 {
    let n = N as u32;
    let mut m = *known;
    let mut used = m;
    writer.put(plane & low_bits(m), m);
    while m < n {
        let rest = plane >> m;
        if rest == 0 {
            writer.put(0, 1);
            used += 1;
            break;
        }
        let zeros = rest.trailing_zeros();
        m += zeros + 1;
        // A positive test, the zeros, and a 1 unless that is implied.
        let len = if m == n { zeros + 1 } else { zeros + 2 };
        writer.put((1 | (2 << zeros)) & low_bits(len), len);
        used += len;
    }
    *known = m;
    used
}

/// Writes the part of one plane of up to 16 coefficients that fits in `budget` bits.
#[inline(always)]
fn encode_small_plane<const N: usize>(
    plane: u64,
    known: &mut u32,
    budget: &mut u32,
    writer: &mut BitWriter<'_>,
) {
    let n = N as u32;
    let mut m = *known;
    let mut bits = plane & low_bits(m);
    let mut len = m;
    let mut rest = plane >> m;
    while m < n {
        if rest == 0 {
            len += 1;
            break;
        }
        let zeros = rest.trailing_zeros();
        rest >>= zeros + 1;
        m += zeros + 1;
        // A positive test, the zeros, and a 1 unless that is implied.
        bits |= (1 | (u64::from(m < n) << (zeros + 1))) << len;
        len += zeros + 1 + u32::from(m < n);
    }
    *known = m;
    let fitting = len.min(*budget);
    writer.put(bits & low_bits(fitting), fitting);
    *budget -= fitting;
}

/// Writes two planes of 4 coefficients by table, the first one in the low bits of `pair`; returns their length in bits.
#[inline(always)]
fn encode_two_planes_of_4(pair: u64, known: &mut u32, writer: &mut BitWriter<'_>) -> u32 {
    let code = ENCODE_4[(*known * 256) as usize + (pair & 255) as usize];
    writer.put(u64::from(code.bits), u32::from(code.len));
    *known = u32::from(code.known);
    u32::from(code.len)
}

/// Writes the part of one plane that fits in `budget` bits.
#[inline(always)]
fn encode_plane_limited<const N: usize, const G: usize>(
    plane: &[u64; G],
    known: &mut u32,
    budget: &mut u32,
    writer: &mut BitWriter<'_>,
) {
    let n = N as u32;
    let mut m = *known;
    let mut verbatim = m.min(*budget);
    *budget -= verbatim;
    for &word in plane {
        let len = verbatim.min(64);
        writer.put(word & low_bits(len), len);
        verbatim -= len;
    }
    while m < n && *budget > 0 {
        *budget -= 1;
        let Some(next) = next_one(plane, m) else {
            writer.put(0, 1);
            break;
        };
        writer.put(1, 1);
        let zeros = (next - m).min(*budget);
        writer.put_zeros(zeros);
        *budget -= zeros;
        if *budget > 0 && next < n - 1 {
            writer.put(1, 1);
            *budget -= 1;
        }
        m = next + 1;
    }
    *known = m;
}

/// Number of the first 1 in `plane` from bit `start` on.
#[inline(always)]
fn next_one<const G: usize>(plane: &[u64; G], start: u32) -> Option<u32> {
    let mut mask = u64::MAX << (start % 64);
    let mut word = start / 64;
    while (word as usize) < G {
        let rest = plane[word as usize] & mask;
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros());
        }
        mask = u64::MAX;
        word += 1;
    }
    None
}

/// Reads what [`encode`] wrote with the same bounds. The planes must be clear.
#[inline(always)]
pub(super) fn decode<const N: usize, const G: usize>(
    planes: &mut Planes<N, G>,
    (bottom, top): (u32, u32),
    mut budget: u32,
    reader: &mut BitReader<'_>,
) {
    let mut known = 0;
    let mut left = top;
    if N == 4 {
        while left >= bottom + 2 && budget >= 8 {
            let (pair, count, len) = decode_planes_of_4(&mut known, reader);
            planes.add_plane(left - 1, [pair & 15; G]);
            planes.add_plane(left - 2, [pair >> 4; G]);
            left -= count;
            budget -= len;
        }
    }
    for k in (bottom..left).rev() {
        if N <= 16 {
            let plane = decode_small_plane::<N>(&mut known, &mut budget, reader);
            planes.add_plane(k, [plane; G]);
            if budget == 0 {
                return;
            }
        } else if G == 1 && budget >= 2 * N as u32 {
            let start = reader.position();
            planes.add_plane(k, [decode_plane::<N>(&mut known, reader); G]);
            // At most 2 N bits.
            budget -= (reader.position() - start) as u32;
        } else {
            planes.add_plane(k, decode_plane_limited::<N, G>(&mut known, &mut budget, reader));
            if budget == 0 {
                return;
            }
        }
    }
}

/// Reads one plane of up to 64 coefficients.
#[inline(always)]
fn decode_plane<const N: usize>(known: &mut u32, reader: &mut BitReader<'_>) -> u64 {
    let n = N as u32;
    let mut m = *known;
    let mut plane = reader.read(m);
    while m < n {
        reader.ensure(32);
        let (bits, count) = reader.peek();
        if bits & 1 == 0 {
            reader.consume(1);
            break;
        }
        let zeros = (bits >> 1).trailing_zeros();
        let limit = n - 1 - m;
        if zeros < limit && zeros + 2 <= count {
            reader.consume(zeros + 2);
            m += zeros;
        } else {
            reader.consume(1);
            m += reader.read_zeros(limit);
        }
        plane |= 1 << m;
        m += 1;
    }
    *known = m;
    plane
}

/// Reads the part of one plane of up to 16 coefficients that `budget` bits hold; 32 bits at most.
#[inline(always)]
fn decode_small_plane<const N: usize>(known: &mut u32, budget: &mut u32, reader: &mut BitReader<'_>) -> u64 {
    let n = N as u32;
    let mut m = *known;
    reader.ensure(32);
    let (mut bits, _) = reader.peek();
    let verbatim = m.min(*budget);
    let mut left = *budget - verbatim;
    let mut plane = bits & low_bits(verbatim);
    bits >>= verbatim;
    while m < n && left > 0 {
        left -= 1;
        if bits & 1 == 0 {
            break;
        }
        let limit = (n - 1 - m).min(left);
        let zeros = ((bits >> 1) | (1 << limit)).trailing_zeros();
        // The zeros, and a 1 unless that is implied or does not fit.
        let len = zeros + u32::from(zeros < limit);
        left -= len;
        bits >>= len + 1;
        m += zeros;
        plane |= 1 << m;
        m += 1;
    }
    reader.consume(*budget - left);
    *budget = left;
    *known = m;
    plane
}

/// Reads one or two planes of 4 coefficients by table. Returns them, the first one in the low bits; their number; and
/// their length in bits, at most 8.
#[inline(always)]
fn decode_planes_of_4(known: &mut u32, reader: &mut BitReader<'_>) -> (u64, u32, u32) {
    reader.ensure(8);
    let (bits, _) = reader.peek();
    let code = DECODE_4[(*known * 256) as usize + (bits & 255) as usize];
    reader.consume(u32::from(code.len));
    *known = u32::from(code.known);
    (u64::from(code.planes), u32::from(code.count), u32::from(code.len))
}

/// Reads the part of one plane that `budget` bits hold.
#[inline(always)]
fn decode_plane_limited<const N: usize, const G: usize>(
    known: &mut u32,
    budget: &mut u32,
    reader: &mut BitReader<'_>,
) -> [u64; G] {
    let n = N as u32;
    let mut m = *known;
    let mut verbatim = m.min(*budget);
    *budget -= verbatim;
    let mut plane = [0; G];
    for word in &mut plane {
        let len = verbatim.min(64);
        *word = reader.read(len);
        verbatim -= len;
    }
    while m < n && *budget > 0 {
        *budget -= 1;
        if reader.read(1) == 0 {
            break;
        }
        let limit = (n - 1 - m).min(*budget);
        let zeros = reader.read_zeros(limit);
        // The zeros, and a 1 if one was read.
        *budget -= zeros + u32::from(zeros < limit);
        m += zeros;
        plane[m as usize / 64] |= 1 << (m % 64);
        m += 1;
    }
    *known = m;
    plane
}

/// The code of one or two planes of 4 coefficients.
#[derive(Clone, Copy)]
struct Code {
    bits: u16,
    /// Length of the code in bits.
    len: u8,
    /// How many coefficients are known to be non-zero afterwards.
    known: u8,
}

/// What the next 8 bits of a stream say.
#[derive(Clone, Copy)]
struct Decoded {
    /// Planes of 4 coefficients, the first one in the low bits.
    planes: u8,
    /// Number of planes: 2 if the code of the second one is complete.
    count: u8,
    /// Length of their code in bits.
    len: u8,
    /// How many coefficients are known to be non-zero afterwards.
    known: u8,
}

/// By the number of known coefficients and two planes, the first one in the low bits.
static ENCODE_4: [Code; 5 * 256] = {
    let mut table = [Code { bits: 0, len: 0, known: 0 }; 5 * 256];
    let mut i = 0;
    while i < table.len() {
        let first = code_of_4((i / 256) as u8, (i % 16) as u8);
        let second = code_of_4(first.known, (i / 16 % 16) as u8);
        table[i] = Code {
            bits: first.bits | second.bits << first.len,
            len: first.len + second.len,
            known: second.known,
        };
        i += 1;
    }
    table
};

/// By the number of known coefficients and the next 8 bits.
static DECODE_4: [Decoded; 5 * 256] = {
    let mut table = [Decoded { planes: 0, count: 0, len: 0, known: 0 }; 5 * 256];
    // First what one plane says, then what two say.
    let mut count = 1;
    while count <= 2 {
        let mut i = 0;
        while i < 5 * 256 {
            let (known, planes) = ((i / 256) as u8, (i % 256) as u8);
            let code = if count == 1 { code_of_4(known, planes & 15) } else { ENCODE_4[i] };
            if code.len <= 8 && (count == 2 || planes < 16) {
                let mut rest = 0;
                while rest < 256 >> code.len {
                    let next = code.bits as usize | rest << code.len;
                    table[known as usize * 256 + next] =
                        Decoded { planes, count, len: code.len, known: code.known };
                    rest += 1;
                }
            }
            i += 1;
        }
        count += 1;
    }
    table
};

/// The code of a plane of 4 coefficients, bit by bit from the definition.
const fn code_of_4(known: u8, plane: u8) -> Code {
    let mut m = known;
    let mut bits = plane as u16 & ((1 << m) - 1);
    let mut len = m;
    while m < 4 {
        if plane >> m == 0 {
            len += 1;
            break;
        }
        bits |= 1 << len;
        len += 1;
        while m < 3 {
            let bit = plane >> m & 1;
            bits |= (bit as u16) << len;
            len += 1;
            if bit == 1 {
                break;
            }
            m += 1;
        }
        m += 1;
    }
    Code { bits, len, known: m }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// Codes the planes with and without the budget's help and reads them back.
    fn check<R: Real, const N: usize, const G: usize>(digits: &[u64; N], budget: u32) {
        let order: [u8; N] = std::array::from_fn(|i| i as u8);
        let cell: [R::Int; N] = std::array::from_fn(|i| R::Int::from_negabinary(digits[i]));
        let mut planes = Planes::<N, G>::new();
        planes.set::<R>(&cell, &order, R::INT_BITS);
        let mut out = vec![0; 4096];
        let mut writer = BitWriter::new(&mut out);
        encode(&planes, (0, R::INT_BITS), budget, &mut writer);
        let len = writer.position();
        assert!(len <= u64::from(budget));

        // Bit by bit, from the definition.
        let mut expected = Vec::new();
        let mut m = 0;
        for k in (0..R::INT_BITS).rev() {
            let bit = |i: usize| digits[i] >> k & 1;
            expected.extend((0..m).map(bit));
            while m < N {
                let any = u64::from((m..N).any(|i| bit(i) == 1));
                expected.push(any);
                if any == 0 {
                    break;
                }
                while m < N - 1 {
                    expected.push(bit(m));
                    if bit(m) == 1 {
                        break;
                    }
                    m += 1;
                }
                m += 1;
            }
        }
        expected.truncate(budget as usize);
        writer.finish().unwrap();
        let mut reader = BitReader::new(&out, 0);
        let bits: Vec<u64> = (0..len).map(|_| reader.read(1)).collect();
        assert_eq!(bits, expected);

        let mut decoded = Planes::<N, G>::new();
        decoded.clear::<R>(R::INT_BITS);
        let mut reader = BitReader::new(&out, 0);
        decode(&mut decoded, (0, R::INT_BITS), budget, &mut reader);
        assert_eq!(reader.position(), len);
        if expected.len() < budget as usize {
            let mut back = [R::Int::default(); N];
            decoded.take::<R>(&mut back, &order);
            for i in 0..N {
                assert_eq!(back[i].to_negabinary(), cell[i].to_negabinary());
            }
        }
    }

    fn digits<const N: usize>() -> impl Strategy<Value = [u64; N]> {
        proptest::collection::vec((any::<u64>(), 0u32..64), N)
            .prop_map(|v| std::array::from_fn(|i| v[i].0 >> v[i].1))
    }

    fn budget() -> impl Strategy<Value = u32> {
        prop_oneof![Just(30_000), 0u32..3000, 0u32..200]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn planes_are_coded_as_defined(
            a in digits::<4>(), b in digits::<16>(), c in digits::<64>(), d in digits::<256>(), budget in budget(),
        ) {
            check::<f64, 4, 1>(&a, budget);
            check::<f64, 16, 1>(&b, budget);
            check::<f64, 64, 1>(&c, budget);
            check::<f64, 256, 4>(&d, budget);
            check::<f32, 4, 1>(&a.map(|u| u & 0xffff_ffff), budget);
            check::<f32, 16, 1>(&b.map(|u| u & 0xffff_ffff), budget);
            check::<f32, 64, 1>(&c.map(|u| u & 0xffff_ffff), budget);
            check::<f32, 256, 4>(&d.map(|u| u & 0xffff_ffff), budget);
        }
    }
}
