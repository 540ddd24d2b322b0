//! Any bytes as a chunk: whole, with threads, some items, some blocks.

#![no_main]

use blosc2::capi::chunk::{blosc2_getitem_ctx, blosc2_set_maskout, blosc2_vldecompress_block_ctx};
use blosc2::capi::facts::blosc2_cbuffer_sizes;
use libblosc2_rs_fuzz::{MAX_OUTPUT, OURS, int, release};
use libfuzzer_sys::fuzz_target;
use std::ptr;

fuzz_target!(|data: &[u8]| {
    let (mut nbytes, mut cbytes, mut blocksize) = (0, 0, 0);
    if data.len() < 16 {
        assert!(OURS.decompress(data, 1, &mut [0; 64]) < 0);
        return;
    }
    // SAFETY: 16 bytes are readable, and no more are looked at.
    unsafe {
        blosc2_cbuffer_sizes(data.as_ptr().cast(), &raw mut nbytes, &raw mut cbytes, &raw mut blocksize)
    };
    let len = usize::try_from(nbytes).unwrap_or(0);
    if len > MAX_OUTPUT {
        assert!(OURS.decompress(data, 1, &mut [0; 64]) < 0, "no room for it");
        return;
    }
    let (mut one, mut two) = (vec![0; len], vec![0; len]);
    let code = OURS.decompress(data, 1, &mut one);
    let with_threads = OURS.decompress(data, 2, &mut two);
    assert_eq!(code < 0, with_threads < 0, "{code} with one thread, {with_threads} with two");
    if code >= 0 {
        assert_eq!(one, two);
    }
    items(data, &one, code);
    some_blocks(data, len);
    one_vl_block(data);
});

/// A few items are those of the whole.
fn items(data: &[u8], whole: &[u8], code: i32) {
    let typesize = usize::from(data[3].max(1));
    let count = (whole.len() / typesize).min(10);
    for start in [0, (whole.len() / typesize).saturating_sub(count)] {
        let mut part = vec![0_u8; count * typesize];
        let to = part.as_mut_ptr().cast();
        let got = OURS.with_dctx(1, |ctx| {
            let (from, len) = (data.as_ptr().cast(), int(data.len()));
            // SAFETY: the sizes are those of the slices.
            unsafe { blosc2_getitem_ctx(ctx, from, len, int(start), int(count), to, int(part.len())) }
        });
        // A chunk whose blocks are damaged elsewhere may still give these items.
        if code >= 0 && got > 0 {
            let at = start * typesize;
            assert_eq!(part, whole[at..at + part.len()]);
        }
    }
}

/// With every other block masked.
fn some_blocks(data: &[u8], len: usize) {
    let mut dest = vec![0_u8; len];
    let mut mask = [true, false].repeat(32);
    for nblocks in [1, 2, 3, 64] {
        OURS.with_dctx(1, |ctx| {
            // SAFETY: the mask is as long as is told.
            unsafe { blosc2_set_maskout(ctx, mask.as_mut_ptr(), nblocks) };
            let (from, to) = (data.as_ptr().cast(), dest.as_mut_ptr().cast());
            // SAFETY: the sizes are those of the slices.
            unsafe { (OURS.decompress)(ctx, from, int(data.len()), to, int(len)) }
        });
    }
}

fn one_vl_block(data: &[u8]) {
    for nblock in [0, 1] {
        let (mut block, mut size) = (ptr::null_mut(), 0);
        let code = OURS.with_dctx(1, |ctx| {
            let (from, len) = (data.as_ptr().cast(), int(data.len()));
            // SAFETY: the sizes are those of the slices.
            unsafe { blosc2_vldecompress_block_ctx(ctx, from, len, nblock, &raw mut block, &raw mut size) }
        });
        if code >= 0 {
            // SAFETY: the library gave it away.
            unsafe { release(block) };
        }
    }
}
