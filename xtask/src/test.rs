//! `cargo xtask test`: the Rust tests, then the tests of an installation.
//!
//! Each C program in `capi-tests/` is compiled with the installed headers and run against the shared and the static
//! library, both at the same time; `--valgrind` runs it under valgrind. Each run has a directory of its own, which is
//! removed afterwards. The last tests are the ways to link with an installation, in `ways`. Only Rust, a C compiler
//! and binutils are required: a test that lacks another tool is skipped and says why.

mod ways;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::build::{self, Built, cc, cxx};
use crate::demo::library_path_variable;
use crate::install::{self, Layout};
use crate::process::{self, command};
use crate::words::Words;
use crate::{headers, paths, symbols};

/// Warnings that C clients may have turned on, and the library's headers must not cause.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// Starts the message of a test that cannot run on this machine.
const SKIPPED: &str = "skipped: ";

/// The command line, for those who mistyped it.
const KNOWN: &str = "known: --valgrind --no-rust --debug --only TEXT --target PLATFORM";

/// The step that the others need.
const BUILD: &str = "build and install";

struct Options {
    valgrind: bool,
    rust: bool,
    build: build::Options,
    /// Of the tests, those with this text in their names.
    only: String,
}

/// The command.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = options(args)?;
    let _alone = alone()?;
    if options.valgrind && !process::exists(command::<&str>("valgrind", [])) {
        return Err("valgrind is missing".to_string());
    }
    let target = options.build.triple();
    let mut tests = Tests { only: &options.only, chosen: 0, failed: Vec::new() };
    tests.run("headers are those of src/capi", || headers::run(&["--check".to_string()]));
    if options.rust {
        tests.run("Rust tests", || rust_tests(target.as_deref()));
    }
    let place = target.iter().fold(paths::target(), |dir, triple| dir.join(triple));
    let layout = Layout::below(place.join("dist"));
    let mut built = None;
    tests.run(BUILD, || install::install(&layout, &options.build).map(|b| built = Some(b)));
    if let Some(built) = built {
        tests_of_installation(&mut tests, &options, &layout, &built)?;
    }
    tests.verdict()
}

/// Waits until no other run has the directories of the C tests, and keeps them for as long as the file is open.
fn alone() -> Result<File, String> {
    let path = paths::target().join("capi-tests/lock");
    paths::touch(&path)?;
    let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    #[cfg(unix)]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: the file is open.
        let lock = |how| unsafe { libc::flock(file.as_raw_fd(), how) == 0 };
        if !lock(libc::LOCK_EX | libc::LOCK_NB) {
            println!("waiting for another run of the tests");
            if !lock(libc::LOCK_EX) {
                return Err(format!("{} cannot be locked", path.display()));
            }
        }
    }
    Ok(file)
}

fn options(args: &[String]) -> Result<Options, String> {
    let build = build::Options::default();
    let mut options = Options { valgrind: false, rust: true, build, only: String::new() };
    let mut words = Words::new(args);
    while let Some(word) = words.next() {
        match word {
            "--valgrind" => options.valgrind = true,
            "--no-rust" => options.rust = false,
            "--debug" => options.build.debug = true,
            "--only" => options.only = words.value()?.to_string(),
            "--target" => options.build.target = Some(words.value()?.to_string()),
            _ => return Err(format!("{}; {KNOWN}", words.unknown())),
        }
    }
    Ok(options)
}

/// Runs tests, tells how they ended, and remembers it.
struct Tests<'a> {
    /// Of the tests, those with this text in their names.
    only: &'a str,
    chosen: usize,
    failed: Vec<String>,
}

impl Tests<'_> {
    /// Whether the test of this name is to run.
    fn wants(&self, name: &str) -> bool {
        name.contains(self.only)
    }

    fn run(&mut self, name: &str, test: impl FnOnce() -> Result<(), String>) {
        let wanted = self.wants(name);
        if !wanted && name != BUILD {
            return;
        }
        self.chosen += usize::from(wanted);
        let start = Instant::now();
        let outcome = test();
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Err(why) if why.starts_with(SKIPPED) => {
                println!("skipped {name} ({})", why.trim_start_matches(SKIPPED))
            }
            Ok(()) => println!("ok      {name} ({seconds:.1} s)"),
            Err(why) => {
                println!("FAILED  {name} ({seconds:.1} s)\n{why}");
                self.failed.push(name.to_string());
            }
        }
    }

    fn verdict(&self) -> Result<(), String> {
        if self.chosen == 0 {
            return Err(format!("no test has {:?} in its name", self.only));
        }
        if self.failed.is_empty() {
            println!("all tests passed");
            Ok(())
        } else {
            Err(format!("{} failed: {}", self.failed.len(), self.failed.join("; ")))
        }
    }
}

