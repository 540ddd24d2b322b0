//! ZFP: lossy compression of blocks of 1 to 4 dimensions of floats.
//!
//! The stream is that of ZFP's codec 5 without any header: the mode comes from the codec's id, its parameter from the
//! meta byte, the item type from the typesize of the super-chunk, the shape from its n-d metalayer.
//!
//! | module | task |
//! |---|---|
//! | `field` | the block as a grid of cells |
//! | `partial` | item ranges of fixed-rate streams |
//! | `cell` | a cell to bits and back |
//! | `real` | floats to integers of a common exponent |
//! | `transform`, `order` | decorrelation, order of the coefficients |
//! | `planes` | coefficients to bit planes |
//! | `coding`, `pairs` | coding of bit planes; of two small ones at once |
//! | `bitstream` | bits in bytes |

mod bitstream;
mod cell;
mod coding;
mod field;
mod order;
mod pairs;
mod partial;
mod planes;
mod real;
#[cfg(test)]
mod tests;
mod transform;

use super::{Codec, CodecContext};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::geometry::Container;
use cell::Limits;
use field::Field;
use real::Real;

/// What is fixed: an absolute error, a relative error, or the length of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Absolute errors stay below 10^meta, with meta as a signed byte.
    Accuracy,
    /// meta + 2·ndim + 3 bit planes of each cell are kept.
    Precision,
    /// The stream has meta % of the length of the data.
    Rate,
}

/// The codec, in one of its modes.
#[derive(Clone, Copy, Debug)]
pub struct Zfp {
    mode: Mode,
}

impl Zfp {
    /// The codec in mode `mode`.
    #[must_use]
    pub const fn new(mode: Mode) -> Zfp {
        Zfp { mode }
    }
}

/// Up to this part of a block, a quarter, is decoded without the rest. Larger ones are not, since cells take longer one
/// by one than in a row.
const PART: usize = 4;

/// The most bits that any cell can take.
const UNLIMITED_BITS: u32 = 16658;
/// Below the exponent of all numbers.
const UNLIMITED_EXPONENT: i32 = -1074;

impl Mode {
    fn limits(self, meta: u8, field: &Field, size: usize) -> Limits {
        let unlimited = Limits {
            min_bits: 1,
            max_bits: UNLIMITED_BITS,
            max_precision: 64,
            min_exponent: UNLIMITED_EXPONENT,
        };
        let dims = field.dims as u32;
        match self {
            Mode::Accuracy => Limits { min_exponent: log2_of_power_of_ten(meta as i8), ..unlimited },
            Mode::Precision => {
                Limits { max_precision: (u32::from(meta) + 2 * dims + 3).min(64), ..unlimited }
            }
            Mode::Rate => {
                let bits = 8 * size as u32 * 4u32.pow(dims);
                // Per cent of the bits of the items, rounded to nearest; at least a head: a flag and the exponent.
                let rate = (u32::from(meta) * bits + 50) / 100;
                let bits = rate.max(1 + if size == 4 { f32::EXPONENT_BITS } else { f64::EXPONENT_BITS });
                Limits { min_bits: bits, max_bits: bits, ..unlimited }
            }
        }
    }
}

/// floor(log2(10^`exponent`)).
fn log2_of_power_of_ten(exponent: i8) -> i32 {
    // 217706 / 2^16 is log2(10), close enough for |exponent| up to 1233.
    (i32::from(exponent) * 217_706) >> 16
}

/// The typesize, if ZFP knows such items.
fn item_size(typesize: i32) -> Result<usize> {
    match typesize {
        4 => Ok(4),
        8 => Ok(8),
        _ => Err(Error::new(ErrorKind::Data, "ZFP needs items of 4 or 8 bytes")),
    }
}

const NO_SHAPE: Error = Error::new(ErrorKind::Data, "ZFP needs the shape of the block");

/// The block and the size of its items, for decoding `src`.
fn stored_field(container: &Container, src: &[u8]) -> Result<(Field, usize)> {
    ensure(src.len() >= bitstream::WORD, ErrorKind::Data, "ZFP stream without a whole word")?;
    let (Some(typesize), Some(geometry)) = (container.typesize(), container.geometry()) else {
        return Err(NO_SHAPE);
    };
    let field = Field::new(geometry.blockshape())
        .ok_or(Error::new(ErrorKind::Data, "block shape that ZFP cannot handle"))?;
    Ok((field, item_size(typesize)?))
}

impl Codec for Zfp {
    fn encode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<usize> {
        let Some(typesize) = cx.container.typesize() else {
            return Ok(0);
        };
        let blockshape = cx.container.geometry().ok_or(NO_SHAPE)?.blockshape();
        ensure(
            (1..=field::MAX_DIMS).contains(&blockshape.len())
                && blockshape.iter().all(|&n| n >= field::SIDE as i32), // 4
            ErrorKind::Data,
            "ZFP needs 1 to 4 dimensions of at least 4 items",
        )?;
        // The decoder goes by the super-chunk: what has other items, as all above 255 bytes have, is stored raw.
        if usize::try_from(typesize) != Ok(cx.typesize) {
            return Ok(0);
        }
        let is_whole_block = |field: &Field| cx.typesize.checked_mul(field.nitems()) == Some(src.len());
        // Parts of blocks are stored raw, and so are blocks beyond all memory.
        let Some(field) = Field::new(blockshape).filter(is_whole_block) else {
            return Ok(0);
        };
        let size = item_size(typesize)?;
        let limits = self.mode.limits(cx.meta, &field, size);
        let encoded = (field::kernel(size, field.dims).encode)(&field, limits, src, dest);
        Ok(encoded.filter(|&n| n < src.len()).unwrap_or(0))
    }

    fn decode(&self, cx: &CodecContext<'_>, src: &[u8], dest: &mut [u8]) -> Result<()> {
        let (field, size) = stored_field(&cx.container, src)?;
        ensure(
            field.nitems() * size == dest.len(),
            ErrorKind::Data,
            "block length differs from the block shape",
        )?;
        let limits = self.mode.limits(cx.meta, &field, size);
        (field::kernel(size, field.dims).decode)(&field, limits, src, dest)
    }

    fn decode_part(
        &self,
        cx: &CodecContext<'_>,
        src: &[u8],
        len: usize,
        start: usize,
        dest: &mut [u8],
    ) -> Result<bool> {
        // Only where all cells have the same length is it known where one begins.
        if self.mode != Mode::Rate || dest.len() > len / PART {
            return Ok(false);
        }
        let (field, size) = stored_field(&cx.container, src)?;
        let fits = field.nitems() * size == len && start % size == 0 && dest.len() % size == 0;
        if fits {
            let limits = self.mode.limits(cx.meta, &field, size);
            partial::decode_items(&field, size, limits, src, start / size, dest)?;
        }
        Ok(fits)
    }

    fn needs_geometry(&self) -> bool {
        true
    }
}
