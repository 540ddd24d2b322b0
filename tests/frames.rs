//! Frames that both libraries write: the same bytes where the format fixes them, and each reads what the other wrote.

#![cfg(unix)]

mod common;

use std::ffi::c_int;
use std::fs;
use std::path::Path;

use blosc2::chunk;
use blosc2::format::consts::special;
use blosc2::format::frame_header::FrameParams;
use blosc2::frame::{Frame, FrameOptions};
use blosc2::io::memory::MallocBuf;
use common::Rng;
use common::temp::TempPath;
use common::theirs::{Api, Theirs, api, int};

/// The parameters that the C library writes for its defaults with typesize 4.
fn params() -> FrameParams {
    FrameParams {
        typesize: 4,
        clevel: 5,
        splitmode: 4,
        filters: [0, 0, 0, 0, 0, 1],
        nthreads_c: 1,
        nthreads_d: 1,
        ..FrameParams::default()
    }
}

fn compress(data: &[u8]) -> Vec<u8> {
    let params = chunk::CParams { typesize: 4, ..chunk::CParams::default() };
    let mut dest = vec![0; data.len() + 32];
    let n = chunk::compress(&params, data, &mut dest).unwrap();
    dest.truncate(n);
    dest
}

/// Data that compress somewhat, or not at all, or are zeros.
fn data(rng: &mut Rng, nbytes: usize) -> Vec<u8> {
    match rng.below(6) {
        0 => vec![0; nbytes],
        1 => (0..nbytes).map(|_| rng.below(256).to_le_bytes()[0]).collect(),
        _ => {
            let start = rng.below(1000);
            (0..nbytes / 4).flat_map(|i| u32::try_from(start + i * 3).unwrap().to_le_bytes()).collect()
        }
    }
}

fn decompress(chunk: &[u8]) -> Vec<u8> {
    let nbytes = u32::from_le_bytes(chunk[4..8].try_into().unwrap());
    let mut dest = vec![0; usize::try_from(nbytes).unwrap()];
    chunk::decompress(chunk, &mut dest).unwrap();
    dest
}

/// All data of a frame, chunk by chunk, as each of the libraries reads them.
fn check_both(api: &Api, path: &Path, model: &[Vec<u8>], when: &str) {
    let ours = Frame::open(path, 0, &FrameOptions::default()).unwrap_or_else(|e| panic!("{when}: {e}"));
    let theirs = Theirs::open(api, path, false);
    assert_eq!(ours.nchunks(), model.len(), "{when}");
    assert_eq!(theirs.nchunks(), model.len(), "{when}");
    for (i, expected) in model.iter().enumerate() {
        let a = ours.chunk(i).unwrap_or_else(|e| panic!("{when}: chunk {i}: {e}"));
        let b = theirs.chunk(i, false).unwrap_or_else(|e| panic!("{when}: chunk {i}: code {e}"));
        assert!(decompress(&a) == *expected, "{when}: chunk {i}");
        assert!(*a == *b, "{when}: chunk {i} differs between the libraries");
        let (mut a, mut b) = (ours.lazy_chunk(i).unwrap().into_owned(), theirs.chunk(i, true).unwrap());
        if a[2] & 2 != 0 {
            // The C library leaves the block table of raw chunks uninitialised.
            let table = 32..32 + 4 * (a.len() - 44) / 8;
            a[table.clone()].fill(0);
            b[table].fill(0);
        }
        assert!(a == b, "{when}: lazy chunk {i} differs");
    }
}

