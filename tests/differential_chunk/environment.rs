//! The environment variables that steer chunks: each value has the same effects in both libraries.
//!
//! They are read at each call, so each case is a process of its own: this program again, with the variable set.
//!
//! Ours departs from the C library in two ways, which the cases leave out: a name in `BLOSC_COMPRESSOR` that no codec
//! has does not stay in the settings of the process, and `BLOSC_NOLOCK` does not narrow typesizes to eight bits.

use std::ffi::{CStr, c_char, c_int};
use std::process::Command;

use super::common::clib::{CParams, Clib, DParams, RawContext};
use super::common::{OURS, REFERENCE};

/// Texts for a variable that is a number.
const NUMBERS: [&str; 24] = [
    "",
    "0",
    "-1",
    "1",
    "2",
    "5",
    "9",
    "10",
    "12abc",
    "abc",
    " 7",
    "+3",
    "0x10",
    "3.7",
    "255",
    "256",
    "257",
    "300",
    "32768",
    "65537",
    "4294967297",
    "2147483648",
    "9223372036854775807",
    "-99999999999999999999",
];

/// The variables with the values to try.
fn cases() -> Vec<Vec<(&'static str, &'static str)>> {
    let words: [(&str, &[&str]); 9] = [
        ("BLOSC_SHUFFLE", &["", "NOSHUFFLE", "SHUFFLE", "BITSHUFFLE", "shuffle", "1", "SHUFFLEX"]),
        ("BLOSC_DELTA", &["", "0", "1", "2", "-1", "true", "01"]),
        (
            "BLOSC_COMPRESSOR",
            &["", "blosclz", "lz4", "lz4hc", "zlib", "zstd", "snappy", "LZ4", "ndlz", "openzl"],
        ),
        ("BLOSC_SPLITMODE", &["", "ALWAYS", "NEVER", "AUTO", "FORWARD_COMPAT", "always", "1"]),
        ("BLOSC_NOLOCK", &["", "0", "1"]),
        ("BLOSC_BLOSC1_COMPAT", &["", "0", "1"]),
        ("BLOSC_TRACE", &["", "1"]),
        ("BLOSC_INFO", &["", "1"]),
        ("BLOSC_WARN", &["1"]),
    ];
    let mut cases: Vec<Vec<_>> = words
        .iter()
        .flat_map(|&(name, values)| values.iter().map(move |&value| vec![(name, value)]))
        .collect();
    for name in ["BLOSC_CLEVEL", "BLOSC_TYPESIZE", "BLOSC_BLOCKSIZE", "BLOSC_NTHREADS"] {
        let wanted = |value: &&&str| match name {
            // No hundreds of threads.
            "BLOSC_NTHREADS" => !["255", "256", "257", "300"].contains(*value),
            // The C library takes them for negative ones, and crashes.
            "BLOSC_TYPESIZE" => !["2147483648", "9223372036854775807"].contains(*value),
            // Sizes of whole items: the C library records others as they are, and loses bytes.
            "BLOSC_BLOCKSIZE" => ["", "0", "-1", "abc", "0x10", "256", "32768"].contains(*value),
            _ => true,
        };
        cases.extend(NUMBERS.iter().filter(wanted).map(|&value| vec![(name, value)]));
    }
    cases.extend(["4096xyz", " 64", "+1000000000"].map(|value| vec![("BLOSC_BLOCKSIZE", value)]));
    // Together with those that make the calls without context take another way.
    for (more, value) in [("BLOSC_NOLOCK", "1"), ("BLOSC_BLOSC1_COMPAT", "1")] {
        for with in [
            ("BLOSC_CLEVEL", "9"),
            ("BLOSC_SHUFFLE", "BITSHUFFLE"),
            ("BLOSC_SHUFFLE", "NOSHUFFLE"),
            ("BLOSC_DELTA", "1"),
            ("BLOSC_TYPESIZE", "3"),
            ("BLOSC_COMPRESSOR", "lz4"),
            ("BLOSC_COMPRESSOR", "snappy"),
            ("BLOSC_COMPRESSOR", "ndlz"),
            ("BLOSC_BLOCKSIZE", "4096"),
            ("BLOSC_NTHREADS", "2"),
            ("BLOSC_NTHREADS", "32768"),
            ("BLOSC_SPLITMODE", "ALWAYS"),
        ] {
            cases.push(vec![(more, value), with]);
        }
    }
    cases
}

