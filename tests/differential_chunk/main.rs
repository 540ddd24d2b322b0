//! Our library against the C library, chunk by chunk: same bytes where they are defined, same codes for the same
//! mistakes, and each reads what the other wrote.
//!
//! The C library is found through `BLOSC2_REFERENCE` or in `target/reference` (`tests/common/get_reference.sh` puts it
//! there); without it these tests say so and pass. Parameters are random but repeatable: `BLOSC2_DIFF_SEED` starts from
//! another seed than the usual one, `BLOSC2_DIFF_CASES` multiplies the number of cases. A failure prints the seed of
//! its case; with `BLOSC2_DIFF_TRACE` each seed is printed before it is used.
//!
//! Where the C library is known to misbehave (it loses bytes, or writes chunks that nobody can read) only ours is
//! judged, by the data that must come back.

#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;

mod case;
mod environment;
mod global;
mod malformed;
mod random;
mod special;
mod vlblocks;

use common::check::{equal, for_seeds, same};

/// Bytes behind a destination that must stay as they are.
const GUARD: [u8; 16] = [0xA7; 16];