#[test]
fn appended_inserted_and_reordered_chunks_give_the_same_bytes() {
    let Some(api) = api() else { return };
    let mut rng = Rng(1);
    for round in 0..40 {
        let mut ours = Frame::create_in_memory(params()).unwrap();
        let theirs = Theirs::create(&api, None, true, false);
        assert_eq!(ours.buffer().unwrap()[..], theirs.frame()[..]);
        if round % 3 == 0 {
            ours.meta_add(b"m1", b"hello").unwrap();
            ours.meta_add(b"me2", b"xy").unwrap();
            assert_eq!((theirs.meta_add("m1", b"hello"), theirs.meta_add("me2", b"xy")), (0, 1));
        }
        for step in 0..60 {
            let what = format!("round {round} step {step}");
            match rng.below(8) {
                0 if step > 2 => {
                    let at = rng.below(ours.nchunks() + 1);
                    let chunk = compress(&data(&mut rng, 4000));
                    assert_eq!(int(ours.insert(at, &chunk).unwrap()), theirs.insert(at, &chunk));
                }
                1 if step > 2 => {
                    let mut order: Vec<usize> = (0..ours.nchunks()).collect();
                    let by = rng.below(order.len());
                    order.rotate_right(by);
                    ours.reorder(&order).unwrap();
                    let order: Vec<i64> = order.into_iter().map(int).collect();
                    // SAFETY: one number per chunk.
                    assert_eq!(unsafe { (api.reorder)(theirs.raw, order.as_ptr()) }, 0);
                }
                2 if step % 7 == 0 => {
                    let name = format!("v{step}");
                    let content = vec![7; rng.below(100)];
                    let chunk = {
                        let mut dest = vec![0; content.len() + 32];
                        let n = chunk::compress(&chunk::CParams::default(), &content, &mut dest).unwrap();
                        dest.truncate(n);
                        dest
                    };
                    ours.vlmeta_add(name.as_bytes(), chunk).unwrap();
                    assert!(theirs.vlmeta_add(&name, &content) >= 0);
                }
                _ => {
                    let chunk = compress(&data(&mut rng, 4000));
                    assert_eq!(int(ours.append(&chunk).unwrap()), theirs.append(&chunk));
                }
            }
            assert_same(&ours.buffer().unwrap()[..], &theirs.frame(), &what);
        }
    }
}

/// The same bytes everywhere but in the index, which both compress as they like; its entries are the same. An index
/// that is too short to be compressed has the same bytes as well.
fn assert_same(ours: &[u8], theirs: &[u8], what: &str) {
    if ours == theirs {
        return;
    }
    let a = Frame::from_buffer(MallocBuf::copy_of(ours).unwrap()).unwrap();
    let b = Frame::from_buffer(MallocBuf::copy_of(theirs).unwrap()).unwrap();
    assert!(a.nchunks() > 4, "{what}: small frames are equal");
    assert_eq!(a.offsets().unwrap(), b.offsets().unwrap(), "{what}: entries of the index");
    let header = a.header();
    let payload = header.header_len + usize::try_from(header.cbytes).unwrap();
    assert_eq!(ours[..0x10], theirs[..0x10], "{what}: before the frame length");
    assert!(ours[0x18..payload] == theirs[0x18..payload], "{what}: header or chunks");
    let trailers = [ours, theirs].map(|bytes| &bytes[bytes.len() - a.trailer_len()..]);
    assert!(trailers[0] == trailers[1], "{what}: trailers");
}

#[test]
fn large_indexes_give_the_same_bytes() {
    let Some(api) = api() else { return };
    let mut rng = Rng(2);
    let mut ours = Frame::create_in_memory(params()).unwrap();
    let theirs = Theirs::create(&api, None, true, false);
    for i in 0..2000 {
        let chunk = compress(&data(&mut rng, 256));
        ours.append(&chunk).unwrap();
        theirs.append(&chunk);
        if i % 50 == 0 {
            assert_same(&ours.buffer().unwrap()[..], &theirs.frame(), &format!("{i} chunks"));
        }
    }
    // A single deletion leaves the same hole and the same index.
    ours.delete(1000).unwrap();
    assert_eq!(theirs.delete(1000), 1999);
    assert_same(&ours.buffer().unwrap()[..], &theirs.frame(), "after deleting");
}

#[test]
fn frames_filled_with_a_special_value_give_the_same_bytes() {
    let Some(api) = api() else { return };
    for (kind, nitems, chunksize) in
        [(special::ZERO, 2500u64, 4000), (special::NAN, 2550, 400), (special::UNINIT, 7, 400)]
    {
        let mut ours = Frame::create_in_memory(params()).unwrap();
        let theirs = Theirs::create(&api, None, true, false);
        // SAFETY: a live super-chunk.
        let n = unsafe { (api.fill)(theirs.raw, nitems.try_into().unwrap(), c_int::from(kind), chunksize) };
        assert_eq!(int(ours.fill_special(kind, nitems * 4, chunksize, chunksize).unwrap()), n);
        assert!(ours.buffer().unwrap()[..] == theirs.frame()[..], "kind {kind}");
        for i in 0..ours.nchunks() {
            assert_eq!(*ours.chunk(i).unwrap(), *theirs.chunk(i, false).unwrap());
        }
    }
}

