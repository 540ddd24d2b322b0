//! Sets the soname and tells the sources which instruction sets this compiler knows.

use std::env;
use std::process::Command;

/// First Rust release with stable AVX-512 and GFNI intrinsics.
const AVX512_SINCE_MINOR: u32 = 89;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(have_avx512)");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64")
        && rustc_minor().is_some_and(|minor| minor >= AVX512_SINCE_MINOR)
    {
        println!("cargo:rustc-cfg=have_avx512");
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
}

/// The minor version of the compiler in use, or `None` if it does not say.
fn rustc_minor() -> Option<u32> {
    let rustc = env::var_os("RUSTC")?;
    let out = Command::new(rustc).arg("--version").output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    text.split_whitespace().nth(1)?.split('.').nth(1)?.parse().ok()
}
