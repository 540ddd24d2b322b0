//! Damaged and crafted frames through every reader: an error or some data, but no crash, no hang, and no memory that
//! the bytes at hand could not honestly need.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc2::chunk::{self, CParams, Encoding, Room, Source};
use blosc2::error::ErrorKind;
use blosc2::format::consts::{codec, filter, special};
use blosc2::format::frame_header::FrameParams;
use blosc2::frame::{Frame, FrameOptions};
use blosc2::io::dirs;
use blosc2::io::memory::MallocBuf;
use blosc2::io::mmap::{MmapIo, MmapMode};
use blosc2::schunk::{Reading, Schunk, Writing};
use common::Rng;
use common::temp::TempPath;

/// What reading a small damaged frame may cost, in bytes.
const ALLOWANCE: u64 = 300 << 20;

/// The most memory that this process ever had, in bytes; 0 where the system does not tell, and under valgrind, which
/// touches all that is reserved.
fn peak_memory() -> u64 {
    if under_valgrind() {
        return 0;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// That the process did not take much more than `before`, which [`peak_memory`] gave. Linux counts pages for each
/// processor and adds them up now and then, so that a later number can be a little smaller.
fn assert_modest_since(before: u64, what: &str) {
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < ALLOWANCE, "{what}: {} MiB", grown >> 20);
}

fn under_valgrind() -> bool {
    std::env::var("LD_PRELOAD").is_ok_and(|libraries| libraries.contains("valgrind"))
}

/// Which bytes of a frame of this kind are changed: all of them, under valgrind one in 7, and not always at the same
/// places.
fn places(kind: &str, len: usize) -> impl Iterator<Item = usize> {
    let (start, step) = if under_valgrind() { (kind.len() % 7, 7) } else { (0, 1) };
    (start..len).step_by(step)
}

fn params() -> FrameParams {
    FrameParams {
        typesize: 4,
        clevel: 5,
        splitmode: 4,
        filters: [0, 0, 0, 0, 0, 1],
        ..FrameParams::default()
    }
}

fn ramp(start: u32, nitems: u32) -> Vec<u8> {
    (start..start + nitems).flat_map(u32::to_le_bytes).collect()
}

fn compress(cparams: &CParams, data: &[u8]) -> Vec<u8> {
    let mut chunk = vec![0; data.len() + 32];
    let cbytes = chunk::compress(cparams, data, &mut chunk).unwrap();
    chunk.truncate(cbytes);
    chunk
}

/// A chunk header that claims `nbytes` bytes, with `payload` behind it.
fn claiming(nbytes: i32, blocksize: i32, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut chunk = vec![5, 1, 0x15, 1];
    let cbytes = i32::try_from(32 + payload.len()).unwrap();
    for size in [nbytes, blocksize, cbytes] {
        chunk.extend_from_slice(&size.to_le_bytes());
    }
    chunk.resize(32, 0);
    chunk[31] = kind << 4;
    chunk.extend_from_slice(payload);
    chunk
}

const HUGE: i32 = i32::MAX - 32;

/// A small frame of one of [`MAKES`] in `frame`.
fn fill(frame: Frame, kind: &str) -> Schunk {
    let mut schunk = Schunk::over(frame);
    schunk.meta_add(b"m1", b"hello").unwrap();
    let base = CParams { typesize: 4, ..CParams::default() };
    let small = CParams { blocksize: 64, splitmode: 2, ..base.clone() };
    match kind {
        "plain" => {
            for cparams in [
                small.clone(),
                CParams { compcode: i32::from(codec::LZ4), ..small.clone() },
                CParams { compcode: i32::from(codec::ZSTD), ..base.clone() },
                CParams { filters: [0, 0, 0, 0, 3, 2], ..small },
            ] {
                schunk.append_chunk(&compress(&cparams, &ramp(5, 64))).unwrap();
            }
            let mut rng = Rng(3);
            schunk.append_chunk(&compress(&base, &rng.bytes(256))).unwrap();
            schunk.append_chunk(&compress(&base, &[0; 256])).unwrap();
            let value = chunk::SpecialValue::Repeated(&[1, 2, 3, 4]);
            let mut repeated = vec![0; 36];
            chunk::special_chunk(&base, 256, value, &mut repeated).unwrap();
            schunk.append_chunk(&repeated).unwrap();
            schunk.append_chunk(&compress(&base, &ramp(9, 20))).unwrap();
        }
        "variable" => {
            for n in [10, 64, 30] {
                schunk.append_chunk(&compress(&base, &ramp(n, n))).unwrap();
            }
            schunk.append_chunk(&compress(&base, &[0; 64])).unwrap();
        }
        "vl" => {
            let blocks: [&[u8]; 3] = [b"red", b"green-green-green-green-green", b"blue"];
            let mut chunk = vec![0; 500];
            let made = chunk::compress_vl(&Encoding::new(&base), &blocks, &mut chunk).unwrap();
            schunk.append_chunk(&chunk[..made.cbytes]).unwrap();
            schunk.append_chunk(&chunk[..made.cbytes]).unwrap();
        }
        "filled" => {
            schunk.fill_special(100_000, special::ZERO, 4000, &base).unwrap();
        }
        _ => assert_eq!(kind, "empty"),
    }
    schunk.vlmeta_add(b"v1", b"abcdefgh", None).unwrap();
    schunk.vlmeta_add(b"zeros", &[0; 1000], None).unwrap();
    if kind == "plain" {
        schunk.delete_chunk(1).unwrap();
    }
    schunk
}

const MAKES: [&str; 5] = ["empty", "plain", "variable", "vl", "filled"];

fn contiguous(kind: &str) -> Vec<u8> {
    let frame = fill(Frame::create_in_memory(params()).unwrap(), kind).into_frame().unwrap();
    frame.into_buffer().unwrap().to_vec()
}

/// Reads all there is of a super-chunk, by every way. What comes out does not matter here.
fn read_all(schunk: &Schunk) {
    let reading = Reading::default();
    let mut dest = vec![0; 1 << 16];
    for nchunk in 0..schunk.nchunks().min(100) {
        let _ = schunk.chunk(nchunk);
        let _ = schunk.lazy_chunk(nchunk);
        let _ = schunk.decompress_chunk(nchunk, &mut dest, &reading);
        for nblock in 0..4 {
            let make = |(Room::Zeros(len) | Room::Any(len))| Ok(vec![0; len.min(1 << 20)]);
            let _ = schunk.vl_block(nchunk, nblock, &reading, make);
        }
    }
    for (start, stop) in [(0, 3), (3, 64), (60, 200), (250, 260), (0, 16000)] {
        let _ = schunk.get_slice(start, stop, &mut dest, &reading);
    }
    let _ = schunk.get_sparse(&[0, 5, 100, 70, 3], &mut dest, &reading);
    for layer in schunk.vlmetalayers().iter() {
        let _ = schunk.vlmeta_get(&layer.name);
    }
    // Copies of what claims to be large are as large as they should be.
    if schunk.nbytes() < 1 << 20 {
        let _ = schunk.to_memory();
        let _ = schunk.to_frame(params());
        let cparams = CParams { typesize: 4, clevel: 1, ..CParams::default() };
        let mut copy = Schunk::in_memory(params());
        let _ = schunk.copy_to(&mut copy, Some((&reading, &Writing::new(Encoding::new(&cparams)))));
    }
}

/// Changes a super-chunk in every way.
fn change_all(schunk: &mut Schunk) {
    let cparams = CParams { typesize: 4, ..CParams::default() };
    let writing = Writing::new(Encoding::new(&cparams));
    let new = compress(&cparams, &ramp(1, 64));
    let _ = schunk.vlmeta_update(b"v1", b"other", None);
    let _ = schunk.vlmeta_delete(b"zeros");
    let _ = schunk.meta_update(b"m1", b"HELLO");
    if schunk.nchunks() > 1000 {
        return;
    }
    let _ = schunk.append_chunk(&new);
    let _ = schunk.insert_chunk(1, &new);
    let _ = schunk.update_chunk(0, &new);
    let _ = schunk.delete_chunk(1);
    let _ = schunk.set_slice(3, 40, &ramp(7, 37), &Reading::default(), &writing);
    let _ = schunk.append_buffer(Source::Bytes(&ramp(1, 30)), &writing);
    let _ = schunk.reorder(&(0..schunk.nchunks()).rev().collect::<Vec<_>>());
}

fn from_memory(bytes: &[u8]) -> blosc2::Result<Schunk> {
    Schunk::from_buffer(MallocBuf::copy_of(bytes)?)
}

fn from_path(path: &Path, mmap: bool) -> blosc2::Result<Schunk> {
    let mut options = FrameOptions::default();
    if mmap {
        // SAFETY: nobody else has the file.
        options.io = Arc::new(unsafe { MmapIo::new(MmapMode::CopyOnWrite, 1 << 16) });
    }
    Schunk::open(path, 0, &options)
}

/// A frame in memory, in a file, and mapped, read and changed.
fn try_contiguous(bytes: &[u8], file: &Path) {
    if let Ok(mut schunk) = from_memory(bytes) {
        read_all(&schunk);
        change_all(&mut schunk);
        read_all(&schunk);
    }
    fs::write(file, bytes).unwrap();
    for mmap in [false, true] {
        if let Ok(schunk) = from_path(file, mmap) {
            read_all(&schunk);
        }
    }
    if let Ok(mut schunk) = from_path(file, true) {
        change_all(&mut schunk);
    }
    if let Ok(mut schunk) = from_path(file, false) {
        change_all(&mut schunk);
        read_all(&schunk);
    }
}

/// Values for a byte that was `old`.
fn wrong(old: u8) -> Vec<u8> {
    [old ^ 0x81, 0x7f].into_iter().filter(|&value| value != old).collect()
}

#[test]
fn a_wrong_byte_anywhere_in_a_contiguous_frame_does_no_harm() {
    let before = peak_memory();
    let file = TempPath::new("byte");
    for kind in MAKES {
        let bytes = contiguous(kind);
        for at in places(kind, bytes.len()) {
            for value in wrong(bytes[at]) {
                let mut bad = bytes.clone();
                bad[at] = value;
                try_contiguous(&bad, &file.0);
            }
        }
        assert_modest_since(before, kind);
    }
}

#[test]
fn a_contiguous_frame_cut_off_anywhere_is_refused() {
    let file = TempPath::new("cut");
    for kind in MAKES {
        let bytes = contiguous(kind);
        for len in 0..bytes.len() {
            try_contiguous(&bytes[..len], &file.0);
            assert!(from_memory(&bytes[..len]).is_err(), "{kind}: {len} bytes");
            fs::write(&file.0, &bytes[..len]).unwrap();
            assert!(from_path(&file.0, false).is_err(), "{kind}: {len} bytes in a file");
            assert!(from_path(&file.0, true).is_err(), "{kind}: {len} bytes in a mapped file");
        }
    }
}

#[test]
fn a_wrong_byte_anywhere_in_a_packed_super_chunk_does_no_harm() {
    let before = peak_memory();
    let opened = |bytes: &[u8]| Schunk::from_any_buffer(MallocBuf::copy_of(bytes).unwrap());
    let cparams = CParams { typesize: 4, ..CParams::default() };
    let mut schunk = Schunk::in_memory(params());
    for i in 0..3 {
        let writing = Writing::new(Encoding::new(&cparams));
        schunk.append_buffer(Source::Bytes(&ramp(i * 500, 500)), &writing).unwrap();
    }
    schunk.vlmeta_add(b"userdata", b"about it", None).unwrap();
    let bytes = schunk.to_packed().unwrap();
    assert_eq!(opened(&bytes).unwrap().nbytes(), 6000);
    for at in places("packed", bytes.len()) {
        for value in wrong(bytes[at]) {
            let mut bad = bytes.clone();
            bad[at] = value;
            if let Ok(mut schunk) = opened(&bad) {
                read_all(&schunk);
                change_all(&mut schunk);
            }
        }
        assert!(opened(&bytes[..at]).is_err(), "{at} bytes");
    }
    assert_modest_since(before, "packed");
}

/// Calls `work` with a fresh copy of a sparse frame for each of its files, by name.
fn each_file(kind: &str, work: impl Fn(&Path, &Path, &[u8])) {
    let base = TempPath::new("base");
    drop(fill(Frame::create_dir(&base.0, params(), &FrameOptions::default()).unwrap(), kind));
    let files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&base.0)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into(), fs::read(entry.path()).unwrap()))
        .collect();
    let dir = TempPath::new("dir");
    for (name, bytes) in &files {
        let restore = || {
            let _ = dirs::remove_dir(&dir.0);
            fs::create_dir(&dir.0).unwrap();
            for (name, bytes) in &files {
                fs::write(dir.0.join(name), bytes).unwrap();
            }
        };
        restore();
        work(&dir.0, &dir.0.join(name), bytes);
    }
}

