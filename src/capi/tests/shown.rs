//! What the struct of a super-chunk shows of its metalayers after each of many changes.

use super::*;
use std::ffi::{CStr, CString};

/// A variable-length metalayer as it should be shown, and where.
struct Layer {
    name: CString,
    content: Vec<u8>,
    shown: *mut blosc2_metalayer,
}

/// Checks that the array of the struct holds `layers`, where they were before, and nothing else.
unsafe fn check(schunk: *mut blosc2_schunk, layers: &mut [Layer]) {
    // SAFETY: a super-chunk of the test, and what it shows.
    unsafe {
        let slots = &(*schunk).vlmetalayers;
        assert_eq!(usize::try_from((*schunk).nvlmetalayers).unwrap(), layers.len());
        assert!(slots[layers.len()..][..8].iter().all(|slot| slot.is_null()));
        for (&slot, layer) in slots.iter().zip(layers) {
            assert_eq!(CStr::from_ptr((*slot).name), &*layer.name);
            assert!(layer.shown.is_null() || slot == layer.shown, "a layer has moved");
            layer.shown = slot;
            let mut content = vec![0; layer.content.len()];
            let len = i32::try_from(content.len()).unwrap();
            let (chunk, to) = ((*slot).content.cast(), content.as_mut_ptr().cast());
            let dctx = (*schunk).dctx;
            assert_eq!(blosc2_decompress_ctx(dctx, chunk, (*slot).content_len, to, len), len);
            assert_eq!(content, layer.content);
        }
    }
}

/// Adds a layer, replaces one or deletes one, as `step` says; the same in `layers`.
unsafe fn change(schunk: *mut blosc2_schunk, step: usize, layers: &mut Vec<Layer>) {
    let at = step * 7 % layers.len().max(1);
    let mut content = vec![u8::try_from(step % 251).unwrap(); 40 + step % 3];
    content[0] = 0;
    let (bytes, len) = (content.as_mut_ptr(), i32::try_from(content.len()).unwrap());
    // SAFETY: a super-chunk of the test; names and contents live during the calls.
    unsafe {
        match step % 4 {
            0 | 1 => {
                let name = CString::new(format!("layer {step}")).unwrap();
                let number = blosc2_vlmeta_add(schunk, name.as_ptr(), bytes, len, null_mut());
                assert_eq!(usize::try_from(number).unwrap(), layers.len());
                layers.push(Layer { name, content, shown: null_mut() });
            }
            2 => {
                let name = layers[at].name.as_ptr();
                let number = blosc2_vlmeta_update(schunk, name, bytes, len, null_mut());
                assert_eq!(usize::try_from(number).unwrap(), at);
                layers[at].content = content;
            }
            _ => {
                let left = blosc2_vlmeta_delete(schunk, layers[at].name.as_ptr());
                layers.remove(at);
                assert_eq!(usize::try_from(left).unwrap(), layers.len());
            }
        }
    }
}

#[test]
fn each_change_of_a_layer_is_shown_and_moves_no_other() {
    // A frame has room for 16 of them.
    for (contiguous, steps) in [(false, 120), (true, 60)] {
        // SAFETY: a client that keeps the rules.
        unsafe {
            let schunk = filled(contiguous, &mut params(), 0);
            let mut layers = Vec::new();
            let mut fixed = [0; 4];
            assert_eq!(blosc2_meta_add(schunk, c"fixed".as_ptr(), fixed.as_mut_ptr(), 4), 0);
            for step in 0..steps {
                change(schunk, step, &mut layers);
                check(schunk, &mut layers);
                fixed[0] += 1;
                assert_eq!(blosc2_meta_update(schunk, c"fixed".as_ptr(), fixed.as_mut_ptr(), 4), 0);
                check(schunk, &mut layers);
                assert_eq!(*(*(*schunk).metalayers[0]).content, fixed[0]);
            }
            assert_eq!(blosc2_schunk_free(schunk), 0);
        }
    }
}

