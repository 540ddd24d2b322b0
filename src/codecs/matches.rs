//! Copies of literals and of earlier output: what the decoders of the LZ77 codecs come down to.
//!
//! Copies in whole vectors write beyond their end, and choose their way by few branches that are taken alike most of
//! the time: a wrong guess costs as much as copying a hundred bytes.

use super::place::{Source, Target};
use crate::copy;

/// Bytes that [`copy_long`] and [`copy_literals`] may write, and the latter read, past their end.
pub(crate) const SLACK: usize = 64;
/// Bytes that [`copy_vector`] writes, and the most that it copies.
pub(crate) const VECTOR: usize = 32;
/// From this many bytes on, runs of a byte are filled in by a function, and what ends with its buffer is laid out in
/// ever larger pieces.
const VERY_LONG: usize = 512;
/// From this many bytes on, calling the memory functions of the C library pays; a loop over vectors needs no time to
/// start.
const CALL_PAYS: usize = 4096;
/// Patterns below this length are laid out a few times before they are copied in growing pieces.
const SHORT_PATTERN: usize = 128;

/// Copies `len` literals.
///
/// # Safety
///
/// `len + SLACK` bytes exist at both places.
#[inline(always)]
pub(crate) unsafe fn copy_literals(mut from: Source<'_>, mut to: Target<'_>, len: usize) {
    if len >= CALL_PAYS {
        // SAFETY: the caller's promise.
        unsafe { to.copy_from(from, len) };
        return;
    }
    let end = to.ahead(len);
    loop {
        // SAFETY: `to` is before `end`, or there are no literals; 64 bytes follow in both cases, and in `from` too.
        unsafe { to.store(from.load::<32>()) };
        // SAFETY: the same.
        unsafe { to.ahead(32).store(from.ahead(32).load::<32>()) };
        (from, to) = (from.ahead(64), to.ahead(64));
        if to >= end {
            return;
        }
    }
}

/// Copies sixteen bytes from `distance` bytes back, as if one by one.
///
/// # Safety
///
/// `distance >= 1`; that many bytes precede `to`, and 16 follow. If `AVX2`, the CPU has it.
#[inline(always)]
pub(crate) unsafe fn copy_short<const AVX2: bool>(to: Target<'_>, distance: usize) {
    if !(AVX2 || cfg!(all(target_arch = "aarch64", target_feature = "neon"))) && distance >= 16 {
        // Without permutations of bytes, patterns cost more than a branch that goes wrong.
        // SAFETY: the caller's promise.
        return unsafe { to.copy_from_back::<16>(distance) };
    }
    let from = to.back(distance);
    // SAFETY: what is loaded begins before `to` and ends less than 16 bytes after. The CPU has AVX2 if `AVX2`.
    #[cfg(target_arch = "x86_64")]
    let bytes = unsafe { if AVX2 { from.load_halves() } else { from.load() } };
    // SAFETY: the same.
    #[cfg(not(target_arch = "x86_64"))]
    let bytes = unsafe { from.load::<16>() };
    // SAFETY: 16 bytes follow. The CPU has AVX2 if `AVX2`.
    unsafe { to.store(repeat::<AVX2>(bytes, distance.min(16))) };
}

/// Whether [`copy_rest_of_item`] copies `len` bytes from `distance` bytes back.
#[inline(always)]
pub(crate) fn is_rest_of_item(distance: usize, len: usize) -> bool {
    distance == 8 && len & !3 == 4
}

/// Copies 4 to 7 bytes from 8 bytes back: in an integer of 64 bits, what follows the literals is that of the one
/// before.
///
/// Whole vectors would take along the literals, which were stored just now and by themselves, and the CPU would wait
/// until they are in the cache. Neither half of these bytes has any of them.
///
/// # Safety
///
/// `len` is 4 to 7; 8 bytes precede `to`, and that many follow.
#[inline(always)]
pub(crate) unsafe fn copy_rest_of_item(to: Target<'_>, len: usize) {
    debug_assert!(is_rest_of_item(8, len));
    // SAFETY: the caller's promise; what is copied lies before.
    unsafe { to.copy_from_back::<4>(8) };
    // SAFETY: the same.
    unsafe { to.ahead(len - 4).copy_from_back::<4>(8) };
}

