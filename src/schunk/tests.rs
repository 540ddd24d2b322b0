//! Super-chunks on every back-end against plain bytes.

mod batches;
mod broken_copies;
mod compressors;
mod counters;
mod shared;
mod stretches;

use super::*;
use crate::chunk::{CParams, Room, Source};
use crate::format::consts::{codec, filter, special, split};
use crate::frame::sizes::ChunkInfo;
use crate::io::dirs;
use crate::pool;
use crate::testing::{Random, TempPath};
use std::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    List,
    Memory,
    File,
    Dir,
}

const KINDS: [Kind; 4] = [Kind::List, Kind::Memory, Kind::File, Kind::Dir];

fn params(typesize: i32) -> FrameParams {
    FrameParams { typesize, clevel: 5, splitmode: 4, filters: [0, 0, 0, 0, 0, 1], ..FrameParams::default() }
}

fn create(kind: Kind, path: &Path, typesize: i32) -> Schunk {
    let options = FrameOptions::default();
    let frame = match kind {
        Kind::List => return Schunk::in_memory(params(typesize)),
        Kind::Memory => Frame::create_in_memory(params(typesize)),
        Kind::File => Frame::create_file(path, params(typesize), &options),
        Kind::Dir => Frame::create_dir(path, params(typesize), &options),
    };
    Schunk::over(frame.unwrap())
}

/// `nbytes` bytes: zeros, noise, or integers that grow.
fn data(random: &mut Random, nbytes: usize) -> Vec<u8> {
    match random.below(5) {
        0 => vec![0; nbytes],
        1 => (0..nbytes).map(|_| random.below(256).to_le_bytes()[0]).collect(),
        _ => {
            let start = random.below(1 << 20);
            let words =
                (0..nbytes.div_ceil(4)).flat_map(|i| u32::try_from(start + i * 3).unwrap().to_le_bytes());
            words.take(nbytes).collect()
        }
    }
}

fn cparams(typesize: usize, blocksize: usize, compcode: u8) -> CParams {
    CParams { typesize, blocksize, compcode: i32::from(compcode), ..CParams::default() }
}

fn all(schunk: &Schunk) -> Vec<u8> {
    let mut data = vec![0xaa; usize::try_from(schunk.nbytes()).unwrap()];
    let nitems = schunk.nbytes() / schunk.typesize() as u64;
    schunk.get_slice(0, nitems, &mut data, &Reading::default()).unwrap();
    data
}

#[test]
fn slices_read_and_written_match_plain_bytes() {
    let mut random = Random::new(1);
    for kind in KINDS {
        for (typesize, blocksize, compcode, chunk_items, nitems) in [
            (4, 0, codec::BLOSCLZ, 5000, 23_456),
            (4, 1024, codec::LZ4, 5000, 20_000),
            (8, 4096, codec::ZSTD, 3000, 10_001),
            (1, 512, codec::ZLIB, 7000, 15_000),
            (12, 1200, codec::LZ4HC, 1000, 3500),
            (300, 3000, codec::LZ4, 50, 333),
        ] {
            let path = TempPath::new("slices");
            let mut schunk = create(kind, &path.0, i32::try_from(typesize).unwrap());
            let cparams = cparams(typesize, blocksize, compcode);
            let writing = Writing::new(Encoding::new(&cparams));
            let reading = Reading::default();
            let mut model: Vec<u8> = Vec::new();
            while model.len() < nitems * typesize {
                let n = (chunk_items * typesize).min(nitems * typesize - model.len());
                let new = data(&mut random, n);
                schunk.append_buffer(Source::Bytes(&new), &writing).unwrap();
                model.extend(new);
            }
            for round in 0..60 {
                let start = random.below(nitems);
                let longest = if round % 4 == 0 { nitems } else { 300 };
                let stop = (start + 1 + random.below(longest)).min(nitems);
                let range = start * typesize..stop * typesize;
                if round % 2 == 0 {
                    let new = data(&mut random, range.len());
                    schunk.set_slice(start as u64, stop as u64, &new, &reading, &writing).unwrap();
                    model[range.clone()].copy_from_slice(&new);
                }
                let mut got = vec![0; range.len()];
                schunk.get_slice(start as u64, stop as u64, &mut got, &reading).unwrap();
                assert!(got == model[range], "{kind:?} typesize {typesize} round {round}");
            }
            assert!(all(&schunk) == model, "{kind:?} typesize {typesize}");
            let coords: Vec<i64> = (0..500).map(|_| i64::try_from(random.below(nitems)).unwrap()).collect();
            let expected: Vec<u8> = coords
                .iter()
                .flat_map(|&c| model[usize::try_from(c).unwrap() * typesize..][..typesize].to_vec())
                .collect();
            for nthreads in [1, 4] {
                let pool = pool::attach(nthreads);
                let mut got = vec![0; 500 * typesize];
                let mut reading = Reading::default();
                reading.dec.threads = chunk::Threads { executor: Some(&*pool), nthreads, pays_from: 0 };
                schunk.get_sparse(&coords, &mut got, &reading).unwrap();
                assert!(got == expected, "{kind:?} typesize {typesize}");
            }
            let kinds = |r: Result<()>| r.unwrap_err().kind();
            let mut dest = vec![0; 10 * typesize];
            let past = nitems as u64;
            assert_eq!(kinds(schunk.get_slice(past - 1, past + 1, &mut dest, &reading)), ErrorKind::Failure);
            let late = schunk.set_slice(past - 1, past + 1, &dest, &reading, &writing);
            assert_eq!(kinds(late), ErrorKind::InvalidParam);
            for bad in [-1, i64::try_from(nitems).unwrap()] {
                assert_eq!(kinds(schunk.get_sparse(&[0, bad], &mut dest, &reading)), ErrorKind::InvalidParam);
            }
        }
    }
}

