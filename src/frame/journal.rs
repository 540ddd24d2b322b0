//! What makes changes of a frame file all-or-nothing: an undo record past the end of the file.
//!
//! Before a change overwrites bytes that the old content needs (the header, the index, the trailer), they are saved
//! past the end of both the old and the new frame. Readers ignore what follows a frame, so a complete file never shows
//! it. Then the change is written, and cutting the file off at the new end commits it: that removes the record in one
//! step. A file that still ends in a valid record holds a change that was not finished, and the saved bytes are the
//! truth. The module [`leftover`](super::leftover) recognises records that were only written in part.
//!
//! | bytes | meaning |
//! |---|---|
//! | 16 | start mark |
//! | LE64 | number of ranges, then for each its position in the frame LE64, its length LE64 and its old bytes |
//! | LE64 | length of the whole record |
//! | LE64 | position of the frame in the file |
//! | LE64 | length of the frame before the change, with what follows it in the file |
//! | LE64 | checksum of all the above |
//! | 16 | end mark |

#![forbid(unsafe_code)]

use crate::error::{ErrorKind, Result, ensure};
use crate::io::IoFile;
use crate::memory::{no_memory, zeroed};

/// The start mark.
pub(super) const START: &[u8; 16] = b"\0blosc2-rs undo\x01";
const END: &[u8; 16] = b"\x01undo blosc2-rs\0";
/// Length of what comes after the ranges, in bytes.
pub(super) const FOOTER: usize = 4 * 8 + 16;
/// Position of the number of ranges.
pub(super) const COUNT_AT: usize = 16;
/// Length of what comes before the ranges, in bytes.
pub(super) const HEAD: usize = COUNT_AT + 8;
/// No record is longer: it holds a header, an index and a trailer.
const MAX_LEN: u64 = 1 << 33;

/// A record that is whole, so that a change can be undone without further memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Undo {
    /// Position of the frame in the file.
    base: u64,
    /// What was there before the change, from the start of the frame to the end of the file, in bytes: the frame, and
    /// whatever follows it.
    len: u64,
    record: Vec<u8>,
}

/// What tells the record at the end of a file from others: its last bytes, with lengths and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Length of the file.
    len: u64,
    footer: [u8; FOOTER],
}

impl Mark {
    /// That of the record at the end of `file`.
    ///
    /// # Errors
    ///
    /// Those of reading; `FileRead` for shorter files.
    pub(crate) fn read(file: &dyn IoFile) -> Result<Mark> {
        let len = file.size()?;
        let mut footer = [0; FOOTER];
        let at = len.checked_sub(FOOTER as u64); // widening
        let n = at.map_or(Ok(0), |at| file.read_at(at, &mut footer))?;
        ensure(n == FOOTER, ErrorKind::FileRead, "file ends too early")?;
        Ok(Mark { len, footer })
    }
}

/// A record that is being made.
pub(crate) struct Record(Vec<u8>);

impl Record {
    /// A record without ranges.
    pub(crate) fn new() -> Record {
        let mut bytes = START.to_vec();
        put(&mut bytes, 0);
        Record(bytes)
    }

    /// Adds `len` bytes at `at` of the frame; the caller fills them in.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn add(&mut self, at: u64, len: usize) -> Result<&mut [u8]> {
        let bytes = &mut self.0;
        bytes.try_reserve(16 + len + FOOTER).map_err(|_| no_memory())?;
        let count = get(bytes, COUNT_AT) + 1;
        bytes[COUNT_AT..HEAD].copy_from_slice(&count.to_le_bytes());
        put(bytes, at);
        put(bytes, len as u64); // widening
        let start = bytes.len();
        bytes.resize(start + len, 0);
        Ok(&mut bytes[start..])
    }

    /// The record as it is written, for the frame at `base` in its file, which reaches `old_len` bytes from there
    /// before the change.
    pub(crate) fn finish(self, base: u64, old_len: u64) -> Vec<u8> {
        let mut bytes = self.0;
        let len = bytes.len() + FOOTER;
        put(&mut bytes, len as u64); // widening
        put(&mut bytes, base);
        put(&mut bytes, old_len);
        let sum = checksum(&bytes);
        put(&mut bytes, sum);
        bytes.extend_from_slice(END);
        bytes
    }
}

