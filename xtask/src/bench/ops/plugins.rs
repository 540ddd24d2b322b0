//! Codecs and filters of the plugin registry: BYTEDELTA and INT_TRUNC through contexts, ZFP and NDLZ through 2-d
//! arrays.
//!
//! Ratios are those of whole calls: the codec behind a filter, and the bookkeeping of the array around a codec, count.

use std::cell::RefCell;
use std::ffi::CStr;
use std::rc::Rc;

use super::{CParams, Family, both, check_reads, decompressor, time};
use crate::bench::clib::Clib;
use crate::bench::data::Kind;
use crate::bench::nd::{Context, Layout, Nd};
use crate::bench::options::{Codec, Filter, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

const FILTER_COMPRESS: &str = "plug_filter_comp";
const FILTER_DECOMPRESS: &str = "plug_filter_dec";
const CODEC_COMPRESS: &str = "plug_codec_comp";
const CODEC_DECOMPRESS: &str = "plug_codec_dec";

const LZ4: Codec = Codec { name: "lz4", code: 1 };
const NDLZ: Codec = Codec { name: "ndlz", code: 32 };
const ZFP_ACCURACY: Codec = Codec { name: "zfp_acc", code: 33 };
const ZFP_PRECISION: Codec = Codec { name: "zfp_prec", code: 34 };
const ZFP_RATE: Codec = Codec { name: "zfp_rate", code: 35 };
const NONE: Filter = Filter { name: "none", id: 0 };
const SHUFFLE: u8 = 1;
const BYTEDELTA: Filter = Filter { name: "bytedelta", id: 35 };
const INT_TRUNC: Filter = Filter { name: "int_trunc", id: 36 };

/// `BLOSC_NEVER_SPLIT`: the array codecs want whole blocks.
const NEVER_SPLIT: i32 = 2;
/// Items per row of the arrays.
const COLUMNS: i64 = 512;
/// Side of the square blocks.
const SIDE: i32 = 64;

/// See the module.
pub const FAMILY: Family = Family {
    name: "plugins",
    about: "2 MiB: lz4 with BYTEDELTA and INT_TRUNC, contexts reused; NDLZ and ZFP in 2-d arrays",
    ops: &[FILTER_COMPRESS, FILTER_DECOMPRESS, CODEC_COMPRESS, CODEC_DECOMPRESS],
    cells,
    measure,
};

fn cells(options: &Options) -> Vec<Key> {
    let nbytes = if options.quick { 1 << 20 } else { 2 << 20 };
    let mut keys = Vec::new();
    let clevels: &[u8] = if options.quick { &[1] } else { &[1, 5] };
    for &clevel in clevels {
        for filter in [BYTEDELTA, INT_TRUNC] {
            for data in [Kind::Ramps, Kind::Timestamps, Kind::Image] {
                keys.push(Key { codec: LZ4, clevel, filter, data, threads: 1, nbytes });
            }
        }
    }
    for codec in [ZFP_ACCURACY, ZFP_PRECISION, ZFP_RATE] {
        for data in [Kind::Noisy, Kind::Smooth] {
            keys.push(Key { codec, clevel: 5, filter: NONE, data, threads: 1, nbytes });
        }
    }
    for data in [Kind::Image, Kind::Timestamps] {
        keys.push(Key { codec: NDLZ, clevel: 5, filter: NONE, data, threads: 1, nbytes });
    }
    keys
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let wants = |ops: [&str; 2]| ops.iter().any(|op| bench.options.wants_op(op));
    if key.filter != NONE {
        if wants([FILTER_COMPRESS, FILTER_DECOMPRESS]) { filter(libs, bench, key) } else { Ok(()) }
    } else if wants([CODEC_COMPRESS, CODEC_DECOMPRESS]) {
        codec(libs, bench, key)
    } else {
        Ok(())
    }
}

/// One cell of a filter.
fn filter(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let data = bench.data(key.data, key.nbytes);
    let expected = filtered(key, &data);
    let mut chunks = Vec::new();
    for lib in both(libs) {
        let mut ctx = lib.cctx(&filter_params(lib, key)).ok_or("no compression context")?;
        let mut chunk = vec![0; data.len() + 32];
        // Twice: a reused context must still write something valid.
        ctx.compress(&data, &mut chunk);
        let cbytes = ctx.compress(&data, &mut chunk);
        match usize::try_from(cbytes) {
            Ok(cbytes) if cbytes > 0 => chunk.truncate(cbytes),
            _ => return Err(format!("{} does not compress: {cbytes}", lib.path.display())),
        }
        for reader in both(libs) {
            check_reads(reader, &chunk, &expected)?;
        }
        chunks.push(chunk);
    }
    let record = |op, timing, cbytes| Record {
        op,
        key: *key,
        bytes: data.len(),
        timing,
        versus: Versus::Theirs,
        cbytes,
    };
    let budget = bench.options.budget(80);
    let dest = RefCell::new(vec![0; data.len() + 32]);
    if bench.options.wants_op(FILTER_COMPRESS) {
        let timing = time(libs, budget, |lib| {
            let mut ctx = lib.cctx(&filter_params(lib, key)).ok_or("no compression context")?;
            let (data, dest) = (&data, &dest);
            Ok(Box::new(move || assert!(ctx.compress(data, &mut dest.borrow_mut()) > 0)))
        })?;
        let cbytes = Some((chunks[0].len(), chunks.get(1).map(Vec::len)));
        bench.record(record(FILTER_COMPRESS, timing, cbytes));
    }
    if bench.options.wants_op(FILTER_DECOMPRESS) {
        // Both read the same chunk: the C library's, when there is one.
        let chunk = chunks.last().expect("ours at least");
        let timing = time(libs, budget, |lib| Ok(decompressor(lib, key, chunk, &dest)))?;
        bench.record(record(FILTER_DECOMPRESS, timing, None));
    }
    Ok(())
}

/// The parameters of a context that runs the filter of `key` with SHUFFLE.
fn filter_params(lib: &Clib, key: &Key) -> CParams {
    let mut params = super::cparams(lib, key);
    if key.filter == BYTEDELTA {
        params.filters = [0, 0, 0, 0, SHUFFLE, BYTEDELTA.id];
        params.filters_meta[5] = u8::try_from(params.typesize).expect("small");
    } else {
        params.filters = [INT_TRUNC.id, 0, 0, 0, 0, SHUFFLE];
        params.filters_meta[0] = i8::to_ne_bytes(-8)[0]; // clear the low eight bits
    }
    params
}

/// What decompression yields: `data`, for INT_TRUNC without the low byte of each item.
fn filtered(key: &Key, data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    if key.filter == INT_TRUNC {
        let typesize = usize::try_from(key.data.typesize()).expect("positive");
        data.iter_mut().step_by(typesize).for_each(|low| *low = 0);
    }
    data
}

/// A context for 2-d arrays of `key.nbytes` bytes that the codec of `key` compresses.
fn context<'a>(lib: &'a Clib, key: &Key) -> Result<Context<'a>, String> {
    let (typesize, dtype) = item(key);
    let mut cparams = super::cparams(lib, key);
    cparams.compcode_meta = meta(key.codec);
    cparams.filters = [0; 6];
    cparams.typesize = typesize;
    cparams.splitmode = NEVER_SPLIT;
    let nitems = i64::try_from(key.nbytes).expect("a few MiB") / i64::from(typesize);
    Nd::find(lib)?.context(&Layout {
        shape: &[nitems / COLUMNS, COLUMNS],
        chunkshape: &[4 * SIDE, 8 * SIDE],
        blockshape: &[SIDE, SIDE],
        dtype,
        cparams,
        nthreads: 1,
        urlpath: None,
    })
}

