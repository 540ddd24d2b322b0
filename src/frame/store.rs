//! Where a frame is kept, and how a change of it is written.

#![forbid(unsafe_code)]

use super::chunk_files;
use super::head::Head;
use super::journal::{Mark, Record, Undo};
use super::leftover;
use super::read;
use super::readers::{self, Reader};
use super::spares::{self, Spares};
use super::state::{Source, State};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::consts::EXTENDED_HEADER_LENGTH;
use crate::format::frame_header::{FIXED_LEN, FrameHeader};
use crate::io::memory::MallocBuf;
use crate::io::{FileId, Io, IoFile, OpenMode, dirs};
use crate::memory::{self, extend, zeroed};
use parking_lot::{Mutex, MutexGuard};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many bytes are copied at once when payload moves inside a file: they stay in a near cache.
const COPIED: usize = 128 << 10;
/// The same for back-ends of the application, where each call may take long.
const COPIED_ELSEWHERE: usize = 1 << 20;

/// Adjacent writes of up to this many bytes in all are made one.
const JOINED: usize = 32 << 10;

/// Size in bytes of the aligned ranges inside which local file systems write in one step, which a kill cannot break
/// off.
const PAGE: u64 = 4096;

/// The home of a frame.
pub(crate) enum Store {
    Memory(MallocBuf),
    Disk(Disk),
}

/// A file or directory.
pub(crate) struct Disk {
    /// The back-end.
    pub(crate) io: Arc<dyn Io>,
    /// The file of a contiguous frame, the index file of a sparse one.
    pub(crate) file: PathBuf,
    /// The directory of a sparse frame.
    pub(crate) dir: Option<PathBuf>,
    /// Position of the frame in the file.
    pub(crate) base: u64,
    /// The handle that is kept open.
    pub(crate) reader: Reader,
    /// The file, if the back-end maps it into memory.
    pub(crate) mapped: Option<Arc<dyn IoFile>>,
    /// Whether each step waits for the device.
    pub(crate) sync: bool,
    /// Files of replaced chunks of a sparse frame.
    pub(super) spares: Box<Mutex<Spares>>,
    /// What a change without a journal failed to write back, to be tried again.
    torn: Mutex<Option<Box<Torn>>>,
}

/// A change without a journal that failed, and could not be taken back.
struct Torn {
    /// What was there before.
    undo: Undo,
    /// The last bytes that were to be written, the header as a rule, and where in the frame.
    last: (u64, Vec<u8>),
    /// Whether they were all, and the file kept its length.
    is_one_step: bool,
}

impl Torn {
    /// Whether the frame at `base` of `file` is still as this left it, which shows where it was to write last: each
    /// byte is the old or the new one there. Somebody else may have changed the frame since.
    fn is_left_in(&self, file: &dyn IoFile, base: u64) -> bool {
        let (at, new) = &self.last;
        let (Ok(mut now), Ok(mut old)) = (memory::copy_of(new), memory::copy_of(new)) else { return true };
        let Ok(n) = file.read_at(base + at, &mut now) else { return true };
        self.undo.overlay(*at, &mut old);
        n == new.len() && now.iter().zip(&old).zip(new).all(|((now, old), new)| now == old || now == new)
    }

    /// Writes back what was there before.
    fn take_back(&self, file: &dyn IoFile, sync: bool) -> Result<()> {
        if self.is_one_step { self.undo.write_back(file, sync) } else { self.undo.roll_back(file, sync) }
    }
}

/// One step of a change; positions are relative to the frame.
#[derive(Clone, Copy)]
pub(crate) enum Write<'a> {
    /// These bytes go there.
    Bytes(u64, &'a [u8]),
    /// `len` bytes move from `from` to `to`. In memory the ranges may overlap, in a file they do not.
    Copy { from: u64, to: u64, len: u64 },
}

impl Write<'_> {
    fn range(&self) -> Range<u64> {
        match *self {
            Write::Bytes(at, bytes) => at..at + bytes.len() as u64, // widening
            Write::Copy { to, len, .. } => to..to + len,
        }
    }
}

