//! Where things are in the repository, and small file helpers with messages that name the file.

use std::fs;
use std::path::{Path, PathBuf};

/// The top directory of the repository.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask lies in the top directory").to_path_buf()
}

/// Cargo's target directory. A relative one counts from where we were started, as Cargo takes it.
pub fn target() -> PathBuf {
    let told = std::env::var_os("CARGO_TARGET_DIR").and_then(|dir| std::path::absolute(dir).ok());
    told.unwrap_or_else(|| root().join("target"))
}

/// Where Cargo keeps the sources of packages, among other things.
pub fn cargo_home() -> Option<PathBuf> {
    let user = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CARGO_HOME").or_else(|| Some(set(user)?.join(".cargo")))
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes a file, and the directories above it.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), String> {
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    fs::write(path, contents).map_err(|e| format!("{}: {e}", path.display()))
}

/// Makes sure that a file can be written; makes an empty one and the directories above it if it does not exist.
pub fn touch(path: &Path) -> Result<(), String> {
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|e| format!("{}: {e}", path.display()))
}

/// Makes a directory and those above it.
pub fn make_dir(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Copies a file.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))?;
    Ok(())
}

/// Has a file written under another name, and gives it its own when it is whole. Whoever uses the one before, a library
/// that is loaded perhaps, keeps it; and nobody takes for a file what was left when we were stopped.
pub fn replace(to: &Path, write: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    if let Some(parent) = to.parent() {
        make_dir(parent)?;
    }
    let new = unfinished(to);
    let _ = fs::remove_file(&new);
    let done = write(&new).and_then(|()| fs::rename(&new, to).map_err(|e| format!("{}: {e}", to.display())));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}

/// What [`replace`] calls a file until it is whole.
pub fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

/// The files below `dir` with the extension `extension`, or all if that is empty, as sorted paths.
pub fn files_below(dir: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", dir.display()))?.path();
        if path.is_dir() {
            found.extend(files_below(&path, extension)?);
        } else if extension.is_empty() || path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_when_the_new_one_is_whole() {
        let file = target().join("xtask-tests/replace/file");
        let others = || files_below(file.parent().unwrap(), "").unwrap().len();
        replace(&file, |new| write(new, "one")).unwrap();
        let stopped = replace(&file, |new| write(new, "tw").and(Err("stopped".to_string())));
        assert!(stopped.is_err());
        assert_eq!((read(&file).unwrap(), others()), ("one".to_string(), 1));
        replace(&file, |new| write(new, "two")).unwrap();
        assert_eq!((read(&file).unwrap(), others()), ("two".to_string(), 1));
    }
}
