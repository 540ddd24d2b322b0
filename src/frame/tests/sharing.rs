//! Several handles on one frame: threads, re-synchronisation, locks.

use super::*;
use crate::format::consts;
use crate::io::lock;
use std::thread;
use std::time::Duration;

fn locking() -> FrameOptions {
    FrameOptions { locking: true, ..FrameOptions::default() }
}

#[test]
fn opening_what_is_no_frame_leaves_no_lock_file() {
    let path = TempPath::new("no-frame");
    for content in [&b""[..], &b"text\n".repeat(100)] {
        fs::write(&*path, content).unwrap();
        assert!(Frame::open(&path, 0, &locking()).is_err());
        assert!(!lock::beside(&path).exists());
    }
    fs::remove_file(&*path).unwrap();
    fs::create_dir(&*path).unwrap();
    assert!(Frame::open(&path, 0, &locking()).is_err());
    assert_eq!(fs::read_dir(&*path).unwrap().count(), 0);
}

#[test]
fn eight_threads_read_through_one_handle() {
    for kind in [Kind::Memory, Kind::File, Kind::Dir, Kind::Mapped] {
        let path = TempPath::new("threads");
        let mut frame = create(kind, &path);
        for i in 0..50 {
            frame.append(&padded(400, i)).unwrap();
        }
        let frame = &frame;
        thread::scope(|scope| {
            for t in 0..8 {
                scope.spawn(move || {
                    for round in 0..400 {
                        let i = (round * 7 + t * 13) % 50;
                        assert_eq!(*frame.chunk(i).unwrap(), padded(400, i));
                        assert!(frame.lazy_chunk(i).is_ok());
                    }
                });
            }
        });
    }
}

#[test]
fn without_locking_every_change_is_seen_however_many_there_were_since() {
    for kind in [Kind::File, Kind::Dir] {
        let path = TempPath::new("stale");
        let mut a = create(kind, &path);
        let mut model: Vec<Vec<u8>> = (0..8).map(|i| padded(400, i)).collect();
        for chunk in &model {
            a.append(chunk).unwrap();
        }
        // One handle for each number of changes that it misses.
        let others: Vec<Frame> = (0..7).map(|_| reopen(&a)).collect();
        for step in 1..120 {
            let at = step * 5 % 8;
            // All of one size, so that each fits where another one was.
            model[at] = padded(400, 8 + step);
            a.update(at, &model[at]).unwrap();
            for (missed, other) in others.iter().enumerate().filter(|(missed, _)| step % (missed + 1) == 0) {
                assert!(contents(other) == model, "{kind:?} step {step}, {missed} missed");
            }
        }
        let live: usize = model.iter().map(Vec::len).sum();
        assert!(kind == Kind::Dir || a.frame_len() < 2 * live as u64 + 1000, "{}", a.frame_len());
    }
}

#[test]
fn headers_do_not_come_back_soon_whatever_the_sizes() {
    // What the chunks take goes up and down around 4096 and 65536 bytes.
    for (size, first) in [600, 1900, 2000, 30_000].into_iter().flat_map(|size| (0..4).map(move |n| (size, n)))
    {
        let path = TempPath::new("headers");
        let mut frame = create(Kind::File, &path);
        frame.append_all(&[&longer(size, 1, 0), &longer(size, 2, 0)]).unwrap();
        for step in 0..first {
            frame.update(step % 2, &longer(size, 3, 0)).unwrap();
        }
        let mut headers: Vec<Vec<u8>> = Vec::new();
        for step in 0..200_u8 {
            let new = longer(size, step, 0);
            match step % 4 {
                0 => drop(frame.append(&new).unwrap()),
                2 => drop(frame.delete(if first % 2 == 0 { frame.nchunks() - 1 } else { 0 }).unwrap()),
                _ => drop(frame.update(usize::from(step) / 2 % 2, &new).unwrap()),
            }
            let header = fs::read(&*path).unwrap()[..frame.header().header_len].to_vec();
            // Each call makes up to three changes.
            let lately = &headers[headers.len().saturating_sub(80)..];
            assert!(!lately.contains(&header), "{size} {first} {step}");
            headers.push(header);
        }
    }
}

