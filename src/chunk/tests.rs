//! Round trips and edge cases of whole chunks.

use super::scratch;
use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{
    EXTENDED_HEADER_LENGTH, MAX_BUFFERSIZE, MAX_DICTSIZE, blosc2_flags, codec, codec_format, filter, flags,
    split,
};
use crate::memory::no_memory;
use crate::pool::{self, Executor};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Data with some structure: slowly rising items and a few odd ones.
fn data(nbytes: usize, typesize: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(nbytes + typesize);
    let mut i = 0u64;
    while bytes.len() < nbytes {
        let item = (i * 3 + (i % 17) * (i % 5)).to_le_bytes();
        bytes.extend((0..typesize).map(|k| item[k % 8]));
        i += 1;
    }
    bytes.truncate(nbytes);
    bytes
}

fn compressed(params: &CParams, src: &[u8]) -> Vec<u8> {
    let mut chunk = vec![0; src.len() + 32];
    let cbytes = compress(params, src, &mut chunk).unwrap();
    assert!(cbytes > 0);
    chunk.truncate(cbytes);
    chunk
}

fn decompressed(chunk: &[u8]) -> Vec<u8> {
    let mut dest = vec![0xee; ChunkHeader::read(chunk).unwrap().nbytes];
    assert_eq!(decompress(chunk, &mut dest), Ok(dest.len()));
    dest
}

const CODECS: [u8; 5] = [codec::BLOSCLZ, codec::LZ4, codec::LZ4HC, codec::ZLIB, codec::ZSTD];

#[test]
fn every_codec_and_filter_comes_back() {
    for id in CODECS {
        for filters in [
            [0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, filter::SHUFFLE],
            [0, 0, 0, 0, 0, filter::BITSHUFFLE],
            [0, 0, 0, 0, filter::DELTA, filter::SHUFFLE],
            [filter::DELTA, filter::SHUFFLE, filter::BITSHUFFLE, 0, 0, filter::DELTA],
        ] {
            for (typesize, nbytes) in
                [(1, 31), (1, 1000), (4, 100_003), (7, 50_000), (16, 300_000), (300, 9000)]
            {
                for splitmode in [split::ALWAYS, split::NEVER, split::FORWARD_COMPAT] {
                    let params = CParams {
                        compcode: i32::from(id),
                        filters,
                        typesize,
                        splitmode,
                        blocksize: 16 << 10,
                        ..CParams::default()
                    };
                    let src = data(nbytes, typesize);
                    let chunk = compressed(&params, &src);
                    assert!(
                        decompressed(&chunk) == src,
                        "codec {id} {filters:?} {typesize} {nbytes} {splitmode}"
                    );
                    check_getitem(&chunk, &src);
                }
            }
        }
    }
}

