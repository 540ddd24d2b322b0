//! Chunks that are not what they seem: cut, changed, and made by hand.
//!
//! [`header_code`] states which code each wrong header gives. The C library is asked only where that model says it
//! refuses the header, or for damage that it is known to survive: it reads out of bounds on other damage.

use super::common::clib::{Clib, Special};
use super::common::{OURS, Rng, int};
use super::{GUARD, equal, for_seeds, same};

const READ_BUFFER: i32 = -5;
const WRITE_BUFFER: i32 = -6;
const DATA: i32 = -3;
const VERSION_SUPPORT: i32 = -10;
const INVALID_HEADER: i32 = -11;

/// A little-endian integer of a chunk.
fn i32_at(chunk: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(chunk[at..at + 4].try_into().expect("four bytes"))
}

/// The code of reading the header alone; `extended` if the 32-byte form is wanted.
fn basic_code(chunk: &[u8], extended: bool) -> Option<i32> {
    if chunk.len() < 16 {
        return Some(READ_BUFFER);
    }
    let (version, flags, typesize) = (chunk[0], chunk[2], i32::from(chunk[3]));
    let (nbytes, blocksize, cbytes) = (i32_at(chunk, 4), i32_at(chunk, 8), i32_at(chunk, 12));
    if cbytes < 16 || blocksize <= 0 || blocksize > 536_866_816 || typesize == 0 {
        return Some(INVALID_HEADER);
    }
    let mut flags2 = 0;
    if extended && flags & 5 == 5 {
        if cbytes < 32 {
            return Some(INVALID_HEADER);
        }
        if chunk.len() < 32 {
            return Some(READ_BUFFER);
        }
        flags2 = chunk[30];
        let special = chunk[31] >> 4 & 7;
        if flags2 & 1 != 0 && special != 0 {
            return Some(INVALID_HEADER);
        }
        let width = cbytes - 32;
        if special == 3 && (width <= 0 || width > 536_866_816 || width > nbytes || nbytes % width != 0) {
            return Some(INVALID_HEADER);
        }
        if !matches!(special, 0 | 1 | 3) && nbytes % typesize != 0 {
            return Some(INVALID_HEADER);
        }
    }
    if version > 6 && flags2 & !1 != 0 {
        return Some(VERSION_SUPPORT);
    }
    (flags2 & 1 != 0 && flags & 2 != 0).then_some(INVALID_HEADER)
}

/// The code that decompressing into `destsize` bytes gives before any data are looked at.
fn header_code(chunk: &[u8], destsize: usize) -> Option<i32> {
    if let Some(code) = basic_code(chunk, true) {
        return Some(code);
    }
    let extended = chunk[2] & 5 == 5;
    let (nbytes, cbytes) = (i32_at(chunk, 4), i32_at(chunk, 12));
    let (special, lazy) = if extended { (chunk[31] >> 4 & 7, chunk[31] & 8 != 0) } else { (0, false) };
    if nbytes > int(destsize) {
        return Some(WRITE_BUFFER);
    }
    if lazy || nbytes < 0 {
        return None; // needs a super-chunk; the C library has no defined answer
    }
    if cbytes > int(chunk.len()) {
        return Some(INVALID_HEADER);
    }
    if special > 4 {
        return Some(DATA);
    }
    let overhead = if extended { 32 } else { 16 };
    (chunk[2] & 2 != 0 && special == 0 && i64::from(cbytes) != i64::from(nbytes) + overhead).then_some(DATA)
}

