//! Counters of lists in which chunks are not what they were.

use super::*;

/// A chunk of `nbytes` bytes as they are.
fn stored_chunk(nbytes: i32) -> Vec<u8> {
    let mut chunk = vec![5, 1, 7, 4];
    for size in [nbytes, nbytes, nbytes + 32] {
        chunk.extend_from_slice(&size.to_le_bytes());
    }
    chunk.resize(chunk.len() + 16 + usize::try_from(nbytes).unwrap(), 0);
    chunk
}

#[test]
fn a_damaged_chunk_of_a_list_does_not_make_the_sum_wrong() {
    for claimed in [0, 5, i32::MAX] {
        let damaged = || {
            let mut schunk = create(Kind::List, Path::new(""), 4);
            for n in [400, 400, 100] {
                schunk.append_chunk(&stored_chunk(n)).unwrap();
            }
            let Backing::List(list) = &mut schunk.backing else { unreachable!("made as one") };
            for nchunk in [1, 2] {
                list.change(nchunk, 0, |chunk| chunk.write_at(4, &i32::to_le_bytes(claimed)).unwrap());
            }
            schunk
        };
        for (nchunk, left) in [(1, 500), (2, 800)] {
            let mut schunk = damaged();
            schunk.delete_chunk(nchunk).unwrap();
            assert_eq!(schunk.nbytes(), left);
            let mut schunk = damaged();
            schunk.update_chunk(nchunk, &stored_chunk(400)).unwrap();
            assert_eq!(schunk.nbytes(), if nchunk == 1 { 900 } else { 1200 });
        }
    }
}

#[test]
fn a_short_chunk_inside_a_list_is_counted_as_what_it_is() {
    // As in a frame in which the C library moved a short last chunk.
    let with_short_one = || {
        let mut schunk = create(Kind::List, Path::new(""), 4);
        for _ in 0..3 {
            schunk.append_chunk(&stored_chunk(400)).unwrap();
        }
        let Backing::List(list) = &mut schunk.backing else { unreachable!("made as one") };
        list.change(1, 0, |chunk| chunk.write_at(4, &i32::to_le_bytes(100)).unwrap());
        list.sizes.nbytes = 900;
        schunk
    };
    for (nchunk, deleted, updated) in [(0, 500, 900), (1, 800, 1200), (2, 500, 900)] {
        let mut schunk = with_short_one();
        schunk.delete_chunk(nchunk).unwrap();
        assert_eq!(schunk.nbytes(), deleted);
        let mut schunk = with_short_one();
        schunk.update_chunk(nchunk, &stored_chunk(400)).unwrap();
        assert_eq!(schunk.nbytes(), updated);
    }
    // Once the headers were found to add up, changes keep it so.
    let mut schunk = with_short_one();
    schunk.update_chunk(2, &stored_chunk(400)).unwrap();
    assert_eq!(schunk.nbytes(), 900);
    for left in [500, 400, 0] {
        schunk.delete_chunk(schunk.nchunks() - 1).unwrap();
        assert_eq!(schunk.nbytes(), left);
    }
}