fn check_getitem(chunk: &[u8], src: &[u8]) {
    let header = ChunkHeader::read(chunk).unwrap();
    let typesize = header.typesize;
    let nitems = src.len() / typesize;
    // As many items as a block holds, but from two blocks.
    let across = ((nitems - 1).min(1), header.blocksize / typesize);
    let middle = [(nitems / 2, 3), (nitems / 3, nitems / 2), across];
    for (start, count) in middle.into_iter().chain([(0, 1), (nitems - 1, 1), (0, nitems)]) {
        let count = count.min(nitems - start);
        let mut dest = vec![0; count * typesize];
        let (start_arg, count_arg) = (i32::try_from(start).unwrap(), i32::try_from(count).unwrap());
        let got = getitem(&Decoding::default(), chunk, Unit::Items, start_arg, count_arg, &mut dest);
        assert_eq!(got, Ok(dest.len()));
        assert!(dest == src[start * typesize..][..dest.len()], "items {start}+{count} of {typesize} bytes");
    }
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads_or_earlier_work() {
    let src = data(1_000_000, 8);
    for id in CODECS {
        for use_dict in [false, true] {
            if use_dict && matches!(id, codec::BLOSCLZ | codec::ZLIB) {
                continue;
            }
            let params = CParams {
                compcode: i32::from(id),
                use_dict,
                blocksize: 10_000,
                filters: [0, 0, 0, 0, filter::DELTA, filter::SHUFFLE],
                ..CParams::default()
            };
            let serial = compressed(&params, &src);
            for nthreads in [2, 3, 5] {
                let pool = pool::attach(nthreads);
                let executor: &dyn Executor = &*pool;
                let threads = Threads { executor: Some(executor), nthreads, pays_from: 0 };
                for destsize in [src.len() + 32, serial.len(), serial.len() - 1, 5000] {
                    let mut alone = vec![0; destsize];
                    let mut shared = vec![0; destsize];
                    let one =
                        compress_with(&Encoding::new(&params), Source::Bytes(&src), &mut alone).unwrap();
                    let enc = Encoding { threads, ..Encoding::new(&params) };
                    let many = compress_with(&enc, Source::Bytes(&src), &mut shared).unwrap();
                    assert_eq!(one, many, "codec {id}, {nthreads} threads, {destsize}");
                    assert!(alone[..one.cbytes] == shared[..many.cbytes]);
                }
                let dec = Decoding { threads, ..Decoding::default() };
                let mut dest = vec![0; src.len()];
                assert_eq!(decompress_with(&dec, &serial, None, &mut dest).unwrap(), src.len());
                assert!(dest == src);
            }
        }
    }
}

#[test]
fn the_documented_chunks_come_out() {
    let hex = |text: &str| -> Vec<u8> {
        let mut chunk: Vec<u8> =
            text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        chunk[31] |= blosc2_flags::HOST;
        chunk
    };
    let ints: Vec<u8> = (0..50i32).flat_map(i32::to_le_bytes).collect();
    let typesize4 = CParams { typesize: 4, ..CParams::default() };
    let ramp = compressed(&typesize4, &ints);
    assert_eq!(
        ramp[..36],
        hex(
            "05 01 05 04 c8 00 00 00 c8 00 00 00 66 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 24 00 00 00"
        )
    );
    assert_eq!(ramp.len(), 102);
    assert_eq!(
        compressed(&typesize4, &[0; 400]),
        hex(
            "05 01 05 04 90 01 00 00 90 01 00 00 20 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 10"
        )
    );
    let plain = CParams { filters: [0; 6], ..typesize4.clone() };
    assert_eq!(
        compressed(&plain, &[7; 400]),
        hex("05 01 15 04 90 01 00 00 90 01 00 00 29 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
         24 00 00 00 f9 ff ff ff 01")
    );
    let bytes = CParams { typesize: 1, ..CParams::default() };
    assert_eq!(
        compressed(&bytes, b"abc"),
        hex(
            "05 01 07 01 03 00 00 00 03 00 00 00 23 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 61 62 63"
        )
    );
    let zstd = CParams { compcode: 5, ..CParams::default() };
    assert_eq!(
        compressed(&zstd, &[]),
        hex(
            "05 01 07 08 00 00 00 00 01 00 00 00 20 00 00 00 00 00 00 00 00 01 05 00 00 00 00 00 00 00 00 00"
        )
    );
}

#[test]
fn variable_length_blocks_come_back_one_by_one_and_together() {
    let blocks: Vec<Vec<u8>> = (1..60).map(|i| data(i * 37, 1)).collect();
    let refs: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    let all = blocks.concat();
    for id in CODECS {
        for (clevel, use_dict) in [(0, false), (5, false), (5, true)] {
            let params =
                CParams { compcode: i32::from(id), clevel, use_dict, typesize: 1, ..CParams::default() };
            let mut chunk = vec![0; 40_000 + all.len() + 8 * blocks.len()];
            let cbytes = compress_vl(&Encoding::new(&params), &refs, &mut chunk).unwrap().cbytes;
            chunk.truncate(cbytes);
            assert!(decompressed(&chunk) == all);
            let dec = Decoding::default();
            let header = ChunkHeader::read(&chunk).unwrap();
            let opened = open_vl(&dec, &header, &chunk).unwrap();
            assert_eq!(opened.nblocks(), blocks.len());
            for (nblock, block) in blocks.iter().enumerate() {
                let mut dest = vec![0; opened.block_len(nblock).unwrap()];
                opened.decode_block(nblock, &mut dest).unwrap();
                assert_eq!(&dest, block);
            }
            // All of what was in the memory before is overwritten.
            let used = |room| match room {
                Room::Any(len) => Ok(vec![0xee; len]),
                Room::Zeros(_) => Err(no_memory()),
            };
            assert!(opened.decode_each(used).unwrap() == blocks);
            assert!(opened.decode_one(7, used).unwrap() == blocks[7]);
            let mut small = vec![0; cbytes - 1];
            assert_eq!(compress_vl(&Encoding::new(&params), &refs, &mut small).unwrap().cbytes, 0);
        }
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
#[cfg_attr(miri, ignore = "asks for too much memory")]
fn no_chunk_is_longer_than_its_header_can_tell() {
    // Of zeros that come from the system, only what is written costs memory.
    let mut dest = crate::memory::zeroed(MAX_BUFFERSIZE + 64).unwrap();
    assert_eq!(compress::within_reach(&mut dest).len(), i32::MAX as usize);
    assert_eq!(compress::within_reach(&mut dest[..1000]).len(), 1000);
}

/// A postfilter that writes nothing.
struct Silent;

impl Postfilter for Silent {
    fn run(&self, _: PostfilterCall<'_>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn memory_for_what_a_callback_leaves_out_is_zeroed() {
    let block = data(1000, 1);
    let mut chunk = vec![0; 3000];
    compress_vl(&Encoding::new(&CParams::default()), &[&block, &block], &mut chunk).unwrap();
    let header = ChunkHeader::read(&chunk).unwrap();
    let dec = Decoding { postfilter: Some(&Silent), ..Decoding::default() };
    let opened = open_vl(&dec, &header, &chunk).unwrap();
    let used = |room| {
        Ok(match room {
            Room::Any(len) => vec![0xee; len],
            Room::Zeros(len) => vec![0; len],
        })
    };
    assert!(opened.decode_each(used).unwrap() == [[0; 1000]; 2]);
    assert!(opened.decode_one(1, used).unwrap() == [0; 1000]);
}

/// A prefilter that writes nothing.
struct Idle {
    is_disposable: bool,
}

impl Prefilter for Idle {
    fn output_typesize(&self, typesize: usize) -> usize {
        typesize
    }

    fn is_disposable(&self) -> bool {
        self.is_disposable
    }

    fn run(&self, _: PrefilterCall<'_>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn what_a_prefilter_leaves_unwritten_is_zero_and_nothing_of_earlier_work() {
    let src = data(20_000, 4);
    let blocks: Vec<&[u8]> = src.chunks(2000).collect();
    for is_disposable in [false, true] {
        let prefilter = Idle { is_disposable };
        for (clevel, use_dict) in [(0, false), (5, false), (5, true)] {
            let params = CParams {
                compcode: i32::from(codec::LZ4),
                clevel,
                use_dict,
                typesize: 4,
                blocksize: 2000,
                ..CParams::default()
            };
            let enc = Encoding { prefilter: Some(&prefilter), ..Encoding::new(&params) };
            for nbytes in [20, 20_000] {
                scratch::worker().callback.get(100_000).unwrap().fill(0xAB);
                let mut chunk = vec![0; 30_000];
                let cbytes = compress_with(&enc, Source::Bytes(&src[..nbytes]), &mut chunk).unwrap().cbytes;
                chunk.truncate(cbytes);
                assert!(!chunk.contains(&0xAB) && decompressed(&chunk) == vec![0; nbytes]);
            }
            scratch::worker().callback.get(100_000).unwrap().fill(0xAB);
            let mut chunk = vec![0; 60_000];
            let cbytes = compress_vl(&enc, &blocks, &mut chunk).unwrap().cbytes;
            chunk.truncate(cbytes);
            assert!(!chunk.contains(&0xAB) && decompressed(&chunk) == vec![0; 20_000]);
        }
    }
}

#[test]
fn a_dictionary_that_leaves_too_little_room_for_variable_blocks_is_left_out() {
    let words = data(6000, 4);
    let noise = crate::testing::Random::new(5).bytes(6000);
    let mixed: Vec<u8> = words.iter().zip(&noise).map(|(a, b)| if b % 2 == 0 { *a } else { *b }).collect();
    for src in [&words, &mixed, &noise] {
        let blocks: Vec<&[u8]> = src.chunks(200).collect();
        let enough = EXTENDED_HEADER_LENGTH + 8 * blocks.len() + src.len();
        for id in [codec::LZ4, codec::LZ4HC, codec::ZSTD] {
            let params =
                CParams { compcode: i32::from(id), use_dict: true, typesize: 4, ..CParams::default() };
            let compressed = |params: &CParams, room: usize| {
                let mut chunk = vec![0; room];
                let cbytes = compress_vl(&Encoding::new(params), &blocks, &mut chunk).unwrap().cbytes;
                assert!(cbytes == 0 || decompressed(&chunk[..cbytes]) == *src);
                cbytes
            };
            let plain = compressed(&CParams { use_dict: false, ..params.clone() }, enough);
            assert!((1..=enough).contains(&plain));
            for room in [plain + 200, enough, enough + 40_000] {
                assert!((1..=room).contains(&compressed(&params, room)), "codec {id}, {room} bytes");
            }
        }
    }
}

#[test]
fn variable_blocks_and_their_dictionary_may_not_fit() {
    let src = data(6000, 4);
    let blocks: Vec<&[u8]> = src.chunks(200).collect();
    let table_end = EXTENDED_HEADER_LENGTH + 4 * blocks.len();
    for room in table_end..table_end + 4 + src.len() / 20 {
        let enc = with_dict(true, 4, 0);
        let outcome = compress_vl(&Encoding::new(&enc), &blocks, &mut vec![0; room]).unwrap();
        assert_eq!(outcome.cbytes, 0);
    }
}

#[test]
fn a_few_variable_blocks_and_small_chunks_get_no_dictionary() {
    let src = data(16_000, 4);
    for (nblocks, has_dict) in [(1, false), (7, false), (8, true), (9, true)] {
        let blocks: Vec<&[u8]> = src.chunks(src.len().div_ceil(nblocks)).collect();
        let mut chunk = vec![0; 20_000];
        let params = with_dict(true, 4, 0);
        let outcome = compress_vl(&Encoding::new(&params), &blocks, &mut chunk).unwrap();
        assert!(outcome.cbytes > 0 && blocks.len() == nblocks);
        assert_eq!(ChunkHeader::read(&chunk).unwrap().has_dict(), has_dict, "{nblocks}");
    }
    for (nbytes, has_dict) in [(20 * 256 - 1, false), (20 * 256, true)] {
        let chunk = compressed(&with_dict(true, 1, 512), &words(8000)[..nbytes]);
        assert_eq!(ChunkHeader::read(&chunk).unwrap().has_dict(), has_dict, "{nbytes}");
    }
}

#[test]
fn masked_blocks_stay_untouched() {
    let src = data(100_000, 4);
    for filters in [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 3, 1]] {
        let params = CParams { typesize: 4, blocksize: 10_000, filters, ..CParams::default() };
        let chunk = compressed(&params, &src);
        let mask = [true, false, false, true, true, false, false, false, false, true];
        let mut dest = vec![0xee; src.len()];
        let done = decompress_with(&Decoding::default(), &chunk, Some(&mask), &mut dest).unwrap();
        assert_eq!(done, src.len());
        for (nblock, masked) in mask.into_iter().enumerate() {
            let range = nblock * 10_000..(nblock + 1) * 10_000;
            let expected = if masked { &[0xee; 10_000][..] } else { &src[range.clone()] };
            assert!(&dest[range] == expected, "block {nblock}");
        }
        let code =
            decompress_with(&Decoding::default(), &chunk, Some(&mask[1..]), &mut dest).map_err(Error::code);
        assert_eq!(code.err(), Some(-3));
        // Where no block is wanted, the first one is not decoded for DELTA either: it may be a wrong one.
        let mut damaged = chunk.clone();
        damaged[32..36].fill(0);
        dest.fill(0xee);
        let done = decompress_with(&Decoding::default(), &damaged, Some(&[true; 10]), &mut dest);
        assert_eq!(done.map_err(Error::code), Ok(src.len()));
        assert!(dest.iter().all(|&byte| byte == 0xee));
    }
}

#[test]
fn special_chunks_hold_their_value() {
    let params = CParams { typesize: 4, ..CParams::default() };
    let mut chunk = [0; 36];
    assert_eq!(special_chunk(&params, 12, SpecialValue::Repeated(&[1, 2, 3, 4]), &mut chunk), Ok(36));
    assert_eq!(decompressed(&chunk), [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(special_chunk(&params, 400_000, SpecialValue::Nans, &mut chunk), Ok(32));
    assert_eq!(decompressed(&chunk[..32]), f32::NAN.to_ne_bytes().repeat(100_000));
    assert_eq!(special_chunk(&params, 8, SpecialValue::Zeros, &mut chunk), Ok(32));
    assert_eq!(decompressed(&chunk[..32]), [0; 8]);
    assert_eq!(special_chunk(&params, 8, SpecialValue::Uninit, &mut chunk), Ok(32));
    assert_eq!(decompressed(&chunk[..32]), [0xee; 8]);
    let code = special_chunk(&params, 9, SpecialValue::Uninit, &mut chunk).map_err(Error::code);
    assert_eq!(code, Err(-3));
}

#[test]
fn damaged_chunks_never_panic() {
    let src = data(5000, 4);
    let mut params = CParams { typesize: 4, blocksize: 1000, ..CParams::default() };
    for id in CODECS {
        params.compcode = i32::from(id);
        let chunk = compressed(&params, &src);
        let mut dest = vec![0; 70_000];
        for len in 0..chunk.len() {
            assert!(decompress(&chunk[..len], &mut dest).is_err(), "truncated at {len}");
        }
        for at in 0..chunk.len().min(400) {
            for bit in 0..8 {
                let mut bad = chunk.clone();
                bad[at] ^= 1 << bit;
                let _ = decompress(&bad, &mut dest);
                let _ = getitem(&Decoding::default(), &bad, Unit::Items, 300, 10, &mut dest);
            }
        }
    }
}

#[test]
fn bytes_that_no_stream_gives_are_zero_in_parts_of_a_block_too() {
    // Four streams of 25 bytes, and two bytes more; the shuffle is by three bytes.
    let mut chunk = vec![0; 36 + 4 * 29];
    ChunkHeader {
        version: 5,
        versionlz: 1,
        flags: flags::EXTENDED | codec_format::LZ4 << flags::FORMAT_SHIFT,
        typesize: 4,
        nbytes: 102,
        blocksize: 102,
        cbytes: chunk.len(),
        filters: [0, 0, 0, 0, 0, filter::SHUFFLE],
        filters_meta: [0, 0, 0, 0, 0, 3],
        ..ChunkHeader::EMPTY
    }
    .write(chunk.first_chunk_mut().unwrap());
    chunk[32] = 36;
    for (n, stream) in chunk[36..].chunks_exact_mut(29).enumerate() {
        stream[0] = 25;
        stream[4..].fill(u8::try_from(n + 1).unwrap());
    }
    let mut whole = [0xEE; 102];
    assert_eq!(decompress(&chunk, &mut whole), Ok(100));
    assert_eq!(whole[96..], [2, 3, 0, 2, 3, 0]);

    scratch::worker().buffers.decoded.get(102).unwrap().fill(0xEE);
    let mut part = [0xEE; 100];
    assert_eq!(getitem(&Decoding::default(), &chunk, Unit::Items, 0, 25, &mut part), Ok(100));
    assert_eq!(part, whole[..100]);
}

#[test]
fn a_lazy_chunk_of_more_blocks_than_it_has_room_for_is_cut_off() {
    struct Zeros;
    impl source::BlockSource for Zeros {
        fn read_at(&self, _offset: u64, buf: &mut [u8]) -> crate::error::Result<()> {
            buf.fill(0);
            Ok(())
        }
    }
    let mut chunk = [0; 100];
    ChunkHeader {
        flags: flags::EXTENDED | flags::MEMCPYED,
        nbytes: MAX_BUFFERSIZE,
        cbytes: MAX_BUFFERSIZE + 32,
        blosc2_flags: blosc2_flags::LAZY,
        ..ChunkHeader::BARE
    }
    .write(chunk.first_chunk_mut().unwrap());
    let dec = Decoding { source: Some(&Zeros), ..Decoding::default() };
    let outcome = getitem(&dec, &chunk, Unit::Bytes, 0, 8, &mut [0; 8]);
    assert_eq!(outcome.map_err(|e| e.kind()), Err(ErrorKind::ReadBuffer));
}

/// A file in which zeros follow a chunk.
struct Followed<'a>(&'a [u8]);

impl source::BlockSource for Followed<'_> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let there = self.0.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let n = there.len().min(buf.len());
        buf[..n].copy_from_slice(&there[..n]);
        buf[n..].fill(0);
        Ok(())
    }
}

/// A chunk that has a table, without its blocks.
fn lazy_form(chunk: &[u8]) -> Vec<u8> {
    let header = ChunkHeader::read(chunk).unwrap();
    let mut lazy = chunk[..header.table_end()].to_vec();
    lazy[31] |= blosc2_flags::LAZY;
    lazy.resize(lazy.len() + 12, 0);
    let start = |block: usize| crate::bytes::get_i32(chunk, 32 + 4 * block).unwrap();
    let cbytes = i32::try_from(header.cbytes).unwrap();
    for block in 0..header.nblocks() {
        let end = if block + 1 < header.nblocks() { start(block + 1) } else { cbytes };
        lazy.extend_from_slice(&(end - start(block)).to_le_bytes());
    }
    lazy
}

/// A text of 16 words of 8 letters.
fn words(nbytes: usize) -> Vec<u8> {
    let mut random = crate::testing::Random::new(5);
    let words = random.bytes(16 * 8);
    (0..nbytes / 8).flat_map(|_| words[usize::from(random.byte() & 15) * 8..][..8].to_vec()).collect()
}

fn with_dict(use_dict: bool, typesize: usize, blocksize: usize) -> CParams {
    CParams { compcode: codec::LZ4.into(), use_dict, typesize, blocksize, ..CParams::default() }
}

#[test]
fn the_dictionary_of_a_lazy_chunk_does_not_reach_past_it() {
    let src = words(80_000);
    let mut chunk = compressed(&with_dict(true, 1, 2048), &src);
    let lazy = lazy_form(&chunk);
    let header = ChunkHeader::read(&chunk).unwrap();
    let at = header.table_end();
    let most = header.cbytes - at - 4;
    assert!(header.has_dict() && most < MAX_DICTSIZE);
    let read = |chunk: &[u8], lazy: &[u8]| {
        let source = Followed(chunk);
        let dec = Decoding { source: Some(&source), ..Decoding::default() };
        let mut dest = vec![0; src.len()];
        decompress_with(&dec, lazy, None, &mut dest).map(|_| dest).map_err(|e| e.kind())
    };
    assert!(read(&chunk, &lazy) == Ok(src.clone()));
    for cut in [1, 11, 12, 13] {
        let cut_off = &lazy[..lazy.len() - cut];
        assert_eq!(read(&chunk, cut_off).err(), Some(ErrorKind::ReadBuffer), "{cut}");
    }
    let most = i32::try_from(most).unwrap();
    for (size, kind) in [
        (most + 1, ErrorKind::InvalidHeader),
        (0, ErrorKind::CodecDict),
        (-1, ErrorKind::CodecDict),
        (i32::MAX, ErrorKind::CodecDict),
    ] {
        crate::bytes::put_i32(&mut chunk, at, size);
        assert_eq!(read(&chunk, &lazy).err(), Some(kind), "{size}");
    }
}

#[test]
fn a_few_items_of_a_large_block_are_read_alike_wherever_it_is() {
    const BLOCK: usize = 256 << 10;
    // Its planes are texts.
    let texts = words(2 * BLOCK);
    let src: Vec<u8> = (0..2 * BLOCK).map(|i| texts[i / 4 + BLOCK / 2 * (i % 4)]).collect();
    for use_dict in [false, true] {
        let params = CParams { splitmode: split::ALWAYS, ..with_dict(use_dict, 4, BLOCK) };
        let chunk = compressed(&params, &src);
        let header = ChunkHeader::read(&chunk).unwrap();
        assert!(!header.is_memcpyed() && header.is_split() && header.blocksize == BLOCK);
        assert_eq!(header.has_dict(), use_dict);
        let (source, lazy) = (Followed(&chunk), lazy_form(&chunk));
        let dec = Decoding { source: Some(&source), ..Decoding::default() };
        let lazy_header = ChunkHeader::read(&lazy).unwrap();
        for items in [&[7][..], &[7, 8, 20, 3000], &[0, 9000, 9001], &[65_535]] {
            let places = || items.iter().map(|item| 4 * item..4 * item + 4);
            let each: &planes::EachRun<'_> = &|run| places().for_each(run);
            let (start, end) = (4 * items[0], 4 * items[items.len() - 1] + 4);
            let runs = Runs { start, end, granule: 4, each };
            for (header, chunk) in [(&header, &chunk), (&lazy_header, &lazy)] {
                let reader = BlockReader::open(&dec, header, chunk).unwrap();
                let check = |decoded: Decoded<'_>| {
                    for place in places() {
                        let mut item = [0; 4];
                        match &decoded {
                            Decoded::Window(bytes) => {
                                item.copy_from_slice(&bytes[place.start - start..][..4]);
                            }
                            Decoded::Planes(planes) => planes.put(place.start, &mut item),
                        }
                        assert_eq!(item, src[BLOCK..][place], "{use_dict} {items:?}");
                    }
                    Ok(())
                };
                reader.read_runs(0, 1, &runs, check).unwrap();
            }
        }
    }
}

#[test]
fn chunks_without_streams_are_copied_in_parts_whatever_their_blocks() {
    struct Counting<'a>(&'a [u8], AtomicUsize);
    impl source::BlockSource for Counting<'_> {
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
            self.1.fetch_add(1, Ordering::Relaxed);
            buf.copy_from_slice(&self.0[usize::try_from(offset).unwrap()..][..buf.len()]);
            Ok(())
        }
    }
    let pool = pool::attach(3);
    let threads = Threads { executor: Some(&*pool), nthreads: 3, pays_from: 0 };
    let src = data(1_000_008, 3);
    for blocksize in [66, 900_000] {
        let params = CParams { clevel: 0, typesize: 3, blocksize, ..CParams::default() };
        let mut chunk = vec![0; src.len() + 32];
        let enc = Encoding { threads, ..Encoding::new(&params) };
        let stored = compress_with(&enc, Source::Bytes(&src), &mut chunk).unwrap();
        assert_eq!((stored.cbytes, &chunk), (chunk.len(), &compressed(&params, &src)));

        // Its lazy form: the trailer tells the length of each block.
        let mut lazy = chunk[..32].to_vec();
        lazy[31] |= blosc2_flags::LAZY;
        lazy.resize(32 + 4 * stored.nblocks + 12, 0);
        for nblock in 0..stored.nblocks {
            let len = blocksize.min(src.len() - nblock * blocksize);
            lazy.extend_from_slice(&i32::try_from(len).unwrap().to_le_bytes());
        }
        let source = Counting(&chunk, AtomicUsize::new(0));
        let dec = Decoding { threads, source: Some(&source), ..Decoding::default() };
        for chunk in [&chunk, &lazy] {
            let mut dest = vec![0xEE; src.len()];
            assert_eq!(decompress_with(&dec, chunk, None, &mut dest), Ok(src.len()));
            assert!(dest == src);
        }
        assert_eq!(source.1.into_inner(), 4, "blocks of {blocksize}");

        let value = SpecialValue::Repeated(&[1, 2, 3]);
        let mut chunk = [0; 35];
        assert_eq!(special_chunk(&params, src.len(), value, &mut chunk), Ok(35));
        let mut dest = vec![0xEE; src.len()];
        let dec = Decoding { threads, ..Decoding::default() };
        assert_eq!(decompress_with(&dec, &chunk, None, &mut dest), Ok(src.len()));
        assert!(dest.chunks_exact(3).all(|item| item == [1, 2, 3]));
    }
}

