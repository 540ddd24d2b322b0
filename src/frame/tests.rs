//! Frames of every kind against a plain list of chunks, and with every system call failing in turn.

use super::*;
use crate::chunk::CParams;
use crate::chunk::source::BlockSource;
use crate::error::{Error, ErrorKind};
use crate::io::mmap::{MmapIo, MmapMode};
use crate::io::{Features, IoFile, OpenMode};
use crate::testing::{Random, TempPath};
use std::fs;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

mod damaged;
mod durable;
pub(crate) mod faults;
mod followed;
mod full;
mod holes;
mod kept;
mod large_trailers;
mod numbers;
mod read_faults;
mod sharing;

pub(super) fn params() -> FrameParams {
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

/// A stored chunk of `nbytes` bytes that depend on `seed`.
pub(crate) fn chunk(nbytes: usize, seed: u8) -> Vec<u8> {
    let mut chunk = vec![5, 1, 7, 4];
    for size in [nbytes, nbytes.max(1), nbytes + 32] {
        chunk.extend_from_slice(&i32::try_from(size).unwrap().to_le_bytes());
    }
    chunk.resize(32, 0);
    chunk.extend((0..nbytes).map(|i| seed.wrapping_mul(31).wrapping_add(u8::try_from(i % 251).unwrap())));
    chunk
}

/// A chunk that takes `more` bytes than it needs.
fn longer(nbytes: usize, seed: u8, more: usize) -> Vec<u8> {
    lengthened(chunk(nbytes, seed), seed, more)
}

/// `chunk` with `more` bytes than it needs.
fn lengthened(mut chunk: Vec<u8>, seed: u8, more: usize) -> Vec<u8> {
    chunk.resize(chunk.len() + more, seed);
    let cbytes = i32::try_from(chunk.len()).unwrap();
    chunk[12..16].copy_from_slice(&cbytes.to_le_bytes());
    chunk
}

/// A chunk of `nbytes` bytes that takes 4 and a header.
fn short(nbytes: i32, seed: u8) -> Vec<u8> {
    let mut chunk = chunk(4, seed);
    chunk[4..8].copy_from_slice(&nbytes.to_le_bytes());
    chunk
}

pub(super) fn zeros(nbytes: usize) -> Vec<u8> {
    special::chunk(special_kind(), nbytes, 4, 0).unwrap().to_vec()
}

fn special_kind() -> u8 {
    crate::format::consts::special::ZERO
}

pub(super) fn contents(frame: &Frame) -> Vec<Vec<u8>> {
    (0..frame.nchunks()).map(|i| frame.chunk(i).unwrap().into_owned()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Memory,
    File,
    Dir,
    Mapped,
}

fn create(kind: Kind, path: &Path) -> Frame {
    let options = FrameOptions::default();
    match kind {
        Kind::Memory => Frame::create_in_memory(params()).unwrap(),
        Kind::File => Frame::create_file(path, params(), &options).unwrap(),
        Kind::Dir => Frame::create_dir(path, params(), &options).unwrap(),
        Kind::Mapped => {
            // SAFETY: one frame at a time uses the file.
            let io = Arc::new(unsafe { MmapIo::new(MmapMode::Create, 1) });
            Frame::create_file(path, params(), &FrameOptions { io, ..options }).unwrap()
        }
    }
}

/// The frame as a new handle sees it.
fn reopen(frame: &Frame) -> Frame {
    match frame.path() {
        None => Frame::from_buffer(MallocBuf::copy_of(frame.buffer().unwrap()).unwrap()).unwrap(),
        Some(path) => Frame::open(path, 0, &FrameOptions::default()).unwrap(),
    }
}

#[test]
fn chunks_replaced_together_take_no_files_from_each_other() {
    let path = TempPath::new("together");
    let mut frame = create(Kind::Dir, &path);
    // So short that the numbers of new files may not just count on.
    for seed in 0..6 {
        frame.append(&chunk(4, seed)).unwrap();
    }
    for round in 1..5 {
        let new: Vec<Vec<u8>> = (0..6).map(|i| chunk(4, 10 * round + i)).collect();
        let changes: Vec<(usize, &[u8])> = new.iter().map(Vec::as_slice).enumerate().collect();
        frame.update_all(&changes).unwrap();
        assert_eq!(contents(&frame), new);
        assert_eq!(contents(&reopen(&frame)), new);
    }
}

#[test]
fn chunks_that_become_special_leave_their_files_to_nobody_else() {
    let path = TempPath::new("special");
    let mut frame = create(Kind::Dir, &path);
    let old: Vec<Vec<u8>> = (0..4).map(|seed| chunk(400, seed)).collect();
    frame.append_all(&old.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    // The new chunks come first, so that the special ones would leave the largest numbers to them.
    let new = vec![chunk(400, 10), chunk(400, 11), zeros(400), zeros(400)];
    let changes: Vec<(usize, &[u8])> = new.iter().map(Vec::as_slice).enumerate().collect();
    frame.update_all(&changes).unwrap();
    assert_eq!(contents(&frame), new);
    assert_eq!(contents(&reopen(&frame)), new);
}

#[test]
fn an_empty_frame_has_132_bytes_on_every_back_end() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("empty");
        let frame = create(kind, &path);
        assert_eq!((frame.frame_len(), frame.nchunks(), frame.chunksize()), (132, 0, -1), "{kind:?}");
        assert_eq!(reopen(&frame).nchunks(), 0);
    }
}

#[test]
fn a_chunk_gives_the_documented_frame() {
    let mut frame = create(Kind::Memory, Path::new(""));
    let mut chunk = vec![5, 1, 7, 4, 16, 0, 0, 0, 16, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    chunk.resize(32, 0);
    chunk.extend([0i32, 1, 2, 3].map(i32::to_le_bytes).concat());
    assert_eq!(frame.append(&chunk).unwrap(), 1);
    let bytes = frame.buffer().unwrap();
    assert_eq!(bytes.len(), 220);
    assert_eq!(bytes[0x10..0x18], [0, 0, 0, 0, 0, 0, 0, 0xdc]);
    assert_eq!(bytes[0x1e..0x2f], [0, 0, 0, 0, 0, 0, 0, 16, 0xd3, 0, 0, 0, 0, 0, 0, 0, 0x30]);
    assert_eq!(bytes[0x39..0x3e], [0xd2, 0, 0, 0, 16]);
    assert_eq!(bytes[0x61..0x91], chunk);
    assert_eq!(bytes[0x91..0xa1], [5, 1, 7, 8, 8, 0, 0, 0, 8, 0, 0, 0, 0x28, 0, 0, 0]);
    assert_eq!(bytes[0xb9..0xbb], [0x94, 1]);
}

#[test]
fn filling_with_a_special_value_needs_172_bytes() {
    let mut frame = create(Kind::Memory, Path::new(""));
    assert_eq!(frame.fill_special(special_kind(), 10_000, 4000, 4000).unwrap(), 3);
    let bytes = frame.buffer().unwrap();
    assert_eq!(bytes.len(), 172);
    assert_eq!(bytes[0x61..0x71], [5, 1, 5, 8, 0x18, 0, 0, 0, 0x18, 0, 0, 0, 0x28, 0, 0, 0]);
    assert_eq!(bytes[0x80], 0x30);
    let frame = reopen(&frame);
    assert_eq!(frame.chunk_info(2).unwrap().nbytes, 2000);
    assert_eq!(frame.chunk(0).unwrap()[..8], [5, 1, 5, 4, 0xa0, 0xf, 0, 0]);
}

#[test]
fn random_edits_match_a_list_of_chunks() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("edits");
        let mut frame = create(kind, &path);
        let mut model: Vec<Vec<u8>> = Vec::new();
        let mut random = Random::new(7);
        for step in 0..400 {
            let at = random.below(model.len() + 1);
            // Now and then a chunk of zeros; sizes are fixed at first and vary later.
            let nbytes = if step < 150 { 64 } else { 4 * (1 + random.below(200)) };
            let new = if random.below(8) == 0 { zeros(nbytes) } else { padded(nbytes, step) };
            match random.below(6) {
                0 | 1 => {
                    frame.append(&new).unwrap();
                    model.push(new);
                }
                2 => {
                    frame.insert(at, &new).unwrap();
                    model.insert(at, new);
                }
                3 if at < model.len() => {
                    frame.update(at, &new).unwrap();
                    model[at] = new;
                }
                4 if at < model.len() => {
                    assert_eq!(frame.delete(at).unwrap(), model.len() - 1);
                    model.remove(at);
                }
                5 if !model.is_empty() => {
                    let mut order: Vec<usize> = (0..model.len()).collect();
                    let by = at % model.len();
                    order.rotate_left(by);
                    frame.reorder(&order).unwrap();
                    model.rotate_left(by);
                }
                _ => continue,
            }
            check(&frame, &model, &format!("{kind:?} step {step}"));
            if step % 16 == 0 {
                check(&reopen(&frame), &model, &format!("{kind:?} reopened after step {step}"));
            }
        }
        let live: usize = model.iter().map(Vec::len).sum();
        if kind != Kind::Dir {
            assert!(frame.frame_len() < 2 * live as u64 + 4096, "{} for {live}", frame.frame_len());
        }
        if kind == Kind::Dir {
            let files = fs::read_dir(&*path).unwrap().map(|file| file.unwrap());
            let (spare, files): (Vec<_>, Vec<_>) =
                files.partition(|file| file.path().extension().unwrap() == "b2spare");
            let stored = frame.offsets().unwrap().iter().filter(|&&offset| offset >= 0).count();
            assert_eq!(files.len(), stored + 1);
            let spare: u64 = spare.iter().map(|file| file.metadata().unwrap().len()).sum();
            assert!(spare > 0 && spare <= frame.cbytes(), "{spare} for {live}");
        }
        while !model.is_empty() {
            model.pop();
            frame.delete(model.len()).unwrap();
        }
        assert_eq!((frame.nbytes(), frame.cbytes(), frame.frame_len()), (0, 0, 132), "{kind:?}");
    }
}

