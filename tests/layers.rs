//! Modules of the library name lower layers only, and none but the highest exports C names, as "The shape of the code" in
//! CONTRIBUTING.md has it.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of each layer, from the bottom upwards.
const LAYERS: [&[&str]; 9] = [
    &[
        "bytes",
        "cancel",
        "copy",
        "cpu",
        "error",
        "fork",
        "kept",
        "memory",
        "mutex",
        "pages",
        "pool",
        "registered",
        "single",
        "testing",
        "threads",
    ],
    &["format"],
    &["codecs", "filters"],
    &["chunk"],
    &["io"],
    &["frame"],
    &["schunk"],
    &["ndarray"],
    &["capi"],
];

/// The number of the layer that a module belongs to.
fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// Whether code of one module may name another: at the bottom they may name each other.
fn may_name(module: &str, other: &str) -> bool {
    let (from, to) = (layer(module).expect("each module has a layer"), layer(other).unwrap_or(0));
    module == other || to < from || from == 0 && to == 0
}

/// The modules that a line of code names by their path from the top.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    let after = code.split("crate::").skip(1);
    after.map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default())
}

fn source_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { source_files(&path) } else { vec![path] }).collect()
}

#[test]
fn layers_are_kept_apart() {
    assert!(may_name("chunk", "codecs") && may_name("pool", "fork") && may_name("io", "io"));
    assert!(!may_name("codecs", "filters") && !may_name("pool", "chunk") && !may_name("frame", "capi"));
    assert!(named("use crate::chunk::Decoding; // crate::io").eq(["chunk", "io"]));
    assert!(named("    /// See [`crate::capi`].").next().is_none());
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = source_files(&src);
    assert!(files.len() > 100);
    for file in files {
        let path = file.strip_prefix(&src).unwrap();
        let module = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        for line in fs::read_to_string(&file).unwrap().lines() {
            for other in named(line) {
                assert!(may_name(module, other), "{}: {line}", path.display());
            }
            assert!(module == "capi" || !line.contains("no_mangle"), "{}: {line}", path.display());
        }
    }
}
