use super::*;
use crate::format::geometry::{BlockGeometry, Container};
use crate::testing::Random;
use proptest::prelude::*;

fn context(meta: u8, blockshape: &[i32]) -> CodecContext<'static> {
    let container = Container::Schunk { typesize: 1, geometry: BlockGeometry::new(blockshape) };
    CodecContext { clevel: 5, meta, typesize: 1, blocksize: 0, container, chunk: &[], host: None }
}

fn encode(meta: u8, rows: i32, columns: i32, src: &[u8]) -> Vec<u8> {
    let mut dest = vec![0; src.len()];
    let n = Ndlz.encode(&context(meta, &[rows, columns]), src, &mut dest).unwrap();
    dest.truncate(n);
    dest
}

/// Decodes without any super-chunk: the stream knows its shape.
fn decode(meta: u8, src: &[u8], len: usize) -> Result<Vec<u8>> {
    let cx = CodecContext { container: Container::None, ..context(meta, &[]) };
    let mut dest = vec![0xa5; len];
    Ndlz.decode(&cx, src, &mut dest)?;
    Ok(dest)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The items of the golden streams: cells made of a few rows.
fn test_block(side: usize, rows: usize, columns: usize) -> Vec<u8> {
    let item = |i: usize| {
        let (y, x) = (i / columns, i % columns);
        let cell = y / side * 7 + x / side * 3;
        let row = y % side;
        let which = match cell % 5 {
            0 => row,
            1 if cell % 2 == 0 => row,
            1 => row + (cell / 5 % 4 + row) % 3,
            2 => return (cell % 3) as u8,
            3 => row ^ (cell / 5 % 4),
            _ => row * 5 + cell % 11,
        };
        (which * 16 + x % side) as u8
    };
    (0..rows * columns).map(item).collect()
}

#[test]
fn streams_of_the_c_library_are_decoded() {
    let mut cases = 0;
    let mut lengths = (0, 0);
    for line in include_str!("../../../tests/data/ndcodecs/ndlz.txt").lines().skip(1) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [side, rows, columns] = [0, 1, 2].map(|i| fields[i].parse::<usize>().unwrap());
        let block = test_block(side, rows, columns);
        let stream = hex(fields[3]);
        assert_eq!(decode(side as u8, &stream, block.len()).unwrap(), block);
        let ours = encode(side as u8, rows as i32, columns as i32, &block);
        assert_eq!(decode(side as u8, &ours, block.len()).unwrap(), block);
        lengths.0 += ours.len();
        lengths.1 += stream.len();
        // Nothing but the end of the stream may be missing.
        for cut in 0..stream.len() {
            assert!(decode(side as u8, &stream[..cut], block.len()).is_err());
        }
        assert!(decode(side as u8, &stream, block.len() - 1).is_err());
        assert!(decode(side as u8, &stream, block.len() + 1).is_err());
        cases += 1;
    }
    assert_eq!(cases, 4);
    // Some streams are longer than those of the C library, but not on the whole.
    assert!(lengths.0 <= lengths.1, "{lengths:?}");
}

