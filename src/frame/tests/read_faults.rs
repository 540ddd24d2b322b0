//! Each read, size query and opening for reading fails in turn, or gives less than it should: whatever is reported as
//! good is right, nothing is damaged, and the handle goes on working.

use super::faults::{OPERATIONS, Seen, build, copy_frame, see, see_frame};
use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The call fails.
    Fail,
    /// A read gives half of the bytes, a file is said to be half as long; other calls fail.
    Short,
}

struct Plan {
    calls: AtomicUsize,
    /// Number of the call that goes wrong; all are fine at `usize::MAX`.
    at: AtomicUsize,
    fault: Fault,
}

impl Plan {
    fn hit(&self) -> Option<Fault> {
        let n = self.calls.fetch_add(1, Ordering::SeqCst);
        (n == self.at.load(Ordering::SeqCst)).then_some(self.fault)
    }

    fn fail(&self) -> Result<()> {
        if self.hit().is_some() { Err(INJECTED) } else { Ok(()) }
    }

    /// The call with number `at`, counted from now on, goes wrong.
    fn arm(&self, at: usize) {
        self.calls.store(0, Ordering::SeqCst);
        self.at.store(at, Ordering::SeqCst);
    }

    /// Nothing goes wrong any more; the number of calls so far.
    fn disarm(&self) -> usize {
        self.at.store(usize::MAX, Ordering::SeqCst);
        self.calls.load(Ordering::SeqCst)
    }
}

const INJECTED: Error = Error::new(ErrorKind::FileRead, "injected");

struct FaultyIo {
    inner: Arc<dyn Io>,
    plan: Arc<Plan>,
}

struct FaultyFile {
    inner: Arc<dyn IoFile>,
    plan: Arc<Plan>,
}

impl Io for FaultyIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        if mode == OpenMode::Read {
            self.plan.fail()?;
        }
        Ok(Arc::new(FaultyFile { inner: self.inner.open(path, mode)?, plan: Arc::clone(&self.plan) }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn features(&self) -> Features {
        self.inner.features()
    }
}

impl IoFile for FaultyFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        let len = buf.len();
        match self.plan.hit() {
            None => self.inner.read_at(position, buf),
            Some(Fault::Fail) => Err(INJECTED),
            Some(Fault::Short) => self.inner.read_at(position, &mut buf[..len / 2]),
        }
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(position, bytes)
    }

    fn size(&self) -> Result<u64> {
        match self.plan.hit() {
            None => self.inner.size(),
            Some(Fault::Fail) => Err(INJECTED),
            Some(Fault::Short) => self.inner.size().map(|size| size / 2),
        }
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.inner.truncate(len)
    }

    fn id(&self) -> Option<crate::io::FileId> {
        self.inner.id()
    }

    unsafe fn bytes(&self, position: u64, len: usize) -> Result<Option<&[u8]>> {
        self.plan.fail()?;
        // SAFETY: the caller's promise.
        unsafe { self.inner.bytes(position, len) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Home {
    File,
    Dir,
    Mapped,
}

fn options(home: Home, fault: Fault) -> (FrameOptions, Arc<Plan>) {
    let plan = Arc::new(Plan { calls: AtomicUsize::new(0), at: AtomicUsize::new(usize::MAX), fault });
    let inner: Arc<dyn Io> = match home {
        Home::File | Home::Dir => Arc::new(FileIo),
        // SAFETY: one frame uses the file.
        Home::Mapped => Arc::new(unsafe { MmapIo::new(MmapMode::Update, 1) }),
    };
    let io = Arc::new(FaultyIo { inner, plan: Arc::clone(&plan) });
    (FrameOptions { io, ..FrameOptions::default() }, plan)
}

/// Reads the whole frame in every way; `None` if anything failed.
fn read_all(frame: &Frame) -> Option<Seen> {
    frame.refresh().ok()?;
    for i in 0..frame.nchunks() {
        let lazy = frame.lazy_chunk_with_source(i).ok()?;
        let whole = frame.chunk(i).ok()?;
        if let Some(source) = &lazy.source {
            let mut bytes = vec![0; whole.len()];
            source.read_at(0, &mut bytes).ok()?;
            assert!(bytes == *whole, "chunk {i}");
        }
    }
    frame.vlmeta_find(b"v1").ok()?;
    let mut chunks = Vec::new();
    for i in 0..frame.nchunks() {
        chunks.push(frame.chunk(i).ok()?.into_owned());
    }
    Some(Seen { chunks, ..see_frame_of(frame) })
}

/// What needs no reading.
fn see_frame_of(frame: &Frame) -> Seen {
    Seen {
        chunks: Vec::new(),
        meta: Metalayers::clone(&frame.metalayers()),
        vlmeta: Metalayers::clone(&frame.vlmetalayers()),
        nbytes: frame.nbytes(),
    }
}

const HOMES: [Home; 3] = [Home::File, Home::Dir, Home::Mapped];
const FAULTS: [Fault; 2] = [Fault::Fail, Fault::Short];

#[test]
fn whatever_read_fails_readers_get_errors_or_the_right_data() {
    for home in HOMES {
        let path = TempPath::new("reading");
        build(&path, home == Home::Dir, 6);
        let expected = see(&path);
        for fault in FAULTS {
            for at in 0.. {
                let (options, plan) = options(home, fault);
                plan.arm(at);
                let opened = Frame::open(&path, 0, &options);
                let failed = opened.is_err();
                if let Ok(frame) = &opened {
                    if let Some(seen) = read_all(frame) {
                        assert_eq!(seen, expected, "{home:?}, {fault:?} at call {at}");
                    }
                }
                let calls = plan.disarm();
                if let Ok(frame) = opened {
                    assert_eq!(see_frame(&frame), expected, "{home:?}, {fault:?} at call {at}: afterwards");
                }
                assert_eq!(see(&path), expected, "{home:?}, {fault:?} at call {at}");
                if calls <= at {
                    assert!(!failed && at > 10, "{home:?}: only {at} calls");
                    break;
                }
            }
        }
    }
}

#[test]
fn whatever_read_fails_a_change_is_made_or_not() {
    for home in HOMES {
        let base = TempPath::new("changing");
        build(&base, home == Home::Dir, 6);
        let old = see(&base);
        for &(name, operation) in OPERATIONS {
            let done = TempPath::new("done");
            copy_frame(&base, &done);
            operation(&mut Frame::open(&done, 0, &FrameOptions::default()).unwrap()).unwrap();
            let new = see(&done);
            for fault in FAULTS {
                for at in 0.. {
                    let path = TempPath::new("change");
                    copy_frame(&base, &path);
                    let (options, plan) = options(home, fault);
                    let mut frame = Frame::open(&path, 0, &options).unwrap();
                    plan.arm(at);
                    let result = operation(&mut frame);
                    let calls = plan.disarm();
                    let what = format!("{name}, {home:?}, {fault:?} at call {at}: {result:?}");
                    let expected = if result.is_ok() { &new } else { &old };
                    assert_eq!(&see_frame(&frame), expected, "{what}: this handle");
                    let n = frame.append(&chunk(64, 150)).unwrap_or_else(|e| panic!("{what}: append: {e}"));
                    drop((frame, options));
                    let now = see(&path);
                    assert_eq!((now.chunks.len(), &now.vlmeta), (n, &expected.vlmeta), "{what}");
                    assert_eq!(now.chunks[..n - 1], expected.chunks, "{what}");
                    if calls <= at {
                        assert!(result.is_ok(), "{what}");
                        break;
                    }
                }
            }
        }
    }
}
