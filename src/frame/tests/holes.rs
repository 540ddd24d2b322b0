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
fn the_size_of_the_chunks_is_known_when_the_last_ones_go() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("last");
        let mut frame = create(kind, &path);
        for i in 0..20 {
            frame.append(&chunk(1000, i)).unwrap();
        }
        for left in (0..20).rev() {
            frame.delete(left).unwrap();
            let sizes = (frame.cbytes(), reopen(&frame).cbytes());
            assert_eq!(sizes, (stored(&frame), stored(&frame)), "{kind:?}: {left} left");
        }
    }
}

#[test]
fn holes_are_closed_when_the_last_chunks_go_whatever_was_tried_before() {
    // Appended, replaced and deleted chunks, with their compressed sizes.
    let histories = [
        "a7640 a19956 u0:10008 u1:28560 u1:5752 u1:40000 d1",
        "a35436 a40000 a40000 u0:40000 u1:40000 d1 d0",
        "a40000 a27000 a40000 a40000 u3:40000 u2:34732 u0:1248 d0 d1 d1",
        "a24152 a40000 a40000 u1:40000 d1 d1 d0",
    ];
    for kind in [Kind::Memory, Kind::File, Kind::Mapped] {
        for history in histories {
            let path = TempPath::new("history");
            let mut frame = create(kind, &path);
            for (step, change) in history.split(' ').enumerate() {
                let (what, numbers) = change.split_at(1);
                let number = |text: &str| text.parse::<usize>().unwrap();
                let chunk = |cbytes: &str| longer(400, step.to_le_bytes()[0], number(cbytes) - 432);
                match (what, numbers.split_once(':')) {
                    ("a", _) => frame.append(&chunk(numbers)),
                    (_, Some((at, cbytes))) => frame.update(number(at), &chunk(cbytes)),
                    _ => frame.delete(number(numbers)),
                }
                .unwrap();
            }
            let (len, state) = (frame.frame_len(), frame.snapshot());
            assert!(len < 2 * stored(&frame) + 1000, "{kind:?} {history}: {len} bytes");
            let is_closed = len == (state.header.header_len + state.trailer_len) as u64;
            assert!(
                frame.nchunks() > 0 || is_closed,
                "{kind:?} {history}: the trailer is not where it belongs"
            );
        }
    }
}

/// So many chunks that nobody looks whether they overlap.
const MANY: usize = 300;

/// A frame of `nchunks` chunks; chunk `inner` lies inside of chunk `outer`.
fn nested(kind: Kind, path: &Path, nchunks: usize, outer: usize, inner: usize) -> Frame {
    let mut frame = create(kind, path);
    for i in 0..nchunks {
        let mut chunk = chunk(64, u8::try_from(i % 100).unwrap());
        if i == outer {
            let inner = chunk;
            chunk = longer(64, 3, 3000);
            chunk[200..200 + inner.len()].copy_from_slice(&inner);
        }
        frame.append(&chunk).unwrap();
    }
    let position = frame.offsets().unwrap()[outer] + 200;
    let session = frame.begin().unwrap();
    let mut next = State::clone(&frame.snapshot());
    next.index.set(inner, position).unwrap();
    next.replaces = true;
    frame.write_tail(&session, next, &[], index_codec::IndexOf::Other).unwrap();
    reopen(&frame)
}

#[test]
fn chunks_that_lie_inside_of_others_stay_whole_when_holes_are_closed() {
    for kind in [Kind::Memory, Kind::File] {
        let path = TempPath::new("nested");
        let mut frame = nested(kind, &path, MANY, 1, 2);
        let mut model = contents(&frame);
        frame.delete_all(&[0..1, 3..290]).unwrap();
        model.drain(3..290);
        model.remove(0);
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "{kind:?}");
    }
}

#[test]
fn chunks_that_end_after_the_last_one_stay_whole_when_another_is_deleted() {
    for kind in [Kind::Memory, Kind::File] {
        let path = TempPath::new("nested");
        let mut frame = nested(kind, &path, 5, 4, 1);
        let mut model = contents(&frame);
        frame.delete(2).unwrap();
        model.remove(2);
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "{kind:?}");
    }
}

#[test]
fn chunks_that_lie_inside_of_the_last_one_stay_whole_when_that_is_replaced() {
    for kind in [Kind::Memory, Kind::File] {
        let path = TempPath::new("nested");
        let mut frame = nested(kind, &path, MANY, MANY - 1, 1);
        let mut model = contents(&frame);
        model[MANY - 1] = longer(64, 4, 4000);
        frame.update(MANY - 1, &model[MANY - 1]).unwrap();
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "{kind:?}");
    }
}

