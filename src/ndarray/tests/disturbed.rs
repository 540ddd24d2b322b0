//! Arrays that another handle changes between any two system calls of somebody who reads: what is read is of one
//! moment.

use super::faults::{SHAPE, TYPESIZE, make, params};
use crate::chunk::Encoding;
use crate::error::{ErrorKind, Result};
use crate::format::nd_meta::NdMeta;
use crate::frame::FrameOptions;
use crate::io::file::FileIo;
use crate::io::{Features, FileId, Io, IoFile, OpenMode};
use crate::ndarray::select::{self, Selection};
use crate::ndarray::shape::{Region, narrow, signed};
use crate::ndarray::write::{self, Items};
use crate::ndarray::{Geometry, StoredArray, concat, create, open, resize, slice};
use crate::schunk::{Reading, Schunk, Writing};
use crate::testing::TempPath;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

type Change = fn(&mut Schunk, &Geometry);

/// Has another handle change the array at a path before the read after this many others.
struct Meddler {
    path: PathBuf,
    change: Change,
    reads: AtomicI64,
    /// After how many more reads it is changed again, and so on; 0 if never.
    period: i64,
}

impl Meddler {
    fn step(&self) {
        let left = self.reads.fetch_sub(1, Ordering::SeqCst);
        if left != 0 {
            return;
        }
        if self.period > 0 {
            self.reads.store(self.period, Ordering::SeqCst);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut schunk = Schunk::open(&self.path, 0, &FrameOptions::default()).unwrap();
                let (_, geometry) = open(&schunk).unwrap();
                (self.change)(&mut schunk, &geometry);
            });
        });
    }
}

struct MeddlingIo(Arc<Meddler>);

struct MeddlingFile(Arc<dyn IoFile>, Arc<Meddler>);

impl Io for MeddlingIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        Ok(Arc::new(MeddlingFile(FileIo.open(path, mode)?, Arc::clone(&self.0))))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        FileIo.remove(path)
    }

    fn features(&self) -> Features {
        FileIo.features()
    }
}

impl IoFile for MeddlingFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        self.1.step();
        self.0.read_at(position, buf)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(position, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.0.size()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.0.truncate(len)
    }

    fn id(&self) -> Option<FileId> {
        self.0.id()
    }
}

/// What is added to all items.
const MORE: u32 = 1000;
/// Rows that are left after the other change.
const FEW: i64 = 5;

const CHANGES: [(&str, Change); 2] = [
    ("other items", |schunk, geometry| {
        let items: Vec<u8> = (1..=110).flat_map(|n: u32| (n + MORE).to_le_bytes()).collect();
        let (params, all) = (params(), Region::all(geometry));
        let writing = Writing::new(Encoding::new(&params));
        let src = Items { bytes: &items, shape: geometry.shape() };
        write::write(schunk, geometry, &all, src, &Reading::default(), &writing).unwrap();
    }),
    ("fewer rows", |schunk, geometry| {
        resize::resize(schunk, geometry, &[FEW, SHAPE[1]], None, &params()).unwrap();
    }),
];

/// Rows and columns that are read.
const ROWS: [i64; 4] = [9, 0, 4, 6];
const COLUMNS: [i64; 3] = [7, 1, 2];

type Places = fn() -> Vec<(i64, i64)>;
type Read = fn(&Schunk, &Geometry, &mut [u8]) -> Result<()>;

/// A name, how the items are read, their places, and what becomes of those that are gone: an error, or zeros.
const READS: [(&str, Read, Places, Option<ErrorKind>); 3] = [
    (
        "box",
        |schunk, geometry, dest| {
            slice::read(schunk, geometry, &Region::new(&[1, 2], &[10, 9]), dest, &[9, 7], &Reading::default())
        },
        || (1..10).flat_map(|i| (2..9).map(move |j| (i, j))).collect(),
        None,
    ),
    (
        "selection",
        |schunk, geometry, dest| {
            let selection = Selection::new(geometry, &[&ROWS, &COLUMNS]).unwrap();
            select::read(schunk, geometry, &selection, dest, &[4, 3], &Reading::default())
        },
        || ROWS.iter().flat_map(|&i| COLUMNS.iter().map(move |&j| (i, j))).collect(),
        Some(ErrorKind::InvalidIndex),
    ),
    (
        "items",
        |schunk, geometry, dest| {
            let coords: Vec<i64> = (0..4).map(|n| ROWS[n] * SHAPE[1] + COLUMNS[n % 3]).collect();
            select::read_sparse(schunk, geometry, &coords, dest, &Reading::default())
        },
        || (0..4).map(|n| (ROWS[n], COLUMNS[n % 3])).collect(),
        Some(ErrorKind::InvalidParam),
    ),
];

