/* Arrays for tests. */

#ifndef CAPI_TESTS_ARRAYS_H
#define CAPI_TESTS_ARRAYS_H

#include "test.h"

#include <b2nd.h>

/* Where an array is kept. */
struct place {
  bool contiguous;
  const char *urlpath;
};

/* Parameters for an array at `place`; what was there before is removed. */
static inline b2nd_context_t *make_ctx(const struct place *place, blosc2_cparams *cparams, blosc2_dparams *dparams,
                                       int8_t ndim, const int64_t *shape, const int32_t *chunkshape,
                                       const int32_t *blockshape) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  storage.cparams = cparams;
  storage.dparams = dparams;
  storage.contiguous = place->contiguous;
  storage.urlpath = (char *)place->urlpath;
  blosc2_remove_urlpath(place->urlpath);
  ctx = b2nd_create_ctx(&storage, ndim, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  REQUIRE(ctx != NULL);
  return ctx;
}

/* An array of integers of `typesize` bytes (1, 4 or 8) that count from `first`. */
static inline b2nd_array_t *make_counting(const struct place *place, int32_t typesize, int64_t first, int8_t ndim,
                                          const int64_t *shape, const int32_t *chunkshape, const int32_t *blockshape) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  uint8_t *items;
  int64_t count = 1, i;
  for (i = 0; i < ndim; i++) {
    count *= shape[i];
  }
  items = (uint8_t *)test_alloc((size_t)(count * typesize));
  for (i = 0; i < count; i++) {
    const int64_t number = first + i;
    const int32_t number_32 = (int32_t)number;
    const int8_t number_8 = (int8_t)number;
    const void *item = typesize == 8 ? (const void *)&number : typesize == 4 ? (const void *)&number_32 : &number_8;
    memcpy(items + i * typesize, item, (size_t)typesize);
  }
  cparams.typesize = typesize;
  ctx = make_ctx(place, &cparams, &dparams, ndim, shape, chunkshape, blockshape);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, count * typesize), 0);
  b2nd_free_ctx(ctx);
  free(items);
  return array;
}

#endif /* CAPI_TESTS_ARRAYS_H */
