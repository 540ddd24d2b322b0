//! Chunks that released versions of the C libraries wrote, from C-Blosc 1.11 on, are read back exactly.
//!
//! The files and what they hold are described in `golden/make_chunks.py`, which made them.

mod common;

use std::path::Path;

use common::{OURS, int};

/// One line of the manifest.
struct Golden {
    name: String,
    chunk: Vec<u8>,
    /// What it decompresses to; `None` if the bytes are not defined (uninitialised chunks).
    expected: Option<Vec<u8>>,
    nbytes: usize,
    /// Blocks have their own lengths.
    vl: bool,
    /// The error that reading gives.
    error: Option<i32>,
}

/// All golden chunks.
fn golden() -> Vec<Golden> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chunks");
    let manifest = std::fs::read_to_string(dir.join("manifest.txt")).expect("the manifest is checked in");
    let mut all = Vec::new();
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [file, name, offset, cbytes, nbytes, formula, code] = words[..] else {
            panic!("bad line: {line}")
        };
        let number = |text: &str| text.parse::<usize>().unwrap_or_else(|_| panic!("bad line: {line}"));
        let bytes = std::fs::read(dir.join(file)).expect("the files of the manifest are checked in");
        let (offset, cbytes, nbytes) = (number(offset), number(cbytes), number(nbytes));
        let plain = formula.strip_prefix("vl:");
        all.push(Golden {
            name: format!("{file} {name}"),
            chunk: bytes[offset..offset + cbytes].to_vec(),
            expected: (formula != "any").then(|| content(plain.unwrap_or(formula), nbytes)),
            nbytes,
            vl: plain.is_some(),
            error: (code != "ok").then(|| code.parse().expect("codes are numbers")),
        });
    }
    assert!(all.len() > 500, "the manifest lists all chunks");
    all
}

/// `nbytes` bytes of a formula, as `content` in make_chunks.py defines them.
fn content(formula: &str, nbytes: usize) -> Vec<u8> {
    const WORDS: [&str; 12] =
        ["shuffle", "block", "chunk", "frame", "the", "of", "a", "codec", "filter", "and", "delta", "stream"];
    let (name, arg) = formula.split_once(':').unwrap_or((formula, ""));
    let number = || arg.parse::<usize>().expect("a number after the colon");
    let mut state = 12345_u64;
    let mut random = || {
        state = (state * 1_103_515_245 + 12345) & 0x7fff_ffff;
        usize::try_from(state >> 16).expect("15 bits")
    };
    let item = |value: u64, width: usize| {
        let mut bytes = value.to_le_bytes().to_vec();
        bytes.resize(width.max(8), 0);
        bytes.truncate(width);
        bytes
    };
    let mut out = Vec::new();
    let mut i = 0_u64;
    while out.len() < nbytes {
        match name {
            "zeros" => out.push(0),
            "noise" => out.push(random().to_le_bytes()[0]),
            "value" => out.extend(hex(arg)),
            // Not stored but made by the reader, as its machine has them.
            "nan" if cfg!(target_endian = "big") => out.extend(hex(arg).rev()),
            "nan" => out.extend(hex(arg)),
            "ramp" => out.extend(item(7 * i, number())),
            "mixed" => out.extend(item(260 * i + random() as u64 % 16, number())),
            "text" => out.extend(format!("{} ", WORDS[random() % WORDS.len()]).bytes()),
            "mantissa4" => {
                let bits = (0x3F80_0000 + i * 0x1235) & !((1 << (23 - number())) - 1);
                out.extend(item(bits, 4));
            }
            "mantissa8" => {
                let bits = (0x3FF0_0000_0000_0000 + i * 0x0123_4567_89AB) & !((1 << (52 - number())) - 1);
                out.extend(item(bits, 8));
            }
            _ => panic!("unknown formula {formula}"),
        }
        i += 1;
    }
    out.truncate(nbytes);
    out
}

/// Bytes from their hexadecimal digits.
fn hex(digits: &str) -> impl DoubleEndedIterator<Item = u8> {
    (0..digits.len() / 2).map(|k| u8::from_str_radix(&digits[2 * k..2 * k + 2], 16).expect("hex digits"))
}

/// Runs `check` on every chunk and reports all that fail.
fn each(check: impl Fn(&Golden) -> Result<(), String>) {
    let all = golden();
    let failures: Vec<String> =
        all.iter().filter_map(|g| check(g).err().map(|why| format!("{}: {why}", g.name))).collect();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), all.len(), failures.join("\n"));
}

/// Fails unless `got` is `expected`; says where they differ.
fn same(what: &str, got: &[u8], expected: &[u8]) -> Result<(), String> {
    match got.iter().zip(expected).position(|(a, b)| a != b) {
        None if got.len() == expected.len() => Ok(()),
        None => Err(format!("{what}: {} bytes instead of {}", got.len(), expected.len())),
        Some(at) => Err(format!("{what}: byte {at} of {} differs", expected.len())),
    }
}

