//! Builds the libraries, and makes the static one fit to be linked with other people's code.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::{paths, symbols};

/// How to build.
#[derive(Clone, Default)]
pub struct Options {
    /// Without optimisation.
    pub debug: bool,
    /// Leave debug information in the libraries, for a packager's tools to split off.
    pub no_strip: bool,
    /// Cargo features beside the default ones.
    pub features: Vec<String>,
    /// The platform to build for, as Rust names it, unless it is this one. The tools named by `CC`, `CXX`,
    /// `LD`, `AR`, `NM`, `OBJCOPY`, and `STRIP` must be those for it.
    pub target: Option<String>,
}

impl Options {
    /// The platform to build for, unless it is this one and Cargo is not told otherwise.
    pub fn triple(&self) -> Option<String> {
        let told = || std::env::var("CARGO_BUILD_TARGET").ok().filter(|triple| !triple.is_empty());
        self.target.clone().or_else(told).or_else(configured_target)
    }

    /// Whether the installed shared library goes through `strip`.
    pub fn strips(&self) -> bool {
        !self.debug && !self.no_strip && cfg!(target_os = "linux")
    }

    /// Whether a feature is asked for.
    fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|f| f == feature)
    }
}

/// The platform that a configuration file of Cargo names: what Cargo builds, our program too, lies in a directory of
/// that name then.
fn configured_target() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let dir = program.ancestors().nth(2).filter(|dir| *dir != paths::target())?;
    let name = dir.file_name()?.to_str().filter(|name| name.contains('-'))?;
    // Or in a directory for all that Cargo builds, which such a file can name as well.
    let mut rustc = process::tool("RUSTC", "rustc");
    process::quiet(rustc.args(["--print", "cfg", "--target", name])).ok()?;
    Some(name.to_string())
}

/// What a build made.
pub struct Built {
    /// The shared library.
    pub shared: PathBuf,
    /// The static library, as rustc wrote it.
    pub archive: PathBuf,
    /// The system libraries that a program linked with the static library needs, as linker flags.
    pub native_libs: String,
    /// The codecs that were taken from the system, and are needed as well.
    pub system: Vec<SystemCodec>,
    /// What starts programs of the platform built for, if it is another: what Cargo is told, too.
    pub runner: Option<String>,
    /// Bytes of a pointer there.
    pub pointer_size: usize,
}

/// A codec library of the system, used in place of the built-in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SystemCodec {
    /// The Cargo feature that asks for it.
    pub feature: &'static str,
    /// Its name in CMake variables, as in `PREFER_EXTERNAL_LZ4`.
    pub codec: &'static str,
    /// Its pkg-config package.
    pub package: &'static str,
    /// The library's name.
    pub library: &'static str,
}

impl SystemCodec {
    /// The flag that links it.
    pub fn flag(&self) -> String {
        format!("-l{}", self.library)
    }
}

/// The codecs that can be taken from the system.
pub const SYSTEM_CODECS: [SystemCodec; 3] = [
    SystemCodec { feature: "system-lz4", codec: "LZ4", package: "liblz4", library: "lz4" },
    SystemCodec { feature: "system-zlib", codec: "ZLIB", package: "zlib", library: "z" },
    SystemCodec { feature: "system-zstd", codec: "ZSTD", package: "libzstd", library: "zstd" },
];