#[test]
fn sparse_frames_have_the_same_files() {
    let Some(api) = api() else { return };
    let (a, b) = (TempPath::new("sparse-a"), TempPath::new("sparse-b"));
    let mut ours = Frame::create_dir(&a.0, params(), &FrameOptions::default()).unwrap();
    let theirs = Theirs::create(&api, Some(&b.0), false, false);
    let mut rng = Rng(3);
    for i in 0..30 {
        let chunk = compress(&data(&mut rng, 4000));
        if i % 3 == 0 {
            ours.insert(i / 2, &chunk).unwrap();
            theirs.insert(i / 2, &chunk);
        } else {
            ours.append(&chunk).unwrap();
            theirs.append(&chunk);
        }
    }
    let list = |dir: &Path| {
        let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    };
    let (our_files, their_files) = (list(&a.0), list(&b.0));
    assert!(our_files.len() > 1);
    assert_eq!(our_files.len(), their_files.len());
    for (ours, theirs) in our_files.into_iter().zip(their_files) {
        assert_eq!(ours.0, theirs.0);
        // The index file is compared in memory, see `assert_same`; here by its entries.
        assert!(ours.1 == theirs.1 || ours.0 == "chunks.b2frame", "{}", ours.0);
    }
    let theirs = Frame::open(&b.0, 0, &FrameOptions::default()).unwrap();
    assert_eq!(ours.offsets().unwrap(), theirs.offsets().unwrap());
    assert_eq!(ours.cbytes(), theirs.cbytes());
}

#[test]
fn both_libraries_edit_one_frame_in_turn() {
    let Some(api) = api() else { return };
    for (contiguous, seed) in [(true, 4), (false, 5), (true, 6), (false, 7)] {
        let path = TempPath::new(&format!("turns-{seed}"));
        drop(Theirs::create(&api, Some(&path.0), contiguous, false));
        let mut rng = Rng(seed);
        let mut model: Vec<Vec<u8>> = Vec::new();
        for step in 0..150 {
            let at = rng.below(model.len() + 1);
            let nbytes = if step < 80 { 4000 } else { 4 * (20 + rng.below(900)) };
            let new = data(&mut rng, nbytes);
            let chunk = compress(&new);
            // The C library loses special chunks when the chunk size becomes variable, so that is left to ours.
            let becomes_variable = step >= 78;
            let ours_turn = becomes_variable && step < 82 || rng.below(2) == 0;
            let is_zero = new.iter().all(|&b| b == 0);
            if !ours_turn && becomes_variable && is_zero {
                continue;
            }
            let action = rng.below(5);
            let done = if ours_turn {
                let mut frame = Frame::open(&path.0, 0, &FrameOptions::default()).unwrap();
                match action {
                    0 if at < model.len() => frame.update(at, &chunk).is_ok(),
                    1 if at < model.len() => frame.delete(at).is_ok(),
                    2 => frame.insert(at, &chunk).is_ok(),
                    _ => frame.append(&chunk).is_ok(),
                }
            } else {
                let frame = Theirs::open(&api, &path.0, false);
                let n = match action {
                    0 if at < model.len() => frame.update(at, &chunk),
                    1 if at < model.len() => frame.delete(at),
                    2 => frame.insert(at, &chunk),
                    _ => frame.append(&chunk),
                };
                n >= 0
            };
            let when = format!("seed {seed} step {step} action {action} ours {ours_turn}");
            assert!(done, "{when}");
            match action {
                0 if at < model.len() => model[at] = new,
                1 if at < model.len() => drop(model.remove(at)),
                2 => model.insert(at, new),
                _ => model.push(new),
            }
            check_both(&api, &path.0, &model, &when);
        }
    }
}