#[test]
fn changing_one_block_keeps_the_bytes_of_the_others() {
    let cparams = cparams(4, 16384, codec::LZ4);
    let writing = Writing::new(Encoding::new(&cparams));
    let mut random = Random::new(3);
    let data: Vec<u8> =
        (0..1 << 18).map(|i| if i % 4 == 0 { random.below(200).to_le_bytes()[0] } else { 0 }).collect();
    let mut schunk = Schunk::in_memory(params(4));
    schunk.append_buffer(Source::Bytes(&data), &writing).unwrap();
    let before = schunk.chunk(0).unwrap().into_owned();
    schunk.set_slice(5000, 5001, &[1, 2, 3, 4], &Reading::default(), &writing).unwrap();
    let after = schunk.chunk(0).unwrap().into_owned();
    let start = |chunk: &[u8], block: usize| {
        usize::try_from(crate::bytes::get_i32(chunk, 32 + 4 * block).unwrap()).unwrap()
    };
    for block in (0..16).filter(|&block| block != 1) {
        let end = |chunk: &[u8]| if block == 15 { chunk.len() } else { start(chunk, block + 1) };
        assert!(before[start(&before, block)..end(&before)] == after[start(&after, block)..end(&after)]);
    }
    let mut expected = data;
    expected[20_000..20_004].copy_from_slice(&[1, 2, 3, 4]);
    assert!(all(&schunk) == expected);
}

#[test]
fn blocks_that_share_their_bytes_keep_their_values_when_another_block_shrinks() {
    const BLOCK: usize = 1024;
    let cparams = cparams(1, BLOCK, codec::LZ4);
    let writing = Writing::new(Encoding::new(&cparams));
    let mut random = Random::new(11);
    let mut block = || [random.bytes(BLOCK / 2), vec![0; BLOCK / 2]].concat();
    let (first, second, last) = (block(), block(), block());
    let mut data = [&first[..], &second, &second, &last].concat();
    let mut chunk = chunk::compress_to_vec(&cparams, &data).unwrap();
    let start = |chunk: &[u8], block: usize| crate::bytes::get_i32(chunk, 32 + 4 * block).unwrap();
    // The third block becomes what the second one is.
    let (from, to) = (start(&chunk, 2), start(&chunk, 3));
    let cbytes = i32::try_from(chunk.len()).unwrap();
    for (at, value) in [(32 + 8, start(&chunk, 1)), (32 + 12, from), (12, cbytes - (to - from))] {
        crate::bytes::put_i32(&mut chunk, at, value);
    }
    chunk.drain(usize::try_from(from).unwrap()..usize::try_from(to).unwrap());
    for kind in [Kind::List, Kind::Memory] {
        let mut schunk = create(kind, Path::new(""), 1);
        schunk.append_chunk(&chunk).unwrap();
        schunk.set_slice(0, 20, &[0; 20], &Reading::default(), &writing).unwrap();
        data[..20].fill(0);
        assert!(all(&schunk) == data, "{kind:?}");
    }
}

