//! `fork` in a process whose other threads are inside the library at that moment.
//!
//! The child of a `fork` has a copy of all memory but only one thread, so a lock that another thread held stays locked
//! there for ever. Whatever belongs to the whole process is therefore one of these:
//!
//! | kind | what a `fork` does |
//! |---|---|
//! | [`Global`]: settings, registries, the list of pools, spare memory | the forking thread takes all of them before, and releases them after in both processes |
//! | [`Slot`], [`Lazy`]: dispatch tables, built-in entries of registries, limits that are read once | nothing: there is no lock; threads that need it first at the same time each make the value, and agree on one |
//! | counters and flags | nothing: they are atomic |
//! | [`Shelf`](crate::shelf::Shelf): encoders that no thread is using | nothing: there is no lock, and a place is empty or full |
//! | [`PerProcess`]: what the threads of this process hold of a lock file | the child begins with a value of its own |
//! | threads: pools, a plugin that somebody is loading | they remember the number of forks, [`count`], and are not those of this process if it has changed |
//!
//! No lock of the whole process is taken in any other way; a test looks for them.
//!
//! What belongs to one object (a context, a super-chunk, an array) is not covered: if another thread is changing it,
//! the child has it half-changed, with or without a lock; if another thread is reading it, the child can read it, too,
//! but waits for ever where it wants to change it. What readers lock on their way is no such lock: a pool that was used
//! last is taken and put back without one, and a file's handle or its lock is left alone, or begun anew, where a thread
//! that is gone may have it. Locks inside of an operation belong to the operation, and are of [`crate::mutex`]. Those
//! of objects are of `parking_lot`, whose table of sleeping threads is the process's: a `fork` at the very moment at
//! which another thread goes to sleep for such a lock, or is woken, leaves a part of that table locked, and a child may
//! stop where several threads that it has started want the same object.
//!
//! Locks that others have for the whole process are left alone as well. The standard library takes one when a thread
//! that it has made ends, so the threads of the library are not of that kind ([`crate::threads`]). What is asked of
//! the C library on the way either takes no lock or one that `fork` resets there, or it is asked with a `Global` held;
//! but why a plugin could not be loaded may be put into the user's language under locks that stay as they were.
//!
//! # Order
//!
//! A thread that holds a `Global` asks for no other, but that one made with [`Global::outer`] comes first: it may hold
//! others inside. Functions of the application, the loader of libraries and whatever else may call back or `fork` are
//! never called with one held. Debug builds check this. So a `fork` waits for a few instructions of other threads, and
//! never for itself.
//!
//! Handlers of the application (`pthread_atfork`) run before and after those of the library, in the thread that
//! forks, and may call the library: what this thread has taken for the `fork` is open to it.

use crate::mutex::Mutex;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A value of the whole process, behind a lock that a `fork` leaves free in both processes.
///
/// The child, too, can release these locks, though the threads that waited for them are gone.
pub(crate) struct Global<T: 'static> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, the one that has the lock.
unsafe impl<T: Send> Sync for Global<T> {}

/// The lock of a [`Global`].
struct Lock {
    mutex: Mutex<()>,
    /// Whether others may be taken while it is held.
    outer: bool,
    /// Whether it is in [`LOCKS`].
    listed: AtomicBool,
    /// Whether a handler around a `fork` uses the value.
    lent: AtomicBool,
}

/// Every lock that was ever taken, in the order of their first use. Its own lock is taken last, and nothing is
/// waited for with it.
static LOCKS: Mutex<Vec<&'static Lock>> = Mutex::new(Vec::new());

impl<T> Global<T> {
    /// A value whose lock is held for a few instructions, and with no other.
    pub(crate) const fn new(value: T) -> Global<T> {
        Global::with_lock(false, value)
    }

    /// A value whose lock may be held while others are taken. There is one such lock.
    pub(crate) const fn outer(value: T) -> Global<T> {
        Global::with_lock(true, value)
    }

