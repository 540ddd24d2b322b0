/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/*
 * The Blosc2 library: chunks, contexts, super-chunks, plugins. Arrays are in b2nd.h.
 *
 * What holds for all functions:
 *
 * Errors. Functions that return a number return a negative one if they fail, mostly a BLOSC2_ERROR_* code, for which
 * blosc2_error_string has a text. Functions that return a pointer return NULL. Unless the comment of a function says
 * otherwise, what a failed call was to change is as it was; what it was to fill may hold anything.
 *
 * Memory. The caller releases contexts with blosc2_free_ctx, super-chunks with blosc2_schunk_free, and arrays with
 * b2nd_free. What else has to be released, with free(), is said where the caller gets it. All other pointers belong to the
 * library. Strings that come without an object stay for ever.
 *
 * Threads. Any function may be called in any thread, by many at the same time. The requirements of a function say
 * what other threads may do with an object meanwhile: "not being changed" means that they may read it too, by functions
 * that say the same, and "no other thread uses it" that they may do nothing with it. Functions without a context share
 * the settings of the process, which any thread may change at any time.
 *
 * Callbacks. Functions of the application that the library calls have to return: no C++ exception, longjmp or
 * pthread_exit may leave them. They report failures by what they return.
 *
 * "Valid" objects come from a function of the library and were not released.
 */

#ifndef BLOSC_BLOSC2_H
#define BLOSC_BLOSC2_H

#include "blosc2/blosc2-export.h"
#include "blosc2/blosc2-common.h"
#include "blosc2/blosc2-stdio.h"

#if defined(_WIN32) && !defined(__MINGW32__)
#include <windows.h>
#include <malloc.h>
#include <process.h>
#define getpid _getpid
#endif

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The names of Blosc 1, for programs written for it ---- */

#ifdef BLOSC1_COMPAT
#define BLOSC_VERSION_MAJOR BLOSC2_VERSION_MAJOR
#define BLOSC_VERSION_MINOR BLOSC2_VERSION_MINOR
#define BLOSC_VERSION_RELEASE BLOSC2_VERSION_RELEASE
#define BLOSC_VERSION_STRING BLOSC2_VERSION_STRING
#define BLOSC_VERSION_DATE BLOSC2_VERSION_DATE
#define BLOSC_MAX_OVERHEAD BLOSC2_MAX_OVERHEAD
#define BLOSC_MAX_BUFFERSIZE BLOSC2_MAX_BUFFERSIZE

#define blosc_compress blosc1_compress
#define blosc_decompress blosc1_decompress
#define blosc_getitem blosc1_getitem
#define blosc_get_compressor blosc1_get_compressor
#define blosc_set_compressor blosc1_set_compressor
#define blosc_cbuffer_sizes blosc1_cbuffer_sizes
#define blosc_cbuffer_validate blosc1_cbuffer_validate
#define blosc_cbuffer_metainfo blosc1_cbuffer_metainfo
#define blosc_get_blocksize blosc1_get_blocksize
#define blosc_set_blocksize blosc1_set_blocksize
#define blosc_set_splitmode blosc1_set_splitmode

#define blosc_init blosc2_init
#define blosc_destroy blosc2_destroy
#define blosc_free_resources blosc2_free_resources
#define blosc_get_nthreads blosc2_get_nthreads
#define blosc_set_nthreads blosc2_set_nthreads
#define blosc_compcode_to_compname blosc2_compcode_to_compname
#define blosc_compname_to_compcode blosc2_compname_to_compcode
#define blosc_list_compressors blosc2_list_compressors
#define blosc_get_version_string blosc2_get_version_string
#define blosc_get_complib_info blosc2_get_complib_info
#define blosc_cbuffer_versions blosc2_cbuffer_versions
#define blosc_cbuffer_complib blosc2_cbuffer_complib
#endif /* BLOSC1_COMPAT */

/* ---- Versions ---- */

/* The version of the C API. Build scripts (PyTables' for one) look for these very lines, by their words. */
#define BLOSC2_VERSION_MAJOR 3 /* major: interface and format */
#define BLOSC2_VERSION_MINOR 3 /* minor: interface and format */
#define BLOSC2_VERSION_RELEASE 5 /* tweaks and repairs */
#define BLOSC2_VERSION_STRING "3.3.5"
#define BLOSC2_VERSION_DATE "$Date:: 2026-09-24 #$"

/** Versions of the chunk format. */
enum {
  /** Blosc before 1.0. */
  BLOSC1_VERSION_FORMAT_PRE1 = 1,
  /** Blosc 1. */
  BLOSC1_VERSION_FORMAT = 2,
  /** The alpha versions of Blosc 2. */
  BLOSC2_VERSION_FORMAT_ALPHA = 3,
  /** The first beta version of Blosc 2. */
  BLOSC2_VERSION_FORMAT_BETA1 = 4,
  /** Blosc 2. */
  BLOSC2_VERSION_FORMAT_STABLE = 5,
  /** Chunks with blocks of variable length. */
  BLOSC2_VERSION_FORMAT_VL_BLOCKS = 6,
  /** The highest version that this library reads. */
  BLOSC2_VERSION_FORMAT = BLOSC2_VERSION_FORMAT_VL_BLOCKS
};

/** Versions of the frame format. */
enum {
  /** Blosc 2.0.0 beta 2. */
  BLOSC2_VERSION_FRAME_FORMAT_BETA2 = 1,
  /** Blosc 2. */
  BLOSC2_VERSION_FRAME_FORMAT_RC1 = 2,
  /** Frames of chunks with blocks of variable length. */
  BLOSC2_VERSION_FRAME_FORMAT_VL_BLOCKS = 3,
  /** The highest version that this library reads. */
  BLOSC2_VERSION_FRAME_FORMAT = BLOSC2_VERSION_FRAME_FORMAT_VL_BLOCKS
};

/* ---- Messages ---- */

/**
 * Prints `[cat] - message (file:line)` to stderr if the environment variable BLOSC_TRACE is set. The category
 * is a word without quotes; a format (a string literal) and its arguments follow, as for printf.
 */
