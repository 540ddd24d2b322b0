//! Thread pools, shared by all contexts with the same number of threads, and the [`Executor`] trait that also covers
//! threads of the application.
//!
//! A pool for `n` threads has up to `n - 1` workers, started when a job needs them: the calling thread takes part.
//! Where several threads of the application have jobs at once, there are as many for each of them, as long as there are
//! processors for all; with more callers than that, some of the workers rest. A job is cut into tasks, and whoever is
//! free takes the next one; tasks share their work through a counter, so a task that starts late finds nothing left to
//! do and nobody waits for a thread that is slow to wake. Workers spin briefly before they sleep.
//!
//! A thread that ends may still have jobs, and be the last user of a pool, in the destructors of its thread-specific
//! data (`pthread_key_create`). Its locals in Rust are gone by then, and with them `std::thread::current`, so nothing
//! here asks for it: callers sleep on a condition variable of their job, and workers know their place in their pool.
//!
//! After `fork` the child has none of the threads. Pools remember the number of forks up to their birth, and [`attach`]
//! replaces pools of another process.

use crate::cancel;
use crate::cpu;
use crate::fork::{self, Global};
use crate::mutex::Mutex;
use crate::panics;
use crate::threads::Thread;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long an idle worker watches for new jobs before it sleeps.
const WORKER_SPIN: Duration = Duration::from_micros(60);
/// How long a caller watches for the end of its job before it sleeps.
const CALLER_SPIN: Duration = Duration::from_micros(200);

/// After so many operations, a pool with more threads than processors counts the processors again.
const COUNT_AGAIN: usize = 64;

/// Something that runs the tasks of an operation on several threads.
pub trait Executor: Sync {
    /// Calls `task(0)` to `task(ntasks - 1)`, in any order, on any threads, and returns when all have returned.
    fn run(&self, ntasks: usize, task: &(dyn Fn(usize) + Sync));

    /// Whether a task may wait for what another one is doing. If threads also run whatever else is queued while they are
    /// inside a task, or sleep until it is done, the other one may be waiting for the thread of the first.
    fn tasks_may_wait(&self) -> bool {
        false
    }
}

/// One call of [`Pool::run`].
struct Job {
    /// The task; valid until `pending` is 0, since `run` does not return before.
    task: *const (dyn Fn(usize) + Sync),
    ntasks: usize,
    /// The next task to hand out.
    next: AtomicUsize,
    /// Tasks that have not ended; and [`ASLEEP`], once the caller has no patience left.
    pending: AtomicUsize,
    panicked: AtomicBool,
    /// Held by a caller that is about to sleep.
    sleep_lock: Mutex<()>,
    /// The caller sleeps on this until all tasks have ended.
    ended: Condvar,
}

/// What [`Job::pending`] has beside the number of tasks if the caller sleeps, or is about to.
const ASLEEP: usize = 1 << (usize::BITS - 1);

