//! Buffers of 64 bytes to 64 KiB, where the cost of a call counts.

use std::cell::RefCell;

use super::{Family, checked_chunks, compressor, cparams, decompressor, time};
use crate::bench::clib::Clib;
use crate::bench::data::Kind;
use crate::bench::options::{CODECS, FILTERS, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

const COMPRESS: &str = "small_compress";
const DECOMPRESS: &str = "small_decompress";
const BLOSC1: &str = "small_blosc1";
const NEW_COMPRESS: &str = "new_compress";
const NEW_DECOMPRESS: &str = "new_decompress";

const SIZES: [usize; 6] = [64, 256, 1024, 4096, 16384, 65536];

/// See the module.
pub const FAMILY: Family = Family {
    name: "small",
    about: "64 B to 64 KiB, contexts reused; blosc1_compress with its global state; new_: a context per call",
    ops: &[COMPRESS, DECOMPRESS, BLOSC1, NEW_COMPRESS, NEW_DECOMPRESS],
    cells,
    measure,
};

fn cells(options: &Options) -> Vec<Key> {
    let (sizes, clevels) = if options.quick {
        (&SIZES[..].iter().copied().step_by(2).collect::<Vec<_>>(), vec![5])
    } else {
        (&SIZES.to_vec(), if options.full { options.clevels() } else { vec![5] })
    };
    let filters = if options.quick { &FILTERS[1..2] } else { &FILTERS[..] };
    let kinds: &[Kind] = if options.quick {
        &[Kind::Smooth, Kind::Text]
    } else {
        &[Kind::Smooth, Kind::Ramps, Kind::Image, Kind::Text, Kind::Random]
    };
    let kinds = options.kinds_or_file(kinds);
    let mut keys = Vec::new();
    for codec in CODECS {
        for &clevel in &clevels {
            for &filter in filters {
                for &data in &kinds {
                    for &nbytes in sizes {
                        keys.push(Key { codec, clevel, filter, data, threads: 1, nbytes });
                    }
                }
            }
        }
    }
    keys
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let data = bench.data(key.data, key.nbytes);
    let (ours, theirs) = checked_chunks(libs, key, &data)?;
    let cbytes = Some((ours.len(), theirs.as_ref().map(Vec::len)));
    let chunk = theirs.as_ref().unwrap_or(&ours);
    let record = |op, timing, cbytes| Record {
        op,
        key: *key,
        bytes: data.len(),
        timing,
        versus: Versus::Theirs,
        cbytes,
    };
    let dest = RefCell::new(vec![0; data.len() + 32]);
    let budget = bench.options.budget(14);
    if bench.options.wants_op(COMPRESS) {
        let timing = time(libs, budget, |lib| compressor(lib, key, &data, &dest))?;
        bench.record(record(COMPRESS, timing, cbytes));
    }
    if bench.options.wants_op(DECOMPRESS) {
        let timing = time(libs, budget, |lib| Ok(decompressor(lib, key, chunk, &dest)))?;
        bench.record(record(DECOMPRESS, timing, None));
    }
    if bench.options.wants_op(NEW_COMPRESS) {
        let timing = time(libs, budget, |lib| {
            let (data, dest) = (&data, &dest);
            Ok(Box::new(move || {
                let mut ctx = lib.cctx(&cparams(lib, key)).expect("a context as before");
                assert!(ctx.compress(data, &mut dest.borrow_mut()) > 0);
            }))
        })?;
        bench.record(record(NEW_COMPRESS, timing, None));
    }
    if bench.options.wants_op(NEW_DECOMPRESS) {
        let timing = time(libs, budget, |lib| {
            let dest = &dest;
            Ok(Box::new(move || {
                assert!(lib.dctx(key.threads).decompress(chunk, &mut dest.borrow_mut()) > 0);
            }))
        })?;
        bench.record(record(NEW_DECOMPRESS, timing, None));
    }
    if bench.options.wants_op(BLOSC1) {
        let typesize = usize::try_from(key.data.typesize()).expect("positive");
        let (clevel, filter) = (i32::from(key.clevel), i32::from(key.filter.id));
        let timing = time(libs, budget, |lib| {
            blosc1_round_trip(lib, key, &data)?;
            let (data, dest) = (&data, &dest);
            Ok(Box::new(move || {
                assert!(lib.blosc1_compress(clevel, filter, typesize, data, &mut dest.borrow_mut()) > 0);
            }))
        })?;
        bench.record(record(BLOSC1, timing, None));
    }
    Ok(())
}

/// Sets the global compressor of `lib` and checks that the old API restores `data`.
fn blosc1_round_trip(lib: &Clib, key: &Key, data: &[u8]) -> Result<(), String> {
    let code = lib.set_compressor(key.codec.name);
    if code != i32::from(key.codec.code) {
        return Err(format!("blosc1_set_compressor: {code}"));
    }
    let typesize = usize::try_from(key.data.typesize()).expect("positive");
    let mut chunk = vec![0; data.len() + 32];
    let code =
        lib.blosc1_compress(i32::from(key.clevel), i32::from(key.filter.id), typesize, data, &mut chunk);
    let cbytes = usize::try_from(code).map_err(|_| format!("blosc1_compress: {code}"))?;
    let mut back = vec![0xA5; data.len()];
    let code = lib.blosc2_decompress(&chunk[..cbytes], &mut back);
    if back == data { Ok(()) } else { Err(format!("blosc1_compress does not round-trip: {code}")) }
}
