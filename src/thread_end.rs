//! Work to be done when a thread ends or the library is unloaded, and the memory that ending threads leave to others.
//!
//! Threads keep memory from call to call, in thread-locals without a destructor. Destructors of Rust's thread-locals
//! are registered with the loader, which takes the loader's lock: in its first call, a thread would have to wait while
//! another one runs the constructors of some library, for ever if these wait for that thread in turn. And the loader
//! would not unload this library as long as such a thread lives. So the work is tied to keys (`pthread_key_create`),
//! which are deleted when the library is unloaded.

pub(crate) use sys::ThreadEnd;

use crate::cpu;
use crate::fork::Global;

/// Most things of a kind that threads leave to others.
const MOST_LEFT: usize = 16;

/// What threads leave to others when they end: memory that is used already, so that a program with a thread for each
/// request does not get it anew from the system each time. It is no more than the processors can use at once.
pub(crate) struct Left<T: 'static>(Global<Vec<T>>);

impl<T: Send> Left<T> {
    pub(crate) const fn new() -> Left<T> {
        Left(Global::new(Vec::new()))
    }

    /// Leaves something, unless there is enough, or another thread is at it.
    pub(crate) fn put(&'static self, thing: T) {
        let most = MOST_LEFT.min(cpu::processors());
        if let Some(mut left) = self.0.try_lock() {
            if left.len() < most {
                left.push(thing);
                return;
            }
        }
        drop(thing);
    }

    /// Takes what was left last, unless another thread is at it.
    pub(crate) fn take(&'static self) -> Option<T> {
        self.0.try_lock()?.pop()
    }

    /// Frees all that was left.
    pub(crate) fn clear(&'static self) {
        let all = self.0.try_lock().map(|mut left| std::mem::take(&mut *left));
        drop(all);
    }
}

#[cfg(all(unix, not(target_vendor = "apple")))]
mod sys {
    use std::ffi::c_void;
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

    /// Something that is done at the end of each thread that asks for it.
    pub(crate) struct ThreadEnd {
        work: fn(),
        at_unload: fn(),
        /// [`NO_KEY`], [`CLOSED`], or 1 more than the key.
        key: AtomicUsize,
        /// The next one in [`WITH_KEYS`].
        next: AtomicPtr<ThreadEnd>,
    }

    const NO_KEY: usize = 0;
    /// The library is being unloaded, or the process ends.
    const CLOSED: usize = usize::MAX;

    /// All that have keys.
    static WITH_KEYS: AtomicPtr<ThreadEnd> = AtomicPtr::new(ptr::null_mut());

    impl ThreadEnd {
        /// `work` is done at the end of threads; `at_unload` when the library is unloaded, and at the end of the
        /// process.
        pub(crate) const fn new(work: fn(), at_unload: fn()) -> ThreadEnd {
            let (key, next) = (AtomicUsize::new(NO_KEY), AtomicPtr::new(ptr::null_mut()));
            ThreadEnd { work, at_unload, key, next }
        }

        /// Has the work done at the end of this thread, once. If the system has no more keys, it is not done.
        #[cold]
        pub(crate) fn ask(&'static self) {
            let key = match self.key.load(Ordering::Acquire) {
                NO_KEY => self.make_key(),
                key => key,
            };
            if key != NO_KEY && key != CLOSED {
                // The value tells `end` what to do.
                // SAFETY: the key exists until it is closed.
                unsafe {
                    libc::pthread_setspecific((key - 1) as libc::pthread_key_t, ptr::from_ref(self).cast())
                };
            }
        }

        fn make_key(&'static self) -> usize {
            let mut made = 0;
            // SAFETY: there is room for a key; `end` knows what values it has.
            if unsafe { libc::pthread_key_create(&raw mut made, Some(end)) } != 0 {
                return NO_KEY;
            }
            let key = made as usize + 1;
            match self.key.compare_exchange(NO_KEY, key, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.add();
                    key
                }
                Err(key) => {
                    // SAFETY: nobody else has seen this one.
                    unsafe { libc::pthread_key_delete(made) };
                    key
                }
            }
        }

