//! What follows a frame in its file: the remains of a change that was broken off, which may be removed, or data of
//! somebody else, which may not.
//!
//! A kill may leave the beginning of a record (see [`journal`](super::journal)) after the frame, with zeros before it
//! where a longer frame was to be written. Somebody may have appended other data since.

#![forbid(unsafe_code)]

use super::journal::{COUNT_AT, FOOTER, HEAD, START, get};
use super::store::Behind;
use crate::error::Result;
use crate::format::frame_header::MAGIC;
use crate::format::frame_trailer::{self, TAIL_LEN, Usage};
use crate::io::IoFile;
use crate::memory::zeroed;

/// How many bytes of a file are looked at together.
const WINDOW: usize = 1 << 16;
/// More than this after a frame, in bytes, is not read through: a file may claim any length. Holes are not read. Only
/// the start of a record may lie farther behind the frame, as after a kill while all chunks were moved.
const LONGEST_GAP: u64 = 5 << 29;
/// This many bytes at the start of a header tell its frame from others.
const TELLING: u64 = 4096;

/// What follows the frame that ends at `end` of a file of `size` bytes, which are more.
///
/// # Errors
///
/// Those of reading.
pub(super) fn what_follows(file: &dyn IoFile, end: u64, size: u64) -> Result<Behind> {
    let others = Behind::Others(size);
    let mut at = end;
    let mut looked_at = 0;
    let mut window: Vec<u8> = zeroed(WINDOW)?;
    let first = loop {
        at = file.skip_hole(at).min(size);
        let part = part_of(&mut window, size - at);
        looked_at += part.len() as u64; // widening
        if looked_at > LONGEST_GAP {
            return Ok(others);
        }
        file.read_exact_at(at, part)?;
        if let Some(first) = first_after_zeros(part) {
            break at + first as u64; // widening
        }
        at += part.len() as u64; // widening
        if at == size {
            return Ok(if size - end <= LONGEST_GAP { Behind::Zeros } else { others });
        }
    };
    // The mark starts with a zero.
    if first > end && is_cut_off_record(file, first - 1, size)? {
        return Ok(Behind::Leftover);
    }
    // The C library cuts a file off last, so a crash of it leaves the end of the old trailer.
    let mut tail = [0; TAIL_LEN];
    let tail_len = TAIL_LEN as u64; // widening
    if size - end < tail_len || size - end > LONGEST_GAP {
        return Ok(others);
    }
    file.read_exact_at(size - tail_len, &mut tail)?;
    let fits = Usage::read(&tail).is_none_or(|usage| usage.area < size);
    let trailer = frame_trailer::is_tail(&tail) && fits;
    // It may as well be the trailer of another frame.
    let is_left = trailer && find(file, MAGIC, end, size)?.is_none();
    Ok(if is_left { Behind::Leftover } else { others })
}

/// Where the first byte is that is not zero.
fn first_after_zeros(bytes: &[u8]) -> Option<usize> {
    // A hole may be gigabytes: a whole piece is looked at in a few instructions.
    const PIECE: usize = 256;
    let is_other = |piece: &[u8]| piece.iter().fold(0, |all, byte| all | byte) != 0;
    let start = bytes.chunks(PIECE).position(is_other)? * PIECE;
    bytes[start..].iter().position(|&byte| byte != 0).map(|first| start + first)
}

