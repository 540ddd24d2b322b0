//! Results: one line per cell, geometric means, worst cells, CSV.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::measure::Timing;
use super::options::Key;

/// What the second time of a record stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versus {
    /// The C library on the same cell.
    Theirs,
    /// The same library with one thread.
    OneThread,
    /// The same library on a chunk of few blocks.
    FewBlocks,
}

impl Versus {
    /// Its name in lines of text, and in tables.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Versus::Theirs => ("theirs", "theirs"),
            Versus::OneThread => ("1 thread", "one_thread"),
            Versus::FewBlocks => ("10 blocks", "few_blocks"),
        }
    }
}

/// The result of one cell.
#[derive(Clone, Debug)]
pub struct Record {
    /// The operation.
    pub op: &'static str,
    /// The parameters.
    pub key: Key,
    /// Bytes that one call handles; speeds are given in them.
    pub bytes: usize,
    /// Best times.
    pub timing: Timing,
    /// What the second time is.
    pub versus: Versus,
    /// Compressed sizes, ours and theirs, where the operation produces some.
    pub cbytes: Option<(usize, Option<usize>)>,
}

impl Record {
    /// How many times faster the first subject is.
    pub fn ratio(&self) -> Option<f64> {
        self.timing.second.map(|second| second / self.timing.first)
    }

    /// The speed of a call that takes `seconds`; the time if it is long for the bytes that it is about.
    fn speed(&self, seconds: f64) -> String {
        let gbs = self.bytes as f64 / seconds / 1e9;
        if gbs < 0.1 { format!("{:>8.2} us  ", seconds * 1e6) } else { format!("{gbs:>8.3} GB/s") }
    }

    /// The record as a line of text.
    pub fn line(&self) -> String {
        let mut line = format!("{:<18} {}", self.op, self.key);
        write!(line, "  {}", self.speed(self.timing.first)).expect("strings take all");
        if let Some(second) = self.timing.second {
            let (other, _) = self.versus.names();
            write!(line, ", {other} {}", self.speed(second)).expect("strings take all");
        }
        if let Some(ratio) = self.ratio() {
            write!(line, "  x {ratio:.3}").expect("strings take all");
        }
        if let Some((ours, theirs)) = self.cbytes {
            let cratio = |cbytes: usize| self.key.nbytes as f64 / cbytes as f64;
            write!(line, "  cratio {:.2}", cratio(ours)).expect("strings take all");
            if let Some(theirs) = theirs.filter(|&theirs| theirs != ours) {
                write!(line, " / {:.2}", cratio(theirs)).expect("strings take all");
            }
        }
        line
    }
}

/// All results of a run.
#[derive(Default)]
pub struct Report {
    /// The cells, in the order of measurement.
    pub records: Vec<Record>,
    /// Cells whose check failed.
    pub failures: Vec<String>,
}

/// One bar of the chart: label and geometric mean.
pub struct Bar {
    /// What the mean is over.
    pub label: String,
    /// The mean ratio.
    pub mean: f64,
    /// Starts a group of bars.
    pub first: bool,
}

/// Cells listed as the worst ones.
const WORST: usize = 15;
/// Cells below this ratio are counted.
const FLOOR: f64 = 0.95;

type Label = fn(&Record) -> String;

/// What results are grouped by, under each operation.
const GROUPS: [(&str, Label); 5] = [
    ("codec", |r| r.key.codec.name.into()),
    ("filter", |r| r.key.filter.name.into()),
    ("clevel", |r| format!("clevel {}", r.key.clevel)),
    ("data", |r| r.key.data.name().into()),
    ("threads", |r| format!("{} threads", r.key.threads)),
];

