//! `cargo xtask test`: every test that needs nothing but Rust and a C compiler.
//!
//! The C programs in `capi-tests/` are compiled with the installed headers and run twice, against the shared and
//! against the static library; under `--valgrind`, with valgrind. Programs whose name starts with `ways_` show ways to
//! use the library: C++, run-time loading, beside another Zstandard.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::build::{Built, cc, cxx};
use crate::demo::library_path_variable;
use crate::install::{self, Layout};
use crate::process::{self, command};
use crate::{headers, paths, symbols};

/// Warnings that C clients may have turned on, and the library's headers must not cause.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// Starts the message of a test that cannot run on this machine.
const SKIPPED: &str = "skipped: ";

struct Options {
    valgrind: bool,
    rust: bool,
    debug: bool,
}

/// The command.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut options = Options { valgrind: false, rust: true, debug: false };
    for arg in args {
        match arg.as_str() {
            "--valgrind" => options.valgrind = true,
            "--no-rust" => options.rust = false,
            "--debug" => options.debug = true,
            _ => return Err(format!("unknown argument {arg}; known: --valgrind --no-rust --debug")),
        }
    }
    let mut failed = Vec::new();
    let mut step = |name: &str, outcome: &mut dyn FnMut() -> Result<(), String>| {
        let start = Instant::now();
        let outcome = outcome();
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Err(why) if why.starts_with(SKIPPED) => {
                println!("skipped {name} ({})", why.trim_start_matches(SKIPPED))
            }
            Ok(()) => println!("ok      {name} ({seconds:.1} s)"),
            Err(why) => {
                println!("FAILED  {name} ({seconds:.1} s)\n{why}");
                failed.push(name.to_string());
            }
        }
    };
    step("headers are those of src/capi", &mut || headers::run(&["--check".to_string()]));
    if options.rust {
        step("Rust tests", &mut || process::run(process::cargo().args(["test", "--workspace"])));
    }
    let layout = Layout::below(paths::target().join("dist"));
    let mut built = None;
    step("build and install", &mut || install::install(&layout, options.debug).map(|b| built = Some(b)));
    if let Some(built) = built {
        step("headers compile alone, without warnings", &mut || each_header_alone(&layout));
        step("exported symbols", &mut || {
            symbols::check_shared(&layout.lib(shared_library_name()))?;
            symbols::check_static(&layout.lib("libblosc2.a"))
        });
        for program in programs()? {
            let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for link in [Link::Shared, Link::Static] {
                step(&format!("{name}, {link:?}"), &mut || {
                    compile_and_run(&program, link, &layout, &built, options.valgrind)
                });
            }
        }
        for (name, way) in WAYS {
            step(name, &mut || way(&layout, &built));
        }
    }
    if failed.is_empty() {
        println!("all tests passed");
        Ok(())
    } else {
        Err(format!("{} failed: {}", failed.len(), failed.join("; ")))
    }
}

fn shared_library_name() -> &'static str {
    if cfg!(target_os = "macos") { "libblosc2.dylib" } else { "libblosc2.so" }
}

/// The ordinary C tests.
fn programs() -> Result<Vec<PathBuf>, String> {
    let all = paths::files_below(&paths::root().join("capi-tests"), "c")?;
    let ordinary = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("test_") || name == "demo.c"
    };
    Ok(all.into_iter().filter(ordinary).collect())
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
    let mut compiler = command(cc(), ["-std=gnu99", "-g", "-O1"]);
    compiler.args(STRICT).arg("-I").arg(layout.includedir()).arg("-o").arg(&program).arg(source);
    process::quiet(compiler.args(link_flags(link, layout, built)).arg("-pthread").arg("-lm"))?;
    let mut run = if valgrind {
        let mut run = command("valgrind", ["--quiet", "--error-exitcode=99", "--leak-check=full"]);
        run.arg("--errors-for-leak-kinds=definite").arg(&program);
        run
    } else {
        command::<&str>(&program, [])
    };
    // The demo takes a file: its own source will do.
    process::quiet(run.arg(source).env(library_path_variable(), &layout.libdir))
}

