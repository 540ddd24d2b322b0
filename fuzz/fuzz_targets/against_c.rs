//! This library and the C library read each other's chunks; those of LZ4, LZ4HC and Zstandard are the same bytes.
//!
//! The environment variable `BLOSC2_REFERENCE` is the path of the C library's `libblosc2.so`. Left out is what it gets
//! wrong: dictionaries, delta, more than two filters, and lengths of blocks and data that are no multiple of the
//! typesize.

#![no_main]

use blosc2::format::consts::{DELTA_SLOT, codec, filter};
use libblosc2_rs_fuzz::{Library, OURS, params};
use libfuzzer_sys::fuzz_target;
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use std::mem::ManuallyDrop;
use std::sync::LazyLock;

static REFERENCE: LazyLock<Library> = LazyLock::new(|| {
    let path = std::env::var_os("BLOSC2_REFERENCE").expect("BLOSC2_REFERENCE is the path of the C library");
    // Its calls of its own functions stay inside: a program does not export ours, which have the same names.
    // SAFETY: the C library's initialisers can run in any process.
    let library = unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = ManuallyDrop::new(library.expect("the C library can be loaded"));
    // SAFETY: the function takes nothing and returns nothing.
    unsafe { library.get::<unsafe extern "C" fn()>(b"blosc2_init").expect("exported")() };
    // SAFETY: for each: the type is that of the C header.
    unsafe {
        Library {
            create_cctx: *library.get(b"blosc2_create_cctx").expect("exported"),
            create_dctx: *library.get(b"blosc2_create_dctx").expect("exported"),
            free_ctx: *library.get(b"blosc2_free_ctx").expect("exported"),
            compress: *library.get(b"blosc2_compress_ctx").expect("exported"),
            decompress: *library.get(b"blosc2_decompress_ctx").expect("exported"),
        }
    }
});

fuzz_target!(|data: &[u8]| {
    let Some((mut cparams, rest)) = params(data) else { return };
    cparams.use_dict = 0;
    cparams.nthreads = 1;
    cparams.blocksize -= cparams.blocksize % cparams.typesize;
    cparams.filters[..DELTA_SLOT].fill(filter::NONE);
    for id in &mut cparams.filters {
        if *id == filter::DELTA {
            *id = filter::SHUFFLE;
        }
    }
    let mut src = rest.repeat(1 + usize::from(data[0] >> 4) * 16);
    src.truncate(src.len() - src.len() % usize::try_from(cparams.typesize).expect("positive"));
    let (ours, theirs) = (OURS.compress(cparams, &src), REFERENCE.compress(cparams, &src));
    if matches!(cparams.compcode, codec::LZ4 | codec::LZ4HC | codec::ZSTD) {
        assert_eq!(ours, theirs);
    } else {
        assert_eq!(ours.0 < 0, theirs.0 < 0, "{} and {}", ours.0, theirs.0);
    }
    for (chunk, reader) in [(&ours.1, &*REFERENCE), (&theirs.1, &OURS)] {
        if !chunk.is_empty() {
            let mut back = vec![0; src.len()];
            assert_eq!(usize::try_from(reader.decompress(chunk, 1, &mut back)), Ok(src.len()));
            assert_eq!(back, src);
        }
    }
});
