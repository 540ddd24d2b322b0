//! The registered filters that the library itself defines.

use super::Filter;
use super::bytedelta::{ByteDelta, ByteDeltaBuggy};
use super::int_trunc::IntTrunc;
use super::ndcell::NdCell;
use super::ndmean::NdMean;
use super::registry::FilterEntry;
use crate::format::consts::filter;
use std::sync::{Arc, LazyLock};

/// The built-in entries, by ascending id.
pub(super) static BUILTIN: LazyLock<Vec<Arc<FilterEntry>>> = LazyLock::new(|| {
    let entry = |id, filter: Arc<dyn Filter>| Arc::new(FilterEntry { id, tag: 0, filter });
    vec![
        entry(filter::NDCELL, Arc::new(NdCell)),
        entry(filter::NDMEAN, Arc::new(NdMean)),
        entry(filter::BYTEDELTA_BUGGY, Arc::new(ByteDeltaBuggy)),
        entry(filter::BYTEDELTA, Arc::new(ByteDelta)),
        entry(filter::INT_TRUNC, Arc::new(IntTrunc)),
    ]
});
