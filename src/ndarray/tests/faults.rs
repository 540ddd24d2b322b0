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
use crate::ndarray::write::{self, Items};
use crate::ndarray::{Geometry, StoredArray, concat, create, open, resize, slice};
use crate::schunk::{Reading, Schunk, Writing};
use crate::testing::TempPath;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// How many calls from now on one fails; [`OFF`](Countdown::OFF) if none does.
#[derive(Clone)]
struct Countdown {
    left: Arc<AtomicI64>,
    /// Whether all later calls fail, too, as on a disk that is full or gone.
    lasting: bool,
}

impl Countdown {
    const OFF: i64 = i64::MIN / 2;

    fn off(lasting: bool) -> Countdown {
        Countdown { left: Arc::new(AtomicI64::new(Self::OFF)), lasting }
    }

    fn set(&self, calls: i64) {
        self.left.store(calls, Ordering::SeqCst);
    }

    /// After [`set`](Self::set) to a number of calls: whether there were more.
    fn has_failed(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }

    fn step(&self, kind: ErrorKind) -> Result<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        let fails = left == 0 || (self.lasting && (Self::OFF / 2..0).contains(&left));
        if fails { Err(Error::new(kind, "a call that fails for the test")) } else { Ok(()) }
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
const CHANGES: [(&str, Change); 11] = [
    ("a box over all chunks", |schunk, geometry| {
        let (reading, params) = (Reading::default(), params());
        let region = Region::new(&[1, 1], &[10, 9]);
        let src = vec![7; 72 * TYPESIZE];
        let writing = Writing::new(Encoding::new(&params));
        write::write(schunk, geometry, &region, Items { bytes: &src, shape: &[9, 8] }, &reading, &writing)
    }),
    ("a selection", |schunk, geometry| {
        let (reading, params) = (Reading::default(), params());
        let lists: [&[i64]; 2] = [&[10, 0, 5], &[9, 2]];
        let selection = Selection::new(geometry, &lists)?;
        let src = vec![9; 6 * TYPESIZE];
        let writing = Writing::new(Encoding::new(&params));
        select::write(schunk, geometry, &selection, &src, &[3, 2], &reading, &writing)
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
    ("shrinking one way and growing the other, with the same chunks", |schunk, geometry| {
        resize::resize(schunk, geometry, &[12, 9], None, &params()).map(drop)
    }),
    ("inserting", |schunk, geometry| {
        let (reading, params) = (Reading::default(), params());
        let writing = Writing::new(Encoding::new(&params));
        let insertion = resize::Insertion { axis: 1, at: 5 };
        resize::insert(schunk, geometry, &vec![3; 55 * TYPESIZE], insertion, &reading, &writing).map(drop)
    }),
    ("appending to chunks that are there", |schunk, geometry| append(schunk, geometry, 1)),
    ("appending to chunks that are there and new ones", |schunk, geometry| append(schunk, geometry, 7)),
    ("joining", |schunk, geometry| {
        let (reading, params) = (Reading::default(), params());
        let writing = Writing::new(Encoding::new(&params));
        let (other, other_geometry) = (schunk.to_memory()?, geometry.clone());
        let other = StoredArray { schunk: &other, geometry: &other_geometry, reading: &reading };
        concat::extend(schunk, geometry, other, 1, &reading, &writing).map(drop)
    }),
];

/// Appends `rows` rows.
fn append(schunk: &mut Schunk, geometry: &Geometry, rows: usize) -> Result<()> {
    let (reading, params) = (Reading::default(), params());
    let writing = Writing::new(Encoding::new(&params));
    let insertion = resize::Insertion { axis: 0, at: SHAPE[0] };
    let items = vec![5; rows * 10 * TYPESIZE];
    resize::insert(schunk, geometry, &items, insertion, &reading, &writing).map(drop)
}

/// Carries out a change of an array of its own, at which a call fails, for each call; `check` looks at what was there
/// before, what the change makes of it when nothing fails, its outcome, and what handle and disk have afterwards.
fn fail_each_call(lasting: bool, check: impl Fn(&str, [&(Vec<i64>, Vec<u8>); 4], &Result<()>)) {
    for (dir, number) in [false, true].into_iter().flat_map(|dir| (0..CHANGES.len()).map(move |n| (dir, n))) {
        let (name, change) = CHANGES[number];
        let name = format!("{name}, {}", if dir { "directory" } else { "file" });
        let (mut failures, mut new) = (0, None);
        for calls in std::iter::once(i64::MAX).chain(0..) {
            let path = TempPath::new("faults");
            let countdown = Countdown::off(lasting);
            let io = Arc::new(FailingIo(countdown.clone()));
            let options = FrameOptions { io, ..FrameOptions::default() };
            let (mut schunk, geometry) = make(&path.0, dir, &options);
            let old = content(&schunk);
            countdown.set(calls);
            let outcome = change(&mut schunk, &geometry);
            let failed = countdown.has_failed();
            countdown.set(Countdown::OFF);
            let now = content(&schunk);
            let reopened = Schunk::open(&path.0, 0, &FrameOptions::default()).unwrap();
            let new = new.get_or_insert_with(|| now.clone());
            check(&format!("{name}, call {calls}"), [&old, new, &now, &content(&reopened)], &outcome);
            if !failed && calls < i64::MAX {
                break;
            }
            failures += usize::from(outcome.is_err());
        }
        assert!(failures > 0, "{name}: no call made it fail");
    }
}

#[test]
fn a_change_with_a_failing_call_happens_or_does_not() {
    fail_each_call(false, |name, [old, new, now, on_disk], outcome| {
        let expected = if outcome.is_ok() { new } else { old };
        assert!(now == expected, "{name}: {outcome:?}");
        assert!(on_disk == now, "{name}: on disk it is another array");
    });
}

#[test]
fn a_change_from_which_on_all_calls_fail_happens_or_does_not() {
    fail_each_call(true, |name, [old, new, now, on_disk], outcome| {
        assert!(outcome.is_err() || on_disk == new, "{name}: not on disk");
        assert!([old, new].contains(&now) && [old, new].contains(&on_disk), "{name}: {outcome:?}");
    });
}

#[test]
fn a_damaged_chunk_keeps_a_box_from_being_written_anywhere() {
    let params = params();
    let path = TempPath::new("damaged");
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
    let src = Items { bytes: &src, shape: &[9, 8] };
    let written = write::write(&mut schunk, &geometry, &region, src, &Reading::default(), &writing);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Failure);
    assert!((0..6).all(|n| schunk.chunk(n).unwrap()[..] == before[n]));
}
