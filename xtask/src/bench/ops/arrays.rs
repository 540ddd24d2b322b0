//! An n-d array of `f64`: made, read and written in whole and in parts, reshaped; in memory and in a file.
//!
//! Several small requests of one kind make up one timed call. Whatever is read or written is compared with a plain
//! array in memory before it is timed.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{Family, both, cparams, time};
use crate::bench::clib::Clib;
use crate::bench::data::{Kind, Rng};
use crate::bench::measure::{Subject, interleaved};
use crate::bench::nd::{Array, Context, Layout, Nd};
use crate::bench::options::{CODECS, FILTERS, Key, Options};
use crate::bench::report::{Record, Versus};
use crate::bench::{Bench, Libs};

/// Bytes of an item.
const ITEM: usize = 8;
/// Items of the array beyond the first dimension.
const INNER: [i64; 2] = [1000, 250];
const CHUNKSHAPE: [i32; 3] = [64, 250, 250];
const BLOCKSHAPE: [i32; 3] = [8, 64, 125];
/// Rows that are appended.
const APPENDED: i64 = 8;

/// An operation: its name for an array in memory, for one in a file, and what it does.
struct Op {
    memory: &'static str,
    disk: &'static str,
    work: Work,
}

enum Work {
    /// Makes the array from a buffer.
    Create,
    /// Reads what the request names.
    Read(fn(&mut Rng, &Shape) -> Request),
    /// Overwrites what the request names.
    Write(fn(&mut Rng, &Shape) -> Request),
    /// Grows the array by a row of chunks, and takes it away.
    Resize,
    /// Appends a few rows, and takes them away.
    Append,
    /// Joins the array with itself.
    Concatenate,
}

const OPS: [Op; 16] = [
    Op { memory: "nd_from", disk: "disk_from", work: Work::Create },
    Op { memory: "nd_to", disk: "disk_to", work: Work::Read(|_, shape| Request::Boxes(vec![shape.all()])) },
    Op { memory: "nd_plane0", disk: "disk_plane0", work: Work::Read(|rng, shape| planes(rng, shape, 0)) },
    Op { memory: "nd_plane1", disk: "disk_plane1", work: Work::Read(|rng, shape| planes(rng, shape, 1)) },
    Op { memory: "nd_plane2", disk: "disk_plane2", work: Work::Read(|rng, shape| planes(rng, shape, 2)) },
    Op { memory: "nd_box", disk: "disk_box", work: Work::Read(|rng, shape| boxes(rng, shape, [20, 60, 60])) },
    Op { memory: "nd_row", disk: "disk_row", work: Work::Read(|rng, shape| boxes(rng, shape, [1, 1, 250])) },
    Op {
        memory: "nd_column",
        disk: "disk_column",
        work: Work::Read(|rng, shape| boxes(rng, shape, [1, 250, 1])),
    },
    Op {
        memory: "nd_point",
        disk: "disk_point",
        work: Work::Read(|rng, shape| boxes(rng, shape, [1, 1, 1])),
    },
    Op { memory: "nd_ortho", disk: "disk_ortho", work: Work::Read(selection) },
    Op { memory: "nd_sparse", disk: "disk_sparse", work: Work::Read(items) },
    Op {
        memory: "nd_set_box",
        disk: "disk_set_box",
        work: Work::Write(|rng, shape| boxes(rng, shape, [4, 10, 10])),
    },
    Op { memory: "nd_set_ortho", disk: "disk_set_ortho", work: Work::Write(selection) },
    Op { memory: "nd_resize", disk: "disk_resize", work: Work::Resize },
    Op { memory: "nd_append", disk: "disk_append", work: Work::Append },
    Op { memory: "nd_concat", disk: "disk_concat", work: Work::Concatenate },
];

/// One item of a chunk with 10 and with 100 000 blocks.
const ITEM_OF_FEW: &str = "nd_item_few";
const ITEM_OF_MANY: &str = "nd_item_many";
/// The one time over the other, of ours.
const ITEM_SCALE: &str = "nd_item_scale";

