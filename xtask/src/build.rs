//! Builds the libraries, and makes the static one fit to be linked with other people's code.

use std::path::{Path, PathBuf};

use crate::process::{self, command};
use crate::{paths, symbols};

/// What a build made.
pub struct Built {
    /// The shared library.
    pub shared: PathBuf,
    /// The static library, as rustc wrote it.
    pub archive: PathBuf,
    /// The system libraries that a program linked with the static library needs, as linker flags.
    pub native_libs: String,
}

/// Builds both libraries, optimised unless `debug`.
pub fn libraries(debug: bool) -> Result<Built, String> {
    let mut cargo = process::cargo();
    cargo.args(["rustc", "--package", "libblosc2-rs", "--lib"]);
    if !debug {
        cargo.arg("--release");
    }
    // Cargo repeats the compiler's note when nothing had to be built.
    cargo.args(["--", "--print", "native-static-libs"]);
    let out = cargo.output().map_err(|e| format!("cargo: {e}"))?;
    let messages = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        return Err(format!("the build failed:\n{messages}"));
    }
    let native_libs = messages
        .lines()
        .find_map(|line| line.split_once("native-static-libs:"))
        .map(|(_, libs)| libs.trim().to_string())
        .ok_or("rustc did not name the native libraries")?;
    let dir = paths::target().join(if debug { "debug" } else { "release" });
    let shared = dir.join(format!("{}blosc2{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    Ok(Built { shared, archive: dir.join("libblosc2.a"), native_libs: without_repetition(&native_libs) })
}

/// The flags, each once, without those that the C compiler adds by itself.
fn without_repetition(flags: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for flag in flags.split_whitespace() {
        if flag != "-lc" && !kept.contains(&flag) {
            kept.push(flag);
        }
    }
    kept.join(" ")
}

/// Writes a static library whose only global symbols are those of the API.
///
/// rustc's archive holds the API, the codecs in C (LZ4, Zstandard) and Rust's runtime, all with global symbols that
/// collide with those of a program that brings its own. One partial link resolves the references among them; after
/// it, every symbol that is not in the list becomes local. The API itself gets hidden visibility, as in the C
/// library's archive: a shared object that contains it does not export it again.
pub fn localised_archive(archive: &Path, to: &Path, debug: bool) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return paths::copy(archive, to);
    }
    let work = paths::target().join("xtask-static");
    paths::make_dir(&work)?;
    let (stub_c, stub_o) = (work.join("api.c"), work.join("api.o"));
    let (linked, object, keep) = (work.join("linked.o"), work.join("blosc2.o"), work.join("keep.txt"));
    let api = symbols::listed()?;
    paths::write(&stub_c, stub(&api))?;
    process::run(
        command(cc(), ["-O2", "-fPIC", "-ffunction-sections", "-c"]).arg(&stub_c).arg("-o").arg(&stub_o),
    )?;
    // Section groups would keep their names, and be merged with those of other Rust libraries: dissolve them.
    let mut ld = command(process::tool("LD", "ld"), ["-r", "--force-group-allocation", "--gc-sections"]);
    let kept = || api.iter().map(String::as_str).chain(REGISTER);
    ld.args(kept().map(|name| format!("--undefined={name}")));
    process::run(ld.arg("-o").arg(&linked).arg(&stub_o).arg(archive))?;
    paths::write(&keep, kept().map(|name| format!("{name}\n")).collect::<String>())?;
    // The standard library comes with bitcode for link-time optimisation, in which no C linker is interested.
    let mut objcopy = command(process::tool("OBJCOPY", "objcopy"), ["-R", ".llvmbc", "-R", ".llvmcmd"]);
    objcopy.arg("--keep-global-symbols").arg(&keep);
    if !debug {
        objcopy.args(["--strip-debug", "--strip-unneeded"]);
    }
    process::run(objcopy.arg(&linked).arg(&object))?;
    if let Some(parent) = to.parent() {
        paths::make_dir(parent)?;
    }
    let _ = std::fs::remove_file(to);
    process::run(command(process::tool("AR", "ar"), ["crsD"]).arg(to).arg(&object))
}

/// Declared in the registry headers and defined in the C library's archive only.
const REGISTER: [&str; 3] = ["register_codecs", "register_filters", "register_tuners"];

/// C code that refers to each function of the API, so that the partial link takes it from the archive, and hides it.
fn stub(api: &[String]) -> String {
    let mut text = String::from("/* Written by xtask: the roots of the partial link. */\n");
    for name in api {
        text += &format!("__asm__(\".globl {name}\\n.hidden {name}\");\n");
    }
    for name in REGISTER {
        text +=
            &format!("__attribute__((visibility(\"hidden\"))) void {name}(void);\nvoid {name}(void) {{}}\n");
    }
    text
}

/// The C compiler.
pub fn cc() -> String {
    process::tool("CC", "cc")
}

/// The C++ compiler.
pub fn cxx() -> String {
    process::tool("CXX", "c++")
}
