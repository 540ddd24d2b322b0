//! The streams of a block: written and read.
//!
//! A block is one stream, or one per byte of an item. Each is an `i32` csize and its content: nothing for zeros, a
//! token for a run of another byte (csize is minus that byte), raw bytes if csize is the stream's length, else
//! csize bytes for the codec.

#![forbid(unsafe_code)]

use crate::bytes::{get_i32, put_i32, quotient, to_i32};
use crate::codecs::StreamContext;
use crate::codecs::state::{CodecStates, DecodeDict, EncodeDict, StreamCodec};
use crate::copy;
use crate::error::{Error, ErrorKind, Result, ensure};
use std::time::Instant;

/// Token of a run of one byte.
pub(crate) const RUN_TOKEN: u8 = 0x01;
/// Bytes that an instrumented stream holds.
pub(crate) const INSTR_LEN: usize = 16;

/// The byte that all of `bytes` are equal to. `bytes` is not empty.
pub(crate) fn run_value(bytes: &[u8]) -> Option<u8> {
    let first = bytes[0];
    // Most streams differ within a few bytes.
    if bytes.first_chunk().is_some_and(|head| *head != [first; 8]) {
        return None;
    }
    // Each byte is like the one before.
    (bytes[1..] == bytes[..bytes.len() - 1]).then_some(first)
}

/// What was written for one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes in all.
    pub(crate) len: usize,
    /// Whether every stream is a run of zeros.
    pub(crate) all_zeros: bool,
}

/// Writes the streams of blocks.
pub(crate) struct StreamWriter<'a> {
    pub(crate) codec: &'a StreamCodec,
    pub(crate) dict: Option<&'a EncodeDict>,
    pub(crate) cx: StreamContext<'a>,
    /// Whether runs are written as such; old headers do not allow them.
    pub(crate) runs: bool,
}

