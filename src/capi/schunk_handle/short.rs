//! The short way to what chunks in a list hold: where nothing is unusual, to lock the super-chunk and to take out of
//! the context what decompression needs would take as long as to read a few hundred bytes.

use super::SchunkHandle;
use crate::capi::context::Context;
use crate::schunk::Schunk;
use crate::single;

impl SchunkHandle {
    /// Reads the short way; `None` if anything is unusual: then it is to be done the general way, which tells what is
    /// wrong.
    ///
    /// `read` returns what it read and the number of the chunk, or `None` if that is unusual. It calls nothing of the
    /// application, and starts no thread.
    #[inline]
    pub(crate) fn read_short<T>(&self, read: impl FnOnce(&Schunk) -> Option<(T, usize)>) -> Option<T> {
        // SAFETY: as for `decoding`.
        let context = unsafe { Context::shared((*self.abi()).dctx) }.ok()?;
        if context.is_more_than_plain() || self.is_behind() {
            return None;
        }
        let shared = self.shared();
        let held;
        let inner = if single::is_only_thread() {
            if shared.is_locked_exclusive() {
                return None;
            }
            // SAFETY: there are no other threads, and this one does not change the super-chunk while `read` reads it.
            unsafe { &*shared.data_ptr() }
        } else {
            held = shared.try_read()?;
            &*held
        };
        // What the client assigned is taken over the general way.
        if inner.params_ref().typesize != self.typesize() {
            return None;
        }
        let (what, nchunk) = read(inner)?;
        self.set_current(i64::try_from(nchunk).unwrap_or(i64::MAX));
        Some(what)
    }
}
