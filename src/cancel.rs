//! Threads that the application cancels (`pthread_cancel`) while they are in a call of the library.
//!
//! Such a thread ends at the next system call that may wait: its stack is unwound, which does not pass through Rust, so
//! that the process would be aborted. It would also leave half a change behind. So the thread is left alone until it
//! has returned from the library, or at least from each of those system calls and from functions of the application.

/// Does `work` as a thread that is not cancelled meanwhile. The only thread of a process may have cancelled itself.
#[inline]
pub(crate) fn deferred<R>(work: impl FnOnce() -> R) -> R {
    let _uncancelled = sys::Uncancelled::begin();
    work()
}

#[cfg(all(target_os = "linux", not(miri)))]
mod sys {
    use std::ffi::c_int;
    use std::ptr;

    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, old_state: *mut c_int) -> c_int;
    }

    /// The number of this state in the C libraries of Linux.
    const PTHREAD_CANCEL_DISABLE: c_int = 1;

    /// Keeps this thread from being cancelled until dropped.
    pub(super) struct Uncancelled {
        /// The state before.
        before: c_int,
    }

    impl Uncancelled {
        #[inline]
        pub(super) fn begin() -> Uncancelled {
            let mut before = PTHREAD_CANCEL_DISABLE;
            // SAFETY: the state exists, and there is room for the old one.
            unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
            Uncancelled { before }
        }
    }

    impl Drop for Uncancelled {
        #[inline]
        fn drop(&mut self) {
            // SAFETY: a state that the system gave; the old one is not asked for.
            unsafe { pthread_setcancelstate(self.before, ptr::null_mut()) };
        }
    }
}

/// Elsewhere threads are not cancelled, or nobody has asked for it yet.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod sys {
    pub(super) struct Uncancelled;

    impl Uncancelled {
        #[inline]
        pub(super) fn begin() -> Uncancelled {
            Uncancelled
        }
    }
}
