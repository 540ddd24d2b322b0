//! The mask of blocks to skip that waits for the next decompression.

use crate::error::Result;
use crate::memory::boxed;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A mask for one decompression, with a flag for each block: true skips it. Of several threads that read through one
/// context, one takes it.
///
/// As with the pools that contexts keep, there is no lock, which the child of a `fork` could find in the hands of a
/// thread that does not exist there.
pub(super) struct PendingMask(AtomicPtr<Vec<bool>>);

impl PendingMask {
    /// No mask.
    pub(super) const fn none() -> PendingMask {
        PendingMask(AtomicPtr::new(ptr::null_mut()))
    }

    /// Whether there is one.
    #[inline]
    pub(super) fn is_set(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// Sets the mask in the place of the one before.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; the one before is left.
    pub(super) fn set(&self, mask: Vec<bool>) -> Result<()> {
        drop(self.replace(Box::into_raw(boxed(|| mask)?)));
        Ok(())
    }

    /// Takes the mask, if there is one.
    #[inline]
    pub(super) fn take(&self) -> Option<Vec<bool>> {
        if self.is_set() { self.replace(ptr::null_mut()) } else { None }
    }

    #[cold]
    fn replace(&self, new: *mut Vec<bool>) -> Option<Vec<bool>> {
        let old = self.0.swap(new, Ordering::AcqRel);
        // SAFETY: null, or made in `set` from a box that nobody else gets: each pointer is swapped out once.
        (!old.is_null()).then(|| *unsafe { Box::from_raw(old) })
    }
}

impl Drop for PendingMask {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_mask_is_taken_once() {
        let pending = PendingMask::none();
        assert!(!pending.is_set() && pending.take().is_none());
        pending.set(vec![true]).unwrap();
        pending.set(vec![false, true]).unwrap();
        let taken: Vec<Vec<bool>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| pending.take())).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(taken, [[false, true]]);
        assert!(!pending.is_set());
        pending.set(vec![true]).unwrap();
    }
}
