//! A block of which a few items get new values, without shuffling and compressing all of it again.
//!
//! In a shuffled block that is cut into streams each byte of the items has a stream of its own. Streams in which the
//! new bytes are the old ones stay as they are; the others are decoded, changed in a few places and compressed. What
//! comes out is what compressing the whole block gives, if the old streams came from the same codec with the same
//! parameters.

#![forbid(unsafe_code)]

use super::block_reader::BlockReader;
use super::blocks::Layout;
use super::compress::stream_context;
use super::params::{CParams, Encoding};
use super::plain::Payload;
use super::scratch::{self, BlockBuffers, Worker};
use super::streams::{RUN_TOKEN, Stream, StreamReader, StreamWriter};
use crate::bytes::put_i32;
use crate::codecs::state::{CodecStates, StreamCodec};
use crate::copy;
use crate::error::{Error, ErrorKind, Result};
use crate::filters::shuffle;
use crate::format::geometry::Container;
use crate::memory::grow;
use std::ops::Range;

/// Items of at most this width, in bytes.
const MAX_WIDTH: usize = 16;
/// At least this many times as many items stay as they are.
const MOSTLY_OLD: usize = 4;

/// A block that can be recoded.
struct Recoder<'a> {
    block: &'a BlockReader<'a>,
    nblock: usize,
    width: usize,
    /// Bytes of a stream when decoded: the number of items.
    len: usize,
    codec: StreamCodec,
    layout: Layout,
}

/// Writes the streams of block `nblock`, with the bytes `new` from byte `start` of the block on, to the front of `out`,
/// whose content is replaced and which grows if need be. Returns their length, or `None` if that is no case for this
/// module.
///
/// # Errors
///
/// Those of damaged streams and of the codec; `InvalidParam` for bytes outside of the block.
pub(crate) fn recode(
    block: &BlockReader<'_>,
    nblock: usize,
    start: usize,
    new: &[u8],
    enc: &Encoding<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<usize>> {
    let header = block.header();
    let end = start
        .checked_add(new.len())
        .filter(|&end| nblock < header.nblocks() && end <= header.block_len(nblock));
    let end = end.ok_or(Error::new(ErrorKind::InvalidParam, "bytes outside of the block"))?;
    let Some(recoder) = Recoder::new(block, nblock, enc) else { return Ok(None) };
    let rows = start / recoder.width..end.div_ceil(recoder.width);
    if rows.len() * MOSTLY_OLD > recoder.len {
        return Ok(None);
    }
    let room = recoder.width * (recoder.len + 4);
    grow(out, room)?;
    recoder.run(rows, start, new, enc, &mut out[..room])
}

impl<'a> Recoder<'a> {
    /// `None` if block `nblock` does not consist of such streams, or `enc` makes others.
    fn new(block: &'a BlockReader<'a>, nblock: usize, enc: &Encoding<'_>) -> Option<Recoder<'a>> {
        let reader = block.reader();
        let header = reader.header;
        let width = reader.pipeline.as_shuffle()?;
        let codec = StreamCodec::resolve(enc.params.codec_id());
        let params = CParams { blocksize: header.blocksize, ..enc.params.clone() };
        let layout = Layout::new(&params, header.blocksize);
        let planes = (2..=MAX_WIDTH).contains(&width)
            && reader.payload == Payload::Coded
            && reader.nstreams(nblock) == width
            && header.block_len(nblock) % width == 0
            && layout == Layout { blocksize: header.blocksize, split: true, typesize: width };
        let same = header.has_codec(codec.format(), codec.versionlz(), params.compcode, params.compcode_meta)
            && !codec.needs_geometry()
            && !header.has_dict();
        let quiet = reader.dec.postfilter.is_none() && enc.prefilter.is_none() && !enc.blosc1_header;
        let len = header.block_len(nblock) / width;
        (planes && same && quiet).then_some(Recoder { block, nblock, width, len, codec, layout })
    }

    /// Writes the streams with the bytes `new`, which begin at byte `start` of the block and lie in `rows`, to `out`.
    fn run(
        &self,
        rows: Range<usize>,
        start: usize,
        new: &[u8],
        enc: &Encoding<'_>,
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        let reader = self.block.reader();
        let (width, count) = (self.width, rows.len());
        let worker = &mut *scratch::worker();
        let Worker { codecs, buffers: BlockBuffers { decoded, ping, pong }, stream, .. } = worker;
        let stored = reader.streams(self.nblock, stream)?;
        let planes = decoded.get(width * self.len)?;
        let (old, changed) = ping.get(2 * width * count)?.split_at_mut(width * count);
        let streams = self.read_rows(codecs, stored, &rows, planes, old)?;
        let items = pong.get(width * count)?;
        shuffle::unshuffle(width, old, items);
        items[start - rows.start * width..][..new.len()].copy_from_slice(new);
        shuffle::shuffle(width, items, changed);
        let writer = self.writer(enc);
        let mut at = 0;
        for (j, plane) in planes.chunks_exact_mut(self.len).enumerate() {
            let (old, changed) = (&old[j * count..][..count], &changed[j * count..][..count]);
            let rest = &mut out[at..];
            let written = if old == changed {
                put(streams[j], rest)
            } else {
                change(&writer, codecs, streams[j], (&rows, changed), plane, rest)?
            };
            let Some(written) = written else { return Ok(None) };
            at += written;
        }
        // A block that does not get smaller decides how its whole chunk is stored.
        Ok((at <= width * self.len).then_some(at))
    }

    /// What is stored of each stream. Of those for the codec, all bytes go to `planes`; `rows` of all of them to `old`.
    fn read_rows<'s>(
        &self,
        codecs: &mut CodecStates,
        mut stored: StreamReader<'s>,
        rows: &Range<usize>,
        planes: &mut [u8],
        old: &mut [u8],
    ) -> Result<[Stream<'s>; MAX_WIDTH]> {
        let decoder = self.block.reader().stream_decoder();
        let mut streams = [Stream::Run(0); MAX_WIDTH];
        let places = planes.chunks_exact_mut(self.len).zip(old.chunks_exact_mut(rows.len()));
        for (stream, (plane, out)) in streams.iter_mut().zip(places) {
            *stream = stored.next_stream()?;
            match *stream {
                Stream::Run(value) => out.fill(value),
                Stream::Raw(bytes) => out.copy_from_slice(&bytes[rows.clone()]),
                coded @ Stream::Coded(_) => {
                    decoder.decode(codecs, coded, plane)?;
                    out.copy_from_slice(&plane[rows.clone()]);
                }
            }
        }
        Ok(streams)
    }

    fn writer<'w>(&'w self, enc: &'w Encoding<'_>) -> StreamWriter<'w> {
        let cx = stream_context(enc, &self.layout, &Container::None, &[]);
        StreamWriter { codec: &self.codec, dict: None, cx, runs: true }
    }
}

