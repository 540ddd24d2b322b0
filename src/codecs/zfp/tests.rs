use super::*;
use crate::format::geometry::BlockGeometry;
use crate::testing::Random;
use proptest::prelude::*;

fn context(meta: u8, typesize: i32, blockshape: &[i32]) -> CodecContext<'static> {
    let container = Container::Schunk { typesize, geometry: BlockGeometry::new(blockshape) };
    let typesize = usize::try_from(typesize).unwrap_or(1);
    CodecContext { clevel: 5, meta, typesize, blocksize: 0, container, chunk: &[], host: None }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn bytes(typesize: i32, items: impl Iterator<Item = f64>) -> Vec<u8> {
    if typesize == 4 {
        items.flat_map(|v| (v as f32).to_ne_bytes()).collect()
    } else {
        items.flat_map(f64::to_ne_bytes).collect()
    }
}

fn values(typesize: i32, bytes: &[u8]) -> Vec<f64> {
    if typesize == 4 {
        bytes.chunks_exact(4).map(|b| f64::from(f32::from_ne_bytes(b.try_into().unwrap()))).collect()
    } else {
        bytes.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect()
    }
}

/// The items of the golden streams.
fn test_items(typesize: i32, n: i32) -> Vec<u8> {
    let item = |i: i32| f64::from((i * i * 7 + i * 13) % 23) * 0.03125 + f64::from(i) * 0.25;
    bytes(typesize, (0..n).map(item))
}

fn encode(mode: Mode, cx: &CodecContext<'_>, src: &[u8]) -> Vec<u8> {
    let mut dest = vec![0; src.len()];
    let n = Zfp::new(mode).encode(cx, src, &mut dest).unwrap();
    dest.truncate(n);
    dest
}

fn decode(mode: Mode, cx: &CodecContext<'_>, src: &[u8], len: usize) -> Result<Vec<u8>> {
    let mut dest = vec![0xa5; len];
    Zfp::new(mode).decode(cx, src, &mut dest)?;
    Ok(dest)
}

/// Mode, meta, typesize, block shape, stream.
type Golden = (Mode, u8, i32, Vec<i32>, Vec<u8>);

/// What the C library wrote.
fn golden() -> Vec<Golden> {
    include_str!("../../../tests/data/ndcodecs/zfp.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let mode = match fields[0] {
                "33" => Mode::Accuracy,
                "34" => Mode::Precision,
                _ => Mode::Rate,
            };
            let shape = fields[3].split(',').map(|n| n.parse().unwrap()).collect();
            (mode, fields[1].parse().unwrap(), fields[2].parse().unwrap(), shape, hex(fields[4]))
        })
        .collect()
}

#[test]
fn streams_equal_those_of_the_c_library() {
    let cases = golden();
    assert_eq!(cases.len(), 24);
    for (mode, meta, typesize, shape, stream) in cases {
        let src = test_items(typesize, shape.iter().product());
        let cx = context(meta, typesize, &shape);
        assert_eq!(encode(mode, &cx, &src), stream, "{mode:?} {meta} {typesize} {shape:?}");
        let decoded = decode(mode, &cx, &stream, src.len()).unwrap();
        let error = |(a, b): (f64, f64)| (a - b).abs() / if mode == Mode::Accuracy { 1.0 } else { 100.0 };
        let (a, b) = (values(typesize, &src), values(typesize, &decoded));
        assert!(a.into_iter().zip(b).map(error).fold(0.0, f64::max) <= 0.1);
    }
}

#[test]
fn short_streams_equal_those_of_the_c_library() {
    let item = |i: i32| 0.5 * f64::from(i) + 0.25 * f64::from(i % 3);
    let check = |mode, meta: i8, shape: &[i32], stream: &str| {
        let src = bytes(4, (0..shape.iter().product()).map(item));
        assert_eq!(encode(mode, &context(meta as u8, 4, shape), &src), hex(stream), "{mode:?} {shape:?}");
    };
    let square = "056d91080282611e660c7823 9e1361cc1910000301";
    check(Mode::Accuracy, -1, &[4, 4], "056d91080282611e660c78239e1361cc1910000000000000");
    check(Mode::Precision, 10, &[4, 4], &format!("{square}{}", "00".repeat(11)));
    check(Mode::Rate, 50, &[4, 4], &format!("{square}{}", "00".repeat(11)));
    check(Mode::Accuracy, -1, &[16], "01ed1c63a10cb43242152868 75e25d28050dce31160a0000");
    check(Mode::Rate, 25, &[16], "01ed1c6303ad8c5005ad4ebc050dce31");
    check(Mode::Rate, 10, &[4, 4, 4], "096d4284080120000000004000008003002080 1f1fe000e00010000000000000");
}

