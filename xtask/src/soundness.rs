//! `cargo xtask miri` and `cargo xtask races`: tools that see what a test's result does not show. Both need a nightly
//! compiler with its sources.

use std::path::{Path, PathBuf};

use crate::process::{self, command};
use crate::test::{programs, run_apart};
use crate::{build, paths};

/// What `miri` runs by default: the tests of modules with unsafe code, as far as Miri knows the system calls and no
/// codec in C is used. It takes minutes for each line; interpreted code is some thousand times as slow.
const MIRI: &[&str] = &[
    "capi::",
    "copy::",
    "codecs::agree::",
    "codecs::lz4::encode::",
    "codecs::lz4hc::encode::",
    "codecs::matches::",
    "format::",
    "pool::",
    "pages::",
    "shelf::",
    "io::memory::",
    "io::spare::",
    "io::transfer::",
    "filters::shuffle::",
    "frame::lazy::",
    "schunk::pointers::",
    "ndarray::copy_buffer::",
    "chunk::ordered::",
    "chunk::partial_read::",
    "chunk::scratch::",
    "chunk::streams::",
];

/// C tests that are beyond ThreadSanitizer: children of a fork start threads, stacks are too small for it, or `malloc`
/// is one of their own, which is called before ThreadSanitizer is ready.
const UNWATCHED: [&str; 4] = ["test_fork", "test_memory", "test_process", "test_stacks"];

/// Where `races` runs.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Runs Rust tests in Miri: those that are named, or those that it can run.
pub fn miri(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg.starts_with('-')) {
        return Err("usage: cargo xtask miri [TEST...]".to_string());
    }
    let own = std::env::var("MIRIFLAGS").unwrap_or_default();
    let mut cargo = nightly();
    cargo
        .args(["miri", "test", "--lib", "--"])
        // Files are read and written, and the environment is asked.
        .env("MIRIFLAGS", format!("-Zmiri-disable-isolation {own}"))
        // No processes are started to look for plugins; random tests try a few cases.
        .env("BLOSC2_NO_PLUGINS", "1")
        .env("PROPTEST_CASES", std::env::var("PROPTEST_CASES").unwrap_or("2".to_string()));
    if args.is_empty() {
        cargo.args(MIRI);
    } else {
        cargo.args(args);
    }
    process::run(&mut cargo)
}

/// Runs the C tests, or those with TEXT in their names, on a library that ThreadSanitizer watches.
pub fn races(args: &[String]) -> Result<(), String> {
    let text = match args {
        [] => "",
        [text] if !text.starts_with('-') => text,
        _ => return Err("usage: cargo xtask races [TEXT]".to_string()),
    };
    // Apart from other builds for this platform.
    let target = paths::target().join("races");
    let mut cargo = nightly();
    cargo
        .args(["build", "--lib", "-Zbuild-std", "--target", PLATFORM])
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .env("CFLAGS", "-fsanitize=thread -g");
    process::run(&mut cargo)?;
    let library = target.join(PLATFORM).join("debug/libblosc2.a");
    let mut rustc = command("rustc", ["+nightly", "--print", "target-libdir", "--target", PLATFORM]);
    let runtime = PathBuf::from(process::output(&mut rustc)?.trim_end()).join("librustc-nightly_rt.tsan.a");
    let mut failed = Vec::new();
    for source in programs()? {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("test_") && !UNWATCHED.contains(&name.as_str()) && name.contains(text) {
            println!("{name}");
            if let Err(why) = watched(&source, &target.join(&name), &library, &runtime) {
                eprintln!("{why}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Compiles a C test, links it with the runtime of Rust's ThreadSanitizer in place of the C compiler's, and runs it.
fn watched(source: &Path, program: &Path, library: &Path, runtime: &Path) -> Result<(), String> {
    let object = program.with_extension("o");
    let mut compile = build::cc();
    compile.args(["-std=gnu99", "-g", "-O1", "-fsanitize=thread", "-c", "-I"]);
    process::quiet(compile.arg(paths::root().join("include")).arg("-o").arg(&object).arg(source))?;
    let mut link = build::cc();
    link.arg("-o").arg(program).arg(&object).arg(library);
    link.arg("-Wl,--whole-archive").arg(runtime).arg("-Wl,--no-whole-archive");
    process::quiet(link.args(["-rdynamic", "-pthread", "-ldl", "-lm", "-lrt"]))?;
    let suppressions = paths::root().join("capi-tests/races.supp");
    // A test runs out of memory on purpose.
    let options =
        format!("history_size=4 allocator_may_return_null=1 suppressions='{}'", suppressions.display());
    run_apart(command(program, [source]).env("TSAN_OPTIONS", options), program)
}

/// Cargo of the nightly toolchain.
fn nightly() -> std::process::Command {
    let mut cargo = command("cargo", ["+nightly"]);
    // Set by the cargo that runs us, for its own toolchain.
    cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC").current_dir(paths::root());
    cargo
}
