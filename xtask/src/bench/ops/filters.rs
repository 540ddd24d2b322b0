//! The filters of the plugin registry: BYTEDELTA and INT_TRUNC, alone and together with SHUFFLE, before a codec that
//! does next to nothing.
//!
//! The codec is registered by the bench tool: it keeps the first bytes of each block and writes none back. What is
//! timed is the filter over blocks in the cache, and the library's own work around it. That the filters are right is
//! checked by the family `plugins`, through a real codec.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};

use super::{CParams, Family, both, decompressor, time};
use crate::bench::clib::Clib;
use crate::bench::data::Kind;
use crate::bench::options::{Codec, Filter, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

const FORWARD: &str = "filter_forward";
const BACKWARD: &str = "filter_backward";

/// The codec that the tool registers, in the range for users.
const KEEP_LITTLE: Codec = Codec { name: "keep16", code: 199 };
const KEEP_LITTLE_NAME: &CStr = c"keep16";
/// How many bytes it makes of a block.
const KEPT: usize = 16;
const BYTEDELTA: Filter = Filter { name: "bytedelta", id: 35 };
const INT_TRUNC: Filter = Filter { name: "int_trunc", id: 36 };
/// The usual order: the streams that SHUFFLE makes.
const SHUFFLE_BYTEDELTA: Filter = Filter { name: "+bytedelta", id: 35 };
/// The usual order: whole items first.
const INT_TRUNC_SHUFFLE: Filter = Filter { name: "int_trunc+", id: 36 };
const SHUFFLE: u8 = 1;

/// `BLOSC_NEVER_SPLIT`: one call of the codec for a block.
const NEVER_SPLIT: i32 = 2;
/// Bytes per block: with its copy, well inside the second level of caches.
const BLOCKSIZE: i32 = 128 << 10;

/// See the module.
pub const FAMILY: Family = Family {
    name: "filters",
    about: "1 MiB, contexts reused: BYTEDELTA and INT_TRUNC, alone and with SHUFFLE (+), the codec does nothing",
    ops: &[FORWARD, BACKWARD],
    cells,
    measure,
};

fn cells(_: &Options) -> Vec<Key> {
    let mut keys = Vec::new();
    for filter in [BYTEDELTA, SHUFFLE_BYTEDELTA, INT_TRUNC, INT_TRUNC_SHUFFLE] {
        for data in [Kind::Image, Kind::Ramps, Kind::Timestamps] {
            keys.push(Key { codec: KEEP_LITTLE, clevel: 5, filter, data, threads: 1, nbytes: 1 << 20 });
        }
    }
    keys
}

/// `blosc2_codec`.
#[repr(C)]
struct CodecEntry {
    compcode: u8,
    compname: *const c_char,
    complib: u8,
    version: u8,
    encoder: unsafe extern "C" fn(*const u8, i32, *mut u8, i32, u8, *const c_void, *const c_void) -> i32,
    decoder: unsafe extern "C" fn(*const u8, i32, *mut u8, i32, u8, *const c_void, *const c_void) -> i32,
}

unsafe extern "C" fn encoder(
    input: *const u8,
    input_len: i32,
    output: *mut u8,
    output_len: i32,
    _: u8,
    _: *const c_void,
    _: *const c_void,
) -> i32 {
    let kept = i32::try_from(KEPT).expect("small").min(input_len).min(output_len);
    // SAFETY: both buffers have `kept` bytes, and the library keeps them apart.
    unsafe { std::ptr::copy_nonoverlapping(input, output, usize::try_from(kept).unwrap_or(0)) };
    kept
}

/// Leaves in the buffer what was there before.
unsafe extern "C" fn decoder(
    _: *const u8,
    _: i32,
    _: *mut u8,
    output_len: i32,
    _: u8,
    _: *const c_void,
    _: *const c_void,
) -> i32 {
    output_len
}

/// Makes the codec known to `lib`.
fn register(lib: &Clib) -> Result<(), String> {
    // SAFETY: the type is the one that `blosc2.h` declares; it is called while `lib` is loaded.
    let register =
        unsafe { lib.symbol::<unsafe extern "C" fn(*const CodecEntry) -> i32>("blosc2_register_codec") }?;
    let compname = KEEP_LITTLE_NAME.as_ptr();
    let entry = CodecEntry {
        compcode: KEEP_LITTLE.code,
        compname,
        complib: KEEP_LITTLE.code,
        version: 1,
        encoder,
        decoder,
    };
    // SAFETY: the entry is copied; its name and functions are static.
    match unsafe { register(&entry) } {
        0 => Ok(()),
        code => Err(format!("{} does not register a codec: {code}", lib.path.display())),
    }
}

/// The parameters of a context that runs the filter of `key`, and nothing but it.
fn params(lib: &Clib, key: &Key) -> CParams {
    let mut params = super::cparams(lib, key);
    params.splitmode = NEVER_SPLIT;
    params.blocksize = BLOCKSIZE;
    let items = u8::try_from(params.typesize).expect("small");
    let five_bits_less = i8::to_ne_bytes(-5)[0];
    let slots = match key.filter {
        SHUFFLE_BYTEDELTA => [(SHUFFLE, 0), (BYTEDELTA.id, items)],
        INT_TRUNC => [(0, 0), (INT_TRUNC.id, five_bits_less)],
        INT_TRUNC_SHUFFLE => [(INT_TRUNC.id, five_bits_less), (SHUFFLE, 0)],
        _ => [(0, 0), (BYTEDELTA.id, items)],
    };
    for (slot, (id, meta)) in (4..).zip(slots) {
        (params.filters[slot], params.filters_meta[slot]) = (id, meta);
    }
    params
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    for lib in both(libs) {
        register(lib)?;
    }
    let data = bench.data(key.data, key.nbytes);
    let budget = bench.options.budget(80);
    let dest = RefCell::new(vec![0; data.len() + 32]);
    let record = |op, timing| Record {
        op,
        key: *key,
        bytes: data.len(),
        timing,
        versus: Versus::Theirs,
        cbytes: None,
    };
    if bench.options.wants_op(FORWARD) {
        let timing = time(libs, budget, |lib| {
            let mut ctx = lib.cctx(&params(lib, key)).ok_or("no compression context")?;
            let (data, dest) = (&data, &dest);
            Ok(Box::new(move || assert!(ctx.compress(data, &mut dest.borrow_mut()) > 0)))
        })?;
        bench.record(record(FORWARD, timing));
    }
    if bench.options.wants_op(BACKWARD) && key.filter != INT_TRUNC {
        let mut chunk = vec![0; data.len() + 32];
        let cbytes = libs
            .ours
            .cctx(&params(&libs.ours, key))
            .ok_or("no compression context")?
            .compress(&data, &mut chunk);
        chunk.truncate(usize::try_from(cbytes).map_err(|_| format!("ours does not compress: {cbytes}"))?);
        let timing = time(libs, budget, |lib| Ok(decompressor(lib, key, &chunk, &dest)))?;
        bench.record(record(BACKWARD, timing));
    }
    Ok(())
}