/// Each header alone, in each language, with every warning an error.
fn each_header_alone(layout: &Layout) -> Result<(), String> {
    let dir = paths::target().join("capi-tests");
    for header in headers::HEADERS {
        for (compiler, language, extension) in
            [(cc(), "c99", "c"), (cc(), "c11", "c"), (cxx(), "c++11", "cc"), (cxx(), "c++17", "cc")]
        {
            let source = dir.join(format!("header.{extension}"));
            paths::write(&source, format!("#include \"{header}\"\nint header_compiles;\n"))?;
            let mut compiler = command(compiler, [format!("-std={language}")]);
            compiler.args(STRICT).arg("-fsyntax-only").arg("-I").arg(layout.includedir());
            process::quiet(compiler.arg(source))?;
        }
    }
    Ok(())
}

/// A way to use an installation, shown by a program or a build of its own.
type Way = fn(&Layout, &Built) -> Result<(), String>;

const WAYS: [(&str, Way); 8] = [
    ("C++ program, shared", cpp_program),
    ("loaded at run time with local binding", loaded_at_run_time),
    ("plugins, found and broken", plugins),
    ("static beside the system's Zstandard", beside_system_zstd),
    ("pkg-config, shared and static, from a moved installation", pkg_config),
    ("CMake find_package, shared and static", cmake),
    ("static inside a shared object, not exported again", inside_shared_object),
    ("install under a staging directory, uninstall", staged),
];

/// A source in `capi-tests/`.
fn source(name: &str) -> PathBuf {
    paths::root().join("capi-tests").join(name)
}

/// Compiles one of the `ways_` programs and runs it.
fn build_and_run(
    compiler: String,
    name: &str,
    layout: &Layout,
    flags: &[String],
    args: &[PathBuf],
) -> Result<(), String> {
    let program = program_path(&source(name), Link::Shared)?;
    let mut compiler = command(compiler, STRICT);
    compiler.arg("-O1").arg("-I").arg(layout.includedir()).arg("-o").arg(&program).arg(source(name));
    process::quiet(compiler.args(flags))?;
    process::quiet(command(&program, args).env(library_path_variable(), &layout.libdir))
}

fn cpp_program(layout: &Layout, built: &Built) -> Result<(), String> {
    build_and_run(cxx(), "ways_cpp.cc", layout, &link_flags(Link::Shared, layout, built), &[])
}

fn loaded_at_run_time(layout: &Layout, _: &Built) -> Result<(), String> {
    let library = layout.lib(shared_library_name());
    build_and_run(cc(), "ways_dlopen.c", layout, &["-ldl".to_string()], &[library])
}

/// The plugins that the program loads are all made from one source.
fn plugins(layout: &Layout, _: &Built) -> Result<(), String> {
    let dir = paths::target().join("capi-tests/plugins");
    paths::make_dir(&dir)?;
    let kinds = ["CODEC", "FILTER", "TUNER", "NO_INFO", "HALF", "UNRESOLVED", "NO_NAME"];
    for (name, kind) in
        kinds.map(|kind| (kind.to_lowercase(), kind)).into_iter().chain([("late".into(), "CODEC")])
    {
        let library = dir.join(format!("libblosc2_capi_{name}.so"));
        let mut compiler = command(cc(), ["-O1", "-shared", "-fPIC"]);
        compiler.args(STRICT).arg(format!("-DPLUGIN={kind}")).arg("-I").arg(layout.includedir());
        process::quiet(compiler.arg("-o").arg(library).arg(source("plugin.c")))?;
    }
    paths::write(&dir.join("libblosc2_capi_text.so"), "This is not a library.\n")?;
    let library = layout.lib(shared_library_name());
    build_and_run(cc(), "ways_plugins.c", layout, &["-ldl".to_string()], &[library, dir])
}

/// The program calls the system's Zstandard and, through ours, the one inside: their versions may differ.
fn beside_system_zstd(layout: &Layout, built: &Built) -> Result<(), String> {
    let probe = paths::target().join("capi-tests/probe.c");
    paths::write(&probe, "#include <zstd.h>\nint main(void) { return ZSTD_versionNumber() == 0; }\n")?;
    let found = command(cc(), ["-o"]).arg(probe.with_extension("out")).arg(&probe).arg("-lzstd").output();
    if !found.is_ok_and(|out| out.status.success()) {
        return Err(format!("{SKIPPED}no libzstd with headers on this machine"));
    }
    let mut flags = link_flags(Link::Static, layout, built);
    // The static one where there is one: there the names could collide.
    flags.extend(["-Wl,-Bstatic", "-lzstd", "-Wl,-Bdynamic"].map(str::to_string));
    build_and_run(cc(), "ways_zstd.c", layout, &flags, &[])
}

