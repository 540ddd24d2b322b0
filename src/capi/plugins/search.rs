//! Where the libraries of plugins are.

use std::ffi::{CStr, CString, OsStr};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::dl::is_no_memory;
use crate::error::Result;
use crate::memory::no_memory;

/// Longest time that Python may take to import a package. Big packages on slow disks take seconds.
const PYTHON_LIMIT: Duration = Duration::from_secs(30);
/// The programs that are asked, in the order in which the C library asks them.
const INTERPRETERS: [&str; 2] = ["python", "python3"];
/// Where shells look for programs if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Longest answer of Python that is read; paths are shorter.
const MAX_ANSWER: usize = 1 << 16;

/// Tries the places where the library of the plugin `name` may be, until `attempt` succeeds with one.
///
/// `name` has letters, digits and underscores only.
///
/// # Errors
///
/// Those of `attempt`, which end the search, and `MemoryAlloc`.
pub(super) fn libraries<T>(name: &str, attempt: &dyn Fn(&CStr) -> Result<Option<T>>) -> Result<Option<T>> {
    let file = format!("libblosc2_{name}.so");
    let try_path = |path: &Path| match CString::new(path.as_os_str().as_bytes()) {
        Ok(path) => attempt(&path),
        Err(_) => Ok(None),
    };
    let trusting = !has_foreign_privileges();
    let listed = if trusting { std::env::var_os("BLOSC2_PLUGIN_PATH") } else { None };
    for directory in absolute_directories(listed.as_deref()) {
        let places = [directory.join(&file), directory.join(format!("blosc2_{name}")).join(&file)];
        for path in places.iter().filter(|path| path.is_file()) {
            if let Some(found) = try_path(path)? {
                return Ok(Some(found));
            }
        }
    }
    if let Some(found) = try_path(Path::new(&file))? {
        return Ok(Some(found));
    }
    if !trusting {
        return Ok(None);
    }
    let directories = program_directories(std::env::var_os("PATH").as_deref());
    for interpreter in INTERPRETERS {
        if let Some(path) = ask_python(interpreter, &directories, name)? {
            if let Some(found) = try_path(&path)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// Where programs are: the absolute directories of `path`, the value of `PATH`.
fn program_directories(path: Option<&OsStr>) -> Vec<PathBuf> {
    absolute_directories(path.or(Some(OsStr::new(DEFAULT_PATH))))
}

/// The absolute directories of a list as in `PATH`. What others mean depends on the current directory, which is no
/// place to take code from.
fn absolute_directories(list: Option<&OsStr>) -> Vec<PathBuf> {
    list.map_or(Vec::new(), |list| std::env::split_paths(list).filter(|path| path.is_absolute()).collect())
}

/// Whether the process runs with privileges that its environment must not borrow.
fn has_foreign_privileges() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: has no preconditions.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let secure = false;
    // SAFETY: these have no preconditions.
    secure || unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() }
}

/// The path of the library that the Python package of the plugin `name` tells.
///
/// # Errors
///
/// `MemoryAlloc`.
fn ask_python(interpreter: &str, directories: &[PathBuf], name: &str) -> Result<Option<PathBuf>> {
    let mut programs = directories.iter().map(|dir| dir.join(interpreter));
    let Some(program) = programs.find(|program| program.is_file()) else { return Ok(None) };
    // An empty entry stands for the current directory, which is the root besides.
    let statements = format!(
        "import sys\nsys.path[:] = [path for path in sys.path if path]\n\
         import blosc2_{name} as plugin\nplugin.print_libpath()"
    );
    let mut command = Command::new(program);
    command.arg("-c").arg(statements).env("PYTHONSAFEPATH", "1").current_dir("/");
    let answer = output_within(&mut command, PYTHON_LIMIT)?.unwrap_or_default();
    let line = answer.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default();
    let path = Path::new(OsStr::from_bytes(line.trim_ascii()));
    Ok((path.is_absolute() && path.is_file()).then(|| path.to_path_buf()))
}

/// What a successful command prints, if it ends within `limit`. Otherwise it is ended, with what it started.
///
/// # Errors
///
/// `MemoryAlloc` if there is none for another process.
fn output_within(command: &mut Command, limit: Duration) -> Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if is_no_memory(&error) => return Err(no_memory()),
        Err(_) => return Ok(None),
    };
    let output = child.stdout.take().and_then(|stdout| read_until(stdout, deadline));
    let ended = output.is_some() && ends_until(&mut child, deadline);
    if !ended {
        if let Ok(group) = libc::pid_t::try_from(child.id()) {
            // SAFETY: has no preconditions. The child was not waited for, so that its group is still its own; where the
            // program ignores SIGCHLD, as long as anything that it started runs.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    }
    // A program that ignores SIGCHLD learns no status; then the answer has to speak for itself.
    let failed = child.wait().is_ok_and(|status| !status.success());
    Ok(output.filter(|_| ended && !failed))
}

/// Everything up to the end of `stdout`, or `None` if that does not come in time or does not fit.
fn read_until(mut stdout: ChildStdout, deadline: Instant) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    while output.len() <= MAX_ANSWER {
        let left = deadline.saturating_duration_since(Instant::now());
        let milliseconds = libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX);
        let mut poll = libc::pollfd { fd: stdout.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure.
        match unsafe { libc::poll(&raw mut poll, 1, milliseconds) } {
            // A signal: look at the clock again.
            -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => continue,
            ..=0 => return None,
            _ => {}
        }
        match stdout.read(&mut buffer).ok()? {
            0 => return Some(output),
            n => output.extend_from_slice(&buffer[..n]),
        }
    }
    None
}