#[test]
fn chunks_that_share_their_place_with_deleted_ones_stay_whole() {
    for (kind, deleted) in [(Kind::Memory, 1..12), (Kind::File, 1..12), (Kind::File, 10..11)] {
        let path = TempPath::new("shared");
        let mut frame = create(kind, &path);
        for i in 0..30 {
            frame.append(&chunk(64, i)).unwrap();
        }
        let session = frame.begin().unwrap();
        let mut next = State::clone(&frame.snapshot());
        next.index.set(25, frame.offsets().unwrap()[10]).unwrap();
        next.replaces = true;
        frame.write_tail(&session, next, &[], index_codec::IndexOf::Other).unwrap();
        let mut frame = reopen(&frame);
        let mut model = contents(&frame);
        assert!(model[25] == model[10]);
        frame.delete_all(std::slice::from_ref(&deleted)).unwrap();
        model.drain(deleted);
        for i in 50..80 {
            frame.append(&chunk(64, i)).unwrap();
            model.push(chunk(64, i));
            assert!(contents(&frame) == model, "{kind:?}");
        }
        assert!(contents(&reopen(&frame)) == model, "{kind:?}");
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
    for (kind, width) in
        [Kind::Memory, Kind::File, Kind::Mapped].into_iter().flat_map(|kind| [(kind, 1), (kind, 3)])
    {
        let path = TempPath::new("last");
        let mut frame = create(kind, &path);
        let once = TempPath::new("once");
        let mut model = Vec::new();
        for row in 0..3_u8 {
            let start = model.len();
            for _ in 0..width {
                let chunk = longer(9000, row, 0);
                frame.append(&chunk).unwrap();
                model.push(chunk);
            }
            for step in 1..40_u8 {
                // As an array that grows: sometimes the last row is replaced together with the one before it.
                let first = if step == 1 { start.saturating_sub(width) } else { start };
                for (at, chunk) in model.iter_mut().enumerate().skip(first) {
                    *chunk = longer(9000, step, usize::from(step) * 100 + at);
                }
                let new: Vec<(usize, &[u8])> =
                    model.iter().enumerate().skip(first).map(|(at, chunk)| (at, &chunk[..])).collect();
                frame.update_all(&new).unwrap();
                assert!(
                    contents(&frame) == model && contents(&reopen(&frame)) == model,
                    "{kind:?} {width} {row} {step}"
                );
                let stored: usize = model.iter().map(Vec::len).sum();
                let len = frame.frame_len();
                assert!(len < stored as u64 + 4096, "{kind:?} {width} {row} {step}: {len} for {stored}");
            }
        }
        let mut together = create(kind, &once);
        for chunk in &model {
            together.append(chunk).unwrap();
        }
        assert!(frame.frame_len() <= together.frame_len() + 1024, "{kind:?} {width}: {}", frame.frame_len());
    }
}

#[test]
fn chunks_of_small_frames_that_are_replaced_in_turn_leave_little_room_behind() {
    for kind in [Kind::Memory, Kind::File, Kind::Mapped] {
        for nchunks in [1, 2, 3, 4, 7, 15, 40] {
            let path = TempPath::new("turn");
            let mut frame = create(kind, &path);
            let mut model: Vec<Vec<u8>> = (0..nchunks).map(|i| chunk(9000, i)).collect();
            frame.append_all(&model.iter().map(|chunk| &chunk[..]).collect::<Vec<_>>()).unwrap();
            for step in 0..60_u8 {
                let at = usize::from(step) * 3 % model.len();
                model[at] = chunk(9000, 100 + step);
                frame.update(at, &model[at]).unwrap();
                let (live, len) = (9032 * model.len() as u64, frame.frame_len());
                assert!(len < live + live / 3 + 4096, "{kind:?} {nchunks} {step}: {len} for {live}");
            }
            assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "{kind:?} {nchunks}");
        }
    }
}

#[test]
fn short_last_chunks_that_become_long_leave_no_room_behind() {
    let path = TempPath::new("short");
    let mut frame = create(Kind::File, &path);
    let mut stored = 0;
    for last in 0..40_u8 {
        frame.append(&lengthened(short(9000, last), last, 500 + 10 * usize::from(last))).unwrap();
        let long = chunk(9000, last);
        frame.update(last.into(), &long).unwrap();
        stored += long.len() as u64;
    }
    assert!(frame.frame_len() < stored + 4096, "{} for {stored}", frame.frame_len());
}