/// Whether [`copy_vector`] copies `len` bytes from `distance` bytes back.
///
/// `distance >= 1`, or the answer means nothing.
#[inline(always)]
pub(crate) fn fits_vector<const AVX2: bool>(_distance: usize, len: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        return len <= usize::from(PATTERNS[_distance.min(VECTOR)].len);
    }
    len <= 16
}

/// Copies as many bytes from `distance` bytes back as [`fits_vector`] allows, as if one by one, without a branch if
/// `AVX2`.
///
/// # Safety
///
/// `distance >= 1`; that many bytes precede `to`, and VECTOR follow. If `AVX2`, the CPU has it.
#[inline(always)]
pub(crate) unsafe fn copy_vector<const AVX2: bool>(to: Target<'_>, distance: usize) {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        let pattern = &PATTERNS[distance.min(VECTOR)];
        let from = to.back(distance);
        // SAFETY: what is loaded begins before `to` and ends less than 16 bytes after.
        let first = unsafe { from.load::<16>() };
        // SAFETY: the same, as what is 16 bytes ahead begins before `to` too.
        let second = unsafe { from.ahead(usize::from(pattern.second)).load::<16>() };
        // SAFETY: the CPU has AVX2.
        unsafe { to.store(permute([first, second], &pattern.order)) };
        return;
    }
    // SAFETY: the caller's promises.
    unsafe { copy_short::<AVX2>(to, distance) };
}

/// Copies two bytes after the sixteen that [`copy_short`] has copied from `distance` bytes back.
///
/// # Safety
///
/// `distance >= 1`; 16 bytes precede `to` that repeat those from `distance` bytes before them, and 2 follow.
#[inline(always)]
pub(crate) unsafe fn copy_two_more(to: Target<'_>, distance: usize) {
    // What repeats every `distance` bytes does so every few times as many: two bytes and more, and there by now.
    let distance = distance.max(usize::from(WHOLE_IN_16[distance.min(16)]));
    // SAFETY: the caller's promise, and not less than 2 bytes back.
    unsafe { to.copy_from_back::<2>(distance) };
}

/// Copies `len` bytes from `distance` bytes back, as if one by one.
///
/// # Safety
///
/// `distance >= 1`; that many bytes precede `to`, and `len + SLACK` follow. If `AVX2`, the CPU has it.
#[inline(always)]
pub(crate) unsafe fn copy_long<const AVX2: bool>(to: Target<'_>, distance: usize, len: usize) {
    if distance <= 16 {
        if len < VERY_LONG || (distance > 1 && len < CALL_PAYS) {
            // SAFETY: the caller's promises.
            return unsafe { repeat_pattern::<AVX2>(to, distance, len) };
        }
    } else if len < CALL_PAYS {
        // SAFETY: the caller's promises.
        return unsafe { copy_vectors(to, distance, len) };
    }
    // SAFETY: the caller's promises.
    unsafe { copy_very_long(to, distance, len) };
}

/// [`copy_long`] for distances above 16.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn copy_vectors(mut to: Target<'_>, mut distance: usize, len: usize) {
    let end = to.ahead(len);
    if distance < 32 {
        // SAFETY: SLACK bytes follow, and what is copied lies before what it is copied to.
        unsafe { to.copy_from_back::<16>(distance) };
        // SAFETY: the same.
        unsafe { to.ahead(16).copy_from_back::<16>(distance) };
        to = to.ahead(32);
        if to >= end {
            return;
        }
        distance *= 2;
    }
    loop {
        // SAFETY: `to` is before `end`, or nothing is wanted, so SLACK bytes follow; what is copied lies before.
        unsafe { to.copy_from_back::<32>(distance) };
        // SAFETY: the same.
        unsafe { to.ahead(32).copy_from_back::<32>(distance) };
        to = to.ahead(64);
        if to >= end {
            return;
        }
    }
}

