//! The registered codecs that the library itself defines.

#![forbid(unsafe_code)]

use super::Codec;
use super::ndlz::Ndlz;
use super::registry::CodecEntry;
use super::zfp::{Mode, Zfp};
use crate::fork::Lazy;
use crate::format::consts::codec;
use std::ffi::CStr;

/// The built-in entries, by ascending id.
pub(super) static BUILTIN: Lazy<[CodecEntry; 4]> = Lazy::new(|| {
    let entry = |id, name: &'static CStr, codec: Box<dyn Codec>| CodecEntry {
        id,
        name: Some(name),
        complib: id,
        version: 1,
        codec,
    };
    let zfp = |id, name, mode| entry(id, name, Box::new(Zfp::new(mode)));
    Box::leak(Box::new([
        entry(codec::NDLZ, c"ndlz", Box::new(Ndlz)),
        zfp(codec::ZFP_ACCURACY, c"zfp_acc", Mode::Accuracy),
        zfp(codec::ZFP_PRECISION, c"zfp_prec", Mode::Precision),
        zfp(codec::ZFP_RATE, c"zfp_rate", Mode::Rate),
    ]))
});