/// Small chunks of every kind, made by our library.
fn samples() -> Vec<(&'static str, Vec<u8>, usize)> {
    let ramp: Vec<u8> = (0..150_u32).flat_map(|i| (i * 3).to_le_bytes()).collect();
    let text = b"one word after another, and another word after one ".repeat(120);
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut super::common::clib::CParams), data: &[u8]| {
        let mut params = OURS.cparams();
        (params.typesize, params.blocksize) = (4, 256);
        change(&mut params);
        let mut dest = vec![0; data.len() + 32];
        let code = OURS.cctx(&params).expect("good parameters").compress(data, &mut dest);
        dest.truncate(usize::try_from(code).expect("compresses"));
        out.push((name, dest, data.len()));
    };
    add("blosclz", &|_| (), &ramp);
    add("lz4 split", &|p| (p.compcode, p.splitmode) = (1, 1), &ramp);
    add("lz4hc", &|p| (p.compcode, p.splitmode) = (2, 2), &ramp);
    add("zlib bitshuffle", &|p| (p.compcode, p.filters) = (4, [0, 0, 0, 0, 0, 2]), &ramp);
    add("zstd", &|p| p.compcode = 5, &ramp);
    add("delta", &|p| (p.compcode, p.filters) = (1, [0, 0, 0, 0, 3, 1]), &ramp);
    add("runs", &|p| p.compcode = 5, &[7, 0, 0, 0].repeat(150));
    add("stored", &|p| p.clevel = 0, &ramp);
    add("zeros", &|_| (), &[0; 600]);
    add("dict zstd", &|p| (p.compcode, p.use_dict, p.blocksize) = (5, 1, 1000), &text);
    add("dict lz4", &|p| (p.compcode, p.use_dict, p.blocksize) = (1, 1, 1000), &text);
    let mut params = OURS.cparams();
    params.typesize = 4;
    for (name, kind) in [
        ("special zeros", Special::Zeros),
        ("special nans", Special::Nans),
        ("special uninit", Special::Uninit),
        ("special value", Special::Value(&[1, 2, 3, 4])),
    ] {
        let mut dest = vec![0; 64];
        let code = OURS.special(kind, &params, 600, &mut dest);
        dest.truncate(usize::try_from(code).expect("room enough"));
        out.push((name, dest, 600));
    }
    let mut params = OURS.cparams();
    (params.typesize, params.compcode) = (1, 1);
    let mut dest = vec![0; 2000];
    let code = OURS
        .cctx(&params)
        .expect("good parameters")
        .vlcompress(&[&text[..200], &text[..9], &ramp], &mut dest);
    dest.truncate(usize::try_from(code).expect("room enough"));
    out.push(("VL", dest, 809));
    out
}

/// Decompresses with ours, twice and with threads; the code, after checks that hold for any input.
fn read_ours(chunk: &[u8], destsize: usize) -> Result<i32, String> {
    let read = |threads| {
        let mut dest = [vec![0x5A; destsize], GUARD.to_vec()].concat();
        let code = OURS.dctx(threads).decompress(chunk, &mut dest[..destsize]);
        (code, dest)
    };
    let (code, dest) = read(1);
    same("guard", &dest[destsize..], &GUARD)?;
    if code > int(destsize) {
        return Err(format!("code {code} for {destsize} bytes of room"));
    }
    let (threaded, dest2) = read(3);
    same("guard with threads", &dest2[destsize..], &GUARD)?;
    equal("success with threads", threaded >= 0, code >= 0)?;
    if code >= 0 {
        equal("code with threads", threaded, code)?;
        same("data with threads", &dest2, &dest)?;
    }
    Ok(code)
}

/// Everything else that reads a chunk, on bytes that may be anything.
fn poke(chunk: &[u8]) {
    let mut ctx = OURS.dctx(1);
    let mut dest = vec![0; 800];
    for (start, count) in [(0, 1), (3, 40), (149, 1), (0, i32::MAX)] {
        let _ = ctx.getitem(chunk, start, count, &mut dest);
        let _ = ctx.getitem_bytes(chunk, start * 4, count, &mut dest);
    }
    let _ = ctx.vldecompress(chunk, 10);
    let _ = ctx.vldecompress_block(chunk, 1);
    let _ = OURS.vl_nblocks(chunk);
    let mask = [true, false, true];
    ctx.set_maskout(&mask);
    let _ = ctx.decompress(chunk, &mut dest);
}

#[test]
fn chunks_cut_anywhere_give_the_code_of_the_model() {
    for_seeds(1, |theirs, _| {
        for (name, chunk, nbytes) in samples() {
            for len in 0..chunk.len() {
                let cut = &chunk[..len];
                let expected = header_code(cut, nbytes).ok_or(format!("{name}: no code for {len} bytes"))?;
                let what = format!("{name} cut to {len} bytes");
                equal(&what, read_ours(cut, nbytes)?, expected)?;
                equal(&what, theirs.dctx(1).decompress(cut, &mut vec![0; nbytes]), expected)?;
                poke(cut);
            }
        }
        Ok(())
    });
}

#[test]
fn headers_with_any_byte_changed_give_the_code_of_the_model() {
    for_seeds(1, |theirs, _| {
        let mut refused = 0;
        for (name, chunk, nbytes) in samples() {
            for at in 0..32 {
                for value in 0..=255 {
                    let mut changed = chunk.clone();
                    changed[at] = value;
                    let what = format!("{name}, byte {at} = {value}");
                    let code = read_ours(&changed, nbytes).map_err(|why| format!("{what}: {why}"))?;
                    if let Some(expected) = header_code(&changed, nbytes) {
                        refused += 1;
                        equal(&what, code, expected)?;
                        let theirs = theirs.dctx(1).decompress(&changed, &mut vec![0; nbytes]);
                        equal(&format!("the model: {what}"), theirs, expected)?;
                    } else if i32_at(&changed, 4) < 0 && code > 0 {
                        return Err(format!("{what}: code {code} for a negative size"));
                    }
                    poke(&changed);
                    queries(theirs, &changed).map_err(|why| format!("{what}: {why}"))?;
                }
            }
        }
        if refused > 1000 { Ok(()) } else { Err(format!("only {refused} headers are refused")) }
    });
}

