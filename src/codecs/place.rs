//! Places in buffers: pointers for decoders that compare their position with the ends of both buffers once per element.
//!
//! Where the next element begins is known only when the first byte of this one has been loaded, and that chain of loads
//! is what decoders wait for. An index into a slice makes it longer by the addition of the slice's start. Debug
//! builds, and so the tests, check every access.

use crate::copy;
use std::cmp::Ordering;
use std::marker::PhantomData;

/// The limits of a buffer; known in debug builds only.
#[derive(Clone, Copy)]
struct Limits {
    #[cfg(debug_assertions)]
    start: usize,
    #[cfg(debug_assertions)]
    end: usize,
}

impl Limits {
    #[inline(always)]
    fn of(_buffer: &[u8]) -> Limits {
        Limits {
            #[cfg(debug_assertions)]
            start: _buffer.as_ptr().addr(),
            #[cfg(debug_assertions)]
            end: _buffer.as_ptr().addr() + _buffer.len(),
        }
    }

    /// Panics in debug builds if some of the `len` bytes at `at` lie outside.
    #[inline(always)]
    fn check(self, _at: *const u8, _len: usize) {
        #[cfg(debug_assertions)]
        assert!(self.start <= _at.addr() && _at.addr() + _len <= self.end, "access outside of the buffer");
    }
}

macro_rules! place {
    ($(#[$doc:meta])* $name:ident($pointer:ty), of $buffer:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name<'a> {
            at: $pointer,
            limits: Limits,
            buffer: PhantomData<$buffer>,
        }

        impl $name<'_> {
            /// The place `n` bytes further.
            #[inline(always)]
            pub(crate) fn ahead(mut self, n: usize) -> Self {
                self.at = self.at.wrapping_add(n);
                self
            }

            /// This place, in a register from here on; see [`settled`].
            #[inline(always)]
            #[allow(dead_code, reason = "one of the two kinds of places needs it")]
            #[allow(unused_mut, reason = "other platforms have nothing to do")]
            #[allow(clippy::pointers_in_nomem_asm_block, reason = "nothing is read through it")]
            pub(crate) fn settled(mut self) -> Self {
                #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
                // SAFETY: there is no instruction, only a register that the compiler must fill.
                unsafe {
                    std::arch::asm!("/* {0} */", inout(reg) self.at, options(nomem, nostack, preserves_flags));
                }
                self
            }

            /// The number of bytes from `start`, an earlier place in the same buffer, to this one.
            #[inline(always)]
            pub(crate) fn since(self, start: Self) -> usize {
                self.at.addr().wrapping_sub(start.at.addr())
            }

            /// The `N` bytes at this place.
            ///
            /// # Safety
            ///
            /// They are in the buffer.
            #[inline(always)]
            pub(crate) unsafe fn load<const N: usize>(self) -> [u8; N] {
                self.limits.check(self.at, N);
                // SAFETY: the caller guarantees that the bytes exist; arrays of bytes need no alignment.
                unsafe { self.at.cast::<[u8; N]>().read() }
            }
        }

        impl PartialEq for $name<'_> {
            #[inline(always)]
            fn eq(&self, other: &Self) -> bool {
                self.at == other.at
            }
        }

        impl PartialOrd for $name<'_> {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.at.partial_cmp(&other.at)
            }
        }
    };
}

place!(
    /// A place in a buffer that is read.
    Source(*const u8), of &'a [u8]
);
place!(
    /// A place in a buffer that is written, and read where it was written before.
    Target(*mut u8), of &'a mut [u8]
);

