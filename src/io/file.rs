//! Plain files, read and written at absolute positions.

use super::{Features, FileId, Io, IoFile, OpenMode, attributes, transfer};
use crate::cancel::deferred;
use crate::error::{Error, ErrorKind, Result, ensure};
use std::borrow::Cow;
use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind as Cause;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The file system of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileIo;

impl Io for FileIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        Ok(Arc::new(PlainFile::open(path, mode)?))
    }

    fn create_anew(&self, path: &Path) -> Result<Arc<dyn IoFile>> {
        let create = || deferred(|| OpenOptions::new().read(true).write(true).create_new(true).open(path));
        let file = match create() {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                self.remove(path).map_err(|_| unopened())?;
                create()
            }
            made => made,
        };
        Ok(Arc::new(PlainFile::from(file.map_err(|_| unopened())?)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|_| Error::new(ErrorKind::FileRemove, "file cannot be removed"))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut target = Cow::Borrowed(path);
        let mut old = std::fs::symlink_metadata(path).ok();
        if old.as_ref().is_some_and(Metadata::is_symlink) {
            // A link stays one; what it leads to is replaced.
            target = std::fs::canonicalize(path).map_or(target, Cow::Owned);
            old = std::fs::symlink_metadata(&target).ok();
        }
        let is_file = old.as_ref().is_none_or(|old| old.is_file() && !has_more_names(old));
        let replaces = |new: &Beside| is_file && old.as_ref().is_none_or(|old| new.has_owner_of(old));
        if let Some(new) = Beside::create(&target).filter(replaces) {
            if new.fill_and_rename(bytes, old.as_ref(), &target)? {
                return Ok(());
            }
        }
        // No file can take its place. It may be a device, or something mounted here; a file of several names, all of
        // which are to lead to the new content; one of another user or group, or with attributes that a new one cannot
        // have; or nothing can be made in the directory.
        self.open(path, OpenMode::Create)?.write_at(0, bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let failed = Error::new(ErrorKind::FileOpen, "file cannot be renamed");
        let meta = std::fs::symlink_metadata(from).map_err(|_| failed)?;
        ensure(meta.is_file() && !has_more_names(&meta), failed.kind(), failed.what())?;
        std::fs::rename(from, to).map_err(|_| failed)
    }

    #[cfg(unix)]
    fn sync_name(&self, path: &Path) -> Result<()> {
        let sync_directory = || {
            // Where a link leads, there is the name.
            let path = std::fs::canonicalize(path)?;
            File::open(path.parent().unwrap_or(&path))?.sync_all()
        };
        match deferred(sync_directory) {
            // This file system has no `fsync` for directories: there is nothing to wait for.
            Err(e) if e.kind() == Cause::InvalidInput => Ok(()),
            synced => synced.map_err(|_| Error::new(ErrorKind::FileWrite, "a directory cannot be synced")),
        }
    }

    fn features(&self) -> Features {
        Features { keeps_handles: cfg!(unix), local: true, maps: false, journal: true }
    }
}

#[cfg(unix)]
fn has_more_names(file: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(file) > 1
}

#[cfg(not(unix))]
fn has_more_names(_: &Metadata) -> bool {
    false
}

/// Number of names that were tried for new files.
static NAMES: AtomicUsize = AtomicUsize::new(0);

/// The name of a new file in the directory of another. When dropped, it removes the file, unless that took the other's
/// name.
struct Unfinished {
    path: PathBuf,
    /// Whether there may be a file of that name, made for this purpose.
    exists: bool,
}