impl StreamWriter<'_> {
    /// Writes `block` as `nstreams` streams to the front of `dest`; `None` if they do not fit.
    pub(crate) fn write(
        &self,
        states: &mut CodecStates,
        block: &[u8],
        nstreams: usize,
        dest: &mut [u8],
    ) -> Result<Option<Written>> {
        let len = quotient(block.len(), nstreams);
        let mut pos = 0;
        let mut all_zeros = true;
        let mut rest = block;
        for _ in 0..nstreams {
            let (stream, behind) = rest.split_at(len);
            rest = behind;
            let Some(room) = dest.len().checked_sub(pos + 4) else { return Ok(None) };
            let (head, body) = dest[pos..].split_at_mut(4);
            if let Some(value) = run_value(stream).filter(|_| self.runs) {
                put_i32(head, 0, -i32::from(value));
                pos += 4;
                if value != 0 {
                    all_zeros = false;
                    let Some(token) = body.first_mut() else { return Ok(None) };
                    *token = RUN_TOKEN;
                    pos += 1;
                }
                continue;
            }
            all_zeros = false;
            let capacity = len.min(room);
            if capacity == 0 {
                return Ok(None);
            }
            let mut csize = states.encode(self.codec, self.dict, &self.cx, stream, &mut body[..capacity])?;
            if csize == 0 || csize == len {
                let Some(raw) = body.get_mut(..len) else { return Ok(None) };
                copy::copy(stream, raw);
                csize = len;
            }
            put_i32(head, 0, to_i32(csize, ErrorKind::Data)?);
            pos += 4 + csize;
        }
        Ok(Some(Written { len: pos, all_zeros }))
    }

    /// Writes one stream to the front of `dest`. Its bytes lie there already, after the place for the size; `room`, for
    /// what the codec makes of them, is as long as they are.
    pub(crate) fn write_from_place(
        &self,
        states: &mut CodecStates,
        room: &mut [u8],
        dest: &mut [u8],
    ) -> Result<Option<Written>> {
        let len = room.len();
        let (head, body) = dest.split_at_mut(4);
        let stream = &mut body[..len];
        if self.runs && run_value(stream).is_some() {
            copy::copy(stream, room);
            return self.write(states, room, 1, dest);
        }
        let mut csize = states.encode(self.codec, self.dict, &self.cx, stream, room)?;
        if csize == 0 || csize == len {
            csize = len;
        } else {
            copy::copy(&room[..csize], &mut stream[..csize]);
        }
        put_i32(head, 0, to_i32(csize, ErrorKind::Data)?);
        Ok(Some(Written { len: 4 + csize, all_zeros: false }))
    }

    /// Writes a zero run for each of `nstreams` streams.
    pub(crate) fn write_zeros(nstreams: usize, dest: &mut [u8]) -> Option<Written> {
        dest.get_mut(..4 * nstreams)?.fill(0);
        Some(Written { len: 4 * nstreams, all_zeros: true })
    }

    /// Compresses the streams into `scratch` and writes measurements of it in their place.
    ///
    /// `filter_seconds` is what the pipeline took for the block.
    pub(crate) fn write_measurements(
        &self,
        states: &mut CodecStates,
        block: &[u8],
        nstreams: usize,
        filter_seconds: f64,
        scratch: &mut [u8],
        dest: &mut [u8],
    ) -> Result<Option<Written>> {
        let len = block.len() / nstreams;
        let size = 4 + INSTR_LEN;
        let Some(dest) = dest.get_mut(..size * nstreams) else { return Ok(None) };
        for (stream, slot) in block.chunks_exact(len).zip(dest.chunks_exact_mut(size)) {
            let start = Instant::now();
            let run = run_value(stream);
            let stored = match run {
                Some(0) => 4,
                Some(_) => 5,
                None => {
                    let csize =
                        states.encode(self.codec, self.dict, &self.cx, stream, &mut scratch[..len])?;
                    4 + if csize == 0 { len } else { csize }
                }
            };
            let speed = |bytes: usize, seconds: f64| (bytes as f64 / seconds.max(1e-9)) as f32;
            put_i32(slot, 0, to_i32(INSTR_LEN, ErrorKind::Data)?);
            slot[4..8].copy_from_slice(&(len as f32 / stored as f32).to_ne_bytes());
            slot[8..12].copy_from_slice(&speed(len, start.elapsed().as_secs_f64()).to_ne_bytes());
            slot[12..16].copy_from_slice(&speed(block.len(), filter_seconds).to_ne_bytes());
            slot[16..].copy_from_slice(&[u8::from(run.is_some()), 0, 0, 0]);
        }
        Ok(Some(Written { len: size * nstreams, all_zeros: false }))
    }
}

/// The content of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream<'a> {
    /// Equal bytes.
    Run(u8),
    /// The bytes themselves.
    Raw(&'a [u8]),
    /// Input of the codec.
    Coded(&'a [u8]),
}

/// Iterates over the streams of one stored block.
pub(crate) struct StreamReader<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> StreamReader<'a> {
    /// Streams of `len` bytes each, stored from the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8], len: usize) -> StreamReader<'a> {
        StreamReader { bytes, len }
    }

    /// Reads the next stream.
    ///
    /// # Errors
    ///
    /// `ReadBuffer` if it is cut off, `RunLength` for bad runs.
    #[inline(always)]
    pub(crate) fn next_stream(&mut self) -> Result<Stream<'a>> {
        let short = Error::new(ErrorKind::ReadBuffer, "stream is cut off");
        let csize = get_i32(self.bytes, 0).ok_or(short)?;
        self.bytes = &self.bytes[4..];
        let Ok(csize) = usize::try_from(csize) else {
            let token = *self.bytes.first().ok_or(short)?;
            self.bytes = &self.bytes[1..];
            let value = u8::try_from(csize.unsigned_abs());
            let bad_run = Error::new(ErrorKind::RunLength, "bad run");
            return match value {
                Ok(value) if token & RUN_TOKEN != 0 => Ok(Stream::Run(value)),
                _ => Err(bad_run),
            };
        };
        if csize == 0 {
            return Ok(Stream::Run(0));
        }
        let (content, rest) = self.bytes.split_at_checked(csize).ok_or(short)?;
        self.bytes = rest;
        Ok(if csize == self.len { Stream::Raw(content) } else { Stream::Coded(content) })
    }
}

