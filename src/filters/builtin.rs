//! The registered filters that the library itself defines, except for BYTEDELTA and INT_TRUNC, which the pipeline runs
//! as it does SHUFFLE, so that it can fuse them with others.

#![forbid(unsafe_code)]

use super::Filter;
use super::bytedelta::ByteDeltaBuggy;
use super::ndcell::NdCell;
use super::ndmean::NdMean;
use super::registry::FilterEntry;
use crate::fork::Lazy;
use crate::format::consts::filter;

/// The built-in entries, by ascending id.
pub(super) static BUILTIN: Lazy<[FilterEntry; 3]> = Lazy::new(|| {
    let entry = |id, filter: Box<dyn Filter>| FilterEntry { id, tag: 0, filter };
    Box::leak(Box::new([
        entry(filter::NDCELL, Box::new(NdCell)),
        entry(filter::NDMEAN, Box::new(NdMean)),
        entry(filter::BYTEDELTA_BUGGY, Box::new(ByteDeltaBuggy)),
    ]))
});
