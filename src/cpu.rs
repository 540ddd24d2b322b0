//! CPU features, each asked once (the standard library caches the answer), the number of processors, and hints to the
//! compiler: choices that are made without a branch, and paths that are rarely taken.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many processors the calling thread, and threads that it starts, may run on; at least 1.
#[cfg(target_os = "linux")]
pub(crate) fn processors() -> usize {
    // SAFETY: a set is an array of integers.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as said. A kernel for more processors than it has room for refuses.
    let code = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    match code {
        // SAFETY: the set is valid.
        0 => usize::try_from(unsafe { libc::CPU_COUNT(&set) }).unwrap_or(1).max(1),
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// How many processors the calling thread, and threads that it starts, may run on; at least 1.
#[cfg(not(target_os = "linux"))]
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Families of AMD's processors, as [`amd_family`] tells them.
pub(crate) const ZEN_3_AND_4: u32 = 25;
pub(crate) const ZEN_5: u32 = 26;

/// The family of AMD's processors that this one belongs to; 0 for processors of others. Asked once: under a hypervisor,
/// asking takes microseconds.
#[inline]
pub(crate) fn amd_family() -> u32 {
    const UNKNOWN: u32 = u32::MAX;
    static KNOWN: AtomicU32 = AtomicU32::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let family = ask_amd_family();
            KNOWN.store(family, Ordering::Relaxed);
            family
        }
        known => known,
    }
}

/// Whether AMD made this processor.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_amd() -> bool {
    amd_family() != 0
}

/// [`amd_family`], asked now.
#[cold]
fn ask_amd_family() -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        #[allow(unused_unsafe)] // newer compilers call it safe
        // SAFETY: every x86-64 CPU has this instruction, and these two leaves.
        let [vendor, version] = [0, 1].map(|leaf| unsafe { std::arch::x86_64::__cpuid(leaf) });
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD";
        let family = (version.eax >> 8 & 0xF) + (version.eax >> 20 & 0xFF);
        if is_amd { family } else { 0 }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    0
}

/// SSSE3: byte permutations.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_ssse3() -> bool {
    std::arch::is_x86_feature_detected!("ssse3")
}

/// AVX2 and the bit manipulation instructions that come with it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
}

/// AVX-512 with byte and word operations, and VBMI's byte permutations; and AVX2, which the kernels use beside it.
#[cfg(all(target_arch = "x86_64", have_avx512))]
pub(crate) fn has_avx512() -> bool {
    has_avx2()
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512vbmi")
}

/// AVX-512 as in [`has_avx512`], and GFNI's bit matrix products.
#[cfg(all(target_arch = "x86_64", have_avx512))]
pub(crate) fn has_avx512_gfni() -> bool {
    has_avx512() && std::arch::is_x86_feature_detected!("gfni")
}

/// Says that the path on which it is called is rarely taken: the compiler puts it out of the way of the other one.
#[cold]
#[inline]
pub(crate) fn rarely() {}

/// `yes` or `no`, without a branch.
#[inline(always)]
#[cfg_attr(
    have_select,
    expect(clippy::incompatible_msrv, reason = "`have_select` stands for a compiler that has it")
)]
pub(crate) fn select<V>(condition: bool, yes: V, no: V) -> V {
    #[cfg(have_select)]
    return std::hint::select_unpredictable(condition, yes, no);
    #[cfg(not(have_select))]
    if condition { yes } else { no }
}
