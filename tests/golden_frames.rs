//! Frames that released versions of the C library wrote, from 2.0 on: read completely by every reader, and changed.
//!
//! `golden/make_frames.py` made them; [`model`] says what is in them.

#![cfg(unix)]

mod common;

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use blosc2::frame::FrameOptions;
use blosc2::io::dirs;
use blosc2::io::memory::MallocBuf;
use blosc2::io::mmap::{MmapIo, MmapMode};
use blosc2::schunk::{Reading, Schunk};
use common::clib::Clib;
use common::{OURS, REFERENCE};

const ITEMS: u32 = 300;

/// Data of the chunk that `seed` names, `n` items long.
fn ramp(seed: u32, n: u32) -> Vec<u8> {
    (0..n).flat_map(|i| (seed * 100_000 + i * 3).to_le_bytes()).collect()
}

fn repeat(item: [u8; 4], n: u32) -> Vec<u8> {
    item.repeat(usize::try_from(n).unwrap())
}

fn filled(item: [u8; 4]) -> Vec<Vec<u8>> {
    [ITEMS, ITEMS, ITEMS, 100].map(|n| repeat(item, n)).to_vec()
}

/// The chunks of a frame.
fn model(path: &Path) -> Vec<Vec<u8>> {
    match name(path).strip_suffix(".b2frame").unwrap() {
        "edited" | "edited-sparse" => {
            let mut chunks: Vec<_> = (0..6).map(|seed| ramp(seed, ITEMS)).collect();
            chunks.push(repeat([0; 4], ITEMS));
            chunks.push(repeat([7, 0, 0, 0], ITEMS));
            chunks.insert(2, ramp(20, ITEMS));
            chunks[4] = ramp(30, ITEMS);
            chunks.remove(1);
            chunks.push(ramp(40, 100));
            if path.ends_with("2.0.4/edited-sparse.b2frame") {
                // This release gave inserted and replaced chunks the files of others.
                (chunks[4], chunks[7]) = (ramp(30, ITEMS), ramp(20, ITEMS));
            }
            chunks
        }
        "dictionary" => vec![(0..32).flat_map(|i| ramp(i % 5, ITEMS)).collect()],
        "filled-zeros" => filled([0; 4]),
        "filled-nans" => filled(f32::NAN.to_ne_bytes()),
        "many" => (0..400).map(|i| ramp(i % 7, 4)).collect(),
        "variable" => vec![ramp(1, 10), ramp(2, ITEMS), ramp(3, 100)],
        "vl" | "vl-sparse" => vec![b"redgreen green green green greenblue".to_vec(); 2],
        _ => vec![ramp(1, ITEMS), ramp(2, ITEMS), ramp(3, 50)],
    }
}