/// Both libraries say the same about 16 bytes.
fn queries(theirs: &Clib, chunk: &[u8]) -> Result<(), String> {
    equal("cbuffer_sizes", OURS.cbuffer_sizes(chunk), theirs.cbuffer_sizes(chunk))?;
    equal("blosc1_cbuffer_sizes", OURS.cbuffer_sizes1(chunk), theirs.cbuffer_sizes1(chunk))?;
    equal("cbuffer_metainfo", OURS.cbuffer_metainfo(chunk), theirs.cbuffer_metainfo(chunk))?;
    equal("cbuffer_versions", OURS.cbuffer_versions(chunk), theirs.cbuffer_versions(chunk))?;
    equal("cbuffer_complib", OURS.cbuffer_complib(chunk), theirs.cbuffer_complib(chunk))?;
    let size = chunk.len();
    equal("cbuffer_validate", OURS.cbuffer_validate(chunk, size), theirs.cbuffer_validate(chunk, size))?;
    // A negative size is refused earlier by ours.
    if chunk[2] & 5 == 5 && i32_at(chunk, 4) >= 0 {
        equal("vl_nblocks", OURS.vl_nblocks(chunk), theirs.vl_nblocks(chunk))?;
    }
    Ok(())
}

#[test]
fn random_damage_does_no_harm() {
    for_seeds(1, |_, rng| {
        for (name, chunk, nbytes) in samples() {
            for _ in 0..1500 {
                let mut changed = chunk.clone();
                damage(rng, &mut changed);
                read_ours(&changed, nbytes).map_err(|why| format!("{name}: {why}: {changed:?}"))?;
                poke(&changed);
            }
        }
        Ok(())
    });
}

/// Changes a few bytes, most of them behind the header.
fn damage(rng: &mut Rng, chunk: &mut [u8]) {
    for _ in 0..rng.range(1, 4) {
        let from = if rng.one_in(4) || chunk.len() <= 32 { 0 } else { 32 };
        let at = rng.range(from, chunk.len() - 1);
        chunk[at] = match rng.below(4) {
            0 => rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            1 => chunk[at] ^ (1 << rng.below(8)),
            2 => chunk[at].wrapping_add(1),
            _ => rng.bytes(1)[0],
        };
    }
}

/// A chunk of `nblocks` blocks of `blocksize` bytes, one stream each, made by hand; `body` follows the block starts.
fn by_hand(flags: u8, blocksize: usize, nblocks: usize, starts: &[i32], body: &[u8]) -> Vec<u8> {
    let mut chunk = vec![5, 1, flags, 1];
    chunk.extend(int(blocksize * nblocks).to_le_bytes());
    chunk.extend(int(blocksize).to_le_bytes());
    let cbytes = 32 + 4 * starts.len() + body.len();
    chunk.extend(int(cbytes).to_le_bytes());
    chunk.extend([0; 16]);
    chunk.extend(starts.iter().flat_map(|s| s.to_le_bytes()));
    chunk.extend(body);
    chunk
}

