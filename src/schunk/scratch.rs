//! Buffers for compressed chunks, kept from call to call: fresh memory costs a page fault every 4 kB.

use crate::bytes::zeroed;
use crate::error::Result;
use std::cell::RefCell;

/// Larger buffers are not kept.
const MAX_KEPT: usize = 32 << 20;
/// So many buffers are kept at most.
const MOST: usize = 4;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with a buffer whose content is arbitrary.
pub(crate) fn with<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = take();
    let result = work(&mut buffer);
    keep(buffer);
    result
}

/// Calls `work` with `count` buffers whose content is arbitrary.
pub(crate) fn with_many<R>(count: usize, work: impl FnOnce(&mut [Vec<u8>]) -> R) -> R {
    let mut buffers: Vec<Vec<u8>> = (0..count).map(|_| take()).collect();
    let result = work(&mut buffers);
    buffers.into_iter().for_each(keep);
    result
}

fn take() -> Vec<u8> {
    // During the destruction of a thread nothing is kept any more.
    KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

fn keep(buffer: Vec<u8>) {
    if buffer.capacity() <= MAX_KEPT {
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < MOST {
                kept.push(buffer);
            }
        });
    }
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
