//! Copies to files that were broken off.

use super::*;
use crate::chunk::Encoding;
use crate::frame::tests::chunk;
use crate::frame::tests::faults::{faulty, see, see_frame};

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
