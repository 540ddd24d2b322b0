//! Bytes between memory and files, by as many system calls as it takes.
//!
//! Some CPUs copy slowly if source and destination lie at certain distances (see [`copy`]). Where the kernel would have
//! to, bytes are read to a place a few bytes further up and then moved down, and what is to be written is first copied
//! to memory at a better distance.

#[cfg(unix)]
use crate::cancel;
use crate::copy::{self, CLEAR, LONG, slow_distance};
use crate::pages::LINE;
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Error;
use std::io::{ErrorKind, Result};
use std::mem::MaybeUninit;

/// Most bytes moved by one system call; some systems refuse 2 GiB and more.
const MAX_TRANSFER: usize = 1 << 30;
/// Bytes that are moved or copied at a time, while they are in a near cache. Miri is slow.
const PIECE: usize = if cfg!(miri) { 8 << 10 } else { 128 << 10 };

/// Reads at `position`, and returns the number of bytes: less than `buf.len()` only at the end of the file.
///
/// # Errors
///
/// Those of the system.
pub(super) fn read(file: &File, position: u64, buf: &mut [u8]) -> Result<usize> {
    let shift = shift(low_bits(position), buf.as_ptr().addr(), buf.len());
    read_all(file, position, shift, as_room(buf))
}

/// As [`read`], but may stop early.
///
/// # Errors
///
/// Those of the system.
pub(super) fn read_some(file: &File, position: u64, buf: &mut [u8]) -> Result<usize> {
    read_once(file, position, 0, as_room(buf))
}

/// Fills `room` with the bytes at `position`, and returns them; `None` if the file ends too early.
///
/// # Errors
///
/// Those of the system.
pub(super) fn fill<'r>(
    file: &File,
    position: u64,
    room: &'r mut [MaybeUninit<u8>],
) -> Result<Option<&'r mut [u8]>> {
    let shift = shift(low_bits(position), room.as_ptr().addr(), room.len());
    if read_all(file, position, shift, room)? < room.len() {
        return Ok(None);
    }
    // SAFETY: as many bytes were read as there is room for.
    Ok(Some(unsafe { super::initialised(room) }))
}

/// Writes all of `bytes` at `position`.
///
/// # Errors
///
/// Those of the system. Part of the bytes may have been written.
pub(super) fn write(file: &File, position: u64, bytes: &[u8]) -> Result<()> {
    if shift(bytes.as_ptr().addr(), low_bits(position), bytes.len()) == 0 {
        write_all(file, position, bytes)
    } else {
        write_copied(file, position, bytes)
    }
}

/// Writes copies of the bytes that lie as their places in the file do.
fn write_copied(file: &File, position: u64, bytes: &[u8]) -> Result<()> {
    let mut room = Vec::new();
    if room.try_reserve_exact(PIECE.min(bytes.len()) + LINE).is_err() {
        return write_all(file, position, bytes);
    }
    room.resize(room.capacity(), 0);
    let start = low_bits(position).wrapping_sub(room.as_ptr().addr()) % LINE;
    for (n, piece) in bytes.chunks(PIECE).enumerate() {
        let copied = &mut room[start..start + piece.len()];
        copy::copy(piece, copied);
        write_all(file, further(position, n * PIECE)?, copied)?;
    }
    Ok(())
}

/// The bits of a position in a file that matter for distances.
fn low_bits(position: u64) -> usize {
    usize::try_from(position & u64::from(u16::MAX)).expect("16 bits")
}

fn further(position: u64, by: usize) -> Result<u64> {
    position.checked_add(by as u64).ok_or(ErrorKind::InvalidInput.into()) // widening
}

/// How many bytes above `to` a destination must lie for copies from `from` to be fast; 0 if copies to `to` itself are.
/// One of the two is an address, the other a position in a file.
fn shift(from: usize, to: usize, len: usize) -> usize {
    if len < LONG || !copy::are_distances_slow() {
        return 0;
    }
    match slow_distance(from, to) {
        0 => 0,
        ahead => CLEAR - ahead,
    }
}

fn as_room(buf: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the same memory, borrowed as long; nothing but bytes that were read is put there.
    unsafe { &mut *(std::ptr::from_mut(buf) as *mut [MaybeUninit<u8>]) }
}

