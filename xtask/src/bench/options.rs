//! The command line, and the parameters of a cell.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::data::Kind;
use super::ops;
use crate::words::Words;

/// A codec under test: name and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec {
    /// Name in the API, options and reports.
    pub name: &'static str,
    /// `blosc2_cparams.compcode`.
    pub code: u8,
}

/// The built-in codecs.
pub const CODECS: [Codec; 5] = [
    Codec { name: "blosclz", code: 0 },
    Codec { name: "lz4", code: 1 },
    Codec { name: "lz4hc", code: 2 },
    Codec { name: "zlib", code: 4 },
    Codec { name: "zstd", code: 5 },
];

/// A filter under test: name and id (0 for none), which is also the `doshuffle` of the old API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Name in options and reports.
    pub name: &'static str,
    /// Filter id, put in the last slot.
    pub id: u8,
}

/// The filters under test.
pub const FILTERS: [Filter; 3] =
    [Filter { name: "none", id: 0 }, Filter { name: "shuffle", id: 1 }, Filter { name: "bitshuffle", id: 2 }];

/// The parameters of one cell; which operations are measured with them is up to the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// The codec.
    pub codec: Codec,
    /// Compression level.
    pub clevel: u8,
    /// The filter.
    pub filter: Filter,
    /// The data.
    pub data: Kind,
    /// Threads of the contexts.
    pub threads: i16,
    /// Size of a buffer in bytes.
    pub nbytes: usize,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.nbytes >= 1 << 20 {
            format!("{}M", self.nbytes >> 20)
        } else if self.nbytes >= 1 << 10 {
            format!("{}K", self.nbytes >> 10)
        } else {
            format!("{}", self.nbytes)
        };
        write!(
            f,
            "{:<8} {} {:<10} {:<10} {}t {:>4}",
            self.codec.name,
            self.clevel,
            self.filter.name,
            self.data.name(),
            self.threads,
            size
        )
    }
}

/// What the command line asked for. Empty lists choose everything that the families measure by default.
#[derive(Debug, Default)]
pub struct Options {
    /// The C library.
    pub against: Option<PathBuf>,
    /// Our library; built when absent.
    pub ours: Option<PathBuf>,
    /// Smaller buffers, less time per cell, fewer cells.
    pub quick: bool,
    /// All compression levels.
    pub full: bool,
    /// Where the table goes.
    pub csv: Option<PathBuf>,
    /// Where the chart goes.
    pub svg: Option<PathBuf>,
    /// Data of the user in place of the kinds: the bytes of a file, and their typesize.
    pub file: Option<(Vec<u8>, u8)>,
    /// Factor of the time spent per cell.
    pub time: f64,
    ops: Vec<String>,
    codecs: Vec<String>,
    filters: Vec<String>,
    kinds: Vec<String>,
    clevels: Vec<u8>,
    threads: Vec<i16>,
}

/// The help text.
pub fn usage() -> String {
    let mut text = String::from(
        "usage: cargo xtask bench [options]

Measures our library against the C library: ratio of speeds per cell, above 1 where ours is faster.

  --against FILE   shared library to compare with (default: $BLOSC2_REFERENCE,
                   else target/reference/libblosc2.so)
  --ours FILE      our shared library (default: built with --release)
  --op, --codec, --filter, --data, --clevel, --threads LIST
                   only these, separated by commas; a family's name stands for its ops;
                   numbers of threads may be any, for buffers in bulk
  --file FILE[:N]  the data of this file, items of N bytes (default 4), in place of
                   the data kinds
  --quick          about 80 s: one level, fewer data kinds, smaller buffers
  --full           every compression level
  --time FACTOR    time spent per cell, times this
  --csv FILE       all cells as a table
  --svg FILE       geometric means as a bar chart

",
    );
    let list = |names: Vec<&str>| names.join(",");
    text += &format!("codecs:  {}\n", list(CODECS.iter().map(|c| c.name).collect()));
    text += &format!("filters: {}\n", list(FILTERS.iter().map(|f| f.name).collect()));
    text += &format!("data:    {}\n", list(Kind::ALL.iter().map(|k| k.name()).collect()));
    for family in ops::FAMILIES {
        text += &format!("ops of {}: {}: {}\n", family.name, family.ops.join(","), family.about);
    }
    text
}

