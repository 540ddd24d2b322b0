//! Pre- and postfilters of super-chunks: which chunk and block they are told, and what comes of what they do.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::common::check::{equal, for_seeds, same};
use super::common::clib::{CParams, DParams};
use super::common::data::make_data;
use super::common::schunk_api::{Schunk, SchunkApi};
use super::common::scratch::Scratch;
use super::common::{OURS, Rng};

/// The front of `blosc2_prefilter_params`.
#[repr(C)]
struct PreParams {
    user_data: *mut c_void,
    input: *const u8,
    output: *mut u8,
    output_size: i32,
    output_typesize: i32,
    output_offset: i32,
    nchunk: i64,
    nblock: i32,
    tid: i32,
    rest: [*mut c_void; 4],
}

/// The front of `blosc2_postfilter_params`.
#[repr(C)]
struct PostParams {
    user_data: *mut c_void,
    input: *const u8,
    output: *mut u8,
    size: i32,
    typesize: i32,
    offset: i32,
    nchunk: i64,
    nblock: i32,
    tid: i32,
    rest: [*mut c_void; 4],
}

/// A byte that depends on all that a callback is told.
fn mark(nchunk: i64, nblock: i32, offset: i32, at: usize) -> u8 {
    let sum = nchunk * 31 + i64::from(nblock) * 7 + i64::from(offset) + i64::try_from(at).expect("small");
    sum.to_le_bytes()[0]
}

unsafe extern "C" fn prefilter(params: *mut c_void) -> c_int {
    // SAFETY: the library passes its parameters; input and output have `output_size` bytes.
    unsafe {
        let p = &*params.cast::<PreParams>();
        for at in 0..usize::try_from(p.output_size).expect("a size") {
            *p.output.add(at) =
                (*p.input.add(at)).wrapping_add(mark(p.nchunk, p.nblock, p.output_offset, at));
        }
    }
    0
}

unsafe extern "C" fn postfilter(params: *mut c_void) -> c_int {
    // SAFETY: the library passes its parameters; input and output have `size` bytes.
    unsafe {
        let p = &*params.cast::<PostParams>();
        for at in 0..usize::try_from(p.size).expect("a size") {
            *p.output.add(at) = (*p.input.add(at)).wrapping_sub(mark(p.nchunk, p.nblock, p.offset, at));
        }
    }
    0
}

unsafe extern "C" fn failing(_: *mut c_void) -> c_int {
    1
}

impl PreParams {
    const NONE: PreParams = PreParams {
        user_data: ptr::null_mut(),
        input: ptr::null(),
        output: ptr::null_mut(),
        output_size: 0,
        output_typesize: 0,
        output_offset: 0,
        nchunk: 0,
        nblock: 0,
        tid: 0,
        rest: [ptr::null_mut(); 4],
    };
}

impl PostParams {
    const NONE: PostParams = PostParams {
        user_data: ptr::null_mut(),
        input: ptr::null(),
        output: ptr::null_mut(),
        size: 0,
        typesize: 0,
        offset: 0,
        nchunk: 0,
        nblock: 0,
        tid: 0,
        rest: [ptr::null_mut(); 4],
    };
}

/// The code of decompressing a chunk of `len` bytes, and what comes of it.
fn decode(schunk: &mut Schunk, nchunk: usize, len: usize) -> (i32, Vec<u8>) {
    let mut dest = vec![0; len];
    (schunk.decompress_chunk(i64::try_from(nchunk).expect("few"), &mut dest), dest)
}

/// Reads items of both, which are `whole`.
fn compare_items(
    (ours, theirs): (&mut Schunk, &mut Schunk),
    rng: &mut Rng,
    whole: &[u8],
    typesize: usize,
) -> Result<(), String> {
    let total = whole.len() / typesize;
    let first = rng.below(total);
    let end = (first + rng.below(total)).min(total);
    let (start, stop) = (i64::try_from(first).expect("small"), i64::try_from(end).expect("small"));
    let bytes = (end - first) * typesize;
    let (mut x, mut y) = (vec![0; bytes], vec![0; bytes]);
    let codes = (ours.get_slice(start, stop, &mut x), theirs.get_slice(start, stop, &mut y));
    equal("slice", codes.0, codes.1)?;
    // Theirs now and then tells the postfilter something else than for whole chunks.
    same(&format!("items {start}..{stop}"), &x, &whole[first * typesize..end * typesize])?;
    let coords = [start, 0, i64::try_from(total).expect("small") - 1];
    let (mut x, mut y) = (vec![0; 3 * typesize], vec![0; 3 * typesize]);
    let codes = (ours.get_sparse(&coords, &mut x), theirs.get_sparse(&coords, &mut y));
    equal("sparse", codes.0, codes.1)?;
    same(&format!("items {coords:?}"), &x, &y)
}