#[test]
fn last_chunks_of_large_frames_leave_no_room_behind_either() {
    for kind in [Kind::Memory, Kind::File] {
        let path = TempPath::new("large");
        let mut frame = create(kind, &path);
        for n in 0..300_u16 {
            frame.append(&longer(3000, n.to_le_bytes()[0], 0)).unwrap();
        }
        // Where its holes are is not looked up when it is opened again.
        let mut frame = reopen(&frame);
        let mut model = contents(&frame);
        for step in 1..40_u8 {
            for (at, chunk) in model.iter_mut().enumerate().skip(297) {
                *chunk = longer(3000, step, usize::from(step) * 50 + at);
            }
            let new: Vec<(usize, &[u8])> = (297..300).map(|at| (at, &model[at][..])).collect();
            frame.update_all(&new).unwrap();
            let len = frame.frame_len();
            let stored: usize = model.iter().map(Vec::len).sum();
            assert!(len < stored as u64 + 4096, "{kind:?} {step}: {len} for {stored}");
        }
        assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "{kind:?}");
    }
}

/// More holes than are remembered, and chunks that move into what was forgotten.
#[test]
fn many_chunks_of_many_sizes_that_change_at_once_stay_apart() {
    for kind in [Kind::Memory, Kind::File] {
        for seed in 1..6_u32 {
            let path = TempPath::new("many");
            let mut frame = create(kind, &path);
            let mut state = seed;
            let mut random = |below: usize| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                usize::try_from(state >> 8).unwrap() % below
            };
            let mut model = vec![longer(100, 0, 0); 2000];
            frame.append_all(&model.iter().map(|chunk| &chunk[..]).collect::<Vec<_>>()).unwrap();
            for step in 0..25 {
                let (start, every, more) = (random(1000), 1 + random(3), 1 + random(300));
                let numbers: Vec<_> = (start..start + random(1000)).step_by(every).collect();
                for &nchunk in &numbers {
                    model[nchunk] = longer(100, step, random(more));
                }
                let new: Vec<_> = numbers.iter().map(|&nchunk| (nchunk, &model[nchunk][..])).collect();
                frame.update_all(&new).unwrap();
            }
            assert!(contents(&frame) == model && contents(&reopen(&frame)) == model, "{kind:?} {seed}");
        }
    }
}

#[test]
fn other_places_rest_while_the_last_chunks_go_to_theirs() {
    let path = TempPath::new("rest");
    let mut frame = create(Kind::File, &path);
    for i in 0..100 {
        frame.append(&chunk(3000, i)).unwrap();
    }
    let given_up = frame.offsets().unwrap()[5];
    let last = frame.offsets().unwrap()[99];
    frame.update_all(&[(5, &longer(3000, 1, 50)), (99, &longer(3000, 2, 60))]).unwrap();
    assert_eq!(frame.offsets().unwrap()[5], last, "the new chunks did not go to the place of the last one");
    frame.append(&chunk(3000, 3)).unwrap();
    assert_ne!(
        frame.offsets().unwrap()[100],
        given_up,
        "a place that one call gave up was taken by the next one"
    );
    frame.append(&chunk(3000, 4)).unwrap();
    assert_eq!(frame.offsets().unwrap()[101], given_up);
}

#[test]
fn readers_know_which_places_new_versions_take_at_once() {
    // As many chunks as the places of which are taken at once: the first one is not among the last any more.
    for (nchunks, first_is_safe) in [(64, false), (65, true)] {
        let path = TempPath::new("readers");
        let mut frame = create(Kind::File, &path);
        for i in 0..nchunks {
            frame.append(&longer(3000, i, 0)).unwrap();
        }
        frame.update(usize::from(nchunks) - 1, &longer(3000, 1, 9)).unwrap();
        let reader = reopen(&frame);
        let seen = reader.known_chunks(Looked::AnyTime).unwrap();
        assert!(seen.are_current(None::<std::iter::Empty<usize>>));
        frame.append(&longer(3000, 2, 9)).unwrap();
        assert!(!seen.are_current(None::<std::iter::Empty<usize>>));
        let last = usize::from(nchunks) - 1;
        assert!(!seen.are_current(Some([last].into_iter())));
        assert_eq!(seen.are_current(Some([0].into_iter())), first_is_safe, "{nchunks}");
    }
}

#[test]
fn what_a_call_gives_up_rests_while_it_closes_holes() {
    let path = TempPath::new("closed");
    let mut frame = create(Kind::File, &path);
    for i in 0..150 {
        frame.append(&chunk(2000, i)).unwrap();
    }
    let every_third: Vec<_> = (0..38).map(|i| 3 + 3 * i..4 + 3 * i).collect();
    frame.delete_all(&every_third).unwrap();
    let reader = reopen(&frame);
    let seen = reader.known_chunks(Looked::AnyTime).unwrap();
    let place = frame.offsets().unwrap()[0];
    let area = frame.header().cbytes;
    frame.update(0, &chunk(2000, 201)).unwrap();
    assert!(frame.header().cbytes < area, "no holes were closed");
    frame.update(0, &chunk(2000, 202)).unwrap();
    assert_ne!(frame.offsets().unwrap()[0], place);
    assert!(!seen.are_current(Some([0].into_iter())));
}