/// How an array in a file or directory is changed while it is read.
struct Disturbance {
    dir: bool,
    change: Change,
    read: Read,
    /// The number of the read of the system before which the change happens.
    before: i64,
}

impl Disturbance {
    /// Reads a new array; returns the outcome with the items, and whether the change happened meanwhile.
    fn read(&self, name: &str, nitems: usize) -> (Result<Vec<u32>>, bool) {
        let path = TempPath::new(name);
        drop(make(&path.0, self.dir, &FrameOptions::default()));
        let reads = AtomicI64::new(-1);
        let meddler = Arc::new(Meddler { path: path.0.clone(), change: self.change, reads, period: 0 });
        let io = Arc::new(MeddlingIo(Arc::clone(&meddler)));
        let schunk = Schunk::open(&path.0, 0, &FrameOptions { io, ..FrameOptions::default() }).unwrap();
        let (_, geometry) = open(&schunk).unwrap();
        let mut dest = vec![0xee; nitems * TYPESIZE];
        meddler.reads.store(self.before, Ordering::SeqCst);
        let outcome = (self.read)(&schunk, &geometry, &mut dest);
        let happened = meddler.reads.swap(-1, Ordering::SeqCst) < 0;
        let items = dest.chunks_exact(4).map(|item| u32::from_le_bytes(item.try_into().unwrap()));
        (outcome.map(|()| items.collect()), happened)
    }
}

/// Has the change happen before one read of the system after the other, until there are no more: what is read is the
/// `old` items or the `new` ones, or, if these are gone, there is this error.
fn check_disturbed(
    what: &str,
    mut disturbance: Disturbance,
    old: &[u32],
    new: &std::result::Result<Vec<u32>, ErrorKind>,
) {
    let mut seen = [0; 2];
    loop {
        let (outcome, happened) = disturbance.read(what, old.len());
        let outcome = outcome.map_err(|e| e.kind());
        let is_new = outcome.as_deref() != Ok(old);
        if is_new {
            assert_eq!(&outcome, new, "{what}, read {}", disturbance.before);
        }
        assert!(happened || !is_new, "{what}, read {}: changed before it was", disturbance.before);
        seen[usize::from(is_new)] += 1;
        if !happened {
            break;
        }
        disturbance.before += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 2, "{what}: {seen:?}");
}

#[test]
fn what_is_read_is_of_one_moment() {
    let item = |&(i, j): &(i64, i64)| u32::try_from(i * SHAPE[1] + j + 1).unwrap();
    for dir in [false, true] {
        for (change_name, change) in CHANGES {
            for (read_name, read, places, gone) in READS {
                let old: Vec<u32> = places().iter().map(item).collect();
                let new = match (change_name, gone) {
                    ("other items", _) => Ok(old.iter().map(|item| item + MORE).collect()),
                    (_, None) => {
                        Ok(places().iter().map(|at| if at.0 < FEW { item(at) } else { 0 }).collect())
                    }
                    (_, Some(gone)) => Err(gone),
                };
                let disturbance = Disturbance { dir, change, read, before: 0 };
                check_disturbed(&format!("{read_name}, {change_name}"), disturbance, &old, &new);
            }
        }
    }
}

/// How four items of the first rows are read: in boxes, by lists, by number, and through the super-chunk.
const FIRST_ROWS: [(&str, Read); 5] = [
    ("box", |schunk, geometry, dest| {
        slice::read(schunk, geometry, &Region::new(&[0, 0], &[2, 2]), dest, &[2, 2], &Reading::default())
    }),
    ("selection", |schunk, geometry, dest| {
        let selection = Selection::new(geometry, &[&[0, 1], &[0, 1]]).unwrap();
        select::read(schunk, geometry, &selection, dest, &[2, 2], &Reading::default())
    }),
    ("items", |schunk, geometry, dest| {
        select::read_sparse(schunk, geometry, &[0, 1, 10, 11], dest, &Reading::default())
    }),
    ("slice of the super-chunk", |schunk, _, dest| {
        let (first, second) = dest.split_at_mut(2 * TYPESIZE);
        schunk.get_slice(0, 2, first, &Reading::default())?;
        schunk.get_slice(3, 5, second, &Reading::default())
    }),
    ("items of the super-chunk", |schunk, _, dest| {
        schunk.get_sparse(&[0, 1, 3, 4], dest, &Reading::default())
    }),
];

