//! Random parameters and data through contexts: compression, decompression, items, masks, queries.

use super::case::{BLOSCLZ, Case, NEVER_SPLIT};
use super::common::clib::Clib;
use super::common::{OURS, Rng, int};
use super::{GUARD, equal, for_seeds, same};
use std::cell::Cell;

/// Compresses with a fresh context into `destsize` bytes; the code, and the chunk if there is one.
fn compress(lib: &Clib, case: &Case, threads: i16, data: &[u8]) -> Result<(i32, Option<Vec<u8>>), String> {
    // The C library writes to its source with some pipelines: each call gets a copy, and ours must leave it alone.
    let src = data.to_vec();
    let mut ctx = lib.cctx(&case.cparams(lib, threads)).ok_or("no context")?;
    // The C library writes past the destination with dictionaries: leave it some slack.
    let slack = data.len() + (1 << 18);
    let mut dest = vec![GUARD[0]; case.destsize + slack];
    let code = ctx.compress(&src, &mut dest[..case.destsize]);
    if std::ptr::eq(lib, &*OURS) {
        same("source after compression", &src, data)?;
        same("guard after the destination", &dest[case.destsize..][..16], &GUARD)?;
    }
    match usize::try_from(code) {
        Ok(cbytes) if cbytes > case.destsize => Err(format!("{cbytes} bytes in {} of room", case.destsize)),
        Ok(cbytes) if cbytes > 0 => Ok((code, Some(dest[..cbytes].to_vec()))),
        _ => Ok((code, None)),
    }
}

/// Whether a chunk is stored raw.
fn is_stored(chunk: &[u8]) -> bool {
    chunk[2] & 2 != 0
}

/// Fails unless `lib` gets `expected` out of `chunk`, without touching more.
fn reads(what: &str, lib: &Clib, threads: i16, chunk: &[u8], expected: &[u8]) -> Result<(), String> {
    let mut dest = [vec![0x5A; expected.len()], GUARD.to_vec()].concat();
    let code = lib.dctx(threads).decompress(chunk, &mut dest[..expected.len()]);
    equal(&format!("{what}: code"), code, int(expected.len()))?;
    same(what, &dest, &[expected, &GUARD].concat())
}

#[test]
fn random_chunks_agree() {
    for_seeds(700, |theirs, rng| {
        let case = Case::draw(rng);
        if std::env::var_os("BLOSC2_DIFF_TRACE").is_some() {
            eprintln!("{case:?}");
        }
        let data = case.data(rng);
        check(theirs, rng, &case, &data).map_err(|why| format!("{why}\n    {case:?}"))
    });
}

/// BloscLZ leaves alone what promises too little for the level. Both libraries judge alike, so that neither is slow
/// where the other one hardly looks, nor larger where the other one shrinks the data. At level 9 all hangs on a few
/// bytes.
#[test]
fn blosclz_gives_up_where_theirs_does() {
    let (cases, differing) = (Cell::new(0), Cell::new(0));
    for_seeds(400, |theirs, rng| {
        let nbytes = rng.pick(&[1000, 4096, 16_384, 50_000, 131_072]);
        let case = Case {
            codec: BLOSCLZ,
            clevel: u8::try_from(rng.range(1, 8)).expect("a digit"),
            filters: [0; 6],
            metas: [0; 6],
            typesize: rng.pick(&[2, 4, 8]),
            nbytes,
            blocksize: nbytes,
            splitmode: NEVER_SPLIT,
            use_dict: false,
            threads: 1,
            destsize: nbytes + 100,
            kind: rng.pick(&["ramp", "noisy", "text", "patches", "pattern"]),
        };
        let data = case.data(rng);
        let gives_up = |lib: &Clib| -> Result<bool, String> {
            let (_, chunk) = compress(lib, &case, 1, &data)?;
            Ok(is_stored(&chunk.ok_or("no chunk")?))
        };
        cases.set(cases.get() + 1);
        differing.set(differing.get() + i32::from(gives_up(&OURS)? != gives_up(theirs)?));
        Ok(())
    });
    assert!(50 * differing.get() <= cases.get(), "{} of {} differ", differing.get(), cases.get());
}