/// Streams of this many bytes, up to twice as many, are stored and filled in two pieces that may overlap: calling a
/// function for it would take longer than doing it.
const PIECE: usize = 32;

/// Copies a stream; both slices have the same length.
#[inline(always)]
fn copy_stream(bytes: &[u8], dest: &mut [u8]) {
    let len = dest.len();
    if (PIECE..=2 * PIECE).contains(&len) && bytes.len() == len {
        dest[..PIECE].copy_from_slice(&bytes[..PIECE]);
        dest[len - PIECE..].copy_from_slice(&bytes[len - PIECE..]);
    } else {
        copy::copy(bytes, dest);
    }
}

/// Fills a stream with one byte.
#[inline(always)]
fn fill(value: u8, dest: &mut [u8]) {
    let len = dest.len();
    if (PIECE..=2 * PIECE).contains(&len) {
        dest[..PIECE].copy_from_slice(&[value; PIECE]);
        dest[len - PIECE..].copy_from_slice(&[value; PIECE]);
    } else {
        dest.fill(value);
    }
}

/// Decodes streams of one chunk.
pub(crate) struct StreamDecoder<'a> {
    pub(crate) codec: &'a StreamCodec,
    pub(crate) dict: Option<&'a DecodeDict<'a>>,
    pub(crate) cx: StreamContext<'a>,
}

impl StreamDecoder<'_> {
    /// Decodes a whole stream into `dest`.
    #[inline(always)]
    pub(crate) fn decode(&self, states: &mut CodecStates, stream: Stream<'_>, dest: &mut [u8]) -> Result<()> {
        match stream {
            Stream::Run(value) => fill(value, dest),
            Stream::Raw(bytes) => copy_stream(bytes, dest),
            Stream::Coded(bytes) => states.decode(self.codec, self.dict, &self.cx, bytes, dest)?,
        }
        Ok(())
    }

    /// Decodes at least the first `wanted` bytes of a stream to the front of `dest`, which has the length of the whole.
    pub(crate) fn decode_prefix(
        &self,
        states: &mut CodecStates,
        stream: Stream<'_>,
        wanted: usize,
        dest: &mut [u8],
    ) -> Result<()> {
        match stream {
            Stream::Run(value) => dest[..wanted].fill(value),
            Stream::Raw(bytes) => copy::copy(&bytes[..wanted], &mut dest[..wanted]),
            Stream::Coded(bytes) => {
                states.decode_prefix(self.codec, self.dict, &self.cx, bytes, wanted, dest)?;
            }
        }
        Ok(())
    }

    /// Decodes the streams stored in `bytes` into `dest`, which is cut into `nstreams` equal parts; bytes left over at
    /// its end become zero. Returns the number of bytes that the streams cover.
    ///
    /// # Errors
    ///
    /// `WriteBuffer` if the streams would be empty; the errors of [`StreamReader`] and of the codec.
    pub(crate) fn decode_all(
        &self,
        states: &mut CodecStates,
        bytes: &[u8],
        nstreams: usize,
        dest: &mut [u8],
    ) -> Result<usize> {
        let len = quotient(dest.len(), nstreams);
        ensure(len > 0, ErrorKind::WriteBuffer, "streams without bytes")?;
        let mut reader = StreamReader::new(bytes, len);
        let mut rest = dest;
        for _ in 0..nstreams {
            let (part, behind) = rest.split_at_mut(len);
            self.decode(states, reader.next_stream()?, part)?;
            rest = behind;
        }
        if !rest.is_empty() {
            rest.fill(0);
        }
        Ok(len * nstreams)
    }
}

