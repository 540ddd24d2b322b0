//! What is stored, byte for byte: validated structs from bytes and back. No I/O, no compression.

pub mod chunk_header;
pub mod consts;
pub mod geometry;
