//! Buffers for compressed chunks, kept from call to call: fresh memory costs a page fault every 4 kB.

use crate::bytes::zeroed;
use crate::error::Result;
use std::cell::RefCell;

/// Larger buffers are not kept.
const MAX_KEPT: usize = 32 << 20;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with a buffer whose content is arbitrary.
pub(crate) fn with<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    // During the destruction of a thread nothing is kept any more.
    let mut buffer = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten().unwrap_or_default();
    let result = work(&mut buffer);
    if buffer.capacity() <= MAX_KEPT {
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < 4 {
                kept.push(buffer);
            }
        });
    }
    result
}

/// Calls `work` with a buffer of `len` bytes whose content is arbitrary. Of a large one only what is written costs memory.
///
/// # Errors
///
/// `MemoryAlloc`, and those of `work`.
pub(crate) fn with_len<R>(len: usize, work: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
    if len > MAX_KEPT {
        return work(&mut zeroed(len)?);
    }
    with(|buffer| {
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        work(&mut buffer[..len])
    })
}