fn padded(nbytes: usize, step: usize) -> Vec<u8> {
    chunk(nbytes, u8::try_from(step % 256).unwrap())
}

/// Compares by content: zeros may come back in another form.
fn check(frame: &Frame, model: &[Vec<u8>], when: &str) {
    assert_eq!(frame.nchunks(), model.len(), "{when}");
    let nbytes = |chunk: &[u8]| sizes::ChunkInfo::read(chunk).unwrap().nbytes;
    let total: i64 = model.iter().map(|chunk| i64::from(nbytes(chunk))).sum();
    assert_eq!(frame.nbytes(), u64::try_from(total).unwrap(), "{when}");
    for (i, expected) in model.iter().enumerate() {
        let got = frame.chunk(i).unwrap_or_else(|e| panic!("{when}: chunk {i}: {e}"));
        if sizes::ChunkInfo::read(expected).unwrap().is_index_only() {
            assert_eq!(nbytes(&got), nbytes(expected), "{when}: chunk {i}");
            assert!(got.len() <= 40, "{when}: chunk {i}");
        } else {
            assert!(*got == **expected, "{when}: chunk {i} differs");
        }
    }
}

#[test]
fn deleting_nine_of_ten_chunks_gives_the_room_back() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        for forwards in [true, false] {
            let path = TempPath::new("nine");
            let mut frame = create(kind, &path);
            for i in 0..10 {
                frame.append(&chunk(4000, i)).unwrap();
            }
            for left in (1..10).rev() {
                frame.delete(if forwards { 0 } else { left }).unwrap();
            }
            assert_eq!(frame.cbytes(), 4032, "{kind:?}");
            assert_eq!(*frame.chunk(0).unwrap(), chunk(4000, if forwards { 9 } else { 0 }));
            assert!(frame.frame_len() <= 2 * 4032, "{kind:?}: {}", frame.frame_len());
            assert_eq!(reopen(&frame).cbytes(), 4032, "{kind:?}");
        }
    }
}

