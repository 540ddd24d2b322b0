/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/* Multidimensional arrays of the Blosc2 library. */

#ifndef BLOSC_B2ND_H
#define BLOSC_B2ND_H

#include "blosc2/blosc2-export.h"
#include "blosc2.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks a function that should not be used any more. */
#if defined(_MSC_VER)
#define B2ND_DEPRECATED(msg) __declspec(deprecated(msg))
#elif defined(__GNUC__) || defined(__clang__)
#define B2ND_DEPRECATED(msg) __attribute__((deprecated(msg)))
#else
#define B2ND_DEPRECATED(msg)
#endif

/** The version of the metalayer that describes an array. */
#define B2ND_METALAYER_VERSION 0
/** Most dimensions. */
#define B2ND_MAX_DIM 16
/** The older name of `B2ND_MAX_DIM`, which today's programs still use. */
#define BLOSC2_MAX_DIM B2ND_MAX_DIM
/** Most metalayers besides the array's own. */
#define B2ND_MAX_METALAYERS (BLOSC2_MAX_METALAYERS - 1)

/** The notation of NumPy for data types. */
#define DTYPE_NUMPY_FORMAT 0
/** The default data type, and its notation. */
#define B2ND_DEFAULT_DTYPE "|u1"
#define B2ND_DEFAULT_DTYPE_FORMAT DTYPE_NUMPY_FORMAT

/* ---- Creation ---- */

/**
 * The last chunk read, kept for the next access to it.
 */
typedef struct chunk_cache_s {
  /**
   * The decompressed chunk, or NULL.
   */
  uint8_t *data;
  /**
   * Its number, or -1 if there is none.
   */
  int64_t nchunk;
} chunk_cache_s;

/** The parameters for creating an array. */
typedef struct b2nd_context_s b2nd_context_t;

/**
 * A multidimensional array, stored in a super-chunk: one chunk per box of `chunkshape` items.
 *
 * Treat the fields as read-only. Shapes and strides are in items, the first `ndim` entries count, in C order.
 */
typedef struct b2nd_array_t {
  /**
   * The super-chunk.
   */
  struct blosc2_schunk *sc;
  /**
   * The shape.
   */
  int64_t shape[B2ND_MAX_DIM];
  /**
   * The shape of a chunk.
   */
  int32_t chunkshape[B2ND_MAX_DIM];
  /**
   * The shape, padded to whole chunks.
   */
  int64_t extshape[B2ND_MAX_DIM];
  /**
   * The shape of a block.
   */
  int32_t blockshape[B2ND_MAX_DIM];
  /**
   * The shape of a chunk, padded to whole blocks.
   */
  int64_t extchunkshape[B2ND_MAX_DIM];
  /**
   * Items of the array.
   */
  int64_t nitems;
  /**
   * Items of a chunk.
   */
  int32_t chunknitems;
  /**
   * Items of the padded array.
   */
  int64_t extnitems;
  /**
   * Items of a block.
   */
  int32_t blocknitems;
  /**
   * Items of a padded chunk.
   */
  int64_t extchunknitems;
  /**
   * Number of dimensions.
   */
  int8_t ndim;
  /**
   * The last chunk read.
   */
  struct chunk_cache_s chunk_cache;
  /**
   * Strides of items in the array.
   */
  int64_t item_array_strides[B2ND_MAX_DIM];
  /**
   * Strides of items in a chunk.
   */
  int64_t item_chunk_strides[B2ND_MAX_DIM];
  /**
   * Strides of items in a padded chunk.
   */
  int64_t item_extchunk_strides[B2ND_MAX_DIM];
  /**
   * Strides of items in a block.
   */
  int64_t item_block_strides[B2ND_MAX_DIM];
  /**
   * Strides of blocks in a chunk.
   */
  int64_t block_chunk_strides[B2ND_MAX_DIM];
  /**
   * Strides of chunks in the array.
   */
  int64_t chunk_array_strides[B2ND_MAX_DIM];
  /**
   * The data type, in the notation that `dtype_format` names.
   */
  char *dtype;
  /**
   * The notation of `dtype`: `DTYPE_NUMPY_FORMAT` or another.
   */
  int8_t dtype_format;
  /**
   * The `change_tick` of the super-chunk when these fields were last brought up to date.
   */
  int64_t last_tick;
} b2nd_array_t;

/* ---- Slices and selections ---- */

/* ---- Shape ---- */

/* ---- Metadata ---- */

