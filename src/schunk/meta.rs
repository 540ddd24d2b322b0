//! Metalayers of a super-chunk.

#![forbid(unsafe_code)]

use super::list::List;
use super::{Backing, Schunk};
use crate::chunk::{self, CParams, Decoding, Encoding};
use crate::error::{Error, ErrorKind, Result, ensure, require};
use crate::format::chunk_header::ChunkHeader;
use crate::format::consts::{MAX_BUFFERSIZE, special};
use crate::format::metalayers::{
    MAX_METALAYERS, MAX_VLMETALAYERS, Metalayer, Metalayers, changeable, check_name,
};
use crate::memory::{self, zeroed};
#[cfg(feature = "capi")]
use std::sync::Arc;

/// The content of a variable-length metalayer as it is stored, compressed with `params` or the defaults.
///
/// # Errors
///
/// As [`compress_by`].
pub(super) fn compress(content: &[u8], params: Option<&CParams>) -> Result<Vec<u8>> {
    let default = CParams::default();
    let enc = Encoding::new(params.unwrap_or(&default));
    compress_by(content, |content, chunk| Ok(chunk::compress_with(&enc, content, chunk)?.cbytes))
}

/// The content of a variable-length metalayer as it is stored: one chunk, which `compress` makes where it is told to,
/// and whose size it returns.
///
/// # Errors
///
/// `InvalidParam` if there is too much, `Failure` if the chunk does not fit in the room for any; those of `compress`.
pub(crate) fn compress_by(
    content: &[u8],
    compress: impl FnOnce(chunk::Source<'_>, &mut [u8]) -> Result<usize>,
) -> Result<Vec<u8>> {
    require(content.len() <= MAX_BUFFERSIZE, "metalayer too large")?;
    let mut chunk: Vec<u8> = zeroed(chunk::room_for(content.len()))?;
    let cbytes = compress(chunk::Source::Bytes(content), &mut chunk)?;
    ensure(cbytes > 0, ErrorKind::Failure, "metalayer cannot be compressed")?;
    // It stays in memory, so it takes no more than it needs.
    memory::copy_of(&chunk[..cbytes])
}

/// Content larger than this, in bytes, must not be a repeated value: nobody writes such metalayers, and a few bytes
/// would ask for gigabytes.
const LARGE: usize = 64 << 20;

/// The content of a variable-length metalayer from its chunk.
///
/// # Errors
///
/// `Data` if it is not exactly one chunk, `ReadBuffer` if it does not decompress.
pub(crate) fn decompress(stored: &[u8]) -> Result<Vec<u8>> {
    decompress_into(&Decoding::default(), stored, zeroed)
}

/// Whether the content, by its header, is all zeros, or so much larger than the whole chunk `stored` that it should not
/// be decompressed for nothing but to be compressed again.
pub(super) fn is_bomb(stored: &[u8]) -> bool {
    /// More than encoders make of texts and numbers, even if they are all the same.
    const RATIO: usize = 1 << 10;
    /// What is smaller, in bytes, does not matter.
    const SMALL: usize = 1 << 20;
    ChunkHeader::read(stored).is_ok_and(|header| {
        let is_large = header.nbytes > SMALL && header.nbytes / RATIO > stored.len();
        header.cbytes == stored.len() && (is_large || header.special() == special::ZERO)
    })
}

/// The content of a variable-length metalayer from its chunk `stored`, compressed with `params`. One that should not be
/// decompressed for that stays as it is.
///
/// # Errors
///
/// As [`decompress`] and [`compress`].
pub(crate) fn compressed_again(stored: &[u8], params: &CParams) -> Result<Vec<u8>> {
    if is_bomb(stored) { memory::copy_of(stored) } else { compress(&decompress(stored)?, Some(params)) }
}

/// As [`decompress`], into memory from `make`: as many zeros as it is asked for. Postfilters are for chunks of data.
fn decompress_into<D: AsMut<[u8]>>(
    dec: &Decoding<'_>,
    stored: &[u8],
    make: impl FnOnce(usize) -> Result<D>,
) -> Result<D> {
    let header = ChunkHeader::read(stored).map_err(|e| Error::new(ErrorKind::Data, e.what()))?;
    ensure(header.cbytes == stored.len(), ErrorKind::Data, "metalayer of another size than its chunk")?;
    let repeats = matches!(header.special(), special::NAN | special::VALUE);
    ensure(!repeats || header.nbytes <= LARGE, ErrorKind::Data, "metalayer much larger than its chunk")?;
    let mut content = make(header.nbytes)?;
    if header.special() != special::ZERO {
        let dec = Decoding { postfilter: None, ..*dec };
        let n = chunk::decompress_with(&dec, stored, None, content.as_mut());
        ensure(n == Ok(header.nbytes), ErrorKind::ReadBuffer, "metalayer does not decompress")?;
    }
    Ok(content)
}

/// A change of one metalayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerChange {
    /// The fixed layer with this number is new, or its content is.
    Fixed(usize),
    /// The variable-length layer with this number is new, or its content is.
    Variable(usize),
    /// The variable-length layer with this number was removed; those after it moved up.
    Removed(usize),
}

