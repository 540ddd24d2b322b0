//! `cargo xtask demo`: an ordinary C program, built against an installation with the flags of its `blosc2.pc`,
//! compresses a file with every codec and reads it back.

use std::path::{Path, PathBuf};

use crate::install::{self, Layout};
use crate::process::{self, command};
use crate::{build, paths};

/// The command; the argument is the file to compress.
pub fn run(args: &[String]) -> Result<(), String> {
    let file = match args {
        [] => None,
        [file] if !file.starts_with('-') => Some(PathBuf::from(file)),
        _ => return Err("usage: cargo xtask demo [FILE]".to_string()),
    };
    if let Some(file) = file.as_ref().filter(|file| !file.is_file()) {
        return Err(format!("{} is not a file", file.display()));
    }
    let layout = Layout::below(paths::target().join("dist"));
    println!("building and installing into {}", layout.prefix.display());
    let built = install::install(&layout, &build::Options::default())?;
    // The library itself is a real file that is always there.
    let file = file.unwrap_or(built.shared);
    let program = layout.prefix.join("bin/demo");
    compile(&layout, &paths::root().join("capi-tests/demo.c"), &program)?;
    process::run(command(&program, [&file]).env(library_path_variable(), &layout.libdir))
}

/// Compiles a program as a user would: with the flags from `blosc2.pc`.
fn compile(layout: &Layout, source: &Path, program: &Path) -> Result<(), String> {
    let flags = pkg_config_flags(layout)?;
    if let Some(parent) = program.parent() {
        paths::make_dir(parent)?;
    }
    let mut cc = build::cc();
    cc.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(program).arg(source).args(flags);
    process::run(&mut cc)
}

/// What `pkg-config --cflags --libs blosc2` says, or what it would say where there is no pkg-config.
fn pkg_config_flags(layout: &Layout) -> Result<Vec<String>, String> {
    let pkg_config = || process::tool("PKG_CONFIG", "pkg-config");
    if process::exists(pkg_config()) {
        let mut query = pkg_config();
        query.args(["--cflags", "--libs", "blosc2"]);
        return process::words(query.env("PKG_CONFIG_PATH", layout.lib("pkgconfig")));
    }
    let (include, lib) = (&layout.includedir, &layout.libdir);
    Ok(vec![format!("-I{}", include.display()), format!("-L{}", lib.display()), "-lblosc2".to_string()])
}

/// The environment variable that tells the loader where to look for libraries.
pub fn library_path_variable() -> &'static str {
    if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" }
}