#[test]
fn items_of_a_damaged_chunk_are_read_with_the_codes_of_the_c_library() {
    let items = (0..5000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    for (delta, coords, kind) in [
        (filter::NONE, &[1000, 1001][..], ErrorKind::ReadBuffer),
        (filter::NONE, &[1000], ErrorKind::Failure),
        (filter::DELTA, &[1000, 1001], ErrorKind::Failure),
    ] {
        let params = FrameParams { filters: [0, 0, 0, 0, delta, 1], ..params(4) };
        let cparams = CParams { filters: params.filters, ..cparams(4, 4000, codec::LZ4) };
        let mut chunk = chunk::compress_to_vec(&cparams, &items).unwrap();
        let second = usize::try_from(crate::bytes::get_i32(&chunk, 36).unwrap()).unwrap();
        crate::bytes::put_i32(&mut chunk, second, i32::MAX);
        let mut schunk = Schunk::in_memory(params);
        schunk.append_chunk(&chunk).unwrap();
        let read = schunk.get_sparse(coords, &mut [0; 8], &Reading::default());
        assert_eq!(read.unwrap_err().kind(), kind, "{delta} {coords:?}");
    }
}

#[test]
fn chunks_changed_into_zeros_become_special() {
    let cparams = cparams(4, 1024, codec::LZ4);
    let writing = Writing::new(Encoding::new(&cparams));
    let mut data = vec![0; 8192];
    data[5000] = 1;
    let mut schunk = Schunk::in_memory(params(4));
    schunk.append_buffer(Source::Bytes(&data), &writing).unwrap();
    schunk.set_slice(1250, 1251, &[0; 4], &Reading::default(), &writing).unwrap();
    assert_eq!(schunk.chunk(0).unwrap().len(), 32);
}

#[test]
fn changing_blocks_never_makes_a_chunk_longer_than_a_stored_one() {
    let cparams = cparams(1, 64, codec::LZ4);
    let writing = Writing::new(Encoding::new(&cparams));
    let mut random = Random::new(7);
    // Noise except for one block: compressed in blocks, with little to spare.
    let mut data: Vec<u8> = (0..8192).map(|_| random.below(256).to_le_bytes()[0]).collect();
    data[..2048].fill(0);
    let mut schunk = Schunk::in_memory(params(1));
    schunk.append_buffer(Source::Bytes(&data), &writing).unwrap();
    for start in (0..2048).step_by(64) {
        let noise: Vec<u8> = (0..64).map(|_| random.below(256).to_le_bytes()[0]).collect();
        let at = u64::try_from(start).unwrap();
        schunk.set_slice(at, at + 64, &noise, &Reading::default(), &writing).unwrap();
        data[start..start + 64].copy_from_slice(&noise);
        assert!(schunk.chunk(0).unwrap().len() <= data.len() + 32);
    }
    assert!(all(&schunk) == data);
}

#[test]
fn a_stored_chunk_stays_one_until_a_block_of_it_shrinks() {
    for (kind, compcode) in
        KINDS.into_iter().flat_map(|kind| [codec::LZ4, codec::BLOSCLZ].map(|codec| (kind, codec)))
    {
        let path = TempPath::new("stored");
        let cparams = cparams(4, 1024, compcode);
        let writing = Writing::new(Encoding::new(&cparams));
        let mut random = Random::new(13);
        let mut data = random.bytes(9000);
        let mut schunk = create(kind, &path.0, 4);
        schunk.append_buffer(Source::Bytes(&data), &writing).unwrap();
        // Part of a block, a whole one, several, and the last, which is shorter.
        for items in [100..101, 256..512, 300..900, 2240..2250] {
            let (from, to) = (items.start * 4, items.end * 4);
            data[from..to].copy_from_slice(&random.bytes(to - from));
            let (start, stop) = (items.start as u64, items.end as u64);
            schunk.set_slice(start, stop, &data[from..to], &Reading::default(), &writing).unwrap();
            assert!(all(&schunk) == data, "{kind:?}");
            let as_a_whole = chunk::compress_to_vec(&cparams, &data).unwrap();
            assert!(schunk.chunk(0).unwrap()[..] == as_a_whole, "{kind:?}");
        }
        data[4096..5120].fill(0);
        schunk.set_slice(1024, 1280, &[0; 1024], &Reading::default(), &writing).unwrap();
        assert!(all(&schunk) == data, "{kind:?}");
        let as_a_whole = chunk::compress_to_vec(&cparams, &data).unwrap();
        assert!(as_a_whole.len() < 9000 && schunk.chunk(0).unwrap()[..] == as_a_whole, "{kind:?}");
    }
}

#[test]
fn items_of_long_runs_without_matches_are_read() {
    const ITEMS: usize = 65_536;
    let mut random = Random::new(7);
    for noise in [16_000, 17_000, 20_000, 60_000] {
        let mut data = vec![0; 4 * ITEMS];
        data[..4 * noise].copy_from_slice(&random.bytes(4 * noise));
        for (kind, compcode) in
            KINDS.into_iter().flat_map(|kind| [codec::LZ4, codec::LZ4HC].map(|codec| (kind, codec)))
        {
            let path = TempPath::new("runs");
            let cparams = CParams { splitmode: split::ALWAYS, ..cparams(4, 4 * ITEMS, compcode) };
            let mut schunk = create(kind, &path.0, 4);
            schunk.append_buffer(Source::Bytes(&data), &Writing::new(Encoding::new(&cparams))).unwrap();
            for start in [0, 1, 100, 7000, noise - 20, noise, ITEMS - 9] {
                let mut items = [0xaa; 36];
                let stop = start as u64 + 9;
                schunk.get_slice(start as u64, stop, &mut items, &Reading::default()).unwrap();
                assert!(items[..] == data[4 * start..][..36], "{kind:?}, {noise} of noise, from {start}");
            }
        }
    }
}

#[test]
fn a_block_of_a_chunk_of_level_0_is_stored() {
    for (kind, made_with) in KINDS.into_iter().flat_map(|kind| [0, 5].map(|level| (kind, level))) {
        let path = TempPath::new("level0");
        let cparams = CParams { clevel: made_with, ..cparams(4, 1024, codec::LZ4) };
        let mut data = Random::new(5).bytes(9000);
        let mut schunk = create(kind, &path.0, 4);
        schunk.append_buffer(Source::Bytes(&data), &Writing::new(Encoding::new(&cparams))).unwrap();
        let cparams = CParams { clevel: 0, ..cparams };
        let writing = Writing::new(Encoding::new(&cparams));
        // One of level 5 is stored again as a whole, with a header of level 0, when it is changed for the first time.
        let mut is_of_level_0 = made_with == 0;
        for items in [100..101, 256..512, 300..900, 2240..2250] {
            data[items.start * 4..items.end * 4].fill(0);
            let (start, stop) = (items.start as u64, items.end as u64);
            let zeros = vec![0; items.len() * 4];
            let old = schunk.chunk(0).unwrap().to_vec();
            let reading = Reading::default();
            let patch = patch::encode_range(&old, items.start * 4, &zeros, &reading.dec, &writing.enc);
            assert_eq!(patch.unwrap().is_some(), is_of_level_0, "{kind:?}, made at level {made_with}");
            schunk.set_slice(start, stop, &zeros, &reading, &writing).unwrap();
            let as_a_whole = chunk::compress_to_vec(&cparams, &data).unwrap();
            assert!(schunk.chunk(0).unwrap()[..] == as_a_whole, "{kind:?}, made at level {made_with}");
            is_of_level_0 = true;
        }
    }
}

#[test]
fn edits_and_counters_match_on_all_back_ends() {
    for kind in KINDS {
        let path = TempPath::new("edits");
        let mut schunk = create(kind, &path.0, 4);
        let cparams = cparams(4, 0, codec::BLOSCLZ);
        let writing = Writing::new(Encoding::new(&cparams));
        let mut random = Random::new(5);
        let chunk = |seed: usize, n: usize| {
            let data: Vec<u8> =
                (0..n / 4).flat_map(|i| u32::try_from(seed + i * i).unwrap().to_le_bytes()).collect();
            let mut dest = vec![0; n + 32];
            let cbytes = chunk::compress(&cparams, &data, &mut dest).unwrap();
            dest.truncate(cbytes);
            (data, dest)
        };
        let mut model = Vec::new();
        for i in 0..10 {
            let (data, _) = chunk(i, 4000);
            assert_eq!(schunk.append_buffer(Source::Bytes(&data), &writing).unwrap(), i + 1);
            model.push(data);
        }
        for step in 0..40 {
            let at = random.below(model.len());
            let (data, bytes) = chunk(100 + step, 4000);
            match step % 6 {
                0 => {
                    schunk.insert_chunk(at, &bytes).unwrap();
                    model.insert(at, data);
                }
                1 => {
                    schunk.update_owned(at, MallocBuf::copy_of(&bytes).unwrap()).unwrap();
                    model[at] = data;
                }
                2 => {
                    schunk.delete_chunk(at).unwrap();
                    model.remove(at);
                }
                3 => {
                    schunk.append_owned(MallocBuf::copy_of(&bytes).unwrap()).unwrap();
                    model.push(data);
                }
                4 => {
                    let (other, other_bytes) = chunk(200 + step, 4000);
                    schunk.insert_chunks(at, &[&bytes, &other_bytes]).unwrap();
                    model.splice(at..at, [data, other]);
                }
                _ => {
                    schunk.append_chunks(&[&bytes, &bytes]).unwrap();
                    model.extend([data.clone(), data]);
                }
            }
            assert_eq!(schunk.nbytes(), model.len() as u64 * 4000);
        }
        schunk.reorder(&(0..model.len()).rev().collect::<Vec<_>>()).unwrap();
        model.reverse();
        assert!(all(&schunk) == model.concat(), "{kind:?}");
        let stored: usize = (0..model.len()).map(|i| schunk.chunk(i).unwrap().len()).sum();
        assert_eq!(schunk.cbytes(), stored as u64, "{kind:?}");
        #[cfg(feature = "capi")]
        if let Some((pointers, room)) = schunk.pointers() {
            assert_eq!(pointers.len(), model.len());
            assert!(room >= pointers.len());
        }
        let n = model.len();
        let kinds = |r: Result<usize>| r.unwrap_err().kind();
        assert_eq!(kinds(schunk.delete_chunk(n)), ErrorKind::InvalidParam);
        assert_eq!(kinds(schunk.insert_chunk(n + 1, &chunk(1, 4000).1)), ErrorKind::InvalidParam);
        assert_eq!(kinds(schunk.update_chunk(n, &chunk(1, 4000).1)), ErrorKind::InvalidParam);
        assert_eq!(schunk.reorder(&vec![0; n]).unwrap_err().kind(), ErrorKind::Data);
        let rejected = schunk.append_owned(MallocBuf::copy_of(&[0; 40]).unwrap()).unwrap_err();
        assert_eq!(rejected.chunk.len(), 40);
        let mut short = [0; 3999];
        let code = schunk.decompress_chunk(0, &mut short, &Reading::default()).unwrap_err().kind();
        assert_eq!(code, if kind == Kind::List { ErrorKind::InvalidParam } else { ErrorKind::WriteBuffer });
    }
}

#[test]
fn a_copy_in_memory_has_room_for_hardly_more_than_it_takes() {
    let noise = Random::new(6).bytes(1 << 20);
    let cparams = cparams(4, 0, codec::LZ4);
    let writing = Writing::new(Encoding::new(&cparams));
    for kind in KINDS {
        let path = TempPath::new("room");
        let mut schunk = create(kind, &path.0, 4);
        for _ in 0..5 {
            schunk.append_buffer(Source::Bytes(&noise), &writing).unwrap();
        }
        let copy = schunk.to_frame(params(4)).unwrap();
        let buffer = copy.buffer().unwrap();
        assert!(buffer.len() > 5 << 20 && buffer.capacity() - buffer.len() < 16 << 10, "{kind:?}");
    }
}

#[test]
fn copies_between_all_back_ends_are_equal() {
    let cparams = cparams(4, 0, codec::LZ4);
    let other = CParams { clevel: 9, blocksize: 10_000, ..cparams.clone() };
    let writing = Writing::new(Encoding::new(&cparams));
    let reading = Reading::default();
    let mut random = Random::new(9);
    for from in KINDS {
        let path = TempPath::new("copy-from");
        let mut schunk = create(from, &path.0, 4);
        schunk.meta_add(b"m", b"fixed").unwrap();
        let mut model = Vec::new();
        for i in 0..6 {
            let n = if i == 5 { 1000 } else { 40_000 };
            let data = data(&mut random, n);
            schunk.append_buffer(Source::Bytes(&data), &writing).unwrap();
            model.extend(data);
        }
        schunk.vlmeta_add(b"v", b"variable", None).unwrap();
        for to in KINDS {
            for recompress in [false, true] {
                let path = TempPath::new("copy-to");
                let mut copy = create(to, &path.0, 4);
                let writing = Writing::new(Encoding::new(&other));
                schunk.copy_to(&mut copy, recompress.then_some((&reading, &writing))).unwrap();
                assert!(all(&copy) == model, "{from:?} to {to:?}");
                assert_eq!(copy.chunksize(), 40_000);
                assert_eq!(copy.metalayers()[0].content, b"fixed");
                assert_eq!(copy.vlmeta_get(b"v").unwrap(), (0, b"variable".to_vec()));
                assert!(schunk.copy_to(&mut copy, None).is_err());
            }
        }
        let frame = schunk.to_frame(params(4)).unwrap();
        let again = Schunk::over(Frame::from_buffer(frame.into_buffer().unwrap()).unwrap());
        assert!(all(&again) == model);
        let list = again.to_memory().unwrap();
        assert!(all(&list) == model && list.frame().is_none());
        assert_eq!(list.vlmeta_get(b"v").unwrap().1, b"variable");
        let file = TempPath::new("copy-file");
        let len = schunk.to_file(&file.0, params(4), &crate::io::file::FileIo).unwrap();
        let at = schunk.append_file(&file.0, params(4), &FrameOptions::default()).unwrap();
        assert_eq!(at, len);
        for offset in [0, at] {
            let opened = Schunk::open(&file.0, offset, &FrameOptions::default()).unwrap();
            assert!(all(&opened) == model);
        }
    }
}

#[test]
fn a_copy_goes_behind_the_frame_that_is_locked_through_the_same_handle() {
    let path = TempPath::new("own-lock");
    let options = FrameOptions { locking: true, ..FrameOptions::default() };
    let mut schunk = Schunk::over(Frame::create_file(&path.0, params(4), &options).unwrap());
    let cparams = cparams(4, 0, codec::LZ4);
    schunk.append_buffer(Source::Bytes(&[7; 400]), &Writing::new(Encoding::new(&cparams))).unwrap();
    let frame = schunk.frame().unwrap();
    frame.lock().unwrap();
    let at = schunk.append_file(&path.0, params(4), &options).unwrap();
    frame.unlock();
    let copy = Schunk::open(&path.0, at, &options).unwrap();
    assert_eq!((at, all(&copy)), (frame.frame_len(), all(&schunk)));
}

#[test]
#[cfg_attr(miri, ignore = "megabytes")]
fn a_large_copy_goes_to_a_file_in_batches_and_all_of_it_or_nothing() {
    let dir = TempPath::new("batches");
    let path = dir.0.join("file.b2frame");
    let mut random = Random::new(5);
    let noise: Vec<u8> = (0..3 << 20).map(|_| random.below(256).to_le_bytes()[0]).collect();
    let cparams = cparams(4, 0, codec::LZ4);
    let writing = Writing::new(Encoding::new(&cparams));
    let mut list = Schunk::in_memory(params(4));
    for _ in 0..3 {
        list.append_buffer(Source::Bytes(&noise), &writing).unwrap();
    }
    assert!(list.cbytes() > batch_len(3) as u64); // widening
    let missing = list.to_file(&path, params(4), &crate::io::file::FileIo).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::SchunkCopy, "there is no directory");
    std::fs::create_dir(&dir.0).unwrap();
    let len = list.to_file(&path, params(4), &crate::io::file::FileIo).unwrap();
    let frame = list.to_frame(params(4)).unwrap();
    assert_eq!(len, frame.frame_len());
    assert!(std::fs::read(&path).unwrap() == frame.buffer().unwrap()[..], "one batch or several");
    let names = std::fs::read_dir(&dir.0).unwrap().count();
    assert_eq!(names, 1, "nothing is left beside it");
    std::fs::remove_dir_all(&dir.0).unwrap();
}

