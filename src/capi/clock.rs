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
    1e-9 * blosc_elapsed_nsecs(start_time, end_time)
}

#[cfg(not(windows))]
mod sys {
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
        1e9 * (end.tv_sec - start.tv_sec) as f64 + (end.tv_nsec - start.tv_nsec) as f64
    }
}

#[cfg(windows)]
mod sys {
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
        1e9 * (end - start) as f64 / per_second as f64
    }
}
