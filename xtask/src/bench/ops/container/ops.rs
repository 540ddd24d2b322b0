//! The operations.

use std::cell::RefCell;
use std::ffi::CString;
use std::hint::black_box;

use super::Cell;
use crate::bench::Bench;
use crate::bench::data::Rng;
use crate::bench::ops::{check_reads, cparams, make_chunk};
use crate::bench::schunk::{Api, Content, Place, Schunk};

type Outcome = Result<(), String>;

/// Uncompressed size of a large chunk.
const LARGE: usize = 1 << 20;
/// Uncompressed size of a small chunk.
const SMALL: usize = 8 << 10;
/// Uncompressed size of a chunk of which there are very many.
const TINY: usize = 1 << 10;
/// How many of these there are before others are appended.
const EARLIER: usize = 6000;
/// Chunks inserted, deleted or replaced by one timed call.
const CHANGES: usize = 100;
/// Bytes of a slice.
const SLICE: usize = 4 << 10;
/// Slices that make up one timed call.
const PLACES: usize = 16;
/// Items of a sparse read.
const COORDS: usize = 200;
/// Block size for sparse reads: the C library has none with an automatic one.
const SPARSE_BLOCK: i32 = 64 << 10;

/// Number of small chunks.
fn many(bench: &Bench) -> usize {
    if bench.options.quick { 300 } else { 1000 }
}

/// A new super-chunk, filled with chunks of 1 MiB.
pub fn append(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, cell.key.nbytes);
    cell.checked(0, &data, LARGE)?;
    let create = |lib| Api::find(lib)?.create(cell.place, &cparams(lib, &cell.key));
    let timing = cell.time_changing(bench, create, |schunk| {
        data.chunks(LARGE).for_each(|chunk| schunk.append(chunk));
    })?;
    cell.record(bench, data.len(), timing);
    Ok(())
}

/// Small chunks behind very many others; not in directories, since as many files are copied for much longer than all
/// the rest takes.
pub fn append_late(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    if cell.place == Place::Dir {
        return Ok(());
    }
    let data = bench.data(cell.key.data, (EARLIER + CHANGES) * TINY);
    let (earlier, late) = data.split_at(EARLIER * TINY);
    let content = cell.ours(earlier, TINY)?;
    let append = |schunk: &Schunk<'_>| late.chunks(TINY).for_each(|chunk| schunk.append(chunk));
    cell.check_change(&content, append, TINY, data.chunks(TINY))?;
    let timing = cell.time_changing(bench, |lib| Api::find(lib)?.open_copy(&content), append)?;
    cell.record(bench, late.len(), timing);
    Ok(())
}

/// All chunks, one after the other into the same memory.
pub fn read(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, cell.key.nbytes);
    let content = cell.checked(0, &data, LARGE)?;
    let dest = RefCell::new(vec![0; LARGE]);
    let (dest, nchunks) = (&dest, data.len() / LARGE);
    let timing = cell.time_reading(bench, &content, |schunk| {
        for nchunk in 0..nchunks {
            assert_eq!(schunk.read(nchunk, &mut dest.borrow_mut()), LARGE);
        }
    })?;
    cell.record(bench, data.len(), timing);
    Ok(())
}

/// All items as one slice.
pub fn slice_all(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, cell.key.nbytes);
    let content = cell.checked(0, &data, LARGE)?;
    let dest = RefCell::new(vec![0; data.len()]);
    let (dest, typesize) = (&dest, cell.typesize());
    let timing = cell.time_reading(bench, &content, |schunk| {
        schunk.get_slice(0, typesize, &mut dest.borrow_mut());
    })?;
    if *dest.borrow() != *data {
        return Err("the slice holds other data".into());
    }
    cell.record(bench, data.len(), timing);
    Ok(())
}

/// Slices of about `SLICE` bytes: random first items, and the length in bytes.
fn slices(cell: &Cell<'_>, nbytes: usize) -> (Vec<usize>, usize) {
    let mut rng = Rng::new(11);
    let typesize = cell.typesize();
    let last = (nbytes - SLICE) / typesize;
    let starts = (0..PLACES).map(|_| usize::try_from(rng.below(last as u64)).expect("small"));
    (starts.collect(), SLICE / typesize * typesize)
}

