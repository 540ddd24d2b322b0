//! Packed super-chunks of 2015 to 2017, turned into super-chunks and back.

#![forbid(unsafe_code)]

use super::{Reading, Schunk};
use crate::chunk::{self, CParams, Encoding};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::{BasicHeader, ChunkHeader, offset};
use crate::format::consts::{MAX_FILTERS, MIN_HEADER_LENGTH, codec, filter, flags, special, split};
use crate::format::frame_header::{self, FrameParams};
use crate::format::packed::{self, Packed, PackedParams, PackedSpecial};
use crate::frame::FrameOptions;
use crate::io::file::FileIo;
use crate::io::memory::MallocBuf;
use crate::io::{Io, OpenMode};
use crate::memory::{self, no_memory, zeroed};
use std::borrow::Cow;
use std::path::Path;

/// Names of the variable-length metalayers for the metadata chunks.
const METADATA: &[u8] = b"metadata";
const USERDATA: &[u8] = b"userdata";

impl Schunk {
    /// A super-chunk in memory with the chunks of the packed one in `bytes`. Metadata and userdata become
    /// variable-length metalayers with these names.
    ///
    /// # Errors
    ///
    /// Those of a damaged buffer, and of decompressing where the old delta filter must be undone.
    pub fn from_packed(bytes: &[u8]) -> Result<Schunk> {
        let packed = Packed::read(bytes)?;
        let params = frame_params(&packed);
        let mut schunk = Schunk::in_memory(params);
        let reference = match packed.special.filters {
            Some(reference) if packed.has_delta() => Some(decompress(reference)?),
            _ => None,
        };
        for chunk in &packed.chunks {
            match &reference {
                None => schunk.append_chunk(&readable(chunk)?)?,
                Some(reference) => schunk.append_chunk(&without_delta(chunk, reference, &params)?)?,
            };
        }
        for (name, chunk) in [(METADATA, packed.special.metadata), (USERDATA, packed.special.userdata)] {
            if let Some(chunk) = chunk {
                schunk.vlmeta_add(name, &decompress(chunk)?, None)?;
            }
        }
        Ok(schunk)
    }

    /// As [`from_packed`](Self::from_packed), from the file at `path`, which is not changed afterwards.
    ///
    /// # Errors
    ///
    /// `FileOpen`, `FileRead`, `InvalidHeader` if the file is nothing of the kind, else as there.
    pub fn open_packed(path: &Path) -> Result<Schunk> {
        let file = FileIo.open(path, OpenMode::Read)?;
        let len = file.size()?;
        let mut head = [0; packed::HEADER_LEN];
        file.read_exact_at(0, &mut head)?;
        ensure(Packed::is_likely(&head, len), ErrorKind::InvalidHeader, "no packed super-chunk")?;
        let mut bytes = zeroed(usize::try_from(len).map_err(|_| no_memory())?)?;
        file.read_exact_at(0, &mut bytes)?;
        Schunk::from_packed(&bytes)
    }

    /// A super-chunk made of what is in `buffer`: over the frame there, or a packed one, which is read into memory.
    ///
    /// # Errors
    ///
    /// Those of [`from_buffer`](Self::from_buffer) and [`from_packed`](Self::from_packed).
    pub fn from_any_buffer(buffer: MallocBuf) -> Result<Schunk> {
        if !frame_header::has_magic(&buffer) && Packed::is_likely(&buffer, buffer.len() as u64) {
            return Schunk::from_packed(&buffer);
        }
        Schunk::from_buffer(buffer)
    }

    /// Opens what starts at byte `offset` of `path`: a frame or, at the start of a file, a packed super-chunk. That is
    /// read into memory, from the file as it is, whatever back-end the `options` name.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_any(path: &Path, offset: u64, options: &FrameOptions) -> Result<Schunk> {
        Schunk::open(path, offset, options).or_else(|e| {
            let packed = (offset == 0).then(|| Schunk::open_packed(path).ok()).flatten();
            packed.ok_or(e)
        })
    }

    /// The packed form of the super-chunk: its chunks compressed again as Blosc1 chunks, and the metalayers that
    /// [`from_packed`](Self::from_packed) makes.
    ///
    /// # Errors
    ///
    /// Those of reading and compressing; `InvalidParam` for codecs and filters that the old format does not know.
    pub fn to_packed(&self) -> Result<Vec<u8>> {
        let params = self.params();
        let old = packed_params(&params)?;
        let cparams = CParams { splitmode: split::ALWAYS, ..cparams(&params) };
        let enc = Encoding { blosc1_header: true, ..Encoding::new(&cparams) };
        let mut chunks = memory::with_capacity(self.nchunks())?;
        for nchunk in 0..self.nchunks() {
            let nbytes = self.with_chunk(nchunk, |chunk| Ok(BasicHeader::read(chunk)?.nbytes))?;
            let mut data = zeroed(usize::try_from(nbytes).unwrap_or(0))?;
            self.decompress_chunk(nchunk, &mut data, &Reading::default())?;
            chunks.push(compress(&enc, &data)?);
        }
        let layer = |name: &[u8]| match self.vlmeta_get(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            found => compress(&enc, &found?.1).map(Some),
        };
        let (metadata, userdata) = (layer(METADATA)?, layer(USERDATA)?);
        let special = PackedSpecial {
            metadata: metadata.as_deref(),
            userdata: userdata.as_deref(),
            ..PackedSpecial::default()
        };
        let chunks: Vec<&[u8]> = memory::collect(chunks.iter().map(Vec::as_slice))?;
        packed::write(&old, &special, &chunks)
    }
}