    const fn with_lock(outer: bool, value: T) -> Global<T> {
        let (listed, lent) = (AtomicBool::new(false), AtomicBool::new(false));
        Global { lock: Lock { mutex: Mutex::new(()), outer, listed, lent }, value: UnsafeCell::new(value) }
    }

    /// Waits for the value and takes it.
    pub(crate) fn lock(&'static self) -> Guard<T> {
        if around::is_this_thread() {
            return self.lend().expect("nobody takes a lock of the process twice");
        }
        self.lock.enlist();
        order::enter(self.lock.outer);
        Guard { global: self, held: Some(self.lock.mutex.lock()) }
    }

    /// Takes the value if nobody else has it.
    pub(crate) fn try_lock(&'static self) -> Option<Guard<T>> {
        if around::is_this_thread() {
            return self.lend();
        }
        self.lock.enlist();
        let held = self.lock.mutex.try_lock()?;
        order::enter(self.lock.outer);
        Some(Guard { global: self, held: Some(held) })
    }

    /// The value for a handler around a `fork`, in the thread that has taken everything, unless the handler has it
    /// already.
    fn lend(&'static self) -> Option<Guard<T>> {
        // A lock not in use before is not in the list, but nobody can start to use it meanwhile.
        let is_lent = self.lock.lent.swap(true, Ordering::Relaxed);
        (!is_lent).then(|| Guard { global: self, held: None })
    }
}

impl Lock {
    /// Sees to it that forks take this lock.
    fn enlist(&'static self) {
        if !self.listed.load(Ordering::Acquire) {
            self.enlist_now();
        }
    }

    #[cold]
    fn enlist_now(&'static self) {
        around::install();
        let mut locks = LOCKS.lock();
        if !self.listed.swap(true, Ordering::AcqRel) {
            locks.push(self);
        }
    }
}

/// Holds the value of a [`Global`].
pub(crate) struct Guard<T: 'static> {
    global: &'static Global<T>,
    /// `None` in a handler around a `fork`: the thread has the lock, though not here.
    held: Option<MutexGuard<'static, ()>>,
}

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock and lends the value once at a time, to this guard.
        unsafe { &*self.global.value.get() }
    }
}

impl<T> DerefMut for Guard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the guard is borrowed for changes.
        unsafe { &mut *self.global.value.get() }
    }
}

impl<T> Drop for Guard<T> {
    fn drop(&mut self) {
        match self.held.take() {
            Some(held) => {
                order::leave(self.global.lock.outer);
                drop(held);
            }
            None => self.global.lock.lent.store(false, Ordering::Relaxed),
        }
    }
}

/// Room for a value that is made once, without a lock: threads that come first at the same time each make it, and agree
/// on one.
pub(crate) struct Slot<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Slot<T> {
    pub(crate) const fn new() -> Slot<T> {
        Slot(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value, if it was made.
    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or stored by `make` from a `&'static T`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value; made now if there is none.
    #[inline]
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> &'static T) -> &'static T {
        match self.get() {
            Some(made) => made,
            None => self.make(make),
        }
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> &'static T) -> &'static T {
        let new = make();
        let (null, new_ptr) = (ptr::null_mut(), ptr::from_ref(new).cast_mut());
        match self.0.compare_exchange(null, new_ptr, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            // SAFETY: not null, so it came from here.
            Err(first) => unsafe { &*first },
        }
    }
}

/// A value made at its first use, as in a [`Slot`].
pub(crate) struct Lazy<T: 'static> {
    slot: Slot<T>,
    make: fn() -> &'static T,
}

impl<T: Sync> Lazy<T> {
    /// A value that `make` makes, which has no other effect: it may be called more than once.
    pub(crate) const fn new(make: fn() -> &'static T) -> Lazy<T> {
        Lazy { slot: Slot::new(), make }
    }
}

impl<T: Sync> Deref for Lazy<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.slot.get_or_make(self.make)
    }
}

/// A value that each process has for itself, of an object that a child of a `fork` may use while its lock is in the
/// hands of a thread that does not exist there.
pub(crate) struct PerProcess<T> {
    current: AtomicPtr<Owned<T>>,
    renew: fn(&T) -> T,
}

