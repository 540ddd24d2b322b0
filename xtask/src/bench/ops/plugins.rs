//! Codecs and filters of the plugin registry: BYTEDELTA and INT_TRUNC through contexts, ZFP and NDLZ through 2-d arrays.
//!
//! Ratios are those of whole calls: the codec behind a filter, and the bookkeeping of the array around a codec, count.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

use super::{CParams, Family, check_reads, decompressor, time};
use crate::bench::clib::Clib;
use crate::bench::data::Kind;
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

/// Our library, and the other one if there is one.
fn both(libs: &Libs) -> impl Iterator<Item = &Clib> {
    std::iter::once(&libs.ours).chain(&libs.theirs)
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

/// `blosc2_storage`.
#[repr(C)]
struct Storage {
    contiguous: bool,
    urlpath: *mut c_char,
    cparams: *mut CParams,
    dparams: *mut c_void,
    io: *mut c_void,
}

/// A `b2nd_array_t` or `b2nd_context_t`, both opaque here.
type Raw = *mut c_void;
type CreateCtx = unsafe extern "C" fn(
    *const Storage,
    i8,
    *const i64,
    *const i32,
    *const i32,
    *const c_char,
    i8,
    *const c_void,
    i32,
) -> Raw;

/// The functions of `b2nd.h` in use, of one copy that outlives them.
#[derive(Clone, Copy)]
struct Nd<'a> {
    lib: &'a Clib,
    create_ctx: CreateCtx,
    free_ctx: unsafe extern "C" fn(Raw) -> c_int,
    from_cbuffer: unsafe extern "C" fn(Raw, *mut Raw, *const c_void, i64) -> c_int,
    to_cbuffer: unsafe extern "C" fn(Raw, *mut c_void, i64) -> c_int,
    to_cframe: unsafe extern "C" fn(Raw, *mut *mut u8, *mut i64, *mut bool) -> c_int,
    from_cframe: unsafe extern "C" fn(*mut u8, i64, bool, *mut Raw) -> c_int,
    free: unsafe extern "C" fn(Raw) -> c_int,
}

impl<'a> Nd<'a> {
    fn find(lib: &'a Clib) -> Result<Self, String> {
        // SAFETY: the types are those that `b2nd.h` declares; the borrow of `lib` keeps the copy loaded.
        unsafe {
            Ok(Self {
                lib,
                create_ctx: lib.symbol("b2nd_create_ctx")?,
                free_ctx: lib.symbol("b2nd_free_ctx")?,
                from_cbuffer: lib.symbol("b2nd_from_cbuffer")?,
                to_cbuffer: lib.symbol("b2nd_to_cbuffer")?,
                to_cframe: lib.symbol("b2nd_to_cframe")?,
                from_cframe: lib.symbol("b2nd_from_cframe")?,
                free: lib.symbol("b2nd_free")?,
            })
        }
    }

    /// A context for 2-d arrays of `key.nbytes` bytes that the codec of `key` compresses.
    fn context(self, key: &Key) -> Result<NdContext<'a>, String> {
        let (typesize, dtype) = item(key);
        let mut params = Box::new(super::cparams(self.lib, key));
        params.compcode_meta = meta(key.codec);
        params.filters = [0; 6];
        params.typesize = typesize;
        params.splitmode = NEVER_SPLIT;
        let cparams: *mut CParams = &mut *params;
        let storage = Storage {
            contiguous: false,
            urlpath: null_mut(),
            cparams,
            dparams: null_mut(), // the defaults: one thread
            io: null_mut(),
        };
        let nitems = i64::try_from(key.nbytes).expect("a few MiB") / i64::from(typesize);
        let shape = [nitems / COLUMNS, COLUMNS];
        // SAFETY: all pointers are to live values: two dimensions each, a NUL-terminated string, no metalayers.
        let raw = unsafe {
            (self.create_ctx)(
                &storage,
                2,
                shape.as_ptr(),
                [4 * SIDE, 8 * SIDE].as_ptr(),
                [SIDE, SIDE].as_ptr(),
                dtype.as_ptr(),
                0,
                null(),
                0,
            )
        };
        if raw.is_null() {
            return Err(format!("{}: no b2nd context", self.lib.path.display()));
        }
        Ok(NdContext { nd: self, raw, _params: params })
    }

    /// The array stored in `frame`, which is copied.
    fn open(self, frame: &[u8]) -> Result<Array<'a>, String> {
        let mut raw = null_mut();
        let len = i64::try_from(frame.len()).expect("a few MiB");
        // SAFETY: the frame is only read, as it is copied; the answer goes to a live pointer.
        let code = unsafe { (self.from_cframe)(frame.as_ptr().cast_mut(), len, true, &mut raw) };
        self.array(code, raw, "b2nd_from_cframe")
    }

    fn array(self, code: c_int, raw: Raw, what: &str) -> Result<Array<'a>, String> {
        if code < 0 || raw.is_null() {
            return Err(format!("{}: {what}: {code}", self.lib.path.display()));
        }
        Ok(Array { nd: self, raw })
    }
}

