//! One case of the random sequences: the same array in both libraries, and how they are compared.

use std::ffi::{CStr, CString};

use super::common::b2nd_api::{Array, ArrayApi, Recipe, SeenArray};
use super::common::check::{equal, same};
use super::common::clib::Clib;
use super::common::data::make_data;
use super::common::schunk_api::Seen;
use super::common::scratch::Scratch;
use super::common::{OURS, Rng};
use super::dense::{Dense, at, items};

const KINDS: [&str; 7] = ["zeros", "constant", "ramp", "noisy", "text", "random", "pattern"];
const DTYPES: [Option<&CStr>; 4] = [None, Some(c"<f8"), Some(c""), Some(c"[('a', '<i4'), ('b', '|S3')]")];

/// One case.
pub struct Case {
    pub ours: Array,
    pub theirs: Array,
    pub dense: Dense,
    pub recipe: Recipe,
    pub place: (bool, bool),
    pub scratch: Scratch,
    /// Both libraries compress to the same bytes.
    pub exact: bool,
    /// The counts of bytes may differ.
    pub drifted: bool,
    /// Each library works on the file that the other one made.
    pub swapped: bool,
}

impl Case {
    /// Where ours and theirs are.
    pub fn paths(&self) -> (CString, CString) {
        let (a, b) = if self.swapped { ("theirs", "ours") } else { ("ours", "theirs") };
        (self.scratch.path(a), self.scratch.path(b))
    }

    pub fn ndim(&self) -> usize {
        self.dense.shape.len()
    }

    pub fn data(&self, rng: &mut Rng, nitems: usize) -> Vec<u8> {
        let kind = rng.pick(&KINDS);
        make_data(rng, kind, self.dense.typesize, nitems * self.dense.typesize)
    }

    /// Takes over what the C library holds, after checking that ours holds the same.
    pub fn take_theirs(&mut self) -> Result<(), String> {
        self.dense.shape = self.theirs.shape();
        equal("shape", self.ours.shape(), self.dense.shape.clone())?;
        let size = items(&self.dense.shape) * self.dense.typesize;
        let (mut a, mut b) = (vec![0x5A; size], vec![0x5A; size]);
        equal("to_cbuffer", self.ours.to_cbuffer(&mut a), self.theirs.to_cbuffer(&mut b))?;
        same("content", &a, &b)?;
        self.dense.bytes = b;
        Ok(())
    }
}

/// A place to draw: contiguous, on disk.
pub fn draw_place(rng: &mut Rng) -> (bool, bool) {
    rng.pick(&[(false, false), (true, false), (true, true), (false, true)])
}

/// Chunk and block shapes for arrays of a shape.
pub fn draw_grid(rng: &mut Rng, shape: &[i64]) -> (Vec<i32>, Vec<i32>) {
    let chunkshape: Vec<i32> = shape
        .iter()
        .map(|&n| {
            let most = at(n) + 3;
            let edge = rng.range(1, most.max(1));
            super::common::int(if rng.one_in(3) { at(n).max(1) } else { edge })
        })
        .collect();
    let blockshape = chunkshape
        .iter()
        .map(|&n| {
            let most = usize::try_from(n).expect("positive");
            let edge = rng.range(1, most + 1);
            super::common::int(if rng.one_in(3) { most } else { edge })
        })
        .collect();
    (chunkshape, blockshape)
}

fn draw_recipe(rng: &mut Rng, lib: &Clib, scratch: &Scratch, place: (bool, bool)) -> Recipe {
    let ndim = rng.pick(&[0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5]);
    let most = [1, 600, 40, 13, 7, 5][ndim];
    let shape: Vec<i64> = (0..ndim)
        .map(|_| i64::try_from(if rng.one_in(12) { 0 } else { rng.range(1, most) }).expect("small"))
        .collect();
    let (chunkshape, blockshape) = draw_grid(rng, &shape);
    let mut cparams = lib.cparams();
    cparams.compcode = rng.pick(&[1, 1, 1, 2, 5, 5, 0, 4]);
    cparams.clevel = u8::try_from(rng.range(0, 6)).expect("a digit");
    cparams.typesize = rng.pick(&[1, 1, 2, 3, 4, 4, 8, 8, 16, 40, 255, 256, 300]);
    cparams.filters = rng.pick(&[[0, 0, 0, 0, 0, 1], [0; 6], [0, 0, 0, 0, 0, 2], [1, 0, 0, 0, 0, 0]]);
    cparams.nthreads = rng.pick(&[1, 1, 2, 3, 4]);
    // SAFETY: no preconditions.
    let mut dparams = unsafe { (lib.f.blosc2_get_blosc2_dparams_defaults)() };
    dparams.nthreads = rng.pick(&[1, 1, 2, 3, 4]);
    let metalayers =
        if rng.one_in(4) { vec![(c"user", rng.bytes(20)), (c"second", Vec::new())] } else { Vec::new() };
    Recipe {
        shape,
        chunkshape,
        blockshape,
        dtype: rng.pick(&DTYPES),
        dtype_format: rng.pick(&[0, 0, 1]),
        metalayers,
        place: scratch.place(place.0, place.1, "ours"),
        cparams,
        dparams,
    }
}

