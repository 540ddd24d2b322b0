//! The variables of the environment whose names begin with `BLOSC_`.
//!
//! Every call of the library that depends on them looks at the environment, since clients may change it in between.

use std::ffi::{CStr, c_char};

/// What the names of all our variables begin with.
const PREFIX: &[u8] = b"BLOSC_";

/// The variables of ours that are set: their names without [`PREFIX`], and their values.
///
/// This walks over the whole environment, with a handful of instructions for each variable that is not ours.
#[cfg(unix)]
pub(super) struct Variables {
    next: *const *const c_char,
}

#[cfg(unix)]
impl Variables {
    pub(super) fn new() -> Variables {
        // SAFETY: reading the pointer is what getenv does; changing the environment meanwhile is the client's mistake.
        Variables { next: unsafe { *environment() } }
    }
}

/// Where the environment of the process is.
#[cfg(all(unix, not(target_vendor = "apple")))]
fn environment() -> *const *const *const c_char {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    &raw const environ
}

/// Where the environment of the process is. Only programs have `environ` here, not libraries.
#[cfg(target_vendor = "apple")]
fn environment() -> *const *const *const c_char {
    unsafe extern "C" {
        safe fn _NSGetEnviron() -> *const *const *const c_char;
    }
    _NSGetEnviron()
}

#[cfg(unix)]
impl Iterator for Variables {
    type Item = (&'static [u8], &'static CStr);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next.is_null() {
            return None;
        }
        loop {
            // SAFETY: the array ends with a null pointer, at which `next` stays.
            let entry = unsafe { *self.next };
            if entry.is_null() {
                return None;
            }
            // SAFETY: this was not the null pointer at the end.
            self.next = unsafe { self.next.add(1) };
            // SAFETY: entries are strings, of at least their NUL.
            if unsafe { *entry.cast::<u8>() } == PREFIX[0] {
                // SAFETY: as above.
                if let Some(found) = split_ours(unsafe { CStr::from_ptr(entry) }) {
                    return Some(found);
                }
            }
        }
    }
}

/// The name, without [`PREFIX`], and the value of an entry of the environment, if it is one of ours.
#[cfg(unix)]
#[cold]
fn split_ours(entry: &CStr) -> Option<(&[u8], &CStr)> {
    let bytes = entry.to_bytes_with_nul().strip_prefix(PREFIX)?;
    let equals = bytes.iter().position(|&byte| byte == b'=')?;
    let value = CStr::from_bytes_with_nul(&bytes[equals + 1..]).ok()?;
    Some((&bytes[..equals], value))
}

/// The variables of ours that are set, as above. Here each is asked for by its name.
#[cfg(not(unix))]
pub(super) struct Variables {
    names: std::slice::Iter<'static, &'static CStr>,
}

#[cfg(not(unix))]
impl Variables {
    pub(super) fn new() -> Variables {
        const NAMES: [&CStr; 12] = [
            c"BLOSC_CLEVEL",
            c"BLOSC_SHUFFLE",
            c"BLOSC_DELTA",
            c"BLOSC_TYPESIZE",
            c"BLOSC_COMPRESSOR",
            c"BLOSC_BLOCKSIZE",
            c"BLOSC_NTHREADS",
            c"BLOSC_SPLITMODE",
            c"BLOSC_NOLOCK",
            c"BLOSC_BLOSC1_COMPAT",
            c"BLOSC_INFO",
            c"BLOSC_TRACE",
        ];
        Variables { names: NAMES.iter() }
    }
}

#[cfg(not(unix))]
impl Iterator for Variables {
    type Item = (&'static [u8], &'static CStr);

    fn next(&mut self) -> Option<Self::Item> {
        self.names.find_map(|name| {
            // SAFETY: the name is a string; changing the environment meanwhile is the client's mistake.
            let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
            // SAFETY: values are strings.
            let value = (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })?;
            Some((&name.to_bytes()[PREFIX.len()..], value))
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn entries_of_others_are_not_taken_for_ours() {
        assert_eq!(split_ours(c"BLOSC_CLEVEL=5"), Some((&b"CLEVEL"[..], c"5")));
        assert_eq!(split_ours(c"BLOSC_X="), Some((&b"X"[..], c"")));
        for other in [c"BLOSC_CLEVEL", c"BLOSC", c"B", c"BLOSCLEVEL=5", c"BASH=1"] {
            assert_eq!(split_ours(other), None);
        }
    }
}
