//! The header of a block with codes of its own: the lengths of these codes, in short. They tell the decoder all.

#![forbid(unsafe_code)]

use super::super::format::{END, MAX_RUN_CODE, RUN_ORDER, RUNS, SYMBOLS, USED_DISTANCES};
use super::bits::{BitWriter, Code};
use super::huffman::{DistanceLengths, SymbolLengths};
use super::lengths::{BEHIND, Lengths};

/// The lengths of the codes of a block, in short.
pub(super) struct Header {
    /// How many lengths the header has: of codes of symbols, of those of distances, and of those of lengths themselves.
    nsymbols: usize,
    ndistances: usize,
    nlengths: usize,
    /// Codes for lengths and repetitions.
    codes: [Code; RUNS],
    /// What is coded, and the number after it: the first `nruns` count.
    runs: [(u8, u8); MAX_LENGTHS + 1],
    nruns: usize,
    nbits: usize,
}

/// The most lengths of codes of symbols and distances.
const MAX_LENGTHS: usize = SYMBOLS + USED_DISTANCES;

impl Header {
    /// Size of the header.
    pub(super) fn nbits(&self) -> usize {
        self.nbits
    }

    /// Makes the header for codes of these lengths.
    pub(super) fn fit(&mut self, symbols: &SymbolLengths, distances: &DistanceLengths) {
        (self.nsymbols, self.ndistances) =
            (symbols.trimmed_len().max(END + 1), distances.trimmed_len().max(1));
        let mut all = [0; MAX_LENGTHS];
        let listed = &mut all[..self.nsymbols + self.ndistances];
        let (of_symbols, of_distances) = listed.split_at_mut(self.nsymbols);
        of_symbols.copy_from_slice(&symbols.as_slice()[..self.nsymbols]);
        of_distances.copy_from_slice(&distances.as_slice()[..self.ndistances]);
        let counts = self.find_runs(listed);
        let lengths = Lengths::<{ RUNS + BEHIND }>::best(&counts, MAX_RUN_CODE as usize); // 7
        lengths.assign(&mut self.codes);
        let is_used = |&run: &usize| lengths.as_slice()[run] > 0;
        self.nlengths = RUN_ORDER.iter().rposition(is_used).map_or(4, |last| (last + 1).max(4));
        let extra_bits: u32 = (0..).zip(counts).map(|(run, n)| n * u32::from(extra_len(run))).sum();
        self.nbits = 14 + 3 * self.nlengths + (lengths.data_bits(&counts) + extra_bits) as usize;
    }

    /// Finds what is coded for these lengths; returns how often each of it is.
    fn find_runs(&mut self, lengths: &[u8]) -> [u32; RUNS] {
        // Whether lengths differ is as good as random.
        let mut ends = [0_u16; MAX_LENGTHS];
        let mut n = 0;
        for (end, pair) in (1..).zip(lengths.windows(2)) {
            ends[n] = end;
            n += usize::from(pair[0] != pair[1]);
        }
        ends[n] = lengths.len() as u16; // below 318
        let mut counts = [0; RUNS];
        self.nruns = 0;
        let mut start = 0;
        for &end in &ends[..=n] {
            let (len, count) = (lengths[start], usize::from(end) - start);
            start = end.into();
            if count <= 2 {
                // Two are there, whether they count or not.
                self.runs[self.nruns..self.nruns + 2].fill((len, 0));
                self.nruns += count;
                counts[usize::from(len)] += count as u32;
            } else {
                self.add_run(len, count, &mut counts);
            }
        }
        counts
    }

    /// Adds `n` times the length `len`.
    fn add_run(&mut self, len: u8, mut n: usize, counts: &mut [u32; RUNS]) {
        let mut push = |run: u8, more: usize| {
            counts[usize::from(run)] += 1;
            self.runs[self.nruns] = (run, more as u8); // below 128
            self.nruns += 1;
        };
        if len > 0 {
            push(len, 0);
            n -= 1;
        }
        // Which code repeats, and how often at least.
        let repetitions: &[(u8, usize)] = if len > 0 { &[(16, 3)] } else { &[(18, 11), (17, 3)] };
        for &(run, least) in repetitions {
            while n >= least {
                let more = (n - least).min((1 << extra_len(run.into())) - 1);
                push(run, more);
                n -= least + more;
            }
        }
        (0..n).for_each(|_| push(len, 0));
    }

    pub(super) fn write(&self, out: &mut BitWriter<'_>) {
        // All of these are small, as the format wants them.
        out.put(Code::new((self.nsymbols - END - 1) as u32, 5));
        out.put(Code::new((self.ndistances - 1) as u32, 5));
        out.put(Code::new((self.nlengths - 4) as u32, 4));
        out.flush();
        for &run in &RUN_ORDER[..self.nlengths] {
            out.put(Code::new(u32::from(self.codes[run].len), 3));
            out.flush();
        }
        let code = |(run, more): (u8, u8)| {
            let run = usize::from(run);
            self.codes[run].then(Code::new(more.into(), extra_len(run)))
        };
        // Each has 14 bits at most.
        let mut fours = self.runs[..self.nruns].chunks_exact(4);
        for four in &mut fours {
            four.iter().for_each(|&run| out.put(code(run)));
            out.flush();
        }
        fours.remainder().iter().for_each(|&run| out.put(code(run)));
        out.flush();
    }
}

/// Size of the number after the code of a length or a repetition.
fn extra_len(run: usize) -> u8 {
    match run {
        16 => 2,
        17 => 3,
        18 => 7,
        _ => 0,
    }
}