impl Report {
    /// Geometric means per operation and group, worst cells, compressed sizes, failures.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let out = &mut text;
        for (op, records) in self.by_op() {
            let ratios: Vec<f64> = records.iter().filter_map(|r| r.ratio()).collect();
            if ratios.is_empty() {
                continue;
            }
            let below = ratios.iter().filter(|&&ratio| ratio < FLOOR).count();
            let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let (mean, cells) = (geomean(&ratios), ratios.len());
            if cells == 1 {
                writeln!(out, "{op}: {mean:.3}").expect("strings take all");
                continue;
            }
            writeln!(
                out,
                "\n{op}: geometric mean {mean:.3} over {cells} cells, worst {worst:.3}, {below} below {FLOOR}"
            )
            .expect("strings take all");
            for (group, label) in GROUPS {
                let means = group_means(&records, label);
                if means.len() > 1 {
                    let list: Vec<String> =
                        means.iter().map(|(name, mean)| format!("{name} {mean:.3}")).collect();
                    writeln!(out, "  by {group:<8} {}", list.join("  ")).expect("strings take all");
                }
            }
        }
        self.sizes(out);
        self.worst(out);
        for failure in &self.failures {
            writeln!(out, "FAILED {failure}").expect("strings take all");
        }
        text
    }

    /// The cells with the lowest ratios.
    fn worst(&self, out: &mut String) {
        let mut sorted: Vec<&Record> = self.records.iter().filter(|r| r.ratio().is_some()).collect();
        sorted.sort_by(|a, b| a.ratio().partial_cmp(&b.ratio()).expect("times are positive"));
        if !sorted.is_empty() {
            *out += "\nworst cells\n";
        }
        for record in sorted.iter().take(WORST) {
            writeln!(out, "  {}", record.line()).expect("strings take all");
        }
    }

    /// Compressed sizes against theirs, where they differ.
    fn sizes(&self, out: &mut String) {
        let mut totals: BTreeMap<(&str, u8), (usize, usize, f64)> = BTreeMap::new();
        for record in &self.records {
            if let Some((ours, Some(theirs))) = record.cbytes {
                let total = totals.entry((record.key.codec.name, record.key.clevel)).or_default();
                total.0 += ours;
                total.1 += theirs;
                total.2 = total.2.max(ours as f64 / theirs as f64);
            }
        }
        let different: Vec<_> = totals.iter().filter(|(_, t)| t.0 != t.1 || t.2 > 1.0).collect();
        if totals.is_empty() {
            return;
        }
        *out += "\ncompressed sizes, ours / theirs: ";
        *out += if different.is_empty() { "all equal\n" } else { "equal but for\n" };
        for ((codec, clevel), (ours, theirs, worst)) in different {
            let sum = *ours as f64 / *theirs as f64;
            writeln!(out, "  {codec:<7} {clevel}: sum {sum:.4}, largest {worst:.4}")
                .expect("strings take all");
        }
    }

    /// The geometric means that the chart shows.
    pub fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        for (op, records) in self.by_op() {
            let ratios: Vec<f64> = records.iter().filter_map(|r| r.ratio()).collect();
            if ratios.is_empty() {
                continue;
            }
            bars.push(Bar { label: op.into(), mean: geomean(&ratios), first: true });
            for (_, label) in &GROUPS[..2] {
                let means = group_means(&records, *label);
                let group = means.into_iter().map(|(name, mean)| (format!("{op} {name}"), mean));
                bars.extend(group.map(|(label, mean)| Bar { label, mean, first: false }));
            }
        }
        bars
    }

    /// All cells as comma-separated values, times in nanoseconds.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "op,codec,clevel,filter,data,threads,nbytes,versus,ours_ns,other_ns,ratio,ours_cbytes,theirs_cbytes\n",
        );
        for r in &self.records {
            let number =
                |x: Option<f64>, digits: usize| x.map_or_else(String::new, |x| format!("{x:.digits$}"));
            let size = |x: Option<usize>| x.map_or_else(String::new, |x| x.to_string());
            let (_, versus) = r.versus.names();
            writeln!(
                text,
                "{},{},{},{},{},{},{},{versus},{},{},{},{},{}",
                r.op,
                r.key.codec.name,
                r.key.clevel,
                r.key.filter.name,
                r.key.data.name(),
                r.key.threads,
                r.key.nbytes,
                number(Some(r.timing.first * 1e9), 0),
                number(r.timing.second.map(|s| s * 1e9), 0),
                number(r.ratio(), 4),
                size(r.cbytes.map(|c| c.0)),
                size(r.cbytes.and_then(|c| c.1)),
            )
            .expect("strings take all");
        }
        text
    }

    /// The records of each operation, in the order in which operations first appear.
    fn by_op(&self) -> Vec<(&'static str, Vec<&Record>)> {
        let mut ops: Vec<(&'static str, Vec<&Record>)> = Vec::new();
        for record in &self.records {
            match ops.iter_mut().find(|(op, _)| *op == record.op) {
                Some((_, records)) => records.push(record),
                None => ops.push((record.op, vec![record])),
            }
        }
        ops
    }
}

/// Geometric mean of the ratios per label, in the order in which labels first appear.
fn group_means(records: &[&Record], label: Label) -> Vec<(String, f64)> {
    let mut groups: Vec<(String, Vec<f64>)> = Vec::new();
    for record in records {
        let Some(ratio) = record.ratio() else { continue };
        let name = label(record);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, ratios)) => ratios.push(ratio),
            None => groups.push((name, vec![ratio])),
        }
    }
    groups.into_iter().map(|(name, ratios)| (name, geomean(&ratios))).collect()
}

/// The geometric mean of `ratios`, which are positive and at least one.
fn geomean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp()
}