/// [`copy_long`] for distances up to 16.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn repeat_pattern<const AVX2: bool>(mut to: Target<'_>, distance: usize, len: usize) {
    let end = to.ahead(len);
    let from = to.back(distance);
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        // What a load brings along from after the pattern may have been stored by something else just before, and then
        // the CPU waits until both are in the cache.
        let halves: [[u8; 16]; 2] = if distance <= 8 {
            // SAFETY: the eight bytes begin before `to`, and end less than 8 bytes after.
            let eight = unsafe { from.load::<8>() };
            // SAFETY: both types are 32 bytes.
            unsafe { std::mem::transmute::<[[u8; 8]; 4], [[u8; 16]; 2]>([eight; 4]) }
        } else {
            // SAFETY: the sixteen bytes begin before `to`, and end less than 8 bytes after.
            [unsafe { from.load::<16>() }; 2]
        };
        // SAFETY: the CPU has AVX2.
        let pattern = unsafe { permute(halves, &PATTERNS[distance].order) };
        let step = usize::from(WHOLE_IN_32[distance]);
        loop {
            // SAFETY: `to` is before `end`, or nothing is wanted, so SLACK bytes follow.
            unsafe { to.store(pattern) };
            // SAFETY: the same; `step` is at most 32.
            unsafe { to.ahead(step).store(pattern) };
            to = to.ahead(2 * step);
            if to >= end {
                return;
            }
        }
    }
    // SAFETY: what is loaded begins before `to` and ends less than 16 bytes after.
    let bytes = unsafe { from.load::<16>() };
    // SAFETY: nothing is asked for without AVX2.
    let pattern = unsafe { repeat::<false>(bytes, distance) };
    let step = usize::from(WHOLE_IN_16[distance]);
    loop {
        // SAFETY: as above.
        unsafe { to.store(pattern) };
        // SAFETY: the same; `step` is at most 16.
        unsafe { to.ahead(step).store(pattern) };
        to = to.ahead(2 * step);
        if to >= end {
            return;
        }
    }
}

/// [`copy_long`] for lengths from VERY_LONG on.
///
/// # Safety
///
/// As there.
#[cold]
#[inline(never)]
unsafe fn copy_very_long(to: Target<'_>, distance: usize, len: usize) {
    if distance == 1 {
        // SAFETY: the byte before `to` exists.
        let [byte] = unsafe { to.back(1).load() };
        // SAFETY: the caller's promise.
        return unsafe { to.fill(byte, len) };
    }
    let mut done = 0;
    if distance < SHORT_PATTERN {
        done = VERY_LONG - SLACK;
        // SAFETY: `done` and SLACK are less than `len`.
        unsafe { copy_long::<false>(to, distance, done) };
    }
    // SAFETY: the caller's promises.
    unsafe { copy_growing(to, distance, len, done) };
}

/// Copies `len` bytes from `distance` bytes back, and nothing beyond, in ever larger pieces. The first `done` of them
/// are there already.
///
/// # Safety
///
/// `distance >= 1`; that many bytes precede `to`, and `len` follow.
unsafe fn copy_growing(to: Target<'_>, distance: usize, len: usize, mut done: usize) {
    while done < len {
        // Everything so far consists of periods of `distance` bytes, so a multiple of it leads to the same bytes.
        let back = (done / distance + 1) * distance;
        let n = back.min(len - done);
        // SAFETY: `back <= done + distance`, so it does not reach past what precedes `to`; `n <= back`, and
        // `done + n <= len`.
        unsafe { copy_piece(to.ahead(done), back, n) };
        done += n;
    }
}

/// Copies `len` bytes from `back` bytes back, which do not overlap; a few without calling a function.
///
/// # Safety
///
/// `len <= back`; `back` bytes precede `to`, and `len` follow.
#[inline(always)]
unsafe fn copy_piece(to: Target<'_>, back: usize, len: usize) {
    /// In two pieces of `N` bytes, which may overlap.
    ///
    /// # Safety
    ///
    /// As for [`copy_piece`]; `N <= len`.
    #[inline(always)]
    unsafe fn in_two<const N: usize>(to: Target<'_>, back: usize, len: usize) {
        // SAFETY: the caller's promise, as `N <= len`.
        unsafe { to.copy_from_back::<N>(back) };
        // SAFETY: the same.
        unsafe { to.ahead(len - N).copy_from_back::<N>(back) };
    }
    match len {
        // SAFETY: the caller's promise, here and below.
        16..=32 => unsafe { in_two::<16>(to, back, len) },
        // SAFETY: as above.
        8..16 => unsafe { in_two::<8>(to, back, len) },
        // SAFETY: as above.
        4..8 => unsafe { in_two::<4>(to, back, len) },
        // SAFETY: as above.
        _ => unsafe { to.copy_apart(back, len) },
    }
}

