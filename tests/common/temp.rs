//! Paths for the files of tests.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A path at which nothing is. What is made there is removed when this is dropped, with the lock file beside it.
pub struct TempPath(pub PathBuf);

impl TempPath {
    /// A new path; `name` becomes part of it.
    pub fn new(name: &str) -> TempPath {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            TempPath(std::env::temp_dir().join(format!("blosc2-temp-{}-{n}-{name}", std::process::id())));
        path.clear();
        path
    }

    fn clear(&self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_dir_all(&self.0);
        let mut lock = self.0.clone().into_os_string();
        lock.push(".b2lock");
        let _ = fs::remove_file(lock);
    }
}

impl Deref for TempPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        self.clear();
    }
}
