//! Arrays against a model: all items in C order in one vector.

mod created;
mod disturbed;
mod faults;
mod windows;

use super::select::{self, Selection};
use super::shape::{Region, signed, strides};
use super::write::{self, Items};
use super::{Geometry, StoredArray, concat, create, open, resize, slice};
use crate::chunk::{self, CParams, Encoding, Source};
use crate::error::{ErrorKind, Result, ensure};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{MAX_FILTERS, SHUFFLE_SLOT, codec, filter, special};
use crate::format::frame_header::FrameParams;
use crate::format::nd_meta::{self, NdMeta};
use crate::frame::Frame;
use crate::schunk::{ChunkCompressor, Reading, Schunk, Writing};
use proptest::prelude::*;
use std::cell::Cell;

/// An array and what it should hold.
struct Tested {
    schunk: Schunk,
    geometry: Geometry,
    params: CParams,
    model: Model,
}

#[derive(Clone, Debug, PartialEq)]
struct Model {
    shape: Vec<u64>,
    typesize: usize,
    items: Vec<Vec<u8>>,
}

impl Model {
    fn counting(shape: &[u64], typesize: usize, from: usize) -> Model {
        let n: u64 = shape.iter().product();
        let item = |i: usize| (0..typesize).map(|b| ((from + i) >> (8 * (b % 4))) as u8).collect();
        let items = (0..n as usize).map(item).collect();
        Model { shape: shape.to_vec(), typesize, items }
    }

    fn bytes(&self) -> Vec<u8> {
        self.items.concat()
    }

    /// Positions of the items of a selection.
    fn positions(&self, lists: &[Vec<i64>]) -> Vec<usize> {
        let strides = strides(&self.shape, 1);
        let mut positions = vec![0];
        for (i, list) in lists.iter().enumerate() {
            let step = strides[i] as usize;
            positions =
                positions.iter().flat_map(|p| list.iter().map(move |&x| p + x as usize * step)).collect();
        }
        positions
    }
}

fn lists(region: &Region) -> Vec<Vec<i64>> {
    (0..region.ndim).map(|i| (region.start[i]..region.stop[i]).map(|x| x as i64).collect()).collect()
}

#[derive(Clone, Debug)]
struct Case {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    block: Vec<u64>,
    typesize: usize,
    filters: u8,
    framed: bool,
}

impl Case {
    fn params(&self) -> CParams {
        let mut filters = [filter::NONE; MAX_FILTERS];
        filters[SHUFFLE_SLOT] = self.filters;
        let blocksize = self.block.iter().product::<u64>() as usize * self.typesize;
        CParams { typesize: self.typesize, blocksize, filters, compcode: 1, ..CParams::default() }
    }

    fn empty(&self) -> (Schunk, Geometry, CParams) {
        let narrow = |v: &[u64]| v.iter().map(|&x| x as i32).collect::<Vec<_>>();
        let meta = NdMeta {
            shape: signed(&self.shape),
            chunkshape: narrow(&self.chunk),
            blockshape: narrow(&self.block),
            dtype: None,
            dtype_format: 0,
        };
        let geometry = Geometry::from_meta(&meta).unwrap();
        let params = self.params();
        let recorded = FrameParams {
            typesize: self.typesize as i32,
            blocksize: params.blocksize as i32,
            compcode: 1,
            clevel: 5,
            splitmode: 4,
            filters: params.filters,
            ..FrameParams::default()
        };
        let mut schunk = if self.framed {
            Schunk::over(Frame::create_in_memory(recorded).unwrap())
        } else {
            Schunk::in_memory(recorded)
        };
        create::prepare(&mut schunk, &geometry, &meta, &[]).unwrap();
        (schunk, geometry, params)
    }

    fn filled(&self) -> Tested {
        let (mut schunk, geometry, params) = self.empty();
        let model = Model::counting(&self.shape, self.typesize, 1);
        let writing = Writing::new(Encoding::new(&params));
        create::fill_from_buffer(&mut schunk, &geometry, &model.bytes(), &writing).unwrap();
        Tested { schunk, geometry, params, model }
    }
}

