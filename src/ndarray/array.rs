//! [`NdArray`]: a super-chunk with its geometry and coding parameters, for Rust programs.

#![forbid(unsafe_code)]

use super::select::{self, Selection};
use super::shape::{Geometry, Region, narrow, signed};
use super::write::{self, Items};
use super::{create, described, refreshed, resize, slice};
use crate::chunk::{CParams, Decoding, Encoding, Threads};
use crate::error::{Error, ErrorKind, Result, require};
use crate::format::consts::special;
use crate::format::geometry::{BlockGeometry, Container};
use crate::format::nd_meta::NdMeta;
use crate::frame::{Frame, FrameOptions};
use crate::io::dirs;
use crate::memory;
use crate::pool::{self, Pool};
use crate::schunk::{Reading, Schunk, Writing};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// Where a new array is kept.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// In memory, as a contiguous frame.
    Memory,
    /// In a new file, as a contiguous frame.
    File(&'a Path),
    /// In a new directory, as a sparse frame: each chunk is a file.
    Directory(&'a Path),
}

impl Place<'_> {
    fn path(&self) -> Option<&Path> {
        match self {
            Place::Memory => None,
            Place::File(path) | Place::Directory(path) => Some(path),
        }
    }
}

/// An array of items of one size, with the super-chunk that holds them.
///
/// Items are bytes here: what they mean is for the [`dtype`](Self::dtype) to tell, and to the caller to convert.
/// Buffers are in C order, so the last dimension changes fastest, and as long as the items that they are for, to the
/// byte.
///
/// Positions and shapes are in items, one number per dimension, slowest dimension first. A box reaches from `start`,
/// which is part of it, to `stop`, which is not, in each dimension.
///
/// After a failed change the array is as it was before. Only if more than about 64 MiB of compressed chunks were to be
/// written to a frame, in memory or on disk, the first of them may be there; the shape is the old one even then, unless
/// it cannot be written back.
///
/// # Arrays on disk
///
/// Other handles, in this process or another, may change the same array. [`get_slice`](Self::get_slice) and what
/// changes the array work on what is there when they are called; [`shape`](Self::shape) and
/// [`geometry`](Self::geometry) are as of the last change or [`refresh`](Self::refresh) through this handle.
///
/// ```
/// use blosc2::chunk::CParams;
/// use blosc2::ndarray::{Geometry, NdArray, Place};
///
/// // 100 rows of 200 numbers, in chunks of 50 by 60 items that consist of blocks of 10 by 20.
/// let geometry = Geometry::new(&[100, 200], &[50, 60], &[10, 20])?;
/// let params = CParams { typesize: 4, ..CParams::default() };
/// let mut array = NdArray::zeros(Place::Memory, geometry, "<i4", &params)?;
///
/// // Columns 7 to 9 of row 42.
/// let numbers: Vec<u8> = [1_i32, 2, 3].into_iter().flat_map(i32::to_le_bytes).collect();
/// array.set_slice(&[42, 7], &[43, 10], &numbers)?;
///
/// let mut row = vec![0; 200 * 4];
/// array.get_slice(&[42, 0], &[43, 200], &mut row)?;
/// assert_eq!(row[7 * 4..10 * 4], numbers);
///
/// array.append(0, &row)?;
/// assert_eq!(array.shape(), [101, 200]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub struct NdArray {
    schunk: Schunk,
    geometry: Geometry,
    /// The change tick of the super-chunk as of which the geometry is known.
    tick: u64,
    dtype: Option<Vec<u8>>,
    coding: Coding,
}

/// How the chunks of an array are compressed and decompressed.
struct Coding {
    params: CParams,
    /// What codecs and filters may ask about the array.
    container: Container,
    /// Threads to use; `None` for the caller's alone.
    pool: Option<Arc<Pool>>,
}