/// `chunk` as its reader takes it.
///
/// In chunks of 2017 the flags of today's long header, after a short one, say that the super-chunk had the filters.
/// Those are lost, but what is stored raw does not need them.
fn readable(chunk: &[u8]) -> Result<Cow<'_, [u8]>> {
    let header = BasicHeader::read(chunk)?;
    let has_short_header = usize::try_from(header.nbytes).is_ok_and(|n| n + MIN_HEADER_LENGTH == chunk.len());
    if header.flags & flags::MEMCPYED == 0 || !header.is_extended() || !has_short_header {
        return Ok(Cow::Borrowed(chunk));
    }
    let mut plain = memory::copy_of(chunk)?;
    plain[offset::FLAGS] &= !flags::EXTENDED;
    Ok(Cow::Owned(plain))
}

/// The data of `chunk`.
fn decompress(chunk: &[u8]) -> Result<Vec<u8>> {
    let chunk = readable(chunk)?;
    // The format knows none, and a few bytes of them would ask for gigabytes.
    let special = ChunkHeader::read(&chunk)?.special();
    ensure(special == special::NONE, ErrorKind::InvalidHeader, "special values in a packed super-chunk")?;
    let nbytes = usize::try_from(BasicHeader::read(&chunk)?.nbytes).unwrap_or(0);
    let mut data = zeroed(nbytes)?;
    chunk::decompress(&chunk, &mut data)?;
    Ok(data)
}

/// The chunk with its data as they were before the old delta filter subtracted `reference`.
///
/// Chunks that are stored raw may or may not have been filtered; nothing tells, and the old library left them alone.
fn without_delta(chunk: &[u8], reference: &[u8], params: &FrameParams) -> Result<Vec<u8>> {
    if BasicHeader::read(chunk)?.flags & flags::MEMCPYED != 0 {
        return memory::copy_of(chunk);
    }
    let mut data = decompress(chunk)?;
    for (byte, &reference) in data.iter_mut().zip(reference) {
        *byte = byte.wrapping_add(reference);
    }
    compress(&Encoding::new(&cparams(params)), &data)
}

/// What chunks of data with these parameters are compressed with.
fn cparams(params: &FrameParams) -> CParams {
    CParams {
        compcode: i32::from(params.compcode),
        clevel: params.clevel.min(9),
        typesize: usize::try_from(params.typesize).unwrap_or(0).max(1),
        filters: params.filters,
        ..CParams::default()
    }
}

/// The chunk of `data`.
fn compress(enc: &Encoding<'_>, data: &[u8]) -> Result<Vec<u8>> {
    let mut dest = zeroed(chunk::room_for(data.len()))?;
    let cbytes = chunk::compress_with(enc, chunk::Source::Bytes(data), &mut dest)?.cbytes;
    ensure(cbytes > 0, ErrorKind::Failure, "chunk cannot be compressed")?;
    dest.truncate(cbytes);
    Ok(dest)
}

/// The parameters of a super-chunk with the chunks of a packed one.
fn frame_params(packed: &Packed<'_>) -> FrameParams {
    let old = packed.params.unwrap_or_default();
    let mut filters = [filter::NONE; MAX_FILTERS];
    for (slot, &id) in old.filters.iter().enumerate() {
        // The delta filter of then is undone on reading.
        filters[slot + 1] = match id {
            1 => filter::SHUFFLE,
            2 => filter::BITSHUFFLE,
            _ => filter::NONE,
        };
    }
    FrameParams {
        typesize: i32::from(packed.typesize),
        compcode: match old.compcode {
            1 => codec::LZ4,
            2 => codec::LZ4HC,
            4 => codec::ZLIB,
            5 => codec::ZSTD,
            _ => codec::BLOSCLZ,
        },
        clevel: old.clevel.min(9).to_le_bytes()[0],
        splitmode: split::FORWARD_COMPAT.to_le_bytes()[0],
        filters,
        ..FrameParams::default()
    }
}

