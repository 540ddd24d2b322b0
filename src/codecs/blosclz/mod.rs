//! BloscLZ: a byte-oriented LZ77 codec, one independent stream per call.
//!
//! A stream has no header and no checksum; its decoder is told the size of the output. It is a literal run,
//! followed by literal runs and matches in any order, and its last element is a literal run. The first byte `c` of
//! each element says what it is:
//!
//! | `c`     | meaning                                                                                              |
//! |---------|------------------------------------------------------------------------------------------------------|
//! | `< 32`  | literal run: `c + 1` bytes follow and are copied. (First element of the stream: the low 5 bits of `c`.) |
//! | `>= 32` | match: with `L = c >> 5` and `D = c & 31`, first extension bytes if `L` is 7, up to and including the first that is not 255, then a distance byte `d`, then two bytes `h`, `l` if `D` is 31 and `d` is 255 |
//!
//! A match copies `L + 2` bytes, or 9 plus the sum of the extension bytes if `L` is 7, from earlier output: from
//! `256 * D + d + 1` bytes back, or `8192 + 256 * h + l` if there are `h` and `l`. It may overlap what it writes.

mod decode;
mod encode;
mod erratic;
mod items;
mod probe;
#[cfg(test)]
mod tests;

pub use decode::{decompress, decompress_prefix};
pub use encode::Encoder;

/// The version of the format and its heuristics that the library reports.
pub(crate) const VERSION: &str = "2.5.3";

/// Longest literal run of one element.
const MAX_RUN: usize = 32;
/// Length of the shortest match with extension bytes.
const LONG_MATCH: usize = 9;
/// Smallest distance that takes the two bytes `h` and `l`.
const FAR_DISTANCE: usize = 8192;
