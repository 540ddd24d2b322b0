//! Super-chunks filled with special values.

use super::common::OURS;
use super::common::check::{equal, for_seeds, same};
use super::common::schunk_api::{Schunk, SchunkApi};
use super::common::scratch::Scratch;

/// What a filled super-chunk answers: codes, fields and bytes.
fn answers(mut schunk: Schunk, filling: Filling) -> (Vec<String>, Vec<u8>) {
    let Filling { kind, nitems, chunksize, .. } = filling;
    let filled = schunk.fill_special(nitems, kind, chunksize);
    let mut seen = schunk.seen();
    seen.storage.1 = None;
    let mut told = vec![format!("{filled}"), format!("{seen:?}")];
    let mut bytes = Vec::new();
    if filled > 0 {
        for nchunk in [0, filled - 1] {
            for lazy in [false, true] {
                let (code, needs_free, chunk) = schunk.get_chunk(nchunk, lazy);
                told.push(format!("chunk {nchunk} lazy {lazy}: {code} {needs_free}"));
                bytes.extend(chunk);
            }
            let mut data = vec![1; 3000];
            told.push(format!("data {nchunk}: {}", schunk.decompress_chunk(nchunk, &mut data)));
            bytes.extend(data);
        }
        let mut items = vec![1; 2 * usize::try_from(seen.typesize).expect("positive")];
        told.push(format!("slice: {}", schunk.get_slice(0, 2.min(nitems), &mut items)));
        bytes.extend(items);
        told.push(format!("again: {}", schunk.fill_special(nitems, kind, chunksize)));
    }
    (told, bytes)
}

/// How a super-chunk is filled.
#[derive(Clone, Copy, Debug)]
struct Filling {
    typesize: i32,
    kind: i32,
    nitems: i64,
    chunksize: i32,
}

/// All combinations of fields, some of them wrong.
fn fillings() -> Vec<Filling> {
    let mut all = Vec::new();
    for typesize in [1, 4, 8, 256] {
        for kind in [0, 1, 2, 3, 4, -1] {
            for nitems in [0, 9, 10, 25, -1] {
                let chunksizes = [10 * typesize, 10 * typesize + 1, typesize - 1, -5];
                all.extend(chunksizes.map(|chunksize| Filling { typesize, kind, nitems, chunksize }));
            }
        }
    }
    all
}

#[test]
fn filled_super_chunks_agree() {
    for_seeds(1, |theirs, _| {
        let scratch = Scratch::new("special");
        // SAFETY: no preconditions.
        let dparams = unsafe { (theirs.f.blosc2_get_blosc2_dparams_defaults)() };
        for (contiguous, on_disk) in [(false, false), (true, false), (true, true), (false, true)] {
            for filling in fillings() {
                let mut cparams = theirs.cparams();
                cparams.typesize = filling.typesize;
                cparams.compcode = 1;
                let run = |lib, name: &str| {
                    let (api, place) = (SchunkApi::of(lib), scratch.place(contiguous, on_disk, name));
                    let schunk = api.create(&place, &cparams, &dparams).expect("a super-chunk");
                    let told = answers(schunk, filling);
                    place.urlpath.iter().for_each(|path| assert_eq!(api.remove(path), 0));
                    told
                };
                let what = format!("contiguous {contiguous} disk {on_disk} {filling:?}");
                let (ours, theirs) = (run(&OURS, "ours"), run(theirs, "theirs"));
                equal(&what, ours.0, theirs.0)?;
                same(&what, &ours.1, &theirs.1)?;
            }
        }
        Ok(())
    });
}
