//! Changes of a frame, chosen by the input, against a list of its chunks.

#![no_main]

use blosc2::capi::schunk_data::{
    blosc2_schunk_append_buffer, blosc2_schunk_delete_chunk, blosc2_schunk_insert_chunk,
    blosc2_schunk_reorder_offsets, blosc2_schunk_update_chunk,
};
use blosc2::capi::types::CBool;
use libblosc2_rs_fuzz::{OURS, Schunk, int, params};
use libfuzzer_sys::fuzz_target;

const CHUNK: usize = 2400;

fuzz_target!(|data: &[u8]| {
    let Some((mut cparams, steps)) = params(data) else { return };
    let Some(schunk) = Schunk::new(&mut cparams) else { return };
    let mut model: Vec<Vec<u8>> = Vec::new();
    for step in steps.chunks_exact(3).take(24) {
        let [what, place, seed] = [step[0], step[1], step[2]];
        let new: Vec<u8> = (0..CHUNK).map(|i| seed.wrapping_add((i / 7) as u8)).collect();
        let at = if model.is_empty() { 0 } else { usize::from(place) % model.len() };
        let nchunk = i64::from(int(at));
        let (_, mut chunk) = OURS.compress(cparams, &new);
        let copy = CBool::from(true);
        match what % 5 {
            // SAFETY: for this and all calls below: the super-chunk is alive and the chunk is complete.
            0 if unsafe { blosc2_schunk_append_buffer(schunk.0, new.as_ptr().cast(), int(CHUNK)) } > 0 => {
                model.push(new);
            }
            // SAFETY: as above.
            1 if unsafe { blosc2_schunk_insert_chunk(schunk.0, nchunk, chunk.as_mut_ptr(), copy) } > 0 => {
                model.insert(at, new);
            }
            2 if !model.is_empty() => {
                // SAFETY: as above.
                if unsafe { blosc2_schunk_update_chunk(schunk.0, nchunk, chunk.as_mut_ptr(), copy) } > 0 {
                    model[at] = new;
                }
            }
            // SAFETY: as above.
            3 if !model.is_empty() && unsafe { blosc2_schunk_delete_chunk(schunk.0, nchunk) } >= 0 => {
                model.remove(at);
            }
            4 if !model.is_empty() => {
                let mut order: Vec<i64> = (0..i64::from(int(model.len()))).collect();
                order.rotate_left(at);
                // SAFETY: as above, and the order has one entry per chunk.
                if unsafe { blosc2_schunk_reorder_offsets(schunk.0, order.as_mut_ptr()) } >= 0 {
                    model.rotate_left(at);
                }
            }
            _ => {}
        }
    }
    check(&schunk, &model);
    let again = schunk.to_buffer().and_then(|frame| Schunk::from_buffer(&frame));
    check(&again.expect("what was written can be read"), &model);
});

fn check(schunk: &Schunk, model: &[Vec<u8>]) {
    assert_eq!(schunk.fields().nchunks, i64::from(int(model.len())));
    for (nchunk, wanted) in (0..).zip(model) {
        assert_eq!(schunk.chunk(nchunk, CHUNK).as_ref(), Ok(wanted));
    }
}
