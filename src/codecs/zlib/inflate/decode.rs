//! The data of a block: literals and matches.

use super::super::format::MAX_LEN;
use super::bits::Bits;
use super::table::{Distance, Main, SYMBOL_BITS, Symbol, Tables};
use crate::codecs::matches::{SLACK, copy_long, copy_safely, copy_short};
use crate::codecs::place::Target;

/// Look-ups in a row that may give literals, after bits were taken. They use so few that the next one is still good.
const LOOK_UPS: usize = 4;
const _: () = assert!((LOOK_UPS as u32 + 1) * SYMBOL_BITS <= 56);
/// Room for the literals of all these and of a part of the table, of which eight are written at once, and for a match.
const LITERAL_ROOM: usize = (LOOK_UPS + 1) * 8;
const MATCH_ROOM: usize = MAX_LEN + SLACK;
/// Bytes that are taken at once, twice.
const IN_ROOM: usize = 2 * 8;
/// This many bytes of the input are decoded, and as many must follow, before it pays to combine literals: that takes as
/// long as decoding some thousands of them.
const PATIENCE: usize = 1 << 10;
const PROSPECT: usize = 3 << 10;

/// Decodes data of a block into `dest`, from `op` on, until the block ends, which it tells, or `stop` bytes are there,
/// or a few more. If these are all that `dest` has room for, the block must end there. `None` if it is damaged.
pub(super) fn decode(
    tables: &mut Tables,
    bits: &mut Bits<'_>,
    dest: &mut [u8],
    op: &mut usize,
    stop: usize,
) -> Option<bool> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_avx2() {
        // SAFETY: the CPU was just asked for AVX2, BMI1, BMI2 and LZCNT.
        return unsafe { decode_avx2(tables, bits, dest, op, stop) };
    }
    // SAFETY: no AVX2 is asked for.
    unsafe { decode_with::<false>(tables, bits, dest, op, stop) }
}

/// [`decode`] with the instructions that every CPU has.
#[cfg(test)]
pub(super) fn decode_portably(
    tables: &mut Tables,
    bits: &mut Bits<'_>,
    dest: &mut [u8],
    op: &mut usize,
    stop: usize,
) -> Option<bool> {
    // SAFETY: no AVX2 is asked for.
    unsafe { decode_with::<false>(tables, bits, dest, op, stop) }
}

/// [`decode_with`], compiled for 32-byte registers and byte permutations.
///
/// # Safety
///
/// The CPU has AVX2, BMI1, BMI2 and LZCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn decode_avx2(
    tables: &mut Tables,
    bits: &mut Bits<'_>,
    dest: &mut [u8],
    op: &mut usize,
    stop: usize,
) -> Option<bool> {
    // SAFETY: the caller's promise.
    unsafe { decode_with::<true>(tables, bits, dest, op, stop) }
}

/// [`decode`], in one of two ways.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_with<const AVX2: bool>(
    tables: &mut Tables,
    bits: &mut Bits<'_>,
    dest: &mut [u8],
    op: &mut usize,
    stop: usize,
) -> Option<bool> {
    assert!(*op <= dest.len());
    let fast_end = stop.min(dest.len().saturating_sub(LITERAL_ROOM));
    let is_long = bits.src.len() - bits.at >= PATIENCE + PROSPECT;
    let mut patience = if is_long && tables.pays_to_combine() { bits.at + PATIENCE } else { usize::MAX };
    loop {
        if *op < fast_end {
            // SAFETY: the caller's promise.
            if unsafe { decode_fast::<AVX2>(tables, bits, dest, op, fast_end, patience)? } {
                return Some(true);
            }
            if bits.at >= patience {
                tables.combine();
                patience = usize::MAX;
                continue;
            }
        }
        if *op >= stop && stop < dest.len() {
            return Some(false);
        }
        // SAFETY: `op` was at most `dest.len()`, and no step leads beyond. The CPU has AVX2 if `AVX2`.
        if unsafe { decode_one::<AVX2>(tables, bits, dest, op)? } {
            return Some(true);
        }
    }
}