/// A change of the frame's file from one complete content to another.
pub(crate) struct Change<'a> {
    /// The steps, in order.
    pub(crate) writes: &'a [Write<'a>],
    /// What the old content needs; where the steps overwrite it, it is saved first.
    pub(crate) needed: &'a [Range<u64>],
    /// The length of the frame before.
    pub(crate) old_len: u64,
    /// The length of the frame afterwards.
    pub(crate) new_len: u64,
    /// What follows the frame in its file.
    pub(crate) behind: Behind,
}

/// What follows a frame in its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// Nothing but zeros: they may go, but need not.
    Zeros,
    /// What a change that was broken off has left. It has to go before the next one: it is told by the frame before it.
    Leftover,
    /// Data that are not this frame's, up to this length of the file. They stay, so that the frame keeps its length.
    Others(u64),
}

impl Behind {
    /// The length of the file, if other data follow the frame in it.
    pub(crate) fn others(self) -> Option<u64> {
        match self {
            Behind::Others(size) => Some(size),
            Behind::Nothing | Behind::Zeros | Behind::Leftover => None,
        }
    }
}

impl Disk {
    /// The contiguous frame at `base` of `file`, or the sparse one in `dir`.
    pub(crate) fn new(io: Arc<dyn Io>, file: PathBuf, dir: Option<PathBuf>, base: u64, sync: bool) -> Disk {
        let (reader, spares, torn) = Default::default();
        Disk { io, file, dir, base, reader, mapped: None, sync, spares, torn }
    }

    /// Makes the file, with `bytes` in it; tells which one it is.
    ///
    /// # Errors
    ///
    /// Those of opening and writing. In the file system, nothing of the frame is left then, and no empty directory in
    /// any case.
    pub(crate) fn create(mut self, bytes: &[u8]) -> Result<(Disk, Option<FileId>)> {
        let file = self.io.open(&self.file, OpenMode::Create);
        let written = file.as_ref().map_err(|&e| e).and_then(|file| {
            file.write_at(0, bytes)?;
            file.truncate(bytes.len() as u64)?; // widening
            self.sync(&**file)?;
            self.sync_new_names()?;
            Ok(file.id())
        });
        let was_made = file.is_ok();
        drop(file);
        match written.and_then(|id| self.keep_mapping().map(|()| id)) {
            Ok(id) => Ok((self, id)),
            Err(e) => {
                self.remove(was_made && self.io.features().local);
                Err(e)
            }
        }
    }

    /// Removes what was made in vain, as far as that is possible: the directory and, if it `was_made`, the file.
    fn remove(&self, was_made: bool) {
        if was_made {
            // A link stays one.
            let _ = fs::canonicalize(&self.file).and_then(fs::remove_file);
        }
        if let Some(dir) = &self.dir {
            let _ = fs::remove_dir(dir);
        }
    }

    /// Keeps the mapping of the file at hand, if there is one, so that chunks can be borrowed from it.
    ///
    /// # Errors
    ///
    /// `FileOpen`.
    pub(crate) fn keep_mapping(&mut self) -> Result<()> {
        if self.io.features().maps {
            self.mapped = Some(self.io.open(&self.file, OpenMode::Update)?);
        }
        Ok(())
    }

    /// A handle for reading the frame's file.
    ///
    /// # Errors
    ///
    /// `FileOpen` or `PluginIo`.
    pub(crate) fn reader(&self) -> Result<Arc<dyn IoFile>> {
        self.reader.get(&*self.io, &self.file)
    }

    /// As [`reader`](Self::reader), without asking whether another file has taken the path.
    ///
    /// # Errors
    ///
    /// As [`reader`](Self::reader).
    pub(crate) fn reader_at_hand(&self) -> Result<Arc<dyn IoFile>> {
        self.reader.at_hand().map_or_else(|| self.reader(), Ok)
    }

