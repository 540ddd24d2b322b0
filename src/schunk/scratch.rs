//! Buffers for compressed chunks, kept from call to call: fresh memory costs a page fault every 4 kB.

use crate::error::Result;
use crate::memory::{grow, zeroed};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Larger buffers are not kept.
const MAX_KEPT: usize = 32 << 20;
/// Most buffers that a thread keeps.
const MOST: usize = 4;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer whose content is arbitrary at first. When dropped, it is kept for whoever needs the next one.
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// A buffer of any length.
    pub(crate) fn take() -> Buffer {
        // During the destruction of a thread nothing is kept any more.
        Buffer(KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten().unwrap_or_default())
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        if (1..=MAX_KEPT).contains(&buffer.capacity()) {
            let _ = KEPT.try_with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.len() < MOST {
                    kept.push(buffer);
                }
            });
        }
    }
}

/// Calls `work` with a buffer whose content is arbitrary.
pub(crate) fn with<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    work(&mut Buffer::take())
}

/// Calls `work` with `count` buffers whose content is arbitrary.
pub(crate) fn with_many<R>(count: usize, work: impl FnOnce(&mut [Buffer]) -> R) -> R {
    let mut buffers: Vec<Buffer> = (0..count).map(|_| Buffer::take()).collect();
    work(&mut buffers)
}

/// Calls `work` with a buffer of `len` bytes whose content is arbitrary. Of a large one only what is written costs memory.
///
/// # Errors
///
/// `MemoryAlloc`, and those of `work`.
pub(crate) fn with_len<R>(len: usize, work: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
    if len > MAX_KEPT {
        return work(&mut zeroed::<u8>(len)?);
    }
    with(|buffer| {
        grow(buffer, len)?;
        work(&mut buffer[..len])
    })
}
