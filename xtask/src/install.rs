//! `cargo xtask install` and `uninstall`: libraries, headers, pkg-config and CMake files, as packagers expect them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::build::{self, Built, Options, SYSTEM_CODECS, Visibility};
use crate::headers::HEADERS;
use crate::paths;
use crate::process;
use crate::words::Words;

/// The version of the C API, as its header states it: in the file name of the shared library, `blosc2.pc` and the CMake
/// package.
pub fn version() -> &'static str {
    let header = include_str!("../../cbindgen/blosc2.h.in");
    let stated = header.lines().find_map(|line| line.strip_prefix("#define BLOSC2_VERSION_STRING \""));
    stated.and_then(|text| text.strip_suffix('"')).expect("the header states the version")
}

/// The number in the soname.
const SOVERSION: &str = "9";

/// Where an installation goes.
pub struct Layout {
    /// The prefix, as programs will see it.
    pub prefix: PathBuf,
    /// The directory of the libraries, as programs will see it.
    pub libdir: PathBuf,
    /// The directory of the headers, as programs will see it.
    pub includedir: PathBuf,
    /// Put before each path when files are written; for packages.
    pub destdir: Option<PathBuf>,
}

impl Layout {
    /// Everything under `prefix`, libraries in `lib`.
    pub fn below(prefix: PathBuf) -> Layout {
        Layout { libdir: prefix.join("lib"), includedir: prefix.join("include"), prefix, destdir: None }
    }

    /// Where a file of the installation is written.
    fn real(&self, path: &Path) -> PathBuf {
        match &self.destdir {
            None => path.to_path_buf(),
            Some(destdir) => {
                let inside = path.components().filter(|part| matches!(part, Component::Normal(_)));
                destdir.join(inside.collect::<PathBuf>())
            }
        }
    }

    /// A file in the directory of the libraries, where it is written.
    pub fn lib(&self, name: &str) -> PathBuf {
        self.real(&self.libdir.join(name))
    }

    /// From the directory of the libraries to the prefix, as in `../..`; none if the one is not below the other.
    fn up_from_libdir(&self) -> Option<String> {
        let below = self.libdir.strip_prefix(&self.prefix).ok()?;
        Some(below.components().map(|_| "..").collect::<Vec<_>>().join("/"))
    }

    /// The directories that an installation makes below those of all libraries and headers, lower ones first.
    fn own_directories(&self) -> Vec<PathBuf> {
        let below_libdir = ["cmake/blosc2", "cmake", "pkgconfig"].map(|name| self.libdir.join(name));
        let below_prefix = [DOCS, "share/doc"].map(|name| self.prefix.join(name));
        std::iter::once(self.includedir.join("blosc2")).chain(below_libdir).chain(below_prefix).collect()
    }

    /// The texts about licences, with the path that readers will see.
    fn texts(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        LICENCES.into_iter().map(|name| (name, self.prefix.join(DOCS).join(name)))
    }

    /// Every file that is installed, with the path that programs will see. Of the texts, one may be missing.
    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = HEADERS.iter().map(|name| self.includedir.join(name)).collect();
        files.extend(shared_names().map(|name| self.libdir.join(name)));
        files.push(self.libdir.join("libblosc2.a"));
        files.push(self.libdir.join("pkgconfig/blosc2.pc"));
        files.extend(CMAKE_FILES.map(|name| self.libdir.join("cmake/blosc2").join(name)));
        files.extend(self.texts().map(|(_, path)| path));
        files
    }
}

/// The shared library's file, then the links to it: soname, and the name for linking.
fn shared_names() -> [String; 3] {
    let version = version();
    if cfg!(target_os = "macos") {
        [
            format!("libblosc2.{version}.dylib"),
            format!("libblosc2.{SOVERSION}.dylib"),
            "libblosc2.dylib".to_string(),
        ]
    } else {
        [format!("libblosc2.so.{version}"), format!("libblosc2.so.{SOVERSION}"), "libblosc2.so".to_string()]
    }
}

/// The files of the CMake package; their templates are in `cmake/`.
const CMAKE_FILES: [&str; 3] = ["Blosc2Config.cmake", "Blosc2ConfigVersion.cmake", "Blosc2Targets.cmake"];

