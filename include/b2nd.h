/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/*
 * Multidimensional arrays of the Blosc2 library.
 *
 * What blosc2.h says at its top about errors, memory and threads holds here, too. Shapes, positions and steps count
 * items, with one number per dimension, the slowest dimension first (C order).
 */

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

/**
 * Makes the parameters for creating arrays; returns NULL on failure. Release them with `b2nd_free_ctx`.
 *
 * `b2_storage` (NULL for the defaults) and its compression parameters are copied; their block size becomes that of a
 * block of the array. Its other pointers, and names and contents of `metalayers`, must live until the array is
 * created. Without a `dtype`, items are plain bytes, as many as an item has (`|S8` for 8).
 *
 * Requirements:
 *
 * `b2_storage` is NULL or valid; the shapes are readable for `ndim` numbers each; `dtype` is NULL or a string;
 * `metalayers` is readable for `nmetalayers` entries.
 */
BLOSC_EXPORT
b2nd_context_t *b2nd_create_ctx(const struct blosc2_storage *b2_storage,
                                int8_t ndim,
                                const int64_t *shape,
                                const int32_t *chunkshape,
                                const int32_t *blockshape,
                                const char *dtype,
                                int8_t dtype_format,
                                const struct blosc2_metalayer *metalayers,
                                int32_t nmetalayers);

/**
 * Releases the parameters for creating arrays; returns 0, or a negative code for NULL.
 *
 * Requirements:
 *
 * `ctx` is NULL or comes from `b2nd_create_ctx`, and is not used any more.
 */
BLOSC_EXPORT int b2nd_free_ctx(b2nd_context_t *ctx);

/**
 * Creates an array with unspecified values; returns 0, or a negative code. Release it with `b2nd_free`.
 *
 * Requirements:
 *
 * `ctx` is NULL or valid and no other thread uses it; `array` is NULL or writable.
 */
BLOSC_EXPORT int b2nd_uninit(b2nd_context_t *ctx, struct b2nd_array_t **array);

/**
 * Creates an array of zeros; returns 0, or a negative code. Release it with `b2nd_free`.
 *
 * Requirements:
 *
 * As for `b2nd_uninit`.
 */
BLOSC_EXPORT int b2nd_empty(b2nd_context_t *ctx, struct b2nd_array_t **array);

/**
 * Creates an array of zeros; returns 0, or a negative code. Release it with `b2nd_free`.
 *
 * Requirements:
 *
 * As for `b2nd_uninit`.
 */
BLOSC_EXPORT int b2nd_zeros(b2nd_context_t *ctx, struct b2nd_array_t **array);

/**
 * Creates an array of NaNs, of 4 or 8 bytes each; returns 0, or a negative code. Release it with `b2nd_free`.
 *
 * Requirements:
 *
 * As for `b2nd_uninit`.
 */
BLOSC_EXPORT int b2nd_nans(b2nd_context_t *ctx, struct b2nd_array_t **array);

/**
 * Creates an array whose items are all `fill_value`; returns 0, or a negative code. Release it with `b2nd_free`.
 *
 * Requirements:
 *
 * As for `b2nd_uninit`; `fill_value` is NULL or readable for one item.
 */
BLOSC_EXPORT
int b2nd_full(b2nd_context_t *ctx,
              struct b2nd_array_t **array,
              const void *fill_value);

/**
 * Releases an array with its super-chunk, unless `array->sc` is NULL; returns 0, or a negative code for NULL.
 *
 * Requirements:
 *
 * `array` is NULL or valid, and is not used any more.
 */
BLOSC_EXPORT int b2nd_free(struct b2nd_array_t *array);

/**
 * Makes an array of a super-chunk that holds one; returns 0, or a negative code. The super-chunk belongs to the array
 * afterwards, unless the call fails.
 *
 * Requirements:
 *
 * `schunk` is NULL or valid and no other thread uses it; `array` is NULL or writable.
 */
BLOSC_EXPORT
int b2nd_from_schunk(struct blosc2_schunk *schunk,
                     struct b2nd_array_t **array);

/**
 * Stores the address and length of a contiguous frame with the array; returns 0, or a negative code.
 *
 * `*needs_free` tells whether the caller releases it with `free()`; otherwise it belongs to the array and stays valid
 * until that changes.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; the others are NULL or writable.
 */
BLOSC_EXPORT
int b2nd_to_cframe(const struct b2nd_array_t *array,
                   uint8_t **cframe,
                   int64_t *cframe_len,
                   bool *needs_free);

/**
 * Makes an array of the frame in `cframe`; returns 0, or a negative code.
 *
 * With `copy` the chunks are copied. Without it the buffer stays the caller's and must outlive the array, which copies
 * it when it has to change it.
 *
 * Requirements:
 *
 * `cframe` is NULL or readable for `cframe_len` bytes; `array` is NULL or writable.
 */
