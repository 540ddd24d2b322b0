//! Frames in files that hold other data as well, before and after them.

use super::faults::{OPERATIONS, Seen, build, faulty, see_at, see_frame};
use super::*;

/// A file with `before`, a frame, and `behind`; returns the position of the frame.
fn embed(path: &Path, before: &[u8], behind: &[u8]) -> u64 {
    let frame = TempPath::new("alone");
    build(&frame, false, 6);
    let whole = [before, &fs::read(&*frame).unwrap(), behind].concat();
    fs::write(path, whole).unwrap();
    before.len() as u64
}

fn other_frame() -> Vec<u8> {
    let mut frame = Frame::create_in_memory(params()).unwrap();
    frame.append(&chunk(64, 99)).unwrap();
    frame.buffer().unwrap().to_vec()
}

#[test]
fn what_follows_a_frame_is_never_touched() {
    let frame = other_frame();
    let text = b"text and more text, longer than any trailer".repeat(5);
    let mixed = [&text[..], &frame].concat();
    let far = [&vec![3; 200_000][..], &frame].concat();
    let after_zeros = [&vec![0; 200_000][..], &frame].concat();
    for behind in [&frame, &text, &mixed, &far, &after_zeros] {
        for &(name, operation) in OPERATIONS {
            let path = TempPath::new("followed");
            let base = embed(&path, b"before it", behind);
            let whole = fs::read(&*path).unwrap();
            let old = see_at(&path, base);
            let mut handle = Frame::open(&path, base, &FrameOptions::default()).unwrap();
            let result = operation(&mut handle);
            let now = fs::read(&*path).unwrap();
            assert_eq!(now.len(), whole.len(), "{name}");
            assert!(now.starts_with(b"before it") && now.ends_with(behind), "{name}");
            assert_eq!(see_at(&path, base) != old, result.is_ok(), "{name}: {result:?}");
            let fits = [
                "update to zeros",
                "delete first",
                "reorder",
                "meta update",
                "vlmeta shorter",
                "vlmeta delete",
            ];
            assert_eq!(
                result.is_ok(),
                fits.contains(&name) || name.starts_with("delete"),
                "{name}: {result:?}"
            );
        }
    }
}

#[test]
fn zeros_behind_a_frame_stay_until_a_change_needs_their_place() {
    let path = TempPath::new("zeros");
    embed(&path, b"", &[0; 4096]);
    let len = fs::metadata(&*path).unwrap().len();
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    frame.meta_update(b"m1", b"HELLO").unwrap();
    assert_eq!(fs::metadata(&*path).unwrap().len(), len);
    frame.append(&chunk(64, 9)).unwrap();
    assert_eq!(fs::metadata(&*path).unwrap().len(), frame.frame_len());
    let seen = see_at(&path, 0);
    assert_eq!(seen.chunks.len(), 7);
    assert_eq!(see_frame(&frame), seen);
}

#[test]
fn the_trailer_follows_the_header_of_a_frame_that_was_emptied_before_other_data() {
    let behind = other_frame();
    let path = TempPath::new("emptied");
    let base = embed(&path, b"before it", &behind);
    let mut frame = Frame::open(&path, base, &FrameOptions::default()).unwrap();
    let len = frame.snapshot().header.frame_len;
    let check = |frame: &Frame, content: &[u8]| {
        let state = frame.snapshot();
        assert_eq!(state.header.frame_len, len);
        assert_eq!(state.header.frame_len, (state.header.header_len + state.trailer_len) as u64);
        let seen = see_at(&path, base);
        assert_eq!(seen.chunks.len(), 0);
        assert_eq!(seen.vlmeta[0].content, content);
        assert!(fs::read(&*path).unwrap().ends_with(&behind));
    };
    let old = see_at(&path, base).vlmeta[0].content.clone();
    while frame.nchunks() > 0 {
        frame.delete(0).unwrap();
    }
    check(&frame, &old);
    frame.vlmeta_update(b"v1", vec![8; 300]).unwrap();
    check(&frame, &[8; 300]);
    frame.append(&chunk(64, 50)).unwrap();
    assert_eq!(see_at(&path, base).chunks, [chunk(64, 50)]);
    frame.delete(0).unwrap();
    check(&frame, &[8; 300]);
}

#[test]
fn a_change_that_fails_leaves_what_follows_alone() {
    let behind = other_frame();
    for &(name, operation) in OPERATIONS {
        for at in 0.. {
            let path = TempPath::new("followed-fault");
            let base = embed(&path, b"before it", &behind);
            let (old, len) = (see_at(&path, base), fs::read(&*path).unwrap().len());
            let (options, calls) = faulty(at);
            let mut handle = Frame::open(&path, base, &options).unwrap();
            let result = operation(&mut handle);
            drop(handle);
            let now = see_at(&path, base);
            assert!(result.is_ok() || now == old, "{name} at call {at}");
            let mut again = Frame::open(&path, base, &FrameOptions::default()).unwrap();
            again.meta_update(b"m1", b"later").unwrap();
            // The start of a record that was not finished may be left at the end: it looks like data of somebody else.
            let whole = fs::read(&*path).unwrap();
            assert!(whole[..len].ends_with(&behind), "{name} at call {at}");
            if calls() <= at {
                break;
            }
        }
    }
}