/// What a second thread gains for an array in memory: names of ours, and of [`OPS`].
const SCALES: [(&str, &str); 8] = [
    ("2t_nd_from", "nd_from"),
    ("2t_nd_to", "nd_to"),
    ("2t_nd_plane0", "nd_plane0"),
    ("2t_nd_plane1", "nd_plane1"),
    ("2t_nd_plane2", "nd_plane2"),
    ("2t_nd_box", "nd_box"),
    ("2t_nd_ortho", "nd_ortho"),
    ("2t_nd_sparse", "nd_sparse"),
];

/// The names in [`OPS`] and above.
const NAMES: [&str; 2 * OPS.len() + 3 + SCALES.len()] = {
    let mut names = [ITEM_OF_FEW; 2 * OPS.len() + 3 + SCALES.len()];
    let mut i = 0;
    while i < OPS.len() {
        names[i] = OPS[i].memory;
        names[OPS.len() + i] = OPS[i].disk;
        i += 1;
    }
    names[2 * OPS.len() + 1] = ITEM_OF_MANY;
    names[2 * OPS.len() + 2] = ITEM_SCALE;
    i = 0;
    while i < SCALES.len() {
        names[2 * OPS.len() + 3 + i] = SCALES[i].0;
        i += 1;
    }
    names
};

/// See the module.
pub const FAMILY: Family = Family {
    name: "arrays",
    about: "an array of 256x1000x250 f64 (64x1000x250 if quick), chunks 64x250x250, blocks 8x64x125; \
            2t_: ours with two threads against ours with one",
    ops: &NAMES,
    cells,
    measure,
};

fn cells(options: &Options) -> Vec<Key> {
    let rows = if options.quick { 64 } else { 256 };
    let nbytes = rows * 250_000 * ITEM;
    let key = |data, threads| Key { codec: CODECS[1], clevel: 5, filter: FILTERS[1], data, threads, nbytes };
    if options.quick {
        return vec![key(Kind::Smooth, 1)];
    }
    vec![key(Kind::Smooth, 1), key(Kind::Timestamps, 1), key(Kind::Smooth, 2)]
}

fn measure(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let dir = Dir::new()?;
    for disk in [false, true] {
        let name = |op: &Op| if disk { op.disk } else { op.memory };
        if OPS.iter().any(|op| bench.options.wants_op(name(op))) {
            let cell = Cell::new(libs, bench, key, disk.then_some(&dir))?;
            for op in &OPS {
                if bench.options.wants_op(name(op)) {
                    cell.measure(libs, bench, name(op), &op.work)
                        .map_err(|e| format!("{}: {e}", name(op)))?;
                }
            }
        }
    }
    if [ITEM_OF_FEW, ITEM_OF_MANY, ITEM_SCALE].iter().any(|op| bench.options.wants_op(op)) {
        single_items(libs, bench, key)?;
    }
    if key.threads == 2 && SCALES.iter().any(|(name, _)| bench.options.wants_op(name)) {
        scale(libs, bench, key)?;
    }
    Ok(())
}

/// Ours with two threads and with one.
fn scale(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    let alone = Key { threads: 1, ..*key };
    let (double, single) = (Cell::new(libs, bench, key, None)?, Cell::new(libs, bench, &alone, None)?);
    let budget = bench.options.budget(200);
    for (name, of) in SCALES {
        let op = OPS.iter().find(|op| op.memory == of).expect("a name of the table");
        let mut rng = Rng::new(7);
        let (bytes, timing) = match &op.work {
            _ if !bench.options.wants_op(name) => continue,
            Work::Read(request) => {
                let request = request(&mut rng, &double.shape);
                let timing = interleaved(budget, &|| double.reader(&libs.ours, &request), &|| {
                    single.reader(&libs.ours, &request)
                })?;
                (request.nbytes(), timing)
            }
            Work::Create => {
                let make = |cell| -> Result<Subject<'_>, String> { Cell::creator(cell, libs, &libs.ours) };
                (double.shape.nbytes(), interleaved(budget, &|| make(&double), &|| make(&single))?)
            }
            _ => return Err("neither read nor made".into()),
        };
        let versus = Versus::OneThread;
        bench.record(Record { op: name, key: *key, bytes, timing, versus, cbytes: None });
    }
    Ok(())
}