#[test]
fn parameters_follow_from_meta() {
    for meta in i8::MIN..=i8::MAX {
        let expected = (f64::from(meta) * 10f64.log2()).floor();
        assert_eq!(f64::from(log2_of_power_of_ten(meta)), expected, "{meta}");
    }
    let square = Field::new(&[4, 4]).unwrap();
    assert_eq!(Mode::Precision.limits(10, &square, 4).max_precision, 17);
    assert_eq!(Mode::Precision.limits(255, &square, 8).max_precision, 64);
    assert_eq!(Mode::Rate.limits(0, &square, 4).max_bits, 9);
    assert_eq!(Mode::Rate.limits(0, &square, 8).max_bits, 12);
    assert_eq!(Mode::Rate.limits(37, &square, 8).max_bits, 379);
    assert_eq!(Mode::Rate.limits(255, &square, 8).min_bits, 2611);
}

#[test]
fn what_zfp_cannot_take_is_stored_or_refused() {
    let src = test_items(4, 64);
    let mut dest = [0; 256];
    let codec = Zfp::new(Mode::Accuracy);
    let cx = |typesize, shape: &[i32]| context(0, typesize, shape);
    let alone = CodecContext { container: Container::None, ..cx(4, &[8, 8]) };
    assert_eq!(codec.encode(&alone, &src, &mut dest), Ok(0));
    let shapeless = Container::Schunk { typesize: 4, geometry: None };
    let shapeless = CodecContext { container: shapeless, ..alone };
    assert!(codec.encode(&shapeless, &src, &mut dest).is_err());
    for shape in [&[][..], &[4, 4, 4, 4, 4], &[16, 3], &[0, 8], &[-8, -8]] {
        assert!(codec.encode(&cx(4, shape), &src, &mut dest).is_err(), "{shape:?}");
    }
    assert_eq!(codec.encode(&cx(4, &[8, 7]), &src, &mut dest), Ok(0));
    assert_eq!(codec.encode(&cx(4, &[i32::MAX; 4]), &src, &mut dest), Ok(0));
    assert_eq!(codec.encode(&cx(2, &[8, 8]), &src, &mut dest), Ok(0));
    assert!(codec.encode(&cx(2, &[8, 16]), &src, &mut dest).is_err());
    // Chunks count items above 255 bytes as bytes.
    for (typesize, shape) in [(256, [8, 32]), (4, [8, 8])] {
        let bytes = CodecContext { typesize: 1, ..cx(typesize, &shape) };
        assert_eq!(codec.encode(&bytes, &src, &mut dest), Ok(0));
    }

    let n = codec.encode(&cx(4, &[8, 8]), &src, &mut dest).unwrap();
    assert!(n > 0);
    let stream = dest[..n].to_vec();
    let mut out = [0x5a; 256];
    for cx in [alone, shapeless, cx(2, &[8, 16]), cx(4, &[]), cx(4, &[2; 6]), cx(-4, &[8, 8])] {
        assert!(codec.decode(&cx, &stream, &mut out).is_err());
    }
    for shape in [&[8, 9][..], &[8, 0], &[-8, -8], &[i32::MAX; 4], &[1 << 30, 1 << 30, 16], &[8, 7]] {
        assert!(codec.decode(&cx(4, shape), &stream, &mut out).is_err(), "{shape:?}");
    }
    assert_eq!(out, [0x5a; 256]);
    assert!(codec.decode(&cx(4, &[8, 8]), &stream, &mut out).is_ok());
}

#[test]
fn a_stream_that_does_not_fit_gives_0_and_stays_inside_the_destination() {
    let src = test_items(4, 256);
    let cx = context(-3i8 as u8, 4, &[16, 16]);
    let stream = encode(Mode::Accuracy, &cx, &src);
    assert!(stream.len() < src.len());
    for room in 0..=stream.len() {
        let mut dest = vec![0xee; room + 16];
        let n = Zfp::new(Mode::Accuracy).encode(&cx, &src, &mut dest[..room]).unwrap();
        assert_eq!(n, if room == stream.len() { room } else { 0 });
        assert_eq!(dest[room..], [0xee; 16]);
    }
    // No gain: all the bits there are, or more.
    for meta in [100, 255] {
        assert_eq!(encode(Mode::Rate, &context(meta, 4, &[16, 16]), &src), []);
    }
}