/// A block and its stream with every form for cells of side 4.
fn all_forms_4() -> (Vec<u8>, Vec<u8>) {
    const ROWS: [[u8; 4]; 8] = [
        [0, 1, 2, 3],
        [0, 1, 2, 9],
        [9, 1, 2, 3],
        [2, 3, 0, 1],
        [0, 9, 1, 8],
        [9, 0, 8, 1],
        [9, 8, 0, 1],
        [0, 2, 1, 3],
    ];
    let block = (0..128).map(|i| 16 * ROWS[i / 64 * 4 + i % 16 / 4][i / 16 % 4] + (i % 4) as u8).collect();
    let stream =
        hex("02080000001000000000 000102031011121320212223303132 33e81000909192 93e01300909192 9328 16001e00
         90230090919293808182 83b82e0090919293808182 83803900909192938081 8283304400 3c00");
    (block, stream)
}

#[test]
fn cells_of_side_4_use_the_forms_of_the_c_library() {
    let (block, stream) = all_forms_4();
    assert_eq!(stream.len(), 83);
    assert_eq!(decode(4, &stream, block.len()).unwrap(), block);
    assert_eq!(encode(4, 8, 16, &block), stream);
}

#[test]
fn cells_of_side_8_use_the_forms_of_the_c_library() {
    let mut block = vec![0; 256];
    let mut set = |cell: usize, row: usize, first: usize| {
        for x in 0..8 {
            block[(cell / 2 * 8 + row) * 16 + cell % 2 * 8 + x] = (first + x) as u8;
        }
    };
    for row in 0..8 {
        set(0, row, 8 * row);
        set(1, row, 8 * row);
        set(2, row, if (3..6).contains(&row) { 8 * (row - 1) } else { 128 + 8 * row });
        set(3, row, if row < 6 { 130 + 8 * row } else { 8 * (row - 6) });
    }
    let mut stream = hex("02100000001000000000");
    stream.extend(0x00..=0x3fu8);
    stream.extend(hex("c04000 ab3300"));
    stream.extend(0x80..=0x97u8);
    stream.extend(0xb0..=0xbfu8);
    stream.extend(hex("8e6e00"));
    stream.extend(0x82..=0xb1u8);
    assert_eq!(stream.len(), 171);
    assert_eq!(decode(8, &stream, block.len()).unwrap(), block);
    assert_eq!(encode(8, 16, 16, &block), stream);
}

#[test]
fn the_lowest_bits_of_row_forms_of_side_4_mean_nothing() {
    let (block, stream) = all_forms_4();
    for at in [26, 33, 40, 45, 56, 78] {
        assert!(TRIPLES_4.iter().chain(&PAIRS_4).chain(&DOUBLE_PAIRS_4).any(|form| form.token == stream[at]));
        for bits in 1..8 {
            let mut other = stream.clone();
            other[at] |= bits;
            assert_eq!(decode(4, &other, block.len()).as_ref(), Ok(&block), "{at} {bits}");
        }
    }
}

#[test]
fn damaged_streams_are_rejected() {
    let (block, stream) = all_forms_4();
    let broken = |at: usize, value: u8| {
        let mut stream = stream.clone();
        stream[at] = value;
        decode(4, &stream, block.len())
    };
    assert!(broken(0, 3).is_err());
    assert!(broken(4, 0x80).is_err());
    assert!(broken(1, 9).is_err());
    // No such tokens, or rows that are named twice.
    for token in [0x01, 0x20, 0x27, 0x41, 0x48, 0x7f, 0x81, 0x87, 0xa0, 0xa8, 0xaf, 0xc1, 0xc8, 0xdf] {
        assert!(broken(26, token).is_err(), "{token:x}");
    }
    // A reference to before the stream, and one to bytes past its end.
    assert!(broken(28, 1).is_err());
    let mut behind = stream.clone();
    let last = stream.len() - 5;
    behind[last + 1..].fill(0);
    assert!(decode(4, &behind, block.len()).is_err());
    // Cells of another side, or none.
    assert!(decode(8, &stream, block.len()).is_err());
    assert!(decode(0, &stream, block.len()).is_err());
    assert!(decode(5, &stream, block.len()).is_err());
    // Row forms in cut cells.
    let cut = hex("020300000004000000 e80400 00000000 00000000 00000000 00000000");
    assert!(decode(4, &cut, 12).is_err());
    // What the C library writes never has bytes after the last record, but it does not mind them.
    assert_eq!(decode(4, &[&stream[..], &[1, 2]].concat(), block.len()).unwrap(), block);
}

#[test]
fn what_ndlz_cannot_take_is_stored_or_refused() {
    let (src, stream) = all_forms_4();
    let mut dest = [0; 128];
    let fit = context(4, &[8, 16]);
    let mut bad: Vec<_> = [0, 1, 3, 5, 9, 255].map(|meta| CodecContext { meta, ..fit }).into();
    let shapes: [&[i32]; 7] =
        [&[], &[128], &[2, 8, 8], &[8, 15], &[-8, -16], &[0, 16], &[i32::MAX, i32::MAX]];
    bad.extend(shapes.iter().map(|shape| context(4, shape)));
    bad.push(CodecContext { container: Container::None, ..fit });
    bad.push(CodecContext { container: Container::Schunk { typesize: 1, geometry: None }, ..fit });
    for cx in bad {
        assert!(Ndlz.encode(&cx, &src, &mut dest).is_err());
    }
    assert_eq!(Ndlz.encode(&context(4, &[3, 5]), &src[..15], &mut dest), Ok(0));
    for room in 0..=stream.len() {
        let mut dest = vec![0xee; room + 16];
        let n = Ndlz.encode(&fit, &src, &mut dest[..room]).unwrap();
        assert_eq!(n, if room == stream.len() { room } else { 0 });
        assert_eq!(dest[room..], [0xee; 16]);
    }
}

#[test]
fn references_reach_to_the_limits_of_16_bits_and_not_further() {
    // One cell, then cells that never match, then the first cell again.
    for side in [4usize, 8] {
        let record = side * side + 1;
        for between in [65400 / record, 65535 / record, 65535 / record + 1, 140_000 / record] {
            let is_near = between * record + side * side <= 65534;
            let mut references = 0;
            for seed in 0..4 {
                let (stream, block) = far_cells(side, between + 2, seed);
                assert_eq!(decode(side as u8, &stream, block.len()).unwrap(), block);
                if stream.len() == HEADER_LENGTH + (between + 1) * record + 3 {
                    references += 1;
                }
            }
            // Later cells with the same hash can hide the first one.
            assert_eq!(references > 0, is_near, "{side} {between}");
        }
    }
}

/// The stream and the items of cells in one row, all noise but the last one, which equals the first.
fn far_cells(side: usize, cells: usize, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let columns = cells * side;
    let mut block = Random::new(seed).bytes(columns * side);
    for (i, item) in block.iter_mut().enumerate() {
        let (row, column) = (i / columns, i % columns);
        let is_end = column < side || column >= columns - side;
        if is_end {
            *item = (row * side + column % side) as u8; // below 64
        }
    }
    let mut stream = vec![0; block.len() + cells + HEADER_LENGTH];
    let encode_cells = if side == 4 { encode::encode_4 } else { encode::encode_8 };
    let n = encode_cells(&block, columns, &mut stream[HEADER_LENGTH..]).unwrap();
    stream.truncate(n + HEADER_LENGTH);
    stream[0] = NDIM;
    stream[1..5].copy_from_slice(&(side as i32).to_le_bytes());
    stream[5..9].copy_from_slice(&(columns as i32).to_le_bytes());
    (stream, block)
}

/// Blocks whose cells are made of few different rows, or of noise.
fn block() -> impl Strategy<Value = (u8, usize, usize, Vec<u8>)> {
    let shape = (prop_oneof![Just(4u8), Just(8u8)], 1usize..70, 1usize..90);
    (shape, 1usize..20, any::<u64>()).prop_map(|((side, rows, columns), kinds, seed)| {
        let cell = usize::from(side);
        let item = |i: usize| {
            let (y, x) = (i / columns, i % columns);
            let mut hash = ((y * 1000 + x / cell) as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
            let row = (hash.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as usize % kinds;
            if kinds == 19 { hash as u8 ^ x as u8 } else { (row * 37 + x % cell * (row & 3)) as u8 }
        };
        (side, rows, columns, (0..rows * columns).map(item).collect())
    })
}

/// Whatever the stream: either the whole block is written, or the data are said to be damaged.
fn assert_fills_or_fails(meta: u8, stream: &[u8], len: usize) {
    let [ones, zeros] = [0xff, 0].map(|before| {
        let mut dest = vec![before; len];
        Ndlz.decode(&context(meta, &[]), stream, &mut dest).map(|()| dest)
    });
    assert_eq!(ones, zeros);
    assert!(ones.map_or_else(|error| error.kind() == ErrorKind::Data, |_| true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn blocks_come_back((side, rows, columns, block) in block()) {
        let stream = encode(side, rows as i32, columns as i32, &block);
        if !stream.is_empty() {
            prop_assert_eq!(decode(side, &stream, block.len()).unwrap(), block);
        }
    }

    #[test]
    fn mutated_streams_fill_the_block_or_fail(
        (side, rows, columns, block) in block(), changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..5),
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut stream = encode(side, rows as i32, columns as i32, &block);
        if !stream.is_empty() {
            let len = stream.len();
            for (at, value) in changes {
                stream[at % len] = value;
            }
            assert_fills_or_fails(side, &stream, block.len());
            stream.truncate(HEADER_LENGTH);
            stream.extend(noise);
            assert_fills_or_fails(side, &stream, block.len());
        }
    }
}
