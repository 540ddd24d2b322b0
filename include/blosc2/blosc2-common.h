/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/* Macros about the compiler and the processor. */

#ifndef BLOSC_BLOSC2_BLOSC2_COMMON_H
#define BLOSC_BLOSC2_BLOSC2_COMMON_H

#include "blosc2-export.h"

#include <stdint.h>
#include <string.h>

/* The compiler's version, as in 1302 for 13.2, and a mark for variables that may stay unused. */
#if defined(__GNUC__)
#define BLOSC_GCC_VERSION (__GNUC__ * 100 + __GNUC_MINOR__)
#define BLOSC_UNUSED_VAR __attribute__((unused))
#else
#define BLOSC_UNUSED_VAR
#endif

/* Uses a parameter that is not needed. */
#define BLOSC_UNUSED_PARAM(x) ((void)(x))

/* Microsoft's C compiler before C99 support. */
#if defined(_MSC_VER) && !defined(__cplusplus)
#define inline __inline
#endif

/* Microsoft's compiler does not say that it may use SSE2. */
#if defined(_MSC_VER) && !defined(__SSE2__) && \
    (defined(_M_X64) || (defined(_M_IX86) && _M_IX86_FP >= 2))
#define __SSE2__
#endif

/* BLOSC_STRICT_ALIGN is defined where unaligned access to memory is not known to be fine. */
#if defined(__i386__) || defined(__386) || defined(__amd64) || defined(_M_IX86) || defined(_M_X64) || \
    defined(_X86_) || defined(__I86__) || (defined(__ARM_FEATURE_UNALIGNED) && defined(__ARM64_ARCH_8__)) || \
    defined(_ARCH_PPC) || defined(__PPC__)
#undef BLOSC_STRICT_ALIGN
#elif !defined(BLOSC_STRICT_ALIGN)
#define BLOSC_STRICT_ALIGN
#endif

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#if defined(__AVX2__) || defined(__AVX512F__) || defined(__AVX512BW__)
#include <immintrin.h>
#endif

#endif /* BLOSC_BLOSC2_BLOSC2_COMMON_H */
