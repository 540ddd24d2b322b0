//! What a second thread gains on buffers of 1 MiB: each library against itself with one thread.

use std::cell::RefCell;

use super::{Family, check_reads, compressor, decompressor, make_chunk};
use crate::bench::clib::Clib;
use crate::bench::data::Kind;
use crate::bench::measure::interleaved;
use crate::bench::options::{CODECS, FILTERS, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

const COMPRESS: &str = "2t_compress";
const DECOMPRESS: &str = "2t_decompress";
const THEIR_COMPRESS: &str = "their_2t_comp";
const THEIR_DECOMPRESS: &str = "their_2t_decomp";

/// See the module.
pub const FAMILY: Family = Family {
    name: "scaling",
    about: "two threads against one thread of the same library, 1 MiB buffers",
    ops: &[COMPRESS, DECOMPRESS, THEIR_COMPRESS, THEIR_DECOMPRESS],
    cells,
    measure,
};

fn cells(options: &Options) -> Vec<Key> {
    let clevels: &[u8] = if options.quick { &[5] } else { &[1, 5] };
    let mut keys = Vec::new();
    for codec in CODECS {
        for &clevel in clevels {
            for filter in &FILTERS[1..] {
                for data in options.kinds_or_file(&[Kind::Smooth, Kind::Image]) {
                    keys.push(Key { codec, clevel, filter: *filter, data, threads: 2, nbytes: 1 << 20 });
                }
            }
        }
    }
    keys
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    scale(&libs.ours, bench, key, [COMPRESS, DECOMPRESS])?;
    match &libs.theirs {
        Some(lib) => scale(lib, bench, key, [THEIR_COMPRESS, THEIR_DECOMPRESS]),
        None => Ok(()),
    }
}

/// One library with two threads and with one.
fn scale(lib: &Clib, bench: &mut Bench, key: &Key, ops: [&'static str; 2]) -> Result<(), String> {
    let data = bench.data(key.data, key.nbytes);
    let serial = Key { threads: 1, ..*key };
    let chunk = make_chunk(lib, key, &data)?;
    check_reads(lib, &chunk, &data)?;
    let mut back = vec![0xA5; data.len()];
    if lib.dctx(key.threads).decompress(&chunk, &mut back) < 0 || back != data[..] {
        return Err("two threads decompress to other data".into());
    }
    let versus = Versus::OneThread;
    let budget = bench.options.budget(60);
    let dest = RefCell::new(vec![0; data.len() + 32]);
    if bench.options.wants_op(ops[0]) {
        let timing = interleaved(budget, &|| compressor(lib, key, &data, &dest), &|| {
            compressor(lib, &serial, &data, &dest)
        })?;
        bench.record(Record { op: ops[0], key: *key, bytes: data.len(), timing, versus, cbytes: None });
    }
    if bench.options.wants_op(ops[1]) {
        let timing = interleaved(budget, &|| Ok(decompressor(lib, key, &chunk, &dest)), &|| {
            Ok(decompressor(lib, &serial, &chunk, &dest))
        })?;
        bench.record(Record { op: ops[1], key: *key, bytes: data.len(), timing, versus, cbytes: None });
    }
    Ok(())
}
