//! Whether the process has a single thread: what only other threads could disturb needs no lock then.

/// Whether this thread is the only one of the process, and stays so until it starts another. Where that cannot be told, it
/// is not.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
#[inline]
pub(crate) fn is_only_thread() -> bool {
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
    FLAG.load(Ordering::Relaxed) != 0
}

/// There is no telling.
#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
#[inline]
pub(crate) fn is_only_thread() -> bool {
    false
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
