//! Our arrays against those of the C library: the same operations on both, the same codes, fields, contents and chunks
//! after each, and at the end each library opens what the other wrote.
//!
//! Seeds and the number of cases are set as in `tests/common/check.rs`; without the C library these tests say so and
//! pass. Where the C library is known to lose data or to crash, the situation is not drawn, or only ours is judged.

#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;

mod case;
mod dense;
mod errors;
mod plugins;
mod random;
mod sharing;
mod steps;
