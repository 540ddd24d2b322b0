//! Exported functions: a clock. It is steady, and its origin means nothing.

use super::guard::guard;
use super::ptr::store;
use super::types::blosc_timestamp_t;
pub(super) use sys::Timestamp;
use sys::{nanoseconds, now};

/// Stores the time of the monotonic clock in `*timestamp`.
///
/// # Safety
///
/// `timestamp` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc_set_timestamp(timestamp: *mut blosc_timestamp_t) {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { store(timestamp, now()) };
        Ok(())
    });
}

/// The nanoseconds between two timestamps.
#[unsafe(no_mangle)]
pub extern "C" fn blosc_elapsed_nsecs(start_time: blosc_timestamp_t, end_time: blosc_timestamp_t) -> f64 {
    nanoseconds(start_time, end_time)
}

/// The seconds between two timestamps.
#[unsafe(no_mangle)]
pub extern "C" fn blosc_elapsed_secs(start_time: blosc_timestamp_t, end_time: blosc_timestamp_t) -> f64 {
    1e-9 * nanoseconds(start_time, end_time)
}

/// The difference of two numbers that a client may have made up.
fn difference<T: Into<i128>>(start: T, end: T) -> f64 {
    (end.into() - start.into()) as f64
}

#[cfg(not(windows))]
mod sys {
    use super::difference;

    pub(in crate::capi) type Timestamp = libc::timespec;

    /// The time of the monotonic clock.
    pub(in crate::capi) fn now() -> Timestamp {
        let mut now = Timestamp { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is writable.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        now
    }

    /// The nanoseconds from `start` to `end`.
    pub(in crate::capi) fn nanoseconds(start: Timestamp, end: Timestamp) -> f64 {
        1e9 * difference(start.tv_sec, end.tv_sec) + difference(start.tv_nsec, end.tv_nsec)
    }
}

#[cfg(windows)]
mod sys {
    use super::difference;

    /// `LARGE_INTEGER`: ticks of the performance counter.
    pub(in crate::capi) type Timestamp = i64;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn QueryPerformanceCounter(count: *mut i64) -> i32;
        fn QueryPerformanceFrequency(frequency: *mut i64) -> i32;
    }

    /// The time of the monotonic clock.
    pub(in crate::capi) fn now() -> Timestamp {
        let mut now = 0;
        // SAFETY: `now` is writable; the call never fails.
        unsafe { QueryPerformanceCounter(&raw mut now) };
        now
    }

    /// The nanoseconds from `start` to `end`.
    pub(in crate::capi) fn nanoseconds(start: Timestamp, end: Timestamp) -> f64 {
        let mut per_second = 0;
        // SAFETY: `per_second` is writable; the call never fails.
        unsafe { QueryPerformanceFrequency(&raw mut per_second) };
        1e9 * difference(start, end) / per_second as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_numbers_have_a_difference() {
        assert_eq!(difference(i64::MIN, i64::MAX), u64::MAX as f64);
        assert_eq!(difference(i64::MAX, i64::MIN), -(u64::MAX as f64));
    }

    #[cfg(not(windows))]
    #[test]
    fn seconds_and_nanoseconds_are_added() {
        let start = Timestamp { tv_sec: 1, tv_nsec: 999_999_999 };
        let end = Timestamp { tv_sec: 3, tv_nsec: 0 };
        assert_eq!(blosc_elapsed_nsecs(start, end), 1_000_000_001.0);
        assert_eq!(blosc_elapsed_secs(start, end), 1e-9 * 1_000_000_001.0);
    }
}
