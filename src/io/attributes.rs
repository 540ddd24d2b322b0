//! Extended attributes of files, in which the system keeps access control lists and security labels.

use std::fs::File;

/// Gives `new` the extended attributes of `old`, and no others; returns whether it has them then.
///
/// Attributes that the system does not list for this process, such as `trusted.*`, are left out.
#[cfg(target_os = "linux")]
pub(super) fn copy(old: &File, new: &File) -> bool {
    use linux::{Name, get, names, remove, set};
    let (Some(wanted), Some(given)) = (names(old), names(new)) else { return false };
    let others = given.iter().filter(|name| !wanted.contains(name));
    let has = |name: &Name, value: &Vec<u8>| get(new, name).as_ref() == Some(value);
    let copy = |name: &Name| get(old, name).is_some_and(|value| has(name, &value) || set(new, name, &value));
    others.fold(true, |all, name| all & remove(new, name)) && wanted.iter().all(copy)
}

/// Elsewhere, attributes are left alone.
#[cfg(not(target_os = "linux"))]
pub(super) fn copy(_: &File, _: &File) -> bool {
    true
}

/// The calls of the system.
#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CStr, CString};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    pub(super) type Name = CString;

    /// The names of all attributes; `None` if they cannot be told. A file system or a sandbox without attributes has
    /// none.
    pub(super) fn names(file: &File) -> Option<Vec<Name>> {
        // SAFETY: with the length, the buffer is writable for that many bytes; without one, nothing is written.
        let list = read(|buf, len| unsafe { libc::flistxattr(file.as_raw_fd(), buf.cast(), len) });
        match list {
            Ok(bytes) => Some(bytes.split_inclusive(|&byte| byte == 0).map(name).collect::<Option<_>>()?),
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOTSUP | libc::ENOSYS)) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    fn name(bytes: &[u8]) -> Option<Name> {
        CStr::from_bytes_with_nul(bytes).ok().map(CStr::to_owned)
    }

    /// The value of an attribute, if there is such a one.
    pub(super) fn get(file: &File, name: &Name) -> Option<Vec<u8>> {
        // SAFETY: as in `names`.
        read(|buf, len| unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), buf.cast(), len) }).ok()
    }

    /// Sets an attribute; returns whether that was possible.
    pub(super) fn set(file: &File, name: &Name, value: &[u8]) -> bool {
        // SAFETY: a string, and a buffer readable for its length.
        unsafe {
            libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) == 0
        }
    }

    /// Removes an attribute; returns whether that was possible.
    pub(super) fn remove(file: &File, name: &Name) -> bool {
        // SAFETY: a string.
        unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) == 0 }
    }

    /// What a call writes that returns how many bytes it wrote, or would write to a buffer of no bytes, or -1.
    fn read(call: impl Fn(*mut u8, usize) -> isize) -> io::Result<Vec<u8>> {
        let len_or_error = |len: isize| usize::try_from(len).map_err(|_| io::Error::last_os_error());
        let len = len_or_error(call(std::ptr::null_mut(), 0))?;
        let mut bytes = vec![0; len]; // at most 64 KiB, which is as much as the system takes
        if len > 0 {
            let len = len_or_error(call(bytes.as_mut_ptr(), len))?; // of more, which came meanwhile, it tells
            bytes.truncate(len);
        }
        Ok(bytes)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::{get, names, set};
    use super::*;

    #[test]
    fn attributes_are_those_of_the_old_file() {
        let path =
            |name: &str| std::env::temp_dir().join(format!("blosc2-xattr-{}-{name}", std::process::id()));
        let (old, new) = (File::create(path("old")).unwrap(), File::create(path("new")).unwrap());
        let (first, second) = (c"user.first".to_owned(), c"user.second".to_owned());
        assert!(copy(&old, &new), "none");
        if set(&old, &first, b"one") && set(&new, &second, b"two") {
            let empty = c"user.empty".to_owned();
            assert!(set(&old, &empty, b""));
            assert!(copy(&old, &new));
            assert_eq!(get(&new, &first).unwrap(), b"one");
            assert_eq!(get(&new, &empty).unwrap(), b"");
            assert_eq!(get(&new, &second), None);
            assert_eq!(names(&new).unwrap().len(), names(&old).unwrap().len());
            assert!(copy(&old, &new), "again");
        } else {
            println!("skipped: this file system has no extended attributes");
        }
        for name in ["old", "new"] {
            std::fs::remove_file(path(name)).unwrap();
        }
    }
}
