//! Changes of frames of which a few bytes are not what they were.

use super::*;
use crate::format::frame_trailer::Usage;

/// Four chunks, of different sizes or not, of which the second claims `claimed` bytes.
fn with_false_size(kind: Kind, path: &Path, variable: bool, claimed: i32) -> (Frame, Vec<Vec<u8>>) {
    let mut frame = create(kind, path);
    let mut model: Vec<Vec<u8>> = (0..4)
        .map(|i| chunk(if variable { 800 * (i + 1) } else { 4000 }, u8::try_from(i).unwrap()))
        .collect();
    for chunk in &model {
        frame.append(chunk).unwrap();
    }
    let at = usize::try_from(frame.offsets().unwrap()[1]).unwrap();
    let at = frame.header().header_len + at;
    let claim = |bytes: &mut [u8], at: usize| bytes[at + 4..][..4].copy_from_slice(&claimed.to_le_bytes());
    claim(&mut model[1], 0);
    let frame = match kind {
        Kind::Memory => {
            let mut bytes = frame.buffer().unwrap().to_vec();
            claim(&mut bytes, at);
            Frame::from_buffer(MallocBuf::copy_of(&bytes).unwrap()).unwrap()
        }
        Kind::Dir => {
            drop(frame);
            fs::write(path.join("00000001.chunk"), &model[1]).unwrap();
            Frame::open(path, 0, &FrameOptions::default()).unwrap()
        }
        Kind::File | Kind::Mapped => {
            drop(frame);
            let mut bytes = fs::read(path).unwrap();
            claim(&mut bytes, at);
            fs::write(path, &bytes).unwrap();
            Frame::open(path, 0, &FrameOptions::default()).unwrap()
        }
    };
    assert!(contents(&frame) == model, "damaged as expected");
    (frame, model)
}

#[test]
fn a_chunk_that_claims_another_size_can_be_replaced_and_deleted() {
    let claims = [0, 1, 3999, 9000, 0x2000_0fa0, i32::MAX];
    for (kind, variable, claimed) in [Kind::Memory, Kind::File, Kind::Dir]
        .into_iter()
        .flat_map(|kind| [false, true].map(|variable| (kind, variable)))
        .flat_map(|(kind, variable)| claims.map(|claimed| (kind, variable, claimed)))
    {
        let what = format!("{kind:?}, variable {variable}, {claimed}");
        let path = TempPath::new("claims");
        let (mut frame, mut model) = with_false_size(kind, &path, variable, claimed);
        model[1] = chunk(if variable { 1600 } else { 4000 }, 77);
        frame.update(1, &model[1]).unwrap();
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "update: {what}");
        let sum = if variable { 8000 } else { 16000 };
        let fixed = !variable || claimed > 8000;
        assert!(!fixed || frame.nbytes() == sum, "update: {what}: {}", frame.nbytes());

        let path = TempPath::new("claims");
        let (mut frame, mut model) = with_false_size(kind, &path, variable, claimed);
        frame.delete(1).unwrap();
        model.remove(1);
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "delete: {what}");
        let sum = if variable { 6400 } else { 12000 };
        assert!(!fixed || frame.nbytes() == sum, "delete: {what}: {}", frame.nbytes());

        // Others may go, too, and the damaged one stays.
        let path = TempPath::new("claims");
        let (mut frame, mut model) = with_false_size(kind, &path, variable, claimed);
        for left in (0..4).rev().filter(|&n| n != 1) {
            if (left, claimed) == (0, 0) {
                // Nobody may open a frame whose first chunk is empty.
                assert!(frame.delete(left).is_err() && contents(&reopen(&frame)) == model, "{what}");
                break;
            }
            frame.delete(left).unwrap();
            model.remove(left);
            assert!(contents(&reopen(&frame)) == model, "{left} left: {what}");
        }
    }
}

