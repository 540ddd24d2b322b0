//! Decompression with a context.

use super::parts::SchunkPtr;
use super::{Backend, Buffers, Context};
use crate::capi::callbacks::Host;
use crate::capi::types::blosc2_context;
use crate::chunk::{self, Decoding, Unit, VlChunk};
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::chunk_header::ChunkHeader;
use crate::io::memory::MallocBuf;

/// Whether several threads decompress.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parallel {
    /// If the context is set to.
    IfWanted,
    /// The calling thread alone does.
    No,
}

/// Runs a decompression with everything that it needs, taken out of the context.
///
/// # Safety
///
/// As for [`compress`](super::compress()).
#[inline]
unsafe fn with_decoding<T>(
    context: *mut blosc2_context,
    chunk: &[u8],
    buffers: &Buffers,
    parallel: Parallel,
    operation: impl FnOnce(&Decoding<'_>, &ChunkHeader) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    let mut header = ChunkHeader::EMPTY;
    header.read_from(chunk)?;
    this.note_decompression(&header, buffers);
    let schunk = SchunkPtr(this.fields.schunk);
    let container = move || schunk.container();
    let host = Host(context);
    let longest_block = |blocksize| host.show_blocksize(blocksize);
    let dec = Decoding {
        container: Some(&container),
        host: Some(&host),
        longest_block: Some(&longest_block),
        ..Decoding::default()
    };
    let alone = parallel == Parallel::No || !this.wants_threads();
    if alone && !header.is_lazy() && this.fields.postfilter.is_none() {
        operation(&dec, &header)
    } else {
        // SAFETY: the caller's promise; `this` is not used after this line.
        unsafe { with_full_decoding(context, dec, &header, chunk, parallel, operation) }
    }
}

/// [`with_decoding`] for a chunk that is lazy, and contexts with threads or a postfilter, which are added to `dec`.
///
/// # Safety
///
/// As for [`compress`](super::compress()).
#[inline(never)]
unsafe fn with_full_decoding<T>(
    context: *mut blosc2_context,
    dec: Decoding<'_>,
    header: &ChunkHeader,
    chunk: &[u8],
    parallel: Parallel,
    operation: impl FnOnce(&Decoding<'_>, &ChunkHeader) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    let backend = match parallel {
        Parallel::IfWanted => this.attach(),
        Parallel::No => Backend::Serial,
    };
    // Without a super-chunk, only requests that read no block can be met.
    let schunk = SchunkPtr(this.fields.schunk);
    let has_source = header.is_lazy() && !schunk.is_null();
    let reader = has_source.then(|| schunk.reader()).transpose()?;
    let source = reader.as_deref().map(|schunk| schunk.source_of_lazy(chunk)).transpose()?;
    let postfilter = this.postfilter(context);
    let may_wait = postfilter.is_some() || schunk.is_on_user_io();
    let dec = Decoding {
        threads: backend.threads_for(this.nthreads(), may_wait),
        postfilter: postfilter.as_ref().map(|postfilter| postfilter as &dyn chunk::Postfilter),
        source: source.as_ref().map(|source| source as &dyn chunk::source::BlockSource),
        ..dec
    };
    operation(&dec, header)
}

/// Decompresses `chunk` with a context of the application; a pending mask is used up.
///
/// # Safety
///
/// As for [`compress`](super::compress()).
pub(crate) unsafe fn decompress(
    context: *mut blosc2_context,
    chunk: &[u8],
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    require(!this.is_for_compression(), "not a context for decompression")?;
    if !this.maskout.is_set() && this.fields.postfilter.is_none() {
        let alone = !this.wants_threads();
        let buffers = Buffers::new(chunk, dest);
        let note = |header: &ChunkHeader| this.note_simple(header, &buffers);
        if let Some(nbytes) = chunk::decompress_simple(chunk, dest, alone, note) {
            if !alone {
                // They are there after any operation; but a single block and a short copy are for this thread.
                drop(this.attach());
            }
            return Ok(nbytes);
        }
    }
    let mask = this.maskout.take();
    let buffers = Buffers::new(chunk, dest);
    // SAFETY: as above.
    unsafe {
        with_decoding(context, chunk, &buffers, Parallel::IfWanted, |dec, header| {
            chunk::decompress_parsed(dec, header, chunk, mask.as_deref(), dest)
        })
    }
}

/// Decompresses items of `chunk` with a context of the application, of either kind.
///
/// # Safety
///
/// As for [`compress`](super::compress()).
#[inline(always)] // for one unit and one caller each
pub(crate) unsafe fn getitem(
    context: *mut blosc2_context,
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    if this.fields.postfilter.is_none() {
        let buffers = Buffers::new(chunk, dest);
        let note = |header: &ChunkHeader| this.note_simple(header, &buffers);
        if let Some(nbytes) = chunk::getitem_simple(chunk, unit, start, count, dest, note) {
            return Ok(nbytes);
        }
    }
    // SAFETY: the caller's promise; `this` is not used after this line.
    unsafe { getitem_coded(context, chunk, unit, start, count, dest) }
}

/// The general case of [`getitem`].
///
/// # Safety
///
/// As for [`compress`](super::compress()).
#[inline(never)]
unsafe fn getitem_coded(
    context: *mut blosc2_context,
    chunk: &[u8],
    unit: Unit,
    start: i32,
    count: i32,
    dest: &mut [u8],
) -> Result<usize> {
    let buffers = Buffers::new(chunk, dest);
    if count == 0 {
        // There is nothing to read, wherever the blocks are.
        let header = ChunkHeader::read(chunk)?;
        // SAFETY: the caller's promise.
        unsafe { Context::from_raw(context) }?.note_decompression(&header, &buffers);
        return chunk::getitem_parsed(&Decoding::default(), &header, chunk, unit, start, count, dest);
    }
    // SAFETY: the caller's promise.
    unsafe {
        with_decoding(context, chunk, &buffers, Parallel::No, |dec, header| {
            chunk::getitem_parsed(dec, header, chunk, unit, start, count, dest)
        })
    }
}

/// Opens the chunk of variable-length blocks `chunk` and runs `operation` on it.
///
/// # Safety
///
/// As for [`compress`](super::compress()).
unsafe fn with_vl<T>(
    context: *mut blosc2_context,
    chunk: &[u8],
    operation: impl FnOnce(&VlChunk<'_>) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    require(!this.is_for_compression(), "not a context for decompression")?;
    let buffers = Buffers { src: chunk.as_ptr(), dest: None };
    // SAFETY: as above.
    unsafe {
        with_decoding(context, chunk, &buffers, Parallel::IfWanted, |dec, header| {
            operation(&chunk::open_vl(dec, header, chunk)?)
        })
    }
}

/// Decompresses all blocks of a chunk of variable-length blocks, at most `max`, into memory of their own. `begin` is
/// told their number before the first one is decompressed.
///
/// # Safety
///
/// As for [`compress`](super::compress()).
pub(crate) unsafe fn decompress_vl(
    context: *mut blosc2_context,
    chunk: &[u8],
    max: usize,
    begin: impl FnOnce(usize),
) -> Result<Vec<MallocBuf>> {
    let operation = |vl: &VlChunk<'_>| {
        require(vl.nblocks() <= max, "more blocks than expected")?;
        begin(vl.nblocks());
        vl.decode_each(MallocBuf::for_output)
    };
    // SAFETY: the caller's promise.
    unsafe { with_vl(context, chunk, operation) }
}

/// Decompresses one block of a chunk of variable-length blocks.
///
/// # Safety
///
/// As for [`compress`](super::compress()).
pub(crate) unsafe fn decompress_vl_block(
    context: *mut blosc2_context,
    chunk: &[u8],
    nblock: i32,
) -> Result<MallocBuf> {
    let operation = |vl: &VlChunk<'_>| {
        let nblock = usize::try_from(nblock).ok().filter(|&nblock| nblock < vl.nblocks());
        let nblock = nblock.ok_or(Error::new(ErrorKind::InvalidParam, "no such block"))?;
        vl.decode_one(nblock, MallocBuf::for_output)
    };
    // SAFETY: the caller's promise.
    unsafe { with_vl(context, chunk, operation) }
}