#[test]
fn holes_of_an_opened_frame_are_found() {
    let path = TempPath::new("holes");
    let mut frame = create(Kind::File, &path);
    for i in 0..40 {
        frame.append(&chunk(1000, i)).unwrap();
    }
    for _ in 0..12 {
        frame.delete(0).unwrap();
    }
    assert_eq!((frame.cbytes(), frame.header().cbytes), (28 * 1032, 40 * 1032), "holes were closed");
    let len = frame.frame_len();
    let mut again = reopen(&frame);
    again.update(3, &chunk(1000, 50)).unwrap();
    assert!(again.frame_len() < len);
    assert_eq!(again.cbytes(), 28 * 1032);
    assert_eq!(
        (&*again.chunk(3).unwrap(), &*again.chunk(4).unwrap()),
        (&*chunk(1000, 50), &*chunk(1000, 16))
    );
}

#[test]
fn a_switch_to_variable_chunks_keeps_special_ones_readable() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir] {
        let path = TempPath::new("switch");
        let mut frame = create(kind, &path);
        frame.append(&zeros(400)).unwrap();
        frame.append(&chunk(200, 1)).unwrap();
        frame.append(&chunk(400, 2)).unwrap();
        assert_eq!(frame.chunksize(), 0);
        frame.append(&zeros(100)).unwrap();
        let frame = reopen(&frame);
        let sizes: Vec<i32> = (0..4).map(|i| frame.chunk_info(i).unwrap().nbytes).collect();
        assert_eq!(sizes, [400, 200, 400, 100], "{kind:?}");
        assert_eq!(frame.offsets().unwrap().iter().filter(|&&offset| offset < 0).count(), 0);
    }
}

