//! The variables of the environment whose names begin with `BLOSC_`.
//!
//! Every call of the library that depends on them looks at the environment, since clients may change it in between.

use std::ffi::{CStr, c_char};

/// What the names of all our variables begin with.
const PREFIX: &[u8] = b"BLOSC_";

/// Whether the environment variable `BLOSC_<name>` exists.
pub(in super::super) fn is_set(name: &[u8]) -> bool {
    let mut found = false;
    for_each(|known, _| found |= known == name);
    found
}

/// Calls `visit` with name, without [`PREFIX`], and value of each variable of ours that is set, last to first: of
/// a variable that is there twice, as after `execve` by some programs, the first one counts, as with `getenv`.
///
/// This walks over the whole environment, with a handful of instructions for each variable that is not ours.
#[cfg(unix)]
pub(super) fn for_each(mut visit: impl FnMut(&[u8], &CStr)) {
    // SAFETY: reading the pointer is what getenv does; changing the environment meanwhile is the client's mistake.
    let start = unsafe { *environment() };
    if start.is_null() {
        return;
    }
    // How many entries there are up to the last one of ours: mostly none.
    let (mut count, mut behind) = (0, 0);
    loop {
        // SAFETY: the array ends with a null pointer, at which this ends.
        let entry = unsafe { *start.add(count) };
        if entry.is_null() {
            break;
        }
        count += 1;
        // SAFETY: entries are strings.
        if unsafe { is_ours(entry) } {
            behind = count;
        }
    }
    for i in (0..behind).rev() {
        // SAFETY: before the null pointer, unless another thread removes a variable just now; entries are strings.
        let ours = unsafe {
            let entry = *start.add(i);
            (!entry.is_null() && is_ours(entry)).then(|| CStr::from_ptr(entry))
        };
        if let Some((name, value)) = ours.and_then(split_ours) {
            visit(name, value);
        }
    }
}

/// Whether `entry` begins with [`PREFIX`]. Few of others begin with its first byte.
///
/// # Safety
///
/// `entry` is a string.
#[cfg(unix)]
unsafe fn is_ours(entry: *const c_char) -> bool {
    // SAFETY: this stops at the first byte that differs, so at the NUL at the latest.
    PREFIX.iter().enumerate().all(|(i, &byte)| unsafe { *entry.cast::<u8>().add(i) } == byte)
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

/// The name, without [`PREFIX`], and the value of an entry of the environment, if it is one of ours.
#[cfg(unix)]
#[cold]
fn split_ours(entry: &CStr) -> Option<(&[u8], &CStr)> {
    let bytes = entry.to_bytes_with_nul().strip_prefix(PREFIX)?;
    let equals = bytes.iter().position(|&byte| byte == b'=')?;
    let value = CStr::from_bytes_with_nul(&bytes[equals + 1..]).ok()?;
    Some((&bytes[..equals], value))
}

/// As above. Here each variable is asked for by its name.
#[cfg(not(unix))]
pub(super) fn for_each(mut visit: impl FnMut(&[u8], &CStr)) {
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
    for name in NAMES {
        // SAFETY: the name is a string; changing the environment meanwhile is the client's mistake.
        let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
        if !value.is_null() {
            // SAFETY: values are strings.
            visit(&name.to_bytes()[PREFIX.len()..], unsafe { CStr::from_ptr(value) });
        }
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
