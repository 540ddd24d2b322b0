//! The metalayer that makes a super-chunk an n-dimensional array: `b2nd`, or `caterva` in older files.
//!
//! With `n` dimensions and a dtype of `L` bytes, all integers big-endian:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 3 | `97`, version 0, n |
//! | 3 | 1 + 9n | `90 + n`, then for each dimension `d3` and the extent of the array |
//! | 4 + 9n | 1 + 5n | `90 + n`, then for each dimension `d2` and the extent of a chunk |
//! | 5 + 14n | 1 + 5n | `90 + n`, then for each dimension `d2` and the extent of a block |
//! | 6 + 19n | 2 | dtype format, `db` |
//! | 8 + 19n | 4 + L | L, dtype |
//!
//! For 16 dimensions the array markers come out as `a0`, which is no array in msgpack; files are like that. Readers
//! check neither these markers nor those of the integers. `caterva` metalayers end before the dtype.

use super::geometry::{BlockGeometry, MAX_DIM};
use super::metalayers::Metalayer;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::memory;
use std::sync::Arc;

/// Name of the metalayer.
pub const NAME: &[u8] = b"b2nd";
/// Its name in older files.
pub const OLD_NAME: &[u8] = b"caterva";
/// The dtype of arrays that name none.
pub const DEFAULT_DTYPE: &[u8] = b"|u1";

const STR32: u8 = 0xdb;

const CUT_OFF: Error = failure("metalayer of an array cut off");

/// The content of the metalayer. Extents are as stored: a hostile file may hold any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NdMeta {
    /// Items of the array in each dimension, slowest first; at most [`MAX_DIM`].
    pub shape: Vec<i64>,
    /// Items of a chunk; as many as `shape` has.
    pub chunkshape: Vec<i32>,
    /// Items of a block; as many as `shape` has.
    pub blockshape: Vec<i32>,
    /// The data type; `None` in older files. Any bytes.
    pub dtype: Option<Vec<u8>>,
    /// Notation of the data type; 0 is NumPy's.
    pub dtype_format: i8,
}

impl NdMeta {
    /// Number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The stored bytes. Without a dtype, that of [`DEFAULT_DTYPE`] is written.
    ///
    /// # Errors
    ///
    /// `Failure` for a negative dtype format or a dtype of 2 GiB, `MemoryAlloc`.
    pub fn write(&self) -> Result<Vec<u8>> {
        ensure(self.dtype_format >= 0, ErrorKind::Failure, "negative dtype format")?;
        let dtype = self.dtype.as_deref().unwrap_or(DEFAULT_DTYPE);
        let len = i32::try_from(dtype.len()).map_err(|_| failure("dtype too long"))?;
        let ndim = u8::try_from(self.ndim()).map_err(|_| failure("too many dimensions"))?;
        let marker = 0x90u8.wrapping_add(ndim);
        let mut bytes = memory::with_capacity(12 + 19 * self.ndim() + dtype.len())?;
        bytes.extend_from_slice(&[0x97, 0, ndim, marker]);
        for extent in &self.shape {
            bytes.push(0xd3);
            bytes.extend_from_slice(&extent.to_be_bytes());
        }
        for extents in [&self.chunkshape, &self.blockshape] {
            bytes.push(marker);
            for extent in extents {
                bytes.push(0xd2);
                bytes.extend_from_slice(&extent.to_be_bytes());
            }
        }
        bytes.extend_from_slice(&self.dtype_format.to_be_bytes());
        bytes.push(STR32);
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(dtype);
        Ok(bytes)
    }

