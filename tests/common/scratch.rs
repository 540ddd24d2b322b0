//! Directories for the files of tests.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::schunk_api::Place;

/// A directory for the files of one case; removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new directory; `what` becomes part of its name.
    pub fn new(what: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("blosc2-{what}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> CString {
        CString::new(self.0.join(name).as_os_str().as_bytes()).expect("no NUL in paths")
    }

    /// Memory or this directory, as one frame or as chunks apart.
    pub fn place(&self, contiguous: bool, on_disk: bool, name: &str) -> Place {
        Place { contiguous, urlpath: on_disk.then(|| self.path(name)) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