// SAFETY: the task is `Sync` and outlives its use, see `Job::task`; the other fields are Send and Sync.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Whether there are tasks that nobody has taken.
    fn has_tasks(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.ntasks
    }

    /// Takes the next task, if one is left.
    fn take(&self) -> Option<usize> {
        if !self.has_tasks() {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.ntasks).then_some(index)
    }

    /// Runs tasks until none is left.
    fn work(&self) {
        let was_inside = IN_TASK.replace(true);
        while let Some(index) = self.take() {
            // SAFETY: this task has not ended, so `run` has not returned and the closure is alive.
            let task = unsafe { &*self.task };
            if panics::caught(|| task(index)).is_none() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if self.pending.fetch_sub(1, Ordering::Release) == ASLEEP + 1 {
                self.wake_caller();
            }
        }
        IN_TASK.set(was_inside);
    }

    #[cold]
    fn wake_caller(&self) {
        // Once this has had the lock, the caller is not between its last look at `pending` and its sleep.
        drop(self.sleep_lock.lock());
        self.ended.notify_one();
    }

    /// Whether all tasks have ended.
    fn has_ended(&self) -> bool {
        self.pending.load(Ordering::Acquire) & !ASLEEP == 0
    }

    /// Returns when all tasks have ended: after a while of watching, the caller sleeps.
    fn wait_for_end(&self) {
        let start = Instant::now();
        while !self.has_ended() {
            for _ in 0..64 {
                std::hint::spin_loop();
            }
            if start.elapsed() >= CALLER_SPIN {
                return self.sleep_until_end();
            }
        }
    }

    #[cold]
    fn sleep_until_end(&self) {
        let mut sleep_lock = self.sleep_lock.lock();
        self.pending.fetch_or(ASLEEP, Ordering::Relaxed);
        while !self.has_ended() {
            sleep_lock = self.ended.wait(sleep_lock).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What there is to do, and who waits for it.
struct Queue {
    jobs: VecDeque<Arc<Job>>,
    /// Workers asleep on the condition variable.
    sleeping: usize,
    /// Workers that have a job.
    working: usize,
}

/// What the workers and the pool share.
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Counts submitted jobs; spinning workers watch it.
    submitted: AtomicUsize,
    /// Whether the workers are to end. Set while the queue is locked, so that none falls asleep after it.
    closed: AtomicBool,
    /// Threads that have a job now, apart from the workers.
    callers: AtomicUsize,
    nthreads: usize,
    processors: AtomicUsize,
    /// Counts how often it was asked for the number of processors.
    asked: AtomicUsize,
}

impl Shared {
    /// The body of a worker thread.
    fn serve(&self) {
        let mut queue = self.queue.lock();
        let mut has_watched = false;
        loop {
            let seen = self.submitted.load(Ordering::Acquire);
            if let Some(job) = self.take_job(&mut queue) {
                drop(queue);
                job.work();
                drop(job);
                queue = self.queue.lock();
                queue.working -= 1;
                has_watched = false;
            } else if self.is_closed() {
                return;
            } else if !has_watched && self.has_room(&queue) {
                drop(queue);
                has_watched = !self.spin(seen);
                queue = self.queue.lock();
            } else {
                queue.sleeping += 1;
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.sleeping -= 1;
                has_watched = false;
            }
        }
    }

    /// A job for one more worker, if there is one and the processors have room.
    fn take_job(&self, queue: &mut Queue) -> Option<Arc<Job>> {
        if !self.has_room(queue) {
            return None;
        }
        let job = Arc::clone(queue.next_job()?);
        queue.working += 1;
        Some(job)
    }

    /// Whether one more worker may work.
    fn has_room(&self, queue: &Queue) -> bool {
        queue.working < self.wanted(self.nthreads, self.callers.load(Ordering::Relaxed))
    }

    /// How many workers are wanted for jobs of `ntasks` tasks if `callers` threads have one.
    fn wanted(&self, ntasks: usize, callers: usize) -> usize {
        let one = ntasks.min(self.nthreads).saturating_sub(1);
        let processors = self.processors.load(Ordering::Relaxed);
        (one * callers).min(processors.saturating_sub(callers)).max(one)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Watches for a new job for a while; returns whether one came.
    fn spin(&self, seen: usize) -> bool {
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if self.submitted.load(Ordering::Acquire) != seen {
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > WORKER_SPIN {
                return false;
            }
        }
    }
}

impl Queue {
    /// Adds a job; without memory for that, it is left to its caller. There may be no workers to drop those before it.
    fn add(&mut self, job: &Arc<Job>) {
        let _ = self.next_job();
        if self.jobs.try_reserve(1).is_ok() {
            self.jobs.push_back(Arc::clone(job));
        }
    }

    /// The first job with tasks left; jobs without are dropped from the queue.
    fn next_job(&mut self) -> Option<&Arc<Job>> {
        while self.jobs.front().is_some_and(|job| !job.has_tasks()) {
            self.jobs.pop_front();
        }
        self.jobs.front()
    }
}

thread_local! {
    /// Whether this thread runs a task of some pool. It has no destructor, and so is there for as long as the thread.
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

/// A pool of worker threads.
pub struct Pool {
    shared: Arc<Shared>,
    /// Value of [`fork::count`] at creation.
    forks: u64,
    /// Workers that were started.
    started: AtomicUsize,
    workers: Mutex<Vec<Thread>>,
}

impl Pool {
    /// A pool whose workers start with the first jobs that need them.
    fn new(nthreads: usize) -> Pool {
        Pool::on(cpu::processors(), nthreads)
    }

    /// A pool for a machine with this many processors.
    fn on(processors: usize, nthreads: usize) -> Pool {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { jobs: VecDeque::new(), sleeping: 0, working: 0 }),
            wake: Condvar::new(),
            submitted: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            callers: AtomicUsize::new(0),
            nthreads,
            processors: AtomicUsize::new(processors),
            asked: AtomicUsize::new(0),
        });
        Pool { shared, forks: fork::count(), started: AtomicUsize::new(0), workers: Mutex::new(Vec::new()) }
    }

    /// Starts workers until there are `count`. With fewer than asked for, since the system refuses more threads for
    /// now, jobs only take longer.
    fn start(&self, count: usize) {
        if self.started.load(Ordering::Relaxed) >= count {
            return;
        }
        let mut workers = self.workers.lock();
        while workers.len() < count && !self.shared.is_closed() {
            let shared = Arc::clone(&self.shared);
            let Some(worker) = Thread::start(move || shared.serve()) else { return };
            workers.push(worker);
            self.started.store(workers.len(), Ordering::Relaxed);
        }
    }

    /// The number of threads that work on a job, the caller included.
    #[must_use]
    pub fn nthreads(&self) -> usize {
        self.shared.nthreads
    }

    /// How many of these threads the processors can run at once. More tasks than that only get in each other's way,
    /// unless they wait for something.
    ///
    /// If the processors are too few, they are counted again from time to time: the process may be allowed more of them
    /// by now.
    #[must_use]
    pub fn at_once(&self) -> usize {
        let Shared { nthreads, processors, asked, .. } = &*self.shared;
        let known = processors.load(Ordering::Relaxed);
        if known < *nthreads && asked.fetch_add(1, Ordering::Relaxed) % COUNT_AGAIN == COUNT_AGAIN - 1 {
            processors.store(cpu::processors(), Ordering::Relaxed);
        }
        known.min(*nthreads)
    }

    /// Whether the pool's threads exist in this process.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.forks == fork::count()
    }

    /// Whether operations should attach anew: the pool was shut down or belongs to a parent process.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        !self.is_alive() || self.shared.is_closed()
    }

    /// Ends the workers and waits for them; jobs submitted later run in their caller's thread.
    ///
    /// Called from within a task, as a callback of the application may do, it does not wait: the workers may be waiting
    /// for that task, or one of them may be running it.
    pub fn shut_down(&self) {
        if !self.is_alive() {
            return;
        }
        let queue = self.shared.queue.lock();
        self.shared.closed.store(true, Ordering::Release);
        drop(queue);
        self.shared.submitted.fetch_add(1, Ordering::Release);
        self.shared.wake.notify_all();
        let workers = std::mem::take(&mut *self.workers.lock());
        for worker in workers {
            if IN_TASK.get() {
                worker.detach();
            } else {
                cancel::deferred(|| worker.join());
            }
        }
    }
}

