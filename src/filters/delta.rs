//! DELTA: XOR with the words before (first block of a chunk) or with the first block (all others).
//!
//! The kernels work on words of [`word_size`] bytes; what is left of a block after its last whole word is stored as
//! it is. (The C library's encoder loses those bytes; its decoder expects them unchanged.)

#[cfg(target_arch = "x86_64")]
mod sse2;

/// Bytes per word for items of `typesize` bytes: 1, 2, 4 or 8.
#[must_use]
pub fn word_size(typesize: usize) -> usize {
    match typesize {
        1 | 2 | 4 | 8 => typesize,
        _ if typesize % 8 == 0 && typesize > 0 => 8,
        _ => 1,
    }
}

/// Encodes the first block of a chunk: each word XOR the word before it.
///
/// # Panics
///
/// If the lengths differ.
pub fn encode_first(typesize: usize, src: &[u8], dest: &mut [u8]) {
    assert!(src.len() == dest.len());
    let word = word_size(typesize);
    let (body, tail) = src.split_at(src.len() - src.len() % word);
    let (dest, dest_tail) = dest.split_at_mut(body.len());
    dest_tail.copy_from_slice(tail);
    if body.is_empty() {
        return;
    }
    dest[..word].copy_from_slice(&body[..word]);
    xor_into(&mut dest[word..], &body[word..], body);
}

/// Undoes [`encode_first`].
///
/// # Panics
///
/// If the lengths differ.
pub fn decode_first(typesize: usize, src: &[u8], dest: &mut [u8]) {
    assert!(src.len() == dest.len());
    match word_size(typesize) {
        1 => running_xor::<1>(src, dest),
        2 => running_xor::<2>(src, dest),
        4 => running_xor::<4>(src, dest),
        _ => running_xor::<8>(src, dest),
    }
}

/// The running XOR of words of `W` bytes.
fn running_xor<const W: usize>(src: &[u8], dest: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    let done = sse2::running_xor::<W>(src, dest);
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    running_xor_from::<W>(done, src, dest);
}

/// The running XOR from byte `done` on, 8 bytes at a time; before, it is there already, in whole words.
fn running_xor_from<const W: usize>(done: usize, src: &[u8], dest: &mut [u8]) {
    // A multiplication by `spread` repeats a word that is alone in the low bytes.
    let spread = match W {
        1 => 0x0101_0101_0101_0101,
        2 => 0x0001_0001_0001_0001,
        4 => 0x0000_0001_0000_0001,
        _ => 1,
    };
    let (before, dest) = dest.split_at_mut(done);
    let before = before.last_chunk::<W>().copied().unwrap_or([0; W]);
    let word = before.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let mut last = word.wrapping_mul(spread); // the last word of the output so far, repeated
    let mut chunks = src[done..].chunks_exact(8);
    let mut dest_chunks = dest.chunks_exact_mut(8);
    for (s, d) in (&mut chunks).zip(&mut dest_chunks) {
        let mut x = u64::from_le_bytes(s.try_into().expect("8 bytes"));
        if W <= 1 {
            x ^= x << 8;
        }
        if W <= 2 {
            x ^= x << 16;
        }
        if W <= 4 {
            x ^= x << 32;
        }
        d.copy_from_slice(&(x ^ last).to_le_bytes());
        // `last` waits only for itself, so that the chunks overlap in time.
        last ^= (x >> (64 - 8 * W)).wrapping_mul(spread);
    }
    let (src, dest) = (chunks.remainder(), dest_chunks.into_remainder());
    let body = src.len() - src.len() % W;
    let last = last.to_le_bytes();
    for b in 0..body {
        let before = if b < W { last[b] } else { dest[b - W] };
        dest[b] = src[b] ^ before;
    }
    dest[body..].copy_from_slice(&src[body..]);
}