/// The texts about licences, in the top directory as far as they exist.
const LICENCES: [&str; 2] = ["LICENSE", "THIRD-PARTY-NOTICES.md"];

/// Where these go below the prefix.
const DOCS: &str = "share/doc/libblosc2-rs";

/// The command line of install and uninstall.
struct Arguments {
    layout: Layout,
    options: Options,
    /// Where `CMakeLists.txt` wants the objects of which it makes its targets.
    objects: Option<PathBuf>,
}

fn arguments(args: &[String]) -> Result<Arguments, String> {
    let (mut prefix, mut libdir, mut includedir, mut destdir, mut objects) = (None, None, None, None, None);
    let mut options = Options::default();
    let mut words = Words::new(args);
    while let Some(word) = words.next() {
        match word {
            "--prefix" => prefix = Some(PathBuf::from(words.value()?)),
            "--libdir" => libdir = Some(PathBuf::from(words.value()?)),
            "--includedir" => includedir = Some(PathBuf::from(words.value()?)),
            "--destdir" => destdir = Some(PathBuf::from(words.value()?)),
            "--objects" => objects = Some(PathBuf::from(words.value()?)),
            "--features" => {
                let features = words.value()?.split([',', ' ']).filter(|feature| !feature.is_empty());
                options.features.extend(features.map(str::to_string));
            }
            "--target" => options.target = Some(words.value()?.to_string()),
            "--debug" => options.debug = true,
            "--no-strip" => options.no_strip = true,
            _ => return Err(words.unknown()),
        }
    }
    let absolute = |path: PathBuf| std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()));
    let given = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
    let prefix = absolute(given(prefix).ok_or("--prefix is needed")?)?;
    // `--destdir "$DESTDIR"` with the variable unset asks for none.
    let destdir = given(destdir).map(absolute).transpose()?;
    let objects = objects.map(absolute).transpose()?;
    // Relative ones count from the prefix, as GNU tools take them.
    let below = |dir: Option<PathBuf>, usual: &str| prefix.join(dir.unwrap_or_else(|| PathBuf::from(usual)));
    let (libdir, includedir) = (below(libdir, "lib"), below(includedir, "include"));
    Ok(Arguments { layout: Layout { prefix, libdir, includedir, destdir }, options, objects })
}

/// The command `install`.
pub fn run(args: &[String]) -> Result<(), String> {
    let layout = run_quietly(args)?;
    for file in layout.files().iter().map(|file| layout.real(file)).filter(|file| file.exists()) {
        println!("{}", file.display());
    }
    Ok(())
}

/// The command `install` without its output; returns where things went.
pub fn run_quietly(args: &[String]) -> Result<Layout, String> {
    let arguments = arguments(args)?;
    let built = install(&arguments.layout, &arguments.options)?;
    if let Some(dir) = arguments.objects {
        for (name, visibility) in [("static", Visibility::Hidden), ("shared", Visibility::Exported)] {
            let object = dir.join(format!("blosc2-{name}.o"));
            build::localised_object(&built.archive, &object, visibility, &arguments.options)?;
        }
    }
    Ok(arguments.layout)
}

/// The command `uninstall`.
pub fn uninstall(args: &[String]) -> Result<(), String> {
    let layout = arguments(args)?.layout;
    for file in layout.files() {
        let real = layout.real(&file);
        let _ = fs::remove_file(paths::unfinished(&real));
        match fs::remove_file(&real) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(format!("{}: {e}", real.display())),
        }
    }
    // Fails, as it should, where somebody else put a file. Of the directories above these nobody knows who made them.
    for dir in layout.own_directories() {
        let _ = fs::remove_dir(layout.real(&dir));
    }
    Ok(())
}