#[test]
fn each_variable_has_the_same_effects() {
    if REFERENCE.is_none() {
        return;
    }
    let program = std::env::current_exe().expect("a running test has a path");
    let mut failures = Vec::new();
    let cases = cases();
    for variables in &cases {
        let run = Command::new(&program)
            .args(["--exact", "environment::the_effects_are_the_same", "--nocapture"])
            .envs(variables.iter().copied())
            .env("BLOSC2_NO_PLUGINS", "1")
            .output()
            .expect("a test can start itself");
        let out = String::from_utf8_lossy(&run.stdout);
        if !(run.status.success() && out.contains("1 passed")) {
            failures.push(format!("{variables:?}:\n{out}{}", String::from_utf8_lossy(&run.stderr)));
        }
    }
    let shown = failures.len().min(10);
    assert!(
        failures.is_empty(),
        "{} of {} cases differ, the first of them:\n{}",
        failures.len(),
        cases.len(),
        failures[..shown].join("\n")
    );
}

/// Compares both libraries in the environment of this process.
#[test]
fn the_effects_are_the_same() {
    // The state of the process is this test's own only in a process of its own.
    let own = std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("BLOSC_"));
    let Some(theirs) = REFERENCE.as_ref().filter(|_| own) else { return };
    let (ours, theirs) = (effects(&OURS), effects(theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "ours on the left");
    }
    assert_eq!(ours.len(), theirs.len());
}

/// What the calls of `lib` return and do, line by line.
fn effects(lib: &Clib) -> Vec<String> {
    let data: Vec<u8> =
        (0..30_000_u32).flat_map(|i| (i * 3 + (i.wrapping_mul(2_654_435_761) >> 29)).to_le_bytes()).collect();
    let mut dest = vec![0; data.len() + 32];
    let mut seen = Vec::new();
    for read_first in [true, false] {
        if read_first {
            let code = lib.blosc2_decompress(&CHUNK, &mut dest);
            seen.push(format!("blosc2_decompress: {code} {}", state(lib)));
            // SAFETY: a whole chunk of 200 bytes and room for more.
            let code =
                unsafe { (lib.f.blosc1_decompress)(CHUNK.as_ptr().cast(), dest.as_mut_ptr().cast(), 200) };
            seen.push(format!("blosc1_decompress: {code} {}", state(lib)));
            // SAFETY: the same.
            let code =
                unsafe { (lib.f.blosc1_getitem)(CHUNK.as_ptr().cast(), 3, 4, dest.as_mut_ptr().cast()) };
            seen.push(format!("blosc1_getitem: {code}"));
        }
        let code = lib.blosc1_compress(5, 1, 4, &data, &mut dest);
        seen.push(format!("blosc1_compress: {} {}", outcome(code, &dest), state(lib)));
        let code = lib.blosc2_compress(1, 2, 8, &data, &mut dest);
        seen.push(format!("blosc2_compress: {}", outcome(code, &dest)));
        let code = lib.blosc1_compress(5, 1, 4, &data[..20], &mut dest);
        seen.push(format!("blosc1_compress of 20 bytes: {}", outcome(code, &dest)));
        let code = lib.blosc1_compress(5, 1, 1, &data[..1000], &mut dest);
        seen.push(format!("blosc1_compress of bytes: {}", outcome(code, &dest)));
    }
    let variants: [fn(&mut CParams); 4] = [
        |_| (),
        |params| (params.typesize, params.compcode, params.nthreads, params.filters[5]) = (4, 5, 2, 0),
        |params| (params.typesize, params.compcode, params.blocksize, params.filters[4]) = (4, 1, 8192, 4),
        |params| (params.typesize, params.clevel, params.filters[5]) = (1, 0, 2),
    ];
    for variant in variants {
        let mut params = lib.cparams();
        variant(&mut params);
        let zeros = lib.special(super::common::clib::Special::Zeros, &params, 4000, &mut dest);
        seen.push(format!("chunk_zeros: {}", outcome(zeros, &dest)));
        let Some(mut ctx) = lib.cctx(&params) else {
            seen.push("no context".to_owned());
            continue;
        };
        seen.push(cparams_of(lib, ctx.raw));
        for data in [&data[..], &data[..20]] {
            let code = ctx.compress(data, &mut dest);
            seen.push(format!("compress_ctx of {} bytes: {}", data.len(), outcome(code, &dest)));
        }
    }
    for nthreads in [1, 2] {
        let mut ctx = lib.dctx(nthreads);
        let code = ctx.decompress(&CHUNK, &mut dest);
        seen.push(format!("decompress_ctx: {code} with {} threads", nthreads_of(lib, ctx.raw)));
    }
    seen.push(state(lib));
    seen
}