/// Item size and dtype of the array of a cell.
fn item(key: &Key) -> (i32, &'static CStr) {
    match (key.codec, key.data.typesize()) {
        (NDLZ, _) => (1, c"|u1"),
        (_, 4) => (4, c"<f4"),
        _ => (8, c"<f8"),
    }
}

/// `compcode_meta`: cell side, decimal exponent of the tolerance, bits, per cent of the size.
fn meta(codec: Codec) -> u8 {
    match codec {
        NDLZ => 4,
        ZFP_ACCURACY => i8::to_ne_bytes(-3)[0],
        ZFP_PRECISION => 16,
        _ => 45,
    }
}

/// The largest difference that the codec may make to values of 10 to 30.
fn tolerance(codec: Codec) -> f64 {
    match codec {
        NDLZ => 0.0,
        ZFP_ACCURACY => 1e-3,
        _ => 0.02,
    }
}

/// The items of a cell's array.
fn array_data(bench: &mut Bench, key: &Key) -> Rc<[u8]> {
    if key.codec == NDLZ && key.data == Kind::Image {
        // The camera's 12 bits as 8.
        let pixels = bench.data(key.data, 2 * key.nbytes);
        let pixels = pixels.chunks_exact(2).map(|p| u16::from_le_bytes([p[0], p[1]]) >> 4);
        return pixels.map(|p| u8::try_from(p).expect("pixels have 12 bits")).collect();
    }
    bench.data(key.data, key.nbytes)
}

