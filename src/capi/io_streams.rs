//! The streams of one file of a back-end of the application.
//!
//! A stream has a position that its callbacks share, so one thread uses it at a time. While several threads read a
//! file, each of them has a stream of its own: the first one is there from the start, others are opened when they are
//! missed, and all stay open as long as the file. Of a file that is changed there is one stream only, because what was
//! written may still be in its buffers.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use parking_lot::{Condvar, Mutex};

use super::callbacks::call_back;
use super::types::blosc2_io_cb;
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::io::OpenMode;
use crate::memory;

/// What opening a file takes.
pub(super) struct Opener {
    pub(super) callbacks: blosc2_io_cb,
    pub(super) params: *mut c_void,
    pub(super) path: CString,
    pub(super) mode: OpenMode,
}

/// The streams of one file.
pub(super) struct Streams {
    opener: Opener,
    state: Mutex<State>,
    returned: Condvar,
}

struct State {
    /// Those that nobody uses.
    idle: Vec<*mut c_void>,
    /// The threads that use one each.
    users: Vec<ThisThread>,
    /// Whether a thread that finds none may open another one.
    extensible: bool,
}

// SAFETY: the contract of back-ends lets any thread open files and use streams; one thread at a time uses each, see
// `take`.
unsafe impl Send for Streams {}
// SAFETY: as above; the rest is behind a lock, or only read.
unsafe impl Sync for Streams {}

/// A stream, for one thread; the others get it back afterwards.
pub(super) struct Taken<'a> {
    streams: &'a Streams,
    stream: *mut c_void,
    user: ThisThread,
}

thread_local! {
    static HERE: u8 = const { 0 };
}

/// A thread, known by the address of something that each one has.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ThisThread(usize);

impl ThisThread {
    fn get() -> ThisThread {
        ThisThread(HERE.with(|here| ptr::from_ref(here).addr()))
    }
}

/// The mode in the words of `fopen`.
fn mode_text(mode: OpenMode) -> &'static CStr {
    match mode {
        OpenMode::Read => c"rb",
        OpenMode::Update => c"rb+",
        OpenMode::Create => c"wb",
        OpenMode::Append => c"ab",
    }
}

impl Opener {
    /// A new stream, not null.
    ///
    /// # Errors
    ///
    /// `FileOpen`, or `PluginIo` without the callback.
    pub(super) fn open(&self) -> Result<*mut c_void> {
        let open = self.callbacks.open.ok_or_else(super::io_adapter::missing)?;
        // SAFETY: the client vouches for its callback and its parameters.
        let open = || unsafe { open(self.path.as_ptr(), mode_text(self.mode).as_ptr(), self.params) };
        let stream = call_back(open);
        if stream.is_null() {
            Err(Error::new(ErrorKind::FileOpen, "the back-end opens no file"))
        } else {
            Ok(stream)
        }
    }
}

impl Streams {
    /// Opens the file, with one stream.
    ///
    /// # Errors
    ///
    /// As [`Opener::open`].
    pub(super) fn open(opener: Opener) -> Result<Streams> {
        let idle = vec![opener.open()?];
        let extensible = opener.mode == OpenMode::Read;
        let state = State { idle, users: Vec::new(), extensible };
        Ok(Streams { opener, state: Mutex::new(state), returned: Condvar::new() })
    }

    /// Takes a stream that nobody uses; waits for one only if no more can be opened.
    ///
    /// # Errors
    ///
    /// `PluginIo` if the stream to wait for is in use by a callback that this thread is inside of; `MemoryAlloc`.
    pub(super) fn take(&self) -> Result<Taken<'_>> {
        let user = ThisThread::get();
        let mut state = self.state.lock();
        loop {
            memory::reserve(&mut state.users, 1)?;
            if let Some(stream) = state.idle.pop() {
                state.users.push(user);
                return Ok(Taken { streams: self, stream, user });
            }
            if !state.extensible {
                let is_own = state.users.contains(&user);
                ensure(!is_own, ErrorKind::PluginIo, "the back-end has one stream, which this thread uses")?;
                self.returned.wait(&mut state);
                continue;
            }
            drop(state);
            // Without the lock: callbacks may take long.
            let opened = self.opener.open();
            state = self.state.lock();
            match opened {
                Ok(stream) => state.idle.push(stream),
                Err(_) => state.extensible = false,
            }
        }
    }

    /// The back-end that the streams belong to.
    pub(super) fn callbacks(&self) -> &blosc2_io_cb {
        &self.opener.callbacks
    }
}

impl Taken<'_> {
    /// The stream, for callbacks of its back-end; nobody else has it until this is dropped.
    pub(super) fn stream(&self) -> *mut c_void {
        self.stream
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.streams.state.lock();
        state.idle.push(self.stream);
        if let Some(at) = state.users.iter().position(|&user| user == self.user) {
            state.users.swap_remove(at);
        }
        drop(state);
        self.streams.returned.notify_one();
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let Some(close) = self.opener.callbacks.close else { return };
        for &stream in &self.state.get_mut().idle {
            // SAFETY: the client vouches for its callback; all streams are back, and nobody else has them.
            call_back(|| unsafe { close(stream) });
        }
    }
}
