//! One chunk in, one buffer out.

use super::params::{Decoding, Threads, share};
use super::pipeline::DeltaReference;
use super::reader::Reader;
use super::scratch::{self, Worker, with_worker};
use super::simple::decompress_simple;
use super::vlblocks::VlChunk;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::special;
use crate::memory;
use crate::pages;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Decompresses `chunk` into the front of `dest` in the calling thread and returns the number of bytes produced.
///
/// # Errors
///
/// As [`decompress_with`].
pub fn decompress(chunk: &[u8], dest: &mut [u8]) -> Result<usize> {
    decompress_with(&Decoding::default(), chunk, None, dest)
}

/// Decompresses `chunk` in the calling thread, and returns the data.
///
/// There is an example at [`compress_to_vec`](super::compress_to_vec).
///
/// # Errors
///
/// As [`decompress_with`], `MemoryAlloc`. A damaged chunk may claim to hold up to 2 GiB: who reads chunks of strangers
/// looks at [`ChunkHeader::nbytes`] first.
pub fn decompress_to_vec(chunk: &[u8]) -> Result<Vec<u8>> {
    let header = ChunkHeader::read(chunk)?;
    let mut data = memory::zeroed(header.nbytes)?;
    decompress_parsed(&Decoding::default(), &header, chunk, None, &mut data)?;
    Ok(data)
}

/// Decompresses `chunk` into the front of `dest`; returns the number of bytes produced.
///
/// `chunk` may be longer than the chunk it starts with. Blocks for which `mask` is true are skipped: their bytes in
/// `dest` stay as they are, and count as produced all the same. `dest` is not read before it is written.
///
/// # Errors
///
/// Those of [`ChunkHeader::read`]; `WriteBuffer` if `dest` is too short; `InvalidHeader` if `chunk` is shorter than its
/// header says; `Data` for a mask of another length than the number of blocks, and for damaged streams; `ReadBuffer`,
/// `RunLength`, `CodecSupport`, `CodecDict`, `FilterPipeline`, `Failure` (unknown filters), `Postfilter`, and the
/// errors of the source of a lazy chunk. After an error the contents of `dest` are arbitrary.
pub fn decompress_with(
    dec: &Decoding<'_>,
    chunk: &[u8],
    mask: Option<&[bool]>,
    dest: &mut [u8],
) -> Result<usize> {
    if mask.is_none() && dec.postfilter.is_none() {
        let alone = dec.threads.executor.is_none();
        if let Some(nbytes) = decompress_simple(chunk, dest, alone, |_| ()) {
            return Ok(nbytes);
        }
    }
    let mut header = ChunkHeader::EMPTY;
    header.read_from(chunk)?;
    decompress_parsed(dec, &header, chunk, mask, dest)
}

/// As [`decompress_with`], for a chunk whose header was read already. Returns the bytes produced.
///
/// # Errors
///
/// As [`decompress_with`].
pub fn decompress_parsed(
    dec: &Decoding<'_>,
    header: &ChunkHeader,
    chunk: &[u8],
    mask: Option<&[bool]>,
    dest: &mut [u8],
) -> Result<usize> {
    let dest = front(dest, header)?;
    header.check_complete(chunk.len())?;
    let mask_fits = mask.is_none_or(|mask| mask.len() == header.nblocks());
    ensure(mask_fits, ErrorKind::Data, "mask of another length than the number of blocks")?;
    if header.is_memcpyed() {
        let expected = header.nbytes + header.overhead();
        ensure(
            header.cbytes == expected,
            ErrorKind::Data,
            "cbytes of a stored chunk is not nbytes and a header",
        )?;
    }
    if header.nbytes == 0 && header.special() <= special::UNINIT && !header.is_vl() {
        return Ok(0);
    }
    if header.is_lazy() && mask.is_some_and(|mask| mask.iter().all(|&skipped| skipped)) {
        // There is nothing to read, wherever the blocks are.
        return Ok(header.nbytes);
    }
    if mask.is_none() {
        pages::prefer_huge_for(dest);
    }
    let mut reader = Reader::new(dec, header, chunk);
    reader.prepare()?;
    if header.is_vl() {
        VlChunk::new(reader)?.decode_all(mask, dest)
    } else if mask.is_none() && reader.is_plain() && dec.threads.are_no_use_for(dest.len()) {
        reader.plain_bytes(0, dest)?;
        Ok(dest.len())
    } else if mask.is_none() && reader.is_plain() {
        copy_parts(&reader, dest)
    } else if mask.is_none() && reader.nblocks == 1 {
        with_worker(|worker| reader.finish_only_block(worker, dest))
    } else {
        decode_blocks(&reader, mask, dest)
    }
}

/// The part of `dest` that a chunk with this header fills.
#[inline(always)]
pub(super) fn front<'d>(dest: &'d mut [u8], header: &ChunkHeader) -> Result<&'d mut [u8]> {
    let front = dest.get_mut(..header.nbytes);
    front.ok_or(Error::new(ErrorKind::WriteBuffer, "destination shorter than the data"))
}

