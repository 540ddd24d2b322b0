//! Threads that share a super-chunk, and handles that share a frame.

use super::*;
use std::thread;
use std::time::Duration;

#[test]
fn eight_threads_read_one_super_chunk() {
    for kind in KINDS {
        let path = TempPath::new("threads");
        let mut schunk = create(kind, &path.0, 4);
        let cparams = cparams(4, 4096, codec::LZ4);
        let writing = Writing::new(Encoding::new(&cparams));
        let mut random = Random::new(11);
        let mut model = Vec::new();
        for _ in 0..10 {
            let data = data(&mut random, 40_000);
            schunk.append_buffer(Source::Bytes(&data), &writing).unwrap();
            model.extend(data);
        }
        schunk.vlmeta_add(b"v", &[7; 100], None).unwrap();
        let (schunk, model) = (&schunk, &model);
        std::thread::scope(|scope| {
            for t in 0..8 {
                scope.spawn(move || {
                    let mut random = Random::new(t);
                    let reading = Reading::default();
                    for _ in 0..60 {
                        let start = random.below(99_000);
                        let mut got = vec![0; 4000];
                        schunk.get_slice(start as u64, start as u64 + 1000, &mut got, &reading).unwrap();
                        assert!(got == model[start * 4..start * 4 + 4000]);
                        let mut chunk = vec![0; 40_000];
                        let n = random.below(10);
                        schunk.decompress_chunk(n, &mut chunk, &reading).unwrap();
                        assert!(chunk == model[n * 40_000..(n + 1) * 40_000]);
                        let coord = i64::try_from(start).unwrap();
                        schunk.get_sparse(&[coord], &mut got, &reading).unwrap();
                        assert_eq!(got[..4], model[start * 4..start * 4 + 4]);
                        assert_eq!(schunk.vlmeta_get(b"v").unwrap().1, [7; 100]);
                    }
                });
            }
        });
    }
}

#[test]
fn items_that_another_handle_removed_are_not_reported_as_read_or_written() {
    for kind in [Kind::File, Kind::Dir] {
        let path = TempPath::new("removed");
        let mut schunk = create(kind, &path.0, 4);
        let cparams = cparams(4, 256, codec::LZ4);
        let (writing, reading) = (Writing::new(Encoding::new(&cparams)), Reading::default());
        for n in 0..3 {
            schunk.append_buffer(Source::Bytes(&[n; 1000]), &writing).unwrap();
        }
        for (start, stop) in [(550, 750), (640, 750), (749, 750), (100, 750)] {
            let open = || Schunk::over(Frame::open(&path.0, 0, &FrameOptions::default()).unwrap());
            let (reader, mut writer) = (open(), open());
            // The last chunk becomes shorter, and neither of the two knows.
            schunk.delete_chunk(2).unwrap();
            schunk.append_buffer(Source::Bytes(&[9; 500]), &writing).unwrap();
            let mut items = vec![0; 3000];
            let all_of_last = start <= 500;
            let read = reader.get_slice(start, stop, &mut items, &reading);
            assert!(read.is_err(), "{kind:?}: items {start} to {stop} were read");
            let written = writer.set_slice(start, stop, &items, &reading, &writing);
            assert!(written.is_err() || all_of_last, "{kind:?}: items {start} to {stop} were written");
            schunk.refresh().unwrap();
            schunk.delete_chunk(2).unwrap();
            schunk.append_buffer(Source::Bytes(&[2; 1000]), &writing).unwrap();
        }
    }
}

