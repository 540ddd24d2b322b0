//! Reads only what is needed of a stored block, if only some of its rows are wanted.
//!
//! Rows are byte positions inside the streams. Of streams that are stored raw, only the wanted rows are read. Others are read
//! whole, since codecs start at the beginning.

use super::source::BlockSource;
use crate::bytes::get_i32;
use crate::error::{Error, ErrorKind, Result, ensure};
use std::ops::Range;

/// Blocks that take up to this many bytes per stream are read whole: that one access costs less than one or two per stream.
pub(super) const SMALL: usize = 16 << 10;
/// Rows with at most this many others between them are read together: these cost less than one more access.
pub(super) const GAP: usize = 4 << 10;
/// How many bytes are read at once where the size of a stream is, the size included.
const AHEAD: usize = 2 << 10;

/// Reads parts of the block at `start` of the chunk to their places in `bytes`, which is as long as the stored block: the
/// sizes of its `nstreams` streams, and what is needed of each to decode `rows`, which ascend. Other bytes of `bytes` are
/// arbitrary afterwards. Streams have `len` bytes when decoded.
///
/// # Errors
///
/// `ReadBuffer` if a stream is cut off, those of `source`.
pub(super) fn read_rows(
    source: &dyn BlockSource,
    start: usize,
    nstreams: usize,
    len: usize,
    rows: &[Range<usize>],
    bytes: &mut [u8],
) -> Result<()> {
    let position = |at: usize| start as u64 + at as u64; // widening
    let mut at = 0;
    for _ in 0..nstreams {
        let ahead = bytes.len().min(at + AHEAD);
        ensure(ahead - at >= 4, ErrorKind::ReadBuffer, "stream is cut off")?;
        source.read_at(position(at), &mut bytes[at..ahead])?;
        let csize = get_i32(bytes, at).ok_or(Error::new(ErrorKind::ReadBuffer, "stream is cut off"))?;
        let body = at + 4;
        // A run has a token, unless it is one of zeros.
        let csize = usize::try_from(csize).unwrap_or(1);
        at = body + csize;
        ensure(at <= bytes.len(), ErrorKind::ReadBuffer, "stream is cut off")?;
        let raw = csize == len;
        let coded = 0..csize;
        for needed in if raw { rows } else { std::slice::from_ref(&coded) } {
            let missing = ahead.max(body + needed.start)..body + needed.end;
            if !missing.is_empty() {
                source.read_at(position(missing.start), &mut bytes[missing])?;
            }
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

    /// A block of a raw stream, a coded one, two runs and a raw one, behind `start` other bytes.
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
            read_rows(&source, start, 5, len, &rows, &mut bytes).unwrap();
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
    fn streams_that_are_cut_off_are_an_error() {
        let stored = block(0, 3000);
        for cut in [2, 6, 3002, 3500, 8000, 8010, 8015, stored.len() - 1] {
            let source = Recorder { stored: &stored[..cut], reads: Mutex::new(Vec::new()) };
            let outcome = read_rows(&source, 0, 5, 3000, std::slice::from_ref(&(0..10)), &mut vec![0; cut]);
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ReadBuffer, "cut at {cut}");
        }
    }
}
