//! The section of named byte strings that ends the header of a frame and fills its trailer.
//!
//! | bytes | meaning |
//! |---|---|
//! | `93` | array of three; in the trailer this byte is not counted in the map size |
//! | `cd` BE16 | map size: length in bytes up to the end of the map |
//! | `de` BE16 | number of layers, then for each `a0 + length`, name, `d2` BE32 position of its value |
//! | `dc` BE16 | number of layers, then for each `c6` BE32 length, content |
//!
//! Positions count from the start of the header or trailer.

use super::msgpack::{self, BIN32, FIXSTR, INT32, MAP16};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::memory;
use std::ops::Deref;
use std::sync::Arc;

/// Most bytes in the name of a metalayer.
pub const MAX_NAME: usize = 31;
/// Most fixed metalayers of a super-chunk.
pub const MAX_METALAYERS: usize = 16;
/// Most variable-length metalayers that a reader accepts.
pub const MAX_VLMETALAYERS: usize = 8192;
/// Most variable-length metalayers that are written to a frame, as in the C library.
pub const MAX_VLMETALAYERS_WRITTEN: usize = 16;

/// One metalayer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metalayer {
    /// The name: at most [`MAX_NAME`] bytes, in practice UTF-8.
    pub name: Vec<u8>,
    /// The stored content; of variable-length metalayers this is a chunk.
    pub content: Vec<u8>,
}

/// Metalayers in their order. Whoever keeps a list shares the layers with the others, so that changing one layer copies
/// no other.
///
/// There may be thousands, which are asked for by name: from four on, a tag of two bytes for each name tells nearly all
/// of them apart, so that looking for one reads little memory.
#[derive(Clone, Debug, Default)]
pub struct Metalayers {
    layers: Vec<Arc<Metalayer>>,
    /// The [`tag`] of each layer's name, or nothing.
    tags: Vec<u16>,
}

/// Fewer layers than this have no tags.
const MANY: usize = 4;

/// How many tags are compared at once.
const TAGS: usize = 64;

/// A hash of a name; two names seldom have the same.
fn tag(name: &[u8]) -> u16 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = name.len() as u64; // widening
    for part in name.chunks(8) {
        hash = (hash.rotate_left(29) ^ word(part)).wrapping_mul(ODD);
    }
    let [.., low, high] = hash.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// A number made of up to eight bytes. (In a register: to read eight bytes where fewer were just written takes long.)
fn word(part: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(part) {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

impl Metalayers {
    /// Number of the layer `name`.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub(crate) fn find(&self, name: &[u8]) -> Result<usize> {
        if self.tags.is_empty() {
            return self.layers.iter().position(|layer| layer.name == name).ok_or(NOT_FOUND);
        }
        let wanted = tag(name);
        for (group, tags) in self.tags.chunks(TAGS).enumerate() {
            // Without a way out the loop is a few vector instructions.
            if !tags.iter().fold(false, |found, &tag| found | (tag == wanted)) {
                continue;
            }
            let first = group * TAGS;
            let layers = &self.layers[first..][..tags.len()];
            let named = |(&tag, layer): (&u16, &Arc<Metalayer>)| tag == wanted && layer.name == name;
            if let Some(at) = tags.iter().zip(layers).position(named) {
                return Ok(first + at);
            }
        }
        Err(NOT_FOUND)
    }

    /// Whether there can be a layer `name` beside these.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is one already.
    pub(crate) fn check_new(&self, name: &[u8]) -> Result<()> {
        require(self.find(name).is_err(), "metalayer exists already")
    }

    /// A list of its own with these layers.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn copy(&self) -> Result<Metalayers> {
        Ok(Metalayers {
            layers: memory::collect(self.layers.iter().cloned())?,
            tags: memory::copy_of(&self.tags)?,
        })
    }

    /// Adds a layer at the end.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`; the list is as before.
    pub(crate) fn push(&mut self, layer: Arc<Metalayer>) -> Result<()> {
        memory::push(&mut self.layers, layer)?;
        let (count, tagged) = (self.layers.len(), self.tags.len());
        if tagged == 0 && count < MANY {
            return Ok(());
        }
        let mut missing = self.layers[tagged..].iter().map(|layer| tag(&layer.name));
        missing.try_for_each(|tag| memory::push(&mut self.tags, tag)).inspect_err(|_| {
            self.layers.pop();
            self.tags.truncate(tagged);
        })
    }

    /// Replaces a layer by one of the same name.
    pub(crate) fn replace(&mut self, number: usize, layer: Arc<Metalayer>) {
        debug_assert_eq!(self.layers[number].name, layer.name);
        self.layers[number] = layer;
    }

    /// Removes a layer.
    pub(crate) fn remove(&mut self, number: usize) {
        self.layers.remove(number);
        if !self.tags.is_empty() {
            self.tags.remove(number);
        }
    }

    /// Puts `start` over the start of the content of a layer, which others may go on to look at as it was; false if the
    /// content is shorter than that.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn overwrite(&mut self, number: usize, start: &[u8]) -> Result<bool> {
        let layer = &mut self.layers[number];
        if start.len() > layer.content.len() {
            return Ok(false);
        }
        if Arc::strong_count(layer) > 1 {
            *layer = Metalayer::new(&layer.name, &layer.content)?;
        }
        let own = Arc::get_mut(layer).expect("nobody else looks at the layer");
        own.content[..start.len()].copy_from_slice(start);
        Ok(true)
    }
}