impl Tested {
    fn read(&self, region: &Region) -> Vec<u8> {
        let mut dest = vec![0xee; region.len() * self.model.typesize];
        let extents = region.extents();
        let shape = &extents[..region.ndim];
        slice::read(&self.schunk, &self.geometry, region, &mut dest, shape, &Reading::default()).unwrap();
        dest
    }

    fn check(&self) {
        assert_eq!(self.geometry.shape(), self.model.shape);
        assert_eq!(self.read(&Region::all(&self.geometry)), self.model.bytes());
        assert_eq!(open(&self.schunk).unwrap().1, self.geometry);
        assert_eq!(self.schunk.nchunks() as u64, self.geometry.nchunks());
    }

    fn write(&mut self, region: &Region, values: &Model) {
        let writing = Writing::new(Encoding::new(&self.params));
        let (reading, bytes) = (Reading::default(), values.bytes());
        let src = Items { bytes: &bytes, shape: &values.shape };
        write::write(&mut self.schunk, &self.geometry, region, src, &reading, &writing).unwrap();
        for (position, value) in self.model.positions(&lists(region)).into_iter().zip(&values.items) {
            self.model.items[position].clone_from(value);
        }
    }
}

prop_compose! {
    fn cases()(dims in prop::collection::vec((0u64..9, 1u64..6, 1u64..5), 0..4), typesize in prop_oneof![1..9usize, Just(300)],
               filters in prop_oneof![Just(filter::SHUFFLE), Just(filter::DELTA), Just(0u8), Just(filter::BITSHUFFLE)],
               framed in any::<bool>()) -> Case {
        let part = |f: fn(&(u64, u64, u64)) -> u64| dims.iter().map(f).collect::<Vec<_>>();
        Case { shape: part(|d| d.0), chunk: part(|d| d.1), block: part(|d| d.2), typesize, filters, framed }
    }
}

