//! Frames that several processes use: one is killed while it writes, or both libraries share a file.
//!
//! Child processes are forks of the test, so each test forks before it starts threads of its own.

#![cfg(target_os = "linux")]

mod common;

use std::ffi::CString;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use blosc2::chunk;
use blosc2::format::frame_header::FrameParams;
use blosc2::format::metalayers::Metalayers;
use blosc2::frame::{Frame, FrameOptions};
use blosc2::io::dirs;
use common::OURS;
use common::b2nd_api::{ArrayApi, Recipe};
use common::schunk_api::Place;
use common::temp::TempPath;
use common::theirs::{Theirs, api};

fn params() -> FrameParams {
    FrameParams {
        typesize: 4,
        clevel: 5,
        splitmode: 4,
        filters: [0, 0, 0, 0, 0, 1],
        ..FrameParams::default()
    }
}

/// Uncompressed size of all chunks but where another is given, in bytes.
const SIZE: usize = 400;

/// A chunk whose bytes depend on `seed`.
fn make(seed: usize) -> Vec<u8> {
    let data: Vec<u8> =
        (0..SIZE / 4).flat_map(|i| u32::try_from(seed * 1000 + i * i).unwrap().to_le_bytes()).collect();
    let params = chunk::CParams { typesize: 4, ..chunk::CParams::default() };
    let mut dest = vec![0; data.len() + 32];
    let n = chunk::compress(&params, &data, &mut dest).unwrap();
    dest.truncate(n);
    dest
}

fn zeros() -> Vec<u8> {
    let mut dest = vec![0; 32];
    let params = chunk::CParams { typesize: 4, ..chunk::CParams::default() };
    chunk::special_chunk(&params, SIZE, chunk::SpecialValue::Zeros, &mut dest).unwrap();
    dest
}

/// The seed of a chunk that [`make`] made; fails for all that it did not make.
fn seed_of(bytes: &[u8]) -> usize {
    let mut data = vec![0; SIZE];
    assert_eq!(chunk::decompress(bytes, &mut data), Ok(SIZE));
    let seed = usize::try_from(u32::from_le_bytes(data[..4].try_into().unwrap())).unwrap() / 1000;
    assert!(bytes == make(seed), "torn chunk");
    seed
}

/// A child process.
struct Child(libc::pid_t);

/// What became of a child process.
#[derive(Debug, PartialEq)]
enum Fate {
    Running,
    Stopped,
    Exited(i32),
    Killed,
}

impl Child {
    /// Runs `work` in a child process, which exits with 0, or with 1 after a panic.
    fn fork(work: impl FnOnce()) -> Child {
        // SAFETY: the child only runs `work`, which uses no thread or lock of the parent's, and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork");
        if pid == 0 {
            let code = i32::from(catch_unwind(AssertUnwindSafe(work)).is_err());
            // SAFETY: ends the process.
            unsafe { libc::_exit(code) };
        }
        Child(pid)
    }

    fn wait(&self, options: i32) -> Fate {
        let mut status = 0;
        // SAFETY: waits for a child of this process.
        let pid = unsafe { libc::waitpid(self.0, &mut status, options) };
        assert!(pid >= 0, "waitpid");
        match () {
            () if pid == 0 => Fate::Running,
            () if libc::WIFSTOPPED(status) => Fate::Stopped,
            () if libc::WIFSIGNALED(status) => Fate::Killed,
            () => Fate::Exited(libc::WEXITSTATUS(status)),
        }
    }

    /// Lets the child go on until it enters or leaves a system call.
    fn step(&self) {
        // SAFETY: traces a stopped child of this process.
        let code = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, self.0, 0, 0) };
        assert_eq!(code, 0, "ptrace");
    }

    fn kill(&self) {
        // SAFETY: signals a child of this process that was not waited for yet.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        assert_eq!(self.wait(0), Fate::Killed);
    }
}

/// Exit code of a child that may not be traced.
const UNTRACED: i32 = 77;

/// A child process that stops before `work`, to be traced.
fn traced(work: impl FnOnce()) -> Child {
    Child::fork(|| {
        // SAFETY: asks to be traced by the parent, and stops.
        unsafe {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                libc::_exit(UNTRACED);
            }
            libc::raise(libc::SIGSTOP);
        }
        work();
    })
}

