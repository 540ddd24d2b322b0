//! What the format of deflate (RFC 1951) fixes: symbols, the values that they stand for, and the longest codes.

#![forbid(unsafe_code)]

/// Types of blocks, as their headers have them.
pub(super) const RAW: u32 = 0;
pub(super) const FIXED: u32 = 1;
pub(super) const DYNAMIC: u32 = 2;

/// The symbol of the end of a block: literals are those before it, lengths of matches those after it.
pub(super) const END: usize = 256;
/// The symbol of the longest matches.
pub(super) const LONGEST: usize = END + LENGTHS;
/// How many symbols of lengths there are.
pub(super) const LENGTHS: usize = 29;
/// How many symbols have codes: literals, the end and lengths, and two that stand for nothing.
pub(super) const SYMBOLS: usize = LONGEST + 3;
/// The same for symbols of distances.
pub(super) const DISTANCES: usize = 32;
/// The same without the last two of each, which stand for nothing: headers of blocks have no lengths for their codes.
pub(super) const USED_SYMBOLS: usize = SYMBOLS - 2;
pub(super) const USED_DISTANCES: usize = DISTANCES - 2;

/// Lengths of the shortest and the longest match that one symbol stands for, and the largest distance.
pub(super) const MIN_LEN: usize = 3;
pub(super) const MAX_LEN: usize = 258;
pub(super) const MAX_DISTANCE: usize = 32 << 10;

/// The longest codes of all these symbols, in bits.
pub(super) const MAX_CODE: usize = 15;

/// How many symbols tell lengths of codes: 16 lengths and three ways to repeat them. Then their order in the header of
/// a block, and their longest codes.
pub(super) const RUNS: usize = 19;
pub(super) const RUN_ORDER: [usize; RUNS] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
pub(super) const MAX_RUN_CODE: u32 = 7;

/// Lengths of the fixed codes, which no header has.
pub(super) static FIXED_SYMBOLS: [u8; SYMBOLS] = {
    let mut lengths = [8; SYMBOLS];
    let mut symbol = 144;
    while symbol < 280 {
        lengths[symbol] = if symbol < END { 9 } else { 7 };
        symbol += 1;
    }
    lengths
};
pub(super) const FIXED_DISTANCE: u8 = 5;

/// The shortest length that a symbol stands for, and how many bits after its code are added to that; by its number
/// among the [`LENGTHS`].
pub(super) const fn length(n: u32) -> (u32, u32) {
    match n {
        0..8 => (3 + n, 0),
        28 => (258, 0),
        _ => (3 + ((4 + n % 4) << (n / 4 - 1)), n / 4 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_table_in_the_rfc() {
        for (symbol, shortest, nbits) in [
            (257, 3, 0),
            (264, 10, 0),
            (265, 11, 1),
            (268, 17, 1),
            (269, 19, 2),
            (277, 67, 4),
            (284, 227, 5),
            (LONGEST, 258, 0),
        ] {
            assert_eq!(length((symbol - END - 1) as u32), (shortest, nbits), "{symbol}");
        }
    }
}