    /// A handle for changing the frame's file.
    ///
    /// # Errors
    ///
    /// `FileOpen` or `PluginIo`.
    pub(crate) fn writer(&self) -> Result<Arc<dyn IoFile>> {
        self.reader.get_for_changes(&*self.io, &self.file)
    }

    /// Whether handles for changes are kept, and serve for reading too.
    pub(crate) fn keeps_handles(&self) -> bool {
        readers::keeps_handles(&*self.io)
    }

    /// Path of the file of chunk `id` of a sparse frame.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for numbers above 32 bits.
    pub(crate) fn chunk_path(&self, id: u64) -> Result<PathBuf> {
        let dir = self.dir.as_deref().unwrap_or(Path::new(""));
        Ok(dir.join(dirs::chunk_name(id)?))
    }

    /// Path of a file that is kept for a chunk to come.
    pub(super) fn spare_path(&self, slot: u8) -> PathBuf {
        self.dir.as_deref().unwrap_or(Path::new("")).join(spares::name(slot))
    }

    /// Fails unless the file begins as that of a frame does.
    ///
    /// # Errors
    ///
    /// Those of opening, `FileRead` if it is too short, and those of [`FrameHeader::read`].
    pub(crate) fn check_header(&self) -> Result<()> {
        let file = self.io.open(&self.file, OpenMode::Read)?;
        let mut fixed = [0; FIXED_LEN];
        file.read_exact_at(self.base, &mut fixed)?;
        FrameHeader::read(&fixed).map(drop)
    }

    /// Opens the file, which is not open yet, and reads the whole state.
    ///
    /// # Errors
    ///
    /// Those of opening and [`load`](Self::load).
    pub(crate) fn open_and_load(&self) -> Result<State> {
        if !self.keeps_handles() {
            return self.load(&*self.reader()?);
        }
        self.reader.close();
        let file = self.io.open(&self.file, OpenMode::Read)?;
        let (id, size) = file.id_and_size()?;
        let state = self.load_sized(&*file, self.io.features().journal.then_some(size))?;
        self.reader.keep(&file, id);
        Ok(state)
    }

    /// Reads the whole state through `file`.
    ///
    /// # Errors
    ///
    /// See [`State::load`].
    pub(crate) fn load(&self, file: &dyn IoFile) -> Result<State> {
        let size = if self.io.features().journal { Some(file.size()?) } else { None };
        self.load_sized(file, size)
    }

    /// As [`load`](Self::load); the file has `size` bytes, if that is known.
    ///
    /// # Errors
    ///
    /// See [`State::load`].
    pub(crate) fn load_sized(&self, file: &dyn IoFile, size: Option<u64>) -> Result<State> {
        let mut source = Source::open(file, self.base, size, self.dir.is_some())?;
        if let Some(size) = size {
            source.undo = self.find_undo(file, &source.fixed(), size)?;
        }
        let mut state = State::load(&source)?;
        if self.dir.is_some() {
            let first = read::first_chunk_head(&state, |id| {
                let file = self.io.open(&self.chunk_path(id)?, OpenMode::Read)?;
                let mut head = vec![0; EXTENDED_HEADER_LENGTH];
                let n = read::read_front(self, &*file, &mut head)?;
                head.truncate(n);
                Ok(head)
            })?;
            state.header.vl_blocks = first.is_some_and(|info| info.vl_blocks);
        }
        // Somebody who does not lock may have changed it meanwhile.
        let changed = size.is_some() && !state.is_of(&Head::read(file, self.base, &state.seen)?, file);
        ensure(!changed, ErrorKind::FileRead, "the frame changes while it is read")?;
        Ok(state)
    }

    /// The record of a change that was broken off, if the file ends in one; `fixed` is the header as stored.
    fn find_undo(
        &self,
        file: &dyn IoFile,
        fixed: &[u8; FIXED_LEN],
        size: u64,
    ) -> Result<Option<(Mark, Undo)>> {
        let header = FrameHeader::read(fixed);
        let complete = header.is_ok_and(|header| header.frame_len.checked_add(self.base) == Some(size));
        if complete {
            return Ok(None);
        }
        // First, so that another record that comes meanwhile is not taken for this one.
        let mark = Mark::read(file);
        let undo = Undo::find(file, size)?.filter(|undo| undo.is_at(self.base));
        Ok(undo.and_then(|undo| Some((mark.ok()?, undo))))
    }

