//! Plain files, read and written at absolute positions.

use super::{Features, FileId, Io, IoFile, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

/// Most bytes moved by one system call; some systems refuse 2 GiB and more.
const MAX_TRANSFER: usize = 1 << 30;

/// The file system of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileIo;

impl Io for FileIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        Ok(Arc::new(PlainFile::open(path, mode)?))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|_| Error::new(ErrorKind::FileRemove, "file cannot be removed"))
    }

    fn features(&self) -> Features {
        Features { keeps_handles: cfg!(unix), local: true, maps: false, journal: true }
    }
}

/// A file of the host.
#[derive(Debug)]
pub struct PlainFile(File);

impl PlainFile {
    /// Opens the file at `path`. It is closed on exec.
    ///
    /// # Errors
    ///
    /// `FileOpen`.
    pub fn open(path: &Path, mode: OpenMode) -> Result<PlainFile> {
        let mut options = OpenOptions::new();
        match mode {
            OpenMode::Read => options.read(true),
            OpenMode::Update => options.read(true).write(true),
            OpenMode::Create => options.read(true).write(true).create(true).truncate(true),
            OpenMode::Append => options.read(true).write(true).create(true),
        };
        let file =
            options.open(path).map_err(|_| Error::new(ErrorKind::FileOpen, "file cannot be opened"))?;
        Ok(PlainFile(file))
    }
}

impl From<File> for PlainFile {
    fn from(file: File) -> PlainFile {
        PlainFile(file)
    }
}

impl IoFile for PlainFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let end = buf.len().min(done + MAX_TRANSFER);
            let at = position.checked_add(done as u64); // widening
            let at = at.ok_or(Error::new(ErrorKind::FileRead, "position out of range"))?;
            match read_some(&self.0, at, &mut buf[done..end]) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Error::new(ErrorKind::FileRead, "reading a file failed")),
            }
        }
        Ok(done)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let failed = Error::new(ErrorKind::FileWrite, "writing a file failed");
        let mut done = 0;
        while done < bytes.len() {
            let end = bytes.len().min(done + MAX_TRANSFER);
            let at = position.checked_add(done as u64).ok_or(failed)?; // widening
            match write_some(&self.0, at, &bytes[done..end]) {
                Ok(0) => return Err(failed),
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(failed),
            }
        }
        Ok(())
    }

    fn size(&self) -> Result<u64> {
        let failed = Error::new(ErrorKind::FileRead, "size of a file cannot be read");
        self.0.metadata().map(|meta| meta.len()).map_err(|_| failed)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let failed = Error::new(ErrorKind::FileTruncate, "truncating a file failed");
        self.0.set_len(len).map_err(|_| failed)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync_data().map_err(|_| Error::new(ErrorKind::FileWrite, "syncing a file failed"))
    }

    fn id(&self) -> Option<FileId> {
        self.0.metadata().ok().as_ref().and_then(id_of)
    }
}

/// Identity of the file at `path`; `None` if there is none or the system has no such numbers.
#[must_use]
pub fn id_at(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().as_ref().and_then(id_of)
}

#[cfg(unix)]
fn id_of(meta: &std::fs::Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some(FileId { device: meta.dev(), file: meta.ino() })
}

#[cfg(not(unix))]
fn id_of(_: &std::fs::Metadata) -> Option<FileId> {
    None
}

#[cfg(unix)]
fn read_some(file: &File, position: u64, buf: &mut [u8]) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, position)
}

#[cfg(unix)]
fn write_some(file: &File, position: u64, bytes: &[u8]) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, position)
}

#[cfg(windows)]
fn read_some(file: &File, position: u64, buf: &mut [u8]) -> std::io::Result<usize> {
    match std::os::windows::fs::FileExt::seek_read(file, buf, position) {
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(0),
        other => other,
    }
}

#[cfg(windows)]
fn write_some(file: &File, position: u64, bytes: &[u8]) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_absolute_and_gaps_are_zeros() {
        let path = std::env::temp_dir().join(format!("blosc2-file-{}", std::process::id()));
        let file = PlainFile::open(&path, OpenMode::Create).unwrap();
        file.write_at(4, b"xy").unwrap();
        let mut buf = [9; 8];
        assert_eq!(file.read_at(0, &mut buf).unwrap(), 6);
        assert_eq!(buf, *b"\0\0\0\0xy\x09\x09");
        assert_eq!(file.read_exact_at(5, &mut buf[..2]).unwrap_err().kind(), ErrorKind::FileRead);
        file.truncate(5).unwrap();
        assert_eq!(file.size().unwrap(), 5);
        assert_eq!(file.id(), id_at(&path));
        FileIo.remove(&path).unwrap();
        assert_eq!(FileIo.open(&path, OpenMode::Read).err().unwrap().kind(), ErrorKind::FileOpen);
    }
}