/// The code of a compression and what it wrote, as far as both libraries write the same.
fn outcome(code: i32, chunk: &[u8]) -> String {
    if code <= 0 {
        return code.to_string();
    }
    let mut header = chunk[..32].to_vec();
    let (flags, extended) = (header[2], header[2] & 5 == 5);
    header.truncate(if extended { 32 } else { 16 });
    header[12..16].fill(0);
    if flags & 2 != 0 {
        // The block size of stored chunks is that of their blocks in ours, and as requested in theirs.
        header[8..12].fill(0);
    }
    let same_bytes = flags & 2 != 0 || [1, 4].contains(&(flags >> 5));
    format!("{} {header:02x?}", if same_bytes { code.to_string() } else { "ok".to_owned() })
}

/// The settings of the process.
fn state(lib: &Clib) -> String {
    // SAFETY: the type is that of the header.
    let nthreads: unsafe extern "C" fn() -> i16 = unsafe { lib.symbol("blosc2_get_nthreads") }.unwrap();
    // SAFETY: the type is that of the header.
    let compressor: unsafe extern "C" fn() -> *const c_char =
        unsafe { lib.symbol("blosc1_get_compressor") }.unwrap();
    // SAFETY: the type is that of the header.
    let blocksize: unsafe extern "C" fn() -> c_int = unsafe { lib.symbol("blosc1_get_blocksize") }.unwrap();
    // SAFETY: no preconditions.
    let (nthreads, name, blocksize) = unsafe { (nthreads(), compressor(), blocksize()) };
    let unknown = std::env::var("BLOSC_COMPRESSOR").is_ok_and(|name| ["", "snappy", "LZ4"].contains(&&*name));
    // SAFETY: not null, so a static string.
    let name = if unknown || name.is_null() { c"unknown" } else { unsafe { CStr::from_ptr(name) } };
    format!("{nthreads} threads, {name:?}, blocks of {blocksize}")
}

fn cparams_of(lib: &Clib, context: *mut RawContext) -> String {
    type Get = unsafe extern "C" fn(*mut RawContext, *mut CParams) -> c_int;
    // SAFETY: the type is that of the header.
    let get: Get = unsafe { lib.symbol("blosc2_ctx_get_cparams") }.unwrap();
    let mut params = lib.cparams();
    // SAFETY: a live context and a place for the answer.
    let code = unsafe { get(context, &mut params) };
    format!(
        "{code}: codec {} level {} typesize {} threads {} blocksize {} splitmode {} filters {:?}",
        params.compcode,
        params.clevel,
        params.typesize,
        params.nthreads,
        params.blocksize,
        params.splitmode,
        params.filters
    )
}

fn nthreads_of(lib: &Clib, context: *mut RawContext) -> i16 {
    type Get = unsafe extern "C" fn(*mut RawContext, *mut DParams) -> c_int;
    // SAFETY: the type is that of the header.
    let get: Get = unsafe { lib.symbol("blosc2_ctx_get_dparams") }.unwrap();
    // SAFETY: no preconditions.
    let mut params = unsafe { (lib.f.blosc2_get_blosc2_dparams_defaults)() };
    // SAFETY: a live context and a place for the answer.
    assert_eq!(unsafe { get(context, &mut params) }, 0);
    params.nthreads
}

/// The integers 0 to 49, compressed.
const CHUNK: [u8; 102] = {
    let mut chunk = [0; 102];
    let header = [5, 1, 5, 4, 200, 0, 0, 0, 200, 0, 0, 0, 102, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mut i = 0;
    while i < header.len() {
        chunk[i] = header[i];
        i += 1;
    }
    // One block at 36; its first stream is raw, the other three are runs of zeros.
    chunk[32] = 36;
    chunk[36] = 50;
    i = 0;
    while i < 50 {
        chunk[40 + i] = i as u8; // below 50
        i += 1;
    }
    chunk
};