    /// Reads the shapes at the front of `bytes`; returns them, without a dtype, and the number of bytes that they take.
    ///
    /// # Errors
    ///
    /// `Failure` if the bytes end too early or there are too many dimensions.
    pub fn read_shapes(bytes: &[u8]) -> Result<(NdMeta, usize)> {
        let mut rest = bytes;
        let [_, _, ndim] = take(&mut rest)?;
        let ndim = usize::from(ndim);
        ensure(ndim <= MAX_DIM, ErrorKind::Failure, "too many dimensions")?;
        take::<1>(&mut rest)?;
        let mut shape = Vec::with_capacity(ndim);
        for _ in 0..ndim {
            take::<1>(&mut rest)?;
            shape.push(i64::from_be_bytes(take(&mut rest)?));
        }
        let mut read_extents = || {
            take::<1>(&mut rest)?;
            (0..ndim)
                .map(|_| {
                    take::<1>(&mut rest)?;
                    Ok(i32::from_be_bytes(take(&mut rest)?))
                })
                .collect::<Result<Vec<i32>>>()
        };
        let chunkshape = read_extents()?;
        let blockshape = read_extents()?;
        let meta = NdMeta { shape, chunkshape, blockshape, dtype: None, dtype_format: 0 };
        Ok((meta, bytes.len() - rest.len()))
    }

    /// Reads the metalayer; returns it and the number of bytes that it takes, which may be followed by others.
    ///
    /// # Errors
    ///
    /// `Failure` if the bytes end too early, there are too many dimensions, or what follows the shapes is no dtype;
    /// `MemoryAlloc`.
    pub fn read(bytes: &[u8]) -> Result<(NdMeta, usize)> {
        let (mut meta, at) = NdMeta::read_shapes(bytes)?;
        let mut rest = &bytes[at..];
        if rest.is_empty() {
            return Ok((meta, at));
        }
        let [format, marker] = take(&mut rest)?;
        let len = i32::from_be_bytes(take(&mut rest)?);
        ensure(marker == STR32, ErrorKind::Failure, "dtype has a wrong marker")?;
        let dtype = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let dtype = dtype.ok_or(failure("dtype reaches past the end"))?;
        meta.dtype = Some(memory::copy_of(dtype)?);
        meta.dtype_format = i8::from_be_bytes([format]);
        Ok((meta, at + 6 + dtype.len()))
    }
}

/// Changes the shape in `bytes`, the content of the metalayer of an array with as many dimensions; all else stays.
///
/// # Errors
///
/// `Failure` if the bytes end too early; nothing is changed then.
pub fn set_shape(bytes: &mut [u8], shape: &[i64]) -> Result<()> {
    let fields = bytes.get_mut(4..4 + 9 * shape.len()).ok_or(CUT_OFF)?;
    for (field, extent) in fields.chunks_exact_mut(9).zip(shape) {
        field[1..].copy_from_slice(&extent.to_be_bytes());
    }
    Ok(())
}

/// The next `N` bytes of `rest`.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(CUT_OFF)?;
    *rest = tail;
    Ok(*head)
}

const fn failure(what: &'static str) -> Error {
    Error::new(ErrorKind::Failure, what)
}

/// The metalayer of an array among `layers`; the older one counts only if there is no other.
#[must_use]
pub fn find(layers: &[Arc<Metalayer>]) -> Option<&Metalayer> {
    let named = |name: &[u8]| layers.iter().find(|layer| layer.name == name);
    named(NAME).or_else(|| named(OLD_NAME)).map(|layer| &**layer)
}

