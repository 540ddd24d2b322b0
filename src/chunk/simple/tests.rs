use super::*;
use crate::chunk::compress::{Compressed, compress_with};
use crate::chunk::decompress::decompress_parsed;
use crate::chunk::getitem::getitem_parsed;
use crate::chunk::input::Source;
use crate::chunk::params::{CParams, Decoding, Prefilter, PrefilterCall};
use crate::chunk::special::{SpecialValue, special_chunk};
use crate::format::consts::{SHUFFLE_SLOT, codec};
use crate::testing::Random;

const CODECS: [u8; 5] = [codec::BLOSCLZ, codec::LZ4, codec::LZ4HC, codec::ZLIB, codec::ZSTD];

/// Ramps, of which some bytes are runs, some compress and some do not.
fn ramp(nbytes: usize, slope: u32) -> Vec<u8> {
    (0..).flat_map(|i: u32| (i.wrapping_mul(slope) / 7).to_le_bytes()).take(nbytes).collect()
}

fn noise(nbytes: usize) -> Vec<u8> {
    Random::new(0).bytes(nbytes)
}

fn compressed(params: &CParams, src: &[u8], room: usize) -> (Compressed, Vec<u8>) {
    let mut dest = vec![0; room];
    let made = compress_with(&Encoding::new(params), Source::Bytes(src), &mut dest).unwrap();
    dest.truncate(made.cbytes);
    (made, dest)
}

/// All that decides how a chunk is made, as far as simple chunks go.
fn each_case(mut check: impl FnMut(&CParams, &[u8])) {
    let filters = [0, filter::SHUFFLE, filter::BITSHUFFLE];
    for (id, typesize, last, meta) in CODECS.into_iter().flat_map(|id| {
        [1, 2, 3, 4, 8, 16, 20].into_iter().flat_map(move |typesize| {
            filters.into_iter().flat_map(move |last| [0, 2, 4].map(|meta| (id, typesize, last, meta)))
        })
    }) {
        let mut params = CParams { compcode: i32::from(id), typesize, ..CParams::default() };
        params.filters[SHUFFLE_SLOT] = last;
        params.filters_meta[SHUFFLE_SLOT] = meta;
        for nbytes in [32, 64, 100, 300, 1024, 3000] {
            let nbytes = nbytes / typesize * typesize;
            for src in
                [ramp(nbytes, 1), ramp(nbytes, 0x0101_0107), noise(nbytes), vec![7; nbytes], vec![0; nbytes]]
            {
                check(&params, &src);
            }
        }
    }
}

/// A prefilter that changes nothing, so that compression goes the general way.
struct Copy;

impl Prefilter for Copy {
    fn output_typesize(&self, typesize: usize) -> usize {
        typesize
    }

    fn is_disposable(&self) -> bool {
        false
    }

    fn run(&self, call: PrefilterCall<'_>) -> Result<()> {
        // SAFETY: the tests give a source, and `input` is where the block lies in it.
        let input = unsafe { std::slice::from_raw_parts(call.input, call.output_len) };
        call.output[..call.output_len].copy_from_slice(input);
        Ok(())
    }
}

#[test]
fn one_block_is_written_alike_the_short_and_the_general_way() {
    each_case(|params, src| {
        for room in [32, 35, 36, 40, src.len(), src.len() + 31, src.len() + 32, src.len() + 100] {
            let room = room.max(32);
            let (made, chunk) = compressed(params, src, room);
            let mut dest = vec![0; room];
            let enc = Encoding { prefilter: Some(&Copy), ..Encoding::new(params) };
            let expected = compress_with(&enc, Source::Bytes(src), &mut dest).unwrap();
            assert_eq!(made, expected, "{params:?}, {} bytes in {room}", src.len());
            assert!(chunk == dest[..expected.cbytes], "{params:?}, {} bytes in {room}", src.len());
        }
    });
}

