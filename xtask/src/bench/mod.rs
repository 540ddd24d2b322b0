//! `cargo xtask bench`: our build of the library against the C library, in one process.
//!
//! Both copies are loaded with local binding and take turns inside each cell, so that whatever slows the machine down
//! slows both down; the best of many short rounds counts. Every result is checked before it is timed: what one copy
//! writes, the other reads back.
//!
//! The operations are in `ops/`, one file per family. A family lists its cells (parameters to measure) and measures one
//! cell at a time; choosing, timing, progress and reports are shared. To add one, write a [`ops::Family`] and put it
//! into [`ops::FAMILIES`].

#[allow(dead_code)] // shared with the differential tests: each of the two uses a part
#[path = "../../../tests/common/clib.rs"]
mod clib;
mod data;
mod measure;
pub mod memory;
mod nd;
mod ops;
mod options;
mod report;
mod schunk;
mod svg;

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use crate::{build, paths, process};
use clib::Clib;
use data::Kind;
use ops::Family;
use options::Options;
use report::{Record, Report};

/// The two copies under test.
pub struct Libs {
    /// Our build.
    pub ours: Clib,
    /// The C library, when there is one to compare with.
    pub theirs: Option<Clib>,
}

/// What the families share: the choice of cells, the data, and where results go.
pub struct Bench {
    /// What the command line asked for.
    pub options: Options,
    report: Report,
    buffers: HashMap<(Kind, usize), Rc<[u8]>>,
}

impl Bench {
    /// `nbytes` bytes of `kind`; made once.
    pub fn data(&mut self, kind: Kind, nbytes: usize) -> Rc<[u8]> {
        let file = self.options.file.as_ref().map_or(&[][..], |(bytes, _)| bytes);
        let make = || data::generate(kind, nbytes, file).into();
        self.buffers.entry((kind, nbytes)).or_insert_with(make).clone()
    }

    /// Measures the wanted cells of a family, in a run that began at `start`.
    fn measure(&mut self, libs: &Libs, family: &Family, start: Instant) {
        let mut keys = (family.cells)(&self.options);
        keys.retain(|key| self.options.wants(key));
        for (i, key) in keys.iter().enumerate() {
            let seconds = start.elapsed().as_secs_f64();
            progress(&format!("{}: {i}/{} cells, {seconds:.0} s", family.name, keys.len()));
            if let Err(why) = (family.measure)(libs, self, key) {
                progress("");
                println!("FAILED {key}: {why}");
                self.report.failures.push(format!("{}: {key}: {why}", family.name));
            }
        }
        self.buffers.clear();
    }

    /// Prints and keeps one result.
    pub fn record(&mut self, record: Record) {
        println!("{}", record.line());
        self.report.records.push(record);
    }
}

/// The command `bench`.
pub fn run(args: &[String]) -> Result<(), String> {
    match Options::parse(args).map_err(|why| format!("{why}\n\n{}", options::usage()))? {
        Some(options) => bench(options),
        None => {
            print!("{}", options::usage());
            Ok(())
        }
    }
}

/// Loads both libraries, runs the chosen families, and reports; fails if a check did.
fn bench(options: Options) -> Result<(), String> {
    // Before minutes of measuring.
    options.csv.iter().chain(&options.svg).try_for_each(|path| paths::touch(path))?;
    let libs = load(&options)?;
    println!("ours:   {} ({})", libs.ours.path.display(), libs.ours.version());
    if let Some(theirs) = &libs.theirs {
        println!("theirs: {} ({})", theirs.path.display(), theirs.version());
    }
    println!("cpu:    {}", cpu_model());

    let start = Instant::now();
    let mut bench = Bench { options, report: Report::default(), buffers: HashMap::new() };
    for family in ops::FAMILIES {
        if family.ops.iter().any(|op| bench.options.wants_op(op)) {
            bench.measure(&libs, family, start);
        }
    }
    progress("");
    print!("{}", bench.report.summary());
    println!("{} cells in {:.0} s", bench.report.records.len(), start.elapsed().as_secs_f64());
    if let Some(path) = &bench.options.csv {
        paths::write(path, bench.report.csv())?;
    }
    if let Some(path) = &bench.options.svg {
        paths::write(
            path,
            svg::chart("ours / the C library, geometric means of speed", &bench.report.bars()),
        )?;
    }
    match bench.report.failures.len() {
        0 if bench.report.records.is_empty() => Err("no cell is of the chosen kind".to_string()),
        0 => Ok(()),
        failed => Err(format!("{failed} cells failed")),
    }
}

/// Builds ours unless told where it is, and loads both.
fn load(options: &Options) -> Result<Libs, String> {
    let ours = match &options.ours {
        Some(path) => path.clone(),
        None => build_ours()?,
    };
    let theirs = match reference(options.against.clone()) {
        Some(path) => Some(Clib::open(&path)?),
        None => None,
    };
    let ours = Clib::open(&ours)?;
    if theirs
        .as_ref()
        .is_some_and(|t| t.f.blosc2_compress_ctx as usize == ours.f.blosc2_compress_ctx as usize)
    {
        return Err("both paths lead to the same file; copy it to compare a build with itself".into());
    }
    Ok(Libs { ours, theirs })
}

/// The C library: the one that was `named`, else where the environment says, else where the script puts it. Says so if
/// it is in none of these places.
fn reference(named: Option<PathBuf>) -> Option<PathBuf> {
    let fetched = paths::root().join("target/reference/libblosc2.so");
    let found = named
        .or_else(|| std::env::var_os("BLOSC2_REFERENCE").filter(|path| !path.is_empty()).map(PathBuf::from))
        .or_else(|| fetched.exists().then_some(fetched));
    if found.is_none() {
        eprintln!(
            "No C library to compare with: measuring ours alone. To get one, run tests/common/get_reference.sh,\n\
             or unpack the wheel that `pip download --no-deps blosc2==4.14.1` fetches and name its\n\
             blosc2/lib/libblosc2.so with --against or in BLOSC2_REFERENCE."
        );
    }
    found
}

/// `cargo build --release` of the library; returns the shared library's path.
fn build_ours() -> Result<PathBuf, String> {
    process::run(process::cargo().args(["build", "--release", "--package", "libblosc2-rs"]))?;
    let name = if cfg!(target_os = "macos") { "libblosc2.dylib" } else { "libblosc2.so" };
    let mut dir = paths::target();
    dir.extend(build::Options::default().triple());
    Ok(dir.join("release").join(name))
}

/// The CPU's name, as Linux tells it.
fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':'))
        .map_or_else(|| "unknown".into(), |(_, name)| name.trim().into())
}

/// Shows `text` on a line of stderr that the next call overwrites. If stderr is no terminal, every 50th text becomes a
/// line of its own.
fn progress(text: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let mut err = std::io::stderr();
    // Progress is a courtesy: a closed stderr must not stop the measurement.
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{text}");
    } else if !text.is_empty() && CALLS.fetch_add(1, Ordering::Relaxed) % 50 == 0 {
        let _ = writeln!(err, "{text}");
    }
    let _ = err.flush();
}
