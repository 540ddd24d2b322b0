//! Special chunks: zeros, NaNs, nothing in particular, one repeated value.

use super::common::clib::{Clib, Special};
use super::common::{OURS, int};
use super::{equal, for_seeds, same};

#[test]
fn special_chunks_are_the_same_and_read_the_same() {
    for_seeds(400, |theirs, rng| {
        let typesize = match rng.below(4) {
            0 => rng.range(1, 400),
            _ => rng.pick(&[1, 2, 4, 8, 12, 255, 256]),
        };
        let whole = if rng.one_in(10) { 0 } else { rng.range(0, 3000) * typesize };
        let nbytes = if rng.one_in(5) { whole + rng.below(3) } else { whole };
        let value = rng.bytes(typesize);
        let kind = match rng.below(4) {
            0 => Special::Zeros,
            1 => Special::Nans,
            2 => Special::Uninit,
            _ => Special::Value(&value),
        };
        let width = if matches!(kind, Special::Value(_)) { typesize } else { 0 };
        let destsize = (32 + width).saturating_add_signed(rng.pick(&[0, 0, 0, 100, -1, -32]));
        let blocksize = rng.pick(&[0, 0, 0, typesize * 10, 1 << 12]);
        let clevel = rng.pick(&[0, 1, 5, 9, 9, 5, 5, 12]);
        let (codec, use_dict) = (rng.pick(&[0, 1, 2, 4, 5]), i32::from(rng.one_in(4)));
        let what = format!(
            "{} typesize {typesize} nbytes {nbytes} destsize {destsize} blocksize {blocksize}",
            name(kind)
        );

        let make = |lib: &Clib| {
            let mut params = lib.cparams();
            params.typesize = int(typesize);
            (params.blocksize, params.clevel) = (int(blocksize), clevel);
            (params.compcode, params.use_dict) = (codec, use_dict);
            let mut dest = vec![0xA7; destsize];
            let code = lib.special(kind, &params, int(nbytes), &mut dest);
            (code, dest)
        };
        let (code, chunk) = make(&OURS);
        let (their_code, their_chunk) = make(theirs);
        equal(&format!("code, {what}"), code, their_code)?;
        let Ok(cbytes) = usize::try_from(code) else { return Ok(()) };
        same(&format!("chunk, {what}"), &chunk[..cbytes], &their_chunk[..cbytes])?;
        if nbytes == 0 && matches!(kind, Special::Value(_)) {
            return Ok(()); // both write it, and both refuse to read it
        }
        reads_alike(theirs, &chunk[..cbytes], nbytes, kind, typesize).map_err(|why| format!("{what}: {why}"))
    });
}

fn name(kind: Special<'_>) -> &'static str {
    match kind {
        Special::Zeros => "zeros",
        Special::Nans => "NaNs",
        Special::Uninit => "uninit",
        Special::Value(_) => "value",
    }
}

/// What a special chunk holds.
fn model(kind: Special<'_>, typesize: usize, nbytes: usize) -> Option<Vec<u8>> {
    let item = match (kind, typesize) {
        (Special::Zeros, _) => vec![0],
        (Special::Uninit, _) => vec![0x5A], // the destination as it was
        (Special::Nans, 4) => 0x7fc0_0000_u32.to_le_bytes().to_vec(),
        (Special::Nans, 8) => 0x7ff8_0000_0000_0000_u64.to_le_bytes().to_vec(),
        (Special::Nans, _) => return None,
        (Special::Value(value), _) => value.to_vec(),
    };
    Some(item.iter().copied().cycle().take(nbytes).collect())
}

fn reads_alike(
    theirs: &Clib,
    chunk: &[u8],
    nbytes: usize,
    kind: Special<'_>,
    typesize: usize,
) -> Result<(), String> {
    equal("cbuffer_sizes", OURS.cbuffer_sizes(chunk), theirs.cbuffer_sizes(chunk))?;
    let expected = model(kind, typesize, nbytes);
    let read = |lib: &Clib, threads| {
        let mut dest = vec![0x5A; nbytes];
        let code = lib.dctx(threads).decompress(chunk, &mut dest);
        (code, if code < 0 { Vec::new() } else { dest })
    };
    let (their_code, _) = read(theirs, 1);
    for threads in [1, 3] {
        let (code, data) = read(&OURS, threads);
        match &expected {
            // Theirs fails on blocks that do not hold whole values; ours need not.
            Some(expected) if code >= 0 || their_code >= 0 => {
                equal("code", code, int(nbytes))?;
                same("data", &data, expected)?;
            }
            _ => equal("code", code, their_code)?,
        }
    }
    let unit = usize::from(chunk[3]);
    let nitems = nbytes / unit;
    for (start, count) in
        [(0, 1), (nitems / 2, 3), (0, nitems), (nitems.saturating_sub(1), 1), (1, nitems / 2)]
    {
        if start + count > nitems {
            continue;
        }
        let span = start * unit..(start + count) * unit;
        let mut dest = vec![0x5A; span.len()];
        let code = OURS.dctx(1).getitem(chunk, int(start), int(count), &mut dest);
        match &expected {
            Some(expected) => {
                equal(&format!("getitem({start}, {count})"), code, int(span.len()))?;
                same("items", &dest, &expected[span])?;
            }
            None => {
                let reference = theirs.dctx(1).getitem(chunk, int(start), int(count), &mut dest);
                equal(&format!("getitem({start}, {count})"), code, reference)?;
            }
        }
    }
    Ok(())
}
