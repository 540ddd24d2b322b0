//! Slices of many small chunks, which a contiguous frame stores together.

use super::*;
use crate::schunk::rewrite::write_parts;
use std::ops::Range;

/// Items of a chunk.
const CHUNK: usize = 500;

/// `nchunks` chunks of noise in a super-chunk, and the same bytes.
fn noise(schunk: &mut Schunk, random: &mut Random, nchunks: usize) -> Vec<u8> {
    let mut model = Vec::new();
    for _ in 0..nchunks {
        let new = random.bytes(4 * CHUNK);
        schunk.append_buffer(Source::Bytes(&new), &Writing::new(Encoding::new(&cparams(4, 0, 1)))).unwrap();
        model.extend(new);
    }
    model
}

/// Cuts the chunk off after its header, so that nobody can read it.
fn damage(schunk: &mut Schunk, nchunk: usize) {
    let mut chunk = schunk.with_chunk(nchunk, |chunk| Ok(chunk.to_vec())).unwrap();
    chunk.truncate(32);
    chunk[2] &= !2;
    chunk[12..16].copy_from_slice(&32i32.to_le_bytes());
    schunk.update_chunk(nchunk, &chunk).unwrap();
}

#[test]
fn chunks_are_stored_together_or_not_at_all() {
    for kind in [Kind::Memory, Kind::File] {
        let path = TempPath::new("together");
        let mut random = Random::new(9);
        let mut schunk = create(kind, &path.0, 4);
        let mut model = noise(&mut schunk, &mut random, 1500);
        damage(&mut schunk, 20);
        damage(&mut schunk, 1400);
        let params = cparams(4, 0, codec::LZ4);
        let (reading, writing) = (Reading::default(), Writing::new(Encoding::new(&params)));
        let mut set = |schunk: &mut Schunk, items: Range<usize>, model: &mut Vec<u8>| {
            let new = random.bytes(4 * items.len());
            let outcome = schunk.set_slice(items.start as u64, items.end as u64, &new, &reading, &writing);
            model[4 * items.start..4 * items.end].copy_from_slice(&new);
            outcome.map_err(|e| e.kind())
        };
        let look = |schunk: &Schunk, chunks: Range<usize>| {
            let mut bytes = vec![0; 4 * CHUNK * chunks.len()];
            let (start, stop) = (chunks.start * CHUNK, chunks.end * CHUNK);
            schunk.get_slice(start as u64, stop as u64, &mut bytes, &Reading::default()).unwrap();
            bytes
        };
        // The last chunk is needed, as only a part of it is new.
        assert_eq!(set(&mut schunk, 10..20 * CHUNK + 1, &mut model.clone()), Err(ErrorKind::Failure));
        assert!(look(&schunk, 0..20) == model[..4 * CHUNK * 20], "{kind:?}: none is new");
        // Whole ones are not.
        assert_eq!(set(&mut schunk, 10..21 * CHUNK, &mut model), Ok(()));
        assert!(look(&schunk, 0..22) == model[..4 * CHUNK * 22], "{kind:?}: all are new");
        // Those that are more than one change.
        let old = model.clone();
        assert_eq!(set(&mut schunk, 50..1400 * CHUNK + 1, &mut model), Err(ErrorKind::Failure));
        let now = look(&schunk, 0..1400);
        let nnew = (0..1400).take_while(|n| {
            let chunk = 4 * CHUNK * n..4 * CHUNK * (n + 1);
            now[chunk.clone()] == model[chunk]
        });
        let nnew = nnew.count();
        assert!((1200..1390).contains(&nnew), "{kind:?}: {nnew} chunks were stored");
        assert!(now[4 * CHUNK * nnew..] == old[4 * CHUNK * nnew..4 * CHUNK * 1400], "{kind:?}");
    }
}

/// Another handle changes the frame between the making of the chunks and their storing.
#[test]
fn what_another_handle_that_locks_writes_meanwhile_is_not_lost() {
    for dir in [false, true] {
        let path = TempPath::new("meanwhile");
        let options = FrameOptions { locking: true, ..FrameOptions::default() };
        let make = if dir { Frame::create_dir } else { Frame::create_file };
        let mut schunk = Schunk::over(make(&path.0, params(4), &options).unwrap());
        let mut random = Random::new(4);
        let mut model = noise(&mut schunk, &mut random, 40);
        let other = Cell::new(Some(Schunk::open(&path.0, 0, &options).unwrap()));
        let params = cparams(4, 0, codec::LZ4);
        let writing = Writing::new(Encoding::new(&params));
        let items = 100..30 * CHUNK + 100;
        // Before and behind the slice, in the same chunks.
        let others = [50, 30 * CHUNK + 200];
        let visit = |nchunk: usize| {
            if let Some(mut other) = Some(nchunk).filter(|&n| n == 20).and_then(|_| other.take()) {
                for at in others.map(|at| at as u64) {
                    other.set_slice(at, at + 1, &[7; 4], &Reading::default(), &writing).unwrap();
                }
            }
        };
        let new = random.bytes(4 * items.len());
        let parts = schunk.slice_parts(items.start as u64, items.end as u64, new.len()).unwrap();
        let own = Writing { visit: Some(&visit), ..Writing::new(Encoding::new(&params)) };
        let mut told = 0;
        write_parts(&mut schunk, parts, &new, &Reading::default(), &own, |_| told += 1).unwrap();
        assert_eq!(told, 31);
        model[4 * items.start..4 * items.end].copy_from_slice(&new);
        for at in others {
            model[4 * at..4 * at + 4].fill(7);
        }
        assert!(all(&Schunk::open(&path.0, 0, &options).unwrap()) == model, "directory: {dir}");
    }
}