impl Undo {
    /// What `record` says, which has room for head and footer; `None` if it is damaged.
    pub(crate) fn read(record: Vec<u8>) -> Option<Undo> {
        let footer = record.len() - FOOTER;
        let (base, len) = (get(&record, footer + 8), get(&record, footer + 16));
        let summed = record.len() - END.len() - 8;
        if record[..COUNT_AT] != *START || checksum(&record[..summed]) != get(&record, summed) {
            return None;
        }
        let mut rest = &record[HEAD..footer];
        for _ in 0..get(&record, COUNT_AT) {
            let (at, old, behind) = split_range(rest)?;
            let end = at.checked_add(old.len() as u64)?; // widening
            if end > len {
                return None;
            }
            rest = behind;
        }
        rest.is_empty().then_some(())?;
        Some(Undo { base, len, record })
    }

    /// Whether it is one for the frame at `base`.
    pub(crate) fn is_at(&self, base: u64) -> bool {
        self.base == base
    }

    /// Positions, relative to the frame, and the bytes that belong there.
    fn ranges(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = &self.record[HEAD..self.record.len() - FOOTER];
        std::iter::from_fn(move || {
            let (at, old, behind) = split_range(rest)?;
            rest = behind;
            Some((at, old))
        })
    }

    /// The record at the end of `file`, which has `size` bytes, if there is one: for whatever frame in the file.
    ///
    /// # Errors
    ///
    /// Those of reading; what is no record is `None`.
    pub(crate) fn find(file: &dyn IoFile, size: u64) -> Result<Option<Undo>> {
        let Some(footer_at) = size.checked_sub(FOOTER as u64) else { return Ok(None) }; // widening
        let mut footer = [0; FOOTER];
        file.read_exact_at(footer_at, &mut footer)?;
        let (len, base, old_len) = (get(&footer, 0), get(&footer, 8), get(&footer, 16));
        // It lies after all that was there before.
        let room = size.saturating_sub(base);
        let fits = len >= (HEAD + FOOTER) as u64 && len <= MAX_LEN.min(room) && old_len <= room - len; // widening
        if footer[32..] != *END || !fits {
            return Ok(None);
        }
        let mut mark = [0; START.len()];
        file.read_exact_at(size - len, &mut mark)?;
        let Some(len) = usize::try_from(len).ok().filter(|_| mark == *START) else { return Ok(None) };
        let mut bytes = zeroed(len)?;
        file.read_exact_at(size - len as u64, &mut bytes)?; // widening
        Ok(Undo::read(bytes))
    }

    /// Puts the old bytes over `bytes`, which were read at `at` of the frame.
    pub(crate) fn overlay(&self, at: u64, bytes: &mut [u8]) {
        let end = at + bytes.len() as u64; // widening
        for (start, old) in self.ranges() {
            let (from, to) = (start.max(at), (start + old.len() as u64).min(end)); // widening
            if from < to {
                let place = |position: u64, origin: u64| {
                    usize::try_from(position - origin).expect("inside a range that is in memory")
                };
                let source = &old[place(from, start)..place(to, start)];
                bytes[place(from, at)..place(to, at)].copy_from_slice(source);
            }
        }
    }

    /// Writes the old bytes back.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn write_back(&self, file: &dyn IoFile, sync: bool) -> Result<()> {
        for (at, old) in self.ranges() {
            file.write_at(self.base + at, old)?;
        }
        if sync { file.sync() } else { Ok(()) }
    }

    /// Writes the old bytes back and cuts the record off, which ends the change.
    ///
    /// # Errors
    ///
    /// Those of writing; the record is still there then.
    pub(crate) fn roll_back(&self, file: &dyn IoFile, sync: bool) -> Result<()> {
        self.write_back(file, sync)?;
        file.truncate(self.base + self.len)?;
        if sync { file.sync() } else { Ok(()) }
    }
}