#[cfg(unix)]
#[test]
fn a_copy_goes_where_a_link_leads() {
    let dir = TempPath::new("link");
    std::fs::create_dir(&dir.0).unwrap();
    let (link, target) = (dir.0.join("link"), dir.0.join("target"));
    std::os::unix::fs::symlink("target", &link).unwrap();
    let list = Schunk::in_memory(params(4));
    let len = list.to_file(&link, params(4), &crate::io::file::FileIo).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::symlink_metadata(&target).unwrap().len(), len);
    let again = list.to_file(&link, params(4), &crate::io::file::FileIo).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::SchunkCopy, "a file is there by now");
    std::fs::remove_dir_all(&dir.0).unwrap();
}

#[test]
fn special_values_fill_all_back_ends() {
    for kind in KINDS {
        for (value, nitems, expected) in
            [(special::ZERO, 2500u64, 3), (special::NAN, 1000, 1), (special::UNINIT, 7, 1)]
        {
            let path = TempPath::new("fill");
            let mut schunk = create(kind, &path.0, 4);
            let n = schunk.fill_special(nitems, value, 4000, &CParams::default()).unwrap();
            assert_eq!((n, schunk.nbytes()), (expected, nitems * 4), "{kind:?}");
            let info = ChunkInfo::read(&schunk.chunk(n - 1).unwrap()).unwrap();
            assert_eq!(info.special, value);
            if value != special::UNINIT {
                let word = if value == special::NAN { f32::NAN.to_bits().to_ne_bytes() } else { [0; 4] };
                assert!(all(&schunk).chunks(4).all(|item| item == word), "{kind:?}");
            }
            let again = schunk.fill_special(5, value, 4000, &CParams::default());
            assert_eq!(again.unwrap_err().kind(), ErrorKind::FrameSpecial);
            let mut empty = create(Kind::List, Path::new(""), 4);
            assert!(empty.fill_special(5, special::VALUE, 4000, &CParams::default()).is_err());
            assert!(empty.fill_special(5, value, 4002, &CParams::default()).is_err());
            assert_eq!((empty.nchunks(), empty.chunksize()), (0, -1));
        }
    }
}

