//! Whether the process has a single thread: what only other threads could disturb needs no lock then.

pub(crate) use sys::is_only_thread;

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
mod sys {
    use crate::fork::Lazy;
    use std::sync::atomic::{AtomicU8, Ordering};

    /// The C library's `__libc_single_threaded`, if it has one (since 2.32).
    static FLAG: Lazy<AtomicU8> = Lazy::new(|| {
        static UNKNOWN: AtomicU8 = AtomicU8::new(0);
        // SAFETY: the name is a string.
        let flag = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
        // SAFETY: null, or a byte that lives as long as the process, and changes only when threads start.
        unsafe { flag.cast::<AtomicU8>().as_ref() }.unwrap_or(&UNKNOWN)
    });

    /// Whether this thread is the only one of the process, and stays so until it starts another. Where that cannot be
    /// told, it is not.
    #[inline]
    pub(crate) fn is_only_thread() -> bool {
        FLAG.load(Ordering::Relaxed) != 0
    }

    /// Called when the library is loaded: the loader has its lock then. A thread that looks for the flag later would
    /// have to wait as long as others load libraries.
    extern "C" fn find_flag() {
        let _: &AtomicU8 = &FLAG;
    }

    #[used]
    #[unsafe(link_section = ".init_array")]
    static AT_LOAD: extern "C" fn() = find_flag;
}

/// There is no telling.
#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
mod sys {
    #[inline]
    pub(crate) fn is_only_thread() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_another_thread_has_not_only_this_one() {
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || told.recv());
            assert!(!is_only_thread());
            drop(tell);
        });
    }
}