#[test]
fn truncated_streams_are_rejected() {
    for (mode, meta, typesize, shape, stream) in golden() {
        let cx = context(meta, typesize, &shape);
        let len = test_items(typesize, shape.iter().product()).len();
        // Up to seven bytes of padding are not missed.
        for cut in 0..stream.len() - 7 {
            assert!(decode(mode, &cx, &stream[..cut], len).is_err(), "{mode:?} {shape:?} {cut}");
        }
    }
}

#[test]
fn a_stream_has_a_word_at_least() {
    let cx = context(0xfd, 4, &[4, 4]);
    let zeros = encode(Mode::Accuracy, &cx, &[0; 64]);
    assert_eq!(decode(Mode::Accuracy, &cx, &zeros, 64).unwrap(), [0; 64]);
    assert_eq!(zeros.len(), 8);
    assert!(decode(Mode::Accuracy, &cx, &zeros[..7], 64).is_err());
}

#[test]
fn tiny_and_huge_magnitudes_keep_their_precision() {
    for (typesize, scales) in [(4, [1e-43, 1e-38, 1e-30, 1e37]), (8, [1e-320, 1e-308, 1e-295, 1e307])] {
        for scale in scales {
            let src = bytes(typesize, (0..64).map(|i| f64::from(i % 13 - 6) * scale));
            // Subnormal numbers start with planes of zeros.
            let meta = if scale < 1e-309 || (typesize == 4 && scale < 1e-40) { 57 } else { 30 };
            let cx = context(meta, typesize, &[8, 8]);
            let mut dest = vec![0; 2 * src.len()];
            let n = Zfp::new(Mode::Precision).encode(&cx, &src, &mut dest[..src.len()]).unwrap();
            assert!(n > 0);
            let decoded = decode(Mode::Precision, &cx, &dest[..n], src.len()).unwrap();
            let least = if typesize == 4 { f64::from(f32::from_bits(1)) } else { f64::from_bits(1) };
            for (a, b) in values(typesize, &src).into_iter().zip(values(typesize, &decoded)) {
                assert!((a - b).abs() <= (7.0 * scale * 1e-4).max(least), "{a} {b}");
            }
        }
    }
}

#[test]
fn infinities_and_nans_are_coded_as_something() {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -0.0, 1e300];
    for typesize in [4, 8] {
        for count in 1..=odd.len() {
            let src = bytes(typesize, (0..64).map(|i| odd[i % count]));
            for mode in [Mode::Accuracy, Mode::Precision, Mode::Rate] {
                let cx = context(20, typesize, &[4, 4, 4]);
                let stream = encode(mode, &cx, &src);
                if !stream.is_empty() {
                    assert!(decode(mode, &cx, &stream, src.len()).is_ok());
                }
            }
        }
    }
}

/// Whatever the stream: either the whole block is written, or the data are said to be damaged.
fn assert_fills_or_fails(mode: Mode, cx: &CodecContext<'_>, stream: &[u8], len: usize) {
    let [ones, zeros] = [0xff, 0].map(|before| {
        let mut dest = vec![before; len];
        Zfp::new(mode).decode(cx, stream, &mut dest).map(|()| dest)
    });
    assert_eq!(ones, zeros);
    assert!(ones.map_or_else(|error| error.kind() == ErrorKind::Data, |_| true));
}

fn shape() -> impl Strategy<Value = Vec<i32>> {
    prop_oneof![
        proptest::collection::vec(4i32..200, 1..=1),
        proptest::collection::vec(4i32..24, 2..=2),
        proptest::collection::vec(4i32..11, 3..=3),
        proptest::collection::vec(4i32..7, 4..=4),
    ]
}

