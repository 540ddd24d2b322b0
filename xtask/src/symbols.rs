//! The list of exported functions, `capi-tests/symbols.txt`, and its comparison with the built libraries.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::paths;
use crate::process;

/// Where the list is.
pub fn list_path() -> PathBuf {
    paths::root().join("capi-tests/symbols.txt")
}

/// The functions in the list.
pub fn listed() -> Result<Vec<String>, String> {
    let text = paths::read(&list_path())?;
    Ok(text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_string).collect())
}

/// The text of the list for these functions.
pub fn list_text<'a>(functions: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = functions.collect();
    names.sort_unstable();
    let head = "# The functions that the libraries export, and nothing else.\n\
                # Written by `cargo xtask headers`, compared with the built libraries by `cargo xtask test`.\n";
    head.to_string() + &names.join("\n") + "\n"
}

/// Fails unless the shared library exports the listed functions and nothing else.
pub fn check_shared(library: &Path) -> Result<(), String> {
    compare("shared", &global_symbols(library, &["-D"])?, &listed()?)
}

/// Fails unless the symbols file of the Debian package names the listed functions and nothing else.
pub fn check_debian() -> Result<(), String> {
    let text = paths::read(&paths::root().join("packaging/debian/libblosc2-9.symbols"))?;
    let names = text.lines().filter_map(|line| line.strip_prefix(' ')?.split('@').next());
    compare("Debian package of the shared", &names.map(str::to_string).collect(), &listed()?)
}

/// Fails unless each of the listed functions occurs in a C test.
pub fn check_used() -> Result<(), String> {
    let mut words = BTreeSet::new();
    for program in paths::files_below(&paths::root().join("capi-tests"), "c")? {
        let text = paths::read(&program)?;
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        words.extend(text.split(|c| !is_of_name(c)).map(str::to_string));
    }
    let unused: Vec<String> = listed()?.into_iter().filter(|name| !words.contains(name)).collect();
    if unused.is_empty() { Ok(()) } else { Err(format!("no C test uses {}", unused.join(", "))) }
}

/// Fails unless the static library's global symbols are the listed functions and the three `register_*`.
pub fn check_static(library: &Path) -> Result<(), String> {
    let mut wanted = listed()?;
    wanted.extend(["register_codecs", "register_filters", "register_tuners"].map(str::to_string));
    compare("static", &global_symbols(library, &["-g"])?, &wanted)
}

/// Fails unless a shared object exports exactly `names`.
pub fn check_exports(object: &Path, names: &[&str]) -> Result<(), String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
    compare("shared object around the static", &global_symbols(object, &["-D"])?, &names)
}

fn compare(which: &str, found: &BTreeSet<String>, wanted: &[String]) -> Result<(), String> {
    let wanted: BTreeSet<String> = wanted.iter().cloned().collect();
    let names = |set: Vec<&String>| set.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let missing = names(wanted.difference(found).collect());
    let excess = names(found.difference(&wanted).collect());
    if missing.is_empty() && excess.is_empty() {
        println!("{which} library: {} symbols, as listed", found.len());
        Ok(())
    } else {
        Err(format!("{which} library: missing: [{missing}], not in capi-tests/symbols.txt: [{excess}]"))
    }
}

/// The defined global symbols of a library.
fn global_symbols(library: &Path, options: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut nm = process::tool("NM", "nm");
    nm.args(["--defined-only", "-f", "posix"]).args(options).arg(library);
    let text = process::output(&mut nm)?;
    // Lines are "name type value size"; an archive's member headings end in a colon.
    let symbols = text.lines().filter(|line| !line.ends_with(':')).filter_map(|line| line.split(' ').next());
    Ok(symbols.filter(|name| !name.is_empty()).map(str::to_string).collect())
}