/// Copies `len` bytes from `distance` bytes back to `op`, as if one by one, up to the very end of `dest`. If that is
/// not near, bytes after the copy may change too.
///
/// # Panics
///
/// If `op`, `distance` or `len` reaches out of `dest`, or `distance` is 0.
fn copy_exactly(dest: &mut [u8], op: usize, distance: usize, len: usize) {
    assert!((1..=op).contains(&distance) && op <= dest.len() && len <= dest.len() - op);
    if distance == 1 {
        let byte = dest[op - 1];
        dest[op..op + len].fill(byte);
        return;
    }
    let room = (dest.len() - op).saturating_sub(SLACK);
    let to = Target::new(dest).ahead(op);
    if len <= distance {
        // SAFETY: by the assertion, and as just compared.
        return unsafe { copy_piece(to, distance, len) };
    }
    let mut done = 0;
    if distance < SHORT_PATTERN {
        done = len.min(room).min(VERY_LONG - SLACK);
        if done > 0 {
            // SAFETY: `distance` bytes precede by the assertion, and `room` leaves SLACK bytes.
            unsafe { copy_long::<false>(to, distance, done) };
        } else if distance < 16 && len >= 16 {
            // SAFETY: `distance` bytes precede, and 16 follow.
            let bytes = unsafe { to.back(distance).load::<16>() };
            // SAFETY: the same; nothing is asked for without AVX2.
            unsafe { to.store(repeat::<false>(bytes, distance)) };
            done = 16;
        }
    }
    // SAFETY: by the assertion.
    unsafe { copy_growing(to, distance, len, done) };
}

/// [`copy_exactly`] in vectors, unless the very end is near.
///
/// # Safety
///
/// `op <= dest.len()`. If `AVX2`, the CPU has it.
///
/// # Panics
///
/// If `distance` or `len` reaches out of `dest`.
#[inline(always)]
pub(crate) unsafe fn copy_safely<const AVX2: bool>(dest: &mut [u8], op: usize, distance: usize, len: usize) {
    let room = dest.len() - op;
    assert!((1..=op).contains(&distance) && len <= room);
    let to = Target::new(dest).ahead(op);
    if len <= 16 && room >= 16 {
        // SAFETY: by the assertion, and as just compared. The CPU has AVX2 if `AVX2`.
        unsafe { copy_short::<AVX2>(to, distance) };
    } else if len + SLACK <= room {
        // SAFETY: the same.
        unsafe { copy_long::<AVX2>(to, distance, len) };
    } else if distance >= 16 && (16..VERY_LONG).contains(&len) {
        // SAFETY: by the assertion, and as just compared.
        unsafe { copy_pieces(to, distance, len) };
    } else {
        copy_exactly(dest, op, distance, len);
    }
}

/// Copies `len` bytes from `distance` bytes back, and nothing beyond.
///
/// # Safety
///
/// `distance` and `len` are at least 16; that many bytes precede and follow `to`.
#[inline(always)]
pub(crate) unsafe fn copy_pieces(to: Target<'_>, distance: usize, len: usize) {
    let last = to.ahead(len - 16);
    let mut to = to;
    while to < last {
        // SAFETY: `to` is before the last 16 bytes.
        unsafe { to.copy_from_back::<16>(distance) };
        to = to.ahead(16);
    }
    // SAFETY: these are the last 16 bytes. All before them is there by now, and they come from there.
    unsafe { last.copy_from_back::<16>(distance) };
}