#[test]
fn without_locking_changes_to_chunks_of_other_lengths_are_seen_too() {
    for (kind, spread) in [(Kind::File, 1), (Kind::File, 3), (Kind::Dir, 3)] {
        let path = TempPath::new("lengths");
        let mut a = create(kind, &path);
        let mut random = Random::new(6);
        let mut model: Vec<Vec<u8>> = (0..8).map(|i| longer(400, i, random.below(spread))).collect();
        for chunk in &model {
            a.append(chunk).unwrap();
        }
        let others: Vec<Frame> = (0..20).map(|_| reopen(&a)).collect();
        for step in 1..600_usize {
            // Some find a place where another one was, and some do not.
            let at = random.below(8);
            model[at] = longer(400, step.to_le_bytes()[0], random.below(spread));
            a.update(at, &model[at]).unwrap();
            for (missed, other) in others.iter().enumerate().filter(|(missed, _)| step % (missed + 1) == 0) {
                assert!(contents(other) == model, "{kind:?} {spread} step {step}, {missed} missed");
            }
        }
        let live: usize = model.iter().map(Vec::len).sum();
        assert!(kind == Kind::Dir || a.frame_len() < 2 * live as u64 + 1000, "{}", a.frame_len());
    }
}

#[test]
fn without_locking_changes_of_metalayers_are_seen_whatever_their_lengths() {
    // The second length is that of more than handles look at.
    let lengths = [(Kind::File, 8), (Kind::Dir, 8), (Kind::File, head::MAX_LEN)];
    for (kind, len, nchunks) in lengths.into_iter().flat_map(|(kind, len)| [(kind, len, 0), (kind, len, 2)]) {
        let path = TempPath::new("layers");
        let mut a = create(kind, &path);
        let mut random = Random::new(12);
        a.meta_add(b"m", &vec![0; len]).unwrap();
        for i in 0..nchunks {
            a.append(&padded(400, i)).unwrap();
        }
        a.vlmeta_add(b"v", vec![0; 40]).unwrap();
        let others: Vec<Frame> = (0..9).map(|_| reopen(&a)).collect();
        for step in 1..300_usize {
            let seed = step.to_le_bytes()[0];
            match random.below(4) {
                0 => a.meta_update(b"m", &vec![seed; len]).map(drop),
                1 if nchunks > 0 => a.update(random.below(nchunks), &padded(400, step)).map(drop),
                _ => a.vlmeta_update(b"v", vec![seed; 40 + random.below(3)]).map(drop),
            }
            .unwrap();
            let now = (contents(&a), a.metalayers(), a.vlmetalayers());
            for (missed, other) in others.iter().enumerate().filter(|(missed, _)| step % (missed + 1) == 0) {
                other.refresh().unwrap();
                let seen = (contents(other), other.metalayers(), other.vlmetalayers());
                assert!(seen == now, "{kind:?} length {len} step {step}, {missed} missed");
            }
        }
    }
}

#[test]
fn without_locking_special_values_in_place_of_others_are_seen() {
    let values = [consts::special::ZERO, consts::special::NAN, consts::special::UNINIT].map(|kind| {
        let value = special::chunk(kind, 400, 4, 0);
        value.unwrap().to_vec()
    });
    for kind in [Kind::File, Kind::Dir] {
        let path = TempPath::new("specials");
        let mut a = create(kind, &path);
        let mut random = Random::new(31);
        let mut model = vec![values[0].clone(); 20];
        for value in &model {
            a.append(value).unwrap();
        }
        let others: Vec<Frame> = (0..9).map(|_| reopen(&a)).collect();
        for step in 1..300_usize {
            let at = random.below(20);
            model[at] = values[random.below(3)].clone();
            a.update(at, &model[at]).unwrap();
            for (missed, other) in others.iter().enumerate().filter(|(missed, _)| step % (missed + 1) == 0) {
                assert!(contents(other) == contents(&a), "{kind:?} step {step}, {missed} missed");
            }
        }
    }
}

#[test]
fn a_lock_file_that_stayed_tells_nothing_of_a_new_frame() {
    let path = TempPath::new("stayed");
    for round in 0..4 {
        let mut frame = Frame::create_file(&path, params(), &locking()).unwrap();
        let before = frame.change_tick();
        assert_eq!(frame.refresh(), Ok(false), "round {round}");
        frame.exclusive().unwrap();
        assert_eq!(frame.change_tick(), before, "round {round}");
        frame.append(&chunk(64, 0)).unwrap();
        fs::remove_file(&*path).unwrap();
        assert!(lock::beside(&path).exists());
    }
}

/// Changes a frame and the list of its chunks: mostly as a queue of `window` chunks.
fn change_queue(
    random: &mut Random,
    frame: &mut Frame,
    model: &mut Vec<Vec<u8>>,
    window: usize,
    step: usize,
) {
    let new = if step % 11 == 0 { zeros(400) } else { padded(400, step) };
    match random.below(12) {
        0 => {
            model.reverse();
            frame.reorder(&(0..model.len()).rev().collect::<Vec<_>>()).unwrap();
        }
        1..6 if model.len() <= window => {
            frame.append(&new).unwrap();
            model.push(new);
        }
        6 => {
            frame.update(0, &new).unwrap();
            model[0] = new;
        }
        _ => {
            frame.delete(0).unwrap();
            frame.append(&new).unwrap();
            model.remove(0);
            model.push(new);
            if model.len() > window {
                frame.delete(0).unwrap();
                model.remove(0);
            }
        }
    }
}

