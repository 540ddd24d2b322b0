//! Running other programs, with messages that show the command.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// A command made of a program and its arguments.
pub fn command<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Runs a command to its end; its output goes where ours goes.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{}: {e}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs a command and returns what it wrote to stdout.
pub fn output(command: &mut Command) -> Result<String, String> {
    String::from_utf8(stdout_of(command)?).map_err(|_| format!("{}: output is not UTF-8", shown(command)))
}

/// Runs a command and returns the words that it wrote to stdout, as a shell takes them: before each byte that is none
/// of ASCII, and before spaces, pkg-config writes a backslash.
pub fn words(command: &mut Command) -> Result<Vec<String>, String> {
    split(&stdout_of(command)?).ok_or_else(|| format!("{}: output is not UTF-8", shown(command)))
}

/// Runs a command and returns what it wrote to stdout.
fn stdout_of(command: &mut Command) -> Result<Vec<u8>, String> {
    let out = command.stderr(Stdio::inherit()).output().map_err(|e| format!("{}: {e}", shown(command)))?;
    if !out.status.success() {
        return Err(format!("{}: {}", shown(command), out.status));
    }
    Ok(out.stdout)
}

/// Splits text at spaces, and takes what follows a backslash as it is.
fn split(text: &[u8]) -> Option<Vec<String>> {
    let mut words = vec![Vec::new()];
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => words.last_mut()?.extend(bytes.next()),
            _ if byte.is_ascii_whitespace() => words.push(Vec::new()),
            _ => words.last_mut()?.push(byte),
        }
    }
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8(word).ok()).collect()
}

/// Runs a command silently; if it fails, both its outputs are in the message.
pub fn quiet(command: &mut Command) -> Result<(), String> {
    quiet_output(command).map(drop)
}

/// As [`quiet`], and returns what the command wrote to stdout.
pub fn quiet_output(command: &mut Command) -> Result<String, String> {
    let out = command.output().map_err(|e| format!("{}: {e}", shown(command)))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let text = [out.stdout, out.stderr].concat();
    Err(format!("{}: {}\n{}", shown(command), out.status, String::from_utf8_lossy(&text)))
}

/// Whether a program can be started.
pub fn exists(mut program: Command) -> bool {
    program.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The command that an environment variable names, perhaps with arguments as in `ccache gcc` or `gcc -m32`, or
/// `default`.
pub fn tool(variable: &str, default: &str) -> Command {
    let value = std::env::var(variable).unwrap_or_default();
    let mut words = value.split_whitespace();
    command(words.next().unwrap_or(default), words)
}

/// Cargo, the one that runs us. What it builds goes where we look for it, whatever a configuration file says.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::paths::root()).env("CARGO_TARGET_DIR", crate::paths::target());
    cargo
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_those_of_a_shell() {
        let text = b"-I/my\\ \\\xc3\\\xa4  -lblosc2 \n";
        assert_eq!(super::split(text).unwrap(), ["-I/my \u{e4}", "-lblosc2"]);
    }
}