/// Fails unless `back` is what the codec may make of `data`.
fn check_items(key: &Key, data: &[u8], back: &[u8]) -> Result<(), String> {
    if key.codec == NDLZ {
        return if back == data { Ok(()) } else { Err("decompression yields other data".into()) };
    }
    let values = |bytes: &[u8]| -> Vec<f64> {
        if key.data.typesize() == 4 {
            let items = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes")));
            items.map(f64::from).collect()
        } else {
            bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect()
        }
    };
    let pairs = values(data).into_iter().zip(values(back));
    // Written so that NaN counts as too far away.
    match pairs.map(|(a, b)| (a - b).abs()).find(|&error| !matches!(error, e if e <= tolerance(key.codec))) {
        Some(error) => Err(format!("an item is off by {error}")),
        None => Ok(()),
    }
}

/// One cell of an array codec.
fn codec(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let data = array_data(bench, key);
    let mut frames = Vec::new();
    for lib in both(libs) {
        let context = context(lib, key)?;
        // Twice: a reused context must still write something valid.
        context.compress(&data)?;
        let frame = context.compress(&data)?.frame()?;
        if frame.len() >= data.len() {
            return Err(format!("{}: the codec does not compress", lib.path.display()));
        }
        let mut first: Option<Vec<u8>> = None;
        for reader in both(libs) {
            let mut back = vec![0xA5; data.len()];
            Nd::find(reader)?.open_frame(&frame)?.read(&mut back)?;
            check_items(key, &data, &back)?;
            if first.get_or_insert_with(|| back.clone()) != &back {
                return Err("the libraries read different items from one frame".into());
            }
        }
        frames.push(frame);
    }
    let versus = Versus::Theirs;
    let record = |op, timing, cbytes| Record { op, key: *key, bytes: data.len(), timing, versus, cbytes };
    let budget = bench.options.budget(80);
    if bench.options.wants_op(CODEC_COMPRESS) {
        let timing = time(libs, budget, |lib| {
            let (context, data) = (context(lib, key)?, &data);
            Ok(Box::new(move || drop(context.compress(data).expect("checked before"))))
        })?;
        let cbytes = Some((frames[0].len(), frames.get(1).map(Vec::len)));
        bench.record(record(CODEC_COMPRESS, timing, cbytes));
    }
    if bench.options.wants_op(CODEC_DECOMPRESS) {
        // Both read the same frame: the C library's, when there is one.
        let frame = frames.last().expect("ours at least");
        let dest = RefCell::new(vec![0; data.len()]);
        let timing = time(libs, budget, |lib| {
            let (array, dest) = (Nd::find(lib)?.open_frame(frame)?, &dest);
            Ok(Box::new(move || array.read(&mut dest.borrow_mut()).expect("checked before")))
        })?;
        bench.record(record(CODEC_DECOMPRESS, timing, None));
    }
    Ok(())
}
