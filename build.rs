//! Sets the soname, tells the sources what this compiler knows, and finds the system's codecs.

use std::env;
use std::process::Command;

/// First Rust release with stable AVX-512 and GFNI intrinsics.
const AVX512_SINCE_MINOR: u32 = 89;
/// First Rust release with `select_unpredictable`.
const SELECT_SINCE_MINOR: u32 = 88;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(have_avx512, have_select)");
    let minor = rustc_minor().unwrap_or(0);
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") && minor >= AVX512_SINCE_MINOR {
        println!("cargo:rustc-cfg=have_avx512");
    }
    if minor >= SELECT_SINCE_MINOR {
        println!("cargo:rustc-cfg=have_select");
    }
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux" | "android" | "freebsd" | "netbsd" | "openbsd") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libblosc2.so.9");
        }
        Ok("macos") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libblosc2.9.dylib");
        }
        _ => {}
    }
    #[cfg(feature = "system-lz4")]
    link_system("liblz4", "1.9");
    #[cfg(feature = "system-zlib")]
    link_system("zlib", "1.2.8");
}

/// Links a library that the system has, or stops the build. (Zstandard's own package does so by itself.)
#[cfg(any(feature = "system-lz4", feature = "system-zlib"))]
fn link_system(package: &str, at_least: &str) {
    let found = pkg_config::Config::new().cargo_metadata(false).atleast_version(at_least).probe(package);
    let library = found.unwrap_or_else(|why| {
        eprintln!("{package} of the system was asked for, and not found: {why}");
        std::process::exit(1);
    });
    for path in library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in library.libs {
        // By its file's name where the linker knows that: a built-in static library of the same name, which cargo
        // compiles all the same, would be found first.
        match env::var("CARGO_CFG_TARGET_OS").as_deref() {
            Ok("macos" | "windows") => println!("cargo:rustc-link-lib=dylib={name}"),
            _ => println!("cargo:rustc-link-lib=dylib:+verbatim=lib{name}.so"),
        }
    }
}

/// The minor version of the compiler in use, or `None` if it does not say.
fn rustc_minor() -> Option<u32> {
    let rustc = env::var_os("RUSTC")?;
    let out = Command::new(rustc).arg("--version").output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    text.split_whitespace().nth(1)?.split('.').nth(1)?.parse().ok()
}
