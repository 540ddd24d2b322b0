//! Arrays with the codecs and filters of the global registry.

use super::case::{draw_place, read_all};
use super::common::b2nd_api::{Array, ArrayApi, Recipe};
use super::common::check::{equal, for_seeds, same};
use super::common::clib::{CParams, Clib};
use super::common::scratch::Scratch;
use super::common::{OURS, Rng, int};
use super::dense::{Dense, at, items};

const SHUFFLE: u8 = 1;
const NDCELL: u8 = 32;
const NDMEAN: u8 = 33;
const BYTEDELTA: u8 = 35;
const INT_TRUNC: u8 = 36;
const LZ4: u8 = 1;
const NDLZ: u8 = 32;
const ZFP_RATE: u8 = 35;
const ZFP: [u8; 3] = [33, 34, ZFP_RATE];
/// `BLOSC_NEVER_SPLIT`: codecs and filters for shapes want whole blocks.
const NEVER_SPLIT: i32 = 2;

/// A byte that is a small signed number.
fn signed(rng: &mut Rng, low: i8, high: i8) -> u8 {
    let span = usize::try_from(i32::from(high) - i32::from(low)).expect("a range");
    low.wrapping_add(i8::try_from(rng.range(0, span)).expect("a small range")).to_le_bytes()[0]
}

fn byte(number: usize) -> u8 {
    u8::try_from(number).expect("a small number")
}

/// Chooses codec and filters for blocks of `ndim` dimensions; the least edge of a block that suits them, and the step
/// between those that do.
///
/// Streams of ZFP that are longer than the items, as of blocks with many cut cells, are not drawn: the C library writes
/// them past the end of its buffer. Nor are blocks of a single cell with a fixed rate, which it does not always read.
fn draw_plugins(rng: &mut Rng, cparams: &mut CParams, ndim: usize) -> (usize, usize) {
    cparams.compcode = LZ4;
    cparams.typesize = rng.pick(&[4, 8]);
    cparams.splitmode = NEVER_SPLIT;
    cparams.filters = [0; 6];
    match rng.below(6) {
        0 | 1 => {
            cparams.compcode = rng.pick(&ZFP);
            let cut = ndim <= 2 && rng.one_in(2);
            cparams.compcode_meta = match cparams.compcode {
                33 if cut => signed(rng, 0, 2),
                33 => signed(rng, -3, 2),
                34 => byte(rng.range(0, if cut { 2 } else { 12 })),
                _ => byte(rng.range(3, if cut { 30 } else { 90 })),
            };
            (if cparams.compcode == ZFP_RATE { 8 } else { 4 }, if cut { 1 } else { 4 })
        }
        2 if ndim == 2 => {
            (cparams.compcode, cparams.typesize) = (NDLZ, 1);
            cparams.compcode_meta = rng.pick(&[4, 8]);
            (8, 1)
        }
        2 | 3 => {
            let side = rng.range(1, 4);
            cparams.filters[0] = rng.pick(&[NDCELL, NDMEAN]);
            cparams.filters[5] = rng.pick(&[0, SHUFFLE]);
            cparams.filters_meta[0] = byte(side);
            (side, 1)
        }
        4 => {
            (cparams.filters[3], cparams.filters[4]) = (SHUFFLE, BYTEDELTA);
            cparams.filters_meta[4] = rng.pick(&[0, 1, 2, 4, 8]);
            (1, 1)
        }
        _ => {
            (cparams.filters[1], cparams.filters[5]) = (INT_TRUNC, rng.pick(&[0, SHUFFLE]));
            cparams.filters_meta[1] = signed(rng, -20, -1);
            (1, 1)
        }
    }
}

fn draw_recipe(rng: &mut Rng, lib: &Clib, scratch: &Scratch, place: (bool, bool)) -> Recipe {
    let ndim = rng.pick(&[1, 2, 2, 2, 3, 4]);
    let mut cparams = lib.cparams();
    let (least, step) = draw_plugins(rng, &mut cparams, ndim);
    let most = [300, 24, 8, 4][ndim - 1] / step;
    let blockshape: Vec<i32> = (0..ndim).map(|_| int(least + step * rng.range(0, most))).collect();
    let chunkshape: Vec<i32> = blockshape.iter().map(|&n| n + int(rng.below(at(n.into())))).collect();
    let shape = chunkshape.iter().map(|&n| i64::from(n) + i64::from(int(rng.below(at(n.into()))))).collect();
    cparams.clevel = byte(rng.range(1, 9));
    // SAFETY: no preconditions.
    let dparams = unsafe { (lib.f.blosc2_get_blosc2_dparams_defaults)() };
    let (dtype, dtype_format, metalayers) = (None, 0, Vec::new());
    let place = scratch.place(place.0, place.1, "ours");
    Recipe { shape, chunkshape, blockshape, dtype, dtype_format, metalayers, place, cparams, dparams }
}

