//! Arrays on disk of which one system call fails, each in turn: they are as they were, or as they should become.

use crate::chunk::{CParams, Encoding};
use crate::error::{Error, ErrorKind, Result};
use crate::format::consts::flags;
use crate::format::frame_header::FrameParams;
use crate::format::nd_meta::NdMeta;
use crate::frame::{Frame, FrameOptions};
use crate::io::file::FileIo;
use crate::io::{Features, FileId, Io, IoFile, OpenMode};
use crate::ndarray::select::{self, Selection};
use crate::ndarray::shape::{Region, narrow, signed};
use crate::ndarray::{Geometry, create, open, resize, slice, write};
use crate::schunk::{Reading, Schunk, Writing};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// How many calls from now on one fails; below 0 none does.
#[derive(Clone, Default)]
struct Countdown(Arc<AtomicI64>);

impl Countdown {
    fn set(&self, calls: i64) {
        self.0.store(calls, Ordering::SeqCst);
    }

    fn has_failed(&self) -> bool {
        self.0.load(Ordering::SeqCst) < 0
    }

    fn step(&self, kind: ErrorKind) -> Result<()> {
        match self.0.fetch_sub(1, Ordering::SeqCst) {
            0 => Err(Error::new(kind, "a call that fails for the test")),
            _ => Ok(()),
        }
    }
}

struct FailingIo(Countdown);

struct FailingFile(Arc<dyn IoFile>, Countdown);

impl Io for FailingIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        self.0.step(ErrorKind::FileOpen)?;
        Ok(Arc::new(FailingFile(FileIo.open(path, mode)?, self.0.clone())))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.step(ErrorKind::FileRemove)?;
        FileIo.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.step(ErrorKind::FileOpen)?;
        FileIo.rename(from, to)
    }

    fn features(&self) -> Features {
        FileIo.features()
    }
}

