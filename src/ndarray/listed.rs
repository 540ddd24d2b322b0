//! Which chunks hold a box of an array.

#![forbid(unsafe_code)]

use crate::error::{Error, ErrorKind, Result};
use crate::format::nd_meta::NdMeta;
use crate::memory;

/// Longer lists of chunk numbers are not made.
pub(crate) const MAX_LISTED_CHUNKS: u64 = 1 << 31;

/// The numbers of the chunks that hold the box from `start` to `stop` (excluded) of the array that `meta` describes,
/// ascending; `None` for arrays without items.
///
/// # Errors
///
/// `InvalidParam` for a box that starts before the array or ends before it starts, and for more chunks than are listed;
/// `MemoryAlloc`, since callers may ask for more than there is memory.
pub(crate) fn chunks_of_box(meta: &NdMeta, start: &[i64], stop: &[i64]) -> Result<Option<Vec<i64>>> {
    if meta.shape.contains(&0) {
        return Ok(None);
    }
    let invalid = Error::new(ErrorKind::InvalidParam, "box out of range");
    let mut numbers = vec![0i64];
    for (dim, (&extent, &chunk)) in meta.shape.iter().zip(&meta.chunkshape).enumerate() {
        let chunk = i64::from(chunk);
        let (from, to) = (start[dim], stop[dim].min(extent));
        if extent <= 0 || chunk <= 0 || from < 0 || from > stop[dim] {
            return Err(invalid);
        }
        let count = (extent - 1) / chunk + 1;
        // No chunk holds a box that starts past the items, or an empty one that starts on a chunk border; an empty one
        // inside a chunk is held by that chunk.
        let (first, end) =
            if from >= extent || to <= 0 { (0, 0) } else { (from / chunk, (to - 1) / chunk + 1) };
        let along = u64::try_from(end - first).unwrap_or(0);
        let total = along.saturating_mul(numbers.len() as u64); // widening
        if total > MAX_LISTED_CHUNKS {
            return Err(invalid);
        }
        let mut next = memory::with_capacity(usize::try_from(total).map_err(|_| memory::no_memory())?)?;
        for &number in &numbers {
            let base = number.checked_mul(count).ok_or(invalid)?;
            next.extend((first..end).map(|at| base.saturating_add(at)));
        }
        numbers = next;
    }
    Ok(Some(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> NdMeta {
        NdMeta {
            shape: vec![6, 7],
            chunkshape: vec![2, 3],
            blockshape: vec![1, 1],
            dtype: None,
            dtype_format: 0,
        }
    }

    #[test]
    fn boxes_are_held_by_these_chunks() {
        let chunks =
            |start: [i64; 2], stop: [i64; 2]| chunks_of_box(&meta(), &start, &stop).unwrap().unwrap();
        assert_eq!(chunks([1, 2], [5, 4]), [0, 1, 3, 4, 6, 7]);
        assert_eq!(chunks([1, 2], [1, 4]), [0, 1]);
        assert_eq!(chunks([2, 2], [2, 4]), [] as [i64; 0]);
        assert_eq!(chunks([0, 7], [6, 7]), [] as [i64; 0]);
        assert_eq!(chunks([6, 0], [9, 1]), [] as [i64; 0]);
        assert_eq!(chunks([0, 0], [600, 700]), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        for (start, stop) in [([-1, 0], [2, 2]), ([3, 0], [2, 2]), ([0, 9], [2, 8])] {
            assert_eq!(chunks_of_box(&meta(), &start, &stop).unwrap_err().kind(), ErrorKind::InvalidParam);
        }
        assert_eq!(chunks_of_box(&NdMeta { shape: vec![6, 0], ..meta() }, &[0, 0], &[1, 1]), Ok(None));
    }

    #[test]
    fn more_chunks_than_there_are_numbers_are_refused() {
        let shape = vec![1 << 16, 1 << 48];
        let huge = NdMeta { shape: shape.clone(), chunkshape: vec![1, 1], ..meta() };
        assert_eq!(chunks_of_box(&huge, &[0, 0], &shape).unwrap_err().kind(), ErrorKind::InvalidParam);
    }
}