#[test]
fn blocks_of_variable_length_are_read_one_by_one() {
    for kind in KINDS {
        let path = TempPath::new("vl");
        let mut schunk = create(kind, &path.0, 1);
        let blocks: [&[u8]; 3] = [b"red", b"green-green", b"blue-blue-blue-blue"];
        let cparams = cparams(1, 0, codec::ZSTD);
        let mut dest = vec![0; 500];
        let made = chunk::compress_vl(&Encoding::new(&cparams), &blocks, &mut dest).unwrap();
        schunk.append_chunk(&dest[..made.cbytes]).unwrap();
        assert!(schunk.has_vl_blocks());
        let reading = Reading::default();
        let zeros = |(Room::Zeros(len) | Room::Any(len))| Ok(vec![0; len]);
        for (i, &block) in blocks.iter().enumerate() {
            let got = schunk.vl_block(0, i, &reading, zeros).unwrap();
            assert_eq!(got, block, "{kind:?}");
        }
        let none = schunk.vl_block(0, 3, &reading, zeros).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::InvalidParam);
        let mut whole = vec![0; 33];
        schunk.get_slice(0, 33, &mut whole, &reading).unwrap();
        assert_eq!(whole, blocks.concat(), "{kind:?}");
        let mut plain = vec![0; 500];
        let n = chunk::compress(&cparams, &[1; 33], &mut plain).unwrap();
        assert_eq!(schunk.append_chunk(&plain[..n]).unwrap_err().kind(), ErrorKind::ChunkAppend);
    }
}