impl Unfinished {
    /// A name that nobody else uses; `None` if `target` is no path of a file.
    fn beside(target: &Path) -> Option<Unfinished> {
        if target.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return None;
        }
        let file_name = target.file_name()?;
        loop {
            let mut name = file_name.to_os_string();
            name.push(format!(".{}-{}.tmp", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed)));
            let path = target.with_file_name(name);
            // One that was killed may have had the number of this process, as in containers, and left its file.
            if std::fs::symlink_metadata(&path).is_err() {
                return Some(Unfinished { path, exists: false });
            }
        }
    }

    /// Gives the file the name of `target`.
    fn rename_to(&mut self, target: &Path) -> std::io::Result<()> {
        std::fs::rename(&self.path, target)?;
        self.exists = false;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.exists {
            let _ = std::fs::remove_file(&self.path); // it was never anybody's
        }
    }
}

/// Makes the file `path`, all of it or nothing: `make` makes a new file in the same directory, which then gets that
/// name.
///
/// # Errors
///
/// Those of `make`, `FileWrite` if the file cannot be renamed, `FileOpen` if `path` is that of no file.
pub(crate) fn make_beside<R>(path: &Path, make: impl FnOnce(&Path) -> Result<R>) -> Result<R> {
    let failed = |_| Error::new(ErrorKind::FileWrite, "file cannot be renamed");
    let mut name = Unfinished::beside(path).ok_or(unopened())?;
    name.exists = true;
    let made = make(&name.path)?;
    name.rename_to(path).map_err(failed)?;
    Ok(made)
}

/// A new file in the directory of another.
struct Beside {
    file: PlainFile,
    name: Unfinished,
}

impl Beside {
    /// `None` if no file can be made there.
    fn create(target: &Path) -> Option<Beside> {
        let mut name = Unfinished::beside(target)?;
        let file = deferred(|| OpenOptions::new().write(true).create_new(true).open(&name.path)).ok()?;
        name.exists = true;
        Some(Beside { file: file.into(), name })
    }

    /// Whether it belongs to the user and the group of `old`.
    #[cfg(unix)]
    fn has_owner_of(&self, old: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.file.as_file().metadata().is_ok_and(|new| (new.uid(), new.gid()) == (old.uid(), old.gid()))
    }

    #[cfg(not(unix))]
    fn has_owner_of(&self, _: &Metadata) -> bool {
        true
    }

    /// Fills the file and gives it the name of `target`, and what goes with that; returns false if it cannot have
    /// these.
    fn fill_and_rename(mut self, bytes: &[u8], old: Option<&Metadata>, target: &Path) -> Result<bool> {
        let failed = |_| Error::new(ErrorKind::FileWrite, "writing a file failed");
        if let Some(old) = old {
            // Opening tells whether the old file may be written.
            let old_file = PlainFile::open(target, OpenMode::Update)?;
            // Before there is anything to read, and in this order, as an access list has its part in the permissions.
            self.file.as_file().set_permissions(old.permissions()).map_err(failed)?;
            if !attributes::copy(old_file.as_file(), self.file.as_file()) {
                return Ok(false);
            }
        }
        self.file.write_at(0, bytes)?;
        match self.name.rename_to(target) {
            // Something is mounted there, or it may not get another name.
            Err(e) if matches!(e.kind(), Cause::ResourceBusy | Cause::PermissionDenied) => Ok(false),
            renamed => renamed.map_err(failed).map(|()| true),
        }
    }
}

/// A file of the host.
#[derive(Debug)]
pub struct PlainFile {
    /// Closed by `drop`.
    file: ManuallyDrop<File>,
    /// Which file it is; looked up once.
    id: OnceLock<Option<FileId>>,
}

impl PlainFile {
    /// Opens the file at `path`. It is closed on exec. A pipe is opened without waiting for a writer; reading it
    /// fails then.
    ///
    /// # Errors
    ///
    /// `FileOpen`.
    pub fn open(path: &Path, mode: OpenMode) -> Result<PlainFile> {
        let mut options = OpenOptions::new();
        let file = deferred(|| match mode {
            OpenMode::Read => open_to_read(path),
            OpenMode::Update => options.read(true).write(true).open(path),
            OpenMode::Create => options.read(true).write(true).create(true).truncate(true).open(path),
            OpenMode::Append => options.read(true).write(true).create(true).open(path),
        });
        file.map(PlainFile::from).map_err(|_| unopened())
    }

