//! The coding of bit planes, from the highest one down.
//!
//! A plane is coded as the bits of the `m` coefficients known to be non-zero, and then group tests: "is there another
//! one?", and if so the bits up to it. The last coefficient's bit follows from the test. Where the budget of the cell
//! ends, the code is cut off.

#![forbid(unsafe_code)]

use super::bitstream::{BitReader, BitWriter, low_bits};
use super::pairs::{MAX_PAIR_BITS, PEEKED_BITS, decode_planes_of_4, encode_two_planes_of_4};
use super::planes::Planes;

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
        while left >= bottom + 2 && budget >= MAX_PAIR_BITS {
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
        while left >= bottom + 2 && budget >= PEEKED_BITS {
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

#[cfg(test)]
mod tests {
    use super::super::real::{Int, Real};
    use super::*;
    use proptest::prelude::*;

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
