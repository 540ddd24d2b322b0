//! A device without room for more than a few bytes.

use super::faults::see;
use super::*;
use crate::io::file::PlainFile;

const FULL: Error = Error::new(ErrorKind::FileWrite, "no space left on device");

/// No file becomes longer than this, in bytes.
#[derive(Clone)]
struct FullDisk {
    longest: u64,
    /// How many writes failed.
    refused: Arc<AtomicUsize>,
}

struct File {
    inner: PlainFile,
    disk: FullDisk,
}

impl Io for FullDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        Ok(Arc::new(File { inner: PlainFile::open(path, mode)?, disk: self.clone() }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        FileIo.remove(path)
    }

    fn features(&self) -> Features {
        FileIo.features()
    }
}

impl IoFile for File {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(position, buf)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        if position + bytes.len() as u64 > self.disk.longest {
            self.disk.refused.fetch_add(1, Ordering::SeqCst);
            return Err(FULL);
        }
        self.inner.write_at(position, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.inner.truncate(len)
    }

    fn id(&self) -> Option<crate::io::FileId> {
        self.inner.id()
    }
}

#[test]
fn holes_that_cannot_be_closed_are_not_closed_with_every_change() {
    let path = TempPath::new("full_disk");
    let mut frame = Frame::create_file(&path, params(), &FrameOptions::default()).unwrap();
    // The larger chunks, which stay, do not fit into the holes that the smaller ones leave.
    for i in 0..200 {
        frame.append(&padded(if i % 2 == 0 { 1004 } else { 1000 }, i)).unwrap();
    }
    drop(frame);
    let size = fs::metadata(&*path).unwrap().len();
    let disk = FullDisk { longest: size + 8192, refused: Arc::new(AtomicUsize::new(0)) };
    let options = FrameOptions { io: Arc::new(disk.clone()), ..FrameOptions::default() };
    let mut frame = Frame::open(&path, 0, &options).unwrap();
    for nchunk in 1..100 {
        frame.delete(nchunk).unwrap();
    }
    let refused = disk.refused.load(Ordering::SeqCst);
    assert!((1..=6).contains(&refused), "{refused} attempts");
    let last = [padded(1004, 198), padded(1000, 199)];
    let left: Vec<_> = (0..99).map(|i| padded(1004, 2 * i)).chain(last).collect();
    assert_eq!(contents(&frame), see(&path).chunks);
    check(&frame, &left, "all small chunks but one are deleted");
    // Once there is room, they are closed with one of the next changes.
    drop(frame);
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    frame.delete(100).unwrap();
    check(&frame, &left[..100], "there is room again");
    assert!(fs::metadata(&*path).unwrap().len() < size / 2 + size / 8);
}
