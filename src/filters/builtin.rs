//! The registered filters that the library itself defines.

use super::registry::FilterEntry;
use std::sync::{Arc, LazyLock};

/// The built-in entries, by ascending id.
pub(super) static BUILTIN: LazyLock<Vec<Arc<FilterEntry>>> = LazyLock::new(Vec::new);