#[test]
fn a_frame_without_chunks_can_be_copied_into_its_own_file() {
    let path = TempPath::new("own");
    let mut schunk = create(Kind::File, &path.0, 1);
    for name in [b"one", b"two"] {
        schunk.vlmeta_add(name, name, None).unwrap();
        // The copy is made of a file that is empty already.
        let mut file = std::fs::File::create(&path.0).unwrap();
        let copy = schunk.to_frame(schunk.params()).unwrap();
        std::io::Write::write_all(&mut file, copy.buffer().unwrap()).unwrap();
    }
    let names = |schunk: &Schunk| [b"one", b"two"].map(|name| schunk.vlmeta_get(name).unwrap().1);
    let reopened = Schunk::over(Frame::open(&path.0, 0, &FrameOptions::default()).unwrap());
    assert_eq!(names(&schunk), names(&reopened));
}

#[test]
fn metalayers_that_stand_for_much_more_than_they_take_are_copied_as_they_are() {
    let params_of_bytes = CParams { typesize: 1, ..CParams::default() };
    let mut schunk = Schunk::in_memory(params(1));
    let mut chunk = vec![0; 64];
    for (name, nbytes, value) in [
        (b"repeated", 64 << 20, chunk::SpecialValue::Repeated(b"x")),
        (b"zeros of", 1 << 30, chunk::SpecialValue::Zeros),
    ] {
        let cbytes = chunk::special_chunk(&params_of_bytes, nbytes, value, &mut chunk).unwrap();
        schunk.vlmeta_add_stored(name, chunk[..cbytes].to_vec()).unwrap();
    }
    schunk.vlmeta_add(b"of words", &b"words ".repeat(10_000), None).unwrap();
    let copy = Schunk::over(schunk.to_frame(params(1)).unwrap());
    let stored = |schunk: &Schunk| schunk.vlmetalayers().iter().map(|layer| layer.content.clone()).collect();
    let (before, after): (Vec<_>, Vec<_>) = (stored(&schunk), stored(&copy));
    assert_eq!(before, after);
    assert_eq!(copy.vlmeta_get(b"of words").unwrap().1, b"words ".repeat(10_000));
    let again: Vec<_> =
        before.iter().map(|stored| meta::compressed_again(stored, &params_of_bytes).unwrap()).collect();
    assert_eq!(again[..2], before[..2]);
    assert_eq!(meta::decompress(&again[2]).unwrap(), b"words ".repeat(10_000));
}

