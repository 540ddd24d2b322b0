//! The lock file beside a frame: advisory locks between processes, and a counter of mutations.
//!
//! The file is made at the first locked operation and stays. It holds 8 unused bytes and a 64-bit counter in native
//! byte order; whoever takes the exclusive lock adds 1 before it changes anything. A counter that differs from the
//! last one seen says that the frame may have changed.
//!
//! The child of a `fork` shares open files with its parent, and so the locks on them. It opens the lock file anew; what
//! the parent had locked at the `fork` is the parent's alone.

use super::file::{PlainFile, id_at};
use super::turn::{Asking, Turns};
use super::{IoFile, dirs};
use crate::cancel::deferred;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::fork::{self, PerProcess};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of the lock file in the directory of a sparse frame; appended to the path of a contiguous one.
const SUFFIX: &str = ".b2lock";
const COUNTER_AT: u64 = 8;
/// How long readers of one handle may hand the shared lock on to each other before writers elsewhere get a turn.
const SHARED_TURN: Duration = Duration::from_millis(2);
/// How long somebody who wants the exclusive lock waits for readers of the same handle.
const PATIENCE: Duration = Duration::from_millis(500);

/// Path of the lock file of the contiguous frame at `path`, whose name may end in a backslash.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = dirs::without_last(path, b"/").into_os_string();
    name.push(SUFFIX);
    name.into()
}

/// Path of the lock file of the sparse frame in `dir`.
pub(crate) fn inside(dir: &Path) -> PathBuf {
    dir.join(SUFFIX)
}

/// The frame that the file at `path` locks.
fn frame_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if path.ends_with(SUFFIX) => dir.to_path_buf(),
        _ => path.with_extension(""),
    }
}

/// What a lock is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Reading, as others may at the same time.
    Shared,
    /// Changes, which nobody else sees half-done.
    Exclusive,
}

/// The lock of one handle. It counts how often it is taken; only the first and the last touch the file.
pub(crate) struct FrameLock {
    path: PathBuf,
    /// A thread may wait for another process while it has the state, and a `fork` may come meanwhile.
    threads: PerProcess<Threads>,
}

/// The threads of one process that share a handle.
#[derive(Default)]
struct Threads {
    state: Mutex<State>,
    released: Condvar,
}

/// What the threads of this handle hold of the lock together.
#[derive(Debug)]
struct State {
    /// The lock file, once it was opened.
    file: Option<PlainFile>,
    /// How often the lock is taken now.
    depth: usize,
    /// How the file is locked, if `depth` is not 0.
    mode: Mode,
    /// How many of `depth` are explicit brackets of the application.
    brackets: usize,
    /// The counter in the file when it was last locked.
    counter: u64,
    /// Whether it tells of changes that were not [read](FrameLock::note_read) yet.
    changed: bool,
    /// When the file was last locked.
    since: Instant,
    /// Whom readers let go first.
    turns: Turns,
}

impl Threads {
    /// Those of a child of the process with `parent`, which hold nothing.
    fn of_child(parent: &Threads) -> Threads {
        // If a thread has the state, it is half-changed, and the child knows nothing.
        let Some(mut state) = parent.state.try_lock() else { return Threads::default() };
        // Closing the file here leaves the parent's lock as it is.
        state.file = None;
        let own = State { counter: state.counter, changed: state.changed, ..State::default() };
        Threads { state: Mutex::new(own), released: Condvar::new() }
    }
}

impl Default for State {
    fn default() -> State {
        State {
            file: None,
            depth: 0,
            mode: Mode::Shared,
            brackets: 0,
            counter: 0,
            changed: false,
            since: Instant::now(),
            turns: Turns::default(),
        }
    }
}

/// Holds the lock until dropped.
pub(crate) struct Held {
    /// The lock, and the process that took it, as [`fork::count`] names it.
    lock: Option<(Arc<FrameLock>, u64)>,
}

