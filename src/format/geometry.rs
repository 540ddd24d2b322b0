//! What codecs and filters for n-dimensional data know of the container that a chunk belongs to.

/// The most dimensions that an array may have.
pub const MAX_DIM: usize = 16;

/// The shape of one block, from the n-d metalayer of a super-chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockGeometry {
    ndim: usize,
    blockshape: [i32; MAX_DIM],
}

impl BlockGeometry {
    /// A block of shape `blockshape` (items per dimension, slowest first), or `None` above [`MAX_DIM`] dimensions.
    ///
    /// The extents are as stored: a hostile metalayer may hold zero or negative ones, so whoever computes with them
    /// checks them first.
    #[must_use]
    pub fn new(blockshape: &[i32]) -> Option<BlockGeometry> {
        let mut own = [0; MAX_DIM];
        own.get_mut(..blockshape.len())?.copy_from_slice(blockshape);
        Some(BlockGeometry { ndim: blockshape.len(), blockshape: own })
    }

    /// Items per dimension, slowest dimension first.
    #[must_use]
    pub fn blockshape(&self) -> &[i32] {
        &self.blockshape[..self.ndim]
    }

    /// Product of the extents if each is at least 1 and the product fits in an `i64`.
    #[must_use]
    pub fn nitems(&self) -> Option<i64> {
        self.blockshape()
            .iter()
            .try_fold(1i64, |n, &extent| if extent < 1 { None } else { n.checked_mul(i64::from(extent)) })
    }
}

/// The super-chunk around a chunk, as far as codecs and filters ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Container {
    /// The chunk stands alone.
    #[default]
    None,
    /// The chunk belongs to a super-chunk.
    Schunk {
        /// Bytes per item of the super-chunk.
        typesize: i32,
        /// The block shape; `None` without a readable n-d metalayer.
        geometry: Option<BlockGeometry>,
    },
}

impl Container {
    /// Bytes per item of the super-chunk, as stored; `None` if the chunk stands alone.
    #[must_use]
    #[inline]
    pub fn typesize(&self) -> Option<i32> {
        match *self {
            Container::None => None,
            Container::Schunk { typesize, .. } => Some(typesize),
        }
    }

    /// The block shape; `None` if the chunk stands alone, or without a readable n-d metalayer.
    #[must_use]
    #[inline]
    pub fn geometry(&self) -> Option<&BlockGeometry> {
        match self {
            Container::None => None,
            Container::Schunk { geometry, .. } => geometry.as_ref(),
        }
    }
}
