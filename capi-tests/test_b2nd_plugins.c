/* Arrays with the codecs and filters of the global registry. */

#include "test.h"

#include <b2nd.h>
#include <blosc2/codecs-registry.h>

enum { EDGE = 8, ITEMS = EDGE * EDGE };

/* A square of items in one block. */
static int make_square(blosc2_cparams *cparams, const void *items, b2nd_array_t **array) {
  const int64_t shape[2] = {EDGE, EDGE};
  const int32_t edges[2] = {EDGE, EDGE};
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  int code;
  storage.cparams = cparams;
  ctx = b2nd_create_ctx(&storage, 2, shape, edges, edges, NULL, 0, NULL, 0);
  code = b2nd_from_cbuffer(ctx, array, items, (int64_t)ITEMS * cparams->typesize);
  b2nd_free_ctx(ctx);
  return code;
}

/* The parameters of a codec without filters. */
static blosc2_cparams with_codec(uint8_t compcode, uint8_t compcode_meta, int32_t typesize) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.compcode = compcode;
  cparams.compcode_meta = compcode_meta;
  cparams.typesize = typesize;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = BLOSC_NOFILTER;
  return cparams;
}

/* Items above 255 bytes, which are single bytes in chunks, are no floats: blocks of them are stored as they are. */
static void test_large_items(uint8_t compcode) {
  enum { SIZE = 256 * ITEMS };
  blosc2_cparams cparams = with_codec(compcode, 20, 256);
  uint8_t *items = test_make_data(TEST_FLOATS, SIZE), *back = (uint8_t *)test_alloc(SIZE);
  b2nd_array_t *array = NULL;
  if (CHECK_INT(make_square(&cparams, items, &array), 0)) {
    CHECK(array->sc->cbytes > SIZE);
    CHECK_INT(b2nd_to_cbuffer(array, back, SIZE), 0);
    CHECK_BYTES(back, items, SIZE);
    b2nd_free(array);
  }
  free(items);
  free(back);
}

int main(void) {
  blosc2_init();
  test_large_items(BLOSC_CODEC_ZFP_FIXED_ACCURACY);
  test_large_items(BLOSC_CODEC_ZFP_FIXED_PRECISION);
  test_large_items(BLOSC_CODEC_ZFP_FIXED_RATE);
  blosc2_destroy();
  return test_end();
}
