//! Whoever asks for it waits for the device: in which order things get there.

use super::*;
use crate::io::file::PlainFile;

/// What a frame did on disk, in order.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    /// A file was written or cut off.
    Changed(String),
    /// What was written to a file is on the device.
    Synced(String),
    /// That there is a file or directory is on the device.
    Named(String),
}

use Event::{Changed, Named, Synced};

/// A back-end that takes notes.
#[derive(Clone, Default)]
struct NotedIo(Arc<Mutex<Vec<Event>>>);

struct NotedFile {
    inner: PlainFile,
    name: String,
    events: Arc<Mutex<Vec<Event>>>,
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

impl NotedIo {
    fn options(&self, durability: Durability) -> FrameOptions {
        FrameOptions { io: Arc::new(self.clone()), durability, ..FrameOptions::default() }
    }

    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Io for NotedIo {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn IoFile>> {
        let inner = PlainFile::open(path, mode)?;
        Ok(Arc::new(NotedFile { inner, name: name_of(path), events: Arc::clone(&self.0) }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        FileIo.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        FileIo.rename(from, to)
    }

    fn sync_name(&self, path: &Path) -> Result<()> {
        self.0.lock().push(Named(name_of(path)));
        FileIo.sync_name(path)
    }

    fn features(&self) -> Features {
        FileIo.features()
    }
}

impl NotedFile {
    fn note(&self, event: fn(String) -> Event) {
        self.events.lock().push(event(self.name.clone()));
    }
}

impl IoFile for NotedFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(position, buf)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> Result<()> {
        self.note(Changed);
        self.inner.write_at(position, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.note(Changed);
        self.inner.truncate(len)
    }

    fn sync(&self) -> Result<()> {
        self.note(Synced);
        self.inner.sync()
    }
}

/// Where something happened first.
fn first(events: &[Event], event: &Event) -> usize {
    events.iter().position(|other| other == event).unwrap_or_else(|| panic!("no {event:?} in {events:?}"))
}

#[test]
fn a_new_chunk_file_and_its_name_are_there_before_the_index_refers_to_it() {
    let (path, io) = (TempPath::new("durable"), NotedIo::default());
    let mut frame = Frame::create_dir(&path, params(), &io.options(Durability::Sync)).unwrap();
    let index = crate::io::dirs::INDEX_NAME.to_string();
    let made = io.take();
    assert_eq!(made[made.len() - 3..], [Synced(index.clone()), Named(index.clone()), Named(name_of(&path))]);
    for new in ["00000000.chunk", "00000001.chunk"].map(str::to_string) {
        frame.append(&chunk(400, 1)).unwrap();
        let events = io.take();
        let written = first(&events, &Changed(index.clone()));
        assert!(first(&events, &Synced(new)) < written && first(&events, &Named(index.clone())) < written);
        assert_eq!(events.last(), Some(&Synced(index.clone())));
    }
}

#[test]
fn what_is_appended_to_a_file_is_there_when_that_returns() {
    let (path, io) = (TempPath::new("durable"), NotedIo::default());
    let mut frame = create(Kind::Memory, Path::new(""));
    frame.append(&chunk(400, 1)).unwrap();
    let name = name_of(&path);
    for _ in 0..2 {
        frame.append_to_file(&path, &io.options(Durability::Sync)).unwrap();
        assert_eq!(io.take(), [Changed(name.clone()), Synced(name.clone()), Named(name.clone())]);
    }
}

#[test]
fn nobody_waits_who_did_not_ask_for_it() {
    for dir in [false, true] {
        let (path, io) = (TempPath::new("durable"), NotedIo::default());
        let options = io.options(Durability::System);
        let mut frame = if dir {
            Frame::create_dir(&path, params(), &options).unwrap()
        } else {
            Frame::create_file(&path, params(), &options).unwrap()
        };
        frame.append(&chunk(400, 1)).unwrap();
        assert!(io.take().iter().all(|event| matches!(event, Changed(_))));
    }
}
