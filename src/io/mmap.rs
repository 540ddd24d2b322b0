//! Memory-mapped files, whose bytes are lent without copying them. Only Unix systems have them here.
//!
//! | [`MmapMode`] | file opened | writes reach the file |
//! |---|---|---|
//! | `Read` | read only | refused |
//! | `Update` | read and write | yes |
//! | `Create` | made or emptied | yes |
//! | `CopyOnWrite` | read only | no: they stay in this mapping |
//!
//! The file has its logical size at all times. A file that others cut off under a mapping is noticed when its size is
//! asked for, not while somebody reads it or uses bytes that were borrowed earlier.

use super::file::{FileIo, PlainFile};
use super::mapping::{Kind, Region};
use super::{Features, Io, IoFile, OpenMode};
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure};
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

/// How a file is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmapMode {
    /// Reading only.
    Read,
    /// Reading and writing an existing file.
    Update,
    /// Reading and writing a new or emptied file.
    Create,
    /// Reading an existing file, with changes that stay private.
    CopyOnWrite,
}

impl MmapMode {
    fn kind(self) -> Kind {
        match self {
            MmapMode::Read => Kind::ReadOnly,
            MmapMode::Update | MmapMode::Create => Kind::Shared,
            MmapMode::CopyOnWrite => Kind::Private,
        }
    }
}

/// Maps one file, and gives the same mapping to all who open it.
pub struct MmapIo {
    mode: MmapMode,
    initial_size: usize,
    open: Mutex<Option<(PathBuf, Arc<dyn IoFile>)>>,
}

impl MmapIo {
    /// A back-end for one file; `initial_size` is the least size of a writable mapping in bytes.
    ///
    /// # Safety
    ///
    /// While a frame that uses the back-end reads, nobody changes or cuts off what it reads: neither another process
    /// nor another frame of this one. (Under a mapping, either shows in memory that the reader takes for constant, and
    /// pages that are cut off end the process.) What a writer appends does no harm.
    #[must_use]
    pub unsafe fn new(mode: MmapMode, initial_size: usize) -> MmapIo {
        MmapIo { mode, initial_size, open: Mutex::new(None) }
    }
}

impl Io for MmapIo {
    /// The mapping of the first path opened, whatever the mode asked for later.
    fn open(&self, path: &Path, _: OpenMode) -> Result<Arc<dyn IoFile>> {
        let mut open = self.open.lock();
        if let Some((known, file)) = &*open {
            let same = known == path;
            return same
                .then(|| Arc::clone(file))
                .ok_or(Error::new(ErrorKind::FileOpen, "another file is mapped already"));
        }
        let file: Arc<dyn IoFile> = Arc::new(map(path, self.mode, self.initial_size)?);
        *open = Some((path.to_path_buf(), Arc::clone(&file)));
        Ok(file)
    }

    fn remove(&self, _: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::FileRemove, "mapped files cannot be removed"))
    }

    fn sync_name(&self, path: &Path) -> Result<()> {
        FileIo.sync_name(path)
    }

    fn features(&self) -> Features {
        Features { keeps_handles: true, local: false, maps: true, journal: true }
    }
}

/// What grows with the file.
struct State {
    /// Where the file is mapped now.
    region: Region,
    /// Regions that were outgrown. Slices of them may still be in use, and shared ones show the same pages.
    retired: Vec<Region>,
    /// Logical size of the file in bytes.
    size: usize,
}

/// A file and its mapping.
struct Mapped {
    file: PlainFile,
    mode: MmapMode,
    state: RwLock<State>,
}

fn map(path: &Path, mode: MmapMode, initial_size: usize) -> Result<Mapped> {
    let failed = Error::new(ErrorKind::FileOpen, "file cannot be mapped");
    let open_mode = match mode {
        MmapMode::Read | MmapMode::CopyOnWrite => OpenMode::Read,
        MmapMode::Update => OpenMode::Update,
        MmapMode::Create => OpenMode::Create,
    };
    let file = PlainFile::open(path, open_mode)?;
    let size = usize::try_from(file.size()?).map_err(|_| failed)?;
    let wanted = if mode == MmapMode::Read { size } else { initial_size.max(size) };
    let region = Region::map(file.as_file(), mode.kind(), wanted.max(1), size).ok_or(failed)?;
    Ok(Mapped { file, mode, state: RwLock::new(State { region, retired: Vec::new(), size }) })
}

