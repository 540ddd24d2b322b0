//! Arrays through the Rust interface, against all items in one vector.

#[path = "common/temp.rs"]
mod temp;

use blosc2::chunk::CParams;
use blosc2::format::consts::{codec, filter};
use blosc2::frame::{Frame, FrameOptions};
use blosc2::io::memory::MallocBuf;
use blosc2::ndarray::{Geometry, NdArray, Place};
use blosc2::schunk::Schunk;
use blosc2::{Error, ErrorKind};
use temp::TempPath;

/// Rows of items of two bytes, all in C order.
struct Model {
    shape: [usize; 2],
    items: Vec<u16>,
}

impl Model {
    fn zeros(shape: [usize; 2]) -> Model {
        Model { shape, items: vec![0; shape[0] * shape[1]] }
    }

    fn item(&mut self, row: usize, column: usize) -> &mut u16 {
        &mut self.items[row * self.shape[1] + column]
    }

    fn get(&mut self, start: [usize; 2], stop: [usize; 2]) -> Vec<u16> {
        let mut items = Vec::new();
        for row in start[0]..stop[0] {
            for column in start[1]..stop[1] {
                items.push(*self.item(row, column));
            }
        }
        items
    }

    fn set(&mut self, start: [usize; 2], stop: [usize; 2], items: &[u16]) {
        let mut items = items.iter();
        for row in start[0]..stop[0] {
            for column in start[1]..stop[1] {
                *self.item(row, column) = *items.next().unwrap();
            }
        }
    }

    fn resized(&mut self, shape: [usize; 2]) -> Model {
        let mut other = Model::zeros(shape);
        let common = [shape[0].min(self.shape[0]), shape[1].min(self.shape[1])];
        other.set([0, 0], common, &self.get([0, 0], common));
        other
    }
}

fn wide(place: [usize; 2]) -> [u64; 2] {
    place.map(|n| n as u64)
}

fn bytes(items: &[u16]) -> Vec<u8> {
    items.iter().flat_map(|item| item.to_le_bytes()).collect()
}

fn params() -> CParams {
    CParams { typesize: 2, ..CParams::default() }
}

fn geometry() -> Geometry {
    Geometry::new(&[50, 70], &[20, 30], &[8, 10]).unwrap()
}

/// The items of a box of `array`.
fn read(array: &NdArray, start: [usize; 2], stop: [usize; 2]) -> Vec<u8> {
    let mut items = vec![0xee; 2 * (stop[0] - start[0]) * (stop[1] - start[1])];
    array.get_slice(&wide(start), &wide(stop), &mut items).unwrap();
    items
}

fn check(array: &NdArray, model: &mut Model) {
    assert_eq!(array.shape(), wide(model.shape));
    assert!(read(array, [0, 0], model.shape) == bytes(&model.items));
}

/// Numbers below `n`, the same in each run.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 1_u64;
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    }
}

#[test]
fn boxes_that_were_set_are_read_back_wherever_the_array_is() {
    let (file, dir) = (TempPath::new("boxes.b2nd"), TempPath::new("boxes"));
    for place in [Place::Memory, Place::File(&file.0), Place::Directory(&dir.0)] {
        let mut array = NdArray::zeros(place, geometry(), "<u2", &params()).unwrap();
        let mut model = Model::zeros([50, 70]);
        let mut below = numbers();
        for round in 0..60 {
            array.set_nthreads(round % 4);
            let start = [below(50), below(70)];
            let stop = [start[0] + below(51 - start[0]), start[1] + below(71 - start[1])];
            let len = (stop[0] - start[0]) * (stop[1] - start[1]);
            let items: Vec<u16> = (0..len).map(|_| below(1000) as u16).collect();
            array.set_slice(&wide(start), &wide(stop), &bytes(&items)).unwrap();
            model.set(start, stop, &items);
            let from = [below(50), below(70)];
            assert!(read(&array, from, [50, 70]) == bytes(&model.get(from, [50, 70])));
        }
        check(&array, &mut model);
    }
}

#[test]
fn arrays_grow_and_shrink() {
    let mut array = NdArray::zeros(Place::Memory, geometry(), "<u2", &params()).unwrap();
    let mut model = Model::zeros([50, 70]);
    for (axis, shape) in [(0, [53, 70]), (1, [53, 101]), (0, [90, 101]), (1, [90, 102])] {
        let before = model.shape;
        model = model.resized(shape);
        let mut start = [0, 0];
        start[axis] = before[axis];
        let len = (shape[0] - start[0]) * (shape[1] - start[1]);
        let items: Vec<u16> = (0..len).map(|n| n as u16 ^ 0x5a5a).collect();
        array.append(axis, &bytes(&items)).unwrap();
        model.set(start, shape, &items);
        check(&array, &mut model);
    }
    // What comes at the borders of chunks is in chunks of its own.
    for shape in [[60, 80], [60, 60], [61, 75], [60, 30], [33, 7], [0, 75], [7, 75]] {
        array.resize(&wide(shape)).unwrap();
        model = model.resized(shape);
        check(&array, &mut model);
    }
}

