//! Wrong arguments, and fields that clients assign: the same codes, and what follows from them.

use std::ffi::CString;
use std::ptr;

use super::common::check::{equal, for_seeds};
use super::common::clib::{CParams, Clib, DParams};
use super::common::schunk_api::{Schunk, SchunkApi};
use super::common::scratch::Scratch;
use super::common::{OURS, int};

const PLACES: [(bool, bool); 4] = [(false, false), (true, false), (true, true), (false, true)];

/// Super-chunks of 4-byte items, one in each library and place, given to `ask`; the answers must be the same.
fn compare(what: &str, ask: impl Fn(&mut Schunk, &Scratch, &str) -> Vec<i64>) {
    for_seeds(1, |theirs, _| {
        for (contiguous, on_disk) in PLACES {
            let scratch = Scratch::new("errors");
            let (cparams, dparams) = params(theirs);
            let run = |lib, name: &str| {
                let place = scratch.place(contiguous, on_disk, name);
                let mut schunk =
                    SchunkApi::of(lib).create(&place, &cparams, &dparams).expect("a super-chunk");
                ask(&mut schunk, &scratch, name)
            };
            equal(&format!("{what}, {contiguous} {on_disk}"), run(&OURS, "ours"), run(theirs, "theirs"))?;
        }
        Ok(())
    });
}

fn params(lib: &Clib) -> (CParams, DParams) {
    let mut cparams = lib.cparams();
    cparams.typesize = 4;
    cparams.compcode = 1;
    // SAFETY: no preconditions.
    (cparams, unsafe { (lib.f.blosc2_get_blosc2_dparams_defaults)() })
}

fn ramp(nbytes: usize) -> Vec<u8> {
    (0..nbytes.div_ceil(4)).flat_map(|i| int(i * 3).to_le_bytes()).take(nbytes).collect()
}

#[test]
fn wrong_numbers_of_chunks_and_sizes() {
    compare("chunks", |s, _, _| {
        let data = ramp(4000);
        let mut dest = vec![0; 5000];
        let mut codes = vec![
            s.delete_chunk(0),
            s.decompress_chunk(0, &mut dest).into(),
            s.get_chunk(0, false).0.into(),
            s.get_slice(0, 0, &mut dest).into(),
            s.get_slice(0, 1, &mut dest).into(),
            s.get_slice(3, 1, &mut dest).into(),
            s.get_sparse(&[0], &mut dest).into(),
            s.get_sparse(&[], &mut dest).into(),
            s.append_buffer(&data),
            s.append_buffer(&data),
            s.append_buffer(&data[..1000]),
        ];
        for at in [-1, 3, i64::MAX, i64::MIN] {
            codes.push(s.decompress_chunk(at, &mut dest).into());
            codes.push(s.get_chunk(at, false).0.into());
            codes.push(s.get_chunk(at, true).0.into());
            codes.push(s.get_vlblock(at, 0).map_or_else(i64::from, |_| 0));
            codes.push(s.delete_chunk(at));
        }
        for room in [0, 1, 3999, 4000, 4001] {
            codes.push(s.decompress_chunk(0, &mut dest[..room]).into());
        }
        codes.push(s.get_vlblock(0, 0).map_or_else(i64::from, |_| 0));
        codes.push(s.reorder(&[0, 1, 1]).into());
        codes.push(s.reorder(&[0, 1, 3]).into());
        codes.push(s.reorder(&[-1, 1, 2]).into());
        codes.push(s.seen().nbytes);
        codes
    });
}

#[test]
fn damaged_chunks_are_refused() {
    compare("chunks", |s, _, _| {
        let mut codes = vec![s.append_buffer(&ramp(4000))];
        let good = s.get_chunk(0, false).2;
        // Each field of the header in turn.
        for (at, value) in [(8, 0), (8, -1), (12, 15), (12, 0), (12, -1)] {
            let mut bad = good.clone();
            bad[at..at + 4].copy_from_slice(&i32::to_le_bytes(value));
            codes.push(s.append_chunk(&bad, true));
            codes.push(s.insert_chunk(0, &bad, true));
            codes.push(s.update_chunk(0, &bad, true));
        }
        codes.extend([s.nchunks(), s.seen().nbytes, s.seen().cbytes]);
        codes
    });
}