impl Held {
    /// Holds nothing, for frames without locking.
    pub(crate) fn nothing() -> Held {
        Held { lock: None }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some((lock, process)) = &self.lock {
            lock.release(*process);
        }
    }
}

impl FrameLock {
    pub(crate) fn new(path: PathBuf) -> Arc<FrameLock> {
        Arc::new(FrameLock { path, threads: PerProcess::new(Threads::default(), Threads::of_child) })
    }

    /// The lock file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What this process holds: nothing at first, if it is the child of the one that made the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.threads.get().state.lock()
    }

    /// Takes the lock and waits for it, until the result is dropped.
    ///
    /// # Errors
    ///
    /// `Lock` if the lock file cannot be made, read or locked; for an exclusive lock also as long as this handle reads.
    pub(crate) fn hold(self: &Arc<FrameLock>, mode: Mode) -> Result<Held> {
        drop(self.acquire(mode)?);
        Ok(Held { lock: Some((Arc::clone(self), fork::count())) })
    }

    /// Takes the exclusive lock until [`unlock`](Self::unlock).
    ///
    /// # Errors
    ///
    /// As [`hold`](Self::hold).
    pub(crate) fn lock(&self) -> Result<()> {
        self.acquire(Mode::Exclusive)?.brackets += 1;
        Ok(())
    }

    /// Whether somebody else may have changed the frame since it was last [read](Self::note_read).
    pub(crate) fn is_changed(&self) -> bool {
        self.state().changed
    }

    /// The frame was read with the lock held.
    pub(crate) fn note_read(&self) {
        self.state().changed = false;
    }

    /// Ends one [`lock`](Self::lock); without one it does nothing.
    pub(crate) fn unlock(&self) {
        let mut state = self.state();
        if state.brackets > 0 {
            state.brackets -= 1;
            drop(state);
            self.release(fork::count());
        }
    }

    /// Takes the lock once more.
    fn acquire(&self, mode: Mode) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        // The waits have an end, since the reader that holds the lock may be the one that asks (a codec that looks up a
        // metalayer).
        let is_read = |state: &mut State| state.depth > 0 && state.mode == Mode::Shared;
        if mode == Mode::Exclusive {
            // A shared lock of the file becomes an exclusive one only by way of none at all.
            self.threads.get().released.wait_while_for(&mut state, is_read, PATIENCE);
            // Not whether the time is up: the last reader may be done since.
            ensure(!is_read(&mut state), ErrorKind::Lock, "chunks are being read through this handle")?;
        } else if is_read(&mut state) && state.since.elapsed() > SHARED_TURN {
            // A stream of readers of this handle must not keep writers in other processes out for ever.
            self.threads.get().released.wait_for(&mut state, SHARED_TURN);
        }
        if state.depth == 0 {
            self.lock_file(&mut state, mode)?;
            state.mode = mode;
            state.since = Instant::now();
        }
        state.depth += 1;
        Ok(state)
    }

    /// Locks the file, and looks at its counter.
    fn lock_file(&self, state: &mut State, mode: Mode) -> Result<()> {
        let failed = Error::new(ErrorKind::Lock, "lock file cannot be locked");
        let file = loop {
            let file = match state.file.take() {
                Some(file) => file,
                None => open_lock_file(&self.path)
                    .map_err(|_| Error::new(ErrorKind::Lock, "lock file cannot be opened"))?,
            };
            lock_in_turn(file.as_file(), mode, &mut state.turns).map_err(|_| failed)?;
            if !self.is_left_behind(&file) {
                break state.file.insert(file);
            }
            state.changed = true;
        };
        let counted = read_counter(file).and_then(|seen| {
            if mode == Mode::Shared {
                return Ok((seen, seen));
            }
            let next = seen.wrapping_add(1);
            file.write_at(COUNTER_AT, &next.to_ne_bytes()).map_err(|_| failed)?;
            Ok((seen, next))
        });
        match counted {
            Ok((seen, next)) => {
                state.changed |= seen != state.counter;
                state.counter = next;
                Ok(())
            }
            Err(e) => {
                sys::unlock(file.as_file());
                Err(e)
            }
        }
    }

    /// Whether the lock file `file` was removed, with the frame, and there is a new frame: others lock another file
    /// then.
    fn is_left_behind(&self, file: &PlainFile) -> bool {
        sys::is_removed(file.as_file()) && id_at(&self.path) != file.id() && frame_of(&self.path).exists()
    }

    /// Ends one [`acquire`](Self::acquire) of that process.
    fn release(&self, process: u64) {
        if process != fork::count() {
            return;
        }
        let mut state = self.state();
        state.depth -= 1;
        if state.depth == 0 {
            if let Some(file) = &state.file {
                sys::unlock(file.as_file());
            }
            drop(state);
            self.threads.get().released.notify_all();
        }
    }
}