fn try_sparse(dir: &Path) {
    if let Ok(schunk) = from_path(dir, false) {
        read_all(&schunk);
    }
}

#[test]
fn a_wrong_byte_anywhere_in_a_sparse_frame_does_no_harm() {
    for kind in ["plain", "variable", "vl"] {
        each_file(kind, |dir, file, bytes| {
            for at in 0..bytes.len() {
                for value in wrong(bytes[at]) {
                    let mut bad = bytes.to_vec();
                    bad[at] = value;
                    fs::write(file, &bad).unwrap();
                    try_sparse(dir);
                }
            }
        });
    }
}

#[test]
fn a_sparse_frame_with_a_file_cut_off_gives_errors_for_that_chunk_alone() {
    for kind in ["plain", "variable", "vl"] {
        each_file(kind, |dir, file, bytes| {
            let is_index = file.ends_with(dirs::INDEX_NAME);
            for len in 0..bytes.len() {
                fs::write(file, &bytes[..len]).unwrap();
                try_sparse(dir);
                let opened = from_path(dir, false);
                if is_index {
                    assert!(opened.is_err(), "{kind}: index of {len} bytes");
                } else if let Ok(schunk) = opened {
                    let failed = (0..schunk.nchunks()).filter(|&n| schunk.chunk(n).is_err()).count();
                    assert_eq!(failed, 1, "{kind}: chunk file of {len} bytes");
                }
            }
            fs::remove_file(file).unwrap();
            try_sparse(dir);
        });
    }
}