#[test]
fn wrong_metalayers() {
    compare("metalayers", |s, _, _| {
        let long = CString::new("a name that is longer than 31 bytes").expect("no NUL");
        let api = s.api;
        let raw = s.raw;
        let byte = ptr::from_ref(&7_u8).cast_mut();
        // SAFETY: live handles, or null where the library answers to null; lengths that do not exceed the content are
        // never read.
        let mut codes: Vec<i32> = unsafe {
            let f = &api.f;
            vec![
                (f.blosc2_meta_add)(ptr::null_mut(), c"x".as_ptr(), byte, 1),
                (f.blosc2_meta_add)(raw, ptr::null(), byte, 1),
                (f.blosc2_meta_add)(raw, c"x".as_ptr(), ptr::null_mut(), 1),
                (f.blosc2_meta_add)(raw, c"x".as_ptr(), byte, -1),
                (f.blosc2_meta_update)(raw, c"x".as_ptr(), byte, 1),
                (f.blosc2_meta_add)(raw, c"x".as_ptr(), byte, 1),
                (f.blosc2_meta_add)(raw, c"x".as_ptr(), byte, 1),
                (f.blosc2_meta_add)(raw, c"".as_ptr(), ptr::null_mut(), 0),
                (f.blosc2_meta_update)(raw, c"x".as_ptr(), ptr::null_mut(), 1),
                (f.blosc2_meta_update)(raw, c"x".as_ptr(), byte, -1),
                (f.blosc2_vlmeta_add)(ptr::null_mut(), c"x".as_ptr(), byte, 1, ptr::null_mut()),
                (f.blosc2_vlmeta_add)(raw, ptr::null(), byte, 1, ptr::null_mut()),
                (f.blosc2_vlmeta_add)(raw, c"x".as_ptr(), ptr::null_mut(), 1, ptr::null_mut()),
                (f.blosc2_vlmeta_add)(raw, c"x".as_ptr(), byte, -1, ptr::null_mut()),
                (f.blosc2_vlmeta_add)(raw, c"x".as_ptr(), byte, i32::MAX, ptr::null_mut()),
                (f.blosc2_vlmeta_get)(raw, c"x".as_ptr(), ptr::null_mut(), ptr::null_mut()),
            ]
        };
        codes.extend([
            s.meta_update(c"x", &[1, 2, 3]),
            s.meta_update(c"none", &[1]),
            s.meta_update(&long, &[1]),
            s.vlmeta_set(true, c"v", &[1; 100]),
            s.vlmeta_set(true, c"v", &[1]),
            s.vlmeta_set(false, c"none", &[1]),
            s.vlmeta_set(false, &long, &[1]),
            s.vlmeta_get(c"none").0,
            s.vlmeta_exists(&long),
            s.vlmeta_delete(c"none"),
            s.vlmeta_delete(c"v"),
            s.vlmeta_delete(c"v"),
        ]);
        codes.push(int(s.seen().metalayers.len()));
        codes.push(i32::try_from(s.seen().change_tick).expect("small"));
        codes.into_iter().map(i64::from).collect()
    });
}

#[test]
fn wrong_paths_and_frames() {
    compare("paths", |s, scratch, name| {
        let path = |what: &str| scratch.path(&format!("{name} {what}"));
        s.append_buffer(&ramp(4000));
        let in_memory = {
            let seen = s.seen();
            seen.in_frame && seen.storage.0 && seen.storage.1.is_none()
        };
        let nowhere = scratch.path("missing/file");
        let mut codes = vec![s.to_file(&nowhere), i64::from(s.to_file(&path("file")) > 0)];
        if in_memory {
            codes.push(i64::from(s.to_file(&path("file")) > 0)); // replaced
        } else {
            codes.push(s.to_file(&path("file")));
        }
        codes.push(s.append_file(&path("appended")));
        codes.push(i64::from(s.append_file(&path("appended")) > 0));
        let opens = |at: i64, what: &str| i64::from(s.api.open_offset(&path(what), at).is_some());
        codes.extend([
            opens(0, "file"),
            opens(1, "file"),
            opens(-1, "file"),
            opens(1 << 40, "file"),
            opens(0, "none"),
        ]);
        let frame = s.to_buffer().2;
        codes.push(i64::from(s.api.open_buffer(&frame).is_some()));
        codes.push(i64::from(s.api.open_buffer(&frame[..frame.len() - 1]).is_some()));
        codes.push(i64::from(s.api.open_buffer(&frame[..86]).is_some()));
        codes.push(i64::from(s.api.open_buffer(&[]).is_some()));
        let exists = super::common::schunk_api::Place { contiguous: true, urlpath: Some(path("file")) };
        codes.push(i64::from(s.copy(&exists, None).is_some()));
        codes
    });
}

