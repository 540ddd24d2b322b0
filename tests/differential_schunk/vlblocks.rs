//! Super-chunks of chunks with variable-length blocks.

use super::common::check::{equal, for_seeds};
use super::common::clib::{CParams, Clib};
use super::common::data::make_data;
use super::common::schunk_api::{Schunk, SchunkApi};
use super::common::scratch::Scratch;
use super::common::{OURS, Rng, int};

/// A chunk of blocks, and the blocks.
fn make_chunk(lib: &Clib, params: &CParams, rng: &mut Rng) -> (Vec<u8>, Vec<Vec<u8>>) {
    let blocks: Vec<Vec<u8>> = (0..rng.range(1, 6))
        .map(|_| {
            let len = rng.range(1, 300);
            let kind = rng.pick(&["text", "random", "ramp", "zeros"]);
            make_data(rng, kind, 1, len)
        })
        .collect();
    let mut dest = vec![0; blocks.concat().len() + 1000];
    let parts: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    let code = lib.cctx(params).expect("a context").vlcompress(&parts, &mut dest);
    dest.truncate(usize::try_from(code).expect("compresses"));
    (dest, blocks)
}

/// Every block of every chunk, and what lies beside them.
fn compare_blocks(ours: &mut Schunk, theirs: &mut Schunk, model: &[Vec<Vec<u8>>]) -> Result<(), String> {
    for (nchunk, blocks) in (0..).zip(model) {
        for nblock in -1..=int(blocks.len()) {
            let got = (ours.get_vlblock(nchunk, nblock), theirs.get_vlblock(nchunk, nblock));
            let what = format!("block {nblock} of chunk {nchunk}");
            equal(&what, &got.0, &got.1)?;
            let expected = usize::try_from(nblock).ok().and_then(|n| blocks.get(n));
            equal(&what, got.0.ok().as_ref(), expected)?;
        }
        let whole = blocks.concat();
        let (mut a, mut b) = (vec![0; whole.len()], vec![0; whole.len()]);
        let codes = (ours.decompress_chunk(nchunk, &mut a), theirs.decompress_chunk(nchunk, &mut b));
        equal("code of a whole chunk", codes.0, codes.1)?;
        equal("whole chunk", a, whole)?;
    }
    let beyond = i64::try_from(model.len()).expect("few chunks");
    equal("beyond", ours.get_vlblock(beyond, 0), theirs.get_vlblock(beyond, 0))
}

/// Changes both in the same way, with a new chunk of `blocks`, and the model with them.
fn change(
    (ours, theirs): (&mut Schunk, &mut Schunk),
    model: &mut Vec<Vec<Vec<u8>>>,
    rng: &mut Rng,
    (chunk, blocks): (&[u8], Vec<Vec<u8>>),
) -> Result<(), String> {
    let at = rng.below(model.len() + 1);
    let position = i64::try_from(at).expect("few chunks");
    match rng.below(6) {
        0 | 1 => {
            let full = ours.seen().chunksize;
            let total: usize = model.iter().flatten().map(Vec::len).sum();
            if full > 0 && int(blocks.concat().len()) < full && int(total) < full {
                return Ok(()); // refused by frames of the C library, after a short chunk
            }
            let codes = (ours.append_chunk(chunk, true), theirs.append_chunk(chunk, true));
            equal("append", codes.0, codes.1)?;
            if codes.0 > 0 {
                model.push(blocks);
            }
        }
        2 => {
            let codes =
                (ours.insert_chunk(position, chunk, false), theirs.insert_chunk(position, chunk, false));
            equal("insert", codes.0, codes.1)?;
            if codes.0 > 0 {
                model.insert(at, blocks);
            }
        }
        3 => {
            equal(
                "update",
                ours.update_chunk(position, chunk, true),
                theirs.update_chunk(position, chunk, true),
            )?;
            model.get_mut(at).into_iter().for_each(|old| old.clone_from(&blocks));
        }
        4 => {
            equal("delete", ours.delete_chunk(position), theirs.delete_chunk(position))?;
            if at < model.len() {
                model.remove(at);
            }
        }
        _ if !model.is_empty() => {
            // Plain chunks do not mix with these.
            equal("append buffer", ours.append_buffer(&[7; 100]), theirs.append_buffer(&[7; 100]))?;
        }
        _ => {}
    }
    Ok(())
}

#[test]
fn chunks_of_variable_length_blocks_agree() {
    for_seeds(60, |theirs, rng| {
        let scratch = Scratch::new("vlblocks");
        let (contiguous, on_disk) = rng.pick(&[(false, false), (true, false), (true, true), (false, true)]);
        let mut cparams = theirs.cparams();
        cparams.typesize = 1;
        cparams.compcode = rng.pick(&[1, 2, 5]);
        cparams.nthreads = rng.pick(&[1, 2, 4]);
        // SAFETY: no preconditions.
        let mut dparams = unsafe { (theirs.f.blosc2_get_blosc2_dparams_defaults)() };
        dparams.nthreads = rng.pick(&[1, 2, 4]);
        let make = |lib, name: &str| {
            SchunkApi::of(lib)
                .create(&scratch.place(contiguous, on_disk, name), &cparams, &dparams)
                .expect("made")
        };
        let (mut a, mut b) = (make(&OURS, "ours"), make(theirs, "theirs"));
        let mut model: Vec<Vec<Vec<u8>>> = Vec::new();
        for _ in 0..rng.range(3, 15) {
            let lib: &Clib = if rng.one_in(2) { &OURS } else { theirs };
            let (chunk, blocks) = make_chunk(lib, &cparams, rng);
            change((&mut a, &mut b), &mut model, rng, (&chunk, blocks))?;
            // After a refused chunk the C library keeps the flags of it.
            let flags2 = |s: &Schunk| if model.is_empty() { 0 } else { s.seen().flags2 };
            let fields = |s: &Schunk| (s.nchunks(), s.seen().nbytes, flags2(s), s.seen().chunksize);
            equal("fields", fields(&a), fields(&b))?;
            compare_blocks(&mut a, &mut b, &model)?;
        }
        if !model.is_empty() {
            let frame = a.to_buffer().2;
            let mut back = SchunkApi::of(theirs).open_buffer(&frame).ok_or("theirs does not open ours")?;
            let mut own =
                SchunkApi::of(&OURS).open_buffer(&b.to_buffer().2).ok_or("ours does not open theirs")?;
            compare_blocks(&mut own, &mut back, &model)?;
        }
        Ok(())
    });
}