impl Options {
    /// Reads the arguments; `None` asks for help.
    pub fn parse(args: &[String]) -> Result<Option<Self>, String> {
        let mut options = Self { time: 1.0, ..Self::default() };
        let mut words = Words::new(args);
        while let Some(word) = words.next() {
            match word {
                "--help" | "-h" => return Ok(None),
                "--quick" => options.quick = true,
                "--full" => options.full = true,
                "--against" => options.against = Some(words.value()?.into()),
                "--ours" => options.ours = Some(words.value()?.into()),
                "--file" => options.file = Some(file(words.value()?)?),
                "--csv" => options.csv = Some(words.value()?.into()),
                "--svg" => options.svg = Some(words.value()?.into()),
                "--time" => options.time = number(word, words.value()?)?,
                "--clevel" => options.clevels = numbers(word, words.value()?)?,
                "--threads" => options.threads = numbers(word, words.value()?)?,
                "--op" => options.ops = ops_named(words.value()?)?,
                "--codec" => options.codecs = names(words.value()?, &CODECS.map(|c| c.name))?,
                "--filter" => options.filters = names(words.value()?, &FILTERS.map(|f| f.name))?,
                "--data" => options.kinds = names(words.value()?, &Kind::ALL.map(Kind::name))?,
                _ => return Err(words.unknown()),
            }
        }
        if !(options.time > 0.0 && options.time <= 1000.0) {
            return Err("--time takes a number above 0".into());
        }
        if options.threads.iter().any(|&threads| threads < 1) {
            return Err("numbers of threads begin with 1".into());
        }
        if options.clevels.iter().any(|&c| c > 9) {
            return Err("compression levels go from 0 to 9".into());
        }
        Ok(Some(options))
    }

    /// Whether the operation `op` is to be measured.
    pub fn wants_op(&self, op: &str) -> bool {
        self.ops.is_empty() || self.ops.iter().any(|o| o == op)
    }

    /// Whether a cell is to be measured.
    pub fn wants(&self, key: &Key) -> bool {
        let any = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        any(&self.codecs, key.codec.name)
            && any(&self.filters, key.filter.name)
            && any(&self.kinds, key.data.name())
            && (self.clevels.is_empty() || self.clevels.contains(&key.clevel))
            && (self.threads.is_empty() || self.threads.contains(&key.threads))
    }

    /// Numbers of threads above one: those asked for, or two.
    pub fn thread_counts(&self) -> Vec<i16> {
        let listed = self.threads.iter().copied().filter(|&threads| threads > 1);
        if self.threads.is_empty() { vec![2] } else { listed.collect() }
    }

    /// The compression levels: those asked for, or the usual ones.
    pub fn clevels(&self) -> Vec<u8> {
        if !self.clevels.is_empty() {
            self.clevels.clone()
        } else if self.full {
            (1..=9).collect()
        } else if self.quick {
            vec![5]
        } else {
            vec![1, 5, 9]
        }
    }

    /// The data kinds of buffers: all, or fewer for a quick run unless some are asked for.
    pub fn kinds(&self) -> Vec<Kind> {
        if self.quick && self.kinds.is_empty() {
            self.kinds_or_file(&[Kind::Smooth, Kind::Ramps, Kind::Image, Kind::Text, Kind::Random])
        } else {
            self.kinds_or_file(&Kind::ALL)
        }
    }

    /// These data kinds, or the user's file if one is given.
    pub fn kinds_or_file(&self, kinds: &[Kind]) -> Vec<Kind> {
        match &self.file {
            Some((_, typesize)) => vec![Kind::File(*typesize)],
            None => kinds.to_vec(),
        }
    }

    /// Time for one cell that gets `ms` milliseconds in a default run.
    pub fn budget(&self, ms: u32) -> Duration {
        let quick = if self.quick { 0.35 } else { 1.0 };
        Duration::from_secs_f64(f64::from(ms) / 1000.0 * quick * self.time)
    }
}

/// The operations of a list, in which the name of a family stands for all of its operations.
fn ops_named(list: &str) -> Result<Vec<String>, String> {
    let families = ops::FAMILIES.iter();
    let known: Vec<&str> =
        families.flat_map(|family| family.ops.iter().copied().chain([family.name])).collect();
    let mut chosen = Vec::new();
    for name in names(list, &known)? {
        match ops::FAMILIES.iter().find(|family| family.name == name) {
            Some(family) => chosen.extend(family.ops.iter().map(|&op| op.to_owned())),
            None => chosen.push(name),
        }
    }
    Ok(chosen)
}

/// Splits a list of names, which must all be known.
fn names(list: &str, known: &[&str]) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(String::from).collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{name}: not one of {}", known.join(","))),
        None => Ok(names),
    }
}

/// The contents of `FILE` or `FILE:TYPESIZE`.
fn file(value: &str) -> Result<(Vec<u8>, u8), String> {
    let (path, typesize) = match value.rsplit_once(':') {
        Some((path, typesize)) => (path, number::<std::num::NonZeroU8>("--file", typesize)?.get()),
        None => (value, 4),
    };
    match std::fs::read(path) {
        Ok(bytes) if !bytes.is_empty() => Ok((bytes, typesize)),
        Ok(_) => Err(format!("{path} is empty")),
        Err(why) => Err(format!("{path}: {why}")),
    }
}

fn number<T: std::str::FromStr>(arg: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{arg}: {text} is not a number in range"))
}

fn numbers<T: std::str::FromStr>(arg: &str, list: &str) -> Result<Vec<T>, String> {
    list.split(',').map(|text| number(arg, text)).collect()
}
