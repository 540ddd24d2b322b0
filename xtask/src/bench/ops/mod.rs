//! The operations that are measured, one file per family.

mod arrays;
mod bulk;
mod container;
mod filters;
mod plugins;
mod requests;
mod scaling;
mod shuffles;
mod small;

use std::cell::RefCell;
use std::time::Duration;

use super::clib::{CParams, Clib, Ctx};
use super::measure::{Subject, Timing, alone, interleaved};
use super::options::{Key, Options};
use super::{Bench, Libs};

/// Operations that share their preparation.
pub struct Family {
    /// Name shown as progress.
    pub name: &'static str,
    /// One line for the help text.
    pub about: &'static str,
    /// The operations; `--op` chooses among them.
    pub ops: &'static [&'static str],
    /// The cells of a run with these options; what the options exclude is left out by the caller.
    pub cells: fn(&Options) -> Vec<Key>,
    /// Checks and measures the wanted operations on one cell. An error is a failed check.
    pub measure: fn(&Libs, &mut Bench, &Key) -> Result<(), String>,
}

/// All families, in the order in which they run.
pub static FAMILIES: &[Family] = &[
    bulk::FAMILY,
    small::FAMILY,
    requests::FAMILY,
    scaling::FAMILY,
    shuffles::FAMILY,
    filters::FAMILY,
    plugins::FAMILY,
    arrays::FAMILY,
    container::FAMILY,
];

/// Our library, and the other one if there is one.
fn both(libs: &Libs) -> impl Iterator<Item = &Clib> {
    std::iter::once(&libs.ours).chain(&libs.theirs)
}

/// The parameters of a compression context for `key`: the library's defaults otherwise.
fn cparams(lib: &Clib, key: &Key) -> CParams {
    let mut params = lib.cparams();
    params.compcode = key.codec.code;
    params.clevel = key.clevel;
    params.typesize = key.data.typesize();
    params.nthreads = key.threads;
    params.filters = [0, 0, 0, 0, 0, key.filter.id];
    params
}

/// A chunk of `data` made by `lib`, cut to its size.
fn make_chunk(lib: &Clib, key: &Key, data: &[u8]) -> Result<Vec<u8>, String> {
    let mut ctx = lib.cctx(&cparams(lib, key)).ok_or("no compression context")?;
    let mut chunk = vec![0; data.len() + 32];
    let cbytes = ctx.compress(data, &mut chunk);
    match usize::try_from(cbytes) {
        Ok(cbytes) if cbytes > 0 => chunk.truncate(cbytes),
        _ => return Err(format!("{} does not compress: {cbytes}", lib.path.display())),
    }
    Ok(chunk)
}

/// Fails unless `lib` gets `data` out of `chunk`.
fn check_reads(lib: &Clib, chunk: &[u8], data: &[u8]) -> Result<(), String> {
    let mut back = vec![0xA5; data.len()];
    let code = lib.dctx(1).decompress(chunk, &mut back);
    if usize::try_from(code) != Ok(data.len()) {
        return Err(format!("{} does not decompress: {code}", lib.path.display()));
    }
    if back != data {
        return Err(format!("{} decompresses to other data", lib.path.display()));
    }
    Ok(())
}

/// The chunks that both libraries make of `data`, after each library has read both.
fn checked_chunks(libs: &Libs, key: &Key, data: &[u8]) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
    let ours = make_chunk(&libs.ours, key, data)?;
    check_reads(&libs.ours, &ours, data)?;
    let Some(lib) = &libs.theirs else { return Ok((ours, None)) };
    let theirs = make_chunk(lib, key, data)?;
    check_reads(lib, &theirs, data)?;
    check_reads(lib, &ours, data)?;
    check_reads(&libs.ours, &theirs, data)?;
    Ok((ours, Some(theirs)))
}

/// A destination that both subjects write to in turn, so that its place in memory favours neither.
type Dest = RefCell<Vec<u8>>;

/// Times what `prepare` makes for each library; ours alone if there is no other.
fn time<'a>(
    libs: &'a Libs,
    budget: Duration,
    prepare: impl Fn(&'a Clib) -> Result<Subject<'a>, String>,
) -> Result<Timing, String> {
    match &libs.theirs {
        Some(theirs) => interleaved(budget, &|| prepare(&libs.ours), &|| prepare(theirs)),
        None => alone(budget, &|| prepare(&libs.ours)),
    }
}

/// A subject that compresses `data` with one context.
fn compressor<'a>(lib: &'a Clib, key: &Key, data: &'a [u8], dest: &'a Dest) -> Result<Subject<'a>, String> {
    let mut ctx = lib.cctx(&cparams(lib, key)).ok_or("no compression context")?;
    Ok(Box::new(move || assert!(ctx.compress(data, &mut dest.borrow_mut()) > 0)))
}

/// A subject that decompresses `chunk` with one context.
fn decompressor<'a>(lib: &'a Clib, key: &Key, chunk: &'a [u8], dest: &'a Dest) -> Subject<'a> {
    let mut ctx: Ctx<'a> = lib.dctx(key.threads);
    Box::new(move || assert!(ctx.decompress(chunk, &mut dest.borrow_mut()) > 0))
}
