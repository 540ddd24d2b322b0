//! The registered codecs that the library itself defines.

use super::registry::CodecEntry;
use std::sync::{Arc, LazyLock};

/// The built-in entries, by ascending id.
pub(super) static BUILTIN: LazyLock<Vec<Arc<CodecEntry>>> = LazyLock::new(Vec::new);
