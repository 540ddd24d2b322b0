//! One file, two handles: what one library writes, a handle of the other (or of the same) follows.

use super::case::read_all;
use super::common::check::{equal, for_seeds};
use super::common::clib::Clib;
use super::common::data::make_data;
use super::common::schunk_api::{Place, Schunk, SchunkApi};
use super::common::scratch::Scratch;
use super::common::{OURS, Rng};
use super::model::{Model, size};

/// One change by the writer.
fn change(writer: &mut Schunk, model: &mut Model, rng: &mut Rng, nbytes: usize) -> Result<(), String> {
    let kind = rng.pick(&["ramp", "noisy", "random", "zeros", "text"]);
    let data = make_data(rng, kind, 4, nbytes);
    let n = model.chunks.len();
    let at = i64::try_from(rng.below(n.max(1))).expect("few chunks");
    match rng.below(6) {
        0 if n > 0 => {
            equal("delete", writer.delete_chunk(at), model.len() - 1)?;
            model.chunks.remove(usize::try_from(at).expect("in range"));
        }
        1 if n > 0 => {
            let (start, stop) = (at * size(&data) / 4, (at * size(&data) + size(&data)) / 4 - 3);
            equal("set slice", writer.set_slice(start, stop, &data), 0)?;
            model.overwrite(usize::try_from(start * 4).expect("small"), &data[..nbytes - 12]);
        }
        2 if n > 0 => {
            let order: Vec<i64> = (0..model.len()).rev().collect();
            equal("reorder", writer.reorder(&order), 0)?;
            model.chunks.reverse();
        }
        3 => {
            let add = model.vlmetalayers.is_empty();
            equal("vlmeta", writer.vlmeta_set(add, c"vl", &data[..rng.below(nbytes)]), 0)?;
            let content = writer.vlmeta_get(c"vl").1;
            model.vlmetalayers = vec![("vl".to_string(), content)];
        }
        _ => {
            equal("append", writer.append_buffer(&data), model.len() + 1)?;
            model.insert(n, data);
        }
    }
    Ok(())
}

#[test]
fn readers_follow_writers_of_either_library() {
    for_seeds(40, |theirs, rng| {
        let scratch = Scratch::new("sharing");
        let contiguous = rng.one_in(2);
        let place = Place { contiguous, urlpath: Some(scratch.path("shared")) };
        let path = place.urlpath.clone().expect("on disk");
        let mut cparams = theirs.cparams();
        cparams.typesize = 4;
        cparams.compcode = 1;
        // SAFETY: no preconditions.
        let dparams = unsafe { (theirs.f.blosc2_get_blosc2_dparams_defaults)() };
        let (writes, reads): (&'static Clib, &'static Clib) =
            rng.pick(&[(&*OURS, theirs), (theirs, &*OURS), (&*OURS, &*OURS)]);
        let nbytes = rng.range(10, 800) * 4;
        let mut writer = SchunkApi::of(writes).create(&place, &cparams, &dparams).ok_or("cannot be made")?;
        let mut model = Model::new();
        model.chunks.push(make_data(rng, "ramp", 4, nbytes));
        model.chunksize = size(&model.chunks[0]);
        equal("first", writer.append_buffer(&model.chunks[0]), 1)?;
        let mut reader = SchunkApi::of(reads).open(&path).ok_or("does not open")?;
        for step in 0..rng.range(3, 15) {
            change(&mut writer, &mut model, rng, nbytes).map_err(|why| format!("step {step}: {why}"))?;
            if rng.one_in(3) {
                continue; // several changes at once
            }
            // Without locking a change is noticed by the length of the frame; a new handle sees all.
            let refreshed = reader.refresh();
            if refreshed == 0 {
                reader = SchunkApi::of(reads).open(&path).ok_or("does not open")?;
            }
            equal("refresh", refreshed >= 0, true)?;
            let what = format!(
                "step {step}, contiguous {contiguous}, ours writes {} reads {}, refreshed {refreshed}",
                std::ptr::eq(writes, &*OURS),
                std::ptr::eq(reads, &*OURS)
            );
            read_all(&what, &mut reader, &model)?;
            read_all(&what, &mut writer, &model)?;
        }
        Ok(())
    });
}