/// 4 kB here and there.
pub fn slice_4k(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, cell.key.nbytes);
    let content = cell.checked(0, &data, LARGE)?;
    let typesize = cell.typesize();
    let (starts, len) = slices(cell, data.len());
    let read = |schunk: &Schunk<'_>, start: usize, dest: &mut [u8]| {
        schunk.get_slice(i64::try_from(start).expect("small"), typesize, dest);
    };
    cell.each_library(|lib| {
        let schunk = Api::find(lib)?.open_copy(&content)?;
        let mut back = vec![0xA5; len];
        let equal = |&start: &usize| {
            read(&schunk, start, &mut back);
            back == data[start * typesize..][..len]
        };
        if starts.iter().all(equal) { Ok(()) } else { Err("another slice is read".into()) }
    })?;
    let dest = RefCell::new(vec![0; len]);
    let (dest, starts, read) = (&dest, &starts, &read);
    let timing = cell.time_reading(bench, &content, |schunk| {
        starts.iter().for_each(|&start| read(schunk, start, &mut dest.borrow_mut()));
    })?;
    cell.record(bench, PLACES * len, timing);
    Ok(())
}

/// Items all over the data.
pub fn sparse(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, cell.key.nbytes);
    let content = cell.checked(SPARSE_BLOCK, &data, LARGE)?;
    let typesize = cell.typesize();
    let mut rng = Rng::new(13);
    let nitems = (data.len() / typesize) as u64;
    let coords: Vec<i64> = (0..COORDS).map(|_| i64::try_from(rng.below(nitems)).expect("small")).collect();
    let expected: Vec<u8> = coords
        .iter()
        .flat_map(|&at| data[usize::try_from(at).expect("positive") * typesize..][..typesize].to_vec())
        .collect();
    cell.each_library(|lib| {
        let mut back = vec![0xA5; expected.len()];
        Api::find(lib)?.open_copy(&content)?.get_sparse(&coords, typesize, &mut back);
        if back == expected { Ok(()) } else { Err("other items are read".into()) }
    })?;
    let dest = RefCell::new(vec![0; expected.len()]);
    let (dest, coords) = (&dest, &coords);
    let timing = cell.time_reading(bench, &content, |schunk| {
        schunk.get_sparse(coords, typesize, &mut dest.borrow_mut());
    })?;
    cell.record(bench, expected.len(), timing);
    Ok(())
}

/// 4 kB here and there get new values.
pub fn set_slice(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, cell.key.nbytes);
    let content = cell.checked(0, &data, LARGE)?;
    let typesize = cell.typesize();
    let (starts, len) = slices(cell, data.len());
    let new = &data[..len];
    let work = |schunk: &Schunk<'_>| {
        for &start in &starts {
            schunk.set_slice(i64::try_from(start).expect("small"), typesize, new);
        }
    };
    let mut expected = data.to_vec();
    for &start in &starts {
        expected[start * typesize..][..len].copy_from_slice(new);
    }
    cell.check_change(&content, work, LARGE, expected.chunks(LARGE))?;
    let timing = cell.time_changing(bench, |lib| Api::find(lib)?.open_copy(&content), work)?;
    cell.record(bench, PLACES * len, timing);
    Ok(())
}

/// Many small chunks, chunks to put among them, and where.
struct Small {
    data: std::rc::Rc<[u8]>,
    content: Content,
    /// Chunks with data of their own, and that data.
    added: Vec<(Vec<u8>, Vec<u8>)>,
    places: Vec<usize>,
}

impl Small {
    fn make(cell: &Cell<'_>, bench: &mut Bench) -> Result<Self, String> {
        let data = bench.data(cell.key.data, many(bench) * SMALL);
        let content = cell.checked(0, &data, SMALL)?;
        let mut rng = Rng::new(17);
        let mut below = |end: usize| usize::try_from(rng.below(end as u64)).expect("below a usize");
        let mut added = Vec::new();
        for i in 0..CHANGES {
            // Compressible to very different degrees.
            let mut data = data[i * SMALL..][..SMALL].to_vec();
            let noisy = below(SMALL);
            data[..noisy].iter_mut().for_each(|byte| *byte = u8::try_from(below(256)).expect("a byte"));
            let ours = &cell.libs.ours;
            let chunk = make_chunk(ours, &cell.key, &data)?;
            check_reads(ours, &chunk, &data)?;
            added.push((chunk, data));
        }
        let places = (0..CHANGES).map(|_| below(data.len() / SMALL - CHANGES)).collect();
        Ok(Self { data, content, added, places })
    }

