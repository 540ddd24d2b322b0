//! Every variant against the definition, and nothing written outside the destination.

use super::*;
use crate::filters::testing::{guarded, lengths, noise, widths};

fn naive(width: usize, src: &[u8]) -> Vec<u8> {
    let nitems = src.len() / width;
    let mut out = src.to_vec();
    for i in 0..nitems {
        for j in 0..width {
            out[j * nitems + i] = src[i * width + j];
        }
    }
    out
}

fn check(kernel: &Kernel, width: usize, src: &[u8], offset: usize) {
    let what = format!("{} width {width} length {} offset {offset}", kernel.name, src.len());
    let want = naive(width, src);
    let got = guarded(src.len(), offset, |dest| kernel.shuffle(width, src, dest));
    assert!(got == want, "shuffle {what}");
    let back = guarded(src.len(), offset, |dest| kernel.unshuffle(width, &want, dest));
    assert!(back == src, "unshuffle {what}");
}

#[test]
fn every_variant_agrees_with_the_definition_at_short_lengths() {
    for kernel in usable() {
        for width in widths() {
            // Every item count up to a little more than two of the widest tiles, with partial items of all sizes.
            for nitems in lengths(0..=if width > 80 { 70 } else { 140 }) {
                let len = nitems * width + nitems % width;
                let src = noise(len + 1);
                check(kernel, width, &src[1..], nitems % 3);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn every_variant_agrees_with_the_definition_at_all_start_offsets() {
    for kernel in usable() {
        for width in [2, 3, 4, 5, 7, 8, 12, 16, 24] {
            for offset in 0..64 {
                let src = noise(64 + 197 * width + 1);
                check(kernel, width, &src[offset..offset + 197 * width + 1], 63 - offset);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn every_variant_agrees_with_the_definition_on_blocks() {
    for kernel in usable() {
        for width in widths() {
            // Rows of 512 bytes, too, which compete for the cache, and of 4096 and nearly a third of that, which crowd.
            for len in [32 * 1024, 64 * 1024, 70_001, 513 * width - 1, 4096 * width.min(33)] {
                let src = noise(len + 1);
                for offset in [0, 1, 16, 62] {
                    check(kernel, width, &src[offset % 2..][..len], offset);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn ranges_are_parts_of_the_unshuffled_block() {
    for kernel in usable() {
        for width in widths() {
            let block = noise(150 * width + width / 2);
            let shuffled = naive(width, &block);
            let starts =
                (0..20).chain([width, 7 * width + 1, 70 * width, 149 * width, block.len() - 1, block.len()]);
            for start in starts.filter(|&s| s <= block.len()) {
                let lens =
                    (0..20).chain([width - 1, width, width + 1, 64 * width, 65 * width + 3, usize::MAX]);
                for len in lens.map(|l| l.min(block.len() - start)) {
                    let got = guarded(len, 0, |dest| kernel.unshuffle_bytes(width, &shuffled, start, dest));
                    assert!(got == block[start..start + len], "{} width {width} {start}+{len}", kernel.name);
                }
            }
        }
    }
}

#[test]
fn blocks_are_shuffled_piece_by_piece() {
    for kernel in usable() {
        for width in widths() {
            let pieces = (1..40).chain([63, 64, 65, 125, 130]);
            for piece in pieces.filter(|piece| !cfg!(miri) || [1, 33, 130].contains(piece)) {
                let src = noise(260 * width);
                let got = guarded(src.len(), piece % 7, |dest| {
                    for (n, items) in src.chunks(piece * width).enumerate() {
                        kernel.shuffle_items(width, items, n * piece, dest);
                    }
                });
                assert!(got == naive(width, &src), "{} width {width} pieces of {piece}", kernel.name);
            }
        }
    }
}

#[test]
fn rows_may_lie_anywhere() {
    for kernel in usable() {
        for width in widths() {
            let numbers = (0..70).chain([125, 128, 300]);
            for nitems in numbers.filter(|nitems| !cfg!(miri) || [0, 1, 16, 33, 125].contains(nitems)) {
                let src = noise(nitems * width);
                let shuffled = naive(width, &src);
                let rows: Vec<Vec<u8>> =
                    (0..width).map(|j| [&shuffled[j * nitems..][..nitems], &noise(j % 3)].concat()).collect();
                let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
                let got = guarded(src.len(), nitems % 5, |dest| kernel.unshuffle_planes(&rows, dest));
                assert!(got == src, "{} width {width} items {nitems}", kernel.name);
            }
        }
    }
}

#[test]
fn known_vector() {
    let src: Vec<u8> = (1..=19).collect();
    let want = [1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 4, 8, 12, 16, 17, 18, 19];
    let mut dest = [0; 19];
    shuffle(4, &src, &mut dest);
    assert_eq!(dest, want);
    let mut back = [0; 19];
    unshuffle(4, &dest, &mut back);
    assert_eq!(back.as_slice(), src);
}

#[test]
#[should_panic(expected = "src.len() == dest.len()")]
fn unequal_lengths_are_a_bug_of_the_caller() {
    shuffle(4, &[0; 8], &mut [0; 9]);
}
