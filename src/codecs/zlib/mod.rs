//! zlib: RFC 1950 streams with a 32 KiB window.
//!
//! The built-in codec chooses between three encoders, one of them our own (`deflate/`), and two decoders, of which one
//! is (`inflate/`), for each stream (`choice.rs`). With the feature `system-zlib` the zlib of the system makes and
//! reads all of them; its streams may differ in bytes.

#[cfg(not(feature = "system-zlib"))]
mod choice;
#[cfg(not(feature = "system-zlib"))]
mod deflate;
#[cfg(not(feature = "system-zlib"))]
mod format;
#[cfg(not(feature = "system-zlib"))]
mod inflate;
#[cfg(not(feature = "system-zlib"))]
mod libdeflate;
#[cfg(not(feature = "system-zlib"))]
mod look;
#[cfg(not(feature = "system-zlib"))]
mod period;
mod stream;
#[cfg(feature = "system-zlib")]
mod system;

#[cfg(not(feature = "system-zlib"))]
pub(crate) use choice::{Decoder, Encoder};
pub(crate) use stream::version;
#[cfg(feature = "system-zlib")]
pub(crate) use stream::{Decoder, Encoder};