    /// Checks and times `change`; `model` does the same to a list of chunks.
    fn measure(
        &self,
        cell: &Cell<'_>,
        bench: &mut Bench,
        change: impl Fn(&Schunk<'_>, usize, &[u8]),
        model: impl for<'m> Fn(&mut Vec<&'m [u8]>, usize, &'m [u8]),
    ) -> Outcome {
        let all = |schunk: &Schunk<'_>| {
            for (&at, (chunk, _)) in self.places.iter().zip(&self.added) {
                change(schunk, at, chunk);
            }
        };
        let mut expected: Vec<&[u8]> = self.data.chunks(SMALL).collect();
        for (&at, (_, data)) in self.places.iter().zip(&self.added) {
            model(&mut expected, at, data);
        }
        cell.check_change(&self.content, all, SMALL, expected.iter().copied())?;
        let timing = cell.time_changing(bench, |lib| Api::find(lib)?.open_copy(&self.content), all)?;
        cell.record(bench, CHANGES * SMALL, timing);
        Ok(())
    }
}

/// Chunks of a super-chunk of many are replaced.
pub fn update(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let change = |schunk: &Schunk<'_>, at: usize, chunk: &[u8]| schunk.update(at, chunk);
    Small::make(cell, bench)?.measure(cell, bench, change, |chunks, at, new| chunks[at] = new)
}

/// Chunks are put among many others.
pub fn insert(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let change = |schunk: &Schunk<'_>, at: usize, chunk: &[u8]| schunk.insert(at, chunk);
    Small::make(cell, bench)?.measure(cell, bench, change, |chunks, at, new| chunks.insert(at, new))
}

/// Chunks of many are removed.
pub fn delete(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let change = |schunk: &Schunk<'_>, at: usize, _: &[u8]| schunk.delete(at);
    Small::make(cell, bench)?.measure(cell, bench, change, |chunks, at, _| {
        chunks.remove(at);
    })
}

/// Many small chunks are handed out as they are stored.
pub fn get_chunk(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    cell.each_library(|lib| {
        let schunk = Api::find(lib)?.open_copy(&content)?;
        let mut chunks = data.chunks(SMALL).enumerate();
        chunks.try_for_each(|(i, data)| schunk.chunk(i, |chunk| check_reads(lib, chunk, data)))
    })?;
    let timing = cell.time_reading(bench, &content, |schunk| {
        let nbytes: usize = (0..data.len() / SMALL).map(|i| schunk.chunk(i, <[u8]>::len)).sum();
        black_box(nbytes);
    })?;
    cell.record(bench, 0, timing);
    Ok(())
}

/// An item out of each of many small chunks, which are not read for that, if they are on disk.
pub fn lazy_item(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    let typesize = cell.typesize();
    let number = i32::try_from(SMALL / typesize / 2).expect("small");
    let work = |schunk: &Schunk<'_>, items: &mut [u8]| {
        let mut ctx = schunk.dctx();
        for (i, item) in items.chunks_mut(typesize).enumerate() {
            let code = schunk.lazy_chunk(i, |chunk| ctx.getitem(chunk, number, 1, item));
            assert!(code > 0, "an item of a lazy chunk: {code}");
        }
    };
    let dest = RefCell::new(vec![0; data.len() / SMALL * typesize]);
    let at = SMALL / typesize / 2 * typesize;
    let expected: Vec<u8> = data.chunks(SMALL).flat_map(|chunk| chunk[at..][..typesize].to_vec()).collect();
    cell.each_library(|lib| {
        let items = &mut *dest.borrow_mut();
        items.fill(0xA5);
        work(&Api::find(lib)?.open_copy(&content)?, items);
        if *items == expected { Ok(()) } else { Err("other items are read".into()) }
    })?;
    let (dest, work) = (&dest, &work);
    let timing = cell.time_reading(bench, &content, |schunk| work(schunk, &mut dest.borrow_mut()))?;
    cell.record(bench, 0, timing);
    Ok(())
}

