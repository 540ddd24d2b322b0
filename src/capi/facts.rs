//! Exported functions: facts about the library, its codecs, and a chunk by its header.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use super::chunk::basic_header;
use super::consts::BLOSC2_VERSION_STRING;
use super::guard::{guard, guard_or, guard_status};
use super::mem::c_string;
use super::ptr::{c_str, store};
use crate::codecs::names::{BuiltIn, Known};
use crate::codecs::registry;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::consts::{MAX_BUFFERSIZE, MIN_HEADER_LENGTH};

/// The version of the C API that this library implements.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_get_version_string() -> *const c_char {
    BLOSC2_VERSION_STRING.as_ptr()
}

/// The text for an error code; "Unknown error" for any other number, also for 0.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_error_string(error_code: c_int) -> *const c_char {
    ErrorKind::from_code(error_code).map_or(c"Unknown error", ErrorKind::c_text).as_ptr()
}

/// The names of the built-in codecs, separated by commas.
#[unsafe(no_mangle)]
pub extern "C" fn blosc2_list_compressors() -> *const c_char {
    c"blosclz,lz4,lz4hc,zlib,zstd".as_ptr()
}

/// Stores the name of a codec in `*compname` and returns its code; an unknown one gives -1 and NULL, and one without a
/// name NULL.
///
/// # Safety
///
/// `compname` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_compcode_to_compname(compcode: c_int, compname: *mut *const c_char) -> c_int {
    guard(|| {
        let known = u8::try_from(compcode).ok().and_then(Known::with_code);
        let name = known.as_ref().and_then(Known::name);
        // SAFETY: the caller's promise.
        unsafe { store(compname, name.map_or(std::ptr::null(), CStr::as_ptr)) };
        Ok(if known.is_some() { compcode } else { -1 })
    })
}

/// The code of the codec `compname`, or -1.
///
/// # Safety
///
/// `compname` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_compname_to_compcode(compname: *const c_char) -> c_int {
    guard_or(-1, || {
        // SAFETY: the caller's promise.
        let name = unsafe { c_str(compname) }?;
        let codec = Known::with_name(name).ok_or(Error::new(ErrorKind::Failure, "unknown codec"))?;
        Ok(c_int::from(codec.code()))
    })
}

/// Tells which library implements the codec `compname`, and its version.
///
/// Both strings are to be released with `free()`; either pointer may be NULL. Returns the code of the library, or -1
/// for an unknown codec, whose strings are NULL.
///
/// # Safety
///
/// `compname` is NULL or a string; `complib` and `version` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_get_complib_info(
    compname: *const c_char,
    complib: *mut *mut c_char,
    version: *mut *mut c_char,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the caller's promise.
        unsafe {
            store(complib, std::ptr::null_mut());
            store(version, std::ptr::null_mut());
        }
        // SAFETY: the caller's promise.
        let info = complib_info(unsafe { c_str(compname) }?)?;
        let copy = |wanted: bool, text: &CStr| if wanted { c_string(text) } else { Ok(std::ptr::null_mut()) };
        let name = copy(!complib.is_null(), info.name)?;
        // SAFETY: not stored anywhere yet.
        let version_text =
            copy(!version.is_null(), &info.version).inspect_err(|_| unsafe { libc::free(name.cast()) })?;
        // SAFETY: the caller's promise.
        unsafe {
            store(complib, name);
            store(version, version_text);
        }
        Ok(c_int::from(info.code))
    })
}

/// What is known of the library behind a codec.
struct ComplibInfo<'a> {
    code: u8,
    name: &'a CStr,
    version: CString,
}

fn complib_info(name: &CStr) -> Result<ComplibInfo<'_>> {
    let codec = Known::with_name(name).ok_or(Error::new(ErrorKind::Failure, "unknown codec"))?;
    let code = codec.library_code();
    let Some(library) = BuiltIn::with_format(code) else {
        // Registered codecs may share a library; it has the name of the first one then.
        let name = registry::find_by_complib(code).and_then(|entry| entry.name).unwrap_or(name);
        return Ok(ComplibInfo { code, name, version: c"unknown".into() });
    };
    let version = CString::new((library.version)()).unwrap_or_default();
    Ok(ComplibInfo { code, name: library.library, version })
}

/// A size of a header for C's `size_t`; negative ones, of hostile chunks, wrap as they do in C.
#[allow(clippy::cast_sign_loss)]
fn size(value: i32) -> usize {
    value as usize
}

/// Stores the sizes that a chunk's header tells; zeros for a bad header.
///
/// # Safety
///
/// `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc1_cbuffer_sizes(
    cbuffer: *const c_void,
    nbytes: *mut usize,
    cbytes: *mut usize,
    blocksize: *mut usize,
) {
    guard(|| {
        // SAFETY: the caller's promise.
        let sizes = unsafe { basic_header(cbuffer) }.map_or([0; 3], |h| [h.nbytes, h.cbytes, h.blocksize]);
        // SAFETY: the caller's promise.
        unsafe {
            store(nbytes, size(sizes[0]));
            store(cbytes, size(sizes[1]));
            store(blocksize, size(sizes[2]));
        }
        Ok(())
    });
}

