//! `cargo xtask clients`: programs that others wrote, on this library, with what they do on the C library as the
//! measure.
//!
//! Each client is a script in `capi-tests/clients/`; what the scripts are given and what they answer is said in
//! `common.sh` there. They need pip and the network, and hours rather than minutes when all of them run.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::build::Options;
use crate::install::{self, Layout};
use crate::paths;
use crate::process::command;
use crate::words::Words;

const USAGE: &str = "\
usage: cargo xtask clients [OPTIONS] [NAME...]

  --list           what clients there are
  --prefix DIR     use the library installed there, in DIR/lib, instead of building and installing this one
  --jobs N         processes of a client's test suite at a time (default 1)
  --record         write what happens down as what is to be expected; meant for --prefix of the C library
";

/// What the scripts end with when something that they need is missing.
const SKIPPED: i32 = 77;

/// The command line.
struct Arguments {
    names: Vec<String>,
    prefix: Option<PathBuf>,
    jobs: String,
    record: bool,
    list: bool,
}

fn arguments(args: &[String]) -> Result<Arguments, String> {
    let mut found =
        Arguments { names: Vec::new(), prefix: None, jobs: "1".to_string(), record: false, list: false };
    let mut words = Words::new(args);
    while let Some(word) = words.next() {
        match word {
            "--prefix" => {
                let prefix = PathBuf::from(words.value()?);
                found.prefix =
                    Some(std::path::absolute(&prefix).map_err(|e| format!("{}: {e}", prefix.display()))?);
            }
            "--jobs" => {
                let jobs = words.value()?;
                jobs.parse::<u16>().map_err(|_| format!("--jobs {jobs}: a number is needed"))?;
                found.jobs = jobs.to_string();
            }
            "--record" => found.record = true,
            "--list" => found.list = true,
            option if option.starts_with('-') => return Err(format!("{}\n{USAGE}", words.unknown())),
            name => found.names.push(name.to_string()),
        }
    }
    if found.record && found.prefix.is_none() {
        return Err("--record without --prefix would make this library its own measure".to_string());
    }
    Ok(found)
}

/// The command `clients`.
pub fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let arguments = arguments(args)?;
    let all = clients()?;
    if arguments.list {
        for client in &all {
            println!("{:20} {}", client.name, client.about);
        }
        return Ok(());
    }
    let chosen = choose(all, &arguments.names)?;
    let home = paths::target().join("clients");
    let prefix = match arguments.prefix.clone() {
        Some(prefix) => prefix,
        None => {
            println!("== build and install");
            let prefix = home.join("prefix");
            install::install(&Layout::below(prefix.clone()), &Options::default())?;
            prefix
        }
    };
    let mut results = Vec::new();
    for client in chosen {
        println!("\n== {}: {}", client.name, client.about);
        let work = home.join(&client.name);
        let begun = Instant::now();
        let status = command(&client.script, [prefix.as_path(), work.as_path()])
            .env("CLIENT_JOBS", &arguments.jobs)
            .env("CLIENT_RECORD", if arguments.record { "1" } else { "0" })
            .status()
            .map_err(|e| format!("{}: {e}", client.script.display()))?;
        results.push(Outcome { name: client.name, status, summary: summary(&work), took: begun.elapsed() });
    }
    println!();
    print!("{}", table(&results));
    match results.iter().filter(|result| result.verdict() == "FAILED").count() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} clients failed", results.len())),
    }
}

/// A client: its script, and what the script's first comment says.
struct Client {
    name: String,
    about: String,
    script: PathBuf,
}

/// All clients, by name.
fn clients() -> Result<Vec<Client>, String> {
    let mut found = Vec::new();
    for script in paths::files_below(&paths::root().join("capi-tests/clients"), "sh")? {
        let name = script.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_string();
        if name == "common" {
            continue;
        }
        let text = paths::read(&script)?;
        let about = text.lines().nth(1).and_then(|line| line.strip_prefix("# "));
        let about = about.ok_or_else(|| format!("{}: the second line says nothing", script.display()))?;
        found.push(Client { name, about: about.to_string(), script });
    }
    Ok(found)
}

/// The clients with these names, or all if there are none.
fn choose(all: Vec<Client>, names: &[String]) -> Result<Vec<Client>, String> {
    if let Some(name) = names.iter().find(|name| all.iter().all(|client| client.name != **name)) {
        let known: Vec<&str> = all.iter().map(|client| client.name.as_str()).collect();
        return Err(format!("no client {name}; there are {}", known.join(", ")));
    }
    Ok(all.into_iter().filter(|client| names.is_empty() || names.contains(&client.name)).collect())
}

/// What became of a client.
struct Outcome {
    name: String,
    status: ExitStatus,
    summary: String,
    took: Duration,
}

impl Outcome {
    fn verdict(&self) -> &'static str {
        match self.status.code() {
            Some(0) => "ok",
            Some(SKIPPED) => "skipped",
            _ => "FAILED",
        }
    }
}

/// The line that a script left for the table.
fn summary(work: &Path) -> String {
    paths::read(&work.join("summary"))
        .map_or_else(|_| "no summary".to_string(), |text| text.trim().to_string())
}

/// The outcomes as a table.
fn table(results: &[Outcome]) -> String {
    let mut text = format!("{:20} {:8} {:>7}  {}\n", "client", "verdict", "minutes", "outcomes");
    for result in results {
        let minutes = result.took.as_secs_f64() / 60.0;
        text += &format!("{:20} {:8} {minutes:7.1}  {}\n", result.name, result.verdict(), result.summary);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_string()).collect()
    }

    #[test]
    fn a_record_needs_another_library() {
        assert!(arguments(&words(&["--record"])).is_err());
        assert!(arguments(&words(&["--record", "--prefix", "/opt/c"])).unwrap().record);
        assert!(arguments(&words(&["--jobs", "many"])).is_err());
        assert!(arguments(&words(&["--what"])).is_err());
        assert_eq!(arguments(&words(&["a", "--jobs", "3", "b"])).unwrap().names, ["a", "b"]);
    }

    #[test]
    fn every_script_says_what_it_is_and_unknown_names_are_refused() {
        let all = clients().unwrap();
        assert!(all.iter().any(|client| client.name == "python_blosc2"));
        assert!(all.iter().all(|client| client.name != "common"));
        assert_eq!(choose(clients().unwrap(), &words(&["pytables"])).unwrap().len(), 1);
        assert_eq!(choose(clients().unwrap(), &[]).unwrap().len(), all.len());
        assert!(choose(all, &words(&["pytable"])).is_err());
    }
}
