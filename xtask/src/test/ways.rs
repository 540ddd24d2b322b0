//! The ways to use an installation, each shown by a program or a build of its own: by hand, C++, pkg-config, CMake,
//! loading at run time, Python, static beside other people's code, as a distribution builds it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Link, SKIPPED, STRICT, link_flags, needs_cxx, program_path, run_apart, shared_library_name};
use crate::build::{self, Built, SYSTEM_CODECS, cc, cxx};
use crate::demo::library_path_variable;
use crate::install::{self, Layout};
use crate::process::{self, command};
use crate::{paths, symbols};

/// A way to use an installation, shown by a program or a build of its own.
pub(super) type Way = fn(&Layout, &Built) -> Result<(), String>;

pub(super) const WAYS: [(&str, Way); 14] = [
    ("C++ program, shared", cpp_program),
    ("C program, flags by hand", by_hand),
    ("loaded at run time with local binding", loaded_at_run_time),
    ("at work while the loader is", inside_the_loader),
    ("Python ctypes", python_ctypes),
    ("plugins, found and broken", plugins),
    ("static beside the system's Zstandard", beside_system_zstd),
    ("pkg-config, shared and static, from a moved installation", pkg_config),
    ("CMake find_package, shared and static", cmake),
    ("CMake FetchContent and add_subdirectory", cmake_subproject),
    ("static inside a shared object, not exported again", inside_shared_object),
    ("install under a staging directory, uninstall", staged),
    ("built with the system's codecs", system_codecs),
    ("CMake FetchContent with the system's codecs", cmake_system_codecs),
];

/// A source in `capi-tests/`.
fn source(name: &str) -> PathBuf {
    paths::root().join("capi-tests").join(name)
}

/// Compiles one of the `ways_` programs and runs it.
fn build_and_run(
    mut compiler: Command,
    name: &str,
    layout: &Layout,
    flags: &[String],
    args: &[PathBuf],
) -> Result<(), String> {
    let program = program_path(&source(name), Link::Shared)?;
    compiler
        .args(STRICT)
        .arg("-O1")
        .arg("-I")
        .arg(&layout.includedir)
        .arg("-o")
        .arg(&program)
        .arg(source(name));
    process::quiet(compiler.args(flags))?;
    run_apart(command(&program, args).env(library_path_variable(), &layout.libdir), &program)
}

fn cpp_program(layout: &Layout, built: &Built) -> Result<(), String> {
    needs_cxx()?;
    build_and_run(cxx(), "ways_cpp.cc", layout, &link_flags(Link::Shared, layout, built), &[])
}

/// As the README says: the compiler, two directories, one library.
fn by_hand(layout: &Layout, _: &Built) -> Result<(), String> {
    let program = program_path(Path::new("by-hand"), Link::Shared)?;
    let mut compiler = cc();
    compiler.arg("-o").arg(&program).arg(source("demo.c")).arg(format!("-I{}", layout.includedir.display()));
    process::quiet(compiler.arg(format!("-L{}", layout.libdir.display())).arg("-lblosc2"))?;
    let mut run = command(&program, [source("demo.c")]);
    run_apart(run.env(library_path_variable(), &layout.libdir), &program)
}

fn loaded_at_run_time(layout: &Layout, _: &Built) -> Result<(), String> {
    let library = layout.lib(shared_library_name());
    build_and_run(cc(), "ways_dlopen.c", layout, &["-ldl".to_string()], &[library])
}

/// A plugin and its host, both made from one source.
fn inside_the_loader(layout: &Layout, built: &Built) -> Result<(), String> {
    let plugin = paths::target().join("capi-tests/loader.so");
    let mut compiler = cc();
    compiler
        .args(["-O1", "-shared", "-fPIC", "-DAS_PLUGIN"])
        .args(STRICT)
        .arg("-I")
        .arg(&layout.includedir)
        .arg("-o")
        .arg(&plugin)
        .arg(source("ways_loader.c"));
    process::quiet(compiler.args(link_flags(Link::Shared, layout, built)))?;
    let flags = ["-ldl", "-lpthread"].map(str::to_string);
    build_and_run(cc(), "ways_loader.c", layout, &flags, &[plugin, layout.lib(shared_library_name())])
}

