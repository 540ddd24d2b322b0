//! Reads only what is needed of a stored block, if only some of its rows are wanted.
//!
//! Rows are byte positions inside the streams. Of streams that are stored raw, only the wanted rows are read. Others
//! are read from the start, since codecs begin there, as far as the codec looks for the last row.

#![forbid(unsafe_code)]

use super::source::BlockSource;
use crate::bytes::get_i32;
use crate::error::{Error, ErrorKind, Result, ensure};
use std::ops::Range;

/// Blocks that take up to this many bytes per stream are read whole: that one access costs less than one or two per
/// stream.
pub(super) const SMALL: usize = 8 << 10;
/// Rows with at most this many others between them are read together: these cost less than one more access.
pub(super) const GAP: usize = 4 << 10;
/// How many bytes are read at once where the size of a stream is, the size included: small streams come whole.
const AHEAD: usize = 2 << 10;
/// The same at the start and after raw streams, which others that are raw follow more often than not.
const AHEAD_OF_RAW: usize = 64;
/// A size, and the token of a run.
const HEAD: usize = 5;

/// What is needed of a block whose streams have `len` bytes when decoded.
pub(super) struct Needed<'a> {
    /// How many streams the block has.
    pub(super) nstreams: usize,
    /// The length of a stream when decoded.
    pub(super) len: usize,
    /// The wanted rows, in ascending order.
    pub(super) rows: &'a [Range<usize>],
    /// The codec needs no more than this many bytes of a stream to decode these rows, if a zero follows.
    pub(super) most: usize,
}