/// Smooth fields with some noise, of any magnitude.
fn field(typesize: i32, shape: &[i32], seed: u64, scale: i32) -> Vec<u8> {
    let mut random = Random::new(seed);
    let item = |i: i32| {
        let noise = random.below(1 << 24) as f64 / f64::from(1 << 24);
        ((f64::from(i) * 0.1).sin() + noise * 0.05) * 10f64.powi(scale)
    };
    bytes(typesize, (0..shape.iter().product()).map(item))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn accuracy_keeps_the_tolerance(shape in shape(), seed: u64, double: bool, meta in -6i8..=0) {
        let typesize = if double { 8 } else { 4 };
        let src = field(typesize, &shape, seed, 0);
        let cx = context(meta as u8, typesize, &shape);
        let stream = encode(Mode::Accuracy, &cx, &src);
        if !stream.is_empty() {
            let decoded = decode(Mode::Accuracy, &cx, &stream, src.len()).unwrap();
            // Floats cannot do better than their own precision.
            let tolerance = 10f64.powi(i32::from(meta)) + if double { 0.0 } else { 1e-6 };
            for (a, b) in values(typesize, &src).into_iter().zip(values(typesize, &decoded)) {
                prop_assert!((a - b).abs() <= tolerance);
            }
        }
    }

    #[test]
    fn any_item_range_of_a_fixed_rate_stream_equals_full_decoding(
        shape in shape(), seed: u64, double: bool, meta in 10u8..60, ranges in proptest::collection::vec((0.0..1.0, 0.0..1.0), 20),
    ) {
        let size = if double { 8 } else { 4 };
        let src = field(size as i32, &shape, seed, 3);
        let cx = context(meta, size as i32, &shape);
        let stream = encode(Mode::Rate, &cx, &src);
        prop_assume!(!stream.is_empty());
        let full = decode(Mode::Rate, &cx, &stream, src.len()).unwrap();
        let nitems = src.len() / size;
        let (field, _) = stored_field(&cx.container, &stream).unwrap();
        let limits = Mode::Rate.limits(meta, &field, size);
        let decode_items = |stream: &[u8], first_item: usize, part: &mut [u8]| {
            partial::decode_items(&field, size, limits, stream, first_item, part)
        };
        for (start, len) in ranges {
            let start = (start * nitems as f64) as usize;
            let len = (f64::powi(len, 3) * (nitems - start + 1) as f64) as usize;
            let mut part = vec![0; len * size];
            decode_items(&stream, start, &mut part).unwrap();
            prop_assert_eq!(&part[..], &full[start * size..][..len * size]);
            let mut again = vec![0; len * size];
            let done = Zfp::new(Mode::Rate).decode_part(&cx, &stream, src.len(), start * size, &mut again).unwrap();
            prop_assert_eq!(done, again.len() <= src.len() / PART);
            prop_assert_eq!(again == part, done || part.iter().all(|&byte| byte == 0));
        }
        let mut part = vec![0; size + 1];
        for (mode, len, start, end) in [
            (Mode::Accuracy, src.len(), 0, size),
            (Mode::Rate, src.len(), 1, size),
            (Mode::Rate, src.len(), 0, size + 1),
            (Mode::Rate, src.len() + 8 * size, 0, size),
        ] {
            prop_assert_eq!(Zfp::new(mode).decode_part(&cx, &stream, len, start, &mut part[..end]), Ok(false));
        }
        let mut part = vec![0; size];
        prop_assert!(decode_items(&stream, nitems, &mut part).is_err());
        prop_assert!(decode_items(&stream, usize::MAX, &mut part).is_err());
        prop_assert!(decode_items(&stream, 0, &mut part[1..]).is_err());
        prop_assert!(decode_items(&stream[..stream.len() - 8], nitems - 1, &mut part).is_err());
    }

    #[test]
    fn damaged_streams_fill_the_block_or_fail(
        shape in shape(), seed: u64, mode in 0usize..3, meta: u8, double: bool, noise in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let typesize = if double { 8 } else { 4 };
        let mode = [Mode::Accuracy, Mode::Precision, Mode::Rate][mode];
        let cx = context(meta, typesize, &shape);
        let len = test_items(typesize, shape.iter().product()).len();
        assert_fills_or_fails(mode, &cx, &noise, len);
        let mut stream = encode(mode, &cx, &field(typesize, &shape, seed, 0));
        if !stream.is_empty() {
            for (i, byte) in noise.chunks_exact(3).enumerate().take(4) {
                let at = (usize::from(byte[0]) << 8 | usize::from(byte[1])) * (i + 1) % stream.len();
                stream[at] ^= byte[2];
            }
            assert_fills_or_fails(mode, &cx, &stream, len);
        }
    }
}
