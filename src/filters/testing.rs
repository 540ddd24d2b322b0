//! What the tests of the vector variants share.

/// Bytes without a pattern, the same ones each time.
pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(len)
    .collect()
}

const GUARD: usize = 64;

/// Runs `f` on the inner `len` bytes of a buffer and checks that the bytes around them keep their values.
pub(super) fn guarded(len: usize, offset: usize, f: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut buf = vec![0xa5; GUARD + offset + len + GUARD];
    f(&mut buf[GUARD + offset..GUARD + offset + len]);
    assert!(buf[..GUARD + offset].iter().chain(&buf[GUARD + offset + len..]).all(|&b| b == 0xa5));
    buf[GUARD + offset..GUARD + offset + len].to_vec()
}

/// Item sizes: all small ones, which have code of their own, and some beyond.
pub(super) fn widths() -> impl Iterator<Item = usize> {
    (1..=17).chain([20, 24, 31, 32, 33, 40, 48, 64, 80, 255, 256, 300])
}