BLOSC_EXPORT
int b2nd_from_cframe(uint8_t *cframe,
                     int64_t cframe_len,
                     bool copy,
                     struct b2nd_array_t **array);

/**
 * Opens the array in the frame `urlpath`, a file or a directory; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `urlpath` is NULL or a string; `array` is NULL or writable.
 */
BLOSC_EXPORT int b2nd_open(const char *urlpath, struct b2nd_array_t **array);

/**
 * Opens the array in the frame that starts at byte `offset` of the file `urlpath`; returns 0, or a negative code.
 *
 * Requirements:
 *
 * As for `b2nd_open`.
 */
BLOSC_EXPORT
int b2nd_open_offset(const char *urlpath,
                     struct b2nd_array_t **array,
                     int64_t offset);

/**
 * Saves an array to `urlpath`, which must not exist: a file if the array is contiguous, else a directory. Returns 0,
 * or a negative code.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; `urlpath` is NULL or a string.
 */
BLOSC_EXPORT
int b2nd_save(const struct b2nd_array_t *array,
              char *urlpath);

/**
 * Appends an array as a contiguous frame to the file `urlpath`; returns the byte at which it starts, for
 * `b2nd_open_offset`, or a negative code.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; `urlpath` is NULL or a string.
 */
BLOSC_EXPORT int64_t b2nd_save_append(const struct b2nd_array_t *array, const char *urlpath);

/**
 * Creates an array from the items in `buffer`, in C order; returns 0, or a negative code. Release it with `b2nd_free`.
 *
 * Requirements:
 *
 * As for `b2nd_uninit`; `buffer` is NULL or readable for `buffersize` bytes.
 */
BLOSC_EXPORT
int b2nd_from_cbuffer(b2nd_context_t *ctx,
                      struct b2nd_array_t **array,
                      const void *buffer,
                      int64_t buffersize);

/**
 * Copies the whole array to `buffer`, in C order; returns 0, or a negative code. The rest of the `buffersize` bytes
 * becomes zero.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; `buffer` is NULL or writable for `buffersize` bytes.
 */
BLOSC_EXPORT
int b2nd_to_cbuffer(const struct b2nd_array_t *array,
                    void *buffer,
                    int64_t buffersize);

/**
 * Copies an array; returns 0, or a negative code. The shape of `ctx` becomes that of `src`.
 *
 * Metalayers are those of `src`. Chunks are only compressed again if `ctx` asks for other parameters, chunks or
 * blocks.
 *
 * Requirements:
 *
 * As for `b2nd_uninit`; `src` is NULL or valid and not being changed.
 */
BLOSC_EXPORT
int b2nd_copy(b2nd_context_t *ctx,
              const struct b2nd_array_t *src,
              struct b2nd_array_t **array);

/**
 * Joins two arrays along the dimension `axis`; returns 0, or a negative code.
 *
 * With `copy`, `*array` is a new array, made with `ctx`. Without it, `src1` is extended, and `*array` becomes `src1`;
 * `b2nd_insert` tells which parts of this are one change.
 *
 * Requirements:
 *
 * As for `b2nd_copy`; without `copy`, no other thread uses `src1`.
 */
BLOSC_EXPORT
int b2nd_concatenate(b2nd_context_t *ctx,
                     const struct b2nd_array_t *src1,
                     const struct b2nd_array_t *src2,
                     int8_t axis,
                     bool copy,
                     struct b2nd_array_t **array);

/**
 * Takes over what others changed in the frame of an array; returns 1 if its shape was read again, 0 if not, or a
 * negative code.
 *
 * Requirements:
 *
 * `array` is NULL or valid and no other thread uses it.
 */
BLOSC_EXPORT
int b2nd_refresh(struct b2nd_array_t *array);

/**
 * Prints shapes and data type of an array, as they are stored; returns 0, or a negative code.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed.
 */
BLOSC_EXPORT int b2nd_print_meta(const struct b2nd_array_t *array);

/* ---- Slices and selections ---- */

/**
 * Creates an array from a box of another one; returns 0, or a negative code.
 *
 * The shape of `ctx` becomes that of the box from `start` to `stop` (excluded). What lies outside of `src` becomes
 * zero.
 *
 * Requirements:
 *
 * As for `b2nd_uninit`; `src` is NULL or valid and not being changed; `start` and `stop` are NULL or readable for one
 * number per dimension.
 */
BLOSC_EXPORT
int b2nd_get_slice(b2nd_context_t *ctx,
                   struct b2nd_array_t **array,
                   const struct b2nd_array_t *src,
                   const int64_t *start,
                   const int64_t *stop);