#[test]
fn without_locking_a_frame_that_comes_back_to_its_size_is_seen_to_have_changed() {
    for kind in [Kind::File, Kind::Dir] {
        let path = TempPath::new("window");
        let mut random = Random::new(9);
        for window in 1..7_usize {
            let _ = fs::remove_file(&*path).or_else(|_| fs::remove_dir_all(&*path));
            let mut a = create(kind, &path);
            let mut model: Vec<Vec<u8>> = (0..window).map(|i| padded(400, i)).collect();
            for chunk in &model {
                a.append(chunk).unwrap();
            }
            let others: Vec<Frame> = (0..9).map(|_| reopen(&a)).collect();
            for step in 1..200_usize {
                change_queue(&mut random, &mut a, &mut model, window, step);
                for (missed, other) in
                    others.iter().enumerate().filter(|(missed, _)| step % (missed + 1) == 0)
                {
                    other.refresh().unwrap();
                    assert!(contents(other) == model, "{kind:?} {window} step {step}, {missed} missed");
                }
            }
        }
    }
}

#[test]
fn a_second_handle_sees_what_the_first_one_changes() {
    for kind in [Kind::File, Kind::Dir] {
        let path = TempPath::new("second");
        let mut a = create(kind, &path);
        a.append(&chunk(400, 0)).unwrap();
        let mut b = reopen(&a);
        assert!(!b.refresh().unwrap());
        a.append(&chunk(400, 1)).unwrap();
        assert!(b.refresh().unwrap());
        assert!(!b.refresh().unwrap());
        assert_eq!(b.nchunks(), 2);
        b.append(&chunk(400, 2)).unwrap();
        a.insert(0, &chunk(400, 3)).unwrap();
        a.vlmeta_add(b"v", vec![1; 40]).unwrap();
        assert_eq!(b.vlmeta_find(b"v").unwrap(), 0);
        b.update(1, &zeros(400)).unwrap();
        assert_eq!(a.chunk(1).unwrap().len(), 32);
        assert_eq!(a.lazy_chunk(1).unwrap().len(), 32);
        assert_eq!(contents(&a), contents(&b));
        assert_eq!(a.nchunks(), 4);
        // The chunk size becomes variable behind the back of a handle.
        a.append(&chunk(100, 5)).unwrap();
        a.append(&chunk(400, 6)).unwrap();
        b.append(&chunk(50, 7)).unwrap();
        assert_eq!(contents(&reopen(&b)).len(), 7);
    }
}

#[test]
fn a_frame_that_takes_the_path_is_followed() {
    let (path, other) = (TempPath::new("old"), TempPath::new("new"));
    let mut frame = create(Kind::File, &path);
    frame.append(&chunk(400, 1)).unwrap();
    let handle = reopen(&frame);
    assert_eq!(*handle.chunk(0).unwrap(), chunk(400, 1));
    let mut replacement = create(Kind::File, &other);
    replacement.append(&chunk(400, 2)).unwrap();
    fs::remove_file(&*path).unwrap();
    assert_eq!(*handle.chunk(0).unwrap(), chunk(400, 1));
    fs::rename(&*other, &*path).unwrap();
    assert_eq!(*handle.chunk(0).unwrap(), chunk(400, 2));
}

#[test]
fn a_frame_with_the_same_header_that_takes_the_path_is_followed() {
    for kept in [true, false] {
        let (path, other) = (TempPath::new("old"), TempPath::new("new"));
        let fill = |path: &TempPath, chunks: [&[u8]; 2]| {
            let mut frame = create(Kind::File, path);
            chunks.into_iter().for_each(|chunk| assert!(frame.append(chunk).is_ok()));
            frame.vlmeta_add(b"v", chunks[0][..32].to_vec()).unwrap();
            frame
        };
        let mut old = fill(&path, [&chunk(400, 1), &zeros(400)]);
        let handle = reopen(&old);
        drop(fill(&other, [&zeros(400), &chunk(400, 1)]));
        assert_eq!(fs::read(&*path).unwrap()[..87], fs::read(&*other).unwrap()[..87]);
        fs::rename(&*other, &*path).unwrap();
        if !kept {
            handle.close_reader();
        }
        assert_eq!(handle.refresh(), Ok(true));
        assert_eq!((handle.chunk(0).unwrap().len(), &*handle.chunk(1).unwrap()), (32, &chunk(400, 1)[..]));
        assert_eq!(handle.vlmetalayers().iter().next().unwrap().content, zeros(400)[..32]);
        // The handle that made the old one knows it as well.
        old.append(&chunk(400, 2)).unwrap();
        assert_eq!(*handle.chunk(1).unwrap(), chunk(400, 1));
        assert_eq!((*handle.chunk(2).unwrap()).to_vec(), chunk(400, 2));
    }
}