#[test]
fn rows_are_inserted_and_deleted_by_whole_chunks() {
    let items: Vec<u16> = (0..50 * 70).collect();
    let mut array = NdArray::from_items(Place::Memory, geometry(), "<u2", &params(), &bytes(&items)).unwrap();
    let new: Vec<u16> = (0..20 * 70).map(|n| n ^ 0x7fff).collect();
    array.insert(0, 20, &bytes(&new)).unwrap();
    let expected = [&items[..20 * 70], &new, &items[20 * 70..]].concat();
    assert_eq!(array.shape(), [70, 70]);
    assert!(array.to_vec().unwrap() == bytes(&expected));
    array.delete(0, 0, 40).unwrap();
    assert_eq!(array.shape(), [30, 70]);
    assert!(array.to_vec().unwrap() == bytes(&items[20 * 70..]));
    let kind = |outcome: Result<(), Error>| outcome.unwrap_err().kind();
    for (axis, at) in [(0, 7), (0, 31), (0, u64::MAX), (2, 0)] {
        assert_eq!(kind(array.insert(axis, at, &bytes(&new))), ErrorKind::InvalidParam);
        assert_eq!(kind(array.delete(axis, at, 20)), ErrorKind::InvalidParam);
    }
    assert_eq!(kind(array.delete(0, 0, 31)), ErrorKind::InvalidParam);
    assert!(array.to_vec().unwrap() == bytes(&items[20 * 70..]));
}

#[test]
fn selections_are_read_in_the_order_of_their_lists() {
    let items: Vec<u16> = (0..50 * 70).collect();
    let array = NdArray::from_items(Place::Memory, geometry(), "<u2", &params(), &bytes(&items)).unwrap();
    let mut selected = [0; 2 * 2 * 3];
    array.get_selection(&[&[49, 0], &[69, 3, 3]], &mut selected).unwrap();
    assert_eq!(selected[..], bytes(&[3499, 3433, 3433, 69, 3, 3]));
    array.get_selection(&[&[], &[1]], &mut []).unwrap();
    let kind = |lists: &[&[i64]], dest: &mut [u8]| array.get_selection(lists, dest).unwrap_err().kind();
    assert_eq!(kind(&[&[0], &[70]], &mut [0; 2]), ErrorKind::InvalidIndex);
    assert_eq!(kind(&[&[0], &[1]], &mut [0; 3]), ErrorKind::InvalidParam);
    assert_eq!(kind(&[&[0]], &mut [0; 140]), ErrorKind::InvalidParam);
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    let path = TempPath::new("again.b2nd");
    let items: Vec<u8> = (0..50 * 70).flat_map(|n: u16| (n / 3).to_le_bytes()).collect();
    let params = CParams { compcode: codec::ZSTD.into(), clevel: 3, filters: [0, 0, 0, 0, 0, 2], ..params() };
    drop(NdArray::from_items(Place::File(&path.0), geometry(), "<u2", &params, &items).unwrap());
    let mut array = NdArray::open(&path.0).unwrap();
    assert_eq!((array.geometry(), array.typesize()), (&geometry(), 2));
    assert_eq!(array.dtype(), Some(b"<u2".as_slice()));
    let blocksize = 8 * 10 * 2;
    assert_eq!(CParams::from(&array.schunk().params()), CParams { blocksize, ..params });
    assert!(read(&array, [0, 0], [50, 70]) == items);
    array.set_slice(&[3, 4], &[4, 5], &[1, 2]).unwrap();

    let bytes = Schunk::open(&path.0, 0, &FrameOptions::default()).unwrap();
    let array = NdArray::from_schunk(bytes).unwrap();
    assert_eq!(read(&array, [3, 4], [4, 5]), [1, 2]);
    assert!(read(&array, [4, 0], [50, 70]) == items[4 * 70 * 2..]);
}

#[test]
fn the_super_chunk_of_an_array_can_be_changed_and_taken() {
    let items: Vec<u8> = (0..50 * 70).flat_map(u16::to_le_bytes).collect();
    let mut array = NdArray::from_items(Place::Memory, geometry(), "<u2", &params(), &items).unwrap();
    let right = array.schunk().chunk(1).unwrap().into_owned();
    array.schunk_mut().update_chunk(0, &right).unwrap();
    array.schunk_mut().vlmeta_add(b"note", b"twice the same", None).unwrap();
    assert!(read(&array, [0, 0], [20, 30]) == read(&array, [0, 30], [20, 60]));

    let schunk = array.into_schunk();
    assert_eq!(schunk.vlmeta_get(b"note").unwrap().1, b"twice the same");
    let array = NdArray::from_schunk(schunk).unwrap();
    assert!(read(&array, [20, 0], [50, 70]) == items[20 * 70 * 2..]);
}