/**
 * Copies the box from `start` to `stop` (excluded) to a C-order buffer of shape `buffershape`; returns 0, or a
 * negative code.
 *
 * Everything else in the `buffersize` bytes becomes zero, also what lies outside of the array.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; `start`, `stop` and `buffershape` are NULL or readable for one
 * number per dimension; `buffer` is NULL or writable for `buffersize` bytes.
 */
BLOSC_EXPORT
int b2nd_get_slice_cbuffer(const struct b2nd_array_t *array,
                           const int64_t *start,
                           const int64_t *stop,
                           void *buffer,
                           const int64_t *buffershape,
                           int64_t buffersize);

/**
 * Gives the box from `start` to `stop` (excluded) the values in a C-order buffer of shape `buffershape`; returns 0, or
 * a negative code. What lies outside of the array is ignored.
 *
 * Requirements:
 *
 * `array` is NULL or valid and no other thread uses it; `start`, `stop` and `buffershape` are NULL or readable for one
 * number per dimension; `buffer` is NULL or readable for `buffersize` bytes.
 */
BLOSC_EXPORT
int b2nd_set_slice_cbuffer(const void *buffer,
                           const int64_t *buffershape,
                           int64_t buffersize,
                           const int64_t *start,
                           const int64_t *stop,
                           struct b2nd_array_t *array);

/**
 * Copies the items with the C-order numbers `coords`, in any order and as often as they occur, to `buffer`; returns 0,
 * or a negative code.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; `coords` is NULL or readable for `ncoords` numbers, `buffer` NULL or
 * writable for `buffersize` bytes.
 */
BLOSC_EXPORT
int b2nd_get_sparse_cbuffer(const struct b2nd_array_t *array,
                            int64_t ncoords,
                            const int64_t *coords,
                            void *buffer,
                            int64_t buffersize);

/**
 * Copies the items whose index in each dimension is in its list to a C-order buffer of shape `buffershape`; returns 0,
 * or a negative code. `selection_size` holds the lengths of the lists, `buffersize` is the number of bytes that are
 * selected.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; `selection` and `selection_size` are NULL or readable for one entry
 * per dimension, each list for its length; `buffershape` as well; `buffer` is writable for as many items as
 * `buffershape` says.
 */
BLOSC_EXPORT
int b2nd_get_orthogonal_selection(const struct b2nd_array_t *array,
                                  int64_t **selection,
                                  int64_t *selection_size,
                                  void *buffer,
                                  int64_t *buffershape,
                                  int64_t buffersize);

/**
 * Gives the items whose index in each dimension is in its list the values in a C-order buffer of shape `buffershape`;
 * returns 0, or a negative code. Of indices that occur more than once the last one counts.
 *
 * Requirements:
 *
 * As for `b2nd_get_orthogonal_selection`; no other thread uses `array`, and `buffer` is only read.
 */
BLOSC_EXPORT
int b2nd_set_orthogonal_selection(struct b2nd_array_t *array,
                                  int64_t **selection,
                                  int64_t *selection_size,
                                  const void *buffer,
                                  int64_t *buffershape,
                                  int64_t buffersize);

/* ---- Shape ---- */

/**
 * Gives an array the shape `new_shape`; returns 0, or a negative code.
 *
 * Items are added or removed before `start`, in whole chunks, or at the end if that is NULL. New chunks hold zeros.
 *
 * Requirements:
 *
 * `array` is NULL or valid and no other thread uses it; `new_shape` and `start` are NULL or readable for one number
 * per dimension.
 */
BLOSC_EXPORT
int b2nd_resize(struct b2nd_array_t *array,
                const int64_t *new_shape,
                const int64_t *start);

/**
 * Inserts the items in `buffer`, in C order, before item `insert_start` of the dimension `axis`; returns 0, or a
 * negative code. In the middle, position and number of the new items must be whole chunks.
 *
 * Shape and items are one change, up to about 64 MiB of new compressed chunks, and without a prefilter. With more, or
 * with a prefilter, the array grows first, and a process killed before the end leaves zeros where items are missing.
 *
 * Requirements:
 *
 * `array` is NULL or valid and no other thread uses it; `buffer` is NULL or readable for `buffersize` bytes.
 */
BLOSC_EXPORT
int b2nd_insert(struct b2nd_array_t *array,
                const void *buffer,
                int64_t buffersize,
                int8_t axis,
                int64_t insert_start);

/**
 * Appends the items in `buffer`, in C order, at the end of the dimension `axis`; returns 0, or a negative code.
 * `b2nd_insert` tells which parts of this are one change.
 *
 * Requirements:
 *
 * As for `b2nd_insert`.
 */
BLOSC_EXPORT
int b2nd_append(struct b2nd_array_t *array,
                const void *buffer,
                int64_t buffersize,
                int8_t axis);