/// Counts in an item of another chunk.
fn count_elsewhere(schunk: &mut Schunk, geometry: &Geometry) {
    let (region, mut item) = (Region::new(&[6, 1], &[7, 2]), [0; TYPESIZE]);
    slice::read(schunk, geometry, &region, &mut item, &[1, 1], &Reading::default()).unwrap();
    let (params, more) = (params(), u32::from_le_bytes(item) + 1);
    let (reading, writing) = (Reading::default(), Writing::new(Encoding::new(&params)));
    let src = Items { bytes: &more.to_le_bytes(), shape: &[1, 1] };
    write::write(schunk, geometry, &region, src, &reading, &writing).unwrap();
}

#[test]
fn changes_elsewhere_again_and_again_do_not_keep_anybody_from_reading() {
    for dir in [false, true] {
        let path = TempPath::new("elsewhere");
        drop(make(&path.0, dir, &FrameOptions::default()));
        for period in 3..9 {
            let (change, reads): (Change, _) = (count_elsewhere, AtomicI64::new(-1));
            let meddler = Arc::new(Meddler { path: path.0.clone(), change, reads, period });
            let io = Arc::new(MeddlingIo(Arc::clone(&meddler)));
            let schunk = Schunk::open(&path.0, 0, &FrameOptions { io, ..FrameOptions::default() }).unwrap();
            let (_, geometry) = open(&schunk).unwrap();
            for (read_name, read) in FIRST_ROWS {
                meddler.reads.store(0, Ordering::SeqCst);
                let mut dest = [0; 4 * TYPESIZE];
                read(&schunk, &geometry, &mut dest).unwrap();
                meddler.reads.store(-1, Ordering::SeqCst);
                let items = [1u32, 2, 11, 12].map(u32::to_le_bytes).concat();
                assert_eq!(dest[..], items, "{read_name}, directory: {dir}, each {period} reads");
            }
        }
    }
}

/// A list without items, for an array of `shape` and chunks as those of `geometry`, but one row less if they are
/// `other`.
fn list_of(shape: [u64; 2], geometry: &Geometry, other: bool) -> (Schunk, Geometry) {
    let meta = NdMeta {
        shape: signed(&shape),
        chunkshape: narrow(&[geometry.chunkshape()[0] - u64::from(other), geometry.chunkshape()[1]]),
        blockshape: narrow(geometry.blockshape()),
        dtype: None,
        dtype_format: 0,
    };
    let mut schunk = Schunk::in_memory(params().to_frame().unwrap());
    let geometry = Geometry::from_meta(&meta).unwrap();
    create::prepare(&mut schunk, &geometry, &meta, &[]).unwrap();
    (schunk, geometry)
}

/// Makes an array of the first rows and columns of `source`, with chunks as [`list_of`] says.
fn slice_of(source: &Schunk, geometry: &Geometry, other: bool, reading: &Reading<'_>) -> Result<Vec<u8>> {
    let (mut made, made_geometry) = list_of([8, 10], geometry, other);
    let params = params();
    let writing = Writing::new(Encoding::new(&params));
    let source = StoredArray { schunk: source, geometry, reading };
    create::fill_from_array(&mut made, &made_geometry, source, &[0, 0], &writing)?;
    all_items(&made, &made_geometry)
}

/// Puts all of `source` after an array without columns, with chunks as [`list_of`] says.
fn joined_to_nothing(
    source: &Schunk,
    geometry: &Geometry,
    other: bool,
    reading: &Reading<'_>,
) -> Result<Vec<u8>> {
    let (mut made, empty) = list_of([11, 0], geometry, other);
    let params = params();
    let writing = Writing::new(Encoding::new(&params));
    let source = StoredArray { schunk: source, geometry, reading };
    let joined = concat::extend(&mut made, &empty, source, 1, &Reading::default(), &writing)?;
    all_items(&made, &joined)
}

