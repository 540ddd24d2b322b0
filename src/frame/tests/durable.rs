//! Whoever asks for it waits for the device: in which order things get there.

use super::*;
use crate::frame::journal::Record;
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

/// How often a file was changed before each wait for the device, and after the last one.
fn steps(events: &[Event], name: &str) -> Vec<usize> {
    events.split(|event| *event == Synced(name.to_string())).map(<[Event]>::len).collect()
}

#[test]
fn each_step_of_a_change_is_there_before_the_next_one() {
    let (path, io) = (TempPath::new("durable"), NotedIo::default());
    let mut frame = Frame::create_file(&path, params(), &io.options(Durability::Sync)).unwrap();
    let changes: [fn(&mut Frame) -> Result<usize>; 5] = [
        |frame| frame.meta_add(b"layer", b"content"),
        |frame| frame.append(&chunk(400, 1)),
        |frame| frame.append(&chunk(400, 2)),
        |frame| frame.meta_update(b"layer", b"changed"),
        |frame| frame.vlmeta_add(b"layer", chunk(40, 3)),
    ];
    for change in changes {
        io.take();
        change(&mut frame).unwrap();
        // The record of what was there, the new content, and where it ends.
        let steps = steps(&io.take(), &name_of(&path));
        assert!(matches!(steps[..], [1, content, 1, 0] if content > 0), "{steps:?}");
    }
}

#[test]
fn a_change_that_may_be_broken_off_can_be_taken_back() {
    let (made, path, io) = (TempPath::new("made"), TempPath::new("durable"), NotedIo::default());
    let mut frame = Frame::create_file(&made, params(), &FrameOptions::default()).unwrap();
    frame.meta_add(b"layer", &[1; 200]).unwrap();
    drop(frame);
    let bytes = std::fs::read(&*made).unwrap();
    // Inside one page, and across the end of one.
    for (offset, at_once) in [(0, true), (4096 - 200, false)] {
        std::fs::write(&*path, [&vec![0; offset], &bytes[..]].concat()).unwrap();
        let options = io.options(Durability::System);
        let mut frame = Frame::open(&path, offset as u64, &options).unwrap();
        io.take();
        frame.meta_update(b"layer", &[2; 200]).unwrap();
        assert_eq!(io.take().len() == 1, at_once, "{offset}");
    }
}

#[test]
fn what_was_broken_off_is_taken_back_for_good_before_the_next_change() {
    let (path, io) = (TempPath::new("durable"), NotedIo::default());
    let mut frame = Frame::create_file(&path, params(), &FrameOptions::default()).unwrap();
    frame.append(&chunk(400, 1)).unwrap();
    drop(frame);
    let bytes = std::fs::read(&*path).unwrap();
    let mut record = Record::new();
    record.add(0, 97).unwrap().copy_from_slice(&bytes[..97]);
    let record = record.finish(0, bytes.len() as u64);
    std::fs::write(&*path, [&bytes[..], &record].concat()).unwrap();
    let mut frame = Frame::open(&path, 0, &io.options(Durability::Sync)).unwrap();
    frame.append(&chunk(400, 2)).unwrap();
    // The old bytes, and where they end; then the steps of the change.
    let steps = steps(&io.take(), &name_of(&path));
    assert!(matches!(steps[..], [1, 1, 1, content, 1, 0] if content > 0), "{steps:?}");
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