/// Builds and installs.
pub fn install(layout: &Layout, options: &Options) -> Result<Built, String> {
    check_writable(layout)?;
    build::check_tools(options)?;
    let built = build::libraries(options)?;
    // Before anything is written: an error in a template leaves nothing half done.
    let pc = pkg_config(layout, &built);
    let package = CMAKE_FILES.map(|name| {
        let template = paths::read(&paths::root().join("cmake").join(format!("{name}.in")))?;
        Ok((name, cmake(&template, layout, &built)?))
    });
    let package = package.into_iter().collect::<Result<Vec<_>, String>>()?;
    #[cfg(unix)]
    make_directories(layout)?;
    for name in HEADERS {
        let header = paths::root().join("include").join(name);
        paths::replace(&layout.real(&layout.includedir.join(name)), |new| paths::copy(&header, new))?;
    }
    install_shared(layout, &built, options)?;
    build::localised_archive(&built.archive, &layout.lib("libblosc2.a"), options)?;
    paths::replace(&layout.lib("pkgconfig/blosc2.pc"), |new| paths::write(new, pc))?;
    for (name, text) in package {
        paths::replace(&layout.lib("cmake/blosc2").join(name), |new| paths::write(new, text))?;
    }
    for (name, installed) in layout.texts() {
        let text = paths::root().join(name);
        if text.exists() {
            paths::replace(&layout.real(&installed), |new| paths::copy(&text, new))?;
        }
    }
    #[cfg(unix)]
    make_readable(layout)?;
    Ok(built)
}

/// Fails before a long build, and not after it, where files cannot be made.
fn check_writable(layout: &Layout) -> Result<(), String> {
    let dir_of = |file: PathBuf| file.ancestors().skip(1).find(|dir| dir.exists()).map(Path::to_path_buf);
    let dirs: BTreeSet<PathBuf> =
        layout.files().iter().filter_map(|file| dir_of(layout.real(file))).collect();
    for dir in dirs {
        let probe = paths::unfinished(&dir.join("libblosc2"));
        fs::write(&probe, "")
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|e| format!("nothing can be installed in {}: {e}", dir.display()))?;
    }
    Ok(())
}