/// Reads `chunk` both ways; returns whether the short one did all of it.
fn compare(chunk: &[u8], what: impl Fn() -> String) -> bool {
    let dec = Decoding::default();
    let Ok(header) = ChunkHeader::read(chunk) else {
        assert_eq!(decompress_simple(chunk, &mut [0; 5000], true, |_| ()), None, "{}", what());
        return false;
    };
    let mut noted = None;
    let mut all = true;
    let room = header.nbytes.min(5000);
    for room in [room, room.saturating_sub(1), room + 10] {
        let (mut short, mut general) = (vec![1; room], vec![1; room]);
        let outcome = decompress_parsed(&dec, &header, chunk, None, &mut general);
        match decompress_simple(chunk, &mut short, true, |header| noted = Some(*header)) {
            None => all &= room < header.nbytes,
            nbytes => {
                assert!(outcome.ok() == nbytes && short == general && noted == Some(header), "{}", what())
            }
        }
    }
    for (unit, start, count) in [
        (Unit::Items, 3, 7),
        (Unit::Items, 0, 11),
        (Unit::Items, -1, 2),
        (Unit::Items, 9999, 0),
        (Unit::Items, 0, 2000),
        (Unit::Bytes, 8, 12),
        (Unit::Bytes, 6, 12),
    ] {
        let (mut short, mut general) = (vec![1; 1500], vec![1; 1500]);
        let outcome = getitem_parsed(&dec, &header, chunk, unit, start, count, &mut general);
        noted = None;
        match getitem_simple(chunk, unit, start, count, &mut short, |header| noted = Some(*header)) {
            None => all &= outcome.is_err() || outcome == Ok(0) || header.blocksize > SMALL_BLOCK,
            len => assert!(outcome.ok() == len && short == general && noted == Some(header), "{}", what()),
        }
    }
    all
}

#[test]
fn simple_chunks_read_alike_the_short_and_the_general_way() {
    let mut seen = [0; 2];
    each_case(|params, src| {
        let (_, chunk) = compressed(params, src, src.len() + 32);
        seen[usize::from(matches!(Kind::of(&chunk), Some(Kind::Block)))] += 1;
        let mut dest = vec![1; src.len()];
        assert_eq!(decompress_simple(&chunk, &mut dest, true, |_| ()), Some(src.len()));
        assert!(dest == src, "{params:?}");
        assert!(compare(&chunk, || format!("{params:?}, {} bytes", src.len())));
        assert_eq!(decompress_simple(&chunk[..chunk.len() - 1], &mut dest, true, |_| ()), None);
    });
    assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
}

#[test]
fn whatever_a_byte_is_the_short_way_tells_what_the_general_one_does() {
    for (id, data) in
        CODECS.into_iter().flat_map(|id| [(id, ramp(400, 9)), (id, noise(400)), (id, vec![0; 400])])
    {
        for last in [0, filter::SHUFFLE, filter::BITSHUFFLE] {
            let mut params = CParams { compcode: i32::from(id), typesize: 4, ..CParams::default() };
            params.filters[SHUFFLE_SLOT] = last;
            let (_, chunk) = compressed(&params, &data, data.len() + 32);
            for at in 0..chunk.len().min(60) {
                for value in [0, 1, 2, 3, 4, 8, 16, 31, 32, 64, 99, 100, 127, 128, 255, chunk[at] ^ 1] {
                    let mut bad = chunk.clone();
                    bad[at] = value;
                    compare(&bad, || format!("codec {id}, filter {last}: byte {at} is {value}"));
                }
            }
            for len in 0..chunk.len() {
                assert_eq!(decompress_simple(&chunk[..len], &mut [0; 500], true, |_| ()), None);
                let mut cut = chunk[..len].to_vec();
                if len >= 32 {
                    cut[12..16].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
                    compare(&cut, || format!("codec {id}, filter {last}: cut to {len}"));
                }
            }
        }
    }
}

/// Reads items of `chunk`, which has 9840 bytes of data; returns how often the short way did it.
fn items_read_the_short_way(chunk: &[u8], params: &CParams) -> usize {
    let header = ChunkHeader::read(chunk).unwrap();
    let mut short = 0;
    let starts = (0..9840 / params.typesize).step_by(7).map(|start| i32::try_from(start).unwrap());
    for (start, count) in starts.zip([1, 2, 5, 20, 99].into_iter().cycle()) {
        let (mut dest, mut general) = ([1; 1000], [1; 1000]);
        let (dec, unit) = (Decoding::default(), Unit::Items);
        let outcome = getitem_parsed(&dec, &header, chunk, unit, start, count, &mut general);
        if let Some(len) = getitem_simple(chunk, unit, start, count, &mut dest, |_| ()) {
            assert_eq!(outcome, Ok(len), "{params:?} {start} {count}");
            assert!(dest == general, "{params:?} {start} {count}");
            short += 1;
        }
    }
    short
}

