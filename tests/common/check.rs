//! Random cases, and comparisons that say what differs.
//!
//! `BLOSC2_DIFF_SEED` starts from another seed than the usual one, `BLOSC2_DIFF_CASES` multiplies the number of cases.
//! A failure prints the seed of its case; with `BLOSC2_DIFF_TRACE` each seed is printed before it is used.

use super::clib::Clib;
use super::{REFERENCE, Rng};

/// The seed to start from.
fn base_seed() -> u64 {
    number("BLOSC2_DIFF_SEED").unwrap_or(20_260_101)
}

/// An environment variable as a number.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Runs `check` with `cases` seeds, or more if the environment says so, and reports what failed, with its seeds.
/// Does nothing without the C library.
pub fn for_seeds(cases: u64, check: impl Fn(&'static Clib, &mut Rng) -> Result<(), String>) {
    let Some(theirs) = &*REFERENCE else { return };
    let first = base_seed();
    let cases = cases * number("BLOSC2_DIFF_CASES").unwrap_or(1);
    let mut failures = Vec::new();
    let trace = std::env::var_os("BLOSC2_DIFF_TRACE").is_some();
    for seed in first..first + cases {
        if trace {
            eprintln!("seed {seed}"); // the last one before a crash
        }
        if let Err(why) = check(theirs, &mut Rng(seed)) {
            failures.push(format!("BLOSC2_DIFF_SEED={seed}: {why}"));
        }
    }
    let shown = failures.len().min(20);
    let list = failures[..shown].join("\n");
    assert!(failures.is_empty(), "{} of {cases} cases fail, the first of them:\n{list}", failures.len());
}

/// Fails with `what` unless both are equal.
pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, expected: T) -> Result<(), String> {
    if ours == expected { Ok(()) } else { Err(format!("{what}: {ours:?} instead of {expected:?}")) }
}

/// Fails with `what` unless the bytes are equal; says where they are not.
pub fn same(what: &str, got: &[u8], expected: &[u8]) -> Result<(), String> {
    match got.iter().zip(expected).position(|(a, b)| a != b) {
        None if got.len() == expected.len() => Ok(()),
        None => Err(format!("{what}: {} bytes instead of {}", got.len(), expected.len())),
        Some(at) => Err(format!(
            "{what}: byte {at} is {:#04x} instead of {:#04x} ({} bytes, {} expected)",
            got[at],
            expected[at],
            got.len(),
            expected.len()
        )),
    }
}