/// Decodes until `op_end` or `in_end`, or the end of the block, which it tells, or near the end of the input.
///
/// # Safety
///
/// If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_fast<const AVX2: bool>(
    tables: &Tables,
    bits: &mut Bits<'_>,
    dest: &mut [u8],
    op: &mut usize,
    op_end: usize,
    in_end: usize,
) -> Option<bool> {
    if bits.src.len() < IN_ROOM || bits.at > bits.src.len() - IN_ROOM {
        return Some(false);
    }
    assert!(op_end + LITERAL_ROOM <= dest.len());
    let in_end = in_end.min(bits.src.len() - IN_ROOM);
    let output = Output::of(dest);
    let (mut to, to_end) = (output.start.ahead(*op), output.start.ahead(op_end));
    let mut input = *bits;
    // SAFETY: IN_ROOM bytes follow, here and wherever the end is not near.
    unsafe { input.refill_inside() };
    let main = tables.main();
    let mut symbol = main.symbol(input.buffer);
    /// Writes the literals of `symbol`, and looks up what follows.
    macro_rules! put_literals {
        () => {
            // SAFETY: LITERAL_ROOM bytes follow `to_end`, enough for all literals between two looks at it.
            (to, symbol) = unsafe { put_literals(main, &mut input, to, symbol) }
        };
    }
    /// Goes on with `symbol`, unless an end is near.
    macro_rules! go_on {
        () => {
            if to >= to_end || input.at > in_end {
                break Some(false);
            }
            // SAFETY: as just compared.
            unsafe { input.refill_inside() };
            continue;
        };
    }
    // At the start of a round, at least 56 bits were taken after `symbol` was looked up: look-ups should not wait for
    // that.
    let ended = loop {
        if symbol.is_literals() {
            put_literals!();
            if symbol.is_literals() {
                put_literals!();
                if symbol.is_literals() {
                    put_literals!();
                    if symbol.is_literals() {
                        put_literals!();
                        go_on!();
                    }
                }
            }
            // SAFETY: eight bytes at most were taken since the end was not near.
            unsafe { input.refill_inside() };
        }
        if symbol.is_part() {
            input.skip(symbol.bits());
            symbol = tables.symbol_in(symbol, input.buffer);
            if symbol.is_literals() {
                put_literals!();
                go_on!();
            }
        }
        if symbol.is_length() {
            let len = symbol.length(input.buffer);
            input.skip(symbol.bits());
            // Of 56 bits, a length takes at most 20 and a distance 28.
            let Some(distance) = skip_distance(tables, &mut input) else { break None };
            // SAFETY: `to` is in the output, and distances are never 0. The CPU has AVX2 if `AVX2`.
            if !unsafe { output.put_match::<AVX2>(to, distance, len) } {
                break None;
            }
            to = to.ahead(len);
        } else {
            input.skip(symbol.bits());
            break symbol.is_end().then_some(true);
        }
        if to >= to_end || input.at > in_end {
            break Some(false);
        }
        symbol = main.symbol(input.buffer);
        let is_known = input.count() >= SYMBOL_BITS;
        // SAFETY: as just compared.
        unsafe { input.refill_inside() };
        if !is_known {
            symbol = main.symbol(input.buffer);
        }
    };
    *op = to.since(output.start);
    *bits = input;
    ended
}

/// Takes the distance of a match from `input`; `None` if the code is none of a distance.
#[inline(always)]
fn skip_distance(tables: &Tables, input: &mut Bits<'_>) -> Option<usize> {
    let mut entry = tables.distance(input.buffer);
    if entry.is_no_distance() {
        input.skip(entry.bits());
        if entry == Distance::NOTHING {
            return None;
        }
        entry = tables.distance_in(entry, input.buffer);
    }
    let distance = entry.distance(input.buffer);
    input.skip(entry.bits());
    Some(distance)
}

/// All of the output.
struct Output<'a> {
    start: Target<'a>,
    nbytes: usize,
    /// MATCH_ROOM bytes follow this place, unless it is the start.
    long_end: Target<'a>,
}