#[test]
fn many_small_blocks_are_simple_for_a_thread_that_is_alone() {
    let src = ramp(9840, 9);
    for (blocksize, simple) in [(512, true), (SMALL_OF_MANY, true), (SMALL_OF_MANY + 4, false)] {
        let params = CParams { typesize: 4, blocksize, ..CParams::default() };
        let (_, chunk) = compressed(&params, &src, src.len() + 400);
        let mut dest = vec![0; src.len()];
        let alone = decompress_simple(&chunk, &mut dest, true, |_| ());
        assert_eq!(alone, simple.then_some(src.len()), "{blocksize}");
        assert!(!simple || dest == src, "{blocksize}");
        assert_eq!(decompress_simple(&chunk, &mut dest, false, |_| ()), None, "{blocksize}");
    }
}

#[test]
fn items_of_many_blocks_read_alike_the_short_and_the_general_way() {
    let layouts = [(4, 0, 400), (4, 1, 400), (4, 2, 512), (3, 1, 300), (8, 2, 4000), (1, 0, 3000)];
    for (typesize, last, blocksize) in layouts {
        for (id, splitmode) in
            [codec::BLOSCLZ, codec::LZ4HC, codec::ZSTD].map(|id| [(id, 1), (id, 2)]).concat()
        {
            let mut params =
                CParams { compcode: i32::from(id), typesize, blocksize, splitmode, ..CParams::default() };
            params.filters[SHUFFLE_SLOT] = last;
            for src in [noise(9840), ramp(9840, 9)] {
                let (_, chunk) = compressed(&params, &src, src.len() + 400);
                let short = items_read_the_short_way(&chunk, &params);
                let blocksize = ChunkHeader::read(&chunk).unwrap().blocksize;
                assert!(short > 100 || blocksize > SMALL_BLOCK, "{params:?}: {short}");
                for at in 0..100 {
                    let mut bad = chunk.clone();
                    bad[at] ^= 1 << (at % 8);
                    compare(&bad, || format!("{params:?}, byte {at}"));
                }
            }
        }
    }
}

#[test]
fn chunks_with_more_to_them_are_left_to_the_general_way() {
    let data = ramp(4000, 9);
    let plain = CParams { typesize: 4, ..CParams::default() };
    let simple = |params: &CParams| {
        decompress_simple(&compressed(params, &data, 5000).1, &mut [0; 5000], true, |_| ()).is_some()
    };
    assert!(simple(&plain));
    assert!(!simple(&CParams { filters: [0, 0, 0, 0, filter::DELTA, 1], ..plain.clone() }));
    assert!(!simple(&CParams { filters: [1, 0, 0, 0, 0, 0], ..plain.clone() }));
    assert!(!simple(&CParams { instrumented: true, ..plain }));
}

#[test]
fn special_values_read_alike_the_short_and_the_general_way() {
    for typesize in [1, 3, 4, 8, 16, 300] {
        let params = CParams { typesize, ..CParams::default() };
        let item: Vec<u8> = (1..=255).cycle().take(typesize).collect();
        for nitems in [1, 7, 15] {
            for value in
                [SpecialValue::Zeros, SpecialValue::Nans, SpecialValue::Uninit, SpecialValue::Repeated(&item)]
            {
                let mut chunk = vec![0; 400];
                let cbytes = special_chunk(&params, nitems * typesize, value, &mut chunk).unwrap();
                let what = || format!("{nitems} items of {typesize} bytes, {value:?}");
                let all = compare(&chunk[..cbytes], what);
                assert!(all || (value == SpecialValue::Nans && !matches!(typesize, 4 | 8)), "{}", what());
                for (at, bit) in (0..cbytes.min(40)).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
                    let mut bad = chunk[..cbytes].to_vec();
                    bad[at] ^= 1 << bit;
                    compare(&bad, || format!("{}, bit {bit} of byte {at}", what()));
                }
                assert_eq!(decompress_simple(&chunk[..cbytes - 1], &mut [0; 5000], true, |_| ()), None);
            }
        }
    }
}

#[test]
fn lossy_filters_have_nothing_to_undo() {
    let data = ramp(3000, 0x0101_0107);
    for last in [0, filter::SHUFFLE, filter::BITSHUFFLE] {
        for filters in
            [[0, 0, 0, 0, filter::TRUNC_PREC, last], [filter::TRUNC_PREC, 0, filter::INT_TRUNC, 0, 0, last]]
        {
            let params =
                CParams { typesize: 4, filters, filters_meta: [5, 0, 5, 0, 5, 0], ..CParams::default() };
            let (_, chunk) = compressed(&params, &data, data.len() + 32);
            assert!(compare(&chunk, || format!("{params:?}")));
            assert!(decompress_simple(&chunk, &mut [0; 3000], true, |_| ()).is_some(), "{params:?}");
        }
    }
}