/// Encodes or decodes, which is the same, a block other than the first: XOR with the beginning of the chunk's data,
/// `reference`.
///
/// # Panics
///
/// If `src` and `dest` differ in length, or `reference` is shorter.
pub fn xor(typesize: usize, reference: &[u8], src: &[u8], dest: &mut [u8]) {
    assert!(src.len() == dest.len() && reference.len() >= src.len());
    let body = src.len() - src.len() % word_size(typesize);
    xor_into(&mut dest[..body], &src[..body], reference);
    dest[body..].copy_from_slice(&src[body..]);
}

/// `dest = a ^ b`; `b` may be longer. Compiled to vector code.
fn xor_into(dest: &mut [u8], a: &[u8], b: &[u8]) {
    for ((d, a), b) in dest.iter_mut().zip(a).zip(b) {
        *d = a ^ b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| u8::try_from(i * i * 7 % 251).unwrap()).collect()
    }

    #[test]
    fn words_are_items_of_1_2_4_or_8_bytes_else_8_or_1() {
        for (typesize, word) in
            [(1, 1), (2, 2), (3, 1), (4, 4), (6, 1), (8, 8), (12, 1), (16, 8), (24, 8), (255, 1)]
        {
            assert_eq!(word_size(typesize), word);
        }
    }

    #[test]
    fn first_block_is_the_xor_with_the_word_before() {
        for typesize in [1, 2, 3, 4, 7, 8, 16] {
            for len in 0..100 {
                let (src, w) = (bytes(len), word_size(typesize));
                let body = len / w * w;
                let want: Vec<u8> = (0..len)
                    .map(|b| if (w..body).contains(&b) { src[b] ^ src[b - w] } else { src[b] })
                    .collect();
                let mut dest = vec![0xee; len];
                encode_first(typesize, &src, &mut dest);
                assert_eq!(dest, want, "typesize {typesize} length {len}");
                let mut back = vec![0xee; len];
                decode_first(typesize, &dest, &mut back);
                assert_eq!(back, src, "typesize {typesize} length {len}");
                back.fill(0xee);
                match w {
                    1 => running_xor_from::<1>(0, &dest, &mut back),
                    2 => running_xor_from::<2>(0, &dest, &mut back),
                    4 => running_xor_from::<4>(0, &dest, &mut back),
                    _ => running_xor_from::<8>(0, &dest, &mut back),
                }
                assert_eq!(back, src, "without vectors, typesize {typesize} length {len}");
            }
        }
    }

    #[test]
    fn other_blocks_are_the_xor_with_the_reference_but_for_the_tail() {
        for typesize in [1, 2, 4, 8, 12, 16] {
            for len in 0..70 {
                let src = bytes(len);
                let reference: Vec<u8> = bytes(len + 5).iter().map(|b| b.wrapping_mul(31) ^ 0x5a).collect();
                let body = len - len % word_size(typesize);
                let mut dest = vec![0xee; len];
                xor(typesize, &reference, &src, &mut dest);
                for b in 0..len {
                    assert_eq!(dest[b], if b < body { src[b] ^ reference[b] } else { src[b] });
                }
                let mut back = vec![0xee; len];
                xor(typesize, &reference, &dest, &mut back);
                assert_eq!(back, src);
            }
        }
    }

    #[test]
    fn known_vectors() {
        let items: Vec<u8> = (1..=8u8).flat_map(|i| [3 * i; 4]).collect();
        let mut dest = [0; 32];
        encode_first(4, &items, &mut dest);
        let want = [0x03, 0x05, 0x0f, 0x05, 0x03, 0x1d, 0x07, 0x0d];
        assert_eq!(dest.as_slice(), want.iter().flat_map(|&b| [b; 4]).collect::<Vec<u8>>());
        let bytes: Vec<u8> = (0..16u8).map(|i| 37u8.wrapping_mul(i).wrapping_add(11)).collect();
        let mut dest = [0; 16];
        encode_first(16, &bytes, &mut dest);
        assert_eq!(
            dest,
            [0x0b, 0x30, 0x55, 0x7a, 0x9f, 0xc4, 0xe9, 0x0e, 0x38, 0x68, 0x28, 0xd8, 0x58, 0x28, 0xf8, 0x38]
        );
    }
}
