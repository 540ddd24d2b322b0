//! A thread for each call, as servers have one for each request: what a library keeps for the next call is of use only
//! if other threads get it.

use std::sync::Mutex;
use std::thread;

use super::{Family, checked_chunks, cparams, time};
use crate::bench::data::Kind;
use crate::bench::options::{CODECS, FILTERS, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

const COMPRESS: &str = "thread_compress";
const DECOMPRESS: &str = "thread_decomp";

const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// See the module.
pub const FAMILY: Family = Family {
    name: "requests",
    about: "4 KiB to 1 MiB, a thread and a context per call",
    ops: &[COMPRESS, DECOMPRESS],
    cells,
    measure,
};

fn cells(options: &Options) -> Vec<Key> {
    let kinds =
        options.kinds_or_file(if options.quick { &[Kind::Smooth] } else { &[Kind::Smooth, Kind::Image] });
    let mut keys = Vec::new();
    for codec in CODECS {
        for &data in &kinds {
            for nbytes in SIZES {
                keys.push(Key { codec, clevel: 5, filter: FILTERS[1], data, threads: 1, nbytes });
            }
        }
    }
    keys
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let data = bench.data(key.data, key.nbytes);
    let (ours, theirs) = checked_chunks(libs, key, &data)?;
    let chunk = theirs.as_ref().unwrap_or(&ours);
    // Both libraries write to the same place.
    let dest = Mutex::new(vec![0; data.len() + 32]);
    let budget = bench.options.budget(30);
    let record = |op, timing| Record {
        op,
        key: *key,
        bytes: data.len(),
        timing,
        versus: Versus::Theirs,
        cbytes: None,
    };
    if bench.options.wants_op(COMPRESS) {
        let timing = time(libs, budget, |lib| {
            let (data, dest): (&[u8], _) = (&data, &dest);
            let compress = move || {
                let mut ctx = lib.cctx(&cparams(lib, key)).expect("a context as before");
                assert!(ctx.compress(data, &mut dest.lock().expect("nobody panicked")) > 0);
            };
            Ok(Box::new(move || in_thread(compress)))
        })?;
        bench.record(record(COMPRESS, timing));
    }
    if bench.options.wants_op(DECOMPRESS) {
        let timing = time(libs, budget, |lib| {
            let dest = &dest;
            let decompress = move || {
                let mut dest = dest.lock().expect("nobody panicked");
                assert!(lib.dctx(key.threads).decompress(chunk, &mut dest) > 0);
            };
            Ok(Box::new(move || in_thread(decompress)))
        })?;
        bench.record(record(DECOMPRESS, timing));
    }
    Ok(())
}

/// Calls `work` in a thread of its own, and waits for the end of that thread.
fn in_thread(work: impl Fn() + Copy + Send) {
    thread::scope(|scope| scope.spawn(work).join()).expect("the call succeeds as before");
}
