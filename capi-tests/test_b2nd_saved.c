/* Arrays that are written to files and opened again, also several in one file; arrays without values; and what the
 * constructors of arrays refuse. */

#include "arrays.h"

#define SAVED "test_b2nd_saved.b2nd"
#define SEVERAL "test_b2nd_saved_several.b2nd"

static const struct place places[] = {
    {false, NULL},
    {true, NULL},
    {true, "test_b2nd_saved_file.b2nd"},
    {false, "test_b2nd_saved_dir.b2nd"},
};
#define NPLACES ((int)(sizeof places / sizeof places[0]))

enum { ROWS = 5, COLUMNS = 7, COUNT = ROWS * COLUMNS };
static const int64_t shape[] = {ROWS, COLUMNS};
static const int32_t chunkshape[] = {3, 4}, blockshape[] = {2, 3};

static b2nd_array_t *make_array(const struct place *place, int64_t first) {
  return make_counting(place, 4, first, 2, shape, chunkshape, blockshape);
}

/* Checks that an array holds numbers that count from `first`. */
static void counts_from(const b2nd_array_t *array, int32_t first) {
  int32_t items[COUNT];
  int i;
  CHECK(array->ndim == 2 && array->shape[0] == ROWS && array->shape[1] == COLUMNS);
  CHECK(array->chunkshape[1] == chunkshape[1] && array->blockshape[0] == blockshape[0]);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < COUNT; i++) {
    CHECK_INT(items[i], first + i);
  }
}

/* A saved array is the same array, and does not change what it was saved from. */
static void test_save(const struct place *place) {
  b2nd_array_t *array = make_array(place, 100), *saved = NULL;
  int32_t item = -1;
  int64_t at[] = {0, 0}, behind[] = {1, 1};
  blosc2_remove_urlpath(SAVED);
  CHECK_INT(b2nd_save(array, (char *)SAVED), 0);
  REQUIRE_INT(b2nd_open(SAVED, &saved), 0);
  CHECK_INT(saved->sc->storage->contiguous, place->contiguous);
  counts_from(saved, 100);
  CHECK_INT(b2nd_set_slice_cbuffer(&item, behind, sizeof item, at, behind, saved), 0);
  counts_from(array, 100);
  b2nd_free(saved);
  CHECK_INT(b2nd_save(NULL, (char *)SAVED), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(b2nd_save(array, NULL), BLOSC2_ERROR_NULL_POINTER);
  CHECK(b2nd_save(array, (char *)"no such directory/array.b2nd") < 0);
  b2nd_free(array);
  blosc2_remove_urlpath(SAVED);
  if (place->urlpath != NULL) {
    blosc2_remove_urlpath(place->urlpath);
  }
}

/* Arrays one after the other in one file, each opened where it starts. */
static void test_save_append(const struct place *place) {
  int64_t offsets[3];
  b2nd_array_t *array, *saved = NULL;
  int i;
  blosc2_remove_urlpath(SEVERAL);
  for (i = 0; i < 3; i++) {
    array = make_array(place, 1000 * i);
    offsets[i] = b2nd_save_append(array, SEVERAL);
    CHECK(i == 0 ? offsets[i] == 0 : offsets[i] > offsets[i - 1]);
    CHECK_INT(b2nd_save_append(NULL, SEVERAL), BLOSC2_ERROR_NULL_POINTER);
    CHECK_INT(b2nd_save_append(array, NULL), BLOSC2_ERROR_INVALID_PARAM);
    b2nd_free(array);
  }
  for (i = 2; i >= 0; i--) {
    REQUIRE_INT(b2nd_open_offset(SEVERAL, &saved, offsets[i]), 0);
    counts_from(saved, 1000 * i);
    b2nd_free(saved);
  }
  saved = NULL;
  CHECK(b2nd_open_offset(SEVERAL, &saved, offsets[1] + 1) < 0 && saved == NULL);
  CHECK(b2nd_open_offset(SEVERAL, &saved, -1) < 0 && saved == NULL);
  CHECK(b2nd_open_offset(SEVERAL, &saved, INT64_MAX) < 0 && saved == NULL);
  CHECK(b2nd_open_offset("no such array.b2nd", &saved, 0) < 0 && saved == NULL);
  CHECK_INT(b2nd_open_offset(NULL, &saved, 0), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(b2nd_open_offset(SEVERAL, NULL, 0), BLOSC2_ERROR_NULL_POINTER);
  blosc2_remove_urlpath(SEVERAL);
  if (place->urlpath != NULL) {
    blosc2_remove_urlpath(place->urlpath);
  }
}

/* Arrays without values take any, and are as large as others. */
static void test_without_values(const struct place *place, int (*make)(b2nd_context_t *, b2nd_array_t **)) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  const int64_t start[] = {0, 0};
  int32_t items[COUNT];
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int i;
  cparams.typesize = 4;
  ctx = make_ctx(place, &cparams, &dparams, 2, shape, chunkshape, blockshape);
  CHECK_INT(make(NULL, &array), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(make(ctx, NULL), BLOSC2_ERROR_NULL_POINTER);
  REQUIRE_INT(make(ctx, &array), 0);
  CHECK_INT(array->nitems, COUNT);
  CHECK_INT(array->sc->nchunks, 4);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < COUNT; i++) {
    items[i] = 5 + i;
  }
  CHECK_INT(b2nd_set_slice_cbuffer(items, shape, sizeof items, start, shape, array), 0);
  counts_from(array, 5);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  if (place->urlpath != NULL) {
    blosc2_remove_urlpath(place->urlpath);
  }
}

/* What is no number cannot be stored in items of three bytes. */
static void test_nans(void) {
  const struct place *place = &places[0];
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  double items[COUNT];
  b2nd_array_t *array = NULL;
  b2nd_context_t *ctx;
  int i;
  cparams.typesize = 3;
  ctx = make_ctx(place, &cparams, &dparams, 2, shape, chunkshape, blockshape);
  CHECK(b2nd_nans(ctx, &array) < 0 && array == NULL);
  CHECK_INT(b2nd_nans(NULL, &array), BLOSC2_ERROR_NULL_POINTER);
  b2nd_free_ctx(ctx);
  cparams.typesize = 8;
  ctx = make_ctx(place, &cparams, &dparams, 2, shape, chunkshape, blockshape);
  REQUIRE_INT(b2nd_nans(ctx, &array), 0);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < COUNT; i++) {
    CHECK(items[i] != items[i]);
  }
  b2nd_free(array);
  b2nd_free_ctx(ctx);
}