/// A directory of files, removed when dropped.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("bench-arrays-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    /// A path at which there is no file.
    fn fresh(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        // Most often there is none.
        let _ = std::fs::remove_file(&path);
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // Left over files in the directory for temporary ones do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Index = [i64; 3];

/// The shape of an array.
#[derive(Clone, Copy)]
struct Shape(Index);

impl Shape {
    /// The box of all items.
    fn all(&self) -> (Index, Index) {
        ([0; 3], self.0)
    }

    /// Number of an item in C order.
    fn item(&self, [i, j, k]: Index) -> usize {
        usize::try_from((i * self.0[1] + j) * self.0[2] + k).expect("inside of the array")
    }

    fn nbytes(&self) -> usize {
        product(self.0) * ITEM
    }
}

fn product(extents: Index) -> usize {
    usize::try_from(extents.iter().product::<i64>()).expect("positive extents")
}

/// What is read or written by one timed call.
enum Request {
    Boxes(Vec<(Index, Index)>),
    /// The outer product of three lists of indices.
    Selection(Vec<Vec<i64>>),
    Items(Vec<i64>),
}

/// A random number in `0..n`.
fn below(rng: &mut Rng, n: i64) -> i64 {
    let n = u64::try_from(n).expect("positive");
    i64::try_from(rng.below(n)).expect("below an i64")
}

/// Four planes across `axis`.
fn planes(rng: &mut Rng, shape: &Shape, axis: usize) -> Request {
    let plane = |at| {
        let (mut start, mut stop) = shape.all();
        (start[axis], stop[axis]) = (at, at + 1);
        (start, stop)
    };
    Request::Boxes((0..4).map(|_| plane(below(rng, shape.0[axis]))).collect())
}

/// Four boxes anywhere.
fn boxes(rng: &mut Rng, shape: &Shape, extents: Index) -> Request {
    let mut one = || {
        let start = [0, 1, 2].map(|i| below(rng, shape.0[i] - extents[i] + 1));
        (start, [0, 1, 2].map(|i| start[i] + extents[i]))
    };
    Request::Boxes((0..4).map(|_| one()).collect())
}

/// Ten indices of each dimension.
fn selection(rng: &mut Rng, shape: &Shape) -> Request {
    Request::Selection(shape.0.iter().map(|&extent| (0..10).map(|_| below(rng, extent)).collect()).collect())
}

/// A thousand items.
fn items(rng: &mut Rng, shape: &Shape) -> Request {
    let nitems = i64::try_from(product(shape.0)).expect("fits");
    Request::Items((0..1000).map(|_| below(rng, nitems)).collect())
}

impl Request {
    fn nbytes(&self) -> usize {
        ITEM * match self {
            Request::Boxes(boxes) => {
                boxes.iter().map(|(start, stop)| product([0, 1, 2].map(|i| stop[i] - start[i]))).sum()
            }
            Request::Selection(lists) => lists.iter().map(Vec::len).product(),
            Request::Items(items) => items.len(),
        }
    }

    /// Calls `visit` with the number of each item, in the order of the buffer on the other side.
    fn for_each_item(&self, shape: &Shape, visit: &mut dyn FnMut(usize)) {
        match self {
            Request::Boxes(boxes) => {
                for (start, stop) in boxes {
                    for i in start[0]..stop[0] {
                        for j in start[1]..stop[1] {
                            (start[2]..stop[2]).for_each(|k| visit(shape.item([i, j, k])));
                        }
                    }
                }
            }
            Request::Selection(lists) => {
                for &i in &lists[0] {
                    for &j in &lists[1] {
                        lists[2].iter().for_each(|&k| visit(shape.item([i, j, k])));
                    }
                }
            }
            Request::Items(items) => {
                items.iter().for_each(|&item| visit(usize::try_from(item).expect("positive")));
            }
        }
    }

    /// What reading `data` must yield.
    fn expected(&self, shape: &Shape, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.nbytes());
        self.for_each_item(shape, &mut |item| out.extend_from_slice(&data[item * ITEM..][..ITEM]));
        out
    }

    /// Cuts a buffer into the parts of each box.
    fn read(&self, array: &Array<'_>, dest: &mut [u8]) -> Result<(), String> {
        match self {
            Request::Boxes(boxes) => {
                let mut rest = dest;
                for (start, stop) in boxes {
                    let nbytes = ITEM * product([0, 1, 2].map(|i| stop[i] - start[i]));
                    let (part, behind) = rest.split_at_mut(nbytes);
                    array.get_slice(start, stop, part)?;
                    rest = behind;
                }
                Ok(())
            }
            Request::Selection(lists) => array.get_selection(lists, dest),
            Request::Items(items) => array.get_sparse(items, dest),
        }
    }

    fn write(&self, array: &Array<'_>, src: &[u8]) -> Result<(), String> {
        match self {
            Request::Boxes(boxes) => {
                let mut rest = src;
                for (start, stop) in boxes {
                    let nbytes = ITEM * product([0, 1, 2].map(|i| stop[i] - start[i]));
                    let (part, behind) = rest.split_at(nbytes);
                    array.set_slice(start, stop, part)?;
                    rest = behind;
                }
                Ok(())
            }
            Request::Selection(lists) => array.set_selection(lists, src),
            Request::Items(_) => Err("items are not written one by one".into()),
        }
    }
}