/// What calls return when the callbacks, as far as there are any, fail.
fn codes_of_failures(
    schunk: &mut Schunk,
    mut cparams: CParams,
    mut dparams: DParams,
    len: usize,
) -> Vec<i64> {
    (cparams.schunk, dparams.schunk) = (schunk.raw.cast(), schunk.raw.cast());
    cparams.prefilter = cparams.prefilter.map(|_| failing as _);
    dparams.postfilter = dparams.postfilter.map(|_| failing as _);
    // SAFETY: a live handle, whose contexts clients may replace.
    unsafe {
        let f = &schunk.api.lib.f;
        (f.blosc2_free_ctx)((*schunk.raw).cctx);
        (*schunk.raw).cctx = (f.blosc2_create_cctx)(cparams);
        (f.blosc2_free_ctx)((*schunk.raw).dctx);
        (*schunk.raw).dctx = (f.blosc2_create_dctx)(dparams);
    }
    let mut dest = vec![0; len];
    let appended = schunk.append_buffer(&vec![3; len]);
    let read = schunk.decompress_chunk(0, &mut dest);
    vec![appended, read.into(), schunk.get_slice(0, 3, &mut dest).into(), schunk.nchunks()]
}

#[test]
fn callbacks_see_the_same_and_errors_are_the_same() {
    for_seeds(60, |theirs, rng| {
        let scratch = Scratch::new("callbacks");
        let (contiguous, on_disk) = rng.pick(&[(false, false), (true, false), (true, true), (false, true)]);
        let (mut pre, mut post) = (PreParams::NONE, PostParams::NONE);
        let mut cparams = theirs.cparams();
        cparams.compcode = rng.pick(&[1, 5]);
        cparams.clevel = rng.pick(&[0, 1, 5]);
        cparams.typesize = rng.pick(&[1, 4, 8]);
        cparams.blocksize = cparams.typesize * rng.pick(&[16, 64, 100]);
        cparams.nthreads = rng.pick(&[1, 2, 4]);
        // SAFETY: no preconditions.
        let mut dparams = unsafe { (theirs.f.blosc2_get_blosc2_dparams_defaults)() };
        dparams.nthreads = rng.pick(&[1, 2, 4]);
        let (with_pre, with_post) = rng.pick(&[(true, false), (false, true), (true, true)]);
        if with_pre {
            cparams.prefilter = Some(prefilter);
            cparams.preparams = ptr::from_mut(&mut pre).cast();
        }
        if with_post {
            dparams.postfilter = Some(postfilter);
            dparams.postparams = ptr::from_mut(&mut post).cast();
        }
        let make = |lib, name: &str| {
            SchunkApi::of(lib)
                .create(&scratch.place(contiguous, on_disk, name), &cparams, &dparams)
                .expect("made")
        };
        let (mut a, mut b) = (make(&OURS, "ours"), make(theirs, "theirs"));
        let typesize = usize::try_from(cparams.typesize).expect("positive");
        let (items, nchunks) = (rng.range(40, 500), rng.range(1, 5));
        let len = items * typesize;
        for _ in 0..nchunks {
            let data = make_data(rng, "noisy", typesize, len);
            equal("append", a.append_buffer(&data), b.append_buffer(&data))?;
        }
        let mut whole = Vec::new();
        for nchunk in 0..nchunks {
            let (x, y) = (decode(&mut a, nchunk, len), decode(&mut b, nchunk, len));
            whole.extend_from_slice(&x.1);
            equal("code", x.0, y.0)?;
            same(&format!("chunk {nchunk}"), &x.1, &y.1)?;
        }
        for _ in 0..5 {
            compare_items((&mut a, &mut b), rng, &whole, typesize)?;
        }
        // Part of a chunk is written: it passes through both callbacks.
        let stop = i64::try_from(items / 2).expect("small");
        let part = make_data(rng, "ramp", typesize, (items / 2) * typesize);
        equal("set slice", a.set_slice(0, stop, &part), b.set_slice(0, stop, &part))?;
        same("after set slice", &decode(&mut a, 0, len).1, &decode(&mut b, 0, len).1)?;
        let failures = |schunk: &mut Schunk| codes_of_failures(schunk, cparams, dparams, len);
        equal("failing callbacks", failures(&mut a), failures(&mut b))
    });
}