/* Calls without an array, or for a part that it has not. */
static void test_refused(void) {
  const int64_t start[] = {1, 1}, stop[] = {3, 5}, behind[] = {3, COLUMNS + 1}, before[] = {-1, 0};
  const int64_t zero[] = {0, 0};
  b2nd_array_t *array = make_array(&places[0], 0), *part = NULL;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  REQUIRE(ctx != NULL);
  CHECK(b2nd_get_slice(ctx, &part, array, start, behind) < 0 && part == NULL);
  CHECK(b2nd_get_slice(ctx, &part, array, before, stop) < 0 && part == NULL);
  CHECK_INT(b2nd_get_slice(NULL, &part, array, start, stop), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(b2nd_get_slice(ctx, NULL, array, start, stop), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(b2nd_get_slice(ctx, &part, NULL, start, stop), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(b2nd_get_slice(ctx, &part, array, NULL, stop), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(b2nd_get_slice(ctx, &part, array, start, NULL), BLOSC2_ERROR_NULL_POINTER);
  CHECK(part == NULL);
  CHECK_INT(b2nd_copy_buffer2(2, 4, NULL, shape, start, stop, array, shape, zero), BLOSC2_ERROR_NULL_POINTER);
  CHECK(b2nd_print_meta(NULL) < 0);
  CHECK(b2nd_free(NULL) < 0);
  CHECK(b2nd_free_ctx(NULL) < 0);
  counts_from(array, 0);
  b2nd_free_ctx(ctx);
  b2nd_free(array);
}

int main(void) {
  int i;
  blosc2_init();
  for (i = 0; i < NPLACES; i++) {
    test_save(&places[i]);
    test_save_append(&places[i]);
    test_without_values(&places[i], b2nd_empty);
    test_without_values(&places[i], b2nd_uninit);
  }
  test_nans();
  test_refused();
  blosc2_destroy();
  return test_end();
}
