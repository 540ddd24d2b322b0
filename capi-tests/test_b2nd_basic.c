/* Arrays: creation, boxes, selections, shapes, files. */

#include "test.h"

#include <b2nd.h>

#define PATH "test_b2nd_basic.b2nd"

static b2nd_context_t *make_ctx(bool contiguous, const char *urlpath, int8_t ndim, const int64_t *shape,
                                const int32_t *chunkshape, const int32_t *blockshape, int32_t typesize) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  cparams.typesize = typesize;
  storage.cparams = &cparams;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)urlpath;
  return b2nd_create_ctx(&storage, ndim, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
}

static const int64_t shape_2d[2] = {20, 10};
static const int32_t chunk_2d[2] = {7, 5}, block_2d[2] = {3, 5};

static void fill(int32_t *items, int64_t count) {
  int64_t i;
  for (i = 0; i < count; i++) {
    items[i] = (int32_t)i + 1;
  }
}

static void test_storage(bool contiguous, const char *urlpath) {
  int32_t items[200], back[240], box[5 * 6];
  int64_t start[2] = {2, 3}, stop[2] = {7, 9}, boxshape[2] = {5, 6}, i, j;
  b2nd_context_t *ctx = make_ctx(contiguous, urlpath, 2, shape_2d, chunk_2d, block_2d, 4);
  b2nd_array_t *array = NULL, *other = NULL;
  fill(items, 200);
  if (urlpath != NULL) {
    blosc2_remove_urlpath(urlpath);
  }
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  CHECK_INT(array->ndim, 2);
  CHECK_INT(array->shape[0], 20);
  CHECK_INT(array->extshape[0], 21);
  CHECK_INT(array->extchunkshape[0], 9);
  CHECK_INT(array->nitems, 200);
  CHECK_INT(array->sc->chunksize, 9 * 5 * 4);
  CHECK_INT(array->sc->nchunks, 6);
  CHECK_INT(blosc2_meta_exists(array->sc, "b2nd"), 0);
  CHECK_STR(array->dtype, "|S4");

  memset(back, 1, sizeof back);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);
  CHECK_INT(back[200], 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof items - 1), BLOSC2_ERROR_INVALID_PARAM);

  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, box, boxshape, sizeof box), 0);
  for (i = 0; i < 5; i++) {
    for (j = 0; j < 6; j++) {
      CHECK_INT(box[i * 6 + j], items[(i + 2) * 10 + j + 3]);
      box[i * 6 + j] = -1;
    }
  }
  CHECK_INT(b2nd_set_slice_cbuffer(box, boxshape, sizeof box, start, stop, array), 0);
  for (i = 0; i < 5; i++) {
    for (j = 0; j < 6; j++) {
      items[(i + 2) * 10 + j + 3] = -1;
    }
  }
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);

  if (urlpath != NULL) {
    /* Another handle sees what this one changes. */
    int64_t larger[2] = {25, 10};
    REQUIRE_INT(b2nd_open(urlpath, &other), 0);
    CHECK_INT(b2nd_refresh(other), 0);
    CHECK_INT(b2nd_resize(array, larger, NULL), 0);
    CHECK_INT(other->shape[0], 20);
    CHECK_INT(b2nd_refresh(other), 1);
    CHECK_INT(b2nd_refresh(other), 0);
    CHECK_INT(other->shape[0], 25);
    CHECK_INT(b2nd_free(other), 0);
    CHECK_INT(b2nd_resize(array, shape_2d, NULL), 0);
  }
  {
    uint8_t *cframe;
    int64_t len;
    bool needs_free;
    REQUIRE_INT(b2nd_to_cframe(array, &cframe, &len, &needs_free), 0);
    REQUIRE_INT(b2nd_from_cframe(cframe, len, true, &other), 0);
    CHECK_INT(b2nd_to_cbuffer(other, back, sizeof back), 0);
    CHECK_BYTES(back, items, sizeof items);
    CHECK_INT(b2nd_free(other), 0);
    if (needs_free) {
      free(cframe);
    }
  }
  CHECK_INT(b2nd_free(array), 0);
  CHECK_INT(b2nd_free_ctx(ctx), 0);
  if (urlpath != NULL) {
    blosc2_remove_urlpath(urlpath);
  }
}