/// Reads parts of the block at `start` of the chunk to their places in `bytes`, which is as long as the stored block:
/// the sizes of its streams, and what is `needed` of each. Other bytes of `bytes` are arbitrary afterwards.
///
/// # Errors
///
/// `ReadBuffer` if a stream is cut off, those of `source`.
pub(super) fn read_rows(
    source: &dyn BlockSource,
    start: usize,
    needed: &Needed<'_>,
    bytes: &mut [u8],
) -> Result<()> {
    let cut_off = Error::new(ErrorKind::ReadBuffer, "stream is cut off");
    let read = |range: Range<usize>, bytes: &mut [u8]| {
        source.read_at(start as u64 + range.start as u64, &mut bytes[range]) // widening
    };
    let all = bytes.len();
    let (mut at, mut ahead) = (0, AHEAD_OF_RAW);
    // What is there from `at` on, if it is more.
    let mut have = 0;
    for _ in 0..needed.nstreams {
        if have < all.min(at + HEAD) {
            have = all.min(at + ahead);
            read(at..have, bytes)?;
        }
        let csize = get_i32(&bytes[..have], at).ok_or(cut_off)?;
        let body = at + 4;
        // A run has a token, unless it is one of zeros.
        let csize = usize::try_from(csize).unwrap_or(1);
        at = body + csize;
        ensure(at <= all, ErrorKind::ReadBuffer, "stream is cut off")?;
        if csize == needed.len {
            ahead = AHEAD_OF_RAW;
            for row in needed.rows {
                let missing = have.max(body + row.start)..body + row.end;
                if !missing.is_empty() {
                    read(missing, bytes)?;
                }
            }
            continue;
        }
        ahead = AHEAD;
        let end = body + csize.min(needed.most);
        if have < end {
            // All of it with the start of the next one, or a part.
            let until = if end == at { all.min(at + ahead) } else { end };
            read(have..until, bytes)?;
            have = until;
        }
        if have < at {
            bytes[have] = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Recorder<'a> {
        stored: &'a [u8],
        reads: Mutex<Vec<Range<usize>>>,
    }

    impl BlockSource for Recorder<'_> {
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
            let at = usize::try_from(offset).unwrap();
            self.reads.lock().unwrap().push(at..at + buf.len());
            buf.copy_from_slice(&self.stored[at..at + buf.len()]);
            Ok(())
        }
    }

    /// What a block of five streams needs.
    fn needed(len: usize, rows: &[Range<usize>], most: usize) -> Needed<'_> {
        Needed { nstreams: 5, len, rows, most }
    }

    /// A block of a raw stream, a coded one, two runs and a raw one, after `start` other bytes.
    fn block(start: usize, len: usize) -> Vec<u8> {
        let mut stored = vec![0xEE; start];
        let raw: Vec<u8> = (0..len).map(|i| (i * 7 % 251).to_le_bytes()[0]).collect();
        let mut add = |csize: i32, content: &[u8]| {
            stored.extend_from_slice(&csize.to_le_bytes());
            stored.extend_from_slice(content);
        };
        add(i32::try_from(len).unwrap(), &raw);
        add(5000, &[3; 5000]);
        add(-9, &[1]);
        add(0, &[]);
        add(i32::try_from(len).unwrap(), &raw);
        stored
    }

    #[test]
    fn only_wanted_rows_of_raw_streams_are_read() {
        let (start, len) = (100, 50_000);
        let stored = block(start, len);
        let parts = [0..1, 10..600, 1000..3000, 30_000..30_500, 49_999..50_000, 0..50_000];
        let single = parts.iter().map(|part| vec![part.clone()]);
        for rows in single.chain([parts[..5].to_vec(), parts[2..4].to_vec()]) {
            let source = Recorder { stored: &stored, reads: Mutex::new(Vec::new()) };
            let mut bytes = vec![0x5A; stored.len() - start];
            read_rows(&source, start, &needed(len, &rows, usize::MAX), &mut bytes).unwrap();
            let last = 4 + len + 4 + 5000 + 5 + 4;
            let mut needed = vec![0..4, 4 + len..last + 4];
            for body in [4, last + 4] {
                needed.extend(rows.iter().map(|rows| body + rows.start..body + rows.end));
            }
            for range in needed {
                assert_eq!(bytes[range.clone()], stored[start..][range], "rows {rows:?}");
            }
            let read: usize = source.reads.into_inner().unwrap().iter().map(Range::len).sum();
            let wanted: usize = rows.iter().map(Range::len).sum();
            assert!(read <= 5 * AHEAD + 5000 + 2 * wanted, "rows {rows:?}: {read} bytes");
        }
    }

    #[test]
    fn no_more_is_read_of_coded_streams_than_the_codec_needs() {
        let len = 50_000;
        let stored = block(0, len);
        let row = 49_000..49_001;
        let coded = 4 + len + 4;
        for most in [1, 59, 60, 61, 3000, 4999, 5000, 6000] {
            let source = Recorder { stored: &stored, reads: Mutex::new(Vec::new()) };
            let mut bytes = vec![0x5A; stored.len()];
            read_rows(&source, 0, &needed(len, std::slice::from_ref(&row), most), &mut bytes).unwrap();
            let reads = source.reads.into_inner().unwrap();
            let have =
                reads.iter().filter(|read| read.start < coded + 5000).map(|read| read.end).max().unwrap();
            assert!(have >= coded + most.min(5000) && bytes[coded..have] == stored[coded..have]);
            if most < 5000 {
                assert!(have <= coded + most.max(AHEAD_OF_RAW - 4), "{most}: up to {have}");
                assert_eq!(bytes[have], 0, "{most}");
            }
            let last = coded + 5000 + 5 + 4 + 4;
            assert_eq!(bytes[last + row.start], stored[last + row.start]);
        }
    }

    #[test]
    fn small_streams_come_together() {
        let mut stored = Vec::new();
        for content in [&[5u8; 300][..], &[6; 2500], &[], &[7; 100], &[8; 9]] {
            stored.extend(i32::try_from(content.len()).unwrap().to_le_bytes());
            stored.extend(content);
        }
        let source = Recorder { stored: &stored, reads: Mutex::new(Vec::new()) };
        let mut bytes = vec![0x5A; stored.len()];
        read_rows(&source, 0, &needed(9000, std::slice::from_ref(&(0..10)), usize::MAX), &mut bytes).unwrap();
        assert_eq!(bytes, stored);
        assert_eq!(source.reads.into_inner().unwrap(), [0..64, 64..2352, 2352..2929]);
    }

    #[test]
    fn streams_that_are_cut_off_are_an_error() {
        let stored = block(0, 3000);
        for cut in [2, 6, 3002, 3500, 8000, 8010, 8015, stored.len() - 1] {
            let source = Recorder { stored: &stored[..cut], reads: Mutex::new(Vec::new()) };
            let needed = needed(3000, std::slice::from_ref(&(0..10)), usize::MAX);
            let outcome = read_rows(&source, 0, &needed, &mut vec![0; cut]);
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ReadBuffer, "cut at {cut}");
        }
    }
}
