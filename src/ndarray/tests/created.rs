//! Arrays that are made of others: which chunks are taken over as they are.

use super::*;

/// An array of one dimension whose only chunk has blocks of 4 KiB.
fn row(len: u64) -> Case {
    let (shape, chunk, block) = (vec![len], vec![len], vec![1024]);
    Case { shape, chunk, block, typesize: 4, filters: filter::SHUFFLE, framed: false }
}

#[test]
fn chunks_with_other_blocks_are_not_taken_over() {
    let shape = vec![4, 4];
    let case = Case {
        shape: shape.clone(),
        chunk: shape.clone(),
        block: vec![2, 4],
        typesize: 1,
        filters: 0,
        framed: false,
    };
    // As many items, in another order.
    let other = Case { block: vec![4, 2], ..case.clone() }.filled();
    let source =
        StoredArray { schunk: &other.schunk, geometry: &other.geometry, reading: &Reading::default() };
    let (mut schunk, geometry, params) = case.empty();
    let writing = Writing::new(Encoding::new(&params));
    create::fill_from_array(&mut schunk, &geometry, source, &[0, 0], &writing).unwrap();
    let mut tested = Tested { schunk, geometry, params: params.clone(), model: other.model.clone() };
    tested.check();
    let Tested { schunk, geometry, .. } = &mut tested;
    *geometry = concat::extend(schunk, geometry, source, 0, &Reading::default(), &writing).unwrap();
    tested.model.shape[0] = 8;
    tested.model.items.extend(other.model.items);
    tested.check();
}

#[test]
fn chunks_that_were_compressed_otherwise_are_not_taken_over() {
    let case = row(8192);
    let (_, geometry, params) = case.empty();
    let items = Model::counting(&case.shape, 4, 1).bytes();
    let made = |params: &CParams| {
        let (mut schunk, ..) = case.empty();
        create::fill_from_buffer(&mut schunk, &geometry, &items, &Writing::new(Encoding::new(params)))
            .unwrap();
        schunk
    };
    let dict = made(&CParams { use_dict: true, ..params.clone() });
    assert!(ChunkHeader::read(&dict.chunk(0).unwrap()).unwrap().has_dict());
    for other in [
        CParams { compcode: codec::ZSTD.into(), ..params.clone() },
        CParams { compcode: codec::LZ4HC.into(), ..params.clone() },
        CParams { compcode_meta: 3, ..params.clone() },
        CParams { filters: [0, 0, 0, 0, 0, filter::BITSHUFFLE], ..params.clone() },
        CParams { filters_meta: [0, 0, 0, 0, 0, 2], ..params.clone() },
        CParams { use_dict: true, ..params.clone() },
        CParams { clevel: 0, ..params.clone() },
    ] {
        for (from, to) in [(&params, &other), (&other, &params)] {
            let from = made(from);
            let source = StoredArray { schunk: &from, geometry: &geometry, reading: &Reading::default() };
            let (mut schunk, ..) = case.empty();
            create::fill_from_array(&mut schunk, &geometry, source, &[0], &Writing::new(Encoding::new(to)))
                .unwrap();
            assert!(*schunk.chunk(0).unwrap() == *made(to).chunk(0).unwrap(), "{to:?}");
        }
    }
}

#[test]
fn copies_hold_what_a_postfilter_makes() {
    struct Inverting;
    impl chunk::Postfilter for Inverting {
        fn run(&self, call: chunk::PostfilterCall<'_>) -> Result<()> {
            call.output.iter_mut().zip(call.input).for_each(|(to, from)| *to = !from);
            Ok(())
        }
    }
    let mut source = row(8192).filled();
    let dec = chunk::Decoding { postfilter: Some(&Inverting), ..chunk::Decoding::default() };
    let reading = Reading { dec, ..Reading::default() };
    let src = StoredArray { schunk: &source.schunk, geometry: &source.geometry, reading: &reading };
    let (mut schunk, geometry, params) = row(8192).empty();
    create::fill_from_array(&mut schunk, &geometry, src, &[0], &Writing::new(Encoding::new(&params)))
        .unwrap();
    let model = &mut source.model;
    model.items.iter_mut().flatten().for_each(|byte| *byte = !*byte);
    Tested { schunk, geometry, params, model: model.clone() }.check();
}

#[test]
fn items_that_another_array_lacks_become_zeros() {
    let source = worked_example();
    // Two rows of the source in the first chunk, one in the second, none in the third.
    let case = Case {
        shape: vec![6, 4],
        chunk: vec![2, 4],
        block: vec![2, 2],
        typesize: 1,
        filters: 0,
        framed: false,
    };
    let (mut schunk, geometry, params) = case.empty();
    let src =
        StoredArray { schunk: &source.schunk, geometry: &source.geometry, reading: &Reading::default() };
    let writing = Writing::new(Encoding::new(&params));
    create::fill_from_array(&mut schunk, &geometry, src, &[2, 0], &writing).unwrap();
    let mut items = source.model.items[8..].to_vec();
    items.resize(24, vec![0]);
    let model = Model { shape: case.shape.clone(), typesize: 1, items };
    Tested { schunk, geometry, params, model }.check();
}

#[test]
fn what_an_array_held_when_it_was_larger_is_not_taken_over() {
    let mut source = row(8192).filled();
    source.geometry =
        resize::resize(&mut source.schunk, &source.geometry, &[1000], None, &source.params).unwrap();
    let src =
        StoredArray { schunk: &source.schunk, geometry: &source.geometry, reading: &Reading::default() };
    let (mut schunk, geometry, params) = row(8192).empty();
    create::fill_from_array(&mut schunk, &geometry, src, &[0], &Writing::new(Encoding::new(&params)))
        .unwrap();
    let mut model = source.model;
    model.items[1000..].fill(vec![0; 4]);
    Tested { schunk, geometry, params, model }.check();
}

#[test]
fn padding_is_zeros_whatever_the_filter() {
    for filters in [filter::NONE, filter::SHUFFLE, filter::BITSHUFFLE, filter::DELTA] {
        let case = Case { filters, ..row(8192) };
        let padded = Case { shape: vec![1500], ..case }.filled();
        let mut data = vec![0xee; 32_768];
        padded.schunk.decompress_chunk(0, &mut data, &Reading::default()).unwrap();
        assert!(data[..6000] == padded.model.bytes() && data[6000..] == [0; 26_768], "filter {filters}");
    }
}
