//! What is stored, byte for byte: validated structs from bytes and back. No I/O, no compression.

#![forbid(unsafe_code)]

pub mod chunk_header;
pub mod consts;
pub mod frame_header;
pub(crate) mod frame_trailer;
pub mod geometry;
pub mod metalayers;
pub(crate) mod msgpack;
pub mod nd_meta;
pub mod offsets;
pub(crate) mod packed;