/// Makes the directories that are missing. Everybody may enter them, whatever this process does with its own.
#[cfg(unix)]
fn make_directories(layout: &Layout) -> Result<(), String> {
    for file in layout.files() {
        let file = layout.real(&file);
        let Some(dir) = file.parent() else { continue };
        let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
        paths::make_dir(dir)?;
        for dir in missing {
            set_mode(dir, 0o755)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Lets everybody read what was installed, however the sources, the build and this process keep their files to
/// themselves.
#[cfg(unix)]
fn make_readable(layout: &Layout) -> Result<(), String> {
    let shared = layout.lib(&shared_names()[0]);
    for file in layout
        .files()
        .iter()
        .map(|file| layout.real(file))
        .filter(|file| file.is_file() && !file.is_symlink())
    {
        set_mode(&file, if file == shared { 0o755 } else { 0o644 })?;
    }
    Ok(())
}

fn install_shared(layout: &Layout, built: &Built, options: &Options) -> Result<(), String> {
    let [file, links @ ..] = shared_names();
    let installed = layout.lib(&file);
    paths::replace(&installed, |new| match options.strips() {
        true => {
            let mut strip = process::tool("STRIP", "strip");
            process::run(strip.arg("--strip-unneeded").arg("-o").arg(new).arg(&built.shared))
        }
        false => paths::copy(&built.shared, new),
    })?;
    for link in links {
        let link = layout.lib(&link);
        #[cfg(unix)]
        paths::replace(&link, |new| {
            std::os::unix::fs::symlink(&file, new).map_err(|e| format!("{}: {e}", link.display()))
        })?;
        #[cfg(not(unix))]
        paths::replace(&link, |new| paths::copy(&installed, new))?;
    }
    Ok(())
}

/// The text of `blosc2.pc`. It finds its prefix from its own place, so an installation can be moved, except for one in
/// `/usr`: directories that the compiler knows anyway would go before others, since pkg-config leaves them out by their
/// names alone.
fn pkg_config(layout: &Layout, built: &Built) -> String {
    let prefix = match layout.up_from_libdir() {
        Some(up) if layout.prefix != Path::new("/usr") => format!("${{pcfiledir}}/../{up}"),
        _ => escaped(&layout.prefix),
    };
    let place = |dir: &Path| match dir.strip_prefix(&layout.prefix) {
        Ok(below) => format!("${{prefix}}/{}", escaped(below)),
        Err(_) => escaped(dir),
    };
    let (libdir, includedir) = (place(&layout.libdir), place(&layout.includedir));
    let requires: Vec<&str> = built.system.iter().map(|codec| codec.package).collect();
    let requires = if requires.is_empty() {
        String::new()
    } else {
        format!("Requires.private: {}\n", requires.join(", "))
    };
    format!(
        "prefix={prefix}\nlibdir={libdir}\nincludedir={includedir}\n\n\
         Name: blosc2\n\
         Description: Compressed chunks, super-chunks and n-dimensional arrays (libblosc2-rs)\n\
         Version: {}\n\n\
         {requires}Libs: -L${{libdir}} -lblosc2\n\
         Libs.private: {}\n\
         Cflags: -I${{includedir}}\n",
        version(),
        built.native_libs
    )
}

/// A path for `blosc2.pc`, which is split into words as a shell does, after variables were put in. A backslash before
/// each character that could mean something also keeps `$` and `{` apart, which would be a variable.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for c in path.display().to_string().chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !"/._-+=@:,%~".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// A path between the quotes of a CMake file.
fn quoted(path: &Path) -> String {
    path.display().to_string().replace('\\', r"\\").replace('"', "\\\"").replace('$', "\\$")
}

/// A file of the CMake package from its template.
fn cmake(template: &str, layout: &Layout, built: &Built) -> Result<String, String> {
    let prefix = match layout.up_from_libdir() {
        Some(up) => format!("${{_blosc2_here}}/../../{up}"),
        None => quoted(&layout.prefix),
    };
    let place = |dir: &Path| match dir.strip_prefix(&layout.prefix) {
        Ok(below) => format!("${{_blosc2_prefix}}/{}", quoted(below)),
        Err(_) => quoted(dir),
    };
    let runtime = built.native_libs.split_whitespace().map(|flag| flag.strip_prefix("-l").unwrap_or(flag));
    let libs: Vec<&str> = built.system.iter().map(|codec| codec.library).chain(runtime).collect();
    let [file, soname, _] = shared_names();
    let external = |name: &str| SYSTEM_CODECS.iter().find(|codec| name == codec.codec);
    fill_in(template, |word| {
        Some(match word {
            "DEPENDENCY_MODE" if built.system.is_empty() => "BUNDLED".to_string(),
            "DEPENDENCY_MODE" => "EXTERNAL".to_string(),
            "VERSION" => version().to_string(),
            "POINTER_SIZE" => built.pointer_size.to_string(),
            "PREFIX" => prefix.clone(),
            "LIBDIR" => place(&layout.libdir),
            "INCLUDEDIR" => place(&layout.includedir),
            "SHARED_FILE" => file.clone(),
            "SONAME" => soname.clone(),
            "NATIVE_LIBS" => libs.join(";"),
            _ => {
                let codec = external(word.strip_prefix("EXTERNAL_")?)?;
                if built.system.contains(codec) { "ON" } else { "OFF" }.to_string()
            }
        })
    })
}

/// A template with its placeholders, as `@WORD@`, replaced by what `value` says. What is put in is not looked at again.
fn fill_in(template: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let (mut text, mut unknown, mut rest) = (String::new(), Vec::new(), template);
    while let Some((before, after)) = rest.split_once('@') {
        text.push_str(before);
        match after.split_once('@') {
            Some((word, behind)) if is_word(word) => {
                match value(word) {
                    Some(value) => text.push_str(&value),
                    None => unknown.push(format!("@{word}@")),
                }
                rest = behind;
            }
            _ => {
                text.push('@');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    match unknown.is_empty() {
        true => Ok(text),
        false => Err(format!("a CMake template has unknown placeholders: {}", unknown.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn parsed(args: &[&str]) -> Result<Arguments, String> {
        arguments(&args.iter().map(|arg| (*arg).to_string()).collect::<Vec<_>>())
    }

    fn built() -> Built {
        Built {
            shared: PathBuf::new(),
            archive: PathBuf::new(),
            native_libs: "-lm".to_string(),
            system: vec![],
            runner: None,
            pointer_size: 8,
        }
    }

    /// Nobody, root neither, makes files there.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_prefix_without_room_for_files_is_told_at_once() {
        let why = check_writable(&Layout::below(PathBuf::from("/proc"))).unwrap_err();
        assert!(why.starts_with("nothing can be installed in /proc: "), "{why}");
    }

    /// A package of 32-bit libraries is for 32-bit programs.
    #[test]
    fn the_cmake_package_is_for_programs_of_the_word_size_built_for() {
        let template = paths::read(&paths::root().join("cmake/Blosc2ConfigVersion.cmake.in")).unwrap();
        for pointer_size in [4, 8] {
            let built = Built { pointer_size, ..built() };
            let text = cmake(&template, &Layout::below(PathBuf::from("/opt/b")), &built).unwrap();
            assert!(text.contains(&format!("NOT CMAKE_SIZEOF_VOID_P EQUAL {pointer_size})")), "{text}");
        }
    }

    /// Templates are looked at, not what is put in.
    #[test]
    fn placeholders_are_those_of_the_template() {
        let layout = Layout { libdir: "/l@X@d/@LIBDIR@".into(), ..Layout::below("/opt/b@Y@".into()) };
        for name in CMAKE_FILES {
            let template = paths::read(&paths::root().join("cmake").join(format!("{name}.in"))).unwrap();
            let text = cmake(&template, &layout, &built()).unwrap();
            let expected = "set(_blosc2_libdir \"/l@X@d/@LIBDIR@\")\n";
            assert_eq!(text.contains(expected), name == "Blosc2Targets.cmake", "{text}");
        }
        let why = cmake("a@b.c @ONE@@VERSION@ x@y@SONAME@ @@TWO@", &layout, &built()).unwrap_err();
        assert_eq!(why, "a CMake template has unknown placeholders: @ONE@, @TWO@");
        assert_eq!(cmake("a@b @@VERSION@@ @", &layout, &built()).unwrap(), format!("a@b @{}@ @", version()));
        let layout = Layout { libdir: "/a ${b}\\\"".into(), ..layout };
        assert_eq!(cmake("@LIBDIR@", &layout, &built()).unwrap(), "/a \\${b}\\\\\\\"");
    }

    /// As pkg-config itself reads them.
    #[test]
    fn directories_of_any_name_are_told_by_pkg_config() {
        if !process::exists(process::tool("PKG_CONFIG", "pkg-config")) {
            let _ = std::io::stderr().write_all(b"skipped: what pkg-config reads, which is missing\n");
            return;
        }
        let dir = paths::target().join("xtask-tests/pkgconfig");
        for (name, place) in ["a b", "a$b", "a$$b", "${HOME}", "$(x)", "l@X@d", "a#b'c\"d\\e", "\u{e4}"]
            .into_iter()
            .enumerate()
        {
            let (lib, include) = (format!("/l/{place}"), format!("/i/{place}"));
            let layout = Layout {
                libdir: lib.clone().into(),
                includedir: include.clone().into(),
                ..Layout::below("/opt/b".into())
            };
            paths::write(&dir.join(format!("odd{name}.pc")), pkg_config(&layout, &built())).unwrap();
            let mut ask = process::tool("PKG_CONFIG", "pkg-config");
            ask.args(["--cflags", "--libs"]).arg(format!("odd{name}")).env("PKG_CONFIG_PATH", &dir);
            let flags = process::words(&mut ask).unwrap();
            assert_eq!(flags, [format!("-I{include}"), format!("-L{lib}"), "-lblosc2".to_string()]);
        }
    }

    #[test]
    fn libdir_counts_from_the_prefix_and_destdir_goes_before_all() {
        let layout = parsed(&["--prefix=/usr", "--libdir", "lib/x86", "--destdir", "/tmp/d"]).unwrap().layout;
        assert_eq!(layout.libdir, Path::new("/usr/lib/x86"));
        assert_eq!(layout.lib("libblosc2.a"), Path::new("/tmp/d/usr/lib/x86/libblosc2.a"));
        assert_eq!(layout.up_from_libdir().as_deref(), Some("../.."));
        let none = parsed(&["--prefix=/usr", "--destdir="]).unwrap().layout;
        assert_eq!(none.lib("libblosc2.a"), Path::new("/usr/lib/libblosc2.a"));
        assert!(parsed(&[]).is_err());
        assert!(parsed(&["--prefix="]).is_err());
        assert!(parsed(&["--prefix"]).is_err());
        assert!(parsed(&["--prefix", "/usr", "--what"]).is_err());
    }

    /// What others put beside it stays, with its directory.
    #[test]
    fn uninstall_takes_directories_that_are_empty_then() {
        let prefix = paths::target().join("xtask-tests/uninstall");
        let _ = fs::remove_dir_all(&prefix);
        let layout = Layout::below(prefix.clone());
        for file in layout.files() {
            paths::write(&file, "").unwrap();
        }
        let other = layout.lib("pkgconfig/other.pc");
        paths::write(&other, "").unwrap();
        let args = [format!("--prefix={}", prefix.display())];
        uninstall(&args).unwrap();
        assert_eq!(paths::files_below(&prefix, "").unwrap(), std::slice::from_ref(&other));
        assert!(layout.includedir.exists() && !layout.includedir.join("blosc2").exists());
        assert!(layout.libdir.exists() && !layout.lib("cmake").exists());
        assert!(prefix.join("share").exists() && !prefix.join("share/doc").exists());
        fs::remove_file(other).unwrap();
        uninstall(&args).unwrap();
        assert!(layout.libdir.exists() && !layout.lib("pkgconfig").exists());
    }

    /// What cannot take the versions from where they are stated says the same.
    #[test]
    fn versions_agree() {
        let (version, soversion) = (version(), SOVERSION);
        for (file, text) in [
            ("src/capi/consts.rs", format!("BLOSC2_VERSION_STRING: &CStr = c\"{version}\";")),
            (
                "Cargo.toml",
                format!("of the C library is {soversion}, in releases 3.x.\nversion = \"{soversion}."),
            ),
            ("Cargo.toml", format!("(libblosc2-rs)\"\nversion = \"{version}\"\n")),
            ("build.rs", format!("-soname,libblosc2.so.{soversion}\"")),
            ("build.rs", format!("@rpath/libblosc2.{soversion}.dylib\"")),
            ("cmake/Targets.cmake", format!(" SOVERSION {soversion})")),
        ] {
            let found = paths::read(&paths::root().join(file)).unwrap().contains(&text);
            assert!(found, "{file} does not say {text}");
        }
    }

    /// What packagers are told about licences holds for each package that is linked.
    #[test]
    fn licences_of_packages_are_told() {
        let told = paths::read(&paths::root().join("docs/migration.md")).unwrap();
        let rows: Vec<&str> = told.lines().filter(|line| line.starts_with('|')).collect();
        let mut tree = process::cargo();
        tree.args(["tree", "--offline", "--package", "libblosc2-rs", "--edges", "normal"]);
        let packages = process::output(tree.args(["--prefix", "none", "--format", "{p}|{l}"])).unwrap();
        for package in packages.lines().skip(1) {
            let (package, licence) = package.trim_end_matches(" (*)").split_once('|').unwrap();
            let name = package.split(' ').next().unwrap();
            let said = rows.iter().any(|row| row.contains(name) && row.contains(licence));
            assert!(said || licence == "MIT OR Apache-2.0", "{package}: {licence}");
        }
    }

    #[test]
    fn pkg_config_is_relocatable_unless_it_is_of_the_system_or_libdir_is_elsewhere() {
        let mut built = built();
        let near = pkg_config(&Layout::below(PathBuf::from("/opt/b")), &built);
        assert!(near.starts_with("prefix=${pcfiledir}/../..\nlibdir=${prefix}/lib\n"), "{near}");
        let system = Layout { libdir: "/usr/lib/x86".into(), ..Layout::below("/usr".into()) };
        let system = pkg_config(&system, &built);
        assert!(system.starts_with("prefix=/usr\nlibdir=${prefix}/lib/x86\n"), "{system}");
        let layout =
            Layout { libdir: "/lib64".into(), includedir: "/h".into(), ..Layout::below("/opt/b".into()) };
        let far = pkg_config(&layout, &built);
        assert!(far.starts_with("prefix=/opt/b\nlibdir=/lib64\nincludedir=/h\n"), "{far}");
        assert!(!far.contains("Requires"), "{far}");
        let spaces = Layout { libdir: "/my lib".into(), ..Layout::below("/my b".into()) };
        let spaces = pkg_config(&spaces, &built);
        assert!(spaces.starts_with("prefix=/my\\ b\nlibdir=/my\\ lib\n"), "{spaces}");
        built.system = SYSTEM_CODECS.to_vec();
        let external = pkg_config(&layout, &built);
        assert!(external.contains("\nRequires.private: liblz4, zlib, libzstd\n"), "{external}");
    }
}
