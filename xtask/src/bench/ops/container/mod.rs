//! Super-chunks: chunks appended, read, changed and removed, in memory and on disk.
//!
//! The names of the operations end in the place of the chunks: `list` (one buffer per chunk), `frame` (a contiguous
//! frame in memory), `file` (one in a file), `dir` (a sparse frame), `mmap` (a contiguous frame in a mapped file).
//!
//! Operations that change a super-chunk are timed on a fresh copy each time; making the copy does not count.

mod cell;
mod ops;

use super::Family;
use crate::bench::data::Kind;
use crate::bench::options::{CODECS, FILTERS, Key, Options};
use crate::bench::schunk::Place;
use crate::bench::{Bench, Libs};
use cell::Cell;

/// Number of places.
const PLACES: usize = Place::ALL.len();

/// One operation: the names for the places, and what measures it.
struct Op {
    names: [&'static str; PLACES],
    /// Whether codec and data matter, so that it is measured with all keys and not with the first one alone.
    on_data: bool,
    /// Whether it uses more than one thread if it may.
    threads: bool,
    measure: fn(&Cell<'_>, &mut Bench) -> Result<(), String>,
}

/// The names of an operation.
macro_rules! by_place {
    ($op:literal) => {
        [
            concat!($op, "_list"),
            concat!($op, "_frame"),
            concat!($op, "_file"),
            concat!($op, "_dir"),
            concat!($op, "_mmap"),
        ]
    };
}

static OPS: [Op; 18] = [
    Op { names: by_place!("append"), on_data: true, threads: true, measure: ops::append },
    Op { names: by_place!("append_late"), on_data: false, threads: false, measure: ops::append_late },
    Op { names: by_place!("read"), on_data: true, threads: true, measure: ops::read },
    Op { names: by_place!("slice_all"), on_data: true, threads: true, measure: ops::slice_all },
    Op { names: by_place!("slice_4k"), on_data: true, threads: false, measure: ops::slice_4k },
    Op { names: by_place!("sparse"), on_data: true, threads: true, measure: ops::sparse },
    Op { names: by_place!("set_slice"), on_data: true, threads: true, measure: ops::set_slice },
    Op { names: by_place!("update"), on_data: false, threads: false, measure: ops::update },
    Op { names: by_place!("insert"), on_data: false, threads: false, measure: ops::insert },
    Op { names: by_place!("delete"), on_data: false, threads: false, measure: ops::delete },
    Op { names: by_place!("get_chunk"), on_data: false, threads: false, measure: ops::get_chunk },
    Op { names: by_place!("lazy_item"), on_data: false, threads: false, measure: ops::lazy_item },
    Op { names: by_place!("copy"), on_data: false, threads: false, measure: ops::copy },
    Op { names: by_place!("to_buffer"), on_data: false, threads: false, measure: ops::to_buffer },
    Op { names: by_place!("to_file"), on_data: false, threads: false, measure: ops::to_file },
    Op { names: by_place!("open"), on_data: false, threads: false, measure: ops::open },
    Op { names: by_place!("vlmeta_write"), on_data: false, threads: false, measure: ops::vlmeta_write },
    Op { names: by_place!("vlmeta_get"), on_data: false, threads: false, measure: ops::vlmeta_get },
];

/// All names.
static NAMES: [&str; OPS.len() * PLACES] = {
    let mut names = [""; OPS.len() * PLACES];
    let mut i = 0;
    while i < names.len() {
        names[i] = OPS[i / PLACES].names[i % PLACES];
        i += 1;
    }
    names
};

/// See the module.
pub const FAMILY: Family = Family {
    name: "container",
    about: "super-chunks: 16 chunks of 1 MiB, or 1000 of 8 KiB, or 6000 of 1 KiB (append_late, but for _dir); _list and _frame in \
            memory, _file, _dir and _mmap on disk; with BloscLZ, as is the library's default, and with LZ4 and Zstandard where the \
            codec matters",
    ops: &NAMES,
    cells,
    measure,
};

/// What is measured: the library's defaults (BloscLZ, level 5, shuffle) first, then LZ4; in longer runs threads, other
/// data and Zstandard as well.
fn cells(options: &Options) -> Vec<Key> {
    let nbytes = if options.quick { 8 << 20 } else { 16 << 20 };
    let [blosclz, lz4, _, _, zstd] = CODECS;
    let defaults =
        Key { codec: blosclz, clevel: 5, filter: FILTERS[1], data: Kind::Smooth, threads: 1, nbytes };
    let mut keys = vec![defaults, Key { codec: lz4, ..defaults }];
    if !options.quick {
        keys.push(Key { threads: 2, ..defaults });
        keys.push(Key { data: Kind::Image, ..defaults });
        keys.push(Key { codec: zstd, ..defaults });
    }
    keys
}

/// Measures what `key` matters to; operations that neither codec nor data matter to come with the first key of the run.
fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let first = cells(&bench.options).into_iter().find(|key| bench.options.wants(key)) == Some(*key);
    for op in &OPS {
        let applies = if key.threads > 1 { op.threads } else { first || op.on_data };
        for (place, name) in Place::ALL.into_iter().zip(op.names) {
            if applies && bench.options.wants_op(name) {
                let cell = Cell { libs, key: *key, place, op: name };
                (op.measure)(&cell, bench).map_err(|why| format!("{name}: {why}"))?;
            }
        }
    }
    Ok(())
}
