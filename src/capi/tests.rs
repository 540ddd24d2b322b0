//! The exported functions as a client calls them: handles, memory that changes hands, callbacks, threads. The C
//! programs in `capi-tests/` look at results; these are for Miri, which sees whether the way to them is sound.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, null, null_mut};

use super::b2nd::*;
use super::b2nd_copy::*;
use super::b2nd_ctx::*;
use super::b2nd_data::*;
use super::b2nd_shape::*;
use super::b2nd_storage::*;
use super::b2nd_view::*;
use super::blosc1::*;
use super::chunk::*;
use super::facts::*;
use super::frame::*;
use super::io::*;
use super::meta::*;
use super::registration::*;
use super::schunk::*;
use super::schunk_data::*;
use super::schunk_slice::*;
use super::types::*;
use super::util::*;

/// Items per chunk, of 4 bytes.
const ITEMS: usize = 64;
const CHUNK: i32 = 256;

fn params() -> blosc2_cparams {
    blosc2_cparams { typesize: 4, blocksize: 128, ..blosc2_cparams::DEFAULTS }
}

/// The items of the chunk `number`.
fn items(number: usize) -> Vec<i32> {
    (0..ITEMS).map(|i| i32::try_from(number * ITEMS + i).unwrap()).collect()
}

/// A super-chunk in memory, with `nchunks` chunks.
unsafe fn filled(contiguous: bool, cparams: &mut blosc2_cparams, nchunks: usize) -> *mut blosc2_schunk {
    let mut storage = blosc2_storage { contiguous: contiguous.into(), cparams, ..blosc2_storage::DEFAULTS };
    // SAFETY: the parameters live until the end of the call; the buffers are as long as told.
    unsafe {
        let schunk = blosc2_schunk_new(&raw mut storage);
        assert!(!schunk.is_null());
        for number in 0..nchunks {
            let data = items(number);
            let count = blosc2_schunk_append_buffer(schunk, data.as_ptr().cast(), CHUNK);
            assert_eq!(count, i64::try_from(number + 1).unwrap());
        }
        schunk
    }
}

unsafe fn read_chunk(schunk: *mut blosc2_schunk, nchunk: i64) -> Vec<i32> {
    let mut out = vec![0i32; ITEMS];
    // SAFETY: `out` holds a chunk.
    let nbytes = unsafe { blosc2_schunk_decompress_chunk(schunk, nchunk, out.as_mut_ptr().cast(), CHUNK) };
    assert_eq!(nbytes, CHUNK);
    out
}

/// The bytes behind a pair of out-parameters, which are released if they belong to the caller.
unsafe fn taken(bytes: *mut u8, len: usize, needs_free: bool) -> Vec<u8> {
    // SAFETY: the caller got both from the library.
    unsafe {
        let copy = std::slice::from_raw_parts(bytes, len).to_vec();
        if needs_free {
            libc::free(bytes.cast());
        }
        copy
    }
}