/// The array of one library.
struct Own<'a> {
    lib: &'a Clib,
    array: Array<'a>,
}

/// One array in both libraries, and what it holds.
struct Cell<'a> {
    key: Key,
    shape: Shape,
    data: Rc<[u8]>,
    disk: Option<&'a Dir>,
    arrays: Vec<Own<'a>>,
    /// What was read or is to be written; both libraries use the same.
    buffer: RefCell<Vec<u8>>,
}

fn context<'a>(lib: &'a Clib, key: &Key, shape: Index, path: Option<&Path>) -> Result<Context<'a>, String> {
    Nd::find(lib)?.context(&Layout {
        shape: &shape,
        chunkshape: &CHUNKSHAPE,
        blockshape: &BLOCKSHAPE,
        dtype: c"<f8",
        cparams: cparams(lib, key),
        nthreads: key.threads,
        urlpath: path,
    })
}

/// A name for the files of a library.
fn file_name(libs: &Libs, lib: &Clib, what: &str) -> String {
    let whose = if std::ptr::eq(lib, &libs.ours) { "ours" } else { "theirs" };
    format!("{whose}-{what}.b2nd")
}

impl<'a> Cell<'a> {
    /// Makes the array with each library and has all libraries read it.
    fn new(libs: &'a Libs, bench: &mut Bench, key: &Key, disk: Option<&'a Dir>) -> Result<Self, String> {
        let data = bench.data(key.data, key.nbytes);
        let rows = i64::try_from(key.nbytes / ITEM).expect("fits") / (INNER[0] * INNER[1]);
        let shape = Shape([rows, INNER[0], INNER[1]]);
        let mut back = vec![0; data.len()];
        let mut arrays = Vec::new();
        for lib in both(libs) {
            let path = disk.map(|dir| dir.fresh(&file_name(libs, lib, "array")));
            let array = context(lib, key, shape.0, path.as_deref())?.compress(&data)?;
            let frame = if path.is_some() { None } else { Some(array.frame()?) };
            for reader in both(libs) {
                let nd = Nd::find(reader)?;
                let opened = match (&frame, &path) {
                    (Some(frame), _) => nd.open_frame(frame)?,
                    (None, Some(path)) => nd.open(path)?,
                    (None, None) => return Err("neither frame nor file".into()),
                };
                back.fill(0xA5);
                opened.read(&mut back)?;
                if back[..] != data[..] {
                    return Err(format!("{} reads other items", reader.path.display()));
                }
            }
            arrays.push(Own { lib, array });
        }
        Ok(Cell { key: *key, shape, data, disk, arrays, buffer: RefCell::new(back) })
    }

