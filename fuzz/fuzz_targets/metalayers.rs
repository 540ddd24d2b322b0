//! Metalayers: whatever is put in comes out, and damaged headers and trailers do no harm.

#![no_main]

use blosc2::capi::meta::{blosc2_meta_add, blosc2_vlmeta_add, blosc2_vlmeta_delete, blosc2_vlmeta_get};
use blosc2::capi::util::blosc2_get_blosc2_cparams_defaults;
use libblosc2_rs_fuzz::{Schunk, int, release};
use libfuzzer_sys::fuzz_target;
use std::ffi::CString;
use std::ptr;

fuzz_target!(|data: &[u8]| {
    let mut cparams = blosc2_get_blosc2_cparams_defaults();
    let schunk = Schunk::new(&mut cparams).expect("defaults are right");
    let mut rest = data;
    let mut last = None;
    for _ in 0..6 {
        let Some(([what, name_len, content_len], tail)) = rest.split_first_chunk() else { break };
        let Some((name, tail)) = tail.split_at_checked(usize::from(name_len % 40)) else { break };
        let Some((content, tail)) = tail.split_at_checked(usize::from(*content_len)) else { break };
        rest = tail;
        let Ok(name) = CString::new(name) else { continue };
        let (mut content, len) = (content.to_vec(), int(content.len()));
        // SAFETY: for all calls: the super-chunk is alive, the name terminated, the length that of the content.
        match what % 3 {
            0 => unsafe { blosc2_meta_add(schunk.0, name.as_ptr(), content.as_mut_ptr(), len) },
            1 => {
                let to = content.as_mut_ptr();
                let code = unsafe { blosc2_vlmeta_add(schunk.0, name.as_ptr(), to, len, ptr::null_mut()) };
                if code >= 0 {
                    last = Some((name, content));
                }
                code
            }
            _ => {
                let code = unsafe { blosc2_vlmeta_delete(schunk.0, name.as_ptr()) };
                last = None;
                code
            }
        };
    }
    let mut frame = schunk.to_buffer().expect("a frame in memory");
    let opened = Schunk::from_buffer(&frame).expect("what was written can be read");
    if let Some((name, content)) = last {
        let (mut got, mut len) = (ptr::null_mut(), 0);
        // SAFETY: as above.
        let code = unsafe { blosc2_vlmeta_get(opened.0, name.as_ptr(), &raw mut got, &raw mut len) };
        assert!(code >= 0);
        let len = usize::try_from(len).expect("a length");
        // SAFETY: the library says so.
        let bytes = if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(got, len) } };
        assert_eq!(bytes, content);
        // SAFETY: the library gave it away.
        unsafe { release(got) };
    }
    // The rest of the input damages the frame, which consists of header and trailer.
    for damage in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([damage[0], damage[1]])) % frame.len();
        frame[at] = damage[2];
    }
    if let Some(schunk) = Schunk::from_buffer(&frame) {
        schunk.read_everything();
    }
});
