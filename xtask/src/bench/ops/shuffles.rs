//! `blosc2_shuffle`, `blosc2_bitshuffle` and what undoes them, as programs call them for their own ends: no codec, and
//! both buffers wherever an allocator puts them.

use std::cell::RefCell;
use std::ffi::c_void;

use super::{Family, both, time};
use crate::bench::clib::Clib;
use crate::bench::data::Kind;
use crate::bench::measure::Subject;
use crate::bench::options::{Codec, FILTERS, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

const FORWARD: &str = "api_shuffle";
const BACKWARD: &str = "api_unshuffle";
const NO_CODEC: Codec = Codec { name: "-", code: 0 };

/// See the module.
pub const FAMILY: Family = Family {
    name: "shuffles",
    about: "1 to 256 KiB: blosc2_shuffle and blosc2_bitshuffle, and what undoes them",
    ops: &[FORWARD, BACKWARD],
    cells,
    measure,
};

fn cells(_: &Options) -> Vec<Key> {
    let mut keys = Vec::new();
    for &filter in &FILTERS[1..] {
        for data in [Kind::Image, Kind::Ramps, Kind::Smooth, Kind::Records] {
            for nbytes in [1 << 10, 16 << 10, 64 << 10, 256 << 10] {
                keys.push(Key { codec: NO_CODEC, clevel: 0, filter, data, threads: 1, nbytes });
            }
        }
    }
    keys
}

/// The type of all four: typesize, bytes, source and destination; returns the bytes, or a negative code.
type Transposition = unsafe extern "C" fn(i32, i32, *const c_void, *mut c_void) -> i32;

/// The function `name` of `lib`.
fn function(lib: &Clib, name: &str) -> Result<Transposition, String> {
    // SAFETY: the type is the one that `blosc2.h` declares; it is called while `lib` is loaded.
    unsafe { lib.symbol(name) }
}

/// What `name` of `lib` makes of `src`.
fn made(lib: &Clib, name: &str, typesize: i32, src: &[u8]) -> Result<Vec<u8>, String> {
    let mut dest = vec![0xA5; src.len()];
    let function = function(lib, name)?;
    let len = i32::try_from(src.len()).expect("small");
    // SAFETY: both buffers are as long as said.
    match unsafe { function(typesize, len, src.as_ptr().cast(), dest.as_mut_ptr().cast()) } {
        code if code < 0 => Err(format!("{name} of {}: {code}", lib.path.display())),
        _ => Ok(dest),
    }
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let typesize = key.data.typesize();
    let whole = 8 * usize::try_from(typesize).expect("positive");
    let data = bench.data(key.data, key.nbytes);
    let data = &data[..data.len() / whole * whole];
    let is_bits = key.filter == FILTERS[2];
    let names = if is_bits {
        ["blosc2_bitshuffle", "blosc2_bitunshuffle"]
    } else {
        ["blosc2_shuffle", "blosc2_unshuffle"]
    };
    let shuffled = made(&libs.ours, names[0], typesize, data)?;
    for lib in both(libs) {
        if made(lib, names[0], typesize, data)? != shuffled
            || made(lib, names[1], typesize, &shuffled)? != data
        {
            return Err(format!("{} of {} makes other bytes", names[0], lib.path.display()));
        }
    }
    let dest = RefCell::new(vec![0; data.len()]);
    let budget = bench.options.budget(40);
    for ((op, name), src) in [FORWARD, BACKWARD].into_iter().zip(names).zip([data, &shuffled]) {
        if !bench.options.wants_op(op) {
            continue;
        }
        let timing = time(libs, budget, |lib| {
            let (function, dest) = (function(lib, name)?, &dest);
            let len = i32::try_from(src.len()).expect("small");
            let subject: Subject<'_> = Box::new(move || {
                let mut dest = dest.borrow_mut();
                // SAFETY: both buffers are as long as said.
                let code = unsafe { function(typesize, len, src.as_ptr().cast(), dest.as_mut_ptr().cast()) };
                assert!(code >= 0);
            });
            Ok(subject)
        })?;
        bench.record(Record {
            op,
            key: *key,
            bytes: src.len(),
            timing,
            versus: Versus::Theirs,
            cbytes: None,
        });
    }
    Ok(())
}