#[test]
fn changes_of_other_handles_are_seen() {
    for locking in [false, true] {
        let path = TempPath::new("handles.b2nd");
        let mut writer = NdArray::zeros(Place::File(&path.0), geometry(), "<u2", &params()).unwrap();
        let options = FrameOptions { locking, ..FrameOptions::default() };
        let mut reader = NdArray::from_schunk(Schunk::open(&path.0, 0, &options).unwrap()).unwrap();
        writer.append(0, &[7; 2 * 70]).unwrap();
        assert_eq!(reader.shape(), [50, 70]);
        assert_eq!(read(&reader, [50, 68], [51, 70]), [7; 4]);
        assert!(reader.refresh().unwrap());
        assert!(!reader.refresh().unwrap());
        assert_eq!(reader.shape(), [51, 70]);
        writer.resize(&[52, 70]).unwrap();
        // What changes the array starts from what is there.
        reader.append(0, &[9; 2 * 70]).unwrap();
        assert_eq!(reader.shape(), [53, 70]);
        assert_eq!(read(&writer, [50, 0], [53, 1]), [7, 7, 0, 0, 9, 9]);
    }
}

#[test]
fn codecs_and_filters_for_arrays_know_the_shape_of_blocks() {
    let geometry = Geometry::new(&[40, 40], &[20, 20], &[10, 10]).unwrap();
    let items: Vec<u8> = (0..40 * 40).map(|n| (n / 40 / 5 * 8 + n % 40 / 5) as u8).collect();
    let ndlz = CParams {
        compcode: codec::NDLZ.into(),
        compcode_meta: 4,
        filters: [0; 6],
        typesize: 1,
        ..CParams::default()
    };
    let mut filters_meta = [0; 6];
    filters_meta[5] = 4;
    let ndcell = CParams {
        filters: [0, 0, 0, 0, 0, filter::NDCELL],
        filters_meta,
        typesize: 1,
        compcode: codec::LZ4.into(),
        ..CParams::default()
    };
    for params in [ndlz, ndcell] {
        let mut array = NdArray::from_items(Place::Memory, geometry.clone(), "|u1", &params, &items).unwrap();
        array.set_slice(&[13, 0], &[14, 40], &[99; 40]).unwrap();
        let mut row = [0; 40];
        array.get_slice(&[12, 0], &[13, 40], &mut row).unwrap();
        assert_eq!(row[..], items[12 * 40..13 * 40]);
        array.get_slice(&[13, 0], &[14, 40], &mut row).unwrap();
        assert_eq!(row, [99; 40]);
    }
}

#[test]
fn arrays_may_have_no_dimensions_or_no_items() {
    let one = Geometry::new(&[], &[], &[]).unwrap();
    let mut array = NdArray::zeros(Place::Memory, one, "<u2", &params()).unwrap();
    array.set_slice(&[], &[], &[3, 4]).unwrap();
    let mut item = [0; 2];
    array.get_slice(&[], &[], &mut item).unwrap();
    assert_eq!(item, [3, 4]);

    let none = Geometry::new(&[0, 5], &[2, 2], &[1, 1]).unwrap();
    let mut array = NdArray::from_items(Place::Memory, none, "<u2", &params(), &[]).unwrap();
    array.get_slice(&[0, 0], &[0, 5], &mut []).unwrap();
    array.set_slice(&[0, 1], &[0, 3], &[]).unwrap();
    array.append(0, &[1; 2 * 5]).unwrap();
    assert_eq!(array.shape(), [1, 5]);
}

fn kind<T>(outcome: Result<T, Error>) -> ErrorKind {
    outcome.map(drop).unwrap_err().kind()
}