    /// The file as the standard library has it.
    pub(crate) fn as_file(&self) -> &File {
        &self.file
    }
}

impl From<File> for PlainFile {
    fn from(file: File) -> PlainFile {
        PlainFile { file: ManuallyDrop::new(file), id: OnceLock::new() }
    }
}

impl Drop for PlainFile {
    fn drop(&mut self) {
        // SAFETY: the file is not used again.
        deferred(|| unsafe { ManuallyDrop::drop(&mut self.file) });
    }
}

impl IoFile for PlainFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        transfer::read(&self.file, position, buf).map_err(unread)
    }

    fn read_some_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        transfer::read_some(&self.file, position, buf).map_err(unread)
    }

    fn fill<'r>(&self, position: u64, room: &'r mut [MaybeUninit<u8>]) -> Result<&'r mut [u8]> {
        let short = Error::new(ErrorKind::FileRead, "file ends too early");
        transfer::fill(&self.file, position, room).map_err(unread)?.ok_or(short)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let failed = |_| Error::new(ErrorKind::FileWrite, "writing a file failed");
        transfer::write(&self.file, position, bytes).map_err(failed)
    }

    fn size(&self) -> Result<u64> {
        let failed = Error::new(ErrorKind::FileRead, "size of a file cannot be read");
        self.file.metadata().map(|meta| meta.len()).map_err(|_| failed)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let failed = Error::new(ErrorKind::FileTruncate, "truncating a file failed");
        self.file.set_len(len).map_err(|_| failed)
    }

    #[cfg(target_os = "linux")]
    fn skip_hole(&self, position: u64) -> u64 {
        use std::os::fd::AsRawFd;
        let Ok(from) = libc::off64_t::try_from(position) else { return position };
        // SAFETY: the descriptor is that of the open file; nobody reads or writes at its own position, which this
        // moves.
        let data = unsafe { libc::lseek64(self.file.as_raw_fd(), from, libc::SEEK_DATA) };
        let is_hole_to_the_end = || std::io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
        match u64::try_from(data) {
            Ok(data) => data,
            Err(_) if is_hole_to_the_end() => self.size().map_or(position, |size| size.max(position)),
            Err(_) => position, // not every file system knows
        }
    }

    fn sync(&self) -> Result<()> {
        deferred(|| self.file.sync_data())
            .map_err(|_| Error::new(ErrorKind::FileWrite, "syncing a file failed"))
    }

    fn id(&self) -> Option<FileId> {
        *self.id.get_or_init(|| self.file.metadata().ok().as_ref().and_then(id_of))
    }

    fn id_and_size(&self) -> Result<(Option<FileId>, u64)> {
        let failed = Error::new(ErrorKind::FileRead, "size of a file cannot be read");
        let meta = self.file.metadata().map_err(|_| failed)?;
        Ok((*self.id.get_or_init(|| id_of(&meta)), meta.len()))
    }
}

fn unopened() -> Error {
    Error::new(ErrorKind::FileOpen, "file cannot be opened")
}

fn unread(_: std::io::Error) -> Error {
    Error::new(ErrorKind::FileRead, "reading a file failed")
}

/// Opens the file at `path` to read it, and does not wait for the writer of a pipe.
#[cfg(unix)]
pub(crate) fn open_to_read(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let at_once = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    match at_once {
        // Another program is asked to give up its lease on the file.
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => File::open(path),
        opened => opened,
    }
}