static void test_shapes(void) {
  int32_t items[200], more[30], back[230];
  int64_t lists0[3] = {3, 19, 3}, lists1[2] = {9, 0}, *lists[2], sizes[2] = {3, 2}, i;
  int64_t coords[4] = {0, 199, 57, 0}, box[2] = {3, 2};
  b2nd_context_t *ctx = make_ctx(false, NULL, 2, shape_2d, chunk_2d, block_2d, 4);
  b2nd_array_t *array, *joined, *copy;
  fill(items, 200);
  fill(more, 30);
  lists[0] = lists0;
  lists[1] = lists1;
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, back, box, 24), 0);
  CHECK_INT(back[0], 40);
  CHECK_INT(back[1], 31);
  CHECK_INT(back[2], 200);
  CHECK_INT(back[5], 31);
  lists0[1] = 20;
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, back, box, 24), BLOSC2_ERROR_INVALID_INDEX);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 4, coords, back, 16), 0);
  for (i = 0; i < 4; i++) {
    CHECK_INT(back[i], coords[i] + 1);
  }
  CHECK_INT(b2nd_append(array, more, sizeof more, 0), 0);
  CHECK_INT(array->shape[0], 23);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);
  CHECK_BYTES(back + 200, more, sizeof more);
  CHECK_INT(b2nd_append(array, more, 7, 0), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_append(array, more, sizeof more, 2), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_delete(array, 0, 20, 3), 0);
  CHECK_INT(array->shape[0], 20);
  REQUIRE_INT(b2nd_copy(ctx, array, &copy), 0);
  REQUIRE_INT(b2nd_concatenate(ctx, array, copy, 1, true, &joined), 0);
  CHECK_INT(joined->shape[1], 20);
  REQUIRE_INT(b2nd_concatenate(NULL, copy, copy, 0, false, &copy), 0);
  CHECK_INT(copy->shape[0], 40);
  CHECK_INT(b2nd_free(copy), 0);
  CHECK_INT(b2nd_free(joined), 0);
  CHECK_INT(b2nd_free(array), 0);
  CHECK_INT(b2nd_free_ctx(ctx), 0);
}

