//! Panics, which are bugs of this library or of functions that were given to it.

#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `body` returns, or `None` if it panics.
///
/// Whoever calls this sees to it that what `body` leaves half-changed is not used: see [`AssertUnwindSafe`].
pub(crate) fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(forget).ok()
}

/// Leaves what a panic was raised with as it is: a value whose release may panic in its turn.
fn forget(payload: Box<dyn Any + Send>) {
    std::mem::forget(payload);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("released");
        }
    }

    #[test]
    fn what_a_panic_is_raised_with_is_not_released() {
        assert_eq!(caught(|| 5), Some(5));
        assert_eq!(caught(|| panic_any(Bomb)), None::<()>);
    }
}