#[test]
fn postfilters_get_zeros_of_what_was_never_written_and_whole_values() {
    /// Copies, and takes down the size of the items.
    struct Copying(AtomicUsize);
    impl Postfilter for Copying {
        fn run(&self, call: PostfilterCall<'_>) -> Result<()> {
            self.0.store(call.typesize, Ordering::Relaxed);
            call.output.copy_from_slice(call.input);
            Ok(())
        }
    }
    let postfilter = Copying(AtomicUsize::new(0));
    let dec = Decoding { postfilter: Some(&postfilter), ..Decoding::default() };
    let mut dest = vec![0xEE; 3000];
    let params = CParams { typesize: 4, ..CParams::default() };
    // Memory that is used again holds these.
    decompress_with(&dec, &compressed(&params, &[7; 3000]), None, &mut dest).unwrap();
    assert!(dest == [7; 3000]);
    let mut chunk = [0; 332];
    special_chunk(&params, 3000, SpecialValue::Uninit, &mut chunk).unwrap();
    decompress_with(&dec, &chunk, None, &mut dest).unwrap();
    assert!(dest == [0; 3000] && postfilter.0.load(Ordering::Relaxed) == 4);
    let params = CParams { typesize: 300, ..params };
    special_chunk(&params, 3000, SpecialValue::Repeated(&[9; 300]), &mut chunk).unwrap();
    decompress_with(&dec, &chunk, None, &mut dest).unwrap();
    assert!(dest == [9; 3000] && postfilter.0.load(Ordering::Relaxed) == 300);
}