/// The streams of a block if all are stored raw: from the first byte of the first one on, the next one begins `len + 4`
/// bytes further.
#[inline(always)]
pub(super) fn raw_streams(streams: &[u8], nstreams: usize, len: usize) -> Option<&[u8]> {
    let size = u32::try_from(len).ok()?.to_le_bytes();
    let mut rest = streams.get(..nstreams * (4 + len))?;
    while let Some(stream) = rest.split_at_checked(4 + len) {
        if !stream.0.starts_with(&size) {
            return None;
        }
        rest = stream.1;
    }
    streams.get(4..nstreams * (4 + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_whatever_the_length() {
        for len in 1..300 {
            let mut bytes = vec![9u8; len];
            assert_eq!(run_value(&bytes), Some(9));
            for at in [len - 1, len / 2, 0] {
                bytes[at] = 8;
                assert_eq!(run_value(&bytes), (len == 1).then_some(8), "len {len} at {at}");
                bytes[at] = 9;
            }
        }
    }

    #[test]
    fn short_streams_are_copied_and_filled_whole() {
        for len in 0..3 * PIECE {
            let bytes: Vec<u8> = (1..).take(len).collect();
            let mut dest = vec![0; len];
            copy_stream(&bytes, &mut dest);
            assert_eq!(dest, bytes);
            fill(7, &mut dest);
            assert!(dest.iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn a_stream_that_does_not_get_shorter_is_stored() {
        const LEN: usize = 200;
        let codec = StreamCodec::resolve(Some(crate::format::consts::codec::LZ4));
        let container = crate::format::geometry::Container::None;
        let cx = StreamContext {
            clevel: 5,
            meta: 0,
            typesize: 1,
            blocksize: LEN,
            container: &container,
            chunk: &[],
            host: &None,
        };
        let mut states = CodecStates::new();
        let writer = StreamWriter { codec: &codec, dict: None, cx, runs: true };
        let mut random = crate::testing::Random::new(1);
        let mut found = 0;
        for _ in 0..10_000 {
            // A repetition may save as many bytes as the rest costs.
            let mut stream = random.bytes(LEN);
            let len = 4 + random.below(8);
            stream.copy_within(10..10 + len, 100);
            let coded = states.encode(&codec, None, &writer.cx, &stream, &mut [0; LEN]).unwrap();
            if coded != LEN {
                continue;
            }
            found += 1;
            let mut dest = [0; 4 + LEN];
            writer.write(&mut states, &stream, 1, &mut dest).unwrap().unwrap();
            assert_eq!(dest[4..], stream);
            let mut dest = [&[0; 4][..], &stream].concat();
            let written = writer.write_from_place(&mut states, &mut [0; LEN], &mut dest).unwrap().unwrap();
            assert!(written.len == 4 + LEN && dest[4..] == stream);
        }
        assert!(found > 0);
    }

    #[test]
    fn stored_streams_are_told_apart() {
        fn read(bytes: &[u8]) -> std::result::Result<Stream<'_>, i32> {
            StreamReader::new(bytes, 3).next_stream().map_err(Error::code)
        }
        assert_eq!(read(&[0, 0, 0, 0]), Ok(Stream::Run(0)));
        assert_eq!(read(&[0xf9, 0xff, 0xff, 0xff, 0x01]), Ok(Stream::Run(7)));
        assert_eq!(read(&[0xf9, 0xff, 0xff, 0xff, 0x83]), Ok(Stream::Run(7)));
        assert_eq!(read(&[0xf9, 0xff, 0xff, 0xff, 0x02]), Err(-17));
        assert_eq!(read(&[0x00, 0xff, 0xff, 0xff, 0x01]), Err(-17));
        assert_eq!(read(&[0xf9, 0xff, 0xff, 0xff]), Err(-5));
        assert_eq!(read(&[3, 0, 0]), Err(-5));
        assert_eq!(read(&[3, 0, 0, 0, 1, 2]), Err(-5));
        assert_eq!(read(&[3, 0, 0, 0, 1, 2, 3]), Ok(Stream::Raw(&[1, 2, 3])));
        assert_eq!(read(&[2, 0, 0, 0, 1, 2, 3]), Ok(Stream::Coded(&[1, 2])));
    }
}