/// What is installed: headers, symbols, the C programs with both libraries, and the ways to use it.
fn tests_of_installation(
    tests: &mut Tests<'_>,
    options: &Options,
    layout: &Layout,
    built: &Built,
) -> Result<(), String> {
    tests.run("headers compile alone, without warnings", || {
        each_header_alone(layout, cc, &["c99", "c11"], "c")
    });
    tests.run("headers compile alone as C++, without warnings", || {
        needs_cxx()?;
        each_header_alone(layout, cxx, &["c++11", "c++17"], "cc")
    });
    tests.run("headers compile for Windows, without warnings", || {
        let mingw = || process::tool("MINGW_CC", "x86_64-w64-mingw32-gcc");
        if !process::exists(mingw()) {
            return Err(format!("{SKIPPED}no MinGW compiler on this machine"));
        }
        each_header_alone(layout, mingw, &["c99", "c11"], "c")
    });
    tests.run("exported symbols", || {
        symbols::check_shared(&layout.lib(shared_library_name()))?;
        symbols::check_static(&layout.lib("libblosc2.a"))?;
        symbols::check_debian()
    });
    tests.run("C tests use every function", symbols::check_used);
    tests.run("libraries do not tell where they were built", || no_paths(layout, &options.build));
    for program in programs()? {
        tests_of_program(tests, &program, |link| {
            compile_and_run(&program, link, layout, built, options.valgrind)
        });
    }
    for (name, way) in ways::WAYS {
        tests.run(name, || match options.build.triple() {
            None => way(layout, built),
            Some(_) => Err(format!("{SKIPPED}it needs tools of the platform")),
        });
    }
    Ok(())
}

/// A C program with both libraries, at the same time: some wait for most of theirs, and valgrind runs one thread of
/// each.
fn tests_of_program(
    tests: &mut Tests<'_>,
    program: &Path,
    compile_and_run: impl Fn(Link) -> Result<(), String> + Sync,
) {
    let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = |link| format!("{name}, {link:?}");
    std::thread::scope(|scope| {
        let with_static =
            tests.wants(&name(Link::Static)).then(|| scope.spawn(|| compile_and_run(Link::Static)));
        tests.run(&name(Link::Shared), || compile_and_run(Link::Shared));
        if let Some(running) = with_static {
            tests.run(&name(Link::Static), || running.join().unwrap_or_else(|_| Err("panicked".to_string())));
        }
    });
}

/// Cargo's tests. The C library at hand is one for this machine: other platforms do without.
fn rust_tests(target: Option<&str>) -> Result<(), String> {
    let mut cargo = process::cargo();
    cargo.args(["test", "--no-fail-fast"]);
    match target {
        None => cargo.arg("--workspace"),
        Some(triple) => cargo.args(["--target", triple]).env("BLOSC2_REFERENCE", ""),
    };
    process::run(&mut cargo)
}

fn shared_library_name() -> &'static str {
    if cfg!(target_os = "macos") { "libblosc2.dylib" } else { "libblosc2.so" }
}

/// The ordinary C tests.
pub fn programs() -> Result<Vec<PathBuf>, String> {
    let all = paths::files_below(&paths::root().join("capi-tests"), "c")?;
    let ordinary = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("test_") || name == "demo.c"
    };
    Ok(all.into_iter().filter(ordinary).collect())
}

