//! Dictionaries: made for a chunk when compressing. Their stored form is an `i32` size and the bytes, right after the
//! table of block starts.

#![forbid(unsafe_code)]

use crate::codecs::state::{EncodeDict, StreamCodec};
use crate::codecs::zstd;
use crate::error::Result;
use crate::format::consts::{MAX_DICTSIZE, MIN_USEFUL_DICT};
use crate::memory::{copy_of, filled};

/// Fewest samples that Zstandard's training gets.
const MIN_SAMPLES: usize = 8;
/// One part in this many of each stream becomes a sample.
const SAMPLE_SHARE: usize = 16;

/// What a dictionary is made from.
pub(super) struct Plan {
    /// Largest size of the dictionary, in bytes.
    maxsize: usize,
    /// Sizes of the samples, which lie one after another in the training data.
    samples: Vec<usize>,
}

impl Plan {
    /// The plan for a chunk of `nbytes` bytes in `nstreams` streams; `None` if a dictionary is not worth it.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn for_blocks(nbytes: usize, nstreams: usize) -> Result<Option<Plan>> {
        let nsamples = nstreams.max(MIN_SAMPLES);
        let sample = nbytes / nsamples / SAMPLE_SHARE;
        let Some(maxsize) = Self::maxsize(nbytes, sample) else { return Ok(None) };
        Ok(Some(Plan { maxsize, samples: filled(sample, nsamples)? }))
    }

    /// The plan for a chunk of variable-length blocks; `sizes` are those of the blocks.
    pub(super) fn for_vl_blocks(sizes: Vec<usize>) -> Option<Plan> {
        let nbytes: usize = sizes.iter().sum();
        if sizes.len() < MIN_SAMPLES {
            return None;
        }
        let maxsize = Self::maxsize(nbytes, nbytes / sizes.len() / SAMPLE_SHARE)?;
        Some(Plan { maxsize, samples: sizes })
    }

    /// The largest size of a dictionary for `nbytes` bytes, of which parts of `sample` bytes are samples; `None` if it
    /// is not worth it.
    fn maxsize(nbytes: usize, sample: usize) -> Option<usize> {
        let maxsize = MAX_DICTSIZE.min(nbytes / 20);
        (maxsize >= MIN_USEFUL_DICT && sample > 0).then_some(maxsize)
    }

    /// How many bytes of filtered data the dictionary is made from.
    pub(super) fn wanted(&self, codec: &StreamCodec) -> usize {
        let total = self.samples.iter().sum();
        if matches!(codec, StreamCodec::Zstd) { total } else { self.maxsize.min(total) }
    }

    /// Makes the dictionary from the first [`wanted`](Self::wanted) bytes of filtered data; `data` may hold more.
    /// `None` if nothing useful is found.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(super) fn build(
        &self,
        codec: &StreamCodec,
        clevel: u8,
        data: &[u8],
    ) -> Result<Option<(Vec<u8>, EncodeDict)>> {
        let Some(data) = data.get(..self.wanted(codec)) else { return Ok(None) };
        let bytes = match codec {
            StreamCodec::Zstd => zstd::train_dict(data, &self.samples, self.maxsize)?,
            _ => Some(copy_of(data)?),
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let digested = EncodeDict::new(codec, clevel, &bytes)?;
        Ok(digested.map(|digested| (bytes, digested)))
    }
}