/// Reads all that there is room for, first `shift` bytes further up; less only at the end of the file.
fn read_all(file: &File, position: u64, shift: usize, room: &mut [MaybeUninit<u8>]) -> Result<usize> {
    let mut done = 0;
    while done < room.len() {
        let rest = &mut room[done..];
        // The last bytes have no room further up.
        let (shift, len) = match rest.len() {
            len if shift == 0 || len < LONG => (0, len),
            len => (shift, PIECE.min(len - shift)),
        };
        let n = read_once(file, further(position, done)?, shift, &mut rest[..shift + len])?;
        if n == 0 {
            break;
        }
        done += n;
    }
    Ok(done)
}

/// Reads as much as there is room for after the first `shift` bytes, or less, and moves it to the front.
fn read_once(file: &File, position: u64, shift: usize, room: &mut [MaybeUninit<u8>]) -> Result<usize> {
    let len = (room.len() - shift).min(MAX_TRANSFER);
    loop {
        match system_read(file, position, &mut room[shift..shift + len]) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Ok(n) if shift > 0 => {
                room.copy_within(shift..shift + n, 0);
                return Ok(n);
            }
            done => return done,
        }
    }
}

fn write_all(file: &File, position: u64, bytes: &[u8]) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let end = bytes.len().min(done + MAX_TRANSFER);
        match system_write(file, further(position, done)?, &bytes[done..end]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn system_read(file: &File, position: u64, room: &mut [MaybeUninit<u8>]) -> Result<usize> {
    use std::os::fd::AsRawFd;
    let at = i64::try_from(position).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
    // SAFETY: `room` has room for as many bytes as said.
    let read = || unsafe { libc::pread64(file.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), at) };
    let n = cancel::deferred(read);
    usize::try_from(n).map_err(|_| Error::last_os_error())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn system_read(file: &File, position: u64, room: &mut [MaybeUninit<u8>]) -> Result<usize> {
    cancel::deferred(|| std::os::unix::fs::FileExt::read_at(file, super::zeroed(room), position))
}

#[cfg(windows)]
fn system_read(file: &File, position: u64, room: &mut [MaybeUninit<u8>]) -> Result<usize> {
    match std::os::windows::fs::FileExt::seek_read(file, super::zeroed(room), position) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(0),
        done => done,
    }
}

#[cfg(unix)]
fn system_write(file: &File, position: u64, bytes: &[u8]) -> Result<usize> {
    cancel::deferred(|| std::os::unix::fs::FileExt::write_at(file, bytes, position))
}

#[cfg(windows)]
fn system_write(file: &File, position: u64, bytes: &[u8]) -> Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_to_their_places_in_every_way() {
        let path = std::env::temp_dir().join(format!("blosc2-transfer-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let content: Vec<u8> = (0..3 * PIECE + 5000).map(|i| (i * 7 % 251).to_le_bytes()[0]).collect();
        let untouched = vec![0xEE; content.len() + 2 * 4096];
        let mut room = untouched.clone();
        let lens = [0, 100, LONG - 1, LONG, LONG + 33, PIECE, PIECE + LONG, 2 * PIECE + 31, content.len()];
        for (len, ahead) in lens.into_iter().flat_map(|len| [0, 1, 16, 31, 32].map(|ahead| (len, ahead))) {
            let position = 5000;
            let at = ahead + 5000usize.wrapping_sub(room.as_ptr().addr()) % 4096;
            for write in [write, write_copied] {
                file.set_len(0).unwrap();
                room[at..at + len].copy_from_slice(&content[..len]);
                write(&file, position, &room[at..at + len]).unwrap();
                let written = std::fs::read(&path).unwrap();
                assert_eq!(written.get(5000..).unwrap_or_default(), &content[..len]);
            }
            for (shift, more) in
                [(None, 0), (Some(0), 0), (Some(16), 0), (Some(31), 0), (None, 50), (Some(7), 50)]
            {
                room.copy_from_slice(&untouched);
                let place = &mut room[at..at + len + more]; // the file ends before
                let n = match shift {
                    Some(shift) => read_all(&file, position, shift, as_room(place)),
                    None => read(&file, position, place),
                };
                assert_eq!((n.unwrap(), &place[..len]), (len, &content[..len]), "shift {shift:?}");
                assert_eq!(room[..at], untouched[..at]);
                assert_eq!(room[at + len + more..], untouched[at + len + more..]);
            }
            let mut room = Box::new_uninit_slice(len);
            assert_eq!(fill(&file, position, &mut room).unwrap(), Some(&mut content[..len].to_vec()[..]));
            assert_eq!(fill(&file, position + 1, &mut room).unwrap().is_some(), len == 0);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
