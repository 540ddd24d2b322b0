//! Whole buffers of some MiB: compression, decompression, and 100 items out of the middle.

use std::cell::RefCell;

use super::{Family, check_reads, checked_chunks, compressor, cparams, decompressor, time};
use crate::bench::data::{Kind, Rng};
use crate::bench::options::{CODECS, Codec, FILTERS, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

const COMPRESS: &str = "compress";
const DECOMPRESS: &str = "decompress";
const DECOMPRESS_OWN: &str = "decompress_own";
const GETITEM: &str = "getitem";

/// Items asked for by one getitem call.
const ITEMS: i32 = 100;
/// Calls of getitem at different places that make up one timed call.
const PLACES: u64 = 8;

/// See the module.
pub const FAMILY: Family = Family {
    name: "bulk",
    about: "buffers of about 8 MiB, automatic blocks, contexts reused; decompress reads the C library's chunks, \
            decompress_own what each library made, where that differs; getitem reads 100 items",
    ops: &[COMPRESS, DECOMPRESS, DECOMPRESS_OWN, GETITEM],
    cells,
    measure,
};

fn cells(options: &Options) -> Vec<Key> {
    let mut keys = Vec::new();
    for codec in CODECS {
        for clevel in options.clevels() {
            for filter in FILTERS {
                for data in options.kinds() {
                    let nbytes = buffer_size(options, codec, clevel);
                    keys.push(Key { codec, clevel, filter, data, threads: 1, nbytes });
                }
            }
        }
        for filter in &FILTERS[1..] {
            for data in options.kinds_or_file(&[Kind::Smooth, Kind::Ramps, Kind::Records]) {
                let nbytes = buffer_size(options, codec, 5);
                for threads in options.thread_counts() {
                    keys.push(Key { codec, clevel: 5, filter: *filter, data, threads, nbytes });
                }
            }
        }
    }
    keys
}

/// About 8 MiB, less for slow encoders so that a cell stays a fraction of a second; four times that if there are to be
/// blocks for many threads.
fn buffer_size(options: &Options, codec: Codec, clevel: u8) -> usize {
    let kib = match (codec.name, clevel) {
        ("blosclz" | "lz4", _) => 8192,
        ("lz4hc" | "zstd", 0..=3) => 4096,
        ("lz4hc" | "zstd", 4..=6) | ("zlib", 0..=3) => 2048,
        ("zlib", 7..) => 512,
        _ => 1024,
    };
    let kib = if options.quick { kib / 2 } else { kib };
    let many = options.thread_counts().iter().any(|&threads| threads > 2);
    if many { 4 * kib * 1024 } else { kib * 1024 }
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let data = bench.data(key.data, key.nbytes);
    let (ours, theirs) = checked_chunks(libs, key, &data)?;
    if bench.options.wants_op(COMPRESS) {
        compress(libs, bench, key, &data, (ours.len(), theirs.as_ref().map(Vec::len)))?;
    }
    // Both read the same chunk: the C library's, when there is one.
    let chunk = theirs.as_ref().unwrap_or(&ours);
    if bench.options.wants_op(DECOMPRESS) {
        decompress(libs, bench, key, &data, DECOMPRESS, [chunk, chunk])?;
    }
    if bench.options.wants_op(DECOMPRESS_OWN) && ours != *chunk {
        decompress(libs, bench, key, &data, DECOMPRESS_OWN, [&ours, chunk])?;
    }
    if bench.options.wants_op(GETITEM) && key.threads == 1 {
        getitem(libs, bench, key, &data, chunk)?;
    }
    Ok(())
}

fn compress(
    libs: &Libs,
    bench: &mut Bench,
    key: &Key,
    data: &[u8],
    cbytes: (usize, Option<usize>),
) -> Result<(), String> {
    // A reused context must still write something valid.
    let mut dest = vec![0; data.len() + 32];
    let mut ctx = libs.ours.cctx(&cparams(&libs.ours, key)).ok_or("no compression context")?;
    for _ in 0..2 {
        let code = ctx.compress(data, &mut dest);
        let len = usize::try_from(code).map_err(|_| format!("the reused context fails: {code}"))?;
        check_reads(&libs.ours, &dest[..len], data)?;
    }
    let dest = RefCell::new(dest);
    let timing = time(libs, bench.options.budget(80), |lib| compressor(lib, key, data, &dest))?;
    let versus = Versus::Theirs;
    bench.record(Record { op: COMPRESS, key: *key, bytes: data.len(), timing, versus, cbytes: Some(cbytes) });
    Ok(())
}

/// Times decompression of the first chunk by our library, and of the second one by the other.
fn decompress(
    libs: &Libs,
    bench: &mut Bench,
    key: &Key,
    data: &[u8],
    op: &'static str,
    [ours, theirs]: [&[u8]; 2],
) -> Result<(), String> {
    let mut dest = vec![0xA5; data.len()];
    let code = libs.ours.dctx(key.threads).decompress(ours, &mut dest);
    if usize::try_from(code) != Ok(data.len()) || dest != data {
        return Err(format!("decompression with {} threads fails: {code}", key.threads));
    }
    let dest = RefCell::new(dest);
    let timing = time(libs, bench.options.budget(48), |lib| {
        let chunk = if std::ptr::eq(lib, &libs.ours) { ours } else { theirs };
        Ok(decompressor(lib, key, chunk, &dest))
    })?;
    if dest.into_inner() != data {
        return Err("the reused decompression context yields other data".into());
    }
    let versus = Versus::Theirs;
    let cbytes = (ours != theirs).then_some((ours.len(), Some(theirs.len())));
    bench.record(Record { op, key: *key, bytes: data.len(), timing, versus, cbytes });
    Ok(())
}

fn getitem(libs: &Libs, bench: &mut Bench, key: &Key, data: &[u8], chunk: &[u8]) -> Result<(), String> {
    let typesize = usize::try_from(key.data.typesize()).expect("positive");
    let nitems = data.len() / typesize;
    let size = usize::try_from(ITEMS).expect("positive") * typesize;
    let mut rng = Rng::new(7);
    let starts: Vec<i32> = (0..PLACES)
        .map(|_| i32::try_from(rng.below(nitems as u64 - 100)).expect("fewer than 2^31 items"))
        .collect();

    let mut dest = vec![0; size];
    let mut ctx = libs.ours.dctx(1);
    let wanted = i32::try_from(size).expect("small");
    for &start in &starts {
        let code = ctx.getitem(chunk, start, ITEMS, &mut dest);
        let from = usize::try_from(start).expect("positive") * typesize;
        if code != wanted || dest != data[from..from + size] {
            return Err(format!("getitem at {start} fails: {code}"));
        }
    }
    drop(ctx);
    let (dest, starts) = (RefCell::new(dest), &starts);
    let timing = time(libs, bench.options.budget(32), |lib| {
        let (mut ctx, dest) = (lib.dctx(1), &dest);
        Ok(Box::new(move || {
            for &start in starts {
                assert_eq!(ctx.getitem(chunk, start, ITEMS, &mut dest.borrow_mut()), wanted);
            }
        }))
    })?;
    let bytes = size * starts.len();
    bench.record(Record { op: GETITEM, key: *key, bytes, timing, versus: Versus::Theirs, cbytes: None });
    Ok(())
}