/// A super-chunk of many chunks is copied to a frame in memory.
pub fn copy(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    cell.each_library(|lib| {
        let copy = Api::find(lib)?.open_copy(&content)?.copy().into_content(Place::Frame)?;
        cell.check(&copy, SMALL, data.chunks(SMALL))
    })?;
    let timing = cell.time_reading(bench, &content, |schunk| drop(schunk.copy()))?;
    cell.record(bench, data.len(), timing);
    Ok(())
}

/// A super-chunk of many chunks is given out as a frame. One in memory lends its own, which takes no time.
pub fn to_buffer(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    if cell.place == Place::Frame {
        return Ok(());
    }
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    cell.each_library(|lib| {
        let frame = Api::find(lib)?.open_copy(&content)?.to_buffer(<[u8]>::to_vec);
        let params = cparams(lib, &cell.key);
        cell.check(&Content::Bytes { place: Place::Frame, params, bytes: frame }, SMALL, data.chunks(SMALL))
    })?;
    let timing = cell.time_reading(bench, &content, |schunk| {
        black_box(schunk.to_buffer(<[u8]>::len));
    })?;
    cell.record(bench, 0, timing);
    Ok(())
}

/// A super-chunk of many chunks is stored in a file, which is removed.
pub fn to_file(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    let timing = cell.time_reading(bench, &content, Schunk::to_file)?;
    cell.record(bench, 0, timing);
    Ok(())
}

/// A super-chunk of many chunks is opened and closed.
pub fn open(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    let timing = cell.time_opening(bench, &content)?;
    cell.record(bench, 0, timing);
    Ok(())
}

/// Names and contents of metalayers.
fn layers() -> Vec<(CString, Vec<u8>)> {
    let mut rng = Rng::new(19);
    let layer = |i| {
        let name = CString::new(format!("layer {i}")).expect("no NUL");
        let mut content = vec![b' '; 1000];
        content[..500].iter_mut().for_each(|byte| *byte = rng.next().to_le_bytes()[0] & 0x3f);
        (name, content)
    };
    (0..8).map(layer).collect()
}

/// Metalayers are added, and replaced by longer ones.
pub fn vlmeta_write(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    let layers = layers();
    let long = |content: &[u8]| [content, content].concat();
    let work = |schunk: &Schunk<'_>| {
        for (name, content) in &layers {
            schunk.vlmeta_add(name, content);
        }
        for (name, content) in &layers {
            schunk.vlmeta_update(name, &long(content));
        }
    };
    cell.each_library(|lib| {
        let schunk = Api::find(lib)?.open_copy(&content)?;
        work(&schunk);
        let written = schunk.into_content(cell.place)?;
        cell.each_library(|reader| {
            let schunk = Api::find(reader)?.open_copy(&written)?;
            let equal =
                |(name, content): &(CString, Vec<u8>)| schunk.vlmeta_get(name, |back| back == long(content));
            if layers.iter().all(equal) { Ok(()) } else { Err("another metalayer is read".into()) }
        })
    })?;
    let timing = cell.time_changing(bench, |lib| Api::find(lib)?.open_copy(&content), work)?;
    cell.record(bench, 0, timing);
    Ok(())
}

/// Metalayers are read.
pub fn vlmeta_get(cell: &Cell<'_>, bench: &mut Bench) -> Outcome {
    let data = bench.data(cell.key.data, many(bench) * SMALL);
    let content = cell.checked(0, &data, SMALL)?;
    let layers = layers();
    let schunk = Api::find(&cell.libs.ours)?.open_copy(&content)?;
    layers.iter().for_each(|(name, content)| schunk.vlmeta_add(name, content));
    let content = schunk.into_content(cell.place)?;
    let layers = &layers;
    let timing = cell.time_reading(bench, &content, |schunk| {
        for (name, content) in layers {
            assert_eq!(schunk.vlmeta_get(name, |back| black_box(back).len()), content.len());
        }
    })?;
    cell.record(bench, 0, timing);
    Ok(())
}
