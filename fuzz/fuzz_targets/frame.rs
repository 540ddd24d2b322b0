//! Any bytes as a frame, in memory and in a file: opened, and everything in it read.

#![no_main]

use libblosc2_rs_fuzz::Schunk;
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

/// One file per process, since several may run at a time.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("blosc2-fuzz-{}.b2frame", std::process::id())));

fuzz_target!(|data: &[u8]| {
    let in_memory = Schunk::from_buffer(data);
    if let Some(schunk) = &in_memory {
        schunk.read_everything();
    }
    std::fs::write(&*FILE, data).expect("the temporary directory takes files");
    if let Some(schunk) = Schunk::open(&FILE) {
        schunk.read_everything();
    }
    let _ = std::fs::remove_file(&*FILE);
});