impl PartialEq for Metalayers {
    fn eq(&self, other: &Metalayers) -> bool {
        self.layers == other.layers
    }
}

impl Eq for Metalayers {}

impl Deref for Metalayers {
    type Target = [Arc<Metalayer>];

    fn deref(&self) -> &[Arc<Metalayer>] {
        &self.layers
    }
}

impl FromIterator<Arc<Metalayer>> for Metalayers {
    fn from_iter<I: IntoIterator<Item = Arc<Metalayer>>>(layers: I) -> Metalayers {
        let layers = Vec::from_iter(layers);
        let tagged = if layers.len() < MANY { &[] } else { &layers[..] };
        let tags = tagged.iter().map(|layer| tag(&layer.name)).collect();
        Metalayers { layers, tags }
    }
}

impl Metalayer {
    /// A copy of `content` under a copy of `name`.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn new(name: &[u8], content: &[u8]) -> Result<Arc<Metalayer>> {
        Metalayer::with_content(name, memory::copy_of(content)?)
    }

    /// `content` under a copy of `name`.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn with_content(name: &[u8], content: Vec<u8>) -> Result<Arc<Metalayer>> {
        Ok(Arc::new(Metalayer { name: memory::copy_of(name)?, content }))
    }
}

/// The error for a name that no metalayer has.
pub(crate) const NOT_FOUND: Error = Error::new(ErrorKind::NotFound, "no metalayer with this name");

/// Whether layers can have this name.
///
/// # Errors
///
/// `InvalidParam` if it is too long.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    require(name.len() <= MAX_NAME, "metalayer name too long")
}

/// `layers` to be changed: another list, if others look at this one.
///
/// # Errors
///
/// `MemoryAlloc`.
pub(crate) fn changeable(layers: &mut Arc<Metalayers>) -> Result<&mut Metalayers> {
    if Arc::strong_count(layers) > 1 {
        *layers = Arc::new(layers.copy()?);
    }
    Ok(Arc::get_mut(layers).expect("nobody else looks at the list"))
}

/// Which of the two sections is meant: they count the map size from different bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// At the end of the header: the map size counts from the `93`.
    Header,
    /// In the trailer: the map size counts from the `cd`.
    Trailer,
}

