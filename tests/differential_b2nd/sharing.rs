//! One file, two handles: arrays that one library changes, read through a handle of the other (or of the same).

use super::case::settled;
use super::common::b2nd_api::{ArrayApi, Recipe};
use super::common::check::{equal, for_seeds, same};
use super::common::clib::Clib;
use super::common::data::make_data;
use super::common::schunk_api::Place;
use super::common::scratch::Scratch;
use super::common::{OURS, Rng, int};
use super::dense::items;

#[test]
fn readers_follow_writers_of_either_library() {
    for_seeds(40, |theirs, rng| {
        let scratch = Scratch::new("b2nd-sharing");
        let place = Place { contiguous: rng.one_in(2), urlpath: Some(scratch.path("shared")) };
        let path = place.urlpath.clone().expect("on disk");
        let pairs: [(&'static Clib, &'static Clib); 3] =
            [(&*OURS, theirs), (theirs, &*OURS), (&*OURS, &*OURS)];
        let (writes, reads) = rng.pick(&pairs);
        let draw = |rng: &mut Rng, most| i64::try_from(rng.range(1, most)).expect("small");
        let shape = vec![draw(rng, 20), draw(rng, 20)];
        let chunkshape = vec![int(rng.range(1, 9)), int(rng.range(1, 9))];
        let mut cparams = theirs.cparams();
        cparams.compcode = 1;
        let recipe = Recipe {
            blockshape: chunkshape.iter().map(|&n| (n / 2).max(1)).collect(),
            shape,
            chunkshape,
            dtype: Some(c"<i8"),
            dtype_format: 0,
            metalayers: Vec::new(),
            place,
            cparams,
            // SAFETY: no preconditions.
            dparams: unsafe { (theirs.f.blosc2_get_blosc2_dparams_defaults)() },
        };
        let api = ArrayApi::of(writes);
        let ctx = api.ctx(&recipe).ok_or("no context")?;
        let data = make_data(rng, "noisy", 8, items(&recipe.shape) * 8);
        let mut writer = api.build(&ctx, &data).1.ok_or("cannot be made")?;
        let (code, reader) = ArrayApi::of(reads).open(&path);
        let mut reader = reader.ok_or(format!("does not open: {code}"))?;
        for step in 0..rng.range(3, 12) {
            let old = writer.shape();
            let axis = rng.below(2);
            let code = match rng.below(4) {
                0 => {
                    let new: Vec<i64> = old.iter().map(|&n| (n + draw(rng, 9) - 4).max(1)).collect();
                    writer.resize(&new, None)
                }
                1 => {
                    let rows = rng.range(1, 9);
                    let other = usize::try_from(old[1 - axis]).expect("small");
                    let more = make_data(rng, "ramp", 8, rows * other * 8);
                    writer.insert(&more, i8::try_from(axis).expect("small"), old[axis])
                }
                2 => writer.with_schunk(|s| s.vlmeta_set(step == 0, c"vl", &[7; 20])).min(0),
                _ => {
                    let new = make_data(rng, "random", 8, items(&old) * 8);
                    writer.set_slice(&[0, 0], &old, &old, &new)
                }
            };
            let lost = code == -16; // no such metalayer yet
            equal("code", code == 0 || lost, true)?;
            if reader.refresh() == 0 {
                // The frame has the length that it had: nothing tells of the change.
                reader = ArrayApi::of(reads).open(&path).1.ok_or("does not open again")?;
            }
            let mut fields = (settled(&reader), settled(&writer));
            fields.0.dtype.clone_from(&fields.1.dtype);
            equal(&format!("step {step}"), fields.0, fields.1)?;
            let size = items(&writer.shape()) * 8;
            let (mut a, mut b) = (vec![0; size], vec![1; size]);
            equal("reads", (reader.to_cbuffer(&mut a), writer.to_cbuffer(&mut b)), (0, 0))?;
            same(&format!("content at step {step}"), &a, &b)?;
        }
        Ok(())
    });
}
