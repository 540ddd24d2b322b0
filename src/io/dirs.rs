//! Directories of sparse frames, and removing and renaming frames.

use crate::error::{Error, ErrorKind, Result, require};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the index file of a sparse frame.
pub const INDEX_NAME: &str = "chunks.b2frame";

/// Name of the chunk file `id` of a sparse frame.
///
/// # Errors
///
/// `InvalidParam` above 32 bits: the name would be that of another chunk.
pub(crate) fn chunk_name(id: u64) -> Result<String> {
    let id = u32::try_from(id)
        .map_err(|_| Error::new(ErrorKind::InvalidParam, "chunk file number out of range"))?;
    Ok(format!("{id:08X}.chunk"))
}

/// `path` without one trailing slash or backslash.
#[must_use]
pub(crate) fn strip_trailing_slash(path: &Path) -> PathBuf {
    without_last(path, b"/\\")
}

/// `path` without its last character, if that is one of `marks`, ASCII characters, and not all of it.
pub(super) fn without_last(path: &Path, marks: &[u8]) -> PathBuf {
    match path.as_os_str().as_encoded_bytes() {
        [short @ .., last] if marks.contains(last) && !short.is_empty() => {
            // SAFETY: encoded bytes may be split before an ASCII character, which is valid UTF-8.
            unsafe { OsStr::from_encoded_bytes_unchecked(short) }.into()
        }
        _ => path.to_path_buf(),
    }
}

/// Makes the directory of a sparse frame.
///
/// # Errors
///
/// `FileOpen` if it exists or its parent does not.
pub(crate) fn make(path: &Path) -> Result<()> {
    fs::create_dir(path).map_err(|_| Error::new(ErrorKind::FileOpen, "directory cannot be made"))
}

/// Removes all files of a directory, then the directory.
///
/// # Errors
///
/// `InvalidParam` for an empty path, `NotFound` unless it is a directory, `Failure` if an entry cannot be removed
/// (entries before it are gone).
pub fn remove_dir(path: &Path) -> Result<()> {
    require(!path.as_os_str().is_empty(), "empty path")?;
    let entries = fs::read_dir(path).map_err(|_| Error::new(ErrorKind::NotFound, "not a directory"))?;
    for entry in entries.flatten() {
        let file = entry.path();
        // A dangling link is no reason to fail: the C library skips what it cannot stat.
        if fs::metadata(&file).is_ok() {
            fs::remove_file(&file).map_err(|_| Error::new(ErrorKind::Failure, "entry cannot be removed"))?;
        }
    }
    let _ = fs::remove_dir(path); // as the C library does: what is left is not an error
    Ok(())
}

/// Removes a frame: a file with its lock file, or a directory. A missing path is not an error.
///
/// # Errors
///
/// `Failure` if the path cannot be examined, `FileRemove` if the file cannot be removed, those of [`remove_dir`].
pub fn remove_frame(path: &Path) -> Result<()> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) => return Err(Error::new(ErrorKind::Failure, "path cannot be examined")),
    };
    if meta.is_dir() {
        return remove_dir(path);
    }
    fs::remove_file(path).map_err(|_| Error::new(ErrorKind::FileRemove, "file cannot be removed"))?;
    let _ = fs::remove_file(super::lock::beside(path)); // best effort
    Ok(())
}

/// Renames a frame; an existing target is replaced as the system does it.
///
/// # Errors
///
/// `Failure`.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|_| Error::new(ErrorKind::Failure, "renaming failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_names_never_wrap_to_another_file() {
        assert_eq!(chunk_name(0xABC).unwrap(), "00000ABC.chunk");
        assert_eq!(chunk_name(u64::from(u32::MAX)).unwrap(), "FFFFFFFF.chunk");
        assert_eq!(chunk_name(1 << 32).unwrap_err().kind(), ErrorKind::InvalidParam);
    }

    #[test]
    fn one_trailing_slash_is_dropped() {
        assert_eq!(strip_trailing_slash(Path::new("a/b/")), Path::new("a/b"));
        assert_eq!(strip_trailing_slash(Path::new("a\\")).as_os_str(), "a");
        assert_eq!(strip_trailing_slash(Path::new("a//")).as_os_str(), "a/");
        assert_eq!(strip_trailing_slash(Path::new("/")).as_os_str(), "/");
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let name = |bytes| Path::new(OsStr::from_bytes(bytes));
            assert_eq!(strip_trailing_slash(name(b"\xFF/")).as_os_str(), name(b"\xFF").as_os_str());
        }
    }

    #[test]
    fn removing_reports_the_documented_codes() {
        let dir = std::env::temp_dir().join(format!("blosc2-dirs-{}", std::process::id()));
        assert_eq!(remove_dir(Path::new("")).unwrap_err().kind(), ErrorKind::InvalidParam);
        assert_eq!(remove_dir(&dir).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(remove_frame(&dir), Ok(()));
        make(&dir).unwrap();
        assert!(make(&dir).is_err());
        fs::write(dir.join("x"), b"x").unwrap();
        fs::create_dir(dir.join("sub")).unwrap();
        assert_eq!(remove_frame(&dir).unwrap_err().kind(), ErrorKind::Failure);
        fs::remove_dir(dir.join("sub")).unwrap();
        remove_frame(&dir).unwrap();
        assert!(!dir.exists());
    }
}