#[test]
fn chunks_of_all_releases_decompress() {
    each(|g| {
        for threads in [1, 3] {
            let mut ctx = OURS.dctx(threads);
            // Twice with one context, and with room behind that must stay untouched.
            for _ in 0..2 {
                let mut dest = vec![0xA5; g.nbytes + 9];
                let code = ctx.decompress(&g.chunk, &mut dest);
                if code != g.error.unwrap_or(int(g.nbytes)) {
                    return Err(format!("{threads} threads: code {code}"));
                }
                if dest[g.nbytes..] != [0xA5; 9] {
                    return Err(format!("{threads} threads: writes past the end"));
                }
                if let (Some(expected), None) = (&g.expected, g.error) {
                    same(&format!("{threads} threads"), &dest[..g.nbytes], expected)?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn the_global_functions_read_them_too() {
    each(|g| {
        let mut dest = vec![0xA5; g.nbytes];
        let code = OURS.blosc2_decompress(&g.chunk, &mut dest);
        if code != g.error.unwrap_or(int(g.nbytes)) {
            return Err(format!("code {code}"));
        }
        match (&g.expected, g.error) {
            (Some(expected), None) => same("blosc2_decompress", &dest, expected),
            _ => Ok(()),
        }
    });
}

#[test]
fn sizes_are_read_from_the_header() {
    each(|g| {
        let (code, [nbytes, cbytes, blocksize]) = OURS.cbuffer_sizes(&g.chunk);
        if (code, nbytes, cbytes) != (0, int(g.nbytes), int(g.chunk.len())) || blocksize < 1 {
            return Err(format!("code {code}, nbytes {nbytes}, cbytes {cbytes}, blocksize {blocksize}"));
        }
        Ok(())
    });
}

#[test]
fn items_are_slices_of_the_whole() {
    each(|g| {
        let typesize = usize::from(g.chunk[3]);
        let nitems = g.nbytes / typesize;
        if g.vl || g.error.is_some() || nitems == 0 {
            return Ok(());
        }
        let Some(expected) = &g.expected else { return Ok(()) };
        let mut ctx = OURS.dctx(1);
        let spans = [
            (0, 1),
            (nitems - 1, 1),
            (0, nitems),
            (nitems / 3, nitems / 2),
            (nitems / 2, 1),
            (nitems * 2 / 3, 3),
        ];
        for (start, count) in spans {
            let count = count.clamp(1, nitems - start);
            let span = start * typesize..(start + count) * typesize;
            let mut dest = vec![0xA5; span.len()];
            let code = ctx.getitem(&g.chunk, int(start), int(count), &mut dest);
            if code != int(span.len()) {
                return Err(format!("getitem({start}, {count}): code {code}"));
            }
            same(&format!("getitem({start}, {count})"), &dest, &expected[span])?;
        }
        Ok(())
    });
}

#[test]
fn variable_length_blocks_come_one_by_one() {
    each(|g| {
        if !g.vl {
            return Ok(());
        }
        let expected = g.expected.as_ref().expect("VL chunks have contents");
        let (code, nblocks) = OURS.vl_nblocks(&g.chunk);
        if code != 0 {
            return Err(format!("nblocks: code {code}"));
        }
        let mut ctx = OURS.dctx(1);
        let count = usize::try_from(nblocks).map_err(|_| format!("{nblocks} blocks"))?;
        let blocks =
            ctx.vldecompress(&g.chunk, count).map_err(|code| format!("vldecompress: code {code}"))?;
        same("all blocks", &blocks.concat(), expected)?;
        for (i, block) in blocks.iter().enumerate() {
            let one =
                ctx.vldecompress_block(&g.chunk, int(i)).map_err(|code| format!("block {i}: code {code}"))?;
            same(&format!("block {i}"), &one, block)?;
        }
        Ok(())
    });
}

#[test]
fn a_chunk_cut_short_is_an_error() {
    each(|g| {
        let mut dest = vec![0; g.nbytes];
        let mut ctx = OURS.dctx(1);
        let lengths = [0, 1, 15, 16, 31, 32, g.chunk.len() / 2, g.chunk.len() - 1];
        for len in lengths.into_iter().filter(|&len| len < g.chunk.len()) {
            let code = ctx.decompress(&g.chunk[..len], &mut dest);
            if code >= 0 {
                return Err(format!("{len} bytes of {}: code {code}", g.chunk.len()));
            }
        }
        Ok(())
    });
}

#[test]
fn a_destination_too_short_is_an_error() {
    each(|g| {
        if g.nbytes == 0 {
            return Ok(());
        }
        let code = OURS.dctx(1).decompress(&g.chunk, &mut vec![0; g.nbytes - 1]);
        if code == -6 { Ok(()) } else { Err(format!("code {code}")) }
    });
}