/// Builds both libraries.
pub fn libraries(options: &Options) -> Result<Built, String> {
    let debug = options.debug;
    let mut cargo = process::cargo();
    cargo.args(["rustc", "--package", "libblosc2-rs", "--lib"]);
    if !debug {
        cargo.arg("--release");
        rename_sources(&mut cargo);
        add_c_flags(&mut cargo, options);
    }
    let mut target = paths::target();
    let triple = options.triple();
    if let Some(triple) = &triple {
        cargo.args(["--target", triple]);
    }
    if !options.features.is_empty() {
        // Cargo names libraries for C alike whatever the features, and would later take the one for the other.
        target = target.join(options.features.join("+"));
        cargo.args(["--features", &options.features.join(",")]).arg("--target-dir").arg(&target);
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
    target.extend(&triple);
    let dir = target.join(if debug { "debug" } else { "release" });
    let shared = dir.join(format!("{}blosc2{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    let system: Vec<_> = SYSTEM_CODECS.into_iter().filter(|codec| options.has(codec.feature)).collect();
    let native_libs = runtime_only(&native_libs, &system);
    let runner = triple.as_deref().and_then(runner);
    let pointer_size = pointer_size(triple.as_deref())?;
    Ok(Built { shared, archive: dir.join("libblosc2.a"), native_libs, system, runner, pointer_size })
}

/// Bytes of a pointer on a platform, or on this one.
fn pointer_size(triple: Option<&str>) -> Result<usize, String> {
    let Some(triple) = triple else { return Ok(size_of::<usize>()) };
    let facts =
        process::output(process::tool("RUSTC", "rustc").args(["--print", "cfg", "--target", triple]))?;
    let width =
        facts.lines().find_map(|fact| fact.strip_prefix("target_pointer_width=\"")?.strip_suffix('"'));
    let bits = width.and_then(|bits| bits.parse::<usize>().ok());
    bits.map(|bits| bits / 8).ok_or(format!("rustc does not tell how large pointers are on {triple}"))
}

/// The directories whose paths a build would leave in the libraries, in panic messages and debug information, and
/// what stands there instead, so that they are the same bytes whoever builds them and where. Later ones go first.
pub fn renamed_sources() -> Vec<(PathBuf, &'static str)> {
    let mut renamed = vec![(paths::root(), "/libblosc2-rs")];
    if let Some(home) = paths::cargo_home() {
        // The packages of a registry lie in a directory whose name tells which mirror they came from. That of the
        // registry in use exists: xtask depends on packages, too.
        let registries = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
        let registries: Vec<_> = registries.map(|entry| (entry.path(), "/cargo/registry")).collect();
        renamed.push((home, "/cargo"));
        renamed.extend(registries);
    }
    renamed
}

/// The flags of `.cargo/config.toml`, which says why. Cargo and the build of C code take flags of the caller in place
/// of them.
const RUST_FLAGS: &str = "-Cllvm-args=-align-all-functions=6";
const C_FLAGS: &str = "-falign-functions=64 -fno-gcse";

/// Has C compilers take the caller's flags after ours, and write the names of [`renamed_sources`] into debug
/// information, where that is kept.
fn add_c_flags(cargo: &mut Command, options: &Options) {
    let mut flags = vec![C_FLAGS.to_string()];
    if options.no_strip {
        let rename = |(from, to): (PathBuf, &str)| format!("-ffile-prefix-map={}={to}", from.display());
        // A space would end the flag.
        flags.extend(renamed_sources().into_iter().map(rename).filter(|flag| !flag.contains(' ')));
    }
    let told = std::env::var("CFLAGS").unwrap_or_default();
    // Those of the configuration are there unless the caller has others.
    flags.extend(Some(told).filter(|told| !told.is_empty() && told != C_FLAGS));
    cargo.env("CFLAGS", flags.join(" "));
}

/// Has the compiler write the names of [`renamed_sources`], unless its caller's flags have others.
fn rename_sources(cargo: &mut Command) {
    let rename = |(from, to): (PathBuf, &str)| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags: Vec<String> = renamed_sources().into_iter().map(rename).collect();
    // Cargo takes flags from one place: the first of these variables, or else its configuration, where lists add up.
    let told = |variable: &str, separator: char| {
        let value = std::env::var(variable).ok()?;
        Some(value.split(separator).filter(|flag| !flag.is_empty()).map(str::to_string).collect::<Vec<_>>())
    };
    match told("CARGO_ENCODED_RUSTFLAGS", '\x1f').or_else(|| told("RUSTFLAGS", ' ')) {
        Some(told) => {
            flags.push(RUST_FLAGS.to_string());
            flags.extend(told);
            cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        }
        None => cargo.arg("--config").arg(format!("build.rustflags=[{}]", toml_strings(&flags))),
    };
}

/// A list's elements in TOML.
fn toml_strings(texts: &[String]) -> String {
    let string = |text: &String| format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#));
    texts.iter().map(string).collect::<Vec<_>>().join(",")
}

/// The flags, each once, without those of the system's codecs and those that the C compiler adds by itself: libgcc_s
/// has another name in programs without shared libraries.
fn runtime_only(flags: &str, system: &[SystemCodec]) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for flag in flags.split_whitespace() {
        let of = |codec: &SystemCodec| flag == codec.flag() || flag == format!("-l:lib{}.so", codec.library);
        let elsewhere = ["-lc", "-lgcc_s"].contains(&flag) || system.iter().any(of);
        if !elsewhere && !kept.contains(&flag) {
            kept.push(flag);
        }
    }
    kept.join(" ")
}

/// Who sees the functions of the API in an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Those who are linked together with it; a shared object that contains it does not export them again. As in the
    /// C library's archive.
    Hidden,
    /// Everybody: a shared library made of the object exports them.
    Exported,
}

/// Writes an object whose only global symbols are those of the API.
///
/// rustc's archive holds the API, the codecs in C (LZ4, Zstandard, libdeflate) and Rust's runtime, all with global
/// symbols that collide with those of a program that brings its own. One partial link resolves the references among
/// them; after it, every symbol that is not in the list becomes local.
pub fn localised_object(
    archive: &Path,
    to: &Path,
    visibility: Visibility,
    options: &Options,
) -> Result<(), String> {
    let work = WorkDir::new("object")?;
    let (stub_c, stub_o) = (work.0.join("api.c"), work.0.join("api.o"));
    let (linked, keep) = (work.0.join("linked.o"), work.0.join("keep.txt"));
    let api = symbols::listed()?;
    let register: &[&str] = if visibility == Visibility::Hidden { &REGISTER } else { &[] };
    paths::write(&stub_c, stub(&api, visibility))?;
    process::run(
        cc().args(["-O2", "-fPIC", "-ffunction-sections", "-c"]).arg(&stub_c).arg("-o").arg(&stub_o),
    )?;
    // Section groups would keep their names, and be merged with those of other Rust libraries: dissolve them.
    let mut ld = process::tool("LD", "ld");
    ld.args(["-r", "--force-group-allocation", "--gc-sections"]);
    let kept = || api.iter().map(String::as_str).chain(register.iter().copied());
    ld.args(kept().map(|name| format!("--undefined={name}")));
    process::run(ld.arg("-o").arg(&linked).arg(&stub_o).arg(archive))?;
    paths::write(&keep, kept().map(|name| format!("{name}\n")).collect::<String>())?;
    // The standard library comes with bitcode for link-time optimisation, in which no C linker is interested.
    let mut objcopy = process::tool("OBJCOPY", "objcopy");
    objcopy.args(["-R", ".llvmbc", "-R", ".llvmcmd"]).arg("--keep-global-symbols").arg(&keep);
    if !options.debug && !options.no_strip {
        objcopy.args(["--strip-debug", "--strip-unneeded"]);
    }
    paths::replace(to, |new| process::run(objcopy.arg(&linked).arg(new)))
}

/// A directory of this process alone, for as long as it is in use: builds that share cargo's directory may run at the
/// same time.
struct WorkDir(PathBuf);

impl WorkDir {
    fn new(name: &str) -> Result<WorkDir, String> {
        let all = paths::target().join("xtask-static");
        remove_stale(&all);
        let dir = all.join(format!("{name}-{}", std::process::id()));
        paths::make_dir(&dir)?;
        Ok(WorkDir(dir))
    }
}

/// Removes what interrupted builds left in `dir`: everything of another day.
fn remove_stale(dir: &Path) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|it| it.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > DAY) {
            // What cannot be removed is in nobody's way, nor is what another build removes at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // What is left is in nobody's way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a static library that shows the linker nothing but the API; see [`localised_object`].
pub fn localised_archive(archive: &Path, to: &Path, options: &Options) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return paths::replace(to, |new| paths::copy(archive, new));
    }
    let work = WorkDir::new("archive")?;
    let object = work.0.join("blosc2.o");
    localised_object(archive, &object, Visibility::Hidden, options)?;
    paths::replace(to, |new| process::run(process::tool("AR", "ar").arg("crsD").arg(new).arg(&object)))
}