fn all_items(schunk: &Schunk, geometry: &Geometry) -> Result<Vec<u8>> {
    let mut items = vec![0xee; usize::try_from(geometry.nitems()).unwrap() * TYPESIZE];
    let all = Region::all(geometry);
    slice::read(schunk, geometry, &all, &mut items, geometry.shape(), &Reading::default())?;
    Ok(items)
}

type ReadAll = fn(&Schunk, &Geometry, &Reading<'_>) -> Result<Vec<u8>>;

/// Ways to read the first rows of an array, or all of them.
const READ_ALL: [(&str, ReadAll); 7] = [
    ("box", |schunk, geometry, reading| {
        let mut dest = vec![0xee; 110 * TYPESIZE];
        let region = Region::new(&[0, 0], &[11, 10]);
        slice::read(schunk, geometry, &region, &mut dest, &[11, 10], reading).map(|()| dest)
    }),
    ("selection", |schunk, geometry, reading| {
        let (rows, columns): (Vec<i64>, Vec<i64>) = ((0..11).collect(), (0..10).collect());
        let mut dest = vec![0xee; 110 * TYPESIZE];
        let selection = Selection::new(geometry, &[&rows, &columns])?;
        select::read(schunk, geometry, &selection, &mut dest, &[11, 10], reading).map(|()| dest)
    }),
    ("items of the first row", |schunk, geometry, reading| {
        let mut dest = vec![0xee; 10 * TYPESIZE];
        let coords: Vec<i64> = (0..10).collect();
        select::read_sparse(schunk, geometry, &coords, &mut dest, reading).map(|()| dest)
    }),
    ("slice", |schunk, geometry, reading| slice_of(schunk, geometry, false, reading)),
    ("slice with other chunks", |schunk, geometry, reading| slice_of(schunk, geometry, true, reading)),
    ("join", |schunk, geometry, reading| joined_to_nothing(schunk, geometry, false, reading)),
    ("join with other chunks", |schunk, geometry, reading| {
        joined_to_nothing(schunk, geometry, true, reading)
    }),
];

/// Gives the array five more columns, so that most of its chunks get other numbers.
fn widen(schunk: &mut Schunk, geometry: &Geometry) {
    let shape = signed(geometry.shape());
    resize::resize(schunk, geometry, &[shape[0], shape[1] + 5], None, &params()).unwrap();
}

#[test]
fn items_are_found_while_chunks_get_other_numbers() {
    let items: Vec<u8> = (1..=110u32).flat_map(u32::to_le_bytes).collect();
    for dir in [false, true] {
        for (name, read) in READ_ALL {
            for before in 0.. {
                let path = TempPath::new("numbers");
                drop(make(&path.0, dir, &FrameOptions::default()));
                let reads = AtomicI64::new(-1);
                let meddler = Arc::new(Meddler { path: path.0.clone(), change: widen, reads, period: 0 });
                let io = Arc::new(MeddlingIo(Arc::clone(&meddler)));
                let options = FrameOptions { io, ..FrameOptions::default() };
                let schunk = Schunk::open(&path.0, 0, &options).unwrap();
                let (_, geometry) = open(&schunk).unwrap();
                meddler.reads.store(before, Ordering::SeqCst);
                let got = read(&schunk, &geometry, &Reading::default()).unwrap();
                let what = format!("{name}, directory: {dir}, read {before}");
                assert!(got == items[..got.len()], "{what}");
                if meddler.reads.swap(-1, Ordering::SeqCst) >= 0 {
                    assert!(before > 0, "{what}");
                    break;
                }
            }
        }
    }
}

#[test]
fn items_are_found_by_the_shape_that_goes_with_the_chunks() {
    let items: Vec<u8> = (1..=110u32).flat_map(u32::to_le_bytes).collect();
    for (dir, locking) in [(false, false), (false, true), (true, false), (true, true)] {
        for (name, read) in READ_ALL {
            let path = TempPath::new("shape");
            let options = FrameOptions { locking, ..FrameOptions::default() };
            let (mut writer, geometry) = make(&path.0, dir, &options);
            let schunk = Schunk::open(&path.0, 0, &options).unwrap();
            let reading = Reading { as_of: Some(schunk.change_tick()), ..Reading::default() };
            widen(&mut writer, &geometry);
            // As another thread does that reads through the same handle.
            assert_eq!(schunk.refresh(), Ok(true));
            let got = read(&schunk, &geometry, &reading).unwrap();
            assert!(got == items[..got.len()], "{name}, directory: {dir}, locking: {locking}");
        }
    }
}