/// Writes the stream `old` with other bytes in `rows` to the front of `dest`; returns its length with its size. `plane`
/// holds its old bytes if it is one for the codec. `None` if there is not enough room: streams may be longer than their
/// bytes.
fn change(
    writer: &StreamWriter<'_>,
    codecs: &mut CodecStates,
    old: Stream<'_>,
    (rows, changed): (&Range<usize>, &[u8]),
    plane: &mut [u8],
    dest: &mut [u8],
) -> Result<Option<usize>> {
    let written = if let Stream::Raw(bytes) = old {
        // Most likely it is stored raw again: then it is in its place already.
        let Some(body) = dest.get_mut(4..4 + plane.len()) else { return Ok(None) };
        copy::copy(bytes, body);
        body[rows.clone()].copy_from_slice(changed);
        writer.write_from_place(codecs, plane, dest)?
    } else {
        if let Stream::Run(value) = old {
            plane.fill(value);
        }
        plane[rows.clone()].copy_from_slice(changed);
        writer.write(codecs, plane, 1, dest)?
    };
    Ok(written.map(|written| written.len))
}

/// Writes a stream as it was to the front of `dest`; returns its length with its size. `None` if there is not enough
/// room.
fn put(stream: Stream<'_>, dest: &mut [u8]) -> Option<usize> {
    let token = [RUN_TOKEN];
    let (csize, content): (i32, &[u8]) = match stream {
        Stream::Run(0) => (0, &[]),
        Stream::Run(value) => (-i32::from(value), &token),
        Stream::Raw(bytes) | Stream::Coded(bytes) => (i32::try_from(bytes.len()).ok()?, bytes),
    };
    let end = 4 + content.len();
    let dest = dest.get_mut(..end)?;
    put_i32(dest, 0, csize);
    copy::copy(content, &mut dest[4..]);
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{self, Decoding};
    use crate::format::chunk_header::{ChunkHeader, offset};
    use crate::format::consts::{EXTENDED_HEADER_LENGTH, codec, split};

    /// Items whose bytes are constant, slowly changing, and noise.
    fn data(nitems: u32) -> Vec<u8> {
        let item = |i: u32| (i.wrapping_mul(0x9e37_79b9) >> 24) | ((i / 300) << 8) | 0x4100_0000;
        (0..nitems).flat_map(|i| item(i).to_le_bytes()).collect()
    }

    #[test]
    fn a_recoded_block_is_what_compressing_all_of_it_gives() {
        for compcode in [codec::BLOSCLZ, codec::LZ4, codec::LZ4HC, codec::ZLIB, codec::ZSTD] {
            let params = CParams {
                typesize: 4,
                blocksize: 1 << 15,
                compcode: i32::from(compcode),
                splitmode: split::ALWAYS,
                ..CParams::default()
            };
            let enc = Encoding::new(&params);
            let old = data(3 << 13);
            let mut chunk = vec![0; old.len() + EXTENDED_HEADER_LENGTH];
            let cbytes = chunk::compress(&params, &old, &mut chunk).unwrap();
            let (dec, header) = (Decoding::default(), ChunkHeader::read(&chunk).unwrap());
            let block = BlockReader::open(&dec, &header, &chunk[..cbytes]).unwrap();
            // Noise, other noise in the lowest byte alone, the same as before, and partial items.
            let noise: Vec<u8> = (0..600u32).map(|i| (i * i % 251).to_le_bytes()[0]).collect();
            let mut low = old[(1 << 15) + 400..][..400].to_vec();
            low.iter_mut().step_by(4).for_each(|byte| *byte ^= 0x55);
            let same = &old[(1 << 15) + 800..][..400];
            for (start, new) in
                [(0, &noise[..]), (400, &low[..]), (800, same), (1001, &noise[..5]), (32_400, &noise[..368])]
            {
                let mut recoded = vec![0xEE; 100];
                let len = recode(&block, 1, start, new, &enc, &mut recoded).unwrap().unwrap();
                let mut model = old.clone();
                model[(1 << 15) + start..][..new.len()].copy_from_slice(new);
                let mut whole = vec![0; old.len() + EXTENDED_HEADER_LENGTH];
                chunk::compress(&params, &model, &mut whole).unwrap();
                let bstart = |n: usize| {
                    let at = EXTENDED_HEADER_LENGTH + 4 * n;
                    usize::try_from(i32::from_le_bytes(whole[at..at + 4].try_into().unwrap())).unwrap()
                };
                assert!(recoded[..len] == whole[bstart(1)..bstart(2)], "codec {compcode} from {start}");
            }
            let mut out = Vec::new();
            assert!(recode(&block, 1, 32_400, &noise, &enc, &mut out).is_err());
            assert!(recode(&block, 3, 0, &noise, &enc, &mut out).is_err());
            // Where much changes, compressing all of it is as good.
            assert_eq!(recode(&block, 0, 0, &old[..20_000], &enc, &mut out), Ok(None));
            let other = CParams { compcode_meta: 1, ..params.clone() };
            assert_eq!(recode(&block, 1, 0, &noise, &Encoding::new(&other), &mut out), Ok(None));
        }
    }

    #[test]
    fn streams_that_are_longer_than_their_bytes_are_left_to_others() {
        // A block of four streams of 1000 bytes, of which all but the last one are LZ4 without a match, and it twice.
        let stream: Vec<u8> = (0..1000u32).map(|i| (i * i % 251).to_le_bytes()[0]).collect();
        let coded = [&[0xf0, 255, 255, 255, 220][..], &stream].concat();
        let mut block = Vec::new();
        for content in [&coded, &coded, &coded, &stream] {
            block.extend_from_slice(&i32::try_from(content.len()).unwrap().to_le_bytes());
            block.extend_from_slice(content);
        }
        let params = CParams {
            typesize: 4,
            blocksize: 4000,
            compcode: i32::from(codec::LZ4),
            splitmode: split::ALWAYS,
            ..CParams::default()
        };
        let enc = Encoding::new(&params);
        let mut chunk = vec![0; 8032];
        chunk::compress(&params, &[1; 8000], &mut chunk).unwrap();
        let start = EXTENDED_HEADER_LENGTH + 8;
        chunk.truncate(start);
        for (n, at) in [start, start + block.len()].into_iter().enumerate() {
            chunk.extend_from_slice(&block);
            put_i32(&mut chunk, EXTENDED_HEADER_LENGTH + 4 * n, i32::try_from(at).unwrap());
        }
        let cbytes = i32::try_from(chunk.len()).unwrap();
        put_i32(&mut chunk, offset::CBYTES, cbytes);
        let mut data = vec![0; 8000];
        assert_eq!(chunk::decompress(&chunk, &mut data), Ok(8000));

        let (dec, header) = (Decoding::default(), ChunkHeader::read(&chunk).unwrap());
        let reader = BlockReader::open(&dec, &header, &chunk).unwrap();
        data[7] ^= 1;
        assert_eq!(recode(&reader, 1, 4, &data[4..8], &enc, &mut Vec::new()), Ok(None));
    }
}