/// Copies literals to a place of the same length. A few are copied in two pieces that overlap: calling a function for
/// them would take longer than doing it.
#[inline(always)]
pub(crate) fn copy_few_literals(from: &[u8], to: &mut [u8]) {
    #[inline(always)]
    fn in_two<const N: usize>(from: &[u8], to: &mut [u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut::<N>()? = first;
        *to.last_chunk_mut::<N>()? = last;
        Some(())
    }
    assert!(from.len() == to.len());
    let copied = match from.len() {
        0 => Some(()),
        1 => in_two::<1>(from, to),
        2..=3 => in_two::<2>(from, to),
        4..=7 => in_two::<4>(from, to),
        8..=15 => in_two::<8>(from, to),
        16..=32 => in_two::<16>(from, to),
        33..=64 => in_two::<32>(from, to),
        _ => None,
    };
    if copied.is_none() {
        copy::copy(from, to);
    }
}

/// The largest multiple of each period that is at most 16.
const WHOLE_IN_16: [u8; 17] = whole_periods(16);
/// The same with 32.
#[cfg(target_arch = "x86_64")]
const WHOLE_IN_32: [u8; 17] = whole_periods(32);

const fn whole_periods(width: u8) -> [u8; 17] {
    let mut steps = [0; 17];
    let mut period: u8 = 1;
    while period <= 16 {
        steps[period as usize] = width / period * period;
        period += 1;
    }
    steps
}

/// Sixteen bytes that repeat the first `period` bytes of `bytes`, for a period of 1 to 16.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn repeat<const AVX2: bool>(bytes: [u8; 16], period: usize) -> [u8; 16] {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::{__m128i, _mm_shuffle_epi8};
        // SAFETY: both types are sixteen bytes without invalid values.
        let bytes = unsafe { std::mem::transmute::<[u8; 16], __m128i>(bytes) };
        // SAFETY: as above.
        let order = unsafe { std::mem::transmute::<[u8; 16], __m128i>(PATTERNS[period].order[0]) };
        // SAFETY: a CPU with AVX2 has SSSE3.
        let repeated = unsafe { _mm_shuffle_epi8(bytes, order) };
        // SAFETY: as above.
        return unsafe { std::mem::transmute::<__m128i, [u8; 16]>(repeated) };
    }
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    {
        use std::arch::aarch64::{uint8x16_t, vqtbl1q_u8};
        // SAFETY: both types are sixteen bytes without invalid values.
        let bytes = unsafe { std::mem::transmute::<[u8; 16], uint8x16_t>(bytes) };
        // SAFETY: as above.
        let order = unsafe { std::mem::transmute::<[u8; 16], uint8x16_t>(PATTERNS[period].order[0]) };
        // SAFETY: the target has NEON.
        let repeated = unsafe { vqtbl1q_u8(bytes, order) };
        // SAFETY: as above.
        unsafe { std::mem::transmute::<uint8x16_t, [u8; 16]>(repeated) }
    }
    #[cfg(not(all(target_arch = "aarch64", target_feature = "neon")))]
    {
        let mut bits = 8 * period;
        let mut pattern = u128::from_le_bytes(bytes);
        if bits < 128 {
            pattern &= (1 << bits) - 1;
        }
        while bits < 128 {
            pattern |= pattern << bits;
            bits *= 2;
        }
        pattern.to_le_bytes()
    }
}

/// Permutes each half of 32 bytes.
///
/// # Safety
///
/// The CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn permute(halves: [[u8; 16]; 2], order: &[[u8; 16]; 2]) -> [u8; 32] {
    use std::arch::x86_64::{__m256i, _mm256_shuffle_epi8};
    // SAFETY: both types are 32 bytes without invalid values.
    let bytes = unsafe { std::mem::transmute::<[[u8; 16]; 2], __m256i>(halves) };
    // SAFETY: as above.
    let order = unsafe { std::mem::transmute::<[[u8; 16]; 2], __m256i>(*order) };
    // SAFETY: the CPU has AVX2.
    let permuted = unsafe { _mm256_shuffle_epi8(bytes, order) };
    // SAFETY: as above.
    unsafe { std::mem::transmute::<__m256i, [u8; 32]>(permuted) }
}

/// What becomes of the bytes at a distance when they are copied in one vector.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Pattern {
    /// Which byte goes where; each half permutes sixteen bytes.
    order: [[u8; 16]; 2],
    /// How far the sixteen bytes for the second half are ahead of those for the first one.
    second: u8,
    /// The number of bytes that are right.
    len: u8,
}