        /// Adds this to [`WITH_KEYS`], as happens once.
        fn add(&'static self) {
            let mut first = WITH_KEYS.load(Ordering::Relaxed);
            loop {
                self.next.store(first, Ordering::Relaxed);
                let this = ptr::from_ref(self).cast_mut();
                match WITH_KEYS.compare_exchange(first, this, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => return,
                    Err(other) => first = other,
                }
            }
        }
    }

    /// Does what a thread that ends has asked for.
    extern "C" fn end(asked: *mut c_void) {
        // SAFETY: the values of the keys come from `ask`.
        let asked: &'static ThreadEnd = unsafe { &*asked.cast::<ThreadEnd>() };
        (asked.work)();
    }

    /// Called by the loader before it unloads the library, and when the process ends: nothing is called here any more
    /// when a thread ends. What other threads keep stays where it is, as they may be at work.
    extern "C" fn unload() {
        let mut next = WITH_KEYS.load(Ordering::Acquire);
        // SAFETY: null, or one that lives as long as the library.
        while let Some(this) = unsafe { next.as_ref() } {
            (this.at_unload)();
            if let key @ 1..CLOSED = this.key.swap(CLOSED, Ordering::AcqRel) {
                // SAFETY: the key exists, and nobody takes it from here any more.
                unsafe { libc::pthread_key_delete((key - 1) as libc::pthread_key_t) };
            }
            next = this.next.load(Ordering::Relaxed);
        }
    }

    #[cfg(not(miri))]
    #[used]
    #[unsafe(link_section = ".fini_array")]
    static AT_UNLOAD: extern "C" fn() = unload;

    #[cfg(miri)]
    const _: extern "C" fn() = unload;
}

/// Where libraries are unloaded in another way, or never: by a destructor. (On Apple's systems, libraries with locals
/// of threads stay, and the locals are gone by the time that it is the turn of keys.)
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
mod sys {
    use std::cell::RefCell;

    /// Something that is done at the end of each thread that asks for it.
    pub(crate) struct ThreadEnd {
        work: fn(),
    }

    /// What this thread has asked for.
    struct Asked(Vec<fn()>);

    impl Drop for Asked {
        fn drop(&mut self) {
            self.0.iter().for_each(|work| work());
        }
    }

    thread_local! {
        static ASKED: RefCell<Asked> = const { RefCell::new(Asked(Vec::new())) };
    }

    impl ThreadEnd {
        /// `work` is done at the end of threads. There is no way to have anything done at the end of the process.
        pub(crate) const fn new(work: fn(), _at_unload: fn()) -> ThreadEnd {
            ThreadEnd { work }
        }

        /// Has the work done at the end of this thread, once; not at all if the end is near.
        #[cold]
        pub(crate) fn ask(&'static self) {
            let _ = ASKED.try_with(|asked| asked.borrow_mut().0.push(self.work));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn work_is_done_at_the_end_of_each_thread_that_asks() {
        static DONE: AtomicUsize = AtomicUsize::new(0);
        static END: ThreadEnd = ThreadEnd::new(|| _ = DONE.fetch_add(1, Ordering::Relaxed), || ());
        let all = std::sync::Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    END.ask();
                    assert_eq!(DONE.load(Ordering::Relaxed), 0);
                    all.wait();
                });
            }
        });
        // A scope ends before its threads have ended altogether.
        while DONE.load(Ordering::Relaxed) < 3 {
            thread::yield_now();
        }
    }

    /// What ends with a thread may ask again.
    #[test]
    fn work_that_asks_again_is_done_again() {
        static DONE: AtomicUsize = AtomicUsize::new(0);
        static END: ThreadEnd = ThreadEnd::new(
            || {
                if DONE.fetch_add(1, Ordering::Relaxed) == 0 {
                    END.ask();
                }
            },
            || (),
        );
        thread::spawn(|| END.ask()).join().unwrap();
        assert_eq!(
            DONE.load(Ordering::Relaxed),
            if cfg!(all(unix, not(target_vendor = "apple"))) { 2 } else { 1 }
        );
    }

    #[test]
    fn what_is_left_is_taken_once_and_is_not_too_much() {
        static LEFT: Left<usize> = Left::new();
        assert_eq!(LEFT.take(), None);
        (0..1000).for_each(|n| LEFT.put(n));
        let taken: Vec<usize> = std::iter::from_fn(|| LEFT.take()).collect();
        assert!((1..=MOST_LEFT).contains(&taken.len()) && taken.iter().rev().copied().eq(0..taken.len()));
        LEFT.put(7);
        LEFT.clear();
        assert_eq!(LEFT.take(), None);
    }
}