#[test]
fn changes_through_a_view_are_shown_by_all_handles_that_have_the_layers() {
    // Those of a frame belong to both, which show them when they are asked for them; in lists each has its own.
    for contiguous in [false, true] {
        // SAFETY: a client that keeps the rules.
        unsafe {
            let mut cparams = params();
            let cparams = &raw mut cparams;
            let storage =
                blosc2_storage { contiguous: contiguous.into(), cparams, ..blosc2_storage::DEFAULTS };
            let (shape, chunk) = ([6i64, 1], [4i32, 1]);
            let (shape, chunk) = (shape.as_ptr(), chunk.as_ptr());
            let ctx = b2nd_create_ctx(&raw const storage, 2, shape, chunk, chunk, null(), 0, null(), 0);
            let (mut base, mut view) = (null_mut(), null_mut());
            assert_eq!(b2nd_zeros(ctx, &raw mut base), 0);
            assert_eq!(b2nd_squeeze(base, &raw mut view), 0);
            let handles = [(*base).sc, (*view).sc];
            let fixed = (*(*handles[1]).metalayers[0]).content;
            let mut layers = [Vec::new(), Vec::new()];
            for step in 0..60 {
                let which = step / 4 % 2;
                let layers = &mut layers[if contiguous { 0 } else { which }];
                change(handles[which], step, layers);
                layers.iter_mut().for_each(|layer| layer.shown = null_mut());
                check(handles[which], layers);
            }
            let mut content = *b"abc";
            let added = blosc2_meta_add(handles[0], c"more".as_ptr(), content.as_mut_ptr(), 3);
            assert_eq!(added >= 0, !contiguous);
            assert!(blosc2_vlmeta_exists(handles[1], c"none".as_ptr()) < 0);
            let counts = ((*handles[0]).nmetalayers, (*handles[1]).nmetalayers);
            assert_eq!(counts, (if contiguous { 1 } else { 2 }, 1));
            assert_eq!((*(*handles[1]).metalayers[0]).content, fixed);
            assert_eq!((b2nd_free(view), b2nd_free(base), b2nd_free_ctx(ctx)), (0, 0, 0));
        }
    }
}

#[test]
fn what_a_client_changes_in_the_layers_is_what_is_there() {
    for contiguous in [false, true] {
        // SAFETY: a client that keeps the rules.
        unsafe {
            let schunk = filled(contiguous, &mut params(), 0);
            let (mut content, mut layers) = (*b"fixed", Vec::new());
            assert_eq!(blosc2_meta_add(schunk, c"fixed".as_ptr(), content.as_mut_ptr(), 5), 0);
            change(schunk, 0, &mut layers);
            change(schunk, 1, &mut layers);
            let fixed = (*schunk).metalayers[0];
            *(*fixed).content.add(4) = b'!';
            assert_eq!(blosc2_meta_update(schunk, c"fixed".as_ptr(), content.as_mut_ptr(), 1), 0);
            assert_eq!(std::slice::from_raw_parts((*fixed).content, 5), b"fixe!");
            let renamed = (*schunk).vlmetalayers[0];
            (*renamed).name.write(c"L".as_ptr().read());
            assert_eq!(blosc2_vlmeta_exists(schunk, c"Layer 0".as_ptr()), 0);
            assert!(blosc2_vlmeta_exists(schunk, c"layer 0".as_ptr()) < 0);
            (*schunk).vlmetalayers.swap(0, 1);
            assert_eq!(blosc2_vlmeta_exists(schunk, c"Layer 0".as_ptr()), 1);
            (*schunk).nvlmetalayers = 1;
            assert!(blosc2_vlmeta_exists(schunk, c"Layer 0".as_ptr()) < 0);
            for part in [(*renamed).name.cast(), (*renamed).content.cast(), renamed.cast()] {
                libc::free(part);
            }
            layers.remove(0);
            layers[0].shown = null_mut();
            change(schunk, 4, &mut layers);
            check(schunk, &mut layers);
            assert_eq!(blosc2_schunk_free(schunk), 0);
        }
    }
}

#[test]
fn a_chunk_that_a_client_took_is_missing() {
    // SAFETY: a client that keeps the rules.
    unsafe {
        let schunk = filled(false, &mut params(), 3);
        libc::free((*(*schunk).data.add(1)).cast());
        (*schunk).data.add(1).write(null_mut());
        let (mut chunk, mut needs_free) = (null_mut(), CBool::TRUE);
        assert_eq!(blosc2_schunk_get_chunk(schunk, 1, &raw mut chunk, &raw mut needs_free), 0);
        assert!(chunk.is_null());
        assert_eq!(blosc2_schunk_delete_chunk(schunk, 1), 2);
        libc::free((*(*schunk).data).cast());
        (*schunk).data.write(null_mut());
        assert_eq!(blosc2_schunk_free(schunk), 0);
    }
}
