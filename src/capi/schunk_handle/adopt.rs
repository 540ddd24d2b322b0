//! What clients change in the metalayers that the struct shows: content, in place or in other memory from `malloc`,
//! names, and how many there are. The C library has no other copy of these, and writes them with the next header and
//! trailer.
//!
//! So whatever uses metalayers compares them first. Clients make such changes only while no other thread uses the
//! handle. What other handles of a frame changed meanwhile takes the place of theirs.

use std::ffi::c_char;
use std::ptr;
use std::slice;
use std::sync::Arc;

use super::SchunkHandle;
use super::layers::is_named;
use crate::capi::ptr::{handle_ref, in_bytes, invalid};
use crate::capi::types::blosc2_metalayer;
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::metalayers::{MAX_NAME, Metalayer, Metalayers};
use crate::format::nd_meta;
use crate::frame::Frame;
use crate::schunk::Schunk;

/// Which metalayers are about to be used.
#[derive(Clone, Copy)]
pub(crate) enum Used<'a> {
    /// All.
    All,
    /// Those of fixed length.
    Fixed,
    /// The variable-length one with this name, or the fact that there is none.
    Variable(&'a [u8]),
    /// As `Variable`, but not its content.
    Name(&'a [u8]),
}

/// With more variable-length metalayers than this, only the one that is asked for is compared with what the client
/// sees; the others are taken to be unchanged.
const MANY: usize = 64;

/// The slots that the client says are in use.
///
/// # Errors
///
/// `InvalidParam` if there are not as many.
fn in_use(slots: &[*mut blosc2_metalayer], count: impl TryInto<usize>) -> Result<&[*mut blosc2_metalayer]> {
    let slots = count.try_into().ok().and_then(|count| slots.get(..count));
    slots.ok_or(Error::new(ErrorKind::InvalidParam, "number of metalayers out of range"))
}

impl SchunkHandle {
    /// Takes over what the client changed in the metalayers that are about to be `used`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for what cannot be metalayers, or not those of a frame, which keep their place in the header.
    pub(crate) fn adopt_layers(&self, used: Used<'_>) -> Result<()> {
        self.look_at_layers(used, |_| Ok(()))
    }

    /// As [`look`](Self::look), after [`adopt_layers`](Self::adopt_layers).
    ///
    /// # Errors
    ///
    /// Those of either.
    pub(crate) fn look_at_layers<T>(
        &self,
        used: Used<'_>,
        operation: impl Fn(&Schunk) -> Result<T>,
    ) -> Result<T> {
        if let Some(own) = self.holder_of(used) {
            return self.look(|_| operation(&own.read_recursive()));
        }
        let found = self.look(|schunk| {
            let edited = self.has_edited(schunk, used)?;
            let result = if edited { Ok(None) } else { operation(schunk).map(Some) };
            // A view of a frame in memory changed them, or its base.
            if !self.shows_layers_as_of(schunk.change_tick()) {
                self.catch_up(schunk);
            }
            result
        })?;
        found.map_or_else(
            || {
                self.adopt_layers_into(&mut *self.write_lock()?)?;
                self.look(operation)
            },
            Ok,
        )
    }

    /// As [`adopt_layers`](Self::adopt_layers) for all of them.
    pub(super) fn adopt_layers_into(&self, schunk: &mut Schunk) -> Result<()> {
        if !self.has_edited(schunk, Used::All)? {
            return Ok(());
        }
        let (fixed, variable) = (schunk.metalayers(), schunk.vlmetalayers());
        let mut shown = self.shown.lock();
        let abi = self.abi();
        // SAFETY: `shown` is locked; the entries are null or layers, made here or by the client.
        unsafe {
            let new_fixed = read_layers(in_use(&(*abi).metalayers, (*abi).nmetalayers)?, &fixed)?;
            let new_variable = read_layers(in_use(&(*abi).vlmetalayers, (*abi).nvlmetalayers)?, &variable)?;
            let (nfixed, nvariable) = (new_fixed.len(), new_variable.len());
            let geometry = nd_meta::block_geometry(&new_fixed);
            schunk.adopt_layers(Arc::new(new_fixed), Arc::new(new_variable))?;
            shown.geometry = geometry;
            // What the client left out is the client's.
            forget(&mut (*abi).metalayers, nfixed..fixed.len());
            forget(&mut (*abi).vlmetalayers, nvariable..variable.len());
        }
        shown.forget_variable();
        Ok(())
    }

    /// Whether the struct shows other metalayers than those of `schunk`, if it was brought up to date since they
    /// changed.
    fn has_edited(&self, schunk: &Schunk, used: Used<'_>) -> Result<bool> {
        // The caller has the super-chunk. While that lasts, readers change what is shown only where the struct does not
        // show the metalayers of now, and then this has nothing to say, or where other processes can change the frame.
        let _shown = schunk.frame().is_some_and(Frame::is_on_disk).then(|| self.shown.lock());
        if self.layer_holder().is_some() || !self.shows_layers_as_of(schunk.change_tick()) {
            return Ok(false);
        }
        let abi = self.abi();
        // SAFETY: nobody changes the entries, as said above; they are null or layers, made here or by the client.
        unsafe {
            let fixed = in_use(&(*abi).metalayers, (*abi).nmetalayers)?;
            let variable = in_use(&(*abi).vlmetalayers, (*abi).nvlmetalayers)?;
            let same_fixed = || show_all(fixed, &schunk.metalayers());
            Ok(!match used {
                Used::Fixed => same_fixed(),
                Used::All => same_fixed() && show_all(variable, &schunk.vlmetalayers()),
                Used::Variable(name) => show_named(variable, &schunk.vlmetalayers(), name, shows),
                Used::Name(name) => show_named(variable, &schunk.vlmetalayers(), name, is_named),
            })
        }
    }
}

/// Whether the slots show just these layers.
///
/// # Safety
///
/// The slots are null or layers whose names are null or strings, and whose contents are null or readable.
unsafe fn show_all(slots: &[*mut blosc2_metalayer], layers: &Metalayers) -> bool {
    // SAFETY: the caller's promise.
    slots.len() == layers.len()
        && slots.iter().zip(&**layers).all(|(&slot, layer)| unsafe { shows(slot, layer) })
}

/// Whether the slots show the layer `name` as it is among these, as `shows` judges, or none where there is none.
///
/// # Safety
///
/// As for [`show_all`].
unsafe fn show_named(
    slots: &[*mut blosc2_metalayer],
    layers: &Metalayers,
    name: &[u8],
    shows: unsafe fn(*const blosc2_metalayer, &Metalayer) -> bool,
) -> bool {
    if slots.len() != layers.len() {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe {
        match layers.find(name) {
            Ok(number) => shows(slots[number], &layers[number]),
            Err(_) if layers.len() > MANY => true,
            Err(_) => slots.iter().zip(&**layers).all(|(&slot, layer)| is_named(slot, layer)),
        }
    }
}

/// Whether a slot shows this layer.
///
/// # Safety
///
/// As for [`show_all`].
unsafe fn shows(slot: *const blosc2_metalayer, layer: &Metalayer) -> bool {
    let content = &layer.content;
    // SAFETY: the caller's promise.
    unsafe {
        is_named(slot, layer)
            && usize::try_from((*slot).content_len) == Ok(content.len())
            && (content.is_empty() || !(*slot).content.is_null())
            && (content.is_empty() || slice::from_raw_parts((*slot).content, content.len()) == content)
    }
}

/// The layers in the slots; those that are as `known` are shared.
///
/// # Safety
///
/// As for [`show_all`].
///
/// # Errors
///
/// `InvalidParam` for null, names that are too long or not unique, and negative lengths; `MemoryAlloc`.
unsafe fn read_layers(slots: &[*mut blosc2_metalayer], known: &Metalayers) -> Result<Metalayers> {
    let mut layers = Metalayers::default();
    for (at, &slot) in slots.iter().enumerate() {
        // SAFETY: the caller's promise.
        let same = known.get(at).filter(|layer| unsafe { shows(slot, layer) });
        // SAFETY: the caller's promise.
        let layer = same.map_or_else(|| unsafe { read_layer(slot) }, |same| Ok(Arc::clone(same)))?;
        layers.check_new(&layer.name)?;
        layers.push(layer)?;
    }
    Ok(layers)
}

/// The layer in a slot.
///
/// # Safety
///
/// As for [`show_all`].
unsafe fn read_layer(slot: *const blosc2_metalayer) -> Result<Arc<Metalayer>> {
    // SAFETY: the caller's promise.
    unsafe {
        let shown = handle_ref(slot).map_err(invalid)?;
        let content = in_bytes(shown.content.cast(), shown.content_len).map_err(invalid)?;
        Metalayer::new(name_of(shown.name)?, content)
    }
}

/// The bytes of a name, of which no more are looked at than one can have.
///
/// # Safety
///
/// `name` is null or a string.
unsafe fn name_of<'a>(name: *const c_char) -> Result<&'a [u8]> {
    require(!name.is_null(), "metalayer without a name")?;
    // SAFETY: not null; a string by the caller's promise, of which no byte before this one was the NUL.
    let len = (0..=MAX_NAME).find(|&at| unsafe { name.add(at).read() } == 0);
    let len = len.ok_or(Error::new(ErrorKind::InvalidParam, "metalayer name too long"))?;
    // SAFETY: this many bytes come before the NUL.
    Ok(unsafe { slice::from_raw_parts(name.cast(), len) })
}

/// Empties slots without releasing what was in them.
fn forget(slots: &mut [*mut blosc2_metalayer], range: std::ops::Range<usize>) {
    if let Some(slots) = slots.get_mut(range) {
        slots.fill(ptr::null_mut());
    }
}
