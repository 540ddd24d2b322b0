//! `cargo xtask memory`: how much memory our build of the library takes, and how much the C library does.
//!
//! What counts is the resident memory at its peak, above that of a process which has loaded the library and made its
//! data. The peak belongs to a process, so each library does each task in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::clib::{CParams, Clib};
use super::data::{self, Kind};
use super::options::CODECS;
use super::schunk::{Api, Place};
use crate::words::Words;

const USAGE: &str = "usage: cargo xtask memory [--against FILE] [--ours FILE]";

/// Option of the processes that measure: a task and a library follow.
const MEASURE: &str = "--measure";

const MIB: usize = 1 << 20;

/// Something to be done with one library.
struct Task {
    name: &'static str,
    run: fn(&Clib) -> Result<u64, String>,
}

const TASKS: [Task; 6] = [
    Task { name: "500 contexts that compressed 1 MiB each, LZ4", run: |lib| contexts(lib, "lz4", 500) },
    Task {
        name: "500 contexts that compressed 1 MiB each, Zstandard",
        run: |lib| contexts(lib, "zstd", 500),
    },
    Task { name: "compress and decompress 64 MiB, 1 thread, Zstandard", run: |lib| threads(lib, 1) },
    Task { name: "compress and decompress 64 MiB, 16 threads, Zstandard", run: |lib| threads(lib, 16) },
    Task { name: "1000 super-chunks of 8 KiB in memory", run: small_schunks },
    Task { name: "256 chunks of 1 MiB appended to a file, and read", run: append },
];

/// Entry of the command; `args` are those after `memory`.
pub fn run(args: &[String]) -> Result<(), String> {
    if let [MEASURE, task, library] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let task = TASKS.iter().find(|known| known.name == task).ok_or(USAGE)?;
        println!("{}", (task.run)(&Clib::open(Path::new(library))?)?);
        return Ok(());
    }
    let (mut ours, mut theirs) = (None, None);
    let mut words = Words::new(args);
    while let Some(word) = words.next() {
        match word {
            "--ours" => ours = Some(PathBuf::from(words.value()?)),
            "--against" => theirs = Some(PathBuf::from(words.value()?)),
            _ => return Err(USAGE.to_string()),
        }
    }
    let ours = ours.map_or_else(super::build_ours, Ok)?;
    let theirs = super::reference(theirs);
    println!("{:<56} {:>9} {:>9}", "peak of resident memory, MiB", "ours", "theirs");
    for task in TASKS {
        let peak = |library: &Path| measured(&task, library).map(|kib| format!("{:.1}", kib / 1024.0));
        let theirs = theirs.as_deref().map_or(Ok("-".to_string()), peak)?;
        println!("{:<56} {:>9} {theirs:>9}", task.name, peak(&ours)?);
    }
    Ok(())
}

/// What a process that does `task` with `library` says that it took, in KiB.
fn measured(task: &Task, library: &Path) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(program)
        .args(["memory", MEASURE, task.name])
        .arg(library)
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("{}: {}", task.name, String::from_utf8_lossy(&output.stderr)))
}

/// How much more memory is resident at its peak while `work` runs, in KiB.
fn peak_of(work: impl FnOnce() -> Result<(), String>) -> Result<u64, String> {
    let failed = |e: std::io::Error| format!("/proc/self: {e}");
    let status = |field: &str| {
        let text = std::fs::read_to_string("/proc/self/status").map_err(failed)?;
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.trim_end_matches("kB").trim().parse::<u64>().ok());
        number.ok_or(format!("/proc/self/status: no {field}"))
    };
    // What was the peak so far is forgotten.
    std::fs::write("/proc/self/clear_refs", "5").map_err(failed)?;
    let before = status("VmRSS:")?;
    work()?;
    Ok(status("VmHWM:")?.saturating_sub(before))
}

fn params(lib: &Clib, codec: &str, nthreads: i16, typesize: i32) -> CParams {
    let code = CODECS.iter().find(|known| known.name == codec).expect("a built-in codec").code;
    CParams { compcode: code, nthreads, typesize, ..lib.cparams() }
}

fn contexts(lib: &Clib, codec: &str, count: usize) -> Result<u64, String> {
    let data = data::generate(Kind::Noisy, MIB, &[]);
    let mut chunk = vec![1; MIB + 1024];
    let params = params(lib, codec, 1, Kind::Noisy.typesize());
    peak_of(|| {
        let mut contexts = Vec::new();
        for _ in 0..count {
            let mut context = lib.cctx(&params).ok_or("no context")?;
            if context.compress(&data, &mut chunk) <= 0 {
                return Err("compression failed".to_string());
            }
            contexts.push(context);
        }
        Ok(())
    })
}

fn threads(lib: &Clib, nthreads: i16) -> Result<u64, String> {
    let mut data = data::generate(Kind::Noisy, 64 * MIB, &[]);
    let mut chunk = vec![1; data.len() + 1024];
    let params = params(lib, "zstd", nthreads, Kind::Noisy.typesize());
    peak_of(|| {
        let cbytes = lib.cctx(&params).ok_or("no context")?.compress(&data, &mut chunk);
        let cbytes = usize::try_from(cbytes).map_err(|_| "compression failed")?;
        let nbytes = lib.dctx(nthreads).decompress(&chunk[..cbytes], &mut data);
        if usize::try_from(nbytes) == Ok(data.len()) {
            Ok(())
        } else {
            Err("decompression failed".to_string())
        }
    })
}

fn small_schunks(lib: &Clib) -> Result<u64, String> {
    let data = data::generate(Kind::Ramps, 8 << 10, &[]);
    let params = params(lib, "lz4", 1, Kind::Ramps.typesize());
    let api = Api::find(lib)?;
    peak_of(|| {
        let mut schunks = Vec::new();
        for _ in 0..1000 {
            let schunk = api.create(Place::Frame, &params)?;
            schunk.append(&data);
            schunks.push(schunk);
        }
        Ok(())
    })
}

fn append(lib: &Clib) -> Result<u64, String> {
    let mut data = data::generate(Kind::Noisy, MIB, &[]);
    let params = params(lib, "lz4", 1, Kind::Noisy.typesize());
    let api = Api::find(lib)?;
    peak_of(|| {
        let schunk = api.create(Place::File, &params)?;
        (0..256).for_each(|_| schunk.append(&data));
        (0..256).for_each(|nchunk| {
            schunk.read(nchunk, &mut data);
        });
        Ok(())
    })
}