#[test]
fn data_that_nobody_makes_are_an_error() {
    let params = CParams::default();
    let mut chunk = [0; 1032];
    for clevel in [0, 5] {
        let params = CParams { clevel, ..params.clone() };
        let outcome = compress_with(&Encoding::new(&params), Source::Generated(1000), &mut chunk);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidParam);
        let empty = compress_with(&Encoding::new(&params), Source::Generated(0), &mut chunk).unwrap();
        assert_eq!(decompress(&chunk[..empty.cbytes], &mut []), Ok(0));
    }
}

#[test]
fn blocks_of_variable_length_have_numbers_below_theirs() {
    let params = CParams { typesize: 1, ..CParams::default() };
    let mut chunk = [0; 1000];
    let blocks: [&[u8]; 2] = [&[1; 100], b"some letters and more"];
    let cbytes = compress_vl(&Encoding::new(&params), &blocks, &mut chunk).unwrap().cbytes;
    let header = ChunkHeader::read(&chunk).unwrap();
    let dec = Decoding::default();
    let vl = open_vl(&dec, &header, &chunk[..cbytes]).unwrap();
    assert_eq!(vl.block_len(1), Ok(blocks[1].len()));
    for nblock in [2, 3, 100, usize::MAX / 4, usize::MAX] {
        let kind = |outcome: Result<()>| outcome.unwrap_err().kind();
        assert_eq!(kind(vl.block_len(nblock).map(|_| ())), ErrorKind::InvalidParam);
        assert_eq!(kind(vl.decode_block(nblock, &mut [0; 100])), ErrorKind::InvalidParam);
        assert_eq!(kind(vl.decode_one(nblock, |_| Ok([0; 100])).map(|_| ())), ErrorKind::InvalidParam);
    }
}