/// Declared in the registry headers and defined in the C library's archive only.
const REGISTER: [&str; 3] = ["register_codecs", "register_filters", "register_tuners"];

/// C code that refers to each function of the API, so that the partial link takes it from the archive, and sets its
/// visibility.
fn stub(api: &[String], visibility: Visibility) -> String {
    let mut text = String::from("/* Written by xtask: the roots of the partial link. */\n");
    match visibility {
        Visibility::Exported => {
            text.extend(api.iter().map(|name| format!("__asm__(\".globl {name}\");\n")));
        }
        Visibility::Hidden => {
            text.extend(api.iter().map(|name| format!("__asm__(\".globl {name}\\n.hidden {name}\");\n")));
            let hidden = "__attribute__((visibility(\"hidden\")))";
            text.extend(
                REGISTER.map(|name| format!("{hidden} void {name}(void);\nvoid {name}(void) {{}}\n")),
            );
        }
    }
    text
}

/// The value of Cargo's variable with the program that starts those of a platform, as an emulator does.
fn runner(triple: &str) -> Option<String> {
    let name = format!("CARGO_TARGET_{}_RUNNER", triple.to_uppercase().replace('-', "_"));
    std::env::var(name).ok().filter(|command| !command.trim().is_empty())
}

/// Fails before a long build, and not after it, where a tool is missing that an installation takes.
pub fn check_tools(options: &Options) -> Result<(), String> {
    let of_linux = [("LD", "ld"), ("OBJCOPY", "objcopy"), ("AR", "ar")];
    let beside = if cfg!(target_os = "linux") { &of_linux[..] } else { &[] };
    let strip = options.strips().then_some(&("STRIP", "strip"));
    for &(variable, default) in [("CC", "cc")].iter().chain(beside).chain(strip) {
        if !process::exists(process::tool(variable, default)) {
            let name = process::tool(variable, default);
            let name = name.get_program().to_string_lossy();
            return Err(format!("{name} is missing; the variable {variable} can name another program"));
        }
    }
    Ok(())
}

/// The C compiler.
pub fn cc() -> Command {
    process::tool("CC", "cc")
}

/// The C++ compiler.
pub fn cxx() -> Command {
    process::tool("CXX", "c++")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_configuration() {
        let config = paths::read(&paths::root().join(".cargo/config.toml")).unwrap();
        assert!(config.contains(&format!("\nCFLAGS = \"{C_FLAGS}\"\n")), "{config}");
        assert!(
            config.contains(&format!("\nrustflags = [{}]\n", toml_strings(&[RUST_FLAGS.into()]))),
            "{config}"
        );
    }

    #[test]
    fn strings_of_toml() {
        let texts = [r#"a "b" \ c"#.to_string(), "u\u{308}".to_string()];
        assert_eq!(toml_strings(&texts), "\"a \\\"b\\\" \\\\ c\",\"u\u{308}\"");
    }
}