/// The shape of a block, if `layers` describe an array.
#[must_use]
pub fn block_geometry(layers: &[Arc<Metalayer>]) -> Option<BlockGeometry> {
    let (meta, _) = NdMeta::read_shapes(&find(layers)?.content).ok()?;
    BlockGeometry::new(&meta.blockshape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> NdMeta {
        NdMeta {
            shape: vec![20, 10],
            chunkshape: vec![7, 5],
            blockshape: vec![3, 5],
            dtype: Some(b"<f8".to_vec()),
            dtype_format: 0,
        }
    }

    #[test]
    fn documented_bytes_are_written_and_read() {
        let expected = [
            0x97, 0, 2, 0x92, 0xd3, 0, 0, 0, 0, 0, 0, 0, 0x14, 0xd3, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0x92, 0xd2,
            0, 0, 0, 7, 0xd2, 0, 0, 0, 5, 0x92, 0xd2, 0, 0, 0, 3, 0xd2, 0, 0, 0, 5, 0, 0xdb, 0, 0, 0, 3,
            0x3c, 0x66, 0x38,
        ];
        let bytes = sample().write().unwrap();
        assert_eq!(bytes, expected);
        assert_eq!(NdMeta::read(&bytes).unwrap(), (sample(), 53));
    }

    #[test]
    fn no_dtype_is_written_as_bytes() {
        let none =
            NdMeta { shape: vec![], chunkshape: vec![], blockshape: vec![], dtype: None, dtype_format: 0 };
        let expected = [0x97, 0, 0, 0x90, 0x90, 0x90, 0, 0xdb, 0, 0, 0, 3, 0x7c, 0x75, 0x31];
        assert_eq!(none.write().unwrap(), expected);
        let negative = NdMeta { dtype_format: -1, ..none };
        assert_eq!(negative.write().unwrap_err().kind(), ErrorKind::Failure);
    }

    #[test]
    fn sixteen_dimensions_have_the_marker_of_existing_files() {
        let meta = NdMeta {
            shape: vec![1; 16],
            chunkshape: vec![1; 16],
            blockshape: vec![1; 16],
            dtype: None,
            dtype_format: 0,
        };
        let bytes = meta.write().unwrap();
        assert_eq!(bytes.len(), 319);
        assert_eq!((bytes[3], bytes[148], bytes[229]), (0xa0, 0xa0, 0xa0));
        assert_eq!(NdMeta::read(&bytes).unwrap().0.shape, meta.shape);
    }

    #[test]
    fn older_metalayers_end_before_the_dtype() {
        let mut bytes = sample().write().unwrap();
        bytes.truncate(44);
        bytes[0] = 0x95;
        let (meta, len) = NdMeta::read(&bytes).unwrap();
        assert_eq!((meta.dtype, len), (None, 44));
    }

    #[test]
    fn what_is_cut_off_or_too_large_is_refused() {
        let bytes = sample().write().unwrap();
        for len in (0..bytes.len()).filter(|&len| len != 44) {
            assert_eq!(NdMeta::read(&bytes[..len]).unwrap_err().kind(), ErrorKind::Failure, "{len}");
        }
        let with = |at: usize, value: u8| {
            let mut bad = bytes.clone();
            bad[at] = value;
            NdMeta::read(&bad).map(|found| found.0)
        };
        assert!(with(2, 17).is_err() && with(2, 255).is_err());
        assert!(with(45, 0xd9).is_err());
        assert!(with(49, 4).is_err() && with(46, 0xff).is_err());
        assert_eq!(with(44, 200).unwrap().dtype_format, -56);
        assert_eq!(with(49, 2).unwrap().dtype.as_deref(), Some(&b"<f"[..]));
        for ignored in [0, 1, 3, 4, 13, 22, 23, 33] {
            assert_eq!(with(ignored, 0).unwrap().ndim(), 2, "{ignored}");
        }
    }

    #[test]
    fn a_new_shape_leaves_the_rest_as_it_is() {
        let mut bytes = sample().write().unwrap();
        set_shape(&mut bytes, &[-1, 1 << 40]).unwrap();
        let changed = NdMeta { shape: vec![-1, 1 << 40], ..sample() };
        assert_eq!(bytes, changed.write().unwrap());
        for len in 0..22 {
            let mut short = bytes[..len].to_vec();
            assert_eq!(set_shape(&mut short, &[3, 4]).unwrap_err().kind(), ErrorKind::Failure, "{len}");
            assert_eq!(short, bytes[..len]);
        }
    }

    #[test]
    fn the_current_metalayer_goes_before_the_older_one() {
        let layer = |name: &[u8], content: Vec<u8>| Metalayer::with_content(name, content).unwrap();
        let other = NdMeta { blockshape: vec![1, 1], ..sample() };
        let layers = [layer(OLD_NAME, other.write().unwrap()), layer(NAME, sample().write().unwrap())];
        assert_eq!(block_geometry(&layers).unwrap().blockshape(), [3, 5]);
        assert_eq!(block_geometry(&layers[..1]).unwrap().blockshape(), [1, 1]);
        assert_eq!(block_geometry(&[]), None);
    }
}