/* Reads `count` integers of `size` bytes, each behind a msgpack marker, from the metadata of an array into `out`;
   returns the position behind them, or -1 if the metadata end before. */
static inline int b2nd_private_read_ints_(const uint8_t *smeta, int32_t smeta_len, int pos, int count, int size,
                                          uint8_t *out) {
  int i;
  if (pos < 0 || smeta_len - pos < 1 + count * (1 + size)) {
    return -1;
  }
  pos++; /* the marker of the list */
  for (i = 0; i < count; i++) {
    swap_store(out + (size_t)i * (size_t)size, smeta + pos + 1, size);
    pos += 1 + size;
  }
  return pos;
}

/**
 * Reads the metadata of an array (`smeta_len` bytes of msgpack); works without the library.
 *
 * `shape`, `chunkshape` and `blockshape` have room for B2ND_MAX_DIM numbers. The text in `*dtype` is for the
 * caller to free(); it is NULL, and the format 0, if the metadata end before it. With `dtype` or `dtype_format`
 * NULL, reading stops before the dtype. Returns the bytes read, or a negative code.
 */
static inline int b2nd_deserialize_meta_inline(const uint8_t *smeta, int32_t smeta_len, int8_t *ndim, int64_t *shape,
                                               int32_t *chunkshape, int32_t *blockshape, char **dtype,
                                               int8_t *dtype_format) {
  int pos, i;
  int32_t dtype_len;
  BLOSC_ERROR_NULL(smeta, BLOSC2_ERROR_NULL_POINTER);
  BLOSC_ERROR_NULL(ndim, BLOSC2_ERROR_NULL_POINTER);
  BLOSC_ERROR_NULL(shape, BLOSC2_ERROR_NULL_POINTER);
  BLOSC_ERROR_NULL(chunkshape, BLOSC2_ERROR_NULL_POINTER);
  BLOSC_ERROR_NULL(blockshape, BLOSC2_ERROR_NULL_POINTER);
  if (dtype != NULL) {
    *dtype = NULL;
  }
  if (dtype_format != NULL) {
    *dtype_format = 0;
  }
  /* the marker of the list, the version, the number of dimensions */
  if (smeta_len < 3) {
    BLOSC_TRACE_ERROR("the metadata of the array are too short");
    return BLOSC2_ERROR_FAILURE;
  }
  *ndim = (int8_t)smeta[2];
  if (*ndim < 0 || *ndim > B2ND_MAX_DIM) {
    BLOSC_TRACE_ERROR("an array cannot have %d dimensions", *ndim);
    return BLOSC2_ERROR_FAILURE;
  }
  for (i = 0; i < *ndim; i++) {
    shape[i] = 1;
    chunkshape[i] = 1;
    blockshape[i] = 1;
  }
  pos = b2nd_private_read_ints_(smeta, smeta_len, 3, *ndim, 8, (uint8_t *)shape);
  pos = b2nd_private_read_ints_(smeta, smeta_len, pos, *ndim, 4, (uint8_t *)chunkshape);
  pos = b2nd_private_read_ints_(smeta, smeta_len, pos, *ndim, 4, (uint8_t *)blockshape);
  if (pos < 0) {
    BLOSC_TRACE_ERROR("the metadata of the array end in a shape");
    return BLOSC2_ERROR_FAILURE;
  }
  if (dtype == NULL || dtype_format == NULL || pos == smeta_len) {
    return pos;
  }
  /* the format, the marker of a string, its length in four bytes */
  if (smeta_len - pos < 6 || smeta[pos + 1] != 0xdb) {
    BLOSC_TRACE_ERROR("the metadata of the array have no valid dtype");
    return BLOSC2_ERROR_FAILURE;
  }
  *dtype_format = (int8_t)smeta[pos];
  swap_store(&dtype_len, smeta + pos + 2, 4);
  pos += 6;
  if (dtype_len < 0 || dtype_len > smeta_len - pos) {
    BLOSC_TRACE_ERROR("the metadata of the array end in the dtype");
    return BLOSC2_ERROR_FAILURE;
  }
  *dtype = (char *)malloc((size_t)dtype_len + 1);
  BLOSC_ERROR_NULL(*dtype, BLOSC2_ERROR_MEMORY_ALLOC);
  memcpy(*dtype, smeta + pos, (size_t)dtype_len);
  (*dtype)[dtype_len] = '\0';
  return pos + dtype_len;
}

/* ---- Boxes of plain buffers ---- */

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_B2ND_H */