/// The patterns by distance; the last one is that of larger distances, too.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static PATTERNS: [Pattern; VECTOR + 1] = {
    let mut patterns = [Pattern { order: [[0; 16]; 2], second: 0, len: 0 }; VECTOR + 1];
    let mut distance = 1;
    while distance <= VECTOR {
        let repeats = distance <= 16;
        let mut i = 0;
        while i < 32 {
            patterns[distance].order[i / 16][i % 16] = if repeats { i % distance } else { i % 16 } as u8;
            i += 1;
        }
        patterns[distance].second = if repeats { 0 } else { 16 };
        patterns[distance].len = if repeats { VECTOR } else { distance } as u8;
        distance += 1;
    }
    patterns
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixty bytes, then `len` repetitions of the last `distance` of them, and zeros.
    fn expected(distance: usize, len: usize, total: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..60).collect();
        (0..len).for_each(|_| bytes.push(bytes[bytes.len() - distance]));
        bytes.resize(total, 0);
        bytes
    }

    /// Calls `check` for copies of many distances and lengths; of few under Miri, where each takes long.
    fn for_each_copy(check: impl Fn(usize, usize)) {
        let chosen = |value: &usize| !cfg!(miri) || [1, 3, 15, 16, 17, 60, 100, 512].contains(value);
        for distance in (1..=60).filter(chosen) {
            let lengths = (0..140).chain([255, 256, 448, 511, 512, 513, 1000, 5000]);
            lengths.filter(chosen).for_each(|len| check(distance, len));
        }
    }

    #[test]
    fn exact_copies_are_right_at_any_distance_from_the_end() {
        for_each_copy(|distance, len| {
            for room in [0, 1, 63, 64, 65, 200] {
                let total = 60 + len + room;
                let mut bytes = expected(distance, 0, total);
                copy_exactly(&mut bytes, 60, distance, len);
                let expected = expected(distance, len, total);
                assert!(bytes[..60 + len] == expected[..60 + len], "distance {distance}, length {len}");
            }
        });
    }

    fn safe_copies_are_right<const AVX2: bool>() {
        for_each_copy(|distance, len| {
            for room in [0, 1, 63, 64, 65, 200] {
                let total = 60 + len + room;
                let mut bytes = expected(distance, 0, total);
                // SAFETY: the caller asked for AVX2.
                unsafe { copy_safely::<AVX2>(&mut bytes, 60, distance, len) };
                let expected = expected(distance, len, total);
                assert!(bytes[..60 + len] == expected[..60 + len], "distance {distance}, length {len}");
            }
        });
    }

    #[test]
    fn few_literals_are_copied_whole() {
        for len in 0..100 {
            let from: Vec<u8> = (1..).take(len).collect();
            let mut to = vec![0; len];
            copy_few_literals(&from, &mut to);
            assert_eq!(from, to);
        }
    }

    fn long_copies_are_right<const AVX2: bool>() {
        for_each_copy(|distance, len| {
            let total = 60 + len + SLACK;
            let mut bytes = expected(distance, 0, total);
            // SAFETY: 60 bytes precede and SLACK follow; the caller asked for AVX2.
            unsafe { copy_long::<AVX2>(Target::new(&mut bytes).ahead(60), distance, len) };
            let expected = expected(distance, len, total);
            assert!(bytes[..60 + len] == expected[..60 + len], "distance {distance}, length {len}");
        });
        for distance in 1..=60 {
            let mut bytes = expected(distance, 0, 76);
            // SAFETY: 60 bytes precede and 16 follow; the caller asked for AVX2.
            unsafe { copy_short::<AVX2>(Target::new(&mut bytes).ahead(60), distance) };
            assert_eq!(bytes, expected(distance, 16, 76));
        }
        for distance in 1..=60 {
            let mut bytes = expected(distance, 0, 60 + VECTOR);
            // SAFETY: 60 bytes precede and VECTOR follow; the caller asked for AVX2.
            unsafe { copy_vector::<AVX2>(Target::new(&mut bytes).ahead(60), distance) };
            let len = (0..100).rfind(|&len| fits_vector::<AVX2>(distance, len)).unwrap();
            assert!(
                len >= 16 && bytes[..60 + len] == expected(distance, len, 60 + len),
                "distance {distance}"
            );
        }
    }

    #[test]
    fn long_copies_are_right_in_every_variant() {
        long_copies_are_right::<false>();
        safe_copies_are_right::<false>();
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            long_copies_are_right::<true>();
            safe_copies_are_right::<true>();
        }
    }

    #[test]
    fn literals_are_copied_whatever_their_number() {
        let from: Vec<u8> = (0..1200).map(|i| (i % 251) as u8).collect();
        for len in (0..200).chain([511, 512, 513, 1000]) {
            let mut to = vec![0; len + SLACK];
            // SAFETY: SLACK bytes follow on both sides.
            unsafe { copy_literals(Source::new(&from), Target::new(&mut to), len) };
            assert!(to[..len] == from[..len], "{len}");
        }
    }
}