/// The value of one process, as [`count`] names it.
struct Owned<T> {
    process: u64,
    value: T,
}

// SAFETY: the value is shared as a reference, and dropped by whoever drops the whole.
unsafe impl<T: Send + Sync> Send for PerProcess<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// The value of this process, and what makes that of a child from a reference to it, without waiting for anything.
    pub(crate) fn new(value: T, renew: fn(&T) -> T) -> PerProcess<T> {
        PerProcess { current: AtomicPtr::new(Owned::new(count(), value)), renew }
    }

    /// The value of this process. That of the parent stays in memory: threads of the parent may have been using it.
    pub(crate) fn get(&self) -> &T {
        let process = count();
        let known = self.current.load(Ordering::Acquire);
        // SAFETY: made by `Owned::new`; only `drop` frees one that others may have seen.
        let owned = unsafe { &*known };
        if owned.process == process {
            return &owned.value;
        }
        let fresh = Owned::new(process, (self.renew)(&owned.value));
        match self.current.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &(*fresh).value },
            Err(first) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: as above; another thread of this process was first.
                unsafe { &(*first).value }
            }
        }
    }
}

impl<T> Owned<T> {
    fn new(process: u64, value: T) -> *mut Owned<T> {
        Box::into_raw(Box::new(Owned { process, value }))
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        // SAFETY: made by `Owned::new`, and nobody uses it any more.
        let is_ours = unsafe { (*current).process } == count();
        if is_ours {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

/// Forks between the first process that used the library and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// How many forks lie between this process and the first one that used the library: a process and its child never have
/// the same number. Whoever remembers it can tell later whether the threads that it knew then exist in this process.
pub(crate) fn count() -> u64 {
    around::install();
    FORKS.load(Ordering::Relaxed) + u64::from(around::is_new_process())
}

/// Handlers around `fork`.
#[cfg(unix)]
mod around {
    use super::{AtomicBool, FORKS, LOCKS, Lock, MutexGuard, Ordering, UnsafeCell, order};
    use std::sync::atomic::AtomicUsize;

    /// What a `fork` under way has taken.
    struct Taken {
        locks: Vec<MutexGuard<'static, ()>>,
        /// Held as well, so that no lock is used for the first time meanwhile; and taken last: the thread that has it
        /// may use this structure.
        list: Option<MutexGuard<'static, Vec<&'static Lock>>>,
        /// The process that forks.
        pid: libc::pid_t,
        /// Whether this is the child. Its number may be that of the parent, in another namespace.
        in_child: bool,
        /// Handlers that have begun and not ended: above 1 if they were installed twice, or if one of them forks.
        depth: usize,
    }

    impl Taken {
        /// Whether this is the child.
        fn is_new_process(&self) -> bool {
            // SAFETY: no conditions.
            self.in_child || self.pid != unsafe { libc::getpid() }
        }
    }

    /// [`Taken`] as a static.
    struct Cell(UnsafeCell<Taken>);

    // SAFETY: only the thread that `FORKER` names, and that thus has `LOCKS`, looks inside.
    unsafe impl Sync for Cell {}

    static TAKEN: Cell =
        Cell(UnsafeCell::new(Taken { locks: Vec::new(), list: None, pid: 0, in_child: false, depth: 0 }));

    /// The thread that is in the middle of a `fork`, as [`this_thread`] names it; else 0.
    static FORKER: AtomicUsize = AtomicUsize::new(0);

    thread_local! {
        static NAME: u8 = const { 0 };
    }

    /// A number that no other living thread has, the same in the child of a `fork`.
    fn this_thread() -> usize {
        NAME.with(|name| std::ptr::from_ref(name).addr())
    }

    /// Whether this thread is in the middle of a `fork`.
    #[inline]
    pub(super) fn is_this_thread() -> bool {
        let forker = FORKER.load(Ordering::Relaxed);
        forker != 0 && forker == this_thread()
    }

    /// Whether this is the child of a `fork`, and [`FORKS`] does not say so yet.
    #[inline]
    pub(super) fn is_new_process() -> bool {
        if !is_this_thread() {
            return false;
        }
        // SAFETY: this thread is the one that is named, and has no other reference to it here.
        unsafe { &*TAKEN.0.get() }.is_new_process()
    }

    /// Puts the handlers in place.
    #[inline]
    pub(super) fn install() {
        static INSTALLED: AtomicBool = AtomicBool::new(false);
        if !INSTALLED.load(Ordering::Acquire) {
            // If several threads come here at once, the handlers run more than once for each fork, which does no harm.
            // SAFETY: they keep the contract of such handlers, and are functions of this library, with which they go.
            unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
            INSTALLED.store(true, Ordering::Release);
        }
    }

    /// Takes all locks.
    extern "C" fn before() {
        if !is_this_thread() {
            order::expect_none();
            take_all();
        }
        // SAFETY: this thread is the one that is named.
        unsafe { (*TAKEN.0.get()).depth += 1 };
    }

    fn take_all() {
        loop {
            let mut known = LOCKS.lock().clone();
            known.sort_by_key(|lock| !lock.outer);
            let locks: Vec<_> = known.iter().map(|known| known.mutex.lock()).collect();
            let list = LOCKS.lock();
            // Otherwise one more has come into use meanwhile. There are about ten.
            if list.len() == locks.len() {
                // SAFETY: this thread has `LOCKS`.
                let taken = unsafe { &mut *TAKEN.0.get() };
                // SAFETY: no conditions.
                let pid = unsafe { libc::getpid() };
                *taken = Taken { locks, list: Some(list), pid, in_child: false, depth: 0 };
                FORKER.store(this_thread(), Ordering::Relaxed);
                return;
            }
        }
    }

    /// Ends one [`before`]; the last one releases all locks.
    fn after(in_child: bool) {
        if !is_this_thread() {
            return; // `before` ran in a version of the library that has been unloaded since
        }
        // SAFETY: this thread is the one that is named, and has `LOCKS` until the end of this function.
        let taken = unsafe { &mut *TAKEN.0.get() };
        taken.in_child |= in_child;
        taken.depth = taken.depth.saturating_sub(1);
        if taken.depth == 0 {
            FORKS.fetch_add(u64::from(taken.is_new_process()), Ordering::Relaxed);
            let (locks, list) = (std::mem::take(&mut taken.locks), taken.list.take());
            FORKER.store(0, Ordering::Relaxed);
            drop(list);
            drop(locks);
        }
    }

    extern "C" fn after_in_parent() {
        after(false);
    }

    extern "C" fn after_in_child() {
        after(true);
    }
}

/// Systems without `fork`.
#[cfg(not(unix))]
mod around {
    pub(super) fn is_this_thread() -> bool {
        false
    }

    pub(super) fn is_new_process() -> bool {
        false
    }

    pub(super) fn install() {}
}

/// Checks, in debug builds, that locks are taken in the order that the module describes.
mod order {
    #[cfg(debug_assertions)]
    thread_local! {
        /// Locks that this thread holds: 2 for an inner one, 1 for the outer one.
        static HELD: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
    }

    /// This thread is about to take a lock.
    #[inline]
    pub(super) fn enter(outer: bool) {
        #[cfg(debug_assertions)]
        HELD.with(|held| {
            let allowed = if outer { 0 } else { 1 };
            assert!(held.get() <= allowed, "locks of the process are taken in the wrong order");
            held.set(held.get() + 2 - u8::from(outer));
        });
        let _ = outer;
    }

    /// This thread has released a lock.
    #[inline]
    pub(super) fn leave(outer: bool) {
        #[cfg(debug_assertions)]
        HELD.with(|held| held.set(held.get() + u8::from(outer) - 2));
        let _ = outer;
    }

    /// This thread is about to wait for all locks.
    #[cfg(unix)]
    pub(super) fn expect_none() {
        #[cfg(debug_assertions)]
        HELD.with(|held| assert!(held.get() == 0, "a fork with a lock of the process held"));
    }
}

#[cfg(test)]
mod tests;