    fn array(&self, lib: &Clib) -> Result<&Array<'a>, String> {
        let own = self.arrays.iter().find(|own| std::ptr::eq(own.lib, lib));
        own.map(|own| &own.array).ok_or("a library without an array".into())
    }

    fn measure(
        &self,
        libs: &'a Libs,
        bench: &mut Bench,
        op: &'static str,
        work: &Work,
    ) -> Result<(), String> {
        let mut rng = Rng::new(7);
        let budget = bench.options.budget(200);
        let nbytes = self.shape.nbytes();
        let (bytes, timing) = match work {
            Work::Create => (nbytes, time(libs, budget, |lib| self.creator(libs, lib))?),
            Work::Read(request) => {
                let request = request(&mut rng, &self.shape);
                (request.nbytes(), time(libs, budget, |lib| self.reader(lib, &request))?)
            }
            Work::Write(request) => {
                let request = request(&mut rng, &self.shape);
                (request.nbytes(), time(libs, budget, |lib| self.writer(lib, &request))?)
            }
            Work::Resize => (nbytes, time(libs, budget, |lib| self.resizer(lib))?),
            Work::Append => {
                let appended = Shape([APPENDED, INNER[0], INNER[1]]).nbytes();
                (appended, time(libs, budget, |lib| self.appender(lib, appended))?)
            }
            Work::Concatenate => (2 * nbytes, time(libs, budget, |lib| self.joiner(libs, lib))?),
        };
        // Whatever was written and undone, the array holds what it did.
        self.check(libs)?;
        bench.record(Record { op, key: self.key, bytes, timing, versus: Versus::Theirs, cbytes: None });
        Ok(())
    }

    /// Fails unless each library's array holds the data.
    fn check(&self, libs: &Libs) -> Result<(), String> {
        let back = &mut self.buffer.borrow_mut()[..];
        for lib in both(libs) {
            self.array(lib)?.read(back)?;
            if back[..] != self.data[..] {
                return Err(format!("{}: the array holds other items", lib.path.display()));
            }
        }
        Ok(())
    }

    /// A context for new arrays, and where they go.
    fn target(
        &self,
        libs: &Libs,
        lib: &'a Clib,
        shape: Index,
    ) -> Result<(Context<'a>, Option<PathBuf>), String> {
        let path = self.disk.map(|dir| dir.fresh(&file_name(libs, lib, "new")));
        Ok((context(lib, &self.key, shape, path.as_deref())?, path))
    }

    fn creator(&self, libs: &Libs, lib: &'a Clib) -> Result<Subject<'_>, String> {
        let (context, path) = self.target(libs, lib, self.shape.0)?;
        Ok(Box::new(move || {
            drop(context.compress(&self.data).expect("checked before"));
            if let Some(path) = &path {
                std::fs::remove_file(path).expect("the array's file");
            }
        }))
    }

    fn reader<'b>(&'b self, lib: &Clib, request: &'b Request) -> Result<Subject<'b>, String> {
        let array = self.array(lib)?;
        let expected = request.expected(&self.shape, &self.data);
        let len = expected.len();
        {
            let dest = &mut self.buffer.borrow_mut()[..len];
            dest.fill(0xA5);
            request.read(array, dest)?;
            if dest[..] != expected[..] {
                return Err(format!("{} reads other items", lib.path.display()));
            }
        }
        Ok(Box::new(move || {
            request.read(array, &mut self.buffer.borrow_mut()[..len]).expect("checked before");
        }))
    }

    /// Writes what the array holds already, after other values were written and read back.
    fn writer<'b>(&'b self, lib: &Clib, request: &'b Request) -> Result<Subject<'b>, String> {
        let array = self.array(lib)?;
        let own = request.expected(&self.shape, &self.data);
        {
            let mut model = self.data.to_vec();
            let mut other = Vec::with_capacity(own.len());
            let mut n = 0_u64;
            request.for_each_item(&self.shape, &mut |item| {
                n += 1;
                other.extend(n.to_le_bytes());
                model[item * ITEM..][..ITEM].copy_from_slice(&n.to_le_bytes());
            });
            request.write(array, &other)?;
            let back = &mut self.buffer.borrow_mut()[..];
            array.read(back)?;
            if back != model {
                return Err(format!("{} writes other items", lib.path.display()));
            }
            request.write(array, &own)?;
        }
        Ok(Box::new(move || request.write(array, &own).expect("checked before")))
    }

    fn resizer(&self, lib: &Clib) -> Result<Subject<'_>, String> {
        let array = self.array(lib)?;
        let mut larger = self.shape.0;
        larger[0] += i64::from(CHUNKSHAPE[0]);
        Ok(Box::new(move || {
            array.resize(&larger).expect("a larger shape");
            array.resize(&self.shape.0).expect("the old shape");
        }))
    }

    fn appender(&self, lib: &Clib, nbytes: usize) -> Result<Subject<'_>, String> {
        let array = self.array(lib)?;
        {
            let back = &mut self.buffer.borrow_mut()[..nbytes];
            array.append(&self.data[..nbytes], 0)?;
            let mut stop = self.shape.0;
            stop[0] += APPENDED;
            array.get_slice(&[self.shape.0[0], 0, 0], &stop, back)?;
            array.resize(&self.shape.0)?;
            if back[..] != self.data[..nbytes] {
                return Err(format!("{} appends other items", lib.path.display()));
            }
        }
        Ok(Box::new(move || {
            array.append(&self.data[..nbytes], 0).expect("checked before");
            array.resize(&self.shape.0).expect("the old shape");
        }))
    }

    fn joiner(&self, libs: &Libs, lib: &'a Clib) -> Result<Subject<'_>, String> {
        let array = self.array(lib)?;
        let (context, path) = self.target(libs, lib, self.shape.0)?;
        let remove = move || {
            if let Some(path) = &path {
                std::fs::remove_file(path).expect("the array's file");
            }
        };
        {
            let joined = context.concatenate(array, array, 0)?;
            let (mut start, mut stop) = self.shape.all();
            for half in 0..2 {
                (start[0], stop[0]) = (half * self.shape.0[0], (half + 1) * self.shape.0[0]);
                let back = &mut self.buffer.borrow_mut()[..];
                joined.get_slice(&start, &stop, back)?;
                if back[..] != self.data[..] {
                    return Err(format!("{} joins other items", lib.path.display()));
                }
            }
            drop(joined);
            remove();
        }
        Ok(Box::new(move || {
            drop(context.concatenate(array, array, 0).expect("checked before"));
            remove();
        }))
    }
}