/// An extension module that contains the static library must not offer its functions to the whole process.
fn inside_shared_object(layout: &Layout, built: &Built) -> Result<(), String> {
    let source = paths::target().join("capi-tests/extension.c");
    paths::write(&source, "#include <blosc2.h>\nint extension(void) { blosc2_init(); return 1; }\n")?;
    let object = source.with_extension("so");
    let mut compiler = command(cc(), ["-O1", "-shared", "-fPIC", "-I"]);
    compiler.arg(layout.includedir()).arg("-o").arg(&object).arg(&source);
    process::quiet(compiler.args(link_flags(Link::Static, layout, built)))?;
    symbols::check_exports(&object, &["extension"])
}

/// What a packager does: system paths below another directory. Uninstalling leaves no file.
fn staged(_: &Layout, _: &Built) -> Result<(), String> {
    let stage = paths::target().join("stage");
    let _ = std::fs::remove_dir_all(&stage);
    let args = ["--prefix=/usr", "--libdir=lib/x86_64-linux-gnu", &format!("--destdir={}", stage.display())]
        .map(str::to_string);
    install::run_quietly(&args)?;
    let libdir = stage.join("usr/lib/x86_64-linux-gnu");
    let pc = paths::read(&libdir.join("pkgconfig/blosc2.pc"))?;
    if !pc.contains("prefix=${pcfiledir}/../../..\n") || !libdir.join("libblosc2.so.9").exists() {
        return Err(format!("wrong layout, or a wrong blosc2.pc:\n{pc}"));
    }
    install::uninstall(&args)?;
    let left = paths::files_below(&stage, "")?;
    if left.is_empty() { Ok(()) } else { Err(format!("left behind: {left:?}")) }
}

fn pkg_config(layout: &Layout, _: &Built) -> Result<(), String> {
    let tool = process::tool("PKG_CONFIG", "pkg-config");
    if !process::exists(&tool) {
        return Err(format!("{SKIPPED}no pkg-config on this machine"));
    }
    let moved = paths::target().join("dist-moved");
    let _ = std::fs::remove_dir_all(&moved);
    process::run(command("cp", ["-a"]).arg(&layout.prefix).arg(&moved))?;
    let ask = |options: &[&str]| {
        let mut query = command(&tool, options);
        process::output(query.arg("blosc2").env("PKG_CONFIG_PATH", moved.join("lib/pkgconfig")))
    };
    if ask(&["--modversion"])?.trim() != install::VERSION {
        return Err("blosc2.pc has another version".to_string());
    }
    for (flags, only_static) in
        [(ask(&["--cflags", "--libs"])?, false), (ask(&["--static", "--cflags", "--libs"])?, true)]
    {
        if !flags.contains("dist-moved") {
            return Err(format!("the flags do not follow the installation: {flags}"));
        }
        if only_static {
            // With both libraries in one place, the linker would take the shared one.
            let _ = std::fs::remove_file(moved.join("lib").join(shared_library_name()));
        }
        let program = program_path(Path::new("pkgconfig"), Link::Shared)?;
        let mut compiler = command(cc(), ["-o"]);
        compiler.arg(&program).arg(source("demo.c")).args(flags.split_whitespace());
        process::quiet(&mut compiler)?;
        let mut run = command(&program, [source("demo.c")]);
        process::quiet(run.env(library_path_variable(), moved.join("lib")))?;
    }
    Ok(())
}

fn cmake(layout: &Layout, _: &Built) -> Result<(), String> {
    if !process::exists("cmake") {
        return Err(format!("{SKIPPED}no cmake on this machine"));
    }
    let build = paths::target().join("capi-tests/cmake");
    let _ = std::fs::remove_dir_all(&build);
    let mut configure = command("cmake", ["-S"]);
    configure.arg(source("cmake")).arg("-B").arg(&build);
    process::quiet(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", layout.prefix.display())))?;
    process::quiet(command("cmake", ["--build"]).arg(&build))?;
    for program in ["demo_shared", "demo_static", "demo_default"] {
        process::quiet(&mut command(build.join(program), [source("demo.c")]))?;
    }
    Ok(())
}
