//! Each write, truncation, removal and opening for writing fails in turn, completely or half-way, once or for good.

use super::*;
use crate::chunk::source::BlockSource;
use crate::frame::journal::Undo;
use crate::io::file::PlainFile;

/// What happens at the call with the chosen number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// That call fails and does nothing; later ones work.
    Once,
    /// That call writes half, or nothing if it is no write, and fails; later ones work.
    Half,
    /// As `Half`, and no later call does anything: the process is gone, or the device for a while.
    Kill,
}

struct Plan {
    /// Whether calls are counted.
    begun: AtomicBool,
    calls: AtomicUsize,
    at: usize,
    fault: Fault,
    /// See [`Features`].
    journal: bool,
}

impl Plan {
    fn new(at: usize, fault: Fault) -> Plan {
        Plan { begun: AtomicBool::new(true), calls: AtomicUsize::new(0), at, fault, journal: true }
    }

    /// Counts a call; the part of it, in halves, that is to be done: 2 is all.
    fn next(&self) -> usize {
        if !self.begun.load(Ordering::SeqCst) {
            return 2;
        }
        let n = self.calls.fetch_add(1, Ordering::SeqCst);
        match (n == self.at, n > self.at, self.fault) {
            (true, _, Fault::Once) => 0,
            (true, _, _) => 1,
            (_, true, Fault::Kill) => 0,
            _ => 2,
        }
    }
}

#[derive(Clone)]
struct FaultyIo(Arc<Plan>);

struct FaultyFile {
    inner: PlainFile,
    plan: Arc<Plan>,
}

const INJECTED: Error = Error::new(ErrorKind::FileWrite, "injected");

impl Io for FaultyIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        if mode != OpenMode::Read && self.0.next() < 2 {
            return Err(INJECTED);
        }
        Ok(Arc::new(FaultyFile { inner: PlainFile::open(path, mode)?, plan: Arc::clone(&self.0) }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        if self.0.next() < 2 { Err(INJECTED) } else { FileIo.remove(path) }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        if self.0.next() < 2 { Err(INJECTED) } else { FileIo.rename(from, to) }
    }

    fn features(&self) -> Features {
        Features { journal: self.0.journal, ..FileIo.features() }
    }
}

impl FaultyFile {
    /// Whether a write is one step, as file systems do it: over bytes that are there, inside one page. Where the file
    /// ends in a record, no change relies on that.
    fn is_one_step(&self, position: u64, len: usize) -> bool {
        let (size, end) = (self.inner.size().unwrap(), position + len as u64);
        let is_in_page = len > 0 && position / 4096 == (end - 1) / 4096;
        self.plan.journal && is_in_page && end <= size && Undo::find(&self.inner, size).unwrap().is_none()
    }
}

impl IoFile for FaultyFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(position, buf)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let halves = self.plan.next();
        let done = if halves == 1 && self.is_one_step(position, bytes.len()) { 0 } else { halves };
        self.inner.write_at(position, &bytes[..bytes.len() * done / 2])?;
        if halves == 2 { Ok(()) } else { Err(INJECTED) }
    }

    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        if self.plan.next() < 2 { Err(INJECTED) } else { self.inner.truncate(len) }
    }

    fn id(&self) -> Option<crate::io::FileId> {
        self.inner.id()
    }
}

#[test]
fn a_frame_that_cannot_be_appended_to_a_file_leaves_nothing() {
    let path = TempPath::new("append_faults");
    let mut frame = create(Kind::Memory, Path::new(""));
    frame.append(&chunk(400, 1)).unwrap();
    for before in [None, Some(&b"something"[..])] {
        for (at, fault) in (0..4).flat_map(|at| [(at, Fault::Once), (at, Fault::Half)]) {
            let _ = fs::remove_file(&*path);
            if let Some(bytes) = before {
                fs::write(&*path, bytes).unwrap();
            }
            let io = Arc::new(FaultyIo(Arc::new(Plan::new(at, fault))));
            let appended = frame.append_to_file(&path, &FrameOptions { io, ..FrameOptions::default() });
            if appended.is_err() {
                assert_eq!(fs::read(&*path).ok().as_deref(), before, "call {at}, {fault:?}");
            } else {
                assert_eq!(
                    fs::read(&*path).unwrap()[before.map_or(0, <[u8]>::len)..],
                    **frame.buffer().unwrap()
                );
            }
        }
    }
}