/// Appends the section for `layers`, of [`section_len`] bytes, to `dest`, in which the header or trailer begins at
/// `start`: it holds all that comes before the section.
///
/// # Errors
///
/// `InvalidParam` for a name that is too long or a section too large for its size fields.
pub(crate) fn write(
    dest: &mut Vec<u8>,
    start: usize,
    section: Section,
    layers: &[Arc<Metalayer>],
) -> Result<()> {
    let too_large = Error::new(ErrorKind::InvalidParam, "metalayers too large for a frame");
    let names: usize = layers.iter().map(|layer| 6 + layer.name.len()).sum();
    let map_size = if section == Section::Header { 7 } else { 6 } + names;
    let map_size = u16::try_from(map_size).map_err(|_| too_large)?;
    let count = u16::try_from(layers.len()).map_err(|_| too_large)?;
    let (before, len) = (dest.len() - start, section_len(layers));
    i32::try_from(before.saturating_add(len)).map_err(|_| too_large)?;
    memory::reserve(dest, len)?;
    let mut position = before + 10 + names;
    msgpack::put_fixarray(dest, 3);
    msgpack::put_u16(dest, map_size);
    msgpack::put_map16(dest, count);
    for layer in layers {
        check_name(&layer.name)?;
        msgpack::put_fixstr(dest, &layer.name);
        msgpack::put_i32(dest, i32::try_from(position).map_err(|_| too_large)?);
        position += 5 + layer.content.len();
    }
    msgpack::put_array16(dest, count);
    for layer in layers {
        msgpack::put_bin32(dest, &layer.content);
    }
    Ok(())
}

/// Reads the layers whose map starts at `map_at` in `bytes`, the whole header or trailer; at most `limit` of them.
///
/// # Errors
///
/// `Data` for wrong markers, counts or positions, `ReadBuffer` where something reaches past the end.
pub(crate) fn read(bytes: &[u8], map_at: usize, limit: usize) -> Result<Metalayers> {
    msgpack::expect(bytes, map_at, MAP16, "metalayer map has a wrong marker")?;
    let count = usize::from(msgpack::be_u16(bytes, map_at + 1)?);
    ensure(count <= limit, ErrorKind::Data, "too many metalayers")?;
    let mut layers = Metalayers::default();
    let mut at = map_at + 3;
    // Contents that overlap could make a small frame ask for a lot of memory; no writer makes them.
    let mut budget = bytes.len();
    for _ in 0..count {
        let head = msgpack::byte(bytes, at)?;
        ensure(head & 0xe0 == FIXSTR, ErrorKind::Data, "metalayer name has a wrong marker")?;
        let name_at = at + 1;
        let name_end = name_at + usize::from(head & 0x1f);
        msgpack::expect(bytes, name_end, INT32, "metalayer position has a wrong marker")?;
        let position = msgpack::be_i32(bytes, name_end + 1)?;
        let content = read_content(bytes, position)?;
        ensure(content.len() <= budget, ErrorKind::Data, "metalayers overlap")?;
        budget -= content.len();
        layers.push(Metalayer::new(&bytes[name_at..name_end], content)?)?;
        at = name_end + 5;
    }
    Ok(layers)
}

fn read_content(bytes: &[u8], position: i32) -> Result<&[u8]> {
    let position = usize::try_from(position).unwrap_or(usize::MAX);
    ensure(position < bytes.len(), ErrorKind::Data, "metalayer position out of range")?;
    ensure(bytes.len() - position >= 5, ErrorKind::ReadBuffer, "metalayer cut off")?;
    msgpack::expect(bytes, position, BIN32, "metalayer content has a wrong marker")?;
    let negative = Error::new(ErrorKind::Data, "negative metalayer length");
    let len = usize::try_from(msgpack::be_i32(bytes, position + 1)?).map_err(|_| negative)?;
    let past_the_end = Error::new(ErrorKind::ReadBuffer, "metalayer reaches past the end");
    bytes[position + 5..].get(..len).ok_or(past_the_end)
}