/// Blocks of 16 items, `nblocks` of them in the only chunk.
fn row_of_blocks<'a>(lib: &'a Clib, key: &Key, nblocks: i32, data: &[u8]) -> Result<Array<'a>, String> {
    let nitems = 16 * nblocks;
    let context = Nd::find(lib)?.context(&Layout {
        shape: &[i64::from(nitems)],
        chunkshape: &[nitems],
        blockshape: &[16],
        dtype: c"<f8",
        cparams: cparams(lib, key),
        nthreads: key.threads,
        urlpath: None,
    })?;
    context.compress(&data[..usize::try_from(nitems).expect("positive") * ITEM])
}

/// Reads one item near the end of chunks with few and with many blocks.
fn single_items(libs: &Libs, bench: &mut Bench, key: &Key) -> Result<(), String> {
    const FEW: i32 = 10;
    const MANY: i32 = 100_000;
    let data = bench.data(key.data, key.nbytes);
    let subject = |lib, nblocks: i32| -> Result<Subject<'_>, String> {
        let array = row_of_blocks(lib, key, nblocks, &data)?;
        let at = i64::from(16 * nblocks) - 21;
        let mut item = [0; ITEM];
        array.get_slice(&[at], &[at + 1], &mut item)?;
        if item != data[usize::try_from(at).expect("positive") * ITEM..][..ITEM] {
            return Err("another item".into());
        }
        Ok(Box::new(move || array.get_slice(&[at], &[at + 1], &mut item).expect("checked before")))
    };
    let budget = bench.options.budget(100);
    for (op, nblocks) in [(ITEM_OF_FEW, FEW), (ITEM_OF_MANY, MANY)] {
        if bench.options.wants_op(op) {
            let timing = time(libs, budget, |lib| subject(lib, nblocks))?;
            bench.record(Record { op, key: *key, bytes: ITEM, timing, versus: Versus::Theirs, cbytes: None });
        }
    }
    if bench.options.wants_op(ITEM_SCALE) {
        let timing = interleaved(budget, &|| subject(&libs.ours, MANY), &|| subject(&libs.ours, FEW))?;
        let (op, versus) = (ITEM_SCALE, Versus::FewBlocks);
        bench.record(Record { op, key: *key, bytes: ITEM, timing, versus, cbytes: None });
    }
    Ok(())
}
