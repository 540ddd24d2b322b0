//! Arrays made of others whose chunks and blocks have other shapes.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two shapes of chunks and blocks, and a shape of an array.
#[derive(Clone, Debug)]
struct Pair {
    source: Case,
    chunk: Vec<u64>,
    block: Vec<u64>,
    start: Vec<u64>,
}

impl Pair {
    fn target(&self, shape: Vec<u64>) -> Case {
        let (chunk, block, framed) = (self.chunk.clone(), self.block.clone(), !self.source.framed);
        Case { shape, chunk, block, framed, ..self.source.clone() }
    }
}

prop_compose! {
    /// Blocks of the source are often longer than chunks of the target.
    fn pairs()(dims in prop::collection::vec((1u64..14, 1u64..14, 1u64..14, 1u64..6, 1u64..6, 0u64..16), 1..5),
               typesize in prop_oneof![Just(1usize), Just(3), Just(8)],
               filters in prop_oneof![Just(filter::SHUFFLE), Just(0u8)],
               framed in any::<bool>()) -> Pair {
        // With many dimensions, short ones.
        let cut = |n: u64| if dims.len() > 2 { n.min(7) } else { n };
        let shape = dims.iter().map(|d| cut(d.0)).collect();
        let source = Case {
            shape,
            chunk: dims.iter().map(|d| cut(d.1)).collect(),
            block: dims.iter().map(|d| cut(d.2)).collect(),
            typesize,
            filters,
            framed,
        };
        let chunk = dims.iter().map(|d| d.3).collect();
        let block = dims.iter().map(|d| d.4).collect();
        Pair { source, chunk, block, start: dims.iter().map(|d| d.5).collect() }
    }
}

/// The box of `model` that starts at `start`, with zeros for what it lacks.
fn cut_out(model: &Model, start: &[u64], shape: &[u64]) -> Model {
    let mut own = Model::counting(shape, model.typesize, 0);
    let place = Region::new(&vec![0; shape.len()], shape);
    let in_model = strides(&model.shape, 1);
    for (n, item) in own.items.iter_mut().enumerate() {
        let at = place.cell(n);
        let from = (0..shape.len()).map(|i| start[i] + at[i]);
        let inside = from.clone().zip(&model.shape).all(|(at, extent)| at < *extent);
        let position = from.zip(&in_model).map(|(at, stride)| at * stride).sum::<u64>() as usize;
        *item = if inside { model.items[position].clone() } else { vec![0; model.typesize] };
    }
    own
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn boxes_in_and_beside_an_array_become_arrays(pair in pairs(), shape in [1u64..14, 1u64..14, 1u64..6, 1u64..6]) {
        let source = pair.source.filled();
        let target = pair.target(shape[..pair.source.shape.len()].to_vec());
        let (mut schunk, geometry, params) = target.empty();
        let writing = Writing::new(Encoding::new(&params));
        let src = StoredArray { schunk: &source.schunk, geometry: &source.geometry, reading: &Reading::default() };
        create::fill_from_array(&mut schunk, &geometry, src, &pair.start, &writing).unwrap();
        let model = cut_out(&source.model, &pair.start, &target.shape);
        Tested { schunk, geometry, params, model }.check();
    }

    #[test]
    fn arrays_behind_others_are_what_they_were(pair in pairs(), axis in 0usize..4, before in 0u64..9) {
        let axis = axis % pair.source.shape.len();
        let source = pair.source.filled();
        let mut shape = pair.source.shape.clone();
        shape[axis] = before;
        let mut joined = pair.target(shape).filled();
        let (first, writing) = (joined.model.clone(), Writing::new(Encoding::new(&joined.params)));
        let reading = Reading::default();
        let added = StoredArray { schunk: &source.schunk, geometry: &source.geometry, reading: &reading };
        joined.geometry =
            concat::extend(&mut joined.schunk, &joined.geometry, added, axis, &reading, &writing).unwrap();
        let mut start = vec![0; first.shape.len()];
        let mut region = Region::all(&joined.geometry);
        region.stop[axis] = before;
        prop_assert_eq!(joined.read(&region), first.bytes());
        start[axis] = before;
        let added = Region::new(&start, joined.geometry.shape());
        prop_assert_eq!(joined.read(&added), source.model.bytes());
    }
}

/// Counts the blocks that it gets.
struct Blocks(AtomicUsize);

impl chunk::Postfilter for Blocks {
    fn run(&self, call: chunk::PostfilterCall<'_>) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        call.output.copy_from_slice(call.input);
        Ok(())
    }
}

/// How many blocks are decoded to make an array with these chunks of one with these blocks, of 24 x 60 items.
fn decoded(block: [u64; 2], chunk: [u64; 2]) -> usize {
    let shape = vec![24, 60];
    let source = Case {
        shape: shape.clone(),
        chunk: shape,
        block: block.to_vec(),
        typesize: 4,
        filters: filter::SHUFFLE,
        framed: false,
    };
    let target = Case { chunk: chunk.to_vec(), block: chunk.to_vec(), ..source.clone() };
    let source = source.filled();
    let count = Blocks(AtomicUsize::new(0));
    let dec = chunk::Decoding { postfilter: Some(&count), ..chunk::Decoding::default() };
    let reading = Reading { dec, ..Reading::default() };
    let src = StoredArray { schunk: &source.schunk, geometry: &source.geometry, reading: &reading };
    let (mut schunk, geometry, params) = target.empty();
    create::fill_from_array(&mut schunk, &geometry, src, &[0, 0], &Writing::new(Encoding::new(&params)))
        .unwrap();
    Tested { schunk, geometry, params, model: source.model }.check();
    count.0.into_inner()
}

#[test]
fn long_blocks_are_decoded_once() {
    // One block of all, for many chunks.
    assert_eq!(decoded([24, 60], [2, 3]), 1);
    assert_eq!(decoded([24, 60], [24, 5]), 1);
    assert_eq!(decoded([24, 60], [2, 60]), 1);
    // Several blocks in several rows.
    assert_eq!(decoded([8, 20], [2, 4]), 9);
    assert_eq!(decoded([8, 20], [8, 4]), 9);
    assert_eq!(decoded([8, 20], [4, 20]), 9);
    // Chunks that are whole blocks.
    assert_eq!(decoded([8, 20], [8, 20]), 9);
    assert_eq!(decoded([4, 5], [8, 20]), 72);
    // Every fourth row of chunks ends with a row of blocks.
    assert_eq!(decoded([8, 60], [6, 60]), 3);
    // Rows of blocks that two windows meet.
    assert_eq!(decoded([8, 60], [3, 7]), 4);
    assert!(decoded([7, 60], [5, 60]) <= 5);
}