/// Opens the lock file, or makes it. A link is refused: otherwise whoever made the directory of a sparse frame could
/// have the counter written into any file.
fn open_lock_file(path: &Path) -> io::Result<PlainFile> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    deferred(|| options.open(path)).map(PlainFile::from)
}

/// Locks the file when it can be had: for reading, after those that want to change something.
fn lock_in_turn(file: &File, mode: Mode, turns: &mut Turns) -> io::Result<()> {
    if mode == Mode::Shared {
        turns.give_way(file);
    } else if sys::try_lock(file)? {
        return Ok(());
    }
    let _asking = (mode == Mode::Exclusive).then(|| Asking::new(file));
    sys::lock(file, mode)
}

/// The counter in the lock file; 0 in one that was made just now.
fn read_counter(file: &PlainFile) -> Result<u64> {
    let mut raw = [0; 8];
    let n = file.read_at(COUNTER_AT, &mut raw).map_err(|e| Error::new(ErrorKind::Lock, e.what()))?;
    Ok(if n == raw.len() { u64::from_ne_bytes(raw) } else { 0 })
}

#[cfg(unix)]
mod sys {
    use super::Mode;
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    pub(super) fn lock(file: &File, mode: Mode) -> io::Result<()> {
        let operation = match mode {
            Mode::Shared => libc::LOCK_SH,
            Mode::Exclusive => libc::LOCK_EX,
        };
        flock(file, operation)
    }

