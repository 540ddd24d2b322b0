/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/* Visibility of the symbols of the Blosc2 library. */

#ifndef BLOSC_BLOSC2_BLOSC2_EXPORT_H
#define BLOSC_BLOSC2_BLOSC2_EXPORT_H

/* BLOSC_EXPORT marks the functions of the library. It is empty for its users; code that defines
   BLOSC_SHARED_LIBRARY is itself the library. */
#if !defined(BLOSC_SHARED_LIBRARY)
#define BLOSC_EXPORT
#elif defined(_MSC_VER) || defined(_WIN32) || defined(__CYGWIN__)
#define BLOSC_EXPORT __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define BLOSC_EXPORT __attribute__((visibility("default")))
#else
#error "no way known to export symbols with this compiler"
#endif

/* BLOSC_NO_EXPORT marks functions that stay inside a library; BLOSC_TESTING exports them as well. */
#if defined(BLOSC_TESTING)
#define BLOSC_NO_EXPORT BLOSC_EXPORT
#elif (defined(__GNUC__) || defined(__clang__)) && !defined(__MINGW32__)
#define BLOSC_NO_EXPORT __attribute__((visibility("hidden")))
#else
#define BLOSC_NO_EXPORT
#endif

#endif /* BLOSC_BLOSC2_BLOSC2_EXPORT_H */
