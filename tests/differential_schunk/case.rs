//! One case of the random sequences: the same super-chunk in both libraries, and how they are compared.

use std::ffi::CString;

use super::common::check::{equal, same};
use super::common::clib::{CParams, Clib, DParams};
use super::common::data::make_data;
use super::common::schunk_api::{Schunk, SchunkApi, Seen};
use super::common::scratch::Scratch;
use super::common::{OURS, Rng, int};
use super::model::{Model, size};

pub const KINDS: [&str; 7] = ["constant", "ramp", "noisy", "text", "random", "patches", "pattern"];

/// One case: the same super-chunk in both libraries, and what it must hold.
pub struct Case {
    pub ours: Schunk,
    pub theirs: Schunk,
    pub model: Model,
    pub scratch: Scratch,
    pub cparams: CParams,
    pub dparams: DParams,
    pub place: (bool, bool),
    /// Chunks may get sizes of their own.
    pub variable: bool,
    /// Chunks of zeros may be drawn.
    pub zeros: bool,
    /// Both libraries compress to the same sizes.
    pub exact: bool,
    /// Bytes of chunks that were replaced or deleted may be counted differently.
    pub drifted: bool,
    /// Chunks were stored that other parameters may have made: of those, the C library compresses the blocks again that
    /// a slice does not touch.
    pub foreign: bool,
    /// A slice was written, which may have changed the block size of the context.
    pub sliced: bool,
    /// Each library works on the file that the other one made.
    pub swapped: bool,
    pub items: usize,
}

impl Case {
    /// Where ours and theirs are.
    pub fn paths(&self) -> (CString, CString) {
        let (a, b) = if self.swapped { ("theirs", "ours") } else { ("ours", "theirs") };
        (self.scratch.path(a), self.scratch.path(b))
    }

    pub fn framed(&self) -> bool {
        self.place != (false, false)
    }

    pub fn typesize(&self) -> usize {
        usize::try_from(self.cparams.typesize).expect("positive")
    }

    pub fn data(&self, rng: &mut Rng, nbytes: usize) -> Vec<u8> {
        let kind = if self.zeros && rng.one_in(5) { "zeros" } else { rng.pick(&KINDS) };
        let data = make_data(rng, kind, self.typesize(), nbytes);
        if !self.zeros && data.iter().all(|&b| b == 0) { vec![1; nbytes] } else { data }
    }

    /// A size for a chunk at `at`, in bytes.
    pub fn draw_size(&self, rng: &mut Rng) -> usize {
        let items = if self.variable && rng.one_in(3) { rng.range(1, 2 * self.items) } else { self.items };
        items * self.typesize()
    }

    pub fn is_special(&self, chunk: &[u8]) -> bool {
        chunk.len() >= 32 && chunk.iter().all(|&b| b == 0)
    }
}

/// Parameters that both libraries handle.
pub fn draw_params(rng: &mut Rng, lib: &Clib) -> (CParams, DParams, bool) {
    let mut cparams = lib.cparams();
    cparams.compcode = rng.pick(&[1, 1, 1, 2, 5, 5, 0, 4]);
    cparams.clevel = u8::try_from(rng.below(10)).expect("a digit");
    if cparams.compcode == 5 && cparams.clevel > 7 {
        cparams.clevel = 6; // the highest levels take long
    }
    cparams.typesize = rng.pick(&[1, 2, 3, 4, 4, 7, 8, 8, 16, 24, 255, 256, 300]);
    cparams.filters =
        rng.pick(&[[0, 0, 0, 0, 0, 1], [0; 6], [0, 0, 0, 0, 0, 2], [1, 0, 0, 0, 0, 0], [0, 0, 0, 3, 0, 1]]);
    cparams.splitmode = rng.pick(&[1, 2, 3, 4, 4, 4]);
    cparams.nthreads = rng.pick(&[1, 1, 2, 3, 4]);
    let blocks = rng.range(1, 300);
    cparams.blocksize = if rng.one_in(2) { 0 } else { cparams.typesize * int(blocks) };
    if cparams.filters.contains(&3) {
        // What the C library gets wrong in DELTA: partial reads, items of odd sizes.
        cparams.typesize = rng.pick(&[1, 2, 4, 8]);
        cparams.blocksize = 0;
    }
    // SAFETY: no preconditions.
    let mut dparams = unsafe { (lib.f.blosc2_get_blosc2_dparams_defaults)() };
    dparams.nthreads = rng.pick(&[1, 1, 2, 3, 4]);
    (cparams, dparams, matches!(cparams.compcode, 1 | 2 | 5) && cparams.typesize <= 255)
}

