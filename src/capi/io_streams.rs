//! The streams of one file of a back-end of the application.
//!
//! A stream has a position that its callbacks share, so one thread uses it at a time. While several threads read a
//! file, each of them has a stream of its own: the first one is there from the start, others are opened when they are
//! missed, and all stay open as long as the file. Of a file that is changed there is one stream only, because what was
//! written may still be in its buffers.

use std::ffi::{CStr, CString, c_void};

use parking_lot::{Condvar, Mutex};

use super::callbacks::call_back;
use super::types::blosc2_io_cb;
use crate::error::{Error, ErrorKind, Result};
use crate::io::OpenMode;

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
        Ok(Streams { opener, state: Mutex::new(State { idle, extensible }), returned: Condvar::new() })
    }

    /// Takes a stream that nobody uses; waits for one only if no more can be opened.
    pub(super) fn take(&self) -> Taken<'_> {
        let mut state = self.state.lock();
        loop {
            if let Some(stream) = state.idle.pop() {
                return Taken { streams: self, stream };
            }
            if !state.extensible {
                self.returned.wait(&mut state);
                continue;
            }
            drop(state);
            // Without the lock: callbacks may take long.
            let opened = self.opener.open();
            if let Ok(stream) = opened {
                return Taken { streams: self, stream };
            }
            state = self.state.lock();
            state.extensible = false;
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
        self.streams.state.lock().idle.push(self.stream);
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
