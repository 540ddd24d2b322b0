//! Compression with a context.

use std::ptr;
use std::time::Instant;

use super::parts::SchunkPtr;
use super::{Context, EncodingParts, Sticky};
use crate::capi::callbacks::{Host, int};
use crate::capi::trace;
use crate::capi::tuner;
use crate::capi::types::blosc2_context;
use crate::chunk::{self, CParams, Compressed, Encoding, Source};
use crate::error::{ErrorKind, Result, ensure};
use crate::schunk::ChunkCompressor;

/// Measures a compression for the tuner; does nothing without one.
struct Stopwatch(Option<Instant>);

impl Stopwatch {
    fn start(context: &Context) -> Stopwatch {
        Stopwatch((context.fields.tuner_id > 0).then(Instant::now))
    }

    fn seconds(&self) -> f64 {
        self.0.map_or(0.0, |start| start.elapsed().as_secs_f64())
    }
}

/// Runs a compression with everything that it needs, taken out of the context. The user is told of `nbytes` bytes, or
/// of those of the longest block.
///
/// # Safety
///
/// As for [`compress`].
unsafe fn with_encoding<T>(
    context: *mut blosc2_context,
    nbytes: usize,
    operation: impl FnOnce(&Encoding<'_>) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    if this.fields.prefilter.is_some() {
        // SAFETY: the caller's promise; `this` is not used any more.
        return unsafe { EncodingParts::of(context, nbytes) }?.with(operation);
    }
    // The usual case does without moving all these parts around, which shows with small buffers.
    let params = this.params()?;
    trace::compression(&params, nbytes);
    let backend = this.attach();
    let threads = backend.threads(this.nthreads());
    let schunk = SchunkPtr(this.fields.schunk);
    let container = move || schunk.container();
    let host = Host(context);
    operation(&Encoding { threads, container: Some(&container), host: Some(&host), ..Encoding::new(&params) })
}

/// Lets the tuner choose the parameters, if there is one.
///
/// # Safety
///
/// As for [`compress`].
#[inline(always)]
unsafe fn tune(context: *mut blosc2_context) -> Result<()> {
    // SAFETY: the caller's promise; the reference ends with the statement.
    if unsafe { Context::from_raw(context) }?.fields.tuner_id <= 0 {
        return Ok(());
    }
    // SAFETY: as above.
    unsafe { ask_tuner(context) }
}

/// Lets the tuner choose the parameters. The blocks of an array keep their size, whatever it wants: the array could not
/// be read or changed with others.
///
/// # Safety
///
/// As for [`compress`].
#[cold]
unsafe fn ask_tuner(context: *mut blosc2_context) -> Result<()> {
    // SAFETY: the caller's promise; the reference ends before the tuner is called.
    let this = unsafe { Context::from_raw(context) }?;
    let requested = this.blocksize.requested;
    let container = SchunkPtr(this.fields.schunk).container();
    // SAFETY: as above.
    unsafe { tuner::prepare(context) }?;
    if container.geometry().is_some() {
        // SAFETY: as above.
        let this = unsafe { Context::from_raw(context) }?;
        this.blocksize = Sticky::new(requested);
        this.fields.blocksize = requested;
    }
    Ok(())
}

/// Compresses chunk after chunk with a context, as [`compress`] does. What takes the parameters out of a context once,
/// for many chunks, is faster, but tells neither the tuner nor the user of each.
pub(super) struct EachAnew {
    context: *mut blosc2_context,
}

impl EachAnew {
    /// A compressor with this context.
    ///
    /// # Safety
    ///
    /// As for [`compress`], as long as it is in use.
    pub(super) unsafe fn with(context: *mut blosc2_context) -> EachAnew {
        EachAnew { context }
    }
}

impl ChunkCompressor for EachAnew {
    #[cold]
    fn compress(&self, src: Source<'_>, dest: &mut [u8]) -> Result<usize> {
        // SAFETY: promised to `with`.
        unsafe { compress(self.context, src, dest) }
    }
}