/// Copies the bytes of a chunk without streams; returns their number.
fn copy_parts(reader: &Reader<'_>, dest: &mut [u8]) -> Result<usize> {
    let parts = DisjointParts::new(dest);
    reader.dec.threads.for_each_part(parts.len(), &|range| {
        // SAFETY: every part is handed out once, and parts do not overlap.
        reader.plain_bytes(range.start, unsafe { parts.part(range.start, range.len()) })
    })?;
    Ok(parts.len())
}

/// Decodes all blocks that the mask lets through; returns the number of bytes that the streams of all blocks cover.
fn decode_blocks(reader: &Reader<'_>, mask: Option<&[bool]>, dest: &mut [u8]) -> Result<usize> {
    let blocksize = reader.header.blocksize;
    let none_wanted = mask.is_some_and(|mask| !mask.contains(&false));
    if !reader.refers_to_block0() || none_wanted {
        return decode_range(reader, 0, mask, DeltaReference::Own, dest);
    }
    if mask.is_some_and(|mask| mask[0]) || reader.dec.postfilter.is_some() {
        let mut first = scratch::AlignedBytes::zeroed(blocksize)?;
        reader.decode_block(&mut scratch::worker(), 0, DeltaReference::Own, &mut first)?;
        return decode_range(reader, 0, mask, DeltaReference::Block(&first), dest);
    }
    let (first, rest) = dest.split_at_mut(blocksize);
    let covered = reader.decode_block(&mut scratch::worker(), 0, DeltaReference::Own, first)?;
    Ok(covered + decode_range(reader, 1, mask, DeltaReference::Block(first), rest)?)
}

/// Decodes the blocks from `start` on; `dest` begins with that block.
fn decode_range(
    reader: &Reader<'_>,
    start: usize,
    mask: Option<&[bool]>,
    reference: DeltaReference<'_>,
    dest: &mut [u8],
) -> Result<usize> {
    let header = reader.header;
    let parts = DisjointParts::new(dest);
    // A short last block is no reason to wake another thread.
    let is_worth_it = header.nbytes / header.blocksize.max(1) >= start + 2;
    let threads = if is_worth_it { reader.threads_for(parts.len()) } else { Threads::default() };
    for_each_block(threads, start..reader.nblocks, |tid, worker, nblock| {
        let len = header.block_len(nblock);
        if mask.is_some_and(|mask| mask[nblock]) {
            return Ok(len);
        }
        // SAFETY: every block is handed out once, and blocks do not overlap.
        let block = unsafe { parts.part((nblock - start) * header.blocksize, len) };
        reader.finish_block(worker, tid, nblock, reference, block)
    })
}

/// A buffer of which several threads write different parts.
pub(crate) struct DisjointParts<'a> {
    start: *mut u8,
    len: usize,
    buffer: PhantomData<&'a mut [u8]>,
}

// SAFETY: the only access is through `part`, whose callers see to it that parts do not overlap.
unsafe impl Sync for DisjointParts<'_> {}

impl<'a> DisjointParts<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> DisjointParts<'a> {
        DisjointParts { start: buffer.as_mut_ptr(), len: buffer.len(), buffer: PhantomData }
    }

    /// Length of the buffer in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the buffer is.
    pub(crate) fn address(&self) -> *mut u8 {
        self.start
    }

    /// The `len` bytes at `offset`.
    ///
    /// # Safety
    ///
    /// No two parts that are alive at the same time overlap.
    #[allow(clippy::mut_from_ref)] // that is the point of this type
    pub(crate) unsafe fn part(&self, offset: usize, len: usize) -> &mut [u8] {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: within the buffer by the assertion, and unshared by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), len) }
    }
}

/// Runs `work` for each block, on several threads if allowed and worthwhile; returns the sum of its answers. `work` is
/// given the number of the task, the task's memory and the index of the block, and tells the bytes produced.
///
/// # Errors
///
/// One of the errors of `work`; the blocks that no thread had taken by then are skipped.
pub(super) fn for_each_block(
    threads: Threads<'_>,
    blocks: Range<usize>,
    work: impl Fn(usize, &mut Worker, usize) -> Result<usize> + Sync,
) -> Result<usize> {
    let Some((executor, ntasks)) = threads.for_blocks(blocks.len()) else {
        return with_worker(|worker| {
            let mut sum = 0;
            for nblock in blocks {
                sum += work(0, worker, nblock)?;
            }
            Ok(sum)
        });
    };
    let sum = AtomicUsize::new(0);
    share(executor, ntasks, blocks, &|tid, mine| {
        let mut worker = scratch::worker();
        let mut produced = 0;
        for nblock in mine {
            produced += work(tid, &mut worker, nblock)?;
        }
        sum.fetch_add(produced, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(sum.into_inner())
}