/// All that a reader can see of a frame.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(super) meta: Metalayers,
    pub(crate) vlmeta: Metalayers,
    pub(super) nbytes: u64,
}

pub(crate) fn see(path: &Path) -> Seen {
    see_at(path, 0)
}

pub(super) fn see_at(path: &Path, offset: u64) -> Seen {
    see_frame(&Frame::open(path, offset, &FrameOptions::default()).unwrap())
}

/// A back-end whose call number `at` that writes fails half-way and all later ones do nothing; and the number of calls.
pub(crate) fn faulty(at: usize) -> (FrameOptions, impl Fn() -> usize) {
    let plan = Arc::new(Plan::new(at, Fault::Kill));
    let options = FrameOptions { io: Arc::new(FaultyIo(Arc::clone(&plan))), ..FrameOptions::default() };
    (options, move || plan.calls.load(Ordering::SeqCst))
}

pub(crate) fn see_frame(frame: &Frame) -> Seen {
    Seen {
        chunks: contents(frame),
        meta: Metalayers::clone(&frame.metalayers()),
        vlmeta: Metalayers::clone(&frame.vlmetalayers()),
        nbytes: frame.nbytes(),
    }
}

pub(super) type Operation = (&'static str, fn(&mut Frame) -> Result<()>);

pub(super) const OPERATIONS: &[Operation] = &[
    ("append", |f| f.append(&chunk(64, 100)).map(drop)),
    ("append zeros", |f| f.append(&zeros(64)).map(drop)),
    ("append large", |f| f.append(&chunk(5000, 100)).map(drop)),
    ("insert", |f| f.insert(1, &chunk(64, 101)).map(drop)),
    ("update larger", |f| f.update(1, &chunk(300, 102)).map(drop)),
    ("update same", |f| f.update(1, &chunk(64, 102)).map(drop)),
    ("update to zeros", |f| f.update(0, &zeros(64)).map(drop)),
    ("update from zeros", |f| f.update(2, &chunk(64, 103)).map(drop)),
    ("delete first", |f| f.delete(0).map(drop)),
    ("delete last", |f| f.delete(f.nchunks().saturating_sub(1)).map(drop)),
    ("delete zeros", |f| f.delete(2).map(drop)),
    ("reorder", |f| f.reorder(&(0..f.nchunks()).rev().collect::<Vec<_>>())),
    ("meta update", |f| f.meta_update(b"m1", b"HELLO").map(drop)),
    ("vlmeta add", |f| f.vlmeta_add(b"v2", vec![9; 90]).map(drop)),
    ("vlmeta longer", |f| f.vlmeta_update(b"v1", vec![8; 900]).map(drop)),
    ("vlmeta shorter", |f| f.vlmeta_update(b"v1", vec![8; 3]).map(drop)),
    ("vlmeta delete", |f| f.vlmeta_delete(b"v1").map(drop)),
];

const ON_EMPTY: &[Operation] = &[
    ("first append", |f| f.append(&chunk(64, 100)).map(drop)),
    ("meta add", |f| f.meta_add(b"m2", b"world").map(drop)),
    ("fill", |f| f.fill_special(special_kind(), 640, 64, 64).map(drop)),
];

pub(super) fn build(path: &Path, dir: bool, nchunks: usize) {
    let options = FrameOptions::default();
    let mut frame = if dir {
        Frame::create_dir(path, params(), &options).unwrap()
    } else {
        Frame::create_file(path, params(), &options).unwrap()
    };
    frame.meta_add(b"m1", b"hello").unwrap();
    frame.vlmeta_add(b"v1", vec![7; 70]).unwrap();
    for i in 0..nchunks {
        let new = if i == 2 { zeros(64) } else { padded(64, i) };
        frame.append(&new).unwrap();
    }
}

pub(super) fn copy_frame(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn check_operation(base: &Path, operation: Operation) -> usize {
    check_after(base, |_| Ok(()), operation)
}

/// As [`check_operation`], with a handle that did something else before, without a fault.
pub(super) fn check_after(
    base: &Path,
    before: fn(&mut Frame) -> Result<()>,
    (name, operation): Operation,
) -> usize {
    let done = TempPath::new("done");
    copy_frame(base, &done);
    let mut frame = Frame::open(&done, 0, &FrameOptions::default()).unwrap();
    before(&mut frame).unwrap();
    let old = see(&done);
    operation(&mut frame).unwrap();
    let new = see(&done);
    drop(frame);
    let mut most = 0;
    for fault in [Fault::Once, Fault::Half, Fault::Kill] {
        for at in 0.. {
            let path = TempPath::new("fault");
            copy_frame(base, &path);
            let plan = Arc::new(Plan::new(at, fault));
            plan.begun.store(false, Ordering::SeqCst);
            let io = Arc::new(FaultyIo(Arc::clone(&plan)));
            let options = FrameOptions { io, ..FrameOptions::default() };
            let mut frame = Frame::open(&path, 0, &options).unwrap();
            before(&mut frame).unwrap();
            plan.begun.store(true, Ordering::SeqCst);
            let result = operation(&mut frame);
            let calls = plan.calls.load(Ordering::SeqCst);
            let what = format!("{name}, {fault:?} at call {at}");
            let now = see(&path);
            let expected = if result.is_ok() { &new } else { &old };
            if fault == Fault::Kill {
                assert!(now == old || now == new, "{what}: neither old nor new");
            } else {
                assert_eq!(&now, expected, "{what}");
                assert_eq!(&see_frame(&frame), expected, "{what}: this handle");
                // The handle goes on working, and so does a new one.
                if at < calls {
                    let n = frame.append(&chunk(64, 150));
                    let n = n.unwrap_or_else(|e| panic!("{what}: then append: {e}"));
                    assert_eq!(see(&path).chunks.len(), n, "{what}");
                }
            }
            drop(frame);
            let mut next = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
            let before = next.nchunks();
            next.append(&chunk(64, 200)).unwrap_or_else(|e| panic!("{what}: append afterwards: {e}"));
            drop(next);
            let after = see(&path);
            assert_eq!(after.chunks.len(), before + 1, "{what}");
            assert_eq!(after.chunks.last(), Some(&chunk(64, 200)), "{what}");
            if calls <= at {
                assert!(result.is_ok(), "{what}");
                most = most.max(at);
                break;
            }
        }
    }
    most
}

#[test]
fn a_directory_that_does_not_become_a_frame_goes() {
    for fault in [Fault::Once, Fault::Half] {
        for at in 0.. {
            let path = TempPath::new("fault-new");
            let io = Arc::new(FaultyIo(Arc::new(Plan::new(at, fault))));
            let options = FrameOptions { io, ..FrameOptions::default() };
            if Frame::create_dir(&path, params(), &options).is_ok() {
                assert!(at > 1);
                break;
            }
            assert!(!path.exists(), "{fault:?} at call {at}");
        }
    }
}

#[test]
fn whatever_call_fails_the_frame_holds_the_old_or_the_new_content() {
    for dir in [false, true] {
        let base = TempPath::new("base");
        build(&base, dir, 6);
        for &operation in OPERATIONS {
            let calls = check_operation(&base, operation);
            let least = if operation.0 == "meta update" { 1 } else { 4 };
            assert!(calls >= least, "{}: only {calls} calls", operation.0);
        }
        let base = TempPath::new("base");
        build(&base, dir, 0);
        for &operation in ON_EMPTY {
            check_operation(&base, operation);
        }
        let base = TempPath::new("base");
        build(&base, dir, 1);
        for &operation in &OPERATIONS[8..10] {
            check_operation(&base, operation);
        }
    }
}

#[test]
fn what_a_killed_change_left_behind_does_not_spoil_the_next_one() {
    let base = TempPath::new("base");
    build(&base, false, 6);
    // The record of a large change is written in part, far past the end of the frame.
    let (options, _) = faulty(1);
    Frame::open(&base, 0, &options).unwrap().append(&chunk(5000, 100)).unwrap_err();
    let leftover = fs::metadata(&*base).unwrap().len() - len_at(&base);
    assert!(leftover > 5000);
    for &operation in OPERATIONS {
        check_operation(&base, operation);
    }
}

/// Length of the frame at `path`.
fn len_at(path: &Path) -> u64 {
    Frame::open(path, 0, &FrameOptions::default()).unwrap().frame_len()
}

#[test]
fn kill_after_kill_loses_nothing() {
    for dir in [false, true] {
        let mut random = Random::new(31);
        let path = TempPath::new("kills");
        build(&path, dir, 6);
        for round in 0..300 {
            let old = see(&path);
            // The first operations add chunks.
            let first = if old.chunks.len() < 12 { 0 } else { 4 };
            let (name, operation) = OPERATIONS[first + random.below(OPERATIONS.len() - first)];
            let done = TempPath::new("done");
            copy_frame(&path, &done);
            // Some are not possible with what is there.
            let _ = operation(&mut Frame::open(&done, 0, &FrameOptions::default()).unwrap());
            let at = random.below(14);
            let (options, _) = faulty(at);
            let _ = operation(&mut Frame::open(&path, 0, &options).unwrap());
            let now = see(&path);
            assert!(now == old || now == see(&done), "round {round}: {name}, directory {dir}, call {at}");
        }
    }
}

/// Whether the chunks of the frame that `operation` makes of `base` are in their order.
fn in_order_after(base: &Path, operation: fn(&mut Frame) -> Result<()>) -> bool {
    let path = TempPath::new("order");
    copy_frame(base, &path);
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    operation(&mut frame).unwrap();
    frame.offsets().unwrap().iter().filter(|&&at| at >= 0).is_sorted()
}

#[test]
fn moving_the_last_chunks_into_holes_is_as_safe_as_the_rest() {
    let delete: Operation = ("delete with refilling", |f| {
        let every_other: Vec<_> = (1..f.nchunks()).step_by(2).map(|at| at..at + 1).collect();
        f.delete_all(&every_other).map(drop)
    });
    for nchunks in [11, 12, 13, 16, 20] {
        let base = TempPath::new("base");
        build(&base, false, nchunks);
        let most = check_operation(&base, delete);
        assert!(most >= 8, "{nchunks} chunks: holes were not closed, {most} calls");
        assert!(!in_order_after(&base, delete.1), "{nchunks}");
    }
}

#[test]
fn moving_chunks_into_older_holes_is_as_safe_as_the_rest() {
    // So many chunks that the places which the change gives up rest.
    let base = TempPath::new("base");
    build(&base, false, 90);
    {
        let mut frame = Frame::open(&base, 0, &FrameOptions::default()).unwrap();
        for at in 1..=37 {
            frame.delete(at).unwrap();
        }
    }
    let delete: Operation =
        ("delete with refilling", |f| f.delete_all(std::slice::from_ref(&(1..4))).map(drop));
    let most = check_operation(&base, delete);
    assert!(most >= 8, "holes were not closed, {most} calls");
    assert!(!in_order_after(&base, delete.1));
}

#[test]
fn chunks_go_back_to_where_they_were_as_safely_as_the_rest() {
    let base = TempPath::new("base");
    let mut frame = Frame::create_file(&base, params(), &FrameOptions::default()).unwrap();
    for i in 0..2 {
        frame.append(&padded(5000, i)).unwrap();
    }
    let before = frame.offsets().unwrap();
    drop(frame);
    let update: Operation = ("update with refilling", |f| f.update(0, &chunk(5000, 9)).map(drop));
    check_operation(&base, update);
    let mut frame = Frame::open(&base, 0, &FrameOptions::default()).unwrap();
    update.1(&mut frame).unwrap();
    assert_eq!(frame.offsets().unwrap(), before);
    assert_eq!(frame.header().cbytes, 2 * 5032);
}

#[test]
fn compaction_is_as_safe_as_the_rest() {
    // What is moved fits in the hole before it with plenty of room, with the index, without it, or not at all; or there
    // are several holes. There are so many chunks that the places which the change gives up rest.
    let deletions: [fn(&mut Frame) -> Result<()>; 5] = [
        |f| f.delete_all(std::slice::from_ref(&(1..58))).map(drop),
        |f| f.delete_all(std::slice::from_ref(&(1..46))).map(drop),
        |f| f.delete_all(std::slice::from_ref(&(1..44))).map(drop),
        |f| f.delete_all(std::slice::from_ref(&(1..36))).map(drop),
        |f| f.delete_all(&[18..30, 36..48, 54..72]).map(drop),
    ];
    for delete in deletions {
        let base = TempPath::new("base");
        build(&base, false, 78);
        let most = check_operation(&base, ("delete with compaction", delete));
        assert!(most >= 8, "compaction did not run: {most} calls");
        assert!(in_order_after(&base, delete));
    }
}

#[test]
fn chunk_files_get_small_numbers_as_safely_as_the_rest() {
    let base = TempPath::new("base");
    let mut frame = Frame::create_dir(&base, params(), &FrameOptions::default()).unwrap();
    for i in 0..45 {
        frame.append(&short(64, i)).unwrap();
    }
    drop(frame);
    let delete = |f: &mut Frame| f.delete_all(std::slice::from_ref(&(0..43))).map(drop);
    let most = check_operation(&base, ("delete most", delete));
    assert!(most >= 43 + 10, "no file got another number: {most} calls");
    let mut frame = Frame::open(&base, 0, &FrameOptions::default()).unwrap();
    delete(&mut frame).unwrap();
    assert_eq!(frame.offsets().unwrap(), [0, 1]);
}

#[test]
fn last_chunks_go_to_their_places_as_safely_as_the_rest() {
    let base = TempPath::new("base");
    let mut frame = Frame::create_file(&base, params(), &FrameOptions::default()).unwrap();
    for i in 0..3 {
        frame.append(&padded(4000, i)).unwrap();
    }
    frame.append(&zeros(4000)).unwrap();
    drop(frame);
    let operations: &[Operation] = &[
        ("update", |f| f.update(2, &padded(4000, 9)).map(drop)),
        ("update larger", |f| f.update(2, &longer(4000, 9, 500)).map(drop)),
        ("update smaller", |f| f.update(2, &padded(3000, 9)).map(drop)),
        ("update and add", |f| f.update_all(&[(2, &padded(4000, 9)), (3, &padded(4000, 8))]).map(drop)),
        ("update two", |f| f.update_all(&[(1, &longer(4000, 9, 700)), (2, &padded(4000, 8))]).map(drop)),
    ];
    for &operation in operations {
        // Each time, the index is a bit further away from the last chunk.
        let often = |f: &mut Frame| (0..50).try_for_each(|i| f.update(2, &padded(4000, i)).map(drop));
        for before in [|_: &mut Frame| Ok(()), |f: &mut Frame| f.update(2, &padded(4000, 7)).map(drop), often]
        {
            let most = check_after(&base, before, operation);
            assert!(most >= 8, "{}: the chunk stayed where it was, {most} calls", operation.0);
        }
    }
}

#[test]
fn compaction_where_no_chunk_fits_in_a_hole_is_as_safe_as_the_rest() {
    let base = TempPath::new("base");
    build(&base, false, 0);
    {
        let mut frame = Frame::open(&base, 0, &FrameOptions::default()).unwrap();
        for i in 0..20 {
            frame.append(&padded(if i % 2 == 0 { 65 } else { 64 }, i)).unwrap();
        }
        for i in 1..8 {
            frame.delete(i).unwrap();
        }
    }
    let delete = |f: &mut Frame| f.delete_all(&[8..9, 10..11]).map(drop);
    let most = check_operation(&base, ("delete with compaction", delete));
    assert!(most >= 8, "compaction did not run: {most} calls");
    assert!(in_order_after(&base, delete));
}

#[test]
fn a_frame_that_the_c_library_emptied_is_as_safe_as_the_rest() {
    let base = TempPath::new("base");
    build(&base, false, 1);
    Frame::open(&base, 0, &FrameOptions::default()).unwrap().delete(0).unwrap();
    // It still tells of the bytes of the chunks that are gone.
    let mut bytes = fs::read(&*base).unwrap();
    bytes[0x27..0x2f].copy_from_slice(&96u64.to_be_bytes());
    fs::write(&*base, bytes).unwrap();
    for &operation in ON_EMPTY.iter().chain(&OPERATIONS[12..]) {
        check_operation(&base, operation);
    }
}

#[test]
fn the_trailer_follows_the_header_when_an_empty_frame_changes_next() {
    let base = TempPath::new("base");
    build(&base, false, 1);
    let mut left_behind = 0;
    for at in 0.. {
        let path = TempPath::new("emptied");
        copy_frame(&base, &path);
        let plan = Arc::new(Plan::new(at, Fault::Once));
        plan.begun.store(false, Ordering::SeqCst);
        let options = FrameOptions { io: Arc::new(FaultyIo(Arc::clone(&plan))), ..FrameOptions::default() };
        let mut frame = Frame::open(&path, 0, &options).unwrap();
        plan.begun.store(true, Ordering::SeqCst);
        if frame.delete(0).is_err() {
            continue;
        }
        // The area of the chunk was to be given back by a change of its own.
        left_behind += usize::from(frame.snapshot().header.cbytes > 0);
        let is_hit = plan.calls.swap(at + 1, Ordering::SeqCst) > at;
        frame.vlmeta_update(b"v1", vec![8; 3]).unwrap();
        let state = frame.snapshot();
        assert_eq!(state.header.frame_len, (state.header.header_len + state.trailer_len) as u64, "{at}");
        assert_eq!(fs::metadata(&*path).unwrap().len(), state.header.frame_len, "{at}");
        assert_eq!(see(&path).vlmeta[0].content, [8; 3]);
        if !is_hit {
            break;
        }
    }
    assert!(left_behind > 0);
}

/// The start of a chunk, changed.
struct Changed;

impl Derive for Changed {
    fn derive(&self, old: &[u8], source: Option<&dyn BlockSource>, new: &mut Vec<u8>) -> Result<()> {
        assert!(source.is_none(), "small chunks come whole");
        new.clear();
        new.extend_from_slice(old);
        new[40] ^= 0xff;
        Ok(())
    }
}

#[test]
fn holes_are_filled_as_safely_as_the_end_is_moved() {
    let base = TempPath::new("base");
    build(&base, false, 12);
    {
        // The place of chunk 3 becomes a hole, larger than a chunk.
        let mut frame = Frame::open(&base, 0, &FrameOptions::default()).unwrap();
        frame.update(3, &chunk(140, 30)).unwrap();
        frame.update(3, &padded(64, 31)).unwrap();
    }
    let fills: &[Operation] = &[
        ("append", |f| f.append(&chunk(64, 100)).map(drop)),
        ("insert", |f| f.insert(1, &chunk(64, 101)).map(drop)),
        ("update", |f| f.update(5, &chunk(64, 102)).map(drop)),
        ("update together", |f| f.update_all(&[(5, &chunk(64, 102)), (0, &chunk(64, 103))]).map(drop)),
        ("derived", |f| f.update_each([(5, New::Derived(&Changed, &mut Vec::new()))]).map(drop)),
    ];
    for &(name, fill) in fills {
        let path = TempPath::new("filled");
        copy_frame(&base, &path);
        let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
        // What is free is found by the first change that makes a hole.
        frame.update(2, &zeros(64)).unwrap();
        frame.update(2, &zeros(64)).unwrap();
        let end = frame.header().cbytes;
        fill(&mut frame).unwrap();
        let holes = frame
            .offsets()
            .unwrap()
            .iter()
            .filter(|&&at| u64::try_from(at).is_ok_and(|at| at >= end))
            .count();
        assert_eq!(holes, 0, "{name}: a chunk went to the end");
        check_operation(&base, (name, fill));
    }
}

#[test]
fn chunk_files_of_a_change_that_fails_are_removed() {
    let base = TempPath::new("base");
    build(&base, true, 4);
    let names = |path: &Path| {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.collect();
        names.sort();
        names
    };
    for fault in [Fault::Once, Fault::Half] {
        for at in 0.. {
            let path = TempPath::new("fault");
            copy_frame(&base, &path);
            let options = FrameOptions {
                io: Arc::new(FaultyIo(Arc::new(Plan::new(at, fault)))),
                ..FrameOptions::default()
            };
            let mut frame = Frame::open(&path, 0, &options).unwrap();
            if frame.append_all(&[&chunk(64, 50), &chunk(64, 51)]).is_ok() {
                assert!(at > 3, "{fault:?}");
                break;
            }
            assert_eq!(names(&path), names(&base), "{fault:?} at call {at}");
        }
    }
}

#[test]
fn who_looks_while_a_change_is_written_sees_it_once_it_is_complete() {
    let (base, done, path) = (TempPath::new("base"), TempPath::new("done"), TempPath::new("fault"));
    build(&base, false, 6);
    copy_frame(&base, &done);
    copy_frame(&base, &path);
    let append = |path: &Path, at| {
        let (options, calls) = faulty(at);
        let appended = Frame::open(path, 0, &options).unwrap().append(&chunk(64, 100));
        (appended.is_ok(), calls())
    };
    let (appended, calls) = append(&done, usize::MAX);
    assert!(appended);
    // All but the last call, which cuts the file off.
    assert!(!append(&path, calls - 1).0);
    let reader = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    assert_eq!(reader.nchunks(), 6);
    let len = fs::metadata(&*done).unwrap().len();
    fs::File::options().write(true).open(&*path).unwrap().set_len(len).unwrap();
    assert!(fs::read(&*path).unwrap() == fs::read(&*done).unwrap());
    assert_eq!(reader.refresh(), Ok(true));
    assert!(see_frame(&reader) == see(&done));
}

#[test]
fn files_that_are_used_again_are_as_safe_as_new_ones() {
    let replace: fn(&mut Frame) -> Result<()> =
        |f| (0..8).try_for_each(|i| f.update(1, &padded(64 + 60 * (i % 2), i)).map(drop));
    let operations: &[Operation] = &[
        ("update", |f| f.update(5, &chunk(64, 102)).map(drop)),
        ("update larger", |f| f.update(1, &chunk(300, 102)).map(drop)),
        ("update together", |f| f.update_all(&[(5, &chunk(64, 102)), (0, &chunk(64, 103))]).map(drop)),
        ("append", |f| f.append(&chunk(64, 100)).map(drop)),
        ("delete", |f| f.delete(3).map(drop)),
    ];
    let base = TempPath::new("base");
    build(&base, true, 6);
    for &operation in operations {
        check_after(&base, replace, operation);
    }
    let mut frame = Frame::open(&base, 0, &FrameOptions::default()).unwrap();
    replace(&mut frame).unwrap();
    let spares = || spares::slots().filter(|&slot| base.join(spares::name(slot)).exists()).count();
    let before = spares();
    frame.append(&chunk(64, 100)).unwrap();
    assert_eq!(spares(), before - 1);
    drop(frame);
    assert_eq!(spares(), 0);
    // If one cannot be used, or takes the room that is missing, the change succeeds all the same.
    for at in 0..3 {
        let plan = Arc::new(Plan::new(at, Fault::Half));
        plan.begun.store(false, Ordering::SeqCst);
        let options = FrameOptions { io: Arc::new(FaultyIo(Arc::clone(&plan))), ..FrameOptions::default() };
        let mut frame = Frame::open(&base, 0, &options).unwrap();
        replace(&mut frame).unwrap();
        plan.begun.store(true, Ordering::SeqCst);
        frame.update(1, &padded(64, 9)).unwrap();
        assert_eq!(*frame.chunk(1).unwrap(), padded(64, 9));
    }
}

#[test]
fn without_a_journal_a_change_that_fails_is_taken_back_now_or_before_the_next_one_or_at_the_end() {
    let base = TempPath::new("base");
    build(&base, false, 6);
    for &(name, operation) in OPERATIONS {
        let old = see(&base);
        for fault in [Fault::Once, Fault::Half, Fault::Kill] {
            for at in 0.. {
                let path = TempPath::new("fault");
                copy_frame(&base, &path);
                let plan = Arc::new(Plan { journal: false, ..Plan::new(at, fault) });
                let options =
                    FrameOptions { io: Arc::new(FaultyIo(Arc::clone(&plan))), ..FrameOptions::default() };
                let mut frame = Frame::open(&path, 0, &options).unwrap();
                let result = operation(&mut frame);
                let calls = plan.calls.load(Ordering::SeqCst);
                let what = format!("{name}, {fault:?} at call {at}");
                // The device is there again.
                plan.begun.store(false, Ordering::SeqCst);
                if result.is_err() && at % 2 == 0 {
                    drop(frame);
                    assert!(see(&path) == old, "{what}: closed");
                } else if result.is_err() {
                    frame.refresh().unwrap();
                    assert!(see_frame(&frame) == old, "{what}: not what was there before");
                    // Who has read a chunk need not read it again.
                    let chunks = frame.chunks().unwrap();
                    assert!(chunks.are_current(None::<std::iter::Empty<usize>>), "{what}: current");
                    assert!(chunks.are_all_kept(|_| false), "{what}: kept");
                    drop(chunks);
                    let n = frame.append(&chunk(64, 150)).unwrap_or_else(|e| panic!("{what}: append: {e}"));
                    assert_eq!(n, old.chunks.len() + 1, "{what}");
                    let now = see(&path);
                    assert!(now.chunks[..n - 1] == old.chunks && now.meta == old.meta, "{what}");
                }
                if calls <= at {
                    assert!(result.is_ok(), "{what}");
                    break;
                }
            }
        }
    }
}

#[test]
fn what_others_change_after_a_change_that_failed_stays() {
    for (dir, is_taken_back) in [(false, false), (false, true), (true, false), (true, true)] {
        let path = TempPath::new("torn");
        build(&path, dir, 3);
        let plan = Arc::new(Plan::new(0, Fault::Kill));
        plan.begun.store(false, Ordering::SeqCst);
        let options = FrameOptions { io: Arc::new(FaultyIo(Arc::clone(&plan))), ..FrameOptions::default() };
        let mut frame = Frame::open(&path, 0, &options).unwrap();
        frame.vlmeta_update(b"v1", vec![8; 3]).unwrap(); // which opens the file for changes
        plan.begun.store(true, Ordering::SeqCst);
        plan.calls.store(0, Ordering::SeqCst);
        frame.meta_update(b"m1", b"HELLO").unwrap_err();
        // The device is there again.
        plan.begun.store(false, Ordering::SeqCst);
        let mut other = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
        for i in 3..8 {
            other.append(&padded(64, i)).unwrap();
        }
        assert_eq!(frame.refresh(), Ok(true));
        assert_eq!(frame.nchunks(), 8);
        if is_taken_back {
            frame.append(&padded(64, 8)).unwrap();
        }
        drop(frame);
        let now = see(&path);
        assert_eq!(now.chunks.len(), 8 + usize::from(is_taken_back));
        assert_eq!(now.meta[0].content, b"hello");
    }
}

#[test]
fn a_failed_creation_is_reported() {
    for at in 0..3 {
        let path = TempPath::new("create");
        let plan = Arc::new(Plan::new(at, Fault::Half));
        let options = FrameOptions { io: Arc::new(FaultyIo(plan)), ..FrameOptions::default() };
        assert!(Frame::create_file(&path, params(), &options).is_err());
    }
}