#[test]
fn blocks_of_variable_length_lie_one_after_the_other() {
    let mut chunk = vec![0; 1000];
    let blocks = [data(100, 1), data(100, 3), data(100, 7)];
    let refs: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    let cbytes = compress_vl(&Encoding::new(&with_dict(false, 1, 0)), &refs, &mut chunk).unwrap().cbytes;
    chunk.truncate(cbytes);
    let mut lazy = lazy_form(&chunk);
    let open = |chunk: &[u8]| {
        let header = ChunkHeader::read(chunk).unwrap();
        let dec = Decoding { source: Some(&Followed(&[])), ..Decoding::default() };
        open_vl(&dec, &header, chunk).map(|vl| vl.nblocks()).map_err(|e| e.kind())
    };
    assert_eq!((open(&chunk), open(&lazy)), (Ok(3), Ok(3)));
    let starts: Vec<u8> = chunk[32..44].to_vec();
    for moved in [[0, 0, 8], [0, 4, 4], [4, 0, 8]] {
        for (i, from) in moved.into_iter().enumerate() {
            chunk[32 + 4 * i..][..4].copy_from_slice(&starts[from..from + 4]);
        }
        lazy[32..44].copy_from_slice(&chunk[32..44]);
        let wrong = Err(ErrorKind::InvalidHeader);
        assert_eq!((open(&chunk), open(&lazy)), (wrong, wrong), "{moved:?}");
    }
    chunk[32..44].copy_from_slice(&starts);
    lazy[32..44].copy_from_slice(&starts);

    let source = Followed(&chunk);
    let dec = Decoding { source: Some(&source), ..Decoding::default() };
    let size_at = lazy.len() - 12;
    let size = crate::bytes::get_i32(&lazy, size_at).unwrap();
    for (change, len) in
        [(0, Ok(100)), (1, Err(ErrorKind::InvalidHeader)), (-1, Err(ErrorKind::InvalidHeader))]
    {
        crate::bytes::put_i32(&mut lazy, size_at, size + change);
        let header = ChunkHeader::read(&lazy).unwrap();
        let vl = open_vl(&dec, &header, &lazy).unwrap();
        assert_eq!(vl.block_len(0).map_err(|e| e.kind()), len, "{change}");
    }
    crate::bytes::put_i32(&mut lazy, size_at, size);

    let at = crate::bytes::get_i32(&chunk, 32).and_then(|at| usize::try_from(at).ok()).unwrap();
    for (stored, len) in [
        (1, Ok(1)),
        (300, Ok(300)),
        (301, Err(ErrorKind::InvalidHeader)),
        (0, Err(ErrorKind::InvalidHeader)),
        (-1, Err(ErrorKind::InvalidHeader)),
    ] {
        let mut changed = chunk.clone();
        crate::bytes::put_i32(&mut changed, at, stored);
        let (source, header) = (Followed(&changed), ChunkHeader::read(&lazy).unwrap());
        let dec = Decoding { source: Some(&source), ..Decoding::default() };
        let vl = open_vl(&dec, &header, &lazy).unwrap();
        assert_eq!(vl.block_len(0).map_err(|e| e.kind()), len, "{stored}");
    }
}