#[test]
fn wrong_streams_give_the_same_codes() {
    const LZ4: u8 = 0x35;
    let stream = |csize: i32, bytes: &[u8]| [&csize.to_le_bytes()[..], bytes].concat();
    let one = |body: &[u8]| by_hand(LZ4, 64, 1, &[36], body);
    let raw = stream(64, &[9; 64]);
    let with_code = |code| {
        let mut chunk = by_hand(0xd5, 64, 1, &[36], &stream(10, &[1; 10]));
        chunk[22] = code;
        chunk
    };
    let cases: Vec<(&str, Vec<u8>, i32)> = vec![
        ("raw stream", one(&raw), 64),
        ("zero run", one(&stream(0, &[])), 64),
        ("run of a value", one(&stream(-7, &[1])), 64),
        ("run with reserved token bits", one(&stream(-7, &[0xff])), 64),
        ("trailing bytes", one(&[&raw[..], &[1, 2, 3]].concat()), 64),
        ("two blocks, stored last first", by_hand(LZ4, 64, 2, &[108, 40], &[&raw[..], &raw].concat()), 128),
        ("block start 0", by_hand(LZ4, 64, 1, &[0], &raw), DATA),
        ("negative block start", by_hand(LZ4, 64, 1, &[-1], &raw), DATA),
        ("block start at the end", by_hand(LZ4, 64, 1, &[104], &raw), DATA),
        ("block start past the end", by_hand(LZ4, 64, 1, &[1000], &raw), DATA),
        ("no room for the stream's size", by_hand(LZ4, 64, 1, &[101], &raw), READ_BUFFER),
        ("no room for the block starts", by_hand(LZ4, 1, 50, &[36], &[]), READ_BUFFER),
        ("stream cut short", one(&stream(64, &[9; 63])), READ_BUFFER),
        ("stream longer than the chunk", one(&stream(i32::MAX, &[9; 64])), READ_BUFFER),
        ("run without token", one(&stream(-7, &[])), READ_BUFFER),
        ("token that is no run", one(&stream(-7, &[0])), -17),
        ("run of a value above 255", one(&stream(-256, &[1])), -17),
        ("run of the least value", one(&stream(i32::MIN, &[1])), -17),
        ("bad LZ4 data", one(&stream(10, &[0xff; 10])), DATA),
        ("bad BloscLZ data", by_hand(0x15, 64, 1, &[36], &stream(10, &[0xff; 10])), DATA),
        ("bad zlib data", by_hand(0x75, 64, 1, &[36], &stream(10, &[0xff; 10])), DATA),
        ("bad zstd data", by_hand(0x95, 64, 1, &[36], &stream(10, &[0xff; 10])), DATA),
        ("LZ4 data of another length", one(&stream(5, &[0x40, 1, 2, 3, 4])), DATA),
        ("format 2", by_hand(0x55, 64, 1, &[36], &stream(10, &[1; 10])), -7),
        ("format 5", by_hand(0xb5, 64, 1, &[36], &stream(10, &[1; 10])), -7),
        ("format 2, raw stream", by_hand(0x55, 64, 1, &[36], &raw), 64),
        ("format 6, unregistered codec", with_code(200), -7),
        ("format 6, reserved code", with_code(7), -7),
        ("format 6, code of BloscLZ", with_code(0), -7),
        ("format 6, code of Zstandard", with_code(5), -7),
    ];
    for_seeds(1, |theirs, _| {
        for (what, chunk, expected) in &cases {
            let room = 200;
            equal(what, read_ours(chunk, room)?, *expected)?;
            // Bytes after the chunk, so that the C library may read too far.
            let padded = [&chunk[..], &[0; 256]].concat();
            let code = theirs.dctx(1).decompress(&padded[..chunk.len()], &mut vec![0; room]);
            equal(&format!("the C library: {what}"), code, *expected)?;
        }
        Ok(())
    });
}

#[test]
fn wrong_filters_and_dictionaries_give_the_same_codes() {
    let body = [&64_i32.to_le_bytes()[..], &[9; 64]].concat();
    let with_filter = |id: u8| {
        let mut chunk = by_hand(0x35, 64, 1, &[36], &body);
        chunk[16] = id;
        chunk
    };
    let with_dict = |size: i32, len: usize| {
        let dict = [&size.to_le_bytes()[..], &vec![1; len]].concat();
        let mut chunk = by_hand(0x35, 64, 1, &[int(36 + dict.len())], &[&dict[..], &body].concat());
        chunk[31] = 1;
        chunk
    };
    let cases = [
        ("filter 5", with_filter(5), -1),
        ("filter 31", with_filter(31), -1),
        ("BYTEDELTA of an unknown width", with_filter(35), -1),
        ("the same of the first version", with_filter(34), -1),
        ("filter 100", with_filter(100), -18),
        ("filter 200", with_filter(200), -18),
        ("TRUNC_PREC", with_filter(4), 64),
        ("dictionary", with_dict(100, 100), 64),
        ("dictionary of no bytes", with_dict(0, 0), -9),
        ("dictionary of negative size", with_dict(-5, 10), -9),
        ("dictionary above the limit", with_dict(32769, 32769), -9),
        ("dictionary past the end", with_dict(30000, 10), READ_BUFFER),
    ];
    for_seeds(1, |theirs, _| {
        for (what, chunk, expected) in &cases {
            equal(what, read_ours(chunk, 64)?, *expected)?;
            let code = theirs.dctx(1).decompress(chunk, &mut [0; 64]);
            equal(&format!("the C library: {what}"), code, *expected)?;
        }
        Ok(())
    });
}