/// Stores the sizes that a chunk's header tells, and returns 0; zeros and a negative code for a bad header.
///
/// For chunks of variable-length blocks, `*blocksize` is the number of blocks.
///
/// # Safety
///
/// `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_cbuffer_sizes(
    cbuffer: *const c_void,
    nbytes: *mut i32,
    cbytes: *mut i32,
    blocksize: *mut i32,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        let header = unsafe { basic_header(cbuffer) };
        let sizes = header.as_ref().map_or([0; 3], |h| [h.nbytes, h.cbytes, h.blocksize]);
        // SAFETY: the caller's promise.
        unsafe {
            store(nbytes, sizes[0]);
            store(cbytes, sizes[1]);
            store(blocksize, sizes[2]);
        }
        header.map(|_| ())
    })
}

/// Checks the header of a chunk of `cbytes` bytes and stores its uncompressed size; returns 0, or a negative code.
///
/// # Safety
///
/// `cbuffer` is readable for `cbytes` bytes; `nbytes` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc1_cbuffer_validate(
    cbuffer: *const c_void,
    cbytes: usize,
    nbytes: *mut usize,
) -> c_int {
    guard_status(|| {
        // SAFETY: the caller's promise.
        unsafe { store(nbytes, 0) };
        ensure(cbytes >= MIN_HEADER_LENGTH, ErrorKind::WriteBuffer, "chunk shorter than its header")?;
        // SAFETY: the caller's promise.
        let header = unsafe { basic_header(cbuffer) }?;
        let complete = usize::try_from(header.cbytes) == Ok(cbytes);
        ensure(complete, ErrorKind::InvalidHeader, "size of the chunk")?;
        let valid = usize::try_from(header.nbytes).is_ok_and(|size| size <= MAX_BUFFERSIZE);
        ensure(valid, ErrorKind::MemoryAlloc, "uncompressed size out of range")?;
        // SAFETY: the caller's promise.
        unsafe { store(nbytes, size(header.nbytes)) };
        Ok(())
    })
}

/// Stores typesize and flags of a chunk; zeros for a bad header.
///
/// # Safety
///
/// `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc1_cbuffer_metainfo(
    cbuffer: *const c_void,
    typesize: *mut usize,
    flags: *mut c_int,
) {
    guard(|| {
        // SAFETY: the caller's promise.
        let header = unsafe { basic_header(cbuffer) };
        // SAFETY: the caller's promise.
        unsafe {
            store(typesize, header.as_ref().map_or(0, |header| usize::from(header.typesize)));
            store(flags, header.as_ref().map_or(0, |header| c_int::from(header.flags)));
        }
        Ok(())
    });
}

/// Stores the versions of a chunk's format and of its codec's format; zeros for a bad header.
///
/// # Safety
///
/// `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_cbuffer_versions(
    cbuffer: *const c_void,
    version: *mut c_int,
    versionlz: *mut c_int,
) {
    guard(|| {
        // SAFETY: the caller's promise.
        let header = unsafe { basic_header(cbuffer) };
        // SAFETY: the caller's promise.
        unsafe {
            store(version, header.as_ref().map_or(0, |header| c_int::from(header.version)));
            store(versionlz, header.as_ref().map_or(0, |header| c_int::from(header.versionlz)));
        }
        Ok(())
    });
}

/// The name of the library that compressed a chunk; NULL if it is not known.
///
/// A chunk of a registered codec says no more than that it is of one; the name is that of a codec that was registered
/// with the number of this format, 6, as its library, or NULL.
///
/// # Safety
///
/// `cbuffer` is readable for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blosc2_cbuffer_complib(cbuffer: *const c_void) -> *const c_char {
    guard(|| {
        // SAFETY: the caller's promise.
        let header = unsafe { basic_header(cbuffer) }?;
        let format = header.codec_format();
        let built_in = BuiltIn::with_format(format).map(|codec| codec.library);
        let registered = || registry::find_by_complib(format).and_then(|entry| entry.name);
        Ok(built_in.or_else(registered).map_or(std::ptr::null(), CStr::as_ptr))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::names::BUILT_IN;

    #[test]
    fn the_list_has_the_names_of_the_built_in_codecs() {
        // SAFETY: the list is a string.
        let list = unsafe { CStr::from_ptr(blosc2_list_compressors()) };
        let names = BUILT_IN.iter().map(|codec| codec.name.to_str().unwrap());
        assert_eq!(list.to_str().unwrap(), names.collect::<Vec<_>>().join(","));
    }
}