#[test]
fn an_empty_chunk_does_not_become_the_first() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("empty-first");
        let mut frame = create(kind, &path);
        let model = vec![chunk(400, 1), chunk(0, 2), chunk(200, 3)];
        for chunk in &model {
            frame.append(chunk).unwrap();
        }
        assert_eq!(frame.delete(0).unwrap_err().kind(), ErrorKind::ChunkUpdate);
        assert_eq!(frame.reorder(&[1, 0, 2]).unwrap_err().kind(), ErrorKind::Failure);
        check(&frame, &model, "refused");
        frame.reorder(&[2, 1, 0]).unwrap();
        assert_eq!(frame.delete(1), Ok(2));
        assert_eq!(frame.delete(0), Ok(1));
    }
}

#[test]
fn metalayers_survive_edits_and_never_harm_a_filled_frame() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("meta");
        let mut frame = create(kind, &path);
        assert_eq!(frame.meta_add(b"m1", b"hello").unwrap(), 0);
        assert_eq!(frame.meta_add(b"", b"").unwrap(), 1);
        let code = |r: Result<usize>| r.unwrap_err().kind();
        assert_eq!(code(frame.meta_add(b"m1", b"x")), ErrorKind::InvalidParam);
        assert_eq!(code(frame.meta_add(&[b'n'; 32], b"x")), ErrorKind::InvalidParam);
        frame.append(&chunk(400, 1)).unwrap();
        assert_eq!(code(frame.meta_add(b"late", b"x")), ErrorKind::InvalidParam);
        assert_eq!(frame.meta_update(b"m1", b"HE").unwrap(), 0);
        assert_eq!(frame.meta_update(b"m1", b"too long").unwrap(), 0);
        assert_eq!(code(frame.meta_update(b"nope", b"")), ErrorKind::NotFound);
        assert_eq!(frame.vlmeta_add(b"v1", vec![1; 50]).unwrap(), 0);
        assert_eq!(frame.vlmeta_add(b"v2", vec![2; 60]).unwrap(), 1);
        assert_eq!(frame.vlmeta_update(b"v1", vec![3; 500]).unwrap(), 0);
        frame.append(&chunk(400, 2)).unwrap();
        assert_eq!(frame.vlmeta_delete(b"v2").unwrap(), 1);
        assert_eq!(frame.vlmeta_find(b"v2").unwrap_err().kind(), ErrorKind::NotFound);
        let again = reopen(&frame);
        assert_eq!(again.metalayers()[0].content, b"HEllo");
        assert_eq!(again.vlmetalayers()[0].content, vec![3; 500]);
        assert_eq!(contents(&again), [chunk(400, 1), chunk(400, 2)], "{kind:?}");
        for i in 1..16 {
            frame.vlmeta_add(format!("n{i}").as_bytes(), vec![0; 40]).unwrap();
        }
        assert_eq!(code(frame.vlmeta_add(b"one more", vec![0; 40])), ErrorKind::Failure);
        assert_eq!(reopen(&frame).vlmetalayers().len(), 16);
    }
}

#[test]
fn an_update_of_a_fixed_metalayer_writes_variable_ones_that_wait() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("owed");
        let mut frame = create(kind, &path);
        frame.meta_add(b"m", b"hello").unwrap();
        frame.append(&chunk(400, 1)).unwrap();
        let len = frame.frame_len();
        frame.meta_update(b"m", b"HELLO").unwrap();
        assert_eq!(frame.frame_len(), len, "nothing but the header is written");
        frame.vlmeta_add_later(b"v", vec![1; 50]).unwrap();
        frame.meta_update(b"m", b"again").unwrap();
        let again = reopen(&frame);
        assert_eq!(again.metalayers()[0].content, b"again", "{kind:?}");
        assert_eq!(again.vlmetalayers()[0].content, [1; 50], "{kind:?}");
    }
}