#[test]
fn changes_of_damaged_sparse_frames_do_no_harm() {
    each_file("plain", |dir, file, bytes| {
        for at in (0..bytes.len()).step_by(3) {
            let mut bad = bytes.to_vec();
            bad[at] ^= 0xff;
            let copy = TempPath::new("copy");
            fs::create_dir(&copy.0).unwrap();
            for entry in fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), copy.0.join(entry.file_name())).unwrap();
            }
            fs::write(copy.0.join(file.file_name().unwrap()), &bad).unwrap();
            if let Ok(mut schunk) = from_path(&copy.0, false) {
                change_all(&mut schunk);
                read_all(&schunk);
            }
        }
    });
}

#[test]
fn metalayers_that_claim_gigabytes_cost_nothing() {
    let before = peak_memory();
    let block = i32::MAX / 5;
    let crafted = [
        claiming(HUGE, block, special::ZERO, &[]),
        claiming(HUGE, block, special::NAN, &[]),
        claiming(HUGE, block, special::VALUE, &[7]),
        claiming(
            HUGE,
            block,
            special::NONE,
            &[52, 0, 0, 0, 52, 0, 0, 0, 52, 0, 0, 0, 52, 0, 0, 0, 52, 0, 0, 0],
        ),
        claiming(HUGE, block, special::NONE, &[0xff; 64]),
        claiming(HUGE, HUGE, special::NONE, &[]),
    ];
    for (i, chunk) in crafted.iter().enumerate() {
        let mut frame = Frame::create_in_memory(params()).unwrap();
        frame.vlmeta_add(b"v", chunk.clone()).unwrap();
        let schunk = Schunk::over(frame);
        match schunk.vlmeta_get(b"v") {
            Ok((_, content)) => {
                assert_eq!((i, content.len()), (0, usize::try_from(HUGE).unwrap()));
                assert_eq!((content[0], content[1 << 30]), (0, 0));
            }
            Err(e) => assert!(matches!(e.kind(), ErrorKind::Data | ErrorKind::ReadBuffer), "{i}: {e}"),
        }
    }
    assert_modest_since(before, "all");
}