/// Whether the bytes from `start` to the end of `file`, at `size`, are the beginning of a record, with nothing after
/// it.
///
/// Nothing is overwritten before a record is complete, so what it has saved is still in its place, in one of the frames
/// before it: first of all, the header. That tells saved bytes from those that somebody has put after them, unless
/// these are so few that they could be the end of the record.
fn is_cut_off_record(file: &dyn IoFile, start: u64, size: u64) -> Result<bool> {
    let mut head = [0; HEAD];
    let head = part_of(&mut head, size - start);
    file.read_exact_at(start, head)?;
    let mark = &head[..head.len().min(START.len())];
    if !START.starts_with(mark) || head.len() < HEAD {
        return Ok(START.starts_with(mark));
    }
    let mut at = start + HEAD as u64; // widening
    let mut frame = None;
    for _ in 0..get(head, COUNT_AT) {
        let mut range = [0; 16];
        let range_len = range.len() as u64; // widening
        if size - at < range_len {
            return Ok(true);
        }
        file.read_exact_at(at, &mut range)?;
        at += range_len;
        let (position, len) = (get(&range, 0), get(&range, 8));
        if len == 0 {
            return Ok(false); // none is saved
        }
        let saved = len.min(size - at);
        if frame.is_none() {
            frame = find_copy(file, start, at, saved)?.and_then(|place| place.checked_sub(position));
        }
        let place = frame.and_then(|frame| position.checked_add(frame));
        let place = place.filter(|place| place.checked_add(len).is_some_and(|end| end <= start));
        let Some(place) = place else { return Ok(false) };
        if !are_same(file, place, at, saved)? {
            return Ok(false);
        }
        at += saved;
    }
    Ok(size - at <= FOOTER as u64) // widening
}

/// Where in the first `end` bytes of `file` those are that it has at `at` as well: `len` bytes, or the first of them.
fn find_copy(file: &dyn IoFile, end: u64, at: u64, len: u64) -> Result<Option<u64>> {
    let mut bytes: Vec<u8> = zeroed(WINDOW)?;
    let bytes = part_of(&mut bytes, len.min(TELLING));
    file.read_exact_at(at, bytes)?;
    find(file, bytes, 0, end)
}

/// Where `bytes`, which are less than a window, are found first between `at` and `end` of `file`.
fn find(file: &dyn IoFile, bytes: &[u8], mut at: u64, end: u64) -> Result<Option<u64>> {
    let mut window: Vec<u8> = zeroed(WINDOW)?;
    let len = bytes.len() as u64; // widening
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count() as u64; // widening
    loop {
        if zeros < len {
            // A hole may hold the zeros that they begin with, and no more of them.
            at = at.max(file.skip_hole(at).saturating_sub(zeros));
        }
        if end.saturating_sub(at) < len {
            return Ok(None);
        }
        let part = part_of(&mut window, end - at);
        file.read_exact_at(at, part)?;
        let found = (0..=part.len() - bytes.len()).find(|&start| part[start..].starts_with(bytes));
        if let Some(start) = found {
            return Ok(Some(at + start as u64)); // widening
        }
        // The next window begins with what may be the first part of them.
        at += (part.len() - bytes.len() + 1) as u64; // widening
    }
}

/// Whether `file` has the same `len` bytes at `a` and at `b`.
fn are_same(file: &dyn IoFile, mut a: u64, mut b: u64, mut len: u64) -> Result<bool> {
    let (mut ones, mut others): (Vec<u8>, Vec<u8>) = (zeroed(WINDOW)?, zeroed(WINDOW)?);
    while len > 0 {
        let (one, other) = (part_of(&mut ones, len), part_of(&mut others, len));
        file.read_exact_at(a, one)?;
        file.read_exact_at(b, other)?;
        if one != other {
            return Ok(false);
        }
        let n = one.len() as u64; // widening
        (a, b, len) = (a + n, b + n, len - n);
    }
    Ok(true)
}

/// The front of `buffer`, of no more than `len` bytes.
fn part_of(buffer: &mut [u8], len: u64) -> &mut [u8] {
    let len = usize::try_from(len).map_or(buffer.len(), |len| len.min(buffer.len()));
    &mut buffer[..len]
}

#[cfg(test)]
mod tests {
    use super::super::journal;
    use super::*;
    use crate::io::OpenMode;
    use crate::io::file::PlainFile;
    use crate::testing::TempPath;

    /// Whether what follows may go.
    fn is_leftover(file: &dyn IoFile, end: u64, size: u64) -> Result<bool> {
        what_follows(file, end, size).map(|behind| !matches!(behind, Behind::Others(_)))
    }