/// Four chunks, the second of which has a header that makes no sense.
fn with_bad_header(kind: Kind, path: &Path) -> (Frame, Vec<Vec<u8>>) {
    let mut frame = create(kind, path);
    let model: Vec<Vec<u8>> = (0..4).map(|i| chunk(4000, i)).collect();
    for chunk in &model {
        frame.append(chunk).unwrap();
    }
    let at = frame.header().header_len + usize::try_from(frame.offsets().unwrap()[1]).unwrap();
    let spoil = |bytes: &mut [u8], at: usize| bytes[at + 8..][..4].fill(0);
    let frame = match kind {
        Kind::Memory => {
            let mut bytes = frame.buffer().unwrap().to_vec();
            spoil(&mut bytes, at);
            Frame::from_buffer(MallocBuf::copy_of(&bytes).unwrap()).unwrap()
        }
        _ => {
            drop(frame);
            let (file, at) = match kind {
                Kind::Dir => (path.join("00000001.chunk"), 0),
                _ => (path.to_path_buf(), at),
            };
            let mut bytes = fs::read(&file).unwrap();
            spoil(&mut bytes, at);
            fs::write(&file, bytes).unwrap();
            Frame::open(path, 0, &FrameOptions::default()).unwrap()
        }
    };
    (frame, model)
}

#[test]
fn a_chunk_with_a_damaged_header_can_be_replaced_and_deleted() {
    for kind in [Kind::Memory, Kind::File, Kind::Mapped, Kind::Dir] {
        let path = TempPath::new("header");
        let (mut frame, mut model) = with_bad_header(kind, &path);
        assert!(frame.chunk(1).is_err());
        model[1] = chunk(4000, 77);
        frame.update(1, &model[1]).unwrap();
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "update: {kind:?}");
        assert_eq!(frame.nbytes(), 16000);

        let path = TempPath::new("header");
        let (mut frame, mut model) = with_bad_header(kind, &path);
        frame.delete(1).unwrap();
        model.remove(1);
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "delete: {kind:?}");
        assert_eq!(frame.nbytes(), 12000);
        assert!(kind != Kind::Dir || !path.join("00000001.chunk").exists());
        for i in 0..20 {
            model[1] = chunk(4000, i);
            frame.update(1, &model[1]).unwrap();
            assert!(contents(&reopen(&frame)) == model, "{i} changes after: {kind:?}");
        }
    }
}

#[test]
fn a_chunk_with_a_damaged_header_cannot_become_the_first() {
    for kind in [Kind::Memory, Kind::File, Kind::Mapped, Kind::Dir] {
        let path = TempPath::new("first");
        let (mut frame, mut model) = with_bad_header(kind, &path);
        let failed = |outcome: Result<()>| assert_eq!(outcome.unwrap_err().code(), -21, "{kind:?}");
        failed(frame.delete(0).map(drop));
        assert_eq!(frame.reorder(&[1, 0, 2, 3]).unwrap_err().kind(), ErrorKind::Failure);
        assert_eq!((frame.nchunks(), reopen(&frame).nchunks()), (4, 4));
        frame.delete(1).unwrap();
        frame.delete(0).unwrap();
        model.drain(..2);
        assert!(contents(&reopen(&frame)) == model, "{kind:?}");
    }
}

#[test]
fn chunks_stay_where_nothing_tells_their_sizes() {
    // The only chunk that stays claims nothing, or cannot be read at all.
    let path = TempPath::new("untold");
    let (mut frame, _) = with_false_size(Kind::Dir, &path, true, i32::MAX);
    fs::remove_file(path.join("00000000.chunk")).unwrap();
    frame.delete_all(std::slice::from_ref(&(1..4))).unwrap();
    assert_eq!((frame.nchunks(), reopen_without_first(&path)), (1, 1));
}

/// How many chunks a new handle finds where the file of the first one is put back.
fn reopen_without_first(path: &Path) -> usize {
    fs::write(path.join("00000000.chunk"), chunk(800, 0)).unwrap();
    Frame::open(path, 0, &FrameOptions::default()).unwrap().nchunks()
}

#[test]
fn a_sum_of_sizes_that_is_a_bit_wrong_costs_no_chunk() {
    for (sum, at) in [(12_001u64, 0), (13_000, 3), (15_999, 3), (16_000, 3), (12_001, 3)] {
        for delete in [false, true] {
            let path = TempPath::new("sum");
            let mut frame = create(Kind::File, &path);
            let mut model: Vec<Vec<u8>> = (0..4).map(|i| chunk(if i < 3 { 4000 } else { 2500 }, i)).collect();
            for chunk in &model {
                frame.append(chunk).unwrap();
            }
            drop(frame);
            let mut bytes = fs::read(&*path).unwrap();
            bytes[0x1e..0x26].copy_from_slice(&sum.to_be_bytes());
            fs::write(&*path, &bytes).unwrap();
            let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
            if delete {
                frame.delete(at).unwrap();
                model.remove(at);
            } else {
                model[at] = chunk(4000, 50);
                frame.update(at, &model[at]).unwrap();
            }
            assert!(contents(&frame) == model, "{sum}, {at}, {delete}");
            assert!(contents(&reopen(&frame)) == model, "{sum}, {at}, {delete}: opened again");
        }
    }
}

