//! Fairness between processes that lock a frame: readers let a waiting writer go first.
//!
//! While some process holds a shared lock of a file, the system gives out more of them, so processes that read again
//! and again would starve a writer. A waiting writer therefore also locks a byte far past the end of the file, which it
//! gets at once, and readers look at that byte first. The C library does neither: only the lock itself holds it up.

use crate::cancel::deferred;
use std::fs::File;
use std::time::{Duration, Instant};

/// How long readers let somebody go first.
const COURTESY: Duration = Duration::from_millis(200);
/// How long they go first themselves after they have waited in vain: for a process that was stopped, perhaps.
const IN_VAIN: Duration = Duration::from_secs(1);
/// How often they look.
const GLANCE: Duration = Duration::from_micros(100);

/// Until when a reader lets nobody go first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns(Option<Instant>);

impl Turns {
    /// Lets those go first that wait to lock `file` alone.
    pub(super) fn give_way(&mut self, file: &File) {
        if !sys::is_asked_for(file) || self.0.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let begin = Instant::now();
        while begin.elapsed() < COURTESY {
            deferred(|| std::thread::sleep(GLANCE));
            if !sys::is_asked_for(file) {
                return;
            }
        }
        self.0 = Some(Instant::now() + IN_VAIN);
    }
}

/// Tells those that read that somebody waits for `file`, until dropped.
pub(super) struct Asking<'a>(&'a File);

impl Asking<'_> {
    pub(super) fn new(file: &File) -> Asking<'_> {
        sys::ask_for(file);
        Asking(file)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        sys::ask_no_more(self.0);
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod sys {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// The byte that is locked.
    const AT: i64 = 1 << 40;

    /// Locks of this kind belong to the open file, as those of `flock` do, and do not mix with them.
    fn byte(kind: libc::c_int) -> libc::flock {
        // SAFETY: a struct of integers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short; // 0 to 2
        lock.l_whence = libc::SEEK_SET as libc::c_short; // 0
        (lock.l_start, lock.l_len) = (AT, 1);
        lock
    }

    /// If others ask already, they are in the way of readers as well.
    pub(super) fn ask_for(file: &File) {
        // SAFETY: the descriptor is that of an open file, and the struct lives as long as the call.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &byte(libc::F_WRLCK)) };
    }

    pub(super) fn ask_no_more(file: &File) {
        // SAFETY: as in `ask_for`.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &byte(libc::F_UNLCK)) };
    }

    pub(super) fn is_asked_for(file: &File) -> bool {
        let mut seen = byte(libc::F_RDLCK);
        // SAFETY: as in `ask_for`.
        let told = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut seen) } == 0;
        told && seen.l_type != libc::F_UNLCK as libc::c_short // 2
    }

    #[cfg(test)]
    pub(super) fn has_such_locks(file: &File) -> bool {
        // SAFETY: as in `ask_for`.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut byte(libc::F_RDLCK)) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod sys {
    use std::fs::File;

    pub(super) fn ask_for(_: &File) {}

    pub(super) fn ask_no_more(_: &File) {}

    pub(super) fn is_asked_for(_: &File) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn readers_wait_for_whoever_asks_but_not_for_ever() {
        let path = std::env::temp_dir().join(format!("blosc2-turn-{}", std::process::id()));
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let (writer, reader) = (open(), open());
        if !sys::has_such_locks(&writer) {
            println!("skipped: the system or the file system of {path:?} has no such locks");
            return std::fs::remove_file(path).unwrap();
        }
        let mut turns = Turns::default();
        assert!(!sys::is_asked_for(&reader));
        turns.give_way(&reader);
        let asking = Asking::new(&writer);
        assert!(sys::is_asked_for(&reader) && !sys::is_asked_for(&writer));
        let begin = Instant::now();
        turns.give_way(&reader);
        assert!(begin.elapsed() >= COURTESY && turns.0.is_some());
        // Then it is the reader's turn.
        turns.give_way(&reader);
        drop(asking);
        assert!(!sys::is_asked_for(&reader));

        let (told, asked) = mpsc::channel();
        let asker = std::thread::spawn(move || {
            let asking = Asking::new(&writer);
            told.send(()).unwrap();
            std::thread::sleep(GLANCE * 20);
            drop(asking);
        });
        asked.recv().unwrap();
        Turns::default().give_way(&reader);
        assert!(!sys::is_asked_for(&reader));
        asker.join().unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