/// Whether the child ends in time.
fn ends_until(child: &mut Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script);
        command
    }

    #[test]
    #[cfg_attr(miri, ignore = "starts a process")]
    fn the_output_of_a_command_is_read() {
        let limit = Duration::from_secs(20);
        assert_eq!(output_within(&mut shell("echo a; echo b"), limit), Ok(Some(b"a\nb\n".to_vec())));
        assert_eq!(output_within(&mut shell("echo a; exit 3"), limit), Ok(None));
        assert_eq!(output_within(&mut Command::new("/no/such/program"), limit), Ok(None));
        assert_eq!(
            output_within(&mut shell("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaa; done"), limit),
            Ok(None)
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "starts a process")]
    fn slow_commands_are_ended() {
        let start = Instant::now();
        let limit = Duration::from_millis(200);
        assert_eq!(output_within(&mut shell("echo a; sleep 60"), limit), Ok(None));
        assert_eq!(output_within(&mut shell("echo a; exec >&-; sleep 60"), limit), Ok(None));
        // A grandchild keeps the output open.
        assert_eq!(output_within(&mut shell("echo a; sleep 60 & exit 0"), limit), Ok(None));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    #[cfg_attr(miri, ignore = "starts processes")]
    fn python_is_asked_before_python3() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("blosc2-interpreters-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let directories = [dir.clone()];
        let answers =
            || INTERPRETERS.iter().find_map(|program| ask_python(program, &directories, "name").unwrap());
        assert_eq!(answers(), None);
        for program in ["python3", "python"] {
            let path = dir.join(program);
            std::fs::write(&path, "#!/bin/sh\necho \"$0\"\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(answers(), Some(path));
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn without_a_search_path_the_usual_one_serves() {
        assert!(program_directories(None).contains(&PathBuf::from("/usr/bin")));
        assert!(program_directories(Some(OsStr::new(""))).is_empty());
    }

    #[test]
    fn the_current_directory_is_no_place_for_plugins() {
        let found = absolute_directories(Some(OsStr::new("/a::.:b:/c")));
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/c")]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system for its privileges")]
    fn a_path_is_tried_once_per_place_and_the_first_success_counts() {
        let seen = std::cell::RefCell::new(Vec::new());
        let found = libraries("capi_no_such_plugin", &|path| {
            seen.borrow_mut().push(path.to_owned());
            Ok(Some(7))
        });
        assert_eq!(found, Ok(Some(7)));
        assert_eq!(*seen.borrow(), [c"libblosc2_capi_no_such_plugin.so".to_owned()]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system for its privileges")]
    fn a_search_ends_where_memory_is_lacking() {
        let attempts = std::cell::Cell::new(0);
        let found = libraries::<()>("capi_no_such_plugin", &|_| {
            attempts.set(attempts.get() + 1);
            Err(no_memory())
        });
        assert_eq!((found, attempts.get()), (Err(no_memory()), 1));
    }
}