#[test]
fn wrong_parameters() {
    for_seeds(1, |theirs, _| {
        let changes: [fn(&mut CParams); 9] = [
            |p| p.clevel = 10,
            |p| p.compcode = 3,
            |p| p.compcode = 200,
            |p| p.filters[0] = 17,
            |p| p.filters[0] = 200,
            |p| p.tuner_id = 77,
            |p| p.nthreads = 0,
            |p| p.splitmode = 9,
            |p| (p.compcode, p.use_dict) = (0, 1),
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let run = |lib: &'static Clib| {
                let (mut cparams, dparams) = params(theirs);
                change(&mut cparams);
                let place = super::common::schunk_api::Place { contiguous: true, urlpath: None };
                let made = SchunkApi::of(lib).create(&place, &cparams, &dparams);
                made.map(|mut s| (s.append_buffer(&ramp(4000)), s.nchunks(), s.seen().nbytes))
            };
            equal(&format!("parameter {n}"), run(&OURS), run(theirs))?;
        }
        Ok(())
    });
}

#[test]
fn assigned_fields_take_effect() {
    compare("assignments", |s, scratch, name| {
        let data = ramp(4000);
        // SAFETY: a live handle; clients may assign these fields while no call is under way.
        unsafe {
            (*s.raw).chunksize = 2000;
        }
        let mut codes = vec![s.append_buffer(&data), s.append_buffer(&data[..2000])];
        // New contexts from the edited parameters, and the fields that tell of them.
        // SAFETY: as above; the storage has its parameters.
        unsafe {
            let raw = &mut *s.raw;
            let f = &s.api.lib.f;
            let cparams = &mut *(*raw.storage).cparams;
            (cparams.clevel, cparams.typesize, cparams.filters) = (1, 8, [0; 6]);
            (f.blosc2_free_ctx)(raw.cctx);
            raw.cctx = (f.blosc2_create_cctx)(*cparams);
            (raw.clevel, raw.typesize, raw.filters) = (1, 8, [0; 6]);
            let dparams = &mut *(*raw.storage).dparams;
            dparams.nthreads = 2;
            (f.blosc2_free_ctx)(raw.dctx);
            raw.dctx = (f.blosc2_create_dctx)(*dparams);
        }
        codes.push(s.append_buffer(&data[..2000]));
        let mut dest = vec![0; 2000];
        codes.push(s.decompress_chunk(1, &mut dest).into());
        codes.push(i64::from(dest == data[..2000]));
        let chunk = s.get_chunk(1, false).2;
        codes.extend(chunk.iter().map(|&byte| i64::from(byte)));
        let seen = s.seen();
        codes.extend([seen.nbytes, seen.cbytes]);
        if seen.storage.1.is_some() {
            let again = s.api.open(&scratch.path(name)).expect("opens").seen();
            codes.push(again.typesize.into());
            codes.extend([again.codec.3, again.filters.0[5]].map(i64::from));
        }
        // No context for decompression: chunks can still be fetched.
        // SAFETY: as above.
        unsafe {
            (s.api.lib.f.blosc2_free_ctx)((*s.raw).dctx);
            (*s.raw).dctx = ptr::null_mut();
        }
        codes.push(s.get_chunk(0, false).0.into());
        codes.push(s.get_chunk(0, true).0.into());
        codes
    });
}