fn region_of(shape: &[u64], picks: &[(u64, u64)]) -> Region {
    let pick = |i: usize| {
        let (a, b) = picks[i];
        let (a, b) = (a % (shape[i] + 1), b % (shape[i] + 1));
        (a.min(b), a.max(b))
    };
    let (start, stop): (Vec<u64>, Vec<u64>) = (0..shape.len()).map(pick).unzip();
    Region::new(&start, &stop)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn boxes_read_as_in_the_model(case in cases(), picks in prop::collection::vec((0u64..9, 0u64..9), 4)) {
        let tested = case.filled();
        tested.check();
        let region = region_of(&case.shape, &picks);
        let expected: Vec<u8> = if region.is_empty() { vec![] } else {
            tested.model.positions(&lists(&region)).iter().flat_map(|&p| tested.model.items[p].clone()).collect()
        };
        prop_assert_eq!(tested.read(&region), expected);
    }

    #[test]
    fn written_boxes_and_nothing_else_change(case in cases(), picks in prop::collection::vec((0u64..9, 0u64..9), 4)) {
        let mut tested = case.filled();
        let region = region_of(&case.shape, &picks);
        let extents = region.extents();
        let values = Model::counting(&extents[..region.ndim], case.typesize, 1000);
        if !region.is_empty() {
            tested.write(&region, &values);
        }
        tested.check();
    }

    #[test]
    fn selections_read_and_write_as_in_the_model(case in cases(), picks in prop::collection::vec(prop::collection::vec(0i64..9, 0..5), 4)) {
        prop_assume!(!case.shape.is_empty() && case.shape.iter().all(|&n| n > 0));
        let mut tested = case.filled();
        let lists: Vec<Vec<i64>> = case.shape.iter().zip(&picks).map(|(&n, pick)| pick.iter().map(|x| x % n as i64).collect()).collect();
        let refs: Vec<&[i64]> = lists.iter().map(|list| &list[..]).collect();
        let selection = Selection::new(&tested.geometry, &refs).unwrap();
        let shape: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
        let positions = if shape.contains(&0) { vec![] } else { tested.model.positions(&lists) };
        let mut dest = vec![0; positions.len() * case.typesize];
        let reading = Reading::default();
        select::read(&tested.schunk, &tested.geometry, &selection, &mut dest, &shape, &reading).unwrap();
        let expected: Vec<u8> = positions.iter().flat_map(|&p| tested.model.items[p].clone()).collect();
        prop_assert_eq!(dest, expected);

        let values = Model::counting(&shape, case.typesize, 500);
        let writing = Writing::new(Encoding::new(&tested.params));
        select::write(&mut tested.schunk, &tested.geometry, &selection, &values.bytes(), &shape, &reading, &writing).unwrap();
        for (&position, value) in positions.iter().zip(&values.items) {
            tested.model.items[position].clone_from(value);
        }
        tested.check();

        let coords: Vec<i64> = positions.iter().rev().map(|&p| p as i64).collect();
        let mut dest = vec![0; coords.len() * case.typesize];
        select::read_sparse(&tested.schunk, &tested.geometry, &coords, &mut dest, &reading).unwrap();
        let expected: Vec<u8> = coords.iter().flat_map(|&p| tested.model.items[p as usize].clone()).collect();
        prop_assert_eq!(dest, expected);
    }

    #[test]
    fn insertions_and_deletions_move_the_rest(case in cases(), axis in 0usize..4, at in 0u64..4, count in 1u64..4) {
        prop_assume!(axis < case.shape.len() && case.shape.iter().all(|&n| n > 0));
        let mut tested = case.filled();
        let chunk = case.chunk[axis];
        let old = case.shape[axis];
        let at = (at * chunk).min(old);
        let count = if at == old { count } else { count * chunk };
        let mut shape = case.shape.clone();
        shape[axis] = count;
        let values = Model::counting(&shape, case.typesize, 700);
        let writing = Writing::new(Encoding::new(&tested.params));
        let insertion = resize::Insertion { axis, at: at as i64 };
        tested.geometry = resize::insert(&mut tested.schunk, &tested.geometry, &values.bytes(), insertion, &Reading::default(), &writing).unwrap();
        let before = tested.model.clone();
        tested.model.shape[axis] = old + count;
        let slab: u64 = case.shape[axis + 1..].iter().product();
        let rows: u64 = case.shape[..axis].iter().product();
        tested.model.items = (0..rows).flat_map(|row| {
            let part = |m: &Model, n: u64, from: u64, to: u64| m.items[((row * n + from) * slab) as usize..((row * n + to) * slab) as usize].to_vec();
            [part(&before, old, 0, at), part(&values, count, 0, count), part(&before, old, at, old)].concat()
        }).collect();
        tested.check();
        tested.geometry = resize::delete(&mut tested.schunk, &tested.geometry, axis, at as i64, count as i64, &tested.params).unwrap();
        tested.model = before;
        tested.check();
    }

    #[test]
    fn an_array_behind_another_holds_both(case in cases(), more in 0u64..7, chunks in [1u64..5, 1u64..5, 1u64..5, 1u64..5]) {
        prop_assume!(!case.shape.is_empty() && case.shape.iter().all(|&n| n > 0));
        let mut tested = case.filled();
        let mut shape = case.shape.clone();
        shape[0] = more;
        let aligned = more % 2 == 0;
        let chunk = if aligned { case.chunk.clone() } else { chunks[..shape.len()].to_vec() };
        let other = Case { shape, chunk, ..case.clone() }.filled();
        let writing = Writing::new(Encoding::new(&tested.params));
        let reading = Reading::default();
        let added = StoredArray { schunk: &other.schunk, geometry: &other.geometry, reading: &reading };
        tested.geometry = concat::extend(&mut tested.schunk, &tested.geometry, added, 0, &reading, &writing).unwrap();
        tested.model.shape[0] += more;
        tested.model.items.extend(other.model.items);
        tested.check();
    }

    #[test]
    fn grown_arrays_hold_zeros_and_shrunk_ones_the_rest(case in cases(), target in [0u64..9, 0u64..9, 0u64..9, 0u64..9]) {
        let (mut schunk, geometry, params) = case.empty();
        create::fill_special(&mut schunk, &geometry, special::ZERO, &params).unwrap();
        let n: u64 = case.shape.iter().product();
        let model = Model { shape: case.shape.clone(), typesize: case.typesize, items: vec![vec![0; case.typesize]; n as usize] };
        let mut tested = Tested { schunk, geometry, params, model };
        tested.check();
        let shape = target[..case.shape.len()].to_vec();
        tested.geometry = resize::resize(&mut tested.schunk, &tested.geometry, &signed(&shape), None, &tested.params).unwrap();
        let n: u64 = shape.iter().product();
        tested.model = Model { shape, typesize: case.typesize, items: vec![vec![0; case.typesize]; n as usize] };
        tested.check();
    }

    #[test]
    fn arrays_of_one_value_hold_it_everywhere(case in cases(), picks in prop::collection::vec((0u64..9, 0u64..9), 4), wider in 0u64..3) {
        let (mut schunk, geometry, params) = case.empty();
        let value: Vec<u8> = (1u8..=255).cycle().take(case.typesize).collect();
        create::fill_value(&mut schunk, &geometry, &value, &params).unwrap();
        let n: u64 = case.shape.iter().product();
        let model = Model { shape: case.shape.clone(), typesize: case.typesize, items: vec![value.clone(); n as usize] };
        let tested = Tested { schunk, geometry, params, model };
        tested.check();
        // A box, in a buffer that may have room between its rows.
        let region = region_of(&case.shape, &picks);
        let shape: Vec<u64> = (0..case.shape.len()).map(|i| region.extent(i) + wider).collect();
        let zeros = vec![vec![0; case.typesize]; shape.iter().product::<u64>() as usize];
        let mut expected = Model { shape: shape.clone(), typesize: case.typesize, items: zeros };
        let inside: Vec<Vec<i64>> = (0..shape.len()).map(|i| (0..region.extent(i) as i64).collect()).collect();
        if !region.is_empty() {
            expected.positions(&inside).into_iter().for_each(|at| expected.items[at].clone_from(&value));
        }
        let mut dest = vec![0; expected.bytes().len()];
        slice::read(&tested.schunk, &tested.geometry, &region, &mut dest, &shape, &Reading::default()).unwrap();
        assert!(dest == expected.bytes());
    }

    #[test]
    fn boxes_of_other_arrays_become_arrays(case in cases(), chunk in [1u64..6, 1u64..6, 1u64..6, 1u64..6], start in [0u64..9, 0u64..9, 0u64..9, 0u64..9]) {
        let tested = case.filled();
        let ndim = case.shape.len();
        let start: Vec<u64> = (0..ndim).map(|i| start[i].min(case.shape[i])).collect();
        let shape: Vec<u64> = (0..ndim).map(|i| case.shape[i] - start[i]).collect();
        let target = Case { shape, chunk: chunk[..ndim].to_vec(), framed: !case.framed, ..case.clone() };
        let (mut schunk, geometry, params) = target.empty();
        let writing = Writing::new(Encoding::new(&params));
        let src = StoredArray { schunk: &tested.schunk, geometry: &tested.geometry, reading: &Reading::default() };
        create::fill_from_array(&mut schunk, &geometry, src, &start, &writing).unwrap();
        let region = Region::new(&start, &case.shape);
        let items = if region.is_empty() { vec![] } else {
            tested.model.positions(&lists(&region)).iter().map(|&p| tested.model.items[p].clone()).collect()
        };
        let model = Model { shape: target.shape.clone(), typesize: case.typesize, items };
        Tested { schunk, geometry, params, model }.check();
    }
}

