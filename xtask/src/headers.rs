//! `cargo xtask headers`: writes the installed headers in `include/`.
//!
//! Each header has a hand-written fragment in `cbindgen/` with its macros, constants and inline functions. Its lines
//! `@items a b c` are replaced by the declarations of these structs, callback types and functions, which cbindgen
//! writes from `src/capi/` with their doc comments. A function that does not exist in Rust is left out; one that no
//! fragment mentions is an error. The list of exported functions, `capi-tests/symbols.txt`, is written along.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::{paths, symbols};

/// The headers, by their place in `include/`; the fragment has the same name with `.in` in `cbindgen/`.
pub const HEADERS: [&str; 8] = [
    "blosc2.h",
    "b2nd.h",
    "blosc2/blosc2-common.h",
    "blosc2/blosc2-export.h",
    "blosc2/blosc2-stdio.h",
    "blosc2/codecs-registry.h",
    "blosc2/filters-registry.h",
    "blosc2/tuners-registry.h",
];

/// The command: writes the headers, or with `--check` fails if a file differs from what would be written.
pub fn run(args: &[String]) -> Result<(), String> {
    let check = match args {
        [] => false,
        [arg] if arg == "--check" => true,
        _ => return Err("usage: cargo xtask headers [--check]".to_string()),
    };
    let mut stale = Vec::new();
    for (path, text) in generate()? {
        let same = paths::read(&path).is_ok_and(|old| old == text);
        if !same && !check {
            paths::write(&path, text)?;
            println!("wrote {}", path.display());
        } else if !same {
            stale.push(path.display().to_string());
        }
    }
    if stale.is_empty() {
        Ok(())
    } else {
        Err(format!("not what `cargo xtask headers` writes: {}", stale.join(", ")))
    }
}

/// The path and the text of each header and of the list of functions.
fn generate() -> Result<Vec<(PathBuf, String)>, String> {
    let mut fragments = Vec::new();
    for name in HEADERS {
        fragments.push((name, paths::read(&paths::root().join("cbindgen").join(format!("{name}.in")))?));
    }
    let wanted =
        fragments.iter().flat_map(|(_, text)| text.lines()).filter_map(|line| line.strip_prefix("@items "));
    let mut items = declarations(wanted.flat_map(str::split_whitespace))?;
    let mut headers = Vec::new();
    for (name, fragment) in &fragments {
        headers.push((paths::root().join("include").join(name), fill(fragment, &mut items)));
    }
    let functions =
        items.iter().filter(|(_, item)| item.text.contains("BLOSC_EXPORT")).map(|(name, _)| name.as_str());
    headers.push((symbols::list_path(), symbols::list_text(functions)));
    let homeless: Vec<_> =
        items.iter().filter(|(_, item)| !item.used).map(|(name, _)| name.as_str()).collect();
    if homeless.is_empty() {
        Ok(headers)
    } else {
        Err(format!("no fragment in cbindgen/ has a place for: {}", homeless.join(", ")))
    }
}

/// A declaration that cbindgen wrote.
struct Item {
    text: String,
    used: bool,
}

/// Replaces the `@items` lines of `fragment`.
fn fill(fragment: &str, items: &mut BTreeMap<String, Item>) -> String {
    let mut out =
        String::from("/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */\n");
    for line in fragment.lines() {
        let Some(names) = line.strip_prefix("@items ") else {
            // Nothing was generated between two blank lines: keep one.
            if !(line.is_empty() && out.ends_with("\n\n")) {
                out.push_str(line);
                out.push('\n');
            }
            continue;
        };
        for name in names.split_whitespace() {
            if let Some(item) = items.get_mut(name) {
                item.used = true;
                if !out.ends_with("\n\n") {
                    out.push('\n');
                }
                out.push_str(&item.text);
                out.push('\n');
            }
        }
    }
    out
}

/// What cbindgen writes for `src/capi/`, by name: every exported function, and the types in `wanted`.
fn declarations<'a>(wanted: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, Item>, String> {
    let root = paths::root();
    let mut config = cbindgen::Config::from_file(root.join("cbindgen/cbindgen.toml"))?;
    // cbindgen leaves out types that no function uses unless they are named here.
    config.export.include = wanted.map(str::to_string).collect();
    // cbindgen follows the `mod` lines.
    let builder = cbindgen::Builder::new().with_config(config).with_src(root.join("src/capi/mod.rs"));
    let bindings = builder.generate().map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|e| e.to_string())?;
    // Where the last member is a conditional one, its semicolon is left outside.
    let text = text.replace("\n#endif\n  ;\n", ";\n#endif\n");
    let mut items = BTreeMap::new();
    for item in text.split("\n\n").map(|item| item.trim_matches('\n')).filter(|item| !item.is_empty()) {
        let name =
            name_of(item).ok_or_else(|| format!("cannot tell the name of this declaration:\n{item}"))?;
        if !is_forward_declaration(item) {
            let item = Item { text: c_comments(item) + "\n", used: false };
            if items.insert(name.clone(), item).is_some() {
                return Err(format!("{name} is declared twice"));
            }
        }
    }
    Ok(items)
}