#[test]
fn chunks_are_appended_changed_and_read() {
    for contiguous in [false, true] {
        // SAFETY: a client that keeps the rules.
        unsafe {
            let schunk = filled(contiguous, &mut params(), 3);
            assert_eq!(read_chunk(schunk, 1), items(1));
            assert_eq!((*schunk).nchunks, 3);
            assert_eq!((*schunk).data.is_null(), contiguous);

            let (mut chunk, mut needs_free) = (null_mut(), CBool::FALSE);
            let size = blosc2_schunk_get_chunk(schunk, 0, &raw mut chunk, &raw mut needs_free);
            let mut first = taken(chunk, usize::try_from(size).unwrap(), needs_free.get());
            assert_eq!(blosc2_schunk_append_chunk(schunk, first.as_mut_ptr(), CBool::TRUE), 4);
            assert_eq!(blosc2_schunk_insert_chunk(schunk, 1, first.as_mut_ptr(), CBool::TRUE), 5);
            let given = libc::malloc(first.len()).cast::<u8>();
            ptr::copy_nonoverlapping(first.as_ptr(), given, first.len());
            assert_eq!(blosc2_schunk_update_chunk(schunk, 2, given, CBool::FALSE), 5);
            assert_eq!(blosc2_schunk_delete_chunk(schunk, 0), 4);
            let size = blosc2_schunk_get_lazychunk(schunk, 1, &raw mut chunk, &raw mut needs_free);
            assert_eq!(taken(chunk, usize::try_from(size).unwrap(), needs_free.get()), first);
            assert_eq!(blosc2_schunk_reorder_offsets(schunk, [2i64, 1, 0, 3].as_mut_ptr()), 0);
            assert_eq!(read_chunk(schunk, 0), items(2));

            let mut part = [0i32; 70];
            assert_eq!(blosc2_schunk_get_slice_buffer(schunk, 30, 100, part.as_mut_ptr().cast()), 0);
            assert_eq!(part[..34], items(2)[30..]);
            part.fill(-1);
            assert_eq!(blosc2_schunk_set_slice_buffer(schunk, 50, 120, part.as_mut_ptr().cast()), 0);
            let (coords, mut found) = ([51i64, 3, 119, 120], [0i32; 4]);
            assert_eq!(
                blosc2_schunk_get_sparse_buffer(schunk, 4, coords.as_ptr(), found.as_mut_ptr().cast()),
                0
            );
            assert_eq!(found, [-1, items(2)[3], -1, items(0)[56]]);

            let offsets = blosc2_frame_get_offsets(schunk);
            assert_eq!(offsets.is_null(), !contiguous);
            libc::free(offsets.cast());
            let mut storage = blosc2_storage::DEFAULTS;
            let copy = blosc2_schunk_copy(schunk, &raw mut storage);
            assert_eq!(read_chunk(copy, 3), read_chunk(schunk, 3));
            assert_eq!(blosc2_schunk_free(copy), 0);
            assert_eq!(blosc2_schunk_free(schunk), 0);
        }
    }
}

#[test]
fn frames_go_out_and_come_back() {
    // SAFETY: a client that keeps the rules.
    unsafe {
        for contiguous in [false, true] {
            let schunk = filled(contiguous, &mut params(), 2);
            let (mut frame, mut needs_free) = (null_mut(), CBool::FALSE);
            let len = blosc2_schunk_to_buffer(schunk, &raw mut frame, &raw mut needs_free);
            let mut bytes = taken(frame, usize::try_from(len).unwrap(), needs_free.get());
            assert_eq!(blosc2_schunk_free(schunk), 0);

            let read = blosc2_schunk_from_buffer(bytes.as_mut_ptr(), len, CBool::TRUE);
            assert_eq!(read_chunk(read, 1), items(1));
            assert!(blosc2_schunk_frame_len(read) > 0);
            assert_eq!(blosc2_schunk_free(read), 0);
            let lent = blosc2_schunk_from_buffer(bytes.as_mut_ptr(), len, CBool::FALSE);
            blosc2_schunk_avoid_cframe_free(lent, CBool::TRUE);
            assert_eq!(read_chunk(lent, 0), items(0));
            let data = items(7);
            assert_eq!(blosc2_schunk_append_buffer(lent, data.as_ptr().cast(), CHUNK), 3);
            assert_eq!(read_chunk(lent, 2), data);
            assert_eq!(blosc2_schunk_free(lent), 0);
        }
    }
}