#[test]
fn chunks_that_claim_gigabytes_cost_nothing() {
    let before = peak_memory();
    let file = TempPath::new("claim");
    // A chunk of 2 GiB compressed: the file does not have them.
    let mut long = claiming(256, 256, special::NONE, &[1; 100]);
    long[12..16].copy_from_slice(&HUGE.to_le_bytes());
    for kind in ["plain", "variable"] {
        let bytes = contiguous(kind);
        let header_len = u32::from_be_bytes(bytes[0x0b..0x0f].try_into().unwrap()) as usize;
        let mut bad = bytes.clone();
        bad[header_len..header_len + 32].copy_from_slice(&long[..32]);
        // ... and a payload area as long as that.
        try_contiguous(&bad, &file.0);
        bad[0x27..0x2f].copy_from_slice(&(1u64 << 40).to_be_bytes());
        try_contiguous(&bad, &file.0);
    }
    for (name, nbytes) in [("nbytes", HUGE), ("less", 1 << 30)] {
        let chunk = claiming(nbytes, i32::MAX / 5, special::NONE, &[0xff; 64]);
        let mut schunk = Schunk::over(Frame::create_in_memory(params()).unwrap());
        schunk.append_chunk(&chunk).unwrap();
        let mut copy = Schunk::in_memory(params());
        let cparams = CParams { typesize: 4, clevel: 1, ..CParams::default() };
        let (reading, writing) = (Reading::default(), Writing::new(Encoding::new(&cparams)));
        assert!(schunk.copy_to(&mut copy, Some((&reading, &writing))).is_err(), "{name}");
        assert!(schunk.set_slice(1, 2, &[1; 4], &reading, &writing).is_err(), "{name}");
    }
    // A part of a block that has to be decoded as a whole.
    let mut delta = claiming(1 << 30, i32::MAX / 5, special::NONE, &[0xff; 64]);
    delta[21] = filter::DELTA;
    let mut schunk = Schunk::over(Frame::create_in_memory(params()).unwrap());
    schunk.append_chunk(&delta).unwrap();
    assert!(schunk.get_slice(1, 2, &mut [0; 4], &Reading::default()).is_err());
    assert_modest_since(before, "all");
}

