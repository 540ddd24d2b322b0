//! Where the bytes of a lazy chunk come from.

#![forbid(unsafe_code)]

use crate::error::Result;

/// The stored bytes of one chunk that is not in memory. Several threads may read at once.
pub trait BlockSource: Sync {
    /// Reads exactly `buf.len()` bytes at `offset`, counted from the start of the chunk.
    ///
    /// # Errors
    ///
    /// `FileOpen`, `FileRead`, `ReadBuffer` (the file ends too early) or `PluginIo`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
}
