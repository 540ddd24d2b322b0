//! Trailers that are put beside the old one, as they are large.

use super::faults::{build, check_after, see, see_frame};
use super::*;

/// Content of a variable-length metalayer that makes the trailer large.
fn large(seed: u64) -> Vec<u8> {
    Random::new(seed).bytes(20_000 + 100 * seed as usize) // a test's small numbers
}

fn update(frame: &mut Frame, seed: u64) -> Result<()> {
    frame.vlmeta_update(b"v1", large(seed)).map(drop)
}

fn update_to_small(frame: &mut Frame) -> Result<()> {
    frame.vlmeta_update(b"v1", vec![5; 50]).map(drop)
}

#[test]
fn whatever_call_fails_a_frame_with_a_large_trailer_holds_the_old_or_the_new_one() {
    for dir in [false, true] {
        let base = TempPath::new("large");
        build(&base, dir, 3);
        // The first one lies behind a small one, the second one behind the first, the third one before the second.
        check_after(&base, |_| Ok(()), ("first", |f| update(f, 1)));
        check_after(&base, |f| update(f, 1), ("second", |f| update(f, 2)));
        check_after(&base, |f| update(f, 1).and(update(f, 2)), ("third", |f| update(f, 3)));
        check_after(&base, |f| update(f, 1).and(update(f, 2)), ("small", update_to_small));
        check_after(
            &base,
            |f| update(f, 1).and(update(f, 2)),
            ("append", |f| f.append(&chunk(64, 9)).map(drop)),
        );
    }
}

#[test]
fn a_large_trailer_lies_behind_the_old_one_or_where_an_older_one_was() {
    for dir in [false, true] {
        let path = TempPath::new("beside");
        build(&path, dir, 3);
        let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
        let mut places = Vec::new();
        for seed in [1, 2, 1, 2, 1] {
            update(&mut frame, seed).unwrap();
            places.push((frame.snapshot().trailer_at(), frame.frame_len()));
        }
        for pair in places.windows(2) {
            let ((old_at, old_end), (new_at, new_end)) = (pair[0], pair[1]);
            assert!(new_at >= old_end || new_end <= old_at, "{places:?}");
        }
    }
}

#[test]
fn where_other_data_follow_a_large_trailer_stays_inside_its_frame() {
    let path = TempPath::new("followed-large");
    build(&path, false, 3);
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    update(&mut frame, 9).unwrap();
    drop(frame);
    let behind = b"text that is not the frame's".repeat(9);
    let whole = [&fs::read(&*path).unwrap()[..], &behind].concat();
    fs::write(&*path, &whole).unwrap();
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    let changes: [fn(&mut Frame) -> Result<()>; 4] = [
        |f| update(f, 1),
        |f| f.append(&chunk(64, 9)).map(drop),
        |f| update(f, 2),
        |f| update_to_small(f).and(update(f, 1)),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        change(&mut frame).unwrap();
        let now = fs::read(&*path).unwrap();
        assert!(now.len() == whole.len() && now.ends_with(&behind), "change {n}");
        assert_eq!(see(&path), see_frame(&frame), "change {n}");
    }
    assert!(update(&mut frame, 400).is_err());
    assert_eq!(see(&path), see_frame(&frame));
}

#[test]
fn without_chunks_a_large_trailer_is_where_the_c_library_looks_for_it() {
    let path = TempPath::new("empty-large");
    build(&path, false, 0);
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    for seed in [1, 2, 1] {
        update(&mut frame, seed).unwrap();
        let state = frame.snapshot();
        assert_eq!(state.trailer_at(), state.header.header_len as u64, "content {seed}");
        assert!(state.trailer_len < large(seed).len() + 500, "content {seed}");
        assert_eq!(see(&path), see_frame(&frame));
    }
}

#[test]
fn large_trailers_are_seen_by_all_handles_and_their_space_is_given_back() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("large");
        let mut frame = create(kind, &path);
        frame.vlmeta_add(b"v0", vec![3; 40]).unwrap();
        frame.vlmeta_add(b"v1", large(1)).unwrap();
        frame.append(&padded(400, 0)).unwrap();
        let others: Vec<Frame> = match kind {
            Kind::File | Kind::Dir => (0..5).map(|_| reopen(&frame)).collect(),
            Kind::Memory | Kind::Mapped => Vec::new(),
        };
        let mut random = Random::new(8);
        let mut shortest = u64::MAX;
        for step in 1..200 {
            match random.below(6) {
                0 => frame.append(&padded(400, step)).map(drop),
                1 => frame.vlmeta_update(b"v0", vec![3; 30 + random.below(90)]).map(drop),
                2 => update_to_small(&mut frame),
                _ => update(&mut frame, random.below(30) as u64),
            }
            .unwrap();
            let state = frame.snapshot();
            let live = state.index_at() + state.index.len() as u64 * 8 + 600 + state.trailer_len as u64;
            let most = live + state.trailer_len as u64 * 9 / 8;
            assert!(frame.frame_len() <= most, "{kind:?} step {step}: {} of {most}", frame.frame_len());
            shortest = shortest.min(frame.frame_len());
            let now = (contents(&frame), frame.metalayers(), frame.vlmetalayers());
            for (missed, other) in others.iter().enumerate().filter(|(missed, _)| step % (missed + 1) == 0) {
                other.refresh().unwrap();
                let seen = (contents(other), other.metalayers(), other.vlmetalayers());
                assert!(seen == now, "{kind:?} step {step}, {missed} missed");
            }
        }
        assert!(shortest < 6000 || kind == Kind::Memory, "{kind:?}: never shorter than {shortest}");
        if kind == Kind::File {
            assert_eq!(fs::metadata(&*path).unwrap().len(), frame.frame_len());
            assert_eq!(see(&path).chunks, contents(&frame));
        }
    }
}
