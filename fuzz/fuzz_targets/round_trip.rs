//! What is compressed, with any parameters, comes back; the chunk does not depend on the number of threads.

#![no_main]

use libblosc2_rs_fuzz::{OURS, params};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((cparams, rest)) = params(data) else { return };
    // Repeated, so that short inputs make several blocks, too.
    let times = 1 + usize::from(data[0] >> 4) * 16;
    let src = rest.repeat(times);
    let (code, chunk) = OURS.compress(cparams, &src);
    if code <= 0 {
        // Parameters that do not go together, or no room; never a chunk that is wrong.
        return;
    }
    for nthreads in [1, 3] {
        let mut back = vec![0; src.len()];
        assert_eq!(usize::try_from(OURS.decompress(&chunk, nthreads, &mut back)), Ok(src.len()));
        assert_eq!(back, src);
    }
    let mut other = cparams;
    other.nthreads = if cparams.nthreads == 1 { 4 } else { 1 };
    assert_eq!(OURS.compress(other, &src).1, chunk);
});