#[test]
fn frames_start_anywhere_in_a_file_and_never_overwrite_the_next_one() {
    let path = TempPath::new("offsets");
    fs::write(&*path, b"something before").unwrap();
    let mut frames = Vec::new();
    for seed in 0..3 {
        let mut frame = create(Kind::Memory, Path::new(""));
        frame.append(&chunk(400, seed)).unwrap();
        frames.push(frame.append_to_file(&path, &FrameOptions::default()).unwrap());
    }
    assert_eq!(frames[0], 16);
    for (seed, &at) in frames.iter().enumerate() {
        let mut frame = Frame::open(&path, at, &FrameOptions::default()).unwrap();
        assert_eq!(*frame.chunk(0).unwrap(), padded(400, seed));
        let last = seed == 2;
        assert_eq!(frame.append(&chunk(400, 9)).is_ok(), last);
    }
    for (seed, &at) in frames.iter().enumerate() {
        let frame = Frame::open(&path, at, &FrameOptions::default()).unwrap();
        assert_eq!(*frame.chunk(0).unwrap(), padded(400, seed));
    }
    assert!(Frame::open(&path, 1, &FrameOptions::default()).is_err());
    assert!(Frame::open(&path, u64::MAX, &FrameOptions::default()).is_err());
}

#[test]
fn chunks_are_read_into_memory_of_the_caller_once_their_length_is_known() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("into");
        let mut frame = create(kind, &path);
        // Around the length up to which chunks are read at once; the last is the shortest, whatever its neighbour
        // suggests.
        let chunks = [chunk(90_000, 1), chunk(super::read::AT_ONCE, 2), chunk(300, 3)];
        for chunk in &chunks {
            frame.append(chunk).unwrap();
        }
        for (i, expected) in chunks.iter().enumerate() {
            let mut asked = None;
            let got = frame.chunks().unwrap().get_into(i, |len, fill| {
                asked = Some(len);
                let mut room = vec![MaybeUninit::uninit(); len];
                fill(&mut room).map(|bytes| bytes.to_vec())
            });
            let held = matches!(kind, Kind::Memory | Kind::Mapped);
            match got.unwrap() {
                ChunkBytes::Held(bytes) => assert_eq!((bytes, held), (&expected[..], true), "{kind:?} {i}"),
                ChunkBytes::Made(bytes) => assert_eq!((&bytes, held), (expected, false), "{kind:?} {i}"),
            }
            assert_eq!(asked, (!held).then_some(expected.len()), "{kind:?} {i}");
            let full = Error::new(ErrorKind::MemoryAlloc, "no room");
            let refused = frame.chunks().unwrap().get_into(i, |_, _| Err::<Vec<u8>, _>(full)).err();
            assert_eq!(refused, (!held).then_some(full), "{kind:?} {i}");
        }
    }
}

#[test]
fn creating_refuses_what_exists() {
    let path = TempPath::new("exists");
    let options = FrameOptions::default();
    drop(Frame::create_file(&path, params(), &options).unwrap());
    assert!(Frame::create_file(&path, params(), &options).is_err());
    assert!(Frame::create_dir(&path, params(), &options).is_err());
}

#[test]
fn lazy_chunks_have_the_documented_layout_and_read_their_blocks() {
    for kind in [Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("lazy");
        let mut frame = create(kind, &path);
        frame.append(&zeros(400)).unwrap();
        let stored = chunk(400, 3);
        frame.append(&stored).unwrap();
        assert_eq!(*frame.lazy_chunk(0).unwrap(), *frame.chunk(0).unwrap());
        let lazy = frame.lazy_chunk_with_source(1).unwrap();
        let (at, number) = if kind == Kind::Dir { (0u64, 0u32) } else { (97, 1) };
        let mut expected = stored[..32].to_vec();
        expected[31] |= 8;
        expected.extend_from_slice(&[0; 4]);
        expected.extend_from_slice(&number.to_le_bytes());
        expected.extend_from_slice(&at.to_le_bytes());
        expected.extend_from_slice(&400u32.to_le_bytes());
        assert_eq!(*lazy.bytes, *expected, "{kind:?}");
        let source = lazy.source.unwrap();
        let mut block = [0; 400];
        source.read_at(32, &mut block).unwrap();
        assert_eq!(block, stored[32..]);
        assert_eq!(source.read_at(33, &mut block).unwrap_err().kind(), ErrorKind::ReadBuffer);
    }
}

