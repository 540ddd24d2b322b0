//! The one place where results and panics become C values.
//!
//! | the function returns | after an error | after a panic |
//! |---|---|---|
//! | `int`, `int16_t`, `int32_t`, `int64_t` | the error's code | `BLOSC2_ERROR_FAILURE` |
//! | a pointer | NULL | NULL |
//! | nothing | nothing | nothing |
//!
//! A panic is always a bug in this library, never the answer to bad input. Catching it keeps the host program alive;
//! the panic hook has already written the message to stderr.

#![forbid(unsafe_code)]

use super::plugins;
use super::trace;
use crate::error::{Error, ErrorKind, Result};
use crate::panics;

/// A type that exported functions return, with its value for a failure.
pub(crate) trait CReturn {
    /// What C sees when the function failed with `error`.
    fn from_error(error: Error) -> Self;
}

impl CReturn for i32 {
    fn from_error(error: Error) -> i32 {
        error.code()
    }
}

impl CReturn for i64 {
    fn from_error(error: Error) -> i64 {
        i64::from(error.code())
    }
}

impl CReturn for i16 {
    fn from_error(error: Error) -> i16 {
        i16::try_from(error.code()).unwrap_or(ErrorKind::Failure as i16)
    }
}

impl<T> CReturn for *mut T {
    fn from_error(_: Error) -> *mut T {
        std::ptr::null_mut()
    }
}

impl<T> CReturn for *const T {
    fn from_error(_: Error) -> *const T {
        std::ptr::null()
    }
}

impl CReturn for () {
    fn from_error(_: Error) {}
}

/// The result of `body`, the body of an exported function; what fails is traced.
///
/// Whatever C calls first, the codecs that are plugins are known by then.
///
/// After a panic no lock is held, and no out-parameter was written. What was being changed may be changed in part, and
/// is used as it is.
fn result_of<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let prepared = || {
        plugins::define_codecs();
        body()
    };
    let panicked = Err(Error::new(ErrorKind::Failure, "a panic inside the library"));
    panics::caught(prepared).unwrap_or(panicked).inspect_err(|&error| trace::error(error))
}

/// Runs the body of an exported function.
pub(crate) fn guard<T: CReturn>(body: impl FnOnce() -> Result<T>) -> T {
    result_of(body).unwrap_or_else(T::from_error)
}

/// [`guard`] for functions whose `int` or `int64_t` is a number of bytes or items, or a negative code.
///
/// A count that does not fit becomes `BLOSC2_ERROR_2GB_LIMIT`.
pub(crate) fn guard_count<T: CReturn + TryFrom<usize>>(body: impl FnOnce() -> Result<usize>) -> T {
    guard(|| {
        T::try_from(body()?)
            .map_err(|_| Error::new(ErrorKind::TwoGbLimit, "the count does not fit the return type"))
    })
}

/// [`guard`] for functions that return 0, or a negative code.
pub(crate) fn guard_status(body: impl FnOnce() -> Result<()>) -> i32 {
    guard(|| body().map(|()| 0))
}

/// For functions with another way to say that they failed: `failed` stands for errors and panics alike.
pub(crate) fn guard_or<T>(failed: T, body: impl FnOnce() -> Result<T>) -> T {
    result_of(body).unwrap_or(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails<T>() -> Result<T> {
        Err(Error::new(ErrorKind::ReadBuffer, "test"))
    }

    #[test]
    fn errors_become_codes_and_null() {
        assert_eq!(guard::<i32>(fails), -5);
        assert_eq!(guard::<i64>(fails), -5);
        assert_eq!(guard::<i16>(fails), -5);
        assert_eq!(guard_status(fails), -5);
        assert_eq!(guard_count::<i32>(fails), -5);
        assert!(guard::<*mut u8>(fails).is_null());
        assert!(guard::<*const u8>(fails).is_null());
        assert_eq!(guard_or(7, fails), 7);
        guard::<()>(fails);
    }

    #[test]
    fn panics_become_failure_and_null() {
        assert_eq!(guard::<i32>(|| panic!("expected by the test")), -1);
        assert!(guard::<*mut u8>(|| panic!("expected by the test")).is_null());
        assert_eq!(guard_or(9, || panic!("expected by the test")), 9);
    }

    #[test]
    fn counts_that_do_not_fit_are_refused() {
        assert_eq!(guard_count::<i32>(|| Ok(2_147_483_647)), 2_147_483_647);
        assert_eq!(guard_count::<i32>(|| Ok(2_147_483_648)), ErrorKind::TwoGbLimit as i32);
        assert_eq!(guard_count::<i64>(|| Ok(2_147_483_648)), 2_147_483_648);
    }

    #[test]
    fn codes_of_callbacks_that_do_not_fit_16_bits_become_failure() {
        assert_eq!(guard::<i16>(|| Err(Error::from_callback(-100_000, "test"))), -1);
    }
}