fn check(theirs: &Clib, rng: &mut Rng, case: &Case, data: &[u8]) -> Result<(), String> {
    let (our_code, ours) = compress(&OURS, case, 1, data)?;
    if case.threads > 1 {
        let (code, chunk) = compress(&OURS, case, case.threads, data)?;
        equal("code with threads", code, our_code)?;
        same("chunk with threads", &chunk.unwrap_or_default(), ours.as_deref().unwrap_or_default())?;
    }
    let (their_code, their_chunk) = compress(theirs, case, 1, data)?;

    if let Some(chunk) = &ours {
        let expected = case.expected(data, is_stored(chunk));
        reads("ours reads ours", &OURS, 1, chunk, &expected)?;
        reads("ours reads ours with threads", &OURS, 3, chunk, &expected)?;
        if !case.is_misread_by_theirs() {
            reads("theirs reads ours", theirs, 1, chunk, &expected)?;
        }
        items_and_masks(rng, chunk, &expected)?;
        queries(theirs, chunk)?;
    }

    // What follows compares with their chunk, where that is good.
    let Some(chunk) = their_chunk else {
        if their_code < 0 && case.is_unsafe_for_theirs() {
            return Ok(()); // -6 after writing past the destination, and the like
        }
        if their_code == 0 {
            // Ours may fit where theirs gave up a few bytes early.
            return if our_code >= 0 { Ok(()) } else { Err(format!("code {our_code} instead of 0 or more")) };
        }
        return equal("code", our_code, their_code);
    };
    let Some(our_chunk) = &ours else {
        // With DELTA and friends theirs may be short because it is wrong. BloscLZ and zlib streams are each library's
        // own, and each leaves some as they are, for which there may be no room.
        let tight = case.destsize < data.len() + 32 && !case.is_exact();
        let excuse = our_code == 0 && (case.is_unsafe_for_theirs() || tight);
        return if excuse { Ok(()) } else { Err(format!("code {our_code} instead of {their_code}")) };
    };
    let expected = case.expected(data, is_stored(&chunk));
    let readable = reads("theirs reads theirs", theirs, 1, &chunk, &expected);
    if !case.is_unsafe_for_theirs() {
        readable.clone()?;
    }
    if readable.is_ok() {
        reads("ours reads theirs", &OURS, 1, &chunk, &expected)?;
        reads("ours reads theirs with threads", &OURS, 2, &chunk, &expected)?;
        items_and_masks(rng, &chunk, &expected)?;
        queries(theirs, &chunk)?;
        if case.threads > 1 && !case.is_unsafe_for_theirs() {
            let (_, shuffled) = compress(theirs, case, case.threads, data)?;
            let shuffled = shuffled.ok_or("theirs fails with threads")?;
            let expected = case.expected(data, is_stored(&shuffled));
            reads("ours reads theirs made with threads", &OURS, 1, &shuffled, &expected)?;
        }
    }
    if case.is_exact() && case.is_roomy() {
        same("our chunk", our_chunk, &chunk)?;
    } else if case.is_exact() && our_chunk.len() > chunk.len() {
        return Err(format!("our chunk has {} bytes, theirs {}", our_chunk.len(), chunk.len()));
    }
    Ok(())
}

/// Items and masked blocks of `chunk` against slices of `whole`.
fn items_and_masks(rng: &mut Rng, chunk: &[u8], whole: &[u8]) -> Result<(), String> {
    let typesize = usize::from(chunk[3]);
    let nitems = whole.len() / typesize;
    let mut ctx = OURS.dctx(rng.pick(&[1, 2]));
    for _ in 0..4 {
        let start = rng.below(nitems + 1);
        let count = match rng.below(3) {
            0 => 1.min(nitems - start),
            1 => rng.below(nitems - start + 1),
            _ => rng.below((nitems - start).min(200) + 1),
        };
        let span = start * typesize..(start + count) * typesize;
        let mut dest = [vec![0x5A; span.len()], GUARD.to_vec()].concat();
        let code = ctx.getitem(chunk, int(start), int(count), &mut dest[..span.len()]);
        equal("getitem: code", code, int(span.len()))?;
        same(&format!("items {start}+{count}"), &dest, &[&whole[span.clone()], &GUARD].concat())?;
        let mut dest = vec![0x5A; span.len()];
        let code = ctx.getitem_bytes(chunk, int(span.start), int(span.len()), &mut dest);
        equal("getitem_bytes: code", code, int(span.len()))?;
        same("bytes of items", &dest, &whole[span])?;
    }

    let blocksize = u32::from_le_bytes(chunk[8..12].try_into().expect("four bytes")) as usize;
    let nblocks = whole.len().div_ceil(blocksize);
    let mask: Vec<bool> = (0..nblocks).map(|_| rng.one_in(2)).collect();
    if nblocks > 0 {
        equal("set_maskout", ctx.set_maskout(&mask), 0)?;
        let mut dest = vec![0x5A; whole.len()];
        equal("masked: code", ctx.decompress(chunk, &mut dest), int(whole.len()))?;
        let mut expected = whole.to_vec();
        for (block, _) in expected.chunks_mut(blocksize).zip(&mask).filter(|(_, masked)| **masked) {
            block.fill(0x5A);
        }
        same("masked blocks", &dest, &expected)?;
        equal("mask of a wrong length", ctx.set_maskout(&vec![true; nblocks + 1]), 0)?;
        equal("mask of a wrong length", ctx.decompress(chunk, &mut dest), -3)?;
    }
    let mut dest = vec![0x5A; whole.len()];
    equal("after the mask: code", ctx.decompress(chunk, &mut dest), int(whole.len()))?;
    same("after the mask", &dest, whole)
}

