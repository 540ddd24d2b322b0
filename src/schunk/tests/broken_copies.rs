//! Copies to files that were broken off, and of files that somebody changes meanwhile.

use super::*;
use crate::chunk::Encoding;
use crate::frame::tests::chunk;
use crate::frame::tests::faults::{faulty, see, see_frame};
use std::cell::RefCell;

#[test]
fn a_copy_that_was_broken_off_lacks_chunks_or_nothing() {
    let cparams = CParams { typesize: 4, ..CParams::default() };
    let (reading, writing) = (Reading::default(), Writing::new(Encoding::new(&cparams)));
    // Large chunks are copied as several changes.
    for (size, nchunks, recompress) in [(400, 0, false), (400, 3, false), (5 << 20, 2, false), (400, 3, true)]
    {
        let mut source = Schunk::in_memory(params(4));
        source.meta_add(b"m", b"fixed").unwrap();
        for (name, content) in [(b"v1", &b"one"[..]), (b"v2", &[2; 5000])] {
            source.vlmeta_add(name, content, None).unwrap();
        }
        for seed in 0..nchunks {
            source.append_chunk(&chunk(size, seed)).unwrap();
        }
        let copy_to = |path: &Path, dir: bool, options: &FrameOptions| {
            let create = if dir { Frame::create_dir } else { Frame::create_file };
            let mut copy = Schunk::over(create(path, params(4), options)?);
            source.copy_to(&mut copy, recompress.then_some((&reading, &writing)))
        };
        for dir in [false, true] {
            let done = TempPath::new("copied");
            copy_to(&done, dir, &FrameOptions::default()).unwrap();
            let whole = see(&done);
            assert_eq!((whole.chunks.len(), whole.vlmeta.len()), (usize::from(nchunks), 2));
            for at in 0.. {
                let path = TempPath::new("copy");
                let (options, calls) = faulty(at);
                let copied = copy_to(&path, dir, &options);
                let what = format!("{nchunks} chunks of {size} bytes, directory {dir}, call {at}");
                if let Ok(frame) = Frame::open(&path, 0, &FrameOptions::default()) {
                    let now = see_frame(&frame);
                    let lacks_chunks = now.chunks.len() < whole.chunks.len();
                    assert!(lacks_chunks || nchunks == 0 || now == whole, "{what}");
                }
                if calls() <= at {
                    assert!(copied.is_ok() && see(&path) == whole, "{what}");
                    break;
                }
            }
        }
    }
}

/// What a writer without locks does to a super-chunk of 70 chunks while it is copied.
type Change = fn(&mut Schunk, &Writing<'_>, u8);

#[test]
fn copies_are_of_one_moment_also_while_somebody_writes() {
    let cparams = cparams(4, 0, codec::LZ4);
    let (writing, reading) = (Writing::new(Encoding::new(&cparams)), Reading::default());
    let update: Change = |writer, writing, n| {
        writer.set_slice(0, 500, &[100 + n; 2000], &Reading::default(), writing).unwrap();
    };
    let append: Change = |writer, writing, n| {
        writer.append_buffer(Source::Bytes(&[n; 1000]), writing).unwrap();
    };
    for kind in [Kind::File, Kind::Dir] {
        for recompress in [false, true] {
            // How often a change comes during a copy, and how often the copy is made then.
            for (change, changes, attempts) in
                [(update, 0, 1), (update, 1, 2), (update, 9, 10), (update, 20, 10), (append, 4, 1)]
            {
                let path = TempPath::new("changed");
                let mut writer = create(kind, &path.0, 4);
                for n in 0..70 {
                    writer.append_buffer(Source::Bytes(&[n; 1000]), &writing).unwrap();
                }
                let source = Schunk::over(Frame::open(&path.0, 0, &FrameOptions::default()).unwrap());
                let (writer, left, made) = (RefCell::new(writer), Cell::<u8>::new(changes), Cell::new(0));
                let meddle = |_: &Schunk| {
                    made.set(made.get() + 1);
                    if let Some(rest) = left.get().checked_sub(1) {
                        left.set(rest);
                        change(&mut writer.borrow_mut(), &writing, made.get());
                    }
                };
                let copied = source.again_if_changed(|| {
                    let mut copy = Schunk::in_memory(params(4));
                    let parts = recompress.then_some((&reading, &writing));
                    source.copy_to_watched(&mut copy, None, parts, &meddle).map(|()| copy)
                });
                let what = format!("{kind:?}, recompress: {recompress}, changes: {changes}");
                assert_eq!(made.get(), attempts, "{what}");
                let mut expected: Vec<u8> = (0..70).flat_map(|n| [n; 1000]).collect();
                if attempts > 1 {
                    expected[..2000].fill(100 + changes);
                }
                match copied {
                    Ok(copied) => assert!(changes < 20 && all(&copied) == expected, "{what}"),
                    Err(e) => {
                        let gone = [ErrorKind::FileRead, ErrorKind::FileOpen].contains(&e.kind());
                        assert!(changes == 20 && gone, "{what}: {e:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn copies_compressed_again_are_of_one_moment_though_chunks_come_back_to_their_places() {
    let cparams = cparams(4, 0, codec::LZ4);
    let (writing, reading) = (Writing::new(Encoding::new(&cparams)), Reading::default());
    for (nchunks, rounds) in [(2, 1), (3, 2), (40, 2), (64, 2)] {
        let path = TempPath::new("back");
        let random = RefCell::new(crate::testing::Random::new(5));
        // Of one stored size.
        let tagged = |tag: u8| {
            let mut data = random.borrow_mut().bytes(6000);
            data[0] = tag;
            data
        };
        let mut writer = create(Kind::File, &path.0, 4);
        for n in 0..nchunks {
            writer.append_buffer(Source::Bytes(&tagged(n)), &writing).unwrap();
        }
        let source = Schunk::over(Frame::open(&path.0, 0, &FrameOptions::default()).unwrap());
        let (writer, is_done, made) = (RefCell::new(writer), Cell::new(false), Cell::new(0));
        let visit = |nchunk: usize| {
            made.set(made.get() + usize::from(nchunk == 0));
            if nchunk == 0 && !is_done.replace(true) {
                // The first chunk was read.
                for (at, _) in (0..2).flat_map(|at| (0..rounds).map(move |round| (at, round))) {
                    let new = tagged(200 + at);
                    let (start, stop) = (u64::from(at) * 1500, u64::from(at + 1) * 1500);
                    writer.borrow_mut().set_slice(start, stop, &new, &reading, &writing).unwrap();
                }
            }
        };
        let own = Writing { visit: Some(&visit), ..Writing::new(Encoding::new(&cparams)) };
        let copied = source.again_if_changed(|| {
            let mut copy = Schunk::in_memory(params(4));
            source.copy_to_watched(&mut copy, None, Some((&reading, &own)), &|_| ()).map(|()| copy)
        });
        let data = all(&copied.unwrap());
        assert_eq!(
            (data[0], data[6000], made.get()),
            (200, 201, 2),
            "{nchunks} chunks, {rounds} updates each"
        );
    }
}