/// The parameters in the header of the packed form; `InvalidParam` if they cannot be told there.
fn packed_params(params: &FrameParams) -> Result<PackedParams> {
    let compcode = match params.compcode {
        code @ (codec::BLOSCLZ | codec::LZ4 | codec::LZ4HC | codec::ZLIB | codec::ZSTD) => u16::from(code),
        _ => return Err(Error::new(ErrorKind::InvalidParam, "codec unknown to packed super-chunks")),
    };
    let used: Vec<u8> = params.filters.iter().copied().filter(|&id| id != filter::NONE).collect();
    let known = used.len() <= 1 && used.iter().all(|&id| matches!(id, filter::SHUFFLE | filter::BITSHUFFLE));
    require(known, "filters unknown to packed super-chunks")?;
    let mut filters = [0; 5];
    if let Some(&id) = used.first() {
        filters[0] = id;
    }
    Ok(PackedParams { compcode, clevel: u16::from(params.clevel), filters, ..PackedParams::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{Encoding, Source};
    use crate::schunk::Writing;
    use crate::testing::TempPath;

    fn ramp(start: u32, n: u32) -> Vec<u8> {
        (start..start + n).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn packing_and_unpacking_keeps_data_and_metadata() {
        for compcode in [codec::BLOSCLZ, codec::LZ4, codec::ZLIB, codec::ZSTD] {
            let params = FrameParams {
                typesize: 4,
                clevel: 5,
                compcode,
                splitmode: 4,
                filters: [0, 0, 0, 0, 0, 1],
                ..FrameParams::default()
            };
            let mut schunk = Schunk::in_memory(params);
            let cparams = CParams { typesize: 4, ..CParams::default() };
            for i in 0..5 {
                let data = ramp(i * 1000, 1000);
                schunk.append_buffer(Source::Bytes(&data), &Writing::new(Encoding::new(&cparams))).unwrap();
            }
            schunk.vlmeta_add(USERDATA, b"about it", None).unwrap();
            let bytes = schunk.to_packed().unwrap();
            let again = Schunk::from_packed(&bytes).unwrap();
            let mut data = vec![0; 20_000];
            again.get_slice(0, 5000, &mut data, &Reading::default()).unwrap();
            assert!(data == ramp(0, 5000));
            assert_eq!(again.vlmeta_get(USERDATA).unwrap().1, b"about it");
            assert_eq!(again.params().compcode, compcode);
        }
    }

    #[test]
    fn frames_and_packed_super_chunks_are_told_apart() {
        let params = FrameParams { typesize: 4, clevel: 5, compcode: codec::LZ4, ..FrameParams::default() };
        let mut schunk = Schunk::in_memory(params);
        let cparams = CParams { typesize: 4, ..CParams::default() };
        schunk.append_buffer(Source::Bytes(&ramp(0, 1000)), &Writing::new(Encoding::new(&cparams))).unwrap();
        let frame = schunk.to_frame(params).unwrap().into_buffer().unwrap().to_vec();
        let packed = schunk.to_packed().unwrap();
        let (path, options) = (TempPath::new("any"), FrameOptions::default());
        for (bytes, is_frame) in [(&frame, true), (&packed, false)] {
            std::fs::write(&*path, bytes).unwrap();
            let opened = Schunk::open_any(&path, 0, &options).unwrap();
            let read = Schunk::from_any_buffer(MallocBuf::copy_of(bytes).unwrap()).unwrap();
            for schunk in [opened, read] {
                assert!(schunk.frame().is_some() == is_frame && schunk.nbytes() == 4000);
            }
            let cut = MallocBuf::copy_of(&bytes[..bytes.len() - 1]).unwrap();
            assert_eq!(Schunk::from_any_buffer(cut).err().map(Error::kind), Some(ErrorKind::InvalidHeader));
            assert!(Schunk::open_any(&path, 1, &options).is_err());
        }
    }

    #[test]
    fn special_values_are_refused_before_they_are_decompressed() {
        let mut chunk = [0; 64];
        let value = chunk::SpecialValue::Repeated(b"x");
        let bytes = CParams { typesize: 1, ..CParams::default() };
        let cbytes = chunk::special_chunk(&bytes, 0x7fff_ff00, value, &mut chunk).unwrap();
        let bomb = &chunk[..cbytes];
        let mut data = vec![0; 100 + MIN_HEADER_LENGTH];
        let plain = Encoding { blosc1_header: true, ..Encoding::new(&bytes) };
        let cbytes = chunk::compress_with(&plain, Source::Bytes(&[7; 100]), &mut data).unwrap().cbytes;
        let plain = &data[..cbytes];
        let refused = |params: &PackedParams, special: &PackedSpecial<'_>, chunks: &[&[u8]]| {
            let bytes = packed::write(params, special, chunks).unwrap();
            Schunk::from_packed(&bytes).err().map(Error::kind)
        };
        let (params, none) = (PackedParams::default(), PackedSpecial::default());
        let userdata = PackedSpecial { userdata: Some(bomb), ..none };
        assert_eq!(refused(&params, &userdata, &[plain]), Some(ErrorKind::InvalidHeader));
        assert_eq!(refused(&params, &PackedSpecial { userdata: Some(plain), ..none }, &[plain]), None);
        let delta = PackedParams { filters: [3, 0, 0, 0, 0], ..params };
        let reference = PackedSpecial { filters: Some(plain), ..none };
        assert_eq!(refused(&delta, &reference, &[plain]), None);
        assert_eq!(refused(&delta, &reference, &[bomb]), Some(ErrorKind::InvalidHeader));
    }

    #[test]
    fn damaged_userdata_are_an_error_and_not_left_out() {
        let params = FrameParams { typesize: 1, clevel: 5, ..FrameParams::default() };
        let mut schunk = Schunk::in_memory(params);
        schunk.vlmeta_add(USERDATA, &ramp(0, 100), None).unwrap();
        assert!(schunk.to_packed().is_ok());
        schunk.vlmeta_update_stored(USERDATA, vec![1; 40]).unwrap();
        assert_eq!(schunk.to_packed().unwrap_err().kind(), ErrorKind::Data);
    }

    #[test]
    fn stored_chunks_of_2017_are_read() {
        let chunk = |first| {
            let mut chunk = vec![3, 1, 0x17, 4, 32, 0, 0, 0, 32, 0, 0, 0, 48, 0, 0, 0];
            chunk.extend(ramp(first, 8));
            chunk
        };
        let chunks = [chunk(1), chunk(101), chunk(201)];
        let mut bytes = vec![0x11, 0x12, 0x13, 0x14, 0, 5, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        // Chunks, nbytes, cbytes; special chunks, of which the last has the userdata; the table.
        for field in [2u64, 120 + 3 * 32 + 16, 120 + 3 * 48 + 16, 0, 0, 0, 120, 120 + 3 * 48] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.resize(120, 0);
        bytes.extend(chunks.concat());
        bytes.extend([168u64, 216].iter().flat_map(|at| at.to_le_bytes()));
        let schunk = Schunk::from_packed(&bytes).unwrap();
        assert_eq!(schunk.vlmeta_get(USERDATA).unwrap().1, ramp(1, 8));
        let mut data = vec![0; 64];
        schunk.get_slice(0, 16, &mut data, &Reading::default()).unwrap();
        assert!(data[..32] == ramp(101, 8) && data[32..] == ramp(201, 8));
    }

    #[test]
    fn the_old_delta_filter_is_undone() {
        let cparams = CParams { typesize: 4, ..CParams::default() };
        let reference = ramp(0, 1000);
        let data = ramp(5000, 1000);
        let delta: Vec<u8> = data.iter().zip(&reference).map(|(a, b)| a.wrapping_sub(*b)).collect();
        let mut enc = Encoding::new(&cparams);
        enc.blosc1_header = true;
        let compress = |data: &[u8]| {
            let mut dest = vec![0; data.len() + 32];
            let n = chunk::compress_with(&enc, Source::Bytes(data), &mut dest).unwrap().cbytes;
            dest.truncate(n);
            dest
        };
        let (reference, coded) = (compress(&reference), compress(&delta));
        assert_eq!(coded[offset::FLAGS] & flags::MEMCPYED, 0);
        let special = PackedSpecial { filters: Some(&reference), ..PackedSpecial::default() };
        let params = PackedParams { filters: [3, 1, 0, 0, 0], clevel: 5, ..PackedParams::default() };
        let bytes = packed::write(&params, &special, &[&coded]).unwrap();
        let schunk = Schunk::from_packed(&bytes).unwrap();
        let mut got = vec![0; 4000];
        schunk.get_slice(0, 1000, &mut got, &Reading::default()).unwrap();
        assert!(got == data);

        // What is stored raw was left alone.
        let stored = {
            let mut header = vec![2, 1, 0x13, 4, 32, 0, 0, 0, 32, 0, 0, 0, 48, 0, 0, 0];
            header.extend(ramp(77, 8));
            header
        };
        let bytes = packed::write(&params, &special, &[&stored]).unwrap();
        let schunk = Schunk::from_packed(&bytes).unwrap();
        let mut got = vec![0; 32];
        schunk.get_slice(0, 8, &mut got, &Reading::default()).unwrap();
        assert!(got == ramp(77, 8));
    }
}