#[test]
fn handles_that_lock_lose_nothing() {
    for kind in [Kind::File, Kind::Dir] {
        let path = TempPath::new("locked");
        drop(create(kind, &path));
        thread::scope(|scope| {
            for t in 0..4u8 {
                let path = &path;
                scope.spawn(move || {
                    let mut frame = Frame::open(path, 0, &locking()).unwrap();
                    for i in 0..25 {
                        frame.insert(0, &chunk(64, t * 25 + i)).unwrap();
                        let n = frame.nchunks();
                        frame.chunk(n - 1).unwrap();
                    }
                });
            }
        });
        let frame = Frame::open(&path, 0, &locking()).unwrap();
        assert_eq!(frame.nbytes(), 6400);
        let mut all = contents(&frame);
        let mut expected: Vec<_> = (0..100).map(|seed| chunk(64, seed)).collect();
        all.sort();
        expected.sort();
        assert!(all == expected, "{kind:?}");
        let lock = if kind == Kind::Dir { path.join(".b2lock") } else { lock::beside(&path) };
        assert_eq!(fs::read(lock).unwrap(), [[0; 8], 100u64.to_ne_bytes()].concat());
    }
}

#[test]
fn with_locking_changes_of_equal_length_are_seen() {
    let path = TempPath::new("equal");
    let mut a = Frame::create_file(&path, params(), &locking()).unwrap();
    a.append(&chunk(64, 0)).unwrap();
    a.append(&chunk(64, 1)).unwrap();
    let b = Frame::open(&path, 0, &locking()).unwrap();
    a.reorder(&[1, 0]).unwrap();
    assert_eq!(*b.chunk(0).unwrap(), chunk(64, 1));
    a.lock().unwrap();
    a.lock().unwrap();
    a.append(&chunk(64, 2)).unwrap();
    a.unlock();
    a.unlock();
    a.unlock();
    assert_eq!(b.refresh(), Ok(true));
    assert_eq!(b.nchunks(), 3);
}

#[test]
fn a_frame_is_put_behind_one_that_is_locked_when_it_is_not_any_more() {
    let path = TempPath::new("behind-locked");
    let mut first = Frame::create_file(&path, params(), &locking()).unwrap();
    first.append(&chunk(64, 0)).unwrap();
    let mut second = create(Kind::Memory, Path::new(""));
    second.append(&chunk(64, 1)).unwrap();
    first.lock().unwrap();
    thread::scope(|scope| {
        let appended = scope.spawn(|| second.append_to_file(&path, &locking()).unwrap());
        thread::sleep(Duration::from_millis(200));
        first.append(&chunk(64, 2)).unwrap();
        first.unlock();
        let position = appended.join().unwrap();
        assert_eq!(position, first.frame_len());
        let there = Frame::open(&path, position, &locking()).unwrap();
        assert_eq!(*there.chunk(0).unwrap(), chunk(64, 1));
    });
    assert_eq!(contents(&Frame::open(&path, 0, &locking()).unwrap()), [chunk(64, 0), chunk(64, 2)]);
}

#[cfg(unix)]
#[test]
fn a_frame_is_put_behind_another_where_no_lock_file_can_be_made() {
    let path = TempPath::new("behind-unlockable");
    let first = Frame::create_file(&path, params(), &FrameOptions::default()).unwrap();
    let lock = lock::beside(&path);
    // Neither the superuser nor anybody else can make what this link leads to.
    std::os::unix::fs::symlink("/nowhere/to/be/found", &lock).unwrap();
    let mut second = create(Kind::Memory, Path::new(""));
    second.append(&chunk(64, 1)).unwrap();
    let position = second.append_to_file(&path, &locking());
    fs::remove_file(&lock).unwrap();
    assert_eq!(position, Ok(first.frame_len()));
    assert_eq!(
        contents(&Frame::open(&path, first.frame_len(), &FrameOptions::default()).unwrap()),
        [chunk(64, 1)]
    );
}

#[test]
fn without_locking_no_lock_file_appears() {
    let path = TempPath::new("nolock");
    let mut frame = create(Kind::File, &path);
    frame.append(&chunk(64, 0)).unwrap();
    frame.lock().unwrap();
    frame.unlock();
    assert!(!lock::beside(&path).exists());
}