/// Compresses with parameters of its own; counts, and fails when asked to.
struct Counting {
    params: CParams,
    calls: Cell<usize>,
    fails_at: Cell<Option<usize>>,
}

impl ChunkCompressor for Counting {
    fn compress(&self, src: Source<'_>, dest: &mut [u8]) -> Result<usize> {
        let calls = self.calls.replace(self.calls.get() + 1);
        ensure(self.fails_at.get() != Some(calls), ErrorKind::Tuner, "asked to fail")?;
        ensure(matches!(src, Source::Bytes(_)), ErrorKind::Failure, "not in one piece")?;
        Ok(chunk::compress_with(&Encoding::new(&self.params), src, dest)?.cbytes)
    }
}

#[test]
fn a_compressor_is_asked_for_every_chunk_once() {
    for framed in [false, true] {
        let case = Case {
            shape: vec![40, 40],
            chunk: vec![20, 20],
            block: vec![5, 10],
            typesize: 4,
            filters: 1,
            framed,
        };
        let (mut schunk, geometry, params) = case.empty();
        let model = Model::counting(&case.shape, 4, 1);
        let each = Counting {
            params: CParams { compcode: codec::ZSTD.into(), ..params.clone() },
            calls: Cell::new(0),
            fails_at: Cell::new(None),
        };
        let writing = Writing { compressor: Some(&each), ..Writing::new(Encoding::new(&params)) };
        let reading = Reading::default();
        let is_asked = |times: usize| assert_eq!(each.calls.replace(0), times);
        create::fill_from_buffer(&mut schunk, &geometry, &model.bytes(), &writing).unwrap();
        is_asked(4);
        let mut tested = Tested { schunk, geometry, params: params.clone(), model };
        tested.check();
        // One item of a chunk, of which all other blocks would be kept without it; then a box over four chunks.
        for (start, stop, chunks) in [([3, 3], [4, 4], 1), ([10, 10], [30, 30], 4), ([0, 20], [20, 40], 1)] {
            let region = Region::new(&start, &stop);
            let extents = region.extents()[..2].to_vec();
            let values = Model::counting(&extents, 4, 900);
            let (Tested { schunk, geometry, .. }, bytes) = (&mut tested, values.bytes());
            let src = Items { bytes: &bytes, shape: &extents };
            write::write(schunk, geometry, &region, src, &reading, &writing).unwrap();
            is_asked(chunks);
            for (position, value) in tested.model.positions(&lists(&region)).into_iter().zip(&values.items) {
                tested.model.items[position].clone_from(value);
            }
            tested.check();
        }
        // Chunks that fall on chunks are not copied as they are.
        let (mut copy, geometry, _) = case.empty();
        let src = StoredArray { schunk: &tested.schunk, geometry: &tested.geometry, reading: &reading };
        create::fill_from_array(&mut copy, &geometry, src, &[0, 0], &writing).unwrap();
        is_asked(4);
        for nchunk in 0..4 {
            let header = ChunkHeader::read(&copy.chunk(nchunk).unwrap()).unwrap();
            assert_eq!((header.compcode, header.blocksize), (codec::ZSTD, 200));
        }
        let mut copy = Tested { schunk: copy, geometry, params: params.clone(), model: tested.model.clone() };
        copy.check();
        let insertion = resize::Insertion { axis: 0, at: 40 };
        let rows = Model::counting(&[10, 40], 4, 70);
        let Tested { schunk, geometry, .. } = &mut copy;
        let grown = resize::insert(schunk, geometry, &rows.bytes(), insertion, &reading, &writing).unwrap();
        is_asked(2);
        copy.geometry = grown;
        copy.model.shape[0] = 50;
        copy.model.items.extend(rows.items.clone());
        copy.check();
        // Nothing is changed if it fails at the last chunk.
        each.fails_at.set(Some(1));
        let Tested { schunk, geometry, .. } = &mut copy;
        let insertion = resize::Insertion { axis: 0, at: 50 };
        assert!(resize::insert(schunk, geometry, &rows.bytes(), insertion, &reading, &writing).is_err());
        is_asked(2);
        let region = Region::new(&[0, 19], &[1, 21]);
        let src = Items { bytes: &[1; 8], shape: &[1, 2] };
        assert!(write::write(schunk, geometry, &region, src, &reading, &writing).is_err());
        is_asked(2);
        copy.check();
    }
}