/// The first range in a record: its position and bytes, and what follows it; `None` if it is cut off.
fn split_range(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(16)?;
    let (old, rest) = rest.split_at_checked(usize::try_from(get(head, 8)).ok()?)?;
    Some((get(head, 0), old, rest))
}

fn put(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

/// The LE64 at `at`, which `bytes` has room for.
pub(super) fn get(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Whether a file that ends with `bytes` may seem to end in a record.
pub(super) fn ends_like_record(bytes: &[u8]) -> bool {
    bytes.ends_with(END)
}

/// Good enough to tell a record from one that was written in part, and fast: a multiplication per 8 bytes.
fn checksum(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut words = bytes.chunks_exact(8);
    let mut sum = (bytes.len() as u64).wrapping_mul(K); // widening
    for word in &mut words {
        sum = (sum.rotate_left(23) ^ get(word, 0)).wrapping_mul(K);
    }
    for &byte in words.remainder() {
        sum = (sum.rotate_left(23) ^ u64::from(byte)).wrapping_mul(K);
    }
    sum ^ (sum >> 32)
}

/// A record of these ranges of a frame at `base`, which had `len` bytes.
#[cfg(test)]
pub(super) fn record(base: u64, len: u64, ranges: &[(u64, &[u8])]) -> Vec<u8> {
    let mut record = Record::new();
    for (at, old) in ranges {
        record.add(*at, old.len()).unwrap().copy_from_slice(old);
    }
    record.finish(base, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::OpenMode;
    use crate::io::file::PlainFile;

    fn scratch(name: &str) -> (std::path::PathBuf, PlainFile) {
        let path = std::env::temp_dir().join(format!("blosc2-journal-{name}-{}", std::process::id()));
        let file = PlainFile::open(&path, OpenMode::Create).unwrap();
        (path, file)
    }

    #[test]
    fn a_record_is_found_and_undone() {
        let (path, file) = scratch("undo");
        file.write_at(0, b"..old-frame").unwrap();
        let record = record(2, 9, &[(0, b"old"), (4, b"frame")]);
        file.write_at(20, &record).unwrap();
        file.write_at(2, b"new").unwrap();
        let size = file.size().unwrap();
        let found = Undo::find(&file, size).unwrap().unwrap();
        assert_eq!(found, Undo { base: 2, len: 9, record });
        let mut bytes = *b"XXXXXXXXX";
        found.overlay(0, &mut bytes);
        assert_eq!(&bytes, b"oldXframe");
        let mut part = *b"XX";
        found.overlay(3, &mut part);
        assert_eq!(&part, b"Xf");
        found.roll_back(&file, false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"..old-frame");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_record_cut_off_anywhere_is_none() {
        let record = record(0, 4, &[(0, b"abcd")]);
        for cut in 0..record.len() {
            let (path, file) = scratch("cut");
            file.write_at(0, b"abcd").unwrap();
            file.write_at(40, &record[..cut]).unwrap();
            assert_eq!(Undo::find(&file, file.size().unwrap()).unwrap(), None, "cut at {cut}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn damaged_records_are_not_trusted() {
        let record = record(0, 300, &[(200, &[7; 100])]);
        let (path, file) = scratch("damaged");
        for at in 0..record.len() {
            let mut bad = record.clone();
            bad[at] ^= 0x41;
            file.write_at(300, &bad).unwrap();
            assert_eq!(Undo::find(&file, 300 + bad.len() as u64).unwrap(), None, "byte {at}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_record_of_more_than_there_was_is_none() {
        let (path, file) = scratch("longer");
        for (len, found) in [(30, true), (31, false), (u64::MAX, false)] {
            file.truncate(0).unwrap();
            file.write_at(40, &record(10, len, &[(0, &[7; 10])])).unwrap();
            let size = file.size().unwrap();
            assert_eq!(Undo::find(&file, size).unwrap().is_some(), found, "{len}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
