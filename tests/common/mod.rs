//! What the integration tests share: the two libraries, random numbers.

#![allow(dead_code)] // each test uses a part

pub mod b2nd_api;
pub mod check;
pub mod clib;
pub mod data;
pub mod malloc;
pub mod schunk_api;
#[cfg(unix)]
pub mod scratch;
pub mod temp;
#[cfg(unix)]
pub mod theirs;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clib::Clib;

/// Our library: the shared library that cargo built along with the test, or the file named by `BLOSC2_UNDER_TEST`.
pub static OURS: LazyLock<Clib> = LazyLock::new(|| {
    let path = std::env::var_os("BLOSC2_UNDER_TEST").map_or_else(built_library, PathBuf::from);
    Clib::open(&path).unwrap_or_else(|why| panic!("our library does not load: {why}"))
});

/// The C library: named by `BLOSC2_REFERENCE` (empty: none), or in `target/reference`; `None` with a message if there
/// is none.
pub static REFERENCE: LazyLock<Option<Clib>> = LazyLock::new(|| {
    let fixed = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/reference/libblosc2.so");
    let path = match std::env::var_os("BLOSC2_REFERENCE") {
        Some(path) if !path.is_empty() => PathBuf::from(path),
        None if fixed.exists() => fixed,
        _ => {
            skipped(
                "comparisons with the C library: there is none. tests/common/get_reference.sh fetches it into \
                 target/reference; or name it in BLOSC2_REFERENCE.",
            );
            return None;
        }
    };
    Some(Clib::open(&path).unwrap_or_else(|why| panic!("the C library does not load: {why}")))
});

/// Tells what is not tested here, and why, also where the output of tests that pass is not shown.
pub fn skipped(what_and_why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what_and_why}"); // nobody else to tell
}

/// The cdylib of this build: cargo puts it into `deps/`, beside the test program.
fn built_library() -> PathBuf {
    let program = std::env::current_exe().expect("a running test has a path");
    let deps = program.parent().expect("test programs lie in a directory");
    deps.join(format!("{}blosc2{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

/// SplitMix64: small, fast, and the same everywhere.
pub struct Rng(pub u64);

impl Rng {
    /// The next 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` (not 0).
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("below a usize")
    }

    /// A number in `low..=high`.
    pub fn range(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// `n` random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(n + 8);
        while out.len() < n {
            out.extend(self.next().to_le_bytes());
        }
        out.truncate(n);
        out
    }
}

/// A length as the C API takes it.
pub fn int(n: usize) -> i32 {
    i32::try_from(n).expect("test buffers are small")
}