#[test]
fn metalayers_of_lists_follow_the_same_rules() {
    let mut schunk = Schunk::in_memory(params(4));
    let kinds = |r: Result<usize>| r.unwrap_err().kind();
    for i in 0..16 {
        assert_eq!(schunk.meta_add(format!("m{i}").as_bytes(), b"x").unwrap(), i);
    }
    assert_eq!(kinds(schunk.meta_add(b"m16", b"x")), ErrorKind::InvalidParam);
    assert_eq!(kinds(schunk.meta_add(&[b'x'; 32], b"x")), ErrorKind::InvalidParam);
    assert_eq!(schunk.meta_find(b"m7"), Ok(7));
    assert_eq!(kinds(schunk.meta_find(b"nope")), ErrorKind::NotFound);
    assert_eq!(schunk.vlmeta_add(b"", b"", None), Ok(0));
    assert_eq!(schunk.vlmeta_get(b"").unwrap(), (0, Vec::new()));
    assert_eq!(schunk.vlmeta_update(b"", &[9; 1000], None), Ok(0));
    assert_eq!(schunk.vlmeta_get(b"").unwrap().1, [9; 1000]);
    assert_eq!(kinds(schunk.vlmeta_update(b"nope", b"", None)), ErrorKind::NotFound);
    assert_eq!(schunk.vlmeta_delete(b""), Ok(0));
    assert_eq!(schunk.change_tick(), 19);
}