/// All that a reader can see of a frame.
#[derive(Debug, PartialEq)]
struct Seen {
    chunks: Vec<Vec<u8>>,
    meta: Vec<Vec<u8>>,
    vlmeta: Vec<Vec<u8>>,
    nbytes: u64,
}

fn see(path: &Path) -> Seen {
    let frame = Frame::open(path, 0, &FrameOptions::default()).unwrap();
    let content = |layers: &Metalayers| layers.iter().map(|layer| layer.content.clone()).collect();
    Seen {
        chunks: (0..frame.nchunks()).map(|i| frame.chunk(i).unwrap().into_owned()).collect(),
        meta: content(&frame.metalayers()),
        vlmeta: content(&frame.vlmetalayers()),
        nbytes: frame.nbytes(),
    }
}

fn build(path: &Path, sparse: bool) {
    let options = FrameOptions::default();
    let create = if sparse { Frame::create_dir } else { Frame::create_file };
    let mut frame = create(path, params(), &options).unwrap();
    frame.meta_add(b"m", b"hello").unwrap();
    frame.vlmeta_add(b"v", vec![7; 70]).unwrap();
    for i in 0..6 {
        frame.append(&make(i)).unwrap();
    }
    frame.append(&zeros()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    let _ = dirs::remove_frame(to);
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

type Operation = (&'static str, fn(&Path));

fn change<R>(path: &Path, change: impl FnOnce(&mut Frame) -> blosc2::Result<R>) {
    change(&mut Frame::open(path, 0, &FrameOptions::default()).unwrap()).unwrap();
}

const OPERATIONS: &[Operation] = &[
    ("append", |path| change(path, |f| f.append(&make(100)))),
    ("insert", |path| change(path, |f| f.insert(1, &make(100)))),
    ("update", |path| change(path, |f| f.update(1, &make(100)))),
    ("update to zeros", |path| change(path, |f| f.update(1, &zeros()))),
    ("delete", |path| change(path, |f| f.delete(2))),
    ("reorder", |path| change(path, |f| f.reorder(&[6, 5, 4, 3, 2, 1, 0]))),
    ("meta update", |path| change(path, |f| f.meta_update(b"m", b"HELLO"))),
    ("vlmeta add", |path| change(path, |f| f.vlmeta_add(b"w", vec![9; 90]))),
    ("vlmeta delete", |path| change(path, |f| f.vlmeta_delete(b"v"))),
];

/// Kills `operation` at each system call in turn; returns how many there are, or `None` if nothing may be traced here.
fn kill_everywhere(base: &Path, work: &Path, (name, operation): Operation) -> Option<usize> {
    let old = see(base);
    copy(base, work);
    operation(work);
    let new = see(work);
    assert_ne!(old, new, "{name}");
    for stops in 1.. {
        copy(base, work);
        let child = traced(|| operation(work));
        match child.wait(0) {
            Fate::Exited(UNTRACED) => return None,
            fate => assert_eq!(fate, Fate::Stopped),
        }
        let mut fate = Fate::Stopped;
        for _ in 0..stops {
            child.step();
            fate = child.wait(0);
            if fate != Fate::Stopped {
                break;
            }
        }
        let ended = fate == Fate::Exited(0);
        if !ended {
            assert_eq!(fate, Fate::Stopped, "{name}, stop {stops}");
            child.kill();
        }
        let now = see(work);
        assert!(now == old || now == new, "{name}, killed at stop {stops}: neither old nor new");
        let mut frame = Frame::open(work, 0, &FrameOptions::default()).unwrap();
        frame.append(&make(200)).unwrap_or_else(|e| panic!("{name}, killed at stop {stops}, append: {e}"));
        drop(frame);
        assert_eq!(see(work).chunks.last(), Some(&make(200)), "{name}, killed at stop {stops}");
        if ended {
            assert!(now == new, "{name}");
            return Some(stops);
        }
    }
    unreachable!("the loop ends with the operation")
}

#[test]
fn a_process_killed_at_any_system_call_leaves_the_old_or_the_new_frame() {
    for sparse in [false, true] {
        let (base, work) =
            (TempPath::new(&format!("base-{sparse}")), TempPath::new(&format!("work-{sparse}")));
        build(&base.0, sparse);
        for &operation in OPERATIONS {
            let Some(stops) = kill_everywhere(&base.0, &work.0, operation) else {
                common::skipped("processes that are killed: they may not be traced here");
                return;
            };
            assert!(stops > 10, "{}: only {stops} stops", operation.0);
        }
    }
}

#[test]
fn a_process_killed_while_it_saves_leaves_the_old_or_the_new_file() {
    let (base, work) = (TempPath::new("save-base"), TempPath::new("save-work"));
    build(&base.0, false);
    let save: fn(&Path) = |path| {
        let mut frame = Frame::create_in_memory(params()).unwrap();
        for i in 0..9 {
            frame.append(&make(300 + i)).unwrap();
        }
        frame.write_file(path, &blosc2::io::file::FileIo).unwrap();
    };
    if kill_everywhere(&base.0, &work.0, ("save", save)).is_none() {
        common::skipped("processes that are killed: they may not be traced here");
    }
    // What a killed process leaves beside the file.
    let name = format!("{}.", work.0.file_name().unwrap().to_str().unwrap());
    for entry in fs::read_dir(work.0.parent().unwrap()).unwrap().flatten() {
        if entry.file_name().to_str().is_some_and(|other| other.starts_with(&name)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn locking() -> FrameOptions {
    FrameOptions { locking: true, ..FrameOptions::default() }
}

/// Appends `n` chunks with seeds from `first` on.
fn append_ours(path: &Path, first: usize, n: usize, options: &FrameOptions) {
    let mut frame = Frame::open(path, 0, options).unwrap();
    for i in first..first + n {
        frame.append(&make(i)).unwrap();
    }
}

fn append_theirs(path: &Path, first: usize, n: usize, locking: bool) {
    let api = api().unwrap();
    let frame = Theirs::open(&api, path, locking);
    for i in first..first + n {
        assert!(frame.append(&make(i)) > 0);
    }
}

const MANY: usize = 150;

#[test]
fn two_processes_with_both_libraries_append_to_one_frame() {
    if api().is_none() {
        return;
    }
    for sparse in [false, true] {
        let path = TempPath::new(&format!("both-{sparse}"));
        build(&path.0, sparse);
        let theirs = Child::fork(|| append_theirs(&path.0, 1000, MANY, true));
        append_ours(&path.0, 2000, MANY, &locking());
        assert_eq!(theirs.wait(0), Fate::Exited(0));
        let frame = Frame::open(&path.0, 0, &locking()).unwrap();
        assert_eq!(frame.nchunks(), 7 + 2 * MANY);
        let seeds: Vec<usize> = (7..frame.nchunks()).map(|i| seed_of(&frame.chunk(i).unwrap())).collect();
        for first in [1000, 2000] {
            let one: Vec<usize> = seeds.iter().copied().filter(|seed| seed / 1000 == first / 1000).collect();
            assert_eq!(one, (first..first + MANY).collect::<Vec<_>>());
        }
    }
}

/// Reads the chunks behind the first seven of a frame that a child process appends to, until it has all.
fn follow(child: &Child, len: impl Fn() -> usize, chunk: impl Fn(usize) -> Option<Vec<u8>>, may_fail: bool) {
    let (mut known, mut running) = (7, true);
    while known < 7 + MANY {
        // Asked first: what is there after the end of the child is all there is.
        if running {
            running = match child.wait(libc::WNOHANG) {
                Fate::Running => true,
                fate => {
                    assert_eq!(fate, Fate::Exited(0));
                    false
                }
            };
        }
        let now = len();
        assert!(now >= known, "chunks disappeared");
        assert!(running || now == 7 + MANY, "{now} chunks at the end");
        for i in (known..now).chain([now - 1]).filter(|&i| i >= 7) {
            match chunk(i) {
                Some(bytes) => assert_eq!(seed_of(&bytes), 1000 + i - 7),
                None => assert!(may_fail && running, "chunk {i} cannot be read"),
            }
        }
        known = now;
    }
    if running {
        assert_eq!(child.wait(0), Fate::Exited(0));
    }
}

#[test]
fn our_reader_follows_a_writer_of_the_c_library() {
    if api().is_none() {
        return;
    }
    for (sparse, lock) in [(false, true), (true, true), (false, false), (true, false)] {
        let path = TempPath::new(&format!("follow-theirs-{sparse}-{lock}"));
        build(&path.0, sparse);
        let options = if lock { locking() } else { FrameOptions::default() };
        let frame = Frame::open(&path.0, 0, &options).unwrap();
        let child = Child::fork(|| append_theirs(&path.0, 1000, MANY, lock));
        let len = || {
            let refreshed = frame.refresh();
            assert!(refreshed.is_ok() || !lock, "{refreshed:?}");
            frame.nchunks()
        };
        follow(&child, len, |i| frame.chunk(i).ok().map(|bytes| bytes.into_owned()), !lock);
    }
}

#[test]
fn a_reader_of_the_c_library_follows_our_writer() {
    let Some(api) = api() else { return };
    for (sparse, lock) in [(false, true), (true, true), (false, false), (true, false)] {
        let path = TempPath::new(&format!("follow-ours-{sparse}-{lock}"));
        build(&path.0, sparse);
        let options = if lock { locking() } else { FrameOptions::default() };
        let frame = Theirs::open(&api, &path.0, lock);
        let child = Child::fork(|| append_ours(&path.0, 1000, MANY, &options));
        let len = || {
            assert!(frame.refresh() >= 0 || !lock);
            frame.nchunks()
        };
        follow(&child, len, |i| frame.chunk(i, false).ok(), !lock);
    }
}

/// Columns of the array that a child process appends to.
const COLUMNS: usize = 5;
/// Rows that are there before, and that each of `APPENDS` calls adds.
const ROWS: usize = 7;
const APPENDS: usize = 60;

/// Rows of an array in which each item holds the number of its row, starting from 1.
fn rows(range: std::ops::Range<usize>) -> Vec<u8> {
    range.flat_map(|row| i64::try_from(row + 1).unwrap().to_le_bytes().repeat(COLUMNS)).collect()
}

fn recipe(path: &Path, sparse: bool) -> Recipe {
    let urlpath = Some(CString::new(path.to_str().unwrap()).unwrap());
    Recipe {
        shape: vec![i64::try_from(ROWS).unwrap(), i64::try_from(COLUMNS).unwrap()],
        chunkshape: vec![16, 3],
        blockshape: vec![4, 2],
        dtype: Some(c"<i8"),
        dtype_format: 0,
        metalayers: Vec::new(),
        place: Place { contiguous: !sparse, urlpath },
        cparams: OURS.cparams(),
        // SAFETY: no preconditions.
        dparams: unsafe { (OURS.f.blosc2_get_blosc2_dparams_defaults)() },
    }
}

/// Appending is growing and writing, and nobody waits for each other: the last rows may still be zeros, those before
/// are as they were written.
#[test]
fn a_reader_without_locks_follows_a_writer_of_an_array() {
    let api = ArrayApi::of(&OURS);
    for sparse in [false, true] {
        let path = TempPath::new(&format!("array-{sparse}"));
        let ctx = api.ctx(&recipe(&path.0, sparse)).unwrap();
        drop(api.build(&ctx, &rows(0..ROWS)).1.unwrap());
        let url = CString::new(path.0.to_str().unwrap()).unwrap();
        let mut reader = api.open(&url).1.unwrap();
        let child = Child::fork(|| {
            let mut writer = api.open(&url).1.unwrap();
            for n in 1..=APPENDS {
                assert_eq!(writer.append(&rows(n * ROWS..(n + 1) * ROWS), 0), 0);
            }
        });
        let (mut known, mut running) = (ROWS, true);
        while known < (APPENDS + 1) * ROWS || running {
            // Asked first: what is there after the end of the child is all there is.
            if running {
                running = match child.wait(libc::WNOHANG) {
                    Fate::Running => true,
                    fate => {
                        assert_eq!(fate, Fate::Exited(0));
                        false
                    }
                };
            }
            assert!(reader.refresh() >= 0);
            let shape = reader.shape();
            let now = usize::try_from(shape[0]).unwrap();
            assert!(now >= known, "rows disappeared");
            assert!(running || now == (APPENDS + 1) * ROWS, "{now} rows at the end");
            let mut seen = vec![0xee; now * COLUMNS * 8];
            assert_eq!(reader.get_slice(&[0, 0], &shape, &shape, &mut seen), 0, "{now} rows");
            for (i, (item, expected)) in seen.chunks_exact(8).zip(rows(0..now).chunks_exact(8)).enumerate() {
                let in_progress = running && i / COLUMNS >= now - ROWS && item == [0; 8];
                assert!(item == expected || in_progress, "sparse {sparse}: row {} of {now}", i / COLUMNS);
            }
            known = now;
        }
    }
}