#[test]
fn sparse_frames_notice_missing_and_short_chunk_files() {
    let path = TempPath::new("sparse");
    let mut frame = create(Kind::Dir, &path);
    for i in 0..3 {
        frame.append(&chunk(400, i)).unwrap();
    }
    fs::write(path.join("00000001.chunk"), &chunk(400, 1)[..100]).unwrap();
    fs::remove_file(path.join("00000002.chunk")).unwrap();
    let mut frame = reopen(&frame);
    assert!(frame.chunk(0).is_ok());
    assert_eq!(frame.chunk(1).unwrap_err().kind(), ErrorKind::FileRead);
    assert_eq!(frame.chunk(2).unwrap_err().kind(), ErrorKind::FileOpen);
    assert_eq!(frame.delete(2).unwrap_err().kind(), ErrorKind::Failure);
    fs::write(path.join("00000000.chunk"), b"short").unwrap();
    assert!(Frame::open(&path, 0, &FrameOptions::default()).is_err());
}

#[test]
fn every_damaged_byte_of_a_frame_gives_data_or_an_error() {
    let mut frame = create(Kind::Memory, Path::new(""));
    frame.meta_add(b"m1", b"hello").unwrap();
    frame.append(&chunk(64, 1)).unwrap();
    frame.append(&zeros(64)).unwrap();
    frame.append(&chunk(20, 2)).unwrap();
    frame.vlmeta_add(b"v1", chunk(8, 3)).unwrap();
    let good = frame.buffer().unwrap().to_vec();
    let options = FrameOptions::default();
    let path = TempPath::new("damaged");
    let mut opened = 0;
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, good[at] ^ 1, good[at].wrapping_add(1)] {
            let mut bad = good.clone();
            bad[at] = value;
            let memory = Frame::from_buffer(MallocBuf::copy_of(&bad).unwrap());
            fs::write(&*path, &bad).unwrap();
            let file = Frame::open(&path, 0, &options);
            for frame in [memory, file].into_iter().flatten() {
                opened += 1;
                for i in 0..frame.nchunks().min(100) {
                    let _ = frame.chunk(i);
                    let _ = frame.lazy_chunk(i);
                }
                let mut frame = frame;
                let _ = frame.update(0, &chunk(64, 9));
                let _ = frame.delete(1);
                let _ = frame.append(&chunk(64, 9));
                assert!(frame.frame_len() < 10_000);
            }
            if fs::metadata(&*path).is_ok_and(|meta| meta.len() > 20_000) {
                panic!("file grew after damage at {at}");
            }
        }
    }
    assert!(opened > 1000);
    for cut in 0..good.len() {
        let buffer = MallocBuf::copy_of(&good[..cut]).unwrap();
        assert!(Frame::from_buffer(buffer).is_err());
        fs::write(&*path, &good[..cut]).unwrap();
        assert!(Frame::open(&path, 0, &options).is_err());
    }
}

#[test]
fn an_index_that_expands_from_nothing_is_kept_compact_or_refused() {
    let mut frame = create(Kind::Memory, Path::new(""));
    let nchunks = 200_000_000;
    frame.fill_special(special_kind(), nchunks, 1, 1).unwrap();
    assert_eq!(frame.buffer().unwrap().len(), 172);
    let frame = reopen(&frame);
    assert_eq!(frame.nchunks() as u64, nchunks);
    assert_eq!(frame.chunk_info(199_999_999).unwrap().nbytes, 1);
}

#[test]
fn handles_beyond_the_limit_still_read() {
    let path = TempPath::new("many");
    let mut frame = create(Kind::File, &path);
    frame.append(&chunk(400, 1)).unwrap();
    let handles: Vec<Frame> = (0..200).map(|_| reopen(&frame)).collect();
    for handle in &handles {
        assert_eq!(*handle.chunk(0).unwrap(), chunk(400, 1));
    }
}