impl Mapped {
    fn is_private(&self) -> bool {
        self.mode.kind() == Kind::Private
    }

    /// Takes over a size that somebody else gave the file, if it was shorter than `reach` bytes before: asking for it
    /// each time takes longer than reading a small chunk.
    fn follow_file(&self, reach: usize) -> Result<()> {
        if self.is_private() || reach <= self.state.read().size {
            return Ok(());
        }
        let failed = Error::new(ErrorKind::FileRead, "file too large to be mapped");
        let size = usize::try_from(self.file.size()?).map_err(|_| failed)?;
        if self.state.read().size == size {
            return Ok(());
        }
        let mut state = self.state.write();
        if size > state.region.len() {
            self.remap(&mut state, size)?;
        }
        state.size = size;
        Ok(())
    }

    /// Makes the region at least `len` bytes long.
    fn remap(&self, state: &mut State, len: usize) -> Result<()> {
        let failed = Error::new(ErrorKind::FileWrite, "mapping cannot grow");
        let region = Region::map_with_room(self.file.as_file(), self.mode.kind(), len).ok_or(failed)?;
        if self.is_private() {
            // SAFETY: both regions hold `state.size` bytes (the old one did, the new one is longer), and a fresh
            // mapping does not overlap the old one.
            unsafe { copy::copy_raw(state.region.start(), region.start(), state.size) };
        }
        let old = std::mem::replace(&mut state.region, region);
        state.retired.push(old);
        Ok(())
    }
}

