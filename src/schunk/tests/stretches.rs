//! Large blocks whose bytes come in long stretches of different kinds, of which a few items are read.

use super::*;

/// `nitems` items: each byte of them is noise for a while, then one value, counts, repeats what was far before, or has
/// a few values.
fn stretches(random: &mut Random, typesize: usize, nitems: usize) -> Vec<u8> {
    let mut items = vec![0; typesize * nitems];
    for byte in 0..typesize {
        let mut plane: Vec<u8> = Vec::new();
        while plane.len() < nitems {
            let kind = random.below(5).min(random.below(5));
            let len = 1 + (random.below(1 << 17) >> random.below(17));
            let (value, back) = (random.bytes(1)[0], 1 + random.below(70_000));
            for at in plane.len()..nitems.min(plane.len() + len) {
                let next = match kind {
                    0 => random.bytes(1)[0],
                    1 => value,
                    2 => at.to_le_bytes()[0],
                    3 => at.checked_sub(back).map_or(value, |from| plane[from]),
                    _ => random.below(3).to_le_bytes()[0],
                };
                plane.push(next);
            }
        }
        items.iter_mut().skip(byte).step_by(typesize).zip(plane).for_each(|(to, from)| *to = from);
    }
    items
}

#[test]
fn a_few_items_of_long_stretches_are_read() {
    const ITEMS: usize = 100_000;
    let mut random = Random::new(77);
    let codecs = [codec::BLOSCLZ, codec::LZ4, codec::LZ4HC, codec::ZLIB, codec::ZSTD];
    for (kind, compcode) in
        [Kind::File, Kind::Dir].into_iter().flat_map(|kind| codecs.map(|codec| (kind, codec)))
    {
        for (splitmode, last_filter) in [
            (split::ALWAYS, filter::SHUFFLE),
            (split::NEVER, filter::SHUFFLE),
            (split::ALWAYS, filter::BITSHUFFLE),
            (split::NEVER, 0),
        ] {
            let path = TempPath::new("stretches");
            let typesize = [2, 4, 8][random.below(3)];
            let mut items = stretches(&mut random, typesize, ITEMS);
            let blocksize = [0, typesize * ITEMS][random.below(2)];
            let filters = [0, 0, 0, 0, 0, last_filter];
            let cparams = CParams { splitmode, filters, ..cparams(typesize, blocksize, compcode) };
            let (reading, writing) = (Reading::default(), Writing::new(Encoding::new(&cparams)));
            let mut schunk = create(kind, &path.0, i32::try_from(typesize).unwrap());
            schunk.append_buffer(Source::Bytes(&items), &writing).unwrap();
            for round in 0..40 {
                let start = random.below(ITEMS) >> random.below(17);
                let stop = ITEMS.min(start + 1 + (random.below(1 << 12) >> random.below(12)));
                let (range, from, to) = (start * typesize..stop * typesize, start as u64, stop as u64);
                if round % 10 == 9 {
                    let new = stretches(&mut random, typesize, stop - start);
                    items[range.clone()].copy_from_slice(&new);
                    schunk.set_slice(from, to, &new, &reading, &writing).unwrap();
                }
                let mut got = vec![0xaa; range.len()];
                schunk.get_slice(from, to, &mut got, &reading).unwrap();
                let what = format!("{kind:?}, codec {compcode}, split {splitmode}, filter {last_filter}");
                assert!(got == items[range], "{what}, {typesize} bytes: {start}..{stop}");
            }
            assert!(all(&schunk) == items);
        }
    }
}