#[test]
fn metadata_is_lent_and_given() {
    // SAFETY: a client that keeps the rules.
    unsafe {
        let schunk = filled(true, &mut params(), 0);
        let mut content = *b"first content";
        let len = i32::try_from(content.len()).unwrap();
        assert_eq!(blosc2_meta_add(schunk, c"fixed".as_ptr(), content.as_mut_ptr(), len), 0);
        let lent = (*schunk).metalayers[0];
        content[0] = b'F';
        assert_eq!(blosc2_meta_update(schunk, c"fixed".as_ptr(), content.as_mut_ptr(), len), 0);
        assert_eq!((*schunk).metalayers[0], lent);
        assert_eq!(*(*lent).content, b'F');

        for (number, name) in [c"one", c"two", c"three"].into_iter().enumerate() {
            let added = blosc2_vlmeta_add(schunk, name.as_ptr(), content.as_mut_ptr(), len, null_mut());
            assert_eq!(usize::try_from(added).unwrap(), number);
        }
        let two = (*schunk).vlmetalayers[1];
        let updated = blosc2_vlmeta_update(schunk, c"two".as_ptr(), content.as_mut_ptr(), 3, null_mut());
        assert_eq!((updated, (*schunk).vlmetalayers[1]), (1, two));
        assert!(blosc2_vlmeta_delete(schunk, c"one".as_ptr()) >= 0);
        let (mut out, mut out_len) = (null_mut(), 0);
        assert!(blosc2_vlmeta_get(schunk, c"two".as_ptr(), &raw mut out, &raw mut out_len) >= 0);
        assert_eq!(taken(out, usize::try_from(out_len).unwrap(), true), b"Fir");
        let mut names = [null_mut::<c_char>(); 2];
        assert_eq!(blosc2_vlmeta_get_names(schunk, names.as_mut_ptr()), 2);
        assert!(blosc2_vlmeta_exists(schunk, names[0]) >= 0);
        assert_eq!(blosc2_schunk_free(schunk), 0);
    }
}

#[test]
fn contexts_compress_and_decompress() {
    // SAFETY: a client that keeps the rules.
    unsafe {
        let cctx = blosc2_create_cctx(params());
        let dctx = blosc2_create_dctx(blosc2_dparams::DEFAULTS);
        let data = items(1);
        let (mut chunk, mut out) = ([0u8; 400], [0i32; ITEMS]);
        let size = blosc2_compress_ctx(cctx, data.as_ptr().cast(), CHUNK, chunk.as_mut_ptr().cast(), 400);
        assert!(size > 0);
        let read = |out: &mut [i32; ITEMS]| {
            blosc2_decompress_ctx(dctx, chunk.as_ptr().cast(), size, out.as_mut_ptr().cast(), CHUNK)
        };
        assert_eq!(read(&mut out), CHUNK);
        assert_eq!(out[..], data);
        assert_eq!(blosc2_set_maskout(dctx, [true, false].as_mut_ptr(), 2), 0);
        out.fill(9);
        assert_eq!(read(&mut out), CHUNK);
        assert_eq!((out[0], out[ITEMS - 1]), (9, data[ITEMS - 1]));
        let items_read =
            blosc2_getitem_ctx(dctx, chunk.as_ptr().cast(), size, 30, 4, out.as_mut_ptr().cast(), CHUNK);
        assert_eq!((items_read, out[3]), (16, data[33]));
        let (mut cparams, mut dparams) = (blosc2_cparams::DEFAULTS, blosc2_dparams::DEFAULTS);
        assert_eq!(blosc2_ctx_get_cparams(cctx, &raw mut cparams), 0);
        assert_eq!(blosc2_ctx_get_dparams(dctx, &raw mut dparams), 0);
        assert_eq!(cparams.typesize, 4);

        let (long, short) = (items(2), items(3));
        let (srcs, sizes) = ([long.as_ptr().cast::<c_void>(), short.as_ptr().cast()], [256i32, 12]);
        let size =
            blosc2_vlcompress_ctx(cctx, srcs.as_ptr(), sizes.as_ptr(), 2, chunk.as_mut_ptr().cast(), 400);
        assert!(size > 0);
        let (mut dests, mut dest_sizes) = ([null_mut::<c_void>(); 2], [0i32; 2]);
        let nblocks = blosc2_vldecompress_ctx(
            dctx,
            chunk.as_ptr().cast(),
            size,
            dests.as_mut_ptr(),
            dest_sizes.as_mut_ptr(),
            2,
        );
        assert_eq!((nblocks, dest_sizes), (2, sizes));
        for (dest, size) in dests.into_iter().zip(dest_sizes) {
            taken(dest.cast(), usize::try_from(size).unwrap(), true);
        }
        blosc2_free_ctx(cctx);
        blosc2_free_ctx(dctx);
    }
}