    /// Whether a change of `file` that failed is yet to be taken back: until then the file is not as the handle knows
    /// it, and what the handle knows is right.
    pub(crate) fn is_torn(&self, file: &dyn IoFile) -> bool {
        self.still_torn(file).is_some()
    }

    /// The change of `file` that is yet to be taken back, see [`is_torn`](Self::is_torn).
    fn still_torn(&self, file: &dyn IoFile) -> MutexGuard<'_, Option<Box<Torn>>> {
        let mut torn = self.torn.lock();
        torn.take_if(|torn| !torn.is_left_in(file, self.base));
        torn
    }

    /// The length of the file; `None` if a back-end of the application cannot tell.
    ///
    /// # Errors
    ///
    /// `FileRead`.
    pub(crate) fn size_of(&self, file: &dyn IoFile) -> Result<Option<u64>> {
        match file.size() {
            Err(_) if !self.io.features().journal => Ok(None),
            size => size.map(Some),
        }
    }

    /// Undoes a change that was broken off, also that of another frame in the file, of `size` bytes: its record is in
    /// the way of the next one. Tells whether there was one.
    ///
    /// # Errors
    ///
    /// `FileWrite` and others if the old bytes cannot be written back.
    pub(crate) fn repair(&self, file: &dyn IoFile, size: Option<u64>) -> Result<bool> {
        let mut still_torn = self.still_torn(file);
        if let Some(torn) = &*still_torn {
            torn.take_back(file, self.sync)?;
            *still_torn = None;
            return Ok(true);
        }
        drop(still_torn);
        if !self.io.features().journal {
            return Ok(false);
        }
        let undo = size.map_or(Ok(None), |size| Undo::find(file, size))?;
        undo.map_or(Ok(false), |undo| undo.roll_back(file, self.sync).map(|()| true))
    }

    /// What follows the frame of `frame_len` bytes in the file of `size` bytes.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub(crate) fn behind(&self, file: &dyn IoFile, size: Option<u64>, frame_len: u64) -> Result<Behind> {
        let end = self.base + frame_len;
        let Some(size) = size.filter(|&size| size > end) else { return Ok(Behind::Nothing) };
        if !self.io.features().journal && file.read_at(size - 1, &mut [0])? == 0 {
            // A back-end of the application may tell more than can be read, as of files that it rounds up.
            return Ok(Behind::Nothing);
        }
        leftover::what_follows(file, end, size)
    }

    /// Writes `change` to `file`: all of it, or, after a failure, nothing. `head` is the header as stored, if it was
    /// read.
    ///
    /// # Errors
    ///
    /// `FileWrite`, also if other data follow the frame and it would reach into them; `FileRead`, `FileTruncate`,
    /// `MemoryAlloc`. The file is as before, or will be taken for that when it is read.
    pub(crate) fn write(&self, file: &dyn IoFile, head: &[u8], change: &Change<'_>) -> Result<()> {
        let followed = change.behind.others();
        let end = change.writes.iter().map(|write| write.range().end).fold(change.new_len, u64::max);
        let room = followed.is_none() || (end <= change.old_len && change.new_len == change.old_len);
        ensure(room, ErrorKind::FileWrite, "other data follow the frame in its file")?;
        // The file ends with the frame, or keeps its length.
        let new_size = followed.unwrap_or(self.base + change.new_len);
        let old_size = followed.unwrap_or(self.base + change.old_len);
        let old_len = old_size - self.base;
        let (journal, is_one_step) = (self.io.features().journal, self.is_one_step(change));
        let is_in_the_way = match change.behind {
            Behind::Leftover => true,
            // A record must be the end of the file.
            Behind::Zeros => !is_one_step,
            Behind::Nothing | Behind::Others(_) => false,
        };
        if journal && is_in_the_way {
            file.truncate(old_size)?;
        }
        if !journal || is_one_step {
            return self.write_without_journal(file, head, change, (old_len, new_size, is_one_step));
        }
        if self.sync && self.dir.is_some() {
            // The new index may refer to new chunk files, which lie beside it.
            self.io.sync_name(&self.file)?;
        }
        let record = self.save(file, head, change)?.finish(self.base, old_len);
        let written = file
            .write_at(old_size.max(new_size), &record)
            .and_then(|()| self.sync(file))
            .and_then(|()| self.apply(file, change))
            .and_then(|()| self.sync(file))
            .and_then(|()| file.truncate(new_size));
        if let Err(e) = written {
            // If this fails as well, the record stays, and readers go by it.
            if let Some(undo) = Undo::read(record) {
                let _ = undo.roll_back(file, self.sync);
            }
            return Err(e);
        }
        // The change is complete; what a power loss would take away now is the change as a whole.
        let _ = self.sync(file);
        Ok(())
    }

    /// Whether the change is one write inside one page, which a kill cannot break off: the file holds the old content
    /// or the new one. A power loss can, so this is false where changes wait for the device.
    fn is_one_step(&self, change: &Change<'_>) -> bool {
        let [Write::Bytes(at, bytes)] = change.writes else { return false };
        let (start, len) = (self.base + at, bytes.len() as u64); // widening
        let is_in_page = len > 0 && start / PAGE == (start + len - 1) / PAGE;
        is_in_page && at + len <= change.old_len && change.new_len == change.old_len && !self.sync
    }

    /// As [`write`](Self::write), for a file that may hold nothing but the frame, or for a change in one step. The
    /// bytes that the change overwrites are kept in memory only. If a call fails, they are written back: at once, or
    /// else before the next change, or when the handle is closed. If the process is killed, they are lost.
    fn write_without_journal(
        &self,
        file: &dyn IoFile,
        head: &[u8],
        change: &Change<'_>,
        (old_len, new_size, is_one_step): (u64, u64, bool),
    ) -> Result<()> {
        let record = self.save(file, head, change)?.finish(self.base, old_len);
        let cut_off = || if is_one_step { Ok(()) } else { file.truncate(new_size) };
        let written = self.apply(file, change).and_then(|()| cut_off());
        let undo = if written.is_err() { Undo::read(record) } else { None };
        let torn = undo.map(|undo| Torn { undo, last: last_bytes(change.writes), is_one_step });
        *self.torn.lock() = torn.filter(|torn| torn.take_back(file, self.sync).is_err()).map(Box::new);
        written
    }

    /// Waits for the device, if that is asked for.
    fn sync(&self, file: &dyn IoFile) -> Result<()> {
        if self.sync { file.sync() } else { Ok(()) }
    }

    /// As [`sync`](Self::sync), for the names of the file and the directory, which were just made.
    fn sync_new_names(&self) -> Result<()> {
        if !self.sync {
            return Ok(());
        }
        self.io.sync_name(&self.file)?;
        self.dir.as_ref().map_or(Ok(()), |dir| self.io.sync_name(dir))
    }

    /// The record of what the old content needs and the steps overwrite.
    fn save(&self, file: &dyn IoFile, head: &[u8], change: &Change<'_>) -> Result<Record> {
        let mut record = Record::new();
        for needed in change.needed {
            let overlaps = change.writes.iter().map(Write::range).filter_map(|over| {
                let both = over.start.max(needed.start)..over.end.min(needed.end);
                (!both.is_empty()).then_some(both)
            });
            let Some(all) = overlaps.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)) else { continue };
            let too_large = |_| Error::new(ErrorKind::MemoryAlloc, "change too large to be undone");
            let (start, end) = (
                usize::try_from(all.start).map_err(too_large)?,
                usize::try_from(all.end).map_err(too_large)?,
            );
            let old = record.add(all.start, end - start)?;
            match head.get(start..end) {
                Some(known) => old.copy_from_slice(known),
                None => file.read_exact_at(self.base + all.start, old)?,
            }
        }
        Ok(record)
    }

    /// Carries out the steps of a change.
    fn apply(&self, file: &dyn IoFile, change: &Change<'_>) -> Result<()> {
        let mut rest = change.writes;
        let mut joined = Vec::new();
        while let Some((write, behind)) = rest.split_first() {
            rest = behind;
            match *write {
                Write::Copy { from, to, len } => {
                    let step = if self.io.features().local { COPIED } else { COPIED_ELSEWHERE };
                    copy(file, self.base + from, self.base + to, len, step)?;
                }
                Write::Bytes(at, bytes) => {
                    rest = join(at, bytes, rest, &mut joined)?;
                    file.write_at(self.base + at, if joined.is_empty() { bytes } else { &joined })?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        chunk_files::give_up_spares(self);
        if self.torn.get_mut().is_some() {
            // The last chance to take back the change that failed.
            let _ = self.writer().and_then(|file| self.repair(&*file, None));
        }
    }
}

/// The bytes that are written last, and where; none if there is no memory for them.
fn last_bytes(writes: &[Write<'_>]) -> (u64, Vec<u8>) {
    let last = writes.iter().rev().find_map(|write| match *write {
        Write::Bytes(at, bytes) => Some((at, bytes)),
        Write::Copy { .. } => None,
    });
    let copied = last.and_then(|(at, bytes)| Some((at, memory::copy_of(bytes).ok()?)));
    copied.unwrap_or_default()
}

/// Puts `bytes`, which go to `at`, and what the first of `writes` put right after them in `joined`, up to [`JOINED`]
/// bytes; returns the other writes. `joined` is empty if there is nothing to be joined with.
fn join<'w, 'b>(
    at: u64,
    bytes: &[u8],
    mut writes: &'w [Write<'b>],
    joined: &mut Vec<u8>,
) -> Result<&'w [Write<'b>]> {
    joined.clear();
    while let Some((&Write::Bytes(next, more), behind)) = writes.split_first() {
        let len = joined.len().max(bytes.len());
        let follows = next == at + len as u64; // widening
        if !follows || len + more.len() > JOINED {
            break;
        }
        if joined.is_empty() {
            extend(joined, bytes)?;
        }
        extend(joined, more)?;
        writes = behind;
    }
    Ok(writes)
}

/// Copies `len` bytes inside the file from one position to another, `step` bytes at once.
fn copy(file: &dyn IoFile, from: u64, to: u64, len: u64, step: usize) -> Result<()> {
    let mut buffer: Vec<u8> = zeroed(usize::try_from(len).map_or(step, |len| len.min(step)))?;
    let mut done = 0;
    while done < len {
        let n = usize::try_from(len - done).map_or(step, |rest| rest.min(step));
        file.read_exact_at(from + done, &mut buffer[..n])?;
        file.write_at(to + done, &buffer[..n])?;
        done += n as u64; // widening
    }
    Ok(())
}

/// Writes `change` to a frame in memory: all of it, or, without memory, nothing.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn write_memory(buffer: &mut MallocBuf, change: &Change<'_>) -> Result<()> {
    let no_memory = Error::new(ErrorKind::MemoryAlloc, "frame too large for memory");
    let size = |value: u64| usize::try_from(value).map_err(|_| no_memory);
    let end = change.writes.iter().map(|write| write.range().end).max().unwrap_or(0);
    buffer.reserve(size(end.max(change.new_len))?)?;
    for write in change.writes {
        match *write {
            Write::Bytes(at, bytes) => buffer.write_at(size(at)?, bytes)?,
            Write::Copy { from, to, len } => {
                let (from, to, len) = (size(from)?, size(to)?, size(len)?);
                if to + len > buffer.len() {
                    buffer.write_at(to + len, &[])?;
                }
                buffer.copy_within(from, to, len);
            }
        }
    }
    buffer.truncate(size(change.new_len)?);
    Ok(())
}