/// Fails if a library holds the path of a directory with sources: it would not be the same bytes elsewhere.
fn no_paths(layout: &Layout, options: &build::Options) -> Result<(), String> {
    if options.debug {
        return Err(format!("{SKIPPED}debug builds name their sources, for debuggers"));
    }
    for name in [shared_library_name(), "libblosc2.a"] {
        let library = layout.lib(name);
        let bytes = std::fs::read(&library).map_err(|e| format!("{}: {e}", library.display()))?;
        for (source, _) in build::renamed_sources() {
            let path = source.as_os_str().as_encoded_bytes();
            if bytes.windows(path.len()).any(|bytes| bytes == path) {
                return Err(format!("{} holds the path {}", library.display(), source.display()));
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Link {
    Shared,
    Static,
}

/// The flags to link with one of the two libraries.
fn link_flags(link: Link, layout: &Layout, built: &Built) -> Vec<String> {
    match link {
        Link::Shared => vec![format!("-L{}", layout.libdir.display()), "-lblosc2".to_string()],
        Link::Static => {
            let mut flags = vec![layout.lib("libblosc2.a").display().to_string()];
            flags.extend(built.native_libs.split_whitespace().map(str::to_string));
            flags
        }
    }
}

/// Where the program made from `source` goes.
fn program_path(source: &Path, link: Link) -> Result<PathBuf, String> {
    let dir = paths::target().join("capi-tests");
    paths::make_dir(&dir)?;
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(dir.join(format!("{name}-{link:?}").to_lowercase()))
}

fn compile_and_run(
    source: &Path,
    link: Link,
    layout: &Layout,
    built: &Built,
    valgrind: bool,
) -> Result<(), String> {
    let program = program_path(source, link)?;
    let mut compiler = cc();
    compiler
        .args(["-std=gnu99", "-g", "-O1"])
        .args(STRICT)
        .arg("-I")
        .arg(&layout.includedir)
        .arg("-o")
        .arg(&program)
        .arg(source);
    process::quiet(compiler.args(link_flags(link, layout, built)).arg("-pthread").arg("-lm"))?;
    if valgrind && built.runner.is_some() {
        return Err(format!("{SKIPPED}valgrind watches programs of this machine only"));
    }
    let mut run = if let Some(runner) = &built.runner {
        let mut words = runner.split_whitespace();
        let mut run = command(words.next().unwrap_or_default(), words);
        run.arg(&program);
        run
    } else if valgrind {
        let mut run = command("valgrind", ["--quiet", "--error-exitcode=99", "--leak-check=full"]);
        // One thread runs at a time; else those that are busy might keep the others waiting for ever.
        run.args(["--errors-for-leak-kinds=definite", "--fair-sched=try"]).arg(&program);
        run
    } else {
        command::<&str>(&program, [])
    };
    // The demo takes a file: its own source will do.
    run_apart(run.arg(source).env(library_path_variable(), &layout.libdir), &program)
}

/// Runs a command in a directory of its own below Cargo's, which is empty before and gone afterwards. It is named after
/// `program`. What the command is given must be absolute paths; of its output, only what it skips is shown.
pub fn run_apart(command: &mut Command, program: &Path) -> Result<(), String> {
    let name = program.file_name().unwrap_or_default();
    let dir = paths::target().join("capi-tests/run").join(name);
    remove_all(&dir)?;
    paths::make_dir(&dir)?;
    for variable in settings() {
        if !command.get_envs().any(|(given, _)| given == variable) {
            command.env_remove(variable);
        }
    }
    let outcome = process::quiet_output(command.current_dir(&dir));
    let removed = remove_all(&dir);
    for skipped in outcome?.lines().filter_map(|line| line.strip_prefix(SKIPPED)) {
        println!("skipped in {}: {skipped}", name.to_string_lossy());
    }
    removed
}

/// The variables of our environment that the library, or a program that uses it, takes for settings.
fn settings() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let is_setting = |name: &OsString| {
        ["BLOSC_", "BLOSC2_", "BTUNE_"]
            .iter()
            .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
    };
    names.filter(is_setting).collect()
}

/// Removes a directory with all that is in it, if it exists.
fn remove_all(dir: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {e}", dir.display())),
        _ => Ok(()),
    }
}

/// Whether there is a C++ compiler; nothing but tests of C++ needs one.
fn needs_cxx() -> Result<(), String> {
    if process::exists(cxx()) { Ok(()) } else { Err(format!("{SKIPPED}no C++ compiler on this machine")) }
}

/// Each header alone, in each version of a language, with every warning an error.
fn each_header_alone(
    layout: &Layout,
    compiler: fn() -> Command,
    languages: &[&str],
    extension: &str,
) -> Result<(), String> {
    let source = paths::target().join("capi-tests").join(format!("header.{extension}"));
    for header in headers::HEADERS {
        for language in languages {
            paths::write(&source, format!("#include \"{header}\"\nint header_compiles;\n"))?;
            let mut compiler = compiler();
            compiler
                .arg(format!("-std={language}"))
                .args(STRICT)
                .arg("-fsyntax-only")
                .arg("-I")
                .arg(&layout.includedir);
            process::quiet(compiler.arg(&source))?;
        }
    }
    Ok(())
}
