//! What is known of dead bytes after reopening a frame.

use super::*;

fn stored(frame: &Frame) -> u64 {
    let len = |i| frame.chunk(i).unwrap().len() as u64;
    (0..frame.nchunks()).map(len).sum()
}

/// Ten chunks, of which one was replaced and one deleted: too little to be worth closing the holes.
fn with_holes(kind: Kind, path: &Path) -> Frame {
    let mut frame = create(kind, path);
    for i in 0..10 {
        frame.append(&chunk(1000, i)).unwrap();
    }
    frame.update(3, &chunk(1000, 33)).unwrap();
    frame.delete(6).unwrap();
    frame
}

#[test]
fn the_size_of_the_chunks_survives_reopening() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("sizes");
        let mut frame = with_holes(kind, &path);
        let area = |frame: &Frame| frame.header().cbytes;
        assert_eq!(frame.cbytes(), 9 * 1032, "{kind:?}");
        assert!(kind == Kind::Dir || area(&frame) > 9 * 1032, "{kind:?}: holes were closed");
        assert_eq!((reopen(&frame).cbytes(), stored(&frame)), (9 * 1032, 9 * 1032), "{kind:?}");
        frame.vlmeta_add(b"v", vec![1; 40]).unwrap();
        assert_eq!(reopen(&frame).cbytes(), 9 * 1032, "{kind:?}");
        let mut again = reopen(&frame);
        again.append(&chunk(1000, 50)).unwrap();
        again.reorder(&(0..10).rev().collect::<Vec<_>>()).unwrap();
        again.vlmeta_delete(b"v").unwrap();
        assert_eq!((again.cbytes(), reopen(&again).cbytes()), (10 * 1032, 10 * 1032), "{kind:?}");
        for left in (0..10).rev() {
            again.delete(left).unwrap();
            assert_eq!(reopen(&again).cbytes(), stored(&again), "{kind:?}: {left} left");
        }
    }
}

#[test]
fn without_a_note_holes_are_counted_before_the_next_one_is_made() {
    let path = TempPath::new("foreign");
    drop(with_holes(Kind::File, &path));
    let mut bytes = fs::read(&*path).unwrap();
    let note = bytes.len() - 16;
    assert_ne!(bytes[note..], [0; 16]);
    bytes[note..].fill(0);
    fs::write(&*path, &bytes).unwrap();
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    assert_eq!(frame.cbytes(), frame.header().cbytes);
    frame.delete(0).unwrap();
    assert_eq!((frame.cbytes(), reopen(&frame).cbytes()), (8 * 1032, 8 * 1032));
}

#[test]
fn a_note_for_another_payload_area_is_ignored() {
    let path = TempPath::new("stale");
    drop(with_holes(Kind::File, &path));
    let bytes = fs::read(&*path).unwrap();
    for (at, value) in [(16, 1), (9, 7), (8, 0xff), (1, 0xff)] {
        let mut bad = bytes.clone();
        let at = bad.len() - at;
        bad[at] ^= value;
        fs::write(&*path, &bad).unwrap();
        let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
        assert!(frame.cbytes() <= frame.header().cbytes);
        let model = contents(&frame);
        frame.delete(0).unwrap();
        assert!(contents(&frame) == model[1..] && contents(&reopen(&frame)) == model[1..]);
    }
}

#[test]
fn last_chunks_that_are_replaced_over_and_over_leave_no_room_behind() {
    for kind in [Kind::Memory, Kind::File, Kind::Mapped] {
        let path = TempPath::new("last");
        let mut frame = create(kind, &path);
        let once = TempPath::new("once");
        let mut model = Vec::new();
        for n in 0..3_u8 {
            model.push(longer(9000, n, 0));
            frame.append(&model[usize::from(n)]).unwrap();
            for step in 1..40_u8 {
                let at = usize::from(n);
                // As an array that grows: sometimes the last chunk is replaced together with the one before it.
                let mut changed = vec![at];
                if step == 1 && n > 0 {
                    changed.insert(0, at - 1);
                }
                for &at in &changed {
                    model[at] = longer(9000, step, usize::from(step) * 100);
                }
                let new: Vec<(usize, &[u8])> = changed.iter().map(|&at| (at, &model[at][..])).collect();
                frame.update_all(&new).unwrap();
                assert!(
                    contents(&frame) == model && contents(&reopen(&frame)) == model,
                    "{kind:?} {n} {step}"
                );
                let stored: usize = model.iter().map(Vec::len).sum();
                let len = frame.frame_len();
                assert!(len < stored as u64 + 4096, "{kind:?} {n} {step}: {len} for {stored}");
            }
        }
        let mut together = create(kind, &once);
        for chunk in &model {
            together.append(chunk).unwrap();
        }
        assert!(frame.frame_len() <= together.frame_len() + 1024, "{kind:?}: {}", frame.frame_len());
    }
}