/// All golden files with this extension.
fn golden(extension: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frames");
    let entries =
        |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut found: Vec<_> = entries(&root).iter().flat_map(|release| entries(release)).collect();
    found.retain(|path| path.extension().is_some_and(|e| e == extension));
    found.sort();
    found
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// A copy of a golden frame, removed when dropped.
struct Copy(PathBuf);

impl Copy {
    fn of(path: &Path) -> Copy {
        let release = name(path.parent().unwrap());
        let to = format!("blosc2-golden-{release}-{}-{}", name(path), std::process::id());
        let to = std::env::temp_dir().join(to);
        let _ = dirs::remove_frame(&to);
        if path.is_dir() {
            fs::create_dir(&to).unwrap();
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        } else {
            fs::copy(path, &to).unwrap();
        }
        Copy(to)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = dirs::remove_frame(&self.0);
    }
}

fn check(schunk: &Schunk, model: &[Vec<u8>], what: &str) {
    let reading = Reading::default();
    assert_eq!(schunk.nchunks(), model.len(), "{what}");
    assert_eq!(schunk.nbytes(), model.concat().len() as u64, "{what}");
    for (nchunk, expected) in model.iter().enumerate() {
        let mut data = vec![0xaa; expected.len() + 1];
        let n = schunk.decompress_chunk(nchunk, &mut data, &reading);
        let n = n.unwrap_or_else(|e| panic!("{what}: chunk {nchunk}: {e}"));
        assert!(data[..n] == *expected, "{what}: chunk {nchunk}");
    }
    if schunk.chunksize() > 0 && !schunk.has_vl_blocks() {
        let (all, size) = (model.concat(), schunk.typesize());
        let items = all.len() / size;
        for (start, stop) in [(0, items), (0, 1), (items - 1, items), (items / 3, items / 2)] {
            let mut data = vec![0xaa; (stop - start) * size];
            schunk.get_slice(start as u64, stop as u64, &mut data, &reading).unwrap();
            assert!(data == all[start * size..stop * size], "{what}: items {start} to {stop}");
        }
    }
}

fn check_layers(schunk: &Schunk, what: &str) {
    let layers = schunk.metalayers();
    let found: Vec<_> = layers.iter().map(|layer| (&layer.name[..], &layer.content[..])).collect();
    assert_eq!(found, [(&b"m1"[..], &b"golden"[..]), (b"empty", b"")], "{what}");
    let content = |name: &[u8]| schunk.vlmeta_get(name).unwrap().1;
    assert_eq!(schunk.vlmetalayers().len(), 2, "{what}");
    assert_eq!(content(b"v1"), b"variable-length golden golden golden", "{what}");
    assert_eq!(content(b"v2"), b"longer than before", "{what}");
}

#[test]
fn frames_of_released_versions_are_read_by_every_reader() {
    let paths = golden("b2frame");
    assert!(paths.len() > 80, "only {} frames", paths.len());
    for path in &paths {
        let (what, expected) = (path.display().to_string(), model(path));
        let plain = Schunk::open(path, 0, &FrameOptions::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let mut readers = vec![plain];
        if path.is_file() {
            // SAFETY: nobody changes the file.
            let io = Arc::new(unsafe { MmapIo::new(MmapMode::Read, 1) });
            let options = FrameOptions { io, ..FrameOptions::default() };
            readers.push(Schunk::open(path, 0, &options).unwrap());
            let bytes = MallocBuf::copy_of(&fs::read(path).unwrap()).unwrap();
            readers.push(Schunk::from_buffer(bytes).unwrap());
        }
        readers.push(readers[0].to_memory().unwrap());
        for schunk in &readers {
            check(schunk, &expected, &what);
            if name(path).starts_with("edited") {
                check_layers(schunk, &what);
            }
        }
    }
}

/// Changes the chunks of a frame, and of the model, using chunks that it has.
fn change(schunk: &mut Schunk, model: &mut Vec<Vec<u8>>) {
    let first = schunk.chunk(0).unwrap().into_owned();
    let data = model[0].clone();
    schunk.delete_chunk(schunk.nchunks() - 1).unwrap();
    model.pop();
    for _ in 0..2 {
        schunk.append_chunk(&first).unwrap();
        model.push(data.clone());
    }
    schunk.insert_chunk(1, &first).unwrap();
    model.insert(1, data.clone());
    let last = schunk.chunk(model.len() - 1).unwrap().into_owned();
    schunk.update_chunk(0, &last).unwrap();
    model[0] = data;
    schunk.delete_chunk(1).unwrap();
    model.remove(1);
    schunk.reorder(&(0..model.len()).rev().collect::<Vec<_>>()).unwrap();
    model.reverse();
    schunk.vlmeta_add(b"new", &[7; 500], None).unwrap();
}

#[test]
fn frames_of_released_versions_can_be_changed() {
    let api = Api::of(&REFERENCE);
    for path in golden("b2frame") {
        let what = path.display().to_string();
        let copy = Copy::of(&path);
        let mut expected = model(&path);
        let mut schunk = Schunk::open(&copy.0, 0, &FrameOptions::default()).unwrap();
        change(&mut schunk, &mut expected);
        check(&schunk, &expected, &what);
        drop(schunk);
        let mut again = Schunk::open(&copy.0, 0, &FrameOptions::default()).unwrap();
        check(&again, &expected, &what);
        if name(&path).starts_with("edited") {
            again.vlmeta_delete(b"new").unwrap();
            check_layers(&again, &what);
        }
        let Some(api) = &api else { continue };
        assert!(api.chunks(&copy.0).unwrap_or_else(|| panic!("{what}: the C library")) == expected, "{what}");
    }
}

/// What is needed of the C library to read a frame or an array.
struct Api {
    open: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void) -> c_int,
    decompress: unsafe extern "C" fn(*mut c_void, i64, *mut c_void, i32) -> c_int,
    open_array: unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int,
    array_bytes: unsafe extern "C" fn(*const c_void, *mut c_void, i64) -> c_int,
    free_array: unsafe extern "C" fn(*mut c_void) -> c_int,
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

impl Api {
    fn new(lib: &'static Clib) -> Api {
        // SAFETY: the types are those of the declarations in blosc2.h and b2nd.h.
        unsafe {
            Api {
                open: lib.symbol("blosc2_schunk_open").unwrap(),
                free: lib.symbol("blosc2_schunk_free").unwrap(),
                decompress: lib.symbol("blosc2_schunk_decompress_chunk").unwrap(),
                open_array: lib.symbol("b2nd_open").unwrap(),
                array_bytes: lib.symbol("b2nd_to_cbuffer").unwrap(),
                free_array: lib.symbol("b2nd_free").unwrap(),
            }
        }
    }

    fn of(reference: &'static Option<Clib>) -> Option<Api> {
        reference.as_ref().map(Api::new)
    }

    /// The chunks of the frame at `path`.
    fn chunks(&self, path: &Path) -> Option<Vec<Vec<u8>>> {
        let path = c_path(path);
        // SAFETY: the super-chunk is used while it is open; the number of chunks is at byte 40 of its struct.
        unsafe {
            let schunk = (self.open)(path.as_ptr());
            if schunk.is_null() {
                return None;
            }
            let nchunks = schunk.byte_add(40).cast::<i64>().read();
            let chunks = (0..nchunks).map(|nchunk| {
                let mut data = vec![0; 1 << 16];
                let n = (self.decompress)(schunk, nchunk, data.as_mut_ptr().cast(), 1 << 16);
                data.truncate(usize::try_from(n).ok()?);
                Some(data)
            });
            let chunks = chunks.collect();
            (self.free)(schunk);
            chunks
        }
    }

    /// The items of the array at `path`, `len` bytes.
    fn array(&self, path: &Path, len: usize) -> Vec<u8> {
        let (path, mut data) = (c_path(path), vec![0xaa; len]);
        let mut array = ptr::null_mut();
        // SAFETY: the array is used while it is open; `data` is as long as told.
        unsafe {
            assert_eq!((self.open_array)(path.as_ptr(), &mut array), 0);
            let code = (self.array_bytes)(array, data.as_mut_ptr().cast(), i64::try_from(len).unwrap());
            assert_eq!(code, 0);
            (self.free_array)(array);
        }
        data
    }
}

#[test]
fn arrays_of_released_versions_and_of_caterva_are_read() {
    let expected = ramp(5, 17 * 23);
    let (arrays, caterva) = (golden("b2nd"), golden("caterva"));
    assert!(arrays.len() >= 5 && !caterva.is_empty());
    let ours = Api::new(&OURS);
    let theirs = Api::of(&REFERENCE);
    for path in arrays.iter().chain(&caterva) {
        assert!(ours.array(path, expected.len()) == expected, "{}", path.display());
        if let Some(theirs) = &theirs {
            assert!(theirs.array(path, expected.len()) == expected, "{}: the C library", path.display());
        }
    }
}
