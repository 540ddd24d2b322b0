//! One buffer in, one chunk out, and back. The layers above use codecs and filters only through this one, except for
//! the C functions that shuffle a plain buffer.
//!
//! Writing: `compress`, with `ordered` (several threads), `simple` (small buffers), `special`, `dict`, `vlblocks`,
//! `recode`. Reading: `decompress`, `reader`, `getitem`, `block_reader`, `partial_read`, `plain`, `planes`. Both:
//! `params`, `input`, `source`, `blocks` (the layout), `pipeline`, `streams`, `scratch`.

mod block_reader;
pub(crate) mod blocks;
mod compress;
mod decompress;
mod dict;
mod getitem;
mod input;
mod ordered;
pub mod params;
mod partial_read;
mod pipeline;
mod plain;
mod planes;
mod reader;
mod recode;
pub(crate) mod scratch;
mod simple;
pub mod source;
mod special;
mod streams;
mod vlblocks;

pub(crate) use block_reader::{BlockReader, Plain};
pub use compress::{Compressed, compress, compress_to_vec, compress_with};
pub(crate) use compress::{always_stores, compress_block, room_for};
pub(crate) use decompress::DisjointParts;
#[cfg(feature = "capi")]
pub(crate) use decompress::decompress_parsed;
pub use decompress::{decompress, decompress_to_vec, decompress_with};
#[cfg(feature = "capi")]
pub(crate) use getitem::getitem_parsed;
pub use getitem::{Unit, getitem};
pub use input::{GatherBlocks, Gathered, ShuffledBlock, Source};
pub use params::{
    CParams, Decoding, Encoding, Postfilter, PostfilterCall, Prefilter, PrefilterCall, Threads,
};
pub(crate) use planes::{Decoded, Runs};
pub(crate) use reader::depends_on_shape;
pub(crate) use recode::recode;
#[cfg(feature = "capi")]
pub(crate) use simple::{decompress_simple, getitem_simple};
pub use special::{SpecialValue, special_chunk};
pub use vlblocks::{VlChunk, compress_vl, open_vl, vl_nblocks, vl_nbytes};

pub use crate::memory::Room;

#[cfg(test)]
mod tests;
