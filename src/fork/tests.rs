use super::*;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::{Duration, Instant};

/// Whether the type after the colon of a `static` is a lock that is not one of this module.
fn is_foreign_lock(line: &str) -> bool {
    let line = line.trim_start();
    let is_item = line.starts_with("static ") || line.starts_with("pub");
    let Some((_, declaration)) = line.split_once("static ").filter(|_| is_item) else { return false };
    let kind = declaration.split_once(':').map_or("", |(_, rest)| rest.split('=').next().unwrap_or(""));
    ["Mutex", "RwLock", "Once", "LazyLock", "Condvar", "Barrier"].iter().any(|lock| kind.contains(lock))
}

/// Whether `try_lock` gives a value that no test holds. Forks of other tests hold every value for a moment.
fn is_to_be_had<T>(value: &'static Global<T>) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if value.try_lock().is_some() {
            return true;
        }
        thread::yield_now();
    }
    false
}

/// Whether a line makes a thread of the standard library.
fn makes_foreign_thread(line: &str) -> bool {
    ["thread::spawn(", "thread::scope(", "thread::Builder", "use std::thread::{"]
        .iter()
        .any(|way| line.contains(way))
}

/// The files of the library, with their code except for tests at the end.
fn sources() -> Vec<(std::path::PathBuf, String)> {
    let mut dirs = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    let mut files = Vec::new();
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if !path.ends_with("tests.rs") && !path.iter().any(|part| part == "tests") {
                let mut text = std::fs::read_to_string(&path).unwrap();
                text.truncate(text.find("mod tests {").unwrap_or(text.len()));
                files.push((path, text));
            }
        }
    }
    assert!(files.len() > 100);
    files
}

fn assert_none_has(is_found: fn(&str) -> bool, but_for: &str) {
    for (path, text) in sources().iter().filter(|(path, _)| !path.ends_with(but_for)) {
        let found: Vec<&str> = text.lines().filter(|line| is_found(line)).collect();
        assert!(found.is_empty(), "{}: {found:?}", path.display());
    }
}

#[test]
fn the_process_has_no_other_locks() {
    assert!(is_foreign_lock("    pub static X: Mutex<u8> = Mutex::new(0);"));
    assert!(is_foreign_lock("pub(in super::super) static X: std::sync::Once = std::sync::Once::new();"));
    assert!(is_foreign_lock("static X: std::sync::OnceLock<u8> = std::sync::OnceLock::new();"));
    assert!(!is_foreign_lock("static X: Global<u8> = Global::new(0);"));
    assert_none_has(is_foreign_lock, "src/fork.rs");
}

#[test]
fn no_thread_takes_a_lock_of_the_process_when_it_ends() {
    assert!(makes_foreign_thread("let thread = std::thread::spawn(work);"));
    assert!(!makes_foreign_thread("let thread = Thread::start(work);"));
    assert_none_has(makes_foreign_thread, "src/threads.rs");
}

#[test]
fn one_of_many_first_users_makes_the_value() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static VALUE: Lazy<usize> = Lazy::new(|| Box::leak(Box::new(MADE.fetch_add(1, Ordering::Relaxed))));
    let seen: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| ptr::from_ref(&*VALUE).addr())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(seen.iter().all(|&address| address == seen[0]));
    assert!((1..=8).contains(&MADE.load(Ordering::Relaxed)));
}

#[test]
fn what_is_held_is_not_to_be_had() {
    static VALUE: Global<u64> = Global::new(0);
    let mut held = VALUE.lock();
    *held += 1;
    thread::scope(|scope| scope.spawn(|| assert!(VALUE.try_lock().is_none())).join().unwrap());
    drop(held);
    assert!(is_to_be_had(&VALUE));
    assert_eq!(*VALUE.lock(), 1);
}

#[cfg(debug_assertions)]
#[test]
fn the_order_of_locks_is_checked() {
    static A: Global<u64> = Global::new(0);
    static B: Global<u64> = Global::new(0);
    static FIRST: Global<u64> = Global::outer(0);
    let wrong = |take: fn()| thread::spawn(take).join().is_err();
    assert!(wrong(|| drop((A.lock(), B.lock()))));
    assert!(wrong(|| drop((A.lock(), FIRST.lock()))));
    assert!(!wrong(|| drop((FIRST.lock(), B.lock()))));
    assert!(!wrong(|| drop(A.lock()))); // a panic has released it
}

