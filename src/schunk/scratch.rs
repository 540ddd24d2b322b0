//! Buffers for chunks and their data, kept from call to call: fresh memory costs a page fault every 4 kB.

#![forbid(unsafe_code)]

use crate::chunk::{self, Decoding};
use crate::error::Result;
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::special;
use crate::kept::{LARGEST, SMALL, Share};
use crate::memory::{self, grow, zeroed};
use crate::thread_end::{Left, ThreadEnd};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// Most buffers that a thread keeps.
const MOST: usize = 4;

/// A buffer that is kept, and its share of what all threads keep.
type Kept = (Vec<u8>, Share);

thread_local! {
    /// What this thread keeps. [`END`] sees to it.
    static KEPT: ManuallyDrop<RefCell<Vec<Kept>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

static END: ThreadEnd = ThreadEnd::new(leave, free);

/// What threads that have ended kept, for those that begin.
static LEFT: Left<Vec<Kept>> = Left::new();

/// Leaves what this thread keeps to others.
fn leave() {
    let kept = KEPT.with(|kept| kept.take());
    if !kept.is_empty() {
        LEFT.put(kept);
    }
}

/// Gives a thread that keeps nothing what another one has left.
#[cold]
fn inherit(kept: &mut Vec<Kept>) {
    if let Some(left) = LEFT.take() {
        END.ask();
        *kept = left;
    }
}

/// Frees what this thread keeps, and what others have left.
fn free() {
    drop(KEPT.with(|kept| kept.take()));
    LEFT.clear();
}

/// A buffer whose content is arbitrary at first. When dropped, it is kept for whoever needs the next one.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    share: Share,
}

impl Buffer {
    /// A buffer of any length.
    pub(crate) fn take() -> Buffer {
        let kept = KEPT.with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.capacity() == 0 {
                inherit(&mut kept);
            }
            kept.pop()
        });
        let (bytes, share) = kept.unwrap_or((Vec::new(), Share::NONE));
        Buffer { bytes, share }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut share = std::mem::replace(&mut self.share, Share::NONE);
        if bytes.capacity() > 0 && share.resize(bytes.capacity()) {
            KEPT.with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.capacity() == 0 {
                    END.ask();
                }
                if kept.len() < MOST {
                    kept.push((bytes, share));
                }
            });
        }
    }
}

/// Frees what this thread keeps, except for what is small, and all that others have left.
pub(crate) fn free_large() {
    KEPT.with(|kept| kept.borrow_mut().retain(|(bytes, _)| bytes.capacity() <= SMALL));
    LEFT.clear();
}

/// Decompresses all of `chunk` to the front of `data`, whose content is arbitrary; returns the number of bytes. What
/// the chunk leaves as it is becomes zero: it is what other calls decompressed.
///
/// # Errors
///
/// Those of [`chunk::decompress_with`].
pub(crate) fn decompress(dec: &Decoding<'_>, chunk: &[u8], data: &mut [u8]) -> Result<usize> {
    if ChunkHeader::read(chunk).is_ok_and(|header| header.special() == special::UNINIT) {
        data.fill(0);
    }
    chunk::decompress_with(dec, chunk, None, data)
}

/// Calls `work` with a buffer whose content is arbitrary.
pub(crate) fn with<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    work(&mut Buffer::take())
}

/// Calls `work` with `count` buffers whose content is arbitrary.
///
/// # Errors
///
/// `MemoryAlloc`, and those of `work`.
pub(crate) fn with_many<R>(count: usize, work: impl FnOnce(&mut [Buffer]) -> Result<R>) -> Result<R> {
    let mut buffers = memory::collect((0..count).map(|_| Buffer::take()))?;
    work(&mut buffers)
}

/// Calls `work` with a buffer of `len` bytes whose content is arbitrary. Of a large one only what is written costs
/// memory.
///
/// # Errors
///
/// `MemoryAlloc`, and those of `work`.
pub(crate) fn with_len<R>(len: usize, work: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
    if len > LARGEST {
        return work(&mut zeroed::<u8>(len)?);
    }
    with(|buffer| {
        grow(buffer, len)?;
        work(&mut buffer[..len])
    })
}
