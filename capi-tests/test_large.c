/* Data too large for the ways that small ones take: chunks of 2 MiB, arrays beyond the cache, copies of many MiB. */

#include "test.h"

#include <b2nd.h>
#include <unistd.h>

#define PATH "test_large.b2nd"
#define OTHER "test_large_copy.b2nd"

enum { PLANES = 6, ROWS = 1024, COLUMNS = 1024, ITEMS = PLANES * ROWS * COLUMNS };

static const struct place {
  bool contiguous;
  const char *urlpath;
} places[4] = {{false, NULL}, {true, NULL}, {true, PATH}, {false, PATH}};

/* Items of which some planes are random and others grow slowly. */
static int32_t *make_items(void) {
  int32_t *items = (int32_t *)test_make_data(TEST_NOISE, ITEMS * sizeof(int32_t));
  int32_t i;
  for (i = 0; i < ITEMS; i++) {
    if (i / (ROWS * COLUMNS) % 2 == 0) {
      items[i] = i / 3;
    }
  }
  return items;
}

static b2nd_context_t *make_ctx(const struct place *place) {
  const int64_t shape[3] = {PLANES, ROWS, COLUMNS};
  const int32_t chunkshape[3] = {1, ROWS, COLUMNS / 2}, blockshape[3] = {1, 64, COLUMNS / 2};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  cparams.typesize = sizeof(int32_t);
  cparams.compcode = BLOSC_LZ4;
  storage.cparams = &cparams;
  storage.contiguous = place->contiguous;
  storage.urlpath = (char *)place->urlpath;
  if (place->urlpath != NULL) {
    blosc2_remove_urlpath(place->urlpath);
  }
  ctx = b2nd_create_ctx(&storage, 3, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  REQUIRE(ctx != NULL);
  return ctx;
}

/* Whether the array holds the items, read at once and in a box that begins and ends within chunks. */
static void check_items(const b2nd_array_t *array, const int32_t *items) {
  const int64_t start[3] = {0, 3, 5}, stop[3] = {PLANES, ROWS - 1, COLUMNS - 7};
  const int64_t extent[3] = {PLANES, ROWS - 4, COLUMNS - 12};
  int32_t *got = (int32_t *)test_alloc(ITEMS * sizeof *got);
  int64_t plane, row;
  CHECK_INT(b2nd_to_cbuffer(array, got, ITEMS * sizeof *got), 0);
  CHECK_BYTES(got, items, ITEMS * sizeof *got);
  memset(got, 0xEE, ITEMS * sizeof *got);
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, got, extent, extent[0] * extent[1] * extent[2] * 4), 0);
  for (plane = 0; plane < extent[0]; plane++) {
    for (row = 0; row < extent[1]; row++) {
      const int32_t *there = items + (plane * ROWS + row + 3) * COLUMNS + 5;
      const int32_t *here = got + (plane * extent[1] + row) * extent[2];
      CHECK_BYTES(here, there, (size_t)extent[2] * sizeof *here);
    }
  }
  CHECK_INT(got[extent[0] * extent[1] * extent[2]], (int32_t)0xEEEEEEEE);
  free(got);
}

/* A whole array: written, changed in a box over all chunks, grown, and read after each. */
static void test_array(const struct place *place, const int32_t *items) {
  const int64_t start[3] = {0, 500, 100}, stop[3] = {PLANES, 600, 900}, extent[3] = {PLANES, 100, 800};
  const int64_t grown[3] = {PLANES + 1, ROWS, COLUMNS}, whole[3] = {PLANES, ROWS, COLUMNS};
  b2nd_context_t *ctx = make_ctx(place);
  b2nd_array_t *array;
  int32_t *model = (int32_t *)test_alloc(ITEMS * sizeof *model);
  int32_t *box = (int32_t *)test_make_data(TEST_NOISE, PLANES * 100 * 800 * sizeof *box);
  int64_t plane, row;
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, ITEMS * sizeof *items), 0);
  check_items(array, items);

  memcpy(model, items, ITEMS * sizeof *model);
  for (plane = 0; plane < PLANES; plane++) {
    for (row = 0; row < 100; row++) {
      memcpy(model + (plane * ROWS + row + 500) * COLUMNS + 100, box + (plane * 100 + row) * 800, 800 * sizeof *box);
    }
  }
  CHECK_INT(b2nd_set_slice_cbuffer(box, extent, PLANES * 100 * 800 * sizeof *box, start, stop, array), 0);
  check_items(array, model);
  CHECK_INT(b2nd_resize(array, grown, NULL), 0);
  CHECK_INT(b2nd_resize(array, whole, NULL), 0);
  check_items(array, model);
  if (place->urlpath != NULL) {
    b2nd_free(array);
    REQUIRE_INT(b2nd_open(place->urlpath, &array), 0);
    check_items(array, model);
  }
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  free(box);
  free(model);
}

/* Copies of an array in one place to each other one, and their frames as buffers. */
static void test_copies(const struct place *place, const int32_t *items) {
  b2nd_context_t *ctx = make_ctx(place);
  b2nd_array_t *array, *copy, *again;
  size_t i;
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, ITEMS * sizeof *items), 0);
  for (i = 0; i < 4; i++) {
    struct place other = places[i];
    b2nd_context_t *other_ctx;
    uint8_t *frame;
    int64_t len;
    bool needs_free;
    other.urlpath = other.urlpath == NULL ? NULL : OTHER;
    other_ctx = make_ctx(&other);
    REQUIRE_INT(b2nd_copy(other_ctx, array, &copy), 0);
    check_items(copy, items);
    REQUIRE_INT(b2nd_to_cframe(copy, &frame, &len, &needs_free), 0);
    REQUIRE_INT(b2nd_from_cframe(frame, len, true, &again), 0);
    check_items(again, items);
    b2nd_free(again);
    b2nd_free(copy);
    if (needs_free) {
      free(frame);
    }
    b2nd_free_ctx(other_ctx);
  }
  b2nd_free(array);
  b2nd_free_ctx(ctx);
}

int main(void) {
  int32_t *items = make_items();
  size_t i;
  blosc2_init();
  for (i = 0; i < 4; i++) {
    test_array(&places[i], items);
    test_copies(&places[i], items);
  }
  blosc2_remove_urlpath(PATH);
  blosc2_remove_urlpath(OTHER);
  blosc2_destroy();
  free(items);
  return test_end();
}
