//! Super-chunks that are locked only while they are looked at or changed, not while chunks are made for them.

#![forbid(unsafe_code)]

use super::Schunk;
use crate::error::Result;

/// A super-chunk that is written to.
///
/// It is looked at while chunks are made and changed when these are stored. Whoever shares it with others, as the
/// filters of an application that read it, can let them in between.
pub(crate) trait Access {
    /// Looks at the super-chunk.
    fn look<R>(&self, operation: impl FnOnce(&Schunk) -> Result<R>) -> Result<R>;

    /// Changes the super-chunk.
    fn change<R>(&mut self, operation: impl FnOnce(&mut Schunk) -> Result<R>) -> Result<R>;

    /// Runs `operation` under the exclusive lock of the frame, if it locks: other handles that lock change nothing
    /// between what it looks at and what it changes.
    fn alone<R>(&mut self, operation: impl FnOnce(&mut Self) -> Result<R>) -> Result<R>;
}

impl Access for Schunk {
    fn look<R>(&self, operation: impl FnOnce(&Schunk) -> Result<R>) -> Result<R> {
        operation(self)
    }

    fn change<R>(&mut self, operation: impl FnOnce(&mut Schunk) -> Result<R>) -> Result<R> {
        operation(self)
    }

    fn alone<R>(&mut self, operation: impl FnOnce(&mut Schunk) -> Result<R>) -> Result<R> {
        let _held = self.exclusive()?;
        operation(self)
    }
}