fn python_ctypes(layout: &Layout, _: &Built) -> Result<(), String> {
    let python = || process::tool("PYTHON", "python3");
    if !process::exists(python()) {
        return Err(format!("{SKIPPED}no Python on this machine"));
    }
    let mut run = python();
    // It writes into the directory that it is told: the one where it runs.
    run.arg(source("ways_ctypes.py")).arg(&layout.libdir).arg(".");
    run_apart(&mut run, Path::new("ctypes"))
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
        let mut compiler = cc();
        compiler
            .args(["-O1", "-shared", "-fPIC"])
            .args(STRICT)
            .arg(format!("-DPLUGIN={kind}"))
            .arg("-I")
            .arg(&layout.includedir);
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
    let found = cc().arg("-o").arg(probe.with_extension("out")).arg(&probe).arg("-lzstd").output();
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
    let mut compiler = cc();
    compiler
        .args(["-O1", "-shared", "-fPIC", "-I"])
        .arg(&layout.includedir)
        .arg("-o")
        .arg(&object)
        .arg(&source);
    process::quiet(compiler.args(link_flags(Link::Static, layout, built)))?;
    symbols::check_exports(&object, &["extension"])
}

/// What a packager does: system paths below another directory. Uninstalling leaves no file.
fn staged(_: &Layout, _: &Built) -> Result<(), String> {
    let stage = paths::target().join("stage");
    let _ = std::fs::remove_dir_all(&stage);
    let args = ["--prefix=/usr", "--libdir=lib/x86_64-linux-gnu", &format!("--destdir={}", stage.display())]
        .map(str::to_string);
    install_with_tight_umask(&args)?;
    everybody_reads(&stage)?;
    let libdir = stage.join("usr/lib/x86_64-linux-gnu");
    let pc = paths::read(&libdir.join("pkgconfig/blosc2.pc"))?;
    if !pc.starts_with("prefix=/usr\nlibdir=${prefix}/lib/x86_64-linux-gnu\n")
        || !libdir.join("libblosc2.so.9").exists()
    {
        return Err(format!("wrong layout, or a wrong blosc2.pc:\n{pc}"));
    }
    install::uninstall(&args)?;
    let left = paths::files_below(&stage, "")?;
    if left.is_empty() { Ok(()) } else { Err(format!("left behind: {left:?}")) }
}

