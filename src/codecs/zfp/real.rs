//! The two item types of ZFP and the integers that their cells are computed in.

/// Wrapping arithmetic on the signed integers of a cell.
pub(super) trait Int: Copy + Default {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    /// Half, rounded down.
    fn half(self) -> Self;
    fn double(self) -> Self;
    /// The negabinary digits, in the low bits.
    fn to_negabinary(self) -> u64;
    /// Undoes [`to_negabinary`](Self::to_negabinary); only the low bits count.
    fn from_negabinary(digits: u64) -> Self;
}

macro_rules! impl_int {
    ($int:ty, $uint:ty, $mask:literal) => {
        impl Int for $int {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn half(self) -> Self {
                self >> 1
            }
            #[inline(always)]
            fn double(self) -> Self {
                self << 1
            }
            #[inline(always)]
            fn to_negabinary(self) -> u64 {
                ((self as $uint).wrapping_add($mask) ^ $mask) as u64
            }
            #[inline(always)]
            fn from_negabinary(digits: u64) -> Self {
                // Only the low bits count.
                (digits as $uint ^ $mask).wrapping_sub($mask) as $int
            }
        }
    };
}

impl_int!(i32, u32, 0xaaaa_aaaa);
impl_int!(i64, u64, 0xaaaa_aaaa_aaaa_aaaa);

/// The exponent of a cell, as `frexp` gives it for its largest magnitude (fraction in 0.5 to 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CellExponent {
    /// All items are zero.
    Zero,
    /// All items are finite.
    Finite(i32),
    /// There are infinities or NaNs. ZFP has no code for them; they become arbitrary finite values.
    NonFinite(i32),
}

/// An item type: `f32` or `f64`.
pub(super) trait Real: Copy + Default {
    type Int: Int;
    /// Bytes per item.
    const BYTES: usize;
    /// Bits per integer of a cell.
    const INT_BITS: u32;
    /// Bits of a stored exponent.
    const EXPONENT_BITS: u32;
    /// What is added to an exponent when it is stored.
    const BIAS: i32;

    /// The item in the first bytes of `bytes`, which must be long enough.
    fn load(bytes: &[u8]) -> Self;
    /// Stores the item in the first bytes of `bytes`, which must be long enough.
    fn store(self, bytes: &mut [u8]);
    /// The common exponent of `items`.
    fn exponent(items: &[Self]) -> CellExponent;
    /// Multiplies `items` with 2^(INT_BITS - 2 - exponent) and drops the fractions.
    fn to_ints(items: &[Self], exponent: CellExponent, ints: &mut [Self::Int]);
    /// Multiplies `ints` with 2^(exponent - INT_BITS + 2).
    fn from_ints(ints: &[Self::Int], exponent: i32, items: &mut [Self]);
}