#[cfg(not(unix))]
pub(crate) fn open_to_read(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// Identity of the file at `path`; `None` if there is none or the system has no such numbers.
#[must_use]
pub(crate) fn id_at(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().as_ref().and_then(id_of)
}

#[cfg(unix)]
fn id_of(meta: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some(FileId { device: meta.dev(), file: meta.ino() })
}

#[cfg(not(unix))]
fn id_of(_: &Metadata) -> Option<FileId> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn replacing_keeps_permissions_and_links_and_leaves_nothing_behind() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("blosc2-replace-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let (file, link) = (dir.join("file"), dir.join("link"));
        std::fs::write(&file, b"old and long").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        FileIo.replace(&link, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        let other_name = dir.join("other name");
        std::fs::hard_link(&file, &other_name).unwrap();
        FileIo.replace(&file, b"newer").unwrap();
        assert_eq!(std::fs::read(&other_name).unwrap(), b"newer");
        std::fs::remove_file(&other_name).unwrap();
        assert_eq!(FileIo.replace(&dir, b"x").unwrap_err().kind(), ErrorKind::FileOpen);
        assert!(FileIo.replace(&dir.join("no/file"), b"x").is_err());
        for no_file in ["file/", "new/"] {
            let error = FileIo.replace(&dir.join(no_file), b"x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileOpen, "{no_file}");
        }
        FileIo.replace(Path::new("/dev/null"), b"x").unwrap();
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_another_user_stays_one() {
        use std::os::unix::fs::MetadataExt;
        let path = std::env::temp_dir().join(format!("blosc2-owner-{}", std::process::id()));
        std::fs::write(&path, b"old").unwrap();
        // Only the superuser may do this; for others the owner is the same anyway.
        let other = std::os::unix::fs::chown(&path, Some(12345), Some(12346)).is_ok();
        let before = std::fs::metadata(&path).unwrap();
        FileIo.replace(&path, b"newer").unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(after.ino() == before.ino(), other);
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
        std::fs::remove_file(&path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_a_killed_process_of_the_same_number_left_is_in_nobodys_way() {
        use std::os::unix::fs::MetadataExt;
        let dir = std::env::temp_dir().join(format!("blosc2-left-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let target = dir.join("file");
        std::fs::write(&target, b"old").unwrap();
        let inode = || std::fs::metadata(&target).unwrap().ino();
        let next = NAMES.load(Ordering::Relaxed);
        let left: Vec<_> =
            (next..next + 50).map(|n| dir.join(format!("file.{}-{n}.tmp", std::process::id()))).collect();
        left.iter().for_each(|path| std::fs::write(path, b"left").unwrap());
        let before = inode();
        FileIo.replace(&target, b"new").unwrap();
        assert_ne!(inode(), before, "the file was overwritten where it is");
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        make_beside(&target, |beside| {
            let made = OpenOptions::new().write(true).create_new(true).open(beside);
            made.map(drop).map_err(|_| unopened())
        })
        .unwrap();
        assert!(left.iter().all(|path| std::fs::read(path).unwrap() == b"left"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn nobody_waits_for_who_writes_to_a_pipe() {
        use std::os::unix::ffi::OsStrExt;
        let path = std::env::temp_dir().join(format!("blosc2-pipe-{}", std::process::id()));
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let pipe = PlainFile::open(&path, OpenMode::Read).unwrap();
        assert_eq!(pipe.read_at(0, &mut [0; 4]).unwrap_err().kind(), ErrorKind::FileRead);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn positions_are_absolute_and_gaps_are_zeros() {
        let path = std::env::temp_dir().join(format!("blosc2-file-{}", std::process::id()));
        let file = PlainFile::open(&path, OpenMode::Create).unwrap();
        file.write_at(4, b"xy").unwrap();
        let mut buf = [9; 8];
        assert_eq!(file.read_at(0, &mut buf).unwrap(), 6);
        assert_eq!(buf[..6], *b"\0\0\0\0xy");
        assert_eq!(file.read_exact_at(5, &mut buf[..2]).unwrap_err().kind(), ErrorKind::FileRead);
        file.truncate(5).unwrap();
        assert_eq!(file.size().unwrap(), 5);
        assert_eq!(file.id(), id_at(&path));
        FileIo.replace(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        FileIo.remove(&path).unwrap();
        assert_eq!(FileIo.open(&path, OpenMode::Read).err().unwrap().kind(), ErrorKind::FileOpen);
    }
}