impl Coding {
    /// Chunks are made of the blocks of the array, whatever `params` say.
    fn new(params: CParams, geometry: &Geometry) -> Coding {
        let blockitems = usize::try_from(geometry.blocknitems()).unwrap_or(usize::MAX);
        let container = Container::Schunk {
            typesize: i32::try_from(params.typesize).unwrap_or(i32::MAX),
            geometry: BlockGeometry::new(&narrow(geometry.blockshape())),
        };
        let params = CParams { blocksize: blockitems.saturating_mul(params.typesize), ..params };
        Coding { params, container, pool: None }
    }

    /// Calls `work` with what reading and writing need.
    fn with<T>(&self, work: impl FnOnce(&Reading<'_>, &Writing<'_>) -> Result<T>) -> Result<T> {
        // In the child of a `fork` there are no threads of the pool.
        let pool = self.pool.as_ref().filter(|pool| !pool.is_stale());
        let threads = pool.map_or(Threads::default(), |pool| Threads::on(pool));
        let container = || self.container;
        let dec = Decoding { threads, container: Some(&container), ..Decoding::default() };
        let enc = Encoding { threads, container: Some(&container), ..Encoding::new(&self.params) };
        work(&Reading { dec, ..Reading::default() }, &Writing::new(enc))
    }
}

impl NdArray {
    /// A new array of zeros, whose chunks are compressed with `params` when something else is written to them.
    ///
    /// Items are of [`params.typesize`](CParams::typesize) bytes; `dtype` says what they are, in the notation of NumPy:
    /// `<f8` for little-endian doubles. It is stored, and has no other effect. The size of the blocks follows from the
    /// geometry, not from `params`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for parameters that make no sense or cannot be stored, `CodecParam` for a level above 9,
    /// `MaxBufsizeExceeded` for chunks of 2 GiB and more, `FileOpen` if there is something at the path or it cannot be
    /// made, `Failure` if there are too many chunks or they cannot be written. Nothing is left at the path then that
    /// was not there before.
    pub fn zeros(place: Place<'_>, geometry: Geometry, dtype: &str, params: &CParams) -> Result<NdArray> {
        NdArray::create(place, geometry, dtype, params, |schunk, geometry, writing| {
            create::fill_special(schunk, geometry, special::ZERO, writing.enc.params)
        })
    }

