//! Chunks of variable-length blocks.

use super::case::{CODECS, DELTA, LZ4, LZ4HC, ZSTD};
use super::common::clib::{CParams, Clib};
use super::common::data::make_data;
use super::common::{OURS, Rng};
use super::{equal, for_seeds, same};

/// Blocks of random lengths and kinds.
fn draw_blocks(rng: &mut Rng, typesize: usize) -> Vec<Vec<u8>> {
    let count = rng.pick(&[1, 2, 3, 7, 8, 20, 64]);
    let largest = rng.pick(&[1, 10, 100, 1000, 20_000]);
    let kind = rng.pick(&["zeros", "ramp", "noisy", "text", "text", "random", "pattern"]);
    (0..count)
        .map(|_| {
            let len = rng.range(1, largest);
            make_data(rng, kind, typesize, len)
        })
        .collect()
}

fn draw_params(rng: &mut Rng, lib: &Clib) -> CParams {
    let mut params = lib.cparams();
    params.typesize = rng.pick(&[1, 1, 2, 4, 8, 17]);
    params.compcode = rng.pick(&CODECS);
    // BloscLZ at level 0 crashes the C library.
    params.clevel = rng.pick(&[1, 2, 5, 9]);
    params.filters = [0, 0, 0, 0, 0, rng.pick(&[0, 1, 2, 1, 2, DELTA])];
    params.splitmode = rng.pick(&[1, 2, 3, 4]);
    params.use_dict = i32::from(rng.one_in(4) && matches!(params.compcode, LZ4 | LZ4HC | ZSTD));
    params
}

#[test]
fn vl_chunks_agree() {
    for_seeds(300, |theirs, rng| {
        let params = draw_params(rng, theirs);
        let typesize = usize::try_from(params.typesize).expect("positive");
        let blocks = draw_blocks(rng, typesize);
        let threads = rng.pick(&[2, 4]);
        check(theirs, &params, &blocks, threads).map_err(|why| {
            let lengths: Vec<usize> = blocks.iter().map(Vec::len).collect();
            let (codec, dict, filter) = (params.compcode, params.use_dict, params.filters[5]);
            format!(
                "{why}\n    codec {codec} dict {dict} filter {filter} typesize {typesize} blocks {lengths:?}"
            )
        })
    });
}

/// The chunk that `lib` makes of `blocks`; `room` bytes of destination.
fn compress(lib: &Clib, params: &CParams, blocks: &[Vec<u8>], room: usize) -> Result<(i32, Vec<u8>), String> {
    let refs: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    let mut dest = vec![0; room];
    let code = lib.cctx(params).ok_or("no context")?.vlcompress(&refs, &mut dest);
    dest.truncate(usize::try_from(code).unwrap_or(0));
    Ok((code, dest))
}

fn check(theirs: &Clib, params: &CParams, blocks: &[Vec<u8>], threads: i16) -> Result<(), String> {
    let nbytes: usize = blocks.iter().map(Vec::len).sum();
    let room = 32 + 8 * blocks.len() + nbytes + 40_000;
    let (code, ours) = compress(&OURS, params, blocks, room)?;
    let (their_code, their_chunk) = compress(theirs, params, blocks, room)?;
    if code <= 0 || their_code <= 0 {
        return Err(format!("codes {code} and {their_code}"));
    }
    let (_, threaded) = compress(&OURS, &CParams { nthreads: threads, ..*params }, blocks, room)?;
    same("chunk with threads", &threaded, &ours)?;
    if matches!(params.compcode, LZ4 | LZ4HC | ZSTD) && params.use_dict == 0 && params.filters[5] != DELTA {
        same("our chunk", &ours, &their_chunk)?;
    }
    read_blocks("ours reads ours", &OURS, 1, &ours, blocks)?;
    read_blocks("ours reads ours with threads", &OURS, threads, &ours, blocks)?;
    read_blocks("theirs reads ours", theirs, 1, &ours, blocks)?;
    read_whole("ours reads ours", &OURS, &ours, blocks)?;
    // With DELTA the C library leaves garbage behind the last whole word of a block.
    let words = usize::try_from(params.typesize).expect("positive");
    if params.filters[5] != DELTA || blocks.iter().all(|block| block.len() % words == 0) {
        read_blocks("ours reads theirs", &OURS, 1, &their_chunk, blocks)?;
        read_whole("ours reads theirs", &OURS, &their_chunk, blocks)?;
    }
    if params.filters[5] != DELTA {
        read_whole("theirs reads ours", theirs, &ours, blocks)?; // it undoes DELTA in the first block only
    }
    equal("vl_nblocks", OURS.vl_nblocks(&ours), theirs.vl_nblocks(&ours))?;
    equal("cbuffer_sizes", OURS.cbuffer_sizes(&ours), theirs.cbuffer_sizes(&ours))?;
    refusals(theirs, &ours, blocks.len())?;
    // Without enough room the answer is 0, or a chunk that fits.
    for room in [ours.len() - 1, ours.len() / 2 + 16, 33, 32] {
        let (code, chunk) = compress(&OURS, params, blocks, room)?;
        match code {
            0 => {}
            1.. => read_blocks("a chunk in less room", theirs, 1, &chunk, blocks)?,
            _ => return Err(format!("code {code} in {room} bytes of room")),
        }
    }
    Ok(())
}