/// Length in bytes of the section for `layers`.
pub(crate) fn section_len(layers: &[Arc<Metalayer>]) -> usize {
    let lengths = layers.iter().map(|layer| 6 + layer.name.len() + 5 + layer.content.len());
    lengths.fold(10, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, content: &[u8]) -> Arc<Metalayer> {
        Metalayer::new(name.as_bytes(), content).unwrap()
    }

    fn sample() -> Vec<u8> {
        let mut bytes = vec![0; 0x57];
        write(&mut bytes, 0, Section::Header, &[layer("m1", b"hello"), layer("me2", b"xy")]).unwrap();
        bytes
    }

    #[test]
    fn the_documented_bytes_are_written() {
        let expected = [
            0x93, 0xcd, 0, 0x18, 0xde, 0, 2, 0xa2, b'm', b'1', 0xd2, 0, 0, 0, 0x72, 0xa3, b'm', b'e', b'2',
            0xd2, 0, 0, 0, 0x7c, 0xdc, 0, 2, 0xc6, 0, 0, 0, 5, b'h', b'e', b'l', b'l', b'o', 0xc6, 0, 0, 0,
            2, b'x', b'y',
        ];
        let bytes = sample();
        assert_eq!(bytes[0x57..], expected);
        assert_eq!(bytes.len() - 0x57, section_len(&[layer("m1", b"hello"), layer("me2", b"xy")]));
    }

    #[test]
    fn what_is_written_reads_back() {
        let bytes = sample();
        let layers = read(&bytes, 0x57 + 4, MAX_METALAYERS).unwrap();
        assert_eq!(layers[..], [layer("m1", b"hello"), layer("me2", b"xy")]);
        assert_eq!(read(&bytes, 0x57 + 4, 1).unwrap_err().kind(), ErrorKind::Data);
    }

    #[test]
    fn those_who_look_at_a_layer_go_on_to_see_its_old_content() {
        let shown = Arc::new(Metalayers::from_iter([layer("a", b"hello"), layer("b", b"world")]));
        let mut layers = Arc::clone(&shown);
        assert_eq!(changeable(&mut layers).unwrap().overwrite(0, b"HE"), Ok(true));
        assert_eq!(changeable(&mut layers).unwrap().overwrite(1, b"too long"), Ok(false));
        assert_eq!((&layers[0].content[..], &shown[0].content[..]), (&b"HEllo"[..], &b"hello"[..]));
        assert!(Arc::ptr_eq(&layers[1], &shown[1]));
    }

    #[test]
    fn layers_are_found_by_name_whatever_was_added_and_removed_before() {
        let name = |i: usize| format!("layer {i}").into_bytes();
        let mut layers = Metalayers::default();
        for i in 0..1000 {
            assert_eq!(layers.check_new(&name(i)), Ok(()));
            layers.push(Metalayer::new(&name(i), &[]).unwrap()).unwrap();
        }
        assert!((0..1000).all(|i| layers.find(&name(i)) == Ok(i)));
        (0..1000).step_by(3).rev().for_each(|i| layers.remove(i));
        let expected = |i: usize| if i % 3 == 0 { Err(NOT_FOUND) } else { Ok(i - i / 3 - 1) };
        assert!((0..1000).all(|i| layers.find(&name(i)) == expected(i)));
        layers.replace(5, Metalayer::new(&name(8), b"new").unwrap());
        assert_eq!(layers.copy(), Ok(layers.iter().cloned().collect()));
        (3..666).rev().for_each(|i| layers.remove(i));
        for i in 2000..2030 {
            layers.push(Metalayer::new(&name(i), &[]).unwrap()).unwrap();
            assert_eq!(layers.find(&name(i)), Ok(i - 1997));
        }
    }

    #[test]
    fn names_with_the_same_tag_are_told_apart() {
        let names = (0..1u32 << 16).map(|i| i.to_string().into_bytes());
        let same: Vec<_> = names.filter(|name| tag(name) == tag(b"0")).collect();
        assert!(same.len() > 1, "there are more names than tags");
        let layers: Metalayers = same.iter().skip(1).map(|name| Metalayer::new(name, &[]).unwrap()).collect();
        assert_eq!(layers.find(&same[0]), Err(NOT_FOUND));
        assert!(same.iter().skip(1).enumerate().all(|(i, name)| layers.find(name) == Ok(i)));
    }

    #[test]
    fn every_damaged_byte_gives_layers_or_an_error() {
        let bytes = sample();
        for at in 0x57..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xa0, 0xbf, 0xff] {
                let mut bad = bytes.clone();
                bad[at] = value;
                let _ = read(&bad, 0x57 + 4, MAX_METALAYERS);
            }
            assert!(read(&bytes[..at], 0x57 + 4, MAX_METALAYERS).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn absurd_lengths_are_rejected_not_wrapped() {
        for len in [1 << 28, i32::MAX, i32::MAX - 5, -1] {
            let mut bytes = sample();
            bytes[0x73..0x77].copy_from_slice(&i32::to_be_bytes(len));
            assert!(read(&bytes, 0x5b, MAX_METALAYERS).is_err(), "{len}");
        }
    }
}