/// The code of a declaration, without the comments.
fn code(item: &str) -> impl Iterator<Item = &str> {
    item.lines().map(str::trim_start).filter(|line| !(line.starts_with("/*") || line.starts_with('*')))
}

/// Whether `item` only names a struct; the fragments put the structs in an order that needs no such lines.
fn is_forward_declaration(item: &str) -> bool {
    let mut lines = code(item);
    lines.next().is_some_and(|line| line.starts_with("typedef struct") && line.ends_with(';'))
        && lines.next().is_none()
}

/// The name that `item` declares: a struct, a callback type, or a function.
fn name_of(item: &str) -> Option<String> {
    let code: Vec<&str> = code(item).collect();
    let joined = code.join(" ");
    let word_before = |text: &str| {
        let text = text.trim_end();
        let start = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        Some(text[start..].to_string()).filter(|word| !word.is_empty())
    };
    if joined.starts_with("typedef struct") {
        word_before(joined.strip_suffix(';')?)
    } else if joined.starts_with("typedef") {
        word_before(&joined[..joined.find("(*")? + joined[joined.find("(*")?..].find(')')?])
    } else {
        // BLOSC_EXPORT <type> name(...); an attribute with a text may be among the words before the name.
        let after_text = joined.rfind("\")").map_or(0, |end| end + 2);
        word_before(&joined[..after_text + joined[after_text..].find('(')?])
    }
}

/// Rustdoc as a comment in C: no links, and a plain heading for the caller's duties.
fn c_comments(item: &str) -> String {
    let mut out = Vec::new();
    for line in item.lines() {
        if line.trim_start().starts_with('*') {
            let line = line.replace("[`", "`").replace("`]", "`").replace("# Safety", "Requirements:");
            out.push(line.replace("`None`", "NULL").trim_end().to_string());
        } else {
            out.push(line.to_string());
        }
    }
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        assert_eq!(name_of("typedef struct a_s {\n  int b;\n} a_t;").as_deref(), Some("a_t"));
        assert_eq!(
            name_of("/**\n * Text (x).\n */\ntypedef int (*cb)(int (*inner)(void));").as_deref(),
            Some("cb")
        );
        assert_eq!(name_of("BLOSC_EXPORT\nconst char *f(int a,\n  int b);").as_deref(), Some("f"));
        assert_eq!(name_of("BLOSC_EXPORT B2ND_DEPRECATED(\"x (y)\") int g(void);").as_deref(), Some("g"));
    }

    /// PyTables' setup.py takes the version from the first lines that hold both the macro's name and the word.
    #[test]
    fn build_scripts_find_the_version() {
        let text = paths::read(&paths::root().join("include/blosc2.h")).unwrap();
        let words = ["MAJOR major", "MINOR minor", "RELEASE tweaks"];
        let found = words.map(|pair| {
            let (macro_end, word) = pair.split_once(' ').unwrap();
            let name = format!("BLOSC2_VERSION_{macro_end}");
            let line = text.lines().find(|line| line.contains(&name) && line.contains(word)).unwrap();
            line.split_whitespace().nth(2).unwrap()
        });
        assert_eq!(found.join("."), crate::install::version());
    }

    #[test]
    fn forward_declarations_are_recognised() {
        assert!(is_forward_declaration("typedef struct a a;"));
        assert!(!is_forward_declaration("typedef struct a {\n  int b;\n} a;"));
    }

    #[test]
    fn items_replace_their_lines_and_missing_ones_leave_no_gap() {
        let mut items = BTreeMap::new();
        items.insert("f".to_string(), Item { text: "int f(void);\n".to_string(), used: false });
        let text = fill("a\n\n@items f g\n\n@items g\n\nb\n", &mut items);
        assert!(text.ends_with("a\n\nint f(void);\n\nb\n"), "{text}");
        assert!(items["f"].used);
    }
}