impl IoFile for FailingFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        self.1.step(ErrorKind::FileRead)?;
        self.0.read_at(position, buf)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        if let Err(error) = self.1.step(ErrorKind::FileWrite) {
            // What fails may have written a part.
            self.0.write_at(position, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.0.write_at(position, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.1.step(ErrorKind::FileRead)?;
        self.0.size()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.1.step(ErrorKind::FileTruncate)?;
        self.0.truncate(len)
    }

    fn id(&self) -> Option<FileId> {
        self.0.id()
    }
}

pub(super) const SHAPE: [i64; 2] = [11, 10];
const CHUNK: [i32; 2] = [4, 5];
const BLOCK: [i32; 2] = [2, 3];
pub(super) const TYPESIZE: usize = 4;

pub(super) fn params() -> CParams {
    CParams { typesize: TYPESIZE, blocksize: 6 * TYPESIZE, compcode: 1, ..CParams::default() }
}

/// Makes an array that counts at `path`.
pub(super) fn make(path: &Path, dir: bool, options: &FrameOptions) -> (Schunk, Geometry) {
    let params = params();
    let recorded = FrameParams {
        typesize: 4,
        blocksize: 24,
        compcode: 1,
        clevel: 5,
        splitmode: 4,
        filters: params.filters,
        ..FrameParams::default()
    };
    let frame = if dir {
        Frame::create_dir(path, recorded, options)
    } else {
        Frame::create_file(path, recorded, options)
    };
    let mut schunk = Schunk::over(frame.unwrap());
    let meta = NdMeta {
        shape: SHAPE.to_vec(),
        chunkshape: CHUNK.to_vec(),
        blockshape: BLOCK.to_vec(),
        dtype: None,
        dtype_format: 0,
    };
    let geometry = Geometry::from_meta(&meta).unwrap();
    create::prepare(&mut schunk, &geometry, &meta, &[]).unwrap();
    let items: Vec<u8> = (1..=110u32).flat_map(u32::to_le_bytes).collect();
    create::fill_from_buffer(&mut schunk, &geometry, &items, &Writing::new(Encoding::new(&params))).unwrap();
    (schunk, geometry)
}

/// Shape and items as the metalayer and the chunks have them.
fn content(schunk: &Schunk) -> (Vec<i64>, Vec<u8>) {
    let (_, geometry) = open(schunk).unwrap();
    assert_eq!(u64::try_from(schunk.nchunks()), Ok(geometry.nchunks()));
    assert_eq!(
        (narrow(geometry.chunkshape()), narrow(geometry.blockshape())),
        (CHUNK.to_vec(), BLOCK.to_vec())
    );
    let mut items = vec![0xee; usize::try_from(geometry.nitems()).unwrap() * TYPESIZE];
    let all = Region::all(&geometry);
    slice::read(schunk, &geometry, &all, &mut items, geometry.shape(), &Reading::default()).unwrap();
    (signed(geometry.shape()), items)
}

type Change = fn(&mut Schunk, &Geometry) -> Result<()>;

/// A name and a change of the array.
const CHANGES: [(&str, Change); 7] = [
    ("a box over all chunks", |schunk, geometry| {
        let (reading, params) = (Reading::default(), params());
        let region = Region::new(&[1, 1], &[10, 9]);
        let src = vec![7; 72 * TYPESIZE];
        let writing = Writing::new(Encoding::new(&params));
        write::write(schunk, geometry, &region, &src, &[9, 8], &reading, &writing)
    }),
    ("a selection", |schunk, geometry| {
        let (reading, params) = (Reading::default(), params());
        let lists: [&[i64]; 2] = [&[10, 0, 5], &[9, 2]];
        let selection = Selection::new(geometry, &lists)?;
        let src = vec![9; 6 * TYPESIZE];
        let writing = Writing::new(Encoding::new(&params));
        select::write(schunk, geometry, &selection, (&src, &[3, 2]), &reading, &writing)
    }),
    ("growing in both dimensions", |schunk, geometry| {
        resize::resize(schunk, geometry, &[17, 16], None, &params()).map(drop)
    }),
    ("growing in front", |schunk, geometry| {
        resize::resize(schunk, geometry, &[15, 20], Some(&[0, 5]), &params()).map(drop)
    }),
    ("shrinking", |schunk, geometry| resize::resize(schunk, geometry, &[3, 4], None, &params()).map(drop)),
    ("shrinking one way and growing the other", |schunk, geometry| {
        resize::resize(schunk, geometry, &[2, 23], None, &params()).map(drop)
    }),
    ("inserting", |schunk, geometry| {
        let (reading, params) = (Reading::default(), params());
        let writing = Writing::new(Encoding::new(&params));
        let insertion = resize::Insertion { axis: 1, at: 5 };
        resize::insert(schunk, geometry, &vec![3; 55 * TYPESIZE], insertion, &reading, &writing).map(drop)
    }),
];

pub(super) struct TempPath(pub(super) PathBuf);

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_change_with_a_failing_call_happens_or_does_not() {
    for dir in [false, true] {
        for (number, (name, change)) in CHANGES.iter().enumerate() {
            let name = format!("{name}, {}", if dir { "directory" } else { "file" });
            let mut failures = 0;
            for calls in 0.. {
                let file = format!("blosc2-faults-{}-{dir}-{number}", std::process::id());
                let path = TempPath(std::env::temp_dir().join(file));
                let countdown = Countdown::default();
                countdown.set(-1);
                let io = Arc::new(FailingIo(countdown.clone()));
                let options = FrameOptions { io, ..FrameOptions::default() };
                let (mut schunk, geometry) = make(&path.0, dir, &options);
                let old = content(&schunk);
                countdown.set(calls);
                let outcome = change(&mut schunk, &geometry);
                let failed = countdown.has_failed();
                countdown.set(-1);
                let now = content(&schunk);
                assert_eq!(now == old, outcome.is_err(), "{name}, call {calls}: {outcome:?}");
                let reopened = Schunk::open(&path.0, 0, &FrameOptions::default()).unwrap();
                assert!(content(&reopened) == now, "{name}, call {calls}: on disk it is another array");
                if !failed {
                    break;
                }
                failures += usize::from(outcome.is_err());
            }
            assert!(failures > 0, "{name}: no call made it fail");
        }
    }
}

#[test]
fn a_damaged_chunk_keeps_a_box_from_being_written_anywhere() {
    let params = params();
    let path = TempPath(std::env::temp_dir().join(format!("blosc2-faults-{}-damaged", std::process::id())));
    let (on_disk, geometry) = make(&path.0, false, &FrameOptions::default());
    let mut schunk = on_disk.to_memory().unwrap();
    let mut damaged = schunk.chunk(4).unwrap().to_vec();
    let end = damaged.len();
    // What was stored raw now says that it is coded.
    damaged[2] &= !flags::MEMCPYED;
    damaged[32..end].fill(0x77);
    schunk.update_chunk(4, &damaged).unwrap();
    let before: Vec<Vec<u8>> = (0..6).map(|n| schunk.chunk(n).unwrap().to_vec()).collect();
    let region = Region::new(&[1, 1], &[10, 9]);
    let src = vec![7; 72 * TYPESIZE];
    let writing = Writing::new(Encoding::new(&params));
    let written = write::write(&mut schunk, &geometry, &region, &src, &[9, 8], &Reading::default(), &writing);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Failure);
    assert!((0..6).all(|n| schunk.chunk(n).unwrap()[..] == before[n]));
}