#[test]
fn the_old_interface_shares_one_context() {
    blosc2_init();
    let data = items(1);
    // SAFETY: a client that keeps the rules.
    unsafe {
        assert_eq!(blosc1_set_compressor(c"blosclz".as_ptr()), 0);
        let (mut chunk, mut out) = ([0u8; 400], [0i32; ITEMS]);
        let size = blosc1_compress(5, 1, 4, 256, data.as_ptr().cast(), chunk.as_mut_ptr().cast(), 400);
        assert!(size > 0);
        assert_eq!(blosc1_decompress(chunk.as_ptr().cast(), out.as_mut_ptr().cast(), 256), CHUNK);
        assert_eq!(out[..], data);
        assert_eq!(blosc1_getitem(chunk.as_ptr().cast(), 60, 4, out.as_mut_ptr().cast()), 16);
        let (mut nbytes, mut cbytes, mut blocksize) = (0i32, 0i32, 0i32);
        let code =
            blosc2_cbuffer_sizes(chunk.as_ptr().cast(), &raw mut nbytes, &raw mut cbytes, &raw mut blocksize);
        assert_eq!((code, nbytes, cbytes), (0, 256, size));
        let size =
            blosc2_chunk_repeatval(params(), CHUNK, chunk.as_mut_ptr().cast(), 400, data.as_ptr().cast());
        assert_eq!(blosc2_decompress(chunk.as_ptr().cast(), size, out.as_mut_ptr().cast(), CHUNK), CHUNK);
        assert_eq!(out, [data[0]; ITEMS]);
        let mut shuffled = [0u8; 256];
        assert_eq!(blosc2_shuffle(4, CHUNK, data.as_ptr().cast(), shuffled.as_mut_ptr().cast()), CHUNK);
        assert_eq!(blosc2_unshuffle(4, CHUNK, shuffled.as_ptr().cast(), out.as_mut_ptr().cast()), CHUNK);
        assert_eq!(out[..], data);
    }
    blosc2_free_resources();
}

/// Adds the number of the chunk to each item.
unsafe extern "C" fn add_number(params: *mut blosc2_postfilter_params) -> c_int {
    // SAFETY: the library's promises about the parameters.
    unsafe {
        let mut dparams = blosc2_dparams::DEFAULTS;
        assert_eq!(blosc2_ctx_get_dparams((*params).ctx, &raw mut dparams), 0);
        let add = i32::try_from((*params).nchunk).unwrap();
        for at in (0..usize::try_from((*params).size).unwrap()).step_by(4) {
            let item = (*params).input.add(at).cast::<i32>().read_unaligned();
            (*params).output.add(at).cast::<i32>().write_unaligned(item + add);
        }
    }
    0
}

/// Takes the number of the block as the value of each byte.
unsafe extern "C" fn number_of_block(params: *mut blosc2_prefilter_params) -> c_int {
    // SAFETY: the library's promises about the parameters.
    unsafe {
        let mut cparams = blosc2_cparams::DEFAULTS;
        assert_eq!(blosc2_ctx_get_cparams((*params).ctx, &raw mut cparams), 0);
        assert_eq!(cparams.typesize, 4);
        let size = usize::try_from((*params).output_size).unwrap();
        ptr::write_bytes((*params).output, (*params).nblock.to_le_bytes()[0], size);
        ptr::write_bytes((*params).ttmp, 1, (*params).ttmp_nbytes);
    }
    0
}