#[test]
fn a_tiny_frame_of_very_many_chunks_stays_tiny() {
    let before = peak_memory();
    let base = CParams { typesize: 1, ..CParams::default() };
    let mut schunk = Schunk::over(Frame::create_in_memory(FrameParams { typesize: 1, ..params() }).unwrap());
    let n = schunk.fill_special(200_000_000, special::ZERO, 1, &base).unwrap();
    let bytes = schunk.frame().unwrap().buffer().unwrap().to_vec();
    assert!(n == 200_000_000 && bytes.len() < 200);
    let mut opened = from_memory(&bytes).unwrap();
    let mut item = [1];
    opened.get_slice(199_999_999, 200_000_000, &mut item, &Reading::default()).unwrap();
    assert_eq!(item, [0]);
    // Each of these would have to be stored with its size.
    let longer = compress(&base, &[1, 2, 3]);
    assert_eq!(opened.update_chunk(5, &longer).unwrap_err().kind(), ErrorKind::InvalidParam);
    assert_eq!((opened.nchunks(), opened.chunksize()), (n, 1));
    assert_modest_since(before, "all");
}

#[test]
fn a_tiny_frame_of_very_many_equal_chunks_is_not_copied_forever() {
    let before = peak_memory();
    let n = 1 << 26;
    let mut schunk = Schunk::over(Frame::create_in_memory(params()).unwrap());
    let data = ramp(0, 1000);
    schunk.append_chunk(&compress(&CParams { typesize: 4, ..CParams::default() }, &data)).unwrap();
    let bytes = schunk.frame().unwrap().buffer().unwrap().to_vec();
    let be32 = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let payload_end = be32(0x0b) + be32(0x2b);
    let trailer = &bytes[bytes.len() - schunk.frame().unwrap().trailer_len()..];
    // An index of zeros: every chunk is the one at the start.
    let mut index = claiming(8 * n, 1 << 20, special::ZERO, &[]);
    index[3] = 8;
    let mut crafted = [&bytes[..payload_end], &index, trailer].concat();
    let len = crafted.len() as u64;
    crafted[0x10..0x18].copy_from_slice(&len.to_be_bytes());
    let nbytes = i64::from(n) * i64::try_from(data.len()).unwrap();
    crafted[0x1e..0x26].copy_from_slice(&nbytes.to_be_bytes());
    let schunk = from_memory(&crafted).unwrap();
    assert_eq!(schunk.nchunks(), 1 << 26);
    let mut item = [0; 4];
    schunk.get_slice(1000 << 25, (1000 << 25) + 1, &mut item, &Reading::default()).unwrap();
    let failed = |e: blosc2::Error| assert_eq!(e.kind(), ErrorKind::InvalidHeader);
    failed(schunk.to_memory().err().unwrap());
    failed(schunk.to_frame(params()).err().unwrap());
    failed(schunk.copy_to(&mut Schunk::in_memory(params()), None).unwrap_err());
    let cparams = CParams { typesize: 4, ..CParams::default() };
    let (reading, writing) = (Reading::default(), Writing::new(Encoding::new(&cparams)));
    failed(schunk.copy_to(&mut Schunk::in_memory(params()), Some((&reading, &writing))).unwrap_err());
    assert_modest_since(before, "all");
}
