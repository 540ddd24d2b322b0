//! The C interface: the only module that knows C. It may use everything else and nothing else uses it.
//!
//! Each exported function turns its C arguments into Rust values, makes one call into the core and turns the answer
//! back. It knows nothing about formats and holds no loops over data. The rules of the boundary:
//!
//! - Exported functions that do more than hand out a constant run inside `guard::guard`: the one place where a `Result`
//!   or a caught panic becomes a C value. An unwind that reached `extern "C"` would abort the host program.
//! - Pointers become slices and references at the edge, through `ptr`, and do not travel further.
//! - Integers from C stay integers until `TryFrom` makes them something narrower. Structs that C fills in hold no
//!   Rust `enum` or `bool` ([`CBool`](types::CBool) instead); callbacks are `Option<unsafe extern "C" fn>`.
//! - Memory that the caller releases with `free()` comes from C's allocator, through `mem`. Memory lent to C belongs
//!   to the handle that it came from, and the function's doc says for how long it stays valid.
//! - Out-parameters are written on success only, unless the C library writes them on failure too.
//! - Size, alignment and field offsets of every public struct are asserted in `types`, and again from C in
//!   `capi-tests/`.
//! - The doc comments of exported functions and public structs are those of the installed headers.

pub mod b2nd;
pub mod b2nd_copy;
pub mod b2nd_ctx;
pub mod b2nd_data;
mod b2nd_handle;
pub mod b2nd_shape;
pub mod b2nd_storage;
pub mod b2nd_view;
pub mod blosc1;
mod callbacks;
pub mod chunk;
pub mod clock;
pub mod consts;
mod context;
mod context_fields;
mod environment;
pub mod facts;
pub mod frame;
pub mod io;
mod io_adapter;
mod io_streams;
pub mod meta;
pub mod mmap;
pub mod paths;
pub(crate) mod plugins;
pub mod registration;
pub mod schunk;
pub mod schunk_data;
mod schunk_handle;
pub mod schunk_slice;
pub mod stdio;
mod storage;
mod trace;
mod tuner;
pub mod types;
pub mod util;

pub(crate) mod guard;
pub(crate) mod mem;
pub(crate) mod ptr;

#[cfg(test)]
mod tests;