#define BLOSC_TRACE(cat, ...)                             \
  do {                                                    \
    if (getenv("BLOSC_TRACE") != NULL) {                  \
      fprintf(stderr, "[%s] - ", #cat);                   \
      fprintf(stderr, __VA_ARGS__);                       \
      fprintf(stderr, " (%s:%d)\n", __FILE__, __LINE__);  \
    }                                                     \
  } while (0)
/** `BLOSC_TRACE` for errors, warnings and information: a format and its arguments. */
#define BLOSC_TRACE_ERROR(...) BLOSC_TRACE(error, __VA_ARGS__)
#define BLOSC_TRACE_WARNING(...) BLOSC_TRACE(warning, __VA_ARGS__)
#define BLOSC_TRACE_INFO(...) BLOSC_TRACE(info, __VA_ARGS__)

/** Prints `[INFO] - message` to stderr if the environment variable BLOSC_INFO is set. */
#define BLOSC_INFO(...)                    \
  do {                                     \
    if (getenv("BLOSC_INFO") != NULL) {    \
      fprintf(stderr, "[INFO] - ");        \
      fprintf(stderr, __VA_ARGS__);        \
      fprintf(stderr, "\n");               \
    }                                      \
  } while (0)

/** Returns `rc` from the function around it if `pointer` is NULL. */
#define BLOSC_ERROR_NULL(pointer, rc)          \
  do {                                         \
    if ((pointer) == NULL) {                   \
      BLOSC_TRACE_ERROR("Pointer is null");    \
      return (rc);                             \
    }                                          \
  } while (0)
/** Returns `rc` from the function around it if it is negative; evaluates it once. */
#define BLOSC_ERROR(rc)                              \
  do {                                               \
    int rc_ = (rc);                                  \
    if (rc_ < BLOSC2_ERROR_SUCCESS) {                \
      char *error_msg = print_error(rc_);            \
      BLOSC_TRACE_ERROR("%s", error_msg);            \
      return rc_;                                    \
    }                                                \
  } while (0)

#if defined(__GNUC__)
#define BLOSC_ATTRIBUTE_UNUSED __attribute__((unused))
#else
#define BLOSC_ATTRIBUTE_UNUSED
#endif

/** What functions return when they fail. */
enum {
  /** Success. */
  BLOSC2_ERROR_SUCCESS = 0,
  /** No better code fits. */
  BLOSC2_ERROR_FAILURE = -1,
  /** Unused. */
  BLOSC2_ERROR_STREAM = -2,
  /** Compressed data contradict themselves. */
  BLOSC2_ERROR_DATA = -3,
  /** Memory cannot be had. */
  BLOSC2_ERROR_MEMORY_ALLOC = -4,
  /** The source ends too early. */
  BLOSC2_ERROR_READ_BUFFER = -5,
  /** The destination is too small. */
  BLOSC2_ERROR_WRITE_BUFFER = -6,
  /** The codec is unknown, or its plugin cannot be loaded. */
  BLOSC2_ERROR_CODEC_SUPPORT = -7,
  /** A parameter that the codec cannot work with. */
  BLOSC2_ERROR_CODEC_PARAM = -8,
  /** A bad dictionary. */
  BLOSC2_ERROR_CODEC_DICT = -9,
  /** A format version from the future. */
  BLOSC2_ERROR_VERSION_SUPPORT = -10,
  /** A header field out of its range. */
  BLOSC2_ERROR_INVALID_HEADER = -11,
  /** An argument out of its range. */
  BLOSC2_ERROR_INVALID_PARAM = -12,
  /** Reading a file failed. */
  BLOSC2_ERROR_FILE_READ = -13,
  /** Writing a file failed. */
  BLOSC2_ERROR_FILE_WRITE = -14,
  /** Opening a file failed. */
  BLOSC2_ERROR_FILE_OPEN = -15,
  /** What was asked for does not exist. */
  BLOSC2_ERROR_NOT_FOUND = -16,
  /** A run of equal bytes is encoded wrongly. */
  BLOSC2_ERROR_RUN_LENGTH = -17,
  /** A filter failed or is unknown. */
  BLOSC2_ERROR_FILTER_PIPELINE = -18,
  /** A chunk could not be inserted. */
  BLOSC2_ERROR_CHUNK_INSERT = -19,
  /** A chunk could not be appended. */
  BLOSC2_ERROR_CHUNK_APPEND = -20,
  /** A chunk could not be replaced. */
  BLOSC2_ERROR_CHUNK_UPDATE = -21,
  /** A size above the 2 GiB limit. */
  BLOSC2_ERROR_2GB_LIMIT = -22,
  /** A super-chunk could not be copied. */
  BLOSC2_ERROR_SCHUNK_COPY = -23,
  /** The frame is of the wrong kind. */
  BLOSC2_ERROR_FRAME_TYPE = -24,
  /** A file could not be truncated. */
  BLOSC2_ERROR_FILE_TRUNCATE = -25,
  /** A thread or its memory could not be had. */
  BLOSC2_ERROR_THREAD_CREATE = -26,
  /** The postfilter failed. */
  BLOSC2_ERROR_POSTFILTER = -27,
  /** A special frame could not be made. */
  BLOSC2_ERROR_FRAME_SPECIAL = -28,
  /** A special super-chunk could not be made or read. */
  BLOSC2_ERROR_SCHUNK_SPECIAL = -29,
  /** An I/O back-end is missing or failed. */
  BLOSC2_ERROR_PLUGIN_IO = -30,
  /** A file could not be removed. */
  BLOSC2_ERROR_FILE_REMOVE = -31,
  /** A pointer is NULL. */
  BLOSC2_ERROR_NULL_POINTER = -32,
  /** An index out of range. */
  BLOSC2_ERROR_INVALID_INDEX = -33,
  /** There is no metalayer with this name. */
  BLOSC2_ERROR_METALAYER_NOT_FOUND = -34,
  /** A buffer is too large, or the destination smaller than a header. */
  BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED = -35,
  /** A tuner failed. */
  BLOSC2_ERROR_TUNER = -36,
  /** The lock of a frame cannot be taken. */
  BLOSC2_ERROR_LOCK = -37
};

/**
 * The text for an error code; "Unknown error" for any other number, also for 0.
 */
BLOSC_EXPORT const char *blosc2_error_string(int error_code);

/**
 * `blosc2_error_string` for old programs. The text is constant although its type does not say so: neither
 * change nor free it.
 */
static char *print_error(int rc) BLOSC_ATTRIBUTE_UNUSED;
static char *print_error(int rc) {
  return (char *)blosc2_error_string(rc);
}

/* ---- Limits, identifiers, flags ---- */

/*
 * Where a Blosc 1 header came first (its guard is BLOSC_H), the constants that both have are left to it.
 */

/**
 * What an instrumented codec puts at the start of each block instead of data.
 */
typedef struct blosc2_instr {
  /**
   * Compression ratio of the block.
   */
  float cratio;
  /**
   * Compression speed, in bytes per second.
   */
  float cspeed;
  /**
   * Filter speed, in bytes per second.
   */
  float filter_speed;
  /**
   * Byte 0 is 1 if the block is a run of one value; the others are reserved.
   */
  uint8_t flags[4];
} blosc2_instr;

/** Sizes, in bytes. */
enum {
#ifndef BLOSC_H
  /** Header of a Blosc 1 chunk. */
  BLOSC_MIN_HEADER_LENGTH = 16,
#endif
  /** Header of a Blosc 2 chunk. */
  BLOSC_EXTENDED_HEADER_LENGTH = 32,
  /** How much larger than its source a chunk can be. */
  BLOSC2_MAX_OVERHEAD = BLOSC_EXTENDED_HEADER_LENGTH,
  /** Largest source buffer. */
  BLOSC2_MAX_BUFFERSIZE = (INT_MAX - BLOSC2_MAX_OVERHEAD),
#ifndef BLOSC_H
  /** Largest typesize; with a larger one the source counts as a stream of bytes. */
  BLOSC_MAX_TYPESIZE = UINT8_MAX,
#endif
  /** Smallest source buffer that is compressed; smaller ones are stored. */
  BLOSC_MIN_BUFFERSIZE = 32
};

/** Ranges of tuner identifiers. */
enum {
  /** Of the library. */
  BLOSC2_DEFINED_TUNER_START = 0,
  BLOSC2_DEFINED_TUNER_STOP = 31,
  /** Registered with the Blosc developers. */
  BLOSC2_GLOBAL_REGISTERED_TUNER_START = 32,
  BLOSC2_GLOBAL_REGISTERED_TUNER_STOP = 159,
  /** How many of those the library contains. */
  BLOSC2_GLOBAL_REGISTERED_TUNERS = 0,
  /** Of the application. */
  BLOSC2_USER_REGISTERED_TUNER_START = 160,
  BLOSC2_USER_REGISTERED_TUNER_STOP = 255
};

/** Tuners. */
enum {
  /** The default: block sizes by codec, level and typesize. */
  BLOSC_STUNE = 0,
  /** One more than the last tuner of the library. */
  BLOSC_LAST_TUNER = 1,
  /** The last registered tuner that the library contains. */
  BLOSC_LAST_REGISTERED_TUNE = BLOSC2_GLOBAL_REGISTERED_TUNER_START + BLOSC2_GLOBAL_REGISTERED_TUNERS - 1
};

/** Ranges of filter identifiers, and limits of the filter pipeline. */
enum {
  /** Of the library. */
  BLOSC2_DEFINED_FILTERS_START = 0,
  BLOSC2_DEFINED_FILTERS_STOP = 31,
  /** Registered with the Blosc developers. */
  BLOSC2_GLOBAL_REGISTERED_FILTERS_START = 32,
  BLOSC2_GLOBAL_REGISTERED_FILTERS_STOP = 159,
  /** How many of those the library contains. */
  BLOSC2_GLOBAL_REGISTERED_FILTERS = 5,
  /** Of the application. */
  BLOSC2_USER_REGISTERED_FILTERS_START = 160,
  BLOSC2_USER_REGISTERED_FILTERS_STOP = 255,
  /** Slots of the filter pipeline. */
  BLOSC2_MAX_FILTERS = 6,
  /** Most filters that an application should register. */
  BLOSC2_MAX_UDFILTERS = 16
};

/** Filters. */
enum {
#ifndef BLOSC_H
  /** None. */
  BLOSC_NOSHUFFLE = 0,
  BLOSC_NOFILTER = 0,
  /** Byte shuffle; the meta byte is the number of byte streams, 0 for the typesize. */
  BLOSC_SHUFFLE = 1,
  /** Bit shuffle. */
  BLOSC_BITSHUFFLE = 2,
#endif
  /** XOR with the first block. */
  BLOSC_DELTA = 3,
  /** Zeroes low mantissa bits of floats; the (signed) meta byte is the number of bits to keep or, if negative,
      to zero. */
  BLOSC_TRUNC_PREC = 4,
  /** One more than the last filter of the library. */
  BLOSC_LAST_FILTER = 5,
  /** The last registered filter that the library contains. */
  BLOSC_LAST_REGISTERED_FILTER = BLOSC2_GLOBAL_REGISTERED_FILTERS_START + BLOSC2_GLOBAL_REGISTERED_FILTERS - 1
};

/** Bits of the flags byte of a chunk. */
enum {
#ifndef BLOSC_H
  /** Byte shuffle. */
  BLOSC_DOSHUFFLE = 0x1,
  /** Stored without compression. */
  BLOSC_MEMCPYED = 0x2,
  /** Bit shuffle. */
  BLOSC_DOBITSHUFFLE = 0x4,
#endif
  /** Delta. */
  BLOSC_DODELTA = 0x8
};

/** Bits of the Blosc 2 flags byte of a chunk. */
enum {
  /** A dictionary precedes the blocks. */
  BLOSC2_USEDICT = 0x1,
  /** The data are big-endian. */
  BLOSC2_BIGENDIAN = 0x2,
  /** The blocks hold `blosc2_instr` instead of data. */
  BLOSC2_INSTR_CODEC = 0x80
};

/** Bits of the second Blosc 2 flags byte of a chunk. */
enum {
  /** The blocks have variable length. */
  BLOSC2_VL_BLOCKS = 0x1
};

/** More sizes, in bytes. */
enum {
  /** Largest dictionary. */
  BLOSC2_MAXDICTSIZE = 32 * 1024,
  /** Smallest dictionary worth using. */
  BLOSC2_MINUSEFULDICT = 256,
  /** Largest block. */
  BLOSC2_MAXBLOCKSIZE = 536866816,
  /** Largest item. */
  BLOSC2_MAXTYPESIZE = BLOSC2_MAXBLOCKSIZE
};

/** Ranges of codec identifiers. */
enum {
  /** Of the library. */
  BLOSC2_DEFINED_CODECS_START = 0,
  BLOSC2_DEFINED_CODECS_STOP = 31,
  /** Registered with the Blosc developers. */
  BLOSC2_GLOBAL_REGISTERED_CODECS_START = 32,
  BLOSC2_GLOBAL_REGISTERED_CODECS_STOP = 159,
  /** How many of those the library counts as its own. */
  BLOSC2_GLOBAL_REGISTERED_CODECS = 5,
  /** Of the application. */
  BLOSC2_USER_REGISTERED_CODECS_START = 160,
  BLOSC2_USER_REGISTERED_CODECS_STOP = 255
};

/** Codecs. */
enum {
#ifndef BLOSC_H
  BLOSC_BLOSCLZ = 0,
  BLOSC_LZ4 = 1,
  BLOSC_LZ4HC = 2,
  BLOSC_ZLIB = 4,
  BLOSC_ZSTD = 5,
#endif
  /** One more than the last codec of the library. */
  BLOSC_LAST_CODEC = 6,
  /** The last registered codec. */
  BLOSC_LAST_REGISTERED_CODEC = BLOSC2_GLOBAL_REGISTERED_CODECS_START + BLOSC2_GLOBAL_REGISTERED_CODECS - 1
};

#ifndef BLOSC_H
/** Names of the codecs. */
#define BLOSC_BLOSCLZ_COMPNAME "blosclz"
#define BLOSC_LZ4_COMPNAME "lz4"
#define BLOSC_LZ4HC_COMPNAME "lz4hc"
#define BLOSC_ZLIB_COMPNAME "zlib"
#define BLOSC_ZSTD_COMPNAME "zstd"
#endif

/** Libraries behind the codecs; what a chunk's flags name. */
enum {
#ifndef BLOSC_H
  BLOSC_BLOSCLZ_LIB = 0,
  BLOSC_LZ4_LIB = 1,
  BLOSC_ZLIB_LIB = 3,
  BLOSC_ZSTD_LIB = 4,
#endif
  /** Registered codecs. */
  BLOSC_UDCODEC_LIB = 6,
  /** In headers of super-chunks. */
  BLOSC_SCHUNK_LIB = 7
};

#ifndef BLOSC_H
/** Names of the libraries. */
#define BLOSC_BLOSCLZ_LIBNAME "BloscLZ"
#define BLOSC_LZ4_LIBNAME "LZ4"
#define BLOSC_ZLIB_LIBNAME "Zlib"
#define BLOSC_ZSTD_LIBNAME "Zstd"
#endif

/** Stream formats; LZ4 and LZ4HC share one. */
enum {
#ifndef BLOSC_H
  BLOSC_BLOSCLZ_FORMAT = BLOSC_BLOSCLZ_LIB,
  BLOSC_LZ4_FORMAT = BLOSC_LZ4_LIB,
  BLOSC_LZ4HC_FORMAT = BLOSC_LZ4_LIB,
  BLOSC_ZLIB_FORMAT = BLOSC_ZLIB_LIB,
  BLOSC_ZSTD_FORMAT = BLOSC_ZSTD_LIB,
#endif
  BLOSC_UDCODEC_FORMAT = BLOSC_UDCODEC_LIB
};

/** Versions of the stream formats. */
enum {
#ifndef BLOSC_H
  BLOSC_BLOSCLZ_VERSION_FORMAT = 1,
  BLOSC_LZ4_VERSION_FORMAT = 1,
  BLOSC_LZ4HC_VERSION_FORMAT = 1,
  BLOSC_ZLIB_VERSION_FORMAT = 1,
  BLOSC_ZSTD_VERSION_FORMAT = 1,
#endif
  BLOSC_UDCODEC_VERSION_FORMAT = 1
};

#ifndef BLOSC_H
/** Whether blocks are split in one stream per byte of an item. */
enum {
  BLOSC_ALWAYS_SPLIT = 1,
  BLOSC_NEVER_SPLIT = 2,
  /** By codec, level and filters. */
  BLOSC_AUTO_SPLIT = 3,
  /** As old releases of Blosc did; the default. */
  BLOSC_FORWARD_COMPAT_SPLIT = 4
};
#endif

/** Byte offsets in the header of a chunk. */
enum {
  /** Version of the chunk format. */
  BLOSC2_CHUNK_VERSION = 0x0,
  /** Version of the stream format. */
  BLOSC2_CHUNK_VERSIONLZ = 0x1,
  /** Flags and stream format. */
  BLOSC2_CHUNK_FLAGS = 0x2,
  /** Bytes per item (uint8). */
  BLOSC2_CHUNK_TYPESIZE = 0x3,
  /** Uncompressed bytes (int32). */
  BLOSC2_CHUNK_NBYTES = 0x4,
  /** Bytes per block (int32). */
  BLOSC2_CHUNK_BLOCKSIZE = 0x8,
  /** Compressed bytes, with this header (int32). */
  BLOSC2_CHUNK_CBYTES = 0xc,
  /** Filters. */
  BLOSC2_CHUNK_FILTER_CODES = 0x10,
  /** Meta bytes of the filters. */
  BLOSC2_CHUNK_FILTER_META = 0x18,
  /** Second Blosc 2 flags. */
  BLOSC2_CHUNK_BLOSC2_FLAGS2 = 0x1e,
  /** Blosc 2 flags. */
  BLOSC2_CHUNK_BLOSC2_FLAGS = 0x1f
};

/** Chunks without data, by what they stand for. */
enum {
  /** A chunk with data. */
  BLOSC2_NO_SPECIAL = 0x0,
  /** Zeros. */
  BLOSC2_SPECIAL_ZERO = 0x1,
  /** NaNs. */
  BLOSC2_SPECIAL_NAN = 0x2,
  /** One item, repeated. */
  BLOSC2_SPECIAL_VALUE = 0x3,
  /** Any bytes. */
  BLOSC2_SPECIAL_UNINIT = 0x4,
  /** The last of them. */
  BLOSC2_SPECIAL_LASTID = 0x4,
  /** The bits that hold them, after a shift to the right by 4. */
  BLOSC2_SPECIAL_MASK = 0x7
};

/* ---- Start and end; threads ---- */

/**
 * Initialises the library. Calling it is optional, and calling it more than once does nothing.
 *
 * After `blosc2_destroy` it forgets the codecs, filters and tuners that were registered before.
 */
BLOSC_EXPORT void blosc2_init(void);

/**
 * Ends the library's threads, and releases memory that was kept for later calls. One call undoes any number of calls
 * of `blosc2_init`; contexts that are still alive can be used and released all the same.
 */
BLOSC_EXPORT
void blosc2_destroy(void);

/**
 * Releases the threads of the functions without context; they come back on demand. Returns 0, or -1 if the library is
 * not initialised.
 */
BLOSC_EXPORT
int blosc2_free_resources(void);

/**
 * Runs `numjobs` calls of `dojob`, in any order and on any threads, and returns when all are done.
 *
 * Job `i` is the call `dojob((char *)jobdata + i * jobdata_elsize)`.
 */
typedef void (*blosc_threads_callback)(void *callback_data,
                                       void (*dojob)(void*),
                                       int numjobs,
                                       size_t jobdata_elsize,
                                       void *jobdata);

/**
 * Lets the application run the parallel parts of all operations; NULL goes back to the library's own threads.
 *
 * Requirements:
 *
 * `callback` fulfils its contract from now on, from any thread, with `callback_data`.
 */
BLOSC_EXPORT void blosc2_set_threads_callback(blosc_threads_callback callback, void *callback_data);

/**
 * The number of threads of the functions without context.
 */
BLOSC_EXPORT int16_t blosc2_get_nthreads(void);

/**
 * Sets the number of threads of the functions without context, at least 1; returns the previous one, or a negative
 * code.
 */
BLOSC_EXPORT
int16_t blosc2_set_nthreads(int16_t nthreads);

/* ---- Compression with global settings ---- */

/**
 * As `blosc2_compress`, with sizes as `size_t`.
 *
 * Requirements:
 *
 * As for `blosc2_compress`.
 */
BLOSC_EXPORT
int blosc1_compress(int clevel,
                    int doshuffle,
                    size_t typesize,
                    size_t nbytes,
                    const void *src,
                    void *dest,
                    size_t destsize);

/**
 * As `blosc2_decompress`, trusting the header of the chunk for its size.
 *
 * Requirements:
 *
 * `src` points to a whole chunk, and `dest` is writable for `destsize` bytes; the two do not overlap.
 */
BLOSC_EXPORT int blosc1_decompress(const void *src, void *dest, size_t destsize);

/**
 * As `blosc2_getitem`, trusting the header of the chunk for its size, and `dest` to be large enough.
 *
 * Requirements:
 *
 * `src` points to a whole chunk, and `dest` is writable for `nitems` items; the two do not overlap.
 */
BLOSC_EXPORT int blosc1_getitem(const void *src, int start, int nitems, void *dest);

/**
 * Compresses `srcsize` bytes at `src` into `dest` with the settings of the process.
 *
 * `doshuffle` is 0 (no filter), 1 (byte shuffle) or 2 (bit shuffle). Environment variables override arguments and
 * settings. Returns the size of the chunk, 0 if it does not fit (`srcsize + BLOSC2_MAX_OVERHEAD` bytes always do), or
 * a negative code.
 *
 * Requirements:
 *
 * `src` is readable for `srcsize` bytes and `dest` writable for `destsize`; the two do not overlap.
 */
BLOSC_EXPORT
int blosc2_compress(int clevel,
                    int doshuffle,
                    int32_t typesize,
                    const void *src,
                    int32_t srcsize,
                    void *dest,
                    int32_t destsize);

/**
 * Decompresses the chunk `src` into `dest`; returns the bytes written, or a negative code.
 *
 * Requirements:
 *
 * `src` is readable for `srcsize` bytes and `dest` writable for `destsize`; the two do not overlap.
 */
BLOSC_EXPORT int blosc2_decompress(const void *src, int32_t srcsize, void *dest, int32_t destsize);

/**
 * Decompresses `nitems` items of the chunk `src`, from item `start` on; returns the bytes written, or a negative code.
 *
 * Requirements:
 *
 * `src` is readable for `srcsize` bytes and `dest` writable for `destsize`; the two do not overlap.
 */
BLOSC_EXPORT
int blosc2_getitem(const void *src,
                   int32_t srcsize,
                   int start,
                   int nitems,
                   void *dest,
                   int32_t destsize);

/**
 * The name of the codec that the functions without context use.
 */
BLOSC_EXPORT const char *blosc1_get_compressor(void);

/**
 * Chooses the codec of the functions without context; returns its code, or a negative one for names that they cannot
 * use. Then the codec stays what it was.
 *
 * Requirements:
 *
 * `compname` is NULL or a string.
 */
BLOSC_EXPORT
int blosc1_set_compressor(const char *compname);

/**
 * Switches the delta filter of the functions without context on or off.
 */
BLOSC_EXPORT void blosc2_set_delta(int dodelta);

/**
 * The block size set with `blosc1_set_blocksize`; 0 means automatic.
 */
BLOSC_EXPORT int blosc1_get_blocksize(void);

/**
 * Forces a block size, in bytes, on the functions without context; 0 makes it automatic again.
 */
BLOSC_EXPORT void blosc1_set_blocksize(size_t blocksize);

/**
 * Sets the split mode of the functions without context, one of `BLOSC_ALWAYS_SPLIT` and its like.
 */
BLOSC_EXPORT void blosc1_set_splitmode(int splitmode);

/* ---- Facts about the library ---- */

/**
 * Stores the name of a codec in `*compname` and returns its code; an unknown one gives -1 and NULL, and one without a
 * name NULL.
 *
 * Requirements:
 *
 * `compname` is NULL or writable.
 */
BLOSC_EXPORT
int blosc2_compcode_to_compname(int compcode,
                                const char **compname);

/**
 * The code of the codec `compname`, or -1.
 *
 * Requirements:
 *
 * `compname` is NULL or a string.
 */
BLOSC_EXPORT int blosc2_compname_to_compcode(const char *compname);

/**
 * The names of the built-in codecs, separated by commas.
 */
BLOSC_EXPORT const char *blosc2_list_compressors(void);

/**
 * The version of the C API that this library implements.
 */
BLOSC_EXPORT const char *blosc2_get_version_string(void);

/**
 * Tells which library implements the codec `compname`, and its version.
 *
 * Both strings are to be released with `free()`; either pointer may be NULL. Returns the code of the library, or -1
 * for an unknown codec, whose strings are NULL.
 *
 * Requirements:
 *
 * `compname` is NULL or a string; `complib` and `version` are NULL or writable.
 */
BLOSC_EXPORT
int blosc2_get_complib_info(const char *compname,
                            char **complib,
                            char **version);

/* ---- Facts about a chunk ---- */

/**
 * Stores the sizes that a chunk's header tells; zeros for a bad header.
 *
 * Requirements:
 *
 * `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
 */
BLOSC_EXPORT
void blosc1_cbuffer_sizes(const void *cbuffer,
                          size_t *nbytes,
                          size_t *cbytes,
                          size_t *blocksize);

/**
 * Stores the sizes that a chunk's header tells, and returns 0; zeros and a negative code for a bad header.
 *
 * For chunks of variable-length blocks, `*blocksize` is the number of blocks.
 *
 * Requirements:
 *
 * `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
 */
BLOSC_EXPORT
int blosc2_cbuffer_sizes(const void *cbuffer,
                         int32_t *nbytes,
                         int32_t *cbytes,
                         int32_t *blocksize);

/**
 * Checks the header of a chunk of `cbytes` bytes and stores its uncompressed size; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `cbuffer` is readable for `cbytes` bytes; `nbytes` is NULL or writable.
 */
BLOSC_EXPORT
int blosc1_cbuffer_validate(const void *cbuffer,
                            size_t cbytes,
                            size_t *nbytes);

/**
 * Stores typesize and flags of a chunk; zeros for a bad header.
 *
 * Requirements:
 *
 * `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
 */
BLOSC_EXPORT void blosc1_cbuffer_metainfo(const void *cbuffer, size_t *typesize, int *flags);

/**
 * Stores the versions of a chunk's format and of its codec's format; zeros for a bad header.
 *
 * Requirements:
 *
 * `cbuffer` is readable for 16 bytes; the other pointers are NULL or writable.
 */
BLOSC_EXPORT void blosc2_cbuffer_versions(const void *cbuffer, int *version, int *versionlz);

/**
 * The name of the library that compressed a chunk; NULL if it is not known.
 *
 * A chunk of a registered codec says no more than that it is of one; the name is that of a codec that was registered
 * with the number of this format, 6, as its library, or NULL.
 *
 * Requirements:
 *
 * `cbuffer` is readable for 16 bytes.
 */
BLOSC_EXPORT
const char *blosc2_cbuffer_complib(const void *cbuffer);

/**
 * Stores the number of blocks of a chunk of variable-length blocks in `*nblocks`; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `src` is NULL or readable for `srcsize` bytes; `nblocks` is NULL or writable.
 */
BLOSC_EXPORT
int blosc2_vlchunk_get_nblocks(const void *src,
                               int32_t srcsize,
                               int32_t *nblocks);

/* ---- I/O back-ends ---- */

/** I/O back-ends. */
enum {
  /** Plain files. */
  BLOSC2_IO_FILESYSTEM = 0,
  /** Memory-mapped files. */
  BLOSC2_IO_FILESYSTEM_MMAP = 1,
  /** One more than the last back-end of the library. */
  BLOSC_IO_LAST_BLOSC_DEFINED = 2,
  /** One more than the last back-end registered with the Blosc developers. */
  BLOSC_IO_LAST_REGISTERED = 32
};

/** Ends of the ranges of back-end identifiers. */
enum {
  /** Of the library. */
  BLOSC2_IO_BLOSC_DEFINED = 32,
  /** Registered with the Blosc developers. */
  BLOSC2_IO_REGISTERED = 160,
  /** Of the application. */
  BLOSC2_IO_USER_DEFINED = 256
};

/**
 * Opens `urlpath` in the `fopen` mode `mode`; returns a stream, or NULL.
 */
typedef void *(*blosc2_open_cb)(const char *urlpath, const char *mode, void *params);

/**
 * Closes `stream`; returns 0, or another value on failure.
 */
typedef int (*blosc2_close_cb)(void *stream);

/**
 * The size of the file behind `stream` in bytes, or a negative value.
 */
typedef int64_t (*blosc2_size_cb)(void *stream);

/**
 * Writes `nitems` items of `size` bytes at byte `position`; returns the number of items written.
 */
typedef int64_t (*blosc2_write_cb)(const void *ptr,
                                   int64_t size,
                                   int64_t nitems,
                                   int64_t position,
                                   void *stream);

/**
 * Reads `nitems` items of `size` bytes at byte `position`; returns the number of items read.
 *
 * `*ptr` is the buffer to fill if the back-end's `is_allocation_necessary` is set; otherwise the callback stores
 * there the address of memory of its own that holds the bytes.
 */
typedef int64_t (*blosc2_read_cb)(void **ptr, int64_t size, int64_t nitems, int64_t position, void *stream);

/**
 * Cuts or extends the file to `size` bytes; returns 0, or another value on failure.
 */
typedef int (*blosc2_truncate_cb)(void *stream, int64_t size);

/**
 * Called with the `params` of a `blosc2_io` when its super-chunk is freed, when nothing can be opened with it, and when
 * an array cannot be filled; returns 0, or a negative value. When a super-chunk cannot be made or copied, for instance
 * because something exists at its path, `params` stay the caller's.
 */
typedef int (*blosc2_destroy_cb)(void *params);

/**
 * An I/O back-end: the callbacks behind one identifier.
 */
typedef struct blosc2_io_cb {
  /**
   * The identifier, as in `blosc2_io`.
   */
  uint8_t id;
  /**
   * A name for messages.
   */
  char *name;
  /**
   * Whether `read` fills a buffer of the caller (true) or lends memory of its own (false).
   */
  bool is_allocation_necessary;
  /**
   * Opens a file.
   */
  blosc2_open_cb open;
  /**
   * Closes a stream.
   */
  blosc2_close_cb close;
  /**
   * The size of a file.
   */
  blosc2_size_cb size;
  /**
   * Writes at a position.
   */
  blosc2_write_cb write;
  /**
   * Reads at a position.
   */
  blosc2_read_cb read;
  /**
   * Sets the size of a file.
   */
  blosc2_truncate_cb truncate;
  /**
   * Called when the super-chunk is freed, or cannot be opened.
   */
  blosc2_destroy_cb destroy;
} blosc2_io_cb;

/**
 * Which I/O back-end to use, and its parameters.
 */
typedef struct blosc2_io {
  /**
   * The identifier of the back-end.
   */
  uint8_t id;
  /**
   * Informational; never read.
   */
  const char *name;
  /**
   * Handed to the back-end's `open` and `destroy`.
   */
  void *params;
} blosc2_io;

/** The defaults of `blosc2_io`: plain files. */
static const blosc2_io BLOSC2_IO_DEFAULTS = {BLOSC2_IO_FILESYSTEM, "filesystem", NULL};

/**
 * Registers an I/O back-end; its id must be at least 160. The struct is copied, its name is not. The registration
 * outlives `blosc2_destroy`.
 *
 * Returns 0, also if the id is already registered under this name (then nothing changes), or a negative code.
 *
 * Requirements:
 *
 * `io` is NULL or valid, its callbacks fulfil their contracts. If its id is registered already, both names are NULL or
 * strings.
 */
BLOSC_EXPORT
int blosc2_register_io_cb(const struct blosc2_io_cb *io);

/**
 * The I/O back-end with this identifier, or NULL. It belongs to the library.
 */
BLOSC_EXPORT struct blosc2_io_cb *blosc2_get_io_cb(uint8_t id);

/* ---- Contexts: compression with settings of their own ---- */

/** A compression or decompression context. One thread at a time may use it. */
typedef struct blosc2_context_s blosc2_context;

/**
 * A tuner: chooses block sizes and compression parameters as chunks come along.
 *
 * All callbacks return 0, or a negative code.
 */
typedef struct blosc2_tuner {
  /**
   * Prepares the tuner. `config` is only valid during the call; `dctx` may be NULL.
   */
  int (*init)(void *config, blosc2_context *cctx, blosc2_context *dctx);
  /**
   * Chooses the block size of the next chunk; the only callback used while the tuner is not initialised.
   */
  int (*next_blocksize)(blosc2_context *context);
  /**
   * Chooses the compression parameters of the next chunk.
   */
  int (*next_cparams)(blosc2_context *context);
  /**
   * Learns how long the last compression took, in seconds.
   */
  int (*update)(blosc2_context *context, double ctime);
  /**
   * Releases what `init` made.
   */
  int (*free)(blosc2_context *context);
  /**
   * The identifier.
   */
  int id;
  /**
   * The name, also that of the plugin `libblosc2_<name>`.
   */
  char *name;
} blosc2_tuner;

/**
 * Registers a tuner; its id must be at least 160. The struct is copied, its name is not. If a callback is NULL, the
 * plugin `blosc2_<name>` is loaded when it is first needed.
 *
 * Returns 0, also if the id is already registered under this name (then nothing changes), or a negative code.
 *
 * Requirements:
 *
 * `tuner` is NULL or valid, its callbacks fulfil their contracts. If its id is registered already or a callback is
 * NULL, its name is NULL or a string.
 */
BLOSC_EXPORT
int blosc2_register_tuner(struct blosc2_tuner *tuner);

/**
 * What a prefilter gets for each block.
 */
typedef struct blosc2_prefilter_params {
  /**
   * From the `preparams` of the compression parameters.
   */
  void *user_data;
  /**
   * The bytes of this block in the source buffer.
   */
  const uint8_t *input;
  /**
   * Where the prefilter puts the bytes of this block.
   */
  uint8_t *output;
  /**
   * Bytes to put there.
   */
  int32_t output_size;
  /**
   * Bytes per item.
   */
  int32_t output_typesize;
  /**
   * Where this block begins in the chunk, in bytes.
   */
  int32_t output_offset;
  /**
   * The number of the chunk in its super-chunk, or -1.
   */
  int64_t nchunk;
  /**
   * The number of the block in its chunk.
   */
  int32_t nblock;
  /**
   * The number of the thread that makes the call, from 0.
   */
  int32_t tid;
  /**
   * Scratch memory of this thread that can hold a few blocks.
   */
  uint8_t *ttmp;
  /**
   * Bytes of scratch memory.
   */
  size_t ttmp_nbytes;
  /**
   * The compression context.
   */
  blosc2_context *ctx;
  /**
   * Set if the result is not going to be stored, as when only block sizes are tried.
   */
  bool output_is_disposable;
} blosc2_prefilter_params;

/**
 * What a postfilter gets for each block.
 */
typedef struct blosc2_postfilter_params {
  /**
   * From the `postparams` of the decompression parameters.
   */
  void *user_data;
  /**
   * The decompressed bytes of this block.
   */
  const uint8_t *input;
  /**
   * Where the postfilter puts its result.
   */
  uint8_t *output;
  /**
   * Bytes of input and output.
   */
  int32_t size;
  /**
   * Bytes per item.
   */
  int32_t typesize;
  /**
   * Where this block begins in the chunk, in bytes.
   */
  int32_t offset;
  /**
   * The number of the chunk in its super-chunk, or -1.
   */
  int64_t nchunk;
  /**
   * The number of the block in its chunk.
   */
  int32_t nblock;
  /**
   * The number of the thread that makes the call, from 0.
   */
  int32_t tid;
  /**
   * Scratch memory of this thread that can hold a few blocks.
   */
  uint8_t *ttmp;
  /**
   * Bytes of scratch memory.
   */
  size_t ttmp_nbytes;
  /**
   * The decompression context.
   */
  blosc2_context *ctx;
} blosc2_postfilter_params;

/**
 * Computes the bytes to compress of one block; returns 0, or a non-zero value to make the compression fail.
 */
typedef int (*blosc2_prefilter_fn)(struct blosc2_prefilter_params *params);

/**
 * Turns one decompressed block into the bytes to hand out; returns 0, or a non-zero value to make the
 * decompression fail.
 */
typedef int (*blosc2_postfilter_fn)(struct blosc2_postfilter_params *params);

/**
 * The parameters of compression. Start from `BLOSC2_CPARAMS_DEFAULTS`.
 */
typedef struct blosc2_cparams {
  /**
   * The codec.
   */
  uint8_t compcode;
  /**
   * A byte for the codec: its meaning depends on it.
   */
  uint8_t compcode_meta;
  /**
   * The compression level, 0 (store) to 9.
   */
  uint8_t clevel;
  /**
   * Non-zero to use a dictionary, with zstd, lz4 and lz4hc.
   */
  int use_dict;
  /**
   * Bytes per item.
   */
  int32_t typesize;
  /**
   * Number of threads.
   */
  int16_t nthreads;
  /**
   * Requested block size in bytes; 0 for automatic.
   */
  int32_t blocksize;
  /**
   * Whether blocks are split into one stream per byte of an item: one of the `BLOSC_*_SPLIT` constants.
   */
  int32_t splitmode;
  /**
   * The associated super-chunk, or NULL.
   */
  void *schunk;
  /**
   * The filters, applied from first to last; 0 is none.
   */
  uint8_t filters[BLOSC2_MAX_FILTERS];
  /**
   * A byte for each filter: its meaning depends on the filter.
   */
  uint8_t filters_meta[BLOSC2_MAX_FILTERS];
  /**
   * Called for each block before the filters, or NULL.
   */
  blosc2_prefilter_fn prefilter;
  /**
   * The prefilter's parameters.
   */
  struct blosc2_prefilter_params *preparams;
  /**
   * The tuner's configuration.
   */
  void *tuner_params;
  /**
   * The tuner.
   */
  int tuner_id;
  /**
   * Whether blocks hold measurements (`blosc2_instr`) instead of data.
   */
  bool instr_codec;
  /**
   * For a registered codec.
   */
  void *codec_params;
  /**
   * For registered filters.
   */
  void *filter_params[BLOSC2_MAX_FILTERS];
} blosc2_cparams;

/** The defaults of `blosc2_cparams`: BloscLZ, level 5, byte shuffle, items of 8 bytes, one thread. */
static const blosc2_cparams BLOSC2_CPARAMS_DEFAULTS = {
    BLOSC_BLOSCLZ, 0, 5, 0, 8, 1, 0, BLOSC_FORWARD_COMPAT_SPLIT, NULL,
    {0, 0, 0, 0, 0, BLOSC_SHUFFLE}, {0, 0, 0, 0, 0, 0},
    NULL, NULL, NULL, 0, false, NULL, {NULL, NULL, NULL, NULL, NULL, NULL}
};

/**
 * The parameters of decompression. Start from `BLOSC2_DPARAMS_DEFAULTS`.
 */
typedef struct blosc2_dparams {
  /**
   * Number of threads.
   */
  int16_t nthreads;
  /**
   * The associated super-chunk, or NULL.
   */
  void *schunk;
  /**
   * Called for each block after the filters, or NULL.
   */
  blosc2_postfilter_fn postfilter;
  /**
   * The postfilter's parameters.
   */
  struct blosc2_postfilter_params *postparams;
  /**
   * Bytes per item.
   */
  int32_t typesize;
} blosc2_dparams;

/** The defaults of `blosc2_dparams`: one thread. */
static const blosc2_dparams BLOSC2_DPARAMS_DEFAULTS = {1, NULL, NULL, NULL, 8};

/**
 * Creates a context for compression with the parameters `cparams`.
 *
 * The environment variables `BLOSC_CLEVEL`, `BLOSC_SHUFFLE`, `BLOSC_DELTA`, `BLOSC_TYPESIZE`, `BLOSC_COMPRESSOR`,
 * `BLOSC_BLOCKSIZE`, `BLOSC_NTHREADS` and `BLOSC_SPLITMODE` override parameters. Returns NULL for reserved filter ids
 * and for unknown or failing tuners. Release it with `blosc2_free_ctx`.
 *
 * Requirements:
 *
 * The pointers in `cparams` are NULL or valid for as long as the context is used, `preparams` during this call.
 */
BLOSC_EXPORT
blosc2_context *blosc2_create_cctx(struct blosc2_cparams cparams);

/**
 * Creates a context for decompression with the parameters `dparams`. Release it with `blosc2_free_ctx`.
 *
 * Requirements:
 *
 * The pointers in `dparams` are NULL or valid for as long as the context is used, `postparams` during this call.
 */
BLOSC_EXPORT
blosc2_context *blosc2_create_dctx(struct blosc2_dparams dparams);

/**
 * Releases a context; NULL is ignored.
 *
 * Requirements:
 *
 * `context` is NULL or comes from `blosc2_create_cctx` or `blosc2_create_dctx` and is not used any more.
 */
BLOSC_EXPORT void blosc2_free_ctx(blosc2_context *context);

/**
 * Stores the parameters of a context for compression in `*cparams`; returns 0, or a negative code.
 *
 * After a compression, block size and typesize are those that were used.
 *
 * Requirements:
 *
 * `ctx` is NULL or a valid context that no other thread is using; `cparams` is NULL or writable.
 */
BLOSC_EXPORT int blosc2_ctx_get_cparams(blosc2_context *ctx, struct blosc2_cparams *cparams);

/**
 * Stores the parameters of a context for decompression in `*dparams`; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `ctx` is NULL or a valid context that no other thread is using; `dparams` is NULL or writable.
 */
BLOSC_EXPORT int blosc2_ctx_get_dparams(blosc2_context *ctx, struct blosc2_dparams *dparams);

/**
 * Sets a mask of blocks to skip in the next call of `blosc2_decompress_ctx`, which uses it up. If the context is the
 * `dctx` of a super-chunk, so does the next chunk that `blosc2_schunk_decompress_chunk` or
 * `blosc2_schunk_get_slice_buffer` reads as a whole; reading parts of chunks goes on without it.
 *
 * `maskout` holds one flag for each of the `nblocks` blocks; true skips the block, whose bytes in the destination stay
 * as they are. It is copied. Returns 0, or a negative code.
 *
 * Requirements:
 *
 * `ctx` is NULL or a valid context that no other thread is using; `maskout` is readable for `nblocks` flags.
 */
BLOSC_EXPORT
int blosc2_set_maskout(blosc2_context *ctx,
                       bool *maskout,
                       int nblocks);

/**
 * Compresses `srcsize` bytes at `src` into `dest`, of `destsize` bytes.
 *
 * Returns the size of the chunk, 0 if it does not fit (`srcsize + BLOSC2_MAX_OVERHEAD` bytes always do), or a negative
 * code. With a prefilter, `src` may be NULL.
 *
 * Requirements:
 *
 * `context` is NULL or a valid context that no other thread is using. `src` is NULL or readable for `srcsize` bytes
 * and `dest` writable for `destsize`; the two do not overlap.
 */
BLOSC_EXPORT
int blosc2_compress_ctx(blosc2_context *context,
                        const void *src,
                        int32_t srcsize,
                        void *dest,
                        int32_t destsize);

/**
 * Decompresses the chunk `src` into `dest`; returns the bytes written, or a negative code.
 *
 * `srcsize` may exceed the size of the chunk.
 *
 * Requirements:
 *
 * `context` is NULL or a valid context that no other thread is using. `src` is readable for `srcsize` bytes and `dest`
 * writable for `destsize`; the two do not overlap.
 */
BLOSC_EXPORT
int blosc2_decompress_ctx(blosc2_context *context,
                          const void *src,
                          int32_t srcsize,
                          void *dest,
                          int32_t destsize);

/**
 * Decompresses `nitems` items of the chunk `src`, from item `start` on, into `dest`.
 *
 * Items have the typesize that the chunk records: bytes, if the original one was above 255. Returns the number of
 * bytes written, or a negative code.
 *
 * Requirements:
 *
 * `context` is NULL or a valid context, of either kind, that no other thread is using. `src` is readable for `srcsize`
 * bytes and `dest` writable for `destsize`; the two do not overlap.
 */
BLOSC_EXPORT
int blosc2_getitem_ctx(blosc2_context *context,
                       const void *src,
                       int32_t srcsize,
                       int start,
                       int nitems,
                       void *dest,
                       int32_t destsize);

/**
 * As `blosc2_getitem_ctx`, with `start` and `nbytes` in bytes, which must be whole items.
 *
 * Requirements:
 *
 * As for `blosc2_getitem_ctx`.
 */
BLOSC_EXPORT
int blosc2_getitem_bytes_ctx(blosc2_context *context,
                             const void *src,
                             int32_t srcsize,
                             int32_t start,
                             int32_t nbytes,
                             void *dest,
                             int32_t destsize);

/**
 * Compresses `nblocks` buffers into one chunk, each as a block of its own length.
 *
 * `srcs[i]` points to `srcsizes[i]` bytes, at least one. Returns the size of the chunk, 0 if it does not fit, or a
 * negative code.
 *
 * Requirements:
 *
 * `context` is NULL or a valid context that no other thread is using. `srcs` and `srcsizes` hold `nblocks` entries,
 * and `dest` is writable for `destsize` bytes and overlaps with none of the sources.
 */
BLOSC_EXPORT
int blosc2_vlcompress_ctx(blosc2_context *context,
                          const void *const *srcs,
                          const int32_t *srcsizes,
                          int32_t nblocks,
                          void *dest,
                          int32_t destsize);

/**
 * Decompresses each block of a chunk of variable-length blocks into memory of its own.
 *
 * `dests[i]` and `destsizes[i]` receive block `i`; release the blocks with `free()`. Returns the number of blocks, at
 * most `maxblocks`, or a negative code. If a block cannot be decompressed, `dests[i]` of all blocks is NULL; where the
 * call is refused before, nothing is written.
 *
 * Requirements:
 *
 * `context` is NULL or a valid context that no other thread is using. `src` is readable for `srcsize` bytes, `dests`
 * and `destsizes` are writable for `maxblocks` entries.
 */
BLOSC_EXPORT
int blosc2_vldecompress_ctx(blosc2_context *context,
                            const void *src,
                            int32_t srcsize,
                            void **dests,
                            int32_t *destsizes,
                            int32_t maxblocks);

/**
 * Decompresses block `nblock` of a chunk of variable-length blocks.
 *
 * `*dest` and `*destsize` receive the block; release it with `free()`. Returns its size, or a negative code.
 *
 * Requirements:
 *
 * `context` is NULL or a valid context that no other thread is using. `src` is readable for `srcsize` bytes; `dest`
 * and `destsize` are NULL or writable.
 */
BLOSC_EXPORT
int blosc2_vldecompress_block_ctx(blosc2_context *context,
                                  const void *src,
                                  int32_t srcsize,
                                  int32_t nblock,
                                  uint8_t **dest,
                                  int32_t *destsize);

/**
 * Writes a chunk of `nbytes` zeros to `dest`; returns its size, 32 bytes, or a negative code.
 *
 * Requirements:
 *
 * `dest` is writable for `destsize` bytes.
 */
BLOSC_EXPORT
int blosc2_chunk_zeros(struct blosc2_cparams cparams,
                       int32_t nbytes,
                       void *dest,
                       int32_t destsize);

/**
 * Writes a chunk of `nbytes` bytes of NaNs, of 4 or 8 bytes each, to `dest`; with another typesize, nobody can
 * decompress it. Returns its size, 32 bytes, or a negative code.
 *
 * Requirements:
 *
 * `dest` is writable for `destsize` bytes.
 */
BLOSC_EXPORT
int blosc2_chunk_nans(struct blosc2_cparams cparams,
                      int32_t nbytes,
                      void *dest,
                      int32_t destsize);

/**
 * Writes a chunk of `nbytes` bytes that repeat the item at `repeatval` to `dest`; returns its size, 32 bytes and one
 * item, or a negative code.
 *
 * Requirements:
 *
 * `dest` is writable for `destsize` bytes; `repeatval` is readable for one item of `cparams.typesize` bytes.
 */
BLOSC_EXPORT
int blosc2_chunk_repeatval(struct blosc2_cparams cparams,
                           int32_t nbytes,
                           void *dest,
                           int32_t destsize,
                           const void *repeatval);

/**
 * Writes a chunk of `nbytes` bytes without contents to `dest`; returns its size, 32 bytes, or a negative code.
 *
 * Decompressing it leaves the destination as it is.
 *
 * Requirements:
 *
 * `dest` is writable for `destsize` bytes.
 */
BLOSC_EXPORT
int blosc2_chunk_uninit(struct blosc2_cparams cparams,
                        int32_t nbytes,
                        void *dest,
                        int32_t destsize);

/* ---- Super-chunks ---- */

/** Most metalayers of a super-chunk, and the longest name of one. */
#define BLOSC2_MAX_METALAYERS 16
#define BLOSC2_METALAYER_NAME_MAXLEN 31
/** The same for metalayers of variable length, in lists of chunks; frames take 16 of them. */
#define BLOSC2_MAX_VLMETALAYERS (8 * 1024)
#define BLOSC2_VLMETALAYERS_NAME_MAXLEN BLOSC2_METALAYER_NAME_MAXLEN

/**
 * Where and how a super-chunk is stored. Start from `BLOSC2_STORAGE_DEFAULTS`.
 */
typedef struct blosc2_storage {
  /**
   * One contiguous frame (true), or chunks apart from each other (false).
   */
  bool contiguous;
  /**
   * The file (contiguous) or directory (sparse), or NULL for memory.
   */
  char *urlpath;
  /**
   * The compression parameters, or NULL for the defaults.
   */
  struct blosc2_cparams *cparams;
  /**
   * The decompression parameters, or NULL for the defaults.
   */
  struct blosc2_dparams *dparams;
  /**
   * The I/O back-end, or NULL for plain files.
   */
  struct blosc2_io *io;
} blosc2_storage;

/** The defaults of `blosc2_storage`: sparse, in memory. */
static const blosc2_storage BLOSC2_STORAGE_DEFAULTS = {false, NULL, NULL, NULL, NULL};

/**
 * The default compression parameters.
 */
BLOSC_EXPORT struct blosc2_cparams blosc2_get_blosc2_cparams_defaults(void);

/**
 * The default decompression parameters.
 */
BLOSC_EXPORT struct blosc2_dparams blosc2_get_blosc2_dparams_defaults(void);

/**
 * The default storage properties.
 */
BLOSC_EXPORT struct blosc2_storage blosc2_get_blosc2_storage_defaults(void);

/**
 * The default I/O back-end: plain files.
 */
BLOSC_EXPORT struct blosc2_io blosc2_get_blosc2_io_defaults(void);

/**
 * `BLOSC2_STDIO_MMAP_DEFAULTS`.
 */
BLOSC_EXPORT struct blosc2_stdio_mmap blosc2_get_blosc2_stdio_mmap_defaults(void);

/** A frame. */
typedef struct blosc2_frame_s blosc2_frame;

/**
 * A named piece of metadata.
 *
 * Of those that a super-chunk shows, programs may change contents, in place or in other memory from `malloc`, and
 * names; calls that use metalayers look for that.
 */
typedef struct blosc2_metalayer {
  /**
   * The name, at most 31 bytes.
   */
  char *name;
  /**
   * The content.
   */
  uint8_t *content;
  /**
   * Bytes of content.
   */
  int32_t content_len;
} blosc2_metalayer;

/**
 * A super-chunk: a sequence of chunks with the same parameters, and metadata.
 *
 * Made by `blosc2_schunk_new` and its like only. Treat the fields as read-only, apart from `cctx` and `dctx`, which
 * may be replaced by other contexts (NULL before `blosc2_schunk_free` to keep them), and `current_nchunk`; what may be
 * changed of metalayers, `blosc2_metalayer` tells.
 */
typedef struct blosc2_schunk {
  /**
   * 0. The version of a frame stands in its header.
   */
  uint8_t version;
  /**
   * The codec.
   */
  uint8_t compcode;
  /**
   * A byte for the codec.
   */
  uint8_t compcode_meta;
  /**
   * The compression level.
   */
  uint8_t clevel;
  /**
   * The split mode.
   */
  uint8_t splitmode;
  /**
   * Bytes per item.
   */
  int32_t typesize;
  /**
   * Requested block size in bytes; 0 for automatic.
   */
  int32_t blocksize;
  /**
   * Uncompressed bytes per chunk; -1 before the first one, 0 if the chunks differ in size, except for a shorter last
   * one.
   */
  int32_t chunksize;
  /**
   * Flags of the chunks: bit 0 is set if their blocks have variable length.
   */
  uint8_t flags2;
  /**
   * Whether dictionaries are used.
   */
  uint8_t use_dict;
  /**
   * The filters.
   */
  uint8_t filters[BLOSC2_MAX_FILTERS];
  /**
   * A byte for each filter.
   */
  uint8_t filters_meta[BLOSC2_MAX_FILTERS];
  /**
   * Number of chunks.
   */
  int64_t nchunks;
  /**
   * The chunk being worked on.
   */
  int64_t current_nchunk;
  /**
   * Uncompressed bytes of all chunks.
   */
  int64_t nbytes;
  /**
   * Compressed bytes of all chunks.
   */
  int64_t cbytes;
  /**
   * The chunks of a sparse super-chunk in memory, else NULL.
   */
  uint8_t **data;
  /**
   * Bytes allocated for the array of chunk pointers.
   */
  size_t data_len;
  /**
   * A copy of what the super-chunk was made with.
   */
  struct blosc2_storage *storage;
  /**
   * The frame behind the super-chunk, or NULL.
   */
  blosc2_frame *frame;
  /**
   * The context that compresses chunks.
   */
  blosc2_context *cctx;
  /**
   * The context that decompresses chunks.
   */
  blosc2_context *dctx;
  /**
   * The fixed-length metalayers.
   */
  struct blosc2_metalayer *metalayers[BLOSC2_MAX_METALAYERS];
  /**
   * Number of fixed-length metalayers.
   */
  uint16_t nmetalayers;
  /**
   * The variable-length metalayers; their contents are compressed.
   */
  struct blosc2_metalayer *vlmetalayers[BLOSC2_MAX_VLMETALAYERS];
  /**
   * Number of variable-length metalayers.
   */
  int16_t nvlmetalayers;
  /**
   * The tuner's configuration.
   */
  void *tuner_params;
  /**
   * The tuner.
   */
  int tuner_id;
  /**
   * 0 or -1. The shape of an array stands in its metalayer.
   */
  int8_t ndim;
  /**
   * Shape of the array's blocks, in items, or NULL.
   */
  int64_t *blockshape;
  /**
   * Whether this is a view that shares its chunks with another super-chunk.
   */
  bool view;
  /**
   * Grows each time the contents were read again from the file.
   */
  int64_t change_tick;
} blosc2_schunk;

/**
 * Makes an empty super-chunk; returns NULL on failure. Release it with `blosc2_schunk_free`.
 *
 * `storage` and what it points to are copied, but not the parameters of filters, tuners and I/O back-ends. Nothing
 * must exist at its path.
 *
 * Requirements:
 *
 * `storage` is NULL or valid; so are the pointers in it.
 */
BLOSC_EXPORT
struct blosc2_schunk *blosc2_schunk_new(struct blosc2_storage *storage);

/**
 * Copies a super-chunk, with its metalayers; returns NULL on failure.
 *
 * `storage` says where the copy goes, and how it is compressed. Chunks are only compressed again if the parameters
 * differ; NULL parameters are those of the source.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `storage` is NULL or valid, as are the pointers in it.
 */
BLOSC_EXPORT
struct blosc2_schunk *blosc2_schunk_copy(struct blosc2_schunk *schunk,
                                         struct blosc2_storage *storage);

/**
 * Makes a super-chunk of the frame in `cframe`; returns NULL if it is damaged.
 *
 * With `copy` the chunks are copied and the buffer is not needed any more. Without it the buffer stays the caller's
 * and must outlive the super-chunk, which copies it when it has to change it; see `blosc2_schunk_avoid_cframe_free`.
 * Packed super-chunks of 2015 to 2017 are always copied.
 *
 * Requirements:
 *
 * `cframe` is NULL or readable for `len` bytes.
 */
BLOSC_EXPORT
struct blosc2_schunk *blosc2_schunk_from_buffer(uint8_t *cframe,
                                                int64_t len,
                                                bool copy);

/**
 * Says who releases the buffer of a frame in memory: with `avoid_cframe_free` the caller, after the super-chunk;
 * without it the super-chunk, also if the buffer came from the caller. Without such a frame it does nothing.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it. A buffer that is given away comes from `malloc`.
 */
BLOSC_EXPORT
void blosc2_schunk_avoid_cframe_free(struct blosc2_schunk *schunk,
                                     bool avoid_cframe_free);

/**
 * Opens the frame `urlpath`, a file or a directory; returns NULL on failure.
 *
 * Files with a packed super-chunk of 2015 to 2017 are read into memory.
 *
 * Requirements:
 *
 * `urlpath` is NULL or a string.
 */
BLOSC_EXPORT struct blosc2_schunk *blosc2_schunk_open(const char *urlpath);

/**
 * Opens the frame that starts at byte `offset` of the file `urlpath`; returns NULL on failure.
 *
 * Requirements:
 *
 * `urlpath` is NULL or a string.
 */
BLOSC_EXPORT struct blosc2_schunk *blosc2_schunk_open_offset(const char *urlpath, int64_t offset);

/**
 * Opens the frame `urlpath` with the I/O back-end `udio`; returns NULL on failure.
 *
 * Requirements:
 *
 * `urlpath` is NULL or a string; `udio` is NULL or valid, and its parameters are those for the back-end.
 */
BLOSC_EXPORT struct blosc2_schunk *blosc2_schunk_open_udio(const char *urlpath, const struct blosc2_io *udio);

/**
 * Opens the frame that starts at byte `offset` of the file `urlpath` with the I/O back-end `udio`; returns NULL on
 * failure.
 *
 * Requirements:
 *
 * As for `blosc2_schunk_open_udio`.
 */
BLOSC_EXPORT
struct blosc2_schunk *blosc2_schunk_open_offset_udio(const char *urlpath,
                                                     int64_t offset,
                                                     const struct blosc2_io *udio);

/**
 * Stores the address of a contiguous frame with the content of the super-chunk in `*cframe`; returns its length, or a
 * negative code.
 *
 * `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the super-chunk and stays
 * valid until that changes.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `cframe` and `needs_free` are NULL or writable.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_to_buffer(struct blosc2_schunk *schunk,
                                uint8_t **cframe,
                                bool *needs_free);

/**
 * Writes a contiguous frame with the content of the super-chunk to the file `urlpath`; returns its length, or a
 * negative code.
 *
 * A file that exists is replaced if the super-chunk is a contiguous frame in memory, otherwise that is an error. After
 * a failure it is as it was, unless the I/O back-end is one of the application, or the file has several names (hard
 * links).
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `urlpath` is NULL or a string.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_to_file(struct blosc2_schunk *schunk,
                              const char *urlpath);

/**
 * Writes a contiguous frame with the content of the super-chunk after what the file `urlpath` holds; returns the byte
 * at which it starts, for `blosc2_schunk_open_offset`, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `urlpath` is NULL or a string.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_append_file(struct blosc2_schunk *schunk,
                                  const char *urlpath);

/**
 * Releases a super-chunk, its contexts included. What is on disk stays. NULL is ignored.
 *
 * Returns 0, or 1 if the I/O back-end reported a failure; everything is released all the same.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not used any more.
 */
BLOSC_EXPORT int blosc2_schunk_free(struct blosc2_schunk *schunk);

/**
 * Locks the frame against other handles and processes that lock, until `blosc2_schunk_unlock`; locks nest. Returns 0,
 * or `BLOSC2_ERROR_LOCK`, also if other threads go on reading through this super-chunk for half a second. Without
 * locking (`blosc2_stdio_params.locking`) it does nothing.
 *
 * The lock belongs to the super-chunk: threads that use the same one are not kept apart by it.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid.
 */
BLOSC_EXPORT
int blosc2_schunk_lock(struct blosc2_schunk *schunk);

/**
 * Ends one `blosc2_schunk_lock`; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid.
 */
BLOSC_EXPORT int blosc2_schunk_unlock(struct blosc2_schunk *schunk);

/**
 * Takes over what others changed in the frame; returns 1 if there was anything, 0 if not, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed.
 */
BLOSC_EXPORT int blosc2_schunk_refresh(struct blosc2_schunk *schunk);

/**
 * Appends a chunk; returns the number of chunks, or a negative code.
 *
 * Without `copy` the chunk, from `malloc`, belongs to the super-chunk afterwards, unless the call fails.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `chunk` is NULL or a chunk.
 */
BLOSC_EXPORT int64_t blosc2_schunk_append_chunk(struct blosc2_schunk *schunk, uint8_t *chunk, bool copy);

/**
 * Replaces chunk `nchunk`; returns the number of chunks, or a negative code.
 *
 * Without `copy` the chunk, from `malloc`, belongs to the super-chunk afterwards, unless the call fails.
 *
 * Requirements:
 *
 * As for `blosc2_schunk_append_chunk`.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_update_chunk(struct blosc2_schunk *schunk,
                                   int64_t nchunk,
                                   uint8_t *chunk,
                                   bool copy);

/**
 * Inserts a chunk before chunk `nchunk`; returns the number of chunks, or a negative code.
 *
 * Without `copy` the chunk, from `malloc`, belongs to the super-chunk afterwards, unless the call fails.
 *
 * Requirements:
 *
 * As for `blosc2_schunk_append_chunk`.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_insert_chunk(struct blosc2_schunk *schunk,
                                   int64_t nchunk,
                                   uint8_t *chunk,
                                   bool copy);

/**
 * Deletes chunk `nchunk`; returns the number of chunks, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it.
 */
BLOSC_EXPORT int64_t blosc2_schunk_delete_chunk(struct blosc2_schunk *schunk, int64_t nchunk);

/**
 * Compresses `nbytes` bytes with the super-chunk's context and appends them as a chunk; returns the number of chunks,
 * or a negative code.
 *
 * `src` may be NULL if a prefilter makes the data.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `src` is NULL or readable for `nbytes` bytes.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_append_buffer(struct blosc2_schunk *schunk,
                                    const void *src,
                                    int32_t nbytes);

/**
 * Decompresses chunk `nchunk` into `dest`; returns the number of bytes, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `dest` is writable for `nbytes` bytes.
 */
BLOSC_EXPORT
int blosc2_schunk_decompress_chunk(struct blosc2_schunk *schunk,
                                   int64_t nchunk,
                                   void *dest,
                                   int32_t nbytes);

/**
 * Stores the address of the compressed chunk `nchunk` in `*chunk`; returns its size in bytes, or a negative code.
 *
 * `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the super-chunk and stays
 * valid until that changes. In memory, and not contiguous, chunks also stay valid while others are appended.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed, except that other threads may append chunks to one in memory that
 * is not contiguous; `chunk` and `needs_free` are NULL or writable.
 */
BLOSC_EXPORT
int blosc2_schunk_get_chunk(struct blosc2_schunk *schunk,
                            int64_t nchunk,
                            uint8_t **chunk,
                            bool *needs_free);

/**
 * Stores the address of chunk `nchunk` in `*chunk`; for a chunk on disk, that is its lazy form, without the data.
 * Returns its size in bytes, or a negative code.
 *
 * A context made with this super-chunk in its parameters decompresses it, and reads only the blocks that it needs.
 * `*needs_free` as in `blosc2_schunk_get_chunk`.
 *
 * Requirements:
 *
 * As for `blosc2_schunk_get_chunk`.
 */
BLOSC_EXPORT
int blosc2_schunk_get_lazychunk(struct blosc2_schunk *schunk,
                                int64_t nchunk,
                                uint8_t **chunk,
                                bool *needs_free);

/**
 * Decompresses block `nblock` of chunk `nchunk`, which consists of variable-length blocks; returns its size, or a
 * negative code.
 *
 * The block, which the caller releases with `free()`, is stored in `*dest`, its size in `*destsize`.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `dest` and `destsize` are NULL or writable.
 */
BLOSC_EXPORT
int blosc2_schunk_get_vlblock(struct blosc2_schunk *schunk,
                              int64_t nchunk,
                              int32_t nblock,
                              uint8_t **dest,
                              int32_t *destsize);

/**
 * Copies items `start` to `stop` (excluded) to `buffer`; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `buffer` is writable for these items.
 */
BLOSC_EXPORT
int blosc2_schunk_get_slice_buffer(struct blosc2_schunk *schunk,
                                   int64_t start,
                                   int64_t stop,
                                   void *buffer);

/**
 * Copies the items with the numbers `coords`, in any order, to `buffer`; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `coords` is readable for `ncoords` numbers, `buffer` writable for
 * as many items.
 */
BLOSC_EXPORT
int blosc2_schunk_get_sparse_buffer(struct blosc2_schunk *schunk,
                                    int64_t ncoords,
                                    const int64_t *coords,
                                    void *buffer);

/**
 * Gives items `start` to `stop` (excluded) the values in `buffer`; returns 0, or a negative code.
 *
 * Many chunks, and large ones, are several changes: after a failure, or if the process is killed, the first ones may be
 * new and the others old.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `buffer` is readable for these items.
 */
BLOSC_EXPORT
int blosc2_schunk_set_slice_buffer(struct blosc2_schunk *schunk,
                                   int64_t start,
                                   int64_t stop,
                                   void *buffer);

/**
 * Stores a copy of the compression parameters, which the caller releases with `free()`, in `*cparams`; returns 0, or a
 * negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `cparams` is NULL or writable.
 */
BLOSC_EXPORT
int blosc2_schunk_get_cparams(struct blosc2_schunk *schunk,
                              struct blosc2_cparams **cparams);

/**
 * Stores a copy of the decompression parameters, which the caller releases with `free()`, in `*dparams`; returns 0, or
 * a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `dparams` is NULL or writable.
 */
BLOSC_EXPORT
int blosc2_schunk_get_dparams(struct blosc2_schunk *schunk,
                              struct blosc2_dparams **dparams);

/**
 * Reorders the chunks: chunk `i` becomes what chunk `offsets_order[i]` was. Returns 0, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `offsets_order` is readable for one number per chunk.
 */
BLOSC_EXPORT
int blosc2_schunk_reorder_offsets(struct blosc2_schunk *schunk,
                                  int64_t *offsets_order);

/**
 * The length of the frame in bytes, or a negative code. Of directories it is that of the index; super-chunks without a
 * frame tell about what one would have.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_frame_len(struct blosc2_schunk *schunk);

/**
 * Fills an empty super-chunk with `nitems` items of a special value, in chunks of `chunksize` bytes; returns the
 * number of chunks, or a negative code.
 *
 * `special_value` is `BLOSC2_SPECIAL_ZERO`, `BLOSC2_SPECIAL_NAN` or `BLOSC2_SPECIAL_UNINIT`.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it.
 */
BLOSC_EXPORT
int64_t blosc2_schunk_fill_special(struct blosc2_schunk *schunk,
                                   int64_t nitems,
                                   int special_value,
                                   int32_t chunksize);

/**
 * The index of the frame: for each chunk its position in the payload area, the number of its file, or a negative
 * number if it is a special chunk. The caller releases it with `free()`. NULL without a frame or without chunks.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed.
 */
BLOSC_EXPORT
int64_t *blosc2_frame_get_offsets(struct blosc2_schunk *schunk);

/**
 * Finds the chunks that hold a slice: items `*start` to `*stop` (excluded), or, if the super-chunk holds an array, the
 * box with one number per dimension at `start` and `stop`. Returns how many there are, or a negative number: a code,
 * or by how many chunks the slice ends before it starts.
 *
 * Their numbers, ascending, are stored in `*chunks_idx`, which the caller releases with `free()`; NULL if there are no
 * chunks or no items.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `start` and `stop` are NULL or readable for one number per
 * dimension; `chunks_idx` is NULL or writable.
 */
BLOSC_EXPORT
int64_t blosc2_get_slice_nchunks(struct blosc2_schunk *schunk,
                                 int64_t *start,
                                 int64_t *stop,
                                 int64_t **chunks_idx);

/* ---- Metalayers of fixed length ---- */

/**
 * Returns the index of the metalayer `name`, BLOSC2_ERROR_NOT_FOUND if there is none, or
 * BLOSC2_ERROR_INVALID_PARAM if the name is too long or `schunk` is NULL. It looks into the struct: no other thread
 * uses the super-chunk meanwhile.
 */
static inline int blosc2_meta_exists(blosc2_schunk *schunk, const char *name) {
  int i;
  if (strlen(name) > BLOSC2_METALAYER_NAME_MAXLEN) {
    BLOSC_TRACE_ERROR("the name of a metalayer has at most %d characters", BLOSC2_METALAYER_NAME_MAXLEN);
    return BLOSC2_ERROR_INVALID_PARAM;
  }
  if (schunk == NULL) {
    BLOSC_TRACE_ERROR("the super-chunk is NULL");
    return BLOSC2_ERROR_INVALID_PARAM;
  }
  for (i = 0; i < schunk->nmetalayers; i++) {
    if (strcmp(schunk->metalayers[i]->name, name) == 0) {
      return i;
    }
  }
  return BLOSC2_ERROR_NOT_FOUND;
}

/**
 * Adds a metalayer of fixed length; returns its index, or a negative code. Frames must not have chunks yet.
 *
 * A view has metalayers of its own, which cannot be changed if its chunks are in a frame.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `name` is NULL or a string; `content` is NULL or readable for
 * `content_len` bytes.
 */
BLOSC_EXPORT
int blosc2_meta_add(struct blosc2_schunk *schunk,
                    const char *name,
                    uint8_t *content,
                    int32_t content_len);

/**
 * Overwrites the start of a metalayer of fixed length; returns its index, or a negative code.
 *
 * The metalayer keeps its length. Content that is longer than that is not written, which is no error. For views see
 * `blosc2_meta_add`.
 *
 * Requirements:
 *
 * As for `blosc2_meta_add`.
 */
BLOSC_EXPORT
int blosc2_meta_update(struct blosc2_schunk *schunk,
                       const char *name,
                       uint8_t *content,
                       int32_t content_len);

/**
 * Stores a copy of the metalayer `name` in `*content`, for the caller to free(), and its length in
 * `*content_len`; NULL and 0 if it is empty. Returns its index, or a negative code. No other thread uses the
 * super-chunk meanwhile.
 */
static inline int blosc2_meta_get(blosc2_schunk *schunk, const char *name, uint8_t **content,
                                  int32_t *content_len) {
  int index;
  const blosc2_metalayer *meta;
  uint8_t *copy;
  if (schunk == NULL || name == NULL || content == NULL || content_len == NULL) {
    BLOSC_TRACE_ERROR("an argument is NULL");
    return BLOSC2_ERROR_INVALID_PARAM;
  }
  index = blosc2_meta_exists(schunk, name);
  if (index < 0) {
    BLOSC_TRACE_WARNING("there is no metalayer \"%s\"", name);
    return index;
  }
  meta = schunk->metalayers[index];
  if (meta->content_len < 0 || (meta->content_len > 0 && meta->content == NULL)) {
    BLOSC_TRACE_ERROR("the metalayer \"%s\" is damaged", name);
    if (meta->content_len > 0) {
      *content = NULL;
      *content_len = 0;
    }
    return BLOSC2_ERROR_DATA;
  }
  *content = NULL;
  *content_len = 0;
  if (meta->content_len > 0) {
    copy = (uint8_t *)malloc((size_t)meta->content_len);
    if (copy == NULL) {
      BLOSC_TRACE_ERROR("no memory for the metalayer \"%s\"", name);
      return BLOSC2_ERROR_MEMORY_ALLOC;
    }
    memcpy(copy, meta->content, (size_t)meta->content_len);
    *content = copy;
    *content_len = meta->content_len;
  }
  return index;
}

/* ---- Metalayers of variable length ---- */

/**
 * The index of the variable-length metalayer `name`, or a negative code, `BLOSC2_ERROR_NOT_FOUND` if there is none.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `name` is NULL or a string.
 */
BLOSC_EXPORT
int blosc2_vlmeta_exists(struct blosc2_schunk *schunk,
                         const char *name);

/**
 * Adds a variable-length metalayer, compressed with `cparams`, or with the defaults if that is NULL; returns its
 * index, or a negative code: `BLOSC2_ERROR_FAILURE` for the 17th one of a frame.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `name` is NULL or a string; `content` is NULL or readable for
 * `content_len` bytes; `cparams` is NULL or valid.
 */
BLOSC_EXPORT
int blosc2_vlmeta_add(struct blosc2_schunk *schunk,
                      const char *name,
                      uint8_t *content,
                      int32_t content_len,
                      struct blosc2_cparams *cparams);

/**
 * Replaces the content of a variable-length metalayer, compressed as in `blosc2_vlmeta_add`; returns its index, or a
 * negative code.
 *
 * Requirements:
 *
 * As for `blosc2_vlmeta_add`.
 */
BLOSC_EXPORT
int blosc2_vlmeta_update(struct blosc2_schunk *schunk,
                         const char *name,
                         uint8_t *content,
                         int32_t content_len,
                         struct blosc2_cparams *cparams);

/**
 * Stores a copy of the content of a variable-length metalayer, which the caller releases with `free()`, in `*content`
 * (NULL if it is empty), and its length in `*content_len`; returns the index of the metalayer, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and not being changed; `name` is NULL or a string; `content` and `content_len` are NULL or
 * writable.
 */
BLOSC_EXPORT
int blosc2_vlmeta_get(struct blosc2_schunk *schunk,
                      const char *name,
                      uint8_t **content,
                      int32_t *content_len);

/**
 * Deletes a variable-length metalayer; returns the number of those left, or a negative code.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `name` is NULL or a string.
 */
BLOSC_EXPORT int blosc2_vlmeta_delete(struct blosc2_schunk *schunk, const char *name);

/**
 * Stores the names of the variable-length metalayers in `names`, which has room for all of them; returns their number,
 * or a negative code.
 *
 * The strings belong to the super-chunk, and stay valid until its metalayers change.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `names` is NULL or writable for all names.
 */
BLOSC_EXPORT
int blosc2_vlmeta_get_names(struct blosc2_schunk *schunk,
                            char **names);

/* ---- Time ---- */

/** A point in time. */
#if defined(_WIN32)
typedef LARGE_INTEGER blosc_timestamp_t;
#else
typedef struct timespec blosc_timestamp_t;
#endif

/**
 * Stores the time of the monotonic clock in `*timestamp`.
 *
 * Requirements:
 *
 * `timestamp` is NULL or writable.
 */
BLOSC_EXPORT void blosc_set_timestamp(blosc_timestamp_t *timestamp);

/**
 * The nanoseconds between two timestamps.
 */
BLOSC_EXPORT double blosc_elapsed_nsecs(blosc_timestamp_t start_time, blosc_timestamp_t end_time);

/**
 * The seconds between two timestamps.
 */
BLOSC_EXPORT double blosc_elapsed_secs(blosc_timestamp_t start_time, blosc_timestamp_t end_time);

/* ---- Codecs and filters of the application ---- */

/**
 * Compresses `input` into `output`; returns the bytes written, 0 if they do not fit, or a negative code.
 */
typedef int (*blosc2_codec_encoder_cb)(const uint8_t *input,
                                       int32_t input_len,
                                       uint8_t *output,
                                       int32_t output_len,
                                       uint8_t meta,
                                       struct blosc2_cparams *cparams,
                                       const void *chunk);

/**
 * Decompresses `input` into `output`; returns the bytes written, or a negative code.
 */
typedef int (*blosc2_codec_decoder_cb)(const uint8_t *input,
                                       int32_t input_len,
                                       uint8_t *output,
                                       int32_t output_len,
                                       uint8_t meta,
                                       struct blosc2_dparams *dparams,
                                       const void *chunk);

/**
 * A codec of the application.
 */
typedef struct blosc2_codec {
  /**
   * The identifier.
   */
  uint8_t compcode;
  /**
   * The name; not copied by `blosc2_register_codec`.
   */
  char *compname;
  /**
   * The identifier of its library.
   */
  uint8_t complib;
  /**
   * The version of its format.
   */
  uint8_t version;
  /**
   * Compresses.
   */
  blosc2_codec_encoder_cb encoder;
  /**
   * Decompresses.
   */
  blosc2_codec_decoder_cb decoder;
} blosc2_codec;

/**
 * Registers a codec; its code must be at least 160. The struct is copied, its name is not. If a callback is NULL, the
 * plugin `blosc2_<name>` is loaded when it is first needed.
 *
 * Returns 0, also if the code is already registered under this name (then nothing changes), or a negative code.
 *
 * Requirements:
 *
 * `codec` is NULL or valid, its name NULL or a string that outlives the library's use, its callbacks fulfil their
 * contracts.
 */
BLOSC_EXPORT
int blosc2_register_codec(struct blosc2_codec *codec);

/**
 * Filters `length` bytes of `src` into `dest`; returns 0, or a negative code.
 */
typedef int (*blosc2_filter_forward_cb)(const uint8_t *src,
                                        uint8_t *dest,
                                        int32_t length,
                                        uint8_t meta,
                                        struct blosc2_cparams *cparams,
                                        uint8_t id);

/**
 * Undoes the filter: `length` bytes of `src` into `dest`; returns 0, or a negative code.
 */
typedef int (*blosc2_filter_backward_cb)(const uint8_t *src,
                                         uint8_t *dest,
                                         int32_t length,
                                         uint8_t meta,
                                         struct blosc2_dparams *dparams,
                                         uint8_t id);

/**
 * A filter of the application.
 */
typedef struct blosc2_filter {
  /**
   * The identifier.
   */
  uint8_t id;
  /**
   * The name; not copied by `blosc2_register_filter`.
   */
  char *name;
  /**
   * The version of its format.
   */
  uint8_t version;
  /**
   * Filters.
   */
  blosc2_filter_forward_cb forward;
  /**
   * Undoes the filter.
   */
  blosc2_filter_backward_cb backward;
} blosc2_filter;

/**
 * Registers a filter; its id must be at least 160. The struct is copied, its name is not. If a callback is NULL, the
 * plugin `blosc2_<name>` is loaded when it is first needed.
 *
 * Returns 0, also if the id is already registered under this name (then nothing changes), or a negative code.
 *
 * Requirements:
 *
 * `filter` is NULL or valid, its callbacks fulfil their contracts. If its id is registered already or a callback is
 * NULL, its name is NULL or a string.
 */
BLOSC_EXPORT
int blosc2_register_filter(struct blosc2_filter *filter);

/* ---- Files, indices, filters by themselves ---- */

/**
 * Removes a directory and the files in it; returns 0, or a negative code. If it fails, for instance as there is
 * another directory inside, some of the files may be gone.
 *
 * Requirements:
 *
 * `path` is NULL or a string.
 */
BLOSC_EXPORT
int blosc2_remove_dir(const char *path);

/**
 * Removes a frame: a file with its lock file, or a directory as `blosc2_remove_dir` does; returns 0, or a negative
 * code. What is there is not looked at, so that other files go as well.
 *
 * A path that does not exist is no error; neither is NULL.
 *
 * Requirements:
 *
 * `path` is NULL or a string.
 */
BLOSC_EXPORT
int blosc2_remove_urlpath(const char *path);

/**
 * Renames a frame; returns 0, or a negative code. With NULL it does nothing.
 *
 * Requirements:
 *
 * Both are NULL or strings.
 */
BLOSC_EXPORT int blosc2_rename_urlpath(char *old_urlpath, char *new_path);

/**
 * Turns the flat index `i` of an item into one index per dimension of the array of shape `shape`, in C order.
 *
 * Requirements:
 *
 * `shape` is readable and `index` writable for `ndim` entries.
 */
BLOSC_EXPORT void blosc2_unidim_to_multidim(uint8_t ndim, int64_t *shape, int64_t i, int64_t *index);

/**
 * Turns one index per dimension into a flat index: the sum of `index[j] * strides[j]`.
 *
 * Requirements:
 *
 * `index` and `strides` are readable for `ndim` entries; `i` is NULL or writable.
 */
BLOSC_EXPORT
void blosc2_multidim_to_unidim(const int64_t *index,
                               int8_t ndim,
                               const int64_t *strides,
                               int64_t *i);

/**
 * Shuffles the bytes of `blocksize` bytes at `src` into `dest`; returns `blocksize`, or a negative code. Items have
 * `typesize` bytes, 1 to 256.
 *
 * Requirements:
 *
 * `src` is readable and `dest` writable for `blocksize` bytes; the two do not overlap.
 */
BLOSC_EXPORT
int32_t blosc2_shuffle(int32_t typesize,
                       int32_t blocksize,
                       const void *src,
                       void *dest);

/**
 * Undoes `blosc2_shuffle`; returns `blocksize`, or a negative code.
 *
 * Requirements:
 *
 * As for `blosc2_shuffle`.
 */
BLOSC_EXPORT int32_t blosc2_unshuffle(int32_t typesize, int32_t blocksize, const void *src, void *dest);

/**
 * Shuffles the bits of `blocksize` bytes at `src` into `dest`; returns `blocksize`, or a negative code. Items have
 * `typesize` bytes, 1 to 256.
 *
 * Requirements:
 *
 * As for `blosc2_shuffle`.
 */
BLOSC_EXPORT
int32_t blosc2_bitshuffle(int32_t typesize,
                          int32_t blocksize,
                          const void *src,
                          void *dest);

/**
 * Undoes `blosc2_bitshuffle`; returns `blocksize`, or a negative code.
 *
 * Requirements:
 *
 * As for `blosc2_shuffle`.
 */
BLOSC_EXPORT int32_t blosc2_bitunshuffle(int32_t typesize, int32_t blocksize, const void *src, void *dest);

/**
 * Copies `size` bytes (1, 2, 4 or 8) from `pa` to `dest`, between the byte order of this machine and big-endian.
 * The two may overlap.
 */
static inline void swap_store(void *dest, const void *pa, int size) {
  const uint16_t one = 1;
  uint8_t bytes[8], swapped[8];
  int i;
  if (size != 1 && size != 2 && size != 4 && size != 8) {
    fprintf(stderr, "Unhandled nitems: %d\n", size);
    return;
  }
  memcpy(bytes, pa, (size_t)size);
  if (*(const uint8_t *)&one == 1) {
    for (i = 0; i < size; i++) {
      swapped[i] = bytes[size - 1 - i];
    }
    memcpy(dest, swapped, (size_t)size);
  } else {
    memcpy(dest, bytes, (size_t)size);
  }
}

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_BLOSC2_H */