/// A frame as 2.0.0-beta.5 wrote it: metalayer, two stored chunks, index, user metadata in the trailer.
fn beta_frame() -> Vec<u8> {
    let raw = |version: u8, data: &[u8], typesize: u8| {
        let mut chunk = vec![version, 1, 7, typesize];
        let n = u32::try_from(data.len()).unwrap();
        for size in [n, n, n + 32] {
            chunk.extend_from_slice(&size.to_le_bytes());
        }
        chunk.resize(32, 0);
        chunk[21] = 1;
        chunk.extend_from_slice(data);
        chunk
    };
    #[rustfmt::skip]
    let mut bytes = vec![
        0x9d, 0xa8, 0x62, 0x32, 0x66, 0x72, 0x61, 0x6d, 0x65, 0x00, 0xd2, 0x00, 0x00, 0x00, 0x6e, 0xcf,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x60, 0xa4, 0x21, 0x00, 0x50, 0x00, 0xd3, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0xd3, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0xd2,
        0x00, 0x00, 0x00, 0x04, 0xd2, 0x00, 0x00, 0x00, 0x20, 0xd1, 0x00, 0x01, 0xd1, 0x00, 0x01, 0xc2,
        0xd8, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x93, 0xcd, 0x00, 0x0f, 0xde, 0x00, 0x01, 0xa2, 0x6d, 0x31, 0xd2, 0x00, 0x00, 0x00,
        0x64, 0xdc, 0x00, 0x01, 0xc6, 0x00, 0x00, 0x00, 0x05, 0x68, 0x65, 0x6c, 0x6c, 0x6f,
    ];
    for seed in [1, 2] {
        bytes.extend(raw(4, &[seed; 32], 4));
    }
    bytes.extend(raw(4, &[0u64, 64].map(u64::to_le_bytes).concat(), 8));
    bytes.extend([0x94, 1, 0xc6, 0, 0, 0, 0x24]);
    bytes.extend(raw(4, b"user", 1));
    bytes.extend([0xce, 0, 0, 0, 0x42, 0xd8, 0]);
    bytes.resize(bytes.len() + 16, 0);
    bytes
}

#[test]
fn frames_of_the_beta_releases_are_read_but_not_changed() {
    let bytes = beta_frame();
    assert_eq!(bytes.len(), 0x160);
    let path = TempPath::new("beta");
    fs::write(&*path, &bytes).unwrap();
    let memory = Frame::from_buffer(MallocBuf::copy_of(&bytes).unwrap()).unwrap();
    for mut frame in [memory, Frame::open(&path, 0, &FrameOptions::default()).unwrap()] {
        assert_eq!((frame.nchunks(), frame.chunksize()), (2, 32));
        assert_eq!(frame.chunk(1).unwrap()[32..], [2; 32]);
        assert_eq!(frame.metalayers()[0].content, b"hello");
        assert_eq!(frame.vlmetalayers()[0].name, b"usermeta");
        assert_eq!(frame.vlmetalayers()[0].content[32..], *b"user");
        assert_eq!(frame.append(&chunk(32, 3)).unwrap_err().kind(), ErrorKind::ChunkAppend);
    }
    assert_eq!(fs::read(&*path).unwrap(), bytes);
}

#[test]
fn frames_of_beta_1_have_no_trailer() {
    let full = beta_frame();
    // No metalayers: a header of 64 bytes, then chunks and index.
    let mut bytes = full[..64].to_vec();
    bytes[0] = 0x9b;
    bytes[0x19] = 0x24;
    bytes.extend_from_slice(&full[0x6e..0x6e + 128 + 48]);
    let len = u64::try_from(bytes.len()).unwrap();
    bytes[0x0b..0x0f].copy_from_slice(&64u32.to_be_bytes());
    bytes[0x10..0x18].copy_from_slice(&len.to_be_bytes());
    let frame = Frame::from_buffer(MallocBuf::copy_of(&bytes).unwrap()).unwrap();
    assert_eq!(frame.chunk(1).unwrap()[32..], [2; 32]);
    assert!(frame.metalayers().is_empty() && frame.vlmetalayers().is_empty());
}

#[test]
fn narrow_index_entries_of_early_frames_are_read() {
    for width in [2usize, 4] {
        let full = beta_frame();
        let mut bytes = full[..0x6e + 128].to_vec();
        let entries = [0u64, 64].map(|entry| entry.to_le_bytes()[..width].to_vec()).concat();
        let mut index = vec![4, 1, 7, u8::try_from(width).unwrap()];
        let n = u32::try_from(entries.len()).unwrap();
        for size in [n, n, n + 32] {
            index.extend_from_slice(&size.to_le_bytes());
        }
        index.resize(32, 0);
        index.extend(entries);
        bytes.extend(index);
        bytes.extend_from_slice(&full[full.len() - 0x42..]);
        let len = u64::try_from(bytes.len()).unwrap();
        bytes[0x10..0x18].copy_from_slice(&len.to_be_bytes());
        let frame = Frame::from_buffer(MallocBuf::copy_of(&bytes).unwrap()).unwrap();
        assert_eq!(frame.chunk(1).unwrap()[32..], [2; 32], "entries of {width} bytes");
    }
}