impl Executor for Pool {
    /// A thread that is inside a task runs nothing but its own jobs meanwhile, with or without help.
    fn tasks_may_wait(&self) -> bool {
        true
    }

    fn run(&self, ntasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let callers = self.shared.callers.fetch_add(1, Ordering::Relaxed) + 1;
        self.start(self.shared.wanted(ntasks, callers));
        // SAFETY: only the lifetime is changed; `run` returns after the last use, see `Job::task`.
        let task = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync)>(task)
        };
        let job = Arc::new(Job {
            task,
            ntasks,
            next: AtomicUsize::new(0),
            pending: AtomicUsize::new(ntasks),
            panicked: AtomicBool::new(false),
            sleep_lock: Mutex::new(()),
            ended: Condvar::new(),
        });
        let mut queue = self.shared.queue.lock();
        if !self.shared.is_closed() {
            queue.add(&job);
        }
        let room = self.shared.wanted(self.nthreads(), callers).saturating_sub(queue.working);
        let called = queue.sleeping.min(ntasks.saturating_sub(1)).min(room);
        drop(queue);
        self.shared.submitted.fetch_add(1, Ordering::Release);
        for _ in 0..called {
            self.shared.wake.notify_one();
        }
        job.work();
        self.shared.callers.fetch_sub(1, Ordering::Relaxed);
        if !self.is_alive() {
            // A function of the application has called `fork`, and this is the child: the other tasks are nobody's.
            resume_unwind(Box::new("a fork in the middle of a parallel operation"));
        }
        job.wait_for_end();
        if job.panicked.load(Ordering::Relaxed) {
            resume_unwind(Box::new("a task of a parallel operation panicked"));
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("nthreads", &self.nthreads()).finish_non_exhaustive()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The pool that an object used last, for any thread to take and put back.
///
/// There is no lock, which the child of a `fork` could find in the hands of a thread that does not exist there. Of two
/// threads at once, one finds nothing, and attaches to the same pool by way of the list of all pools.
pub(crate) struct LastUsed(AtomicPtr<Pool>);

impl LastUsed {
    /// No pool.
    #[must_use]
    pub const fn new() -> LastUsed {
        LastUsed(AtomicPtr::new(ptr::null_mut()))
    }

    /// Takes the pool, if it is there.
    pub fn take(&self) -> Option<Arc<Pool>> {
        self.replace(None)
    }

    /// Puts a pool there.
    pub fn put(&self, pool: Option<Arc<Pool>>) {
        drop(self.replace(pool));
    }

    /// Puts a pool there, and takes the one before.
    fn replace(&self, pool: Option<Arc<Pool>>) -> Option<Arc<Pool>> {
        let new = pool.map_or(ptr::null(), Arc::into_raw);
        let old = self.0.swap(new.cast_mut(), Ordering::AcqRel);
        // SAFETY: null, or made above from an `Arc` that nobody else gets: each pointer is swapped out once.
        (!old.is_null()).then(|| unsafe { Arc::from_raw(old) })
    }
}

impl Default for LastUsed {
    fn default() -> LastUsed {
        LastUsed::new()
    }
}

impl Drop for LastUsed {
    fn drop(&mut self) {
        self.put(None);
    }
}

/// The living pools.
static POOLS: Global<Vec<Weak<Pool>>> = Global::new(Vec::new());

/// The shared pool for `nthreads` threads (at least 2), started if there is none.
#[must_use]
pub fn attach(nthreads: usize) -> Arc<Pool> {
    let mut pools = POOLS.lock();
    pools.retain(|pool| pool.strong_count() > 0);
    let living: Vec<Arc<Pool>> = pools.iter().filter_map(Weak::upgrade).collect();
    let found = living.iter().find(|pool| pool.nthreads() == nthreads && !pool.is_stale()).map(Arc::clone);
    let pool = found.unwrap_or_else(|| {
        let fresh = Arc::new(Pool::new(nthreads));
        pools.push(Arc::downgrade(&fresh));
        fresh
    });
    // The last user of a pool ends its threads, which may be done here, but not while others wait for the list.
    drop(pools);
    drop(living);
    pool
}

/// Ends all pools. Contexts that hold one work on, and attach to a new one at their next operation.
pub fn shut_down_all() {
    let pools = std::mem::take(&mut *POOLS.lock());
    for pool in pools.iter().filter_map(Weak::upgrade) {
        pool.shut_down();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn every_task_runs_once_from_many_callers() {
        let pool = attach(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for ntasks in [2, 3, 4, 9] {
                        let hits: Vec<AtomicUsize> = (0..ntasks).map(|_| AtomicUsize::new(0)).collect();
                        pool.run(ntasks, &|i| {
                            hits[i].fetch_add(1, Ordering::Relaxed);
                        });
                        assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));
                    }
                });
            }
        });
    }

    #[test]
    fn only_as_many_workers_start_as_a_job_needs() {
        let pool = Pool::new(6);
        assert!((1..=6).contains(&pool.at_once()));
        for (ntasks, workers) in [(2, 1), (2, 1), (4, 3), (3, 3), (9, 5)] {
            pool.run(ntasks, &|_| ());
            assert_eq!(pool.workers.lock().len(), workers);
        }
    }

    #[test]
    fn too_few_processors_are_counted_again() {
        let pool = Pool::on(1, 9);
        for _ in 0..COUNT_AGAIN {
            assert_eq!(pool.at_once(), 1);
        }
        assert_eq!(pool.at_once(), cpu::processors().min(9));
    }

    #[test]
    fn each_caller_has_workers_as_long_as_there_are_processors() {
        let pool = Pool::on(16, 4);
        let wanted =
            [(4, 1), (9, 1), (2, 1), (4, 2), (4, 3), (4, 4), (4, 8), (4, 13), (4, 16), (4, 40), (1, 5)];
        let workers = [3, 3, 1, 6, 9, 12, 8, 3, 3, 3, 0];
        assert_eq!(wanted.map(|(ntasks, callers)| pool.shared.wanted(ntasks, callers)), workers);
    }

    #[test]
    fn workers_rest_where_callers_take_all_processors() {
        let pool = Pool::on(4, 2);
        pool.start(2);
        // Two workers for two callers; one may work if four have the processors.
        for (callers, workers) in [(2, 2), (4, 1), (1, 1)] {
            pool.shared.callers.store(callers - 1, Ordering::Relaxed);
            let most = AtomicUsize::new(0);
            let now = AtomicUsize::new(0);
            pool.run(2 * workers + 6, &|_| {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
                now.fetch_sub(1, Ordering::Relaxed);
            });
            assert!(most.load(Ordering::Relaxed) <= workers + 1);
        }
    }

    #[test]
    fn pools_are_shared_by_number_of_threads() {
        let (a, b, c) = (attach(5), attach(5), attach(6));
        assert!(Arc::ptr_eq(&a, &b));
        assert!(!Arc::ptr_eq(&a, &c));
    }

    #[test]
    fn what_was_used_last_is_taken_once_and_dropped_with_its_place() {
        let pool = attach(7);
        let last = LastUsed::new();
        assert!(last.take().is_none());
        last.put(Some(Arc::clone(&pool)));
        last.put(Some(Arc::clone(&pool)));
        assert_eq!(Arc::strong_count(&pool), 2);
        let taken: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| last.take().is_some())).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        });
        assert_eq!((taken, Arc::strong_count(&pool)), (1, 1));
        last.put(Some(Arc::clone(&pool)));
        drop(last);
        assert_eq!(Arc::strong_count(&pool), 1);
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller_after_all_tasks_ended() {
        let pool = Pool::new(3);
        let ended = AtomicUsize::new(0);
        let outcome = panics::caught(|| {
            pool.run(3, &|i| {
                if i == 1 {
                    panic!("on purpose");
                }
                ended.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert!(outcome.is_none());
        assert_eq!(ended.load(Ordering::Relaxed), 2);
        pool.run(2, &|_| ());
    }

    #[test]
    fn jobs_do_not_pile_up_where_there_are_no_workers() {
        let pool = Pool::new(3);
        pool.started.store(usize::MAX, Ordering::Relaxed); // so that none is started
        let done = AtomicUsize::new(0);
        for _ in 0..100 {
            pool.run(3, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(done.load(Ordering::Relaxed), 300);
        assert!(pool.shared.queue.lock().jobs.len() <= 1);
    }

    #[test]
    fn a_task_that_ends_the_pools_does_not_wait_for_tasks_that_wait_for_it() {
        let pool = Pool::on(4, 4);
        let (has_ended_them, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
        pool.run(8, &|i| {
            if i == 1 {
                pool.shut_down();
                has_ended_them.store(true, Ordering::Release);
            }
            while !has_ended_them.load(Ordering::Acquire) {
                thread::yield_now();
            }
            ended.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ended.load(Ordering::Relaxed), 8);
        assert!(pool.is_stale());
    }

    /// What a thread does in the destructor of its thread-specific data, in the given round of several.
    #[cfg(unix)]
    struct Last {
        key: libc::pthread_key_t,
        round: usize,
        work: Box<dyn FnOnce() + Send>,
    }

    #[cfg(unix)]
    extern "C" fn at_exit(last: *mut libc::c_void) {
        // SAFETY: a box of the test below, which nobody else has.
        let mut last = unsafe { Box::from_raw(last.cast::<Last>()) };
        if last.round == 0 {
            return (last.work)();
        }
        last.round -= 1;
        let key = last.key;
        // SAFETY: the key exists; the destructor comes again in the next round.
        unsafe { libc::pthread_setspecific(key, Box::into_raw(last).cast()) };
    }

    #[test]
    #[cfg(unix)]
    fn a_thread_whose_locals_are_gone_has_jobs_and_ends_pools() {
        let mut key = 0;
        // SAFETY: there is room for the key, and the destructor knows what is stored with it.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(at_exit)) }, 0);
        for round in 0..4 {
            let ended = Arc::new(AtomicUsize::new(0));
            let seen = Arc::clone(&ended);
            let thread = thread::spawn(move || {
                let pool = Pool::on(4, 3);
                pool.run(3, &|_| ());
                let work = Box::new(move || {
                    let tasks = AtomicUsize::new(0);
                    // The caller goes to sleep before the other task has ended.
                    pool.run(2, &|_| {
                        thread::sleep(2 * CALLER_SPIN * tasks.fetch_add(1, Ordering::Relaxed) as u32);
                    });
                    let shared = Arc::downgrade(&pool.shared);
                    drop(pool);
                    // The workers had a part of it until they ended.
                    let joined = usize::from(shared.strong_count() == 0);
                    seen.store(tasks.load(Ordering::Relaxed) + joined, Ordering::Relaxed);
                });
                let last = Box::into_raw(Box::new(Last { key, round, work }));
                // SAFETY: the key exists.
                unsafe { libc::pthread_setspecific(key, last.cast()) };
            });
            thread.join().unwrap();
            assert_eq!(ended.load(Ordering::Relaxed), 3, "round {round}");
        }
    }

    #[test]
    fn a_worker_ends_its_own_pool_without_waiting_for_itself() {
        let pool = Pool::on(3, 3);
        let (caller, all) = (thread::current().id(), std::sync::Barrier::new(3));
        pool.run(3, &|_| {
            if all.wait().is_leader() && thread::current().id() != caller {
                pool.shut_down();
            }
        });
        pool.run(3, &|_| ());
    }

    #[test]
    fn a_pool_that_was_shut_down_runs_jobs_in_the_caller() {
        let pool = Pool::new(3);
        pool.shut_down();
        assert!(pool.is_stale());
        let here = thread::current().id();
        pool.run(3, &|_| assert_eq!(thread::current().id(), here));
    }
}