/// A `b2nd_context_t`; freed when dropped.
struct NdContext<'a> {
    nd: Nd<'a>,
    raw: Raw,
    /// What the storage points to, should the library not have copied it.
    _params: Box<CParams>,
}

impl Drop for NdContext<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.nd.free_ctx)(self.raw) };
    }
}

impl<'a> NdContext<'a> {
    /// A new array with the items in `data`.
    fn compress(&self, data: &[u8]) -> Result<Array<'a>, String> {
        let mut raw = null_mut();
        let len = i64::try_from(data.len()).expect("a few MiB");
        // SAFETY: pointer and length come from a slice; the answer goes to a live pointer.
        let code = unsafe { (self.nd.from_cbuffer)(self.raw, &mut raw, data.as_ptr().cast(), len) };
        self.nd.array(code, raw, "b2nd_from_cbuffer")
    }
}

/// A `b2nd_array_t`; freed when dropped.
struct Array<'a> {
    nd: Nd<'a>,
    raw: Raw,
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from the same copy and is freed once.
        unsafe { (self.nd.free)(self.raw) };
    }
}

impl Array<'_> {
    /// Decompresses all items into `dest`.
    fn read(&self, dest: &mut [u8]) -> c_int {
        let len = i64::try_from(dest.len()).expect("a few MiB");
        // SAFETY: pointer and length come from a slice.
        unsafe { (self.nd.to_cbuffer)(self.raw, dest.as_mut_ptr().cast(), len) }
    }

    /// A copy of the array's frame.
    fn frame(&self) -> Result<Vec<u8>, String> {
        unsafe extern "C" {
            fn free(ptr: *mut c_void);
        }
        let (mut frame, mut len, mut needs_free) = (null_mut(), 0, false);
        // SAFETY: the answers go to live variables.
        let code = unsafe { (self.nd.to_cframe)(self.raw, &mut frame, &mut len, &mut needs_free) };
        if code < 0 || frame.is_null() {
            return Err(format!("{}: b2nd_to_cframe: {code}", self.nd.lib.path.display()));
        }
        let len = usize::try_from(len).map_err(|_| "a frame of negative length")?;
        // SAFETY: on success `frame` has `len` bytes.
        let copy = unsafe { std::slice::from_raw_parts(frame, len) }.to_vec();
        if needs_free {
            // SAFETY: the library says that the frame is from malloc and now ours.
            unsafe { free(frame.cast()) };
        }
        Ok(copy)
    }
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
        let context = Nd::find(lib)?.context(key)?;
        // Twice: a reused context must still write something valid.
        context.compress(&data)?;
        let frame = context.compress(&data)?.frame()?;
        if frame.len() >= data.len() {
            return Err(format!("{}: the codec does not compress", lib.path.display()));
        }
        let mut first: Option<Vec<u8>> = None;
        for reader in both(libs) {
            let mut back = vec![0xA5; data.len()];
            let code = Nd::find(reader)?.open(&frame)?.read(&mut back);
            if code < 0 {
                return Err(format!("{}: b2nd_to_cbuffer: {code}", reader.path.display()));
            }
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
            let (context, data) = (Nd::find(lib)?.context(key)?, &data);
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
            let (array, dest) = (Nd::find(lib)?.open(frame)?, &dest);
            Ok(Box::new(move || assert!(array.read(&mut dest.borrow_mut()) >= 0)))
        })?;
        bench.record(record(CODEC_DECOMPRESS, timing, None));
    }
    Ok(())
}