/**
 * Removes `delete_len` items at `delete_start` of the dimension `axis`; returns 0, or a negative code. In the middle,
 * both must be whole chunks.
 *
 * Requirements:
 *
 * `array` is NULL or valid and no other thread uses it.
 */
BLOSC_EXPORT
int b2nd_delete(struct b2nd_array_t *array,
                int8_t axis,
                int64_t delete_start,
                int64_t delete_len);

/**
 * Makes a view without the dimensions of one item; returns 0, or a negative code.
 *
 * A view shares the chunks of its array, until the shape of the view is changed. If that of the array is changed,
 * chunks get other numbers, and the view shows other items. Both are to be released, in any order.
 *
 * Requirements:
 *
 * `array` is NULL or valid and no other thread uses it; `view` is NULL or writable.
 */
BLOSC_EXPORT
int b2nd_squeeze(struct b2nd_array_t *array,
                 struct b2nd_array_t **view);

/**
 * Makes a view without the dimensions for which `index` is true, which must have one item; returns 0, or a negative
 * code. For views see `b2nd_squeeze`.
 *
 * Requirements:
 *
 * As for `b2nd_squeeze`; `index` is NULL or readable for one value per dimension.
 */
BLOSC_EXPORT
int b2nd_squeeze_index(struct b2nd_array_t *array,
                       struct b2nd_array_t **view,
                       const bool *index);

/**
 * Makes a view with `final_dims` dimensions: one of one item wherever `axis` is true, else the next one of the array.
 * Returns 0, or a negative code. For views see `b2nd_squeeze`.
 *
 * Requirements:
 *
 * `array` is NULL or valid and not being changed; `view` is NULL or writable; `axis` is NULL or readable for
 * `final_dims` values.
 */
BLOSC_EXPORT
int b2nd_expand_dims(const struct b2nd_array_t *array,
                     struct b2nd_array_t **view,
                     const bool *axis,
                     uint8_t final_dims);

/* ---- Metadata ---- */

/**
 * Writes the metalayer of an array to memory that the caller releases with `free()`; returns its length, or a negative
 * code. Without a `dtype`, it is that of bytes.
 *
 * Requirements:
 *
 * The shapes are readable for `ndim` numbers each; `dtype` is NULL or a string; `smeta` is writable.
 */
BLOSC_EXPORT
int b2nd_serialize_meta(int8_t ndim,
                        const int64_t *shape,
                        const int32_t *chunkshape,
                        const int32_t *blockshape,
                        const char *dtype,
                        int8_t dtype_format,
                        uint8_t **smeta);

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

/**
 * Reads the metalayer of an array; returns the number of bytes that it takes, or a negative code.
 *
 * `*dtype` becomes a string that the caller releases with `free()`, or NULL if none is stored. Without `dtype` or
 * `dtype_format`, reading ends before the dtype.
 *
 * Requirements:
 *
 * `smeta` is NULL or readable for `smeta_len` bytes; the shapes are NULL or writable for one number per dimension that
 * is stored, at most 16, the others NULL or writable.
 */
BLOSC_EXPORT
int b2nd_deserialize_meta(const uint8_t *smeta,
                          int32_t smeta_len,
                          int8_t *ndim,
                          int64_t *shape,
                          int32_t *chunkshape,
                          int32_t *blockshape,
                          char **dtype,
                          int8_t *dtype_format);

/* ---- Boxes of plain buffers ---- */

/**
 * As `b2nd_copy_buffer2`, for items of at most 255 bytes.
 *
 * Requirements:
 *
 * As for `b2nd_copy_buffer2`.
 */
BLOSC_EXPORT
B2ND_DEPRECATED("b2nd_copy_buffer2 takes items of any size")
int b2nd_copy_buffer(int8_t ndim,
                     uint8_t itemsize,
                     const void *src,
                     const int64_t *src_pad_shape,
                     const int64_t *src_start,
                     const int64_t *src_stop,
                     void *dst,
                     const int64_t *dst_pad_shape,
                     const int64_t *dst_start);

/**
 * Copies a box from one C-order buffer to another; returns 0, or a negative code.
 *
 * The box goes from `src_start` to `src_stop` (excluded) in a buffer of shape `src_pad_shape`, and starts at
 * `dst_start` in one of shape `dst_pad_shape`.
 *
 * Requirements:
 *
 * The shapes and positions are readable for `ndim` numbers each; the box lies in both buffers, which do not overlap.
 */
BLOSC_EXPORT
int b2nd_copy_buffer2(int8_t ndim,
                      int32_t itemsize,
                      const void *src,
                      const int64_t *src_pad_shape,
                      const int64_t *src_start,
                      const int64_t *src_stop,
                      void *dst,
                      const int64_t *dst_pad_shape,
                      const int64_t *dst_start);

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_B2ND_H */