/// Both libraries say the same about a chunk.
fn queries(theirs: &Clib, chunk: &[u8]) -> Result<(), String> {
    equal("cbuffer_sizes", OURS.cbuffer_sizes(chunk), theirs.cbuffer_sizes(chunk))?;
    equal("blosc1_cbuffer_sizes", OURS.cbuffer_sizes1(chunk), theirs.cbuffer_sizes1(chunk))?;
    equal("cbuffer_metainfo", OURS.cbuffer_metainfo(chunk), theirs.cbuffer_metainfo(chunk))?;
    equal("cbuffer_versions", OURS.cbuffer_versions(chunk), theirs.cbuffer_versions(chunk))?;
    equal("cbuffer_complib", OURS.cbuffer_complib(chunk), theirs.cbuffer_complib(chunk))?;
    for size in [chunk.len(), chunk.len() - 1, 16, 15] {
        equal("cbuffer_validate", OURS.cbuffer_validate(chunk, size), theirs.cbuffer_validate(chunk, size))?;
    }
    Ok(())
}

#[test]
fn a_reused_context_writes_what_a_fresh_one_does() {
    for_seeds(60, |_, rng| {
        let mut case = Case::draw(rng);
        let mut ctx = OURS.cctx(&case.cparams(&OURS, case.threads)).ok_or("no context")?;
        for _ in 0..5 {
            case.nbytes = rng.pick(&[0, 10, 100, 5000, 30_000, 200_000]) + rng.below(100);
            case.destsize = case.nbytes + 70_000;
            let data = case.data(rng);
            let (code, chunk) = compress(&OURS, &case, 1, &data)?;
            let mut dest = vec![0; case.destsize];
            equal("code", ctx.compress(&data, &mut dest), code)
                .map_err(|why| format!("{why}\n    {case:?}"))?;
            let fresh = chunk.unwrap_or_default();
            same("chunk", &dest[..fresh.len()], &fresh).map_err(|why| format!("{why}\n    {case:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn zlib_streams_do_not_depend_on_earlier_ones() {
    for_seeds(2000, |_, rng| {
        let mut case = Case::draw(rng);
        (case.codec, case.use_dict, case.blocksize) = (super::case::ZLIB, false, 0);
        case.nbytes = rng.range(33, 20_000);
        case.destsize = case.nbytes + 70_000;
        let data = case.data(rng);
        let (_, here) = compress(&OURS, &case, 1, &data)?;
        // A new thread has no history.
        let fresh = std::thread::scope(|scope| {
            let compressed = scope.spawn(|| compress(&OURS, &case, 1, &data));
            compressed.join().map_err(|_| "a panic".to_string())?
        })?;
        let what = format!("level {}, {} bytes of {}", case.clevel, case.nbytes, case.kind);
        same(&what, &here.unwrap_or_default(), &fresh.1.unwrap_or_default())
    });
}

#[test]
fn wrong_item_ranges_give_the_same_codes() {
    for_seeds(150, |theirs, rng| {
        let mut case = Case::draw(rng);
        case.filters = [0, 0, 0, 0, 0, rng.pick(&[0, 1, 2])];
        (case.use_dict, case.blocksize, case.destsize) = (false, 0, case.nbytes + 70_000);
        let data = case.data(rng);
        let (_, chunk) = compress(&OURS, &case, 1, &data)?;
        let chunk = chunk.ok_or("no chunk")?;
        let typesize = usize::from(chunk[3]);
        let nitems = int(data.len() / typesize);
        let ranges = [
            (0, 0),
            (-1, 0),
            (-1, 1),
            (0, -1),
            (nitems, 0),
            (nitems, 1),
            (nitems + 1, 1),
            (0, nitems + 1),
            (nitems - 1, 2),
            (i32::MAX, 1),
            (1, i32::MAX),
            (i32::MAX, i32::MAX),
            (i32::MIN, i32::MIN),
        ];
        let mut dest = vec![0; data.len() + 1000];
        for (start, count) in ranges {
            let ours = OURS.dctx(1).getitem(&chunk, start, count, &mut dest);
            let reference = theirs.dctx(1).getitem(&chunk, start, count, &mut dest);
            equal(&format!("getitem({start}, {count})"), ours, reference)?;
            let ours = OURS.dctx(1).getitem_bytes(&chunk, start, count, &mut dest);
            let reference = theirs.dctx(1).getitem_bytes(&chunk, start, count, &mut dest);
            equal(&format!("getitem_bytes({start}, {count})"), ours, reference)?;
        }
        if nitems > 0 {
            let short = &mut dest[..typesize - 1];
            let ours = OURS.dctx(1).getitem(&chunk, 0, 1, short);
            equal("getitem into too little", ours, theirs.dctx(1).getitem(&chunk, 0, 1, short))?;
        }
        Ok(())
    });
}

#[test]
fn wrong_parameters_give_the_same_codes() {
    for_seeds(1, |theirs, _| {
        type Change = fn(&mut super::common::clib::CParams);
        let changes: [(&str, Change); 13] = [
            ("clevel 10", |p| p.clevel = 10),
            ("clevel 255", |p| p.clevel = 255),
            ("dictionary with BloscLZ", |p| p.use_dict = 1),
            ("dictionary with zlib", |p| (p.use_dict, p.compcode) = (1, 4)),
            ("dictionary with zlib, stored", |p| (p.use_dict, p.compcode, p.clevel) = (1, 4, 0)),
            ("codec 3", |p| p.compcode = 3),
            ("codec 6", |p| p.compcode = 6),
            ("codec 31", |p| p.compcode = 31),
            ("codec 200", |p| p.compcode = 200),
            ("codec 200, stored", |p| (p.compcode, p.clevel) = (200, 0)),
            ("filter 160", |p| p.filters[0] = 160),
            ("typesize above the limit", |p| p.typesize = 536_866_817),
            ("TRUNC_PREC of 0 bits", |p| p.filters[0] = 4),
        ];
        let data: Vec<u8> = (0..4000_i32).flat_map(|i| (i * i).to_le_bytes()).collect();
        for (what, change) in changes {
            let code = |lib: &Clib| {
                let mut params = lib.cparams();
                params.typesize = 4;
                change(&mut params);
                let mut dest = vec![0; 2 * data.len()];
                lib.cctx(&params).map(|mut ctx| ctx.compress(&data, &mut dest))
            };
            equal(what, code(&OURS), code(theirs))?;
        }
        for filter in 0..=255 {
            let made = |lib: &Clib| {
                let mut params = lib.cparams();
                params.filters[2] = filter;
                lib.cctx(&params).is_some()
            };
            equal(&format!("context with filter {filter}"), made(&OURS), made(theirs))?;
        }
        for destsize in [0, 1, 16, 31, 32, 33] {
            let code = |lib: &Clib, data: &[u8]| {
                let mut ctx = lib.cctx(&lib.cparams()).expect("default parameters are good");
                ctx.compress(data, &mut vec![0; destsize])
            };
            equal(&format!("destsize {destsize}"), code(&OURS, &data), code(theirs, &data))?;
            equal(&format!("destsize {destsize}, no data"), code(&OURS, &[]), code(theirs, &[]))?;
            equal(&format!("destsize {destsize}, 1 byte"), code(&OURS, &[1]), code(theirs, &[1]))?;
        }
        let swapped = |lib: &Clib| {
            let mut cctx = lib.cctx(&lib.cparams()).expect("default parameters are good");
            let mut dest = vec![0; 100_000];
            let cbytes = usize::try_from(cctx.compress(&data, &mut dest)).expect("compresses");
            let chunk = dest[..cbytes].to_vec();
            [lib.dctx(1).compress(&data, &mut dest), cctx.decompress(&chunk, &mut dest)]
        };
        equal("contexts of the wrong kind", swapped(&OURS), swapped(theirs))
    });
}