/// Slow waves with some noise; of the same few rows for codecs of bytes.
fn draw_items(rng: &mut Rng, shape: &[i64], typesize: usize) -> Vec<u8> {
    let noise = rng.pick(&[0, 0, 10, 1000]);
    let nitems = items(shape);
    let mut wave = |i: usize| 20.0 * (i as f64 * 0.1).sin() + rng.below(noise + 1) as f64 * 0.01;
    match typesize {
        1 => (0..nitems).map(|i| byte(i / 37 % 5 * 40 + i % 9)).collect(),
        4 => (0..nitems).flat_map(|i| (wave(i) as f32).to_le_bytes()).collect(),
        _ => (0..nitems).flat_map(|i| wave(i).to_le_bytes()).collect(),
    }
}

/// Fails unless `array` gives a random box of its items.
fn check_box(rng: &mut Rng, array: &Array, dense: &Dense) -> Result<(), String> {
    let start: Vec<i64> = dense.shape.iter().map(|&n| i64::from(int(rng.below(at(n))))).collect();
    let extent: Vec<i64> =
        dense.shape.iter().zip(&start).map(|(&n, &at_)| 1 + i64::from(int(rng.below(at(n - at_))))).collect();
    let stop: Vec<i64> = start.iter().zip(&extent).map(|(a, b)| a + b).collect();
    let mut got = vec![0x5A; items(&extent) * dense.typesize];
    equal("code of a box", array.get_slice(&start, &stop, &extent, &mut got), 0)?;
    let lists: Vec<Vec<i64>> = start.iter().zip(&stop).map(|(&a, &b)| (a..b).collect()).collect();
    same("box", &got, &dense.select(&lists))
}

#[test]
fn plugins_make_the_same_chunks_and_read_those_of_each_other() {
    for_seeds(300, |theirs, rng| {
        let scratch = Scratch::new("plugins");
        let place = draw_place(rng);
        let recipe = draw_recipe(rng, theirs, &scratch, place);
        let what = format!(
            "codec {} {} filters {:?} {:?} typesize {} blocks {:?}",
            recipe.cparams.compcode,
            recipe.cparams.compcode_meta,
            recipe.cparams.filters,
            recipe.cparams.filters_meta,
            recipe.cparams.typesize,
            recipe.blockshape
        );
        check(theirs, rng, &scratch, place, &recipe).map_err(|why| format!("{what}: {why}"))
    });
}

fn check(
    theirs: &'static Clib,
    rng: &mut Rng,
    scratch: &Scratch,
    place: (bool, bool),
    recipe: &Recipe,
) -> Result<(), String> {
    let data = draw_items(rng, &recipe.shape, recipe.typesize());
    let make = |lib: &'static Clib, name: &str| {
        let api = ArrayApi::of(lib);
        let recipe = Recipe { place: scratch.place(place.0, place.1, name), ..recipe.clone() };
        let made = api.build(&api.ctx(&recipe).ok_or("no context")?, &data);
        Ok::<_, String>((made.0, made.1))
    };
    let (ours, theirs) = (make(&OURS, "ours")?, make(theirs, "theirs")?);
    equal("codes", (ours.0, theirs.0), (0, 0))?;
    let (ours, theirs) = (ours.1.ok_or("no array")?, theirs.1.ok_or("no array of theirs")?);
    let mut dense = Dense { shape: recipe.shape.clone(), typesize: recipe.typesize(), bytes: data };
    equal("code of theirs", theirs.to_cbuffer(&mut dense.bytes), 0)?;
    read_all("ours", &ours, &dense)?;
    if recipe.cparams.compcode != NDLZ {
        for nchunk in 0..ours.with_schunk(|s| s.seen().nchunks) {
            let chunk = |array: &Array| array.with_schunk(|s| s.get_chunk(nchunk, false).2);
            same(&format!("chunk {nchunk}"), &chunk(&ours), &chunk(&theirs))?;
        }
    }
    for _ in 0..4 {
        check_box(rng, &ours, &dense)?;
    }
    for (what, from, to) in
        [("our frame in theirs", &ours, theirs.api), ("their frame in ours", &theirs, ours.api)]
    {
        let (code, back) = to.open_buffer(&from.to_cframe().2);
        read_all(what, &back.ok_or(format!("{what}: {code}"))?, &dense)?;
    }
    Ok(())
}