/// Compresses `src` with a context of the application.
///
/// # Safety
///
/// `context` is null or a valid context that no other thread uses.
pub(crate) unsafe fn compress(
    context: *mut blosc2_context,
    src: Source<'_>,
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::compressing(context) }?;
    let bytes = if let Source::Bytes(bytes) = src { bytes.as_ptr() } else { ptr::null() };
    this.note_buffers(bytes, src.nbytes(), dest);
    // SAFETY: as above; `this` is not used after this line.
    unsafe { tune(context) }?;
    // SAFETY: as above.
    let this = unsafe { Context::from_raw(context) }?;
    let is_generated = matches!(src, Source::Generated(_));
    let missing = is_generated && src.nbytes() > 0 && this.fields.prefilter.is_none();
    ensure(!missing, ErrorKind::NullPointer, "no source and no prefilter")?;
    if this.fields.prefilter.is_some() {
        this.show_layout(src.nbytes());
    }
    let start = Stopwatch::start(this);
    // SAFETY: as above.
    let outcome = unsafe { with_encoding(context, src.nbytes(), |enc| chunk::compress_with(enc, src, dest)) };
    if outcome.is_err() {
        // SAFETY: as above.
        unsafe { Context::from_raw(context) }?.show_layout(src.nbytes());
    }
    let outcome = outcome?;
    // SAFETY: as above.
    unsafe { finish_compression(context, &outcome, start) }?;
    Ok(outcome.cbytes)
}

/// Compresses variable-length blocks with a context of the application.
///
/// # Safety
///
/// As for [`compress`].
pub(crate) unsafe fn compress_vl(
    context: *mut blosc2_context,
    blocks: &[&[u8]],
    dest: &mut [u8],
) -> Result<usize> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::compressing(context) }?;
    let nbytes = chunk::vl_nbytes(blocks)?;
    this.note_buffers(ptr::null(), nbytes, dest);
    let longest = blocks.iter().map(|block| block.len()).max().unwrap_or(0);
    this.blocksize.show(&mut this.fields.blocksize, longest);
    // SAFETY: as above; `this` is not used after this line.
    unsafe { tuner::prepare(context) }?;
    // SAFETY: as above.
    let this = unsafe { Context::from_raw(context) }?;
    this.show_vl_layout(blocks.len());
    let start = Stopwatch::start(this);
    // SAFETY: as above.
    let outcome = unsafe { with_encoding(context, longest, |enc| chunk::compress_vl(enc, blocks, dest)) }?;
    // SAFETY: as above.
    unsafe { finish_compression(context, &outcome, start) }?;
    Ok(outcome.cbytes)
}

/// The parameters for a special chunk of `nbytes` bytes, about which the tuner has its say.
///
/// # Safety
///
/// As for [`compress`].
pub(crate) unsafe fn special_params(
    context: *mut blosc2_context,
    nbytes: usize,
    dest: &mut [u8],
) -> Result<CParams> {
    // SAFETY: the caller's promise.
    unsafe { Context::from_raw(context) }?.note_buffers(ptr::null(), nbytes, dest);
    // SAFETY: as above.
    unsafe { tuner::prepare(context) }?;
    // SAFETY: as above.
    unsafe { Context::from_raw(context) }?.params()
}

/// Shows `blocksize` as that of the last compression.
///
/// # Safety
///
/// As for [`compress`].
pub(crate) unsafe fn note_blocksize(context: *mut blosc2_context, blocksize: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    this.blocksize.show(&mut this.fields.blocksize, blocksize);
    Ok(())
}

/// Records the outcome of a compression and tells the tuner.
///
/// # Safety
///
/// As for [`compress`].
unsafe fn finish_compression(
    context: *mut blosc2_context,
    outcome: &Compressed,
    start: Stopwatch,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let this = unsafe { Context::from_raw(context) }?;
    let fields = &mut this.fields;
    this.blocksize.show(&mut fields.blocksize, outcome.blocksize);
    this.typesize.show(&mut fields.typesize, outcome.typesize);
    fields.nblocks = int(outcome.nblocks);
    fields.destsize = int(outcome.cbytes);
    if fields.clevel == 0 {
        *fields.use_dict.get_mut() = 0;
    }
    // SAFETY: the caller's promise; `this` is not used after this line.
    unsafe { tuner::update(context, start.seconds()) }
}