static void test_views(bool contiguous) {
  const int64_t shape[3] = {1, 6, 4};
  const int32_t chunk[3] = {1, 4, 3}, block[3] = {1, 2, 3};
  const bool index[3] = {true, false, false}, none[2] = {false, false}, axis[3] = {false, true, false};
  int64_t start[2] = {2, 1}, stop[2] = {3, 3}, boxshape[2] = {1, 2}, larger[2] = {9, 4};
  int32_t items[24], back[36], box[2] = {-7, -8};
  int64_t len;
  bool needs_free;
  uint8_t *cframe;
  b2nd_context_t *ctx = make_ctx(contiguous, NULL, 3, shape, chunk, block, 4);
  b2nd_array_t *array, *view, *same, *wide, *copy;
  fill(items, 24);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  REQUIRE_INT(b2nd_squeeze_index(array, &view, index), 0);
  CHECK(view->sc->view);
  CHECK(view->sc->data == array->sc->data);
  CHECK_INT(view->ndim, 2);
  CHECK_INT(view->shape[0], 6);
  CHECK_INT(b2nd_to_cbuffer(view, back, sizeof items), 0);
  CHECK_BYTES(back, items, sizeof items);
  CHECK_INT(b2nd_set_slice_cbuffer(box, boxshape, sizeof box, start, stop, view), 0);
  items[9] = -7;
  items[10] = -8;
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof items), 0);
  CHECK_BYTES(back, items, sizeof items);
  REQUIRE_INT(b2nd_to_cframe(view, &cframe, &len, &needs_free), 0);
  CHECK(needs_free);
  REQUIRE_INT(b2nd_from_cframe(cframe, len, true, &copy), 0);
  CHECK_INT(copy->ndim, 2);
  CHECK_INT(b2nd_to_cbuffer(copy, back, sizeof items), 0);
  CHECK_BYTES(back, items, sizeof items);
  free(cframe);
  CHECK_INT(b2nd_free(copy), 0);
  REQUIRE_INT(b2nd_expand_dims(view, &wide, axis, 3), 0);
  CHECK_INT(wide->shape[1], 1);
  REQUIRE_INT(b2nd_squeeze(wide, &same), 0);
  CHECK_INT(same->ndim, 2);
  CHECK_INT(b2nd_free(same), 0);
  REQUIRE_INT(b2nd_squeeze_index(view, &same, none), 0);
  CHECK_INT(b2nd_squeeze_index(view, &copy, index), BLOSC2_ERROR_INVALID_INDEX);
  /* A view that changes its shape leaves its base alone. */
  CHECK_INT(b2nd_resize(same, larger, NULL), 0);
  CHECK_INT(same->shape[0], 9);
  CHECK_INT(b2nd_to_cbuffer(same, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);
  CHECK_INT(back[35], 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof items), 0);
  CHECK_BYTES(back, items, sizeof items);
  /* In any order. */
  CHECK_INT(b2nd_free(array), 0);
  CHECK_INT(b2nd_free(same), 0);
  CHECK_INT(b2nd_free(wide), 0);
  CHECK_INT(b2nd_free(view), 0);
  CHECK_INT(b2nd_free_ctx(ctx), 0);
}

static void test_special(void) {
  double back[200], value = 2.5;
  int i;
  b2nd_context_t *ctx = make_ctx(true, NULL, 2, shape_2d, chunk_2d, block_2d, 8);
  b2nd_array_t *array;
  REQUIRE_INT(b2nd_zeros(ctx, &array), 0);
  CHECK_INT(array->sc->cbytes, 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  for (i = 0; i < 200; i++) {
    CHECK(back[i] == 0);
  }
  b2nd_free(array);
  REQUIRE_INT(b2nd_full(ctx, &array, &value), 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  for (i = 0; i < 200; i++) {
    CHECK(back[i] == 2.5);
  }
  b2nd_free(array);
  REQUIRE_INT(b2nd_nans(ctx, &array), 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  for (i = 0; i < 200; i++) {
    CHECK(back[i] != back[i]);
  }
  b2nd_free(array);
  b2nd_free_ctx(ctx);
}

static void test_meta(void) {
  const int64_t shape[1] = {10};
  const int32_t chunk[1] = {7}, block[1] = {2};
  int64_t shape2[16];
  int32_t chunk2[16], block2[16];
  int8_t ndim, format;
  char *dtype;
  uint8_t *smeta;
  CHECK_INT(b2nd_serialize_meta(1, shape, chunk, block, NULL, 0, &smeta), 34);
  CHECK_INT(b2nd_deserialize_meta(smeta, 34, &ndim, shape2, chunk2, block2, &dtype, &format), 34);
  CHECK_INT(ndim, 1);
  CHECK_INT(shape2[0], 10);
  CHECK_INT(block2[0], 2);
  CHECK_STR(dtype, "|u1");
  free(dtype);
  CHECK_INT(b2nd_deserialize_meta(smeta, 33, &ndim, shape2, chunk2, block2, &dtype, &format), -1);
  CHECK(dtype == NULL);
  free(smeta);
}

int main(void) {
  blosc2_init();
  test_storage(false, NULL);
  test_storage(true, NULL);
  test_storage(true, PATH);
  test_storage(false, PATH);
  test_shapes();
  test_views(false);
  test_views(true);
  test_special();
  test_meta();
  blosc2_destroy();
  return test_end();
}