#[cfg(unix)]
mod processes {
    use super::*;

    static SMALL: Global<Vec<u64>> = Global::new(Vec::new());
    static OUTER: Global<u64> = Global::outer(0);
    /// As many values as threads may use for the first time while others fork.
    static FRESH: [Global<u64>; 64] = [const { Global::new(0) }; 64];

    /// Runs `work` in a child, which has 20 seconds for it; whether it ended well.
    fn child(work: fn() -> bool) -> bool {
        // SAFETY: the child only runs `work` and ends.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: no conditions.
            unsafe {
                libc::alarm(20);
                libc::_exit(if work() { 0 } else { 1 });
            }
        }
        let mut status = 0;
        // SAFETY: `status` is writable.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        waited == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }

    fn works_in_child() -> bool {
        let in_order = SMALL.lock().windows(2).all(|pair| pair[0] <= pair[1]);
        *OUTER.lock() += 1;
        in_order && SMALL.try_lock().is_some() && FRESH.iter().all(|value| value.try_lock().is_some())
    }

    #[test]
    fn a_child_finds_all_locks_free_and_the_values_whole() {
        let end = AtomicBool::new(false);
        let fails = thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !end.load(Ordering::Relaxed) {
                        let mut outer = OUTER.lock();
                        let mut values = SMALL.lock();
                        *outer += 1;
                        values.push(*outer);
                        if values.len() > 1000 {
                            values.clear();
                        }
                    }
                });
            }
            scope.spawn(|| {
                for value in &FRESH {
                    *value.lock() += 1;
                    thread::yield_now();
                }
            });
            let fails = (0..200).filter(|_| !child(works_in_child)).count();
            end.store(true, Ordering::Relaxed);
            fails
        });
        assert_eq!(fails, 0);
    }

    #[test]
    fn a_child_has_a_value_of_its_own_though_a_thread_of_the_parent_holds_that() {
        static HERE: Slot<PerProcess<Mutex<u64>>> = Slot::new();
        let here = HERE.get_or_make(|| {
            Box::leak(Box::new(PerProcess::new(Mutex::new(1), |old| {
                Mutex::new(old.try_lock().map_or(7, |old| *old))
            })))
        });
        let held = here.get().lock();
        assert!(child(|| {
            let here = HERE.get().unwrap();
            let is_fresh = *here.get().lock() == 7;
            *here.get().lock() += 1;
            // What nobody holds is handed on.
            is_fresh && *here.get().lock() == 8 && child(|| *HERE.get().unwrap().get().lock() == 8)
        }));
        assert_eq!(*held, 1);
    }

    #[test]
    fn every_process_has_a_count_of_its_own() {
        static HERE: AtomicU64 = AtomicU64::new(0);
        HERE.store(count(), Ordering::Relaxed);
        assert!(child(|| count() == HERE.load(Ordering::Relaxed) + 1 && child(|| count() > 1)));
        assert_eq!(count(), HERE.load(Ordering::Relaxed));
    }

    /// What the handlers of the application saw: 1 per call of the one before, 100 per call of those after.
    static SEEN: Global<u64> = Global::new(0);
    static COUNTED: AtomicU64 = AtomicU64::new(0);

    extern "C" fn before() {
        let mut seen = SEEN.lock();
        *seen += 1;
        assert!(SEEN.try_lock().is_none());
    }

    extern "C" fn after() {
        COUNTED.store(count(), Ordering::Relaxed);
        *SEEN.lock() += 100;
        assert!(is_to_be_had(&SEEN));
    }

    #[test]
    fn handlers_of_the_application_may_use_everything() {
        // Once before those of the library and once after them, unless another test came first: then twice after.
        for _ in 0..2 {
            // SAFETY: they touch nothing but the values above.
            assert_eq!(unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) }, 0);
            let _ = count();
        }
        let earlier = count();
        *SEEN.lock() = 0;
        assert!(child(|| *SEEN.lock() >= 202 && COUNTED.load(Ordering::Relaxed) == count()));
        assert!(*SEEN.lock() >= 202);
        assert_eq!(count(), earlier);
    }
}