    /// A record of these ranges of the frame at the start of a file, which had `len` bytes.
    fn record(len: u64, ranges: &[(u64, &[u8])]) -> Vec<u8> {
        journal::record(0, len, ranges)
    }

    /// A file with these bytes.
    fn file_of(bytes: &[u8]) -> (TempPath, PlainFile) {
        let path = TempPath::new("leftover");
        let file = PlainFile::open(&path, OpenMode::Create).unwrap();
        file.write_at(0, bytes).unwrap();
        (path, file)
    }

    /// Whether what follows the first `end` of these bytes is a leftover.
    fn is_left(bytes: &[u8], end: usize) -> bool {
        let (_path, file) = file_of(bytes);
        is_leftover(&file, end as u64, bytes.len() as u64).unwrap()
    }

    #[test]
    fn the_first_byte_after_zeros_is_found_wherever_it_is() {
        for len in [0, 1, 255, 256, 257, 1000] {
            let mut bytes = vec![0; len];
            assert_eq!(first_after_zeros(&bytes), None);
            for first in (0..len).rev() {
                bytes[first] = 1;
                assert_eq!(first_after_zeros(&bytes), Some(first));
            }
        }
    }

    #[test]
    fn a_record_cut_off_anywhere_is_a_leftover_unless_something_follows() {
        let frame: Vec<u8> = (1..=200).collect();
        let record = record(200, &[(0, &frame[..97]), (150, &frame[150..])]);
        for gap in [0, 1, 50] {
            let place = [&frame[..], &vec![0; gap]].concat();
            for cut in 0..record.len() {
                let file = [&place[..], &record[..cut]].concat();
                assert!(file.len() == 200 || is_left(&file, 200), "gap of {gap}, cut at {cut}");
                for other in
                    [&b"\x9e\xa8b2frame\0 and so on".repeat(3)[..], &b"text\n".repeat(10), &[0xd2; 500]]
                {
                    assert!(!is_left(&[&file, other].concat(), 200), "gap of {gap}, cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn a_record_of_another_frame_of_the_file_is_one_as_well() {
        let (first, second): (Vec<u8>, Vec<u8>) = ((1..=200).collect(), (7..=107).collect());
        let record = record(200, &[(0, &first[..97])]);
        assert!(is_left(&[&first[..], &second, &record[..120]].concat(), first.len() + second.len()));
    }

    #[test]
    fn a_saved_header_that_is_nowhere_is_none() {
        let frame: Vec<u8> = (1..=200).collect();
        for range in [(0, &[9; 97][..]), (u64::MAX, &frame[..97])] {
            let record = record(200, &[range]);
            assert!(!is_left(&[&frame[..], &record[..130]].concat(), 200));
        }
    }

    #[test]
    fn the_end_of_a_trailer_is_a_leftover_unless_it_tells_of_more_than_the_file_holds() {
        let trailer = frame_trailer::write(&[]).unwrap();
        let mut file = [&[7; 200][..], &[9; 50], &trailer[trailer.len() - TAIL_LEN..]].concat();
        let size = file.len() as u64;
        assert!(is_left(&file, 200));
        for (area, left) in [(1, true), (size - 1, true), (size, false), (u64::MAX, false)] {
            Usage { area, live: 1 }.put(&mut file);
            assert_eq!(is_left(&file, 200), left, "{area}");
        }
    }

    #[test]
    fn holes_are_skipped() {
        let (_path, file) = file_of(b"frame");
        let size = 1 << 40;
        file.truncate(size).unwrap();
        let found = |bytes: &[u8], at| find(&file, bytes, at, size).unwrap();
        if file.skip_hole(1 << 20) == size {
            assert_eq!(found(b"none", 0), None);
            assert!(
                !is_leftover(&file, 5, size).unwrap()
                    && is_leftover(&file, size - LONGEST_GAP, size).unwrap()
            );
        }
        let at = (1 << 30) + 12_345;
        file.write_at(at, b"\0\0found").unwrap();
        assert_eq!(found(b"found", 3), Some(at + 2));
        assert_eq!(found(b"\0\0\0found", 3), Some(at - 1));
        assert_eq!(found(b"\0\0", 3), Some(5));
        assert_eq!(found(b"", 3), Some(3));
        assert!((5..=at + 2).contains(&file.skip_hole(5)));
        assert_eq!(file.skip_hole(size + 9), size + 9);
    }

    #[test]
    fn the_start_of_a_record_behind_a_larger_hole_is_a_leftover() {
        let frame: Vec<u8> = (1..=200).collect();
        let (_path, file) = file_of(&frame);
        let at = LONGEST_GAP + (1 << 30);
        let record = record(200, &[(0, &frame[..97])]);
        for (bytes, left) in [(&record[..20], true), (&record[..100], true), (b"\0somebody's", false)] {
            file.truncate(200).unwrap();
            file.write_at(at, bytes).unwrap();
            if file.skip_hole(1 << 20) > LONGEST_GAP {
                assert_eq!(is_leftover(&file, 200, at + bytes.len() as u64), Ok(left), "{bytes:?}");
            }
        }
    }

    #[test]
    fn bytes_are_found_wherever_windows_end() {
        let mut bytes = vec![b'b'; 3 * WINDOW];
        for at in [0, 1, WINDOW - 7, WINDOW - 1, WINDOW, 2 * WINDOW - 5, 3 * WINDOW - 8] {
            bytes.fill(b'b');
            bytes[at..at + 8].copy_from_slice(MAGIC);
            let (_path, file) = file_of(&bytes);
            assert_eq!(find(&file, MAGIC, 0, 3 * WINDOW as u64).unwrap(), Some(at as u64));
            assert_eq!(find(&file, MAGIC, at as u64 + 1, 3 * WINDOW as u64).unwrap(), None);
            assert_eq!(find(&file, MAGIC, 0, at as u64 + 7).unwrap(), None);
        }
    }

    /// A file of zeros that ends with these bytes.
    struct Zeros<'a>(u64, &'a [u8]);

    impl IoFile for Zeros<'_> {
        fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
            let Zeros(size, end) = *self;
            buf.fill(0);
            for (at, &byte) in (size - end.len() as u64..).zip(end) {
                let place = at.checked_sub(position).and_then(|at| buf.get_mut(usize::try_from(at).unwrap()));
                if let Some(place) = place {
                    *place = byte;
                }
            }
            Ok(buf.len().min(usize::try_from(size - position).unwrap()))
        }

        fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
            unreachable!("only read")
        }

        fn size(&self) -> Result<u64> {
            Ok(self.0)
        }

        fn truncate(&self, _: u64) -> Result<()> {
            unreachable!("only read")
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "gigabytes")]
    fn the_start_of_a_record_far_behind_the_frame_is_a_leftover() {
        let size = (1 << 30) + (1 << 20);
        let record = record(100, &[(0, &[0; 100])]);
        assert!(is_leftover(&Zeros(size, &record[..50]), 4, size).unwrap());
        assert!(!is_leftover(&Zeros(size, b"other data, far behind the frame"), 4, size).unwrap());
    }

    #[test]
    fn what_is_too_far_behind_the_frame_is_not_looked_through() {
        let size = 1 << 40;
        for end in [&frame_trailer::write(&[]).unwrap()[..], b"other data"] {
            assert!(!is_leftover(&Zeros(size, end), size - LONGEST_GAP - 100, size).unwrap());
        }
    }

    #[test]
    fn records_save_no_empty_ranges() {
        let frame: Vec<u8> = (1..=200).collect();
        let record = record(200, &[(0, &frame[..97]), (97, b""), (150, &frame[150..])]);
        assert!(!is_left(&[&frame[..], &record[..record.len() - 1]].concat(), 200));
    }

    #[test]
    fn other_data_are_no_leftover() {
        assert!(!is_left(b"....\x9e\xa8b2frame\0 and so on", 4));
        assert!(!is_left(b"....something else entirely, long", 4));
        // The mark without its zero.
        assert!(!is_left(&[&b"...."[..], &START[1..]].concat(), 4));
    }
}