#[test]
fn repeated_values_are_items() {
    let params = CParams { typesize: 4, ..CParams::default() };
    let mut chunk = [0; 100];
    let value = SpecialValue::Repeated(&[1, 2, 3, 4]);
    let cbytes = special_chunk(&params, 400, value, &mut chunk).unwrap();
    assert_eq!(decompressed(&chunk[..cbytes])[396..], [1, 2, 3, 4]);
    // They need not be as long as the typesize, which the environment may set.
    for value in [&[1, 2][..], &[1, 2, 3, 4, 5, 6, 7, 8]] {
        let cbytes = special_chunk(&params, 400, SpecialValue::Repeated(value), &mut chunk).unwrap();
        assert_eq!(chunk[3], 4);
        assert_eq!(decompressed(&chunk[..cbytes]), value.repeat(400 / value.len()));
    }
    for value in [&[][..], &[1, 2, 3]] {
        let outcome = special_chunk(&params, 400, SpecialValue::Repeated(value), &mut chunk);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Data);
    }
}

#[test]
fn any_number_of_tasks_may_be_asked_for() {
    let data = data(100_000, 4);
    let params = CParams { typesize: 4, blocksize: 10_000, ..CParams::default() };
    let serial = compressed(&params, &data);
    let pool = pool::attach(2);
    let threads = Threads { executor: Some(&*pool as &dyn Executor), nthreads: usize::MAX, pays_from: 0 };
    let mut chunk = vec![0; data.len() + 32];
    let enc = Encoding { threads, ..Encoding::new(&params) };
    let cbytes = compress_with(&enc, Source::Bytes(&data), &mut chunk).unwrap().cbytes;
    assert!(chunk[..cbytes] == serial);
    let mut back = vec![0; data.len()];
    let dec = Decoding { threads, ..Decoding::default() };
    assert_eq!(decompress_with(&dec, &serial, None, &mut back), Ok(data.len()));
    assert!(back == data);
}