impl List {
    /// Counts a change of a metalayer.
    pub(super) fn note(&mut self, change: LayerChange) {
        self.last_change = Some((self.tick, change));
        self.tick += 1;
    }
}

impl Schunk {
    /// The only change to the metalayers since [`change_tick`](Self::change_tick) was `tick`, if there was exactly one
    /// and it is known: of thousands of layers, only that one need be looked at then. With it come the fixed and the
    /// variable-length layers.
    pub(crate) fn layer_change_since(&self, tick: u64) -> Option<(LayerChange, &Metalayers, &Metalayers)> {
        let Backing::List(list) = &self.backing else { return None };
        let (before, change) = list.last_change?;
        let alone = before == tick && list.tick == tick + 1;
        alone.then_some((change, &list.metalayers, &list.vlmetalayers))
    }

    /// Puts `fixed` and `variable` in the place of the metalayers, as if these had been there all along: no change is
    /// counted, and a frame holds them from its next change on.
    ///
    /// # Errors
    ///
    /// As [`Frame::adopt_layers`](crate::frame::Frame::adopt_layers).
    #[cfg(feature = "capi")]
    pub(crate) fn adopt_layers(&mut self, fixed: Arc<Metalayers>, variable: Arc<Metalayers>) -> Result<()> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.adopt_layers(fixed, variable),
            Backing::List(list) => {
                (list.metalayers, list.vlmetalayers) = (fixed, variable);
                Ok(())
            }
        }
    }

    /// Adds a fixed metalayer; returns its number.
    ///
    /// # Errors
    ///
    /// As [`Frame::meta_add`](crate::frame::Frame::meta_add); without a frame there may be chunks already.
    pub fn meta_add(&mut self, name: &[u8], content: &[u8]) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.meta_add(name, content),
            Backing::List(list) => {
                check_name(name)?;
                list.metalayers.check_new(name)?;
                require(list.metalayers.len() < MAX_METALAYERS, "too many metalayers")?;
                require(i32::try_from(content.len()).is_ok(), "metalayer too large")?;
                changeable(&mut list.metalayers)?.push(Metalayer::new(name, content)?)?;
                let number = list.metalayers.len() - 1;
                list.note(LayerChange::Fixed(number));
                Ok(number)
            }
        }
    }

    /// Overwrites the start of a fixed metalayer; returns its number. Longer content is not written.
    ///
    /// # Errors
    ///
    /// As [`Frame::meta_update`](crate::frame::Frame::meta_update).
    pub fn meta_update(&mut self, name: &[u8], content: &[u8]) -> Result<usize> {
        self.meta_update_ticks(name, content, 1)
    }

    /// As [`meta_update`](Self::meta_update), and counts as this many changes, at least 1.
    pub(crate) fn meta_update_ticks(&mut self, name: &[u8], content: &[u8], ticks: u64) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.meta_update_ticks(name, content, ticks),
            Backing::List(list) => {
                check_name(name)?;
                let number = list.metalayers.find(name)?;
                if changeable(&mut list.metalayers)?.overwrite(number, content)? {
                    list.note(LayerChange::Fixed(number));
                    list.tick += ticks - 1;
                }
                Ok(number)
            }
        }
    }

    /// Number of the fixed metalayer `name`.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidParam` for a name that is too long.
    pub fn meta_find(&self, name: &[u8]) -> Result<usize> {
        check_name(name)?;
        match &self.backing {
            Backing::Frame(frame) => frame.metalayers().find(name),
            Backing::List(list) => list.metalayers.find(name),
        }
    }

    /// Number of the variable-length metalayer `name`.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidParam` for a name that is too long, `Lock`.
    pub fn vlmeta_find(&self, name: &[u8]) -> Result<usize> {
        match &self.backing {
            Backing::Frame(frame) => frame.vlmeta_find(name),
            Backing::List(list) => {
                check_name(name)?;
                list.vlmetalayers.find(name)
            }
        }
    }

    /// Whether there is a variable-length metalayer `name`. What other handles changed in the frame is looked at only
    /// if that is not as `expected`: it is looked at again with the change that this is asked for.
    ///
    /// # Errors
    ///
    /// As [`vlmeta_find`](Self::vlmeta_find).
    #[cfg(feature = "capi")]
    pub(crate) fn has_vlmeta(&self, name: &[u8], expected: bool) -> Result<bool> {
        check_name(name)?;
        if self.vlmetalayers().find(name).is_ok() == expected {
            return Ok(expected);
        }
        match self.vlmeta_find(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// Number and content of the variable-length metalayer `name`.
    ///
    /// # Errors
    ///
    /// As [`vlmeta_find`](Self::vlmeta_find); `Data` or `ReadBuffer` if the content is damaged.
    pub fn vlmeta_get(&self, name: &[u8]) -> Result<(usize, Vec<u8>)> {
        self.vlmeta_get_into(name, &Decoding::default(), zeroed)
    }

    /// As [`vlmeta_get`](Self::vlmeta_get), with the content in memory from `make`, which gets its length in bytes and
    /// gives as many zeros.
    ///
    /// # Errors
    ///
    /// As [`vlmeta_get`](Self::vlmeta_get), and those of `make`.
    pub fn vlmeta_get_into<D: AsMut<[u8]>>(
        &self,
        name: &[u8],
        dec: &Decoding<'_>,
        make: impl FnOnce(usize) -> Result<D>,
    ) -> Result<(usize, D)> {
        let content_of = |layers: &Metalayers| {
            let number = layers.find(name)?;
            Ok((number, decompress_into(dec, &layers[number].content, make)?))
        };
        match &self.backing {
            Backing::Frame(frame) => {
                frame.vlmeta_find(name)?;
                content_of(&frame.vlmetalayers())
            }
            Backing::List(list) => {
                check_name(name)?;
                content_of(&list.vlmetalayers)
            }
        }
    }

    /// Adds a variable-length metalayer, compressed with `params` or the defaults; returns its number.
    ///
    /// # Errors
    ///
    /// As [`Frame::vlmeta_add`](crate::frame::Frame::vlmeta_add), and those of compressing.
    pub fn vlmeta_add(&mut self, name: &[u8], content: &[u8], params: Option<&CParams>) -> Result<usize> {
        check_name(name)?;
        self.vlmeta_add_stored(name, compress(content, params)?)
    }

    /// Adds a variable-length metalayer whose content, `content`, is a chunk already.
    pub(crate) fn vlmeta_add_stored(&mut self, name: &[u8], content: Vec<u8>) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.vlmeta_add(name, content),
            Backing::List(list) => {
                list.vlmetalayers.check_new(name)?;
                let has_room = list.vlmetalayers.len() < MAX_VLMETALAYERS;
                require(has_room, "too many metalayers")?;
                changeable(&mut list.vlmetalayers)?.push(Metalayer::with_content(name, content)?)?;
                let number = list.vlmetalayers.len() - 1;
                list.note(LayerChange::Variable(number));
                Ok(number)
            }
        }
    }

    /// As [`vlmeta_add_stored`](Self::vlmeta_add_stored); a frame gets it with its next change.
    pub(super) fn vlmeta_add_later(&mut self, name: &[u8], content: Vec<u8>) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.vlmeta_add_later(name, content),
            Backing::List(_) => self.vlmeta_add_stored(name, content),
        }
    }

    /// Replaces the content of a variable-length metalayer; returns its number.
    ///
    /// # Errors
    ///
    /// As [`Frame::vlmeta_update`](crate::frame::Frame::vlmeta_update), and those of compressing.
    pub fn vlmeta_update(&mut self, name: &[u8], content: &[u8], params: Option<&CParams>) -> Result<usize> {
        check_name(name)?;
        self.vlmeta_update_stored(name, compress(content, params)?)
    }

    /// Replaces the content of a variable-length metalayer by `content`, which is a chunk already.
    pub(crate) fn vlmeta_update_stored(&mut self, name: &[u8], content: Vec<u8>) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.vlmeta_update(name, content),
            Backing::List(list) => {
                let number = list.vlmetalayers.find(name)?;
                let layer = Metalayer::with_content(name, content)?;
                changeable(&mut list.vlmetalayers)?.replace(number, layer);
                list.note(LayerChange::Variable(number));
                Ok(number)
            }
        }
    }

    /// Deletes a variable-length metalayer; returns the number of those left.
    ///
    /// # Errors
    ///
    /// As [`Frame::vlmeta_delete`](crate::frame::Frame::vlmeta_delete).
    pub fn vlmeta_delete(&mut self, name: &[u8]) -> Result<usize> {
        match &mut self.backing {
            Backing::Frame(frame) => frame.vlmeta_delete(name),
            Backing::List(list) => {
                check_name(name)?;
                let number = list.vlmetalayers.find(name)?;
                changeable(&mut list.vlmetalayers)?.remove(number);
                list.note(LayerChange::Removed(number));
                Ok(list.vlmetalayers.len())
            }
        }
    }
}