#[test]
fn filters_of_a_context_may_ask_it() {
    for nthreads in [1, 2] {
        // SAFETY: a client that keeps the rules.
        unsafe {
            let mut preparams = super::callbacks::no_preparams();
            let mut cparams = blosc2_cparams {
                nthreads,
                prefilter: Some(number_of_block),
                preparams: &raw mut preparams,
                ..params()
            };
            let mut dparams =
                blosc2_dparams { nthreads, postfilter: Some(add_number), ..blosc2_dparams::DEFAULTS };
            let mut storage = blosc2_storage {
                cparams: &raw mut cparams,
                dparams: &raw mut dparams,
                ..blosc2_storage::DEFAULTS
            };
            let schunk = blosc2_schunk_new(&raw mut storage);
            let data = items(0);
            for _ in 0..2 {
                assert!(blosc2_schunk_append_buffer(schunk, data.as_ptr().cast(), CHUNK) > 0);
            }
            assert_eq!(read_chunk(schunk, 1)[31..33], [1, 0x0101_0102]);
            let mut part = [0i32; 4];
            assert_eq!(blosc2_schunk_get_slice_buffer(schunk, 62, 66, part.as_mut_ptr().cast()), 0);
            assert_eq!(part, [0x0101_0101, 0x0101_0101, 1, 1]);
            assert_eq!(blosc2_schunk_free(schunk), 0);
        }
    }
}

/// Where the highest byte of an item of 4 lies, which is 0 in these tests; and where the other three begin.
const HIGHEST: (usize, usize) = if cfg!(target_endian = "big") { (0, 1) } else { (3, 0) };

/// Leaves out the highest byte of each item.
unsafe extern "C" fn store(
    input: *const u8,
    input_len: i32,
    output: *mut u8,
    output_len: i32,
    _meta: u8,
    cparams: *mut blosc2_cparams,
    _chunk: *const c_void,
) -> c_int {
    // SAFETY: the library's promises about its arguments.
    unsafe {
        assert_eq!((*cparams).typesize, 4);
        if output_len < input_len / 4 * 3 {
            return 0;
        }
        for item in 0..usize::try_from(input_len / 4).unwrap() {
            assert_eq!(*input.add(4 * item + HIGHEST.0), 0);
            ptr::copy_nonoverlapping(input.add(4 * item + HIGHEST.1), output.add(3 * item), 3);
        }
    }
    input_len / 4 * 3
}

unsafe extern "C" fn load(
    input: *const u8,
    input_len: i32,
    output: *mut u8,
    output_len: i32,
    _meta: u8,
    dparams: *mut blosc2_dparams,
    _chunk: *const c_void,
) -> c_int {
    // SAFETY: the library's promises about its arguments.
    unsafe {
        let schunk = (*dparams).schunk.cast::<blosc2_schunk>();
        assert!(schunk.is_null() || (*schunk).typesize == 4);
        for item in 0..usize::try_from(input_len / 3).unwrap() {
            ptr::copy_nonoverlapping(input.add(3 * item), output.add(4 * item + HIGHEST.1), 3);
            *output.add(4 * item + HIGHEST.0) = 0;
        }
    }
    output_len
}

unsafe extern "C" fn flip(
    src: *const u8,
    dest: *mut u8,
    length: i32,
    _meta: u8,
    cparams: *mut blosc2_cparams,
    _id: u8,
) -> c_int {
    // SAFETY: the library's promises about its arguments.
    unsafe {
        assert_eq!((*cparams).typesize, 4);
        for at in 0..usize::try_from(length).unwrap() {
            *dest.add(at) = !*src.add(at);
        }
    }
    0
}

unsafe extern "C" fn flip_back(
    src: *const u8,
    dest: *mut u8,
    length: i32,
    _meta: u8,
    dparams: *mut blosc2_dparams,
    _id: u8,
) -> c_int {
    // SAFETY: the library's promises about its arguments.
    unsafe {
        assert!((*dparams).nthreads > 0);
        for at in 0..usize::try_from(length).unwrap() {
            *dest.add(at) = !*src.add(at);
        }
    }
    0
}

