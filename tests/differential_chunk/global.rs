//! The global functions, also with 16-byte headers (`BLOSC_BLOSC1_COMPAT`).

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::common::clib::Clib;
use super::common::data::make_data;
use super::common::{OURS, Rng, int};
use super::{equal, for_seeds, same};

/// The global state belongs to one test at a time.
static GLOBAL: Mutex<()> = Mutex::new(());

const COMPRESSORS: [&str; 5] = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"];

/// Set for the child process that runs [`global_calls_agree`] with short headers.
const COMPAT: &str = "BLOSC_BLOSC1_COMPAT";

#[test]
fn global_calls_agree() {
    let _alone = GLOBAL.lock().unwrap_or_else(PoisonError::into_inner);
    for_seeds(250, |theirs, rng| {
        let typesize = rng.pick(&[1, 2, 3, 4, 7, 8, 16, 24, 80, 255, 256]);
        let nbytes = rng.pick(&[0, 7, 40, 1000, 30_000, 300_000]) + rng.below(40) * typesize;
        let kind = rng.pick(&["zeros", "ramp", "noisy", "text", "random", "patches"]);
        let data = make_data(rng, kind, typesize, nbytes);
        let codec = rng.below(COMPRESSORS.len());
        let clevel = int(rng.below(10));
        let doshuffle = rng.pick(&[0, 1, 2, 1, 2, 3]);
        let what = format!(
            "{} level {clevel} doshuffle {doshuffle} typesize {typesize} {kind} {} bytes",
            COMPRESSORS[codec],
            data.len()
        );
        check(theirs, rng, COMPRESSORS[codec], (clevel, doshuffle, typesize), &data)
            .map_err(|why| format!("{what}: {why}"))
    });
}

fn check(
    theirs: &Clib,
    rng: &mut Rng,
    compressor: &str,
    (clevel, doshuffle, typesize): (i32, i32, usize),
    data: &[u8],
) -> Result<(), String> {
    let room = data.len() + rng.pick(&[32, 1000 + data.len() / 8]);
    let old_api = rng.one_in(2);
    let make = |lib: &Clib| -> Result<(i32, Vec<u8>), String> {
        let code = lib.set_compressor(compressor);
        if code < 0 {
            return Err(format!("set_compressor: {code}"));
        }
        let mut dest = vec![0; room];
        let code = if old_api {
            lib.blosc1_compress(clevel, doshuffle, typesize, data, &mut dest)
        } else {
            lib.blosc2_compress(clevel, doshuffle, int(typesize), data, &mut dest)
        };
        dest.truncate(usize::try_from(code).unwrap_or(0));
        Ok((code, dest))
    };
    let (code, ours) = make(&OURS)?;
    let (their_code, their_chunk) = make(theirs)?;
    if code <= 0 || their_code <= 0 {
        return equal("code", code, their_code);
    }
    let short_header = std::env::var_os(COMPAT).is_some();
    equal("extended header", ours[2] & 5 == 5, !short_header)?;
    let roomy = room > data.len() + 32;
    let whole = data.len() >= typesize;
    if roomy && whole && ["lz4", "lz4hc", "zstd"].contains(&compressor) {
        same("our chunk", &ours, &their_chunk)?;
    }
    for (what, lib, chunk) in [
        ("ours reads ours", &*OURS, &ours),
        ("theirs reads ours", theirs, &ours),
        ("ours reads theirs", &*OURS, &their_chunk),
    ] {
        let mut dest = vec![0x5A; data.len()];
        equal(&format!("{what}: code"), lib.blosc2_decompress(chunk, &mut dest), int(data.len()))?;
        same(what, &dest, data)?;
    }
    Ok(())
}

#[test]
fn global_calls_agree_with_short_headers() {
    // The variable is read at each call: another process, so that no other test sees it.
    let program = std::env::current_exe().expect("a running test has a path");
    let run = Command::new(program)
        .args(["--exact", "global::global_calls_agree", "--nocapture"])
        .env(COMPAT, "1")
        .output()
        .expect("a test can start itself");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.contains("1 passed"), "with {COMPAT}:\n{out}\n{err}");
}

#[test]
fn wrong_arguments_give_the_same_codes() {
    let _alone = GLOBAL.lock().unwrap_or_else(PoisonError::into_inner);
    for_seeds(1, |theirs, _| {
        let data: Vec<u8> = (0..1000_u32).flat_map(u32::to_le_bytes).collect();
        let codes = |lib: &Clib| {
            let mut dest = vec![0; data.len() + 32];
            let good = lib.blosc1_compress(5, 1, 4, &data, &mut dest);
            let chunk = dest[..usize::try_from(good).expect("compresses")].to_vec();
            vec![
                lib.blosc1_compress(10, 1, 4, &data, &mut dest),
                lib.blosc1_compress(-1, 1, 4, &data, &mut dest),
                lib.blosc1_compress(5, 1, 4, &data, &mut dest[..31]),
                lib.blosc1_compress(5, 1, 4, &data, &mut dest[..32]),
                lib.blosc1_compress(0, 1, 4, &data, &mut dest[..data.len()]),
                lib.blosc1_compress(0, 1, 4, &data, &mut dest),
                lib.blosc1_compress(1, 0, 1, &data[..1], &mut dest),
                lib.blosc2_decompress(&chunk, &mut dest[..data.len() - 1]),
                lib.blosc2_decompress(&chunk[..10], &mut dest),
                lib.blosc2_decompress(&chunk[..chunk.len() - 1], &mut dest),
                i32::from(lib.set_nthreads(0)),
                i32::from(lib.set_nthreads(-3)),
                i32::from(lib.set_nthreads(1)),
            ]
        };
        equal("codes", codes(&OURS), codes(theirs))
    });
}