fn read_blocks(what: &str, lib: &Clib, threads: i16, chunk: &[u8], blocks: &[Vec<u8>]) -> Result<(), String> {
    let mut ctx = lib.dctx(threads);
    let got = ctx.vldecompress(chunk, blocks.len()).map_err(|code| format!("{what}: code {code}"))?;
    equal(&format!("{what}: blocks"), got.len(), blocks.len())?;
    for (i, (got, expected)) in got.iter().zip(blocks).enumerate() {
        same(&format!("{what}: block {i}"), got, expected)?;
    }
    for (i, expected) in blocks.iter().enumerate().step_by(blocks.len().div_ceil(5)) {
        let index = super::common::int(i);
        let got = ctx.vldecompress_block(chunk, index).map_err(|code| format!("{what}: {i}: code {code}"))?;
        same(&format!("{what}: single block {i}"), &got, expected)?;
    }
    Ok(())
}

fn read_whole(what: &str, lib: &Clib, chunk: &[u8], blocks: &[Vec<u8>]) -> Result<(), String> {
    let expected = blocks.concat();
    let mut dest = vec![0x5A; expected.len()];
    let code = lib.dctx(1).decompress(chunk, &mut dest);
    equal(&format!("{what} as a whole: code"), code, super::common::int(expected.len()))?;
    same(&format!("{what} as a whole"), &dest, &expected)
}

/// Requests that cannot be met get the same codes.
fn refusals(theirs: &Clib, chunk: &[u8], nblocks: usize) -> Result<(), String> {
    let count = super::common::int(nblocks);
    let codes = |lib: &Clib| {
        let mut ctx = lib.dctx(1);
        let block = |r: Result<Vec<u8>, i32>| r.map(|b| b.len()).map_err(i64::from);
        let mut dest = vec![0; 64];
        [
            block(ctx.vldecompress_block(chunk, -1)),
            block(ctx.vldecompress_block(chunk, count)),
            ctx.vldecompress(chunk, nblocks - 1).map(|b| b.len()).map_err(i64::from),
            Err(i64::from(ctx.getitem(chunk, 0, 1, &mut dest))),
            Err(i64::from(lib.vl_nblocks(&chunk[..31]).0)),
        ]
    };
    equal("refusals", codes(&OURS), codes(theirs))
}

#[test]
fn blocks_of_an_empty_chunk_are_refused() {
    for_seeds(1, |theirs, _| {
        let (_, mut chunk) = compress(&OURS, &OURS.cparams(), &[vec![7; 50], vec![8; 60]], 200)?;
        chunk[4..8].fill(0); // its uncompressed size
        let codes = |lib: &Clib| {
            let mut ctx = lib.dctx(1);
            (ctx.decompress(&chunk, &mut [0; 200]), ctx.vldecompress(&chunk, 2).err())
        };
        equal("codes", codes(&OURS), codes(theirs))
    });
}

#[test]
fn level_zero_stores_blocks() {
    for_seeds(20, |theirs, rng| {
        let mut params = draw_params(rng, theirs);
        (params.clevel, params.use_dict) = (0, 0);
        let blocks = draw_blocks(rng, 1);
        let room = 32 + 8 * blocks.len() + blocks.concat().len();
        let (code, chunk) = compress(&OURS, &params, &blocks, room)?;
        if code <= 0 {
            return Err(format!("code {code}"));
        }
        read_blocks("ours reads ours", &OURS, 1, &chunk, &blocks)?;
        read_blocks("theirs reads ours", theirs, 1, &chunk, &blocks)
    });
}

#[test]
fn regular_chunks_are_no_vl_chunks() {
    for_seeds(1, |theirs, _| {
        let data = vec![7; 5000];
        let mut dest = vec![0; 6000];
        let cbytes = OURS.cctx(&OURS.cparams()).ok_or("no context")?.compress(&data, &mut dest);
        let chunk = &dest[..usize::try_from(cbytes).map_err(|_| "no chunk")?];
        let codes = |lib: &Clib| {
            let mut ctx = lib.dctx(1);
            let block = ctx.vldecompress_block(chunk, 0).err();
            (lib.vl_nblocks(chunk).0, block, ctx.vldecompress(chunk, 3).err())
        };
        equal("codes", codes(&OURS), codes(theirs))
    });
}