impl IoFile for Mapped {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        let at = usize::try_from(position).unwrap_or(usize::MAX);
        self.follow_file(at.saturating_add(buf.len()))?;
        let state = self.state.read();
        let at = at.min(state.size);
        let n = buf.len().min(state.size - at);
        // SAFETY: `at + n <= size <= region.len`, and the file reached to `size` when that was looked at, so the pages
        // exist unless somebody cut it off; the source is a mapping and `buf` is not part of it.
        unsafe { copy::copy_raw(state.region.start().add(at), buf.as_mut_ptr(), n) };
        Ok(n)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let failed = Error::new(ErrorKind::FileWrite, "writing to a mapping failed");
        if self.mode == MmapMode::Read {
            return Err(Error::new(ErrorKind::FileWrite, "file is mapped for reading only"));
        }
        self.follow_file(usize::MAX)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(position).map_err(|_| failed)?;
        let end = at.checked_add(bytes.len()).ok_or(failed)?;
        let mut state = self.state.write();
        if end > state.region.len() {
            self.remap(&mut state, end)?;
        }
        if self.is_private() {
            // SAFETY: `end <= region.len`, memory that may be written; `bytes` was not borrowed from this file, since
            // its borrowers do not write.
            unsafe { ptr::copy(bytes.as_ptr(), state.region.start().add(at), bytes.len()) };
        } else {
            self.file.write_at(position, bytes)?;
        }
        state.size = state.size.max(end);
        Ok(())
    }

    fn size(&self) -> Result<u64> {
        self.follow_file(usize::MAX)?;
        Ok(self.state.read().size as u64) // widening
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let failed = Error::new(ErrorKind::FileTruncate, "truncating a mapped file failed");
        if self.mode == MmapMode::Read {
            return Err(failed);
        }
        let new = usize::try_from(len).map_err(|_| failed)?;
        let mut state = self.state.write();
        if new > state.region.len() {
            self.remap(&mut state, new)?;
        }
        if !self.is_private() {
            self.file.truncate(len)?;
        } else if new > state.size {
            // SAFETY: `size < new <= region.len`, memory that may be written.
            unsafe { ptr::write_bytes(state.region.start().add(state.size), 0, new - state.size) };
        }
        state.size = new;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        if self.is_private() || self.mode == MmapMode::Read { Ok(()) } else { self.file.sync() }
    }

    unsafe fn bytes(&self, position: u64, len: usize) -> Result<Option<&[u8]>> {
        let failed = Error::new(ErrorKind::FileRead, "file ends too early");
        let at = usize::try_from(position).map_err(|_| failed)?;
        let end = at.checked_add(len).ok_or(failed)?;
        self.follow_file(end)?;
        let state = self.state.read();
        ensure(end <= state.size, ErrorKind::FileRead, "file ends too early")?;
        debug_assert!(end <= state.region.len());
        // SAFETY: the range lies inside the region, which stays mapped as long as `self` lives: outgrown regions
        // are retired, not unmapped. That the content stays is the caller's promise.
        Ok(Some(unsafe { std::slice::from_raw_parts(state.region.start().add(at), len) }))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("blosc2-mmap-{name}-{}", std::process::id()))
    }

    fn mapping(mode: MmapMode, initial_size: usize) -> MmapIo {
        // SAFETY: nothing is read through the frames of these tests.
        unsafe { MmapIo::new(mode, initial_size) }
    }

    /// Lent bytes; the tests look at none after they were written to or cut off.
    fn bytes(file: &(impl IoFile + ?Sized), position: u64, len: usize) -> Result<&[u8]> {
        // SAFETY: see above.
        unsafe { file.bytes(position, len) }.map(|bytes| bytes.expect("it is mapped"))
    }

    #[test]
    fn writes_grow_the_file_past_the_first_mapping() {
        let path = path("grow");
        let io = mapping(MmapMode::Create, 1);
        let file = io.open(&path, OpenMode::Create).unwrap();
        file.write_at(0, &[1; 10_000]).unwrap();
        let early = bytes(&*file, 0, 10).unwrap();
        file.write_at(10_000, &[2; 100_000]).unwrap();
        assert_eq!(early, [1; 10]);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 110_000);
        file.truncate(10_001).unwrap();
        assert!(bytes(&*file, 10_000, 2).is_err());
        assert_eq!(io.open(Path::new("other"), OpenMode::Read).err().unwrap().kind(), ErrorKind::FileOpen);
        drop((file, io));
        assert_eq!(std::fs::read(&path).unwrap()[9_999..], [1, 2]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn private_changes_reach_past_the_end_and_not_the_file() {
        let path = path("private");
        std::fs::write(&path, [5; 100]).unwrap();
        let io = mapping(MmapMode::CopyOnWrite, 1 << 16);
        let file = io.open(&path, OpenMode::Update).unwrap();
        file.write_at(90, &[6; 50_000]).unwrap();
        file.write_at(50_090, &[7; 50_000]).unwrap();
        assert_eq!(bytes(&*file, 89, 2).unwrap(), [5, 6]);
        assert_eq!(bytes(&*file, 50_089, 2).unwrap(), [6, 7]);
        assert_eq!(file.size().unwrap(), 100_090);
        assert_eq!(std::fs::read(&path).unwrap(), [5; 100]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn read_only_mappings_refuse_writes_and_follow_the_file() {
        let path = path("read");
        std::fs::write(&path, [5; 100]).unwrap();
        let file = mapping(MmapMode::Read, 1).open(&path, OpenMode::Read).unwrap();
        assert_eq!(file.write_at(0, &[1]).unwrap_err().kind(), ErrorKind::FileWrite);
        assert_eq!(file.truncate(1).unwrap_err().kind(), ErrorKind::FileTruncate);
        std::fs::write(&path, [6; 20_000]).unwrap();
        assert_eq!(bytes(&*file, 19_999, 1).unwrap(), [6]);
        // A file that became shorter is noticed when its size is asked for, as at each look at a changed frame.
        std::fs::write(&path, [7; 10]).unwrap();
        assert_eq!(file.size(), Ok(10));
        assert!(bytes(&*file, 0, 100).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_others_make_longer_bit_by_bit_is_seldom_mapped_anew() {
        let path = path("steps");
        std::fs::write(&path, [5; 10_000]).unwrap();
        let mapped = map(&path, MmapMode::Read, 1).unwrap();
        let writer = PlainFile::open(&path, OpenMode::Update).unwrap();
        for n in 1..100 {
            writer.write_at(10_000 * n, &[6; 10_000]).unwrap();
            assert_eq!(bytes(&mapped, 10_000 * n + 9_999, 1).unwrap(), [6]);
        }
        assert!(mapped.state.read().retired.len() < 8);
        std::fs::remove_file(&path).unwrap();
    }
}