    /// Takes the exclusive lock, unless others have one; returns whether it did.
    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match flock(file, libc::LOCK_EX | libc::LOCK_NB) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }

    fn flock(file: &File, operation: libc::c_int) -> io::Result<()> {
        loop {
            // SAFETY: the descriptor is that of an open file, and flock touches no memory.
            if unsafe { libc::flock(file.as_raw_fd(), operation) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    pub(super) fn unlock(file: &File) {
        // SAFETY: as in `lock`. A failure leaves the lock to be released when the file is closed.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
    }

    /// Whether no path leads to the file any more.
    pub(super) fn is_removed(file: &File) -> bool {
        file.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }
}

#[cfg(windows)]
mod sys {
    use super::Mode;
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;
    use std::os::windows::io::AsRawHandle;

    #[repr(C)]
    struct Overlapped {
        internal: usize,
        internal_high: usize,
        offset: u32,
        offset_high: u32,
        event: *mut c_void,
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn LockFileEx(
            file: *mut c_void,
            flags: u32,
            reserved: u32,
            low: u32,
            high: u32,
            overlapped: *mut Overlapped,
        ) -> i32;
        fn UnlockFileEx(
            file: *mut c_void,
            reserved: u32,
            low: u32,
            high: u32,
            overlapped: *mut Overlapped,
        ) -> i32;
    }

    const EXCLUSIVE: u32 = 2;

    fn first_byte() -> Overlapped {
        Overlapped { internal: 0, internal_high: 0, offset: 0, offset_high: 0, event: std::ptr::null_mut() }
    }

    pub(super) fn lock(file: &File, mode: Mode) -> io::Result<()> {
        let flags = match mode {
            Mode::Shared => 0,
            Mode::Exclusive => EXCLUSIVE,
        };
        let mut at = first_byte();
        // SAFETY: the handle is open and `at` lives for the whole, synchronous call.
        if unsafe { LockFileEx(file.as_raw_handle().cast(), flags, 0, 1, 0, &mut at) } != 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error())
    }

    /// Nobody knows here without waiting.
    pub(super) fn try_lock(_: &File) -> io::Result<bool> {
        Ok(false)
    }

    pub(super) fn unlock(file: &File) {
        let mut at = first_byte();
        // SAFETY: as in `lock`. A failure leaves the lock to be released when the file is closed.
        unsafe { UnlockFileEx(file.as_raw_handle().cast(), 0, 1, 0, &mut at) };
    }

    /// An open file keeps its path on this system.
    pub(super) fn is_removed(_: &File) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("blosc2-{name}-{}", std::process::id()))
    }

    #[cfg(unix)]
    #[test]
    fn links_are_no_lock_files() {
        let (frame, target) = (path("linked"), path("victim"));
        std::fs::write(&target, [7; 32]).unwrap();
        std::os::unix::fs::symlink(&target, beside(&frame)).unwrap();
        for mode in [Mode::Shared, Mode::Exclusive] {
            assert_eq!(
                FrameLock::new(beside(&frame)).hold(mode).err().map(|e| e.kind()),
                Some(ErrorKind::Lock)
            );
        }
        assert_eq!(std::fs::read(&target).unwrap(), [7; 32]);
        std::fs::remove_file(beside(&frame)).unwrap();
        std::fs::remove_file(&target).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_file_that_cannot_be_read_is_not_kept_locked() {
        use std::os::unix::ffi::OsStrExt;
        let file = beside(&path("pipe"));
        let name = std::ffi::CString::new(file.as_os_str().as_bytes()).unwrap();
        // A pipe can be locked, but has no counter.
        // SAFETY: the name is a string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let lock = FrameLock::new(file.clone());
        for mode in [Mode::Shared, Mode::Exclusive] {
            assert_eq!(lock.hold(mode).err().map(|e| e.kind()), Some(ErrorKind::Lock));
            let other = File::options().read(true).write(true).open(&file).unwrap();
            assert!(sys::try_lock(&other).unwrap());
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn exclusive_holders_count_and_others_notice() {
        let frame = path("lock");
        let (a, b) = (FrameLock::new(beside(&frame)), FrameLock::new(beside(&frame)));
        for _ in 0..3 {
            let _outer = a.hold(Mode::Exclusive).unwrap();
            let _inner = a.hold(Mode::Exclusive).unwrap();
            assert!(!a.is_changed());
        }
        // Whoever takes the lock before the changes were read is told of them.
        for _ in 0..2 {
            let _held = b.hold(Mode::Shared).unwrap();
            assert!(b.is_changed());
        }
        b.note_read();
        drop(b.hold(Mode::Shared).unwrap());
        assert!(!b.is_changed());
        drop(b.hold(Mode::Exclusive).unwrap());
        drop(a.hold(Mode::Shared).unwrap());
        assert!(a.is_changed());
        let bytes = std::fs::read(beside(&frame)).unwrap();
        assert_eq!(bytes, [[0; 8], 4u64.to_ne_bytes()].concat());
        std::fs::remove_file(beside(&frame)).unwrap();
    }

    #[test]
    fn two_handles_exclude_each_other() {
        let frame = path("lock2");
        let a = FrameLock::new(beside(&frame));
        a.lock().unwrap();
        let b = FrameLock::new(beside(&frame));
        let waiter = std::thread::spawn(move || {
            let _held = b.hold(Mode::Shared).unwrap();
            b.is_changed()
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waiter.is_finished());
        a.unlock();
        assert!(waiter.join().unwrap());
        a.unlock();
        std::fs::remove_file(beside(&frame)).unwrap();
    }

    #[test]
    fn who_gets_the_exclusive_lock_has_it_whoever_was_reading() {
        let frame = path("lock4");
        let (a, b) = (FrameLock::new(beside(&frame)), FrameLock::new(beside(&frame)));
        let reading = a.hold(Mode::Shared).unwrap();
        let reader = std::thread::spawn(move || {
            std::thread::sleep(PATIENCE / 10);
            drop(reading);
        });
        a.lock().unwrap();
        reader.join().unwrap();
        let other = std::thread::spawn(move || {
            let _held = b.hold(Mode::Shared).unwrap();
            b.is_changed()
        });
        std::thread::sleep(PATIENCE / 10);
        assert!(!other.is_finished());
        a.unlock();
        assert!(other.join().unwrap());
        // A reader that asks itself is not waited for.
        let _reading = a.hold(Mode::Shared).unwrap();
        assert_eq!(a.lock().unwrap_err().kind(), ErrorKind::Lock);
        std::fs::remove_file(beside(&frame)).unwrap();
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[test]
    fn readers_that_follow_one_another_let_a_writer_in() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let frame = path("lock6");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let reader = FrameLock::new(beside(&frame));
                    while !done.load(Ordering::Relaxed) {
                        let _held = reader.hold(Mode::Shared).unwrap();
                        std::thread::sleep(Duration::from_millis(2));
                    }
                });
            }
            let writer = FrameLock::new(beside(&frame));
            for _ in 0..50 {
                drop(writer.hold(Mode::Exclusive).unwrap());
            }
            done.store(true, Ordering::Relaxed);
        });
        std::fs::remove_file(beside(&frame)).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_file_that_was_removed_keeps_nobody_out_and_that_of_a_new_frame_does() {
        let frame = path("lock5");
        let (a, b) = (FrameLock::new(beside(&frame)), FrameLock::new(beside(&frame)));
        drop(a.hold(Mode::Exclusive).unwrap());
        std::fs::remove_file(beside(&frame)).unwrap();
        // Nobody needs a lock where there is no frame.
        drop(a.hold(Mode::Exclusive).unwrap());
        assert!(!a.is_changed() && !beside(&frame).exists());
        std::fs::write(&frame, b"").unwrap();
        let other = b.hold(Mode::Exclusive).unwrap();
        let waiter = std::thread::spawn(move || {
            let _held = a.hold(Mode::Exclusive).unwrap();
            a.is_changed()
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waiter.is_finished());
        drop(other);
        assert!(waiter.join().unwrap());
        // Even where both have counted as far.
        let c = FrameLock::new(beside(&frame));
        drop(c.hold(Mode::Shared).unwrap());
        c.note_read();
        let bytes = std::fs::read(beside(&frame)).unwrap();
        std::fs::remove_file(beside(&frame)).unwrap();
        std::fs::write(beside(&frame), bytes).unwrap();
        drop(c.hold(Mode::Shared).unwrap());
        assert!(c.is_changed());
        std::fs::remove_file(beside(&frame)).unwrap();
        std::fs::remove_file(&frame).unwrap();
    }

    #[test]
    fn a_lock_file_tells_its_frame() {
        for frame in ["a/b.c", "a/b", "/b.b2lock"].map(Path::new) {
            assert_eq!((frame_of(&beside(frame)), frame_of(&inside(frame))), (frame.into(), frame.into()));
        }
    }

    #[test]
    fn a_reader_may_ask_again_after_a_long_time() {
        let frame = path("lock3");
        let a = FrameLock::new(beside(&frame));
        let outer = a.hold(Mode::Shared).unwrap();
        std::thread::sleep(SHARED_TURN * 2);
        drop(a.hold(Mode::Shared).unwrap());
        drop(outer);
        std::fs::remove_file(beside(&frame)).unwrap();
    }

    #[test]
    fn a_lock_file_that_cannot_be_made_is_a_lock_error() {
        let lock = FrameLock::new(path("absent").join("x.b2lock"));
        assert_eq!(lock.hold(Mode::Shared).err().unwrap().kind(), ErrorKind::Lock);
    }
}