/// The codec and the filter of these tests.
fn register() {
    let mut codec = blosc2_codec {
        compcode: 200,
        compname: c"store".as_ptr().cast_mut(),
        complib: 1,
        version: 1,
        encoder: Some(store),
        decoder: Some(load),
    };
    let mut filter = blosc2_filter {
        id: 201,
        name: c"flip".as_ptr().cast_mut(),
        version: 1,
        forward: Some(flip),
        backward: Some(flip_back),
    };
    // SAFETY: literals live for ever; the structs are copied.
    unsafe {
        assert_eq!(blosc2_register_codec(&raw mut codec), 0);
        assert_eq!(blosc2_register_filter(&raw mut filter), 0);
    }
}

/// A handle that several threads use.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);

// SAFETY: the library allows what the tests do on several threads.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// Reads two of the three chunks of a super-chunk, the first one number `start`, and items 30 to 99.
unsafe fn read_some_of_three(schunk: *mut blosc2_schunk, start: usize) {
    for number in [start, (start + 1) % 3] {
        // SAFETY: a super-chunk of the test.
        let read = unsafe { read_chunk(schunk, i64::try_from(number).unwrap()) };
        assert_eq!(read, items(number));
    }
    let mut part = [0i32; 70];
    // SAFETY: `part` holds as many items.
    let code = unsafe { blosc2_schunk_get_slice_buffer(schunk, 30, 100, part.as_mut_ptr().cast()) };
    assert_eq!((code, part[34]), (0, items(1)[0]));
}

#[test]
fn threads_read_one_super_chunk_with_callbacks() {
    register();
    for nthreads in [1, 2] {
        // SAFETY: a client that keeps the rules.
        unsafe {
            let filters = [0, 0, 0, 0, 201, 201];
            let mut cparams = blosc2_cparams { compcode: 200, filters, nthreads, ..params() };
            let schunk = Shared(filled(true, &mut cparams, 3));
            std::thread::scope(|scope| {
                for start in 0..3 {
                    let schunk = &schunk;
                    scope.spawn(move || read_some_of_three(schunk.get(), start));
                }
            });
            assert_eq!(blosc2_schunk_free(schunk.get()), 0);
        }
    }
}

/// The parameters of an array of 6 by 5 items, with a metalayer or without.
unsafe fn plane(cparams: &mut blosc2_cparams, nmetalayers: i32) -> *mut b2nd_context_t {
    let storage = blosc2_storage { contiguous: CBool::TRUE, cparams, ..blosc2_storage::DEFAULTS };
    let layer = blosc2_metalayer {
        name: c"note".as_ptr().cast_mut(),
        content: b"abc".as_ptr().cast_mut(),
        content_len: 3,
    };
    // SAFETY: all is copied, except for the metalayer, which lives for ever.
    let ctx = unsafe {
        b2nd_create_ctx(
            &raw const storage,
            2,
            [6i64, 5].as_ptr(),
            [4i32, 3].as_ptr(),
            [2i32, 2].as_ptr(),
            c"<i4".as_ptr(),
            0,
            &raw const layer,
            nmetalayers,
        )
    };
    assert!(!ctx.is_null());
    ctx
}

unsafe fn content(array: *const b2nd_array_t) -> Vec<i32> {
    // SAFETY: an array of the test.
    unsafe {
        let mut out = vec![0i32; usize::try_from((*array).nitems).unwrap()];
        let size = i64::try_from(out.len() * 4).unwrap();
        assert_eq!(b2nd_to_cbuffer(array, out.as_mut_ptr().cast(), size), 0);
        out
    }
}