fn worked_example() -> Tested {
    let case = Case {
        shape: vec![5, 4],
        chunk: vec![3, 3],
        block: vec![2, 2],
        typesize: 1,
        filters: 0,
        framed: false,
    };
    case.filled()
}

fn chunk_data(schunk: &Schunk, nchunk: usize) -> Vec<u8> {
    let mut data = vec![0; 16];
    schunk.decompress_chunk(nchunk, &mut data, &Reading::default()).unwrap();
    data
}

#[test]
fn blocks_are_laid_out_as_documented() {
    let tested = worked_example();
    assert_eq!(chunk_data(&tested.schunk, 0), [1, 2, 5, 6, 3, 0, 7, 0, 9, 10, 0, 0, 11, 0, 0, 0]);
    assert_eq!(chunk_data(&tested.schunk, 1), [4, 0, 8, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(chunk_data(&tested.schunk, 2), [13, 14, 17, 18, 15, 0, 19, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(chunk_data(&tested.schunk, 3), [16, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn short_and_long_rows_of_one_value_are_filled() {
    for (columns, typesize) in [(1, 1), (100, 8), (128, 8), (129, 8), (300, 16), (20, 255)] {
        let (shape, chunk) = (vec![6, 2 * columns], vec![3, columns]);
        let case =
            Case { shape, block: chunk.clone(), chunk, typesize, filters: filter::SHUFFLE, framed: false };
        let (mut schunk, geometry, params) = case.empty();
        let value: Vec<u8> = (1u8..=255).cycle().take(typesize).collect();
        create::fill_value(&mut schunk, &geometry, &value, &params).unwrap();
        let items = vec![value; geometry.nitems() as usize];
        let model = Model { shape: case.shape.clone(), typesize, items };
        Tested { schunk, geometry, params, model }.check();
    }
}

#[test]
fn chunks_of_one_block_are_read_to_where_they_belong() {
    for (shape, chunk) in [(vec![6], vec![3]), (vec![4, 6], vec![2, 6]), (vec![4, 6], vec![2, 3])] {
        let block = chunk.clone();
        let case = Case { shape, chunk, block, typesize: 4, filters: filter::SHUFFLE, framed: true };
        case.filled().check();
        let (mut schunk, geometry, params) = case.empty();
        create::fill_special(&mut schunk, &geometry, special::UNINIT, &params).unwrap();
        let items = vec![vec![0; 4]; geometry.nitems() as usize];
        let model = Model { shape: case.shape.clone(), typesize: 4, items };
        Tested { schunk, geometry, params, model }.check();
    }
}

#[test]
fn padding_survives_writes_of_a_part_only() {
    let case = Case {
        shape: vec![5, 4],
        chunk: vec![3, 3],
        block: vec![2, 2],
        typesize: 1,
        filters: 0,
        framed: true,
    };
    let (mut schunk, geometry, params) = case.empty();
    create::fill_value(&mut schunk, &geometry, &[7], &params).unwrap();
    let model = Model { shape: case.shape.clone(), typesize: 1, items: vec![vec![7]; 20] };
    let mut tested = Tested { schunk, geometry, params, model };
    tested.check();
    tested.write(&Region::new(&[0, 3], &[3, 4]), &Model::counting(&[3, 1], 1, 1));
    assert_eq!(chunk_data(&tested.schunk, 1), [1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    tested.write(&Region::new(&[0, 0], &[1, 1]), &Model::counting(&[1, 1], 1, 9));
    assert_eq!(chunk_data(&tested.schunk, 0), [9, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
    tested.check();
}

#[test]
fn padding_beside_long_rows_is_zeros() {
    let case = Case {
        shape: vec![2, 128],
        chunk: vec![2, 128],
        block: vec![2, 128],
        typesize: 4,
        filters: filter::SHUFFLE,
        framed: false,
    };
    // Memory that is used again holds these.
    drop(case.filled());
    let padded = Case { shape: vec![2, 100], ..case }.filled();
    let mut data = vec![0xee; 1024];
    padded.schunk.decompress_chunk(0, &mut data, &Reading::default()).unwrap();
    let items = padded.model.bytes();
    for (row, items) in data.chunks_exact(512).zip(items.chunks_exact(400)) {
        assert!(row[..400] == *items && row[400..] == [0; 112]);
    }
}

#[test]
fn what_was_never_written_becomes_zeros_beside_what_is() {
    // Memory that is used again holds these.
    let case = Case {
        shape: vec![6, 6],
        chunk: vec![6, 6],
        block: vec![6, 3],
        typesize: 4,
        filters: 0,
        framed: false,
    };
    drop(case.filled());
    let (mut schunk, geometry, params) = case.empty();
    create::fill_special(&mut schunk, &geometry, special::UNINIT, &params).unwrap();
    let model = Model { shape: case.shape.clone(), typesize: 4, items: vec![vec![0; 4]; 36] };
    let mut tested = Tested { schunk, geometry, params, model };
    tested.write(&Region::new(&[1, 1], &[3, 2]), &Model::counting(&[2, 1], 4, 77));
    tested.check();
}

#[test]
fn a_small_write_leaves_the_other_blocks_bytes() {
    let case = Case {
        shape: vec![64, 64],
        chunk: vec![64, 64],
        block: vec![8, 8],
        typesize: 4,
        filters: filter::SHUFFLE,
        framed: false,
    };
    let mut tested = case.filled();
    let before = tested.schunk.chunk(0).unwrap().to_vec();
    tested.write(&Region::new(&[60, 60], &[61, 61]), &Model::counting(&[1, 1], 4, 77));
    let after = tested.schunk.chunk(0).unwrap().to_vec();
    let start = |chunk: &[u8], block: usize| {
        u32::from_le_bytes(chunk[32 + 4 * block..][..4].try_into().unwrap()) as usize
    };
    let (from, to) = (start(&before, 0), start(&before, 63));
    assert_eq!(before[from..to], after[from..to]);
    assert_ne!(before[to..], after[to..]);
    tested.check();
}

#[test]
fn changes_that_make_no_sense_leave_the_array_alone() {
    let mut tested = worked_example();
    let mut kind = |shape: &[i64], start: Option<&[i64]>| {
        resize::resize(&mut tested.schunk, &tested.geometry, shape, start, &tested.params).unwrap_err().kind()
    };
    let invalid = ErrorKind::InvalidParam;
    assert_eq!(kind(&[-1, 4], None), invalid);
    assert_eq!(kind(&[i64::MAX, i64::MAX], None), invalid);
    assert_eq!(kind(&[8, 4], Some(&[1, 0])), invalid);
    assert_eq!(kind(&[7, 4], Some(&[0, 0])), invalid);
    assert_eq!(kind(&[8, 4], Some(&[6, 0])), invalid);
    assert_eq!(kind(&[8, 4], Some(&[-3, 0])), invalid);
    assert_eq!(kind(&[2, 4], Some(&[3, 0])), invalid);
    tested.check();
}

#[test]
fn a_read_that_fails_leaves_nothing_of_what_was_in_the_buffer() {
    let mut tested = worked_example();
    tested.schunk.delete_chunk(tested.schunk.nchunks() - 1).unwrap();
    let (geometry, reading) = (&tested.geometry, Reading::default());
    let mut dest = vec![0xee; tested.model.bytes().len()];
    let all = Region::all(geometry);
    let read = slice::read(&tested.schunk, geometry, &all, &mut dest, geometry.shape(), &reading);
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Failure);
    assert!(dest.iter().all(|&byte| byte == 0));
}

#[test]
fn nothing_is_made_of_another_size_than_the_chunks_that_are_there() {
    let mut tested = worked_example();
    let other = Geometry::new(&[5, 4], &[5, 4], &[2, 2]).unwrap();
    let (reading, writing) = (Reading::default(), Writing::new(Encoding::new(&tested.params)));
    let region = Region::new(&[0, 0], &[1, 1]);
    let src = Items { bytes: &[1], shape: &[1, 1] };
    let written = write::write(&mut tested.schunk, &other, &region, src, &reading, &writing);
    assert_eq!(written.unwrap_err().what(), "the array has chunks of another size");
    tested.check();
    // One chunk of the size of all: the number of chunks fits.
    let params = CParams { typesize: 4, ..tested.params.clone() };
    let mut schunk = Schunk::in_memory(FrameParams { typesize: 4, ..FrameParams::default() });
    let writing = Writing::new(Encoding::new(&params));
    let meta =
        NdMeta { shape: vec![4], chunkshape: vec![4], blockshape: vec![2], dtype: None, dtype_format: 0 };
    schunk.meta_add(nd_meta::NAME, &meta.write().unwrap()).unwrap();
    schunk.append_buffer(Source::Bytes(&[5; 64]), &writing).unwrap();
    let small = Geometry::new(&[4], &[4], &[2]).unwrap();
    let resized = resize::resize(&mut schunk, &small, &[8], None, &params);
    assert_eq!(resized.unwrap_err().what(), "the array has chunks of another size");
    assert_eq!((schunk.nchunks(), schunk.chunksize()), (1, 64));
}

#[test]
fn threads_read_one_array_at_the_same_time() {
    let case = Case {
        shape: vec![30, 40],
        chunk: vec![7, 9],
        block: vec![3, 4],
        typesize: 8,
        filters: filter::SHUFFLE,
        framed: true,
    };
    let tested = case.filled();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| tested.check()));
        }
    });
}

#[test]
fn buffers_have_a_place_for_each_selected_item() {
    let mut tested = worked_example();
    let selection = Selection::new(&tested.geometry, &[&[0, 1, 2, 3], &[0, 1, 2, 3]]).unwrap();
    let reading = Reading::default();
    let writing = Writing::new(Encoding::new(&tested.params));
    // With the first of these shapes, two items would have the same place, to which different threads might write at
    // once.
    for shape in [&[4, 2][..], &[4], &[0, 0], &[16], &[3, 4], &[4, 4, 1]] {
        let mut buffer = [7; 64];
        let read = select::read(&tested.schunk, &tested.geometry, &selection, &mut buffer, shape, &reading);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidParam, "{shape:?}");
        assert_eq!(buffer, [7; 64]);
        let written = select::write(
            &mut tested.schunk,
            &tested.geometry,
            &selection,
            &buffer,
            shape,
            &reading,
            &writing,
        );
        assert_eq!(written.unwrap_err().kind(), ErrorKind::InvalidParam, "{shape:?}");
    }
    // So might be where the array has not as many dimensions as the selection.
    let flat = Geometry::new(&[4096], &[16], &[4]).unwrap();
    let read = select::read(&tested.schunk, &flat, &selection, &mut [7; 64], &[4, 4], &reading);
    assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidParam);
    let written = select::write(&mut tested.schunk, &flat, &selection, &[7; 64], &[4, 4], &reading, &writing);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::InvalidParam);
    tested.check();
}

#[test]
fn arrays_without_dimensions_have_no_selections() {
    let geometry = Geometry::new(&[], &[], &[]).unwrap();
    assert_eq!(Selection::new(&geometry, &[]).err().map(|e| e.kind()), Some(ErrorKind::InvalidParam));
}

#[test]
fn a_buffer_of_a_shape_that_no_memory_holds_is_too_short() {
    let params = CParams { typesize: 1, ..CParams::default() };
    let meta = NdMeta {
        shape: vec![2, 2, 6],
        chunkshape: vec![2, 2, 6],
        blockshape: vec![2, 2, 6],
        dtype: None,
        dtype_format: 0,
    };
    let geometry = Geometry::from_meta(&meta).unwrap();
    let mut schunk = Schunk::in_memory(FrameParams { typesize: 1, ..FrameParams::default() });
    create::prepare(&mut schunk, &geometry, &meta, &[]).unwrap();
    create::fill_special(&mut schunk, &geometry, special::ZERO, &params).unwrap();
    let (region, writing) = (Region::new(&[0; 3], &[2, 1, 6]), Writing::new(Encoding::new(&params)));
    let mut write = |shape: [u64; 3]| {
        let src = Items { bytes: &[7; 100], shape: &shape };
        write::write(&mut schunk, &geometry, &region, src, &Reading::default(), &writing)
    };
    assert_eq!(write([1, 1 << 62, 8]).unwrap_err().kind(), ErrorKind::InvalidParam);
    assert_eq!(write([2, 1, 8]), Ok(()));
}