/// Makes the array in both libraries.
pub fn start(theirs: &'static Clib, rng: &mut Rng) -> Result<Case, String> {
    let scratch = Scratch::new("b2nd");
    let place = draw_place(rng);
    let recipe = draw_recipe(rng, theirs, &scratch, place);
    let typesize = recipe.typesize();
    let dense =
        Dense { shape: recipe.shape.clone(), typesize, bytes: vec![0; items(&recipe.shape) * typesize] };
    let exact =
        matches!(recipe.cparams.compcode, 1 | 2 | 5) && typesize <= 255 && recipe.cparams.nthreads == 1;
    let (data, value) = {
        let kind = rng.pick(&KINDS);
        (make_data(rng, kind, typesize, dense.bytes.len()), rng.bytes(typesize))
    };
    let how = rng.below(6);
    let make = |lib: &'static Clib, name: &str| {
        let api = ArrayApi::of(lib);
        let recipe = Recipe { place: scratch.place(place.0, place.1, name), ..recipe.clone() };
        let ctx = api.ctx(&recipe).ok_or("no context".to_string())?;
        let made = match how {
            0 => api.full(&ctx, &value),
            1 => api.make(&ctx, 1),
            2 => api.make(&ctx, 2),
            3 if matches!(typesize, 4 | 8) => api.make(&ctx, 3),
            _ => api.build(&ctx, &data),
        };
        made.1.ok_or(format!("{name} cannot be made: {}", made.0))
    };
    let ours = make(&OURS, "ours")?;
    let theirs = make(theirs, "theirs")?;
    let mut case = Case {
        ours,
        theirs,
        dense,
        recipe,
        place,
        scratch,
        exact,
        drifted: how != 1 && how != 2,
        swapped: false,
    };
    case.take_theirs()?;
    if how > 3 {
        same("built", &case.dense.bytes, &data)?;
    }
    Ok(case)
}

/// What both handles show, and their chunks.
pub fn compare(case: &Case) -> Result<(), String> {
    differing("array", &settled(&case.ours), &settled(&case.theirs))?;
    let mask = |mut seen: Seen| {
        if !case.exact || case.drifted {
            seen.cbytes = 0;
        }
        seen.current_nchunk = 0;
        seen.storage.1 = None;
        seen.vlmetalayers.iter_mut().for_each(|(_, content)| content.clear());
        seen
    };
    let seen = |array: &Array| array.with_schunk(|s| mask(s.seen()));
    differing("super-chunk", &seen(&case.ours), &seen(&case.theirs))?;
    if case.exact {
        for nchunk in 0..seen(&case.ours).nchunks {
            let get = |array: &Array| array.with_schunk(|s| s.get_chunk(nchunk, false));
            let (a, b) = (get(&case.ours), get(&case.theirs));
            if a.2 != b.2 {
                // Inside the padding or not? The decoded bytes tell.
                let decode = |array: &Array| {
                    array.with_schunk(|s| {
                        let mut dest = vec![0x5A; at(s.seen().chunksize.into())];
                        s.decompress_chunk(nchunk, &mut dest);
                        dest
                    })
                };
                same(&format!("chunk {nchunk}, decoded"), &decode(&case.ours), &decode(&case.theirs))?;
                // A chunk that just fits with the blocks kept that it had: compressing them again wants more room.
                if !(is_stored(&b.2) && a.2.len() < b.2.len()) {
                    same(&format!("chunk {nchunk}"), &a.2, &b.2)?;
                }
            }
        }
    }
    Ok(())
}

/// Whether a chunk holds its data as they are.
fn is_stored(chunk: &[u8]) -> bool {
    chunk[2] & 2 != 0
}

/// Fails with the lines in which the two differ.
pub fn differing<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<(), String> {
    let (a, b) = (format!("{ours:#?}"), format!("{theirs:#?}"));
    let differ = |(x, y): &(&str, &str)| x != y;
    let lines: Vec<String> = a
        .lines()
        .zip(b.lines())
        .filter(differ)
        .map(|(x, y)| format!("{} / {}", x.trim(), y.trim()))
        .collect();
    if ours == theirs { Ok(()) } else { Err(format!("{what} differs: {}", lines.join("; "))) }
}

/// Reads the whole array.
pub fn read_all(what: &str, array: &Array, dense: &Dense) -> Result<(), String> {
    equal(&format!("{what}: shape"), array.shape(), dense.shape.clone())?;
    let mut dest = vec![0x5A; dense.bytes.len()];
    equal(&format!("{what}: code"), array.to_cbuffer(&mut dest), 0)?;
    same(what, &dest, &dense.bytes)
}

/// The fields of an array, less what depends on how it came about.
pub fn settled(array: &Array) -> SeenArray {
    SeenArray { is_current: true, ..array.seen() }
}