    /// A new array with the items in `items`; the rest is as for [`zeros`](Self::zeros).
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros), and `InvalidParam` if `items` is not as long as the items of the array.
    pub fn from_items(
        place: Place<'_>,
        geometry: Geometry,
        dtype: &str,
        params: &CParams,
        items: &[u8],
    ) -> Result<NdArray> {
        check_len(&Region::all(&geometry), params.typesize, items.len())?;
        NdArray::create(place, geometry, dtype, params, |schunk, geometry, writing| {
            create::fill_from_buffer(schunk, geometry, items, writing)
        })
    }

    fn create(
        place: Place<'_>,
        geometry: Geometry,
        dtype: &str,
        params: &CParams,
        fill: impl FnOnce(&mut Schunk, &Geometry, &Writing<'_>) -> Result<()>,
    ) -> Result<NdArray> {
        params.check()?;
        geometry.check_for_creation(params.typesize)?;
        create::check_count(&geometry, true)?;
        let coding = Coding::new(params.clone(), &geometry);
        let recorded = coding.params.to_frame()?;
        let options = FrameOptions::default();
        let frame = match place {
            Place::Memory => Frame::create_in_memory(recorded),
            Place::File(path) => Frame::create_file(path, recorded, &options),
            Place::Directory(path) => Frame::create_dir(path, recorded, &options),
        };
        let mut schunk = Schunk::over(frame?);
        let meta = NdMeta {
            shape: signed(geometry.shape()),
            chunkshape: narrow(geometry.chunkshape()),
            blockshape: narrow(geometry.blockshape()),
            dtype: Some(dtype.as_bytes().to_vec()),
            dtype_format: 0,
        };
        let filled = create::prepare(&mut schunk, &geometry, &meta, &[])
            .and_then(|()| coding.with(|_, writing| fill(&mut schunk, &geometry, writing)));
        if let Err(error) = filled {
            drop(schunk);
            // If that fails too, there is nothing better to report.
            let _ = place.path().map(dirs::remove_frame);
            return Err(error);
        }
        Ok(NdArray { tick: schunk.change_tick(), schunk, geometry, dtype: meta.dtype, coding })
    }

    /// Opens the array in the file or directory `path`.
    ///
    /// # Errors
    ///
    /// As [`Frame::open`] and [`from_schunk`](Self::from_schunk).
    pub fn open(path: &Path) -> Result<NdArray> {
        NdArray::from_schunk(Schunk::open(path, 0, &FrameOptions::default())?)
    }

    /// The array in `schunk`, which may be in memory, part of a file, locked, or on a back-end of its own. What is
    /// written to it is compressed as the super-chunk says.
    ///
    /// # Errors
    ///
    /// `MetalayerNotFound` if the super-chunk holds no array, `Failure` if its metalayer is damaged, `InvalidParam` if
    /// the values there make no sense.
    pub fn from_schunk(schunk: Schunk) -> Result<NdArray> {
        let (meta, geometry) = described(&schunk.metalayers())?;
        let coding = Coding::new(CParams::from(&schunk.params()), &geometry);
        Ok(NdArray { tick: schunk.change_tick(), schunk, geometry, dtype: meta.dtype, coding })
    }

    /// Has up to `nthreads` threads compress and decompress, the calling one included; 0 counts as 1, which is the
    /// default.
    ///
    /// They are shared by all that use as many. In the child of a `fork` they are gone until this is called again.
    pub fn set_nthreads(&mut self, nthreads: usize) {
        self.coding.pool = (nthreads > 1).then(|| pool::attach(nthreads));
    }

    /// The super-chunk, with the metalayers of the application.
    #[must_use]
    pub fn schunk(&self) -> &Schunk {
        &self.schunk
    }

    /// See [`schunk`](Self::schunk). Who changes its chunks changes the items.
    pub fn schunk_mut(&mut self) -> &mut Schunk {
        &mut self.schunk
    }

    /// The super-chunk alone.
    #[must_use]
    pub fn into_schunk(self) -> Schunk {
        self.schunk
    }

    /// The shapes of the array, its chunks and its blocks.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Items in each dimension.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        self.geometry.shape()
    }

    /// Bytes per item.
    #[must_use]
    pub fn typesize(&self) -> usize {
        self.schunk.typesize()
    }

    /// What the items are, as whoever made the array said, by default in the notation of NumPy. Any bytes; `None` in
    /// older files.
    #[must_use]
    pub fn dtype(&self) -> Option<&[u8]> {
        self.dtype.as_deref()
    }

    /// Takes over the shape that others gave the array; returns whether it is another one.
    ///
    /// # Errors
    ///
    /// `Lock`, those of a damaged frame, `Data` if chunks or blocks have another shape than they had.
    pub fn refresh(&mut self) -> Result<bool> {
        let (fresh, tick) = self.current()?;
        let fresh = fresh.into_owned();
        let is_new = fresh != self.geometry;
        (self.geometry, self.tick) = (fresh, tick);
        Ok(is_new)
    }

    /// The geometry as of now, and the change tick as of which it is known.
    fn current(&self) -> Result<(Cow<'_, Geometry>, u64)> {
        let known = Cow::Borrowed(&self.geometry);
        self.schunk.refresh()?;
        let tick = self.schunk.change_tick();
        if tick == self.tick {
            return Ok((known, tick));
        }
        Ok((refreshed(&self.schunk, &self.geometry)?.map_or(known, Cow::Owned), tick))
    }

    /// Copies the box from `start` to `stop` to `dest`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the box is not one of the array or `dest` has another length than its items; `Failure` if
    /// chunks cannot be read: `dest` is all zeros then. Those of [`refresh`](Self::refresh).
    pub fn get_slice(&self, start: &[u64], stop: &[u64], dest: &mut [u8]) -> Result<()> {
        let (geometry, tick) = self.current()?;
        let region = box_of(&geometry, start, stop)?;
        check_len(&region, self.typesize(), dest.len())?;
        self.read(&geometry, tick, &region, dest)
    }

    /// Copies `region` of the array, which had this geometry as of `tick`, to all of `dest`.
    fn read(&self, geometry: &Geometry, tick: u64, region: &Region, dest: &mut [u8]) -> Result<()> {
        if region.is_empty() {
            return Ok(());
        }
        let shape = &region.extents()[..geometry.ndim()];
        self.coding.with(|reading, _| {
            let reading = Reading { as_of: Some(tick), ..*reading };
            slice::read(&self.schunk, geometry, region, dest, shape, &reading)
        })
    }

    /// All items.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`, and those of [`get_slice`](Self::get_slice).
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        let (geometry, tick) = self.current()?;
        let region = Region::all(&geometry);
        let len = region.len().checked_mul(self.typesize());
        let mut items = memory::zeroed(len.ok_or_else(memory::no_memory)?)?;
        self.read(&geometry, tick, &region, &mut items)?;
        Ok(items)
    }

    /// Copies the items whose index in each dimension is in the list for it to `dest`: in the order of the lists, in
    /// which indices may occur more than once.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for another number of lists than dimensions, or none, and if `dest` has another length than the
    /// items; `InvalidIndex` for indices outside of the array, `Failure` if chunks cannot be read. Those of
    /// [`refresh`](Self::refresh).
    pub fn get_selection(&self, lists: &[&[i64]], dest: &mut [u8]) -> Result<()> {
        let (geometry, tick) = self.current()?;
        let selection = Selection::new(&geometry, lists)?;
        let shape: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect(); // widening
        let len = lists.iter().try_fold(self.typesize(), |n, list| n.checked_mul(list.len()));
        require(len == Some(dest.len()), "buffer of another size than the selection")?;
        self.coding.with(|reading, _| {
            let reading = Reading { as_of: Some(tick), ..*reading };
            select::read(&self.schunk, &geometry, &selection, dest, &shape, &reading)
        })
    }

    /// Gives the box from `start` to `stop` the items in `src`. Only blocks that change are compressed again.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if the box is not one of the array or `src` has another length than its items; `Failure` if
    /// chunks cannot be read, compressed or written. Those of [`refresh`](Self::refresh).
    pub fn set_slice(&mut self, start: &[u64], stop: &[u64], src: &[u8]) -> Result<()> {
        let _held = self.schunk.exclusive()?;
        self.refresh()?;
        let region = box_of(&self.geometry, start, stop)?;
        check_len(&region, self.typesize(), src.len())?;
        if region.is_empty() {
            return Ok(());
        }
        let src = Items { bytes: src, shape: &region.extents()[..self.geometry.ndim()] };
        let (schunk, geometry) = (&mut self.schunk, &self.geometry);
        self.coding.with(|reading, writing| write::write(schunk, geometry, &region, src, reading, writing))
    }

    /// Adds the items in `src` at the end of dimension `axis`. In the other dimensions they are as many as the array
    /// has; how many they are along `axis` follows from the length of `src`.
    ///
    /// # Errors
    ///
    /// `InvalidParam` if there is no such dimension, `src` does not consist of whole slabs, or another dimension is
    /// empty; `Failure` if chunks cannot be read, compressed or written. Those of [`refresh`](Self::refresh).
    pub fn append(&mut self, axis: usize, src: &[u8]) -> Result<()> {
        self.reshape(|schunk, geometry, reading, writing| {
            require(axis < geometry.ndim(), "no such dimension")?;
            let insertion = resize::Insertion { axis, at: signed(geometry.shape())[axis] };
            resize::insert(schunk, geometry, src, insertion, reading, writing)
        })
    }

    /// As [`append`](Self::append), before item `at` of the dimension, by whole chunks: unless it is the end, `at` and
    /// the number of new items are multiples of a chunk's.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append); `InvalidParam` also where other items than those of whole chunks would move.
    pub fn insert(&mut self, axis: usize, at: u64, src: &[u8]) -> Result<()> {
        let at = position(at)?;
        self.reshape(|schunk, geometry, reading, writing| {
            let insertion = resize::Insertion { axis, at };
            resize::insert(schunk, geometry, src, insertion, reading, writing)
        })
    }

    /// Removes `count` items from item `at` of dimension `axis` on, by whole chunks as in [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), and `InvalidParam` if there are not as many items.
    pub fn delete(&mut self, axis: usize, at: u64, count: u64) -> Result<()> {
        let (at, count) = (position(at)?, position(count)?);
        self.reshape(|schunk, geometry, _, writing| {
            resize::delete(schunk, geometry, axis, at, count, writing.enc.params)
        })
    }

    /// Gives the array another shape, of as many dimensions.
    ///
    /// Items in new chunks are zeros. Those that come in chunks which were there already are what the padding of these
    /// chunks holds: what was there before the array was made smaller, the value that it was filled with, or zeros.
    ///
    /// # Errors
    ///
    /// `InvalidParam` for another number of dimensions or too many items, `Failure` if chunks cannot be written. Those
    /// of [`refresh`](Self::refresh).
    pub fn resize(&mut self, shape: &[u64]) -> Result<()> {
        let too_large = shape.iter().any(|&extent| i64::try_from(extent).is_err());
        require(!too_large, "extent too large")?;
        self.reshape(|schunk, geometry, _, writing| {
            resize::resize(schunk, geometry, &signed(shape), None, writing.enc.params)
        })
    }

    /// Gives the array the geometry that `operation` returns.
    fn reshape(
        &mut self,
        operation: impl FnOnce(&mut Schunk, &Geometry, &Reading<'_>, &Writing<'_>) -> Result<Geometry>,
    ) -> Result<()> {
        let _held = self.schunk.exclusive()?;
        self.refresh()?;
        let (schunk, geometry) = (&mut self.schunk, &self.geometry);
        let reshaped = self.coding.with(|reading, writing| operation(schunk, geometry, reading, writing));
        // After a failure that could not be taken back, the array has another shape, too.
        self.tick = u64::MAX;
        self.geometry = reshaped?;
        self.tick = self.schunk.change_tick();
        Ok(())
    }
}

impl std::fmt::Debug for NdArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NdArray")
            .field("shape", &self.shape())
            .field("chunkshape", &self.geometry.chunkshape())
            .field("blockshape", &self.geometry.blockshape())
            .field("dtype", &self.dtype().map(String::from_utf8_lossy))
            .field("schunk", &self.schunk)
            .finish_non_exhaustive()
    }
}

/// The box from `start` to `stop`, if the array has it.
fn box_of(geometry: &Geometry, start: &[u64], stop: &[u64]) -> Result<Region> {
    let ndim = geometry.ndim();
    require(start.len() == ndim && stop.len() == ndim, "wrong number of dimensions")?;
    let is_inside = (0..ndim).all(|i| start[i] <= stop[i] && stop[i] <= geometry.shape()[i]);
    require(is_inside, "box outside of the array")?;
    Ok(Region::new(start, stop))
}

/// A position or a number of items as the formats hold it.
fn position(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| Error::new(ErrorKind::InvalidParam, "position outside of the array"))
}

/// Fails unless `len` is the number of bytes of the items in `region`.
fn check_len(region: &Region, typesize: usize, len: usize) -> Result<()> {
    let needed = region.len().checked_mul(typesize);
    require(needed == Some(len), "buffer of another size than the box")
}
