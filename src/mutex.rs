//! Mutual exclusion without a table of waiting threads in the process, which the child of a `fork` could find
//! half-changed: the kernel knows them, or they are noted beside the value.

#![forbid(unsafe_code)]

use std::sync::{MutexGuard, PoisonError, TryLockError};

/// The standard library's mutex, without poison: where it is used, a panic leaves nothing half-changed.
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits for the value and takes it.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the value if nobody else has it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poison)) => Some(poison.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_value_is_had_by_one_thread_at_a_time() {
        let value = Mutex::new(1);
        let mut held = value.lock();
        thread::scope(|scope| scope.spawn(|| assert!(value.try_lock().is_none())).join().unwrap());
        *held += 1;
        drop(held);
        assert_eq!(value.try_lock().map(|value| *value), Some(2));
    }

    #[test]
    fn a_panic_does_not_keep_others_from_the_value() {
        let value = Mutex::new(1);
        let panicked = thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _held = value.lock();
                    panic!("on purpose");
                })
                .join()
                .is_err()
        });
        assert!(panicked);
        assert_eq!(*value.lock(), 1);
        assert_eq!(value.try_lock().map(|value| *value), Some(1));
        assert_eq!(value.into_inner(), 1);
    }
}
