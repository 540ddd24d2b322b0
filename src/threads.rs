//! Threads of the library's own.
//!
//! Where there is `fork`, they are made by the C library, not by Rust's: that one takes a lock of the whole process
//! whenever one of its threads ends, and the child of a `fork` at that very moment could end no thread any more.

pub(crate) use sys::Thread;

/// The stack of a thread, in bytes; the C library's default if that is more, since functions of the application, or of
/// plugins, may run there.
const LEAST_STACK: usize = 2 << 20;

#[cfg(all(unix, not(miri)))]
mod sys {
    use std::ffi::c_void;
    use std::mem::MaybeUninit;
    use std::ptr;

    use super::LEAST_STACK;
    use crate::fork::Global;
    use crate::memory::boxed;
    use crate::panics;

    /// A thread. Dropping this does nothing: in the child of a `fork`, the thread does not exist.
    pub(crate) struct Thread(libc::pthread_t);

    // SAFETY: the name of a thread means the same in all threads.
    unsafe impl Send for Thread {}

    impl Thread {
        /// Starts a thread that does `work`; `None` if the system refuses, or has no memory.
        pub(crate) fn start<F: FnOnce() + Send + 'static>(work: F) -> Option<Thread> {
            let attributes = Attributes::new()?;
            let work = Box::into_raw(boxed(|| work).ok()?);
            let mut thread = MaybeUninit::uninit();
            // SAFETY: there is room for the thread's name, and `run` knows what `work` is.
            let code = unsafe {
                libc::pthread_create(thread.as_mut_ptr(), &raw const attributes.0, run::<F>, work.cast())
            };
            if code == 0 {
                // SAFETY: set above.
                return Some(Thread(unsafe { thread.assume_init() }));
            }
            // SAFETY: no thread has got it.
            drop(unsafe { Box::from_raw(work) });
            None
        }

        /// Waits for the end of the thread, which is another one than this.
        pub(crate) fn join(self) {
            // SAFETY: the thread was neither waited for nor left to itself, either of which takes this.
            unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
        }

        /// Leaves the thread to itself.
        pub(crate) fn detach(self) {
            // SAFETY: as above.
            unsafe { libc::pthread_detach(self.0) };
        }
    }

    extern "C" fn run<F: FnOnce()>(work: *mut c_void) -> *mut c_void {
        name_this_thread();
        // SAFETY: `start` has handed it over.
        let work = unsafe { Box::from_raw(work.cast::<F>()) };
        // A panic has been reported, and ends the thread.
        let _ = panics::caught(work);
        ptr::null_mut()
    }

    /// Gives this thread a name, which debuggers and lists of threads show.
    fn name_this_thread() {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // SAFETY: the name is a string.
        unsafe {
            libc::prctl(libc::PR_SET_NAME, c"blosc2".as_ptr())
        };
        #[cfg(target_vendor = "apple")]
        // SAFETY: as above.
        unsafe {
            libc::pthread_setname_np(c"blosc2".as_ptr())
        };
    }

    /// What a thread is like.
    struct Attributes(libc::pthread_attr_t);

    impl Attributes {
        fn new() -> Option<Attributes> {
            let mut attributes = Attributes::usual()?;
            let size = LEAST_STACK.max(usual_stack_size());
            // Otherwise the thread has the usual stack.
            // SAFETY: the attributes are initialised.
            unsafe { libc::pthread_attr_setstacksize(&raw mut attributes.0, size) };
            Some(attributes)
        }

        /// The system's default attributes.
        fn usual() -> Option<Attributes> {
            let mut attributes = MaybeUninit::uninit();
            // SAFETY: makes attributes where there is room for them.
            let code = unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
            // SAFETY: made above.
            (code == 0).then(|| Attributes(unsafe { attributes.assume_init() }))
        }

        /// Bytes of the stack; 0 if that cannot be known.
        fn stack_size(&self) -> usize {
            let mut size = 0;
            // SAFETY: the attributes are initialised, and there is room for a number.
            let code = unsafe { libc::pthread_attr_getstacksize(&raw const self.0, &raw mut size) };
            if code == 0 { size } else { 0 }
        }
    }

    impl Drop for Attributes {
        fn drop(&mut self) {
            // SAFETY: initialised, and not used again.
            unsafe { libc::pthread_attr_destroy(&raw mut self.0) };
        }
    }

    /// The default stack size of new threads, in bytes; 0 if that cannot be known.
    ///
    /// The C library may take a lock to tell, of which no `fork` knows. So it is asked while `fork` waits, and once.
    fn usual_stack_size() -> usize {
        static SIZE: Global<Option<usize>> = Global::new(None);
        *SIZE.lock().get_or_insert_with(|| Attributes::usual().map_or(0, |usual| usual.stack_size()))
    }
}

#[cfg(not(all(unix, not(miri))))]
mod sys {
    use std::thread::{Builder, JoinHandle};

    use super::LEAST_STACK;
    use crate::panics;

    /// A thread.
    pub(crate) struct Thread(JoinHandle<()>);

    impl Thread {
        /// Starts a thread that does `work`; `None` if the system refuses.
        pub(crate) fn start<F: FnOnce() + Send + 'static>(work: F) -> Option<Thread> {
            let builder = Builder::new().name("blosc2".into()).stack_size(LEAST_STACK);
            // Up to Rust 1.85 at least, a thread whose locals are gone cannot start another: it panics.
            panics::caught(|| builder.spawn(work))?.ok().map(Thread)
        }

        /// Waits for the end of the thread, which is another one than this.
        pub(crate) fn join(self) {
            // A panic has been reported.
            let _ = self.0.join();
        }

        /// Leaves the thread to itself.
        pub(crate) fn detach(self) {
            drop(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_does_its_work_until_it_is_joined() {
        let (tell, told) = mpsc::channel();
        let words = ["one", "two"];
        let thread = Thread::start(move || words.iter().for_each(|&word| tell.send(word).unwrap())).unwrap();
        thread.join();
        assert!(told.try_iter().eq(["one", "two"]));
    }

    #[test]
    fn a_thread_that_is_left_to_itself_works_on() {
        let (tell, told) = mpsc::channel();
        Thread::start(move || tell.send(7).unwrap()).unwrap().detach();
        assert_eq!(told.recv(), Ok(7));
    }

    #[test]
    fn a_panic_ends_its_thread_only() {
        Thread::start(|| panic!("on purpose")).unwrap().join();
    }

    #[test]
    fn large_buffers_fit_on_the_stack() {
        let (tell, told) = mpsc::channel();
        let work = move || {
            let buffer = std::hint::black_box([1_u8; LEAST_STACK * 3 / 4]);
            tell.send(buffer.iter().map(|&byte| usize::from(byte)).sum()).unwrap();
        };
        Thread::start(work).unwrap().join();
        assert_eq!(told.recv(), Ok(LEAST_STACK * 3 / 4));
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "asks the system")]
    fn threads_have_a_name() {
        let (tell, told) = mpsc::channel();
        Thread::start(move || tell.send(std::fs::read_to_string("/proc/thread-self/comm")).unwrap())
            .unwrap()
            .join();
        assert_eq!(told.recv().unwrap().unwrap(), "blosc2\n");
    }
}
