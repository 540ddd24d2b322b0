//! Compressors that are asked for each chunk.

use super::*;

/// Compresses each chunk with another codec than the one before, and counts.
struct Alternating {
    params: [CParams; 2],
    calls: Cell<usize>,
    fails_at: Cell<Option<usize>>,
}

impl Alternating {
    fn new() -> Alternating {
        let params = |compcode: u8| CParams {
            typesize: 4,
            blocksize: 4000,
            compcode: compcode.into(),
            ..CParams::default()
        };
        Alternating {
            params: [params(codec::ZSTD), params(codec::LZ4)],
            calls: Cell::new(0),
            fails_at: Cell::new(None),
        }
    }
}

impl ChunkCompressor for Alternating {
    fn compress(&self, src: Source<'_>, dest: &mut [u8]) -> Result<usize> {
        let call = self.calls.get();
        self.calls.set(call + 1);
        ensure(self.fails_at.get() != Some(call), ErrorKind::Tuner, "asked to fail")?;
        Ok(chunk::compress_with(&Encoding::new(&self.params[call % 2]), src, dest)?.cbytes)
    }
}

#[test]
fn a_compressor_is_asked_for_every_chunk() {
    let cparams = CParams { typesize: 4, blocksize: 4000, ..CParams::default() };
    let reading = Reading::default();
    for kind in KINDS {
        let path = TempPath::new("compressor");
        let mut schunk = create(kind, &path.0, 4);
        schunk.meta_add(b"m", b"fixed").unwrap();
        let each = Alternating::new();
        let writing =
            |compressor| Writing { compressor: Some(compressor), ..Writing::new(Encoding::new(&cparams)) };
        let mut model: Vec<u8> = (0..30_000u32).flat_map(|i| (i / 3).to_le_bytes()).collect();
        for data in model.chunks(40_000) {
            schunk.append_buffer(Source::Bytes(data), &writing(&each)).unwrap();
        }
        let codecs = |schunk: &Schunk| {
            let code = |n| ChunkHeader::read(&schunk.chunk(n).unwrap()).unwrap().compcode;
            (0..schunk.nchunks()).map(code).collect::<Vec<_>>()
        };
        assert_eq!(each.calls.get(), 3);
        assert_eq!(codecs(&schunk), [codec::ZSTD, codec::LZ4, codec::ZSTD], "{kind:?}");
        // A part of a chunk, of which blocks would be kept without it; then all of one, and parts of three.
        for (start, stop, calls) in [(10, 12, 4), (10_000, 20_000, 5), (9_990, 20_010, 8)] {
            let range = start * 4..stop * 4;
            model[range.clone()].fill(7);
            schunk.set_slice(start as u64, stop as u64, &model[range], &reading, &writing(&each)).unwrap();
            assert_eq!(each.calls.get(), calls);
            assert!(all(&schunk) == model, "{kind:?}");
        }
        let copy_path = TempPath::new("compressor-copy");
        let mut copy = create(kind, &copy_path.0, 4);
        let (counted, prepared) = (Alternating::new(), Cell::new(0));
        schunk
            .copy_to_watched(&mut copy, None, Some((&reading, &writing(&counted))), &|copy| {
                assert_eq!((copy.nchunks(), copy.metalayers().len()), (0, 1));
                prepared.set(prepared.get() + 1);
            })
            .unwrap();
        assert_eq!((counted.calls.get(), prepared.get()), (3, 1));
        assert_eq!(codecs(&copy), [codec::ZSTD, codec::LZ4, codec::ZSTD]);
        assert!(all(&copy) == model);
        each.fails_at.set(Some(each.calls.get() + 1));
        let noise = vec![9; 80];
        let failed = schunk.set_slice(9_990, 10_010, &noise, &reading, &writing(&each)).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Failure);
        model[39_960..40_000].fill(9); // the first chunk was changed before
        assert!(all(&schunk) == model, "{kind:?}");
        each.fails_at.set(Some(each.calls.get()));
        let failed = schunk.append_buffer(Source::Bytes(&noise), &writing(&each)).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Tuner);
        assert_eq!(schunk.nchunks(), 3);
    }
}
