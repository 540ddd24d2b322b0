//! Modules of the library name lower layers only, and none but the highest exports C names, as "The shape of the code"
//! in CONTRIBUTING.md has it.

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
        "panics",
        "pool",
        "registered",
        "shelf",
        "single",
        "testing",
        "thread_end",
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

/// The modules that code names by their path from the top, also in the lists of `use crate::{...}`.
fn named(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let after = code.split("crate::").skip(1);
    after
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(list) => first_names(list),
            None => vec![first_name(rest)],
        })
        .collect()
}

/// The name that a path begins with.
fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The names that the paths of a list in braces begin with; `list` is what follows the opening one.
fn first_names(list: &str) -> Vec<String> {
    let list: String = list.lines().flat_map(|line| line.split("//").next()).collect();
    let (mut names, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(first_name(&list[begin..at]));
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    // After the last comma, perhaps.
    names.retain(|name| !name.is_empty());
    names
}

fn source_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { source_files(&path) } else { vec![path] }).collect()
}

#[test]
fn names_are_found_in_paths_and_in_lists() {
    assert_eq!(named("use crate::chunk::Decoding; // crate::io"), ["chunk", "io"]);
    assert!(named("    /// See [`crate::capi`].").is_empty());
    assert_eq!(named("use crate::{capi::mem, frame::Frame}; fn f() { a, b }"), ["capi", "frame"]);
    let long = "use crate::{\n    // crate::pool\n    chunk::{self, Chunk, plan::{Plan, io}}, // a, b}\n    io,\n};\nx, y";
    assert_eq!(named(long), ["chunk", "io"]);
}

#[test]
fn layers_are_kept_apart() {
    assert!(may_name("chunk", "codecs") && may_name("pool", "fork") && may_name("io", "io"));
    assert!(!may_name("codecs", "filters") && !may_name("pool", "chunk") && !may_name("frame", "capi"));
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = source_files(&src);
    assert!(files.len() > 100);
    for file in files {
        let path = file.strip_prefix(&src).unwrap();
        let module = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for other in named(&text) {
            assert!(may_name(module, &other), "{} names {other}", path.display());
        }
        assert!(module == "capi" || !text.contains("no_mangle"), "{} exports a name", path.display());
    }
}

/// Whether there is unsafe code in `text`.
fn has_unsafe_code(text: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.into_iter().any(|word| word == "unsafe")
}

/// Whether the module in the file `path` has the one in `other` in it.
fn is_above(path: &Path, other: &Path) -> bool {
    let is_mod = path.file_name().is_some_and(|name| name == "mod.rs");
    let dir = if is_mod { path.parent().unwrap().to_path_buf() } else { path.with_extension("") };
    path != other && other.starts_with(dir)
}

#[test]
fn modules_that_need_no_unsafe_code_forbid_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = source_files(&src);
    files.retain(|file| *file != src.join("lib.rs"));
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let is_unsafe: Vec<bool> = texts.iter().map(|text| has_unsafe_code(text)).collect();
    assert!(is_unsafe.contains(&true) && is_unsafe.contains(&false));
    let forbids = |text: &str| text.contains("#![forbid(unsafe_code)]");
    for (file, text) in files.iter().zip(&texts) {
        let is_test = file.iter().any(|part| part == "tests" || part == "tests.rs");
        let within = files
            .iter()
            .zip(&is_unsafe)
            .any(|(other, is_unsafe)| *is_unsafe && (other == file || is_above(file, other)));
        let above = files.iter().zip(&texts).any(|(other, text)| is_above(other, file) && forbids(text));
        assert!(is_test || within || above || forbids(text), "{} forbids no unsafe code", file.display());
    }
}