pub fn start(theirs: &'static Clib, rng: &mut Rng) -> Case {
    let scratch = Scratch::new("schunk");
    let place = rng.pick(&[(false, false), (true, false), (true, true), (false, true)]);
    let (cparams, dparams, exact) = draw_params(rng, theirs);
    let variable = rng.one_in(3);
    let make = |lib: &'static Clib, name: &str| {
        let place = scratch.place(place.0, place.1, name);
        SchunkApi::of(lib).create(&place, &cparams, &dparams).expect("a super-chunk")
    };
    let ours = make(&OURS, "ours");
    let theirs = make(theirs, "theirs");
    let most = rng.pick(&[60, 600, 4000]);
    let items = rng.range(1, most).max(40 / usize::try_from(cparams.typesize).expect("positive") + 1);
    let items = items.min(60_000 / usize::try_from(cparams.typesize).expect("positive"));
    Case {
        ours,
        theirs,
        model: Model::new(),
        scratch,
        cparams,
        dparams,
        place,
        variable,
        zeros: !variable,
        exact,
        drifted: false,
        foreign: false,
        sliced: false,
        swapped: false,
        items,
    }
}

/// A chunk of `data` made by a context with parameters of its own.
pub fn make_chunk(rng: &mut Rng, case: &Case, lib: &Clib, data: &[u8]) -> Vec<u8> {
    let mut params = case.cparams;
    if rng.one_in(3) {
        params.compcode = rng.pick(&[0, 1, 2, 4, 5]);
        params.clevel = rng.pick(&[0, 1, 5]);
    }
    let mut dest = vec![0; data.len() + 1000];
    let code = lib.cctx(&params).expect("a context").compress(data, &mut dest);
    dest.truncate(usize::try_from(code).expect("compresses"));
    dest
}

/// Fails with the lines in which the two differ.
pub fn differing(what: &str, ours: &Seen, theirs: &Seen) -> Result<(), String> {
    let (a, b) = (format!("{ours:#?}"), format!("{theirs:#?}"));
    let differ = |(x, y): &(&str, &str)| x != y;
    let lines: Vec<String> = a
        .lines()
        .zip(b.lines())
        .filter(differ)
        .map(|(x, y)| format!("{} / {}", x.trim(), y.trim()))
        .collect();
    if ours == theirs { Ok(()) } else { Err(format!("{what} differ: {}", lines.join("; "))) }
}

/// What both handles show, less what may differ.
pub fn compare_seen(case: &Case) -> Result<(), String> {
    let mask = |mut seen: Seen| {
        if !case.exact || case.drifted {
            seen.cbytes = 0;
        }
        seen.storage.1 = seen.storage.1.map(|_| String::new());
        seen.vlmetalayers.iter_mut().for_each(|(_, content)| content.clear());
        seen
    };
    let (ours, theirs) = (mask(case.ours.seen()), mask(case.theirs.seen()));
    differing("fields", &ours, &theirs)?;
    let total: i64 = case.model.chunks.iter().map(|c| size(c)).sum();
    equal("nbytes", ours.nbytes, total)?;
    equal("chunksize", i64::from(ours.chunksize), case.model.chunksize)?;
    equal("metalayers", &ours.metalayers, &case.model.metalayers)
}

pub fn read_all(what: &str, schunk: &mut Schunk, model: &Model) -> Result<(), String> {
    equal(&format!("{what}: nchunks"), schunk.nchunks(), model.len())?;
    for (i, chunk) in model.chunks.iter().enumerate() {
        let at = i64::try_from(i).expect("few chunks");
        let mut dest = vec![0x5A; chunk.len()];
        equal(&format!("{what}: chunk {i}: code"), schunk.decompress_chunk(at, &mut dest), int(chunk.len()))?;
        same(&format!("{what}: chunk {i}"), &dest, chunk)?;
    }
    let seen = schunk.seen();
    equal(&format!("{what}: metalayers"), &seen.metalayers, &model.metalayers)?;
    let names: Vec<String> = model.vlmetalayers.iter().map(|(name, _)| name.clone()).collect();
    equal(&format!("{what}: names"), schunk.vlmeta_names(), names)?;
    for (i, (name, content)) in model.vlmetalayers.iter().enumerate() {
        let (code, got) = schunk.vlmeta_get(&CString::new(name.as_str()).expect("no NUL"));
        equal(&format!("{what}: vlmeta {name}: code"), code, int(i))?;
        same(&format!("{what}: vlmeta {name}"), &got, content)?;
    }
    Ok(())
}

/// Some operations leave the number of the current chunk in different places.
pub fn forget_current(case: &Case) {
    // SAFETY: live handles; clients may assign the field.
    unsafe { (*case.ours.raw).current_nchunk = (*case.theirs.raw).current_nchunk };
}