impl<'a> Source<'a> {
    /// The first byte of `buffer`.
    #[inline(always)]
    pub(crate) fn new(buffer: &'a [u8]) -> Source<'a> {
        Source { at: buffer.as_ptr(), limits: Limits::of(buffer), buffer: PhantomData }
    }

    /// The byte at this place.
    ///
    /// # Safety
    ///
    /// It is in the buffer.
    #[inline(always)]
    pub(crate) unsafe fn byte(self) -> usize {
        // SAFETY: the caller's promise.
        usize::from(u8::from_le_bytes(unsafe { self.load() }))
    }

    /// The two bytes at this place, the first one in the lowest bits.
    ///
    /// # Safety
    ///
    /// They are in the buffer.
    #[inline(always)]
    pub(crate) unsafe fn two_bytes(self) -> usize {
        // SAFETY: the caller's promise.
        usize::from(u16::from_le_bytes(unsafe { self.load() }))
    }
}

impl<'a> Target<'a> {
    /// The first byte of `buffer`.
    #[inline(always)]
    pub(crate) fn new(buffer: &'a mut [u8]) -> Target<'a> {
        Target { limits: Limits::of(buffer), at: buffer.as_mut_ptr(), buffer: PhantomData }
    }

    /// The place `n` bytes before.
    #[inline(always)]
    pub(crate) fn back(mut self, n: usize) -> Self {
        self.at = self.at.wrapping_sub(n);
        self
    }

    /// Writes `N` bytes.
    ///
    /// # Safety
    ///
    /// They are in the buffer.
    #[inline(always)]
    pub(crate) unsafe fn store<const N: usize>(self, bytes: [u8; N]) {
        self.limits.check(self.at, N);
        // SAFETY: the caller guarantees that the bytes exist; arrays of bytes need no alignment.
        unsafe { self.at.cast::<[u8; N]>().write(bytes) };
    }

    /// The sixteen bytes at this place, loaded in two halves.
    ///
    /// A load of what was stored just before waits until it is in the cache, unless one store wrote all of it. That is
    /// more often true of halves, and records repeat what was written a few stores before.
    ///
    /// # Safety
    ///
    /// They are in the buffer. The CPU has AVX.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) unsafe fn load_halves(self) -> [u8; 16] {
        #[cfg(not(miri))]
        {
            use std::arch::x86_64::{__m128i, _mm_cvtsi64_si128};
            // SAFETY: the caller's promise.
            let low = unsafe { self.load::<8>() };
            let high = self.ahead(8);
            high.limits.check(high.at, 8);
            // SAFETY: every x86-64 has SSE2.
            let low = unsafe { _mm_cvtsi64_si128(i64::from_le_bytes(low)) };
            let whole: __m128i;
            // SAFETY: the eight bytes at `high` are read, by the caller's promise. An intrinsic would not do: the
            // compiler makes one load out of both.
            unsafe {
                std::arch::asm!(
                    "vmovhps {whole}, {low}, qword ptr [{high}]",
                    whole = lateout(xmm_reg) whole,
                    low = in(xmm_reg) low,
                    high = in(reg) high.at,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            // SAFETY: both types are sixteen bytes without invalid values.
            unsafe { std::mem::transmute::<__m128i, [u8; 16]>(whole) }
        }
        #[cfg(miri)]
        // SAFETY: the caller's promise.
        unsafe {
            self.load()
        }
    }

    /// Copies `N` bytes from `distance` bytes before to this place; all are read before the first is written.
    ///
    /// # Safety
    ///
    /// Both are in the buffer.
    #[inline(always)]
    pub(crate) unsafe fn copy_from_back<const N: usize>(self, distance: usize) {
        // SAFETY: the caller's promise.
        let bytes: [u8; N] = unsafe { self.back(distance).load() };
        // SAFETY: the caller's promise.
        unsafe { self.store(bytes) };
    }

    /// Copies `len` bytes that do not overlap from `distance` bytes before to this place.
    ///
    /// # Safety
    ///
    /// Both are in the buffer, and `len <= distance`.
    #[inline(always)]
    pub(crate) unsafe fn copy_apart(self, distance: usize, len: usize) {
        debug_assert!(len <= distance);
        self.back(distance).limits.check(self.back(distance).at, len);
        self.limits.check(self.at, len);
        // SAFETY: both are in the buffer and, as far apart as they are long, do not overlap.
        unsafe { copy::copy_raw(self.back(distance).at, self.at, len) };
    }

    /// Writes `len` times the same byte.
    ///
    /// # Safety
    ///
    /// They are in the buffer.
    #[inline(always)]
    pub(crate) unsafe fn fill(self, byte: u8, len: usize) {
        self.limits.check(self.at, len);
        // SAFETY: the caller guarantees that the bytes exist.
        unsafe { self.at.write_bytes(byte, len) };
    }

    /// Copies `len` bytes from another buffer.
    ///
    /// # Safety
    ///
    /// They exist in both buffers.
    #[inline(always)]
    pub(crate) unsafe fn copy_from(self, source: Source<'_>, len: usize) {
        source.limits.check(source.at, len);
        self.limits.check(self.at, len);
        // SAFETY: the caller guarantees that the bytes exist; a buffer that is written is borrowed by nobody else.
        unsafe { copy::copy_raw(source.at, self.at, len) };
    }
}

/// `value`, in a register from here on.
///
/// The compiler likes to put off the widening of a loaded byte to where the byte is used, in the next round of a loop,
/// or to share an addition between a load that the CPU waits for and one that it does not. Either makes the chain of
/// loads a cycle longer, out of seven per element of a stream.
#[inline(always)]
pub(crate) fn settled(value: usize) -> usize {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut value = value;
        // SAFETY: there is no instruction, only a register that the compiler must fill.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags));
        }
        value
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    value
}
