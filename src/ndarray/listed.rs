//! Which chunks hold a box of an array.

#![forbid(unsafe_code)]

use crate::error::{Error, ErrorKind, Result, ensure};
use crate::format::nd_meta::NdMeta;
use crate::memory;

/// Longer lists of chunk numbers are not made.
pub(crate) const MAX_LISTED_CHUNKS: u64 = 1 << 31;

/// Lists of up to this length are made even if the super-chunk has fewer chunks.
const SHORT: u64 = 1 << 16;

/// The numbers of the chunks that hold the box from `start` to `stop` (excluded) of the array that `meta` describes,
/// ascending; `None` for arrays without items.
///
/// # Errors
///
/// `InvalidParam` for a box that starts before the array or ends before it starts, and for many more chunks than the
/// `nchunks` that there are, as only a damaged array can ask for; `MemoryAlloc`.
pub(crate) fn chunks_of_box(
    meta: &NdMeta,
    nchunks: usize,
    start: &[i64],
    stop: &[i64],
) -> Result<Option<Vec<i64>>> {
    if meta.shape.contains(&0) {
        return Ok(None);
    }
    let invalid = Error::new(ErrorKind::InvalidParam, "box out of range");
    let mut total = 1u64;
    let mut ranges = Vec::new();
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
        total = total.saturating_mul(u64::try_from(end - first).unwrap_or(0));
        memory::push(&mut ranges, (count, first..end))?;
    }
    let most = (nchunks as u64).clamp(SHORT, MAX_LISTED_CHUNKS); // widening
    ensure(total <= most, ErrorKind::InvalidParam, "more chunks than there are")?;
    let mut numbers: Vec<i64> =
        memory::with_capacity(usize::try_from(total).map_err(|_| memory::no_memory())?)?;
    numbers.extend((total > 0).then_some(0));
    // Of the chunks that all dimensions so far tell apart, each becomes those along the next one: in place, from the
    // last one on, so that none is overwritten before its turn.
    for (count, range) in ranges {
        let (before, along) = (numbers.len(), usize::try_from(range.end - range.start).unwrap_or(0));
        numbers.resize(before * along, 0);
        for from in (0..before).rev() {
            let base = numbers[from].checked_mul(count).ok_or(invalid)?;
            for (number, at) in numbers[from * along..(from + 1) * along].iter_mut().zip(range.clone()) {
                *number = base.saturating_add(at);
            }
        }
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
            |start: [i64; 2], stop: [i64; 2]| chunks_of_box(&meta(), 9, &start, &stop).unwrap().unwrap();
        assert_eq!(chunks([1, 2], [5, 4]), [0, 1, 3, 4, 6, 7]);
        assert_eq!(chunks([1, 2], [1, 4]), [0, 1]);
        assert_eq!(chunks([2, 2], [2, 4]), [] as [i64; 0]);
        assert_eq!(chunks([0, 7], [6, 7]), [] as [i64; 0]);
        assert_eq!(chunks([6, 0], [9, 1]), [] as [i64; 0]);
        assert_eq!(chunks([0, 0], [600, 700]), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        for (start, stop) in [([-1, 0], [2, 2]), ([3, 0], [2, 2]), ([0, 9], [2, 8])] {
            assert_eq!(chunks_of_box(&meta(), 9, &start, &stop).unwrap_err().kind(), ErrorKind::InvalidParam);
        }
        assert_eq!(chunks_of_box(&NdMeta { shape: vec![6, 0], ..meta() }, 0, &[0, 0], &[1, 1]), Ok(None));
    }

    #[test]
    fn more_chunks_than_there_are_numbers_are_refused() {
        let shape = vec![1 << 16, 1 << 48];
        let huge = NdMeta { shape: shape.clone(), chunkshape: vec![1, 1], ..meta() };
        assert_eq!(
            chunks_of_box(&huge, usize::MAX, &[0, 0], &shape).unwrap_err().kind(),
            ErrorKind::InvalidParam
        );
    }

    #[test]
    fn lists_that_no_sound_array_has_are_not_made() {
        let long = NdMeta { shape: vec![1 << 28, 2], chunkshape: vec![1, 2], ..meta() };
        let listed = |nchunks, len: i64| chunks_of_box(&long, nchunks, &[5, 0], &[5 + len, 2]);
        assert_eq!(listed(0, 1 << 27).unwrap_err().kind(), ErrorKind::InvalidParam);
        assert_eq!(listed(70_000, 70_001).unwrap_err().kind(), ErrorKind::InvalidParam);
        assert_eq!(listed(70_000, 70_000).unwrap().unwrap(), (5i64..70_005).collect::<Vec<_>>());
        assert_eq!(listed(0, 1000).unwrap().unwrap().len(), 1000);
    }
}