#[test]
fn a_false_note_of_dead_bytes_is_not_trusted_for_ever() {
    // So many chunks that the claim is taken for true.
    let model: Vec<Vec<u8>> = (0..300u32).map(|i| chunk(4000, i.to_le_bytes()[0])).collect();
    let all: Vec<&[u8]> = model.iter().map(|chunk| &chunk[..]).collect();
    for (kind, delete) in
        [Kind::Memory, Kind::File].into_iter().flat_map(|kind| [false, true].map(|delete| (kind, delete)))
    {
        let path = TempPath::new("claimed");
        let mut frame = create(kind, &path);
        frame.append_all(&all).unwrap();
        let mut bytes = frame.buffer().map_or_else(|| fs::read(&*path).unwrap(), |buffer| buffer.to_vec());
        Usage { area: frame.header().cbytes, live: 1 }.put(&mut bytes);
        let mut frame = match kind {
            Kind::Memory => Frame::from_buffer(MallocBuf::copy_of(&bytes).unwrap()).unwrap(),
            _ => {
                fs::write(&*path, &bytes).unwrap();
                Frame::open(&path, 0, &FrameOptions::default()).unwrap()
            }
        };
        let mut left = model.clone();
        if delete {
            frame.delete(299).unwrap();
            left.truncate(299);
        } else {
            frame.update(299, &model[0]).unwrap();
            left[299].clone_from(&model[0]);
        }
        assert!(contents(&frame) == left && contents(&reopen(&frame)) == left, "{kind:?}, delete {delete}");
    }
}

/// Four chunks of a fixed size, of which the C library moved the last, a short one, to the second place.
fn with_short_one_inside(kind: Kind, path: &Path) -> (Frame, Vec<Vec<u8>>) {
    let mut frame = create(kind, path);
    let mut model: Vec<Vec<u8>> = (0..4).map(|i| chunk(4000, i)).collect();
    for chunk in &model {
        frame.append(chunk).unwrap();
    }
    let at = frame.header().header_len + usize::try_from(frame.offsets().unwrap()[1]).unwrap();
    drop(frame);
    model[1] = chunk(1000, 1);
    let file = if kind == Kind::Dir { path.join("chunks.b2frame") } else { path.to_path_buf() };
    let mut bytes = fs::read(&file).unwrap();
    bytes[0x1e..0x26].copy_from_slice(&13_000u64.to_be_bytes());
    if kind == Kind::Dir {
        fs::write(path.join("00000001.chunk"), &model[1]).unwrap();
    } else {
        bytes[at..][..model[1].len()].copy_from_slice(&model[1]);
    }
    fs::write(&file, &bytes).unwrap();
    (Frame::open(path, 0, &FrameOptions::default()).unwrap(), model)
}

#[test]
fn a_short_chunk_inside_is_counted_as_what_it_is() {
    for kind in [Kind::File, Kind::Dir] {
        for (at, new) in (0..4).flat_map(|at| [None, Some(4000), Some(1500)].map(|new| (at, new))) {
            let path = TempPath::new("inside");
            let (mut frame, mut model) = with_short_one_inside(kind, &path);
            if let Some(new) = new {
                model[at] = chunk(new, 77);
                frame.update(at, &model[at]).unwrap();
            } else {
                frame.delete(at).unwrap();
                model.remove(at);
            }
            let what = format!("{kind:?}, {at}, {new:?}");
            let nbytes =
                |chunk: &Vec<u8>| u64::from(sizes::ChunkInfo::read(chunk).unwrap().nbytes.unsigned_abs());
            let sum: u64 = model.iter().map(nbytes).sum();
            assert!(frame.nbytes() == sum && reopen(&frame).nbytes() == sum, "{what}: {}", frame.nbytes());
            assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "{what}");
        }
    }
}