/// Reads something of a super-chunk.
type Read = fn(&Schunk, &mut [u8], &Reading<'_>) -> Result<()>;

#[test]
fn a_frame_that_takes_the_path_is_read_from_then_on() {
    for kind in [Kind::File, Kind::Dir] {
        let (path, other) = (TempPath::new("taken"), TempPath::new("taking"));
        let cparams = cparams(4, 0, codec::LZ4);
        let (writing, reading) = (Writing::new(Encoding::new(&cparams)), Reading::default());
        for (path, byte) in [(&path, 1), (&other, 2)] {
            create(kind, &path.0, 4).append_buffer(Source::Bytes(&[byte; 1000]), &writing).unwrap();
        }
        let reads: [Read; 4] = [
            |schunk, dest, reading| schunk.decompress_chunk(0, dest, reading).map(drop),
            |schunk, dest, reading| schunk.get_slice(0, 250, dest, reading),
            |schunk, dest, reading| schunk.get_sparse(&[0, 200], dest, reading),
            |schunk, dest, reading| {
                let chunk = schunk.chunk_into(0, MallocBuf::filled)?;
                chunk::decompress_with(&reading.dec, chunk.bytes(), None, dest).map(drop)
            },
        ];
        let handles = reads.map(|read| {
            let schunk = Schunk::over(Frame::open(&path.0, 0, &FrameOptions::default()).unwrap());
            let mut dest = [0; 1000];
            read(&schunk, &mut dest, &reading).unwrap();
            assert_eq!(dest[0], 1, "{kind:?}");
            schunk
        });
        dirs::remove_frame(&path.0).unwrap();
        std::fs::rename(&other.0, &path.0).unwrap();
        for (n, (read, schunk)) in reads.iter().zip(&handles).enumerate() {
            let mut dest = [0; 1000];
            read(schunk, &mut dest, &reading).unwrap();
            assert_eq!(dest[0], 2, "{kind:?}, {n}");
        }
    }
}

#[test]
fn what_is_changed_while_it_is_read_is_read_again() {
    for kind in [Kind::File, Kind::Dir] {
        let path = TempPath::new("undisturbed");
        let mut writer = create(kind, &path.0, 4);
        let cparams = cparams(4, 0, codec::LZ4);
        let (writing, reading) = (Writing::new(Encoding::new(&cparams)), Reading::default());
        for n in 0..70 {
            writer.append_buffer(Source::Bytes(&[n; 1000]), &writing).unwrap();
        }
        let reader = Schunk::over(Frame::open(&path.0, 0, &FrameOptions::default()).unwrap());
        let mut read_while = |read: usize, changes: &[(u64, u8)]| {
            let (mut seen, mut changes) = (Vec::new(), changes.iter());
            let outcome = reader.read_one(read, |chunks| {
                let byte = chunks.with_all_bytes(read, &reading.dec, |dec, bytes| {
                    let mut data = [0; 1000];
                    chunk::decompress_with(dec, bytes, None, &mut data)?;
                    Ok(data[999])
                })?;
                seen.push(byte);
                if let Some(&(nchunk, new)) = changes.next() {
                    writer.set_slice(nchunk * 250, nchunk * 250 + 250, &[new; 1000], &reading, &writing)?;
                }
                Ok(byte)
            });
            (outcome.unwrap(), seen)
        };
        assert_eq!(read_while(0, &[]), (0, vec![0]), "{kind:?}");
        assert_eq!(read_while(0, &[(0, 7)]), (7, vec![0, 7]), "{kind:?}");
        assert_eq!(read_while(0, &[(0, 8), (0, 9), (0, 10)]), (10, vec![7, 8, 9, 10]), "{kind:?}");
        // Changes elsewhere are nothing to wait for, unless they may have been where the last chunks are.
        let (outcome, seen) = read_while(2, &[(1, 11); 9]);
        assert!(outcome == 2 && seen.len() < 6, "{kind:?}: {seen:?}");
        let (outcome, seen) = read_while(0, &[(1, 11); 9]);
        assert!(outcome == 10 && (kind == Kind::Dir || seen.len() == 10), "{kind:?}: {seen:?}");
    }
}

/// Compresses as asked, after another handle began to change items of the chunk that is made.
struct Disturbed {
    params: CParams,
    other: Cell<Option<Box<dyn FnOnce() + Send>>>,
    changes: Cell<Option<thread::JoinHandle<()>>>,
}

impl ChunkCompressor for Disturbed {
    fn compress(&self, src: Source<'_>, dest: &mut [u8]) -> Result<usize> {
        self.changes.set(self.other.take().map(thread::spawn));
        thread::sleep(Duration::from_millis(100));
        Ok(chunk::compress_with(&Encoding::new(&self.params), src, dest)?.cbytes)
    }
}

/// With locks, no handle undoes what another one writes to items of the same chunk.
#[test]
fn slices_of_one_chunk_that_two_handles_write_are_both_there() {
    for dir in [false, true] {
        let path = TempPath::new("both");
        let options = FrameOptions { locking: true, ..FrameOptions::default() };
        let make = if dir { Frame::create_dir } else { Frame::create_file };
        let mut schunk = Schunk::over(make(&path.0, params(4), &options).unwrap());
        let cparams = cparams(4, 1024, codec::LZ4);
        let numbers: Vec<u8> = (0..1000u32).flat_map(u32::to_le_bytes).collect();
        schunk.append_buffer(Source::Bytes(&numbers), &Writing::new(Encoding::new(&cparams))).unwrap();
        let mut other = Schunk::open(&path.0, 0, &options).unwrap();
        let own = cparams.clone();
        let change = move || {
            let writing = Writing::new(Encoding::new(&own));
            other.set_slice(900, 901, &[9; 4], &Reading::default(), &writing).unwrap();
        };
        let disturbed = Disturbed {
            params: cparams.clone(),
            other: Cell::new(Some(Box::new(change))),
            changes: Cell::new(None),
        };
        let writing = Writing { compressor: Some(&disturbed), ..Writing::new(Encoding::new(&cparams)) };
        schunk.set_slice(10, 11, &[1; 4], &Reading::default(), &writing).unwrap();
        disturbed.changes.take().unwrap().join().unwrap();
        let mut expected = numbers;
        expected[40..44].fill(1);
        expected[3600..3604].fill(9);
        assert!(all(&Schunk::open(&path.0, 0, &options).unwrap()) == expected, "directory: {dir}");
    }
}