/// Counts the calls that reach the system through it.
struct CountingIo(AtomicUsize);

struct CountingFile(Arc<dyn IoFile>, &'static AtomicUsize);

impl Io for &'static CountingIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(CountingFile(FileIo.open(path, mode)?, &self.0)))
    }

    fn features(&self) -> Features {
        FileIo.features()
    }
}

impl IoFile for CountingFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.read_at(position, buf)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.write_at(position, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.size()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.truncate(len)
    }

    fn id(&self) -> Option<crate::io::FileId> {
        self.0.id()
    }
}

#[test]
fn the_number_of_calls_does_not_depend_on_the_number_of_chunks() {
    let count = |nchunks: usize| {
        let path = TempPath::new("count");
        let mut frame = create(Kind::File, &path);
        let new = chunk(64, 1);
        frame.append_all(&vec![&new[..]; nchunks]).unwrap();
        let io: &'static CountingIo = Box::leak(Box::new(CountingIo(AtomicUsize::new(0))));
        let options = FrameOptions { io: Arc::new(io), ..FrameOptions::default() };
        let mut frame = Frame::open(&path, 0, &options).unwrap();
        let opening = io.0.swap(0, Ordering::SeqCst);
        frame.append(&new).unwrap();
        let appending = io.0.swap(0, Ordering::SeqCst);
        frame.chunk(nchunks / 2).unwrap();
        (opening, appending, io.0.load(Ordering::SeqCst))
    };
    // Frames of less than 4 kB are read in one piece.
    assert_eq!(count(100), count(5000));
    let (opening, appending, reading) = count(100);
    assert!(opening <= 5 && appending <= 12 && reading <= 4, "{opening}, {appending}, {reading}");
}

#[test]
fn many_small_blocks_are_not_read_one_by_one() {
    let get = |blocksize: usize, wanted: Wanted| {
        // Zstandard makes them shorter by a little.
        let data: Vec<u8> = Random::new(5).bytes(256 << 10).iter().map(|byte| byte & 0x3F).collect();
        let params = CParams { typesize: 4, blocksize, compcode: 5, ..CParams::default() };
        let mut chunk = vec![0; data.len() + 32];
        let cbytes = crate::chunk::compress(&params, &data, &mut chunk).unwrap();
        let path = TempPath::new("small-blocks");
        create(Kind::File, &path).append(&chunk[..cbytes]).unwrap();
        let frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
        let mut buffer = Vec::new();
        let chunks = frame.chunks().unwrap();
        let (bytes, source) = chunks.get_lazy(0, Whole::IfCheaper(wanted), &mut buffer).unwrap();
        assert_eq!(source.is_none(), bytes == &chunk[..cbytes]);
        source.is_none()
    };
    // Of 512 and of 8 blocks.
    assert!(get(512, Wanted::Blocks(100)) && get(512, Wanted::Bytes(100 * 512)));
    assert!(!get(512, Wanted::Blocks(10)) && !get(512, Wanted::Bytes(10 * 512)));
    assert!(!get(32 << 10, Wanted::Blocks(8)) && !get(32 << 10, Wanted::Bytes(256 << 10)));
}

#[test]
fn a_typesize_that_no_reader_accepts_is_not_written() {
    let kind = |outcome: Result<usize>| outcome.map_err(Error::kind);
    for typesize in [0, -1] {
        let bad = FrameParams { typesize, ..params() };
        assert_eq!(Frame::create_in_memory(bad).err().map(Error::kind), Some(ErrorKind::InvalidParam));
        let path = TempPath::new("typesize");
        assert!(Frame::create_dir(&path, bad, &FrameOptions::default()).is_err() && !path.exists());
        assert!(Frame::create_file(&path, bad, &FrameOptions::default()).is_err() && !path.exists());
        let mut frame = Frame::create_in_memory(params()).unwrap();
        frame.append(&chunk(100, 1)).unwrap();
        frame.set_params(bad);
        assert_eq!(kind(frame.append(&chunk(100, 2))), Err(ErrorKind::InvalidParam));
        assert_eq!(kind(frame.vlmeta_add(b"name", chunk(100, 3))), Err(ErrorKind::InvalidParam));
        frame.set_params(params());
        assert_eq!(frame.append(&chunk(100, 2)), Ok(2));
        let copy = MallocBuf::copy_of(frame.buffer().unwrap()).unwrap();
        assert_eq!(Frame::from_buffer(copy).unwrap().nchunks(), 2);
    }
}