macro_rules! impl_real {
    ($real:ident, $int:ident, $uint:ident, $bytes:literal, $exponent_bits:literal, $bias:literal, $half_scale:literal) => {
        impl Real for $real {
            type Int = $int;
            const BYTES: usize = $bytes;
            const INT_BITS: u32 = $int::BITS;
            const EXPONENT_BITS: u32 = $exponent_bits;
            const BIAS: i32 = $bias;

            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                <$real>::from_ne_bytes(bytes[..$bytes].try_into().expect("the length of an item"))
            }

            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes[..$bytes].copy_from_slice(&self.to_ne_bytes());
            }

            #[inline(always)]
            fn exponent(items: &[Self]) -> CellExponent {
                // Magnitudes compare like their bits, and NaN is above all.
                let largest = items
                    .iter()
                    .map(|item| (item.to_bits() & ($uint::MAX >> 1)) as $int)
                    .fold(0, |a, b| if a > b { a } else { b });
                if largest == 0 {
                    CellExponent::Zero
                } else if largest >= $real::INFINITY.to_bits() as $int {
                    nonfinite_exponent(items)
                } else {
                    // For subnormal numbers this is the least exponent, as the format wants it.
                    CellExponent::Finite((largest >> ($real::MANTISSA_DIGITS - 1)) as i32 - ($bias - 1))
                }
            }

            #[inline(always)]
            fn to_ints(items: &[Self], exponent: CellExponent, ints: &mut [$int]) {
                let scale = |e: i32| $int::BITS as i32 - 2 - e;
                match exponent {
                    CellExponent::Zero => ints.fill(0),
                    CellExponent::Finite(e) if scale(e) <= $bias => {
                        let factor = power_of_two(scale(e));
                        for (int, &item) in ints.iter_mut().zip(items) {
                            // SAFETY: all items are finite and below 2^e in magnitude, so the product is below
                            // 2^(BITS - 2) and its integer part fits.
                            *int = unsafe { (item * factor).to_int_unchecked() };
                        }
                    }
                    CellExponent::Finite(e) => tiny_to_ints(items, scale(e), ints),
                    CellExponent::NonFinite(e) => nonfinite_to_ints(items, scale(e), ints),
                }
            }

            #[inline(always)]
            fn from_ints(ints: &[$int], exponent: i32, items: &mut [Self]) {
                let scale = exponent + 2 - $int::BITS as i32;
                if scale > -$bias {
                    let factor = power_of_two(scale);
                    for (item, &int) in items.iter_mut().zip(ints) {
                        *item = int as $real * factor;
                    }
                } else {
                    tiny_from_ints(ints, scale, items);
                }
            }
        }

        /// 2^`exponent`, for normal numbers.
        #[inline(always)]
        fn power_of_two(exponent: i32) -> $real {
            debug_assert!(exponent > -$bias && exponent <= $bias);
            $real::from_bits(((exponent + $bias) as $uint) << ($real::MANTISSA_DIGITS - 1))
        }

        /// The conversion where the factor 2^`scale` would overflow: in two steps, both exact.
        #[cold]
        fn tiny_to_ints(items: &[$real], scale: i32, ints: &mut [$int]) {
            let (first, second) = (power_of_two($half_scale), power_of_two(scale - $half_scale));
            for (int, &item) in ints.iter_mut().zip(items) {
                *int = (item * first * second) as $int;
            }
        }

        /// The conversion where the factor 2^`scale` would underflow: the first step is exact, the second rounds.
        #[cold]
        fn tiny_from_ints(ints: &[$int], scale: i32, items: &mut [$real]) {
            let (first, second) = (power_of_two(-$half_scale), power_of_two(scale + $half_scale));
            for (item, &int) in items.iter_mut().zip(ints) {
                *item = int as $real * first * second;
            }
        }

        /// The exponent of a cell with infinities or NaNs, as the C library finds it: NaNs do not count, and infinity
        /// has exponent 0.
        #[cold]
        fn nonfinite_exponent(items: &[$real]) -> CellExponent {
            let largest = items.iter().fold(0.0, |a: $real, b| if a < b.abs() { b.abs() } else { a });
            if largest.is_infinite() {
                CellExponent::NonFinite(0)
            } else {
                match $real::exponent(&[largest]) {
                    CellExponent::Finite(e) => CellExponent::NonFinite(e),
                    zero => zero,
                }
            }
        }

        /// The conversion for cells with infinities or NaNs: what has no integer becomes the least one, as the
        /// processor's conversion has it.
        #[cold]
        fn nonfinite_to_ints(items: &[$real], scale: i32, ints: &mut [$int]) {
            let step = scale.min($bias);
            let (first, second) = (power_of_two(step), power_of_two(scale - step));
            let limit = power_of_two($int::BITS as i32 - 1);
            for (int, &item) in ints.iter_mut().zip(items) {
                let scaled = item * first * second;
                *int = if (-limit..limit).contains(&scaled) { scaled as $int } else { $int::MIN };
            }
        }
    };
}

mod single {
    use super::{CellExponent, Real};
    impl_real!(f32, i32, u32, 4, 8, 127, 100);
}

mod double {
    use super::{CellExponent, Real};
    impl_real!(f64, i64, u64, 8, 11, 1023, 900);
}