#[test]
fn arrays_are_made_sliced_and_changed() {
    // SAFETY: a client that keeps the rules.
    unsafe {
        let mut cparams = params();
        let ctx = plane(&mut cparams, 1);
        let data: Vec<i32> = (0..30).collect();
        let mut array = null_mut();
        assert_eq!(b2nd_from_cbuffer(ctx, &raw mut array, data.as_ptr().cast(), 120), 0);
        assert_eq!(content(array), data);
        assert_eq!(((*array).shape[0], (*array).shape[1]), (6, 5));

        let mut part = [0i32; 4];
        let (start, stop, shape) = ([2i64, 1], [4i64, 3], [2i64, 2]);
        let code = b2nd_get_slice_cbuffer(
            array,
            start.as_ptr(),
            stop.as_ptr(),
            part.as_mut_ptr().cast(),
            shape.as_ptr(),
            16,
        );
        assert_eq!((code, part), (0, [11, 12, 16, 17]));
        part.fill(-5);
        let code = b2nd_set_slice_cbuffer(
            part.as_ptr().cast(),
            shape.as_ptr(),
            16,
            start.as_ptr(),
            stop.as_ptr(),
            array,
        );
        assert_eq!((code, content(array)[11]), (0, -5));

        let (mut rows, mut columns) = ([5i64, 0], [1i64, 4]);
        let mut selection = [rows.as_mut_ptr(), columns.as_mut_ptr()];
        let code = b2nd_get_orthogonal_selection(
            array,
            selection.as_mut_ptr(),
            [2i64, 2].as_mut_ptr(),
            part.as_mut_ptr().cast(),
            [2i64, 2].as_mut_ptr(),
            16,
        );
        assert_eq!((code, part), (0, [26, 29, 1, 4]));
        let code = b2nd_set_orthogonal_selection(
            array,
            selection.as_mut_ptr(),
            [2i64, 2].as_mut_ptr(),
            part.as_ptr().cast(),
            [2i64, 2].as_mut_ptr(),
            16,
        );
        assert_eq!((code, content(array)[29]), (0, 29));
        let coords = [29i64, 0, 7];
        assert_eq!(b2nd_get_sparse_cbuffer(array, 3, coords.as_ptr(), part.as_mut_ptr().cast(), 12), 0);
        assert_eq!(part[..3], [29, 0, 7]);

        assert_eq!(b2nd_resize(array, [7i64, 5].as_ptr(), null()), 0);
        assert_eq!(b2nd_append(array, data.as_ptr().cast(), 20, 0), 0);
        assert_eq!(content(array)[35..], data[..5]);
        assert_eq!(b2nd_insert(array, data.as_ptr().cast(), 32, 1, 5), 0);
        assert_eq!(b2nd_delete(array, 0, 6, 2), 0);
        assert_eq!(((*array).shape[0], (*array).shape[1]), (6, 6));
        assert_eq!(b2nd_free(array), 0);
        assert_eq!(b2nd_free_ctx(ctx), 0);
    }
}