#[test]
fn closing_holes_before_other_data_leaves_the_old_chunks_until_it_is_done() {
    let behind = other_frame();
    let mut frame = Frame::create_in_memory(params()).unwrap();
    for seed in 0..7 {
        frame.append(&chunk(400, seed)).unwrap();
    }
    let whole = [&b"before it"[..], frame.buffer().unwrap(), &behind].concat();
    for at in 0.. {
        let path = TempPath::new("holes");
        fs::write(&*path, &whole).unwrap();
        let (options, calls) = faulty(at);
        let mut handle = Frame::open(&path, 9, &options).unwrap();
        for first in 1..7 {
            if handle.delete(0).is_err() || calls() > at {
                break;
            }
            assert_eq!(see_at(&path, 9).chunks[0], chunk(400, first));
        }
        drop(handle);
        let chunks = see_at(&path, 9).chunks;
        let first = 7 - u8::try_from(chunks.len()).unwrap();
        assert_eq!(chunks, (first..7).map(|seed| chunk(400, seed)).collect::<Vec<_>>(), "at call {at}");
        if calls() <= at {
            break;
        }
    }
}

/// A file with two frames, of which a change of the first was broken off at its call `at`, if it has as many: what the
/// first one holds then and where the second one is.
fn half_changed(path: &Path, operation: fn(&mut Frame) -> Result<()>, at: usize) -> Option<(Seen, u64)> {
    build(path, false, 6);
    let base = fs::metadata(path).unwrap().len();
    fs::write(path, [fs::read(path).unwrap(), other_frame()].concat()).unwrap();
    let (options, calls) = faulty(at);
    let _ = operation(&mut Frame::open(path, 0, &options).unwrap());
    (calls() > at).then(|| (see_at(path, 0), base))
}

#[test]
fn a_change_that_was_broken_off_is_undone_before_another_frame_of_the_file_changes() {
    for &(name, operation) in OPERATIONS {
        for at in 0.. {
            let path = TempPath::new("neighbours");
            let Some((first, base)) = half_changed(&path, operation, at) else { break };
            Frame::open(&path, base, &FrameOptions::default()).unwrap().append(&chunk(64, 50)).unwrap();
            assert!(see_at(&path, 0) == first, "{name}, call {at}");
            assert_eq!(see_at(&path, base).chunks, [chunk(64, 99), chunk(64, 50)], "{name}, call {at}");
        }
    }
}

#[test]
fn a_change_that_was_broken_off_is_undone_before_another_frame_is_put_behind_it() {
    for &(name, operation) in OPERATIONS {
        for at in 0.. {
            let path = TempPath::new("third");
            let Some((first, base)) = half_changed(&path, operation, at) else { break };
            let mut third = create(Kind::Memory, Path::new(""));
            third.append(&chunk(64, 51)).unwrap();
            let position = third.append_to_file(&path, &FrameOptions::default()).unwrap();
            assert!(see_at(&path, 0) == first, "{name}, call {at}");
            assert_eq!(see_at(&path, base).chunks, [chunk(64, 99)], "{name}, call {at}");
            assert_eq!(see_at(&path, position).chunks, [chunk(64, 51)], "{name}, call {at}");
        }
    }
}

#[test]
fn a_frame_that_ends_like_an_undo_record_is_not_put_behind_others() {
    let path = TempPath::new("forged");
    build(&path, false, 3);
    let before = fs::read(&*path).unwrap();
    let mut frame = other_frame();
    let fingerprint = frame.len() - 16;
    frame[fingerprint..].copy_from_slice(b"\x01undo blosc2-rs\0");
    let frame = Frame::from_buffer(MallocBuf::copy_of(&frame).unwrap()).unwrap();
    for path in [&*path, &*TempPath::new("forged-alone")] {
        let appended = frame.append_to_file(path, &FrameOptions::default());
        assert_eq!(appended.unwrap_err().kind(), ErrorKind::Data);
    }
    assert!(fs::read(&*path).unwrap() == before);
}

#[test]
fn what_was_put_behind_a_change_that_was_broken_off_outlives_the_next_change() {
    let behind = other_frame();
    for (&(name, operation), by_others) in OPERATIONS.iter().flat_map(|op| [(op, false), (op, true)]) {
        for at in 0.. {
            let path = TempPath::new("behind");
            build(&path, false, 6);
            let (options, calls) = faulty(at);
            let _ = operation(&mut Frame::open(&path, 0, &options).unwrap());
            if calls() <= at {
                break;
            }
            let position = if by_others {
                // As the C library does it: after whatever the file holds.
                let bytes = fs::read(&*path).unwrap();
                fs::write(&*path, [&bytes[..], &behind].concat()).unwrap();
                bytes.len() as u64
            } else {
                let frame = Frame::from_buffer(MallocBuf::copy_of(&behind).unwrap()).unwrap();
                frame.append_to_file(&path, &FrameOptions::default()).unwrap()
            };
            // There may be no room for it, or no way to read what is there.
            let changed = Frame::open(&path, 0, &FrameOptions::default());
            let _ = changed.and_then(|mut frame| frame.append(&chunk(64, 50)));
            let whole = fs::read(&*path).unwrap();
            assert!(whole.ends_with(&behind), "{name}, call {at}, by others: {by_others}");
            assert_eq!(see_at(&path, position).chunks, [chunk(64, 99)], "{name}, call {at}");
        }
    }
}