#[test]
fn wrong_boxes_and_buffers_are_refused() {
    let mut array = NdArray::zeros(Place::Memory, geometry(), "<u2", &params()).unwrap();
    let mut dest = [0; 8];
    let wrong: [(&[u64], &[u64]); 5] = [
        (&[0], &[1]),
        (&[0, 0, 0], &[1, 1, 1]),
        (&[0, 0], &[1, 71]),
        (&[2, 2], &[1, 3]),
        (&[0, 0], &[2, u64::MAX]),
    ];
    for (start, stop) in wrong {
        assert_eq!(kind(array.get_slice(start, stop, &mut dest)), ErrorKind::InvalidParam);
        assert_eq!(kind(array.set_slice(start, stop, &dest)), ErrorKind::InvalidParam);
    }
    for len in [0, 7, 9] {
        let mut dest = vec![0; len];
        assert_eq!(kind(array.get_slice(&[0, 0], &[2, 2], &mut dest)), ErrorKind::InvalidParam);
        assert_eq!(kind(array.set_slice(&[0, 0], &[2, 2], &dest)), ErrorKind::InvalidParam);
        assert_eq!(kind(array.append(0, &vec![0; 140 + len].as_slice()[1..])), ErrorKind::InvalidParam);
    }
    assert_eq!(kind(array.append(2, &[])), ErrorKind::InvalidParam);
    assert_eq!(kind(array.resize(&[50])), ErrorKind::InvalidParam);
    assert_eq!(kind(array.resize(&[50, u64::MAX])), ErrorKind::InvalidParam);
    check(&array, &mut Model::zeros([50, 70]));
}

#[test]
fn arrays_that_cannot_be_made_leave_nothing() {
    let path = TempPath::new("none.b2nd");
    for place in [Place::Memory, Place::File(&path.0), Place::Directory(&path.0)] {
        let wrong = [
            (CParams { clevel: 10, ..params() }, ErrorKind::CodecParam),
            (CParams { typesize: 0, ..params() }, ErrorKind::InvalidParam),
            (CParams { splitmode: 5, ..params() }, ErrorKind::InvalidParam),
            (CParams { compcode: 256, ..params() }, ErrorKind::InvalidParam),
            (CParams { compcode: 200, ..params() }, ErrorKind::Failure),
        ];
        for (params, code) in wrong {
            let items = vec![1; 50 * 70 * params.typesize];
            let array = NdArray::from_items(place, geometry(), "<u2", &params, &items);
            assert_eq!(kind(array), code, "{params:?}");
            assert!(!path.0.exists());
        }
        assert_eq!(
            kind(NdArray::from_items(place, geometry(), "<u2", &params(), &[1])),
            ErrorKind::InvalidParam
        );
        assert!(!path.0.exists());
    }
    // What was there before stays.
    std::fs::write(&path.0, b"something else").unwrap();
    for place in [Place::File(&path.0), Place::Directory(&path.0)] {
        assert_eq!(kind(NdArray::zeros(place, geometry(), "<u2", &params())), ErrorKind::FileOpen);
        assert_eq!(std::fs::read(&path.0).unwrap(), b"something else");
    }
    let plain = Schunk::over(Frame::create_in_memory(params().to_frame().unwrap()).unwrap());
    assert_eq!(kind(NdArray::from_schunk(plain)), ErrorKind::MetalayerNotFound);
}

/// Uses the array in the frame `bytes` in every way, as far as that fails or takes little memory.
fn use_damaged(bytes: &[u8]) -> Result<(), Error> {
    let mut array = NdArray::from_schunk(Schunk::from_buffer(MallocBuf::copy_of(bytes)?)?)?;
    let (shape, typesize) = (array.shape().to_vec(), array.typesize());
    let len = usize::try_from(array.geometry().nitems()).ok().and_then(|n| n.checked_mul(typesize));
    let Some(len @ ..0x10_0000) = len else { return Ok(()) };
    let (Ok(..0x10_0000) | Err(_)) = array.geometry().chunk_nbytes(typesize) else { return Ok(()) };
    let zeros = vec![0; shape.len()];
    let mut items = vec![0; len];
    let read = array.get_slice(&zeros, &shape, &mut items);
    let written = array.set_slice(&zeros, &shape, &items);
    let row = items.len() / usize::try_from(shape.first().map_or(1, |&n| n.max(1))).unwrap();
    let appended = array.append(0, &items[..row]);
    let resized = array.resize(&zeros);
    read.and(written).and(appended).and(resized)
}

#[test]
fn damaged_arrays_are_used_without_harm() {
    let geometry = Geometry::new(&[9, 7], &[4, 5], &[2, 3]).unwrap();
    let items: Vec<u8> = (0..2 * 9 * 7).collect();
    let array = NdArray::from_items(Place::Memory, geometry, "<u2", &params(), &items).unwrap();
    let whole = array.schunk().frame().unwrap().buffer().unwrap();
    use_damaged(whole).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        for byte in [0, 0xff, whole[at] ^ 1, whole[at] ^ 0x80, whole[at].wrapping_add(1)] {
            let mut bytes = whole.to_vec();
            bytes[at] = byte;
            refused += usize::from(use_damaged(&bytes).is_err());
        }
        assert!(use_damaged(&whole[..at]).is_err());
    }
    assert!(refused > whole.len());
}