#[test]
fn arrays_are_viewed_copied_and_joined() {
    // SAFETY: a client that keeps the rules.
    unsafe {
        let mut cparams = params();
        let ctx = plane(&mut cparams, 0);
        let mut array = null_mut();
        let value = 64i32;
        assert_eq!(b2nd_full(ctx, &raw mut array, (&raw const value).cast()), 0);
        let axis = [CBool::TRUE, CBool::FALSE, CBool::FALSE];
        let (mut view, mut back) = (null_mut(), null_mut());
        assert_eq!(b2nd_expand_dims(array, &raw mut view, axis.as_ptr(), 3), 0);
        assert_eq!(((*view).ndim, (*view).shape[0]), (3, 1));
        assert_eq!(b2nd_squeeze(view, &raw mut back), 0);
        assert_eq!(content(back), [64; 30]);
        assert_eq!(b2nd_free(array), 0);
        assert_eq!(content(view), [64; 30]);
        assert_eq!(b2nd_resize(view, [1i64, 7, 5].as_ptr(), null()), 0);
        assert_eq!(content(view).len(), 35);
        assert_eq!(b2nd_free(view), 0);

        let (mut copy, mut joined, mut slice) = (null_mut(), null_mut(), null_mut());
        assert_eq!(b2nd_copy(ctx, back, &raw mut copy), 0);
        assert_eq!(b2nd_concatenate(ctx, back, copy, 0, CBool::TRUE, &raw mut joined), 0);
        assert_eq!(content(joined), [64; 60]);
        assert_eq!(b2nd_get_slice(ctx, &raw mut slice, joined, [1i64, 1].as_ptr(), [7i64, 3].as_ptr()), 0);
        assert_eq!(content(slice), [64; 12]);
        let (mut frame, mut len, mut needs_free) = (null_mut(), 0, CBool::FALSE);
        assert_eq!(b2nd_to_cframe(slice, &raw mut frame, &raw mut len, &raw mut needs_free), 0);
        let mut bytes = taken(frame, usize::try_from(len).unwrap(), needs_free.get());
        for array in [back, copy, joined, slice] {
            assert_eq!(b2nd_free(array), 0);
        }
        assert_eq!(b2nd_from_cframe(bytes.as_mut_ptr(), len, CBool::FALSE, &raw mut array), 0);
        assert_eq!(content(array), [64; 12]);
        assert_eq!(b2nd_free(array), 0);
        assert_eq!(b2nd_free_ctx(ctx), 0);
    }
}

#[test]
fn threads_read_one_array() {
    // SAFETY: a client that keeps the rules.
    unsafe {
        let mut cparams = blosc2_cparams { nthreads: 2, ..params() };
        let ctx = plane(&mut cparams, 0);
        let data: Vec<i32> = (0..30).collect();
        let mut array = null_mut();
        assert_eq!(b2nd_from_cbuffer(ctx, &raw mut array, data.as_ptr().cast(), 120), 0);
        let array = Shared(array);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    assert_eq!(content(array.get()), data);
                    let mut view = null_mut();
                    let axis = [CBool::FALSE, CBool::TRUE, CBool::FALSE];
                    assert_eq!(b2nd_expand_dims(array.get(), &raw mut view, axis.as_ptr(), 3), 0);
                    assert_eq!(content(view), data);
                    assert_eq!(b2nd_free(view), 0);
                });
            }
        });
        assert_eq!(b2nd_free(array.get()), 0);
        assert_eq!(b2nd_free_ctx(ctx), 0);
    }
}

#[test]
fn special_values_fill_super_chunks() {
    for contiguous in [false, true] {
        // SAFETY: a client that keeps the rules.
        unsafe {
            let schunk = filled(contiguous, &mut params(), 0);
            assert_eq!(blosc2_schunk_fill_special(schunk, 130, 1, CHUNK), 3);
            let mut last = [1i32; 2];
            assert_eq!(blosc2_schunk_decompress_chunk(schunk, 2, last.as_mut_ptr().cast(), 8), 8);
            assert_eq!(last, [0; 2]);
            let (mut indices, mut cparams) = (null_mut(), null_mut());
            let (mut start, mut stop) = (70i64, 130i64);
            let count = blosc2_get_slice_nchunks(schunk, &raw mut start, &raw mut stop, &raw mut indices);
            assert_eq!((count, *indices), (2, 1));
            libc::free(indices.cast());
            assert_eq!(blosc2_schunk_get_cparams(schunk, &raw mut cparams), 0);
            libc::free(cparams.cast());
            assert_eq!(blosc2_schunk_free(schunk), 0);
        }
    }
}

#[test]
fn back_ends_are_found() {
    // SAFETY: the library's own back-end stays.
    unsafe {
        let io = blosc2_get_io_cb(0);
        assert!(!io.is_null());
        assert_eq!((*io).id, 0);
    }
}

mod shown;
