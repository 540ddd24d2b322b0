//! Writes inputs for fuzzers to start from into `fuzz/corpus/`: chunks of every codec, frames, metalayers of arrays.

use blosc2::capi::b2nd_ctx::b2nd_serialize_meta;
use blosc2::capi::meta::{blosc2_meta_add, blosc2_vlmeta_add};
use blosc2::capi::schunk_data::blosc2_schunk_append_buffer;
use blosc2::capi::util::blosc2_get_blosc2_cparams_defaults;
use blosc2::chunk::{CParams, Encoding, Source};
use blosc2::format::consts::{codec, filter};
use blosc2::format::frame_header::FrameParams;
use blosc2::schunk::{self, Writing};
use libblosc2_rs_fuzz::{OURS, Schunk, int};
use std::fs;
use std::path::PathBuf;
use std::ptr;

fn save(target: &str, name: &str, bytes: &[u8]) {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&dir).expect("the corpus can be made");
    fs::write(dir.join(format!("seed-{name}")), bytes).expect("the corpus can be written");
}

/// The metalayer of an array of 10 x 12 items, in chunks of 4 x 5, in blocks of 2 x 3.
fn nd_meta() -> Vec<u8> {
    let mut written = ptr::null_mut();
    let (shape, chunkshape, blockshape) = ([10_i64, 12], [4, 5], [2, 3]);
    // SAFETY: the shapes have two dimensions, and the dtype is terminated.
    let len = unsafe {
        let dtype = c"<i4".as_ptr();
        let (shape, chunkshape) = (shape.as_ptr(), chunkshape.as_ptr());
        b2nd_serialize_meta(2, shape, chunkshape, blockshape.as_ptr(), dtype, 0, &raw mut written)
    };
    // SAFETY: the library says so; a few bytes may leak in a program that ends at once.
    unsafe { std::slice::from_raw_parts(written, usize::try_from(len).expect("valid shapes")) }.to_vec()
}

/// A super-chunk as they were before there were frames, with the first chunk's data as userdata.
fn packed(data: &[u8]) -> Vec<u8> {
    let cparams = CParams { typesize: 4, blocksize: 512, ..CParams::default() };
    let filters = [0, 0, 0, 0, 0, filter::SHUFFLE];
    let mut schunk =
        schunk::Schunk::in_memory(FrameParams { typesize: 4, filters, ..FrameParams::default() });
    for part in data.chunks(800) {
        let writing = Writing::new(Encoding::new(&cparams));
        schunk.append_buffer(Source::Bytes(part), &writing).expect("valid data");
    }
    schunk.vlmeta_add(b"userdata", &data[..800], None).expect("valid data");
    schunk.to_packed().expect("parameters of that time")
}

/// The same with the delta filter of that time before the shuffle: the userdata become its reference.
fn packed_with_delta(data: &[u8]) -> Vec<u8> {
    const FILTERS: usize = 8;
    const REFERENCE: usize = 40;
    const USERDATA: usize = 64;
    let mut bytes = packed(data);
    bytes[FILTERS] = 3 | 1 << 3;
    bytes.copy_within(USERDATA..USERDATA + 8, REFERENCE);
    bytes[USERDATA..USERDATA + 8].fill(0);
    let whole = Schunk::from_buffer(&bytes).expect("a super-chunk of that time");
    whole.read_everything();
    bytes
}

/// The contiguous frames of released versions.
fn save_golden_frames() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/frames");
    for version in fs::read_dir(golden).expect("the golden files are there") {
        let version = version.expect("a directory that can be read");
        for file in fs::read_dir(version.path()).expect("a directory for each version") {
            let file = file.expect("a directory that can be read");
            if file.path().is_file() {
                let name = format!("{}-{}", version.file_name().display(), file.file_name().display());
                save("frame", &name, &fs::read(file.path()).expect("a golden file"));
            }
        }
    }
}

fn main() {
    let ramp: Vec<u8> = (0..600_u32).flat_map(u32::to_le_bytes).collect();
    let noise: Vec<u8> = (0..2400_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut name = 0;
    let (shuffle, delta) = (filter::SHUFFLE, filter::DELTA);
    let pipelines = [
        ([0; 6], 0),
        ([0, 0, 0, 0, 0, shuffle], 1),
        ([0, 0, 0, delta, 0, filter::BITSHUFFLE], 0),
        ([filter::TRUNC_PREC, filter::BYTEDELTA, 0, 0, 0, shuffle], 0),
    ];
    let codecs = [
        codec::BLOSCLZ,
        codec::LZ4,
        codec::LZ4HC,
        codec::ZLIB,
        codec::ZSTD,
        codec::NDLZ,
        codec::ZFP_ACCURACY,
    ];
    for compcode in codecs {
        for (filters, use_dict) in pipelines {
            for data in [&ramp, &noise, &vec![0; 2400], &vec![7; 30]] {
                let mut params = blosc2_get_blosc2_cparams_defaults();
                params.compcode = compcode;
                params.filters = filters;
                params.use_dict = use_dict;
                params.typesize = 4;
                params.blocksize = 512;
                let (code, chunk) = OURS.compress(params, data);
                if code > 0 {
                    save("chunk", &name.to_string(), &chunk);
                    name += 1;
                }
            }
        }
    }
    let mut params = blosc2_get_blosc2_cparams_defaults();
    params.typesize = 4;
    params.blocksize = 24;
    for kind in 0..4 {
        let schunk = Schunk::new(&mut params).expect("valid parameters");
        let mut meta = nd_meta();
        if kind >= 2 {
            // SAFETY: the name is terminated and the length that of the content.
            unsafe { blosc2_meta_add(schunk.0, c"b2nd".as_ptr(), meta.as_mut_ptr(), int(meta.len())) };
        }
        for nchunk in 0..kind * 3 {
            let chunk = [nchunk as u8; 144];
            // SAFETY: the length is that of the chunk.
            unsafe { blosc2_schunk_append_buffer(schunk.0, chunk.as_ptr().cast(), int(chunk.len())) };
        }
        if kind & 1 == 1 {
            let mut content = noise[..50].to_vec();
            // SAFETY: the name is terminated and the length that of the content.
            unsafe {
                blosc2_vlmeta_add(schunk.0, c"layer".as_ptr(), content.as_mut_ptr(), 50, ptr::null_mut())
            };
        }
        save("frame", &kind.to_string(), &schunk.to_buffer().expect("a frame in memory"));
    }
    save("frame", "packed", &packed(&ramp));
    save("frame", "packed-delta", &packed_with_delta(&ramp));
    save_golden_frames();
    save("nd_meta", "0", &nd_meta());
    for target in ["round_trip", "against_c", "frame_edit", "metalayers"] {
        for start in 0..8 {
            let mut input: Vec<u8> = noise[start * 16..start * 16 + 16].to_vec();
            input.extend_from_slice(if start & 1 == 0 { &ramp[..400] } else { &noise[..400] });
            save(target, &start.to_string(), &input);
        }
    }
}