/// Installs as somebody does whose files are for nobody else.
#[cfg(unix)]
fn install_with_tight_umask(args: &[String]) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut shell = command("sh", ["-c", r#"umask 077 && exec "$0" install "$@""#]);
    process::quiet(shell.arg(program).args(args))
}

#[cfg(not(unix))]
fn install_with_tight_umask(args: &[String]) -> Result<(), String> {
    install::run_quietly(args).map(drop)
}

/// Fails if a file below a directory, or a directory, is not for everybody to read.
fn everybody_reads(stage: &Path) -> Result<(), String> {
    #[cfg(unix)]
    for file in paths::files_below(stage, "")? {
        use std::os::unix::fs::PermissionsExt;
        for path in file.ancestors().take_while(|&path| path != stage) {
            let wanted = if path.is_dir() { 0o555 } else { 0o444 };
            let mode = path.metadata().map_err(|e| format!("{}: {e}", path.display()))?.permissions().mode();
            if mode & wanted != wanted {
                return Err(format!("{} has mode {mode:o}", path.display()));
            }
        }
    }
    Ok(())
}

fn pkg_config(layout: &Layout, _: &Built) -> Result<(), String> {
    if !process::exists(pkg_config_tool()) {
        return Err(format!("{SKIPPED}no pkg-config on this machine"));
    }
    let moved = paths::target().join("dist-moved");
    let _ = std::fs::remove_dir_all(&moved);
    process::run(command("cp", ["-a"]).arg(&layout.prefix).arg(&moved))?;
    let ask = |options: &[&str]| ask_pkg_config(&moved.join("lib"), options);
    if ask(&["--modversion"])? != [install::version()] {
        return Err("blosc2.pc has another version".to_string());
    }
    for (mut flags, only_static) in
        [(ask(&["--cflags", "--libs"])?, false), (ask(&["--static", "--cflags", "--libs"])?, true)]
    {
        if !flags.iter().any(|flag| flag.contains("dist-moved")) {
            return Err(format!("the flags do not follow the installation: {flags:?}"));
        }
        if only_static {
            // With both libraries in one place, the linker would take the shared one.
            let _ = std::fs::remove_file(moved.join("lib").join(shared_library_name()));
        }
        demo_with_flags("pkgconfig", Link::Shared, &flags, &moved.join("lib"))?;
        if !only_static {
            continue;
        }
        if has_static_libc() {
            flags.insert(0, "-static".to_string());
            demo_with_flags("pkgconfig-alone", Link::Static, &flags, &moved.join("lib"))?;
        } else {
            println!(
                "skipped in pkgconfig-alone: a program without shared libraries, as there is no static libc"
            );
        }
    }
    Ok(())
}

/// Whether programs can be made that need no shared libraries at all.
fn has_static_libc() -> bool {
    let program = paths::target().join("capi-tests/static-libc");
    let source = program.with_extension("c");
    std::fs::write(&source, "int main(void) { return 0; }\n").is_ok()
        && process::quiet(cc().args(["-static", "-o"]).arg(&program).arg(&source)).is_ok()
}

fn pkg_config_tool() -> Command {
    process::tool("PKG_CONFIG", "pkg-config")
}

/// What pkg-config says about the library in a directory.
fn ask_pkg_config(libdir: &Path, options: &[&str]) -> Result<Vec<String>, String> {
    let mut query = pkg_config_tool();
    process::words(query.args(options).arg("blosc2").env("PKG_CONFIG_PATH", libdir.join("pkgconfig")))
}

/// Compiles the demo with the flags that somebody gave, and runs it.
fn demo_with_flags(name: &str, link: Link, flags: &[String], libdir: &Path) -> Result<(), String> {
    let program = program_path(Path::new(name), link)?;
    process::quiet(cc().arg("-o").arg(&program).arg(source("demo.c")).args(flags))?;
    run_apart(command(&program, [source("demo.c")]).env(library_path_variable(), libdir), &program)
}

fn cmake(layout: &Layout, _: &Built) -> Result<(), String> {
    if !process::exists(Command::new("cmake")) {
        return Err(format!("{SKIPPED}no cmake on this machine"));
    }
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", layout.prefix.display());
    let build = cmake_build("cmake", "cmake", &[prefix])?;
    for program in ["demo_shared", "demo_static", "demo_default"] {
        run_apart(&mut command(build.join(program), [source("demo.c")]), Path::new(program))?;
    }
    // Where /lib is a link to /usr/lib, the package may be found below /, which has no headers.
    let root = paths::target().join("capi-tests/cmake-root");
    paths::make_dir(&root)?;
    process::run(command("ln", ["-sfn"]).arg(&layout.libdir).arg(root.join("lib")))?;
    cmake_build("cmake", "cmake-linked", &[format!("-DCMAKE_PREFIX_PATH={}", root.display())]).map(drop)
}

/// Configures and builds a CMake project of `capi-tests/`; tells where.
fn cmake_build(project: &str, name: &str, definitions: &[String]) -> Result<PathBuf, String> {
    let build = paths::target().join("capi-tests").join(name);
    let _ = std::fs::remove_dir_all(&build);
    let mut configure = command("cmake", ["-S"]);
    configure.arg(source(project)).arg("-B").arg(&build).args(definitions);
    process::quiet(&mut configure)?;
    process::quiet(command("cmake", ["--build"]).arg(&build))?;
    Ok(build)
}

/// A project that builds the library as a part of itself, and installs it with its own programs.
fn cmake_subproject(_: &Layout, _: &Built) -> Result<(), String> {
    if !process::exists(Command::new("cmake")) {
        return Err(format!("{SKIPPED}no cmake on this machine"));
    }
    asks_for_the_platform()?;
    built_inside("cmake-subdirectory", &["-DFETCH=OFF"])?;
    let build = built_inside("cmake-fetch", &["-DFETCH=ON"])?;
    installed_from(&build, "cmake-again").map(drop)
}

/// A build for another platform does not begin before it knows Rust's name of it.
fn asks_for_the_platform() -> Result<(), String> {
    let build = paths::target().join("capi-tests/cmake-cross");
    let _ = std::fs::remove_dir_all(&build);
    let mut configure = command("cmake", ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_C_COMPILER=cc", "-S"]);
    configure.arg(paths::root()).arg("-B").arg(&build);
    match process::quiet(&mut configure) {
        Err(why) if why.contains("BLOSC2_CARGO_TARGET") => {
            process::quiet(configure.arg("-DBLOSC2_CARGO_TARGET=aarch64-unknown-linux-gnu"))
        }
        Err(why) => Err(why),
        Ok(()) => Err("CMake would build for this platform in place of another".to_string()),
    }
}

/// The same with the codecs of the system, which then are libraries that ours needs.
fn cmake_system_codecs(_: &Layout, _: &Built) -> Result<(), String> {
    if !process::exists(Command::new("cmake")) {
        return Err(format!("{SKIPPED}no cmake on this machine"));
    }
    system_codecs_exist()?;
    // As in `system_codecs`, with which it shares the build.
    let options = ["-DFETCH=ON", "-DEXTERNAL=ON", "-DBLOSC2_CARGO_DEBUG=ON"];
    let build = built_inside("cmake-system", &options)?;
    let prefix = installed_from(&build, "cmake-system-again")?;
    let library = prefix.join("lib").join(shared_library_name());
    let needed = process::output(command("readelf", ["-d"]).arg(&library))?;
    match SYSTEM_CODECS.iter().find(|codec| !needed.contains(&format!("[lib{}.so", codec.library))) {
        Some(codec) => Err(format!("{} does not need lib{}:\n{needed}", library.display(), codec.library)),
        None => Ok(()),
    }
}

/// Builds the project in `capi-tests/cmake-subproject`, runs its programs, and tells where they are.
fn built_inside(name: &str, options: &[&str]) -> Result<PathBuf, String> {
    let mut definitions = vec![
        format!("-DBLOSC2_SOURCE={}", paths::root().display()),
        // Shared with this build, of which nothing needs to be repeated.
        format!("-DBLOSC2_CARGO_TARGET_DIR={}", paths::target().display()),
        "-DCMAKE_INSTALL_LIBDIR=lib".to_string(),
        "-DCMAKE_INSTALL_INCLUDEDIR=headers".to_string(),
    ];
    definitions.extend(options.iter().map(|option| (*option).to_string()));
    let build = cmake_build("cmake-subproject", name, &definitions)?;
    for program in ["demo_shared", "demo_static", "demo_default", "alias_shared", "alias_static"] {
        run_apart(&mut command(build.join(program), [source("demo.c")]), Path::new(program))?;
    }
    Ok(build)
}

/// Installs such a project, tells where, and uses what was installed, which is a package like any other, in a build
/// with the given name.
fn installed_from(build: &Path, again: &str) -> Result<PathBuf, String> {
    let prefix = build.join("installed");
    process::quiet(command("cmake", ["--install"]).arg(build).arg("--prefix").arg(&prefix))?;
    symbols::check_shared(&prefix.join("lib").join(shared_library_name()))?;
    symbols::check_static(&prefix.join("lib/libblosc2.a"))?;
    let pc = paths::read(&prefix.join("lib/pkgconfig/blosc2.pc"))?;
    if !pc.contains("\nincludedir=${prefix}/headers\n") {
        return Err(format!("a blosc2.pc with another place of the headers:\n{pc}"));
    }
    run_apart(&mut command(prefix.join("bin/demo_shared"), [source("demo.c")]), Path::new("demo_shared"))?;
    let found = cmake_build("cmake", again, &[format!("-DCMAKE_PREFIX_PATH={}", prefix.display())])?;
    run_apart(&mut command(found.join("demo_default"), [source("demo.c")]), Path::new("demo_default"))?;
    Ok(prefix)
}

/// Whether the codecs of the system can be linked with.
fn system_codecs_exist() -> Result<(), String> {
    process::quiet(pkg_config_tool().arg("--exists").args(SYSTEM_CODECS.map(|codec| codec.package)))
        .map_err(|_| format!("{SKIPPED}no pkg-config, or not liblz4, zlib and libzstd with headers"))
}

/// A distribution's build: the codecs are other packages, and `blosc2.pc` says so for static linking.
fn system_codecs(_: &Layout, _: &Built) -> Result<(), String> {
    system_codecs_exist()?;
    let layout = Layout::below(paths::target().join("dist-system"));
    let features = SYSTEM_CODECS.map(|codec| codec.feature.to_string()).to_vec();
    // What is shown is how the parts fit; the optimised build would take minutes.
    let options = build::Options { debug: true, features, ..build::Options::default() };
    install::install(&layout, &options)?;
    symbols::check_shared(&layout.lib(shared_library_name()))?;
    symbols::check_static(&layout.lib("libblosc2.a"))?;
    let ask = |options: &[&str]| ask_pkg_config(&layout.libdir, options);
    let shared = ask(&["--cflags", "--libs"])?;
    let fixed = ask(&["--static", "--cflags", "--libs"])?;
    for codec in SYSTEM_CODECS {
        let flag = codec.flag();
        if shared.contains(&flag) || !fixed.contains(&flag) {
            return Err(format!("{flag} belongs in the static flags alone:\n{shared:?}\n{fixed:?}"));
        }
    }
    for (flags, link) in [(shared, Link::Shared), (fixed, Link::Static)] {
        if let Link::Static = link {
            // With both libraries in one place, the linker would take the shared one.
            let _ = std::fs::remove_file(layout.lib(shared_library_name()));
        }
        demo_with_flags("system", link, &flags, &layout.libdir)?;
    }
    let needed = process::output(command("readelf", ["-d"]).arg(layout.lib("libblosc2.so.9")))?;
    match ["liblz4.so", "libz.so", "libzstd.so"].into_iter().find(|name| !needed.contains(name)) {
        None => Ok(()),
        Some(name) => Err(format!("the shared library does not load {name}:\n{needed}")),
    }
}