#[test]
fn metalayers_are_read_by_both() {
    let Some(api) = api() else { return };
    let path = TempPath::new("meta");
    let mut ours = Frame::create_file(&path.0, params(), &FrameOptions::default()).unwrap();
    ours.meta_add(b"m1", b"hello").unwrap();
    let theirs = Theirs::open(&api, &path.0, false);
    assert_eq!(theirs.meta_add("m2", b"world"), 1);
    ours.append(&compress(&[1; 400])).unwrap();
    // SAFETY: a live super-chunk.
    unsafe { assert_eq!((api.refresh)(theirs.raw), 1) };
    // The C library does not refresh the chunk size, and would write the old one.
    drop(theirs);
    let theirs = Theirs::open(&api, &path.0, false);
    assert_eq!(theirs.vlmeta_add("v1", b"content"), 0);
    // SAFETY: as above.
    unsafe { assert_eq!((api.meta_update)(theirs.raw, c"m1".as_ptr(), b"HE".as_ptr(), 2), 0) };
    assert_eq!(ours.vlmeta_find(b"v1").unwrap(), 0);
    assert_eq!(decompress(&ours.vlmetalayers()[0].content), b"content");
    assert_eq!(ours.metalayers()[0].content, b"HEllo");
    assert_eq!(ours.metalayers()[1].content, b"world");
    // SAFETY: as above.
    unsafe { assert_eq!((api.vlmeta_delete)(theirs.raw, c"v1".as_ptr()), 0) };
    assert!(ours.vlmeta_find(b"v1").is_err());
}

#[test]
fn handles_of_both_libraries_lock_each_other_out() {
    if api().is_none() {
        return;
    }
    for contiguous in [true, false] {
        let path = TempPath::new(&format!("locks-{contiguous}"));
        drop(Theirs::create(&api().unwrap(), Some(&path.0), contiguous, true));
        let options = || FrameOptions { locking: true, ..FrameOptions::default() };
        std::thread::scope(|scope| {
            for t in 0..2u8 {
                let path = &path.0;
                scope.spawn(move || {
                    let mut frame = Frame::open(path, 0, &options()).unwrap();
                    for i in 0..40 {
                        frame.insert(0, &compress(&[1 + t * 40 + i; 400])).unwrap();
                        let n = frame.nchunks();
                        decompress(&frame.chunk(n - 1).unwrap());
                    }
                });
                scope.spawn(move || {
                    let api = api().unwrap();
                    let frame = Theirs::open(&api, path, true);
                    for i in 0..40 {
                        assert!(frame.insert(0, &compress(&[101 + t * 40 + i; 400])) > 0);
                        let n = frame.nchunks();
                        decompress(&frame.chunk(n - 1, false).unwrap());
                    }
                });
            }
        });
        let frame = Frame::open(&path.0, 0, &options()).unwrap();
        let mut seeds: Vec<u8> = (0..160).map(|i| decompress(&frame.chunk(i).unwrap())[0]).collect();
        seeds.sort_unstable();
        assert_eq!(seeds, (1..=80).chain(101..=180).collect::<Vec<u8>>());
        let lock = if contiguous {
            path.0.with_file_name(format!("{}.b2lock", path.0.file_name().unwrap().to_str().unwrap()))
        } else {
            path.0.join(".b2lock")
        };
        assert_eq!(fs::read(lock).unwrap(), [[0; 8], 160u64.to_ne_bytes()].concat());
    }
}

#[test]
fn buffers_of_the_c_library_are_read_in_place() {
    let Some(api) = api() else { return };
    let theirs = Theirs::create(&api, None, true, false);
    for i in 0..20 {
        theirs.append(&compress(&[i; 4000]));
    }
    theirs.delete(3);
    theirs.update(5, &compress(&[99; 4000]));
    let mut ours = Frame::from_buffer(MallocBuf::copy_of(&theirs.frame()).unwrap()).unwrap();
    for i in 0..19 {
        assert_eq!(*ours.chunk(i).unwrap(), *theirs.chunk(i, false).unwrap());
    }
    ours.append(&compress(&[77; 4000])).unwrap();
    assert_eq!(decompress(&ours.chunk(19).unwrap()), [77; 4000]);
}