impl<'a> Output<'a> {
    #[inline(always)]
    fn of(dest: &'a mut [u8]) -> Output<'a> {
        let nbytes = dest.len();
        let start = Target::new(dest);
        Output { start, nbytes, long_end: start.ahead(nbytes.saturating_sub(MATCH_ROOM)) }
    }

    /// Copies a match to `to`; returns whether it lies in the output, else nothing is done.
    ///
    /// # Safety
    ///
    /// `to` is in the output, and `distance >= 1`. If `AVX2`, the CPU has it.
    #[inline(always)]
    unsafe fn put_match<const AVX2: bool>(&self, to: Target<'a>, distance: usize, len: usize) -> bool {
        if distance > to.since(self.start) {
            return false;
        }
        if to < self.long_end {
            // SAFETY: as many bytes precede, as just compared, and MATCH_ROOM bytes follow `long_end`.
            unsafe { copy_match::<AVX2>(to, distance, len) };
            return true;
        }
        let room = self.nbytes - to.since(self.start);
        if len <= room {
            // SAFETY: as many bytes precede and follow, as just compared.
            unsafe { copy_near_end::<AVX2>(to, distance, len, room) };
        }
        len <= room
    }
}

/// Copies `len` bytes from `distance` bytes back, as if one by one.
///
/// # Safety
///
/// `distance >= 1`; that many bytes precede `to`, and MAX_LEN and SLACK follow. If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn copy_match<const AVX2: bool>(to: Target<'_>, distance: usize, len: usize) {
    if distance >= 32 {
        let mut done = 0;
        loop {
            // SAFETY: the caller's promise; what is copied lies before what it is copied to.
            unsafe { to.ahead(done).copy_from_back::<32>(distance) };
            done += 32;
            if done >= len {
                return;
            }
        }
    } else if len <= 16 {
        // SAFETY: the caller's promise.
        unsafe { copy_short::<AVX2>(to, distance) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_long::<AVX2>(to, distance, len) };
    }
}

/// Copies `len` bytes from `distance` bytes back, as if one by one, and nothing beyond the `room` bytes at `to`.
///
/// # Safety
///
/// `distance >= 1`; that many bytes precede `to`, and `room` follow; `len <= room`. If `AVX2`, the CPU has it.
#[cold]
unsafe fn copy_near_end<const AVX2: bool>(to: Target<'_>, distance: usize, len: usize, room: usize) {
    let Some(last) = room.checked_sub(16) else {
        // SAFETY: the caller's promise.
        return (0..len).for_each(|i| unsafe { to.ahead(i).copy_from_back::<1>(distance) });
    };
    let mut done = 0;
    while done < len {
        // The last piece may begin inside of the one before: what is copied again is the same.
        done = done.min(last);
        // SAFETY: the caller's promise: bytes precede, and 16 follow.
        unsafe { copy_short::<AVX2>(to.ahead(done), distance) };
        done += 16;
    }
}

/// Writes the literals of `symbol`; returns the place after them, and what follows.
///
/// # Safety
///
/// Eight bytes follow `to`.
#[inline(always)]
unsafe fn put_literals<'a>(
    main: Main<'_>,
    input: &mut Bits<'_>,
    to: Target<'a>,
    symbol: Symbol,
) -> (Target<'a>, Symbol) {
    input.skip(symbol.bits());
    // SAFETY: the caller's promise.
    unsafe { to.store(symbol.literals()) };
    (to.ahead(symbol.nliterals()), main.symbol(input.buffer))
}

/// Decodes what the next code stands for; whether that was the end of the block. `None` if it does not fit, or the
/// input ends.
///
/// # Safety
///
/// `op` is in `dest` or at its end. If `AVX2`, the CPU has it.
#[inline(always)]
unsafe fn decode_one<const AVX2: bool>(
    tables: &Tables,
    bits: &mut Bits<'_>,
    dest: &mut [u8],
    op: &mut usize,
) -> Option<bool> {
    bits.refill();
    let mut symbol = tables.main().symbol(bits.buffer);
    if !symbol.is_literals() && symbol.is_part() {
        bits.take(symbol.nbits())?;
        symbol = tables.symbol_in(symbol, bits.buffer);
    }
    if symbol.is_literals() {
        let n = symbol.nliterals();
        dest.get_mut(*op..*op + n)?.copy_from_slice(&symbol.literals()[..n]);
        *op += n;
        bits.take(symbol.nbits())?;
        return Some(false);
    }
    if !symbol.is_length() {
        bits.take(symbol.nbits())?;
        return symbol.is_end().then_some(true);
    }
    let len = symbol.length(bits.buffer);
    bits.take(symbol.nbits())?;
    let mut entry = tables.distance(bits.buffer);
    if entry.is_no_distance() {
        bits.take(entry.nbits()).filter(|_| entry != Distance::NOTHING)?;
        entry = tables.distance_in(entry, bits.buffer);
    }
    let distance = entry.distance(bits.buffer);
    bits.take(entry.nbits())?;
    if distance > *op || len > dest.len() - *op {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { copy_safely::<AVX2>(dest, *op, distance, len) };
    *op += len;
    Some(false)
}
